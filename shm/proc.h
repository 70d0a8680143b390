/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The processes this one talks to, and whether they are alive.
 *
 * One entry and one pidfd per peer process, whatever the number of devices
 * and endpoints. Process-wide, with a lock of its own (inner to everything);
 * every call is for any thread and never blocks.
 *
 * Dead = its pidfd is readable, or its identity in /proc is another one (exec,
 * recycled pid). Never kill(), never the state letter alone: a zombie leader
 * may have running threads.
 */
#ifndef RNIC_PROC_H
#define RNIC_PROC_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/atomic.h"

/* A process. Read only; rnic_proc_dead() is what matters. */
struct rnic_proc {
	rnic_a32 dead;		/* 1 for good once seen dead */
	rnic_a32 watched;	/* 1: its pidfd is in the epoll set */
	rnic_a64 looked;	/* tick of the last look, any thread's; 0 */
	bool self;		/* it is this process */
	uint32_t pid;		/* in our pid namespace */
	uint64_t identity;	/* rnic_identity_of() it */
	int fd;			/* pidfd, -1 if there is none */
	unsigned int refs;	/* users, under the lock */
	struct rnic_proc *next; /* all, under the lock */
};

/*
 * The entry of process @pid with @identity, made if need be. Without
 * descriptors left for a pidfd it is watched by identity alone; this process
 * itself is never dead. Returns 0, -ESRCH (dead, or another process by now),
 * -ENOMEM, -EMFILE or -EIO (its identity could not be read).
 * Partner: rnic_proc_put().
 */
int rnic_proc_get(uint32_t pid, uint64_t identity, struct rnic_proc **p);

/* Gives an entry back. NULL is accepted. */
void rnic_proc_put(struct rnic_proc *p);

/* True once the process was seen dead. Sticky. */
static inline bool rnic_proc_dead(const struct rnic_proc *p)
{
	/* relaxed: a death is news whenever it is seen */
	return rnic_load32_relaxed(&p->dead);
}

/*
 * A look at @p itself, before what goes by its pid number: false if it is dead
 * by now. One system call, or, without pidfd, a look at /proc. Any thread that
 * holds a reference; takes the lock only if some process has died.
 */
bool rnic_proc_look(const struct rnic_proc *p);

/*
 * rnic_proc_look() for a caller whose system call goes by the pid number: no
 * second look in the same tick of the kernel's clock (1 to 10 ms). A number
 * comes again only when the kernel has given all others, which takes longer;
 * where /proc/sys/kernel/pid_max allows for a faster round (less than 1024
 * numbers for each CPU), each call looks. Costs 5 ns. Any thread, as above.
 */
bool rnic_proc_look_lately(struct rnic_proc *p);

/*
 * Looks at all descriptors; every 100 ms also at the identity of one process,
 * and of each that has no descriptor. Marks the dead. Returns how many died
 * since the last look.
 */
int rnic_proc_poll(void);

/* A number that moves whenever a process was marked dead. No lock. */
uint32_t rnic_proc_generation(void);

/* Live peer processes known, this one not counted. No lock. */
uint32_t rnic_proc_alive(void);

/*
 * An fd that polls readable when a process died and rnic_proc_poll() has not
 * been called since; for epoll sets. -1 if it cannot be had (logged). Not to
 * be closed. Processes without a descriptor do not show in it.
 */
int rnic_proc_epoll_fd(void);

/*
 * Child after fork, its only thread: closes the fds, forgets everything.
 * Entries of the parent may still be put.
 */
void rnic_proc_forked(void);

#endif /* RNIC_PROC_H */
