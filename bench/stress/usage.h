/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What a process has of the kernel. No state; any thread.
 */
#ifndef BENCH_STRESS_USAGE_H
#define BENCH_STRESS_USAGE_H

#include <stdbool.h>
#include <stddef.h>

/** What is counted. */
struct stress_usage {
	long locked_kib;  /* of mappings that are locked */
	char locked[136]; /* the first of them, or "" */
	long fds;	  /* open descriptors */
	long maps;	  /* mappings */
};

/* Looks at this process. Cannot fail; what cannot be read is -1. */
void stress_usage_read(struct stress_usage *u);

/*
 * Compares @now with @start; threads and libraries may leave some mappings
 * and descriptors behind, sanitizers (@slow) many. Returns NULL if that is all,
 * else @text (of @room bytes), which says what is left.
 */
const char *stress_usage_left(const struct stress_usage *start,
			      const struct stress_usage *now, bool slow,
			      char *text, size_t room);

#endif
