/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The spin lock: exclusion before, while and after it leans to a thread.
 */
#include "shm/lock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shm/fence.h"

enum {
	ROUNDS = 2000,	/* locks that lean and are taken back */
	WARM = 50,	/* uses by the owner before the others come */
	EACH = 200,	/* uses by every thread of a round */
	THREADS = 3,	/* of a round */
	TOTAL = 100000, /* uses by every thread of the long run */
};

/* A lock and what it protects: two words that must agree. */
struct guarded {
	struct rnic_spin lock;
	uint64_t a, b;	 /* equal, under the lock */
	rnic_a32 broken; /* 1: they did not agree */
	rnic_a32 start;	 /* 1: the threads may go */
	unsigned int n;	 /* uses by every thread */
};

static bool leans(void)
{
#if defined(__SANITIZE_THREAD__)
	return false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
	return false;
#endif
#endif
	return !rnic_fence_register();
}

static void use(struct guarded *g)
{
	rnic_spin_lock(&g->lock);
	if (g->a != g->b)
		rnic_store32_relaxed(&g->broken, 1);
	g->a++;
	rnic_compiler_barrier();
	g->b++;
	rnic_spin_unlock(&g->lock);
}

static void *user(void *arg)
{
	struct guarded *g = arg;

	while (!rnic_load32_acquire(&g->start))
		sched_yield();
	for (unsigned int i = 0; i < g->n; i++)
		use(g);
	return NULL;
}

/* ---- states ---- */

static void zeroed_memory_is_ready(void **state)
{
	struct rnic_spin l;

	(void)state;
	memset(&l, 0, sizeof(l));
	assert_false(rnic_spin_held(&l));
	rnic_spin_lock(&l);
	assert_true(rnic_spin_held(&l));
	rnic_spin_unlock(&l);
	assert_false(rnic_spin_held(&l));
}

static void leans_to_the_first_thread(void **state)
{
	bool lean = leans();
	struct rnic_spin l;

	(void)state;
	rnic_spin_init(&l);
	for (int i = 0; i < 3; i++) {
		rnic_spin_lock(&l);
		assert_true(rnic_spin_held(&l));
		/* the first time decides, the next ones profit */
		assert_int_equal(rnic_load32_relaxed(&l.taken), !i || !lean);
		rnic_spin_unlock(&l);
		assert_false(rnic_spin_held(&l));
		assert_int_equal(rnic_load64_relaxed(&l.leans),
				 lean ? rnic_thread_self() : RNIC_SPIN_SHARED);
	}
}

static void another_thread_ends_it(void **state)
{
	struct guarded g = { .n = 1 };
	pthread_t t;

	(void)state;
	leans();
	rnic_spin_init(&g.lock);
	use(&g);
	use(&g);
	rnic_store32_release(&g.start, 1);
	assert_int_equal(pthread_create(&t, NULL, user, &g), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(rnic_load64_relaxed(&g.lock.leans), RNIC_SPIN_SHARED);
	use(&g);
	assert_int_equal(rnic_load64_relaxed(&g.lock.leans), RNIC_SPIN_SHARED);
	assert_int_equal(g.a, 4);
	assert_false(rnic_spin_held(&g.lock));
}

static void *take_and_leave(void *arg)
{
	struct guarded *g = arg;

	rnic_spin_lock(&g->lock);
	rnic_store32_release(&g->start, 2);
	rnic_spin_unlock(&g->lock);
	return NULL;
}

/* The owner of the lean is inside: the other one waits until it leaves. */
static void owner_inside_is_waited_for(void **state)
{
	const struct timespec nap = { .tv_nsec = 50000000 };
	struct guarded g = { .n = 1 };
	pthread_t t;

	(void)state;
	leans();
	rnic_spin_init(&g.lock);
	use(&g);
	rnic_spin_lock(&g.lock);
	assert_int_equal(pthread_create(&t, NULL, take_and_leave, &g), 0);
	nanosleep(&nap, NULL);
	assert_int_equal(rnic_load32_acquire(&g.start), 0);
	rnic_spin_unlock(&g.lock);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(rnic_load32_acquire(&g.start), 2);
	assert_false(rnic_spin_held(&g.lock));
}

/* ---- races ---- */

/* One round: the lean's owner is at work when the others come. */
static void round_of(struct guarded *g)
{
	pthread_t t[THREADS];

	memset(g, 0, sizeof(*g));
	g->n = EACH;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, user, g), 0);
	for (int i = 0; i < WARM; i++)
		use(g);
	rnic_store32_release(&g->start, 1);
	for (int i = 0; i < EACH; i++)
		use(g);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	assert_false(rnic_load32_relaxed(&g->broken));
	assert_int_equal(g->a, WARM + (THREADS + 1) * EACH);
	assert_int_equal(g->b, g->a);
}

static void taking_back_excludes(void **state)
{
	struct guarded g;

	(void)state;
	leans();
	for (int i = 0; i < (getenv("SHRIMP_QUICK") ? ROUNDS / 10 : ROUNDS);
	     i++)
		round_of(&g);
}

static void long_run_excludes(void **state)
{
	struct guarded g = { .n = TOTAL };
	pthread_t t[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, user, &g), 0);
	rnic_store32_release(&g.start, 1);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	assert_false(rnic_load32_relaxed(&g.broken));
	assert_int_equal(g.a, THREADS * TOTAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zeroed_memory_is_ready),
		cmocka_unit_test(leans_to_the_first_thread),
		cmocka_unit_test(another_thread_ends_it),
		cmocka_unit_test(owner_inside_is_waited_for),
		cmocka_unit_test(taking_back_excludes),
		cmocka_unit_test(long_run_excludes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
