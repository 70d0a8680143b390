/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Public cases of the calls themselves, the RMA part: inject (T6, T17),
 * completions and CQ data (T19), counters (T20), an endpoint with itself
 * (T24), lists of ranges (T27), no rights for the kernel's copy (E11).
 *
 * Limit: 300 s
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "env_probe.h"

enum { LEN = 1 << 20 };

/* ---- T6, T17: inject --------------------------------------------------------- */

/* Injects without end; memory stays as it is. */
static void inject_loop(struct th_stack *s, fi_addr_t to)
{
	unsigned long n = th_rounds(300000);
	uint64_t rss = 0;
	char buf[64] = { 1 };

	for (unsigned long i = 0; i < n; i++) {
		ssize_t ret = fi_inject_write(s->ep, buf, 64, to, 8, RK_KEY);

		if (ret == -FI_EAGAIN)
			th_progress(s);
		else
			th_ok(ret);
		if (i == n / 10)
			rss = probe_status("VmRSS");
	}
	if (!th_sanitized())
		th_check(probe_status("VmRSS") <= rss + 1024);
}

static void case_T6_inject_write(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct rk_bed t;

	(void)self;
	rk_bed_open(&t, &o, true, LEN);
	inject_loop(&t.a, t.a.peers[1]);
	inject_loop(&t.b, t.b.peers[1]);
	th_quiet(&t.a, 2);
	th_quiet(&t.b, 2);
	rk_bed_close(&t);
}

/*
 * Until the target looks at its events there is room for some only. @told
 * counts all of them: those of the calls that succeeded.
 */
static uint64_t inject_until_eagain(struct rk_bed *t, uint64_t most)
{
	char buf[64] = { 1 };
	uint64_t n;
	ssize_t ret;

	for (n = 0; n < most; n++) {
		ret = fi_inject_writedata(t->a.ep, buf, 64, n, t->a.peers[1], 0,
					  RK_KEY);
		if (ret == -FI_EAGAIN)
			return n;
		th_ok(ret);
	}
	return n;
}

/* The target takes what there is. Events come in order. */
static uint64_t take_events(struct rk_bed *t, uint64_t first, uint64_t n)
{
	for (uint64_t i = first; i < first + n; i++)
		th_eq(th_rx_ok(&t->b).data, i);
	return n;
}

static void case_T6_inject_writedata(struct th_self *self)
{
	enum { MOST = 500000 };
	struct th_stack_opts o = rk_opts();
	uint64_t rss = probe_status("VmRSS"), n;
	struct rk_bed t;

	(void)self;
	setenv("FI_SHRIMP_TX_BUFFER", "1M", 1);
	rk_bed_open(&t, &o, true, LEN);
	n = inject_until_eagain(&t, MOST);
	th_check(n > 0 && n < MOST);
	if (!th_sanitized())
		th_check(probe_status("VmRSS") <= rss + 64 * 1024);
	take_events(&t, 0, n);
	/* it has recovered, and is not worse off */
	th_check(inject_until_eagain(&t, 50) == 50);
	for (uint64_t i = 0; i < 50; i++)
		th_eq(th_rx_ok(&t.b).data, i);
	th_quiet(&t.b, 2);
	rk_bed_close(&t);
}

/* The source may be used again at once, also if the write has to wait. */
static void t17(uint64_t flags, bool device)
{
	enum { N = 1000, ONE = 256 };
	struct th_stack_opts o = rk_opts();
	unsigned char buf[ONE];
	struct iovec iov = { buf, ONE };
	struct fi_rma_iov there = { .len = ONE, .key = RK_KEY };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.iov_count = 1,
				.rma_iov = &there,
				.rma_iov_count = 1 };
	struct rk_bed t;
	uint64_t n;

	rk_bed_open(&t, &o, device, LEN);
	m.addr = t.a.peers[1];
	for (n = 0; n < N; n++) {
		th_fill(buf, ONE, n);
		there.addr = n * ONE;
		m.data = n;
		if (fi_writemsg(t.a.ep, &m, flags | FI_INJECT))
			break;
		memset(buf, 0xff, ONE);
	}
	th_check(n > 50);
	for (uint64_t i = 0; i < n && flags & FI_REMOTE_CQ_DATA; i++) {
		th_eq(th_rx_ok(&t.b).data, i);
		th_verify(t.r.p + i * ONE, ONE, i);
	}
	for (uint64_t i = 0; i < n; i++)
		th_eq(th_tx_ok(&t.a).flags, FI_RMA | FI_WRITE);
	for (uint64_t i = 0; i < n; i++)
		th_verify(t.r.p + i * ONE, ONE, i);
	rk_bed_close(&t);
}

static void case_T17_writemsg_inject(struct th_self *self)
{
	(void)self;
	for (int device = 0; device < 2; device++) {
		t17(0, device);
		t17(FI_DELIVERY_COMPLETE, device);
		t17(FI_REMOTE_CQ_DATA, device);
		t17(FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE, device);
	}
}

/* ---- T19: flags, data, len ------------------------------------------------------ */

/* How a write with data is made. */
enum call { WRITEDATA, INJECT, MSG, MSG_INJECT, MSG_DELIVERY, CALLS };

static void write_with_data(struct rk_bed *t, enum call call, void *buf,
			    size_t len, uint64_t data)
{
	static const uint64_t flags[CALLS] = {
		[MSG_INJECT] = FI_INJECT,
		[MSG_DELIVERY] = FI_DELIVERY_COMPLETE,
	};
	struct iovec iov = { buf, len };
	struct fi_rma_iov there = { .len = len, .key = RK_KEY };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.iov_count = 1,
				.rma_iov = &there,
				.rma_iov_count = 1,
				.addr = t->a.peers[1],
				.context = buf,
				.data = data };

	if (call == WRITEDATA)
		th_ok(fi_writedata(t->a.ep, buf, len, NULL, data, m.addr, 0,
				   RK_KEY, buf));
	else if (call == INJECT)
		th_ok(fi_inject_writedata(t->a.ep, buf, len, data, m.addr, 0,
					  RK_KEY));
	else
		th_ok(fi_writemsg(t->a.ep, &m,
				  FI_REMOTE_CQ_DATA | flags[call]));
}

static void t19_one(struct rk_bed *t, enum call call, void *buf, size_t len,
		    uint64_t data)
{
	struct fi_cq_tagged_entry e;

	if ((call == INJECT || call == MSG_INJECT) && len > 4096)
		return;
	th_fill(buf, len, len + data);
	write_with_data(t, call, buf, len, data);
	e = th_rx_ok(&t->b);
	th_eq(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	th_eq(e.data, data);
	th_eq(e.len, len);
	th_verify(t->r.p, len, len + data);
	if (call == INJECT)
		return;
	e = th_tx_ok(&t->a);
	th_eq(e.flags, FI_RMA | FI_WRITE);
	th_ptr_eq(e.op_context, buf);
}

static void t19(bool device)
{
	static const size_t lens[] = { 0, 1, 8, 100, 4096, 65537, LEN };
	struct th_stack_opts o = rk_opts();
	unsigned char *buf = malloc(LEN);
	struct rk_bed t;

	th_check(buf);
	rk_bed_open(&t, &o, device, LEN);
	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++)
		for (int call = 0; call < CALLS; call++)
			t19_one(&t, (enum call)call, buf, lens[i],
				UINT64_MAX - i * 77 - (unsigned int)call);
	/* without data there is no event */
	th_ok(fi_write(t.a.ep, buf, 100, NULL, t.a.peers[1], 0, RK_KEY, buf));
	rk_done(&t.a, FI_WRITE, buf);
	th_ok(fi_read(t.a.ep, buf, 100, NULL, t.a.peers[1], 0, RK_KEY, buf));
	rk_done(&t.a, FI_READ, buf);
	th_quiet(&t.a, 2);
	th_quiet(&t.b, 2);
	rk_bed_close(&t);
	free(buf);
}

static void case_T19_write_data(struct th_self *self)
{
	(void)self;
	t19(true);
	t19(false);
}

/* ---- T20: counters ---------------------------------------------------------------- */

/* The endpoint goes first. */
static void unbind(struct th_stack *s, struct fid_cntr *c)
{
	if (s->ep)
		th_ok(fi_close(&s->ep->fid));
	s->ep = NULL;
	th_ok(fi_close(&c->fid));
}

/* A call that is refused counts nowhere, one that succeeds counts once. */
static void case_T20_eagain_adds_0(struct th_self *self)
{
	enum { MOST = 500000 };
	struct th_stack_opts o = rk_opts();
	struct fid_cntr *w, *rw;
	struct rk_bed t;
	uint64_t n;

	(void)self;
	setenv("FI_SHRIMP_TX_BUFFER", "1M", 1);
	rk_bed_open(&t, &o, true, LEN);
	w = rk_cntr(&t.a, FI_WAIT_UNSPEC, FI_WRITE);
	rw = rk_cntr(&t.b, FI_WAIT_UNSPEC, FI_REMOTE_WRITE);
	n = inject_until_eagain(&t, MOST);
	th_check(n < MOST);
	th_check(fi_cntr_read(w) <= n);
	take_events(&t, 0, n);
	th_cntr_reach(&t.a, w, n);
	th_cntr_reach(&t.b, rw, n);
	th_quiet(&t.a, 5);
	th_eq(fi_cntr_read(w), n);
	th_eq(fi_cntr_read(rw), n);
	th_eq(fi_cntr_readerr(w), 0);
	th_ok(fi_close(&t.r.mr->fid));
	rk_mem_free(&t.r.m);
	unbind(&t.a, w);
	unbind(&t.b, rw);
	th_pair_close(&t.a, &t.b);
}

/* One of those who write to rank 0: N times without data, N with. */
static void t20_writer(struct th_self *self, struct th_stack *s, uint64_t n)
{
	uint64_t off = 64 * (uint64_t)self->rank;
	char buf[64] = { 1 };

	for (uint64_t i = 0; i < 2 * n; i++) {
		ssize_t ret =
			i % 2 ? fi_inject_writedata(s->ep, buf, 64, i,
						    s->peers[0], off, RK_KEY)
			      : fi_inject_write(s->ep, buf, 64, s->peers[0],
						off, RK_KEY);

		if (ret == -FI_EAGAIN) {
			th_progress(s);
			i--;
			continue;
		}
		th_ok(ret);
	}
}

/* Rank 0 sees each of them, and no more. */
static void t20_target(struct th_self *self, struct th_stack *s,
		       struct fid_cntr *rw, uint64_t n)
{
	uint64_t all = 2 * n * (uint64_t)(self->size - 1);
	struct fi_cq_tagged_entry e;
	uint64_t events = 0;

	while (events < all / 2) {
		e = th_rx_ok(s);
		th_eq(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		events++;
	}
	th_cntr_reach(s, rw, all);
	th_quiet(s, 20);
	th_eq(fi_cntr_read(rw), all);
	th_eq(fi_cntr_readerr(rw), 0);
}

static void case_T20_all_to_one(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	uint64_t n = th_rounds(5000);
	struct fid_cntr *rw;
	struct fid_mr *mr;
	struct th_stack s;
	struct rk_mem m;

	th_stack_open(&s, &o);
	rw = rk_cntr(&s, FI_WAIT_UNSPEC, FI_REMOTE_WRITE);
	th_stack_connect(&s, self);
	m = rk_mem_new(&s, true, LEN);
	mr = rk_reg(&s, m.p, LEN, RK_RW, RK_KEY);
	th_barrier_progress(self, &s, "registered");
	if (self->rank)
		t20_writer(self, &s, n);
	else
		t20_target(self, &s, rw, n);
	th_barrier_progress(self, &s, "written");
	th_ok(fi_close(&mr->fid));
	rk_mem_free(&m);
	unbind(&s, rw);
	th_stack_close(&s);
}

/* ---- T24: with itself ----------------------------------------------------------- */

static void t24_one(struct th_stack *s, unsigned char *mem, unsigned char *buf,
		    size_t len)
{
	fi_addr_t self = s->peers[0];

	th_fill(buf, len, len);
	memset(mem, 0, len);
	th_ok(fi_write(s->ep, buf, len, NULL, self, 0, RK_KEY, buf));
	rk_done(s, FI_WRITE, buf);
	th_verify(mem, len, len);
	memset(buf, 0, len);
	th_ok(fi_read(s->ep, buf, len, NULL, self, 0, RK_KEY, buf));
	rk_done(s, FI_READ, buf);
	th_verify(buf, len, len);
	th_ok(fi_writedata(s->ep, buf, len, NULL, len, self, 0, RK_KEY, buf));
	rk_done(s, FI_WRITE, buf);
	th_eq(th_rx_ok(s).data, len);
}

static void t24(bool device)
{
	static const size_t lens[] = { 0,     1,       8,	 4096,
				       65537, 1 << 20, 16 << 20, 64 << 20 };
	size_t most = th_sanitized() ? 1 << 20 : 64 << 20;
	struct th_stack_opts o = rk_opts();
	unsigned char *buf = malloc(most);
	struct fid_mr *mr;
	struct th_stack s;
	struct rk_mem m;

	th_check(buf);
	th_stack_open(&s, &o);
	s.peers = calloc(1, sizeof(*s.peers));
	th_check(s.peers);
	s.peers[0] = th_insert(&s, s.addr);
	m = rk_mem_new(&s, device, most);
	mr = rk_reg(&s, m.p, most, RK_RW, RK_KEY);
	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++)
		if (lens[i] <= most)
			t24_one(&s, m.p, buf, lens[i]);
	th_ok(fi_close(&mr->fid));
	th_ok(fi_write(s.ep, buf, 8, NULL, s.peers[0], 0, RK_KEY, buf));
	rk_refused(&s, FI_EKEYREJECTED, RK_KEY, 0, 8);
	rk_mem_free(&m);
	th_stack_close(&s);
	free(buf);
}

static void case_T24_rma_to_itself(struct th_self *self)
{
	(void)self;
	t24(true);
	t24(false);
}

/* ---- T27: lists -------------------------------------------------------------------- */

enum { IOV_MAX_OURS = 16 };

/* @n members of odd lengths, every third one empty, in @buf. */
static size_t cut(struct iovec *iov, size_t n, unsigned char *buf,
		  uint64_t *state)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		iov[i].iov_base = buf + at;
		iov[i].iov_len =
			i % 3 == 2 ? 0 : 1 + 2 * (th_random(state) % 300);
		at += iov[i].iov_len;
	}
	return at;
}

/* The same bytes in @n pieces, not in order, at the target. */
static void cut_there(struct fi_rma_iov *there, size_t n, size_t len,
		      uint64_t *state)
{
	for (size_t i = 0; i < n; i++) {
		size_t left = n - 1 - i;
		size_t one =
			left ? th_random(state) % (len / (left + 1) + 1) : len;

		there[i] =
			(struct fi_rma_iov){ (n - i) * 20000 + i, one, RK_KEY };
		len -= one;
	}
}

/* All pieces at the target hold the pattern in order. */
static void check_there(const struct rk_bed *t, const struct fi_rma_iov *there,
			size_t n, uint64_t seed)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		th_verify_at(t->r.p + there[i].addr, there[i].len, seed, at);
		at += there[i].len;
	}
}

static void t27_vector(struct rk_bed *t, const struct iovec *iov, size_t n,
		       size_t len)
{
	fi_addr_t to = t->a.peers[1];

	th_ok(fi_writev(t->a.ep, iov, NULL, n, to, 5, RK_KEY, t));
	rk_done(&t->a, FI_WRITE, t);
	th_verify(t->r.p + 5, len, 27);
	memset(iov[0].iov_base, 0, len);
	th_ok(fi_readv(t->a.ep, iov, NULL, n, to, 5, RK_KEY, t));
	rk_done(&t->a, FI_READ, t);
	th_verify(iov[0].iov_base, len, 27);
}

static void t27_msg(struct rk_bed *t, const struct iovec *iov, size_t n,
		    size_t nthere, size_t len)
{
	uint64_t state = n * 100 + nthere;
	struct fi_rma_iov there[IOV_MAX_OURS];
	struct fi_msg_rma m = { .msg_iov = iov,
				.iov_count = n,
				.rma_iov = there,
				.rma_iov_count = nthere,
				.addr = t->a.peers[1],
				.context = t };

	cut_there(there, nthere, len, &state);
	th_ok(fi_writemsg(t->a.ep, &m, FI_COMPLETION));
	rk_done(&t->a, FI_WRITE, t);
	check_there(t, there, nthere, 27);
	memset(iov[0].iov_base, 0, len);
	th_ok(fi_readmsg(t->a.ep, &m, FI_COMPLETION));
	rk_done(&t->a, FI_READ, t);
	th_verify(iov[0].iov_base, len, 27);
}

/* One more than there may be, in every call. */
static void t27_too_many(struct rk_bed *t, unsigned char *buf)
{
	struct iovec iov[IOV_MAX_OURS + 1];
	struct fi_rma_iov there[IOV_MAX_OURS + 1];
	struct fi_msg_rma m = { .msg_iov = iov,
				.iov_count = IOV_MAX_OURS + 1,
				.rma_iov = there,
				.rma_iov_count = 1,
				.addr = t->a.peers[1] };
	fi_addr_t to = t->a.peers[1];
	size_t n = IOV_MAX_OURS + 1;

	for (size_t i = 0; i < n; i++) {
		iov[i] = (struct iovec){ buf + i, 1 };
		there[i] = (struct fi_rma_iov){ i, 1, RK_KEY };
	}
	th_eq(fi_writev(t->a.ep, iov, NULL, n, to, 0, RK_KEY, t), -FI_EINVAL);
	th_eq(fi_readv(t->a.ep, iov, NULL, n, to, 0, RK_KEY, t), -FI_EINVAL);
	there[0].len = n;
	th_eq(fi_writemsg(t->a.ep, &m, 0), -FI_EINVAL);
	th_eq(fi_readmsg(t->a.ep, &m, 0), -FI_EINVAL);
	there[0].len = 1;
	iov[0].iov_len = n;
	m.iov_count = 1;
	m.rma_iov_count = n;
	th_eq(fi_writemsg(t->a.ep, &m, 0), -FI_EINVAL);
	th_eq(fi_readmsg(t->a.ep, &m, 0), -FI_EINVAL);
	th_quiet(&t->a, 2);
}

static void t27(bool device)
{
	static unsigned char buf[IOV_MAX_OURS * 600];
	struct th_stack_opts o = rk_opts();
	struct iovec iov[IOV_MAX_OURS];
	uint64_t state = 27;
	struct rk_bed t;
	size_t len;

	rk_bed_open(&t, &o, device, LEN);
	for (size_t n = 1; n <= IOV_MAX_OURS; n++) {
		len = cut(iov, n, buf, &state);
		th_fill(buf, len, 27);
		t27_vector(&t, iov, n, len);
		for (size_t there = 1; there <= IOV_MAX_OURS; there++)
			t27_msg(&t, iov, n, there, len);
	}
	t27_too_many(&t, buf);
	rk_bed_close(&t);
}

static void case_T27_rma_lists(struct th_self *self)
{
	(void)self;
	t27(true);
	t27(false);
}

/* ---- E11: the kernel's copy is forbidden -------------------------------------------- */

/*
 * Rank 1 moves data at rank 0, at both kinds of memory. What needs the owner
 * is done by its agent.
 */
static void e11_move(struct th_stack *s, size_t len, uint64_t key)
{
	unsigned char *buf = malloc(len);
	struct rk_outcome e;

	th_check(buf);
	th_fill(buf, len, len);
	th_ok(fi_write(s->ep, buf, len, NULL, s->peers[0], 0, key, buf));
	e = rk_end(s);
	th_eq(e.err, 0);
	memset(buf, 0, len);
	th_ok(fi_read(s->ep, buf, len, NULL, s->peers[0], 0, key, buf));
	rk_done(s, FI_READ, buf);
	th_verify(buf, len, len);
	free(buf);
}

static void e11(struct th_self *self, bool device)
{
	static const size_t lens[] = { 8, 4096, 100000, LEN };
	struct th_stack_opts o = rk_opts();
	struct th_stack s;
	struct fid_mr *mr;
	struct rk_mem m;

	if (!probe_forbid(SYS_process_vm_readv, SYS_process_vm_writev, EPERM))
		th_skip(self, "no filters here");
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	m = rk_mem_new(&s, device, LEN);
	mr = rk_reg(&s, m.p, LEN, RK_RW, RK_KEY);
	th_barrier_progress(self, &s, "registered");
	for (size_t i = 0; self->rank && i < sizeof(lens) / sizeof(*lens); i++)
		e11_move(&s, lens[i], RK_KEY);
	th_barrier_progress(self, &s, "moved");
	if (!self->rank)
		th_verify(m.p, LEN, LEN);
	th_ok(fi_close(&mr->fid));
	rk_mem_free(&m);
	th_stack_close(&s);
}

static void case_E11_device(struct th_self *self)
{
	e11(self, true);
}

static void case_E11_private(struct th_self *self)
{
	e11(self, false);
}

static const struct CMUnitTest rma_calls[] = {
	TH_CASE(case_T6_inject_write, 1, 60),
	TH_CASE(case_T6_inject_writedata, 1, 60),
	TH_CASE(case_T17_writemsg_inject, 1, 30),
	TH_CASE(case_T19_write_data, 1, 30),
	TH_CASE(case_T20_eagain_adds_0, 1, 60),
	TH_CASE(case_T20_all_to_one, 4, 60),
	TH_CASE(case_T24_rma_to_itself, 1, 60),
	TH_CASE(case_T27_rma_lists, 1, 60),
	TH_CASE(case_E11_device, 2, 30),
	TH_CASE(case_E11_private, 2, 30),
};

TH_MAIN(rma_calls)
