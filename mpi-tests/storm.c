/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Ssend storm: every rank has many synchronous sends to every other rank
 * outstanding at once, both ways. MPI answers each of them from inside its
 * completion callback; a send that is refused there breaks Open MPI 4.1.
 */
#include "common.h"

static long rounds = 200;
static long window = 64;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "storms" },
	{ "window", &window, "synchronous sends to each rank, outstanding" },
	{ 0 },
};

/* One storm of this rank. */
struct storm {
	long n;		  /* messages each way, all peers together */
	MPI_Request *req; /* 2 n: receives, then sends */
	char *in, *out;	  /* n slots each */
	long round;	  /* number of the storm */
};

enum { SLOT = 8192 };

/* Peer and tag of the message @i of a storm. */
static int peer_of(long i)
{
	return (int)(i % (mt_size - 1) + mt_rank + 1) % mt_size;
}

static int tag_of(long i)
{
	return (int)(i / (mt_size - 1));
}

static size_t len_of(int src, int dst, int tag, long round)
{
	static const size_t list[] = {
		0, 1, 8, 8, 33, 41, 100, 600, 4097, SLOT
	};

	return list[mt_seed(src, dst, tag, round) % 10];
}

static void post_recvs(struct storm *s)
{
	for (long i = 0; i < s->n; i++)
		MPI_Irecv(s->in + i * SLOT, SLOT, MPI_BYTE, peer_of(i),
			  tag_of(i), MPI_COMM_WORLD, &s->req[i]);
}

static void post_sends(struct storm *s)
{
	for (long i = 0; i < s->n; i++) {
		int to = peer_of(i), tag = tag_of(i);
		size_t len = len_of(mt_rank, to, tag, s->round);

		mt_fill(s->out + i * SLOT, len,
			mt_seed(mt_rank, to, tag, s->round));
		MPI_Issend(s->out + i * SLOT, (int)len, MPI_BYTE, to, tag,
			   MPI_COMM_WORLD, &s->req[s->n + i]);
		/* The data, and the answer to what comes the other way. */
		mt_sent(2, len);
	}
}

static void check(struct storm *s, const MPI_Status *st)
{
	for (long i = 0; i < s->n; i++) {
		int from = peer_of(i), tag = tag_of(i);
		size_t len = len_of(from, mt_rank, tag, s->round);

		mt_status(&st[i], from, tag, len);
		mt_verify(s->in + i * SLOT, len,
			  mt_seed(from, mt_rank, tag, s->round));
	}
}

/* Odd storms post their receives late: all messages are unexpected. */
static void blow(struct storm *s, MPI_Status *st)
{
	if (s->round & 1) {
		post_sends(s);
		post_recvs(s);
	} else {
		post_recvs(s);
		post_sends(s);
	}
	MPI_Waitall((int)(2 * s->n), s->req, st);
	check(s, st);
}

int main(int argc, char **argv)
{
	struct storm s = { 0 };
	MPI_Status *st;

	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"storm: many synchronous sends each way (2 ranks or more)",
		opts);
	mt_check(mt_size > 1, "needs 2 ranks");
	s.n = window * (mt_size - 1);
	s.req = mt_alloc(2 * (size_t)s.n * sizeof(*s.req));
	st = mt_alloc(2 * (size_t)s.n * sizeof(*st));
	s.in = mt_alloc((size_t)s.n * SLOT);
	s.out = mt_alloc((size_t)s.n * SLOT);
	for (s.round = 0; s.round < mt_rounds(rounds); s.round++)
		blow(&s, st);
	mt_free(s.req);
	mt_free(st);
	mt_free(s.in);
	mt_free(s.out);
	return mt_end("storm");
}
