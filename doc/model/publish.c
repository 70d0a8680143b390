/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One entry of the MPT, written while it is looked up: contract R2, R5.
 *
 * The owner gives the slot its pages, publishes region X in it, counts events
 * of it, invalidates it, fences, writes region Y and publishes that. A region
 * has two fields and an entry of an MTT page, all with the same value. The
 * reader looks it up over and over, without a cache.
 *
 *   OWN_GROW		slots_grow() in shm/mpt.c: odd version, M2
 *   OWN_FIELDS, OWN_PAGE	slot_write(), T1 in shm/mtt.c
 *   OWN_VERSION	M1
 *   OWN_EVENTS		rnic_mpt_add_events(): M5, even to even
 *   OWN_INVALIDATE	rnic_mpt_invalidate(): O1
 *   OWN_FENCE		rnic_grace_fence(), see owner.h
 *   USED		find_slot() in shm/reader.c: A6
 *   ENTER to AGAIN	miss(): M1, M3, then read_once(): A2, B1
 */
#include "doc/model/models.h"
#include "doc/model/owner.h"
#include "doc/model/reader.h"

#include <string.h>

enum { READER, OWNER, THREADS };

enum { OPS = 3 };

enum word { W_USED, W_VERSION, W_RANGE, W_RIGHTS, W_PAGE, W_SEQ, WORDS };

enum variant {
	PROTOCOL,
	NO_SECOND_LOOK,
	GROW_RELAXED,
	VERSION_FIRST,
	VERSION_RELAXED,
	LOOKUP_RELAXED,
	UNDER_A_LIVE_KEY,
	NO_FENCE,
	NO_FENCE_ONE_LOOK,
	VARIANTS
};

enum own_step {
	OWN_GROW,
	OWN_FIELDS,
	OWN_PAGE,
	OWN_VERSION,
	OWN_EVENTS,
	OWN_INVALIDATE,
	OWN_FENCE,
	OWN_END = MODEL_END,
};

enum reader_step {
	LOOK,
	ENTER,
	FIRST,
	TAKE_RANGE,
	TAKE_RIGHTS,
	TAKE_PAGE,
	AGAIN,
	LEAVE
};

struct own {
	struct reader me;	  /* the reader */
	uint8_t got[3];		  /* fields and entry */
	uint8_t region;		  /* 1: X, 2: Y */
	uint8_t own_version;	  /* of the slot */
	struct owner_fence fence; /* of the owner */
};

static void init(struct model_run *r)
{
	struct own *own = model_own(r);

	own->region = 1;
}

/* ---- the reader ---- */

/* A whole region, and the one that the version stands for. */
static void check(struct model_run *r, const struct own *own)
{
	uint8_t want = own->me.version < 5 ? 1 : 2;

	if (own->me.version == 0)
		model_fail(r, "a slot that was not made ready");
	if (own->got[0] != want || own->got[2] != want ||
	    (own->got[1] & 3) != want)
		model_fail(r, "torn region");
}

static enum reader_step again(struct model_run *r, const struct own *own)
{
	if (model_is(r, NO_SECOND_LOOK) || model_is(r, NO_FENCE_ONE_LOOK) ||
	    reader_as_before(r, READER, &own->me, W_VERSION))
		check(r, own);
	return LEAVE;
}

static enum reader_step first(struct model_run *r, struct own *own,
			      enum model_order o)
{
	/* M3; A2 */
	model_fence(r, READER);
	own->me.version = model_load(r, READER, W_VERSION, o);
	return own->me.version & 1 ? LEAVE : TAKE_RANGE;
}

/* read_once() */
static enum reader_step read_once(struct model_run *r, struct own *own,
				  unsigned int at)
{
	enum model_order o =
		model_is(r, LOOKUP_RELAXED) ? MODEL_RELAXED : MODEL_ACQUIRE;

	switch ((enum reader_step)at) {
	case FIRST:
		return first(r, own, o);
	case TAKE_RANGE:
		own->got[0] = model_load(r, READER, W_RANGE, o);
		return TAKE_RIGHTS;
	case TAKE_RIGHTS:
		own->got[1] = model_load(r, READER, W_RIGHTS, o);
		return TAKE_PAGE;
	case TAKE_PAGE:
		/* B1 */
		own->got[2] = model_load(r, READER, W_PAGE, o);
		return AGAIN;
	default:
		return again(r, own);
	}
}

static unsigned int reader(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);

	switch ((enum reader_step)at) {
	case LOOK:
		reader_begin(r, &own->me, OPS);
		/* A6 */
		model_need(r, model_load(r, t, W_USED, MODEL_ACQUIRE));
		return ENTER;
	case ENTER:
		reader_enter(r, t, &own->me, W_SEQ);
		return FIRST;
	case LEAVE:
		reader_leave(r, t, &own->me, W_SEQ);
		memset(own->got, 0, sizeof(own->got));
		return LOOK;
	default:
		return read_once(r, own, at);
	}
}

/* ---- the owner ---- */

static enum own_step fields(struct model_run *r, struct own *own)
{
	/* relaxed, M1 publishes */
	model_store(r, OWNER, W_RANGE, own->region, MODEL_RELAXED);
	model_store(r, OWNER, W_RIGHTS, own->region, MODEL_RELAXED);
	if (own->region == 2 && model_is(r, UNDER_A_LIVE_KEY))
		own->own_version++;
	return OWN_PAGE;
}

static enum own_step page(struct model_run *r, const struct own *own)
{
	/* T1 */
	model_store(r, OWNER, W_PAGE, own->region, MODEL_RELEASE);
	return own->region == 1 && model_is(r, VERSION_FIRST) ? OWN_EVENTS
							      : OWN_VERSION;
}

static enum own_step version(struct model_run *r, struct own *own)
{
	/* M1 */
	model_store(r, OWNER, W_VERSION, ++own->own_version,
		    model_is(r, VERSION_RELAXED) ? MODEL_RELAXED
						 : MODEL_RELEASE);
	return own->region == 1 ? OWN_EVENTS : OWN_END;
}

/* What follows the invalidation. */
static enum own_step fenced(struct model_run *r, struct own *own)
{
	const struct owner_words w = {
		.thread = OWNER,
		.readers = 1,
		.seq = W_SEQ,
		.announce = OWNER_ALWAYS,
	};

	if (!model_is(r, NO_FENCE) && !model_is(r, NO_FENCE_ONE_LOOK) &&
	    !owner_fence_step(r, &own->fence, &w))
		return OWN_FENCE;
	own->region = 2;
	return OWN_FIELDS;
}

static enum own_step grow(struct model_run *r, struct own *own)
{
	model_store(r, OWNER, W_VERSION, 1, MODEL_RELAXED);
	own->own_version = 1;
	/* M2 */
	model_store(r, OWNER, W_USED, 1,
		    model_is(r, GROW_RELAXED) ? MODEL_RELAXED : MODEL_RELEASE);
	if (model_is(r, VERSION_FIRST))
		model_store(r, OWNER, W_VERSION, ++own->own_version,
			    MODEL_RELEASE);
	return OWN_FIELDS;
}

static enum own_step events(struct model_run *r, struct own *own)
{
	/* bit 2: RNIC_MR_EV_WRITE, say; M5 */
	model_store(r, OWNER, W_RIGHTS, own->region | 4, MODEL_RELAXED);
	own->own_version += 2;
	model_store(r, OWNER, W_VERSION, own->own_version, MODEL_RELEASE);
	if (!model_is(r, UNDER_A_LIVE_KEY))
		return OWN_INVALIDATE;
	own->region = 2;
	return OWN_FIELDS;
}

static unsigned int owner(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);

	switch ((enum own_step)at) {
	case OWN_GROW:
		return grow(r, own);
	case OWN_FIELDS:
		return fields(r, own);
	case OWN_PAGE:
		return page(r, own);
	case OWN_VERSION:
		return version(r, own);
	case OWN_EVENTS:
		return events(r, own);
	case OWN_INVALIDATE:
		/* O1 */
		model_store(r, t, W_VERSION, ++own->own_version, MODEL_RELAXED);
		return OWN_FENCE;
	case OWN_FENCE:
		return fenced(r, own);
	case OWN_END:
		break;
	}
	return OWN_END;
}

/* ---- the model ---- */

static const struct model_thread threads[THREADS] = {
	[READER] = { "reader", reader, LOOK, 1u << LOOK },
	[OWNER] = { .name = "owner", .step = owner },
};

static const struct model_word words[WORDS] = {
	[W_USED] = { .name = "used", .loaders = 1 << READER },
	[W_VERSION] = { .name = "version", .loaders = 1 << READER },
	[W_RANGE] = { .name = "range", .loaders = 1 << READER },
	[W_RIGHTS] = { .name = "rights", .loaders = 1 << READER },
	[W_PAGE] = { .name = "MTT entry", .loaders = 1 << READER },
	[W_SEQ] = { .name = "sequence", .loaders = 1 << OWNER },
};

static const struct model_variant variants[VARIANTS] = {
	[PROTOCOL] = { "the protocol", MODEL_HOLDS },
	[NO_SECOND_LOOK] = { "no second look: the fence is enough",
			     MODEL_HOLDS },
	[GROW_RELAXED] = { "slots shown before they are ready (M2)",
			   MODEL_FAILS_WEAK },
	[VERSION_FIRST] = { "version before the fields", MODEL_FAILS },
	[VERSION_RELAXED] = { "version without release (M1)",
			      MODEL_FAILS_WEAK },
	[LOOKUP_RELAXED] = { "lookup without acquire (A2)", MODEL_FAILS_WEAK },
	[UNDER_A_LIVE_KEY] = { "fields changed under a live key", MODEL_FAILS },
	[NO_FENCE] = { "rewritten without a fence", MODEL_FAILS_WEAK },
	[NO_FENCE_ONE_LOOK] = { "the same, and no second look", MODEL_FAILS },
};

const struct model model_publish = {
	.name = "publish",
	.lines = "R2 R5",
	MODEL_TABLES(threads, words, variants),
	.own = sizeof(struct own),
	.init = init,
};
