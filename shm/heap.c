/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The inject heap, see heap.h. Private bookkeeping, under the endpoint's
 * lock.
 *
 * A span is free, or holds objects of one class, or begins a run or is in
 * one. Spans of a class that have room stand in the class's list.
 */
#include "shm/heap.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define NO_SPAN	      UINT32_MAX	  /* end of a list, none found */
#define SIZE_MAX_AREA (UINT64_C(1) << 36) /* of the area */

enum {
	MIN_OBJECT = 64, /* a cache line: smallest object, alignment */
	MAP_WORDS = RNIC_HEAP_SPAN / MIN_OBJECT / 64,
};

enum span_kind {
	SPAN_FREE,    /* in free_map; or inside a run */
	SPAN_OBJECTS, /* objects of one class */
	SPAN_RUN,     /* first of a run of whole spans */
};

/* One span of the area. */
struct rnic_heap_span {
	uint8_t kind;		 /* enum span_kind */
	uint8_t cls;		 /* OBJECTS: their size class */
	bool populated;		 /* has memory for ever */
	uint32_t count;		 /* OBJECTS: free ones; RUN: its spans */
	uint32_t next;		 /* in the class's list */
	uint32_t prev;		 /* in the class's list */
	uint64_t map[MAP_WORDS]; /* OBJECTS: bit per object, 1 free */
};

/*
 * At most a third is lost by rounding up, at most 1/16 at a span's end; all
 * are multiples of a cache line.
 */
static const uint32_t class_size[RNIC_HEAP_CLASSES] = {
	64,   128,  192,  256,	384,  512,   768,   1024,  1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 21824, 32768,
};

static uint32_t class_objects(unsigned int cls)
{
	return RNIC_HEAP_SPAN / class_size[cls];
}

static unsigned int class_of(size_t len)
{
	unsigned int cls = 0;

	while (class_size[cls] < len)
		cls++;
	return cls;
}

/* ---- bit maps ---- */

/* For assertions only. */
__attribute__((unused)) static bool bit_test(const uint64_t *map, uint32_t i)
{
	return map[i / 64] >> i % 64 & 1;
}

static void bit_set(uint64_t *map, uint32_t i)
{
	map[i / 64] |= UINT64_C(1) << i % 64;
}

static void bit_clear(uint64_t *map, uint32_t i)
{
	map[i / 64] &= ~(UINT64_C(1) << i % 64);
}

/* The first bit from @i on that is @set, or @end. */
static uint32_t bit_next(const uint64_t *map, uint32_t i, uint32_t end,
			 bool set)
{
	uint64_t flip = set ? 0 : UINT64_MAX;

	while (i < end) {
		uint64_t w = (map[i / 64] ^ flip) >> i % 64;

		if (w) {
			i += (uint32_t)__builtin_ctzll(w);
			break;
		}
		i += 64 - i % 64;
	}
	return i < end ? i : end;
}

/* ---- spans ---- */

/* The lowest @n free spans in a row, or NO_SPAN. Moves h->low up. */
static uint32_t span_find(struct rnic_heap *h, uint32_t n)
{
	uint32_t i = bit_next(h->free_map, h->low, h->nspans, true);

	h->low = i;
	while (n <= h->nspans - i) {
		uint32_t end = bit_next(h->free_map, i, i + n, false);

		if (end == i + n)
			return i;
		i = bit_next(h->free_map, end, h->nspans, true);
	}
	return NO_SPAN;
}

/* Gives the spans from @at to @end memory where they have none yet. */
static int span_populate(struct rnic_heap *h, uint32_t at, uint32_t end)
{
	while (at < end) {
		uint32_t i = at;
		int ret = 0;

		while (i < end && h->span[i].populated == h->span[at].populated)
			i++;
		if (!h->span[at].populated && h->populate)
			ret = h->populate(h->arg, (uint64_t)at * RNIC_HEAP_SPAN,
					  (uint64_t)(i - at) * RNIC_HEAP_SPAN);
		if (ret)
			return ret;
		for (; at < i; at++)
			h->span[at].populated = true;
	}
	return 0;
}

/* Takes @n spans in a row and sets @at. 0, -EAGAIN or populate's error. */
static int span_take(struct rnic_heap *h, uint32_t n, uint32_t *at)
{
	uint32_t i, first = span_find(h, n);
	int ret;

	if (first == NO_SPAN)
		return -EAGAIN;
	ret = span_populate(h, first, first + n);
	if (ret)
		return ret;
	for (i = first; i < first + n; i++)
		bit_clear(h->free_map, i);
	*at = first;
	return 0;
}

static void span_give(struct rnic_heap *h, uint32_t at, uint32_t n)
{
	uint32_t i;

	for (i = at; i < at + n; i++) {
		assert(!bit_test(h->free_map, i));
		bit_set(h->free_map, i);
	}
	h->span[at].kind = SPAN_FREE;
	if (at < h->low)
		h->low = at;
}

/* ---- objects ---- */

static void list_add(struct rnic_heap *h, uint32_t at)
{
	struct rnic_heap_span *s = &h->span[at];
	uint32_t *head = &h->partial[s->cls];

	s->prev = NO_SPAN;
	s->next = *head;
	if (*head != NO_SPAN)
		h->span[*head].prev = at;
	*head = at;
}

static void list_remove(struct rnic_heap *h, uint32_t at)
{
	struct rnic_heap_span *s = &h->span[at];

	if (s->prev == NO_SPAN)
		h->partial[s->cls] = s->next;
	else
		h->span[s->prev].next = s->next;
	if (s->next != NO_SPAN)
		h->span[s->next].prev = s->prev;
}

/* Makes a free span one of class @cls, with room. */
static int object_span_open(struct rnic_heap *h, unsigned int cls)
{
	struct rnic_heap_span *s;
	uint32_t i, at;
	int ret = span_take(h, 1, &at);

	if (ret)
		return ret;
	s = &h->span[at];
	s->kind = SPAN_OBJECTS;
	s->cls = (uint8_t)cls;
	s->count = class_objects(cls);
	for (i = 0; i < s->count; i++)
		bit_set(s->map, i);
	list_add(h, at);
	return 0;
}

static int object_alloc(struct rnic_heap *h, unsigned int cls, uint64_t *off)
{
	struct rnic_heap_span *s;
	uint32_t at, i;

	if (h->partial[cls] == NO_SPAN) {
		int ret = object_span_open(h, cls);

		if (ret)
			return ret;
	}
	at = h->partial[cls];
	s = &h->span[at];
	i = bit_next(s->map, 0, class_objects(cls), true);
	bit_clear(s->map, i);
	if (!--s->count)
		list_remove(h, at);
	*off = (uint64_t)at * RNIC_HEAP_SPAN + (uint64_t)i * class_size[cls];
	return 0;
}

static void object_free(struct rnic_heap *h, uint32_t at, uint32_t rest)
{
	struct rnic_heap_span *s = &h->span[at];
	uint32_t i = rest / class_size[s->cls];

	assert(rest % class_size[s->cls] == 0);
	assert(!bit_test(s->map, i));
	bit_set(s->map, i);
	h->used -= class_size[s->cls];
	if (!s->count++)
		list_add(h, at);
	if (s->count < class_objects(s->cls))
		return;
	list_remove(h, at);
	span_give(h, at, 1);
}

/* ---- runs ---- */

static int run_alloc(struct rnic_heap *h, uint32_t n, uint64_t *off)
{
	uint32_t at;
	int ret = span_take(h, n, &at);

	if (ret)
		return ret;
	h->span[at].kind = SPAN_RUN;
	h->span[at].count = n;
	*off = (uint64_t)at * RNIC_HEAP_SPAN;
	return 0;
}

static void run_free(struct rnic_heap *h, uint32_t at)
{
	uint32_t n = h->span[at].count;

	h->used -= (uint64_t)n * RNIC_HEAP_SPAN;
	span_give(h, at, n);
}

/* ---- the heap ---- */

int rnic_heap_alloc(struct rnic_heap *h, size_t len, uint64_t *off)
{
	bool small = len <= RNIC_HEAP_SMALL_MAX;
	unsigned int cls = small ? class_of(len) : 0;
	uint64_t n, size;
	int ret;

	if (len > (uint64_t)h->nspans * RNIC_HEAP_SPAN)
		return -ENOMEM;
	n = (len + RNIC_HEAP_SPAN - 1) / RNIC_HEAP_SPAN;
	size = small ? class_size[cls] : n * RNIC_HEAP_SPAN;
	if (size > h->limit)
		return -ENOMEM;
	if (size > h->limit - h->used)
		return -EAGAIN;
	if (small)
		ret = object_alloc(h, cls, off);
	else
		ret = run_alloc(h, (uint32_t)n, off);
	if (!ret)
		h->used += size;
	return ret;
}

void rnic_heap_free(struct rnic_heap *h, uint64_t off)
{
	uint32_t at = (uint32_t)(off / RNIC_HEAP_SPAN);

	assert(at < h->nspans && !bit_test(h->free_map, at));
	if (h->span[at].kind == SPAN_OBJECTS) {
		object_free(h, at, off % RNIC_HEAP_SPAN);
	} else {
		assert(h->span[at].kind == SPAN_RUN);
		assert(off % RNIC_HEAP_SPAN == 0);
		run_free(h, at);
	}
}

uint64_t rnic_heap_used(const struct rnic_heap *h)
{
	return h->used;
}

int rnic_heap_init(struct rnic_heap *h, uint64_t size, uint64_t limit,
		   rnic_heap_populate_fn populate, void *arg)
{
	uint32_t i, n = (uint32_t)(size / RNIC_HEAP_SPAN);

	if (size < RNIC_HEAP_SPAN || size > SIZE_MAX_AREA)
		return -EINVAL;
	*h = (struct rnic_heap){
		.limit = limit,
		.nspans = n,
		.populate = populate,
		.arg = arg,
	};
	/* untouched until used: only spans below the peak cost memory */
	h->span = calloc(n, sizeof(*h->span));
	h->free_map = calloc((n + 63) / 64, sizeof(*h->free_map));
	if (!h->span || !h->free_map) {
		rnic_heap_fini(h);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		bit_set(h->free_map, i);
	for (i = 0; i < RNIC_HEAP_CLASSES; i++)
		h->partial[i] = NO_SPAN;
	return 0;
}

void rnic_heap_fini(struct rnic_heap *h)
{
	free(h->span);
	free(h->free_map);
	*h = (struct rnic_heap){ .nspans = 0 };
}
