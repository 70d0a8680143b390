/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Children of tests, which do by themselves what would change or end the test
 * program.
 *
 * A child may not use cmocka: it returns a status. It dies with the test, and
 * lives KIT_CHILD_S seconds at most. The parent's functions: one thread.
 */
#ifndef RNIC_CHILD_KIT_H
#define RNIC_CHILD_KIT_H

#include <sys/types.h>

enum {
	KIT_SKIP = 77,	  /* status of a child that could not set up its case */
	KIT_CHILD_S = 90, /* seconds */
};

/* Forks a child that ends with status @fn(@arg). -1 as fork(2). */
pid_t kit_spawn(int (*fn)(void *), void *arg);

/* For kit_spawn(): does nothing until it is killed. */
int kit_idle(void *arg);

/* Kills @pid and reaps it. */
void kit_end(pid_t pid);

/*
 * Runs @fn(@arg) in a child: fails the test unless it returned 0, skips it for
 * KIT_SKIP.
 */
void kit_in_child(int (*fn)(void *), void *arg);

/*
 * In a child: from now on system call @nr fails with @err. Returns 0, or not 0
 * if filters are not permitted.
 */
int kit_forbid(unsigned int nr, unsigned int err);

#endif /* RNIC_CHILD_KIT_H */
