/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The counters of the registration cache, see mr_cache.h. A hit is counted in
 * the word of its entry, so that it writes no other; what an entry had counted
 * is in the cache's own count when it is taken out.
 */
#include "include/rdma/fi_ext_shrimp.h"
#include "lib/domain.h"
#include "lib/mr_cache.h"

static uint64_t hits_of(const struct cds_list_head *l)
{
	const struct shrimp_cached *e;
	uint64_t hits = 0;

	cds_list_for_each_entry (e, l, lru)
		hits += rnic_load64_relaxed(&e->word) / SHRIMP_CACHED_HIT;
	return hits;
}

void shrimp_mr_cache_stats(const struct shrimp_domain *d,
			   struct fi_shrimp_stats *t)
{
	struct shrimp_mr_cache *c = (struct shrimp_mr_cache *)&d->cache;

	pthread_mutex_lock(&c->lock);
	t->cache_hits += hits_of(&c->lru) + hits_of(&c->busy);
	pthread_mutex_unlock(&c->lock);
	/* relaxed: statistics */
	t->cache_hits += rnic_load64_relaxed(&c->hits);
	t->cache_misses += rnic_load64_relaxed(&c->misses);
	t->cache_uncached += rnic_load64_relaxed(&c->uncached);
	t->cache_evictions += rnic_load64_relaxed(&c->evictions);
	t->cache_unmapped += rnic_load64_relaxed(&c->gone[RNIC_GONE_UNMAPPED]);
	t->cache_moved += rnic_load64_relaxed(&c->gone[RNIC_GONE_MOVED]);
	t->cache_discarded +=
		rnic_load64_relaxed(&c->gone[RNIC_GONE_DISCARDED]);
	t->cache_told += rnic_load64_relaxed(&c->gone[RNIC_GONE_TOLD]);
	t->cache_lost += rnic_load64_relaxed(&c->gone[RNIC_GONE_LOST]);
	t->cache_merged += rnic_load64_relaxed(&c->gone[RNIC_GONE_MERGED]);
	t->cache_entries += rnic_load64_relaxed(&c->entries);
	t->cache_bytes += rnic_load64_relaxed(&c->bytes);
	t->cache_pinned += rnic_load64_relaxed(&c->pinned);
}
