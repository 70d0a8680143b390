/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A target that computes and does not call MPI does not hold up the others:
 * lock, put, fetch_and_op, unlock of each take less than a limit, and all are
 * done before the target has finished. Public case P12.
 */
#include "win.h"

#include <time.h>

static long ms_busy = 3000;
static long ms_limit = 2000;
static long turns = 20;

static const struct mt_opt opts[] = {
	{ "busy", &ms_busy, "milliseconds that the target computes" },
	{ "limit", &ms_limit, "milliseconds for lock to unlock" },
	{ "turns", &turns, "how often each rank does it" },
	{ 0 },
};

static const MPI_Comm world = MPI_COMM_WORLD;

enum { LEN = 1000 };

/* Milliseconds of a clock that all processes of the node share. */
static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Computes until @until; returns what keeps the compiler from leaving it. */
static uint64_t compute(double until)
{
	uint64_t state = 1, sum = 0;

	while (now_ms() < until)
		for (int i = 0; i < 10000; i++)
			sum += mt_random(&state);
	return sum;
}

static void one_turn(struct mt_win *w, long turn, char *block)
{
	double start = now_ms(), took;
	int64_t got = -1, one = 1;

	mt_fill(block, LEN, mt_seed(mt_rank, 0, 12, turn));
	MPI_Win_lock(turn & 1 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0,
		     w->win);
	mt_put(w, block, LEN, 0, 8 + LEN * (size_t)mt_rank);
	MPI_Fetch_and_op(&one, &got, MPI_INT64_T, 0, mt_win_at(w, 0, 0),
			 MPI_SUM, w->win);
	MPI_Win_unlock(0, w->win);
	mt_win_told(w, 0, 1, 8);
	took = now_ms() - start;
	mt_check(took < (double)ms_limit,
		 "%s window: %.0f ms from lock to unlock, turn %ld",
		 mt_flavor_name(w->flavor), took, turn);
	mt_check(got >= 0 && got < turns * mt_size, "fetched %ld", (long)got);
}

static void check_target(struct mt_win *w)
{
	mt_win_settle(w, world);
	if (mt_rank)
		return;
	mt_check(*(int64_t *)w->mem == turns * (mt_size - 1),
		 "the counter ends at %ld", (long)*(int64_t *)w->mem);
	for (int r = 1; r < mt_size; r++)
		mt_verify(w->mem + 8 + LEN * r, LEN,
			  mt_seed(r, 0, 12, turns - 1));
}

static void busy_target(enum mt_flavor f)
{
	char *block = mt_alloc(LEN);
	double start, end, mine, last = 0;
	struct mt_win w;

	mt_win_open(&w, world, f, 8 + LEN * (size_t)mt_size);
	MPI_Barrier(world);
	start = now_ms();
	if (!mt_rank && !compute(start + (double)ms_busy))
		printf("a sum of zero\n");
	for (long i = 0; mt_rank && i < turns; i++)
		one_turn(&w, i, block);
	end = now_ms();
	mine = mt_rank ? end : 0;
	MPI_Reduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, 0, world);
	if (!mt_rank)
		mt_check(last < end, "%s window: done %.0f ms after the target",
			 mt_flavor_name(f), last - end);
	check_target(&w);
	mt_win_close(&w);
	mt_free(block);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"rma_busy: a computing target does not hold up the others",
		opts);
	for (int f = 0; f < MT_FLAVORS; f++)
		busy_target((enum mt_flavor)f);
	return mt_end("rma_busy (case_P12)");
}
