/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Unit tests of the benchmarks' arithmetic: what is reported must be right.
 */
#include "bench/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_near(double value, double want)
{
	assert_true(fabs(value - want) < 1e-9);
}

static void empty_has_no_median(void **state)
{
	struct bench_stats stats = { .n = 0 };

	(void)state;
	assert_true(isnan(bench_stats_quantile(&stats, 0.5)));
}

static void one_sample_is_every_quantile(void **state)
{
	struct bench_stats stats = { .n = 0 };

	(void)state;
	bench_stats_add(&stats, 7);
	assert_near(bench_stats_quantile(&stats, 0), 7);
	assert_near(bench_stats_quantile(&stats, 0.5), 7);
	assert_near(bench_stats_quantile(&stats, 1), 7);
}

static void order_does_not_matter(void **state)
{
	static const double odd[] = { 9, 1, 5, 3, 7 };
	struct bench_stats stats = { .n = 0 };
	size_t i;

	(void)state;
	for (i = 0; i < 5; i++)
		bench_stats_add(&stats, odd[i]);
	assert_near(bench_stats_quantile(&stats, 0.5), 5);
	assert_near(bench_stats_quantile(&stats, 0), 1);
	assert_near(bench_stats_quantile(&stats, 1), 9);
	assert_near(bench_stats_quantile(&stats, 0.25), 3);
	bench_stats_add(&stats, 6);
	assert_near(bench_stats_quantile(&stats, 0.5), 5.5);
}

static void full_set_ignores_more(void **state)
{
	struct bench_stats stats = { .n = 0 };
	size_t i;

	(void)state;
	for (i = 0; i < BENCH_STATS_MAX; i++)
		bench_stats_add(&stats, 1);
	bench_stats_add(&stats, 1000);
	assert_int_equal(stats.n, BENCH_STATS_MAX);
	assert_near(bench_stats_quantile(&stats, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_has_no_median),
		cmocka_unit_test(one_sample_is_every_quantile),
		cmocka_unit_test(order_does_not_matter),
		cmocka_unit_test(full_set_ignores_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
