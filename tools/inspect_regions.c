/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Slots are read in blocks, each block twice: a slot that is the same both
 * times, its version among it, was so at some moment between. One that is
 * not is read again by itself.
 */
#include "tools/inspect_regions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shm/mtt.h"
#include "tools/inspect_file.h"
#include "tools/inspect_note.h"
#include "tools/inspect_tables.h"
#include "tools/inspect_walk.h"

/* No memory is as large: what is registered is "everything". */
#define WHOLE (UINT64_C(1) << 47)

/* A pass over the slots. */
struct pass {
	struct insp_device *d;
	const struct insp_want *want;
	struct insp_walk *walk;
	struct rnic_mpt *again; /* INSP_BLOCK bytes */
	uint64_t zero;		/* slots without any version */
};

void insp_mpt_head_read(struct insp_device *d)
{
	struct rnic_mpt_head h;
	const struct insp_range *r = &d->part[INSP_PART_MPT];

	if (!r->ok || !d->part[INSP_PART_MPT_HEAD].ok)
		return;
	insp_read(&d->tables, d->part[INSP_PART_MPT_HEAD].off, &h, sizeof(h));
	d->mpt.slots = r->size / sizeof(struct rnic_mpt);
	/* relaxed: a copy */
	d->mpt.used = rnic_load64_relaxed(&h.used);
	if (d->mpt.used <= d->mpt.slots)
		return;
	insp_note(&d->notes,
		  "MPT: %" PRIu64 " slots in use, there are %" PRIu64,
		  d->mpt.used, d->mpt.slots);
	d->mpt.used = d->mpt.slots;
}

static uint64_t slot_off(const struct insp_device *d, uint64_t slot)
{
	return d->part[INSP_PART_MPT].off + slot * sizeof(struct rnic_mpt);
}

/* True if the region's bytes wrap. */
static bool wraps(const struct insp_region *r)
{
	return !(r->rights & RNIC_MR_OFFSET) && r->length &&
	       r->va > UINT64_MAX - (r->length - 1);
}

/* What can be seen to be wrong in the slot itself. */
static void slot_check(struct insp_device *d, const struct insp_region *r)
{
	if (!r->length)
		insp_note(&d->notes, "slot %" PRIu32 ": a region of 0 bytes",
			  r->slot);
	if (wraps(r))
		insp_note(&d->notes,
			  "slot %" PRIu32 ": %" PRIu64 " bytes at %#" PRIx64
			  " go beyond the last address",
			  r->slot, r->length, r->va);
	/* no root: its memory is gone, and the monitor was here */
	if ((r->rights & RNIC_MR_LIST) && r->mtt &&
	    rnic_mtt_root_depth(r->mtt) != 1)
		insp_note(&d->notes,
			  "slot %" PRIu32 ": its list of ranges is at depth %u",
			  r->slot, rnic_mtt_root_depth(r->mtt));
}

/* Copies the words of @m. Relaxed: a copy of ours. */
static void region_fill(struct insp_region *r, const struct rnic_mpt *m,
			uint64_t slot)
{
	*r = (struct insp_region){
		.slot = (uint32_t)slot,
		.version = rnic_load64_relaxed(&m->version),
		.key = rnic_load64_relaxed(&m->key),
		.va = rnic_load64_relaxed(&m->va),
		.length = rnic_load64_relaxed(&m->length),
		.mtt = rnic_load64_relaxed(&m->mtt),
		.rights = rnic_load64_relaxed(&m->rights),
		.parent = rnic_load64_relaxed(&m->parent),
		.binding = rnic_load64_relaxed(&m->binding),
		.ranges = 1,
	};
}

static void region_count(struct insp_mpt *m, const struct insp_region *r)
{
	m->live++;
	m->torn += r->torn;
	m->user += r->user;
	if (r->parent)
		m->window++;
	else if (r->length >= WHOLE)
		m->whole++;
	else
		m->bytes += r->length;
}

/* True if the slot of @r is not any more as it was read. */
static bool moved(const struct insp_device *d, const struct insp_region *r)
{
	uint64_t now;

	insp_read(&d->tables, slot_off(d, r->slot), &now, sizeof(now));
	return now != r->version;
}

static void region_take(struct pass *p, const struct rnic_mpt *m, uint64_t slot,
			bool torn)
{
	struct insp_device *d = p->d;
	unsigned int notes = d->notes.n, more = d->notes.more;
	struct insp_region r;

	region_fill(&r, m, slot);
	r.torn = torn;
	r.user = insp_index_has(d, slot) || rnic_key_slot(r.key) != slot;
	slot_check(d, &r);
	insp_walk_region(p->walk, &r);
	if (torn || moved(d, &r)) {
		/* closed or changed under the walk: it may have gone wrong */
		insp_notes_cut(&d->notes, notes);
		d->notes.more = more;
		r.torn = true;
	}
	region_count(&d->mpt, &r);
	if (p->want->has_key && r.key != p->want->key)
		return;
	d->mpt.found++;
	if (d->nregions >= p->want->regions)
		return;
	*(struct insp_region *)insp_grow((void **)&d->region, d->nregions++,
					 sizeof(r)) = r;
}

/* Reads @slot until it holds still. False if it does not. */
static bool settle(struct pass *p, uint64_t slot, struct rnic_mpt *m)
{
	struct rnic_mpt a;

	for (int i = 0; i < INSP_RETRIES; i++) {
		uint64_t off = slot_off(p->d, slot);

		insp_read(&p->d->tables, off, &a, sizeof(a));
		insp_read(&p->d->tables, off, m, sizeof(*m));
		if (!memcmp(&a, m, sizeof(a)))
			return true;
	}
	return false;
}

static void slot_take(struct pass *p, uint64_t slot, struct rnic_mpt *m,
		      bool same)
{
	bool torn = !same && !settle(p, slot, m);
	uint64_t version = rnic_load64_relaxed(&m->version);

	if (!version)
		p->zero++;
	else if (version == 1)
		p->d->mpt.fresh++;
	else if (version & 1)
		p->d->mpt.ended++;
	else
		region_take(p, m, slot, torn);
}

static void pass_block(void *arg, uint64_t off, const void *buf, size_t len)
{
	const struct rnic_mpt *m = buf;
	struct pass *p = arg;
	uint64_t slot = (off - slot_off(p->d, 0)) / sizeof(*m);

	insp_read(&p->d->tables, off, p->again, len);
	for (size_t i = 0; i < len / sizeof(*m); i++)
		slot_take(p, slot + i, &p->again[i],
			  !memcmp(&m[i], &p->again[i], sizeof(*m)));
}

void insp_regions_read(struct insp_device *d, const struct insp_want *w)
{
	struct insp_mpt *m = &d->mpt;
	struct pass p = { .d = d, .want = w };

	if (!m->used)
		return;
	p.again = insp_alloc(1, INSP_BLOCK);
	p.walk = insp_walk_new(d);
	insp_each_block(&d->tables, slot_off(d, 0),
			m->used * sizeof(struct rnic_mpt), pass_block, &p);
	/* and those that were not even read */
	p.zero = m->used - m->live - m->ended - m->fresh;
	if (p.zero)
		insp_note(&d->notes,
			  "MPT: %" PRIu64 " of %" PRIu64
			  " slots in use have no version",
			  p.zero, m->used);
	d->mtt.trees = insp_walk_free(p.walk);
	free(p.again);
}
