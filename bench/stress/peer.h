/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A process of a group, from its start to its end.
 */
#ifndef BENCH_STRESS_PEER_H
#define BENCH_STRESS_PEER_H

#include "bench/stress/inside.h"

/*
 * Runs the process: @s has options, ranks, sockets and log. @env: a scenario
 * whose settings the group has, or NULL. Returns the exit status: 0 if it was
 * told to end and did.
 */
int stress_peer_run(struct stress *s, const struct stress_scenario *env);

/*
 * Whether userfaultfd(2) gives events for user mode, which also shrimp needs.
 * Opens and closes one.
 */
bool stress_uffd_there(void);

#endif
