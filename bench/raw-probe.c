/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * raw-probe: prints what one cache line costs between the two cores now.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/pin.h"
#include "bench/probe.h"

/* What the command line asked for. */
struct options {
	struct bench_pin pin;	  /* the two cores */
	unsigned int duration_ms; /* how long to measure */
	bool json;		  /* one JSON object instead of text */
};

static const char usage_text[] =
	"usage: raw-probe [--ms N] [--cpus A,B] [--json]\n"
	"One cache line, back and forth between two processes on two cores.\n"
	"Prints half a round trip in ns and its class: near (at most 75 ns) or\n"
	"far.\n"
	"  --ms N      measure for N milliseconds, 1 to 60000 (50)\n"
	"  --cpus A,B  the two cores (the first two this process may use)\n"
	"  --json      print one JSON object\n";

static int option_apply(struct options *options, int letter)
{
	char *end;
	long ms;

	switch (letter) {
	case 'm':
		ms = strtol(optarg, &end, 10);
		if (*end || ms < 1 || ms > 60000)
			return -EINVAL;
		options->duration_ms = (unsigned int)ms;
		return 0;
	case 'c':
		return bench_pin_parse(&options->pin, optarg);
	case 'j':
		options->json = true;
		return 0;
	case 'h':
		fputs(usage_text, stdout);
		exit(0);
	default:
		return -EINVAL;
	}
}

static int options_parse(struct options *options, int argc, char **argv)
{
	static const struct option table[] = {
		{ "ms", required_argument, NULL, 'm' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int letter;

	while ((letter = getopt_long(argc, argv, "h", table, NULL)) != -1)
		if (option_apply(options, letter))
			return -EINVAL;
	return optind == argc ? 0 : -EINVAL;
}

static void result_print(const struct bench_probe *probe,
			 const struct options *options)
{
	const char *class = bench_probe_class(probe->median_ns);

	if (options->json)
		printf("{\"half_rtt_ns\": %.1f, \"min_ns\": %.1f, "
		       "\"class\": \"%s\", \"n\": %zu, \"cpus\": [%d, %d]}\n",
		       probe->median_ns, probe->min_ns, class, probe->n,
		       options->pin.cpu[0], options->pin.cpu[1]);
	else
		printf("%.1f ns %s\n", probe->median_ns, class);
}

int main(int argc, char **argv)
{
	struct options options = { .duration_ms = 50 };
	struct bench_probe probe;
	int rc;

	rc = bench_pin_default(&options.pin);
	if (!rc && options_parse(&options, argc, argv)) {
		fputs(usage_text, stderr);
		return 2;
	}
	if (!rc)
		rc = bench_probe_run(&probe, &options.pin, options.duration_ms);
	if (rc == -EINVAL)
		fprintf(stderr, "raw-probe: needs two different cores\n");
	else if (rc)
		fprintf(stderr, "raw-probe: %s\n", strerror(-rc));
	if (rc)
		return 1;
	result_print(&probe, &options);
	return 0;
}
