/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One timed batch between a leader and a follower.
 *
 * Before each part the leader puts the number of rounds, after it the follower
 * puts the time it spent on preparing data and how often it lost its core;
 * 0 rounds ends the batch.
 */
#include "bench/batch.h"

#include <sys/resource.h>

#include "bench/clock.h"
#include "bench/stats.h"

enum {
	PARTS = 40, /* parts of a batch */
	NS_PER_MS = 1000000,
	WARM_SHARE = 4,	      /* a quarter of the time warms up */
	ROUNDS_MAX = 1 << 24, /* bound of what is agreed on */
};

/* One part as the leader saw it. */
struct part {
	uint64_t ns;	   /* without anybody's preparation of data */
	uint64_t switches; /* how often a side lost its core */
};

/* How often the kernel has taken the core from this thread. */
static uint64_t switches_now(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage))
		return 0;
	return (uint64_t)usage.ru_nivcsw;
}

static int part_lead(const struct bench_side *side, uint64_t rounds,
		     struct part *part)
{
	uint64_t before;
	uint64_t whole;
	uint64_t peer_ns;
	uint64_t peer_switches;
	int rc;

	rc = side->put(side->ctx, rounds);
	before = switches_now();
	if (!rc)
		rc = side->run(side->ctx, rounds, &whole);
	part->switches = switches_now() - before;
	if (!rc)
		rc = side->get(side->ctx, &peer_ns);
	if (!rc)
		rc = side->get(side->ctx, &peer_switches);
	if (rc)
		return rc;
	part->ns = whole > peer_ns ? whole - peer_ns : 1;
	part->switches += peer_switches;
	return 0;
}

static int part_follow(const struct bench_side *side, uint64_t rounds)
{
	uint64_t before = switches_now();
	uint64_t ns;
	int rc;

	rc = side->run(side->ctx, rounds, &ns);
	if (!rc)
		rc = side->put(side->ctx, ns);
	if (!rc)
		rc = side->put(side->ctx, switches_now() - before);
	return rc;
}

/*
 * Doubles the number of rounds until they fill the time for warming up; sets
 * *rounds to what fits into one part. The fastest of these runs counts: the
 * last one may have been disturbed.
 */
static int rounds_find(const struct bench_side *side, unsigned int duration_ms,
		       uint64_t *rounds)
{
	double span = (double)duration_ms * NS_PER_MS;
	uint64_t begin = bench_clock_ns();
	uint64_t last = begin;
	uint64_t now;
	struct part part;
	double round_ns = span;
	uint64_t n;
	int rc;

	for (n = 1; n < ROUNDS_MAX; n *= 2) {
		rc = part_lead(side, n, &part);
		if (rc)
			return rc;
		now = bench_clock_ns();
		if ((double)(now - last) / (double)n < round_ns)
			round_ns = (double)(now - last) / (double)n;
		last = now;
		if ((double)(now - begin) >= span / WARM_SHARE)
			break;
	}
	span -= span / WARM_SHARE;
	*rounds = (uint64_t)(span / PARTS / round_ns) + 1;
	return 0;
}

/*
 * Runs parts until the time is over; sorts them into the two sets. A part that
 * is much too short shows that the warming up was disturbed: begins anew with
 * more rounds.
 */
static int parts_run(const struct bench_side *side, uint64_t span,
		     struct bench_batch *batch, struct bench_stats *clean,
		     struct bench_stats *all)
{
	uint64_t until = batch->begin_ns + span;
	uint64_t last = bench_clock_ns();
	struct part part;
	double round_ns;
	int rc;

	for (; !all->n || last < until; last = batch->end_ns) {
		rc = part_lead(side, batch->rounds, &part);
		if (rc)
			return rc;
		batch->end_ns = bench_clock_ns();
		if (batch->end_ns < until && batch->rounds < ROUNDS_MAX &&
		    batch->end_ns - last < span / PARTS / 2) {
			batch->rounds *= 2;
			clean->n = all->n = 0;
			continue;
		}
		round_ns = (double)part.ns / (double)batch->rounds;
		bench_stats_add(all, round_ns);
		if (!part.switches)
			bench_stats_add(clean, round_ns);
	}
	return side->put(side->ctx, 0);
}

int bench_batch_lead(struct bench_batch *batch, const struct bench_side *side,
		     unsigned int duration_ms)
{
	struct bench_batch out = { .begin_ns = bench_clock_ns() };
	struct bench_stats clean = { .n = 0 };
	struct bench_stats all = { .n = 0 };
	struct bench_stats *used;
	int rc;

	rc = rounds_find(side, duration_ms, &out.rounds);
	if (!rc)
		rc = parts_run(side, (uint64_t)duration_ms * NS_PER_MS, &out,
			       &clean, &all);
	if (rc)
		return rc;
	used = clean.n ? &clean : &all;
	out.clean = clean.n;
	out.parts = all.n;
	out.median_ns = bench_stats_quantile(used, 0.5);
	out.min_ns = bench_stats_quantile(used, 0);
	*batch = out;
	return 0;
}

int bench_batch_follow(const struct bench_side *side)
{
	uint64_t rounds;
	int rc;

	for (;;) {
		rc = side->get(side->ctx, &rounds);
		if (rc || !rounds)
			return rc;
		rc = part_follow(side, rounds);
		if (rc)
			return rc;
	}
}
