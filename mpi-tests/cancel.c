/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Cancelling receives: one that nothing matches is cancelled and its buffer
 * never written; one that races with a message is either cancelled, and the
 * message is still there, or has it; one that is complete stays so.
 */
#include "common.h"

static long rounds = 25;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of the whole list" },
	{ 0 },
};

enum { MANY = 40, LEN = 5000 };

static const MPI_Comm world = MPI_COMM_WORLD;

static bool cancel_wait(MPI_Request *req, MPI_Status *st)
{
	int cancelled;

	MPI_Cancel(req);
	MPI_Wait(req, st);
	MPI_Test_cancelled(st, &cancelled);
	return cancelled;
}

/* The buffer holds the pattern @seed; nothing comes. */
static void unmatched(int src, int tag, size_t len)
{
	uint64_t seed = mt_seed(mt_rank, 77, tag, 0);
	char *in = mt_alloc(len);
	MPI_Request req;
	MPI_Status st;

	mt_fill(in, len, seed);
	MPI_Irecv(in, (int)len, MPI_BYTE, src, tag, world, &req);
	mt_check(cancel_wait(&req, &st), "a lone receive was not cancelled");
	mt_verify(in, len, seed);
	mt_free(in);
}

/* Every other receive of many is cancelled; the messages fill the rest. */
static void holes(int src, long round)
{
	int to = (mt_rank + 1) % mt_size;
	int from = (mt_rank + mt_size - 1) % mt_size;
	char *in = mt_alloc(MANY * 64), out[64];
	MPI_Request req[MANY];
	MPI_Status st;

	for (int i = 0; i < MANY; i++)
		MPI_Irecv(in + i * 64, 64, MPI_BYTE, src, 8, world, &req[i]);
	for (int i = 0; i < MANY; i += 2)
		mt_check(cancel_wait(&req[i], &st), "not cancelled");
	MPI_Barrier(world);
	for (int i = 1; i < MANY; i += 2) {
		mt_fill(out, 64, mt_seed(mt_rank, to, i, round));
		MPI_Send(out, 64, MPI_BYTE, to, 8, world);
		mt_sent(1, 64);
	}
	for (int i = 1; i < MANY; i += 2) {
		MPI_Wait(&req[i], &st);
		mt_status(&st, from, 8, 64);
		mt_verify(in + i * 64, 64, mt_seed(from, mt_rank, i, round));
	}
	MPI_Barrier(world);
	mt_free(in);
}

/* A matched and completed receive cannot be cancelled. */
static void too_late(size_t len, long round)
{
	int to = (mt_rank + 1) % mt_size, flag;
	int from = (mt_rank + mt_size - 1) % mt_size;
	char *in = mt_alloc(len), *out = mt_alloc(len);
	MPI_Request req, sreq;
	MPI_Status st;

	mt_fill(out, len, mt_seed(mt_rank, to, 9, round));
	MPI_Irecv(in, (int)len, MPI_BYTE, from, 9, world, &req);
	MPI_Isend(out, (int)len, MPI_BYTE, to, 9, world, &sreq);
	do {
		MPI_Request_get_status(req, &flag, MPI_STATUS_IGNORE);
	} while (!flag);
	mt_check(!cancel_wait(&req, &st), "a complete receive was cancelled");
	mt_status(&st, from, 9, len);
	mt_verify(in, len, mt_seed(from, mt_rank, 9, round));
	MPI_Wait(&sreq, MPI_STATUS_IGNORE);
	mt_sent(1, len);
	mt_free(in);
	mt_free(out);
}

/* The message and the cancel meet: one outcome, and no byte is lost. */
static void race(int src, size_t len, long round)
{
	int to = (mt_rank + 1) % mt_size;
	int from = (mt_rank + mt_size - 1) % mt_size;
	uint64_t before = mt_seed(mt_rank, 78, 0, round), spin = before % 400;
	char *in = mt_alloc(len), *out = mt_alloc(len);
	MPI_Request req, sreq;
	MPI_Status st;

	mt_fill(in, len, before);
	mt_fill(out, len, mt_seed(mt_rank, to, 10, round));
	MPI_Barrier(world);
	MPI_Irecv(in, (int)len, MPI_BYTE, src, 10, world, &req);
	MPI_Isend(out, (int)len, MPI_BYTE, to, 10, world, &sreq);
	while (spin--)
		mt_random(&before);
	if (cancel_wait(&req, &st)) {
		mt_verify(in, len, mt_seed(mt_rank, 78, 0, round));
		MPI_Recv(in, (int)len, MPI_BYTE, from, 10, world, &st);
	}
	mt_status(&st, from, 10, len);
	mt_verify(in, len, mt_seed(from, mt_rank, 10, round));
	MPI_Wait(&sreq, MPI_STATUS_IGNORE);
	mt_sent(1, len);
	mt_free(in);
	mt_free(out);
}

/* A persistent receive: cancelled, started again, filled. */
static void persistent(long round)
{
	int to = (mt_rank + 1) % mt_size, cancelled;
	int from = (mt_rank + mt_size - 1) % mt_size;
	char in[64], out[64];
	MPI_Request req;
	MPI_Status st;

	MPI_Recv_init(in, 64, MPI_BYTE, from, 11, world, &req);
	MPI_Start(&req);
	MPI_Cancel(&req);
	MPI_Wait(&req, &st);
	MPI_Test_cancelled(&st, &cancelled);
	mt_check(cancelled, "a persistent receive was not cancelled");
	MPI_Barrier(world);
	MPI_Start(&req);
	mt_fill(out, 64, mt_seed(mt_rank, to, 11, round));
	MPI_Send(out, 64, MPI_BYTE, to, 11, world);
	mt_sent(1, 64);
	MPI_Wait(&req, &st);
	MPI_Test_cancelled(&st, &cancelled);
	mt_check(!cancelled, "a restarted receive says it was cancelled");
	mt_status(&st, from, 11, 64);
	mt_verify(in, 64, mt_seed(from, mt_rank, 11, round));
	MPI_Request_free(&req);
}

static void one_round(long round)
{
	static const size_t list[] = { 0, 8, LEN, 100000, 1000000 };

	for (size_t i = 0; i < 5; i++) {
		unmatched(MPI_ANY_SOURCE, 4711, list[i]);
		unmatched((mt_rank + 1) % mt_size, 4712, list[i]);
		unmatched(mt_rank, 4713, list[i]);
		too_late(list[i], round);
		race(MPI_ANY_SOURCE, list[i], round);
		race((mt_rank + mt_size - 1) % mt_size, list[i], round);
	}
	holes(MPI_ANY_SOURCE, round);
	holes((mt_rank + mt_size - 1) % mt_size, round);
	persistent(round);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"cancel: receives cancelled before, while and after matching",
		opts);
	for (long r = 0; r < mt_rounds(rounds); r++)
		one_round(r);
	return mt_end("cancel (case_P15)");
}
