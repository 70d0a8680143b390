/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench atomic: atomics on another process's memory, beside the bare
 * locked instructions.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/sb_crew.h"
#include "bench/sb_onesided.h"
#include "bench/sb_subs.h"
#include "shm/atomic.h"

enum {
	LIMIT_NS = 50,	/* of a fetch-add of one element, mapped */
	WORD = 8,	/* bytes of an element */
	OFF = SB_PAGE,	/* where they lie */
	ODD = 4,	/* added: the element crosses two words */
	ROOM = 1 << 20, /* bytes of each region */
};

/* What is done. */
enum op {
	ADD,	    /* floor: locked add of each element */
	ATOMIC,	    /* fi_atomic, device memory */
	INJECT,	    /* fi_inject_atomic, device memory */
	FETCH,	    /* fi_fetch_atomic, device memory */
	SWAP,	    /* fi_compare_atomic, device memory */
	FETCH_PRIV, /* fi_fetch_atomic, private memory: by its owner */
	FETCH_ODD,  /* likewise, device memory, not aligned: by its owner */
	OPS
};

static const char *const op_name[OPS] = {
	[ADD] = "",
	[ATOMIC] = "add, mapped",
	[INJECT] = "inject add, mapped",
	[FETCH] = "fetch-add, mapped",
	[SWAP] = "compare-swap, mapped",
	[FETCH_PRIV] = "fetch-add, private, by its owner",
	[FETCH_ODD] = "fetch-add, unaligned, by its owner",
};

struct atomics {
	struct sb_onesided b;
	size_t count;		/* elements */
	struct sb_set set[OPS]; /* of each */
};

struct work {
	struct atomics *a;
	enum op op;
};

/* ---- one operation ---- */

static ssize_t issue(struct sb_onesided *b, enum op op, size_t n)
{
	struct sb_ep *e = &b->s.main;
	char *operand = b->buf, *result = b->buf + ROOM / 2,
	     *compare = b->buf + ROOM / 4;

	switch (op) {
	case ATOMIC:
		return fi_atomic(e->ep, operand, n, NULL, e->peer, OFF,
				 SB_KEY_DEVICE, FI_UINT64, FI_SUM, b);
	case INJECT:
		return fi_inject_atomic(e->ep, operand, n, e->peer, OFF,
					SB_KEY_DEVICE, FI_UINT64, FI_SUM);
	case SWAP:
		return fi_compare_atomic(e->ep, operand, n, NULL, compare, NULL,
					 result, NULL, e->peer, OFF,
					 SB_KEY_DEVICE, FI_UINT64, FI_CSWAP, b);
	default:
		return fi_fetch_atomic(
			e->ep, operand, n, NULL, result, NULL, e->peer,
			OFF + (op == FETCH_ODD ? ODD : 0),
			op == FETCH_PRIV ? SB_KEY_PRIVATE : SB_KEY_DEVICE,
			FI_UINT64, FI_SUM, b);
	}
}

static int op_do(struct atomics *a, enum op op)
{
	struct sb_ep *e = &a->b.s.main;
	ssize_t ret;

	if (op == ADD) {
		/* a floor: its cost counts, it pairs with nothing */
		for (size_t i = 0; i < a->count; i++)
			rnic_raw_add_seqcst(a->b.far + i * WORD, WORD, 1);
		return 0;
	}
	ret = issue(&a->b, op, a->count);
	if (ret)
		return sb_fail("an atomic", ret);
	if (op == INJECT)
		return 0;
	ret = sb_ep_wait(e, 1);
	return ret	   ? (int)ret
	       : e->failed ? sb_fail("an atomic", -e->failed)
			   : 0;
}

static int op_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct work *w = ctx;
	int ret = 0;

	(void)set;
	for (uint64_t i = 0; i < n && !ret; i++)
		ret = op_do(w->a, w->op);
	return ret;
}

/* ---- rows ---- */

static bool applies(const struct atomics *a, enum op op)
{
	size_t most = 0;

	if (op == INJECT)
		return a->count * WORD <= a->b.s.info->tx_attr->inject_size;
	if (op == ADD)
		return true;
	if (fi_fetch_atomicvalid(a->b.s.main.ep, FI_UINT64, FI_SUM, &most))
		return false;
	return a->count <= most;
}

static int row(struct atomics *a, enum op op)
{
	struct sb_case c = { .unit = &sb_ns,
			     .set = &a->set[op],
			     .floor = &a->set[ADD],
			     .of = "locked add of each",
			     .point = { .panel = "time of an operation",
					.x = (double)a->count } };

	if (a->count == 1 && op == FETCH)
		c.most = LIMIT_NS;
	snprintf(c.name, sizeof(c.name), "%zu x 8 B %s", a->count, op_name[op]);
	snprintf(c.point.series, SB_NAME_MAX, "%s", op_name[op]);
	return sb_out_case(a->b.out, &c);
}

static int count_run(struct atomics *a)
{
	struct sb_task task[OPS];
	struct work w[OPS];
	size_t n = 0;
	int ret;

	memset(a->set, 0, sizeof(a->set));
	for (int i = 0; i < OPS; i++) {
		if (!applies(a, (enum op)i))
			continue;
		w[i] = (struct work){ a, (enum op)i };
		task[n++] = (struct sb_task){ .run = op_run,
					      .ctx = &w[i],
					      .set = &a->set[i] };
	}
	ret = sb_measure(&a->b.o->plan, task, n);
	for (int i = ATOMIC; i < OPS && !ret; i++)
		ret = row(a, (enum op)i);
	return ret;
}

/* ---- many at a time ---- */

enum { MANY_ADD, MANY_OWN, MANY_SAME, MANY };

/* A thread with an endpoint of its own. */
struct member {
	struct sb_ep e;		    /* its endpoint */
	uint64_t off;		    /* its element */
	uint64_t one;		    /* operand */
	uint64_t result[SB_WINDOW]; /* what was there */
	uint64_t word;		    /* of the floor */
};

/* Where the element of member @i lies. */
static uint64_t off_of(unsigned int i)
{
	return OFF + (i + 1) * 256ull;
}

/* A window of fetch-adds of the member's own element, or of one for all. */
static int window_add(struct member *m, uint64_t off)
{
	ssize_t ret = 0;

	for (int i = 0; i < SB_WINDOW && !ret; i++)
		ret = fi_fetch_atomic(m->e.ep, &m->one, 1, NULL, &m->result[i],
				      NULL, m->e.peer, off, SB_KEY_DEVICE,
				      FI_UINT64, FI_SUM, m);
	return ret ? sb_fail("fi_fetch_atomic", ret)
		   : sb_ep_wait(&m->e, SB_WINDOW);
}

/* sb_work_fn; an operation is a window. */
static int member_work(void *ctx, unsigned int what, uint64_t n)
{
	struct member *m = ctx;
	int ret = 0;

	for (uint64_t i = 0; i < n && !ret; i++) {
		if (what != MANY_ADD)
			ret = window_add(m, what == MANY_OWN ? m->off : OFF);
		else
			/* a floor: its cost counts, it pairs with nothing */
			for (int k = 0; k < SB_WINDOW; k++)
				rnic_raw_add_seqcst((char *)&m->word, WORD, 1);
	}
	return ret;
}

/* A crew and its rows. */
struct many {
	struct atomics *a;
	struct sb_crew *crew;
};

static int rate_rows(void *ctx, unsigned int n)
{
	static struct sb_set set[MANY];
	struct many *m = ctx;
	struct sb_unit unit = { "M/s", 1e3 * SB_WINDOW, true };
	struct sb_case c = { .unit = &unit,
			     .floor = &set[MANY_ADD],
			     .of = "locked add" };
	char who[SB_NAME_MAX];
	int ret = sb_crew_measure(m->crew, n, MANY, &m->a->b.o->plan, set);

	for (int i = MANY_OWN; i < MANY && !ret; i++) {
		c.set = &set[i];
		snprintf(c.name, sizeof(c.name), "%d of %s, %.16s, each",
			 SB_WINDOW,
			 i == MANY_OWN ? "an element each" : "one element",
			 sb_crew_name(who, m->crew, n));
		ret = sb_out_case(m->a->b.out, &c);
	}
	return ret;
}

static int threads_run(struct atomics *a)
{
	unsigned int most = a->b.o->threads;
	struct member *m = calloc(most, sizeof(*m));
	struct sb_crew crew = { .n = most, .work = member_work };
	struct many many = { a, &crew };
	int ret = m ? 0 : -ENOMEM;

	for (unsigned int i = 0; i < most && !ret; i++) {
		ret = sb_ep_open(&a->b.s, &m[i].e);
		m[i].e.peer = a->b.s.main.peer;
		m[i].off = off_of(i);
		m[i].one = 1;
		crew.ctx[i] = &m[i];
	}
	if (!ret)
		ret = sb_crew_counts(&crew, rate_rows, &many);
	for (unsigned int i = 0; m && i < most; i++)
		sb_ep_close(&m[i].e);
	free(m);
	return ret;
}

static int processes_run(struct atomics *a)
{
	struct many many = { a, &a->b.crew };

	return sb_crew_counts(many.crew, rate_rows, &many);
}

/* Another initiator: obeys. */
static int process_main(int fd, void *arg)
{
	static struct member m;
	struct sb_side s = { .info = NULL };
	int ret = sb_onesided_join(&s, fd);

	m.e = s.main;
	m.off = off_of(*(unsigned int *)arg);
	m.one = 1;
	if (!ret)
		ret = sb_crew_obey(fd, member_work, &m);
	sb_side_close(&s);
	return ret < 0 ? ret : 0;
}

static int atomic_run(const struct sb_options *o, struct sb_out *out)
{
	static struct atomics a;
	int ret = sb_onesided_open(&a.b, o, out, ROOM, process_main), end;

	for (size_t i = 0; i < o->sizes.n && !ret; i++) {
		a.count = o->sizes.byte[i] / WORD;
		if (a.count && a.count * WORD <= ROOM / 4)
			ret = count_run(&a);
	}
	if (!ret)
		ret = threads_run(&a);
	if (!ret)
		ret = processes_run(&a);
	end = sb_onesided_close(&a.b);
	return ret ? ret : end;
}

const struct sb_bench sb_bench_atomic = {
	.name = "atomic",
	.about = "atomics on another process's memory",
	.help = "Arrays of 8 byte elements, with their completion: of memory "
		"of the device, done\nby the initiator's CPU; of private "
		"memory, and of what is not aligned, done by\nthe owner. "
		"Floor: a locked add of each element in memory of one's own. "
		"Then\nwindows of 64 fetch-adds by threads with an endpoint "
		"each, and by processes.\n",
	.sizes = "8,64,512,4K",
	.quick = "8,512",
	.threads = 2,
	.processes = 2,
	.axes = { .title = "Atomics",
		  .x = "elements",
		  .y = "ns",
		  .log_x = true,
		  .log_y = true },
	.run = atomic_run,
};
