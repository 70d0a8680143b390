/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Messages of an endpoint to itself, its address vector holding nobody else.
 */
#define _GNU_SOURCE
#include "harness.h"

enum { TAG = 141 };

static const size_t lens[] = { 0,    1,	    40,	     41,      1024,    1025,
			       4096, 65536, 1048576, 8388608, 67108864 };
enum { NLENS = sizeof(lens) / sizeof(lens[0]) };

static void self_open(struct th_stack *s)
{
	struct th_stack_opts o = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE |
					   FI_DIRECTED_RECV };

	th_stack_open(s, &o);
	s->peers = calloc(2, sizeof(*s->peers));
	th_check(s->peers);
	s->peers[0] = s->peers[1] = th_insert(s, s->addr);
}

static void post(struct th_stack *s, struct th_buf *b, bool tagged)
{
	if (tagged)
		th_trecv(s, b->p, b->len, TAG, 0, b->p);
	else
		th_recv(s, b->p, b->len, b->p);
}

static void send_to_self(struct th_stack *s, void *buf, size_t len, bool tagged)
{
	if (tagged)
		th_tsend(s, s->peers[0], buf, len, TAG, buf);
	else
		th_send(s, s->peers[0], buf, len, buf);
}

/* One size: received before and after the send, tagged and not. */
static void one_size(struct th_stack *s, size_t len)
{
	unsigned char *tx = malloc(len + 1);
	struct th_buf rx = th_buf_new(len);
	fi_addr_t src;
	int how;

	th_check(tx);
	for (how = 0; how < 4; how++) {
		th_fill(tx, len, len + (unsigned)how);
		if (how & 1)
			post(s, &rx, how & 2);
		send_to_self(s, tx, len, how & 2);
		if (!(how & 1))
			post(s, &rx, how & 2);
		th_eq(th_rx_from(s, &src).len, len);
		th_eq(src, s->peers[0]);
		th_ptr_eq(th_tx_ok(s).op_context, tx);
		th_verify(rx.p, len, len + (unsigned)how);
		th_buf_check(&rx);
	}
	free(tx);
	th_buf_free(&rx);
}

static void case_T24_all_sizes(struct th_self *self)
{
	size_t most = th_sanitized() ? 8 << 20 : SIZE_MAX;
	struct th_stack s;
	int i;

	(void)self;
	self_open(&s);
	for (i = 0; i < NLENS; i++)
		if (lens[i] <= most)
			one_size(&s, lens[i]);
	th_quiet(&s, 5);
	th_stack_close(&s);
}

/* Many under way, received in reverse order. */
static void case_T24_unexpected(struct th_self *self)
{
	enum { N = 500 };
	struct th_stack s;
	uint64_t tx[N], rx;
	int i;

	(void)self;
	self_open(&s);
	for (i = 0; i < N; i++) {
		tx[i] = (uint64_t)i;
		th_tsend(&s, s.peers[0], &tx[i], 8, (uint64_t)i, &tx[i]);
	}
	for (i = N; i-- > 0;) {
		th_trecv(&s, &rx, 8, (uint64_t)i, 0, &rx);
		th_rx_ok(&s);
		th_eq(rx, i);
	}
	for (i = 0; i < N; i++)
		th_tx_ok(&s);
	th_stack_close(&s);
}

/* Truncation, injects with data, peek and cancel, to itself. */
static void case_T24_corner_cases(struct th_self *self)
{
	struct th_buf small = th_buf_new(100);
	unsigned char *tx = malloc(1 << 20);
	struct fi_msg_tagged m = { .tag = TAG, .addr = FI_ADDR_UNSPEC };
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	struct th_stack s;

	(void)self;
	th_check(tx);
	self_open(&s);
	th_fill(tx, 1 << 20, 1);
	post(&s, &small, true);
	th_tsend(&s, s.peers[0], tx, 1 << 20, TAG, tx);
	err = th_rx_err(&s);
	th_eq(err.err, FI_ETRUNC);
	th_eq(err.olen, (1 << 20) - 100);
	th_verify(small.p, 100, 1);
	th_tx_ok(&s);
	th_post(&s, fi_tinjectdata(s.ep, tx, 50, 99, s.peers[0], TAG));
	m.context = &m;
	th_post(&s, fi_trecvmsg(s.ep, &m, FI_PEEK));
	e = th_rx_ok(&s);
	th_check(e.len == 50 && e.data == 99);
	th_post(&s, fi_trecvmsg(s.ep, &m, FI_PEEK | FI_DISCARD));
	th_rx_ok(&s);
	post(&s, &small, true);
	th_ok(fi_cancel(&s.ep->fid, small.p));
	th_eq(th_rx_err(&s).err, FI_ECANCELED);
	th_quiet(&s, 5);
	free(tx);
	th_buf_free(&small);
	th_stack_close(&s);
}

/* FI_MATCH_COMPLETE to itself waits for the receive, too. */
static void case_T24_match_complete(struct th_self *self)
{
	struct fi_msg_tagged m = { .tag = TAG };
	struct th_stack s;
	char rx;

	(void)self;
	self_open(&s);
	m.addr = s.peers[0];
	m.context = &m;
	th_post(&s, fi_tsendmsg(s.ep, &m, FI_MATCH_COMPLETE));
	th_quiet(&s, 5);
	th_trecv(&s, &rx, 1, TAG, 0, &rx);
	th_rx_ok(&s);
	th_ptr_eq(th_tx_ok(&s).op_context, &m);
	th_stack_close(&s);
}

/* Closing with messages to itself that nobody received. */
static void close_with_own_messages(struct th_self *self)
{
	unsigned char *tx = malloc(1 << 20);
	struct th_stack s;
	int i;

	(void)self;
	th_check(tx);
	self_open(&s);
	for (i = 0; i < 10; i++)
		th_tsend(&s, s.peers[0], tx, (size_t)1 << (2 * i), TAG, tx);
	th_stack_close(&s);
	free(tx);
}

/* Between two endpoints of one process, and each to itself, mixed. */
static void two_in_one_process(struct th_self *self)
{
	unsigned long i, n = th_rounds(2000);
	struct th_stack a, b;
	uint64_t rx[2], tx[2];

	(void)self;
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < n; i++) {
		tx[0] = 2 * i;
		tx[1] = 2 * i + 1;
		th_trecv(&b, &rx[0], 8, 0, 0, &rx[0]);
		th_trecv(&b, &rx[1], 8, 1, 0, &rx[1]);
		th_post(&b, fi_tinject(b.ep, &tx[1], 8, b.peers[1], 1));
		th_post(&a, fi_tinject(a.ep, &tx[0], 8, a.peers[1], 0));
		th_rx_ok(&b);
		th_rx_ok(&b);
		th_check(rx[0] == tx[0] && rx[1] == tx[1]);
	}
	th_pair_close(&a, &b);
}

static const struct CMUnitTest self_tests[] = {
	TH_CASE(case_T24_all_sizes, 1, 20),
	TH_CASE(case_T24_unexpected, 1, 10),
	TH_CASE(case_T24_corner_cases, 1, 10),
	TH_CASE(case_T24_match_complete, 1, 10),
	TH_CASE(close_with_own_messages, 1, 15),
	TH_CASE(two_in_one_process, 1, 10),
};

TH_MAIN(self_tests)
