/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A run of batches and its report.
 */
#include "bench/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "bench/control.h"
#include "bench/stats.h"

#ifdef __OPTIMIZE__
#define BUILD_KIND "optimised"
#else
#define BUILD_KIND "not optimised"
#endif

/* Does one order; *batch is filled in at the leader only. */
static int order_do(const struct bench_session *session,
		    const struct bench_order *order, struct bench_batch *batch)
{
	struct bench_side side;
	int rc;

	rc = session->begin(session->ctx, order, &side);
	if (rc)
		return rc;
	if (session->side)
		return bench_batch_follow(&side);
	return bench_batch_lead(batch, &side, order->ms);
}

static int orders_obey(const struct bench_session *session,
		       struct bench_control *control)
{
	struct bench_batch batch;
	struct bench_order order;
	int rc;

	if (!session->side)
		bench_control_ready(control);
	while ((rc = bench_control_next(control, &order)) > 0) {
		rc = order_do(session, &order, &batch);
		if (rc && rc != -ENOTSUP)
			break;
		if (!session->side && rc)
			bench_control_error(control, "not supported");
		else if (!session->side)
			bench_control_result(control, &order, &batch);
	}
	if (rc < 0 && !session->side)
		bench_control_error(control, "the order failed");
	return rc;
}

static int driven_run(const struct bench_session *session)
{
	struct bench_control control;
	int rc;

	rc = bench_control_open(&control, session->options->control,
				session->side);
	if (rc)
		return rc;
	rc = orders_obey(session, &control);
	bench_control_close(&control);
	return rc;
}

static void head_print(const struct bench_session *session)
{
	const struct bench_options *options = session->options;

	if (options->json)
		return;
	printf("%s: %s, compiler %s; cores %d and %d; %u batches of "
	       "%u ms%s\n",
	       session->title, BUILD_KIND, __VERSION__, options->pin.cpu[0],
	       options->pin.cpu[1], options->batches, options->ms,
	       options->rewrite ? "" : "; data not rewritten");
	printf("%-7s %9s %5s %10s %10s %10s  %s\n", "kind", "bytes", "n", "min",
	       "median", "p99", "unit");
}

static void batch_print(const struct bench_order *order,
			const struct bench_batch *batch)
{
	printf("{\"type\": \"batch\", \"kind\": \"%s\", \"size\": %zu, "
	       "\"value\": %.5g, \"unit\": \"%s\", \"clean\": %zu, "
	       "\"parts\": %zu, "
	       "\"begin_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64 "}\n",
	       bench_kind_name(order->kind), order->size,
	       bench_order_value(order, batch->median_ns),
	       bench_kind_unit(order->kind), batch->clean, batch->parts,
	       batch->begin_ns, batch->end_ns);
}

static void row_print(const struct bench_session *session,
		      const struct bench_order *order,
		      struct bench_stats *stats)
{
	const char *kind = bench_kind_name(order->kind);
	const char *unit = bench_kind_unit(order->kind);
	double min = bench_stats_quantile(stats, 0);
	double median = bench_stats_quantile(stats, 0.5);
	double p99 = bench_stats_quantile(stats, 0.99);

	if (session->options->json)
		printf("{\"type\": \"row\", \"kind\": \"%s\", \"size\": %zu, "
		       "\"n\": %zu, \"min\": %.5g, \"median\": %.5g, "
		       "\"p99\": %.5g, \"unit\": \"%s\"}\n",
		       kind, order->size, stats->n, min, median, p99, unit);
	else
		printf("%-7s %9zu %5zu %10.5g %10.5g %10.5g  %s\n", kind,
		       order->size, stats->n, min, median, p99, unit);
	fflush(stdout);
}

static int row_run(const struct bench_session *session,
		   const struct bench_order *order)
{
	struct bench_stats stats = { .n = 0 };
	struct bench_batch batch;
	unsigned int i;
	int rc;

	for (i = 0; i < session->options->batches; i++) {
		rc = order_do(session, order, &batch);
		if (rc)
			return rc;
		if (session->side)
			continue;
		if (session->options->json)
			batch_print(order, &batch);
		bench_stats_add(&stats,
				bench_order_value(order, batch.median_ns));
	}
	if (!session->side)
		row_print(session, order, &stats);
	return 0;
}

static int own_run(const struct bench_session *session)
{
	const struct bench_options *options = session->options;
	struct bench_order order = { .ms = options->ms };
	unsigned int k;
	size_t s;
	int rc;

	if (!session->side)
		head_print(session);
	for (k = 0; k < options->kinds; k++) {
		for (s = 0; s < options->sizes.n; s++) {
			order.kind = options->kind[k];
			order.size = options->sizes.byte[s];
			rc = row_run(session, &order);
			if (rc && rc != -ENOTSUP)
				return rc;
		}
	}
	return 0;
}

int bench_session_run(const struct bench_session *session)
{
	return session->options->control ? driven_run(session)
					 : own_run(session);
}
