/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench keycache: how often a key cache hits, by capacity, ways, policy
 * and pattern, in a simulation by the device's own code; and what a lookup in
 * the device then takes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/pin.h"
#include "bench/sb_device.h"
#include "bench/sb_floor.h"
#include "bench/sb_pattern.h"
#include "bench/sb_subs.h"

enum {
	PICKS = 1 << 18,       /* lookups of a stream */
	PICKS_QUICK = 1 << 16, /* likewise */
	PICKS_LEAST = 1 << 12, /* with hardly any time */
	BLOCKS = 64,	       /* samples of a stream */
	WAYS = 8,	       /* where policies are compared */
	POLICIES = RNIC_KEYCACHE_POLICIES,
};

/* Capacities; a lookup costs a copy of each. */
static const uint32_t capacity[] = { 64,   128,	 256,  512,   1024,
				     2048, 4096, 8192, 16384, 32768 };
enum { CAPACITIES = sizeof(capacity) / sizeof(*capacity) };

static const uint32_t ways[] = { 1, 2, 4, 16, 64 };
enum {
	WAYSES = sizeof(ways) / sizeof(*ways),
	TIMED = POLICIES + WAYSES, /* caches whose times take turns */
};

struct cache {
	const struct sb_options *o;   /* how long */
	struct sb_out *out;	      /* where to */
	uint32_t *pick;		      /* a stream */
	size_t n;		      /* its length */
	uint64_t word;		      /* of the floor */
	struct sb_device d;	      /* for times */
	uint64_t *key;		      /* a stream of its keys */
	struct sb_set set[TIMED + 1]; /* times, then the floor */
};

/* ---- hit rates ---- */

/* The whole stream; lookup i counts for sample i % BLOCKS. */
static void stream_run(struct rnic_keycache *k, const struct cache *c,
		       uint32_t *hits)
{
	for (size_t i = 0; i < c->n; i++)
		hits[i % BLOCKS] +=
			rnic_keycache_simulate(k, rnic_key_make(c->pick[i], 1));
}

/* The stream once to fill the cache, then for the figures, in percent. */
static int simulate(const struct cache *c, const struct rnic_keycache_cfg *cfg,
		    struct sb_set *set)
{
	void *mem = aligned_alloc(RNIC_PAGE, rnic_keycache_bytes(cfg));
	uint32_t hits[BLOCKS] = { 0 };
	struct rnic_keycache k;
	int ret;

	if (!mem)
		return -ENOMEM;
	memset(mem, 0, rnic_keycache_bytes(cfg));
	memset(set, 0, sizeof(*set));
	ret = rnic_keycache_init(&k, mem, cfg);
	if (ret) {
		free(mem);
		return sb_device_fail("rnic_keycache_init", ret);
	}
	stream_run(&k, c, hits);
	memset(hits, 0, sizeof(hits));
	stream_run(&k, c, hits);
	for (int i = 0; i < BLOCKS; i++)
		sb_set_add(set, 100.0 * hits[i] * BLOCKS / (double)c->n);
	rnic_keycache_fini(&k);
	free(mem);
	return 0;
}

/* A share is no time: min is the lowest, and 99 of 100 samples reach p99. */
static int rate_row(struct cache *c, enum sb_pattern p,
		    const struct rnic_keycache_cfg *cfg, bool by_ways)
{
	static struct sb_set set;
	struct sb_row row = { .unit = "%", .floor = NAN, .ratio = NAN };
	const char *policy = sb_policy_name[cfg->policy];
	int ret = simulate(c, cfg, &set);

	row.median = sb_set_quantile(&set, 0.5);
	row.p99 = sb_set_quantile(&set, 0.01);
	row.min = sb_set_quantile(&set, 0);
	row.n = set.n;
	row.point.x = cfg->entries;
	snprintf(row.name, sizeof(row.name), "%s, %u entries, %u way%s, %s",
		 sb_pattern_name(p), cfg->entries, cfg->ways,
		 cfg->ways == 1 ? "" : "s", policy);
	snprintf(row.point.panel, SB_NAME_MAX, "%s, %s", sb_pattern_name(p),
		 by_ways ? "lru, by ways" : "8 ways, by policy");
	if (by_ways)
		snprintf(row.point.series, SB_NAME_MAX, "%u", cfg->ways);
	else
		snprintf(row.point.series, SB_NAME_MAX, "%s", policy);
	return ret ? ret : sb_out_row(c->out, &row);
}

/* All policies but none, which never hits, with the same ways. */
static int policies_run(struct cache *c, enum sb_pattern p, uint32_t entries)
{
	int ret = 0;

	for (int i = 0; i < POLICIES && !ret; i++) {
		const struct rnic_keycache_cfg cfg = {
			.entries = entries,
			.ways = WAYS,
			.policy = (enum rnic_keycache_policy)i,
			.seed = 1,
		};

		if (i != RNIC_KEYCACHE_NONE)
			ret = rate_row(c, p, &cfg, false);
	}
	return ret;
}

static int ways_run(struct cache *c, enum sb_pattern p, uint32_t entries)
{
	int ret = 0;

	for (int i = 0; i < WAYSES && !ret; i++) {
		const struct rnic_keycache_cfg cfg = {
			.entries = entries,
			.ways = ways[i],
			.policy = RNIC_KEYCACHE_LRU,
		};

		ret = rate_row(c, p, &cfg, true);
	}
	return ret;
}

/* Capacities that are shown: a stream must be much longer. */
static bool shown(const struct cache *c, int i)
{
	return capacity[i] <= c->n / 8 && !(c->o->quick && i % 2);
}

static int rates_run(struct cache *c, bool by_ways)
{
	int ret = 0;

	for (int p = 0; p < SB_PATTERNS; p++)
		for (int i = 0; i < CAPACITIES && !ret; i++) {
			if (!shown(c, i))
				continue;
			sb_pattern_fill((enum sb_pattern)p, capacity[i],
					c->pick, c->n);
			ret = by_ways ? ways_run(c, (enum sb_pattern)p,
						 capacity[i])
				      : policies_run(c, (enum sb_pattern)p,
						     capacity[i]);
		}
	return ret;
}

/* ---- times ---- */

/* A reader and the stream that it looks up. */
struct walk {
	struct sb_reader rd;
	const struct cache *c;
	uint64_t next; /* index of the next key */
};

static int walk_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct walk *w = ctx;
	int ret = 0;

	(void)set;
	for (uint64_t i = 0; i < n && !ret; i++)
		ret = sb_reader_look(&w->rd, w->c->key[w->next++ % w->c->n]);
	return ret ? sb_device_fail("rnic_resolve", ret) : 0;
}

/* The cache of the i-th of TIMED: by policy, then by ways. */
static struct rnic_keycache_cfg timed_cfg(int i, uint32_t entries)
{
	struct rnic_keycache_cfg cfg = { .entries = entries, .ways = WAYS };

	if (i < POLICIES)
		cfg.policy = (enum rnic_keycache_policy)i;
	else
		cfg.policy = RNIC_KEYCACHE_LRU;
	if (i >= POLICIES)
		cfg.ways = ways[i - POLICIES];
	return cfg;
}

static int time_row(struct cache *c, enum sb_pattern p, uint32_t entries, int i)
{
	const struct rnic_keycache_cfg cfg = timed_cfg(i, entries);
	const char *policy = sb_policy_name[cfg.policy];
	struct sb_case row = { .unit = &sb_ns,
			       .set = &c->set[i],
			       .floor = &c->set[TIMED],
			       .of = "locked add",
			       .point = { .x = entries } };

	if (i < POLICIES)
		snprintf(row.name, sizeof(row.name),
			 "%s, %u entries, %s, lookup", sb_pattern_name(p),
			 entries, policy);
	else
		snprintf(row.name, sizeof(row.name),
			 "%s, %u entries, %u way%s, lookup", sb_pattern_name(p),
			 entries, cfg.ways, cfg.ways == 1 ? "" : "s");
	snprintf(row.point.panel, SB_NAME_MAX, "%s, time, %s",
		 sb_pattern_name(p),
		 i < POLICIES ? "8 ways, by policy" : "lru, by ways");
	if (i < POLICIES)
		snprintf(row.point.series, SB_NAME_MAX, "%s", policy);
	else
		snprintf(row.point.series, SB_NAME_MAX, "%u", cfg.ways);
	return sb_out_case(c->out, &row);
}

/* Each of TIMED has a reader, with an empty cache. */
static int walks_open(struct cache *c, struct walk *w, uint32_t entries)
{
	int ret = 0;

	for (int i = 0; i < TIMED && !ret; i++) {
		const struct rnic_keycache_cfg cfg = timed_cfg(i, entries);

		w[i] = (struct walk){ .c = c };
		ret = sb_reader_open(&w[i].rd, &c->d.addr, &cfg);
	}
	return ret;
}

/* All take turns on the same stream. */
static int times_of(struct cache *c, struct walk *w, enum sb_pattern p,
		    uint32_t entries)
{
	struct sb_task task[TIMED + 1];
	int ret = walks_open(c, w, entries);

	sb_pattern_fill(p, entries, c->pick, c->n);
	for (size_t i = 0; i < c->n; i++)
		c->key[i] = c->d.key[c->pick[i]];
	for (int i = 0; i < TIMED; i++)
		task[i] = (struct sb_task){ .run = walk_run,
					    .ctx = &w[i],
					    .set = &c->set[i] };
	task[TIMED] = (struct sb_task){ .run = sb_floor_add,
					.ctx = &c->word,
					.set = &c->set[TIMED] };
	if (!ret)
		ret = sb_measure(&c->o->plan, task, TIMED + 1);
	for (int i = 0; i < TIMED; i++)
		sb_reader_close(&w[i].rd);
	for (int i = 0; i < TIMED && !ret; i++)
		ret = time_row(c, p, entries, i);
	return ret;
}

static int times_run(struct cache *c)
{
	struct walk *w = calloc(TIMED, sizeof(*w));
	int ret = w ? sb_device_open(&c->d, SB_PATTERN_KEYS) : -ENOMEM;

	for (int p = 0; p < SB_PATTERNS; p++)
		for (int i = 0; i < CAPACITIES && !ret; i++)
			if (shown(c, i))
				ret = times_of(c, w, (enum sb_pattern)p,
					       capacity[i]);
	sb_device_close(&c->d);
	free(w);
	return ret;
}

static int keycache_run(const struct sb_options *o, struct sb_out *out)
{
	struct cache *c = calloc(1, sizeof(*c));
	int ret = c ? 0 : -ENOMEM;

	if (ret)
		return ret;
	bench_pin_self(o->pin.cpu[0]);
	c->o = o;
	c->out = out;
	c->n = o->quick ? PICKS_QUICK : PICKS;
	if (o->plan.seconds < 0.02)
		c->n = PICKS_LEAST;
	c->pick = calloc(c->n, sizeof(*c->pick));
	c->key = calloc(c->n, sizeof(*c->key));
	if (!c->pick || !c->key)
		ret = -ENOMEM;
	if (!ret)
		ret = rates_run(c, false);
	if (!ret)
		ret = rates_run(c, true);
	if (!ret)
		ret = times_run(c);
	free(c->key);
	free(c->pick);
	free(c);
	return ret;
}

const struct sb_bench sb_bench_keycache = {
	.name = "keycache",
	.about = "how often a key cache hits",
	.help = "By capacity, policy (8 ways) and ways (LRU), for streams of "
		"keys: uniform (4096\nkeys), zipf (65536 keys, the i-th as often "
		"as 1/i), scan (zipf, and every second\nlookup the next of all "
		"keys), loop (9/8 of the capacity, in turn). Percent of\n"
		"lookups in a simulation by the device's own code, so that noise "
		"is none; the\nfigures of blocks of a stream. Then the time of a "
		"lookup in a device with such a\ncache; floor: a locked add. "
		"--plot draws the hit rates and the times.\n",
	.axes = { .title = "Hit rate of a key cache, time of a lookup",
		  .x = "entries",
		  .y = "percent",
		  .log_x = true,
		  .y_step = 25,
		  .y_most = 100,
		  .y_unit = "%" },
	.run = keycache_run,
};
