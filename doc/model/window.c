/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A window on a region whose pages change, or that is closed: contract W1,
 * I1, I5.
 *
 * Region and window have a slot each, and both lead to the pages X. The
 * reader uses the key of either. The owner changes the pages: bumps both
 * versions, fences once for both slots, takes X back, translates anew. Or it
 * closes: the region while a window lives is refused, so the window first.
 *
 *   OWN_REGION, OWN_WINDOW	rnic_mpt_invalidate() of each slot: O1
 *   OWN_FENCE		the grace period, with the bits of both
 *   OWN_FIELDS, OWN_VERSIONS	rnic_mpt_change() of each: M1
 *   reader		as in fence.c: H1 to H3, M1 to M4
 */
#include "doc/model/models.h"
#include "doc/model/owner.h"
#include "doc/model/reader.h"

enum { READER, OWNER, THREADS };

enum { OPS = 4, REGION = 0, WINDOW = 1, KEYS = 2 };

/* VERSION and PAGES are two words: of the region, of the window. */
enum word {
	W_VERSION,
	W_PAGES = W_VERSION + KEYS,
	W_SEQ = W_PAGES + KEYS,
	W_ANNOUNCE,
	W_X,
	WORDS
};

enum variant {
	UPDATE,
	CLOSES,
	NOT_BUMPED,
	ONE_BIT,
	NO_FENCE,
	NOT_TRANSLATED,
	CLOSED_UNDER_WINDOW,
	VARIANTS
};

enum reader_step {
	OUTSIDE,
	HIT,
	MISS,
	FENCE,
	FIRST,
	TAKE_PAGES,
	AGAIN,
	USE,
	LEAVE
};

enum own_step {
	OWN_REGION,
	OWN_WINDOW,
	OWN_FENCE,
	OWN_FIELDS,
	OWN_VERSIONS,
	OWN_END = MODEL_END
};

struct entry {
	uint8_t cached; /* see reader.h */
	uint8_t pages;	/* what it leads to: 0: X, 1: Y */
};

struct own {
	struct reader me;	  /* the reader */
	uint8_t bits;		  /* announced */
	uint8_t key;		  /* looked up */
	uint8_t pages;		  /* found */
	struct entry cache[KEYS]; /* of each key */
	uint8_t version_of[KEYS]; /* of the slots */
	struct owner_fence fence; /* of the owner */
};

static bool closes(const struct model_run *r)
{
	return model_is(r, CLOSES) || model_is(r, CLOSED_UNDER_WINDOW);
}

/* ---- the reader ---- */

static enum reader_step enter(struct model_run *r, struct own *own)
{
	reader_begin(r, &own->me, OPS);
	own->key = (uint8_t)model_choose(r, KEYS);
	model_note(r, "by the %s's key: ", own->key ? "window" : "region");
	reader_enter(r, READER, &own->me, W_SEQ);
	return own->cache[own->key].cached ? HIT : MISS;
}

static enum reader_step hit(struct model_run *r, struct own *own)
{
	struct entry *e = &own->cache[own->key];

	if (reader_hits(r, READER, W_VERSION + own->key, &e->cached)) {
		own->pages = e->pages;
		return USE;
	}
	e->pages = 0;
	return MISS;
}

static enum reader_step announce(struct model_run *r, struct own *own)
{
	/* M2 */
	own->bits |= (uint8_t)(1u << own->key);
	model_store(r, READER, W_ANNOUNCE, own->bits, MODEL_RELAXED);
	return FENCE;
}

static enum reader_step again(struct model_run *r, struct own *own)
{
	if (!reader_as_before(r, READER, &own->me, W_VERSION + own->key))
		return LEAVE;
	reader_keep(&own->me, &own->cache[own->key].cached);
	own->cache[own->key].pages = own->pages;
	return USE;
}

static enum reader_step miss(struct model_run *r, struct own *own,
			     unsigned int at)
{
	switch ((enum reader_step)at) {
	case MISS:
		return announce(r, own);
	case FENCE:
		/* M3, in a step of its own */
		model_fence(r, READER);
		return FIRST;
	case FIRST:
		/* M4, A2 */
		own->me.version = model_load(r, READER, W_VERSION + own->key,
					     MODEL_ACQUIRE);
		return own->me.version & 1 ? LEAVE : TAKE_PAGES;
	case TAKE_PAGES:
		own->pages = model_load(r, READER, W_PAGES + own->key,
					MODEL_ACQUIRE);
		return AGAIN;
	default:
		return again(r, own);
	}
}

static unsigned int reader(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);

	switch ((enum reader_step)at) {
	case OUTSIDE:
		return enter(r, own);
	case HIT:
		return hit(r, own);
	case USE:
		if (!own->pages)
			model_touch(r, t, W_X);
		return LEAVE;
	case LEAVE:
		reader_leave(r, t, &own->me, W_SEQ);
		own->pages = own->key = 0;
		return OUTSIDE;
	default:
		return miss(r, own, at);
	}
}

/* ---- the owner ---- */

static void bump(struct model_run *r, struct own *own, unsigned int key,
		 enum model_order o)
{
	model_store(r, OWNER, W_VERSION + key, ++own->version_of[key], o);
}

static enum own_step invalidate(struct model_run *r, struct own *own,
				unsigned int key)
{
	/* O1 */
	bump(r, own, key, MODEL_RELAXED);
	return key == WINDOW || model_is(r, CLOSED_UNDER_WINDOW) ||
			       model_is(r, NOT_BUMPED)
		       ? OWN_FENCE
		       : OWN_WINDOW;
}

static enum own_step fence(struct model_run *r, struct own *own)
{
	const struct owner_words w = {
		.thread = OWNER,
		.readers = 1,
		.seq = W_SEQ,
		.announce = W_ANNOUNCE,
		.want = model_is(r, ONE_BIT) ? 1u << REGION : 3u,
	};

	if (!model_is(r, NO_FENCE) && !owner_fence_step(r, &own->fence, &w))
		return OWN_FENCE;
	model_reclaim(r, OWNER, W_X);
	return closes(r) ? OWN_END : OWN_FIELDS;
}

static enum own_step write_fields(struct model_run *r)
{
	model_store(r, OWNER, W_PAGES + REGION, 1, MODEL_RELAXED);
	if (!model_is(r, NOT_TRANSLATED))
		model_store(r, OWNER, W_PAGES + WINDOW, 1, MODEL_RELAXED);
	return OWN_VERSIONS;
}

static enum own_step write_versions(struct model_run *r, struct own *own)
{
	/* M1, of both */
	bump(r, own, REGION, MODEL_RELEASE);
	if (own->version_of[WINDOW] & 1)
		bump(r, own, WINDOW, MODEL_RELEASE);
	return OWN_END;
}

static unsigned int owner(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);

	(void)t;
	switch ((enum own_step)at) {
	case OWN_REGION:
		return invalidate(r, own, REGION);
	case OWN_WINDOW:
		return invalidate(r, own, WINDOW);
	case OWN_FENCE:
		return fence(r, own);
	case OWN_FIELDS:
		return write_fields(r);
	case OWN_VERSIONS:
		return write_versions(r, own);
	case OWN_END:
		break;
	}
	return OWN_END;
}

/* ---- the model ---- */

static const struct model_thread threads[THREADS] = {
	[READER] = { "reader", reader, OUTSIDE, 1u << OUTSIDE },
	[OWNER] = { .name = "owner", .step = owner },
};

static const struct model_word words[WORDS] = {
	[W_VERSION] = { .name = "region's version", .loaders = 1 << READER },
	[W_VERSION + 1] = { .name = "window's version",
			    .loaders = 1 << READER },
	[W_PAGES] = { .name = "region's pages", .loaders = 1 << READER },
	[W_PAGES + 1] = { .name = "window's pages", .loaders = 1 << READER },
	[W_SEQ] = { .name = "sequence", .loaders = 1 << OWNER },
	[W_ANNOUNCE] = { .name = "announce", .loaders = 1 << OWNER },
	[W_X] = { .name = "X", .memory = true },
};

static const struct model_variant variants[VARIANTS] = {
	[UPDATE] = { "pages change", MODEL_HOLDS },
	[CLOSES] = { "window, then region closed", MODEL_HOLDS },
	[NOT_BUMPED] = { "windows not bumped", MODEL_FAILS },
	[ONE_BIT] = { "fence for the region's slot only", MODEL_FAILS },
	[NO_FENCE] = { "translated anew without a fence", MODEL_FAILS },
	[NOT_TRANSLATED] = { "windows not translated anew", MODEL_FAILS },
	[CLOSED_UNDER_WINDOW] = { "region freed under a live window",
				  MODEL_FAILS },
};

const struct model model_window = {
	.name = "window",
	.lines = "W1 I1 I5",
	MODEL_TABLES(threads, words, variants),
	.own = sizeof(struct own),
};
