/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The memory translation table: from an address in a region to the bytes.
 *
 * A region has a root word. Its depth says what the root names: at depth 0
 * the root itself is the leaf of one contiguous range, whatever its size; at
 * depth d it names an MTT page of 512 entries, each for 512^(d-1) small
 * pages. The root of a part of a region (of a window) names the region's own
 * table: bits RNIC_MTT_ROOT_SKIP on say how many of its entries are passed
 * over. An entry is a leaf, which covers all of its share contiguously
 * (so 2 MiB and 1 GiB leaves come about), or names the next MTT page, or is
 * nothing. Who builds a tree may bound the leaves of a piece, to the pages of
 * what is behind it (shm/backing.h); two trees never share a page. Indices
 * count from the region's first page, rounded down to what an entry of the
 * root covers.
 *
 * Writing is for the owner alone: the pool's mutex serialises its threads.
 * Reading takes no lock. A tree is complete before anybody can find it (the
 * release of the region's MPT version publishes it), and its pages are used
 * again only after a grace period that began when it was no longer found. If
 * the owner dies, its tables stay as they are until the last mapping goes.
 */
#ifndef RNIC_MTT_H
#define RNIC_MTT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/layout.h"
#include "shm/segment.h"

enum {
	RNIC_MTT_DEPTH_MAX = 3,	       /* levels of tables */
	RNIC_MTT_RANGES_MAX = 16,      /* ranges under one key */
	RNIC_MTT_PAGE_SHIFT = 12,      /* of RNIC_PAGE */
	RNIC_MTT_SPACE_SHIFT = 4,      /* of the space in a leaf */
	RNIC_MTT_SPACES = RNIC_SPACES, /* values of the space */
	RNIC_MTT_LEVEL_SHIFT = 9,      /* of RNIC_MTT_FANOUT */
	RNIC_MTT_ROOT_VALID = 4,       /* in a root: RNIC_LEAF_VALID */
	RNIC_MTT_ROOT_SPACE = 8,       /* in a root: RNIC_LEAF_SPACE */
	RNIC_MTT_ROOT_DEPTH = 3,       /* in a root: mask of the depth */
	RNIC_MTT_ROOT_SKIP = 52,       /* in a root with tables: see below */
};

/* In a root with tables: they belong to another region, see rnic_mtt_sub(). */
#define RNIC_MTT_ROOT_SHARED (UINT64_C(1) << 61)

/* Leaf of page @page (number) of space @space. */
static inline uint64_t rnic_mtt_leaf_space(unsigned int space, uint64_t page)
{
	return page << RNIC_MTT_PAGE_SHIFT |
	       (uint64_t)(space & (RNIC_MTT_SPACES - 1))
		       << RNIC_MTT_SPACE_SHIFT |
	       RNIC_LEAF_SPACE | RNIC_LEAF_VALID;
}

/* Leaf of the page that holds address @va of the owner. */
static inline uint64_t rnic_mtt_leaf_va(uint64_t va)
{
	return (va & ~(uint64_t)(RNIC_PAGE - 1)) | RNIC_LEAF_VALID;
}

/* The space that leaf @leaf, with RNIC_LEAF_SPACE, names. */
static inline unsigned int rnic_mtt_leaf_space_of(uint64_t leaf)
{
	return leaf >> RNIC_MTT_SPACE_SHIFT & (RNIC_MTT_SPACES - 1);
}

/*
 * The root word for @entry: at @depth 0 a leaf (or nothing), above it an
 * entry with RNIC_LEAF_TABLE. The three flag bits of the entry become two,
 * since the depth says whether it is a table.
 */
static inline uint64_t rnic_mtt_root_make(unsigned int depth, uint64_t entry)
{
	return (entry & ~UINT64_C(15)) | (depth & RNIC_MTT_ROOT_DEPTH) |
	       (entry & RNIC_LEAF_VALID ? RNIC_MTT_ROOT_VALID : 0) |
	       (entry & RNIC_LEAF_SPACE ? RNIC_MTT_ROOT_SPACE : 0);
}

/* Depth of the tree, 0 to RNIC_MTT_DEPTH_MAX. */
static inline unsigned int rnic_mtt_root_depth(uint64_t root)
{
	return root & RNIC_MTT_ROOT_DEPTH;
}

/* Entries of the root's table that are passed over; depth above 0. */
static inline unsigned int rnic_mtt_root_skip(uint64_t root)
{
	return root >> RNIC_MTT_ROOT_SKIP & (RNIC_MTT_FANOUT - 1);
}

/* The bits of @root that name an entry; tables are below 2^32. */
static inline uint64_t rnic_mtt_root_page(uint64_t root)
{
	uint64_t low = (UINT64_C(1) << RNIC_MTT_ROOT_SKIP) - 1;

	return root & (rnic_mtt_root_depth(root) ? low : UINT64_MAX) &
	       ~UINT64_C(15);
}

/* The entry that rnic_mtt_root_make() was given. */
static inline uint64_t rnic_mtt_root_entry(uint64_t root)
{
	return rnic_mtt_root_page(root) |
	       (root & RNIC_MTT_ROOT_VALID ? RNIC_LEAF_VALID : 0) |
	       (root & RNIC_MTT_ROOT_SPACE ? RNIC_LEAF_SPACE : 0) |
	       (rnic_mtt_root_depth(root) ? RNIC_LEAF_TABLE : 0);
}

/*
 * The root of the region whose table @root shares, or @root if it shares none:
 * of a region with tables that is no part of another one.
 */
static inline uint64_t rnic_mtt_root_whole(uint64_t root)
{
	if (!(root & RNIC_MTT_ROOT_SHARED))
		return root;
	return rnic_mtt_root_page(root) | (root & UINT64_C(15));
}

/* A contiguous piece of a region. */
struct rnic_extent {
	uint64_t va;	 /* first address, owner's */
	uint64_t length; /* bytes */
	uint64_t entry;	 /* leaf of the page that holds @va */
	uint64_t leaf;	 /* bytes of the largest leaf, a size; 0: any */
};

/* Sizes of leaves, bytes, by the level of the entry: 1 to 3. */
static inline uint64_t rnic_mtt_leaf_bytes(unsigned int level)
{
	return UINT64_C(1) << (RNIC_MTT_PAGE_SHIFT +
			       (level - 1) * RNIC_MTT_LEVEL_SHIFT);
}

/* One of several ranges under one key. */
struct rnic_mtt_range {
	uint64_t bytes; /* length */
	uint64_t va;	/* first address, owner's */
	uint64_t root;	/* of its translation */
};

/*
 * The ranges of a region with RNIC_MR_LIST, in an MTT page that its root
 * names (at depth 1). Written by the owner before the region is published;
 * read by peers, which trust none of it. Of a window onto watched regions the
 * monitor may set roots to 0: their memory is gone.
 */
struct rnic_mtt_list {
	rnic_a64 count; /* ranges, at most RNIC_MTT_RANGES_MAX */
	struct {
		rnic_a64 bytes;	      /* length */
		rnic_a64 va;	      /* first address, owner's */
		rnic_a64 root;	      /* of its translation */
	} range[RNIC_MTT_RANGES_MAX]; /* in the order of the addresses */
};
_Static_assert(sizeof(struct rnic_mtt_list) <= RNIC_PAGE, "fits in a page");

struct rnic_mtt_node; /* private to mtt.c */

/* A queue of MTT pages, first in, first out; page number + 1, 0 for none. */
struct rnic_mtt_fifo {
	uint32_t head; /* next to leave */
	uint32_t tail; /* last that came */
};

/* The MTT pages of a device. Private to the owner. Zeroed: finished. */
struct rnic_mtt_pool {
	pthread_mutex_t lock;		/* all below; inner to everything */
	const struct rnic_segment *seg; /* where the pages lie */
	uint64_t off;			/* of page 0 in @seg, bytes */
	struct rnic_mtt_page *page;	/* mapped, @npages of them */
	uint64_t npages;		/* pages there are */
	uint64_t fresh;			/* pages below have been used once */
	uint64_t populated;		/* pages below have memory */
	uint64_t used;			/* in trees; neither free nor retired */
	struct rnic_mtt_node *node;	/* one for each page below @fresh */
	uint64_t nodes;			/* room in @node */
	struct rnic_mtt_fifo unused;	/* ready for use */
	struct rnic_mtt_fifo retired;	/* waiting for their grace period */
};

/*
 * Readies @p for @npages pages mapped at @page, which lie at byte @off of
 * @seg, none of them used. Segment and mapping stay the caller's. One thread.
 * No error. Partner: rnic_mtt_pool_fini().
 */
void rnic_mtt_pool_init(struct rnic_mtt_pool *p, const struct rnic_segment *seg,
			uint64_t off, struct rnic_mtt_page *page,
			uint64_t npages);

/* Frees the bookkeeping; trees may be out. Zeroed memory is accepted. */
void rnic_mtt_pool_fini(struct rnic_mtt_pool *p);

/* MTT pages in trees that are not freed. Any thread. */
uint64_t rnic_mtt_pool_used(struct rnic_mtt_pool *p);

/*
 * Builds the translation of a region of @n pieces that adjoin in va, with
 * page boundaries between them, using the largest leaves that fit (4 KiB,
 * 2 MiB, 1 GiB) and that the piece allows. One piece within one leaf, or that
 * allows any, needs no table and cannot fail for want of one. The first and
 * the last leaf may reach beyond the region, into the rest of their page, if
 * the piece allows that size and has it at the same place in its space.
 * Any thread; may sleep in an allocation.
 * Returns 0 with *@root, or, logged and with nothing left allocated, -EINVAL
 * (pieces empty, not adjoining, not leaves, wrapping, no size of leaf), -EFBIG
 * (more than three levels cover, about 512 GiB), -ENOSPC (no MTT page),
 * -ENOMEM.
 * The entries are stored with release (T1); what lets others find them is
 * the release of the region's version. Partner: rnic_mtt_free().
 */
int rnic_mtt_build(struct rnic_mtt_pool *p, const struct rnic_extent *x,
		   size_t n, uint64_t *root);

/*
 * Gives the pages of the tree @root back, to be used again once grace period
 * @grace has ended; @grace 0: at once, nobody has ever found the tree. Graces
 * come in rising order. Any thread; no error.
 */
void rnic_mtt_free(struct rnic_mtt_pool *p, uint64_t root, uint64_t grace);

/*
 * Makes the translation of a region on demand, @length bytes from @va on: one
 * page whatever the size, all of it nothing. Any thread. Returns 0 with
 * *@root, -EINVAL (empty, wraps), or as rnic_mtt_build() -EFBIG, -ENOSPC,
 * -ENOMEM. Partner: rnic_mtt_free().
 */
int rnic_mtt_make_empty(struct rnic_mtt_pool *p, uint64_t va, uint64_t length,
			uint64_t *root);

/*
 * The entry of the small page that holds @addr in such a tree, which the
 * caller knows to be in use; NULL if no table has it yet. *@bytes: how many
 * from @addr's page on have their entries behind it in the same table, or, of
 * NULL, none. Any thread, also one that may not wait: no lock.
 */
rnic_a64 *rnic_mtt_entry(const struct rnic_mtt_pool *p, uint64_t root,
			 uint64_t first_va, uint64_t addr, uint64_t *bytes);

/*
 * Adds the tables that rnic_mtt_entry() needs for @addr. One thread of a tree
 * at a time, beside walks and rnic_mtt_entry(). Returns 0, -ENOSPC, -ENOMEM,
 * with what was added so far.
 */
int rnic_mtt_entry_make(struct rnic_mtt_pool *p, uint64_t root,
			uint64_t first_va, uint64_t addr);

/*
 * Writes the list of the @n @ranges, whose roots rnic_mtt_build() made, and
 * sets *@root. Any thread. Returns 0, or with a message logged -EINVAL (@n is
 * 0 or above RNIC_MTT_RANGES_MAX, a range empty or wrapping, more than 2^64
 * bytes in all), -ENOSPC, -ENOMEM; then the roots are still the caller's.
 * Partner: rnic_mtt_list_free().
 */
int rnic_mtt_list_make(struct rnic_mtt_pool *p,
		       const struct rnic_mtt_range *ranges, size_t n,
		       uint64_t *root);

/* rnic_mtt_free() for the list @root and the trees of all its ranges. */
void rnic_mtt_list_free(struct rnic_mtt_pool *p, uint64_t root, uint64_t grace);

/*
 * Writes other ranges, of the same number and lengths, over those of the list
 * @root, which nobody can find now: its region is invalid and fenced. Their
 * trees stay the caller's, the old ones are not freed. No error.
 */
void rnic_mtt_list_set(struct rnic_mtt_pool *p, uint64_t root,
		       const struct rnic_mtt_range *ranges, size_t n);

/*
 * Range @i of the list @root, which readers may find, means nothing from now
 * on; its tree is nobody's. The pages of the list do not go meanwhile. Any
 * thread, also one that may not wait: no lock.
 */
void rnic_mtt_list_drop(struct rnic_mtt_pool *p, uint64_t root, size_t i);

/*
 * The root for the bytes from @off on of a contiguous range of addresses that
 * begins at @va, below 2^64, and has root @root. It has no table of its own:
 * rnic_mtt_free() of it does nothing, and it is good for as long as @root.
 */
uint64_t rnic_mtt_sub(uint64_t root, uint64_t va, uint64_t off);

/*
 * MTT pages of @root, of the list @root if @list; what a part of a region
 * shares with it does not count. The region is not being freed or changed.
 */
uint64_t rnic_mtt_pages(const struct rnic_mtt_pool *p, uint64_t root,
			bool list);

/* The list that @root, of the owner's own region, names. */
static inline const struct rnic_mtt_list *
rnic_mtt_list_of(const struct rnic_mtt_pool *p, uint64_t root)
{
	return (const struct rnic_mtt_list *)&p
		->page[rnic_mtt_root_entry(root) >> RNIC_MTT_PAGE_SHIFT];
}

/* The root of range @i, below the number of ranges, of the owner's own list. */
static inline uint64_t rnic_mtt_list_root(const struct rnic_mtt_list *l,
					  size_t i)
{
	/* relaxed: one word; if the monitor drops it, a moment ago or soon */
	return rnic_load64_relaxed(&l->range[i].root);
}

/*
 * Moves retired pages whose grace period has ended, as @ended(@arg, grace)
 * says, to the free ones; stops at the first that has not. @ended is called
 * under the pool's lock and must not wait. Any thread.
 */
void rnic_mtt_reap(struct rnic_mtt_pool *p,
		   bool (*ended)(void *arg, uint64_t grace), void *arg);

/* Maps MTT page @n of an owner, or says NULL if there is none such. */
typedef const struct rnic_mtt_page *(*rnic_mtt_page_fn)(void *arg, uint64_t n);

/*
 * Finds what @addr means in a region whose first address is @first_va.
 * @addr has been checked against the region's bounds; the tables are those of
 * a peer and nothing in them is trusted: each word is read once. For any
 * thread, inside or outside a reader's section: no lock, no wait but what
 * @page does.
 * @row: leaves of one table that lie in a row are one piece.
 * Returns 0 with *@leaf (kind and space), *@offset (bytes: in the space, or
 * the owner's address) and *@contiguous (bytes from there on, at least 1,
 * which may reach beyond the region's end but never wrap); -ENOENT if there
 * is nothing; -EPROTO if the tables are damaged, or @page refused; -EFAULT if
 * @addr is below the region. Nothing is logged: the caller may be inside.
 */
int rnic_mtt_walk(uint64_t root, uint64_t first_va, uint64_t addr,
		  rnic_mtt_page_fn page, void *arg, bool row, uint64_t *leaf,
		  uint64_t *offset, uint64_t *contiguous);

/*
 * Finds byte @at, counted from the start of the whole region, in @list, the
 * page that the root of a region with RNIC_MR_LIST names; each word is read
 * once. As rnic_mtt_walk(): no lock, no log. Returns 0 with *@range and *@rel,
 * below range->bytes; -ENOENT if it is beyond the end; -EPROTO if the list
 * is damaged.
 */
int rnic_mtt_list_find(const struct rnic_mtt_list *list, uint64_t at,
		       struct rnic_mtt_range *range, uint64_t *rel);

#endif /* RNIC_MTT_H */
