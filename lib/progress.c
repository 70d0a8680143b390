/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Progress: what every polling call does, and the slow looks in between.
 *
 * Exclusion: the endpoint's lock. Waits: none. Sleeping is the caller's; the
 * order of arm() is argued there.
 */
#include "lib/progress.h"

#include <sched.h>

#include "lib/agent.h"
#include "lib/cntr.h"
#include "lib/domain.h"
#include "lib/mr.h"
#include "lib/rx.h"
#include "lib/service.h"
#include "lib/settings.h"
#include "lib/tx.h"
#include "shm/breakage.h"
#include "shm/fence.h"
#include "shm/proc.h"
#include "shm/topo.h"

enum {
	SLOW_POLLS = 512, /* polls between two looks at the clock */
	SLOW_MS = 20,	  /* deaths, attach requests: at most so late */
	SCAN_MS = 500,	  /* the lane directory */
	HOT_FREE = 8,	  /* so many hot lanes are polled for nothing */
	HOT_QUICK = 4,	  /* so many take the short way */
};

/*
 * Whoever else sleeps on this endpoint has to arm it again: the threads in
 * waits on its CQs and counters, and the agent.
 */
static void disturb(struct shrimp_ep *ep)
{
	if (ep->tx_cq)
		shrimp_wait_disturb(&ep->tx_cq->wait);
	if (ep->rx_cq && ep->rx_cq != ep->tx_cq)
		shrimp_wait_disturb(&ep->rx_cq->wait);
	for (size_t i = 0; i < ep->ncntrs; i++)
		shrimp_wait_disturb(&ep->cntrs[i]->wait);
	if (ep->agent)
		shrimp_agent_kick(ep->domain);
}

static void disarm(struct shrimp_ep *ep)
{
	ep->armed = false;
	/* relaxed: a ringer that still sees it writes a byte too many */
	rnic_store32_relaxed(&ep->place.head->sleeping, 0);
	shrimp_tx_park(ep, false);
	shrimp_rx_awake(ep);
	rnic_place_drain_pipe(&ep->place);
}

/* Idle lanes stop costing a look each. */
static void park_idle(struct shrimp_ep *ep)
{
	if (ep->nhot <= HOT_FREE || !ep->domain->dev.fenced)
		return;
	shrimp_rx_park(ep, false);
	if (rnic_fence_peers())
		return;
	shrimp_rx_pending(ep);
}

/* A process died: everything that waits for it ends. */
static void reap(struct shrimp_ep *ep)
{
	shrimp_rx_scan(ep);
	shrimp_tx_reap(ep);
	shrimp_rx_reap(ep);
}

/* What needs no look in every call. */
static void slow_look(struct shrimp_ep *ep)
{
	uint64_t now = shrimp_now_ms();

	ep->polls = 0;
	if (now - ep->slow_ms < SLOW_MS)
		return;
	ep->slow_ms = now;
	shrimp_mr_reap_try(ep->domain);
	rnic_remote_serve(&ep->domain->dev);
	if (ep->service_fd >= 0)
		shrimp_service_serve(ep->service_fd, &ep->addr);
	rnic_proc_poll();
	if (rnic_proc_generation() != ep->deaths) {
		ep->deaths = rnic_proc_generation();
		reap(ep);
	}
	if (now - ep->scan_ms < SCAN_MS)
		return;
	ep->scan_ms = now;
	shrimp_rx_scan(ep);
	shrimp_tx_reap(ep);
	park_idle(ep);
}

static bool progress(struct shrimp_ep *ep, struct shrimp_cq_sink *sink,
		     bool by_agent)
{
	size_t n;

	if (!ep->ready)
		return true;
	if (ep->armed) {
		disarm(ep);
		if (!by_agent)
			disturb(ep);
	}
	ep->sink = sink;
	ep->later = false;
	n = shrimp_rx_progress(ep, sink);
	/* relaxed: only a hint for sleepers, see shrimp_ep_arm() */
	if (!cds_list_empty(&ep->active))
		shrimp_tx_progress(ep);
	if (!cds_list_empty(&ep->pulls))
		shrimp_rx_pulls(ep);
	if (++ep->polls >= SLOW_POLLS)
		slow_look(ep);
	ep->sink = NULL;
	if (n)
		ep->empty = 0;
	else
		ep->empty++;
	return n;
}

bool shrimp_oversubscribed(void)
{
	return rnic_proc_alive() + 1 > rnic_topo_get()->cores;
}

/*
 * Nothing but a few lanes needs a look: the call that finds nothing is the
 * most frequent one and lies on the path of each message twice.
 */
static inline bool plain(struct shrimp_ep *ep)
{
	return ep->ready && !ep->armed && ep->nhot <= HOT_QUICK &&
	       ep->polls < SLOW_POLLS - 1 && ep->empty < ep->spin &&
	       cds_list_empty(&ep->active) && cds_list_empty(&ep->pulls) &&
	       /* relaxed: a bell missed now is seen in the next call */
	       !rnic_load64_relaxed(&ep->place.head->bell);
}

/* Progress with all it takes. True: time to give the CPU away. */
static bool full_progress(struct shrimp_ep *ep, struct shrimp_cq_sink *sink)
{
	if (progress(ep, sink, false) || ep->empty < ep->spin)
		return false;
	ep->empty = 0;
	/* a yield is a long time: look at the clock more often */
	ep->polls += SLOW_POLLS / 8;
	return true;
}

void shrimp_ep_progress(struct shrimp_ep *ep, struct shrimp_cq_sink *sink)
{
	bool yield = false;

	shrimp_ep_lock(ep);
	ep->burst = 0;
	if (RNIC_UNLIKELY(ep->agent))
		/* relaxed: the agent only wants to see it move */
		rnic_store32_relaxed(&ep->app_polls,
				     rnic_load32_relaxed(&ep->app_polls) + 1);
	if (RNIC_LIKELY(plain(ep) && shrimp_rx_quick(ep, sink)))
		ep->polls++;
	else
		yield = full_progress(ep, sink);
	shrimp_ep_unlock(ep);
	if (RNIC_UNLIKELY(yield) && shrimp_oversubscribed())
		sched_yield();
}

bool shrimp_ep_progress_agent(struct shrimp_ep *ep)
{
	bool some;

	shrimp_ep_lock(ep);
	some = progress(ep, NULL, true) && ep->ready;
	shrimp_ep_unlock(ep);
	return some;
}

bool shrimp_ep_waits(struct shrimp_ep *ep)
{
	bool waits;

	shrimp_ep_lock(ep);
	waits = ep->later;
	shrimp_ep_unlock(ep);
	return waits;
}

void shrimp_ep_leave_alone(struct shrimp_ep *ep)
{
	shrimp_ep_lock(ep);
	/* armed: what is in the pipe may be for a sleeping thread */
	if (ep->ready && !ep->armed)
		rnic_place_drain_pipe(&ep->place);
	shrimp_ep_unlock(ep);
}

/*
 * Store all flags, fence the senders, then look at everything: a sender that
 * published before the fence is seen by the look, one that publishes after it
 * sees the flags and rings. The fence is membarrier plus our own; where
 * senders fence by themselves our own full fence is enough.
 */
bool shrimp_ep_arm(struct shrimp_ep *ep)
{
	bool sleep = true;

	shrimp_ep_lock(ep);
	if (ep->ready) {
		ep->armed = true;
		rnic_store32_relaxed(&ep->place.head->sleeping, 1);
		shrimp_rx_park(ep, true);
		shrimp_tx_park(ep, true);
		rnic_fence_full();
		/* refused: whoever sleeps might not be woken */
		if (ep->domain->dev.fenced)
			sleep = !rnic_fence_peers();
		sleep = sleep &&
			(RNIC_BROKEN(last_look) || !shrimp_rx_pending(ep)) &&
			!shrimp_tx_pending(ep) &&
			/* relaxed: ringers are full barriers */
			!rnic_xchg64_seqcst(&ep->place.head->ret_bell, 0) &&
			rnic_proc_generation() == ep->deaths;
		if (sleep)
			rnic_count64(&ep->stats->sleeps, 1);
		else
			ep->polls = SLOW_POLLS;
	}
	shrimp_ep_unlock(ep);
	return sleep;
}

void shrimp_ep_disarm(struct shrimp_ep *ep)
{
	shrimp_ep_lock(ep);
	if (ep->armed) {
		disarm(ep);
		disturb(ep);
	}
	/* what woke us may be a death or an attach request */
	ep->polls = SLOW_POLLS;
	ep->slow_ms = 0;
	shrimp_ep_unlock(ep);
}
