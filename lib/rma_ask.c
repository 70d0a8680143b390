/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One-sided operations that the owner of the memory has to execute: cut into
 * parts that fit the byte ring, each an ASK descriptor, answered in order.
 *
 *   part: taken from the ring, operands written, published (room in the
 *         descriptor ring, the byte ring and the table of asks permitting)
 *   reply: results are read where the operands were; the bytes are free
 *
 *
 * An operation that has found a page absent asks for that in the same way: one
 * part without operands (RNIC_ASK_PAGE). It stays first in tp->asking until the
 * reply, so that nothing else goes to that peer, and is then first in its
 * queue.
 *
 * Exclusion: the endpoint's lock. Nothing waits: the reply comes when the
 * owner, or its agent, drains the lane; if it dies the operations end with
 * FI_ECONNRESET like all that go to it.
 */
#include <errno.h>
#include <string.h>

#include "lib/domain.h"
#include "lib/odp.h"
#include "lib/rma.h"
#include "shm/copy.h"

/* ---- parts ---- */

/* The part of @s that begins at byte @off. */
static void part_at(const struct shrimp_send *s, size_t off,
		    struct shrimp_part *p)
{
	const struct shrimp_rma *r = s->rma;
	const struct fi_rma_iov *v = r->there;
	size_t room = RNIC_RING_MSG_MAX, in = off;

	while (in >= v->len)
		in -= v++->len;
	if (r->kind == RNIC_ASK_COMPARE)
		room /= 2;
	room -= room % r->size;
	p->key = v->key;
	p->ask = (struct rnic_desc_ask){
		.addr = v->addr + in,
		.total = s->len,
		.len = (uint32_t)(v->len - in < room ? v->len - in : room),
		.kind = r->kind,
		.op = r->op,
		.type = r->type,
	};
	if (off + p->ask.len == s->len)
		p->ask.ends = SHRIMP_END_LAST;
}

/* Writes the operands of the part at @off to @to. */
static void put_operands(const struct shrimp_send *s, size_t off,
			 const struct rnic_desc_ask *q, uint8_t *to)
{
	const struct shrimp_rma *r = s->rma;

	if (q->kind == RNIC_ASK_READ)
		return;
	if (q->kind == RNIC_ASK_WRITE || r->op != RNIC_AOP_READ)
		rnic_iov_gather(to, s->iov, s->niov, off, q->len);
	if (q->kind == RNIC_ASK_COMPARE)
		rnic_iov_gather(to + q->len, r->compare, r->ncompare, off,
				q->len);
}

/* Reads the @len bytes of results of the part at @off from @from. */
static void take_results(const struct shrimp_send *s, size_t off, size_t len,
			 const uint8_t *from)
{
	const struct shrimp_rma *r = s->rma;

	if (r->kind == RNIC_ASK_READ)
		rnic_iov_scatter(s->iov, s->niov, off, from, len);
	else if (!shrimp_rma_writes(r))
		rnic_iov_scatter(r->result, r->nresult, off, from, len);
}

/* ---- asking ---- */

/* The next entry of the table of asks, for part @p of @op. */
static void push(struct shrimp_op *op, size_t off, const struct shrimp_part *p,
		 const uint8_t *mem)
{
	struct shrimp_asks *asks = &op->tp->asks;
	struct shrimp_asked *a =
		&asks->a[(asks->first + asks->n++) % SHRIMP_ASKS];

	a->op = op;
	a->off = off;
	a->len = p->ask.len;
	a->at = rnic_lane_hold(&op->tp->lane,
			       (uint32_t)shrimp_part_room(&p->ask));
	a->mem = mem;
	op->tp->answers++;
	op->s.rma->st->asked++;
}

/* Publishes part @p of @op, @off bytes into it. False: no room now. */
static bool ask_part(struct shrimp_op *op, size_t off, struct shrimp_part *p)
{
	struct shrimp_tx_peer *tp = op->tp;
	bool page = p->ask.kind == RNIC_ASK_PAGE;
	size_t room = shrimp_part_room(&p->ask);
	struct rnic_desc *d;
	uint8_t *to;

	if (tp->asks.n == SHRIMP_ASKS || !shrimp_tx_room(tp))
		return false;
	to = shrimp_tx_bytes(tp, room);
	if (!to)
		return false;
	push(op, off, p, to);
	if (off == op->s.rma->st->done)
		p->ask.ends |= SHRIMP_END_FIRST;
	if (!page)
		put_operands(&op->s, off, &p->ask, to);
	d = rnic_lane_slot(&tp->lane);
	/* relaxed: published by L1 */
	rnic_store64_relaxed(&d->tag, p->key);
	rnic_store64_relaxed(&d->data, op->s.data);
	d->ask = p->ask;
	if (rnic_lane_publish(&tp->lane, d, RNIC_DESC_ASK,
			      page ? 0 : op->s.desc_flags, room))
		shrimp_tx_ring(tp);
	return true;
}

/* Asks for all of @op, as far as there is room. True: nothing is left. */
static bool ask_all(struct shrimp_op *op)
{
	struct shrimp_rma_state *st = op->s.rma->st;
	struct shrimp_part p;

	while (st->sent < op->s.len && !st->f.err) {
		part_at(&op->s, st->sent, &p);
		if (!ask_part(op, st->sent, &p))
			return false;
		st->sent += p.ask.len;
	}
	return true;
}

/* The request for the page in which byte @off of @s lies, and those behind. */
static void page_at(const struct shrimp_send *s, size_t off,
		    struct shrimp_part *p)
{
	const struct shrimp_rma *r = s->rma;
	const struct fi_rma_iov *v = r->there;
	size_t in = off;

	while (in >= v->len)
		in -= v++->len;
	p->key = v->key;
	p->ask = (struct rnic_desc_ask){
		.addr = v->addr + in,
		.total = s->len,
		.len = v->len - in < RNIC_ASK_PAGES ? (uint32_t)(v->len - in)
						    : RNIC_ASK_PAGES,
		.kind = RNIC_ASK_PAGE,
		.op = shrimp_rma_rights(r),
	};
}

/* Asks for the page of @op, if that was not done. */
static void ask_page(struct shrimp_op *op)
{
	struct shrimp_part p;

	if (op->s.rma->st->asked)
		return;
	page_at(&op->s, op->s.rma->st->done, &p);
	if (ask_part(op, op->s.rma->st->done, &p))
		rnic_count64(&op->tp->ep->stats->page_asks, 1);
}

void shrimp_rma_ask_on(struct shrimp_tx_peer *tp)
{
	while (!cds_list_empty(&tp->asking)) {
		struct shrimp_op *op = cds_list_first_entry(
			&tp->asking, struct shrimp_op, link);

		if (op->s.rma->st->paging) {
			ask_page(op);
			return;
		}
		if (!ask_all(op))
			return;
		cds_list_del_init(&op->link);
		if (!op->s.rma->st->asked)
			shrimp_rma_asked(tp, op);
	}
}

int shrimp_rma_ask(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		   struct shrimp_op *op, size_t done,
		   const struct shrimp_rma_events *e)
{
	struct shrimp_op *o = op ? op : shrimp_op_new(tp, s);

	if (!o)
		return -FI_ENOMEM;
	shrimp_op_unqueue(o);
	o->state = SHRIMP_OP_ASK;
	o->s.rma->st->done = o->s.rma->st->sent = done;
	o->s.rma->st->events = *e;
	tp->asks.key = o->s.rma->there->key;
	tp->asks.atomic = shrimp_rma_atomic(o->s.rma);
	cds_list_add_tail(&o->link, &tp->asking);
	tp->fast = false;
	shrimp_rma_ask_on(tp);
	shrimp_tx_settle(tp);
	return 0;
}

int shrimp_rma_page(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		    struct shrimp_op *op, const struct rnic_access *a,
		    size_t done, const struct shrimp_rma_events *e)
{
	struct shrimp_op *o = op ? op : shrimp_op_new(tp, s);
	struct shrimp_rma_state *st;

	if (!o)
		return -FI_ENOMEM;
	shrimp_op_unqueue(o);
	st = o->s.rma->st;
	o->state = SHRIMP_OP_ASK;
	st->tries = done > st->done ? 0 : st->tries + 1;
	st->done = done;
	st->events = *e;
	st->paging = true;
	/* what to name if it fails there */
	st->f = (struct shrimp_rma_failure){ .key = a->key,
					     .addr = a->addr,
					     .len = a->len };
	cds_list_add_tail(&o->link, &tp->asking);
	tp->fast = false;
	shrimp_rma_ask_on(tp);
	return 0;
}

bool shrimp_rma_asks_too(const struct shrimp_tx_peer *tp,
			 const struct shrimp_send *s)
{
	return tp->asking.next == &tp->asking && s->len &&
	       s->rma->there->key == tp->asks.key &&
	       shrimp_rma_atomic(s->rma) == tp->asks.atomic;
}

/* ---- replies ---- */

static void note_failure(struct shrimp_op *op, const struct shrimp_asked *a,
			 int err, size_t done)
{
	struct shrimp_rma_state *st = op->s.rma->st;
	struct shrimp_part p;

	if (st->f.err)
		return;
	part_at(&op->s, a->off, &p);
	st->f = (struct shrimp_rma_failure){
		.err = err,
		.moved = a->off + done,
		.key = p.key,
		.addr = p.ask.addr,
		.len = p.ask.len,
	};
}

/* The oldest part leaves the table; its bytes in the ring are free. */
static struct shrimp_asked pop(struct shrimp_tx_peer *tp)
{
	struct shrimp_asks *asks = &tp->asks;
	struct shrimp_asked a = asks->a[asks->first % SHRIMP_ASKS];

	asks->first++;
	asks->n--;
	tp->answers--;
	/* orders nothing: this end of the lane, under the endpoint's lock */
	rnic_lane_release(&tp->lane, !asks->n,
			  asks->a[asks->first % SHRIMP_ASKS].at);
	return a;
}

/* The page of @op has come, or will not. */
static void paged(struct shrimp_op *op, int err)
{
	struct shrimp_tx_peer *tp = op->tp;
	struct shrimp_rma_state *st = op->s.rma->st;

	st->paging = false;
	if (st->tries >= SHRIMP_PAGE_TRIES && !err)
		err = EAGAIN;
	if (err) {
		st->f.err = shrimp_rma_code(-err);
		st->f.moved = st->done;
		shrimp_rma_report(tp, &op->s, op, &st->f);
		return;
	}
	cds_list_del(&op->link);
	op->state = SHRIMP_OP_QUEUED;
	cds_list_add(&op->link, &tp->queue);
	tp->ep->queued++;
}

void shrimp_rma_reply(struct shrimp_tx_peer *tp, const struct rnic_ret *ret)
{
	const struct shrimp_asked *first =
		&tp->asks.a[tp->asks.first % SHRIMP_ASKS];
	struct shrimp_asked a;
	struct shrimp_rma_state *st;
	int err = ret->rx < INT16_MAX ? (int)ret->rx : EIO;
	size_t done;

	if (!tp->asks.n)
		return;
	done = ret->len < first->len ? ret->len : first->len;
	if (!first->op->s.rma->st->paging)
		take_results(&first->op->s, first->off, done, first->mem);
	a = pop(tp);
	st = a.op->s.rma->st;
	st->asked--;
	if (st->paging) {
		paged(a.op, err);
		return;
	}
	if (err || done < a.len)
		note_failure(a.op, &a, shrimp_rma_code(-(err ? err : EIO)),
			     done);
	/* while it is in the list there are parts to come, unless it failed */
	if (st->asked || !cds_list_empty(&a.op->link))
		return;
	shrimp_rma_asked(tp, a.op);
}

/* ---- the process's own memory ---- */

/* The byte ring of the lane to itself is used by nobody else. */
static struct rnic_exec_at scratch(struct shrimp_tx_peer *tp)
{
	struct shrimp_ep *ep = tp->ep;

	return (struct rnic_exec_at){
		.fd = ep->domain->dev.mailbox.fd,
		.off = rnic_lane_off(ep->place.index, tp->index) +
		       offsetof(struct rnic_lane, bytes),
		.mem = tp->lane.sh->bytes,
	};
}

int shrimp_rma_ask_self(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
			struct rnic_access *a, size_t *done,
			struct shrimp_rma_events *e)
{
	struct shrimp_part p = { .at = scratch(tp) };
	size_t n;
	int ret = 0;

	while (!ret && *done < s->len) {
		n = 0;
		part_at(s, *done, &p);
		put_operands(s, *done, &p.ask, p.at.mem);
		ret = shrimp_serve(tp->ep, &p, RNIC_RING_MSG_MAX, a, &n);
		take_results(s, *done, n, p.at.mem);
		if (n)
			shrimp_rma_note(s->rma, a, e);
		*done += n;
	}
	return ret;
}

int shrimp_rma_page_self(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
			 size_t done)
{
	struct shrimp_page g;
	struct shrimp_part p;

	page_at(s, done, &p);
	g = (struct shrimp_page){ .key = p.key,
				  .addr = p.ask.addr,
				  .len = p.ask.len,
				  .rights = p.ask.op };
	return shrimp_odp_page(tp->ep->domain, &g);
}
