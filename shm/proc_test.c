/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Peer processes: every way to die, and every way to look dead and live.
 */
#include "shm/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shm/identity.h"
#include "shm/child_kit.h"
#include "shm/log.h"

enum {
	LIMIT_S = 90,	/* the whole program ends by then */
	NOBODY = 65534, /* a user without rights */
	DEAD_MS = 3000, /* a death is seen by then */
	ALIVE_MS = 400, /* identities are looked at every 100 ms */
	MANY = 40,	/* children at once: more than one epoll batch */
	THREADS = 4,	/* that get and put */
	ROUNDS = 300,	/* each */
	TICKS = 50,	/* of the clock, in which a child may die */
};

static unsigned int warned;

static void count(enum rnic_log_level level, const char *msg)
{
	(void)msg;
	warned += level == RNIC_LOG_WARN;
}

/* The entry of @pid, NULL if there is none. For children as well: no assert. */
static struct rnic_proc *meet(pid_t pid)
{
	struct rnic_proc *p = NULL;
	uint64_t id;

	if (rnic_identity_of((uint32_t)pid, &id) ||
	    rnic_proc_get((uint32_t)pid, id, &p))
		return NULL;
	return p;
}

static struct rnic_proc *met(pid_t pid)
{
	struct rnic_proc *p = meet(pid);

	assert_non_null(p);
	return p;
}

static bool dies(const struct rnic_proc *p, int within_ms)
{
	for (int ms = 0; ms < within_ms && !rnic_proc_dead(p); ms += 5) {
		rnic_proc_poll();
		usleep(5000);
	}
	return rnic_proc_dead(p);
}

/* True if a sleeper on the set would be woken. */
static bool is_ringing(void)
{
	struct epoll_event ev;

	return epoll_wait(rnic_proc_epoll_fd(), &ev, 1, 0) != 0;
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* ---- living ---- */

static void self_never_dies(void **state)
{
	uint64_t id;
	struct rnic_proc *p, *q = NULL;

	(void)state;
	p = met(getpid());
	assert_int_equal(p->fd, -1);
	assert_int_equal(rnic_proc_alive(), 0);
	assert_false(dies(p, ALIVE_MS));
	assert_int_equal(rnic_identity_self(&id), 0);
	assert_int_equal(rnic_proc_get((uint32_t)getpid(), ~id, &q), -ESRCH);
	assert_null(q);
	rnic_proc_put(p);
	rnic_proc_put(NULL);
}

static void one_entry_per_process(void **state)
{
	pid_t pid = kit_spawn(kit_idle, NULL);
	int fds = count_fds();
	struct rnic_proc *p = met(pid), *q = met(pid);

	(void)state;
	assert_ptr_equal(p, q);
	assert_int_equal(rnic_proc_alive(), 1);
	rnic_proc_put(p);
	assert_int_equal(rnic_proc_alive(), 1);
	assert_false(dies(q, ALIVE_MS));
	rnic_proc_put(q);
	assert_int_equal(rnic_proc_alive(), 0);
	/* the epoll set stays */
	assert_in_range(count_fds(), fds, fds + 1);
	kit_end(pid);
}

static void another_identity_is_nobody(void **state)
{
	pid_t pid = kit_spawn(kit_idle, NULL);
	struct rnic_proc *p = NULL;
	uint64_t id;
	int fds;

	(void)state;
	rnic_proc_epoll_fd();
	fds = count_fds();
	assert_int_equal(rnic_identity_of((uint32_t)pid, &id), 0);
	assert_int_equal(rnic_proc_get((uint32_t)pid, ~id, &p), -ESRCH);
	assert_null(p);
	kit_end(pid);
	assert_int_equal(rnic_proc_get((uint32_t)pid, id, &p), -ESRCH);
	assert_int_equal(rnic_proc_get(0, id, &p), -ESRCH);
	assert_null(p);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(rnic_proc_alive(), 0);
}

/* ---- dying ---- */

static void death_is_seen(void **state)
{
	pid_t pid = kit_spawn(kit_idle, NULL);
	struct rnic_proc *p = met(pid), *q = NULL;
	uint32_t gen = rnic_proc_generation();
	uint64_t id = p->identity;

	(void)state;
	assert_int_equal(rnic_proc_poll(), 0);
	assert_false(is_ringing());
	kill(pid, SIGKILL);
	/* nobody has reaped it */
	for (int ms = 0; ms < DEAD_MS && !is_ringing(); ms++)
		usleep(1000);
	assert_true(is_ringing());
	assert_false(rnic_proc_dead(p));
	assert_int_equal(rnic_proc_generation(), gen);
	assert_int_equal(rnic_proc_poll(), 1);
	assert_true(rnic_proc_dead(p));
	assert_int_equal(rnic_proc_generation(), gen + 1);
	assert_int_equal(rnic_proc_alive(), 0);
	assert_false(is_ringing());
	assert_int_equal(rnic_proc_poll(), 0);
	assert_int_equal(rnic_proc_get((uint32_t)pid, id, &q), -ESRCH);
	assert_null(q);
	rnic_proc_put(p);
	assert_int_equal(rnic_proc_alive(), 0);
	waitpid(pid, NULL, 0);
}

static bool same_tick(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec == t->tv_sec && now.tv_nsec == t->tv_nsec;
}

/* A tick that has just begun. */
static struct timespec next_tick(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	while (same_tick(&t))
		;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t;
}

static void ticks_pass(void)
{
	for (int i = 0; i < 2; i++)
		next_tick();
}

/*
 * A process that dies within one tick, in which it was looked at: it is alive
 * until the tick is over, for whoever asks in it. 1: so it was; 0: it took
 * longer; -1: each call looks (a small pid_max).
 */
static int dies_in_a_tick(void)
{
	pid_t pid = kit_spawn(kit_idle, NULL);
	struct rnic_proc *p = met(pid);
	struct timespec tick = next_tick();
	bool alive, in_time;
	int ret;

	assert_true(rnic_proc_look_lately(p));
	ret = rnic_load64_relaxed(&p->looked) ? 1 : -1;
	kit_end(pid);
	alive = rnic_proc_look_lately(p);
	in_time = same_tick(&tick);
	if (ret > 0 && in_time)
		assert_true(alive);
	ticks_pass();
	assert_false(rnic_proc_look_lately(p));
	assert_true(rnic_proc_dead(p));
	assert_false(rnic_proc_look_lately(p));
	rnic_proc_put(p);
	return ret > 0 && !in_time ? 0 : ret;
}

/* A look counts for one tick of the clock, for whoever asks in it. */
static void one_look_in_a_tick(void **state)
{
	struct rnic_proc *p;
	uint64_t first;
	pid_t pid;

	(void)state;
	pid = kit_spawn(kit_idle, NULL);
	p = met(pid);
	assert_true(rnic_proc_look_lately(p));
	first = rnic_load64_relaxed(&p->looked);
	ticks_pass();
	assert_true(rnic_proc_look_lately(p));
	assert_true(!first || rnic_load64_relaxed(&p->looked) > first);
	kit_end(pid);
	assert_false(rnic_proc_look(p));
	rnic_proc_put(p);
	/* on a busy machine it may take many, or never be as quick */
	for (int i = 0; i < TICKS && !dies_in_a_tick(); i++)
		;
}

static void many_deaths_are_seen_at_once(void **state)
{
	struct rnic_proc *p[MANY];
	pid_t pid[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		pid[i] = kit_spawn(kit_idle, NULL);
		p[i] = met(pid[i]);
	}
	assert_int_equal(rnic_proc_alive(), MANY);
	for (int i = 0; i < MANY; i++)
		kit_end(pid[i]);
	assert_int_equal(rnic_proc_poll(), MANY);
	assert_int_equal(rnic_proc_alive(), 0);
	for (int i = 0; i < MANY; i++) {
		assert_true(rnic_proc_dead(p[i]));
		rnic_proc_put(p[i]);
	}
}

static int exec_when_told(void *arg)
{
	char c;

	if (read(*(int *)arg, &c, 1) != 1)
		return 1;
	/* the long argument moves the stack even where it is not random */
	execl("/bin/sleep", "sleep",
	      "0000000000000000000000000000000000000000000000000060",
	      (char *)NULL);
	return 2;
}

static void exec_is_a_death(void **state)
{
	int go[2];
	struct rnic_proc *p;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(go), 0);
	pid = kit_spawn(exec_when_told, &go[0]);
	p = met(pid);
	assert_false(dies(p, ALIVE_MS));
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_true(dies(p, DEAD_MS));
	assert_false(is_ringing());
	rnic_proc_put(p);
	/* the new program is another process to us */
	p = met(pid);
	assert_false(rnic_proc_dead(p));
	rnic_proc_put(p);
	kit_end(pid);
	close(go[0]);
	close(go[1]);
}

/* ---- looking dead ---- */

static void *stay(void *arg)
{
	while (pause())
		;
	return arg;
}

static int lose_main_thread(void *arg)
{
	pthread_t t;
	char c;

	if (pthread_create(&t, NULL, stay, NULL) ||
	    read(*(int *)arg, &c, 1) != 1)
		return 1;
	pthread_exit(NULL);
}

static void lost_main_thread_is_no_death(void **state)
{
	int go[2];
	struct rnic_proc *p, *q;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(go), 0);
	pid = kit_spawn(lose_main_thread, &go[0]);
	p = met(pid);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_false(dies(p, ALIVE_MS));
	q = met(pid);
	assert_ptr_equal(p, q);
	rnic_proc_put(q);
	kit_end(pid);
	assert_true(dies(p, DEAD_MS));
	rnic_proc_put(p);
	close(go[0]);
	close(go[1]);
}

static int become_untraceable(void *arg)
{
	char c;

	if (read(*(int *)arg, &c, 1) != 1 || prctl(PR_SET_DUMPABLE, 0))
		return 1;
	return kit_idle(NULL);
}

static int watch_untraceable(void *arg)
{
	struct rnic_proc *p, *q;
	int go[2];
	pid_t pid;

	(void)arg;
	rnic_proc_forked();
	if (!geteuid() &&
	    (setgid(NOBODY) || setuid(NOBODY) || prctl(PR_SET_DUMPABLE, 1)))
		return KIT_SKIP;
	if (pipe(go))
		return KIT_SKIP;
	pid = kit_spawn(become_untraceable, &go[0]);
	p = meet(pid);
	if (!p || write(go[1], "x", 1) != 1)
		return 1;
	if (dies(p, ALIVE_MS))
		return 2;
	/* by what it shows now */
	q = meet(pid);
	if (q != p)
		return 3;
	kit_end(pid);
	return dies(p, DEAD_MS) ? 0 : 4;
}

static void untraceable_is_no_death(void **state)
{
	(void)state;
	kit_in_child(watch_untraceable, NULL);
}

/* ---- few descriptors ---- */

/* Leaves @n descriptors to this process. */
static int leave_fds(int n)
{
	struct rlimit rl;
	int low = dup(0);

	close(low);
	if (low < 0 || getrlimit(RLIMIT_NOFILE, &rl))
		return -1;
	rl.rlim_cur = (rlim_t)(low + n);
	return setrlimit(RLIMIT_NOFILE, &rl);
}

/* @arg: how many descriptors there are; with one the pidfd has to go. */
static int scarce(void *arg)
{
	pid_t pid = kit_spawn(kit_idle, NULL), gone = kit_spawn(kit_idle, NULL);
	uint64_t id, gone_id;
	struct rnic_proc *p, *q;

	rnic_proc_forked();
	if (rnic_identity_of((uint32_t)gone, &gone_id) ||
	    rnic_identity_of((uint32_t)pid, &id) || leave_fds(*(int *)arg))
		return KIT_SKIP;
	if (rnic_proc_get((uint32_t)pid, ~id, &p) != -ESRCH)
		return 1;
	if (rnic_proc_get((uint32_t)pid, id, &p) || p->fd >= 0)
		return 2;
	kit_end(gone);
	if (rnic_proc_get((uint32_t)gone, gone_id, &q) != -ESRCH)
		return 3;
	if (dies(p, ALIVE_MS))
		return 4;
	/* not reaped: /proc still has it */
	kill(pid, SIGKILL);
	if (!dies(p, DEAD_MS) || rnic_proc_alive())
		return 5;
	rnic_proc_put(p);
	return 0;
}

static void one_descriptor_is_enough(void **state)
{
	int n = 1;

	(void)state;
	kit_in_child(scarce, &n);
}

/* The epoll set and the pidfd fit, and nothing to read an identity with. */
static void two_descriptors_are_enough(void **state)
{
	int n = 2;

	(void)state;
	kit_in_child(scarce, &n);
}

static int without(void *arg)
{
	pid_t pid = kit_spawn(kit_idle, NULL);
	struct rnic_proc *p = NULL;
	uint64_t id;

	(void)arg;
	rnic_proc_forked();
	if (rnic_identity_of((uint32_t)pid, &id) || leave_fds(0))
		return KIT_SKIP;
	/* not taken for the right one unseen, and said once */
	warned = 0;
	if (rnic_proc_get((uint32_t)pid, id, &p) != -EMFILE || p)
		return 1;
	kit_end(pid);
	if (warned != 1)
		return 2;
	return rnic_proc_epoll_fd() == -1 && warned == 2 ? 0 : 3;
}

static void without_descriptors_not_known(void **state)
{
	(void)state;
	kit_in_child(without, NULL);
}

/* Once there are descriptors again, a death wakes sleepers again. */
static int recover(void *arg)
{
	pid_t pid = kit_spawn(kit_idle, NULL);
	struct rlimit rl;
	struct rnic_proc *p;

	(void)arg;
	rnic_proc_forked();
	if (getrlimit(RLIMIT_NOFILE, &rl) || leave_fds(1))
		return KIT_SKIP;
	p = meet(pid);
	if (!p || p->fd >= 0)
		return 1;
	if (setrlimit(RLIMIT_NOFILE, &rl))
		return KIT_SKIP;
	if (dies(p, ALIVE_MS) || p->fd < 0)
		return 2;
	kit_end(pid);
	return is_ringing() ? 0 : 3;
}

static void pidfd_is_tried_again(void **state)
{
	(void)state;
	kit_in_child(recover, NULL);
}

/* ---- fork ---- */

static int inherit(void *arg)
{
	struct rnic_proc *p = arg;
	int fds = count_fds();

	rnic_proc_forked();
	/* the pidfd and the epoll set */
	if (count_fds() != fds - 2 || rnic_proc_alive())
		return 1;
	if (rnic_proc_poll())
		return 2;
	rnic_proc_put(p);
	if (rnic_proc_alive())
		return 3;
	p = meet(getppid());
	if (!p || rnic_proc_alive() != 1 || rnic_proc_dead(p))
		return 4;
	rnic_proc_put(p);
	return 0;
}

static void child_forgets(void **state)
{
	pid_t pid = kit_spawn(kit_idle, NULL);
	struct rnic_proc *p = met(pid);

	(void)state;
	kit_in_child(inherit, p);
	/* the parent's set is as it was */
	kit_end(pid);
	assert_true(is_ringing());
	assert_int_equal(rnic_proc_poll(), 1);
	rnic_proc_put(p);
}

/*
 * A child that has not called rnic_proc_forked(), as between vfork and exec,
 * holds copies of all descriptors: what we close must not ring any more.
 */
static void copies_do_not_ring(void **state)
{
	pid_t pid = kit_spawn(kit_idle, NULL), pid2 = kit_spawn(kit_idle, NULL),
	      copy;
	struct rnic_proc *p = met(pid), *q = met(pid2);

	(void)state;
	copy = kit_spawn(kit_idle, NULL);
	rnic_proc_put(p);
	kit_end(pid);
	assert_false(is_ringing());
	assert_int_equal(rnic_proc_poll(), 0);
	kit_end(pid2);
	assert_int_equal(rnic_proc_poll(), 1);
	assert_true(rnic_proc_dead(q));
	assert_false(is_ringing());
	rnic_proc_put(q);
	kit_end(copy);
}

/* ---- threads ---- */

static pid_t shared[THREADS];
static rnic_a32 died;

static void *churn(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct rnic_proc *p = meet(shared[i % THREADS]);

		/* relaxed: summed up after the threads have ended */
		rnic_add32_relaxed(&died, (uint32_t)rnic_proc_poll());
		rnic_proc_put(p);
	}
	return arg;
}

static void threads_share_the_table(void **state)
{
	struct rnic_proc *p[THREADS];
	pthread_t t[THREADS];
	void *got;

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		shared[i] = kit_spawn(kit_idle, NULL);
		p[i] = met(shared[i]);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, churn, p[i]), 0);
	for (int i = 0; i < THREADS; i++)
		kit_end(shared[i]);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(t[i], &got), 0);
		assert_ptr_equal(got, p[i]);
	}
	/* each death was told to one of them, or is told now */
	assert_int_equal((int)rnic_load32_relaxed(&died) + rnic_proc_poll(),
			 THREADS);
	assert_int_equal(rnic_proc_alive(), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_true(rnic_proc_dead(p[i]));
		rnic_proc_put(p[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(self_never_dies),
		cmocka_unit_test(one_entry_per_process),
		cmocka_unit_test(another_identity_is_nobody),
		cmocka_unit_test(death_is_seen),
		cmocka_unit_test(one_look_in_a_tick),
		cmocka_unit_test(many_deaths_are_seen_at_once),
		cmocka_unit_test(exec_is_a_death),
		cmocka_unit_test(lost_main_thread_is_no_death),
		cmocka_unit_test(untraceable_is_no_death),
		cmocka_unit_test(one_descriptor_is_enough),
		cmocka_unit_test(two_descriptors_are_enough),
		cmocka_unit_test(without_descriptors_not_known),
		cmocka_unit_test(pidfd_is_tried_again),
		cmocka_unit_test(child_forgets),
		cmocka_unit_test(copies_do_not_ring),
		cmocka_unit_test(threads_share_the_table),
	};

	alarm(LIMIT_S);
	rnic_log_sink(count);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
