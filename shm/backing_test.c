/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Page sizes behind memory: small pages, huge ones that the kernel made, and
 * hugetlbfs, by both ways of finding out; and what a translation with a leaf
 * for each page costs.
 */
#include "shm/backing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/log.h"

enum {
	PAGE = 4096,
	HUGE = 2 << 20,
	LIMIT_S = 60, /* the whole program ends by then */
	HUGE_2M = 21 << MAP_HUGE_SHIFT,
	HUGE_1G = 30 << MAP_HUGE_SHIFT,
	TABLE_PAGES = 1 << 16, /* of the pool: 256 MiB, sparse */
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define RW (PROT_READ | PROT_WRITE)

static const uint64_t gib = UINT64_C(1) << 30;

static struct rnic_segment seg;
static struct rnic_mtt_page *pages;
static struct rnic_mtt_pool pool;

static void ignore(enum rnic_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
}

static int setup(void **state)
{
	(void)state;
	rnic_log_sink(ignore);
	if (rnic_segment_create(&seg, "backing-test",
				TABLE_PAGES * (uint64_t)PAGE) ||
	    rnic_segment_map(&seg, 0, TABLE_PAGES * (uint64_t)PAGE, RW,
			     (void **)&pages))
		return -1;
	rnic_mtt_pool_init(&pool, &seg, 0, pages, TABLE_PAGES);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rnic_backing_text_only(false);
	rnic_mtt_pool_fini(&pool);
	rnic_segment_unmap(pages, TABLE_PAGES * (uint64_t)PAGE);
	rnic_segment_close(&seg);
	rnic_log_sink(NULL);
	return 0;
}

/* Address space of @len bytes, aligned to 2 MiB, kept by nobody else. */
static char *place(size_t len)
{
	char *p = mmap(NULL, len + HUGE, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(p != MAP_FAILED);
	return (char *)(((uintptr_t)p + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
}

static void map_at(char *p, size_t len, int flags)
{
	assert_ptr_equal(
		mmap(p, len, RW, flags | MAP_FIXED | MAP_ANONYMOUS, -1, 0), p);
}

static void find(struct rnic_backing *b, const char *p, size_t len)
{
	uint64_t at = (uintptr_t)p;

	assert_int_equal(rnic_backing_find(b, at, len, rnic_mtt_leaf_va(at)),
			 0);
}

/* Piece @i goes to @end, in pages of @leaf, from where the last one ended. */
static void is(const struct rnic_backing *b, size_t i, const char *end,
	       uint64_t leaf)
{
	const struct rnic_extent *x = &b->x[i];

	assert_true(i < b->n);
	assert_int_equal(x->va + x->length, (uintptr_t)end);
	assert_int_equal(x->leaf, leaf);
	assert_int_equal(x->entry, rnic_mtt_leaf_va(x->va));
	if (i)
		assert_int_equal(x->va, b->x[i - 1].va + b->x[i - 1].length);
}

/* Small pages, a hole, nothing behind them: all is 4 KiB, and one piece. */
static void small_pages(void **state)
{
	struct rnic_backing b;
	char *p = place(8 * HUGE);

	(void)state;
	for (int text = 0; text < 2; text++) {
		rnic_backing_text_only(text);
		map_at(p, 2 * HUGE, MAP_PRIVATE);
		madvise(p, 2 * HUGE, MADV_NOHUGEPAGE);
		memset(p, 1, PAGE);
		find(&b, p + 100, 3 * HUGE);
		assert_int_equal(b.n, 1);
		is(&b, 0, p + 100 + 3 * HUGE, PAGE);
		assert_int_equal(b.x->va, (uintptr_t)p + 100);
		rnic_backing_fini(&b);
		rnic_backing_fini(&b);
		/* up to the end of all mappings, and behind it */
		assert_int_equal(rnic_backing_find(&b, UINT64_C(1) << 62, PAGE,
						   RNIC_LEAF_VALID),
				 0);
		assert_int_equal(b.n, 1);
		rnic_backing_fini(&b);
	}
}

/* Huge pages at @p that the kernel makes, or not. */
static bool make_huge(char *p, size_t len, int flags)
{
	map_at(p, len, flags);
	if (madvise(p, len, MADV_HUGEPAGE))
		return false;
	memset(p, 1, len);
	return true;
}

/* The number in smaps' line @name of the mapping that begins at @p, KiB. */
static unsigned long smaps(const char *p, const char *name)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long start, end, kib = 0, n;
	bool here = false;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start == (uintptr_t)p;
		else if (here && !strncmp(line, name, strlen(name)) &&
			 sscanf(line + strlen(name), ": %lu", &n) == 1)
			kib = n;
	}
	fclose(f);
	return kib;
}

/* Small, huge, small, and the range begins and ends inside pages. */
static void mixed(char *p, int flags, const char *counted, int text)
{
	struct rnic_backing b;

	rnic_backing_text_only(text);
	map_at(p, HUGE, MAP_PRIVATE);
	madvise(p, HUGE, MADV_NOHUGEPAGE);
	memset(p, 1, HUGE);
	if (!make_huge(p + HUGE, 2 * HUGE, flags) ||
	    smaps(p + HUGE, counted) != 2 * HUGE >> 10) {
		print_message("no huge pages (%s) to be had here\n", counted);
		skip();
	}
	map_at(p + 3 * HUGE, PAGE, MAP_SHARED);
	find(&b, p + HUGE - 2 * PAGE + 5, 2 * HUGE + 3 * PAGE - 10);
	assert_int_equal(b.n, 3);
	is(&b, 0, p + HUGE, PAGE);
	is(&b, 1, p + 3 * HUGE, HUGE);
	is(&b, 2, p + 3 * HUGE + PAGE - 5, PAGE);
	rnic_backing_fini(&b);
	/* within one page, not from its start */
	find(&b, p + HUGE + 3 * PAGE, PAGE);
	assert_int_equal(b.n, 1);
	is(&b, 0, p + HUGE + 4 * PAGE, HUGE);
	rnic_backing_fini(&b);
}

static void huge_anonymous(void **state)
{
	(void)state;
	for (int text = 0; text < 2; text++)
		mixed(place(8 * HUGE), MAP_PRIVATE, "AnonHugePages", text);
}

static void huge_shared(void **state)
{
	(void)state;
	for (int text = 0; text < 2; text++)
		mixed(place(8 * HUGE), MAP_SHARED, "ShmemPmdMapped", text);
}

/* Some of a mapping: page by page, or, by the sum alone, nobody knows. */
static void some_are_huge(void **state)
{
	struct rnic_backing b;
	char *p = place(8 * HUGE);

	(void)state;
	if (!make_huge(p, 4 * HUGE, MAP_PRIVATE) ||
	    smaps(p, "AnonHugePages") != 4 * HUGE >> 10)
		skip();
	/* the kernel splits it */
	assert_int_equal(madvise(p + HUGE + PAGE, PAGE, MADV_DONTNEED), 0);
	rnic_backing_text_only(true);
	find(&b, p, 4 * HUGE);
	assert_int_equal(b.n, 1);
	is(&b, 0, p + 4 * HUGE, PAGE);
	rnic_backing_fini(&b);
	rnic_backing_text_only(false);
	find(&b, p, 4 * HUGE);
	if (b.n == 1) {
		rnic_backing_fini(&b);
		print_message("no PAGEMAP_SCAN here\n");
		skip();
	}
	is(&b, 0, p + HUGE, HUGE);
	is(&b, 1, p + 2 * HUGE, PAGE);
	is(&b, 2, p + 4 * HUGE, HUGE);
	assert_int_equal(b.n, 3);
	rnic_backing_fini(&b);
}

/* hugetlbfs: by the mapping, so that no page is needed. */
static char *hugetlb(size_t len, int size)
{
	char *p = mmap(NULL, len, RW,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
			       MAP_HUGETLB | size,
		       -1, 0);

	if (p != MAP_FAILED)
		return p;
	print_message("no hugetlbfs with pages of that size here\n");
	return NULL;
}

static void hugetlb_pages(void **state)
{
	char *p = hugetlb(4 * HUGE, HUGE_2M), *q = hugetlb(2 * gib, HUGE_1G);
	struct rnic_backing b;

	(void)state;
	for (int text = 0; text < 2; text++) {
		rnic_backing_text_only(text);
		if (p) {
			find(&b, p + PAGE, 3 * HUGE);
			assert_int_equal(b.n, 1);
			is(&b, 0, p + PAGE + 3 * HUGE, HUGE);
			rnic_backing_fini(&b);
		}
		if (q) {
			find(&b, q, 2 * gib);
			assert_int_equal(b.n, 1);
			is(&b, 0, q + 2 * gib, gib);
			rnic_backing_fini(&b);
		}
	}
	if (p)
		munmap(p, 4 * HUGE);
	if (q)
		munmap(q, 2 * gib);
	if (!p && !q)
		skip();
}

/* ---- translations ---- */

static const struct rnic_mtt_page *page_of(void *arg, uint64_t n)
{
	(void)arg;
	return n < TABLE_PAGES ? &pages[n] : NULL;
}

/* Bytes of the leaf at @at, in the tree @root of what begins at @p. */
static void leaf_is(uint64_t root, const char *p, const char *at, uint64_t rest)
{
	uint64_t leaf, off, contig;

	assert_int_equal(rnic_mtt_walk(root, (uintptr_t)p, (uintptr_t)at,
				       page_of, NULL, false, &leaf, &off,
				       &contig),
			 0);
	assert_int_equal(off, (uintptr_t)at);
	assert_int_equal(contig, rest);
}

static uint64_t translate(const char *p, size_t len)
{
	uint64_t at = (uintptr_t)p, root = 0;

	assert_int_equal(rnic_backing_translate(&pool, at, len,
						rnic_mtt_leaf_va(at), false,
						&root),
			 0);
	return root;
}

/* A page is an entry; one page needs no table. */
static void leaf_for_each_page(void **state)
{
	char *p = place(8 * HUGE);
	uint64_t root;

	(void)state;
	map_at(p, 2 * HUGE, MAP_PRIVATE);
	madvise(p, 2 * HUGE, MADV_NOHUGEPAGE);
	memset(p, 1, 2 * HUGE);
	root = translate(p + 10, PAGE - 10);
	assert_int_equal(rnic_mtt_root_depth(root), 0);
	root = translate(p + 10, PAGE);
	assert_int_equal(rnic_mtt_root_depth(root), 1);
	assert_int_equal(rnic_mtt_pool_used(&pool), 1);
	leaf_is(root, p + 10, p + 10, PAGE - 10);
	leaf_is(root, p + 10, p + PAGE, PAGE);
	rnic_mtt_free(&pool, root, 0);
	root = translate(p, 2 * HUGE);
	assert_int_equal(rnic_mtt_pool_used(&pool), 3);
	for (char *at = p; at < p + 2 * HUGE; at += PAGE)
		leaf_is(root, p, at, PAGE);
	rnic_mtt_free(&pool, root, 0);
	assert_int_equal(rnic_mtt_pool_used(&pool), 0);
}

/* Huge pages count whole, also where the range has a part of one. */
static void leaf_for_each_huge_page(void **state)
{
	char *p = place(8 * HUGE), *from = p + HUGE - 5 * PAGE;
	uint64_t root;

	(void)state;
	if (!make_huge(p, 4 * HUGE, MAP_PRIVATE) ||
	    smaps(p, "AnonHugePages") != 4 * HUGE >> 10)
		skip();
	root = translate(from, 2 * HUGE);
	assert_int_equal(rnic_mtt_root_depth(root), 2);
	assert_int_equal(rnic_mtt_pool_used(&pool), 1);
	leaf_is(root, from, from, 5 * PAGE);
	leaf_is(root, from, p + HUGE + 7, HUGE - 7);
	leaf_is(root, from, p + 2 * HUGE, HUGE);
	rnic_mtt_free(&pool, root, 0);
	root = translate(from, 5 * PAGE);
	assert_int_equal(rnic_mtt_root_depth(root), 0);
	/* a huge page between small ones, the first of which is cut */
	madvise(p, PAGE, MADV_DONTNEED);
	root = translate(from, 2 * HUGE);
	leaf_is(root, from, from, rnic_mtt_root_depth(root) == 2 ? PAGE : 0);
	rnic_mtt_free(&pool, root, 0);
	assert_int_equal(rnic_mtt_pool_used(&pool), 0);
}

/* 64 GiB: tables in proportion to the leaves. */
static void contract_R13_cost_of_64_gib(void **state)
{
	const size_t len = (SANITIZED ? 4 : 64) * gib;
	char *small = place(len), *p;
	uint64_t root, leaves = len / PAGE / RNIC_MTT_FANOUT;

	(void)state;
	root = translate(small, len);
	assert_in_range(rnic_mtt_pool_used(&pool), leaves,
			leaves + leaves / RNIC_MTT_FANOUT + 3);
	leaf_is(root, small, small + len - 1, 1);
	rnic_mtt_free(&pool, root, 0);
	munmap(small, len);
	p = hugetlb(len, HUGE_2M);
	if (p) {
		root = translate(p, len);
		/* one table each GiB, and another if it does not begin one */
		assert_in_range(rnic_mtt_pool_used(&pool), len / gib + 1,
				len / gib + 2);
		leaf_is(root, p, p + len - HUGE, HUGE);
		rnic_mtt_free(&pool, root, 0);
		munmap(p, len);
	}
	p = hugetlb(len, HUGE_1G);
	if (p) {
		root = translate(p, len);
		assert_int_equal(rnic_mtt_pool_used(&pool), 1);
		leaf_is(root, p, p + len - gib, gib);
		rnic_mtt_free(&pool, root, 0);
		munmap(p, len);
	}
	assert_int_equal(rnic_mtt_pool_used(&pool), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(small_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(huge_anonymous, setup,
						teardown),
		cmocka_unit_test_setup_teardown(huge_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(some_are_huge, setup, teardown),
		cmocka_unit_test_setup_teardown(hugetlb_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(leaf_for_each_page, setup,
						teardown),
		cmocka_unit_test_setup_teardown(leaf_for_each_huge_page, setup,
						teardown),
		cmocka_unit_test_setup_teardown(contract_R13_cost_of_64_gib,
						setup, teardown),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
