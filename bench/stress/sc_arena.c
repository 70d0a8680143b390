/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenario arena: regions that overlap, touch and contain each other in one
 * arena. What lies between the ones that are open is unmapped, given up, or
 * replaced.
 */
#include "bench/stress/stress.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
	SLOT = 12,
	PAGES = 64,
	LEN = PAGES * STRESS_PAGE,
	REGIONS = 8,
	ROUNDS = 6,
};

/** The arena. */
struct arena {
	unsigned char *p;
	struct stress_mr m[REGIONS]; /* zeroed: closed */
	struct stress_pat pat;	     /* of all bytes, but pages that are new */
	bool fresh[PAGES];	     /* those: zeros */
};

static bool covers(const struct stress_mr *m, const unsigned char *page)
{
	return m->mr && m->p < page + STRESS_PAGE && m->p + m->len > page;
}

static bool in_use(const struct arena *a, size_t page)
{
	for (int i = 0; i < REGIONS; i++)
		if (covers(&a->m[i], a->p + page * STRESS_PAGE))
			return true;
	return false;
}

/* New bytes for pages that have none. */
static void refresh(struct stress *s, struct arena *a)
{
	for (size_t i = 0; i < PAGES; i++) {
		if (!a->fresh[i])
			continue;
		stress_put(s, a->p + i * STRESS_PAGE, STRESS_PAGE,
			   stress_at(a->pat, i * STRESS_PAGE));
		a->fresh[i] = false;
	}
}

/* Opens one of them: within the arena, with any alignment. */
static int open_one(struct stress *s, struct arena *a, struct stress_mr *m)
{
	size_t at = stress_random(s, LEN);
	size_t len = stress_length(s, LEN - at);

	if (stress_random(s, 2)) { /* whole pages, which touch others */
		at -= at % STRESS_PAGE;
		len = stress_pages(s, LEN - at);
	}
	return stress_mr_get(s, a->p + at, len, STRESS_BOTH, m);
}

static int use_one(struct stress *s, struct arena *a, struct stress_mr *m)
{
	size_t place = (size_t)(m->p - a->p), at = stress_random(s, m->len);
	size_t len = stress_length(s, m->len - at);
	struct stress_pat pat = stress_at(a->pat, place + at);
	int ret = stress_pull(s, m, at, len, pat);

	if (ret)
		return ret;
	ret = stress_push(s, m, at, len, &pat);
	stress_put(s, m->p + at, len, stress_at(a->pat, place + at));
	return ret;
}

/* Replaces pages @from to @to, which are in no region. */
static int pages_change(struct stress *s, struct arena *a, size_t from,
			size_t to)
{
	unsigned char *p = a->p + from * STRESS_PAGE, *got = p;
	size_t len = (to - from) * STRESS_PAGE;
	struct stress_pat zero = { .tag = 0 };

	stress_say(s, "pages %zu to %zu are replaced", from, to);
	stress_change_begin(s, p, len);
	if (stress_random(s, 2) || madvise(p, len, MADV_DONTNEED))
		got = mmap(p, len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	stress_change_end(s, p, len);
	if (got != p)
		return stress_wrong(s, "mmap: %s", strerror(errno));
	memset(a->fresh + from, 1, to - from);
	return stress_out(s, p, len, zero);
}

/* Some pages beside those that are in use. */
static int neighbour_change(struct stress *s, struct arena *a)
{
	size_t from = stress_random(s, PAGES), to;
	size_t most = 1 + stress_random(s, PAGES);

	while (from < PAGES && in_use(a, from))
		from++;
	for (to = from; to < PAGES && to < from + most && !in_use(a, to);)
		to++;
	return from < to ? pages_change(s, a, from, to) : 0;
}

static int turn(struct stress *s, struct arena *a)
{
	struct stress_mr *m = &a->m[stress_random(s, REGIONS)];
	int ret = m->mr ? stress_mr_put(s, m) : open_one(s, a, m);

	if (!ret)
		ret = neighbour_change(s, a);
	refresh(s, a);
	for (int i = 0; !ret && i < REGIONS; i++)
		if (a->m[i].mr)
			ret = use_one(s, a, &a->m[i]);
	return ret;
}

static int step(struct stress *s, void *state)
{
	struct arena a = { .p = stress_slot(s, SLOT) };
	int ret = 0;

	(void)state;
	a.p = stress_map(s, a.p, LEN, false);
	if (!a.p)
		return stress_skip(s, "no memory");
	a.pat = stress_fill(s, a.p, LEN);
	for (int i = 0; !ret && i < ROUNDS; i++)
		ret = turn(s, &a);
	if (!ret)
		ret = stress_verify(s, a.p, LEN, a.pat, "an arena");
	for (int i = 0; i < REGIONS; i++)
		if (stress_mr_put(s, &a.m[i]))
			ret = STRESS_FAILED;
	stress_unmap(s, a.p, LEN);
	stress_slot_free(s, SLOT);
	return ret;
}

const struct stress_scenario stress_arena = {
	.name = "arena",
	.help = "regions that overlap and touch, neighbours unmapped",
	.needs = STRESS_RMA,
	.step = step,
};
