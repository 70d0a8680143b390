/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Mixed stress with checks: several threads per rank split communicators at
 * random, and run random collectives of random sizes on the parts, all at the
 * same time. What is drawn depends on thread, round and colour only, so all
 * members of a part draw the same.
 */
#include "common.h"

#include <pthread.h>

static long rounds = 30;
static long nthreads = 3;
static long calls = 8;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "communicators each thread splits" },
	{ "threads", &nthreads, "threads per rank, at most 16" },
	{ "calls", &calls, "collectives on each part" },
	{ 0 },
};

enum { MAX_THREADS = 16, MAX_WORDS = 9000 };

/* A thread of this rank. */
struct worker {
	pthread_t id; /* joined by main */
	int number;   /* the same on all ranks */
	MPI_Comm own; /* of this number only */
};

/* One collective on one part. */
struct call {
	MPI_Comm comm;	    /* the part */
	int me, n;	    /* rank and size there */
	int root;	    /* drawn */
	int words;	    /* 64-bit words per rank, drawn */
	long id;	    /* in the seeds */
	uint64_t *in, *out; /* n * words each */
};

static void fill(const struct call *c, uint64_t *buf, int src, int dst)
{
	mt_fill(buf, (size_t)c->words * 8, mt_seed(src, dst, 1, c->id));
}

static void check(const struct call *c, const uint64_t *buf, int src, int dst)
{
	mt_verify(buf, (size_t)c->words * 8, mt_seed(src, dst, 1, c->id));
}

/* The ranks' words add up in the first @to ranks. */
static void check_sum(const struct call *c, int to)
{
	for (int i = 0; i < c->words; i++) {
		uint64_t sum = 0;

		for (int r = 0; r < to; r++)
			sum += mt_word(mt_seed(r, 0, 1, c->id), (uint64_t)i);
		mt_check(c->out[i] == sum, "call %ld: word %d of %d", c->id, i,
			 c->words);
	}
}

static void told(const struct call *c, int blocks)
{
	if (blocks > 0 && c->words)
		mt_moved(c->comm, 1, (uint64_t)blocks * 8 * (uint64_t)c->words);
}

static void bcast(struct call *c)
{
	if (c->me == c->root)
		fill(c, c->out, c->root, 0);
	MPI_Bcast(c->out, c->words, MPI_UINT64_T, c->root, c->comm);
	check(c, c->out, c->root, 0);
	told(c, c->n - 1);
}

static void allreduce(struct call *c)
{
	fill(c, c->in, c->me, 0);
	MPI_Allreduce(c->in, c->out, c->words, MPI_UINT64_T, MPI_SUM, c->comm);
	check_sum(c, c->n);
	told(c, c->n - 1);
}

static void reduce(struct call *c)
{
	fill(c, c->in, c->me, 0);
	MPI_Reduce(c->in, c->out, c->words, MPI_UINT64_T, MPI_SUM, c->root,
		   c->comm);
	if (c->me == c->root)
		check_sum(c, c->n);
	told(c, c->n - 1);
}

static void scan(struct call *c)
{
	fill(c, c->in, c->me, 0);
	MPI_Scan(c->in, c->out, c->words, MPI_UINT64_T, MPI_SUM, c->comm);
	check_sum(c, c->me + 1);
	told(c, c->n - 1);
}

static void allgather(struct call *c)
{
	fill(c, c->in, c->me, 0);
	MPI_Allgather(c->in, c->words, MPI_UINT64_T, c->out, c->words,
		      MPI_UINT64_T, c->comm);
	for (int r = 0; r < c->n; r++)
		check(c, c->out + r * c->words, r, 0);
	told(c, c->n * (c->n - 1));
}

static void alltoall(struct call *c)
{
	for (int r = 0; r < c->n; r++)
		fill(c, c->in + r * c->words, c->me, r);
	MPI_Alltoall(c->in, c->words, MPI_UINT64_T, c->out, c->words,
		     MPI_UINT64_T, c->comm);
	for (int r = 0; r < c->n; r++)
		check(c, c->out + r * c->words, r, c->me);
	told(c, c->n * (c->n - 1));
}

static void gather(struct call *c)
{
	fill(c, c->in, c->me, 0);
	MPI_Gather(c->in, c->words, MPI_UINT64_T, c->out, c->words,
		   MPI_UINT64_T, c->root, c->comm);
	for (int r = 0; r < c->n && c->me == c->root; r++)
		check(c, c->out + r * c->words, r, 0);
	told(c, c->n - 1);
}

static void scatter(struct call *c)
{
	for (int r = 0; r < c->n; r++)
		fill(c, c->in + r * c->words, c->root, r);
	MPI_Scatter(c->in, c->words, MPI_UINT64_T, c->out, c->words,
		    MPI_UINT64_T, c->root, c->comm);
	check(c, c->out, c->root, c->me);
	told(c, c->n - 1);
}

static void ring(struct call *c)
{
	int to = (c->me + 1) % c->n, from = (c->me + c->n - 1) % c->n;

	fill(c, c->in, c->me, to);
	MPI_Sendrecv(c->in, c->words, MPI_UINT64_T, to, 1, c->out, c->words,
		     MPI_UINT64_T, from, 1, c->comm, MPI_STATUS_IGNORE);
	check(c, c->out, from, c->me);
	mt_sent(1, (uint64_t)c->words * 8);
}

static void iallreduce(struct call *c)
{
	MPI_Request req[2];
	int flag = 0;

	fill(c, c->in, c->me, 0);
	MPI_Iallreduce(c->in, c->out, c->words, MPI_UINT64_T, MPI_SUM, c->comm,
		       &req[0]);
	MPI_Ibarrier(c->comm, &req[1]);
	while (!flag)
		MPI_Testall(2, req, &flag, MPI_STATUSES_IGNORE);
	check_sum(c, c->n);
	told(c, c->n - 1);
}

static void one_call(struct call *c, uint64_t *draw)
{
	static void (*const kind[])(struct call *) = {
		bcast,	  allreduce, reduce,  scan, allgather,
		alltoall, gather,    scatter, ring, iallreduce,
	};
	static const int limit[] = { 2, 50, 600, MAX_WORDS };
	uint64_t most = (uint64_t)limit[mt_random(draw) % 4];
	size_t bytes;

	c->id = (long)(mt_random(draw) >> 1);
	c->root = (int)(mt_random(draw) % (uint64_t)c->n);
	c->words = (int)(mt_random(draw) % most);
	bytes = (size_t)c->n * (size_t)c->words * 8;
	c->in = malloc(bytes + 1);
	c->out = malloc(bytes + 1);
	mt_check(c->in && c->out, "no memory");
	kind[mt_random(draw) % 10](c);
	free(c->in);
	free(c->out);
}

/* Splits @parent by drawn colours and keys and works on the part. */
static void one_split(struct worker *w, MPI_Comm parent, long round)
{
	uint64_t mine = mt_seed(mt_rank, w->number, 2, round), draw;
	uint64_t colors = mt_seed(0, w->number, 3, round) % 3 + 1;
	int color = (int)(mine % colors);
	struct call c = { 0 };

	MPI_Comm_split(parent, color, (int)(mine >> 40), &c.comm);
	MPI_Comm_rank(c.comm, &c.me);
	MPI_Comm_size(c.comm, &c.n);
	draw = mt_seed(color, w->number, 4, round);
	for (long i = 0; i < calls; i++)
		one_call(&c, &draw);
	MPI_Comm_free(&c.comm);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (long r = 0; r < mt_rounds(rounds); r++)
		one_split(w, w->own, r);
	return NULL;
}

int main(int argc, char **argv)
{
	struct worker w[MAX_THREADS];

	mt_init(argc, argv, MPI_THREAD_MULTIPLE,
		"mixed: threads run random collectives on random parts", opts);
	mt_check(nthreads > 0 && nthreads <= MAX_THREADS, "1 to %d threads",
		 MAX_THREADS);
	for (int i = 0; i < nthreads; i++) {
		w[i].number = i;
		MPI_Comm_dup(MPI_COMM_WORLD, &w[i].own);
	}
	for (int i = 0; i < nthreads; i++)
		mt_check(!pthread_create(&w[i].id, NULL, work, &w[i]),
			 "pthread_create");
	for (int i = 0; i < nthreads; i++)
		pthread_join(w[i].id, NULL);
	for (int i = 0; i < nthreads; i++)
		MPI_Comm_free(&w[i].own);
	return mt_end("mixed (case_P21)");
}
