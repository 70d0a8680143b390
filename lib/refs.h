/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Counts of live children: an object with children is not closed
 * (-FI_EBUSY). Not a way to share ownership: who closes an object owns it.
 */
#ifndef SHRIMP_REFS_H
#define SHRIMP_REFS_H

#include "shm/atomic.h"

/* A child was opened. Any thread. */
static inline void shrimp_ref_get(rnic_a32 *refs)
{
	/* acquire and release: the child's use of the parent stays between
	 * its get and its put, as the closer's count sees them */
	rnic_add32_acqrel(refs, 1);
}

/* A child is closed: it does not touch the parent any more. Any thread. */
static inline void shrimp_ref_put(rnic_a32 *refs)
{
	/* release: pairs with the acquire in shrimp_ref_count() */
	rnic_sub32_acqrel(refs, 1);
}

/* Live children; after 0 whatever they did to the parent is visible. */
static inline uint32_t shrimp_ref_count(const rnic_a32 *refs)
{
	/* acquire: pairs with shrimp_ref_put() */
	return rnic_load32_acquire(refs);
}

#endif /* SHRIMP_REFS_H */
