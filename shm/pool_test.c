/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The chunk pool: geometry from hostile numbers, bounds of chunk numbers,
 * order of release, and a model of two queues under random operations.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shm/pool.h"
#include "shm/rng_kit.h"

enum {
	NSMALL = 12,	/* chunks of the test pool */
	NLARGE = 5,	/* chunks of the test pool */
	STEPS = 100000, /* of the model test */
};

#define LARGE_OFF ((uint64_t)NSMALL * RNIC_POOL_SMALL)
#define BYTES	  (LARGE_OFF + (uint64_t)NLARGE * RNIC_POOL_LARGE)

/* ---- geometry ---- */

static void geometry_counts_chunks(void **state)
{
	struct rnic_pool_geom g;

	(void)state;
	assert_int_equal(rnic_pool_geom_init(&g, BYTES, LARGE_OFF), 0);
	assert_int_equal(g.bytes, BYTES);
	assert_int_equal(g.large_off, LARGE_OFF);
	assert_int_equal(g.nsmall, NSMALL);
	assert_int_equal(g.nlarge, NLARGE);
	assert_int_equal(rnic_pool_geom_init(&g, RNIC_POOL_MAX, 0), 0);
	assert_int_equal(g.nsmall, 0);
	assert_int_equal(g.nlarge, RNIC_POOL_MAX / RNIC_POOL_LARGE);
	assert_int_equal(rnic_pool_geom_init(&g, RNIC_POOL_MAX, RNIC_POOL_MAX),
			 0);
	assert_int_equal(g.nsmall, RNIC_POOL_MAX / RNIC_POOL_SMALL);
	assert_int_equal(g.nlarge, 0);
}

static void nonsense_is_refused(void **state)
{
	static const uint64_t bad[][2] = {
		{ 0, 0 },
		{ RNIC_POOL_MAX + RNIC_POOL_LARGE, 0 },
		{ UINT64_MAX, 0 },
		{ UINT64_MAX - UINT64_MAX % RNIC_POOL_LARGE, 0 },
		{ RNIC_POOL_LARGE, 2 * RNIC_POOL_LARGE },
		{ RNIC_POOL_LARGE, UINT64_MAX - RNIC_POOL_LARGE + 1 },
		{ RNIC_POOL_LARGE + 1, 0 },
		{ RNIC_POOL_LARGE + RNIC_POOL_SMALL, RNIC_POOL_SMALL + 1 },
		{ RNIC_POOL_LARGE, RNIC_POOL_SMALL },
		{ RNIC_POOL_SMALL, RNIC_POOL_SMALL / 2 },
	};
	struct rnic_pool_geom g, before;
	struct rnic_pool p;
	size_t i;

	(void)state;
	memset(&g, 0x5a, sizeof(g));
	before = g;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(rnic_pool_geom_init(&g, bad[i][0], bad[i][1]),
				 -EINVAL);
		assert_memory_equal(&g, &before, sizeof(g));
		assert_int_equal(rnic_pool_init(&p, bad[i][0], bad[i][1]),
				 -EINVAL);
	}
}

static void locate_bounds_chunk_and_length(void **state)
{
	struct rnic_pool_geom g;
	uint64_t off = 1;

	(void)state;
	assert_int_equal(rnic_pool_geom_init(&g, BYTES, LARGE_OFF), 0);
	assert_true(rnic_pool_locate(&g, 0, RNIC_POOL_SMALL, &off));
	assert_int_equal(off, 0);
	assert_true(rnic_pool_locate(&g, NSMALL - 1, 0, &off));
	assert_int_equal(off, LARGE_OFF - RNIC_POOL_SMALL);
	assert_true(rnic_pool_locate(&g, NSMALL, RNIC_POOL_LARGE, &off));
	assert_int_equal(off, LARGE_OFF);
	assert_true(rnic_pool_locate(&g, NSMALL + NLARGE - 1, 1, &off));
	assert_int_equal(off, BYTES - RNIC_POOL_LARGE);
	off = 77;
	assert_false(rnic_pool_locate(&g, 0, RNIC_POOL_SMALL + 1, &off));
	assert_false(rnic_pool_locate(&g, 0, UINT32_MAX, &off));
	assert_false(rnic_pool_locate(&g, NSMALL, RNIC_POOL_LARGE + 1, &off));
	assert_false(rnic_pool_locate(&g, NSMALL + NLARGE, 1, &off));
	assert_false(rnic_pool_locate(&g, RNIC_CHUNK_NONE, 0, &off));
	assert_int_equal(off, 77);
}

static void zeroed_geometry_has_no_chunk(void **state)
{
	struct rnic_pool_geom g = { .bytes = 0 };
	uint64_t off = 77;

	(void)state;
	assert_false(rnic_pool_locate(&g, 0, 0, &off));
	assert_false(rnic_pool_locate(&g, RNIC_CHUNK_NONE, 0, &off));
	assert_int_equal(off, 77);
}

/* ---- queues ---- */

static void chunks_come_in_order_of_release(void **state)
{
	struct rnic_pool p;
	uint32_t i;

	(void)state;
	assert_int_equal(rnic_pool_init(&p, BYTES, LARGE_OFF), 0);
	assert_int_equal(rnic_pool_free_count(&p, false), NSMALL);
	assert_int_equal(rnic_pool_free_count(&p, true), NLARGE);
	for (i = 0; i < NSMALL; i++)
		assert_int_equal(rnic_pool_get(&p, false), i);
	assert_int_equal(rnic_pool_get(&p, false), RNIC_CHUNK_NONE);
	assert_int_equal(rnic_pool_free_count(&p, false), 0);
	rnic_pool_put(&p, 7);
	rnic_pool_put(&p, 2);
	assert_int_equal(rnic_pool_get(&p, false), 7);
	rnic_pool_put(&p, 7);
	assert_int_equal(rnic_pool_get(&p, false), 2);
	assert_int_equal(rnic_pool_get(&p, false), 7);
	assert_int_equal(rnic_pool_get(&p, false), RNIC_CHUNK_NONE);
	for (i = 0; i < NLARGE; i++)
		assert_int_equal(rnic_pool_get(&p, true), NSMALL + i);
	assert_int_equal(rnic_pool_get(&p, true), RNIC_CHUNK_NONE);
	rnic_pool_fini(&p);
	rnic_pool_fini(&p);
}

static void a_pool_may_lack_a_size(void **state)
{
	struct rnic_pool p;

	(void)state;
	assert_int_equal(rnic_pool_init(&p, RNIC_POOL_LARGE, 0), 0);
	assert_int_equal(rnic_pool_get(&p, false), RNIC_CHUNK_NONE);
	assert_int_equal(rnic_pool_get(&p, true), 0);
	rnic_pool_put(&p, 0);
	assert_int_equal(rnic_pool_free_count(&p, true), 1);
	rnic_pool_fini(&p);
}

static void zeroed_memory_is_a_finished_pool(void **state)
{
	struct rnic_pool p = { .next = NULL };

	(void)state;
	assert_int_equal(rnic_pool_get(&p, false), RNIC_CHUNK_NONE);
	assert_int_equal(rnic_pool_get(&p, true), RNIC_CHUNK_NONE);
	rnic_pool_fini(&p);
}

/* ---- model ---- */

/* The free chunks of one size, longest free first; those out in any order. */
struct model {
	uint32_t free[NSMALL]; /* by order of release */
	uint32_t out[NSMALL];  /* taken */
	size_t nfree;	       /* entries of free */
	size_t nout;	       /* entries of out */
};

static void model_get(struct rnic_pool *p, struct model *d, bool large)
{
	uint32_t chunk = rnic_pool_get(p, large);

	if (!d->nfree) {
		assert_int_equal(chunk, RNIC_CHUNK_NONE);
		return;
	}
	assert_int_equal(chunk, d->free[0]);
	d->nfree--;
	memmove(d->free, d->free + 1, d->nfree * sizeof(d->free[0]));
	d->out[d->nout++] = chunk;
}

static void model_put(struct rnic_pool *p, struct model *d)
{
	size_t i;
	uint32_t chunk;

	if (!d->nout)
		return;
	i = rng((uint32_t)d->nout);
	chunk = d->out[i];
	rnic_pool_put(p, chunk);
	d->out[i] = d->out[--d->nout];
	d->free[d->nfree++] = chunk;
}

static void random_operations(void **state)
{
	struct rnic_pool p;
	struct model d[2] = { { .nfree = NSMALL }, { .nfree = NLARGE } };
	uint32_t i;

	(void)state;
	assert_int_equal(rnic_pool_init(&p, BYTES, LARGE_OFF), 0);
	for (i = 0; i < NSMALL; i++)
		d[0].free[i] = i;
	for (i = 0; i < NLARGE; i++)
		d[1].free[i] = NSMALL + i;
	for (i = 0; i < STEPS; i++) {
		bool large = rng(2);

		if (rng(2))
			model_get(&p, &d[large], large);
		else
			model_put(&p, &d[large]);
		assert_int_equal(rnic_pool_free_count(&p, large),
				 d[large].nfree);
	}
	rnic_pool_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(geometry_counts_chunks),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(locate_bounds_chunk_and_length),
		cmocka_unit_test(zeroed_geometry_has_no_chunk),
		cmocka_unit_test(chunks_come_in_order_of_release),
		cmocka_unit_test(a_pool_may_lack_a_size),
		cmocka_unit_test(zeroed_memory_is_a_finished_pool),
		cmocka_unit_test(random_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
