/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A run of batches, by a driver's orders or by the command line, and its
 * report. Both sides of a pair call it with equal options.
 */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "bench/batch.h"
#include "bench/options.h"

/** One side of a pair that can do batches. */
struct bench_session {
	const struct bench_options *options; /* borrowed */
	const char *title;		     /* program, for the head line */
	int side;			     /* 0 leader, 1 follower */
	/* Prepares for an order; returns 0 and the calls to make, or, on both
	 * sides alike, -ENOTSUP if this kind or size cannot be done. */
	int (*begin)(void *ctx, const struct bench_order *order,
		     struct bench_side *side);
	void *ctx; /* handed to begin() */
};

/**
 * bench_session_run() - do all batches and report them.
 * @session: this side; borrowed.
 *
 * The leader writes the report to stdout, or results to the control FIFO.
 * Blocks. One thread. Returns 0, or the code of the call that failed.
 */
int bench_session_run(const struct bench_session *session);

#endif
