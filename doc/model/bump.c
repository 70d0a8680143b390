/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A version that two threads of the owner change: contract K2, I5, R12.
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
#include "doc/model/reader.h"

enum { READER, OWNER, MONITOR, THREADS };

enum { OPS = 3 };

enum word { W_VERSION, W_REGION, W_SEQ, W_X, WORDS };

enum variant { PROTOCOL, STORED, VARIANTS };

enum reader_step { OUTSIDE, HIT, FIRST, TAKE_REGION, AGAIN, USE, LEAVE };

enum own_step {
	OWN_INVALIDATE,
	OWN_STORE,
	OWN_FENCE,
	OWN_REGION,
	OWN_SHOW,
	OWN_END = MODEL_END
};

struct own {
	struct reader me;	  /* the reader */
	uint8_t cached;		  /* the entry, see reader.h */
	uint8_t region;		  /* of the entry */
	uint8_t loaded;		  /* by the mutant */
	struct owner_fence fence; /* of the owner */
};

/* ---- the reader ---- */

static enum reader_step hit(struct model_run *r, struct own *own)
{
	if (reader_hits(r, READER, W_VERSION, &own->cached))
		return USE;
	own->region = 0;
	return FIRST;
}

static enum reader_step again(struct model_run *r, struct own *own)
{
	if (!reader_as_before(r, READER, &own->me, W_VERSION))
		return LEAVE;
	reader_keep(&own->me, &own->cached);
	return USE;
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
	case FIRST:
		return reader_looks(r, t, &own->me, W_VERSION) ? TAKE_REGION
							       : LEAVE;
	case TAKE_REGION:
		own->region = model_load(r, t, W_REGION, MODEL_ACQUIRE);
		return AGAIN;
	case AGAIN:
		return again(r, own);
	case USE:
		if (!own->region)
			model_touch(r, t, W_X);
		return LEAVE;
	case LEAVE:
		break;
	}
	reader_leave(r, t, &own->me, W_SEQ);
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

static unsigned int owner(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);

	switch ((enum own_step)at) {
	case OWN_INVALIDATE:
		return invalidate(r, own);
	case OWN_STORE:
		model_store(r, t, W_VERSION, own->loaded + 1u, MODEL_RELAXED);
		return OWN_FENCE;
	case OWN_FENCE:
		return fence(r, own);
	case OWN_REGION:
		model_store(r, t, W_REGION, 1, MODEL_RELAXED);
		return OWN_SHOW;
	case OWN_SHOW:
		/* M1 */
		model_add(r, t, W_VERSION, 1);
		break;
	case OWN_END:
		break;
	}
	return OWN_END;
}

static unsigned int monitor(struct model_run *r, unsigned int t,
			    unsigned int at)
{
	(void)at;
	model_add(r, t, W_VERSION, 2);
	return MODEL_END;
}

/* ---- the model ---- */

static const struct model_thread threads[THREADS] = {
	[READER] = { "reader", reader, OUTSIDE, 1u << OUTSIDE },
	[OWNER] = { .name = "owner", .step = owner },
	[MONITOR] = { .name = "monitor", .step = monitor },
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
	.lines = "K2 I5 R12",
	MODEL_TABLES(threads, words, variants),
	.own = sizeof(struct own),
};
