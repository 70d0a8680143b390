/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One-sided operations that compute: accumulate, get_accumulate,
 * fetch_and_op, compare_and_swap, with and without requests, over created,
 * dynamic and allocated windows. All sums are exact; a mutex made of
 * compare_and_swap protects what no atomic operation does.
 */
#include "win.h"

static long rounds = 2;
static long flavor = -1;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of the whole list" },
	{ "flavor", &flavor, "0 created, 1 dynamic, 2 allocated, -1 all" },
	{ 0 },
};

static const MPI_Comm world = MPI_COMM_WORLD;

enum { WORDS = 1000, ADDS = 10 };

static int64_t *words(const struct mt_win *w)
{
	return (int64_t *)w->mem;
}

static void check_words(struct mt_win *w, int64_t first, int64_t step)
{
	mt_win_settle(w, world);
	for (int i = 0; i < WORDS; i++)
		mt_check(words(w)[i] == first + step * i,
			 "%s window: word %d is %ld, not %ld",
			 mt_flavor_name(w->flavor), i, (long)words(w)[i],
			 (long)(first + step * i));
	MPI_Barrier(world);
}

/* ---- accumulate ---------------------------------------------------- */

/* All ranks add to all words of all ranks at once. */
static void accumulate(enum mt_flavor f)
{
	int64_t *add = mt_alloc(WORDS * 8);
	struct mt_win w;

	mt_win_open(&w, world, f, WORDS * 8);
	for (int i = 0; i < WORDS; i++)
		add[i] = i + 1;
	MPI_Win_lock_all(0, w.win);
	for (int k = 0; k < ADDS * mt_size; k++) {
		int to = (mt_rank + k) % mt_size;

		MPI_Accumulate(add, WORDS, MPI_INT64_T, to,
			       mt_win_at(&w, to, 0), WORDS, MPI_INT64_T,
			       MPI_SUM, w.win);
		mt_win_told(&w, to, 1, WORDS * 8);
	}
	MPI_Win_unlock_all(w.win);
	check_words(&w, (int64_t)ADDS * mt_size, (int64_t)ADDS * mt_size);
	mt_win_close(&w);
	mt_free(add);
}

/* The same by requests, and what was there is fetched: sums only rise. */
static void accumulate_requests(enum mt_flavor f)
{
	int64_t add[8] = { 1, 1, 1, 1, 1, 1, 1, 1 }, old[8], last = -1;
	int to = (mt_rank + 1) % mt_size;
	MPI_Request req;
	struct mt_win w;

	mt_win_open(&w, world, f, sizeof(add));
	MPI_Win_lock_all(0, w.win);
	for (int k = 0; k < ADDS; k++) {
		MPI_Raccumulate(add, 8, MPI_INT64_T, to, mt_win_at(&w, to, 0),
				8, MPI_INT64_T, MPI_SUM, w.win, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		MPI_Rget_accumulate(add, 8, MPI_INT64_T, old, 8, MPI_INT64_T,
				    to, mt_win_at(&w, to, 0), 8, MPI_INT64_T,
				    MPI_SUM, w.win, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		mt_win_told(&w, to, 2, 2 * sizeof(add));
		for (int i = 1; i < 8; i++)
			mt_check(old[i] == old[0], "sums %ld and %ld",
				 (long)old[0], (long)old[i]);
		mt_check(old[0] > last && old[0] == 2 * k + 1,
			 "sum %ld after %ld", (long)old[0], (long)last);
		last = old[0];
	}
	MPI_Win_unlock_all(w.win);
	mt_win_settle(&w, world);
	mt_check(words(&w)[7] == 2 * ADDS, "sum %ld", (long)words(&w)[7]);
	mt_win_close(&w);
}

/* Replaces the neighbour's words and fetches the old ones; then only reads. */
static void get_accumulate(enum mt_flavor f)
{
	int to = (mt_rank + 1) % mt_size;
	int64_t *set = mt_alloc(WORDS * 8), *old = mt_alloc(WORDS * 8);
	struct mt_win w;

	mt_win_open(&w, world, f, WORDS * 8);
	for (int k = 0; k < 3; k++) {
		for (int i = 0; i < WORDS; i++)
			set[i] = mt_rank + 1 + k * i;
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, w.win);
		MPI_Get_accumulate(set, WORDS, MPI_INT64_T, old, WORDS,
				   MPI_INT64_T, to, mt_win_at(&w, to, 0), WORDS,
				   MPI_INT64_T, k < 2 ? MPI_REPLACE : MPI_NO_OP,
				   w.win);
		MPI_Win_unlock(to, w.win);
		mt_win_told(&w, to, 1, WORDS * 8);
		for (int i = 0; i < WORDS; i++)
			mt_check(old[i] == (k ? mt_rank + 1 + (k - 1) * i : 0),
				 "fetched word %d is %ld", i, (long)old[i]);
	}
	check_words(&w, (mt_rank + mt_size - 1) % mt_size + 1, 1);
	mt_win_close(&w);
	mt_free(set);
	mt_free(old);
}

/* Adds to every second word, by a vector type at the target. */
static void strided(enum mt_flavor f)
{
	int64_t *add = mt_alloc(WORDS / 2 * 8);
	MPI_Datatype t;
	struct mt_win w;

	mt_win_open(&w, world, f, WORDS * 8);
	MPI_Type_vector(WORDS / 2, 1, 2, MPI_INT64_T, &t);
	MPI_Type_commit(&t);
	for (int i = 0; i < WORDS / 2; i++)
		add[i] = i;
	MPI_Win_fence(0, w.win);
	for (int k = 0; k < mt_size; k++) {
		int to = (mt_rank + k) % mt_size;

		MPI_Accumulate(add, WORDS / 2, MPI_INT64_T, to,
			       mt_win_at(&w, to, 8), 1, t, MPI_SUM, w.win);
		mt_win_told(&w, to, 1, WORDS / 2 * 8);
	}
	MPI_Win_fence(0, w.win);
	for (int i = 0; i < WORDS; i++)
		mt_check(words(&w)[i] == (i & 1 ? i / 2 * mt_size : 0),
			 "word %d is %ld", i, (long)words(&w)[i]);
	MPI_Type_free(&t);
	MPI_Barrier(world);
	mt_win_close(&w);
	mt_free(add);
}

/* ---- one word ------------------------------------------------------ */

/*
 * Each rank fetches and adds 1 to a counter of each rank: all tickets differ,
 * those of a rank rise, the counter ends at the exact total.
 */
static void tickets(enum mt_flavor f)
{
	long n = mt_rounds(30);
	struct mt_win w;

	mt_win_open(&w, world, f, (size_t)(1 + n * mt_size) * 8);
	MPI_Win_lock_all(0, w.win);
	for (int at = 0; at < mt_size; at++) {
		int64_t last = -1, got;

		for (long i = 0; i < n; i++) {
			got = mt_fetch_add(&w, 1, at, 0);
			mt_check(got > last && got < n * mt_size,
				 "ticket %ld after %ld", (long)got, (long)last);
			last = got;
			got = mt_fetch_add(&w, 1, at, 8 + 8 * (size_t)got);
			mt_check(!got, "ticket %ld given twice", (long)last);
		}
	}
	MPI_Win_unlock_all(w.win);
	mt_win_settle(&w, world);
	mt_check(words(&w)[0] == n * mt_size,
		 "the counter ends at %ld, not %ld", (long)words(&w)[0],
		 n * mt_size);
	for (long i = 1; i <= n * mt_size; i++)
		mt_check(words(&w)[i] == 1, "ticket %ld given %ld times", i - 1,
			 (long)words(&w)[i]);
	MPI_Barrier(world);
	mt_win_close(&w);
}

/*
 * A counter of the last rank is raised by compare and swap of the others.
 * osc rdma of Open MPI 4.1 crashes when a rank swaps in its own memory, or in
 * what MPI_Win_allocate shares: it calls the btl, for which there is neither
 * an endpoint nor a registration.
 */
static void compare_and_swap(enum mt_flavor f)
{
	int at = mt_size - 1;
	struct mt_win w;

	if (f == MT_ALLOCATE)
		return;
	mt_win_open(&w, world, f, 64);
	MPI_Win_lock_all(0, w.win);
	for (int i = 0; i < ADDS && mt_rank != at; i++) {
		int64_t seen = 0, got;

		while ((got = mt_swap_if(&w, seen, seen + 1, at, 40)) != seen)
			seen = got;
	}
	MPI_Win_unlock_all(w.win);
	mt_win_settle(&w, world);
	mt_check(mt_rank != at || words(&w)[5] == (int64_t)ADDS * at,
		 "%ld swaps instead of %d", (long)words(&w)[5], ADDS * at);
	MPI_Barrier(world);
	mt_win_close(&w);
}

/* A word of @type is changed by all ranks at once. */
struct word_case {
	MPI_Datatype type;
	int size;
	MPI_Op op;
	int64_t operand; /* of every rank, converted to the type */
	int64_t result;	 /* for n ranks, times ADDS where it is a sum */
};

static void word_set(const struct word_case *c, void *p, int64_t v)
{
	double d = (double)v;
	float s = (float)v;

	if (c->type == MPI_DOUBLE)
		memcpy(p, &d, sizeof(d));
	else if (c->type == MPI_FLOAT)
		memcpy(p, &s, sizeof(s));
	else /* little endian */
		memcpy(p, &v, (size_t)c->size);
}

static void word_case(enum mt_flavor f, const struct word_case *c)
{
	char in[8] = { 0 }, out[8] = { 0 }, want[8] = { 0 };
	struct mt_win w;

	word_set(c, in, c->operand);
	word_set(c, want, c->result);
	mt_win_open(&w, world, f, 64);
	MPI_Win_lock_all(0, w.win);
	for (int i = 0; i < ADDS; i++) {
		MPI_Fetch_and_op(in, out, c->type, 0, mt_win_at(&w, 0, 24),
				 c->op, w.win);
		MPI_Win_flush_local(0, w.win);
		mt_win_told(&w, 0, 1, (uint64_t)c->size);
	}
	MPI_Win_unlock_all(w.win);
	mt_win_settle(&w, world);
	mt_check(mt_rank || !memcmp(w.mem + 24, want, 8),
		 "word of %d bytes, operand %ld: first byte %02x", c->size,
		 (long)c->operand, (unsigned char)w.mem[24]);
	MPI_Barrier(world);
	mt_win_close(&w);
}

/*
 * Does btl ofi of Open MPI 4.1 know @c? It ends the job at an operation on
 * integers of 4 or 8 bytes that it does not ("Unknown or unsupported atomic
 * op"), and osc rdma hands it those on memory that is not shared.
 */
static bool word_case_known(enum mt_flavor f, const struct word_case *c)
{
	return f == MT_ALLOCATE || c->size < 4 || c->op == MPI_SUM ||
	       c->op == MPI_REPLACE || c->op == MPI_NO_OP;
}

/* Types and operations; what lies behind the word stays zero. */
static void kinds_of_words(enum mt_flavor f)
{
	int64_t sum = (int64_t)ADDS * mt_size;
	const struct word_case list[] = {
		{ MPI_INT64_T, 8, MPI_SUM, -3, -3 * sum },
		{ MPI_INT32_T, 4, MPI_SUM, 7, 7 * sum },
		{ MPI_INT16_T, 2, MPI_SUM, 2, 2 * sum },
		{ MPI_UINT8_T, 1, MPI_BOR, 0x41, 0x41 },
		{ MPI_DOUBLE, 8, MPI_SUM, 5, 5 * sum },
		{ MPI_FLOAT, 4, MPI_SUM, 1, sum },
		{ MPI_UINT64_T, 8, MPI_BOR, 0x1234, 0x1234 },
		{ MPI_UINT64_T, 8, MPI_BXOR, 0x777, 0 },
		{ MPI_INT32_T, 4, MPI_MAX, 99, 99 },
		{ MPI_INT64_T, 8, MPI_MIN, -8, -8 },
		{ MPI_INT64_T, 8, MPI_REPLACE, 1234567, 1234567 },
		{ MPI_INT64_T, 8, MPI_NO_OP, 5, 0 },
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		if (word_case_known(f, &list[i]))
			word_case(f, &list[i]);
}

/* ---- a mutex ------------------------------------------------------- */

/*
 * Word 0 of rank 0 is 0 or 1 + owner. Behind the mutex, a block of the last
 * rank is read, checked and written by put and get, which would tear. Rank 0
 * takes no turn: see compare_and_swap().
 */
static void locked_turn(struct mt_win *w, char *block, long turns)
{
	enum { LEN = 4000 };
	int at = mt_size - 1;
	int64_t turn;

	while (mt_swap_if(w, 0, 1 + mt_rank, 0, 0))
		;
	mt_get(w, &turn, 8, at, 64);
	mt_get(w, block, LEN, at, 72);
	MPI_Win_flush(at, w->win);
	mt_check(turn >= 0 && turn < turns, "turn %ld", (long)turn);
	if (turn)
		mt_verify(block, LEN, mt_seed(0, 0, 77, turn));
	turn++;
	mt_fill(block, LEN, mt_seed(0, 0, 77, turn));
	mt_put(w, &turn, 8, at, 64);
	mt_put(w, block, LEN, at, 72);
	MPI_Win_flush(at, w->win);
	turn = mt_swap_if(w, 1 + mt_rank, 0, 0, 0);
	mt_check(turn == 1 + mt_rank, "the mutex was of %ld", (long)turn - 1);
}

static void mutex(enum mt_flavor f)
{
	long n = mt_rounds(20), total = n * (mt_size - 1);
	char *block = mt_alloc(4000);
	struct mt_win w;

	if (f == MT_ALLOCATE) {
		mt_free(block);
		return;
	}
	mt_win_open(&w, world, f, 72 + 4000);
	MPI_Win_lock_all(0, w.win);
	for (long i = 0; i < n && mt_rank; i++)
		locked_turn(&w, block, total);
	MPI_Win_unlock_all(w.win);
	mt_win_settle(&w, world);
	if (mt_rank == mt_size - 1)
		mt_check(words(&w)[8] == total, "%ld turns, not %ld",
			 (long)words(&w)[8], total);
	MPI_Barrier(world);
	mt_win_close(&w);
	mt_free(block);
}

/* ---- all ----------------------------------------------------------- */

int main(int argc, char **argv)
{
	static void (*const parts[])(enum mt_flavor) = {
		accumulate, accumulate_requests, get_accumulate, strided,
		tickets,    compare_and_swap,	 kinds_of_words, mutex,
	};

	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"rma_ops: one-sided operations that compute", opts);
	for (long r = 0; r < mt_rounds(rounds); r++)
		for (int f = 0; f < MT_FLAVORS; f++)
			for (size_t i = 0; i < sizeof(parts) / sizeof(*parts);
			     i++)
				if (flavor < 0 || flavor == f)
					parts[i]((enum mt_flavor)f);
	return mt_end("rma_ops");
}
