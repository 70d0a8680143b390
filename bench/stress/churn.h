/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Threads that allocate, map, move, give up and free memory of their own,
 * beside whatever else goes on. What they put there must stay: memory that
 * was freed elsewhere may be theirs by now.
 */
#ifndef BENCH_STRESS_CHURN_H
#define BENCH_STRESS_CHURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stress_churn;

/* How they churn. */
enum stress_churn_flag {
	STRESS_CHURN_HARD = 1 << 0, /* without pauses */
	STRESS_CHURN_STAY = 1 << 1, /* no mremap(2): sanitizers do not see it */
};

/*
 * Starts @n threads (0: none). NULL: no memory or no threads. Partner:
 * stress_churn_stop().
 */
struct stress_churn *stress_churn_start(unsigned int n, uint64_t seed,
					unsigned int flags);

/*
 * Whether all they had was what they had put there; false with @text (of
 * @room bytes). Any thread.
 */
bool stress_churn_fine(struct stress_churn *c, char *text, size_t room);

/*
 * Between the two no thread of @c allocates, frees or maps. One thread. NULL is
 * accepted.
 */
void stress_churn_pause(struct stress_churn *c);
void stress_churn_resume(struct stress_churn *c);

/* Ends them, waits for that, and frees @c. NULL is accepted. */
void stress_churn_stop(struct stress_churn *c);

#endif
