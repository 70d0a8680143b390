/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Memory of the device for users, which peers reach by load and store: the
 * owner's side. arena_map.h has the peers'.
 *
 * Pages of the arena segment from RNIC_ARENA_USER on, mapped shared,
 * populated, on the node that the policy says. The segment grows as needed.
 * An allocation has pages of its own. Freed memory leaves the owner's address
 * space at once; its pages go, and its place is used again, when a grace
 * period has ended that began after the last key for it was invalidated. One
 * mutex protects the bookkeeping (inner to everything but the log); nobody
 * waits for another process. If the owner dies, the memory goes with the last
 * mapping.
 */
#ifndef RNIC_ARENA_H
#define RNIC_ARENA_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/atomic.h"
#include "shm/layout.h"
#include "shm/numa.h"
#include "shm/segment.h"

#define RNIC_ARENA_HUGE (UINT64_C(2) << 20) /* aligned to it from here on */

struct rnic_arena_piece; /* private to arena.c */

/* The owner's side. Zeroed: finished. */
struct rnic_arena {
	struct rnic_segment *seg;	 /* the arena; its size grows */
	struct rnic_numa numa;		 /* where pages go */
	pthread_mutex_t lock;		 /* protects all below; inner */
	uint64_t end;			 /* places below were handed out once */
	void *live;			 /* tree of pieces by address */
	struct rnic_arena_piece *list;	 /* the same, linked */
	struct rnic_arena_piece *spare;	 /* free places, by offset */
	struct rnic_arena_piece *left;	 /* freed, oldest first */
	struct rnic_arena_piece *latest; /* last of them */
	rnic_a64 low;			 /* no live piece lies below */
	rnic_a64 high;			 /* nor above */
	uint64_t bytes;			 /* live, whole pages */
	int fork_pipe[2];		 /* between prepare and parent, child */
	bool forked;			 /* we are a child: nothing is shared */
};

/*
 * Readies @a over @seg, which is sealed against shrinking but not against
 * growing, from offset RNIC_ARENA_USER on; pages go where @numa, copied, says.
 * @seg stays the caller's and open. One thread. No error.
 * Partner: rnic_arena_fini().
 */
void rnic_arena_init(struct rnic_arena *a, struct rnic_segment *seg,
		     const struct rnic_numa *numa);

/*
 * Unmaps what is still allocated and frees the bookkeeping. No other call is
 * under way. Zeroed memory is accepted.
 */
void rnic_arena_fini(struct rnic_arena *a);

/*
 * Allocates @size bytes, rounded up to whole pages, zeroed, present, aligned
 * to @align (a power of two, 0: a page) and to 2 MiB from that size on. *@ptr
 * is its address here, *@offset its place in the segment (aligned to a page,
 * or to 2 MiB). Any thread; may sleep while pages are made.
 * Returns 0; or, with nothing left behind, -EINVAL (size 0 or too large,
 * alignment), -ENOMEM, -ENOSPC (no memory for the pages, logged), -EFBIG
 * (RLIMIT_FSIZE, logged), -EPERM (child after fork). Outputs change on
 * success only. Partner: rnic_arena_free().
 */
int rnic_arena_alloc(struct rnic_arena *a, size_t size, size_t align,
		     void **ptr, uint64_t *offset);

/*
 * Frees what rnic_arena_alloc() placed at @ptr: the address is unmapped now,
 * pages and place are free once @grace has ended (0: at once; nobody has ever
 * been told of it). Graces come in rising order. No key for it is valid any
 * more. Any thread. Returns 0 or -EINVAL (no such allocation; logged). A
 * child after fork may free what it inherited.
 */
int rnic_arena_free(struct rnic_arena *a, void *ptr, uint64_t grace);

/*
 * Gives back pages and places whose grace period has ended, as
 * @ended(@arg, grace) says, in the order of rnic_arena_free(); stops at the
 * first that has not. @ended is called under the lock and must not wait.
 */
void rnic_arena_reap(struct rnic_arena *a,
		     bool (*ended)(void *arg, uint64_t grace), void *arg);

/*
 * Bytes from @ptr to the end of the allocation that it lies in; 0: in none. Any
 * thread.
 */
uint64_t rnic_arena_left(struct rnic_arena *a, const void *ptr);

/*
 * Looks whether @len bytes at @ptr are all inside one allocation. Any thread;
 * without a lock if they are nowhere near. Returns 0 with *@offset, their
 * place in the segment, or -ENOENT.
 */
int rnic_arena_find(struct rnic_arena *a, const void *ptr, size_t len,
		    uint64_t *offset);

/*
 * fork: the three calls of pthread_atfork(3). The child copies its arena
 * mappings to private memory at the same addresses, while the thread that
 * forked waits in the parent; afterwards nothing of the child's is shared,
 * and it can free but not allocate. The wait ends when the child has copied,
 * has died or has called exec; a child stopped meanwhile is waited for. What
 * other threads or peers write during the copy the child may see or not, as
 * it is with any write that races a fork. A child that has no memory for the
 * copy keeps the address without access (logged), rather than shared memory.
 * prepare takes the lock, parent and child give it back.
 */
void rnic_arena_fork_prepare(struct rnic_arena *a);
void rnic_arena_fork_parent(struct rnic_arena *a); /* waits for the child */
void rnic_arena_fork_child(struct rnic_arena *a);  /* copies */

#endif /* RNIC_ARENA_H */
