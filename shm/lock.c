/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The common way into a spin lock, and the end of a lean; see lock.h.
 */
#include "shm/lock.h"

#include <sched.h>
#include <time.h>

#include "shm/fence.h"

enum {
	TRIES = 200,	      /* polls of a taken lock before a yield */
	SETTLE_NS = 10000000, /* no store stays in a CPU for so long */
};

#if defined(__SANITIZE_THREAD__)
#define MAY_LEAN false
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MAY_LEAN false
#endif
#endif
#ifndef MAY_LEAN
#define MAY_LEAN rnic_fence_registered()
#endif

/* The holder ends the wait; it never sleeps for another process. */
static void pause_or_yield(unsigned int *tries)
{
	if (++*tries % TRIES)
		rnic_cpu_relax();
	else
		sched_yield();
}

/* Without a fence: until the owner's stores can only have been done. */
static void settle(void)
{
	const struct timespec t = { .tv_nsec = SETTLE_NS };

	nanosleep(&t, NULL);
}

/*
 * Takes the lean from its owner, for good; we hold `taken'. The owner leaves
 * soon: it holds a lock. If it is not inside it stays out, see S1.
 */
static void take_back(struct rnic_spin *l)
{
	unsigned int tries = 0;

	/* S2, relaxed: the fence orders it */
	rnic_store64_relaxed(&l->leans, RNIC_SPIN_SHARED);
	if (rnic_fence_peers())
		settle();
	/* S2: acquires what the owner did inside; pairs with S3 */
	while (rnic_load64_acquire(&l->inside))
		pause_or_yield(&tries);
}

void rnic_spin_lock_shared(struct rnic_spin *l, uint64_t self)
{
	unsigned int tries = 0;
	uint64_t leans;

	/* acquires what the last holder did; pairs with S4 */
	while (!rnic_trylock32_acquire(&l->taken))
		pause_or_yield(&tries);
	/* relaxed: written by holders of `taken' only */
	leans = rnic_load64_relaxed(&l->leans);
	if (leans == RNIC_SPIN_OPEN)
		/* takes effect with the next lock; the unlock releases it */
		rnic_store64_relaxed(&l->leans,
				     MAY_LEAN ? self : RNIC_SPIN_SHARED);
	else if (leans != RNIC_SPIN_SHARED)
		take_back(l);
}
