/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The inject heap of an endpoint: payload that outlives the call which sent
 * it, in memory that the receiver can read.
 *
 * Hands out offsets into an area that is mapped elsewhere; all bookkeeping
 * is in private memory, nothing in the area is read. The area is cut into
 * spans of RNIC_HEAP_SPAN bytes. A span holds objects of one size class and
 * goes back when its last object does; above RNIC_HEAP_SMALL_MAX an
 * allocation is a run of whole spans. The lowest free spans are taken first,
 * so the part of the area that ever gets memory is as small as the peak.
 * Objects are aligned to a cache line.
 *
 * No locking inside: all calls for one heap are made under the endpoint's
 * lock. Only the populate callback may block.
 */
#ifndef RNIC_HEAP_H
#define RNIC_HEAP_H

#include <stddef.h>
#include <stdint.h>

enum {
	RNIC_HEAP_SPAN = 65536,	     /* bytes of a span */
	RNIC_HEAP_SMALL_MAX = 32768, /* largest object inside a span */
	RNIC_HEAP_CLASSES = 18,	     /* sizes of small objects */
};

struct rnic_heap_span; /* private to heap.c */

/* Gives the area's bytes @off, @len memory. 0 or a negative errno value. */
typedef int (*rnic_heap_populate_fn)(void *arg, uint64_t off, uint64_t len);

/* A heap. Zeroed: finished. */
struct rnic_heap {
	uint64_t limit;			     /* most bytes in use */
	uint64_t used;			     /* bytes in use, rounded up each */
	uint32_t nspans;		     /* whole spans in the area */
	uint32_t low;			     /* no span below is free */
	struct rnic_heap_span *span;	     /* nspans of them */
	uint64_t *free_map;		     /* bit per span: 1 free */
	uint32_t partial[RNIC_HEAP_CLASSES]; /* span with room, list */
	rnic_heap_populate_fn populate;	     /* may be NULL */
	void *arg;			     /* its first argument */
};

/*
 * Readies @h for an area of @size bytes (what is beyond the last whole span
 * stays unused), all free, of which at most @limit may be in use. @populate
 * is called with @arg before the first use of each span, for one or several
 * at once; it may be NULL. @arg stays the caller's.
 * Returns 0, -EINVAL (@size below a span or above 2^36) or -ENOMEM.
 * Partner: rnic_heap_fini().
 */
int rnic_heap_init(struct rnic_heap *h, uint64_t size, uint64_t limit,
		   rnic_heap_populate_fn populate, void *arg);

/* Frees the bookkeeping; offsets may be out. Zeroed memory is fine. */
void rnic_heap_fini(struct rnic_heap *h);

/*
 * Finds room for @len bytes and sets @off. Returns 0; -EAGAIN if it must
 * wait for frees (limit reached, or no room now); -ENOMEM if it could not
 * even succeed in an empty heap; or populate's error. @off is set on success
 * only. Partner: rnic_heap_free().
 */
int rnic_heap_alloc(struct rnic_heap *h, size_t len, uint64_t *off);

/* Gives back what rnic_heap_alloc() placed at @off. */
void rnic_heap_free(struct rnic_heap *h, uint64_t off);

/* Bytes in use, each allocation rounded up to its size class or spans. */
uint64_t rnic_heap_used(const struct rnic_heap *h);

#endif /* RNIC_HEAP_H */
