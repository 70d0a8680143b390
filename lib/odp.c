/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Regions on demand and watched regions, see odp.h.
 *
 * Exclusion: the list of regions by domain.odp_lock. A region that somebody
 * uses is not given back: leaving waits for the last of them.
 */
#include "lib/odp.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>

#include "lib/domain.h"
#include "lib/mr_cache.h"
#include "shm/breakage.h"
#include "shm/monitor.h"
#include "shm/odp.h"
#include "shm/watch.h"

enum {
	SPINS = 200,  /* looks whether the monitor is done */
	YIELDS = 220, /* likewise, then the caller does something else */
};

/* What a region has in addition. */
struct shrimp_odp {
	union {
		struct rnic_odp o;     /* on demand */
		struct rnic_watched w; /* watched: first of it, too */
	};
	struct shrimp_mr *mr;		/* whose */
	struct cds_list_head in_domain; /* on demand: in domain.odps */
	unsigned int users;		/* of it, under odp_lock */
	bool demand;			/* which of the two */
	bool idle; /* watched: only while its cache entry is not in use */
	/* watched only */
	rnic_a32 armed; /* a bit for each range */
	rnic_aptr mpt;	/* its slot, once it is live */
	rnic_a32 gone;	/* 1: some of it was unmapped */
};

static struct rnic_paging *paging_of(const struct shrimp_domain *d)
{
	return (struct rnic_paging *)((char *)d->dev.hdr +
				      d->dev.hdr->paging_off);
}

static struct rnic_mpt *slot_of(const struct shrimp_mr *mr)
{
	return &mr->domain->mpt.mpt[mr->slot];
}

/* ---- the domain ---- */

void shrimp_odp_domain_init(struct shrimp_domain *d)
{
	pthread_mutex_init(&d->odp_lock, NULL);
	pthread_cond_init(&d->odp_idle, NULL);
	for (int i = 0; i < SHRIMP_ODP_BUCKETS; i++)
		CDS_INIT_LIST_HEAD(&d->odps[i]);
}

void shrimp_odp_domain_fini(struct shrimp_domain *d)
{
	if (d->monitored > 0)
		rnic_monitor_put();
	d->monitored = 0;
	pthread_cond_destroy(&d->odp_idle);
	pthread_mutex_destroy(&d->odp_lock);
}

/* True if the monitor runs for @d; the first call that can starts it. */
static bool monitored(struct shrimp_domain *d)
{
	int ret = -ENOTSUP;
	bool yes;

	pthread_mutex_lock(&d->odp_lock);
	if (!d->monitored) {
		if (d->set->monitor != SHRIMP_MONITOR_OFF)
			ret = rnic_monitor_get();
		/* what was short may be there for the next region */
		if (!rnic_monitor_short(ret))
			d->monitored = ret ? -1 : 1;
	}
	yes = d->monitored > 0;
	pthread_mutex_unlock(&d->odp_lock);
	return yes;
}

void shrimp_odp_implicit(struct shrimp_domain *d)
{
	rnic_add64_relaxed(&paging_of(d)->implicit, 1);
}

void shrimp_odp_requested(struct shrimp_domain *d)
{
	rnic_add64_relaxed(&paging_of(d)->requests, 1);
}

/* ---- on demand ---- */

/* Where a region with translation @root is listed. */
static struct cds_list_head *bucket(struct shrimp_domain *d, uint64_t root)
{
	return &d->odps[root / RNIC_PAGE % SHRIMP_ODP_BUCKETS];
}

int shrimp_odp_make(struct shrimp_mr *mr)
{
	struct shrimp_domain *d = mr->domain;
	struct shrimp_odp *x = calloc(1, sizeof(*x));
	const struct rnic_odp_cfg cfg = {
		.dev = &d->dev,
		.mtt = &d->mtt,
		.va = mr->region.va,
		.length = mr->region.length,
		.pin = d->set->pin,
		.watch = monitored(d),
	};
	int ret = x ? rnic_odp_init(&x->o, &cfg) : -ENOMEM;

	if (ret) {
		free(x);
		return ret;
	}
	x->demand = true;
	x->mr = mr;
	mr->region.mtt = x->o.root;
	mr->region.rights |= RNIC_MR_ODP | (cfg.watch ? RNIC_MR_WATCHED : 0);
	mr->odp = x;
	pthread_mutex_lock(&d->odp_lock);
	cds_list_add(&x->in_domain, bucket(d, x->o.root));
	rnic_add32_relaxed(&d->nodps, 1);
	pthread_mutex_unlock(&d->odp_lock);
	return 0;
}

/* The region with translation @root, in use; NULL: it has left. */
static struct shrimp_odp *get(struct shrimp_domain *d, uint64_t root)
{
	struct shrimp_odp *x, *found = NULL;

	pthread_mutex_lock(&d->odp_lock);
	cds_list_for_each_entry (x, bucket(d, root), in_domain)
		if (x->o.root == root)
			found = x;
	if (found)
		found->users++;
	pthread_mutex_unlock(&d->odp_lock);
	return found;
}

static void put(struct shrimp_domain *d, struct shrimp_odp *x)
{
	pthread_mutex_lock(&d->odp_lock);
	if (!--x->users)
		pthread_cond_broadcast(&d->odp_idle);
	pthread_mutex_unlock(&d->odp_lock);
}

static void leave_demand(struct shrimp_domain *d, struct shrimp_odp *x)
{
	pthread_mutex_lock(&d->odp_lock);
	cds_list_del(&x->in_domain);
	/* pairs with nothing: shrimp_odp_tidy() takes it as a hint */
	rnic_sub32_acqrel(&d->nodps, 1);
	while (x->users)
		pthread_cond_wait(&d->odp_idle, &d->odp_lock);
	pthread_mutex_unlock(&d->odp_lock);
	rnic_odp_fini(&x->o);
}

void shrimp_odp_tidy(struct shrimp_domain *d)
{
	struct shrimp_odp *x;

	/* relaxed: a hint; what comes meanwhile needs it not */
	if (RNIC_LIKELY(!rnic_load32_relaxed(&d->nodps)))
		return;
	pthread_mutex_lock(&d->odp_lock);
	for (int i = 0; i < SHRIMP_ODP_BUCKETS; i++)
		cds_list_for_each_entry (x, &d->odps[i], in_domain)
			rnic_odp_tidy(&x->o);
	pthread_mutex_unlock(&d->odp_lock);
}

/* ---- watched ---- */

/* True if @x watches memory in bytes @start to @end. */
static bool overlaps(const struct shrimp_odp *x, uint64_t start, uint64_t end)
{
	const struct shrimp_mr *mr = x->mr;
	/* relaxed: what it misses was armed after this event */
	uint32_t armed = rnic_load32_relaxed(&x->armed);

	for (size_t i = 0; i < mr->niov; i++) {
		uint64_t a = (uintptr_t)mr->iov[i].iov_base;

		if (armed >> i & 1 && a < end && start < a + mr->iov[i].iov_len)
			return true;
	}
	return false;
}

/*
 * True if @x is in use, which an event does not end: its entry was marked, so
 * there are no new users, and the last one gives it back.
 */
static bool is_spared(const struct shrimp_odp *x)
{
	if (!x->idle)
		return false;
	/* U4: the mark, on the stack, before the look; pairs with U3 */
	rnic_fence_full();
	return shrimp_cached_used(x->mr->keeper);
}

bool shrimp_odp_spares(const struct shrimp_mr *mr)
{
	return mr->odp && !mr->odp->demand && mr->odp->idle;
}

/* The region is gone, for good. The monitor, or who registers it. */
static void lose(struct shrimp_odp *x)
{
	/* G1: before the slot is looked at; pairs with G2; the first counts */
	if (!rnic_xchg32_acqrel(&x->gone, 1))
		rnic_add64_relaxed(&paging_of(x->mr->domain)->gone, 1);
}

/*
 * rnic_gone_fn, in the monitor's thread. What was only given up, as by
 * MADV_DONTNEED, is still this region's memory. Of what was unmapped the whole
 * region goes, for good: it has one translation.
 */
static void gone(struct rnic_watched *w, uint64_t start, uint64_t end,
		 bool unmapped)
{
	struct shrimp_odp *x = (struct shrimp_odp *)w;
	struct rnic_mpt *m;

	/* relaxed: a second time is once too often, and harmless */
	if (!unmapped || rnic_load32_relaxed(&x->gone) ||
	    !overlaps(x, start, end) || is_spared(x))
		return;
	lose(x);
	rnic_fence_full();
	m = rnic_ptr_load_acquire(&x->mpt);
	/* relaxed: Z2 publishes it; windows follow, lib/window_watch.c */
	if (m && !RNIC_BROKEN(gone_root))
		rnic_store64_relaxed(&m->mtt, 0);
}

/* The range has a watch that @x counts, or cannot have one. */
static bool watch_range(const struct iovec *v)
{
	uint64_t va = (uintptr_t)v->iov_base;

	if (rnic_watch_get(va, v->iov_len))
		return false;
	if (!rnic_watch_arm(va, v->iov_len))
		return true;
	rnic_watch_put(va, v->iov_len);
	return false;
}

/*
 * Watches range @i of @mr. That of an idle one is: by its cache entry, which
 * gives its region back first.
 */
static void arm(struct shrimp_odp *x, size_t i)
{
	/* relaxed: its only writer, this thread */
	uint32_t was = rnic_load32_relaxed(&x->armed);

	/* first: what goes as soon as it is watched is told */
	rnic_store32_relaxed(&x->armed, was | 1u << i);
	if (!x->idle && !watch_range(&x->mr->iov[i]))
		rnic_store32_relaxed(&x->armed, was);
}

/* True if range @i of @mr can leave the address space: not the device's. */
static bool may_go(struct shrimp_mr *mr, size_t i)
{
	uint64_t off;

	return rnic_arena_find(&mr->domain->dev.user, mr->iov[i].iov_base,
			       mr->iov[i].iov_len, &off);
}

/*
 * Addresses are right whenever the watch begins. A file was found before, so
 * what went meanwhile was not told; that of an idle one is looked at by its
 * cache entry.
 */
static bool is_outdated(const struct shrimp_odp *x, size_t i)
{
	const struct shrimp_mr *mr = x->mr;

	return !x->idle && mr->leaf[i] &&
	       !rnic_space_holds(&mr->domain->dev.spaces, mr->leaf[i],
				 (uintptr_t)mr->iov[i].iov_base,
				 mr->iov[i].iov_len);
}

static void arm_all(struct shrimp_odp *x)
{
	for (size_t i = 0; i < x->mr->niov; i++) {
		if (may_go(x->mr, i))
			arm(x, i);
		if (is_outdated(x, i))
			lose(x);
	}
}

static void leave_watched(struct shrimp_domain *d, struct shrimp_odp *x)
{
	rnic_monitor_leave(&d->dev, &x->w);
	for (size_t i = 0; i < x->mr->niov; i++)
		/* relaxed: this thread's own, or of who registered */
		if (!x->idle && rnic_load32_relaxed(&x->armed) >> i & 1)
			rnic_watch_put((uintptr_t)x->mr->iov[i].iov_base,
				       x->mr->iov[i].iov_len);
}

/*
 * All of them if it is asked for; else those that the cache keeps: nobody may
 * know that they are still there.
 */
static bool is_wanted(const struct shrimp_mr *mr, bool *idle)
{
	bool all = mr->domain->set->monitor == SHRIMP_MONITOR_UFFD;

	*idle = !all;
	return (all || (mr->keeper && mr->keeper->late)) &&
	       monitored(mr->domain);
}

int shrimp_odp_watch(struct shrimp_mr *mr)
{
	struct shrimp_domain *d = mr->domain;
	struct shrimp_odp *x;
	bool idle;

	if (!is_wanted(mr, &idle))
		return 0;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -FI_ENOMEM;
	x->mr = mr;
	x->idle = idle;
	x->w.gone = gone;
	/* it has a watch, and is told as soon as it is in the list */
	if (idle)
		arm_all(x);
	/* else an event of what was there before would be taken for its own */
	else if (!RNIC_BROKEN(monitor_settle))
		rnic_monitor_settle();
	rnic_monitor_join(&d->dev, &x->w, NULL);
	if (!idle)
		arm_all(x);
	/* relaxed: this thread's own; no event */
	if (!rnic_load32_relaxed(&x->armed) && !rnic_load32_relaxed(&x->gone)) {
		leave_watched(d, x);
		free(x);
		return 0;
	}
	mr->region.rights |= RNIC_MR_WATCHED;
	mr->odp = x;
	return 0;
}

/* The slot is known: its version is changed, and its translation taken away. */
static void watched_live(struct shrimp_odp *x)
{
	struct rnic_mpt *m = slot_of(x->mr);

	/* the slot as it was written, before gone() changes it */
	rnic_ptr_store_release(&x->mpt, m);
	/* G2: the slot before the look, by a full fence; pairs with G1 */
	rnic_monitor_live(&x->w, m);
	/* relaxed: unmapped by another thread while it was registered */
	if (rnic_load32_relaxed(&x->gone))
		rnic_store64_relaxed(&m->mtt, 0);
}

bool shrimp_odp_gone(const struct shrimp_mr *mr)
{
	const struct shrimp_odp *x = mr->odp;

	/* relaxed: G1, G2 order it */
	return x && !x->demand && rnic_load32_relaxed(&x->gone);
}

/* ---- both ---- */

void shrimp_odp_live(struct shrimp_mr *mr)
{
	if (!mr->odp)
		return;
	if (mr->odp->demand)
		rnic_odp_live(&mr->odp->o, slot_of(mr));
	else
		watched_live(mr->odp);
}

void shrimp_odp_renew(struct shrimp_mr *mr, const struct iovec *iov, size_t n)
{
	struct rnic_odp *o = &mr->odp->o;

	if (!n)
		rnic_odp_drop(o, mr->region.va, mr->region.length);
	for (size_t i = 0; i < n; i++)
		rnic_odp_drop(o, (uintptr_t)iov[i].iov_base, iov[i].iov_len);
}

void shrimp_odp_pass(struct shrimp_domain *d)
{
	bool used;

	/* a domain without the monitor has nothing that it knows */
	pthread_mutex_lock(&d->odp_lock);
	used = d->monitored > 0;
	pthread_mutex_unlock(&d->odp_lock);
	if (used)
		rnic_monitor_wait();
}

void shrimp_odp_count(const struct shrimp_mr *mr, struct fi_shrimp_mr_info *f)
{
	const struct shrimp_odp *x = mr->odp;

	if (!x || !x->demand)
		return;
	/* relaxed: statistics */
	f->faults = rnic_load64_relaxed(&x->o.faults);
	f->prefetched = rnic_load64_relaxed(&x->o.prefetched);
	f->invalidated = rnic_load64_relaxed(&x->o.invalidated);
}

void shrimp_odp_look(const struct shrimp_mr *mr, uint64_t va,
		     struct rnic_odp_look *l)
{
	rnic_odp_look(&mr->odp->o, va, l);
}

void shrimp_odp_leave(struct shrimp_mr *mr)
{
	struct shrimp_odp *x = mr->odp;

	if (!x)
		return;
	if (x->demand)
		leave_demand(mr->domain, x);
	else
		leave_watched(mr->domain, x);
	mr->odp = NULL;
	free(x);
}

/* ---- a touch ---- */

/* Checks @p as a lookup does. *@off: of its first byte in the region. */
static int check(const struct shrimp_page *p, const struct rnic_region *r,
		 uint64_t *off)
{
	*off = p->addr - (r->rights & RNIC_MR_OFFSET ? 0 : r->va);
	if (p->rights & ~r->rights)
		return -EACCES;
	if (*off > r->length || !p->len || p->len > r->length - *off)
		return -ERANGE;
	return r->mtt ? 0 : -EFAULT;
}

/*
 * The region of @p. If it is watched, and the monitor is at work, waits for it
 * for a moment: mostly it takes some 20 us.
 */
static int find(struct shrimp_domain *d, const struct shrimp_page *p,
		struct rnic_region *r)
{
	uint32_t slot;
	int ret;

	for (int i = 0; i < YIELDS; i++) {
		bool frozen = rnic_monitor_frozen(&d->dev);

		ret = rnic_mpt_find(&d->mpt, p->key, &slot, r);
		if (ret || !frozen || !(r->rights & RNIC_MR_WATCHED))
			return ret;
		if (i < SPINS)
			rnic_cpu_relax();
		else
			sched_yield();
	}
	return -EBUSY;
}

/*
 * Makes present what is @w->len bytes at @w->va of the range with @root: of a
 * region on demand, or of a part that a window has of one. A root that is not
 * such a region's, or not any more: there is nothing to do but to look again.
 * What a list or a slot said may have got another meaning meanwhile, so the
 * region is asked whether it has such bytes.
 */
static int page_in(struct shrimp_domain *d, uint64_t root,
		   struct rnic_odp_want *w)
{
	struct shrimp_odp *x = get(d, rnic_mtt_root_whole(root));
	uint64_t off;
	int ret = 0;

	if (!x)
		return 0;
	off = w->va - x->o.cfg.va;
	if (off < x->o.cfg.length) {
		if (w->len > x->o.cfg.length - off)
			w->len = x->o.cfg.length - off;
		ret = rnic_odp_fault(&x->o, w);
	}
	put(d, x);
	return ret == -ENODEV ? -ENOKEY : ret;
}

int shrimp_odp_page(struct shrimp_domain *d, const struct shrimp_page *p)
{
	struct rnic_odp_want w = { .len = p->len,
				   .write = p->rights & RNIC_REMOTE_WRITE };
	struct rnic_mtt_range range;
	struct rnic_region r;
	uint64_t off;
	int ret = find(d, p, &r);

	if (!ret)
		ret = check(p, &r, &off);
	if (ret)
		return ret;
	range = (struct rnic_mtt_range){ r.length, r.va, r.mtt };
	/* a list that goes just now: as if it had not been found */
	if (r.rights & RNIC_MR_LIST &&
	    rnic_mtt_list_find(rnic_mtt_list_of(&d->mtt, r.mtt), off, &range,
			       &off))
		return 0;
	/* the monitor has found it gone */
	if (!range.root)
		return -EFAULT;
	if (!(r.rights & RNIC_MR_ODP))
		return 0;
	w.va = range.va + off;
	if (w.len > range.bytes - off)
		w.len = range.bytes - off;
	return page_in(d, range.root, &w);
}

/* ---- advice ---- */

static bool may(const struct shrimp_mr *mr, bool write)
{
	return mr->region.rights & (write ? RNIC_LOCAL_WRITE | RNIC_REMOTE_WRITE
					  : RNIC_LOCAL_READ | RNIC_REMOTE_READ);
}

int shrimp_odp_advise(struct fid_mr *fid, size_t off, size_t len,
		      uint32_t advice)
{
	struct shrimp_mr *mr = (struct shrimp_mr *)fid;
	struct rnic_odp_want w = { .len = len,
				   .write = advice == FI_SHRIMP_PREFETCH_WRITE,
				   .prefetch = true };
	int ret;

	if (!fid || fid->fid.fclass != FI_CLASS_MR ||
	    (advice != FI_SHRIMP_PREFETCH_READ && !w.write))
		return -FI_EINVAL;
	if (mr->domain->inherited)
		return -FI_EOPBADSTATE;
	if (!mr->odp || !mr->odp->demand || !len || off > mr->region.length ||
	    len > mr->region.length - off)
		return -FI_EINVAL;
	if (!may(mr, w.write))
		return -FI_EACCES;
	w.va = mr->region.va + off;
	while ((ret = rnic_odp_fault(&mr->odp->o, &w)) == -EBUSY)
		rnic_monitor_wait();
	return ret == -ENODEV ? -FI_EINVAL : ret;
}
