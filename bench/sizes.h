/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A list of message sizes as users write it: "8,4K,2M". No state.
 */
#ifndef BENCH_SIZES_H
#define BENCH_SIZES_H

#include <stddef.h>

enum {
	BENCH_SIZES_MAX = 64,	    /* entries of a list */
	BENCH_SIZE_LIMIT = 1 << 30, /* largest message, bytes */
};

/** Message sizes in the order in which they are measured. */
struct bench_sizes {
	size_t n;		      /* entries used */
	size_t byte[BENCH_SIZES_MAX]; /* message sizes, bytes */
};

/**
 * bench_sizes_parse() - read a comma separated list; K, M, G: powers of two.
 * @sizes: filled in on success only.
 * @text: what the user wrote, for example "0,8,4K,2M".
 *
 * Any thread. Returns 0, or -EINVAL for an empty entry, an unknown suffix, a
 * size above BENCH_SIZE_LIMIT or more than BENCH_SIZES_MAX entries.
 */
int bench_sizes_parse(struct bench_sizes *sizes, const char *text);

/**
 * bench_sizes_largest() - the largest size of a list, 0 of an empty one.
 * @sizes: the list.
 *
 * Any thread; cannot fail.
 */
size_t bench_sizes_largest(const struct bench_sizes *sizes);

#endif
