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
 *   UNMAP, SLEEP	munmap(): the pages go, then it waits for the monitor
 *   POLL to THAW	monitor: Z1, W1, wait, read the event, withdraw, Z2
 *			(shm/monitor.h)
 *   reader		miss(), read_once() in shm/reader.c: M3, A2, Z3, B1
 *
 * Pages are reached by address here, so the kernel's answer is all there is.
 */
#include "doc/model/models.h"
#include "doc/model/owner.h"

enum { READER, AGENT, APP, MONITOR, THREADS };

enum { OPS = 3, NONE = 0xff };

/* Values of ENTRY, PAGE; in ENTRY also a token, from TOKEN on. */
enum { NOTHING, PAGE_A, PAGE_B, TOKEN };

/* Values of ANSWER, and of EVENT. */
enum { PRESENT = 1, FAULT = 2, THERE = 1, READ = 2 };

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

enum app_step { UNMAP, TELL, SLEEP, TAKE, MAP, APP_END };

enum monitor_step {
	POLL,
	FREEZE,
	BUMP,
	FENCE,
	READ_EVENT,
	WITHDRAW,
	THAW,
	MONITOR_END
};

struct own {
	uint8_t reader;		  /* enum reader_step */
	uint8_t ops;		  /* lookups begun */
	uint8_t seq;		  /* own sequence */
	uint8_t cached;		  /* version of the entry, NONE */
	uint8_t cached_page;	  /* what it leads to */
	uint8_t version;	  /* first look */
	uint8_t frozen;		  /* first look */
	uint8_t page;		  /* found */
	uint8_t agent;		  /* enum agent_step */
	uint8_t token;		  /* last one given */
	uint8_t got;		  /* populated */
	uint8_t app;		  /* enum app_step */
	uint8_t monitor;	  /* enum monitor_step */
	struct owner_fence fence; /* of the monitor */
};

static void init(struct model_run *r)
{
	struct own *own = model_own(r);

	own->cached = NONE;
}

static bool final(const struct model_run *r)
{
	const struct own *own = model_own_of(r);

	return own->reader == OUTSIDE && own->agent == IDLE &&
	       own->app == APP_END && own->monitor == MONITOR_END;
}

/* ---- the reader ---- */

static enum reader_step enter(struct model_run *r, struct own *own)
{
	model_need(r, own->ops < OPS);
	own->ops++;
	/* H1, M1 */
	model_store(r, READER, W_SEQ, ++own->seq, MODEL_RELEASE);
	return own->cached == NONE ? FIRST : HIT;
}

static enum reader_step hit(struct model_run *r, struct own *own)
{
	/* H2 */
	if (model_load(r, READER, W_VERSION, MODEL_ACQUIRE) == own->cached) {
		own->page = own->cached_page;
		return USE;
	}
	own->cached = NONE;
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
	if (model_load(r, READER, W_VERSION, MODEL_RELAXED) != own->version)
		return LEAVE;
	if (own->page == NOTHING || own->page >= TOKEN)
		return model_is(r, WAIT_INSIDE) ? ASKS : LEAVE;
	own->cached = own->version;
	own->cached_page = own->page;
	return USE;
}

static enum reader_step miss(struct model_run *r, struct own *own)
{
	switch ((enum reader_step)own->reader) {
	case FIRST:
		/* M3; A2 */
		model_fence(r, READER);
		own->version = model_load(r, READER, W_VERSION, MODEL_ACQUIRE);
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

	/* H3, Q1 */
	model_store(r, READER, W_SEQ, ++own->seq, MODEL_RELEASE);
	absent = absent && own->cached == NONE && !model_is(r, WAIT_INSIDE);
	own->version = own->frozen = own->page = 0;
	return absent && own->ops < OPS ? ASKS : OUTSIDE;
}

static enum reader_step wait(struct model_run *r)
{
	model_need(r, model_load(r, READER, W_ANSWER, MODEL_ACQUIRE));
	model_store(r, READER, W_ANSWER, 0, MODEL_RELAXED);
	return model_is(r, WAIT_INSIDE) ? LEAVE : OUTSIDE;
}

static enum reader_step reader(struct model_run *r, struct own *own)
{
	switch ((enum reader_step)own->reader) {
	case OUTSIDE:
		return enter(r, own);
	case HIT:
		return hit(r, own);
	case USE:
		if (own->page == PAGE_A)
			model_touch(r, READER, W_A);
		return LEAVE;
	case LEAVE:
		return leave(r, own);
	case ASKS:
		/* an ASK descriptor in the lane */
		model_store(r, READER, W_ASK, 1, MODEL_RELEASE);
		return WAITS;
	case WAITS:
		return wait(r);
	default:
		return miss(r, own);
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

static enum agent_step agent(struct model_run *r, struct own *own)
{
	switch ((enum agent_step)own->agent) {
	case IDLE:
		return idle(r);
	case CLAIM:
		return claim(r, own);
	case WATCH:
		model_need(r,
			   own->monitor == POLL || own->monitor == MONITOR_END);
		return POPULATE;
	case POPULATE:
		own->got = model_or(r, AGENT, W_PAGE, 0);
		return own->got ? COMPLETE : UNCLAIM;
	case COMPLETE:
		return complete(r, own);
	case UNCLAIM:
		model_cas(r, AGENT, W_ENTRY, TOKEN + own->token, NOTHING);
		return answer(r, own, FAULT);
	}
	return IDLE;
}

/* ---- the application ---- */

static enum app_step app(struct model_run *r, const struct own *own)
{
	switch ((enum app_step)own->app) {
	case UNMAP:
		model_swap(r, APP, W_PAGE, NOTHING);
		return TELL;
	case TELL:
		model_swap(r, APP, W_EVENT, THERE);
		return SLEEP;
	case SLEEP:
		model_need(r,
			   model_load(r, APP, W_EVENT, MODEL_ACQUIRE) == READ);
		return TAKE;
	case TAKE:
		model_note(r, "munmap returns; ");
		model_fence(r, APP);
		model_reclaim(r, APP, W_A);
		return MAP;
	case MAP:
		model_swap(r, APP, W_PAGE, PAGE_B);
		return APP_END;
	case APP_END:
		model_need(r, false);
	}
	return APP_END;
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

static enum monitor_step monitor(struct model_run *r, struct own *own)
{
	switch ((enum monitor_step)own->monitor) {
	case POLL:
		model_need(r, model_load(r, MONITOR, W_EVENT, MODEL_ACQUIRE) ==
				      THERE);
		return FREEZE;
	case FREEZE:
		return freeze(r);
	case BUMP:
		return bump(r);
	case FENCE:
		return fence(r, own);
	case READ_EVENT:
		model_swap(r, MONITOR, W_EVENT, READ);
		if (model_is(r, EVENT_EARLY))
			return FENCE;
		return model_is(r, THAW_EARLY) ? THAW : WITHDRAW;
	case WITHDRAW:
		return withdraw(r);
	case THAW:
		return thaw(r);
	case MONITOR_END:
		model_need(r, false);
	}
	return MONITOR_END;
}

static void step(struct model_run *r, unsigned int t)
{
	struct own *own = model_own(r);

	if (t == READER)
		own->reader = (uint8_t)reader(r, own);
	else if (t == AGENT)
		own->agent = (uint8_t)agent(r, own);
	else if (t == APP)
		own->app = (uint8_t)app(r, own);
	else
		own->monitor = (uint8_t)monitor(r, own);
}

/* ---- the model ---- */

static const char *const threads[THREADS] = {
	[READER] = "reader",
	[AGENT] = "agent",
	[APP] = "munmap",
	[MONITOR] = "monitor",
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
	.threads = THREADS,
	.thread = threads,
	.words = WORDS,
	.word = words,
	.variants = VARIANTS,
	.variant = variants,
	.own = sizeof(struct own),
	.init = init,
	.step = step,
	.final = final,
};
