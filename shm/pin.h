/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Pins: memory kept resident for registered regions, counted (contract R4).
 *
 * mlock(2) does not nest and knows nobody; so the process has one table of
 * page ranges with a count each, whatever the number of devices. Pages that
 * the application had locked before the first pin are recognised and stay
 * locked after the last; what it locks or unlocks while a pin is there cannot
 * be known, and the last unpin unlocks. One mutex (inner to everything, held
 * across mlock) protects the table; any thread. Threads wait for each other's
 * mlock, never for another process.
 */
#ifndef RNIC_PIN_H
#define RNIC_PIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/vma.h"

/* What to do about a pin that the kernel refuses. */
enum rnic_pin_policy {
	RNIC_PIN_TRY,	  /* go on without, say so */
	RNIC_PIN_REQUIRE, /* fail */
	RNIC_PIN_OFF,	  /* do not pin at all */
};

/*
 * Pins the pages of @addr, @len: they are present and stay. All or nothing.
 * May sleep as long as the pages take to come.
 * Returns 1 (pinned; rnic_unpin() is due), 0 (not pinned, as @policy allows:
 * nothing is due), or, with RNIC_PIN_REQUIRE only: -ENOMEM (limit, no memory,
 * or pages could not be read in), -ENOSPC (a quarter of vm.max_map_count used
 * up by pins and watches). Whatever the policy -EFAULT (a page is not mapped,
 * or not accessible) and -EINVAL (empty or wrapping). A refusal is logged with
 * the limit, what is in use and what was wanted: as a warning if it is an
 * error, else as information.
 */
int rnic_pin(const void *addr, size_t len, enum rnic_pin_policy policy);

/*
 * Locks once more what rnic_pin() returned 1 for: the pages at @addr, @len may
 * be others by now, which nobody has locked. Counts do not change. Returns 0,
 * or, with RNIC_PIN_REQUIRE only, as rnic_pin(); a refusal is logged likewise.
 */
int rnic_pin_renew(const void *addr, size_t len, enum rnic_pin_policy policy);

/*
 * Takes one pin off the pages of @addr, @len, for which rnic_pin() returned 1
 * with the same values; pages with none left are unlocked. Memory that is no
 * longer mapped is no error. Neither is a failure of munlock, which is logged.
 */
void rnic_unpin(const void *addr, size_t len);

/*
 * Looks whether all pages of @addr, @len are mapped with @prot (PROT_READ,
 * PROT_WRITE or both). The application's memory does not change: no byte, and
 * no page unless the kernel is older than 6.11, see pin.c.
 * Returns 0, -EFAULT (logged: address and what is wrong there), -EINVAL
 * (empty or wrapping), -EIO (nothing can be known).
 */
int rnic_pin_check(const void *addr, size_t len, int prot);

/*
 * rnic_pin_check(), which also tells of the mapping that holds all of it:
 * pieces of one shared file in a row count as one. v->shared is false where
 * the look did not tell that, or where it is not so. No look more than
 * rnic_pin_check() has.
 */
int rnic_pin_check_map(const void *addr, size_t len, int prot,
		       struct rnic_vma *v);

/*
 * Makes the pages of @len bytes at @addr present, to be read or, @write,
 * written; no byte changes. May sleep as long as they take to come. Returns 0
 * or -EFAULT: not mapped, not so, or they cannot come. Not logged, but by
 * rnic_pin_check(), which a kernel before 5.14 needs; there they are only
 * looked for.
 */
int rnic_pin_populate(void *addr, size_t len, bool write);

/* What the table holds, for tools and tests. */
struct rnic_pin_stats {
	uint64_t pages;	   /* pinned pages, each counted once */
	uint64_t ranges;   /* entries of the table */
	uint64_t mappings; /* mappings that the pins may have caused */
};

/* Fills *@s. No error. */
void rnic_pin_stats(struct rnic_pin_stats *s);

/*
 * Child after fork, its only thread: forgets all pins, which a child does not
 * inherit. What the table held is not freed.
 */
void rnic_pin_forked(void);

#endif /* RNIC_PIN_H */
