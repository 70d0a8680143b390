/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One key, first X, then Y: contract I5, I3, K2.
 *
 * Two readers do operations of two chunks each, under one key. Between the
 * chunks they are outside. The owner makes the key mean Y: a refresh (other
 * pages behind the same range, so the binding stays, and an operation may go
 * on in Y), or a rebind (another range, so an operation that began in X must
 * not go on in Y).
 *
 *   ENTER, HIT		rnic_enter(), hit(): H1, H2
 *   MISS to AGAIN	read_once(): M3, A2
 *   USE		use(): the binding of rnic_want.first; then the copy
 *   OWN_INVALIDATE	rnic_mpt_invalidate() in shm/mpt.c: O1
 *   OWN_FENCE		rnic_grace_fence()
 *   OWN_FIELDS, OWN_VERSION	rnic_mpt_change(): slot_write(), M1
 */
#include "doc/model/models.h"
#include "doc/model/owner.h"
#include "doc/model/reader.h"

enum { READER_A, READER_B, OWNER, THREADS };

enum { READERS = OWNER, CHUNKS = 2, IN_X = 0, IN_Y = 1 };

/* REGION: the root of the translation. */
enum word {
	W_VERSION,
	W_REGION,
	W_BINDING,
	W_SEQ,
	W_X = W_SEQ + READERS,
	WORDS
};

enum variant {
	REFRESH,
	REBIND,
	NOT_BUMPED,
	ONE_STEP,
	NO_FENCE,
	ALIVE_BEFORE_FENCE,
	NO_BINDING,
	SAME_BINDING,
	VARIANTS
};

enum reader_step {
	OUTSIDE,
	HIT,
	MISS,
	TAKE_REGION,
	TAKE_BINDING,
	AGAIN,
	USE,
	LEAVE,
	FINISHED = MODEL_END
};

enum own_step {
	OWN_INVALIDATE,
	OWN_FENCE,
	OWN_FIELDS,
	OWN_VERSION,
	OWN_END = MODEL_END
};

struct client {
	struct reader me; /* as a reader */
	uint8_t chunks;	  /* done */
	uint8_t cached;	  /* the entry, see reader.h */
	uint8_t region;	  /* of the entry */
	uint8_t binding;  /* of the entry */
	uint8_t first;	  /* binding of the first chunk */
	uint8_t begun;	  /* region of the first chunk */
};

struct own {
	struct client client[READERS]; /* the readers */
	struct owner_fence fence;      /* of the owner */
};

static bool rebinds(const struct model_run *r)
{
	return model_is(r, REBIND) || model_is(r, NO_BINDING) ||
	       model_is(r, SAME_BINDING);
}

/* ---- readers ---- */

static enum reader_step hit(struct model_run *r, unsigned int t,
			    struct client *c)
{
	if (reader_hits(r, t, W_VERSION, &c->cached))
		return USE;
	c->region = c->binding = 0;
	return MISS;
}

static enum reader_step miss(struct model_run *r, unsigned int t,
			     struct client *c, unsigned int at)
{
	switch ((enum reader_step)at) {
	case MISS:
		/* without a key the operation ends: I3 */
		return reader_looks(r, t, &c->me, W_VERSION) ? TAKE_REGION
							     : LEAVE;
	case TAKE_REGION:
		c->region = model_load(r, t, W_REGION, MODEL_ACQUIRE);
		return TAKE_BINDING;
	case TAKE_BINDING:
		c->binding = model_load(r, t, W_BINDING, MODEL_ACQUIRE);
		return AGAIN;
	default:
		break;
	}
	if (!reader_as_before(r, t, &c->me, W_VERSION))
		return MISS;
	reader_keep(&c->me, &c->cached);
	return USE;
}

/* Who resolves Y while another is inside with X? */
static void check_others(struct model_run *r, const struct own *own,
			 unsigned int t)
{
	const struct client *other = &own->client[!t];

	if (own->client[t].region == IN_Y && model_at(r, !t) == USE &&
	    other->region == IN_X)
		model_fail(r, "Y is resolved while X is in use");
}

static enum reader_step use(struct model_run *r, unsigned int t,
			    struct client *c)
{
	bool first = !c->chunks;

	check_others(r, model_own(r), t);
	if (first) {
		c->first = c->binding;
		c->begun = c->region;
	}
	/* -ESTALE: the operation ends, I3 */
	if (c->first != c->binding && !model_is(r, NO_BINDING)) {
		c->chunks = CHUNKS;
		return LEAVE;
	}
	if (rebinds(r) && c->begun != c->region)
		model_fail(r, "half in X and half in Y");
	if (c->region == IN_X)
		model_touch(r, t, W_X);
	c->chunks++;
	return LEAVE;
}

static enum reader_step leave(struct model_run *r, unsigned int t,
			      struct client *c)
{
	/* a lookup that failed ends the operation */
	reader_leave(r, t, &c->me, W_SEQ + t);
	if (!c->cached)
		c->chunks = CHUNKS;
	return c->chunks == CHUNKS ? FINISHED : OUTSIDE;
}

static unsigned int reader(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);
	struct client *c = &own->client[t];

	switch ((enum reader_step)at) {
	case OUTSIDE:
		reader_enter(r, t, &c->me, W_SEQ + t);
		return c->cached ? HIT : MISS;
	case HIT:
		return hit(r, t, c);
	case USE:
		return use(r, t, c);
	case LEAVE:
		return leave(r, t, c);
	default:
		return miss(r, t, c, at);
	}
}

/* ---- the owner ---- */

static void store_version(struct model_run *r, unsigned int version)
{
	model_store(r, OWNER, W_VERSION, version,
		    version & 1 ? MODEL_RELAXED : MODEL_RELEASE);
}

static enum own_step invalidate(struct model_run *r)
{
	if (model_is(r, ONE_STEP))
		return OWN_FIELDS;
	/* O1 */
	store_version(r, 1);
	return model_is(r, ALIVE_BEFORE_FENCE) ? OWN_FIELDS : OWN_FENCE;
}

static enum own_step fence(struct model_run *r, struct own *own)
{
	const struct owner_words w = {
		.thread = OWNER,
		.readers = READERS,
		.seq = W_SEQ,
		.announce = OWNER_ALWAYS,
	};

	if (!model_is(r, NO_FENCE) && !owner_fence_step(r, &own->fence, &w))
		return OWN_FENCE;
	model_reclaim(r, OWNER, W_X);
	return model_is(r, ALIVE_BEFORE_FENCE) || model_is(r, ONE_STEP)
		       ? OWN_END
		       : OWN_FIELDS;
}

static enum own_step write_fields(struct model_run *r)
{
	model_store(r, OWNER, W_REGION, IN_Y, MODEL_RELAXED);
	if (rebinds(r) && !model_is(r, SAME_BINDING))
		model_store(r, OWNER, W_BINDING, 1, MODEL_RELAXED);
	return OWN_VERSION;
}

static enum own_step write_version(struct model_run *r)
{
	/* M1 */
	store_version(r, model_is(r, NOT_BUMPED) ? 0 : 2);
	return model_is(r, ALIVE_BEFORE_FENCE) || model_is(r, ONE_STEP)
		       ? OWN_FENCE
		       : OWN_END;
}

static unsigned int owner(struct model_run *r, unsigned int t, unsigned int at)
{
	(void)t;
	switch ((enum own_step)at) {
	case OWN_INVALIDATE:
		return invalidate(r);
	case OWN_FENCE:
		return fence(r, model_own(r));
	case OWN_FIELDS:
		return write_fields(r);
	case OWN_VERSION:
		return write_version(r);
	case OWN_END:
		break;
	}
	return OWN_END;
}

/* ---- the model ---- */

static const struct model_thread threads[THREADS] = {
	[READER_A] = { .name = "reader A", .step = reader },
	[READER_B] = { .name = "reader B", .step = reader },
	[OWNER] = { .name = "owner", .step = owner },
};

static const struct model_word words[WORDS] = {
	[W_VERSION] = { .name = "version", .loaders = 3 },
	[W_REGION] = { .name = "region", .loaders = 3 },
	[W_BINDING] = { .name = "binding", .loaders = 3 },
	[W_SEQ] = { .name = "sequence A", .loaders = 1 << OWNER },
	[W_SEQ + 1] = { .name = "sequence B", .loaders = 1 << OWNER },
	[W_X] = { .name = "X", .memory = true },
};

static const struct model_variant variants[VARIANTS] = {
	[REFRESH] = { "refresh", MODEL_HOLDS },
	[REBIND] = { "rebind", MODEL_HOLDS },
	[NOT_BUMPED] = { "version not bumped on refresh", MODEL_FAILS },
	[ONE_STEP] = { "X becomes Y in one step", MODEL_FAILS },
	[NO_FENCE] = { "no fence between X and Y", MODEL_FAILS },
	[ALIVE_BEFORE_FENCE] = { "Y shown before the fence", MODEL_FAILS },
	[NO_BINDING] = { "binding not compared", MODEL_FAILS },
	[SAME_BINDING] = { "rebind keeps the binding", MODEL_FAILS },
};

const struct model model_rebind = {
	.name = "rebind",
	.lines = "I3 I5 K2",
	MODEL_TABLES(threads, words, variants),
	.own = sizeof(struct own),
};
