/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench reg: many regions, by one call and by many who register at the
 * same time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/clock.h"
#include "bench/sb_crew.h"
#include "bench/sb_reg.h"

/* ---- batches ---- */

enum { BATCH_MOST = 1024 };

/* How the regions of a batch are made. */
enum how {
	HOW_BARE,  /* mlock of each */
	HOW_EACH,  /* a call each */
	HOW_BATCH, /* one call */
	HOWS
};

struct batch {
	struct sb_side *s;		    /* whose */
	enum how how;			    /* made */
	size_t n;			    /* regions */
	char *p;			    /* a page each */
	struct iovec iov[BATCH_MOST];	    /* likewise */
	struct fi_mr_attr attr[BATCH_MOST]; /* likewise */
	struct fid_mr *mr[BATCH_MOST];	    /* likewise */
};

static int batch_make(struct batch *b)
{
	int ret = 0;

	if (b->how == HOW_BATCH)
		return b->s->mr->reg_batch(&b->s->domain->fid, b->attr, b->n, 0,
					   b->mr);
	for (size_t i = 0; i < b->n && !ret; i++)
		ret = b->how == HOW_BARE
			      ? mlock(b->p + i * SB_PAGE, SB_PAGE)
			      : fi_mr_regattr(b->s->domain, &b->attr[i], 0,
					      &b->mr[i]);
	return b->how == HOW_BARE && ret ? -errno : ret;
}

static int batch_close(struct batch *b)
{
	int ret = 0;

	for (size_t i = 0; i < b->n && !ret; i++)
		ret = b->how == HOW_BARE ? munlock(b->p + i * SB_PAGE, SB_PAGE)
					 : fi_close(&b->mr[i]->fid);
	return b->how == HOW_BARE && ret ? -errno : ret;
}

static int batch_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct batch *b = ctx;
	uint64_t t[SB_REG_LAPS];
	double each = (double)b->n;

	for (uint64_t i = 0; i < n; i++) {
		int ret;

		t[0] = bench_clock_ns();
		ret = batch_make(b);
		t[1] = bench_clock_ns();
		if (!ret)
			ret = batch_close(b);
		t[2] = bench_clock_ns();
		if (ret)
			return sb_fail("a batch", ret);
		sb_set_add(&set[0], (double)(t[1] - t[0]) / each);
		sb_set_add(&set[1], (double)(t[2] - t[1]) / each);
		sb_set_add(&set[2], (double)(t[2] - t[0]) / each);
	}
	return 0;
}

static void batch_init(struct batch *b, struct sb_side *s, enum how how,
		       size_t n, char *p)
{
	b->s = s;
	b->how = how;
	b->n = n;
	b->p = p;
	for (size_t i = 0; i < n; i++) {
		b->iov[i] = (struct iovec){ p + i * SB_PAGE, SB_PAGE };
		b->attr[i] = (struct fi_mr_attr){
			.mr_iov = &b->iov[i],
			.iov_count = 1,
			.access = SB_REMOTE,
			.requested_key = SB_REG_KEY + i,
		};
	}
}

static int batch_rows(struct sb_out *out, struct sb_set (*set)[SB_REG_LAPS],
		      size_t n)
{
	static const char *const how_name[HOWS] = { "", "one by one", "batch" };
	int ret = 0;

	for (int h = HOW_EACH; h < HOWS; h++)
		for (int lap = 0; lap < SB_REG_LAPS && !ret; lap++) {
			struct sb_case c = { .unit = &sb_us,
					     .set = &set[h][lap],
					     .floor = &set[HOW_BARE][lap],
					     .of = sb_reg_floor[lap] };

			snprintf(c.name, sizeof(c.name),
				 "4K, %s of %zu, each, %s", how_name[h], n,
				 sb_reg_lap[lap]);
			ret = sb_out_case(out, &c);
		}
	return ret;
}

static int batch_measure(const struct sb_options *o, struct sb_out *out,
			 struct batch *b, struct sb_side *s, size_t n)
{
	static struct sb_set set[HOWS][SB_REG_LAPS];
	struct sb_task task[HOWS];
	size_t len = n * SB_PAGE;
	int ret;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		return sb_fail("memory", -errno);
	for (int h = 0; h < HOWS; h++) {
		batch_init(&b[h], s, (enum how)h, n, p);
		task[h] = (struct sb_task){ .run = batch_run,
					    .ctx = &b[h],
					    .set = set[h],
					    .laps = SB_REG_LAPS };
	}
	ret = sb_measure(&o->plan, task, HOWS);
	munmap(p, len);
	return ret ? ret : batch_rows(out, set, n);
}

int sb_reg_batches(const struct sb_options *o, struct sb_out *out,
		   struct sb_side *s)
{
	static const size_t count[] = { 16, 128, BATCH_MOST };
	struct batch *b = calloc(HOWS, sizeof(*b));
	int ret = 0;

	if (!b)
		return -ENOMEM;
	for (int i = 0; i < (o->quick ? 2 : 3) && !ret; i++)
		ret = batch_measure(o, out, b, s, count[i]);
	free(b);
	return ret;
}

/* ---- many at the same time ---- */

/* A worker: it registers and closes its page. */
struct member {
	struct sb_side *s; /* its own, or its process's */
	char *p;	   /* a page */
	uint64_t key;	   /* asked for */
};

enum { MANY_BARE, MANY_OURS, MANY };

/* Processes share nothing: that of one alone which each has at least. */
static const double least_flat = 0.9;

/* sb_work_fn. */
static int member_work(void *ctx, unsigned int what, uint64_t n)
{
	struct member *m = ctx;
	struct fid_mr *mr;
	int ret = 0;

	for (uint64_t i = 0; i < n && !ret; i++) {
		if (what == MANY_BARE) {
			if (mlock(m->p, SB_PAGE) || munlock(m->p, SB_PAGE))
				ret = sb_fail("mlock", -errno);
			continue;
		}
		ret = fi_mr_reg(m->s->domain, m->p, SB_PAGE, SB_REMOTE, 0,
				m->key, 0, &mr, NULL);
		if (!ret)
			ret = fi_close(&mr->fid);
		if (ret)
			sb_fail("registration", ret);
	}
	return ret;
}

/* A crew and its rows. */
struct many {
	const struct sb_options *o; /* how long */
	struct sb_out *out;	    /* where to */
	struct sb_crew *crew;	    /* threads or processes */
	bool flat;		    /* each must be as fast as one alone */
	unsigned int idle;	    /* cores that they can have */
};

/* Times of one alone take turns with the others. */
static int measure(struct many *m, unsigned int n, struct sb_set *set)
{
	const struct sb_share share[] = { { n, MANY_BARE },
					  { n, MANY_OURS },
					  { 1, MANY_OURS } };

	return sb_crew_share(m->crew, share, m->flat && n > 1 ? 3 : 2,
			     &m->o->plan, set);
}

static int rows_of(void *ctx, unsigned int n)
{
	struct many *m = ctx;
	char who[SB_NAME_MAX];
	static struct sb_set set[MANY + 1];
	struct sb_case c = {
		.unit = &sb_kps,
		.set = &set[MANY_OURS],
		.floor = &set[MANY_BARE],
		.of = sb_reg_floor[2],
	};
	int ret = measure(m, n, set);

	sb_crew_name(who, m->crew, n);
	snprintf(c.name, sizeof(c.name), "4K, %.16s, each, both", who);
	if (!ret)
		ret = sb_out_case(m->out, &c);
	if (ret || !m->flat || n == 1)
		return ret;
	snprintf(c.name, sizeof(c.name), "4K, %.16s, each, beside one", who);
	c.floor = &set[MANY];
	c.of = "one alone";
	c.least = n <= m->idle ? least_flat : 0;
	return sb_out_case(m->out, &c);
}

int sb_reg_threads(const struct sb_options *o, struct sb_out *out,
		   struct sb_side *s)
{
	struct member m[SB_CREW_MOST];
	struct sb_crew crew = { .n = o->threads, .work = member_work };
	struct many many = { o, out, &crew, false, 0 };
	size_t len = 2 * SB_PAGE * (size_t)o->threads;
	int ret;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		return sb_fail("memory", -errno);
	for (unsigned int i = 0; i < o->threads; i++) {
		m[i] = (struct member){ s, p + 2 * SB_PAGE * (size_t)i,
					SB_REG_KEY + i };
		crew.ctx[i] = &m[i];
	}
	ret = sb_crew_counts(&crew, rows_of, &many);
	munmap(p, len);
	return ret;
}

/* A process of the crew; its device is opened at the first order. */
static int process_main(int fd, void *arg)
{
	struct sb_side s = { .info = NULL };
	struct sb_mem mem = { .p = NULL };
	struct member m = { .s = &s, .key = SB_REG_KEY };
	int ret = sb_side_open(&s);

	(void)arg;
	if (!ret)
		ret = sb_mem_new(&s, &mem, false, SB_PAGE);
	m.p = mem.p;
	if (!ret)
		ret = sb_crew_obey(fd, member_work, &m);
	sb_mem_free(&s, &mem);
	sb_side_close(&s);
	return ret;
}

int sb_reg_crew_start(struct sb_crew *crew, unsigned int n)
{
	return sb_crew_start(crew, n, process_main);
}

int sb_reg_processes(const struct sb_options *o, struct sb_out *out,
		     struct sb_crew *crew)
{
	struct many m = { o, out, crew, true, sb_cpus_idle() };

	if (m.idle < 2 && crew->n > 1)
		sb_out_note(out,
			    "%u idle core%s: several processes have no limit",
			    m.idle, m.idle == 1 ? "" : "s");
	return sb_crew_counts(crew, rows_of, &m);
}
