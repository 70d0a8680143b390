/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * fi_cancel(): every posted receive ends in exactly one entry, its data or
 * FI_ECANCELED, whatever the cancel races with; and after FI_ECANCELED its
 * buffer is never written again.
 */
#define _GNU_SOURCE
#include "harness.h"

enum { TAG = 41 };

static void expect_canceled(struct th_stack *s, void *ctx)
{
	struct fi_cq_err_entry err = th_rx_err(s);

	th_eq(err.err, FI_ECANCELED);
	th_ptr_eq(err.op_context, ctx);
}

static void put(struct th_stack *s, uint64_t v)
{
	th_post(s, fi_tinject(s->ep, &v, 8, s->peers[1], TAG));
}

/*
 * (a) A posted receive: cancelled, and the message that comes then waits for
 * the next receive.
 */
static void case_T14_posted(struct th_self *self)
{
	uint64_t rx[2] = { 7, 7 };
	struct th_stack a, b;
	int tagged;

	(void)self;
	th_pair_open(&a, &b, NULL);
	for (tagged = 0; tagged < 2; tagged++) {
		if (tagged)
			th_trecv(&b, &rx[0], 8, TAG, 0, &rx[0]);
		else
			th_recv(&b, &rx[0], 8, &rx[0]);
		th_eq(fi_cancel(&b.ep->fid, &rx[0]), 0);
		expect_canceled(&b, &rx[0]);
		th_quiet(&b, 5);
	}
	put(&a, 99);
	th_quiet(&b, 5);
	th_eq(rx[0], 7);
	th_trecv(&b, &rx[1], 8, TAG, 0, &rx[1]);
	th_ptr_eq(th_rx_ok(&b).op_context, &rx[1]);
	th_eq(rx[1], 99);
	th_eq(rx[0], 7);
	th_pair_close(&a, &b);
}

/* (b) A context that nothing has, and NULL. */
static void case_T14_unknown(struct th_self *self)
{
	uint64_t rx = 0;
	struct th_stack a, b;

	(void)self;
	th_pair_open(&a, &b, NULL);
	th_eq(fi_cancel(&b.ep->fid, &rx), -FI_ENOENT);
	th_eq(fi_cancel(&b.ep->fid, NULL), -FI_ENOENT);
	th_trecv(&b, &rx, 8, TAG, 0, &rx);
	th_eq(fi_cancel(&b.ep->fid, &a), -FI_ENOENT);
	th_quiet(&b, 5);
	put(&a, 3);
	th_ptr_eq(th_rx_ok(&b).op_context, &rx);
	th_pair_close(&a, &b);
}

/* (c) Completed, entry read or not, and cancelled before. */
static void case_T14_completed(struct th_self *self)
{
	uint64_t rx = 0, rounds;
	struct th_stack a, b;

	(void)self;
	th_pair_open(&a, &b, NULL);
	th_trecv(&b, &rx, 8, TAG, 0, &rx);
	put(&a, 3);
	/* The entry is there but not read: progress only. */
	for (rounds = 0; rounds < 1000000 && rx != 3; rounds++)
		th_progress(&b);
	th_eq(rx, 3);
	th_progress(&b);
	th_eq(fi_cancel(&b.ep->fid, &rx), -FI_ENOENT);
	th_ptr_eq(th_rx_ok(&b).op_context, &rx);
	th_eq(fi_cancel(&b.ep->fid, &rx), -FI_ENOENT);
	th_trecv(&b, &rx, 8, TAG, 0, &rx);
	th_eq(fi_cancel(&b.ep->fid, &rx), 0);
	th_eq(fi_cancel(&b.ep->fid, &rx), -FI_ENOENT);
	expect_canceled(&b, &rx);
	th_quiet(&b, 5);
	th_pair_close(&a, &b);
}

/* Of several with one context, one is cancelled per call. */
static void same_context(struct th_self *self)
{
	uint64_t rx[3];
	struct th_stack a, b;
	int i;

	(void)self;
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < 3; i++)
		th_trecv(&b, &rx[i], 8, TAG, 0, &a);
	th_eq(fi_cancel(&b.ep->fid, &a), 0);
	expect_canceled(&b, &a);
	th_quiet(&b, 5);
	put(&a, 1);
	put(&a, 2);
	th_rx_ok(&b);
	th_rx_ok(&b);
	th_eq(fi_cancel(&b.ep->fid, &a), -FI_ENOENT);
	th_pair_close(&a, &b);
}

/* Cancelling from the middle leaves the order of the others. */
static void from_the_middle(struct th_self *self)
{
	enum { N = 64 };
	struct th_stack a, b;
	uint64_t rx[N], i;

	(void)self;
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < N; i++)
		th_trecv(&b, &rx[i], 8, TAG, i % 3, &rx[i]);
	for (i = 0; i < N; i += 2)
		th_eq(fi_cancel(&b.ep->fid, &rx[i]), 0);
	for (i = 0; i < N; i += 2)
		th_eq(th_rx_err(&b).err, FI_ECANCELED);
	for (i = 1; i < N; i += 2) {
		put(&a, i);
		th_ptr_eq(th_rx_ok(&b).op_context, &rx[i]);
		th_eq(rx[i], i);
	}
	th_quiet(&b, 5);
	th_pair_close(&a, &b);
}

/* ---- (d), (e), (f): races between two processes ---------------------------- */

struct race {
	size_t len;	     /* of each message */
	unsigned long n;     /* messages, each with a receive to cancel */
	uint64_t send_flags; /* of fi_tsendmsg() */
};

static void race_send(struct th_stack *s, const struct race *r)
{
	unsigned char *tx = malloc(r->len);
	struct iovec iov = { tx, r->len };
	struct fi_msg_tagged m = { .msg_iov = &iov,
				   .iov_count = 1,
				   .addr = s->peers[1],
				   .tag = TAG,
				   .context = tx };
	uint64_t seed = 5;
	unsigned long i;

	th_check(tx);
	th_fill(tx, r->len, 1);
	for (i = 0; i < r->n; i++) {
		if (th_random(&seed) % 4 == 0)
			th_sleep_us(th_random(&seed) % 100);
		th_post(s, fi_tsendmsg(s->ep, &m, r->send_flags));
		th_ptr_eq(th_tx_ok(s).op_context, tx);
	}
	free(tx);
}

/*
 * Posts, cancels, and takes the one entry. Returns true if the message came;
 * else the buffer must stay as it was, which the caller checks later.
 */
static bool race_once(struct th_stack *s, struct th_buf *b, uint64_t *seed)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	unsigned int spins;
	int ret;

	memset(b->p, 0xee, b->len);
	th_trecv(s, b->p, b->len, TAG, 0, b->p);
	for (spins = th_random(seed) % 32; spins; spins--)
		th_progress(s);
	ret = fi_cancel(&s->ep->fid, b->p);
	th_check(ret == 0 || ret == -FI_ENOENT);
	if (th_cq_next(s, s->rxcq, &e, &err) == 1) {
		th_ptr_eq(e.op_context, b->p);
		th_eq(e.len, b->len);
		th_verify(b->p, b->len, 1);
		th_check(ret == -FI_ENOENT || !th_is_shrimp());
		return true;
	}
	th_eq(err.err, FI_ECANCELED);
	th_ptr_eq(err.op_context, b->p);
	th_eq(ret, 0);
	return false;
}

static void race_recv(struct th_stack *s, const struct race *r)
{
	struct th_buf b[2] = { th_buf_new(r->len), th_buf_new(r->len) };
	uint64_t seed = 6;
	unsigned long got = 0;
	bool came, canceled = false;
	int cur = 0;

	while (got < r->n) {
		came = race_once(s, &b[cur], &seed);
		got += came;
		/* What was cancelled last time is still untouched. */
		if (canceled)
			th_verify_byte(b[!cur].p, r->len, 0xee);
		canceled = !came;
		cur = !cur;
	}
	th_buf_free(&b[0]);
	th_buf_free(&b[1]);
}

static void race_run(struct th_self *self, const struct race *r)
{
	struct th_stack s;

	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	if (self->rank == 0)
		race_send(&s, r);
	else
		race_recv(&s, r);
	th_barrier_progress(self, &s, "done");
	th_quiet(&s, 10);
	th_stack_close(&s);
}

static void case_T14_race_small(struct th_self *self)
{
	struct race r = { 100, th_rounds(5000), 0 };

	race_run(self, &r);
}

static void case_T14_race_eager(struct th_self *self)
{
	struct race r = { 20000, th_rounds(2000), 0 };

	race_run(self, &r);
}

static void case_T14_race_rendezvous(struct th_self *self)
{
	struct race r = { 2 << 20, th_rounds(100), 0 };

	race_run(self, &r);
}

static void case_T14_race_delivery(struct th_self *self)
{
	struct race r = { 3000, th_rounds(2000), FI_DELIVERY_COMPLETE };

	race_run(self, &r);
}

static const struct CMUnitTest cancel_tests[] = {
	TH_CASE(case_T14_posted, 1, 10),
	TH_CASE(case_T14_unknown, 1, 10),
	TH_CASE(case_T14_completed, 1, 10),
	TH_CASE(same_context, 1, 10),
	TH_CASE(from_the_middle, 1, 10),
	TH_CASE(case_T14_race_small, 2, 20),
	TH_CASE(case_T14_race_eager, 2, 20),
	TH_CASE(case_T14_race_rendezvous, 2, 20),
	TH_CASE(case_T14_race_delivery, 2, 20),
};

TH_MAIN(cancel_tests)
