/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Destinations: first contact, service names, failure, parking, leaving.
 *
 * Exclusion: the endpoint's lock. First contact happens inside the send that
 * needs it: two threads of an endpoint cannot claim two lanes to one peer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/av.h"
#include "lib/domain.h"
#include "lib/peer.h"
#include "lib/rma.h"
#include "lib/rx.h"
#include "lib/service.h"
#include "lib/tx.h"
#include "shm/fence.h"
#include "shm/log.h"

enum {
	RESOLVE_TIMEOUT_MS = 5000, /* a service nobody offers */
	GROW_MIN = 64,		   /* first size of a table */
};

/* Makes room for index @i in a table of pointers; the new part is NULL. */
static int grow(struct shrimp_tx_peer ***tab, size_t *n, size_t i)
{
	size_t want = *n ? *n : GROW_MIN;
	struct shrimp_tx_peer **t;

	if (i < *n)
		return 0;
	while (want <= i)
		want *= 2;
	t = realloc(*tab, want * sizeof(*t));
	if (!t)
		return -FI_ENOMEM;
	memset(t + *n, 0, (want - *n) * sizeof(*t));
	*tab = t;
	*n = want;
	return 0;
}

struct shrimp_tx_peer *shrimp_tx_by_id(const struct shrimp_ep *ep, uint32_t id)
{
	return id < ep->nby_peer ? ep->by_peer[id] : NULL;
}

static struct shrimp_tx_peer *tx_new(struct shrimp_ep *ep,
				     struct shrimp_peer *peer)
{
	struct shrimp_tx_peer *tp;

	if (grow(&ep->by_peer, &ep->nby_peer, peer->id))
		return NULL;
	tp = calloc(1, sizeof(*tp));
	if (!tp)
		return NULL;
	tp->ep = ep;
	tp->peer = peer;
	tp->conn = -1;
	CDS_INIT_LIST_HEAD(&tp->queue);
	CDS_INIT_LIST_HEAD(&tp->streams);
	CDS_INIT_LIST_HEAD(&tp->asking);
	CDS_INIT_LIST_HEAD(&tp->ops);
	ep->by_peer[peer->id] = tp;
	return tp;
}

/* The FI_ code of what attaching said. */
static int attach_error(int ret)
{
	switch (ret) {
	case -ESRCH:
	case -ESTALE:
	case -ECONNREFUSED:
	case -ECONNRESET:
		return FI_ECONNRESET;
	default:
		return -ret;
	}
}

/* Attached: claims a lane; the peer is LIVE, or down. */
static void go_live(struct shrimp_tx_peer *tp)
{
	struct shrimp_ep *ep = tp->ep;
	struct rnic_lane *lane;
	int ret = -ENOMEM;

	tp->remote->unfenced = !ep->domain->dev.fenced;
	tp->inflight = calloc(RNIC_LANE_LINES, sizeof(*tp->inflight));
	if (tp->inflight)
		ret = rnic_remote_claim(tp->remote, &ep->addr, &lane,
					&tp->index);
	if (ret) {
		shrimp_tx_fail(tp, attach_error(ret));
		return;
	}
	rnic_lane_tx_init(&tp->lane, lane, tp->index,
			  ep->domain->set->lane_lines, tp->remote->fence);
	tp->retired = tp->lane.taken;
	tp->state = SHRIMP_TX_LIVE;
	shrimp_tx_settle(tp);
	/* what was queued meanwhile can go now */
	ep->unsettled = true;
	rnic_count64(&ep->stats->peers, 1);
	rnic_count64(tp->remote->by_socket ? &ep->stats->attach_socket
					   : &ep->stats->attach_proc,
		     1);
	/* the new lane is parked: tells the receiver that it exists */
	shrimp_tx_ring(tp);
}

static void attach(struct shrimp_tx_peer *tp)
{
	enum rnic_attach_mode mode =
		(enum rnic_attach_mode)tp->ep->domain->set->attach;
	int ret = rnic_remote_open(&tp->peer->addr, mode, &tp->remote);

	tp->state = SHRIMP_TX_ATTACH;
	if (!ret)
		go_live(tp);
	else if (ret == -EINPROGRESS)
		shrimp_tx_activate(tp);
	else
		shrimp_tx_fail(tp, attach_error(ret));
}

static bool is_self(const struct shrimp_tx_peer *tp)
{
	return !memcmp(&tp->peer->addr, &tp->ep->addr, sizeof(tp->ep->addr));
}

static void begin(struct shrimp_tx_peer *tp)
{
	if (tp->peer->addr.kind == RNIC_ADDR_SERVICE) {
		tp->state = SHRIMP_TX_RESOLVE;
		tp->deadline_ms = shrimp_now_ms() + RESOLVE_TIMEOUT_MS;
		shrimp_tx_activate(tp);
	} else if (is_self(tp)) {
		tp->state = SHRIMP_TX_LIVE;
		tp->self = true;
	} else {
		attach(tp);
	}
}

/*
 * An error that says nothing of the peer: what was short (descriptors, memory,
 * lanes, time) may be there again.
 */
static bool has_passed(int err)
{
	return err != FI_ECONNRESET && err != FI_EACCES && err != EPROTO &&
	       err != EPROTONOSUPPORT;
}

/* @tp is down. True: there was another try, and it is not any more. */
static bool revive(struct shrimp_tx_peer *tp)
{
	if (!has_passed(tp->error))
		return false;
	begin(tp);
	return tp->state != SHRIMP_TX_DOWN;
}

int shrimp_tx_contact(struct shrimp_ep *ep, fi_addr_t dest,
		      struct shrimp_tx_peer **out)
{
	struct shrimp_peer *peer = shrimp_av_peer(ep->av, dest);
	struct shrimp_tx_peer *tp;

	if (!peer)
		return -FI_EINVAL;
	peer = shrimp_peer_real(peer);
	if (grow(&ep->tx, &ep->ntx, dest))
		return -FI_ENOMEM;
	tp = shrimp_tx_by_id(ep, peer->id);
	if (!tp) {
		tp = tx_new(ep, peer);
		if (!tp)
			return -FI_ENOMEM;
		begin(tp);
	}
	ep->tx[dest] = tp;
	*out = tp;
	return 0;
}

int shrimp_tx_again(struct shrimp_ep *ep, fi_addr_t dest,
		    struct shrimp_tx_peer **tp)
{
	struct shrimp_peer *name = shrimp_av_peer(ep->av, dest);
	struct shrimp_tx_peer *old = *tp;

	if (!name)
		return 0;
	if (name->addr.kind != RNIC_ADDR_SERVICE) {
		revive(old);
		return 0;
	}
	if (old->peer == name) {
		/* nobody offered it then; perhaps somebody does now */
		begin(old);
		return 0;
	}
	/* P1, as in resolved() */
	rnic_ptr_store_release(&name->alias, NULL);
	ep->by_peer[name->id] = NULL;
	for (size_t i = 0; i < ep->ntx; i++)
		if (ep->tx[i] == old)
			ep->tx[i] = NULL;
	return shrimp_tx_contact(ep, dest, tp);
}

struct shrimp_tx_peer *shrimp_tx_self(struct shrimp_ep *ep)
{
	struct shrimp_peer *peer;
	struct shrimp_tx_peer *tp;

	if (RNIC_LIKELY(ep->self != NULL))
		return ep->self;
	peer = shrimp_peer_intern(&ep->domain->peers, &ep->addr);
	if (!peer)
		return NULL;
	tp = shrimp_tx_by_id(ep, peer->id);
	if (!tp) {
		tp = tx_new(ep, peer);
		if (tp)
			begin(tp);
	}
	ep->self = tp;
	return tp;
}

/* Queued operations of @from move behind those of @to. */
static void move_queue(struct shrimp_tx_peer *from, struct shrimp_tx_peer *to)
{
	struct shrimp_op *op, *next;

	cds_list_for_each_entry_safe (op, next, &from->queue, link) {
		cds_list_del(&op->link);
		cds_list_del(&op->all);
		cds_list_add_tail(&op->link, &to->queue);
		cds_list_add_tail(&op->all, &to->ops);
		op->tp = to;
		from->nops--;
		to->nops++;
		if (op->s.rma) {
			from->nrma--;
			to->nrma++;
		}
	}
	shrimp_tx_settle(to);
	shrimp_tx_activate(to);
	to->ep->unsettled = true;
	/* now: later sends to itself do not look at the queue */
	if (to->self)
		shrimp_tx_flush_self(to);
}

/* The service @tp names is the endpoint @addr. */
static void resolved(struct shrimp_tx_peer *tp, const struct rnic_addr *addr)
{
	struct shrimp_ep *ep = tp->ep;
	struct shrimp_peer *name = tp->peer;
	struct shrimp_peer *real;
	struct shrimp_tx_peer *known;

	real = shrimp_peer_intern(&ep->domain->peers, addr);
	if (!real || grow(&ep->by_peer, &ep->nby_peer, real->id)) {
		shrimp_tx_fail(tp, FI_ENOMEM);
		return;
	}
	known = ep->by_peer[real->id];
	if (known && known->state == SHRIMP_TX_DOWN && !revive(known)) {
		/* nothing moves there; the next send asks for the name again */
		shrimp_tx_fail(tp, known->error);
		return;
	}
	/* P1: publishes the peer; pairs with shrimp_peer_real() */
	rnic_ptr_store_release(&name->alias, real);
	shrimp_rx_rename(ep, name->id, real->id);
	if (!known) {
		ep->by_peer[real->id] = tp;
		tp->peer = real;
		begin(tp);
		if (tp->self)
			shrimp_tx_flush_self(tp);
		return;
	}
	move_queue(tp, known);
	ep->by_peer[name->id] = known;
	for (size_t i = 0; i < ep->ntx; i++)
		if (ep->tx[i] == tp)
			ep->tx[i] = known;
	if (tp->in_active)
		cds_list_del(&tp->active);
	free(tp);
}

static void resolve(struct shrimp_tx_peer *tp)
{
	struct rnic_addr addr;
	int ret = shrimp_service_try(tp->peer->addr.service, &tp->conn, &addr);

	if (!ret)
		resolved(tp, &addr);
	else if (ret != -FI_EAGAIN)
		shrimp_tx_fail(tp, -ret);
	else if (shrimp_now_ms() > tp->deadline_ms)
		shrimp_tx_fail(tp, FI_ECONNREFUSED);
}

void shrimp_tx_connect(struct shrimp_tx_peer *tp)
{
	int ret;

	if (tp->state == SHRIMP_TX_RESOLVE) {
		resolve(tp);
		return;
	}
	ret = rnic_remote_poll(tp->remote);
	if (!ret)
		go_live(tp);
	else if (ret != -EINPROGRESS)
		shrimp_tx_fail(tp, attach_error(ret));
}

/* Forgets what lines of the ring hold; their chunks are free again. */
static void drop_inflight(struct shrimp_tx_peer *tp)
{
	struct shrimp_ep *ep = tp->ep;

	for (uint32_t i = 0; i < RNIC_LANE_LINES; i++) {
		struct shrimp_inflight *f = &tp->inflight[i];

		if (!(tp->inflight_bits >> i & 1))
			continue;
		if (f->chunk != RNIC_CHUNK_NONE) {
			tp->chunks[f->chunk >= ep->pool.geom.nsmall]--;
			rnic_pool_put(&ep->pool, f->chunk);
		}
	}
	tp->inflight_bits = 0;
}

/* Gives back what belongs to a living peer: lane, windows, process. */
static void release(struct shrimp_tx_peer *tp)
{
	tp->asks.n = 0;
	shrimp_rma_release(tp);
	if (tp->lane.sh)
		rnic_remote_unmap_lane(tp->lane.sh);
	tp->lane.sh = NULL;
	rnic_remote_close(tp->remote);
	tp->remote = NULL;
	free(tp->inflight);
	tp->inflight = NULL;
	if (tp->conn >= 0)
		close(tp->conn);
	tp->conn = -1;
}

void shrimp_tx_fail(struct shrimp_tx_peer *tp, int err)
{
	struct shrimp_op *op, *next;

	if (tp->state == SHRIMP_TX_DOWN)
		return;
	if (tp->state == SHRIMP_TX_LIVE) {
		/* a last look: what was consumed was received */
		rnic_lane_refresh(&tp->lane);
		shrimp_tx_retire(tp);
		/* before the lane is left: it may have a new sender then */
		shrimp_rma_release(tp);
		/* the lane is left: its owner, if it lives, may reuse it */
		rnic_store32_release(&tp->lane.sh->tx_state, RNIC_TX_CLOSED);
		rnic_count64(&tp->ep->stats->resets, 1);
	}
	tp->state = SHRIMP_TX_DOWN;
	tp->error = err;
	/* its chunks are for others */
	tp->ep->unsettled = true;
	tp->fast = false;
	drop_inflight(tp);
	cds_list_for_each_entry_safe (op, next, &tp->ops, all)
		shrimp_tx_finish(op, err);
	release(tp);
}

static bool peer_gone(const struct shrimp_tx_peer *tp)
{
	if (tp->self || !tp->remote || !tp->remote->proc)
		return false;
	if (rnic_proc_dead(tp->remote->proc))
		return true;
	return tp->state == SHRIMP_TX_LIVE && rnic_remote_closed(tp->remote);
}

void shrimp_tx_reap(struct shrimp_ep *ep)
{
	for (size_t i = 0; i < ep->nby_peer; i++) {
		struct shrimp_tx_peer *tp = ep->by_peer[i];

		if (tp && tp->state != SHRIMP_TX_DOWN && peer_gone(tp))
			shrimp_tx_gone(tp);
	}
}

void shrimp_tx_park(struct shrimp_ep *ep, bool on)
{
	struct shrimp_tx_peer *tp;

	cds_list_for_each_entry (tp, &ep->active, active)
		if (tp->state == SHRIMP_TX_LIVE && !tp->self)
			/* relaxed: ordered by the caller's fence */
			rnic_store32_relaxed(&tp->lane.sh->tx_parked, on);
}

/*
 * The client believes that these have left: injects, and sends whose
 * completion it has seen. Others are dropped with the endpoint.
 */
static bool owes(struct shrimp_tx_peer *tp)
{
	struct shrimp_op *op;

	for (uint32_t i = 0; i < RNIC_LANE_LINES; i++)
		if (tp->inflight_bits >> i & 1 && !tp->inflight[i].op)
			return true;
	cds_list_for_each_entry (op, &tp->ops, all)
		if (op->s.no_context || op->s.inject || op->counted)
			return true;
	return false;
}

bool shrimp_tx_lingers(struct shrimp_ep *ep)
{
	struct shrimp_tx_peer *tp;

	cds_list_for_each_entry (tp, &ep->active, active) {
		if (tp->state == SHRIMP_TX_DOWN || tp->self)
			continue;
		if (owes(tp))
			return true;
	}
	return false;
}

static void tx_free(struct shrimp_tx_peer *tp)
{
	struct shrimp_op *op, *next;

	/* a reader that is slow must not find other bytes there */
	if (tp->state == SHRIMP_TX_LIVE && !tp->self &&
	    (tp->inflight_bits || tp->nops))
		tp->ep->place.keep = true;
	if (tp->state == SHRIMP_TX_LIVE && tp->lane.sh) {
		/* before the lane is left: it may have a new sender then */
		shrimp_rma_release(tp);
		/* R2: after the last descriptor; pairs with lane_left() */
		rnic_store32_release(&tp->lane.sh->tx_state, RNIC_TX_CLOSED);
		shrimp_tx_ring(tp);
	}
	cds_list_for_each_entry_safe (op, next, &tp->ops, all)
		shrimp_op_free(op);
	release(tp);
	free(tp);
}

void shrimp_tx_fini(struct shrimp_ep *ep)
{
	for (size_t i = 0; i < ep->nby_peer; i++) {
		struct shrimp_tx_peer *tp = ep->by_peer[i];

		if (!tp)
			continue;
		/* a service name and its endpoint share one */
		for (size_t j = i; j < ep->nby_peer; j++)
			if (ep->by_peer[j] == tp)
				ep->by_peer[j] = NULL;
		tx_free(tp);
	}
	free(ep->by_peer);
	free(ep->tx);
	if (ep->place.pool)
		rnic_pool_fini(&ep->pool);
	if (ep->place.heap)
		rnic_heap_fini(&ep->heap);
	shrimp_names_fini(&ep->op_names);
	shrimp_slab_fini(&ep->ops);
}

/* It has happened; only its events are not yet sent. */
static bool is_done(const struct shrimp_op *op)
{
	return op->s.rma && op->s.rma->st->done;
}

/* Only what is not published can be taken back. */
int shrimp_tx_cancel(struct shrimp_ep *ep, void *context)
{
	for (size_t i = 0; i < ep->nby_peer; i++) {
		struct shrimp_op *op;

		if (!ep->by_peer[i])
			continue;
		cds_list_for_each_entry (op, &ep->by_peer[i]->queue, link) {
			if (op->s.context != context || op->s.no_context ||
			    is_done(op))
				continue;
			shrimp_tx_finish(op, FI_ECANCELED);
			return 0;
		}
	}
	return -FI_ENOENT;
}
