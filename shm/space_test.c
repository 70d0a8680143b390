/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Spaces: which memory is in one, what becomes of the descriptors, and what a
 * peer maps, also when numbers are used again and tables lie.
 */
#include "shm/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/arena_map.h"
#include "shm/device.h"
#include "shm/log.h"
#include "shm/mtt.h"
#include "shm/pin.h"
#include "shm/remote.h"

enum { PAGE = 4096, LEN = 16 * PAGE, LIMIT_S = 120 };

/* A device, and this process as its peer. */
struct bed {
	struct rnic_device dev;	      /* the owner's */
	struct rnic_place place;      /* an endpoint, to attach to */
	struct rnic_remote *r;	      /* as a peer sees it */
	struct rnic_arena_map map;    /* the peer's */
	struct rnic_space_view *view; /* the peer's */
};

/* A memory file and where it is mapped. */
struct file {
	int fd;	   /* open for both */
	char *mem; /* LEN bytes, shared */
};

static void ignore(enum rnic_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
}

static int setup(void **state)
{
	static const struct rnic_device_cfg cfg = { .heap_bytes = 1 << 20 };
	struct bed *b = calloc(1, sizeof(*b));
	struct rnic_addr addr;

	assert_non_null(b);
	assert_int_equal(rnic_device_open(&b->dev, &cfg), 0);
	assert_int_equal(rnic_place_open(&b->dev, &b->place), 0);
	rnic_place_addr(&b->place, &addr);
	assert_int_equal(rnic_remote_open(&addr, RNIC_ATTACH_PROC, &b->r), 0);
	assert_int_equal(rnic_remote_tables(b->r), 0);
	rnic_arena_map_init(&b->map);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	rnic_space_view_free(b->view);
	rnic_arena_map_fini(&b->map);
	rnic_remote_close(b->r);
	rnic_place_close(&b->place);
	rnic_device_close(&b->dev);
	free(b);
	return 0;
}

/* @len bytes, LEN of them mapped from @off on. */
static struct file make(int seals, off_t len, off_t off)
{
	struct file f = { .fd = memfd_create("space-test",
					     MFD_CLOEXEC | MFD_ALLOW_SEALING) };

	assert_true(f.fd >= 0);
	assert_int_equal(ftruncate(f.fd, len), 0);
	f.mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, off);
	assert_true(f.mem != MAP_FAILED);
	if (seals)
		assert_int_equal(fcntl(f.fd, F_ADD_SEALS, seals), 0);
	return f;
}

static struct file sealed(void)
{
	return make(F_SEAL_SHRINK, LEN, 0);
}

static void drop(struct file *f)
{
	munmap(f->mem, LEN);
	if (f->fd >= 0)
		close(f->fd);
}

/* As registration asks: -ENOENT or the leaf. */
static int get(struct bed *b, const void *p, size_t len, uint64_t *leaf)
{
	struct rnic_vma v;

	assert_int_equal(rnic_pin_check_map(p, len, PROT_READ, &v), 0);
	return rnic_space_get(&b->dev.spaces, &v, (uintptr_t)p, len, leaf);
}

static void refused(struct bed *b, const void *p, size_t len)
{
	uint64_t leaf;

	assert_int_equal(get(b, p, len, &leaf), -ENOENT);
	assert_int_equal(rnic_spaces_used(&b->dev.spaces), 0);
}

static unsigned int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* ---- the owner ---- */

static void regions_are_counted(void **state)
{
	struct bed *b = *state;
	struct file f = sealed(), g = sealed();
	unsigned int before = descriptors();
	uint64_t x, y, z;

	assert_int_equal(get(b, f.mem, LEN, &x), 0);
	assert_int_equal(get(b, f.mem + 3 * PAGE + 5, 7, &y), 0);
	assert_int_equal(get(b, g.mem, LEN, &z), 0);
	assert_int_equal(x, rnic_mtt_leaf_space(1, 0));
	assert_int_equal(y, rnic_mtt_leaf_space(1, 3));
	assert_int_equal(z, rnic_mtt_leaf_space(2, 0));
	assert_int_equal(rnic_spaces_used(&b->dev.spaces), 2);
	assert_int_equal(descriptors(), before + 2);
	rnic_space_put(&b->dev.spaces, x);
	assert_int_equal(descriptors(), before + 2);
	rnic_space_put(&b->dev.spaces, y);
	assert_int_equal(descriptors(), before + 1);
	rnic_space_put(&b->dev.spaces, z);
	assert_int_equal(descriptors(), before);
	assert_int_equal(rnic_spaces_used(&b->dev.spaces), 0);
	drop(&f);
	drop(&g);
}

/* What a peer could not map without risk, or at all. */
static void contract_L2_what_is_no_space(void **state)
{
	static const int seals[] = { 0, F_SEAL_GROW,
				     F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE };
	struct bed *b = *state;
	struct file f;
	char path[64], *p;
	int ro;

	for (int i = 0; i < 3; i++) {
		f = make(seals[i], LEN, 0);
		refused(b, f.mem, LEN);
		drop(&f);
	}
	/* the descriptor is gone, or for reading only */
	f = sealed();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f.fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	close(f.fd);
	f.fd = -1;
	assert_true(ro >= 0);
	refused(b, f.mem, LEN);
	close(ro);
	refused(b, f.mem, LEN);
	drop(&f);
	/* the file ends before the range does */
	f = make(F_SEAL_SHRINK, LEN - 1, 0);
	refused(b, f.mem, LEN);
	drop(&f);
	/* private, and shared without a memfd */
	f = sealed();
	p = mmap(NULL, LEN, PROT_READ, MAP_PRIVATE, f.fd, 0);
	assert_true(p != MAP_FAILED);
	refused(b, p, LEN);
	munmap(p, LEN);
	drop(&f);
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		 -1, 0);
	assert_true(p != MAP_FAILED);
	refused(b, p, LEN);
	munmap(p, LEN);
}

/* The device's own arena is space 0 and no other. */
static void arena_is_no_space(void **state)
{
	struct bed *b = *state;
	uint64_t off;
	void *p;

	assert_int_equal(rnic_arena_alloc(&b->dev.user, LEN, 0, &p, &off), 0);
	refused(b, p, LEN);
	assert_int_equal(rnic_arena_free(&b->dev.user, p, 0), 0);
}

static void any_offset(void **state)
{
	struct bed *b = *state;
	struct file f = make(F_SEAL_SHRINK, 64 * PAGE, 13 * PAGE);
	uint64_t leaf;

	assert_int_equal(get(b, f.mem + 2 * PAGE + 1, 100, &leaf), 0);
	assert_int_equal(leaf, rnic_mtt_leaf_space(1, 15));
	rnic_space_put(&b->dev.spaces, leaf);
	drop(&f);
}

/* Locks and protections split mappings; the file goes on. */
static void split_mappings(void **state)
{
	struct bed *b = *state;
	struct file f = sealed(), g = sealed();
	uint64_t leaf;

	if (!rnic_vma_fast()) {
		drop(&f);
		drop(&g);
		skip();
	}
	assert_int_equal(mprotect(f.mem + PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(get(b, f.mem, LEN, &leaf), 0);
	rnic_space_put(&b->dev.spaces, leaf);
	/* another part of the same file in between; another file */
	assert_true(mmap(f.mem + 2 * PAGE, PAGE, PROT_READ,
			 MAP_SHARED | MAP_FIXED, f.fd, 0) != MAP_FAILED);
	refused(b, f.mem, LEN);
	assert_true(mmap(g.mem + 2 * PAGE, PAGE, PROT_READ,
			 MAP_SHARED | MAP_FIXED, f.fd, 2 * PAGE) != MAP_FAILED);
	refused(b, g.mem, LEN);
	assert_int_equal(get(b, g.mem, 2 * PAGE, &leaf), 0);
	rnic_space_put(&b->dev.spaces, leaf);
	drop(&f);
	drop(&g);
}

/* What was found is there, whole, at its offset, in how many pieces ever. */
static void what_was_found_is_looked_for(void **state)
{
	struct bed *b = *state;
	struct rnic_spaces *s = &b->dev.spaces;
	struct file f = make(F_SEAL_SHRINK, 64 * PAGE, 13 * PAGE), g = sealed();
	uint64_t at = (uintptr_t)f.mem + 2 * PAGE + 7, len = 5 * PAGE, leaf;

	assert_int_equal(get(b, (void *)at, len, &leaf), 0);
	assert_true(rnic_space_holds(s, leaf, at, len));
	assert_int_equal(mprotect(f.mem + 4 * PAGE, PAGE, PROT_READ), 0);
	assert_true(rnic_space_holds(s, leaf, at, len));
	assert_false(rnic_space_holds(s, leaf, at + PAGE, len));
	assert_false(rnic_space_holds(s, leaf, (uintptr_t)g.mem, len));
	/* the last page: another one of the file, another file's, none */
	assert_true(mmap(f.mem + 7 * PAGE, PAGE, PROT_READ,
			 MAP_SHARED | MAP_FIXED, f.fd, 0) != MAP_FAILED);
	assert_false(rnic_space_holds(s, leaf, at, len));
	assert_true(rnic_space_holds(s, leaf, at, len - PAGE));
	assert_true(mmap(f.mem + 7 * PAGE, PAGE, PROT_READ,
			 MAP_SHARED | MAP_FIXED, f.fd,
			 20 * PAGE) != MAP_FAILED);
	assert_true(rnic_space_holds(s, leaf, at, len));
	assert_true(mmap(f.mem + 7 * PAGE, PAGE, PROT_READ,
			 MAP_SHARED | MAP_FIXED, g.fd, 7 * PAGE) != MAP_FAILED);
	assert_false(rnic_space_holds(s, leaf, at, len));
	assert_true(mmap(f.mem + 7 * PAGE, PAGE, PROT_READ,
			 MAP_PRIVATE | MAP_FIXED, f.fd,
			 20 * PAGE) != MAP_FAILED);
	assert_false(rnic_space_holds(s, leaf, at, len));
	assert_int_equal(munmap(f.mem + 7 * PAGE, PAGE), 0);
	assert_false(rnic_space_holds(s, leaf, at, len));
	rnic_space_put(s, leaf);
	drop(&f);
	drop(&g);
}

/* A peer's touch finds the pages there. */
static void contract_L2_pages_are_made(void **state)
{
	struct bed *b = *state;
	struct file f = sealed();
	struct stat st;
	uint64_t leaf;

	assert_int_equal(get(b, f.mem + PAGE, 5 * PAGE, &leaf), 0);
	assert_int_equal(fstat(f.fd, &st), 0);
	assert_true(st.st_blocks * 512 >= 5 * PAGE);
	rnic_space_put(&b->dev.spaces, leaf);
	drop(&f);
}

static void numbers_run_out(void **state)
{
	struct bed *b = *state;
	struct file f[RNIC_SPACES];
	uint64_t leaf[RNIC_SPACES];

	for (int i = 0; i < RNIC_SPACES; i++) {
		f[i] = sealed();
		assert_int_equal(get(b, f[i].mem, LEN, &leaf[i]),
				 i < RNIC_SPACES - 1 ? 0 : -ENOENT);
	}
	rnic_space_put(&b->dev.spaces, leaf[99]);
	assert_int_equal(get(b, f[RNIC_SPACES - 1].mem, LEN, &leaf[99]), 0);
	assert_int_equal(rnic_mtt_leaf_space_of(leaf[99]), 100);
	for (int i = 0; i < RNIC_SPACES; i++) {
		if (i < RNIC_SPACES - 1)
			rnic_space_put(&b->dev.spaces, leaf[i]);
		drop(&f[i]);
	}
	assert_int_equal(rnic_spaces_used(&b->dev.spaces), 0);
}

static void child_closes(void **state)
{
	struct bed *b = *state;
	struct file f = sealed();
	uint64_t leaf;
	int status, fd;
	pid_t pid;

	assert_int_equal(get(b, f.mem, LEN, &leaf), 0);
	fd = b->dev.spaces.own[1].seg.fd;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(LIMIT_S);
		rnic_device_forked(&b->dev);
		_exit(fcntl(fd, F_GETFD) >= 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	rnic_space_put(&b->dev.spaces, leaf);
	drop(&f);
}

/* ---- the peer ---- */

static int attach(struct bed *b, unsigned int space)
{
	return rnic_space_attach(&b->view, b->r, &b->map, space);
}

/* The byte at @off of @space, as a peer sees it. */
static int byte_at(struct bed *b, unsigned int space, uint64_t off)
{
	uint64_t n;
	char *p;

	assert_true(rnic_space_current(b->view, space));
	assert_int_equal(rnic_arena_map_window(&b->map, space, off), 0);
	p = rnic_arena_map_look(&b->map, space, off, &n);
	assert_non_null(p);
	return *p;
}

/* Also when the application has closed and unmapped it. */
static void peer_maps(void **state)
{
	struct bed *b = *state;
	struct file f = sealed();
	uint64_t leaf;

	assert_false(rnic_space_current(NULL, 1));
	assert_int_equal(attach(b, 1), -ENOKEY);
	assert_int_equal(get(b, f.mem, LEN, &leaf), 0);
	f.mem[5 * PAGE] = 42;
	close(f.fd);
	f.fd = -1;
	assert_int_equal(attach(b, 1), 0);
	assert_int_equal(byte_at(b, 1, 5 * PAGE), 42);
	f.mem[5 * PAGE] = 43;
	assert_int_equal(byte_at(b, 1, 5 * PAGE), 43);
	/* once only */
	assert_int_equal(attach(b, 1), 0);
	drop(&f);
	assert_int_equal(byte_at(b, 1, 5 * PAGE), 43);
	rnic_space_put(&b->dev.spaces, leaf);
	assert_false(rnic_space_current(b->view, 1));
	assert_int_equal(attach(b, 1), -ENOKEY);
	assert_int_equal(attach(b, 2), -ENOKEY);
}

/* The number of a file that left is that of the next one. */
static void numbers_come_back(void **state)
{
	struct bed *b = *state;
	unsigned int before = descriptors();

	for (int i = 0; i < 20; i++) {
		struct file f = sealed();
		uint64_t leaf;

		assert_int_equal(get(b, f.mem, LEN, &leaf), 0);
		assert_int_equal(leaf, rnic_mtt_leaf_space(1, 0));
		f.mem[1] = (char)i;
		if (i)
			assert_false(rnic_space_current(b->view, 1));
		assert_int_equal(attach(b, 1), 0);
		assert_int_equal(byte_at(b, 1, 1), i);
		rnic_space_put(&b->dev.spaces, leaf);
		drop(&f);
	}
	/* what is no more is swept when another one comes */
	assert_int_equal(attach(b, 7), -ENOKEY);
	assert_int_equal(descriptors(), before);
}

/* Tables that lie: another file, none, one that can shrink. */
static void contract_L3_tables_lie(void **state)
{
	struct bed *b = *state;
	struct file f = make(0, LEN, 0);
	struct rnic_space *e = &b->dev.spaces.table[3];
	struct stat st;

	assert_int_equal(fstat(f.fd, &st), 0);
	rnic_store64_relaxed(&e->gen, 1);
	rnic_store64_relaxed(&e->fd, (uint64_t)f.fd);
	rnic_store64_relaxed(&e->ino, st.st_ino);
	assert_int_equal(attach(b, 3), -EPROTO);
	rnic_store64_relaxed(&e->ino, st.st_ino + 1000000);
	assert_int_equal(attach(b, 3), -ESRCH);
	rnic_store64_relaxed(&e->fd, UINT64_MAX);
	assert_int_equal(attach(b, 3), -EPROTO);
	rnic_store64_relaxed(&e->fd, 99999);
	assert_int_equal(attach(b, 3), -ESRCH);
	assert_false(rnic_space_current(b->view, 3));
	rnic_store64_relaxed(&e->gen, 0);
	drop(&f);
}

/* Descriptors of who was attached over the socket cannot be opened. */
static void not_by_socket(void **state)
{
	struct bed *b = *state;
	struct file f = sealed();
	uint64_t leaf;

	assert_int_equal(get(b, f.mem, LEN, &leaf), 0);
	b->r->by_socket = true;
	assert_int_equal(attach(b, 1), -EREMOTE);
	b->r->by_socket = false;
	assert_int_equal(attach(b, 1), 0);
	rnic_space_put(&b->dev.spaces, leaf);
	drop(&f);
}

/* The application closes one descriptor, has another one, seals late. */
static void descriptors_move(void **state)
{
	struct bed *b = *state;
	struct file f = make(0, LEN, 0);
	uint64_t leaf;
	int other;

	/* asked twice: what is remembered of it must not stick */
	refused(b, f.mem, LEN);
	refused(b, f.mem, LEN);
	assert_int_equal(fcntl(f.fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(get(b, f.mem, LEN, &leaf), 0);
	rnic_space_put(&b->dev.spaces, leaf);
	other = dup(f.fd);
	assert_int_equal(dup2(STDERR_FILENO, f.fd), f.fd);
	assert_int_equal(get(b, f.mem, LEN, &leaf), 0);
	rnic_space_put(&b->dev.spaces, leaf);
	close(other);
	refused(b, f.mem, LEN);
	drop(&f);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(regions_are_counted),
		CASE(contract_L2_what_is_no_space),
		CASE(arena_is_no_space),
		CASE(any_offset),
		CASE(split_mappings),
		CASE(what_was_found_is_looked_for),
		CASE(contract_L2_pages_are_made),
		CASE(numbers_run_out),
		CASE(child_closes),
		CASE(peer_maps),
		CASE(numbers_come_back),
		CASE(contract_L3_tables_lie),
		CASE(not_by_socket),
		CASE(descriptors_move),
	};

	alarm(LIMIT_S);
	rnic_log_sink(ignore);
	/* opens a descriptor that stays */
	rnic_vma_fast();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
