/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Tag matching against a reference model: random operations, few classes and
 * more than there are hashes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shm/match_kit.h"
#include "shm/rng_kit.h"

enum {
	STEPS = 100000, /* of a run */
	LIVE = 96,	/* objects of each kind */
};

/* The same objects, in plain arrays ordered by age. */
struct model {
	struct rnic_match m;		      /* what is tested */
	struct rnic_match_recv recv[LIVE];    /* objects */
	struct rnic_match_msg msg[LIVE];      /* objects */
	struct rnic_match_recv *posted[LIVE]; /* by age */
	struct rnic_match_msg *queued[LIVE];  /* by age */
	size_t nposted;			      /* entries of posted */
	size_t nqueued;			      /* entries of queued */
	uint32_t nmasks;		      /* different ignore masks */
};

static uint64_t some_ignore(const struct model *d)
{
	static const uint64_t mask[] = {
		0, SYNC_BIT, SYNC_BIT | 3, UINT64_MAX,	 1, 2, 4, 5,
		6, 7,	     SYNC_BIT | 1, SYNC_BIT | 2,
	};

	return mask[rng(d->nmasks)];
}

static uint64_t some_tag(void)
{
	return rng(6) | (rng(4) ? 0 : SYNC_BIT);
}

static uint32_t some_recv_src(void)
{
	return rng(3) ? rng(4) : RNIC_SRC_ANY;
}

static bool takes(uint32_t rsrc, uint64_t rtag, uint64_t ignore, uint32_t src,
		  uint64_t tag)
{
	return !((rtag ^ tag) & ~ignore) &&
	       (rsrc == RNIC_SRC_ANY || rsrc == src);
}

static void model_post(struct model *d)
{
	size_t i;

	if (d->nposted == LIVE)
		return;
	for (i = 0; d->recv[i].posted; i++)
		;
	d->posted[d->nposted++] = &d->recv[i];
	post(&d->m, &d->recv[i], some_recv_src(), some_tag(), some_ignore(d));
}

static void model_queue(struct model *d)
{
	size_t i;

	if (d->nqueued == LIVE)
		return;
	for (i = 0; d->msg[i].queued; i++)
		;
	d->queued[d->nqueued++] = &d->msg[i];
	queue(&d->m, &d->msg[i], rng(4), some_tag());
}

static void model_unpost(struct model *d, size_t i)
{
	rnic_match_unpost(&d->m, d->posted[i]);
	d->nposted--;
	memmove(&d->posted[i], &d->posted[i + 1],
		(d->nposted - i) * sizeof(d->posted[0]));
}

static void model_dequeue(struct model *d, size_t i)
{
	rnic_match_dequeue(&d->m, d->queued[i]);
	d->nqueued--;
	memmove(&d->queued[i], &d->queued[i + 1],
		(d->nqueued - i) * sizeof(d->queued[0]));
}

/* A message arrives; two in three take their receive with them. */
static void model_find_recv(struct model *d)
{
	uint32_t src = rng(4);
	uint64_t tag = some_tag();
	struct rnic_match_recv *r = rnic_match_find_recv(&d->m, src, tag);
	size_t i;

	for (i = 0; i < d->nposted; i++)
		if (takes(d->posted[i]->src, d->posted[i]->tag,
			  d->posted[i]->ignore, src, tag))
			break;
	assert_ptr_equal(r, i < d->nposted ? d->posted[i] : NULL);
	if (r && rng(3))
		model_unpost(d, i);
}

/* A receive or probe looks; two in three take the message. */
static void model_find_msg(struct model *d)
{
	uint32_t src = some_recv_src();
	uint64_t tag = some_tag(), ignore = some_ignore(d);
	struct rnic_match_msg *msg =
		rnic_match_find_msg(&d->m, src, tag, ignore);
	size_t i;

	for (i = 0; i < d->nqueued; i++)
		if (takes(src, tag, ignore, d->queued[i]->src,
			  d->queued[i]->tag))
			break;
	assert_ptr_equal(msg, i < d->nqueued ? d->queued[i] : NULL);
	if (msg && rng(3))
		model_dequeue(d, i);
}

static void model_check(struct model *d)
{
	struct rnic_match_recv *r = rnic_match_first_recv(&d->m);
	struct rnic_match_recv *back = rnic_match_last_recv(&d->m);
	struct rnic_match_msg *msg = rnic_match_first_msg(&d->m);
	size_t i;

	assert_int_equal(d->m.nrecv, d->nposted);
	assert_int_equal(d->m.nmsg, d->nqueued);
	for (i = 0; i < d->nposted; i++) {
		assert_ptr_equal(r, d->posted[i]);
		assert_ptr_equal(back, d->posted[d->nposted - 1 - i]);
		r = rnic_match_next_recv(&d->m, r);
		back = rnic_match_prev_recv(&d->m, back);
	}
	assert_null(r);
	assert_null(back);
	for (i = 0; i < d->nqueued; i++) {
		assert_ptr_equal(msg, d->queued[i]);
		msg = rnic_match_next_msg(&d->m, msg);
	}
	assert_null(msg);
}

static void model_step(struct model *d)
{
	uint32_t what = rng(100);

	if (what < 25)
		model_post(d);
	else if (what < 50)
		model_queue(d);
	else if (what < 72)
		model_find_recv(d);
	else if (what < 94)
		model_find_msg(d);
	else if (what < 96 && d->nposted)
		model_unpost(d, rng((uint32_t)d->nposted));
	else if (what < 98 && d->nqueued)
		model_dequeue(d, rng((uint32_t)d->nqueued));
	else if (what < 99)
		model_check(d);
	else
		rnic_match_rename(&d->m, rng(4), rng(4));
}

static void model_run(uint32_t nmasks)
{
	struct model *d = calloc(1, sizeof(*d));
	int i;

	assert_non_null(d);
	setup(&d->m);
	d->nmasks = nmasks;
	for (i = 0; i < STEPS; i++)
		model_step(d);
	model_check(d);
	rnic_match_fini(&d->m);
	free(d);
}

static void random_operations_with_few_classes(void **state)
{
	(void)state;
	model_run(3);
}

static void random_operations_with_many_classes(void **state)
{
	(void)state;
	model_run(12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_operations_with_few_classes),
		cmocka_unit_test(random_operations_with_many_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
