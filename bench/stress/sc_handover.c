/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenarios handover and neighbours: one thread unmaps, and another one is
 * given the address at once, maps other memory there and lets it travel. The
 * kernel frees an address before it tells of that, so whoever listens is late;
 * a cache has to ask. And memory that changes while its neighbour is
 * registered.
 */
#include "bench/stress/stress.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	SLOT = 16,
	PAGES = 16,	 /* at most */
	ROUNDS = 12,	 /* of a step */
	TRIES = 1 << 20, /* to get the address */
};

/** What is unmapped by the other thread. */
struct leaving {
	struct stress *s;
	unsigned char *p;
	size_t len;
	pthread_barrier_t start; /* of both threads */
	int ret;		 /* of munmap; read after the thread's end */
};

static void *leave(void *arg)
{
	struct leaving *l = arg;

	pthread_barrier_wait(&l->start);
	stress_change_begin(l->s, l->p, l->len);
	l->ret = munmap(l->p, l->len);
	stress_change_end(l->s, l->p, l->len);
	return NULL;
}

/* Maps @fd at the address as soon as it is free. */
static bool take(unsigned char *p, size_t len, int fd)
{
	for (int i = 0; i < TRIES; i++) {
		void *got = mmap(p, len, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);

		if (got == p)
			return true;
		if (got != MAP_FAILED)
			munmap(got, len);
	}
	return false;
}

/* At the moment the other one leaves; *@pat is what @fd holds. */
static int hand_over(struct stress *s, struct leaving *l, int fd,
		     struct stress_pat pat)
{
	pthread_t thread;
	bool got;
	int ret = 0;

	pthread_barrier_init(&l->start, NULL, 2);
	ret = pthread_create(&thread, NULL, leave, l);
	if (ret) {
		pthread_barrier_destroy(&l->start);
		return stress_skip(s, "no thread: %s", strerror(ret));
	}
	pthread_barrier_wait(&l->start);
	got = take(l->p, l->len, fd);
	if (got)
		ret = stress_out(s, l->p, l->len, pat);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&l->start);
	if (got)
		stress_slot_took(s, l->p, l->len);
	else
		stress_slot_left(s, l->p, l->len);
	stress_say(s, "handed over %p %zu%s", (void *)l->p, l->len,
		   got ? "" : ": not got");
	if (l->ret)
		return stress_wrong(s, "munmap: %s", strerror(errno));
	return got ? ret : STRESS_SKIP;
}

static int step(struct stress *s, void *state)
{
	struct leaving l = { .s = s, .len = stress_pages(s, PAGES * 4096) };
	unsigned char *at = stress_slot(s, SLOT);
	int ret = 0;

	(void)state;
	l.p = stress_map_memfd(s, at, l.len);
	if (!l.p)
		return stress_skip(s, "no memory");
	ret = stress_exchange(s, l.p, l.len, 2);
	for (int i = 0; !ret && i < ROUNDS; i++) {
		struct stress_pat pat;
		int fd = stress_memfd_filled(s, l.len, &pat);

		if (fd < 0)
			break;
		ret = hand_over(s, &l, fd, pat);
		if (!ret)
			ret = stress_out(s, l.p, l.len, pat);
	}
	if (ret != STRESS_SKIP)
		stress_unmap(s, l.p, l.len);
	stress_slot_free(s, SLOT);
	return ret == STRESS_SKIP ? 0 : ret;
}

const struct stress_scenario stress_handover = {
	.name = "handover",
	.help = "an address unmapped by one thread, mapped by another at once",
	.step = step,
};

/* ---- neighbours ---- */

enum {
	NEAR_SLOT = 18,
	HALF = 64 << 10,
	CHANGES = 8, /* of a step */
};

/** Two halves; a thread replaces the second one. */
struct halves {
	struct stress *s;
	unsigned char *p;
	int fd;			 /* what the second half will be */
	pthread_barrier_t start; /* of both threads */
	int ret;		 /* of mmap; read after the thread's end */
};

static void *replace(void *arg)
{
	struct halves *h = arg;
	void *got;

	pthread_barrier_wait(&h->start);
	stress_change_begin(h->s, h->p + HALF, HALF);
	got = mmap(h->p + HALF, HALF, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED, h->fd, HALF);
	stress_change_end(h->s, h->p + HALF, HALF);
	h->ret = got == MAP_FAILED ? errno : 0;
	return NULL;
}

/* The second half changes while parts of the first one travel. */
static int neighbour_change(struct stress *s, struct halves *h)
{
	pthread_t thread;
	int ret;

	pthread_barrier_init(&h->start, NULL, 2);
	ret = pthread_create(&thread, NULL, replace, h);
	if (ret) {
		ret = stress_skip(s, "no thread: %s", strerror(ret));
	} else {
		pthread_barrier_wait(&h->start);
		ret = stress_exchange(s, h->p, HALF, 1);
		pthread_join(thread, NULL);
		if (h->ret)
			ret = stress_wrong(s, "mmap: %s", strerror(h->ret));
	}
	pthread_barrier_destroy(&h->start);
	return ret;
}

static int neighbour_round(struct stress *s, struct halves *h)
{
	size_t len = 2 * (size_t)HALF;
	struct stress_pat pat = stress_fill(s, h->p, len), next;
	int ret = stress_out(s, h->p, len, pat);

	if (ret)
		return ret;
	h->fd = stress_memfd_filled(s, len, &next);
	if (h->fd < 0)
		return stress_skip(s, "no memory file");
	ret = neighbour_change(s, h);
	if (!ret)
		ret = stress_out(s, h->p + HALF, HALF, stress_at(next, HALF));
	return ret;
}

static int neighbour_step(struct stress *s, void *state)
{
	unsigned char *at = stress_slot(s, NEAR_SLOT);
	struct halves h = { .s = s };
	int ret = 0;

	(void)state;
	for (int i = 0; !ret && i < CHANGES; i++) {
		h.p = stress_map_memfd(s, at, 2 * (size_t)HALF);
		if (!h.p)
			return stress_skip(s, "no memory");
		ret = neighbour_round(s, &h);
		stress_unmap(s, h.p, 2 * (size_t)HALF);
	}
	stress_slot_free(s, NEAR_SLOT);
	return ret;
}

const struct stress_scenario stress_neighbours = {
	.name = "neighbours",
	.help = "memory replaced by a thread while its neighbour travels",
	.step = neighbour_step,
};
