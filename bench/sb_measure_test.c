/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Unit tests of how shrimp-bench measures.
 */
#include "bench/sb_measure.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/clock.h"

static struct sb_set set[4];

static int set_up(void **state)
{
	(void)state;
	memset(set, 0, sizeof(set));
	return 0;
}

static void assert_near(double value, double want, double by)
{
	if (!(fabs(value - want) <= by))
		fail_msg("%g, wanted %g within %g", value, want, by);
}

/* ---- sets ---- */

static void empty_set_has_no_quantile(void **state)
{
	(void)state;
	assert_true(isnan(sb_set_quantile(&set[0], 0)));
	assert_true(isnan(sb_set_quantile(&set[0], 0.5)));
	assert_true(isnan(sb_set_quantile(&set[0], 1)));
}

static void extremes_survive_thinning(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++)
		sb_set_add(&set[0], i == 77777 ? -5 : i == 55555 ? 1e9 : 10);
	assert_int_equal(set[0].n, 100000);
	assert_near(sb_set_quantile(&set[0], 0), -5, 0);
	assert_near(sb_set_quantile(&set[0], 1), 1e9, 0);
	assert_near(sb_set_quantile(&set[0], 0.5), 10, 0);
}

/* A rising line keeps its quantiles: what is dropped is spread evenly. */
static void thinning_is_even(void **state)
{
	const int n = 50 * BENCH_STATS_MAX + 7;

	(void)state;
	for (int i = 0; i < n; i++)
		sb_set_add(&set[0], (double)i / n);
	assert_true(set[0].kept.n > BENCH_STATS_MAX / 2);
	assert_true(set[0].kept.n <= BENCH_STATS_MAX);
	for (double q = 0.05; q < 1; q += 0.05)
		assert_near(sb_set_quantile(&set[0], q), q, 0.01);
}

/* What is slow at each 64th turn is so at one of 64 that are kept. */
static void thinning_keeps_no_step(void **state)
{
	const int n = 50 * BENCH_STATS_MAX;
	unsigned int slow = 0;

	(void)state;
	for (int i = 0; i < n; i++)
		sb_set_add(&set[0], i % 64 ? 1 : 1000);
	assert_near(sb_set_quantile(&set[0], 0.5), 1, 0);
	for (size_t i = 0; i < set[0].kept.n; i++)
		slow += set[0].kept.value[i] > 1;
	assert_in_range(slow, set[0].kept.n / 128, set[0].kept.n / 32);
}

static void join_adds_counts_and_extremes(void **state)
{
	(void)state;
	sb_set_add(&set[0], 5);
	for (int i = 0; i < 5000; i++)
		sb_set_add(&set[1], i == 4999 ? 1 : 9);
	sb_set_join(&set[0], &set[1]);
	assert_int_equal(set[0].n, 5001);
	assert_near(sb_set_quantile(&set[0], 0), 1, 0);
	assert_near(sb_set_quantile(&set[0], 1), 9, 0);
	assert_near(sb_set_quantile(&set[0], 0.5), 9, 0);
	assert_int_equal(set[1].n, 5000);
}

static void join_with_an_empty_set(void **state)
{
	(void)state;
	sb_set_join(&set[0], &set[1]);
	assert_int_equal(set[0].n, 0);
	sb_set_add(&set[1], 3);
	sb_set_join(&set[0], &set[1]);
	sb_set_join(&set[0], &set[2]);
	assert_int_equal(set[0].n, 1);
	assert_near(sb_set_quantile(&set[0], 0), 3, 0);
	assert_near(sb_set_quantile(&set[0], 1), 3, 0);
}

/* ---- measuring ---- */

/* A task that takes its time, and what it saw. */
struct sleeper {
	uint64_t ns;	/* of an operation */
	uint64_t calls; /* all */
	uint64_t most;	/* operations of a call */
	int fail_at;	/* call that fails; 0: none */
	char *log;	/* its name at each call, or NULL */
	char name;	/* written there */
};

static int sleeper_run(void *ctx, uint64_t n, struct sb_set *own)
{
	struct sleeper *s = ctx;
	uint64_t until = bench_clock_ns() + n * s->ns;

	(void)own;
	s->calls++;
	if (n > s->most)
		s->most = n;
	if (s->log && strlen(s->log) < 200)
		strncat(s->log, &s->name, 1);
	while (bench_clock_ns() < until)
		;
	return s->calls == (uint64_t)s->fail_at ? -EIO : 0;
}

static struct sb_task task_of(struct sleeper *s, struct sb_set *own)
{
	return (struct sb_task){ .run = sleeper_run, .ctx = s, .set = own };
}

static const struct sb_plan plan = { .seconds = 0.004,
				     .warm_up = 0.001,
				     .repeats = 4 };

static void fast_operations_are_timed_in_blocks(void **state)
{
	struct sleeper s = { .ns = 50 };
	struct sb_task t = task_of(&s, &set[0]);

	(void)state;
	assert_int_equal(sb_measure(&plan, &t, 1), 0);
	assert_true(t.n * 50 >= SB_BLOCK_NS / 4);
	assert_true(set[0].n >= SB_LEAST);
	/* others may have had the core: the fastest block cannot lie */
	assert_true(sb_set_quantile(&set[0], 0) >= 50);
	assert_true(sb_set_quantile(&set[0], 0) < 1000);
}

static void slow_operations_get_their_samples(void **state)
{
	struct sleeper s = { .ns = 10000000 };
	struct sb_task t = task_of(&s, &set[0]);

	(void)state;
	assert_int_equal(sb_measure(&plan, &t, 1), 0);
	assert_int_equal(t.n, 1);
	assert_int_equal(set[0].n, SB_LEAST);
	/* and one to warm up */
	assert_int_equal(s.calls, SB_LEAST + 1);
}

static void few_repeats_still_give_samples(void **state)
{
	const struct sb_plan once = { .seconds = 0, .repeats = 1 };
	struct sleeper s = { .ns = 100000 };
	struct sb_task t = task_of(&s, &set[0]);

	(void)state;
	assert_int_equal(sb_measure(&once, &t, 1), 0);
	assert_int_equal(set[0].n, SB_LEAST);
}

/* Each turn of one is followed by one of the other. */
static void tasks_take_turns(void **state)
{
	char log[256] = "";
	struct sleeper a = { .ns = 3000000, .log = log, .name = 'a' };
	struct sleeper b = { .ns = 3000000, .log = log, .name = 'b' };
	struct sb_task t[2] = { task_of(&a, &set[0]), task_of(&b, &set[1]) };

	(void)state;
	assert_int_equal(sb_measure(&plan, t, 2), 0);
	assert_memory_equal(log, "ababab", 6);
}

static void most_bounds_a_call(void **state)
{
	struct sleeper s = { .ns = 10 };
	struct sb_task t = task_of(&s, &set[0]);

	(void)state;
	t.most = 3;
	assert_int_equal(sb_measure(&plan, &t, 1), 0);
	assert_true(s.most <= 3);
}

static void failure_ends_it(void **state)
{
	struct sleeper a = { .ns = 1000, .fail_at = 40 };
	struct sleeper b = { .ns = 1000 };
	struct sb_task t[2] = { task_of(&a, &set[0]), task_of(&b, &set[1]) };

	(void)state;
	assert_int_equal(sb_measure(&plan, t, 2), -EIO);
	assert_int_equal(a.calls, 40);
}

static void failure_while_warming_up_ends_it(void **state)
{
	struct sleeper a = { .ns = 1000, .fail_at = 1 };
	struct sleeper b = { .ns = 1000 };
	struct sb_task t[2] = { task_of(&a, &set[0]), task_of(&b, &set[1]) };

	(void)state;
	assert_int_equal(sb_measure(&plan, t, 2), -EIO);
	assert_int_equal(b.calls, 0);
}

/* ---- tasks that time themselves ---- */

static int laps_run(void *ctx, uint64_t n, struct sb_set *own)
{
	(void)ctx;
	for (uint64_t i = 0; i < n; i++) {
		sb_set_add(&own[0], 1);
		sb_set_add(&own[1], 2);
	}
	return 0;
}

static void laps_go_to_their_sets(void **state)
{
	struct sb_task t = { .run = laps_run, .set = set, .laps = 2 };

	(void)state;
	/* what the warm-up finds is emptied */
	sb_set_add(&set[0], 99);
	assert_int_equal(sb_measure(&plan, &t, 1), 0);
	assert_true(set[0].n >= SB_LEAST);
	assert_int_equal(set[0].n, set[1].n);
	assert_near(sb_set_quantile(&set[0], 1), 1, 0);
	assert_near(sb_set_quantile(&set[1], 0), 2, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(empty_set_has_no_quantile, set_up),
		cmocka_unit_test_setup(extremes_survive_thinning, set_up),
		cmocka_unit_test_setup(thinning_is_even, set_up),
		cmocka_unit_test_setup(thinning_keeps_no_step, set_up),
		cmocka_unit_test_setup(join_adds_counts_and_extremes, set_up),
		cmocka_unit_test_setup(join_with_an_empty_set, set_up),
		cmocka_unit_test_setup(fast_operations_are_timed_in_blocks,
				       set_up),
		cmocka_unit_test_setup(slow_operations_get_their_samples,
				       set_up),
		cmocka_unit_test_setup(few_repeats_still_give_samples, set_up),
		cmocka_unit_test_setup(tasks_take_turns, set_up),
		cmocka_unit_test_setup(most_bounds_a_call, set_up),
		cmocka_unit_test_setup(failure_ends_it, set_up),
		cmocka_unit_test_setup(failure_while_warming_up_ends_it,
				       set_up),
		cmocka_unit_test_setup(laps_go_to_their_sets, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
