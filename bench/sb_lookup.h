/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The two parts of shrimp-bench lookup: sb_lookup.c looks up alone,
 * sb_lookup_beside.c while others look up and their owner closes.
 */
#ifndef BENCH_SB_LOOKUP_H
#define BENCH_SB_LOOKUP_H

#include "bench/sb_options.h"

struct sb_device;
struct sb_beside;

/*
 * Forks the readers, one for each of --processes. Returns 0 or a negative
 * code; partner: sb_beside_end().
 */
int sb_beside_start(struct sb_beside **b, const struct sb_options *o);

/* Prints the rows of 0, 1, 2, 4... readers of @d. Returns 0 or negative. */
int sb_beside_run(struct sb_beside *b, struct sb_out *out, struct sb_device *d);

/* Ends the readers. NULL is accepted. */
void sb_beside_end(struct sb_beside *b);

#endif
