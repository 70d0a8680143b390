/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Fast registration: windows bound and invalidated on a transmit queue
 * (contract W2).
 *
 * Only what the endpoint has posted to itself can come before and name the key
 * of a window of its own: where such operations wait, the call asks to be made
 * again, else it is carried out in the call. Peers are told of the key by what
 * follows, in the order of the calls.
 *
 * An invalidation has taken effect for all later lookups when its call
 * returns; its completion says that nobody touches the memory any more. In the
 * call it looks once whether that is so, which it nearly always is. If a
 * reader is inside it is not waited for, since it might be stopped and the
 * endpoint's lock is held: the completion comes with later progress, or from
 * the agent, which is started for it and looks every millisecond.
 *
 * Exclusion: the endpoint's lock; mr_lock nests inside.
 */
#include <errno.h>
#include <rdma/fi_errno.h>

#include "include/rdma/fi_ext_shrimp.h"
#include "lib/agent.h"
#include "lib/cntr.h"
#include "lib/cq.h"
#include "lib/domain.h"
#include "lib/tx.h"
#include "lib/window.h"
#include "shm/breakage.h"
#include "shm/grace.h"
#include "shm/log.h"

#define POST_FLAGS                                                             \
	(FI_COMPLETION | FI_MORE | FI_FENCE | FI_INJECT_COMPLETE |             \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

/* ---- completions ---- */

/* @flag: FI_SHRIMP_REG or FI_SHRIMP_INVALIDATE. */
static void succeed(struct shrimp_ep *ep, void *context, bool quiet,
		    uint64_t flag)
{
	const struct shrimp_comp c = { .context = context,
				       .flags = flag,
				       .src = FI_ADDR_NOTAVAIL };

	if (ep->tx_cntr)
		shrimp_cntr_add(ep->tx_cntr, 1);
	if (!quiet && ep->tx_cq)
		shrimp_cq_write(ep->tx_cq, ep->sink, &c);
}

/* An invalidation whose fence could not be had, @err an FI_ code. */
static void fail(struct shrimp_ep *ep, void *context, int err)
{
	const struct shrimp_comp_err e = {
		.c = { .context = context,
		       .flags = FI_SHRIMP_INVALIDATE,
		       .src = FI_ADDR_NOTAVAIL },
		.err = err,
		.prov_errno = err,
	};

	if (ep->tx_cntr)
		shrimp_cntr_add_err(ep->tx_cntr, 1);
	if (ep->tx_cq)
		shrimp_cq_write_err(ep->tx_cq, &e);
	else
		rnic_log(RNIC_LOG_WARN, "posted invalidation failed: %s",
			 fi_strerror(err));
}

/* ---- order ---- */

/* Something of @ep is under way. */
static bool outstanding(struct shrimp_ep *ep)
{
	struct shrimp_tx_peer *tp;

	cds_list_for_each_entry (tp, &ep->active, active)
		if (tp->nops)
			return true;
	return !cds_list_empty(&ep->fencing);
}

/* 0 if it is its turn; else -FI_EAGAIN, or -FI_ENOMEM. */
static int turn(struct shrimp_ep *ep, uint64_t flags)
{
	struct shrimp_tx_peer *self = shrimp_tx_self(ep);

	if (!self)
		return -FI_ENOMEM;
	if (shrimp_tx_full(ep) || !cds_list_empty(&self->queue) ||
	    (flags & FI_FENCE && outstanding(ep)))
		return -FI_EAGAIN;
	return 0;
}

/* turn(), after a look at what may have moved. */
static int take_turn(struct shrimp_ep *ep, uint64_t flags)
{
	int ret = ep->ready ? turn(ep, flags) : -FI_EOPBADSTATE;

	if (ret != -FI_EAGAIN)
		return ret;
	shrimp_tx_progress(ep);
	ret = turn(ep, flags);
	if (ret == -FI_EAGAIN)
		rnic_count64(&ep->stats->eagain, 1);
	return ret;
}

static bool is_quiet(const struct shrimp_ep *ep, uint64_t flags)
{
	return ep->tx_selective && !(flags & FI_COMPLETION);
}

/* 0 if @fid and @w go together, and @flags are known. */
static int check(struct fid_ep *fid, const struct shrimp_window *w,
		 uint64_t flags)
{
	if (!fid || fid->fid.fclass != FI_CLASS_EP || !w ||
	    w->mr.domain != shrimp_ep_of(fid)->domain ||
	    flags & ~(uint64_t)POST_FLAGS)
		return -FI_EINVAL;
	return w->mr.domain->inherited ? -FI_EOPBADSTATE : 0;
}

/* ---- registration ---- */

ssize_t shrimp_window_post_reg(struct fid_ep *fid, struct fid_mr *mw,
			       const struct shrimp_binding *b, uint64_t flags,
			       void *context)
{
	struct shrimp_window *w = shrimp_window_of(mw);
	struct shrimp_ep *ep = shrimp_ep_of(fid);
	int ret = check(fid, w, flags);

	if (!ret)
		ret = shrimp_window_check(w, b);
	if (ret)
		return ret;
	shrimp_ep_lock(ep);
	ret = take_turn(ep, flags);
	if (!ret)
		ret = shrimp_window_bind(w, b);
	if (!ret)
		succeed(ep, context, is_quiet(ep, flags), FI_SHRIMP_REG);
	shrimp_ep_unlock(ep);
	return ret;
}

/* ---- invalidation ---- */

static void set_posted(struct shrimp_window *w, bool posted)
{
	pthread_mutex_lock(&w->mr.domain->mr_lock);
	w->posted = posted;
	pthread_mutex_unlock(&w->mr.domain->mr_lock);
}

/* Ends with 0 or a negative errno. The window is its client's afterwards. */
static void end(struct shrimp_ep *ep, struct shrimp_window *w, int ret)
{
	void *context = w->context;
	bool quiet = w->quiet;

	if (!ret)
		shrimp_window_reset(w);
	set_posted(w, false);
	if (ret)
		fail(ep, context, -ret);
	else
		succeed(ep, context, quiet, FI_SHRIMP_INVALIDATE);
}

/* Somebody is inside: it ends later. */
static void put_off(struct shrimp_ep *ep, struct shrimp_window *w)
{
	cds_list_add_tail(&w->in_ep, &ep->fencing);
	/* for the agent, who takes ep->lock before it looks */
	rnic_add32_acqrel(&ep->domain->fencing, 1);
	shrimp_tx_activate(ep->self);
}

static void take_off(struct shrimp_ep *ep, struct shrimp_window *w)
{
	cds_list_del(&w->in_ep);
	/* pairs with the look in end_fences() of lib/agent.c, a hint */
	rnic_sub32_acqrel(&ep->domain->fencing, 1);
}

/* 0 if nobody uses what @w was, neither a reader nor the monitor; or why. */
static int look(struct shrimp_ep *ep, const struct shrimp_window *w)
{
	int ret = w->grace && !RNIC_BROKEN(post_early)
			  ? rnic_grace_look(&ep->domain->dev, w->grace)
			  : 0;

	return ret || rnic_monitor_over(w->round) ? ret : -EAGAIN;
}

/* Withdraws the key. 1: completed, 0: it will be. */
static int invalidate(struct shrimp_ep *ep, struct shrimp_window *w)
{
	int ret = shrimp_mr_withdraw(&w->mr, &w->grace);

	if (ret)
		return ret;
	set_posted(w, true);
	ret = look(ep, w);
	if (ret == -EAGAIN) {
		put_off(ep, w);
		return 0;
	}
	end(ep, w, ret);
	return 1;
}

ssize_t shrimp_window_post_inv(struct fid_ep *fid, struct fid_mr *mw,
			       uint64_t flags, void *context)
{
	struct shrimp_window *w = shrimp_window_of(mw);
	struct shrimp_ep *ep = shrimp_ep_of(fid);
	int ret = check(fid, w, flags);

	if (ret)
		return ret;
	shrimp_ep_lock(ep);
	ret = take_turn(ep, flags);
	if (!ret)
		ret = shrimp_window_bound(w);
	if (!ret) {
		w->context = context;
		w->quiet = is_quiet(ep, flags);
		ret = invalidate(ep, w);
	}
	shrimp_ep_unlock(ep);
	if (ret)
		return ret > 0 ? 0 : ret;
	/* without an agent polling calls look, see shrimp_tx_pending() */
	if (!shrimp_agent_start(ep->domain))
		shrimp_agent_kick(ep->domain);
	return 0;
}

bool shrimp_window_progress(struct shrimp_ep *ep)
{
	struct shrimp_window *w, *next;

	/* in the order of the calls, which is that of their periods */
	cds_list_for_each_entry_safe (w, next, &ep->fencing, in_ep) {
		int ret = look(ep, w);

		if (ret == -EAGAIN)
			return true;
		take_off(ep, w);
		end(ep, w, ret);
	}
	return false;
}

void shrimp_window_abandon(struct shrimp_ep *ep)
{
	struct shrimp_window *w, *next;

	cds_list_for_each_entry_safe (w, next, &ep->fencing, in_ep) {
		take_off(ep, w);
		set_posted(w, false);
	}
}
