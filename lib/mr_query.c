/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What a region or window is: its MPT entry, its translation, its pages.
 *
 * Exclusion: mr_lock for what windows and refreshes change; the object is its
 * client's, who does not close it meanwhile. So its tables stay, and they are
 * walked as any reader would, without a lock.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "include/rdma/fi_ext_shrimp.h"
#include "lib/domain.h"
#include "lib/mr.h"
#include "lib/mr_ext.h"
#include "lib/odp.h"
#include "lib/window.h"
#include "shm/numa.h"

enum {
	NODES = 512,   /* pages asked for at once */
	SHIFT_4K = 12, /* leaves of small pages */
	SHIFT_2M = 21, /* and of larger ones */
	SHIFT_1G = 30,
};

/* A query under way. */
struct query {
	struct shrimp_mr *mr;		   /* of what */
	struct fi_shrimp_mr_info info;	   /* gathered */
	struct fi_shrimp_mr_piece *piece;  /* the caller's */
	size_t room;			   /* of them */
	size_t n;			   /* pieces so far */
	struct fi_shrimp_mr_piece current; /* not yet in @piece; len 0: none */
	bool nodes;			   /* ask for them */
};

/* Consecutive bytes of one leaf. */
struct extent {
	uint64_t va;	/* owner's address */
	uint64_t len;	/* bytes */
	uint32_t shift; /* log2 of the leaf, 0: any length */
	int32_t space;	/* as in a piece */
	bool pinned;	/* its range is */
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
					.node = node };

	if (x->pinned)
		p.state |= FI_SHRIMP_PIECE_PINNED | FI_SHRIMP_PIECE_PRESENT;
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

static void count_leaf(struct query *q, uint32_t shift)
{
	unsigned int i = FI_SHRIMP_LEAF_EXTENT;

	if (shift == SHIFT_4K)
		i = FI_SHRIMP_LEAF_4K;
	else if (shift == SHIFT_2M)
		i = FI_SHRIMP_LEAF_2M;
	else if (shift == SHIFT_1G)
		i = FI_SHRIMP_LEAF_1G;
	q->info.leaves[i]++;
}

/* Most of the address space has no pages to speak of. */
static void add_extent(struct query *q, struct extent *x)
{
	struct fi_shrimp_mr_piece p;

	count_leaf(q, x->shift);
	if (!q->nodes)
		return;
	if (q->info.flags & FI_SHRIMP_MR_IMPLICIT) {
		p = piece_of(x, -FI_ENOSYS);
		add(q, &p);
		return;
	}
	while (x->len)
		add_pages(q, x);
}

/*
 * The extent at byte @at of range @r; what has no translation now is as long
 * as a small page.
 */
static struct extent extent_at(struct query *q, const struct rnic_mtt_range *r,
			       uint64_t at)
{
	struct extent x = { .va = r->va + at, .space = -1 };
	uint64_t leaf, off, len = 0;

	if (rnic_mtt_walk(r->root, r->va, x.va, page_at, &q->mr->domain->mtt,
			  false, &leaf, &off, &len)) {
		x.shift = SHIFT_4K;
		len = RNIC_PAGE - x.va % RNIC_PAGE;
	} else {
		if (leaf & RNIC_LEAF_SPACE)
			x.space = (int32_t)rnic_mtt_leaf_space_of(leaf);
		if (rnic_mtt_root_depth(r->root))
			x.shift = (uint32_t)__builtin_ctzll(
				len + off -
				(leaf & ~(uint64_t)(RNIC_PAGE - 1)));
	}
	x.len = len < r->bytes - at ? len : r->bytes - at;
	return x;
}

static void add_range(struct query *q, const struct rnic_mtt_range *r,
		      bool pinned)
{
	for (uint64_t at = 0; at < r->bytes;) {
		struct extent x = extent_at(q, r, at);

		at += x.len;
		x.pinned = pinned;
		add_extent(q, &x);
	}
}

static void walk(struct query *q)
{
	const struct shrimp_mr *mr = q->mr;
	const struct rnic_mtt_pool *pool = &mr->domain->mtt;
	uint64_t off = 0, rel;

	for (size_t i = 0; i < mr->niov; i++) {
		struct rnic_mtt_range r = { .bytes = mr->region.length,
					    .va = mr->region.va,
					    .root = mr->region.mtt };

		if (mr->region.rights & RNIC_MR_LIST)
			rnic_mtt_list_find(
				rnic_mtt_list_of(pool, mr->region.mtt), off, &r,
				&rel);
		add_range(q, &r, mr->pinned >> i & 1);
		off += r.bytes;
	}
	flush(q);
}

/* ---- the entry ---- */

static uint32_t flags_of(const struct shrimp_mr *mr)
{
	uint32_t all = (uint32_t)((1u << mr->niov) - 1), f = 0;

	if (mr->enabled && !mr->broken)
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
	if (mr->niov && (mr->pinned & all) == all)
		f |= FI_SHRIMP_MR_PINNED;
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
	if (mr->niov)
		f->mtt_pages = rnic_mtt_pages(&mr->domain->mtt, mr->region.mtt,
					      mr->region.rights & RNIC_MR_LIST);
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
	if (q.mr->changing)
		ret = -FI_EBUSY;
	else
		fill(&q);
	pthread_mutex_unlock(lock);
	if (ret)
		return ret;
	walk(&q);
	if (n)
		*n = q.n;
	if (info)
		give(&q, info);
	return 0;
}
