/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The owner's fence: nobody who resolved a key before its invalidation still
 * uses what it resolved to.
 *
 * Readers are the execution contexts of all lanes into the device, this
 * process's own among them. Each has a sequence word, odd while inside, and
 * an announce line, one bit per group of MPT slots that it has cached. See
 * shm/reader.h for their side, doc/model/fence.c and coalesce.c for the proof.
 *
 *   owner                               reader, hit
 *   O1 store version (odd)              H1 store sequence (odd), release
 *   O2 full fence                       (compiler barrier)
 *   O3 load announce lines              H2 load version: still the same?
 *   O4 a bit is set: membarrier         ... use the translation ...
 *   O5 load sequences, wait for         H3 store sequence (even), release
 *      each odd one until it moves
 *                                       reader, miss
 *                                       M1 store sequence (odd), release
 *                                       M2 set the announce bit
 *                                       M3 full fence
 *                                       M4 load version, fields, version
 *
 * A miss and the owner both fence: either M4 sees O1, or O3 and O5 see M1 and
 * M2. A hit does not fence, but the bit of its slot has been visible since
 * its miss; so O4 happens, and H1 is then visible, or H2 sees O1.
 *
 * Grace periods are numbered, one at a time. All who ask while one is under
 * way, its scan included, share the next: whoever begins it scans for all of
 * them, without the lock. A grace period without a membarrier is enough for
 * what only a miss reads (MPT fields, MTT pages, the index): a miss has fenced
 * before it reads them.
 *
 * A reader whose process is dead, or whose lane has another claim by now, is
 * not waited for. A stopped one is, with a warning: the alternative is a late
 * write.
 */
#ifndef RNIC_GRACE_H
#define RNIC_GRACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/layout.h"

struct rnic_device;
struct rnic_grace_item; /* a reader that is waited for; private to grace.c */

/* A set of announce bits. */
struct rnic_grace_want {
	uint64_t bit[RNIC_FILTER_BITS / 64]; /* words */
	uint32_t low;			     /* none below this word */
	uint32_t end;			     /* none from this word on */
};

/* State of the fences of a device. Private to its process. */
struct rnic_grace {
	pthread_mutex_t lock;	     /* all below; device.lock nests inside */
	uint64_t begun;		     /* number of the last period that began */
	uint64_t ended;		     /* all up to this one are over */
	uint64_t failed;	     /* the last one that could not be had */
	int error;		     /* and why */
	bool active;		     /* period @begun is waiting for @item */
	bool warned;		     /* and has said so */
	uint64_t began_ms;	     /* since then, CLOCK_MONOTONIC */
	struct rnic_grace_want want; /* slots to fence by the next */
	/* while @scanning the scanner's alone, who does not hold @lock */
	bool scanning;		      /* period @begun has its scan */
	struct rnic_grace_want taken; /* slots that it fences */
	struct rnic_grace_item *item; /* readers waited for */
	size_t n;		      /* their number */
	size_t room;		      /* allocated */
};

/* Readies @g; partner: rnic_grace_fini(). No error. */
void rnic_grace_init(struct rnic_grace *g);

/* Frees what @g has; nobody waits any more. */
void rnic_grace_fini(struct rnic_grace *g);

/*
 * Returns when no reader of @d uses what it resolved of MPT slot @slot before
 * the call; the caller has made its version odd. Any thread that is not
 * inside a reader's section. Sleeps: each live reader that is inside ends the
 * wait by leaving; a dead one is found out within some 10 ms; a stopped one
 * holds it up, with a warning after 1 s. A full fence.
 * Returns 0, or a negative errno (logged): the membarrier was refused, or
 * -ENOMEM. Then nothing is known, and the memory must not be reused.
 */
int rnic_grace_fence(struct rnic_device *d, uint32_t slot);

/*
 * Asks the next grace period to fence MPT slot @slot as well, whose version
 * the caller has made odd; returns its number. When that period is over, as
 * rnic_grace_wait() or rnic_grace_look() say, the same holds as after
 * rnic_grace_fence(). For several slots: the last number counts. Any thread;
 * never waits.
 */
uint64_t rnic_grace_want(struct rnic_device *d, uint32_t slot);

/*
 * The number of the grace period that protects what nobody can find any more
 * from now on. Any thread. Numbers only rise.
 */
uint64_t rnic_grace_now(struct rnic_device *d);

/*
 * True if grace period @n is over. Begins one, or moves on the one under way,
 * if not; never waits. Any thread outside a reader's section.
 */
bool rnic_grace_ended(struct rnic_device *d, uint64_t n);

/*
 * rnic_grace_ended() that tells a failure: 0 (over), -EAGAIN (not yet), or why
 * period @n cannot be had: as rnic_grace_fence(); asking again tries again.
 */
int rnic_grace_look(struct rnic_device *d, uint64_t n);

/*
 * Returns when grace period @n is over; waits and fails as
 * rnic_grace_fence().
 */
int rnic_grace_wait(struct rnic_device *d, uint64_t n);

#endif /* RNIC_GRACE_H */
