/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Allreduce of every operation and of integer, floating and pair types, in
 * place and not, and of an operation of our own that does not commute; each
 * element of the result is compared with one computed here.
 */
#include "common.h"

static long rounds = 2;
static long size = -1;
static long table;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of the whole list" },
	{ "size", &size, "only a sum of that many bytes (of 8 each), timed" },
	{ "table", &table, "1: print the time per call (with --size)" },
	{ 0 },
};

/* The element @i of @rank: small, so that floating sums are exact. */
static int64_t element(int rank, size_t i, long round)
{
	return (int64_t)(mt_word(mt_seed(rank, 0, 1, round), i) >> 60) + 1;
}

static int64_t combine(MPI_Op op, int64_t a, int64_t b)
{
	if (op == MPI_SUM)
		return a + b;
	if (op == MPI_PROD)
		return a * b;
	if (op == MPI_MIN)
		return a < b ? a : b;
	if (op == MPI_MAX)
		return a > b ? a : b;
	if (op == MPI_BAND)
		return a & b;
	if (op == MPI_BOR)
		return a | b;
	if (op == MPI_BXOR)
		return a ^ b;
	if (op == MPI_LAND)
		return a && b;
	return op == MPI_LOR ? a || b : !a != !b;
}

static int64_t expected(MPI_Op op, size_t i, long round)
{
	int64_t v = element(0, i, round);

	for (int r = 1; r < mt_size; r++)
		v = combine(op, v, element(r, i, round));
	return v;
}

static void store(MPI_Datatype t, void *buf, size_t i, int64_t v)
{
	if (t == MPI_DOUBLE)
		((double *)buf)[i] = (double)v;
	else if (t == MPI_FLOAT)
		((float *)buf)[i] = (float)v;
	else if (t == MPI_INT)
		((int *)buf)[i] = (int)v;
	else if (t == MPI_UINT8_T)
		((uint8_t *)buf)[i] = (uint8_t)v;
	else
		((int64_t *)buf)[i] = v;
}

/* True if element @i of @buf is what store() makes of @v. */
static bool holds(MPI_Datatype t, const void *buf, size_t i, int64_t v)
{
	char want[8] = { 0 };
	int width;

	MPI_Type_size(t, &width);
	store(t, want, 0, v);
	return !memcmp((const char *)buf + i * (size_t)width, want,
		       (size_t)width);
}

static void told(size_t bytes)
{
	uint64_t others = (uint64_t)mt_size - 1;

	if (bytes)
		mt_moved(MPI_COMM_WORLD, others, bytes * others);
}

static void one(MPI_Datatype t, MPI_Op op, size_t n, long round)
{
	bool in_place = round & 1;
	void *in, *out;
	int width;

	MPI_Type_size(t, &width);
	in = mt_alloc(n * (size_t)width);
	out = mt_alloc(n * (size_t)width);
	for (size_t i = 0; i < n; i++)
		store(t, in_place ? out : in, i, element(mt_rank, i, round));
	MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, (int)n, t, op,
		      MPI_COMM_WORLD);
	told(n * (size_t)width);
	for (size_t i = 0; i < n; i++)
		mt_check(holds(t, out, i, expected(op, i, round)),
			 "element %zu of %zu is wrong", i, n);
	mt_free(in);
	mt_free(out);
}

static void all_types(size_t n, long round)
{
	MPI_Datatype ints[] = { MPI_INT, MPI_INT64_T, MPI_UINT8_T };
	MPI_Op iops[] = { MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX, MPI_BAND,
			  MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR };
	MPI_Datatype floats[] = { MPI_DOUBLE, MPI_FLOAT };
	MPI_Op fops[] = { MPI_SUM, MPI_MIN, MPI_MAX };

	for (size_t t = 0; t < sizeof(ints) / sizeof(*ints); t++)
		for (size_t o = 0; o < sizeof(iops) / sizeof(*iops); o++)
			one(ints[t], iops[o], n, round);
	for (size_t t = 0; t < sizeof(floats) / sizeof(*floats); t++)
		for (size_t o = 0; o < sizeof(fops) / sizeof(*fops); o++)
			one(floats[t], fops[o], n, round);
}

/* MPI_MAXLOC and MPI_MINLOC: values that are equal on several ranks. */
static void location(bool max, size_t n, long round)
{
	struct {
		int v, at;
	} *p = mt_alloc(n * sizeof(*p)), *q = mt_alloc(n * sizeof(*q));

	for (size_t i = 0; i < n; i++) {
		p[i].v = (int)element(mt_rank, i, round);
		p[i].at = mt_rank;
	}
	MPI_Allreduce(p, q, (int)n, MPI_2INT, max ? MPI_MAXLOC : MPI_MINLOC,
		      MPI_COMM_WORLD);
	told(n * sizeof(*p));
	for (size_t i = 0; i < n; i++) {
		int64_t v = expected(max ? MPI_MAX : MPI_MIN, i, round);
		int at = 0;

		while (element(at, i, round) != v)
			at++;
		mt_check(q[i].v == v && q[i].at == at,
			 "element %zu: %d at %d, expected %d at %d", i, q[i].v,
			 q[i].at, (int)v, at);
	}
	mt_free(p);
	mt_free(q);
}

/* a[x] -> a[x] after b[x]: maps x -> m x + c modulo 2^32, do not commute. */
static void chain(void *in, void *inout, int *len, MPI_Datatype *t)
{
	uint32_t(*a)[2] = in, (*b)[2] = inout;

	(void)t;
	for (int i = 0; i < *len; i++) {
		b[i][1] = b[i][0] * a[i][1] + b[i][1];
		b[i][0] = a[i][0] * b[i][0];
	}
}

static void fill_maps(uint32_t (*m)[2], int rank, size_t n, long round)
{
	for (size_t i = 0; i < n; i++) {
		m[i][0] = (uint32_t)mt_word(mt_seed(rank, 1, 2, round), i) | 1;
		m[i][1] = (uint32_t)mt_word(mt_seed(rank, 2, 2, round), i);
	}
}

static void ordered(size_t n, long round)
{
	uint32_t(*own)[2] = mt_alloc(n * 8), (*got)[2] = mt_alloc(n * 8);
	uint32_t(*want)[2] = mt_alloc(n * 8), (*next)[2] = mt_alloc(n * 8);
	int len = (int)n;
	MPI_Datatype t;
	MPI_Op op;

	MPI_Type_contiguous(2, MPI_UINT32_T, &t);
	MPI_Type_commit(&t);
	MPI_Op_create(chain, 0, &op);
	fill_maps(own, mt_rank, n, round);
	MPI_Allreduce(own, got, len, t, op, MPI_COMM_WORLD);
	told(n * 8);
	fill_maps(want, mt_size - 1, n, round);
	for (int r = mt_size - 2; r >= 0; r--) {
		fill_maps(next, r, n, round);
		chain(next, want, &len, NULL);
	}
	mt_check(!memcmp(got, want, n * 8), "chain of %zu maps", n);
	MPI_Op_free(&op);
	MPI_Type_free(&t);
	mt_free(own);
	mt_free(got);
	mt_free(want);
	mt_free(next);
}

static void timed(void)
{
	size_t n = (size_t)size / 8;
	long calls = mt_rounds(rounds);
	double t;

	one(MPI_INT64_T, MPI_SUM, n, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	t = MPI_Wtime();
	for (long r = 0; r < calls; r++)
		one(MPI_INT64_T, MPI_SUM, n, r);
	t = MPI_Wtime() - t;
	if (table && !mt_rank)
		printf("allreduce %8zu B  %10.3f us/call, checked\n", n * 8,
		       t * 1e6 / (double)calls);
}

static void whole_list(void)
{
	static const size_t counts[] = { 0, 1, 5, 127, 1025, 20011 };

	for (long r = 0; r < mt_rounds(rounds * 10) / 10 + 1; r++)
		for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
			all_types(counts[c], r);
			location(true, counts[c], r);
			location(false, counts[c], r);
			ordered(counts[c], r);
		}
	one(MPI_INT64_T, MPI_SUM, 250001, 0);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"allreduce: all operations and types, every element checked",
		opts);
	if (size >= 0)
		timed();
	else
		whole_list();
	return mt_end("allreduce");
}
