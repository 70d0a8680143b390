/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * All collectives with every root and odd sizes, also the variants with
 * counts of their own (some zero). Blocking one after the other, or, by
 * turns, all of them outstanding at once on one communicator.
 */
#include "common.h"

static long rounds = 3;
static long nonblocking = -1;
static long largest = 200003;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of the whole list, and two" },
	{ "nonblocking", &nonblocking,
	  "1: all outstanding at once, 0: one by one, -1: by turns" },
	{ "largest", &largest, "bytes of the largest block" },
	{ 0 },
};

/* One call of one collective. */
struct run {
	MPI_Comm comm;	  /* where */
	int me, n;	  /* rank and size there */
	int root;	  /* for those that have one */
	int op;		  /* place in the table: part of the seeds */
	size_t len;	  /* bytes of a block */
	long round;	  /* part of the seeds */
	char *in, *out;	  /* n * stride bytes each */
	size_t stride;	  /* room for a block */
	int *cin, *cout;  /* counts per rank, sent and received */
	int *din, *dout;  /* displacements */
	MPI_Request *req; /* NULL: the blocking call */
};

/* Sum of the bytes that must leave some rank. */
typedef uint64_t (*start_fn)(struct run *r);
typedef void (*check_fn)(struct run *r);

static uint64_t seed_of(const struct run *r, int src, int dst)
{
	return mt_seed(src, dst, r->op * 1000 + r->root, r->round);
}

/* Block @i of a buffer. */
static char *block(const struct run *r, char *buf, int i)
{
	return buf + (size_t)i * r->stride;
}

static uint64_t others(const struct run *r)
{
	return (uint64_t)r->n - 1;
}

/* ---- one to all ---------------------------------------------------- */

static uint64_t bcast_start(struct run *r)
{
	int len = (int)r->len;

	if (r->me == r->root)
		mt_fill(r->out, r->len, seed_of(r, r->root, -1));
	if (r->req)
		MPI_Ibcast(r->out, len, MPI_BYTE, r->root, r->comm, r->req);
	else
		MPI_Bcast(r->out, len, MPI_BYTE, r->root, r->comm);
	return others(r) * r->len;
}

static void bcast_check(struct run *r)
{
	mt_verify(r->out, r->len, seed_of(r, r->root, -1));
}

static uint64_t scatter_start(struct run *r)
{
	void *mine = r->me == r->root ? MPI_IN_PLACE : r->out;
	int len = (int)r->len;

	for (int i = 0; i < r->n && r->me == r->root; i++)
		mt_fill(r->in + (size_t)i * r->len, r->len,
			seed_of(r, r->root, i));
	if (r->req)
		MPI_Iscatter(r->in, len, MPI_BYTE, mine, len, MPI_BYTE, r->root,
			     r->comm, r->req);
	else
		MPI_Scatter(r->in, len, MPI_BYTE, mine, len, MPI_BYTE, r->root,
			    r->comm);
	return others(r) * r->len;
}

static void scatter_check(struct run *r)
{
	if (r->me != r->root)
		mt_verify(r->out, r->len, seed_of(r, r->root, r->me));
}

/* Bytes from @src to @dst in the v-variants; some are 0. */
static size_t vlen(const struct run *r, int src, int dst)
{
	int x = src * 5 + dst * 3 + r->root;

	return x % 4 == 1 ? 0 : r->len + (size_t)(x % 7);
}

static uint64_t scatterv_start(struct run *r)
{
	int mine = (int)vlen(r, r->root, r->me);
	uint64_t sum = 0;

	for (int i = 0; i < r->n; i++) {
		r->cin[i] = (int)vlen(r, r->root, i);
		r->din[i] = (int)(r->stride * (size_t)(r->n - 1 - i));
		mt_fill(r->in + r->din[i], (size_t)r->cin[i],
			seed_of(r, r->root, i));
		sum += i == r->root ? 0 : (uint64_t)r->cin[i];
	}
	if (r->req)
		MPI_Iscatterv(r->in, r->cin, r->din, MPI_BYTE, r->out, mine,
			      MPI_BYTE, r->root, r->comm, r->req);
	else
		MPI_Scatterv(r->in, r->cin, r->din, MPI_BYTE, r->out, mine,
			     MPI_BYTE, r->root, r->comm);
	return sum;
}

static void scatterv_check(struct run *r)
{
	mt_verify(r->out, vlen(r, r->root, r->me), seed_of(r, r->root, r->me));
}

/* ---- all to one ---------------------------------------------------- */

static uint64_t gather_start(struct run *r)
{
	int len = (int)r->len;

	mt_fill(r->in, r->len, seed_of(r, r->me, r->root));
	if (r->req)
		MPI_Igather(r->in, len, MPI_BYTE, r->out, len, MPI_BYTE,
			    r->root, r->comm, r->req);
	else
		MPI_Gather(r->in, len, MPI_BYTE, r->out, len, MPI_BYTE, r->root,
			   r->comm);
	return others(r) * r->len;
}

static void gather_check(struct run *r)
{
	for (int i = 0; i < r->n && r->me == r->root; i++)
		mt_verify(r->out + (size_t)i * r->len, r->len,
			  seed_of(r, i, r->root));
}

static uint64_t gatherv_start(struct run *r)
{
	int mine = (int)vlen(r, r->me, r->root);
	uint64_t sum = 0;

	mt_fill(r->in, (size_t)mine, seed_of(r, r->me, r->root));
	for (int i = 0; i < r->n; i++) {
		r->cout[i] = (int)vlen(r, i, r->root);
		r->dout[i] = (int)(r->stride * (size_t)i);
		sum += i == r->root ? 0 : (uint64_t)r->cout[i];
	}
	if (r->req)
		MPI_Igatherv(r->in, mine, MPI_BYTE, r->out, r->cout, r->dout,
			     MPI_BYTE, r->root, r->comm, r->req);
	else
		MPI_Gatherv(r->in, mine, MPI_BYTE, r->out, r->cout, r->dout,
			    MPI_BYTE, r->root, r->comm);
	return sum;
}

static void gatherv_check(struct run *r)
{
	for (int i = 0; i < r->n && r->me == r->root; i++)
		mt_verify(block(r, r->out, i), vlen(r, i, r->root),
			  seed_of(r, i, r->root));
}

/* ---- all to all ---------------------------------------------------- */

static uint64_t allgather_start(struct run *r)
{
	int len = (int)r->len;

	mt_fill(r->in, r->len, seed_of(r, r->me, -1));
	if (r->req)
		MPI_Iallgather(r->in, len, MPI_BYTE, r->out, len, MPI_BYTE,
			       r->comm, r->req);
	else
		MPI_Allgather(r->in, len, MPI_BYTE, r->out, len, MPI_BYTE,
			      r->comm);
	return (uint64_t)r->n * others(r) * r->len;
}

static void allgather_check(struct run *r)
{
	for (int i = 0; i < r->n; i++)
		mt_verify(r->out + (size_t)i * r->len, r->len,
			  seed_of(r, i, -1));
}

static uint64_t allgatherv_start(struct run *r)
{
	int mine = (int)vlen(r, r->me, 0);
	uint64_t sum = 0;

	mt_fill(r->in, (size_t)mine, seed_of(r, r->me, -1));
	for (int i = 0; i < r->n; i++) {
		r->cout[i] = (int)vlen(r, i, 0);
		r->dout[i] = (int)(r->stride * (size_t)(r->n - 1 - i));
		sum += others(r) * (uint64_t)r->cout[i];
	}
	if (r->req)
		MPI_Iallgatherv(r->in, mine, MPI_BYTE, r->out, r->cout, r->dout,
				MPI_BYTE, r->comm, r->req);
	else
		MPI_Allgatherv(r->in, mine, MPI_BYTE, r->out, r->cout, r->dout,
			       MPI_BYTE, r->comm);
	return sum;
}

static void allgatherv_check(struct run *r)
{
	for (int i = 0; i < r->n; i++)
		mt_verify(r->out + r->dout[i], vlen(r, i, 0),
			  seed_of(r, i, -1));
}

static uint64_t alltoall_start(struct run *r)
{
	int len = (int)r->len;

	for (int i = 0; i < r->n; i++)
		mt_fill(r->in + (size_t)i * r->len, r->len,
			seed_of(r, r->me, i));
	if (r->req)
		MPI_Ialltoall(r->in, len, MPI_BYTE, r->out, len, MPI_BYTE,
			      r->comm, r->req);
	else
		MPI_Alltoall(r->in, len, MPI_BYTE, r->out, len, MPI_BYTE,
			     r->comm);
	return (uint64_t)r->n * others(r) * r->len;
}

static void alltoall_check(struct run *r)
{
	for (int i = 0; i < r->n; i++)
		mt_verify(r->out + (size_t)i * r->len, r->len,
			  seed_of(r, i, r->me));
}

/* Counts, displacements and data of the two calls below. */
static uint64_t alltoallv_setup(struct run *r)
{
	uint64_t sum = 0;

	for (int i = 0; i < r->n; i++) {
		r->cin[i] = (int)vlen(r, r->me, i);
		r->cout[i] = (int)vlen(r, i, r->me);
		r->din[i] = (int)(r->stride * (size_t)(r->n - 1 - i));
		r->dout[i] = (int)(r->stride * (size_t)i);
		mt_fill(r->in + r->din[i], (size_t)r->cin[i],
			seed_of(r, r->me, i));
		for (int k = 0; k < r->n; k++)
			sum += i == k ? 0 : vlen(r, i, k);
	}
	return sum;
}

static uint64_t alltoallv_start(struct run *r)
{
	uint64_t sum = alltoallv_setup(r);

	if (r->req)
		MPI_Ialltoallv(r->in, r->cin, r->din, MPI_BYTE, r->out, r->cout,
			       r->dout, MPI_BYTE, r->comm, r->req);
	else
		MPI_Alltoallv(r->in, r->cin, r->din, MPI_BYTE, r->out, r->cout,
			      r->dout, MPI_BYTE, r->comm);
	return sum;
}

/* The array of types must live until the call is complete. */
static MPI_Datatype byte_types[256];

static uint64_t alltoallw_start(struct run *r)
{
	uint64_t sum = alltoallv_setup(r);

	for (int i = 0; i < r->n; i++)
		byte_types[i] = MPI_BYTE;
	if (r->req)
		MPI_Ialltoallw(r->in, r->cin, r->din, byte_types, r->out,
			       r->cout, r->dout, byte_types, r->comm, r->req);
	else
		MPI_Alltoallw(r->in, r->cin, r->din, byte_types, r->out,
			      r->cout, r->dout, byte_types, r->comm);
	return sum;
}

static void alltoallv_check(struct run *r)
{
	for (int i = 0; i < r->n; i++)
		mt_verify(block(r, r->out, i), vlen(r, i, r->me),
			  seed_of(r, i, r->me));
}

/* ---- reductions ---------------------------------------------------- */

static size_t words(const struct run *r)
{
	return r->len / 8;
}

/* Sum of the words @i of the ranks @from up to and without @to. */
static uint64_t sum_of(const struct run *r, int from, int to, size_t i)
{
	uint64_t sum = 0;

	for (int k = from; k < to; k++)
		sum += mt_word(seed_of(r, k, -1), i);
	return sum;
}

/* @n words at @out are the sums from word @first on. */
static void check_sums(const struct run *r, int to, size_t first, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t got;

		memcpy(&got, r->out + 8 * i, 8);
		mt_check(got == sum_of(r, 0, to, first + i),
			 "collective %d: word %zu of %zu is wrong", r->op, i,
			 n);
	}
}

static uint64_t reduce_start(struct run *r)
{
	int n = (int)words(r);

	mt_fill(r->in, words(r) * 8, seed_of(r, r->me, -1));
	if (r->req)
		MPI_Ireduce(r->in, r->out, n, MPI_UINT64_T, MPI_SUM, r->root,
			    r->comm, r->req);
	else
		MPI_Reduce(r->in, r->out, n, MPI_UINT64_T, MPI_SUM, r->root,
			   r->comm);
	return others(r) * words(r) * 8;
}

static void reduce_check(struct run *r)
{
	if (r->me == r->root)
		check_sums(r, r->n, 0, words(r));
}

static uint64_t allreduce_start(struct run *r)
{
	int n = (int)words(r);

	mt_fill(r->out, words(r) * 8, seed_of(r, r->me, -1));
	if (r->req)
		MPI_Iallreduce(MPI_IN_PLACE, r->out, n, MPI_UINT64_T, MPI_SUM,
			       r->comm, r->req);
	else
		MPI_Allreduce(MPI_IN_PLACE, r->out, n, MPI_UINT64_T, MPI_SUM,
			      r->comm);
	return others(r) * words(r) * 8;
}

static void allreduce_check(struct run *r)
{
	check_sums(r, r->n, 0, words(r));
}

/* Rank i keeps words(r) / n words and i more; the first rank keeps none. */
static size_t share(const struct run *r, int i)
{
	return i ? words(r) / (size_t)r->n + (size_t)i : 0;
}

static size_t share_start(const struct run *r, int to)
{
	size_t at = 0;

	for (int i = 0; i < to; i++)
		at += share(r, i);
	return at;
}

static uint64_t reduce_scatter_start(struct run *r)
{
	size_t all = share_start(r, r->n);

	mt_fill(r->in, all * 8, seed_of(r, r->me, -1));
	for (int i = 0; i < r->n; i++)
		r->cout[i] = (int)share(r, i);
	if (r->req)
		MPI_Ireduce_scatter(r->in, r->out, r->cout, MPI_UINT64_T,
				    MPI_SUM, r->comm, r->req);
	else
		MPI_Reduce_scatter(r->in, r->out, r->cout, MPI_UINT64_T,
				   MPI_SUM, r->comm);
	return r->n > 1 ? all * 8 : 0;
}

static void reduce_scatter_check(struct run *r)
{
	check_sums(r, r->n, share_start(r, r->me), share(r, r->me));
}

static uint64_t reduce_block_start(struct run *r)
{
	size_t n = words(r);

	mt_fill(r->in, n * (size_t)r->n * 8, seed_of(r, r->me, -1));
	if (r->req)
		MPI_Ireduce_scatter_block(r->in, r->out, (int)n, MPI_UINT64_T,
					  MPI_SUM, r->comm, r->req);
	else
		MPI_Reduce_scatter_block(r->in, r->out, (int)n, MPI_UINT64_T,
					 MPI_SUM, r->comm);
	return others(r) * n * 8;
}

static void reduce_block_check(struct run *r)
{
	check_sums(r, r->n, words(r) * (size_t)r->me, words(r));
}

static uint64_t scan_start(struct run *r)
{
	int n = (int)words(r);

	mt_fill(r->in, words(r) * 8, seed_of(r, r->me, -1));
	if (r->req)
		MPI_Iscan(r->in, r->out, n, MPI_UINT64_T, MPI_SUM, r->comm,
			  r->req);
	else
		MPI_Scan(r->in, r->out, n, MPI_UINT64_T, MPI_SUM, r->comm);
	return others(r) * words(r) * 8;
}

static void scan_check(struct run *r)
{
	check_sums(r, r->me + 1, 0, words(r));
}

static uint64_t exscan_start(struct run *r)
{
	int n = (int)words(r);

	mt_fill(r->in, words(r) * 8, seed_of(r, r->me, -1));
	if (r->req)
		MPI_Iexscan(r->in, r->out, n, MPI_UINT64_T, MPI_SUM, r->comm,
			    r->req);
	else
		MPI_Exscan(r->in, r->out, n, MPI_UINT64_T, MPI_SUM, r->comm);
	return others(r) * words(r) * 8;
}

static void exscan_check(struct run *r)
{
	if (r->me)
		check_sums(r, r->me, 0, words(r));
}

/* ---- barrier ------------------------------------------------------- */

static uint64_t barrier_start(struct run *r)
{
	if (r->req)
		MPI_Ibarrier(r->comm, r->req);
	else
		MPI_Barrier(r->comm);
	return 0;
}

static void barrier_check(struct run *r)
{
	(void)r;
}

/* ---- the list ------------------------------------------------------ */

static const struct {
	start_fn start;
	check_fn check;
} ops[] = {
	{ bcast_start, bcast_check },
	{ gather_start, gather_check },
	{ scatter_start, scatter_check },
	{ allgather_start, allgather_check },
	{ alltoall_start, alltoall_check },
	{ barrier_start, barrier_check },
	{ gatherv_start, gatherv_check },
	{ scatterv_start, scatterv_check },
	{ allgatherv_start, allgatherv_check },
	{ alltoallv_start, alltoallv_check },
	{ alltoallw_start, alltoallv_check },
	{ reduce_start, reduce_check },
	{ allreduce_start, allreduce_check },
	{ reduce_scatter_start, reduce_scatter_check },
	{ reduce_block_start, reduce_block_check },
	{ scan_start, scan_check },
	{ exscan_start, exscan_check },
};

enum { NOPS = sizeof(ops) / sizeof(*ops) };

static void run_open(struct run *r, int op, int root, size_t len, long round)
{
	*r = (struct run){ .comm = MPI_COMM_WORLD,
			   .me = mt_rank,
			   .n = mt_size,
			   .root = root,
			   .op = op,
			   .len = len,
			   .round = round,
			   .stride = len + 8 * (size_t)mt_size };
	r->in = mt_alloc(r->stride * (size_t)r->n);
	r->out = mt_alloc(r->stride * (size_t)r->n);
	r->cin = mt_alloc(4 * (size_t)r->n * sizeof(int));
	r->cout = r->cin + r->n;
	r->din = r->cout + r->n;
	r->dout = r->din + r->n;
}

static void run_start(struct run *r)
{
	uint64_t bytes = ops[r->op].start(r);

	if (bytes)
		mt_moved(r->comm, 1, bytes);
}

static void run_close(struct run *r)
{
	ops[r->op].check(r);
	mt_free(r->in);
	mt_free(r->out);
	mt_free(r->cin);
}

static void one_by_one(int root, size_t len, long round)
{
	for (int op = 0; op < NOPS; op++) {
		struct run r;

		run_open(&r, op, root, len, round);
		run_start(&r);
		run_close(&r);
	}
}

static void finish(MPI_Request *req, long how)
{
	int flag = 0, i;

	if (how % 3 == 0)
		MPI_Waitall(NOPS, req, MPI_STATUSES_IGNORE);
	while (how % 3 == 1 && !flag)
		MPI_Testall(NOPS, req, &flag, MPI_STATUSES_IGNORE);
	for (int k = 0; k < NOPS && how % 3 == 2; k++)
		MPI_Waitany(NOPS, req, &i, MPI_STATUS_IGNORE);
}

static void at_once(int root, size_t len, long round)
{
	MPI_Request req[NOPS];
	struct run r[NOPS];

	for (int op = 0; op < NOPS; op++) {
		run_open(&r[op], op, root, len, round);
		r[op].req = &req[op];
		run_start(&r[op]);
	}
	finish(req, round + root);
	for (int op = 0; op < NOPS; op++)
		run_close(&r[op]);
}

static void all_sizes(long round)
{
	static const size_t list[] = { 0, 1, 8, 41, 1000, 4103, 20011 };
	bool together = nonblocking < 0 ? round % 2 : nonblocking;
	void (*go)(int, size_t, long) = together ? at_once : one_by_one;

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		for (int root = 0; root < mt_size; root++)
			go(root, list[i], round);
	go((int)(round % mt_size), (size_t)largest, round);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"coll: all collectives, every root, every byte checked", opts);
	mt_check(mt_size <= 256, "at most 256 ranks");
	for (long r = 0; r < mt_rounds(rounds * 5) / 5 + 2; r++)
		all_sizes(r);
	return mt_end("coll");
}
