/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenario static: buffers that no allocator knows: static ones, in frames of
 * the stack, and in stacks of threads that come and go.
 */
#include "bench/stress/stress.h"

#include <pthread.h>
#include <string.h>

enum {
	STATIC = 256 << 10,
	FRAME = 24 << 10,  /* bytes of a frame */
	DEPTH = 6,	   /* frames at most */
	STACK = 512 << 10, /* of a thread */
};

static unsigned char zeroed[STATIC];
static unsigned char filled[STATIC] = { 1 };

/* ---- frames ---- */

/* A buffer in the frame of a call within calls. */
__attribute__((noinline)) static int frame(struct stress *s, unsigned int depth)
{
	unsigned char buf[FRAME];
	int ret;

	if (depth) {
		ret = frame(s, depth - 1);
		if (ret)
			return ret;
	}
	ret = stress_exchange(s, buf, sizeof(buf), 1);
	return ret;
}

/*
 * Makes the stack as deep as it will be. One that grows under a region whose
 * lowest page is locked grows by locked pages, which nobody unlocks.
 */
__attribute__((noinline)) static int grow(struct stress *s, void **state)
{
	unsigned char deep[(DEPTH + 4) * FRAME];

	*state = NULL;
	stress_write(deep, sizeof(deep), (struct stress_pat){ .tag = 1 });
	if (!stress_same(deep, sizeof(deep), (struct stress_pat){ .tag = 1 }))
		return stress_wrong(s, "a stack is not what was written there");
	return 0;
}

/* ---- threads ---- */

/** A thread that has a buffer on its stack until it is told to end. */
struct holder {
	pthread_t thread;
	pthread_mutex_t lock; /* all below; innermost */
	pthread_cond_t cond;
	unsigned char *buf; /* NULL: not there yet */
	bool end;
};

static void *hold(void *arg)
{
	unsigned char buf[FRAME];
	struct holder *h = arg;

	memset(buf, 0, sizeof(buf));
	pthread_mutex_lock(&h->lock);
	h->buf = buf;
	pthread_cond_signal(&h->cond);
	while (!h->end)
		pthread_cond_wait(&h->cond, &h->lock);
	h->buf = NULL;
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

static unsigned char *buffer_wait(struct holder *h)
{
	unsigned char *buf;

	pthread_mutex_lock(&h->lock);
	while (!h->buf)
		pthread_cond_wait(&h->cond, &h->lock);
	buf = h->buf;
	pthread_mutex_unlock(&h->lock);
	return buf;
}

static void end(struct stress *s, struct holder *h, unsigned char *buf)
{
	unsigned char *low = buf - STACK;

	stress_say(s, "the thread ends");
	stress_change_begin(s, low, 2 * (size_t)STACK);
	pthread_mutex_lock(&h->lock);
	h->end = true;
	pthread_cond_signal(&h->cond);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	stress_change_end(s, low, 2 * (size_t)STACK);
}

static int thread(struct stress *s)
{
	struct holder h = { .end = false };
	pthread_attr_t attr;
	unsigned char *buf;
	int ret;

	pthread_mutex_init(&h.lock, NULL);
	pthread_cond_init(&h.cond, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	ret = pthread_create(&h.thread, &attr, hold, &h);
	if (ret) {
		ret = stress_skip(s, "no thread: %s", strerror(ret));
	} else {
		buf = buffer_wait(&h);
		ret = stress_exchange(s, buf, FRAME, 3);
		end(s, &h, buf);
	}
	pthread_attr_destroy(&attr);
	pthread_cond_destroy(&h.cond);
	pthread_mutex_destroy(&h.lock);
	return ret;
}

static int step(struct stress *s, void *state)
{
	int ret = stress_exchange(s, zeroed, sizeof(zeroed), 2);

	(void)state;
	if (!ret)
		ret = stress_exchange(s, filled, sizeof(filled), 2);
	if (!ret)
		ret = frame(s, (unsigned int)stress_random(s, DEPTH));
	for (int i = 0; !ret && i < 3; i++)
		ret = thread(s);
	return ret;
}

const struct stress_scenario stress_static = {
	.name = "static",
	.help = "static buffers, stacks, stacks of threads that end",
	.setup = grow,
	.step = step,
};
