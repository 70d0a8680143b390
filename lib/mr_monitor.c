/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The ways of hearing of unmapped memory, see mr_monitor.h.
 *
 * Freedom from deadlock. Who tells may be in the middle of malloc(3) or hold
 * any lock of the application: the monitor's thread because the thread that
 * unmaps waits for it, a caller of unmap_begin himself. Neither path takes a
 * lock, allocates, or logs: both walk lists that are changed by single stores,
 * and mark entries by single words. Neither is a reader of liburcu: a thread's
 * first section allocates, since the library comes with dlopen(3), and so its
 * thread's word with the first touch. Callers of unmap_begin are counted
 * while they walk; who wants them to have passed waits until each of two
 * counters was seen at 0, and sends those that come to the other meanwhile.
 */
#include "lib/mr_monitor.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "shm/vma.h"
#include "shm/watch.h"

/* ---- uffd ---- */

enum {
	PIECES = 16,	      /* most mappings of a range */
	WHOLE_MAX = 64 << 20, /* bytes of a mapping that is watched whole */
};

static int uffd_open(struct rnic_listener *l)
{
	int ret = rnic_monitor_get();

	if (!ret)
		rnic_monitor_listen(l);
	return ret;
}

static void uffd_close(struct rnic_listener *l)
{
	rnic_monitor_unlisten(l);
	rnic_monitor_put();
}

static void uffd_unwatch(uint64_t start, uint64_t end)
{
	rnic_watch_put(start, end - start);
}

/*
 * What was watched once may be another mapping by now, and that may be watched
 * by another userfaultfd, which a look does not tell from ours: only if no
 * event was read since it was armed it need not be armed again.
 */
static int uffd_watch(uint64_t start, uint64_t end)
{
	uint64_t now = rnic_monitor_cycle();
	bool armed;
	int ret = rnic_watch_get_at(start, end - start, now, &armed);

	if (ret)
		return ret;
	if (armed)
		return 1;
	ret = rnic_watch_arm(start, end - start);
	if (ret)
		uffd_unwatch(start, end);
	else
		rnic_watch_armed_at(start, end - start, now);
	return ret;
}

/*
 * To the ends of its mappings: a watch of a part makes several mappings of one,
 * and mremap(2) of the application, which knows of one, would be refused. Very
 * large ones are not: the kernel goes through all pages when a watch ends.
 */
static void uffd_widen(uint64_t *start, uint64_t *end)
{
	struct rnic_vma first, last;

	if (!rnic_vma_fast() || rnic_vma_next(*start, &first) ||
	    first.start > *start)
		return;
	last = first;
	if (first.end < *end &&
	    (rnic_vma_next(*end - 1, &last) || last.start >= *end))
		return;
	if (last.end - first.start > WHOLE_MAX)
		return;
	*start = first.start;
	*end = last.end;
}

/*
 * Mapping by mapping: what somebody locked or protected a part of is several,
 * and watched all the same. A mapping that is replaced between two looks was
 * there when the call began.
 */
static int look_at_each(uint64_t at, uint64_t end)
{
	struct rnic_vma v;
	int ret = 0;

	for (int i = 0; at < end && !ret; i++) {
		uint64_t to;

		if (i == PIECES || rnic_vma_next(at, &v) || v.start > at)
			return -ENOENT;
		to = v.end < end ? v.end : end;
		ret = rnic_watch_check(at, to - at);
		at = to;
	}
	return ret;
}

static int uffd_look(uint64_t start, uint64_t end)
{
	int ret = rnic_watch_check(start, end - start);

	return ret == -ENOENT && rnic_vma_fast() ? look_at_each(start, end)
						 : ret;
}

static const struct shrimp_mr_monitor uffd = {
	.name = "uffd",
	.late = true,
	.open = uffd_open,
	.close = uffd_close,
	.watch = uffd_watch,
	.widen = uffd_widen,
	.unwatch = uffd_unwatch,
	.look = uffd_look,
	.cycle = rnic_monitor_cycle,
};

/* ---- notify ---- */

enum {
	OPEN = 1,	/* in the word: a call of unmap_begin, not ended */
	ENDED = 1 << 16 /* likewise, ended */
};

enum {
	SPINS = 200,  /* looks whether callers have passed, or marks are made */
	YIELDS = 220, /* of the latter, then it is given up */
	NAP_US = 100, /* of the former, then between two looks */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* joins, passes */
static rnic_aptr listeners; /* struct rnic_listener */
static rnic_a64 word;	    /* calls under way, and how many there were */
static rnic_a64 walkers[2]; /* callers that look at the list */
static rnic_a32 where;	    /* which of the two counts who comes */

static int none_open(struct rnic_listener *l)
{
	(void)l;
	return 0;
}

static void none_close(struct rnic_listener *l)
{
	(void)l;
}

static int notify_watch(uint64_t start, uint64_t end)
{
	(void)start, (void)end;
	return 0;
}

static void none_unwatch(uint64_t start, uint64_t end)
{
	(void)start, (void)end;
}

static uint64_t notify_cycle(void)
{
	/* N1: what was marked before it ended; pairs with N2 */
	uint64_t x = rnic_load64_acquire(&word);

	return x / ENDED * 2 + (x % ENDED != 0);
}

static const struct shrimp_mr_monitor notify = {
	.name = "notify",
	.open = none_open,
	.close = none_close,
	.watch = notify_watch,
	.unwatch = none_unwatch,
	.look = notify_watch,
	.cycle = notify_cycle,
};

void shrimp_mr_notify_begin(uint64_t start, uint64_t end)
{
	/* relaxed: any of the two will do */
	rnic_a64 *mine = &walkers[rnic_load32_relaxed(&where) & 1];
	struct rnic_listener *l;

	/* relaxed: the fence: odd, before the looks at what can be found */
	rnic_add64_relaxed(&word, OPEN);
	rnic_add64_relaxed(mine, 1);
	/* N3: counted before the list is looked at; pairs with N4 */
	rnic_fence_full();
	/* acquire: what joined */
	l = rnic_ptr_load_acquire(&listeners);
	for (; l; l = rnic_ptr_load_acquire(&l->next))
		l->gone(l, start, end, RNIC_GONE_TOLD);
	/* N5: what it looked at; pairs with N6 */
	rnic_add64_release(mine, (uint64_t)-1);
}

void shrimp_mr_notify_end(void)
{
	/* N2: what was marked, and the change itself */
	rnic_add64_release(&word, ENDED - OPEN);
}

static void pause_at(unsigned int turn)
{
	const struct timespec nap = { .tv_nsec = NAP_US * 1000 };

	if (turn < SPINS)
		rnic_cpu_relax();
	else
		nanosleep(&nap, NULL);
}

/*
 * The lock is held, which nobody takes who is counted: they end by themselves.
 * Who looks at where before it changes and is counted later finds the list as
 * it is now.
 */
static void pass(void)
{
	/* N4: what left the list, before the looks; pairs with N3 */
	rnic_fence_full();
	for (uint32_t i = 0; i < 2; i++) {
		/* relaxed: whoever comes meanwhile may be counted there */
		rnic_store32_relaxed(&where, !i);
		/* N6: what they did; pairs with N5 */
		for (unsigned int n = 0; rnic_load64_acquire(&walkers[i]); n++)
			pause_at(n);
	}
}

void shrimp_mr_notify_pass(void)
{
	pthread_mutex_lock(&lock);
	pass();
	pthread_mutex_unlock(&lock);
}

void shrimp_mr_notify_join(struct rnic_listener *l)
{
	pthread_mutex_lock(&lock);
	/* relaxed: the lock; released by the next store */
	rnic_ptr_store_release(&l->next, rnic_ptr_load_relaxed(&listeners));
	rnic_ptr_store_release(&listeners, l);
	pthread_mutex_unlock(&lock);
}

void shrimp_mr_notify_leave(struct rnic_listener *l)
{
	rnic_aptr *at = &listeners;
	struct rnic_listener *x;

	pthread_mutex_lock(&lock);
	/* relaxed: the lock */
	while ((x = rnic_ptr_load_relaxed(at)) != l)
		at = &x->next;
	rnic_ptr_store_release(at, rnic_ptr_load_relaxed(&l->next));
	pass();
	pthread_mutex_unlock(&lock);
}

void shrimp_mr_notify_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	/* all of these: one thread, nobody to pair with */
	rnic_ptr_store_release(&listeners, NULL);
	rnic_store64_relaxed(&word, 0);
	rnic_store64_relaxed(&walkers[0], 0);
	rnic_store64_relaxed(&walkers[1], 0);
}

/* ---- off ---- */

static int off_watch(uint64_t start, uint64_t end)
{
	(void)start, (void)end;
	return -ENOTSUP;
}

static uint64_t off_cycle(void)
{
	return 0;
}

static const struct shrimp_mr_monitor off = {
	.name = "off",
	.open = none_open,
	.close = none_close,
	.watch = off_watch,
	.unwatch = none_unwatch,
	.look = off_watch,
	.cycle = off_cycle,
};

/* ---- choice ---- */

const struct shrimp_mr_monitor *
shrimp_mr_monitor_of(enum shrimp_mrc_monitor wish)
{
	switch (wish) {
	case SHRIMP_MRC_MON_NOTIFY:
		return &notify;
	case SHRIMP_MRC_MON_OFF:
		return &off;
	default:
		return &uffd;
	}
}

/* ---- what all have ---- */

uint64_t shrimp_mr_monitor_quiet(const struct shrimp_mr_monitor *m)
{
	uint64_t x = m->cycle();

	for (int i = 0; x & 1 && i < YIELDS; i++) {
		if (i < SPINS)
			rnic_cpu_relax();
		else
			sched_yield();
		x = m->cycle();
	}
	return x;
}

/* The whole mapping, or else @start to @end. */
static int watch_some(const struct shrimp_mr_monitor *m, uint64_t start,
		      uint64_t end, uint64_t x[2])
{
	int ret;

	x[0] = start;
	x[1] = end;
	if (m->widen)
		m->widen(&x[0], &x[1]);
	ret = m->watch(x[0], x[1]);
	if (ret >= 0 || (x[0] == start && x[1] == end))
		return ret;
	x[0] = start;
	x[1] = end;
	return m->watch(x[0], x[1]);
}

bool shrimp_mr_monitor_watch(const struct shrimp_mr_monitor *m, uint64_t start,
			     uint64_t end, uint64_t x[2])
{
	int ret = watch_some(m, start, end, x);

	if (ret < 0)
		return false;
	/* what goes on meanwhile is for the last look */
	if (ret > 0 || m->look(start, end) != -ENOENT)
		return true;
	m->unwatch(x[0], x[1]);
	return false;
}
