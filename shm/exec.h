/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the owner of memory does for peers that do not reach it: RMA on private
 * memory where the kernel forbids process_vm_readv, atomics on private memory,
 * and atomics that are not one CPU instruction (shm/aop.h).
 *
 * Who executes: the thread that drains the lane in which the request came,
 * under its endpoint's lock; for a request of the process to itself, the
 * caller. An element that is not native is changed under one lock of the whole
 * process, so that all who change it take turns, whatever the endpoint or the
 * domain (contract P1). The key is resolved as any reader does, inside a
 * section of the executor's own reader slot: a close waits for it (I1).
 *
 * Memory that is not there is -EFAULT, never a signal: bytes are moved by
 * pread and pwrite on a segment; before an atomic its pages are populated.
 * An application that unmaps a registered page in another thread at the very
 * moment of an atomic on it gets the signal that its own access would get.
 */
#ifndef RNIC_EXEC_H
#define RNIC_EXEC_H

#include <stddef.h>
#include <stdint.h>

#include "shm/aop.h"
#include "shm/reach.h"

/* Bytes in a segment of ours: where a request has its operands. */
struct rnic_exec_at {
	int fd;	      /* the segment */
	uint64_t off; /* in it */
	uint8_t *mem; /* the same, mapped */
};

/*
 * Moves a->len bytes between the memory behind the key and @at; @a->write: to
 * the memory. @x reaches this process's own device. *@done: bytes moved,
 * whatever is returned. Returns 0, what rnic_resolve() says, -EFAULT (not
 * there, or not to be read or written), -EIO (the segment; cannot happen).
 * Locks: under the context @c. Sleeps on page faults only.
 */
int rnic_exec_move(struct rnic_ctx *c, struct rnic_reach *x,
		   struct rnic_access *a, const struct rnic_exec_at *at,
		   size_t *done);

/* An atomic operation on a row of elements. */
struct rnic_exec_atomic {
	enum rnic_aop_type type; /* of each element */
	enum rnic_aop_op op;	 /* valid with the operands there are */
	uint8_t *operand;	 /* one per element, or NULL (READ) */
	uint8_t *compare;	 /* one per element, or NULL */
	uint8_t *result;	 /* one per element, or NULL; may be @operand */
};

/* The rights that an atomic takes: fetching ones both (contract R6). */
static inline uint32_t rnic_exec_rights(bool fetches)
{
	return RNIC_REMOTE_WRITE | (fetches ? RNIC_REMOTE_READ : 0);
}

/*
 * Does @t to the a->len bytes of elements behind the key, one after the other;
 * @a->atomic and @a->need are set. *@done: bytes of the elements that were
 * done. Returns 0, what rnic_resolve() says, -EFAULT, or -EINVAL: an element
 * that lies in two ranges of one key. Locks and sleep: as rnic_exec_move(),
 * and the lock of the process's executors, for which nobody waits inside.
 */
int rnic_exec_atomic(struct rnic_ctx *c, struct rnic_reach *x,
		     struct rnic_access *a, const struct rnic_exec_atomic *t,
		     size_t *done);

/* Child after fork, its only thread: nobody holds the lock of executors. */
void rnic_exec_forked(void);

#endif /* RNIC_EXEC_H */
