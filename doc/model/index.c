/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The index of keys that users chose, changed and rebuilt while it is looked
 * up: contract R2, I6.
 *
 * Two tables of two places, all keys in one chain. Key A lies in place 0, key
 * B in place 1. The owner deletes A, inserts C (in A's place), rebuilds the
 * index into the other table, waits for a grace period, and rebuilds it back
 * into the first. B lives all the time, so a lookup of B must find it; a
 * lookup of C that began when C was told must find it.
 *
 *   OWN_DELETE		index_delete() in shm/mpt.c: a tombstone
 *   OWN_INSERT		index_put(): the key, then M3
 *   OWN_TELL		the key reaches the peer, by any message
 *   OWN_CLEAR, OWN_COPY	index_rebuild(): index_clear(), index_copy()
 *   OWN_TABLE		M4
 *   OWN_GRACE		rnic_grace_wait(), see owner.h
 *   ENTER		rnic_enter()
 *   TABLE		find_slot(): the fence; index_find(): A5
 *   PLACE, KEY		A4, and the key behind it
 */
#include "doc/model/models.h"
#include "doc/model/owner.h"
#include "doc/model/reader.h"

enum { READER, OWNER, THREADS };

enum { OPS = 2, PLACES = 2, FREE = 0, TOMBSTONE = 9, A = 1, B = 2, C = 3 };

/* A place is its slot (that of key A is A, for short), then its key. */
enum word {
	W_INDEX,
	W_TOLD,
	W_SEQ,
	W_PLACE0,
	W_PLACE1 = W_PLACE0 + 2 * PLACES,
	WORDS = W_PLACE1 + 2 * PLACES
};

enum variant {
	PROTOCOL,
	NO_GRACE,
	NO_READER_FENCE,
	MOVED,
	FREED,
	TABLE_EARLY,
	TABLE_RELAXED,
	INDEX_RELAXED,
	PLACE_RELAXED,
	VARIANTS
};

enum own_step {
	OWN_DELETE,
	OWN_INSERT,
	OWN_TELL,
	OWN_CLEAR,
	OWN_COPY,
	OWN_TABLE,
	OWN_GRACE,
	OWN_END = MODEL_END,
};

enum reader_step { LOOK, ENTER, TABLE, PLACE, KEY, LEAVE };

struct own {
	struct reader me;	  /* the reader */
	uint8_t key;		  /* looked up */
	uint8_t table;		  /* in this one */
	uint8_t place;		  /* at this place */
	uint8_t slot;		  /* that it names */
	uint8_t current;	  /* table */
	uint8_t i;		  /* place to be cleared or copied */
	struct owner_fence fence; /* of the owner */
};

/* Word of place @i of table @table; its key follows. */
static unsigned int place_word(unsigned int table, unsigned int i)
{
	return (table ? W_PLACE1 : W_PLACE0) + 2 * i;
}

/* ---- the reader ---- */

static enum reader_step look(struct model_run *r, struct own *own)
{
	reader_begin(r, &own->me, OPS);
	own->key = B;
	if (model_choose(r, 2)) {
		own->key = C;
		model_need(r, model_load(r, READER, W_TOLD, MODEL_ACQUIRE));
	}
	model_note(r, "looks up %c; ", '@' + own->key);
	return ENTER;
}

static enum reader_step table(struct model_run *r, struct own *own)
{
	if (!model_is(r, NO_READER_FENCE))
		model_fence(r, READER);
	/* A5 */
	own->table = model_load(r, READER, W_INDEX,
				model_is(r, INDEX_RELAXED) ? MODEL_RELAXED
							   : MODEL_ACQUIRE);
	own->place = 0;
	return PLACE;
}

/* Not at this place: the next one, or there is none. */
static enum reader_step further(struct model_run *r, struct own *own, bool end)
{
	if (++own->place < PLACES && !end)
		return PLACE;
	model_fail(r, "a live key is not found");
	return LEAVE;
}

static enum reader_step place(struct model_run *r, struct own *own)
{
	/* A4 */
	own->slot = model_load(r, READER, place_word(own->table, own->place),
			       MODEL_ACQUIRE);
	if (own->slot == FREE || own->slot == TOMBSTONE)
		return further(r, own, own->slot == FREE);
	return KEY;
}

static enum reader_step key(struct model_run *r, struct own *own)
{
	uint8_t k =
		model_load(r, READER, place_word(own->table, own->place) + 1,
			   MODEL_RELAXED);

	if (k != own->key)
		return further(r, own, false);
	/* the MPT entry has the key once more: a wrong slot is refused */
	if (own->slot != own->key)
		model_fail(r, "a live key names another's slot");
	return LEAVE;
}

static unsigned int reader(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);

	switch ((enum reader_step)at) {
	case LOOK:
		return look(r, own);
	case ENTER:
		reader_enter(r, t, &own->me, W_SEQ);
		return TABLE;
	case TABLE:
		return table(r, own);
	case PLACE:
		return place(r, own);
	case KEY:
		return key(r, own);
	case LEAVE:
		break;
	}
	reader_leave(r, t, &own->me, W_SEQ);
	own->key = own->table = own->place = own->slot = 0;
	return LOOK;
}

/* ---- the owner ---- */

/* Key @k into place @i of @table. */
static void put(struct model_run *r, unsigned int table, unsigned int i,
		unsigned int k)
{
	/* relaxed, M3 publishes */
	model_store(r, OWNER, place_word(table, i) + 1, k, MODEL_RELAXED);
	/* M3 */
	model_store(r, OWNER, place_word(table, i), k,
		    model_is(r, PLACE_RELAXED) ? MODEL_RELAXED : MODEL_RELEASE);
}

/* A leaves; the mutants tidy up behind it. */
static enum own_step take_a(struct model_run *r)
{
	if (model_is(r, MOVED)) {
		put(r, 0, 0, B);
		model_store(r, OWNER, place_word(0, 1), FREE, MODEL_RELAXED);
	} else {
		model_store(r, OWNER, place_word(0, 0),
			    model_is(r, FREED) ? FREE : TOMBSTONE,
			    MODEL_RELAXED);
	}
	return OWN_INSERT;
}

static enum own_step clear(struct model_run *r, struct own *own)
{
	model_store(r, OWNER, place_word(!own->current, own->i), FREE,
		    MODEL_RELAXED);
	if (++own->i < PLACES)
		return OWN_CLEAR;
	own->i = 0;
	return model_is(r, TABLE_EARLY) ? OWN_TABLE : OWN_COPY;
}

/* The first rebuild is followed by another one. */
static enum own_step rebuilt(const struct own *own)
{
	return own->current ? OWN_GRACE : OWN_END;
}

static enum own_step copy(struct model_run *r, struct own *own)
{
	/* C first, B behind it, as they are */
	put(r, model_is(r, TABLE_EARLY) ? own->current : !own->current, own->i,
	    own->i ? B : C);
	if (++own->i < PLACES)
		return OWN_COPY;
	own->i = 0;
	return model_is(r, TABLE_EARLY) ? rebuilt(own) : OWN_TABLE;
}

static enum own_step publish(struct model_run *r, struct own *own)
{
	own->current = !own->current;
	/* M4 */
	model_store(r, OWNER, W_INDEX, own->current,
		    model_is(r, TABLE_RELAXED) ? MODEL_RELAXED : MODEL_RELEASE);
	return model_is(r, TABLE_EARLY) ? OWN_COPY : rebuilt(own);
}

static enum own_step grace(struct model_run *r, struct own *own)
{
	const struct owner_words w = {
		.thread = OWNER,
		.readers = 1,
		.seq = W_SEQ,
		/* a miss has fenced: no membarrier is needed */
		.announce = OWNER_ALWAYS,
		.faults = OWNER_NO_BARRIER,
	};

	return model_is(r, NO_GRACE) || owner_fence_step(r, &own->fence, &w)
		       ? OWN_CLEAR
		       : OWN_GRACE;
}

static unsigned int owner(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);

	switch ((enum own_step)at) {
	case OWN_DELETE:
		return take_a(r);
	case OWN_INSERT:
		put(r, 0, model_is(r, MOVED) ? 1 : 0, C);
		return OWN_TELL;
	case OWN_TELL:
		model_store(r, t, W_TOLD, 1, MODEL_RELEASE);
		return OWN_CLEAR;
	case OWN_CLEAR:
		return clear(r, own);
	case OWN_COPY:
		return copy(r, own);
	case OWN_TABLE:
		return publish(r, own);
	case OWN_GRACE:
		return grace(r, own);
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
	[W_INDEX] = { .name = "index", .loaders = 1 << READER },
	[W_TOLD] = { .name = "told", .loaders = 1 << READER },
	[W_SEQ] = { .name = "sequence", .loaders = 1 << OWNER },
	[W_PLACE0] = { "place 0.0", A, 1 << READER, false, false },
	[W_PLACE0 + 1] = { "key 0.0", A, 1 << READER, false, false },
	[W_PLACE0 + 2] = { "place 0.1", B, 1 << READER, false, false },
	[W_PLACE0 + 3] = { "key 0.1", B, 1 << READER, false, false },
	[W_PLACE1] = { .name = "place 1.0", .loaders = 1 << READER },
	[W_PLACE1 + 1] = { .name = "key 1.0", .loaders = 1 << READER },
	[W_PLACE1 + 2] = { .name = "place 1.1", .loaders = 1 << READER },
	[W_PLACE1 + 3] = { .name = "key 1.1", .loaders = 1 << READER },
};

static const struct model_variant variants[VARIANTS] = {
	[PROTOCOL] = { "the protocol", MODEL_HOLDS },
	[NO_GRACE] = { "other table cleared without grace", MODEL_FAILS },
	[NO_READER_FENCE] = { "no fence before the index", MODEL_FAILS },
	[MOVED] = { "entries move when one leaves", MODEL_FAILS },
	[FREED] = { "no tombstone", MODEL_FAILS },
	[TABLE_EARLY] = { "table shown before it is filled", MODEL_FAILS },
	[TABLE_RELAXED] = { "table without release (M4)", MODEL_FAILS_WEAK },
	[INDEX_RELAXED] = { "table read without acquire (A5)",
			    MODEL_FAILS_WEAK },
	[PLACE_RELAXED] = { "M3 relaxed: the key is told later", MODEL_HOLDS },
};

const struct model model_index = {
	.name = "index",
	.lines = "R2 I6",
	MODEL_TABLES(threads, words, variants),
	.own = sizeof(struct own),
};
