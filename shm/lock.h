/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Spin lock between the threads of one process. Never placed in shared
 * memory: no process can hold up another one (contract P3).
 */
#ifndef RNIC_LOCK_H
#define RNIC_LOCK_H

#include <sched.h>

#include "shm/atomic.h"

enum {
	RNIC_SPIN_TRIES = 200, /* polls of a taken lock before a yield */
};

struct rnic_spin {
	rnic_a32 taken; /* 1 while held */
};

/* Readies @l, free. No error. */
static inline void rnic_spin_init(struct rnic_spin *l)
{
	rnic_store32_relaxed(&l->taken, 0);
}

/* Takes @l if it is free; true if taken. Never waits. */
static inline bool rnic_spin_try(struct rnic_spin *l)
{
	return rnic_trylock32_acquire(&l->taken);
}

/* Out of line part of rnic_spin_lock(): polls, then yields. */
static inline void rnic_spin_wait(struct rnic_spin *l)
{
	unsigned int tries = 0;

	while (!rnic_spin_try(l)) {
		if (++tries % RNIC_SPIN_TRIES)
			rnic_cpu_relax();
		else
			sched_yield();
	}
}

/*
 * Takes @l; spins, then yields the CPU. The holder ends the wait; holders
 * never sleep, wait for another process or take this lock again.
 */
static inline void rnic_spin_lock(struct rnic_spin *l)
{
	if (!rnic_spin_try(l))
		rnic_spin_wait(l);
}

/* Gives @l back. The caller holds it. */
static inline void rnic_spin_unlock(struct rnic_spin *l)
{
	rnic_store32_release(&l->taken, 0);
}

/* True while somebody holds @l; for assertions only. */
static inline bool rnic_spin_held(const struct rnic_spin *l)
{
	return rnic_load32_relaxed(&l->taken);
}

#endif /* RNIC_LOCK_H */
