/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Windows: from parts of regions to a key, and back.
 */
#include "lib/window.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "include/rdma/fi_ext_shrimp.h"
#include "lib/domain.h"
#include "lib/odp.h"
#include "lib/refs.h"
#include "shm/breakage.h"
#include "shm/grace.h"

/* ---- the object ---- */

int shrimp_window_open(struct fid *fid, void *context, struct fid_mr **mw)
{
	struct shrimp_domain *d = (struct shrimp_domain *)fid;
	struct shrimp_window *w;

	if (!fid || fid->fclass != FI_CLASS_DOMAIN || !mw)
		return -FI_EINVAL;
	if (d->inherited)
		return -FI_EOPBADSTATE;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -FI_ENOMEM;
	w->mr.fid.fid.fclass = FI_CLASS_MR;
	w->mr.fid.fid.context = context;
	w->mr.fid.fid.ops = &shrimp_mr_fid_ops;
	w->mr.fid.key = FI_KEY_NOTAVAIL;
	w->mr.domain = d;
	/* a window is for peers: FI_MR_LOCAL finds nothing behind it */
	w->mr.fid.mem_desc = d->mr_mode & FI_MR_LOCAL ? NULL : &w->mr;
	w->mr.user = !(d->mr_mode & FI_MR_PROV_KEY);
	w->mr.window = true;
	CDS_INIT_LIST_HEAD(&w->mr.parts);
	shrimp_ref_get(&d->refs);
	*mw = &w->mr.fid;
	return 0;
}

struct shrimp_window *shrimp_window_of(struct fid_mr *mw)
{
	struct shrimp_mr *mr = (struct shrimp_mr *)mw;

	if (!mw || mw->fid.ops != &shrimp_mr_fid_ops || !mr->window)
		return NULL;
	return (struct shrimp_window *)mr;
}

/* ---- checks ---- */

static int check_part(const struct shrimp_window *w,
		      const struct fi_shrimp_mr_part *p, uint64_t access)
{
	const struct shrimp_mr *mr = (const struct shrimp_mr *)p->mr;

	if (!mr || mr->fid.fid.ops != &shrimp_mr_fid_ops || mr->window ||
	    mr->keeper || mr->domain != w->mr.domain || access & ~mr->access)
		return -FI_EINVAL;
	if (!p->len || p->off > mr->region.length ||
	    p->len > mr->region.length - p->off)
		return -FI_EINVAL;
	return 0;
}

int shrimp_window_check(const struct shrimp_window *w,
			const struct shrimp_binding *b)
{
	uint64_t sum = 0;

	if (!b->part || !b->n || b->n > SHRIMP_IOV_MAX || !b->access)
		return -FI_EINVAL;
	for (size_t i = 0; i < b->n; i++) {
		if (check_part(w, &b->part[i], b->access) ||
		    b->part[i].len > UINT64_MAX - sum)
			return -FI_EINVAL;
		sum += b->part[i].len;
	}
	return 0;
}

/* mr_lock held. */
static int check_state(const struct shrimp_window *w,
		       const struct shrimp_binding *b)
{
	if (w->nparts || w->mr.leaving || w->posted)
		return -FI_EBUSY;
	for (size_t i = 0; i < b->n; i++) {
		const struct shrimp_mr *mr =
			(const struct shrimp_mr *)b->part[i].mr;

		if (mr->changing || mr->broken || mr->leaving)
			return -FI_EBUSY;
		if (!mr->enabled)
			return -FI_EINVAL;
	}
	return 0;
}

/* ---- translation ---- */

/* The ranges of a window, as they are collected. */
struct ranges {
	struct rnic_mtt_range r[RNIC_MTT_RANGES_MAX]; /* in their order */
	size_t n;				      /* how many */
};

/* The range of @mr that byte @off is in; *@rel: counted from its start. */
static void find_range(const struct shrimp_mr *mr, uint64_t off,
		       struct rnic_mtt_range *r, uint64_t *rel)
{
	const struct rnic_mtt_pool *pool = &mr->domain->mtt;

	*r = (struct rnic_mtt_range){ .bytes = mr->region.length,
				      .va = mr->region.va,
				      .root = mr->region.mtt };
	*rel = off;
	if (mr->region.rights & RNIC_MR_LIST)
		rnic_mtt_list_find(rnic_mtt_list_of(pool, mr->region.mtt), off,
				   r, rel);
}

/* Adds bytes @off, @len of @mr. -FI_EINVAL: too many ranges. */
static int add_part(struct ranges *to, const struct shrimp_mr *mr, uint64_t off,
		    uint64_t len)
{
	struct rnic_mtt_range r;
	uint64_t rel, n;

	for (; len; off += n, len -= n) {
		if (to->n == RNIC_MTT_RANGES_MAX)
			return -FI_EINVAL;
		find_range(mr, off, &r, &rel);
		n = len < r.bytes - rel ? len : r.bytes - rel;
		to->r[to->n++] = (struct rnic_mtt_range){
			.bytes = n,
			.va = r.va + rel,
			.root = rnic_mtt_sub(r.root, r.va, rel),
		};
	}
	return 0;
}

/* What the parts of @w are now. It was so many ranges when it was bound. */
static void collect_again(const struct shrimp_window *w, struct ranges *to)
{
	to->n = 0;
	for (size_t i = 0; i < w->nparts; i++)
		add_part(to, w->part[i].mr, w->part[i].off, w->part[i].len);
}

/* What the parts of @w are to be, and which ranges are whose. */
static int collect(struct shrimp_window *w, const struct shrimp_binding *b,
		   struct ranges *to)
{
	int ret = 0;

	to->n = 0;
	for (size_t i = 0; i < b->n && !ret; i++) {
		w->part[i].first = to->n;
		ret = add_part(to, (const struct shrimp_mr *)b->part[i].mr,
			       b->part[i].off, b->part[i].len);
		w->part[i].ranges = to->n - w->part[i].first;
	}
	return ret;
}

/* How the pages of @mr come and go, so do those of a window onto it. */
static uint32_t paging_of(const struct shrimp_mr *mr)
{
	return mr->region.rights & (RNIC_MR_ODP | RNIC_MR_WATCHED);
}

/* The region that @w is to be: range, rights, translation. */
static int describe(struct shrimp_window *w, const struct shrimp_binding *b)
{
	struct shrimp_mr *mr = &w->mr;
	struct rnic_region *reg = &mr->region;
	struct ranges to;
	int ret = collect(w, b, &to);

	if (ret)
		return ret;
	*reg = (struct rnic_region){
		.va = to.r[0].va,
		.mtt = to.r[0].root,
		.rights = shrimp_mr_rights(mr->domain, b->access) |
			  RNIC_MR_WINDOW,
		.parent = ((const struct shrimp_mr *)b->part[0].mr)->slot + 1,
	};
	for (size_t i = 0; i < to.n; i++) {
		mr->iov[i].iov_base = (void *)(uintptr_t)to.r[i].va;
		mr->iov[i].iov_len = to.r[i].bytes;
		reg->length += to.r[i].bytes;
	}
	for (size_t i = 0; i < b->n; i++)
		reg->rights |=
			paging_of((const struct shrimp_mr *)b->part[i].mr);
	mr->niov = to.n;
	mr->access = b->access;
	if (to.n == 1)
		return 0;
	reg->rights |= RNIC_MR_LIST;
	return rnic_mtt_list_make(&mr->domain->mtt, to.r, to.n, &reg->mtt);
}

/* ---- binding ---- */

static void link_parts(struct shrimp_window *w, const struct shrimp_binding *b)
{
	for (size_t i = 0; i < b->n; i++) {
		struct shrimp_window_part *p = &w->part[i];

		p->mr = (struct shrimp_mr *)b->part[i].mr;
		p->off = b->part[i].off;
		p->len = b->part[i].len;
		p->window = w;
		cds_list_add_tail(&p->in_mr, &p->mr->parts);
	}
	w->nparts = b->n;
}

/* True if the monitor has to know of @w before anybody finds its key. */
static bool is_watched(const struct shrimp_window *w)
{
	return w->mr.region.rights & RNIC_MR_WATCHED;
}

/* publish(): of a watched window all but the last step. */
static int take_slot(struct shrimp_window *w, uint64_t *key)
{
	struct shrimp_mr *mr = &w->mr;
	struct rnic_mpt_owner *t = &mr->domain->mpt;
	int ret;

	if (!is_watched(w))
		return rnic_mpt_publish_try(t, &mr->region, mr->user, key,
					    &mr->slot);
	ret = shrimp_window_watch(w);
	return ret ? ret
		   : rnic_mpt_reserve_try(t, &mr->region, mr->user, key,
					  &mr->slot);
}

/* Makes the key of @w known. -FI_EAGAIN: not without waiting. */
static int publish(struct shrimp_window *w, const struct shrimp_binding *b)
{
	struct shrimp_mr *mr = &w->mr;
	uint64_t key = b->key;
	int ret = 0;

	if (!shrimp_mr_private(mr)) {
		ret = take_slot(w, &key);
		mr->live = !ret;
	}
	mr->enabled = !ret;
	if (ret)
		return ret == -EEXIST ? -FI_ENOKEY : ret;
	mr->fid.key = key;
	link_parts(w, b);
	if (mr->live && is_watched(w))
		shrimp_window_live(w);
	return 0;
}

/* @w means nothing: its translation is given back. */
static void forget(struct shrimp_window *w)
{
	w->mr.region = (struct rnic_region){ 0 };
	w->mr.niov = 0;
	w->mr.access = 0;
	w->mr.fid.key = FI_KEY_NOTAVAIL;
}

/* shrimp_window_bind(), locked. */
static int bind_locked(struct shrimp_window *w, const struct shrimp_binding *b)
{
	int ret = check_state(w, b);

	if (ret)
		return ret;
	ret = describe(w, b);
	if (ret) {
		forget(w);
		return ret;
	}
	ret = publish(w, b);
	if (ret) {
		shrimp_mr_untranslate(&w->mr, 0);
		forget(w);
	}
	return ret;
}

int shrimp_window_bind(struct shrimp_window *w, const struct shrimp_binding *b)
{
	pthread_mutex_t *lock = &w->mr.domain->mr_lock;
	int ret;

	pthread_mutex_lock(lock);
	ret = bind_locked(w, b);
	pthread_mutex_unlock(lock);
	return ret;
}

void shrimp_window_reset(struct shrimp_window *w)
{
	bool list = w->mr.region.rights & RNIC_MR_LIST;

	shrimp_mr_settle(&w->mr);
	forget(w);
	if (list)
		shrimp_domain_reap(w->mr.domain);
}

int shrimp_window_bound(struct shrimp_window *w)
{
	pthread_mutex_t *lock = &w->mr.domain->mr_lock;
	int ret = 0;

	pthread_mutex_lock(lock);
	if (w->posted)
		ret = -FI_EBUSY;
	else if (!w->mr.enabled && !w->mr.leaving)
		ret = -FI_EINVAL;
	pthread_mutex_unlock(lock);
	return ret;
}

/* Back to NULL, whatever it is bound to. Waits for readers and monitor. */
static int unbind(struct shrimp_window *w)
{
	uint64_t grace;
	int ret = shrimp_mr_withdraw(&w->mr, &grace);

	if (!ret && grace)
		ret = rnic_grace_wait(&w->mr.domain->dev, grace);
	if (ret)
		return ret;
	rnic_monitor_pass(w->round);
	shrimp_window_reset(w);
	return 0;
}

int shrimp_window_rebind(struct fid_mr *mw,
			 const struct fi_shrimp_mr_part *part, uint64_t access,
			 uint64_t key)
{
	const struct shrimp_binding b = { part, 1, access, key };
	struct shrimp_window *w = shrimp_window_of(mw);
	struct shrimp_domain *d = w ? w->mr.domain : NULL;
	int ret;

	if (!w)
		return -FI_EINVAL;
	if (d->inherited)
		return -FI_EOPBADSTATE;
	ret = shrimp_window_check(w, &b);
	if (ret)
		return ret;
	ret = shrimp_window_bound(w);
	if (!ret)
		ret = unbind(w);
	/* not bound: nothing to undo */
	if (ret && ret != -FI_EINVAL)
		return ret;
	for (;;) {
		ret = shrimp_window_bind(w, &b);
		if (ret != -FI_EAGAIN)
			return ret;
		shrimp_odp_pass(d);
		ret = rnic_grace_wait(&d->dev, rnic_grace_now(&d->dev));
		if (ret)
			return ret;
	}
}

int shrimp_window_invalidate(struct fid_mr *mw)
{
	struct shrimp_window *w = shrimp_window_of(mw);
	int ret;

	if (!w)
		return -FI_EINVAL;
	if (w->mr.domain->inherited)
		return -FI_EOPBADSTATE;
	ret = shrimp_window_bound(w);
	return ret ? ret : unbind(w);
}

/* ---- for regions ---- */

bool shrimp_window_posted(const struct shrimp_mr *mr)
{
	return ((const struct shrimp_window *)mr)->posted;
}

void shrimp_window_unlink(struct shrimp_mr *mr)
{
	struct shrimp_window *w = (struct shrimp_window *)mr;

	for (size_t i = 0; i < w->nparts; i++)
		cds_list_del(&w->part[i].in_mr);
	w->nparts = 0;
	w->suspended = false;
	shrimp_window_dead(w);
}

void shrimp_windows_suspend(struct shrimp_mr *mr)
{
	struct shrimp_domain *d = mr->domain;
	struct shrimp_window_part *p;

	if (RNIC_BROKEN(window_old))
		return;
	cds_list_for_each_entry (p, &mr->parts, in_mr) {
		struct shrimp_window *w = p->window;

		if (!w->mr.live)
			continue;
		if (!w->suspended) {
			rnic_mpt_suspend(&d->mpt, w->mr.slot);
			shrimp_window_dead(w);
		}
		w->suspended = true;
		rnic_grace_want(&d->dev, w->mr.slot);
	}
}

/* All regions of @w have a translation. */
static bool is_whole(const struct shrimp_window *w)
{
	for (size_t i = 0; i < w->nparts; i++)
		if (w->part[i].mr->changing || w->part[i].mr->broken)
			return false;
	return true;
}

/* The translation of @w anew; its list, if it has one, is nobody's now. */
static void translate_again(struct shrimp_window *w)
{
	struct rnic_region *reg = &w->mr.region;
	struct ranges to;

	collect_again(w, &to);
	for (size_t i = 0; i < w->nparts; i++)
		reg->rights |= paging_of(w->part[i].mr);
	if (reg->rights & RNIC_MR_LIST)
		rnic_mtt_list_set(&w->mr.domain->mtt, reg->mtt, to.r, to.n);
	else
		reg->mtt = to.r[0].root;
}

void shrimp_windows_resume(struct shrimp_mr *mr)
{
	struct rnic_mpt_owner *t = &mr->domain->mpt;
	struct shrimp_window_part *p;

	cds_list_for_each_entry (p, &mr->parts, in_mr) {
		struct shrimp_window *w = p->window;

		if (!is_whole(w) || (w->mr.live && !w->suspended))
			continue;
		translate_again(w);
		if (!w->suspended)
			continue;
		w->suspended = false;
		if (!is_watched(w)) {
			rnic_mpt_change(t, w->mr.slot, &w->mr.region);
			continue;
		}
		rnic_mpt_rewrite(t, w->mr.slot, &w->mr.region);
		shrimp_window_live(w);
	}
}

size_t shrimp_windows_count(const struct shrimp_mr *mr)
{
	struct shrimp_window_part *p;
	size_t n = 0;

	/* a window may have several parts of it: counted at the first */
	cds_list_for_each_entry (p, &mr->parts, in_mr) {
		size_t i = 0;

		while (p->window->part[i].mr != mr)
			i++;
		n += p == &p->window->part[i];
	}
	return n;
}
