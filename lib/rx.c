/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Receiving: matching, placing, completing.
 *
 * Exclusion: the endpoint's lock. Payload in a segment is copied once, out of
 * memory that its sender may still write: lengths were bounded before, the
 * bytes are the sender's own affair.
 */
#include "lib/rx.h"

#include <stdlib.h>
#include <string.h>

#include "lib/av.h"
#include "lib/cntr.h"
#include "lib/domain.h"
#include "lib/peer.h"
#include "shm/copy.h"

/* ---- receives ---- */

void shrimp_recv_free(struct shrimp_ep *ep, struct shrimp_recv *r)
{
	if (r->iov != &r->one)
		free((void *)(uintptr_t)r->iov);
	shrimp_slab_put(&ep->recvs, r);
}

bool shrimp_rx_uses_up(const struct shrimp_ep *ep, const struct shrimp_recv *r,
		       size_t total)
{
	size_t left = r->len - r->used;

	if (!r->multi)
		return true;
	return total >= left || left - total < ep->min_multi;
}

void shrimp_rx_place(struct shrimp_ep *ep, struct shrimp_recv *r,
		     struct shrimp_placed *to, size_t total)
{
	size_t left = r->len - r->used;
	bool last = shrimp_rx_uses_up(ep, r, total);

	to->r = r;
	to->off = r->used;
	to->total = total;
	to->room = total < left ? total : left;
	r->filling++;
	if (r->multi)
		r->used += to->room;
	if (!last)
		return;
	r->ended = SHRIMP_RECV_USED_UP;
	if (r->m.posted)
		rnic_match_unpost(shrimp_rx_match(ep, r->tagged), &r->m);
}

/* What the completion of @to says, but for the error. */
static struct shrimp_comp comp_of(struct shrimp_ep *ep,
				  const struct shrimp_placed *to)
{
	struct shrimp_recv *r = to->r;
	struct shrimp_comp c = {
		.context = r->context,
		.flags = FI_RECV | (r->tagged ? FI_TAGGED : FI_MSG),
		.len = to->room,
		.data = to->data,
		.tag = to->tag,
		.src = shrimp_av_addr_of(ep->av, to->src),
	};

	if (to->flags & RNIC_DESC_CQ_DATA)
		c.flags |= FI_REMOTE_CQ_DATA;
	if (r->niov)
		c.buf = (char *)r->iov[0].iov_base + to->off;
	return c;
}

static void write_error(struct shrimp_ep *ep, const struct shrimp_comp *c,
			size_t olen, int err)
{
	struct shrimp_comp_err e = {
		.c = *c, .olen = olen, .err = err, .prov_errno = err
	};

	if (ep->rx_cntr)
		shrimp_cntr_add_err(ep->rx_cntr, 1);
	if (ep->rx_cq)
		shrimp_cq_write_err(ep->rx_cq, &e);
}

void shrimp_rx_done(struct shrimp_ep *ep, struct shrimp_placed *to, int err)
{
	struct shrimp_recv *r = to->r;
	struct shrimp_comp c = comp_of(ep, to);
	bool last = true, failed = false;

	if (RNIC_UNLIKELY(r->multi)) {
		last = !--r->filling && r->ended;
		failed = last && r->ended != SHRIMP_RECV_USED_UP;
		if (last && !failed)
			c.flags |= FI_MULTI_RECV;
	}
	if (!err && to->room < to->total)
		err = FI_ETRUNC;
	if (err)
		write_error(ep, &c, to->total - to->room, err);
	else
		shrimp_rx_success(ep, r, &c);
	if (RNIC_UNLIKELY(failed))
		shrimp_rx_failed(ep, r);
	if (last)
		shrimp_recv_free(ep, r);
}

/* ---- unexpected messages ---- */

static void set_budget_flags(struct shrimp_ep *ep, bool over)
{
	ep->over_budget = over;
	for (size_t i = 0; i < ep->nlanes; i++)
		if (ep->lanes[i])
			/* relaxed: a hint to the sender */
			rnic_store32_relaxed(
				&ep->lanes[i]->rx.sh->flag.over_budget, over);
}

static void charge(struct shrimp_ep *ep, size_t bytes)
{
	ep->unexpected += bytes;
	if (!ep->over_budget && ep->unexpected > ep->domain->set->unexpected)
		set_budget_flags(ep, true);
}

static void discharge(struct shrimp_ep *ep, size_t bytes)
{
	ep->unexpected -= bytes;
	if (ep->over_budget && ep->unexpected < ep->domain->set->unexpected / 2)
		set_budget_flags(ep, false);
}

static bool has_buf(const struct shrimp_umsg *u)
{
	return u->kind == SHRIMP_UMSG_WHOLE || u->kind == SHRIMP_UMSG_PARTIAL;
}

/* A message to queue, with @room bytes for its payload. */
static struct shrimp_umsg *umsg_new(struct shrimp_ep *ep,
				    const struct shrimp_arrival *a,
				    enum shrimp_umsg_kind kind, size_t room)
{
	struct shrimp_umsg *u = malloc(sizeof(*u) + room);

	if (!u)
		return NULL;
	memset(u, 0, sizeof(*u));
	CDS_INIT_LIST_HEAD(&u->link);
	CDS_INIT_LIST_HEAD(&u->claim);
	u->m.tag = a->tag;
	u->data = a->data;
	u->total = a->len;
	u->flags = a->flags;
	u->kind = (uint8_t)kind;
	u->op = a->op;
	if (has_buf(u))
		charge(ep, a->len);
	return u;
}

/* Queues @u, of peer @src, whose lane is needed while it lives if @l. */
static void umsg_queue(struct shrimp_ep *ep, struct shrimp_umsg *u,
		       uint32_t src, struct shrimp_rx_lane *l)
{
	u->m.src = src;
	u->lane = l;
	if (l)
		cds_list_add_tail(&u->link, &l->umsgs);
	rnic_match_queue(shrimp_rx_match(ep, u->flags & RNIC_DESC_TAGGED),
			 &u->m);
	rnic_count64(&ep->stats->unexpected, 1);
}

void shrimp_umsg_free(struct shrimp_ep *ep, struct shrimp_umsg *u)
{
	if (has_buf(u))
		discharge(ep, u->total);
	ep->self_bytes -= u->self_cost;
	cds_list_del(&u->link);
	cds_list_del(&u->claim);
	rnic_remote_close(u->heap);
	free(u);
}

/*
 * The heap of a sender that has left, and answered for nothing there, holds
 * what it did: its lane may go, @u keeps the mapping. Not so if it left because
 * of us: then it gave that memory to other messages.
 */
static bool keep_heap(struct shrimp_umsg *u)
{
	struct shrimp_rx_lane *l = u->lane;

	if (u->kind != SHRIMP_UMSG_HEAP || l->broken || !shrimp_lane_left(l) ||
	    /* tried in vain */
	    (!l->remote && l->retry_ms) ||
	    shrimp_lane_heap(l, u->heap_off, u->total))
		return false;
	u->heap = rnic_remote_share(l->remote);
	return true;
}

void shrimp_umsg_orphan(struct shrimp_ep *ep, struct shrimp_umsg *u)
{
	bool kept = u->kind == SHRIMP_UMSG_WHOLE || keep_heap(u);

	cds_list_del_init(&u->link);
	u->lane = NULL;
	u->in = NULL;
	u->op = 0;
	if (kept)
		return;
	rnic_count64(&ep->stats->dropped, 1);
	if (!cds_list_empty(&u->claim)) {
		if (has_buf(u))
			discharge(ep, u->total);
		u->kind = SHRIMP_UMSG_DEAD;
		return;
	}
	if (u->m.queued)
		rnic_match_dequeue(
			shrimp_rx_match(ep, u->flags & RNIC_DESC_TAGGED),
			&u->m);
	shrimp_umsg_free(ep, u);
}

/* ---- acknowledgements ---- */

static void ack(struct shrimp_rx_lane *l, uint64_t op)
{
	struct rnic_ret r = { .op = op };

	if (l && op)
		shrimp_rx_answer(l, RNIC_RET_DONE, &r);
}

static void ack_if(struct shrimp_rx_lane *l, const struct shrimp_arrival *a,
		   unsigned int when)
{
	if (a->flags & when)
		ack(l, a->op);
}

/* ---- whole messages ---- */

/* Matched when it arrived. */
static void arrive_matched(struct shrimp_rx_lane *l, struct shrimp_recv *r,
			   const struct shrimp_arrival *a)
{
	struct shrimp_ep *ep = l->ep;
	struct shrimp_placed to = {
		.tag = a->tag, .data = a->data, .src = l->id, .flags = a->flags
	};

	shrimp_rx_place(ep, r, &to, a->len);
	rnic_iov_scatter(r->iov, r->niov, to.off, a->p, to.room);
	ack_if(l, a, RNIC_DESC_ACK_DONE | RNIC_DESC_ACK_MATCH);
	shrimp_rx_done(ep, &to, 0);
}

static int arrive_unexpected(struct shrimp_rx_lane *l,
			     const struct shrimp_arrival *a)
{
	struct shrimp_umsg *u = umsg_new(l->ep, a, SHRIMP_UMSG_WHOLE, a->len);
	bool later = a->flags & RNIC_DESC_ACK_MATCH;

	if (!u)
		return -FI_ENOMEM;
	rnic_copy(u->buf, a->p, a->len);
	if (!later)
		u->op = 0;
	ack_if(l, a, RNIC_DESC_ACK_DONE);
	umsg_queue(l->ep, u, l->id, later ? l : NULL);
	return 0;
}

int shrimp_rx_whole(struct shrimp_rx_lane *l, const struct shrimp_arrival *a)
{
	struct shrimp_ep *ep = l->ep;
	struct rnic_match_recv *m;
	int ret = 0;

	if (shrimp_rx_simple(l, a))
		return 0;
	m = rnic_match_find_recv(
		shrimp_rx_match(ep, a->flags & RNIC_DESC_TAGGED), l->id,
		a->tag);
	if (m)
		arrive_matched(l, (struct shrimp_recv *)m, a);
	else
		ret = arrive_unexpected(l, a);
	if (!ret)
		shrimp_ep_count_rx(ep, a->path, a->len);
	return ret;
}

/* ---- messages in several chunks ---- */

static struct shrimp_inbound *inbound_new(struct shrimp_rx_lane *l,
					  const struct shrimp_arrival *a)
{
	struct shrimp_inbound *in = shrimp_slab_get(&l->ep->inbounds);

	if (!in)
		return NULL;
	*in = (struct shrimp_inbound){
		.lane = l,
		.op = a->op,
		.to = { .tag = a->tag,
			.data = a->data,
			.src = l->id,
			.flags = a->flags },
	};
	cds_list_add_tail(&in->link, &l->inbounds);
	return in;
}

void shrimp_inbound_free(struct shrimp_inbound *in)
{
	struct shrimp_ep *ep = in->lane->ep;

	cds_list_del(&in->link);
	if (in->name)
		shrimp_names_del(&ep->in_names, in->name);
	if (in->lane->cur == in)
		in->lane->cur = NULL;
	shrimp_slab_put(&ep->inbounds, in);
}

void shrimp_rx_end(struct shrimp_inbound *in, int err)
{
	struct shrimp_ep *ep = in->lane->ep;
	struct shrimp_umsg *u = in->u;
	struct shrimp_placed to = in->to;

	shrimp_inbound_free(in);
	if (u && err && !to.r) {
		shrimp_umsg_orphan(ep, u);
	} else if (u && err) {
		shrimp_umsg_free(ep, u);
	} else if (u && to.r) {
		rnic_iov_scatter(to.r->iov, to.r->niov, to.off, u->buf,
				 to.room);
		shrimp_umsg_free(ep, u);
	} else if (u) {
		u->kind = SHRIMP_UMSG_WHOLE;
		u->in = NULL;
	}
	if (to.r)
		shrimp_rx_done(ep, &to, err);
}

int shrimp_rx_first(struct shrimp_rx_lane *l, const struct shrimp_arrival *a,
		    size_t total)
{
	struct shrimp_ep *ep = l->ep;
	struct shrimp_arrival whole = *a;
	struct rnic_match_recv *m;
	struct shrimp_inbound *in = inbound_new(l, a);

	if (!in)
		return -FI_ENOMEM;
	whole.len = total;
	in->want = total;
	m = rnic_match_find_recv(
		shrimp_rx_match(ep, a->flags & RNIC_DESC_TAGGED), l->id,
		a->tag);
	if (m) {
		shrimp_rx_place(ep, (struct shrimp_recv *)m, &in->to, total);
		ack_if(l, a, RNIC_DESC_ACK_MATCH);
	} else {
		in->u = umsg_new(ep, &whole, SHRIMP_UMSG_PARTIAL, total);
		if (!in->u) {
			shrimp_inbound_free(in);
			return -FI_ENOMEM;
		}
		in->u->in = in;
		umsg_queue(ep, in->u, l->id, l);
	}
	l->cur = in;
	shrimp_ep_count_rx(ep, a->path, total);
	return 0;
}

/* All bytes of @in are here. */
static void inbound_complete(struct shrimp_inbound *in)
{
	struct shrimp_umsg *u = in->u;

	if (in->to.flags & RNIC_DESC_ACK_DONE)
		ack(in->lane, in->op);
	if (u && !in->to.r && !(u->flags & RNIC_DESC_ACK_MATCH)) {
		/* whole now: the lane is not needed any more */
		cds_list_del_init(&u->link);
		u->lane = NULL;
		u->op = 0;
	}
	shrimp_rx_end(in, 0);
}

int shrimp_rx_feed(struct shrimp_inbound *in, size_t off, const uint8_t *p,
		   size_t len)
{
	const struct shrimp_placed *to = &in->to;

	/* by subtraction: the numbers come from a peer */
	if (off > in->want || len > in->want - off || len > in->want - in->got)
		return -EPROTO;
	if (in->u)
		rnic_copy(in->u->buf + off, p, len);
	else if (to->r && off < to->room)
		rnic_iov_scatter(to->r->iov, to->r->niov, to->off + off, p,
				 len < to->room - off ? len : to->room - off);
	in->got += len;
	if (in->got == in->want)
		inbound_complete(in);
	return 0;
}

/* ---- held messages ---- */

/* Asks the sender of held @op to stream what @in has room for. */
static void fetch(struct shrimp_inbound *in, uint64_t op)
{
	struct shrimp_rx_lane *l = in->lane;
	struct rnic_ret r = { .op = op, .len = in->to.room };

	in->want = in->to.room;
	if (!in->want) {
		ack(l, op);
		shrimp_rx_end(in, 0);
		return;
	}
	in->name = shrimp_names_add(&l->ep->in_names, in);
	if (!in->name) {
		ack(l, op);
		shrimp_rx_end(in, FI_ENOMEM);
		return;
	}
	r.rx = in->name;
	shrimp_rx_answer(l, RNIC_RET_GO, &r);
}

/*
 * Copies the heap payload of @in if the sender's heap can be reached.
 * Returns 0, -EINPROGRESS (attach under way), or an error.
 */
static int pull_heap(struct shrimp_inbound *in)
{
	struct shrimp_rx_lane *l = in->lane;
	const struct shrimp_placed *to = &in->to;
	int ret = shrimp_lane_heap(l, in->heap_off, to->total);

	if (ret)
		return ret;
	rnic_iov_scatter(to->r->iov, to->r->niov, to->off,
			 l->remote->heap + in->heap_off, to->room);
	return 0;
}

/* Pulls @in now, or puts it on the list of those that wait for the heap. */
static void pull(struct shrimp_inbound *in)
{
	struct shrimp_rx_lane *l = in->lane;
	int ret = pull_heap(in);

	if (ret && shrimp_lane_waits(l, ret)) {
		cds_list_del(&in->link);
		cds_list_add_tail(&in->link, &l->ep->pulls);
		return;
	}
	ack(l, in->op);
	shrimp_rx_end(in, ret ? FI_ECONNRESET : 0);
}

void shrimp_rx_pulls(struct shrimp_ep *ep)
{
	struct shrimp_inbound *in, *next;
	struct cds_list_head now;

	/* a list of its own: those that still wait go to the other's tail */
	CDS_INIT_LIST_HEAD(&now);
	cds_list_splice(&ep->pulls, &now);
	CDS_INIT_LIST_HEAD(&ep->pulls);
	cds_list_for_each_entry_safe (in, next, &now, link)
		pull(in);
}

int shrimp_rx_held(struct shrimp_rx_lane *l, const struct shrimp_arrival *a,
		   const struct rnic_desc_ext *x, bool heap)
{
	struct shrimp_ep *ep = l->ep;
	struct rnic_match_recv *m = rnic_match_find_recv(
		shrimp_rx_match(ep, a->flags & RNIC_DESC_TAGGED), l->id,
		a->tag);
	struct shrimp_inbound *in;
	struct shrimp_umsg *u;

	shrimp_ep_count_rx(ep, a->path, a->len);
	if (!m) {
		u = umsg_new(ep, a, heap ? SHRIMP_UMSG_HEAP : SHRIMP_UMSG_HELD,
			     0);
		if (!u)
			return -FI_ENOMEM;
		u->heap_off = x->heap_off;
		u->va = x->va;
		umsg_queue(ep, u, l->id, l);
		return 0;
	}
	in = inbound_new(l, a);
	if (!in)
		return -FI_ENOMEM;
	in->heap_off = x->heap_off;
	shrimp_rx_place(ep, (struct shrimp_recv *)m, &in->to, a->len);
	if (heap)
		pull(in);
	else
		fetch(in, a->op);
	return 0;
}

/* ---- from the unexpected queue to a receive ---- */

/* What remains to be fetched of @u goes to @r. */
static void deliver_remote(struct shrimp_ep *ep, struct shrimp_umsg *u,
			   struct shrimp_recv *r)
{
	struct shrimp_arrival a = { .len = u->total,
				    .tag = u->m.tag,
				    .data = u->data,
				    .op = u->op,
				    .flags = u->flags };
	struct shrimp_inbound *in = inbound_new(u->lane, &a);
	bool heap = u->kind == SHRIMP_UMSG_HEAP;
	struct shrimp_placed to = {
		.tag = a.tag, .data = a.data, .src = u->m.src, .flags = a.flags
	};
	uint64_t off = u->heap_off;

	if (!in) {
		ack(u->lane, u->op);
		shrimp_umsg_free(ep, u);
		shrimp_rx_place(ep, r, &to, a.len);
		shrimp_rx_done(ep, &to, FI_ENOMEM);
		return;
	}
	in->heap_off = off;
	shrimp_umsg_free(ep, u);
	shrimp_rx_place(ep, r, &in->to, a.len);
	if (heap)
		pull(in);
	else
		fetch(in, a.op);
}

/* From one list of buffers to another, @len bytes from the start of @src. */
static void copy_iovs(const struct shrimp_placed *to,
		      const struct shrimp_send *s)
{
	const struct shrimp_recv *r = to->r;
	size_t skip = to->off, done = 0;

	for (size_t i = 0; i < r->niov && done < to->room; i++) {
		size_t n = r->iov[i].iov_len;

		if (skip >= n) {
			skip -= n;
			continue;
		}
		n -= skip;
		if (n > to->room - done)
			n = to->room - done;
		rnic_iov_gather((char *)r->iov[i].iov_base + skip, s->iov,
				s->niov, done, n);
		done += n;
		skip = 0;
	}
}

/* Payload at hand: in @u, in a mapping, or with a send of this endpoint. */
static void deliver_local(struct shrimp_ep *ep, struct shrimp_umsg *u,
			  struct shrimp_recv *r)
{
	struct shrimp_placed to = { .tag = u->m.tag,
				    .data = u->data,
				    .src = u->m.src,
				    .flags = u->flags };

	shrimp_rx_place(ep, r, &to, u->total);
	if (u->kind == SHRIMP_UMSG_SELF)
		copy_iovs(&to, &u->self->s);
	else
		rnic_iov_scatter(r->iov, r->niov, to.off,
				 u->heap ? u->heap->heap + u->heap_off : u->buf,
				 to.room);
	if (u->self)
		shrimp_tx_finish(u->self, 0);
	if (u->flags & RNIC_DESC_ACK_MATCH)
		ack(u->lane, u->op);
	shrimp_umsg_free(ep, u);
	shrimp_rx_done(ep, &to, 0);
}

void shrimp_rx_deliver(struct shrimp_ep *ep, struct shrimp_umsg *u,
		       struct shrimp_recv *r)
{
	struct shrimp_placed to = { .tag = u->m.tag,
				    .data = u->data,
				    .src = u->m.src,
				    .flags = u->flags };

	switch (u->kind) {
	case SHRIMP_UMSG_PARTIAL:
		if (u->flags & RNIC_DESC_ACK_MATCH)
			ack(u->lane, u->op);
		shrimp_rx_place(ep, r, &u->in->to, u->total);
		return;
	case SHRIMP_UMSG_HELD:
	case SHRIMP_UMSG_HEAP:
		if (u->heap)
			deliver_local(ep, u, r);
		else
			deliver_remote(ep, u, r);
		return;
	case SHRIMP_UMSG_DEAD:
		shrimp_rx_place(ep, r, &to, u->total);
		to.room = 0;
		shrimp_umsg_free(ep, u);
		shrimp_rx_done(ep, &to, FI_ECONNRESET);
		return;
	default:
		deliver_local(ep, u, r);
	}
}

void shrimp_rx_discard(struct shrimp_ep *ep, struct shrimp_umsg *u)
{
	struct rnic_ret r = { .op = u->op };

	if (u->self)
		shrimp_tx_finish(u->self, 0);
	if (u->lane && u->op)
		shrimp_rx_answer(u->lane, RNIC_RET_DONE, &r);
	if (u->in)
		/* still arriving: the bytes are dropped as they come */
		u->in->u = NULL;
	shrimp_umsg_free(ep, u);
}

/* ---- from this endpoint to itself ---- */

/* No receive yet: keeps a copy, or the send. */
static int self_unexpected(struct shrimp_ep *ep, struct shrimp_tx_peer *tp,
			   const struct shrimp_send *s)
{
	struct shrimp_arrival a = { .len = s->len,
				    .tag = s->tag,
				    .data = s->data,
				    .flags = s->desc_flags };
	bool copy = s->inject || s->len <= ep->domain->set->eager_max;
	bool wait = !copy || s->level == SHRIMP_LEVEL_MATCH;
	size_t cost = sizeof(struct shrimp_umsg) + (copy ? s->len : 0);
	struct shrimp_umsg *u;

	/* contract P2: what this endpoint keeps for itself is bounded too */
	if (ep->self_bytes + cost > ep->domain->set->tx_buffer)
		return -FI_EAGAIN;
	u = umsg_new(ep, &a, copy ? SHRIMP_UMSG_WHOLE : SHRIMP_UMSG_SELF,
		     copy ? s->len : 0);
	if (!u)
		return -FI_ENOMEM;
	ep->self_bytes += u->self_cost = cost;
	if (copy)
		rnic_iov_gather(u->buf, s->iov, s->niov, 0, s->len);
	if (wait) {
		u->self = shrimp_op_new(tp, s);
		if (!u->self) {
			shrimp_umsg_free(ep, u);
			return -FI_ENOMEM;
		}
	} else {
		shrimp_tx_complete(ep, s, 0);
	}
	umsg_queue(ep, u, tp->peer->id, NULL);
	return 0;
}

ssize_t shrimp_rx_self(struct shrimp_ep *ep, struct shrimp_tx_peer *tp,
		       const struct shrimp_send *s)
{
	struct rnic_match_recv *m = rnic_match_find_recv(
		shrimp_rx_match(ep, s->desc_flags & RNIC_DESC_TAGGED),
		tp->peer->id, s->tag);
	struct shrimp_placed to = { .tag = s->tag,
				    .data = s->data,
				    .src = tp->peer->id,
				    .flags = s->desc_flags };
	int ret = 0;

	if (m) {
		shrimp_rx_place(ep, (struct shrimp_recv *)m, &to, s->len);
		copy_iovs(&to, s);
		shrimp_tx_complete(ep, s, 0);
		shrimp_rx_done(ep, &to, 0);
	} else {
		ret = self_unexpected(ep, tp, s);
	}
	if (!ret) {
		shrimp_ep_count_tx(ep, FI_SHRIMP_PATH_SELF, s->len);
		shrimp_ep_count_rx(ep, FI_SHRIMP_PATH_SELF, s->len);
	}
	return ret;
}
