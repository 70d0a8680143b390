/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Parents spawn children, talk with each of them, merge with them, use a
 * window over the merged communicator, part, and do it all again: addresses
 * that come late, an address table that grows, peers that leave.
 */
#include "common.h"

#include <unistd.h>

static long rounds = 3;
static long children = 2;
static long window = 1;
static long child;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "times children are spawned" },
	{ "children", &children, "children per round" },
	{ "window", &window, "0: no one-sided part" },
	{ "child", &child, "given to children by their parents" },
	{ 0 },
};

static const size_t lens[] = { 0, 8, 41, 4097, 100000, 2000001 };

enum { LENS = sizeof(lens) / sizeof(*lens) };

/* A message each way between this process and @peer of the other side. */
static void talk(MPI_Comm inter, int me, int peer, int side, int i)
{
	size_t len = lens[i];
	char *in = mt_alloc(len), *out = mt_alloc(len);
	MPI_Request req;
	MPI_Status st;

	mt_fill(out, len, mt_seed(me, peer, i, side));
	MPI_Isend(out, (int)len, MPI_BYTE, peer, i, inter, &req);
	MPI_Recv(in, (int)len, MPI_BYTE, peer, i, inter, &st);
	mt_status(&st, peer, i, len);
	mt_verify(in, len, mt_seed(peer, me, i, !side));
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	mt_sent(1, len);
	mt_free(in);
	mt_free(out);
}

static void talk_all(MPI_Comm inter, int side)
{
	int me, there;

	MPI_Comm_rank(inter, &me);
	MPI_Comm_remote_size(inter, &there);
	for (int peer = 0; peer < there; peer++)
		for (int i = 0; i < LENS; i++)
			talk(inter, me, peer, side, i);
}

static void merged_alltoall(MPI_Comm whole, size_t len)
{
	char *in, *out;
	int me, n;

	MPI_Comm_rank(whole, &me);
	MPI_Comm_size(whole, &n);
	in = mt_alloc(len * (size_t)n);
	out = mt_alloc(len * (size_t)n);
	for (int r = 0; r < n; r++)
		mt_fill(out + (size_t)r * len, len, mt_seed(me, r, 20, 0));
	MPI_Alltoall(out, (int)len, MPI_BYTE, in, (int)len, MPI_BYTE, whole);
	for (int r = 0; r < n; r++)
		mt_verify(in + (size_t)r * len, len, mt_seed(r, me, 20, 0));
	mt_sent(1, len * (size_t)(n - 1));
	mt_free(in);
	mt_free(out);
}

/* Everybody puts a block into everybody's window. */
static void merged_window(MPI_Comm whole, size_t len)
{
	char *mem, *out;
	MPI_Win win;
	int me, n;

	MPI_Comm_rank(whole, &me);
	MPI_Comm_size(whole, &n);
	mem = mt_alloc(len * (size_t)n);
	out = mt_alloc(len * (size_t)n);
	MPI_Win_create(mem, (MPI_Aint)len * n, 1, MPI_INFO_NULL, whole, &win);
	MPI_Win_fence(0, win);
	for (int r = 0; r < n; r++) {
		char *p = out + (size_t)r * len;

		mt_fill(p, len, mt_seed(me, r, 21, 0));
		MPI_Put(p, (int)len, MPI_BYTE, r, (MPI_Aint)len * me, (int)len,
			MPI_BYTE, win);
	}
	MPI_Win_fence(0, win);
	for (int r = 0; r < n; r++)
		mt_verify(mem + (size_t)r * len, len, mt_seed(r, me, 21, 0));
	mt_sent(1, len * (size_t)(n - 1));
	MPI_Win_free(&win);
	mt_free(mem);
	mt_free(out);
}

/* All that one side does with the other; both leave together. */
static void together(MPI_Comm inter, int side)
{
	MPI_Comm whole;

	/* The children have read their counters when they come here. */
	MPI_Barrier(inter);
	talk_all(inter, side);
	MPI_Intercomm_merge(inter, side, &whole);
	merged_alltoall(whole, 100);
	merged_alltoall(whole, 30000);
	if (window)
		merged_window(whole, 3000);
	talk_all(inter, side);
	/* To disconnect this one hangs in Debian's PMIx, over any transport. */
	MPI_Comm_free(&whole);
	MPI_Comm_disconnect(&inter);
}

static MPI_Comm spawn(void)
{
	char path[4096], on[2] = "1", off[2] = "0";
	char name[] = "--child", wname[] = "--window";
	char *argv[] = { name, on, wname, window ? on : off, NULL };
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	MPI_Comm inter;

	mt_check(n > 0, "readlink(/proc/self/exe)");
	path[n] = 0;
	MPI_Comm_spawn(path, argv, (int)children, MPI_INFO_NULL, 0,
		       MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
	return inter;
}

int main(int argc, char **argv)
{
	MPI_Comm parent;

	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"spawn: parents spawn children, again and again", opts);
	MPI_Comm_get_parent(&parent);
	mt_check((parent != MPI_COMM_NULL) == (child != 0),
		 "is this a child or not?");
	if (child) {
		together(parent, 1);
		return mt_end(NULL);
	}
	for (long r = 0; r < mt_rounds(rounds); r++)
		together(spawn(), 0);
	return mt_end("spawn (case_P18)");
}
