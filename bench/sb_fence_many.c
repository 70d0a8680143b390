/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A hundred thousand regions, all at the same time.
 */
#define _GNU_SOURCE
#include "bench/sb_fence_many.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/clock.h"
#include "bench/sb_side.h"

enum {
	MANY = 100000,	    /* regions */
	MANY_QUICK = 10000, /* with --quick */
	MANY_LEAST = 100,   /* with hardly any time */
	TIMES = 3,	    /* rounds */
	LAPS = 2,	    /* there, back */
};

/* What the process is asked for. */
struct order {
	uint64_t n;	/* regions */
	uint64_t times; /* rounds */
};

/* And what it found out, in ns for all regions. */
struct answer {
	int64_t ret;		  /* 0 or a negative code */
	double bare[TIMES][LAPS]; /* mlock, munlock of each page */
	double ours[TIMES][LAPS]; /* fi_mr_reg, fi_close of each */
};

/* ---- the process ---- */

static int bare_run(char *p, uint64_t n, double *lap)
{
	uint64_t t = bench_clock_ns();
	int ret = 0;

	for (uint64_t i = 0; i < n && !ret; i++)
		ret = mlock(p + i * SB_PAGE, SB_PAGE);
	lap[0] = (double)(bench_clock_ns() - t);
	t = bench_clock_ns();
	for (uint64_t i = 0; i < n && !ret; i++)
		ret = munlock(p + i * SB_PAGE, SB_PAGE);
	lap[1] = (double)(bench_clock_ns() - t);
	return ret ? sb_fail("mlock", -errno) : 0;
}

static int ours_run(struct sb_side *s, struct fid_mr **mr, char *p, uint64_t n,
		    double *lap)
{
	uint64_t t = bench_clock_ns(), made = 0, i;
	int ret = 0, closed = 0;

	for (; made < n && !ret; made += !ret)
		ret = fi_mr_reg(s->domain, p + made * SB_PAGE, SB_PAGE,
				SB_REMOTE, 0, made + 1, 0, &mr[made], NULL);
	lap[0] = (double)(bench_clock_ns() - t);
	t = bench_clock_ns();
	for (i = 0; i < made; i++) {
		int one = fi_close(&mr[i]->fid);

		closed = closed ? closed : one;
	}
	lap[1] = (double)(bench_clock_ns() - t);
	ret = ret ? ret : closed;
	return ret ? sb_fail("many regions", ret) : 0;
}

static int rounds_run(struct sb_side *s, const struct order *o,
		      struct answer *a)
{
	struct fid_mr **mr = calloc(o->n, sizeof(*mr));
	char *p = mmap(NULL, o->n * SB_PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int ret = mr && p != MAP_FAILED ? 0 : -ENOMEM;

	for (uint64_t i = 0; i < o->times && !ret; i++) {
		ret = bare_run(p, o->n, a->bare[i]);
		if (!ret)
			ret = ours_run(s, mr, p, o->n, a->ours[i]);
	}
	if (p != MAP_FAILED)
		munmap(p, o->n * SB_PAGE);
	free(mr);
	return ret;
}

static int many_main(int fd, void *arg)
{
	struct sb_side s = { .info = NULL };
	struct answer a = { .ret = 0 };
	struct order o;

	(void)arg;
	/* the parent may not have come so far */
	if (sb_proc_get(fd, &o, sizeof(o)))
		return 0;
	a.ret = sb_side_open(&s);
	if (!a.ret)
		a.ret = rounds_run(&s, &o, &a);
	sb_side_close(&s);
	return sb_proc_put(fd, &a, sizeof(a));
}

/* ---- the parent ---- */

int sb_fence_many_start(struct sb_proc *p)
{
	int ret = sb_proc_start(p, many_main, NULL, -1);

	return ret ? sb_fail("fork", ret) : 0;
}

static int row(struct sb_out *out, const struct order *o,
	       const struct answer *a, int lap)
{
	static struct sb_set ours, bare;
	struct sb_case c = {
		.unit = &sb_ms,
		.set = &ours,
		.floor = &bare,
		.of = lap ? "munlock of each" : "mlock of each",
		.most = o->n == MANY ? 500 : 0,
	};

	memset(&ours, 0, sizeof(ours));
	memset(&bare, 0, sizeof(bare));
	for (uint64_t i = 0; i < o->times; i++) {
		sb_set_add(&ours, a->ours[i][lap]);
		sb_set_add(&bare, a->bare[i][lap]);
	}
	snprintf(c.name, sizeof(c.name), "%llu regions, %s all",
		 (unsigned long long)o->n, lap ? "close" : "register");
	return sb_out_case(out, &c);
}

int sb_fence_many_run(struct sb_proc *p, const struct sb_options *o,
		      struct sb_out *out)
{
	bool hardly = o->plan.seconds < 0.02;
	struct order order = {
		.n = hardly	? MANY_LEAST
		     : o->quick ? MANY_QUICK
				: MANY,
		.times = TIMES,
	};
	struct answer a;
	int ret = sb_proc_put(p->fd, &order, sizeof(order));

	if (!ret)
		ret = sb_proc_get(p->fd, &a, sizeof(a));
	if (ret)
		return sb_fail("the process with many regions", ret);
	ret = (int)a.ret;
	for (int lap = 0; lap < LAPS && !ret; lap++)
		ret = row(out, &order, &a, lap);
	return ret;
}
