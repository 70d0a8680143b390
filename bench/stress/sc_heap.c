/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenarios heap, realloc and brk: the heap shrinks and grows, by glibc as it
 * likes, in blocks that are mapped, or by sbrk(2) of our own.
 */
#include "bench/stress/stress.h"

#include <malloc.h>
#include <string.h>
#include <unistd.h>

enum {
	BLOCKS = 12,	     /* of the heap, at most */
	BLOCK = 512 << 10,   /* bytes of one, at most */
	TRIM = 64 << 10,     /* free bytes at the top that are given back */
	THRESHOLD = 4 << 20, /* smaller ones are not mapped, but of the heap */
	USUAL = 128 << 10,   /* both, otherwise */
	MAPPED = 64 << 10,   /* blocks as large are mapped, in realloc */
	HEAD = 16,	     /* bytes of a mapped block before its first one */
	LARGE = 512 << 10,   /* such a block, at most */
	RESIZES = 3,	     /* of it */
	BRK = 1 << 20,	     /* sbrk(2) at most */
};

/* ---- glibc ---- */

/** Blocks that are there; NULL: none. */
struct heap {
	unsigned char *p[BLOCKS];
	size_t len[BLOCKS];
};

static int heap_setup(struct stress *s, void **state)
{
	struct heap *h = stress_malloc(s, sizeof(*h));

	if (!h)
		return stress_skip(s, "no memory");
	memset(h, 0, sizeof(*h));
	*state = h;
	mallopt(M_TRIM_THRESHOLD, TRIM);
	mallopt(M_MMAP_THRESHOLD, THRESHOLD);
	return 0;
}

static void heap_drop(struct stress *s, struct heap *h, size_t i)
{
	stress_free(s, h->p[i]);
	h->p[i] = NULL;
}

static void heap_teardown(struct stress *s, void *state)
{
	struct heap *h = state;

	for (size_t i = 0; h && i < BLOCKS; i++)
		heap_drop(s, h, i);
	stress_free(s, h);
	mallopt(M_TRIM_THRESHOLD, USUAL);
	mallopt(M_MMAP_THRESHOLD, USUAL);
	malloc_trim(0);
}

static int heap_take(struct stress *s, struct heap *h, size_t i)
{
	h->len[i] = stress_length(s, BLOCK);
	h->p[i] = stress_malloc(s, h->len[i]);
	if (!h->p[i])
		return stress_skip(s, "no memory");
	return stress_exchange(s, h->p[i], h->len[i], 2);
}

/* realloc(3), which may move it, keeps the bytes. */
static int heap_grow(struct stress *s, struct heap *h, size_t i)
{
	struct stress_pat pat = stress_fill(s, h->p[i], h->len[i]);
	size_t len = stress_length(s, BLOCK);
	size_t less = len < h->len[i] ? len : h->len[i];
	unsigned char *p;
	int ret = stress_out(s, h->p[i], h->len[i], pat);

	if (ret)
		return ret;
	p = stress_realloc(s, h->p[i], len);
	if (!p)
		return stress_skip(s, "no memory");
	h->p[i] = p;
	h->len[i] = len;
	ret = stress_out(s, p, less, pat);
	return ret ? ret : stress_exchange(s, p, len, 2);
}

static int heap_step(struct stress *s, void *state)
{
	struct heap *h = state;
	int ret = 0;

	for (int n = 0; !ret && n < BLOCKS; n++) {
		size_t i = stress_random(s, BLOCKS);

		if (!h->p[i])
			ret = heap_take(s, h, i);
		else if (!stress_random(s, 3))
			ret = heap_grow(s, h, i);
		else
			heap_drop(s, h, i);
	}
	if (!ret && stress_random(s, 2)) {
		stress_say(s, "malloc_trim");
		malloc_trim(0);
	}
	return ret;
}

const struct stress_scenario stress_heap = {
	.name = "heap",
	.help = "malloc, free, a heap that glibc trims and grows again",
	.setup = heap_setup,
	.step = heap_step,
	.teardown = heap_teardown,
};

/* ---- blocks that are mapped ---- */

/** A block that realloc(3) moves, grows and shrinks by mremap(2). */
struct large {
	unsigned char *p;
	size_t len;
};

/* Fills whole pages, so what is registered ends where the mapping does. */
static size_t large_length(struct stress *s)
{
	size_t len = stress_pages(s, LARGE);

	return (len < MAPPED ? len + MAPPED : len) - HEAD;
}

/*
 * A region was open while the block grew, as programs may have it: it is
 * reached where it has stayed, and can be closed.
 */
static int large_kept(struct stress *s, const struct large *b,
		      struct stress_mr *m, struct stress_pat pat)
{
	bool stayed = m->mr && m->p == b->p && m->len <= b->len;
	struct stress_pat next;
	int ret = 0;

	if (stayed)
		ret = stress_pull(s, m, 0, m->len, pat);
	if (stayed && !ret) {
		ret = stress_push(s, m, 0, m->len, &next);
		stress_put(s, b->p, m->len, pat);
	}
	return stress_mr_put(s, m) ? STRESS_FAILED : ret;
}

/* All of it works: by a region of its own, and by what was kept of it. */
static int large_whole(struct stress *s, const struct large *b)
{
	struct stress_pat pat = stress_fill(s, b->p, b->len);
	int ret = stress_out(s, b->p, b->len, pat);

	return ret ? ret : stress_in(s, b->p, b->len, &pat);
}

static int large_resize(struct stress *s, struct large *b, size_t len)
{
	struct stress_pat pat = stress_fill(s, b->p, b->len);
	size_t less = len < b->len ? len : b->len;
	struct stress_mr m = { .mr = NULL };
	int ret = stress_out(s, b->p, b->len, pat);
	unsigned char *p;

	if (!ret && stress_has_rma(s) && !stress_random(s, 3))
		ret = stress_mr_get(s, b->p, b->len, STRESS_BOTH, &m);
	if (ret)
		return ret;
	p = stress_realloc(s, b->p, len);
	if (!p) {
		stress_mr_put(s, &m);
		return stress_skip(s, "no memory");
	}
	b->p = p;
	b->len = len;
	ret = large_kept(s, b, &m, pat);
	if (!ret)
		ret = stress_out(s, p, less, pat);
	return ret ? ret : large_whole(s, b);
}

/* Then without what a cache has of it. */
static int large_round(struct stress *s, struct large *b, size_t len)
{
	int ret = large_resize(s, b, len);

	if (ret)
		return ret;
	stress_flush(s);
	ret = large_whole(s, b);
	return ret ? ret : stress_exchange(s, b->p, b->len, 2);
}

/* Grown again at once it may well stay: the addresses behind it are free. */
static int realloc_step(struct stress *s, void *state)
{
	struct large b = { .len = large_length(s) };
	int ret = 0;

	(void)state;
	mallopt(M_MMAP_THRESHOLD, MAPPED);
	b.p = stress_malloc(s, b.len);
	if (!b.p)
		ret = stress_skip(s, "no memory");
	for (int i = 0; !ret && i < RESIZES; i++) {
		size_t was = b.len, less = large_length(s);

		if (less < was && stress_random(s, 2))
			ret = large_resize(s, &b, less);
		else
			was += large_length(s) + HEAD;
		if (!ret)
			ret = large_round(s, &b, was % (2 * (size_t)LARGE) + 1);
	}
	stress_free(s, b.p);
	mallopt(M_MMAP_THRESHOLD, USUAL);
	return ret;
}

const struct stress_scenario stress_reallocs = {
	.name = "realloc",
	.help = "mapped blocks that realloc moves, grows and shrinks",
	.step = realloc_step,
};

/* ---- sbrk ---- */

/*
 * sbrk(2) is one for all threads, and so is the end of memory: between the look
 * and the cut nobody beside may allocate. Threads of the provider have heaps of
 * their own, elsewhere; that none of them has used this one is looked at.
 */
static unsigned char *brk_move(struct stress *s, intptr_t by,
			       unsigned char *from)
{
	unsigned char *p = (void *)-1;

	stress_beside_pause(s);
	if (!from || sbrk(0) == from)
		p = sbrk(by);
	stress_beside_resume(s);
	return p;
}

/* Takes back what sbrk(2) gave, unless somebody has got more behind it. */
static int brk_shrink(struct stress *s, unsigned char *p, size_t len)
{
	unsigned char *was;

	stress_change_begin(s, p, len);
	was = brk_move(s, -(intptr_t)len, p + len);
	stress_change_end(s, p, len);
	stress_say(s, "sbrk -%zu: %p", len, (void *)was);
	if (was == (void *)-1)
		stress_refused(s);
	else if (was != p + len)
		return stress_wrong(s, "sbrk has cut what is at %p, not at %p",
				    (void *)was, (void *)(p + len));
	return 0;
}

static int brk_round(struct stress *s)
{
	size_t len = 2 * (size_t)STRESS_PAGE + stress_length(s, BRK);
	unsigned char *p = brk_move(s, (intptr_t)len, NULL);
	size_t skip = STRESS_PAGE - (uintptr_t)p % STRESS_PAGE;
	int ret;

	if (p == (void *)-1)
		return stress_skip(s, "sbrk: no memory");
	stress_say(s, "sbrk %zu: %p", len, (void *)p);
	ret = stress_use_new(s, p + skip, len - skip);
	return ret ? ret : brk_shrink(s, p, len);
}

static int brk_step(struct stress *s, void *state)
{
	int ret = 0;

	(void)state;
	for (int i = 0; !ret && i < 3; i++)
		ret = brk_round(s);
	return ret;
}

const struct stress_scenario stress_brk = {
	.name = "brk",
	.help = "sbrk up and down",
	.step = brk_step,
};
