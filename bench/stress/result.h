/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What a run found: counts of each scenario, faults, the line of progress,
 * and the report at the end, for people or as JSON.
 *
 * One for the program; one thread.
 */
#ifndef BENCH_STRESS_RESULT_H
#define BENCH_STRESS_RESULT_H

#include <stdio.h>

#include "bench/stress/group.h"
#include "bench/stress/plan.h"

/** A fault. */
struct stress_fault {
	struct stress_step step; /* at which it was seen */
	bool at_end;		 /* when the group ended */
	char text[STRESS_TEXT];
	char file[256]; /* minimal steps; "": none */
	size_t steps;	/* in it */
};

/* Begins: notes the time. @o is borrowed for good. */
void stress_result_begin(const struct stress_options *o);

/* What the provider is, as its first group told. */
void stress_result_provider(const char *text);

/* Scenario @i begins an act. */
void stress_result_act(int i);

/* A step of scenario @i did @count. */
void stress_result_step(int i, const struct stress_count *count);

/* A step, or the start, of scenario @i was skipped because of @why. */
void stress_result_skip(int i, const char *why);

/* Whether that was all it ever did: it is not run any more. */
bool stress_result_skipped(int i);

/* Adds a fault; the first are kept. */
void stress_result_fault(const struct stress_fault *f);

/* Faults so far, steps so far, seconds since the begin. */
uint64_t stress_result_faults(void);
uint64_t stress_result_steps(void);
double stress_result_seconds(void);

/* The line of progress, on a terminal, if it is due. */
void stress_result_tick(void);

/* Ends that line, before something else is printed. */
void stress_result_line_end(void);

/* The report. */
void stress_result_print(FILE *to);

#endif
