/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the owner of memory is told of one-sided operations: counters of
 * endpoints and of regions, remote CQ data, by whatever path the bytes went,
 * and with a lane that has no room.
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <rdma/fi_atomic.h>
#include <stdlib.h>

enum { LEN = 8192 };

static const struct th_stack_opts opts = {
	.caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_RMA_EVENT,
	.mr_mode = FI_MR_ALLOCATED,
};

/* A region of @buf that counts reads in @rd and writes in @wr, if not NULL. */
static struct fid_mr *counted(struct th_stack *s, void *buf, uint64_t key,
			      struct fid_cntr *rd, struct fid_cntr *wr)
{
	struct fid_mr *mr;

	th_ok(fi_mr_reg(s->domain, buf, LEN, RK_RW, 0, key, FI_RMA_EVENT, &mr,
			NULL));
	if (rd)
		th_ok(fi_mr_bind(mr, &rd->fid, FI_REMOTE_READ));
	if (wr)
		th_ok(fi_mr_bind(mr, &wr->fid, FI_REMOTE_WRITE));
	th_ok(fi_mr_enable(mr));
	th_eq(fi_mr_key(mr), key);
	return mr;
}

/* Waits for one success of @a. */
static void ok(struct th_stack *a)
{
	(void)th_tx_ok(a);
}

/* A write, a read, a sum and a fetch of key 1, one write of key 2. */
static void five(struct th_stack *a)
{
	uint64_t x = 1, y;
	fi_addr_t to = a->peers[1];

	th_ok(fi_write(a->ep, &x, 8, NULL, to, 0, 1, &x));
	ok(a);
	th_ok(fi_read(a->ep, &y, 8, NULL, to, 0, 1, &x));
	ok(a);
	th_ok(fi_atomic(a->ep, &x, 1, NULL, to, 0, 1, FI_UINT64, FI_SUM, &x));
	ok(a);
	th_ok(fi_fetch_atomic(a->ep, &x, 1, NULL, &y, NULL, to, 0, 1, FI_UINT64,
			      FI_SUM, &x));
	ok(a);
	th_ok(fi_write(a->ep, &x, 8, NULL, to, 0, 2, &x));
	ok(a);
}

/* Over memory @p of @b, of two regions. */
static void count_five(struct th_stack *a, struct th_stack *b, unsigned char *p)
{
	struct fid_cntr *rd = rk_cntr(b, FI_WAIT_NONE, 0),
			*wr = rk_cntr(b, FI_WAIT_NONE, 0),
			*w2 = rk_cntr(b, FI_WAIT_NONE, 0);
	struct fid_mr *mr = counted(b, p, 1, rd, wr);
	struct fid_mr *mr2 = counted(b, p, 2, NULL, w2);

	five(a);
	th_cntr_reach(b, wr, 2);
	th_cntr_reach(b, rd, 2);
	th_cntr_reach(b, w2, 1);
	th_quiet(b, 5);
	th_eq(fi_cntr_read(wr) + fi_cntr_read(rd) + fi_cntr_read(w2), 5);
	/* what fails is not counted */
	th_ok(fi_write(a->ep, p, 8, NULL, a->peers[1], LEN - 1, 1, p));
	th_eq(th_tx_err(a).err, FI_EINVAL);
	th_quiet(b, 5);
	th_eq(fi_cntr_read(wr), 2);
	th_eq(fi_close(&wr->fid), -FI_EBUSY);
	th_ok(fi_close(&mr->fid));
	th_ok(fi_close(&mr2->fid));
	th_ok(fi_close(&wr->fid));
	th_ok(fi_close(&rd->fid));
	th_ok(fi_close(&w2->fid));
}

static void region_counters(struct th_self *self)
{
	struct fi_ops_shrimp_mem *ops;
	struct th_stack a, b;
	unsigned char *p = NULL;
	void *q;

	(void)self;
	th_pair_open(&a, &b, &opts);
	th_ok(fi_open_ops(&b.domain->fid, FI_SHRIMP_OPS_MEM, 0, (void **)&ops,
			  NULL));
	th_ok(ops->alloc(&b.domain->fid, LEN, 0, &q));
	count_five(&a, &b, q);
	th_ok(ops->free(&b.domain->fid, q));
	p = aligned_alloc(64, LEN);
	memset(p, 0, LEN);
	count_five(&a, &b, p);
	th_pair_close(&a, &b);
	/* the owner moves the bytes */
	setenv("FI_SHRIMP_CMA", "off", 1);
	th_pair_open(&a, &b, &opts);
	count_five(&a, &b, p);
	th_pair_close(&a, &b);
	free(p);
}

/* Writes of many ranges in two regions: each counts one for each. */
static void write_ranges(struct th_stack *a, struct th_stack *b,
			 struct fid_cntr *c1, struct fid_cntr *c2)
{
	struct fi_rma_iov there[4] = { { 0, 100, 1 },
				       { 200, 100, 2 },
				       { 400, 100, 1 },
				       { 600, 4000, 2 } };
	unsigned char buf[4300];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.iov_count = 1,
				.rma_iov = there,
				.rma_iov_count = 4,
				.addr = a->peers[1] };

	th_fill(buf, sizeof(buf), 3);
	for (uint64_t i = 1; i <= 100; i++) {
		th_ok(fi_writemsg(a->ep, &m, FI_COMPLETION));
		ok(a);
		th_cntr_reach(b, c1, i);
		th_cntr_reach(b, c2, i);
	}
	th_quiet(b, 5);
	th_eq(fi_cntr_read(c1) + fi_cntr_read(c2), 200);
}

/* Many ranges of one operation in two regions: one event for each region. */
static void one_for_each_region(struct th_self *self)
{
	unsigned char *p = aligned_alloc(64, LEN);
	struct fid_cntr *c1, *c2;
	struct fid_mr *mr1, *mr2;
	struct th_stack a, b;

	(void)self;
	memset(p, 0, LEN);
	for (int cma = 0; cma < 2; cma++) {
		setenv("FI_SHRIMP_CMA", cma ? "auto" : "off", 1);
		th_pair_open(&a, &b, &opts);
		c1 = rk_cntr(&b, FI_WAIT_NONE, 0);
		c2 = rk_cntr(&b, FI_WAIT_NONE, 0);
		mr1 = counted(&b, p, 1, NULL, c1);
		mr2 = counted(&b, p, 2, NULL, c2);
		write_ranges(&a, &b, c1, c2);
		th_verify_at(p + 600, 4000, 3, 300);
		th_ok(fi_close(&mr1->fid));
		th_ok(fi_close(&mr2->fid));
		th_ok(fi_close(&c1->fid));
		th_ok(fi_close(&c2->fid));
		th_pair_close(&a, &b);
	}
	free(p);
}

/* As many writes as @n, each until it is taken. */
static void write_on(struct th_stack *s, uint64_t n)
{
	uint64_t x = 7;
	ssize_t ret;

	while (n) {
		ret = fi_inject_write(s->ep, &x, 8, s->peers[0], 0, 1);
		th_check(!ret || ret == -FI_EAGAIN);
		if (ret)
			th_progress(s);
		else
			n--;
	}
}

/* Region and endpoint count @n, and no more. */
static void count_exactly(struct th_stack *s, struct fid_cntr *region,
			  struct fid_cntr *endpoint, uint64_t n)
{
	th_cntr_reach(s, region, n);
	th_cntr_reach(s, endpoint, n);
	th_quiet(s, 20);
	th_eq(fi_cntr_read(region), n);
	th_eq(fi_cntr_read(endpoint), n);
}

static void no_room_owner(struct th_self *self, struct th_stack *s, uint64_t n)
{
	unsigned char *p = aligned_alloc(64, LEN);
	struct fid_cntr *c = rk_cntr(s, FI_WAIT_NONE, 0),
			*all = rk_cntr(s, FI_WAIT_NONE, 0);
	struct fid_mr *mr;

	memset(p, 0, LEN);
	th_ok(fi_ep_bind(s->ep, &all->fid, FI_REMOTE_WRITE));
	mr = counted(s, p, 1, NULL, c);
	th_barrier_progress(self, s, "ready");
	count_exactly(s, c, all, n);
	th_ok(fi_close(&mr->fid));
	th_ok(fi_close(&c->fid));
	th_barrier_progress(self, s, "counted");
	th_ok(fi_close(&s->ep->fid));
	s->ep = NULL;
	th_ok(fi_close(&all->fid));
	free(p);
}

/* A lane of two lines: events wait for room, and none is lost or doubled. */
static void case_T20_no_room(struct th_self *self)
{
	uint64_t n = th_rounds(3000);
	struct th_stack s;

	setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	th_stack_open(&s, &opts);
	th_stack_connect(&s, self);
	if (!self->rank) {
		no_room_owner(self, &s, 2 * n);
	} else {
		th_barrier_progress(self, &s, "ready");
		write_on(&s, n);
		th_barrier_progress(self, &s, "counted");
	}
	th_stack_close(&s);
}

/* Not with an endpoint's flags; only once; no key before it is enabled. */
static void binding(struct th_self *self)
{
	unsigned char *p = aligned_alloc(64, LEN);
	struct fid_cntr *c;
	struct th_stack a, b;
	struct fid_mr *mr;

	(void)self;
	memset(p, 0, LEN);
	th_pair_open(&a, &b, &opts);
	c = rk_cntr(&b, FI_WAIT_NONE, 0);
	th_ok(fi_mr_reg(b.domain, p, LEN, RK_RW, 0, 1, FI_RMA_EVENT, &mr,
			NULL));
	th_eq(fi_mr_bind(mr, &c->fid, FI_WRITE), -FI_EINVAL);
	th_eq(fi_mr_bind(mr, &c->fid, 0), -FI_EINVAL);
	th_ok(fi_write(a.ep, p, 8, NULL, a.peers[1], 0, 1, p));
	th_eq(th_tx_err(&a).err, FI_EKEYREJECTED);
	th_ok(fi_mr_bind(mr, &c->fid, FI_REMOTE_WRITE));
	th_eq(fi_mr_bind(mr, &c->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	th_ok(fi_mr_enable(mr));
	/* a live region as well, as long as nobody counts yet */
	th_ok(fi_mr_bind(mr, &c->fid, FI_REMOTE_READ));
	th_eq(fi_mr_bind(mr, &c->fid, FI_REMOTE_READ), -FI_EINVAL);
	th_ok(fi_close(&mr->fid));
	th_ok(fi_close(&c->fid));
	th_pair_close(&a, &b);
	free(p);
}

static const struct CMUnitTest rma_events_tests[] = {
	TH_CASE(region_counters, 1, 20),
	TH_CASE(one_for_each_region, 1, 20),
	TH_CASE(case_T20_no_room, 3, 60),
	TH_CASE(binding, 1, 10),
};

TH_MAIN(rma_events_tests)
