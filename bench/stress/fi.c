/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * libfabric, as far as shrimp-stress uses it.
 */
#include "bench/stress/fi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *stress_code(long code)
{
	return fi_strerror((int)(code < 0 ? -code : code));
}

/* ---- opening ---- */

/** What is asked for; given up bit by bit, the last first. */
struct wish {
	bool rma;
	bool delivery;
	bool threads;
	int offer;
};

static struct fi_info *hints_make(const struct stress *s, const struct wish *w)
{
	struct fi_info *h = fi_allocinfo();

	if (!h)
		return NULL;
	h->caps = FI_MSG | FI_TAGGED | (w->rma ? FI_RMA : 0);
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->ep_attr->type = FI_EP_RDM;
	h->domain_attr->mr_mode = w->offer;
	h->domain_attr->threading =
		w->threads ? FI_THREAD_SAFE : FI_THREAD_UNSPEC;
	if (w->delivery)
		h->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	h->fabric_attr->prov_name = strdup(s->o->provider);
	if (h->fabric_attr->prov_name)
		return h;
	fi_freeinfo(h);
	return NULL;
}

static int wish_try(struct stress *s, struct stress_side *e,
		    const struct wish *w)
{
	struct fi_info *h = hints_make(s, w);
	int ret;

	if (!h)
		return -FI_ENOMEM;
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &e->info);
	fi_freeinfo(h);
	if (ret) {
		e->info = NULL;
		return ret;
	}
	e->rma = w->rma;
	e->delivery = w->delivery &&
		      e->info->tx_attr->op_flags & FI_DELIVERY_COMPLETE;
	e->threads = w->threads;
	return 0;
}

/* The best that the provider has. */
static int info_find(struct stress *s, struct stress_side *e)
{
	const char *path = stress_setting("FI_PROVIDER_PATH");
	int ret = -FI_ENODATA;

	for (unsigned int lack = 0; lack < 16; lack++) {
		struct wish w = {
			.offer = lack & 1 ? STRESS_OFFER : s->offer,
			.threads = !(lack & 2),
			.delivery = !(lack & 4),
			.rma = !(lack & 8),
		};

		ret = wish_try(s, e, &w);
		if (!ret)
			return 0;
	}
	snprintf(s->text, sizeof(s->text),
		 "no provider %s for tagged messages between RDM endpoints "
		 "(FI_PROVIDER_PATH is %s): %s",
		 s->o->provider, *path ? path : "not set", stress_code(ret));
	return ret;
}

/* Notes which call failed. */
static int call_note(struct stress *s, const char *call, int ret)
{
	if (ret)
		snprintf(s->text, sizeof(s->text), "%s: %s", call,
			 stress_code(ret));
	return ret;
}

static int domain_open(struct stress *s, struct stress_side *e)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av = { .count = 2 * STRESS_RANKS };
	int ret;

	ret = call_note(s, "fi_fabric",
			fi_fabric(e->info->fabric_attr, &e->fabric, NULL));
	if (!ret)
		ret = call_note(
			s, "fi_domain",
			fi_domain(e->fabric, e->info, &e->domain, NULL));
	if (ret)
		return ret;
	av.type = e->info->domain_attr->av_type;
	if (av.type == FI_AV_UNSPEC)
		av.type = FI_AV_MAP;
	ret = call_note(s, "fi_av_open",
			fi_av_open(e->domain, &av, &e->av, NULL));
	return ret ? ret
		   : call_note(s, "fi_cq_open",
			       fi_cq_open(e->domain, &cq, &e->cq, NULL));
}

static int endpoint_open(struct stress *s, struct stress_side *e)
{
	int ret = call_note(s, "fi_endpoint",
			    fi_endpoint(e->domain, e->info, &e->ep, NULL));

	if (!ret)
		ret = call_note(s, "fi_ep_bind",
				fi_ep_bind(e->ep, &e->av->fid, 0));
	if (!ret)
		ret = call_note(
			s, "fi_ep_bind",
			fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
	if (!ret)
		ret = call_note(s, "fi_enable", fi_enable(e->ep));
	if (ret)
		return ret;
	e->name_len = sizeof(e->name);
	return call_note(s, "fi_getname",
			 fi_getname(&e->ep->fid, e->name, &e->name_len));
}

/* The calls that only shrimp has. */
static void ops_find(struct stress_side *e)
{
	void *ops;

	if (!fi_open_ops(&e->domain->fid, FI_SHRIMP_OPS_CACHE, 0, &ops, NULL))
		e->cache = ops;
	if (!fi_open_ops(&e->domain->fid, FI_SHRIMP_OPS_MR, 0, &ops, NULL))
		e->mrs = ops;
}

int stress_side_open(struct stress *s, struct stress_side *e)
{
	int ret;

	memset(e, 0, sizeof(*e));
	ret = info_find(s, e);
	if (!ret)
		ret = domain_open(s, e);
	if (!ret)
		ret = endpoint_open(s, e);
	if (ret) {
		char why[STRESS_TEXT];

		memcpy(why, s->text, sizeof(why));
		stress_side_close(s, e);
		memcpy(s->text, why, sizeof(why));
		return ret;
	}
	if (stress_is_shrimp(s))
		ops_find(e);
	return 0;
}

static int fid_close(struct stress *s, struct fid *fid, const char *what,
		     int before)
{
	int ret = fi_close(fid);

	return before ? before : call_note(s, what, ret);
}

int stress_side_close(struct stress *s, struct stress_side *e)
{
	int ret = 0;

	if (e->ep)
		ret = fid_close(s, &e->ep->fid, "fi_close of an endpoint", 0);
	if (e->cq)
		ret = fid_close(s, &e->cq->fid, "fi_close of a CQ", ret);
	if (e->av)
		ret = fid_close(s, &e->av->fid, "fi_close of an AV", ret);
	if (e->domain)
		ret = fid_close(s, &e->domain->fid, "fi_close of a domain",
				ret);
	if (e->fabric)
		ret = fid_close(s, &e->fabric->fid, "fi_close of a fabric",
				ret);
	if (e->info)
		fi_freeinfo(e->info);
	memset(e, 0, sizeof(*e));
	return ret;
}

int stress_side_meet(struct stress_side *e, const char *name, fi_addr_t *addr)
{
	int ret = fi_av_insert(e->av, name, 1, addr, 0, NULL);

	if (ret == 1)
		return 0;
	return ret < 0 ? ret : -FI_EADDRNOTAVAIL;
}

/* ---- completions ---- */

static void req_end(void *context, int err, uint64_t len)
{
	struct stress_req *req = context; /* its first member */

	if (!req)
		return;
	req->done = true;
	req->err = err;
	req->len = len;
}

static int error_take(struct stress_side *e)
{
	struct fi_cq_err_entry err = { .err = 0 };
	ssize_t n = fi_cq_readerr(e->cq, &err, 0);

	if (n == 1)
		req_end(err.op_context, err.err ? err.err : FI_EOTHER, err.len);
	return n == 1 || n == -FI_EAGAIN ? 0 : (int)n;
}

int stress_side_poll(struct stress_side *e)
{
	struct fi_cq_tagged_entry entry[16];
	ssize_t n = fi_cq_read(e->cq, entry, 16);

	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL)
		return error_take(e);
	for (ssize_t i = 0; i < n; i++)
		req_end(entry[i].op_context, 0, entry[i].len);
	return n < 0 ? (int)n : 0;
}

struct stress_req *stress_req_get(struct stress_side *e)
{
	for (int i = 0; i < STRESS_REQUESTS; i++) {
		struct stress_req *req = &e->req[i];

		if (req->used)
			continue;
		memset(req, 0, sizeof(*req));
		req->used = true;
		return req;
	}
	return NULL;
}

int stress_req_wait(struct stress *s, struct stress_req *req)
{
	uint64_t deadline = stress_deadline(s, STRESS_WAIT_S);
	unsigned int polls = 0;

	while (!req->done) {
		stress_relax(s, &polls);
		if (!req->done && stress_late(deadline))
			return -ETIMEDOUT;
	}
	req->used = false;
	return req->err;
}

/* ---- operations ---- */

static const char *const verb_names[] = {
	[STRESS_READ] = "fi_read",	 [STRESS_WRITE] = "fi_write",
	[STRESS_SEND] = "fi_tsend",	 [STRESS_RECV] = "fi_trecv",
	[STRESS_INJECTS] = "fi_tinject",
};

static ssize_t call(const struct stress_op *o, enum stress_verb verb,
		    struct stress_req *req)
{
	struct fid_ep *ep = o->side->ep;

	switch (verb) {
	case STRESS_READ:
		return fi_read(ep, o->p, o->len, o->desc, o->peer, o->addr,
			       o->key, req);
	case STRESS_WRITE:
		return fi_write(ep, o->p, o->len, o->desc, o->peer, o->addr,
				o->key, req);
	case STRESS_SEND:
		return fi_tsend(ep, o->p, o->len, o->desc, o->peer, o->match,
				req);
	case STRESS_RECV:
		return fi_trecv(ep, o->p, o->len, o->desc, o->peer, o->match, 0,
				req);
	case STRESS_INJECTS:
		req->done = true;
		return fi_tinject(ep, o->p, o->len, o->peer, o->match);
	}
	return -FI_EINVAL;
}

struct stress_req *stress_post(struct stress *s, const struct stress_op *op,
			       enum stress_verb verb)
{
	uint64_t deadline = stress_deadline(s, STRESS_WAIT_S);
	struct stress_req *req = stress_req_get(op->side);
	unsigned int polls = 0;
	ssize_t ret;

	if (!req) {
		stress_wrong(s, "too many operations did not complete");
		return NULL;
	}
	while ((ret = call(op, verb, req)) == -FI_EAGAIN) {
		stress_relax(s, &polls);
		if (stress_late(deadline))
			break;
	}
	if (!ret)
		return req;
	req->used = false;
	stress_wrong(s, "%s of %zu bytes: %s", verb_names[verb], op->len,
		     stress_code(ret));
	return NULL;
}

int stress_do(struct stress *s, const struct stress_op *op,
	      enum stress_verb verb)
{
	struct stress_req *req = stress_post(s, op, verb);
	int ret;

	if (!req)
		return STRESS_FAILED;
	ret = stress_req_wait(s, req);
	if (!ret)
		return 0;
	if (ret == -ETIMEDOUT)
		return stress_wrong(s, "%s of %zu bytes did not complete",
				    verb_names[verb], op->len);
	return stress_wrong(s, "%s of %zu bytes ended in an error: %s",
			    verb_names[verb], op->len, stress_code(ret));
}
