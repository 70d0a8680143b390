/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Sending: which path a message takes, and its publication.
 *
 * Exclusion: the endpoint's lock. The order between the calls of one
 * endpoint to one peer is kept by publishing into one lane in call order and
 * by queueing behind whatever is queued (contract P5).
 */
#include "lib/tx.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/cntr.h"
#include "lib/cq.h"
#include "lib/domain.h"
#include "lib/peer.h"
#include "lib/rma.h"
#include "lib/rx.h"
#include "shm/copy.h"
#include "shm/log.h"

uint64_t shrimp_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void shrimp_tx_ring(struct shrimp_tx_peer *tp)
{
	rnic_count64(&tp->ep->stats->doorbells, 1);
	if (rnic_remote_ring(tp->remote, tp->index))
		rnic_count64(&tp->ep->stats->wakeups, 1);
}

void shrimp_tx_activate(struct shrimp_tx_peer *tp)
{
	if (tp->in_active)
		return;
	tp->in_active = true;
	cds_list_add_tail(&tp->active, &tp->ep->active);
}

/* ---- completions ---- */

static uint64_t comp_flags(const struct shrimp_send *s)
{
	if (s->rma)
		return (shrimp_rma_atomic(s->rma) ? FI_ATOMIC : FI_RMA) |
		       (shrimp_rma_writes(s->rma) ? FI_WRITE : FI_READ);
	return FI_SEND |
	       (s->desc_flags & RNIC_DESC_TAGGED ? FI_TAGGED : FI_MSG);
}

/* The counter of such operations, or NULL. */
static struct shrimp_cntr *cntr_of(const struct shrimp_ep *ep,
				   const struct shrimp_send *s)
{
	return s->rma ? ep->rma_cntr[shrimp_rma_writes(s->rma)] : ep->tx_cntr;
}

/* An error without a completion to say it in. */
static bool unheard(const struct shrimp_ep *ep, const struct shrimp_send *s,
		    int err)
{
	struct shrimp_cntr *c = cntr_of(ep, s);

	if (c)
		shrimp_cntr_add_err(c, 1);
	if (!s->no_context && ep->tx_cq)
		return false;
	rnic_log(RNIC_LOG_WARN, "%s of %zu bytes lost: %s",
		 s->rma ? "RMA" : "send", s->len, fi_strerror(err));
	return true;
}

static void complete_error(struct shrimp_ep *ep, const struct shrimp_send *s,
			   int err)
{
	struct shrimp_comp_err e = {
		.c = { .context = s->context,
		       .flags = comp_flags(s),
		       .len = s->len,
		       .tag = s->tag,
		       .src = FI_ADDR_NOTAVAIL },
		.err = err,
		.prov_errno = err,
	};

	if (!unheard(ep, s, err))
		shrimp_cq_write_err(ep->tx_cq, &e);
}

void shrimp_tx_rma_error(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
			 const struct shrimp_rma_failure *f)
{
	const struct fi_shrimp_access_error d = {
		.key = f->key,
		.addr = f->addr,
		.len = f->len,
		.pid = tp->peer->addr.pid,
		.err = (uint32_t)f->err,
	};
	struct shrimp_comp_err e = {
		.c = { .context = s->context,
		       .flags = comp_flags(s),
		       .len = f->moved,
		       .src = FI_ADDR_NOTAVAIL },
		.olen = s->len - f->moved,
		.err = f->err,
		.prov_errno = f->err,
		.err_data_size = sizeof(d),
	};

	memcpy(e.err_data, &d, sizeof(d));
	if (!unheard(tp->ep, s, f->err))
		shrimp_cq_write_err(tp->ep->tx_cq, &e);
}

void shrimp_tx_complete(struct shrimp_ep *ep, const struct shrimp_send *s,
			int err)
{
	struct shrimp_cntr *cntr = cntr_of(ep, s);
	struct shrimp_comp c;

	if (err) {
		complete_error(ep, s, err);
		return;
	}
	if (cntr)
		shrimp_cntr_add(cntr, 1);
	if (s->quiet || !ep->tx_cq)
		return;
	c = (struct shrimp_comp){ .context = s->context,
				  .flags = comp_flags(s),
				  .src = FI_ADDR_NOTAVAIL };
	shrimp_cq_write(ep->tx_cq, ep->sink, &c);
}

/* ---- operations ---- */

static int copy_iov(struct shrimp_op *op, const struct shrimp_send *s)
{
	struct iovec *iov = &op->one;

	if (s->niov > 1) {
		iov = malloc(s->niov * sizeof(*iov));
		if (!iov)
			return -FI_ENOMEM;
	}
	if (s->niov)
		memcpy(iov, s->iov, s->niov * sizeof(*iov));
	op->s.iov = iov;
	return 0;
}

static void free_iov(struct shrimp_op *op)
{
	if (op->s.iov != &op->one)
		free((void *)(uintptr_t)op->s.iov);
}

struct shrimp_op *shrimp_op_new(struct shrimp_tx_peer *tp,
				const struct shrimp_send *s)
{
	struct shrimp_op *op = shrimp_slab_get(&tp->ep->ops);

	if (!op)
		return NULL;
	op->s = *s;
	op->tp = tp;
	op->name = 0;
	op->heap_off = SHRIMP_NO_HEAP;
	op->want = op->sent = 0;
	op->descs = 0;
	op->state = SHRIMP_OP_QUEUED;
	op->counted = false;
	if (copy_iov(op, s)) {
		shrimp_slab_put(&tp->ep->ops, op);
		return NULL;
	}
	if (s->rma && shrimp_rma_keep(op)) {
		free_iov(op);
		shrimp_slab_put(&tp->ep->ops, op);
		return NULL;
	}
	if (s->rma) {
		tp->ep->rma_copied += op->s.rma->st->kept;
		tp->nrma++;
	}
	CDS_INIT_LIST_HEAD(&op->link);
	cds_list_add_tail(&op->all, &tp->ops);
	tp->nops++;
	shrimp_tx_activate(tp);
	return op;
}

void shrimp_op_free(struct shrimp_op *op)
{
	struct shrimp_ep *ep = op->tp->ep;

	if (op->state == SHRIMP_OP_QUEUED && !cds_list_empty(&op->link))
		ep->queued--;
	if (op->state == SHRIMP_OP_HELD || op->state == SHRIMP_OP_ANSWER)
		op->tp->answers--;
	cds_list_del(&op->link);
	cds_list_del(&op->all);
	op->tp->nops--;
	if (op->name)
		shrimp_names_del(&ep->op_names, op->name);
	if (op->heap_off != SHRIMP_NO_HEAP)
		rnic_heap_free(&ep->heap, op->heap_off);
	free_iov(op);
	if (op->s.rma) {
		ep->rma_copied -= op->s.rma->st->kept;
		op->tp->nrma--;
	}
	shrimp_rma_free(op->s.rma);
	shrimp_slab_put(&ep->ops, op);
}

void shrimp_tx_finish(struct shrimp_op *op, int err)
{
	if (!op->counted)
		shrimp_tx_complete(op->tp->ep, &op->s, err);
	shrimp_op_free(op);
}

/* Gives @op a name that the peer can answer to. */
static int name_op(struct shrimp_op *op)
{
	if (!op->name)
		op->name = shrimp_names_add(&op->tp->ep->op_names, op);
	return op->name ? 0 : -FI_ENOMEM;
}

/* ---- inject heap ---- */

static int heap_ready(struct shrimp_ep *ep)
{
	int ret;

	if (ep->place.heap)
		return 0;
	ret = rnic_place_heap(&ep->place);
	if (ret)
		return ret;
	return rnic_heap_init(&ep->heap, ep->domain->dev.hdr->heap_bytes,
			      ep->domain->set->tx_buffer,
			      rnic_place_heap_populate, &ep->place);
}

/* Copies the payload of @op into the heap. -FI_EAGAIN beyond the limit. */
static int to_heap(struct shrimp_op *op)
{
	struct shrimp_ep *ep = op->tp->ep;
	int ret = heap_ready(ep);

	if (!ret)
		ret = rnic_heap_alloc(&ep->heap, op->s.len, &op->heap_off);
	if (ret) {
		op->heap_off = SHRIMP_NO_HEAP;
		return ret == -EAGAIN ? -FI_EAGAIN : -FI_ENOMEM;
	}
	rnic_iov_gather(ep->place.heap + op->heap_off, op->s.iov, op->s.niov, 0,
			op->s.len);
	return 0;
}

/* A queued inject's payload leaves the caller's buffer. */
static int keep_payload(struct shrimp_op *op)
{
	if (op->s.len > RNIC_INLINE_MAX)
		return to_heap(op);
	rnic_iov_gather(op->small, op->s.iov, op->s.niov, 0, op->s.len);
	if (op->s.iov != &op->one && op->s.iov)
		free((void *)(uintptr_t)op->s.iov);
	op->one = (struct iovec){ .iov_base = op->small, .iov_len = op->s.len };
	op->s.iov = &op->one;
	op->s.niov = 1;
	return 0;
}

/* ---- chunks ---- */

static int pool_ready(struct shrimp_ep *ep)
{
	const struct rnic_header *h = ep->domain->dev.hdr;
	int ret;

	if (ep->place.pool)
		return 0;
	ret = rnic_pool_init(&ep->pool, h->pool_bytes, h->pool_large_off);
	if (ret)
		return ret;
	ret = rnic_place_pool(&ep->place);
	if (ret)
		rnic_pool_fini(&ep->pool);
	return ret;
}

uint32_t shrimp_tx_chunk(struct shrimp_tx_peer *tp, bool large)
{
	struct shrimp_ep *ep = tp->ep;
	const struct rnic_pool_geom *g = &ep->pool.geom;
	uint32_t chunk;

	if (ep->no_pool || pool_ready(ep)) {
		/* said once by whoever failed; payload takes other paths */
		ep->no_pool = true;
		return RNIC_CHUNK_NONE;
	}
	/* a destination holds at most a quarter */
	if (tp->chunks[large] >= (large ? g->nlarge : g->nsmall) / 4)
		return RNIC_CHUNK_NONE;
	chunk = rnic_pool_get(&ep->pool, large);
	if (chunk != RNIC_CHUNK_NONE)
		tp->chunks[large]++;
	return chunk;
}

void shrimp_tx_note(struct shrimp_tx_peer *tp, uint32_t seq, uint32_t chunk,
		    struct shrimp_op *op)
{
	assert(tp->retired == tp->lane.taken);
	tp->inflight[seq % RNIC_LANE_LINES] =
		(struct shrimp_inflight){ .chunk = chunk, .op = op };
	tp->inflight_bits |= UINT64_C(1) << seq % RNIC_LANE_LINES;
	if (op)
		op->descs++;
	shrimp_tx_activate(tp);
}

static void free_chunk(struct shrimp_tx_peer *tp, uint32_t chunk)
{
	bool large = chunk >= tp->ep->pool.geom.nsmall;

	tp->chunks[large]--;
	rnic_pool_put(&tp->ep->pool, chunk);
	/* another peer's stream may have waited for it */
	tp->ep->unsettled = true;
}

/* Line @i was consumed: its chunk is free, its op perhaps done. */
static void retire_line(struct shrimp_tx_peer *tp, uint32_t i)
{
	struct shrimp_inflight f = tp->inflight[i];

	tp->inflight_bits &= ~(UINT64_C(1) << i);
	if (f.chunk != RNIC_CHUNK_NONE)
		free_chunk(tp, f.chunk);
	if (f.op && !--f.op->descs && f.op->state == SHRIMP_OP_CONSUME)
		shrimp_tx_finish(f.op, 0);
}

void shrimp_tx_retire(struct shrimp_tx_peer *tp)
{
	if (!tp->inflight_bits) {
		tp->retired = tp->lane.taken;
		return;
	}
	for (; tp->retired != tp->lane.taken; tp->retired++) {
		uint32_t i = tp->retired % RNIC_LANE_LINES;

		if (tp->inflight_bits >> i & 1)
			retire_line(tp, i);
	}
}

uint32_t shrimp_tx_room(struct shrimp_tx_peer *tp)
{
	uint32_t room = rnic_lane_room(&tp->lane);

	if (room)
		return room;
	rnic_lane_refresh(&tp->lane);
	shrimp_tx_retire(tp);
	return rnic_lane_room(&tp->lane);
}

/* ---- publication ---- */

/* Writes what all descriptors have; the line is ours until published. */
static struct rnic_desc *begin(struct shrimp_tx_peer *tp,
			       const struct shrimp_send *s)
{
	struct rnic_desc *d = rnic_lane_slot(&tp->lane);

	/* relaxed: published by L1 */
	rnic_store64_relaxed(&d->tag, s->tag);
	rnic_store64_relaxed(&d->data, s->data);
	return d;
}

static void publish(struct shrimp_tx_peer *tp, struct rnic_desc *d,
		    enum rnic_desc_kind kind, unsigned int flags, size_t len)
{
	if (rnic_lane_publish(&tp->lane, d, kind, flags, len))
		shrimp_tx_ring(tp);
}

static unsigned int ack_flags(const struct shrimp_send *s)
{
	if (s->level == SHRIMP_LEVEL_DELIVERY)
		return RNIC_DESC_ACK_DONE;
	return s->level == SHRIMP_LEVEL_MATCH ? RNIC_DESC_ACK_MATCH : 0;
}

/* The op a tracked message needs: @op or a new one, named. */
static struct shrimp_op *tracked_op(struct shrimp_tx_peer *tp,
				    const struct shrimp_send *s,
				    struct shrimp_op *op)
{
	struct shrimp_op *o = op ? op : shrimp_op_new(tp, s);

	if (o && name_op(o)) {
		if (!op)
			shrimp_op_free(o);
		return NULL;
	}
	return o;
}

void shrimp_op_unqueue(struct shrimp_op *op)
{
	if (op->state != SHRIMP_OP_QUEUED || cds_list_empty(&op->link))
		return;
	op->tp->ep->queued--;
	cds_list_del_init(&op->link);
}

static void set_state(struct shrimp_op *op, enum shrimp_op_state state)
{
	shrimp_op_unqueue(op);
	if (state == SHRIMP_OP_HELD || state == SHRIMP_OP_ANSWER)
		op->tp->answers++;
	op->state = state;
}

/* Published whole in the receiver's memory: done, or waits for its word. */
static void done_or_answer(struct shrimp_tx_peer *tp,
			   const struct shrimp_send *s, struct shrimp_op *op)
{
	if (ack_flags(s))
		set_state(op, SHRIMP_OP_ANSWER);
	else if (op)
		shrimp_tx_finish(op, 0);
	else
		shrimp_tx_complete(tp->ep, s, 0);
}

static int publish_inline(struct shrimp_tx_peer *tp,
			  const struct shrimp_send *s, struct shrimp_op *op)
{
	struct rnic_desc *d = begin(tp, s);

	rnic_iov_gather(d->payload, s->iov, s->niov, 0, s->len);
	publish(tp, d, RNIC_DESC_INLINE, s->desc_flags, s->len);
	shrimp_ep_count_tx(tp->ep, FI_SHRIMP_PATH_INLINE, s->len);
	done_or_answer(tp, s, op);
	return 0;
}

/* Into the byte ring at @to, which rnic_lane_bytes() gave. */
static int publish_ring(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
			struct shrimp_op *op, uint8_t *to)
{
	struct rnic_desc *d = begin(tp, s);

	d->ext.total = s->len;
	d->ext.op = op ? op->name : 0;
	rnic_iov_gather(to, s->iov, s->niov, 0, s->len);
	publish(tp, d, RNIC_DESC_RING, s->desc_flags | ack_flags(s), s->len);
	shrimp_ep_count_tx(tp->ep, FI_SHRIMP_PATH_RING, s->len);
	done_or_answer(tp, s, op);
	return 0;
}

static uint32_t chunk_size(bool large)
{
	return large ? RNIC_POOL_LARGE : RNIC_POOL_SMALL;
}

/* Fills @chunk with bytes @off.. of the message and publishes it. */
static void publish_chunk(struct shrimp_tx_peer *tp,
			  const struct shrimp_send *s, struct shrimp_op *op,
			  uint32_t chunk, size_t off)
{
	struct shrimp_ep *ep = tp->ep;
	bool large = chunk >= ep->pool.geom.nsmall;
	size_t len = s->len - off;
	struct rnic_desc *d = begin(tp, s);
	enum rnic_desc_kind kind = RNIC_DESC_NEXT;
	uint64_t at = 0;

	if (len > chunk_size(large))
		len = chunk_size(large);
	if (!off)
		kind = len == s->len ? RNIC_DESC_CHUNK : RNIC_DESC_FIRST;
	rnic_pool_locate(&ep->pool.geom, chunk, (uint32_t)len, &at);
	rnic_iov_gather(ep->place.pool + at, s->iov, s->niov, off, len);
	d->ext = (struct rnic_desc_ext){ .total = s->len,
					 .chunk = chunk,
					 .chunk_len = (uint32_t)len,
					 .op = op ? op->name : 0 };
	shrimp_tx_note(tp, tp->lane.seq, chunk, op);
	publish(tp, d, kind, s->desc_flags | ack_flags(s), 0);
}

/* Takes the @n chunks a message needs, all or none. */
static bool take_chunks(struct shrimp_tx_peer *tp, bool large, uint32_t n,
			uint32_t *chunk)
{
	for (uint32_t i = 0; i < n; i++) {
		chunk[i] = shrimp_tx_chunk(tp, large);
		if (chunk[i] != RNIC_CHUNK_NONE)
			continue;
		while (i--)
			free_chunk(tp, chunk[i]);
		return false;
	}
	return true;
}

/* The state of an op whose chunks are all published. */
static void eager_done(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		       struct shrimp_op *op)
{
	if (ack_flags(s)) {
		set_state(op, SHRIMP_OP_ANSWER);
		return;
	}
	if (!op) {
		shrimp_tx_complete(tp->ep, s, 0);
		return;
	}
	set_state(op, SHRIMP_OP_CONSUME);
	if (!op->descs)
		shrimp_tx_finish(op, 0);
}

enum { EAGER_DESCS = 65536 / RNIC_POOL_LARGE }; /* of the largest message */

/* Through the pool, if chunks and lines are there. Else -FI_EAGAIN. */
static int publish_eager(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
			 struct shrimp_op *op)
{
	bool large = s->len > 4 * RNIC_POOL_SMALL;
	uint32_t n = (uint32_t)((s->len + chunk_size(large) - 1) /
				chunk_size(large));
	uint32_t chunk[EAGER_DESCS];
	bool fresh = false;

	if (n > shrimp_tx_room(tp) || !take_chunks(tp, large, n, chunk))
		return -FI_EAGAIN;
	/*
	 * Complete at publication if the receiver has mapped the pool
	 * (relaxed: the flag never goes back), or if only the buffer counts;
	 * else when consumed.
	 */
	if (!op && (ack_flags(s) ||
		    (s->level != SHRIMP_LEVEL_INJECT && !s->no_context &&
		     !rnic_load32_relaxed(&tp->lane.sh->flag.mapped)))) {
		op = shrimp_op_new(tp, s);
		fresh = true;
	}
	if ((fresh && !op) || (ack_flags(s) && name_op(op))) {
		for (uint32_t i = 0; i < n; i++)
			free_chunk(tp, chunk[i]);
		if (fresh && op)
			shrimp_op_free(op);
		return -FI_ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		publish_chunk(tp, s, op, chunk[i],
			      (size_t)i * chunk_size(large));
	shrimp_ep_count_tx(tp->ep, FI_SHRIMP_PATH_POOL, s->len);
	eager_done(tp, s, op);
	return 0;
}

/* A descriptor alone: the payload stays in the heap or with the user. */
static int publish_held(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
			struct shrimp_op *op)
{
	struct shrimp_op *o = tracked_op(tp, s, op);
	enum rnic_desc_kind kind = RNIC_DESC_HELD;
	struct rnic_desc *d;
	int ret = 0;

	if (!o)
		return -FI_ENOMEM;
	if (s->inject && o->heap_off == SHRIMP_NO_HEAP)
		ret = to_heap(o);
	if (ret) {
		if (!op)
			shrimp_op_free(o);
		return ret;
	}
	d = begin(tp, s);
	if (o->heap_off != SHRIMP_NO_HEAP)
		kind = RNIC_DESC_HEAP;
	d->ext = (struct rnic_desc_ext){
		.total = s->len,
		.chunk = RNIC_CHUNK_NONE,
		.op = o->name,
		.heap_off = o->heap_off,
		.va = s->niov == 1 ? (uintptr_t)s->iov->iov_base : 0,
	};
	set_state(o,
		  kind == RNIC_DESC_HELD ? SHRIMP_OP_HELD : SHRIMP_OP_ANSWER);
	publish(tp, d, kind, s->desc_flags | ack_flags(s), 0);
	rnic_count64(&tp->ep->stats->held, 1);
	shrimp_ep_count_tx(tp->ep,
			   kind == RNIC_DESC_HELD ? FI_SHRIMP_PATH_STREAM
						  : FI_SHRIMP_PATH_HEAP,
			   s->len);
	if (s->level == SHRIMP_LEVEL_INJECT && kind == RNIC_DESC_HEAP &&
	    !o->counted) {
		shrimp_tx_complete(tp->ep, s, 0);
		o->counted = true;
	}
	return 0;
}

/* Small enough for the byte ring, and room there: publishes, else EAGAIN. */
static int try_ring(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		    struct shrimp_op *op)
{
	struct shrimp_op *o = op;
	uint8_t *to;

	if (s->len > RNIC_RING_MSG_MAX)
		return -FI_EAGAIN;
	if (ack_flags(s)) {
		o = tracked_op(tp, s, op);
		if (!o)
			return -FI_ENOMEM;
	}
	to = shrimp_tx_bytes(tp, s->len);
	if (to)
		return publish_ring(tp, s, o, to);
	if (o != op)
		shrimp_op_free(o);
	return -FI_EAGAIN;
}

int shrimp_tx_publish(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		      struct shrimp_op *op)
{
	int ret = -FI_EAGAIN;

	if (s->rma)
		return shrimp_rma_run(tp, s, op);
	if (!shrimp_tx_room(tp))
		return -FI_EAGAIN;
	if (op && op->heap_off != SHRIMP_NO_HEAP)
		return publish_held(tp, s, op);
	if (s->len <= RNIC_INLINE_MAX && !ack_flags(s))
		return publish_inline(tp, s, op);
	/* relaxed: a hint, see the table of words */
	if (!rnic_load32_relaxed(&tp->lane.sh->flag.over_budget)) {
		ret = try_ring(tp, s, op);
		if (ret == -FI_EAGAIN && s->len &&
		    s->len <= tp->ep->domain->set->eager_max)
			ret = publish_eager(tp, s, op);
	}
	return ret == -FI_EAGAIN ? publish_held(tp, s, op) : ret;
}

/* ---- the call ---- */

void shrimp_tx_settle(struct shrimp_tx_peer *tp)
{
	tp->fast = tp->state == SHRIMP_TX_LIVE && !tp->self &&
		   cds_list_empty(&tp->queue) && cds_list_empty(&tp->asking);
}

struct shrimp_op *shrimp_tx_enqueue_first(struct shrimp_tx_peer *tp,
					  const struct shrimp_send *s)
{
	struct shrimp_op *op = shrimp_op_new(tp, s);

	if (!op)
		return NULL;
	cds_list_add(&op->link, &tp->queue);
	tp->ep->queued++;
	tp->fast = false;
	return op;
}

static int enqueue(struct shrimp_tx_peer *tp, const struct shrimp_send *s)
{
	struct shrimp_ep *ep = tp->ep;
	struct shrimp_op *op;
	int ret;

	if (s->rma && (tp->nrma >= SHRIMP_RMA_QUEUE_MAX ||
		       (s->inject &&
			ep->rma_copied + s->len > ep->domain->set->tx_buffer)))
		return -FI_EAGAIN;
	op = shrimp_op_new(tp, s);
	if (!op)
		return -FI_ENOMEM;
	ret = s->inject && !s->rma ? keep_payload(op) : 0;
	if (ret) {
		shrimp_op_free(op);
		return ret;
	}
	cds_list_add_tail(&op->link, &tp->queue);
	tp->ep->queued++;
	tp->fast = false;
	rnic_count64(&tp->ep->stats->queued, 1);
	return 0;
}

static bool must_queue(struct shrimp_tx_peer *tp, const struct shrimp_send *s)
{
	return tp->state != SHRIMP_TX_LIVE || !cds_list_empty(&tp->queue) ||
	       !cds_list_empty(&tp->asking) || (s->fence && tp->nops);
}

/* The peer is gone: tell whoever can be told. */
static ssize_t send_down(struct shrimp_tx_peer *tp, const struct shrimp_send *s)
{
	struct shrimp_cntr *c = cntr_of(tp->ep, s);

	if (s->no_context || !tp->ep->tx_cq) {
		if (c)
			shrimp_cntr_add_err(c, 1);
		return -tp->error;
	}
	shrimp_tx_complete(tp->ep, s, tp->error);
	return 0;
}

static ssize_t send_to(struct shrimp_tx_peer *tp, const struct shrimp_send *s)
{
	int ret = -FI_EAGAIN;

	shrimp_tx_look_closed(tp);
	if (tp->state == SHRIMP_TX_DOWN)
		return send_down(tp, s);
	if (shrimp_tx_full(tp->ep))
		return -FI_EAGAIN;
	if (!must_queue(tp, s))
		ret = shrimp_tx_publish(tp, s, NULL);
	if (ret == -FI_EAGAIN)
		ret = enqueue(tp, s);
	return ret;
}

static ssize_t give(struct shrimp_ep *ep, struct shrimp_tx_peer *tp,
		    const struct shrimp_send *s)
{
	if (!tp->self)
		return send_to(tp, s);
	if (!s->rma)
		return cds_list_empty(&tp->queue) ? shrimp_rx_self(ep, tp, s)
						  : enqueue(tp, s);
	/* behind messages that wait */
	if (!cds_list_empty(&tp->queue) || shrimp_tx_full(ep))
		return -FI_EAGAIN;
	return shrimp_rma_run(tp, s, NULL);
}

ssize_t shrimp_tx_send(struct shrimp_ep *ep, fi_addr_t dest,
		       const struct shrimp_send *s)
{
	struct shrimp_tx_peer *tp = dest < ep->ntx ? ep->tx[dest] : NULL;
	ssize_t ret = 0;

	if (!tp)
		ret = shrimp_tx_contact(ep, dest, &tp);
	if (!ret && tp->state == SHRIMP_TX_DOWN)
		ret = shrimp_tx_again(ep, dest, &tp);
	if (ret)
		return ret;
	ret = give(ep, tp, s);
	if (ret == -FI_EAGAIN) {
		/* a client may only ever retry: look what has come free */
		shrimp_tx_progress(ep);
		/* a service may have turned out to be another destination */
		tp = ep->tx[dest];
		ret = give(ep, tp, s);
	}
	if (ret == -FI_EAGAIN)
		rnic_count64(&ep->stats->eagain, 1);
	return ret;
}
