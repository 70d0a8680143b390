/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Memory windows: keys onto parts of live regions (contract W1, W2).
 *
 *   NULL --bind--> BOUND --invalidate: unlink, fence--> NULL
 *
 * A bound window has an MPT slot and a key of its own. Its translation is that
 * of its regions: it names their tables and has none, save one page that lists
 * its ranges if they are several. A region knows the parts that windows have
 * of it; while there are some it is not closed, and when its translation
 * changes theirs does. What the unmap monitor does to a region it does to
 * windows onto it in the same round.
 *
 * Exclusion: domain.mr_lock, which is never held while readers are waited for;
 * mpt.lock, grace.lock and the locks of pools nest inside. A window belongs to
 * its client, one thread at a time; a posted invalidation under way is the
 * endpoint's, and the window is busy until it completes.
 */
#ifndef SHRIMP_WINDOW_H
#define SHRIMP_WINDOW_H

#include "lib/mr.h"
#include "shm/monitor.h"

struct fi_shrimp_mr_part;
struct shrimp_window;

/* What a window has of a region. */
struct shrimp_window_part {
	struct shrimp_mr *mr;	      /* the region */
	uint64_t off;		      /* first byte in it */
	uint64_t len;		      /* bytes, not 0 */
	size_t first;		      /* its ranges: the first, */
	size_t ranges;		      /* and how many */
	struct shrimp_window *window; /* whose part */
	struct cds_list_head in_mr;   /* in mr->parts */
};

/* A window. It looks like a region to those who only look. */
struct shrimp_window {
	struct shrimp_mr mr; /* first: key, ranges, rights */
	struct shrimp_window_part part[SHRIMP_IOV_MAX]; /* of what it is made */
	size_t nparts;	/* how many; 0: not bound */
	bool suspended; /* a region of it is changing */
	/* lib/window_watch.c */
	struct rnic_watched watched; /* what the monitor has */
	bool joined;		     /* it has it */
	uint64_t round;		     /* of the monitor: to be over, see there */
	size_t nwatched;	     /* parts that the monitor looks at */
	bool posted;		     /* an invalidation is under way */
	uint64_t grace;		     /* the period it waits for */
	struct shrimp_ep *ep;	     /* where it was posted */
	void *context;		     /* of its completion */
	bool quiet;		     /* it has none, if it succeeds */
	struct cds_list_head in_ep;  /* in ep->fencing, ep->lock */
};

/* What a window is to be bound to. */
struct shrimp_binding {
	const struct fi_shrimp_mr_part *part; /* parts, in their order */
	size_t n;			      /* how many */
	uint64_t access;		      /* FI_ bits */
	uint64_t key; /* wanted, without FI_MR_PROV_KEY */
};

/*
 * A window that is bound to nothing, of domain @fid. Returns 0 with *@mw,
 * -FI_EINVAL, -FI_EOPBADSTATE, -FI_ENOMEM. fi_close() frees it.
 */
int shrimp_window_open(struct fid *fid, void *context, struct fid_mr **mw);

/* The window that @mw is, or NULL. */
struct shrimp_window *shrimp_window_of(struct fid_mr *mw);

/*
 * Checks all of @b that does not change while it is under way. Returns 0 or
 * -FI_EINVAL. Any thread; no lock.
 */
int shrimp_window_check(const struct shrimp_window *w,
			const struct shrimp_binding *b);

/*
 * Binds @w, which is not bound, as @b says, which was checked. Takes mr_lock;
 * does no system call but for the pages of tables; never waits for readers.
 * Returns 0, -FI_EBUSY (@w is bound or has a posted operation; a region is
 * changing, or its refresh failed), -FI_EINVAL (a region has no key yet),
 * -FI_ENOKEY, -FI_EAGAIN (a grace period has to end first, or the monitor is
 * at work), -FI_ENOMEM, -FI_ENOSPC; then @w is bound to nothing.
 */
int shrimp_window_bind(struct shrimp_window *w, const struct shrimp_binding *b);

/* bind_window, invalidate_window of struct fi_ops_shrimp_mr. */
int shrimp_window_rebind(struct fid_mr *mw,
			 const struct fi_shrimp_mr_part *part, uint64_t access,
			 uint64_t key);
int shrimp_window_invalidate(struct fid_mr *mw); /* likewise */

/*
 * 0 if @w is bound, or was and is not yet fenced; -FI_EBUSY (a posted operation
 * is under way), -FI_EINVAL (it is bound to nothing). Takes mr_lock.
 */
int shrimp_window_bound(struct shrimp_window *w);

/*
 * The period of its withdrawal is over, and the monitor's round
 * (rnic_monitor_over(@w->round)): @w is NULL again.
 */
void shrimp_window_reset(struct shrimp_window *w);

/* ---- for lib/mr*.c; mr_lock is held ---- */

/* True if a posted operation of window @mr is under way. */
bool shrimp_window_posted(const struct shrimp_mr *mr);

/* Window @mr is no part of its regions any more. */
void shrimp_window_unlink(struct shrimp_mr *mr);

/*
 * Suspends the windows onto @mr, and asks the next grace period to fence them;
 * the caller asks it for @mr afterwards, or waits for it.
 */
void shrimp_windows_suspend(struct shrimp_mr *mr);

/* Gives them a meaning again, unless another region of theirs has none. */
void shrimp_windows_resume(struct shrimp_mr *mr);

/* Windows onto @mr. */
size_t shrimp_windows_count(const struct shrimp_mr *mr);

/* ---- and the unmap monitor, lib/window_watch.c; mr_lock is held ---- */

/*
 * Sees to it that the monitor knows @w. Never waits. Returns 0, or -FI_EAGAIN:
 * not yet; call again, after shrimp_odp_pass() or a moment.
 */
int shrimp_window_watch(struct shrimp_window *w);

/*
 * The slot of @w, which the monitor knows, is suspended and written: tells the
 * monitor of it, takes away what is gone already, makes it live.
 */
void shrimp_window_live(struct shrimp_window *w);

/*
 * The slot of @w is odd, or not its own any more: the monitor forgets it when
 * round @w->round is over. Not known to it: nothing.
 */
void shrimp_window_dead(struct shrimp_window *w);

/* The same for good, @w is withdrawn. mr_lock is not held; waits for rounds. */
void shrimp_window_unwatch(struct shrimp_mr *mr);

/*
 * All windows onto @mr, which is changing, are known to the monitor if it will
 * change @mr. mr_lock is not held; waits as shrimp_odp_pass().
 */
void shrimp_windows_watch(struct shrimp_mr *mr);

/* ---- posted on an endpoint, lib/window_post.c ---- */

/* post_reg of struct fi_ops_shrimp_mr, without its arrays. */
ssize_t shrimp_window_post_reg(struct fid_ep *ep, struct fid_mr *mw,
			       const struct shrimp_binding *b, uint64_t flags,
			       void *context);

/* post_invalidate of struct fi_ops_shrimp_mr. */
ssize_t shrimp_window_post_inv(struct fid_ep *ep, struct fid_mr *mw,
			       uint64_t flags, void *context);

/*
 * Completes posted invalidations of @ep whose grace period is over; true if
 * some are left. ep->lock is held; never waits.
 */
bool shrimp_window_progress(struct shrimp_ep *ep);

/* @ep closes: forgets them. Their windows can be invalidated by call. */
void shrimp_window_abandon(struct shrimp_ep *ep);

#endif /* SHRIMP_WINDOW_H */
