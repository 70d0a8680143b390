/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One-sided operations that the initiator does by itself: pairing local with
 * remote ranges, moving bytes, changing words, telling the owner.
 *
 * Exclusion: the endpoint's lock, which makes the caller the endpoint's
 * execution context (shm/reader.h). Waits: none but page faults of the peer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/av.h"
#include "lib/cntr.h"
#include "lib/cq.h"
#include "lib/domain.h"
#include "lib/peer.h"
#include "lib/rma.h"
#include "lib/rx.h"
#include "shm/breakage.h"
#include "shm/copy.h"
#include "shm/log.h"

/* ---- what a peer needs for it ---- */

/* The endpoint's execution context. 0 or an error. */
static int open_ctx(struct shrimp_ep *ep)
{
	int ret;

	if (ep->ctx)
		return 0;
	ep->ctx = calloc(1, sizeof(*ep->ctx));
	if (!ep->ctx)
		return -ENOMEM;
	ret = rnic_ctx_open(ep->ctx, &ep->domain->dev, ep->place.index, 0);
	if (ret) {
		free(ep->ctx);
		ep->ctx = NULL;
	}
	return ret;
}

/* An endpoint that reaches itself is a peer like others, with a lane. */
static int claim_self(struct shrimp_tx_peer *tp)
{
	struct shrimp_ep *ep = tp->ep;
	struct rnic_lane *lane;
	int ret;

	if (tp->lane.sh)
		return 0;
	ret = rnic_remote_open(&ep->addr, RNIC_ATTACH_PROC, &tp->remote);
	if (ret)
		return ret;
	ret = rnic_remote_claim(tp->remote, &ep->addr, &lane, &tp->index);
	if (ret) {
		rnic_remote_close(tp->remote);
		tp->remote = NULL;
		return ret;
	}
	rnic_lane_tx_init(&tp->lane, lane, tp->index,
			  ep->domain->set->lane_lines, tp->remote->fence);
	tp->retired = tp->lane.taken;
	shrimp_tx_ring(tp);
	return 0;
}

static int open_reach(struct shrimp_tx_peer *tp)
{
	int ret;

	if (RNIC_LIKELY(tp->reach != NULL))
		return 0;
	ret = open_ctx(tp->ep);
	if (!ret && tp->self)
		ret = claim_self(tp);
	if (ret)
		return ret;
	tp->reach = calloc(1, sizeof(*tp->reach));
	if (!tp->reach)
		return -ENOMEM;
	ret = rnic_reach_init(tp->reach, tp->remote, tp->lane.sh, 0);
	tp->reach->refused = !tp->ep->domain->set->cma;
	if (ret) {
		free(tp->reach);
		tp->reach = NULL;
	}
	/* its descriptor has another meaning by now: it is gone */
	return ret == -ESTALE ? -ESRCH : ret;
}

int shrimp_rma_own(struct shrimp_ep *ep, struct shrimp_tx_peer **tp)
{
	*tp = shrimp_tx_self(ep);
	return *tp ? open_reach(*tp) : -ENOMEM;
}

/* Orders nothing: @tp is used under its endpoint's lock. */
void shrimp_rma_release(struct shrimp_tx_peer *tp)
{
	if (tp->reach)
		rnic_reach_fini(tp->reach);
	free(tp->reach);
	tp->reach = NULL;
}

/* ---- keeping ---- */

/* Bytes of an inject that have to be copied. */
static size_t inject_bytes(const struct shrimp_op *op)
{
	const struct shrimp_rma *r = op->s.rma;

	if (!op->s.inject)
		return 0;
	return rnic_iov_len(op->s.iov, op->s.niov) +
	       rnic_iov_len(r->compare, r->ncompare);
}

/* Appends @bytes at *@at, which moves on. */
static void *append(uint8_t **at, const void *from, size_t bytes)
{
	void *to = *at;

	if (bytes)
		memcpy(to, from, bytes);
	*at += bytes;
	return to;
}

/* Appends the bytes of @iov and returns the one range that they are now. */
static struct iovec append_bytes(uint8_t **at, const struct iovec *iov,
				 size_t n)
{
	struct iovec one = { .iov_base = *at, .iov_len = rnic_iov_len(iov, n) };

	rnic_iov_gather(*at, iov, n, 0, one.iov_len);
	*at += one.iov_len;
	return one;
}

/* What an inject sends may be overwritten when its call returns. */
static void keep_operands(struct shrimp_op *op, struct iovec *compare,
			  uint8_t *at)
{
	struct shrimp_rma *r = op->s.rma;
	struct iovec operand;

	*compare = append_bytes(&at, r->compare, r->ncompare);
	r->compare = compare;
	r->ncompare = 1;
	operand = append_bytes(&at, op->s.iov, op->s.niov);
	if (op->s.iov != &op->one)
		free((void *)(uintptr_t)op->s.iov);
	op->one = operand;
	op->s.iov = &op->one;
	op->s.niov = 1;
}

/* An op's copy; arrays and bytes follow it. */
struct kept {
	struct shrimp_rma r;	    /* what is to be done */
	struct shrimp_rma_state st; /* how far it is */
	struct iovec compare;	    /* of an inject */
};

int shrimp_rma_keep(struct shrimp_op *op)
{
	const struct shrimp_rma *from = op->s.rma;
	size_t there = from->nthere * sizeof(*from->there);
	size_t result = from->nresult * sizeof(*from->result);
	size_t compare = from->ncompare * sizeof(*from->compare);
	size_t inject = inject_bytes(op);
	struct kept *k = malloc(sizeof(*k) + there + result + compare + inject);
	uint8_t *at;

	if (!k)
		return -FI_ENOMEM;
	k->r = *from;
	k->r.st = &k->st;
	memset(&k->st, 0, sizeof(k->st));
	k->st.kept = inject;
	at = (uint8_t *)(k + 1);
	k->r.there = append(&at, from->there, there);
	k->r.result = append(&at, from->result, result);
	k->r.compare = append(&at, from->compare, compare);
	op->s.rma = &k->r;
	if (op->s.inject)
		keep_operands(op, &k->compare, at);
	return 0;
}

void shrimp_rma_free(struct shrimp_rma *rma)
{
	free(rma);
}

/* ---- walking lists of ranges ---- */

/* A place in a list of local ranges. */
struct cursor {
	const struct iovec *v; /* range */
	size_t off;	       /* byte in it */
};

/* Bytes from @c to the end of its range; passes what is empty. */
static size_t cursor_room(struct cursor *c)
{
	while (c->off == c->v->iov_len) {
		c->v++;
		c->off = 0;
	}
	return c->v->iov_len - c->off;
}

static void *cursor_at(const struct cursor *c)
{
	return (char *)c->v->iov_base + c->off;
}

/* Moves on by @n bytes, over ranges, not beyond the last. */
static void cursor_skip(struct cursor *c, size_t n)
{
	while (n) {
		size_t room = cursor_room(c);
		size_t step = room < n ? room : n;

		c->off += step;
		n -= step;
	}
}

/* A place in a list of ranges at the peer. */
struct there {
	const struct fi_rma_iov *v; /* range */
	size_t off;		    /* byte in it */
};

static size_t there_room(struct there *t)
{
	while (t->off == t->v->len) {
		t->v++;
		t->off = 0;
	}
	return t->v->len - t->off;
}

static void there_skip(struct there *t, size_t n)
{
	while (n) {
		size_t room = there_room(t);
		size_t step = room < n ? room : n;

		t->off += step;
		n -= step;
	}
}

/* ---- moving and changing ---- */

void shrimp_rma_note(const struct shrimp_rma *r, const struct rnic_access *a,
		     struct shrimp_rma_events *e)
{
	uint32_t bit =
		shrimp_rma_writes(r) ? RNIC_MR_EV_WRITE : RNIC_MR_EV_READ;

	if (RNIC_LIKELY(!(a->rights & bit)))
		return;
	for (size_t i = 0; i < e->n; i++)
		if (e->slot[i] == a->slot)
			return;
	if (e->n == SHRIMP_IOV_MAX)
		return;
	e->key[e->n] = a->key;
	e->slot[e->n++] = a->slot;
}

/*
 * Moves what is left of @s after *@done bytes, which rises. Returns 0 or a
 * negative errno; *@a is the last piece.
 */
static int move_all(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		    struct rnic_access *a, size_t *done,
		    struct shrimp_rma_events *e)
{
	struct cursor here = { .v = s->iov };
	struct there there = { .v = s->rma->there };
	int ret = 0;

	if (RNIC_UNLIKELY(*done)) {
		cursor_skip(&here, *done);
		there_skip(&there, *done);
	}
	while (!ret && *done < s->len) {
		size_t n = cursor_room(&here);

		a->len = there_room(&there);
		a->key = there.v->key;
		a->addr = there.v->addr + there.off;
		a->buf = cursor_at(&here);
		if (a->len > n)
			a->len = n;
		ret = rnic_reach_move(tp->ep->ctx, tp->reach, a, &n);
		if (n)
			shrimp_rma_note(s->rma, a, e);
		here.off += n;
		there.off += n;
		*done += n;
	}
	return ret;
}

/* Where the operands of the next element are. */
struct elements {
	struct cursor operand; /* .v NULL: none */
	struct cursor compare; /* likewise */
	struct cursor result;  /* likewise */
	struct there there;    /* at the peer */
};

static void *element(struct cursor *c)
{
	if (!c->v)
		return NULL;
	cursor_room(c);
	return cursor_at(c);
}

static struct elements elements_from(const struct shrimp_send *s, size_t done)
{
	const struct shrimp_rma *r = s->rma;
	struct elements e = { .there.v = r->there };

	if (r->op != RNIC_AOP_READ)
		e.operand.v = s->iov;
	if (r->kind == RNIC_ASK_COMPARE)
		e.compare.v = r->compare;
	if (r->kind != RNIC_ASK_ATOMIC)
		e.result.v = r->result;
	if (!done)
		return e;
	there_skip(&e.there, done);
	if (e.operand.v)
		cursor_skip(&e.operand, done);
	if (e.compare.v)
		cursor_skip(&e.compare, done);
	if (e.result.v)
		cursor_skip(&e.result, done);
	return e;
}

static void apply(void *word, void *arg)
{
	struct rnic_aop *a = arg;

	a->target = word;
	rnic_aop_apply(a);
}

/* move_all() for elements. */
static int change_all(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		      struct rnic_access *a, size_t *done,
		      struct shrimp_rma_events *e)
{
	struct elements el = elements_from(s, *done);
	size_t size = s->rma->size;
	struct rnic_aop op = { .type = s->rma->type, .op = s->rma->op };
	int ret = 0;

	a->atomic = true;
	a->need = rnic_exec_rights(s->rma->kind != RNIC_ASK_ATOMIC);
	a->len = size;
	while (!ret && *done < s->len) {
		op.operand = element(&el.operand);
		op.compare = element(&el.compare);
		op.result = element(&el.result);
		there_room(&el.there);
		a->key = el.there.v->key;
		a->addr = el.there.v->addr + el.there.off;
		ret = rnic_reach_word(tp->ep->ctx, tp->reach, a, apply, &op);
		if (ret)
			break;
		shrimp_rma_note(s->rma, a, e);
		el.operand.off += size;
		el.compare.off += size;
		el.result.off += size;
		el.there.off += size;
		*done += size;
	}
	return ret;
}

int shrimp_rma_code(int ret)
{
	switch (ret) {
	case 0:
		return 0;
	case -ENOKEY:
	case -ESTALE:
	case -EAGAIN:
		return FI_EKEYREJECTED;
	case -ERANGE:
		return FI_EINVAL;
	case -ESRCH:
		return FI_ECONNRESET;
	default:
		return -ret;
	}
}

/* ---- events at the peer ---- */

/* True if the peer's endpoint is to be told of it. */
static bool wants_event(const struct shrimp_tx_peer *tp,
			const struct shrimp_send *s)
{
	return s->desc_flags & RNIC_DESC_CQ_DATA ||
	       shrimp_rma_heard(tp, shrimp_rma_writes(s->rma));
}

static uint32_t what_of(const struct shrimp_send *s, bool endpoint)
{
	uint32_t what = 0;

	if (shrimp_rma_writes(s->rma))
		what |= RNIC_EVENT_WRITES;
	if (shrimp_rma_atomic(s->rma))
		what |= RNIC_EVENT_ATOMIC;
	if (endpoint)
		what |= RNIC_EVENT_ENDPOINT;
	return what;
}

/* To itself: in the order of the calls, as messages to itself are. */
static void tell_self(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		      bool endpoint, uint64_t slot)
{
	struct shrimp_ep *ep = tp->ep;
	const struct shrimp_arrival a = {
		.len = s->len,
		.data = s->data,
		.flags = endpoint ? s->desc_flags & RNIC_DESC_CQ_DATA : 0,
	};

	shrimp_rx_told(ep, shrimp_av_addr_of(ep->av, tp->peer->id), &a,
		       what_of(s, endpoint), slot);
}

/* There is room for it: all bytes are there when it is seen (P5). */
static void send_event(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		       bool endpoint, uint64_t slot)
{
	unsigned int flags = endpoint ? s->desc_flags & RNIC_DESC_CQ_DATA : 0;
	struct rnic_desc *d = rnic_lane_slot(&tp->lane);

	/* relaxed: published by L1 */
	rnic_store64_relaxed(&d->tag, 0);
	rnic_store64_relaxed(&d->data, s->data);
	d->ext = (struct rnic_desc_ext){ .total = s->len,
					 .chunk = what_of(s, endpoint),
					 .op = slot };
	if (rnic_lane_publish(&tp->lane, d, RNIC_DESC_EVENT, flags, 0))
		shrimp_tx_ring(tp);
}

/* Sends what is left of @e; false: no room now. */
static bool send_events(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
			struct shrimp_rma_events *e)
{
	while (e->endpoint || e->n) {
		uint64_t slot = e->n ? (uint64_t)e->slot[e->n - 1] + 1 : 0;

		if (tp->self)
			tell_self(tp, s, e->endpoint, slot);
		else if (shrimp_tx_room(tp))
			send_event(tp, s, e->endpoint, slot);
		else
			return false;
		e->endpoint = false;
		if (e->n)
			e->n--;
	}
	return true;
}

/* ---- the operation ---- */

/* Does what is left of @s by itself. As move_all(). */
static inline int do_here(struct shrimp_tx_peer *tp,
			  const struct shrimp_send *s, struct rnic_access *a,
			  size_t *done, struct shrimp_rma_events *e)
{
	return shrimp_rma_atomic(s->rma) ? change_all(tp, s, a, done, e)
					 : move_all(tp, s, a, done, e);
}

void shrimp_rma_report(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		       struct shrimp_op *op, const struct shrimp_rma_failure *f)
{
	if (f->err)
		shrimp_tx_rma_error(tp, s, f);
	else
		shrimp_tx_complete(tp->ep, s, 0);
	if (op)
		shrimp_op_free(op);
}

static void count(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		  enum fi_shrimp_reach by)
{
	struct rnic_stats *st = tp->ep->stats;

	if (shrimp_rma_atomic(s->rma)) {
		rnic_count64(&st->atomics[by], 1);
		return;
	}
	rnic_count64(&st->rma_msgs[by], 1);
	rnic_count64(&st->rma_bytes[by], s->len);
}

static int fail(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		struct shrimp_op *op, const struct rnic_access *a, size_t done,
		int ret)
{
	struct shrimp_rma_failure f = {
		.err = shrimp_rma_code(ret),
		.moved = RNIC_BROKEN(error_bytes) ? 0 : done,
		.key = a->key,
		.addr = a->addr,
		.len = a->len,
	};

	shrimp_rma_report(tp, s, op, &f);
	/* nothing succeeds there any more; of queued ones the reap knows */
	if (!op && f.err == FI_ECONNRESET && !tp->self)
		shrimp_tx_fail(tp, FI_ECONNRESET);
	return 0;
}

/* All bytes are done; their events wait for room in the lane. */
static int park(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		struct shrimp_op *op, const struct shrimp_rma_events *e)
{
	const struct rnic_access none = { .key = 0 };
	struct shrimp_op *o = op;

	if (!o)
		o = shrimp_tx_enqueue_first(tp, s);
	if (!o)
		/* no call may say that nothing happened */
		return fail(tp, s, NULL, &none, s->len, -ENOMEM);
	o->s.rma->st->done = s->len;
	o->s.rma->st->events = *e;
	return op ? -FI_EAGAIN : 0;
}

static int finish(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		  struct shrimp_op *op, struct shrimp_rma_events *e)
{
	const struct shrimp_rma_failure none = { .err = 0 };

	if (RNIC_UNLIKELY(e->endpoint || e->n) && !send_events(tp, s, e))
		return park(tp, s, op, e);
	shrimp_rma_report(tp, s, op, &none);
	return 0;
}

/*
 * Nothing can be done now, but a part of @s may have been: it goes on from
 * there, before all others.
 */
static int put_off(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		   struct shrimp_op *op, size_t done,
		   const struct shrimp_rma_events *e)
{
	const struct rnic_access none = { .key = 0 };
	struct shrimp_op *o = op ? op : shrimp_tx_enqueue_first(tp, s);

	if (!o)
		return fail(tp, s, NULL, &none, done, -ENOMEM);
	o->s.rma->st->done = done;
	o->s.rma->st->events = *e;
	return op ? -FI_EAGAIN : 0;
}

/* True if @op is done and waits only until its events are sent. */
static bool is_parked(const struct shrimp_op *op)
{
	return op->s.rma && op->s.len && op->s.rma->st->done == op->s.len;
}

void shrimp_rma_asked(struct shrimp_tx_peer *tp, struct shrimp_op *op)
{
	struct shrimp_rma_state *st = op->s.rma->st;
	struct cds_list_head *before;

	if (st->f.err || !st->events.n) {
		shrimp_rma_report(tp, &op->s, op, &st->f);
		return;
	}
	/* before what was not begun, behind others that are done */
	st->done = op->s.len;
	op->state = SHRIMP_OP_QUEUED;
	cds_list_for_each (before, &tp->queue)
		if (!is_parked(cds_list_entry(before, struct shrimp_op, link)))
			break;
	cds_list_add_tail(&op->link, before);
	tp->ep->queued++;
	tp->fast = false;
}

/* The owner tells itself of what is left of @s after @done bytes. */
static void leave_to_owner(const struct shrimp_send *s, size_t done,
			   struct shrimp_rma_events *e)
{
	const struct fi_rma_iov *v = s->rma->there, *end = v + s->rma->nthere;

	e->endpoint = false;
	while (v < end && done >= v->len)
		done -= v++->len;
	for (; v < end && e->n; v++) {
		for (size_t i = 0; v->len && i < e->n; i++) {
			if (e->key[i] != v->key)
				continue;
			e->slot[i] = e->slot[--e->n];
			e->key[i] = e->key[e->n];
			break;
		}
	}
}

/* What is left of @s is the owner's to do; @e: of what was done here. */
static int hand_over(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		     struct shrimp_op *op, size_t done,
		     struct shrimp_rma_events *e)
{
	struct rnic_access a = { .key = 0 };
	int ret;

	count(tp, s, FI_SHRIMP_REACH_OWNER);
	leave_to_owner(s, done, e);
	ret = shrimp_rma_ask(tp, s, op, done, e);
	/* a part of it was done: no call may say that nothing happened */
	if (ret && done)
		return fail(tp, s, op, &a, done, ret);
	return ret;
}

/* The owner is this process. */
static int do_self(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		   struct shrimp_op *op, size_t done,
		   struct shrimp_rma_events *e)
{
	struct rnic_access a;
	int ret;

	ret = shrimp_rma_ask_self(tp, s, &a, &done, e);
	if (ret == -EBUSY)
		return put_off(tp, s, op, done, e);
	count(tp, s, FI_SHRIMP_REACH_OWNER);
	return ret ? fail(tp, s, op, &a, done, ret) : finish(tp, s, op, e);
}

/* A page is not present: its owner is asked for it. */
static int ask_page(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		    struct shrimp_op *op, const struct rnic_access *a,
		    size_t done, const struct shrimp_rma_events *e)
{
	int ret = shrimp_rma_page(tp, s, op, a, done, e);

	/* a part of it was done: no call may say that nothing happened */
	return ret && done ? fail(tp, s, op, a, done, ret) : ret;
}

/* How far a run has got. */
struct so_far {
	struct rnic_access a;	    /* last access */
	size_t done;		    /* bytes that are done */
	size_t paged;		    /* and at the last page of our own */
	size_t tries;		    /* pages since then */
	struct shrimp_rma_events e; /* regions to tell of */
};

enum { AGAIN = 1 }; /* internal: the page is there now */

/* A page of this process's own memory: AGAIN, or why it does not come. */
static int page_own(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		    struct so_far *f)
{
	int ret = shrimp_rma_page_self(tp, s, f->done);

	f->tries = f->done > f->paged ? 0 : f->tries + 1;
	f->paged = f->done;
	if (!ret && f->tries < SHRIMP_PAGE_TRIES)
		return AGAIN;
	return ret ? ret : -EAGAIN;
}

/* @s was not done here: @ret says why. As shrimp_rma_run(), or AGAIN. */
RNIC_COLD static int run_on(struct shrimp_tx_peer *tp,
			    const struct shrimp_send *s, struct shrimp_op *op,
			    struct so_far *f, int ret)
{
	if (ret == -EREMOTE)
		return tp->self ? do_self(tp, s, op, f->done, &f->e)
				: hand_over(tp, s, op, f->done, &f->e);
	if (ret == -EAGAIN && !tp->self)
		return ask_page(tp, s, op, &f->a, f->done, &f->e);
	if (ret == -EAGAIN)
		ret = page_own(tp, s, f);
	if (ret == AGAIN)
		return ret;
	if (ret == -EBUSY)
		return put_off(tp, s, op, f->done, &f->e);
	return fail(tp, s, op, &f->a, f->done, ret);
}

int shrimp_rma_run(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		   struct shrimp_op *op)
{
	const struct shrimp_rma *r = s->rma;
	struct so_far f;
	int ret;

	f.a = (struct rnic_access){ .write = r->kind == RNIC_ASK_WRITE };
	f.done = op ? r->st->done : 0;
	f.paged = f.tries = 0;
	f.e.n = 0;
	f.e.endpoint = false;
	if (RNIC_UNLIKELY(f.done))
		f.e = r->st->events;
	if (op && f.done == s->len && s->len)
		return finish(tp, s, op, &r->st->events);
	if (RNIC_UNLIKELY(tp->asks.n || !cds_list_empty(&tp->asking)))
		return shrimp_rma_asks_too(tp, s)
			       ? hand_over(tp, s, op, f.done, &f.e)
			       : -FI_EAGAIN;
	ret = open_reach(tp);
	if (ret)
		return fail(tp, s, op, &f.a, f.done, ret);
	f.e.endpoint = wants_event(tp, s);
	if (f.e.endpoint && !tp->self && !shrimp_tx_room(tp))
		return -FI_EAGAIN;
	if (RNIC_BROKEN(event_order) && f.e.endpoint)
		send_events(tp, s, &f.e);
	while (RNIC_UNLIKELY(ret = do_here(tp, s, &f.a, &f.done, &f.e))) {
		ret = run_on(tp, s, op, &f, ret);
		if (ret != AGAIN)
			return ret;
	}
	count(tp, s,
	      f.a.path == RNIC_BY_MAP ? FI_SHRIMP_REACH_MAPPED
				      : FI_SHRIMP_REACH_CMA);
	return finish(tp, s, op, &f.e);
}
