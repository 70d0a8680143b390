/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Floors.
 */
#include "bench/sb_floor.h"

#include "bench/sb_side.h"
#include "shm/atomic.h"
#include "shm/fence.h"

int sb_floor_add(void *ctx, uint64_t n, struct sb_set *set)
{
	uint64_t *word = ctx;

	(void)set;
	/* its cost counts, it pairs with nothing */
	for (uint64_t i = 0; i < n; i++)
		rnic_raw_add_seqcst((char *)word, sizeof(*word), 1);
	return 0;
}

int sb_floor_barrier(void *ctx, uint64_t n, struct sb_set *set)
{
	int ret = 0;

	(void)ctx;
	(void)set;
	for (uint64_t i = 0; i < n && !ret; i++)
		ret = rnic_fence_peers();
	return ret ? sb_fail("membarrier", ret) : 0;
}
