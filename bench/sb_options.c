/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The command line of shrimp-bench.
 */
#include "bench/sb_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	THREADS_MOST = 64,
	PROCESSES_MOST = 64,
	REPEATS_MOST = 1000,
	SECONDS_MOST = 3600,
};

static const struct option table[] = {
	{ "sizes", required_argument, NULL, 's' },
	{ "threads", required_argument, NULL, 't' },
	{ "processes", required_argument, NULL, 'p' },
	{ "seconds", required_argument, NULL, 'S' },
	{ "warm-up", required_argument, NULL, 'w' },
	{ "repeats", required_argument, NULL, 'r' },
	{ "pin", required_argument, NULL, 'P' },
	{ "quick", no_argument, NULL, 'q' },
	{ "check", no_argument, NULL, 'k' },
	{ "json", no_argument, NULL, 'j' },
	{ "csv", no_argument, NULL, 'c' },
	{ "plot", required_argument, NULL, 'o' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void usage_print(FILE *to, const struct sb_bench *b)
{
	fprintf(to, "usage: shrimp-bench %s [options]\n%s\n\n%s\nOptions:\n",
		b->name, b->about, b->help);
	if (b->sizes)
		fprintf(to,
			"  --sizes LIST     bytes; K, M and G allowed (%s)\n",
			b->sizes);
	if (b->threads)
		fprintf(to, "  --threads N      at most, 1 to %d (%u)\n",
			THREADS_MOST, b->threads);
	if (b->processes)
		fprintf(to, "  --processes N    at most, 1 to %d (%u)\n",
			PROCESSES_MOST, b->processes);
	fputs("  --seconds S      for each row, up to 3600 (0.5; quick: 0.05)\n"
	      "  --warm-up S      before that, likewise (a tenth of it)\n"
	      "  --repeats N      turns of rows and floors, 1 to 1000 (10)\n"
	      "  --pin A,B|none   cores of the two sides (the first two)\n"
	      "  --quick          fewer cases, below 20 seconds\n"
	      "  --json, --csv    instead of the table\n"
	      "  --plot FILE.svg  draw curves, by gnuplot\n"
	      "  --check          end with 1 if a limit was exceeded\n",
	      to);
}

static int count_parse(unsigned int *count, const char *text, unsigned int most)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || !value ||
	    value > most)
		return -EINVAL;
	*count = (unsigned int)value;
	return 0;
}

static int seconds_parse(double *seconds, const char *text)
{
	double value;
	char *end;

	value = strtod(text, &end);
	if (end == text || *end || !(value >= 0) || value > SECONDS_MOST)
		return -EINVAL;
	*seconds = value;
	return 0;
}

/* Those that not every subcommand has. */
static int special_apply(struct sb_options *o, const struct sb_bench *b,
			 int letter)
{
	if (letter == 's' && b->sizes)
		return bench_sizes_parse(&o->sizes, optarg);
	if (letter == 't' && b->threads)
		return count_parse(&o->threads, optarg, THREADS_MOST);
	if (letter == 'p' && b->processes)
		return count_parse(&o->processes, optarg, PROCESSES_MOST);
	return -EINVAL;
}

static int option_apply(struct sb_options *o, const struct sb_bench *b,
			int letter)
{
	switch (letter) {
	case 'S':
		return seconds_parse(&o->plan.seconds, optarg);
	case 'w':
		return seconds_parse(&o->plan.warm_up, optarg);
	case 'r':
		return count_parse(&o->plan.repeats, optarg, REPEATS_MOST);
	case 'P':
		return bench_pin_parse(&o->pin, optarg);
	case 'q':
		o->quick = true;
		return 0;
	case 'k':
		o->check = true;
		return 0;
	case 'j':
		o->format = SB_JSON;
		return 0;
	case 'c':
		o->format = SB_CSV;
		return 0;
	case 'o':
		o->plot = optarg;
		return 0;
	default:
		return special_apply(o, b, letter);
	}
}

/* What was not said, and depends on --quick. */
static int defaults_set(struct sb_options *o, const struct sb_bench *b)
{
	struct bench_sizes all, quick;

	if (o->plan.seconds < 0)
		o->plan.seconds = o->quick ? 0.05 : 0.5;
	if (o->plan.warm_up < 0)
		o->plan.warm_up = o->plan.seconds / 10;
	if (!b->sizes)
		return 0;
	/* both, so that each run finds a fault of theirs */
	if (bench_sizes_parse(&all, b->sizes) ||
	    bench_sizes_parse(&quick, b->quick)) {
		fprintf(stderr, "shrimp-bench %s: \"%s\", \"%s\"?\n", b->name,
			b->sizes, b->quick);
		return -EINVAL;
	}
	if (!o->sizes.n)
		o->sizes = o->quick ? quick : all;
	return 0;
}

/* Whether @b knows what goes by @letter. */
static bool is_known(const struct sb_bench *b, int letter)
{
	return (letter != 's' || b->sizes) && (letter != 't' || b->threads) &&
	       (letter != 'p' || b->processes);
}

/* Says what is wrong with an option, or (@name NULL) with @value alone. */
static int complain(const struct sb_bench *b, const char *what,
		    const char *name, const char *value)
{
	fprintf(stderr, "shrimp-bench %s: %s: %s%s%s%s\n", b->name, what,
		name ? "--" : "", name ? name : "", name && value ? " " : "",
		value ? value : "");
	return -EINVAL;
}

/* Each option in turn; 0, 1 for --help, or -EINVAL. */
static int options_walk(struct sb_options *o, const struct sb_bench *b,
			int argc, char **argv)
{
	int letter, index = 0;

	while ((letter = getopt_long(argc, argv, "h", table, &index)) != -1) {
		if (letter == 'h')
			return 1;
		if (letter == '?')
			/* getopt has said it */
			return -EINVAL;
		if (!is_known(b, letter))
			return complain(b, "has no such option",
					table[index].name, NULL);
		if (option_apply(o, b, letter))
			return complain(b, "not a value that it takes",
					table[index].name, optarg);
	}
	return optind == argc ? 0
			      : complain(b, "one too many", NULL, argv[optind]);
}

int sb_options_parse(struct sb_options *o, const struct sb_bench *b, int argc,
		     char **argv)
{
	int ret;

	*o = (struct sb_options){
		.threads = b->threads,
		.processes = b->processes,
		.plan = { .seconds = -1, .warm_up = -1, .repeats = 10 },
	};
	if (bench_pin_default(&o->pin))
		o->pin.cpu[0] = o->pin.cpu[1] = -1;
	ret = options_walk(o, b, argc, argv);
	if (ret > 0)
		usage_print(stdout, b);
	else if (ret)
		fprintf(stderr, "shrimp-bench %s --help tells more\n", b->name);
	return ret ? ret : defaults_set(o, b);
}
