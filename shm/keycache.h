/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The key cache of an execution context: translations that it has looked up
 * lately, so that it need not walk the target's tables again (contract K1).
 *
 * Its entries and counters lie in the tables of the context's own process
 * (struct rnic_cache), where tools read them. What remembers their use is
 * private memory of the context: lookups of a region that many share write
 * no line that another one reads (contract I7). A cached translation is only a
 * guess: the caller compares its version with that of the slot (contract K2).
 *
 * A cache is 2^n sets of as many ways; key and target choose the set.
 * One set is full associativity, one way is a direct map. All pieces of one
 * region are in one set. Which way of a full set gives way is the policy's to
 * say; a policy is a file, shm/keycache_*.c.
 *
 * Simulation. The same code tells how often a stream of keys hits, without a
 * device:
 *
 *	const struct rnic_keycache_cfg cfg = { .entries = 1024, .ways = 8,
 *					       .policy = RNIC_KEYCACHE_LRU };
 *	struct rnic_keycache k;
 *	void *mem = calloc(1, rnic_keycache_bytes(&cfg));
 *
 *	ret = rnic_keycache_init(&k, mem, &cfg);
 *	for (each key)
 *		rnic_keycache_simulate(&k, key);
 *	... k.mem->hits, misses, evictions ...
 *	rnic_keycache_fini(&k);
 *	free(mem);
 *
 * All calls: the context's thread, one at a time; nothing waits.
 */
#ifndef RNIC_KEYCACHE_H
#define RNIC_KEYCACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/layout.h"
#include "shm/mtt.h"

enum {
	RNIC_KEYCACHE_ENTRIES = 256,	       /* default */
	RNIC_KEYCACHE_ENTRIES_MAX = 1 << 20,   /* 64 MiB a context */
	RNIC_KEYCACHE_WAYS = 4,		       /* default */
	RNIC_KEYCACHE_WAYS_MAX = 256,	       /* a lookup compares them all */
	RNIC_KEYCACHE_MISS_NS_MAX = 1000000000 /* a second */
};

/* What the user may choose. Zeroed: 256 entries in sets of 4, CLOCK. */
struct rnic_keycache_cfg {
	uint32_t entries; /* capacity: @ways times 2^n; 0: the default */
	uint32_t ways;	  /* entries of a set; 0: the default */
	enum rnic_keycache_policy policy; /* who gives way */
	uint64_t miss_ns;		  /* emulated cost of a miss */
	uint64_t seed;			  /* of RNIC_KEYCACHE_RANDOM */
};

/* Where bytes lie. */
struct rnic_xlat {
	uint64_t entry;	     /* a leaf, enum rnic_leaf */
	uint64_t addr_in;    /* bytes from the start of its page */
	uint64_t contiguous; /* bytes that follow there */
	uint64_t version;    /* of the slot */
	uint64_t binding;    /* of the slot */
	uint32_t slot;	     /* MPT slot */
	uint32_t rights;     /* of the region, enum rnic_right */
};

/* What is cached: a contiguous piece of a region. */
struct rnic_piece {
	struct rnic_xlat x; /* of the piece's first byte; not @contiguous */
	uint64_t start;	    /* its address, as keys are used */
	uint64_t span;	    /* bytes of the piece */
	uint64_t room;	    /* from there to the region's end */
};

struct rnic_keycache;

/* A policy: a constant of its file. */
struct rnic_keycache_ops {
	const char *name; /* as the setting calls it */
	bool keeps;	  /* false: nothing is ever cached */
	/*
	 * What k->use[i] says of entry i. 1: when it was used last, insertion
	 * included, in ticks of the context. 0: a mark, not 0 if it was used
	 * since it came or since the policy cleared it.
	 */
	uint64_t step;
	/*
	 * The entry that gives way, from @first to @first + k->ways - 1, all of
	 * which are in use. @set is their set's number: k->hand[set] is the
	 * policy's own.
	 */
	uint32_t (*victim)(struct rnic_keycache *k, uint32_t set,
			   uint32_t first);
};

extern const struct rnic_keycache_ops rnic_keycache_clock;
extern const struct rnic_keycache_ops rnic_keycache_lru;
extern const struct rnic_keycache_ops rnic_keycache_random;
extern const struct rnic_keycache_ops rnic_keycache_none;

/* A key cache, as its context has it. Private. Zeroed: finished. */
struct rnic_keycache {
	struct rnic_cache_entry *entry;	     /* in @mem */
	uint64_t *use;			     /* by entry, see @step above */
	uint64_t tick;			     /* the latest use */
	uint64_t step;			     /* of the policy */
	uint32_t ways;			     /* 0: nothing is kept */
	uint32_t mask;			     /* number of sets, less one */
	uint8_t shift;			     /* log2 of the number of sets */
	uint8_t top;			     /* 64 - @shift, at most 63 */
	struct rnic_cache *mem;		     /* shared: counters, entries */
	const struct rnic_keycache_ops *ops; /* the policy */
	uint32_t *hand;			     /* by set, the policy's */
	uint64_t random;		     /* state, the policy's */
};

/* ---- rnic_cache_entry.meta ---- */

enum {
	RNIC_META_SLOT = RNIC_SLOT_BITS, /* bits of each field, from below */
	RNIC_META_RIGHTS = 12,
	RNIC_META_SPACE = 8,
	RNIC_META_KIND = 1, /* of the leaf: space, else address */
	RNIC_META_TARGET = 19,
	RNIC_META_TARGET_AT = 64 - RNIC_META_TARGET /* its first bit */
};
_Static_assert(RNIC_META_SLOT + RNIC_META_RIGHTS + RNIC_META_SPACE +
			       RNIC_META_KIND ==
		       RNIC_META_TARGET_AT,
	       "all bits");

/* The target that an entry is of: its number in the context, from 1 on. */
static inline uint32_t rnic_meta_target(uint64_t meta)
{
	return (uint32_t)(meta >> RNIC_META_TARGET_AT);
}

/* The MPT slot that it is of. */
static inline uint32_t rnic_meta_slot(uint64_t meta)
{
	return meta & ((1u << RNIC_META_SLOT) - 1);
}

/* ---- on the way of a hit ---- */

/*
 * The set of @key at target @number. Keys that follow each other, as those of
 * a provider do, are spread evenly; others as by chance.
 */
static inline uint32_t rnic_keycache_set(const struct rnic_keycache *k,
					 uint32_t number, uint64_t key)
{
	uint64_t h = (key >> k->shift ^ (uint64_t)number << 40) *
		     UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(key ^ h >> k->top) & k->mask;
}

/* Notes a use of entry @i, unless that is noted already: most often it is. */
static inline void rnic_keycache_touch(struct rnic_keycache *k, uint32_t i)
{
	if (k->use[i] != k->tick)
		k->use[i] = k->tick += k->step;
}

/*
 * The entry for byte @addr of @key at target @number, or NULL. A use of it; the
 * caller counts hit or miss, when it knows. No call, no lock, and what it
 * writes is private.
 */
static inline struct rnic_cache_entry *
rnic_keycache_probe(struct rnic_keycache *k, uint32_t number, uint64_t key,
		    uint64_t addr)
{
	uint32_t i = rnic_keycache_set(k, number, key) * k->ways;

	for (uint32_t end = i + k->ways; i < end; i++) {
		struct rnic_cache_entry *e = &k->entry[i];

		/* relaxed: words of this context, here and below */
		if (RNIC_LIKELY(rnic_load64_relaxed(&e->key) == key &&
				rnic_meta_target(rnic_load64_relaxed(
					&e->meta)) == number &&
				addr - rnic_load64_relaxed(&e->start) <
					rnic_load64_relaxed(&e->span))) {
			rnic_keycache_touch(k, i);
			return e;
		}
	}
	return NULL;
}

/*
 * Sets *@p to what @e says. Its own context; or a tool, which gets pieces of
 * several if they change meanwhile.
 */
static inline void rnic_keycache_load(const struct rnic_cache_entry *e,
				      struct rnic_piece *p)
{
	uint64_t meta = rnic_load64_relaxed(&e->meta);
	uint64_t phys = rnic_load64_relaxed(&e->phys);
	uint64_t space = meta >> (RNIC_META_SLOT + RNIC_META_RIGHTS) &
			 ((1u << RNIC_META_SPACE) - 1);
	uint64_t kind = meta >> (RNIC_META_TARGET_AT - 1) & 1;

	p->x.entry = (phys & ~(uint64_t)(RNIC_PAGE - 1)) |
		     space << RNIC_MTT_SPACE_SHIFT | kind << 1 |
		     RNIC_LEAF_VALID;
	p->x.addr_in = phys & (RNIC_PAGE - 1);
	p->x.version = rnic_load64_relaxed(&e->version);
	p->x.binding = rnic_load64_relaxed(&e->binding);
	p->x.slot = rnic_meta_slot(meta);
	p->x.rights = meta >> RNIC_META_SLOT & ((1u << RNIC_META_RIGHTS) - 1);
	p->start = rnic_load64_relaxed(&e->start);
	p->span = rnic_load64_relaxed(&e->span);
	p->room = rnic_load64_relaxed(&e->room);
}

/* ---- the rest ---- */

/* Name of enum rnic_keycache_policy @policy, NULL if none. Any thread. */
const char *rnic_keycache_name(uint64_t policy);

/* True if @entries make 2^n sets of @ways, which is not 0. */
static inline bool rnic_keycache_has_shape(uint32_t entries, uint32_t ways)
{
	uint32_t sets = entries / ways;

	return sets && !(entries % ways) && !(sets & (sets - 1));
}

/*
 * Returns 0 if @cfg can be had, or -EINVAL with what is wrong logged: a number
 * beyond its bounds (0 stands for a default), or @entries / @ways no power of
 * two.
 */
int rnic_keycache_check(const struct rnic_keycache_cfg *cfg);

/* Bytes of the shared part of a cache of @cfg, checked: whole pages. */
uint64_t rnic_keycache_bytes(const struct rnic_keycache_cfg *cfg);

/*
 * Readies @k, empty, in @mem of rnic_keycache_bytes(@cfg), populated, which
 * outlives it. Returns 0, -EINVAL (rnic_keycache_check()), or -ENOMEM
 * (logged). Partner: rnic_keycache_fini().
 */
int rnic_keycache_init(struct rnic_keycache *k, void *mem,
		       const struct rnic_keycache_cfg *cfg);

/* Frees what is private of @k; the counters stay. Zeroed: accepted. */
void rnic_keycache_fini(struct rnic_keycache *k);

/* Entries that @k can hold; 0: none. */
static inline uint32_t rnic_keycache_entries(const struct rnic_keycache *k)
{
	return (k->mask + 1) * k->ways;
}

/*
 * Keeps @p, found under @key at target @number (1 to 2^19 - 1), which is not
 * cached at this version. Takes an unused entry of its set, or an outdated one
 * of the same key, else one gives way. Only after the version was loaded behind
 * the fence of the announce bit (M2 to M4 in shm/grace.h).
 */
void rnic_keycache_insert(struct rnic_keycache *k, uint32_t number,
			  uint64_t key, const struct rnic_piece *p);

/* Forgets @e, whose version has moved, and counts that. */
void rnic_keycache_drop(struct rnic_keycache *k, struct rnic_cache_entry *e);

/* True if entries of target @number are to be forgotten. */
typedef bool (*rnic_keycache_fn)(uint32_t number, void *arg);

/* Forgets the entries that @fn says. Looks at all of them. */
void rnic_keycache_forget(struct rnic_keycache *k, rnic_keycache_fn fn,
			  void *arg);

/*
 * Sets *@filter to the announce bits of the slots that are cached of target
 * @number; returns how many. Looks at all entries.
 */
unsigned int rnic_keycache_announced(const struct rnic_keycache *k,
				     uint32_t number,
				     uint64_t filter[RNIC_FILTER_BITS / 64]);

/*
 * One lookup of a simulation: a hit, or a miss after which @key is kept; both
 * are counted. Returns true for a hit.
 */
bool rnic_keycache_simulate(struct rnic_keycache *k, uint64_t key);

#endif /* RNIC_KEYCACHE_H */
