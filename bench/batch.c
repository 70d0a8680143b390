/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One timed batch between a leader and a follower.
 *
 * Before each part the leader puts the number of rounds, after it the follower
 * puts the time it spent on preparing data; 0 rounds ends the batch.
 */
#include "bench/batch.h"

#include "bench/clock.h"
#include "bench/stats.h"

enum {
	PARTS = 12, /* parts of a batch */
	NS_PER_MS = 1000000,
	WARM_SHARE = 4,	      /* a quarter of the time warms up */
	ROUNDS_MAX = 1 << 24, /* bound of what is agreed on */
};

/* One part; sets *ns to its time without anybody's preparation of data. */
static int part_lead(const struct bench_side *side, uint64_t rounds,
		     uint64_t *ns)
{
	uint64_t whole;
	uint64_t peer;
	int rc;

	rc = side->put(side->ctx, rounds);
	if (!rc)
		rc = side->run(side->ctx, rounds, &whole);
	if (!rc)
		rc = side->get(side->ctx, &peer);
	if (!rc)
		*ns = whole > peer ? whole - peer : 1;
	return rc;
}

/*
 * Doubles the number of rounds until they fill the time for warming up; sets
 * *rounds to what fits into one part.
 */
static int rounds_find(const struct bench_side *side, unsigned int duration_ms,
		       uint64_t *rounds)
{
	uint64_t span = (uint64_t)duration_ms * NS_PER_MS;
	uint64_t begin = bench_clock_ns();
	uint64_t last;
	uint64_t took;
	uint64_t ns;
	uint64_t n = 1;
	int rc;

	for (;; n *= 2) {
		last = bench_clock_ns();
		rc = part_lead(side, n, &ns);
		if (rc)
			return rc;
		took = bench_clock_ns();
		if (took - begin >= span / WARM_SHARE || n >= ROUNDS_MAX)
			break;
	}
	took -= last;
	n = n * (span - span / WARM_SHARE) / PARTS / (took ? took : 1);
	*rounds = n ? n : 1;
	return 0;
}

int bench_batch_lead(struct bench_batch *batch, const struct bench_side *side,
		     unsigned int duration_ms)
{
	uint64_t span = (uint64_t)duration_ms * NS_PER_MS;
	struct bench_stats stats = { .n = 0 };
	struct bench_batch out = { .begin_ns = bench_clock_ns() };
	uint64_t ns;
	int rc;

	rc = rounds_find(side, duration_ms, &out.rounds);
	if (rc)
		return rc;
	do {
		rc = part_lead(side, out.rounds, &ns);
		if (rc)
			return rc;
		bench_stats_add(&stats, (double)ns / (double)out.rounds);
		out.end_ns = bench_clock_ns();
	} while (out.end_ns - out.begin_ns < span);
	rc = side->put(side->ctx, 0);
	if (rc)
		return rc;
	out.n = stats.n;
	out.median_ns = bench_stats_quantile(&stats, 0.5);
	out.min_ns = bench_stats_quantile(&stats, 0);
	*batch = out;
	return 0;
}

int bench_batch_follow(const struct bench_side *side)
{
	uint64_t rounds;
	uint64_t ns;
	int rc;

	for (;;) {
		rc = side->get(side->ctx, &rounds);
		if (rc || !rounds)
			return rc;
		rc = side->run(side->ctx, rounds, &ns);
		if (!rc)
			rc = side->put(side->ctx, ns);
		if (rc)
			return rc;
	}
}
