/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Random numbers of tests, the same in each run.
 */
#ifndef RNIC_RNG_KIT_H
#define RNIC_RNG_KIT_H

#include <stdint.h>

/* The next number of @state, which is not 0 (xorshift64). */
static inline uint64_t rng_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Less than @below, of the file's own sequence; for one thread. */
static inline uint32_t rng(uint32_t below)
{
	static uint64_t state = 88172645463325252u;

	return (uint32_t)((rng_next(&state) >> 32) * below >> 32);
}

#endif /* RNIC_RNG_KIT_H */
