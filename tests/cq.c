/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Completion queues: entry formats, reading many, growing, sources, error
 * entries, and what an entry says. (Blocking reads are in wait.c.)
 */
#define _GNU_SOURCE
#include "harness.h"

enum { TAG = 81 };

static void put(struct th_stack *s, uint64_t v)
{
	th_post(s, fi_tinjectdata(s->ep, &v, 8, v + 1000, s->peers[1], TAG));
}

/* ---- formats ----------------------------------------------------------- */

static size_t entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	default:
		return sizeof(struct fi_cq_tagged_entry);
	}
}

/* Checks entry @k of @format: a receive of 8 bytes, value @k, context @ctx. */
static void check_entry(enum fi_cq_format format, const char *entry, uint64_t k,
			void *ctx)
{
	struct fi_cq_tagged_entry e = { 0 };

	memcpy(&e, entry, entry_size(format));
	th_ptr_eq(e.op_context, ctx);
	if (format == FI_CQ_FORMAT_CONTEXT)
		return;
	th_eq(e.flags & (FI_RECV | FI_TAGGED), FI_RECV | FI_TAGGED);
	th_eq(e.len, 8);
	if (format == FI_CQ_FORMAT_MSG)
		return;
	th_check(e.flags & FI_REMOTE_CQ_DATA);
	th_eq(e.data, k + 1000);
	if (format == FI_CQ_FORMAT_TAGGED)
		th_eq(e.tag, TAG);
}

/*
 * N entries read in portions of 1, 2, 3, ... into an array with a guard
 * behind the portion.
 */
static void read_portions(struct th_stack *b, enum fi_cq_format format,
			  uint64_t *rx, uint64_t n)
{
	size_t size = entry_size(format);
	uint64_t got = 0, want, i;
	struct th_buf buf;
	ssize_t ret;

	for (want = 1; got < n; want++) {
		buf = th_buf_new(size * want);
		do {
			ret = fi_cq_read(b->rxcq, buf.p, want);
			th_progress(b);
		} while (ret == -FI_EAGAIN);
		th_check(ret > 0 && (uint64_t)ret <= want);
		for (i = 0; i < (uint64_t)ret; i++, got++)
			check_entry(format, (char *)buf.p + i * size, got,
				    &rx[got]);
		th_verify_byte(buf.p + size * (size_t)ret,
			       size * (want - (uint64_t)ret), 0xee);
		th_buf_free(&buf);
	}
	th_eq(got, n);
}

static void format_run(enum fi_cq_format format)
{
	struct th_stack_opts o = { .cq_format = format };
	enum { N = 200 };
	struct th_stack a, b;
	uint64_t rx[N], i;

	th_pair_open(&a, &b, &o);
	for (i = 0; i < N; i++)
		th_trecv(&b, &rx[i], 8, TAG, 0, &rx[i]);
	for (i = 0; i < N; i++)
		put(&a, i);
	read_portions(&b, format, rx, N);
	for (i = 0; i < N; i++)
		th_eq(rx[i], i);
	th_pair_close(&a, &b);
}

static void every_format(struct th_self *self)
{
	(void)self;
	format_run(FI_CQ_FORMAT_CONTEXT);
	format_run(FI_CQ_FORMAT_MSG);
	format_run(FI_CQ_FORMAT_DATA);
	format_run(FI_CQ_FORMAT_TAGGED);
}

/* FI_CQ_FORMAT_UNSPEC and no attributes at all: the provider chooses. */
static void format_unspec(struct th_self *self)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_UNSPEC };
	struct th_stack s;
	struct fid_cq *cq;

	(void)self;
	th_stack_open(&s, NULL);
	th_ok(fi_cq_open(s.domain, &attr, &cq, &s));
	th_check(attr.format >= FI_CQ_FORMAT_UNSPEC &&
		 attr.format <= FI_CQ_FORMAT_TAGGED);
	th_ptr_eq(cq->fid.context, &s);
	th_eq(cq->fid.fclass, FI_CLASS_CQ);
	th_ok(fi_close(&cq->fid));
	th_stack_close(&s);
}

/* Attributes that mean nothing are refused. */
static void bad_attributes(struct th_self *self)
{
	struct fi_cq_attr attr = { .format = 4711 };
	struct th_stack s;
	struct fid_cq *cq;

	(void)self;
	th_stack_open(&s, NULL);
	th_check(fi_cq_open(s.domain, &attr, &cq, NULL) < 0);
	attr = (struct fi_cq_attr){ .wait_obj = 4711 };
	th_check(fi_cq_open(s.domain, &attr, &cq, NULL) < 0);
	attr = (struct fi_cq_attr){ .flags = FI_PEER };
	th_eq(fi_cq_open(s.domain, &attr, &cq, NULL), -FI_EINVAL);
	th_stack_close(&s);
}

/* ---- growing, and reading without room ---------------------------------- */

/*
 * A CQ that was asked to have 4 entries takes as many as come, in order, and
 * nothing is lost while nobody reads it.
 */
static void grows(struct th_self *self)
{
	struct th_stack_opts o = { .cq_size = 4 };
	/* Below the limit of queued operations, contract P2. */
	uint64_t n = th_rounds(9000), i, *rx;
	struct fi_cq_tagged_entry e;
	struct th_stack a, b;

	(void)self;
	rx = calloc(n, sizeof(*rx));
	th_check(rx);
	th_pair_open(&a, &b, &o);
	for (i = 0; i < n; i++)
		th_trecv(&b, &rx[i], 8, TAG, 0, &rx[i]);
	for (i = 0; i < n; i++)
		put(&a, i);
	while (rx[n - 1] != n - 1)
		th_progress(&b);
	for (i = 0; i < n; i++) {
		e = th_rx_ok(&b);
		th_ptr_eq(e.op_context, &rx[i]);
		th_eq(e.data, i + 1000);
	}
	th_quiet(&b, 5);
	free(rx);
	th_pair_close(&a, &b);
}

/* Count 0 makes progress and takes nothing, error entries included. */
static void count_0(struct th_self *self)
{
	struct th_stack a, b;
	uint64_t rx = 0;
	ssize_t ret;
	int i;

	(void)self;
	th_pair_open(&a, &b, NULL);
	ret = fi_cq_read(b.rxcq, NULL, 0);
	th_check(ret == 0 || ret == -FI_EAGAIN);
	th_trecv(&b, &rx, 8, TAG, 0, &rx);
	put(&a, 5);
	for (i = 0; i < 1000000 && rx != 5; i++) {
		ret = fi_cq_read(b.rxcq, NULL, 0);
		th_check(ret == 0 || ret == -FI_EAGAIN);
		fi_cq_read(a.txcq, NULL, 0);
	}
	th_eq(rx, 5);
	th_ptr_eq(th_rx_ok(&b).op_context, &rx);
	th_pair_close(&a, &b);
}

/* ---- errors ---------------------------------------------------------------- */

static void make_error(struct th_stack *s, void *ctx)
{
	th_trecv(s, NULL, 0, TAG, 0, ctx);
	th_ok(fi_cancel(&s->ep->fid, ctx));
}

/*
 * An error hides nothing: it is announced until it is read, then the others
 * come.
 */
static void errors_among_successes(struct th_self *self)
{
	struct fi_cq_tagged_entry e[4];
	struct fi_cq_err_entry err = { 0 };
	struct th_stack a, b;
	uint64_t rx[2], i;

	(void)self;
	th_pair_open(&a, &b, NULL);
	th_eq(fi_cq_readerr(b.rxcq, &err, 0), -FI_EAGAIN);
	make_error(&b, &a);
	for (i = 0; i < 3; i++)
		th_eq(fi_cq_read(b.rxcq, e, 4), -FI_EAVAIL);
	th_eq(fi_cq_readerr(b.rxcq, &err, 0), 1);
	th_ptr_eq(err.op_context, &a);
	th_eq(err.err, FI_ECANCELED);
	th_eq(fi_cq_readerr(b.rxcq, &err, 0), -FI_EAGAIN);
	th_eq(fi_cq_read(b.rxcq, e, 4), -FI_EAGAIN);
	th_trecv(&b, &rx[0], 8, TAG, 0, &rx[0]);
	put(&a, 1);
	while (rx[0] != 1)
		th_progress(&b);
	make_error(&b, &b);
	th_trecv(&b, &rx[1], 8, TAG, 0, &rx[1]);
	put(&a, 2);
	for (i = 0; i < 3; i++) {
		if (th_cq_next(&b, b.rxcq, e, &err) == 1)
			th_check(e[0].op_context == &rx[0] ||
				 e[0].op_context == &rx[1]);
		else
			th_ptr_eq(err.op_context, &b);
	}
	th_check(rx[0] == 1 && rx[1] == 2);
	th_quiet(&b, 5);
	th_pair_close(&a, &b);
}

/*
 * err_data: with a buffer of the caller it is the caller's, and no more is
 * written than fits; without, it is the provider's or NULL.
 */
static void err_data(struct th_self *self)
{
	struct th_buf buf = th_buf_new(7);
	struct fi_cq_err_entry err = { 0 };
	struct th_stack s;

	(void)self;
	th_stack_open(&s, NULL);
	make_error(&s, &s);
	err.err_data = buf.p;
	err.err_data_size = buf.len;
	th_eq(fi_cq_readerr(s.rxcq, &err, 0), 1);
	th_check(err.err_data_size <= buf.len);
	if (err.err_data_size)
		th_ptr_eq(err.err_data, buf.p);
	th_buf_free(&buf);
	make_error(&s, &s);
	memset(&err, 0, sizeof(err));
	th_eq(fi_cq_readerr(s.rxcq, &err, 0), 1);
	th_check((err.err_data_size != 0) <= (err.err_data != NULL));
	th_stack_close(&s);
}

static void strerror_says_something(struct th_self *self)
{
	struct fi_cq_err_entry err = { 0 };
	char text[64] = "";
	struct th_stack s;
	const char *p;

	(void)self;
	th_stack_open(&s, NULL);
	make_error(&s, &s);
	th_eq(fi_cq_readerr(s.rxcq, &err, 0), 1);
	p = fi_cq_strerror(s.rxcq, err.prov_errno, err.err_data, NULL, 0);
	th_check(p && *p);
	p = fi_cq_strerror(s.rxcq, err.prov_errno, err.err_data, text,
			   sizeof(text));
	th_check(p && *p);
	th_check(memchr(text, 0, sizeof(text)));
	th_stack_close(&s);
}

/* ---- T19: what an entry says ------------------------------------------------ */

static const size_t t19_lens[] = { 0, 8, 100, 5000, 1 << 20 };
enum { T19_LENS = 5, T19_CALLS = 6, LONGEST = 1 << 20 };

static ssize_t t19_call(struct th_stack *s, int call, void *buf, size_t len,
			uint64_t data)
{
	struct iovec iov = { buf, len };
	struct fi_msg_tagged t = {
		&iov, NULL, 1, s->peers[1], TAG, 0, buf, data
	};
	struct fi_msg m = { &iov, NULL, 1, s->peers[1], buf, data };
	bool fits = len <= s->info->tx_attr->inject_size;

	switch (call) {
	case 0:
		return fi_senddata(s->ep, buf, len, NULL, data, s->peers[1],
				   buf);
	case 1:
		return fi_tsenddata(s->ep, buf, len, NULL, data, s->peers[1],
				    TAG, buf);
	case 2:
		return fi_sendmsg(s->ep, &m,
				  FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE);
	case 3:
		return fi_tsendmsg(s->ep, &t, FI_REMOTE_CQ_DATA);
	case 4:
		return fi_sendmsg(s->ep, &m,
				  FI_REMOTE_CQ_DATA | (fits ? FI_INJECT : 0));
	default:
		return fi_tsend(s->ep, buf, len, NULL, s->peers[1], TAG, buf);
	}
}

static void t19_check(const struct fi_cq_tagged_entry *rx,
		      const struct fi_cq_tagged_entry *tx, int call, size_t len,
		      uint64_t data)
{
	bool tagged = call % 2, has_data = call != 5;
	const uint64_t kinds = FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_RMA |
			       FI_ATOMIC | FI_REMOTE_WRITE;

	th_eq(rx->len, len);
	th_eq(rx->flags & kinds, FI_RECV | (tagged ? FI_TAGGED : FI_MSG));
	th_eq(!!(rx->flags & FI_REMOTE_CQ_DATA), has_data);
	if (has_data)
		th_eq(rx->data, data);
	if (tagged)
		th_eq(rx->tag, TAG);
	th_eq(tx->flags & kinds, FI_SEND | (tagged ? FI_TAGGED : FI_MSG));
	th_check(!(tx->flags & FI_REMOTE_CQ_DATA));
}

/* One call, its receive posted before or after; bufs[0] is sent. */
static void t19_once(struct th_stack *a, struct th_stack *b, int call,
		     size_t len, bool late, unsigned char **bufs)
{
	uint64_t data = UINT64_C(0x8877665544332211) + len + (unsigned)call;
	struct fi_cq_tagged_entry rx, tx;

	th_fill(bufs[0], len, len);
	if (late) {
		th_post(a, t19_call(a, call, bufs[0], len, data));
		th_quiet(b, 2);
	}
	if (call % 2)
		th_trecv(b, bufs[1], LONGEST, TAG, 0, bufs[1]);
	else
		th_recv(b, bufs[1], LONGEST, bufs[1]);
	if (!late)
		th_post(a, t19_call(a, call, bufs[0], len, data));
	rx = th_rx_ok(b);
	tx = th_tx_ok(a);
	t19_check(&rx, &tx, call, len, data);
	th_verify(bufs[1], len, len);
}

static void case_T19_flags_data_len(struct th_self *self)
{
	unsigned char *bufs[2] = { malloc(LONGEST), malloc(LONGEST) };
	struct th_stack a, b;
	int call, i;

	(void)self;
	th_check(bufs[0] && bufs[1]);
	th_pair_open(&a, &b, NULL);
	for (call = 0; call < T19_CALLS; call++)
		for (i = 0; i < 2 * T19_LENS; i++)
			t19_once(&a, &b, call, t19_lens[i / 2], i % 2, bufs);
	free(bufs[0]);
	free(bufs[1]);
	th_pair_close(&a, &b);
}

/* ---- sources, sharing, closing ------------------------------------------------ */

/* fi_cq_readfrom() without FI_SOURCE: no address is made up. */
static void readfrom_without_source(struct th_self *self)
{
	struct th_stack_opts o = { .caps = FI_MSG | FI_TAGGED };
	struct th_stack a, b;
	fi_addr_t src = 77;
	uint64_t rx;

	(void)self;
	th_pair_open(&a, &b, &o);
	th_trecv(&b, &rx, 8, TAG, 0, &rx);
	put(&a, 1);
	th_rx_from(&b, &src);
	th_check(src == FI_ADDR_NOTAVAIL || (b.info->caps & FI_SOURCE));
	th_pair_close(&a, &b);
}

/* Several at once, each with its own source. */
static void readfrom_many(struct th_self *self)
{
	struct th_stack_opts o = { .caps = FI_TAGGED | FI_SOURCE };
	struct fi_cq_tagged_entry e[20];
	struct th_stack a, b;
	fi_addr_t src[20], self_addr;
	ssize_t n, got, k;
	uint64_t rx[20], i;

	(void)self;
	th_pair_open(&a, &b, &o);
	self_addr = b.peers[1];
	for (i = 0; i < 20; i++)
		th_trecv(&b, &rx[i], 8, TAG, 0, &rx[i]);
	for (i = 0; i < 10; i++) {
		th_post(&a, fi_tinject(a.ep, "fromAfar", 8, a.peers[1], TAG));
		th_post(&b, fi_tinject(b.ep, "fromSelf", 8, self_addr, TAG));
	}
	for (got = 0; got < 20; got += n) {
		n = fi_cq_readfrom(b.rxcq, e, 20, src);
		th_progress(&b);
		if (n == -FI_EAGAIN)
			n = 0;
		th_check(n >= 0);
		for (k = 0; k < n; k++)
			th_eq(src[k], memcmp(e[k].op_context, "fromSelf", 8)
					      ? b.peers[0]
					      : self_addr);
	}
	th_pair_close(&a, &b);
}

/* Two endpoints on one CQ, transmit and receive of both. */
static void shared_by_two(struct th_self *self)
{
	struct th_stack_opts o = { .one_cq = true };
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	struct th_stack a;
	struct fid_ep *ep;
	char name[TH_MAX_ADDR];
	size_t len = sizeof(name);
	uint64_t rx[2], tx = 3;
	fi_addr_t to[2];
	int i, sends = 0, recvs = 0;

	(void)self;
	th_stack_open(&a, &o);
	th_ok(fi_endpoint(a.domain, a.info, &ep, NULL));
	th_ok(fi_ep_bind(ep, &a.av->fid, 0));
	th_ok(fi_ep_bind(ep, &a.txcq->fid, FI_TRANSMIT | FI_RECV));
	th_ok(fi_enable(ep));
	th_ok(fi_getname(&ep->fid, name, &len));
	to[0] = th_insert(&a, name);
	to[1] = th_insert(&a, a.addr);
	th_ok(fi_trecv(ep, &rx[0], 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &rx[0]));
	th_trecv(&a, &rx[1], 8, TAG, 0, &rx[1]);
	th_tsend(&a, to[0], &tx, 8, TAG, &tx);
	th_post(&a, fi_tsend(ep, &tx, 8, NULL, to[1], TAG, &tx));
	for (i = 0; i < 4; i++) {
		th_eq(th_cq_next(&a, a.txcq, &e, &err), 1);
		sends += !!(e.flags & FI_SEND);
		recvs += !!(e.flags & FI_RECV);
	}
	th_check(sends == 2 && recvs == 2 && rx[0] == 3 && rx[1] == 3);
	th_ok(fi_close(&ep->fid));
	th_stack_close(&a);
}

/* A CQ that an endpoint uses cannot be closed. */
static void close_while_bound(struct th_self *self)
{
	struct th_stack s;

	(void)self;
	th_stack_open(&s, NULL);
	th_eq(fi_close(&s.rxcq->fid), -FI_EBUSY);
	th_eq(fi_close(&s.txcq->fid), -FI_EBUSY);
	th_eq(fi_close(&s.av->fid), -FI_EBUSY);
	th_eq(fi_close(&s.domain->fid), -FI_EBUSY);
	th_eq(fi_close(&s.fabric->fid), -FI_EBUSY);
	make_error(&s, &s);
	th_stack_close(&s);
}

static const struct CMUnitTest cq_tests[] = {
	TH_CASE(every_format, 1, 10),
	TH_CASE(format_unspec, 1, 10),
	TH_CASE(bad_attributes, 1, 10),
	TH_CASE(grows, 1, 10),
	TH_CASE(count_0, 1, 10),
	TH_CASE(errors_among_successes, 1, 10),
	TH_CASE(err_data, 1, 10),
	TH_CASE(strerror_says_something, 1, 10),
	TH_CASE(case_T19_flags_data_len, 1, 20),
	TH_CASE(readfrom_without_source, 1, 10),
	TH_CASE(readfrom_many, 1, 10),
	TH_CASE(shared_by_two, 1, 10),
	TH_CASE(close_while_bound, 1, 10),
};

TH_MAIN(cq_tests)
