/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The scenarios, each in its file. Constants.
 */
#ifndef BENCH_STRESS_LIST_H
#define BENCH_STRESS_LIST_H

#include "bench/stress/stress.h"

extern const struct stress_scenario stress_arena;
extern const struct stress_scenario stress_brk;
extern const struct stress_scenario stress_evict;
extern const struct stress_scenario stress_file;
extern const struct stress_scenario stress_fixed;
extern const struct stress_scenario stress_forks;
extern const struct stress_scenario stress_handover;
extern const struct stress_scenario stress_heap;
extern const struct stress_scenario stress_hugetlb;
extern const struct stress_scenario stress_in_flight;
extern const struct stress_scenario stress_kills;
extern const struct stress_scenario stress_limit;
extern const struct stress_scenario stress_madvises;
extern const struct stress_scenario stress_memfds;
extern const struct stress_scenario stress_merge;
extern const struct stress_scenario stress_monitor_off;
extern const struct stress_scenario stress_monitor_refused;
extern const struct stress_scenario stress_mremap;
extern const struct stress_scenario stress_neighbours;
extern const struct stress_scenario stress_old_key;
extern const struct stress_scenario stress_on_demand;
extern const struct stress_scenario stress_reallocs;
extern const struct stress_scenario stress_remap;
extern const struct stress_scenario stress_second_uffd;
extern const struct stress_scenario stress_static;
extern const struct stress_scenario stress_swap;
extern const struct stress_scenario stress_sysv;
extern const struct stress_scenario stress_thp;
extern const struct stress_scenario stress_threads;
extern const struct stress_scenario stress_two_domains;

#endif
