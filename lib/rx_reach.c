/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The sender of a lane: whether it has left, and its memory.
 *
 * Exclusion: the endpoint's lock. A sender that lives is waited for, whatever
 * keeps its memory out of reach for now: what it has sent counts as arrived.
 */
#include "lib/rx.h"

#include <errno.h>

#include "lib/domain.h"
#include "lib/peer.h"

enum { RETRY_MS = 100 }; /* after an attach that failed */

bool shrimp_lane_left(const struct shrimp_rx_lane *l)
{
	if (!l->proc || rnic_proc_dead(l->proc))
		return true;
	/* R2: acquires the last descriptors; pairs with tx_free() */
	return rnic_load32_acquire(&l->rx.sh->tx_state) == RNIC_TX_CLOSED;
}

/* Begins to attach, or goes on. 0, -EINPROGRESS, or an error. */
static int attach_step(struct shrimp_rx_lane *l)
{
	struct shrimp_ep *ep = l->ep;
	struct shrimp_tx_peer *tp;

	if (l->remote)
		return rnic_remote_poll(l->remote);
	tp = shrimp_tx_by_id(ep, l->id);
	if (tp && tp->remote && tp->remote->head) {
		l->remote = rnic_remote_share(tp->remote);
		return 0;
	}
	return rnic_remote_open(&l->peer->addr,
				(enum rnic_attach_mode)ep->domain->set->attach,
				&l->remote);
}

int shrimp_lane_attach(struct shrimp_rx_lane *l)
{
	int ret = attach_step(l);

	if (!ret || ret == -EINPROGRESS)
		return ret;
	rnic_remote_close(l->remote);
	l->remote = NULL;
	l->retry_ms = shrimp_now_ms() + RETRY_MS;
	return ret;
}

/* The same for payload, which can wait: after a failure not at once. */
static int attach_again(struct shrimp_rx_lane *l)
{
	if (!l->remote && l->retry_ms && shrimp_now_ms() < l->retry_ms &&
	    !shrimp_lane_left(l))
		return -EINPROGRESS;
	return shrimp_lane_attach(l);
}

int shrimp_lane_pool(struct shrimp_rx_lane *l)
{
	int ret;

	if (l->remote && l->remote->pool)
		return 0;
	ret = attach_again(l);
	if (!ret)
		ret = rnic_remote_map_pool(l->remote);
	if (!ret)
		/* relaxed: a promise that nobody takes back */
		rnic_store32_relaxed(&l->rx.sh->flag.mapped, 1);
	return ret;
}

int shrimp_lane_heap(struct shrimp_rx_lane *l, uint64_t off, size_t len)
{
	int ret = attach_again(l);

	if (!ret)
		ret = rnic_remote_map_heap(l->remote);
	if (ret)
		return ret;
	/* by subtraction: the numbers come from a peer */
	return off > l->remote->heap_bytes || len > l->remote->heap_bytes - off
		       ? -EPROTO
		       : 0;
}

bool shrimp_lane_waits(const struct shrimp_rx_lane *l, int ret)
{
	switch (ret) {
	case -EINPROGRESS:
	case -ENOMEM:
	case -EMFILE:
		return true;
	case -EPROTO:
	case -EPROTONOSUPPORT:
	case -EACCES:
		/* not ours, or not for us: it will be the same next time */
		return false;
	default:
		return !shrimp_lane_left(l);
	}
}
