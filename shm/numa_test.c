/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Placement: what each policy means on machines that hwloc makes up, and what
 * the kernel makes of it on this one.
 */
#include "shm/numa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <numaif.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/device.h"
#include "shm/log.h"
#include "tests/quiet_map.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

enum { PAGE = 4096, PAGES = 700, LIMIT_S = 60 };

static char said[512]; /* last message */

static void sink(enum rnic_log_level level, const char *msg)
{
	(void)level;
	snprintf(said, sizeof(said), "%s", msg);
}

/* Four nodes with gaps, taken for this machine. */
static struct rnic_topo machine(void)
{
	struct rnic_topo t;

	rnic_topo_read(&t, "NUMANode:4(indexes=0,2,5,70) core:2 pu:1");
	t.real = true;
	return t;
}

static bool is(const struct rnic_numa_plan *p, int policy, unsigned long low,
	       unsigned long next)
{
	bool rest = true;

	for (int i = 2; i < RNIC_TOPO_WORDS; i++)
		rest = rest && !p->mask[i];
	return rest && p->policy == policy && p->mask[0] == low &&
	       p->mask[1] == next;
}

static void plans(void **state)
{
	struct rnic_topo t = machine();
	struct rnic_numa n = { .mode = RNIC_NUMA_LOCAL, .home = 5 };
	struct rnic_numa_plan p;

	(void)state;
	rnic_numa_plan(&n, &t, 2, &p);
	assert_true(is(&p, MPOL_PREFERRED, 1UL << 2, 0));
	rnic_numa_plan(&n, &t, 70, &p);
	assert_true(is(&p, MPOL_PREFERRED, 0, 1UL << 6));
	/* a node without memory: the kernel knows its neighbours */
	rnic_numa_plan(&n, &t, 3, &p);
	assert_true(is(&p, MPOL_DEFAULT, 0, 0));
	n.mode = RNIC_NUMA_NIC;
	rnic_numa_plan(&n, &t, 2, &p);
	assert_true(is(&p, MPOL_BIND, 1UL << 5, 0));
	n.mode = RNIC_NUMA_PREFERRED;
	rnic_numa_plan(&n, &t, 2, &p);
	assert_true(is(&p, MPOL_PREFERRED, 1UL << 5, 0));
	n.mode = RNIC_NUMA_INTERLEAVE;
	rnic_numa_plan(&n, &t, 2, &p);
	assert_true(is(&p, MPOL_INTERLEAVE, 1 | 1UL << 2 | 1UL << 5, 1UL << 6));
	n.mode = RNIC_NUMA_OFF;
	rnic_numa_plan(&n, &t, 2, &p);
	assert_true(is(&p, MPOL_DEFAULT, 0, 0));
}

/* One node, or a machine that is not this one: nothing is bound. */
static void nothing_to_choose(void **state)
{
	struct rnic_numa n = { .mode = RNIC_NUMA_NIC };
	struct rnic_numa_plan p;
	struct rnic_topo t;

	(void)state;
	rnic_topo_read(&t, "NUMANode:1 core:2 pu:1");
	t.real = true;
	rnic_numa_plan(&n, &t, 0, &p);
	assert_int_equal(p.policy, MPOL_DEFAULT);
	rnic_topo_read(&t, "NUMANode:2 core:2 pu:1");
	rnic_numa_plan(&n, &t, 0, &p);
	assert_int_equal(p.policy, MPOL_DEFAULT);
}

static void contract_N1_bad_home(void **state)
{
	struct rnic_device_cfg cfg = { .numa = { RNIC_NUMA_NIC, 1000 } };
	struct rnic_device d;
	struct rnic_numa n;

	(void)state;
	assert_int_equal(rnic_numa_init(&n, RNIC_NUMA_NIC, 1000), -EINVAL);
	assert_non_null(strstr(said, "1000"));
	assert_non_null(strstr(said, "allowed: 0"));
	assert_int_equal(rnic_numa_init(&n, RNIC_NUMA_PREFERRED, -2), -EINVAL);
	assert_int_equal(rnic_numa_init(&n, RNIC_NUMA_LOCAL, 1000), 0);
	assert_int_equal(rnic_numa_init(&n, RNIC_NUMA_NIC, 0), 0);
	assert_int_equal(n.home, 0);
	assert_int_equal(rnic_numa_init(&n, RNIC_NUMA_NIC, RNIC_NUMA_HERE), 0);
	assert_int_equal(n.home, rnic_topo_get()->node);
	assert_int_equal(rnic_device_open(&d, &cfg), -EINVAL);
}

static char *pages(int flags)
{
	char *p = quiet_map(PAGES * PAGE, PROT_READ | PROT_WRITE,
			    flags | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	/* page by page, whatever the machine likes */
	madvise(p, PAGES * PAGE, MADV_NOHUGEPAGE);
	return p;
}

/* The policy that the kernel has for @p. */
static int policy_at(char *p, unsigned long *low)
{
	unsigned long mask[RNIC_TOPO_WORDS] = { 0 };
	int mode = -1;

	if (syscall(SYS_get_mempolicy, &mode, mask, RNIC_TOPO_NODES + 1, p,
		    MPOL_F_ADDR))
		return -errno;
	*low = mask[0];
	return mode;
}

/* On this machine, where there may be one node only: the kernel obeys. */
static void contract_N1_applied(void **state)
{
	static const int policies[] = { MPOL_PREFERRED, MPOL_BIND,
					MPOL_INTERLEAVE };
	struct rnic_numa_plan p = { .mask = { 1 } };
	int node[PAGES];
	unsigned long low;

	(void)state;
	for (int i = 0; i < 3; i++) {
		char *m = pages(MAP_SHARED);
		int ret;

		p.policy = policies[i];
		ret = rnic_numa_apply(&p, m, PAGES * PAGE);
		if (ret == -ENOSYS || ret == -EPERM)
			skip();
		assert_int_equal(ret, 0);
		assert_int_equal(policy_at(m + PAGE, &low), policies[i]);
		assert_int_equal(low, 1);
		memset(m, 1, PAGES * PAGE);
		assert_int_equal(rnic_numa_where(m, node, PAGES), 0);
		for (int k = 0; k < PAGES; k++)
			assert_int_equal(node[k], 0);
		munmap(m, PAGES * PAGE);
	}
}

static void refused_node(void **state)
{
	struct rnic_numa_plan p = { .policy = MPOL_BIND };
	char *m = pages(MAP_SHARED);
	int ret;

	(void)state;
	p.mask[RNIC_TOPO_WORDS - 1] = 1UL << (RNIC_TOPO_BITS - 1);
	said[0] = '\0';
	ret = rnic_numa_apply(&p, m, PAGES * PAGE);
	if (ret == -ENOSYS || ret == -EPERM)
		skip();
	assert_int_equal(ret, -EINVAL);
	assert_non_null(strstr(said, "mbind"));
	munmap(m, PAGES * PAGE);
}

/* Pages in more than one batch; some touched, some not, some not mapped. */
static void contract_N1_read_back(void **state)
{
	char *m = pages(MAP_PRIVATE);
	int node[PAGES], ret, here = rnic_topo_node_here();

	(void)state;
	for (int i = 0; i < PAGES; i += 3)
		m[i * PAGE + 7] = 1;
	munmap(m + 10 * PAGE, PAGE);
	ret = rnic_numa_where(m + 7, node, PAGES);
	if (ret == -ENOSYS || ret == -EPERM)
		skip();
	assert_int_equal(ret, 0);
	for (int i = 0; i < PAGES; i++) {
		if (i == 10)
			assert_int_equal(node[i], -EFAULT);
		else if (i % 3)
			assert_int_equal(node[i], -ENOENT);
		else if (rnic_topo_get()->nnodes < 2)
			assert_int_equal(node[i], here);
		else
			assert_true(node[i] >= 0);
	}
	munmap(m, PAGES * PAGE);
}

/* A device's tables, heads and memory lie where the policy says. */
static void contract_N1_device(void **state)
{
	struct rnic_device_cfg cfg = { .heap_bytes = 1 << 20 };
	int node[4];

	(void)state;
	for (int m = RNIC_NUMA_LOCAL; m <= RNIC_NUMA_OFF; m++) {
		struct rnic_device d;
		struct rnic_place p;
		uint64_t off;
		void *mem;

		cfg.numa.mode = (enum rnic_numa_mode)m;
		assert_int_equal(rnic_device_open(&d, &cfg), 0);
		assert_int_equal(rnic_place_open(&d, &p), 0);
		assert_int_equal(rnic_place_pool(&p), 0);
		assert_int_equal(
			rnic_arena_alloc(&d.user, 4 * PAGE, 0, &mem, &off), 0);
		memset(mem, 1, 4 * PAGE);
		p.pool[0] = 1;
		if (!rnic_numa_where(mem, node, 4))
			assert_true(
				rnic_topo_has_node(rnic_topo_get(), node[3]));
		if (!rnic_numa_where(p.pool, node, 1) && m == RNIC_NUMA_NIC)
			assert_int_equal(node[0], d.numa.home);
		if (!rnic_numa_where(d.hdr, node, 1) && m == RNIC_NUMA_NIC)
			assert_int_equal(node[0], d.numa.home);
		rnic_place_close(&p);
		rnic_device_close(&d);
	}
}

/* ---- a machine that has several nodes: make check-numa boots one ---- */

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "line %d: %s\n", __LINE__, #cond);     \
			_exit(1);                                              \
		}                                                              \
	} while (0)

/* The node number @i, round and round, of those with memory. */
static int nth_node(int i)
{
	const struct rnic_topo *t = rnic_topo_get();

	i %= t->nnodes;
	for (int n = 0;; n++)
		if (rnic_topo_has_node(t, n) && !i--)
			return n;
}

/* From here on this thread runs on @node. */
static void run_on(int node)
{
	unsigned int first = 0;
	cpu_set_t set;
	char file[64];
	FILE *f;

	snprintf(file, sizeof(file), "/sys/devices/system/node/node%d/cpulist",
		 node);
	f = fopen(file, "r");
	CHECK(f && fscanf(f, "%u", &first) == 1);
	fclose(f);
	CPU_ZERO(&set);
	CPU_SET(first, &set);
	CHECK(!sched_setaffinity(0, sizeof(set), &set));
	CHECK(rnic_topo_node_here() == node);
}

/* Pages of @p on each node that a mask can name. */
static void count_pages(void *p, size_t len, int *count)
{
	int *node = calloc(len / PAGE, sizeof(*node));

	CHECK(node);
	memset(count, 0, RNIC_TOPO_NODES * sizeof(*count));
	madvise(p, len, MADV_POPULATE_READ);
	CHECK(!rnic_numa_where(p, node, len / PAGE));
	for (size_t i = 0; i < len / PAGE; i++) {
		CHECK(node[i] >= 0 && node[i] < RNIC_TOPO_NODES);
		count[node[i]]++;
	}
	free(node);
}

/* All of it is where @n says to a thread on @here. */
static void lies_as(const struct rnic_numa *n, int here, void *p, size_t len)
{
	static int count[RNIC_TOPO_NODES];
	const struct rnic_topo *t = rnic_topo_get();
	int pages_there = (int)(len / PAGE);
	int node = n->mode == RNIC_NUMA_LOCAL ? here : n->home;
	unsigned long low;

	count_pages(p, len, count);
	if (n->mode == RNIC_NUMA_OFF) {
		CHECK(policy_at(p, &low) == MPOL_DEFAULT);
		return;
	}
	if (n->mode != RNIC_NUMA_INTERLEAVE) {
		CHECK(count[node] == pages_there);
		return;
	}
	for (int i = 0; i < RNIC_TOPO_NODES; i++)
		if (rnic_topo_has_node(t, i))
			CHECK(count[i] >= pages_there / t->nnodes - 1);
}

enum { ARENA = 64 * PAGE };

/* Tables, head, pool and device memory, all of their pages. */
static void device_lies_as(const struct rnic_device_cfg *cfg, int here)
{
	struct rnic_device d;
	struct rnic_place p;
	uint64_t off;
	void *mem;

	CHECK(!rnic_device_open(&d, cfg) && !rnic_place_open(&d, &p));
	CHECK(!rnic_place_pool(&p));
	CHECK(!rnic_arena_alloc(&d.user, ARENA, 0, &mem, &off));
	CHECK(d.numa.home ==
	      (cfg->numa.home == RNIC_NUMA_HERE ? here : cfg->numa.home));
	lies_as(&d.numa, here, d.hdr, d.hdr->cache_off & ~(PAGE - 1));
	lies_as(&d.numa, here, p.head,
		sizeof(struct rnic_ep_head) & ~(size_t)(PAGE - 1));
	lies_as(&d.numa, here, p.pool, d.hdr->pool_bytes);
	lies_as(&d.numa, here, mem, ARENA);
	/* what is made later follows the thread, or the home node */
	here = nth_node(here + 1);
	run_on(here);
	CHECK(!rnic_arena_alloc(&d.user, ARENA, 0, &mem, &off));
	lies_as(&d.numa, here, mem, ARENA);
	rnic_place_close(&p);
	rnic_device_close(&d);
}

/* Every policy, from node number @i, with and without a home node said. */
static void placed_from(int i)
{
	struct rnic_device_cfg cfg = { .heap_bytes = 1 << 20,
				       .pool_bytes = 1 << 20 };

	for (int m = RNIC_NUMA_LOCAL; m <= RNIC_NUMA_OFF; m++)
		for (int home = 0; home < 2; home++) {
			cfg.numa.mode = (enum rnic_numa_mode)m;
			cfg.numa.home = home ? nth_node(i + 2) : RNIC_NUMA_HERE;
			run_on(nth_node(i));
			device_lies_as(&cfg, nth_node(i));
		}
	_exit(0);
}

static void contract_N1_placed(void **state)
{
	int n = rnic_topo_get()->nnodes, status;

	(void)state;
	if (n < 2) {
		print_message("one node: make check-numa has four\n");
		skip();
	}
	for (int i = 0; i < n && i < 8; i++) {
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			placed_from(i);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* ---- machines that hwloc makes up, taken for this one ---- */

enum { NO_SUCH = 900, SKIP = 77 }; /* a node that kernels do not have */

/* Whether the pages at @p of an open device are bound to node 0. */
static bool bound(void *p)
{
	unsigned long low;

	return policy_at(p, &low) == MPOL_BIND && low == 1;
}

/* Tables, head, pool, heap and device memory are bound before their pages. */
static int everything_is_bound(void)
{
	struct rnic_device_cfg cfg = { .heap_bytes = 1 << 20,
				       .numa = { RNIC_NUMA_NIC, 0 } };
	struct rnic_device d;
	struct rnic_place p;
	uint64_t off;
	void *mem;

	if (rnic_device_open(&d, &cfg) || rnic_place_open(&d, &p) ||
	    rnic_place_pool(&p) || rnic_place_heap(&p) ||
	    rnic_arena_alloc(&d.user, PAGE, 0, &mem, &off))
		return 2;
	return !bound(d.hdr) + !bound(p.head) + !bound(p.lanes) +
	       !bound(p.pool) + !bound(p.heap) + !bound(mem);
}

/* Only NIC promises a node; it says so when it cannot be had. */
static int strict_or_not(void)
{
	struct rnic_device_cfg cfg = { .heap_bytes = 1 << 20,
				       .numa = { RNIC_NUMA_NIC, NO_SUCH } };
	struct rnic_device d;

	if (rnic_device_open(&d, &cfg) != -EINVAL || !strstr(said, "mbind"))
		return 3;
	cfg.numa.mode = RNIC_NUMA_PREFERRED;
	if (rnic_device_open(&d, &cfg))
		return 4;
	rnic_device_close(&d);
	return 0;
}

/* This machine, as hwloc(7) is told that it is. */
static void pretend(const char *synthetic)
{
	setenv("HWLOC_SYNTHETIC", synthetic, 1);
	setenv("HWLOC_THISSYSTEM", "1", 1);
}

static int on_two_nodes(void)
{
	struct rnic_numa_plan p = { .policy = MPOL_BIND, .mask = { 1 } };
	char *m = pages(MAP_SHARED);
	int ret;

	pretend("NUMANode:2(indexes=0,900) core:1 pu:1");
	if (rnic_numa_apply(&p, m, PAGE))
		return SKIP;
	ret = everything_is_bound();
	return ret ? ret : strict_or_not();
}

/* Any node may be home; where none is said it is the one we run on. */
static int on_four_nodes(void)
{
	const enum rnic_numa_mode nic = RNIC_NUMA_NIC;
	int here = rnic_topo_node_here();
	struct rnic_numa_plan p;
	struct rnic_numa n;

	pretend("node:4 core:2 pu:1");
	CHECK(rnic_topo_get()->nnodes == 4 && rnic_topo_get()->node == here);
	for (int home = 0; home < 4; home++) {
		CHECK(!rnic_numa_init(&n, nic, home) && n.home == home);
		rnic_numa_plan(&n, rnic_topo_get(), here, &p);
		CHECK(is(&p, MPOL_BIND, 1UL << home, 0));
	}
	CHECK(!rnic_numa_init(&n, nic, RNIC_NUMA_HERE) && n.home == here);
	CHECK(rnic_numa_init(&n, nic, 4) == -EINVAL);
	CHECK(strstr(said, "node 4") && strstr(said, "allowed: 0-3"));
	CHECK(!rnic_numa_init(&n, RNIC_NUMA_LOCAL, 4));
	rnic_numa_plan(&n, rnic_topo_get(), here, &p);
	CHECK(is(&p, MPOL_PREFERRED, 1UL << here, 0));
	CHECK(!rnic_numa_init(&n, RNIC_NUMA_INTERLEAVE, 4));
	rnic_numa_plan(&n, rnic_topo_get(), here, &p);
	CHECK(is(&p, MPOL_INTERLEAVE, 15, 0));
	return 0;
}

/* We run on a node without memory: no home for who insists on one. */
static int on_no_node(void)
{
	struct rnic_numa_plan p;
	struct rnic_numa n;

	pretend("Package:2 NUMANode:2(indexes=900,901,902,903) core:1 pu:2");
	CHECK(rnic_numa_init(&n, RNIC_NUMA_NIC, RNIC_NUMA_HERE) == -EINVAL);
	CHECK(strstr(said, "HOME_NODE") && strstr(said, "allowed: 900-903"));
	CHECK(!rnic_numa_init(&n, RNIC_NUMA_PREFERRED, RNIC_NUMA_HERE));
	rnic_numa_plan(&n, rnic_topo_get(), n.home, &p);
	CHECK(is(&p, MPOL_DEFAULT, 0, 0));
	CHECK(!rnic_numa_init(&n, RNIC_NUMA_NIC, 902));
	return 0;
}

/* Each in a process of its own, since the machine is looked at once. */
static int (*const machines[])(void) = { on_two_nodes, on_four_nodes,
					 on_no_node };

enum { MACHINES = sizeof(machines) / sizeof(*machines) };

static int statuses[MACHINES];

static void ended_well(void **state)
{
	int status = *(int *)*state;

	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIP)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void contract_N1_obeyed(void **state)
{
	ended_well(state);
}

static void contract_N1_home(void **state)
{
	ended_well(state);
}

static void contract_N1_no_home(void **state)
{
	ended_well(state);
}

/* Runs on machine @i. */
static bool visit(int i)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(LIMIT_S);
		_exit(machines[i]());
	}
	return pid > 0 && waitpid(pid, &statuses[i], 0) == pid;
}

int main(void)
{
	void *state[MACHINES] = { &statuses[0], &statuses[1], &statuses[2] };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans),
		cmocka_unit_test(nothing_to_choose),
		cmocka_unit_test(contract_N1_bad_home),
		cmocka_unit_test(contract_N1_applied),
		cmocka_unit_test(refused_node),
		cmocka_unit_test(contract_N1_read_back),
		cmocka_unit_test(contract_N1_device),
		cmocka_unit_test(contract_N1_placed),
		cmocka_unit_test_prestate(contract_N1_obeyed, state[0]),
		cmocka_unit_test_prestate(contract_N1_home, state[1]),
		cmocka_unit_test_prestate(contract_N1_no_home, state[2]),
	};

	alarm(LIMIT_S);
	rnic_log_sink(sink);
	/* before this process looks at the machine */
	for (int i = 0; i < MACHINES; i++)
		if (!visit(i))
			return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
