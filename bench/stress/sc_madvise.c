/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenario madvise: pages in the middle are given up, in all ways.
 */
#include "bench/stress/stress.h"

#include <sys/mman.h>

enum {
	SLOT = 2,
	LEN = 2 << 20,
	ROUNDS = 3,
};

/** What is given up: pages @at, @n bytes of @p. */
struct hole {
	unsigned char *p;
	size_t len;
	size_t at;
	size_t n;
};

static int rest_check(struct stress *s, const struct hole *h,
		      struct stress_pat all)
{
	size_t end = h->at + h->n;
	int ret = 0;

	if (h->at)
		ret = stress_out(s, h->p, h->at, all);
	if (!ret && end < h->len)
		ret = stress_out(s, h->p + end, h->len - end,
				 stress_at(all, end));
	return ret;
}

/*
 * After it the hole is zeros, or (@keeps) as it was; nobody has looked. Where
 * some of it is locked the kernel may have done the rest before it refused.
 */
static int hole_make(struct stress *s, const struct hole *h, int advice,
		     bool keeps)
{
	struct stress_pat all = stress_fill(s, h->p, h->len);
	struct stress_pat pat = { .tag = 0 };
	int ret = stress_out(s, h->p, h->len, all);

	if (ret)
		return ret;
	ret = stress_madvise(s, h->p + h->at, h->n, advice);
	if (ret == STRESS_FAILED)
		return ret;
	if (ret == STRESS_SKIP)
		pat = stress_fill(s, h->p + h->at, h->n);
	else if (keeps)
		pat = stress_at(all, h->at);
	ret = stress_out(s, h->p + h->at, h->n, pat);
	if (!ret)
		ret = rest_check(s, h, all);
	return ret ? ret : stress_exchange(s, h->p, h->len, 3);
}

/* MADV_FREE: old bytes or zeros until they are written. */
static int free_make(struct stress *s, const struct hole *h)
{
	struct stress_pat all = stress_fill(s, h->p, h->len), hole;
	int ret = stress_out(s, h->p, h->len, all);

	if (!ret)
		ret = stress_madvise(s, h->p + h->at, h->n, MADV_FREE);
	if (ret == STRESS_FAILED)
		return ret;
	hole = stress_fill(s, h->p + h->at, h->n);
	ret = stress_out(s, h->p + h->at, h->n, hole);
	if (!ret)
		ret = rest_check(s, h, all);
	return ret ? ret : stress_exchange(s, h->p, h->len, 3);
}

static int advise(struct stress *s, const struct hole *h, bool shared)
{
	if (shared && stress_random(s, 2))
		return hole_make(s, h, MADV_REMOVE, false);
	if (shared) /* the file keeps them */
		return hole_make(s, h, MADV_DONTNEED, true);
	if (stress_random(s, 2))
		return hole_make(s, h, MADV_DONTNEED, false);
	return free_make(s, h);
}

static int step(struct stress *s, void *state)
{
	unsigned char *at = stress_slot(s, SLOT);
	struct hole h = { .len = stress_pages(s, LEN) };
	bool shared = stress_random(s, 2);
	int ret = 0;

	(void)state;
	h.p = stress_map(s, at, h.len, shared);
	if (!h.p)
		return stress_skip(s, "no memory");
	for (int i = 0; !ret && i < ROUNDS; i++) {
		h.at = stress_random(s, h.len / STRESS_PAGE) * STRESS_PAGE;
		h.n = stress_pages(s, h.len - h.at);
		ret = advise(s, &h, shared);
	}
	if (h.p != at)
		stress_unmap(s, h.p, h.len);
	else
		stress_slot_free(s, SLOT);
	return ret;
}

const struct stress_scenario stress_madvises = {
	.name = "madvise",
	.help = "holes by madvise: DONTNEED, FREE, REMOVE",
	.step = step,
};
