/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Identities: what has one, who sees which, what changes it, what does not.
 */
#include "shm/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/child_kit.h"
#include "shm/log.h"

enum {
	LIMIT_S = 60,	/* the whole program ends by then */
	NOBODY = 65534, /* a user without rights */
	WAIT_MS = 5000, /* for something that happens at once */
};

static unsigned int logged;

static void count(enum rnic_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
	logged++;
}

static uint64_t id_of(pid_t pid)
{
	uint64_t id = 0;

	return rnic_identity_of((uint32_t)pid, &id) ? 0 : id;
}

/* The state letter of process @pid. */
static char state_of(pid_t pid)
{
	char path[64], line[512] = "", *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	p = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	return p ? p[2] : 0;
}

static bool reaches_state(pid_t pid, char state)
{
	for (int ms = 0; ms < WAIT_MS; ms++) {
		if (state_of(pid) == state)
			return true;
		usleep(1000);
	}
	return false;
}

static void is_stable(void **state)
{
	uint64_t a, b;

	(void)state;
	assert_int_equal(rnic_identity_self(&a), 0);
	assert_int_equal(rnic_identity_self(&b), 0);
	assert_int_equal(a, b);
	assert_int_equal(rnic_identity_of((uint32_t)getpid(), &b), 0);
	assert_int_equal(a, b);
	assert_true(rnic_identity_same(a, b));
}

static int tell_self(void *arg)
{
	uint64_t id;

	if (rnic_identity_self(&id))
		return 1;
	if (write(*(int *)arg, &id, sizeof(id)) != sizeof(id))
		return 2;
	return kit_idle(NULL);
}

static void others_see_the_same(void **state)
{
	int pipe_fd[2];
	uint64_t told, self;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(pipe_fd), 0);
	/* a start time differs from the last one after a clock tick */
	usleep(30000);
	pid = kit_spawn(tell_self, &pipe_fd[1]);
	assert_int_equal(read(pipe_fd[0], &told, sizeof(told)), sizeof(told));
	assert_int_equal(told, id_of(pid));
	assert_int_equal(rnic_identity_self(&self), 0);
	assert_false(rnic_identity_same(told, self));
	kit_end(pid);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

static int rename_self(void *arg)
{
	uint64_t before, after;

	(void)arg;
	if (rnic_identity_self(&before) || prctl(PR_SET_NAME, ") Z 1 (2 3) R"))
		return 1;
	return rnic_identity_self(&after) || before != after ? 2 : 0;
}

static void name_does_not_matter(void **state)
{
	(void)state;
	kit_in_child(rename_self, NULL);
}

struct exec {
	int go;	 /* a byte from here begins it */
	int pad; /* zeros in its argument: they move the stack */
};

static int exec_when_told(void *arg)
{
	const struct exec *e = arg;
	char c, seconds[256];

	if (read(e->go, &c, 1) != 1)
		return 1;
	snprintf(seconds, sizeof(seconds), "%0*d", e->pad, 60);
	execl("/bin/sleep", "sleep", seconds, (char *)NULL);
	return 2;
}

static bool changes(pid_t pid, uint64_t before)
{
	for (int ms = 0; ms < WAIT_MS / 5; ms++) {
		if (!rnic_identity_same(before, id_of(pid)))
			return true;
		usleep(1000);
	}
	return false;
}

/* By accident the stack may be where it was, but not time after time. */
static void exec_changes_it(void **state)
{
	int go[2], changed = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct exec e = { .pad = 2 + i * 64 };
		uint64_t before;
		pid_t pid;

		assert_int_equal(pipe(go), 0);
		e.go = go[0];
		pid = kit_spawn(exec_when_told, &e);
		before = id_of(pid);
		assert_true(before);
		assert_int_equal(write(go[1], "x", 1), 1);
		changed += changes(pid, before);
		/* it is there still: not gone, but another */
		assert_true(id_of(pid));
		kit_end(pid);
		close(go[0]);
		close(go[1]);
	}
	assert_true(changed >= 2);
}

/* ---- the end of a process ---- */

static void nobody_is_not_logged(void **state)
{
	uint64_t id = 5;
	pid_t pid = kit_spawn(kit_idle, NULL);

	(void)state;
	kit_end(pid);
	logged = 0;
	rnic_log_sink(count);
	assert_int_equal(rnic_identity_of((uint32_t)pid, &id), -ESRCH);
	assert_int_equal(rnic_identity_of(0, &id), -ESRCH);
	rnic_log_sink(NULL);
	assert_int_equal(logged, 0);
	assert_int_equal(id, 5);
}

static void zombie_is_nobody(void **state)
{
	uint64_t id;
	pid_t pid = kit_spawn(kit_idle, NULL);

	(void)state;
	assert_int_equal(rnic_identity_of((uint32_t)pid, &id), 0);
	kill(pid, SIGKILL);
	assert_true(reaches_state(pid, 'Z'));
	assert_int_equal(rnic_identity_of((uint32_t)pid, &id), -ESRCH);
	waitpid(pid, NULL, 0);
}

static void *stay(void *arg)
{
	while (pause())
		;
	return arg;
}

static void *tell_and_stay(void *arg)
{
	usleep(300000);
	tell_self(arg);
	return NULL;
}

/* The main thread ends, another one stays and later says who it is. */
static int lose_main_thread(void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, stay, NULL) ||
	    pthread_create(&t, NULL, tell_and_stay, arg))
		return 1;
	usleep(100000);
	pthread_exit(NULL);
}

static void lives_without_main_thread(void **state)
{
	int pipe_fd[2];
	uint64_t before, told;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(pipe_fd), 0);
	pid = kit_spawn(lose_main_thread, &pipe_fd[1]);
	before = id_of(pid);
	assert_true(before);
	assert_true(reaches_state(pid, 'Z'));
	assert_true(rnic_identity_same(id_of(pid), before));
	assert_int_equal(read(pipe_fd[0], &told, sizeof(told)), sizeof(told));
	assert_true(rnic_identity_same(told, before));
	kit_end(pid);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

/* ---- who may see what ---- */

static int become_nobody(void)
{
	if (geteuid())
		return 0;
	if (setgid(NOBODY) || setuid(NOBODY))
		return KIT_SKIP;
	return prctl(PR_SET_DUMPABLE, 1) ? KIT_SKIP : 0;
}

/* Says who it is as an ordinary process, and as an untraceable one. */
static int tell_twice(void *arg)
{
	uint64_t id;

	if (rnic_identity_self(&id) ||
	    write(*(int *)arg, &id, sizeof(id)) != sizeof(id))
		return 1;
	/* long enough for the parent to look */
	usleep(300000);
	if (prctl(PR_SET_DUMPABLE, 0))
		return 2;
	return tell_self(arg);
}

static int watch_untraceable(void *arg)
{
	uint64_t told[2], seen[2];
	int pipe_fd[2];
	pid_t pid;

	(void)arg;
	if (become_nobody() || pipe(pipe_fd))
		return KIT_SKIP;
	pid = kit_spawn(tell_twice, &pipe_fd[1]);
	for (int i = 0; i < 2; i++) {
		if (read(pipe_fd[0], &told[i], sizeof(told[i])) !=
		    sizeof(told[i]))
			return 1;
		seen[i] = id_of(pid);
		if (!rnic_identity_same(told[i], seen[i]))
			return 2 + i;
	}
	kit_end(pid);
	if (seen[0] == seen[1])
		/* nothing was hidden: this user may trace everybody */
		return KIT_SKIP;
	return rnic_identity_same(seen[0], seen[1]) ? 0 : 4;
}

static void untraceable_is_the_same(void **state)
{
	(void)state;
	kit_in_child(watch_untraceable, NULL);
}

static int no_descriptor(void *arg)
{
	struct rlimit none = { 0 };
	pid_t dead = kit_spawn(kit_idle, NULL);
	uint64_t id;

	kit_end(dead);
	rnic_log_sink(count);
	logged = 0;
	if (setrlimit(RLIMIT_NOFILE, &none))
		return KIT_SKIP;
	if (rnic_identity_of(*(uint32_t *)arg, &id) != -EMFILE)
		return 1;
	if (rnic_identity_of((uint32_t)dead, &id) != -ESRCH)
		return 2;
	if (logged)
		return 3;
	/* the user is told what is short */
	if (rnic_identity_self(&id) != -EMFILE || logged != 1)
		return 4;
	return rnic_identity_ns(&id) == -EMFILE && logged == 2 ? 0 : 5;
}

static void without_descriptors_not_known(void **state)
{
	uint32_t self = (uint32_t)getpid();

	(void)state;
	kit_in_child(no_descriptor, &self);
}

/* A mount namespace of its own, as root or as root of a user namespace. */
static int own_mounts(int more)
{
	if (unshare(CLONE_NEWNS | more) &&
	    unshare(CLONE_NEWUSER | CLONE_NEWNS | more))
		return KIT_SKIP;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ? KIT_SKIP : 0;
}

static int no_proc(void *arg)
{
	uint64_t id;

	(void)arg;
	if (own_mounts(0) || mount("none", "/proc", "tmpfs", 0, NULL))
		return KIT_SKIP;
	rnic_log_sink(count);
	logged = 0;
	if (rnic_identity_self(&id) != -EIO || logged != 1)
		return 1;
	return rnic_identity_ns(&id) == -EIO && logged == 2 ? 0 : 2;
}

static void without_proc_is_an_error(void **state)
{
	(void)state;
	kit_in_child(no_proc, NULL);
}

/* In a new pid namespace, /proc still that of the old one. */
static int wrong_proc(void *arg)
{
	uint64_t id, ns;

	rnic_log_sink(count);
	logged = 0;
	if (rnic_identity_self(&id) != -EIO || logged != 1)
		return 1;
	if (rnic_identity_ns(&ns))
		return 2;
	return ns != *(uint64_t *)arg ? 0 : 3;
}

static int enter_pid_namespace(void *arg)
{
	int status;
	pid_t pid;

	if (own_mounts(CLONE_NEWPID))
		return KIT_SKIP;
	pid = kit_spawn(wrong_proc, arg);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status)
		       ? WEXITSTATUS(status)
		       : 9;
}

static void pid_namespace_matters(void **state)
{
	uint64_t a, b;

	(void)state;
	assert_int_equal(rnic_identity_ns(&a), 0);
	assert_int_equal(rnic_identity_ns(&b), 0);
	assert_int_equal(a, b);
	kit_in_child(enter_pid_namespace, &a);
}

static void random_is_filled(void **state)
{
	uint64_t a[4] = { 0 }, b[4] = { 0 };

	(void)state;
	assert_int_equal(rnic_random(a, sizeof(a)), 0);
	assert_int_equal(rnic_random(b, sizeof(b)), 0);
	for (int i = 0; i < 4; i++)
		assert_true(a[i] != b[i]);
	assert_int_equal(rnic_random(a, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_stable),
		cmocka_unit_test(others_see_the_same),
		cmocka_unit_test(name_does_not_matter),
		cmocka_unit_test(exec_changes_it),
		cmocka_unit_test(nobody_is_not_logged),
		cmocka_unit_test(zombie_is_nobody),
		cmocka_unit_test(lives_without_main_thread),
		cmocka_unit_test(untraceable_is_the_same),
		cmocka_unit_test(without_descriptors_not_known),
		cmocka_unit_test(without_proc_is_an_error),
		cmocka_unit_test(pid_namespace_matters),
		cmocka_unit_test(random_is_filled),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
