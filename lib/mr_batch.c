/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Many regions in one call (contract R10).
 *
 * What can fail comes first, for all of them: memory, pins, translation. Then
 * all keys appear under one lock, none before it is sure that all will. Ranges
 * that follow each other page by page, with the same rights, are looked at and
 * pinned as one: their pins add up to the same counts. A mapping that was
 * looked at is good for the next range that lies in it: what another thread
 * unmaps meanwhile might be gone after any look, and a pin of it fails.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/rdma/fi_ext_shrimp.h"
#include "lib/agent.h"
#include "lib/domain.h"
#include "lib/local.h"
#include "lib/mr.h"
#include "lib/mr_cache.h"
#include "lib/mr_ext.h"
#include "lib/odp.h"
#include "lib/refs.h"
#include "shm/pin.h"

/* A call under way. */
struct batch {
	struct shrimp_domain *d;       /* where */
	const struct fi_mr_attr *attr; /* of each */
	size_t n;		       /* how many */
	struct shrimp_mr **mr;	       /* objects, as far as they are made */
	struct rnic_mpt_item *item;    /* those that are published */
	size_t nitems;		       /* how many */
	struct rnic_vma vma; /* mapping of the last range; end 0: none */
};

/* ---- neighbours ---- */

static uint64_t start_of(const struct shrimp_mr *mr)
{
	return (uintptr_t)mr->iov[0].iov_base;
}

static uint64_t end_of(const struct shrimp_mr *mr)
{
	return start_of(mr) + mr->iov[0].iov_len;
}

/* True if the pages of @b begin where those of @a end. */
static bool follows(const struct shrimp_mr *a, const struct shrimp_mr *b)
{
	return a->niov == 1 && b->niov == 1 && a->access == b->access &&
	       rnic_page_down(end_of(a) - 1) + RNIC_PAGE ==
		       rnic_page_down(start_of(b));
}

/* Regions from @i on that are neighbours; 1: it is alone. */
static size_t run_from(const struct batch *b, size_t i)
{
	size_t n = 1;

	if (b->mr[i]->niov > 1 || shrimp_mr_unseen(b->mr[i]))
		return 1;
	while (i + n < b->n && follows(b->mr[i + n - 1], b->mr[i + n]) &&
	       !shrimp_mr_unseen(b->mr[i + n]))
		n++;
	return n;
}

/* Pins @n neighbours as one. 1: done, 0: each has to try by itself. */
static int pin_run(struct batch *b, size_t i, size_t n, struct rnic_vma *map)
{
	struct shrimp_mr *first = b->mr[i];
	void *p = first->iov[0].iov_base;
	size_t len = end_of(b->mr[i + n - 1]) - start_of(first);
	int ret =
		rnic_pin_check_map(p, len, shrimp_mr_prot(first->access), map);

	if (!ret)
		ret = rnic_pin(p, len, b->d->set->pin);
	return ret > 0 || b->d->set->pin == RNIC_PIN_OFF ? ret : 0;
}

/* The file of neighbour @mr, whose mapping is in @map, as when it is alone. */
static void find_file(struct shrimp_mr *mr, const struct rnic_vma *map,
		      bool pinned)
{
	mr->pinned = pinned;
	if (map->shared && mr->region.rights & RNIC_MR_GIVEN)
		rnic_space_get(&mr->domain->dev.spaces, map, start_of(mr),
			       mr->iov[0].iov_len, &mr->leaf[0]);
}

/* The mapping of @v, if it was looked at; else NULL. */
static const struct rnic_vma *known(const struct batch *b,
				    const struct iovec *v, int prot)
{
	uint64_t at = (uintptr_t)v->iov_base;

	if (at < b->vma.start || at >= b->vma.end ||
	    v->iov_len > b->vma.end - at || (b->vma.prot & prot) != prot)
		return NULL;
	return &b->vma;
}

static int pin_alone(struct batch *b, struct shrimp_mr *mr)
{
	int prot = shrimp_mr_prot(mr->access), ret = 0;

	for (size_t i = 0; i < mr->niov && !ret; i++) {
		const struct iovec *v = &mr->iov[i];

		if (!known(b, v, prot))
			ret = rnic_pin_check_map(v->iov_base, v->iov_len, prot,
						 &b->vma);
		if (!ret)
			ret = shrimp_mr_pin_one(mr, i, &b->vma);
	}
	return ret;
}

/* Checks and pins the @n regions from @i on. */
static int pin_some(struct batch *b, size_t i, size_t n)
{
	struct rnic_vma map = { 0 };
	bool off = b->d->set->pin == RNIC_PIN_OFF;
	int ret = 0;

	if (shrimp_mr_unseen(b->mr[i]))
		return 0;
	if (n > 1)
		ret = pin_run(b, i, n, &map);
	if (ret < 0)
		return ret;
	if (n > 1 && (ret > 0 || off)) {
		for (size_t k = i; k < i + n; k++)
			find_file(b->mr[k], &map, ret > 0);
		return 0;
	}
	ret = 0;
	for (size_t k = i; k < i + n && !ret; k++)
		ret = pin_alone(b, b->mr[k]);
	return ret;
}

/* ---- steps ---- */

static int make_objects(struct batch *b, uint64_t flags)
{
	for (size_t i = 0; i < b->n; i++) {
		b->mr[i] = shrimp_mr_new(b->d, &b->attr[i], flags);
		if (!b->mr[i])
			return -FI_ENOMEM;
		if (!shrimp_mr_allowed(b->mr[i]))
			return -FI_EOPNOTSUPP;
	}
	return 0;
}

/* Undoes what there is of objects, pins and translations. */
static void undo(struct batch *b, size_t translated)
{
	for (size_t i = 0; i < b->n && b->mr[i]; i++) {
		shrimp_odp_leave(b->mr[i]);
		if (i < translated)
			shrimp_mr_untranslate(b->mr[i], 0);
		shrimp_mr_unpin(b->mr[i]);
		shrimp_mr_free(b->mr[i]);
	}
}

static int pin_all(struct batch *b)
{
	int ret = 0;

	for (size_t i = 0, n; i < b->n && !ret; i += n) {
		n = run_from(b, i);
		ret = pin_some(b, i, n);
	}
	return ret;
}

/* Starts the agent if one of them needs it; lists what is to be published. */
static int gather(struct batch *b)
{
	bool agent = false;

	for (size_t i = 0; i < b->n; i++) {
		struct shrimp_mr *mr = b->mr[i];

		if (!shrimp_mr_at_once(mr) || shrimp_mr_private(mr))
			continue;
		agent = agent || shrimp_mr_needs_agent(mr);
		b->item[b->nitems++] = (struct rnic_mpt_item){
			.r = mr->region, .key = mr->fid.key, .user = mr->user
		};
	}
	return agent ? shrimp_agent_serve(b->d) : 0;
}

/* All keys are taken: nothing can fail any more. */
static void finish(struct batch *b, struct fid_mr **out)
{
	size_t k = 0;

	for (size_t i = 0; i < b->n; i++) {
		struct shrimp_mr *mr = b->mr[i];

		mr->enabled = shrimp_mr_at_once(mr);
		if (mr->enabled && !shrimp_mr_private(mr)) {
			mr->fid.key = b->item[k].key;
			mr->slot = b->item[k++].slot;
			mr->live = true;
			shrimp_odp_live(mr);
		}
	}
	rnic_mpt_show_many(&b->d->mpt, b->item, b->nitems);
	for (size_t i = 0; i < b->n; i++) {
		struct shrimp_mr *mr = b->mr[i];

		shrimp_mr_count_implicit(mr);
		if (mr->enabled)
			shrimp_local_show(mr);
		shrimp_ref_get(&b->d->refs);
		out[i] = &mr->fid;
	}
}

static int reserve_all(struct batch *b)
{
	int ret = gather(b);

	if (!ret)
		ret = rnic_mpt_reserve_many(&b->d->mpt, b->item, b->nitems);
	return ret == -EEXIST ? -FI_ENOKEY : ret;
}

static int run(struct batch *b, uint64_t flags, struct fid_mr **out)
{
	size_t translated = 0;
	int ret;

	memset(b->mr, 0, b->n * sizeof(struct shrimp_mr *));
	b->nitems = 0;
	ret = make_objects(b, flags);
	if (!ret)
		ret = pin_all(b);
	while (!ret && translated < b->n) {
		ret = shrimp_mr_translate(b->mr[translated]);
		if (!ret)
			ret = shrimp_mr_watch(b->mr[translated++]);
	}
	if (!ret)
		ret = reserve_all(b);
	if (ret)
		undo(b, translated);
	else
		finish(b, out);
	return ret;
}

static int check_all(struct fid *fid, const struct fi_mr_attr *attr, size_t n,
		     uint64_t flags, struct fid_mr **out)
{
	int ret = 0;

	if (!fid || fid->fclass != FI_CLASS_DOMAIN || !attr || !n || !out)
		return -FI_EINVAL;
	if (((struct shrimp_domain *)fid)->inherited)
		return -FI_EOPBADSTATE;
	for (size_t i = 0; i < n && !ret; i++)
		ret = shrimp_mr_check(&attr[i], flags);
	return ret;
}

int shrimp_mr_batch(struct fid *fid, const struct fi_mr_attr *attr, size_t n,
		    uint64_t flags, struct fid_mr **out)
{
	struct batch b = { .d = (struct shrimp_domain *)fid,
			   .attr = attr,
			   .n = n };
	int ret = check_all(fid, attr, n, flags, out);

	if (ret)
		return ret;
	shrimp_mr_reap(b.d);
	shrimp_mr_cache_reap(b.d);
	b.mr = calloc(n, sizeof(struct shrimp_mr *));
	b.item = calloc(n, sizeof(*b.item));
	ret = b.mr && b.item ? run(&b, flags, out) : -FI_ENOMEM;
	if (ret && b.mr && b.item && shrimp_mr_shed(b.d, ret))
		ret = run(&b, flags, out);
	free(b.item);
	free(b.mr);
	return ret;
}
