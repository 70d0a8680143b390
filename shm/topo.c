/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Topology: hwloc for what there is, libnuma for where memory goes.
 */
#include "shm/topo.h"

#include <errno.h>
#include <hwloc.h>
#include <numa.h>
#include <numaif.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "shm/log.h"

enum { L2_DEFAULT = 1 << 20 }; /* if hwloc finds none */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct rnic_topo topo = { .cores = 1,
				 .l2_bytes = L2_DEFAULT,
				 .nnodes = 1 };

static unsigned int count_cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return (unsigned int)CPU_COUNT(&set);
}

/* Caches and nodes; no look at devices, whose plugins have side effects. */
static void read_hwloc(void)
{
	hwloc_topology_t t;
	hwloc_obj_t l2;

	if (hwloc_topology_init(&t))
		return;
	hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
	if (hwloc_topology_load(t)) {
		rnic_log(RNIC_LOG_INFO,
			 "hwloc cannot read the topology: "
			 "assuming an L2 of %d KiB",
			 L2_DEFAULT >> 10);
	} else {
		l2 = hwloc_get_obj_by_type(t, HWLOC_OBJ_L2CACHE, 0);
		if (l2 && l2->attr->cache.size)
			topo.l2_bytes = l2->attr->cache.size;
		topo.nnodes = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE);
	}
	hwloc_topology_destroy(t);
}

static void read_topo(void)
{
	int cpu = sched_getcpu();

	topo.cores = count_cores();
	read_hwloc();
	if (topo.nnodes < 1)
		topo.nnodes = 1;
	if (topo.nnodes > 1 && numa_available() >= 0 && cpu >= 0)
		topo.node = numa_node_of_cpu(cpu);
	if (topo.node < 0)
		topo.node = 0;
}

const struct rnic_topo *rnic_topo_get(void)
{
	pthread_once(&once, read_topo);
	return &topo;
}

int rnic_topo_bind(void *p, size_t len, int node)
{
	struct bitmask *mask;
	int ret = 0;

	if (rnic_topo_get()->nnodes < 2 || numa_available() < 0)
		return 0;
	mask = numa_allocate_nodemask();
	numa_bitmask_setbit(mask, (unsigned int)node);
	if (mbind(p, len, MPOL_PREFERRED, mask->maskp, mask->size, 0))
		ret = -errno;
	numa_bitmask_free(mask);
	if (ret)
		rnic_log(RNIC_LOG_WARN, "mbind of %zu bytes to node %d: %s",
			 len, node, strerror(-ret));
	return ret;
}

int rnic_topo_node_of(void *p)
{
	int status = -ENOENT;

	if (numa_move_pages(0, 1, &p, NULL, &status, 0))
		return -errno;
	return status;
}
