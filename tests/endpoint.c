/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Endpoints: what they must be bound to, what they refuse, names, and the
 * order of opening and closing.
 */
#define _GNU_SOURCE
#include "harness.h"

static struct fid_ep *bare_ep(struct th_stack *s)
{
	struct fid_ep *ep;

	th_ok(fi_endpoint(s->domain, s->info, &ep, s));
	th_ptr_eq(ep->fid.context, s);
	th_eq(ep->fid.fclass, FI_CLASS_EP);
	return ep;
}

/* fi_enable() needs an AV and somewhere to report to. */
static void enable_needs(struct th_self *self)
{
	struct fid_ep *ep;
	struct th_stack s;

	(void)self;
	th_stack_open(&s, NULL);
	ep = bare_ep(&s);
	th_ok(fi_ep_bind(ep, &s.txcq->fid, FI_TRANSMIT | FI_RECV));
	th_eq(fi_enable(ep), -FI_ENOAV);
	th_ok(fi_close(&ep->fid));
	ep = bare_ep(&s);
	th_ok(fi_ep_bind(ep, &s.av->fid, 0));
	th_eq(fi_enable(ep), -FI_ENOCQ);
	th_ok(fi_ep_bind(ep, &s.txcq->fid, FI_TRANSMIT));
	th_ok(fi_ep_bind(ep, &s.rxcq->fid, FI_RECV));
	th_ok(fi_enable(ep));
	th_ok(fi_close(&ep->fid));
	th_stack_close(&s);
}

/* A direction has one CQ, an endpoint one AV, a bind known flags. */
static void bind_refuses(struct th_self *self)
{
	struct th_stack s, other;
	struct fid_ep *ep;

	(void)self;
	th_stack_open(&s, NULL);
	th_stack_open(&other, NULL);
	ep = bare_ep(&s);
	th_ok(fi_ep_bind(ep, &s.txcq->fid, FI_TRANSMIT));
	th_eq(fi_ep_bind(ep, &s.rxcq->fid, FI_TRANSMIT), -FI_EINVAL);
	th_eq(fi_ep_bind(ep, &s.rxcq->fid, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
	th_check(fi_ep_bind(ep, &s.rxcq->fid, FI_RECV | FI_INJECT) < 0);
	th_check(fi_ep_bind(ep, &s.rxcq->fid, 0) < 0);
	th_ok(fi_ep_bind(ep, &s.rxcq->fid, FI_RECV));
	th_ok(fi_ep_bind(ep, &s.av->fid, 0));
	th_check(fi_ep_bind(ep, &s.av->fid, 0) < 0);
	th_check(fi_ep_bind(ep, &s.domain->fid, 0) < 0);
	th_ok(fi_close(&ep->fid));
	/* Objects of another domain do not belong here. */
	ep = bare_ep(&s);
	th_check(fi_ep_bind(ep, &other.txcq->fid, FI_TRANSMIT) < 0);
	th_check(fi_ep_bind(ep, &other.av->fid, 0) < 0);
	th_ok(fi_close(&ep->fid));
	th_stack_close(&other);
	th_stack_close(&s);
}

/* Nothing can be sent or received before fi_enable(). */
static void not_enabled(struct th_self *self)
{
	struct th_stack_opts o = { .no_enable = true };
	struct th_stack s;
	fi_addr_t to;
	char byte = 0;

	(void)self;
	th_stack_open(&s, &o);
	memset(s.addr, 0, sizeof(s.addr));
	to = 0;
	th_check(fi_tsend(s.ep, &byte, 1, NULL, to, 1, &s) < 0);
	th_check(fi_send(s.ep, &byte, 1, NULL, to, &s) < 0);
	th_check(fi_inject(s.ep, &byte, 1, to) < 0);
	th_check(fi_trecv(s.ep, &byte, 1, NULL, to, 1, 0, &s) < 0);
	th_check(fi_recv(s.ep, &byte, 1, NULL, to, &s) < 0);
	th_stack_enable(&s);
	to = th_insert(&s, s.addr);
	th_trecv(&s, &byte, 1, 1, 0, &byte);
	th_tsend(&s, to, &byte, 1, 1, &byte);
	th_rx_ok(&s);
	th_tx_ok(&s);
	th_stack_close(&s);
}

/* The name: all of it, or -FI_ETOOSMALL and the length it takes. */
static void getname(struct th_self *self)
{
	struct th_buf small = th_buf_new(10);
	char name[TH_MAX_ADDR];
	struct th_stack s, t;
	size_t len;

	(void)self;
	th_stack_open(&s, NULL);
	len = small.len;
	th_eq(fi_getname(&s.ep->fid, small.p, &len), -FI_ETOOSMALL);
	th_eq(len, s.addrlen);
	th_buf_free(&small);
	len = sizeof(name);
	th_ok(fi_getname(&s.ep->fid, name, &len));
	th_eq(len, s.addrlen);
	th_check(!memcmp(name, s.addr, len));
	if (th_is_shrimp())
		th_eq(s.addrlen, 64);
	th_stack_open(&t, NULL);
	th_eq(t.addrlen, s.addrlen);
	th_check(memcmp(t.addr, s.addr, s.addrlen));
	th_check(fi_getpeer(s.ep, name, &len) < 0);
	th_stack_close(&t);
	th_stack_close(&s);
}

/* No two endpoints ever have the same name. */
static void names_are_unique(struct th_self *self)
{
	enum { N = 50 };
	char names[N][TH_MAX_ADDR];
	struct th_stack s;
	int i, k;

	(void)self;
	memset(names, 0, sizeof(names));
	for (i = 0; i < N; i++) {
		th_stack_open(&s, NULL);
		memcpy(names[i], s.addr, s.addrlen);
		for (k = 0; k < i; k++)
			th_check(memcmp(names[i], names[k], s.addrlen));
		th_stack_close(&s);
	}
}

static void size_left(struct th_self *self)
{
	struct th_stack s;

	(void)self;
	th_stack_open(&s, NULL);
	th_check(s.ep->ops->tx_size_left(s.ep) > 0);
	th_check(s.ep->ops->rx_size_left(s.ep) > 0);
	th_stack_close(&s);
}

/* What this endpoint type has not: a clean no. */
static void not_offered(struct th_self *self)
{
	struct fi_info *info;
	struct fid_pep *pep;
	struct fid_ep *ep;
	struct fid_stx *stx;
	struct th_stack s;

	(void)self;
	th_stack_open(&s, NULL);
	info = s.info;
	th_check(fi_passive_ep(s.fabric, info, &pep, NULL) < 0);
	th_check(fi_scalable_ep(s.domain, info, &ep, NULL) < 0);
	th_check(fi_stx_context(s.domain, info->tx_attr, &stx, NULL) < 0);
	th_check(fi_srx_context(s.domain, info->rx_attr, &ep, NULL) < 0);
	th_check(fi_tx_context(s.ep, 0, info->tx_attr, &ep, NULL) < 0);
	th_check(fi_rx_context(s.ep, 0, info->rx_attr, &ep, NULL) < 0);
	th_check(fi_connect(s.ep, s.addr, NULL, 0) < 0);
	th_check(fi_accept(s.ep, NULL, 0) < 0);
	th_check(fi_shutdown(s.ep, 0) < 0);
	th_stack_close(&s);
}

/* An info that this provider did not make, or that asks too much. */
static void bad_info(struct th_self *self)
{
	struct fid_ep *ep;
	struct th_stack s;
	struct fi_info *info;

	(void)self;
	th_stack_open(&s, NULL);
	info = fi_dupinfo(s.info);
	th_check(info);
	info->ep_attr->type = FI_EP_MSG;
	th_check(fi_endpoint(s.domain, info, &ep, NULL) < 0);
	fi_freeinfo(info);
	info = fi_dupinfo(s.info);
	th_check(info);
	info->tx_attr->inject_size = (size_t)1 << 40;
	th_check(fi_endpoint(s.domain, info, &ep, NULL) < 0);
	fi_freeinfo(info);
	th_stack_close(&s);
}

/* Opening and closing again and again leaves nothing behind. */
static void open_close_rounds(struct th_self *self)
{
	unsigned long i, n = th_rounds(200);
	struct th_stack a, b;
	uint64_t rx, v;

	(void)self;
	for (i = 0; i < n; i++) {
		th_pair_open(&a, &b, NULL);
		th_trecv(&b, &rx, 8, 1, 0, &rx);
		v = i;
		th_tsend(&a, a.peers[1], &v, 8, 1, &v);
		th_rx_ok(&b);
		th_eq(rx, i);
		th_tx_ok(&a);
		th_pair_close(&a, &b);
	}
}

/* More endpoints than fit in one word of any bitmap, all alive at once. */
static void many_endpoints(struct th_self *self)
{
	enum { N = 100 };
	struct th_stack s;
	struct fid_ep *eps[N];
	fi_addr_t addrs[N];
	char name[TH_MAX_ADDR];
	uint64_t rx[N], v;
	size_t len;
	int i;

	(void)self;
	th_stack_open(&s, NULL);
	for (i = 0; i < N; i++) {
		eps[i] = bare_ep(&s);
		th_ok(fi_ep_bind(eps[i], &s.av->fid, 0));
		th_ok(fi_ep_bind(eps[i], &s.txcq->fid, FI_TRANSMIT));
		th_ok(fi_ep_bind(eps[i], &s.rxcq->fid, FI_RECV));
		th_ok(fi_enable(eps[i]));
		len = sizeof(name);
		th_ok(fi_getname(&eps[i]->fid, name, &len));
		addrs[i] = th_insert(&s, name);
		th_ok(fi_trecv(eps[i], &rx[i], 8, NULL, FI_ADDR_UNSPEC, 1, 0,
			       &rx[i]));
	}
	for (i = 0; i < N; i++) {
		v = (uint64_t)i;
		th_post(&s, fi_tinject(eps[(i * 7) % N], &v, 8, addrs[i], 1));
	}
	for (i = 0; i < N; i++)
		th_rx_ok(&s);
	for (i = 0; i < N; i++)
		th_eq(rx[i], i);
	for (i = 0; i < N; i++)
		th_ok(fi_close(&eps[i]->fid));
	th_stack_close(&s);
}

static const struct CMUnitTest endpoint_tests[] = {
	TH_CASE(enable_needs, 1, 10),	   TH_CASE(bind_refuses, 1, 10),
	TH_CASE(not_enabled, 1, 10),	   TH_CASE(getname, 1, 10),
	TH_CASE(names_are_unique, 1, 20),  TH_CASE(size_left, 1, 10),
	TH_CASE(not_offered, 1, 10),	   TH_CASE(bad_info, 1, 10),
	TH_CASE(open_close_rounds, 1, 30), TH_CASE(many_endpoints, 1, 20),
};

TH_MAIN(endpoint_tests)
