/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A small model checker: all interleavings of a few threads that work on
 * shared words, on a machine with a weak memory.
 *
 * A model is a set of threads, each a state machine that takes one step at a
 * time. A step makes at most one access that others can tell from its
 * neighbours; what it does between is atomic. Everything that a step may meet
 * (which of several values a load returns, what the environment does) is a
 * choice, and all choices are tried: the step function is called once for
 * each. So a step function has no memory but where the threads are, which is
 * kept here, and the model's own state, which is bytes only.
 *
 * Two memories, see README.md for what they cover:
 *
 * MODEL_TSO	a buffer of stores per thread, first in, first out. A load sees
 *		the own buffer first. x86.
 * MODEL_WEAK	release and acquire as C11 has them: every word has a history
 *		of stores, every thread a view of each history; a load may
 *		return anything not older than the view.
 *
 * A wait is a step that is not possible until what it waits for is there
 * (model_need()). A state from which no end is reached is a failure: a
 * deadlock, or a loop that nobody leaves.
 *
 * One thread of one process; nothing here is locked.
 */
#ifndef DOC_MODEL_EXPLORER_H
#define DOC_MODEL_EXPLORER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MODEL_THREADS = 5, /* of a model, at most */
	MODEL_WORDS = 16,  /* likewise */
	MODEL_OWN = 96,	   /* bytes of its own state, at most */
	MODEL_STEPS = 32,  /* of a thread, at most */
	MODEL_END = 0xff,  /* a step that is the last: the thread has ended */
};

enum model_memory {
	MODEL_TSO,
	MODEL_WEAK,
	MODEL_MEMORIES,
};

/* Order of an access; in MODEL_TSO all are alike. */
enum model_order {
	MODEL_RELAXED,
	MODEL_ACQUIRE, /* loads */
	MODEL_RELEASE, /* stores */
	/*
	 * Stores: relaxed, and no part of the release sequence of an earlier
	 * store of the same thread, as in C++20.
	 */
	MODEL_ALONE,
};

/* What is expected of a variant. */
enum model_expect {
	MODEL_HOLDS,	  /* a protocol */
	MODEL_FAILS,	  /* a mutant: caught in both memories */
	MODEL_FAILS_WEAK, /* a mutant that TSO forgives */
};

struct model_variant {
	const char *name;	  /* for the table */
	enum model_expect expect; /* of it */
};

/* A word of shared memory. */
struct model_word {
	const char *name; /* for traces */
	uint8_t initial;  /* value at the start */
	uint8_t loaders;  /* bit per thread that may load it */
	bool memory;	  /* touched (model_touch()), never loaded */
	bool crossed;	  /* stored by several threads without a lock */
};

struct model_run; /* a step under way */

/* A thread. Its steps have numbers below MODEL_STEPS. */
struct model_thread {
	const char *name; /* for traces */
	/*
	 * Takes step @at of thread @t. Returns the next one, or MODEL_END; not
	 * possible now: model_need().
	 */
	unsigned int (*step)(struct model_run *r, unsigned int t,
			     unsigned int at);
	uint8_t begins; /* its first step */
	uint32_t rests; /* bit per step that need not be taken */
};

/* A protocol and its mutants. */
struct model {
	const char *name;		     /* for the table */
	const char *lines;		     /* of the contract */
	unsigned int threads;		     /* number of threads */
	const struct model_thread *thread;   /* the threads */
	unsigned int words;		     /* number of words */
	const struct model_word *word;	     /* the words */
	unsigned int variants;		     /* number of variants */
	const struct model_variant *variant; /* [0]: the protocol */
	size_t own;			     /* bytes of the own state */
	/* Fills the own state, zeroed before. NULL: it is zeroes. */
	void (*init)(struct model_run *r);
	/*
	 * True if the model may rest in this state for ever. NULL: if each
	 * thread has ended, or rests.
	 */
	bool (*final)(const struct model_run *r);
};

/* Number of the elements of @array. */
#define MODEL_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The arrays of a struct model, with their numbers. */
#define MODEL_TABLES(t, w, v)                                                  \
	.threads = MODEL_COUNT(t), .thread = (t), .words = MODEL_COUNT(w),     \
	.word = (w), .variants = MODEL_COUNT(v), .variant = (v)

/* What exploring a variant found. */
struct model_result {
	uint32_t states;     /* visited */
	const char *failure; /* NULL: holds */
};

/* ---- for steps ---- */

/* The model's own state, which a step reads and changes. */
void *model_own(struct model_run *r);

/* The same, for model.final(). */
const void *model_own_of(const struct model_run *r);

/* The step that thread @t takes next, or MODEL_END. */
unsigned int model_at(const struct model_run *r, unsigned int t);

/* Thread @t takes no step: for model.init(). */
void model_end(struct model_run *r, unsigned int t);

/* True if each thread has ended, or rests: for model.final(). */
bool model_rests(const struct model_run *r);

/* Number of the variant that is explored. */
unsigned int model_variant(const struct model_run *r);

/* True if variant @v is explored. */
static inline bool model_is(const struct model_run *r, unsigned int v)
{
	return model_variant(r) == v;
}

/* One of 0 to @n - 1: all are tried. */
unsigned int model_choose(struct model_run *r, unsigned int n);

/* Unless @condition, this step is not possible now. */
void model_need(struct model_run *r, bool condition);

/* The model fails by @why, a string that lives on. */
void model_fail(struct model_run *r, const char *why);

/* Words for a trace, as printf(). */
void model_note(struct model_run *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Thread @t loads @word, with order @o: relaxed or acquire. */
uint8_t model_load(struct model_run *r, unsigned int t, unsigned int word,
		   enum model_order o);

/* Thread @t stores @value, with order @o: relaxed or release. */
void model_store(struct model_run *r, unsigned int t, unsigned int word,
		 unsigned int value, enum model_order o);

/*
 * Replaces @word by @value if it holds @old; true if it did. TSO: a full
 * fence. Weak: acquire and release when it does, relaxed when it does not,
 * and then what it saw may be old.
 */
bool model_cas(struct model_run *r, unsigned int t, unsigned int word,
	       unsigned int old, unsigned int value);

/* Exchanges @word for @value; returns the old one. Order as of model_cas(). */
uint8_t model_swap(struct model_run *r, unsigned int t, unsigned int word,
		   unsigned int value);

/* Adds @x to @word; returns the old value. Order as of model_cas(). */
uint8_t model_add(struct model_run *r, unsigned int t, unsigned int word,
		  unsigned int x);

/* Sets bits @x in @word; returns the old value. Order as of model_cas(). */
uint8_t model_or(struct model_run *r, unsigned int t, unsigned int word,
		 unsigned int x);

/* A full fence of thread @t. */
void model_fence(struct model_run *r, unsigned int t);

/*
 * membarrier(2) by @t, as far as it concerns thread @u: the interrupt, which
 * is a full fence where @u just is. For several threads: one step each.
 */
void model_fence_other(struct model_run *r, unsigned int t, unsigned int u);

/*
 * Thread @t reads or writes user memory @word. If it was reclaimed before,
 * the model fails.
 */
void model_touch(struct model_run *r, unsigned int t, unsigned int word);

/*
 * From now on @word is for thread @t alone. The model fails if a touch of
 * another thread is not yet done, or @t is not ordered after it.
 */
void model_reclaim(struct model_run *r, unsigned int t, unsigned int word);

/* ---- for the program ---- */

/*
 * Explores variant @v of @m. @trace: prints how it fails, step by step.
 * Ends the program if memory is short or a limit of the machine is too small.
 */
struct model_result model_explore(const struct model *m, unsigned int v,
				  enum model_memory memory, bool trace);

/* Frees what exploring left allocated. */
void model_free(void);

#endif /* DOC_MODEL_EXPLORER_H */
