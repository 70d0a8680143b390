/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What is known of memories, so that the explorer is known to show it.
 *
 * Each variant is a small program of up to four threads, and an outcome: it
 * fails if that can be had. Names are those of the literature: SB two stores
 * and two loads, MP a message and its flag, CoRR two loads of one word, IRIW
 * two writers and two observers. The last ones never end.
 */
#include "doc/model/models.h"

enum { THREADS = 4, OPS = 4, LOADS = 2, ANY = 9 };

enum word { W_X, W_Y, W_M, WORDS };

enum kind {
	END,	 /* of the thread */
	STORE,	 /* of 1, relaxed */
	TWO,	 /* of 2, relaxed */
	ALONE,	 /* of 2, no part of a release sequence */
	RELEASE, /* store of 1 */
	LOAD,	 /* relaxed; the result is kept */
	ACQUIRE, /* load; likewise */
	FENCE,	 /* full */
	BARRIER, /* membarrier: thread 0 */
	ADD,	 /* of 1, atomically */
	COUNT,	 /* stores the last result and 1 */
	TOUCH,	 /* of memory */
	TAKE,	 /* memory back, if the last result was not 0 */
	WAIT,	 /* until the word is not 0 */
	AGAIN,	 /* from the start */
};

struct op {
	uint8_t kind; /* enum kind */
	uint8_t word; /* where */
};

struct program {
	struct op op[THREADS][OPS];  /* what each thread does */
	uint8_t bad[THREADS][LOADS]; /* results that must not be, or ANY */
};

struct own {
	uint8_t n[THREADS];	     /* results */
	uint8_t got[THREADS][LOADS]; /* the results */
};

#define ANY2                                                                   \
	{                                                                      \
		ANY, ANY                                                       \
	}
#define NEVER                                                                  \
	{                                                                      \
		ANY2, ANY2, ANY2, ANY2                                         \
	}

enum variant {
	SB,
	SB_FENCES,
	SB_BARRIER,
	SB_ONE_FENCE,
	LB,
	MP,
	MP_RELEASE,
	MP_NO_ACQUIRE,
	MP_FENCES,
	MP_SEQUENCE,
	MP_ALONE,
	CORR,
	IRIW,
	IRIW_FENCES,
	ADDS,
	COUNTS,
	OWNED,
	OWNED_RELAXED,
	DEADLOCK,
	FOR_EVER,
	VARIANTS
};

static const struct program program[VARIANTS] = {
	[SB] = { { { { STORE, W_X }, { LOAD, W_Y } },
		   { { STORE, W_Y }, { LOAD, W_X } } },
		 { { 0, ANY }, { 0, ANY }, ANY2, ANY2 } },
	[SB_FENCES] = { { { { STORE, W_X }, { FENCE, 0 }, { LOAD, W_Y } },
			  { { STORE, W_Y }, { FENCE, 0 }, { LOAD, W_X } } },
			{ { 0, ANY }, { 0, ANY }, ANY2, ANY2 } },
	[SB_BARRIER] = { { { { STORE, W_X }, { LOAD, W_Y } },
			   { { STORE, W_Y }, { BARRIER, 0 }, { LOAD, W_X } } },
			 { { 0, ANY }, { 0, ANY }, ANY2, ANY2 } },
	[SB_ONE_FENCE] = { { { { STORE, W_X }, { LOAD, W_Y } },
			     { { STORE, W_Y }, { FENCE, 0 }, { LOAD, W_X } } },
			   { { 0, ANY }, { 0, ANY }, ANY2, ANY2 } },
	[LB] = { { { { LOAD, W_Y }, { STORE, W_X } },
		   { { LOAD, W_X }, { STORE, W_Y } } },
		 { { 1, ANY }, { 1, ANY }, ANY2, ANY2 } },
	[MP] = { { { { STORE, W_X }, { STORE, W_Y } },
		   { { LOAD, W_Y }, { LOAD, W_X } } },
		 { ANY2, { 1, 0 }, ANY2, ANY2 } },
	[MP_RELEASE] = { { { { STORE, W_X }, { RELEASE, W_Y } },
			   { { ACQUIRE, W_Y }, { LOAD, W_X } } },
			 { ANY2, { 1, 0 }, ANY2, ANY2 } },
	[MP_NO_ACQUIRE] = { { { { STORE, W_X }, { RELEASE, W_Y } },
			      { { LOAD, W_Y }, { LOAD, W_X } } },
			    { ANY2, { 1, 0 }, ANY2, ANY2 } },
	[MP_FENCES] = { { { { STORE, W_X }, { FENCE, 0 }, { STORE, W_Y } },
			  { { LOAD, W_Y }, { FENCE, 0 }, { LOAD, W_X } } },
			{ ANY2, { 1, 0 }, ANY2, ANY2 } },
	[MP_SEQUENCE] = { { { { STORE, W_X }, { RELEASE, W_Y }, { TWO, W_Y } },
			    { { ACQUIRE, W_Y }, { LOAD, W_X } } },
			  { ANY2, { 2, 0 }, ANY2, ANY2 } },
	[MP_ALONE] = { { { { STORE, W_X }, { RELEASE, W_Y }, { ALONE, W_Y } },
			 { { ACQUIRE, W_Y }, { LOAD, W_X } } },
		       { ANY2, { 2, 0 }, ANY2, ANY2 } },
	[CORR] = { { { { STORE, W_X }, { TWO, W_X } },
		     { { LOAD, W_X }, { LOAD, W_X } } },
		   { ANY2, { 2, 1 }, ANY2, ANY2 } },
	[IRIW] = { { { { RELEASE, W_X } },
		     { { RELEASE, W_Y } },
		     { { ACQUIRE, W_X }, { ACQUIRE, W_Y } },
		     { { ACQUIRE, W_Y }, { ACQUIRE, W_X } } },
		   { ANY2, ANY2, { 1, 0 }, { 1, 0 } } },
	[IRIW_FENCES] = { { { { RELEASE, W_X } },
			    { { RELEASE, W_Y } },
			    { { ACQUIRE, W_X }, { FENCE, 0 }, { LOAD, W_Y } },
			    { { ACQUIRE, W_Y }, { FENCE, 0 }, { LOAD, W_X } } },
			  { ANY2, ANY2, { 1, 0 }, { 1, 0 } } },
	[ADDS] = { { { { ADD, W_X }, { FENCE, 0 }, { LOAD, W_Y } },
		     { { ADD, W_X }, { RELEASE, W_Y } },
		     { { ACQUIRE, W_Y }, { ADD, W_X }, { LOAD, W_X } } },
		   { ANY2, ANY2, { 1, 1 }, ANY2 } },
	[COUNTS] = { { { { LOAD, W_X }, { COUNT, W_X } },
		       { { LOAD, W_X }, { COUNT, W_X }, { LOAD, W_X } } },
		     { { 0, ANY }, { 0, 1 }, ANY2, ANY2 } },
	[OWNED] = { { { { TOUCH, W_M }, { RELEASE, W_X } },
		      { { ACQUIRE, W_X }, { TAKE, W_M } } },
		    NEVER },
	[OWNED_RELAXED] = { { { { TOUCH, W_M }, { STORE, W_X } },
			      { { ACQUIRE, W_X }, { TAKE, W_M } } },
			    NEVER },
	[DEADLOCK] = { { { { WAIT, W_X }, { STORE, W_Y } },
			 { { WAIT, W_Y }, { STORE, W_X } } },
		       NEVER },
	[FOR_EVER] = { { { { FENCE, 0 }, { AGAIN, 0 } }, { { LOAD, W_X } } },
		       NEVER },
};

static const struct op *op_at(const struct model_run *r, unsigned int t,
			      unsigned int at)
{
	return &program[model_variant(r)].op[t][at];
}

static void init(struct model_run *r)
{
	for (unsigned int t = 0; t < THREADS; t++)
		if (op_at(r, t, 0)->kind == END)
			model_end(r, t);
}

/* All have ended: was it the outcome that must not be? */
static void check(struct model_run *r)
{
	const struct program *p = &program[model_variant(r)];
	const struct own *own = model_own(r);
	bool cares = false;

	for (unsigned int t = 0; t < THREADS; t++)
		for (unsigned int i = 0; i < LOADS; i++) {
			if (p->bad[t][i] == ANY)
				continue;
			cares = true;
			if (p->bad[t][i] != own->got[t][i])
				return;
		}
	if (cares)
		model_fail(r, "seen");
}

static void load(struct model_run *r, unsigned int t, unsigned int word,
		 enum model_order o)
{
	struct own *own = model_own(r);

	own->got[t][own->n[t]++] = model_load(r, t, word, o);
}

/* The last result of @t. */
static uint8_t result(struct model_run *r, unsigned int t)
{
	const struct own *own = model_own(r);

	return own->n[t] ? own->got[t][own->n[t] - 1] : 0;
}

static void store(struct model_run *r, unsigned int t, const struct op *op)
{
	switch ((enum kind)op->kind) {
	case STORE:
		model_store(r, t, op->word, 1, MODEL_RELAXED);
		break;
	case TWO:
		model_store(r, t, op->word, 2, MODEL_RELAXED);
		break;
	case ALONE:
		model_store(r, t, op->word, 2, MODEL_ALONE);
		break;
	case RELEASE:
		model_store(r, t, op->word, 1, MODEL_RELEASE);
		break;
	default:
		model_store(r, t, op->word, result(r, t) + 1u, MODEL_RELAXED);
	}
}

static void other(struct model_run *r, unsigned int t, const struct op *op)
{
	switch ((enum kind)op->kind) {
	case FENCE:
		model_fence(r, t);
		break;
	case BARRIER:
		model_fence_other(r, t, 0);
		break;
	case ADD:
		model_add(r, t, op->word, 1);
		break;
	case TOUCH:
		model_touch(r, t, op->word);
		break;
	case TAKE:
		if (result(r, t))
			model_reclaim(r, t, op->word);
		break;
	case WAIT:
		model_need(r, model_load(r, t, op->word, MODEL_ACQUIRE));
		break;
	default:
		store(r, t, op);
	}
}

/* True if all threads but @t have ended. */
static bool is_last(const struct model_run *r, unsigned int t)
{
	for (unsigned int u = 0; u < THREADS; u++)
		if (u != t && model_at(r, u) != MODEL_END)
			return false;
	return true;
}

static unsigned int step(struct model_run *r, unsigned int t, unsigned int at)
{
	const struct op *op = op_at(r, t, at);

	if (op->kind == LOAD || op->kind == ACQUIRE)
		load(r, t, op->word,
		     op->kind == LOAD ? MODEL_RELAXED : MODEL_ACQUIRE);
	else
		other(r, t, op);
	op = op_at(r, t, at + 1);
	if (op->kind == AGAIN)
		return 0;
	if (op->kind != END)
		return at + 1;
	if (is_last(r, t))
		check(r);
	return MODEL_END;
}

/* ---- the model ---- */

static const struct model_thread threads[THREADS] = {
	{ .name = "thread 0", .step = step },
	{ .name = "thread 1", .step = step },
	{ .name = "thread 2", .step = step },
	{ .name = "thread 3", .step = step },
};

static const struct model_word words[WORDS] = {
	[W_X] = { "x", 0, 15, false, true },
	[W_Y] = { .name = "y", .loaders = 15 },
	[W_M] = { .name = "memory", .memory = true },
};

static const struct model_variant variants[VARIANTS] = {
	[SB] = { "SB", MODEL_FAILS },
	[SB_FENCES] = { "SB, two fences", MODEL_HOLDS },
	[SB_BARRIER] = { "SB, membarrier", MODEL_HOLDS },
	[SB_ONE_FENCE] = { "SB, one fence", MODEL_FAILS },
	[LB] = { "LB (C11 has it, the weak memory not)", MODEL_HOLDS },
	[MP] = { "MP", MODEL_FAILS_WEAK },
	[MP_RELEASE] = { "MP, release and acquire", MODEL_HOLDS },
	[MP_NO_ACQUIRE] = { "MP, release", MODEL_FAILS_WEAK },
	[MP_FENCES] = { "MP, two fences", MODEL_HOLDS },
	[MP_SEQUENCE] = { "MP, release sequence", MODEL_HOLDS },
	[MP_ALONE] = { "MP, release sequence of C++20", MODEL_FAILS_WEAK },
	[CORR] = { "CoRR", MODEL_HOLDS },
	[IRIW] = { "IRIW", MODEL_FAILS_WEAK },
	[IRIW_FENCES] = { "IRIW, two fences", MODEL_HOLDS },
	[ADDS] = { "three adds, one lost", MODEL_HOLDS },
	[COUNTS] = { "two counts, one lost", MODEL_FAILS },
	[OWNED] = { "memory handed over", MODEL_HOLDS },
	[OWNED_RELAXED] = { "memory handed over, relaxed", MODEL_FAILS_WEAK },
	[DEADLOCK] = { "two wait for each other", MODEL_FAILS },
	[FOR_EVER] = { "one goes round for ever", MODEL_FAILS },
};

const struct model model_litmus = {
	.name = "litmus",
	.lines = "-",
	MODEL_TABLES(threads, words, variants),
	.own = sizeof(struct own),
	.init = init,
};
