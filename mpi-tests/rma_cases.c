/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Public cases of one-sided communication (doc/cases.md), each by its number
 * or all of them. P12 is rma_busy, P7 and P13 are parts of rma_threads.
 */
#include "win.h"

static long p3, p6, p9, p11, m11, t20, t24;

static const struct mt_opt opts[] = {
	{ "P3", &p3, "1: accumulate by all ranks at once" },
	{ "P6", &p6, "1: flush while the target does other work" },
	{ "P9", &p9, "1: create, fence, fence, free" },
	{ "P11", &p11, "1: unaligned gets" },
	{ "M11", &m11, "1: windows without memory on some ranks" },
	{ "T20", &t20, "1: all put to all, exact totals" },
	{ "T24", &t24, "1: operations to the rank itself" },
	{ 0 },
};

static const MPI_Comm world = MPI_COMM_WORLD;

/* ---- P3 ------------------------------------------------------------ */

/* Each rank adds eight ones to every other; all elements are exact. */
static void concurrent_accumulate(enum mt_flavor f)
{
	double ones[8] = { 1, 1, 1, 1, 1, 1, 1, 1 }, *mem;
	long n = mt_rounds(100);
	struct mt_win w;

	mt_win_open(&w, world, f, sizeof(ones));
	MPI_Win_lock_all(0, w.win);
	for (long k = 0; k < n; k++) {
		for (int s = 1; s < mt_size; s++) {
			int to = (mt_rank + s) % mt_size;

			MPI_Accumulate(ones, 8, MPI_DOUBLE, to,
				       mt_win_at(&w, to, 0), 8, MPI_DOUBLE,
				       MPI_SUM, w.win);
			mt_win_told(&w, to, 1, sizeof(ones));
		}
		MPI_Win_flush_all(w.win);
	}
	MPI_Win_unlock_all(w.win);
	mt_win_settle(&w, world);
	mem = (double *)w.mem;
	for (int i = 0; i < 8; i++)
		mt_check(mem[i] == (double)(n * (mt_size - 1)),
			 "element %d is %f, not %ld", i, mem[i],
			 n * (mt_size - 1));
	MPI_Barrier(world);
	mt_win_close(&w);
}

/* ---- P6 ------------------------------------------------------------ */

/* Every target is in a loop of its own meanwhile: messages and arithmetic. */
static void other_work(long round)
{
	int right = (mt_rank + 1) % mt_size;
	int left = (mt_rank + mt_size - 1) % mt_size;
	uint64_t state = 1, in, out = (uint64_t)round, sum = 0;

	for (int i = 0; i < 20000; i++)
		sum += mt_random(&state);
	MPI_Sendrecv(&out, 1, MPI_UINT64_T, right, 6, &in, 1, MPI_UINT64_T,
		     left, 6, world, MPI_STATUS_IGNORE);
	mt_check(in == out && sum, "round %ld, the neighbour is at %lu", round,
		 (unsigned long)in);
}

static void flush_loop(enum mt_flavor f)
{
	struct mt_win w[2];
	char block[100], back[100];

	for (int i = 0; i < 2; i++) {
		mt_win_open(&w[i], world, f, 100 * (size_t)mt_size);
		MPI_Win_lock_all(0, w[i].win);
	}
	for (long k = 0; k < mt_rounds(100); k++) {
		struct mt_win *p = &w[k & 1];
		int to = (int)((mt_rank + k) % mt_size);

		mt_fill(block, 100, mt_seed(mt_rank, to, 6, k));
		mt_put(p, block, 100, to, 100 * (size_t)mt_rank);
		MPI_Win_flush(to, p->win);
		mt_get(p, back, 100, to, 100 * (size_t)mt_rank);
		MPI_Win_flush_all(p->win);
		mt_verify(back, 100, mt_seed(mt_rank, to, 6, k));
		if (k % 4 == 3)
			other_work(k);
	}
	for (int i = 0; i < 2; i++) {
		MPI_Win_unlock_all(w[i].win);
		mt_win_close(&w[i]);
	}
}

/* ---- P9 ------------------------------------------------------------ */

static void no_data(enum mt_flavor f)
{
	for (long k = 0; k < mt_rounds(20); k++) {
		struct mt_win w;

		mt_win_open(&w, world, f, 4096);
		MPI_Win_fence(0, w.win);
		MPI_Win_fence(0, w.win);
		mt_win_close(&w);
	}
}

/* ---- P11 ----------------------------------------------------------- */

static void one_get(struct mt_win *w, char *in, size_t len, size_t offs)
{
	size_t local = offs % 16, remote = offs / 16;
	int from = (mt_rank + 1) % mt_size;
	char *copy = w->mem;

	memset(in, 0x3c, local);
	memset(in + local + len, 0x3c, 16);
	MPI_Win_lock(MPI_LOCK_SHARED, from, 0, w->win);
	mt_get(w, in + local, len, from, remote);
	MPI_Win_unlock(from, w->win);
	/* All ranks hold the same bytes. */
	mt_check(!memcmp(in + local, copy + remote, len),
		 "%zu bytes, offsets %zu and %zu", len, local, remote);
	for (size_t i = 0; i < 16; i++)
		mt_check((i >= local || in[i] == 0x3c) &&
				 in[local + len + i] == 0x3c,
			 "a byte beside the %zu was written", len);
}

static void unaligned_gets(enum mt_flavor f)
{
	static const size_t around[] = { 65536, 1 << 20, 8 << 20 };
	size_t max = (8 << 20) + 64;
	char *in = mt_alloc(max + 64);
	struct mt_win w;

	mt_win_open(&w, world, f, max);
	mt_fill(w.mem, max, 11);
	mt_win_settle(&w, world);
	for (size_t offs = 0; offs < 256; offs++)
		one_get(&w, in, 65536 + offs % 7 - 3, offs);
	for (size_t k = 0; k < 3; k++)
		for (size_t i = 0; i < 16; i += 5)
			one_get(&w, in, around[k] + i - 5, i * 16 + 15 - i);
	MPI_Barrier(world);
	mt_win_close(&w);
	mt_free(in);
}

/* A window of long double: 16 byte aligned, and sums that use them. */
static void long_doubles(enum mt_flavor f)
{
	long double one = 1, mem[3];
	struct mt_win w;

	mt_win_open(&w, world, f, 100 * sizeof(one));
	/* Open MPI 4.1 aligns what it allocates to 8 bytes. */
	mt_check(f == MT_ALLOCATE || !((uintptr_t)w.mem % 16), "memory at %p",
		 (void *)w.mem);
	MPI_Win_lock_all(0, w.win);
	for (int to = 0; to < mt_size; to++) {
		MPI_Accumulate(&one, 1, MPI_LONG_DOUBLE, to,
			       mt_win_at(&w, to, 16 * 7), 1, MPI_LONG_DOUBLE,
			       MPI_SUM, w.win);
		mt_win_told(&w, to, 1, sizeof(one));
	}
	MPI_Win_unlock_all(w.win);
	mt_win_settle(&w, world);
	memcpy(mem, w.mem + 6 * sizeof(one), sizeof(mem));
	mt_check(mem[1] == (long double)mt_size && mem[0] == 0 && mem[2] == 0,
		 "sum of long double is %Lf", mem[1]);
	MPI_Barrier(world);
	mt_win_close(&w);
}

static void unaligned(enum mt_flavor f)
{
	unaligned_gets(f);
	long_doubles(f);
}

/* ---- M11 ----------------------------------------------------------- */

/* Odd ranks give nothing: NULL, or an address without a length. */
static void some_empty(bool null)
{
	char *mem = mt_alloc(64), out[64];
	int to = (mt_rank + 2) % mt_size;
	MPI_Win win;

	mt_fill(out, 64, mt_seed(mt_rank, to, 11, 0));
	MPI_Win_create(mt_rank & 1 && null ? NULL : mem, mt_rank & 1 ? 0 : 64,
		       1, MPI_INFO_NULL, world, &win);
	MPI_Win_fence(0, win);
	if (!(mt_rank & 1) && !(to & 1)) {
		MPI_Put(out, 64, MPI_BYTE, to, 0, 64, MPI_BYTE, win);
		mt_device(to != mt_rank, to != mt_rank ? 64 : 0);
	}
	MPI_Win_fence(0, win);
	if (!(mt_rank & 1) && !(mt_size & 1))
		mt_verify(mem, 64,
			  mt_seed((mt_rank + mt_size - 2) % mt_size, mt_rank,
				  11, 0));
	/* Zero bytes may go to whoever has nothing. */
	MPI_Put(out, 0, MPI_BYTE, to, 0, 0, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
	mt_free(mem);
}

static void empty_windows(enum mt_flavor f)
{
	MPI_Win win;

	if (f != MT_CREATE)
		return;
	MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, world, &win);
	MPI_Win_fence(0, win);
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
	some_empty(true);
	some_empty(false);
}

/* ---- T20 ----------------------------------------------------------- */

/* All put to all, many small ones; each rank counts at each. */
static void all_put_all(enum mt_flavor f)
{
	long n = mt_rounds(50);
	size_t slot = (size_t)n * 8;
	struct mt_win w;

	mt_win_open(&w, world, f, 8 + slot * (size_t)mt_size);
	MPI_Win_lock_all(0, w.win);
	for (long k = 0; k < n; k++)
		for (int to = 0; to < mt_size; to++) {
			uint64_t v = mt_word(mt_seed(mt_rank, to, 20, 0),
					     (uint64_t)k);

			mt_put(&w, &v, 8, to,
			       8 + slot * (size_t)mt_rank + 8 * (size_t)k);
			MPI_Win_flush_local(to, w.win);
			mt_fetch_add(&w, 1, to, 0);
		}
	MPI_Win_unlock_all(w.win);
	mt_win_settle(&w, world);
	mt_check(*(int64_t *)w.mem == n * mt_size, "the counter ends at %ld",
		 (long)*(int64_t *)w.mem);
	for (int r = 0; r < mt_size; r++)
		mt_verify(w.mem + 8 + slot * (size_t)r, slot,
			  mt_seed(r, mt_rank, 20, 0));
	MPI_Barrier(world);
	mt_win_close(&w);
}

/* ---- T24 ----------------------------------------------------------- */

static void self_len(enum mt_flavor f, size_t len)
{
	char *out = mt_alloc(len + 8), *in = mt_alloc(len + 8);
	struct mt_win w;

	mt_win_open(&w, MPI_COMM_SELF, f, len + 16);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.win);
	mt_fill(out, len, 24);
	mt_put(&w, out, len, 0, 8);
	MPI_Win_flush(0, w.win);
	mt_get(&w, in, len, 0, 8);
	mt_check(!mt_fetch_add(&w, 5, 0, 0), "the first sum is not 0");
	mt_check(mt_fetch_add(&w, 1, 0, 0) == 5, "the second is not 5");
	MPI_Win_unlock(0, w.win);
	mt_verify(in, len, 24);
	mt_verify(w.mem + 8, len, 24);
	mt_win_close(&w);
	mt_free(out);
	mt_free(in);
}

/* Through the windows of all ranks, too: there, too, one is oneself. */
static void to_self(enum mt_flavor f)
{
	static const size_t list[] = { 0,    1,	    8,	     64,
				       4096, 65537, 4 << 20, 64 << 20 };
	struct mt_win w;
	char got[64], set[64];

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		if (list[i] <= 4 << 20 || mt_size <= 4)
			self_len(f, list[i]);
	mt_win_open(&w, world, f, 64);
	mt_fill(set, 64, 25);
	MPI_Win_lock(MPI_LOCK_SHARED, mt_rank, 0, w.win);
	mt_put(&w, set, 64, mt_rank, 0);
	MPI_Win_flush(mt_rank, w.win);
	mt_get(&w, got, 64, mt_rank, 0);
	MPI_Win_unlock(mt_rank, w.win);
	mt_verify(got, 64, 25);
	mt_win_close(&w);
}

/* ---- all ----------------------------------------------------------- */

int main(int argc, char **argv)
{
	static const struct {
		const long *wanted;
		void (*run)(enum mt_flavor f);
	} list[] = {
		{ &p3, concurrent_accumulate },
		{ &p6, flush_loop },
		{ &p9, no_data },
		{ &p11, unaligned },
		{ &m11, empty_windows },
		{ &t20, all_put_all },
		{ &t24, to_self },
	};
	bool all;

	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"rma_cases: public cases of one-sided communication", opts);
	all = !(p3 | p6 | p9 | p11 | m11 | t20 | t24);
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		for (int f = 0; f < MT_FLAVORS; f++)
			if (all || *list[i].wanted)
				list[i].run((enum mt_flavor)f);
	/* Some of the cases move nothing; a message of each rank does. */
	MPI_Barrier(world);
	mt_moved(world, (uint64_t)mt_size - 1, 0);
	return mt_end("rma_cases");
}
