/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Receives as clients post them: plain, multi, peek, claim, discard, cancel.
 *
 * Exclusion: the endpoint's lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_tagged.h>

#include "lib/av.h"
#include "lib/cntr.h"
#include "lib/domain.h"
#include "lib/peer.h"
#include "lib/rx.h"
#include "shm/copy.h"
#include "shm/proc.h"

/* The peer id that @src names. -FI_EINVAL: nobody. */
static int source_id(struct shrimp_ep *ep, fi_addr_t src, uint32_t *id)
{
	struct shrimp_peer *peer;

	*id = RNIC_SRC_ANY;
	if (!ep->directed || src == FI_ADDR_UNSPEC)
		return 0;
	peer = shrimp_av_peer(ep->av, src);
	if (!peer)
		return -FI_EINVAL;
	*id = shrimp_peer_real(peer)->id;
	return 0;
}

/* None, or several buffers. 0 or -FI_ENOMEM. */
static int copy_iov(struct shrimp_recv *r, const struct shrimp_recv_req *q)
{
	struct iovec *iov;

	r->len = rnic_iov_len(q->iov, q->niov);
	if (!q->niov)
		return 0;
	iov = malloc(q->niov * sizeof(*iov));
	if (!iov)
		return -FI_ENOMEM;
	memcpy(iov, q->iov, q->niov * sizeof(*iov));
	r->iov = iov;
	return 0;
}

/* A receive object for @q; not posted. NULL: no memory. */
static struct shrimp_recv *recv_new(struct shrimp_ep *ep,
				    const struct shrimp_recv_req *q)
{
	struct shrimp_recv *r = shrimp_slab_get(&ep->recvs);

	if (!r)
		return NULL;
	r->iov = &r->one;
	r->niov = q->niov;
	if (q->niov == 1) {
		/* one by one, as they were written: see RNIC_HOT */
		r->one.iov_base = q->iov->iov_base;
		r->one.iov_len = r->len = q->iov->iov_len;
	} else if (copy_iov(r, q)) {
		shrimp_slab_put(&ep->recvs, r);
		return NULL;
	}
	r->context = q->context;
	r->quiet = !shrimp_rx_wants_entry(ep, q->flags);
	r->tagged = q->tagged;
	r->multi = q->flags & FI_MULTI_RECV;
	r->ended = SHRIMP_RECV_OPEN;
	r->filling = 0;
	r->used = 0;
	r->m.tag = q->tag;
	r->m.ignore = q->ignore;
	r->m.posted = false;
	return r;
}

/* ---- matching what has already come ---- */

/* Gives @r the oldest waiting message for it. False: there is none. */
static bool match_waiting(struct shrimp_ep *ep, struct shrimp_recv *r)
{
	struct rnic_match *m = shrimp_rx_match(ep, r->tagged);
	struct rnic_match_msg *msg =
		rnic_match_find_msg(m, r->m.src, r->m.tag, r->m.ignore);

	if (!msg)
		return false;
	rnic_match_dequeue(m, msg);
	shrimp_rx_deliver(ep, (struct shrimp_umsg *)msg, r);
	return true;
}

/*
 * A multi-receive takes what waits. True: it is used up, and the message that
 * did it may have freed it.
 */
static bool fill_multi(struct shrimp_ep *ep, struct shrimp_recv *r)
{
	struct rnic_match *m = shrimp_rx_match(ep, r->tagged);

	for (;;) {
		struct rnic_match_msg *msg =
			rnic_match_find_msg(m, r->m.src, r->m.tag, r->m.ignore);
		struct shrimp_umsg *u = (struct shrimp_umsg *)msg;
		bool last;

		if (!msg)
			return false;
		last = shrimp_rx_uses_up(ep, r, u->total);
		rnic_match_dequeue(m, msg);
		shrimp_rx_deliver(ep, u, r);
		if (last)
			return true;
	}
}

/* What has already come for @r. True: there is nothing to post. */
static inline bool take_waiting(struct shrimp_ep *ep, struct shrimp_recv *r)
{
	return r->multi ? fill_multi(ep, r) : match_waiting(ep, r);
}

/* Stands for a process that was dead when it was first named. */
static struct rnic_proc gone = { .dead = { 1 } };

/* Room for peer @id in the table of watched sources. */
static int watch_grow(struct shrimp_ep *ep, uint32_t id)
{
	size_t n = ep->nwatch ? ep->nwatch : 64;
	struct rnic_proc **t;

	if (id < ep->nwatch)
		return 0;
	while (n <= id)
		n *= 2;
	t = realloc(ep->watch, n * sizeof(*t));
	if (!t)
		return -FI_ENOMEM;
	memset(t + ep->nwatch, 0, (n - ep->nwatch) * sizeof(*t));
	ep->watch = t;
	ep->nwatch = n;
	return 0;
}

/*
 * Watches the process of peer @id, which a receive names: also one that was
 * never contacted must not be waited for when it is dead. A pid of another
 * namespace means nothing here; such a peer is watched once attached.
 */
static struct rnic_proc *watch(struct shrimp_ep *ep, uint32_t id)
{
	const struct shrimp_peer *peer =
		shrimp_peer_by_id(&ep->domain->peers, id);
	const struct rnic_addr *a = &peer->addr;
	int ret;

	if (a->kind != RNIC_ADDR_ENDPOINT || a->ns != ep->addr.ns ||
	    watch_grow(ep, id))
		return NULL;
	ret = rnic_proc_get(a->pid, a->identity, &ep->watch[id]);
	if (ret == -ESRCH)
		ep->watch[id] = &gone;
	return ep->watch[id];
}

/* The process that @src names is dead: nothing more will come from it. */
static bool source_dead(struct shrimp_ep *ep, uint32_t src)
{
	struct rnic_proc *p;

	if (src == RNIC_SRC_ANY)
		return false;
	p = src < ep->nwatch ? ep->watch[src] : NULL;
	if (!p)
		p = watch(ep, src);
	return p && rnic_proc_dead(p);
}

void shrimp_rx_failed(struct shrimp_ep *ep, const struct shrimp_recv *r)
{
	int err =
		r->ended == SHRIMP_RECV_CANCELED ? FI_ECANCELED : FI_ECONNRESET;
	struct shrimp_comp_err e = {
		.c = { .context = r->context,
		       .tag = r->m.tag,
		       .flags = FI_RECV | (r->tagged ? FI_TAGGED : FI_MSG) |
				(r->multi ? FI_MULTI_RECV : 0),
		       .src = FI_ADDR_NOTAVAIL },
		.err = err,
		.prov_errno = err,
	};

	if (ep->rx_cntr)
		shrimp_cntr_add_err(ep->rx_cntr, 1);
	if (ep->rx_cq)
		shrimp_cq_write_err(ep->rx_cq, &e);
}

/* @r takes no more messages: its entry says that its buffer is free again. */
static void fail_recv(struct shrimp_ep *ep, struct shrimp_recv *r,
		      enum shrimp_recv_end why)
{
	if (r->m.posted)
		rnic_match_unpost(shrimp_rx_match(ep, r->tagged), &r->m);
	r->ended = (uint8_t)why;
	/* else messages are still written to it: the last one does this */
	if (r->filling)
		return;
	shrimp_rx_failed(ep, r);
	shrimp_recv_free(ep, r);
}

/*
 * Receives from the same source go the short way from now on. Not those that
 * name a service: it may move to another endpoint, and the AV stays the same.
 */
static void remember(struct shrimp_ep *ep, fi_addr_t src, uint32_t gen,
		     uint32_t id)
{
	const struct shrimp_peer *peer = shrimp_av_peer(ep->av, src);
	bool watched = id < ep->nwatch && ep->watch[id];

	ep->src = src;
	ep->src_gen = gen;
	ep->src_id = watched && peer && peer->id == id ? id : RNIC_SRC_ANY;
}

/* Nothing for @r has come yet. */
static void post(struct shrimp_ep *ep, struct shrimp_recv *r)
{
	if (!source_dead(ep, r->m.src)) {
		rnic_match_post(shrimp_rx_match(ep, r->tagged), &r->m);
		return;
	}
	/* what it sent before it died may still lie in its lane */
	shrimp_rx_scan(ep);
	if (!take_waiting(ep, r))
		fail_recv(ep, r, SHRIMP_RECV_RESET);
}

/* ---- peek, claim, discard ---- */

/* Writes the result of a peek at @u, or that there was none. */
static void peek_result(struct shrimp_ep *ep, const struct shrimp_recv_req *q,
			const struct shrimp_umsg *u)
{
	struct shrimp_comp_err e = {
		.c = { .context = q->context,
		       .flags = FI_RECV | FI_TAGGED,
		       .tag = q->tag,
		       .src = FI_ADDR_NOTAVAIL },
		.err = FI_ENOMSG,
		.prov_errno = FI_ENOMSG,
	};

	if (!ep->rx_cq)
		return;
	if (!u) {
		shrimp_cq_write_err(ep->rx_cq, &e);
		return;
	}
	if (!shrimp_rx_wants_entry(ep, q->flags))
		return;
	e.c.len = u->total;
	e.c.tag = u->m.tag;
	e.c.data = u->data;
	e.c.src = shrimp_av_addr_of(ep->av, u->m.src);
	if (u->flags & RNIC_DESC_CQ_DATA)
		e.c.flags |= FI_REMOTE_CQ_DATA;
	shrimp_cq_write(ep->rx_cq, ep->sink, &e.c);
}

/* A peek may bring a buffer: what is at hand is copied, cut to its size. */
static void peek_copy(const struct shrimp_recv_req *q,
		      const struct shrimp_umsg *u)
{
	if (u->kind == SHRIMP_UMSG_WHOLE && q->niov)
		rnic_iov_scatter(q->iov, q->niov, 0, u->buf, u->total);
}

static ssize_t peek(struct shrimp_ep *ep, const struct shrimp_recv_req *q)
{
	struct rnic_match *m = &ep->tagged;
	struct rnic_match_msg *msg;
	struct shrimp_umsg *u;
	uint32_t src;
	int ret = source_id(ep, q->src, &src);

	if (ret)
		return ret;
	shrimp_rx_progress(ep, NULL);
	msg = rnic_match_find_msg(m, src, q->tag, q->ignore);
	u = (struct shrimp_umsg *)msg;
	if (!u) {
		peek_result(ep, q, NULL);
		return 0;
	}
	peek_copy(q, u);
	peek_result(ep, q, u);
	if (q->flags & FI_DISCARD) {
		rnic_match_dequeue(m, msg);
		shrimp_rx_discard(ep, u);
	} else if (q->flags & FI_CLAIM) {
		rnic_match_dequeue(m, msg);
		u->claimer = q->context;
		cds_list_add_tail(&u->claim, &ep->claimed);
	}
	return 0;
}

/* FI_CLAIM without FI_PEEK: the message that this context claimed. */
static ssize_t claim(struct shrimp_ep *ep, const struct shrimp_recv_req *q)
{
	struct shrimp_umsg *u, *found = NULL;
	struct shrimp_recv *r;

	cds_list_for_each_entry (u, &ep->claimed, claim)
		if (u->claimer == q->context) {
			found = u;
			break;
		}
	if (!found)
		return -FI_ENOMSG;
	if (q->flags & FI_DISCARD) {
		cds_list_del_init(&found->claim);
		peek_result(ep, q, found);
		shrimp_rx_discard(ep, found);
		return 0;
	}
	r = recv_new(ep, q);
	if (!r)
		return -FI_ENOMEM;
	r->m.src = found->m.src;
	cds_list_del_init(&found->claim);
	shrimp_rx_deliver(ep, found, r);
	return 0;
}

ssize_t shrimp_rx_recv(struct shrimp_ep *ep, const struct shrimp_recv_req *q)
{
	/* relaxed: an address that changes meanwhile means old or new */
	uint32_t src, gen = rnic_load32_relaxed(&ep->av->gen);
	struct shrimp_recv *r;
	int ret;

	if (q->tagged && q->flags & FI_PEEK)
		return peek(ep, q);
	if (q->tagged && q->flags & FI_CLAIM)
		return claim(ep, q);
	ret = source_id(ep, q->src, &src);
	if (ret)
		return ret;
	r = recv_new(ep, q);
	if (!r)
		return -FI_ENOMEM;
	r->m.src = src;
	if (!take_waiting(ep, r))
		post(ep, r);
	if (src != RNIC_SRC_ANY)
		remember(ep, q->src, gen, src);
	return 0;
}

/* ---- cancel and failure ---- */

/*
 * Looks from both ends at once: clients cancel in the order of posting, or
 * in reverse, and both are quick.
 */
static struct shrimp_recv *find_context(struct rnic_match *m, void *context)
{
	struct rnic_match_recv *a = rnic_match_first_recv(m);
	struct rnic_match_recv *b = rnic_match_last_recv(m);

	while (a && b) {
		if (((struct shrimp_recv *)a)->context == context)
			return (struct shrimp_recv *)a;
		if (((struct shrimp_recv *)b)->context == context)
			return (struct shrimp_recv *)b;
		if (a == b || rnic_match_next_recv(m, a) == b)
			return NULL;
		a = rnic_match_next_recv(m, a);
		b = rnic_match_prev_recv(m, b);
	}
	return NULL;
}

int shrimp_rx_cancel(struct shrimp_ep *ep, void *context)
{
	struct shrimp_recv *r = find_context(&ep->tagged, context);

	if (!r)
		r = find_context(&ep->msg, context);
	if (!r)
		return -FI_ENOENT;
	fail_recv(ep, r, SHRIMP_RECV_CANCELED);
	return 0;
}

static void fail_source_in(struct shrimp_ep *ep, struct rnic_match *m,
			   uint32_t id)
{
	struct rnic_match_recv *r = rnic_match_first_recv(m);

	while (r) {
		struct rnic_match_recv *next = rnic_match_next_recv(m, r);

		if (r->src == id)
			fail_recv(ep, (struct shrimp_recv *)r,
				  SHRIMP_RECV_RESET);
		r = next;
	}
}

void shrimp_rx_reap(struct shrimp_ep *ep)
{
	for (uint32_t id = 0; id < ep->nwatch; id++) {
		if (!ep->watch[id] || !rnic_proc_dead(ep->watch[id]))
			continue;
		fail_source_in(ep, &ep->tagged, id);
		fail_source_in(ep, &ep->msg, id);
	}
}

void shrimp_rx_rename(struct shrimp_ep *ep, uint32_t from, uint32_t to)
{
	ep->src_id = RNIC_SRC_ANY;
	rnic_match_rename(&ep->tagged, from, to);
	rnic_match_rename(&ep->msg, from, to);
}

static void drop_in(struct shrimp_ep *ep, struct rnic_match *m)
{
	struct rnic_match_recv *r;
	struct rnic_match_msg *msg;

	while ((r = rnic_match_first_recv(m))) {
		rnic_match_unpost(m, r);
		((struct shrimp_recv *)r)->ended = SHRIMP_RECV_USED_UP;
		if (!((struct shrimp_recv *)r)->filling)
			shrimp_recv_free(ep, (struct shrimp_recv *)r);
	}
	while ((msg = rnic_match_first_msg(m))) {
		struct shrimp_umsg *u = (struct shrimp_umsg *)msg;

		rnic_match_dequeue(m, msg);
		if (u->in)
			u->in->u = NULL;
		shrimp_umsg_free(ep, u);
	}
}

void shrimp_rx_drop(struct shrimp_ep *ep)
{
	struct shrimp_umsg *u, *next;

	for (size_t i = 0; i < ep->nwatch; i++)
		if (ep->watch[i] != &gone)
			rnic_proc_put(ep->watch[i]);
	free(ep->watch);
	ep->src_id = RNIC_SRC_ANY;
	ep->watch = NULL;
	ep->nwatch = 0;

	drop_in(ep, &ep->tagged);
	drop_in(ep, &ep->msg);
	cds_list_for_each_entry_safe (u, next, &ep->claimed, claim) {
		if (u->in)
			u->in->u = NULL;
		shrimp_umsg_free(ep, u);
	}
}
