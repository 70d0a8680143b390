/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The owner's fence: who is waited for, who is not, numbers of periods.
 */
#include "shm/grace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shm/child_kit.h"
#include "shm/device.h"
#include "shm/log.h"
#include "shm/remote.h"

enum {
	LIMIT_S = 60,	/* the whole program ends by then */
	SLOT = 5,	/* of the fences */
	STAY_MS = 100,	/* a reader's stay inside */
	STOP_MS = 1300, /* long enough for the warning */
};

static const struct rnic_device_cfg cfg = {
	.heap_bytes = 1 << 20,
	.membarrier = true,
};

/* What a reader, another process, does. */
struct plan {
	rnic_a64 inside; /* set by the reader once it is inside */
	rnic_a64 left;	 /* set by it before it leaves */
};

/* A device with a place. */
struct bed {
	struct rnic_device dev;	 /* the owner's */
	struct rnic_place place; /* where readers claim */
	struct rnic_addr addr;	 /* its name */
	struct plan *plan;	 /* shared with readers */
};

static rnic_a32 warnings;

static void count(enum rnic_log_level level, const char *msg)
{
	if (level == RNIC_LOG_WARN && strstr(msg, "fence"))
		rnic_add32_relaxed(&warnings, 1);
}

static int setup(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	assert_int_equal(rnic_device_open(&b->dev, &cfg), 0);
	assert_int_equal(rnic_place_open(&b->dev, &b->place), 0);
	rnic_place_addr(&b->place, &b->addr);
	b->plan = mmap(NULL, sizeof(*b->plan), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(b->plan != MAP_FAILED);
	rnic_store32_relaxed(&warnings, 0);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	rnic_place_close(&b->place);
	rnic_device_close(&b->dev);
	munmap(b->plan, sizeof(*b->plan));
	free(b);
	return 0;
}

/* In a child: the lane that it claims. */
static struct rnic_lane *reader_begin(struct bed *b)
{
	struct rnic_remote *r;
	struct rnic_lane *lane;
	unsigned int index;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT_S);
	if (rnic_remote_open(&b->addr, RNIC_ATTACH_PROC, &r) ||
	    rnic_remote_claim(r, &b->addr, &lane, &index))
		_exit(1);
	return lane;
}

/* A reader: goes inside, stays @stay_ms (-1: for ever). */
static void read_inside(struct bed *b, int stay_ms)
{
	struct rnic_lane *lane = reader_begin(b);

	rnic_store64_release(&lane->reader[0].seq, 1);
	rnic_fence_full();
	rnic_store64_release(&b->plan->inside, 1);
	while (stay_ms < 0)
		pause();
	usleep((unsigned int)stay_ms * 1000);
	rnic_store64_release(&b->plan->left, 1);
	rnic_store64_release(&lane->reader[0].seq, 2);
	_exit(0);
}

static pid_t start_reader(struct bed *b, int stay_ms)
{
	pid_t pid = fork();

	if (!pid)
		read_inside(b, stay_ms);
	assert_true(pid > 0);
	while (!rnic_load64_acquire(&b->plan->inside))
		usleep(1000);
	return pid;
}

static void reap(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void nobody_is_there(void **state)
{
	struct bed *b = *state;
	uint64_t n = rnic_grace_now(&b->dev);

	assert_int_equal(rnic_grace_fence(&b->dev, SLOT), 0);
	assert_true(rnic_grace_ended(&b->dev, n));
	assert_true(rnic_grace_now(&b->dev) > n);
	assert_true(rnic_grace_ended(&b->dev, rnic_grace_now(&b->dev)));
	assert_int_equal(rnic_grace_wait(&b->dev, rnic_grace_now(&b->dev)), 0);
}

static void a_reader_is_waited_for(void **state)
{
	struct bed *b = *state;
	pid_t pid = start_reader(b, STAY_MS);
	uint64_t n = rnic_grace_now(&b->dev);

	/* asking does not wait */
	assert_false(rnic_grace_ended(&b->dev, n));
	assert_int_equal(rnic_load64_acquire(&b->plan->left), 0);
	assert_int_equal(rnic_grace_fence(&b->dev, SLOT), 0);
	assert_int_equal(rnic_load64_acquire(&b->plan->left), 1);
	assert_true(rnic_grace_ended(&b->dev, n));
	reap(pid);
}

/* A place that is closed, with a sender inside, is still looked at. */
static void a_left_place_is_waited_for(void **state)
{
	struct bed *b = *state;
	pid_t pid = start_reader(b, STAY_MS);

	rnic_place_close(&b->place);
	assert_int_equal(rnic_grace_fence(&b->dev, SLOT), 0);
	assert_int_equal(rnic_load64_acquire(&b->plan->left), 1);
	reap(pid);
}

static void a_dead_reader_is_not(void **state)
{
	struct bed *b = *state;
	pid_t pid = start_reader(b, -1);

	kill(pid, SIGKILL);
	/* not even reaped */
	assert_int_equal(rnic_grace_fence(&b->dev, SLOT), 0);
	reap(pid);
	assert_int_equal(rnic_grace_fence(&b->dev, SLOT), 0);
}

/* Ends a stopped reader's stop after a while. */
static void *let_go(void *arg)
{
	usleep(STOP_MS * 1000);
	kill(*(pid_t *)arg, SIGKILL);
	return NULL;
}

static void a_stopped_reader_is_warned_about(void **state)
{
	struct bed *b = *state;
	pid_t pid = start_reader(b, -1);
	struct timespec a, z;
	pthread_t th;

	rnic_log_sink(count);
	kill(pid, SIGSTOP);
	assert_int_equal(pthread_create(&th, NULL, let_go, &pid), 0);
	clock_gettime(CLOCK_MONOTONIC, &a);
	assert_int_equal(rnic_grace_fence(&b->dev, SLOT), 0);
	clock_gettime(CLOCK_MONOTONIC, &z);
	pthread_join(th, NULL);
	rnic_log_sink(NULL);
	assert_true(z.tv_sec > a.tv_sec);
	assert_int_equal(rnic_load32_relaxed(&warnings), 1);
	reap(pid);
}

static void *fence_many(void *arg)
{
	struct bed *b = arg;

	for (uint32_t i = 0; i < 2000; i++)
		if (rnic_grace_fence(&b->dev, i))
			return b;
	return NULL;
}

static void threads_share_periods(void **state)
{
	struct bed *b = *state;
	pthread_t th[3];
	void *ret;

	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&th[i], NULL, fence_many, b),
				 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(th[i], &ret);
		assert_null(ret);
	}
	assert_true(b->dev.grace.begun <= 3 * 2000);
	assert_int_equal(b->dev.grace.ended, b->dev.grace.begun);
}

/* A number stands for all slots that were wanted before; nothing waits. */
static void wanted_slots_share_a_period(void **state)
{
	struct bed *b = *state;
	pid_t pid = start_reader(b, STAY_MS);
	uint64_t n[3], early = rnic_grace_want(&b->dev, SLOT);

	assert_int_equal(rnic_grace_look(&b->dev, early), -EAGAIN);
	/* that one has begun: these are for the next */
	for (uint32_t i = 0; i < 3; i++)
		n[i] = rnic_grace_want(&b->dev, SLOT + 700 * i);
	assert_int_equal(n[0], early + 1);
	assert_int_equal(n[2], n[0]);
	assert_int_equal(rnic_grace_look(&b->dev, n[0]), -EAGAIN);
	assert_false(rnic_load64_acquire(&b->plan->left));
	assert_int_equal(rnic_grace_wait(&b->dev, n[2]), 0);
	assert_true(rnic_load64_acquire(&b->plan->left));
	assert_int_equal(rnic_grace_look(&b->dev, early), 0);
	assert_int_equal(b->dev.grace.ended, n[0]);
	reap(pid);
}

enum { CLOSERS = 8, CLOSES = 30 };

static void *close_many(void *arg)
{
	struct bed *b = arg;

	for (int i = 0; i < CLOSES; i++)
		if (rnic_grace_fence(&b->dev, SLOT))
			return b;
	return NULL;
}

/* A reader that has announced the slot, and is inside most of the time. */
static void read_often(struct bed *b)
{
	struct rnic_lane *lane = reader_begin(b);

	rnic_store64_release(&lane->announce[0][0], UINT64_C(1) << SLOT);
	for (uint64_t seq = 1; !rnic_load64_acquire(&b->plan->left); seq += 2) {
		rnic_store64_release(&lane->reader[0].seq, seq);
		rnic_store64_release(&b->plan->inside, 1);
		usleep(1000);
		rnic_store64_release(&lane->reader[0].seq, seq + 1);
	}
	_exit(0);
}

/* Who asks while a period is under way shares the next one. */
static void closes_coalesce(void **state)
{
	struct bed *b = *state;
	pthread_t th[CLOSERS];
	pid_t pid = fork();
	void *ret;

	if (!pid)
		read_often(b);
	assert_true(pid > 0);
	while (!rnic_load64_acquire(&b->plan->inside))
		usleep(1000);
	for (int i = 0; i < CLOSERS; i++)
		assert_int_equal(pthread_create(&th[i], NULL, close_many, b),
				 0);
	for (int i = 0; i < CLOSERS; i++) {
		pthread_join(th[i], &ret);
		assert_null(ret);
	}
	rnic_store64_release(&b->plan->left, 1);
	reap(pid);
	print_message("%d fences, %lu periods\n", CLOSERS * CLOSES,
		      (unsigned long)b->dev.grace.begun);
	assert_true(b->dev.grace.begun <= CLOSERS * CLOSES / 2);
	assert_int_equal(b->dev.grace.ended, b->dev.grace.begun);
}

/* An owner that claims a lane of its own, announces, and may not fence. */
static int refused(void *arg)
{
	struct rnic_remote *r;
	struct rnic_lane *lane;
	unsigned int index;
	void *state;
	struct bed *b;

	(void)arg;
	setup(&state);
	b = state;
	if (!b->dev.fenced)
		return KIT_SKIP;
	rnic_log_sink(count);
	if (rnic_remote_open(&b->addr, RNIC_ATTACH_PROC, &r) ||
	    rnic_remote_claim(r, &b->addr, &lane, &index))
		return 1;
	rnic_store64_release(&lane->announce[1][0], UINT64_C(1) << SLOT);
	if (kit_forbid(SYS_membarrier, EPERM))
		return KIT_SKIP;
	if (rnic_grace_fence(&b->dev, SLOT) != -EPERM)
		return 2;
	/* the next period is asked for the same slot once more */
	if (rnic_grace_fence(&b->dev, SLOT + 1) != -EPERM)
		return 3;
	rnic_store64_release(&lane->announce[1][0], 0);
	return rnic_grace_fence(&b->dev, SLOT) ? 4 : 0;
}

static void a_refused_membarrier_is_an_error(void **state)
{
	(void)state;
	kit_in_child(refused, NULL);
}

#define WITH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(nobody_is_there),
		WITH(a_reader_is_waited_for),
		WITH(a_left_place_is_waited_for),
		WITH(a_dead_reader_is_not),
		WITH(a_stopped_reader_is_warned_about),
		WITH(threads_share_periods),
		WITH(wanted_slots_share_a_period),
		WITH(closes_coalesce),
		cmocka_unit_test(a_refused_membarrier_is_an_error),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
