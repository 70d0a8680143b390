/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * MPI_THREAD_MULTIPLE: several threads per rank use MPI at once. They send
 * and receive by Isend, Irecv and Test, on one communicator with a tag each
 * and on a communicator each, find messages by Mprobe, and duplicate
 * communicators in loops.
 */
#include "common.h"

#include <pthread.h>

static long rounds = 28;
static long nthreads = 4;
static long part = -1;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of each thread" },
	{ "threads", &nthreads, "threads per rank, at most 16" },
	{ "part", &part,
	  "0 nonblocking, 1 blocking, 2 own probes, "
	  "3 probes of any, 4 Comm_dup, -1 all" },
	{ 0 },
};

enum { MAX_THREADS = 16, WINDOW = 8, LEN = 70001, BIG = 4 << 20 };

/* A thread of this rank. Tags and seeds carry its number. */
struct worker {
	pthread_t id;		/* joined by main */
	int number;		/* the same number talks on all ranks */
	MPI_Comm own;		/* used by this number only */
	MPI_Comm shared;	/* used by all numbers */
	pthread_barrier_t *all; /* all threads of this rank */
};

static size_t len_of(int number, int i, long round)
{
	static const size_t list[] = { 0, 8, 41, 1000, 4097, 20000, LEN };

	return list[mt_seed(number, i, 0, round) % 7];
}

/* ---- Isend, Irecv, Test -------------------------------------------- */

/* Tests round and round, as a program with other work to do would. */
static void test_all(MPI_Request *req, int n)
{
	for (int left = n; left;) {
		left = 0;
		for (int i = 0; i < n; i++) {
			int flag = 1;

			if (req[i] != MPI_REQUEST_NULL)
				MPI_Test(&req[i], &flag, MPI_STATUS_IGNORE);
			left += !flag;
		}
	}
}

static void send_window(struct worker *w, MPI_Comm comm, char *buf,
			MPI_Request *req, int peer, long round)
{
	for (int i = 0; i < WINDOW; i++) {
		int tag = w->number * WINDOW + i;
		int len = (int)len_of(w->number, i, round);
		char *p = buf + (size_t)i * LEN;

		mt_fill(p, (size_t)len, mt_seed(mt_rank, peer, tag, round));
		MPI_Isend(p, len, MPI_BYTE, peer, tag, comm, &req[i]);
		mt_sent(1, (uint64_t)len);
	}
}

static void exchange(struct worker *w, MPI_Comm comm, int shift, long round)
{
	int to = (mt_rank + shift) % mt_size;
	int from = (mt_rank + mt_size - shift) % mt_size;
	char *in = malloc((size_t)WINDOW * LEN);
	char *out = malloc((size_t)WINDOW * LEN);
	MPI_Request req[2 * WINDOW];

	mt_check(in && out, "no memory");
	for (int i = 0; i < WINDOW; i++)
		MPI_Irecv(in + (size_t)i * LEN, LEN, MPI_BYTE, from,
			  w->number * WINDOW + i, comm, &req[i]);
	send_window(w, comm, out, req + WINDOW, to, round);
	test_all(req, 2 * WINDOW);
	for (int i = 0; i < WINDOW; i++)
		mt_verify(
			in + (size_t)i * LEN, len_of(w->number, i, round),
			mt_seed(from, mt_rank, w->number * WINDOW + i, round));
	free(in);
	free(out);
}

static void messages(struct worker *w)
{
	for (long r = 0; r < mt_rounds(rounds); r++) {
		exchange(w, w->shared, (int)r % mt_size, r);
		exchange(w, w->own, (int)(r + 1) % mt_size, r);
	}
}

/* ---- blocking calls ------------------------------------------------ */

static void blocking(struct worker *w)
{
	char in[600], out[600];
	int tag = 1000 + w->number;
	MPI_Status st;

	for (long r = 0; r < mt_rounds(rounds * 5); r++) {
		int to = (mt_rank + (int)(r % mt_size)) % mt_size;
		int from = (mt_rank + mt_size - (int)(r % mt_size)) % mt_size;
		size_t len = mt_seed(0, 0, tag, r) % 601;

		mt_fill(out, len, mt_seed(mt_rank, to, tag, r));
		MPI_Sendrecv(out, (int)len, MPI_BYTE, to, tag, in, 600,
			     MPI_BYTE, from, tag, w->shared, &st);
		mt_status(&st, from, tag, len);
		mt_verify(in, len, mt_seed(from, mt_rank, tag, r));
		mt_sent(1, len);
	}
}

/* ---- each thread probes for its own -------------------------------- */

static void probe_own(struct worker *w)
{
	int tag = 2000 + w->number, to = (mt_rank + 1) % mt_size, len;
	int from = (mt_rank + mt_size - 1) % mt_size;
	char *in = malloc(BIG), *out = malloc(BIG);
	MPI_Request req;
	MPI_Status st;

	mt_check(in && out, "no memory");
	for (long r = 0; r < mt_rounds(rounds / 4); r++) {
		size_t want = r & 1 ? BIG : 100;
		int flag = 0;

		mt_fill(out, want, mt_seed(mt_rank, to, tag, r));
		MPI_Isend(out, (int)want, MPI_BYTE, to, tag, w->shared, &req);
		while (!flag)
			MPI_Iprobe(from, tag, w->shared, &flag, &st);
		MPI_Get_count(&st, MPI_BYTE, &len);
		MPI_Recv(in, len, MPI_BYTE, from, tag, w->shared, &st);
		mt_status(&st, from, tag, want);
		mt_verify(in, want, mt_seed(from, mt_rank, tag, r));
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		mt_sent(1, want);
	}
	free(in);
	free(out);
}

/* ---- any thread takes any message ---------------------------------- */

/*
 * All threads send their share to all ranks and take as many messages by
 * Mprobe or Improbe, whoever they are from; the seed is in the tag.
 */
static void take_one(struct worker *w, char *in, long round, bool poll)
{
	MPI_Message msg;
	MPI_Status st;
	int flag = 0, len;

	if (!poll)
		MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, w->shared, &msg, &st);
	while (poll && !flag)
		MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, w->shared, &flag, &msg,
			    &st);
	MPI_Get_count(&st, MPI_BYTE, &len);
	mt_check(len <= BIG, "length %d", len);
	MPI_Mrecv(in, len, MPI_BYTE, &msg, &st);
	mt_status(&st, st.MPI_SOURCE, st.MPI_TAG, (size_t)len);
	mt_verify(in, (size_t)len,
		  mt_seed(st.MPI_SOURCE, mt_rank, st.MPI_TAG, round));
}

static size_t probe_len(int number)
{
	return number & 1 ? 1000 : BIG;
}

static void probe_round(struct worker *w, char *in, char *out, long round)
{
	size_t len = probe_len(w->number);
	MPI_Request req[256];

	for (int to = 0; to < mt_size; to++) {
		char *p = out + (size_t)to * len;

		mt_fill(p, len, mt_seed(mt_rank, to, w->number, round));
		MPI_Isend(p, (int)len, MPI_BYTE, to, w->number, w->shared,
			  &req[to]);
		mt_sent(1, len);
	}
	for (int i = 0; i < mt_size; i++)
		take_one(w, in, round, w->number & 2);
	MPI_Waitall(mt_size, req, MPI_STATUSES_IGNORE);
}

/* One thread fences a round off: what it has sent may be in others' hands. */
static void probe_any(struct worker *w)
{
	char *in = malloc(BIG);
	char *out = malloc((size_t)mt_size * probe_len(w->number));

	mt_check(in && out, "no memory");
	for (long r = 0; r < mt_rounds(3); r++) {
		probe_round(w, in, out, r);
		pthread_barrier_wait(w->all);
		if (!w->number)
			MPI_Barrier(w->own);
		pthread_barrier_wait(w->all);
	}
	free(in);
	free(out);
}

/* ---- communicators ------------------------------------------------- */

static void dup_loop(struct worker *w)
{
	for (long r = 0; r < mt_rounds(rounds / 2); r++) {
		uint64_t one = (uint64_t)w->number, sum = 0;
		MPI_Comm comm;

		MPI_Comm_dup(w->own, &comm);
		exchange(w, comm, 1 % mt_size, r);
		MPI_Allreduce(&one, &sum, 1, MPI_UINT64_T, MPI_SUM, comm);
		mt_check(sum == one * (uint64_t)mt_size,
			 "thread %d: threads are mixed up", w->number);
		MPI_Comm_free(&comm);
	}
}

/* ---- all ----------------------------------------------------------- */

static void *work(void *arg)
{
	static void (*const parts[])(struct worker *) = {
		messages, blocking, probe_own, probe_any, dup_loop,
	};
	struct worker *w = arg;

	for (long i = 0; i < 5; i++) {
		if (part < 0 || part == i)
			parts[i](w);
		pthread_barrier_wait(w->all);
		/* Others may still send with this part's tags. */
		if (!w->number)
			MPI_Barrier(w->own);
		pthread_barrier_wait(w->all);
	}
	return NULL;
}

static void run_threads(void)
{
	struct worker w[MAX_THREADS];
	pthread_barrier_t all;
	MPI_Comm shared;

	MPI_Comm_dup(MPI_COMM_WORLD, &shared);
	pthread_barrier_init(&all, NULL, (unsigned int)nthreads);
	for (int i = 0; i < nthreads; i++) {
		w[i] = (struct worker){ .number = i,
					.shared = shared,
					.all = &all };
		MPI_Comm_dup(MPI_COMM_WORLD, &w[i].own);
	}
	for (int i = 0; i < nthreads; i++)
		mt_check(!pthread_create(&w[i].id, NULL, work, &w[i]),
			 "pthread_create");
	for (int i = 0; i < nthreads; i++)
		pthread_join(w[i].id, NULL);
	for (int i = 0; i < nthreads; i++)
		MPI_Comm_free(&w[i].own);
	MPI_Comm_free(&shared);
	pthread_barrier_destroy(&all);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, MPI_THREAD_MULTIPLE,
		"threads: several threads per rank use MPI at once", opts);
	mt_check(nthreads > 0 && nthreads <= MAX_THREADS && mt_size <= 256,
		 "1 to %d threads, at most 256 ranks", MAX_THREADS);
	run_threads();
	return mt_end("threads (case_P19)");
}
