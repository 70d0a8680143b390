/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What a region or window is: its MPT entry, its translation, its pages.
 *
 * Exclusion: mr_lock for what windows and refreshes change; the object is its
 * client's, who does not close it meanwhile, nor, if it is a window, its
 * regions. So its tables stay, and they are walked as any reader would, without
 * a lock; those of a region on demand with that of its faults, which protects
 * pins. A refresh that begins meanwhile makes the answer old, no more.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "include/rdma/fi_ext_shrimp.h"
#include "lib/domain.h"
#include "lib/mr.h"
#include "lib/mr_cache.h"
#include "lib/mr_ext.h"
#include "lib/odp.h"
#include "lib/window.h"
#include "shm/numa.h"
#include "shm/odp.h"

enum {
	NODES = 512,   /* pages asked for at once */
	SHIFT_4K = 12, /* leaves of small pages */
	SHIFT_2M = 21, /* and of larger ones */
	SHIFT_1G = 30,
};

/* A range, as it was when the lock was held. */
struct range {
	struct rnic_mtt_range r;    /* where, and its translation */
	const struct shrimp_mr *mr; /* the region that has it */
	bool pinned;		    /* by that */
	bool gone;		    /* unmapped under it */
};

/* A query under way. */
struct query {
	struct shrimp_mr *mr;		    /* of what */
	struct range range[SHRIMP_IOV_MAX]; /* that it has */
	size_t nranges;			    /* how many */
	struct fi_shrimp_mr_info info;	    /* gathered */
	uint64_t pinned;		    /* bytes */
	uint64_t gone;			    /* likewise */
	struct fi_shrimp_mr_piece *piece;   /* the caller's */
	size_t room;			    /* of them */
	size_t n;			    /* pieces so far */
	struct fi_shrimp_mr_piece current;  /* not yet in @piece; len 0: none */
	bool nodes;			    /* ask for them */
};

/* Consecutive bytes that are alike, of leaves of one size or of none. */
struct extent {
	uint64_t va;	/* owner's address */
	uint64_t len;	/* bytes */
	uint32_t shift; /* log2 of the leaf, 0: any length */
	int32_t space;	/* as in a piece */
	uint32_t state; /* likewise, as far as it is known */
};

/* ---- pieces ---- */

static void flush(struct query *q)
{
	if (!q->current.len)
		return;
	if (q->n < q->room)
		q->piece[q->n] = q->current;
	q->n++;
	q->current.len = 0;
}

/* Adds @p, which may go on where the last one ended. */
static void add(struct query *q, const struct fi_shrimp_mr_piece *p)
{
	struct fi_shrimp_mr_piece *c = &q->current;

	if (c->len && c->addr + c->len == p->addr && c->leaf == p->leaf &&
	    c->space == p->space && c->node == p->node &&
	    c->state == p->state) {
		c->len += p->len;
		return;
	}
	flush(q);
	*c = *p;
}

static struct fi_shrimp_mr_piece piece_of(const struct extent *x, int node)
{
	struct fi_shrimp_mr_piece p = { .addr = x->va,
					.len = x->len,
					.leaf = x->shift,
					.space = x->space,
					.node = node,
					.state = x->state };

	if (x->state & FI_SHRIMP_PIECE_PINNED)
		p.state |= FI_SHRIMP_PIECE_PRESENT;
	if (node >= 0)
		p.state |= FI_SHRIMP_PIECE_PRESENT;
	return p;
}

/* As many pages of @x as are asked for at once, or fewer; @x moves on. */
static void add_pages(struct query *q, struct extent *x)
{
	uint64_t in = x->va % RNIC_PAGE;
	uint64_t n = (in + x->len - 1) / RNIC_PAGE + 1;
	int node[NODES];
	int ret;

	if (n > NODES)
		n = NODES;
	ret = rnic_numa_where((void *)(uintptr_t)x->va, node, n);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t step = RNIC_PAGE - (i ? 0 : in);
		struct fi_shrimp_mr_piece p =
			piece_of(x, ret ? -FI_ENOSYS : node[i]);

		p.len = step < x->len ? step : x->len;
		add(q, &p);
		x->va += p.len;
		x->len -= p.len;
	}
}

/* ---- the translation ---- */

static const struct rnic_mtt_page *page_at(void *arg, uint64_t n)
{
	const struct rnic_mtt_pool *pool = arg;

	return n < pool->npages ? &pool->page[n] : NULL;
}

static void count_leaves(struct query *q, const struct extent *x)
{
	unsigned int i = FI_SHRIMP_LEAF_EXTENT;
	uint64_t in, n = 1;

	if (x->shift == SHIFT_4K)
		i = FI_SHRIMP_LEAF_4K;
	else if (x->shift == SHIFT_2M)
		i = FI_SHRIMP_LEAF_2M;
	else if (x->shift == SHIFT_1G)
		i = FI_SHRIMP_LEAF_1G;
	if (x->shift) {
		in = x->va & ((UINT64_C(1) << x->shift) - 1);
		n = ((in + x->len - 1) >> x->shift) + 1;
	}
	q->info.leaves[i] += n;
}

static void add_extent(struct query *q, struct extent *x)
{
	bool nothing =
		x->state & (FI_SHRIMP_PIECE_ABSENT | FI_SHRIMP_PIECE_GONE);
	struct fi_shrimp_mr_piece p;

	if (!nothing)
		count_leaves(q, x);
	if (x->state & FI_SHRIMP_PIECE_PINNED)
		q->pinned += x->len;
	if (x->state & FI_SHRIMP_PIECE_GONE)
		q->gone += x->len;
	if (!q->nodes)
		return;
	/* most of the address space has no pages to speak of */
	if (nothing || q->info.flags & FI_SHRIMP_MR_IMPLICIT) {
		p = piece_of(x, -FI_ENOSYS);
		add(q, &p);
		return;
	}
	while (x->len)
		add_pages(q, x);
}

/* Of a region on demand: the pages from @va on. */
static struct extent pages_at(const struct range *g, uint64_t va)
{
	struct extent x = { .va = va, .space = -1 };
	struct rnic_odp_look l;

	shrimp_odp_look(g->mr, va, &l);
	x.len = l.bytes - va % RNIC_PAGE;
	if (!l.leaf) {
		x.state = FI_SHRIMP_PIECE_ABSENT;
		return x;
	}
	x.shift = SHIFT_4K;
	if (l.leaf & RNIC_LEAF_SPACE)
		x.space = (int32_t)rnic_mtt_leaf_space_of(l.leaf);
	if (l.pinned)
		x.state = FI_SHRIMP_PIECE_PINNED;
	return x;
}

/* Of another one: the leaf at @va. */
static struct extent leaf_at(struct query *q, const struct range *g,
			     uint64_t va)
{
	struct extent x = { .va = va, .len = UINT64_MAX, .space = -1 };
	uint64_t leaf, off;

	/* not, unless a refresh has begun: then nobody gets there just now */
	if (rnic_mtt_walk(g->r.root, g->r.va, va, page_at, &q->mr->domain->mtt,
			  false, &leaf, &off, &x.len)) {
		x.state = FI_SHRIMP_PIECE_ABSENT;
		return x;
	}
	if (leaf & RNIC_LEAF_SPACE)
		x.space = (int32_t)rnic_mtt_leaf_space_of(leaf);
	if (rnic_mtt_root_depth(g->r.root))
		x.shift = (uint32_t)__builtin_ctzll(
			x.len + off - (leaf & ~(uint64_t)(RNIC_PAGE - 1)));
	if (g->pinned)
		x.state = FI_SHRIMP_PIECE_PINNED;
	return x;
}

static struct extent extent_at(struct query *q, const struct range *g,
			       uint64_t va)
{
	if (g->gone)
		return (struct extent){ .va = va,
					.len = UINT64_MAX,
					.space = -1,
					.state = FI_SHRIMP_PIECE_GONE };
	return g->mr->demand ? pages_at(g, va) : leaf_at(q, g, va);
}

static void walk(struct query *q)
{
	for (size_t i = 0; i < q->nranges; i++) {
		const struct range *g = &q->range[i];
		uint64_t at = 0;

		while (at < g->r.bytes) {
			struct extent x = extent_at(q, g, g->r.va + at);

			if (x.len > g->r.bytes - at)
				x.len = g->r.bytes - at;
			at += x.len;
			add_extent(q, &x);
		}
	}
	flush(q);
}

/* ---- the ranges, mr_lock held ---- */

/* True if range @k of @mr is locked, by it or by what it has of the cache. */
static bool is_locked(const struct shrimp_mr *mr, size_t k)
{
	return mr->pinned >> k & 1 || (mr->keeper && mr->keeper->pinned) ||
	       (mr->cached[k] && mr->cached[k]->pinned);
}

/* Range @i is number @k of region @mr. */
static void take(struct query *q, size_t i, const struct shrimp_mr *mr,
		 size_t k)
{
	const struct rnic_mtt_pool *pool = &mr->domain->mtt;
	const struct rnic_region *reg = &q->mr->region;
	const struct iovec *v = &q->mr->iov[i];
	struct range *g = &q->range[i];
	uint64_t root = reg->mtt;

	if (reg->rights & RNIC_MR_LIST)
		root = rnic_mtt_list_root(rnic_mtt_list_of(pool, root), i);
	g->r = (struct rnic_mtt_range){ .bytes = v->iov_len,
					.va = (uintptr_t)v->iov_base,
					.root = root };
	g->mr = mr;
	/* no root: the monitor was at this window's list */
	g->gone = shrimp_odp_gone(mr) || !root;
	g->pinned = !g->gone && is_locked(mr, k);
}

/* The range of @mr that byte @off is in. */
static size_t range_at(const struct shrimp_mr *mr, uint64_t off)
{
	size_t i = 0;

	while (i + 1 < mr->niov && off >= mr->iov[i].iov_len)
		off -= mr->iov[i++].iov_len;
	return i;
}

/* Of a window whose key was taken back: none. */
static void take_parts(struct query *q, const struct shrimp_window *w)
{
	for (size_t i = 0; i < w->nparts; i++) {
		const struct shrimp_window_part *p = &w->part[i];
		size_t first = range_at(p->mr, p->off);

		for (size_t k = 0; k < p->ranges; k++)
			take(q, p->first + k, p->mr, first + k);
	}
	q->nranges = w->nparts ? w->mr.niov : 0;
}

static void take_all(struct query *q)
{
	const struct shrimp_mr *mr = q->mr;

	if (mr->window) {
		take_parts(q, (const struct shrimp_window *)mr);
		return;
	}
	for (size_t i = 0; i < mr->niov; i++)
		take(q, i, mr, i);
	q->nranges = mr->niov;
}

/* ---- the entry ---- */

static bool is_changing(const struct shrimp_mr *mr)
{
	return mr->changing;
}

static bool is_broken(const struct shrimp_mr *mr)
{
	return mr->broken;
}

/* True if @mr, or, of a window, any of its regions, @is. mr_lock held. */
static bool any(const struct shrimp_mr *mr,
		bool (*is)(const struct shrimp_mr *mr))
{
	const struct shrimp_window *w = (const struct shrimp_window *)mr;

	if (!mr->window)
		return is(mr);
	for (size_t i = 0; i < w->nparts; i++)
		if (is(w->part[i].mr))
			return true;
	return false;
}

/* What the tables say comes later, see sum_up(). mr_lock held. */
static uint32_t flags_of(const struct shrimp_mr *mr)
{
	uint32_t f = 0;

	if (mr->enabled && !any(mr, is_broken))
		f |= FI_SHRIMP_MR_LIVE;
	if (mr->window)
		f |= FI_SHRIMP_MR_WINDOW;
	if (mr->region.rights & RNIC_MR_ODP)
		f |= FI_SHRIMP_MR_ON_DEMAND;
	if (mr->region.length >= UINT64_C(1) << 47)
		f |= FI_SHRIMP_MR_IMPLICIT;
	if (mr->region.rights & RNIC_MR_LIST)
		f |= FI_SHRIMP_MR_LIST;
	if (mr->region.rights & RNIC_MR_OFFSET)
		f |= FI_SHRIMP_MR_OFFSET;
	if (mr->region.rights & RNIC_MR_GIVEN)
		f |= FI_SHRIMP_MR_GIVEN;
	return f;
}

/* mr_lock held. */
static void fill(struct query *q)
{
	struct shrimp_mr *mr = q->mr;
	struct fi_shrimp_mr_info *f = &q->info;
	struct rnic_mpt_entry e = { .key = mr->fid.key };

	if (mr->live) {
		rnic_mpt_read(&mr->domain->mpt, mr->slot, &e);
		f->slot = mr->slot;
	}
	f->key = mr->fid.key;
	f->addr = mr->region.va;
	f->len = mr->region.length;
	f->access = mr->access;
	f->version = e.version;
	f->binding = e.binding;
	f->flags = flags_of(mr);
	f->windows = shrimp_windows_count(mr);
	shrimp_odp_count(mr, f);
	take_all(q);
	if (mr->niov)
		f->mtt_pages = rnic_mtt_pages(&mr->domain->mtt, mr->region.mtt,
					      mr->region.rights & RNIC_MR_LIST);
}

/* The flags that depend on all of the translation. */
static void sum_up(struct query *q)
{
	struct fi_shrimp_mr_info *f = &q->info;

	if (f->len && q->pinned == f->len)
		f->flags |= FI_SHRIMP_MR_PINNED;
	if (q->gone)
		f->flags |= FI_SHRIMP_MR_GONE;
	if (q->gone && q->gone == f->len)
		f->flags &= ~(uint32_t)FI_SHRIMP_MR_LIVE;
}

/* As much of what was gathered as the caller has room for. */
static void give(const struct query *q, struct fi_shrimp_mr_info *info)
{
	size_t size = info->size < sizeof(*info) ? info->size : sizeof(*info);

	memcpy(info, &q->info, size);
	info->size = size;
}

int shrimp_mr_query(struct fid_mr *fid, struct fi_shrimp_mr_info *info,
		    struct fi_shrimp_mr_piece *piece, size_t *n)
{
	struct query q = { .mr = shrimp_mr_checked(fid), .piece = piece };
	pthread_mutex_t *lock;
	int ret = 0;

	if (!q.mr || (n && *n && !piece) ||
	    (info && info->size < sizeof(info->size)))
		return -FI_EINVAL;
	if (q.mr->domain->inherited)
		return -FI_EOPBADSTATE;
	q.room = n ? *n : 0;
	q.nodes = n;
	lock = &q.mr->domain->mr_lock;
	pthread_mutex_lock(lock);
	if (any(q.mr, is_changing))
		ret = -FI_EBUSY;
	else
		fill(&q);
	pthread_mutex_unlock(lock);
	if (ret)
		return ret;
	walk(&q);
	sum_up(&q);
	if (n)
		*n = q.n;
	if (info)
		give(&q, info);
	return 0;
}
