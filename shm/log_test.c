/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Messages: what the default sink prints, and what another one gets.
 */
#include "shm/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static char last[1024];
static enum rnic_log_level last_level;
static unsigned int calls;

static void record(enum rnic_log_level level, const char *msg)
{
	snprintf(last, sizeof(last), "%s", msg);
	last_level = level;
	calls++;
	errno = EBADF;
}

static int setup(void **state)
{
	(void)state;
	calls = 0;
	*last = '\0';
	rnic_log_sink(record);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rnic_log_sink(NULL);
	return 0;
}

static void sink_gets_level_and_text(void **state)
{
	(void)state;
	rnic_log(RNIC_LOG_DEBUG, "%s has %d", "object", 42);
	assert_int_equal(calls, 1);
	assert_int_equal(last_level, RNIC_LOG_DEBUG);
	assert_string_equal(last, "object has 42");
}

static void errno_is_kept(void **state)
{
	(void)state;
	errno = ENOSPC;
	rnic_log(RNIC_LOG_WARN, "x");
	assert_int_equal(errno, ENOSPC);
}

static void long_text_is_cut(void **state)
{
	(void)state;
	rnic_log(RNIC_LOG_INFO, "%0700d", 0);
	assert_int_equal(strlen(last), 511);
}

/* What the default sink writes to stderr for one message of @level. */
static void to_stderr(enum rnic_log_level level, char *buf, size_t room)
{
	int pipe_fd[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe2(pipe_fd, O_NONBLOCK | O_CLOEXEC), 0);
	assert_true(dup2(pipe_fd[1], STDERR_FILENO) >= 0);
	rnic_log_sink(NULL);
	rnic_log(level, "told");
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	n = read(pipe_fd[0], buf, room - 1);
	buf[n < 0 ? 0 : n] = '\0';
	close(saved);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

static void default_prints_warnings_only(void **state)
{
	char buf[64];

	(void)state;
	to_stderr(RNIC_LOG_WARN, buf, sizeof(buf));
	assert_string_equal(buf, "shrimp: told\n");
	to_stderr(RNIC_LOG_INFO, buf, sizeof(buf));
	assert_string_equal(buf, "");
	to_stderr(RNIC_LOG_DEBUG, buf, sizeof(buf));
	assert_string_equal(buf, "");
	assert_int_equal(calls, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sink_gets_level_and_text),
		TEST(errno_is_kept),
		TEST(long_text_is_cut),
		TEST(default_prints_warnings_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
