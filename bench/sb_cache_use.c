/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench cache: what programs see. A message is a buffer, made if the
 * pattern says so, and its registration, before and after it; nothing is sent.
 *
 * Each way of registering is a process of its own, so that one's malloc, its
 * mappings and its monitor do not meet another's. They take turns: one works
 * while the others sleep.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/clock.h"
#include "bench/sb_cache.h"
#include "bench/sb_proc.h"

enum {
	FIXED = 128,		 /* buffers of a program */
	FIXED_LEN = 64 << 10,	 /* bytes of each */
	NEIGHBOURS = 26,	 /* of a process in three dimensions */
	HALO_SETS = 3,		 /* arrays that take turns */
	HALO = 2 * NEIGHBOURS,	 /* buffers of a step: to send, to receive */
	HALO_LEN = 16 << 10,	 /* bytes of each */
	LIVE = 8,		 /* buffers of malloc at a time */
	ARRAY_LEN = 16 << 20,	 /* bytes of an array sent in pieces */
	PIECE_LEN = 32 << 10,	 /* bytes of a piece */
	SMALL_LEAST = 1 << 10,	 /* bytes of a small message */
	SMALL_MOST = 64 << 10,	 /* likewise */
	LARGE_LEAST = 256 << 10, /* of a large one */
	LARGE_MOST = 1 << 20,	 /* likewise */
	MMAP_FROM = 128 << 10,	 /* bytes that malloc maps anew: its default */
	MMAP_NEVER = 32 << 20,	 /* and what it rises to by itself */
	AT_ONCE = 64,		 /* messages, as one for what measures */
	BLOCK_NS = 200000,	 /* of a sample */
};

/* What a program does. */
enum pattern {
	PAT_FIXED, /* any of FIXED buffers */
	PAT_HALO,  /* each of HALO, then those of the next set */
	PAT_ARRAY, /* any piece of an array */
	PAT_SMALL, /* malloc, free: of the heap */
	PAT_MAPS,  /* malloc, free: mapped anew each time */
	PAT_LARGE, /* as large, after malloc has learned: of the heap */
	PATTERNS
};

static const char *const pattern_name[PATTERNS] = {
	[PAT_FIXED] = "fixed",	    [PAT_HALO] = "halo",
	[PAT_ARRAY] = "pieces",	    [PAT_SMALL] = "malloc small",
	[PAT_MAPS] = "malloc maps", [PAT_LARGE] = "malloc large",
};

/* How a message is registered. */
enum how {
	NOT,	 /* not at all */
	REG,	 /* fi_mr_reg and fi_close */
	ACQUIRE, /* acquire and release */
};

struct way {
	enum how how;
	unsigned int entries;	 /* limit of the cache; 0: there is none */
	bool quick;		 /* also with --quick */
	const char *name;	 /* of rows */
	struct sb_cache_set set; /* settings */
};

static const struct way ways[] = {
	{ NOT, 0, true, "", { .value = { NULL } } },
	{ REG, 0, true, "no cache", { .value = { [SB_CACHE_MODE] = "off" } } },
	{ REG,
	  4096,
	  true,
	  "registered, cached",
	  { .value = { [SB_CACHE_MODE] = "all",
		       [SB_CACHE_ENTRIES] = "4096" } } },
	{ REG,
	  4096,
	  false,
	  "registered, pin kept",
	  { .value = { [SB_CACHE_MODE] = "all",
		       [SB_CACHE_ENTRIES] = "4096",
		       [SB_CACHE_KEEP] = "keep" } } },
	{ ACQUIRE,
	  4,
	  false,
	  "4 entries",
	  { .value = { [SB_CACHE_MODE] = "all", [SB_CACHE_ENTRIES] = "4" } } },
	{ ACQUIRE,
	  16,
	  true,
	  "16 entries",
	  { .value = { [SB_CACHE_MODE] = "all", [SB_CACHE_ENTRIES] = "16" } } },
	{ ACQUIRE,
	  64,
	  false,
	  "64 entries",
	  { .value = { [SB_CACHE_MODE] = "all", [SB_CACHE_ENTRIES] = "64" } } },
	{ ACQUIRE,
	  128,
	  false,
	  "128 entries",
	  { .value = { [SB_CACHE_MODE] = "all",
		       [SB_CACHE_ENTRIES] = "128" } } },
	{ ACQUIRE,
	  256,
	  true,
	  "256 entries",
	  { .value = { [SB_CACHE_MODE] = "all",
		       [SB_CACHE_ENTRIES] = "256" } } },
	{ ACQUIRE,
	  4096,
	  false,
	  "4096 entries",
	  { .value = { [SB_CACHE_MODE] = "all",
		       [SB_CACHE_ENTRIES] = "4096" } } },
};
enum { WAYS = sizeof(ways) / sizeof(*ways), BARE = 0, UNCACHED = 1 };

/* Asked of a process, and answered. */
struct turn {
	uint32_t pattern; /* asked */
	int32_t ret;	  /* answered: 0 or a negative code */
	uint64_t n;	  /* asked: messages */
	uint64_t ns;	  /* answered: their time */
	uint64_t hits;	  /* answered: of them */
	uint64_t looks;	  /* answered: hits and all others */
};

/* ---- a program ---- */

struct user {
	const struct way *w;	/* how it registers */
	int cpu;		/* its core */
	struct sb_cache c;	/* closed, if it does not */
	enum pattern pattern;	/* what it does */
	uint64_t random;	/* state */
	struct sb_pieces fixed; /* PAT_FIXED */
	struct sb_pieces halo;	/* PAT_HALO, all sets */
	struct sb_pieces array; /* PAT_ARRAY, one piece */
	size_t next;		/* PAT_HALO */
	void *live[LIVE];	/* malloc'ed */
};

/* xorshift64: the same in each process. */
static uint64_t draw(struct user *u, uint64_t below)
{
	u->random ^= u->random << 13;
	u->random ^= u->random >> 7;
	u->random ^= u->random << 17;
	/* the upper half, scaled: no division */
	return (u->random >> 32) * below >> 32;
}

static int registered(struct user *u, void *p, size_t len)
{
	switch (u->w->how) {
	case REG:
		return sb_cache_reg(&u->c, p, len, SB_CACHE_LOCAL);
	case ACQUIRE:
		return sb_cache_touch(&u->c, p, len, SB_CACHE_LOCAL);
	default:
		__asm__ __volatile__("" ::"r"(p), "r"(len) : "memory");
		return 0;
	}
}

/* A buffer of malloc; its pages are touched, as a message would. */
static int malloc_message(struct user *u)
{
	bool small = u->pattern == PAT_SMALL;
	size_t least = small ? SMALL_LEAST : LARGE_LEAST;
	size_t most = small ? SMALL_MOST : LARGE_MOST;
	size_t len = least + draw(u, most - least);
	void **at = &u->live[draw(u, LIVE)];

	free(*at);
	*at = malloc(len);
	if (!*at)
		return sb_fail("malloc", -ENOMEM);
	for (size_t i = 0; i < len; i += SB_PAGE)
		((char *)*at)[i] = 1;
	__asm__ __volatile__("" ::: "memory");
	return registered(u, *at, len);
}

static int message(struct user *u)
{
	switch (u->pattern) {
	case PAT_FIXED:
		return registered(u, sb_piece(&u->fixed, draw(u, FIXED)),
				  FIXED_LEN);
	case PAT_HALO:
		u->next = u->next + 1 < u->halo.n ? u->next + 1 : 0;
		return registered(u, sb_piece(&u->halo, u->next), HALO_LEN);
	case PAT_ARRAY:
		return registered(u,
				  u->array.p + draw(u, ARRAY_LEN - PIECE_LEN),
				  PIECE_LEN);
	default:
		return malloc_message(u);
	}
}

/* Begins another pattern, with nothing left of the last one. */
static int begin(struct user *u, enum pattern pattern)
{
	size_t from = pattern == PAT_MAPS ? MMAP_FROM : MMAP_NEVER;

	if (u->pattern == pattern)
		return 0;
	for (int i = 0; i < LIVE; i++) {
		free(u->live[i]);
		u->live[i] = NULL;
	}
	u->pattern = pattern;
	u->random = UINT64_C(0x9e3779b97f4a7c15);
	u->next = 0;
	/* as malloc itself: the heap is trimmed from twice as much on */
	mallopt(M_MMAP_THRESHOLD, (int)from);
	mallopt(M_TRIM_THRESHOLD, (int)(2 * from));
	malloc_trim(0);
	return u->c.ops ? u->c.ops->flush(&u->c.s.domain->fid) : 0;
}

static int turn_do(struct user *u, struct turn *t)
{
	struct fi_shrimp_stats a = { 0 }, b = { 0 };
	int ret = begin(u, (enum pattern)t->pattern);
	uint64_t from;

	if (!ret && u->c.ops)
		ret = sb_cache_count(&u->c, &a);
	from = bench_clock_ns();
	for (uint64_t i = 0; i < t->n && !ret; i++)
		ret = message(u);
	t->ns = bench_clock_ns() - from;
	if (!ret && u->c.ops)
		ret = sb_cache_count(&u->c, &b);
	t->hits = b.cache_hits - a.cache_hits;
	t->looks = t->hits + b.cache_misses - a.cache_misses +
		   b.cache_uncached - a.cache_uncached;
	return ret;
}

static int user_open(struct user *u)
{
	int ret = 0;

	u->pattern = PATTERNS;
	if (u->w->how != NOT)
		ret = sb_cache_open(&u->c, &u->w->set);
	bench_pin_self(u->cpu);
	if (!ret)
		ret = sb_pieces_map(&u->fixed, FIXED, FIXED_LEN, true);
	if (!ret)
		ret = sb_pieces_map(&u->halo, (size_t)HALO * HALO_SETS,
				    HALO_LEN, true);
	return ret ? ret : sb_pieces_map(&u->array, 1, ARRAY_LEN, true);
}

static int user_main(int fd, void *arg)
{
	struct user *u = arg;
	struct turn t;
	int ret = 0;
	bool open = false;

	while (!ret && !sb_proc_get(fd, &t, sizeof(t))) {
		if (!open)
			ret = user_open(u);
		open = true;
		t.ret = ret ? ret : turn_do(u, &t);
		ret = sb_proc_put(fd, &t, sizeof(t));
	}
	sb_cache_close(&u->c);
	return ret;
}

/* ---- the one that asks ---- */

struct sb_cache_users {
	struct sb_proc proc[WAYS]; /* none for ways that are left out */
	struct user user;	   /* of the process that is started */
};

struct sb_cache_users *sb_cache_users_start(const struct sb_options *o)
{
	struct sb_cache_users *u = calloc(1, sizeof(*u));
	int ret = u ? 0 : -ENOMEM;

	for (int i = 0; i < WAYS && !ret; i++) {
		if (o->quick && !ways[i].quick)
			continue;
		u->user.w = &ways[i];
		u->user.cpu = o->pin.cpu[0];
		ret = sb_proc_start(&u->proc[i], user_main, &u->user, -1);
	}
	if (!ret)
		return u;
	sb_fail("processes", ret);
	sb_cache_users_end(u);
	return NULL;
}

int sb_cache_users_end(struct sb_cache_users *u)
{
	int ret = 0, one;

	for (int i = 0; u && i < WAYS; i++) {
		one = sb_proc_end(&u->proc[i]);
		ret = ret ? ret : one;
	}
	free(u);
	return ret;
}

struct ask {
	struct sb_proc *proc; /* of whom */
	enum pattern pattern; /* what */
	struct sb_set set[2]; /* ns of a message, hits in percent */
};

static int turn_ask(struct sb_proc *proc, struct turn *t)
{
	int ret = sb_proc_put(proc->fd, t, sizeof(*t));

	if (!ret)
		ret = sb_proc_get(proc->fd, t, sizeof(*t));
	return ret ? sb_fail("a process", ret) : t->ret;
}

static int ask_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct ask *a = ctx;
	struct turn t = { .pattern = a->pattern, .n = n * AT_ONCE };
	int ret = turn_ask(a->proc, &t);

	if (ret)
		return ret;
	sb_set_add(&set[0], (double)t.ns / (double)t.n);
	if (t.looks)
		sb_set_add(&set[1], 100.0 * (double)t.hits / (double)t.looks);
	return t.ret;
}

/* ---- rows ---- */

/* As in keycache: min is the lowest, and 99 of 100 samples reach p99. */
static int rate_row(struct sb_out *out, struct ask *a, const struct way *w)
{
	struct sb_set *set = &a->set[1];
	struct sb_row row = { .unit = "%",
			      .floor = NAN,
			      .ratio = NAN,
			      .median = sb_set_quantile(set, 0.5),
			      .p99 = sb_set_quantile(set, 0.01),
			      .min = sb_set_quantile(set, 0),
			      .n = set->n };

	if (!set->n)
		return 0;
	snprintf(row.name, sizeof(row.name), "%s, %s, hits",
		 pattern_name[a->pattern], w->name);
	if (w->how == ACQUIRE) {
		row.point.x = w->entries;
		snprintf(row.point.panel, SB_NAME_MAX, "%s",
			 a->pattern < PAT_SMALL ? "buffers that stay"
						: "malloc for each message");
		snprintf(row.point.series, SB_NAME_MAX, "%s",
			 pattern_name[a->pattern]);
	}
	return sb_out_row(out, &row);
}

static int rows(struct sb_out *out, struct ask *a, const struct way *w,
		struct ask *bare)
{
	struct sb_case c = { .unit = &sb_ns,
			     .set = &a->set[0],
			     .floor = &bare->set[0],
			     .of = "the program alone" };
	int ret;

	snprintf(c.name, sizeof(c.name), "%s, %s, a message",
		 pattern_name[a->pattern], w->name);
	ret = sb_out_case(out, &c);
	return ret ? ret : rate_row(out, a, w);
}

/* All of them have begun it before the first is timed. */
static int all_begin(struct sb_cache_users *u, enum pattern pattern)
{
	struct turn t = { .pattern = pattern };
	int ret = 0;

	for (int i = 0; i < WAYS && !ret; i++)
		if (u->proc[i].pid)
			ret = turn_ask(&u->proc[i], &t);
	return ret;
}

static int pattern_run(const struct sb_options *o, struct sb_out *out,
		       struct sb_cache_users *u, enum pattern pattern)
{
	static struct ask ask[WAYS];
	struct sb_task task[WAYS];
	size_t n = 0;
	int ret;

	memset(ask, 0, sizeof(ask));
	for (int i = 0; i < WAYS; i++) {
		ask[i].proc = &u->proc[i];
		ask[i].pattern = pattern;
		if (u->proc[i].pid)
			task[n++] = (struct sb_task){ .run = ask_run,
						      .ctx = &ask[i],
						      .set = ask[i].set,
						      .laps = 2,
						      .block_ns = BLOCK_NS };
	}
	ret = all_begin(u, pattern);
	if (!ret)
		ret = sb_measure(&o->plan, task, n);
	for (int i = UNCACHED; i < WAYS && !ret; i++)
		if (u->proc[i].pid)
			ret = rows(out, &ask[i], &ways[i], &ask[BARE]);
	return ret;
}

int sb_cache_use(const struct sb_options *o, struct sb_out *out,
		 struct sb_cache_users *u)
{
	int ret = 0;

	for (int p = 0; p < PATTERNS && !ret; p++)
		ret = pattern_run(o, out, u, (enum pattern)p);
	return ret;
}
