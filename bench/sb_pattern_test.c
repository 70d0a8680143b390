/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Unit tests of the streams of keys: they are what their names say.
 */
#include "bench/sb_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { N = 1 << 16, CAPACITY = 64 };

static uint32_t pick[N], again[N];
static uint32_t count[SB_PATTERN_KEYS];

static void fill(enum sb_pattern p)
{
	sb_pattern_fill(p, CAPACITY, pick, N);
	memset(count, 0, sizeof(count));
	for (int i = 0; i < N; i++) {
		assert_true(pick[i] < SB_PATTERN_KEYS);
		count[pick[i]]++;
	}
}

static void streams_can_be_repeated(void **state)
{
	(void)state;
	for (int p = 0; p < SB_PATTERNS; p++) {
		sb_pattern_fill((enum sb_pattern)p, CAPACITY, pick, N);
		sb_pattern_fill((enum sb_pattern)p, CAPACITY, again, N);
		assert_memory_equal(pick, again, sizeof(pick));
		assert_true(strlen(sb_pattern_name((enum sb_pattern)p)));
	}
}

static void uniform_has_no_favourite(void **state)
{
	(void)state;
	fill(SB_PATTERN_UNIFORM);
	for (int i = 0; i < SB_PATTERN_SET; i++)
		assert_in_range(count[i], 1, 60); /* 16 on average */
	assert_int_equal(count[SB_PATTERN_SET], 0);
}

/* Number i comes as log(1 + 1 / (i + 1)) / log(SB_PATTERN_KEYS). */
static void zipf_has_favourites(void **state)
{
	(void)state;
	fill(SB_PATTERN_ZIPF);
	assert_in_range(count[0], N / 18, N / 14); /* 6.25 % */
	assert_in_range(count[1], N / 31, N / 24); /* 3.66 % */
	assert_true(count[0] > count[1] && count[1] > count[9]);
}

static void every_second_of_a_scan_is_the_next(void **state)
{
	(void)state;
	fill(SB_PATTERN_SCAN);
	for (uint32_t i = 0; i < N / 2; i++)
		assert_int_equal(pick[2 * i + 1], i);
	assert_true(count[0] > N / 40);
}

static void a_loop_is_a_little_too_long(void **state)
{
	const uint32_t len = CAPACITY + CAPACITY / 8 + 1;

	(void)state;
	fill(SB_PATTERN_LOOP);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(pick[i], i % len);
}

static void a_loop_has_an_end(void **state)
{
	(void)state;
	sb_pattern_fill(SB_PATTERN_LOOP, SB_PATTERN_KEYS, pick, N);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(pick[i], i % SB_PATTERN_KEYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_can_be_repeated),
		cmocka_unit_test(uniform_has_no_favourite),
		cmocka_unit_test(zipf_has_favourites),
		cmocka_unit_test(every_second_of_a_scan_is_the_next),
		cmocka_unit_test(a_loop_is_a_little_too_long),
		cmocka_unit_test(a_loop_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
