/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench reg: registering memory and closing the region, beside mlock(2)
 * and munlock(2) of the same pages, which take turns with it.
 */
#define _GNU_SOURCE
#include "bench/sb_reg.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/clock.h"
#include "bench/sb_crew.h"
#include "bench/sb_subs.h"

enum {
	MEM_SHARE = 3,	     /* a region has at most this part of free memory */
	HUGE_PAGE = 2 << 20, /* bytes */
};

/* What is done to the memory. */
enum what {
	BARE,	   /* mlock, munlock */
	PINNED,	   /* fi_mr_reg, fi_close */
	LOCAL,	   /* likewise, for no peer */
	ON_DEMAND, /* likewise, pages come when they are touched */
	KINDS
};

const char *const sb_reg_lap[SB_REG_LAPS] = { "register", "close", "both" };
const char *const sb_reg_floor[SB_REG_LAPS] = { "mlock", "munlock",
						"mlock + munlock" };

/* Memory that is registered, and how. */
struct work {
	struct sb_side *s; /* whose */
	char *p;	   /* the memory */
	size_t len;	   /* its bytes */
	bool fresh;	   /* its pages are given back before each time */
	enum what what;	   /* is done */
};

/* ---- one time ---- */

static int bare(struct work *w, uint64_t *t)
{
	t[0] = bench_clock_ns();
	if (mlock(w->p, w->len))
		return sb_fail("mlock", -errno);
	t[1] = bench_clock_ns();
	if (munlock(w->p, w->len))
		return sb_fail("munlock", -errno);
	t[2] = bench_clock_ns();
	return 0;
}

static int registered(struct work *w, uint64_t *t)
{
	struct iovec v = { w->p, w->len };
	struct fi_mr_attr a = {
		.mr_iov = &v,
		.iov_count = 1,
		.access = w->what == LOCAL ? FI_SEND | FI_RECV : SB_REMOTE,
		.requested_key = SB_REG_KEY,
	};
	uint64_t flags = w->what == ON_DEMAND ? FI_SHRIMP_ON_DEMAND : 0;
	struct fid_mr *mr;
	int ret;

	t[0] = bench_clock_ns();
	ret = fi_mr_regattr(w->s->domain, &a, flags, &mr);
	if (ret)
		return sb_fail("fi_mr_regattr", ret);
	t[1] = bench_clock_ns();
	ret = fi_close(&mr->fid);
	t[2] = bench_clock_ns();
	return ret ? sb_fail("fi_close", ret) : 0;
}

static int work_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct work *w = ctx;
	uint64_t t[SB_REG_LAPS] = { 0 };
	int ret = 0;

	for (uint64_t i = 0; i < n; i++) {
		if (w->fresh && madvise(w->p, w->len, MADV_DONTNEED))
			return sb_fail("madvise", -errno);
		ret = w->what == BARE ? bare(w, t) : registered(w, t);
		if (ret)
			break;
		sb_set_add(&set[0], (double)(t[1] - t[0]));
		sb_set_add(&set[1], (double)(t[2] - t[1]));
		sb_set_add(&set[2], (double)(t[2] - t[0]));
	}
	return ret;
}

/* ---- a group: the bare calls and what is compared with them ---- */

struct group {
	const struct sb_options *o; /* how long */
	struct sb_out *out;	    /* where to */
	struct sb_side *s;	    /* whose */
	char *p;		    /* the memory */
	size_t len;		    /* its bytes */
	const char *kind;	    /* what memory it is */
	bool fresh;		    /* see struct work */
	struct sb_set set[KINDS][SB_REG_LAPS];
};

static const char *const what_name[KINDS] = {
	[PINNED] = "", [LOCAL] = " local", [ON_DEMAND] = " on demand"
};

/* The limits that doc/performance.md speaks of. */
static double limit(const struct group *g, enum what what, int lap)
{
	if (what == PINNED && lap == 2 && g->len == SB_PAGE && !g->fresh)
		return 1.2;
	if (what == PINNED && lap == 0 && g->len == 256 << 20 && g->fresh)
		return 1.1;
	return 0;
}

static int row_print(struct group *g, enum what what, int lap)
{
	struct sb_case c = {
		.unit = &sb_us,
		.set = &g->set[what][lap],
		.floor = &g->set[BARE][lap],
		.of = sb_reg_floor[lap],
		.most = limit(g, what, lap),
		.most_ratio = true,
		.point = { .x = (double)g->len },
	};
	char size[SB_NAME_MAX];

	snprintf(c.name, sizeof(c.name), "%.8s %.20s%s, %s",
		 sb_size_name(size, g->len), g->kind, what_name[what],
		 sb_reg_lap[lap]);
	snprintf(c.point.panel, SB_NAME_MAX, "%s", sb_reg_lap[lap]);
	snprintf(c.point.series, SB_NAME_MAX, "%.20s%s", g->kind,
		 what_name[what]);
	return sb_out_case(g->out, &c);
}

/* What is in @mask (1 << enum what) and the bare calls take turns. */
static int group_run(struct group *g, unsigned int mask)
{
	struct work w[KINDS];
	struct sb_task task[KINDS];
	size_t n = 0;
	int ret;

	memset(g->set, 0, sizeof(g->set));
	for (int i = 0; i < KINDS; i++) {
		if (!((mask | 1 << BARE) >> i & 1))
			continue;
		w[i] = (struct work){ g->s, g->p, g->len, g->fresh,
				      (enum what)i };
		task[n++] = (struct sb_task){ .run = work_run,
					      .ctx = &w[i],
					      .set = g->set[i],
					      .laps = SB_REG_LAPS };
	}
	ret = sb_measure(&g->o->plan, task, n);
	for (int i = PINNED; i < KINDS && !ret; i++)
		for (int lap = 0; lap < SB_REG_LAPS && !ret; lap++)
			ret = row_print(g, (enum what)i, lap);
	return ret;
}

/* ---- memory ---- */

/* Bytes that the kernel says can be had. */
static uint64_t memory_free(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kb = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb << 10;
}

/* Whether @len bytes can be had and locked; says why not. */
static bool size_allowed(struct group *g, size_t len)
{
	char size[SB_NAME_MAX];
	bool locks;
	void *p;

	sb_size_name(size, len);
	if (len > memory_free() / MEM_SHARE) {
		sb_out_note(g->out, "%s: left out, too little free memory",
			    size);
		return false;
	}
	p = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	locks = p != MAP_FAILED && !mlock2(p, len, MLOCK_ONFAULT);
	if (!locks)
		sb_out_note(g->out, "%s: left out, mlock is refused: %s", size,
			    strerror(errno));
	if (p != MAP_FAILED)
		munmap(p, len);
	return locks;
}

/* Maps g->len bytes, aligned to @align, without their pages. */
static int memory_map(struct group *g, size_t align, int flags, char **base,
		      size_t *whole)
{
	*whole = g->len + align;
	*base = mmap(NULL, *whole, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	if (*base == MAP_FAILED)
		return -errno;
	g->p = *base;
	if (align)
		g->p += (align - (uintptr_t)*base % align) % align;
	return 0;
}

static unsigned int mask_of(const struct group *g)
{
	return 1 << PINNED | (g->len == SB_PAGE ? 1 << LOCAL : 0) |
	       (SB_OFFERS(g->s, advise) ? 1 << ON_DEMAND : 0);
}

/* Small pages: there, then new for each time. */
static int small_run(struct group *g)
{
	size_t whole;
	char *base;
	int ret = memory_map(g, 0, 0, &base, &whole);

	if (ret)
		return sb_fail("memory", ret);
	memset(g->p, 1, g->len);
	g->kind = "present";
	g->fresh = false;
	ret = group_run(g, mask_of(g));
	g->kind = "fresh";
	g->fresh = true;
	if (!ret)
		ret = group_run(g, 1 << PINNED);
	munmap(base, whole);
	return ret;
}

/* Transparent huge pages, as far as the kernel gives them. */
static int thp_run(struct group *g)
{
	size_t whole;
	char *base;
	int ret = memory_map(g, HUGE_PAGE, 0, &base, &whole);

	if (ret)
		return sb_fail("memory", ret);
	g->kind = "THP";
	g->fresh = false;
	if (madvise(g->p, g->len, MADV_HUGEPAGE))
		sb_out_note(g->out, "no transparent huge pages: %s",
			    strerror(errno));
	else
		memset(g->p, 1, g->len);
	if (*g->p)
		ret = group_run(g, 1 << PINNED);
	munmap(base, whole);
	return ret;
}

/* Pages of hugetlbfs, if some are reserved. */
static int hugetlb_run(struct group *g)
{
	size_t whole;
	char *base;
	int ret = memory_map(g, 0, MAP_HUGETLB, &base, &whole);

	if (ret) {
		sb_out_note(g->out, "no pages of hugetlbfs: %s",
			    strerror(-ret));
		return 0;
	}
	memset(g->p, 1, g->len);
	g->kind = "hugetlb";
	g->fresh = false;
	ret = group_run(g, 1 << PINNED);
	munmap(base, whole);
	return ret;
}

static int sizes_run(struct group *g)
{
	int ret = 0;

	for (size_t i = 0; i < g->o->sizes.n && !ret; i++) {
		g->len = g->o->sizes.byte[i];
		if (!g->len || g->len % SB_PAGE || !size_allowed(g, g->len))
			continue;
		ret = small_run(g);
		if (ret || g->len % HUGE_PAGE)
			continue;
		ret = thp_run(g);
		if (!ret)
			ret = hugetlb_run(g);
	}
	return ret;
}

/* ---- all rows ---- */

static int alone_run(const struct sb_options *o, struct sb_out *out,
		     struct sb_side *s)
{
	static struct group g;
	int ret;

	g.o = o;
	g.out = out;
	g.s = s;
	if (!SB_OFFERS(s, advise))
		sb_out_note(out, "on demand: not offered by this provider");
	if (!SB_OFFERS(s, reg_batch))
		sb_out_note(out, "batches: not offered by this provider");
	ret = sizes_run(&g);
	if (!ret && SB_OFFERS(s, reg_batch))
		ret = sb_reg_batches(o, out, s);
	return ret;
}

static int reg_run(const struct sb_options *o, struct sb_out *out)
{
	struct sb_crew crew = { .n = 0 };
	struct sb_side s = { .info = NULL };
	int ret = sb_reg_crew_start(&crew, o->processes), end;

	bench_pin_self(o->pin.cpu[0]);
	if (!ret)
		ret = sb_side_open(&s);
	if (!ret)
		ret = alone_run(o, out, &s);
	if (!ret)
		ret = sb_reg_threads(o, out, &s);
	sb_side_close(&s);
	if (!ret)
		ret = sb_reg_processes(o, out, &crew);
	end = sb_crew_end(&crew);
	return ret ? ret : end;
}

const struct sb_bench sb_bench_reg = {
	.name = "reg",
	.about = "register memory and close the region",
	.help = "Sizes: pages that are there, fresh ones (given back before "
		"each time), huge\nones; on demand, where nothing is pinned; "
		"4K for no peer (local).\nThen batches, for each region; and "
		"threads of one process, and processes, at\nthe same time: 4K "
		"registered and closed, thousands a second for each; "
		"of\nprocesses also beside what one alone reaches, in "
		"turns.\nFloor: mlock and munlock of the same pages, in the "
		"same manner.\n",
	.sizes = "4K,64K,1M,16M,256M,1G",
	.quick = "4K,2M,64M",
	.threads = 2,
	.processes = 4,
	.axes = { .title = "Registration",
		  .x = "bytes",
		  .y = "us",
		  .log_x = true,
		  .log_y = true },
	.run = reg_run,
};
