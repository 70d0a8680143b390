/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What one batch measures: kind, size, time. No state.
 */
#ifndef BENCH_ORDER_H
#define BENCH_ORDER_H

#include <stddef.h>

/** The kinds of batches. */
enum bench_kind {
	BENCH_LAT,    /* one way time of an MPI message, us */
	BENCH_BW,     /* a window of large messages, MB/s (10^6 bytes) */
	BENCH_RATE,   /* a window of 64 messages, millions a second */
	BENCH_INJECT, /* one way time, fi_tinject, us */
	BENCH_SEND,   /* one way time, fi_tsend with completion, us */
	BENCH_KINDS,
};

enum {
	BENCH_WINDOW = 64, /* messages on their way at once, at most */
};

/** One batch to do. */
struct bench_order {
	enum bench_kind kind; /* what */
	size_t size;	      /* bytes of a message */
	unsigned int ms;      /* how long, milliseconds */
};

/**
 * bench_kind_name() - the word for a kind: lat, bw, rate, inject, send.
 * @kind: below BENCH_KINDS.
 *
 * Any thread; returns a constant string.
 */
const char *bench_kind_name(enum bench_kind kind);

/**
 * bench_kind_unit() - the unit in which a kind is reported: us, MB/s, M/s.
 * @kind: below BENCH_KINDS.
 *
 * Any thread; returns a constant string.
 */
const char *bench_kind_unit(enum bench_kind kind);

/**
 * bench_kind_find() - the kind with this name.
 * @kind: filled in on success only.
 * @name: the word.
 * @len: its length.
 *
 * Any thread. Returns 0, or -EINVAL if there is no such kind.
 */
int bench_kind_find(enum bench_kind *kind, const char *name, size_t len);

/**
 * bench_order_window() - how many messages one round of an order moves at once.
 * @order: the order.
 *
 * 1 for the latency kinds; else up to BENCH_WINDOW, and no more than make
 * 8 MiB, but at least 4. Any thread; cannot fail.
 */
unsigned int bench_order_window(const struct bench_order *order);

/**
 * bench_order_value() - the figure to report.
 * @order: what was measured.
 * @round_ns: the time of one round: there and back for the latency kinds, a
 *            window and its answer for the others.
 *
 * Any thread. Returns the figure in bench_kind_unit().
 */
double bench_order_value(const struct bench_order *order, double round_ns);

/**
 * bench_order_parse() - read "KIND SIZE MS".
 * @order: filled in on success only.
 * @text: one line, ended by NUL, without newline.
 *
 * Any thread. Returns 0, or -EINVAL if @text is anything else.
 */
int bench_order_parse(struct bench_order *order, const char *text);

#endif
