/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Key caches: the counters and how many entries are in use.
 */
#include "tools/inspect_cache.h"

#include <inttypes.h>

#include "tools/inspect_file.h"
#include "tools/inspect_note.h"

/* Entries begin behind the counters' page, whatever their number. */
enum { CACHE_HEAD = offsetof(struct rnic_cache, entry) };

static void count_used(void *arg, uint64_t off, const void *buf, size_t len)
{
	const struct rnic_cache_entry *e = buf;
	struct insp_cache *c = arg;

	(void)off;
	for (size_t i = 0; i < len / sizeof(*e); i++)
		/* relaxed: a copy */
		c->used += rnic_load64_relaxed(&e[i].meta) != 0;
}

/* Reads the cache at @off, of @stride bytes, into *@c. */
static void cache_read(struct insp_device *d, uint64_t off, uint64_t stride,
		       struct insp_cache *c)
{
	struct rnic_cache head;
	uint64_t room = (stride - CACHE_HEAD) / sizeof(struct rnic_cache_entry);

	insp_read(&d->tables, off, &head, sizeof(head));
	/* relaxed: a copy */
	c->hits = rnic_load64_relaxed(&head.hits);
	c->misses = rnic_load64_relaxed(&head.misses);
	c->evictions = rnic_load64_relaxed(&head.evictions);
	c->invalidations = rnic_load64_relaxed(&head.invalidations);
	c->policy = rnic_load64_relaxed(&head.policy);
	c->ways = rnic_load64_relaxed(&head.ways);
	c->miss_ns = rnic_load64_relaxed(&head.miss_ns);
	c->entries = rnic_load64_relaxed(&head.entries);
	if (c->entries > room) {
		insp_note(&d->notes,
			  "place %u context %u: a key cache of %" PRIu64
			  " entries, there is room for %" PRIu64,
			  c->place, c->ctx, c->entries, room);
		c->entries = room;
	}
	insp_each_block(&d->tables, off + CACHE_HEAD,
			c->entries * sizeof(struct rnic_cache_entry),
			count_used, c);
}

static void cache_add(struct insp_cache *sum, const struct insp_cache *c)
{
	sum->hits += c->hits;
	sum->misses += c->misses;
	sum->evictions += c->evictions;
	sum->invalidations += c->invalidations;
	sum->used += c->used;
	sum->entries += c->entries;
}

void insp_caches_read(struct insp_device *d, bool each)
{
	const struct insp_range *r = &d->part[INSP_PART_CACHES];
	uint64_t stride = d->hdr.cache_stride;

	if (!r->ok)
		return;
	if (stride < CACHE_HEAD || stride % RNIC_LINE) {
		insp_note(&d->notes,
			  "header: %" PRIu64 " bytes from one key cache to "
			  "the next",
			  stride);
		return;
	}
	for (unsigned int i = 0; i < RNIC_EP_MAX * RNIC_CTX_PER_EP; i++) {
		struct insp_cache c = { .place = i / RNIC_CTX_PER_EP,
					.ctx = i % RNIC_CTX_PER_EP };
		uint64_t off = r->off + i * stride, at = off, end;

		/* a context that never was has no memory for its cache */
		if (!insp_next_data(&d->tables, &at, &end, off + stride))
			continue;
		cache_read(d, off, stride, &c);
		cache_add(&d->caches, &c);
		if (each)
			*(struct insp_cache *)insp_grow((void **)&d->cache,
							d->ncaches++,
							sizeof(c)) = c;
	}
}
