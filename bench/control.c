/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Orders from a driver.
 */
#include "bench/control.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int fifo_open(FILE **file, const char *dir, const char *name,
		     const char *mode)
{
	char path[4096];
	int err;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	*file = fopen(path, mode);
	if (*file)
		return 0;
	err = errno;
	fprintf(stderr, "%s: %s\n", path, strerror(err));
	return -err;
}

int bench_control_open(struct bench_control *control, const char *dir, int side)
{
	struct bench_control out = { NULL, NULL };
	int rc;

	rc = fifo_open(&out.orders, dir, side ? "order.1" : "order.0", "r");
	if (!rc && !side)
		rc = fifo_open(&out.results, dir, "result", "w");
	if (rc) {
		bench_control_close(&out);
		return rc;
	}
	*control = out;
	return 0;
}

void bench_control_close(struct bench_control *control)
{
	if (control->orders)
		fclose(control->orders);
	if (control->results)
		fclose(control->results);
	control->orders = NULL;
	control->results = NULL;
}

int bench_control_next(struct bench_control *control, struct bench_order *order)
{
	char line[128];

	if (!fgets(line, sizeof(line), control->orders))
		return 0;
	line[strcspn(line, "\n")] = '\0';
	if (!strcmp(line, "quit"))
		return 0;
	return bench_order_parse(order, line) ? -EINVAL : 1;
}

void bench_control_ready(struct bench_control *control)
{
	fputs("ready\n", control->results);
	fflush(control->results);
}

void bench_control_result(struct bench_control *control,
			  const struct bench_order *order,
			  const struct bench_batch *batch)
{
	fprintf(control->results,
		"%s %zu %.5g %.5g %zu %zu %" PRIu64 " %" PRIu64 "\n",
		bench_kind_name(order->kind), order->size,
		bench_order_value(order, batch->median_ns),
		bench_order_value(order, batch->min_ns), batch->clean,
		batch->parts, batch->begin_ns, batch->end_ns);
	fflush(control->results);
}

void bench_control_error(struct bench_control *control, const char *text)
{
	fprintf(control->results, "error %s\n", text);
	fflush(control->results);
}
