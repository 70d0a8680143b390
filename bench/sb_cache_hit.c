/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench cache: hits, alone and while another thread unmaps.
 *
 * A munmap(2) interrupts every core that runs a thread of the process, cache
 * or not, so what runs beside one is compared with a floor beside the same
 * one. The thread that unmaps has the second core, and the monitor, which
 * works for it, has it too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/clock.h"
#include "bench/pin.h"
#include "bench/sb_cache.h"
#include "bench/sb_crew.h"
#include "shm/atomic.h"
#include "shm/layout.h"
#include "shm/watch.h"

enum {
	ENTRIES = 10000,       /* at most */
	LEN = 4 * SB_PAGE,     /* bytes of an entry */
	SIZES = 12,	       /* powers of two, from a page on */
	CHURN_BLOCK = 100000,  /* ns of a sample beside the other thread */
	LIMIT_NS = 25,	       /* of a hit without a system call */
	LIMIT_FILE_NS = 1000,  /* of one with */
	LIMIT_CHURN_PCT = 120, /* of the ratio, beside the other thread */
};

/* What is done. */
enum what {
	ADDS,	  /* floor: two locked adds */
	ASK,	  /* floor: the ioctl, of a page that is watched */
	PRIVATE,  /* a hit in private memory */
	PART,	  /* likewise, of a part of an entry */
	IN_TURN,  /* likewise, of each entry */
	DEVICE,	  /* a hit in memory of the device */
	FILE_HIT, /* a hit in a memfd that peers can map */
	KINDS
};

/* What the other thread does meanwhile. */
enum churn {
	QUIET,	   /* there is none */
	UNWATCHED, /* maps a page, touches it, unmaps it */
	WATCHED,   /* likewise, after a hit... and so a miss */
	CHURNS
};

static const char *const churn_name[CHURNS] = {
	[QUIET] = "",
	[UNWATCHED] = ", beside munmap",
	[WATCHED] = ", beside cached munmap",
};

struct hits {
	const struct sb_options *o; /* how long */
	struct sb_out *out;	    /* where to */
	struct sb_cache c;	    /* the side */
	struct sb_pieces m;	    /* private memory */
	struct sb_pieces sizes;	    /* likewise, of all sizes */
	struct sb_pieces asked;	    /* a page that ASK is about */
	struct sb_mem device;	    /* memory of the device */
	char *file;		    /* LEN bytes of a memfd */
	size_t n;		    /* pieces that are entries */
	uint64_t word[2];	    /* of the bare instructions */
	struct sb_set set[KINDS];   /* times */
	double quiet[KINDS];	    /* ratios without the other thread */
};

/* ---- one operation ---- */

struct look {
	struct hits *h;
	enum what what;
	size_t next; /* entry, of IN_TURN */
};

static int adds_do(struct hits *h)
{
	/* a floor: their cost counts, they pair with nothing */
	rnic_raw_add_seqcst((char *)&h->word[0], sizeof(h->word[0]), 1);
	rnic_raw_add_seqcst((char *)&h->word[1], sizeof(h->word[1]), 1);
	return 0;
}

/*
 * What piece @i is registered for. Neighbours differ: they are not merged, and
 * as they touch they are one run of watched memory, of which the kernel allows
 * only so many.
 */
static uint64_t access_of(size_t i)
{
	return i % 2 ? SB_CACHE_LOCAL : SB_REMOTE;
}

/* The next in an order that is not that of addresses. */
static int next_touch(struct look *l)
{
	struct hits *h = l->h;
	size_t n = h->n;

	l->next += n * 3 / 10 + 1;
	if (l->next >= n)
		l->next -= n;
	return sb_cache_touch(&h->c, sb_piece(&h->m, l->next), LEN,
			      access_of(l->next));
}

static int look_do(struct look *l)
{
	struct hits *h = l->h;

	switch (l->what) {
	case ADDS:
		return adds_do(h);
	case ASK:
		return rnic_watch_check((uintptr_t)h->asked.p, h->asked.len);
	case PRIVATE:
		return sb_cache_touch(&h->c, h->m.p, LEN, SB_REMOTE);
	case PART:
		return sb_cache_touch(&h->c, h->m.p + SB_PAGE, SB_PAGE,
				      SB_REMOTE);
	case IN_TURN:
		return next_touch(l);
	case DEVICE:
		return sb_cache_touch(&h->c, h->device.p, LEN, SB_REMOTE);
	default:
		return sb_cache_touch(&h->c, h->file, LEN, SB_REMOTE);
	}
}

static int look_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct look *l = ctx;
	int ret = 0;

	(void)set;
	for (uint64_t i = 0; i < n && !ret; i++)
		ret = look_do(l);
	/* while a change is under way the kernel says so */
	return l->what == ASK ? 0 : ret;
}

/* ---- the other thread ---- */

struct unmapper {
	struct hits *h;
	enum churn churn;
	rnic_a32 stop;	   /* 1: end */
	int ret;	   /* what it ended with */
	struct sb_set set; /* times of munmap */
};

static int unmap_one(struct unmapper *u)
{
	struct sb_pieces m;
	int ret = sb_pieces_map(&m, 1, SB_PAGE, true);
	uint64_t t;

	if (!ret && u->churn == WATCHED)
		ret = sb_cache_touch(&u->h->c, m.p, m.len, SB_REMOTE);
	t = bench_clock_ns();
	sb_pieces_unmap(&m);
	sb_set_add(&u->set, (double)(bench_clock_ns() - t));
	return ret;
}

static void *unmapper_main(void *arg)
{
	struct unmapper *u = arg;

	/* relaxed: orders nothing, the join does */
	while (!u->ret && !rnic_load32_relaxed(&u->stop))
		u->ret = unmap_one(u);
	return NULL;
}

/* Measures @task beside the other thread, if there is one. */
static int beside(struct unmapper *u, struct sb_task *task, size_t n)
{
	pthread_t id;
	int ret;

	if (u->churn == QUIET)
		return sb_measure(&u->h->o->plan, task, n);
	/* it is bound before it runs: this thread leaves no core to it */
	bench_pin_self(u->h->o->pin.cpu[1]);
	ret = -pthread_create(&id, NULL, unmapper_main, u);
	bench_pin_self(u->h->o->pin.cpu[0]);
	if (ret)
		return sb_fail("a thread", ret);
	ret = sb_measure(&u->h->o->plan, task, n);
	/* relaxed: it need not end at once */
	rnic_store32_relaxed(&u->stop, 1);
	pthread_join(id, NULL);
	return ret ? ret : u->ret;
}

/* ---- rows ---- */

static bool applies(const struct hits *h, enum what what)
{
	if (what == ASK || what == FILE_HIT)
		return h->file && h->n == 1;
	if (what == DEVICE)
		return h->n == 1;
	if (what == PRIVATE || what == PART)
		return h->n;
	return what == ADDS || h->n > 1;
}

static void name(char *to, const struct hits *h, enum what what, enum churn c)
{
	static const char *const text[KINDS] = {
		[PRIVATE] = "private",		[PART] = "part of private",
		[IN_TURN] = "private, in turn", [DEVICE] = "device memory",
		[FILE_HIT] = "sealed memfd",
	};
	char of[16] = "";

	if (what != DEVICE && what != FILE_HIT)
		snprintf(of, sizeof(of), ", %u %s", (unsigned int)h->n % 100000,
			 h->n == 1 ? "entry" : "entries");
	snprintf(to, SB_NAME_MAX, "hit, %.16s%.15s%.22s", text[what], of,
		 churn_name[c]);
}

/* The limits that doc/performance.md speaks of. */
static void limit_set(struct sb_case *c, const struct hits *h, enum what what,
		      enum churn churn)
{
	if (churn != QUIET && what != FILE_HIT) {
		c->most = h->quiet[what] * LIMIT_CHURN_PCT / 100;
		c->most_ratio = true;
	} else if (churn == QUIET && what == FILE_HIT) {
		c->most = LIMIT_FILE_NS;
	} else if (churn == QUIET && (what != IN_TURN || h->n <= 100)) {
		c->most = LIMIT_NS;
	}
}

static int row(struct hits *h, enum what what, enum churn churn)
{
	enum what floor = what == FILE_HIT ? ASK : ADDS;
	struct sb_case c = {
		.unit = &sb_ns,
		.set = &h->set[what],
		.floor = &h->set[floor],
		.of = floor == ASK ? "the bare ioctl" : "two locked adds",
	};

	if (!h->set[what].n)
		return 0;
	if (churn == QUIET)
		h->quiet[what] = sb_set_quantile(c.set, 0.5) /
				 sb_set_quantile(c.floor, 0.5);
	limit_set(&c, h, what, churn);
	name(c.name, h, what, churn);
	return sb_out_case(h->out, &c);
}

static int unmap_row(struct hits *h, struct unmapper *u)
{
	struct sb_case c = { .unit = &sb_us, .set = &u->set };

	snprintf(c.name, sizeof(c.name), "munmap of %s beside hits",
		 u->churn == WATCHED ? "cached" : "a page");
	return u->churn == QUIET ? 0 : sb_out_case(h->out, &c);
}

static int case_run(struct hits *h, enum churn churn)
{
	static struct unmapper u;
	struct sb_task task[KINDS];
	struct look l[KINDS];
	size_t n = 0;
	int ret;

	memset(h->set, 0, sizeof(h->set));
	memset(&u, 0, sizeof(u));
	u.h = h;
	u.churn = churn;
	for (int i = 0; i < KINDS; i++) {
		if (!applies(h, (enum what)i))
			continue;
		l[i] = (struct look){ h, (enum what)i, 0 };
		task[n++] = (struct sb_task){
			.run = look_run,
			.ctx = &l[i],
			.set = &h->set[i],
			.block_ns = churn == QUIET ? 0 : CHURN_BLOCK,
		};
	}
	ret = beside(&u, task, n);
	for (int i = PRIVATE; i < KINDS && !ret; i++)
		ret = row(h, (enum what)i, churn);
	return ret ? ret : unmap_row(h, &u);
}

/* ---- entries ---- */

static int entries_make(struct hits *h, size_t n)
{
	int ret = 0;

	for (; h->n < n && !ret; h->n++)
		ret = sb_cache_touch(&h->c, sb_piece(&h->m, h->n), LEN,
				     access_of(h->n));
	return ret;
}

/* A part of the largest is found among all levels of the index. */
static int sizes_run(struct hits *h)
{
	struct look l = { h, PART, 0 }, add = { h, ADDS, 0 };
	struct sb_task task[] = {
		{ .run = look_run, .ctx = &l, .set = &h->set[PART] },
		{ .run = look_run, .ctx = &add, .set = &h->set[ADDS] },
	};
	struct sb_case c = { .unit = &sb_ns,
			     .set = &h->set[PART],
			     .floor = &h->set[ADDS],
			     .of = "two locked adds" };
	struct sb_pieces m = h->m;
	int ret = 0;

	for (int i = 0; i < SIZES && !ret; i++)
		ret = sb_cache_touch(&h->c, sb_piece(&h->sizes, (size_t)i),
				     (size_t)SB_PAGE << i, SB_REMOTE);
	h->m = h->sizes;
	h->m.p = sb_piece(&h->sizes, SIZES - 1);
	if (!ret)
		ret = sb_measure(&h->o->plan, task, 2);
	h->m = m;
	snprintf(c.name, sizeof(c.name), "hit, part of private, %d sizes",
		 SIZES);
	return ret ? ret : sb_out_case(h->out, &c);
}

static int stages_run(struct hits *h)
{
	static const size_t stage[] = { 1, 100, ENTRIES };
	int ret = 0;

	if (!h->c.watches) {
		sb_out_note(h->out, "private memory: left out, it cannot be "
				    "watched here");
		return case_run(h, QUIET);
	}
	for (size_t i = 0; i < sizeof(stage) / sizeof(*stage) && !ret; i++) {
		ret = entries_make(h, stage[i]);
		for (int c = QUIET; c < CHURNS && !ret; c++)
			if (c == QUIET || h->n == 1)
				ret = case_run(h, (enum churn)c);
	}
	return ret ? ret : sizes_run(h);
}

/* ---- threads ---- */

enum { OWN_ADDS, OWN, SAME_ADDS, SAME, MANY };

struct member {
	struct hits *h;
	size_t i;			      /* its entry */
	uint64_t word[2 * RNIC_LINE / 8 * 2]; /* lines of its own */
};

/* sb_work_fn */
static int member_work(void *ctx, unsigned int what, uint64_t n)
{
	struct member *m = ctx;
	struct hits *h = m->h;
	char *p = sb_piece(&h->m, what == SAME ? 0 : m->i);
	uint64_t *w = what == SAME_ADDS ? h->word : &m->word[RNIC_LINE / 8];
	int ret = 0;

	for (uint64_t i = 0; i < n && !ret; i++) {
		if (what == OWN || what == SAME) {
			ret = sb_cache_touch(
				&h->c, p, LEN,
				access_of(what == SAME ? 0 : m->i));
			continue;
		}
		/* as in adds_do() */
		rnic_raw_add_seqcst((char *)&w[0], sizeof(*w), 1);
		rnic_raw_add_seqcst((char *)&w[1], sizeof(*w), 1);
	}
	return ret;
}

static int threads_row(struct hits *h, struct sb_crew *crew, unsigned int n)
{
	static struct sb_set set[MANY];
	int ret = sb_crew_measure(crew, n, MANY, &h->o->plan, set);

	for (int same = 0; same < 2 && !ret; same++) {
		struct sb_case c = {
			.unit = &sb_ns,
			.set = &set[same ? SAME : OWN],
			.floor = &set[same ? SAME_ADDS : OWN_ADDS],
			.of = same ? "two locked adds, one line"
				   : "two locked adds, a line each",
		};

		snprintf(c.name, sizeof(c.name), "hit, %u threads, %s", n,
			 same ? "the same entry" : "an entry each");
		ret = sb_out_case(h->out, &c);
	}
	return ret;
}

static int threads_run(struct hits *h)
{
	static struct member m[SB_CREW_MOST];
	unsigned int most = h->o->threads;
	struct sb_crew crew = { .n = most, .work = member_work };
	int ret = 0;

	if (!h->c.watches)
		return 0;
	for (unsigned int i = 0; i < most; i++) {
		m[i].h = h;
		m[i].i = i + 1;
		crew.ctx[i] = &m[i];
	}
	sb_cpus_all();
	for (unsigned int n = 2; n <= most && !ret; n++)
		if (!(n & (n - 1)) || n == most)
			ret = threads_row(h, &crew, n);
	bench_pin_self(h->o->pin.cpu[0]);
	return ret;
}

/* ---- memory ---- */

/* A memfd of the kind that peers can map. */
static int file_map(struct hits *h)
{
	int fd = memfd_create("sb_cache", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	int ret = fd < 0 ? -errno : 0;
	void *p = MAP_FAILED;

	if (!ret &&
	    (ftruncate(fd, LEN) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)))
		ret = -errno;
	if (!ret)
		p = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_POPULATE, fd, 0);
	if (!ret && p == MAP_FAILED)
		ret = -errno;
	if (ret)
		sb_fail("a memfd", ret);
	else
		h->file = p;
	if (!ret)
		ret = sb_cache_touch(&h->c, h->file, LEN, SB_REMOTE);
	if (fd >= 0)
		close(fd);
	return ret;
}

/* A page that this program watches itself, for the floor. */
static int ask_open(struct hits *h)
{
	int ret = sb_pieces_map(&h->asked, 1, SB_PAGE, true);
	uint64_t at = (uintptr_t)h->asked.p;

	if (ret)
		return ret;
	ret = rnic_watch_open();
	if (ret >= 0)
		ret = rnic_watch_get(at, SB_PAGE);
	if (!ret)
		ret = rnic_watch_arm(at, SB_PAGE);
	return ret ? sb_fail("watching a page", ret) : 0;
}

static int memory_open(struct hits *h)
{
	int ret = sb_pieces_map(&h->m, ENTRIES, LEN, false);

	h->m.stride = LEN;
	if (!ret)
		ret = sb_pieces_map(&h->sizes, SIZES,
				    (size_t)SB_PAGE << (SIZES - 1), false);
	if (!ret)
		ret = sb_mem_new(&h->c.s, &h->device, true, LEN);
	if (!ret && h->c.watches)
		ret = ask_open(h);
	if (!ret && h->c.watches)
		ret = file_map(h);
	return ret;
}

static void memory_close(struct hits *h)
{
	if (h->c.ops)
		h->c.ops->flush(&h->c.s.domain->fid);
	/* nobody reads the events of our own descriptor */
	rnic_watch_close();
	sb_pieces_unmap(&h->asked);
	sb_pieces_unmap(&h->sizes);
	sb_pieces_unmap(&h->m);
	if (h->file)
		munmap(h->file, LEN);
	h->file = NULL;
	sb_mem_free(&h->c.s, &h->device);
}

int sb_cache_hits(const struct sb_options *o, struct sb_out *out)
{
	const struct sb_cache_set set = { .value = {
						  [SB_CACHE_MODE] = "all",
						  [SB_CACHE_ENTRIES] = "20000",
					  } };
	static struct hits h;
	int ret;

	h.o = o;
	h.out = out;
	/* the monitor stays where it is started */
	bench_pin_self(o->pin.cpu[1]);
	ret = sb_cache_open(&h.c, &set);
	bench_pin_self(o->pin.cpu[0]);
	if (!ret)
		ret = memory_open(&h);
	if (!ret)
		ret = stages_run(&h);
	if (!ret)
		ret = threads_run(&h);
	memory_close(&h);
	sb_cache_close(&h.c);
	return ret;
}
