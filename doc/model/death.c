/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Readers that stop or die inside, and lanes that pass on to others: contract
 * I6, L1.
 *
 * Reader A may be stopped for ever, continue, or be killed, before any of its
 * steps. The owner's progress calls may find it dead and free its lane, or
 * may never come; then B claims the lane and goes inside. Meanwhile the owner
 * closes the region: invalidates, fences, and takes the memory back.
 *
 *   A_*, B_*		rnic_enter(), hit(), the caller's copy, rnic_leave()
 *   B_CLAIM		claim_word() in shm/remote.c
 *   B_START		rnic_target_init() in shm/reader.c: what was left odd
 *   EXIT		the kernel: stores are done, then the pidfd is readable
 *   FREE_*		lane_reap(), rnic_place_free_lane() in shm/device.c
 *   OWN_CLAIM, OWN_SEQ	each_lane_of(), look_inside() in shm/grace.c
 *   OWN_WAIT		has_left(), is_dead()
 */
#include "doc/model/models.h"

enum { READER_A, READER_B, PROGRESS, OWNER, THREADS };

enum { CLAIM_A = 1, CLAIM_B = 2 };

enum word { W_VERSION, W_SEQ, W_CLAIM, W_EXITED, W_X, WORDS };

enum variant {
	PROTOCOL,
	SKIP_STOPPED,
	WAIT_FOR_DEAD,
	ZOMBIE_IS_DEAD,
	LEFT_ODD,
	CLAIM_FIRST,
	VARIANTS
};

enum reader_step { CLAIMS, STARTS, ENTER, LOAD, USE, LEAVE, DONE };

/* What became of A. */
enum life { RUNS, STOPPED, KILLED, GONE };

enum progress_step {
	FREE_MAYBE,
	FREE_LOOK,
	FREE_SEQ,
	FREE_CLAIM,
	FREE_END = MODEL_END
};

enum own_step {
	OWN_INVALIDATE,
	OWN_FENCE,
	OWN_BARRIER_A,
	OWN_BARRIER_B,
	OWN_CLAIM,
	OWN_SEQ,
	OWN_WAIT,
	OWN_LAST,
	OWN_END = MODEL_END,
};

struct own {
	uint8_t seq[2]; /* value of the sequence, as they know it */
	uint8_t life;	/* enum life, of A */
	uint8_t claim;	/* who had the lane when it was looked at */
	uint8_t seen;	/* and its odd sequence */
};

/* A stopped reader holds the owner up, nothing else does. */
static bool final(const struct model_run *r)
{
	const struct own *own = model_own_of(r);

	return model_at(r, OWNER) == OWN_END ||
	       (model_at(r, OWNER) == OWN_WAIT && own->life == STOPPED);
}

/* ---- readers ---- */

static void turn(struct model_run *r, struct own *own, unsigned int t)
{
	/* H1, H3 */
	model_store(r, t, W_SEQ, ++own->seq[t], MODEL_RELEASE);
}

/* B takes the lane over. */
static enum reader_step claim(struct model_run *r)
{
	model_need(r, model_cas(r, READER_B, W_CLAIM, 0, CLAIM_B));
	return STARTS;
}

static enum reader_step start(struct model_run *r, struct own *own)
{
	own->seq[READER_B] = model_load(r, READER_B, W_SEQ, MODEL_RELAXED);
	if (own->seq[READER_B] & 1 && !model_is(r, LEFT_ODD))
		turn(r, own, READER_B);
	return ENTER;
}

static unsigned int reader(struct model_run *r, unsigned int t, unsigned int at)
{
	struct own *own = model_own(r);

	switch ((enum reader_step)at) {
	case CLAIMS:
		return claim(r);
	case STARTS:
		return start(r, own);
	case ENTER:
		turn(r, own, t);
		return LOAD;
	case LOAD:
		/* H2 */
		return model_load(r, t, W_VERSION, MODEL_ACQUIRE) ? LEAVE : USE;
	case USE:
		model_touch(r, t, W_X);
		return LEAVE;
	case LEAVE:
		turn(r, own, t);
		return DONE;
	case DONE:
		model_need(r, false);
	}
	return DONE;
}

/* The kernel ends A, whose stores are done by then. */
static unsigned int leave_life(struct model_run *r, struct own *own,
			       unsigned int at)
{
	/* a thread of it may run on for a moment */
	if (at != DONE && model_choose(r, 2))
		return reader(r, READER_A, at);
	model_note(r, "exits; ");
	model_fence(r, READER_A);
	model_store(r, READER_A, W_EXITED, 1, MODEL_RELEASE);
	own->life = GONE;
	return at;
}

static unsigned int reader_a(struct model_run *r, unsigned int t,
			     unsigned int at)
{
	struct own *own = model_own(r);
	static const char *const name[] = { "", "is stopped", "is killed" };
	unsigned int fate = 0;

	if (own->life == KILLED)
		return leave_life(r, own, at);
	model_need(r, own->life != GONE);
	if (own->life == STOPPED)
		own->life = RUNS;
	else
		fate = model_choose(r, 3);
	model_note(r, "%s", name[fate]);
	if (!fate)
		return reader(r, t, at);
	own->life = (uint8_t)fate;
	return at;
}

/* ---- the owner's progress calls ---- */

/* What the dead left is made even. */
static void mend(struct model_run *r)
{
	uint8_t seq = model_load(r, PROGRESS, W_SEQ, MODEL_RELAXED);

	if (seq & 1 && !model_is(r, LEFT_ODD))
		model_store(r, PROGRESS, W_SEQ, seq + 1u, MODEL_RELAXED);
}

/* A mutant frees the lane before it makes the sequence even. */
static unsigned int progress(struct model_run *r, unsigned int t,
			     unsigned int at)
{
	bool claim_first = model_is(r, CLAIM_FIRST);

	switch ((enum progress_step)at) {
	case FREE_MAYBE:
		/* nobody promises that the owner makes progress */
		return model_choose(r, 2) ? FREE_END : FREE_LOOK;
	case FREE_LOOK:
		model_need(r, model_load(r, t, W_EXITED, MODEL_ACQUIRE));
		return claim_first ? FREE_CLAIM : FREE_SEQ;
	case FREE_SEQ:
		mend(r);
		return claim_first ? FREE_END : FREE_CLAIM;
	case FREE_CLAIM:
		/* D1 */
		model_store(r, t, W_CLAIM, 0, MODEL_RELEASE);
		return claim_first ? FREE_SEQ : FREE_END;
	case FREE_END:
		break;
	}
	return FREE_END;
}

/* ---- the owner ---- */

/* True if the reader that was seen inside need not be waited for. */
static bool is_over(struct model_run *r, struct own *own)
{
	/* a choice: which of the looks comes now */
	switch (model_choose(r, 3)) {
	case 0:
		return model_load(r, OWNER, W_SEQ, MODEL_RELAXED) != own->seen;
	case 1:
		return model_load(r, OWNER, W_CLAIM, MODEL_RELAXED) !=
		       own->claim;
	default:
		break;
	}
	if (own->claim != CLAIM_A || model_is(r, WAIT_FOR_DEAD))
		return false;
	if (model_is(r, SKIP_STOPPED) && own->life == STOPPED)
		return true;
	if (model_is(r, ZOMBIE_IS_DEAD) && own->life == KILLED)
		return true;
	return model_load(r, OWNER, W_EXITED, MODEL_ACQUIRE);
}

/* As shm/grace.c, of one lane. */
static enum own_step look(struct model_run *r, struct own *own, unsigned int at)
{
	switch ((enum own_step)at) {
	case OWN_CLAIM:
		own->claim = model_load(r, OWNER, W_CLAIM, MODEL_RELAXED);
		return own->claim ? OWN_SEQ : OWN_LAST;
	case OWN_SEQ:
		/* A1 */
		own->seen = model_load(r, OWNER, W_SEQ, MODEL_ACQUIRE);
		return own->seen & 1 ? OWN_WAIT : OWN_LAST;
	case OWN_WAIT:
		model_need(r, is_over(r, own));
		return OWN_LAST;
	default:
		model_fence(r, OWNER);
		model_reclaim(r, OWNER, W_X);
		return OWN_END;
	}
}

static unsigned int owner(struct model_run *r, unsigned int t, unsigned int at)
{
	switch ((enum own_step)at) {
	case OWN_INVALIDATE:
		/* O1 */
		model_store(r, t, W_VERSION, 1, MODEL_RELAXED);
		return OWN_FENCE;
	case OWN_FENCE:
		/* O2 */
		model_fence(r, t);
		return OWN_BARRIER_A;
	case OWN_BARRIER_A:
		model_fence_other(r, t, READER_A);
		return OWN_BARRIER_B;
	case OWN_BARRIER_B:
		model_fence_other(r, t, READER_B);
		return OWN_CLAIM;
	default:
		return look(r, model_own(r), at);
	}
}

/* ---- the model ---- */

static const struct model_thread threads[THREADS] = {
	[READER_A] = { .name = "reader A", .step = reader_a, .begins = ENTER },
	[READER_B] = { .name = "reader B", .step = reader, .begins = CLAIMS },
	[PROGRESS] = { .name = "progress", .step = progress },
	[OWNER] = { .name = "owner", .step = owner },
};

static const struct model_word words[WORDS] = {
	[W_VERSION] = { .name = "version", .loaders = 3 },
	[W_SEQ] = { .name = "sequence", .loaders = 14, .crossed = true },
	[W_CLAIM] = { "claim", CLAIM_A, 10, false, false },
	[W_EXITED] = { .name = "exited", .loaders = 12 },
	[W_X] = { .name = "X", .memory = true },
};

static const struct model_variant variants[VARIANTS] = {
	[PROTOCOL] = { "the protocol", MODEL_HOLDS },
	[SKIP_STOPPED] = { "a stopped reader is skipped", MODEL_FAILS },
	[WAIT_FOR_DEAD] = { "a dead reader is waited for", MODEL_FAILS },
	[ZOMBIE_IS_DEAD] = { "dead before its last thread is", MODEL_FAILS },
	[LEFT_ODD] = { "sequence of the dead left odd", MODEL_FAILS },
	[CLAIM_FIRST] = { "lane freed before it is even", MODEL_FAILS },
};

const struct model model_death = {
	.name = "death",
	.lines = "I6 L1",
	MODEL_TABLES(threads, words, variants),
	.own = sizeof(struct own),
	.final = final,
};
