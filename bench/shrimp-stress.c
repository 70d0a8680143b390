/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-stress: the stress test of registration caches, for any libfabric
 * provider. shrimp-stress.1 says how it is used, stress/stress.h how a
 * scenario is written.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/stress/run.h"

enum {
	EXIT_FINE = 0,
	EXIT_FAULT = 1,
	EXIT_USAGE = 2,
	EXIT_UNUSABLE = 3,
};

static int exit_of(enum stress_end end)
{
	if (end == STRESS_END_WRONG)
		return EXIT_FAULT;
	return end == STRESS_END_FINE ? EXIT_FINE : EXIT_UNUSABLE;
}

static int replay(struct stress_options *o)
{
	struct stress_plan p = { .n = 0 };
	FILE *from = fopen(o->replay, "re");
	enum stress_end end;
	int ret;

	if (!from) {
		fprintf(stderr, "shrimp-stress: cannot read %s: %s\n",
			o->replay, strerror(errno));
		return EXIT_USAGE;
	}
	ret = stress_plan_read(&p, o, from);
	fclose(from);
	if (ret)
		return EXIT_USAGE;
	stress_result_begin(o);
	end = stress_run_replay(o, &p);
	stress_plan_free(&p);
	return exit_of(end);
}

/* @ret, if all that was printed is where it belongs. */
static int written(int ret)
{
	if (!fflush(stdout) && !ferror(stdout))
		return ret;
	fprintf(stderr, "shrimp-stress: cannot write to standard output: %s\n",
		strerror(errno));
	return ret == EXIT_FAULT ? ret : EXIT_USAGE;
}

/* Whether @path, if there is one, can be made. Says so if not. */
static bool can_write(const char *path)
{
	FILE *to = path ? fopen(path, "ae") : NULL;

	if (to)
		fclose(to);
	else if (path)
		fprintf(stderr, "shrimp-stress: cannot write %s: %s\n", path,
			strerror(errno));
	return to || !path;
}

int main(int argc, char **argv)
{
	struct stress_options o;
	int ret = stress_options_read(&o, argc, argv);

	if (ret)
		return written(ret - 1);
	if (!can_write(o.trace))
		return EXIT_USAGE;
	if (o.replay) {
		ret = replay(&o);
	} else {
		stress_result_begin(&o);
		ret = exit_of(stress_run_random(&o));
	}
	if (ret == EXIT_FINE || ret == EXIT_FAULT)
		stress_result_print(stdout);
	return written(ret);
}
