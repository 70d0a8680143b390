/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Spin lock between the threads of one process. Never placed in shared
 * memory: no process can hold up another one (contract P3).
 *
 * A locked instruction waits until all earlier stores of its CPU are done: in
 * a call that follows a send, until the message's line has come over from the
 * other core. Most endpoints are used by one thread. So a lock leans to the
 * first thread that takes it, which from then on takes it by plain stores and
 * loads. The first other thread that wants it ends that for good: it takes
 * the lock the common way, takes the lean back, fences the owner
 * (rnic_fence_peers()) and waits until it is not inside.
 *
 *   owner of the lean (S1)           the other one, holding `taken' (S2)
 *   store inside = me                store leans = SHARED
 *   (compiler barrier)               membarrier
 *   load leans; me? inside           load inside; 0? inside
 *
 * The membarrier falls before or after the owner's pair: either it sees the
 * lean gone, or we see it inside. Where there is no membarrier, and under the
 * thread sanitizer, which does not know it, locks do not lean.
 */
#ifndef RNIC_LOCK_H
#define RNIC_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "shm/atomic.h"

#define RNIC_SPIN_OPEN	 0 /* leans to nobody yet: zeroed memory is ready */
#define RNIC_SPIN_SHARED 1 /* taken the common way from now on */

struct rnic_spin {
	rnic_a32 taken;	 /* 1 while held the common way */
	rnic_a64 leans;	 /* thread, OPEN or SHARED; written by who holds
			  * taken */
	rnic_a64 inside; /* thread that holds it by its lean, or 0; written
			  * by that thread only */
};

/* A number that no two living threads of the process share, never 0 or 1. */
static inline uint64_t rnic_thread_self(void)
{
#if defined(__has_builtin)
#if __has_builtin(__builtin_thread_pointer)
	return (uintptr_t)__builtin_thread_pointer();
#else
	return (uint64_t)pthread_self();
#endif
#else
	return (uint64_t)pthread_self();
#endif
}

/* Readies @l, free. No error. */
static inline void rnic_spin_init(struct rnic_spin *l)
{
	rnic_store32_relaxed(&l->taken, 0);
	rnic_store64_relaxed(&l->leans, RNIC_SPIN_OPEN);
	rnic_store64_relaxed(&l->inside, 0);
}

/* The common way: spins, then yields; decides about the lean. */
RNIC_COLD void rnic_spin_lock_shared(struct rnic_spin *l, uint64_t self);

/*
 * Takes @l; spins, then yields the CPU. The holder ends the wait; holders
 * never sleep, wait for another process or take this lock again.
 */
static inline void rnic_spin_lock(struct rnic_spin *l)
{
	uint64_t self = rnic_thread_self();

	/* relaxed: it is this thread's number only if this thread put it */
	if (RNIC_LIKELY(rnic_load64_relaxed(&l->leans) == self)) {
		rnic_store64_relaxed(&l->inside, self);
		/* S1: ordered by the membarrier of S2 */
		rnic_compiler_barrier();
		if (RNIC_LIKELY(rnic_load64_relaxed(&l->leans) == self))
			return;
		/* S3: as an unlock; pairs with the wait of S2 */
		rnic_store64_release(&l->inside, 0);
	}
	rnic_spin_lock_shared(l, self);
}

/* Gives @l back. The caller holds it. */
static inline void rnic_spin_unlock(struct rnic_spin *l)
{
	/* relaxed: this thread's number only while it holds it by its lean */
	if (RNIC_LIKELY(rnic_load64_relaxed(&l->inside) == rnic_thread_self()))
		/* S3: pairs with the wait of S2 */
		rnic_store64_release(&l->inside, 0);
	else
		/* S4: pairs with the acquire of the next holder */
		rnic_store32_release(&l->taken, 0);
}

/* True while somebody holds @l; for assertions only. */
static inline bool rnic_spin_held(const struct rnic_spin *l)
{
	return rnic_load32_relaxed(&l->taken) ||
	       rnic_load64_relaxed(&l->inside);
}

#endif /* RNIC_LOCK_H */
