/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Several workers at the same time.
 */
#include "bench/sb_crew.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "bench/clock.h"
#include "bench/sb_side.h"

/* A turn of one worker; travels over its socket, or is given to its thread. */
struct turn {
	uint32_t what;	 /* asked: the operation */
	int32_t ret;	 /* answered */
	uint64_t ns;	 /* asked: how long; answered: how long it was */
	uint64_t n;	 /* answered: operations done */
	sb_work_fn work; /* threads */
	void *ctx;	 /* likewise */
};

/* Does as much as fits; blocks double until they are a sixteenth. */
static void turn_do(struct turn *t, sb_work_fn work, void *ctx)
{
	uint64_t begin = bench_clock_ns(), now = begin, last = begin;
	uint64_t block = 1;

	t->n = 0;
	t->ret = 0;
	while (now - begin < t->ns && !t->ret) {
		t->ret = work(ctx, t->what, block);
		t->n += block;
		now = bench_clock_ns();
		if (now - last < t->ns / 16)
			block *= 2;
		last = now;
	}
	t->ns = now - begin;
}

int sb_crew_start(struct sb_crew *crew, unsigned int n,
		  int (*run)(int fd, void *arg))
{
	int ret = 0;

	/* each has a copy of the number as it is when it is forked */
	for (crew->n = 0; crew->n < n && !ret; crew->n++)
		ret = sb_proc_start(&crew->proc[crew->n], run, &crew->n, -1);
	return ret ? sb_fail("fork", ret) : 0;
}

int sb_crew_counts(const struct sb_crew *crew,
		   int (*row)(void *ctx, unsigned int n), void *ctx)
{
	unsigned int most = crew->n, n;
	int ret = most ? row(ctx, 1) : 0;

	for (n = 1; n < most && !ret;) {
		n = 2 * n < most ? 2 * n : most;
		ret = row(ctx, n);
	}
	return ret;
}

const char *sb_crew_name(char buf[SB_NAME_MAX], const struct sb_crew *crew,
			 unsigned int n)
{
	const char *who = crew->proc[0].pid ? "process" : "thread";
	const char *many = crew->proc[0].pid ? "es" : "s";

	snprintf(buf, SB_NAME_MAX, "%u %s%s", n, who, n == 1 ? "" : many);
	return buf;
}

int sb_crew_end(struct sb_crew *crew)
{
	int ret = 0, one;

	for (unsigned int i = 0; i < crew->n; i++) {
		one = sb_proc_end(&crew->proc[i]);
		ret = ret ? ret : one;
	}
	return ret;
}

int sb_crew_obey(int fd, sb_work_fn work, void *ctx)
{
	struct turn t;

	while (!sb_proc_get(fd, &t, sizeof(t))) {
		turn_do(&t, work, ctx);
		if (sb_proc_put(fd, &t, sizeof(t)))
			return -EPIPE;
		if (t.ret)
			return t.ret;
	}
	return 0;
}

static int processes_turn(struct sb_crew *crew, unsigned int n, struct turn *t)
{
	int ret = 0;

	for (unsigned int i = 0; i < n && !ret; i++)
		ret = sb_proc_put(crew->proc[i].fd, &t[i], sizeof(*t));
	for (unsigned int i = 0; i < n && !ret; i++)
		ret = sb_proc_get(crew->proc[i].fd, &t[i], sizeof(*t));
	return ret;
}

static void *thread_main(void *arg)
{
	struct turn *t = arg;

	sb_cpus_all();
	turn_do(t, t->work, t->ctx);
	return NULL;
}

static int threads_turn(unsigned int n, struct turn *t)
{
	pthread_t id[SB_CREW_MOST];
	unsigned int i;
	int ret = 0;

	for (i = 0; i < n && !ret; i++)
		ret = -pthread_create(&id[i], NULL, thread_main, &t[i]);
	if (ret)
		i--;
	while (i--)
		pthread_join(id[i], NULL);
	return ret;
}

int sb_crew_turn(struct sb_crew *crew, unsigned int n, unsigned int what,
		 uint64_t ns, struct sb_set *set)
{
	struct turn t[SB_CREW_MOST];
	int ret;

	for (unsigned int i = 0; i < n; i++)
		t[i] = (struct turn){ .what = what,
				      .ns = ns,
				      .work = crew->work,
				      .ctx = crew->ctx[i] };
	ret = crew->proc[0].pid ? processes_turn(crew, n, t)
				: threads_turn(n, t);
	for (unsigned int i = 0; i < n && !ret; i++) {
		ret = t[i].ret;
		if (!ret && t[i].n)
			sb_set_add(set, (double)t[i].ns / (double)t[i].n);
	}
	return ret;
}

int sb_crew_share(struct sb_crew *crew, const struct sb_share *share,
		  unsigned int kinds, const struct sb_plan *plan,
		  struct sb_set *set)
{
	uint64_t ns = (uint64_t)(plan->seconds * 1e9 / plan->repeats) + 1;
	uint64_t warm = (uint64_t)(plan->warm_up * 1e9) + 1;
	int ret = 0;

	for (unsigned int w = 0; w < kinds && !ret; w++)
		ret = sb_crew_turn(crew, share[w].n, share[w].what, warm,
				   &set[w]);
	memset(set, 0, kinds * sizeof(*set));
	for (unsigned int r = 0; r < plan->repeats; r++)
		for (unsigned int w = 0; w < kinds && !ret; w++)
			ret = sb_crew_turn(crew, share[w].n, share[w].what, ns,
					   &set[w]);
	return ret;
}

int sb_crew_measure(struct sb_crew *crew, unsigned int n, unsigned int kinds,
		    const struct sb_plan *plan, struct sb_set *set)
{
	struct sb_share share[SB_CREW_KINDS];

	for (unsigned int w = 0; w < kinds; w++)
		share[w] = (struct sb_share){ n, w };
	return sb_crew_share(crew, share, kinds, plan, set);
}
