/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Sequences of steps, and the files they are kept in.
 */
#include "bench/stress/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 512 };

static const char head[] = "shrimp-stress 1";
static const char *const break_names[] = { "nothing", "skip", "late", "old" };

int stress_plan_add(struct stress_plan *p, const struct stress_step *step)
{
	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : 64;
		void *more = reallocarray(p->step, room, sizeof(*step));

		if (!more)
			return -ENOMEM;
		p->step = more;
		p->room = room;
	}
	p->step[p->n++] = *step;
	return 0;
}

void stress_plan_free(struct stress_plan *p)
{
	free(p->step);
	p->step = NULL;
	p->n = 0;
	p->room = 0;
}

int stress_scenario_find(const char *name)
{
	for (int i = 0; stress_scenarios[i]; i++)
		if (!strcmp(stress_scenarios[i]->name, name))
			return i;
	return -1;
}

/* ---- writing ---- */

static bool is_setting(const char *e)
{
	return (!strncmp(e, "FI_SHRIMP_", 10) ||
		!strncmp(e, "FI_MR_CACHE_", 12)) &&
	       !strchr(e, '\n');
}

static void settings_write(FILE *to)
{
	for (char **e = environ; *e; e++)
		if (is_setting(*e))
			fprintf(to, "set %s\n", *e);
}

int stress_plan_write(const struct stress_plan *p,
		      const struct stress_options *o, FILE *to)
{
	fprintf(to, "%s\nprovider %s\nprocesses %u\nthreads %u\n", head,
		o->provider, o->processes, o->threads);
	fprintf(to, "seed %" PRIu64 "\nlong %d\nbreak %s\n", o->seed, o->large,
		break_names[o->broken]);
	fprintf(to, "mr_mode %#x\nlook %d\n", (unsigned int)p->spec.offer,
		p->spec.look);
	if (p->spec.env >= 0)
		fprintf(to, "group %s\n", stress_scenarios[p->spec.env]->name);
	settings_write(to);
	for (size_t i = 0; i < p->n; i++)
		fprintf(to,
			"step %" PRIu32 " act %" PRIu32
			" actor %d scenario %s seed %#" PRIx64 "\n",
			p->step[i].number, p->step[i].act, p->step[i].actor,
			stress_scenarios[p->step[i].scenario]->name,
			p->step[i].seed);
	return ferror(to) ? -EIO : 0;
}

/* ---- reading ---- */

static int setting_read(const char *value)
{
	char name[LINE];
	const char *is = strchr(value, '=');

	if (!is || !is_setting(value))
		return -EINVAL;
	snprintf(name, sizeof(name), "%.*s", (int)(is - value), value);
	return setenv(name, is + 1, 1);
}

static int break_read(struct stress_options *o, const char *value)
{
	for (int i = STRESS_BREAK_NOTHING; i <= STRESS_BREAK_OLD; i++) {
		if (strcmp(value, break_names[i]))
			continue;
		o->broken = (enum stress_break)i;
		return 0;
	}
	return -EINVAL;
}

static int step_read(struct stress_plan *p, const struct stress_options *o,
		     const char *value)
{
	struct stress_step st;
	char name[64];

	if (sscanf(value,
		   "%" SCNu32 " act %" SCNu32
		   " actor %d scenario %63s seed %" SCNx64,
		   &st.number, &st.act, &st.actor, name, &st.seed) != 5)
		return -EINVAL;
	st.scenario = stress_scenario_find(name);
	if (st.scenario < 0 || st.actor < 0 ||
	    (unsigned int)st.actor >= o->processes || !st.number)
		return -EINVAL;
	return stress_plan_add(p, &st);
}

/* A number from @from to @to. */
static int number_read(const char *value, uint64_t from, uint64_t to,
		       uint64_t *x)
{
	char *end;

	errno = 0;
	*x = strtoull(value, &end, 0);
	return errno || *end || end == value || *x < from || *x > to ? -EINVAL
								     : 0;
}

static int option_read(struct stress_plan *p, struct stress_options *o,
		       const char *name, const char *value)
{
	uint64_t x = 0;
	int ret;

	if (!strcmp(name, "provider")) {
		o->provider = strdup(value);
		return o->provider ? 0 : -ENOMEM;
	}
	if (!strcmp(name, "break"))
		return break_read(o, value);
	if (!strcmp(name, "group")) {
		p->spec.env = stress_scenario_find(value);
		return p->spec.env < 0 ? -EINVAL : 0;
	}
	ret = number_read(value, 0, UINT64_MAX, &x);
	if (!strcmp(name, "processes") && x >= 2 && x <= STRESS_RANKS)
		o->processes = (unsigned int)x;
	else if (!strcmp(name, "threads") && x <= 16)
		o->threads = (unsigned int)x;
	else if (!strcmp(name, "seed"))
		o->seed = x;
	else if (!strcmp(name, "long"))
		o->large = x;
	else if (!strcmp(name, "look"))
		p->spec.look = x;
	else if (!strcmp(name, "mr_mode") && x <= INT32_MAX)
		p->spec.offer = (int)x;
	else
		ret = -EINVAL;
	return ret;
}

static int line_read(struct stress_plan *p, struct stress_options *o,
		     char *line)
{
	char *value = strchr(line, ' ');

	if (!value)
		return -EINVAL;
	*value++ = 0;
	if (!strcmp(line, "set"))
		return setting_read(value);
	if (!strcmp(line, "step"))
		return step_read(p, o, value);
	return option_read(p, o, line, value);
}

int stress_plan_read(struct stress_plan *p, struct stress_options *o,
		     FILE *from)
{
	unsigned int number = 0;
	char line[LINE];
	int ret = 0;

	p->spec.env = -1;
	p->spec.trace = -1;
	while (!ret && fgets(line, sizeof(line), from)) {
		line[strcspn(line, "\n")] = 0;
		if (!number++)
			ret = strcmp(line, head) ? -EINVAL : 0;
		else if (line[0] && line[0] != '#')
			ret = line_read(p, o, line);
	}
	if (!ret && p->n)
		return 0;
	fprintf(stderr, "shrimp-stress: line %u is no step of a trace\n",
		number);
	return -EINVAL;
}
