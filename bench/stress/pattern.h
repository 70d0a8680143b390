/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Streams of bytes of which each word tells where it belongs, and what is
 * said of words that are elsewhere. No state; any thread, any process.
 */
#ifndef BENCH_STRESS_PATTERN_H
#define BENCH_STRESS_PATTERN_H

#include "bench/stress/stress.h"

enum {
	STRESS_TAG_STEPS = 1 << 24,  /* number of a step in a tag is below */
	STRESS_TAG_COUNTS = 1 << 12, /* and that of a stream in it */
	STRESS_TEXT = 400,	     /* bytes of an explanation, with its end */
};

/** What differs. */
struct stress_diff {
	size_t at;     /* offset of the first wrong byte */
	size_t wrong;  /* bytes that are wrong in all */
	uint64_t want; /* the word there, as it should be */
	uint64_t got;  /* and as it is */
	uint64_t tag;  /* stream that it belongs to; 0: unknown */
	uint64_t off;  /* its place there, in bytes, of what is at @at */
	bool zero;     /* it is zero */
};

/* The tag of stream @count of step @step (not 0), both modulo their limits. */
uint64_t stress_tag(uint64_t step, uint64_t count);

/* The step of a tag. */
uint64_t stress_tag_step(uint64_t tag);

/* The number of its stream. */
uint64_t stress_tag_count(uint64_t tag);

/*
 * Compares @len bytes at @p with @pat. Returns false if they are the same,
 * else true with *@d.
 */
bool stress_diff(const void *p, size_t len, struct stress_pat pat,
		 struct stress_diff *d);

/*
 * Says in words what differs, where @len bytes at @p, called @what, were
 * expected to be @pat. Returns @text.
 */
const char *stress_explain(char text[STRESS_TEXT], const char *what,
			   const void *p, size_t len, struct stress_pat pat,
			   const struct stress_diff *d);

/* Invertible mixing of 64 bits, and its inverse. */
uint64_t stress_mix(uint64_t x);
uint64_t stress_unmix(uint64_t x);

/* The next number of the sequence *@state. */
uint64_t stress_draw(uint64_t *state);

#endif
