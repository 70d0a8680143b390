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
	LIMIT_S = 60,  /* the whole program ends by then */
	THREADS = 4,   /* that ask at once */
	LEN = 1 << 16, /* bytes bound */
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

static void binds(void **state)
{
	char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int node;

	(void)state;
	assert_true(p != MAP_FAILED);
	assert_int_equal(rnic_topo_bind(p, LEN, rnic_topo_get()->node), 0);
	memset(p, 1, LEN);
	node = rnic_topo_node_of(p);
	/* kernels without NUMA do not answer */
	if (node != -ENOSYS && node != -EPERM)
		assert_int_equal(node, rnic_topo_get()->node);
	munmap(p, LEN);
}

static void no_page_has_no_node(void **state)
{
	char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int node;

	(void)state;
	assert_true(p != MAP_FAILED);
	node = rnic_topo_node_of(p);
	if (node == -ENOSYS || node == -EPERM)
		skip();
	assert_int_equal(node, -ENOENT);
	munmap(p, LEN);
	assert_int_equal(rnic_topo_node_of(p), -EFAULT);
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
		cmocka_unit_test(binds),
		cmocka_unit_test(no_page_has_no_node),
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
