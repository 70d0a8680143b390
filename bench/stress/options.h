/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The command line of shrimp-stress.
 */
#ifndef BENCH_STRESS_OPTIONS_H
#define BENCH_STRESS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	STRESS_CHOSEN_MAX = 64, /* scenarios at most */
};

/** What the tool does wrong on purpose. */
enum stress_break {
	STRESS_BREAK_NOTHING,
	STRESS_BREAK_SKIP, /* new bytes are not written */
	STRESS_BREAK_LATE, /* they are written one byte too far on */
	STRESS_BREAK_OLD,  /* they are compared with those before them */
};

/** What was asked for. Pointers are into argv, or constant. */
struct stress_options {
	const char *provider;	  /* for libfabric */
	const char *scenario;	  /* names with commas between, or NULL: all */
	const char *replay;	  /* file of steps, or NULL */
	const char *trace;	  /* file that all lines go to, or NULL */
	const char *output;	  /* file for the minimal steps */
	double seconds;		  /* that the run takes */
	uint64_t seed;		  /* of all */
	uint64_t steps;		  /* at most; 0: no limit */
	unsigned int processes;	  /* of a group */
	unsigned int threads;	  /* churning beside, in each process */
	unsigned int shrink;	  /* seconds for the minimal steps */
	enum stress_break broken; /* what is done wrong */
	bool list;
	bool json;
	bool quiet;
	bool keep_going;		/* after a fault */
	bool large;			/* --long */
	bool slow;			/* sanitizers */
	bool chosen[STRESS_CHOSEN_MAX]; /* scenarios, by number */
};

/*
 * Fills *@o from the command line. Returns 0, or the exit status plus 1 with
 * which the program is to end: help was given (1), or the usage is wrong (3).
 */
int stress_options_read(struct stress_options *o, int argc, char **argv);

#endif
