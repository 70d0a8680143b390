/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The owner's fence.
 *
 * Exclusion: between threads of the owner by grace.lock, and during a scan by
 * grace.scanning; views of places by device.lock, held over each look at all
 * lanes. Against readers nothing is locked, see
 * the header. Words of a lane are looked at in the mapping only while
 * device.lock keeps its place, and later through the descriptor, which no
 * discarded page can hurt.
 */
#include "shm/grace.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shm/breakage.h"
#include "shm/device.h"
#include "shm/fence.h"
#include "shm/log.h"

enum {
	SPINS = 200,	     /* looks before the CPU is given away */
	YIELDS = 300,	     /* looks before sleeping */
	SLEEP_US = 50,	     /* shortest sleep */
	SLEEP_MAX_US = 2000, /* longest sleep */
	LOOK_MS = 10,	     /* between looks whether a reader is dead */
	WARN_MS = 1000,	     /* a wait worth a message */
	FENCE_TRIES = 3,     /* of a membarrier that fails */
	ITEMS = 16,	     /* first allocation */
};

struct rnic_grace_item {
	uint32_t place;	  /* where the lane lies */
	uint32_t lane;	  /* its number there */
	uint32_t ctx;	  /* execution context */
	uint64_t claim;	  /* who has it */
	uint64_t seq;	  /* odd, when it was seen inside */
	uint64_t look_ms; /* when to look again whether it is dead */
};

/* A claimed lane with pages, under device.lock. */
struct lane_at {
	uint32_t place;		/* number of the place */
	uint32_t index;		/* of the lane */
	uint64_t claim;		/* its claim word */
	struct rnic_lane *lane; /* mapped */
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ---- what is wanted ---- */

static void want_none(struct rnic_grace_want *w)
{
	*w = (struct rnic_grace_want){ .low = RNIC_FILTER_BITS / 64 };
}

/* Adds what is in @bits of word @i. */
static void want_add(struct rnic_grace_want *w, uint32_t i, uint64_t bits)
{
	w->bit[i] |= bits;
	if (i < w->low)
		w->low = i;
	if (i >= w->end)
		w->end = i + 1;
}

/* Empties @w, which is mostly near empty. */
static void want_clear(struct rnic_grace_want *w)
{
	for (uint32_t i = w->low; i < w->end; i++)
		w->bit[i] = 0;
	w->low = RNIC_FILTER_BITS / 64;
	w->end = 0;
}

/* Adds what is in @from. */
static void want_merge(struct rnic_grace_want *w,
		       const struct rnic_grace_want *from)
{
	for (uint32_t i = from->low; i < from->end; i++)
		if (from->bit[i])
			want_add(w, i, from->bit[i]);
}

/* ---- the object ---- */

void rnic_grace_init(struct rnic_grace *g)
{
	*g = (struct rnic_grace){ .item = NULL };
	want_none(&g->want);
	want_none(&g->taken);
	pthread_mutex_init(&g->lock, NULL);
}

void rnic_grace_fini(struct rnic_grace *g)
{
	free(g->item);
	g->item = NULL;
	g->n = g->room = 0;
	pthread_mutex_destroy(&g->lock);
}

/* ---- scanning ---- */

/*
 * True if the lane has pages. Its claimer populates them before it makes the
 * lane live; until then it is no reader, and our touch might fault.
 */
static bool has_pages(struct rnic_device *d, struct rnic_view *v,
		      unsigned int place, unsigned int lane)
{
	uint64_t bit = UINT64_C(1) << lane % 64;
	uint64_t at = rnic_lane_off(place, lane) +
		      offsetof(struct rnic_lane, tx_state);
	uint32_t state = RNIC_TX_NONE;

	if (v->paged[lane / 64] & bit)
		return true;
	if (pread(d->mailbox.fd, &state, sizeof(state), (off_t)at) !=
		    sizeof(state) ||
	    state == RNIC_TX_NONE)
		return false;
	v->paged[lane / 64] |= bit;
	return true;
}

/* Calls @fn for each claimed lane of place @i; stops at an error. */
static int each_lane_of(struct rnic_device *d, unsigned int i,
			int (*fn)(struct rnic_grace *g,
				  const struct lane_at *at))
{
	struct rnic_view *v = d->view[i];
	/* relaxed: the full fence of begin() is before it */
	uint64_t hi = rnic_load64_relaxed(&v->head->lane_hi);
	int ret = 0;

	if (hi > RNIC_LANE_MAX)
		hi = RNIC_LANE_MAX;
	for (unsigned int l = 0; l < hi && !ret; l++) {
		/* relaxed: as above */
		uint64_t claim = rnic_load64_relaxed(&v->head->claim[l]);
		struct lane_at at = { .place = i, .index = l, .claim = claim };

		if (!claim || !has_pages(d, v, i, l))
			continue;
		at.lane =
			(struct rnic_lane *)((char *)v->head + RNIC_HEAD_SIZE) +
			l;
		ret = fn(&d->grace, &at);
	}
	return ret;
}

static int each_lane(struct rnic_device *d,
		     int (*fn)(struct rnic_grace *g, const struct lane_at *at))
{
	int ret = 0;

	pthread_mutex_lock(&d->lock);
	for (unsigned int i = 0; i < d->view_end && !ret; i++)
		if (d->view[i])
			ret = each_lane_of(d, i, fn);
	pthread_mutex_unlock(&d->lock);
	return ret;
}

/* 1 if the lane's contexts announce a slot that is wanted. */
static int look_announced(struct rnic_grace *g, const struct lane_at *at)
{
	const struct rnic_grace_want *w = &g->taken;

	for (unsigned int c = 0; c < RNIC_CTX_PER_EP; c++)
		for (uint32_t i = w->low; i < w->end; i++)
			/*
			 * A3: a cleared bit says that the uses before are over;
			 * pairs with R3 in shm/reader.c
			 */
			if (w->bit[i] &&
			    rnic_load64_acquire(&at->lane->announce[c][i]) &
				    w->bit[i])
				return 1;
	return 0;
}

static int add_item(struct rnic_grace *g, const struct rnic_grace_item *it)
{
	if (g->n == g->room) {
		size_t room = g->room ? 2 * g->room : ITEMS;
		struct rnic_grace_item *p = realloc(g->item, room * sizeof(*p));

		if (!p) {
			rnic_log(RNIC_LOG_WARN,
				 "fence: no memory to wait for %zu readers",
				 g->n + 1);
			return -ENOMEM;
		}
		g->item = p;
		g->room = room;
	}
	g->item[g->n++] = *it;
	return 0;
}

/* Notes which contexts of a lane are inside. */
static int look_inside(struct rnic_grace *g, const struct lane_at *at)
{
	int ret = 0;

	for (unsigned int c = 0; c < RNIC_CTX_PER_EP && !ret; c++) {
		/* A1: what it did before is done; pairs with Q1, H1 */
		uint64_t seq = rnic_load64_acquire(&at->lane->reader[c].seq);
		struct rnic_grace_item it = {
			.place = at->place,
			.lane = at->index,
			.ctx = c,
			.claim = at->claim,
			.seq = seq,
		};

		if (seq & 1)
			ret = add_item(g, &it);
	}
	return ret;
}

/* Both, where neither needs a fence before it. */
static int look(struct rnic_grace *g, const struct lane_at *at)
{
	int ret = look_announced(g, at);

	return ret ? ret : look_inside(g, at);
}

/* ---- periods ---- */

/* A membarrier that fails is tried again: it may have been short of memory. */
static int fence_readers(void)
{
	const struct timespec ts = { .tv_nsec = 1000000 };
	int ret = rnic_fence_peers();

	for (int i = 1; ret && i < FENCE_TRIES; i++) {
		nanosleep(&ts, NULL);
		ret = rnic_fence_peers();
	}
	return ret;
}

/* Fences and notes who is inside. The caller has set g->scanning. */
static int scan(struct rnic_device *d)
{
	int ret;

	/*
	 * O2: the stores that made things unfindable, before the loads of
	 * announce lines and sequences; pairs with the fence of a miss
	 */
	if (!RNIC_BROKEN(owner_fence))
		rnic_fence_full();
	ret = each_lane(d, look);
	if (ret <= 0)
		return ret;
	/* without membarrier readers fence by themselves at each entry */
	ret = d->fenced && !RNIC_BROKEN(membarrier) ? fence_readers() : 0;
	d->grace.n = 0;
	return ret ? ret : each_lane(d, look_inside);
}

/* Period @begun was scanned, with result @ret. g->lock held. */
static void scanned(struct rnic_grace *g, int ret)
{
	g->scanning = false;
	if (ret) {
		/* the next one is asked for the same */
		want_merge(&g->want, &g->taken);
		g->failed = g->begun;
		g->error = ret;
		rnic_log(RNIC_LOG_WARN, "fence: period %" PRIu64 " failed: %s",
			 g->begun, strerror(-ret));
	}
	want_clear(&g->taken);
	g->active = !ret;
	g->warned = false;
	g->began_ms = !ret && g->n ? now_ms() : 0;
}

/*
 * Begins the next period; none is active, and nobody scans. On error it counts
 * as failed. Drops and retakes g->lock.
 */
static void begin(struct rnic_device *d)
{
	struct rnic_grace *g = &d->grace;
	int ret;

	g->begun++;
	g->n = 0;
	g->scanning = true;
	want_merge(&g->taken, &g->want);
	want_clear(&g->want);
	pthread_mutex_unlock(&g->lock);
	ret = scan(d);
	pthread_mutex_lock(&g->lock);
	scanned(g, ret);
}

/* The word at @at of the lane of @it; @fallback if it cannot be read. */
static uint64_t read_word(const struct rnic_device *d, uint64_t at,
			  uint64_t fallback)
{
	uint64_t x;
	ssize_t n = pread(d->mailbox.fd, &x, sizeof(x), (off_t)at);

	return n == sizeof(x) ? x : fallback;
}

/* True if @it has moved, or its lane has passed to somebody else. */
static bool has_left(const struct rnic_device *d,
		     const struct rnic_grace_item *it)
{
	uint64_t seq_at = rnic_lane_off(it->place, it->lane) +
			  offsetof(struct rnic_lane, reader[0]) +
			  it->ctx * RNIC_LINE;
	uint64_t claim_at = rnic_head_off(it->place) +
			    offsetof(struct rnic_ep_head, claim[0]) +
			    it->lane * sizeof(uint64_t);

	return read_word(d, seq_at, it->seq) != it->seq ||
	       read_word(d, claim_at, it->claim) != it->claim;
}

/* True if the process of @it is gone for good; looks seldom. */
static bool is_dead(const struct rnic_device *d, struct rnic_grace_item *it,
		    uint64_t now)
{
	uint64_t at = rnic_lane_off(it->place, it->lane) +
		      offsetof(struct rnic_lane, sender.identity);
	uint64_t identity, then;
	int ret;

	if (RNIC_BROKEN(stopped) && now > d->grace.began_ms + WARN_MS)
		return true;
	if (now < it->look_ms || RNIC_BROKEN(dead_reader))
		return false;
	it->look_ms = now + LOOK_MS;
	ret = rnic_claim_identity(it->claim, &identity);
	if (ret)
		return ret == -ESRCH;
	/* the claim knows the start only: exec shows in the stack */
	then = read_word(d, at, 0) >> 32;
	return identity >> 32 && then && identity >> 32 != then;
}

static void warn(struct rnic_grace *g, uint64_t now)
{
	if (g->warned || now < g->began_ms + WARN_MS)
		return;
	g->warned = true;
	rnic_log(RNIC_LOG_WARN,
		 "fence: %zu readers have been inside for %" PRIu64
		 " ms, among them process %u (stopped?): close waits for them",
		 g->n, now - g->began_ms, rnic_claim_pid(g->item[0].claim));
}

/*
 * Forgets who has left, with @deaths who has died; ends the period when
 * nobody is left. g->lock held.
 */
static void move_on(struct rnic_device *d, bool deaths)
{
	struct rnic_grace *g = &d->grace;
	uint64_t now = deaths && g->n ? now_ms() : 0;
	size_t left = 0;

	for (size_t i = 0; i < g->n; i++) {
		struct rnic_grace_item *it = &g->item[i];

		if (!has_left(d, it) && !(deaths && is_dead(d, it, now)))
			g->item[left++] = *it;
	}
	g->n = left;
	if (left) {
		if (deaths)
			warn(g, now);
		return;
	}
	/* the reads of the descriptor before what the caller does next */
	rnic_fence_full();
	g->active = false;
	g->ended = g->begun;
}

/* Lets @g->lock go for a while that grows with @n. */
static void pause_unlocked(struct rnic_grace *g, unsigned int n)
{
	unsigned int k = n < YIELDS ? 0 : (n - YIELDS) / 16;
	long us = SLEEP_US << (k < 5 ? k : 5);
	struct timespec ts = {
		.tv_nsec = 1000 * (us < SLEEP_MAX_US ? us : SLEEP_MAX_US),
	};

	pthread_mutex_unlock(&g->lock);
	if (n < SPINS)
		rnic_cpu_relax();
	else if (n < YIELDS)
		sched_yield();
	else
		nanosleep(&ts, NULL);
	pthread_mutex_lock(&g->lock);
}

/* True if period @n was not to be had, and no later one is under way. */
static bool has_failed(const struct rnic_grace *g, uint64_t n)
{
	return g->failed >= n && !g->active && !g->scanning;
}

/*
 * Waits for period @n; whoever waits moves it on. Readers end the wait by
 * leaving or dying. Drops and retakes g->lock.
 */
static int wait_for(struct rnic_device *d, uint64_t n)
{
	struct rnic_grace *g = &d->grace;

	for (unsigned int turn = 0; g->ended < n; turn++) {
		if (!g->active && !g->scanning)
			begin(d);
		if (g->active)
			move_on(d, turn >= SPINS);
		if (g->ended >= n)
			break;
		if (has_failed(g, n))
			return g->error;
		pause_unlocked(g, turn);
	}
	return 0;
}

/* Slot @slot is fenced by the next period: its number. g->lock held. */
static uint64_t want(struct rnic_grace *g, uint32_t slot)
{
	unsigned int bit = rnic_filter_bit(slot);

	want_add(&g->want, bit / 64, UINT64_C(1) << bit % 64);
	return g->begun + 1;
}

int rnic_grace_fence(struct rnic_device *d, uint32_t slot)
{
	struct rnic_grace *g = &d->grace;
	int ret;

	if (RNIC_BROKEN(fence))
		return 0;
	pthread_mutex_lock(&g->lock);
	ret = wait_for(d, want(g, slot));
	pthread_mutex_unlock(&g->lock);
	return ret;
}

uint64_t rnic_grace_want(struct rnic_device *d, uint32_t slot)
{
	uint64_t n;

	pthread_mutex_lock(&d->grace.lock);
	n = want(&d->grace, slot);
	pthread_mutex_unlock(&d->grace.lock);
	return n;
}

uint64_t rnic_grace_now(struct rnic_device *d)
{
	uint64_t n;

	pthread_mutex_lock(&d->grace.lock);
	n = d->grace.begun + 1;
	pthread_mutex_unlock(&d->grace.lock);
	return n;
}

int rnic_grace_look(struct rnic_device *d, uint64_t n)
{
	struct rnic_grace *g = &d->grace;
	int ret = -EAGAIN;

	pthread_mutex_lock(&g->lock);
	if (g->ended < n && !g->active && !g->scanning)
		begin(d);
	if (g->ended < n && g->active)
		move_on(d, true);
	if (g->ended >= n)
		ret = 0;
	else if (has_failed(g, n))
		ret = g->error;
	pthread_mutex_unlock(&g->lock);
	return ret;
}

bool rnic_grace_ended(struct rnic_device *d, uint64_t n)
{
	return RNIC_BROKEN(grace) || !rnic_grace_look(d, n);
}

int rnic_grace_wait(struct rnic_device *d, uint64_t n)
{
	int ret;

	if (RNIC_BROKEN(fence))
		return 0;
	pthread_mutex_lock(&d->grace.lock);
	ret = wait_for(d, n);
	pthread_mutex_unlock(&d->grace.lock);
	return ret;
}
