/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Windows: contents, packing, reuse, what dumps and children get, threads.
 */
#include "shm/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/layout.h"
#include "shm/log.h"

enum {
	LIMIT_S = 60,  /* the whole program ends by then */
	SEGMENTS = 64, /* peers */
	PAGES = 256,   /* of a segment */
	THREADS = 4,   /* that map and unmap */
	ROUNDS = 2000, /* each */
	HELD = 16,     /* windows a thread has at most */
};

static const size_t slab_bytes = (size_t)2 << 20;

static struct rnic_segment seg[SEGMENTS];
static unsigned int warned;

static void count(enum rnic_log_level level, const char *msg)
{
	(void)msg;
	warned += level == RNIC_LOG_WARN;
}

/* Page @page of segment @s begins with this. */
static uint32_t mark(unsigned int s, unsigned int page)
{
	return s << 16 | page | 1u << 31;
}

static int make_segments(void **state)
{
	(void)state;
	for (unsigned int s = 0; s < SEGMENTS; s++) {
		if (rnic_segment_create(&seg[s], "window-test",
					PAGES * RNIC_PAGE))
			return -1;
		for (unsigned int p = 0; p < PAGES; p++) {
			uint32_t m = mark(s, p);

			if (pwrite(seg[s].fd, &m, sizeof(m), p * RNIC_PAGE) !=
			    sizeof(m))
				return -1;
		}
	}
	return 0;
}

static int close_segments(void **state)
{
	(void)state;
	for (unsigned int s = 0; s < SEGMENTS; s++)
		rnic_segment_close(&seg[s]);
	return 0;
}

static uint32_t *map(unsigned int s, unsigned int page, unsigned int n)
{
	void *p = NULL;

	assert_int_equal(rnic_window_map(&seg[s], page * RNIC_PAGE,
					 n * RNIC_PAGE, PROT_READ | PROT_WRITE,
					 &p),
			 0);
	assert_int_equal(*(uint32_t *)p, mark(s, page));
	return p;
}

static void unmap(void *p, unsigned int n)
{
	rnic_window_unmap(p, n * RNIC_PAGE);
}

static uintptr_t slab_of(const void *p)
{
	return (uintptr_t)p / slab_bytes;
}

static void shows_the_segment(void **state)
{
	uint32_t *a = map(3, 5, 2), *b = map(3, 6, 1);

	(void)state;
	assert_int_equal(a[RNIC_PAGE / sizeof(*a)], mark(3, 6));
	b[1] = 77;
	assert_int_equal(a[RNIC_PAGE / sizeof(*a) + 1], 77);
	b[1] = 0;
	unmap(a, 2);
	unmap(b, 1);
}

/* 64 peers, 8 pages each, are one slab, and none overlaps another. */
static void lies_side_by_side(void **state)
{
	uint32_t *p[SEGMENTS];

	(void)state;
	for (unsigned int s = 0; s < SEGMENTS; s++)
		p[s] = map(s, s, 8);
	for (unsigned int s = 0; s < SEGMENTS; s++) {
		assert_int_equal(slab_of(p[s]), slab_of(p[0]));
		assert_int_equal(*p[s], mark(s, s));
	}
	for (unsigned int s = 0; s < SEGMENTS; s++)
		unmap(p[s], 8);
}

/* A line of /proc/self/status, in KiB. */
static long status_kib(const char *key)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	assert_non_null(f);
	while (kib < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			kib = strtol(line + strlen(key), NULL, 10);
	fclose(f);
	return kib;
}

/* By itself each would cost 4 KiB of page tables: 256 KiB. */
static void shares_page_tables(void **state)
{
	uint32_t *p[SEGMENTS];
	long before = status_kib("VmPTE:");

	(void)state;
	assert_true(before > 0);
	for (unsigned int s = 0; s < SEGMENTS; s++)
		p[s] = map(s, 0, 4);
	assert_true(status_kib("VmPTE:") - before <= 64);
	for (unsigned int s = 0; s < SEGMENTS; s++)
		unmap(p[s], 4);
}

static void places_are_used_again(void **state)
{
	uint32_t *a = map(0, 0, 9), *b = map(1, 0, 9), *c;

	(void)state;
	unmap(a, 9);
	c = map(2, 0, 9);
	assert_ptr_equal(c, a);
	assert_int_equal(*b, mark(1, 0));
	unmap(b, 9);
	unmap(c, 9);
}

/* More than one slab holds: the next begins. */
static void slabs_grow(void **state)
{
	uint32_t *p[10];

	(void)state;
	for (unsigned int i = 0; i < 10; i++)
		p[i] = map(i, 0, 128);
	assert_true(slab_of(p[9]) != slab_of(p[0]));
	for (unsigned int i = 0; i < 10; i++) {
		assert_int_equal(slab_of((char *)p[i] + 128 * RNIC_PAGE - 1),
				 slab_of(p[i]));
		assert_int_equal(*p[i], mark(i, 0));
		unmap(p[i], 128);
	}
}

/* True if page @p is part of a mapping. */
static bool is_mapped(void *p)
{
	return !msync(p, RNIC_PAGE, MS_ASYNC);
}

static void large_ones_are_alone(void **state)
{
	uint32_t *small = map(0, 0, 1), *large = map(1, 0, 129);

	(void)state;
	assert_true(slab_of(large) != slab_of(small));
	unmap(large, 129);
	assert_false(is_mapped(large));
	unmap(small, 1);
	/* a slab stays reserved: nobody else may get its addresses */
	assert_true(is_mapped(small));
}

/* The flags of the mapping at @p, from smaps; or its permissions. */
static void find_mapping(const void *p, char *perms, char *flags, size_t room)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long from, to;
	char line[512], got[5];
	bool here = false;

	assert_non_null(f);
	*perms = *flags = '\0';
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %4s", &from, &to, got) == 3) {
			here = from <= (uintptr_t)p && (uintptr_t)p < to;
			if (here)
				memcpy(perms, got, sizeof(got));
		} else if (here && !strncmp(line, "VmFlags:", 8)) {
			snprintf(flags, room, "%s", line + 8);
		}
	}
	fclose(f);
}

static void is_kept_from_dumps_and_children(void **state)
{
	char perms[5], flags[512];
	uint32_t *p = map(0, 0, 1);

	(void)state;
	find_mapping(p, perms, flags, sizeof(flags));
	assert_string_equal(perms, "rw-s");
	assert_non_null(strstr(flags, " dd "));
	assert_non_null(strstr(flags, " dc "));
	unmap(p, 1);
	find_mapping(p, perms, flags, sizeof(flags));
	assert_string_equal(perms, "---p");
}

/* True if any of our segments is mapped. */
static bool has_windows(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, "memfd:window-test") != NULL;
	if (f)
		fclose(f);
	return !f || found;
}

/* Where the windows were, anybody may have mapped something by now. */
static int child(void *parents)
{
	void *p;

	rnic_window_forked();
	if (has_windows())
		return 1;
	if (rnic_window_map(&seg[5], 0, RNIC_PAGE, PROT_READ, &p))
		return 2;
	if (slab_of(p) == slab_of(parents))
		return 3;
	if (*(uint32_t *)p != mark(5, 0))
		return 4;
	rnic_window_unmap(p, RNIC_PAGE);
	return 0;
}

static void child_begins_anew(void **state)
{
	uint32_t *p = map(0, 0, 1);
	int status;
	pid_t pid;

	(void)state;
	assert_true(has_windows());
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(LIMIT_S);
		_exit(child(p));
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	unmap(p, 1);
}

/* Said once, nothing returned, the place free again. */
static void refusal_leaves_nothing(void **state)
{
	struct rnic_segment ro = seg[0];
	char path[64];
	void *p = &ro;
	uint32_t *a, *b;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", seg[0].fd);
	ro.fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(ro.fd >= 0);
	a = map(1, 0, 1);
	unmap(a, 1);
	rnic_log_sink(count);
	warned = 0;
	assert_int_equal(
		rnic_window_map(&ro, 0, RNIC_PAGE, PROT_READ | PROT_WRITE, &p),
		-EACCES);
	assert_int_equal(rnic_window_map(&ro, 0, 129 * RNIC_PAGE,
					 PROT_READ | PROT_WRITE, &p),
			 -EACCES);
	assert_int_equal(warned, 2);
	rnic_log_sink(NULL);
	assert_ptr_equal(p, &ro);
	b = map(1, 0, 1);
	assert_ptr_equal(a, b);
	unmap(b, 1);
	close(ro.fd);
}

/* ---- threads ---- */

struct held {
	uint32_t *p;	   /* NULL: none */
	unsigned int seg;  /* its segment */
	unsigned int page; /* first page */
	unsigned int n;	   /* pages */
};

/* False: a window shows what is not its own. */
static bool change(struct held *h, unsigned int *seed)
{
	void *p;

	if (h->p) {
		if (*h->p != mark(h->seg, h->page))
			return false;
		unmap(h->p, h->n);
		h->p = NULL;
		return true;
	}
	h->seg = (unsigned int)rand_r(seed) % SEGMENTS;
	h->page = (unsigned int)rand_r(seed) % 100;
	h->n = 1 + (unsigned int)rand_r(seed) % 12;
	if (rnic_window_map(&seg[h->seg], h->page * RNIC_PAGE, h->n * RNIC_PAGE,
			    PROT_READ, &p))
		return false;
	h->p = p;
	return *h->p == mark(h->seg, h->page);
}

static void *churn(void *arg)
{
	unsigned int seed = *(unsigned int *)arg;
	struct held h[HELD] = { 0 };
	bool good = true;

	for (int i = 0; i < ROUNDS && good; i++)
		good = change(&h[(unsigned int)rand_r(&seed) % HELD], &seed);
	for (int i = 0; i < HELD; i++)
		if (h[i].p)
			good &= change(&h[i], &seed);
	return good ? arg : NULL;
}

static void threads_do_not_mix(void **state)
{
	pthread_t t[THREADS];
	unsigned int seed[THREADS];
	void *got;

	(void)state;
	for (unsigned int i = 0; i < THREADS; i++) {
		seed[i] = i + 1;
		assert_int_equal(pthread_create(&t[i], NULL, churn, &seed[i]),
				 0);
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(t[i], &got), 0);
		assert_ptr_equal(got, &seed[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_the_segment),
		cmocka_unit_test(lies_side_by_side),
		cmocka_unit_test(shares_page_tables),
		cmocka_unit_test(places_are_used_again),
		cmocka_unit_test(slabs_grow),
		cmocka_unit_test(large_ones_are_alone),
		cmocka_unit_test(is_kept_from_dumps_and_children),
		cmocka_unit_test(child_begins_anew),
		cmocka_unit_test(refusal_leaves_nothing),
		cmocka_unit_test(threads_do_not_mix),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, make_segments, close_segments);
}
