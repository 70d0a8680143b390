/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Translation: trees of MTT pages, built by the owner, walked by anybody.
 *
 * Exclusion: build, free, reap and lists against each other by p->lock, page
 * by page; a tree is filled by the one thread that builds it. Walks run
 * beside all of them: they see a tree that is complete and not yet reused,
 * because of the version and the grace period, or they see nonsense, which
 * the version check after it throws away and which cannot lead out of bounds.
 */
#include "shm/mtt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shm/breakage.h"
#include "shm/log.h"

enum {
	POPULATE_PAGES = 16, /* pages that get memory at once */
	NODES_MIN = 64,	     /* first size of the node array */
};

/* What the owner knows about a page. */
struct rnic_mtt_node {
	uint64_t grace; /* retired: what to wait for */
	uint32_t next;	/* in its queue, page number + 1 */
};

/* A region under construction. */
struct build {
	struct rnic_mtt_pool *pool;
	const struct rnic_extent *x; /* pieces */
	size_t n;		     /* how many */
	size_t i;		     /* piece that the next address is in */
	uint64_t first;		     /* first byte, rounded down to a page */
	uint64_t end;		     /* last byte + 1, rounded up to a page */
};

/* ---- pages ---- */

void rnic_mtt_pool_init(struct rnic_mtt_pool *p, const struct rnic_segment *seg,
			uint64_t off, struct rnic_mtt_page *page,
			uint64_t npages)
{
	*p = (struct rnic_mtt_pool){
		.seg = seg,
		.off = off,
		.page = page,
		.npages = npages < UINT32_MAX ? npages : UINT32_MAX - 1,
	};
	pthread_mutex_init(&p->lock, NULL);
}

void rnic_mtt_pool_fini(struct rnic_mtt_pool *p)
{
	if (!p->seg)
		return;
	free(p->node);
	pthread_mutex_destroy(&p->lock);
	*p = (struct rnic_mtt_pool){ 0 };
}

uint64_t rnic_mtt_pool_used(struct rnic_mtt_pool *p)
{
	uint64_t used;

	pthread_mutex_lock(&p->lock);
	used = p->used;
	pthread_mutex_unlock(&p->lock);
	return used;
}

static void fifo_put(struct rnic_mtt_pool *p, struct rnic_mtt_fifo *f,
		     uint32_t n)
{
	p->node[n].next = 0;
	if (f->tail)
		p->node[f->tail - 1].next = n + 1;
	else
		f->head = n + 1;
	f->tail = n + 1;
}

/* Takes the first page out of @f, which is not empty. */
static uint32_t fifo_take(struct rnic_mtt_pool *p, struct rnic_mtt_fifo *f)
{
	uint32_t n = f->head - 1;

	f->head = p->node[n].next;
	if (!f->head)
		f->tail = 0;
	return n;
}

static int grow_nodes(struct rnic_mtt_pool *p)
{
	uint64_t n = p->nodes ? 2 * p->nodes : NODES_MIN;
	struct rnic_mtt_node *node;

	if (p->fresh < p->nodes)
		return 0;
	node = reallocarray(p->node, n, sizeof(*node));
	if (!node) {
		rnic_log(RNIC_LOG_WARN, "MTT: no memory for %" PRIu64 " nodes",
			 n);
		return -ENOMEM;
	}
	p->node = node;
	p->nodes = n;
	return 0;
}

/* Gives the next pages memory, several at once while there are several. */
static int populate(struct rnic_mtt_pool *p)
{
	uint64_t n = p->npages - p->populated;
	int ret;

	if (p->fresh < p->populated)
		return 0;
	if (n > POPULATE_PAGES)
		n = POPULATE_PAGES;
	ret = rnic_segment_populate(p->seg, p->off + p->populated * RNIC_PAGE,
				    n * RNIC_PAGE);
	if (!ret)
		p->populated += n;
	return ret;
}

/* A page that was never used. */
static int take_fresh(struct rnic_mtt_pool *p, uint32_t *n)
{
	int ret;

	if (p->fresh == p->npages) {
		rnic_log(RNIC_LOG_WARN,
			 "MTT: all %" PRIu64 " pages are in use or wait for "
			 "their grace period",
			 p->npages);
		return -ENOSPC;
	}
	ret = grow_nodes(p);
	if (!ret)
		ret = populate(p);
	if (!ret)
		*n = (uint32_t)p->fresh++;
	return ret;
}

/* Takes a page, all of its entries nothing. */
static int page_take(struct rnic_mtt_pool *p, uint32_t *n)
{
	int ret = 0;

	pthread_mutex_lock(&p->lock);
	if (p->unused.head)
		*n = fifo_take(p, &p->unused);
	else
		ret = take_fresh(p, n);
	if (!ret)
		p->used++;
	pthread_mutex_unlock(&p->lock);
	for (unsigned int i = 0; !ret && i < RNIC_MTT_FANOUT; i++)
		/* relaxed: nobody can find the page yet */
		rnic_store64_relaxed(&p->page[*n].entry[i], 0);
	return ret;
}

/* Gives back a page. */
static void page_leave(struct rnic_mtt_pool *p, uint64_t n, uint64_t grace)
{
	pthread_mutex_lock(&p->lock);
	p->used--;
	p->node[n].grace = grace;
	fifo_put(p, grace ? &p->retired : &p->unused, (uint32_t)n);
	pthread_mutex_unlock(&p->lock);
}

void rnic_mtt_reap(struct rnic_mtt_pool *p,
		   bool (*ended)(void *arg, uint64_t grace), void *arg)
{
	pthread_mutex_lock(&p->lock);
	while (p->retired.head &&
	       ended(arg, p->node[p->retired.head - 1].grace))
		fifo_put(p, &p->unused, fifo_take(p, &p->retired));
	pthread_mutex_unlock(&p->lock);
}

/* ---- building ---- */

/* The entry that names MTT page @n. */
static uint64_t table_entry(uint64_t n)
{
	return n << RNIC_MTT_PAGE_SHIFT | RNIC_LEAF_TABLE | RNIC_LEAF_VALID;
}

/* The last byte + 1 of @x, rounded up to a page. */
static uint64_t extent_end(const struct rnic_extent *x)
{
	return rnic_page_down(x->va + x->length + RNIC_PAGE - 1);
}

static bool leaf_ok(uint64_t leaf)
{
	return !leaf || leaf == rnic_mtt_leaf_bytes(1) ||
	       leaf == rnic_mtt_leaf_bytes(2) || leaf == rnic_mtt_leaf_bytes(3);
}

/* Its size, its kind, and that neither its addresses nor its pages wrap. */
static bool extent_ok(const struct rnic_extent *x)
{
	return leaf_ok(x->leaf) && x->length && (x->entry & RNIC_LEAF_VALID) &&
	       !(x->entry & RNIC_LEAF_TABLE) &&
	       x->va <= UINT64_MAX - (RNIC_PAGE - 1) &&
	       x->length <= UINT64_MAX - (RNIC_PAGE - 1) - x->va &&
	       extent_end(x) - rnic_page_down(x->va) <=
		       UINT64_MAX - rnic_page_down(x->entry);
}

static int check_extents(const struct rnic_extent *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (extent_ok(&x[i]) &&
		    (!i || (x[i].va == x[i - 1].va + x[i - 1].length &&
			    !(x[i].va % RNIC_PAGE))))
			continue;
		rnic_log(RNIC_LOG_WARN,
			 "MTT: piece %zu of %zu at 0x%" PRIx64 ", %" PRIu64
			 " bytes, entry 0x%" PRIx64 ", leaves of 0x%" PRIx64
			 ": empty, wraps, no leaf, or does not adjoin",
			 i, n, x[i].va, x[i].length, x[i].entry, x[i].leaf);
		return -EINVAL;
	}
	if (!n)
		rnic_log(RNIC_LOG_WARN, "MTT: a region of no pieces");
	return n ? 0 : -EINVAL;
}

/* The level of entries that the smallest leaf of all pieces needs. */
static int level_min(const struct build *b)
{
	uint64_t leaf = UINT64_MAX;
	int level = 1;

	for (size_t i = 0; i < b->n; i++)
		if (b->x[i].leaf < leaf)
			leaf = b->x[i].leaf;
	while (level < RNIC_MTT_DEPTH_MAX &&
	       leaf > rnic_mtt_leaf_bytes((unsigned int)level))
		level++;
	return level;
}

/* The smallest depth that reaches from b->first to b->end. */
static int choose_depth(const struct build *b)
{
	for (int d = level_min(b); d <= RNIC_MTT_DEPTH_MAX; d++) {
		uint64_t each = rnic_mtt_leaf_bytes((unsigned int)d);

		if (b->end - (b->first & ~(each - 1)) <= each * RNIC_MTT_FANOUT)
			return d;
	}
	rnic_log(RNIC_LOG_WARN,
		 "MTT: %" PRIu64 " bytes in pieces are more than "
		 "%d levels cover",
		 b->end - b->first, RNIC_MTT_DEPTH_MAX);
	return -EFBIG;
}

static int fill(struct build *b, uint32_t n, unsigned int level, uint64_t base);

/*
 * True if piece b->i covers @each bytes at @va, a multiple, and may do so in
 * one leaf. A page of the backing that begins before the region, or ends after
 * it, counts whole.
 */
static bool one_leaf(const struct build *b, uint64_t va, uint64_t each)
{
	const struct rnic_extent *x = &b->x[b->i];
	uint64_t start = rnic_page_down(x->va), end = extent_end(x);

	if (x->leaf && x->leaf < each)
		return false;
	/* of the leaf's size, and in step with its space */
	if (x->leaf &&
	    !((start ^ x->entry) & (each - 1) & ~(uint64_t)(RNIC_PAGE - 1))) {
		start = b->i ? start : va;
		end = b->i + 1 < b->n ? end : UINT64_MAX;
	}
	return va >= start && end - va >= each;
}

/*
 * The entry for @va and the bytes after it: a leaf if one piece covers them
 * all, else a table that is filled too. On error the table, as far as it was
 * filled, is in *@entry, or 0.
 */
static int make_entry(struct build *b, unsigned int level, uint64_t va,
		      uint64_t *entry)
{
	const struct rnic_extent *x = &b->x[b->i];
	uint32_t n;
	int ret;

	*entry = 0;
	if (one_leaf(b, va, rnic_mtt_leaf_bytes(level))) {
		*entry = x->entry + (va - rnic_page_down(x->va));
		return 0;
	}
	ret = page_take(b->pool, &n);
	if (ret)
		return ret;
	*entry = table_entry(n);
	return fill(b, n, level - 1, va);
}

/* Fills MTT page @n, whose entries are of @level, from address @base on. */
static int fill(struct build *b, uint32_t n, unsigned int level, uint64_t base)
{
	uint64_t each = rnic_mtt_leaf_bytes(level), entry;
	int ret = 0;

	for (unsigned int i = 0; i < RNIC_MTT_FANOUT && !ret; i++) {
		uint64_t va = base + i * each;

		if (va >= b->end || va < base)
			break;
		if (va < b->first && b->first - va >= each)
			continue;
		while (extent_end(&b->x[b->i]) <= va)
			b->i++;
		ret = make_entry(b, level, va, &entry);
		/* T1: publishes the page it names; pairs with B1 */
		rnic_store64_release(&b->pool->page[n].entry[i], entry);
	}
	return ret;
}

/* Frees MTT page @n, whose entries are of @level, and what hangs on it. */
static void free_page(struct rnic_mtt_pool *p, uint64_t n, unsigned int level,
		      uint64_t grace)
{
	for (unsigned int i = 0; level > 1 && i < RNIC_MTT_FANOUT; i++) {
		/* relaxed: the owner's own words, its tree has one holder */
		uint64_t e = rnic_load64_relaxed(&p->page[n].entry[i]);

		if (e & RNIC_LEAF_TABLE)
			free_page(p, e >> RNIC_MTT_PAGE_SHIFT, level - 1,
				  grace);
	}
	page_leave(p, n, grace);
}

void rnic_mtt_free(struct rnic_mtt_pool *p, uint64_t root, uint64_t grace)
{
	unsigned int depth = rnic_mtt_root_depth(root);

	if (depth && !(root & RNIC_MTT_ROOT_SHARED))
		free_page(p, rnic_mtt_root_entry(root) >> RNIC_MTT_PAGE_SHIFT,
			  depth, grace);
}

/* True if the root can be the leaf of all there is. */
static bool needs_no_table(const struct build *b)
{
	uint64_t each = b->x->leaf;

	return b->n == 1 &&
	       (!each || (b->first / each == (b->end - 1) / each &&
			  one_leaf(b, b->first & ~(each - 1), each)));
}

/* The tables of @b, and all below. */
static int build_tables(struct build *b, uint64_t *root)
{
	int ret = choose_depth(b);
	unsigned int depth = (unsigned int)ret;
	uint32_t top;

	ret = ret < 0 ? ret : page_take(b->pool, &top);
	if (ret)
		return ret;
	ret = fill(b, top, depth, b->first & ~(rnic_mtt_leaf_bytes(depth) - 1));
	if (ret)
		free_page(b->pool, top, depth, 0);
	else
		*root = rnic_mtt_root_make(depth, table_entry(top));
	return ret;
}

int rnic_mtt_build(struct rnic_mtt_pool *p, const struct rnic_extent *x,
		   size_t n, uint64_t *root)
{
	struct build b = { .pool = p, .x = x, .n = n };
	int ret = check_extents(x, n);

	if (ret)
		return ret;
	b.first = rnic_page_down(x->va);
	b.end = extent_end(&x[n - 1]);
	if (!needs_no_table(&b))
		return build_tables(&b, root);
	*root = rnic_mtt_root_make(0, x->entry);
	return 0;
}

/* ---- on demand ---- */

int rnic_mtt_make_empty(struct rnic_mtt_pool *p, uint64_t va, uint64_t length,
			uint64_t *root)
{
	struct build b = { .first = rnic_page_down(va) };
	uint32_t top;
	int depth, ret;

	if (!length || va > UINT64_MAX - (RNIC_PAGE - 1) ||
	    length > UINT64_MAX - (RNIC_PAGE - 1) - va)
		return -EINVAL;
	b.end = rnic_page_down(va + length + RNIC_PAGE - 1);
	depth = choose_depth(&b);
	ret = depth < 0 ? depth : page_take(p, &top);
	if (!ret)
		*root = rnic_mtt_root_make((unsigned int)depth,
					   table_entry(top));
	return ret;
}

/* The entry for byte @rel in the table that @entry, of @level + 1, names. */
static rnic_a64 *entry_in(const struct rnic_mtt_pool *p, uint64_t entry,
			  unsigned int level, uint64_t rel)
{
	return &p->page[entry >> RNIC_MTT_PAGE_SHIFT]
			.entry[rel / rnic_mtt_leaf_bytes(level) %
			       RNIC_MTT_FANOUT];
}

/* Bytes from the root's first entry to @addr. */
static uint64_t rel_of(uint64_t root, uint64_t first_va, uint64_t addr)
{
	uint64_t each = rnic_mtt_leaf_bytes(rnic_mtt_root_depth(root));

	return addr - (first_va & ~(each - 1));
}

rnic_a64 *rnic_mtt_entry(const struct rnic_mtt_pool *p, uint64_t root,
			 uint64_t first_va, uint64_t addr, uint64_t *bytes)
{
	uint64_t rel = rel_of(root, first_va, addr);
	uint64_t entry = rnic_mtt_root_entry(root), each;
	unsigned int level = rnic_mtt_root_depth(root);
	rnic_a64 *e;

	for (;; level--) {
		e = entry_in(p, entry, level, rel);
		if (level == 1)
			break;
		/* acquire: the table, which a fault has added (T1) */
		entry = rnic_load64_acquire(e);
		if (entry & RNIC_LEAF_TABLE)
			continue;
		each = rnic_mtt_leaf_bytes(level);
		*bytes = each - (rel & (each - 1));
		return NULL;
	}
	each = rnic_mtt_leaf_bytes(2);
	*bytes = each - (rnic_page_down(rel) & (each - 1));
	return e;
}

int rnic_mtt_entry_make(struct rnic_mtt_pool *p, uint64_t root,
			uint64_t first_va, uint64_t addr)
{
	uint64_t rel = rel_of(root, first_va, addr);
	uint64_t entry = rnic_mtt_root_entry(root);
	unsigned int level = rnic_mtt_root_depth(root);
	uint32_t n;

	for (; level > 1; level--) {
		rnic_a64 *e = entry_in(p, entry, level, rel);
		int ret;

		/* relaxed: one thread at a time adds tables, this one */
		entry = rnic_load64_relaxed(e);
		if (entry & RNIC_LEAF_TABLE)
			continue;
		ret = page_take(p, &n);
		if (ret)
			return ret;
		entry = table_entry(n);
		/* T1: publishes the page it names; pairs with B1 */
		rnic_store64_release(e, entry);
	}
	return 0;
}

/* ---- lists ---- */

static int check_ranges(const struct rnic_mtt_range *r, size_t n)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < n && i < RNIC_MTT_RANGES_MAX; i++) {
		if (!r[i].bytes || r[i].bytes > UINT64_MAX - r[i].va ||
		    (r[i].bytes > UINT64_MAX - sum && !RNIC_BROKEN(overflow)))
			break;
		sum += r[i].bytes;
	}
	if (n && i == n)
		return 0;
	rnic_log(RNIC_LOG_WARN,
		 "MTT: list of %zu ranges: range %zu is empty or wraps, or "
		 "their number is not 1 to %d",
		 n, i, RNIC_MTT_RANGES_MAX);
	return -EINVAL;
}

/* Fills the list @l; nobody can find it. */
static void list_fill(struct rnic_mtt_list *l,
		      const struct rnic_mtt_range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		/* relaxed: the release of the region's version publishes */
		rnic_store64_relaxed(&l->range[i].bytes, ranges[i].bytes);
		rnic_store64_relaxed(&l->range[i].va, ranges[i].va);
		rnic_store64_relaxed(&l->range[i].root, ranges[i].root);
	}
	/* T2: publishes the ranges; pairs with B2 */
	rnic_store64_release(&l->count, n);
}

int rnic_mtt_list_make(struct rnic_mtt_pool *p,
		       const struct rnic_mtt_range *ranges, size_t n,
		       uint64_t *root)
{
	int ret = check_ranges(ranges, n);
	uint32_t page;

	if (!ret)
		ret = page_take(p, &page);
	if (ret)
		return ret;
	list_fill((struct rnic_mtt_list *)&p->page[page], ranges, n);
	*root = rnic_mtt_root_make(1, table_entry(page));
	return 0;
}

void rnic_mtt_list_set(struct rnic_mtt_pool *p, uint64_t root,
		       const struct rnic_mtt_range *ranges, size_t n)
{
	uint64_t page = rnic_mtt_root_entry(root) >> RNIC_MTT_PAGE_SHIFT;

	list_fill((struct rnic_mtt_list *)&p->page[page], ranges, n);
}

void rnic_mtt_list_drop(struct rnic_mtt_pool *p, uint64_t root, size_t i)
{
	uint64_t page = rnic_mtt_root_entry(root) >> RNIC_MTT_PAGE_SHIFT;
	struct rnic_mtt_list *l = (struct rnic_mtt_list *)&p->page[page];

	/* relaxed: whoever drops it publishes that (Z2), or the region */
	rnic_store64_relaxed(&l->range[i].root, 0);
}

void rnic_mtt_list_free(struct rnic_mtt_pool *p, uint64_t root, uint64_t grace)
{
	uint64_t n = rnic_mtt_root_entry(root) >> RNIC_MTT_PAGE_SHIFT;
	struct rnic_mtt_list *l = (struct rnic_mtt_list *)&p->page[n];
	/* relaxed: the owner's own words */
	uint64_t count = rnic_load64_relaxed(&l->count);

	for (uint64_t i = 0; i < count; i++)
		rnic_mtt_free(p, rnic_load64_relaxed(&l->range[i].root), grace);
	page_leave(p, n, grace);
}

int rnic_mtt_list_find(const struct rnic_mtt_list *list, uint64_t at,
		       struct rnic_mtt_range *range, uint64_t *rel)
{
	/* B2: what the list holds; pairs with T2 */
	uint64_t n = rnic_load64_acquire(&list->count);

	if (n > RNIC_MTT_RANGES_MAX)
		return -EPROTO;
	for (uint64_t i = 0; i < n; i++) {
		/* relaxed: after B2, each once */
		uint64_t bytes = rnic_load64_relaxed(&list->range[i].bytes);

		if (at >= bytes) {
			at -= bytes;
			continue;
		}
		range->bytes = bytes;
		range->va = rnic_load64_relaxed(&list->range[i].va);
		range->root = rnic_load64_relaxed(&list->range[i].root);
		*rel = at;
		return bytes > UINT64_MAX - range->va ? -EPROTO : 0;
	}
	return -ENOENT;
}

/* ---- parts of a region ---- */

uint64_t rnic_mtt_sub(uint64_t root, uint64_t va, uint64_t off)
{
	unsigned int depth = rnic_mtt_root_depth(root);
	uint64_t each, skip;

	/* a leaf covers all of it: the page that holds the first byte */
	if (!depth)
		return root + (rnic_page_down(va + off) - rnic_page_down(va));
	each = rnic_mtt_leaf_bytes(depth);
	skip = rnic_mtt_root_skip(root) + (va + off) / each - va / each;
	root &= ~((uint64_t)(RNIC_MTT_FANOUT - 1) << RNIC_MTT_ROOT_SKIP);
	return root | RNIC_MTT_ROOT_SHARED |
	       (skip & (RNIC_MTT_FANOUT - 1)) << RNIC_MTT_ROOT_SKIP;
}

/* MTT page @n, whose entries are of @level, and what hangs on it. */
static uint64_t count_page(const struct rnic_mtt_pool *p, uint64_t n,
			   unsigned int level)
{
	uint64_t sum = 1;

	for (unsigned int i = 0; level > 1 && i < RNIC_MTT_FANOUT; i++) {
		/* relaxed: the owner's own words */
		uint64_t e = rnic_load64_relaxed(&p->page[n].entry[i]);

		if (e & RNIC_LEAF_TABLE)
			sum += count_page(p, e >> RNIC_MTT_PAGE_SHIFT,
					  level - 1);
	}
	return sum;
}

static uint64_t count_tree(const struct rnic_mtt_pool *p, uint64_t root)
{
	unsigned int depth = rnic_mtt_root_depth(root);

	if (!depth || root & RNIC_MTT_ROOT_SHARED)
		return 0;
	return count_page(p, rnic_mtt_root_entry(root) >> RNIC_MTT_PAGE_SHIFT,
			  depth);
}

uint64_t rnic_mtt_pages(const struct rnic_mtt_pool *p, uint64_t root, bool list)
{
	const struct rnic_mtt_list *l;
	uint64_t sum = 1;

	if (!list)
		return count_tree(p, root);
	l = rnic_mtt_list_of(p, root);
	/* relaxed: the owner's own words */
	for (uint64_t i = 0; i < rnic_load64_relaxed(&l->count); i++)
		sum += count_tree(p, rnic_load64_relaxed(&l->range[i].root));
	return sum;
}

/* ---- walking ---- */

/*
 * The answer for byte @in of leaf @leaf, which covers @size bytes. The page
 * number may be anything.
 */
static int answer(uint64_t leaf, uint64_t in, uint64_t size, uint64_t *offset,
		  uint64_t *contiguous)
{
	uint64_t start = rnic_page_down(leaf);

	if (in >= size || start > UINT64_MAX - size)
		return -EPROTO;
	*offset = start + in;
	*contiguous = size - in;
	return 0;
}

/* Where a walk is. */
struct walk {
	const struct rnic_mtt_page *table; /* last one that was looked at */
	unsigned int i;			   /* entry of it */
	unsigned int level;		   /* of the entries of the next one */
	uint64_t entry;			   /* the last entry */
};

/* Follows the tables from @w->entry down to a leaf. */
static int descend(struct walk *w, uint64_t rel, rnic_mtt_page_fn page,
		   void *arg)
{
	while (w->entry & RNIC_LEAF_TABLE) {
		if (!w->level)
			return -EPROTO;
		w->table = page(arg, w->entry >> RNIC_MTT_PAGE_SHIFT);
		if (!w->table)
			return -EPROTO;
		w->i = rel / rnic_mtt_leaf_bytes(w->level) % RNIC_MTT_FANOUT;
		/* B1: what the entry names; pairs with T1 */
		w->entry = rnic_load64_acquire(&w->table->entry[w->i]);
		if (!(w->entry & RNIC_LEAF_VALID))
			return -ENOENT;
		--w->level;
	}
	return 0;
}

/*
 * Leaves of one table that lie in a row are one piece: w->entry becomes the
 * first of them. Returns the bytes that the first and, in *@after, the bytes
 * that the last is away. The words are a peer's: whatever they say, no more
 * than the table is walked.
 */
static uint64_t join(struct walk *w, uint64_t each, uint64_t *after)
{
	const rnic_a64 *e = w->table->entry;
	unsigned int first = w->i, last = w->i;
	uint64_t leaf = w->entry;

	/* acquire, as B1: before the second look at the version */
	while (last + 1 < RNIC_MTT_FANOUT &&
	       rnic_load64_acquire(&e[last + 1]) ==
		       leaf + (last + 1 - w->i) * each)
		last++;
	/* the same */
	while (first && leaf / each > w->i - first + 1 &&
	       rnic_load64_acquire(&e[first - 1]) ==
		       leaf - (w->i - first + 1) * each)
		first--;
	*after = (last - w->i) * each;
	w->entry = leaf - (w->i - first) * each;
	return (w->i - first) * each;
}

int rnic_mtt_walk(uint64_t root, uint64_t first_va, uint64_t addr,
		  rnic_mtt_page_fn page, void *arg, bool row, uint64_t *leaf,
		  uint64_t *offset, uint64_t *contiguous)
{
	unsigned int depth = rnic_mtt_root_depth(root);
	struct walk w = { .level = depth, .entry = rnic_mtt_root_entry(root) };
	uint64_t each, rel, before = 0, after = 0;
	int ret;

	if (addr < first_va)
		return -EFAULT;
	if (!(w.entry & RNIC_LEAF_VALID))
		return -ENOENT;
	if (!depth) {
		*leaf = w.entry;
		return answer(w.entry, addr - rnic_page_down(first_va),
			      UINT64_MAX - rnic_page_down(w.entry), offset,
			      contiguous);
	}
	each = rnic_mtt_leaf_bytes(depth);
	rel = addr - (first_va & ~(each - 1)) + rnic_mtt_root_skip(root) * each;
	if (rel / each >= RNIC_MTT_FANOUT)
		return -ENOENT;
	ret = descend(&w, rel, page, arg);
	if (ret)
		return ret;
	each = rnic_mtt_leaf_bytes(w.level + 1);
	if (row)
		before = join(&w, each, &after);
	*leaf = w.entry;
	return answer(w.entry, before + (rel & (each - 1)),
		      before + each + after, offset, contiguous);
}
