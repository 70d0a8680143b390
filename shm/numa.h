/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Placement: on which NUMA node the pages of the device lie (contract N1).
 *
 * A policy is a mode and a home node. It is applied to mappings before their
 * first page is made; in a shared file it then holds for whoever makes the
 * pages, peers included. Where pages lie is asked of the kernel. On a machine
 * of one node nothing is bound. Any thread; no lock.
 */
#ifndef RNIC_NUMA_H
#define RNIC_NUMA_H

#include <stddef.h>

#include "shm/topo.h"

/* FI_SHRIMP_NUMA, in the order of its words. */
enum rnic_numa_mode {
	RNIC_NUMA_LOCAL,      /* where the thread runs that makes the object */
	RNIC_NUMA_NIC,	      /* on the home node, nowhere else */
	RNIC_NUMA_INTERLEAVE, /* page by page over all nodes we may use */
	RNIC_NUMA_PREFERRED,  /* on the home node while it has memory */
	RNIC_NUMA_OFF,	      /* as the kernel likes */
};

enum { RNIC_NUMA_HERE = -1 }; /* home node: where the process runs */

/* A placement policy. Zeroed: LOCAL. */
struct rnic_numa {
	enum rnic_numa_mode mode; /* how */
	int home;		  /* node, or RNIC_NUMA_HERE */
};

/* What mbind(2) is told. */
struct rnic_numa_plan {
	int policy;			     /* MPOL_ */
	unsigned long mask[RNIC_TOPO_WORDS]; /* nodes, a bit each */
};

/*
 * Makes @n of @mode and @home, RNIC_NUMA_HERE resolved to the node of the
 * calling thread. Returns 0, or -EINVAL (logged: value and allowed nodes) if
 * the mode uses a home node and the process may not; for RNIC_NUMA_HERE only
 * in mode NIC, on a machine of several nodes.
 */
int rnic_numa_init(struct rnic_numa *n, enum rnic_numa_mode mode, int home);

/*
 * What @n means on machine @t to a thread that runs on node @here. Nothing to
 * bind is MPOL_DEFAULT: the mode is OFF, the machine has one node or is not
 * this one, or the thread's node has no memory. No error.
 */
void rnic_numa_plan(const struct rnic_numa *n, const struct rnic_topo *t,
		    int here, struct rnic_numa_plan *plan);

/*
 * Tells the kernel @plan for the pages of @p, @len, none of which exists yet.
 * Returns 0, or a negative errno (logged); -ENOSYS: no libnuma.
 */
int rnic_numa_apply(const struct rnic_numa_plan *plan, void *p, size_t len);

/*
 * rnic_numa_apply() of what @n means here and now. An error (logged) is
 * returned in mode NIC only, which promises a node; the others go on.
 */
int rnic_numa_bind(const struct rnic_numa *n, void *p, size_t len);

/*
 * Asks the kernel where the first @n pages from the one that holds @p on lie:
 * @node[i] becomes the node of page i, or a negative errno: -ENOENT if this
 * process has not touched it (or, on some kernels, has only read zeros there),
 * -EFAULT if nothing is mapped there. No page is made. Returns 0, or a negative
 * errno and nothing is known; -ENOSYS: no libnuma, or a kernel without NUMA.
 */
int rnic_numa_where(const void *p, int *node, size_t n);

#endif /* RNIC_NUMA_H */
