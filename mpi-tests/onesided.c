/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One-sided communication over messages (osc pt2pt): created and allocated
 * windows; fence, post-start-complete-wait, locks, flush; put, get,
 * accumulate, fetch and compare operations. Every byte and every sum is
 * checked. One thread: osc pt2pt refuses MPI_THREAD_MULTIPLE.
 */
#include "common.h"

static long rounds = 5;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of the whole list" },
	{ 0 },
};

static const MPI_Comm world = MPI_COMM_WORLD;

/* A window with one block of @len bytes for every rank, and a copy's room. */
struct area {
	MPI_Win win;	/* of n * len bytes, unit 1 */
	char *mem;	/* this rank's part */
	char *out, *in; /* n * len bytes, private */
	size_t len;	/* bytes of a block */
	bool allocated; /* MPI_Win_allocate made mem */
	long round;	/* in the seeds */
};

static char *block(const struct area *a, char *buf, int rank)
{
	return buf + (size_t)rank * a->len;
}

static void area_open(struct area *a, size_t len, bool allocated, long round)
{
	MPI_Aint bytes = (MPI_Aint)len * mt_size;

	*a = (struct area){ .len = len,
			    .allocated = allocated,
			    .round = round };
	a->out = mt_alloc((size_t)bytes);
	a->in = mt_alloc((size_t)bytes);
	if (allocated) {
		MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, world, &a->mem,
				 &a->win);
		return;
	}
	a->mem = mt_alloc((size_t)bytes);
	MPI_Win_create(a->mem, bytes, 1, MPI_INFO_NULL, world, &a->win);
}

static void area_close(struct area *a)
{
	MPI_Win_free(&a->win);
	if (!a->allocated)
		mt_free(a->mem);
	mt_free(a->out);
	mt_free(a->in);
}

/* ---- one block to or from a rank ----------------------------------- */

/* Puts the block of @phase into the place this rank has at @to. */
static void put(struct area *a, int to, int phase)
{
	char *p = block(a, a->out, to);

	mt_fill(p, a->len, mt_seed(mt_rank, to, phase, a->round));
	MPI_Put(p, (int)a->len, MPI_BYTE, to, (MPI_Aint)a->len * mt_rank,
		(int)a->len, MPI_BYTE, a->win);
	if (to != mt_rank && a->len)
		mt_sent(1, a->len);
}

/* Gets what @owner has in its place in the part of @from. */
static void get(struct area *a, int from, int owner)
{
	MPI_Get(block(a, a->in, from), (int)a->len, MPI_BYTE, from,
		(MPI_Aint)a->len * owner, (int)a->len, MPI_BYTE, a->win);
	if (from != mt_rank && a->len)
		mt_sent(1, 0);
}

static void check_mem(struct area *a, int from, int phase)
{
	mt_verify(block(a, a->mem, from), a->len,
		  mt_seed(from, mt_rank, phase, a->round));
}

static void check_got(struct area *a, int from, int owner, int phase)
{
	mt_verify(block(a, a->in, from), a->len,
		  mt_seed(owner, from, phase, a->round));
}

/* ---- fence --------------------------------------------------------- */

static void fence(struct area *a)
{
	MPI_Win_fence(MPI_MODE_NOPRECEDE, a->win);
	for (int r = 0; r < mt_size; r++)
		put(a, r, 1);
	MPI_Win_fence(0, a->win);
	for (int r = 0; r < mt_size; r++)
		check_mem(a, r, 1);
	MPI_Win_fence(0, a->win);
	for (int r = 0; r < mt_size; r++)
		get(a, r, (mt_rank + r) % mt_size);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, a->win);
	for (int r = 0; r < mt_size; r++)
		check_got(a, r, (mt_rank + r) % mt_size, 1);
}

/* ---- post, start, complete, wait ----------------------------------- */

static MPI_Group neighbour(int rank)
{
	MPI_Group all, one;

	MPI_Comm_group(world, &all);
	MPI_Group_incl(all, 1, &rank, &one);
	MPI_Group_free(&all);
	return one;
}

/* Exposes to the left, puts to the right. */
static void pscw(struct area *a)
{
	int right = (mt_rank + 1) % mt_size, flag = 0;
	int left = (mt_rank + mt_size - 1) % mt_size;
	MPI_Group l = neighbour(left), r = neighbour(right);

	MPI_Win_post(l, 0, a->win);
	MPI_Win_start(r, 0, a->win);
	put(a, right, 2);
	MPI_Win_complete(a->win);
	while (a->round & 1 && !flag)
		MPI_Win_test(a->win, &flag);
	if (!flag)
		MPI_Win_wait(a->win);
	check_mem(a, left, 2);
	MPI_Group_free(&l);
	MPI_Group_free(&r);
	MPI_Barrier(world);
}

/* ---- locks --------------------------------------------------------- */

static void locks(struct area *a)
{
	for (int k = 0; k < mt_size; k++) {
		int to = (mt_rank + k) % mt_size;

		MPI_Win_lock(k & 1 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, to,
			     0, a->win);
		put(a, to, 3);
		MPI_Win_flush(to, a->win);
		get(a, to, mt_rank);
		MPI_Win_unlock(to, a->win);
		check_got(a, to, mt_rank, 3);
	}
	MPI_Barrier(world);
	MPI_Win_lock(MPI_LOCK_SHARED, mt_rank, 0, a->win);
	for (int r = 0; r < mt_size; r++)
		check_mem(a, r, 3);
	MPI_Win_unlock(mt_rank, a->win);
	MPI_Barrier(world);
}

static void lock_all(struct area *a)
{
	MPI_Request req[256];

	MPI_Win_lock_all(0, a->win);
	for (int r = 0; r < mt_size; r++) {
		put(a, r, 4);
		MPI_Win_flush_local(r, a->win);
	}
	MPI_Win_flush_all(a->win);
	for (int r = 0; r < mt_size; r++) {
		MPI_Rget(block(a, a->in, r), (int)a->len, MPI_BYTE, r,
			 (MPI_Aint)a->len * mt_rank, (int)a->len, MPI_BYTE,
			 a->win, &req[r]);
		mt_sent(r != mt_rank && a->len, 0);
	}
	MPI_Waitall(mt_size, req, MPI_STATUSES_IGNORE);
	MPI_Win_unlock_all(a->win);
	for (int r = 0; r < mt_size; r++)
		check_got(a, r, mt_rank, 4);
	MPI_Barrier(world);
}

static void blocks(size_t len, bool allocated, long round)
{
	struct area a;

	area_open(&a, len, allocated, round);
	fence(&a);
	pscw(&a);
	locks(&a);
	lock_all(&a);
	area_close(&a);
}

/* ---- numbers ------------------------------------------------------- */

enum { WORDS = 1000, ADDS = 10, TICKETS = 20 };

/* A window of 64-bit words, unit 8. */
struct numbers {
	MPI_Win win;  /* of WORDS words */
	int64_t *mem; /* this rank's part, zero at first */
};

static void numbers_open(struct numbers *n)
{
	n->mem = mt_alloc(WORDS * 8);
	memset(n->mem, 0, WORDS * 8);
	MPI_Win_create(n->mem, WORDS * 8, 8, MPI_INFO_NULL, world, &n->win);
	MPI_Barrier(world);
}

static void numbers_close(struct numbers *n)
{
	MPI_Win_free(&n->win);
	mt_free(n->mem);
}

/* Own memory, seen under a lock after everybody has finished. */
static void check_words(struct numbers *n, int64_t a, int64_t b)
{
	MPI_Barrier(world);
	MPI_Win_lock(MPI_LOCK_SHARED, mt_rank, 0, n->win);
	for (int i = 0; i < WORDS; i++)
		mt_check(n->mem[i] == a + b * i, "word %d is %ld, not %ld", i,
			 (long)n->mem[i], (long)(a + b * i));
	MPI_Win_unlock(mt_rank, n->win);
	MPI_Barrier(world);
}

/* All ranks add to all words of all ranks at once. */
static void accumulate(void)
{
	struct numbers n;
	int64_t add[WORDS];

	numbers_open(&n);
	for (int i = 0; i < WORDS; i++)
		add[i] = i + 1;
	MPI_Win_lock_all(0, n.win);
	for (int k = 0; k < ADDS; k++)
		for (int r = 0; r < mt_size; r++) {
			MPI_Accumulate(add, WORDS, MPI_INT64_T, r, 0, WORDS,
				       MPI_INT64_T, MPI_SUM, n.win);
			if (r != mt_rank)
				mt_sent(1, WORDS * 8);
		}
	MPI_Win_unlock_all(n.win);
	check_words(&n, (int64_t)ADDS * mt_size, (int64_t)ADDS * mt_size);
	numbers_close(&n);
}

/*
 * Each rank fetches and adds 1 to a counter of rank 0: all tickets differ,
 * those of a rank rise. They are ticked off in the words behind it.
 */
static void tickets(void)
{
	int64_t one = 1, got, last = -1;
	struct numbers n;

	numbers_open(&n);
	MPI_Win_lock_all(0, n.win);
	for (int i = 0; i < TICKETS; i++) {
		MPI_Fetch_and_op(&one, &got, MPI_INT64_T, 0, 0, MPI_SUM, n.win);
		MPI_Win_flush(0, n.win);
		mt_check(got > last && got < (int64_t)TICKETS * mt_size,
			 "ticket %ld after %ld", (long)got, (long)last);
		last = got;
		MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 1 + got, 1, MPI_INT64_T,
			       MPI_SUM, n.win);
		MPI_Win_flush(0, n.win);
		mt_sent(mt_rank ? 2 : 0, mt_rank ? 16 : 0);
	}
	MPI_Win_unlock_all(n.win);
	MPI_Barrier(world);
	for (int i = 1; !mt_rank && i <= TICKETS * mt_size; i++)
		mt_check(n.mem[i] == 1, "ticket %d given %ld times", i - 1,
			 (long)n.mem[i]);
	MPI_Barrier(world);
	numbers_close(&n);
}

/* A counter of the last rank is raised by compare and swap only. */
static void compare_and_swap(void)
{
	int at = mt_size - 1;
	struct numbers n;

	numbers_open(&n);
	MPI_Win_lock_all(0, n.win);
	for (int i = 0; i < ADDS; i++) {
		int64_t seen = 0, want, got;

		for (;;) {
			want = seen + 1;
			MPI_Compare_and_swap(&want, &seen, &got, MPI_INT64_T,
					     at, 5, n.win);
			MPI_Win_flush(at, n.win);
			mt_sent(mt_rank != at, mt_rank != at ? 8 : 0);
			if (got == seen)
				break;
			seen = got;
		}
	}
	MPI_Win_unlock_all(n.win);
	MPI_Barrier(world);
	mt_check(mt_rank != at || n.mem[5] == (int64_t)ADDS * mt_size,
		 "%ld swaps instead of %d", (long)n.mem[5], ADDS * mt_size);
	MPI_Barrier(world);
	numbers_close(&n);
}

/* Replaces the neighbour's words and fetches the old ones; then only reads. */
static void get_accumulate(void)
{
	int right = (mt_rank + 1) % mt_size;
	int64_t set[WORDS], old[WORDS];
	struct numbers n;

	numbers_open(&n);
	for (int k = 0; k < 3; k++) {
		for (int i = 0; i < WORDS; i++)
			set[i] = mt_rank + 1 + k * i;
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, n.win);
		MPI_Get_accumulate(set, WORDS, MPI_INT64_T, old, WORDS,
				   MPI_INT64_T, right, 0, WORDS, MPI_INT64_T,
				   k < 2 ? MPI_REPLACE : MPI_NO_OP, n.win);
		MPI_Win_unlock(right, n.win);
		mt_sent(right != mt_rank, 0);
		for (int i = 0; i < WORDS; i++)
			mt_check(old[i] == (k ? mt_rank + 1 + (k - 1) * i : 0),
				 "fetched word %d is %ld", i, (long)old[i]);
	}
	check_words(&n, (mt_rank + mt_size - 1) % mt_size + 1, 1);
	numbers_close(&n);
}

/* Every second word of the neighbour by a vector type at the target. */
static void strided(void)
{
	int right = (mt_rank + 1) % mt_size;
	int left = (mt_rank + mt_size - 1) % mt_size;
	int64_t put[WORDS / 2];
	struct numbers n;
	MPI_Datatype t;

	numbers_open(&n);
	MPI_Type_vector(WORDS / 2, 1, 2, MPI_INT64_T, &t);
	MPI_Type_commit(&t);
	for (int i = 0; i < WORDS / 2; i++)
		put[i] = mt_rank * 10000 + i;
	MPI_Win_fence(0, n.win);
	MPI_Put(put, WORDS / 2, MPI_INT64_T, right, 1, 1, t, n.win);
	MPI_Win_fence(0, n.win);
	if (right != mt_rank)
		mt_sent(1, WORDS / 2 * 8);
	for (int i = 0; i < WORDS; i++)
		mt_check(n.mem[i] == (i & 1 ? left * 10000 + i / 2 : 0),
			 "word %d is %ld", i, (long)n.mem[i]);
	MPI_Type_free(&t);
	numbers_close(&n);
}

/* Windows that hold nothing, on all ranks and on odd ones. */
static void empty(void)
{
	char *mem = mt_rank & 1 ? NULL : mt_alloc(8);
	MPI_Win win;

	MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, world, &win);
	MPI_Win_fence(0, win);
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
	MPI_Win_create(mem, mem ? 8 : 0, 1, MPI_INFO_NULL, world, &win);
	MPI_Win_fence(0, win);
	if (mt_rank == 1) {
		MPI_Put("shrimps", 8, MPI_BYTE, 0, 0, 8, MPI_BYTE, win);
		mt_sent(1, 8);
	}
	MPI_Win_fence(0, win);
	mt_check(mt_rank || mt_size == 1 || !strcmp(mem, "shrimps"),
		 "put beside an empty window");
	MPI_Win_free(&win);
	mt_free(mem);
}

static void one_round(long round)
{
	static const size_t list[] = { 1, 8, 41, 1000, 4097, 70001 };

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		blocks(list[i], false, round);
		blocks(list[i], true, round);
	}
	accumulate();
	tickets();
	compare_and_swap();
	get_accumulate();
	strided();
	empty();
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"onesided: windows over messages, every byte checked", opts);
	mt_check(mt_size < WORDS / TICKETS, "too many ranks");
	for (long r = 0; r < mt_rounds(rounds); r++)
		one_round(r);
	return mt_end("onesided");
}
