/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * FI_PEEK, FI_CLAIM and FI_DISCARD, for messages of every path: those that
 * lie at the receiver and those that are held at the sender (1 MiB).
 */
#define _GNU_SOURCE
#include "harness.h"

#include <sys/uio.h>

#include "env_probe.h"

enum { TAG = 21, OTHER = 22 };

static const size_t lens[] = { 0, 8, 40, 1000, 4096, 50000, 1 << 20 };
enum { NLENS = sizeof(lens) / sizeof(lens[0]), LONGEST = 1 << 20 };

static const struct th_stack_opts with_source = {
	.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV,
};

/* A pair with a message of each length under way, and its buffers. */
struct scene {
	struct th_stack a;	/* sender */
	struct th_stack b;	/* receiver */
	unsigned char *tx;	/* LONGEST bytes, pattern 1 */
	struct th_buf rx;	/* LONGEST bytes */
	struct fi_context2 ctx; /* of peek and claim */
};

static void scene_open(struct scene *sc)
{
	memset(sc, 0, sizeof(*sc));
	th_pair_open(&sc->a, &sc->b, &with_source);
	sc->tx = malloc(LONGEST);
	th_check(sc->tx);
	th_fill(sc->tx, LONGEST, 1);
	sc->rx = th_buf_new(LONGEST);
}

static void scene_close(struct scene *sc)
{
	th_quiet(&sc->a, 5);
	th_quiet(&sc->b, 5);
	th_pair_close(&sc->a, &sc->b);
	free(sc->tx);
	th_buf_free(&sc->rx);
}

/* Sends @len bytes and gives them time to arrive, unexpected. */
static void arrive(struct scene *sc, size_t len)
{
	th_post(&sc->a, fi_tsenddata(sc->a.ep, sc->tx, len, NULL, 77,
				     sc->a.peers[1], TAG, sc->tx));
	th_quiet(&sc->b, 3);
}

static void msg_op(struct scene *sc, void *buf, size_t len, uint64_t tag,
		   uint64_t flags)
{
	struct iovec iov = { buf, len };
	struct fi_msg_tagged m = { .msg_iov = &iov,
				   .iov_count = buf ? 1 : 0,
				   .addr = FI_ADDR_UNSPEC,
				   .tag = tag,
				   .context = &sc->ctx };

	th_post(&sc->b, fi_trecvmsg(sc->b.ep, &m, flags));
}

static void expect_meta(struct scene *sc, size_t len)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t src;

	e = th_rx_from(&sc->b, &src);
	th_ptr_eq(e.op_context, &sc->ctx);
	th_eq(e.len, len);
	th_eq(e.tag, TAG);
	th_eq(e.data, 77);
	th_check((e.flags & (FI_RECV | FI_TAGGED)) == (FI_RECV | FI_TAGGED));
	th_check(e.flags & FI_REMOTE_CQ_DATA);
	th_eq(src, sc->b.peers[0]);
}

static void expect_nothing(struct scene *sc, uint64_t tag, uint64_t flags)
{
	struct fi_cq_err_entry err;

	msg_op(sc, NULL, 0, tag, FI_PEEK | flags);
	err = th_rx_err(&sc->b);
	th_eq(err.err, FI_ENOMSG);
	th_ptr_eq(err.op_context, &sc->ctx);
}

static void receive_it(struct scene *sc, size_t len)
{
	struct fi_cq_tagged_entry e;

	memset(sc->rx.p, 0, sc->rx.len);
	th_trecv(&sc->b, sc->rx.p, sc->rx.len, TAG, 0, sc->rx.p);
	e = th_rx_ok(&sc->b);
	th_ptr_eq(e.op_context, sc->rx.p);
	th_eq(e.len, len);
	th_verify(sc->rx.p, len, 1);
}

static bool is_held(size_t len)
{
	return len == LONGEST;
}

/*
 * Peeking tells length, tag, data and source, as often as one likes, fetches
 * nothing (a held send stays incomplete), and the message is still there.
 */
static void peek_all_lengths(struct th_self *self)
{
	struct scene sc;
	int i, k;

	(void)self;
	scene_open(&sc);
	for (i = 0; i < NLENS; i++) {
		expect_nothing(&sc, TAG, 0);
		arrive(&sc, lens[i]);
		for (k = 0; k < 3; k++) {
			msg_op(&sc, NULL, 0, TAG, FI_PEEK);
			expect_meta(&sc, lens[i]);
		}
		expect_nothing(&sc, OTHER, 0);
		if (is_held(lens[i]) && th_is_shrimp())
			th_quiet(&sc.a, 10);
		receive_it(&sc, lens[i]);
		th_tx_ok(&sc.a);
	}
	scene_close(&sc);
}

/* With a buffer that is too small: success, data cut or none, full length. */
static void case_T11_peek_small_buffer(struct th_self *self)
{
	struct th_buf small = th_buf_new(5);
	struct fi_cq_tagged_entry e;
	struct scene sc;
	int i;

	(void)self;
	scene_open(&sc);
	for (i = 1; i < NLENS; i++) {
		arrive(&sc, lens[i]);
		msg_op(&sc, small.p, small.len, TAG, FI_PEEK);
		e = th_rx_ok(&sc.b);
		th_eq(e.len, lens[i]);
		th_check(e.buf == NULL || e.buf == small.p);
		if (e.buf)
			th_verify(small.p, small.len, 1);
		th_buf_check(&small);
		receive_it(&sc, lens[i]);
		th_tx_ok(&sc.a);
	}
	th_buf_free(&small);
	scene_close(&sc);
}

/* No match: the call gives 0, one error entry, nothing is left behind. */
static void case_T12_peek_nothing(struct th_self *self)
{
	unsigned long i, n = th_rounds(100000);
	struct scene sc;
	size_t before;

	(void)self;
	scene_open(&sc);
	for (i = 0; i < 1000; i++)
		expect_nothing(&sc, TAG, 0);
	before = probe_resident();
	for (i = 0; i < n; i++)
		expect_nothing(&sc, TAG + i, i % 2 ? FI_CLAIM : 0);
	if (!th_sanitized())
		th_check(probe_resident() < before + (1 << 20));
	scene_close(&sc);
}

/* A claimed message is for the paired receive only. */
static void claim_all_lengths(struct th_self *self)
{
	struct fi_cq_tagged_entry e;
	struct scene sc;
	uint64_t other;
	int i;

	(void)self;
	scene_open(&sc);
	for (i = 0; i < NLENS; i++) {
		arrive(&sc, lens[i]);
		msg_op(&sc, NULL, 0, TAG, FI_PEEK | FI_CLAIM);
		expect_meta(&sc, lens[i]);
		if (is_held(lens[i]) && th_is_shrimp())
			th_quiet(&sc.a, 10);
		th_trecv(&sc.b, &other, 8, 0, ~UINT64_C(0), &other);
		th_quiet(&sc.b, 3);
		memset(sc.rx.p, 0, sc.rx.len);
		msg_op(&sc, sc.rx.p, sc.rx.len, TAG, FI_CLAIM);
		e = th_rx_ok(&sc.b);
		th_ptr_eq(e.op_context, &sc.ctx);
		th_eq(e.len, lens[i]);
		th_eq(e.tag, TAG);
		th_verify(sc.rx.p, lens[i], 1);
		th_tx_ok(&sc.a);
		/* The other receive is still open. */
		th_post(&sc.a,
			fi_tinject(sc.a.ep, sc.tx, 8, sc.a.peers[1], OTHER));
		th_ptr_eq(th_rx_ok(&sc.b).op_context, &other);
	}
	scene_close(&sc);
}

/* A claimed message that is larger than its receive is cut as usual. */
static void claim_truncates(struct th_self *self)
{
	struct fi_cq_err_entry err;
	struct scene sc;
	int i;

	(void)self;
	scene_open(&sc);
	for (i = 2; i < NLENS; i++) {
		arrive(&sc, lens[i]);
		msg_op(&sc, NULL, 0, TAG, FI_PEEK | FI_CLAIM);
		expect_meta(&sc, lens[i]);
		msg_op(&sc, sc.rx.p, 16, TAG, FI_CLAIM);
		err = th_rx_err(&sc.b);
		th_eq(err.err, FI_ETRUNC);
		th_eq(err.len, 16);
		th_eq(err.olen, lens[i] - 16);
		th_verify(sc.rx.p, 16, 1);
		th_tx_ok(&sc.a);
	}
	scene_close(&sc);
}

/*
 * Discarding by peek, or after a claim: the message is gone, and its sender
 * has a success.
 */
static void discard_all_lengths(struct th_self *self)
{
	struct scene sc;
	int i;

	(void)self;
	scene_open(&sc);
	for (i = 0; i < 2 * NLENS; i++) {
		arrive(&sc, lens[i / 2]);
		if (i % 2) {
			msg_op(&sc, NULL, 0, TAG, FI_PEEK | FI_DISCARD);
			expect_meta(&sc, lens[i / 2]);
		} else {
			msg_op(&sc, NULL, 0, TAG, FI_PEEK | FI_CLAIM);
			expect_meta(&sc, lens[i / 2]);
			msg_op(&sc, NULL, 0, TAG, FI_CLAIM | FI_DISCARD);
			th_ptr_eq(th_rx_ok(&sc.b).op_context, &sc.ctx);
		}
		th_ptr_eq(th_tx_ok(&sc.a).op_context, sc.tx);
		expect_nothing(&sc, TAG, 0);
	}
	scene_close(&sc);
}

/* The peek finds the oldest match and a claim takes just that one. */
static void claim_takes_oldest(struct th_self *self)
{
	struct scene sc;
	uint64_t v, rx;

	(void)self;
	scene_open(&sc);
	for (v = 0; v < 3; v++)
		th_post(&sc.a, fi_tinject(sc.a.ep, &v, 8, sc.a.peers[1], TAG));
	th_quiet(&sc.b, 3);
	msg_op(&sc, NULL, 0, TAG, FI_PEEK | FI_CLAIM);
	th_rx_ok(&sc.b);
	for (v = 1; v < 3; v++) {
		th_trecv(&sc.b, &rx, 8, TAG, 0, &rx);
		th_ptr_eq(th_rx_ok(&sc.b).op_context, &rx);
		th_eq(rx, v);
	}
	msg_op(&sc, &rx, 8, TAG, FI_CLAIM);
	th_ptr_eq(th_rx_ok(&sc.b).op_context, &sc.ctx);
	th_eq(rx, 0);
	scene_close(&sc);
}

/* A peek of one source does not see another one's message. */
static void peek_is_directed(struct th_self *self)
{
	struct fi_msg_tagged m = { .tag = TAG };
	struct scene sc;

	(void)self;
	scene_open(&sc);
	arrive(&sc, 8);
	m.context = &sc.ctx;
	m.addr = sc.b.peers[1];
	th_post(&sc.b, fi_trecvmsg(sc.b.ep, &m, FI_PEEK));
	th_eq(th_rx_err(&sc.b).err, FI_ENOMSG);
	m.addr = sc.b.peers[0];
	th_post(&sc.b, fi_trecvmsg(sc.b.ep, &m, FI_PEEK));
	expect_meta(&sc, 8);
	receive_it(&sc, 8);
	th_tx_ok(&sc.a);
	scene_close(&sc);
}

/* A claim of what was never claimed is refused, now or by one error entry. */
static void claim_unclaimed(struct th_self *self)
{
	struct fi_msg_tagged m = { .tag = TAG, .addr = FI_ADDR_UNSPEC };
	struct scene sc;
	ssize_t ret;

	(void)self;
	scene_open(&sc);
	arrive(&sc, 8);
	m.context = &sc.ctx;
	ret = fi_trecvmsg(sc.b.ep, &m, FI_CLAIM);
	if (ret == 0)
		th_ptr_eq(th_rx_err(&sc.b).op_context, &sc.ctx);
	else
		th_check(ret == -FI_EINVAL || ret == -FI_ENOMSG);
	receive_it(&sc, 8);
	th_tx_ok(&sc.a);
	scene_close(&sc);
}

/* Closing with messages claimed, held and never fetched is no leak. */
static void close_with_claimed(struct th_self *self)
{
	struct scene sc;
	int i;

	(void)self;
	scene_open(&sc);
	for (i = 0; i < NLENS; i++)
		arrive(&sc, lens[i]);
	for (i = 0; i < NLENS; i++) {
		msg_op(&sc, NULL, 0, TAG, FI_PEEK | (i % 2 ? FI_CLAIM : 0));
		th_rx_ok(&sc.b);
	}
	sc.a.buddy = NULL;
	th_stack_close(&sc.b);
	th_stack_close(&sc.a);
	free(sc.tx);
	th_buf_free(&sc.rx);
}

static const struct CMUnitTest peek_tests[] = {
	TH_CASE(peek_all_lengths, 1, 10),
	TH_CASE(case_T11_peek_small_buffer, 1, 10),
	TH_CASE(case_T12_peek_nothing, 1, 20),
	TH_CASE(claim_all_lengths, 1, 10),
	TH_CASE(claim_truncates, 1, 10),
	TH_CASE(discard_all_lengths, 1, 10),
	TH_CASE(claim_takes_oldest, 1, 10),
	TH_CASE(peek_is_directed, 1, 10),
	TH_CASE(claim_unclaimed, 1, 10),
	TH_CASE(close_with_claimed, 1, 15),
};

TH_MAIN(peek_tests)
