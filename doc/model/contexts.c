/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Execution contexts: two threads that share an endpoint, and its agent.
 * Contract I6, I1.
 *
 * The threads take turns by the endpoint's lock, and are one context: one
 * reader slot, whose next value (rnic_target.now) is an ordinary variable
 * under the lock. The agent is another context with a slot of its own. Each
 * does one operation, a hit; the owner invalidates, fences, and takes the
 * memory back.
 *
 *   LOCK, UNLOCK	shm/lock.h (here: a plain lock)
 *   ENTER, LEAVE	rnic_enter(), rnic_leave(): H1, H3
 *   LOAD		hit(): H2
 *   owner		O1, then O2 to O5, see owner.h; always a membarrier
 */
#include "doc/model/models.h"
#include "doc/model/owner.h"

enum { THREAD_A, THREAD_B, AGENT, OWNER, THREADS };

enum word { W_VERSION, W_SEQ, W_SEQ_AGENT, W_LOCK, W_NOW, W_X, WORDS };

enum variant {
	PROTOCOL,
	NO_LOCK,
	AGENT_SHARES,
	UNLOCK_EARLY,
	UNLOCK_RELAXED,
	ENTER_RELAXED,
	VARIANTS
};

enum reader_step {
	TAKE_LOCK,
	ENTER,
	LOAD,
	USE,
	LEAVE,
	UNLOCK,
	DONE = MODEL_END,
};

enum own_step { OWN_INVALIDATE, OWN_FENCE, OWN_END = MODEL_END };

struct own {
	struct owner_fence fence; /* of the owner */
};

/* ---- readers ---- */

/* Who works on the endpoint's slot. */
static bool shares(const struct model_run *r, unsigned int t)
{
	return t != AGENT || model_is(r, AGENT_SHARES);
}

/* The next value of the slot; of the agent's own it is known. */
static void turn(struct model_run *r, unsigned int t, bool in)
{
	enum model_order o = in && model_is(r, ENTER_RELAXED) ? MODEL_RELAXED
							      : MODEL_RELEASE;
	uint8_t now;

	if (!shares(r, t)) {
		model_store(r, t, W_SEQ_AGENT, in ? 1 : 2, o);
		return;
	}
	now = model_load(r, t, W_NOW, MODEL_RELAXED);
	model_store(r, t, W_NOW, now + 1u, MODEL_RELAXED);
	/* H1, H3 */
	model_store(r, t, W_SEQ, now + 1u, o);
}

static enum reader_step load(struct model_run *r, unsigned int t)
{
	/* H2 */
	if (model_load(r, t, W_VERSION, MODEL_ACQUIRE))
		return LEAVE;
	return USE;
}

static enum reader_step take_lock(struct model_run *r, unsigned int t)
{
	if (t != AGENT && !model_is(r, NO_LOCK))
		model_need(r, model_cas(r, t, W_LOCK, 0, 1));
	return ENTER;
}

static enum reader_step unlock(struct model_run *r, unsigned int t)
{
	if (t != AGENT && !model_is(r, NO_LOCK))
		model_store(r, t, W_LOCK, 0,
			    model_is(r, UNLOCK_RELAXED) ? MODEL_ALONE
							: MODEL_RELEASE);
	return model_is(r, UNLOCK_EARLY) ? USE : DONE;
}

static unsigned int reader(struct model_run *r, unsigned int t, unsigned int at)
{
	enum reader_step next;

	switch ((enum reader_step)at) {
	case TAKE_LOCK:
		return take_lock(r, t);
	case ENTER:
		turn(r, t, true);
		return LOAD;
	case LOAD:
		next = load(r, t);
		return next == USE && model_is(r, UNLOCK_EARLY) ? UNLOCK : next;
	case USE:
		model_touch(r, t, W_X);
		return LEAVE;
	case LEAVE:
		turn(r, t, false);
		return model_is(r, UNLOCK_EARLY) ? DONE : UNLOCK;
	case UNLOCK:
		return unlock(r, t);
	case DONE:
		break;
	}
	return DONE;
}

/* ---- the owner ---- */

static enum own_step fence(struct model_run *r, struct own *own)
{
	const struct owner_words w = {
		.thread = OWNER,
		.readers = 2,
		.seq = W_SEQ,
		.announce = OWNER_ALWAYS,
		.others = 1,
	};

	if (!owner_fence_step(r, &own->fence, &w))
		return OWN_FENCE;
	model_reclaim(r, OWNER, W_X);
	return OWN_END;
}

static unsigned int owner(struct model_run *r, unsigned int t, unsigned int at)
{
	if (at == OWN_FENCE)
		return fence(r, model_own(r));
	/* O1 */
	model_store(r, t, W_VERSION, 1, MODEL_RELAXED);
	return OWN_FENCE;
}

/* ---- the model ---- */

static const struct model_thread threads[THREADS] = {
	[THREAD_A] = { .name = "thread A", .step = reader },
	[THREAD_B] = { .name = "thread B", .step = reader },
	[AGENT] = { .name = "agent", .step = reader },
	[OWNER] = { .name = "owner", .step = owner },
};

static const struct model_word words[WORDS] = {
	[W_VERSION] = { .name = "version", .loaders = 7 },
	[W_SEQ] = { .name = "sequence",
		    .loaders = 1 << OWNER,
		    .crossed = true },
	[W_SEQ_AGENT] = { .name = "sequence of the agent",
			  .loaders = 1 << OWNER },
	[W_LOCK] = { .name = "lock", .loaders = 3 },
	[W_NOW] = { .name = "now", .loaders = 7, .crossed = true },
	[W_X] = { .name = "X", .memory = true },
};

static const struct model_variant variants[VARIANTS] = {
	[PROTOCOL] = { "the protocol", MODEL_HOLDS },
	[NO_LOCK] = { "slot shared by two threads", MODEL_FAILS },
	[AGENT_SHARES] = { "agent in the endpoint's slot", MODEL_FAILS },
	[UNLOCK_EARLY] = { "lock let go inside", MODEL_FAILS },
	[UNLOCK_RELAXED] = { "lock let go without release", MODEL_FAILS_WEAK },
	[ENTER_RELAXED] = { "sequence odd without release (H1)",
			    MODEL_FAILS_WEAK },
};

const struct model model_contexts = {
	.name = "contexts",
	.lines = "I1 I6",
	MODEL_TABLES(threads, words, variants),
	.own = sizeof(struct own),
};
