/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A bounded set of samples and its order statistics.
 */
#include "bench/stats.h"

#include <math.h>
#include <stdlib.h>

void bench_stats_add(struct bench_stats *stats, double value)
{
	if (stats->n < BENCH_STATS_MAX)
		stats->value[stats->n++] = value;
}

static int value_compare(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;

	return (a > b) - (a < b);
}

double bench_stats_quantile(struct bench_stats *stats, double q)
{
	double at;
	size_t low;

	if (!stats->n)
		return NAN;
	qsort(stats->value, stats->n, sizeof(stats->value[0]), value_compare);
	at = q * (double)(stats->n - 1);
	low = (size_t)at;
	if (low + 1 >= stats->n)
		return stats->value[stats->n - 1];
	return stats->value[low] +
	       (at - (double)low) * (stats->value[low + 1] - stats->value[low]);
}
