/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * When a send is complete (the completion levels), whether it says so
 * (selective completion), whether its buffer is free (FI_INJECT), and what
 * waits for it (FI_FENCE).
 */
#define _GNU_SOURCE
#include "harness.h"

#include <sys/uio.h>

enum { TAG = 51, LONGEST = 2 << 20 };

static const size_t lens[] = { 0,    8,	    40,	     500,    1024,
			       4096, 30000, 1 << 20, LONGEST };
enum { NLENS = sizeof(lens) / sizeof(lens[0]) };

static ssize_t sendmsg_flags(struct th_stack *s, fi_addr_t to, void *buf,
			     size_t len, bool tagged, uint64_t flags)
{
	struct iovec iov = { buf, len };
	struct fi_msg_tagged t = { .msg_iov = &iov,
				   .iov_count = 1,
				   .addr = to,
				   .tag = TAG,
				   .context = buf };
	struct fi_msg m = {
		.msg_iov = &iov, .iov_count = 1, .addr = to, .context = buf
	};

	return tagged ? fi_tsendmsg(s->ep, &t, flags)
		      : fi_sendmsg(s->ep, &m, flags);
}

static void post(struct th_stack *s, void *buf, size_t len, bool tagged)
{
	if (tagged)
		th_trecv(s, buf, len, TAG, 0, buf);
	else
		th_recv(s, buf, len, buf);
}

/* ---- levels ------------------------------------------------------------ */

static const uint64_t levels[] = {
	0,
	FI_INJECT_COMPLETE,
	FI_TRANSMIT_COMPLETE,
	FI_DELIVERY_COMPLETE,
};

enum { NLEVELS = sizeof(levels) / sizeof(levels[0]) };

/* One message at one level, its receive posted before or after. */
static void level_once(struct th_stack *a, struct th_stack *b, size_t len,
		       int how, uint64_t level, unsigned char *tx)
{
	struct th_buf rx = th_buf_new(len);
	bool tagged = how & 1, late = how & 2;

	th_fill(tx, len, len);
	if (!late)
		post(b, rx.p, rx.len, tagged);
	th_post(a, sendmsg_flags(a, a->peers[1], tx, len, tagged, level));
	if (late) {
		th_quiet(b, 2);
		post(b, rx.p, rx.len, tagged);
	}
	th_ptr_eq(th_tx_ok(a).op_context, tx);
	memset(tx, 0, len);
	th_eq(th_rx_ok(b).len, len);
	th_verify(rx.p, len, len);
	th_buf_free(&rx);
}

/* Every level, size, kind and order: one entry, and then the buffer is free. */
static void all_levels(struct th_self *self)
{
	unsigned char *tx = malloc(LONGEST);
	struct th_stack a, b;
	int i, how, l;

	(void)self;
	th_check(tx);
	th_pair_open(&a, &b, NULL);
	for (l = 0; l < NLEVELS; l++)
		for (i = 0; i < NLENS; i++)
			for (how = 0; how < 4; how++)
				level_once(&a, &b, lens[i], how, levels[l], tx);
	th_quiet(&a, 5);
	free(tx);
	th_pair_close(&a, &b);
}

/* As defaults of the endpoint: echoed by fi_getinfo() and obeyed. */
static void level_as_op_flag(struct th_self *self)
{
	unsigned char *tx = malloc(LONGEST), *rx = malloc(LONGEST);
	struct th_stack_opts o = { 0 };
	struct th_stack a, b;
	int i, l;

	(void)self;
	th_check(tx && rx);
	for (l = 1; l < NLEVELS; l++) {
		o.tx_op_flags = levels[l];
		th_pair_open(&a, &b, &o);
		th_check(a.info->tx_attr->op_flags & levels[l]);
		for (i = 0; i < NLENS; i++) {
			th_fill(tx, lens[i], 1);
			th_tsend(&a, a.peers[1], tx, lens[i], TAG, tx);
			th_quiet(&b, 2);
			th_trecv(&b, rx, LONGEST, TAG, 0, rx);
			th_tx_ok(&a);
			memset(tx, 0, lens[i]);
			th_rx_ok(&b);
			th_verify(rx, lens[i], 1);
		}
		th_pair_close(&a, &b);
	}
	free(tx);
	free(rx);
}

/*
 * FI_MATCH_COMPLETE: not before the receive is posted, however long the
 * receiver has been polling; then at once.
 */
static void match_complete(struct th_self *self)
{
	unsigned char *tx = malloc(LONGEST), *rx = malloc(LONGEST);
	struct th_stack a, b;
	int i;

	(void)self;
	th_check(tx && rx);
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < NLENS; i++) {
		th_fill(tx, lens[i], 1);
		th_post(&a, sendmsg_flags(&a, a.peers[1], tx, lens[i], true,
					  FI_MATCH_COMPLETE));
		th_quiet(&b, 5);
		th_quiet(&a, 5);
		th_trecv(&b, rx, LONGEST, TAG, 0, rx);
		th_eq(th_rx_ok(&b).len, lens[i]);
		th_verify(rx, lens[i], 1);
		th_ptr_eq(th_tx_ok(&a).op_context, tx);
	}
	free(tx);
	free(rx);
	th_pair_close(&a, &b);
}

/* FI_MATCH_COMPLETE ends when the message is discarded, too. */
static void match_complete_discard(struct th_self *self)
{
	struct fi_msg_tagged m = { .tag = TAG, .addr = FI_ADDR_UNSPEC };
	unsigned char *tx = malloc(LONGEST);
	struct th_stack a, b;
	int i;

	(void)self;
	th_check(tx);
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < NLENS; i++) {
		th_post(&a, sendmsg_flags(&a, a.peers[1], tx, lens[i], true,
					  FI_MATCH_COMPLETE));
		th_quiet(&b, 5);
		m.context = &b;
		th_post(&b, fi_trecvmsg(b.ep, &m, FI_PEEK | FI_DISCARD));
		th_ptr_eq(th_rx_ok(&b).op_context, &b);
		th_ptr_eq(th_tx_ok(&a).op_context, tx);
	}
	free(tx);
	th_pair_close(&a, &b);
}

/*
 * FI_DELIVERY_COMPLETE of a message that the receiver has not even looked
 * at: nothing has been processed there, so nothing is complete.
 */
static void delivery_needs_receiver(struct th_self *self)
{
	unsigned char *tx = malloc(LONGEST), *rx = malloc(LONGEST);
	struct th_stack a, b;
	int i;

	(void)self;
	th_check(tx && rx);
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < NLENS; i++) {
		a.buddy = NULL;
		th_post(&a, sendmsg_flags(&a, a.peers[1], tx, lens[i], true,
					  FI_DELIVERY_COMPLETE));
		th_quiet(&a, 10);
		a.buddy = &b;
		th_trecv(&b, rx, LONGEST, TAG, 0, rx);
		th_tx_ok(&a);
		th_rx_ok(&b);
	}
	free(tx);
	free(rx);
	th_pair_close(&a, &b);
}

/* ---- selective completion ------------------------------------------------ */

/*
 * Sends five ways. Expected entries at the sender, in order, by what the
 * endpoint was bound and opened with.
 */
static void selective_sends(struct th_stack *a, char *ctx)
{
	th_send(a, a->peers[1], NULL, 0, &ctx[0]);
	th_post(a, fi_inject(a->ep, NULL, 0, a->peers[1]));
	th_post(a, sendmsg_flags(a, a->peers[1], &ctx[2], 1, false, 0));
	th_post(a, sendmsg_flags(a, a->peers[1], &ctx[3], 1, false,
				 FI_COMPLETION));
	th_post(a, sendmsg_flags(a, a->peers[1], &ctx[4], 1, false, FI_INJECT));
}

static void selective_case(uint64_t bind, uint64_t op_flags, const char *expect)
{
	struct th_stack_opts o = { .tx_bind = bind, .tx_op_flags = op_flags };
	struct th_stack a, b;
	char ctx[5], rx[5];
	int i;

	th_pair_open(&a, &b, &o);
	for (i = 0; i < 5; i++)
		th_recv(&b, &rx[i], 1, &rx[i]);
	selective_sends(&a, ctx);
	for (i = 0; i < 5; i++)
		th_ptr_eq(th_rx_ok(&b).op_context, &rx[i]);
	for (i = 0; i < 5; i++)
		if (expect[i] == 'x')
			th_ptr_eq(th_tx_ok(&a).op_context, &ctx[i]);
	th_quiet(&a, 10);
	th_pair_close(&a, &b);
}

static void selective_transmit(struct th_self *self)
{
	(void)self;
	selective_case(0, 0, "x-xxx");
	selective_case(FI_SELECTIVE_COMPLETION, 0, "---x-");
	selective_case(FI_SELECTIVE_COMPLETION, FI_COMPLETION, "x--x-");
}

static void selective_receive_case(uint64_t op_flags, const char *expect)
{
	struct th_stack_opts o = { .rx_bind = FI_SELECTIVE_COMPLETION,
				   .rx_op_flags = op_flags };
	struct fi_msg m = { .addr = FI_ADDR_UNSPEC };
	struct th_stack a, b;
	char ctx[3];
	int i;

	th_pair_open(&a, &b, &o);
	th_recv(&b, NULL, 0, &ctx[0]);
	m.context = &ctx[1];
	th_post(&b, fi_recvmsg(b.ep, &m, 0));
	m.context = &ctx[2];
	th_post(&b, fi_recvmsg(b.ep, &m, FI_COMPLETION));
	for (i = 0; i < 3; i++)
		th_post(&a, fi_inject(a.ep, NULL, 0, a.peers[1]));
	for (i = 0; i < 3; i++)
		if (expect[i] == 'x')
			th_ptr_eq(th_rx_ok(&b).op_context, &ctx[i]);
	th_quiet(&b, 10);
	th_pair_close(&a, &b);
}

static void selective_receive(struct th_self *self)
{
	(void)self;
	selective_receive_case(0, "--x");
	selective_receive_case(FI_COMPLETION, "x-x");
}

/* Errors are reported though no success would be. */
static void selective_errors(struct th_self *self)
{
	struct th_stack_opts o = { .rx_bind = FI_SELECTIVE_COMPLETION };
	struct th_stack a, b;
	uint64_t v = 1;
	char rx[2];

	(void)self;
	th_pair_open(&a, &b, &o);
	th_recv(&b, &rx[0], 1, &rx[0]);
	th_post(&a, fi_inject(a.ep, &v, 8, a.peers[1]));
	th_eq(th_rx_err(&b).err, FI_ETRUNC);
	th_recv(&b, &rx[1], 1, &rx[1]);
	th_ok(fi_cancel(&b.ep->fid, &rx[1]));
	th_eq(th_rx_err(&b).err, FI_ECANCELED);
	th_quiet(&b, 5);
	th_pair_close(&a, &b);
}

static uint64_t op_flags(struct th_stack *s, uint64_t dir)
{
	uint64_t flags = dir;

	th_ok(fi_control(&s->ep->fid, FI_GETOPSFLAG, &flags));
	return flags;
}

/* The defaults can be read and changed while the endpoint is in use. */
static void op_flags_by_control(struct th_self *self)
{
	struct th_stack_opts o = { .tx_bind = FI_SELECTIVE_COMPLETION,
				   .rx_op_flags = FI_COMPLETION };
	uint64_t flags = FI_TRANSMIT | FI_COMPLETION;
	struct th_stack a, b;
	char rx[2];

	(void)self;
	th_pair_open(&a, &b, &o);
	th_check(!(op_flags(&a, FI_TRANSMIT) & FI_COMPLETION));
	th_check(op_flags(&a, FI_RECV) & FI_COMPLETION);
	th_recv(&b, &rx[0], 1, &rx[0]);
	th_send(&a, a.peers[1], rx, 1, &rx[0]);
	th_rx_ok(&b);
	th_quiet(&a, 5);
	th_ok(fi_control(&a.ep->fid, FI_SETOPSFLAG, &flags));
	th_check(op_flags(&a, FI_TRANSMIT) & FI_COMPLETION);
	th_recv(&b, &rx[1], 1, &rx[1]);
	th_send(&a, a.peers[1], rx, 1, &rx[1]);
	th_rx_ok(&b);
	th_ptr_eq(th_tx_ok(&a).op_context, &rx[1]);
	th_pair_close(&a, &b);
}

/* ---- FI_INJECT --------------------------------------------------------------- */

/*
 * The buffer is overwritten as soon as the call is back: with each level,
 * and with so many messages under way that they queue at the sender.
 */
static void case_T17_sendmsg_inject(struct th_self *self)
{
	enum { N = 3000, MAX = 4096 };
	unsigned char tx[MAX], rx[MAX];
	struct th_stack a, b;
	uint64_t seed = 3;
	size_t len;
	int i;

	(void)self;
	if (th_is_shrimp())
		setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	th_pair_open(&a, &b, NULL);
	th_check(a.info->tx_attr->inject_size >= 64);
	a.buddy = NULL;
	for (i = 0; i < N; i++) {
		len = 1 + th_random(&seed) % MAX;
		if (len > a.info->tx_attr->inject_size)
			len = a.info->tx_attr->inject_size;
		th_fill(tx, len, (uint64_t)i);
		th_ok(sendmsg_flags(&a, a.peers[1], tx, len, true,
				    FI_INJECT | levels[i % NLEVELS]));
		memset(tx, 0x77, len);
	}
	a.buddy = &b;
	for (i = 0; i < N; i++) {
		th_trecv(&b, rx, sizeof(rx), TAG, 0, rx);
		len = th_rx_ok(&b).len;
		th_verify(rx, len, (uint64_t)i);
	}
	for (i = 0; i < N; i++)
		th_ptr_eq(th_tx_ok(&a).op_context, tx);
	th_pair_close(&a, &b);
}

/* FI_INJECT as a default of the endpoint goes for fi_tsend(), too. */
static void inject_as_op_flag(struct th_self *self)
{
	struct th_stack_opts o = { .tx_op_flags = FI_INJECT };
	struct th_stack a, b;
	uint64_t v, rx, i;

	(void)self;
	th_pair_open(&a, &b, &o);
	for (i = 0; i < 300; i++) {
		v = i;
		th_tsend(&a, a.peers[1], &v, 8, TAG, &v);
		v = ~i;
	}
	for (i = 0; i < 300; i++) {
		th_trecv(&b, &rx, 8, TAG, 0, &rx);
		th_rx_ok(&b);
		th_eq(rx, i);
		th_tx_ok(&a);
	}
	th_pair_close(&a, &b);
}

/* ---- FI_FENCE, FI_MORE --------------------------------------------------------- */

/*
 * A fenced message, and what is behind it, wait for all earlier ones to the
 * same peer, and not for those to another.
 */
static void fence(struct th_self *self)
{
	struct th_stack_opts o = { .caps = FI_MSG | FI_TAGGED | FI_FENCE };
	unsigned char *tx = malloc(LONGEST), *rx = malloc(LONGEST);
	struct th_stack a, b, c;
	fi_addr_t to_c;
	char byte = 1, r[3];

	(void)self;
	th_check(tx && rx);
	th_pair_open(&a, &b, &o);
	th_stack_open(&c, &o);
	to_c = th_insert(&a, c.addr);
	b.buddy = &c;
	c.buddy = &a;
	th_recv(&b, &r[0], 1, &r[0]);
	th_recv(&b, &r[1], 1, &r[1]);
	th_recv(&c, &r[2], 1, &r[2]);
	th_tsend(&a, a.peers[1], tx, LONGEST, TAG, tx);
	th_post(&a, sendmsg_flags(&a, a.peers[1], &byte, 1, false, FI_FENCE));
	th_post(&a, fi_inject(a.ep, &byte, 1, a.peers[1]));
	th_post(&a, fi_inject(a.ep, &byte, 1, to_c));
	th_ptr_eq(th_rx_ok(&c).op_context, &r[2]);
	th_quiet(&b, 20);
	th_trecv(&b, rx, LONGEST, TAG, 0, rx);
	th_ptr_eq(th_rx_ok(&b).op_context, rx);
	th_ptr_eq(th_rx_ok(&b).op_context, &r[0]);
	th_ptr_eq(th_rx_ok(&b).op_context, &r[1]);
	th_ptr_eq(th_tx_ok(&a).op_context, tx);
	th_ptr_eq(th_tx_ok(&a).op_context, &byte);
	free(tx);
	free(rx);
	th_pair_close(&a, &b);
	th_stack_close(&c);
}

/* FI_MORE is a hint: all arrive, in order, once the series is ended. */
static void more(struct th_self *self)
{
	unsigned char tx[16][64], rx[64];
	struct th_stack a, b;
	int i;

	(void)self;
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < 16; i++) {
		th_fill(tx[i], sizeof(tx[i]), (uint64_t)i);
		th_post(&a, sendmsg_flags(&a, a.peers[1], tx[i], 64, true,
					  i < 15 ? FI_MORE : 0));
	}
	for (i = 0; i < 16; i++) {
		th_trecv(&b, rx, sizeof(rx), TAG, 0, rx);
		th_rx_ok(&b);
		th_verify(rx, 64, (uint64_t)i);
		th_ptr_eq(th_tx_ok(&a).op_context, tx[i]);
	}
	th_pair_close(&a, &b);
}

static const struct CMUnitTest completion_tests[] = {
	TH_CASE(all_levels, 1, 20),
	TH_CASE(level_as_op_flag, 1, 20),
	TH_CASE(match_complete, 1, 10),
	TH_CASE(match_complete_discard, 1, 10),
	TH_CASE(delivery_needs_receiver, 1, 10),
	TH_CASE(selective_transmit, 1, 10),
	TH_CASE(selective_receive, 1, 10),
	TH_CASE(selective_errors, 1, 10),
	TH_CASE(op_flags_by_control, 1, 10),
	TH_CASE(case_T17_sendmsg_inject, 1, 10),
	TH_CASE(inject_as_op_flag, 1, 10),
	TH_CASE(fence, 1, 10),
	TH_CASE(more, 1, 10),
};

TH_MAIN(completion_tests)
