/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The asymmetric fence: its return values, with and without the kernel's
 * help, and that it orders the stores of another process.
 */
#include "shm/fence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/atomic.h"
#include "shm/child_kit.h"
#include "shm/log.h"

enum {
	LIMIT_S = 60,	/* the whole program ends by then */
	ROUNDS = 60000, /* of the store-load game */
	PHASES = 256,	/* steps by which one starts later */
	TRIES = 3,	/* of the control, on a busy machine */
};

static unsigned int logged;

static void count(enum rnic_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
	logged++;
}

static void need_fence(void)
{
	if (!rnic_fence_available())
		skip();
}

static int register_twice(void *arg)
{
	(void)arg;
	if (rnic_fence_registered())
		return 1;
	if (rnic_fence_register() || !rnic_fence_registered())
		return 2;
	if (rnic_fence_register() || !rnic_fence_registered())
		return 3;
	return rnic_fence_peers() ? 4 : 0;
}

static void registers_once(void **state)
{
	(void)state;
	need_fence();
	kit_in_child(register_twice, NULL);
}

/* ---- a kernel that refuses ---- */

/* From now on membarrier(2) fails with @err in this process. */
static int forbid(unsigned int err)
{
	rnic_log_sink(count);
	logged = 0;
	return kit_forbid(SYS_membarrier, err);
}

static int refused(void *arg)
{
	(void)arg;
	if (forbid(EPERM))
		return KIT_SKIP;
	if (rnic_fence_available())
		return 1;
	if (rnic_fence_register() != -EPERM || rnic_fence_registered())
		return 2;
	if (logged != 1)
		return 3;
	if (rnic_fence_peers() != -EPERM)
		return 4;
	return logged == 2 ? 0 : 5;
}

static int out_of_memory(void *arg)
{
	(void)arg;
	if (forbid(ENOMEM))
		return KIT_SKIP;
	if (rnic_fence_peers() != -ENOMEM)
		return 1;
	return logged == 1 ? 0 : 2;
}

static void refusal_is_an_error(void **state)
{
	(void)state;
	kit_in_child(refused, NULL);
	kit_in_child(out_of_memory, NULL);
}

/* ---- two processes ---- */

/*
 * Each stores its own word and loads the other's. One of them must see the
 * other: the parent fences for both, the child only keeps the compiler quiet.
 */
struct game {
	rnic_a32 round; /* written by the parent: go */
	char pad1[60];	/* words on lines of their own */
	rnic_a32 done;	/* written by the child: round finished */
	char pad2[60];
	rnic_a32 x; /* stored by the parent */
	char pad3[60];
	rnic_a32 y; /* stored by the child */
	char pad4[60];
	rnic_a32 saw; /* what the child loaded from x */
};

static void wait_for(const rnic_a32 *a, uint32_t value)
{
	unsigned int n = 0;

	while (rnic_load32_acquire(a) != value)
		if (++n % 1000 == 0)
			sched_yield();
}

/* The two begin at the same moment in some phases only: all are tried. */
static void delay(uint32_t steps)
{
	while (steps--)
		rnic_compiler_barrier();
}

static void play_child(struct game *g)
{
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		wait_for(&g->round, i);
		rnic_store32_relaxed(&g->y, i);
		rnic_compiler_barrier();
		/* relaxed: that is what is tried */
		rnic_store32_relaxed(&g->saw, rnic_load32_relaxed(&g->x));
		rnic_store32_release(&g->done, i);
	}
}

/* Returns in how many rounds neither saw the other. */
static unsigned int play_parent(struct game *g, int (*fence)(void))
{
	unsigned int blind = 0;

	for (uint32_t i = 1; i <= ROUNDS; i++) {
		uint32_t saw;

		rnic_store32_release(&g->round, i);
		delay(i % PHASES);
		rnic_store32_relaxed(&g->x, i);
		assert_int_equal(fence(), 0);
		saw = rnic_load32_relaxed(&g->y);
		wait_for(&g->done, i);
		if (saw != i && rnic_load32_relaxed(&g->saw) != i)
			blind++;
	}
	return blind;
}

static unsigned int play(int (*fence)(void))
{
	struct game *g = mmap(NULL, sizeof(*g), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int blind;
	int status;
	pid_t pid;

	assert_true(g != MAP_FAILED);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(LIMIT_S);
		play_child(g);
		_exit(0);
	}
	assert_true(pid > 0);
	blind = play_parent(g, fence);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	munmap(g, sizeof(*g));
	return blind;
}

static int no_fence(void)
{
	rnic_compiler_barrier();
	return 0;
}

/*
 * The control first: on a machine so busy that the two never run at once
 * nothing goes wrong without a fence either, and the rest would prove nothing.
 */
static void orders_another_process(void **state)
{
	unsigned int blind = 0;

	(void)state;
	need_fence();
	assert_int_equal(rnic_fence_register(), 0);
	for (int i = 0; i < TRIES && !blind; i++)
		blind = play(no_fence);
	print_message("both blind without a fence: %u of %d rounds\n", blind,
		      ROUNDS);
	assert_int_equal(play(rnic_fence_peers), 0);
	if (!blind)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_once),
		cmocka_unit_test(refusal_is_an_error),
		cmocka_unit_test(orders_another_process),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
