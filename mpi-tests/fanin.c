/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The usual benchmark patterns with their data checked, among the first 2, 3,
 * ... all ranks, for all powers of two up to a limit: ping-pong, ping-ping,
 * ring, exchange, and collectives called many times in a row without a
 * barrier, the receiving rank coming late, so that much arrives at one.
 */
#include "common.h"

#include <time.h>

static long calls = 3;
static long largest = 1 << 20;

static const struct mt_opt opts[] = {
	{ "calls", &calls, "calls of each pattern and size" },
	{ "largest", &largest, "bytes of the largest message" },
	{ 0 },
};

/* A pattern among the ranks of one communicator. */
struct group {
	MPI_Comm comm;	/* the first n ranks of the world */
	int me, n;	/* rank and size */
	size_t len;	/* bytes of a message */
	char *in, *out; /* n messages each */
	long call;	/* in the seeds */
};

static uint64_t seed_of(const struct group *g, int src, int dst)
{
	return mt_seed(src, dst, (long)g->len, g->call * 100 + g->n);
}

static void fill(struct group *g, int slot, int src, int dst)
{
	mt_fill(g->out + (size_t)slot * g->len, g->len, seed_of(g, src, dst));
}

static void check(struct group *g, int slot, int src, int dst)
{
	mt_verify(g->in + (size_t)slot * g->len, g->len, seed_of(g, src, dst));
}

static void told(struct group *g, int blocks)
{
	if (g->len)
		mt_moved(g->comm, 1, (uint64_t)blocks * g->len);
}

/* ---- point to point ------------------------------------------------ */

static void pingpong(struct group *g)
{
	int len = (int)g->len;

	if (g->me > 1)
		return;
	if (g->me) {
		MPI_Recv(g->in, len, MPI_BYTE, 0, 1, g->comm,
			 MPI_STATUS_IGNORE);
		check(g, 0, 0, 1);
	}
	fill(g, 0, g->me, !g->me);
	MPI_Send(g->out, len, MPI_BYTE, !g->me, 1, g->comm);
	mt_sent(1, g->len);
	if (!g->me) {
		MPI_Recv(g->in, len, MPI_BYTE, 1, 1, g->comm,
			 MPI_STATUS_IGNORE);
		check(g, 0, 1, 0);
	}
}

static void pingping(struct group *g)
{
	MPI_Request req;

	if (g->me > 1)
		return;
	fill(g, 0, g->me, !g->me);
	MPI_Isend(g->out, (int)g->len, MPI_BYTE, !g->me, 2, g->comm, &req);
	MPI_Recv(g->in, (int)g->len, MPI_BYTE, !g->me, 2, g->comm,
		 MPI_STATUS_IGNORE);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	check(g, 0, !g->me, g->me);
	mt_sent(1, g->len);
}

static void ring(struct group *g)
{
	int to = (g->me + 1) % g->n, from = (g->me + g->n - 1) % g->n;

	fill(g, 0, g->me, to);
	MPI_Sendrecv(g->out, (int)g->len, MPI_BYTE, to, 3, g->in, (int)g->len,
		     MPI_BYTE, from, 3, g->comm, MPI_STATUS_IGNORE);
	check(g, 0, from, g->me);
	mt_sent(1, g->len);
}

static void exchange(struct group *g)
{
	int peer[2] = { (g->me + 1) % g->n, (g->me + g->n - 1) % g->n };
	int len = (int)g->len;
	MPI_Request req[4];

	for (int i = 0; i < 2; i++) {
		/* Two ranks are both neighbours: the tag tells the ways. */
		MPI_Irecv(g->in + (size_t)i * g->len, len, MPI_BYTE, peer[i],
			  4 + !i, g->comm, &req[i]);
		fill(g, i, g->me, peer[i]);
		MPI_Isend(g->out + (size_t)i * g->len, len, MPI_BYTE, peer[i],
			  4 + i, g->comm, &req[2 + i]);
		mt_sent(1, g->len);
	}
	MPI_Waitall(4, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 2; i++)
		check(g, i, peer[i], g->me);
}

/* ---- collectives --------------------------------------------------- */

static void bcast(struct group *g)
{
	if (!g->me)
		mt_fill(g->in, g->len, seed_of(g, 0, 0));
	MPI_Bcast(g->in, (int)g->len, MPI_BYTE, 0, g->comm);
	check(g, 0, 0, 0);
	told(g, g->n - 1);
}

static void gather(struct group *g)
{
	int len = (int)g->len;

	fill(g, 0, g->me, 0);
	MPI_Gather(g->out, len, MPI_BYTE, g->in, len, MPI_BYTE, 0, g->comm);
	for (int r = 0; r < g->n && !g->me; r++)
		check(g, r, r, 0);
	told(g, g->n - 1);
}

static void scatter(struct group *g)
{
	int len = (int)g->len;

	for (int r = 0; r < g->n; r++)
		fill(g, r, 0, r);
	MPI_Scatter(g->out, len, MPI_BYTE, g->in, len, MPI_BYTE, 0, g->comm);
	check(g, 0, 0, g->me);
	told(g, g->n - 1);
}

static void allgather(struct group *g)
{
	int len = (int)g->len;

	fill(g, 0, g->me, 0);
	MPI_Allgather(g->out, len, MPI_BYTE, g->in, len, MPI_BYTE, g->comm);
	for (int r = 0; r < g->n; r++)
		check(g, r, r, 0);
	told(g, g->n * (g->n - 1));
}

static void alltoall(struct group *g)
{
	int len = (int)g->len;

	for (int r = 0; r < g->n; r++)
		fill(g, r, g->me, r);
	MPI_Alltoall(g->out, len, MPI_BYTE, g->in, len, MPI_BYTE, g->comm);
	for (int r = 0; r < g->n; r++)
		check(g, r, r, g->me);
	told(g, g->n * (g->n - 1));
}

/* Exclusive or of all ranks' patterns, by Reduce or Allreduce. */
static void reduction(struct group *g, bool all)
{
	int words = (int)(g->len / 8);
	uint64_t got;

	fill(g, 0, g->me, 0);
	if (all)
		MPI_Allreduce(g->out, g->in, words, MPI_UINT64_T, MPI_BXOR,
			      g->comm);
	else
		MPI_Reduce(g->out, g->in, words, MPI_UINT64_T, MPI_BXOR, 0,
			   g->comm);
	for (int i = 0; i < words && (all || !g->me); i++) {
		memcpy(&got, g->in + 8 * i, 8);
		for (int r = 0; r < g->n; r++)
			got ^= mt_word(seed_of(g, r, 0), (uint64_t)i);
		mt_check(!got, "word %d of %d of a reduction", i, words);
	}
	if (words)
		told(g, g->n - 1);
}

static void reduce(struct group *g)
{
	reduction(g, false);
}

static void allreduce(struct group *g)
{
	reduction(g, true);
}

/* ---- all of it ----------------------------------------------------- */

static void (*const patterns[])(struct group *) = {
	pingpong, pingping, ring,      exchange,  bcast,    gather,
	scatter,  reduce,   allreduce, allgather, alltoall,
};

static void one_pattern(struct group *g, void (*run)(struct group *), long n)
{
	static const struct timespec late = { 0, 2000000 };

	if (!g->me && run == gather)
		nanosleep(&late, NULL);
	for (g->call = 0; g->call < n; g->call++)
		run(g);
}

static void one_size(struct group *g, size_t len)
{
	long n = mt_rounds(len > 65536 ? calls : calls * 4);

	g->len = len;
	g->in = mt_alloc(len * (size_t)g->n);
	g->out = mt_alloc(len * (size_t)g->n);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
		one_pattern(g, patterns[i], n);
	mt_free(g->in);
	mt_free(g->out);
}

/* Few sizes for most numbers of ranks, all powers of two for 2 and all. */
static void one_number(int n)
{
	bool all = n == 2 || n == mt_size;
	struct group g = { .n = n };

	MPI_Comm_split(MPI_COMM_WORLD, mt_rank < n ? 0 : MPI_UNDEFINED, 0,
		       &g.comm);
	if (g.comm == MPI_COMM_NULL)
		return;
	MPI_Comm_rank(g.comm, &g.me);
	one_size(&g, 0);
	for (long len = 1; len <= largest; len *= all ? 2 : 32)
		one_size(&g, (size_t)len);
	MPI_Comm_free(&g.comm);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"fanin: benchmark patterns with their data checked", opts);
	mt_check(mt_size > 1, "needs 2 ranks");
	for (int n = 2; n <= mt_size; n++) {
		one_number(n);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	return mt_end("fanin (case_P22)");
}
