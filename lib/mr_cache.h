/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The registration cache of a domain: what was found out about a range of
 * memory, kept for the next registration of it or of a part of it.
 *
 * An entry says that its pages are mapped with a protection and where they lie:
 * in the device's memory, in a file of the application's that peers can map,
 * or at their address. It may have a region of its own, which is handed out by
 * acquire of struct fi_ops_shrimp_cache. An entry that names addresses or
 * device memory is right about the bytes whatever happens: its hit makes no
 * system call. One that names a file's pages is looked at again at each hit.
 *
 *   new --find out, add, look again--> kept <--> in use
 *   kept --its memory goes: GONE, by the monitor--> not found any more
 *   GONE, or evicted --out of the index--> when nobody uses it: given back
 *
 * One word of an entry has its users, its state and its hits: who finds it adds
 * a user unless it is GONE, in one step. So an entry that the monitor has
 * marked has no new user, and who takes away the last user of one that is out
 * gives it back.
 *
 * Locks: hits and releases take none. Changes take the cache's own, inner to
 * everything but those of pins, watches, spaces and allocators; never held
 * while somebody waits for peers. The monitor takes none: lib/mr_monitor.c. A
 * fork's child uses no cache.
 */
#ifndef SHRIMP_MR_CACHE_H
#define SHRIMP_MR_CACHE_H

#include <pthread.h>
#include <rdma/fi_domain.h>
#include <sys/uio.h>
#include <urcu/list.h>

#include "lib/mr_index.h"
#include "lib/mr_monitor.h"

struct fi_ops_shrimp_cache;
struct fi_shrimp_stats;
struct shrimp_domain;
struct shrimp_mr;

/* What an entry has, and what is wanted of one: shrimp_span.have. */
enum {
	SHRIMP_MRC_R = 1u << 0,	     /* mapped to be read */
	SHRIMP_MRC_W = 1u << 1,	     /* mapped to be written */
	SHRIMP_MRC_FILE = 1u << 2,   /* its file was looked for */
	SHRIMP_MRC_REGION = 1u << 3, /* it has a region: rights follow */
	SHRIMP_MRC_RIGHTS = 4,	     /* shift of its enum rnic_right */
};

/* Users, and a hit, in the word of an entry; the rest is mr_cache.c's. */
#define SHRIMP_CACHED_USERS ((UINT64_C(1) << 20) - 1)
#define SHRIMP_CACHED_HIT   (UINT64_C(1) << 24)

/* FI_ bits of acquire: those that regions may have are neighbours. */
enum {
	SHRIMP_MR_ACCESS_SHIFT = 8, /* the first */
	SHRIMP_MR_ACCESSES = 64,    /* combinations */
};

/* An entry. */
struct shrimp_cached {
	struct shrimp_span span;    /* first: its range; what it has */
	struct shrimp_mr_cache *of; /* whose */
	rnic_a64 word;		    /* users, state, hits: mr_cache.c */
	rnic_a64 used;		    /* the cache's tick at the last hit */
	uint64_t leaf;		    /* where its first page lies */
	struct shrimp_mr *mr;	    /* its region, or NULL */
	bool file;		    /* in a file: held */
	bool asked;		    /* its hits are looked at */
	bool late;		    /* it is marked after its memory went */
	bool device;		    /* in the device's memory */
	bool pinned;		    /* it holds a pin */
	bool watched;		    /* it holds a watch */
	uint64_t watch[2];	    /* of these: start, end */
	uint64_t listed;	    /* tick of its place; the lock */
	struct cds_list_head lru;   /* in the cache's list; the lock */
	rnic_aptr next;		    /* of the stack of those that went */
};

struct shrimp_mr_cache {
	struct rnic_listener kernel;	     /* first: what the monitor tells */
	struct rnic_listener told;	     /* what the application tells */
	struct shrimp_domain *domain;	     /* whose */
	const struct shrimp_mr_monitor *mon; /* NULL: not opened yet */
	pthread_mutex_t opening;	     /* of mon; outer to lock */
	pthread_mutex_t lock;		     /* index, list, what says so */
	struct shrimp_mr_index index;	     /* entries that can be found */
	struct cds_list_head lru;	     /* the oldest first; the lock */
	struct cds_list_head busy;	     /* in use, not in lru; the lock */
	struct cds_list_head late;	     /* to be given back with a wait */
	rnic_a32 nlate;	 /* how many; written under the lock */
	rnic_a32 giving; /* being given back by some thread; likewise */
	struct cds_list_head litter;  /* to be freed; the lock */
	unsigned int nlitter;	      /* how many; the lock */
	rnic_a64 tick;		      /* insertions; the lock */
	rnic_aptr went;		      /* stack: marked, still in the index */
	rnic_a64 hits;		      /* of entries that were taken out */
	rnic_a64 misses;	      /* these are statistics */
	rnic_a64 uncached;	      /* likewise */
	rnic_a64 evictions;	      /* likewise */
	rnic_a64 gone[RNIC_GONE_MAX]; /* likewise, by cause */
	rnic_a64 bytes;		      /* in the index; written under the lock */
	rnic_a64 entries;	      /* likewise */
	rnic_a64 pinned;	      /* bytes, likewise */
	uint32_t wanted[SHRIMP_MR_ACCESSES]; /* by acquire; 0: not allowed */
};

/* Opens the cache of @d, empty. Returns 0 or -FI_ENOMEM. */
int shrimp_mr_cache_open(struct shrimp_domain *d);

/*
 * Drops what nobody uses. Waits for peers that use a key of its regions.
 */
void shrimp_mr_cache_flush(struct shrimp_domain *d);

/*
 * Partner of open; nobody uses an entry. Not opened: nothing. What has a
 * region whose fence is refused is left.
 */
void shrimp_mr_cache_close(struct shrimp_domain *d);

/*
 * An entry that covers @v, which does not wrap, with all bits of @want: kept or
 * new. Any thread; a hit takes no lock, and makes a system call only for pages
 * of a file. Returns 0 with *@e in use (partner: shrimp_cached_put()); or with
 * NULL: it cannot be kept, the caller finds out by himself; or -FI_EFAULT (not
 * mapped, or not so; logged), -FI_EINVAL, -FI_EIO.
 */
int shrimp_mr_cache_get(struct shrimp_domain *d, const struct iovec *v,
			uint32_t want, struct shrimp_cached **e);

/*
 * A new entry for @v that nobody else finds, in use. Returns 0 or what looking
 * at the memory and keeping its region say, or -FI_ENOMEM.
 */
int shrimp_mr_cache_single(struct shrimp_domain *d, const struct iovec *v,
			   uint32_t want, struct shrimp_cached **e);

/*
 * One user less; regions with its leaf are fenced. Any thread outside a
 * reader's section. May give the entry back, which takes locks and, if it has
 * a region, waits for peers.
 */
void shrimp_cached_put(struct shrimp_cached *e);

/* The same, but what has to wait is left to shrimp_mr_cache_reap(). */
void shrimp_cached_put_nonblock(struct shrimp_cached *e);

/* True if somebody uses @e. */
static inline bool shrimp_cached_used(const struct shrimp_cached *e)
{
	/* relaxed: the caller is one of them, or wrong, or has fenced (U4) */
	return rnic_load64_relaxed(&e->word) & SHRIMP_CACHED_USERS;
}

/* The leaf of the page of @addr, which lies in @e; @e is in use. */
static inline uint64_t shrimp_cached_leaf(const struct shrimp_cached *e,
					  uint64_t addr)
{
	return e->leaf + rnic_page_down(addr) - e->span.start;
}

/*
 * Gives back what went and nobody uses. Any thread outside a section; waits
 * for peers that use a key of its regions. Called by shrimp_mr_cache_reap()
 * of lib/domain.h, which looks first whether there is any.
 */
void shrimp_mr_cache_reap_slow(struct shrimp_domain *d);

/* True if something went, or was left to who may wait. A hint. Any thread. */
static inline bool shrimp_mr_cache_littered(const struct shrimp_mr_cache *c)
{
	/* relaxed: who comes too early leaves it to the next */
	return RNIC_UNLIKELY(rnic_ptr_load_relaxed(&c->went) ||
			     rnic_load32_relaxed(&c->nlate));
}

/* The same, but for what may have to wait: that is left to the others. */
void shrimp_mr_cache_tidy(struct shrimp_domain *d);

/*
 * The allocation at @ptr of the device's memory is about to be freed; what lies
 * in it is not in use. Any thread; as shrimp_mr_cache_reap().
 */
void shrimp_mr_cache_freed(struct shrimp_domain *d, const void *ptr);

/* Adds its counters to @t. Any thread. */
void shrimp_mr_cache_stats(const struct shrimp_domain *d,
			   struct fi_shrimp_stats *t);

/* Fills cache.wanted of @d, whose mr_mode is set. One thread. No error. */
void shrimp_mr_keep_init(struct shrimp_domain *d);

/* The operations behind FI_SHRIMP_OPS_CACHE; static. */
extern const struct fi_ops_shrimp_cache shrimp_cache_ops;

#endif /* SHRIMP_MR_CACHE_H */
