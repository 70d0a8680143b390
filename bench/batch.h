/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One timed batch between a leader and a follower. The leader finds out how
 * many rounds fit into the time, runs them in short parts and keeps the median
 * of those in which nobody else had a core.
 *
 * Each side is one thread of its own process; nothing is shared.
 */
#ifndef BENCH_BATCH_H
#define BENCH_BATCH_H

#include <stddef.h>
#include <stdint.h>

/** How one side does its share; every call returns 0 or a negative code. */
struct bench_side {
	/* Does one round more than @rounds, the first one without measuring
	 * it, as the other side may have slept. Leader: sets *ns to the time
	 * of the rest without its own preparation of data. Follower: to the
	 * time that preparation took. */
	int (*run)(void *ctx, uint64_t rounds, uint64_t *ns);
	/* Sends one number to the other side, outside the timed part. */
	int (*put)(void *ctx, uint64_t value);
	/* Receives the number that the other side put. */
	int (*get)(void *ctx, uint64_t *value);
	void *ctx; /* handed to each call; the caller's */
};

/**
 * What one batch measured. A part is clean if neither side lost its core to
 * another program while it ran. The figures are those of the clean parts, or
 * of all if none was clean.
 */
struct bench_batch {
	double median_ns;  /* time of one round in the median part */
	double min_ns;	   /* time of one round in the fastest part */
	size_t clean;	   /* clean parts */
	size_t parts;	   /* all parts */
	uint64_t rounds;   /* rounds of each part */
	uint64_t begin_ns; /* bench_clock_ns() before the first round */
	uint64_t end_ns;   /* and after the last one */
};

/**
 * bench_batch_lead() - run one batch as the side that decides.
 * @batch: filled in on success only.
 * @side: this side's calls; borrowed.
 * @duration_ms: how long, a quarter of it to warm up.
 *
 * Blocks until the other side, in bench_batch_follow() at the same time, has
 * done its rounds. Returns 0 or what a call of @side returned.
 */
int bench_batch_lead(struct bench_batch *batch, const struct bench_side *side,
		     unsigned int duration_ms);

/**
 * bench_batch_follow() - take part in one batch of the other side.
 * @side: this side's calls; borrowed.
 *
 * Blocks until the leader has ended the batch. Returns 0 or what a call of
 * @side returned.
 */
int bench_batch_follow(const struct bench_side *side);

#endif
