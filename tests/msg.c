/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Untagged and tagged messages between two processes: every size across the
 * changes of path, expected and unexpected, all calls that send, scattered
 * buffers, and what a completion says.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static const size_t sizes[] = {
	0,	1,	7,	 8,	  31,	   32,	    33,	     40,
	41,	63,	64,	 65,	  255,	   256,	    1000,    1023,
	1024,	1025,	2047,	 2048,	  2049,	   4095,    4096,    4097,
	8191,	8192,	8193,	 16384,	  32768,   65535,   65536,   65537,
	131072, 262143, 1048575, 1048576, 1048577, 2097169, 4194304, 16777217,
};

enum { NSIZES = sizeof(sizes) / sizeof(sizes[0]), TAG = 0x1234 };

/* ---- every size ------------------------------------------------------ */

static void send_size(struct th_stack *s, bool tagged, size_t i, void *buf)
{
	th_fill(buf, sizes[i], i);
	if (tagged)
		th_tsend(s, s->peers[1], buf, sizes[i], TAG + i, buf);
	else
		th_send(s, s->peers[1], buf, sizes[i], buf);
}

static void send_post(struct th_stack *s, bool tagged, void **bufs)
{
	size_t i;

	for (i = 0; i < NSIZES; i++) {
		bufs[i] = malloc(sizes[i] + 1);
		th_check(bufs[i]);
		send_size(s, tagged, i, bufs[i]);
	}
}

static void send_wait(struct th_stack *s, bool tagged, void **bufs)
{
	struct fi_cq_tagged_entry e;
	size_t i;

	for (i = 0; i < NSIZES; i++) {
		e = th_tx_ok(s);
		th_eq(e.flags & (FI_SEND | FI_RECV | FI_MSG | FI_TAGGED),
		      FI_SEND | (tagged ? FI_TAGGED : FI_MSG));
		th_check(!(e.flags & FI_REMOTE_CQ_DATA));
	}
	for (i = 0; i < NSIZES; i++)
		free(bufs[i]);
}

static void send_all(struct th_self *self, struct th_stack *s, bool tagged,
		     bool unexpected)
{
	void *bufs[NSIZES];

	if (!unexpected)
		th_barrier_progress(self, s, "posted");
	send_post(s, tagged, bufs);
	if (unexpected)
		th_barrier_progress(self, s, "sent");
	send_wait(s, tagged, bufs);
}

static void post_size(struct th_stack *s, bool tagged, size_t i,
		      struct th_buf *b)
{
	*b = th_buf_new(sizes[i]);
	if (tagged)
		th_trecv(s, b->p, b->len, TAG + i, 0, b);
	else
		th_recv(s, b->p, b->len, b);
}

static void check_size(struct th_stack *s, bool tagged, struct th_buf *bufs)
{
	struct fi_cq_tagged_entry e = th_rx_ok(s);
	struct th_buf *b = e.op_context;
	size_t i = (size_t)(b - bufs);

	th_check(b >= bufs && i < NSIZES && b->p);
	th_eq(e.len, sizes[i]);
	th_eq(e.flags & (FI_SEND | FI_RECV | FI_MSG | FI_TAGGED),
	      FI_RECV | (tagged ? FI_TAGGED : FI_MSG));
	th_check(!(e.flags & (FI_REMOTE_CQ_DATA | FI_MULTI_RECV)));
	if (tagged)
		th_eq(e.tag, TAG + i);
	th_verify(b->p, b->len, i);
	th_buf_free(b);
}

static void recv_all(struct th_self *self, struct th_stack *s, bool tagged,
		     bool unexpected)
{
	struct th_buf bufs[NSIZES];
	size_t i;

	if (unexpected) {
		th_barrier_progress(self, s, "sent");
		th_quiet(s, 20);
	}
	for (i = 0; i < NSIZES; i++)
		post_size(s, tagged, i, &bufs[i]);
	if (!unexpected)
		th_barrier_progress(self, s, "posted");
	for (i = 0; i < NSIZES; i++)
		check_size(s, tagged, bufs);
	th_quiet(s, 20);
}

static void sizes_run(struct th_self *self, bool tagged, bool unexpected)
{
	struct th_stack s;

	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	if (self->rank == 1)
		recv_all(self, &s, tagged, unexpected);
	else
		send_all(self, &s, tagged, unexpected);
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

static void sizes_expected(struct th_self *self)
{
	sizes_run(self, false, false);
}

static void sizes_unexpected(struct th_self *self)
{
	sizes_run(self, false, true);
}

static void sizes_expected_tagged(struct th_self *self)
{
	sizes_run(self, true, false);
}

static void sizes_unexpected_tagged(struct th_self *self)
{
	sizes_run(self, true, true);
}

/* ---- every call that sends ------------------------------------------- */

enum { CALLS = 12, CALL_LEN = 1500 };

static const uint64_t cq_data = UINT64_C(0xfedcba9876543210);

static bool call_is_tagged(int call)
{
	return call >= CALLS / 2;
}

static bool call_has_data(int call)
{
	int c = call % (CALLS / 2);

	return c == 3 || c == 4 || c == 5;
}

static bool call_is_inject(int call)
{
	int c = call % (CALLS / 2);

	return c == 2 || c == 4;
}

static ssize_t call_msg(struct th_stack *s, int call, void *buf, fi_addr_t to)
{
	struct iovec iov = { buf, CALL_LEN };
	struct fi_msg msg = { .msg_iov = &iov,
			      .iov_count = 1,
			      .addr = to,
			      .context = buf,
			      .data = cq_data };

	switch (call) {
	case 0:
		return fi_send(s->ep, buf, CALL_LEN, NULL, to, buf);
	case 1:
		return fi_sendv(s->ep, &iov, NULL, 1, to, buf);
	case 2:
		return fi_inject(s->ep, buf, CALL_LEN, to);
	case 3:
		return fi_senddata(s->ep, buf, CALL_LEN, NULL, cq_data, to,
				   buf);
	case 4:
		return fi_injectdata(s->ep, buf, CALL_LEN, cq_data, to);
	default:
		return fi_sendmsg(s->ep, &msg, FI_REMOTE_CQ_DATA);
	}
}

static ssize_t call_tagged(struct th_stack *s, int call, void *buf,
			   fi_addr_t to)
{
	struct iovec iov = { buf, CALL_LEN };
	struct fi_msg_tagged msg = { .msg_iov = &iov,
				     .iov_count = 1,
				     .addr = to,
				     .tag = TAG,
				     .context = buf,
				     .data = cq_data };

	switch (call - CALLS / 2) {
	case 0:
		return fi_tsend(s->ep, buf, CALL_LEN, NULL, to, TAG, buf);
	case 1:
		return fi_tsendv(s->ep, &iov, NULL, 1, to, TAG, buf);
	case 2:
		return fi_tinject(s->ep, buf, CALL_LEN, to, TAG);
	case 3:
		return fi_tsenddata(s->ep, buf, CALL_LEN, NULL, cq_data, to,
				    TAG, buf);
	case 4:
		return fi_tinjectdata(s->ep, buf, CALL_LEN, cq_data, to, TAG);
	default:
		return fi_tsendmsg(s->ep, &msg, FI_REMOTE_CQ_DATA);
	}
}

static void call_check_rx(struct th_stack *b, int call, void *rbuf)
{
	struct fi_cq_tagged_entry e = th_rx_ok(b);

	th_ptr_eq(e.op_context, rbuf);
	th_eq(e.len, CALL_LEN);
	th_eq(!!(e.flags & FI_REMOTE_CQ_DATA), call_has_data(call));
	if (call_has_data(call))
		th_eq(e.data, cq_data);
	th_verify(rbuf, CALL_LEN, (uint64_t)call);
}

/*
 * All twelve calls; an injected buffer is overwritten at once and gives no
 * entry at the sender.
 */
static void calls_send(struct th_self *self)
{
	unsigned char buf[CALL_LEN], rbuf[CALL_LEN];
	struct fi_cq_tagged_entry e;
	struct th_stack a, b;
	int c;

	(void)self;
	th_pair_open(&a, &b, NULL);
	for (c = 0; c < CALLS; c++) {
		th_fill(buf, sizeof(buf), (uint64_t)c);
		if (call_is_tagged(c))
			th_trecv(&b, rbuf, sizeof(rbuf), TAG, 0, rbuf);
		else
			th_recv(&b, rbuf, sizeof(rbuf), rbuf);
		if (call_is_tagged(c))
			th_post(&a, call_tagged(&a, c, buf, a.peers[1]));
		else
			th_post(&a, call_msg(&a, c, buf, a.peers[1]));
		if (call_is_inject(c))
			memset(buf, 0x55, sizeof(buf));
		call_check_rx(&b, c, rbuf);
		if (call_is_inject(c)) {
			th_quiet(&a, 2);
			continue;
		}
		e = th_tx_ok(&a);
		th_ptr_eq(e.op_context, buf);
		th_check(!(e.flags & FI_REMOTE_CQ_DATA));
	}
	th_quiet(&a, 10);
	th_quiet(&b, 10);
	th_pair_close(&a, &b);
}

/* ---- scattered buffers ------------------------------------------------ */

enum { IOV_MAX_COUNT = 16 };

/*
 * Cuts @len bytes at @base into @n pieces of odd lengths, some of them
 * empty; the pieces are contiguous in memory but for one skipped byte each.
 */
static void cut(struct iovec *iov, size_t n, unsigned char *base, size_t len,
		uint64_t seed)
{
	size_t i, piece, left = len;

	for (i = 0; i < n; i++) {
		piece = i + 1 == n ? left : th_random(&seed) % (left + 1);
		if (i + 1 < n && th_random(&seed) % 4 == 0)
			piece = 0;
		iov[i].iov_base = base;
		iov[i].iov_len = piece;
		base += piece + 1;
		left -= piece;
	}
}

static void fill_iov(const struct iovec *iov, size_t n, uint64_t seed)
{
	size_t i, off = 0;

	for (i = 0; i < n; off += iov[i++].iov_len)
		th_fill_at(iov[i].iov_base, iov[i].iov_len, seed, off);
}

static void verify_iov(const struct iovec *iov, size_t n, uint64_t seed)
{
	size_t i, off = 0;

	for (i = 0; i < n; off += iov[i++].iov_len)
		th_verify_at(iov[i].iov_base, iov[i].iov_len, seed, off);
}

static void iov_once(struct th_stack *a, struct th_stack *b, size_t ns,
		     size_t nr, size_t len)
{
	struct th_buf sb = th_buf_new(len + IOV_MAX_COUNT);
	struct th_buf rb = th_buf_new(len + IOV_MAX_COUNT);
	struct iovec siov[IOV_MAX_COUNT], riov[IOV_MAX_COUNT];
	uint64_t seed = ns * 1000 + nr * 31 + len;

	cut(siov, ns, sb.p, len, seed);
	cut(riov, nr, rb.p, len, seed + 1);
	fill_iov(siov, ns, seed);
	if (len % 2) {
		th_ok(fi_trecvv(b->ep, riov, NULL, nr, FI_ADDR_UNSPEC, TAG, 0,
				riov));
		th_post(a, fi_tsendv(a->ep, siov, NULL, ns, a->peers[1], TAG,
				     siov));
	} else {
		th_ok(fi_recvv(b->ep, riov, NULL, nr, FI_ADDR_UNSPEC, riov));
		th_post(a, fi_sendv(a->ep, siov, NULL, ns, a->peers[1], siov));
	}
	th_eq(th_rx_ok(b).len, len);
	th_ptr_eq(th_tx_ok(a).op_context, siov);
	verify_iov(riov, nr, seed);
	th_buf_free(&sb);
	th_buf_free(&rb);
}

static void iov_limits_ok(struct th_stack *s)
{
	th_check(s->info->tx_attr->iov_limit >= IOV_MAX_COUNT ||
		 !th_is_shrimp());
	th_check(s->info->rx_attr->iov_limit >= IOV_MAX_COUNT ||
		 !th_is_shrimp());
}

static void case_T27_iov(struct th_self *self)
{
	static const size_t lens[] = { 0,    3,	    40,	   997,	   1024,
				       8191, 65536, 70001, 1500002 };
	struct th_stack a, b;
	size_t ns, nr, i, limit;

	(void)self;
	th_pair_open(&a, &b, NULL);
	iov_limits_ok(&a);
	limit = a.info->tx_attr->iov_limit;
	if (limit > IOV_MAX_COUNT)
		limit = IOV_MAX_COUNT;
	for (ns = 1; ns <= limit; ns += ns == 1 ? 1 : 7)
		for (nr = 1; nr <= limit; nr += nr < 3 ? 1 : 13)
			for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
				iov_once(&a, &b, ns, nr, lens[i]);
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		iov_once(&a, &b, limit, limit, lens[i]);
	th_pair_close(&a, &b);
}

/* One more than the limit is refused by every form of the call. */
static void case_T27_too_many(struct th_self *self)
{
	struct fi_msg_tagged tmsg = { .tag = TAG };
	struct fi_msg msg = { 0 };
	struct iovec *iov;
	struct th_stack a, b;
	char byte[1];
	size_t n, i;

	(void)self;
	th_pair_open(&a, &b, NULL);
	n = a.info->tx_attr->iov_limit + 1;
	iov = calloc(n, sizeof(*iov));
	th_check(iov);
	for (i = 0; i < n; i++)
		iov[i] = (struct iovec){ byte, 1 };
	tmsg.msg_iov = msg.msg_iov = iov;
	tmsg.iov_count = msg.iov_count = n;
	tmsg.addr = msg.addr = a.peers[1];
	th_eq(fi_sendv(a.ep, iov, NULL, n, a.peers[1], iov), -FI_EINVAL);
	th_eq(fi_tsendv(a.ep, iov, NULL, n, a.peers[1], TAG, iov), -FI_EINVAL);
	th_eq(fi_sendmsg(a.ep, &msg, 0), -FI_EINVAL);
	th_eq(fi_tsendmsg(a.ep, &tmsg, 0), -FI_EINVAL);
	tmsg.addr = msg.addr = FI_ADDR_UNSPEC;
	th_eq(fi_recvv(a.ep, iov, NULL, n, FI_ADDR_UNSPEC, iov), -FI_EINVAL);
	th_eq(fi_trecvv(a.ep, iov, NULL, n, FI_ADDR_UNSPEC, TAG, 0, iov),
	      -FI_EINVAL);
	th_eq(fi_recvmsg(a.ep, &msg, 0), -FI_EINVAL);
	th_eq(fi_trecvmsg(a.ep, &tmsg, 0), -FI_EINVAL);
	th_quiet(&a, 10);
	th_quiet(&b, 10);
	free(iov);
	th_pair_close(&a, &b);
}

/* No buffer at all: iov_count 0, NULL. */
static void iov_none(struct th_self *self)
{
	struct fi_msg msg = { 0 };
	struct th_stack a, b;

	(void)self;
	th_pair_open(&a, &b, NULL);
	msg.addr = FI_ADDR_UNSPEC;
	msg.context = &b;
	th_ok(fi_recvmsg(b.ep, &msg, 0));
	msg.addr = a.peers[1];
	msg.context = &a;
	th_post(&a, fi_sendmsg(a.ep, &msg, 0));
	th_ptr_eq(th_tx_ok(&a).op_context, &a);
	th_ptr_eq(th_rx_ok(&b).op_context, &b);
	th_recv(&b, NULL, 0, &b);
	th_post(&a, fi_inject(a.ep, NULL, 0, a.peers[1]));
	th_eq(th_rx_ok(&b).len, 0);
	th_pair_close(&a, &b);
}

/* ---- limits ----------------------------------------------------------- */

/* inject_size is at least 4 KiB, works to its last byte, and is a limit. */
static void inject_size(struct th_self *self)
{
	struct fi_msg msg = { 0 };
	struct iovec iov;
	struct th_stack a, b;
	unsigned char *buf, *rbuf;
	size_t max;

	(void)self;
	th_pair_open(&a, &b, NULL);
	max = a.info->tx_attr->inject_size;
	th_check(max >= 4096);
	buf = malloc(max + 1);
	rbuf = malloc(max + 1);
	th_check(buf && rbuf);
	th_fill(buf, max + 1, 7);
	th_eq(fi_inject(a.ep, buf, max + 1, a.peers[1]), -FI_EINVAL);
	th_eq(fi_tinject(a.ep, buf, max + 1, a.peers[1], TAG), -FI_EINVAL);
	iov = (struct iovec){ buf, max + 1 };
	msg.msg_iov = &iov;
	msg.iov_count = 1;
	msg.addr = a.peers[1];
	th_eq(fi_sendmsg(a.ep, &msg, FI_INJECT), -FI_EINVAL);
	th_recv(&b, rbuf, max + 1, rbuf);
	th_post(&a, fi_inject(a.ep, buf, max, a.peers[1]));
	memset(buf, 0, max);
	th_eq(th_rx_ok(&b).len, max);
	th_verify(rbuf, max, 7);
	th_quiet(&a, 10);
	free(buf);
	free(rbuf);
	th_pair_close(&a, &b);
}

/* An address that was never inserted is refused at the call. */
static void bad_destination(struct th_self *self)
{
	struct th_stack a, b;
	char byte = 0;

	(void)self;
	th_pair_open(&a, &b, NULL);
	th_eq(fi_send(a.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, &a), -FI_EINVAL);
	th_eq(fi_send(a.ep, &byte, 1, NULL, 12345, &a), -FI_EINVAL);
	th_eq(fi_tinject(a.ep, &byte, 1, 12345, TAG), -FI_EINVAL);
	th_quiet(&a, 10);
	th_pair_close(&a, &b);
}

/* max_msg_size is beyond 2 GiB. */
static void max_msg_size(struct th_self *self)
{
	struct th_stack s;

	(void)self;
	th_stack_open(&s, NULL);
	th_check(s.info->ep_attr->max_msg_size > (size_t)1 << 31);
	th_stack_close(&s);
}

/* ---- beyond 2 GiB ------------------------------------------------------ */

static const size_t huge_len = ((size_t)2 << 30) + 4097;
static void huge_send(struct th_stack *s)
{
	unsigned char *p;
	int fd;

	p = th_huge_map(huge_len, &fd);
	th_fill(p, TH_HUGE_PERIOD, 3);
	th_tsend(s, s->peers[1], p, huge_len, TAG, p);
	th_ptr_eq(th_tx_ok(s).op_context, p);
	munmap(p, huge_len + TH_HUGE_PERIOD);
	close(fd);
}

static void huge_recv(struct th_stack *s)
{
	struct fi_cq_tagged_entry e;
	unsigned char *p;
	size_t off;

	p = mmap(NULL, huge_len + 1, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	th_check(p != MAP_FAILED);
	th_trecv(s, p, huge_len + 1, TAG, 0, p);
	e = th_rx_ok(s);
	th_eq(e.len, huge_len);
	for (off = 0; off + TH_HUGE_PERIOD <= huge_len; off += TH_HUGE_PERIOD)
		th_verify(p + off, TH_HUGE_PERIOD, 3);
	th_verify(p + off, huge_len - off, 3);
	th_eq(p[huge_len], 0);
	munmap(p, huge_len + 1);
}

static void huge_message(struct th_self *self)
{
	struct th_stack s;

	th_need_memory(self, 8);
	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	if (self->rank == 0)
		huge_send(&s);
	else
		huge_recv(&s);
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

static const struct CMUnitTest msg_tests[] = {
	TH_CASE(sizes_expected, 2, 20),
	TH_CASE(sizes_unexpected, 2, 20),
	TH_CASE(sizes_expected_tagged, 2, 20),
	TH_CASE(sizes_unexpected_tagged, 2, 20),
	TH_CASE(calls_send, 1, 20),
	TH_CASE(case_T27_iov, 1, 20),
	TH_CASE(case_T27_too_many, 1, 10),
	TH_CASE(iov_none, 1, 10),
	TH_CASE(inject_size, 1, 10),
	TH_CASE(bad_destination, 1, 10),
	TH_CASE(max_msg_size, 1, 10),
	TH_CASE(huge_message, 2, 120),
};

TH_MAIN(msg_tests)
