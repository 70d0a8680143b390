/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Tag matching: each call, order of age within and across classes, more
 * classes than there are hashes, and cost that does not follow the number of
 * objects. match_model_test.c has random operations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/match_kit.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum {
	FEW = 1000,	  /* cost is compared between FEW */
	MANY = 100000,	  /* and MANY objects */
	COST_RATIO = 100, /* allowed; a linear search has 10^3 or more */
};

/* ---- each call ---- */

static void an_empty_engine_finds_nothing(void **state)
{
	struct rnic_match m;

	(void)state;
	setup(&m);
	assert_null(rnic_match_find_recv(&m, 1, 2));
	assert_null(rnic_match_find_msg(&m, 1, 2, 0));
	assert_null(rnic_match_search_recv(&m, 1, 2));
	assert_null(rnic_match_search_msg(&m, 1, 2, 0));
	assert_null(rnic_match_first_recv(&m));
	assert_null(rnic_match_last_recv(&m));
	assert_null(rnic_match_first_msg(&m));
	rnic_match_fini(&m);
	rnic_match_fini(&m);
}

static void zeroed_memory_is_a_finished_engine(void **state)
{
	struct rnic_match m = { .nrecv = 0 };

	(void)state;
	assert_null(rnic_match_find_recv(&m, 0, 0));
	assert_null(rnic_match_find_msg(&m, 0, 0, 0));
	assert_null(rnic_match_first_recv(&m));
	assert_null(rnic_match_first_msg(&m));
	rnic_match_fini(&m);
}

static void a_receive_is_found_by_its_own_message_only(void **state)
{
	struct rnic_match m;
	struct rnic_match_recv r;

	(void)state;
	setup(&m);
	post(&m, &r, 3, 70, 0);
	assert_int_equal(m.nrecv, 1);
	assert_ptr_equal(rnic_match_find_recv(&m, 3, 70), &r);
	assert_ptr_equal(rnic_match_find_recv(&m, 3, 70), &r);
	assert_null(rnic_match_find_recv(&m, 4, 70));
	assert_null(rnic_match_find_recv(&m, 3, 71));
	assert_null(rnic_match_find_recv(&m, 3, 70 | SYNC_BIT));
	rnic_match_unpost(&m, &r);
	assert_false(r.posted);
	assert_int_equal(m.nrecv, 0);
	assert_null(rnic_match_find_recv(&m, 3, 70));
	rnic_match_fini(&m);
}

static void ignored_bits_and_any_source_match(void **state)
{
	struct rnic_match m;
	struct rnic_match_recv r;

	(void)state;
	setup(&m);
	post(&m, &r, RNIC_SRC_ANY, 70 | SYNC_BIT, SYNC_BIT);
	assert_ptr_equal(rnic_match_find_recv(&m, 0, 70), &r);
	assert_ptr_equal(rnic_match_find_recv(&m, 9, 70 | SYNC_BIT), &r);
	assert_null(rnic_match_find_recv(&m, 9, 71));
	rnic_match_unpost(&m, &r);
	post(&m, &r, RNIC_SRC_ANY, 0, UINT64_MAX);
	assert_ptr_equal(rnic_match_find_recv(&m, 5, UINT64_MAX), &r);
	rnic_match_fini(&m);
}

static void a_message_is_found_by_every_receive_that_takes_it(void **state)
{
	struct rnic_match m;
	struct rnic_match_msg msg;

	(void)state;
	setup(&m);
	queue(&m, &msg, 3, 70 | SYNC_BIT);
	assert_int_equal(m.nmsg, 1);
	assert_null(rnic_match_find_msg(&m, 3, 70, 0));
	assert_ptr_equal(rnic_match_find_msg(&m, 3, 70 | SYNC_BIT, 0), &msg);
	assert_ptr_equal(rnic_match_find_msg(&m, 3, 70, SYNC_BIT), &msg);
	assert_null(rnic_match_find_msg(&m, 4, 70, SYNC_BIT));
	assert_ptr_equal(rnic_match_find_msg(&m, RNIC_SRC_ANY, 70, SYNC_BIT),
			 &msg);
	assert_ptr_equal(rnic_match_find_msg(&m, RNIC_SRC_ANY, 0, UINT64_MAX),
			 &msg);
	rnic_match_dequeue(&m, &msg);
	assert_false(msg.queued);
	assert_int_equal(m.nmsg, 0);
	assert_null(rnic_match_find_msg(&m, RNIC_SRC_ANY, 0, UINT64_MAX));
	rnic_match_fini(&m);
}

static void the_oldest_receive_of_all_classes_wins(void **state)
{
	struct rnic_match m;
	struct rnic_match_recv r[5];
	size_t i;

	(void)state;
	setup(&m);
	post(&m, &r[0], 1, 7, SYNC_BIT);
	post(&m, &r[1], RNIC_SRC_ANY, 7, 0);
	post(&m, &r[2], 1, 7, 0);
	post(&m, &r[3], 1, 7, SYNC_BIT);
	post(&m, &r[4], RNIC_SRC_ANY, 0, UINT64_MAX);
	for (i = 0; i < 5; i++) {
		assert_ptr_equal(rnic_match_find_recv(&m, 1, 7), &r[i]);
		rnic_match_unpost(&m, &r[i]);
	}
	assert_null(rnic_match_find_recv(&m, 1, 7));
	rnic_match_fini(&m);
}

static void the_oldest_message_wins_in_every_class(void **state)
{
	struct rnic_match m;
	struct rnic_match_msg msg[3];

	(void)state;
	setup(&m);
	queue(&m, &msg[0], 1, 7);
	assert_ptr_equal(rnic_match_find_msg(&m, 1, 7, 0), &msg[0]);
	queue(&m, &msg[1], 2, 7);
	queue(&m, &msg[2], 2, 7);
	assert_ptr_equal(rnic_match_find_msg(&m, RNIC_SRC_ANY, 7, 0), &msg[0]);
	assert_ptr_equal(rnic_match_find_msg(&m, 2, 7, 0), &msg[1]);
	rnic_match_dequeue(&m, &msg[1]);
	assert_ptr_equal(rnic_match_find_msg(&m, 2, 7, 0), &msg[2]);
	rnic_match_dequeue(&m, &msg[0]);
	assert_ptr_equal(rnic_match_find_msg(&m, RNIC_SRC_ANY, 7, 0), &msg[2]);
	rnic_match_fini(&m);
}

static void equal_receives_leave_from_anywhere(void **state)
{
	struct rnic_match m;
	struct rnic_match_recv r[4];
	size_t i;

	(void)state;
	setup(&m);
	for (i = 0; i < 4; i++)
		post(&m, &r[i], 1, 7, 0);
	rnic_match_unpost(&m, &r[1]);
	assert_ptr_equal(rnic_match_find_recv(&m, 1, 7), &r[0]);
	rnic_match_unpost(&m, &r[0]);
	assert_ptr_equal(rnic_match_find_recv(&m, 1, 7), &r[2]);
	rnic_match_unpost(&m, &r[3]);
	assert_ptr_equal(rnic_match_find_recv(&m, 1, 7), &r[2]);
	rnic_match_unpost(&m, &r[2]);
	assert_null(rnic_match_find_recv(&m, 1, 7));
	rnic_match_fini(&m);
}

static void lists_go_by_age(void **state)
{
	struct rnic_match m;
	struct rnic_match_recv r[3];
	struct rnic_match_msg msg[3];
	size_t i;

	(void)state;
	setup(&m);
	for (i = 0; i < 3; i++) {
		post(&m, &r[i], (uint32_t)i, 9 - i, i);
		queue(&m, &msg[i], (uint32_t)i, 9 - i);
	}
	assert_ptr_equal(rnic_match_first_recv(&m), &r[0]);
	assert_ptr_equal(rnic_match_next_recv(&m, &r[0]), &r[1]);
	assert_null(rnic_match_next_recv(&m, &r[2]));
	assert_ptr_equal(rnic_match_last_recv(&m), &r[2]);
	assert_ptr_equal(rnic_match_prev_recv(&m, &r[2]), &r[1]);
	assert_null(rnic_match_prev_recv(&m, &r[0]));
	assert_ptr_equal(rnic_match_first_msg(&m), &msg[0]);
	assert_ptr_equal(rnic_match_next_msg(&m, &msg[1]), &msg[2]);
	assert_null(rnic_match_next_msg(&m, &msg[2]));
	rnic_match_unpost(&m, &r[1]);
	rnic_match_dequeue(&m, &msg[0]);
	assert_ptr_equal(rnic_match_next_recv(&m, &r[0]), &r[2]);
	assert_ptr_equal(rnic_match_first_msg(&m), &msg[1]);
	rnic_match_fini(&m);
}

/* ---- fresh receives ---- */

static size_t count_fresh(const struct rnic_match_recv *r, size_t n)
{
	size_t fresh = 0;

	for (size_t i = 0; i < n; i++)
		fresh += r[i].cls == RNIC_MATCH_FRESH;
	return fresh;
}

/* Messages in the order of posting: no receive is ever hashed. */
static void in_order_nothing_is_hashed(void **state)
{
	enum { N = RNIC_MATCH_FRESH_MAX - 1 };
	struct rnic_match m;
	struct rnic_match_recv r[N];

	(void)state;
	setup(&m);
	for (size_t i = 0; i < N; i++)
		post(&m, &r[i], 1, i, 0);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(count_fresh(r, N), N);
		assert_ptr_equal(rnic_match_find_recv(&m, 1, i), &r[i]);
		rnic_match_unpost(&m, &r[i]);
	}
	assert_null(rnic_match_find_recv(&m, 1, 0));
	assert_int_equal(m.nfresh, 0);
	rnic_match_fini(&m);
}

static void too_many_fresh_are_hashed(void **state)
{
	enum { N = RNIC_MATCH_FRESH_MAX + 1 };
	struct rnic_match m;
	struct rnic_match_recv r[N];

	(void)state;
	setup(&m);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(count_fresh(r, i), i);
		post(&m, &r[i], 1, i, 0);
		if (i + 2 == N)
			break;
	}
	assert_int_equal(count_fresh(r, N - 1), 0);
	post(&m, &r[N - 1], 1, 0, 0);
	assert_int_equal(count_fresh(r, N), 1);
	/* hashed and fresh ones of one key: by age */
	assert_ptr_equal(rnic_match_find_recv(&m, 1, 0), &r[0]);
	rnic_match_unpost(&m, &r[0]);
	assert_ptr_equal(rnic_match_find_recv(&m, 1, 0), &r[N - 1]);
	assert_ptr_equal(rnic_match_find_recv(&m, 1, N - 2), &r[N - 2]);
	rnic_match_fini(&m);
}

/* Few fresh ones are found in any order, and stay fresh; more do not. */
static void few_fresh_are_looked_at(void **state)
{
	enum { SOME = 8, N = SOME + 1 };
	struct rnic_match m;
	struct rnic_match_recv r[N];

	(void)state;
	setup(&m);
	for (size_t i = 0; i < SOME; i++)
		post(&m, &r[i], 1, i, 0);
	assert_ptr_equal(rnic_match_find_recv(&m, 1, SOME - 1), &r[SOME - 1]);
	assert_null(rnic_match_find_recv(&m, 2, SOME - 1));
	assert_int_equal(count_fresh(r, SOME), SOME);
	post(&m, &r[SOME], RNIC_SRC_ANY, 3, 0);
	assert_ptr_equal(rnic_match_find_recv(&m, 1, 3), &r[3]);
	assert_int_equal(count_fresh(r, N), 0);
	assert_ptr_equal(rnic_match_find_recv(&m, 2, 3), &r[SOME]);
	rnic_match_fini(&m);
}

/* Out of the middle, the front and the end, beside hashed ones. */
static void fresh_ones_leave_in_any_order(void **state)
{
	static const size_t order[] = { 4, 2, 5, 3, 0, 1 };
	struct rnic_match m;
	struct rnic_match_recv r[6];

	(void)state;
	setup(&m);
	for (size_t i = 0; i < 6; i++) {
		post(&m, &r[i], 1, 7, 0);
		if (i == 1)
			rnic_match_index(&m);
	}
	assert_int_equal(m.nfresh, 4);
	for (size_t i = 0; i < 6; i++) {
		rnic_match_unpost(&m, &r[order[i]]);
		assert_int_equal(m.nfresh, i < 4 ? 3 - i : 0);
		assert_ptr_equal(rnic_match_find_recv(&m, 1, 7),
				 i == 5 ? NULL : &r[i == 4 ? 1 : 0]);
	}
	post(&m, &r[0], 1, 7, 0);
	assert_int_equal(m.nfresh, 1);
	assert_ptr_equal(rnic_match_find_recv(&m, 1, 7), &r[0]);
	rnic_match_fini(&m);
}

static void rename_reaches_fresh_ones(void **state)
{
	struct rnic_match m;
	struct rnic_match_recv r[2];

	(void)state;
	setup(&m);
	post(&m, &r[0], 1, 7, 0);
	rnic_match_index(&m);
	post(&m, &r[1], 1, 8, 0);
	rnic_match_rename(&m, 1, 2);
	assert_ptr_equal(rnic_match_find_recv(&m, 2, 7), &r[0]);
	assert_ptr_equal(rnic_match_find_recv(&m, 2, 8), &r[1]);
	assert_null(rnic_match_find_recv(&m, 1, 8));
	assert_int_equal(count_fresh(r, 2), 1);
	rnic_match_fini(&m);
}

/* ---- classes ---- */

static size_t count_listed(const struct rnic_match_recv *r, size_t n)
{
	size_t i, listed = 0;

	for (i = 0; i < n; i++)
		listed += r[i].cls == RNIC_MATCH_LISTED;
	return listed;
}

static void receives_beyond_the_classes_are_listed(void **state)
{
	enum { N = 3 * RNIC_MATCH_CLASSES };
	struct rnic_match m;
	struct rnic_match_recv r[N];
	struct rnic_match_msg msg;
	size_t i;

	(void)state;
	setup(&m);
	queue(&m, &msg, 1, 0);
	for (i = 0; i < N; i++)
		post(&m, &r[i], i % 2 ? RNIC_SRC_ANY : 1, 0,
		     UINT64_C(1) << i / 2);
	rnic_match_index(&m);
	assert_int_equal(count_listed(r, N), N - RNIC_MATCH_CLASSES);
	for (i = 0; i < N; i++)
		assert_ptr_equal(rnic_match_find_msg(&m, r[i].src, r[i].tag,
						     r[i].ignore),
				 &msg);
	assert_null(rnic_match_find_msg(&m, 1, 3, UINT64_C(1) << 20));
	for (i = 0; i < N; i++) {
		assert_ptr_equal(rnic_match_find_recv(&m, 1, 0), &r[i]);
		rnic_match_unpost(&m, &r[i]);
	}
	assert_null(rnic_match_find_recv(&m, 1, 0));
	rnic_match_fini(&m);
}

/* Asks for the class of @ignore until the others have been idle for long. */
static void wear(struct rnic_match *m, uint64_t ignore)
{
	int i;

	for (i = 0; i < 4096; i++)
		assert_non_null(rnic_match_find_msg(m, 1, 0, ignore));
}

/* Is there a class for receives of a given source with mask @ignore? */
static bool has_class(const struct rnic_match *m, uint64_t ignore)
{
	size_t i;

	for (i = 0; i < RNIC_MATCH_CLASSES; i++)
		if (m->cls[i].used && !m->cls[i].src_or &&
		    m->cls[i].mask == ~ignore)
			return true;
	return false;
}

static void an_idle_class_gives_its_place(void **state)
{
	struct rnic_match m;
	struct rnic_match_recv busy, fresh;
	struct rnic_match_msg msg[2];
	uint64_t i;

	(void)state;
	setup(&m);
	queue(&m, &msg[0], 1, 0);
	queue(&m, &msg[1], 1, 5);
	post(&m, &busy, 1, 100, 0);
	rnic_match_index(&m);
	for (i = 1; i < RNIC_MATCH_CLASSES; i++)
		assert_ptr_equal(rnic_match_find_msg(&m, 1, 0, i << 8),
				 &msg[0]);
	post(&m, &fresh, 1, 5, 2);
	rnic_match_index(&m);
	assert_int_equal(fresh.cls, RNIC_MATCH_LISTED);
	rnic_match_unpost(&m, &fresh);
	wear(&m, 1 << 8);
	post(&m, &fresh, 1, 5, 2);
	rnic_match_index(&m);
	assert_int_not_equal(fresh.cls, RNIC_MATCH_LISTED);
	assert_int_not_equal(fresh.cls, busy.cls);
	assert_true(has_class(&m, 1 << 8));  /* in use */
	assert_false(has_class(&m, 2 << 8)); /* idle longest */
	assert_true(has_class(&m, 3 << 8));
	assert_ptr_equal(rnic_match_find_recv(&m, 1, 7), &fresh);
	assert_ptr_equal(rnic_match_find_recv(&m, 1, 100), &busy);
	assert_ptr_equal(rnic_match_find_msg(&m, 1, 7, 2), &msg[1]);
	rnic_match_dequeue(&m, &msg[1]);
	assert_null(rnic_match_find_msg(&m, 1, 7, 2));
	assert_ptr_equal(rnic_match_find_msg(&m, 1, 2, 2), &msg[0]);
	rnic_match_fini(&m);
}

/* ---- rename ---- */

static void rename_merges_by_age(void **state)
{
	struct rnic_match m;
	struct rnic_match_recv r[4];
	struct rnic_match_msg msg[4];
	uint32_t i;

	(void)state;
	setup(&m);
	for (i = 0; i < 4; i++) {
		post(&m, &r[i], 10 + i % 2, 7, 0);
		queue(&m, &msg[i], 10 + i % 2, 7);
	}
	assert_ptr_equal(rnic_match_find_msg(&m, 11, 7, 0), &msg[1]);
	rnic_match_rename(&m, 99, 10); /* nobody's name */
	assert_ptr_equal(rnic_match_find_recv(&m, 11, 7), &r[1]);
	rnic_match_rename(&m, 10, 11);
	assert_null(rnic_match_find_recv(&m, 10, 7));
	assert_null(rnic_match_find_msg(&m, 10, 7, 0));
	for (i = 0; i < 4; i++) {
		assert_int_equal(r[i].src, 11);
		assert_ptr_equal(rnic_match_find_recv(&m, 11, 7), &r[i]);
		assert_ptr_equal(rnic_match_find_msg(&m, 11, 7, 0), &msg[i]);
		rnic_match_unpost(&m, &r[i]);
		rnic_match_dequeue(&m, &msg[i]);
	}
	rnic_match_fini(&m);
}

static void rename_reaches_listed_receives(void **state)
{
	enum { N = RNIC_MATCH_CLASSES + 2 };
	struct rnic_match m;
	struct rnic_match_recv r[N];
	uint32_t i;

	(void)state;
	setup(&m);
	for (i = 0; i < N; i++)
		post(&m, &r[i], 4, 0, i);
	rnic_match_index(&m);
	assert_int_equal(count_listed(r, N), 2);
	rnic_match_rename(&m, 4, 5);
	for (i = 0; i < N; i++) {
		assert_null(rnic_match_find_recv(&m, 4, 0));
		assert_ptr_equal(rnic_match_find_recv(&m, 5, 0), &r[i]);
		rnic_match_unpost(&m, &r[i]);
	}
	assert_null(rnic_match_find_recv(&m, 5, 0));
	rnic_match_fini(&m);
}

/* ---- growth and cost ---- */

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* How receives and messages number @i of a cost test look. */
struct shape {
	const char *name; /* for the report */
	uint64_t ignore;  /* mask of the receives */
	uint64_t extra;	  /* tag bits of the messages only */
	bool any;	  /* receives take any source */
	bool same;	  /* one key for all */
};

static uint32_t shape_src(const struct shape *s, uint32_t i)
{
	return s->same ? 1 : i % 61;
}

/* As an MPI would: communicator, source, tag. */
static uint64_t shape_tag(const struct shape *s, uint32_t i)
{
	if (s->same)
		return 7;
	return UINT64_C(3) << 48 | (uint64_t)(i % 61) << 32 | i / 61;
}

static uint32_t shape_recv_src(const struct shape *s, uint32_t i)
{
	return s->any ? RNIC_SRC_ANY : shape_src(s, i);
}

/* A step that visits all of [0, n) in no obvious order. */
static uint32_t stride(uint32_t i, uint32_t n)
{
	return (uint32_t)((uint64_t)i * 7919 % n);
}

static double cost_recv(const struct shape *s, uint32_t n)
{
	struct rnic_match m;
	struct rnic_match_recv *r = calloc(n, sizeof(*r));
	uint32_t i;
	double t;

	assert_non_null(r);
	setup(&m);
	for (i = 0; i < n; i++)
		post(&m, &r[i], shape_recv_src(s, i), shape_tag(s, i),
		     s->ignore);
	t = cpu_ns();
	for (i = 0; i < n; i++) {
		uint32_t k = s->same ? i : stride(i, n);
		struct rnic_match_recv *got = rnic_match_find_recv(
			&m, shape_src(s, k), shape_tag(s, k) | s->extra);

		assert_ptr_equal(got, &r[k]);
		rnic_match_unpost(&m, got);
	}
	t = (cpu_ns() - t) / n;
	rnic_match_fini(&m);
	free(r);
	return t;
}

static double cost_msg(const struct shape *s, uint32_t n)
{
	struct rnic_match m;
	struct rnic_match_msg *msg = calloc(n, sizeof(*msg));
	uint32_t i;
	double t;

	assert_non_null(msg);
	setup(&m);
	for (i = 0; i < n; i++)
		queue(&m, &msg[i], shape_src(s, i), shape_tag(s, i) | s->extra);
	/* a second class, so that messages leave more than one index */
	assert_ptr_equal(rnic_match_find_msg(&m, RNIC_SRC_ANY, 0, UINT64_MAX),
			 &msg[0]);
	t = cpu_ns();
	for (i = 0; i < n; i++) {
		uint32_t k = s->same ? i : stride(i, n);
		struct rnic_match_msg *got = rnic_match_find_msg(
			&m, shape_recv_src(s, k), shape_tag(s, k), s->ignore);

		assert_ptr_equal(got, &msg[k]);
		rnic_match_dequeue(&m, got);
	}
	t = (cpu_ns() - t) / n;
	rnic_match_fini(&m);
	free(msg);
	return t;
}

/* The best of some runs: others share the machine. */
static double best(double (*cost)(const struct shape *, uint32_t),
		   const struct shape *s, uint32_t n)
{
	double t = cost(s, n);
	int i;

	for (i = 0; i < (n == MANY ? 1 : 20); i++) {
		double u = cost(s, n);

		t = u < t ? u : t;
	}
	return t;
}

static void cost_is_flat(double (*cost)(const struct shape *, uint32_t),
			 const char *what)
{
	static const struct shape shape[] = {
		{ "exact", 0, 0, false, false },
		{ "sync bit ignored", SYNC_BIT, SYNC_BIT, false, false },
		{ "the same, any source", SYNC_BIT, SYNC_BIT, true, false },
		{ "one key", SYNC_BIT, SYNC_BIT, false, true },
		{ "one key, any tag, any source", UINT64_MAX, 0, true, true },
	};
	size_t i;

	for (i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
		double few = best(cost, &shape[i], FEW);
		double many = best(cost, &shape[i], MANY);

		print_message("%s, %s: %.1f ns of %d, %.1f ns of %d\n", what,
			      shape[i].name, few, FEW, many, MANY);
		assert_true(many < few * COST_RATIO);
	}
}

static void posted_cost_is_flat(void **state)
{
	(void)state;
	cost_is_flat(cost_recv, "find and unpost");
}

static void unexpected_cost_is_flat(void **state)
{
	(void)state;
	cost_is_flat(cost_msg, "find and dequeue");
}

/* Receives with exact tags of one narrow field, wherever that lies. */
static void any_field_of_the_tag_spreads(void **state)
{
	enum { N = 4096 };
	struct rnic_match_recv *r = calloc(N, sizeof(*r));
	unsigned int shift;

	(void)state;
	assert_non_null(r);
	for (shift = 0; shift <= 52; shift += 4) {
		struct rnic_match m;
		size_t i, used = 0, buckets;

		setup(&m);
		for (i = 0; i < N; i++)
			post(&m, &r[i], 1, (uint64_t)i << shift, 0);
		buckets = (size_t)1 << (64 - m.cls[r[0].cls].recv.shift);
		assert_true(buckets >= N);
		for (i = 0; i < buckets; i++)
			used += !!m.cls[r[0].cls].recv.bucket[i];
		assert_true(used > N / 4); /* chains of 4 are fine */
		rnic_match_fini(&m);
	}
	free(r);
}

/* Ever new keys, but few at a time: no growth, and nothing left behind. */
static void churn_does_not_grow_tables(void **state)
{
	struct rnic_match m;
	struct rnic_match_recv r[4];
	struct rnic_match_msg msg[4];
	uint32_t i, shift;

	(void)state;
	setup(&m);
	shift = m.cls[0].recv.shift;
	memset(r, 0, sizeof(r));
	memset(msg, 0, sizeof(msg));
	for (i = 0; i < 10000; i++) {
		if (r[i % 4].posted)
			rnic_match_unpost(&m, &r[i % 4]);
		if (msg[i % 4].queued)
			rnic_match_dequeue(&m, &msg[i % 4]);
		post(&m, &r[i % 4], 1, i, 0);
		rnic_match_index(&m);
		queue(&m, &msg[i % 4], 2, i);
	}
	assert_int_equal(m.cls[0].recv.shift, shift);
	assert_int_equal(m.cls[0].recv.keys, 4);
	assert_int_equal(m.cls[0].msg.shift, shift);
	assert_int_equal(m.cls[0].msg.keys, 4);
	for (i = 0; i < 4; i++)
		rnic_match_unpost(&m, &r[i]);
	assert_int_equal(m.busy, 0);
	rnic_match_fini(&m);
}

enum { NOMEM_KEYS = 20000 };

/* In a child that gets no more memory: true if all went well. */
static bool grow_without_memory(struct rnic_match_recv *r)
{
	struct rlimit none = { .rlim_cur = 1, .rlim_max = 1 };
	struct rnic_match m;
	uint64_t i;

	if (rnic_match_init(&m) || setrlimit(RLIMIT_AS, &none))
		return false;
	for (i = 0; i < NOMEM_KEYS; i++) {
		r[i].src = 1;
		r[i].tag = i;
		rnic_match_post(&m, &r[i]);
	}
	if (1u << (64 - m.cls[r[0].cls].recv.shift) >= NOMEM_KEYS)
		return false; /* it did get memory: nothing was tested */
	for (i = 0; i < NOMEM_KEYS; i++) {
		if (rnic_match_find_recv(&m, 1, i) != &r[i])
			return false;
		rnic_match_unpost(&m, &r[i]);
	}
	rnic_match_fini(&m);
	return true;
}

static void growth_without_memory_only_costs_time(void **state)
{
	struct rnic_match_recv *r;
	int status = -1;
	pid_t pid;

	(void)state;
	if (SANITIZED)
		skip(); /* their allocators need address space */
	r = calloc(NOMEM_KEYS, sizeof(*r));
	assert_non_null(r);
	pid = fork();
	if (!pid) {
		alarm(60);
		_exit(grow_without_memory(r) ? 0 : 1);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_engine_finds_nothing),
		cmocka_unit_test(zeroed_memory_is_a_finished_engine),
		cmocka_unit_test(a_receive_is_found_by_its_own_message_only),
		cmocka_unit_test(ignored_bits_and_any_source_match),
		cmocka_unit_test(
			a_message_is_found_by_every_receive_that_takes_it),
		cmocka_unit_test(the_oldest_receive_of_all_classes_wins),
		cmocka_unit_test(the_oldest_message_wins_in_every_class),
		cmocka_unit_test(equal_receives_leave_from_anywhere),
		cmocka_unit_test(lists_go_by_age),
		cmocka_unit_test(in_order_nothing_is_hashed),
		cmocka_unit_test(too_many_fresh_are_hashed),
		cmocka_unit_test(few_fresh_are_looked_at),
		cmocka_unit_test(fresh_ones_leave_in_any_order),
		cmocka_unit_test(rename_reaches_fresh_ones),
		cmocka_unit_test(receives_beyond_the_classes_are_listed),
		cmocka_unit_test(an_idle_class_gives_its_place),
		cmocka_unit_test(rename_merges_by_age),
		cmocka_unit_test(rename_reaches_listed_receives),
		cmocka_unit_test(any_field_of_the_tag_spreads),
		cmocka_unit_test(churn_does_not_grow_tables),
		cmocka_unit_test(growth_without_memory_only_costs_time),
		cmocka_unit_test(posted_cost_is_flat),
		cmocka_unit_test(unexpected_cost_is_flat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
