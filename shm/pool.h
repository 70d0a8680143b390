/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The chunk pool of a sending endpoint: which chunks are free.
 *
 * The pool's memory begins with small chunks, large ones follow. Chunk
 * numbers: small ones from 0 to nsmall - 1, large ones from nsmall to
 * nsmall + nlarge - 1. Free chunks of a size form a queue in order of
 * release, so that a slow receiver shrinks the pool but blocks nobody, and
 * with quick receivers the pool is walked in a circle.
 *
 * The geometry is also what a receiver computes from the header of a peer,
 * and how it bounds the chunk numbers of a peer's descriptors.
 *
 * struct rnic_pool is private to the sender's process; no locking inside:
 * all calls for one pool are made under the endpoint's lock. A geometry is
 * constant once made: any thread. Nothing here blocks.
 */
#ifndef RNIC_POOL_H
#define RNIC_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/layout.h"

#define RNIC_CHUNK_NONE UINT32_MAX /* not a chunk */

/* Where the chunks lie. Zeroed: no chunks at all. */
struct rnic_pool_geom {
	uint64_t bytes;	    /* the whole pool */
	uint64_t large_off; /* first large chunk */
	uint32_t nsmall;    /* small chunks, RNIC_POOL_SMALL bytes each */
	uint32_t nlarge;    /* large chunks, RNIC_POOL_LARGE bytes each */
};

/* Free chunks of one size, in order of release. */
struct rnic_pool_queue {
	uint32_t head;	/* longest free, or RNIC_CHUNK_NONE */
	uint32_t tail;	/* released last; valid if head is */
	uint32_t count; /* free chunks */
};

/* The free chunks of a pool. Zeroed: finished. */
struct rnic_pool {
	struct rnic_pool_geom geom;	 /* constant */
	struct rnic_pool_queue queue[2]; /* small, large */
	uint32_t *next;			 /* per chunk: next in its queue */
};

/*
 * Computes the geometry of a pool of @bytes whose large chunks begin at
 * @large_off; both may come from a peer. Returns 0, or -EINVAL if the pool
 * is empty, above RNIC_POOL_MAX or not made of whole chunks (@g unchanged).
 */
int rnic_pool_geom_init(struct rnic_pool_geom *g, uint64_t bytes,
			uint64_t large_off);

/*
 * Finds the place in the pool of @chunk, of which @len bytes are used; both
 * may come from a peer. Returns true and sets @off, or false if there is no
 * such chunk or it is shorter than @len (@off unchanged).
 */
static inline bool rnic_pool_locate(const struct rnic_pool_geom *g,
				    uint32_t chunk, uint32_t len, uint64_t *off)
{
	if (chunk < g->nsmall) {
		if (len > RNIC_POOL_SMALL)
			return false;
		*off = (uint64_t)chunk * RNIC_POOL_SMALL;
		return true;
	}
	chunk -= g->nsmall;
	if (chunk >= g->nlarge || len > RNIC_POOL_LARGE)
		return false;
	*off = g->large_off + (uint64_t)chunk * RNIC_POOL_LARGE;
	return true;
}

/*
 * Readies @p with all chunks free; arguments as for rnic_pool_geom_init().
 * Returns 0, -EINVAL or -ENOMEM. Partner: rnic_pool_fini().
 */
int rnic_pool_init(struct rnic_pool *p, uint64_t bytes, uint64_t large_off);

/* Frees what init took; chunks may be out. Zeroed memory is fine. */
void rnic_pool_fini(struct rnic_pool *p);

/*
 * Takes the chunk of the wanted size that is free the longest.
 * RNIC_CHUNK_NONE: none is free. Partner: rnic_pool_put().
 */
uint32_t rnic_pool_get(struct rnic_pool *p, bool large);

/* Gives @chunk back, which rnic_pool_get() returned. */
void rnic_pool_put(struct rnic_pool *p, uint32_t chunk);

/* The number of free chunks of a size. */
static inline uint32_t rnic_pool_free_count(const struct rnic_pool *p,
					    bool large)
{
	return p->queue[large].count;
}

#endif /* RNIC_POOL_H */
