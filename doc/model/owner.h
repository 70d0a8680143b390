/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The owner's fence, as a part of models: O2 to O5 of shm/grace.h, one step
 * at a time. Threads 0 to N - 1 have a reader slot each; their sequence words
 * follow one another, and so do their announce words. More threads than slots
 * may use them; they come next.
 *
 *   OWNER_FENCE	scan() in shm/grace.c: O2, the full fence
 *   OWNER_LOOK		look_announced(): O3, A3
 *   OWNER_BARRIER	fence_readers(): O4, the interrupt at each reader
 *   OWNER_SCAN		look_inside(): O5, A1
 *   OWNER_WAIT		has_left()
 *   OWNER_LAST		move_on(): the fence after the last look
 */
#ifndef DOC_MODEL_OWNER_H
#define DOC_MODEL_OWNER_H

#include "doc/model/explorer.h"

enum {
	OWNER_READERS = 2,   /* at most */
	OWNER_ALWAYS = 0xff, /* owner_words.announce: always a membarrier */
};

/* Where the owner is. */
enum owner_step {
	OWNER_FENCE,
	OWNER_LOOK,
	OWNER_BARRIER,
	OWNER_SCAN,
	OWNER_WAIT,
	OWNER_LAST,
};

/* What a mutant does wrong. */
enum owner_fault {
	OWNER_NO_FENCE = 1,	/* O2 is missing */
	OWNER_NO_BARRIER = 2,	/* O4 is missing */
	OWNER_NO_WAIT = 4,	/* O5 is missing */
	OWNER_RELAXED = 8,	/* O3 and O5 without acquire */
	OWNER_NO_LAST = 16,	/* no fence after the last look */
	OWNER_BARRIER_LATE = 32 /* O4 after O5 */
};

/* What it works on. */
struct owner_words {
	unsigned int thread;   /* the owner's */
	unsigned int readers;  /* their number */
	unsigned int seq;      /* sequence word of the first */
	unsigned int announce; /* announce word of the first, OWNER_ALWAYS */
	unsigned int want;     /* bits that are looked for there */
	unsigned int faults;   /* enum owner_fault */
	unsigned int others;   /* more threads than readers in membarrier */
};

/* A fence under way; part of a model's own state. Zeroed: it begins. */
struct owner_fence {
	uint8_t step;		     /* enum owner_step */
	uint8_t i;		     /* reader looked at */
	uint8_t any;		     /* a wanted bit was announced */
	uint8_t seen[OWNER_READERS]; /* odd sequences, else 0 */
};

/* One step of @f. True: the fence is over, and @f as it was at the start. */
bool owner_fence_step(struct model_run *r, struct owner_fence *f,
		      const struct owner_words *w);

#endif /* DOC_MODEL_OWNER_H */
