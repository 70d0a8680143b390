/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench odp: regions whose pages come at the first touch, beside
 * process_vm_readv(2) and process_vm_writev(2) of pages that are not there
 * either, which the kernel then makes.
 *
 * The child owns the memory. For each round it maps pages anew, in a region on
 * demand and beside it, and sleeps while the parent touches both.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "bench/clock.h"
#include "bench/sb_proc.h"
#include "bench/sb_side.h"
#include "bench/sb_subs.h"

enum {
	KEY = 3,
	LEN_LEAST = 64 * SB_PAGE, /* bytes of a region */
	NOT_OFFERED = 1,	  /* answer: no such regions */
};

/* How the pages are before the parent comes. */
enum state {
	FRESH,	    /* mapped, never touched */
	PRESENT,    /* touched by their owner, not through the region */
	PREFETCHED, /* by advice */
	STATES
};

/* What is timed. */
enum lap {
	FIRST,	   /* the first touch of a page */
	AGAIN,	   /* the second */
	CMA_FIRST, /* floor: the same by system calls */
	CMA_AGAIN, /* likewise */
	ADVISE,	   /* advice of all pages, by page; of PREFETCHED */
	POPULATE,  /* floor: madvise(MADV_POPULATE_WRITE), by page */
	UNMAP,	   /* munmap of what is under the region, by page */
	UNMAP_0,   /* floor: of what lies beside it */
	LAPS
};

/* Asked of the child: a round. */
struct order {
	uint32_t state; /* enum state */
	uint32_t pad;	/* 0 */
	uint64_t len;	/* bytes of the region, pages */
};

/* What it says. */
struct answer {
	int32_t ret;	 /* 0, NOT_OFFERED, or a negative code */
	uint32_t pad;	 /* 0 */
	uint64_t plain;	 /* address of the pages beside the region */
	double ns[LAPS]; /* those that it has timed, else 0 */
};

/* ---- the owner ---- */

struct owner {
	struct sb_side s;  /* its side */
	size_t len;	   /* bytes of each of these: */
	char *region;	   /* under @mr */
	char *plain;	   /* beside it */
	struct fid_mr *mr; /* or NULL */
};

static double by_page(const struct owner *w, uint64_t begin)
{
	return (double)(bench_clock_ns() - begin) / (double)(w->len / SB_PAGE);
}

static int map(char **p, size_t len)
{
	*p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (*p != MAP_FAILED)
		return 0;
	*p = NULL;
	return sb_fail("memory", -errno);
}

/* Gives the pages of the last round back, under the region at first. */
static int owner_unmap(struct owner *w, struct answer *a)
{
	uint64_t t = bench_clock_ns();
	int ret;

	if (!w->mr)
		return 0;
	ret = munmap(w->region, w->len);
	a->ns[UNMAP] = by_page(w, t);
	t = bench_clock_ns();
	if (!ret)
		ret = munmap(w->plain, w->len);
	a->ns[UNMAP_0] = by_page(w, t);
	if (ret)
		return sb_fail("munmap", -errno);
	ret = fi_close(&w->mr->fid);
	w->mr = NULL;
	return ret ? sb_fail("fi_close", ret) : 0;
}

static int owner_register(struct owner *w)
{
	struct iovec v = { w->region, w->len };
	struct fi_mr_attr attr = { .mr_iov = &v,
				   .iov_count = 1,
				   .access = SB_REMOTE | FI_READ | FI_WRITE,
				   .requested_key = KEY };
	int ret =
		fi_mr_regattr(w->s.domain, &attr, FI_SHRIMP_ON_DEMAND, &w->mr);

	return ret ? sb_fail("fi_mr_regattr", ret) : 0;
}

static int owner_prefetch(struct owner *w, struct answer *a)
{
	uint64_t t = bench_clock_ns();
	int ret = w->s.mr->advise(w->mr, 0, w->len, FI_SHRIMP_PREFETCH_WRITE);

	a->ns[ADVISE] = by_page(w, t);
	if (ret)
		return sb_fail("advise", ret);
	t = bench_clock_ns();
	ret = madvise(w->plain, w->len, MADV_POPULATE_WRITE);
	a->ns[POPULATE] = by_page(w, t);
	return ret ? sb_fail("madvise", -errno) : 0;
}

static int owner_round(struct owner *w, const struct order *o, struct answer *a)
{
	enum state state = (enum state)o->state;
	int ret = owner_unmap(w, a);

	w->len = o->len;
	if (!ret)
		ret = map(&w->region, w->len);
	if (!ret)
		ret = map(&w->plain, w->len);
	if (!ret)
		ret = owner_register(w);
	if (ret)
		return ret;
	a->plain = (uintptr_t)w->plain;
	if (state == PRESENT) {
		memset(w->region, 1, w->len);
		memset(w->plain, 1, w->len);
	}
	return state == PREFETCHED ? owner_prefetch(w, a) : 0;
}

static int owner_open(struct owner *w, int fd)
{
	struct sb_hello peer;
	int ret = sb_side_open(&w->s);

	if (!ret)
		ret = sb_side_meet(&w->s, fd, 0, &peer);
	return ret;
}

static int owner_main(int fd, void *arg)
{
	struct owner w = { .mr = NULL };
	struct order o;
	int ret = owner_open(&w, fd);

	(void)arg;
	while (!ret && !sb_proc_get(fd, &o, sizeof(o))) {
		struct answer a = { .ret = NOT_OFFERED };

		if (SB_OFFERS(&w.s, advise))
			a.ret = owner_round(&w, &o, &a);
		ret = sb_proc_put(fd, &a, sizeof(a));
	}
	if (w.mr)
		fi_close(&w.mr->fid);
	sb_side_close(&w.s);
	return ret;
}

/* ---- the initiator ---- */

struct odp {
	const struct sb_options *o; /* how long */
	struct sb_out *out;	    /* where to */
	struct sb_proc proc;	    /* the owner */
	struct sb_side s;	    /* ours */
	struct sb_hello peer;	    /* what the owner says */
	char *buf;		    /* read into, written from */
	struct sb_set set[LAPS];    /* times */
};

struct work {
	struct odp *d;
	enum state state;
	bool write;
	size_t len; /* bytes that are read or written, from a page on */
};

/* Bytes of the pages that an operation touches. */
static size_t step(const struct work *w)
{
	return (w->len + SB_PAGE - 1) / SB_PAGE * SB_PAGE;
}

/* Bytes of the region. */
static size_t region_len(const struct work *w)
{
	return step(w) > LEN_LEAST ? step(w) : LEN_LEAST;
}

static int touch_ours(struct work *w, uint64_t at)
{
	struct odp *d = w->d;
	struct sb_ep *e = &d->s.main;
	ssize_t ret = w->write ? fi_write(e->ep, d->buf, w->len, NULL, e->peer,
					  at, KEY, d)
			       : fi_read(e->ep, d->buf, w->len, NULL, e->peer,
					 at, KEY, d);

	if (!ret)
		ret = sb_ep_wait(e, 1);
	if (!ret && e->failed)
		ret = -e->failed;
	return ret ? sb_fail("a touch", ret) : 0;
}

static int touch_bare(struct work *w, uint64_t addr)
{
	struct iovec own = { w->d->buf, w->len };
	struct iovec peer = { (void *)(uintptr_t)addr, w->len };
	pid_t pid = w->d->peer.pid;
	ssize_t n = w->write ? process_vm_writev(pid, &own, 1, &peer, 1, 0)
			     : process_vm_readv(pid, &own, 1, &peer, 1, 0);

	if (n == (ssize_t)w->len)
		return 0;
	return sb_fail("process_vm_readv", n < 0 ? -errno : -EIO);
}

/* Each page once. */
static int pages_touch(struct work *w, uint64_t plain, enum lap lap,
		       struct sb_set *set)
{
	size_t end = region_len(w) - step(w);
	int ret = 0;

	for (size_t at = 0; at <= end && !ret; at += step(w)) {
		uint64_t t = bench_clock_ns();

		ret = lap < CMA_FIRST ? touch_ours(w, at)
				      : touch_bare(w, plain + at);
		if (!ret)
			sb_set_add(&set[lap], (double)(bench_clock_ns() - t));
	}
	return ret;
}

static int round_run(void *ctx, uint64_t n, struct sb_set *set)
{
	static const enum lap lap[] = { FIRST, AGAIN, CMA_FIRST, CMA_AGAIN };
	struct work *w = ctx;
	struct order o = { .state = w->state, .len = region_len(w) };
	struct answer a;
	int ret = 0;

	for (uint64_t i = 0; i < n && !ret; i++) {
		ret = sb_proc_put(w->d->proc.fd, &o, sizeof(o));
		if (!ret)
			ret = sb_proc_get(w->d->proc.fd, &a, sizeof(a));
		if (!ret)
			ret = a.ret;
		for (int k = 0; k < 4 && !ret; k++)
			ret = pages_touch(w, a.plain, lap[k], set);
		for (int k = ADVISE; k < LAPS && !ret; k++)
			if (a.ns[k] > 0)
				sb_set_add(&set[k], a.ns[k]);
	}
	return ret;
}

/* ---- rows ---- */

static const char *const state_name[STATES] = {
	[FRESH] = "fresh",
	[PRESENT] = "present",
	[PREFETCHED] = "prefetched",
};

static int touch_row(struct work *w, enum lap lap)
{
	const char *what = lap == FIRST ? "first touch" : "second touch";
	const char *how = w->write ? "write" : "read";
	char size[SB_NAME_MAX];
	struct sb_case c = {
		.unit = &sb_us,
		.set = &w->d->set[lap],
		.floor = &w->d->set[lap == FIRST ? CMA_FIRST : CMA_AGAIN],
		.of = w->write ? "process_vm_writev" : "process_vm_readv",
		.point = { .x = (double)w->len },
	};

	snprintf(c.name, sizeof(c.name), "%.8s %s, %s, %s",
		 sb_size_name(size, w->len), what, state_name[w->state], how);
	snprintf(c.point.panel, SB_NAME_MAX, "%s, %s", state_name[w->state],
		 how);
	snprintf(c.point.series, SB_NAME_MAX, "%s", what);
	return sb_out_case(w->d->out, &c);
}

/* A row of what the owner does with all pages, in time of one. */
static int page_row(struct work *w, enum lap lap, enum lap floor,
		    const char *what, const char *of)
{
	struct sb_case c = { .unit = &sb_us,
			     .set = &w->d->set[lap],
			     .floor = &w->d->set[floor],
			     .of = of };

	snprintf(c.name, sizeof(c.name), "%s, %s page%s", what,
		 state_name[w->state], w->write ? ", write" : ", read");
	return sb_out_case(w->d->out, &c);
}

static int rows(struct work *w, bool first)
{
	int ret = touch_row(w, FIRST);

	if (!ret)
		ret = touch_row(w, AGAIN);
	if (!ret && first)
		ret = page_row(w, ADVISE, POPULATE, "advise",
			       "MADV_POPULATE_WRITE");
	if (!ret && first)
		ret = page_row(w, UNMAP, UNMAP_0, "munmap",
			       "munmap beside the region");
	return ret;
}

/* Rows of one length; only the @first has those that have none. */
static int state_run(struct odp *d, enum state state, bool write, size_t len,
		     bool first)
{
	struct work w = { d, state, write, len };
	struct sb_task task = { .run = round_run,
				.ctx = &w,
				.set = d->set,
				.laps = LAPS,
				.most = 1 };
	int ret = sb_measure(&d->o->plan, &task, 1);

	return ret ? ret : rows(&w, first);
}

static int states_run(struct odp *d)
{
	bool first = true;
	int ret = 0;

	for (size_t i = 0; i < d->o->sizes.n && !ret; i++) {
		size_t len = d->o->sizes.byte[i];

		for (int k = 0; k < 2 * STATES && len && !ret; k++)
			ret = state_run(d, (enum state)(k / 2), k % 2, len,
					first);
		first &= !len;
	}
	if (ret != NOT_OFFERED)
		return ret;
	sb_out_note(d->out, "on demand: not offered by this provider");
	return 0;
}

static int odp_run(const struct sb_options *o, struct sb_out *out)
{
	struct odp *d = calloc(1, sizeof(*d));
	int ret = d ? sb_proc_start(&d->proc, owner_main, NULL, o->pin.cpu[1])
		    : -ENOMEM,
	    end;

	if (ret) {
		free(d);
		return sb_fail("the other process", ret);
	}
	d->o = o;
	d->out = out;
	bench_pin_self(o->pin.cpu[0]);
	d->buf = calloc(1, bench_sizes_largest(&o->sizes) + 1);
	ret = d->buf ? sb_side_open(&d->s) : -ENOMEM;
	if (!ret)
		ret = sb_side_meet(&d->s, d->proc.fd, 0, &d->peer);
	if (!ret)
		ret = states_run(d);
	end = sb_proc_end(&d->proc);
	sb_side_close(&d->s);
	free(d->buf);
	free(d);
	return ret ? ret : end;
}

const struct sb_bench sb_bench_odp = {
	.name = "odp",
	.about = "touch pages that are made on demand",
	.help = "Pages of a region on demand, 64 a round: fresh ones, such "
		"that their owner has\ntouched, prefetched ones; read or "
		"written by a peer, so many bytes from a page\non, and then "
		"again. Floor: process_vm_readv or process_vm_writev of pages "
		"in\nthe same state. Advice, and munmap under the region, for "
		"each page; floor:\nMADV_POPULATE_WRITE, and munmap, of pages "
		"beside it.\n",
	.sizes = "8,4K,16K,64K,256K",
	.quick = "8,64K",
	.axes = { .title = "Paging on demand",
		  .x = "bytes",
		  .y = "us",
		  .log_x = true,
		  .log_y = true },
	.run = odp_run,
};
