/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A write or read of one range by a key that is known takes a short way
 * through the library. Whatever it leaves to the long one must not be seen:
 * each case opens the short way first, then brings what is not its business.
 */
#define _GNU_SOURCE
#include "rma_kit.h"

#include <rdma/fi_atomic.h>

#include "env_probe.h"

enum {
	LEN = 1 << 20, /* bytes of the region */
	LONG = 600000, /* more than the short way moves */
	INJECT = 4096, /* most of an inject */
	CQ_MAX = 16,   /* entries that may be unread */
	BEHIND = 1000, /* messages that fill the lane */
	MSG = 60,      /* bytes of each */
	KNOWN = 2,     /* the first finds the key, the second is short */
};

/* Two stacks of a process, and memory of the second one. */
struct bed {
	struct th_stack a;  /* reads and writes */
	struct th_stack b;  /* owns */
	struct rk_mem m;    /* LEN bytes */
	struct fid_mr *mr;  /* all of it, as RK_KEY */
	unsigned char *buf; /* LEN bytes of @a */
};

static void bed_open(struct bed *t, const struct th_stack_opts *o, bool device)
{
	th_pair_open(&t->a, &t->b, o);
	t->m = rk_mem_new(&t->b, device, LEN);
	t->mr = rk_reg(&t->b, t->m.p, LEN, RK_RW, RK_KEY);
	t->buf = malloc(LEN);
	th_check(t->buf != NULL);
}

/* @cntr: bound to an endpoint, or NULL. */
static void bed_close(struct bed *t, struct fid_cntr *cntr)
{
	if (t->mr)
		th_ok(fi_close(&t->mr->fid));
	rk_mem_free(&t->m);
	free(t->buf);
	if (cntr) {
		th_ok(fi_close(&t->a.ep->fid));
		th_ok(fi_close(&t->b.ep->fid));
		t->a.ep = t->b.ep = NULL;
		th_ok(fi_close(&cntr->fid));
	}
	th_pair_close(&t->a, &t->b);
}

static ssize_t put(struct bed *t, size_t len, uint64_t off)
{
	return fi_write(t->a.ep, t->buf, len, NULL, t->a.peers[1], off, RK_KEY,
			t->buf);
}

static ssize_t get(struct bed *t, size_t len, uint64_t off)
{
	return fi_read(t->a.ep, t->buf, len, NULL, t->a.peers[1], off, RK_KEY,
		       t->buf);
}

/* Opens the short way, and looks what it moves. */
static void warm(struct bed *t)
{
	for (uint64_t i = 1; i <= KNOWN; i++) {
		th_fill(t->buf, 64, i);
		th_ok(put(t, 64, 8));
		rk_done(&t->a, FI_WRITE, t->buf);
		th_verify(t->m.p + 8, 64, i);
		memset(t->buf, 0, 64);
		th_ok(get(t, 64, 8));
		rk_done(&t->a, FI_READ, t->buf);
		th_verify(t->buf, 64, i);
	}
	memset(t->m.p, 0, 128);
}

/* What was done by now, by either way. */
static uint64_t ops_of(struct bed *t, bool bytes)
{
	struct fi_shrimp_stats st = probe_stats(&t->a.domain->fid);
	const uint64_t *n = bytes ? st.rma_bytes : st.rma_ops;

	return n[FI_SHRIMP_REACH_MAPPED] + n[FI_SHRIMP_REACH_CMA];
}

/* ---- what is refused ---------------------------------------------------- */

static void bounds(struct bed *t)
{
	th_ok(put(t, 2, LEN - 1));
	rk_refused(&t->a, FI_EINVAL, RK_KEY, LEN - 1, 2);
	th_ok(get(t, 1, LEN));
	rk_refused(&t->a, FI_EINVAL, RK_KEY, LEN, 1);
	th_ok(put(t, 16, UINT64_MAX - 3));
	rk_refused(&t->a, FI_EINVAL, RK_KEY, UINT64_MAX - 3, 16);
	th_ok(put(t, 0, LEN));
	rk_done(&t->a, FI_WRITE, t->buf);
	th_eq(fi_inject_write(t->a.ep, t->buf, INJECT + 1, t->a.peers[1], 0,
			      RK_KEY),
	      -FI_EINVAL);
	th_verify_byte(t->m.p, LEN, 0);
}

/* The key is closed; another region has it, for reading; and it is open. */
static void keys(struct bed *t)
{
	th_ok(fi_close(&t->mr->fid));
	th_ok(put(t, 64, 0));
	rk_refused(&t->a, FI_EKEYREJECTED, RK_KEY, 0, 64);
	th_ok(get(t, 64, 0));
	rk_refused(&t->a, FI_EKEYREJECTED, RK_KEY, 0, 64);
	t->mr = rk_reg(&t->b, t->m.p, LEN, FI_REMOTE_READ, RK_KEY);
	for (int i = 0; i < KNOWN; i++) {
		th_ok(get(t, 64, 0));
		rk_done(&t->a, FI_READ, t->buf);
		th_ok(put(t, 64, 0));
		rk_refused(&t->a, FI_EACCES, RK_KEY, 0, 64);
	}
	th_verify_byte(t->m.p, LEN, 0);
	th_ok(fi_close(&t->mr->fid));
	t->mr = rk_reg(&t->b, t->m.p, LEN, RK_RW, RK_KEY);
	warm(t);
}

static void refusals(bool device)
{
	struct th_stack_opts o = rk_opts();
	struct bed t;

	bed_open(&t, &o, device);
	warm(&t);
	bounds(&t);
	keys(&t);
	bed_close(&t, NULL);
}

static void contract_I2_known_device(struct th_self *self)
{
	(void)self;
	refusals(true);
}

static void contract_I2_known_private(struct th_self *self)
{
	(void)self;
	refusals(false);
}

/* A page that is gone: what lies before it is written, and counted. */
static void contract_I2_known_unmapped(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct rk_outcome e;
	struct bed t;

	(void)self;
	bed_open(&t, &o, false);
	warm(&t);
	rk_take_away(t.m.p + RK_PAGE, RK_PAGE);
	th_fill(t.buf, 128, 5);
	th_ok(put(&t, 128, RK_PAGE - 64));
	e = rk_end(&t.a);
	th_eq(e.err, FI_EFAULT);
	th_eq(e.moved, 64);
	th_verify(t.m.p + RK_PAGE - 64, 64, 5);
	th_ok(get(&t, 8, RK_PAGE));
	th_eq(rk_end(&t.a).err, FI_EFAULT);
	rk_map_again(t.m.p + RK_PAGE, RK_PAGE);
	th_ok(put(&t, 128, RK_PAGE - 64));
	rk_done(&t.a, FI_WRITE, t.buf);
	th_verify(t.m.p + RK_PAGE - 64, 128, 5);
	bed_close(&t, NULL);
}

/* ---- every call --------------------------------------------------------- */

static void message(struct bed *t, size_t len, uint64_t flags)
{
	struct iovec iov = { t->buf, len };
	struct fi_rma_iov there = { 0, len, RK_KEY };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.iov_count = 1,
				.rma_iov = &there,
				.rma_iov_count = 1,
				.addr = t->a.peers[1],
				.context = t->buf };

	th_fill(t->buf, len, len + flags);
	th_ok(fi_writemsg(t->a.ep, &m, flags));
	rk_done(&t->a, FI_WRITE, t->buf);
	th_verify(t->m.p, len, len + flags);
	if (flags & FI_INJECT)
		return;
	memset(t->buf, 0, len);
	th_ok(fi_readmsg(t->a.ep, &m, flags));
	rk_done(&t->a, FI_READ, t->buf);
	th_verify(t->buf, len, len + flags);
	there.len++;
	th_eq(fi_writemsg(t->a.ep, &m, flags), -FI_EINVAL);
}

/* Each is counted once, whichever way it takes. */
static void calls(bool device)
{
	static const size_t lens[] = { 1, 64, INJECT, 65536, LONG };
	struct th_stack_opts o = rk_opts();
	uint64_t ops, bytes;
	struct bed t;

	bed_open(&t, &o, device);
	warm(&t);
	for (int i = 0; i < 5; i++) {
		ops = ops_of(&t, false);
		bytes = ops_of(&t, true);
		message(&t, lens[i], FI_COMPLETION);
		message(&t, lens[i], FI_FENCE | FI_DELIVERY_COMPLETE);
		th_eq(ops_of(&t, false) - ops, 4);
		th_eq(ops_of(&t, true) - bytes, 4 * lens[i]);
		if (lens[i] > INJECT)
			continue;
		message(&t, lens[i], FI_INJECT);
		th_fill(t.buf, lens[i], 9);
		th_ok(fi_inject_write(t.a.ep, t.buf, lens[i], t.a.peers[1], 1,
				      RK_KEY));
		th_verify(t.m.p + 1, lens[i], 9);
		th_eq(ops_of(&t, false) - ops, 6);
	}
	th_eq(fi_cq_read(t.a.txcq, t.buf, 1), -FI_EAGAIN);
	bed_close(&t, NULL);
}

static void calls_device(struct th_self *self)
{
	(void)self;
	calls(true);
}

static void calls_private(struct th_self *self)
{
	(void)self;
	calls(false);
}

/* ---- who is told -------------------------------------------------------- */

/* The peer begins to count, and data are to be told before. */
static void the_peer_is_told(struct th_self *self)
{
	enum { N = 10 };
	struct th_stack_opts o = rk_opts();
	struct fid_cntr *c;
	struct bed t;

	(void)self;
	o.caps |= FI_RMA_EVENT;
	bed_open(&t, &o, true);
	warm(&t);
	for (uint64_t i = 0; i < N; i++) {
		th_ok(fi_writedata(t.a.ep, t.buf, 8, NULL, i, t.a.peers[1], 0,
				   RK_KEY, t.buf));
		rk_done(&t.a, FI_WRITE, t.buf);
		th_eq(th_rx_ok(&t.b).data, i);
		message(&t, 8, FI_REMOTE_CQ_DATA | FI_INJECT);
		th_eq(th_rx_ok(&t.b).len, 8);
	}
	c = rk_cntr(&t.b, FI_WAIT_NONE, FI_REMOTE_WRITE);
	for (uint64_t i = 0; i < N; i++) {
		th_ok(put(&t, 8, 0));
		rk_done(&t.a, FI_WRITE, t.buf);
		th_ok(get(&t, 8, 0));
		rk_done(&t.a, FI_READ, t.buf);
		th_ok(fi_inject_write(t.a.ep, t.buf, 8, t.a.peers[1], 0,
				      RK_KEY));
	}
	th_cntr_reach(&t.b, c, 2 * N);
	th_quiet(&t.b, 5);
	th_eq(fi_cntr_read(c), 2 * N);
	bed_close(&t, c);
}

/* Entries on request only; the counter counts all. */
static void told_on_request(struct th_self *self)
{
	enum { N = 10 };
	struct th_stack_opts o = rk_opts();
	struct fid_cntr *c;
	struct bed t;

	(void)self;
	o.tx_bind = FI_SELECTIVE_COMPLETION;
	bed_open(&t, &o, false);
	c = rk_cntr(&t.a, FI_WAIT_NONE, FI_WRITE);
	for (int i = 0; i < N; i++) {
		th_ok(put(&t, 8, 0));
		th_ok(fi_inject_write(t.a.ep, t.buf, 8, t.a.peers[1], 0,
				      RK_KEY));
		th_eq(fi_cntr_read(c), 3 * i + 2);
		th_eq(fi_cq_read(t.a.txcq, t.buf, 1), -FI_EAGAIN);
		message(&t, 8, FI_COMPLETION | FI_INJECT);
	}
	bed_close(&t, c);
}

/* ---- what has to wait --------------------------------------------------- */

/* Nobody reads the entries: the call says so, and nothing is moved. */
static void contract_P2_unread(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct bed t;

	(void)self;
	th_ok(setenv("FI_SHRIMP_CQ_MAX", "16", 1));
	bed_open(&t, &o, true);
	warm(&t);
	for (int i = 0; i < CQ_MAX; i++)
		th_ok(put(&t, 64, 8));
	memset(t.buf, 7, 64);
	th_eq(put(&t, 64, 128), -FI_EAGAIN);
	th_eq(get(&t, 64, 8), -FI_EAGAIN);
	th_eq(fi_inject_write(t.a.ep, t.buf, 64, t.a.peers[1], 128, RK_KEY),
	      -FI_EAGAIN);
	th_verify_byte(t.m.p + 128, 64, 0);
	th_verify_byte(t.buf, 64, 7);
	for (int i = 0; i < CQ_MAX; i++)
		rk_done(&t.a, FI_WRITE, t.buf);
	warm(&t);
	bed_close(&t, NULL);
}

/* Messages wait for room in the lane: a write stays behind them. */
static void contract_P5_known_behind_messages(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	static char msg[BEHIND][MSG];
	struct bed t;

	(void)self;
	bed_open(&t, &o, true);
	warm(&t);
	for (int i = 0; i < BEHIND; i++)
		th_recv(&t.b, msg[i], MSG, NULL);
	for (int i = 0; i < BEHIND; i++)
		th_send(&t.a, t.a.peers[1], msg[i], MSG, NULL);
	memset(t.buf, 1, 8);
	th_ok(put(&t, 8, 0));
	th_ok(fi_inject_write(t.a.ep, t.buf, 8, t.a.peers[1], 8, RK_KEY));
	/* @b has done nothing so far: the lane is full */
	th_verify_byte(t.m.p, 16, 0);
	for (int i = 0; i < BEHIND; i++)
		th_check(th_rx_ok(&t.b).flags & FI_RECV);
	for (int i = 0; i < BEHIND + 1; i++)
		th_tx_ok(&t.a);
	th_verify_byte(t.m.p, 16, 1);
	warm(&t);
	bed_close(&t, NULL);
}

/* The owner has yet to change a word: a write of it comes after that. */
static void contract_P5_known_behind_atomics(struct th_self *self)
{
	struct th_stack_opts o = rk_atomic_opts();
	uint64_t *word, one = 1, two = 2, got;
	struct bed t;

	(void)self;
	bed_open(&t, &o, false);
	word = (uint64_t *)(void *)t.buf;
	warm(&t);
	for (unsigned long i = 0; i < th_rounds(500); i++) {
		*word = two;
		th_ok(fi_atomic(t.a.ep, &one, 1, NULL, t.a.peers[1], 0, RK_KEY,
				FI_UINT64, FI_ATOMIC_WRITE, &one));
		th_ok(put(&t, 8, 0));
		th_check(!rk_end(&t.a).err && !rk_end(&t.a).err);
		memcpy(&got, t.m.p, sizeof(got));
		th_eq(got, two);
	}
	bed_close(&t, NULL);
}

static const struct CMUnitTest rma_quick[] = {
	TH_CASE(contract_I2_known_device, 1, 20),
	TH_CASE(contract_I2_known_private, 1, 20),
	TH_CASE(contract_I2_known_unmapped, 1, 20),
	TH_CASE(calls_device, 1, 20),
	TH_CASE(calls_private, 1, 20),
	TH_CASE(the_peer_is_told, 1, 20),
	TH_CASE(told_on_request, 1, 20),
	TH_CASE(contract_P2_unread, 1, 20),
	TH_CASE(contract_P5_known_behind_messages, 1, 20),
	TH_CASE(contract_P5_known_behind_atomics, 1, 30),
};

TH_MAIN(rma_quick)
