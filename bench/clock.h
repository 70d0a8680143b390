/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The clock of all benchmarks: CLOCK_MONOTONIC, which all processes of the
 * node share. No state; any thread may call it.
 */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

/**
 * bench_clock_ns() - the time since boot, in nanoseconds.
 *
 * Any thread; does not block, cannot fail on Linux.
 */
static inline uint64_t bench_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
