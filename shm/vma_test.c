/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Own mappings: both ways say the same, also in a child and after somebody
 * closed our descriptor.
 */
#include "shm/vma.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/quiet_map.h"

enum { PAGE = 4096, LIMIT_S = 60 };

/* Pages of different protection with a hole. */
static char *make(void)
{
	char *p = quiet_map(6 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	assert_true(p != MAP_FAILED);
	assert_int_equal(mprotect(p + PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(mprotect(p + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE),
			 0);
	assert_int_equal(munmap(p + 3 * PAGE, PAGE), 0);
	return p;
}

static bool is(const char *at, const char *start, const char *end, int prot)
{
	struct rnic_vma v;

	return !rnic_vma_next((uintptr_t)at, &v) &&
	       v.start == (uintptr_t)start && v.end == (uintptr_t)end &&
	       v.prot == prot;
}

static bool knows(const char *p)
{
	struct rnic_vma v;

	return is(p + PAGE, p + PAGE, p + 2 * PAGE, PROT_READ) &&
	       is(p + 2 * PAGE + 1, p + 2 * PAGE, p + 3 * PAGE,
		  PROT_READ | PROT_WRITE) &&
	       !rnic_vma_next((uintptr_t)p + 3 * PAGE, &v) &&
	       v.start == (uintptr_t)p + 4 * PAGE && !v.prot &&
	       rnic_vma_next(UINT64_MAX - PAGE, &v) == -ENOENT;
}

static void both_ways(void **state)
{
	char *p = make();

	(void)state;
	rnic_vma_text_only(true);
	assert_false(rnic_vma_fast());
	assert_true(knows(p));
	rnic_vma_text_only(false);
	assert_true(knows(p));
	munmap(p, 6 * PAGE);
}

/* What is said of the file behind a mapping. */
static void check_file(void)
{
	int fd = memfd_create("vma test", MFD_CLOEXEC);
	struct rnic_vma v;
	struct stat st;
	char *p;

	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	assert_int_equal(fstat(fd, &st), 0);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 3 * PAGE);
	assert_true(p != MAP_FAILED);
	assert_int_equal(rnic_vma_next((uintptr_t)p, &v), 0);
	assert_true(v.shared);
	assert_int_equal(v.dev, st.st_dev);
	assert_int_equal(v.ino, st.st_ino);
	assert_int_equal(v.off, 3 * PAGE);
	assert_true(rnic_vma_is_memfd((uintptr_t)p));
	munmap(p, PAGE);
	assert_false(rnic_vma_is_memfd((uintptr_t)p));
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(rnic_vma_next((uintptr_t)p, &v), 0);
	assert_false(v.shared);
	assert_int_equal(v.ino, st.st_ino);
	munmap(p, PAGE);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(rnic_vma_next((uintptr_t)p, &v), 0);
	assert_true(v.shared);
	assert_false(rnic_vma_is_memfd((uintptr_t)p));
	munmap(p, PAGE);
	close(fd);
}

static void files(void **state)
{
	(void)state;
	rnic_vma_text_only(true);
	check_file();
	rnic_vma_text_only(false);
	check_file();
}

static void child_asks_for_itself(void **state)
{
	pid_t parent = getpid(), pid;
	char *p = make();
	int status;

	(void)state;
	assert_true(knows(p));
	pid = fork();
	if (!pid) {
		char *q;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() && getppid() != parent)
			_exit(2);
		alarm(LIMIT_S);
		munmap(p, 6 * PAGE);
		if (is(p + PAGE, p + PAGE, p + 2 * PAGE, PROT_READ))
			_exit(1);
		q = make();
		_exit(!knows(q));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(knows(p));
	munmap(p, 6 * PAGE);
}

/* A program may close what it does not know. */
static void descriptor_closed(void **state)
{
	char *p = make();

	(void)state;
	assert_true(knows(p));
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	assert_true(knows(p));
	munmap(p, 6 * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways),
		cmocka_unit_test(files),
		cmocka_unit_test(child_asks_for_itself),
		cmocka_unit_test(descriptor_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
