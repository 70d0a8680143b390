/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Several workers, threads or processes, that do the same at the same time for
 * a while. Each turn gives a sample of each worker: the time of one operation,
 * waits for a core included, so that 1 / it is its throughput.
 */
#ifndef BENCH_SB_CREW_H
#define BENCH_SB_CREW_H

#include <stdint.h>

#include "bench/sb_measure.h"
#include "bench/sb_out.h"
#include "bench/sb_proc.h"

enum {
	SB_CREW_MOST = 64, /* workers */
	SB_CREW_KINDS = 4, /* operations that take turns */
};

/*
 * One worker's share: operation @what, @n times. Returns 0 or a negative
 * code. @ctx is the worker's own.
 */
typedef int (*sb_work_fn)(void *ctx, unsigned int what, uint64_t n);

/** A crew. */
struct sb_crew {
	unsigned int n;			   /* workers */
	sb_work_fn work;		   /* threads: what they do */
	void *ctx[SB_CREW_MOST];	   /* threads: one each */
	struct sb_proc proc[SB_CREW_MOST]; /* processes, or zeroed */
};

/** What is done, and by how many. */
struct sb_share {
	unsigned int n;	   /* workers: the first ones */
	unsigned int what; /* operation */
};

/*
 * Forks @n processes, bound to no core, as sb_proc_start(): the arg of @run is
 * an unsigned int, the number of its worker. @crew is zeroed. Returns 0, or a
 * negative code, said on stderr. Partner: sb_crew_end().
 */
int sb_crew_start(struct sb_crew *crew, unsigned int n,
		  int (*run)(int fd, void *arg));

/*
 * Rows of 1, 2, 4... and all workers of @crew: calls @row(ctx, n) for each.
 * Returns 0 or what a call returned.
 */
int sb_crew_counts(const struct sb_crew *crew,
		   int (*row)(void *ctx, unsigned int n), void *ctx);

/* "3 threads", or of processes: @n workers of @crew, to *@buf. Returns buf. */
const char *sb_crew_name(char buf[SB_NAME_MAX], const struct sb_crew *crew,
			 unsigned int n);

/* Ends the processes. Accepts what is zeroed. Returns 0 or -ECHILD. */
int sb_crew_end(struct sb_crew *crew);

/*
 * What a child of a crew runs: obeys the turns that the parent asks for, until
 * the socket is closed. Returns 0, or what @work returned.
 */
int sb_crew_obey(int fd, sb_work_fn work, void *ctx);

/*
 * A turn: the first @n workers of @crew do @what for @ns, threads if they have
 * no process; the samples go to @set. Blocks. Threads are bound to no core.
 * Returns 0, what a worker returned, or -EPIPE: one has died.
 */
int sb_crew_turn(struct sb_crew *crew, unsigned int n, unsigned int what,
		 uint64_t ns, struct sb_set *set);

/*
 * Lets the @kinds shares at @share take turns by @plan; the samples of the i-th
 * go to set[i], emptied first. As sb_crew_turn().
 */
int sb_crew_share(struct sb_crew *crew, const struct sb_share *share,
		  unsigned int kinds, const struct sb_plan *plan,
		  struct sb_set *set);

/*
 * The same with operations 0 to @kinds - 1, at most SB_CREW_KINDS of them, each
 * by the first @n workers.
 */
int sb_crew_measure(struct sb_crew *crew, unsigned int n, unsigned int kinds,
		    const struct sb_plan *plan, struct sb_set *set);

#endif
