/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Placement by libnuma, see numa.h.
 *
 * libnuma is loaded when memory is bound or asked about: its constructor
 * reads the kernel's symbol table, which is not for a library to do that
 * somebody only looks at (contract L4).
 */
#include "shm/numa.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <numaif.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "shm/layout.h"
#include "shm/log.h"
#include "shm/vma.h"

enum { BATCH = 512 }; /* pages asked about in one call */

struct numa_calls {
	int (*available)(void); /* numa_available */
	/* mbind */
	long (*mbind)(void *, unsigned long, int, const unsigned long *,
		      unsigned long, unsigned int);
	/* numa_move_pages */
	int (*move_pages)(int, unsigned long, void **, const int *, int *, int);
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct numa_calls numa;
static bool ready;

static void load(void)
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
	ready = numa.available && numa.mbind && numa.move_pages &&
		numa.available() >= 0;
}

static bool uses_home(enum rnic_numa_mode mode)
{
	return mode == RNIC_NUMA_NIC || mode == RNIC_NUMA_PREFERRED;
}

/* NIC promises the home node; preferred, the kernel takes its neighbours. */
static bool must_have_home(const struct rnic_numa *n, const struct rnic_topo *t)
{
	return n->mode == RNIC_NUMA_NIC && t->real && t->nnodes > 1;
}

int rnic_numa_init(struct rnic_numa *n, enum rnic_numa_mode mode, int home)
{
	const struct rnic_topo *t = rnic_topo_get();
	char nodes[128];

	*n = (struct rnic_numa){
		.mode = mode,
		.home = home == RNIC_NUMA_HERE ? rnic_topo_node_here() : home,
	};
	if (!uses_home(mode) || rnic_topo_has_node(t, n->home) ||
	    (home == RNIC_NUMA_HERE && !must_have_home(n, t)))
		return 0;
	rnic_topo_nodes_text(t, nodes, sizeof(nodes));
	rnic_log(RNIC_LOG_WARN,
		 "home node %d%s: not a node with memory that this process "
		 "may use; allowed: %s",
		 n->home,
		 home == RNIC_NUMA_HERE ? ", on which it runs (HOME_NODE=auto)"
					: "",
		 nodes);
	return -EINVAL;
}

static void plan_node(struct rnic_numa_plan *plan, int policy,
		      const struct rnic_topo *t, int node)
{
	if (!rnic_topo_has_node(t, node))
		return;
	plan->policy = policy;
	plan->mask[(unsigned int)node / RNIC_TOPO_BITS] |=
		1UL << (unsigned int)node % RNIC_TOPO_BITS;
}

void rnic_numa_plan(const struct rnic_numa *n, const struct rnic_topo *t,
		    int here, struct rnic_numa_plan *plan)
{
	*plan = (struct rnic_numa_plan){ .policy = MPOL_DEFAULT };
	if (!t->real || t->nnodes < 2)
		return;
	switch (n->mode) {
	case RNIC_NUMA_LOCAL:
		plan_node(plan, MPOL_PREFERRED, t, here);
		break;
	case RNIC_NUMA_NIC:
		plan_node(plan, MPOL_BIND, t, n->home);
		break;
	case RNIC_NUMA_PREFERRED:
		plan_node(plan, MPOL_PREFERRED, t, n->home);
		break;
	case RNIC_NUMA_INTERLEAVE:
		plan->policy = MPOL_INTERLEAVE;
		memcpy(plan->mask, t->nodes, sizeof(plan->mask));
		break;
	case RNIC_NUMA_OFF:
		break;
	}
}

int rnic_numa_apply(const struct rnic_numa_plan *plan, void *p, size_t len)
{
	int ret;

	if (plan->policy == MPOL_DEFAULT)
		return 0;
	pthread_once(&once, load);
	if (!ready)
		return -ENOSYS;
	/* the kernel takes one bit less than it is told of */
	if (!numa.mbind(p, len, plan->policy, plan->mask, RNIC_TOPO_NODES + 1,
			0))
		return 0;
	ret = -errno;
	rnic_log(RNIC_LOG_WARN,
		 "mbind of %zu bytes, policy %d, nodes 0x%lx...: %s", len,
		 plan->policy, plan->mask[0], strerror(-ret));
	return ret;
}

int rnic_numa_bind(const struct rnic_numa *n, void *p, size_t len)
{
	struct rnic_numa_plan plan;
	int ret;

	rnic_numa_plan(n, rnic_topo_get(), rnic_topo_node_here(), &plan);
	ret = rnic_numa_apply(&plan, p, len);
	return n->mode == RNIC_NUMA_NIC ? ret : 0;
}

/*
 * Linux before 6.12 says -EFAULT also of pages of anonymous memory that were
 * not touched: those are -ENOENT, as they are for others.
 */
static void tell_untouched(const char *page, int *node, size_t n)
{
	struct rnic_vma v = { .end = 0 };

	for (size_t i = 0; i < n; i++) {
		uint64_t at = (uintptr_t)page + i * RNIC_PAGE;

		if (node[i] != -EFAULT)
			continue;
		/* @v: what holds @at, or the first behind it */
		if (at >= v.end && rnic_vma_next(at, &v))
			return;
		if (v.start <= at)
			node[i] = -ENOENT;
	}
}

int rnic_numa_where(const void *p, int *node, size_t n)
{
	char *page = (char *)((uintptr_t)p & ~(uintptr_t)(RNIC_PAGE - 1));
	void *at[BATCH];

	pthread_once(&once, load);
	if (!ready)
		return -ENOSYS;
	for (size_t done = 0; done < n;) {
		size_t k = n - done < BATCH ? n - done : BATCH;

		for (size_t i = 0; i < k; i++)
			at[i] = page + (done + i) * RNIC_PAGE;
		if (numa.move_pages(0, k, at, NULL, node + done, 0))
			return -errno;
		done += k;
	}
	tell_untouched(page, node, n);
	return 0;
}
