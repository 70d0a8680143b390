/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Messages whose payload stays at the sender until they match: what a close,
 * a cancel or a truncation on either side does to them. (Peek, claim and
 * discard of held messages are in peek.c.) 1 MiB is always held.
 */
#define _GNU_SOURCE
#include "harness.h"

enum { TAG = 31, LEN = 1 << 20, MANY = 40 };

static unsigned char *pattern_new(size_t len, uint64_t seed)
{
	unsigned char *p = malloc(len);

	th_check(p);
	th_fill(p, len, seed);
	return p;
}

/* A held send completes when its receive does, not before. */
static void completes_with_match(struct th_self *self)
{
	unsigned char *tx = pattern_new(LEN, 1), *rx = malloc(LEN);
	struct th_stack a, b;

	(void)self;
	th_check(rx);
	th_pair_open(&a, &b, NULL);
	th_tsend(&a, a.peers[1], tx, LEN, TAG, tx);
	th_quiet(&b, 10);
	if (th_is_shrimp())
		th_quiet(&a, 20);
	th_trecv(&b, rx, LEN, TAG, 0, rx);
	th_eq(th_rx_ok(&b).len, LEN);
	th_verify(rx, LEN, 1);
	th_ptr_eq(th_tx_ok(&a).op_context, tx);
	free(tx);
	free(rx);
	th_pair_close(&a, &b);
}

/*
 * Many held messages, received in reverse order: the last descriptor must
 * get past the unmatched ones before it.
 */
static void reverse_order(struct th_self *self)
{
	unsigned char *tx = pattern_new(LEN + MANY, 1), *rx = malloc(LEN);
	struct th_stack a, b;
	int i, n = MANY * 5;

	(void)self;
	th_check(rx);
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < n; i++)
		th_tsend(&a, a.peers[1], tx + i % MANY, LEN - 1000 * (i % MANY),
			 (uint64_t)i, tx);
	for (i = n - 1; i >= 0; i--) {
		th_trecv(&b, rx, LEN, (uint64_t)i, 0, rx);
		th_eq(th_rx_ok(&b).len, LEN - 1000 * (i % MANY));
		th_verify_at(rx, LEN - 1000 * (size_t)(i % MANY), 1,
			     (size_t)(i % MANY));
		th_tx_ok(&a);
	}
	free(tx);
	free(rx);
	th_pair_close(&a, &b);
}

/* Only the room is fetched; the sender has a success all the same. */
static void truncated(struct th_self *self)
{
	unsigned char *tx = pattern_new(LEN, 1);
	struct th_buf r = th_buf_new(5000);
	struct fi_cq_err_entry err;
	struct th_stack a, b;

	(void)self;
	th_pair_open(&a, &b, NULL);
	th_tsend(&a, a.peers[1], tx, LEN, TAG, tx);
	th_quiet(&b, 5);
	th_trecv(&b, r.p, r.len, TAG, 0, r.p);
	err = th_rx_err(&b);
	th_eq(err.err, FI_ETRUNC);
	th_eq(err.olen, LEN - 5000);
	th_verify(r.p, r.len, 1);
	th_ptr_eq(th_tx_ok(&a).op_context, tx);
	th_quiet(&a, 5);
	th_buf_free(&r);
	free(tx);
	th_pair_close(&a, &b);
}

/*
 * Closing does not wait for sends that are not complete: they are discarded
 * (fi_endpoint(3)). Only what counts as sent may make it linger.
 */
static void close_at_once(struct th_stack *s)
{
	uint64_t start = th_now_ns();

	th_stack_close(s);
	th_check(th_now_ns() - start < UINT64_C(2000000000) * th_time_scale());
}

/* ---- closing -------------------------------------------------------------- */

/*
 * The receiver closes: its held senders are released with an error, each
 * exactly once, with its own context.
 */
static void receiver_closes(struct th_self *self)
{
	bool seen[MANY] = { false };
	struct fi_cq_err_entry err;
	unsigned char *tx = pattern_new(LEN + MANY, 1);
	struct th_stack a, b;
	ptrdiff_t k;
	int i;

	(void)self;
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < MANY; i++)
		th_tsend(&a, a.peers[1], tx + i, LEN, TAG, tx + i);
	th_quiet(&b, 5);
	a.buddy = NULL;
	th_stack_close(&b);
	for (i = 0; i < MANY; i++) {
		err = th_tx_err(&a);
		th_eq(err.err, FI_ECONNRESET);
		k = (unsigned char *)err.op_context - tx;
		th_check(k >= 0 && k < MANY && !seen[k]);
		seen[k] = true;
		th_check(err.flags & FI_SEND);
	}
	th_quiet(&a, 10);
	free(tx);
	th_stack_close(&a);
}

/*
 * The sender closes while its message waits: nothing of it can be fetched
 * any more, and the receiver goes on with others.
 */
static void sender_closes(struct th_self *self)
{
	unsigned char *tx = pattern_new(LEN, 1), *rx = malloc(LEN);
	struct th_stack a, b, c;
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	fi_addr_t to;
	int ret;

	(void)self;
	th_check(rx);
	th_pair_open(&a, &b, NULL);
	th_stack_open(&c, NULL);
	to = th_insert(&c, b.addr);
	th_tsend(&a, a.peers[1], tx, LEN, TAG, tx);
	th_quiet(&b, 5);
	b.buddy = &c;
	c.buddy = &b;
	close_at_once(&a);
	th_quiet(&b, 5);
	th_trecv(&b, rx, LEN, TAG, 0, rx);
	th_tsend(&c, to, tx, LEN, TAG, tx);
	ret = th_cq_next(&b, b.rxcq, &e, &err);
	if (ret == -FI_EAVAIL) {
		/* It had matched the dead one before the close was seen. */
		th_eq(err.err, FI_ECONNRESET);
		th_trecv(&b, rx, LEN, TAG, 0, rx);
		e = th_rx_ok(&b);
	}
	th_eq(e.len, LEN);
	th_verify(rx, LEN, 1);
	th_tx_ok(&c);
	free(tx);
	free(rx);
	th_pair_close(&b, &c);
}

/* Both close with messages held both ways; neither waits for the other. */
static void both_close(struct th_self *self)
{
	unsigned char *tx = pattern_new(LEN, 1);
	struct th_stack s;
	int i;

	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	for (i = 0; i < MANY; i++)
		th_tsend(&s, s.peers[!self->rank], tx, LEN, TAG, tx);
	th_barrier_progress(self, &s, "sent");
	close_at_once(&s);
	th_barrier(self, "closed");
	free(tx);
}

/*
 * The receiver closes in the middle of transfers. Each send ends exactly
 * once: success, or FI_ECONNRESET.
 */
static void receiver_closes_midway(struct th_self *self)
{
	enum { BIG = 8 << 20, N = 12 };
	unsigned char *tx = pattern_new(BIG, 1), *rx = malloc(BIG);
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	struct th_stack s;
	int i, ok = 0;

	th_check(rx);
	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	if (self->rank == 1) {
		for (i = 0; i < N; i++)
			th_trecv(&s, rx, BIG, TAG, 0, rx);
		th_barrier_progress(self, &s, "posted");
		for (i = 0; i < 4; i++)
			th_eq(th_rx_ok(&s).len, BIG);
		th_stack_close(&s);
	} else {
		th_barrier_progress(self, &s, "posted");
		for (i = 0; i < N; i++)
			th_tsend(&s, s.peers[1], tx, BIG, TAG, tx);
		for (i = 0; i < N; i++) {
			if (th_cq_next(&s, s.txcq, &e, &err) == 1)
				ok++;
			else
				th_eq(err.err, FI_ECONNRESET);
		}
		th_check(ok >= 4 && ok <= N);
		th_quiet(&s, 10);
		th_stack_close(&s);
	}
	free(tx);
	free(rx);
}

/* ---- cancelling ------------------------------------------------------------- */

/*
 * A receive that a held message has matched cannot be cancelled any more:
 * -FI_ENOENT, and it completes as if nothing had been asked.
 */
static void cancel_matched(struct th_self *self)
{
	unsigned char *tx = pattern_new(16 * LEN, 1), *rx = malloc(16 * LEN);
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	struct th_stack a, b;
	ssize_t ret;

	(void)self;
	th_check(rx);
	th_pair_open(&a, &b, NULL);
	th_tsend(&a, a.peers[1], tx, 16 * LEN, TAG, tx);
	th_quiet(&b, 10);
	th_trecv(&b, rx, 16 * LEN, TAG, 0, rx);
	ret = fi_cancel(&b.ep->fid, rx);
	if (th_is_shrimp())
		th_eq(ret, -FI_ENOENT);
	if (th_cq_next(&b, b.rxcq, &e, &err) == 1) {
		th_eq(e.len, 16 * LEN);
		th_verify(rx, 16 * LEN, 1);
		th_tx_ok(&a);
	} else {
		th_check(!th_is_shrimp());
		th_eq(err.err, FI_ECANCELED);
	}
	th_quiet(&b, 10);
	free(tx);
	free(rx);
	th_pair_close(&a, &b);
}

/*
 * A held send that is published cannot be cancelled; whatever fi_cancel()
 * says, there is exactly one entry, and it is told by the message's fate.
 */
static void cancel_send(struct th_self *self)
{
	unsigned char *tx = pattern_new(LEN, 1), *rx = malloc(LEN);
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	struct th_stack a, b;
	ssize_t ret;

	(void)self;
	th_check(rx);
	th_pair_open(&a, &b, NULL);
	th_tsend(&a, a.peers[1], tx, LEN, TAG, tx);
	th_quiet(&b, 10);
	ret = fi_cancel(&a.ep->fid, tx);
	if (th_is_shrimp())
		th_eq(ret, -FI_ENOENT);
	th_trecv(&b, rx, LEN, TAG, 0, rx);
	if (th_cq_next(&a, a.txcq, &e, &err) == 1) {
		th_rx_ok(&b);
		th_verify(rx, LEN, 1);
	} else {
		th_eq(err.err, FI_ECANCELED);
	}
	th_quiet(&a, 10);
	free(tx);
	free(rx);
	th_pair_close(&a, &b);
}

static const struct CMUnitTest held_tests[] = {
	TH_CASE(completes_with_match, 1, 10),
	TH_CASE(reverse_order, 1, 20),
	TH_CASE(truncated, 1, 10),
	TH_CASE(receiver_closes, 1, 10),
	TH_CASE(sender_closes, 1, 15),
	TH_CASE(both_close, 2, 20),
	TH_CASE(receiver_closes_midway, 2, 20),
	TH_CASE(cancel_matched, 1, 10),
	TH_CASE(cancel_send, 1, 10),
};

TH_MAIN(held_tests)
