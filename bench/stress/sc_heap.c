/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenarios heap and brk: the heap shrinks and grows, by glibc as it likes, or
 * by sbrk(2) of our own.
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
	p = stress_malloc(s, len);
	if (!p)
		return stress_skip(s, "no memory");
	memcpy(p, h->p[i], less);
	heap_drop(s, h, i);
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

/* ---- sbrk ---- */

/* Takes back what sbrk(2) gave, unless somebody has got more behind it. */
static int brk_shrink(struct stress *s, unsigned char *p, size_t len)
{
	if (sbrk(0) != p + len) {
		stress_refused(s);
		return 0;
	}
	stress_say(s, "sbrk -%zu", len);
	stress_change_begin(s, p, len);
	if (sbrk(-(intptr_t)len) == (void *)-1)
		stress_wrong(s, "sbrk does not shrink");
	stress_change_end(s, p, len);
	return 0;
}

static int brk_round(struct stress *s)
{
	size_t len = 2 * (size_t)STRESS_PAGE + stress_length(s, BRK);
	unsigned char *p = sbrk((intptr_t)len);
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
