/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenarios limit and evict: far more regions than a cache of 16 may hold, at
 * once or one after the other.
 */
#include "bench/stress/inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	LIMIT_SLOT = 11,
	REGION = 256,	    /* bytes of a region */
	STRIDE = 8192,	    /* and of the next one's start: two pages */
	ENTRIES = 16,	    /* that a cache may have */
	APART = 10000,	    /* regions with a mapping of their own, at most */
	REGIONS = 1000,	    /* at once */
	REGIONS_SLOW = 100, /* with sanitizers */
	REGIONS_LONG = 100000,
	USED = 24, /* of them, between the closings */
	EVICT_BUFFERS = 40,
	EVICT_LEN = 128 << 10, /* of one, at most */
	EVICT_USES = 20,       /* in a step */
};

static const char *const few[] = {
	"FI_SHRIMP_MR_CACHE_ENTRIES=16", /* ENTRIES */
	"FI_MR_CACHE_MAX_COUNT=16",
	NULL,
};

/* ---- many at once ---- */

/**
 * Regions at the start of every second page. Nobody may touch the others, so
 * each is a mapping by itself, and no cache makes one of several.
 */
struct many {
	unsigned char *p;
	size_t len;
	size_t n;
	struct stress_pat pat;
	struct stress_mr *m; /* of each; closed ones are zeroed */
};

static size_t regions(const struct stress *s)
{
	if (stress_slow(s))
		return REGIONS_SLOW;
	return stress_long(s) ? REGIONS_LONG : REGIONS;
}

static void many_split(struct many *a, size_t n)
{
	for (size_t i = 0; i < n && i < APART; i++)
		mprotect(a->p + i * STRIDE + STRESS_PAGE, STRESS_PAGE,
			 PROT_NONE); /* or not: fewer are apart then */
}

/* Writes the page of each, or compares it. */
static void many_fill(struct stress *s, struct many *a, size_t n)
{
	a->pat = stress_stream(s);
	for (size_t i = 0; i < n; i++)
		stress_put(s, a->p + i * STRIDE, STRESS_PAGE,
			   stress_at(a->pat, i * STRIDE));
}

static int many_verify(struct stress *s, const struct many *a, size_t n)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++)
		ret = stress_verify(s, a->p + i * STRIDE, STRESS_PAGE,
				    stress_at(a->pat, i * STRIDE),
				    "a page of many");
	return ret;
}

/* A cache looks at its limit when something new comes. */
static int many_more(struct stress *s)
{
	int ret = 0;

	for (int i = 0; !ret && i < 2; i++) {
		size_t len = 2 * (size_t)STRESS_PAGE;
		unsigned char *p = stress_map(s, NULL, len, false);
		struct stress_mr m;

		if (!p)
			return stress_skip(s, "no memory");
		ret = stress_mr_reg(s, p, STRESS_PAGE, STRESS_BOTH, 0, &m);
		if (stress_mr_put(s, &m))
			ret = STRESS_FAILED;
		stress_unmap(s, p, len);
	}
	return ret;
}

/* All are closed: it has what it may have, and the others it had once. */
static int many_evicted(struct stress *s, const struct fi_shrimp_stats *was)
{
	struct fi_shrimp_stats now;
	uint64_t misses, gone;

	if (!stress_counters(s, &now))
		return 0;
	misses = now.cache_misses - was->cache_misses;
	gone = now.cache_evictions - was->cache_evictions;
	stress_say(s, "%lu were kept, %lu evicted, %lu are there",
		   (unsigned long)misses, (unsigned long)gone,
		   (unsigned long)now.cache_entries);
	if (now.cache_entries <= ENTRIES && (misses < 4 * ENTRIES || gone))
		return 0;
	return stress_wrong(s,
			    "a cache of %d has %lu ranges; of %lu that came "
			    "%lu were evicted",
			    ENTRIES, (unsigned long)now.cache_entries,
			    (unsigned long)misses, (unsigned long)gone);
}

/* Until the provider takes no more, which is allowed. */
static int many_open(struct stress *s, struct many *a)
{
	size_t max = regions(s);
	int ret = 0;

	for (a->n = 0; a->n < max; a->n++) {
		ret = stress_mr_get(s, a->p + a->n * STRIDE, REGION,
				    STRESS_BOTH, &a->m[a->n]);
		if (ret)
			break;
	}
	stress_say(s, "%zu regions", a->n);
	return ret == STRESS_SKIP && a->n ? 0 : ret;
}

/* Some of those that are open. */
static int many_use(struct stress *s, struct many *a)
{
	int ret = 0;

	for (int i = 0; !ret && i < USED; i++) {
		size_t k = stress_random(s, a->n);
		struct stress_pat pat = stress_at(a->pat, k * STRIDE);

		if (!a->m[k].mr)
			continue;
		if (stress_random(s, 2))
			ret = stress_pull(s, &a->m[k], 0, REGION, pat);
		else
			ret = stress_push(s, &a->m[k], 0, REGION, &pat);
		stress_put(s, a->m[k].p, REGION, stress_at(a->pat, k * STRIDE));
	}
	return ret;
}

/* Closes all from a place drawn by chance on, one of @every. */
static int many_close(struct stress *s, struct many *a, size_t every)
{
	size_t from = stress_random(s, a->n);
	int ret = 0;

	for (size_t i = 0; i < a->n; i += every)
		if (stress_mr_put(s, &a->m[(from + i) % a->n]))
			ret = STRESS_FAILED;
	return ret;
}

static int many_run(struct stress *s, struct many *a)
{
	struct fi_shrimp_stats was;
	size_t n = regions(s);
	int ret;

	many_split(a, n);
	many_fill(s, a, n);
	stress_counters(s, &was);
	ret = many_open(s, a);
	if (!ret)
		ret = many_use(s, a);
	if (!ret)
		ret = many_close(s, a, 1 + stress_random(s, 3));
	if (!ret)
		ret = many_use(s, a);
	if (a->n && many_close(s, a, 1))
		ret = STRESS_FAILED;
	if (!ret)
		ret = many_more(s);
	if (!ret)
		ret = many_evicted(s, &was);
	return ret ? ret : many_verify(s, a, n);
}

static int limit_step(struct stress *s, void *state)
{
	struct many a = { .len = regions(s) * STRIDE };
	unsigned char *slot = stress_slot(s, LIMIT_SLOT);
	int ret;

	(void)state;
	a.m = calloc(regions(s), sizeof(*a.m));
	a.p = stress_map(s, a.len > STRESS_SLOT ? NULL : slot, a.len, false);
	ret = a.m && a.p ? many_run(s, &a) : stress_skip(s, "no memory");
	stress_unmap(s, a.p, a.len);
	stress_slot_free(s, LIMIT_SLOT);
	free(a.m);
	return ret;
}

const struct stress_scenario stress_limit = {
	.name = "limit",
	.help = "a cache of 16, a thousand regions (--long: 100000) at once",
	.needs = STRESS_RMA,
	.env = few,
	.step = limit_step,
};

/* ---- one after the other ---- */

static const char *const small[] = {
	"FI_SHRIMP_MR_CACHE_ENTRIES=16",
	"FI_SHRIMP_MR_CACHE_BYTES=512K",
	"FI_MR_CACHE_MAX_COUNT=16",
	"FI_MR_CACHE_MAX_SIZE=524288",
	NULL,
};

/** Buffers that take turns, and one that is in use all the time. */
struct turns {
	unsigned char *p[EVICT_BUFFERS];
	size_t len[EVICT_BUFFERS];
};

static int evict_setup(struct stress *s, void **state)
{
	struct turns *t = stress_malloc(s, sizeof(*t));

	if (t)
		memset(t, 0, sizeof(*t));
	*state = t;
	return t ? 0 : stress_skip(s, "no memory");
}

static void evict_teardown(struct stress *s, void *state)
{
	struct turns *t = state;

	for (int i = 0; t && i < EVICT_BUFFERS; i++)
		stress_unmap(s, t->p[i], t->len[i]);
	stress_free(s, t);
}

static int evict_turn(struct stress *s, struct turns *t)
{
	size_t i = stress_random(s, EVICT_BUFFERS);

	if (t->p[i] && !stress_random(s, 4)) {
		stress_unmap(s, t->p[i], t->len[i]);
		t->p[i] = NULL;
	}
	if (!t->p[i]) {
		t->len[i] = stress_pages(s, EVICT_LEN);
		t->p[i] = stress_map(s, NULL, t->len[i], false);
	}
	if (!t->p[i])
		return stress_skip(s, "no memory");
	return stress_exchange(s, t->p[i], t->len[i], 1);
}

/* A region that is open is not evicted. */
static int evict_step(struct stress *s, void *state)
{
	struct turns *t = state;
	unsigned char *p = stress_map(s, NULL, EVICT_LEN, false);
	struct stress_mr m = { .mr = NULL };
	struct stress_pat pat = { .tag = 0 };
	int ret = p ? 0 : stress_skip(s, "no memory");

	if (!ret)
		ret = stress_mr_get(s, p, EVICT_LEN, STRESS_BOTH, &m);
	if (!ret)
		pat = stress_fill(s, p, EVICT_LEN);
	for (int i = 0; !ret && i < EVICT_USES; i++)
		ret = evict_turn(s, t);
	if (!ret)
		ret = stress_pull(s, &m, 0, EVICT_LEN, pat);
	if (!ret)
		ret = stress_push(s, &m, 0, EVICT_LEN, &pat);
	if (stress_mr_put(s, &m))
		ret = STRESS_FAILED;
	stress_unmap(s, p, EVICT_LEN);
	return ret;
}

const struct stress_scenario stress_evict = {
	.name = "evict",
	.help = "a cache of 16 and 512 KiB, buffers that take turns",
	.needs = STRESS_RMA,
	.env = small,
	.setup = evict_setup,
	.step = evict_step,
	.teardown = evict_teardown,
};
