/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The arena allocator: places never overlap, pages are there and go when
 * their time has come, and a fork child has its own.
 */
#include "shm/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/log.h"

enum {
	PAGE = 4096,
	BLOCKS = 32, /* live at most in the random test */
	ROUNDS = 1500,
	LIMIT_S = 60,
	SKIP = 77,
};

static const size_t mib = 1 << 20;
static const struct rnic_numa no_numa = { .mode = RNIC_NUMA_OFF };

static struct rnic_segment seg;
static struct rnic_arena arena;

static void ignore(enum rnic_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
}

static int setup(void **state)
{
	(void)state;
	rnic_log_sink(ignore);
	if (rnic_segment_create(&seg, "arena-test", RNIC_ARENA_USER) ||
	    rnic_segment_seal(&seg, F_SEAL_SHRINK))
		return -1;
	rnic_arena_init(&arena, &seg, &no_numa);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rnic_arena_fini(&arena);
	rnic_arena_fini(&arena);
	rnic_segment_close(&seg);
	rnic_log_sink(NULL);
	return 0;
}

static uint64_t bytes_used(void)
{
	struct stat st;

	assert_int_equal(fstat(seg.fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static char *alloc(size_t size, uint64_t *off)
{
	void *p;

	assert_int_equal(rnic_arena_alloc(&arena, size, 0, &p, off), 0);
	return p;
}

static bool is_mapped(const void *p)
{
	return !msync((void *)(uintptr_t)p, PAGE, MS_ASYNC);
}

/* What a peer reads at @off. */
static char peer_byte(uint64_t off)
{
	char c = 0;

	assert_int_equal(pread(seg.fd, &c, 1, (off_t)off), 1);
	return c;
}

static void contract_L2_present_and_shared(void **state)
{
	uint64_t a, b;
	char *p = alloc(10, &a), *q = alloc(3 * PAGE + 1, &b);

	(void)state;
	assert_int_equal(bytes_used(), 5 * PAGE);
	assert_true(a >= RNIC_ARENA_USER && b >= RNIC_ARENA_USER);
	assert_int_equal((a | b | (uintptr_t)p | (uintptr_t)q) % PAGE, 0);
	for (int i = 0; i < 4 * PAGE; i++)
		assert_int_equal(q[i], 0);
	p[0] = 1;
	q[4 * PAGE - 1] = 2;
	assert_int_equal(peer_byte(a), 1);
	assert_int_equal(peer_byte(b + 4 * PAGE - 1), 2);
	assert_true(seg.size > b);
}

static void alignment(void **state)
{
	uint64_t off;
	void *p;

	(void)state;
	alloc(1, &off);
	assert_int_equal(rnic_arena_alloc(&arena, 2 * mib, 0, &p, &off), 0);
	assert_int_equal((uintptr_t)p % (2 * mib), 0);
	assert_int_equal(off % (2 * mib), 0);
	assert_int_equal(rnic_arena_alloc(&arena, 100, 16 * mib, &p, &off), 0);
	assert_int_equal((uintptr_t)p % (16 * mib), 0);
	assert_int_equal(rnic_arena_alloc(&arena, 100, 64, &p, &off), 0);
	/* what alignment skipped is used */
	assert_true(off < RNIC_ARENA_USER + 2 * mib);
}

static void bad_arguments(void **state)
{
	void *p = &arena;
	uint64_t off = 42;
	char c;

	(void)state;
	assert_int_equal(rnic_arena_alloc(&arena, 0, 0, &p, &off), -EINVAL);
	assert_int_equal(rnic_arena_alloc(&arena, 1, 24, &p, &off), -EINVAL);
	assert_int_equal(rnic_arena_alloc(&arena, SIZE_MAX, 0, &p, &off),
			 -EINVAL);
	assert_int_equal(
		rnic_arena_alloc(&arena, 1, SIZE_MAX / 2 + 1, &p, &off),
		-EINVAL);
	assert_true(p == &arena && off == 42);
	assert_int_equal(rnic_arena_free(&arena, &c, 0), -EINVAL);
	p = alloc(2 * PAGE, &off);
	assert_int_equal(rnic_arena_free(&arena, (char *)p + PAGE, 0), -EINVAL);
	assert_int_equal(rnic_arena_free(&arena, p, 0), 0);
	assert_int_equal(rnic_arena_free(&arena, p, 0), -EINVAL);
}

static bool ended(void *arg, uint64_t grace)
{
	return grace <= *(uint64_t *)arg;
}

/* Gone here at once; for peers, and for use, when the grace period ends. */
static void contract_I4_places_wait(void **state)
{
	uint64_t a, b, c, now = 4;
	char *p = alloc(PAGE, &a);

	(void)state;
	p[0] = 7;
	assert_int_equal(rnic_arena_free(&arena, p, 5), 0);
	assert_false(is_mapped(p));
	rnic_arena_reap(&arena, ended, &now);
	assert_int_equal(peer_byte(a), 7);
	p = alloc(PAGE, &b);
	assert_true(b != a);
	assert_int_equal(rnic_arena_free(&arena, p, 6), 0);
	now = 5;
	rnic_arena_reap(&arena, ended, &now);
	assert_int_equal(bytes_used(), PAGE);
	assert_int_equal(peer_byte(a), 0);
	alloc(PAGE, &c);
	assert_int_equal(c, a);
	now = 6;
	rnic_arena_reap(&arena, ended, &now);
	assert_int_equal(bytes_used(), PAGE);
}

static void finds_what_is_inside(void **state)
{
	uint64_t a, off = 42;
	char *p = alloc(3 * PAGE, &a);
	char here;

	(void)state;
	assert_int_equal(rnic_arena_find(&arena, p, 3 * PAGE, &off), 0);
	assert_int_equal(off, a);
	assert_int_equal(rnic_arena_find(&arena, p + PAGE + 1, 5, &off), 0);
	assert_int_equal(off, a + PAGE + 1);
	off = 42;
	assert_int_equal(rnic_arena_find(&arena, p + 1, 3 * PAGE, &off),
			 -ENOENT);
	assert_int_equal(rnic_arena_find(&arena, p + 1, SIZE_MAX, &off),
			 -ENOENT);
	assert_int_equal(rnic_arena_find(&arena, p - 1, 1, &off), -ENOENT);
	assert_int_equal(rnic_arena_find(&arena, &here, 1, &off), -ENOENT);
	assert_int_equal(off, 42);
	assert_int_equal(rnic_arena_free(&arena, p, 0), 0);
	assert_int_equal(rnic_arena_find(&arena, p, 1, &off), -ENOENT);
}

/* Each block keeps its bytes, whatever comes and goes around it. */
static void random_blocks(void **state)
{
	struct {
		unsigned char *p;
		size_t len;
		uint64_t off;
	} b[BLOCKS] = { 0 };
	uint64_t live = 0, now = 0;

	(void)state;
	srand(4);
	for (int i = 0; i < ROUNDS; i++) {
		int k = rand() % BLOCKS;

		if (b[k].p) {
			for (size_t j = 0; j < b[k].len; j += 1000)
				assert_int_equal(b[k].p[j], k + 1);
			assert_int_equal(peer_byte(b[k].off), k + 1);
			assert_int_equal(
				rnic_arena_free(&arena, b[k].p,
						(uint64_t)(i % 3 ? i : 0)),
				0);
			live -= b[k].len;
			b[k].p = NULL;
			now = (uint64_t)i;
		} else {
			b[k].len = (size_t)(1 + rand() % 40) * PAGE;
			if (!(rand() % 20))
				b[k].len += 2 * mib;
			b[k].p = (unsigned char *)alloc(b[k].len, &b[k].off);
			memset(b[k].p, k + 1, b[k].len);
			live += b[k].len;
		}
		rnic_arena_reap(&arena, ended, &now);
		assert_int_equal(bytes_used(), live);
	}
	for (int k = 0; k < BLOCKS; k++)
		if (b[k].p)
			rnic_arena_free(&arena, b[k].p, 0);
	/* all places are one again */
	alloc(arena.end - RNIC_ARENA_USER, &live);
	assert_int_equal(live, RNIC_ARENA_USER);
}

static int spawn(int (*fn)(void *), void *arg)
{
	pid_t parent = getpid(), pid;
	int status;

	rnic_arena_fork_prepare(&arena);
	pid = fork();
	if (!pid) {
		rnic_arena_fork_child(&arena);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() && getppid() != parent)
			_exit(SKIP);
		alarm(LIMIT_S);
		_exit(fn(arg));
	}
	rnic_arena_fork_parent(&arena);
	/* the child has copied: it must not see this */
	if (arg)
		memset(arg, 0x77, 4 * PAGE);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status)
		       ? WEXITSTATUS(status)
		       : -1;
}

static int reads_its_own(void *arg)
{
	char *p = arg;
	uint64_t off;
	void *q;

	usleep(20000);
	for (int i = 0; i < 4 * PAGE; i++)
		if (p[i] != 0x11)
			return 1;
	memset(p, 0x22, 4 * PAGE);
	if (!rnic_arena_find(&arena, p, 1, &off))
		return 2;
	if (rnic_arena_alloc(&arena, 1, 0, &q, &off) != -EPERM)
		return 3;
	if (rnic_arena_free(&arena, p, 9) || is_mapped(p))
		return 4;
	rnic_arena_fini(&arena);
	return 0;
}

static void contract_L6_child_has_its_own(void **state)
{
	uint64_t off, small;
	char *p = alloc(4 * PAGE, &off);

	(void)state;
	alloc(1, &small);
	memset(p, 0x11, 4 * PAGE);
	assert_int_equal(spawn(reads_its_own, p), 0);
	for (int i = 0; i < 4 * PAGE; i++)
		assert_int_equal(p[i], 0x77);
	assert_int_equal(peer_byte(off), 0x77);
	assert_int_equal(rnic_arena_find(&arena, p, 1, &off), 0);
	assert_int_equal(rnic_arena_free(&arena, p, 0), 0);
}

/* A child that never says it has copied: its death ends the wait. */
static void child_dies_first(void **state)
{
	uint64_t off;
	int status;
	pid_t pid;

	(void)state;
	alloc(PAGE, &off);
	alarm(LIMIT_S);
	rnic_arena_fork_prepare(&arena);
	pid = fork();
	if (!pid) {
		usleep(10000);
		raise(SIGKILL);
	}
	rnic_arena_fork_parent(&arena);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	alarm(0);
	/* and a fork that failed has no child to wait for */
	rnic_arena_fork_prepare(&arena);
	rnic_arena_fork_parent(&arena);
	alloc(PAGE, &off);
}

/* Without memory for the copy: no access, and never the parent's memory. */
static void fork_without_memory(void **state)
{
	struct rlimit rl, old;
	uint64_t off;
	char *p = alloc(PAGE, &off);
	int status, ends[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	getrlimit(RLIMIT_AS, &old);
	rnic_arena_fork_prepare(&arena);
	pid = fork();
	if (!pid) {
		rl = (struct rlimit){ PAGE, old.rlim_max };
		if (setrlimit(RLIMIT_AS, &rl))
			_exit(SKIP);
		rnic_arena_fork_child(&arena);
		/* the address is taken, and holds nothing to read */
		_exit(!is_mapped(p) || write(ends[1], p, 1) >= 0 ||
		      errno != EFAULT);
	}
	rnic_arena_fork_parent(&arena);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(ends[0]);
	close(ends[1]);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIP)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int limited(void *arg)
{
	struct rlimit rl = { RNIC_ARENA_USER, RNIC_ARENA_USER };
	struct rnic_arena a;
	uint64_t off;
	void *p;

	(void)arg;
	if (setrlimit(RLIMIT_FSIZE, &rl))
		return SKIP;
	rnic_arena_init(&a, &seg, &no_numa);
	return rnic_arena_alloc(&a, 1, 0, &p, &off) != -EFBIG || bytes_used();
}

static void file_size_limit(void **state)
{
	int ret;

	(void)state;
	ret = spawn(limited, NULL);
	if (ret == SKIP)
		skip();
	assert_int_equal(ret, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(contract_L2_present_and_shared,
						setup, teardown),
		cmocka_unit_test_setup_teardown(alignment, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_arguments, setup, teardown),
		cmocka_unit_test_setup_teardown(contract_I4_places_wait, setup,
						teardown),
		cmocka_unit_test_setup_teardown(finds_what_is_inside, setup,
						teardown),
		cmocka_unit_test_setup_teardown(random_blocks, setup, teardown),
		cmocka_unit_test_setup_teardown(contract_L6_child_has_its_own,
						setup, teardown),
		cmocka_unit_test_setup_teardown(child_dies_first, setup,
						teardown),
		cmocka_unit_test_setup_teardown(fork_without_memory, setup,
						teardown),
		cmocka_unit_test_setup_teardown(file_size_limit, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
