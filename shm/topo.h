/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The machine as far as the device cares: cores, caches, NUMA nodes. Read
 * once per process with hwloc; memory is bound and asked about with libnuma.
 */
#ifndef RNIC_TOPO_H
#define RNIC_TOPO_H

#include <stddef.h>

struct rnic_topo {
	unsigned int cores; /* CPUs this process may run on */
	size_t l2_bytes;    /* size of an L2 cache */
	int node;	    /* NUMA node the process runs on */
	int nnodes;	    /* NUMA nodes of the machine */
};

/*
 * The topology, read at the first call (some milliseconds), constant
 * afterwards. Any thread. Never NULL: what cannot be found out has a
 * reasonable value and a log line.
 */
const struct rnic_topo *rnic_topo_get(void);

/*
 * Asks for the pages of @p, @len, not yet touched, on @node, other nodes if
 * it is full. On a machine of one node, nothing. Any thread. Returns 0 or a
 * negative errno (logged).
 */
int rnic_topo_bind(void *p, size_t len, int node);

/*
 * The node on which the page at @p lies, as the kernel says. Returns it, or
 * -ENOENT (no page there yet), or another negative errno.
 */
int rnic_topo_node_of(const void *p);

#endif /* RNIC_TOPO_H */
