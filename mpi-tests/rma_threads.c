/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * MPI_THREAD_MULTIPLE and one-sided communication: several threads per rank,
 * each with windows of its own, and all sharing one. Public cases P7 (a
 * window per thread, fences and large gets) and P13 (lock_all by threads).
 */
#include "win.h"

#include <pthread.h>

static long rounds = 10;
static long nthreads = 3;
static long part = -1;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of each thread" },
	{ "threads", &nthreads, "threads per rank, at most 16" },
	{ "part", &part,
	  "0 own windows, 1 a shared window, 2 fences (P7), "
	  "3 lock_all (P13), -1 all" },
	{ 0 },
};

enum { MAX_THREADS = 16, LEN = 9001, ELEMENTS = 200000, SMALL = 8, BURST = 64 };

/* A thread of this rank. Tags and seeds carry its number. */
struct worker {
	pthread_t id;	       /* joined by main */
	int number;	       /* the same number talks on all ranks */
	MPI_Comm comm;	       /* used by this number only */
	struct mt_win own;     /* over comm */
	struct mt_win *shared; /* of all numbers, in an epoch of lock_all */
	enum mt_flavor flavor; /* of the windows */
	char *out, *in;	       /* LEN bytes each */
};

/* ---- a window of each thread --------------------------------------- */

/* Puts to one rank, gets it back, and counts at another; lock to unlock. */
static void own_window(struct worker *w)
{
	struct mt_win *win = &w->own;

	for (long r = 0; r < mt_rounds(rounds); r++) {
		int to = (int)((mt_rank + r) % mt_size);
		uint64_t seed = mt_seed(mt_rank, to, w->number, r);
		size_t off = 8 + LEN * (size_t)mt_rank;

		mt_fill(w->out, LEN, seed);
		MPI_Win_lock(r & 1 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, to,
			     0, win->win);
		mt_put(win, w->out, LEN, to, off);
		MPI_Win_flush(to, win->win);
		mt_get(win, w->in, LEN, to, off);
		mt_fetch_add(win, 1, to, 0);
		MPI_Win_unlock(to, win->win);
		mt_verify(w->in, LEN, seed);
	}
}

/* What all ranks' threads of this number have counted. */
static void own_window_check(struct worker *w)
{
	uint64_t sum, mine;

	mt_win_settle(&w->own, w->comm);
	mine = (uint64_t) * (int64_t *)w->own.mem;
	MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, w->comm);
	mt_check(sum == (uint64_t)(mt_rounds(rounds) * mt_size),
		 "thread %d: %lu operations counted", w->number,
		 (unsigned long)sum);
}

static void own_windows(struct worker *w)
{
	own_window(w);
	own_window_check(w);
}

/* ---- one window for all -------------------------------------------- */

/* Place of thread @number of rank @rank in the shared window. */
static size_t place(int rank, int number)
{
	return 8 + LEN * ((size_t)rank * (size_t)nthreads + (size_t)number);
}

static void shared_window(struct worker *w)
{
	struct mt_win *win = w->shared;

	for (long r = 0; r < mt_rounds(rounds); r++) {
		int to = (int)((mt_rank + r + w->number) % mt_size);
		uint64_t seed = mt_seed(mt_rank, to, 100 + w->number, r);
		size_t off = place(mt_rank, w->number);

		mt_fill(w->out, LEN, seed);
		mt_put(win, w->out, LEN, to, off);
		MPI_Win_flush(to, win->win);
		mt_get(win, w->in, LEN, to, off);
		MPI_Win_flush(to, win->win);
		mt_verify(w->in, LEN, seed);
		mt_fetch_add(win, 1, to, 0);
	}
}

/* ---- P7: fences and large gets ------------------------------------- */

static void fences(struct worker *w)
{
	size_t len = ELEMENTS * sizeof(double);
	char *in = mt_alloc(len);
	struct mt_win *win = &w->own;
	int from = (mt_rank + 1) % mt_size;

	for (long r = 0; r < mt_rounds(rounds); r++) {
		mt_fill(win->mem, len, mt_seed(mt_rank, 0, w->number, r));
		MPI_Win_fence(0, win->win);
		MPI_Get(in, ELEMENTS, MPI_DOUBLE, from, mt_win_at(win, from, 0),
			ELEMENTS, MPI_DOUBLE, win->win);
		mt_win_told(win, from, 1, len);
		MPI_Win_fence(0, win->win);
		mt_verify(in, len, mt_seed(from, 0, w->number, r));
	}
	mt_free(in);
}

/* ---- P13: bursts of small puts in lock_all ------------------------- */

static void lock_all(struct worker *w)
{
	struct mt_win *win = &w->own;
	uint64_t block[BURST];
	int to = (mt_rank + 1) % mt_size;

	for (long r = 0; r < mt_rounds(rounds * 2); r++) {
		mt_fill(block, sizeof(block), mt_seed(mt_rank, to, 13, r));
		MPI_Win_lock_all(0, win->win);
		for (int i = 0; i < BURST; i++)
			mt_put(win, &block[i], SMALL, to, SMALL * (size_t)i);
		MPI_Win_flush_all(win->win);
		MPI_Win_unlock_all(win->win);
		mt_win_settle(win, w->comm);
		mt_verify(win->mem, sizeof(block),
			  mt_seed((mt_rank + mt_size - 1) % mt_size, mt_rank,
				  13, r));
		MPI_Barrier(w->comm);
	}
}

/* ---- all ----------------------------------------------------------- */

/* What each thread does, and how long its own window is. */
struct part {
	void (*work)(struct worker *w);
	size_t (*len)(void);
};

static size_t len_own(void)
{
	return 8 + LEN * (size_t)mt_size;
}

static size_t len_fences(void)
{
	return ELEMENTS * sizeof(double);
}

static const struct part parts[] = {
	{ own_windows, len_own },
	{ shared_window, len_own },
	{ fences, len_fences },
	{ lock_all, len_own },
};

static const struct part *current; /* set while no thread runs */

static void *work(void *arg)
{
	current->work(arg);
	return NULL;
}

static void open_worker(struct worker *w)
{
	MPI_Comm_dup(MPI_COMM_WORLD, &w->comm);
	mt_win_open(&w->own, w->comm, w->flavor, current->len());
	w->out = mt_alloc(LEN);
	w->in = mt_alloc(LEN);
}

static void close_worker(struct worker *w)
{
	mt_win_close(&w->own);
	MPI_Comm_free(&w->comm);
	mt_free(w->out);
	mt_free(w->in);
}

static void shared_check(struct mt_win *shared)
{
	int64_t sum;

	mt_win_settle(shared, MPI_COMM_WORLD);
	MPI_Allreduce(shared->mem, &sum, 1, MPI_INT64_T, MPI_SUM,
		      MPI_COMM_WORLD);
	mt_check(sum == (current->work == shared_window
				 ? mt_rounds(rounds) * mt_size * nthreads
				 : 0),
		 "%ld operations counted in the shared window", (long)sum);
}

static void run_part(enum mt_flavor f)
{
	struct worker w[MAX_THREADS];
	struct mt_win shared;

	mt_win_open(&shared, MPI_COMM_WORLD, f, place(mt_size, 0));
	for (int i = 0; i < nthreads; i++) {
		w[i] = (struct worker){ .number = i,
					.flavor = f,
					.shared = &shared };
		open_worker(&w[i]);
	}
	MPI_Win_lock_all(0, shared.win);
	for (int i = 0; i < nthreads; i++)
		mt_check(!pthread_create(&w[i].id, NULL, work, &w[i]),
			 "pthread_create");
	for (int i = 0; i < nthreads; i++)
		pthread_join(w[i].id, NULL);
	MPI_Win_unlock_all(shared.win);
	shared_check(&shared);
	for (int i = 0; i < nthreads; i++)
		close_worker(&w[i]);
	mt_win_close(&shared);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, MPI_THREAD_MULTIPLE,
		"rma_threads: several threads per rank use windows at once",
		opts);
	mt_check(nthreads > 0 && nthreads <= MAX_THREADS, "1 to %d threads",
		 MAX_THREADS);
	for (int f = 0; f < MT_FLAVORS; f++)
		for (long i = 0; i < (long)(sizeof(parts) / sizeof(*parts));
		     i++) {
			if (part >= 0 && part != i)
				continue;
			current = &parts[i];
			run_part((enum mt_flavor)f);
		}
	return mt_end("rma_threads");
}
