/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Parked lanes, doorbells, sleep: no wake-up is lost. Contract P3, and the
 * hang scenario 11 of doc/design.md.
 *
 * Two senders have a lane each, A's is polled, B's is parked; each sends one
 * message. The receiver takes what is there; when it finds nothing it parks
 * the lanes and sleeps, after a last look. It fails if it sleeps for ever with
 * a message in a lane.
 *
 *   SEND		rnic_lane_publish() in shm/lane.h: L1
 *   LOOK_HOT		the same, behind the compiler barrier
 *   RING_LANE, RING_WORD, WAKE	rnic_remote_ring() in shm/remote.c
 *   TAKE		rnic_lane_peek(): L1
 *   BELL to CLEAR_LANE	take_bell(), take_bells() in lib/rx_lane.c
 *   ARM, FENCE, BARRIER	shrimp_ep_arm() in lib/progress.c
 *   LAST_LANE, LAST_BELL	settle_parked(), shrimp_rx_pending()
 *   SLEEP, DISARM, DRAIN	the wait object; disarm() in lib/progress.c
 */
#include "doc/model/models.h"

enum { SENDER_A, SENDER_B, RECEIVER, THREADS };

enum { LANES = 2, BOTH = 3 };

/* DESC and HOT are two words: one of each sender's lane. */
enum word {
	W_DESC,
	W_HOT = W_DESC + LANES,
	W_LANE_BELL = W_HOT + LANES,
	W_WORD_BELL,
	W_SLEEPING,
	W_PIPE,
	WORDS
};

enum variant {
	PROTOCOL,
	FENCING,
	FENCING_TWICE,
	NO_BARRIER,
	NO_LAST_LOOK,
	NO_LAST_BELL,
	LOOK_FIRST,
	WORD_FIRST,
	LANE_CLEARED_FIRST,
	WAKE_FIRST,
	VARIANTS
};

enum sender_step {
	SEND,
	LOOK_HOT,
	RING_LANE,
	RING_WORD,
	WAKE,
	WRITE,
	SENT = MODEL_END
};

enum receiver_step {
	TAKE,
	BELL,
	CLEAR_WORD,
	CLEAR_LANE,
	ARM,
	FENCE,
	BARRIER,
	BARRIER_B,
	LAST_LANE,
	LAST_BELL,
	SLEEP,
	DISARM,
	DRAIN
};

struct own {
	uint8_t sleeps[LANES]; /* what each sender saw */
	uint8_t taken[LANES];  /* messages */
	uint8_t hot;	       /* bit per lane that is polled */
	uint8_t left;	       /* bit per lane to be looked at */
};

/* Senders fence by themselves. */
static bool fences(const struct model_run *r)
{
	return model_is(r, FENCING) || model_is(r, FENCING_TWICE);
}

static void init(struct model_run *r)
{
	struct own *own = model_own(r);

	own->hot = own->left = 1u << SENDER_A;
}

static bool final(const struct model_run *r)
{
	const struct own *own = model_own_of(r);

	for (unsigned int i = 0; i < LANES; i++)
		if (!own->taken[i])
			return false;
	return model_rests(r);
}

/* ---- senders ---- */

static enum sender_step look_hot(struct model_run *r, unsigned int t)
{
	if (fences(r))
		model_fence(r, t);
	if (model_load(r, t, W_HOT + t, MODEL_RELAXED))
		return SENT;
	if (model_is(r, WAKE_FIRST))
		return WAKE;
	return model_is(r, WORD_FIRST) ? RING_WORD : RING_LANE;
}

static enum sender_step wake(struct model_run *r, unsigned int t)
{
	struct own *own = model_own(r);

	if (model_is(r, FENCING_TWICE))
		model_fence(r, t);
	own->sleeps[t] = model_load(r, t, W_SLEEPING, MODEL_RELAXED);
	return model_is(r, WAKE_FIRST) ? RING_LANE : WRITE;
}

static enum sender_step write_pipe(struct model_run *r, unsigned int t)
{
	struct own *own = model_own(r);

	if (own->sleeps[t])
		model_swap(r, t, W_PIPE, 1);
	own->sleeps[t] = 0;
	return SENT;
}

static unsigned int sender(struct model_run *r, unsigned int t, unsigned int at)
{
	switch ((enum sender_step)at) {
	case SEND:
		/* L1 */
		model_store(r, t, W_DESC + t, 1, MODEL_RELEASE);
		return LOOK_HOT;
	case LOOK_HOT:
		return look_hot(r, t);
	case RING_LANE:
		model_or(r, t, W_LANE_BELL, 1u << t);
		return model_is(r, WORD_FIRST) ? WAKE : RING_WORD;
	case RING_WORD:
		model_or(r, t, W_WORD_BELL, 1);
		if (model_is(r, WAKE_FIRST))
			return WRITE;
		return model_is(r, WORD_FIRST) ? RING_LANE : WAKE;
	case WAKE:
		return wake(r, t);
	case WRITE:
		return write_pipe(r, t);
	case SENT:
		break;
	}
	return SENT;
}

/* ---- the receiver ---- */

/* One lane is looked at in a step; @left are those to come. */
static unsigned int next_lane(struct own *own)
{
	unsigned int i = own->left & 1 ? 0 : 1;

	own->left &= (uint8_t) ~(1u << i);
	return i;
}

/* Polls the hot lanes, each until it is empty. */
static enum receiver_step take(struct model_run *r, struct own *own)
{
	unsigned int i;

	if (!own->left)
		return BELL;
	i = next_lane(own);
	if (model_load(r, RECEIVER, W_DESC + i, MODEL_ACQUIRE) == own->taken[i])
		return TAKE;
	own->taken[i]++;
	own->left |= (uint8_t)(1u << i);
	return TAKE;
}

static enum receiver_step poll(struct own *own)
{
	own->left = own->hot;
	return own->hot ? TAKE : BELL;
}

static enum receiver_step bell(struct model_run *r, struct own *own)
{
	own->left = own->hot;
	if (!model_load(r, RECEIVER, W_WORD_BELL, MODEL_RELAXED))
		return model_is(r, LOOK_FIRST) ? LAST_LANE : ARM;
	return model_is(r, LANE_CLEARED_FIRST) ? CLEAR_LANE : CLEAR_WORD;
}

static enum receiver_step clear_lane(struct model_run *r, struct own *own)
{
	uint8_t bits = model_swap(r, RECEIVER, W_LANE_BELL, 0);

	for (unsigned int i = 0; i < LANES; i++)
		if (bits >> i & 1)
			model_store(r, RECEIVER, W_HOT + i, 1, MODEL_RELAXED);
	own->hot |= bits;
	return model_is(r, LANE_CLEARED_FIRST) ? CLEAR_WORD : poll(own);
}

static enum receiver_step clear_word(struct model_run *r, struct own *own)
{
	model_swap(r, RECEIVER, W_WORD_BELL, 0);
	return model_is(r, LANE_CLEARED_FIRST) ? poll(own) : CLEAR_LANE;
}

static enum receiver_step arm(struct model_run *r, struct own *own)
{
	model_store(r, RECEIVER, W_SLEEPING, 1, MODEL_RELAXED);
	for (unsigned int i = 0; i < LANES; i++)
		if (own->hot >> i & 1)
			model_store(r, RECEIVER, W_HOT + i, 0, MODEL_RELAXED);
	own->left = own->hot;
	if (!model_is(r, LOOK_FIRST))
		return FENCE;
	own->hot = own->left = 0;
	return SLEEP;
}

/* Lanes that got something meanwhile stay hot, others are forgotten. */
static enum receiver_step last_lane(struct model_run *r, struct own *own)
{
	unsigned int i;

	if (!own->left)
		return LAST_BELL;
	i = next_lane(own);
	if (!model_is(r, NO_LAST_LOOK) &&
	    model_load(r, RECEIVER, W_DESC + i, MODEL_ACQUIRE) != own->taken[i])
		model_store(r, RECEIVER, W_HOT + i, 1, MODEL_RELAXED);
	else if (!model_is(r, LOOK_FIRST))
		own->hot &= (uint8_t) ~(1u << i);
	return LAST_LANE;
}

static enum receiver_step last_bell(struct model_run *r, const struct own *own)
{
	bool rung = !model_is(r, NO_LAST_BELL) &&
		    model_load(r, RECEIVER, W_WORD_BELL, MODEL_RELAXED);

	if (model_is(r, LOOK_FIRST))
		return rung ? DISARM : ARM;
	return rung || own->hot ? DISARM : SLEEP;
}

static enum receiver_step go_to_sleep(struct model_run *r, unsigned int at)
{
	switch ((enum receiver_step)at) {
	case FENCE:
		model_fence(r, RECEIVER);
		return fences(r) || model_is(r, NO_BARRIER) ? LAST_LANE
							    : BARRIER;
	case BARRIER:
		model_fence_other(r, RECEIVER, SENDER_A);
		return BARRIER_B;
	case BARRIER_B:
		model_fence_other(r, RECEIVER, SENDER_B);
		return LAST_LANE;
	default:
		model_need(r, model_load(r, RECEIVER, W_PIPE, MODEL_ACQUIRE));
		return DISARM;
	}
}

static unsigned int receiver(struct model_run *r, unsigned int t,
			     unsigned int at)
{
	struct own *own = model_own(r);

	switch ((enum receiver_step)at) {
	case TAKE:
		return take(r, own);
	case BELL:
		return bell(r, own);
	case CLEAR_WORD:
		return clear_word(r, own);
	case CLEAR_LANE:
		return clear_lane(r, own);
	case ARM:
		return arm(r, own);
	case LAST_LANE:
		return last_lane(r, own);
	case LAST_BELL:
		return last_bell(r, own);
	case DISARM:
		model_store(r, t, W_SLEEPING, 0, MODEL_RELAXED);
		return DRAIN;
	case DRAIN:
		model_swap(r, t, W_PIPE, 0);
		return poll(own);
	default:
		return go_to_sleep(r, at);
	}
}

/* ---- the model ---- */

static const struct model_thread threads[THREADS] = {
	[SENDER_A] = { .name = "sender A", .step = sender },
	[SENDER_B] = { .name = "sender B", .step = sender },
	[RECEIVER] = { "receiver", receiver, TAKE, 1u << SLEEP },
};

static const struct model_word words[WORDS] = {
	[W_DESC] = { .name = "descriptor A", .loaders = 1 << RECEIVER },
	[W_DESC + 1] = { .name = "descriptor B", .loaders = 1 << RECEIVER },
	[W_HOT] = { "hot A", 1, 1 << SENDER_A, false, false },
	[W_HOT + 1] = { .name = "hot B", .loaders = 1 << SENDER_B },
	[W_LANE_BELL] = { .name = "lane bells", .loaders = 7 },
	[W_WORD_BELL] = { .name = "bell", .loaders = 7 },
	[W_SLEEPING] = { .name = "sleeping", .loaders = BOTH },
	[W_PIPE] = { .name = "pipe", .loaders = 7 },
};

static const struct model_variant variants[VARIANTS] = {
	[PROTOCOL] = { "the protocol", MODEL_HOLDS },
	[FENCING] = { "senders fence; bells by C11's order only",
		      MODEL_FAILS_WEAK },
	[FENCING_TWICE] = { "senders fence, once more behind the bell",
			    MODEL_HOLDS },
	[NO_BARRIER] = { "no membarrier", MODEL_FAILS },
	[NO_LAST_LOOK] = { "no last look at the lane", MODEL_FAILS },
	[NO_LAST_BELL] = { "no last look at the bell", MODEL_FAILS },
	[LOOK_FIRST] = { "last look before the flags", MODEL_FAILS },
	[WORD_FIRST] = { "summary rung before the lane's bit", MODEL_FAILS },
	[LANE_CLEARED_FIRST] = { "summary cleared behind the bits",
				 MODEL_FAILS },
	[WAKE_FIRST] = { "sleeping looked at before the bell", MODEL_FAILS },
};

const struct model model_wake = {
	.name = "wake",
	.lines = "P3",
	MODEL_TABLES(threads, words, variants),
	.own = sizeof(struct own),
	.init = init,
	.final = final,
};
