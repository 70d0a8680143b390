/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Key cache policy LRU: what was not used for longest gives way. A use is a
 * tick of the context; 2^64 of them take some centuries.
 */
#include "shm/keycache.h"

static uint32_t victim(struct rnic_keycache *k, uint32_t set, uint32_t first)
{
	uint32_t oldest = first;

	(void)set;
	for (uint32_t i = first + 1; i < first + k->ways; i++)
		if (k->use[i] < k->use[oldest])
			oldest = i;
	return oldest;
}

const struct rnic_keycache_ops rnic_keycache_lru = {
	.name = "lru",
	.keeps = true,
	.step = 1,
	.victim = victim,
};
