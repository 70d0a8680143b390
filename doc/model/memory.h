/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The machine under a model: two kinds of memory, as data.
 *
 * TSO: memory, and a queue of stores for each thread.
 *
 * WEAK: a history of messages for each word, in the order of its stores. A
 * view has a position in each history. A thread has three: what it may not
 * read behind (cur), what it would know after a fence (acq: also what relaxed
 * loads brought), and what its relaxed stores hand on (rel: what it knew at
 * its last fence). A message has the view that an acquiring load takes over.
 * The machine has one more view, for full fences (sc).
 *
 * Messages that nobody can read any more are dropped, and positions counted
 * from the oldest that is left, so that equal states are equal bytes.
 *
 * No locks; used by explorer.c.
 */
#ifndef DOC_MODEL_MEMORY_H
#define DOC_MODEL_MEMORY_H

#include <stddef.h>

#include "doc/model/explorer.h"

enum {
	MODEL_BUFFER = 6,   /* stores in flight of a thread; then it stalls */
	MODEL_HISTORY = 12, /* messages of a word that can still be read */
	/* an encoded state, at most */
	MODEL_BYTES = 4 + MODEL_OWN + MODEL_THREADS +
		      MODEL_WORDS * (1 + MODEL_HISTORY * (3 + MODEL_WORDS)) +
		      (3 * MODEL_THREADS + 1) * MODEL_WORDS,
};

/* A store that has not reached memory. */
struct model_pending {
	uint8_t word;  /* where */
	uint8_t value; /* what */
};

struct model_tso {
	uint8_t mem[MODEL_WORDS]; /* memory */
	uint8_t n[MODEL_THREADS]; /* stores in each buffer */
	struct model_pending buf[MODEL_THREADS]
				[MODEL_BUFFER]; /* oldest first */
};

/* A store to a word. */
struct model_message {
	uint8_t value;		   /* what */
	uint8_t rmw;		   /* follows its predecessor at once */
	uint8_t by;		   /* thread + 1; 0: it was there */
	uint8_t view[MODEL_WORDS]; /* what an acquire of it brings */
};

/* Views of a thread. */
enum model_view {
	MODEL_CUR,
	MODEL_ACQ,
	MODEL_REL,
	MODEL_VIEWS,
};

struct model_weak {
	uint8_t n[MODEL_WORDS];				    /* messages */
	struct model_message m[MODEL_WORDS][MODEL_HISTORY]; /* oldest first */
	uint8_t v[MODEL_THREADS][MODEL_VIEWS][MODEL_WORDS]; /* of threads */
	uint8_t sc[MODEL_WORDS];			    /* of fences */
};

/* A state of the model and its machine. */
struct model_state {
	uint8_t own[MODEL_OWN];	   /* the model's */
	uint8_t at[MODEL_THREADS]; /* next step of each thread, MODEL_END */
	uint8_t reclaimed[2];	   /* bit per word, little end first */
	union {
		struct model_tso tso;
		struct model_weak weak;
	} u; /* by model_run.memory */
};

/* A step under way. */
struct model_run {
	const struct model *m;	  /* the model */
	unsigned int variant;	  /* of it */
	enum model_memory memory; /* and the machine */
	struct model_state *s;	  /* is changed */
	bool blocked;		  /* not possible */
	bool loud;		  /* notes are printed */
	const char *failure;	  /* or NULL */
	uint8_t choice[16];	  /* taken, in order */
	uint8_t options[16];	  /* there are at each */
	unsigned int nchoices;	  /* known */
	unsigned int at;	  /* next choice */
};

/* The initial state of r->m into r->s, which is zeroed. No error. */
void model_state_init(struct model_run *r);

/*
 * Encodes r->s at @to, of MODEL_BYTES: equal if and only if the states are.
 * Returns its length.
 */
size_t model_state_pack(struct model_run *r, uint8_t *to);

/* The reverse: into r->s. */
void model_state_unpack(struct model_run *r, const uint8_t *from);

/* TSO: the oldest store of @t reaches memory. False: there is none. */
bool model_drain(struct model_run *r, unsigned int t);

/* Ends the program: @what is too small. */
void model_limit(const struct model_run *r, const char *what)
	__attribute__((noreturn));

#endif /* DOC_MODEL_MEMORY_H */
