/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Key cache: everything but the lookup, which is in the header.
 *
 * Exclusion: the context's, one thread at a time. Words in shared memory are
 * stored relaxed throughout: this context alone uses them, others read them as
 * statistics.
 */
#include "shm/keycache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shm/log.h"

static const struct rnic_keycache_ops *const policies[] = {
	[RNIC_KEYCACHE_CLOCK] = &rnic_keycache_clock,
	[RNIC_KEYCACHE_LRU] = &rnic_keycache_lru,
	[RNIC_KEYCACHE_RANDOM] = &rnic_keycache_random,
	[RNIC_KEYCACHE_NONE] = &rnic_keycache_none,
};
_Static_assert(sizeof(policies) / sizeof(*policies) == RNIC_KEYCACHE_POLICIES,
	       "all policies");

const char *rnic_keycache_name(uint64_t policy)
{
	return policy < RNIC_KEYCACHE_POLICIES ? policies[policy]->name : NULL;
}

/* ---- how large it is ---- */

static uint32_t ways_of(const struct rnic_keycache_cfg *cfg)
{
	return cfg->ways ? cfg->ways : RNIC_KEYCACHE_WAYS;
}

/* Without regard to the policy. */
static uint32_t entries_of(const struct rnic_keycache_cfg *cfg)
{
	return cfg->entries ? cfg->entries : RNIC_KEYCACHE_ENTRIES;
}

static bool in_bounds(const struct rnic_keycache_cfg *cfg)
{
	return (unsigned int)cfg->policy < RNIC_KEYCACHE_POLICIES &&
	       entries_of(cfg) <= RNIC_KEYCACHE_ENTRIES_MAX &&
	       ways_of(cfg) <= RNIC_KEYCACHE_WAYS_MAX &&
	       cfg->miss_ns <= RNIC_KEYCACHE_MISS_NS_MAX &&
	       rnic_keycache_has_shape(entries_of(cfg), ways_of(cfg));
}

int rnic_keycache_check(const struct rnic_keycache_cfg *cfg)
{
	if (in_bounds(cfg))
		return 0;
	rnic_log(RNIC_LOG_WARN,
		 "key cache of %u entries, %u ways, policy %u: not within %u, "
		 "%u, %u, or no 2^n sets",
		 entries_of(cfg), ways_of(cfg), (unsigned int)cfg->policy,
		 RNIC_KEYCACHE_ENTRIES_MAX, RNIC_KEYCACHE_WAYS_MAX,
		 RNIC_KEYCACHE_POLICIES - 1);
	return -EINVAL;
}

uint64_t rnic_keycache_bytes(const struct rnic_keycache_cfg *cfg)
{
	uint64_t n = policies[cfg->policy]->keeps ? entries_of(cfg) : 0;
	uint64_t bytes =
		sizeof(struct rnic_cache) + n * sizeof(struct rnic_cache_entry);

	return (bytes + RNIC_PAGE - 1) / RNIC_PAGE * RNIC_PAGE;
}

/* ---- making and ending ---- */

/* What tools read of it; @policy is last, so that it seldom says too much. */
static void write_head(struct rnic_keycache *k,
		       const struct rnic_keycache_cfg *cfg)
{
	struct rnic_cache *m = k->mem;

	rnic_store64_relaxed(&m->entries, rnic_keycache_entries(k));
	rnic_store64_relaxed(&m->ways, k->ways);
	rnic_store64_relaxed(&m->miss_ns, cfg->miss_ns);
	rnic_store64_relaxed(&m->policy, (uint64_t)cfg->policy + 1);
}

int rnic_keycache_init(struct rnic_keycache *k, void *mem,
		       const struct rnic_keycache_cfg *cfg)
{
	int ret = rnic_keycache_check(cfg);
	uint32_t sets;
	size_t n;

	*k = (struct rnic_keycache){ .entry = NULL };
	if (ret)
		return ret;
	k->ops = policies[cfg->policy];
	k->ways = k->ops->keeps ? ways_of(cfg) : 0;
	sets = k->ops->keeps ? entries_of(cfg) / k->ways : 1;
	k->mask = sets - 1;
	k->shift = (uint8_t)__builtin_ctz(sets);
	k->top = k->shift ? 64 - k->shift : 63;
	n = rnic_keycache_entries(k);
	/* both in one: first what has the larger alignment */
	k->use = calloc(n + sets, sizeof(*k->use));
	if (!k->use) {
		rnic_log(RNIC_LOG_WARN, "key cache of %zu entries: no memory",
			 n);
		return -ENOMEM;
	}
	k->hand = (uint32_t *)(k->use + n);
	k->tick = 1;
	k->step = k->ops->step;
	k->random = cfg->seed;
	k->mem = mem;
	memset(mem, 0, rnic_keycache_bytes(cfg));
	k->entry = k->mem->entry;
	write_head(k, cfg);
	return 0;
}

void rnic_keycache_fini(struct rnic_keycache *k)
{
	if (k->mem)
		rnic_store64_relaxed(&k->mem->policy, 0);
	free(k->use);
	*k = (struct rnic_keycache){ .entry = NULL };
}

/* ---- entries ---- */

static uint64_t meta_make(uint32_t number, const struct rnic_xlat *x)
{
	uint64_t kind = x->entry >> 1 & 1;
	uint64_t space = rnic_mtt_leaf_space_of(x->entry);
	uint64_t rights = x->rights & ((1u << RNIC_META_RIGHTS) - 1);

	return x->slot | rights << RNIC_META_SLOT |
	       space << (RNIC_META_SLOT + RNIC_META_RIGHTS) |
	       kind << (RNIC_META_TARGET_AT - 1) |
	       (uint64_t)number << RNIC_META_TARGET_AT;
}

/* True if @e is of @key, and was of another version. */
static bool outdated(const struct rnic_cache_entry *e, uint32_t number,
		     uint64_t key, uint64_t version)
{
	return rnic_meta_target(rnic_load64_relaxed(&e->meta)) == number &&
	       rnic_load64_relaxed(&e->key) == key &&
	       rnic_load64_relaxed(&e->version) != version;
}

/* The entry to write: unused, outdated, or the one that the policy names. */
static uint32_t choose(struct rnic_keycache *k, uint32_t number, uint64_t key,
		       uint64_t version)
{
	uint32_t set = rnic_keycache_set(k, number, key);
	uint32_t first = set * k->ways;

	for (uint32_t i = first; i < first + k->ways; i++)
		if (!rnic_load64_relaxed(&k->entry[i].meta) ||
		    outdated(&k->entry[i], number, key, version))
			return i;
	rnic_count64(&k->mem->evictions, 1);
	return k->ops->victim(k, set, first);
}

void rnic_keycache_insert(struct rnic_keycache *k, uint32_t number,
			  uint64_t key, const struct rnic_piece *p)
{
	uint64_t page = p->x.entry & ~(uint64_t)(RNIC_PAGE - 1);
	struct rnic_cache_entry *e;
	uint32_t i;

	if (!k->ways)
		return;
	i = choose(k, number, key, p->x.version);
	e = &k->entry[i];
	rnic_store64_relaxed(&e->key, key);
	rnic_store64_relaxed(&e->version, p->x.version);
	rnic_store64_relaxed(&e->start, p->start);
	rnic_store64_relaxed(&e->span, p->span);
	rnic_store64_relaxed(&e->room, p->room);
	rnic_store64_relaxed(&e->phys, page + p->x.addr_in);
	rnic_store64_relaxed(&e->binding, p->x.binding);
	rnic_store64_relaxed(&e->meta, meta_make(number, &p->x));
	k->use[i] = k->step ? ++k->tick : 0;
}

void rnic_keycache_drop(struct rnic_keycache *k, struct rnic_cache_entry *e)
{
	rnic_count64(&k->mem->invalidations, 1);
	rnic_store64_relaxed(&e->meta, 0);
}

void rnic_keycache_forget(struct rnic_keycache *k, rnic_keycache_fn fn,
			  void *arg)
{
	uint32_t n = rnic_keycache_entries(k);

	for (uint32_t i = 0; i < n; i++) {
		rnic_a64 *meta = &k->entry[i].meta;
		uint32_t number = rnic_meta_target(rnic_load64_relaxed(meta));

		if (number && fn(number, arg))
			rnic_store64_relaxed(meta, 0);
	}
}

unsigned int rnic_keycache_announced(const struct rnic_keycache *k,
				     uint32_t number,
				     uint64_t filter[RNIC_FILTER_BITS / 64])
{
	uint32_t n = rnic_keycache_entries(k);
	unsigned int bits = 0;

	memset(filter, 0, RNIC_FILTER_BITS / 8);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t meta = rnic_load64_relaxed(&k->entry[i].meta);
		unsigned int bit = rnic_filter_bit(rnic_meta_slot(meta));

		if (rnic_meta_target(meta) == number)
			filter[bit / 64] |= UINT64_C(1) << bit % 64;
	}
	for (unsigned int i = 0; i < RNIC_FILTER_BITS / 64; i++)
		bits += (unsigned int)__builtin_popcountll(filter[i]);
	return bits;
}

bool rnic_keycache_simulate(struct rnic_keycache *k, uint64_t key)
{
	const struct rnic_piece p = { .x = { .version = 2 }, .span = 1 };

	if (rnic_keycache_probe(k, 1, key, 0)) {
		rnic_count64(&k->mem->hits, 1);
		return true;
	}
	rnic_count64(&k->mem->misses, 1);
	rnic_keycache_insert(k, 1, key, &p);
	return false;
}
