/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What nothing that does it can be cheaper than: tasks for sb_measure().
 */
#ifndef BENCH_SB_FLOOR_H
#define BENCH_SB_FLOOR_H

#include <stdint.h>

struct sb_set;

/* A locked add, of the uint64_t @ctx. Returns 0. */
int sb_floor_add(void *ctx, uint64_t n, struct sb_set *set);

/* A barrier of all threads of peers, without @ctx. Returns 0 or negative. */
int sb_floor_barrier(void *ctx, uint64_t n, struct sb_set *set);

#endif
