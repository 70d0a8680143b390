/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One message of every interesting size, 0 bytes to 64 MiB: around each power
 * of two, around the sizes where a provider changes its way, and the two of
 * a report in which Open MPI stopped. Both ways at once, expected and not.
 */
#include "common.h"

static long from_size;
static long to_size = 64l << 20;
static long step;

static const struct mt_opt opts[] = {
	{ "from", &from_size, "smallest size" },
	{ "to", &to_size, "largest size" },
	{ "step", &step, "sweep by so many bytes instead of the list" },
	{ 0 },
};

enum { EVERYBODY = 1 << 20 };

/* The seed of a size; one more bit tells the two ways apart. */
static uint64_t seed_of(int src, int dst, size_t len, bool late)
{
	return mt_seed(src, dst, (long)len, late);
}

static void both_ways(int peer, size_t len, bool late, char *in, char *out)
{
	MPI_Request req[2];
	MPI_Status st[2];
	int n = (int)len;

	mt_fill(out, len, seed_of(mt_rank, peer, len, late));
	if (!late)
		MPI_Irecv(in, n, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &req[0]);
	MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 4, NULL, 0, MPI_BYTE, peer, 4,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Isend(out, n, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &req[1]);
	/* The small message comes after the large one: that waits already. */
	MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 4, NULL, 0, MPI_BYTE, peer, 4,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (late)
		MPI_Irecv(in, n, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &req[0]);
	MPI_Waitall(2, req, st);
	mt_status(&st[0], peer, 3, len);
	mt_verify(in, len, seed_of(peer, mt_rank, len, late));
	mt_sent(3, len);
}

/* Blocking: the even rank sends first. */
static void one_way(int peer, size_t len, char *in, char *out)
{
	int n = (int)len;

	for (int turn = 0; turn < 2; turn++) {
		if ((mt_rank < peer) == !turn) {
			mt_fill(out, len, seed_of(mt_rank, peer, len, turn));
			MPI_Send(out, n, MPI_BYTE, peer, 5, MPI_COMM_WORLD);
			mt_sent(1, len);
		} else {
			MPI_Recv(in, n, MPI_BYTE, peer, 5, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			mt_verify(in, len, seed_of(peer, mt_rank, len, turn));
		}
	}
}

/* Large messages go between ranks 0 and 1 only: the memory is limited. */
static void one_size(size_t len)
{
	int peer = mt_rank ^ 1;
	char *in, *out;

	if (peer >= mt_size || (len > EVERYBODY && mt_rank > 1))
		return;
	in = mt_alloc(len);
	out = mt_alloc(len);
	both_ways(peer, len, false, in, out);
	both_ways(peer, len, true, in, out);
	one_way(peer, len, in, out);
	mt_free(in);
	mt_free(out);
}

static void maybe(long len)
{
	if (len >= from_size && len <= to_size)
		one_size((size_t)len);
}

static void the_list(void)
{
	static const long odd[] = { 24, 39, 40, 41,	  47,	    48,
				    49, 56, 57, 19145880, 19145881, 50000001 };

	for (long p = 1; p <= 64l << 20; p *= 2)
		for (long d = -1; d <= 1; d++)
			/* Above 1 MiB every fourth power is enough. */
			if (p <= 1 << 20 || (d < 1 && p & 0x5400000))
				maybe(p + d);
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
		maybe(odd[i]);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"sizes: 0 bytes to 64 MiB, both ways (2 ranks or more)", opts);
	mt_check(mt_size > 1, "needs 2 ranks");
	if (!step)
		the_list();
	for (long len = from_size; step && len <= to_size; len += step)
		one_size((size_t)len);
	return mt_end("sizes (case_P1)");
}
