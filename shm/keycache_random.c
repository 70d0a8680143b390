/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Key cache policy random: any entry of the set gives way. The sequence is
 * that of the seed: the same keys in the same order give the same hits.
 */
#include "shm/keycache.h"

/* 32 random bits: a counter, mixed (a finaliser in the manner of murmur3). */
static uint32_t next(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
	x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return (uint32_t)(x >> 32);
}

static uint32_t victim(struct rnic_keycache *k, uint32_t set, uint32_t first)
{
	(void)set;
	return first + (uint32_t)((uint64_t)next(&k->random) * k->ways >> 32);
}

const struct rnic_keycache_ops rnic_keycache_random = {
	.name = "random",
	.keeps = true,
	.victim = victim,
};
