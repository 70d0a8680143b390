/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The ways of hearing of unmapped memory: their numbers, who is told, who is
 * waited for, and what is not called on the way.
 */
#define _GNU_SOURCE
#include "lib/mr_monitor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/layout.h"
#include "shm/vma.h"
#include "shm/watch.h"
#include "shm/trap_kit.h"
#include "tests/quiet_map.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1 /* Linux 5.11 */
#endif

enum {
	LIMIT_S = 120, /* the whole program ends by then */
	PAGE = RNIC_PAGE,
	LEN = 8 * PAGE,
	KEYS = 40, /* of threads: more than libc has room for without malloc */
};

/* ---- what may not be called ---- */

static __thread bool held; /* an allocator's lock: whoever calls it hangs */

void kit_trap(void)
{
	if (held)
		abort();
}

/* ---- a listener ---- */

/* What it was told. */
struct ear {
	struct rnic_listener l;		   /* first */
	rnic_a64 calls;			   /* how often */
	rnic_a64 start;			   /* the last time */
	rnic_a64 end;			   /* likewise */
	rnic_a32 what;			   /* likewise */
	rnic_a32 odd;			   /* the number was odd */
	rnic_a32 stay;			   /* 1: it does not return */
	const struct shrimp_mr_monitor *m; /* whose number */
};

static void gone(struct rnic_listener *l, uint64_t start, uint64_t end,
		 enum rnic_gone what)
{
	struct ear *e = (struct ear *)l;

	rnic_store64_relaxed(&e->start, start);
	rnic_store64_relaxed(&e->end, end);
	rnic_store32_relaxed(&e->what, what);
	rnic_store32_relaxed(&e->odd, e->m->cycle() & 1);
	rnic_add64_release(&e->calls, 1);
	while (rnic_load32_acquire(&e->stay))
		usleep(100);
}

static struct ear ear(enum shrimp_mrc_monitor wish)
{
	return (struct ear){ .l.gone = gone, .m = shrimp_mr_monitor_of(wish) };
}

/* ---- the choice ---- */

static void names(void **state)
{
	(void)state;
	assert_string_equal(shrimp_mr_monitor_of(SHRIMP_MRC_MON_AUTO)->name,
			    "uffd");
	assert_string_equal(shrimp_mr_monitor_of(SHRIMP_MRC_MON_UFFD)->name,
			    "uffd");
	assert_string_equal(shrimp_mr_monitor_of(SHRIMP_MRC_MON_NOTIFY)->name,
			    "notify");
	assert_string_equal(shrimp_mr_monitor_of(SHRIMP_MRC_MON_OFF)->name,
			    "off");
}

static void off_watches_nothing(void **state)
{
	struct ear e = ear(SHRIMP_MRC_MON_OFF);

	(void)state;
	assert_int_equal(e.m->open(&e.l), 0);
	assert_int_equal(e.m->watch(PAGE, 2 * PAGE), -ENOTSUP);
	assert_int_equal(e.m->look(PAGE, 2 * PAGE), -ENOTSUP);
	assert_int_equal(e.m->cycle(), 0);
	e.m->close(&e.l);
}

/* ---- notify ---- */

static void numbers_of_notify(void **state)
{
	const struct shrimp_mr_monitor *m =
		shrimp_mr_monitor_of(SHRIMP_MRC_MON_NOTIFY);
	uint64_t first = m->cycle(), second;

	(void)state;
	assert_int_equal(first & 1, 0);
	assert_int_equal(m->watch(PAGE, 2 * PAGE), 0);
	assert_int_equal(m->look(PAGE, 2 * PAGE), 0);
	shrimp_mr_notify_begin(PAGE, 2 * PAGE);
	assert_int_equal(m->cycle() & 1, 1);
	shrimp_mr_notify_begin(3 * PAGE, 4 * PAGE);
	shrimp_mr_notify_end();
	assert_int_equal(m->cycle() & 1, 1);
	shrimp_mr_notify_end();
	second = m->cycle();
	assert_int_equal(second & 1, 0);
	assert_true(second != first);
	m->unwatch(PAGE, 2 * PAGE);
}

static void who_joined_is_told(void **state)
{
	struct ear a = ear(SHRIMP_MRC_MON_NOTIFY);
	struct ear b = ear(SHRIMP_MRC_MON_NOTIFY);

	(void)state;
	shrimp_mr_notify_join(&a.l);
	shrimp_mr_notify_join(&b.l);
	shrimp_mr_notify_begin(PAGE, 2 * PAGE);
	assert_int_equal(rnic_load64_relaxed(&a.calls), 1);
	assert_int_equal(rnic_load64_relaxed(&b.start), PAGE);
	assert_int_equal(rnic_load64_relaxed(&b.end), 2 * PAGE);
	assert_int_equal(rnic_load32_relaxed(&b.what), RNIC_GONE_TOLD);
	/* it was odd before anybody was told */
	assert_int_equal(rnic_load32_relaxed(&b.odd), 1);
	shrimp_mr_notify_end();
	shrimp_mr_notify_leave(&a.l);
	shrimp_mr_notify_begin(PAGE, 2 * PAGE);
	shrimp_mr_notify_end();
	assert_int_equal(rnic_load64_relaxed(&a.calls), 1);
	assert_int_equal(rnic_load64_relaxed(&b.calls), 2);
	shrimp_mr_notify_leave(&b.l);
}

static void *tell(void *arg)
{
	(void)arg;
	shrimp_mr_notify_begin(PAGE, 2 * PAGE);
	shrimp_mr_notify_end();
	return NULL;
}

static rnic_a32 passed; /* 1: it has returned */

static void *pass(void *arg)
{
	struct ear *e = arg;

	if (e)
		shrimp_mr_notify_leave(&e->l);
	else
		shrimp_mr_notify_pass();
	rnic_store32_release(&passed, 1);
	return NULL;
}

/* A caller that is at a listener holds up who wants it to have passed. */
static void callers_are_waited_for(bool leave)
{
	struct ear e = ear(SHRIMP_MRC_MON_NOTIFY);
	pthread_t teller, passer;

	rnic_store32_relaxed(&passed, 0);
	rnic_store32_relaxed(&e.stay, 1);
	shrimp_mr_notify_join(&e.l);
	assert_int_equal(pthread_create(&teller, NULL, tell, NULL), 0);
	while (!rnic_load64_acquire(&e.calls))
		usleep(100);
	assert_int_equal(pthread_create(&passer, NULL, pass, leave ? &e : NULL),
			 0);
	usleep(10000);
	assert_int_equal(rnic_load32_acquire(&passed), 0);
	rnic_store32_release(&e.stay, 0);
	pthread_join(teller, NULL);
	pthread_join(passer, NULL);
	if (!leave)
		shrimp_mr_notify_leave(&e.l);
}

static void leaving_waits(void **state)
{
	(void)state;
	callers_are_waited_for(true);
}

static void passing_waits(void **state)
{
	(void)state;
	callers_are_waited_for(false);
}

static rnic_a32 over;

static void *tell_on(void *arg)
{
	while (!rnic_load32_acquire(&over))
		tell(arg);
	return NULL;
}

/* Whoever keeps calling does not keep it from ending. */
static void passing_ends(void **state)
{
	struct ear e = ear(SHRIMP_MRC_MON_NOTIFY);
	pthread_t t[3];

	(void)state;
	shrimp_mr_notify_join(&e.l);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, tell_on, NULL), 0);
	for (int i = 0; i < 200; i++) {
		struct ear *x = malloc(sizeof(*x));

		*x = ear(SHRIMP_MRC_MON_NOTIFY);
		shrimp_mr_notify_join(&x->l);
		shrimp_mr_notify_pass();
		shrimp_mr_notify_leave(&x->l);
		memset(x, 0xff, sizeof(*x));
		free(x);
	}
	rnic_store32_release(&over, 1);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(e.m->cycle() & 1, 0);
	shrimp_mr_notify_leave(&e.l);
}

static void a_child_has_no_listeners(void **state)
{
	struct ear e = ear(SHRIMP_MRC_MON_NOTIFY);

	(void)state;
	shrimp_mr_notify_join(&e.l);
	shrimp_mr_notify_begin(PAGE, 2 * PAGE);
	shrimp_mr_notify_forked();
	assert_int_equal(e.m->cycle(), 0);
	shrimp_mr_notify_begin(PAGE, 2 * PAGE);
	shrimp_mr_notify_end();
	assert_int_equal(rnic_load64_relaxed(&e.calls), 1);
	shrimp_mr_notify_pass();
}

/* ---- in the middle of malloc ---- */

/*
 * Before the constructors of libraries: whatever of them has a key of threads
 * has to allocate for it, as in a program that has many.
 */
static void many_keys(void)
{
	pthread_key_t key;

	for (int i = 0; i < KEYS; i++)
		if (pthread_key_create(&key, NULL))
			abort();
}

__attribute__((section(".preinit_array"),
	       used)) static void (*early)(void) = many_keys;

/* What an allocator does that unmaps under its lock, in a new thread. */
static void *allocator(void *arg)
{
	held = true;
	shrimp_mr_notify_begin(PAGE, 2 * PAGE);
	shrimp_mr_notify_end();
	held = false;
	return arg;
}

static void contract_R12_telling_allocates_nothing(void **state)
{
	struct ear e = ear(SHRIMP_MRC_MON_NOTIFY);
	pthread_t t;

	(void)state;
	if (!KIT_TRAPS)
		skip();
	shrimp_mr_notify_join(&e.l);
	assert_int_equal(pthread_create(&t, NULL, allocator, NULL), 0);
	pthread_join(t, NULL);
	assert_int_equal(rnic_load64_relaxed(&e.calls), 1);
	shrimp_mr_notify_leave(&e.l);
}

/* ---- uffd ---- */

static void settle(const struct shrimp_mr_monitor *m)
{
	while (m->cycle() & 1)
		usleep(100);
}

static void uffd_tells(void **state)
{
	struct ear e = ear(SHRIMP_MRC_MON_UFFD);
	char *p = quiet_private(LEN);
	uint64_t a = (uintptr_t)p, was;

	(void)state;
	assert_int_equal(e.m->open(&e.l), 0);
	assert_int_equal(e.m->look(a, a + LEN), -ENOENT);
	assert_int_equal(e.m->watch(a, a + LEN), 0);
	assert_int_equal(e.m->look(a, a + LEN), 0);
	settle(e.m);
	was = e.m->cycle();
	assert_int_equal(munmap(p + PAGE, PAGE), 0);
	settle(e.m);
	assert_true(e.m->cycle() != was);
	assert_int_equal(rnic_load32_relaxed(&e.odd), 1);
	assert_int_equal(rnic_load64_relaxed(&e.start), a + PAGE);
	assert_int_equal(rnic_load64_relaxed(&e.end), a + 2 * PAGE);
	assert_int_equal(rnic_load32_relaxed(&e.what), RNIC_GONE_UNMAPPED);
	/* a hole is not watched, what is on both sides is */
	assert_int_equal(e.m->look(a, a + LEN), -ENOENT);
	assert_int_equal(e.m->look(a + 2 * PAGE, a + LEN), 0);
	e.m->unwatch(a, a + LEN);
	assert_int_equal(e.m->look(a + 2 * PAGE, a + LEN), -ENOENT);
	e.m->close(&e.l);
	assert_int_equal(e.m->watch(a, a + PAGE), -ENODEV);
	munmap(p, LEN);
}

/* What somebody protects, or locks, a part of is several mappings. */
static void uffd_looks_at_each_mapping(void **state)
{
	struct ear e = ear(SHRIMP_MRC_MON_UFFD);
	char *p = quiet_private(LEN);
	uint64_t a = (uintptr_t)p;

	(void)state;
	if (!rnic_vma_fast())
		skip();
	assert_int_equal(e.m->open(&e.l), 0);
	assert_int_equal(e.m->watch(a, a + LEN), 0);
	assert_int_equal(mprotect(p + 2 * PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(mlock(p + 5 * PAGE, PAGE), 0);
	assert_int_equal(e.m->look(a, a + LEN), 0);
	/* one of them is not watched */
	rnic_watch_disarm(a + 2 * PAGE, PAGE);
	assert_int_equal(e.m->look(a, a + LEN), -ENOENT);
	assert_int_equal(e.m->look(a + 3 * PAGE, a + LEN), 0);
	e.m->unwatch(a, a + LEN);
	e.m->close(&e.l);
	munmap(p, LEN);
}

/* A userfaultfd of the application, as far as we need one. */
static int other_uffd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = (int)syscall(SYS_userfaultfd,
			      O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, UFFDIO_API, &api), 0);
	return fd;
}

/*
 * What is counted may have been unmapped in part, and be watched by another
 * userfaultfd now: the kernel says of it what it says of ours.
 */
static void of_another(void)
{
	struct ear e = ear(SHRIMP_MRC_MON_UFFD);
	char *p = quiet_private(LEN);
	uint64_t a = (uintptr_t)p;
	struct uffdio_register r = { .range = { a + PAGE, PAGE },
				     .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = other_uffd();

	assert_int_equal(e.m->open(&e.l), 0);
	assert_int_equal(e.m->watch(a, a + LEN), 0);
	/* nothing has changed: it is armed */
	assert_int_equal(e.m->watch(a + PAGE, a + 2 * PAGE), 1);
	e.m->unwatch(a + PAGE, a + 2 * PAGE);
	assert_int_equal(munmap(p + PAGE, PAGE), 0);
	settle(e.m);
	assert_true(mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			 0) == p + PAGE);
	assert_int_equal(ioctl(fd, UFFDIO_REGISTER, &r), 0);
	assert_int_equal(e.m->look(a + PAGE, a + 2 * PAGE), 0);
	assert_int_equal(e.m->watch(a + PAGE, a + 2 * PAGE), -EBUSY);
	/* and its watch outlives ours */
	e.m->unwatch(a, a + LEN);
	assert_int_equal(e.m->look(a + PAGE, a + 2 * PAGE), 0);
	assert_int_equal(e.m->look(a, a + PAGE), -ENOENT);
	assert_int_equal(e.m->look(a + 2 * PAGE, a + LEN), -ENOENT);
	e.m->close(&e.l);
	close(fd);
	munmap(p, LEN);
}

/* Also where mappings are read as text, as on older kernels. */
static void contract_R12_of_another_is_not_ours(void **state)
{
	(void)state;
	of_another();
	rnic_vma_text_only(true);
	of_another();
	rnic_vma_text_only(false);
}

/* A mapping takes its watch along when it grows: that ends as well. */
static void watches_of_what_has_grown_end(void **state)
{
	struct ear e = ear(SHRIMP_MRC_MON_UFFD);
	char *p = quiet_private(4 * LEN), *q = p + 2 * LEN;
	uint64_t a = (uintptr_t)p, b = (uintptr_t)q;

	(void)state;
	if (!rnic_vma_fast())
		skip();
	assert_int_equal(munmap(p + LEN, 3 * LEN), 0);
	assert_int_equal(e.m->open(&e.l), 0);
	assert_int_equal(e.m->watch(a, a + LEN), 0);
	/* where it is: there is no event */
	assert_true(mremap(p, LEN, LEN + PAGE, 0) == p);
	assert_int_equal(e.m->look(a, a + LEN + PAGE), 0);
	e.m->unwatch(a, a + LEN);
	assert_int_equal(e.m->look(a, a + LEN), -ENOENT);
	assert_int_equal(e.m->look(a + LEN, a + LEN + PAGE), -ENOENT);
	/* in a move: the event has the old length */
	assert_int_equal(e.m->watch(a, a + LEN + PAGE), 0);
	assert_true(mremap(p, LEN + PAGE, 2 * LEN,
			   MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
	settle(e.m);
	rnic_watch_sweep();
	assert_int_equal(e.m->look(b, b + LEN), -ENOENT);
	assert_int_equal(e.m->look(b + LEN + PAGE, b + 2 * LEN), -ENOENT);
	/* it is one mapping again, which mremap(2) asks for */
	assert_true(mremap(q, 2 * LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, p) ==
		    p);
	e.m->unwatch(a, a + LEN + PAGE);
	e.m->close(&e.l);
	munmap(p, LEN);
}

/* A private mapping of a file is none that the kernel would tell of. */
static void what_cannot_be_watched_is_not(void **state)
{
	struct ear e = ear(SHRIMP_MRC_MON_UFFD);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	uint64_t a = (uintptr_t)p;

	(void)state;
	assert_true(p != MAP_FAILED);
	assert_int_equal(e.m->open(&e.l), 0);
	assert_int_equal(e.m->watch(a, a + PAGE), -EINVAL);
	assert_int_equal(rnic_watch_ranges(), 0);
	e.m->close(&e.l);
	munmap(p, PAGE);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: before other threads of this program */
		cmocka_unit_test(contract_R12_telling_allocates_nothing),
		cmocka_unit_test(names),
		cmocka_unit_test(off_watches_nothing),
		cmocka_unit_test(numbers_of_notify),
		cmocka_unit_test(who_joined_is_told),
		cmocka_unit_test(leaving_waits),
		cmocka_unit_test(passing_waits),
		cmocka_unit_test(passing_ends),
		cmocka_unit_test(uffd_tells),
		cmocka_unit_test(uffd_looks_at_each_mapping),
		cmocka_unit_test(contract_R12_of_another_is_not_ours),
		cmocka_unit_test(watches_of_what_has_grown_end),
		cmocka_unit_test(what_cannot_be_watched_is_not),
		/* last: it forgets a listener */
		cmocka_unit_test(a_child_has_no_listeners),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
