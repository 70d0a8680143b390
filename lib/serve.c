/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Executing one-sided operations for peers that cannot do them, and being told
 * of those that peers did.
 *
 * Exclusion: the endpoint's lock, held by whoever drains its lanes: the
 * application's call or the agent. Nothing in a request is trusted: it was
 * copied, every field is bounded before use (contract L3). Waits: page faults.
 */
#include <errno.h>

#include "lib/cntr.h"
#include "lib/domain.h"
#include "lib/mr.h"
#include "lib/odp.h"
#include "lib/rma.h"
#include "lib/rx.h"
#include "shm/breakage.h"
#include "shm/log.h"

/* ---- executing ---- */

static enum rnic_aop_kind kind_of(const struct rnic_desc_ask *q)
{
	switch (q->kind) {
	case RNIC_ASK_ATOMIC:
		return RNIC_AOP_BASE;
	case RNIC_ASK_FETCH:
		return RNIC_AOP_FETCH;
	default:
		return RNIC_AOP_COMPARE;
	}
}

static bool page_makes_sense(const struct rnic_desc_ask *q)
{
	return q->len <= RNIC_ASK_PAGES &&
	       !(q->op & ~(RNIC_REMOTE_READ | RNIC_REMOTE_WRITE));
}

static bool makes_sense(const struct rnic_desc_ask *q, size_t room)
{
	if (q->kind >= RNIC_ASK_KINDS || !q->len)
		return false;
	if (q->kind == RNIC_ASK_PAGE)
		return page_makes_sense(q);
	if (shrimp_part_room(q) > room && !RNIC_BROKEN(ask_len))
		return false;
	if (q->kind < RNIC_ASK_ATOMIC)
		return true;
	return q->type < RNIC_AOP_TYPES && q->op < RNIC_AOP_OPS &&
	       rnic_aop_valid(q->type, q->op, kind_of(q)) &&
	       !(q->len % rnic_aop_size(q->type));
}

/* What is left of an atomic @q after @off bytes, operands at @mem. */
static int serve_atomic(struct shrimp_ep *ep, struct shrimp_tx_peer *own,
			const struct shrimp_part *p, struct rnic_access *a,
			size_t off, size_t *done)
{
	const struct rnic_desc_ask *q = &p->ask;
	struct rnic_exec_atomic t = { .type = q->type, .op = q->op };

	if (q->op != RNIC_AOP_READ)
		t.operand = p->at.mem + off;
	if (q->kind == RNIC_ASK_COMPARE)
		t.compare = p->at.mem + q->len + off;
	if (q->kind != RNIC_ASK_ATOMIC)
		t.result = p->at.mem + off;
	a->atomic = true;
	a->need = rnic_exec_rights(t.result != NULL);
	return rnic_exec_atomic(ep->ctx, own->reach, a, &t, done);
}

/* What is left of @p after *@done bytes, which rises. */
static int execute(struct shrimp_ep *ep, struct shrimp_tx_peer *own,
		   const struct shrimp_part *p, struct rnic_access *a,
		   size_t *done)
{
	struct rnic_exec_at at = p->at;
	size_t off = *done, n = 0;
	int ret;

	a->addr = p->ask.addr + off;
	a->len = p->ask.len - off;
	at.mem += off;
	at.off += off;
	if (p->ask.kind < RNIC_ASK_ATOMIC)
		ret = rnic_exec_move(ep->ctx, own->reach, a, &at, &n);
	else
		ret = serve_atomic(ep, own, p, a, off, &n);
	*done += n;
	a->addr = p->ask.addr;
	a->len = p->ask.len;
	return ret;
}

/* Makes present what @a has not found, *@done bytes into it. */
static int page_in(struct shrimp_ep *ep, const struct rnic_access *a,
		   size_t done)
{
	const struct shrimp_page g = {
		.key = a->key,
		.addr = a->addr + done,
		.len = a->len - done,
		.rights = rnic_access_rights(a),
	};

	return shrimp_odp_page(ep->domain, &g);
}

/* A peer's request. */
static int serve_page(struct shrimp_ep *ep, const struct shrimp_part *p,
		      size_t *done)
{
	const struct shrimp_page g = { .key = p->key,
				       .addr = p->ask.addr,
				       .len = p->ask.len,
				       .rights = p->ask.op };
	int ret = shrimp_odp_page(ep->domain, &g);

	if (ret == -EBUSY)
		return ret;
	shrimp_odp_requested(ep->domain);
	*done = ret ? 0 : p->ask.len;
	return ret;
}

int shrimp_serve(struct shrimp_ep *ep, const struct shrimp_part *p, size_t room,
		 struct rnic_access *a, size_t *done)
{
	const struct rnic_desc_ask *q = &p->ask;
	struct shrimp_tx_peer *own;
	size_t was;
	int ret, tries = 0;

	*a = (struct rnic_access){ .key = p->key,
				   .addr = q->addr,
				   .len = q->len,
				   .write = q->kind == RNIC_ASK_WRITE };
	if (!makes_sense(q, room))
		return -EPROTO;
	if (q->kind == RNIC_ASK_PAGE)
		return serve_page(ep, p, done);
	ret = shrimp_rma_own(ep, &own);
	if (ret)
		return ret;
	rnic_count64(&ep->stats->served, 1);
	do {
		was = *done;
		ret = execute(ep, own, p, a, done);
		if (ret != -EAGAIN)
			return ret;
		tries = *done > was ? 0 : tries + 1;
		ret = page_in(ep, a, *done);
	} while (!ret && tries < SHRIMP_PAGE_TRIES);
	return ret ? ret : -EAGAIN;
}

/* ---- for a peer ---- */

static bool writes(const struct rnic_desc_ask *q)
{
	return q->kind == RNIC_ASK_WRITE || q->kind == RNIC_ASK_ATOMIC;
}

/* Part @q was done: its region is told of it with the last part. */
static void note(struct shrimp_rx_lane *l, const struct rnic_desc_ask *q,
		 const struct rnic_access *a)
{
	uint32_t bit = writes(q) ? RNIC_MR_EV_WRITE : RNIC_MR_EV_READ;

	if (!(a->rights & bit))
		return;
	for (size_t i = 0; i < l->nasked; i++)
		if (l->asked[i] == a->slot)
			return;
	if (l->nasked < SHRIMP_IOV_MAX)
		l->asked[l->nasked++] = a->slot;
}

/* The last part @q was done: what those who count are told. */
static void tell(struct shrimp_rx_lane *l, const struct rnic_desc_ask *q,
		 struct shrimp_arrival *arr)
{
	uint32_t what = RNIC_EVENT_ENDPOINT;

	if (writes(q))
		what |= RNIC_EVENT_WRITES;
	if (q->kind >= RNIC_ASK_ATOMIC)
		what |= RNIC_EVENT_ATOMIC;
	do {
		uint64_t slot =
			l->nasked ? (uint64_t)l->asked[--l->nasked] + 1 : 0;

		shrimp_rx_event(l, arr, what, slot);
		what &= ~(uint32_t)RNIC_EVENT_ENDPOINT;
		arr->flags = 0;
	} while (l->nasked);
}

/* shrimp_serve() for @l: no part of an operation after one that failed. */
static int serve(struct shrimp_rx_lane *l, const struct shrimp_part *p,
		 size_t room, size_t *done)
{
	struct rnic_access a;
	int ret;

	if (p->ask.ends & SHRIMP_END_FIRST) {
		l->ask_failed = false;
		l->nasked = 0;
	}
	*done = l->ask_done;
	if (l->ask_failed)
		return -ECANCELED;
	ret = shrimp_serve(l->ep, p, room, &a, done);
	l->ask_done = ret == -EBUSY ? *done : 0;
	if (ret == -EBUSY)
		return ret;
	l->ask_failed = ret;
	if (!ret)
		note(l, &p->ask, &a);
	return ret;
}

int shrimp_rx_ask(struct shrimp_rx_lane *l, const struct rnic_desc *d,
		  uint64_t head)
{
	struct shrimp_ep *ep = l->ep;
	/* relaxed: acquired with the head (L1) */
	struct shrimp_part p = { .ask = d->ask,
				 .key = rnic_load64_relaxed(&d->tag) };
	struct shrimp_arrival arr = { .data = rnic_load64_relaxed(&d->data) };
	size_t room = rnic_desc_len_of(head), done;
	struct rnic_ret reply = { .op = 0 };
	uint32_t bytes = l->rx.bytes;
	int ret;

	rnic_compiler_barrier();
	if (room > RNIC_RING_MSG_MAX)
		return -EPROTO;
	p.at.mem = rnic_lane_take_bytes(&l->rx, (uint32_t)room);
	p.at.fd = ep->domain->dev.mailbox.fd;
	p.at.off = rnic_lane_off(ep->place.index, l->index) +
		   (uint64_t)(p.at.mem - (uint8_t *)l->rx.sh);
	ret = serve(l, &p, room, &done);
	if (ret == -EBUSY)
		/* it stays in the lane, with its bytes */
		l->rx.bytes = bytes;
	if (ret == -EPROTO || ret == -EBUSY)
		return ret;
	reply.rx = (uint64_t)-ret;
	reply.len = done;
	/* L3 publishes what was written to the ring, too */
	shrimp_rx_answer(l, RNIC_RET_REPLY, &reply);
	if (ret || !(p.ask.ends & SHRIMP_END_LAST))
		return 0;
	arr.len = p.ask.total;
	arr.flags = rnic_desc_flags_of(head) & RNIC_DESC_CQ_DATA;
	tell(l, &p.ask, &arr);
	return 0;
}

/* ---- what peers did ---- */

void shrimp_rx_event(struct shrimp_rx_lane *l, const struct shrimp_arrival *a,
		     uint32_t what, uint64_t slot)
{
	shrimp_rx_told(l->ep, shrimp_lane_src(l), a, what, slot);
}

void shrimp_rx_told(struct shrimp_ep *ep, fi_addr_t src,
		    const struct shrimp_arrival *a, uint32_t what,
		    uint64_t slot)
{
	bool write = what & RNIC_EVENT_WRITES;
	struct shrimp_cntr *c = ep->remote_cntr[write];
	const struct shrimp_comp e = {
		.flags = (what & RNIC_EVENT_ATOMIC ? FI_ATOMIC : FI_RMA) |
			 FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len = a->len,
		.data = a->data,
		.src = src,
	};

	if (slot)
		shrimp_mr_event(ep->domain, slot - 1, write);
	if (c && what & RNIC_EVENT_ENDPOINT)
		shrimp_cntr_add(c, 1);
	if (a->flags & RNIC_DESC_CQ_DATA && ep->rx_cq)
		shrimp_cq_write(ep->rx_cq, ep->sink, &e);
}
