/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * All scenarios.
 */
#include "bench/stress/list.h"

const struct stress_scenario *const stress_scenarios[] = {
	&stress_arena,
	&stress_brk,
	&stress_evict,
	&stress_file,
	&stress_fixed,
	&stress_forks,
	&stress_handover,
	&stress_heap,
	&stress_hugetlb,
	&stress_in_flight,
	&stress_kills,
	&stress_limit,
	&stress_madvises,
	&stress_memfds,
	&stress_merge,
	&stress_monitor_off,
	&stress_monitor_refused,
	&stress_mremap,
	&stress_neighbours,
	&stress_old_key,
	&stress_on_demand,
	&stress_reallocs,
	&stress_remap,
	&stress_second_uffd,
	&stress_static,
	&stress_swap,
	&stress_sysv,
	&stress_thp,
	&stress_threads,
	&stress_two_domains,
	NULL, /* the end */
};
