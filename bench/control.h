/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Orders from a driver. Two processes sleep in a read, each at its own FIFO,
 * until the driver writes the same order to both; the leader writes one line of
 * result to a third FIFO. So several transports can be up at the same time and
 * take turns of a few milliseconds, while those that wait cost nothing.
 *
 * FIFOs in the control folder: order.0 (leader), order.1 (follower), result.
 * A line of order is "KIND SIZE MS" or "quit"; end of file means quit.
 * A line of result is "ready", or
 * "KIND SIZE VALUE BEST CLEAN PARTS BEGIN_NS END_NS", or "error TEXT".
 *
 * One thread at a time.
 */
#ifndef BENCH_CONTROL_H
#define BENCH_CONTROL_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/batch.h"
#include "bench/order.h"

/** The FIFOs of one side; zeroed memory is closed. */
struct bench_control {
	FILE *orders;  /* read by this side */
	FILE *results; /* written by the leader, NULL at the follower */
};

/**
 * bench_control_open() - open this side's FIFOs.
 * @control: filled in on success only; to be closed.
 * @dir: the control folder.
 * @side: 0 leader, 1 follower.
 *
 * Blocks until the driver has opened the other ends. Returns 0, or a negative
 * errno value after a message on stderr.
 */
int bench_control_open(struct bench_control *control, const char *dir,
		       int side);

/**
 * bench_control_close() - undo bench_control_open().
 * @control: zeroed memory is accepted.
 */
void bench_control_close(struct bench_control *control);

/**
 * bench_control_next() - sleep until the next order.
 * @control: open.
 * @order: filled in when 1 is returned.
 *
 * Blocks. Returns 1 for an order, 0 to end, -EINVAL for a line that is no
 * order.
 */
int bench_control_next(struct bench_control *control,
		       struct bench_order *order);

/**
 * bench_control_ready() - tell the driver that orders can come; leader only.
 * @control: open.
 */
void bench_control_ready(struct bench_control *control);

/**
 * bench_control_result() - tell what a batch measured; leader only.
 * @control: open.
 * @order: what was asked.
 * @batch: what came out.
 */
void bench_control_result(struct bench_control *control,
			  const struct bench_order *order,
			  const struct bench_batch *batch);

/**
 * bench_control_error() - tell that an order could not be done; leader only.
 * @control: open.
 * @text: why, one line.
 */
void bench_control_error(struct bench_control *control, const char *text);

#endif
