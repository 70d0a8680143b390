/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Streams of key numbers, as applications may look them up. The same call
 * gives the same stream. No state; any thread.
 */
#ifndef BENCH_SB_PATTERN_H
#define BENCH_SB_PATTERN_H

#include <stddef.h>
#include <stdint.h>

enum {
	SB_PATTERN_KEYS = 1 << 16, /* numbers are below */
	SB_PATTERN_SET = 4096,	   /* of UNIFORM: so many different ones */
};

/** What a stream looks like. */
enum sb_pattern {
	SB_PATTERN_UNIFORM, /* any of SB_PATTERN_SET numbers */
	SB_PATTERN_ZIPF,    /* of SB_PATTERN_KEYS, number i as 1 / (i + 1) */
	SB_PATTERN_SCAN,    /* half of them ZIPF, half each number in turn */
	SB_PATTERN_LOOP,    /* each number below 9/8 of a capacity in turn */
	SB_PATTERNS
};

/* The name of a pattern, constant. */
const char *sb_pattern_name(enum sb_pattern p);

/*
 * Fills @pick with @n numbers; @capacity is that of the cache they are for.
 * Cannot fail.
 */
void sb_pattern_fill(enum sb_pattern p, uint32_t capacity, uint32_t *pick,
		     size_t n);

/* A number that looks random; *@state is any but 0, and changes. */
uint64_t sb_random(uint64_t *state);

#endif
