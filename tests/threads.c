/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Many threads in one process: on one endpoint, on endpoints of their own,
 * on shared CQs and AVs, and closing beside polling. Meant for the sanitizers
 * as much as for its own checks.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { TAG = 161, MAX_THREADS = 8 };

static const struct th_stack_opts safe = {
	.threading = FI_THREAD_SAFE,
	.caps = FI_MSG | FI_TAGGED | FI_SOURCE,
};

static void spawn(pthread_t *t, void *(*fn)(void *), void *arg)
{
	th_eq(pthread_create(t, NULL, fn, arg), 0);
}

static void join(pthread_t t)
{
	th_eq(pthread_join(t, NULL), 0);
}

/* ---- T31: polling while another thread opens, uses and closes ------------------ */

struct t31 {
	struct th_stack *s; /* first endpoint and the CQ */
	atomic_bool stop;   /* the poller shall end */
	atomic_ulong got;   /* completions it saw */
};

static void *t31_poll(void *arg)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	struct t31 *t = arg;
	ssize_t n;

	while (!atomic_load(&t->stop)) {
		n = fi_cq_read(t->s->txcq, &e, 1);
		if (n == 1) {
			atomic_fetch_add(&t->got, 1);
		} else if (n == -FI_EAVAIL) {
			memset(&err, 0, sizeof(err));
			th_eq(fi_cq_readerr(t->s->txcq, &err, 0), 1);
		} else {
			th_eq(n, -FI_EAGAIN);
			sched_yield();
		}
	}
	return NULL;
}

/* One life of the second endpoint: open, send each way, close. */
static void t31_life(struct t31 *t, fi_addr_t first, uint64_t *rx, bool wait)
{
	struct th_stack *s = t->s;
	unsigned long before = atomic_load(&t->got);
	struct th_deadline dl = th_patience();
	char name[TH_MAX_ADDR];
	size_t len = sizeof(name);
	struct fid_ep *ep;
	fi_addr_t second;

	th_ok(fi_endpoint(s->domain, s->info, &ep, NULL));
	th_ok(fi_ep_bind(ep, &s->av->fid, 0));
	th_ok(fi_ep_bind(ep, &s->txcq->fid, FI_TRANSMIT | FI_RECV));
	th_ok(fi_enable(ep));
	th_ok(fi_getname(&ep->fid, name, &len));
	second = th_insert(s, name);
	th_ok(fi_trecv(ep, &rx[0], 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &rx[0]));
	th_ok(fi_trecv(s->ep, &rx[1], 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &rx[1]));
	th_post(s, fi_tinject(s->ep, "12345678", 8, second, TAG));
	th_post(s, fi_tinject(ep, "12345678", 8, first, TAG));
	while (wait && atomic_load(&t->got) < before + 2) {
		sched_yield();
		th_check(!th_expired(&dl));
	}
	th_ok(fi_close(&ep->fid));
	th_ok(fi_av_remove(s->av, &second, 1, 0));
}

static void case_T31_close_beside_poll(struct th_self *self)
{
	unsigned long i, n = th_rounds(1000);
	struct th_stack_opts o = safe;
	struct t31 t = { 0 };
	struct th_stack s;
	uint64_t rx[2];
	fi_addr_t first;
	pthread_t poller;

	(void)self;
	o.one_cq = true;
	th_stack_open(&s, &o);
	first = th_insert(&s, s.addr);
	t.s = &s;
	spawn(&poller, t31_poll, &t);
	for (i = 0; i < n; i++)
		t31_life(&t, first, rx, i % 2);
	atomic_store(&t.stop, true);
	join(poller);
	th_stack_close(&s);
}

/* ---- T32: a client and a server thread -------------------------------------------- */

enum { T32_LEN = 1000 };

struct t32 {
	struct th_stack *s; /* the thread's own stack */
	fi_addr_t peer;	    /* the other */
	unsigned long n;    /* messages */
};

static void *t32_client(void *arg)
{
	unsigned char tx[T32_LEN], ack;
	struct t32 *t = arg;
	unsigned long i;

	for (i = 0; i < t->n; i++) {
		th_fill(tx, sizeof(tx), i);
		th_tsend(t->s, t->peer, tx, sizeof(tx), TAG, tx);
		th_tx_ok(t->s);
		th_trecv(t->s, &ack, 1, TAG, 0, &ack);
		th_rx_ok(t->s);
	}
	return NULL;
}

static void *t32_server(void *arg)
{
	unsigned char rx[T32_LEN];
	struct t32 *t = arg;
	unsigned long i;

	for (i = 0; i < t->n; i++) {
		th_trecv(t->s, rx, sizeof(rx), TAG, 0, rx);
		th_eq(th_rx_ok(t->s).len, sizeof(rx));
		th_verify(rx, sizeof(rx), i);
		th_post(t->s, fi_tinject(t->s->ep, "k", 1, t->peer, TAG));
	}
	return NULL;
}

static void case_T32_client_server(struct th_self *self)
{
	struct th_stack a, b;
	struct t32 c, v;
	pthread_t t[2];

	(void)self;
	th_pair_open(&a, &b, &safe);
	a.buddy = b.buddy = NULL;
	c = (struct t32){ &a, a.peers[1], th_rounds(3000) };
	v = (struct t32){ &b, b.peers[0], c.n };
	spawn(&t[0], t32_client, &c);
	spawn(&t[1], t32_server, &v);
	join(t[0]);
	join(t[1]);
	th_pair_close(&a, &b);
}

/* Each thread opens a whole stack, talks to itself, and closes it. */
static void *own_stack(void *arg)
{
	unsigned long i, n = th_rounds(30), k;
	struct th_stack s;
	uint64_t rx;
	fi_addr_t me;

	(void)arg;
	for (i = 0; i < n; i++) {
		th_stack_open(&s, &safe);
		me = th_insert(&s, s.addr);
		for (k = 0; k < 20; k++) {
			th_trecv(&s, &rx, 8, TAG, 0, &rx);
			th_post(&s, fi_tinject(s.ep, &k, 8, me, TAG));
			th_rx_ok(&s);
			th_eq(rx, k);
		}
		th_stack_close(&s);
	}
	return NULL;
}

static void case_T32_open_in_threads(struct th_self *self)
{
	pthread_t t[4];
	int i;

	(void)self;
	for (i = 0; i < 4; i++)
		spawn(&t[i], own_stack, NULL);
	for (i = 0; i < 4; i++)
		join(t[i]);
}

/* Insertions and removals beside sends on the same AV. */
struct av_work {
	struct th_stack *s; /* its AV */
	atomic_bool stop;   /* end */
};

static void *av_churn(void *arg)
{
	struct av_work *w = arg;
	char name[TH_MAX_ADDR];
	fi_addr_t addr[10];
	int i;

	memcpy(name, w->s->addr, sizeof(name));
	while (!atomic_load(&w->stop)) {
		for (i = 0; i < 10; i++) {
			name[w->s->addrlen - 1] = (char)(i + 1);
			addr[i] = th_insert(w->s, name);
		}
		th_ok(fi_av_remove(w->s->av, addr, 10, 0));
		sched_yield();
	}
	return NULL;
}

static void case_T32_insert_beside_send(struct th_self *self)
{
	unsigned long i, n = th_rounds(5000);
	struct th_stack a, b;
	struct av_work w = { .s = &a };
	fi_addr_t src;
	uint64_t rx;
	pthread_t t;

	(void)self;
	th_pair_open(&a, &b, &safe);
	spawn(&t, av_churn, &w);
	for (i = 0; i < n; i++) {
		th_post(&a, fi_tinject(a.ep, &i, 8, a.peers[1], TAG));
		th_trecv(&b, &rx, 8, TAG, 0, &rx);
		th_rx_ok(&b);
		th_eq(rx, i);
		th_trecv(&a, &rx, 8, TAG, 0, &rx);
		th_post(&b, fi_tinject(b.ep, &i, 8, b.peers[0], TAG));
		th_rx_from(&a, &src);
		th_eq(src, a.peers[1]);
	}
	atomic_store(&w.stop, true);
	join(t);
	th_pair_close(&a, &b);
}

/* ---- many threads on one endpoint, between two processes ------------------------------ */

struct crowd {
	struct th_stack *s;		   /* shared by all threads */
	fi_addr_t peer;			   /* the other process */
	unsigned long n;		   /* messages per thread */
	atomic_ulong done[MAX_THREADS][2]; /* completions, sends and receives */
};

struct member {
	struct crowd *c; /* what it is in */
	int id;		 /* its tag and its contexts */
};

/* Contexts say which thread and which direction they belong to. */
static struct {
	char tx; /* context of a send */
	char rx; /* context of a receive */
} ctxs[MAX_THREADS];

static void crowd_count(struct crowd *c, const void *ctx)
{
	ptrdiff_t off = (const char *)ctx - (const char *)ctxs;
	size_t id = (size_t)off / sizeof(ctxs[0]);

	th_check(off >= 0 && id < MAX_THREADS);
	atomic_fetch_add(&c->done[id][ctx == &ctxs[id].rx], 1);
}

/* Any thread takes any completion and books it for its owner. */
static void crowd_reap(struct crowd *c)
{
	struct fi_cq_tagged_entry e[4];
	ssize_t n, i;
	int k;

	for (k = 0; k < 2; k++) {
		n = fi_cq_read(k ? c->s->rxcq : c->s->txcq, e, 4);
		if (n == -FI_EAGAIN)
			continue;
		th_check(n > 0);
		for (i = 0; i < n; i++)
			crowd_count(c, e[i].op_context);
	}
}

static void crowd_wait(struct crowd *c, int id, int dir, unsigned long want)
{
	struct th_deadline dl = th_patience();

	while (atomic_load(&c->done[id][dir]) < want) {
		crowd_reap(c);
		sched_yield();
		th_check(!th_expired(&dl));
	}
}

static size_t crowd_len(unsigned long i)
{
	static const size_t lens[] = { 8, 100, 3000, 8, 70000, 8, 8, 1 << 20 };

	return lens[i % 8];
}

static void *crowd_main(void *arg)
{
	struct member *m = arg;
	struct crowd *c = m->c;
	unsigned char *tx = malloc(1 << 20), *rx = malloc(1 << 20);
	unsigned long i;
	size_t len;

	th_check(tx && rx);
	for (i = 0; i < c->n; i++) {
		len = crowd_len(i);
		th_fill(tx, len, i + (unsigned)m->id);
		th_ok(fi_trecv(c->s->ep, rx, 1 << 20, NULL, FI_ADDR_UNSPEC,
			       (uint64_t)m->id, 0, &ctxs[m->id].rx));
		th_post(c->s, fi_tsend(c->s->ep, tx, len, NULL, c->peer,
				       (uint64_t)m->id, &ctxs[m->id].tx));
		crowd_wait(c, m->id, 1, i + 1);
		th_verify(rx, len, i + (unsigned)m->id);
		crowd_wait(c, m->id, 0, i + 1);
	}
	free(tx);
	free(rx);
	return NULL;
}

static void crowd_run(struct th_self *self, const struct th_stack_opts *o,
		      int threads)
{
	struct member m[MAX_THREADS];
	pthread_t t[MAX_THREADS];
	struct crowd c = { .n = th_rounds(400) };
	struct th_stack s;
	int i;

	th_stack_open(&s, o);
	th_stack_connect(&s, self);
	c.s = &s;
	c.peer = s.peers[(self->rank + 1) % self->size];
	for (i = 0; i < threads; i++) {
		m[i] = (struct member){ &c, i };
		spawn(&t[i], crowd_main, &m[i]);
	}
	for (i = 0; i < threads; i++)
		join(t[i]);
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

static void crowd_on_one_endpoint(struct th_self *self)
{
	crowd_run(self, &safe, 4);
}

static void crowd_to_itself(struct th_self *self)
{
	crowd_run(self, &safe, MAX_THREADS);
}

static void crowd_with_wait_objects(struct th_self *self)
{
	struct th_stack_opts o = safe;

	o.cq_wait = FI_WAIT_FD;
	crowd_run(self, &o, 3);
}

/* With automatic progress there is a thread of the provider among them. */
static void crowd_with_auto_progress(struct th_self *self)
{
	struct th_stack_opts o = safe;

	o.progress = FI_PROGRESS_AUTO;
	crowd_run(self, &o, 3);
}

/*
 * FI_PROGRESS_AUTO is true: a message to a process that makes no call at
 * all is received, and its sender learns of the delivery.
 */
static void auto_progress(struct th_self *self)
{
	struct th_stack_opts o = { .progress = FI_PROGRESS_AUTO };
	static const size_t lens[] = { 8, 3000, 1 << 20 };
	unsigned char *buf = malloc(1 << 20);
	struct fi_msg_tagged m = { .iov_count = 1, .tag = TAG };
	struct iovec iov = { buf, 0 };
	struct th_stack s;
	int i;

	th_check(buf);
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	m.msg_iov = &iov;
	m.addr = s.peers[1];
	m.context = buf;
	for (i = 0; i < 3; i++) {
		iov.iov_len = lens[i];
		if (self->rank == 1)
			th_trecv(&s, buf, 1 << 20, TAG, 0, buf);
		else
			th_fill(buf, lens[i], 1);
		th_barrier(self, "posted");
		if (self->rank == 0) {
			th_post(&s,
				fi_tsendmsg(s.ep, &m, FI_DELIVERY_COMPLETE));
			th_tx_ok(&s);
		}
		/* The receiver only waits here, outside of libfabric. */
		th_barrier(self, "delivered");
		if (self->rank == 1) {
			th_eq(th_rx_ok(&s).len, lens[i]);
			th_verify(buf, lens[i], 1);
		}
	}
	free(buf);
	th_barrier(self, "done");
	th_stack_close(&s);
}

/* Two threads meet a new peer at the same moment: one lane, in order. */
struct contact {
	struct th_stack *s;	  /* sender's stack */
	fi_addr_t to;		  /* the new peer */
	pthread_barrier_t *start; /* both wait here */
	uint64_t id;		  /* which thread */
};

static void *contact_send(void *arg)
{
	struct contact *c = arg;
	uint64_t i, v;

	pthread_barrier_wait(c->start);
	for (i = 0; i < 20; i++) {
		v = c->id * 100 + i;
		th_post(c->s, fi_tinject(c->s->ep, &v, 8, c->to, c->id));
	}
	return NULL;
}

static void first_contact_of_two(struct th_self *self)
{
	unsigned long round, n = th_rounds(50);
	pthread_barrier_t start;
	struct contact c[2];
	struct th_stack a, b;
	pthread_t t[2];
	uint64_t rx, i;

	(void)self;
	th_eq(pthread_barrier_init(&start, NULL, 2), 0);
	th_stack_open(&a, &safe);
	for (round = 0; round < n; round++) {
		th_stack_open(&b, &safe);
		b.buddy = &a;
		c[0] = (struct contact){ &a, th_insert(&a, b.addr), &start, 0 };
		c[1] = c[0];
		c[1].id = 1;
		spawn(&t[0], contact_send, &c[0]);
		spawn(&t[1], contact_send, &c[1]);
		join(t[0]);
		join(t[1]);
		for (i = 0; i < 40; i++) {
			th_trecv(&b, &rx, 8, i / 20, 0, &rx);
			th_rx_ok(&b);
			th_eq(rx, i / 20 * 100 + i % 20);
		}
		th_stack_close(&b);
		th_ok(fi_av_remove(a.av, &c[0].to, 1, 0));
	}
	th_stack_close(&a);
	pthread_barrier_destroy(&start);
}

static const struct CMUnitTest threads_tests[] = {
	TH_CASE(case_T31_close_beside_poll, 1, 30),
	TH_CASE(case_T32_client_server, 1, 30),
	TH_CASE(case_T32_open_in_threads, 1, 30),
	TH_CASE(case_T32_insert_beside_send, 1, 30),
	TH_CASE(crowd_on_one_endpoint, 2, 30),
	TH_CASE(crowd_to_itself, 1, 30),
	TH_CASE(crowd_with_wait_objects, 2, 30),
	TH_CASE(crowd_with_auto_progress, 2, 30),
	TH_CASE(auto_progress, 2, 20),
	TH_CASE(first_contact_of_two, 1, 30),
};

TH_MAIN(threads_tests)
