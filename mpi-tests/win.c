/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * See win.h.
 */
#include "win.h"

static void open_dynamic(struct mt_win *w, MPI_Comm comm)
{
	MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &w->win);
	if (w->len)
		MPI_Win_attach(w->win, w->mem, (MPI_Aint)w->len);
}

static void open_window(struct mt_win *w, MPI_Comm comm)
{
	if (w->flavor == MT_ALLOCATE) {
		MPI_Win_allocate((MPI_Aint)w->len, 1, MPI_INFO_NULL, comm,
				 &w->mem, &w->win);
		return;
	}
	w->mem = mt_alloc(w->len);
	if (w->flavor == MT_DYNAMIC)
		open_dynamic(w, comm);
	else
		MPI_Win_create(w->mem, (MPI_Aint)w->len, 1, MPI_INFO_NULL, comm,
			       &w->win);
}

/* Under a lock: the window may hold a copy of its own. */
static void zero(struct mt_win *w)
{
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->rank, 0, w->win);
	memset(w->mem, 0, w->len);
	MPI_Win_unlock(w->rank, w->win);
}

void mt_win_open(struct mt_win *w, MPI_Comm comm, enum mt_flavor flavor,
		 size_t len)
{
	MPI_Aint base = 0;

	*w = (struct mt_win){ .flavor = flavor, .len = len };
	MPI_Comm_rank(comm, &w->rank);
	MPI_Comm_size(comm, &w->size);
	open_window(w, comm);
	zero(w);
	if (flavor == MT_DYNAMIC)
		MPI_Get_address(w->mem, &base);
	w->base = mt_alloc((size_t)w->size * sizeof(*w->base));
	/* Also the barrier that the head promises. */
	MPI_Allgather(&base, 1, MPI_AINT, w->base, 1, MPI_AINT, comm);
}

void mt_win_close(struct mt_win *w)
{
	if (w->flavor == MT_DYNAMIC && w->len) {
		/* Nobody may be on the way to what gets detached. */
		MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win);
		MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
		MPI_Win_detach(w->win, w->mem);
	}
	MPI_Win_free(&w->win);
	if (w->flavor != MT_ALLOCATE)
		mt_free(w->mem);
	mt_free(w->base);
}

MPI_Aint mt_win_at(const struct mt_win *w, int rank, size_t off)
{
	return w->base[rank] + (MPI_Aint)off;
}

const char *mt_flavor_name(enum mt_flavor flavor)
{
	static const char *const names[MT_FLAVORS] = {
		[MT_CREATE] = "created",
		[MT_DYNAMIC] = "dynamic",
		[MT_ALLOCATE] = "allocated",
	};

	return names[flavor];
}

void mt_win_told(const struct mt_win *w, int rank, uint64_t ops, uint64_t bytes)
{
	if (rank != w->rank && w->flavor != MT_ALLOCATE)
		mt_device(ops, bytes);
}

void mt_win_settle(const struct mt_win *w, MPI_Comm comm)
{
	MPI_Barrier(comm);
	MPI_Win_lock(MPI_LOCK_SHARED, w->rank, 0, w->win);
	MPI_Win_sync(w->win);
	MPI_Win_unlock(w->rank, w->win);
}

void mt_put(const struct mt_win *w, const void *buf, size_t len, int to,
	    size_t off)
{
	MPI_Put(buf, (int)len, MPI_BYTE, to, mt_win_at(w, to, off), (int)len,
		MPI_BYTE, w->win);
	mt_win_told(w, to, len > 0, len);
}

void mt_get(const struct mt_win *w, void *buf, size_t len, int from, size_t off)
{
	MPI_Get(buf, (int)len, MPI_BYTE, from, mt_win_at(w, from, off),
		(int)len, MPI_BYTE, w->win);
	mt_win_told(w, from, len > 0, len);
}

int64_t mt_fetch_add(const struct mt_win *w, int64_t add, int to, size_t off)
{
	int64_t got = -1;

	MPI_Fetch_and_op(&add, &got, MPI_INT64_T, to, mt_win_at(w, to, off),
			 MPI_SUM, w->win);
	MPI_Win_flush(to, w->win);
	mt_win_told(w, to, 1, 8);
	return got;
}

int64_t mt_swap_if(const struct mt_win *w, int64_t expect, int64_t set, int to,
		   size_t off)
{
	int64_t got = -1;

	MPI_Compare_and_swap(&set, &expect, &got, MPI_INT64_T, to,
			     mt_win_at(w, to, off), w->win);
	MPI_Win_flush(to, w->win);
	mt_win_told(w, to, 1, 8);
	return got;
}
