/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Windows for one-sided communication: created over memory of the program,
 * allocated by MPI, or dynamic with that memory attached. A test asks for
 * "byte OFF of rank R" and does not care which of them it is.
 *
 * Threads: opening and closing belong to one thread of each rank at a time;
 * the rest may be called by any thread.
 */
#ifndef SHRIMP_MPI_TESTS_WIN_H
#define SHRIMP_MPI_TESTS_WIN_H

#include "common.h"

/* How the memory of a window comes about. */
enum mt_flavor {
	MT_CREATE,   /* MPI_Win_create over memory of mt_alloc() */
	MT_DYNAMIC,  /* MPI_Win_create_dynamic, the same memory attached */
	MT_ALLOCATE, /* MPI_Win_allocate: on one node, not over the network */
	MT_FLAVORS
};

/* A window of all ranks of a communicator, displacement unit 1. */
struct mt_win {
	MPI_Win win;
	char *mem;	       /* the part of this rank */
	size_t len;	       /* bytes of each part */
	enum mt_flavor flavor; /* how it was made */
	int rank, size;	       /* this process in it, and how many there are */
	MPI_Aint *base;	       /* of each rank: displacement of its byte 0 */
};

/*
 * Collective over @comm: makes a window of @len bytes on each rank, zeroed.
 * Nobody returns before everybody's memory is ready. Fails the job when
 * there is no memory.
 */
void mt_win_open(struct mt_win *w, MPI_Comm comm, enum mt_flavor flavor,
		 size_t len);

/* Collective: frees what mt_win_open() made and looks at the guard zones. */
void mt_win_close(struct mt_win *w);

/* Displacement of byte @off of rank @rank. */
MPI_Aint mt_win_at(const struct mt_win *w, int rank, size_t off);

/* Name of @flavor, for messages. */
const char *mt_flavor_name(enum mt_flavor flavor);

/*
 * Tells by mt_device() that @ops operations that move @bytes bytes go to
 * @rank of the window, unless they need no network: to the rank itself, or in
 * memory that MPI allocated for all of this node.
 */
void mt_win_told(const struct mt_win *w, int rank, uint64_t ops,
		 uint64_t bytes);

/*
 * Collective: what everybody's completed operations wrote is seen in @w->mem
 * after this. Called outside of any epoch.
 */
void mt_win_settle(const struct mt_win *w, MPI_Comm comm);

/* Puts @len bytes at @buf to byte @off of @to, and tells so. */
void mt_put(const struct mt_win *w, const void *buf, size_t len, int to,
	    size_t off);

/* Gets @len bytes from byte @off of @from to @buf, and tells so. */
void mt_get(const struct mt_win *w, void *buf, size_t len, int from,
	    size_t off);

/*
 * Adds @add to the 64-bit word at byte @off of @to and returns what it was;
 * complete on return. In an epoch of lock or lock_all.
 */
int64_t mt_fetch_add(const struct mt_win *w, int64_t add, int to, size_t off);

/*
 * Writes @set to the 64-bit word at byte @off of @to if it is @expect, and
 * returns what it was; complete on return. In an epoch of lock or lock_all;
 * @to is another rank (osc rdma of Open MPI 4.1 crashes otherwise).
 */
int64_t mt_swap_if(const struct mt_win *w, int64_t expect, int64_t set, int to,
		   size_t off);

#endif /* SHRIMP_MPI_TESTS_WIN_H */
