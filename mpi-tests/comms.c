/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Communicators: dup, split, create, intercommunicators and their merge, made
 * and freed in loops; messages of one never reach another, also when many
 * live at once and messages wait unmatched in them.
 */
#include "common.h"

static long rounds = 12;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of the whole list" },
	{ 0 },
};

enum { ALIVE = 60, LEN = 5000 };

/* One round the ring of @comm and one reduction; @id is in the seeds. */
static void use(MPI_Comm comm, int id, size_t len, long round)
{
	int me, n, to, from;
	char *in = mt_alloc(len), *out = mt_alloc(len);
	uint64_t one, sum = 0;
	MPI_Status st;

	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &n);
	to = (me + 1) % n;
	from = (me + n - 1) % n;
	mt_fill(out, len, mt_seed(me, to, id, round));
	MPI_Sendrecv(out, (int)len, MPI_BYTE, to, 1, in, (int)len, MPI_BYTE,
		     from, 1, comm, &st);
	mt_status(&st, from, 1, len);
	mt_verify(in, len, mt_seed(from, me, id, round));
	mt_sent(1, len);
	one = (uint64_t)me + 1;
	MPI_Allreduce(&one, &sum, 1, MPI_UINT64_T, MPI_SUM, comm);
	mt_check(sum == (uint64_t)n * ((uint64_t)n + 1) / 2,
		 "communicator %d: sum %lu over %d ranks", id,
		 (unsigned long)sum, n);
	mt_free(in);
	mt_free(out);
}

/* ---- made, used, freed --------------------------------------------- */

static void dup_loop(long round)
{
	MPI_Comm comm, next;
	MPI_Request req;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int i = 0; i < 20; i++) {
		if (i & 1) {
			MPI_Comm_dup(comm, &next);
		} else {
			MPI_Comm_idup(comm, &next, &req);
			MPI_Wait(&req, MPI_STATUS_IGNORE);
		}
		MPI_Comm_free(&comm);
		comm = next;
		use(comm, i, 100, round);
	}
	MPI_Comm_free(&comm);
}

/* Splits by @colors colours, ranks in falling order, down to one each. */
static void split_down(MPI_Comm parent, int depth, long round)
{
	int me, n, order = 0, got;
	MPI_Comm comm;

	MPI_Comm_rank(parent, &me);
	MPI_Comm_size(parent, &n);
	MPI_Comm_split(parent, me % 2, -me, &comm);
	MPI_Comm_rank(comm, &got);
	for (int r = me + 1; r < n; r++)
		order += r % 2 == me % 2;
	mt_check(got == order, "depth %d: rank %d, expected %d", depth, got,
		 order);
	use(comm, 100 + depth, 3000, round);
	MPI_Comm_size(comm, &got);
	if (got > 1)
		split_down(comm, depth + 1, round);
	MPI_Comm_free(&comm);
}

static void split_others(long round)
{
	MPI_Comm comm;

	MPI_Comm_split(MPI_COMM_WORLD, mt_rank ? 1 : MPI_UNDEFINED, 0, &comm);
	mt_check((comm == MPI_COMM_NULL) == !mt_rank, "undefined colour");
	if (comm != MPI_COMM_NULL) {
		use(comm, 200, 70000, round);
		MPI_Comm_free(&comm);
	}
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
			    MPI_INFO_NULL, &comm);
	use(comm, 201, 41, round);
	MPI_Comm_free(&comm);
}

static void groups(long round)
{
	int first[1][3] = { { 0, mt_size - 1, 2 } };
	MPI_Group world, even;
	MPI_Comm comm;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_range_incl(world, 1, first, &even);
	MPI_Comm_create(MPI_COMM_WORLD, even, &comm);
	mt_check((comm == MPI_COMM_NULL) == mt_rank % 2, "Comm_create");
	if (comm != MPI_COMM_NULL) {
		use(comm, 300, LEN, round);
		MPI_Comm_free(&comm);
		MPI_Comm_create_group(MPI_COMM_WORLD, even, 5, &comm);
		use(comm, 301, LEN, round);
		MPI_Comm_free(&comm);
	}
	MPI_Group_free(&even);
	MPI_Group_free(&world);
}

/* ---- many at once -------------------------------------------------- */

/* The message of communicator @i goes with the same tag in all of them. */
static void flood(MPI_Comm *comm, char *out, MPI_Request *req, int to,
		  long round)
{
	for (int i = 0; i < ALIVE; i++) {
		mt_fill(out + i * LEN, LEN, mt_seed(mt_rank, to, i, round));
		MPI_Isend(out + i * LEN, LEN, MPI_BYTE, to, 1, comm[i],
			  &req[i]);
		mt_sent(1, LEN);
	}
}

static void drain(MPI_Comm *comm, char *in, int from, long round)
{
	MPI_Status st;

	/* 23 and ALIVE have no common divisor: every one is visited. */
	for (int k = 0; k < ALIVE; k++) {
		int i = (k * 23 + 7) % ALIVE;

		MPI_Recv(in, LEN, MPI_BYTE, k & 1 ? MPI_ANY_SOURCE : from,
			 k & 2 ? MPI_ANY_TAG : 1, comm[i], &st);
		mt_status(&st, from, 1, LEN);
		mt_verify(in, LEN, mt_seed(from, mt_rank, i, round));
	}
}

static void many(long round)
{
	int to = (mt_rank + 1) % mt_size;
	int from = (mt_rank + mt_size - 1) % mt_size;
	char *in = mt_alloc(LEN), *out = mt_alloc(ALIVE * LEN);
	MPI_Request req[ALIVE];
	MPI_Comm comm[ALIVE];

	for (int i = 0; i < ALIVE; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
	flood(comm, out, req, to, round);
	MPI_Barrier(MPI_COMM_WORLD);
	drain(comm, in, from, round);
	MPI_Waitall(ALIVE, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < ALIVE; i++)
		MPI_Comm_free(&comm[(i * 7) % ALIVE]);
	mt_free(in);
	mt_free(out);
}

/* ---- intercommunicators -------------------------------------------- */

/* Every rank to every rank of the other side, one message each way. */
static void talk(MPI_Comm inter, size_t len, long round)
{
	char *in = mt_alloc(len), *out = mt_alloc(len);
	MPI_Request req;
	MPI_Status st;
	int me, there;

	MPI_Comm_rank(inter, &me);
	MPI_Comm_remote_size(inter, &there);
	for (int r = 0; r < there; r++) {
		mt_fill(out, len, mt_seed(me, r, 4, round));
		MPI_Isend(out, (int)len, MPI_BYTE, r, 4, inter, &req);
		MPI_Recv(in, (int)len, MPI_BYTE, r, MPI_ANY_TAG, inter, &st);
		mt_status(&st, r, 4, len);
		mt_verify(in, len, mt_seed(r, me, 4, round));
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		mt_sent(1, len);
	}
	mt_free(in);
	mt_free(out);
}

/* Each side gets the other side's sum. */
static void inter_sum(MPI_Comm inter, int side)
{
	int me, there;
	long own, sum = 0;

	MPI_Comm_rank(inter, &me);
	MPI_Comm_remote_size(inter, &there);
	own = side * 1000 + me;
	MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, inter);
	mt_check(sum == (1 - side) * 1000L * there +
				 (long)there * (there - 1) / 2,
		 "the other side's sum is %ld", sum);
}

static void inter_bcast(MPI_Comm inter, int side, long round)
{
	char *buf = mt_alloc(LEN);
	int me, root;

	MPI_Comm_rank(inter, &me);
	root = side ? 0 : me ? MPI_PROC_NULL : MPI_ROOT;
	if (root == MPI_ROOT)
		mt_fill(buf, LEN, mt_seed(0, 0, 6, round));
	MPI_Bcast(buf, LEN, MPI_BYTE, root, inter);
	if (side)
		mt_verify(buf, LEN, mt_seed(0, 0, 6, round));
	mt_free(buf);
}

static void inter(long round)
{
	int side = mt_rank >= (mt_size + 1) / 2;
	MPI_Comm half, inter, whole;
	int me;

	MPI_Comm_split(MPI_COMM_WORLD, side, mt_rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD,
			     side ? 0 : (mt_size + 1) / 2, 99, &inter);
	talk(inter, 8, round);
	talk(inter, 70001, round);
	inter_sum(inter, side);
	inter_bcast(inter, side, round);
	MPI_Intercomm_merge(inter, side, &whole);
	MPI_Comm_rank(whole, &me);
	mt_check(me == mt_rank, "rank %d after the merge", me);
	use(whole, 400, LEN, round);
	MPI_Comm_free(&whole);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
}

static void one_round(long round)
{
	dup_loop(round);
	split_down(MPI_COMM_WORLD, 0, round);
	split_others(round);
	groups(round);
	many(round);
	if (mt_size > 1)
		inter(round);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"comms: communicators made, used side by side and freed", opts);
	for (long r = 0; r < mt_rounds(rounds); r++)
		one_round(r);
	return mt_end("comms");
}
