/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The initiator's side: from a key and an address to the bytes.
 *
 * An execution context (struct rnic_ctx) is whoever holds an endpoint's lock,
 * and separately the agent: one thread at a time. It has a key cache, and at
 * each target (struct rnic_target) a reader slot of its own in the lane that
 * its endpoint claimed there: a sequence word, odd while inside, and an
 * announce line. Nobody else writes either.
 *
 *	rnic_enter(t);
 *	ret = rnic_resolve(c, t, &want, &x);
 *	if (!ret)
 *		... move x.contiguous bytes, at most some 512 KiB ...
 *	rnic_leave(t);
 *
 * Between enter and leave nothing waits: no lock, lane, log, allocation,
 * paging or request. What was resolved is void after leave. If this process
 * dies inside, the owner sees its death and goes on; a thread that vanishes
 * inside from a live process holds up the owner for ever.
 *
 * The protocol, and what it pairs with, is in shm/grace.h.
 */
#ifndef RNIC_READER_H
#define RNIC_READER_H

#include <stdbool.h>
#include <stdint.h>

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
	RNIC_NEED_CLEAR,  /* the announce line is full */
	RNIC_NEED_WINDOW, /* a window is not mapped */
};

struct rnic_target;

/* An execution context. Private, used by one thread at a time. */
struct rnic_ctx {
	struct rnic_cache *cache;      /* in our tables segment */
	uint8_t used[RNIC_CACHE_SETS]; /* CLOCK: a bit per way */
	uint8_t hand[RNIC_CACHE_SETS]; /* CLOCK: next victim */
	struct rnic_target **target;   /* by number - 1, or NULL */
	uint32_t ntargets;	       /* length of @target */
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
	const struct rnic_mpt_head *head;      /* mapped */
	void *head_win;			       /* page that holds it */
	struct rnic_remote *remote;	       /* whose tables */
	enum rnic_need need;		       /* see rnic_resolve() */
	enum rnic_part need_part;	       /* NEED_WINDOW: of this part */
	uint32_t need_win;		       /* NEED_WINDOW: its number */
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
 * Readies @c with the empty key cache @cache_mem, populated, of
 * sizeof(struct rnic_cache), which outlives it. No error. Partner:
 * rnic_ctx_fini().
 */
void rnic_ctx_init(struct rnic_ctx *c, void *cache_mem);

/*
 * rnic_ctx_init() with the cache that device @d has for context @index (below
 * RNIC_CTX_PER_EP) of endpoint place @place. Returns 0, -ENOSPC or -ENOMEM
 * (no pages for it, logged).
 */
int rnic_ctx_open(struct rnic_ctx *c, struct rnic_device *d, unsigned int place,
		  unsigned int index);

/* Frees what @c has; its targets are finished. */
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
 * Goes inside. Not nested. Plain store; where the owner has no membarrier, or
 * this process is not registered for it, a full fence.
 */
static inline void rnic_enter(struct rnic_target *t)
{
	/*
	 * H1, M1: relaxed: ordered before what follows by the owner's
	 * membarrier, or by the fence of a miss
	 */
	rnic_store64_relaxed(t->seq, ++t->now);
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

/*
 * Resolves @w at @t: sets *@x. The caller is inside. A hit loads one word of
 * the owner's; a miss has full fences. To map a window, or to clear a full
 * announce line, it leaves and enters again: t->now has then moved, and what
 * was resolved at @t before is void. No lock but then.
 * Returns 0 and *@x, which may be less than w->len (x->contiguous); -ENOKEY
 * (unknown, foreign, closed, or its tables are damaged), -EACCES (a right is
 * missing), -ERANGE (not all within the region), -EAGAIN (translation not
 * present now: leave, ask for it, start again), -ESTALE (@w->first was of
 * another binding), -ENOMEM (no window).
 */
int rnic_resolve(struct rnic_ctx *c, struct rnic_target *t,
		 const struct rnic_want *w, struct rnic_xlat *x);

#endif /* RNIC_READER_H */
