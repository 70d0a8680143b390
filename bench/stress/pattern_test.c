/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Unit tests of the streams: any part is what it is in the whole, and a wrong
 * byte is told from a late, an old and an absent one.
 */
#include "bench/stress/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { N = 300, STEP = 5 };

static unsigned char whole[N], part[N + 16];

static struct stress_pat stream(uint64_t count)
{
	return (struct stress_pat){ .tag = stress_tag(STEP, count) };
}

static void mix_has_an_inverse(void **state)
{
	uint64_t chance = 1;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint64_t x = stress_draw(&chance);

		assert_int_equal(stress_unmix(stress_mix(x)), x);
	}
	assert_int_equal(stress_unmix(stress_mix(0)), 0);
}

static void parts_of_a_stream(void **state)
{
	(void)state;
	stress_write(whole, N, stream(1));
	for (size_t at = 0; at < 20; at++) {
		for (size_t len = 1; len < N - at; len += 7) {
			memset(part, 0, sizeof(part));
			stress_write(part + 3, len, stress_at(stream(1), at));
			assert_memory_equal(part + 3, whole + at, len);
			assert_int_equal(part[2], 0);
			assert_int_equal(part[3 + len], 0);
			assert_true(stress_same(part + 3, len,
						stress_at(stream(1), at)));
		}
	}
}

static void each_wrong_byte_is_seen(void **state)
{
	struct stress_diff d;

	(void)state;
	for (size_t i = 0; i < N; i++) {
		stress_write(whole, N, stream(2));
		whole[i] ^= 1;
		assert_false(stress_same(whole, N, stream(2)));
		assert_true(stress_diff(whole, N, stream(2), &d));
		assert_int_equal(d.at, i);
		assert_int_equal(d.wrong, 1);
	}
	stress_write(whole, N, stream(2));
	assert_false(stress_diff(whole, N, stream(2), &d));
}

/* What @pat was to be, and is not: the explanation has @word. */
static void explained(const unsigned char *p, struct stress_pat pat,
		      const char *word)
{
	char text[STRESS_TEXT];
	struct stress_diff d;

	assert_true(stress_diff(p, 200, pat, &d));
	stress_explain(text, "bytes", p, 200, pat, &d);
	assert_non_null(strstr(text, word));
}

static void where_it_belongs(void **state)
{
	(void)state;
	stress_write(whole, N, stream(3));
	explained(whole, stream(4), "stale: of step 5, stream 3, in its place");
	explained(whole + 8, stream(4), "stale: of step 5, stream 3, and mis");
	explained(whole + 1, stream(3), "misplaced: of this stream, 1 bytes");
	stress_write(whole + 1, N - 1, stream(3));
	explained(whole, stream(3), "misplaced: of this stream, -1 bytes");
	stress_write(whole, 96, stream(4));
	explained(whole, stream(4), "(torn)");
	memset(whole, 0, N);
	explained(whole, stream(3), "(zeros)");
	memset(whole, 0xee, N);
	explained(whole, stream(3), "of no stream");
}

static void zeros_are_a_stream(void **state)
{
	struct stress_pat zero = { .tag = 0, .off = 77 };

	(void)state;
	memset(whole, 0, N);
	assert_true(stress_same(whole, N, zero));
	whole[N - 1] = 1;
	assert_false(stress_same(whole, N, zero));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mix_has_an_inverse),
		cmocka_unit_test(parts_of_a_stream),
		cmocka_unit_test(each_wrong_byte_is_seen),
		cmocka_unit_test(where_it_belongs),
		cmocka_unit_test(zeros_are_a_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
