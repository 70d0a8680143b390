/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Memory of tests that unmap some of it, and want it to stay unmapped.
 *
 * The kernel looks for room from the top of the address space down. A hole
 * that a test makes up there is the first that fits the next mapping of a
 * page, and sanitizers (their background thread, their reading of
 * /proc/self/maps), stdio and new threads map pages at any time: an access
 * that has to fail then succeeds. Far below everything else a hole stays one.
 */
#ifndef SHRIMP_TESTS_QUIET_MAP_H
#define SHRIMP_TESTS_QUIET_MAP_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/* Where to begin: application memory also for ASan and TSan. */
#define QUIET_BASE UINT64_C(0x7ea000000000)

/* Mappings begin at multiples of this, one is left free between two. */
#define QUIET_STEP UINT64_C(0x200000)

/*
 * mmap(NULL, @len, @prot, @flags, @fd, @off) far below everything else, at a
 * place where nothing of this process has been yet. For one thread; the
 * caller unmaps. MAP_FAILED as mmap().
 */
static inline void *quiet_map(size_t len, int prot, int flags, int fd,
			      off_t off)
{
	static uint64_t next = QUIET_BASE;
	uint64_t step = (len / QUIET_STEP + 2) * QUIET_STEP;
	void *p = MAP_FAILED;

	/* other files of tests have a place of their own to go on from */
	for (int tries = 0; tries < 10000; tries++) {
		uint64_t at = next;

		next += step;
		p = mmap((void *)(uintptr_t)at, len, prot,
			 flags | MAP_FIXED_NOREPLACE, fd, off);
		if (p != MAP_FAILED && (uintptr_t)p != at) {
			/* a kernel that takes the address for a hint */
			munmap(p, len);
			p = MAP_FAILED;
			continue;
		}
		if (p != MAP_FAILED || errno != EEXIST)
			return p;
	}
	return p;
}

/* @len bytes of private anonymous memory, read and write. */
static inline void *quiet_private(size_t len)
{
	return quiet_map(len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

#endif /* SHRIMP_TESTS_QUIET_MAP_H */
