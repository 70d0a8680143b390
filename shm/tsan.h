/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What ThreadSanitizer cannot see by itself, told to it. Empty without it.
 *
 * - liburcu is not instrumented: the publication of an object through its hash
 *   table looks like a race.
 * - Two endpoints of one process map a lane at two addresses: a release at one
 *   and its acquire at the other are strangers. The words of
 *   rnic_tsan_lane_put() and _took() stand for the place in the ring, so that
 *   memory a peer's thread read or wrote before its message is ordered.
 */
#ifndef RNIC_TSAN_H
#define RNIC_TSAN_H

#include <stdint.h>

enum {
	RNIC_TSAN_DESC, /* label L1 */
	RNIC_TSAN_RET,	/* label L3 */
	RNIC_TSAN_RINGS,
	RNIC_TSAN_PLACES = 1024, /* told apart in each ring */
};

#if defined(__SANITIZE_THREAD__)
void __tsan_acquire(void *addr); /* of the sanitizer's runtime */
void __tsan_release(void *addr); /* likewise */

/* Stand-ins for the places of all rings; only their addresses count. */
extern char rnic_tsan_places[RNIC_TSAN_RINGS][RNIC_TSAN_PLACES];

/* @p is about to be published where the sanitizer does not look. */
static inline void rnic_tsan_release(void *p)
{
	__tsan_release(p);
}

/* @p was found there. */
static inline void rnic_tsan_acquire(void *p)
{
	__tsan_acquire(p);
}

/* Entry @place of a @ring is about to be published. */
static inline void rnic_tsan_lane_put(int ring, uint32_t place)
{
	__tsan_release(&rnic_tsan_places[ring][place % RNIC_TSAN_PLACES]);
}

/* Entry @place of a @ring was seen. */
static inline void rnic_tsan_lane_took(int ring, uint32_t place)
{
	__tsan_acquire(&rnic_tsan_places[ring][place % RNIC_TSAN_PLACES]);
}
#else
/* @p is about to be published where the sanitizer does not look. */
static inline void rnic_tsan_release(void *p)
{
	(void)p;
}

/* @p was found there. */
static inline void rnic_tsan_acquire(void *p)
{
	(void)p;
}

/* Entry @place of a @ring is about to be published. */
static inline void rnic_tsan_lane_put(int ring, uint32_t place)
{
	(void)ring;
	(void)place;
}

/* Entry @place of a @ring was seen. */
static inline void rnic_tsan_lane_took(int ring, uint32_t place)
{
	(void)ring;
	(void)place;
}
#endif

#endif /* RNIC_TSAN_H */
