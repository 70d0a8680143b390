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
	PEERS = 8,	       /* at most */
};

/*
 * Times of a chunk: a peer that is in the middle of a transfer leaves when the
 * chunk ends; the fence comes before that.
 */
static const double limit_chunk = 1.5;

/* What is measured. */
enum what {
	BARRIER,     /* floor: bare membarrier */
	CHUNK,	     /* floor: a chunk copied by the peer */
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
	struct sb_peer peer[PEERS];   /* who uses keys */
	unsigned int attached;	      /* so many of them have come */
	struct sb_mem mem;	      /* what it streams */
	char *page;		      /* what is registered and closed */
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

/* Makes the peers do what the case is about. */
static int peers_use(struct fence *f, enum what what, uint64_t key)
{
	int ret = 0;

	if (what == OWN) {
		ret = sb_peer_mode(&f->peer[0], SB_PEER_STREAM, key,
				   STREAM_LEN);
		usleep(AMID_US);
	}
	for (unsigned int i = 0; i < f->attached && !ret; i++)
		if (what == ANNOUNCED || what == STOPPED)
			ret = sb_peer_touch(&f->peer[i], key);
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
	pid_t pid = f->peer[0].proc.pid;
	int status, ret;

	if (kill(pid, SIGSTOP) || waitpid(pid, &status, WUNTRACED) != pid)
		return sb_fail("stopping the peer", -errno);
	if (!WIFSTOPPED(status))
		return sb_fail("the peer", -ECHILD);
	ret = pthread_create(thread, NULL, awaken, &f->peer[0].proc.pid);
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
		ret = peers_use(w->f, w->what, key);
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
	uint64_t ns;
	int ret = 0;

	for (uint64_t i = 0; i < n && !ret; i++) {
		ret = sb_peer_copy(&w->f->peer[0], SB_CHUNK, &ns);
		if (!ret)
			sb_set_add(set, (double)ns);
	}
	return ret;
}

/* ---- groups: the peer is in one state ---- */

struct group {
	const char *name;	/* of the state */
	enum sb_peer_mode mode; /* of the peer */
	enum what floor;	/* for all */
	const char *of;		/* its name */
	unsigned int mask;	/* 1 << enum what */
	const char *panel;	/* where it is drawn, by peers; NULL: nowhere */
};

enum { ASLEEP, LOOKS }; /* in groups: those of several peers, too */

static const struct group groups[] = {
	[ASLEEP] = { "peer asleep", SB_PEER_SLEEP, BARRIER, "membarrier",
		     1 << LOCAL | 1 << UNANNOUNCED | 1 << ANNOUNCED,
		     "peers asleep" },
	[LOOKS] = { "peer looks up", SB_PEER_LOOK, BARRIER, "membarrier",
		    1 << LOCAL | 1 << UNANNOUNCED | 1 << ANNOUNCED,
		    "peers look up" },
	{ "peer streams", SB_PEER_STREAM, CHUNK, "a chunk copied by the peer",
	  1 << LOCAL | 1 << UNANNOUNCED | 1 << ANNOUNCED | 1 << OWN, NULL },
	{ "peer stopped, streaming", SB_PEER_STREAM, KINDS, "the stop",
	  1 << STOPPED, NULL },
};

static struct sb_task task_of(struct fence *f, struct work *w, enum what what)
{
	struct sb_task t = {
		.run = close_run, .ctx = w, .set = &f->set[what], .laps = 1
	};

	*w = (struct work){ f, what };
	if (what == CHUNK)
		t.run = chunk_run;
	if (what == BARRIER) {
		t.run = sb_floor_barrier;
		t.laps = 0;
	}
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
				     .of = g->of,
				     .most_ratio = true,
				     .point = { .x = f->attached } };

		if (!(g->mask >> i & 1))
			continue;
		if (g->floor == CHUNK && (i == ANNOUNCED || i == OWN))
			c.most = limit_chunk;
		snprintf(c.point.panel, SB_NAME_MAX, "%s",
			 g->panel ? g->panel : "");
		snprintf(c.point.series, SB_NAME_MAX, "%s", what_name[i]);
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
	int ret = 0;

	for (unsigned int i = 0; i < f->attached && !ret; i++)
		ret = sb_peer_mode(&f->peer[i], g->mode, KEY_STREAM,
				   STREAM_LEN);
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

/* Peers come until there are @n. */
static int peers_attach(struct fence *f, unsigned int n)
{
	int ret = 0;

	for (; f->attached < n && !ret; f->attached += !ret)
		ret = sb_peer_meet(&f->peer[f->attached], &f->s);
	return ret;
}

/* 2, 4... peers that do the same. */
static int peers_run(struct fence *f)
{
	static const char *const does[] = {
		[ASLEEP] = "asleep", [LOOKS] = "look up"
	};
	unsigned int most = f->o->processes < PEERS ? f->o->processes : PEERS;
	char name[SB_NAME_MAX];
	int ret = 0;

	for (unsigned int n = 1; n < most && !ret;) {
		n = 2 * n < most ? 2 * n : most;
		ret = peers_attach(f, n);
		for (int i = ASLEEP; i <= LOOKS && !ret; i++) {
			struct group g = groups[i];

			/* they would show the scheduler */
			if (i == LOOKS && n > sb_cpus_given())
				continue;
			snprintf(name, sizeof(name), "%u peers %s", n, does[i]);
			g.name = name;
			ret = group_run(f, &g);
		}
	}
	return ret;
}

static int peers_start(struct fence *f, const struct sb_options *o)
{
	int ret = 0;

	for (unsigned int i = 0; i < PEERS && i < o->processes && !ret; i++)
		ret = sb_peer_start(&f->peer[i], i ? -1 : o->pin.cpu[1]);
	return ret;
}

static int fence_open(struct fence *f)
{
	int ret = sb_side_open(&f->s);

	if (!ret)
		ret = sb_mem_new(&f->s, &f->mem, true, STREAM_LEN);
	if (!ret)
		ret = sb_mem_give(&f->s, &f->mem, KEY_STREAM);
	if (!ret)
		ret = peers_attach(f, 1);
	f->page = aligned_alloc(SB_PAGE, SB_PAGE);
	if (!ret && !f->page)
		ret = -FI_ENOMEM;
	if (ret)
		return ret;
	memset(f->page, 1, SB_PAGE);
	return 0;
}

/* Accepts what is closed. */
static int fence_close(struct fence *f)
{
	int ret = 0, one;

	for (unsigned int i = 0; i < PEERS; i++) {
		one = sb_peer_end(&f->peer[i]);
		ret = ret ? ret : one;
	}
	sb_mem_free(&f->s, &f->mem);
	sb_side_close(&f->s);
	free(f->page);
	f->page = NULL;
	return ret;
}

static int fence_run(const struct sb_options *o, struct sb_out *out)
{
	struct sb_proc many = { .pid = 0 };
	struct fence *f = calloc(1, sizeof(*f));
	int ret = f ? sb_fence_many_start(&many) : -ENOMEM, end;

	if (!ret)
		ret = peers_start(f, o);
	if (ret)
		goto out;
	f->o = o;
	f->out = out;
	setenv("FI_SHRIMP_PIN", "off", 0);
	bench_pin_self(o->pin.cpu[0]);
	ret = fence_open(f);
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups) && !ret; i++)
		ret = group_run(f, &groups[i]);
	if (!ret)
		ret = peers_run(f);
	/* now, so that they do not disturb what follows */
	end = fence_close(f);
	ret = ret ? ret : end;
	if (!ret)
		ret = sb_fence_many_run(&many, o, out);
out:
	end = f ? fence_close(f) : 0;
	ret = ret ? ret : end;
	end = sb_proc_end(&many);
	free(f);
	return ret ? ret : end;
}

const struct sb_bench sb_bench_fence = {
	.name = "fence",
	.about = "close a region whose key peers know",
	.help = "By what the peer has done with the key: nothing, it could not "
		"(never shared),\nnothing (unannounced), a read (announced); "
		"and by what it does meanwhile:\nsleeps, reads 8 bytes of "
		"another region, streams 16M reads of it, streams the\nregion "
		"that is closed, is stopped (SIGSTOP) for 50 ms. Floor: a "
		"bare\nmembarrier, a chunk (512K) that the peer copies from "
		"memory of the owner's, the\nstop. Then 2, 4... and "
		"--processes peers, at most 8, that sleep or (as many "
		"as\nthere are cores) look up. Nothing is pinned.\nThen, "
		"pinned, 100,000 regions of a page (--quick: 10,000) opened "
		"one after the\nother, and closed; floor: mlock and munlock of "
		"each.\n",
	.processes = 4,
	.axes = { .title = "Close", .x = "peers", .y = "us", .log_y = true },
	.run = fence_run,
};
