/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Streams of key numbers.
 */
#include "bench/sb_pattern.h"

#include <math.h>

const char *sb_pattern_name(enum sb_pattern p)
{
	static const char *const name[SB_PATTERNS] = {
		[SB_PATTERN_UNIFORM] = "uniform",
		[SB_PATTERN_ZIPF] = "zipf",
		[SB_PATTERN_SCAN] = "scan",
		[SB_PATTERN_LOOP] = "loop",
	};

	return name[p];
}

uint64_t sb_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

/*
 * The number of which there are 1 / (i + 1) as many as of number 0. The
 * density 1 / x between 1 and the number of keys has a logarithm for its
 * integral; so the inverse of the distribution is a power.
 */
static uint32_t zipf(uint64_t *state)
{
	double u = (double)(sb_random(state) >> 11) / 9007199254740992.0;
	uint32_t i = (uint32_t)(pow(SB_PATTERN_KEYS, u) - 1);

	return i < SB_PATTERN_KEYS ? i : SB_PATTERN_KEYS - 1;
}

static uint32_t loop_length(uint32_t capacity)
{
	uint32_t n = capacity + capacity / 8 + 1;

	return n < SB_PATTERN_KEYS ? n : SB_PATTERN_KEYS;
}

void sb_pattern_fill(enum sb_pattern p, uint32_t capacity, uint32_t *pick,
		     size_t n)
{
	uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
	uint32_t loop = loop_length(capacity);

	for (size_t i = 0; i < n; i++) {
		if (p == SB_PATTERN_UNIFORM)
			pick[i] =
				(uint32_t)(sb_random(&state) % SB_PATTERN_SET);
		else if (p == SB_PATTERN_LOOP)
			pick[i] = (uint32_t)(i % loop);
		else if (p == SB_PATTERN_SCAN && i & 1)
			pick[i] = (uint32_t)(i / 2 % SB_PATTERN_KEYS);
		else
			pick[i] = zipf(&state);
	}
}
