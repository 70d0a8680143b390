/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The index of ranges against a plain list of them; and readers beside a
 * writer.
 */
#include "lib/mr_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <unistd.h>
#include <urcu/urcu-bp.h>

#include "shm/rng_kit.h"
#include "shm/tsan.h"

enum {
	LIMIT_S = 120, /* the whole program ends by then */
	RANGES = 300,  /* of the model */
	READERS = 2,   /* threads */
	PAGE = RNIC_PAGE,
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	STEPS = 1500,  /* changes and questions */
	ROUNDS = 1000, /* changes beside readers */
#else
	STEPS = 6000,  /* changes and questions */
	ROUNDS = 4000, /* changes beside readers */
#endif
};

static struct shrimp_mr_index ix;

static int setup(void **state)
{
	(void)state;
	return shrimp_mr_index_init(&ix);
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(ix.total, 0);
	assert_int_equal(rnic_load64_relaxed(&ix.levels), 0);
	for (int i = 0; i < SHRIMP_MR_BUCKETS; i++)
		assert_null(rnic_ptr_load_relaxed(&ix.bucket[i]));
	shrimp_mr_index_fini(&ix);
	shrimp_mr_index_fini(&ix);
	return 0;
}

static struct shrimp_span span(uint64_t page, uint64_t pages, uint32_t have)
{
	return (struct shrimp_span){ .start = page * PAGE,
				     .end = (page + pages) * PAGE,
				     .have = have };
}

static struct shrimp_span *find(uint64_t page, uint64_t pages, uint32_t want)
{
	return shrimp_mr_index_find(&ix, page * PAGE, (page + pages) * PAGE,
				    want);
}

static void levels_are_logarithms(void **state)
{
	(void)state;
	assert_int_equal(shrimp_span_level(1), 0);
	assert_int_equal(shrimp_span_level(PAGE), 0);
	assert_int_equal(shrimp_span_level(PAGE + 1), 1);
	assert_int_equal(shrimp_span_level(2 * PAGE), 1);
	assert_int_equal(shrimp_span_level(3 * PAGE), 2);
	assert_int_equal(shrimp_span_level(4 * PAGE), 2);
	assert_int_equal(shrimp_span_level(UINT64_C(1) << 47), 35);
}

/* A range across the border of two blocks is found from either side. */
static void both_blocks(void **state)
{
	struct shrimp_span s = span(7, 2, 3);

	(void)state;
	shrimp_mr_index_add(&ix, &s);
	assert_ptr_equal(find(7, 2, 3), &s);
	assert_ptr_equal(find(7, 1, 1), &s);
	assert_ptr_equal(find(8, 1, 2), &s);
	assert_null(find(6, 2, 0));
	assert_null(find(8, 2, 0));
	assert_null(find(7, 1, 4));
	shrimp_mr_index_del(&ix, &s);
	assert_null(find(7, 1, 0));
}

/* As large as memory is. */
static void the_largest(void **state)
{
	struct shrimp_span s = span(0, UINT64_C(1) << 35, 0);

	(void)state;
	shrimp_mr_index_add(&ix, &s);
	assert_ptr_equal(find(0, UINT64_C(1) << 35, 0), &s);
	assert_ptr_equal(find((UINT64_C(1) << 35) - 1, 1, 0), &s);
	assert_null(find(UINT64_C(1) << 35, 1, 0));
	shrimp_mr_index_del(&ix, &s);
}

/* ---- against a model ---- */

static struct shrimp_span model[RANGES];
static bool in[RANGES];		  /* it is in the index */
static unsigned int seen[RANGES]; /* times that overlap told of it */

/* Most are small; one in 16 is large. */
static struct shrimp_span any(uint64_t *seed)
{
	uint64_t pages = 1 + rng_next(seed) % (rng_next(seed) % 16 ? 8 : 3000);

	return span(rng_next(seed) % 4096, pages, (uint32_t)rng_next(seed) % 8);
}

static void note(struct shrimp_span *s, void *arg)
{
	assert_ptr_equal(arg, model);
	seen[s - model]++;
}

static void check_find(const struct shrimp_span *q)
{
	struct shrimp_span *s =
		shrimp_mr_index_find(&ix, q->start, q->end, q->have);
	bool any_covers = false;

	for (int i = 0; i < RANGES; i++)
		any_covers |= in[i] && model[i].start <= q->start &&
			      q->end <= model[i].end &&
			      !(q->have & ~model[i].have);
	assert_int_equal(any_covers, s != NULL);
	if (!s)
		return;
	assert_true(in[s - model]);
	assert_true(s->start <= q->start && q->end <= s->end);
	assert_int_equal(q->have & ~s->have, 0);
}

static void check_overlap(const struct shrimp_span *q)
{
	memset(seen, 0, sizeof(seen));
	shrimp_mr_index_overlap(&ix, q->start, q->end, note, model);
	for (int i = 0; i < RANGES; i++) {
		bool touches = in[i] && model[i].start < q->end &&
			       q->start < model[i].end;

		assert_int_equal(touches, seen[i] != 0);
	}
}

static void as_a_list_says(void **state)
{
	uint64_t seed = 88172645463325252;
	struct shrimp_span q, all = { .end = UINT64_MAX };

	(void)state;
	for (int k = 0; k < STEPS; k++) {
		size_t i = rng_next(&seed) % RANGES;

		if (in[i]) {
			shrimp_mr_index_del(&ix, &model[i]);
		} else {
			model[i] = any(&seed);
			shrimp_mr_index_add(&ix, &model[i]);
		}
		in[i] = !in[i];
		q = any(&seed);
		check_find(&q);
		if (k % 16)
			continue;
		check_overlap(&q);
		check_overlap(&all);
	}
	for (int i = 0; i < RANGES; i++)
		if (in[i])
			shrimp_mr_index_del(&ix, &model[i]);
	memset(in, 0, sizeof(in));
}

/* ---- readers beside a writer ---- */

static rnic_a32 over; /* 1: readers end */
static rnic_a64 found;

/* One covers all of memory, and stays: there is always something. */
static void *reader(void *arg)
{
	uint64_t seed = (uintptr_t)arg;

	while (!rnic_load32_acquire(&over)) {
		struct shrimp_span q = any(&seed), *s;

		urcu_bp_read_lock();
		s = shrimp_mr_index_find(&ix, q.start, q.end, 0);
		if (!s || s->start > q.start || s->end < q.end)
			abort();
		rnic_tsan_release(&ix);
		urcu_bp_read_unlock();
		rnic_add64_relaxed(&found, 1);
	}
	return NULL;
}

static struct shrimp_span *made(uint64_t *seed)
{
	struct shrimp_span *s = malloc(sizeof(*s));

	assert_non_null(s);
	*s = any(seed);
	return s;
}

static void readers_beside_a_writer(void **state)
{
	struct shrimp_span whole = span(0, 8192, 0), *s[64] = { 0 };
	uint64_t seed = 362436069;
	pthread_t t[READERS];

	(void)state;
	shrimp_mr_index_add(&ix, &whole);
	for (uintptr_t i = 0; i < READERS; i++)
		assert_int_equal(
			pthread_create(&t[i], NULL, reader, (void *)(i + 77)),
			0);
	/* relaxed: they have begun */
	for (int k = 0; k < ROUNDS || rnic_load64_relaxed(&found) < ROUNDS;
	     k++) {
		size_t i = rng_next(&seed) % 64;

		if (s[i]) {
			shrimp_mr_index_del(&ix, s[i]);
			urcu_bp_synchronize_rcu();
			rnic_tsan_acquire(&ix);
			free(s[i]);
		}
		s[i] = made(&seed);
		shrimp_mr_index_add(&ix, s[i]);
	}
	rnic_store32_release(&over, 1);
	for (int i = 0; i < READERS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 64; i++)
		if (s[i])
			shrimp_mr_index_del(&ix, s[i]), free(s[i]);
	shrimp_mr_index_del(&ix, &whole);
}

#define WITH(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_are_logarithms),
		WITH(both_blocks),
		WITH(the_largest),
		WITH(as_a_list_says),
		WITH(readers_beside_a_writer),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
