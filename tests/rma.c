/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * RMA: what moves, what is refused, what the completion says; on memory of
 * the device (load and store) and on private memory (system calls).
 */
#define _GNU_SOURCE
#include "harness.h"

#include <rdma/fi_rma.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "quiet_map.h"
#include "rdma/fi_ext_shrimp.h"

enum {
	LEN = 3 << 20, /* bytes of a region */
	KEY = 77,
	PAGE = 4096,
};

/* Memory of the peer, registered. */
struct region {
	struct fi_ops_shrimp_mem *ops; /* NULL: private memory */
	struct fid_domain *domain;     /* whose */
	unsigned char *p;	       /* LEN bytes */
	struct fid_mr *mr;	       /* with key KEY */
};

static struct region region_new(struct th_stack *s, bool device,
				uint64_t access)
{
	struct region r = { .domain = s->domain };

	if (device) {
		th_ok(fi_open_ops(&s->domain->fid, FI_SHRIMP_OPS_MEM, 0,
				  (void **)&r.ops, NULL));
		th_ok(r.ops->alloc(&s->domain->fid, LEN, 0, (void **)&r.p));
	} else {
		r.p = malloc(LEN);
		th_check(r.p != NULL);
	}
	memset(r.p, 0, LEN);
	th_ok(fi_mr_reg(s->domain, r.p, LEN, access, 0, KEY, 0, &r.mr, NULL));
	return r;
}

static void region_free(struct region *r)
{
	if (r->mr)
		th_ok(fi_close(&r->mr->fid));
	if (r->ops)
		th_ok(r->ops->free(&r->domain->fid, r->p));
	else
		free(r->p);
}

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* Offered, but not demanded by us: nothing is. */
static const struct th_stack_opts unallocated = { .mr_mode = FI_MR_VIRT_ADDR };
static const struct th_stack_opts plain = { .mr_mode = FI_MR_ALLOCATED };

/* The completion of an RMA operation by @s. */
static void done(struct th_stack *s, uint64_t flag, void *ctx)
{
	struct fi_cq_tagged_entry e = th_tx_ok(s);

	th_eq(e.flags, FI_RMA | flag);
	th_ptr_eq(e.op_context, ctx);
}

/* One that failed, at @addr for @len bytes of @key. */
static void refused(struct th_stack *s, int err, uint64_t key, uint64_t addr,
		    uint64_t len)
{
	struct fi_cq_err_entry e = th_tx_err(s);
	struct fi_shrimp_access_error d;

	th_eq(e.err, err);
	th_check(e.err_data_size >= sizeof(d) && e.err_data);
	memcpy(&d, e.err_data, sizeof(d));
	th_eq(d.key, key);
	th_eq(d.addr, addr);
	th_eq(d.len, len);
	th_eq(d.pid, getpid());
	th_eq(d.err, err);
}

/* ---- moving -------------------------------------------------------------- */

static const size_t lens[] = { 0,    1,	   7,	 8,	64,    100,	4095,
			       4096, 4097, 8192, 65536, 99999, 1 << 20, LEN };
enum { NLENS = sizeof(lens) / sizeof(*lens) };

static void move_one(struct th_stack *a, struct region *r, size_t len,
		     size_t off)
{
	struct th_buf b = th_buf_new(len);
	unsigned char *at = r->p + off;

	th_fill(b.p, len, len + off);
	th_ok(fi_write(a->ep, b.p, len, NULL, a->peers[1], off, KEY, &b));
	done(a, FI_WRITE, &b);
	th_verify(at, len, len + off);
	th_fill(at, len, len + off + 1);
	th_ok(fi_read(a->ep, b.p, len, NULL, a->peers[1], off, KEY, &b));
	done(a, FI_READ, &b);
	th_verify(b.p, len, len + off + 1);
	th_buf_free(&b);
}

static void every_size(bool device)
{
	struct th_stack a, b;
	struct region r;

	th_pair_open(&a, &b, &plain);
	r = region_new(&b, device, RW);
	for (int i = 0; i < NLENS; i++) {
		move_one(&a, &r, lens[i], 0);
		move_one(&a, &r, lens[i], LEN - lens[i]);
		if (lens[i] < LEN / 2)
			move_one(&a, &r, lens[i], 4093);
	}
	region_free(&r);
	th_pair_close(&a, &b);
}

static void sizes_device(struct th_self *self)
{
	(void)self;
	every_size(true);
}

static void sizes_private(struct th_self *self)
{
	(void)self;
	every_size(false);
}

/* Several ranges on both sides, cut differently. */
static void ranges(struct th_self *self)
{
	unsigned char in[1000], out[1000];
	struct iovec iov[3] = { { in, 100 },
				{ in + 100, 0 },
				{ in + 100, 900 } };
	struct fi_rma_iov there[2] = { { 5000, 700, KEY }, { 10, 300, KEY } };
	struct fi_msg_rma m = { .msg_iov = iov,
				.iov_count = 3,
				.rma_iov = there,
				.rma_iov_count = 2,
				.context = in };
	struct th_stack a, b;
	struct region r;

	(void)self;
	th_pair_open(&a, &b, &plain);
	r = region_new(&b, true, RW);
	m.addr = a.peers[1];
	th_fill(in, 1000, 4);
	th_ok(fi_writemsg(a.ep, &m, FI_COMPLETION));
	done(&a, FI_WRITE, in);
	th_verify(r.p + 5000, 700, 4);
	th_verify_at(r.p + 10, 300, 4, 700);
	iov[0].iov_base = out;
	iov[2].iov_base = out + 100;
	th_ok(fi_readmsg(a.ep, &m, FI_COMPLETION));
	done(&a, FI_READ, in);
	th_verify(out, 1000, 4);
	there[1].len = 299;
	th_eq(fi_writemsg(a.ep, &m, 0), -FI_EINVAL);
	th_eq(fi_writemsg(a.ep, &m, FI_PEEK), -FI_EINVAL);
	region_free(&r);
	th_pair_close(&a, &b);
}

static void contract_R8_one_key(struct th_self *self)
{
	unsigned char x[100], y[300], in[400];
	const struct iovec iov[2] = { { x, 100 }, { y, 300 } };
	struct th_stack a, b;
	struct fid_mr *mr;

	(void)self;
	th_pair_open(&a, &b, &plain);
	th_ok(fi_mr_regv(b.domain, iov, 2, RW, 0, KEY, 0, &mr, NULL));
	th_fill(in, 400, 1);
	th_ok(fi_write(a.ep, in, 400, NULL, a.peers[1], 0, KEY, in));
	done(&a, FI_WRITE, in);
	th_verify(x, 100, 1);
	th_verify_at(y, 300, 1, 100);
	th_ok(fi_write(a.ep, in, 2, NULL, a.peers[1], 399, KEY, in));
	refused(&a, FI_EINVAL, KEY, 399, 2);
	th_ok(fi_close(&mr->fid));
	th_pair_close(&a, &b);
}

/* ---- inject, data, counters ---------------------------------------------- */

static void inject_is_silent(struct th_self *self)
{
	unsigned char in[4096];
	struct th_stack a, b;
	struct region r;

	(void)self;
	th_pair_open(&a, &b, &plain);
	r = region_new(&b, true, RW);
	th_fill(in, sizeof(in), 9);
	th_ok(fi_inject_write(a.ep, in, 4096, a.peers[1], 8, KEY));
	th_verify(r.p + 8, 4096, 9);
	th_eq(fi_inject_write(a.ep, in, 4097, a.peers[1], 8, KEY), -FI_EINVAL);
	/* an error has nobody to be told to */
	th_ok(fi_inject_write(a.ep, in, 8, a.peers[1], 8, KEY + 1));
	th_quiet(&a, 20);
	th_quiet(&b, 20);
	region_free(&r);
	th_pair_close(&a, &b);
}

static void contract_P5_data_after_bytes(struct th_self *self)
{
	unsigned char in[5000];
	struct th_stack a, b;
	struct fi_cq_tagged_entry e;
	struct region r;

	(void)self;
	th_pair_open(&a, &b, &plain);
	r = region_new(&b, true, RW);
	for (uint64_t i = 0; i < th_rounds(300); i++) {
		th_fill(in, sizeof(in), i);
		th_ok(fi_writedata(a.ep, in, sizeof(in), NULL, ~i, a.peers[1],
				   3, KEY, in));
		e = th_rx_ok(&b);
		th_eq(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		th_eq(e.data, ~i);
		th_eq(e.len, sizeof(in));
		th_verify(r.p + 3, sizeof(in), i);
		done(&a, FI_WRITE, in);
	}
	th_ok(fi_inject_writedata(a.ep, in, 8, 5, a.peers[1], 0, KEY));
	th_eq(th_rx_ok(&b).data, 5);
	/* refused: no event */
	th_ok(fi_writedata(a.ep, in, 8, NULL, 5, a.peers[1], LEN, KEY, in));
	refused(&a, FI_EINVAL, KEY, LEN, 8);
	th_quiet(&b, 20);
	region_free(&r);
	th_pair_close(&a, &b);
}

static struct fid_cntr *bound(struct th_stack *s, uint64_t flags)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP,
				     .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *c;

	th_ok(fi_cntr_open(s->domain, &attr, &c, NULL));
	th_ok(fi_ep_bind(s->ep, &c->fid, flags));
	return c;
}

/* Counters of a region, bound when a peer already has its key cached. */
static void counters_of_a_live_region(struct th_self *self)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP,
				     .wait_obj = FI_WAIT_UNSPEC };
	unsigned char in[64] = { 0 };
	struct fid_cntr *w, *rd;
	struct th_stack a, b;
	struct region r;

	th_pair_open(&a, &b, &plain);
	r = region_new(&b, self->arg == NULL, RW);
	th_ok(fi_cntr_open(b.domain, &attr, &w, NULL));
	th_ok(fi_cntr_open(b.domain, &attr, &rd, NULL));
	th_ok(fi_write(a.ep, in, 64, NULL, a.peers[1], 0, KEY, in));
	done(&a, FI_WRITE, in);
	th_eq(fi_mr_bind(r.mr, &w->fid, 0), -FI_EINVAL);
	th_ok(fi_mr_bind(r.mr, &w->fid, FI_REMOTE_WRITE));
	th_eq(fi_mr_bind(r.mr, &rd->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	th_ok(fi_mr_bind(r.mr, &rd->fid, FI_REMOTE_READ));
	for (int i = 0; i < 10; i++) {
		th_ok(fi_write(a.ep, in, 64, NULL, a.peers[1], 0, KEY, in));
		done(&a, FI_WRITE, in);
		th_ok(fi_read(a.ep, in, 64, NULL, a.peers[1], 0, KEY, in));
		done(&a, FI_READ, in);
	}
	/* nothing else makes progress for them */
	th_ok(fi_cntr_wait(w, 10, 10000));
	th_ok(fi_cntr_wait(rd, 10, 10000));
	th_eq(fi_cntr_read(w) + fi_cntr_read(rd), 20);
	th_eq(fi_close(&w->fid), -FI_EBUSY);
	region_free(&r);
	th_ok(fi_close(&w->fid));
	th_ok(fi_close(&rd->fid));
	th_pair_close(&a, &b);
}

static void counters(struct th_self *self)
{
	unsigned char in[64] = { 0 };
	struct fid_cntr *w, *rd, *rw, *rr;
	struct th_stack a, b;
	struct region r;

	(void)self;
	th_pair_open(&a, &b, &plain);
	r = region_new(&b, true, RW);
	w = bound(&a, FI_WRITE);
	rd = bound(&a, FI_READ);
	rw = bound(&b, FI_REMOTE_WRITE);
	rr = bound(&b, FI_REMOTE_READ);
	for (int i = 0; i < 100; i++) {
		th_ok(fi_inject_write(a.ep, in, 64, a.peers[1], 0, KEY));
		th_ok(fi_read(a.ep, in, 64, NULL, a.peers[1], 0, KEY, in));
		done(&a, FI_READ, in);
	}
	th_cntr_reach(&a, w, 100);
	th_cntr_reach(&a, rd, 100);
	th_cntr_reach(&b, rw, 100);
	th_cntr_reach(&b, rr, 100);
	th_ok(fi_inject_write(a.ep, in, 64, a.peers[1], 0, KEY + 1));
	th_eq(fi_cntr_readerr(w), 1);
	th_eq(fi_cntr_read(w), 100);
	th_eq(fi_cntr_read(rw) + fi_cntr_read(rr), 200);
	region_free(&r);
	/* the endpoints first, then what they are bound to */
	th_ok(fi_close(&a.ep->fid));
	th_ok(fi_close(&b.ep->fid));
	a.ep = b.ep = NULL;
	th_ok(fi_close(&w->fid));
	th_ok(fi_close(&rd->fid));
	th_ok(fi_close(&rw->fid));
	th_ok(fi_close(&rr->fid));
	th_pair_close(&a, &b);
}

/* ---- what is refused (I2, R6, R7) ---------------------------------------- */

static void contract_I2_bounds(struct th_self *self)
{
	unsigned char in[16] = { 1 };
	struct th_stack a, b;
	struct region r;

	(void)self;
	th_pair_open(&a, &b, &plain);
	r = region_new(&b, true, RW);
	th_ok(fi_write(a.ep, in, 2, NULL, a.peers[1], LEN - 1, KEY, in));
	refused(&a, FI_EINVAL, KEY, LEN - 1, 2);
	th_ok(fi_write(a.ep, in, 1, NULL, a.peers[1], LEN, KEY, in));
	refused(&a, FI_EINVAL, KEY, LEN, 1);
	th_ok(fi_read(a.ep, in, 16, NULL, a.peers[1], UINT64_MAX - 3, KEY, in));
	refused(&a, FI_EINVAL, KEY, UINT64_MAX - 3, 16);
	th_verify_byte(r.p, LEN, 0);
	/* the endpoint works */
	th_ok(fi_write(a.ep, in, 1, NULL, a.peers[1], LEN - 1, KEY, in));
	done(&a, FI_WRITE, in);
	region_free(&r);
	th_pair_close(&a, &b);
}

static void contract_R6_rights(struct th_self *self)
{
	unsigned char in[16] = { 1 };
	struct th_stack a, b;
	struct region r;

	(void)self;
	th_pair_open(&a, &b, &plain);
	r = region_new(&b, true, FI_REMOTE_READ);
	th_ok(fi_write(a.ep, in, 16, NULL, a.peers[1], 0, KEY, in));
	refused(&a, FI_EACCES, KEY, 0, 16);
	th_ok(fi_read(a.ep, in, 16, NULL, a.peers[1], 0, KEY, in));
	done(&a, FI_READ, in);
	region_free(&r);
	r = region_new(&b, true, FI_REMOTE_WRITE | FI_READ | FI_WRITE);
	th_ok(fi_read(a.ep, in, 16, NULL, a.peers[1], 0, KEY, in));
	refused(&a, FI_EACCES, KEY, 0, 16);
	th_ok(fi_write(a.ep, in, 16, NULL, a.peers[1], 0, KEY, in));
	done(&a, FI_WRITE, in);
	region_free(&r);
	th_pair_close(&a, &b);
}

/* A key works in the domain that made it, nowhere else. */
static void contract_R7_domains(struct th_self *self)
{
	unsigned char in[16] = { 1 };
	struct th_stack a, b;
	struct region r;

	(void)self;
	th_pair_open(&a, &b, &plain);
	r = region_new(&b, true, RW);
	th_ok(fi_write(a.ep, in, 16, NULL, a.peers[0], 0, KEY, in));
	refused(&a, FI_EKEYREJECTED, KEY, 0, 16);
	th_ok(fi_write(b.ep, in, 16, NULL, b.peers[1], 0, KEY, in));
	done(&b, FI_WRITE, in);
	region_free(&r);
	th_pair_close(&a, &b);
}

static void contract_I1_closed_is_closed(struct th_self *self)
{
	unsigned char in[64];
	struct th_stack a, b;
	struct region r;

	(void)self;
	th_pair_open(&a, &b, &plain);
	memset(in, 1, sizeof(in));
	for (unsigned long i = 0; i < th_rounds(200); i++) {
		r = region_new(&b, i & 1, RW);
		th_ok(fi_write(a.ep, in, 64, NULL, a.peers[1], 64, KEY, in));
		done(&a, FI_WRITE, in);
		th_ok(fi_close(&r.mr->fid));
		r.mr = NULL;
		memset(r.p, 0, 256);
		th_ok(fi_write(a.ep, in, 64, NULL, a.peers[1], 64, KEY, in));
		refused(&a, FI_EKEYREJECTED, KEY, 64, 64);
		th_verify_byte(r.p, 256, 0);
		region_free(&r);
	}
	th_pair_close(&a, &b);
}

/* Memory that is gone below a live key: a clean error. */
static void contract_I2_unmapped(struct th_self *self)
{
	struct th_stack a, b;
	unsigned char in[2 * PAGE], *p;
	struct fid_mr *mr;

	(void)self;
	th_pair_open(&a, &b, &unallocated);
	p = quiet_private(4 * PAGE);
	th_check(p != MAP_FAILED);
	th_ok(fi_mr_reg(b.domain, p, 4 * PAGE, RW, 0, KEY, 0, &mr, NULL));
	th_eq(munmap(p + PAGE, 3 * PAGE), 0);
	memset(in, 1, sizeof(in));
	th_ok(fi_write(a.ep, in, PAGE, NULL, a.peers[1], 0, KEY, in));
	done(&a, FI_WRITE, in);
	th_ok(fi_write(a.ep, in, 2 * PAGE, NULL, a.peers[1], 0, KEY, in));
	th_eq(th_tx_err(&a).err, FI_EFAULT);
	th_ok(fi_read(a.ep, in, 8, NULL, a.peers[1], 2 * PAGE, KEY, in));
	th_eq(th_tx_err(&a).err, FI_EFAULT);
	th_ok(fi_close(&mr->fid));
	munmap(p, PAGE);
	th_pair_close(&a, &b);
}

/* ---- addressing ---------------------------------------------------------- */

static void virtual_addresses(struct th_self *self)
{
	struct th_stack_opts o = { .mr_mode =
					   FI_MR_ALLOCATED | FI_MR_VIRT_ADDR };
	unsigned char in[16];
	struct th_stack a, b;
	struct region r;

	(void)self;
	setenv("FI_SHRIMP_MR_MODE", "virt_addr", 1);
	th_pair_open(&a, &b, &o);
	th_eq(a.info->domain_attr->mr_mode, o.mr_mode);
	r = region_new(&b, true, RW);
	th_fill(in, 16, 3);
	th_ok(fi_write(a.ep, in, 16, NULL, a.peers[1], (uintptr_t)r.p + 100,
		       KEY, in));
	done(&a, FI_WRITE, in);
	th_verify(r.p + 100, 16, 3);
	th_ok(fi_write(a.ep, in, 16, NULL, a.peers[1], 100, KEY, in));
	refused(&a, FI_EINVAL, KEY, 100, 16);
	region_free(&r);
	th_pair_close(&a, &b);
}

/* ---- two processes ------------------------------------------------------- */

/* Rank 0 owns, the others stream into their parts; all is checked. */
static void everybody_writes(struct th_self *self)
{
	enum { PART = 300000 };
	unsigned char *in = malloc(PART), *out = malloc(PART);
	struct th_stack s;
	struct region r = { 0 };

	th_check(in && out);
	th_stack_open(&s, &plain);
	th_stack_connect(&s, self);
	if (!self->rank)
		r = region_new(&s, self->arg == NULL, RW);
	th_barrier_progress(self, &s, "registered");
	for (unsigned long i = 0; self->rank && i < th_rounds(200); i++) {
		uint64_t off = (uint64_t)self->rank * PART;

		th_fill(in, PART, i + off);
		th_ok(fi_write(s.ep, in, PART, NULL, s.peers[0], off, KEY, in));
		done(&s, FI_WRITE, in);
		th_ok(fi_read(s.ep, out, PART, NULL, s.peers[0], off, KEY, in));
		done(&s, FI_READ, in);
		th_verify(out, PART, i + off);
	}
	th_barrier_progress(self, &s, "written");
	if (!self->rank)
		region_free(&r);
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
		region_new(&s, false, RW);
	th_barrier_progress(self, &s, "registered");
	if (!self->rank) {
		th_note(self, "kill me", 1);
		for (;;)
			th_sleep_us(100000);
	}
	while (!failed) {
		th_ok(fi_write(s.ep, in, 64, NULL, s.peers[0], 0, KEY, in));
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
		th_ok(fi_mr_reg(s.domain, p, BIG, RW, 0, KEY, 0, &mr, NULL));
	th_barrier_progress(self, &s, "registered");
	if (self->rank == 1)
		th_note(self, "kill me", 1);
	while (self->rank == 1) {
		th_ok(fi_write(s.ep, p, BIG, NULL, s.peers[0], 0, KEY, p));
		done(&s, FI_WRITE, p);
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
	th_ok(fi_mr_reg(b->domain, to, len, RW, 0, KEY, 0, &mr, NULL));
	from = th_huge_map(len, &fd);
	th_fill(from, TH_HUGE_PERIOD, 3);
	th_ok(fi_write(a->ep, from, len, NULL, a->peers[1], 0, KEY, from));
	done(a, FI_WRITE, from);
	for (size_t off = 0; off + TH_HUGE_PERIOD <= len; off += TH_HUGE_PERIOD)
		th_verify((unsigned char *)to + off, TH_HUGE_PERIOD, 3);
	th_verify((unsigned char *)to + (len & -(size_t)TH_HUGE_PERIOD), 4097,
		  3);
	memset(from, 0, TH_HUGE_PERIOD);
	th_ok(fi_read(a->ep, from, len, NULL, a->peers[1], 0, KEY, from));
	done(a, FI_READ, from);
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
