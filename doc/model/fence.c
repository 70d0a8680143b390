/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The fence of shm/grace.h: contract I1, I6.
 *
 * Two readers (an enum reader_step each) do a few operations: a hit, a miss,
 * or outside a clear of the announce line. The owner invalidates region X,
 * fences, takes its memory back, and reuses the slot for region Y.
 *
 *   IDLE		H1, M1 in rnic_enter(); or clear() in shm/reader.c
 *   HIT		H2, A7 in hit()
 *   USE		the caller's copy
 *   LEAVE		H3, Q1 in rnic_leave()
 *   ANNOUNCE		M2 in announce()
 *   FENCE		M3 in miss()
 *   VERSION, FIELD, AGAIN	M4 and A2 in read_once()
 *   INSERT		insert()
 *   CLEAR		R3 in clear()
 *   OWN_INVALIDATE	O1 in rnic_mpt_invalidate()
 *   OWN_FENCE		O2 to O5, see owner.h
 *   OWN_FIELD, OWN_VERSION	slot_write() of the next region, M1
 */
#include "doc/model/models.h"
#include "doc/model/owner.h"

enum {
	READERS = 2,
	OWNER = READERS,
	OPS = 2,
	NONE = 0xff, /* no cached version */
};

enum word {
	W_VERSION,
	W_FIELD,
	W_SEQ,
	W_ANNOUNCE = W_SEQ + 2,
	W_CACHED = W_ANNOUNCE + 2,
	W_X = W_CACHED + 2,
	WORDS
};

enum variant {
	PROTOCOL,
	FENCING_READERS,
	NO_OWNER_FENCE,
	BARRIER_BY_CACHE,
	NO_BARRIER,
	BARRIER_LATE,
	CLEAR_INSIDE,
	CLEAR_KEEPS_CACHE,
	NO_MISS_FENCE,
	ANNOUNCE_LATE,
	NO_COMPARE,
	NOT_ODD,
	NO_WAIT,
	NO_GRACE,
	LEAVE_RELAXED,
	CLEAR_RELAXED,
	LOOKS_RELAXED,
	NO_LAST_FENCE,
	ENTER_RELAXED,
	VARIANTS
};

enum reader_step {
	IDLE,
	HIT,
	USE,
	LEAVE,
	MISS_ANNOUNCE,
	MISS_FENCE,
	MISS_VERSION,
	MISS_FIELD,
	MISS_AGAIN,
	MISS_INSERT,
};

enum own_step {
	OWN_INVALIDATE,
	OWN_FENCE,
	OWN_FIELD,
	OWN_VERSION,
	OWN_END = MODEL_END,
};

struct reader {
	uint8_t ops;	 /* operations begun */
	uint8_t seq;	 /* own sequence */
	uint8_t cached;	 /* version of the entry, NONE */
	uint8_t region;	 /* of the entry */
	uint8_t version; /* loaded in this operation */
	uint8_t found;	 /* region of this operation */
};

struct own {
	struct reader reader[READERS]; /* the readers */
	uint8_t reused;		       /* the slot is Y's already */
	struct owner_fence fence;      /* of the owner */
};

static void init(struct model_run *r)
{
	struct own *own = model_own(r);

	for (int t = 0; t < READERS; t++)
		own->reader[t].cached = NONE;
}

/* ---- readers ---- */

static enum reader_step enter(struct model_run *r, struct reader *me,
			      unsigned int t)
{
	me->ops++;
	me->seq += model_is(r, NOT_ODD) ? 2 : 1;
	/* H1, M1 */
	model_store(r, t, W_SEQ + t, me->seq,
		    model_is(r, ENTER_RELAXED) ? MODEL_ALONE : MODEL_RELEASE);
	return me->cached == NONE ? MISS_ANNOUNCE : HIT;
}

/* clear(): the cache is private, what tools see of it is a word. */
static void clear(struct model_run *r, struct reader *me, unsigned int t)
{
	if (!model_is(r, CLEAR_KEEPS_CACHE)) {
		me->cached = NONE;
		me->region = 0;
		model_store(r, t, W_CACHED + t, 0, MODEL_RELAXED);
	}
	/* R3 */
	model_store(r, t, W_ANNOUNCE + t, 0,
		    model_is(r, CLEAR_RELAXED) ? MODEL_RELAXED : MODEL_RELEASE);
}

static enum reader_step idle(struct model_run *r, struct reader *me,
			     unsigned int t)
{
	model_need(r, me->ops < OPS + (t == 0));
	if (me->cached == NONE || !model_choose(r, 2))
		return enter(r, me, t);
	model_note(r, "clears: ");
	me->ops++;
	clear(r, me, t);
	return IDLE;
}

static enum reader_step hit(struct model_run *r, struct reader *me,
			    unsigned int t)
{
	if (model_is(r, FENCING_READERS))
		model_fence(r, t);
	/* H2 */
	if (model_is(r, NO_COMPARE) ||
	    model_load(r, t, W_VERSION, MODEL_ACQUIRE) == me->cached) {
		me->found = me->region;
		return USE;
	}
	me->cached = NONE;
	me->region = 0;
	model_store(r, t, W_CACHED + t, 0, MODEL_RELAXED);
	return LEAVE;
}

static enum reader_step leave(struct model_run *r, struct reader *me,
			      unsigned int t)
{
	me->seq += model_is(r, NOT_ODD) ? 2 : 1;
	/* H3, Q1 */
	model_store(r, t, W_SEQ + t, me->seq,
		    model_is(r, LEAVE_RELAXED) ? MODEL_RELAXED : MODEL_RELEASE);
	me->version = me->found = 0;
	return IDLE;
}

static enum reader_step announce(struct model_run *r, const struct reader *me,
				 unsigned int t)
{
	if (model_is(r, ANNOUNCE_LATE) && me->cached == NONE)
		return MISS_FENCE;
	/* M2 */
	model_store(r, t, W_ANNOUNCE + t, 1, MODEL_RELAXED);
	return model_is(r, ANNOUNCE_LATE) ? USE : MISS_FENCE;
}

static enum reader_step field(struct model_run *r, struct reader *me,
			      unsigned int t)
{
	me->found = model_load(r, t, W_FIELD, MODEL_ACQUIRE);
	if (me->version == 0 && me->found == 1)
		model_fail(r, "use of a reused slot");
	return MISS_AGAIN;
}

static enum reader_step insert(struct model_run *r, struct reader *me,
			       unsigned int t)
{
	if (model_is(r, CLEAR_INSIDE))
		clear(r, me, t);
	me->cached = me->version;
	me->region = me->found;
	model_store(r, t, W_CACHED + t, 1, MODEL_RELAXED);
	return model_is(r, ANNOUNCE_LATE) ? MISS_ANNOUNCE : USE;
}

static enum reader_step miss(struct model_run *r, struct reader *me,
			     unsigned int t, unsigned int at)
{
	switch ((enum reader_step)at) {
	case MISS_ANNOUNCE:
		return announce(r, me, t);
	case MISS_FENCE:
		if (!model_is(r, NO_MISS_FENCE))
			model_fence(r, t);
		return MISS_VERSION;
	case MISS_VERSION:
		me->version = model_load(r, t, W_VERSION, MODEL_ACQUIRE);
		return me->version & 1 ? LEAVE : MISS_FIELD;
	case MISS_FIELD:
		return field(r, me, t);
	case MISS_AGAIN:
		return model_load(r, t, W_VERSION, MODEL_RELAXED) == me->version
			       ? MISS_INSERT
			       : LEAVE;
	default:
		return insert(r, me, t);
	}
}

static unsigned int reader(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);
	struct reader *me = &own->reader[t];

	switch ((enum reader_step)at) {
	case IDLE:
		return idle(r, me, t);
	case HIT:
		return hit(r, me, t);
	case USE:
		/* Y's memory stays */
		if (!me->found)
			model_touch(r, t, W_X);
		return LEAVE;
	case LEAVE:
		return leave(r, me, t);
	default:
		return miss(r, me, t, at);
	}
}

/* ---- the owner ---- */

static unsigned int faults(const struct model_run *r)
{
	switch (model_variant(r)) {
	case NO_OWNER_FENCE:
		return OWNER_NO_FENCE;
	case NO_BARRIER:
	case FENCING_READERS:
		return OWNER_NO_BARRIER;
	case BARRIER_LATE:
		return OWNER_BARRIER_LATE;
	case NO_WAIT:
		return OWNER_NO_WAIT;
	case LOOKS_RELAXED:
		return OWNER_RELAXED;
	case NO_LAST_FENCE:
		return OWNER_NO_LAST;
	default:
		return 0;
	}
}

static enum own_step own_fence(struct model_run *r, struct own *own)
{
	const struct owner_words w = {
		.thread = OWNER,
		.readers = READERS,
		.seq = W_SEQ,
		.announce =
			model_is(r, BARRIER_BY_CACHE) ? W_CACHED : W_ANNOUNCE,
		.want = 1,
		.faults = faults(r),
	};

	if (!owner_fence_step(r, &own->fence, &w))
		return OWN_FENCE;
	model_reclaim(r, OWNER, W_X);
	return own->reused ? OWN_END : OWN_FIELD;
}

static unsigned int owner(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);

	switch ((enum own_step)at) {
	case OWN_INVALIDATE:
		/* O1 */
		model_store(r, t, W_VERSION, 1, MODEL_RELAXED);
		return model_is(r, NO_GRACE) ? OWN_FIELD : OWN_FENCE;
	case OWN_FENCE:
		return own_fence(r, own);
	case OWN_FIELD:
		model_store(r, t, W_FIELD, 1, MODEL_RELAXED);
		return OWN_VERSION;
	case OWN_VERSION:
		/* M1 */
		model_store(r, t, W_VERSION, 2, MODEL_RELEASE);
		own->reused = 1;
		return model_is(r, NO_GRACE) ? OWN_FENCE : OWN_END;
	case OWN_END:
		break;
	}
	return OWN_END;
}

/* ---- the model ---- */

static const struct model_thread threads[] = {
	{ "reader A", reader, IDLE, 1u << IDLE },
	{ "reader B", reader, IDLE, 1u << IDLE },
	{ .name = "owner", .step = owner },
};

static const struct model_word words[WORDS] = {
	[W_VERSION] = { .name = "version", .loaders = 3 },
	[W_FIELD] = { .name = "field", .loaders = 3 },
	[W_SEQ] = { .name = "sequence A", .loaders = 4 },
	[W_SEQ + 1] = { .name = "sequence B", .loaders = 4 },
	[W_ANNOUNCE] = { .name = "announce A", .loaders = 4 },
	[W_ANNOUNCE + 1] = { .name = "announce B", .loaders = 4 },
	[W_CACHED] = { .name = "cached A", .loaders = 4 },
	[W_CACHED + 1] = { .name = "cached B", .loaders = 4 },
	[W_X] = { .name = "X", .memory = true },
};

static const struct model_variant variants[VARIANTS] = {
	[PROTOCOL] = { "the protocol", MODEL_HOLDS },
	[FENCING_READERS] = { "no membarrier, readers fence", MODEL_HOLDS },
	[NO_OWNER_FENCE] = { "no fence of the owner", MODEL_FAILS },
	[BARRIER_BY_CACHE] = { "membarrier skipped by key caches",
			       MODEL_FAILS },
	[NO_BARRIER] = { "no membarrier", MODEL_FAILS },
	[BARRIER_LATE] = { "membarrier after the scan", MODEL_FAILS },
	[CLEAR_INSIDE] = { "announce line cleared inside", MODEL_FAILS },
	[CLEAR_KEEPS_CACHE] = { "cleared before the cache is empty",
				MODEL_FAILS },
	[NO_MISS_FENCE] = { "no fence on a miss", MODEL_FAILS },
	[ANNOUNCE_LATE] = { "announced after the load", MODEL_FAILS },
	[NO_COMPARE] = { "version not compared on a hit", MODEL_FAILS },
	[NOT_ODD] = { "sequence not odd inside", MODEL_FAILS },
	[NO_WAIT] = { "wait skipped", MODEL_FAILS },
	[NO_GRACE] = { "slot reused without grace period", MODEL_FAILS },
	[LEAVE_RELAXED] = { "sequence even without release (H3)",
			    MODEL_FAILS_WEAK },
	[CLEAR_RELAXED] = { "line cleared without release (R3)",
			    MODEL_FAILS_WEAK },
	[LOOKS_RELAXED] = { "A1, A3 relaxed: the last fence does",
			    MODEL_HOLDS },
	[NO_LAST_FENCE] = { "no fence after the last look", MODEL_FAILS_WEAK },
	[ENTER_RELAXED] = { "sequence odd without release (H1)",
			    MODEL_FAILS_WEAK },
};

const struct model model_owner_fence = {
	.name = "fence",
	.lines = "I1 I6",
	MODEL_TABLES(threads, words, variants),
	.own = sizeof(struct own),
	.init = init,
};
