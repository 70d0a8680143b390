/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What a one-sided operation costs: rank 0 puts, gets and fetches at the last
 * rank, each until it is complete, while that one waits in a barrier. The
 * results are checked; the times are printed, and judged by nobody.
 */
#include "win.h"

static long turns = 5000;

static const struct mt_opt opts[] = {
	{ "turns", &turns, "operations of each kind" },
	{ 0 },
};

enum { WORD = 8, BIG = 1 << 20 };

/* One operation of @len bytes, complete on return. */
static void put_turn(struct mt_win *w, char *buf, size_t len, long i)
{
	int to = w->size - 1;

	mt_fill(buf, WORD, (uint64_t)i);
	mt_put(w, buf, len, to, 64);
	MPI_Win_flush(to, w->win);
}

static void get_turn(struct mt_win *w, char *buf, size_t len, long i)
{
	int from = w->size - 1;

	(void)i;
	mt_get(w, buf, len, from, 64);
	MPI_Win_flush(from, w->win);
}

static void fetch_turn(struct mt_win *w, char *buf, size_t len, long i)
{
	int64_t got = mt_fetch_add(w, 1, w->size - 1, 0);

	(void)buf;
	(void)len;
	mt_check(got == i, "the counter is at %ld, not %ld", (long)got, i);
}

/* Microseconds of one of @n turns. */
static double timed(struct mt_win *w, char *buf, size_t len, long n,
		    void (*turn)(struct mt_win *, char *, size_t, long))
{
	double start = MPI_Wtime();

	for (long i = 0; i < n; i++)
		turn(w, buf, len, i);
	return (MPI_Wtime() - start) * 1e6 / (double)n;
}

static void measure(struct mt_win *w)
{
	long n = mt_rounds(turns);
	char *buf = mt_alloc(BIG);
	double put, get, big, fetch;

	mt_fill(buf, BIG, 0);
	put = timed(w, buf, WORD, n, put_turn);
	get = timed(w, buf, WORD, n, get_turn);
	mt_verify(buf, WORD, (uint64_t)(n - 1));
	fetch = timed(w, buf, WORD, n, fetch_turn);
	big = timed(w, buf, BIG, n / 50 + 1, put_turn);
	printf("one-sided: put of 8 B %.2f us, get of 8 B %.2f us, "
	       "fetch_and_op %.2f us, put of 1 MiB %.1f us\n",
	       put, get, fetch, big);
	mt_free(buf);
}

int main(int argc, char **argv)
{
	struct mt_win w;

	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"rma_latency: what one-sided operations cost", opts);
	mt_win_open(&w, MPI_COMM_WORLD, MT_CREATE, 64 + BIG);
	if (!mt_rank) {
		MPI_Win_lock(MPI_LOCK_SHARED, mt_size - 1, 0, w.win);
		measure(&w);
		MPI_Win_unlock(mt_size - 1, w.win);
	}
	mt_win_settle(&w, MPI_COMM_WORLD);
	if (mt_rank == mt_size - 1)
		mt_check(*(int64_t *)w.mem == mt_rounds(turns),
			 "the counter ends at %ld", (long)*(int64_t *)w.mem);
	mt_win_close(&w);
	return mt_end("rma_latency");
}
