/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * FI_MULTI_RECV: one posted buffer takes messages until less than
 * FI_OPT_MIN_MULTI_RECV bytes are left, and is released exactly once, after
 * the last message in it is complete.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <sys/uio.h>

enum { MIN_LEFT = 512 };

static const struct th_stack_opts multi = {
	.caps = FI_MSG | FI_MULTI_RECV,
	.cq_format = FI_CQ_FORMAT_TAGGED,
	.no_enable = true,
};

static void set_min(struct th_stack *s, size_t min)
{
	th_ok(fi_setopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			&min, sizeof(min)));
}

static void multi_open(struct th_stack *a, struct th_stack *b, size_t min)
{
	th_stack_open(a, &multi);
	th_stack_open(b, &multi);
	set_min(b, min);
	th_stack_enable(a);
	th_stack_enable(b);
	a->peers = calloc(2, sizeof(*a->peers));
	th_check(a->peers);
	a->peers[1] = th_insert(a, b->addr);
	th_insert(b, a->addr);
	a->buddy = b;
	b->buddy = a;
}

static void post_multi(struct th_stack *s, const struct th_buf *buf)
{
	struct iovec iov = { buf->p, buf->len };
	struct fi_msg m = { .msg_iov = &iov,
			    .iov_count = 1,
			    .addr = FI_ADDR_UNSPEC,
			    .context = buf->p };

	th_post(s, fi_recvmsg(s->ep, &m, FI_MULTI_RECV));
}

static void inject(struct th_stack *a, size_t len, uint64_t seed)
{
	unsigned char bytes[4096];

	th_check(len <= sizeof(bytes));
	th_fill(bytes, len, seed);
	th_post(a, fi_inject(a->ep, bytes, len, a->peers[1]));
}

/* What has been seen of one multi-receive buffer. */
struct seen {
	const struct th_buf *buf; /* the buffer */
	unsigned char *end;	  /* behind the last message in it */
	bool released;		  /* FI_MULTI_RECV was seen */
};

/* Checks an entry; true if it tells of a message (not only of a release). */
static bool take_entry(struct seen *sn, const struct fi_cq_tagged_entry *e,
		       size_t len, uint64_t seed)
{
	unsigned char *p = e->buf;

	th_ptr_eq(e->op_context, sn->buf->p);
	th_check(!sn->released);
	if (e->flags & FI_MULTI_RECV)
		sn->released = true;
	if (!(e->flags & FI_RECV))
		return false;
	th_check(e->flags & FI_MSG);
	th_eq(e->len, len);
	th_check(p >= sn->end && p + len <= sn->buf->p + sn->buf->len);
	sn->end = p + len;
	th_verify(p, len, seed);
	return true;
}

/*
 * Messages of random sizes until the release; the space that is left then is
 * below the minimum, and no message is lost between two buffers.
 */
static void fills_and_releases(struct th_self *self)
{
	struct th_buf bufs[2] = { th_buf_new(20000), th_buf_new(20000) };
	struct seen sn = { .buf = &bufs[0], .end = bufs[0].p };
	struct fi_cq_tagged_entry e;
	struct th_stack a, b;
	uint64_t seed = 1, i = 0;
	int rounds = 20, cur = 0;
	size_t len;

	(void)self;
	multi_open(&a, &b, MIN_LEFT);
	post_multi(&b, &bufs[0]);
	post_multi(&b, &bufs[1]);
	while (rounds) {
		len = th_random(&seed) % (MIN_LEFT + 1);
		inject(&a, len, i);
		do {
			if (sn.released) {
				th_check(sn.buf->p + sn.buf->len - sn.end <
					 MIN_LEFT);
				th_buf_check(sn.buf);
				post_multi(&b, sn.buf);
				cur = !cur;
				sn = (struct seen){ .buf = &bufs[cur],
						    .end = bufs[cur].p };
				rounds--;
			}
			e = th_rx_ok(&b);
		} while (!take_entry(&sn, &e, len, i));
		i++;
	}
	th_pair_close(&a, &b);
	th_buf_free(&bufs[0]);
	th_buf_free(&bufs[1]);
}

/* Waits for the release of @sn, which may have come with a message. */
static void wait_release(struct th_stack *b, struct seen *sn)
{
	struct fi_cq_tagged_entry e;

	if (sn->released)
		return;
	e = th_rx_ok(b);
	th_check(e.flags & FI_MULTI_RECV);
	th_check(!(e.flags & FI_RECV));
	th_ptr_eq(e.op_context, sn->buf->p);
	sn->released = true;
}

/* Messages that had arrived before the buffer was posted go into it, too. */
static void unexpected_first(struct th_self *self)
{
	struct th_buf buf = th_buf_new(4096 + 100);
	struct seen sn = { .buf = &buf, .end = buf.p };
	struct fi_cq_tagged_entry e;
	struct th_stack a, b;
	uint64_t i;

	(void)self;
	multi_open(&a, &b, MIN_LEFT);
	for (i = 0; i < 4; i++)
		inject(&a, 1024, i);
	th_quiet(&b, 5);
	post_multi(&b, &buf);
	for (i = 0; i < 4; i++) {
		e = th_rx_ok(&b);
		th_check(take_entry(&sn, &e, 1024, i));
	}
	wait_release(&b, &sn);
	th_buf_check(&buf);
	th_pair_close(&a, &b);
	th_buf_free(&buf);
}

/*
 * A message larger than what is left, though that is above the minimum: it
 * is cut at the end of the buffer, not written behind it.
 */
static void case_T8_little_room(struct th_self *self)
{
	struct th_buf buf = th_buf_new(3000);
	struct seen sn = { .buf = &buf, .end = buf.p };
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	struct th_stack a, b;

	(void)self;
	multi_open(&a, &b, MIN_LEFT);
	post_multi(&b, &buf);
	inject(&a, 2000, 1);
	e = th_rx_ok(&b);
	th_check(take_entry(&sn, &e, 2000, 1));
	inject(&a, 1500, 2);
	err = th_rx_err(&b);
	th_eq(err.err, FI_ETRUNC);
	th_ptr_eq(err.op_context, buf.p);
	th_eq(err.len + err.olen, 1500);
	th_check(err.olen >= 500);
	th_buf_check(&buf);
	sn.released = err.flags & FI_MULTI_RECV;
	wait_release(&b, &sn);
	th_quiet(&b, 5);
	th_pair_close(&a, &b);
	th_buf_free(&buf);
}

/*
 * Held messages into one buffer, with small ones after them: the release
 * comes after all of them are complete, and none overlaps another.
 */
enum { BIG = 1 << 20, NBIG = 3 };

static void check_big(struct th_stack *b, struct seen *sn, bool *done)
{
	struct fi_cq_tagged_entry e = th_rx_ok(b);
	uint64_t which;

	th_ptr_eq(e.op_context, sn->buf->p);
	th_check(!sn->released);
	th_check(e.flags & FI_RECV);
	th_check((unsigned char *)e.buf >= sn->buf->p);
	th_check((unsigned char *)e.buf + e.len <= sn->buf->p + sn->buf->len);
	memcpy(&which, e.buf, 8);
	th_check(which < 2 * NBIG && !done[which]);
	th_eq(e.len, which % 2 ? 64 : BIG);
	th_verify_at((char *)e.buf + 8, e.len - 8, which, 8);
	done[which] = true;
	sn->released = e.flags & FI_MULTI_RECV;
}

static void held_inside(struct th_self *self)
{
	struct th_buf buf = th_buf_new(NBIG * (BIG + 64) + 60);
	struct seen sn = { .buf = &buf, .end = buf.p };
	unsigned char *tx = malloc(2 * NBIG * BIG);
	bool done[2 * NBIG] = { false };
	struct th_stack a, b;
	uint64_t i;

	(void)self;
	th_check(tx);
	multi_open(&a, &b, 64);
	post_multi(&b, &buf);
	for (i = 0; i < 2 * NBIG; i++) {
		th_fill(tx + i * BIG, BIG, i);
		memcpy(tx + i * BIG, &i, 8);
		th_send(&a, a.peers[1], tx + i * BIG, i % 2 ? 64 : BIG, &a);
	}
	for (i = 0; i < 2 * NBIG; i++)
		check_big(&b, &sn, done);
	wait_release(&b, &sn);
	for (i = 0; i < 2 * NBIG; i++)
		th_tx_ok(&a);
	th_quiet(&b, 5);
	th_pair_close(&a, &b);
	free(tx);
	th_buf_free(&buf);
}

/* A cancelled buffer: one entry, FI_ECANCELED, with FI_MULTI_RECV. */
static void case_T15_cancel_flag(struct th_self *self)
{
	struct th_buf buf = th_buf_new(4096);
	struct seen sn = { .buf = &buf, .end = buf.p };
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	struct th_stack a, b;
	int used;

	(void)self;
	multi_open(&a, &b, MIN_LEFT);
	for (used = 0; used < 2; used++) {
		sn.end = buf.p;
		post_multi(&b, &buf);
		if (used) {
			inject(&a, 100, 1);
			e = th_rx_ok(&b);
			th_check(take_entry(&sn, &e, 100, 1));
		}
		th_ok(fi_cancel(&b.ep->fid, buf.p));
		err = th_rx_err(&b);
		th_eq(err.err, FI_ECANCELED);
		th_ptr_eq(err.op_context, buf.p);
		th_check(err.flags & FI_MULTI_RECV);
		th_quiet(&b, 5);
		th_eq(fi_cancel(&b.ep->fid, buf.p), -FI_ENOENT);
	}
	memset(buf.p, 0xee, buf.len);
	inject(&a, 100, 2);
	th_quiet(&b, 5);
	th_verify_byte(buf.p, buf.len, 0xee);
	th_pair_close(&a, &b);
	th_buf_free(&buf);
}

/*
 * Cancelled while two held messages are placed: both still come, whole, and
 * only then the entry that gives the buffer back.
 */
static void case_T15_cancel_filling(struct th_self *self)
{
	struct th_buf buf = th_buf_new(3 * BIG);
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	unsigned char *tx = malloc(BIG);
	struct th_stack a, b;
	int i;

	(void)self;
	th_check(tx);
	th_fill(tx, BIG, 5);
	multi_open(&a, &b, 64);
	post_multi(&b, &buf);
	for (i = 0; i < 2; i++)
		th_send(&a, a.peers[1], tx, BIG, &a);
	/* both are matched; their sender has not heard of it */
	for (i = 0; i < 4; i++)
		fi_cq_read(b.rxcq, NULL, 0);
	th_ok(fi_cancel(&b.ep->fid, buf.p));
	th_eq(fi_cancel(&b.ep->fid, buf.p), -FI_ENOENT);
	th_eq(fi_cq_read(b.rxcq, &e, 1), -FI_EAGAIN);
	for (i = 0; i < 2; i++) {
		e = th_rx_ok(&b);
		th_check(e.flags & FI_RECV && !(e.flags & FI_MULTI_RECV));
		th_eq(e.len, BIG);
		th_verify(e.buf, BIG, 5);
	}
	err = th_rx_err(&b);
	th_eq(err.err, FI_ECANCELED);
	th_ptr_eq(err.op_context, buf.p);
	th_check(err.flags & FI_MULTI_RECV);
	memset(buf.p, 0xee, buf.len);
	inject(&a, 100, 2);
	th_quiet(&b, 5);
	th_verify_byte(buf.p, buf.len, 0xee);
	th_pair_close(&a, &b);
	free(tx);
	th_buf_free(&buf);
}

/* ---- options ------------------------------------------------------------------ */

static void option(struct th_self *self)
{
	size_t min = 0, len = sizeof(min);
	struct th_stack s;
	char small;

	(void)self;
	th_stack_open(&s, &multi);
	th_ok(fi_getopt(&s.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			&min, &len));
	th_eq(len, sizeof(min));
	th_check(min > 0);
	set_min(&s, 777);
	th_ok(fi_getopt(&s.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			&min, &len));
	th_eq(min, 777);
	th_stack_enable(&s);
	set_min(&s, 99);
	len = sizeof(small);
	th_check(fi_getopt(&s.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			   &small, &len) < 0);
	th_eq(fi_setopt(&s.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			&small, sizeof(small)),
	      -FI_EINVAL);
	th_eq(fi_setopt(&s.ep->fid, FI_OPT_ENDPOINT, 4711, &min, sizeof(min)),
	      -FI_ENOPROTOOPT);
	len = sizeof(min);
	th_eq(fi_getopt(&s.ep->fid, FI_OPT_ENDPOINT, 4711, &min, &len),
	      -FI_ENOPROTOOPT);
	th_eq(fi_setopt(&s.ep->fid, 4711, FI_OPT_MIN_MULTI_RECV, &min,
			sizeof(min)),
	      -FI_ENOPROTOOPT);
	th_stack_close(&s);
}

/* As a default of the endpoint, for fi_recv(). */
static void as_op_flag(struct th_self *self)
{
	struct th_stack_opts o = multi;
	struct th_buf buf = th_buf_new(4096);
	struct seen sn = { .buf = &buf, .end = buf.p };
	struct fi_cq_tagged_entry e;
	struct th_stack a, b;
	uint64_t i;

	(void)self;
	o.rx_op_flags = FI_MULTI_RECV;
	o.no_enable = false;
	th_pair_open(&a, &b, &o);
	set_min(&b, MIN_LEFT);
	th_recv(&b, buf.p, buf.len, buf.p);
	for (i = 0; i < 4; i++) {
		inject(&a, 1000, i);
		e = th_rx_ok(&b);
		th_check(take_entry(&sn, &e, 1000, i));
	}
	wait_release(&b, &sn);
	th_pair_close(&a, &b);
	th_buf_free(&buf);
}

/*
 * With FI_SELECTIVE_COMPLETION the messages give no entry, but the release
 * always does.
 */
static void release_is_never_suppressed(struct th_self *self)
{
	struct th_stack_opts o = multi;
	struct th_buf buf = th_buf_new(4096);
	struct fi_cq_tagged_entry e;
	struct th_stack a, b;
	uint64_t i;

	(void)self;
	o.rx_bind = FI_SELECTIVE_COMPLETION;
	o.no_enable = false;
	th_pair_open(&a, &b, &o);
	set_min(&b, MIN_LEFT);
	post_multi(&b, &buf);
	for (i = 0; i < 3; i++)
		inject(&a, 1000, i);
	th_quiet(&b, 10);
	inject(&a, 1000, 3);
	e = th_rx_ok(&b);
	th_check(e.flags & FI_MULTI_RECV);
	th_ptr_eq(e.op_context, buf.p);
	th_quiet(&b, 5);
	th_pair_close(&a, &b);
	th_buf_free(&buf);
}

/* ---- two processes ---------------------------------------------------------------- */

enum { STREAM = 20000, STREAM_MAX = 3000, RING = 4 };

static size_t stream_len(uint64_t i)
{
	uint64_t seed = i;

	return th_random(&seed) % STREAM_MAX;
}

static void stream_send(struct th_stack *s, unsigned long n)
{
	unsigned char bytes[STREAM_MAX];
	unsigned long i;

	for (i = 0; i < n; i++) {
		th_fill(bytes, stream_len(i), i);
		/* So many that the limits of contract P2 may be met. */
		while (fi_inject(s->ep, bytes, stream_len(i), s->peers[1]) ==
		       -FI_EAGAIN)
			th_progress(s);
	}
}

static void stream_recv(struct th_stack *s, unsigned long n)
{
	struct th_buf bufs[RING];
	struct fi_cq_tagged_entry e;
	unsigned long i;
	int k;

	for (k = 0; k < RING; k++) {
		bufs[k] = th_buf_new(64 << 10);
		post_multi(s, &bufs[k]);
	}
	for (i = 0; i < n;) {
		e = th_rx_ok(s);
		if (e.flags & FI_RECV) {
			th_eq(e.len, stream_len(i));
			th_verify(e.buf, e.len, i++);
		}
		if (!(e.flags & FI_MULTI_RECV))
			continue;
		for (k = 0; bufs[k].p != e.op_context;)
			th_check(++k < RING);
		th_buf_check(&bufs[k]);
		post_multi(s, &bufs[k]);
	}
	for (k = 0; k < RING; k++)
		th_buf_check(&bufs[k]);
	th_stack_close(s);
	for (k = 0; k < RING; k++)
		th_buf_free(&bufs[k]);
}

/* A stream of messages through a ring of buffers, in order. */
static void stream(struct th_self *self)
{
	unsigned long n = th_rounds(STREAM);
	struct th_stack s;

	th_stack_open(&s, &multi);
	set_min(&s, STREAM_MAX);
	th_stack_enable(&s);
	th_stack_connect(&s, self);
	if (self->rank == 0) {
		stream_send(&s, n);
		th_stack_close(&s);
	} else {
		stream_recv(&s, n);
	}
}

static const struct CMUnitTest multi_recv_tests[] = {
	TH_CASE(fills_and_releases, 1, 10),
	TH_CASE(unexpected_first, 1, 10),
	TH_CASE(case_T8_little_room, 1, 10),
	TH_CASE(held_inside, 1, 10),
	TH_CASE(case_T15_cancel_flag, 1, 10),
	TH_CASE(case_T15_cancel_filling, 1, 10),
	TH_CASE(option, 1, 10),
	TH_CASE(as_op_flag, 1, 10),
	TH_CASE(release_is_never_suppressed, 1, 10),
	TH_CASE(stream, 2, 20),
};

TH_MAIN(multi_recv_tests)
