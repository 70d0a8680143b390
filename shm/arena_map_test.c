/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A peer's memory through windows: the bytes, the bounds, the refusals.
 */
#include "shm/arena_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/log.h"

enum { PAGE = 4096, THREADS = 4, WINDOWS = 100 };

static const uint64_t size = 3 * RNIC_WINDOW_SIZE + 2 * PAGE;

static struct rnic_segment owner;
static struct rnic_arena_map map;

static void ignore(enum rnic_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
}

/* A second descriptor of the owner's file, as attaching makes one. */
static struct rnic_segment peer_of(const struct rnic_segment *s)
{
	struct rnic_segment t;

	assert_int_equal(rnic_segment_open_pid(&t, (uint32_t)getpid(), s->fd,
					       s->dev, s->ino, true),
			 0);
	return t;
}

static int setup(void **state)
{
	struct rnic_segment t;

	(void)state;
	rnic_log_sink(ignore);
	if (rnic_segment_create(&owner, "map-test", size) ||
	    rnic_segment_seal(&owner, F_SEAL_SHRINK))
		return -1;
	rnic_arena_map_init(&map);
	t = peer_of(&owner);
	return rnic_arena_map_add(&map, 0, &t);
}

static int teardown(void **state)
{
	(void)state;
	rnic_arena_map_fini(&map);
	rnic_arena_map_fini(&map);
	rnic_segment_close(&owner);
	rnic_log_sink(NULL);
	return 0;
}

static void bytes_are_the_owner_s(void **state)
{
	uint64_t at = 2 * RNIC_WINDOW_SIZE + 5, n = 42;
	char c = 'x', *p;

	(void)state;
	assert_null(rnic_arena_map_look(&map, 0, at, &n));
	assert_int_equal(n, 42);
	assert_int_equal(rnic_arena_map_window(&map, 0, at), 0);
	p = rnic_arena_map_look(&map, 0, at, &n);
	assert_non_null(p);
	assert_int_equal(n, RNIC_WINDOW_SIZE - 5);
	assert_int_equal(pwrite(owner.fd, &c, 1, (off_t)at), 1);
	assert_int_equal(*p, 'x');
	*p = 'y';
	assert_int_equal(pread(owner.fd, &c, 1, (off_t)at), 1);
	assert_int_equal(c, 'y');
	/* mapped once */
	assert_int_equal(rnic_arena_map_window(&map, 0, at), 0);
	assert_ptr_equal(rnic_arena_map_look(&map, 0, at, &n), p);
	assert_null(rnic_arena_map_look(&map, 0, 0, &n));
}

/* No touch beyond the end of the file: that would be a SIGBUS. */
static void contract_L2_bounds(void **state)
{
	uint64_t n;

	(void)state;
	assert_int_equal(rnic_arena_map_window(&map, 0, size), -EFAULT);
	assert_int_equal(rnic_arena_map_window(&map, 0, UINT64_MAX), -EFAULT);
	assert_int_equal(rnic_arena_map_window(&map, 0, size - 1), 0);
	assert_non_null(rnic_arena_map_look(&map, 0, size - 1, &n));
	assert_int_equal(n, 1);
	assert_null(rnic_arena_map_look(&map, 0, size, &n));
	assert_null(rnic_arena_map_look(&map, 0, UINT64_MAX, &n));
	/* the owner's file has grown */
	assert_int_equal(ftruncate(owner.fd, (off_t)(size + PAGE)), 0);
	assert_null(rnic_arena_map_look(&map, 0, size, &n));
	assert_int_equal(rnic_arena_map_window(&map, 0, size), 0);
	assert_non_null(rnic_arena_map_look(&map, 0, size, &n));
	assert_int_equal(n, PAGE);
}

static void spaces(void **state)
{
	struct rnic_segment t = peer_of(&owner), open;
	uint64_t n;

	(void)state;
	assert_int_equal(rnic_arena_map_window(&map, 1, 0), -ENOENT);
	assert_int_equal(rnic_arena_map_window(&map, 256, 0), -ENOENT);
	assert_null(rnic_arena_map_look(&map, 1, 0, &n));
	assert_null(rnic_arena_map_look(&map, 256, 0, &n));
	assert_null(rnic_arena_map_look(&map, UINT32_MAX, 0, &n));
	assert_int_equal(rnic_arena_map_add(&map, 0, &t), -EEXIST);
	assert_int_equal(rnic_arena_map_add(&map, 256, &t), -EINVAL);
	assert_int_equal(rnic_arena_map_add(&map, 255, &t), 0);
	assert_int_equal(rnic_arena_map_window(&map, 255, 0), 0);
	assert_non_null(rnic_arena_map_look(&map, 255, 0, &n));
	/* a file that can shrink is a SIGBUS to come */
	assert_int_equal(rnic_segment_create(&open, "map-test-2", PAGE), 0);
	assert_int_equal(rnic_arena_map_add(&map, 2, &open), -EPROTO);
	rnic_segment_close(&open);
}

static void *looker(void *arg)
{
	uint64_t n;

	(void)arg;
	for (int i = 0; i < WINDOWS; i++) {
		uint64_t at = (uint64_t)(i % 4) << RNIC_WINDOW_SHIFT;
		char *p = rnic_arena_map_look(&map, 0, at, &n);

		if (!p && rnic_arena_map_window(&map, 0, at))
			return arg;
		p = rnic_arena_map_look(&map, 0, at, &n);
		if (!p || n < 1)
			return arg;
	}
	return NULL;
}

static void threads(void **state)
{
	pthread_t t[THREADS];
	void *bad;

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, looker, &map), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(t[i], &bad), 0);
		assert_null(bad);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bytes_are_the_owner_s, setup,
						teardown),
		cmocka_unit_test_setup_teardown(contract_L2_bounds, setup,
						teardown),
		cmocka_unit_test_setup_teardown(spaces, setup, teardown),
		cmocka_unit_test_setup_teardown(threads, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
