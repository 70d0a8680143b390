/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * CMA with a child: whole, partial, forbidden, and with one that unmaps or
 * dies in the middle.
 */
#include "shm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/identity.h"
#include "shm/log.h"
#include "tests/quiet_map.h"

enum {
	PAGE = 4096,
	LEN = 3 * RNIC_VM_CHUNK + 100, /* bytes of a transfer */
	AREA = 4 * RNIC_VM_CHUNK,      /* bytes of the child's memory */
	LIMIT_S = 60,
	NOBODY = 65534,
};

static char *area; /* at the same address in both */
static char *buf;  /* ours */
static pid_t pid;  /* child */
static struct rnic_proc *peer;
static int go[2]; /* closing our end ends the child */

static void ignore(enum rnic_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
}

/* Until the parent closes its end; signals may come meanwhile. */
static bool await_end(void)
{
	ssize_t n;
	char c;

	do {
		n = read(go[0], &c, 1);
	} while (n < 0 && errno == EINTR);
	return n != 0;
}

/* A child that runs @fn, says it is ready, and waits for its end. */
static void start(void (*fn)(void))
{
	pid_t parent = getpid();
	uint64_t identity;
	int ready[2];
	char c;

	assert_int_equal(pipe(go) | pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() && getppid() != parent)
			_exit(1);
		alarm(LIMIT_S);
		close(go[1]);
		fn();
		_exit(write(ready[1], "", 1) != 1 || await_end());
	}
	close(go[0]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(rnic_identity_of((uint32_t)pid, &identity), 0);
	assert_int_equal(rnic_proc_get((uint32_t)pid, identity, &peer), 0);
}

static void stop(void)
{
	close(go[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	rnic_proc_put(peer);
}

static void stop_hard(void)
{
	kill(pid, SIGKILL);
	stop();
}

static int setup(void **state)
{
	(void)state;
	rnic_log_sink(ignore);
	area = quiet_private(AREA);
	buf = malloc(AREA);
	return area == MAP_FAILED || !buf;
}

static int teardown(void **state)
{
	(void)state;
	munmap(area, AREA);
	free(buf);
	rnic_log_sink(NULL);
	return 0;
}

static void fill(void)
{
	for (int i = 0; i < AREA; i++)
		area[i] = (char)(i * 7 + i / PAGE);
}

static void with_hole(void)
{
	fill();
	munmap(area + RNIC_VM_CHUNK + 5 * PAGE, PAGE);
}

static void read_only(void)
{
	fill();
	mprotect(area, PAGE, PROT_NONE);
	mprotect(area + PAGE, AREA - PAGE, PROT_READ);
}

static void other_user(void)
{
	if (setresuid(NOBODY, NOBODY, NOBODY))
		_exit(1);
}

static void both_ways(void **state)
{
	size_t moved = 42;

	(void)state;
	start(fill);
	fill();
	assert_int_equal(
		rnic_vm_read(peer, buf, (uintptr_t)area + 3, LEN, &moved), 0);
	assert_int_equal(moved, LEN);
	assert_memory_equal(buf, area + 3, LEN);
	memset(area, 9, AREA);
	assert_int_equal(
		rnic_vm_write(peer, (uintptr_t)area + 5, area, LEN, &moved), 0);
	assert_int_equal(moved, LEN);
	assert_int_equal(rnic_vm_read(peer, buf, (uintptr_t)area, AREA, &moved),
			 0);
	assert_int_equal(buf[4], 4 * 7);
	assert_memory_equal(buf + 5, area, LEN);
	assert_int_equal(buf[5 + LEN],
			 (char)((5 + LEN) * 7 + (5 + LEN) / PAGE));
	assert_int_equal(rnic_vm_read(peer, buf, 0, 0, &moved), 0);
	assert_int_equal(moved, 0);
	stop();
}

static void in_one_call(void **state)
{
	const size_t hole = RNIC_VM_CHUNK + 5 * PAGE;
	uint64_t at;

	(void)state;
	start(with_hole);
	fill();
	at = (uintptr_t)area;
	assert_true(rnic_vm_move(peer, false, buf, at + 3, RNIC_VM_CHUNK));
	assert_memory_equal(buf, area + 3, RNIC_VM_CHUNK);
	memset(buf, 9, PAGE);
	assert_true(rnic_vm_move(peer, true, buf, at + 5, 64));
	assert_true(rnic_vm_move(peer, false, buf + PAGE, at + 4, 66));
	assert_int_equal(buf[PAGE], area[4]);
	assert_memory_equal(buf + PAGE + 1, buf, 64);
	assert_int_equal(buf[PAGE + 65], area[69]);
	/* a part, and nothing: not done */
	assert_false(rnic_vm_move(peer, true, buf, at + hole - 1, 2));
	assert_false(rnic_vm_move(peer, false, buf, at + hole, 1));
	/* in the same tick: what a dead one's number brings does not count */
	rnic_store32_relaxed(&peer->dead, 1);
	assert_false(rnic_vm_move(peer, false, buf, at, 8));
	assert_false(rnic_vm_move(peer, true, buf, at, 8));
	rnic_store32_relaxed(&peer->dead, 0);
	stop();
}

/* Everything before the hole, and nothing after it. */
static void stops_at_a_hole(void **state)
{
	const size_t whole = RNIC_VM_CHUNK + 5 * PAGE;
	size_t moved;

	(void)state;
	start(with_hole);
	fill();
	memset(buf, 0, AREA);
	assert_int_equal(
		rnic_vm_read(peer, buf, (uintptr_t)area + 9, LEN, &moved),
		-EFAULT);
	assert_int_equal(moved, whole - 9);
	assert_memory_equal(buf, area + 9, moved);
	assert_int_equal(buf[moved], 0);
	assert_int_equal(rnic_vm_write(peer, (uintptr_t)area + whole - 1, buf,
				       5, &moved),
			 -EFAULT);
	assert_int_equal(moved, 1);
	assert_int_equal(
		rnic_vm_read(peer, buf, (uintptr_t)area + whole, 1, &moved),
		-EFAULT);
	assert_int_equal(moved, 0);
	stop();
}

static void respects_protection(void **state)
{
	size_t moved;

	(void)state;
	start(read_only);
	assert_int_equal(rnic_vm_read(peer, buf, (uintptr_t)area, 1, &moved),
			 -EFAULT);
	assert_int_equal(
		rnic_vm_read(peer, buf, (uintptr_t)area + PAGE, PAGE, &moved),
		0);
	assert_int_equal(
		rnic_vm_write(peer, (uintptr_t)area + PAGE, buf, PAGE, &moved),
		-EFAULT);
	assert_int_equal(moved, 0);
	assert_int_equal(rnic_vm_probe(peer, (uintptr_t)area), 0);
	stop();
}

/* Our own page can be the one that is missing. */
static void local_fault(void **state)
{
	size_t moved;

	(void)state;
	start(fill);
	munmap(area + 2 * PAGE, PAGE);
	assert_int_equal(
		rnic_vm_read(peer, area, (uintptr_t)area, 4 * PAGE, &moved),
		-EFAULT);
	assert_int_equal(moved, 2 * PAGE);
	stop();
}

static void dead_peer(void **state)
{
	size_t moved = 1;

	(void)state;
	start(fill);
	assert_int_equal(rnic_vm_probe(peer, (uintptr_t)area), 0);
	kill(pid, SIGKILL);
	/* dead, and not yet waited for */
	waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	assert_int_equal(rnic_vm_read(peer, buf, (uintptr_t)area, 8, &moved),
			 -ESRCH);
	assert_int_equal(moved, 0);
	assert_int_equal(rnic_vm_write(peer, (uintptr_t)area, buf, 8, &moved),
			 -ESRCH);
	assert_int_equal(rnic_vm_probe(peer, (uintptr_t)area), -ESRCH);
	assert_false(rnic_vm_move(peer, false, buf, (uintptr_t)area, 8));
	assert_false(rnic_vm_move(peer, true, buf, (uintptr_t)area, 8));
	stop();
}

/* A dead peer's number is nobody: not even if it lives again. */
static void other_process_with_that_pid(void **state)
{
	struct rnic_proc p = { .pid = 1, .fd = -1 };
	size_t moved;

	(void)state;
	start(fill);
	p.pid = (uint32_t)pid;
	p.identity = peer->identity;
	assert_int_equal(rnic_vm_read(&p, buf, (uintptr_t)area, 8, &moved), 0);
	/* in another tick of the clock */
	rnic_store64_relaxed(&p.looked, 0);
	p.identity++;
	assert_int_equal(rnic_vm_read(&p, buf, (uintptr_t)area, 8, &moved),
			 -ESRCH);
	assert_int_equal(rnic_vm_write(&p, (uintptr_t)area, buf, 8, &moved),
			 -ESRCH);
	assert_false(rnic_vm_move(&p, false, buf, (uintptr_t)area, 8));
	assert_false(rnic_vm_move(&p, true, buf, (uintptr_t)area, 8));
	p.identity--;
	rnic_store32_relaxed(&p.dead, 1);
	assert_int_equal(rnic_vm_read(&p, buf, (uintptr_t)area, 8, &moved),
			 -ESRCH);
	stop();
}

static void forbidden(void **state)
{
	struct rnic_proc *p;
	int status;
	pid_t c;

	(void)state;
	if (geteuid())
		skip();
	start(fill);
	p = peer;
	c = fork();
	if (!c) {
		size_t moved;

		alarm(LIMIT_S);
		other_user();
		_exit(rnic_vm_probe(p, (uintptr_t)area) != -EPERM ||
		      rnic_vm_read(p, buf, (uintptr_t)area, 8, &moved) !=
			      -EPERM ||
		      moved);
	}
	assert_int_equal(waitpid(c, &status, 0), c);
	assert_int_equal(status, 0);
	stop();
}

/* Both directions until another process has killed the peer. */
static void dies_in_the_middle(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		size_t moved;
		pid_t killer;
		int ret;

		start(fill);
		killer = fork();
		if (!killer) {
			usleep((useconds_t)(round * 100));
			kill(pid, SIGKILL);
			_exit(0);
		}
		do {
			ret = rnic_vm_read(peer, buf, (uintptr_t)area, LEN,
					   &moved);
			assert_true(moved <= LEN);
			assert_true(ret || moved == LEN);
			if (!ret)
				ret = rnic_vm_write(peer, (uintptr_t)area, buf,
						    LEN, &moved);
		} while (!ret);
		assert_int_equal(ret, -ESRCH);
		waitpid(killer, NULL, 0);
		stop_hard();
	}
}

static void unmap_on_signal(int sig)
{
	(void)sig;
	munmap(area + RNIC_VM_CHUNK, PAGE);
}

static void fill_and_listen(void)
{
	fill();
	signal(SIGUSR1, unmap_on_signal);
}

static void unmaps_in_the_middle(void **state)
{
	size_t moved;
	int ret;

	(void)state;
	for (int round = 0; round < 20; round++) {
		start(fill_and_listen);
		kill(pid, SIGUSR1);
		do {
			ret = rnic_vm_read(peer, buf, (uintptr_t)area, LEN,
					   &moved);
		} while (!ret);
		assert_int_equal(ret, -EFAULT);
		assert_int_equal(moved, RNIC_VM_CHUNK);
		stop_hard();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_ways, setup, teardown),
		cmocka_unit_test_setup_teardown(in_one_call, setup, teardown),
		cmocka_unit_test_setup_teardown(stops_at_a_hole, setup,
						teardown),
		cmocka_unit_test_setup_teardown(respects_protection, setup,
						teardown),
		cmocka_unit_test_setup_teardown(local_fault, setup, teardown),
		cmocka_unit_test_setup_teardown(dead_peer, setup, teardown),
		cmocka_unit_test_setup_teardown(other_process_with_that_pid,
						setup, teardown),
		cmocka_unit_test_setup_teardown(forbidden, setup, teardown),
		cmocka_unit_test_setup_teardown(dies_in_the_middle, setup,
						teardown),
		cmocka_unit_test_setup_teardown(unmaps_in_the_middle, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
