/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Options. An argument that may be left out is joined by '=', since what
 * follows may be a process.
 */
#include "tools/inspect_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPT_ALL = 256,
	OPT_CACHES,
	OPT_HELP,
	OPT_JSON,
	OPT_KEY,
	OPT_LANES,
	OPT_REGIONS,
	OPT_VERSION,
	OPT_WATCH,
};

static const struct option options[] = {
	{ "all", no_argument, NULL, OPT_ALL },
	{ "caches", no_argument, NULL, OPT_CACHES },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "key", required_argument, NULL, OPT_KEY },
	{ "lanes", no_argument, NULL, OPT_LANES },
	{ "regions", optional_argument, NULL, OPT_REGIONS },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "watch", optional_argument, NULL, OPT_WATCH },
	{ NULL, 0, NULL, 0 },
};

const char insp_help[] =
	"usage: shrimp-inspect [OPTION]... [PID]\n"
	"\n"
	"Shows the shrimp devices of process PID, or, without PID, the processes\n"
	"of this user that have some. Reads only, and does not stop the process.\n"
	"\n"
	"  --regions[=N]    all live memory regions, or N of them (10)\n"
	"  --key=KEY        the region with this key\n"
	"  --lanes          each lane and its reader slots\n"
	"  --caches         each key cache\n"
	"  --all            all of these\n"
	"  --json           one JSON object, on one line\n"
	"  --watch[=SECS]   again every SECS seconds (1), with rates, until the\n"
	"                   process ends or a signal comes\n"
	"  --help, --version\n"
	"\n"
	"Exit status: 0, 1 (no such process, or it has no device), 2 (wrong\n"
	"usage, or not permitted).\n";

static bool wrong(const char *what, const char *text)
{
	fprintf(stderr, "shrimp-inspect: %s: %s\n", what, text);
	return false;
}

/* A whole number, decimal or with 0x. */
static bool read_number(const char *text, uint64_t *n)
{
	char *end;

	errno = 0;
	*n = strtoull(text, &end, strncmp(text, "0x", 2) ? 10 : 16);
	return isdigit((unsigned char)*text) && !*end && !errno;
}

static bool read_seconds(const char *text, int *ms)
{
	char *end;
	double s = text ? strtod(text, &end) : 1;

	if (text && (end == text || *end))
		return wrong("not a number of seconds", text);
	if (!(s >= 0.01 && s <= 1e6))
		return wrong("seconds from 0.01 to 1000000", text);
	*ms = (int)(s * 1000);
	return true;
}

static bool read_pid(const char *text, pid_t *pid)
{
	uint64_t n;

	if (!read_number(text, &n) || !n || n > INT_MAX)
		return wrong("not a process", text);
	*pid = (pid_t)n;
	return true;
}

/* An option about what is in one process. */
static bool is_detail(int c)
{
	return c == OPT_ALL || c == OPT_CACHES || c == OPT_KEY ||
	       c == OPT_LANES || c == OPT_REGIONS;
}

static void want_all(struct insp_want *w)
{
	w->regions = UINT64_MAX;
	w->lanes = w->caches = true;
}

/* Takes option @c; false: it is wrong, and that was said. */
static bool take(int c, struct insp_options *o, enum insp_action *action)
{
	struct insp_want *w = &o->want;

	switch (c) {
	case OPT_ALL:
		want_all(w);
		return true;
	case OPT_CACHES:
		return w->caches = true;
	case OPT_HELP:
		*action = INSP_HELP;
		return true;
	case OPT_JSON:
		return o->json = true;
	case OPT_KEY:
		w->has_key = true;
		return read_number(optarg, &w->key) ||
		       wrong("not a key", optarg);
	case OPT_LANES:
		return w->lanes = true;
	case OPT_REGIONS:
		w->regions = UINT64_MAX;
		return !optarg || read_number(optarg, &w->regions) ||
		       wrong("not a number of regions", optarg);
	case OPT_VERSION:
		*action = INSP_VERSION;
		return true;
	case OPT_WATCH:
		return read_seconds(optarg, &o->wait_ms);
	default:
		/* getopt has said it */
		return false;
	}
}

enum insp_action insp_options(int argc, char **argv, struct insp_options *o)
{
	enum insp_action action = INSP_SHOW;
	bool detail = false;
	int c;

	*o = (struct insp_options){ .want.regions = INSP_REGIONS };
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (!take(c, o, &action))
			return INSP_WRONG;
		detail |= is_detail(c);
	}
	if (action != INSP_SHOW)
		return action;
	if (optind == argc && detail) {
		wrong("no process given", "--regions, --key, --lanes, "
					  "--caches and --all look into one");
		return INSP_WRONG;
	}
	if (optind == argc)
		return action;
	if (argc - optind > 1) {
		wrong("one process at a time", argv[optind + 1]);
		return INSP_WRONG;
	}
	return read_pid(argv[optind], &o->pid) ? INSP_SHOW : INSP_WRONG;
}
