/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Closes that do not wait, a peer that stops while it uses what is closed, and
 * registrations of several threads.
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "env_probe.h"

enum {
	LEN = 8 * RK_PAGE, /* bytes of a region */
	KEY = 1000,	   /* first of several */
};

/* ---- I1: closes that do not wait ---------------------------------------------------- */

static struct fid_eq *eq_open(struct th_stack *s)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_eq *eq;

	th_ok(fi_eq_open(s->fabric, &attr, &eq, NULL));
	return eq;
}

/* The next event is that of @mr, which had @key. */
static void expect_closed(struct fid_eq *eq, const struct fid_mr *mr,
			  uint64_t key, const void *context)
{
	struct fi_eq_entry e;
	uint32_t event;

	th_eq(fi_eq_sread(eq, &event, &e, sizeof(e), 20000, 0), sizeof(e));
	th_eq(event, FI_SHRIMP_MR_CLOSED);
	th_ptr_eq(e.fid, &mr->fid);
	th_ptr_eq(e.context, context);
	th_eq(e.data, key);
}

/* The next @n events are those of @mr, in any order; keys from @key on. */
static void expect_all(struct fid_eq *eq, struct fid_mr **mr, size_t n,
		       uint64_t key)
{
	for (size_t i = 0; i < n; i++) {
		struct fi_eq_entry e;
		uint32_t event;
		size_t k;

		th_eq(fi_eq_sread(eq, &event, &e, sizeof(e), 20000, 0),
		      sizeof(e));
		th_eq(event, FI_SHRIMP_MR_CLOSED);
		k = e.data - key;
		th_check(k < n && e.context == &mr[k]);
		th_ptr_eq(e.fid, &mr[k]->fid);
		/* once each */
		mr[k] = NULL;
	}
}

enum { CLOSED = 200 };

/* Many regions, used by @a and closed by @b. */
static void close_many(struct th_stack *a, struct th_stack *b,
		       struct fid_eq *eq, unsigned char *p)
{
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(b);
	struct fid_mr *mr[CLOSED];

	for (int i = 0; i < CLOSED; i++) {
		mr[i] = rk_reg(b, p + i * RK_PAGE, RK_PAGE, RK_RW, (uint64_t)i);
		th_eq(rk_write_at(a, (uint64_t)i, 0, 8, 1), 0);
	}
	th_eq(ops->close_async(mr[0], NULL, b), -FI_EINVAL);
	th_eq(ops->close_async(mr[0], (struct fid_eq *)b->txcq, b), -FI_EINVAL);
	for (int i = 0; i < CLOSED; i++) {
		th_ok(ops->close_async(mr[i], eq, &mr[i]));
		if (i % 20 == 0)
			th_eq(rk_write_at(a, (uint64_t)i, 0, 8, 1),
			      FI_EKEYREJECTED);
	}
	expect_all(eq, mr, CLOSED, 0);
	th_eq(rk_locked(), 0);
}

/* A window, the region below it, and a window that is bound to nothing. */
static void close_windows(struct th_stack *a, struct th_stack *b,
			  struct fid_eq *eq, unsigned char *p)
{
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(b);
	struct fi_shrimp_mr_part part = { NULL, 0, 8 };
	struct fid_mr *w;

	part.mr = rk_reg(b, p, LEN, RK_RW, 3);
	th_ok(ops->window(&b->domain->fid, NULL, &w));
	th_ok(ops->bind_window(w, &part, RK_RW, 4));
	th_ok(ops->close_async(w, eq, NULL));
	th_eq(rk_write_at(a, 4, 0, 8, 1), FI_EKEYREJECTED);
	expect_closed(eq, w, 4, NULL);
	th_ok(ops->close_async(part.mr, eq, NULL));
	expect_closed(eq, part.mr, 3, NULL);
	th_ok(ops->window(&b->domain->fid, NULL, &w));
	th_ok(ops->close_async(w, eq, NULL));
	expect_closed(eq, w, FI_KEY_NOTAVAIL, NULL);
}

static void async_closes(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	unsigned char *p = rk_pages(CLOSED * RK_PAGE);
	struct th_stack a, b;
	struct fid_eq *eq;

	(void)self;
	th_pair_open(&a, &b, &o);
	eq = eq_open(&b);
	for (int round = 0; round < 3; round++)
		close_many(&a, &b, eq, p);
	close_windows(&a, &b, eq, p);
	th_ok(fi_close(&eq->fid));
	munmap(p, CLOSED * RK_PAGE);
	th_pair_close(&a, &b);
}

/* Where no thread can be started it is fi_eq_read() that looks. */
static void async_without_agent(struct th_self *self)
{
	struct rlimit lim, none;
	uint64_t threads;
	struct fi_ops_shrimp_mr *ops;
	struct th_stack s;
	struct rk_mem m;
	struct fid_mr *mr;
	struct fid_eq *eq;

	(void)self;
	th_stack_open(&s,
		      &(struct th_stack_opts){ .mr_mode = FI_MR_ALLOCATED });
	ops = rk_mr_ops(&s);
	m = rk_mem_new(&s, true, LEN);
	eq = eq_open(&s);
	mr = rk_reg(&s, m.p, LEN, RK_RW, 2);
	threads = probe_status("Threads");
	th_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	none = (struct rlimit){ .rlim_cur = 3, .rlim_max = lim.rlim_max };
	th_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	th_ok(ops->close_async(mr, eq, &s));
	th_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	th_eq(probe_status("Threads"), threads);
	expect_closed(eq, mr, 2, &s);
	rk_mem_free(&m);
	th_ok(fi_close(&eq->fid));
	th_stack_close(&s);
}

/* ---- I1: a peer that stops inside ------------------------------------------------------ */

/* Domain and queue wait for the events; all of them come then. */
static void closing_is_busy(struct th_stack *s, struct fid_eq *eq)
{
	struct fi_eq_entry e;
	uint32_t event;

	th_eq(fi_close(&s->domain->fid), -FI_EBUSY);
	th_eq(fi_close(&eq->fid), -FI_EBUSY);
	th_eq(fi_eq_read(eq, &event, &e, sizeof(e), 0), -FI_EAGAIN);
}

static void stopped_owner(struct th_self *self, struct th_stack *s)
{
	struct rk_mem m = rk_mem_new(s, true, rk_big());
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(s);
	struct fid_mr *mr[CLOSED]; /* the first is written to */
	struct fid_eq *eq = eq_open(s);
	uint32_t event;
	struct fi_eq_entry e;
	ssize_t ret;

	for (int i = 0; i < CLOSED; i++)
		mr[i] = rk_reg(s, m.p, i ? 8 : m.len, RK_RW, KEY + (uint64_t)i);
	th_barrier(self, "registered");
	th_listen(self);
	for (int i = 0; i < CLOSED; i++)
		th_ok(ops->close_async(mr[i], eq, &mr[i]));
	ret = fi_eq_sread(eq, &event, &e, sizeof(e), 200, FI_PEEK);
	if (ret == -FI_EAGAIN)
		closing_is_busy(s, eq);
	th_note(self, "waited", ret == -FI_EAGAIN);
	expect_all(eq, mr, CLOSED, KEY);
	/* it is ours now */
	memset(m.p, 9, m.len);
	th_barrier(self, "rejected");
	th_verify_byte(m.p, m.len, 9);
	th_ok(fi_close(&eq->fid));
	rk_mem_free(&m);
}

static void stopped_main(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack s;

	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	if (self->rank)
		rk_stream(self, &s, KEY);
	else
		stopped_owner(self, &s);
	th_stack_close(&s);
}

/* Nearly always it stops inside: one of a few times it must. */
static void contract_I1_async(void **state)
{
	bool waited = false;

	(void)state;
	for (int i = 0; i < 4 && !waited; i++) {
		struct th_group *g = th_group_start(2, stopped_main, NULL, 60);

		rk_stop_stream(g);
		waited = th_group_wait_note(g, 0, "waited");
		th_group_kill(g, 1, SIGCONT);
		th_group_finish(g);
	}
	th_check(waited);
}

/* ---- threads ------------------------------------------------------------------------------ */

enum { THREADS = 4, TURNS = 300 };

/* What each thread does with objects of its own. */
struct worker {
	struct th_stack *s;	      /* shared */
	struct fi_ops_shrimp_mr *ops; /* likewise */
	struct fid_mr *steady;	      /* a region of all */
	struct fid_eq *eq;	      /* for asynchronous closes */
	unsigned char *p;	      /* memory of its own */
	unsigned int id;	      /* number */
	pthread_t thread;	      /* who does it */
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct fi_shrimp_mr_part part = { w->steady, w->id * 8, 8 };
	struct fid_mr *mr, *win;

	th_ok(w->ops->window(&w->s->domain->fid, NULL, &win));
	for (unsigned long i = 0; i < th_rounds(TURNS); i++) {
		uint64_t key = 1000 * (w->id + 1) + i % 500 * 2;
		int ret;

		th_ok(fi_mr_reg(w->s->domain, w->p, RK_PAGE, RK_RW, 0, key, 0,
				&mr, NULL));
		ret = w->ops->bind_window(win, &part, RK_RW, key + 1);
		th_check(!ret || ret == -FI_EBUSY);
		if (w->id == 0) {
			ret = w->ops->update(w->steady, NULL);
			th_check(!ret || ret == -FI_EBUSY);
		}
		th_ok(w->ops->update(mr, NULL));
		if (i % 3)
			th_ok(fi_close(&mr->fid));
		else
			th_ok(w->ops->close_async(mr, w->eq, NULL));
	}
	th_ok(fi_close(&win->fid));
	return NULL;
}

static void many_threads(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	unsigned char *p = rk_pages((THREADS + 1) * RK_PAGE);
	struct worker w[THREADS];
	struct th_stack s;
	struct fid_mr *steady;
	struct fid_eq *eq;
	struct fi_eq_entry e;
	uint32_t event;
	unsigned long got = 0;

	(void)self;
	o.threading = FI_THREAD_SAFE;
	th_stack_open(&s, &o);
	eq = eq_open(&s);
	steady = rk_reg(&s, p + THREADS * RK_PAGE, RK_PAGE, RK_RW, RK_KEY);
	for (unsigned int i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ .s = &s,
					.ops = rk_mr_ops(&s),
					.steady = steady,
					.eq = eq,
					.p = p + i * RK_PAGE,
					.id = i };
		th_eq(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
	for (; got < THREADS * ((th_rounds(TURNS) + 2) / 3); got++)
		th_eq(fi_eq_sread(eq, &event, &e, sizeof(e), 20000, 0),
		      sizeof(e));
	th_ok(fi_close(&steady->fid));
	th_eq(rk_locked(), 0);
	th_ok(fi_close(&eq->fid));
	th_stack_close(&s);
	munmap(p, (THREADS + 1) * RK_PAGE);
}

static const struct CMUnitTest mr_async[] = {
	TH_CASE(async_closes, 1, 30),
	TH_CASE(async_without_agent, 1, 20),
	cmocka_unit_test(contract_I1_async),
	TH_CASE(many_threads, 1, 60),
};

TH_MAIN(mr_async)
