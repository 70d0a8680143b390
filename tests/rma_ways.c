/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One-sided operations between processes on the ways that are not taken by
 * default: readers that fence by themselves, peers attached over the socket,
 * no help by the kernel; and these together. On each: bytes, elements, events,
 * and that a closed region is closed.
 */
#define _GNU_SOURCE
#include "rma_kit.h"

#include <rdma/fi_atomic.h>
#include <stdlib.h>

#include "env_probe.h"
#include "shm/atomic.h"

enum {
	LEN = 1 << 20, /* bytes of a memory */
	GUARD = 8192,  /* bytes that are written all the time */
	EVENTS = 30,   /* of each kind */
	ADDERS = 2,
};

/* What is switched away from its default. */
enum way {
	FENCE = 1 << 0,	 /* FI_SHRIMP_MEMBARRIER=off */
	SOCKET = 1 << 1, /* FI_SHRIMP_ATTACH=socket */
	NO_CMA = 1 << 2, /* FI_SHRIMP_CMA=off */
};

/* A process of a test, with memory if it is the owner. */
struct side {
	struct th_self *self; /* rank 0 owns */
	struct th_stack s;    /* its stack */
	struct rk_mem m;      /* the owner's, LEN bytes */
	struct fid_mr *mr;    /* of all of it, or NULL */
	enum way way;	      /* as the test says */
	bool device;	      /* kind of @m */
};

static void side_open(struct side *d, struct th_self *self)
{
	struct th_stack_opts o = rk_atomic_opts();

	*d = (struct side){ .self = self, .way = *(enum way *)self->arg };
	o.caps |= FI_RMA_EVENT;
	if (d->way & FENCE)
		setenv("FI_SHRIMP_MEMBARRIER", "off", 1);
	if (d->way & SOCKET)
		setenv("FI_SHRIMP_ATTACH", "socket", 1);
	if (d->way & NO_CMA)
		setenv("FI_SHRIMP_CMA", "off", 1);
	th_stack_open(&d->s, &o);
	th_stack_connect(&d->s, self);
}

/* The way was the one that was asked for. */
static void side_close(struct side *d)
{
	struct fi_shrimp_stats st;

	st = probe_stats(&d->s.fabric->fid);
	if (d->self->rank) {
		th_check(!!st.attach_socket == !!(d->way & SOCKET));
		th_check(!!st.attach_proc == !(d->way & SOCKET));
	}
	if (d->way & NO_CMA)
		th_eq(st.rma_ops[FI_SHRIMP_REACH_CMA], 0);
	th_stack_close(&d->s);
}

/* The owner gets memory of the kind @device; the others know that it has. */
static void own(struct side *d, bool device)
{
	d->device = device;
	if (!d->self->rank) {
		d->m = rk_mem_new(&d->s, device, LEN);
		d->mr = rk_reg(&d->s, d->m.p, LEN, RK_RW, RK_KEY);
	}
	th_barrier_progress(d->self, &d->s, "registered");
}

static void disown(struct side *d)
{
	th_barrier_progress(d->self, &d->s, "used");
	if (d->self->rank)
		return;
	if (d->mr)
		th_ok(fi_close(&d->mr->fid));
	d->mr = NULL;
	rk_mem_free(&d->m);
}

/* Writes @len bytes at @off; the result is looked at by the caller. */
static void put(struct side *d, void *buf, size_t len, uint64_t off)
{
	th_post(&d->s, fi_write(d->s.ep, buf, len, NULL, d->s.peers[0], off,
				RK_KEY, buf));
}

/* Reads, likewise. */
static void get(struct side *d, void *buf, size_t len, uint64_t off)
{
	th_post(&d->s, fi_read(d->s.ep, buf, len, NULL, d->s.peers[0], off,
			       RK_KEY, buf));
}

/* ---- bytes ---------------------------------------------------------------- */

static const size_t lens[] = { 1, 8, 1023, 4097, 60000, 700000 };
enum { NLENS = sizeof(lens) / sizeof(*lens) };

static void move_one(struct side *d, unsigned char *buf, size_t len)
{
	th_fill(buf, len, len);
	put(d, buf, len, 3);
	rk_done(&d->s, FI_WRITE, buf);
	memset(buf, 0, len);
	get(d, buf, len, 3);
	rk_done(&d->s, FI_READ, buf);
	th_verify(buf, len, len);
}

/* Which of the counters must have moved. */
static int reach_of(const struct side *d)
{
	if (d->device)
		return FI_SHRIMP_REACH_MAPPED;
	return d->way & NO_CMA ? FI_SHRIMP_REACH_OWNER : FI_SHRIMP_REACH_CMA;
}

static void move_all(struct side *d, unsigned char *buf)
{
	struct fi_shrimp_stats was, st;

	was = probe_stats(&d->s.fabric->fid);
	for (int i = 0; i < NLENS; i++)
		move_one(d, buf, lens[i]);
	st = probe_stats(&d->s.fabric->fid);
	th_eq(st.rma_ops[reach_of(d)] - was.rma_ops[reach_of(d)], 2 * NLENS);
	put(d, buf, 100, LEN - 99);
	rk_refused(&d->s, FI_EINVAL, RK_KEY, LEN - 99, 100);
}

static void bytes(struct th_self *self)
{
	unsigned char *buf = calloc(1, LEN);
	struct side d;

	th_check(buf);
	side_open(&d, self);
	for (int device = 0; device < 2; device++) {
		own(&d, device);
		if (self->rank)
			move_all(&d, buf);
		/* who sits here makes no call of ours */
		th_barrier(self, "moved");
		th_settle(&d.s);
		if (!self->rank) {
			th_verify(d.m.p + 3, lens[NLENS - 1], lens[NLENS - 1]);
			th_verify_byte(d.m.p, 3, 0);
			th_verify_byte(d.m.p + 3 + lens[NLENS - 1],
				       LEN - 3 - lens[NLENS - 1], 0);
		}
		disown(&d);
	}
	side_close(&d);
	free(buf);
}

/* ---- elements ------------------------------------------------------------- */

/* One that is native, and one that lies in two lines. */
enum { NATIVE = 128, CROSSING = 60 };

static uint64_t add_one(struct side *d, uint64_t off)
{
	uint64_t one = 1, was = 0;

	th_post(&d->s, fi_fetch_atomic(d->s.ep, &one, 1, NULL, &was, NULL,
				       d->s.peers[0], off, RK_KEY, FI_UINT64,
				       FI_SUM, &was));
	th_eq(th_tx_ok(&d->s).op_context == &was, 1);
	return was;
}

static void add_all(struct side *d, uint64_t rounds)
{
	uint64_t last[2] = { 0, 0 };

	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t n = add_one(d, NATIVE), c = add_one(d, CROSSING);

		/* each sees its own sums */
		th_check(n >= i && (!i || n > last[0]));
		th_check(c >= i && (!i || c > last[1]));
		last[0] = n;
		last[1] = c;
	}
}

/* Adds by its CPU as well, and calls nothing of ours. */
static uint64_t add_own(struct side *d, uint64_t rounds)
{
	rnic_a64 *w = (rnic_a64 *)(void *)(d->m.p + NATIVE);
	uint64_t n = 0;

	for (; rnic_load64_relaxed(w) < rounds * ADDERS + n && n < 20000000;
	     n++)
		rnic_add64_relaxed(w, 1);
	return n;
}

static void elements(struct th_self *self)
{
	unsigned long rounds = th_rounds(1000);
	uint64_t n, x;
	struct side d;

	side_open(&d, self);
	for (int device = 0; device < 2; device++) {
		own(&d, device);
		if (self->rank)
			add_all(&d, rounds);
		n = self->rank ? 0 : add_own(&d, rounds);
		th_barrier(self, "added");
		th_settle(&d.s);
		if (!self->rank) {
			memcpy(&x, d.m.p + NATIVE, sizeof(x));
			th_eq(x, rounds * ADDERS + n);
			memcpy(&x, d.m.p + CROSSING, sizeof(x));
			th_eq(x, rounds * ADDERS);
		}
		disown(&d);
	}
	side_close(&d);
}

/* ---- close (I1) ----------------------------------------------------------- */

/* Less than a sleep, so that a peer that looked up is met while it writes. */
static void spin(unsigned int turns)
{
	while (turns--)
		rnic_cpu_relax();
}

/* Under one key, for a moment; silent when it is closed. Returns writes. */
static bool close_once(struct side *d, unsigned int us)
{
	bool used;

	d->mr = rk_reg(&d->s, d->m.p, GUARD, RK_RW, RK_KEY);
	if (us)
		th_sleep_us(us);
	else
		spin(500);
	th_ok(fi_close(&d->mr->fid));
	d->mr = NULL;
	th_settle(&d->s);
	used = d->m.p[GUARD - 1];
	memset(d->m.p, 0, GUARD);
	spin(50);
	th_verify_byte(d->m.p, GUARD, 0);
	return used;
}

static void close_often(struct side *d)
{
	struct th_deadline end = th_deadline_ms(rk_ms(1) / 2 + 300);
	/* our agent takes longer than a copy */
	unsigned int step = d->way & NO_CMA && !d->device ? 777 : 37;
	unsigned int used = 0;

	for (unsigned int i = 0; !th_expired(&end); i++) {
		used += close_once(d, i % 50 ? 0 : i * step % (step * 6));
		th_progress(&d->s);
	}
	th_check(used > 0);
}

/* Writes without a pause; a missing key is all that may go wrong. */
static void write_often(struct side *d, unsigned char *buf)
{
	struct th_deadline end = th_deadline_ms(rk_ms(1) / 2 + 300);
	struct rk_outcome e;

	memset(buf, 1, GUARD);
	while (!th_expired(&end)) {
		put(d, buf, GUARD, 0);
		e = rk_end(&d->s);
		th_check(!e.err || e.err == FI_EKEYREJECTED);
	}
}

static void contract_I1_closed(struct th_self *self)
{
	unsigned char buf[GUARD];
	struct side d;

	side_open(&d, self);
	for (int device = 0; device < 2; device++) {
		own(&d, device);
		if (d.mr)
			th_ok(fi_close(&d.mr->fid));
		d.mr = NULL;
		th_barrier_progress(self, &d.s, "closed");
		if (self->rank)
			write_often(&d, buf);
		else
			close_often(&d);
		th_barrier_progress(self, &d.s, "written");
		if (self->rank) {
			put(&d, buf, 8, 0);
			rk_refused(&d.s, FI_EKEYREJECTED, RK_KEY, 0, 8);
		}
		disown(&d);
	}
	side_close(&d);
}

/* ---- events --------------------------------------------------------------- */

/* Counters of the owner's region. */
struct counted {
	struct fid_cntr *rd; /* remote reads */
	struct fid_cntr *wr; /* remote writes */
};

static struct fid_cntr *count(struct side *d, uint64_t flag)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *c;

	th_ok(fi_cntr_open(d->s.domain, &attr, &c, NULL));
	th_ok(fi_mr_bind(d->mr, &c->fid, flag));
	return c;
}

/* Writes with data, writes, reads; each changes the first byte. */
static void cause(struct side *d)
{
	unsigned char buf[100];

	for (uint64_t i = 0; i < EVENTS; i++) {
		th_fill(buf, sizeof(buf), i);
		th_post(&d->s,
			fi_writedata(d->s.ep, buf, sizeof(buf), NULL, ~i,
				     d->s.peers[0], i * 100, RK_KEY, buf));
		rk_done(&d->s, FI_WRITE, buf);
		put(d, buf, sizeof(buf), 50000);
		rk_done(&d->s, FI_WRITE, buf);
		get(d, buf, sizeof(buf), 50000);
		rk_done(&d->s, FI_READ, buf);
		/* who is refused is not told of */
		put(d, buf, sizeof(buf), LEN);
		rk_refused(&d->s, FI_EINVAL, RK_KEY, LEN, sizeof(buf));
	}
}

/* The data come after the bytes; nothing comes twice. */
static void notice(struct side *d, struct counted *c)
{
	for (uint64_t i = 0; i < EVENTS; i++) {
		struct fi_cq_tagged_entry e = th_rx_ok(&d->s);

		th_eq(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		th_eq(e.data, ~i);
		th_verify(d->m.p + i * 100, 100, i);
	}
	th_cntr_reach(&d->s, c->wr, 2 * EVENTS);
	th_cntr_reach(&d->s, c->rd, EVENTS);
	th_quiet(&d->s, 5);
	th_eq(fi_cntr_read(c->wr), 2 * EVENTS);
	th_eq(fi_cntr_read(c->rd), EVENTS);
}

static void events(struct th_self *self)
{
	struct counted c = { NULL, NULL };
	struct side d;

	side_open(&d, self);
	for (int device = 0; device < 2; device++) {
		own(&d, device);
		if (!self->rank) {
			c.rd = count(&d, FI_REMOTE_READ);
			c.wr = count(&d, FI_REMOTE_WRITE);
		}
		th_barrier_progress(self, &d.s, "counted");
		if (self->rank)
			cause(&d);
		else
			notice(&d, &c);
		disown(&d);
		if (!self->rank) {
			th_ok(fi_close(&c.rd->fid));
			th_ok(fi_close(&c.wr->fid));
		}
	}
	side_close(&d);
}

/* ---- ways ----------------------------------------------------------------- */

static enum way fence = FENCE;
static enum way over_socket = SOCKET;
static enum way no_cma = NO_CMA;
static enum way fence_socket = (enum way)(FENCE | SOCKET);
static enum way all_off = (enum way)(FENCE | SOCKET | NO_CMA);

static void run_bytes(void **state)
{
	th_run(2, bytes, *state, 30);
}

static void run_elements(void **state)
{
	th_run(ADDERS + 1, elements, *state, 30);
}

static void run_closed(void **state)
{
	th_run(2, contract_I1_closed, *state, 30);
}

static void run_events(void **state)
{
	th_run(2, events, *state, 30);
}

/* The test @name of @run, on @way. */
#define ON(name, run, way)                                                     \
	{                                                                      \
		name "_" #way, run, NULL, NULL, &(way)                         \
	}

/* All tests on @way. */
#define WAY(way)                                                               \
	ON("bytes", run_bytes, way), ON("elements", run_elements, way),        \
		ON("contract_I1_closed", run_closed, way),                     \
		ON("events", run_events, way)

static const struct CMUnitTest rma_ways_tests[] = {
	WAY(fence),	   WAY(over_socket), WAY(no_cma),
	WAY(fence_socket), WAY(all_off),
};

TH_MAIN(rma_ways_tests)
