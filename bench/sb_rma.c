/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench rma: reads and writes of another process's memory, beside a
 * memcpy or a system call that moves as much.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/sb_crew.h"
#include "bench/sb_onesided.h"
#include "bench/sb_subs.h"

enum {
	RATE_LEN = 8,	       /* bytes of the rows with many */
	BANDWIDTH_LEN = 65536, /* from here on in GB/s, too */
	SMALL_LEN = 64,	       /* of the row with a limit */
	BIG_LEN = 1 << 20,     /* likewise */
	LIMIT_NS = 60,	       /* of SMALL_LEN bytes, mapped */
};

/* Times of the floor. */
static const double limit_small_cma = 1.2; /* of SMALL_LEN bytes */
static const double limit_mapped = 1.18;   /* 0.85 of the bandwidth */
static const double limit_cma = 1.05;	   /* never below it, but for noise */

/* What is done. */
enum op {
	COPY,	    /* floor: memcpy */
	CMA_WRITE,  /* floor: process_vm_writev */
	CMA_READ,   /* floor: process_vm_readv */
	WRITE,	    /* fi_write, device memory */
	READ,	    /* fi_read, device memory */
	INJECT,	    /* fi_inject_write, device memory */
	WRITE_PRIV, /* fi_write, private memory */
	READ_PRIV,  /* fi_read, private memory */
	OPS
};

static const struct {
	const char *name;
	enum op floor;
	const char *of;
} ops[OPS] = {
	[COPY] = { "", COPY, "" },
	[CMA_WRITE] = { "", COPY, "" },
	[CMA_READ] = { "", COPY, "" },
	[WRITE] = { "write, mapped", COPY, "memcpy" },
	[READ] = { "read, mapped", COPY, "memcpy" },
	[INJECT] = { "inject write, mapped", COPY, "memcpy" },
	[WRITE_PRIV] = { "write, CMA", CMA_WRITE, "process_vm_writev" },
	[READ_PRIV] = { "read, CMA", CMA_READ, "process_vm_readv" },
};

struct rma {
	struct sb_onesided b;
	size_t len;		/* bytes moved */
	struct sb_set set[OPS]; /* of each */
};

struct work {
	struct rma *r;
	enum op op;
};

/* ---- one operation ---- */

static int issue(struct sb_onesided *b, enum op op, size_t len)
{
	struct sb_ep *e = &b->s.main;
	uint64_t key = op == WRITE_PRIV || op == READ_PRIV ? SB_KEY_PRIVATE
							   : SB_KEY_DEVICE;
	ssize_t ret;

	if (op == INJECT)
		ret = fi_inject_write(e->ep, b->buf, len, e->peer, 0, key);
	else if (op == WRITE || op == WRITE_PRIV)
		ret = fi_write(e->ep, b->buf, len, NULL, e->peer, 0, key, b);
	else
		ret = fi_read(e->ep, b->buf, len, NULL, e->peer, 0, key, b);
	if (ret)
		return sb_fail("an RMA operation", ret);
	if (op == INJECT)
		return 0;
	ret = sb_ep_wait(e, 1);
	return ret ? (int)ret : e->failed ? sb_fail("RMA", -e->failed) : 0;
}

static int op_do(struct rma *r, enum op op)
{
	struct sb_onesided *b = &r->b;

	switch (op) {
	case COPY:
		memcpy(b->far, b->buf, r->len);
		__asm__ __volatile__("" ::: "memory");
		return 0;
	case CMA_WRITE:
	case CMA_READ:
		return sb_onesided_cma(b, op != CMA_READ, r->len);
	default:
		return issue(b, op, r->len);
	}
}

static int op_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct work *w = ctx;
	int ret = 0;

	(void)set;
	for (uint64_t i = 0; i < n && !ret; i++)
		ret = op_do(w->r, w->op);
	return ret;
}

/* ---- sizes ---- */

static bool applies(const struct rma *r, enum op op)
{
	return op != INJECT || r->len <= r->b.s.info->tx_attr->inject_size;
}

/* The limits that doc/performance.md speaks of. */
static void limit_set(struct sb_case *c, const struct rma *r, enum op op)
{
	if (r->len == SMALL_LEN && (op == WRITE || op == INJECT)) {
		c->most = LIMIT_NS;
	} else if (r->len == SMALL_LEN && op == WRITE_PRIV) {
		c->most = limit_small_cma;
		c->most_ratio = true;
	} else if (r->len == BIG_LEN && op >= WRITE) {
		c->most = op >= WRITE_PRIV ? limit_cma : limit_mapped;
		c->most_ratio = true;
	}
}

static int row(struct rma *r, enum op op)
{
	char size[SB_NAME_MAX];
	struct sb_unit gbs = sb_gbs(r->len);
	struct sb_case c = { .unit = &sb_ns,
			     .set = &r->set[op],
			     .floor = &r->set[ops[op].floor],
			     .of = ops[op].of,
			     .point = { .panel = "time of an operation",
					.x = (double)r->len } };
	int ret;

	sb_size_name(size, r->len);
	snprintf(c.name, sizeof(c.name), "%.8s %s", size, ops[op].name);
	snprintf(c.point.series, SB_NAME_MAX, "%s", ops[op].name);
	limit_set(&c, r, op);
	ret = sb_out_case(r->b.out, &c);
	if (ret || r->len < BANDWIDTH_LEN)
		return ret;
	c.unit = &gbs;
	c.most = 0;
	c.floor = &r->set[ops[op].floor];
	c.point = (struct sb_point){ .x = 0 };
	snprintf(c.name, sizeof(c.name), "%.8s %s, bandwidth", size,
		 ops[op].name);
	return sb_out_case(r->b.out, &c);
}

static int size_run(struct rma *r)
{
	struct sb_task task[OPS];
	struct work w[OPS];
	size_t n = 0;
	int ret;

	memset(r->set, 0, sizeof(r->set));
	for (int i = 0; i < OPS; i++) {
		if (!applies(r, (enum op)i))
			continue;
		w[i] = (struct work){ r, (enum op)i };
		task[n++] = (struct sb_task){ .run = op_run,
					      .ctx = &w[i],
					      .set = &r->set[i] };
	}
	ret = sb_measure(&r->b.o->plan, task, n);
	for (int i = WRITE; i < OPS && !ret; i++)
		ret = row(r, (enum op)i);
	return ret;
}

/* ---- many at a time ---- */

enum { MANY_COPY, MANY_WRITE, MANY };

/* A thread with an endpoint of its own. */
struct member {
	struct sb_ep e;	    /* its endpoint */
	char from[SB_PAGE]; /* what it writes */
	char to[SB_PAGE];   /* what the floor writes */
};

static int window_write(struct member *m)
{
	ssize_t ret = 0;

	for (int i = 0; i < SB_WINDOW && !ret; i++)
		ret = fi_write(m->e.ep, m->from, RATE_LEN, NULL, m->e.peer,
			       (uint64_t)i * RATE_LEN, SB_KEY_DEVICE, m);
	return ret ? sb_fail("fi_write", ret) : sb_ep_wait(&m->e, SB_WINDOW);
}

/* sb_work_fn; an operation is a window. */
static int member_work(void *ctx, unsigned int what, uint64_t n)
{
	struct member *m = ctx;
	int ret = 0;

	for (uint64_t i = 0; i < n && !ret; i++) {
		if (what == MANY_WRITE) {
			ret = window_write(m);
			continue;
		}
		for (size_t k = 0; k < SB_WINDOW; k++) {
			memcpy(m->to + k * RATE_LEN, m->from, RATE_LEN);
			__asm__ __volatile__("" ::: "memory");
		}
	}
	return ret;
}

/* A crew and its rows. */
struct many {
	struct rma *r;
	struct sb_crew *crew;
};

static int rate_row(void *ctx, unsigned int n)
{
	static struct sb_set set[MANY];
	struct many *m = ctx;
	struct sb_unit unit = { "M/s", 1e3 * SB_WINDOW, true };
	struct sb_case c = { .unit = &unit,
			     .set = &set[MANY_WRITE],
			     .floor = &set[MANY_COPY],
			     .of = "memcpy" };
	char who[SB_NAME_MAX];
	int ret = sb_crew_measure(m->crew, n, MANY, &m->r->b.o->plan, set);

	snprintf(c.name, sizeof(c.name), "%d writes of %d B, %.16s, each",
		 SB_WINDOW, RATE_LEN, sb_crew_name(who, m->crew, n));
	return ret ? ret : sb_out_case(m->r->b.out, &c);
}

static int threads_run(struct rma *r)
{
	unsigned int most = r->b.o->threads;
	struct member *m = calloc(most, sizeof(*m));
	struct sb_crew crew = { .n = most, .work = member_work };
	struct many many = { r, &crew };
	int ret = m ? 0 : -ENOMEM;

	for (unsigned int i = 0; i < most && !ret; i++) {
		ret = sb_ep_open(&r->b.s, &m[i].e);
		m[i].e.peer = r->b.s.main.peer;
		crew.ctx[i] = &m[i];
	}
	if (!ret)
		ret = sb_crew_counts(&crew, rate_row, &many);
	for (unsigned int i = 0; m && i < most; i++)
		sb_ep_close(&m[i].e);
	free(m);
	return ret;
}

static int processes_run(struct rma *r)
{
	struct many many = { r, &r->b.crew };

	return sb_crew_counts(many.crew, rate_row, &many);
}

/* Another initiator: obeys. */
static int process_main(int fd, void *arg)
{
	static struct member m;
	struct sb_side s = { .info = NULL };
	int ret = sb_onesided_join(&s, fd);

	m.e = s.main;
	(void)arg;
	if (!ret)
		ret = sb_crew_obey(fd, member_work, &m);
	sb_side_close(&s);
	return ret < 0 ? ret : 0;
}

static int rma_run(const struct sb_options *o, struct sb_out *out)
{
	static struct rma r;
	size_t room = bench_sizes_largest(&o->sizes);
	int ret = sb_onesided_open(
		&r.b, o, out, room > SB_PAGE ? room : SB_PAGE, process_main);
	int end;

	for (size_t i = 0; i < o->sizes.n && !ret; i++) {
		r.len = o->sizes.byte[i];
		if (r.len)
			ret = size_run(&r);
	}
	if (!ret)
		ret = threads_run(&r);
	if (!ret)
		ret = processes_run(&r);
	end = sb_onesided_close(&r.b);
	return ret ? ret : end;
}

const struct sb_bench sb_bench_rma = {
	.name = "rma",
	.about = "read and write another process's memory",
	.help = "Writes, injected writes and reads with their completion: of "
		"memory of the\ndevice, which the initiator maps, beside "
		"memcpy; of private memory, which goes\nby CMA, beside the "
		"bare system call. From 64K on also as bandwidth. "
		"Then\nwindows of 64 writes, by threads with an endpoint each "
		"and by processes, beside\nas many memcpy.\n",
	.sizes = "8,64,512,4K,32K,256K,1M,16M",
	.quick = "8,64,4K,1M",
	.threads = 2,
	.processes = 2,
	.axes = { .title = "RMA",
		  .x = "bytes",
		  .y = "ns",
		  .log_x = true,
		  .log_y = true },
	.run = rma_run,
};
