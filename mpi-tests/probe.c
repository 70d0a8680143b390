/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Probe, Iprobe, Mprobe and Improbe, with and without wildcards, many to one
 * and from a rank to itself: every message is found, once, with the right
 * length, and nothing is lost.
 */
#include "common.h"

static long rounds = 14;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of the whole list" },
	{ 0 },
};

enum {
	PER_RANK = 20,	     /* messages each rank sends to the collector */
	SELF_TAG = PER_RANK, /* of messages to oneself */
	MAX_LEN = 150000,
};

enum way { PROBE, IPROBE, MPROBE, IMPROBE, WAYS };

static const MPI_Comm world = MPI_COMM_WORLD;

static size_t len_of(int src, int tag, long round)
{
	static const size_t list[] = {
		0, 5, 40, 41, 4096, 5000, 66000, MAX_LEN
	};

	return list[mt_seed(src, 0, tag, round) % 8];
}

/* Waits for a message in the way @how; *@msg is set by the last two. */
static void find(enum way how, int src, int tag, MPI_Message *msg,
		 MPI_Status *st)
{
	int flag = 0;

	if (how == PROBE)
		MPI_Probe(src, tag, world, st);
	else if (how == MPROBE)
		MPI_Mprobe(src, tag, world, msg, st);
	while (how == IPROBE && !flag)
		MPI_Iprobe(src, tag, world, &flag, st);
	while (how == IMPROBE && !flag)
		MPI_Improbe(src, tag, world, &flag, msg, st);
}

/* Receives exactly what find() found; sometimes by Imrecv. */
static void take(enum way how, char *in, const MPI_Status *found,
		 MPI_Message *msg, MPI_Status *st)
{
	MPI_Request req;
	int len;

	MPI_Get_count(found, MPI_BYTE, &len);
	if (how < MPROBE) {
		MPI_Recv(in, len, MPI_BYTE, found->MPI_SOURCE, found->MPI_TAG,
			 world, st);
	} else if (len & 1) {
		MPI_Mrecv(in, len, MPI_BYTE, msg, st);
	} else {
		MPI_Imrecv(in, len, MPI_BYTE, msg, &req);
		MPI_Wait(&req, st);
	}
	if (how >= MPROBE)
		mt_check(*msg == MPI_MESSAGE_NULL, "the message handle is set");
}

static void take_checked(enum way how, int src, int tag, long round,
			 MPI_Status *st)
{
	MPI_Message msg = MPI_MESSAGE_NULL;
	MPI_Status found;
	size_t len;
	char *in;

	find(how, src, tag, &msg, &found);
	len = len_of(found.MPI_SOURCE, found.MPI_TAG, round);
	mt_status(&found, found.MPI_SOURCE, found.MPI_TAG, len);
	in = mt_alloc(len);
	take(how, in, &found, &msg, st);
	mt_status(st, found.MPI_SOURCE, found.MPI_TAG, len);
	mt_verify(in, len,
		  mt_seed(st->MPI_SOURCE, mt_rank, st->MPI_TAG, round));
	mt_free(in);
}

/* ---- many to one --------------------------------------------------- */

static void send_all(char *out, MPI_Request *req, int to, long round)
{
	for (int tag = 0; tag < PER_RANK; tag++) {
		size_t len = len_of(mt_rank, tag, round);
		char *p = out + (size_t)tag * MAX_LEN;

		mt_fill(p, len, mt_seed(mt_rank, to, tag, round));
		MPI_Isend(p, (int)len, MPI_BYTE, to, tag, world, &req[tag]);
		mt_sent(1, len);
	}
}

/* All from any source, any tag: each (source, tag) comes once, in order. */
static void collect_any(enum way how, long round)
{
	int next[256] = { 0 };
	MPI_Status st;

	for (int i = 0; i < PER_RANK * mt_size; i++) {
		take_checked(how, MPI_ANY_SOURCE, MPI_ANY_TAG, round, &st);
		mt_check(st.MPI_TAG == next[st.MPI_SOURCE],
			 "rank %d: message %d came, expected %d", st.MPI_SOURCE,
			 st.MPI_TAG, next[st.MPI_SOURCE]);
		next[st.MPI_SOURCE]++;
	}
}

/* From the last tag to the first, by turns with each wildcard. */
static void collect_backwards(enum way how, long round)
{
	MPI_Status st;

	for (int tag = PER_RANK - 1; tag >= 0; tag--)
		for (int src = 0; src < mt_size; src++)
			take_checked(how, tag & 1 ? MPI_ANY_SOURCE : src, tag,
				     round, &st);
}

static void many_to_one(enum way how, int collector, long round)
{
	char *out = mt_alloc((size_t)PER_RANK * MAX_LEN);
	MPI_Request req[PER_RANK];

	send_all(out, req, collector, round);
	if (mt_rank == collector && round % 2)
		collect_backwards(how, round);
	else if (mt_rank == collector)
		collect_any(how, round);
	MPI_Waitall(PER_RANK, req, MPI_STATUSES_IGNORE);
	MPI_Barrier(world);
	mt_free(out);
}

/* ---- to oneself ---------------------------------------------------- */

static void self(enum way how, size_t len, long round)
{
	char *out = mt_alloc(len), *in = mt_alloc(len);
	MPI_Message msg = MPI_MESSAGE_NULL;
	MPI_Status found, st;
	MPI_Request req;

	mt_fill(out, len, mt_seed(mt_rank, mt_rank, SELF_TAG, round));
	MPI_Isend(out, (int)len, MPI_BYTE, mt_rank, SELF_TAG, world, &req);
	find(how, round & 1 ? MPI_ANY_SOURCE : mt_rank, SELF_TAG, &msg, &found);
	mt_status(&found, mt_rank, SELF_TAG, len);
	take(how, in, &found, &msg, &st);
	mt_status(&st, mt_rank, SELF_TAG, len);
	mt_verify(in, len, mt_seed(mt_rank, mt_rank, SELF_TAG, round));
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	mt_sent(1, len);
	mt_free(in);
	mt_free(out);
}

/* ---- the rest ------------------------------------------------------ */

/* Nothing there: no message may be invented, and none is for a null rank. */
static void nothing(void)
{
	MPI_Message msg;
	MPI_Status st;
	int flag;

	MPI_Iprobe(MPI_ANY_SOURCE, 4711, world, &flag, &st);
	mt_check(!flag, "Iprobe found what nobody sent");
	MPI_Improbe(MPI_ANY_SOURCE, 4711, world, &flag, &msg, &st);
	mt_check(!flag, "Improbe found what nobody sent");
	MPI_Probe(MPI_PROC_NULL, 1, world, &st);
	mt_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	MPI_Mprobe(MPI_PROC_NULL, 1, world, &msg, &st);
	mt_check(msg == MPI_MESSAGE_NO_PROC, "Mprobe of a null process");
	MPI_Mrecv(NULL, 0, MPI_BYTE, &msg, &st);
	mt_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

static void send_pattern(char *out, int to, int tag, size_t len, long round,
			 MPI_Request *req)
{
	mt_fill(out, len, mt_seed(mt_rank, to, tag, round));
	MPI_Isend(out, (int)len, MPI_BYTE, to, tag, world, req);
	mt_sent(1, len);
}

static void recv_pattern(int from, int tag, size_t len, long round)
{
	char *in = mt_alloc(len);
	MPI_Status st;

	MPI_Recv(in, (int)len, MPI_BYTE, from, MPI_ANY_TAG, world, &st);
	mt_status(&st, from, tag, len);
	mt_verify(in, len, mt_seed(from, mt_rank, tag, round));
	mt_free(in);
}

/* A claimed message is no longer there for anybody else. */
static void claimed_is_gone(size_t len, long round)
{
	MPI_Request req[2];
	MPI_Message msg;
	MPI_Status st;
	char *in, *out;

	if (mt_rank == 0) {
		out = mt_alloc(2 * len);
		send_pattern(out, 1, 1, len, round, &req[0]);
		send_pattern(out + len, 1, 2, len, round, &req[1]);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		mt_free(out);
	} else if (mt_rank == 1) {
		in = mt_alloc(len);
		MPI_Mprobe(0, MPI_ANY_TAG, world, &msg, &st);
		mt_status(&st, 0, 1, len);
		recv_pattern(0, 2, len, round);
		MPI_Mrecv(in, (int)len, MPI_BYTE, &msg, &st);
		mt_status(&st, 0, 1, len);
		mt_verify(in, len, mt_seed(0, 1, 1, round));
		mt_free(in);
	}
	MPI_Barrier(world);
}

/* A probed message stays, and is found again. */
static void probed_stays(long round)
{
	MPI_Request req;
	MPI_Status st;
	char out[777];
	int flag;

	if (mt_rank == 0) {
		send_pattern(out, 1, 6, 777, round, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	} else if (mt_rank == 1) {
		for (int i = 0; i < 5; i++) {
			MPI_Probe(0, MPI_ANY_TAG, world, &st);
			mt_status(&st, 0, 6, 777);
			MPI_Iprobe(0, 6, world, &flag, &st);
			mt_check(flag, "the probed message has gone");
		}
		recv_pattern(0, 6, 777, round);
		MPI_Iprobe(0, 6, world, &flag, &st);
		mt_check(!flag, "a received message is still found");
	}
	MPI_Barrier(world);
}

static void one_round(long round)
{
	static const size_t list[] = { 0, 8, 41, 4097, MAX_LEN, 4 << 20 };

	for (int how = 0; how < WAYS; how++) {
		many_to_one((enum way)how, (int)(round % mt_size), round);
		for (size_t i = 0; i < 6; i++)
			self((enum way)how, list[i], round);
	}
	nothing();
	if (mt_size == 1)
		return;
	for (size_t i = 0; i < 5; i++)
		claimed_is_gone(list[i], round);
	probed_stays(round);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"probe: all kinds of probe, nothing found twice or lost", opts);
	mt_check(mt_size <= 256, "at most 256 ranks");
	for (long r = 0; r < mt_rounds(rounds); r++)
		one_round(r);
	return mt_end("probe (case_P16)");
}
