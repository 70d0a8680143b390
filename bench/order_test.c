/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Unit tests of orders and size lists: what a user or a driver may write, and
 * the figure made of a measured time.
 */
#include "bench/order.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/sizes.h"

static void sizes_are_read(void **state)
{
	struct bench_sizes sizes;

	(void)state;
	assert_int_equal(bench_sizes_parse(&sizes, "0,8,4K,2m,1G"), 0);
	assert_int_equal(sizes.n, 5);
	assert_int_equal(sizes.byte[0], 0);
	assert_int_equal(sizes.byte[2], 4096);
	assert_int_equal(sizes.byte[3], 2 << 20);
	assert_int_equal(bench_sizes_largest(&sizes), 1 << 30);
}

static void bad_sizes_change_nothing(void **state)
{
	static const char *const bad[] = {
		"",
		",",
		"8,",
		"8,,8",
		"8x",
		"-1",
		"4KB",
		"1048577K",
		"2048M",
		"2G",
		"99999999999999999999",
	};
	struct bench_sizes sizes = { .n = 42 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(bench_sizes_parse(&sizes, bad[i]), -EINVAL);
	assert_int_equal(sizes.n, 42);
}

static void orders_are_read(void **state)
{
	struct bench_order order;

	(void)state;
	assert_int_equal(bench_order_parse(&order, "bw 4K 20"), 0);
	assert_int_equal(order.kind, BENCH_BW);
	assert_int_equal(order.size, 4096);
	assert_int_equal(order.ms, 20);
}

static void bad_orders_change_nothing(void **state)
{
	static const char *const bad[] = {
		"",	     "lat",	  "lat 8",	 "lat 8 0",
		"lat 8 x",   "fast 8 20", "lat 8 20 1",	 "lat 8,9 20",
		"lat -8 20", "la 8 20",	  "lat 8 60001",
	};
	struct bench_order order = { .size = 42 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(bench_order_parse(&order, bad[i]), -EINVAL);
	assert_int_equal(order.size, 42);
}

static void every_kind_is_found_by_its_name(void **state)
{
	enum bench_kind found;
	const char *name;
	int kind;

	(void)state;
	for (kind = 0; kind < BENCH_KINDS; kind++) {
		name = bench_kind_name(kind);
		found = BENCH_KINDS;
		assert_int_equal(bench_kind_find(&found, name, strlen(name)),
				 0);
		assert_int_equal(found, kind);
	}
}

static void windows_are_bounded(void **state)
{
	struct bench_order order = { .kind = BENCH_LAT, .size = 8 };

	(void)state;
	assert_int_equal(bench_order_window(&order), 1);
	order.kind = BENCH_RATE;
	assert_int_equal(bench_order_window(&order), 64);
	order.kind = BENCH_BW;
	order.size = 1 << 20;
	assert_int_equal(bench_order_window(&order), 8);
	order.size = 64 << 20;
	assert_int_equal(bench_order_window(&order), 4);
}

static void figures_are_right(void **state)
{
	struct bench_order order = { .kind = BENCH_LAT, .size = 8 };

	(void)state;
	/* 200 ns there and back are 0.1 us one way. */
	assert_true(fabs(bench_order_value(&order, 200) - 0.1) < 1e-9);
	order.kind = BENCH_RATE;
	/* 64 messages in 6400 ns are 10 millions a second. */
	assert_true(fabs(bench_order_value(&order, 6400) - 10) < 1e-9);
	order.kind = BENCH_BW;
	order.size = 1 << 20;
	/* 8 MiB in 1 ms are 8388.608 MB/s. */
	assert_true(fabs(bench_order_value(&order, 1e6) - 8388.608) < 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_read),
		cmocka_unit_test(bad_sizes_change_nothing),
		cmocka_unit_test(orders_are_read),
		cmocka_unit_test(bad_orders_change_nothing),
		cmocka_unit_test(every_kind_is_found_by_its_name),
		cmocka_unit_test(windows_are_bounded),
		cmocka_unit_test(figures_are_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
