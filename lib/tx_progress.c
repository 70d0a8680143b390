/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Sending: what moves after the call. Answers of receivers, credits, streams
 * of held messages, queued sends.
 *
 * Exclusion: the endpoint's lock. Nothing waits: what cannot move now is
 * looked at in the next call.
 */
#include "lib/domain.h"
#include "lib/rma.h"
#include "lib/rx.h"
#include "lib/tx.h"
#include "lib/window.h"
#include "shm/copy.h"

/* The receiver wants @len bytes of held @op as DATA for its receive @rx. */
static void answer_go(struct shrimp_op *op, const struct rnic_ret *r)
{
	if (op->state != SHRIMP_OP_HELD)
		return;
	op->tp->answers--;
	op->state = SHRIMP_OP_STREAM;
	op->rx = r->rx;
	/* a peer's word: never more than there is */
	op->want = r->len < op->s.len ? r->len : op->s.len;
	cds_list_add_tail(&op->link, &op->tp->streams);
}

/* The receiver is done with @op. */
static void answer_done(struct shrimp_op *op)
{
	if (op->state != SHRIMP_OP_HELD && op->state != SHRIMP_OP_ANSWER)
		return;
	if (!op->descs) {
		shrimp_tx_finish(op, 0);
		return;
	}
	op->tp->answers--;
	op->state = SHRIMP_OP_CONSUME;
}

static void take_answers(struct shrimp_tx_peer *tp)
{
	struct rnic_ret r;
	enum rnic_ret_code code;

	/* what an answer leads to may find out that the peer is gone */
	while (tp->state == SHRIMP_TX_LIVE &&
	       (code = rnic_lane_ret_take(&tp->lane, &r)) != RNIC_RET_NONE) {
		struct shrimp_op *op;

		if (code == RNIC_RET_REPLY) {
			shrimp_rma_reply(tp, &r);
			continue;
		}
		op = shrimp_names_find(&tp->ep->op_names, r.op);

		/* names come from a peer: only its own operations count */
		if (!op || op->tp != tp)
			continue;
		if (code == RNIC_RET_GO)
			answer_go(op, &r);
		else if (code == RNIC_RET_DONE)
			answer_done(op);
		/* codes come from a peer, too: others mean nothing */
	}
}

void shrimp_tx_gone(struct shrimp_tx_peer *tp)
{
	/* what it took before counts: shrimp_tx_fail() looks at credits */
	if (tp->state == SHRIMP_TX_LIVE && !tp->self)
		take_answers(tp);
	shrimp_tx_fail(tp, FI_ECONNRESET);
}

void shrimp_tx_look_closed(struct shrimp_tx_peer *tp)
{
	/* R3: what was received and answered before; as the loads of it in
	 * take_answers() and rnic_lane_refresh() come after this one */
	if (tp->state == SHRIMP_TX_LIVE &&
	    rnic_load32_acquire(&tp->lane.sh->flag.rx_closed))
		shrimp_tx_gone(tp);
}

/*
 * Where the next piece of a stream goes: a chunk, or, on a machine that has
 * no memory for the pool, a part of the byte ring. *@len is cut to its size.
 * NULL: no room now.
 */
static uint8_t *stream_room(struct shrimp_tx_peer *tp, size_t *len,
			    uint32_t *chunk)
{
	struct shrimp_ep *ep = tp->ep;
	uint64_t at = 0;

	*chunk = shrimp_tx_chunk(tp, *len > RNIC_POOL_SMALL);
	if (*chunk != RNIC_CHUNK_NONE) {
		if (*len > RNIC_POOL_LARGE)
			*len = RNIC_POOL_LARGE;
		rnic_pool_locate(&ep->pool.geom, *chunk, (uint32_t)*len, &at);
		return ep->place.pool + at;
	}
	if (!ep->no_pool)
		return NULL;
	if (*len > RNIC_RING_MSG_MAX)
		*len = RNIC_RING_MSG_MAX;
	return shrimp_tx_bytes(tp, *len);
}

/* Publishes the next piece of the stream @op. False: no room now. */
static bool stream_chunk(struct shrimp_tx_peer *tp, struct shrimp_op *op)
{
	size_t len = op->want - op->sent;
	struct rnic_desc *d;
	uint32_t chunk;
	uint8_t *to;

	if (!shrimp_tx_room(tp))
		return false;
	to = stream_room(tp, &len, &chunk);
	if (!to)
		return false;
	d = rnic_lane_slot(&tp->lane);
	/* relaxed: published by L1 */
	rnic_store64_relaxed(&d->tag, op->rx);
	rnic_store64_relaxed(&d->data, op->sent);
	d->ext = (struct rnic_desc_ext){ .total = op->want,
					 .chunk = chunk,
					 .chunk_len = (uint32_t)len };
	rnic_iov_gather(to, op->s.iov, op->s.niov, op->sent, len);
	op->sent += len;
	shrimp_tx_note(tp, tp->lane.seq, chunk, op);
	if (rnic_lane_publish(&tp->lane, d, RNIC_DESC_DATA, 0, 0))
		shrimp_tx_ring(tp);
	return true;
}

enum { STREAM_BURST = 64 }; /* chunks published before others move on */

static void run_streams(struct shrimp_tx_peer *tp)
{
	int burst = STREAM_BURST;

	while (!cds_list_empty(&tp->streams)) {
		struct shrimp_op *op = cds_list_first_entry(
			&tp->streams, struct shrimp_op, link);

		while (op->sent < op->want) {
			if (!burst-- || !stream_chunk(tp, op))
				return;
		}
		cds_list_del_init(&op->link);
		op->state = SHRIMP_OP_CONSUME;
		if (!op->descs)
			shrimp_tx_finish(op, 0);
	}
}

/* Operations that are published and not finished. */
static bool outstanding(const struct shrimp_tx_peer *tp)
{
	struct shrimp_op *op;

	cds_list_for_each_entry (op, &tp->ops, all)
		if (op->state != SHRIMP_OP_QUEUED)
			return true;
	return false;
}

static void flush_queue(struct shrimp_tx_peer *tp)
{
	while (!cds_list_empty(&tp->queue) && cds_list_empty(&tp->asking)) {
		struct shrimp_op *op = cds_list_first_entry(
			&tp->queue, struct shrimp_op, link);

		if (op->s.fence && outstanding(tp))
			return;
		if (shrimp_tx_publish(tp, &op->s, op))
			return;
	}
	shrimp_tx_settle(tp);
}

/* A message to itself that was queued; an inject's payload is in the heap. */
static int send_self(struct shrimp_tx_peer *tp, struct shrimp_op *op)
{
	struct shrimp_send s = op->s;
	struct iovec kept = { .iov_len = s.len };
	ssize_t ret;

	if (op->heap_off != SHRIMP_NO_HEAP) {
		kept.iov_base = tp->ep->place.heap + op->heap_off;
		s.iov = &kept;
		s.niov = 1;
	}
	ret = shrimp_rx_self(tp->ep, tp, &s);
	if (!ret)
		/* reported, or another op stands for it */
		shrimp_op_free(op);
	else if (ret != -FI_EAGAIN)
		shrimp_tx_finish(op, (int)-ret);
	return ret == -FI_EAGAIN ? -FI_EAGAIN : 0;
}

void shrimp_tx_flush_self(struct shrimp_tx_peer *tp)
{
	int ret = 0;

	while (!ret && !cds_list_empty(&tp->queue)) {
		struct shrimp_op *op = cds_list_first_entry(
			&tp->queue, struct shrimp_op, link);

		if (op->s.rma)
			ret = shrimp_rma_run(tp, &op->s, op);
		else
			ret = send_self(tp, op);
	}
}

/*
 * To itself: what waits for unexpected messages to be taken, and posted
 * invalidations.
 */
static bool move_self(struct shrimp_tx_peer *tp)
{
	bool more = shrimp_window_progress(tp->ep);

	shrimp_tx_flush_self(tp);
	return !tp->nops && !more;
}

/* Moves what goes to @tp. True if nothing is left to do for it. */
static bool move(struct shrimp_tx_peer *tp)
{
	if (tp->state == SHRIMP_TX_RESOLVE || tp->state == SHRIMP_TX_ATTACH) {
		shrimp_tx_connect(tp);
		return false;
	}
	if (tp->state == SHRIMP_TX_DOWN)
		return true;
	if (tp->self)
		return move_self(tp);
	if (tp->answers)
		take_answers(tp);
	if (tp->state != SHRIMP_TX_LIVE)
		return true;
	if (tp->inflight_bits || !cds_list_empty(&tp->queue)) {
		rnic_lane_refresh(&tp->lane);
		shrimp_tx_retire(tp);
	}
	if (!cds_list_empty(&tp->streams))
		run_streams(tp);
	if (!cds_list_empty(&tp->asking))
		shrimp_rma_ask_on(tp);
	if (!tp->fast)
		flush_queue(tp);
	shrimp_tx_look_closed(tp);
	return !tp->inflight_bits && !tp->nops;
}

void shrimp_tx_progress(struct shrimp_ep *ep)
{
	struct shrimp_tx_peer *tp, *next;

	ep->unsettled = false;
	cds_list_for_each_entry_safe (tp, next, &ep->active, active) {
		if (!move(tp))
			continue;
		cds_list_del(&tp->active);
		tp->in_active = false;
	}
}

static bool has_news(struct shrimp_tx_peer *tp)
{
	const struct rnic_ret *e;

	if (tp->state != SHRIMP_TX_LIVE)
		return tp->state != SHRIMP_TX_DOWN;
	/* relaxed: an agent, once there, looks after invalidations */
	if (tp->self)
		return !cds_list_empty(&tp->ep->fencing) &&
		       !rnic_load32_relaxed(&tp->ep->domain->agent_runs);
	e = &tp->lane.sh->ret[tp->lane.ret % RNIC_RET_ENTRIES];
	/* relaxed: only whether to look again; taking acquires (L2, L3) */
	if (rnic_load64_relaxed(&e->head) >> 32 == (uint32_t)(tp->lane.ret + 1))
		return true;
	return rnic_load32_relaxed(&tp->lane.sh->credit.desc_taken) !=
		       tp->lane.taken ||
	       rnic_load32_relaxed(&tp->lane.sh->flag.rx_closed);
}

bool shrimp_tx_pending(struct shrimp_ep *ep)
{
	struct shrimp_tx_peer *tp;

	cds_list_for_each_entry (tp, &ep->active, active)
		if (ep->unsettled || has_news(tp))
			return true;
	return false;
}
