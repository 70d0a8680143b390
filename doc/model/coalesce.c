/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Grace periods that several closes share: contract I1, I6.
 *
 * Two threads of the owner close a region each, slots 0 and 1. Periods are
 * numbered, one at a time; who asks while one is under way shares the next.
 * Everything in struct rnic_grace is under its lock. The reader has used both
 * slots already, so it hits. A membarrier may be refused once.
 *
 *   INVALIDATE		rnic_mpt_invalidate(): O1
 *   LOCK, ASK		rnic_grace_fence() in shm/grace.c: want, number
 *   TURN		wait_for(): begin, move on, or done
 *   SCAN		begin(), scan(): O2 to O5, see owner.h, under the lock
 *   MOVE		move_on()
 *   PAUSE		pause_unlocked()
 *   reader		rnic_enter(), hit(), rnic_leave(): H1 to H3
 */
#include "doc/model/models.h"
#include "doc/model/owner.h"
#include "doc/model/reader.h"

enum { READER, CLOSER_A, CLOSER_B, THREADS };

enum { OPS = 2, SLOTS = 2 };

/* The announce word has a bit for each slot. */
enum word {
	W_VERSION,
	W_SEQ = W_VERSION + SLOTS,
	W_ANNOUNCE,
	W_LOCK,
	W_MEM,
	WORDS = W_MEM + SLOTS
};

enum variant {
	PROTOCOL,
	JOINS,
	CLEARED_AT_END,
	NOT_WANTED,
	FAILED_IS_ENDED,
	ASKED_FIRST,
	VARIANTS
};

enum reader_step { OUTSIDE, HIT, USE, LEAVE };

enum closer_step {
	INVALIDATE,
	TAKE_LOCK,
	ASK,
	TURN,
	SCAN,
	MOVE,
	PAUSE,
	PAUSED,
	UNLOCK,
	CLOSED,
	FAILED
};

struct closer {
	uint8_t number; /* of the period it needs */
	uint8_t failed; /* it was not to be had */
};

struct own {
	struct reader me;	     /* the reader */
	uint8_t slot;		     /* used */
	uint8_t gone;		     /* bit per slot: not cached any more */
	struct closer closer[SLOTS]; /* of slot 0, of slot 1 */
	/* as in struct rnic_grace, under the lock */
	uint8_t begun;
	uint8_t ended;
	uint8_t failed;
	uint8_t active;
	uint8_t want;
	uint8_t refused;	  /* a membarrier was, once */
	uint8_t item;		  /* odd sequence that is waited for */
	struct owner_fence fence; /* of who begins the period */
};

/* ---- the reader ---- */

static enum reader_step enter(struct model_run *r, struct own *own)
{
	reader_begin(r, &own->me, OPS);
	own->slot = (uint8_t)model_choose(r, SLOTS);
	/* a closed key is not found again */
	model_need(r, !(own->gone >> own->slot & 1));
	reader_enter(r, READER, &own->me, W_SEQ);
	return HIT;
}

static unsigned int reader(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);

	switch ((enum reader_step)at) {
	case OUTSIDE:
		return enter(r, own);
	case HIT:
		/* H2 */
		if (!model_load(r, t, W_VERSION + own->slot, MODEL_ACQUIRE))
			return USE;
		own->gone |= (uint8_t)(1u << own->slot);
		return LEAVE;
	case USE:
		model_touch(r, t, W_MEM + own->slot);
		return LEAVE;
	case LEAVE:
		break;
	}
	reader_leave(r, t, &own->me, W_SEQ);
	own->slot = 0;
	return OUTSIDE;
}

/* ---- closers ---- */

static unsigned int slot_of(unsigned int t)
{
	return t - CLOSER_A;
}

/* want, and the period that begins from now on. */
static enum closer_step ask(struct model_run *r, struct own *own,
			    unsigned int t)
{
	struct closer *me = &own->closer[slot_of(t)];

	if (!model_is(r, NOT_WANTED) || t == CLOSER_A)
		own->want |= (uint8_t)(1u << slot_of(t));
	me->number = own->begun + 1;
	if (model_is(r, JOINS) && own->active)
		me->number = own->begun;
	return model_is(r, ASKED_FIRST) ? UNLOCK : TURN;
}

static enum closer_step turn(struct model_run *r, struct own *own,
			     const struct closer *me)
{
	if (own->ended >= me->number)
		return UNLOCK;
	if (own->active)
		return MOVE;
	own->begun++;
	model_note(r, "begins period %u; ", own->begun);
	return SCAN;
}

/* The membarrier is refused: nothing is known. */
static bool refused(struct model_run *r, struct own *own)
{
	if (own->fence.step != OWNER_BARRIER || own->refused ||
	    !model_choose(r, 2))
		return false;
	model_note(r, "membarrier is refused; ");
	own->refused = 1;
	own->fence = (struct owner_fence){ 0 };
	own->failed = own->begun;
	if (model_is(r, FAILED_IS_ENDED))
		own->ended = own->begun;
	return true;
}

static enum closer_step scan(struct model_run *r, struct own *own,
			     unsigned int t)
{
	const struct owner_words w = {
		.thread = t,
		.readers = 1,
		.seq = W_SEQ,
		.announce = W_ANNOUNCE,
		.want = own->want,
	};

	/* an error, unless a later period is had before it is looked at */
	if (refused(r, own))
		return own->failed >= own->closer[slot_of(t)].number ? UNLOCK
								     : TURN;
	owner_fence_step(r, &own->fence, &w);
	if (own->fence.step != OWNER_WAIT)
		return SCAN;
	own->item = own->fence.seen[0];
	own->fence = (struct owner_fence){ 0 };
	if (!model_is(r, CLEARED_AT_END))
		own->want = 0;
	own->active = 1;
	return MOVE;
}

static enum closer_step move(struct model_run *r, struct own *own,
			     unsigned int t)
{
	if (own->item && model_load(r, t, W_SEQ, MODEL_RELAXED) == own->item)
		return PAUSE;
	model_fence(r, t);
	own->item = own->active = 0;
	own->ended = own->begun;
	if (model_is(r, CLEARED_AT_END))
		own->want = 0;
	return TURN;
}

/* Looks again when there is something new, or it would do so for ever. */
static enum closer_step paused(struct model_run *r, struct own *own,
			       unsigned int t)
{
	if (own->active && own->ended < own->closer[slot_of(t)].number)
		model_need(r,
			   model_load(r, t, W_SEQ, MODEL_RELAXED) != own->item);
	return TAKE_LOCK;
}

static enum closer_step unlock(struct model_run *r, struct own *own,
			       unsigned int t)
{
	struct closer *me = &own->closer[slot_of(t)];

	model_store(r, t, W_LOCK, 0, MODEL_RELEASE);
	if (model_is(r, ASKED_FIRST) && !me->failed) {
		/* the number was taken; only now the version */
		me->failed = 2;
		return INVALIDATE;
	}
	if (own->ended < me->number)
		return FAILED;
	/* the close has succeeded: the memory is the closer's again */
	model_reclaim(r, t, W_MEM + slot_of(t));
	return CLOSED;
}

static unsigned int closer(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);
	struct closer *me = &own->closer[slot_of(t)];

	switch ((enum closer_step)at) {
	case INVALIDATE:
		if (model_is(r, ASKED_FIRST) && !me->failed)
			return TAKE_LOCK;
		/* O1 */
		model_store(r, t, W_VERSION + slot_of(t), 1, MODEL_RELAXED);
		return TAKE_LOCK;
	case TAKE_LOCK:
		model_need(r, model_cas(r, t, W_LOCK, 0, 1));
		return me->number ? TURN : ASK;
	case ASK:
		return ask(r, own, t);
	case TURN:
		return turn(r, own, me);
	case SCAN:
		return scan(r, own, t);
	case MOVE:
		return move(r, own, t);
	case PAUSE:
		model_store(r, t, W_LOCK, 0, MODEL_RELEASE);
		return PAUSED;
	case PAUSED:
		return paused(r, own, t);
	case UNLOCK:
		return unlock(r, own, t);
	default:
		model_need(r, false);
		return CLOSED;
	}
}

/* ---- the model ---- */

/* Steps in which a closer is done. */
enum { OVER = 1u << CLOSED | 1u << FAILED };

static const struct model_thread threads[THREADS] = {
	[READER] = { "reader", reader, OUTSIDE, 1u << OUTSIDE },
	[CLOSER_A] = { "closer 0", closer, INVALIDATE, OVER },
	[CLOSER_B] = { "closer 1", closer, INVALIDATE, OVER },
};

static const struct model_word words[WORDS] = {
	[W_VERSION] = { .name = "version 0", .loaders = 1 << READER },
	[W_VERSION + 1] = { .name = "version 1", .loaders = 1 << READER },
	[W_SEQ] = { .name = "sequence", .loaders = 6 },
	[W_ANNOUNCE] = { "announce", 3, 6, false, false },
	[W_LOCK] = { .name = "lock", .loaders = 6 },
	[W_MEM] = { .name = "memory 0", .memory = true },
	[W_MEM + 1] = { .name = "memory 1", .memory = true },
};

static const struct model_variant variants[VARIANTS] = {
	[PROTOCOL] = { "the protocol", MODEL_HOLDS },
	[JOINS] = { "joins the period under way", MODEL_FAILS },
	[CLEARED_AT_END] = { "what is wanted cleared at the end", MODEL_FAILS },
	[NOT_WANTED] = { "slot not wanted", MODEL_FAILS },
	[FAILED_IS_ENDED] = { "a failed period counts as over", MODEL_FAILS },
	[ASKED_FIRST] = { "number taken before the invalidation", MODEL_FAILS },
};

const struct model model_coalesce = {
	.name = "coalesce",
	.lines = "I1 I6",
	MODEL_TABLES(threads, words, variants),
	.own = sizeof(struct own),
};
