/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Threads that churn memory. The lock protects what they tell and are told;
 * it is held for a few instructions, and nests in the other one, which each of
 * them holds for reading while it allocates, and who pauses them for writing.
 */
#include "bench/stress/churn.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/stress/pattern.h"

enum {
	THREADS = 16,
	BLOCKS = 12, /* that a thread has at a time */
	PAUSE_US = 400,
	FIRST_STEP = STRESS_TAG_STEPS - 64, /* of their streams, by thread */
};

/** A piece of memory; zeroed: none. */
struct block {
	unsigned char *p;
	size_t len;
	bool mapped; /* by mmap, else malloc */
	struct stress_pat pat;
};

struct churner {
	struct stress_churn *of;
	pthread_t thread;
	unsigned int number;
	uint64_t chance;
	uint64_t streams;
	struct block block[BLOCKS];
};

struct stress_churn {
	pthread_rwlock_t work; /* read: a thread at work; nests lock */
	pthread_mutex_t lock;  /* what follows; innermost */
	bool stop;
	char text[STRESS_TEXT]; /* what is wrong; "": nothing */
	unsigned int flags;	/* constant */
	unsigned int n;
	struct churner churner[THREADS];
};

static uint64_t chance(struct churner *c, uint64_t n)
{
	return stress_draw(&c->chance) % n;
}

static void wrong(struct churner *c, const struct block *b)
{
	struct stress_churn *of = c->of;
	struct stress_diff d;

	if (!stress_diff(b->p, b->len, b->pat, &d))
		return;
	pthread_mutex_lock(&of->lock);
	if (!of->text[0])
		stress_explain(of->text,
			       b->mapped
				       ? "memory mapped by a thread beside"
				       : "memory allocated by a thread beside",
			       b->p, b->len, b->pat, &d);
	pthread_mutex_unlock(&of->lock);
}

static void block_make(struct churner *c, struct block *b)
{
	size_t len = (size_t)64 << chance(c, 14);

	len += chance(c, len);
	b->mapped = chance(c, 2);
	if (b->mapped) {
		len = (len + STRESS_PAGE - 1) / STRESS_PAGE * STRESS_PAGE;
		b->p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (b->p == MAP_FAILED)
			b->p = NULL;
	} else {
		b->p = malloc(len);
	}
	if (!b->p)
		return;
	b->len = len;
	b->pat.tag = stress_tag(FIRST_STEP + c->number, ++c->streams);
	b->pat.off = 0;
	stress_write(b->p, len, b->pat);
}

static void block_drop(struct block *b)
{
	if (!b->p)
		return;
	if (b->mapped)
		munmap(b->p, b->len);
	else
		free(b->p);
	b->p = NULL;
}

/* Moves it elsewhere; the bytes come along. */
static void block_move(const struct churner *c, struct block *b)
{
	size_t len = 2 * b->len;
	void *p;

	if (b->mapped && c->of->flags & STRESS_CHURN_STAY)
		return;
	p = b->mapped ? mremap(b->p, b->len, len, MREMAP_MAYMOVE)
		      : realloc(b->p, len);
	if (!p || p == MAP_FAILED)
		return;
	b->p = p;
	b->len = len;
	stress_write(p, len, b->pat);
}

static void block_empty(struct block *b)
{
	if (!b->mapped || madvise(b->p, b->len, MADV_DONTNEED))
		return;
	b->pat.tag = 0;
}

static void churn(struct churner *c)
{
	struct block *b = &c->block[chance(c, BLOCKS)];

	if (!b->p) {
		block_make(c, b);
		return;
	}
	if (!stress_same(b->p, b->len, b->pat))
		wrong(c, b);
	switch (chance(c, 8)) {
	case 0:
		if (b->len < 1 << 20)
			block_move(c, b);
		break;
	case 1:
		block_empty(b);
		break;
	default:
		block_drop(b);
	}
}

static bool stopped(struct stress_churn *of)
{
	bool stop;

	pthread_mutex_lock(&of->lock);
	stop = of->stop;
	pthread_mutex_unlock(&of->lock);
	return stop;
}

static void *run(void *arg)
{
	struct churner *c = arg;

	while (!stopped(c->of)) {
		pthread_rwlock_rdlock(&c->of->work);
		churn(c);
		pthread_rwlock_unlock(&c->of->work);
		if (!(c->of->flags & STRESS_CHURN_HARD))
			usleep((useconds_t)chance(c, PAUSE_US));
	}
	for (int i = 0; i < BLOCKS; i++)
		block_drop(&c->block[i]);
	return NULL;
}

/* Who pauses them goes first: they hold it most of the time. */
static void work_init(struct stress_churn *of)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(
		&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&of->work, &attr);
	pthread_rwlockattr_destroy(&attr);
}

struct stress_churn *stress_churn_start(unsigned int n, uint64_t seed,
					unsigned int flags)
{
	struct stress_churn *of = n ? calloc(1, sizeof(*of)) : NULL;

	if (!of)
		return NULL;
	work_init(of);
	pthread_mutex_init(&of->lock, NULL);
	of->flags = flags;
	while (of->n < n && of->n < THREADS) {
		struct churner *c = &of->churner[of->n];

		c->of = of;
		c->number = of->n;
		c->chance = seed + of->n;
		if (pthread_create(&c->thread, NULL, run, c))
			break;
		of->n++;
	}
	return of;
}

bool stress_churn_fine(struct stress_churn *c, char *text, size_t room)
{
	bool fine = true;

	if (!c)
		return true;
	pthread_mutex_lock(&c->lock);
	fine = !c->text[0];
	if (!fine)
		snprintf(text, room, "%s", c->text);
	pthread_mutex_unlock(&c->lock);
	return fine;
}

void stress_churn_pause(struct stress_churn *c)
{
	if (c)
		pthread_rwlock_wrlock(&c->work);
}

void stress_churn_resume(struct stress_churn *c)
{
	if (c)
		pthread_rwlock_unlock(&c->work);
}

void stress_churn_stop(struct stress_churn *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_mutex_unlock(&c->lock);
	for (unsigned int i = 0; i < c->n; i++)
		pthread_join(c->churner[i].thread, NULL);
	pthread_mutex_destroy(&c->lock);
	pthread_rwlock_destroy(&c->work);
	free(c);
}
