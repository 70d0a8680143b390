/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A bounded set of samples and its order statistics. Memory is the caller's;
 * one thread at a time.
 */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stddef.h>

enum {
	BENCH_STATS_MAX = 1024, /* samples kept; later ones are not counted */
};

/** Samples of one measured thing; zeroed memory is an empty set. */
struct bench_stats {
	size_t n;		       /* samples in value[] */
	double value[BENCH_STATS_MAX]; /* unordered until a quantile is read */
};

/**
 * bench_stats_add() - keep one sample; ignored when the set is full.
 * @stats: the set, owned by the caller.
 * @value: the sample.
 *
 * One thread at a time; cannot fail.
 */
void bench_stats_add(struct bench_stats *stats, double value);

/**
 * bench_stats_quantile() - the sample below which a share @q of all lie.
 * @stats: the set; its samples are put into ascending order.
 * @q: 0 (smallest) to 1 (largest); 0.5 is the median, of an even number of
 *     samples the mean of the two in the middle.
 *
 * One thread at a time. Returns the value, linear between samples, or NaN of
 * an empty set.
 */
double bench_stats_quantile(struct bench_stats *stats, double q);

#endif
