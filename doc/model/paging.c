/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A page on demand that comes, goes, and comes again: contract R11, R12, I1.
 *
 * The reader looks a page up. If it is absent, it leaves, asks, waits outside
 * and looks again. The agent makes it present. The application unmaps what is
 * there (A), and maps something else at the same address (B). When munmap has
 * returned nobody touches A, or what took its place, by the old translation.
 *
 *   CLAIM		claim() in shm/odp.c: F1, token in the entry
 *   WATCH		rnic_monitor_join(): waits while the monitor is at work
 *   POPULATE		the kernel, under the lock of the address space
 *   COMPLETE		complete(): F2, T1; a lost CAS: all of it again
 *   UNMAP		munmap(): the pages go; then see unmap.h
 *   POLL to THAW	monitor: Z1, W1, wait, read the event, withdraw, Z2
 *			(shm/monitor.h)
 *   reader		miss(), read_once() in shm/reader.c: M3, A2, Z3, B1
 *
 * Pages are reached by address here, so the kernel's answer is all there is.
 */
#include "doc/model/models.h"
#include "doc/model/owner.h"
#include "doc/model/reader.h"
#include "doc/model/unmap.h"

enum { READER, AGENT, APP, MONITOR, THREADS };

enum { OPS = 3 };

/* Values of ENTRY, PAGE; in ENTRY also a token, from TOKEN on. */
enum { NOTHING, PAGE_A, PAGE_B, TOKEN };

/* Values of ANSWER. */
enum { PRESENT = 1, FAULT = 2 };

enum word {
	W_VERSION,
	W_FROZEN,
	W_ENTRY,
	W_PAGE,
	W_EVENT,
	W_ASK,
	W_ANSWER,
	W_SEQ,
	W_A,
	WORDS
};

enum variant {
	PROTOCOL,
	FROZEN_ONCE,
	ONE_TOKEN,
	PLAIN_STORE,
	SKIP_FAULTING,
	NO_BUMP,
	NO_FREEZE,
	FROZEN_LATE,
	EVENT_EARLY,
	NO_BARRIER,
	THAW_EARLY,
	NO_RETRY,
	WAIT_INSIDE,
	BUMP_RELAXED,
	THAW_RELAXED,
	VARIANTS
};

enum reader_step {
	OUTSIDE,
	HIT,
	FIRST,
	LOOK,
	TAKE_ENTRY,
	LOOK_AGAIN,
	AGAIN,
	USE,
	LEAVE,
	ASKS,
	WAITS
};

enum agent_step { IDLE, CLAIM, WATCH, POPULATE, COMPLETE, UNCLAIM };

/* Behind those of enum unmap_step. */
enum app_step { UNMAP = UNMAP_STEPS, MAP };

enum monitor_step {
	POLL,
	FREEZE,
	BUMP,
	FENCE,
	READ_EVENT,
	WITHDRAW,
	THAW,
	MONITOR_END = MODEL_END
};

struct own {
	struct reader me;	  /* the reader */
	uint8_t cached;		  /* the entry, see reader.h */
	uint8_t cached_page;	  /* what it leads to */
	uint8_t frozen;		  /* first look */
	uint8_t page;		  /* found */
	uint8_t token;		  /* last one given */
	uint8_t got;		  /* populated */
	struct owner_fence fence; /* of the monitor */
};

/* ---- the reader ---- */

static enum reader_step hit(struct model_run *r, struct own *own)
{
	if (reader_hits(r, READER, W_VERSION, &own->cached)) {
		own->page = own->cached_page;
		return USE;
	}
	own->cached_page = 0;
	return FIRST;
}

static enum reader_step look(struct model_run *r, struct own *own)
{
	/* Z3 */
	if (!model_is(r, FROZEN_LATE))
		own->frozen = model_load(r, READER, W_FROZEN, MODEL_ACQUIRE);
	return TAKE_ENTRY;
}

static enum reader_step look_again(struct model_run *r, struct own *own)
{
	uint8_t frozen = own->frozen;

	if (!model_is(r, FROZEN_ONCE))
		frozen = model_load(r, READER, W_FROZEN, MODEL_RELAXED);
	if (model_is(r, FROZEN_LATE))
		own->frozen = frozen;
	return frozen != own->frozen || frozen & 1 ? LEAVE : AGAIN;
}

static enum reader_step again(struct model_run *r, struct own *own)
{
	if (!reader_as_before(r, READER, &own->me, W_VERSION))
		return LEAVE;
	if (own->page == NOTHING || own->page >= TOKEN)
		return model_is(r, WAIT_INSIDE) ? ASKS : LEAVE;
	reader_keep(&own->me, &own->cached);
	own->cached_page = own->page;
	return USE;
}

static enum reader_step miss(struct model_run *r, struct own *own,
			     unsigned int at)
{
	switch ((enum reader_step)at) {
	case FIRST:
		/* the region stays: its version is never odd */
		reader_looks(r, READER, &own->me, W_VERSION);
		return LOOK;
	case LOOK:
		return look(r, own);
	case TAKE_ENTRY:
		/* B1 */
		own->page = model_load(r, READER, W_ENTRY, MODEL_ACQUIRE);
		return LOOK_AGAIN;
	case LOOK_AGAIN:
		return look_again(r, own);
	default:
		return again(r, own);
	}
}

static enum reader_step leave(struct model_run *r, struct own *own)
{
	bool absent = own->page == NOTHING || own->page >= TOKEN;

	reader_leave(r, READER, &own->me, W_SEQ);
	absent = absent && !own->cached && !model_is(r, WAIT_INSIDE);
	own->frozen = own->page = 0;
	return absent && own->me.ops < OPS ? ASKS : OUTSIDE;
}

static enum reader_step wait(struct model_run *r)
{
	model_need(r, model_load(r, READER, W_ANSWER, MODEL_ACQUIRE));
	model_store(r, READER, W_ANSWER, 0, MODEL_RELAXED);
	return model_is(r, WAIT_INSIDE) ? LEAVE : OUTSIDE;
}

static unsigned int reader(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);

	switch ((enum reader_step)at) {
	case OUTSIDE:
		reader_begin(r, &own->me, OPS);
		reader_enter(r, t, &own->me, W_SEQ);
		return own->cached ? HIT : FIRST;
	case HIT:
		return hit(r, own);
	case USE:
		if (own->page == PAGE_A)
			model_touch(r, t, W_A);
		return LEAVE;
	case LEAVE:
		return leave(r, own);
	case ASKS:
		/* an ASK descriptor in the lane */
		model_store(r, t, W_ASK, 1, MODEL_RELEASE);
		return WAITS;
	case WAITS:
		return wait(r);
	default:
		return miss(r, own, at);
	}
}

/* ---- the agent ---- */

static enum agent_step answer(struct model_run *r, struct own *own,
			      unsigned int code)
{
	own->got = 0;
	model_store(r, AGENT, W_ANSWER, code, MODEL_RELEASE);
	return IDLE;
}

static enum agent_step idle(struct model_run *r)
{
	model_need(r, model_load(r, AGENT, W_ASK, MODEL_ACQUIRE));
	model_store(r, AGENT, W_ASK, 0, MODEL_RELAXED);
	return CLAIM;
}

static enum agent_step claim(struct model_run *r, struct own *own)
{
	if (!own->token || !model_is(r, ONE_TOKEN))
		own->token++;
	/* F1; else it is present by now */
	if (!model_cas(r, AGENT, W_ENTRY, NOTHING, TOKEN + own->token))
		return answer(r, own, PRESENT);
	return WATCH;
}

static enum agent_step complete(struct model_run *r, struct own *own)
{
	/* F2 */
	if (model_is(r, PLAIN_STORE))
		model_store(r, AGENT, W_ENTRY, own->got, MODEL_RELEASE);
	else if (!model_cas(r, AGENT, W_ENTRY, TOKEN + own->token, own->got)) {
		own->got = 0;
		return model_is(r, NO_RETRY) ? IDLE : CLAIM;
	}
	return answer(r, own, PRESENT);
}

static unsigned int agent(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);

	switch ((enum agent_step)at) {
	case IDLE:
		return idle(r);
	case CLAIM:
		return claim(r, own);
	case WATCH:
		model_need(r, model_at(r, MONITOR) == POLL ||
				      model_at(r, MONITOR) == MONITOR_END);
		return POPULATE;
	case POPULATE:
		own->got = model_or(r, t, W_PAGE, 0);
		return own->got ? COMPLETE : UNCLAIM;
	case COMPLETE:
		return complete(r, own);
	case UNCLAIM:
		model_cas(r, t, W_ENTRY, TOKEN + own->token, NOTHING);
		return answer(r, own, FAULT);
	}
	return IDLE;
}

/* ---- the application ---- */

static unsigned int app(struct model_run *r, unsigned int t, unsigned int at)
{
	unsigned int next;

	switch (at) {
	case UNMAP:
		model_swap(r, t, W_PAGE, NOTHING);
		return UNMAP_TELL;
	case MAP:
		model_swap(r, t, W_PAGE, PAGE_B);
		return MODEL_END;
	default:
		next = unmap_step(r, t, at, W_EVENT, W_A);
		return next == MODEL_END ? MAP : next;
	}
}

/* ---- the monitor ---- */

static enum monitor_step freeze(struct model_run *r)
{
	/* Z1 */
	if (!model_is(r, NO_FREEZE))
		model_store(r, MONITOR, W_FROZEN, 1, MODEL_RELAXED);
	return BUMP;
}

static enum monitor_step bump(struct model_run *r)
{
	if (model_is(r, BUMP_RELAXED))
		model_store(r, MONITOR, W_VERSION, 2, MODEL_RELAXED);
	else if (!model_is(r, NO_BUMP))
		/* atomic: the owner adds to it as well */
		model_add(r, MONITOR, W_VERSION, 2);
	return model_is(r, EVENT_EARLY) ? READ_EVENT : FENCE;
}

static enum monitor_step fence(struct model_run *r, struct own *own)
{
	const struct owner_words w = {
		.thread = MONITOR,
		.readers = 1,
		.seq = W_SEQ,
		.announce = OWNER_ALWAYS,
		.faults = model_is(r, NO_BARRIER) ? OWNER_NO_BARRIER : 0,
	};

	if (!owner_fence_step(r, &own->fence, &w))
		return FENCE;
	return model_is(r, EVENT_EARLY) ? WITHDRAW : READ_EVENT;
}

/* Stored whatever is there, but a page that is absent. */
static enum monitor_step withdraw(struct model_run *r)
{
	uint8_t e = model_load(r, MONITOR, W_ENTRY, MODEL_RELAXED);

	if (e != NOTHING && !(e >= TOKEN && model_is(r, SKIP_FAULTING)))
		model_swap(r, MONITOR, W_ENTRY, NOTHING);
	return model_is(r, THAW_EARLY) ? MONITOR_END : THAW;
}

static enum monitor_step thaw(struct model_run *r)
{
	/* Z2 */
	if (!model_is(r, NO_FREEZE))
		model_store(r, MONITOR, W_FROZEN, 2,
			    model_is(r, THAW_RELAXED) ? MODEL_ALONE
						      : MODEL_RELEASE);
	return model_is(r, THAW_EARLY) ? WITHDRAW : MONITOR_END;
}

static unsigned int monitor(struct model_run *r, unsigned int t,
			    unsigned int at)
{
	switch ((enum monitor_step)at) {
	case POLL:
		unmap_poll(r, t, W_EVENT);
		return FREEZE;
	case FREEZE:
		return freeze(r);
	case BUMP:
		return bump(r);
	case FENCE:
		return fence(r, model_own(r));
	case READ_EVENT:
		unmap_read(r, t, W_EVENT);
		if (model_is(r, EVENT_EARLY))
			return FENCE;
		return model_is(r, THAW_EARLY) ? THAW : WITHDRAW;
	case WITHDRAW:
		return withdraw(r);
	case THAW:
		return thaw(r);
	case MONITOR_END:
		break;
	}
	return MONITOR_END;
}

/* ---- the model ---- */

static const struct model_thread threads[THREADS] = {
	[READER] = { "reader", reader, OUTSIDE, 1u << OUTSIDE },
	[AGENT] = { "agent", agent, IDLE, 1u << IDLE },
	[APP] = { .name = "munmap", .step = app, .begins = UNMAP },
	[MONITOR] = { .name = "monitor", .step = monitor },
};

static const struct model_word words[WORDS] = {
	[W_VERSION] = { .name = "version",
			.loaders = 1 << READER | 1 << MONITOR },
	[W_FROZEN] = { .name = "frozen", .loaders = 1 << READER },
	[W_ENTRY] = { .name = "entry",
		      .loaders = 1 << READER | 1 << AGENT | 1 << MONITOR,
		      .crossed = true },
	[W_PAGE] = { "page", PAGE_A, 1 << AGENT | 1 << APP, false, false },
	[W_EVENT] = { .name = "event", .loaders = 1 << APP | 1 << MONITOR },
	[W_ASK] = { .name = "ask", .loaders = 1 << AGENT },
	[W_ANSWER] = { .name = "answer", .loaders = 1 << READER },
	[W_SEQ] = { .name = "sequence", .loaders = 1 << MONITOR },
	[W_A] = { .name = "A", .memory = true },
};

static const struct model_variant variants[VARIANTS] = {
	[PROTOCOL] = { "the protocol", MODEL_HOLDS },
	[FROZEN_ONCE] = { "frozen looked at once: the fence does",
			  MODEL_HOLDS },
	[ONE_TOKEN] = { "one token: faults hold a lock", MODEL_HOLDS },
	[PLAIN_STORE] = { "page stored, not by CAS", MODEL_FAILS },
	[SKIP_FAULTING] = { "invalidation skips FAULTING", MODEL_FAILS },
	[NO_BUMP] = { "version not bumped", MODEL_FAILS },
	[NO_FREEZE] = { "not frozen while it withdraws", MODEL_FAILS },
	[FROZEN_LATE] = { "frozen looked at behind the entry", MODEL_FAILS },
	[EVENT_EARLY] = { "event read before readers have left", MODEL_FAILS },
	[NO_BARRIER] = { "no membarrier", MODEL_FAILS },
	[THAW_EARLY] = { "thawed before it is withdrawn", MODEL_FAILS },
	[NO_RETRY] = { "a lost CAS is not tried again", MODEL_FAILS },
	[WAIT_INSIDE] = { "a reader waits inside", MODEL_FAILS },
	[BUMP_RELAXED] = { "bumped without release (Z1)", MODEL_FAILS_WEAK },
	[THAW_RELAXED] = { "thawed without release (Z2)", MODEL_FAILS_WEAK },
};

const struct model model_paging = {
	.name = "paging",
	.lines = "R11 R12 I1",
	MODEL_TABLES(threads, words, variants),
	.own = sizeof(struct own),
};
