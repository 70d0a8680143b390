/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One-sided communication: put and get in every kind of epoch, over created,
 * dynamic and allocated windows, 1 B to 4 MiB, contiguous and derived types,
 * with and without requests. Every byte is checked. rma_ops.c does the
 * operations that compute.
 */
#include "win.h"

static long rounds = 2;
static long max_len = 4 << 20;
static long flavor = -1;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of the whole list" },
	{ "max", &max_len, "longest block in bytes" },
	{ "flavor", &flavor, "0 created, 1 dynamic, 2 allocated, -1 all" },
	{ 0 },
};

static const MPI_Comm world = MPI_COMM_WORLD;

enum { BIG = 100000, MAX_PARTNERS = 64 };

/*
 * A window with a block for each of @n partners. Partner k of rank r is
 * r + k; at the target, block k belongs to the origin k ranks before it.
 */
struct area {
	struct mt_win w;
	char *out, *in; /* n blocks each, private */
	size_t len;	/* bytes of a block */
	int n;		/* partners, this rank itself is the first */
	long round;	/* in the seeds */
};

static int partner(int k)
{
	return (mt_rank + k) % mt_size;
}

static int origin(int k)
{
	return (mt_rank + mt_size - k) % mt_size;
}

static uint64_t seed_of(const struct area *a, int from, int to, int phase)
{
	return mt_seed(from, to, phase + 100 * (long)a->len, a->round);
}

static void area_open(struct area *a, enum mt_flavor f, size_t len, long round)
{
	*a = (struct area){ .len = len, .round = round };
	a->n = len > BIG && mt_size > 2 ? 2 : mt_size;
	if (a->n > MAX_PARTNERS)
		a->n = MAX_PARTNERS;
	a->out = mt_alloc((size_t)a->n * len);
	a->in = mt_alloc((size_t)a->n * len);
	mt_win_open(&a->w, world, f, (size_t)a->n * len);
}

static void area_close(struct area *a)
{
	mt_win_close(&a->w);
	mt_free(a->out);
	mt_free(a->in);
}

/* ---- one block ----------------------------------------------------- */

static char *out_fill(struct area *a, int k, int phase)
{
	char *p = a->out + (size_t)k * a->len;

	mt_fill(p, a->len, seed_of(a, mt_rank, partner(k), phase));
	return p;
}

static void put(struct area *a, int k, int phase)
{
	mt_put(&a->w, out_fill(a, k, phase), a->len, partner(k),
	       (size_t)k * a->len);
}

static void get(struct area *a, int k)
{
	char *p = a->in + (size_t)k * a->len;

	memset(p, 0xee, a->len);
	mt_get(&a->w, p, a->len, partner(k), (size_t)k * a->len);
}

static void check_got(struct area *a, int k, int phase)
{
	mt_verify(a->in + (size_t)k * a->len, a->len,
		  seed_of(a, mt_rank, partner(k), phase));
}

static void check_mem(struct area *a, int k, int phase)
{
	mt_verify(a->w.mem + (size_t)k * a->len, a->len,
		  seed_of(a, origin(k), mt_rank, phase));
}

static void check_all_mem(struct area *a, int phase)
{
	mt_win_settle(&a->w, world);
	for (int k = 0; k < a->n; k++)
		check_mem(a, k, phase);
	MPI_Barrier(world);
}

/* ---- fence --------------------------------------------------------- */

static void fence(struct area *a)
{
	MPI_Win_fence(MPI_MODE_NOPRECEDE, a->w.win);
	for (int k = 0; k < a->n; k++)
		put(a, k, 1);
	MPI_Win_fence(0, a->w.win);
	for (int k = 0; k < a->n; k++)
		check_mem(a, k, 1);
	for (int k = 0; k < a->n; k++)
		get(a, k);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, a->w.win);
	for (int k = 0; k < a->n; k++)
		check_got(a, k, 1);
}

/* ---- post, start, complete, wait ----------------------------------- */

/* All partners (step 1), or all origins (step -1). */
static MPI_Group group(const struct area *a, int step)
{
	int list[MAX_PARTNERS];
	MPI_Group all, some;

	for (int k = 0; k < a->n; k++)
		list[k] = step > 0 ? partner(k) : origin(k);
	MPI_Comm_group(world, &all);
	MPI_Group_incl(all, a->n, list, &some);
	MPI_Group_free(&all);
	return some;
}

static void expose_end(struct area *a, bool test)
{
	int flag = 0;

	while (test && !flag)
		MPI_Win_test(a->w.win, &flag);
	if (!flag)
		MPI_Win_wait(a->w.win);
}

static void pscw(struct area *a)
{
	MPI_Group to = group(a, 1), from = group(a, -1);

	for (int step = 0; step < 2; step++) {
		MPI_Win_post(from, 0, a->w.win);
		MPI_Win_start(to, 0, a->w.win);
		for (int k = 0; k < a->n; k++) {
			if (step)
				get(a, k);
			else
				put(a, k, 2);
		}
		MPI_Win_complete(a->w.win);
		expose_end(a, a->round & 1);
		for (int k = 0; k < a->n; k++) {
			if (step)
				check_got(a, k, 2);
			else
				check_mem(a, k, 2);
		}
	}
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	MPI_Barrier(world);
}

/* ---- locks --------------------------------------------------------- */

static void lock_each(struct area *a, int type, int phase)
{
	for (int k = 0; k < a->n; k++) {
		MPI_Win_lock(type, partner(k), 0, a->w.win);
		put(a, k, phase);
		MPI_Win_flush(partner(k), a->w.win);
		get(a, k);
		MPI_Win_unlock(partner(k), a->w.win);
		check_got(a, k, phase);
	}
	check_all_mem(a, phase);
}

static void lock_shared(struct area *a)
{
	lock_each(a, MPI_LOCK_SHARED, 3);
}

static void lock_exclusive(struct area *a)
{
	lock_each(a, MPI_LOCK_EXCLUSIVE, 4);
}

/* Shared locks on all partners at once. */
static void lock_several(struct area *a)
{
	for (int k = 0; k < a->n; k++)
		MPI_Win_lock(MPI_LOCK_SHARED, partner(k), 0, a->w.win);
	for (int k = 0; k < a->n; k++)
		put(a, k, 5);
	for (int k = a->n; k-- > 0;)
		MPI_Win_unlock(partner(k), a->w.win);
	check_all_mem(a, 5);
}

static void lock_all(struct area *a)
{
	MPI_Win_lock_all(0, a->w.win);
	for (int k = 0; k < a->n; k++) {
		put(a, k, 6);
		MPI_Win_flush_local(partner(k), a->w.win);
		/* It is ours again: what left must not change. */
		memset(a->out + (size_t)k * a->len, 0x11, a->len);
	}
	MPI_Win_flush_all(a->w.win);
	for (int k = 0; k < a->n; k++)
		get(a, k);
	MPI_Win_flush_local_all(a->w.win);
	for (int k = 0; k < a->n; k++)
		check_got(a, k, 6);
	MPI_Win_unlock_all(a->w.win);
	check_all_mem(a, 6);
}

/* ---- requests ------------------------------------------------------ */

static void request(struct area *a, int k, bool is_put, MPI_Request *req)
{
	size_t at = (size_t)k * a->len;
	MPI_Aint disp = mt_win_at(&a->w, partner(k), at);
	int len = (int)a->len;

	mt_win_told(&a->w, partner(k), 1, a->len);
	if (is_put)
		MPI_Rput(out_fill(a, k, 7), len, MPI_BYTE, partner(k), disp,
			 len, MPI_BYTE, a->w.win, req);
	else
		MPI_Rget(a->in + at, len, MPI_BYTE, partner(k), disp, len,
			 MPI_BYTE, a->w.win, req);
}

static void requests(struct area *a)
{
	MPI_Request req[MAX_PARTNERS];

	memset(a->in, 0xee, (size_t)a->n * a->len);
	MPI_Win_lock_all(0, a->w.win);
	for (int k = 0; k < a->n; k++)
		request(a, k, true, &req[k]);
	MPI_Waitall(a->n, req, MPI_STATUSES_IGNORE);
	memset(a->out, 0x22, (size_t)a->n * a->len);
	MPI_Win_flush_all(a->w.win);
	for (int k = 0; k < a->n; k++)
		request(a, k, false, &req[k]);
	for (int left = a->n; left;) {
		int at;

		MPI_Waitany(a->n, req, &at, MPI_STATUS_IGNORE);
		check_got(a, at, 7);
		left--;
	}
	MPI_Win_unlock_all(a->w.win);
	check_all_mem(a, 7);
}

/* ---- derived datatypes --------------------------------------------- */

/* Every second run of @run bytes; @count of them, in one block. */
static MPI_Datatype stripes(int count, int run)
{
	MPI_Datatype t;

	MPI_Type_vector(count, run, 2 * run, MPI_BYTE, &t);
	MPI_Type_commit(&t);
	return t;
}

/* @count runs of @run bytes, the i-th at 2 i + (i odd) runs. */
static MPI_Datatype jagged(int count, int run)
{
	int *at = mt_alloc((size_t)count * sizeof(*at));
	MPI_Datatype t;

	for (int i = 0; i < count; i++)
		at[i] = (2 * i + (i & 1 && i + 1 < count)) * run;
	MPI_Type_create_indexed_block(count, run, at, MPI_BYTE, &t);
	MPI_Type_commit(&t);
	mt_free(at);
	return t;
}

/* The bytes of @t in @mem in their order are those of the pattern. */
static void check_packed(const char *mem, MPI_Datatype t, size_t bytes,
			 uint64_t seed)
{
	char *flat = mt_alloc(bytes);
	int pos = 0;

	MPI_Pack(mem, 1, t, flat, (int)bytes, &pos, MPI_COMM_SELF);
	mt_verify(flat, bytes, seed);
	mt_free(flat);
}

static void type_put(struct mt_win *w, MPI_Datatype t, size_t bytes, long tag)
{
	char *flat = mt_alloc(bytes);
	int to = partner(1), from = origin(1);

	mt_fill(flat, bytes, mt_seed(mt_rank, to, tag, 0));
	MPI_Win_fence(0, w->win);
	MPI_Put(flat, (int)bytes, MPI_BYTE, to, mt_win_at(w, to, 0), 1, t,
		w->win);
	mt_win_told(w, to, 1, bytes);
	MPI_Win_fence(0, w->win);
	check_packed(w->mem, t, bytes, mt_seed(from, mt_rank, tag, 0));
	MPI_Barrier(world);
	mt_free(flat);
}

/* The same type on both sides. */
static void type_get(struct mt_win *w, MPI_Datatype t, size_t bytes, long tag)
{
	char *in = mt_alloc(w->len);
	int from = partner(1);

	memset(in, 0x77, w->len);
	MPI_Win_lock(MPI_LOCK_SHARED, from, 0, w->win);
	MPI_Get(in, 1, t, from, mt_win_at(w, from, 0), 1, t, w->win);
	MPI_Win_unlock(from, w->win);
	mt_win_told(w, from, 1, bytes);
	check_packed(in, t, bytes, mt_seed(mt_rank, from, tag, 0));
	MPI_Barrier(world);
	mt_free(in);
}

/* What no run of a type covers must stay zero. */
static void check_gaps(const struct mt_win *w, int count, int run)
{
	for (int i = 0; i < count; i++)
		for (int b = 0; b < run; b++)
			mt_check(!w->mem[(2 * i + 1) * run + b],
				 "gap %d was written", i);
}

static void types(enum mt_flavor f, int count, int run)
{
	size_t bytes = (size_t)count * (size_t)run;
	MPI_Datatype list[2] = { stripes(count, run), jagged(count, run) };

	for (int i = 0; i < 2; i++) {
		struct mt_win w;

		mt_win_open(&w, world, f, 2 * bytes);
		type_put(&w, list[i], bytes, 8000 + run);
		type_get(&w, list[i], bytes, 8000 + run);
		if (!i)
			check_gaps(&w, count, run);
		mt_win_close(&w);
		MPI_Type_free(&list[i]);
	}
}

/* ---- attach and detach --------------------------------------------- */

/* Several pieces of memory in one dynamic window, that come and go. */
static void pieces(void)
{
	enum { PIECES = 5, LEN = 5000 };
	MPI_Aint mine[PIECES], theirs[PIECES];
	int to = partner(1), from = origin(1);
	char *mem[PIECES], *out = mt_alloc(LEN);
	MPI_Win win;

	MPI_Win_create_dynamic(MPI_INFO_NULL, world, &win);
	for (int i = 0; i < PIECES; i++) {
		mem[i] = mt_alloc(LEN);
		MPI_Win_attach(win, mem[i], LEN);
		MPI_Get_address(mem[i], &mine[i]);
		MPI_Sendrecv(&mine[i], 1, MPI_AINT, from, i, &theirs[i], 1,
			     MPI_AINT, to, i, world, MPI_STATUS_IGNORE);
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
		mt_fill(out, LEN, mt_seed(mt_rank, to, 9, i));
		MPI_Put(out, LEN, MPI_BYTE, to, theirs[i], LEN, MPI_BYTE, win);
		MPI_Win_unlock(to, win);
		mt_device(to != mt_rank, to != mt_rank ? LEN : 0);
		MPI_Barrier(world);
		mt_verify(mem[i], LEN, mt_seed(from, mt_rank, 9, i));
		if (i & 1) {
			MPI_Win_detach(win, mem[i - 1]);
			mt_free(mem[i - 1]);
		}
	}
	for (int i = 1; i < PIECES + 1; i += 2) {
		int k = i < PIECES ? i : PIECES - 1;

		MPI_Win_detach(win, mem[k]);
		mt_free(mem[k]);
	}
	MPI_Win_free(&win);
	mt_free(out);
}

/* ---- all ----------------------------------------------------------- */

static void blocks(enum mt_flavor f, size_t len, long round)
{
	static void (*const epochs[])(struct area *) = {
		fence,	      pscw,	lock_shared, lock_exclusive,
		lock_several, lock_all, requests,
	};
	struct area a;

	area_open(&a, f, len, round);
	for (size_t i = 0; i < sizeof(epochs) / sizeof(*epochs); i++)
		epochs[i](&a);
	area_close(&a);
}

static void one_round(enum mt_flavor f, long round)
{
	static const size_t list[] = { 1,      3,     8,       63,
				       64,     1000,  4096,    8191,
				       65536,  70001, 1 << 20, (1 << 20) + 1,
				       4 << 20 };

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		if (list[i] <= (size_t)max_len)
			blocks(f, list[i], round);
	types(f, 300, 8);
	types(f, 50, 1);
	types(f, 20, 5000);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"rma_sync: put and get in every kind of epoch", opts);
	for (long r = 0; r < mt_rounds(rounds); r++) {
		for (int f = 0; f < MT_FLAVORS; f++)
			if (flavor < 0 || flavor == f)
				one_round((enum mt_flavor)f, r);
		pieces();
	}
	return mt_end("rma_sync");
}
