/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench cache: what is not a hit. Misses and their parts, evictions,
 * invalidations; and registrations with the cache in front of them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/clock.h"
#include "bench/pin.h"
#include "bench/sb_cache.h"
#include "shm/pin.h"
#include "shm/watch.h"

enum {
	ROUND = 64,	 /* pieces of a round */
	LIMIT = 64,	 /* entries of the cache that evicts */
	MORE_NS = 2000,	 /* a miss may take so much more */
	BIG = 256 << 10, /* bytes of the second size */
};

static const size_t lens[] = { SB_PAGE, BIG };
enum { LENS = sizeof(lens) / sizeof(*lens) };

/* Domains, by their settings. */
enum side {
	OFF,	  /* no cache */
	OFF_BARE, /* likewise, and nothing is pinned */
	LOCAL,	  /* the cache is for what peers cannot use */
	ALL,	  /* for all */
	ALL_BARE, /* likewise, and nothing is pinned */
	KEEP,	  /* for all; what is pinned stays so */
	SMALL,	  /* of LIMIT entries */
	SIDES
};

static const struct sb_cache_set sets[SIDES] = {
	[OFF] = { .value = { [SB_CACHE_MODE] = "off",
			     [SB_CACHE_PIN] = "try" } },
	[OFF_BARE] = { .value = { [SB_CACHE_MODE] = "off",
				  [SB_CACHE_PIN] = "off" } },
	[LOCAL] = { .value = { [SB_CACHE_MODE] = "local",
			       [SB_CACHE_PIN] = "try" } },
	[ALL] = { .value = { [SB_CACHE_MODE] = "all",
			     [SB_CACHE_PIN] = "try" } },
	[ALL_BARE] = { .value = { [SB_CACHE_MODE] = "all",
				  [SB_CACHE_PIN] = "off" } },
	[KEEP] = { .value = { [SB_CACHE_MODE] = "all",
			      [SB_CACHE_KEEP] = "keep",
			      [SB_CACHE_PIN] = "try" } },
	[SMALL] = { .value = { [SB_CACHE_MODE] = "all",
			       [SB_CACHE_ENTRIES] = "64",
			       [SB_CACHE_PIN] = "off" } },
};

_Static_assert(LIMIT == 64, "as the text above");

/* What is timed. */
enum lap {
	MISS,	    /* acquire of what is not there, in a watched mapping */
	FIRST,	    /* likewise, the first one of a mapping */
	RELEASE,    /* of it */
	FLUSH,	    /* of all, for each */
	REG,	    /* floor: fi_mr_reg without cache and pin */
	CLOSE,	    /* floor: its fi_close */
	LOOK,	    /* part: the mapping is looked at */
	WATCH,	    /* part: UFFDIO_REGISTER */
	ASK,	    /* part: UFFDIO_CONTINUE, is that still true */
	UNWATCH,    /* part: UFFDIO_UNREGISTER */
	EVICT,	    /* acquire and release, each evicts another */
	UNMAP,	    /* munmap of what is cached */
	UNMAP_0,    /* floor: of what is not */
	DISCARD,    /* madvise(MADV_DONTNEED) of what is cached */
	DISCARD_0,  /* floor: of what is not */
	MISS_AGAIN, /* acquire after that */
	LAPS
};

struct costs {
	const struct sb_options *o;	  /* how long */
	struct sb_out *out;		  /* where to */
	struct sb_cache side[SIDES];	  /* the domains */
	struct sb_pieces m;		  /* memory of a round */
	struct sb_pieces small;		  /* likewise, of SMALL */
	struct sb_pieces given_up;	  /* cached */
	struct sb_pieces parts;		  /* watched here, not by the cache */
	size_t len;			  /* bytes of each */
	struct sb_set set[LAPS];	  /* times */
	struct fid_mr *mr[ROUND];	  /* regions of a round */
	size_t next;			  /* piece of SMALL */
	struct sb_set reg[2 * SIDES + 1]; /* times of registrations */
};

/* ---- rounds ---- */

struct timer {
	struct sb_set *set;
	uint64_t begin;
};

static struct timer lap_begin(struct sb_set *set)
{
	return (struct timer){ set, bench_clock_ns() };
}

static int lap_end(struct timer t, const char *what, int ret)
{
	sb_set_add(t.set, (double)(bench_clock_ns() - t.begin));
	return ret ? sb_fail(what, ret) : 0;
}

static int acquire(struct costs *k, enum side side, char *p, size_t i)
{
	struct sb_cache *c = &k->side[side];

	return c->ops->acquire(&c->s.domain->fid, p, k->len, SB_REMOTE,
			       &k->mr[i]);
}

static int miss_round(struct costs *k)
{
	struct sb_cache *c = &k->side[ALL_BARE];
	uint64_t begin;
	int ret = 0;

	for (size_t i = 0; i < ROUND && !ret; i++) {
		struct timer t = lap_begin(&k->set[i ? MISS : FIRST]);

		ret = lap_end(t, "acquire",
			      acquire(k, ALL_BARE, sb_piece(&k->m, i), i));
	}
	for (size_t i = 0; i < ROUND && !ret; i++) {
		struct timer t = lap_begin(&k->set[RELEASE]);

		ret = lap_end(t, "release", c->ops->release(k->mr[i]));
	}
	if (ret)
		return ret;
	begin = bench_clock_ns();
	ret = c->ops->flush(&c->s.domain->fid);
	sb_set_add(&k->set[FLUSH], (double)(bench_clock_ns() - begin) / ROUND);
	return ret ? sb_fail("flush", ret) : 0;
}

static int reg_round(struct costs *k)
{
	struct fid_domain *d = k->side[OFF_BARE].s.domain;
	int ret = 0;

	for (size_t i = 0; i < ROUND && !ret; i++) {
		struct timer t = lap_begin(&k->set[REG]);

		ret = lap_end(t, "fi_mr_reg",
			      fi_mr_reg(d, sb_piece(&k->m, i), k->len,
					SB_REMOTE, 0, 0, 0, &k->mr[i], NULL));
	}
	for (size_t i = 0; i < ROUND && !ret; i++) {
		struct timer t = lap_begin(&k->set[CLOSE]);

		ret = lap_end(t, "fi_close", fi_close(&k->mr[i]->fid));
	}
	return ret;
}

/* By the functions that the provider has for it. */
static int part_do(struct costs *k, enum lap lap, char *p)
{
	uint64_t at = (uintptr_t)p;

	switch (lap) {
	case LOOK:
		return rnic_pin_check(p, k->len, PROT_READ | PROT_WRITE);
	case WATCH:
		return rnic_watch_arm(at, k->len);
	case ASK:
		return rnic_watch_check(at, k->len);
	default:
		rnic_watch_disarm(at, k->len);
		return 0;
	}
}

static int parts_round(struct costs *k)
{
	struct sb_pieces *m = &k->parts;
	int ret = 0;

	for (int lap = LOOK; lap <= UNWATCH; lap++)
		for (size_t i = 0; i < ROUND && !ret; i++) {
			struct timer t = lap_begin(&k->set[lap]);

			ret = lap_end(
				t, "a part of a miss",
				part_do(k, (enum lap)lap, sb_piece(m, i)));
		}
	return ret;
}

static int evict_round(struct costs *k)
{
	int ret = 0;

	for (size_t i = 0; i < ROUND && !ret; i++) {
		struct timer t = lap_begin(&k->set[EVICT]);

		ret = lap_end(t, "acquire",
			      sb_cache_touch(&k->side[SMALL],
					     sb_piece(&k->small, k->next),
					     k->len, SB_REMOTE));
		k->next = (k->next + 1) % k->small.n;
	}
	return ret;
}

/* ---- invalidations ---- */

static int unmap_one(struct costs *k, bool cached)
{
	struct sb_pieces m;
	int ret = sb_pieces_map(&m, 1, k->len, true);
	struct timer t;

	if (!ret && cached)
		ret = sb_cache_touch(&k->side[ALL_BARE], m.p, k->len,
				     SB_REMOTE);
	t = lap_begin(&k->set[cached ? UNMAP : UNMAP_0]);
	if (m.p && munmap(m.p, k->len))
		ret = -errno;
	ret = lap_end(t, "munmap", ret);
	sb_pieces_unmap(&m);
	return ret;
}

static int discard_one(struct costs *k, bool cached)
{
	/* the other one is in a mapping where nothing is cached now */
	char *p = sb_piece(cached ? &k->given_up : &k->m, 0);
	struct timer t;
	int ret = 0;

	memset(p, 1, k->len);
	t = lap_begin(&k->set[MISS_AGAIN]);
	if (cached)
		ret = lap_end(t, "acquire",
			      sb_cache_touch(&k->side[ALL_BARE], p, k->len,
					     SB_REMOTE));
	t = lap_begin(&k->set[cached ? DISCARD : DISCARD_0]);
	if (!ret && madvise(p, k->len, MADV_DONTNEED))
		ret = -errno;
	return lap_end(t, "madvise", ret);
}

static int gone_round(struct costs *k)
{
	int ret = 0;

	for (int cached = 0; cached < 2 && !ret; cached++) {
		ret = unmap_one(k, cached);
		if (!ret)
			ret = discard_one(k, cached);
	}
	return ret;
}

/* ---- rows ---- */

static int (*const rounds[])(struct costs *k) = { miss_round, reg_round,
						  parts_round, evict_round,
						  gone_round };
enum { ROUNDS = sizeof(rounds) / sizeof(*rounds) };

/* Whose sets each of them fills, the first of them. */
static const enum lap first[ROUNDS] = { MISS, REG, LOOK, EVICT, UNMAP };

struct round {
	struct costs *k;
	int (*fn)(struct costs *k);
};

static int round_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct round *r = ctx;
	int ret = 0;

	(void)set;
	for (uint64_t i = 0; i < n && !ret; i++)
		ret = r->fn(r->k);
	return ret;
}

static const struct {
	const char *name;
	enum lap floor; /* MISS: none */
	const char *of;
} laps[LAPS] = {
	[MISS] = { "miss: acquire", REG, "fi_mr_reg, no cache, no pin" },
	[FIRST] = { "first miss of a mapping: acquire", REG,
		    "fi_mr_reg, no cache, no pin" },
	[RELEASE] = { "miss: release", MISS, NULL },
	[FLUSH] = { "miss: flush, each", CLOSE, "its fi_close" },
	[LOOK] = { "part of both: look at the mapping", MISS, NULL },
	[WATCH] = { "part of a miss: UFFDIO_REGISTER", MISS, NULL },
	[ASK] = { "part of a miss: UFFDIO_CONTINUE", MISS, NULL },
	[UNWATCH] = { "part of a flush: UFFDIO_UNREGISTER", MISS, NULL },
	[EVICT] = { "miss that evicts: acquire, release", MISS, "the miss" },
	[UNMAP] = { "munmap of cached", UNMAP_0, "munmap" },
	[DISCARD] = { "madvise of cached", DISCARD_0, "madvise" },
	[MISS_AGAIN] = { "miss after madvise: acquire, release", MISS,
			 "the miss" },
};

static int lap_row(struct costs *k, enum lap lap)
{
	struct sb_case c = { .unit = lap >= UNMAP ? &sb_us : &sb_ns,
			     .set = &k->set[lap],
			     .of = laps[lap].of };
	char size[SB_NAME_MAX];

	if (c.of)
		c.floor = &k->set[laps[lap].floor];
	if (lap == MISS)
		c.most = sb_set_quantile(c.floor, 0.5) + MORE_NS;
	snprintf(c.name, sizeof(c.name), "%.8s %s", sb_size_name(size, k->len),
		 laps[lap].name);
	return sb_out_case(k->out, &c);
}

static int rounds_run(struct costs *k)
{
	struct sb_task task[ROUNDS];
	struct round r[ROUNDS];
	int ret;

	memset(k->set, 0, sizeof(k->set));
	for (int i = 0; i < ROUNDS; i++) {
		int end = i + 1 < ROUNDS ? (int)first[i + 1] : LAPS;

		r[i] = (struct round){ k, rounds[i] };
		task[i] = (struct sb_task){
			.run = round_run,
			.ctx = &r[i],
			.set = &k->set[first[i]],
			.laps = (unsigned int)(end - (int)first[i]),
		};
	}
	ret = sb_measure(&k->o->plan, task, ROUNDS);
	for (int lap = 0; lap < LAPS && !ret; lap++)
		if (laps[lap].name)
			ret = lap_row(k, (enum lap)lap);
	return ret;
}

/* ---- registrations ---- */

/* Registering and closing, or mlock and munlock. */
struct reg {
	struct costs *k;
	enum side side;
	uint64_t access;
	const char *name;
	size_t i; /* its piece, and its set */
	size_t floor;
};

static int reg_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct reg *r = ctx;
	char *p = sb_piece(&r->k->m, r->i);
	int ret = 0;

	(void)set;
	for (uint64_t i = 0; i < n && !ret; i++) {
		if (r->name)
			ret = sb_cache_reg(&r->k->side[r->side], p, r->k->len,
					   r->access);
		else if (mlock(p, r->k->len) || munlock(p, r->k->len))
			ret = sb_fail("mlock", -errno);
	}
	return ret;
}

static int reg_row(struct costs *k, const struct reg *r)
{
	struct sb_case c = {
		.unit = &sb_us,
		.set = &k->reg[r->i],
		.floor = r->floor ? &k->reg[r->floor - 1] : NULL,
		.of = r->floor == 1 ? "mlock + munlock" : "no cache",
	};
	char size[SB_NAME_MAX];

	if (!r->name)
		return 0;
	snprintf(c.name, sizeof(c.name), "%.8s fi_mr_reg + fi_close, %s",
		 sb_size_name(size, k->len), r->name);
	return sb_out_case(k->out, &c);
}

static int regs_run(struct costs *k)
{
	/* floor: the number of the case + 1 */
	struct reg r[] = {
		{ k, OFF, 0, NULL, 0, 0 },
		{ k, OFF, SB_REMOTE, "no cache", 1, 1 },
		{ k, OFF, SB_CACHE_LOCAL, "local, no cache", 2, 1 },
		{ k, OFF_BARE, SB_REMOTE, "no cache, no pin", 3, 0 },
		{ k, LOCAL, SB_CACHE_LOCAL, "local, cached", 4, 3 },
		{ k, ALL, SB_REMOTE, "cached", 5, 2 },
		{ k, ALL_BARE, SB_REMOTE, "cached, no pin", 6, 4 },
		{ k, KEEP, SB_REMOTE, "cached, pin kept", 7, 2 },
	};
	enum { REGS = sizeof(r) / sizeof(*r) };
	struct sb_task task[REGS];
	int from = mlock(k->m.p, k->len) ? 1 : 0, ret;

	memset(k->reg, 0, sizeof(k->reg));
	munlock(k->m.p, k->len);
	if (from)
		sb_out_note(k->out, "mlock is refused: nothing is pinned");
	for (int i = 0; i < REGS; i++)
		task[i] = (struct sb_task){ .run = reg_run,
					    .ctx = &r[i],
					    .set = &k->reg[i] };
	ret = sb_measure(&k->o->plan, task + from, (size_t)(REGS - from));
	for (int i = 0; i < REGS && !ret; i++)
		ret = reg_row(k, &r[i]);
	/* what is kept lies in memory that goes now */
	for (int i = 0; i < SIDES; i++)
		k->side[i].ops->flush(&k->side[i].s.domain->fid);
	return ret;
}

/* ---- all ---- */

static int size_run(struct costs *k)
{
	int ret = sb_pieces_map(&k->m, ROUND, k->len, true);

	if (!ret)
		ret = sb_pieces_map(&k->small, 2 * LIMIT, k->len, true);
	if (!ret)
		ret = sb_pieces_map(&k->given_up, 2, k->len, true);
	if (!ret)
		ret = sb_pieces_map(&k->parts, ROUND, k->len, true);
	if (!ret && k->side[ALL_BARE].watches)
		ret = rounds_run(k);
	if (!ret)
		ret = regs_run(k);
	sb_pieces_unmap(&k->parts);
	sb_pieces_unmap(&k->given_up);
	sb_pieces_unmap(&k->small);
	sb_pieces_unmap(&k->m);
	return ret;
}

int sb_cache_costs(const struct sb_options *o, struct sb_out *out)
{
	static struct costs k;
	int ret = 0;

	k.o = o;
	k.out = out;
	for (int i = 0; i < SIDES && !ret; i++)
		ret = sb_cache_open(&k.side[i], &sets[i]);
	bench_pin_self(o->pin.cpu[0]);
	if (!ret && k.side[ALL_BARE].watches)
		ret = rnic_watch_open();
	else if (!ret)
		sb_out_note(out, "misses: left out, private memory cannot be "
				 "watched here");
	for (int i = 0; i < LENS && ret >= 0; i++) {
		k.len = lens[i];
		ret = size_run(&k);
	}
	rnic_watch_close();
	for (int i = 0; i < SIDES; i++)
		sb_cache_close(&k.side[i]);
	return ret;
}
