/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A version that two threads of the owner change: contract K2, I5.
 *
 * The monitor adds 2 at any time, without a lock, since a page went away
 * (shm/monitor.h). Meanwhile a refresh makes the version odd, fences, takes X
 * back, and makes it even again with Y. The reader keeps what it resolved.
 *
 *   OWN_INVALIDATE	rnic_mpt_invalidate() in shm/mpt.c: O1
 *   OWN_FENCE		rnic_grace_fence(), see owner.h
 *   OWN_REGION, OWN_SHOW	rnic_mpt_change(): M1
 *   monitor		freeze_dev() in shm/monitor.c
 *   reader		H1, H2, M3, A2
 */
#include "doc/model/models.h"
#include "doc/model/owner.h"

enum { READER, OWNER, MONITOR, THREADS };

enum { OPS = 3, NONE = 0xff };

enum word { W_VERSION, W_REGION, W_SEQ, W_X, WORDS };

enum variant { PROTOCOL, STORED, VARIANTS };

enum reader_step { OUTSIDE, HIT, FIRST, TAKE_REGION, AGAIN, USE, LEAVE };

enum own_step {
	OWN_INVALIDATE,
	OWN_STORE,
	OWN_FENCE,
	OWN_REGION,
	OWN_SHOW,
	OWN_END
};

struct own {
	uint8_t reader;		  /* enum reader_step */
	uint8_t ops;		  /* begun */
	uint8_t seq;		  /* own sequence */
	uint8_t cached;		  /* version of the entry, NONE */
	uint8_t version;	  /* first look */
	uint8_t region;		  /* of the entry */
	uint8_t owner;		  /* enum own_step */
	uint8_t loaded;		  /* by the mutant */
	uint8_t bumped;		  /* the monitor has done its work */
	struct owner_fence fence; /* of the owner */
};

static void init(struct model_run *r)
{
	struct own *own = model_own(r);

	own->cached = NONE;
}

static bool final(const struct model_run *r)
{
	const struct own *own = model_own_of(r);

	return own->reader == OUTSIDE && own->owner == OWN_END && own->bumped;
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
	if (model_load(r, READER, W_VERSION, MODEL_ACQUIRE) == own->cached)
		return USE;
	own->cached = NONE;
	own->region = 0;
	return FIRST;
}

static enum reader_step again(struct model_run *r, struct own *own)
{
	if (model_load(r, READER, W_VERSION, MODEL_RELAXED) != own->version)
		return LEAVE;
	own->cached = own->version;
	return USE;
}

static enum reader_step reader(struct model_run *r, struct own *own)
{
	switch ((enum reader_step)own->reader) {
	case OUTSIDE:
		return enter(r, own);
	case HIT:
		return hit(r, own);
	case FIRST:
		/* M3; A2 */
		model_fence(r, READER);
		own->version = model_load(r, READER, W_VERSION, MODEL_ACQUIRE);
		return own->version & 1 ? LEAVE : TAKE_REGION;
	case TAKE_REGION:
		own->region = model_load(r, READER, W_REGION, MODEL_ACQUIRE);
		return AGAIN;
	case AGAIN:
		return again(r, own);
	case USE:
		if (!own->region)
			model_touch(r, READER, W_X);
		return LEAVE;
	case LEAVE:
		break;
	}
	/* H3, Q1 */
	model_store(r, READER, W_SEQ, ++own->seq, MODEL_RELEASE);
	own->version = 0;
	return OUTSIDE;
}

/* ---- owner and monitor ---- */

static enum own_step invalidate(struct model_run *r, struct own *own)
{
	if (model_is(r, STORED)) {
		own->loaded = model_load(r, OWNER, W_VERSION, MODEL_RELAXED);
		return OWN_STORE;
	}
	/* O1 */
	model_add(r, OWNER, W_VERSION, 1);
	return OWN_FENCE;
}

static enum own_step fence(struct model_run *r, struct own *own)
{
	const struct owner_words w = {
		.thread = OWNER,
		.readers = 1,
		.seq = W_SEQ,
		.announce = OWNER_ALWAYS,
	};

	if (!owner_fence_step(r, &own->fence, &w))
		return OWN_FENCE;
	model_reclaim(r, OWNER, W_X);
	return OWN_REGION;
}

static enum own_step owner(struct model_run *r, struct own *own)
{
	switch ((enum own_step)own->owner) {
	case OWN_INVALIDATE:
		return invalidate(r, own);
	case OWN_STORE:
		model_store(r, OWNER, W_VERSION, own->loaded + 1u,
			    MODEL_RELAXED);
		return OWN_FENCE;
	case OWN_FENCE:
		return fence(r, own);
	case OWN_REGION:
		model_store(r, OWNER, W_REGION, 1, MODEL_RELAXED);
		return OWN_SHOW;
	case OWN_SHOW:
		/* M1 */
		model_add(r, OWNER, W_VERSION, 1);
		return OWN_END;
	case OWN_END:
		model_need(r, false);
	}
	return OWN_END;
}

static void step(struct model_run *r, unsigned int t)
{
	struct own *own = model_own(r);

	if (t == READER) {
		own->reader = (uint8_t)reader(r, own);
	} else if (t == OWNER) {
		own->owner = (uint8_t)owner(r, own);
	} else {
		model_need(r, !own->bumped);
		own->bumped = 1;
		model_add(r, MONITOR, W_VERSION, 2);
	}
}

/* ---- the model ---- */

static const char *const threads[THREADS] = {
	[READER] = "reader",
	[OWNER] = "owner",
	[MONITOR] = "monitor",
};

static const struct model_word words[WORDS] = {
	[W_VERSION] = { "version", 0, 7, false, true },
	[W_REGION] = { .name = "region", .loaders = 1 << READER },
	[W_SEQ] = { .name = "sequence", .loaders = 1 << OWNER },
	[W_X] = { .name = "X", .memory = true },
};

static const struct model_variant variants[VARIANTS] = {
	[PROTOCOL] = { "the protocol", MODEL_HOLDS },
	[STORED] = { "owner loads and stores, does not add", MODEL_FAILS },
};

const struct model model_bump = {
	.name = "bump",
	.lines = "K2 I5",
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
