/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Peers that close: what they sent before still arrives, what is under way
 * to them ends with FI_ECONNRESET, and nothing else notices.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <sys/uio.h>

enum { TAG = 151 };

static void put(struct th_stack *s, fi_addr_t to, uint64_t tag, uint64_t v)
{
	th_post(s, fi_tinject(s->ep, &v, 8, to, tag));
}

/* ---- T18: the sender leaves right after its completion ------------------------ */

enum { SENDERS = 3 };

struct t18 {
	size_t len;	    /* of each message */
	uint64_t flags;	    /* of fi_tsendmsg() */
	unsigned int times; /* messages of each sender */
};

static void t18_send(struct th_stack *s, const struct t18 *t, fi_addr_t to)
{
	unsigned char *tx = malloc(t->len);
	struct iovec iov = { tx, t->len };
	struct fi_msg_tagged m = { .msg_iov = &iov,
				   .iov_count = 1,
				   .addr = to,
				   .tag = TAG,
				   .context = tx };
	unsigned int i;

	th_check(tx);
	th_fill(tx, t->len, 1);
	for (i = 0; i < t->times; i++)
		th_post(s, fi_tsendmsg(s->ep, &m, t->flags));
	for (i = 0; i < t->times; i++)
		th_ptr_eq(th_tx_ok(s).op_context, tx);
	memset(tx, 0, t->len);
	th_stack_close(s);
	free(tx);
}

static void t18_recv(struct th_stack *s, const struct t18 *t)
{
	unsigned char *rx = malloc(t->len);
	unsigned int i;

	th_check(rx);
	for (i = 0; i < SENDERS * t->times; i++) {
		th_trecv(s, rx, t->len, TAG, 0, rx);
		th_eq(th_rx_ok(s).len, t->len);
		th_verify(rx, t->len, 1);
	}
	th_quiet(s, 1);
	free(rx);
	th_stack_close(s);
}

static void t18_main(struct th_self *self)
{
	const struct t18 *t = self->arg;
	char all[SENDERS + 1][TH_MAX_ADDR];
	struct th_stack s;

	th_stack_open(&s, NULL);
	th_gather(self, "addresses", s.addr, all, sizeof(s.addr));
	if (self->rank == SENDERS)
		t18_recv(&s, t);
	else
		t18_send(&s, t, th_insert(&s, all[SENDERS]));
}

static void t18_rounds(size_t len, uint64_t flags, unsigned int times)
{
	struct t18 t = { len, flags, times };
	unsigned long i, n = th_rounds(4);

	for (i = 0; i < n; i++)
		th_run(SENDERS + 1, t18_main, &t, 20);
}

static void case_T18_delivery_complete(void **state)
{
	(void)state;
	t18_rounds(16, FI_DELIVERY_COMPLETE, 1);
	t18_rounds(3000, FI_DELIVERY_COMPLETE, 4);
}

static void case_T18_default_level(void **state)
{
	(void)state;
	t18_rounds(16, 0, 1);
	t18_rounds(700, 0, 40);
	t18_rounds(3000, 0, 4);
}

static void case_T18_large(void **state)
{
	(void)state;
	t18_rounds(60000, 0, 3);
	t18_rounds(1 << 20, 0, 2);
}

/*
 * Injects have no completion to wait for: closing waits until they are safe,
 * also those that still queue at the sender.
 */
static void t18_inject_main(struct th_self *self)
{
	enum { N = 1000 };
	char all[2][TH_MAX_ADDR];
	unsigned char buf[4000];
	struct th_stack s;
	fi_addr_t to;
	uint64_t i;

	if (self->rank % 2)
		setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	th_stack_open(&s, NULL);
	th_gather(self, "addresses", s.addr, all, sizeof(s.addr));
	to = th_insert(&s, all[0]);
	for (i = 0; i < N; i++) {
		if (self->rank == 1) {
			th_fill(buf, sizeof(buf), i);
			th_post(&s, fi_tinject(s.ep, buf, i % 4000, to, TAG));
			continue;
		}
		th_trecv(&s, buf, sizeof(buf), TAG, 0, buf);
		th_eq(th_rx_ok(&s).len, i % 4000);
		th_verify(buf, i % 4000, i);
	}
	th_stack_close(&s);
}

static void case_T18_injects(struct th_self *self)
{
	t18_inject_main(self);
}

/* Living senders that open an endpoint, send once and close it, many times. */
static void t18_reopen_send(struct th_stack *base, const char *name,
			    unsigned long n)
{
	struct th_stack_opts o = { .domain_of = base };
	struct th_stack s;
	unsigned long i;
	fi_addr_t to;

	for (i = 0; i < n; i++) {
		th_stack_open(&s, &o);
		to = th_insert(&s, name);
		th_tsend(&s, to, &i, sizeof(i), TAG, &i);
		th_tx_ok(&s);
		th_stack_close(&s);
	}
}

static void case_T18_reopened_endpoints(struct th_self *self)
{
	unsigned long n = th_rounds(500), i, rx, sum = 0;
	char all[SENDERS + 1][TH_MAX_ADDR];
	struct th_stack s;

	th_stack_open(&s, NULL);
	th_gather(self, "addresses", s.addr, all, sizeof(s.addr));
	if (self->rank == SENDERS) {
		for (i = 0; i < SENDERS * n; i++) {
			th_trecv(&s, &rx, sizeof(rx), TAG, 0, &rx);
			th_eq(th_rx_ok(&s).len, sizeof(rx));
			sum += rx;
		}
		th_eq(sum, SENDERS * (n * (n - 1) / 2));
		th_quiet(&s, 10);
	} else {
		t18_reopen_send(&s, all[SENDERS], n);
	}
	th_stack_close(&s);
}

/* ---- P4, clean close ------------------------------------------------------------- */

static const struct th_stack_opts directed = {
	.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE,
};

/* A new send to a closed peer ends in FI_ECONNRESET, at the call or later. */
static void new_send_fails(struct th_stack *s, fi_addr_t to, size_t len)
{
	unsigned char *tx = calloc(1, len);
	struct fi_cq_err_entry err;
	ssize_t ret;

	th_check(tx);
	ret = fi_tsend(s->ep, tx, len, NULL, to, TAG, tx);
	if (ret) {
		th_eq(ret, -FI_ECONNRESET);
	} else {
		err = th_tx_err(s);
		th_eq(err.err, FI_ECONNRESET);
		th_ptr_eq(err.op_context, tx);
	}
	free(tx);
}

/* Takes @n entries of the transmit CQ: each a success or FI_ECONNRESET. */
static int count_resets(struct th_stack *s, int n)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	int resets = 0;

	for (; n; n--) {
		if (th_cq_next(s, s->txcq, &e, &err) == 1)
			continue;
		th_eq(err.err, FI_ECONNRESET);
		resets++;
	}
	return resets;
}

/*
 * Sends of all paths are under way to a peer that never polls, with lanes of
 * two lines so that most of them queue; it closes. Each ends exactly once;
 * receives, directed at the closed one too, stay; others are not disturbed.
 */
static void p4_survivor(struct th_self *self, struct th_stack *s)
{
	static const size_t lens[] = { 8, 3000, 200000 };
	unsigned char *tx = calloc(1, 200000);
	uint64_t rx[3];
	int i, resets;

	th_check(tx);
	th_post(s,
		fi_trecv(s->ep, &rx[0], 8, NULL, s->peers[1], TAG, 0, &rx[0]));
	th_post(s, fi_trecv(s->ep, &rx[1], 8, NULL, FI_ADDR_UNSPEC, TAG + 1, 0,
			    &rx[1]));
	for (i = 0; i < 90; i++)
		th_tsend(s, s->peers[1], tx, lens[i % 3], TAG, tx);
	th_barrier_progress(self, s, "sent");
	th_barrier_progress(self, s, "closed");
	resets = count_resets(s, 90);
	th_check(resets >= 30);
	new_send_fails(s, s->peers[1], 8);
	new_send_fails(s, s->peers[1], 1 << 20);
	th_quiet(s, 50);
	th_post(s,
		fi_trecv(s->ep, &rx[2], 8, NULL, s->peers[2], TAG, 0, &rx[2]));
	put(s, s->peers[2], TAG, 1);
	th_ptr_eq(th_rx_ok(s).op_context, &rx[2]);
	th_eq(rx[2], 2);
	th_ok(fi_cancel(&s->ep->fid, &rx[0]));
	th_eq(th_rx_err(s).err, FI_ECANCELED);
	put(s, s->peers[2], TAG, 3);
	th_ptr_eq(th_rx_ok(s).op_context, &rx[1]);
	free(tx);
}

static void p4_other(struct th_self *self, struct th_stack *s)
{
	uint64_t rx;

	th_barrier_progress(self, s, "sent");
	th_barrier_progress(self, s, "closed");
	th_trecv(s, &rx, 8, TAG, 0, &rx);
	th_rx_ok(s);
	put(s, s->peers[0], TAG, 2);
	th_trecv(s, &rx, 8, TAG, 0, &rx);
	th_rx_ok(s);
	put(s, s->peers[0], TAG + 1, 4);
}

static void contract_P4_clean_close(struct th_self *self)
{
	struct th_stack s;

	setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	th_stack_open(&s, &directed);
	th_stack_connect(&s, self);
	if (self->rank == 1) {
		th_barrier(self, "sent");
		th_stack_close(&s);
		th_barrier(self, "closed");
		th_barrier(self, "done");
		return;
	}
	if (self->rank == 0)
		p4_survivor(self, &s);
	else
		p4_other(self, &s);
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

/*
 * A process that ends normally after closing is no different from one that
 * closes and lives on; and one whose endpoint was reopened has a new name.
 */
static void contract_P4_close_and_exit(struct th_self *self)
{
	struct th_stack s;
	uint64_t rx = 0;

	th_stack_open(&s, &directed);
	th_stack_connect(&s, self);
	if (self->rank == 1) {
		put(&s, s.peers[0], TAG, 7);
		th_stack_close(&s);
		return;
	}
	th_sleep_us(300000);
	th_post(&s, fi_trecv(s.ep, &rx, 8, NULL, s.peers[1], TAG, 0, &rx));
	th_ptr_eq(th_rx_ok(&s).op_context, &rx);
	th_eq(rx, 7);
	new_send_fails(&s, s.peers[1], 8);
	new_send_fails(&s, s.peers[1], 100000);
	th_stack_close(&s);
}

/* Opens @s, and talks with the other one, which does the same. */
static void open_met(struct th_stack *s, struct th_self *self)
{
	uint64_t rx;

	th_stack_open(s, &directed);
	th_stack_connect(s, self);
	th_trecv(s, &rx, 8, TAG, 0, &rx);
	put(s, s->peers[!self->rank], TAG, 1);
	th_rx_ok(s);
	th_barrier_progress(self, s, "met");
}

/*
 * The same when both have talked before: what the other said last is heard
 * by receives that name it, though they are posted long after it is gone.
 */
static void contract_P4_last_words(struct th_self *self)
{
	enum { N = 20, LEN = 700 };
	unsigned char buf[LEN];
	struct th_stack s;
	uint64_t i;

	open_met(&s, self);
	if (self->rank == 1) {
		for (i = 0; i < N; i++) {
			th_fill(buf, LEN, i);
			th_tsend(&s, s.peers[0], buf, i % 2 ? LEN : 8, i, buf);
			th_tx_ok(&s);
		}
		th_stack_close(&s);
		return;
	}
	th_sleep_us(400000);
	for (i = N; i-- > 0;) {
		th_post(&s,
			fi_trecv(s.ep, buf, LEN, NULL, s.peers[1], i, 0, buf));
		th_eq(th_rx_ok(&s).len, i % 2 ? LEN : 8);
		th_verify(buf, i % 2 ? LEN : 8, i);
	}
	new_send_fails(&s, s.peers[1], 8);
	th_stack_close(&s);
}

/* Sends to @name and wants to hear that it was delivered. */
static void deliver(struct th_stack *s, const char *name, const void *buf,
		    size_t len)
{
	struct iovec v = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct fi_msg_tagged m = {
		.msg_iov = &v, .iov_count = 1, .tag = TAG, .context = &v
	};

	m.addr = th_insert(s, name);
	th_post(s,
		fi_tsendmsg(s->ep, &m, FI_DELIVERY_COMPLETE | FI_COMPLETION));
	th_ptr_eq(th_tx_ok(s).op_context, &v);
	th_eq(fi_av_remove(s->av, &m.addr, 1, 0), 0);
}

/*
 * Whoever has received may close: that the message was delivered is known to
 * its sender, who looks for it just then. These are more closed endpoints than
 * a device has places: one is waited for until the sender notices.
 */
static void contract_P4_received_then_closed(struct th_self *self)
{
	enum { LEN = 100000 };
	static const size_t len[] = { 8, 700, LEN };
	static unsigned char buf[LEN];
	struct th_stack base, s;
	struct th_stack_opts o = { .domain_of = &base };
	char all[2][TH_MAX_ADDR];

	th_stack_open(&base, NULL);
	for (unsigned long i = 0; i < th_rounds(600); i++) {
		s = base;
		if (self->rank == 1)
			th_stack_open(&s, &o);
		th_barrier_progress(self, &base, "open");
		th_gather(self, "name", s.addr, all, sizeof(s.addr));
		if (self->rank == 0) {
			deliver(&base, all[1], buf, len[i % 3]);
			continue;
		}
		th_trecv(&s, buf, LEN, TAG, 0, buf);
		th_eq(th_rx_ok(&s).len, len[i % 3]);
		th_stack_close(&s);
	}
	th_barrier_progress(self, &base, "done");
	th_stack_close(&base);
}

static void contract_P4_reopened_peer(struct th_self *self)
{
	char all[2][TH_MAX_ADDR];
	struct th_stack s;
	fi_addr_t fresh;
	uint64_t rx;

	open_met(&s, self);
	if (self->rank == 1) {
		th_stack_close(&s);
		th_stack_open(&s, &directed);
	}
	th_gather(self, "again", s.addr, all, sizeof(s.addr));
	fresh = th_insert(&s, all[!self->rank]);
	if (self->rank == 0)
		new_send_fails(&s, s.peers[1], 8);
	th_post(&s, fi_trecv(s.ep, &rx, 8, NULL, fresh, TAG, 0, &rx));
	put(&s, fresh, TAG, 2);
	th_ptr_eq(th_rx_ok(&s).op_context, &rx);
	th_eq(rx, 2);
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

/*
 * Closing does not wait for a peer that does nothing, if nothing of ours
 * needs it; and is bounded by the linger time if something does.
 */
static void close_is_bounded(struct th_self *self)
{
	unsigned char tx[4096] = { 0 };
	struct th_stack s;
	uint64_t start;
	int i;

	setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	setenv("FI_SHRIMP_LINGER", "1", 1);
	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	if (self->rank == 0) {
		for (i = 0; i < 200; i++)
			th_post(&s, fi_tinject(s.ep, tx, sizeof(tx), s.peers[1],
					       TAG));
		start = th_now_ns();
		th_stack_close(&s);
		th_check(th_now_ns() - start <
			 UINT64_C(4000000000) * th_time_scale());
		th_barrier(self, "closed");
	} else {
		th_barrier(self, "closed");
		th_stack_close(&s);
	}
}

static const struct CMUnitTest close_tests[] = {
	cmocka_unit_test(case_T18_delivery_complete),
	cmocka_unit_test(case_T18_default_level),
	cmocka_unit_test(case_T18_large),
	TH_CASE(case_T18_injects, 2, 20),
	TH_CASE(case_T18_reopened_endpoints, SENDERS + 1, 30),
	TH_CASE(contract_P4_clean_close, 3, 20),
	TH_CASE(contract_P4_close_and_exit, 2, 20),
	TH_CASE(contract_P4_last_words, 2, 20),
	TH_CASE(contract_P4_received_then_closed, 2, 60),
	TH_CASE(contract_P4_reopened_peer, 2, 20),
	TH_CASE(close_is_bounded, 2, 20),
};

TH_MAIN(close_tests)
