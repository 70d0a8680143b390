/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Counters: every call, what counts and what does not, binding before and
 * after fi_enable(), and waits that make progress by themselves.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <pthread.h>
#include <sched.h>

enum { TAG = 91 };

static const struct th_stack_opts counted = { .cntrs = true,
					      .cntr_wait = FI_WAIT_UNSPEC };

static struct fid_cntr *cntr_open(struct th_stack *s, enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP,
				     .wait_obj = wait };
	struct fid_cntr *c;

	th_ok(fi_cntr_open(s->domain, &attr, &c, s));
	th_ptr_eq(c->fid.context, s);
	th_eq(c->fid.fclass, FI_CLASS_CNTR);
	return c;
}

static void put(struct th_stack *s, uint64_t v)
{
	th_post(s, fi_tinject(s->ep, &v, 8, s->peers[1], TAG));
}

/* ---- values -------------------------------------------------------------- */

/* The calls that change a counter by hand. */
static void by_hand(struct th_self *self)
{
	struct th_stack s;
	struct fid_cntr *c;

	(void)self;
	th_stack_open(&s, NULL);
	c = cntr_open(&s, FI_WAIT_UNSPEC);
	th_eq(fi_cntr_read(c), 0);
	th_eq(fi_cntr_readerr(c), 0);
	th_ok(fi_cntr_add(c, 5));
	th_ok(fi_cntr_add(c, 7));
	th_eq(fi_cntr_read(c), 12);
	th_eq(fi_cntr_readerr(c), 0);
	th_ok(fi_cntr_adderr(c, 3));
	th_eq(fi_cntr_readerr(c), 3);
	th_eq(fi_cntr_read(c), 12);
	th_ok(fi_cntr_set(c, UINT64_C(1) << 40));
	th_eq(fi_cntr_read(c), UINT64_C(1) << 40);
	th_ok(fi_cntr_seterr(c, 1));
	th_eq(fi_cntr_readerr(c), 1);
	th_ok(fi_cntr_set(c, 0));
	th_ok(fi_cntr_seterr(c, 0));
	th_eq(fi_cntr_read(c), 0);
	th_eq(fi_cntr_readerr(c), 0);
	th_ok(fi_close(&c->fid));
	th_stack_close(&s);
}

static void bad_attributes(struct th_self *self)
{
	struct fi_cntr_attr attr = { .events = 4711 };
	struct th_stack s;
	struct fid_cntr *c;

	(void)self;
	th_stack_open(&s, NULL);
	th_check(fi_cntr_open(s.domain, &attr, &c, NULL) < 0);
	attr = (struct fi_cntr_attr){ .flags = UINT64_MAX };
	th_check(fi_cntr_open(s.domain, &attr, &c, NULL) < 0);
	attr = (struct fi_cntr_attr){ .wait_obj = 4711 };
	th_check(fi_cntr_open(s.domain, &attr, &c, NULL) < 0);
	th_stack_close(&s);
}

/* ---- what counts ------------------------------------------------------------ */

static const size_t lens[] = { 0, 8, 1000, 30000, 1 << 20 };
enum { NLENS = 5, LONGEST = 1 << 20 };

/*
 * Each message counts once at the sender and once at the receiver, whatever
 * its path, and whether or not it makes a CQ entry.
 */
static void case_T20_every_message_once(struct th_self *self)
{
	unsigned char *tx = calloc(1, LONGEST), *rx = malloc(LONGEST);
	struct th_stack_opts o = counted;
	struct th_stack a, b;
	uint64_t n = 0;
	int i, call;

	(void)self;
	th_check(tx && rx);
	o.tx_bind = o.rx_bind = FI_SELECTIVE_COMPLETION;
	th_pair_open(&a, &b, &o);
	for (i = 0; i < NLENS; i++)
		for (call = 0; call < 4; call++) {
			if (call < 2)
				th_trecv(&b, rx, LONGEST, TAG, 0, rx);
			else
				th_recv(&b, rx, LONGEST, rx);
			if (call == 0)
				th_tsend(&a, a.peers[1], tx, lens[i], TAG, tx);
			else if (call == 1)
				put(&a, 1);
			else if (call == 2)
				th_send(&a, a.peers[1], tx, lens[i], tx);
			else
				th_post(&a, fi_injectdata(a.ep, tx, 8, 5,
							  a.peers[1]));
			n++;
			th_cntr_reach(&a, a.txcntr, n);
			th_cntr_reach(&b, b.rxcntr, n);
			th_eq(fi_cntr_read(a.txcntr), n);
			th_eq(fi_cntr_read(b.rxcntr), n);
		}
	th_quiet(&a, 5);
	th_quiet(&b, 5);
	th_eq(fi_cntr_read(a.rxcntr) + fi_cntr_read(b.txcntr), 0);
	th_eq(fi_cntr_readerr(a.txcntr) + fi_cntr_readerr(b.rxcntr), 0);
	free(tx);
	free(rx);
	th_pair_close(&a, &b);
}

/*
 * -FI_EAGAIN adds nothing, success adds one; in the end both sides have the
 * exact total.
 */
static void case_T20_eagain_adds_0(struct th_self *self)
{
	unsigned char tx[4096], rx[4096];
	uint64_t sent = 0, refused = 0, i;
	struct th_stack a, b;
	ssize_t ret;

	(void)self;
	setenv("FI_SHRIMP_TX_BUFFER", "65536", 1);
	memset(tx, 1, sizeof(tx));
	th_pair_open(&a, &b, &counted);
	a.buddy = NULL;
	while (refused < 100) {
		ret = fi_tinject(a.ep, tx, 4096, a.peers[1], TAG);
		if (ret == -FI_EAGAIN) {
			refused++;
			th_progress(&a);
			continue;
		}
		th_ok(ret);
		sent++;
	}
	th_check(fi_cntr_read(a.txcntr) <= sent);
	a.buddy = &b;
	for (i = 0; i < sent; i++) {
		th_trecv(&b, rx, sizeof(rx), TAG, 0, rx);
		th_rx_ok(&b);
	}
	th_cntr_reach(&a, a.txcntr, sent);
	th_quiet(&b, 5);
	th_eq(fi_cntr_read(a.txcntr), sent);
	th_eq(fi_cntr_read(b.rxcntr), sent);
	th_eq(fi_cntr_readerr(a.txcntr), 0);
	th_pair_close(&a, &b);
}

/* All to one: the receiver's counter ends at the exact total. */
static void case_T20_all_to_one(struct th_self *self)
{
	unsigned long n = th_rounds(5000), total, i;
	struct th_stack s;
	uint64_t rx;

	th_stack_open(&s, &counted);
	th_stack_connect(&s, self);
	total = n * (unsigned long)(self->size - 1);
	if (self->rank == 0) {
		for (i = 0; i < total; i++)
			th_trecv(&s, &rx, 8, TAG, 0, &rx);
		th_eq(fi_cntr_wait(s.rxcntr, total, 15000), 0);
		th_eq(fi_cntr_read(s.rxcntr), total);
	} else {
		for (i = 0; i < n; i++)
			th_post(&s, fi_tinjectdata(s.ep, &i, 8, i, s.peers[0],
						   TAG));
		th_cntr_reach(&s, s.txcntr, n);
		th_eq(fi_cntr_read(s.txcntr), n);
	}
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

/* Errors count in the error value only. */
static void errors_count_apart(struct th_self *self)
{
	struct th_stack a, b;
	char small;

	(void)self;
	th_pair_open(&a, &b, &counted);
	th_trecv(&b, &small, 1, TAG, 0, &small);
	put(&a, 1);
	th_eq(th_rx_err(&b).err, FI_ETRUNC);
	th_eq(fi_cntr_readerr(b.rxcntr), 1);
	th_eq(fi_cntr_read(b.rxcntr), 0);
	th_trecv(&b, &small, 1, TAG, 0, &small);
	th_ok(fi_cancel(&b.ep->fid, &small));
	th_eq(th_rx_err(&b).err, FI_ECANCELED);
	th_eq(fi_cntr_readerr(b.rxcntr), 2);
	th_eq(fi_cntr_read(b.rxcntr), 0);
	th_cntr_reach(&a, a.txcntr, 1);
	th_eq(fi_cntr_readerr(a.txcntr), 0);
	th_pair_close(&a, &b);
}

/* ---- binding -------------------------------------------------------------------- */

/* One counter for both directions. */
static void both_directions(struct th_self *self)
{
	struct th_stack_opts o = { .no_enable = true };
	struct fid_cntr *c;
	struct th_stack s;
	uint64_t rx;

	(void)self;
	th_stack_open(&s, &o);
	c = cntr_open(&s, FI_WAIT_NONE);
	th_ok(fi_ep_bind(s.ep, &c->fid, FI_SEND | FI_RECV));
	th_stack_enable(&s);
	s.peers = calloc(2, sizeof(*s.peers));
	th_check(s.peers);
	s.peers[1] = th_insert(&s, s.addr);
	th_trecv(&s, &rx, 8, TAG, 0, &rx);
	put(&s, 1);
	th_cntr_reach(&s, c, 2);
	th_eq(fi_cntr_read(c), 2);
	th_eq(fi_close(&c->fid), -FI_EBUSY);
	th_ok(fi_close(&s.ep->fid));
	s.ep = NULL;
	th_ok(fi_close(&c->fid));
	th_stack_close(&s);
}

/* Bound after fi_enable(): counts from then on. */
static void bind_after_enable(struct th_self *self)
{
	struct fid_cntr *txc, *rxc;
	struct th_stack a, b;
	uint64_t rx;

	(void)self;
	th_pair_open(&a, &b, NULL);
	th_trecv(&b, &rx, 8, TAG, 0, &rx);
	put(&a, 1);
	th_rx_ok(&b);
	txc = cntr_open(&a, FI_WAIT_UNSPEC);
	rxc = cntr_open(&b, FI_WAIT_UNSPEC);
	th_ok(fi_ep_bind(a.ep, &txc->fid, FI_SEND));
	th_ok(fi_ep_bind(b.ep, &rxc->fid, FI_RECV));
	th_trecv(&b, &rx, 8, TAG, 0, &rx);
	put(&a, 2);
	th_cntr_reach(&a, txc, 1);
	th_cntr_reach(&b, rxc, 1);
	th_eq(fi_cntr_read(txc), 1);
	th_eq(fi_cntr_read(rxc), 1);
	th_ok(fi_close(&a.ep->fid));
	th_ok(fi_close(&b.ep->fid));
	a.ep = b.ep = NULL;
	th_ok(fi_close(&txc->fid));
	th_ok(fi_close(&rxc->fid));
	th_pair_close(&a, &b);
}

/* Two counters for one kind of operation, and flags that are none. */
static void bad_binds(struct th_self *self)
{
	struct fid_cntr *c;
	struct th_stack s;

	(void)self;
	th_stack_open(&s, &counted);
	c = cntr_open(&s, FI_WAIT_NONE);
	th_eq(fi_ep_bind(s.ep, &c->fid, FI_SEND), -FI_EINVAL);
	th_check(fi_ep_bind(s.ep, &c->fid, FI_MULTI_RECV) < 0);
	th_ok(fi_close(&c->fid));
	th_stack_close(&s);
}

/* One counter of two endpoints. */
static void shared_by_two(struct th_self *self)
{
	struct th_stack_opts o = { .no_enable = true };
	struct th_stack a, b, c;
	struct fid_cntr *shared;
	fi_addr_t to_b, to_c;
	uint64_t rx[2];

	(void)self;
	th_stack_open(&a, NULL);
	th_stack_open(&b, &o);
	o.domain_of = &b;
	th_stack_open(&c, &o);
	shared = cntr_open(&b, FI_WAIT_UNSPEC);
	th_ok(fi_ep_bind(b.ep, &shared->fid, FI_RECV));
	th_ok(fi_ep_bind(c.ep, &shared->fid, FI_RECV));
	th_stack_enable(&b);
	th_stack_enable(&c);
	to_b = th_insert(&a, b.addr);
	to_c = th_insert(&a, c.addr);
	th_trecv(&b, &rx[0], 8, TAG, 0, &rx[0]);
	th_trecv(&c, &rx[1], 8, TAG, 0, &rx[1]);
	a.peers = calloc(2, sizeof(*a.peers));
	th_check(a.peers);
	a.peers[1] = to_b;
	put(&a, 1);
	a.peers[1] = to_c;
	put(&a, 2);
	/* Waiting on the counter makes progress on both endpoints. */
	while (fi_cntr_read(shared) < 2)
		fi_cq_read(a.txcq, NULL, 0);
	th_eq(rx[0], 1);
	th_eq(rx[1], 2);
	th_ok(fi_close(&c.ep->fid));
	th_ok(fi_close(&b.ep->fid));
	b.ep = c.ep = NULL;
	th_ok(fi_close(&shared->fid));
	th_stack_close(&c);
	th_stack_close(&b);
	th_stack_close(&a);
}

/* ---- waiting ----------------------------------------------------------------------- */

/* Timeout is kept, and told as such. */
static void wait_timeout(struct th_self *self)
{
	static const int ms[] = { 0, 1, 20, 150 };
	struct th_stack s;
	struct fid_cntr *c;
	uint64_t start, took;
	int i;

	(void)self;
	th_stack_open(&s, NULL);
	c = cntr_open(&s, FI_WAIT_UNSPEC);
	for (i = 0; i < 4; i++) {
		start = th_now_ns();
		th_eq(fi_cntr_wait(c, 1, ms[i]), -FI_ETIMEDOUT);
		took = (th_now_ns() - start) / 1000000;
		th_check(took + 1 >= (uint64_t)ms[i]);
		th_check(took < (uint64_t)ms[i] + 500);
	}
	th_ok(fi_cntr_add(c, 1));
	th_eq(fi_cntr_wait(c, 1, 0), 0);
	th_eq(fi_cntr_wait(c, 1, -1), 0);
	th_eq(fi_cntr_wait(c, 0, -1), 0);
	th_ok(fi_close(&c->fid));
	c = cntr_open(&s, FI_WAIT_NONE);
	th_check(fi_cntr_wait(c, 1, 100) < 0);
	th_ok(fi_close(&c->fid));
	th_stack_close(&s);
}

struct waiter {
	struct fid_cntr *c; /* to change */
	bool err;	    /* change the error value */
};

static void *change_later(void *arg)
{
	struct waiter *w = arg;

	th_sleep_us(50000);
	if (w->err)
		th_ok(fi_cntr_adderr(w->c, 1));
	else
		th_ok(fi_cntr_add(w->c, 10));
	return NULL;
}

/* Another thread's change ends a wait: success, or an error. */
static void wait_woken(struct th_self *self)
{
	struct th_stack s;
	struct waiter w;
	pthread_t t;
	int ret;

	(void)self;
	th_stack_open(&s, NULL);
	w.c = cntr_open(&s, FI_WAIT_UNSPEC);
	w.err = false;
	th_eq(pthread_create(&t, NULL, change_later, &w), 0);
	th_eq(fi_cntr_wait(w.c, 10, 10000), 0);
	th_eq(pthread_join(t, NULL), 0);
	w.err = true;
	th_eq(pthread_create(&t, NULL, change_later, &w), 0);
	ret = fi_cntr_wait(w.c, 11, 10000);
	th_eq(ret, -FI_EAVAIL);
	th_eq(pthread_join(t, NULL), 0);
	th_eq(fi_cntr_read(w.c), 10);
	th_ok(fi_close(&w.c->fid));
	th_stack_close(&s);
}

/*
 * T21, first half: neither side looks at a CQ; counters alone drive messages
 * of every path to their end.
 */
static void case_T21_counters_only(struct th_self *self)
{
	unsigned char *buf = malloc(LONGEST);
	unsigned long n = th_rounds(100), i;
	struct th_deadline dl = th_patience();
	struct th_stack s;
	uint64_t want;

	th_check(buf);
	th_stack_open(&s, &counted);
	th_stack_connect(&s, self);
	th_fill(buf, LONGEST, 1);
	for (i = 0; i < n; i++) {
		want = i + 1;
		if (self->rank == 0) {
			th_tsend(&s, s.peers[1], buf, lens[i % NLENS], TAG,
				 buf);
			while (fi_cntr_read(s.txcntr) < want) {
				th_check(!th_expired(&dl));
				sched_yield();
			}
			continue;
		}
		memset(buf, 0, lens[i % NLENS]);
		th_trecv(&s, buf, LONGEST, TAG, 0, buf);
		th_eq(fi_cntr_wait(s.rxcntr, want, 15000), 0);
		th_verify(buf, lens[i % NLENS], 1);
	}
	th_barrier(self, "done");
	free(buf);
	th_stack_close(&s);
}

/* Both sides block in fi_cntr_wait() in turn; the peer's message wakes. */
static void wait_ping_pong(struct th_self *self)
{
	unsigned long n = th_rounds(3000), i;
	uint64_t seed = (uint64_t)self->rank, rx;
	struct th_stack s;

	th_stack_open(&s, &counted);
	th_stack_connect(&s, self);
	s.peers[1] = s.peers[!self->rank];
	for (i = 0; i < n; i++) {
		th_trecv(&s, &rx, 8, TAG, 0, &rx);
		if (self->rank == 0)
			put(&s, i);
		th_eq(fi_cntr_wait(s.rxcntr, i + 1, 15000), 0);
		th_eq(rx, i);
		if (th_random(&seed) % 32 == 0)
			th_sleep_us(th_random(&seed) % 3000);
		if (self->rank == 1)
			put(&s, i);
	}
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

static const struct CMUnitTest cntr_tests[] = {
	TH_CASE(by_hand, 1, 10),
	TH_CASE(bad_attributes, 1, 10),
	TH_CASE(case_T20_every_message_once, 1, 10),
	TH_CASE(case_T20_eagain_adds_0, 1, 10),
	TH_CASE(case_T20_all_to_one, 4, 20),
	TH_CASE(errors_count_apart, 1, 10),
	TH_CASE(both_directions, 1, 10),
	TH_CASE(bind_after_enable, 1, 10),
	TH_CASE(bad_binds, 1, 10),
	TH_CASE(shared_by_two, 1, 10),
	TH_CASE(wait_timeout, 1, 10),
	TH_CASE(wait_woken, 1, 20),
	TH_CASE(case_T21_counters_only, 2, 20),
	TH_CASE(wait_ping_pong, 2, 20),
};

TH_MAIN(cntr_tests)
