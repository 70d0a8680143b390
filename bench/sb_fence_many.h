/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A hundred thousand regions: a process of their own, whose settings are not
 * those of the other rows of shrimp-bench fence.
 */
#ifndef BENCH_SB_FENCE_MANY_H
#define BENCH_SB_FENCE_MANY_H

#include "bench/sb_options.h"
#include "bench/sb_proc.h"

/*
 * Forks the process. Returns 0 or a negative code. Partner: sb_proc_end().
 */
int sb_fence_many_start(struct sb_proc *p);

/* Has it register and close; prints the rows. Returns 0 or negative. */
int sb_fence_many_run(struct sb_proc *p, const struct sb_options *o,
		      struct sb_out *out);

#endif
