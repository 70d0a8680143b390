/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * How shrimp-bench measures.
 */
#include "bench/sb_measure.h"

#include <math.h>
#include <string.h>

#include "bench/clock.h"

enum { N_MOST = 1 << 28 }; /* operations of a call, where nobody says */

/* ---- samples ---- */

/* A number of the set's own sequence (xorshift64). */
static uint64_t next(struct sb_set *set)
{
	uint64_t x = set->state ? set->state : UINT64_C(88172645463325252);

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	set->state = x;
	return x;
}

/* Keeps one of each two neighbours. */
static void drop_half(struct sb_set *set)
{
	size_t n = set->kept.n / 2;

	for (size_t i = 0; i < n; i++)
		set->kept.value[i] = set->kept.value[2 * i + next(set) % 2];
	set->kept.n = n;
	set->stride *= 2;
	set->at = 0;
}

void sb_set_add(struct sb_set *set, double value)
{
	if (!set->stride)
		set->stride = 1;
	if (!set->n || value < set->min)
		set->min = value;
	if (!set->n || value > set->max)
		set->max = value;
	if (set->kept.n == BENCH_STATS_MAX)
		drop_half(set);
	set->n++;
	if (!set->at)
		set->pick = next(set) % set->stride;
	if (set->at == set->pick)
		bench_stats_add(&set->kept, value);
	set->at = (set->at + 1) % set->stride;
}

double sb_set_quantile(struct sb_set *set, double q)
{
	if (!set->n)
		return NAN;
	if (q <= 0)
		return set->min;
	if (q >= 1)
		return set->max;
	return bench_stats_quantile(&set->kept, q);
}

void sb_set_join(struct sb_set *set, const struct sb_set *from)
{
	uint64_t n = set->n + from->n;

	for (size_t i = 0; i < from->kept.n; i++)
		sb_set_add(set, from->kept.value[i]);
	if (!from->n)
		return;
	if (from->min < set->min)
		set->min = from->min;
	if (from->max > set->max)
		set->max = from->max;
	set->n = n;
}

/* ---- tasks ---- */

static unsigned int sets_of(const struct sb_task *t)
{
	return t->laps ? t->laps : 1;
}

/* One call; its time goes to t->spent, and to the set if the task is not
 * one that times itself. */
static int call(struct sb_task *t, uint64_t n)
{
	uint64_t begin = bench_clock_ns(), ns;
	int ret = t->run(t->ctx, n, t->set);

	ns = bench_clock_ns() - begin;
	t->spent += ns;
	if (!ret && !t->laps)
		sb_set_add(t->set, (double)ns / (double)n);
	return ret;
}

static uint64_t most(const struct sb_task *t)
{
	return t->most ? t->most : N_MOST;
}

/*
 * Doubles the operations of a call until it is long enough, then goes on
 * until the time is over. What was sampled is thrown away.
 */
static int warm_up(struct sb_task *t, uint64_t ns)
{
	uint64_t least = t->block_ns ? t->block_ns : SB_BLOCK_NS;
	uint64_t before;
	int ret;

	t->n = 1;
	t->spent = 0;
	do {
		before = t->spent;
		ret = call(t, t->n);
		if (ret)
			return ret;
		if (t->spent - before < least && 2 * t->n <= most(t))
			t->n *= 2;
		else if (t->spent >= ns)
			break;
	} while (1);
	memset(t->set, 0, sets_of(t) * sizeof(*t->set));
	t->spent = 0;
	return 0;
}

/* Its turn: until it has had its share, at least once while it has little. */
static int turn(struct sb_task *t, double until)
{
	int ret = 0;

	if (t->set->n < SB_LEAST)
		ret = call(t, t->n);
	while (!ret && (double)t->spent < until)
		ret = call(t, t->n);
	return ret;
}

/* True if a task, none of whose calls failed, still lacks samples. */
static int lacking(const struct sb_task *task, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (task[i].set->n < SB_LEAST)
			return 1;
	return 0;
}

int sb_measure(const struct sb_plan *plan, struct sb_task *task, size_t n)
{
	double share = plan->seconds * 1e9 / plan->repeats;
	unsigned int turns = plan->repeats;
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++)
		ret = warm_up(&task[i], (uint64_t)(plan->warm_up * 1e9));
	if (turns < SB_LEAST && !ret)
		turns = SB_LEAST;
	for (unsigned int r = 1; r <= turns && !ret; r++) {
		unsigned int part = r < plan->repeats ? r : plan->repeats;

		if (r > plan->repeats && !lacking(task, n))
			break;
		for (size_t i = 0; i < n && !ret; i++)
			ret = turn(&task[i], share * part);
	}
	return ret;
}
