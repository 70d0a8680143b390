/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Halo exchange on a two-dimensional grid of ranks: rows go as contiguous
 * data, columns as vectors, corners by the two steps. Each cell holds a
 * number made of its global place and the step, and all ghost cells are
 * compared with it; ghost cells outside a bounded grid must stay untouched.
 */
#include "common.h"

static long steps = 60;
static long size = -1;
static long table;

static const struct mt_opt opts[] = {
	{ "steps", &steps, "exchanges per grid size" },
	{ "size", &size, "cells per side of a rank's part, -1: a list" },
	{ "table", &table, "1: print the time per exchange" },
	{ 0 },
};

enum { UNTOUCHED = 0x5a5a };

/* One rank's part of the grid, with a ghost cell on every side. */
struct grid {
	MPI_Comm comm;	     /* Cartesian */
	int dims[2];	     /* ranks per direction, y then x */
	int coords[2];	     /* of this rank */
	int periodic;	     /* both directions wrap, or none */
	int ny, nx;	     /* own cells */
	uint64_t *cell;	     /* (ny + 2) rows of nx + 2 cells */
	MPI_Datatype column; /* ny cells, a row apart */
	MPI_Datatype row;    /* nx + 2 cells: ghosts carry the corners */
};

static uint64_t *at(const struct grid *g, int y, int x)
{
	return g->cell + (size_t)y * (size_t)(g->nx + 2) + x;
}

/* The value of the cell y, x of this rank's part (0 is a ghost). */
static uint64_t value(const struct grid *g, int y, int x, long step)
{
	long h = (long)g->dims[0] * g->ny, w = (long)g->dims[1] * g->nx;
	long gy = (long)g->coords[0] * g->ny + y - 1;
	long gx = (long)g->coords[1] * g->nx + x - 1;

	if (!g->periodic && (gy < 0 || gy >= h || gx < 0 || gx >= w))
		return UNTOUCHED;
	gy = (gy + h) % h;
	gx = (gx + w) % w;
	return mt_word((uint64_t)step << 40, (uint64_t)(gy * w + gx));
}

static void grid_fill(struct grid *g, long step)
{
	for (int y = 0; y < g->ny + 2; y++)
		for (int x = 0; x < g->nx + 2; x++) {
			bool own = y > 0 && y <= g->ny && x > 0 && x <= g->nx;

			*at(g, y, x) = own ? value(g, y, x, step) : UNTOUCHED;
		}
}

static void grid_check(const struct grid *g, long step)
{
	for (int y = 0; y < g->ny + 2; y++)
		for (int x = 0; x < g->nx + 2; x++)
			mt_check(*at(g, y, x) == value(g, y, x, step),
				 "step %ld, cell %d, %d of %d x %d is wrong",
				 step, y, x, g->ny, g->nx);
}

/* Both directions along one axis: @t from @lo_out, @hi_out to the ghosts. */
static void swap_sides(struct grid *g, int axis, MPI_Datatype t,
		       uint64_t *cells[4])
{
	MPI_Request req[4];
	int lo, hi, bytes;

	MPI_Type_size(t, &bytes);
	MPI_Cart_shift(g->comm, axis, 1, &lo, &hi);
	MPI_Irecv(cells[0], 1, t, lo, 1, g->comm, &req[0]);
	MPI_Irecv(cells[1], 1, t, hi, 2, g->comm, &req[1]);
	MPI_Isend(cells[2], 1, t, lo, 2, g->comm, &req[2]);
	MPI_Isend(cells[3], 1, t, hi, 1, g->comm, &req[3]);
	MPI_Waitall(4, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 2; i++)
		if ((i ? hi : lo) != MPI_PROC_NULL)
			mt_sent(1, (uint64_t)bytes);
}

static void exchange(struct grid *g)
{
	uint64_t *x[4] = { at(g, 1, 0), at(g, 1, g->nx + 1), at(g, 1, 1),
			   at(g, 1, g->nx) };
	uint64_t *y[4] = { at(g, 0, 0), at(g, g->ny + 1, 0), at(g, 1, 0),
			   at(g, g->ny, 0) };

	swap_sides(g, 1, g->column, x);
	swap_sides(g, 0, g->row, y);
}

/* One exchange of sides by a collective; what is sent comes from a copy. */
static void exchange_neighbours(struct grid *g)
{
	MPI_Datatype t[4] = { g->row, g->row, g->column, g->column };
	uint64_t *out[4] = { at(g, 1, 0), at(g, g->ny, 0), at(g, 1, 1),
			     at(g, 1, g->nx) };
	uint64_t *in[4] = { at(g, 0, 0), at(g, g->ny + 1, 0), at(g, 1, 0),
			    at(g, 1, g->nx + 1) };
	size_t bytes = (size_t)(g->ny + 2) * (size_t)(g->nx + 2) * 8;
	void *copy = mt_alloc(bytes);
	int one[4] = { 1, 1, 1, 1 };
	MPI_Aint from[4], to[4];

	memcpy(copy, g->cell, bytes);
	for (int i = 0; i < 4; i++) {
		from[i] = (char *)out[i] - (char *)g->cell;
		to[i] = (char *)in[i] - (char *)g->cell;
	}
	MPI_Neighbor_alltoallw(copy, one, from, t, g->cell, one, to, t,
			       g->comm);
	mt_free(copy);
}

static void grid_open(struct grid *g, int periodic, int ny, int nx)
{
	int wrap[2] = { periodic, periodic };

	*g = (struct grid){ .periodic = periodic, .ny = ny, .nx = nx };
	MPI_Dims_create(mt_size, 2, g->dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, g->dims, wrap, 1, &g->comm);
	MPI_Cart_coords(g->comm, mt_rank, 2, g->coords);
	g->cell = mt_alloc((size_t)(ny + 2) * (size_t)(nx + 2) * 8);
	MPI_Type_vector(ny, 1, nx + 2, MPI_UINT64_T, &g->column);
	MPI_Type_contiguous(nx + 2, MPI_UINT64_T, &g->row);
	MPI_Type_commit(&g->column);
	MPI_Type_commit(&g->row);
}

static void grid_close(struct grid *g)
{
	MPI_Type_free(&g->column);
	MPI_Type_free(&g->row);
	MPI_Comm_free(&g->comm);
	mt_free(g->cell);
}

/* The first exchange brings the columns, the second rows with corners. */
static void check_neighbours(struct grid *g, long step)
{
	grid_fill(g, step);
	exchange_neighbours(g);
	exchange_neighbours(g);
	grid_check(g, step);
}

static void run(int periodic, int ny, int nx)
{
	long n = mt_rounds(ny > 200 ? (steps + 4) / 5 : steps);
	struct grid g;
	double t = 0, start;

	grid_open(&g, periodic, ny, nx);
	for (long step = 1; step <= n; step++) {
		grid_fill(&g, step);
		start = MPI_Wtime();
		exchange(&g);
		t += MPI_Wtime() - start;
		grid_check(&g, step);
	}
	/* MPI 3 leaves open which is which when both neighbours are one. */
	if (!periodic)
		check_neighbours(&g, n + 1);
	if (table && !mt_rank)
		printf("halo %4d x %4d cells  %10.3f us/exchange, checked\n",
		       ny, nx, t * 1e6 / (double)n);
	grid_close(&g);
}

int main(int argc, char **argv)
{
	static const int list[][2] = {
		{ 1, 1 }, { 3, 5 }, { 64, 64 }, { 100, 37 }, { 600, 511 }
	};

	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"halo: 2D halo exchange, every ghost cell checked", opts);
	for (size_t i = 0; i < 5 && size < 0; i++) {
		run(0, list[i][0], list[i][1]);
		run(1, list[i][0], list[i][1]);
	}
	if (size >= 0)
		run(1, (int)size, (int)size);
	return mt_end("halo");
}
