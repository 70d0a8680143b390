/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The initiator's side: from a key and an address to the bytes.
 *
 * An execution context (struct rnic_ctx) is whoever holds an endpoint's lock,
 * and separately the agent: one thread at a time. It has a key cache
 * (shm/keycache.h), and at each target (struct rnic_target) a reader slot of
 * its own in the lane that its endpoint claimed there: a sequence word, odd
 * while inside, and an announce line. Nobody else writes either.
 *
 *	rnic_enter(t);
 *	ret = rnic_resolve(c, t, &want, &x);
 *	if (!ret)
 *		... move x.contiguous bytes, at most some 512 KiB ...
 *	rnic_leave(t);
 *
 * Between enter and leave there are only the lookup and the move: no lane,
 * log, allocation or request. A move may fault pages in, on either side, and
 * an owner that executes one takes turns with others that do (shm/exec.c),
 * for one element: so a page whose faults a program serves (FUSE, a
 * userfaultfd of the application) holds up the owner's close until it has.
 * What was resolved is void after leave. If this process
 * dies inside, the owner sees its death and goes on; a thread that vanishes
 * inside from a live process holds up the owner for ever.
 *
 * The protocol, and what it pairs with, is in shm/grace.h.
 */
#ifndef RNIC_READER_H
#define RNIC_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/compiler.h"
#include "shm/keycache.h"
#include "shm/layout.h"
#include "shm/remote.h"

enum {
	RNIC_VIEW_SHIFT = 16, /* windows of 64 KiB */
};

/* Parts of a target's tables, mapped in windows. */
enum rnic_part {
	RNIC_PART_MPT,
	RNIC_PART_INDEX0,
	RNIC_PART_INDEX1,
	RNIC_PART_MTT,
	RNIC_PARTS
};

/* A part of a target's tables: the windows that are mapped. */
struct rnic_part_map {
	const uint8_t **win; /* by number, NULL if not mapped */
	uint32_t n;	     /* length of @win */
	uint64_t off;	     /* where the part begins in the tables */
	uint64_t size;	     /* its bytes, whole pages */
};

/* What is to be done outside before a lookup can go on. */
enum rnic_need {
	RNIC_NEED_NOTHING,
	RNIC_NEED_NUMBER, /* the context does not know the target */
	RNIC_NEED_FILTER, /* the announce line is full */
	RNIC_NEED_WINDOW, /* a window is not mapped */
};

struct rnic_target;

/* An execution context. Private, used by one thread at a time. */
struct rnic_ctx {
	struct rnic_keycache keys;   /* what it has looked up */
	uint64_t miss_ns;	     /* emulated cost of a miss */
	struct rnic_target **target; /* by number - 1; NULL: unused */
	uint32_t ntargets;	     /* length of @target */
	uint32_t gone;		     /* numbers that entries may still have */
};

/* A device as one context sees it. Private, used under the context. */
struct rnic_target {
	rnic_a64 *seq;			       /* sequence word in the lane */
	uint64_t now;			       /* its value */
	bool fence;			       /* fence at each enter */
	uint32_t number;		       /* in @ctx; 0: none yet */
	struct rnic_ctx *ctx;		       /* who has numbered it */
	struct rnic_part_map part[RNIC_PARTS]; /* windows */
	rnic_a64 *announce;		       /* filter in the lane */
	unsigned int announced;		       /* bits set in it */
	uint64_t filled;		  /* misses since it was made anew */
	const struct rnic_mpt_head *head; /* mapped */
	void *head_win;			  /* page that holds it */
	struct rnic_remote *remote;	  /* whose tables */
	enum rnic_need need;		  /* see rnic_resolve() */
	enum rnic_part need_part;	  /* NEED_WINDOW: of this part */
	uint32_t need_win;		  /* NEED_WINDOW: its number */
};

/* What is looked for. */
struct rnic_want {
	uint64_t key;	 /* of either kind */
	uint64_t addr;	 /* owner's address, or offset (RNIC_MR_OFFSET) */
	uint64_t len;	 /* bytes, all of which must be in the region */
	uint32_t rights; /* all needed, enum rnic_right */
	/* first chunk of the same operation, NULL if this is it */
	const struct rnic_xlat *first;
};

/*
 * Readies @c with an empty key cache of @cfg in @cache_mem, populated, of
 * rnic_keycache_bytes(@cfg), which outlives it. Returns what
 * rnic_keycache_init() says. Partner: rnic_ctx_fini().
 */
int rnic_ctx_init(struct rnic_ctx *c, void *cache_mem,
		  const struct rnic_keycache_cfg *cfg);

/*
 * rnic_ctx_init() with the cache that device @d has for context @index (below
 * RNIC_CTX_PER_EP) of endpoint place @place, as the device was opened with;
 * each has a seed of its own, made of the device's. Returns 0, -ENOSPC or
 * -ENOMEM (no pages, or no memory; logged).
 */
int rnic_ctx_open(struct rnic_ctx *c, struct rnic_device *d, unsigned int place,
		  unsigned int index);

/*
 * Frees what @c has; its targets are finished. The cache's memory is still
 * there: its counters stay, its policy becomes 0.
 */
void rnic_ctx_fini(struct rnic_ctx *c);

/*
 * Readies @t for context @ctx_index of the sender that claimed @lane at @r;
 * both stay for as long as @t. Takes over a sequence word that a dead
 * predecessor left odd. Returns 0, or what rnic_remote_tables() says, or
 * -ENOMEM. Partner: rnic_target_fini().
 */
int rnic_target_init(struct rnic_target *t, struct rnic_remote *r,
		     struct rnic_lane *lane, unsigned int ctx_index);

/* Unmaps and forgets; outside, before the lane is given up. Zeroed: nothing. */
void rnic_target_fini(struct rnic_target *t);

/*
 * Goes inside. Not nested. A store, on x86 a plain one; where the owner has no
 * membarrier, or this process is not registered for it, a full fence.
 */
static inline void rnic_enter(struct rnic_target *t)
{
	/*
	 * H1, M1: ordered before what follows by the owner's membarrier, or by
	 * the fence of a miss. Release: who sees it in place of the even value
	 * before it knows what was done until then, also by another thread of
	 * this context; pairs with A1 in shm/grace.c
	 */
	rnic_store64_release(t->seq, ++t->now);
	if (RNIC_UNLIKELY(t->fence))
		/* the sequence before the load of a version; for O5 */
		rnic_fence_full();
	else
		rnic_compiler_barrier();
}

/*
 * Leaves. What was done inside is visible to who sees it; a copy by streaming
 * stores has ended with its own fence.
 */
static inline void rnic_leave(struct rnic_target *t)
{
	/* Q1: all uses inside are done; pairs with A1 in shm/grace.c */
	rnic_store64_release(t->seq, ++t->now);
}

/* Byte @at of @m, within its size; NULL: its window is not mapped. */
RNIC_HOT const void *rnic_part_look(const struct rnic_part_map *m, uint64_t at)
{
	uint64_t i = at >> RNIC_VIEW_SHIFT;

	if (RNIC_UNLIKELY(i >= m->n || !m->win[i]))
		return NULL;
	return m->win[i] + (at & ((1 << RNIC_VIEW_SHIFT) - 1));
}

/*
 * The cached piece in which all of @w lies, with the rights, at the version
 * that its slot has now: *@p. For the first chunk of an operation, inside;
 * counts nothing. False: rnic_resolve() says more.
 */
RNIC_HOT bool rnic_resolve_quick(struct rnic_ctx *c, struct rnic_target *t,
				 const struct rnic_want *w,
				 struct rnic_piece *p)
{
	struct rnic_cache_entry *e;
	const struct rnic_mpt *m;
	uint64_t in;

	if (RNIC_UNLIKELY(t->ctx != c))
		return false;
	e = rnic_keycache_probe(&c->keys, t->number, w->key, w->addr);
	if (RNIC_UNLIKELY(!e))
		return false;
	rnic_keycache_load(e, p);
	in = w->addr - p->start;
	m = rnic_part_look(&t->part[RNIC_PART_MPT],
			   (uint64_t)p->x.slot * sizeof(*m));
	if (RNIC_UNLIKELY(!m || w->rights & ~p->x.rights ||
			  w->len > p->room - in || w->len > p->span - in))
		return false;
	p->x.addr_in += in;
	/* A7, H2: as in rnic_resolve() */
	return rnic_load64_acquire(&m->version) == p->x.version;
}

/*
 * Resolves @w at @t: sets *@x. The caller is inside. A hit loads one word of
 * the owner's; a miss has full fences. To map a window, to make a full announce
 * line anew, or to spend the emulated cost of a miss, it leaves and enters
 * again: t->now has then moved, and what was resolved at @t before is void. No
 * lock but then.
 * Returns 0 and *@x, which may be less than w->len (x->contiguous); -ENOKEY
 * (unknown, foreign, closed, its tables are damaged, or they do not hold
 * still), -EACCES (a right is missing), -ERANGE (not all within the region),
 * -EAGAIN (of a region on demand or a watched one: translation not present now:
 * leave, ask its owner for it, start again), -ESTALE (@w->first was of
 * another binding), -ENOMEM (no window).
 */
int rnic_resolve(struct rnic_ctx *c, struct rnic_target *t,
		 const struct rnic_want *w, struct rnic_xlat *x);

#endif /* RNIC_READER_H */
