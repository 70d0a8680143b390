/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Topology: hwloc for what there is, libnuma for where memory goes.
 */
#include "shm/topo.h"

#include <dlfcn.h>
#include <errno.h>
#include <hwloc.h>
#include <limits.h>
#include <numaif.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "shm/log.h"

enum {
	L2_DEFAULT = 1 << 20,		     /* if hwloc finds none */
	WORD_BITS = sizeof(long) * CHAR_BIT, /* of a node mask */
	NODES_MAX = 1024,		     /* nodes a mask can name */
	NODE_WORDS = NODES_MAX / WORD_BITS,  /* words of a mask */
	CPUS_MAX = 1 << 16, /* more than any kernel is built for */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct rnic_topo topo = { .cores = 1,
				 .l2_bytes = L2_DEFAULT,
				 .nnodes = 1 };

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

/* Caches and nodes; no look at devices, whose plugins have side effects. */
static void read_hwloc(void)
{
	hwloc_topology_t t;
	hwloc_obj_t l2;

	if (hwloc_topology_init(&t)) {
		no_hwloc();
		return;
	}
	hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
	if (hwloc_topology_load(t)) {
		no_hwloc();
	} else {
		l2 = hwloc_get_obj_by_type(t, HWLOC_OBJ_L2CACHE, 0);
		if (l2 && l2->attr->cache.size)
			topo.l2_bytes = l2->attr->cache.size;
		topo.nnodes = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE);
	}
	hwloc_topology_destroy(t);
}

/* The node of the CPU that runs us. */
static int node_here(void)
{
	unsigned int cpu, node;

	return getcpu(&cpu, &node) ? 0 : (int)node;
}

static void read_topo(void)
{
	topo.cores = count_cores();
	read_hwloc();
	if (topo.nnodes < 1)
		topo.nnodes = 1;
	if (topo.nnodes > 1)
		topo.node = node_here();
}

const struct rnic_topo *rnic_topo_get(void)
{
	pthread_once(&once, read_topo);
	return &topo;
}

/*
 * libnuma, loaded when there is more than one node to choose from: its
 * constructor reads the kernel's symbol table, which is not for a library to
 * do that somebody only looks at (contract L4).
 */
struct numa_calls {
	int (*available)(void); /* numa_available */
	/* mbind */
	long (*mbind)(void *, unsigned long, int, const unsigned long *,
		      unsigned long, unsigned int);
	/* numa_move_pages */
	int (*move_pages)(int, unsigned long, void **, const int *, int *, int);
};

static pthread_once_t numa_once = PTHREAD_ONCE_INIT;
static struct numa_calls numa;
static bool numa_ready;

static void load_numa(void)
{
	void *lib = dlopen("libnuma.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		rnic_log(RNIC_LOG_WARN,
			 "libnuma.so.1: %s: memory is placed "
			 "by the kernel",
			 dlerror());
		return;
	}
	*(void **)&numa.available = dlsym(lib, "numa_available");
	*(void **)&numa.mbind = dlsym(lib, "mbind");
	*(void **)&numa.move_pages = dlsym(lib, "numa_move_pages");
	numa_ready = numa.available && numa.mbind && numa.move_pages &&
		     numa.available() >= 0;
}

int rnic_topo_bind(void *p, size_t len, int node)
{
	unsigned long mask[NODE_WORDS] = { 0 };
	int ret = 0;

	if (rnic_topo_get()->nnodes < 2 || node < 0 || node >= NODES_MAX)
		return 0;
	pthread_once(&numa_once, load_numa);
	if (!numa_ready)
		return 0;
	mask[node / WORD_BITS] |= 1UL << node % WORD_BITS;
	if (numa.mbind(p, len, MPOL_PREFERRED, mask, NODES_MAX, 0))
		ret = -errno;
	if (ret)
		rnic_log(RNIC_LOG_WARN, "mbind of %zu bytes to node %d: %s",
			 len, node, strerror(-ret));
	return ret;
}

int rnic_topo_node_of(const void *p)
{
	void *page = (void *)(uintptr_t)p;
	int status = -ENOENT;

	pthread_once(&numa_once, load_numa);
	if (!numa_ready)
		return -ENOSYS;
	if (numa.move_pages(0, 1, &page, NULL, &status, 0))
		return -errno;
	return status;
}
