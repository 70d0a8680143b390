/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * How shrimp-bench measures. A task is something that is done again and again;
 * the tasks of a group take turns, so that a change of the machine meets all
 * of them, what is measured and the floor it is compared with alike. A sample
 * is the time of one operation, or of a block of fast ones that lasts long
 * enough to be timed.
 *
 * Private to one thread; nothing is shared.
 */
#ifndef BENCH_SB_MEASURE_H
#define BENCH_SB_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "bench/stats.h"

enum {
	SB_BLOCK_NS = 5000, /* a block lasts at least so long */
	SB_LEAST = 3,	    /* samples that even the slowest task gets */
};

/*
 * Samples without bound: when the memory is full one of each two is dropped,
 * and from then on one of so many in a row is kept, a random one: those kept
 * are spread evenly over the run, and do not keep step with what repeats
 * itself in it. Zeroed memory is an empty set.
 */
struct sb_set {
	struct bench_stats kept; /* those that quantiles come from */
	uint64_t n;		 /* samples added */
	uint64_t stride;	 /* one of so many is kept; 0 means 1 */
	uint64_t at;		 /* place in a row of them */
	uint64_t pick;		 /* the place that is kept */
	uint64_t state;		 /* of random numbers */
	double min;		 /* of all, if n */
	double max;		 /* of all, if n */
};

/** How long to measure. */
struct sb_plan {
	double seconds;	      /* for each task */
	double warm_up;	      /* before that, seconds for each task */
	unsigned int repeats; /* turns, from 1 */
};

/** Something measured. */
struct sb_task {
	/*
	 * Does the operation @n times; returns 0 or a negative code, which
	 * ends the measuring. If @laps is 0 the call as a whole is timed. If
	 * not it times itself and adds ns for one operation to set[0] to
	 * set[laps - 1]; it may do less than @n operations.
	 */
	int (*run)(void *ctx, uint64_t n, struct sb_set *set);
	void *ctx;	    /* handed to run(); the caller's */
	struct sb_set *set; /* the caller's; one, or @laps of them */
	unsigned int laps;  /* sets that run() fills itself; 0: see there */
	uint64_t block_ns;  /* least time of a call; 0: SB_BLOCK_NS */
	uint64_t most;	    /* operations of a call at most; 0: no limit */
	uint64_t n;	    /* operations of a call; found by the warm-up */
	uint64_t spent;	    /* time of its calls, ns; set by sb_measure() */
};

/*
 * Adds a sample. Cannot fail.
 */
void sb_set_add(struct sb_set *set, double value);

/*
 * The sample below which a share @q of those kept lie, linear between two;
 * of 0 and 1 the smallest and the largest of all. NaN of an empty set.
 */
double sb_set_quantile(struct sb_set *set, double q);

/*
 * Adds what @from has kept to @set; the counts, and the extremes, are those
 * of both. @from stays as it is.
 */
void sb_set_join(struct sb_set *set, const struct sb_set *from);

/*
 * Warms up the @n tasks at @task, then lets them take turns until each has
 * had its time and SB_LEAST samples. Blocks for n * (seconds + warm_up), or
 * longer where one operation is. The sets are emptied first. Returns 0, or
 * what a run() returned.
 */
int sb_measure(const struct sb_plan *plan, struct sb_task *task, size_t n);

#endif
