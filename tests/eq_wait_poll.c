/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Event queues, wait sets and poll sets, as API 1.17 has them.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

enum { TAG = 111, EVENT = FI_NOTIFY };

static struct fid_eq *eq_open(struct th_stack *s, uint64_t flags,
			      enum fi_wait_obj wait)
{
	struct fi_eq_attr attr = { .flags = flags, .wait_obj = wait };
	struct fid_eq *eq;

	th_ok(fi_eq_open(s->fabric, &attr, &eq, s));
	th_ptr_eq(eq->fid.context, s);
	th_eq(eq->fid.fclass, FI_CLASS_EQ);
	return eq;
}

static void eq_put(struct fid_eq *eq, uint64_t data)
{
	struct fi_eq_entry e = { .fid = &eq->fid, .data = data };

	th_eq(fi_eq_write(eq, EVENT, &e, sizeof(e), 0), sizeof(e));
}

static void put(struct th_stack *s, fi_addr_t to, uint64_t v)
{
	th_post(s, fi_tinject(s->ep, &v, 8, to, TAG));
}

/* ---- event queues ---------------------------------------------------------- */

/* Events come out in order; FI_PEEK leaves them; too small a buffer, too. */
static void eq_read_write(struct th_self *self)
{
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry e = { 0 };
	struct th_stack s;
	struct fid_eq *eq;
	uint32_t event = 0;
	uint64_t i;

	(void)self;
	th_stack_open(&s, NULL);
	eq = eq_open(&s, FI_WRITE, FI_WAIT_NONE);
	th_eq(fi_eq_read(eq, &event, &e, sizeof(e), 0), -FI_EAGAIN);
	th_eq(fi_eq_readerr(eq, &err, 0), -FI_EAGAIN);
	for (i = 0; i < 100; i++)
		eq_put(eq, i);
	for (i = 0; i < 100; i++) {
		th_eq(fi_eq_read(eq, &event, &e, sizeof(e), FI_PEEK),
		      sizeof(e));
		th_check(event == EVENT && e.data == i);
		th_check(fi_eq_read(eq, &event, &e, 1, 0) < 0);
		memset(&e, 0, sizeof(e));
		th_eq(fi_eq_read(eq, &event, &e, sizeof(e), 0), sizeof(e));
		th_check(e.data == i && e.fid == &eq->fid);
	}
	th_eq(fi_eq_read(eq, &event, &e, sizeof(e), 0), -FI_EAGAIN);
	eq_put(eq, 7);
	th_ok(fi_close(&eq->fid));
	th_stack_close(&s);
}

/* Without FI_WRITE one may not write; without a wait object not wait. */
static void eq_refuses(struct th_self *self)
{
	struct fi_eq_entry e = { 0 };
	struct th_stack s;
	struct fid_eq *eq;
	uint32_t event;
	char text[32];

	(void)self;
	th_stack_open(&s, NULL);
	eq = eq_open(&s, 0, FI_WAIT_NONE);
	th_check(fi_eq_write(eq, EVENT, &e, sizeof(e), 0) < 0);
	th_check(fi_eq_sread(eq, &event, &e, sizeof(e), 50, 0) < 0);
	th_check(fi_eq_strerror(eq, FI_EINVAL, NULL, text, sizeof(text)));
	th_eq(fi_close(&s.fabric->fid), -FI_EBUSY);
	th_ok(fi_close(&eq->fid));
	th_stack_close(&s);
}

static void *write_later(void *arg)
{
	th_sleep_us(50000);
	eq_put(arg, 42);
	return NULL;
}

/* fi_eq_sread(): timeout kept; woken by a write of another thread. */
static void eq_sread(struct th_self *self)
{
	static const enum fi_wait_obj waits[] = { FI_WAIT_UNSPEC, FI_WAIT_FD };
	struct fi_eq_entry e;
	struct th_stack s;
	struct fid_eq *eq;
	uint64_t start;
	uint32_t event;
	pthread_t t;
	int w;

	(void)self;
	th_stack_open(&s, NULL);
	for (w = 0; w < 2; w++) {
		eq = eq_open(&s, FI_WRITE, waits[w]);
		start = th_now_ns();
		th_eq(fi_eq_sread(eq, &event, &e, sizeof(e), 60, 0),
		      -FI_EAGAIN);
		th_check(th_now_ns() - start >= 59000000);
		eq_put(eq, 1);
		th_eq(fi_eq_sread(eq, &event, &e, sizeof(e), -1, 0), sizeof(e));
		th_eq(pthread_create(&t, NULL, write_later, eq), 0);
		th_eq(fi_eq_sread(eq, &event, &e, sizeof(e), -1, 0), sizeof(e));
		th_eq(e.data, 42);
		th_eq(pthread_join(t, NULL), 0);
		th_ok(fi_close(&eq->fid));
	}
	th_stack_close(&s);
}

/* The descriptor of an EQ: readable with an event, quiet without. */
static void eq_descriptor(struct th_self *self)
{
	struct pollfd p = { .events = POLLIN };
	struct fi_eq_entry e;
	struct th_stack s;
	struct fid *fids[1];
	struct fid_eq *eq;
	uint32_t event;

	(void)self;
	th_stack_open(&s, NULL);
	eq = eq_open(&s, FI_WRITE, FI_WAIT_FD);
	fids[0] = &eq->fid;
	th_ok(fi_control(&eq->fid, FI_GETWAIT, &p.fd));
	th_eq(fi_trywait(s.fabric, fids, 1), 0);
	th_eq(poll(&p, 1, 20), 0);
	eq_put(eq, 1);
	th_eq(poll(&p, 1, 1000), 1);
	th_eq(fi_trywait(s.fabric, fids, 1), -FI_EAGAIN);
	th_eq(fi_eq_read(eq, &event, &e, sizeof(e), 0), sizeof(e));
	th_eq(fi_trywait(s.fabric, fids, 1), 0);
	th_ok(fi_close(&eq->fid));
	th_stack_close(&s);
}

/* An AV that tells by event when an insertion is done. */
static void eq_of_av(struct th_self *self)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = FI_EVENT };
	fi_addr_t addr[2] = { 77, 77 };
	struct fi_eq_entry e;
	char names[2][TH_MAX_ADDR];
	struct th_stack a, b;
	struct fid_av *av;
	struct fid_eq *eq;
	uint32_t event;
	int ctx, ret;

	th_pair_open(&a, &b, NULL);
	ret = fi_av_open(a.domain, &attr, &av, &a);
	if (ret == -FI_ENOSYS)
		th_skip(self, "no asynchronous insertion");
	th_ok(ret);
	th_eq(fi_av_insert(av, a.addr, 1, addr, 0, &ctx), -FI_ENOEQ);
	eq = eq_open(&a, 0, FI_WAIT_UNSPEC);
	th_ok(fi_av_bind(av, &eq->fid, 0));
	memcpy(names[0], a.addr, a.addrlen);
	memcpy(names[0] + a.addrlen, b.addr, b.addrlen);
	th_eq(fi_av_insert(av, names[0], 2, addr, 0, &ctx), 0);
	th_eq(fi_eq_sread(eq, &event, &e, sizeof(e), 5000, 0), sizeof(e));
	th_eq(event, FI_AV_COMPLETE);
	th_ptr_eq(e.fid, &av->fid);
	th_ptr_eq(e.context, &ctx);
	th_eq(e.data, 2);
	th_check(addr[0] == 0 && addr[1] == 1);
	th_eq(fi_close(&eq->fid), -FI_EBUSY);
	th_ok(fi_close(&av->fid));
	th_ok(fi_close(&eq->fid));
	th_pair_close(&a, &b);
}

/* An endpoint and a domain can be bound to an EQ. */
static void eq_bound(struct th_self *self)
{
	struct th_stack_opts o = { .no_enable = true };
	struct th_stack s;
	struct fid_eq *eq;

	(void)self;
	th_stack_open(&s, &o);
	eq = eq_open(&s, 0, FI_WAIT_NONE);
	th_ok(fi_ep_bind(s.ep, &eq->fid, 0));
	th_stack_enable(&s);
	th_eq(fi_close(&eq->fid), -FI_EBUSY);
	th_ok(fi_close(&s.ep->fid));
	s.ep = NULL;
	th_ok(fi_close(&eq->fid));
	th_stack_close(&s);
}

/* ---- wait sets ----------------------------------------------------------------- */

static struct fid_wait *wait_open(struct th_stack *s, enum fi_wait_obj obj)
{
	struct fi_wait_attr attr = { .wait_obj = obj };
	struct fid_wait *w;

	th_ok(fi_wait_open(s->fabric, &attr, &w));
	th_eq(w->fid.fclass, FI_CLASS_WAIT);
	return w;
}

static struct fid_cq *cq_in_set(struct th_stack *s, struct fid_wait *w)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED,
				   .wait_obj = FI_WAIT_SET,
				   .wait_set = w };
	struct fid_cq *cq;

	th_ok(fi_cq_open(s->domain, &attr, &cq, s));
	return cq;
}

/*
 * An endpoint of its own on @cq, in the domain of @s; @addr is its
 * address in the vector of @who.
 */
static struct fid_ep *ep_on(struct th_stack *s, struct fid_cq *cq,
			    struct th_stack *who, fi_addr_t *addr)
{
	char name[TH_MAX_ADDR];
	size_t len = sizeof(name);
	struct fid_ep *ep;

	th_ok(fi_endpoint(s->domain, s->info, &ep, NULL));
	th_ok(fi_ep_bind(ep, &s->av->fid, 0));
	th_ok(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	th_ok(fi_enable(ep));
	th_ok(fi_getname(&ep->fid, name, &len));
	*addr = th_insert(who, name);
	return ep;
}

struct later {
	struct th_stack *s; /* sends from it */
	fi_addr_t to;	    /* to whom */
};

static void *send_later(void *arg)
{
	struct later *l = arg;

	th_sleep_us(50000);
	put(l->s, l->to, 5);
	return NULL;
}

/* A wait set wakes for a CQ in it, and times out when nothing comes. */
static void wait_set_of_cq(struct th_self *self)
{
	static const enum fi_wait_obj kinds[] = { FI_WAIT_UNSPEC, FI_WAIT_FD };
	struct fi_cq_tagged_entry e;
	struct th_stack a, b;
	struct fid_wait *w;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct later l = { .s = &a };
	uint64_t start, rx;
	pthread_t t;
	int k;

	(void)self;
	for (k = 0; k < 2; k++) {
		th_pair_open(&a, &b, NULL);
		w = wait_open(&b, kinds[k]);
		cq = cq_in_set(&b, w);
		ep = ep_on(&b, cq, &a, &l.to);
		start = th_now_ns();
		th_check(fi_wait(w, 60) < 0);
		th_check(th_now_ns() - start >= 59000000);
		th_ok(fi_trecv(ep, &rx, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &rx));
		th_eq(pthread_create(&t, NULL, send_later, &l), 0);
		while (fi_cq_read(cq, &e, 1) != 1)
			th_ok(fi_wait(w, 10000));
		th_ptr_eq(e.op_context, &rx);
		th_eq(pthread_join(t, NULL), 0);
		th_check(fi_cq_sread(cq, &e, 1, NULL, 0) < 0);
		th_eq(fi_close(&w->fid), -FI_EBUSY);
		th_ok(fi_close(&ep->fid));
		th_ok(fi_close(&cq->fid));
		th_ok(fi_close(&w->fid));
		th_pair_close(&a, &b);
	}
}

static void *add_later(void *arg)
{
	th_sleep_us(50000);
	th_ok(fi_cntr_add(arg, 1));
	return NULL;
}

/* A counter and an EQ in one set. */
static void wait_set_of_cntr_and_eq(struct th_self *self)
{
	struct fi_cntr_attr cattr = { .wait_obj = FI_WAIT_SET };
	struct fi_eq_attr eattr = { .flags = FI_WRITE,
				    .wait_obj = FI_WAIT_SET };
	struct fid_cntr *c;
	struct fid_wait *w;
	struct fid_eq *eq;
	struct th_stack s;
	pthread_t t;

	(void)self;
	th_stack_open(&s, NULL);
	w = wait_open(&s, FI_WAIT_UNSPEC);
	cattr.wait_set = eattr.wait_set = w;
	th_ok(fi_cntr_open(s.domain, &cattr, &c, NULL));
	th_ok(fi_eq_open(s.fabric, &eattr, &eq, NULL));
	th_check(fi_cntr_wait(c, 1, 0) < 0);
	th_eq(pthread_create(&t, NULL, add_later, c), 0);
	while (fi_cntr_read(c) == 0)
		th_ok(fi_wait(w, 10000));
	th_eq(pthread_join(t, NULL), 0);
	th_eq(pthread_create(&t, NULL, write_later, eq), 0);
	th_ok(fi_wait(w, 10000));
	th_eq(pthread_join(t, NULL), 0);
	th_eq(fi_close(&w->fid), -FI_EBUSY);
	th_ok(fi_close(&c->fid));
	th_ok(fi_close(&eq->fid));
	th_ok(fi_close(&w->fid));
	th_stack_close(&s);
}

/* The descriptor of a wait set, with fi_trywait() on the set. */
static void wait_set_descriptor(struct th_self *self)
{
	struct pollfd p = { .events = POLLIN };
	struct fi_cq_tagged_entry e;
	struct fid *fids[1];
	struct fid_wait *w;
	struct th_stack s;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t to;
	uint64_t rx;

	(void)self;
	th_stack_open(&s, NULL);
	w = wait_open(&s, FI_WAIT_FD);
	cq = cq_in_set(&s, w);
	ep = ep_on(&s, cq, &s, &to);
	fids[0] = &w->fid;
	th_ok(fi_control(&w->fid, FI_GETWAIT, &p.fd));
	th_eq(fi_trywait(s.fabric, fids, 1), 0);
	th_eq(poll(&p, 1, 20), 0);
	th_ok(fi_trecv(ep, &rx, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &rx));
	put(&s, to, 1);
	do {
		if (fi_trywait(s.fabric, fids, 1) == 0)
			th_eq(poll(&p, 1, 10000), 1);
	} while (fi_cq_read(cq, &e, 1) != 1);
	th_ok(fi_close(&ep->fid));
	th_ok(fi_close(&cq->fid));
	th_ok(fi_close(&w->fid));
	th_stack_close(&s);
}

/* ---- poll sets ------------------------------------------------------------------- */

static bool poll_gives(struct fid_poll *set, void *want, int most)
{
	void *ctx[8];
	int n, i;

	n = fi_poll(set, ctx, most);
	th_check(n >= 0 && n <= most);
	for (i = 0; i < n; i++)
		if (ctx[i] == want)
			return true;
	return false;
}

/* fi_poll() drives progress and tells which CQ has something. */
static void poll_set(struct th_self *self)
{
	struct th_deadline dl = th_patience();
	struct fi_poll_attr attr = { 0 };
	struct fi_cntr_attr cattr = { 0 };
	struct fi_cq_tagged_entry e;
	struct fid_poll *set;
	struct fid_cntr *c;
	struct th_stack a, b;
	uint64_t rx;

	(void)self;
	th_pair_open(&a, &b, NULL);
	th_ok(fi_poll_open(b.domain, &attr, &set));
	th_ok(fi_cntr_open(b.domain, &cattr, &c, &c));
	th_ok(fi_poll_add(set, &b.rxcq->fid, 0));
	th_ok(fi_poll_add(set, &c->fid, 0));
	th_check(!poll_gives(set, &b, 8));
	th_trecv(&b, &rx, 8, TAG, 0, &rx);
	put(&a, a.peers[1], 1);
	while (!poll_gives(set, &b, 8)) {
		fi_cq_read(a.txcq, NULL, 0);
		th_check(!th_expired(&dl));
	}
	th_check(poll_gives(set, &b, 1));
	th_eq(fi_cq_read(b.rxcq, &e, 1), 1);
	th_check(!poll_gives(set, &c, 8));
	th_ok(fi_cntr_adderr(c, 1));
	th_check(poll_gives(set, &c, 8));
	th_ok(fi_poll_del(set, &b.rxcq->fid, 0));
	th_check(fi_poll_del(set, &b.rxcq->fid, 0) < 0 || !th_is_shrimp());
	th_trecv(&b, &rx, 8, TAG, 0, &rx);
	th_ok(fi_cancel(&b.ep->fid, &rx));
	th_check(!poll_gives(set, &b, 8));
	th_rx_err(&b);
	th_ok(fi_poll_del(set, &c->fid, 0));
	th_ok(fi_close(&set->fid));
	th_ok(fi_close(&c->fid));
	th_pair_close(&a, &b);
}

static const struct CMUnitTest eq_wait_poll_tests[] = {
	TH_CASE(eq_read_write, 1, 10),
	TH_CASE(eq_refuses, 1, 10),
	TH_CASE(eq_sread, 1, 10),
	TH_CASE(eq_descriptor, 1, 10),
	TH_CASE(eq_of_av, 1, 10),
	TH_CASE(eq_bound, 1, 10),
	TH_CASE(wait_set_of_cq, 1, 20),
	TH_CASE(wait_set_of_cntr_and_eq, 1, 20),
	TH_CASE(wait_set_descriptor, 1, 20),
	TH_CASE(poll_set, 1, 10),
};

TH_MAIN(eq_wait_poll_tests)
