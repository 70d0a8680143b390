/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench window: memory windows bound, bound anew and invalidated, by
 * calls and posted on the transmit queue.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/clock.h"
#include "bench/sb_floor.h"
#include "bench/sb_peer.h"
#include "bench/sb_subs.h"

enum {
	PEERS = 8,	/* reader slots of the target */
	KEY_REGION = 1, /* of the region */
	KEY_FIRST = 16, /* of windows */
	KEYS = 1 << 20, /* until they come again */
	ROOM = 1 << 20, /* bytes of the region */
	PART = SB_PAGE, /* bytes of a window */
};

/* Laps: what is timed of one life of a window. */
enum lap {
	LAP_ALLOC,	/* made */
	LAP_BIND,	/* NULL to X */
	LAP_REBIND,	/* X to Y */
	LAP_INVALIDATE, /* Y to NULL */
	LAP_FREE,	/* gone */
	LAP_POST_REG,	/* bound by the transmit queue, with its completion */
	LAP_POST_INV,	/* and invalidated */
	LAPS
};

static const char *const lap_name[LAPS] = {
	[LAP_ALLOC] = "alloc",
	[LAP_BIND] = "bind",
	[LAP_REBIND] = "rebind",
	[LAP_INVALIDATE] = "invalidate",
	[LAP_FREE] = "free",
	[LAP_POST_REG] = "posted bind",
	[LAP_POST_INV] = "posted invalidate",
};

struct window {
	const struct sb_options *o; /* how long */
	struct sb_out *out;	    /* where to */
	struct sb_side s;	    /* the owner */
	struct sb_mem mem;	    /* what windows are onto */
	struct sb_peer peer[PEERS]; /* who may use them */
	unsigned int attached;	    /* peers that have a reader slot */
	bool announce;		    /* the first one uses each key */
	uint64_t key;		    /* of the next binding */
	uint64_t word;		    /* of the bare instruction */
	struct sb_set set[LAPS];    /* times */
	struct sb_set add;	    /* floor */
	struct sb_set barrier;	    /* floor */
};

/* ---- one life of a window ---- */

/* What is timed, and where its time goes. */
struct timer {
	struct sb_set *set;
	uint64_t begin;
};

static struct timer lap_begin(struct sb_set *set, enum lap lap)
{
	return (struct timer){ &set[lap], bench_clock_ns() };
}

static int lap_end(struct timer t, const char *what, ssize_t ret)
{
	sb_set_add(t.set, (double)(bench_clock_ns() - t.begin));
	return ret ? sb_fail(what, ret) : 0;
}

static struct fi_shrimp_mr_part next_part(struct window *w)
{
	return (struct fi_shrimp_mr_part){
		.mr = w->mem.mr,
		.off = w->key % (ROOM / PART) * PART,
		.len = PART,
	};
}

static uint64_t next_key(struct window *w)
{
	return KEY_FIRST + w->key++ % KEYS;
}

/* A peer reads through the window, if the case is about that. */
static int use(struct window *w, uint64_t key)
{
	return w->announce ? sb_peer_touch(&w->peer[0], key) : 0;
}

static int bind(struct window *w, struct fid_mr *mw, enum lap lap)
{
	struct fi_shrimp_mr_part part = next_part(w);
	uint64_t key = next_key(w);
	struct timer t = lap_begin(w->set, lap);
	int ret = lap_end(t, "bind_window",
			  w->s.mr->bind_window(mw, &part, SB_REMOTE, key));

	return ret ? ret : use(w, key);
}

static int calls_run(struct window *w, struct fid_mr *mw)
{
	struct timer t;
	int ret = bind(w, mw, LAP_BIND);

	if (!ret)
		ret = bind(w, mw, LAP_REBIND);
	if (ret)
		return ret;
	t = lap_begin(w->set, LAP_INVALIDATE);
	return lap_end(t, "invalidate_window", w->s.mr->invalidate_window(mw));
}

static int posts_run(struct window *w, struct fid_mr *mw)
{
	struct fi_shrimp_mr_part part = next_part(w);
	uint64_t key = next_key(w);
	struct sb_ep *e = &w->s.main;
	struct timer t = lap_begin(w->set, LAP_POST_REG);
	ssize_t ret = w->s.mr->post_reg(e->ep, mw, &part, 1, SB_REMOTE, key,
					FI_COMPLETION, w);

	ret = lap_end(t, "post_reg", ret ? ret : sb_ep_wait(e, 1));
	if (!ret)
		ret = use(w, key);
	if (ret)
		return (int)ret;
	t = lap_begin(w->set, LAP_POST_INV);
	ret = w->s.mr->post_invalidate(e->ep, mw, FI_COMPLETION, w);
	return lap_end(t, "post_invalidate", ret ? ret : sb_ep_wait(e, 1));
}

static int life_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct window *w = ctx;
	struct fid_mr *mw;
	struct timer t;
	int ret = 0;

	for (uint64_t i = 0; i < n && !ret; i++) {
		t = lap_begin(set, LAP_ALLOC);
		ret = lap_end(t, "window",
			      w->s.mr->window(&w->s.domain->fid, w, &mw));
		if (ret)
			break;
		ret = calls_run(w, mw);
		if (!ret && SB_OFFERS(&w->s, post_invalidate))
			ret = posts_run(w, mw);
		t = lap_begin(set, LAP_FREE);
		if (!ret)
			ret = lap_end(t, "fi_close", fi_close(&mw->fid));
	}
	return ret;
}

/* ---- rows ---- */

static int row(struct window *w, enum lap lap)
{
	bool fences = w->announce && lap != LAP_ALLOC && lap != LAP_FREE;
	struct sb_case c = { .unit = &sb_ns,
			     .set = &w->set[lap],
			     .floor = fences ? &w->barrier : &w->add,
			     .of = fences ? "membarrier" : "locked add" };

	if (!w->announce && (lap == LAP_BIND || lap == LAP_REBIND))
		c.most = 1000;
	c.point.x = w->attached;
	snprintf(c.point.panel, SB_NAME_MAX, "%s",
		 w->announce ? "announced" : "unannounced");
	snprintf(c.point.series, SB_NAME_MAX, "%s", lap_name[lap]);
	snprintf(c.name, sizeof(c.name), "%s, %s, %u peer%s", lap_name[lap],
		 w->announce ? "announced" : "unannounced", w->attached,
		 w->attached == 1 ? "" : "s");
	return sb_out_case(w->out, &c);
}

static int case_run(struct window *w)
{
	struct sb_task task[] = {
		{ .run = life_run, .ctx = w, .set = w->set, .laps = LAPS },
		{ .run = sb_floor_add, .ctx = &w->word, .set = &w->add },
		{ .run = sb_floor_barrier, .set = &w->barrier },
	};
	int ret = sb_measure(&w->o->plan, task, 3);

	for (int lap = 0; lap < LAPS && !ret; lap++)
		ret = row(w, (enum lap)lap);
	return ret;
}

/* Peers attach until there are @n: each has read through the region's key. */
static int peers_attach(struct window *w, unsigned int n)
{
	int ret = 0;

	for (; w->attached < n && !ret; w->attached++) {
		ret = sb_peer_meet(&w->peer[w->attached], &w->s);
		if (!ret)
			ret = sb_peer_touch(&w->peer[w->attached], KEY_REGION);
	}
	return ret;
}

static int cases_run(struct window *w)
{
	unsigned int most = w->o->processes < PEERS ? w->o->processes : PEERS;
	int ret = case_run(w);

	for (unsigned int n = 1; !ret; n = 2 * n < most ? 2 * n : most) {
		ret = peers_attach(w, n);
		for (int i = 0; i < 2 && !ret; i++) {
			w->announce = i;
			ret = case_run(w);
		}
		w->announce = false;
		if (n == most)
			break;
	}
	return ret;
}

static int window_run(const struct sb_options *o, struct sb_out *out)
{
	struct window *w = calloc(1, sizeof(*w));
	int ret = w ? 0 : -ENOMEM, one;

	for (unsigned int i = 0; i < PEERS && i < o->processes && !ret; i++)
		ret = sb_peer_start(&w->peer[i], i ? -1 : o->pin.cpu[1]);
	if (ret)
		goto out;
	w->o = o;
	w->out = out;
	bench_pin_self(o->pin.cpu[0]);
	ret = sb_side_open(&w->s);
	if (!ret)
		ret = sb_mem_new(&w->s, &w->mem, true, ROOM);
	if (!ret)
		ret = sb_mem_give(&w->s, &w->mem, KEY_REGION);
	if (!ret && SB_OFFERS(&w->s, invalidate_window))
		ret = cases_run(w);
	else if (!ret)
		sb_out_note(out, "windows: not offered by this provider");
out:
	for (unsigned int i = 0; w && i < PEERS; i++) {
		one = sb_peer_end(&w->peer[i]);
		ret = ret ? ret : one;
	}
	if (w) {
		sb_mem_free(&w->s, &w->mem);
		sb_side_close(&w->s);
	}
	free(w);
	return ret;
}

const struct sb_bench sb_bench_window = {
	.name = "window",
	.about = "bind memory windows",
	.help = "Windows of a page onto a region of 1M: made, bound, bound to "
		"another part with\nanother key, invalidated, freed; bound and "
		"invalidated by the transmit queue,\nwith the completion. With "
		"0, 1, 2, 4... and --processes peers attached, at most\n8; "
		"unannounced: no peer has used the key, announced: one has. "
		"Floor: a locked\nadd; of what is announced a bare "
		"membarrier.\n",
	.processes = 8,
	.axes = { .title = "Memory windows",
		  .x = "peers",
		  .y = "ns",
		  .log_y = true },
	.run = window_run,
};
