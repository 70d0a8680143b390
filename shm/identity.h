/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Who a process is: a pid alone is recycled, and exec keeps it.
 */
#ifndef RNIC_IDENTITY_H
#define RNIC_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What process @pid is: a hash of its start time in the low half, one of the
 * start of its stack, which exec moves, in the high half; the high half is 0
 * if this process may not look into the other one, or its main thread has ended
 * and others run. Compare with rnic_identity_same(). Where addresses are not
 * random, exec moves the stack only if the arguments change their length. Any
 * thread. Returns 0, -ESRCH (no such process, or all of it has ended, reaped or
 * not), -EMFILE (no descriptor to look with), neither logged; or -EIO
 * (logged).
 */
int rnic_identity_of(uint32_t pid, uint64_t *identity);

/*
 * rnic_identity_of() another process, for a thread that must neither log nor
 * allocate: system calls and the stack only. Returns as that, and whatever
 * /proc said instead of -EIO.
 */
int rnic_identity_peek(uint32_t pid, uint64_t *identity);

/* True if two looks, perhaps of different processes, saw the same one. */
static inline bool rnic_identity_same(uint64_t a, uint64_t b)
{
	uint32_t ha = (uint32_t)(a >> 32), hb = (uint32_t)(b >> 32);

	return (uint32_t)a == (uint32_t)b && (ha == hb || !ha || !hb);
}

/*
 * rnic_identity_of() of this process. Any thread. Returns 0, -EMFILE, or -EIO
 * (/proc is missing, or of another pid namespace); all logged.
 */
int rnic_identity_self(uint64_t *identity);

/*
 * Hash of what must agree for pids and /proc to mean the same to two
 * processes: pid namespace, time namespace, boot. Any thread. Returns 0,
 * -EMFILE or -EIO (logged).
 */
int rnic_identity_ns(uint64_t *ns);

/* Fills @buf, of at most 256 bytes, with random ones. 0 or -EIO (logged). */
int rnic_random(void *buf, size_t len);

#endif /* RNIC_IDENTITY_H */
