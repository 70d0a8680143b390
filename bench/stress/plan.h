/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Sequences of steps, and the files they are kept in: one line each, by which
 * a group of new processes does the same again.
 *
 * One thread.
 */
#ifndef BENCH_STRESS_PLAN_H
#define BENCH_STRESS_PLAN_H

#include <stdio.h>

#include "bench/stress/group.h"

/** One step. */
struct stress_step {
	uint32_t number; /* from 1, never twice in a run */
	uint32_t act;	 /* equal numbers: one act */
	int scenario;	 /* number in stress_scenarios */
	int actor;	 /* rank */
	uint64_t seed;
};

/** What one group does; zeroed: nothing. */
struct stress_plan {
	struct stress_spec spec;
	struct stress_step *step;
	size_t n;    /* steps */
	size_t room; /* allocated */
};

/* Adds a step. Returns 0 or -ENOMEM. Partner: stress_plan_free(). */
int stress_plan_add(struct stress_plan *p, const struct stress_step *step);

/* Frees the steps. Accepts zeroed memory. */
void stress_plan_free(struct stress_plan *p);

/* The number of the scenario with this name, or -1. */
int stress_scenario_find(const char *name);

/* Writes @p, with options and settings that matter. 0 or -EIO. */
int stress_plan_write(const struct stress_plan *p,
		      const struct stress_options *o, FILE *to);

/*
 * Reads what stress_plan_write() wrote: fills *@p (zeroed before), changes
 * *@o and the environment. Strings in *@o are allocated, for the life of the
 * program. Returns 0, or -EINVAL with a message on stderr.
 */
int stress_plan_read(struct stress_plan *p, struct stress_options *o,
		     FILE *from);

#endif
