/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What one batch measures.
 */
#include "bench/order.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/sizes.h"

enum {
	WINDOW_BYTES = 8 << 20, /* a window is no larger than this */
	WINDOW_LEAST = 4,	/* unless it would have fewer messages */
	MS_MAX = 60000,
};

static const struct {
	const char *name; /* as users and drivers write it */
	const char *unit; /* of the figure reported */
} kinds[BENCH_KINDS] = {
	[BENCH_LAT] = { "lat", "us" },	  [BENCH_BW] = { "bw", "MB/s" },
	[BENCH_RATE] = { "rate", "M/s" }, [BENCH_INJECT] = { "inject", "us" },
	[BENCH_SEND] = { "send", "us" },
};

const char *bench_kind_name(enum bench_kind kind)
{
	return kinds[kind].name;
}

const char *bench_kind_unit(enum bench_kind kind)
{
	return kinds[kind].unit;
}

int bench_kind_find(enum bench_kind *kind, const char *name, size_t len)
{
	unsigned int i;

	for (i = 0; i < BENCH_KINDS; i++) {
		if (strlen(kinds[i].name) != len ||
		    memcmp(kinds[i].name, name, len))
			continue;
		*kind = i;
		return 0;
	}
	return -EINVAL;
}

unsigned int bench_order_window(const struct bench_order *order)
{
	size_t fit;

	if (order->kind != BENCH_BW && order->kind != BENCH_RATE)
		return 1;
	if (!order->size)
		return BENCH_WINDOW;
	fit = WINDOW_BYTES / order->size;
	if (fit > BENCH_WINDOW)
		return BENCH_WINDOW;
	return fit < WINDOW_LEAST ? WINDOW_LEAST : (unsigned int)fit;
}

double bench_order_value(const struct bench_order *order, double round_ns)
{
	double window = bench_order_window(order);

	switch (order->kind) {
	case BENCH_BW:
		return window * (double)order->size * 1e3 / round_ns;
	case BENCH_RATE:
		return window * 1e3 / round_ns;
	default:
		return round_ns / 2 / 1e3;
	}
}

int bench_order_parse(struct bench_order *order, const char *text)
{
	struct bench_sizes sizes;
	struct bench_order out;
	char kind[16];
	char size[32];
	char rest;

	if (sscanf(text, "%15s %31s %u %c", kind, size, &out.ms, &rest) != 3)
		return -EINVAL;
	if (bench_kind_find(&out.kind, kind, strlen(kind)) ||
	    bench_sizes_parse(&sizes, size) || sizes.n != 1)
		return -EINVAL;
	if (!out.ms || out.ms > MS_MAX)
		return -EINVAL;
	out.size = sizes.byte[0];
	*order = out;
	return 0;
}
