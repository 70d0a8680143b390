/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Which two cores a benchmark runs on.
 */
#include "bench/pin.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* Returns how many of the first two cores of the set were found. */
static int pair_pick(struct bench_pin *pin, const cpu_set_t *allowed)
{
	int found = 0;
	int cpu;

	for (cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
		if (CPU_ISSET(cpu, allowed))
			pin->cpu[found++] = cpu;
	return found;
}

/*
 * mpirun may have bound each process to one core: looks at all that the kernel
 * would grant, and puts the binding back.
 */
static int pair_widen(struct bench_pin *pin, const cpu_set_t *bound)
{
	cpu_set_t all;
	int found;

	memset(&all, 0xff, sizeof(all));
	if (sched_setaffinity(0, sizeof(all), &all) ||
	    sched_getaffinity(0, sizeof(all), &all))
		return -errno;
	found = pair_pick(pin, &all);
	if (sched_setaffinity(0, sizeof(*bound), bound))
		return -errno;
	if (found == 1)
		pin->cpu[1] = pin->cpu[0];
	return 0;
}

int bench_pin_default(struct bench_pin *pin)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return -errno;
	if (pair_pick(pin, &allowed) == 2)
		return 0;
	return pair_widen(pin, &allowed);
}

int bench_pin_parse(struct bench_pin *pin, const char *text)
{
	int first;
	int second;
	char rest;

	if (!strcmp(text, "none")) {
		pin->cpu[0] = pin->cpu[1] = -1;
		return 0;
	}
	if (sscanf(text, "%d,%d%c", &first, &second, &rest) != 2)
		return -EINVAL;
	if (first < 0 || second < 0 || first >= CPU_SETSIZE ||
	    second >= CPU_SETSIZE)
		return -EINVAL;
	pin->cpu[0] = first;
	pin->cpu[1] = second;
	return 0;
}

int bench_pin_self(int cpu)
{
	cpu_set_t one;
	int err;

	if (cpu < 0)
		return 0;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (!sched_setaffinity(0, sizeof(one), &one))
		return 0;
	err = errno;
	fprintf(stderr, "cannot run on core %d: %s\n", cpu, strerror(err));
	return -err;
}
