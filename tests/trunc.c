/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Messages larger than their receive: the buffer is filled, nothing behind
 * it is touched, one error entry says what was cut off, and everything
 * before and after is as usual.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <sys/uio.h>

enum { TAG = 11 };

struct cut {
	size_t sent; /* bytes of the message */
	size_t room; /* bytes of the receive */
};

static const struct cut cuts[] = {
	{ 8, 4 },
	{ 1, 0 },
	{ 40, 39 },
	{ 41, 40 },
	{ 1000, 10 },
	{ 1024, 1023 },
	{ 4096, 1 },
	{ 8192, 4095 },
	{ 65536, 4096 },
	{ 65537, 65536 },
	{ 1 << 20, 4096 },
	{ 1 << 20, 0 },
	{ 3000001, 2000003 },
};

enum { NCUTS = sizeof(cuts) / sizeof(cuts[0]) };

static void post_room(struct th_stack *b, const struct th_buf *r, bool tagged)
{
	if (tagged)
		th_trecv(b, r->p, r->len, TAG, 0, r->p);
	else
		th_recv(b, r->p, r->len, r->p);
}

static void send_cut(struct th_stack *a, void *buf, size_t len, bool tagged)
{
	th_fill(buf, len, len);
	if (tagged)
		th_tsend(a, a->peers[1], buf, len, TAG, buf);
	else
		th_send(a, a->peers[1], buf, len, buf);
}

static void check_cut(struct th_stack *b, const struct cut *c,
		      const struct th_buf *r, bool tagged)
{
	struct fi_cq_err_entry err = th_rx_err(b);

	th_eq(err.err, FI_ETRUNC);
	th_ptr_eq(err.op_context, r->p);
	th_eq(err.len, c->room);
	th_eq(err.olen, c->sent - c->room);
	th_check(err.flags & FI_RECV);
	th_check(err.flags & (tagged ? FI_TAGGED : FI_MSG));
	if (tagged)
		th_eq(err.tag, TAG);
	th_verify(r->p, c->room, c->sent);
	th_buf_check(r);
}

static void cut_once(struct th_stack *a, struct th_stack *b,
		     const struct cut *c, bool tagged, bool unexpected)
{
	unsigned char *buf = malloc(c->sent);
	struct th_buf r = th_buf_new(c->room);

	th_check(buf);
	if (!unexpected)
		post_room(b, &r, tagged);
	send_cut(a, buf, c->sent, tagged);
	if (unexpected) {
		th_quiet(b, 3);
		post_room(b, &r, tagged);
	}
	check_cut(b, c, &r, tagged);
	th_ptr_eq(th_tx_ok(a).op_context, buf);
	th_buf_free(&r);
	free(buf);
}

static void cut_all(struct th_self *self, bool unexpected)
{
	struct th_stack a, b;
	int i;

	(void)self;
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < 2 * NCUTS; i++)
		cut_once(&a, &b, &cuts[i / 2], i % 2, unexpected);
	th_quiet(&b, 10);
	th_pair_close(&a, &b);
}

static void case_T8_guards_expected(struct th_self *self)
{
	cut_all(self, false);
}

static void case_T9_fills_unexpected(struct th_self *self)
{
	cut_all(self, true);
}

/* Scattered receive: the cut is in the middle of a piece, or at its end. */
static void cut_scattered(struct th_self *self)
{
	static const size_t lens[] = { 21, 30, 100, 5000, 1 << 20 };
	unsigned char *buf = malloc(1 << 20);
	struct th_buf r[3];
	struct iovec iov[3];
	struct fi_cq_err_entry err;
	struct th_stack a, b;
	size_t i, k, off;

	(void)self;
	th_check(buf);
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (k = 0; k < 3; k++) {
			r[k] = th_buf_new(10 * k);
			iov[k] = (struct iovec){ r[k].p, r[k].len };
		}
		iov[2].iov_len = 10;
		th_post(&b, fi_trecvv(b.ep, iov, NULL, 3, FI_ADDR_UNSPEC, TAG,
				      0, iov));
		send_cut(&a, buf, lens[i], true);
		err = th_rx_err(&b);
		th_eq(err.err, FI_ETRUNC);
		th_eq(err.len, 20);
		th_eq(err.olen, lens[i] - 20);
		th_tx_ok(&a);
		for (k = 0, off = 0; k < 3; off += iov[k++].iov_len)
			th_verify_at(iov[k].iov_base, iov[k].iov_len, lens[i],
				     off);
		th_verify_byte(r[2].p + 10, 10, 0xee);
		for (k = 0; k < 3; k++)
			th_buf_free(&r[k]);
	}
	free(buf);
	th_pair_close(&a, &b);
}

/* ---- the endpoint goes on (two processes) -------------------------------- */

enum { NORMAL = 1000 };

static void normal_traffic(struct th_stack *s, int rank)
{
	fi_addr_t to = s->peers[!rank];
	uint64_t tx, rx;
	unsigned long i;

	for (i = 0; i < NORMAL; i++) {
		tx = i * 2 + (unsigned int)rank;
		th_trecv(s, &rx, sizeof(rx), 5, 0, &rx);
		th_tsend(s, to, &tx, sizeof(tx), 5, &tx);
		th_eq(th_rx_ok(s).len, sizeof(rx));
		th_eq(rx, i * 2 + !rank);
		th_tx_ok(s);
	}
}

static void cut_between_processes(struct th_self *self, struct th_stack *s,
				  const struct cut *c)
{
	unsigned char *buf = malloc(c->sent);
	struct th_buf r = th_buf_new(c->room);

	th_check(buf);
	if (self->rank == 0) {
		th_barrier_progress(self, s, "posted");
		send_cut(s, buf, c->sent, true);
		th_ptr_eq(th_tx_ok(s).op_context, buf);
	} else {
		post_room(s, &r, true);
		th_barrier_progress(self, s, "posted");
		check_cut(s, c, &r, true);
	}
	th_buf_free(&r);
	free(buf);
	normal_traffic(s, self->rank);
}

static void case_T7_endpoint_goes_on(struct th_self *self)
{
	static const struct cut two[] = { { 8, 4 }, { 1 << 20, 4096 } };
	struct th_stack s;

	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	cut_between_processes(self, &s, &two[0]);
	cut_between_processes(self, &s, &two[1]);
	th_quiet(&s, 10);
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

static const struct CMUnitTest trunc_tests[] = {
	TH_CASE(case_T7_endpoint_goes_on, 2, 20),
	TH_CASE(case_T8_guards_expected, 1, 20),
	TH_CASE(case_T9_fills_unexpected, 1, 20),
	TH_CASE(cut_scattered, 1, 20),
};

TH_MAIN(trunc_tests)
