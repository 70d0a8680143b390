/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench: what registration, lookup, key cache, fence, windows, paging,
 * registration cache, RMA, atomics and messages cost, each beside what it
 * cannot beat, measured in turns with it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/probe.h"
#include "bench/sb_options.h"
#include "bench/sb_proc.h"
#include "bench/sb_subs.h"

#ifdef __OPTIMIZE__
#define BUILD_KIND "optimised"
#else
#define BUILD_KIND "not optimised"
#endif

enum { LINE = 256, PROBE_MS = 5 };

static const struct sb_bench *const benches[] = {
	&sb_bench_reg,	  &sb_bench_lookup, &sb_bench_keycache, &sb_bench_fence,
	&sb_bench_window, &sb_bench_odp,    &sb_bench_cache,	&sb_bench_rma,
	&sb_bench_atomic, &sb_bench_msg,
};

enum { BENCHES = sizeof(benches) / sizeof(*benches) };

/* Whether all that was printed is where it belongs; says so if not. */
static bool is_written(void)
{
	/* an error at an earlier row counts, too */
	if (!fflush(stdout) && !ferror(stdout))
		return true;
	fprintf(stderr, "shrimp-bench: cannot write to standard output: %s\n",
		strerror(errno));
	return false;
}

static int usage(FILE *to, int ret)
{
	fprintf(to,
		"usage: shrimp-bench SUBCOMMAND [options]\n"
		"What the shrimp device costs, beside what it cannot beat.\n");
	for (int i = 0; i < BENCHES; i++)
		fprintf(to, "  %-9s %s\n", benches[i]->name, benches[i]->about);
	fprintf(to, "shrimp-bench SUBCOMMAND --help tells its cases and "
		    "options.\nFI_PROVIDER_PATH names the folder of the "
		    "provider, if it is not installed.\n"
		    "Exit 0: done, 1: a limit was exceeded (--check), 2: it "
		    "could not be done.\n");
	return ret;
}

static const struct sb_bench *bench_find(const char *name)
{
	for (int i = 0; i < BENCHES; i++)
		if (!strcmp(benches[i]->name, name))
			return benches[i];
	return NULL;
}

/* What a reader must know about the machine. Before any call of libfabric. */
static void conditions_write(char *line, const struct sb_options *o)
{
	struct bench_probe probe;
	double load = 0;
	int n = snprintf(line, LINE, "%s, %s; cores %d and %d", BUILD_KIND,
			 __VERSION__, o->pin.cpu[0], o->pin.cpu[1]);

	if (!bench_probe_run(&probe, &o->pin, PROBE_MS) && n < LINE)
		n += snprintf(line + n, (size_t)(LINE - n),
			      ", one cache line %.0f ns (%s)", probe.median_ns,
			      bench_probe_class(probe.median_ns));
	if (getloadavg(&load, 1) == 1 && n < LINE)
		snprintf(line + n, (size_t)(LINE - n), "; load %.1f", load);
}

static int bench_run(const struct sb_bench *b, const struct sb_options *o)
{
	struct sb_out out = {
		.to = stdout,
		.format = o->format,
		.bench = b->name,
		.plot = o->plot,
		.axes = b->axes,
	};
	char line[LINE];
	int ret, plotted;

	sb_cpus_save();
	conditions_write(line, o);
	/* the probe has bound this thread */
	sb_cpus_all();
	sb_out_begin(&out, line);
	ret = b->run(o, &out);
	if (ret)
		out.plot = NULL;
	plotted = sb_out_end(&out);
	if (ret || plotted || !is_written())
		return 2;
	return o->check && out.missed;
}

int main(int argc, char **argv)
{
	const struct sb_bench *b;
	struct sb_options o;
	int ret;

	/* gnuplot, or a child that died, is told of by the call that fails */
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2)
		return usage(stderr, 2);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return usage(stdout, 0) || !is_written() ? 2 : 0;
	b = bench_find(argv[1]);
	if (!b) {
		fprintf(stderr,
			"shrimp-bench: no subcommand \"%s\"; "
			"--help lists them\n",
			argv[1]);
		return 2;
	}
	ret = sb_options_parse(&o, b, argc - 1, argv + 1);
	if (ret)
		return ret > 0 && is_written() ? 0 : 2;
	if (o.plot && sb_plot_check(o.plot, &b->axes))
		return 2;
	return bench_run(b, &o);
}
