/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * RMA: what moves, what is refused, what the completion says; on memory of
 * the device (load and store) and on private memory (system calls).
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "quiet_map.h"
#include "rdma/fi_ext_shrimp.h"

enum {
	LEN = 3 << 20, /* bytes of a region */
};

/* Offered, but not demanded by us: nothing is. */
static const struct th_stack_opts unallocated = { .mr_mode = FI_MR_VIRT_ADDR };
static const struct th_stack_opts plain = { .mr_mode = FI_MR_ALLOCATED };

/* ---- moving -------------------------------------------------------------- */

static const size_t lens[] = { 0,    1,	   7,	 8,	64,    100,	4095,
			       4096, 4097, 8192, 65536, 99999, 1 << 20, LEN };
enum { NLENS = sizeof(lens) / sizeof(*lens) };

static void move_one(struct th_stack *a, struct rk_region *r, size_t len,
		     size_t off)
{
	struct th_buf b = th_buf_new(len);
	unsigned char *at = r->p + off;

	th_fill(b.p, len, len + off);
	th_ok(fi_write(a->ep, b.p, len, NULL, a->peers[1], off, RK_KEY, &b));
	rk_done(a, FI_WRITE, &b);
	th_verify(at, len, len + off);
	th_fill(at, len, len + off + 1);
	th_ok(fi_read(a->ep, b.p, len, NULL, a->peers[1], off, RK_KEY, &b));
	rk_done(a, FI_READ, &b);
	th_verify(b.p, len, len + off + 1);
	th_buf_free(&b);
}

/* Of a region that begins @base bytes into a page. */
static void every_size(bool device, size_t base)
{
	struct rk_bed t;

	rk_bed_open(&t, &plain, device, LEN + base);
	th_ok(fi_close(&t.r.mr->fid));
	t.r.p += base;
	t.r.mr = rk_reg(&t.b, t.r.p, LEN, RK_RW, RK_KEY);
	for (int i = 0; i < NLENS; i++) {
		move_one(&t.a, &t.r, lens[i], 0);
		move_one(&t.a, &t.r, lens[i], LEN - lens[i]);
		if (lens[i] < LEN / 2)
			move_one(&t.a, &t.r, lens[i], 4093);
	}
	rk_bed_close(&t);
}

static void sizes_device(struct th_self *self)
{
	(void)self;
	every_size(true, 0);
}

static void sizes_private(struct th_self *self)
{
	(void)self;
	every_size(false, 16);
}

/* Several ranges on both sides, cut differently. */
static void ranges(struct th_self *self)
{
	unsigned char in[1000], out[1000];
	struct iovec iov[3] = { { in, 100 },
				{ in + 100, 0 },
				{ in + 100, 900 } };
	struct fi_rma_iov there[2] = { { 5000, 700, RK_KEY },
				       { 10, 300, RK_KEY } };
	struct fi_msg_rma m = { .msg_iov = iov,
				.iov_count = 3,
				.rma_iov = there,
				.rma_iov_count = 2,
				.context = in };
	struct rk_bed t;

	(void)self;
	rk_bed_open(&t, &plain, true, LEN);
	m.addr = t.a.peers[1];
	th_fill(in, 1000, 4);
	th_ok(fi_writemsg(t.a.ep, &m, FI_COMPLETION));
	rk_done(&t.a, FI_WRITE, in);
	th_verify(t.r.p + 5000, 700, 4);
	th_verify_at(t.r.p + 10, 300, 4, 700);
	iov[0].iov_base = out;
	iov[2].iov_base = out + 100;
	th_ok(fi_readmsg(t.a.ep, &m, FI_COMPLETION));
	rk_done(&t.a, FI_READ, in);
	th_verify(out, 1000, 4);
	there[1].len = 299;
	th_eq(fi_writemsg(t.a.ep, &m, 0), -FI_EINVAL);
	th_eq(fi_writemsg(t.a.ep, &m, FI_PEEK), -FI_EINVAL);
	rk_bed_close(&t);
}

static void contract_R8_one_key(struct th_self *self)
{
	unsigned char x[100], y[300], in[400];
	const struct iovec iov[2] = { { x, 100 }, { y, 300 } };
	struct th_stack a, b;
	struct fid_mr *mr;

	(void)self;
	th_pair_open(&a, &b, &plain);
	th_ok(fi_mr_regv(b.domain, iov, 2, RK_RW, 0, RK_KEY, 0, &mr, NULL));
	th_fill(in, 400, 1);
	th_ok(fi_write(a.ep, in, 400, NULL, a.peers[1], 0, RK_KEY, in));
	rk_done(&a, FI_WRITE, in);
	th_verify(x, 100, 1);
	th_verify_at(y, 300, 1, 100);
	th_ok(fi_write(a.ep, in, 2, NULL, a.peers[1], 399, RK_KEY, in));
	rk_refused(&a, FI_EINVAL, RK_KEY, 399, 2);
	th_ok(fi_close(&mr->fid));
	th_pair_close(&a, &b);
}

/* ---- inject, data, counters ---------------------------------------------- */

static void inject_is_silent(struct th_self *self)
{
	unsigned char in[4096];
	struct rk_bed t;

	(void)self;
	rk_bed_open(&t, &plain, true, LEN);
	th_fill(in, sizeof(in), 9);
	th_ok(fi_inject_write(t.a.ep, in, 4096, t.a.peers[1], 8, RK_KEY));
	th_verify(t.r.p + 8, 4096, 9);
	th_eq(fi_inject_write(t.a.ep, in, 4097, t.a.peers[1], 8, RK_KEY),
	      -FI_EINVAL);
	/* an error has nobody to be told to */
	th_ok(fi_inject_write(t.a.ep, in, 8, t.a.peers[1], 8, RK_KEY + 1));
	th_quiet(&t.a, 20);
	th_quiet(&t.b, 20);
	rk_bed_close(&t);
}

static void contract_P5_data_after_bytes(struct th_self *self)
{
	unsigned char in[5000];
	struct rk_bed t;
	struct fi_cq_tagged_entry e;

	(void)self;
	rk_bed_open(&t, &plain, true, LEN);
	for (uint64_t i = 0; i < th_rounds(300); i++) {
		th_fill(in, sizeof(in), i);
		th_ok(fi_writedata(t.a.ep, in, sizeof(in), NULL, ~i,
				   t.a.peers[1], 3, RK_KEY, in));
		e = th_rx_ok(&t.b);
		th_eq(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		th_eq(e.data, ~i);
		th_eq(e.len, sizeof(in));
		th_verify(t.r.p + 3, sizeof(in), i);
		rk_done(&t.a, FI_WRITE, in);
	}
	th_ok(fi_inject_writedata(t.a.ep, in, 8, 5, t.a.peers[1], 0, RK_KEY));
	th_eq(th_rx_ok(&t.b).data, 5);
	/* refused: no event */
	th_ok(fi_writedata(t.a.ep, in, 8, NULL, 5, t.a.peers[1], LEN, RK_KEY,
			   in));
	rk_refused(&t.a, FI_EINVAL, RK_KEY, LEN, 8);
	th_quiet(&t.b, 20);
	rk_bed_close(&t);
}

/* Counters of a region, bound when a peer already has its key cached. */
static void counters_of_a_live_region(struct th_self *self)
{
	unsigned char in[64] = { 0 };
	struct fid_cntr *w, *rd;
	struct rk_bed t;

	rk_bed_open(&t, &plain, self->arg == NULL, LEN);
	w = rk_cntr(&t.b, FI_WAIT_UNSPEC, 0);
	rd = rk_cntr(&t.b, FI_WAIT_UNSPEC, 0);
	th_ok(fi_write(t.a.ep, in, 64, NULL, t.a.peers[1], 0, RK_KEY, in));
	rk_done(&t.a, FI_WRITE, in);
	th_eq(fi_mr_bind(t.r.mr, &w->fid, 0), -FI_EINVAL);
	th_ok(fi_mr_bind(t.r.mr, &w->fid, FI_REMOTE_WRITE));
	th_eq(fi_mr_bind(t.r.mr, &rd->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	th_ok(fi_mr_bind(t.r.mr, &rd->fid, FI_REMOTE_READ));
	for (int i = 0; i < 10; i++) {
		th_ok(fi_write(t.a.ep, in, 64, NULL, t.a.peers[1], 0, RK_KEY,
			       in));
		rk_done(&t.a, FI_WRITE, in);
		th_ok(fi_read(t.a.ep, in, 64, NULL, t.a.peers[1], 0, RK_KEY,
			      in));
		rk_done(&t.a, FI_READ, in);
	}
	/* nothing else makes progress for them */
	th_ok(fi_cntr_wait(w, 10, 10000));
	th_ok(fi_cntr_wait(rd, 10, 10000));
	th_eq(fi_cntr_read(w) + fi_cntr_read(rd), 20);
	th_eq(fi_close(&w->fid), -FI_EBUSY);
	rk_region_free(&t.r);
	th_ok(fi_close(&w->fid));
	th_ok(fi_close(&rd->fid));
	th_pair_close(&t.a, &t.b);
}

static void counters(struct th_self *self)
{
	unsigned char in[64] = { 0 };
	struct fid_cntr *w, *rd, *rw, *rr;
	struct rk_bed t;

	(void)self;
	rk_bed_open(&t, &plain, true, LEN);
	w = rk_cntr(&t.a, FI_WAIT_UNSPEC, FI_WRITE);
	rd = rk_cntr(&t.a, FI_WAIT_UNSPEC, FI_READ);
	rw = rk_cntr(&t.b, FI_WAIT_UNSPEC, FI_REMOTE_WRITE);
	rr = rk_cntr(&t.b, FI_WAIT_UNSPEC, FI_REMOTE_READ);
	for (int i = 0; i < 100; i++) {
		th_ok(fi_inject_write(t.a.ep, in, 64, t.a.peers[1], 0, RK_KEY));
		th_ok(fi_read(t.a.ep, in, 64, NULL, t.a.peers[1], 0, RK_KEY,
			      in));
		rk_done(&t.a, FI_READ, in);
	}
	th_cntr_reach(&t.a, w, 100);
	th_cntr_reach(&t.a, rd, 100);
	th_cntr_reach(&t.b, rw, 100);
	th_cntr_reach(&t.b, rr, 100);
	th_ok(fi_inject_write(t.a.ep, in, 64, t.a.peers[1], 0, RK_KEY + 1));
	th_eq(fi_cntr_readerr(w), 1);
	th_eq(fi_cntr_read(w), 100);
	th_eq(fi_cntr_read(rw) + fi_cntr_read(rr), 200);
	rk_region_free(&t.r);
	/* the endpoints first, then what they are bound to */
	th_ok(fi_close(&t.a.ep->fid));
	th_ok(fi_close(&t.b.ep->fid));
	t.a.ep = t.b.ep = NULL;
	th_ok(fi_close(&w->fid));
	th_ok(fi_close(&rd->fid));
	th_ok(fi_close(&rw->fid));
	th_ok(fi_close(&rr->fid));
	th_pair_close(&t.a, &t.b);
}

/* ---- what is refused (I2, R6, R7) ---------------------------------------- */

static void contract_I2_bounds(struct th_self *self)
{
	unsigned char in[16] = { 1 };
	struct rk_bed t;

	(void)self;
	rk_bed_open(&t, &plain, true, LEN);
	th_ok(fi_write(t.a.ep, in, 2, NULL, t.a.peers[1], LEN - 1, RK_KEY, in));
	rk_refused(&t.a, FI_EINVAL, RK_KEY, LEN - 1, 2);
	th_ok(fi_write(t.a.ep, in, 1, NULL, t.a.peers[1], LEN, RK_KEY, in));
	rk_refused(&t.a, FI_EINVAL, RK_KEY, LEN, 1);
	th_ok(fi_read(t.a.ep, in, 16, NULL, t.a.peers[1], UINT64_MAX - 3,
		      RK_KEY, in));
	rk_refused(&t.a, FI_EINVAL, RK_KEY, UINT64_MAX - 3, 16);
	th_verify_byte(t.r.p, LEN, 0);
	/* the endpoint works */
	th_ok(fi_write(t.a.ep, in, 1, NULL, t.a.peers[1], LEN - 1, RK_KEY, in));
	rk_done(&t.a, FI_WRITE, in);
	rk_bed_close(&t);
}

static void contract_R6_rights(struct th_self *self)
{
	unsigned char in[16] = { 1 };
	struct rk_bed t;

	(void)self;
	th_pair_open(&t.a, &t.b, &plain);
	t.r = rk_region_new(&t.b, true, LEN, FI_REMOTE_READ);
	th_ok(fi_write(t.a.ep, in, 16, NULL, t.a.peers[1], 0, RK_KEY, in));
	rk_refused(&t.a, FI_EACCES, RK_KEY, 0, 16);
	th_ok(fi_read(t.a.ep, in, 16, NULL, t.a.peers[1], 0, RK_KEY, in));
	rk_done(&t.a, FI_READ, in);
	rk_region_free(&t.r);
	t.r = rk_region_new(&t.b, true, LEN,
			    FI_REMOTE_WRITE | FI_READ | FI_WRITE);
	th_ok(fi_read(t.a.ep, in, 16, NULL, t.a.peers[1], 0, RK_KEY, in));
	rk_refused(&t.a, FI_EACCES, RK_KEY, 0, 16);
	th_ok(fi_write(t.a.ep, in, 16, NULL, t.a.peers[1], 0, RK_KEY, in));
	rk_done(&t.a, FI_WRITE, in);
	rk_bed_close(&t);
}

/* A key works in the domain that made it, nowhere else. */
static void contract_R7_domains(struct th_self *self)
{
	unsigned char in[16] = { 1 };
	struct rk_bed t;

	(void)self;
	rk_bed_open(&t, &plain, true, LEN);
	th_ok(fi_write(t.a.ep, in, 16, NULL, t.a.peers[0], 0, RK_KEY, in));
	rk_refused(&t.a, FI_EKEYREJECTED, RK_KEY, 0, 16);
	th_ok(fi_write(t.b.ep, in, 16, NULL, t.b.peers[1], 0, RK_KEY, in));
	rk_done(&t.b, FI_WRITE, in);
	rk_bed_close(&t);
}

static void contract_I1_closed_is_closed(struct th_self *self)
{
	unsigned char in[64];
	struct rk_bed t;

	(void)self;
	th_pair_open(&t.a, &t.b, &plain);
	memset(in, 1, sizeof(in));
	for (unsigned long i = 0; i < th_rounds(200); i++) {
		t.r = rk_region_new(&t.b, i & 1, LEN, RK_RW);
		th_ok(fi_write(t.a.ep, in, 64, NULL, t.a.peers[1], 64, RK_KEY,
			       in));
		rk_done(&t.a, FI_WRITE, in);
		th_ok(fi_close(&t.r.mr->fid));
		t.r.mr = NULL;
		memset(t.r.p, 0, 256);
		th_ok(fi_write(t.a.ep, in, 64, NULL, t.a.peers[1], 64, RK_KEY,
			       in));
		rk_refused(&t.a, FI_EKEYREJECTED, RK_KEY, 64, 64);
		th_verify_byte(t.r.p, 256, 0);
		rk_region_free(&t.r);
	}
	th_pair_close(&t.a, &t.b);
}

/* Memory that is gone below a live key: a clean error. */
static void contract_I2_unmapped(struct th_self *self)
{
	struct th_stack a, b;
	unsigned char in[2 * RK_PAGE], *p;
	struct fid_mr *mr;

	(void)self;
	th_pair_open(&a, &b, &unallocated);
	p = quiet_private(4 * RK_PAGE);
	th_check(p != MAP_FAILED);
	th_ok(fi_mr_reg(b.domain, p, 4 * RK_PAGE, RK_RW, 0, RK_KEY, 0, &mr,
			NULL));
	th_eq(munmap(p + RK_PAGE, 3 * RK_PAGE), 0);
	memset(in, 1, sizeof(in));
	th_ok(fi_write(a.ep, in, RK_PAGE, NULL, a.peers[1], 0, RK_KEY, in));
	rk_done(&a, FI_WRITE, in);
	th_ok(fi_write(a.ep, in, 2 * RK_PAGE, NULL, a.peers[1], 0, RK_KEY, in));
	th_eq(th_tx_err(&a).err, FI_EFAULT);
	th_ok(fi_read(a.ep, in, 8, NULL, a.peers[1], 2 * RK_PAGE, RK_KEY, in));
	th_eq(th_tx_err(&a).err, FI_EFAULT);
	th_ok(fi_close(&mr->fid));
	munmap(p, RK_PAGE);
	th_pair_close(&a, &b);
}

/* ---- addressing ---------------------------------------------------------- */

static void virtual_addresses(struct th_self *self)
{
	struct th_stack_opts o = { .mr_mode =
					   FI_MR_ALLOCATED | FI_MR_VIRT_ADDR };
	unsigned char in[16];
	struct rk_bed t;

	(void)self;
	setenv("FI_SHRIMP_MR_MODE", "virt_addr", 1);
	th_pair_open(&t.a, &t.b, &o);
	th_eq(t.a.info->domain_attr->mr_mode, o.mr_mode);
	t.r = rk_region_new(&t.b, true, LEN, RK_RW);
	th_fill(in, 16, 3);
	th_ok(fi_write(t.a.ep, in, 16, NULL, t.a.peers[1],
		       (uintptr_t)t.r.p + 100, RK_KEY, in));
	rk_done(&t.a, FI_WRITE, in);
	th_verify(t.r.p + 100, 16, 3);
	th_ok(fi_write(t.a.ep, in, 16, NULL, t.a.peers[1], 100, RK_KEY, in));
	rk_refused(&t.a, FI_EINVAL, RK_KEY, 100, 16);
	rk_bed_close(&t);
}

/* ---- two processes ------------------------------------------------------- */

/* Rank 0 owns, the others stream into their parts; all is checked. */
static void everybody_writes(struct th_self *self)
{
	enum { PART = 300000 };
	unsigned char *in = malloc(PART), *out = malloc(PART);
	struct th_stack s;
	struct rk_region r = { 0 };

	th_check(in && out);
	th_stack_open(&s, &plain);
	th_stack_connect(&s, self);
	if (!self->rank)
		r = rk_region_new(&s, self->arg == NULL, LEN, RK_RW);
	th_barrier_progress(self, &s, "registered");
	for (unsigned long i = 0; self->rank && i < th_rounds(200); i++) {
		uint64_t off = (uint64_t)self->rank * PART;

		th_fill(in, PART, i + off);
		th_ok(fi_write(s.ep, in, PART, NULL, s.peers[0], off, RK_KEY,
			       in));
		rk_done(&s, FI_WRITE, in);
		th_ok(fi_read(s.ep, out, PART, NULL, s.peers[0], off, RK_KEY,
			      in));
		rk_done(&s, FI_READ, in);
		th_verify(out, PART, i + off);
	}
	th_barrier_progress(self, &s, "written");
	if (!self->rank)
		rk_region_free(&r);
	th_stack_close(&s);
	free(in);
	free(out);
}

/* The owner is killed: errors, no hang (P4). */
static void orphan(struct th_self *self)
{
	unsigned char in[64] = { 1 };
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	struct th_stack s;
	int failed = 0;

	th_stack_open(&s, &plain);
	th_stack_connect(&s, self);
	if (!self->rank)
		rk_region_new(&s, false, LEN, RK_RW);
	th_barrier_progress(self, &s, "registered");
	if (!self->rank) {
		th_note(self, "kill me", 1);
		for (;;)
			th_sleep_us(100000);
	}
	while (!failed) {
		th_ok(fi_write(s.ep, in, 64, NULL, s.peers[0], 0, RK_KEY, in));
		failed = th_cq_next(&s, s.txcq, &e, &err) == -FI_EAVAIL;
	}
	th_eq(err.err, FI_ECONNRESET);
	th_stack_close(&s);
}

static void contract_P4_owner_killed(void **state)
{
	struct th_group *g = th_group_start(2, orphan, NULL, 20);

	(void)state;
	th_group_wait_note(g, 0, "kill me");
	th_group_pump(g, 50);
	th_group_kill(g, 0, SIGKILL);
	th_group_finish(g);
}

/*
 * One is killed while it is inside, its lane is used by another one that only
 * sends: the owner closes all the same.
 */
static void killed_inside(struct th_self *self)
{
	enum { BIG = 64 << 20 };
	struct th_stack s;
	struct fid_mr *mr = NULL;
	unsigned char *p = calloc(1, BIG);
	char hi[2];

	th_check(p);
	th_stack_open(&s, &plain);
	th_stack_connect(&s, self);
	if (!self->rank)
		th_ok(fi_mr_reg(s.domain, p, BIG, RK_RW, 0, RK_KEY, 0, &mr,
				NULL));
	th_barrier_progress(self, &s, "registered");
	if (self->rank == 1)
		th_note(self, "kill me", 1);
	while (self->rank == 1) {
		th_ok(fi_write(s.ep, p, BIG, NULL, s.peers[0], 0, RK_KEY, p));
		rk_done(&s, FI_WRITE, p);
	}
	if (!self->rank)
		th_quiet(&s, 1500);
	th_barrier_progress(self, &s, "killed");
	if (self->rank == 2) {
		th_send(&s, s.peers[0], "hi", 2, NULL);
		th_tx_ok(&s);
	} else {
		th_recv(&s, hi, 2, NULL);
		th_rx_ok(&s);
		th_ok(fi_close(&mr->fid));
	}
	/* the new one is alive until then */
	th_barrier(self, "region closed");
	th_stack_close(&s);
	free(p);
}

static void contract_L1_killed_inside(void **state)
{
	struct th_group *g = th_group_start(3, killed_inside, NULL, 30);

	(void)state;
	th_group_wait_note(g, 1, "kill me");
	th_group_pump(g, 50);
	th_sleep_us(200000);
	th_group_kill(g, 1, SIGKILL);
	th_group_finish(g);
}

/* ---- beyond 2 GiB ---------------------------------------------------------- */

/* There and back, over @ops' memory or, if NULL, private memory. */
static void huge_once(struct fi_ops_shrimp_mem *ops, struct th_stack *a,
		      struct th_stack *b)
{
	const size_t len = ((size_t)2 << 30) + 4097;
	struct fid_mr *mr;
	unsigned char *from;
	void *to = NULL;
	int fd;

	if (ops)
		th_ok(ops->alloc(&b->domain->fid, len, 0, &to));
	else
		to = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	th_check(to && to != MAP_FAILED);
	th_ok(fi_mr_reg(b->domain, to, len, RK_RW, 0, RK_KEY, 0, &mr, NULL));
	from = th_huge_map(len, &fd);
	th_fill(from, TH_HUGE_PERIOD, 3);
	th_ok(fi_write(a->ep, from, len, NULL, a->peers[1], 0, RK_KEY, from));
	rk_done(a, FI_WRITE, from);
	for (size_t off = 0; off + TH_HUGE_PERIOD <= len; off += TH_HUGE_PERIOD)
		th_verify((unsigned char *)to + off, TH_HUGE_PERIOD, 3);
	th_verify((unsigned char *)to + (len & -(size_t)TH_HUGE_PERIOD), 4097,
		  3);
	memset(from, 0, TH_HUGE_PERIOD);
	th_ok(fi_read(a->ep, from, len, NULL, a->peers[1], 0, RK_KEY, from));
	rk_done(a, FI_READ, from);
	th_verify(from, TH_HUGE_PERIOD, 3);
	munmap(from, len + TH_HUGE_PERIOD);
	close(fd);
	th_ok(fi_close(&mr->fid));
	if (ops)
		th_ok(ops->free(&b->domain->fid, to));
	else
		munmap(to, len);
}

static void beyond_2GiB(struct th_self *self)
{
	const struct th_stack_opts o = { .caps = FI_MSG | FI_RMA };
	struct fi_ops_shrimp_mem *ops;
	struct th_stack a, b;

	th_need_memory(self, 8);
	th_pair_open(&a, &b, &o);
	th_ok(fi_open_ops(&b.domain->fid, FI_SHRIMP_OPS_MEM, 0, (void **)&ops,
			  NULL));
	huge_once(NULL, &a, &b);
	huge_once(ops, &a, &b);
	th_pair_close(&a, &b);
}

static const struct CMUnitTest tests[] = {
	TH_CASE(sizes_device, 1, 30),
	TH_CASE(sizes_private, 1, 30),
	TH_CASE(ranges, 1, 20),
	TH_CASE(contract_R8_one_key, 1, 20),
	TH_CASE(inject_is_silent, 1, 20),
	TH_CASE(contract_P5_data_after_bytes, 1, 30),
	TH_CASE(counters, 1, 20),
	TH_CASE(counters_of_a_live_region, 1, 30),
	TH_CASE(contract_I2_bounds, 1, 20),
	TH_CASE(contract_R6_rights, 1, 20),
	TH_CASE(contract_R7_domains, 1, 20),
	TH_CASE(contract_I1_closed_is_closed, 1, 60),
	TH_CASE(contract_I2_unmapped, 1, 20),
	TH_CASE(virtual_addresses, 1, 20),
	TH_CASE(beyond_2GiB, 1, 120),
	TH_CASE(everybody_writes, 4, 60),
	cmocka_unit_test(contract_P4_owner_killed),
	cmocka_unit_test(contract_L1_killed_inside),
};

TH_MAIN(tests)
