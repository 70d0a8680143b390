/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenario merge: a thread registers the second part of a file, of which a
 * cache may make one range with the first part that it has, while another one
 * replaces that first part by another file, and registers some of it. Nothing
 * of the first file may be found there any more.
 */
#include "bench/stress/stress.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include <rdma/fi_errno.h>

#include "bench/clock.h"

enum {
	SLOT = 19,
	PART = 8 * STRESS_PAGE, /* at most, of each */
	ROUNDS = 24,		/* of a step */
	APART_NS = 30000,	/* of the two threads, at most */
};

/* Of the regions of the thread beside; no two are alike in a process. */
static uint64_t keys = 1ull << 33;

/**
 * The two parts, one behind the other. Who has a field changes with each
 * barrier: in between the thread beside has what is its own.
 */
struct parts {
	struct stress *s;
	unsigned char *p;	   /* first byte of the first one */
	size_t first, second;	   /* their bytes */
	int fd[2];		   /* files: of both parts, of the first */
	struct stress_pat pat[2];  /* what these hold */
	pthread_barrier_t barrier; /* of both threads */
	bool over;		   /* the thread ends */
	uint64_t late_ns;	   /* how much later it begins */
	struct stress_mr beside;   /* its own: region of the second part */
	int ret;		   /* its own: of the call that makes it */
};

static void spin(uint64_t ns)
{
	uint64_t until = bench_clock_ns() + ns;

	while (bench_clock_ns() < until)
		;
}

static void *register_second(void *arg)
{
	struct parts *a = arg;

	for (;;) {
		pthread_barrier_wait(&a->barrier);
		if (a->over)
			return NULL;
		spin(a->late_ns);
		a->ret = stress_mr_reg_beside(a->s, a->p + a->first, a->second,
					      STRESS_BOTH, ++keys, &a->beside);
		pthread_barrier_wait(&a->barrier);
	}
}

/*
 * Maps file @i at the first part, or (0) at both, by one call or by two. False:
 * another thread was faster; then the first one is not mapped.
 */
static bool put(struct stress *s, struct parts *a, int i)
{
	size_t len = i ? a->first : a->first + a->second;
	bool two = i && stress_random(s, 2);
	int how = two ? MAP_FIXED_NOREPLACE : MAP_FIXED;
	void *got;

	stress_change_begin(s, a->p, len);
	if (two && munmap(a->p, len))
		stress_wrong(s, "munmap: %s", strerror(errno));
	got = mmap(a->p, len, PROT_READ | PROT_WRITE, MAP_SHARED | how,
		   a->fd[i], 0);
	stress_change_end(s, a->p, len);
	if (got == a->p)
		return true;
	if (got != MAP_FAILED)
		munmap(got, len);
	if (two)
		stress_slot_left(s, a->p, a->first);
	return false;
}

/* Bytes @at, @len of the first part, which is what file @i holds. */
static int first_used(struct stress *s, const struct parts *a, int i, size_t at,
		      size_t len)
{
	struct stress_mr m;
	int ret = stress_mr_reg(s, a->p + at, len, STRESS_BOTH, 0, &m);

	if (!ret)
		ret = stress_pull(s, &m, 0, len, stress_at(a->pat[i], at));
	return stress_mr_put(s, &m) ? STRESS_FAILED : ret;
}

static int some_used(struct stress *s, const struct parts *a, int i)
{
	size_t at = stress_random(s, a->first);

	return first_used(s, a, i, at, stress_length(s, a->first - at));
}

/* What the thread has registered is used, and closed. */
static int beside_used(struct stress *s, struct parts *a)
{
	int ret = 0;

	if (a->ret == -FI_ENOMEM || a->ret == -FI_ENOSPC)
		stress_refused(s);
	else if (a->ret)
		ret = stress_wrong(s, "a registration beside fails: %d",
				   a->ret);
	else
		ret = stress_pull(s, &a->beside, 0, a->second,
				  stress_at(a->pat[0], a->first));
	return stress_mr_put(s, &a->beside) ? STRESS_FAILED : ret;
}

/*
 * The first part is idle in a cache, by a region of it alone, when it begins.
 * *@there: the parts are mapped still.
 */
static int parts_round(struct stress *s, struct parts *a, bool *there)
{
	/* all of it: a cache merges what touches */
	int ret = first_used(s, a, 0, 0, a->first), beside;

	if (ret)
		return ret;
	a->late_ns = stress_random(s, APART_NS);
	pthread_barrier_wait(&a->barrier);
	spin(stress_random(s,
			   4 * (uint64_t)APART_NS)); /* the other one wakes */
	*there = put(s, a, 1);
	if (*there)
		ret = some_used(s, a, 1);
	pthread_barrier_wait(&a->barrier);
	stress_say(s, "%p %zu replaced%s, %zu behind it registered: %d",
		   (void *)a->p, a->first, *there ? "" : ": not got", a->second,
		   a->ret);
	beside = beside_used(s, a);
	ret = ret ? ret : beside;
	if (!ret && *there)
		ret = some_used(s, a, 1);
	return ret;
}

static int parts_rounds(struct stress *s, struct parts *a)
{
	pthread_t thread;
	bool there = true;
	int ret;

	pthread_barrier_init(&a->barrier, NULL, 2);
	ret = pthread_create(&thread, NULL, register_second, a);
	if (ret) {
		ret = stress_skip(s, "no thread: %s", strerror(ret));
	} else {
		for (int i = 0; !ret && there && i < ROUNDS; i++)
			if (put(s, a, 0))
				ret = parts_round(s, a, &there);
		a->over = true;
		pthread_barrier_wait(&a->barrier);
		pthread_join(thread, NULL);
	}
	pthread_barrier_destroy(&a->barrier);
	stress_unmap(s, there ? a->p : NULL, a->first);
	stress_unmap(s, a->p + a->first, a->second);
	return ret;
}

static int step(struct stress *s, void *state)
{
	struct parts a = { .s = s,
			   .first = stress_pages(s, PART),
			   .second = stress_pages(s, PART) };
	size_t len = a.first + a.second;
	int ret = 0;

	(void)state;
	if (!stress_threads_may(s))
		return stress_skip(s, "the provider has no FI_THREAD_SAFE");
	for (int i = 0; !ret && i < 2; i++) {
		a.fd[i] = stress_memfd_filled(s, len, &a.pat[i]);
		if (a.fd[i] < 0)
			ret = stress_skip(s, "no memory file");
	}
	if (!ret)
		a.p = stress_map_as(s, stress_slot(s, SLOT), len,
				    PROT_READ | PROT_WRITE, MAP_SHARED,
				    a.fd[0]);
	if (!ret)
		ret = a.p ? parts_rounds(s, &a) : stress_skip(s, "no memory");
	stress_slot_free(s, SLOT);
	return ret;
}

const struct stress_scenario stress_merge = {
	.name = "merge",
	.help = "a part is replaced while its neighbour is registered",
	.needs = STRESS_RMA,
	.step = step,
};
