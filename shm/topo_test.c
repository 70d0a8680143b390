/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The topology against what the kernel says by itself.
 */
#include "shm/topo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LIMIT_S = 60, /* the whole program ends by then */
	THREADS = 4,  /* that ask at once */
};

static pthread_barrier_t start;

static void *ask(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&start);
	return (void *)(uintptr_t)rnic_topo_get();
}

/* First in the program: nobody has asked before. */
static void threads_get_one_answer(void **state)
{
	pthread_t t[THREADS];
	void *got;

	(void)state;
	pthread_barrier_init(&start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, ask, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(t[i], &got), 0);
		assert_ptr_equal(got, rnic_topo_get());
	}
	pthread_barrier_destroy(&start);
}

static void answer_makes_sense(void **state)
{
	const struct rnic_topo *t = rnic_topo_get();
	cpu_set_t set;

	(void)state;
	if (!sched_getaffinity(0, sizeof(set), &set))
		assert_int_equal(t->cores, CPU_COUNT(&set));
	assert_in_range(t->l2_bytes, 16 << 10, 1 << 30);
	assert_true(t->nnodes >= 1);
	assert_true(t->node >= 0);
	assert_true(t->real);
	assert_true(rnic_topo_has_node(t, rnic_topo_node_here()));
	if (t->nnodes == 1)
		assert_int_equal(t->node, 0);
}

/* In a child that has not asked yet: on one CPU there is one core. */
static int pinned(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : (unsigned int)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return 77;
	return rnic_topo_get()->cores == 1 ? 0 : 1;
}

static void affinity_counts(void **state)
{
	int status = *(int *)*state;

	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Other machines, as hwloc describes them. */
static void other_machines(void **state)
{
	static const struct {
		const char *what;  /* description for hwloc */
		const char *nodes; /* as a text */
		int n;		   /* their number */
	} m[] = {
		{ "NUMANode:1 core:2 pu:2", "0", 1 },
		{ "NUMANode:2 L2Cache:2(size=3145728) core:1 pu:1", "0-1", 2 },
		{ "NUMANode:4(indexes=0,2,3,9) core:1 pu:1", "0,2-3,9", 4 },
		{ "Package:2 [NUMANode(memory=0)] core:2 pu:1", "0", 1 },
		{ "node:4 core:2 pu:1", "0-3", 4 },
		{ "Package:2 NUMANode:2 L3Cache:1 L2Cache:2(size=524288) "
		  "core:2 pu:2",
		  "0-3", 4 },
		{ "Package:2 NUMANode:1(indexes=4,6) L2Cache:2(size=524288) "
		  "core:1 pu:1",
		  "4,6", 2 },
	};
	struct rnic_topo t;
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(m) / sizeof(*m); i++) {
		rnic_topo_read(&t, m[i].what);
		assert_int_equal(t.nnodes, m[i].n);
		rnic_topo_nodes_text(&t, text, sizeof(text));
		assert_string_equal(text, m[i].nodes);
		if (i != 3)
			assert_false(t.real);
	}
	rnic_topo_read(&t, m[1].what);
	assert_int_equal(t.l2_bytes, 3145728);
	assert_true(rnic_topo_has_node(&t, 1));
	assert_false(rnic_topo_has_node(&t, 2));
	/* cores that share a cache: its size counts, not their number */
	for (int i = 5; i < 7; i++) {
		rnic_topo_read(&t, m[i].what);
		assert_int_equal(t.l2_bytes, 524288);
		assert_int_equal(t.cores, rnic_topo_get()->cores);
	}
	rnic_topo_read(&t, m[1].what);
	assert_false(rnic_topo_has_node(&t, -1));
	assert_false(rnic_topo_has_node(&t, RNIC_TOPO_NODES));
	rnic_topo_nodes_text(&t, text, 2);
	assert_string_equal(text, "0");
	/* nonsense: as if hwloc were not there */
	rnic_topo_read(&t, "no machine");
	assert_int_equal(t.nnodes, 1);
	assert_true(rnic_topo_has_node(&t, 0));
}

int main(void)
{
	int status = 0;
	void *state = &status;
	pid_t pid;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_get_one_answer),
		cmocka_unit_test(answer_makes_sense),
		cmocka_unit_test_prestate(affinity_counts, state),
		cmocka_unit_test(other_machines),
	};

	alarm(LIMIT_S);
	/* before this process asks: the answer would be inherited */
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(LIMIT_S);
		_exit(pinned());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
