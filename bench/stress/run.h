/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Runs: steps drawn from a seed until the time is over, or those of a file;
 * and the shrinking of what failed.
 *
 * One thread.
 */
#ifndef BENCH_STRESS_RUN_H
#define BENCH_STRESS_RUN_H

#include "bench/stress/plan.h"
#include "bench/stress/result.h"

/*
 * Does the steps of @p in a new group, and ends it. WRONG: *@f says what and
 * where, and if @tell is not NULL the lines of the step are printed there.
 * SKIPPED: the group could not be started with its settings; f->text says why.
 */
enum stress_end stress_run_plan(const struct stress_options *o,
				const struct stress_plan *p,
				struct stress_fault *f, FILE *tell);

/*
 * Tries subsets of the steps of @p, which failed with @f, in new processes, for
 * at most o->shrink seconds; *@p becomes the smallest that failed, *@f what it
 * failed with. Returns false, and changes nothing, if not even all of them
 * fail again.
 */
bool stress_shrink(const struct stress_options *o, struct stress_plan *p,
		   struct stress_fault *f);

/* Draws steps and does them. Returns FINE, WRONG or UNUSABLE. */
enum stress_end stress_run_random(const struct stress_options *o);

/* Does those of @p, which was read from a file. Likewise. */
enum stress_end stress_run_replay(const struct stress_options *o,
				  struct stress_plan *p);

#endif
