/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Does the harness notice? Each kind of failure is made on purpose, in a
 * copy of this program, and must be reported; what goes well must pass.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- groups that must fail -------------------------------------------------- */

static void bad_check(struct th_self *self)
{
	th_check(self->rank == 0);
}

static void bad_crash(struct th_self *self)
{
	if (self->rank == 1)
		raise(SIGSEGV);
}

static void bad_exit(struct th_self *self)
{
	if (self->rank == 1)
		_exit(3);
}

static void bad_hang(struct th_self *self)
{
	if (self->rank == 1)
		pause();
}

static void bad_step(struct th_self *self)
{
	th_barrier(self, self->rank ? "here" : "there");
}

static void bad_absent(struct th_self *self)
{
	if (self->rank == 0)
		th_barrier(self, "nobody comes");
}

static void bad_byte(struct th_self *self)
{
	unsigned char buf[100];

	th_fill(buf, sizeof(buf), 1);
	buf[99] ^= 1;
	th_verify(buf, sizeof(buf), 1);
	(void)self;
}

static void bad_guard(struct th_self *self)
{
	struct th_buf b = th_buf_new(10);

	b.p[10] = 0;
	th_buf_free(&b);
	(void)self;
}

static const struct CMUnitTest bad_tests[] = {
	TH_CASE(bad_check, 2, 5), TH_CASE(bad_crash, 2, 5),
	TH_CASE(bad_exit, 2, 5),  TH_CASE(bad_hang, 2, 1),
	TH_CASE(bad_step, 2, 5),  TH_CASE(bad_absent, 2, 5),
	TH_CASE(bad_byte, 1, 5),  TH_CASE(bad_guard, 1, 5),
};

enum { NBAD = sizeof(bad_tests) / sizeof(bad_tests[0]) };

/* Runs bad test @i in a copy of this program; true if that one failed. */
static bool noticed(int i)
{
	char number[16];
	int status;
	pid_t pid;

	snprintf(number, sizeof(number), "%d", i);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		freopen("/dev/null", "w", stderr);
		freopen("/dev/null", "w", stdout);
		execl("/proc/self/exe", "harness_test", "--bad", number, NULL);
		_exit(99);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static void failures_are_noticed(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < NBAD; i++)
		if (!noticed(i))
			fail_msg("%s was not noticed", bad_tests[i].name);
}

/* ---- groups that must pass ------------------------------------------------------ */

static void steps_and_data(struct th_self *self)
{
	int all[8] = { 0 }, i, mine = self->rank * self->rank;

	th_barrier(self, "one");
	th_gather(self, "two", &mine, all, sizeof(mine));
	for (i = 0; i < self->size; i++)
		th_eq(all[i], i * i);
	th_barrier(self, "three");
}

static void patterns(struct th_self *self)
{
	unsigned char a[1000], b[1000];
	size_t off, len;

	(void)self;
	th_fill(a, sizeof(a), 5);
	for (off = 0; off < 40; off++)
		for (len = 0; len < 40; len++) {
			th_fill_at(b, len, 5, off);
			th_check(!memcmp(b, a + off, len));
			th_check(th_match_at(a + off, len, 5, off));
		}
	th_check(!th_match_at(a, 16, 6, 0));
	th_check(!th_match_at(a, 16, 5, 1));
}

static void wait_for_death(struct th_self *self)
{
	if (self->rank == 1) {
		th_note(self, "ready", 42);
		pause();
	}
	th_eq(th_listen(self), 7);
	th_barrier(self, "the living");
}

/* A child is killed while the others wait; they go on without it. */
static void a_death_that_is_expected(void **state)
{
	struct th_group *g = th_group_start(3, wait_for_death, NULL, 10);

	(void)state;
	assert_int_equal(th_group_wait_note(g, 1, "ready"), 42);
	th_group_kill(g, 1, SIGKILL);
	th_group_tell(g, 0, 7);
	th_group_tell(g, 2, 7);
	th_group_finish(g);
}

static const struct CMUnitTest harness_tests[] = {
	cmocka_unit_test(failures_are_noticed),
	TH_CASE(steps_and_data, 8, 5),
	TH_CASE(patterns, 1, 5),
	cmocka_unit_test(a_death_that_is_expected),
};

int main(int argc, char **argv)
{
	int n;

	if (argc == 3 && strcmp(argv[1], "--bad") == 0) {
		n = atoi(argv[2]);
		return th_main(1, argv, "bad", &bad_tests[n], 1);
	}
	return th_main(argc, argv, "harness_tests", harness_tests,
		       sizeof(harness_tests) / sizeof(harness_tests[0]));
}
