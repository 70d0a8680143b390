/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The command line of shrimp-stress.
 */
#include "bench/stress/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/stress/plan.h"

enum {
	HELPED = 1, /* results of stress_options_read() */
	WRONG = 3,
};

static const char usage[] =
	"usage: shrimp-stress [-p PROVIDER] [options]\n"
	"       shrimp-stress --replay FILE [options]\n"
	"       shrimp-stress --list\n"
	"Changes memory under a provider's registration cache in all ways there\n"
	"are, and verifies each byte that it moves.\n"
	"  -p, --provider NAME   libfabric provider (shrimp)\n"
	"  --list                the scenarios\n"
	"  --scenario LIST       only these; -NAME: all but these\n"
	"  --seconds N           time (10)\n"
	"  --steps N             steps at most\n"
	"  --seed S              of all that is random\n"
	"  --processes N         in a group, 2 to 8 (2)\n"
	"  --threads N           that churn memory in each process, 0 to 16 (1)\n"
	"  --long                more of everything in each step\n"
	"  --shrink N            seconds to cut a fault down (60; 0: do not)\n"
	"  --keep-going          after a fault, with new processes\n"
	"  --output FILE         for the steps of a fault\n"
	"  --replay FILE         do the steps of that file\n"
	"  --trace FILE          write what is done, line by line\n"
	"  --json                report as JSON\n"
	"  --quiet               no line of progress, no report if all is well\n"
	"FI_PROVIDER_PATH names the folder of the provider, if it is not\n"
	"installed. Exit status: 0 nothing wrong, 1 something was, 2 wrong usage,\n"
	"or a file or the report cannot be written, 3 the provider cannot be\n"
	"used.\n";

enum {
	OPT_LIST = 256,
	OPT_SCENARIO,
	OPT_SECONDS,
	OPT_STEPS,
	OPT_SEED,
	OPT_PROCESSES,
	OPT_THREADS,
	OPT_LONG,
	OPT_SHRINK,
	OPT_KEEP_GOING,
	OPT_OUTPUT,
	OPT_REPLAY,
	OPT_TRACE,
	OPT_JSON,
	OPT_QUIET,
	OPT_BREAK,
};

static const struct option options[] = {
	{ "provider", required_argument, NULL, 'p' },
	{ "list", no_argument, NULL, OPT_LIST },
	{ "scenario", required_argument, NULL, OPT_SCENARIO },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "steps", required_argument, NULL, OPT_STEPS },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "processes", required_argument, NULL, OPT_PROCESSES },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "long", no_argument, NULL, OPT_LONG },
	{ "shrink", required_argument, NULL, OPT_SHRINK },
	{ "keep-going", no_argument, NULL, OPT_KEEP_GOING },
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ "replay", required_argument, NULL, OPT_REPLAY },
	{ "trace", required_argument, NULL, OPT_TRACE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	{ "break", required_argument, NULL, OPT_BREAK },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int complain(const char *what, const char *value)
{
	fprintf(stderr,
		"shrimp-stress: %s: %s\nshrimp-stress --help tells more\n",
		what, value);
	return WRONG;
}

/* A whole number from @from to @to. */
static int number(const char *text, uint64_t from, uint64_t to, uint64_t *x)
{
	char *end;

	errno = 0;
	*x = strtoull(text, &end, 0);
	if (*end || end == text || strchr(text, '-') || errno || *x < from ||
	    *x > to) {
		char what[80];

		snprintf(what, sizeof(what),
			 "not a number from %" PRIu64 " to %" PRIu64, from, to);
		return complain(what, text);
	}
	return 0;
}

static int small(const char *text, uint64_t from, uint64_t to, unsigned int *x)
{
	uint64_t n;
	int ret = number(text, from, to, &n);

	if (!ret)
		*x = (unsigned int)n;
	return ret;
}

static int seconds(const char *text, double *x)
{
	char *end;

	*x = strtod(text, &end);
	if (*end || end == text || !(*x >= 0 && *x < 1e9))
		return complain("not a number of seconds", text);
	return 0;
}

static int breaks(struct stress_options *o, const char *how)
{
	static const char *const name[] = { "skip", "late", "old" };

	for (int i = 0; i < 3; i++) {
		if (strcmp(how, name[i]))
			continue;
		o->broken = (enum stress_break)(STRESS_BREAK_SKIP + i);
		return 0;
	}
	return complain("not one of skip, late, old", how);
}

static void list_print(void)
{
	for (int i = 0; stress_scenarios[i]; i++)
		printf("%-16s %s\n", stress_scenarios[i]->name,
		       stress_scenarios[i]->help);
}

/* A name of the list, maybe with '-' before it. */
static int chosen_set(struct stress_options *o, const char *name)
{
	bool leave = name[0] == '-';
	int i = stress_scenario_find(name + leave);

	if (i < 0)
		return complain("no such scenario, --list tells them", name);
	o->chosen[i] = !leave;
	return 0;
}

static int scenarios_choose(struct stress_options *o)
{
	bool all = !o->scenario || o->scenario[0] == '-';
	char *list = o->scenario ? strdup(o->scenario) : NULL, *next = list;
	int ret = 0;

	for (int i = 0; stress_scenarios[i]; i++)
		o->chosen[i] = all;
	while (!ret && next) {
		const char *name = strsep(&next, ",");

		if (strcmp(name, "all"))
			ret = chosen_set(o, name);
		else
			memset(o->chosen, 1, sizeof(o->chosen));
	}
	free(list);
	return ret;
}

static int value_take(struct stress_options *o, int opt, const char *value)
{
	switch (opt) {
	case OPT_SECONDS:
		return seconds(value, &o->seconds);
	case OPT_STEPS:
		return number(value, 1, UINT32_MAX, &o->steps);
	case OPT_SEED:
		return number(value, 0, UINT64_MAX, &o->seed);
	case OPT_PROCESSES:
		return small(value, 2, STRESS_RANKS, &o->processes);
	case OPT_THREADS:
		return small(value, 0, 16, &o->threads);
	case OPT_SHRINK:
		return small(value, 0, 86400, &o->shrink);
	case OPT_BREAK:
		return breaks(o, value);
	}
	return WRONG;
}

static int text_take(struct stress_options *o, int opt, const char *value)
{
	switch (opt) {
	case 'p':
		o->provider = value;
		return 0;
	case OPT_SCENARIO:
		o->scenario = value;
		return 0;
	case OPT_OUTPUT:
		o->output = value;
		return 0;
	case OPT_REPLAY:
		o->replay = value;
		return 0;
	case OPT_TRACE:
		o->trace = value;
		return 0;
	}
	return value_take(o, opt, value);
}

static int option_take(struct stress_options *o, int opt, const char *value)
{
	switch (opt) {
	case 'h':
		fputs(usage, stdout);
		return HELPED;
	case '?':
		/* getopt has said it */
		fputs("shrimp-stress --help tells more\n", stderr);
		return WRONG;
	case OPT_LIST:
		o->list = true;
		return 0;
	case OPT_LONG:
		o->large = true;
		return 0;
	case OPT_KEEP_GOING:
		o->keep_going = true;
		return 0;
	case OPT_JSON:
		o->json = true;
		return 0;
	case OPT_QUIET:
		o->quiet = true;
		return 0;
	}
	return text_take(o, opt, value);
}

/* Builds with sanitizers are slow. */
static bool is_slow(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
	return true;
#else
	return false;
#endif
#else
	return false;
#endif
}

int stress_options_read(struct stress_options *o, int argc, char **argv)
{
	int opt, ret = 0;

	*o = (struct stress_options){ .provider = "shrimp",
				      .seconds = 10,
				      .processes = 2,
				      .threads = 1,
				      .shrink = 60,
				      .slow = is_slow() };
	o->seed = (uint64_t)time(NULL);
	while (!ret &&
	       (opt = getopt_long(argc, argv, "p:h", options, NULL)) != -1)
		ret = option_take(o, opt, optarg);
	if (!ret && optind < argc)
		ret = complain("one too many", argv[optind]);
	if (!ret)
		ret = scenarios_choose(o);
	if (!ret && o->list) {
		list_print();
		return HELPED;
	}
	return ret;
}
