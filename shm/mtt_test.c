/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Translation: what was built is what a walk finds, page by page; nothing
 * leaks; damaged tables end in an error.
 */
#include "shm/mtt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shm/log.h"

enum { PAGES = 64, RANDOM_ROUNDS = 300 };

static const uint64_t mib = UINT64_C(1) << 20, gib = UINT64_C(1) << 30;

static struct rnic_segment seg;
static struct rnic_mtt_page *pages;
static struct rnic_mtt_pool pool;
static unsigned int mapped; /* calls of page_of() */

static void ignore(enum rnic_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
}

static int setup(void **state)
{
	(void)state;
	rnic_log_sink(ignore);
	if (rnic_segment_create(&seg, "mtt-test", PAGES * RNIC_PAGE) ||
	    rnic_segment_map(&seg, 0, PAGES * RNIC_PAGE, PROT_READ | PROT_WRITE,
			     (void **)&pages))
		return -1;
	rnic_mtt_pool_init(&pool, &seg, 0, pages, PAGES);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rnic_mtt_pool_fini(&pool);
	rnic_mtt_pool_fini(&pool);
	rnic_segment_unmap(pages, PAGES * RNIC_PAGE);
	rnic_segment_close(&seg);
	rnic_log_sink(NULL);
	return 0;
}

static const struct rnic_mtt_page *page_of(void *arg, uint64_t n)
{
	(void)arg;
	mapped++;
	return n < PAGES ? &pages[n] : NULL;
}

static int walk(uint64_t root, uint64_t first, uint64_t addr, uint64_t *leaf,
		uint64_t *off, uint64_t *contig)
{
	return rnic_mtt_walk(root, first, addr, page_of, NULL, false, leaf, off,
			     contig);
}

/* The walk at @addr says what piece @x says. */
static void check_at(uint64_t root, uint64_t first, const struct rnic_extent *x,
		     uint64_t addr)
{
	uint64_t page = (uint64_t)RNIC_PAGE - 1, leaf, off, contig;
	uint64_t last = x->leaf ? x->leaf - 1 : page;
	uint64_t want = (x->entry & ~page) + (addr - (x->va & ~page));

	assert_int_equal(walk(root, first, addr, &leaf, &off, &contig), 0);
	assert_int_equal(off, want);
	assert_int_equal(leaf & (RNIC_LEAF_SPACE | RNIC_LEAF_VALID),
			 x->entry & (RNIC_LEAF_SPACE | RNIC_LEAF_VALID));
	assert_int_equal(rnic_mtt_leaf_space_of(leaf),
			 rnic_mtt_leaf_space_of(x->entry));
	assert_true(contig >= 1);
	/* what is contiguous does not run into the next piece, or page */
	if (rnic_mtt_root_depth(root))
		assert_true(contig <=
			    ((x->va + x->length + last) & ~last) - addr);
}

/* Builds @x, looks at both ends and the middle of each piece, frees. */
static void check_pieces(const struct rnic_extent *x, size_t n)
{
	uint64_t root;

	assert_int_equal(rnic_mtt_build(&pool, x, n, &root), 0);
	for (size_t i = 0; i < n; i++) {
		check_at(root, x->va, &x[i], x[i].va);
		check_at(root, x->va, &x[i], x[i].va + x[i].length / 2);
		check_at(root, x->va, &x[i], x[i].va + x[i].length - 1);
	}
	rnic_mtt_free(&pool, root, 0);
	assert_int_equal(rnic_mtt_pool_used(&pool), 0);
}

static void root_keeps_the_entry(void **state)
{
	uint64_t va = rnic_mtt_leaf_va(0x7fff12345678);
	uint64_t sp = rnic_mtt_leaf_space(255, (UINT64_C(1) << 52) - 1);
	uint64_t t = UINT64_C(77) << 12 | RNIC_LEAF_TABLE | RNIC_LEAF_VALID;

	(void)state;
	assert_int_equal(rnic_mtt_root_entry(rnic_mtt_root_make(0, va)), va);
	assert_int_equal(rnic_mtt_root_entry(rnic_mtt_root_make(0, sp)), sp);
	assert_int_equal(rnic_mtt_leaf_space_of(sp), 255);
	for (unsigned int d = 1; d <= 3; d++) {
		uint64_t r = rnic_mtt_root_make(d, t);

		assert_int_equal(rnic_mtt_root_depth(r), d);
		assert_int_equal(rnic_mtt_root_entry(r), t);
	}
	assert_int_equal(rnic_mtt_root_entry(rnic_mtt_root_make(0, 0)), 0);
}

static void one_piece_needs_no_page(void **state)
{
	struct rnic_extent x = { 0x10000123, 1000 * gib,
				 rnic_mtt_leaf_va(0x10000123), 0 };
	uint64_t root, leaf, off, contig;

	(void)state;
	assert_int_equal(rnic_mtt_build(&pool, &x, 1, &root), 0);
	assert_int_equal(rnic_mtt_root_depth(root), 0);
	assert_int_equal(rnic_mtt_pool_used(&pool), 0);
	mapped = 0;
	assert_int_equal(
		walk(root, x.va, x.va + 999 * gib, &leaf, &off, &contig), 0);
	assert_int_equal(mapped, 0);
	assert_int_equal(off, x.va + 999 * gib);
	assert_true(contig >= gib);
	assert_int_equal(walk(root, x.va, x.va - 1, &leaf, &off, &contig),
			 -EFAULT);
	check_pieces(&x, 1);
}

static void small_pieces(void **state)
{
	/* begins and ends inside a page; not in the order of the pages */
	struct rnic_extent x[] = {
		{ 0x7000123, 0x3000 - 0x123, rnic_mtt_leaf_space(0, 900), 0 },
		{ 0x7003000, 0x1000, rnic_mtt_leaf_va(0x7003000), 0 },
		{ 0x7004000, 0x2345, rnic_mtt_leaf_space(9, 7), 0 },
	};

	(void)state;
	check_pieces(x, 3);
}

/* 2 MiB and 1 GiB leaves where they fit: few pages, long runs. */
static void large_leaves(void **state)
{
	struct rnic_extent x[] = {
		{ 3 * gib - 6 * mib, 6 * mib, rnic_mtt_leaf_space(0, 5), 0 },
		{ 3 * gib, 2 * gib, rnic_mtt_leaf_space(1, 3), 0 },
		{ 5 * gib, 4 * mib + 1, rnic_mtt_leaf_va(5 * gib), 0 },
	};
	uint64_t root, leaf, off, contig;

	(void)state;
	assert_int_equal(rnic_mtt_build(&pool, x, 3, &root), 0);
	assert_int_equal(rnic_mtt_root_depth(root), 3);
	/* root; 2 MiB tables for both ends; the last page's small table */
	assert_int_equal(rnic_mtt_pool_used(&pool), 4);
	assert_int_equal(walk(root, x->va, 4 * gib, &leaf, &off, &contig), 0);
	assert_int_equal(contig, gib);
	assert_int_equal(rnic_mtt_walk(root, x->va, x->va + 1, page_of, NULL,
				       true, &leaf, &off, &contig),
			 0);
	/* three leaves in a row are one piece */
	assert_int_equal(contig, 6 * mib - 1);
	assert_int_equal(
		walk(root, x->va, 5 * gib + 4 * mib, &leaf, &off, &contig), 0);
	assert_int_equal(contig, RNIC_PAGE);
	/* beyond the end there is nothing */
	assert_int_equal(
		walk(root, x->va, 5 * gib + 5 * mib, &leaf, &off, &contig),
		-ENOENT);
	assert_int_equal(walk(root, x->va, 600 * gib, &leaf, &off, &contig),
			 -ENOENT);
	rnic_mtt_free(&pool, root, 0);
	check_pieces(x, 3);
}

/* Leaves are not larger than a piece says, nor than it has. */
static void bounded_leaves(void **state)
{
	struct rnic_extent x[] = {
		{ 6 * mib, 4 * mib, rnic_mtt_leaf_va(6 * mib), 2 * mib },
		{ 10 * mib, 2 * mib, rnic_mtt_leaf_space(1, 3), RNIC_PAGE },
		{ 12 * mib, 8 * mib, rnic_mtt_leaf_va(12 * mib), gib },
	};
	uint64_t root, leaf, off, contig;

	(void)state;
	assert_int_equal(rnic_mtt_build(&pool, x, 3, &root), 0);
	/* root of 2 MiB leaves, and a table for the second piece */
	assert_int_equal(rnic_mtt_pool_used(&pool), 2);
	assert_int_equal(walk(root, x->va, 6 * mib, &leaf, &off, &contig), 0);
	assert_int_equal(contig, 2 * mib);
	assert_int_equal(walk(root, x->va, 10 * mib, &leaf, &off, &contig), 0);
	assert_int_equal(contig, RNIC_PAGE);
	assert_int_equal(walk(root, x->va, 19 * mib, &leaf, &off, &contig), 0);
	assert_int_equal(contig, mib);
	rnic_mtt_free(&pool, root, 0);
	check_pieces(x, 3);
}

/* A page of the backing is one leaf, whatever part of it is in the region. */
static void leaves_reach_out(void **state)
{
	struct rnic_extent cut = { gib + 5, 100, rnic_mtt_leaf_va(gib + 5),
				   2 * mib };
	struct rnic_extent two_cut = { 4 * mib - 10, 20,
				       rnic_mtt_leaf_va(4 * mib - 10),
				       2 * mib };
	struct rnic_extent astray = { 3 * mib, 3 * mib,
				      rnic_mtt_leaf_space(1, 7), 2 * mib };
	struct rnic_extent mix[] = {
		{ 5 * mib / 2, mib / 2, rnic_mtt_leaf_va(5 * mib / 2),
		  2 * mib },
		{ 3 * mib, RNIC_PAGE, rnic_mtt_leaf_space(1, 9), RNIC_PAGE },
		{ 3 * mib + RNIC_PAGE, 6 * mib,
		  rnic_mtt_leaf_va(3 * mib + RNIC_PAGE), 2 * mib },
	};
	uint64_t root, leaf, off, contig;

	(void)state;
	assert_int_equal(rnic_mtt_build(&pool, &cut, 1, &root), 0);
	assert_int_equal(rnic_mtt_root_depth(root), 0);
	assert_int_equal(rnic_mtt_build(&pool, &two_cut, 1, &root), 0);
	assert_int_equal(rnic_mtt_root_depth(root), 2);
	assert_int_equal(walk(root, two_cut.va, 4 * mib, &leaf, &off, &contig),
			 0);
	assert_int_equal(contig, 2 * mib);
	rnic_mtt_free(&pool, root, 0);
	check_pieces(&two_cut, 1);
	/* not at the same place in its space: no leaf of that size there */
	assert_int_equal(rnic_mtt_build(&pool, &astray, 1, &root), 0);
	assert_int_equal(walk(root, astray.va, astray.va, &leaf, &off, &contig),
			 0);
	assert_int_equal(off, 7 * RNIC_PAGE);
	assert_int_equal(contig, RNIC_PAGE);
	rnic_mtt_free(&pool, root, 0);
	check_pieces(&astray, 1);
	/* and never over another piece */
	check_pieces(mix, 3);
}

/* Page numbers of the tables of @root, as bits of PAGES. */
static uint64_t tables_of(uint64_t root)
{
	unsigned int depth = rnic_mtt_root_depth(root);
	uint64_t n = rnic_mtt_root_entry(root) >> 12, set;

	assert_true(depth && n < PAGES);
	set = UINT64_C(1) << n;
	for (int i = 0; depth > 1 && i < RNIC_MTT_FANOUT; i++) {
		uint64_t e = rnic_load64_relaxed(&pages[n].entry[i]);

		if (e & RNIC_LEAF_TABLE)
			set |= tables_of(rnic_mtt_root_make(depth - 1, e));
	}
	return set;
}

/*
 * Two regions of the same memory have no table page in common: when one is
 * freed, and its pages are used again, the other still says the same.
 */
static void contract_R9_no_table_is_shared(void **state)
{
	struct rnic_extent x = { gib, 4 * mib, rnic_mtt_leaf_va(gib),
				 RNIC_PAGE };
	struct rnic_extent y = { gib, 4 * mib, rnic_mtt_leaf_space(1, 0),
				 RNIC_PAGE };
	uint64_t a, b, c, of_a;

	(void)state;
	assert_int_equal(rnic_mtt_build(&pool, &x, 1, &a), 0);
	assert_int_equal(rnic_mtt_build(&pool, &x, 1, &b), 0);
	assert_int_equal(rnic_mtt_pool_used(&pool), 6);
	of_a = tables_of(a);
	assert_int_equal(of_a & tables_of(b), 0);
	rnic_mtt_free(&pool, a, 0);
	assert_int_equal(rnic_mtt_pool_used(&pool), 3);
	assert_int_equal(rnic_mtt_build(&pool, &y, 1, &c), 0);
	assert_int_equal(tables_of(c), of_a);
	for (uint64_t va = gib; va < gib + 4 * mib; va += RNIC_PAGE) {
		check_at(b, gib, &x, va);
		check_at(c, gib, &y, va);
	}
	rnic_mtt_free(&pool, b, 0);
	rnic_mtt_free(&pool, c, 0);
	assert_int_equal(rnic_mtt_pool_used(&pool), 0);
}

static uint64_t some(uint64_t below)
{
	return (uint64_t)rand() % below;
}

/* Pieces of any size and place, against the pieces themselves. */
static void random_pieces(void **state)
{
	static const uint64_t units[] = { RNIC_PAGE, UINT64_C(2) << 20 };
	static const uint64_t sizes[] = { 0, RNIC_PAGE, UINT64_C(2) << 20,
					  UINT64_C(1) << 30 };
	struct rnic_extent x[8];

	(void)state;
	srand(1);
	for (int round = 0; round < RANDOM_ROUNDS; round++) {
		size_t n = 2 + some(7);
		uint64_t va = (UINT64_C(0x5500000) + some(4000)) * RNIC_PAGE;

		for (size_t i = 0; i < n; i++) {
			uint64_t len = (1 + some(5)) * units[some(2)];

			x[i] = (struct rnic_extent){
				va, len,
				rnic_mtt_leaf_space((unsigned int)some(256),
						    some(1 << 30)),
				sizes[some(4)]
			};
			va += len;
		}
		check_pieces(x, n);
	}
}

static void bad_pieces(void **state)
{
	uint64_t va = 0x100000, e = rnic_mtt_leaf_va(va), root = 42;
	struct rnic_extent gap[] = { { va, 4096, e, 0 },
				     { va + 8192, 4096, e, 0 } };
	struct rnic_extent odd[] = { { va, 100, e, 0 },
				     { va + 100, 4096, e, 0 } };
	struct rnic_extent none = { va, 0, e, 0 };
	struct rnic_extent wrap = { UINT64_MAX - 8191, 8192, e, 0 };
	struct rnic_extent top = { UINT64_MAX - 5, 1, e, 0 };
	struct rnic_extent size = { va, 4096, e, 8192 };
	struct rnic_extent table = { va, 1, e | RNIC_LEAF_TABLE, 0 };
	struct rnic_extent invalid = { va, 1, e & ~(uint64_t)RNIC_LEAF_VALID,
				       0 };
	struct rnic_extent beyond = {
		va, gib, rnic_mtt_leaf_space(0, (UINT64_C(1) << 52) - 2), 0
	};
	struct rnic_extent huge[] = {
		{ gib, 500 * gib, rnic_mtt_leaf_space(0, 1), 0 },
		{ 501 * gib, 13 * gib, rnic_mtt_leaf_space(0, 1), 0 },
	};

	(void)state;
	assert_int_equal(rnic_mtt_build(&pool, gap, 2, &root), -EINVAL);
	assert_int_equal(rnic_mtt_build(&pool, odd, 2, &root), -EINVAL);
	assert_int_equal(rnic_mtt_build(&pool, &none, 1, &root), -EINVAL);
	assert_int_equal(rnic_mtt_build(&pool, &wrap, 1, &root), -EINVAL);
	assert_int_equal(rnic_mtt_build(&pool, &top, 1, &root), -EINVAL);
	assert_int_equal(rnic_mtt_build(&pool, &table, 1, &root), -EINVAL);
	assert_int_equal(rnic_mtt_build(&pool, &invalid, 1, &root), -EINVAL);
	assert_int_equal(rnic_mtt_build(&pool, &beyond, 1, &root), -EINVAL);
	assert_int_equal(rnic_mtt_build(&pool, &size, 1, &root), -EINVAL);
	assert_int_equal(rnic_mtt_build(&pool, gap, 0, &root), -EINVAL);
	/* what comes on demand; also a part of the last page of all */
	for (uint64_t len = 1; len <= RNIC_PAGE; len *= 2)
		assert_int_equal(
			rnic_mtt_make_empty(&pool, 0 - len, len, &root),
			-EINVAL);
	assert_int_equal(rnic_mtt_build(&pool, huge, 2, &root), -EFBIG);
	assert_int_equal(root, 42);
	assert_int_equal(rnic_mtt_pool_used(&pool), 0);
}

/* Two pieces whose border splits a small table: root and one page. */
static const struct rnic_extent two[] = {
	{ 2 * UINT64_C(0x200000) - 4096, 4096, 4096 | RNIC_LEAF_VALID, 0 },
	{ 2 * UINT64_C(0x200000), 0x201000, 8192 | RNIC_LEAF_VALID, 0 },
};

/* A build that runs out of pages gives back all it had taken (R3). */
static void contract_R3_no_page_left(void **state)
{
	uint64_t root[PAGES], one = 42, got = 0, per;
	int ret;

	(void)state;
	assert_int_equal(rnic_mtt_build(&pool, two, 2, &root[0]), 0);
	per = rnic_mtt_pool_used(&pool);
	assert_int_equal(per, 3);
	for (got = 1; got < PAGES; got++) {
		ret = rnic_mtt_build(&pool, two, 2, &root[got]);
		if (ret)
			break;
	}
	assert_int_equal(ret, -ENOSPC);
	assert_int_equal(got, PAGES / per);
	assert_int_equal(rnic_mtt_pool_used(&pool), got * per);
	assert_int_equal(rnic_mtt_build(&pool, two, 2, &one), -ENOSPC);
	assert_int_equal(one, 42);
	rnic_mtt_free(&pool, root[0], 0);
	assert_int_equal(rnic_mtt_build(&pool, two, 2, &root[0]), 0);
	for (uint64_t i = 0; i < got; i++)
		rnic_mtt_free(&pool, root[i], 0);
	assert_int_equal(rnic_mtt_pool_used(&pool), 0);
}

static bool ended(void *arg, uint64_t grace)
{
	return grace <= *(uint64_t *)arg;
}

/* No page of a freed tree is used, or changes, before its grace period. */
static void contract_I4_pages_wait(void **state)
{
	uint64_t root, other, now = 6, leaf, off, contig;

	(void)state;
	assert_int_equal(rnic_mtt_build(&pool, two, 2, &root), 0);
	rnic_mtt_free(&pool, root, 7);
	assert_int_equal(rnic_mtt_pool_used(&pool), 0);
	for (int i = 0; i < PAGES; i++) {
		rnic_mtt_reap(&pool, ended, &now);
		if (rnic_mtt_build(&pool, two, 2, &other))
			break;
	}
	/* all pages but those three are in use, and the old walk still works */
	assert_int_equal(rnic_mtt_pool_used(&pool), PAGES - 4);
	check_at(root, two->va, &two[0], two[0].va);
	now = 7;
	rnic_mtt_reap(&pool, ended, &now);
	assert_int_equal(rnic_mtt_build(&pool, two, 2, &other), 0);
	assert_int_equal(walk(other, two->va, two->va, &leaf, &off, &contig),
			 0);
}

/* The order of use is that of return: a page rests as long as it can. */
static void pages_come_back_in_order(void **state)
{
	uint64_t a, b, c;

	(void)state;
	assert_int_equal(rnic_mtt_build(&pool, two, 2, &a), 0);
	assert_int_equal(rnic_mtt_build(&pool, two, 2, &b), 0);
	rnic_mtt_free(&pool, a, 0);
	rnic_mtt_free(&pool, b, 0);
	assert_int_equal(rnic_mtt_build(&pool, two, 2, &c), 0);
	/* from a's pages: b's came after them */
	assert_true(rnic_mtt_root_entry(c) >> 12 < 3);
}

static int walk_two(uint64_t root)
{
	uint64_t leaf, off, contig;

	return walk(root, two->va, two->va, &leaf, &off, &contig);
}

/* Whatever a hostile owner writes, the walk ends, in bounds (L3). */
static void contract_L3_damaged_tables(void **state)
{
	uint64_t root, loop, n, leaf, off, contig;

	(void)state;
	assert_int_equal(rnic_mtt_build(&pool, two, 2, &root), 0);
	n = rnic_mtt_root_entry(root) >> 12;
	loop = n << 12 | RNIC_LEAF_TABLE | RNIC_LEAF_VALID;
	for (int i = 0; i < RNIC_MTT_FANOUT; i++)
		rnic_store64_relaxed(&pages[n].entry[i], loop);
	mapped = 0;
	assert_int_equal(walk_two(root), -EPROTO);
	assert_true(mapped <= RNIC_MTT_DEPTH_MAX);
	for (int i = 0; i < RNIC_MTT_FANOUT; i++)
		rnic_store64_relaxed(&pages[n].entry[i],
				     (uint64_t)PAGES << 12 | RNIC_LEAF_TABLE |
					     RNIC_LEAF_VALID);
	assert_int_equal(walk_two(root), -EPROTO);
	for (int i = 0; i < RNIC_MTT_FANOUT; i++)
		rnic_store64_relaxed(&pages[n].entry[i], 0);
	assert_int_equal(walk_two(root), -ENOENT);
	for (int i = 0; i < RNIC_MTT_FANOUT; i++)
		rnic_store64_relaxed(&pages[n].entry[i],
				     UINT64_MAX & ~(uint64_t)RNIC_LEAF_TABLE);
	assert_int_equal(walk_two(root), -EPROTO);
	/* a root of any bits */
	srand(2);
	for (int i = 0; i < 100000; i++) {
		uint64_t r = (uint64_t)rand() << 40 ^ (uint64_t)rand() << 20 ^
			     (uint64_t)rand();
		uint64_t first = (uint64_t)rand() << 33;

		if (!walk(r, first, first + (uint64_t)rand(), &leaf, &off,
			  &contig))
			assert_true(contig && off <= UINT64_MAX - contig);
	}
}

static void lists(void **state)
{
	struct rnic_mtt_range in[2] = { { 10, 0x1000, 0 }, { 5, 0x9000, 0 } };
	struct rnic_mtt_range r;
	struct rnic_mtt_list *l;
	uint64_t root, rel;

	(void)state;
	assert_int_equal(rnic_mtt_build(&pool, two, 2, &in[0].root), 0);
	in[1].root = rnic_mtt_root_make(0, rnic_mtt_leaf_va(0x9000));
	assert_int_equal(rnic_mtt_list_make(&pool, in, 2, &root), 0);
	assert_int_equal(rnic_mtt_pool_used(&pool), 4);
	l = (struct rnic_mtt_list *)&pages[rnic_mtt_root_entry(root) >> 12];
	assert_int_equal(rnic_mtt_list_find(l, 9, &r, &rel), 0);
	assert_int_equal(r.va, 0x1000);
	assert_int_equal(rel, 9);
	assert_int_equal(rnic_mtt_list_find(l, 10, &r, &rel), 0);
	assert_int_equal(r.va, 0x9000);
	assert_int_equal(r.root, in[1].root);
	assert_int_equal(rel, 0);
	assert_int_equal(rnic_mtt_list_find(l, 15, &r, &rel), -ENOENT);
	assert_int_equal(rnic_mtt_list_find(l, UINT64_MAX, &r, &rel), -ENOENT);
	rnic_store64_relaxed(&l->range[1].bytes, UINT64_MAX);
	assert_int_equal(rnic_mtt_list_find(l, 15, &r, &rel), -EPROTO);
	rnic_store64_relaxed(&l->count, 17);
	assert_int_equal(rnic_mtt_list_find(l, 9, &r, &rel), -EPROTO);
	rnic_store64_relaxed(&l->count, 2);
	rnic_mtt_list_free(&pool, root, 0);
	assert_int_equal(rnic_mtt_pool_used(&pool), 0);
}

/* A part of @whole from @off on finds what the whole finds there. */
static void check_part(uint64_t root, const struct rnic_extent *whole,
		       uint64_t off, uint64_t len)
{
	uint64_t va = whole->va + off;
	uint64_t sub = rnic_mtt_sub(root, whole->va, off);
	uint64_t step = len / 7 + 1;

	for (uint64_t at = 0; at < len; at += step) {
		uint64_t a[3], b[3];

		assert_int_equal(
			walk(root, whole->va, va + at, &a[0], &a[1], &a[2]), 0);
		assert_int_equal(walk(sub, va, va + at, &b[0], &b[1], &b[2]),
				 0);
		/* the same kind and space; an extent begins where it does */
		assert_int_equal(a[0] % RNIC_PAGE, b[0] % RNIC_PAGE);
		assert_int_equal(a[1], b[1]);
		/* a part of a part */
		assert_int_equal(walk(rnic_mtt_sub(sub, va, at), va + at,
				      va + at, &b[0], &b[1], &b[2]),
				 0);
		assert_int_equal(a[1], b[1]);
	}
	rnic_mtt_free(&pool, sub, 0);
}

/* Parts of trees of each depth, which stay their region's. */
static void parts(void **state)
{
	const uint64_t far[] = { 5 * 4096, 4096, 2 * mib + 4096, 1 * gib };

	(void)state;
	for (int d = 0; d < 4; d++) {
		struct rnic_extent x[2];
		uint64_t root, used, len = far[d] + 3 * 4096;

		x[0] = (struct rnic_extent){ 0x40001234, 4096 - 0x234 + far[d],
					     rnic_mtt_leaf_va(0x40001234), 0 };
		x[1] = (struct rnic_extent){ x[0].va + x[0].length, 8192,
					     rnic_mtt_leaf_space(3, 900), 0 };
		assert_int_equal(rnic_mtt_build(&pool, x, d ? 2 : 1, &root), 0);
		used = rnic_mtt_pool_used(&pool);
		assert_int_equal(rnic_mtt_pages(&pool, root, false), used);
		check_part(root, x, 0, 100);
		check_part(root, x, 17, x[0].length - 17);
		check_part(root, x, x[0].length - 1, 1);
		if (d) {
			check_part(root, x, x[0].length - 1, 2);
			check_part(root, x, x[0].length + 4096, 1);
			check_part(root, x, len / 2, len / 4);
		}
		assert_int_equal(rnic_mtt_pool_used(&pool), used);
		rnic_mtt_free(&pool, root, 0);
	}
	assert_int_equal(rnic_mtt_pool_used(&pool), 0);
}

/* A list of parts of another region, whose translation changes. */
static void lists_of_parts(void **state)
{
	struct rnic_extent x[2] = {
		{ 0x1000, 4096, rnic_mtt_leaf_va(0x1000), 0 },
		{ 0x2000, 4096, rnic_mtt_leaf_va(0x9000), 0 },
	};
	struct rnic_mtt_range r[2], got;
	uint64_t tree, list, rel;

	(void)state;
	assert_int_equal(rnic_mtt_build(&pool, x, 2, &tree), 0);
	r[0] = (struct rnic_mtt_range){ 5000, 0x1010,
					rnic_mtt_sub(tree, 0x1000, 0x10) };
	r[1] = (struct rnic_mtt_range){ 8, 0x2100,
					rnic_mtt_sub(tree, 0x1000, 0x1100) };
	assert_int_equal(rnic_mtt_list_make(&pool, r, 2, &list), 0);
	assert_int_equal(rnic_mtt_pages(&pool, list, true), 1);
	r[1].root = rnic_mtt_root_make(0, rnic_mtt_leaf_va(0x7000));
	rnic_mtt_list_set(&pool, list, r, 2);
	assert_int_equal(rnic_mtt_list_find(rnic_mtt_list_of(&pool, list), 5001,
					    &got, &rel),
			 0);
	assert_int_equal(got.root, r[1].root);
	assert_int_equal(rel, 1);
	assert_int_equal(rnic_mtt_root_whole(r[0].root), tree);
	assert_int_equal(rnic_mtt_root_whole(tree), tree);
	assert_int_equal(rnic_mtt_root_whole(r[1].root), r[1].root);
	rnic_mtt_list_drop(&pool, list, 1);
	assert_int_equal(rnic_mtt_list_find(rnic_mtt_list_of(&pool, list), 5001,
					    &got, &rel),
			 0);
	assert_int_equal(got.root, 0);
	assert_int_equal(got.bytes, r[1].bytes);
	rnic_mtt_list_free(&pool, list, 0);
	assert_int_equal(rnic_mtt_pool_used(&pool), 1);
	rnic_mtt_free(&pool, tree, 0);
	assert_int_equal(rnic_mtt_pool_used(&pool), 0);
}

static void bad_lists(void **state)
{
	struct rnic_mtt_range r[17] = { { 0, 0x1000, 0 } };
	uint64_t root;

	(void)state;
	assert_int_equal(rnic_mtt_list_make(&pool, r, 1, &root), -EINVAL);
	r[0] = (struct rnic_mtt_range){ 2, UINT64_MAX - 1, 0 };
	assert_int_equal(rnic_mtt_list_make(&pool, r, 0, &root), -EINVAL);
	r[0].bytes = 3;
	assert_int_equal(rnic_mtt_list_make(&pool, r, 1, &root), -EINVAL);
	r[0] = r[1] = (struct rnic_mtt_range){ UINT64_C(1) << 63, 0, 0 };
	assert_int_equal(rnic_mtt_list_make(&pool, r, 2, &root), -EINVAL);
	for (int i = 0; i < 17; i++)
		r[i] = (struct rnic_mtt_range){ 1, 1, 0 };
	assert_int_equal(rnic_mtt_list_make(&pool, r, 17, &root), -EINVAL);
	assert_int_equal(rnic_mtt_list_make(&pool, r, 16, &root), 0);
	assert_int_equal(rnic_mtt_pool_used(&pool), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(root_keeps_the_entry, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_piece_needs_no_page, setup,
						teardown),
		cmocka_unit_test_setup_teardown(small_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(large_leaves, setup, teardown),
		cmocka_unit_test_setup_teardown(bounded_leaves, setup,
						teardown),
		cmocka_unit_test_setup_teardown(leaves_reach_out, setup,
						teardown),
		cmocka_unit_test_setup_teardown(contract_R9_no_table_is_shared,
						setup, teardown),
		cmocka_unit_test_setup_teardown(random_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(contract_R3_no_page_left, setup,
						teardown),
		cmocka_unit_test_setup_teardown(contract_I4_pages_wait, setup,
						teardown),
		cmocka_unit_test_setup_teardown(pages_come_back_in_order, setup,
						teardown),
		cmocka_unit_test_setup_teardown(contract_L3_damaged_tables,
						setup, teardown),
		cmocka_unit_test_setup_teardown(lists, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_lists, setup, teardown),
		cmocka_unit_test_setup_teardown(parts, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_of_parts, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
