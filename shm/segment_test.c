/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Segments: made, sealed, mapped, populated; and those of peers, honest and
 * not.
 */
#include "shm/segment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/child_kit.h"
#include "shm/log.h"

enum {
	LIMIT_S = 60,	/* the whole program ends by then */
	NOBODY = 65534, /* a user without rights */
	PAGE = 4096,	/* bytes */
};

static const uint64_t big = UINT64_C(1) << 40; /* sparse */

static unsigned int logged;
static char last[1024];

static void record(enum rnic_log_level level, const char *msg)
{
	(void)level;
	snprintf(last, sizeof(last), "%s", msg);
	logged++;
}

static int setup(void **state)
{
	(void)state;
	logged = 0;
	rnic_log_sink(record);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rnic_log_sink(NULL);
	return 0;
}

static struct rnic_segment make(uint64_t size)
{
	struct rnic_segment s;

	assert_int_equal(rnic_segment_create(&s, "segment-test", size), 0);
	return s;
}

static struct rnic_segment make_sealed(uint64_t size)
{
	struct rnic_segment s = make(size);

	assert_int_equal(rnic_segment_seal(&s, F_SEAL_SHRINK), 0);
	return s;
}

static uint64_t bytes_used(const struct rnic_segment *s)
{
	struct stat st;

	assert_int_equal(fstat(s->fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* ---- our own ---- */

static void create_tells_the_truth(void **state)
{
	struct rnic_segment s = make(big);
	struct stat st;

	(void)state;
	assert_int_equal(fstat(s.fd, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(s.size, big);
	assert_int_equal(st.st_size, big);
	assert_int_equal(s.dev, st.st_dev);
	assert_int_equal(s.ino, st.st_ino);
	assert_int_equal(st.st_blocks, 0);
	assert_true(fcntl(s.fd, F_GETFD) & FD_CLOEXEC);
	assert_false(fcntl(s.fd, F_GET_SEALS) & F_SEAL_SEAL);
	rnic_segment_close(&s);
	assert_int_equal(s.fd, -1);
	rnic_segment_close(&s);
	assert_int_equal(logged, 0);
}

static int limited(void *arg)
{
	struct rlimit rl = { .rlim_cur = PAGE, .rlim_max = RLIM_INFINITY };
	struct rnic_segment s;
	char want[32];

	(void)arg;
	if (setrlimit(RLIMIT_FSIZE, &rl))
		return KIT_SKIP;
	if (rnic_segment_create(&s, "limited", PAGE))
		return 1;
	rnic_segment_close(&s);
	if (rnic_segment_create(&s, "limited", big) != -EFBIG)
		return 2;
	if (logged != 1 || s.fd != -1)
		return 3;
	/* name, limit, need */
	snprintf(want, sizeof(want), "%llu", (unsigned long long)big);
	return strstr(last, "limited") && strstr(last, "4096 bytes") &&
			       strstr(last, want) && strstr(last, "ulimit -f")
		       ? 0
		       : 4;
}

static void file_size_limit_is_said(void **state)
{
	(void)state;
	kit_in_child(limited, NULL);
}

static int closed_streams(void *arg)
{
	struct rnic_segment s, t = { .fd = -1 };

	(void)arg;
	close(0);
	close(1);
	close(2);
	if (rnic_segment_create(&s, "x", PAGE) || s.fd <= 2)
		return 1;
	if (rnic_segment_seal(&s, F_SEAL_SHRINK))
		return 2;
	if (rnic_segment_open_pid(&t, (uint32_t)getpid(), s.fd, s.dev, s.ino,
				  true) ||
	    t.fd <= 2)
		return 3;
	if (!(fcntl(s.fd, F_GETFD) & FD_CLOEXEC) ||
	    !(fcntl(t.fd, F_GETFD) & FD_CLOEXEC))
		return 4;
	return is_open(0) || is_open(1) || is_open(2) ? 5 : 0;
}

static void never_is_a_standard_stream(void **state)
{
	(void)state;
	kit_in_child(closed_streams, NULL);
}

static int no_descriptor(void *arg)
{
	struct rlimit none = { 0 };
	struct rnic_segment s;

	(void)arg;
	if (setrlimit(RLIMIT_NOFILE, &none))
		return KIT_SKIP;
	if (rnic_segment_create(&s, "x", PAGE) != -EMFILE)
		return 1;
	return logged == 1 && s.fd == -1 ? 0 : 2;
}

static void descriptors_run_out(void **state)
{
	(void)state;
	kit_in_child(no_descriptor, NULL);
}

static void seals_hold(void **state)
{
	struct rnic_segment s = make(2 * PAGE);

	(void)state;
	assert_int_equal(rnic_segment_seal(&s, F_SEAL_SHRINK | F_SEAL_GROW |
						       F_SEAL_FUTURE_WRITE |
						       F_SEAL_SEAL),
			 0);
	assert_int_equal(ftruncate(s.fd, PAGE), -1);
	assert_int_equal(ftruncate(s.fd, 3 * PAGE), -1);
	assert_int_equal(pwrite(s.fd, "x", 1, 0), -1);
	assert_int_equal(logged, 0);
	assert_int_equal(rnic_segment_seal(&s, F_SEAL_WRITE), -EPERM);
	assert_int_equal(logged, 1);
	/* not even a hole can be punched */
	assert_int_equal(rnic_segment_discard(&s, 0, PAGE), -EPERM);
	assert_int_equal(logged, 2);
	rnic_segment_close(&s);
}

/* ---- mapping ---- */

static bool is_mapped(void *p)
{
	return !msync(p, PAGE, MS_ASYNC);
}

static int is_not_inherited(void *p)
{
	return is_mapped(p);
}

static bool has_flags(const void *p, const char *a, const char *b)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long from, to;
	char line[512], perms[5];
	bool here = false, have = false;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %4s", &from, &to, perms) == 3)
			here = from <= (uintptr_t)p && (uintptr_t)p < to;
		else if (here && !strncmp(line, "VmFlags:", 8))
			have = strstr(line, a) && strstr(line, b);
	}
	fclose(f);
	return have;
}

static void maps_are_shared(void **state)
{
	struct rnic_segment s = make(4 * PAGE);
	void *a, *b;

	(void)state;
	assert_int_equal(rnic_segment_map(&s, PAGE, 2 * PAGE,
					  PROT_READ | PROT_WRITE, &a),
			 0);
	assert_int_equal(rnic_segment_map(&s, 2 * PAGE, PAGE, PROT_READ, &b),
			 0);
	strcpy((char *)a + PAGE, "seen");
	assert_string_equal(b, "seen");
	assert_true(has_flags(a, " dd ", " dc "));
	kit_in_child(is_not_inherited, a);
	rnic_segment_unmap(b, PAGE);
	assert_false(is_mapped(b));
	rnic_segment_unmap(a, 2 * PAGE);
	rnic_segment_close(&s);
	assert_int_equal(logged, 0);
}

static void map_refusals(void **state)
{
	struct rnic_segment s = make_sealed(PAGE), ro = { .fd = -1 };
	void *p = &s;

	(void)state;
	assert_int_equal(rnic_segment_open_pid(&ro, (uint32_t)getpid(), s.fd,
					       s.dev, s.ino, false),
			 0);
	assert_int_equal(
		rnic_segment_map(&ro, 0, PAGE, PROT_READ | PROT_WRITE, &p),
		-EACCES);
	assert_int_equal(rnic_segment_map(&s, 1, PAGE, PROT_READ, &p), -EINVAL);
	assert_int_equal(logged, 2);
	assert_ptr_equal(p, &s);
	rnic_segment_close(&ro);
	rnic_segment_close(&s);
}

/* ---- pages ---- */

static void populate_and_discard(void **state)
{
	struct rnic_segment s = make(big);
	const uint64_t at = big / 2;
	char c = 'x', d = 'y';

	(void)state;
	assert_int_equal(rnic_segment_populate(&s, at, 16 * PAGE), 0);
	assert_int_equal(bytes_used(&s), 16 * PAGE);
	assert_int_equal(pwrite(s.fd, &c, 1, (off_t)at), 1);
	/* what is there stays */
	assert_int_equal(rnic_segment_populate(&s, at, 32 * PAGE), 0);
	assert_int_equal(pread(s.fd, &d, 1, (off_t)at), 1);
	assert_int_equal(d, 'x');
	assert_int_equal(rnic_segment_discard(&s, at, 32 * PAGE), 0);
	assert_int_equal(bytes_used(&s), 0);
	assert_int_equal(pread(s.fd, &d, 1, (off_t)at), 1);
	assert_int_equal(d, 0);
	assert_int_equal(lseek(s.fd, 0, SEEK_END), big);
	assert_int_equal(logged, 0);
	rnic_segment_close(&s);
}

static void populate_beyond_a_sealed_end(void **state)
{
	struct rnic_segment s = make(PAGE);

	(void)state;
	assert_int_equal(rnic_segment_seal(&s, F_SEAL_GROW), 0);
	assert_int_equal(rnic_segment_populate(&s, PAGE, PAGE), -EPERM);
	assert_int_equal(logged, 1);
	assert_int_equal(rnic_segment_populate(&s, 0, 0), -EINVAL);
	rnic_segment_close(&s);
}

/* A memory file system of 64 KiB in place of the one memfds lie in. */
static int full(void *arg)
{
	struct rnic_segment s = { .size = big };

	(void)arg;
	if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return KIT_SKIP;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/mnt", "tmpfs", 0, "size=64k"))
		return KIT_SKIP;
	s.fd = open("/mnt/x", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s.fd < 0)
		return KIT_SKIP;
	if (rnic_segment_populate(&s, 0, 32 << 10))
		return 1;
	if (rnic_segment_populate(&s, 0, 1 << 20) != -ENOSPC)
		return 2;
	return logged == 1 && strstr(last, "1048576 bytes") &&
			       strstr(last, strerror(ENOSPC))
		       ? 0
		       : 3;
}

static void no_room_is_said(void **state)
{
	(void)state;
	kit_in_child(full, NULL);
}

/* More than there is, which the kernel would begin to give. */
static int more_than_there_is(void *arg)
{
	struct rnic_segment s = make(big);
	int ret;

	(void)arg;
	/* if it is asked, it does not do it */
	if (kit_forbid(SYS_fallocate, EXDEV))
		return KIT_SKIP;
	ret = rnic_segment_populate(&s, 0, big);
	if (ret != -ENOMEM || logged != 1 || !strstr(last, strerror(ENOMEM)))
		return 1;
	ret = rnic_segment_populate_rest(&s, 0, big);
	if (ret != -ENOMEM)
		return 2;
	/* what is little, or may be there already, is asked for */
	if (rnic_segment_populate(&s, 0, PAGE) != -EXDEV)
		return 3;
	return 0;
}

static void contract_L2_more_than_there_is(void **state)
{
	(void)state;
	kit_in_child(more_than_there_is, NULL);
}

/* ---- those of peers ---- */

struct offer {
	pid_t pid;    /* who has it */
	int fd;	      /* its descriptor there */
	uint64_t dev; /* what it must be */
	uint64_t ino;
};

static struct offer offer_of(const struct rnic_segment *s, pid_t pid)
{
	return (struct offer){ pid, s->fd, s->dev, s->ino };
}

static int open_offer(struct rnic_segment *s, const struct offer *o,
		      bool writable)
{
	return rnic_segment_open_pid(s, (uint32_t)o->pid, o->fd, o->dev, o->ino,
				     writable);
}

static void opens_a_peers(void **state)
{
	struct rnic_segment s = make_sealed(2 * PAGE), r, w;
	pid_t pid = kit_spawn(kit_idle, NULL);
	struct offer o = offer_of(&s, pid);
	char c = 0;

	(void)state;
	rnic_segment_close(&s);
	assert_int_equal(open_offer(&w, &o, true), 0);
	assert_int_equal(open_offer(&r, &o, false), 0);
	assert_int_equal(r.size, 2 * PAGE);
	assert_int_equal(r.dev, o.dev);
	assert_int_equal(r.ino, o.ino);
	assert_true(fcntl(r.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(pwrite(w.fd, "x", 1, 0), 1);
	assert_int_equal(pread(r.fd, &c, 1, 0), 1);
	assert_int_equal(c, 'x');
	assert_int_equal(pwrite(r.fd, "y", 1, 0), -1);
	rnic_segment_close(&r);
	rnic_segment_close(&w);
	assert_int_equal(logged, 0);
	kit_end(pid);
}

/* A failed open must leave @s alone: it may hold anything. */
static void open_fails(const struct offer *o, int error, unsigned int logs)
{
	struct rnic_segment s = { .fd = dup(STDERR_FILENO), .size = 7 };
	int fd = s.fd;

	logged = 0;
	assert_int_equal(open_offer(&s, o, false), error);
	assert_int_equal(logged, logs);
	assert_int_equal(s.fd, fd);
	assert_int_equal(s.size, 7);
	assert_true(is_open(fd));
	close(fd);
}

static void gone_is_not_logged(void **state)
{
	struct rnic_segment s = make_sealed(PAGE);
	pid_t pid = kit_spawn(kit_idle, NULL);
	struct offer o = offer_of(&s, pid), closed = o, none = o;

	(void)state;
	closed.fd = 987;
	open_fails(&closed, -ESRCH, 0);
	none.fd = -5;
	open_fails(&none, -ESRCH, 0);
	kit_end(pid);
	open_fails(&o, -ESRCH, 0);
	rnic_segment_close(&s);
}

static void another_object_is_refused(void **state)
{
	struct rnic_segment s = make_sealed(PAGE), t = make_sealed(PAGE);
	struct offer o = offer_of(&s, getpid());

	(void)state;
	o.ino = t.ino;
	open_fails(&o, -ESTALE, 0);
	o = offer_of(&s, getpid());
	o.dev++;
	open_fails(&o, -ESTALE, 0);
	rnic_segment_close(&s);
	rnic_segment_close(&t);
}

static struct offer offer_fd(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (struct offer){ getpid(), fd, st.st_dev, st.st_ino };
}

static void what_can_shrink_is_refused(void **state)
{
	struct rnic_segment s = make(PAGE);
	FILE *f = tmpfile();
	struct offer o = offer_of(&s, getpid()), file;

	(void)state;
	open_fails(&o, -EPROTO, 1);
	assert_int_equal(rnic_segment_seal(&s, F_SEAL_GROW), 0);
	open_fails(&o, -EPROTO, 1);
	assert_non_null(f);
	file = offer_fd(fileno(f));
	open_fails(&file, -EPROTO, 1);
	fclose(f);
	rnic_segment_close(&s);
}

/* Opened for reading, a FIFO without a writer would wait for one. */
static void fifo_is_not_opened(void **state)
{
	char dir[] = "/tmp/segment-test-XXXXXX", path[64];
	struct offer o;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	unlink(path);
	rmdir(dir);
	assert_true(fd >= 0);
	o = offer_fd(fd);
	open_fails(&o, -EPROTO, 1);
	close(fd);
}

static int as_nobody(void *arg)
{
	struct rnic_segment s = { .fd = -1 };

	if (geteuid() || setgid(NOBODY) || setuid(NOBODY))
		return KIT_SKIP;
	if (open_offer(&s, arg, false) != -EACCES)
		return 1;
	return logged || s.fd != -1 ? 2 : 0;
}

static void another_user_is_refused(void **state)
{
	struct rnic_segment s = make_sealed(PAGE);
	struct offer o = offer_of(&s, getpid());

	(void)state;
	kit_in_child(as_nobody, &o);
	rnic_segment_close(&s);
}

/* ---- received ones ---- */

static void adopts_what_is_sound(void **state)
{
	struct rnic_segment s = make_sealed(2 * PAGE), t;
	int fd = dup(s.fd);

	(void)state;
	assert_int_equal(rnic_segment_adopt(&t, fd, 2 * PAGE), 0);
	assert_int_equal(t.fd, fd);
	assert_int_equal(t.size, 2 * PAGE);
	assert_int_equal(t.dev, s.dev);
	assert_int_equal(t.ino, s.ino);
	rnic_segment_close(&t);
	assert_false(is_open(fd));
	rnic_segment_close(&s);
	assert_int_equal(logged, 0);
}

static void adopt_fails(int fd, uint64_t min_size)
{
	struct rnic_segment t = { .fd = -1, .size = 7 };

	assert_int_equal(rnic_segment_adopt(&t, fd, min_size), -EPROTO);
	assert_int_equal(t.fd, -1);
	assert_int_equal(t.size, 7);
}

static void adopts_nothing_else(void **state)
{
	struct rnic_segment s = make_sealed(PAGE), bare = make(PAGE);
	FILE *f = tmpfile();

	(void)state;
	assert_non_null(f);
	adopt_fails(s.fd, PAGE + 1);
	adopt_fails(bare.fd, 0);
	adopt_fails(fileno(f), 0);
	assert_int_equal(logged, 3);
	adopt_fails(-1, 0);
	/* the caller keeps them */
	assert_true(is_open(s.fd) && is_open(bare.fd) && is_open(fileno(f)));
	fclose(f);
	rnic_segment_close(&s);
	rnic_segment_close(&bare);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(create_tells_the_truth),
		TEST(file_size_limit_is_said),
		TEST(never_is_a_standard_stream),
		TEST(descriptors_run_out),
		TEST(seals_hold),
		TEST(maps_are_shared),
		TEST(map_refusals),
		TEST(populate_and_discard),
		TEST(populate_beyond_a_sealed_end),
		TEST(no_room_is_said),
		TEST(contract_L2_more_than_there_is),
		TEST(opens_a_peers),
		TEST(gone_is_not_logged),
		TEST(another_object_is_refused),
		TEST(what_can_shrink_is_refused),
		TEST(fifo_is_not_opened),
		TEST(another_user_is_refused),
		TEST(adopts_what_is_sound),
		TEST(adopts_nothing_else),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
