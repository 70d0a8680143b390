/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Derived datatypes. Each type is described twice: as an MPI type and as a
 * list of pieces made by our own arithmetic. The bytes travel as type to
 * bytes, bytes to type, and type to type, and gaps must stay untouched.
 */
#include "common.h"

static long rounds = 20;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of the whole list" },
	{ 0 },
};

/* One type, and what it means. */
struct layout {
	const char *name;  /* for messages */
	MPI_Datatype type; /* committed */
	size_t *off;	   /* pieces: offset in memory, in type order */
	size_t *len;	   /* and length */
	size_t n;	   /* pieces */
	size_t room;	   /* slots in the two arrays */
	size_t extent;	   /* bytes of memory from the first address */
	size_t size;	   /* bytes of data */
};

/* ---- pieces -------------------------------------------------------- */

static void piece(struct layout *l, size_t off, size_t len)
{
	if (l->n == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		l->off = realloc(l->off, l->room * sizeof(*l->off));
		l->len = realloc(l->len, l->room * sizeof(*l->len));
		mt_check(l->off && l->len, "no memory for pieces");
	}
	l->off[l->n] = off;
	l->len[l->n++] = len;
	l->size += len;
	if (off + len > l->extent)
		l->extent = off + len;
}

/* Copies between the typed memory @mem and the stream @flat. */
static void copy(const struct layout *l, char *mem, char *flat, bool pack)
{
	for (size_t i = 0; i < l->n; i++) {
		if (pack)
			memcpy(flat, mem + l->off[i], l->len[i]);
		else
			memcpy(mem + l->off[i], flat, l->len[i]);
		flat += l->len[i];
	}
}

static void close_layout(struct layout *l)
{
	MPI_Type_free(&l->type);
	free(l->off);
	free(l->len);
}

/* ---- types --------------------------------------------------------- */

static void make_contiguous(struct layout *l)
{
	l->name = "contiguous";
	MPI_Type_contiguous(1001, MPI_INT, &l->type);
	piece(l, 0, 4004);
}

static void make_vector(struct layout *l)
{
	l->name = "vector";
	MPI_Type_vector(77, 3, 5, MPI_DOUBLE, &l->type);
	for (size_t i = 0; i < 77; i++)
		piece(l, i * 40, 24);
}

/* A million blocks of one element: 8 MiB of data in 16 MiB of memory. */
static void make_large_vector(struct layout *l)
{
	l->name = "large vector";
	MPI_Type_vector(1 << 20, 1, 2, MPI_DOUBLE, &l->type);
	for (size_t i = 0; i < 1 << 20; i++)
		piece(l, i * 16, 8);
}

static void make_hvector(struct layout *l)
{
	l->name = "hvector";
	MPI_Type_create_hvector(200, 7, 13, MPI_BYTE, &l->type);
	for (size_t i = 0; i < 200; i++)
		piece(l, i * 13, 7);
}

static void make_indexed(struct layout *l)
{
	int len[100], disp[100], at = 0;

	l->name = "indexed";
	for (int i = 0; i < 100; i++) {
		len[i] = i % 6;
		disp[i] = at;
		piece(l, (size_t)at * 4, (size_t)len[i] * 4);
		at += len[i] + i % 3;
	}
	MPI_Type_indexed(100, len, disp, MPI_INT, &l->type);
}

/* Pieces in falling order: the stream is not the order of memory. */
static void make_hindexed(struct layout *l)
{
	MPI_Aint disp[50];
	int len[50];

	l->name = "hindexed, backwards";
	for (int i = 0; i < 50; i++) {
		len[i] = 3 + i;
		disp[i] = (49 - i) * 61;
		piece(l, (size_t)disp[i], (size_t)len[i]);
	}
	MPI_Type_create_hindexed(50, len, disp, MPI_BYTE, &l->type);
}

static void make_indexed_block(struct layout *l)
{
	int disp[300];

	l->name = "indexed block";
	for (int i = 0; i < 300; i++) {
		disp[i] = i * 4 + i % 2;
		piece(l, (size_t)disp[i] * 8, 16);
	}
	MPI_Type_create_indexed_block(300, 2, disp, MPI_INT64_T, &l->type);
}

/* A struct of mixed members with holes, repeated. */
struct mixed {
	char c;	     /* first member */
	double d[3]; /* second */
	short s;     /* third */
	int64_t q;   /* not sent */
	float f[2];  /* fourth */
};

static void make_struct(struct layout *l)
{
	static const size_t off[] = { offsetof(struct mixed, c),
				      offsetof(struct mixed, d),
				      offsetof(struct mixed, s),
				      offsetof(struct mixed, f) };
	MPI_Datatype t[] = { MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_FLOAT };
	static const size_t width[] = { 1, 24, 2, 8 };
	int len[] = { 1, 3, 1, 2 };
	MPI_Datatype one, sized;
	MPI_Aint disp[4];

	l->name = "array of structs";
	for (int i = 0; i < 4; i++)
		disp[i] = (MPI_Aint)off[i];
	MPI_Type_create_struct(4, len, disp, t, &one);
	MPI_Type_create_resized(one, 0, sizeof(struct mixed), &sized);
	MPI_Type_contiguous(400, sized, &l->type);
	MPI_Type_free(&one);
	MPI_Type_free(&sized);
	for (size_t k = 0; k < 400; k++)
		for (int i = 0; i < 4; i++)
			piece(l, k * sizeof(struct mixed) + off[i], width[i]);
}

static void make_subarray(struct layout *l)
{
	int full[3] = { 20, 30, 40 }, part[3] = { 11, 7, 23 };
	int from[3] = { 5, 9, 2 };

	l->name = "subarray";
	MPI_Type_create_subarray(3, full, part, from, MPI_ORDER_C, MPI_INT,
				 &l->type);
	for (size_t z = 5; z < 16; z++)
		for (size_t y = 9; y < 16; y++)
			piece(l, ((z * 30 + y) * 40 + 2) * 4, 23 * 4);
	l->extent = sizeof(int) * 20 * 30 * 40;
}

/* A vector of vectors: every second element of every third row. */
static void make_nested(struct layout *l)
{
	MPI_Datatype row;

	l->name = "vector of vectors";
	MPI_Type_vector(32, 1, 2, MPI_FLOAT, &row);
	MPI_Type_create_hvector(40, 1, 3 * 64 * 4, row, &l->type);
	MPI_Type_free(&row);
	for (size_t r = 0; r < 40; r++)
		for (size_t i = 0; i < 32; i++)
			piece(l, r * 768 + i * 8, 4);
}

static void make_empty(struct layout *l)
{
	l->name = "empty";
	MPI_Type_contiguous(0, MPI_INT, &l->type);
}

/* ---- transfers ----------------------------------------------------- */

enum { TYPE_TO_BYTES, BYTES_TO_TYPE, TYPE_TO_TYPE, HOWS };

/* Buffers of one transfer. */
struct bufs {
	char *mem_out, *mem_in;	  /* laid out as the type says */
	char *flat_out, *flat_in; /* the bare bytes */
};

static void bufs_open(struct bufs *b, const struct layout *l, uint64_t seed)
{
	b->mem_out = mt_alloc(l->extent);
	b->mem_in = mt_alloc(l->extent);
	b->flat_out = mt_alloc(l->size);
	b->flat_in = mt_alloc(l->size);
	memset(b->mem_in, 0x3c, l->extent);
	memset(b->mem_out, 0x11, l->extent);
	mt_fill(b->flat_out, l->size, seed);
	copy(l, b->mem_out, b->flat_out, false);
}

static void bufs_close(struct bufs *b)
{
	mt_free(b->mem_out);
	mt_free(b->mem_in);
	mt_free(b->flat_out);
	mt_free(b->flat_in);
}

/* No byte between the pieces may have changed: take them out and look. */
static void check_gaps(const struct layout *l, char *mem)
{
	for (size_t i = 0; i < l->n; i++)
		memset(mem + l->off[i], 0x3c, l->len[i]);
	for (size_t i = 0; i < l->extent; i++)
		mt_check(mem[i] == 0x3c, "%s: gap at %zu was written", l->name,
			 i);
}

static void check_status(const struct layout *l, const MPI_Status *st, int how)
{
	int count, want = l->size ? 1 : 0;

	if (how == TYPE_TO_BYTES)
		return;
	MPI_Get_count(st, l->type, &count);
	mt_check(count == want, "%s: count %d", l->name, count);
}

static void exchange(const struct layout *l, struct bufs *b, int how, int to,
		     int from)
{
	bool typed_out = how != BYTES_TO_TYPE, typed_in = how != TYPE_TO_BYTES;
	int bytes = (int)l->size;
	MPI_Request req;
	MPI_Status st;

	MPI_Irecv(typed_in ? b->mem_in : b->flat_in, typed_in ? 1 : bytes,
		  typed_in ? l->type : MPI_BYTE, from, how, MPI_COMM_WORLD,
		  &req);
	MPI_Send(typed_out ? b->mem_out : b->flat_out, typed_out ? 1 : bytes,
		 typed_out ? l->type : MPI_BYTE, to, how, MPI_COMM_WORLD);
	MPI_Wait(&req, &st);
	mt_status(&st, from, how, l->size);
	mt_sent(1, l->size);
	check_status(l, &st, how);
	if (typed_in)
		copy(l, b->mem_in, b->flat_in, true);
}

static void transfer(const struct layout *l, int how, int shift, long round)
{
	int to = (mt_rank + shift) % mt_size;
	int from = (mt_rank + mt_size - shift) % mt_size;
	struct bufs b;

	bufs_open(&b, l, mt_seed(mt_rank, to, how, round));
	exchange(l, &b, how, to, from);
	mt_verify(b.flat_in, l->size, mt_seed(from, mt_rank, how, round));
	if (how != TYPE_TO_BYTES)
		check_gaps(l, b.mem_in);
	bufs_close(&b);
}

/* MPI_Pack and MPI_Unpack around a message of packed bytes. */
static void packed(const struct layout *l, long round)
{
	int to = (mt_rank + 1) % mt_size, at = 0;
	int from = (mt_rank + mt_size - 1) % mt_size;
	struct bufs b;
	int room;
	char *wire;

	bufs_open(&b, l, mt_seed(mt_rank, to, 9, round));
	MPI_Pack_size(1, l->type, MPI_COMM_WORLD, &room);
	wire = mt_alloc((size_t)room);
	MPI_Pack(b.mem_out, 1, l->type, wire, room, &at, MPI_COMM_WORLD);
	MPI_Sendrecv_replace(wire, at, MPI_PACKED, to, 9, from, 9,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	mt_sent(1, (uint64_t)at);
	at = 0;
	MPI_Unpack(wire, room, &at, b.mem_in, 1, l->type, MPI_COMM_WORLD);
	copy(l, b.mem_in, b.flat_in, true);
	mt_verify(b.flat_in, l->size, mt_seed(from, mt_rank, 9, round));
	mt_free(wire);
	bufs_close(&b);
}

static void one_type(void (*make)(struct layout *), long round)
{
	struct layout l = { 0 };

	make(&l);
	MPI_Type_commit(&l.type);
	for (int how = 0; how < HOWS; how++)
		for (int shift = 0; shift < mt_size && shift < 3; shift++)
			transfer(&l, how, shift, round);
	packed(&l, round);
	close_layout(&l);
}

int main(int argc, char **argv)
{
	static void (*const small[])(struct layout *) = {
		make_contiguous, make_vector,	make_hvector,
		make_indexed,	 make_hindexed, make_indexed_block,
		make_struct,	 make_subarray, make_nested,
		make_empty,
	};

	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"datatypes: derived types against our own arithmetic", opts);
	for (long r = 0; r < mt_rounds(rounds); r++)
		for (size_t i = 0; i < sizeof(small) / sizeof(*small); i++)
			one_type(small[i], r);
	for (long r = 0; r < mt_rounds(1); r++)
		one_type(make_large_vector, r);
	return mt_end("datatypes");
}
