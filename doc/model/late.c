/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A key that comes while the monitor is at work: contract R12, W1.
 *
 * Memory A is unmapped, and a window is bound to the region that has it, both
 * at once. When munmap has returned nobody touches A: neither through a
 * translation that was kept under a version the monitor did not raise, nor
 * through a root that it did not take away.
 *
 *   B_TELL, B_FENCE	rnic_monitor_live() in shm/monitor.c: J2, Z4, G2
 *   B_LOOK		drop_gone() in lib/window_watch.c
 *   B_SHOW		rnic_mpt_show() in shm/mpt.c: M1
 *   FREEZE, Z_FENCE	freeze_dev() in shm/monitor.c: Z1
 *   BUMP, FENCE	the slots; W1, the wait for readers
 *   MARK, MARK_FENCE	gone() in lib/odp.c: G1
 *   TOLD		told() in lib/window_watch.c
 *   THAW		Z2
 *   reader		miss(), read_once() in shm/reader.c: M3, A2, Z3
 *
 * The same three steps of the owner publish regions. Joining the list, which
 * waits for rounds, is over.
 */
#include "doc/model/models.h"
#include "doc/model/owner.h"
#include "doc/model/reader.h"
#include "doc/model/unmap.h"

enum { READER, OWNER, APP, MONITOR, THREADS };

enum { OPS = 3 };

enum word {
	W_VERSION,
	W_FROZEN,
	W_SLOT,
	W_GONE,
	W_ROOT,
	W_EVENT,
	W_SEQ,
	W_A,
	WORDS
};

enum variant {
	PROTOCOL,
	SHOW_FIRST,
	LOOK_FIRST,
	NO_LOOK,
	NO_Z4,
	NO_Z1_FENCE,
	NO_G1_FENCE,
	TOLD_FIRST,
	NOT_TOLD,
	NO_FREEZE,
	VARIANTS
};

enum reader_step {
	OUTSIDE,
	HIT,
	FIRST,
	LOOK,
	TAKE_ROOT,
	LOOK_AGAIN,
	AGAIN,
	USE,
	LEAVE
};

enum bind_step {
	B_ROOT,
	B_TELL,
	B_FENCE,
	B_LOOK,
	B_DROP,
	B_SHOW,
	B_END = MODEL_END
};

enum monitor_step {
	POLL,
	FREEZE,
	Z_FENCE,
	BUMP,
	FENCE,
	READ_EVENT,
	MARK,
	MARK_FENCE,
	TOLD,
	THAW,
	MONITOR_END = MODEL_END
};

struct own {
	struct reader me;	  /* the reader */
	uint8_t cached;		  /* the entry, see reader.h */
	uint8_t frozen;		  /* first look */
	uint8_t root;		  /* found */
	uint8_t gone;		  /* as the owner found it */
	struct owner_fence fence; /* of the monitor */
};

/* ---- the reader ---- */

static enum reader_step look_again(struct model_run *r, const struct own *own)
{
	uint8_t now = model_load(r, READER, W_FROZEN, MODEL_RELAXED);

	return now != own->frozen || now & 1 ? LEAVE : AGAIN;
}

static enum reader_step again(struct model_run *r, struct own *own)
{
	if (!reader_as_before(r, READER, &own->me, W_VERSION) || !own->root)
		return LEAVE;
	reader_keep(&own->me, &own->cached);
	return USE;
}

static enum reader_step miss(struct model_run *r, struct own *own,
			     unsigned int at)
{
	switch ((enum reader_step)at) {
	case FIRST:
		return reader_looks(r, READER, &own->me, W_VERSION) ? LOOK
								    : LEAVE;
	case LOOK:
		/* Z3 */
		own->frozen = model_load(r, READER, W_FROZEN, MODEL_ACQUIRE);
		return TAKE_ROOT;
	case TAKE_ROOT:
		own->root = model_load(r, READER, W_ROOT, MODEL_ACQUIRE);
		return LOOK_AGAIN;
	case LOOK_AGAIN:
		return look_again(r, own);
	default:
		return again(r, own);
	}
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
		return reader_hits(r, t, W_VERSION, &own->cached) ? USE : FIRST;
	case USE:
		model_touch(r, t, W_A);
		return LEAVE;
	case LEAVE:
		reader_leave(r, t, &own->me, W_SEQ);
		own->frozen = own->root = 0;
		return OUTSIDE;
	default:
		return miss(r, own, at);
	}
}

/* ---- the owner, who binds ---- */

static enum bind_step show(struct model_run *r)
{
	/* M1 */
	model_add(r, OWNER, W_VERSION, 1);
	return model_is(r, SHOW_FIRST) ? B_TELL : B_END;
}

static enum bind_step tell(struct model_run *r)
{
	/* J2 */
	model_store(r, OWNER, W_SLOT, 1, MODEL_RELEASE);
	if (model_is(r, LOOK_FIRST))
		return B_SHOW;
	return model_is(r, NO_Z4) ? B_LOOK : B_FENCE;
}

static enum bind_step look(struct model_run *r, struct own *own)
{
	own->gone = model_load(r, OWNER, W_GONE, MODEL_RELAXED);
	return B_DROP;
}

static enum bind_step drop(struct model_run *r, struct own *own)
{
	if (own->gone)
		model_store(r, OWNER, W_ROOT, 0, MODEL_RELAXED);
	own->gone = 0;
	if (model_is(r, LOOK_FIRST))
		return B_TELL;
	return model_is(r, SHOW_FIRST) ? B_END : B_SHOW;
}

static unsigned int owner(struct model_run *r, unsigned int t, unsigned int at)
{
	switch ((enum bind_step)at) {
	case B_ROOT:
		model_store(r, t, W_ROOT, 1, MODEL_RELAXED);
		if (model_is(r, SHOW_FIRST))
			return B_SHOW;
		return model_is(r, LOOK_FIRST) ? B_LOOK : B_TELL;
	case B_TELL:
		return tell(r);
	case B_FENCE:
		/* Z4, G2 */
		model_fence(r, t);
		return model_is(r, NO_LOOK) ? B_SHOW : B_LOOK;
	case B_LOOK:
		return look(r, model_own(r));
	case B_DROP:
		return drop(r, model_own(r));
	case B_SHOW:
		return show(r);
	case B_END:
		break;
	}
	return B_END;
}

/* ---- the application ---- */

static unsigned int app(struct model_run *r, unsigned int t, unsigned int at)
{
	return unmap_step(r, t, at, W_EVENT, W_A);
}

/* ---- the monitor ---- */

static enum monitor_step freeze(struct model_run *r)
{
	/* Z1 */
	if (!model_is(r, NO_FREEZE))
		model_store(r, MONITOR, W_FROZEN, 1, MODEL_RELAXED);
	return model_is(r, NO_Z1_FENCE) ? BUMP : Z_FENCE;
}

static enum monitor_step bump(struct model_run *r)
{
	/* J2 */
	if (model_load(r, MONITOR, W_SLOT, MODEL_ACQUIRE))
		model_add(r, MONITOR, W_VERSION, 2);
	return FENCE;
}

static enum monitor_step fence(struct model_run *r, struct own *own)
{
	const struct owner_words w = {
		.thread = MONITOR,
		.readers = 1,
		.seq = W_SEQ,
		.announce = OWNER_ALWAYS,
	};

	return owner_fence_step(r, &own->fence, &w) ? READ_EVENT : FENCE;
}

static enum monitor_step mark(struct model_run *r)
{
	/* G1; a plain store where nothing else may fence */
	if (model_is(r, NO_G1_FENCE))
		model_store(r, MONITOR, W_GONE, 1, MODEL_RELAXED);
	else
		model_swap(r, MONITOR, W_GONE, 1);
	if (model_is(r, TOLD_FIRST))
		return THAW;
	return model_is(r, NO_G1_FENCE) ? TOLD : MARK_FENCE;
}

static enum monitor_step told(struct model_run *r)
{
	/* acquire: Z4 */
	if (model_load(r, MONITOR, W_SLOT, MODEL_ACQUIRE) &&
	    !model_is(r, NOT_TOLD))
		model_store(r, MONITOR, W_ROOT, 0, MODEL_RELAXED);
	return model_is(r, TOLD_FIRST) ? MARK : THAW;
}

static enum monitor_step thaw(struct model_run *r)
{
	/* Z2 */
	if (!model_is(r, NO_FREEZE))
		model_store(r, MONITOR, W_FROZEN, 2, MODEL_RELEASE);
	return MONITOR_END;
}

static unsigned int monitor(struct model_run *r, unsigned int t,
			    unsigned int at)
{
	switch ((enum monitor_step)at) {
	case POLL:
		unmap_poll(r, t, W_EVENT);
		return FREEZE;
	case FREEZE:
		return freeze(r);
	case Z_FENCE:
		model_fence(r, t);
		return BUMP;
	case BUMP:
		return bump(r);
	case FENCE:
		return fence(r, model_own(r));
	case READ_EVENT:
		unmap_read(r, t, W_EVENT);
		return model_is(r, TOLD_FIRST) ? TOLD : MARK;
	case MARK:
		return mark(r);
	case MARK_FENCE:
		model_fence(r, t);
		return TOLD;
	case TOLD:
		return told(r);
	case THAW:
		return thaw(r);
	case MONITOR_END:
		break;
	}
	return MONITOR_END;
}

/* ---- the model ---- */

static const struct model_thread threads[THREADS] = {
	[READER] = { "reader", reader, OUTSIDE, 1u << OUTSIDE },
	[OWNER] = { .name = "owner", .step = owner },
	[APP] = { .name = "munmap", .step = app },
	[MONITOR] = { .name = "monitor", .step = monitor },
};

static const struct model_word words[WORDS] = {
	[W_VERSION] = { .name = "version",
			.initial = 1,
			.loaders = 1 << READER | 1 << OWNER | 1 << MONITOR,
			.crossed = true },
	[W_FROZEN] = { .name = "frozen", .loaders = 1 << READER },
	[W_SLOT] = { .name = "slot", .loaders = 1 << MONITOR },
	[W_GONE] = { .name = "gone", .loaders = 1 << OWNER | 1 << MONITOR },
	[W_ROOT] = { .name = "root", .loaders = 1 << READER, .crossed = true },
	[W_EVENT] = { .name = "event", .loaders = 1 << APP | 1 << MONITOR },
	[W_SEQ] = { .name = "sequence", .loaders = 1 << MONITOR },
	[W_A] = { .name = "A", .memory = true },
};

static const struct model_variant variants[VARIANTS] = {
	[PROTOCOL] = { "the protocol", MODEL_HOLDS },
	[SHOW_FIRST] = { "the key valid, then told", MODEL_FAILS },
	[LOOK_FIRST] = { "looks what is gone, then told", MODEL_FAILS },
	[NO_LOOK] = { "nobody looks what is gone", MODEL_FAILS },
	[NO_Z4] = { "no fence behind the slot (Z4)", MODEL_FAILS },
	[NO_Z1_FENCE] = { "no fence behind frozen (Z1)", MODEL_FAILS },
	[NO_G1_FENCE] = { "no fence behind the mark (G1)", MODEL_FAILS },
	[TOLD_FIRST] = { "windows first, then the mark", MODEL_FAILS },
	[NOT_TOLD] = { "windows are left out", MODEL_FAILS },
	[NO_FREEZE] = { "not frozen", MODEL_FAILS },
};

const struct model model_late = {
	.name = "late",
	.lines = "R12 W1",
	MODEL_TABLES(threads, words, variants),
	.own = sizeof(struct own),
};
