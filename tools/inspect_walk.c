/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The walk. A page belongs to one tree: one that is come to twice is a cycle,
 * or two regions share it, or the first region has been closed since and the
 * page is used again, which its slot's version tells.
 */
#include "tools/inspect_walk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shm/mtt.h"
#include "tools/inspect_file.h"
#include "tools/inspect_note.h"
#include "tools/inspect_tables.h"

/* Whose tree an MTT page is in. */
struct owner {
	uint64_t version; /* of its slot; 0: nobody's */
	uint32_t slot;
};

struct insp_walk {
	struct insp_device *d;
	struct insp_region *r; /* that is walked */
	struct owner *owner;   /* by page, NULL until needed */
	uint64_t visited;      /* pages */
	bool bad;	       /* @r is: one note is enough */
};

struct insp_walk *insp_walk_new(struct insp_device *d)
{
	struct insp_walk *w = insp_alloc(1, sizeof(*w));

	w->d = d;
	return w;
}

uint64_t insp_walk_free(struct insp_walk *w)
{
	uint64_t visited = w->visited;

	free(w->owner);
	free(w);
	return visited;
}

/* Notes what is wrong with page or leaf @what of the region. */
static void bad(struct insp_walk *w, const char *why, uint64_t what)
{
	if (!w->bad)
		insp_note(&w->d->notes, "slot %" PRIu32 ": %s %#" PRIx64,
			  w->r->slot, why, what);
	w->bad = true;
}

/* True if the region that @o names is still as it was. */
static bool stands(const struct insp_walk *w, const struct owner *o)
{
	uint64_t off = w->d->part[INSP_PART_MPT].off, now;

	insp_read(&w->d->tables, off + o->slot * sizeof(struct rnic_mpt), &now,
		  sizeof(now));
	return now == o->version;
}

/* Makes MTT page @n the region's and reads it. False: it is not to be used. */
static bool page_take(struct insp_walk *w, uint64_t n, uint64_t *entry)
{
	const struct insp_range *r = &w->d->part[INSP_PART_MTT];
	struct owner *o;

	if (!r->ok || n >= r->size / RNIC_PAGE) {
		bad(w, "there is no MTT page", n);
		return false;
	}
	if (!w->owner)
		w->owner = insp_alloc(r->size / RNIC_PAGE, sizeof(*w->owner));
	o = &w->owner[n];
	if (o->version && stands(w, o)) {
		if (!w->bad)
			insp_note(&w->d->notes,
				  "slot %" PRIu32 ": MTT page %" PRIu64
				  " is in the tree of slot %" PRIu32 " already",
				  w->r->slot, n, o->slot);
		w->bad = true;
		return false;
	}
	w->visited += !o->version;
	*o = (struct owner){ .version = w->r->version, .slot = w->r->slot };
	w->r->pages++;
	insp_read(&w->d->tables, r->off + n * RNIC_PAGE, entry, RNIC_PAGE);
	return true;
}

/* True if byte @at is beyond the arena, which grows. */
static bool beyond_arena(struct insp_device *d, uint64_t at)
{
	struct stat st;

	if (d->arena.fd < 0 || at < d->arena.size)
		return false;
	if (!fstat(d->arena.fd, &st))
		d->arena.size = (uint64_t)st.st_size;
	return at >= d->arena.size;
}

/* Takes the leaf @e, of @size: an index of insp_region.leaves. */
static void leaf_take(struct insp_walk *w, uint64_t e, unsigned int size)
{
	unsigned int space = rnic_mtt_leaf_space_of(e);
	struct insp_region *r = w->r;

	r->leaves[size]++;
	if (!(e & RNIC_LEAF_SPACE)) {
		r->where |= INSP_ADDRESS;
		return;
	}
	if (!space) {
		r->where |= INSP_ARENA;
		if (beyond_arena(w->d, e & ~(uint64_t)(RNIC_PAGE - 1)))
			bad(w, "a leaf beyond the arena:", e);
		return;
	}
	r->where |= INSP_FILE;
	r->space = space;
	if (!insp_space_used(w->d, space))
		bad(w, "a leaf of a space that is not in use:", e);
}

/* Page @n at @level, of whose entries each covers 512^(level - 1) pages. */
static void table_take(struct insp_walk *w, uint64_t n, unsigned int level)
{
	uint64_t entry[RNIC_MTT_FANOUT];

	if (!page_take(w, n, entry))
		return;
	for (unsigned int i = 0; i < RNIC_MTT_FANOUT; i++) {
		uint64_t e = entry[i];

		if (!(e & RNIC_LEAF_VALID))
			continue;
		if (!(e & RNIC_LEAF_TABLE))
			leaf_take(w, e, level);
		else if (level == 1)
			bad(w, "a table below the lowest level:", e);
		else
			table_take(w, e >> RNIC_MTT_PAGE_SHIFT, level - 1);
	}
}

static void root_take(struct insp_walk *w, uint64_t root)
{
	unsigned int depth = rnic_mtt_root_depth(root);
	uint64_t e = rnic_mtt_root_entry(root);

	if (!(e & RNIC_LEAF_VALID))
		return;
	/* of a window: the tree is its region's */
	if (w->r->parent && depth && root & RNIC_MTT_ROOT_SHARED)
		return;
	if (depth)
		table_take(w, e >> RNIC_MTT_PAGE_SHIFT, depth);
	else
		leaf_take(w, e, 0);
}

static void list_take(struct insp_walk *w)
{
	uint64_t page[RNIC_MTT_FANOUT];
	struct rnic_mtt_list list;
	uint64_t n, left = 0;

	if (!page_take(w, rnic_mtt_root_entry(w->r->mtt) >> RNIC_MTT_PAGE_SHIFT,
		       page))
		return;
	memcpy(&list, page, sizeof(list));
	/* relaxed: a copy */
	n = rnic_load64_relaxed(&list.count);
	if (!n || n > RNIC_MTT_RANGES_MAX) {
		bad(w, "a list whose number of ranges is", n);
		return;
	}
	w->r->ranges = (unsigned int)n;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t root = rnic_load64_relaxed(&list.range[i].root);

		left |= root;
		root_take(w, root);
	}
	if (!left)
		w->r->where |= INSP_GONE;
}

void insp_walk_region(struct insp_walk *w, struct insp_region *r)
{
	w->r = r;
	w->bad = false;
	if (!r->mtt)
		r->where = INSP_GONE;
	else if (r->rights & RNIC_MR_LIST)
		list_take(w);
	else
		root_take(w, r->mtt);
	if (!r->where && !r->parent)
		r->where = INSP_NOWHERE;
}
