/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One slot of the MPT, several regions one after the other: contract I4, K2.
 *
 * The slot has region X under key 1, then Y under key 2, then is worn out:
 * there are two generations only. A key has the slot in its lower bits and
 * the generation above, here: just the generation. The reader looks up key 1
 * or key 2, by its cache if it can, and touches what it finds. Key 1 must
 * never be anything but X.
 *
 * X is either given to others (its close fences and then reuses the memory),
 * or not (remote rights are missing: closed without a fence; only the slot's
 * reuse waits for a grace period).
 *
 *   HIT		hit() in shm/reader.c: H2, A7
 *   KEY, REGION, RIGHTS, AGAIN	read_once(): A2 and what follows
 *   OWN_INVALIDATE	rnic_mpt_invalidate() in shm/mpt.c: O1
 *   OWN_FENCE		rnic_grace_fence() in withdraw() of lib/mr.c
 *   OWN_GRACE		rested(): rnic_grace_ended()
 *   OWN_KEY to OWN_VERSION	make_key(), slot_write(): M1
 *   OWN_WORN		GEN_MAX in rnic_mpt_retire()
 */
#include "doc/model/models.h"
#include "doc/model/owner.h"
#include "doc/model/reader.h"

enum { READER, OWNER, THREADS };

enum { OPS = 3 };

/* Values of KEY and REGION: X: 1, Y: 2, and 3 for one more. */
enum word { W_VERSION, W_KEY, W_REGION, W_RIGHTS, W_SEQ, W_X, WORDS };

enum variant {
	PROTOCOL,
	NOT_GIVEN,
	NOT_GIVEN_NO_GRACE,
	NO_GRACE_ONE_LOOK,
	VERSION_RESET,
	NO_KEY,
	WRAPS,
	VARIANTS
};

enum reader_step {
	LOOK,
	ENTER,
	HIT,
	MISS,
	TAKE_KEY,
	TAKE_REGION,
	TAKE_RIGHTS,
	AGAIN,
	USE,
	LEAVE
};

enum own_step {
	OWN_INVALIDATE,
	OWN_FENCE,
	OWN_WORN,
	OWN_KEY,
	OWN_VERSION,
	OWN_END = MODEL_END,
};

/* An entry of the key cache, of one key each. */
struct entry {
	uint8_t cached; /* see reader.h */
	uint8_t region; /* what it leads to */
};

struct own {
	struct reader me;	  /* the reader */
	uint8_t key;		  /* looked up: 1 or 2 */
	uint8_t found;		  /* region */
	struct entry cache[2];	  /* of key 1, of key 2 */
	uint8_t region;		  /* in the slot: 1 to 3 */
	uint8_t own_version;	  /* of the slot */
	struct owner_fence fence; /* of the owner */
};

static bool is_given(const struct model_run *r)
{
	return !model_is(r, NOT_GIVEN) && !model_is(r, NOT_GIVEN_NO_GRACE) &&
	       !model_is(r, NO_GRACE_ONE_LOOK);
}

static bool waits_for_grace(const struct model_run *r)
{
	return is_given(r) || model_is(r, NOT_GIVEN);
}

static void init(struct model_run *r)
{
	struct own *own = model_own(r);

	own->region = 1;
}

/* ---- the reader ---- */

static enum reader_step look(struct model_run *r, struct own *own)
{
	reader_begin(r, &own->me, OPS);
	own->key = (uint8_t)(1 + model_choose(r, 2));
	model_note(r, "looks up key %u; ", own->key);
	return ENTER;
}

static enum reader_step hit(struct model_run *r, struct own *own)
{
	struct entry *e = &own->cache[own->key - 1];

	if (reader_hits(r, READER, W_VERSION, &e->cached)) {
		own->found = e->region;
		return USE;
	}
	e->region = 0;
	return MISS;
}

static enum reader_step take_key(struct model_run *r, const struct own *own)
{
	uint8_t key = model_load(r, READER, W_KEY, MODEL_ACQUIRE);

	return key == own->key || model_is(r, NO_KEY) ? TAKE_REGION : LEAVE;
}

static enum reader_step again(struct model_run *r, struct own *own)
{
	if (!model_is(r, NO_GRACE_ONE_LOOK) &&
	    !reader_as_before(r, READER, &own->me, W_VERSION))
		return LEAVE;
	reader_keep(&own->me, &own->cache[own->key - 1].cached);
	own->cache[own->key - 1].region = own->found;
	return USE;
}

static enum reader_step use(struct model_run *r, const struct own *own)
{
	if (own->found != own->key)
		model_fail(r, "a key leads to another region");
	if (own->found == 1)
		model_touch(r, READER, W_X);
	return LEAVE;
}

static enum reader_step miss(struct model_run *r, struct own *own,
			     unsigned int at)
{
	switch ((enum reader_step)at) {
	case MISS:
		return reader_looks(r, READER, &own->me, W_VERSION) ? TAKE_KEY
								    : LEAVE;
	case TAKE_KEY:
		return take_key(r, own);
	case TAKE_REGION:
		own->found = model_load(r, READER, W_REGION, MODEL_ACQUIRE);
		return TAKE_RIGHTS;
	case TAKE_RIGHTS:
		/* without the right it is -EACCES, and not cached */
		return model_load(r, READER, W_RIGHTS, MODEL_ACQUIRE) ||
				       is_given(r)
			       ? AGAIN
			       : LEAVE;
	default:
		return again(r, own);
	}
}

static unsigned int reader(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);

	switch ((enum reader_step)at) {
	case LOOK:
		return look(r, own);
	case ENTER:
		reader_enter(r, t, &own->me, W_SEQ);
		return own->cache[own->key - 1].cached ? HIT : MISS;
	case HIT:
		return hit(r, own);
	case USE:
		return use(r, own);
	case LEAVE:
		reader_leave(r, t, &own->me, W_SEQ);
		own->key = own->found = 0;
		return LOOK;
	default:
		return miss(r, own, at);
	}
}

/* ---- the owner ---- */

static enum own_step invalidate(struct model_run *r, struct own *own)
{
	/* O1 */
	model_store(r, OWNER, W_VERSION, ++own->own_version, MODEL_RELAXED);
	return waits_for_grace(r) ? OWN_FENCE : OWN_WORN;
}

static enum own_step fence(struct model_run *r, struct own *own)
{
	const struct owner_words w = {
		.thread = OWNER,
		.readers = 1,
		.seq = W_SEQ,
		.announce = OWNER_ALWAYS,
		/* nobody has cached it, and a miss has fenced */
		.faults = is_given(r) ? 0 : OWNER_NO_BARRIER,
	};

	if (!owner_fence_step(r, &own->fence, &w))
		return OWN_FENCE;
	if (own->region == 1)
		model_reclaim(r, OWNER, W_X);
	return OWN_WORN;
}

/* Reuse of the slot, if it has a generation left. */
static enum own_step worn(struct model_run *r, struct own *own)
{
	if (own->region == 2 && !model_is(r, WRAPS))
		return OWN_END;
	own->region++;
	return OWN_KEY;
}

static enum own_step write_fields(struct model_run *r, struct own *own)
{
	uint8_t key = own->region == 3 ? 1 : own->region;

	model_store(r, OWNER, W_KEY, key, MODEL_RELAXED);
	model_store(r, OWNER, W_REGION, own->region, MODEL_RELAXED);
	/* 0 are those of X, whatever they are; Y is given */
	model_store(r, OWNER, W_RIGHTS, 1, MODEL_RELAXED);
	return OWN_VERSION;
}

static enum own_step write_version(struct model_run *r, struct own *own)
{
	own->own_version++;
	if (model_is(r, VERSION_RESET))
		own->own_version = 0;
	/* M1 */
	model_store(r, OWNER, W_VERSION, own->own_version, MODEL_RELEASE);
	return own->region == 3 ? OWN_END : OWN_INVALIDATE;
}

static unsigned int owner(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);

	(void)t;
	switch ((enum own_step)at) {
	case OWN_INVALIDATE:
		return invalidate(r, own);
	case OWN_FENCE:
		return fence(r, own);
	case OWN_WORN:
		return worn(r, own);
	case OWN_KEY:
		return write_fields(r, own);
	case OWN_VERSION:
		return write_version(r, own);
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
	[W_VERSION] = { .name = "version", .loaders = 1 << READER },
	[W_KEY] = { "key", 1, 1 << READER, false, false },
	[W_REGION] = { "region", 1, 1 << READER, false, false },
	[W_RIGHTS] = { .name = "rights", .loaders = 1 << READER },
	[W_SEQ] = { .name = "sequence", .loaders = 1 << OWNER },
	[W_X] = { .name = "X", .memory = true },
};

static const struct model_variant variants[VARIANTS] = {
	[PROTOCOL] = { "the protocol", MODEL_HOLDS },
	[NOT_GIVEN] = { "never given: closed without a wait", MODEL_HOLDS },
	[NOT_GIVEN_NO_GRACE] = { "slot reused without grace",
				 MODEL_FAILS_WEAK },
	[NO_GRACE_ONE_LOOK] = { "the same, and no second look", MODEL_FAILS },
	[VERSION_RESET] = { "version begins anew", MODEL_FAILS },
	[NO_KEY] = { "key not compared", MODEL_FAILS },
	[WRAPS] = { "generation wraps", MODEL_FAILS },
};

const struct model model_reuse = {
	.name = "reuse",
	.lines = "I4 K2",
	MODEL_TABLES(threads, words, variants),
	.own = sizeof(struct own),
	.init = init,
};
