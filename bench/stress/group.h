/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The processes of a run, as the driver has them: started together, watched,
 * and never left behind. The driver itself never calls libfabric.
 *
 * One thread.
 */
#ifndef BENCH_STRESS_GROUP_H
#define BENCH_STRESS_GROUP_H

#include <stdio.h>

#include "bench/stress/inside.h"
#include "bench/stress/inspect.h"

/** What a group is started with. */
struct stress_spec {
	int env;   /* number of the scenario whose settings it has, or -1 */
	int offer; /* FI_MR_ bits that are offered */
	int trace; /* file for all lines, or -1 */
	bool look; /* compare what its devices' tables hold */
};

/** One process; zeroed: none. */
struct stress_proc {
	pid_t pid;		     /* 0: none, or reaped */
	int fd;			     /* to it, or -1 */
	bool killed;		     /* on purpose */
	bool looked;		     /* into its tables, at the start */
	struct stress_tables tables; /* as they were then */
	struct stress_log *log;	     /* shared with it */
};

/** A group; zeroed: none. */
struct stress_group {
	const struct stress_options *o;
	int n;
	struct stress_proc proc[STRESS_RANKS];
	int actor;		    /* whose act is open; -1: none */
	uint32_t act;		    /* number of it */
	char provider[STRESS_TEXT]; /* what process 0 said of it */
};

/** How a call to a group ended. */
enum stress_end {
	STRESS_END_FINE,
	STRESS_END_SKIPPED,  /* why is in the report */
	STRESS_END_WRONG,    /* likewise what */
	STRESS_END_UNUSABLE, /* no such provider */
};

/*
 * Starts the processes and waits for all to be ready. Anything but FINE: none
 * is left. Partner: stress_group_stop().
 */
enum stress_end stress_group_start(struct stress_group *g,
				   const struct stress_options *o,
				   const struct stress_spec *spec,
				   struct stress_report *r);

/*
 * Process @rank does a step, within a limit. If it, or another one, crashes or
 * does not move, that is WRONG.
 */
enum stress_end stress_group_step(struct stress_group *g, int rank,
				  const struct stress_order *order,
				  struct stress_report *r);

/* Tears the open act down, if there is one: FINE or WRONG. */
enum stress_end stress_group_close(struct stress_group *g,
				   struct stress_report *r);

/*
 * All end by themselves, and say what is left: FINE or WRONG. None is left in
 * any case.
 */
enum stress_end stress_group_stop(struct stress_group *g,
				  struct stress_report *r);

/* Kills and reaps all. Accepts zeroed memory. */
void stress_group_kill(struct stress_group *g);

/*
 * Prints the lines of step @number (0: all that are kept) that the processes
 * wrote, each after @prefix. At most @most for each.
 */
void stress_group_tell(const struct stress_group *g, FILE *to, uint32_t number,
		       const char *prefix, unsigned int most);

#endif
