/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench fence: how long fi_close() of a region takes, by what peers
 * have done with its key and what they are doing now.
 *
 * Nothing is pinned here, so that what is measured is the fence; reg has the
 * rest, and so has the row of 100,000 regions.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/clock.h"
#include "bench/sb_fence_many.h"
#include "bench/sb_floor.h"
#include "bench/sb_peer.h"
#include "bench/sb_subs.h"

enum {
	KEY_STREAM = 1, /* of what the peer streams, or looks at */
	KEY_OWN = 2,	/* of a region that is closed while it is streamed */
	KEY_FIRST = 16, /* keys of regions that are closed */
	KEYS = 1 << 20, /* until they come again */
	STREAM_LEN = 16 << 20, /* bytes of an operation of the peer */
	STOP_MS = 50,	       /* the peer is stopped for so long */
	AMID_US = 200,	       /* an operation is under way for about that */
};

/* What is measured. */
enum what {
	BARRIER,     /* floor: bare membarrier */
	CHUNK,	     /* floor: a chunk copied */
	LOCAL,	     /* a region that no peer may use */
	UNANNOUNCED, /* no peer has used it */
	ANNOUNCED,   /* the peer has */
	OWN,	     /* the peer is in the middle of it */
	STOPPED, /* the peer has used it, and is stopped in some operation */
	KINDS
};

static const char *const what_name[KINDS] = {
	[LOCAL] = "never shared",  [UNANNOUNCED] = "unannounced",
	[ANNOUNCED] = "announced", [OWN] = "in the middle of a transfer of it",
	[STOPPED] = "announced",
};

struct fence {
	const struct sb_options *o;   /* how long */
	struct sb_out *out;	      /* where to */
	struct sb_side s;	      /* the owner */
	struct sb_peer peer;	      /* who uses keys */
	struct sb_mem mem;	      /* what it streams */
	char *page;		      /* what is registered and closed */
	char *copy;		      /* a chunk */
	uint64_t key;		      /* of the next region */
	struct sb_set set[KINDS + 1]; /* the last: how long it was stopped */
};

struct work {
	struct fence *f;
	enum what what;
};

/* ---- one close ---- */

static int region_open(struct fence *f, enum what what, uint64_t *key,
		       struct fid_mr **mr)
{
	uint64_t access = what == LOCAL ? FI_SEND | FI_RECV : SB_REMOTE;
	int ret;

	*key = KEY_FIRST + f->key++ % KEYS;
	if (what == OWN) {
		*key = KEY_OWN;
		ret = fi_mr_reg(f->s.domain, f->mem.p, f->mem.len, access, 0,
				*key, 0, mr, NULL);
	} else {
		ret = fi_mr_reg(f->s.domain, f->page, SB_PAGE, access, 0, *key,
				0, mr, NULL);
	}
	return ret ? sb_fail("fi_mr_reg", ret) : 0;
}

/* Makes the peer do what the case is about. */
static int peer_uses(struct fence *f, enum what what, uint64_t key)
{
	int ret;

	if (what == ANNOUNCED || what == STOPPED)
		return sb_peer_touch(&f->peer, key);
	if (what != OWN)
		return 0;
	ret = sb_peer_mode(&f->peer, SB_PEER_STREAM, key, STREAM_LEN);
	usleep(AMID_US);
	return ret;
}

static void *awaken(void *arg)
{
	usleep(STOP_MS * 1000);
	kill(*(pid_t *)arg, SIGCONT);
	return NULL;
}

/* Stops the peer; a thread lets it go on. */
static int peer_stop(struct fence *f, pthread_t *thread)
{
	pid_t pid = f->peer.proc.pid;
	int status, ret;

	if (kill(pid, SIGSTOP) || waitpid(pid, &status, WUNTRACED) != pid)
		return sb_fail("stopping the peer", -errno);
	if (!WIFSTOPPED(status))
		return sb_fail("the peer", -ECHILD);
	ret = pthread_create(thread, NULL, awaken, &f->peer.proc.pid);
	if (ret)
		kill(pid, SIGCONT);
	return -ret;
}

/* A close while the peer is stopped; it may or may not wait for it. */
static int close_stopped(struct fence *f, struct fid_mr *mr, struct sb_set *set)
{
	pthread_t thread;
	uint64_t begin = bench_clock_ns(), t;
	int ret = peer_stop(f, &thread), closed;

	t = bench_clock_ns();
	closed = fi_close(&mr->fid);
	sb_set_add(set, (double)(bench_clock_ns() - t));
	if (ret)
		return ret;
	pthread_join(thread, NULL);
	sb_set_add(&f->set[KINDS], (double)(bench_clock_ns() - begin));
	return closed;
}

static int close_timed(struct fid_mr *mr, struct sb_set *set)
{
	uint64_t begin = bench_clock_ns();
	int ret = fi_close(&mr->fid);

	sb_set_add(set, (double)(bench_clock_ns() - begin));
	return ret ? sb_fail("fi_close", ret) : 0;
}

static int close_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct work *w = ctx;
	int ret = 0;

	for (uint64_t i = 0; i < n && !ret; i++) {
		struct fid_mr *mr;
		uint64_t key;

		ret = region_open(w->f, w->what, &key, &mr);
		if (ret)
			break;
		ret = peer_uses(w->f, w->what, key);
		if (ret)
			fi_close(&mr->fid);
		else if (w->what == STOPPED)
			ret = close_stopped(w->f, mr, set);
		else
			ret = close_timed(mr, set);
	}
	return ret;
}

static int chunk_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct work *w = ctx;

	(void)set;
	for (uint64_t i = 0; i < n; i++) {
		memcpy(w->f->copy, w->f->mem.p, SB_CHUNK);
		__asm__ __volatile__("" ::: "memory");
	}
	return 0;
}

/* ---- groups: the peer is in one state ---- */

struct group {
	const char *name;	/* of the state */
	enum sb_peer_mode mode; /* of the peer */
	enum what floor;	/* for all */
	const char *of;		/* its name */
	unsigned int mask;	/* 1 << enum what */
};

static const struct group groups[] = {
	{ "peer asleep", SB_PEER_SLEEP, BARRIER, "membarrier",
	  1 << LOCAL | 1 << UNANNOUNCED | 1 << ANNOUNCED },
	{ "peer looks up", SB_PEER_LOOK, BARRIER, "membarrier",
	  1 << LOCAL | 1 << UNANNOUNCED | 1 << ANNOUNCED },
	{ "peer streams", SB_PEER_STREAM, CHUNK, "memcpy of a chunk",
	  1 << LOCAL | 1 << UNANNOUNCED | 1 << ANNOUNCED | 1 << OWN },
	{ "peer stopped, streaming", SB_PEER_STREAM, KINDS, "the stop",
	  1 << STOPPED },
};

static struct sb_task task_of(struct fence *f, struct work *w, enum what what)
{
	struct sb_task t = {
		.run = close_run, .ctx = w, .set = &f->set[what], .laps = 1
	};

	*w = (struct work){ f, what };
	if (what == BARRIER)
		t.run = sb_floor_barrier;
	if (what == CHUNK)
		t.run = chunk_run;
	if (what == BARRIER || what == CHUNK)
		t.laps = 0;
	/* the peer is back at its stream before the next one */
	if (what == STOPPED || what == OWN)
		t.most = 1;
	return t;
}

static int group_rows(struct fence *f, const struct group *g)
{
	int ret = 0;

	for (int i = LOCAL; i < KINDS && !ret; i++) {
		struct sb_case c = { .unit = &sb_us,
				     .set = &f->set[i],
				     .floor = &f->set[g->floor],
				     .of = g->of };

		if (!(g->mask >> i & 1))
			continue;
		snprintf(c.name, sizeof(c.name), "%s, %s", what_name[i],
			 i == OWN ? "16M" : g->name);
		ret = sb_out_case(f->out, &c);
	}
	return ret;
}

static int group_run(struct fence *f, const struct group *g)
{
	struct sb_task task[KINDS];
	struct work w[KINDS];
	size_t n = 0;
	int ret = sb_peer_mode(&f->peer, g->mode, KEY_STREAM, STREAM_LEN);

	memset(f->set, 0, sizeof(f->set));
	if (g->floor < KINDS)
		task[n] = task_of(f, &w[n], g->floor), n++;
	for (int i = LOCAL; i < OWN; i++)
		if (g->mask >> i & 1)
			task[n] = task_of(f, &w[n], (enum what)i), n++;
	if (g->mask >> STOPPED & 1)
		task[n] = task_of(f, &w[n], STOPPED), n++;
	if (!ret)
		ret = sb_measure(&f->o->plan, task, n);
	/* it changes what the peer streams, so it does not take turns */
	task[0] = task_of(f, &w[0], OWN);
	if (!ret && g->mask >> OWN & 1)
		ret = sb_measure(&f->o->plan, task, 1);
	return ret ? ret : group_rows(f, g);
}

static int fence_open(struct fence *f)
{
	int ret = sb_side_open(&f->s);

	if (!ret)
		ret = sb_mem_new(&f->s, &f->mem, true, STREAM_LEN);
	if (!ret)
		ret = sb_mem_give(&f->s, &f->mem, KEY_STREAM);
	if (!ret)
		ret = sb_peer_meet(&f->peer, &f->s);
	f->page = aligned_alloc(SB_PAGE, SB_PAGE);
	f->copy = aligned_alloc(SB_PAGE, SB_CHUNK);
	if (!ret && (!f->page || !f->copy))
		ret = -FI_ENOMEM;
	if (ret)
		return ret;
	memset(f->page, 1, SB_PAGE);
	memset(f->copy, 1, SB_CHUNK);
	return 0;
}

static int fence_close(struct fence *f)
{
	int ret = sb_peer_end(&f->peer);

	sb_mem_free(&f->s, &f->mem);
	sb_side_close(&f->s);
	free(f->page);
	free(f->copy);
	return ret;
}

static int fence_run(const struct sb_options *o, struct sb_out *out)
{
	struct sb_proc many = { .pid = 0 };
	struct fence *f = calloc(1, sizeof(*f));
	int ret = f ? sb_fence_many_start(&many) : -ENOMEM, end;

	if (!ret)
		ret = sb_peer_start(&f->peer, o->pin.cpu[1]);
	if (ret)
		goto out;
	f->o = o;
	f->out = out;
	setenv("FI_SHRIMP_PIN", "off", 0);
	bench_pin_self(o->pin.cpu[0]);
	ret = fence_open(f);
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups) && !ret; i++)
		ret = group_run(f, &groups[i]);
	end = fence_close(f);
	if (!ret)
		ret = end;
	if (!ret)
		ret = sb_fence_many_run(&many, o, out);
out:
	end = sb_proc_end(&many);
	free(f);
	return ret ? ret : end;
}

const struct sb_bench sb_bench_fence = {
	.name = "fence",
	.about = "close a region whose key peers know",
	.help = "By what the peer has done with the key: nothing, it could not "
		"(never shared),\nnothing (unannounced), a read (announced); and "
		"by what it does meanwhile: sleeps,\nreads 8 bytes of another "
		"region, streams 16M reads of it, streams the region that\nis "
		"closed, is stopped (SIGSTOP) for 50 ms. Floor: a bare "
		"membarrier, the copy of\none chunk (512K), the stop. Nothing is "
		"pinned.\nThen, pinned, 100,000 regions of a page (--quick: "
		"10,000) opened one after the\nother, and closed; floor: mlock "
		"and munlock of each.\n",
	.axes = { .title = "Close", .x = "", .y = "us" },
	.run = fence_run,
};
