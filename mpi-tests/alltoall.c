/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Alltoall of many block sizes, in place and not; every byte is checked.
 */
#include "common.h"

static long rounds = 20;
static long size = -1;
static long table;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "calls per size" },
	{ "size", &size, "bytes for each pair, -1: a list of sizes" },
	{ "table", &table, "1: print the time per call of each size" },
	{ 0 },
};

static void fill_blocks(char *buf, size_t len, long round)
{
	for (int to = 0; to < mt_size; to++)
		mt_fill(buf + (size_t)to * len, len,
			mt_seed(mt_rank, to, (long)len, round));
}

static void check_blocks(const char *buf, size_t len, long round)
{
	for (int from = 0; from < mt_size; from++)
		mt_verify(buf + (size_t)from * len, len,
			  mt_seed(from, mt_rank, (long)len, round));
}

static void once(char *in, char *out, size_t len, long round)
{
	bool in_place = round % 3 == 2;
	uint64_t n = (uint64_t)mt_size;

	fill_blocks(in_place ? out : in, len, round);
	MPI_Alltoall(in_place ? MPI_IN_PLACE : in, (int)len, MPI_BYTE, out,
		     (int)len, MPI_BYTE, MPI_COMM_WORLD);
	/* A rank has to send all but its own block, combined or not. */
	mt_sent(len && n > 1, len * (n - 1));
	check_blocks(out, len, round);
}

static void run(size_t len)
{
	long n = mt_rounds(len > 16384 ? (rounds + 9) / 10 : rounds);
	char *in = mt_alloc(len * (size_t)mt_size);
	char *out = mt_alloc(len * (size_t)mt_size);
	double t;

	for (long i = 0; i < 3; i++)
		once(in, out, len, -1 - i);
	MPI_Barrier(MPI_COMM_WORLD);
	t = MPI_Wtime();
	for (long i = 0; i < n; i++)
		once(in, out, len, i);
	t = MPI_Wtime() - t;
	if (table && !mt_rank)
		printf("alltoall %8zu B  %10.3f us/call, checked\n", len,
		       t * 1e6 / (double)n);
	mt_free(in);
	mt_free(out);
}

int main(int argc, char **argv)
{
	static const size_t list[] = { 0,    1,	   3,	 39,	40,    41,
				       1000, 4096, 8191, 65537, 262144 };

	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"alltoall: a block for each pair, every byte checked", opts);
	for (size_t i = 0; i < sizeof(list) / sizeof(*list) && size < 0; i++)
		run(list[i]);
	if (size >= 0)
		run((size_t)size);
	return mt_end("alltoall");
}
