/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench lookup: readers of one key while its owner closes others.
 *
 * Parent and readers share a block of memory. The parent writes what is done
 * now (phase) and by how many readers (active); each reader writes its own
 * samples. A sample counts if the phase was the same before and after. The
 * parent reads the samples when no phase is on and a reader has said so. A
 * reader that dies never says so: the parent gives up after 10 seconds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/clock.h"
#include "bench/pin.h"
#include "bench/sb_device.h"
#include "bench/sb_lookup.h"
#include "bench/sb_proc.h"
#include "shm/fence.h"

enum {
	READERS = 64, /* at most */
	BLOCK = 256,  /* lookups of a sample */
	IDLE_US = 50, /* a reader without phase looks so often */
	WAIT_S = 10,  /* for readers, at most */
};

/* What the owner does meanwhile. */
enum phase {
	PHASE_QUIET, /* sleeps */
	PHASE_100US, /* makes and closes a key, so often */
	PHASE_10US,
	PHASE_1US,
	PHASE_BUSY,    /* without pause */
	PHASE_FENCE,   /* fences the key that they use, without pause */
	PHASE_BARRIER, /* calls membarrier, without pause */
	PHASES,
	PHASE_NONE = PHASES, /* readers sleep */
};

static const struct {
	const char *name;  /* shown */
	uint64_t every_ns; /* begins so often; 0: without pause */
} phases[PHASES] = {
	[PHASE_QUIET] = { "no closes", 0 },
	[PHASE_100US] = { "closes every 100 us", 100000 },
	[PHASE_10US] = { "closes every 10 us", 10000 },
	[PHASE_1US] = { "closes every 1 us", 1000 },
	[PHASE_BUSY] = { "closes without pause", 0 },
	[PHASE_FENCE] = { "fences of their key", 0 },
	[PHASE_BARRIER] = { "bare membarriers", 0 },
};

/* One reader's part of the block. */
struct seat {
	rnic_a64 seen;		   /* written by it: the phase it is in */
	struct sb_set set[PHASES]; /* written by it */
};

/* What is shared. */
struct block {
	rnic_a64 phase;	 /* written by the parent */
	rnic_a64 active; /* likewise: readers that take part */
	struct seat seat[];
};

/* What a reader must know. */
struct post {
	struct rnic_addr addr; /* of the device */
	uint64_t key;	       /* that it looks up */
};

struct sb_beside {
	const struct sb_options *o;   /* how long */
	struct block *block;	      /* shared */
	size_t bytes;		      /* of it */
	unsigned int n;		      /* readers */
	struct sb_proc proc[READERS]; /* they */
	struct sb_set own[PHASES];    /* of the owner */
	struct sb_set joined[PHASES]; /* of all readers */
};

/* How a child finds itself. */
struct start {
	struct block *block;
	unsigned int index;
};

/* ---- a reader ---- */

static int block_of_looks(struct sb_reader *rd, uint64_t key, double *ns)
{
	uint64_t begin = bench_clock_ns();
	int ret = 0;

	for (int i = 0; i < BLOCK && !ret; i++)
		ret = sb_reader_look(rd, key);
	*ns = (double)(bench_clock_ns() - begin) / BLOCK;
	return ret;
}

/* Until the parent ends it: looks up, or sleeps, as the phase says. */
static int look_on(struct sb_reader *rd, uint64_t key, const struct start *me)
{
	struct block *b = me->block;
	struct seat *seat = &b->seat[me->index];
	int ret = 0;

	while (!ret) {
		/* B1: pairs with B2: the sets are ours in a phase */
		uint64_t phase = rnic_load64_acquire(&b->phase);
		double ns;

		/* relaxed: written before @phase, see B2 */
		if (me->index >= rnic_load64_relaxed(&b->active) ||
		    phase > PHASE_NONE)
			phase = PHASE_NONE;
		/* B3: what was added before; pairs with B4 */
		rnic_store64_release(&seat->seen, phase);
		if (phase == PHASE_NONE) {
			usleep(IDLE_US);
			continue;
		}
		ret = block_of_looks(rd, key, &ns);
		/* relaxed: only whether it is over; B1 is loaded anew */
		if (!ret && rnic_load64_relaxed(&b->phase) == phase)
			sb_set_add(&seat->set[phase], ns);
	}
	return sb_device_fail("rnic_resolve", ret);
}

static int reader_main(int fd, void *arg)
{
	const struct rnic_keycache_cfg cfg = { .entries = 0 };
	struct sb_reader *rd = calloc(1, sizeof(*rd));
	struct post post;
	int ret;

	/* the parent may have nothing for us */
	if (!rd || sb_proc_get(fd, &post, sizeof(post)))
		return rd ? 0 : -ENOMEM;
	ret = sb_reader_open(rd, &post.addr, &cfg);
	if (!ret)
		ret = sb_proc_put(fd, "", 1);
	return ret ? ret : look_on(rd, post.key, arg);
}

/* ---- the owner ---- */

/* Once what a phase is about. */
static int owner_act(struct sb_device *d, enum phase phase)
{
	int ret;

	if (phase == PHASE_BARRIER)
		ret = rnic_fence_peers();
	else if (phase == PHASE_FENCE)
		ret = rnic_grace_fence(&d->dev, rnic_key_slot(d->key[0]));
	else
		return sb_device_remake(d);
	return ret ? sb_device_fail("a fence", ret) : 0;
}

static int owner_turn(struct sb_beside *b, struct sb_device *d,
		      enum phase phase, uint64_t ns)
{
	uint64_t begin = bench_clock_ns(), next = begin, t, end;
	int ret = 0;

	if (phase == PHASE_QUIET) {
		usleep((useconds_t)(ns / 1000));
		return 0;
	}
	do {
		while ((t = bench_clock_ns()) < next)
			rnic_cpu_relax();
		ret = owner_act(d, phase);
		end = bench_clock_ns();
		sb_set_add(&b->own[phase], (double)(end - t));
		next += phases[phase].every_ns;
		if (next < end)
			next = end;
	} while (!ret && end - begin < ns);
	return ret;
}

/* Until each reader of @n is in @phase, or out of all. */
static int phase_wait(struct sb_beside *b, unsigned int n, uint64_t phase)
{
	uint64_t until = bench_clock_ns() + WAIT_S * 1000000000ull;

	for (unsigned int i = 0; i < n; i++)
		/* B4: pairs with B3 */
		while (rnic_load64_acquire(&b->block->seat[i].seen) != phase) {
			if (bench_clock_ns() > until)
				return sb_device_fail("a reader", -ETIMEDOUT);
			usleep(IDLE_US);
		}
	return 0;
}

static int phase_run(struct sb_beside *b, struct sb_device *d, unsigned int n,
		     enum phase phase, uint64_t ns)
{
	int ret, end;

	/* relaxed: B2 publishes it */
	rnic_store64_relaxed(&b->block->active, n);
	/* B2: @active, and that the sets are the readers' now; with B1 */
	rnic_store64_release(&b->block->phase, phase);
	ret = phase_wait(b, n, phase);
	if (!ret)
		ret = owner_turn(b, d, phase, ns);
	/* relaxed: B4 tells when they have seen it */
	rnic_store64_relaxed(&b->block->phase, PHASE_NONE);
	end = phase_wait(b, n, PHASE_NONE);
	return ret ? ret : end;
}

/* ---- rows ---- */

static void sets_clear(struct sb_beside *b)
{
	memset(b->own, 0, sizeof(b->own));
	for (unsigned int i = 0; i < b->n; i++)
		memset(b->block->seat[i].set, 0, sizeof(b->block->seat[i].set));
}

static int turns_run(struct sb_beside *b, struct sb_device *d, unsigned int n)
{
	const struct sb_plan *p = &b->o->plan;
	uint64_t ns = (uint64_t)(p->seconds * 1e9 / p->repeats) + 1;
	int ret = 0;

	for (int i = 0; i < PHASES && !ret; i++)
		ret = phase_run(b, d, n, (enum phase)i,
				(uint64_t)(p->warm_up * 1e9) + 1);
	sets_clear(b);
	for (unsigned int r = 0; r < p->repeats; r++)
		for (int i = 0; i < PHASES && !ret; i++)
			ret = phase_run(b, d, n, (enum phase)i, ns);
	memset(b->joined, 0, sizeof(b->joined));
	for (unsigned int r = 0; r < n; r++)
		for (int i = 0; i < PHASES; i++)
			sb_set_join(&b->joined[i], &b->block->seat[r].set[i]);
	return ret;
}

static int reader_row(struct sb_beside *b, struct sb_out *out, unsigned int n,
		      enum phase i)
{
	struct sb_case c = { .unit = &sb_ns,
			     .set = &b->joined[i],
			     .floor = i ? &b->joined[PHASE_QUIET] : NULL,
			     .of = "without closes",
			     .most_ratio = true };

	if (i == PHASE_10US && n == 1)
		c.most = 1.1;
	snprintf(c.name, sizeof(c.name), "hit, %u reader%s, %s", n,
		 n == 1 ? "" : "s", phases[i].name);
	return sb_out_case(out, &c);
}

static int owner_row(struct sb_beside *b, struct sb_out *out, unsigned int n,
		     enum phase i)
{
	struct sb_case c = { .unit = &sb_ns,
			     .set = &b->own[i],
			     .floor = &b->own[PHASE_BARRIER],
			     .of = "membarrier" };

	snprintf(c.name, sizeof(c.name), "owner, %u reader%s, %s", n,
		 n == 1 ? "" : "s", phases[i].name);
	return sb_out_case(out, &c);
}

static int rows_run(struct sb_beside *b, struct sb_out *out,
		    struct sb_device *d, unsigned int n)
{
	int ret = turns_run(b, d, n);

	for (int i = 0; i < PHASES && !ret; i++)
		ret = reader_row(b, out, n, (enum phase)i);
	for (int i = PHASE_100US; i < PHASE_BARRIER && !ret; i++)
		ret = owner_row(b, out, n, (enum phase)i);
	return ret;
}

/* Readers get what they need, and have attached. */
static int readers_ready(struct sb_beside *b, const struct sb_device *d)
{
	struct post post = { .addr = d->addr, .key = d->key[0] };
	int ret = 0;
	char c;

	for (unsigned int i = 0; i < b->n && !ret; i++) {
		ret = sb_proc_put(b->proc[i].fd, &post, sizeof(post));
		if (!ret)
			ret = sb_proc_get(b->proc[i].fd, &c, 1);
	}
	return ret ? sb_device_fail("a reader", ret) : 0;
}

int sb_beside_run(struct sb_beside *b, struct sb_out *out, struct sb_device *d)
{
	int ret = readers_ready(b, d);

	for (unsigned int n = 0; !ret; n = n ? 2 * n : 1) {
		if (n > b->n)
			n = b->n;
		ret = rows_run(b, out, d, n);
		if (n == b->n)
			break;
	}
	return ret;
}

/* ---- beginning and end ---- */

static int readers_start(struct sb_beside *b)
{
	int ret = 0;

	for (b->n = 0; b->n < b->o->processes && !ret; b->n++) {
		/* the child has a copy */
		struct start start = { b->block, b->n };

		ret = sb_proc_start(&b->proc[b->n], reader_main, &start,
				    b->n ? -1 : b->o->pin.cpu[1]);
	}
	return ret ? sb_device_fail("fork", ret) : 0;
}

int sb_beside_start(struct sb_beside **out, const struct sb_options *o)
{
	struct sb_beside *b = calloc(1, sizeof(*b));

	*out = b;
	if (!b)
		return -ENOMEM;
	b->o = o;
	b->bytes = sizeof(*b->block) + o->processes * sizeof(struct seat);
	b->block = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (b->block == MAP_FAILED) {
		b->block = NULL;
		return sb_device_fail("shared memory", -errno);
	}
	/* relaxed: before the forks */
	rnic_store64_relaxed(&b->block->phase, PHASE_NONE);
	return readers_start(b);
}

void sb_beside_end(struct sb_beside *b)
{
	if (!b)
		return;
	for (unsigned int i = 0; i < b->n; i++)
		sb_proc_kill(&b->proc[i]);
	if (b->block)
		munmap(b->block, b->bytes);
	free(b);
}
