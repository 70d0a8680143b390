/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Ranges by the blocks they lie in, see mr_index.h.
 */
#include "lib/mr_index.h"

#include <errno.h>
#include <stdlib.h>

int shrimp_mr_index_init(struct shrimp_mr_index *ix)
{
	*ix = (struct shrimp_mr_index){ 0 };
	ix->bucket = calloc(SHRIMP_MR_BUCKETS, sizeof(*ix->bucket));
	return ix->bucket ? 0 : -ENOMEM;
}

void shrimp_mr_index_fini(struct shrimp_mr_index *ix)
{
	free(ix->bucket);
	ix->bucket = NULL;
}

/* Links in use: 1, or 2 if it lies in two blocks. */
static int links(const struct shrimp_span *s)
{
	unsigned int shift = SHRIMP_MR_PAGE_SHIFT + s->level;

	return s->start >> shift == (s->end - 1) >> shift ? 1 : 2;
}

static void set_level(struct shrimp_mr_index *ix, unsigned int level, bool used)
{
	uint64_t bit = UINT64_C(1) << level;
	uint64_t was = rnic_load64_relaxed(&ix->levels);

	/* relaxed: one writer, under the lock; readers may be late */
	rnic_store64_relaxed(&ix->levels, used ? was | bit : was & ~bit);
}

void shrimp_mr_index_add(struct shrimp_mr_index *ix, struct shrimp_span *s)
{
	s->level = shrimp_span_level(s->end - s->start);
	for (int i = 0; i < links(s); i++) {
		struct shrimp_span_link *l = &s->link[i];
		uint64_t at = i ? s->end - 1 : s->start;
		rnic_aptr *head;

		l->span = s;
		l->block = at >> (SHRIMP_MR_PAGE_SHIFT + s->level);
		head = shrimp_mr_bucket(ix, s->level, l->block);
		/* relaxed: the lock; X1 publishes it */
		rnic_ptr_store_release(&l->next, rnic_ptr_load_relaxed(head));
		/* X1: the range; pairs with the loads of who walks */
		rnic_ptr_store_release(head, l);
	}
	ix->total++;
	if (!ix->count[s->level]++)
		set_level(ix, s->level, true);
}

void shrimp_mr_index_del(struct shrimp_mr_index *ix, struct shrimp_span *s)
{
	for (int i = 0; i < links(s); i++) {
		struct shrimp_span_link *x, *l = &s->link[i];
		rnic_aptr *at = shrimp_mr_bucket(ix, s->level, l->block);

		/* relaxed: the lock */
		while ((x = rnic_ptr_load_relaxed(at)) != l)
			at = &x->next;
		/* release: what follows was published before */
		rnic_ptr_store_release(at, rnic_ptr_load_relaxed(&l->next));
	}
	ix->total--;
	if (!--ix->count[s->level])
		set_level(ix, s->level, false);
}

/* ---- who overlaps ---- */

/* What is looked for. */
struct want {
	uint64_t start;				      /* first address */
	uint64_t end;				      /* last address + 1 */
	void (*fn)(struct shrimp_span *s, void *arg); /* for each */
	void *arg;				      /* its own */
};

static void walk(const rnic_aptr *head, const struct want *w)
{
	/* acquire: the range (X1) */
	const struct shrimp_span_link *l = rnic_ptr_load_acquire(head);

	/* acquire: likewise */
	for (; l; l = rnic_ptr_load_acquire(&l->next))
		if (l->span->start < w->end && w->start < l->span->end)
			w->fn(l->span, w->arg);
}

void shrimp_mr_index_overlap(const struct shrimp_mr_index *ix, uint64_t start,
			     uint64_t end,
			     void (*fn)(struct shrimp_span *s, void *arg),
			     void *arg)
{
	const struct want w = { start, end, fn, arg };
	/* relaxed: what is added now is checked by who adds it */
	uint64_t levels = rnic_load64_relaxed(&ix->levels), blocks = 0;

	for (uint64_t m = levels; m; m &= m - 1) {
		int shift = SHRIMP_MR_PAGE_SHIFT + __builtin_ctzll(m);

		blocks += ((end - 1) >> shift) - (start >> shift) + 1;
		if (blocks > SHRIMP_MR_BUCKETS)
			break;
	}
	if (blocks > SHRIMP_MR_BUCKETS) {
		for (int i = 0; i < SHRIMP_MR_BUCKETS; i++)
			walk(&ix->bucket[i], &w);
		return;
	}
	for (; levels; levels &= levels - 1) {
		unsigned int k = (unsigned int)__builtin_ctzll(levels);
		unsigned int shift = SHRIMP_MR_PAGE_SHIFT + k;
		uint64_t last = (end - 1) >> shift;

		for (uint64_t b = start >> shift; b <= last; b++)
			walk(shrimp_mr_bucket(ix, k, b), &w);
	}
}
