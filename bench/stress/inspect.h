/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What a process has in the tables of its shrimp devices, as shrimp-inspect
 * sees it from outside. One thread.
 */
#ifndef BENCH_STRESS_INSPECT_H
#define BENCH_STRESS_INSPECT_H

#include <stdbool.h>
#include <sys/types.h>

/** Sums over all devices of a process. */
struct stress_tables {
	long live;  /* regions with a key */
	long pages; /* of translation tables, in use */
};

/*
 * Runs shrimp-inspect, which lies in ../tools beside this program, on process
 * @pid. Returns whether there was such a tool and it saw a device.
 */
bool stress_inspect(pid_t pid, struct stress_tables *t);

#endif
