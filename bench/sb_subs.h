/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The subcommands of shrimp-bench, each in sb_NAME.c.
 */
#ifndef BENCH_SB_SUBS_H
#define BENCH_SB_SUBS_H

#include "bench/sb_options.h"

extern const struct sb_bench sb_bench_reg;	/* registration */
extern const struct sb_bench sb_bench_lookup;	/* keys found */
extern const struct sb_bench sb_bench_keycache; /* hit rates */
extern const struct sb_bench sb_bench_fence;	/* closing */
extern const struct sb_bench sb_bench_window;	/* memory windows */
extern const struct sb_bench sb_bench_odp;	/* paging on demand */
extern const struct sb_bench sb_bench_cache;	/* registration cache */
extern const struct sb_bench sb_bench_rma;	/* reads and writes */
extern const struct sb_bench sb_bench_atomic;	/* atomics */
extern const struct sb_bench sb_bench_msg;	/* messages */

#endif
