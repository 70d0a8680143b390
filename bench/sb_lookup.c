/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench lookup: what it costs to find memory by its key. The device's
 * own functions, without a libfabric call around them.
 */
#include "bench/sb_lookup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/pin.h"
#include "bench/sb_device.h"
#include "bench/sb_floor.h"
#include "bench/sb_pattern.h"
#include "bench/sb_subs.h"

enum {
	POLICIES = RNIC_KEYCACHE_POLICIES,
	PICKS = 1 << 18,      /* keys of a row, then again */
	KEYS_QUICK = 100000,  /* largest working set with --quick */
	KEYS_MOST = 1000000,  /* and without */
	KEYS_SPREAD = 128,    /* fit into the cache */
	STRIDE_MISS = 4093,   /* keys that are never there any more */
	LIMIT_HIT_NS = 10,    /* of one key, again and again */
	TASKS = POLICIES + 1, /* and the floor */
};

/* A reader and the keys that it looks up, again and again. */
struct walk {
	struct sb_reader rd;  /* who */
	const uint64_t *pick; /* PICKS keys */
	uint64_t next;	      /* index of the next one */
};

/* ---- tasks ---- */

static int walk_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct walk *w = ctx;
	int ret = 0;

	(void)set;
	for (uint64_t i = 0; i < n && !ret; i++)
		ret = sb_reader_look(&w->rd, w->pick[w->next++ % PICKS]);
	return ret ? sb_device_fail("rnic_resolve", ret) : 0;
}

static int hot_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct walk *w = ctx;
	int ret = 0;

	(void)set;
	for (uint64_t i = 0; i < n && !ret; i++)
		ret = sb_reader_look(&w->rd, w->pick[0]);
	return ret ? sb_device_fail("rnic_resolve", ret) : 0;
}

/* ---- which keys ---- */

/* Any of the first @n keys each time. */
static void picks_uniform(uint64_t *pick, const struct sb_device *d, uint32_t n)
{
	uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

	for (uint32_t i = 0; i < PICKS; i++)
		pick[i] = d->key[sb_random(&state) % n];
}

/* All keys in turn, far from each other. */
static void picks_missing(uint64_t *pick, const struct sb_device *d)
{
	for (uint64_t i = 0; i < PICKS; i++)
		pick[i] = d->key[i * STRIDE_MISS % d->keys];
}

/* The same of keys that the user chose. */
static void picks_named(uint64_t *pick, const struct sb_device *d)
{
	for (uint64_t i = 0; i < PICKS; i++)
		pick[i] = i * STRIDE_MISS % d->named + 1;
}

/* ---- rows ---- */

struct rows {
	const struct sb_options *o; /* how long */
	struct sb_out *out;	    /* where to */
	struct sb_device *d;	    /* whose keys */
	struct walk w[POLICIES];    /* a reader for each policy */
	struct walk named;	    /* a reader of keys of the user's */
	uint64_t *pick;		    /* PICKS keys */
	uint64_t *named_pick;	    /* likewise, of the user's */
	uint64_t word;		    /* of the floor */
	struct sb_set set[TASKS];   /* by policy, then the floor */
};

/* Each policy has a reader, whose cache is empty. */
static int readers_open(struct rows *r)
{
	int ret = 0;

	for (int i = 0; i < POLICIES && !ret; i++) {
		const struct rnic_keycache_cfg cfg = {
			.policy = (enum rnic_keycache_policy)i
		};

		r->w[i].pick = r->pick;
		ret = sb_reader_open(&r->w[i].rd, &r->d->addr, &cfg);
	}
	return ret;
}

static void readers_close(struct rows *r)
{
	for (int i = 0; i < POLICIES; i++)
		sb_reader_close(&r->w[i].rd);
}

static struct sb_task task_of(struct rows *r, int i)
{
	return (struct sb_task){ .run = walk_run,
				 .ctx = &r->w[i],
				 .set = &r->set[i] };
}

/* One row of the reader with the policy that a device has by itself. */
static int one_row(struct rows *r, const char *name, bool hot, double most)
{
	struct sb_task task[2];
	struct sb_case c = { .unit = &sb_ns,
			     .set = &r->set[0],
			     .floor = &r->set[1],
			     .of = "locked add",
			     .most = most };
	int ret;

	task[0] = task_of(r, RNIC_KEYCACHE_CLOCK);
	task[0].set = &r->set[0];
	if (hot)
		task[0].run = hot_run;
	task[1] = (struct sb_task){ .run = sb_floor_add,
				    .ctx = &r->word,
				    .set = &r->set[1] };
	ret = sb_measure(&r->o->plan, task, 2);
	snprintf(c.name, sizeof(c.name), "%s", name);
	return ret ? ret : sb_out_case(r->out, &c);
}

static int plain_rows(struct rows *r)
{
	int ret = readers_open(r);

	picks_uniform(r->pick, r->d, KEYS_SPREAD);
	if (!ret)
		ret = one_row(r, "hit, one key", true, LIMIT_HIT_NS);
	if (!ret)
		ret = one_row(r, "hit, 128 keys", false, 0);
	picks_missing(r->pick, r->d);
	if (!ret)
		ret = one_row(r, "miss", false, 0);
	readers_close(r);
	return ret;
}

/* A row of the user's keys beside one of those that the device made. */
static int named_row(struct rows *r, const char *name, bool hot, double most)
{
	struct sb_task task[2];
	struct sb_case c = { .unit = &sb_ns,
			     .set = &r->set[0],
			     .floor = &r->set[1],
			     .of = "a key of the provider's",
			     .most = most };
	int ret;

	task[1] = task_of(r, RNIC_KEYCACHE_CLOCK);
	task[1].set = &r->set[1];
	if (hot)
		task[1].run = hot_run;
	task[0] = task[1];
	task[0].ctx = &r->named;
	task[0].set = &r->set[0];
	ret = sb_measure(&r->o->plan, task, 2);
	snprintf(c.name, sizeof(c.name), "%s", name);
	return ret ? ret : sb_out_case(r->out, &c);
}

static int named_rows(struct rows *r)
{
	const struct rnic_keycache_cfg cfg = { .policy = RNIC_KEYCACHE_CLOCK };
	int ret = readers_open(r);

	r->named.pick = r->named_pick;
	if (!ret)
		ret = sb_reader_open(&r->named.rd, &r->d->addr, &cfg);
	picks_missing(r->pick, r->d);
	picks_named(r->named_pick, r->d);
	if (!ret)
		ret = named_row(r, "hit, user key", true, LIMIT_HIT_NS);
	if (!ret)
		ret = named_row(r, "miss, user key", false, 0);
	sb_reader_close(&r->named.rd);
	readers_close(r);
	return ret;
}

static int policy_row(struct rows *r, int policy, uint32_t keys)
{
	struct sb_case c = { .unit = &sb_ns,
			     .set = &r->set[policy],
			     .floor = &r->set[POLICIES],
			     .of = "locked add",
			     .point = { .panel = "random keys of a working set",
					.x = keys } };

	snprintf(c.name, sizeof(c.name), "any of %u keys, %s", keys,
		 sb_policy_name[policy]);
	snprintf(c.point.series, SB_NAME_MAX, "%s", sb_policy_name[policy]);
	return sb_out_case(r->out, &c);
}

/* All policies take turns on the same keys. */
static int set_rows(struct rows *r, uint32_t keys)
{
	struct sb_task task[TASKS];
	int ret = readers_open(r);

	picks_uniform(r->pick, r->d, keys);
	for (int i = 0; i < POLICIES; i++)
		task[i] = task_of(r, i);
	task[POLICIES] = (struct sb_task){ .run = sb_floor_add,
					   .ctx = &r->word,
					   .set = &r->set[POLICIES] };
	if (!ret)
		ret = sb_measure(&r->o->plan, task, TASKS);
	readers_close(r);
	for (int i = 0; i < POLICIES && !ret; i++)
		ret = policy_row(r, i, keys);
	return ret;
}

static int alone_run(const struct sb_options *o, struct sb_out *out,
		     struct sb_device *d)
{
	struct rows *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	r->o = o;
	r->out = out;
	r->d = d;
	r->pick = calloc(PICKS, sizeof(*r->pick));
	r->named_pick = calloc(PICKS, sizeof(*r->named_pick));
	ret = r->pick && r->named_pick ? plain_rows(r) : -ENOMEM;
	if (!ret)
		ret = named_rows(r);
	for (uint32_t n = 1; n <= d->keys && !ret; n *= 10)
		ret = set_rows(r, n);
	free(r->named_pick);
	free(r->pick);
	free(r);
	return ret;
}

static int lookup_run(const struct sb_options *o, struct sb_out *out)
{
	struct sb_beside *beside = NULL;
	struct sb_device *d = calloc(1, sizeof(*d));
	int ret = d ? sb_beside_start(&beside, o) : -ENOMEM;

	bench_pin_self(o->pin.cpu[0]);
	if (!ret)
		ret = sb_device_open(d, o->quick ? KEYS_QUICK : KEYS_MOST);
	if (!ret)
		ret = sb_device_name(d, d->keys);
	if (!ret)
		ret = alone_run(o, out, d);
	if (!ret)
		ret = sb_beside_run(beside, out, d);
	sb_beside_end(beside);
	if (d)
		sb_device_close(d);
	free(d);
	return ret;
}

const struct sb_bench sb_bench_lookup = {
	.name = "lookup",
	.about = "find memory by its key",
	.help = "Hits and misses of a key cache as it is by default, floor: a "
		"locked add; of\nkeys that the user chose, beside those of "
		"keys of the provider's; random keys\nout of 1 to 10^6, by "
		"policy of the cache, floor: a locked add. Then 0 "
		"to\n--processes readers of one key while its owner makes and "
		"closes others every\n100, 10 and 1 us and without pause, "
		"fences the key that they use, or calls\nmembarrier; floor: "
		"the same lookups while nobody closes, of what the owner "
		"does\na bare membarrier.\n",
	.processes = 4,
	.axes = { .title = "Lookup by key",
		  .x = "keys",
		  .y = "ns",
		  .log_x = true,
		  .log_y = true },
	.run = lookup_run,
};
