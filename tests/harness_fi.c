/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Harness, the libfabric part: opening and closing a whole stack, and waits
 * that make progress and never hang.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <sched.h>

const char *th_provider(void)
{
	const char *name = getenv("SHRIMP_TEST_PROVIDER");

	return name && *name ? name : "shrimp";
}

bool th_is_shrimp(void)
{
	return strcmp(th_provider(), "shrimp") == 0;
}

/* ---- opening -------------------------------------------------------- */

struct fi_info *th_hints(const struct th_stack_opts *o)
{
	static const struct th_stack_opts defaults;
	struct fi_info *h = fi_allocinfo();

	th_check(h);
	if (!o)
		o = &defaults;
	h->caps = o->caps ? o->caps : FI_MSG | FI_TAGGED;
	h->ep_attr->type = FI_EP_RDM;
	h->fabric_attr->prov_name = strdup(th_provider());
	th_check(h->fabric_attr->prov_name);
	h->domain_attr->mr_mode =
		o->mr_mode ? o->mr_mode
			   : FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	h->domain_attr->av_type = o->av_type;
	h->domain_attr->data_progress = o->progress;
	h->domain_attr->threading = o->threading;
	h->tx_attr->op_flags = o->tx_op_flags;
	h->rx_attr->op_flags = o->rx_op_flags;
	return h;
}

static void info_get(struct th_stack *s, const struct th_stack_opts *o)
{
	struct fi_info *h = th_hints(o);
	int ret;

	ret = fi_getinfo(FI_VERSION(1, 17), o->node, o->service, o->flags, h,
			 &s->info);
	fi_freeinfo(h);
	if (ret == -FI_ENODATA)
		th_fail(__FILE__, __LINE__,
			"fi_getinfo: no provider '%s' (FI_PROVIDER=%s, "
			"FI_PROVIDER_PATH=%s)",
			th_provider(), getenv("FI_PROVIDER"),
			getenv("FI_PROVIDER_PATH"));
	th_ok(ret);
}

static void domain_get(struct th_stack *s, const struct th_stack_opts *o)
{
	s->domain_of = o->domain_of;
	if (o->domain_of) {
		s->fabric = o->domain_of->fabric;
		s->domain = o->domain_of->domain;
		return;
	}
	th_ok(fi_fabric(s->info->fabric_attr, &s->fabric, s));
	th_ok(fi_domain(s->fabric, s->info, &s->domain, s));
}

static void cqs_open(struct th_stack *s, const struct th_stack_opts *o)
{
	struct fi_cq_attr attr = { .size = o->cq_size,
				   .format = o->cq_format,
				   .wait_obj = o->cq_wait };

	if (attr.format == FI_CQ_FORMAT_UNSPEC)
		attr.format = FI_CQ_FORMAT_TAGGED;
	th_ok(fi_cq_open(s->domain, &attr, &s->txcq, s));
	s->rxcq = s->txcq;
	if (!o->one_cq)
		th_ok(fi_cq_open(s->domain, &attr, &s->rxcq, s));
}

static void ep_bind_all(struct th_stack *s, const struct th_stack_opts *o)
{
	th_ok(fi_ep_bind(s->ep, &s->av->fid, 0));
	if (o->one_cq && o->tx_bind == o->rx_bind) {
		th_ok(fi_ep_bind(s->ep, &s->txcq->fid,
				 FI_TRANSMIT | FI_RECV | o->tx_bind));
	} else {
		th_ok(fi_ep_bind(s->ep, &s->txcq->fid,
				 FI_TRANSMIT | o->tx_bind));
		th_ok(fi_ep_bind(s->ep, &s->rxcq->fid, FI_RECV | o->rx_bind));
	}
	if (!s->txcntr)
		return;
	th_ok(fi_ep_bind(s->ep, &s->txcntr->fid, FI_SEND));
	th_ok(fi_ep_bind(s->ep, &s->rxcntr->fid, FI_RECV));
}

static void cntrs_open(struct th_stack *s, const struct th_stack_opts *o)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP,
				     .wait_obj = o->cntr_wait };

	if (!o->cntrs)
		return;
	th_ok(fi_cntr_open(s->domain, &attr, &s->txcntr, s));
	th_ok(fi_cntr_open(s->domain, &attr, &s->rxcntr, s));
}

void(th_stack_open)(struct th_stack *s, const struct th_stack_opts *o)
{
	static const struct th_stack_opts defaults;
	struct fi_av_attr av_attr = { .type = FI_AV_MAP };

	if (!o)
		o = &defaults;
	memset(s, 0, sizeof(*s));
	info_get(s, o);
	domain_get(s, o);
	if (o->av_type)
		av_attr.type = o->av_type;
	th_ok(fi_av_open(s->domain, &av_attr, &s->av, s));
	cqs_open(s, o);
	cntrs_open(s, o);
	th_ok(fi_endpoint(s->domain, s->info, &s->ep, s));
	ep_bind_all(s, o);
	if (!o->no_enable)
		th_stack_enable(s);
}

void(th_stack_enable)(struct th_stack *s)
{
	th_ok(fi_enable(s->ep));
	s->addrlen = sizeof(s->addr);
	th_ok(fi_getname(&s->ep->fid, s->addr, &s->addrlen));
	th_check(s->addrlen > 0 && s->addrlen <= sizeof(s->addr));
}

static void close_fid(struct fid *fid, const char *what)
{
	int ret = fi_close(fid);

	if (ret)
		th_fail(__FILE__, __LINE__, "fi_close(%s): %s", what,
			fi_strerror(-ret));
}

void(th_stack_close)(struct th_stack *s)
{
	if (s->ep)
		close_fid(&s->ep->fid, "ep");
	if (s->txcntr)
		close_fid(&s->txcntr->fid, "txcntr");
	if (s->rxcntr)
		close_fid(&s->rxcntr->fid, "rxcntr");
	if (s->rxcq && s->rxcq != s->txcq)
		close_fid(&s->rxcq->fid, "rxcq");
	if (s->txcq)
		close_fid(&s->txcq->fid, "txcq");
	if (s->av)
		close_fid(&s->av->fid, "av");
	if (!s->domain_of) {
		close_fid(&s->domain->fid, "domain");
		close_fid(&s->fabric->fid, "fabric");
	}
	fi_freeinfo(s->info);
	free(s->peers);
	memset(s, 0, sizeof(*s));
}

fi_addr_t th_insert(struct th_stack *s, const void *addr)
{
	fi_addr_t a = FI_ADDR_NOTAVAIL;

	th_eq(fi_av_insert(s->av, addr, 1, &a, 0, NULL), 1);
	th_check(a != FI_ADDR_NOTAVAIL);
	return a;
}

void th_stack_connect(struct th_stack *s, struct th_self *self)
{
	char *all = calloc((size_t)self->size, s->addrlen);
	int i;

	th_check(all && self->size <= TH_MAX_PEERS);
	s->peers = calloc((size_t)self->size, sizeof(*s->peers));
	th_check(s->peers);
	th_gather(self, "addresses", s->addr, all, s->addrlen);
	for (i = 0; i < self->size; i++)
		s->peers[i] = th_insert(s, all + (size_t)i * s->addrlen);
	free(all);
}

static void pair_insert(struct th_stack *s, const struct th_stack *a,
			const struct th_stack *b)
{
	s->peers = calloc(2, sizeof(*s->peers));
	th_check(s->peers);
	s->peers[0] = th_insert(s, a->addr);
	s->peers[1] = th_insert(s, b->addr);
}

void(th_pair_open)(struct th_stack *a, struct th_stack *b,
		   const struct th_stack_opts *o)
{
	th_stack_open(a, o);
	th_stack_open(b, o);
	pair_insert(a, a, b);
	pair_insert(b, a, b);
	a->buddy = b;
	b->buddy = a;
}

void(th_pair_close)(struct th_stack *a, struct th_stack *b)
{
	th_stack_close(a);
	th_stack_close(b);
}

/* ---- progress and waits ---------------------------------------------- */

static void poke(struct th_stack *s)
{
	fi_cq_read(s->txcq, NULL, 0);
	if (s->rxcq != s->txcq)
		fi_cq_read(s->rxcq, NULL, 0);
}

void th_progress(struct th_stack *s)
{
	struct th_stack *b;

	poke(s);
	for (b = s->buddy; b && b != s; b = b->buddy)
		poke(b);
}

#if defined(__SANITIZE_THREAD__)
void th_settle(struct th_stack *s)
{
	struct th_stack *b = s;

	/* takes the lock under which the agent works, and does nothing else */
	do {
		(void)fi_cancel(&b->ep->fid, &b->ep);
		b = b->buddy;
	} while (b && b != s);
}
#else
void th_settle(struct th_stack *s)
{
	(void)s;
}
#endif

/* Progress between two looks at something; gives way now and then. */
static void idle(struct th_stack *s, unsigned int *turns)
{
	th_progress(s);
	if (++*turns % 64 == 0)
		sched_yield();
}

static int cq_take(struct fid_cq *cq, void *entry, fi_addr_t *src,
		   struct fi_cq_err_entry *err)
{
	ssize_t n = src ? fi_cq_readfrom(cq, entry, 1, src)
			: fi_cq_read(cq, entry, 1);

	if (n == -FI_EAGAIN)
		return 0;
	if (n == 1)
		return 1;
	th_eq(n, -FI_EAVAIL);
	memset(err, 0, sizeof(*err));
	th_eq(fi_cq_readerr(cq, err, 0), 1);
	return -FI_EAVAIL;
}

static int cq_next_from(struct th_stack *s, struct fid_cq *cq, void *entry,
			fi_addr_t *src, struct fi_cq_err_entry *err)
{
	struct th_deadline dl = th_patience();
	unsigned int turns = 0;
	int ret;

	for (;;) {
		ret = cq_take(cq, entry, src, err);
		if (ret)
			return ret;
		idle(s, &turns);
		if (turns % 1024 == 0 && th_expired(&dl))
			th_fail(__FILE__, __LINE__,
				"no completion in the %s CQ",
				cq == s->txcq ? "transmit" : "receive");
	}
}

int(th_cq_next)(struct th_stack *s, struct fid_cq *cq, void *entry,
		struct fi_cq_err_entry *err)
{
	return cq_next_from(s, cq, entry, NULL, err);
}

static struct fi_cq_tagged_entry cq_ok(struct th_stack *s, struct fid_cq *cq,
				       fi_addr_t *src)
{
	struct fi_cq_tagged_entry e = { 0 };
	struct fi_cq_err_entry err;

	if (cq_next_from(s, cq, &e, src, &err) != 1)
		th_fail(__FILE__, __LINE__,
			"error entry %d (%s), flags %#" PRIx64
			", in the %s CQ; wanted a success",
			err.err, fi_strerror(err.err), err.flags,
			cq == s->txcq ? "transmit" : "receive");
	return e;
}

static struct fi_cq_err_entry cq_err(struct th_stack *s, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;

	if (cq_next_from(s, cq, &e, NULL, &err) == 1)
		th_fail(__FILE__, __LINE__,
			"success (flags %#" PRIx64 ", len %zu) in the %s CQ; "
			"wanted an error",
			e.flags, e.len, cq == s->txcq ? "transmit" : "receive");
	return err;
}

struct fi_cq_tagged_entry(th_tx_ok)(struct th_stack *s)
{
	return cq_ok(s, s->txcq, NULL);
}

struct fi_cq_tagged_entry(th_rx_ok)(struct th_stack *s)
{
	return cq_ok(s, s->rxcq, NULL);
}

struct fi_cq_tagged_entry(th_rx_from)(struct th_stack *s, fi_addr_t *src)
{
	return cq_ok(s, s->rxcq, src);
}

struct fi_cq_err_entry(th_tx_err)(struct th_stack *s)
{
	return cq_err(s, s->txcq);
}

struct fi_cq_err_entry(th_rx_err)(struct th_stack *s)
{
	return cq_err(s, s->rxcq);
}

static void quiet_one(struct fid_cq *cq, const char *which)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	int ret = cq_take(cq, &e, NULL, &err);

	if (ret == 1)
		th_fail(__FILE__, __LINE__, "unwanted entry in the %s CQ",
			which);
	if (ret)
		th_fail(__FILE__, __LINE__,
			"unwanted error %d (%s) in the %s CQ", err.err,
			fi_strerror(err.err), which);
}

void(th_quiet)(struct th_stack *s, unsigned int ms)
{
	struct th_deadline dl = th_deadline_ms(ms);

	do {
		quiet_one(s->txcq, "transmit");
		quiet_one(s->rxcq, "receive");
		th_progress(s);
		sched_yield();
	} while (!th_expired(&dl));
}

void(th_cntr_reach)(struct th_stack *s, struct fid_cntr *cntr, uint64_t value)
{
	struct th_deadline dl = th_patience();
	unsigned int turns = 0;

	while (fi_cntr_read(cntr) < value) {
		idle(s, &turns);
		if (turns % 1024 == 0 && th_expired(&dl))
			th_fail(__FILE__, __LINE__,
				"counter stays at %" PRIu64 ", wanted %" PRIu64,
				fi_cntr_read(cntr), value);
	}
}

/* ---- calls that may be repeated -------------------------------------- */

bool(th_again)(struct th_stack *s, ssize_t ret, const char *call,
	       const struct th_deadline *dl)
{
	if (ret != -FI_EAGAIN || th_is_shrimp()) {
		th_ok_at(__FILE__, __LINE__, call, ret);
		return false;
	}
	if (th_expired(dl))
		th_fail(__FILE__, __LINE__, "%s: EAGAIN for too long", call);
	th_progress(s);
	sched_yield();
	return true;
}

void(th_send)(struct th_stack *s, fi_addr_t to, const void *buf, size_t len,
	      void *ctx)
{
	th_post(s, fi_send(s->ep, buf, len, NULL, to, ctx));
}

void(th_tsend)(struct th_stack *s, fi_addr_t to, const void *buf, size_t len,
	       uint64_t tag, void *ctx)
{
	th_post(s, fi_tsend(s->ep, buf, len, NULL, to, tag, ctx));
}

void(th_recv)(struct th_stack *s, void *buf, size_t len, void *ctx)
{
	th_post(s, fi_recv(s->ep, buf, len, NULL, FI_ADDR_UNSPEC, ctx));
}

void(th_trecv)(struct th_stack *s, void *buf, size_t len, uint64_t tag,
	       uint64_t ignore, void *ctx)
{
	th_post(s, fi_trecv(s->ep, buf, len, NULL, FI_ADDR_UNSPEC, tag, ignore,
			    ctx));
}
