/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The owner's fence: nobody who resolved a key before its invalidation still
 * uses what it resolved to.
 *
 * Readers are the execution contexts of all lanes into the device, this
 * process's own among them. Each has a sequence word, odd while inside, and
 * an announce line, one bit per group of MPT slots that it has cached. See
 * shm/reader.h for their side, shm/fence_model.c for the proof.
 *
 *   owner                               reader, hit
 *   O1 store version (odd)              H1 store sequence (odd)
 *   O2 full fence                       (compiler barrier)
 *   O3 load announce lines              H2 load version: still the same?
 *   O4 a bit is set: membarrier         ... use the translation ...
 *   O5 load sequences, wait for         H3 store sequence (even), release
 *      each odd one until it moves
 *                                       reader, miss
 *                                       M1 store sequence (odd)
 *                                       M2 set the announce bit
 *                                       M3 full fence
 *                                       M4 load version, fields, version
 *
 * A miss and the owner both fence: either M4 sees O1, or O3 and O5 see M1 and
 * M2. A hit does not fence, but the bit of its slot has been visible since
 * its miss; so O4 happens, and H1 is then visible, or H2 sees O1.
 *
 * Grace periods are numbered, one at a time. All who ask while one is under
 * way share the next. A grace period without a membarrier is enough for what
 * only a miss reads (MPT fields, MTT pages, the index): a miss has fenced
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

/* State of the fences of a device. Private to its process. */
struct rnic_grace {
	pthread_mutex_t lock; /* all below; device.lock nests inside */
	uint64_t begun;	      /* number of the last period that began */
	uint64_t ended;	      /* all up to this one are over */
	uint64_t failed;      /* the last one that could not be had */
	int error;	      /* and why */
	bool active;	      /* period @begun is waiting for @item */
	bool warned;	      /* and has said so */
	uint64_t began_ms;    /* since then, CLOCK_MONOTONIC */
	uint64_t want[RNIC_FILTER_BITS / 64]; /* slots to fence by the next */
	struct rnic_grace_item *item;	      /* readers waited for */
	size_t n;			      /* their number */
	size_t room;			      /* allocated */
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
 * Returns when grace period @n is over; waits and fails as
 * rnic_grace_fence().
 */
int rnic_grace_wait(struct rnic_device *d, uint64_t n);

#endif /* RNIC_GRACE_H */
