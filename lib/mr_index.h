/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Ranges of memory, found by a range that they cover.
 *
 * A range of n pages has the level k with 2^(k-1) < n <= 2^k. It lies in one
 * or two of the blocks of 2^k pages that memory is divided into, and is kept
 * under each of them in one hash table. Who looks for a range that covers his
 * own looks under the block of his first page at each level that is in use and
 * large enough: a handful of places, however many ranges there are.
 *
 * Readers take no lock and are in a read-side section of urcu_bp; the unmap
 * monitor walks without one. Changes are made under a lock of the caller's.
 * What was deleted may be freed after a grace period of both.
 */
#ifndef SHRIMP_MR_INDEX_H
#define SHRIMP_MR_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/atomic.h"
#include "shm/compiler.h"
#include "shm/layout.h"

enum {
	SHRIMP_MR_BUCKETS = 8192,  /* of the table, a power of two */
	SHRIMP_MR_LEVELS = 52,	   /* an address has 64 bits, a page 12 */
	SHRIMP_MR_PAGE_SHIFT = 12, /* log2 of RNIC_PAGE */
};

struct shrimp_span;

/* A range's place under one block. */
struct shrimp_span_link {
	rnic_aptr next;		  /* struct shrimp_span_link */
	struct shrimp_span *span; /* of which */
	uint64_t block;		  /* start of the block >> its size */
};

/* A range in the index; part of the caller's object. */
struct shrimp_span {
	uint64_t start;			 /* first address, of a page */
	uint64_t end;			 /* last address + 1, likewise */
	uint32_t have;			 /* the caller's bits, fixed */
	uint32_t level;			 /* see the head of the file */
	struct shrimp_span_link link[2]; /* the second may not be used */
};

struct shrimp_mr_index {
	rnic_a64 levels;		  /* a bit for each that is in use */
	uint64_t count[SHRIMP_MR_LEVELS]; /* ranges of a level; the lock */
	uint64_t total;			  /* ranges; the lock */
	rnic_aptr *bucket;		  /* heads of the chains */
};

/* Readies @ix. Returns 0 or -ENOMEM. Partner: shrimp_mr_index_fini(). */
int shrimp_mr_index_init(struct shrimp_mr_index *ix);

/* Frees the table, not the ranges; nobody looks any more. Zeroed: nothing. */
void shrimp_mr_index_fini(struct shrimp_mr_index *ix);

/* Adds @s, whose start, end and have are set. The lock is held. */
void shrimp_mr_index_add(struct shrimp_mr_index *ix, struct shrimp_span *s);

/* Takes @s out; readers may still be at it. The lock is held. */
void shrimp_mr_index_del(struct shrimp_mr_index *ix, struct shrimp_span *s);

/*
 * Calls @fn for ranges that have a byte in @start to @end, for some twice.
 * Under the lock, in a read-side section, or in the monitor's thread; @fn
 * changes nothing in the index. No lock, no memory.
 */
void shrimp_mr_index_overlap(const struct shrimp_mr_index *ix, uint64_t start,
			     uint64_t end,
			     void (*fn)(struct shrimp_span *s, void *arg),
			     void *arg);

/* Level of a range of @bytes, not 0. */
static inline unsigned int shrimp_span_level(uint64_t bytes)
{
	uint64_t pages = (bytes - 1) >> SHRIMP_MR_PAGE_SHIFT;

	return pages ? 64 - (unsigned int)__builtin_clzll(pages) : 0;
}

/* The chain of @block of @level. */
static inline rnic_aptr *shrimp_mr_bucket(const struct shrimp_mr_index *ix,
					  unsigned int level, uint64_t block)
{
	uint64_t h = (block + level) * UINT64_C(0x9e3779b97f4a7c15);

	return &ix->bucket[h >> 51];
}

_Static_assert(SHRIMP_MR_BUCKETS == 1 << (64 - 51), "top bits are the bucket");

/*
 * A range that covers @start to @end, pages, and has all bits of @want; NULL:
 * there is none. In a read-side section or under the lock.
 */
static inline struct shrimp_span *
shrimp_mr_index_find(const struct shrimp_mr_index *ix, uint64_t start,
		     uint64_t end, uint32_t want)
{
	unsigned int k = shrimp_span_level(end - start);
	/* relaxed: a range that is added now need not be found */
	uint64_t levels = rnic_load64_relaxed(&ix->levels) >> k << k;

	for (; levels; levels &= levels - 1) {
		unsigned int level = (unsigned int)__builtin_ctzll(levels);
		uint64_t block = start >> (SHRIMP_MR_PAGE_SHIFT + level);
		/* acquire: what shrimp_mr_index_add() published (X1) */
		struct shrimp_span_link *l = rnic_ptr_load_acquire(
			shrimp_mr_bucket(ix, level, block));

		/* acquire: likewise */
		for (; l; l = rnic_ptr_load_acquire(&l->next)) {
			struct shrimp_span *s = l->span;

			if (s->start <= start && end <= s->end &&
			    (s->have & want) == want)
				return s;
		}
	}
	return NULL;
}

#endif /* SHRIMP_MR_INDEX_H */
