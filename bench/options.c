/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The command line that the ping-pong programs share.
 */
#include "bench/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option table[] = {
	{ "sizes", required_argument, NULL, 's' },
	{ "kinds", required_argument, NULL, 'k' },
	{ "batches", required_argument, NULL, 'b' },
	{ "ms", required_argument, NULL, 'm' },
	{ "cpus", required_argument, NULL, 'c' },
	{ "control", required_argument, NULL, 'C' },
	{ "provider", required_argument, NULL, 'p' },
	{ "json", no_argument, NULL, 'j' },
	{ "no-rewrite", no_argument, NULL, 'n' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void usage_print(FILE *to, const struct bench_program *program)
{
	fprintf(to, "usage: %s%s [options]\n%s", program->name,
		program->provider ? " --provider NAME" : "", program->about);
	fprintf(to, "  --kinds LIST   of %s (all)\n", program->kinds);
	fprintf(to, "  --sizes LIST   bytes, K and M allowed (%s)\n",
		program->sizes);
	fputs("  --batches N    batches of each kind and size (7)\n"
	      "  --ms N         length of a batch in milliseconds (20)\n"
	      "  --cpus A,B     cores of the two processes, or none\n"
	      "                 (the first two that may be used)\n"
	      "  --no-rewrite   send the same bytes again and again\n"
	      "  --json         one JSON object a batch, with time stamps,\n"
	      "                 then one a row\n"
	      "  --control DIR  take orders from the FIFOs in DIR\n",
	      to);
}

static int number_parse(unsigned int *number, const char *text,
			unsigned long most)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || !value || value > most)
		return -EINVAL;
	*number = (unsigned int)value;
	return 0;
}

/* Whether the program knows the kind named by @len bytes of @word. */
static bool kind_known(const struct bench_program *program, const char *word,
		       size_t len)
{
	const char *at = program->kinds;
	size_t n;

	for (; *at; at += n + (at[n] == ',')) {
		n = strcspn(at, ",");
		if (n == len && !memcmp(at, word, n))
			return true;
	}
	return false;
}

static int kinds_parse(struct bench_options *options,
		       const struct bench_program *program, const char *text)
{
	size_t len;

	options->kinds = 0;
	do {
		len = strcspn(text, ",");
		if (options->kinds == BENCH_KINDS ||
		    !kind_known(program, text, len) ||
		    bench_kind_find(&options->kind[options->kinds], text, len))
			return -EINVAL;
		options->kinds++;
		text += len;
	} while (*text++);
	return 0;
}

static int option_apply(struct bench_options *options,
			const struct bench_program *program, int letter)
{
	switch (letter) {
	case 's':
		return bench_sizes_parse(&options->sizes, optarg);
	case 'k':
		return kinds_parse(options, program, optarg);
	case 'b':
		return number_parse(&options->batches, optarg, 1000);
	case 'm':
		return number_parse(&options->ms, optarg, 60000);
	case 'c':
		return bench_pin_parse(&options->pin, optarg);
	case 'C':
		options->control = optarg;
		return 0;
	case 'p':
		options->provider = optarg;
		return program->provider ? 0 : -EINVAL;
	case 'j':
		options->json = true;
		return 0;
	case 'n':
		options->rewrite = false;
		return 0;
	default:
		return -EINVAL;
	}
}

static int defaults_set(struct bench_options *options,
			const struct bench_program *program)
{
	memset(options, 0, sizeof(*options));
	options->batches = 7;
	options->ms = 20;
	options->rewrite = true;
	if (bench_sizes_parse(&options->sizes, program->sizes) ||
	    kinds_parse(options, program, program->kinds))
		return -EINVAL;
	return bench_pin_default(&options->pin);
}

int bench_options_parse(struct bench_options *options,
			const struct bench_program *program, int argc,
			char **argv)
{
	int letter;

	if (defaults_set(options, program))
		return -EINVAL;
	while ((letter = getopt_long(argc, argv, "h", table, NULL)) != -1) {
		if (letter == 'h') {
			usage_print(stdout, program);
			return 1;
		}
		if (option_apply(options, program, letter)) {
			if (letter != '?')
				fprintf(stderr, "%s: bad value \"%s\"\n",
					program->name, optarg ? optarg : "");
			goto err_usage;
		}
	}
	if (optind != argc) {
		fprintf(stderr, "%s: \"%s\"?\n", program->name, argv[optind]);
		goto err_usage;
	}
	if (program->provider && !options->provider) {
		fprintf(stderr, "%s: --provider is needed\n", program->name);
		goto err_usage;
	}
	return 0;

err_usage:
	usage_print(stderr, program);
	return -EINVAL;
}
