/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Topology, by hwloc.
 */
#include "shm/topo.h"

#include <hwloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "shm/log.h"

enum {
	L2_DEFAULT = 1 << 20, /* if hwloc finds none */
	CPUS_MAX = 1 << 16,   /* more than any kernel is built for */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct rnic_topo topo;

/* The kernel refuses a set that has no room for all CPUs it may have. */
static unsigned int count_cores(void)
{
	size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
	cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
	unsigned int n = 0;

	if (set && !sched_getaffinity(0, size, set))
		n = (unsigned int)CPU_COUNT_S(size, set);
	CPU_FREE(set);
	if (n)
		return n;
	rnic_log(RNIC_LOG_INFO, "the CPUs of this process are not known: "
				"assuming one");
	return 1;
}

static void no_hwloc(void)
{
	rnic_log(RNIC_LOG_INFO,
		 "hwloc cannot read the topology: assuming one "
		 "node and an L2 of %d KiB",
		 L2_DEFAULT >> 10);
}

/* A node counts if it has memory and a number that fits. */
static void add_node(struct rnic_topo *t, const struct hwloc_obj *o)
{
	if (o->os_index >= RNIC_TOPO_NODES || !o->attr->numanode.local_memory)
		return;
	t->nodes[o->os_index / RNIC_TOPO_BITS] |=
		1UL << o->os_index % RNIC_TOPO_BITS;
	t->nnodes++;
}

/* Caches and nodes. hwloc leaves out what the cpuset forbids. */
static void take(struct rnic_topo *to, hwloc_topology_t t)
{
	hwloc_obj_t l2 = hwloc_get_obj_by_type(t, HWLOC_OBJ_L2CACHE, 0);
	hwloc_obj_t o = NULL;

	if (l2 && l2->attr->cache.size)
		to->l2_bytes = l2->attr->cache.size;
	while ((o = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, o)))
		add_node(to, o);
	to->real = hwloc_topology_is_thissystem(t);
}

/* No look at devices, whose plugins have side effects. */
static void read_hwloc(struct rnic_topo *to, const char *synthetic)
{
	hwloc_topology_t t;

	if (hwloc_topology_init(&t)) {
		no_hwloc();
		return;
	}
	hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
	/* it would bind the caller to each CPU in turn; Linux tells as much */
	hwloc_topology_set_components(
		t, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
	if ((synthetic && hwloc_topology_set_synthetic(t, synthetic)) ||
	    hwloc_topology_load(t))
		no_hwloc();
	else
		take(to, t);
	hwloc_topology_destroy(t);
}

int rnic_topo_node_here(void)
{
	unsigned int cpu, node;

	return getcpu(&cpu, &node) ? 0 : (int)node;
}

void rnic_topo_read(struct rnic_topo *t, const char *synthetic)
{
	*t = (struct rnic_topo){
		.cores = count_cores(),
		.l2_bytes = L2_DEFAULT,
		.real = true,
	};
	read_hwloc(t, synthetic);
	if (!t->nnodes) {
		t->nnodes = 1;
		t->nodes[0] = 1;
	}
	if (t->nnodes > 1)
		t->node = rnic_topo_node_here();
}

static void read_topo(void)
{
	rnic_topo_read(&topo, NULL);
}

const struct rnic_topo *rnic_topo_get(void)
{
	pthread_once(&once, read_topo);
	return &topo;
}

void rnic_topo_nodes_text(const struct rnic_topo *t, char *buf, size_t room)
{
	size_t at = 0;

	buf[0] = '\0';
	for (int n = 0; n < RNIC_TOPO_NODES && at < room; n++) {
		int last = n;

		if (!rnic_topo_has_node(t, n))
			continue;
		while (rnic_topo_has_node(t, last + 1))
			last++;
		at += (size_t)snprintf(buf + at, room - at,
				       last > n ? "%s%d-%d" : "%s%d",
				       at ? "," : "", n, last);
		n = last;
	}
}
