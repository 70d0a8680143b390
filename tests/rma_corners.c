/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One-sided operations where something else happens as well: parts that fail,
 * ranges that go by different paths, an owner that looks elsewhere, a
 * destination that turns out to be oneself.
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <rdma/fi_atomic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LEN = 8192 };

static const struct th_stack_opts opts = {
	.caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_RMA_EVENT,
	.mr_mode = FI_MR_ALLOCATED,
};

/* A region of @n ranges that counts writes in @wr. */
static struct fid_mr *counted(struct th_stack *s, const struct iovec *v,
			      size_t n, uint64_t key, struct fid_cntr *wr)
{
	struct fid_mr *mr;

	th_ok(fi_mr_regv(s->domain, v, n, RK_RW, 0, key, FI_RMA_EVENT, &mr,
			 NULL));
	th_ok(fi_mr_bind(mr, &wr->fid, FI_REMOTE_WRITE));
	th_ok(fi_mr_enable(mr));
	return mr;
}

static void *device_memory(struct th_stack *s, size_t len)
{
	struct fi_ops_shrimp_mem *ops;
	void *p;

	th_ok(fi_open_ops(&s->domain->fid, FI_SHRIMP_OPS_MEM, 0, (void **)&ops,
			  NULL));
	th_ok(ops->alloc(&s->domain->fid, len, 0, &p));
	memset(p, 0, len);
	return p;
}

/* ---- what fails ----------------------------------------------------------- */

/* Three ranges, the one in the middle of a key that is not there. */
static void write_broken(struct th_stack *a, struct th_stack *b,
			 struct fid_cntr *c, const unsigned char *p)
{
	struct fi_rma_iov there[3] = { { 0, 8, 1 },
				       { 0, 2000, 77 },
				       { 8, 3000, 1 } };
	unsigned char buf[5008];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.iov_count = 1,
				.addr = a->peers[1],
				.rma_iov = there,
				.rma_iov_count = 3,
				.data = 5 };
	struct fi_cq_err_entry err;

	memset(buf, 9, sizeof(buf));
	th_ok(fi_writemsg(a->ep, &m, FI_COMPLETION | FI_REMOTE_CQ_DATA));
	err = th_tx_err(a);
	th_eq(err.err, FI_EKEYREJECTED);
	th_eq(err.len, 8);
	th_quiet(b, 50);
	th_verify_byte(p, 8, 9);
	th_verify_byte(p + 8, LEN - 8, 0);
	th_eq(fi_cntr_read(c), 0);
	/* the next one is not taken for a part of it */
	there[1].key = 1;
	th_ok(fi_writemsg(a->ep, &m, FI_COMPLETION | FI_REMOTE_CQ_DATA));
	th_tx_ok(a);
	th_eq(th_rx_ok(b).data, 5);
	th_cntr_reach(b, c, 1);
	th_quiet(b, 20);
	th_eq(fi_cntr_read(c), 1);
}

/*
 * Of an operation that the owner executes in parts, one part fails: what is
 * behind it is not done, and the target sees no event.
 */
static void contract_I2_no_event(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct iovec range = { p, LEN };
	struct fid_cntr *c;
	struct fid_mr *mr;
	struct th_stack a, b;

	(void)self;
	setenv("FI_SHRIMP_CMA", "off", 1);
	th_pair_open(&a, &b, &opts);
	c = rk_cntr(&b, FI_WAIT_NONE, 0);
	mr = counted(&b, &range, 1, 1, c);
	write_broken(&a, &b, c, p);
	th_ok(fi_close(&mr->fid));
	th_ok(fi_close(&c->fid));
	th_pair_close(&a, &b);
}

/* ---- several paths -------------------------------------------------------- */

/* Writes @n ranges of 64 bytes each; all @mrs count one. */
static void write_ranges(struct th_stack *a, struct th_stack *b,
			 const struct fi_rma_iov *there, size_t n,
			 struct fid_cntr **c)
{
	unsigned char buf[64 * 4];
	struct iovec iov = { buf, 64 * n };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.iov_count = 1,
				.addr = a->peers[1],
				.rma_iov = there,
				.rma_iov_count = n };

	memset(buf, 3, sizeof(buf));
	for (uint64_t i = 1; i <= 20; i++) {
		th_ok(fi_writemsg(a->ep, &m, FI_COMPLETION));
		th_tx_ok(a);
		th_cntr_reach(b, c[0], i);
		th_cntr_reach(b, c[1], i);
		th_cntr_reach(b, c[2], i);
	}
	th_quiet(b, 10);
	for (int i = 0; i < 3; i++)
		th_eq(fi_cntr_read(c[i]), 20);
}

/*
 * Device memory goes by load and store, private memory is the owner's to move:
 * each region counts one for an operation on both, also a region of both.
 */
static void mixed_paths_count(struct th_self *self)
{
	struct fi_rma_iov there[4] = {
		{ 0, 64, 1 }, { 0, 64, 3 }, { 0, 64, 2 }, { RK_PAGE, 64, 3 }
	};
	struct fid_cntr *c[3];
	struct fid_mr *mr[3];
	struct th_stack a, b;
	struct iovec v[2] = { { NULL, RK_PAGE }, { NULL, RK_PAGE } };

	(void)self;
	setenv("FI_SHRIMP_CMA", "off", 1);
	th_pair_open(&a, &b, &opts);
	v[0].iov_base = device_memory(&b, RK_PAGE);
	v[1].iov_base = rk_pages(RK_PAGE);
	for (int i = 0; i < 3; i++)
		c[i] = rk_cntr(&b, FI_WAIT_NONE, 0);
	mr[0] = counted(&b, &v[0], 1, 1, c[0]);
	mr[1] = counted(&b, &v[1], 1, 2, c[1]);
	mr[2] = counted(&b, v, 2, 3, c[2]);
	write_ranges(&a, &b, there, 4, c);
	for (int i = 0; i < 3; i++) {
		th_ok(fi_close(&mr[i]->fid));
		th_ok(fi_close(&c[i]->fid));
	}
	th_pair_close(&a, &b);
}

/* ---- an owner that looks elsewhere ---------------------------------------- */

/*
 * The owner polls one of its endpoints and nothing else; what it has to
 * execute came through the other one.
 */
static void contract_P1_other_endpoint(struct th_self *self)
{
	struct th_stack a, b, c;
	struct th_stack_opts o = opts;
	uint64_t *p = rk_pages(LEN), one = 1, old = 7;
	struct fi_cq_tagged_entry e;
	struct th_deadline dl;
	struct fid_mr *mr;
	fi_addr_t to;

	(void)self;
	th_stack_open(&a, &opts);
	th_stack_open(&b, &opts);
	o.domain_of = &b;
	th_stack_open(&c, &o);
	th_ok(fi_mr_reg(b.domain, p, LEN, RK_RW, 0, 1, 0, &mr, NULL));
	to = th_insert(&a, c.addr);
	for (uint64_t i = 0; i < 20; i++) {
		ssize_t ret;

		th_ok(fi_fetch_atomic(a.ep, &one, 1, NULL, &old, NULL, to, 0, 1,
				      FI_UINT64, FI_SUM, NULL));
		dl = th_patience();
		do {
			fi_cq_read(b.rxcq, NULL, 0);
			ret = fi_cq_read(a.txcq, &e, 1);
		} while (ret == -FI_EAGAIN && !th_expired(&dl));
		th_eq(ret, 1);
		th_eq(old, i);
	}
	th_ok(fi_close(&mr->fid));
	th_stack_close(&c);
	th_stack_close(&b);
	th_stack_close(&a);
}

/* Memory that has become read only: it can be read, and is not written. */
static void contract_L2_read_only(struct th_self *self)
{
	long double v[2] = { 1, 2 }, old[2] = { 0, 0 };
	void *p = rk_pages(RK_PAGE);
	struct th_stack a, b;
	struct fid_mr *mr;

	(void)self;
	memcpy(p, v, sizeof(v));
	th_pair_open(&a, &b, &opts);
	th_ok(fi_mr_reg(b.domain, p, RK_PAGE, RK_RW, 0, 1, 0, &mr, NULL));
	th_ok(mprotect(p, RK_PAGE, PROT_READ));
	th_ok(fi_fetch_atomic(a.ep, v, 1, NULL, old, NULL, a.peers[1], 0, 1,
			      FI_LONG_DOUBLE, FI_ATOMIC_READ, NULL));
	th_tx_ok(&a);
	th_check(old[0] == 1);
	th_ok(fi_atomic(a.ep, v, 1, NULL, a.peers[1], 0, 1, FI_LONG_DOUBLE,
			FI_SUM, NULL));
	th_eq(th_tx_err(&a).err, FI_EFAULT);
	th_check(*(long double *)p == 1);
	th_ok(fi_close(&mr->fid));
	th_pair_close(&a, &b);
}

/* The owner may write no files any more; its segments are there already. */
static void contract_L2_file_size_later(struct th_self *self)
{
	const struct rlimit none = { 0, 0 };
	unsigned char *p = rk_pages(LEN), buf[LEN];
	struct th_stack a, b;
	struct fid_mr *mr;

	(void)self;
	setenv("FI_SHRIMP_CMA", "off", 1);
	th_fill(p, LEN, 4);
	th_pair_open(&a, &b, &opts);
	th_ok(fi_mr_reg(b.domain, p, LEN, RK_RW, 0, 1, 0, &mr, NULL));
	th_ok(fi_read(a.ep, buf, 8, NULL, a.peers[1], 0, 1, NULL));
	th_tx_ok(&a);
	th_ok(setrlimit(RLIMIT_FSIZE, &none));
	for (int i = 0; i < 20; i++) {
		memset(buf, 0, LEN);
		th_ok(fi_read(a.ep, buf, LEN, NULL, a.peers[1], 0, 1, NULL));
		th_tx_ok(&a);
		th_verify(buf, LEN, 4);
	}
	th_ok(fi_close(&mr->fid));
	th_pair_close(&a, &b);
}

/* ---- cancel --------------------------------------------------------------- */

/* Writes x[0] to x[4] where the lane has two lines and nobody drains it. */
static void cancel_at(struct th_stack *s, pid_t owner)
{
	uint64_t x[5] = { 1, 2, 3, 4, 5 };

	th_ok(kill(owner, SIGSTOP));
	th_sleep_us(20000);
	for (unsigned int i = 0; i < 5; i++)
		th_ok(fi_write(s->ep, &x[i], 8, NULL, s->peers[0], 8 * i, 1,
			       &x[i]));
	/* the third has happened, and waits to be told of */
	th_eq(fi_cancel(&s->ep->fid, &x[2]), -FI_ENOENT);
	th_ok(fi_cancel(&s->ep->fid, &x[3]));
	th_ok(kill(owner, SIGCONT));
	th_ptr_eq(th_tx_ok(s).op_context, &x[0]);
	th_ptr_eq(th_tx_ok(s).op_context, &x[1]);
	th_eq(th_tx_err(s).err, FI_ECANCELED);
	th_ptr_eq(th_tx_ok(s).op_context, &x[2]);
	th_ptr_eq(th_tx_ok(s).op_context, &x[4]);
}

/* What waits only to be told of has happened: it cannot be cancelled. */
static void cancel_parked(struct th_self *self)
{
	struct iovec v = { NULL, LEN };
	struct fid_cntr *c = NULL;
	struct fid_mr *mr = NULL;
	pid_t me = getpid(), pid[2];
	struct th_stack s;

	setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	th_stack_open(&s, &opts);
	th_stack_connect(&s, self);
	if (!self->rank) {
		v.iov_base = device_memory(&s, LEN);
		c = rk_cntr(&s, FI_WAIT_NONE, 0);
		mr = counted(&s, &v, 1, 1, c);
	}
	th_gather(self, "pid", &me, pid, sizeof(me));
	if (self->rank) {
		cancel_at(&s, pid[0]);
	} else {
		th_cntr_reach(&s, c, 4);
		th_quiet(&s, 10);
		th_eq(fi_cntr_read(c), 4);
		th_eq(((uint64_t *)v.iov_base)[2], 3);
		th_eq(((uint64_t *)v.iov_base)[3], 0);
	}
	th_barrier_progress(self, &s, "counted");
	if (mr) {
		th_ok(fi_close(&mr->fid));
		th_ok(fi_close(&c->fid));
	}
	th_stack_close(&s);
}

/* ---- an owner that only waits ---------------------------------------------- */

/* A region's counter is all that the owner looks at. */
static void counter_waited_for(struct th_self *self)
{
	struct th_stack_opts o = opts;
	struct iovec v = { NULL, LEN };
	struct fid_cntr *c = NULL;
	struct fid_mr *mr = NULL;
	struct th_stack s;
	uint64_t x = 1;

	/* nothing else makes the agent serve */
	o.caps = FI_MSG | FI_RMA | FI_RMA_EVENT;
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	if (!self->rank) {
		v.iov_base = device_memory(&s, LEN);
		c = rk_cntr(&s, FI_WAIT_NONE, 0);
		mr = counted(&s, &v, 1, 1, c);
	}
	th_barrier_progress(self, &s, "ready");
	if (self->rank) {
		for (int i = 0; i < 100; i++)
			th_ok(fi_inject_write(s.ep, &x, 8, s.peers[0], 0, 1));
	} else {
		th_ok(fi_cntr_wait(c, 100, 5000));
	}
	th_barrier_progress(self, &s, "counted");
	if (mr) {
		th_ok(fi_close(&mr->fid));
		th_ok(fi_close(&c->fid));
	}
	th_stack_close(&s);
}

enum { UNREAD = 2000, UNREAD_MAX = 16 };

/* Posts writes from *@i on, until there is no room (@once) or all are. */
static void write_data(struct th_stack *s, uint64_t *i, int *done, bool once)
{
	static uint64_t x = 1;
	struct fi_cq_tagged_entry e;
	ssize_t ret = 0;

	while (*i < UNREAD && !(once && ret)) {
		ret = fi_writedata(s->ep, &x, 8, NULL, *i, s->peers[0], 0, 1,
				   NULL);
		th_check(!ret || ret == -FI_EAGAIN);
		*i += !ret;
		if (ret)
			*done += fi_cq_read(s->txcq, &e, 1) == 1;
	}
}

static void unread_writer(struct th_self *self, struct th_stack *s)
{
	struct fi_cq_tagged_entry e;
	struct th_deadline dl;
	uint64_t i = 0;
	int done = 0;

	write_data(s, &i, &done, true);
	dl = th_deadline_ms(200);
	while (!th_expired(&dl))
		done += fi_cq_read(s->txcq, &e, 1) == 1;
	/* as many as the queue and the lane hold */
	th_check(done < UNREAD_MAX + 100);
	th_barrier(self, "full");
	write_data(s, &i, &done, false);
	for (; done < UNREAD; done++)
		th_tx_ok(s);
}

/*
 * Remote CQ data that the owner does not read: the writer has to wait, and the
 * owner's queue does not grow for ever.
 */
static void cq_data_unread(struct th_self *self)
{
	uint64_t *p = rk_pages(LEN);
	struct fid_mr *mr = NULL;
	struct th_stack s;

	if (!self->rank)
		setenv("FI_SHRIMP_CQ_MAX", "16", 1);
	th_stack_open(&s, &opts);
	th_stack_connect(&s, self);
	if (!self->rank)
		th_ok(fi_mr_reg(s.domain, p, LEN, RK_RW, 0, 1, 0, &mr, NULL));
	th_barrier_progress(self, &s, "ready");
	if (self->rank) {
		unread_writer(self, &s);
	} else {
		th_barrier(self, "full");
		for (uint64_t i = 0; i < UNREAD; i++)
			th_eq(th_rx_ok(&s).data, i);
	}
	th_barrier_progress(self, &s, "read");
	if (mr)
		th_ok(fi_close(&mr->fid));
	th_stack_close(&s);
}

/* ---- oneself -------------------------------------------------------------- */

/* CQ data of RMA to oneself, and a message behind it, in that order. */
static void contract_P5_self(struct th_self *self)
{
	uint64_t *p = rk_pages(LEN), x = 6, got = 0;
	struct fid_mr *mr;
	struct th_stack s;
	fi_addr_t me;

	(void)self;
	th_stack_open(&s, &opts);
	me = th_insert(&s, s.addr);
	th_ok(fi_mr_reg(s.domain, p, LEN, RK_RW, 0, 1, 0, &mr, NULL));
	for (uint64_t i = 0; i < 200; i++) {
		th_recv(&s, &got, 8, &got);
		th_ok(fi_writedata(s.ep, &x, 8, NULL, i, me, 0, 1, NULL));
		th_send(&s, me, &i, 8, NULL);
		th_tx_ok(&s);
		th_tx_ok(&s);
		th_eq(th_rx_ok(&s).data, i);
		th_check(th_rx_ok(&s).op_context == &got);
		th_eq(got, i);
	}
	th_ok(fi_close(&mr->fid));
	th_stack_close(&s);
}

/* A thousand events to oneself that nobody takes: none is refused or lost. */
static void self_events(struct th_self *self)
{
	uint64_t *p = rk_pages(LEN), x = 6;
	struct iovec v = { p, LEN };
	struct fid_cntr *c;
	struct fid_mr *mr;
	struct th_stack s;
	fi_addr_t me;

	(void)self;
	th_stack_open(&s, &opts);
	me = th_insert(&s, s.addr);
	c = rk_cntr(&s, FI_WAIT_NONE, 0);
	mr = counted(&s, &v, 1, 1, c);
	for (uint64_t i = 0; i < 1000; i++)
		th_ok(fi_inject_writedata(s.ep, &x, 8, i, me, 0, 1));
	for (uint64_t i = 0; i < 1000; i++)
		th_eq(th_rx_ok(&s).data, i);
	th_eq(fi_cntr_read(c), 1000);
	th_ok(fi_close(&mr->fid));
	th_ok(fi_close(&c->fid));
	th_stack_close(&s);
}

/* What was sent to a service that turns out to be the sender's own. */
static void self_by_service(struct th_self *self)
{
	char name[32], big[3000], in[3000];
	struct th_stack_opts o = opts;
	uint64_t *p = rk_pages(LEN), one = 1, old = 9;
	struct fi_info *hints, *info;
	struct fid_mr *mr;
	struct th_stack s;
	fi_addr_t me;

	(void)self;
	snprintf(name, sizeof(name), "review-%d", getpid());
	o.service = name;
	o.flags = FI_SOURCE;
	th_stack_open(&s, &o);
	hints = th_hints(&opts);
	th_ok(fi_getinfo(FI_VERSION(1, 17), NULL, name, 0, hints, &info));
	me = th_insert(&s, info->dest_addr);
	th_ok(fi_mr_reg(s.domain, p, LEN, RK_RW, 0, 1, 0, &mr, NULL));
	th_fill(big, sizeof(big), 3);
	th_recv(&s, in, sizeof(in), NULL);
	th_ok(fi_inject(s.ep, big, sizeof(big), me));
	memset(big, 0, sizeof(big));
	th_ok(fi_fetch_atomic(s.ep, &one, 1, NULL, &old, NULL, me, 0, 1,
			      FI_UINT64, FI_SUM, &old));
	th_send(&s, me, &one, 8, &one);
	th_check(th_tx_ok(&s).op_context == &old);
	th_check(th_tx_ok(&s).op_context == &one);
	th_eq(th_rx_ok(&s).len, sizeof(in));
	th_verify(in, sizeof(in), 3);
	th_eq(old, 0);
	th_eq(*p, 1);
	th_recv(&s, in, sizeof(in), NULL);
	th_eq(th_rx_ok(&s).len, 8);
	th_ok(fi_close(&mr->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	th_stack_close(&s);
}

/* ---- replies among other answers ------------------------------------------ */

/*
 * The return ring is full of answers to messages when replies are due: each
 * operation gets its own result.
 */
static void replies_wait(struct th_self *self)
{
	enum { N = 64 };
	static uint64_t in[N], out[N], old[N];
	uint64_t *p = rk_pages(LEN), one = 1;
	struct fi_cq_tagged_entry e;
	struct th_stack a, b;
	struct fid_mr *mr;

	(void)self;
	th_pair_open(&a, &b, &opts);
	th_ok(fi_mr_reg(b.domain, p, LEN, RK_RW, 0, 1, 0, &mr, NULL));
	for (int i = 0; i < N; i++) {
		struct iovec v = { &out[i], 8 };
		struct fi_msg m = { .msg_iov = &v,
				    .iov_count = 1,
				    .addr = a.peers[1],
				    .context = &out[i] };

		th_recv(&b, &in[i], 8, NULL);
		th_ok(fi_sendmsg(a.ep, &m,
				 FI_COMPLETION | FI_DELIVERY_COMPLETE));
		th_eq(fi_fetch_atomic(a.ep, &one, 1, NULL, &old[i], NULL,
				      a.peers[1], 0, 1, FI_UINT64, FI_SUM,
				      &old[i]),
		      0);
		/* only the receiver moves */
		while (fi_cq_read(b.rxcq, &e, 1) == 1)
			;
	}
	for (int i = 0; i < 2 * N; i++)
		th_tx_ok(&a);
	for (uint64_t i = 0; i < N; i++)
		th_eq(old[i], i);
	th_eq(*p, N);
	th_ok(fi_close(&mr->fid));
	th_pair_close(&a, &b);
}

static const struct CMUnitTest rma_corners_tests[] = {
	TH_CASE(contract_I2_no_event, 1, 20),
	TH_CASE(mixed_paths_count, 1, 20),
	TH_CASE(contract_P1_other_endpoint, 1, 30),
	TH_CASE(contract_L2_read_only, 1, 20),
	TH_CASE(contract_L2_file_size_later, 1, 20),
	TH_CASE(cancel_parked, 2, 20),
	TH_CASE(counter_waited_for, 2, 20),
	TH_CASE(cq_data_unread, 2, 30),
	TH_CASE(contract_P5_self, 1, 20),
	TH_CASE(self_events, 1, 20),
	TH_CASE(self_by_service, 1, 20),
	TH_CASE(replies_wait, 1, 20),
};

TH_MAIN(rma_corners_tests)
