/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Slabs and names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/slab.h"

enum { MANY = 1000 };

static void slab_objects_are_distinct(void **state)
{
	struct shrimp_slab s = { .size = 24 };
	uint8_t *p[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		p[i] = shrimp_slab_get(&s);
		assert_non_null(p[i]);
		memset(p[i], i & 0xff, s.size);
	}
	for (int i = 0; i < MANY; i++)
		for (size_t k = 0; k < s.size; k++)
			assert_int_equal(p[i][k], i & 0xff);
	shrimp_slab_fini(&s);
}

static void slab_reuses_what_came_back(void **state)
{
	struct shrimp_slab s = { .size = 64 };
	void *a = shrimp_slab_get(&s);

	(void)state;
	assert_non_null(a);
	shrimp_slab_put(&s, a);
	assert_ptr_equal(shrimp_slab_get(&s), a);
	shrimp_slab_fini(&s);
	assert_null(s.blocks);
}

static void names_find_their_object(void **state)
{
	struct shrimp_names n = { 0 };
	uint64_t name[MANY];
	int obj[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		name[i] = shrimp_names_add(&n, &obj[i]);
		assert_true(name[i] != 0);
	}
	for (int i = 0; i < MANY; i++)
		assert_ptr_equal(shrimp_names_find(&n, name[i]), &obj[i]);
	shrimp_names_fini(&n);
}

static void stale_and_invented_names_find_nothing(void **state)
{
	struct shrimp_names n = { 0 };
	int a, b;
	uint64_t old = shrimp_names_add(&n, &a);
	uint64_t now;

	(void)state;
	shrimp_names_del(&n, old);
	assert_null(shrimp_names_find(&n, old));
	now = shrimp_names_add(&n, &b);
	assert_true(now != old);
	assert_null(shrimp_names_find(&n, old));
	assert_ptr_equal(shrimp_names_find(&n, now), &b);
	assert_null(shrimp_names_find(&n, 0));
	assert_null(shrimp_names_find(&n, UINT64_MAX));
	assert_null(shrimp_names_find(&n, now + 1));
	shrimp_names_fini(&n);
}

static void generation_never_becomes_zero(void **state)
{
	struct shrimp_names n = { 0 };
	int a;

	(void)state;
	/* one slot over and over: each name differs from the one before */
	for (uint64_t i = 0, last = 0; i < 100000; i++) {
		uint64_t x = shrimp_names_add(&n, &a);

		assert_true(x >> 32 != 0);
		assert_true(x != last);
		shrimp_names_del(&n, x);
		last = x;
	}
	shrimp_names_fini(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slab_objects_are_distinct),
		cmocka_unit_test(slab_reuses_what_came_back),
		cmocka_unit_test(names_find_their_object),
		cmocka_unit_test(stale_and_invented_names_find_nothing),
		cmocka_unit_test(generation_never_becomes_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
