/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The inject heap: sizes, limits, populate, reuse; and random allocations
 * against a map of who owns each cache line.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shm/heap.h"
#include "shm/rng_kit.h"

enum {
	SPANS = 64, /* of the test heaps */
	LINE = 64,  /* alignment of allocations */
	LINES = SPANS * RNIC_HEAP_SPAN / LINE,
	LIVE = 2000,	/* allocations in the model test */
	STEPS = 100000, /* of the model test */
};

#define AREA ((uint64_t)SPANS * RNIC_HEAP_SPAN)

/* What populate was asked for. */
struct pages {
	bool has[SPANS];    /* populated */
	unsigned int calls; /* of populate */
	int error;	    /* returned instead, if not 0 */
};

static int populate(void *arg, uint64_t off, uint64_t len)
{
	struct pages *p = arg;
	uint64_t at;

	p->calls++;
	if (p->error)
		return p->error;
	assert_true(len > 0);
	assert_int_equal(off % RNIC_HEAP_SPAN, 0);
	assert_int_equal(len % RNIC_HEAP_SPAN, 0);
	assert_true(off < AREA && len <= AREA - off);
	for (at = off; at < off + len; at += RNIC_HEAP_SPAN) {
		assert_false(p->has[at / RNIC_HEAP_SPAN]);
		p->has[at / RNIC_HEAP_SPAN] = true;
	}
	return 0;
}

static unsigned int populated(const struct pages *p)
{
	unsigned int i, n = 0;

	for (i = 0; i < SPANS; i++)
		n += p->has[i];
	return n;
}

static uint64_t alloc(struct rnic_heap *h, size_t len)
{
	uint64_t off = UINT64_MAX;

	assert_int_equal(rnic_heap_alloc(h, len, &off), 0);
	assert_int_equal(off % LINE, 0);
	assert_true(off < AREA && len <= AREA - off);
	return off;
}

/* ---- each call ---- */

static void init_checks_the_size(void **state)
{
	struct rnic_heap h;

	(void)state;
	assert_int_equal(rnic_heap_init(&h, 0, 1, NULL, NULL), -EINVAL);
	assert_int_equal(rnic_heap_init(&h, RNIC_HEAP_SPAN - 1, 1, NULL, NULL),
			 -EINVAL);
	assert_int_equal(rnic_heap_init(&h, UINT64_MAX, 1, NULL, NULL),
			 -EINVAL);
	assert_int_equal(rnic_heap_init(&h, RNIC_HEAP_SPAN + 1, 1, NULL, NULL),
			 0);
	assert_int_equal(rnic_heap_used(&h), 0);
	rnic_heap_fini(&h);
	rnic_heap_fini(&h);
}

static void zeroed_memory_is_a_finished_heap(void **state)
{
	struct rnic_heap h = { .nspans = 0 };

	(void)state;
	assert_int_equal(rnic_heap_used(&h), 0);
	rnic_heap_fini(&h);
}

static void small_objects_share_a_span(void **state)
{
	struct pages p = { .calls = 0 };
	struct rnic_heap h;
	uint64_t a, b, c;

	(void)state;
	assert_int_equal(rnic_heap_init(&h, AREA, AREA, populate, &p), 0);
	assert_int_equal(p.calls, 0);
	a = alloc(&h, 4096);
	b = alloc(&h, 4000);
	assert_int_equal(p.calls, 1);
	assert_int_equal(rnic_heap_used(&h), 8192);
	assert_int_equal(a / RNIC_HEAP_SPAN, b / RNIC_HEAP_SPAN);
	c = alloc(&h, 1);
	assert_int_not_equal(a / RNIC_HEAP_SPAN, c / RNIC_HEAP_SPAN);
	assert_int_equal(rnic_heap_used(&h), 8192 + 64);
	rnic_heap_free(&h, a);
	rnic_heap_free(&h, c);
	assert_int_equal(rnic_heap_used(&h), 4096);
	rnic_heap_free(&h, b);
	assert_int_equal(rnic_heap_used(&h), 0);
	a = alloc(&h, 0);
	assert_int_equal(rnic_heap_used(&h), 64);
	rnic_heap_free(&h, a);
	rnic_heap_fini(&h);
}

static void every_length_fits_what_it_gets(void **state)
{
	struct rnic_heap h;
	size_t len;

	(void)state;
	assert_int_equal(rnic_heap_init(&h, AREA, AREA, NULL, NULL), 0);
	for (len = 1; len <= 3 * RNIC_HEAP_SPAN; len += len < 40000 ? 1 : 999) {
		uint64_t off = alloc(&h, len), used = rnic_heap_used(&h);

		assert_true(used >= len && used <= 2 * len + LINE);
		rnic_heap_free(&h, off);
		assert_int_equal(rnic_heap_used(&h), 0);
	}
	rnic_heap_fini(&h);
}

static void large_objects_are_runs_of_spans(void **state)
{
	struct pages p = { .calls = 0 };
	struct rnic_heap h;
	uint64_t a, b, off = 5;

	(void)state;
	assert_int_equal(rnic_heap_init(&h, AREA, AREA, populate, &p), 0);
	a = alloc(&h, RNIC_HEAP_SMALL_MAX + 1);
	assert_int_equal(rnic_heap_used(&h), RNIC_HEAP_SPAN);
	b = alloc(&h, 5 * RNIC_HEAP_SPAN + 1);
	assert_int_equal(b % RNIC_HEAP_SPAN, 0);
	assert_int_equal(rnic_heap_used(&h), 7 * RNIC_HEAP_SPAN);
	assert_int_equal(p.calls, 2);
	assert_int_equal(populated(&p), 7);
	assert_int_equal(rnic_heap_alloc(&h, AREA, &off), -EAGAIN);
	assert_int_equal(off, 5);
	rnic_heap_free(&h, a);
	rnic_heap_free(&h, b);
	assert_int_equal(alloc(&h, AREA), 0);
	assert_int_equal(p.calls, 3);
	assert_int_equal(populated(&p), SPANS);
	rnic_heap_free(&h, 0);
	assert_int_equal(rnic_heap_used(&h), 0);
	rnic_heap_fini(&h);
}

static void the_limit_holds(void **state)
{
	struct rnic_heap h;
	uint64_t off[4], none = 5;
	size_t i;

	(void)state;
	assert_int_equal(rnic_heap_init(&h, AREA, 4 * 4096, NULL, NULL), 0);
	for (i = 0; i < 4; i++)
		off[i] = alloc(&h, 4096);
	assert_int_equal(rnic_heap_alloc(&h, 1, &none), -EAGAIN);
	assert_int_equal(none, 5);
	assert_int_equal(rnic_heap_used(&h), 4 * 4096);
	rnic_heap_free(&h, off[2]);
	off[2] = alloc(&h, 4096);
	assert_int_equal(rnic_heap_alloc(&h, 4096, &none), -EAGAIN);
	for (i = 0; i < 4; i++)
		rnic_heap_free(&h, off[i]);
	rnic_heap_fini(&h);
}

static void what_can_never_fit_is_enomem(void **state)
{
	struct rnic_heap h;
	uint64_t off = 5;

	(void)state;
	assert_int_equal(rnic_heap_init(&h, AREA, 8192, NULL, NULL), 0);
	assert_int_equal(rnic_heap_alloc(&h, 8193, &off), -ENOMEM);
	assert_int_equal(rnic_heap_alloc(&h, SIZE_MAX, &off), -ENOMEM);
	rnic_heap_fini(&h);
	assert_int_equal(rnic_heap_init(&h, AREA, UINT64_MAX, NULL, NULL), 0);
	assert_int_equal(rnic_heap_alloc(&h, AREA + 1, &off), -ENOMEM);
	assert_int_equal(rnic_heap_alloc(&h, SIZE_MAX, &off), -ENOMEM);
	assert_int_equal(off, 5);
	rnic_heap_fini(&h);
}

static void the_error_of_populate_changes_nothing(void **state)
{
	struct pages p = { .error = -ENOSPC };
	struct rnic_heap h;
	uint64_t off = 5;

	(void)state;
	assert_int_equal(rnic_heap_init(&h, AREA, AREA, populate, &p), 0);
	assert_int_equal(rnic_heap_alloc(&h, 100, &off), -ENOSPC);
	assert_int_equal(rnic_heap_alloc(&h, 100000, &off), -ENOSPC);
	assert_int_equal(off, 5);
	assert_int_equal(rnic_heap_used(&h), 0);
	p.error = 0;
	assert_int_equal(alloc(&h, AREA), 0);
	assert_int_equal(populated(&p), SPANS);
	rnic_heap_fini(&h);
}

static void a_populated_gap_is_not_populated_again(void **state)
{
	struct pages p = { .calls = 0 };
	struct rnic_heap h;
	uint64_t a;

	(void)state;
	assert_int_equal(rnic_heap_init(&h, AREA, AREA, populate, &p), 0);
	a = alloc(&h, RNIC_HEAP_SPAN);
	rnic_heap_free(&h, a);
	assert_int_equal(alloc(&h, 3 * RNIC_HEAP_SPAN), a);
	assert_int_equal(p.calls, 2);
	assert_int_equal(populated(&p), 3);
	rnic_heap_fini(&h);
}

static void a_full_heap_says_so_and_recovers(void **state)
{
	enum { PER_SPAN = RNIC_HEAP_SPAN / 4096, N = SPANS * PER_SPAN };
	struct rnic_heap h;
	uint64_t *off = calloc(N, sizeof(*off)), none = 5;
	size_t i;

	(void)state;
	assert_non_null(off);
	assert_int_equal(rnic_heap_init(&h, AREA, UINT64_MAX, NULL, NULL), 0);
	for (i = 0; i < N; i++)
		off[i] = alloc(&h, 4096);
	assert_int_equal(rnic_heap_used(&h), AREA);
	assert_int_equal(rnic_heap_alloc(&h, 4096, &none), -EAGAIN);
	assert_int_equal(rnic_heap_alloc(&h, RNIC_HEAP_SPAN, &none), -EAGAIN);
	/* one hole in each span: room for its class, not for a run */
	for (i = 0; i < N; i += PER_SPAN)
		rnic_heap_free(&h, off[i]);
	assert_int_equal(rnic_heap_alloc(&h, RNIC_HEAP_SPAN, &none), -EAGAIN);
	for (i = 0; i < N; i += PER_SPAN)
		off[i] = alloc(&h, 4096);
	assert_int_equal(rnic_heap_alloc(&h, 4096, &none), -EAGAIN);
	for (i = 0; i < N; i++)
		rnic_heap_free(&h, off[i]);
	assert_int_equal(alloc(&h, AREA), 0);
	rnic_heap_fini(&h);
	free(off);
}

/* Cycles that never hold much must not wander through the area. */
static void memory_follows_the_peak(void **state)
{
	struct pages p = { .calls = 0 };
	struct rnic_heap h;
	uint64_t off[16];
	int round;
	size_t i;

	(void)state;
	assert_int_equal(rnic_heap_init(&h, AREA, AREA, populate, &p), 0);
	for (round = 0; round < 1000; round++) {
		for (i = 0; i < 16; i++)
			off[i] = alloc(&h, 1 + rng(4096));
		for (i = 0; i < 16; i++)
			rnic_heap_free(&h, off[i]);
	}
	assert_true(populated(&p) <= 12); /* one per class in use */
	rnic_heap_fini(&h);
}

/* ---- model ---- */

/* Live allocations and the owner of each line of the area. */
struct model {
	struct rnic_heap h; /* what is tested */
	struct pages pages; /* what it populated */
	uint64_t off[LIVE]; /* live allocations */
	size_t len[LIVE];   /* their lengths */
	uint32_t nlive;	    /* entries of off and len */
	uint64_t bytes;	    /* sum of len */
	uint32_t refused;   /* allocations that found no room */
	bool taken[LINES];  /* line belongs to a live one */
};

/* Mostly small, as injects are. */
static size_t some_len(void)
{
	uint32_t kind = rng(20);

	if (kind < 14)
		return 1 + rng(4096);
	if (kind < 19)
		return 1 + rng(65536);
	return 1 + rng(400000);
}

/* Marks the lines of an allocation, which must all be @was before. */
static void model_mark(struct model *d, uint64_t off, size_t len, bool was)
{
	uint64_t at;

	for (at = off / LINE; at <= (off + len - 1) / LINE; at++) {
		assert_int_equal(d->taken[at], was);
		d->taken[at] = !was;
	}
}

static bool span_is_empty(const struct model *d, size_t span)
{
	size_t i, lines = RNIC_HEAP_SPAN / LINE;

	for (i = span * lines; i < (span + 1) * lines; i++)
		if (d->taken[i])
			return false;
	return true;
}

/* The most spans in a row in which nothing lives. */
static size_t longest_gap(const struct model *d)
{
	size_t i, gap = 0, longest = 0;

	for (i = 0; i < SPANS; i++) {
		gap = span_is_empty(d, i) ? gap + 1 : 0;
		longest = gap > longest ? gap : longest;
	}
	return longest;
}

/* Spans that an empty heap needs for @len bytes. */
static size_t spans_of(size_t len)
{
	return (len + RNIC_HEAP_SPAN - 1) / RNIC_HEAP_SPAN;
}

static void model_alloc(struct model *d)
{
	size_t len = some_len();
	uint64_t off = UINT64_MAX;
	int ret;

	if (d->nlive == LIVE)
		return;
	ret = rnic_heap_alloc(&d->h, len, &off);
	if (ret) {
		assert_int_equal(ret, -EAGAIN);
		assert_true(longest_gap(d) < spans_of(len));
		d->refused++;
		return;
	}
	assert_int_equal(off % LINE, 0);
	assert_true(off < AREA && len <= AREA - off);
	assert_true(d->pages.has[off / RNIC_HEAP_SPAN]);
	assert_true(d->pages.has[(off + len - 1) / RNIC_HEAP_SPAN]);
	model_mark(d, off, len, false);
	d->off[d->nlive] = off;
	d->len[d->nlive++] = len;
	d->bytes += len;
}

static void model_free(struct model *d)
{
	uint32_t i;

	if (!d->nlive)
		return;
	i = rng(d->nlive);
	model_mark(d, d->off[i], d->len[i], true);
	rnic_heap_free(&d->h, d->off[i]);
	d->bytes -= d->len[i];
	d->off[i] = d->off[--d->nlive];
	d->len[i] = d->len[d->nlive];
}

/* Fills and empties in turn, so that full and empty are both met. */
static void random_allocations(void **state)
{
	struct model *d = calloc(1, sizeof(*d));
	uint32_t i;

	(void)state;
	assert_non_null(d);
	assert_int_equal(
		rnic_heap_init(&d->h, AREA, UINT64_MAX, populate, &d->pages),
		0);
	for (i = 0; i < STEPS; i++) {
		if (rng(100) < (i / 5000 % 2 ? 35 : 65))
			model_alloc(d);
		else
			model_free(d);
		assert_true(rnic_heap_used(&d->h) >= d->bytes);
		assert_true(rnic_heap_used(&d->h) <= AREA);
	}
	assert_true(d->refused > 0);
	while (d->nlive)
		model_free(d);
	assert_int_equal(rnic_heap_used(&d->h), 0);
	assert_int_equal(alloc(&d->h, AREA), 0); /* all in one piece */
	rnic_heap_fini(&d->h);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init_checks_the_size),
		cmocka_unit_test(zeroed_memory_is_a_finished_heap),
		cmocka_unit_test(small_objects_share_a_span),
		cmocka_unit_test(every_length_fits_what_it_gets),
		cmocka_unit_test(large_objects_are_runs_of_spans),
		cmocka_unit_test(the_limit_holds),
		cmocka_unit_test(what_can_never_fit_is_enomem),
		cmocka_unit_test(the_error_of_populate_changes_nothing),
		cmocka_unit_test(a_populated_gap_is_not_populated_again),
		cmocka_unit_test(a_full_heap_says_so_and_recovers),
		cmocka_unit_test(memory_follows_the_peak),
		cmocka_unit_test(random_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
