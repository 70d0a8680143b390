/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The raw probe: what one cache line costs from one core to the other, with
 * nothing in between. A figure taken beside every batch tells whether the two
 * cores were near or far while it ran, and whether that changed.
 */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include <stddef.h>

#include "bench/pin.h"

enum {
	BENCH_PROBE_NEAR_NS = 75, /* at most this is "near" */
};

/** What one probe saw; half round trips. */
struct bench_probe {
	double median_ns; /* median over parts of 500 round trips */
	double min_ns;	  /* fastest part */
	size_t n;	  /* parts measured */
};

/**
 * bench_probe_run() - two processes send one line back and forth.
 * @probe: filled in on success only.
 * @pin: two different cores.
 * @duration_ms: how long to measure, from 1.
 *
 * Forks one child, is the other side itself and waits for the child: the
 * calling thread stays bound to pin->cpu[0]. Call it from a process with one
 * thread. Blocks for @duration_ms, both cores busy. Returns 0, -EINVAL for
 * equal or unset cores, -ETIMEDOUT if the child made no step for 30 seconds,
 * or the negative errno value of a failed call. No child is left behind.
 */
int bench_probe_run(struct bench_probe *probe, const struct bench_pin *pin,
		    unsigned int duration_ms);

/**
 * bench_probe_class() - the name of the distance: "near" or "far".
 * @half_ns: half a round trip.
 *
 * Any thread; returns a constant string.
 */
const char *bench_probe_class(double half_ns);

#endif
