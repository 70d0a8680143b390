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
	size_t i;		     /* piece that the next address is in */
	uint64_t first;		     /* first byte, rounded down to a page */
	uint64_t end;		     /* last byte + 1, rounded up to a page */
};

/* Bytes that an entry of a table covers, @level 1 to 3. */
static uint64_t entry_bytes(unsigned int level)
{
	return UINT64_C(1) << (RNIC_MTT_PAGE_SHIFT +
			       (level - 1) * RNIC_MTT_LEVEL_SHIFT);
}

static uint64_t page_down(uint64_t va)
{
	return va & ~(uint64_t)(RNIC_PAGE - 1);
}

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
	return page_down(x->va + x->length + RNIC_PAGE - 1);
}

/* Its size, its kind, and that neither its addresses nor its pages wrap. */
static bool extent_ok(const struct rnic_extent *x)
{
	return x->length && (x->entry & RNIC_LEAF_VALID) &&
	       !(x->entry & RNIC_LEAF_TABLE) &&
	       x->va <= UINT64_MAX - (RNIC_PAGE - 1) &&
	       x->length <= UINT64_MAX - (RNIC_PAGE - 1) - x->va &&
	       extent_end(x) - page_down(x->va) <=
		       UINT64_MAX - page_down(x->entry);
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
			 " bytes, entry 0x%" PRIx64
			 ": empty, wraps, no leaf, or does not adjoin",
			 i, n, x[i].va, x[i].length, x[i].entry);
		return -EINVAL;
	}
	if (!n)
		rnic_log(RNIC_LOG_WARN, "MTT: a region of no pieces");
	return n ? 0 : -EINVAL;
}

/* The smallest depth that reaches from b->first to b->end. */
static int choose_depth(const struct build *b)
{
	for (int d = 1; d <= RNIC_MTT_DEPTH_MAX; d++) {
		uint64_t each = entry_bytes((unsigned int)d);

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
 * The entry for @va and the bytes after it: a leaf if one piece covers them
 * all, else a table that is filled too. On error the table, as far as it was
 * filled, is in *@entry, or 0.
 */
static int make_entry(struct build *b, unsigned int level, uint64_t va,
		      uint64_t *entry)
{
	const struct rnic_extent *x = &b->x[b->i];
	uint64_t start = page_down(x->va);
	uint32_t n;
	int ret;

	*entry = 0;
	if (va >= start && extent_end(x) - va >= entry_bytes(level)) {
		*entry = x->entry + (va - start);
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
	uint64_t each = entry_bytes(level), entry;
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

	if (depth)
		free_page(p, rnic_mtt_root_entry(root) >> RNIC_MTT_PAGE_SHIFT,
			  depth, grace);
}

int rnic_mtt_build(struct rnic_mtt_pool *p, const struct rnic_extent *x,
		   size_t n, uint64_t *root)
{
	struct build b = { .pool = p, .x = x };
	int depth, ret = check_extents(x, n);
	uint32_t top;

	if (ret)
		return ret;
	if (n == 1) {
		*root = rnic_mtt_root_make(0, x->entry);
		return 0;
	}
	b.first = page_down(x->va);
	b.end = extent_end(&x[n - 1]);
	depth = choose_depth(&b);
	ret = depth < 0 ? depth : page_take(p, &top);
	if (ret)
		return ret;
	ret = fill(&b, top, (unsigned int)depth,
		   b.first & ~(entry_bytes((unsigned int)depth) - 1));
	if (ret)
		free_page(p, top, (unsigned int)depth, 0);
	else
		*root = rnic_mtt_root_make((unsigned int)depth,
					   table_entry(top));
	return ret;
}

/* ---- lists ---- */

static int check_ranges(const struct rnic_mtt_range *r, size_t n)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < n && i < RNIC_MTT_RANGES_MAX; i++) {
		if (!r[i].bytes || r[i].bytes > UINT64_MAX - r[i].va ||
		    r[i].bytes > UINT64_MAX - sum)
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

int rnic_mtt_list_make(struct rnic_mtt_pool *p,
		       const struct rnic_mtt_range *ranges, size_t n,
		       uint64_t *root)
{
	int ret = check_ranges(ranges, n);
	struct rnic_mtt_list *l;
	uint32_t page;

	if (!ret)
		ret = page_take(p, &page);
	if (ret)
		return ret;
	l = (struct rnic_mtt_list *)&p->page[page];
	for (size_t i = 0; i < n; i++) {
		/* relaxed: the release of the region's version publishes */
		rnic_store64_relaxed(&l->range[i].bytes, ranges[i].bytes);
		rnic_store64_relaxed(&l->range[i].va, ranges[i].va);
		rnic_store64_relaxed(&l->range[i].root, ranges[i].root);
	}
	/* T2: publishes the ranges; pairs with B2 */
	rnic_store64_release(&l->count, n);
	*root = rnic_mtt_root_make(1, table_entry(page));
	return 0;
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

/* ---- walking ---- */

/*
 * The answer for byte @in of leaf @leaf, which covers @size bytes. The page
 * number may be anything.
 */
static int answer(uint64_t leaf, uint64_t in, uint64_t size, uint64_t *offset,
		  uint64_t *contiguous)
{
	uint64_t start = page_down(leaf);

	if (in >= size || start > UINT64_MAX - size)
		return -EPROTO;
	*offset = start + in;
	*contiguous = size - in;
	return 0;
}

/* Follows the tables from @entry down to a leaf; @level: of its entries. */
static int descend(uint64_t *entry, unsigned int *level, uint64_t rel,
		   rnic_mtt_page_fn page, void *arg)
{
	while (*entry & RNIC_LEAF_TABLE) {
		const struct rnic_mtt_page *t;

		if (!*level)
			return -EPROTO;
		t = page(arg, *entry >> RNIC_MTT_PAGE_SHIFT);
		if (!t)
			return -EPROTO;
		/* B1: what the entry names; pairs with T1 */
		*entry = rnic_load64_acquire(
			&t->entry[rel / entry_bytes(*level) % RNIC_MTT_FANOUT]);
		if (!(*entry & RNIC_LEAF_VALID))
			return -ENOENT;
		--*level;
	}
	return 0;
}

int rnic_mtt_walk(uint64_t root, uint64_t first_va, uint64_t addr,
		  rnic_mtt_page_fn page, void *arg, uint64_t *leaf,
		  uint64_t *offset, uint64_t *contiguous)
{
	unsigned int depth = rnic_mtt_root_depth(root), level = depth;
	uint64_t entry = rnic_mtt_root_entry(root), each, rel;
	int ret;

	if (addr < first_va)
		return -EFAULT;
	if (!(entry & RNIC_LEAF_VALID))
		return -ENOENT;
	if (!depth) {
		*leaf = entry;
		return answer(entry, addr - page_down(first_va),
			      UINT64_MAX - page_down(entry), offset,
			      contiguous);
	}
	each = entry_bytes(depth);
	rel = addr - (first_va & ~(each - 1));
	if (rel / each >= RNIC_MTT_FANOUT)
		return -ENOENT;
	ret = descend(&entry, &level, rel, page, arg);
	if (ret)
		return ret;
	*leaf = entry;
	each = entry_bytes(level + 1);
	return answer(entry, rel & (each - 1), each, offset, contiguous);
}
