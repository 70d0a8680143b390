/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A token goes round the ring of all ranks; every rank checks each byte of
 * what it got from its left neighbour and sends its own pattern to the right.
 *
 * Ranks: 2 3 4 5 8
 */
#include "common.h"

static long rounds = 100;
static long size = -1;
static long table;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "times round the ring, per size" },
	{ "size", &size, "bytes of the token, -1: a list of sizes" },
	{ "table", &table, "1: print the time per hop of each size" },
	{ 0 },
};

static void hop_in(void *buf, size_t len, int from, long round)
{
	MPI_Status st;

	MPI_Recv(buf, (int)len, MPI_BYTE, from, 7, MPI_COMM_WORLD, &st);
	mt_status(&st, from, 7, len);
	mt_verify(buf, len, mt_seed(from, mt_rank, (long)len, round));
}

static void hop_out(void *buf, size_t len, int to, long round)
{
	mt_fill(buf, len, mt_seed(mt_rank, to, (long)len, round));
	MPI_Send(buf, (int)len, MPI_BYTE, to, 7, MPI_COMM_WORLD);
	mt_sent(1, len);
}

static void once_round(void *buf, size_t len, long round)
{
	int right = (mt_rank + 1) % mt_size;
	int left = (mt_rank + mt_size - 1) % mt_size;

	if (!mt_rank)
		hop_out(buf, len, right, round);
	hop_in(buf, len, left, round);
	if (mt_rank)
		hop_out(buf, len, right, round);
}

static void run(size_t len)
{
	/* Large tokens are few, so that each size takes about as long. */
	long n = mt_rounds(len > 65536 ? (rounds + 9) / 10 : rounds);
	void *buf = mt_alloc(len);
	double t;

	once_round(buf, len, -1);
	MPI_Barrier(MPI_COMM_WORLD);
	t = MPI_Wtime();
	for (long i = 0; i < n; i++)
		once_round(buf, len, i);
	t = MPI_Wtime() - t;
	if (table && !mt_rank)
		printf("ring %8zu B  %10.3f us/hop, checked\n", len,
		       t * 1e6 / (double)(n * mt_size));
	mt_free(buf);
}

int main(int argc, char **argv)
{
	static const size_t list[] = { 0,    1,	   8,	  40,	  41,	  1024,
				       4097, 8192, 65536, 262145, 1048576 };

	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"ring: a token goes round all ranks (2 or more)", opts);
	mt_check(mt_size > 1, "needs 2 ranks");
	for (size_t i = 0; i < sizeof(list) / sizeof(*list) && size < 0; i++)
		run(list[i]);
	if (size >= 0)
		run((size_t)size);
	return mt_end("ring");
}
