/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The registration cache with the real monitor under threads: those that map,
 * look up, check by the bytes and unmap in any way, so that an address has
 * had other meanings a moment before; those that tell and flush; and those
 * that malloc and free what is watched.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/mr.h"
#include "lib/mr_cache_kit.h"
#include "shm/monitor.h"
#include "shm/mtt.h"
#include "shm/rng_kit.h"
#include "shm/trap_kit.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 400 };
#else
enum { ROUNDS = 3000 }; /* of each thread */
#endif

enum {
	LIMIT_S = 240, /* the whole program ends by then */
	PAGE = MCK_PAGE,
	FILE_PAGES = 120,   /* their number is their first byte */
	PAGES = 4,	    /* of a mapping */
	LEN = PAGES * PAGE, /* of a mapping, bytes */
	WORKERS = 3,	    /* threads of each kind */
	BLOCK = 200 << 10,  /* of malloc, bytes */
};

/* ---- what the monitor's thread must not call ---- */

static __thread uint32_t self; /* tid */

void kit_trap(void)
{
	struct rnic_monitor_stats s;

	rnic_monitor_stats(&s);
	if (!self)
		self = (uint32_t)syscall(SYS_gettid);
	if (s.tid == self)
		abort();
}

/* ---- threads that map and unmap ---- */

static struct {
	struct mck_bed b;
	char *base;	  /* the whole file */
	int fd;		  /* of it */
	rnic_a64 checked; /* leaves that were compared with the bytes */
	rnic_a64 cached;  /* ranges that were found or kept */
	rnic_a32 over;	  /* 1: those that go on end */
} r;

struct worker {
	pthread_t thread;
	uint64_t seed;
	char *p;	   /* its mapping */
	uint64_t page;	   /* of the file at @p */
	unsigned int kind; /* what it does */
};

static void die(const char *what)
{
	fprintf(stderr, "mr_cache_race_test: %s\n", what);
	abort();
}

/* What the entry says of @page of the mapping must be what is mapped there. */
static void check(struct worker *w, const struct shrimp_cached *e, uint64_t i)
{
	const char *at = w->p + i * PAGE;
	uint64_t leaf, page;

	rnic_add64_relaxed(&r.cached, 1);
	if (e->span.start > (uintptr_t)at || e->span.end < (uintptr_t)at + PAGE)
		die("an entry that does not cover what was asked");
	if (!e->file)
		return;
	leaf = shrimp_cached_leaf(e, (uintptr_t)at);
	page = leaf >> RNIC_MTT_PAGE_SHIFT;
	if (page >= FILE_PAGES || r.base[page * PAGE] != *at)
		die("a stale leaf");
	rnic_add64_relaxed(&r.checked, 1);
}

static struct shrimp_cached *look_up(struct worker *w)
{
	uint64_t i = rng_next(&w->seed) % PAGES;
	const struct iovec v = { .iov_base = w->p + i * PAGE,
				 .iov_len = PAGE * (1 + rng_next(&w->seed) %
								(PAGES - i)) };
	struct shrimp_cached *e = NULL;

	if (shrimp_mr_cache_get(r.b.d, &v, MCK_FILE, &e))
		die("a range that is mapped was refused");
	if (e)
		check(w, e, i);
	return e;
}

static char *map(struct worker *w, char *at)
{
	w->page = rng_next(&w->seed) % (FILE_PAGES - PAGES);
	w->p = mmap(at, LEN, PROT_READ | PROT_WRITE,
		    MAP_SHARED | (at ? MAP_FIXED : 0), r.fd,
		    (off_t)(w->page * PAGE));
	if (w->p == MAP_FAILED)
		die("mmap");
	return w->p;
}

/* To where another thread may have been a moment before, if it cannot grow. */
static void move(struct worker *w)
{
	char *p = mremap(w->p, LEN, LEN + PAGE, MREMAP_MAYMOVE);

	if (p != MAP_FAILED) {
		w->p = p;
		if (munmap(p + LEN, PAGE))
			die("munmap");
		return;
	}
	/* a watch of a part has made it several mappings */
	if (errno != EFAULT || munmap(w->p, LEN))
		die("mremap");
	map(w, NULL);
}

static void change(struct worker *w)
{
	switch (rng_next(&w->seed) % 8) {
	case 0:
		move(w);
		break;
	case 1:
		map(w, w->p);
		break;
	case 2:
		if (madvise(w->p, PAGE, MADV_DONTNEED))
			die("madvise");
		break;
	default:
		if (munmap(w->p, LEN))
			die("munmap");
		map(w, NULL);
	}
}

static void *mapper(void *arg)
{
	struct worker *w = arg;
	struct shrimp_cached *e, *more;

	map(w, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		e = look_up(w);
		more = look_up(w);
		if (more)
			shrimp_cached_put(more);
		/* some are in use when their memory goes */
		if (i % 4 && e)
			shrimp_cached_put(e);
		change(w);
		if (!(i % 4) && e)
			shrimp_cached_put(e);
	}
	munmap(w->p, LEN);
	return NULL;
}

/* Regions that are acquired and released, and closed by whoever comes. */
static void *acquirer(void *arg)
{
	struct worker *w = arg;
	struct fid_mr *mr;

	map(w, NULL);
	for (int i = 0; i < ROUNDS / 2; i++) {
		if (mck_acquire(&r.b, w->p, LEN, FI_REMOTE_READ, &mr))
			die("acquire");
		check(w, ((struct shrimp_mr *)mr)->keeper, 0);
		if (r.b.ops->release(mr))
			die("release");
		change(w);
	}
	munmap(w->p, LEN);
	return NULL;
}

/* Flushes, tells of what is nobody's business, and reads the counters. */
static void *meddler(void *arg)
{
	struct fid *d = &r.b.d->fid.fid;
	struct worker *w = arg;
	uint64_t hits = 0, now;

	while (!rnic_load32_acquire(&r.over)) {
		char *p = r.base + rng_next(&w->seed) % FILE_PAGES * PAGE;

		if (r.b.ops->unmap_begin(d, p, PAGE) ||
		    r.b.ops->unmap_end(d, p, PAGE))
			die("telling");
		if (rng_next(&w->seed) % 16 == 0)
			r.b.ops->flush(d);
		shrimp_mr_cache_tidy(r.b.d);
		now = mck_stats(&r.b).cache_hits;
		if (now < hits)
			die("hits went down");
		hits = now;
		usleep(100);
	}
	return NULL;
}

static void start(struct worker *w, size_t n, void *(*fn)(void *))
{
	for (size_t i = 0; i < n; i++) {
		w[i] = (struct worker){ .seed = 88172645463325252 + 977 * i +
						(uintptr_t)fn % 1009 };
		assert_int_equal(pthread_create(&w[i].thread, NULL, fn, &w[i]),
				 0);
	}
}

static void join(struct worker *w, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
}

static void open_all(enum shrimp_mrc_monitor wish)
{
	memset(&r, 0, sizeof(r));
	mck_open(&r.b, false);
	r.b.set->mrc_monitor = wish;
	r.b.set->mrc_entries = 4;
	r.base = mck_file(FILE_PAGES * PAGE, &r.fd);
}

static void close_all(void)
{
	mck_close(&r.b);
	munmap(r.base, FILE_PAGES * PAGE);
	close(r.fd);
}

static void contract_R12_no_stale_leaf(void **state)
{
	struct worker a[WORKERS], b[1], c[1];
	struct fi_shrimp_stats t;

	(void)state;
	open_all(SHRIMP_MRC_MON_UFFD);
	start(a, WORKERS, mapper);
	start(b, 1, acquirer);
	start(c, 1, meddler);
	join(a, WORKERS);
	join(b, 1);
	rnic_store32_release(&r.over, 1);
	join(c, 1);
	t = mck_stats(&r.b);
	assert_true(rnic_load64_relaxed(&r.checked) > 0);
	assert_true(t.cache_hits > 0 && t.cache_misses > 0);
	assert_true(t.cache_unmapped > 0 && t.cache_moved > 0);
	close_all();
}

/* ---- threads that allocate what is watched ---- */

static void *allocator(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < ROUNDS / 2; i++) {
		size_t len = BLOCK / 8 + rng_next(&w->seed) % BLOCK;
		struct shrimp_cached *e = NULL;
		char *p = malloc(len), *q;
		const struct iovec v = { .iov_base = p, .iov_len = len };

		if (!p)
			die("malloc");
		if (shrimp_mr_cache_get(r.b.d, &v, MCK_FILE, &e))
			die("a block was refused");
		if (e) {
			rnic_add64_relaxed(&r.cached, 1);
			shrimp_cached_put(e);
		}
		q = realloc(p, len + BLOCK);
		free(q ? q : p);
		if (i % 64 == 0)
			malloc_trim(0);
	}
	return NULL;
}

/*
 * free(3) holds locks of the allocator while it gives watched memory back, and
 * waits for the monitor.
 */
static void contract_R12_free_of_what_is_watched(void **state)
{
	struct worker a[WORKERS], c[1];
	struct rnic_monitor_stats s;

	(void)state;
	open_all(SHRIMP_MRC_MON_UFFD);
	mallopt(M_TRIM_THRESHOLD, 0);
	mallopt(M_MMAP_THRESHOLD, BLOCK);
	start(a, WORKERS, allocator);
	start(c, 1, meddler);
	join(a, WORKERS);
	rnic_store32_release(&r.over, 1);
	join(c, 1);
	rnic_monitor_stats(&s);
	if (KIT_TRAPS)
		assert_true(s.events > 0);
	assert_true(rnic_load64_relaxed(&r.cached) > 0);
	close_all();
}

/* ---- those that may not wait ---- */

static void *tidier(void *arg)
{
	(void)arg;
	while (!rnic_load32_acquire(&r.over))
		shrimp_mr_cache_tidy(r.b.d);
	return NULL;
}

/* What another thread took, and had to leave for it has to wait, included. */
static void a_flush_leaves_nothing(void **state)
{
	char *p = mck_private(LEN);
	struct worker a[1];
	struct fid_mr *mr;
	struct fid *d;

	(void)state;
	open_all(SHRIMP_MRC_MON_NOTIFY);
	d = &r.b.d->fid.fid;
	start(a, 1, tidier);
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(mck_acquire(&r.b, p, LEN, FI_REMOTE_READ, &mr),
				 0);
		assert_int_equal(r.b.ops->release(mr), 0);
		assert_int_equal(r.b.ops->unmap_begin(d, p, LEN), 0);
		assert_int_equal(r.b.ops->unmap_end(d, p, LEN), 0);
		assert_int_equal(r.b.ops->flush(d), 0);
		assert_int_equal(rnic_load32_relaxed(&r.b.d->cache.nlate), 0);
	}
	rnic_store32_release(&r.over, 1);
	join(a, 1);
	close_all();
	munmap(p, LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contract_R12_no_stale_leaf),
		cmocka_unit_test(contract_R12_free_of_what_is_watched),
		cmocka_unit_test(a_flush_leaves_nothing),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
