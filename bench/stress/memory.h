/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Memory that scenarios change, beyond stress.h. One thread.
 */
#ifndef BENCH_STRESS_MEMORY_H
#define BENCH_STRESS_MEMORY_H

#include "bench/stress/inside.h"

/* Reserves all slots, for the life of the process. 0 or a negative errno. */
int stress_slots_open(struct stress *s);

/* Closes all memory files. */
void stress_files_close(struct stress *s);

#endif
