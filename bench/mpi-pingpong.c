/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * mpi-pingpong: latency, bandwidth and message rate between two MPI ranks.
 *
 * Rank 0 leads, rank 1 follows. A message is written before it is sent and
 * looked at when it has arrived; the time of writing long ones is taken out of
 * the result (payload.h). Errors of MPI end the job, which is its default.
 */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/clock.h"
#include "bench/options.h"
#include "bench/payload.h"
#include "bench/session.h"

enum {
	TAG_DATA = 1, /* what is measured */
	TAG_ANSWER,   /* the end of a window */
	TAG_NUMBER,   /* what bench_batch agrees on */
	BUFFER_ALIGN = 4096,
	OUT_SHIFT = 1024, /* out[] starts in other cache sets than in[] */
};

/* One rank. */
struct pair {
	int rank;		      /* 0 leads, 1 follows */
	int peer;		      /* the other one */
	struct bench_order order;     /* what is measured now */
	unsigned int window;	      /* messages of a round, one direction */
	struct bench_payload payload; /* how messages are written */
	unsigned char mark;	      /* of the last message written */
	unsigned char *in;	      /* window * size bytes, room_in long */
	unsigned char *out;	      /* size bytes, in the block out_block */
	unsigned char *out_block;     /* to be freed */
	size_t room_in;		      /* bytes at in */
	size_t room_out;	      /* bytes at out */
	/* MPI_STATUSES_IGNORE, kept here because gcc takes MPICH's, seen as a
	 * constant, for an array that is too small. */
	MPI_Status *no_statuses;
};

static _Noreturn void job_end(const char *why)
{
	fprintf(stderr, "mpi-pingpong: %s\n", why);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

static int number_put(void *ctx, uint64_t value)
{
	struct pair *pair = ctx;

	MPI_Send(&value, 1, MPI_UINT64_T, pair->peer, TAG_NUMBER,
		 MPI_COMM_WORLD);
	return 0;
}

static int number_get(void *ctx, uint64_t *value)
{
	struct pair *pair = ctx;

	MPI_Recv(value, 1, MPI_UINT64_T, pair->peer, TAG_NUMBER, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	return 0;
}

static inline void message_send(struct pair *pair)
{
	bench_payload_write(&pair->payload, pair->out, pair->order.size,
			    ++pair->mark);
	MPI_Send(pair->out, (int)pair->order.size, MPI_BYTE, pair->peer,
		 TAG_DATA, MPI_COMM_WORLD);
}

static inline void message_recv(struct pair *pair)
{
	MPI_Recv(pair->in, (int)pair->order.size, MPI_BYTE, pair->peer,
		 TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Both sides count the rounds alike, so each knows the other's mark. */
static inline void message_check(const struct pair *pair, unsigned char mark)
{
	if (!bench_payload_ends(pair->in, pair->order.size, mark))
		job_end("a message arrived with wrong bytes");
}

static void whole_check(const struct pair *pair)
{
	if (!bench_payload_whole(&pair->payload, pair->in, pair->order.size,
				 pair->mark))
		job_end("a message arrived with wrong bytes inside");
}

static inline void latency_lead_round(struct pair *pair)
{
	message_send(pair);
	message_recv(pair);
	message_check(pair, pair->mark);
}

static int latency_lead(void *ctx, uint64_t rounds, uint64_t *ns)
{
	struct pair *pair = ctx;
	uint64_t begin;
	uint64_t i;

	latency_lead_round(pair);
	pair->payload.spent_ns = 0;
	begin = bench_clock_ns();
	for (i = 0; i < rounds; i++)
		latency_lead_round(pair);
	*ns = bench_clock_ns() - begin - pair->payload.spent_ns;
	whole_check(pair);
	return 0;
}

static inline void latency_follow_round(struct pair *pair)
{
	message_recv(pair);
	message_check(pair, (unsigned char)(pair->mark + 1));
	message_send(pair);
}

static int latency_follow(void *ctx, uint64_t rounds, uint64_t *ns)
{
	struct pair *pair = ctx;
	uint64_t i;

	latency_follow_round(pair);
	pair->payload.spent_ns = 0;
	for (i = 0; i < rounds; i++)
		latency_follow_round(pair);
	whole_check(pair);
	*ns = pair->payload.spent_ns;
	return 0;
}

static void window_send(struct pair *pair)
{
	MPI_Request request[BENCH_WINDOW];
	unsigned int i;

	bench_payload_write(&pair->payload, pair->out, pair->order.size,
			    ++pair->mark);
	for (i = 0; i < pair->window; i++)
		MPI_Isend(pair->out, (int)pair->order.size, MPI_BYTE,
			  pair->peer, TAG_DATA, MPI_COMM_WORLD, &request[i]);
	MPI_Waitall((int)pair->window, request, pair->no_statuses);
}

static void window_recv(struct pair *pair)
{
	MPI_Request request[BENCH_WINDOW];
	unsigned int i;

	for (i = 0; i < pair->window; i++)
		MPI_Irecv(pair->in + i * pair->order.size,
			  (int)pair->order.size, MPI_BYTE, pair->peer, TAG_DATA,
			  MPI_COMM_WORLD, &request[i]);
	MPI_Waitall((int)pair->window, request, pair->no_statuses);
}

static void window_check(struct pair *pair)
{
	unsigned int i;

	pair->mark++;
	for (i = 0; i < pair->window; i++)
		if (!bench_payload_ends(pair->in + i * pair->order.size,
					pair->order.size, pair->mark))
			job_end("a message of a window has wrong bytes");
}

static inline void window_lead_round(struct pair *pair)
{
	window_send(pair);
	MPI_Recv(NULL, 0, MPI_BYTE, pair->peer, TAG_ANSWER, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

static int window_lead(void *ctx, uint64_t rounds, uint64_t *ns)
{
	struct pair *pair = ctx;
	uint64_t begin;
	uint64_t i;

	window_lead_round(pair);
	pair->payload.spent_ns = 0;
	begin = bench_clock_ns();
	for (i = 0; i < rounds; i++)
		window_lead_round(pair);
	*ns = bench_clock_ns() - begin - pair->payload.spent_ns;
	return 0;
}

static int window_follow(void *ctx, uint64_t rounds, uint64_t *ns)
{
	struct pair *pair = ctx;
	uint64_t i;

	for (i = 0; i < rounds + 1; i++) {
		window_recv(pair);
		window_check(pair);
		MPI_Send(NULL, 0, MPI_BYTE, pair->peer, TAG_ANSWER,
			 MPI_COMM_WORLD);
	}
	*ns = 0;
	return 0;
}

static unsigned char *room_make(size_t size)
{
	void *room;

	if (posix_memalign(&room, BUFFER_ALIGN, size))
		job_end("not enough memory for the buffers");
	return room;
}

static void buffers_grow(struct pair *pair)
{
	size_t in = pair->window * pair->order.size + 1;
	size_t out = pair->order.size + 1;

	if (in > pair->room_in) {
		free(pair->in);
		pair->in = room_make(in);
		pair->room_in = in;
	}
	if (out > pair->room_out) {
		free(pair->out_block);
		pair->out_block = room_make(out + OUT_SHIFT);
		pair->out = pair->out_block + OUT_SHIFT;
		pair->room_out = out;
	}
}

static int order_begin(void *ctx, const struct bench_order *order,
		       struct bench_side *side)
{
	struct pair *pair = ctx;

	pair->order = *order;
	pair->window = bench_order_window(order);
	buffers_grow(pair);
	side->ctx = pair;
	side->put = number_put;
	side->get = number_get;
	if (order->kind == BENCH_LAT)
		side->run = pair->rank ? latency_follow : latency_lead;
	else
		side->run = pair->rank ? window_follow : window_lead;
	return order->kind > BENCH_RATE ? -ENOTSUP : 0;
}

static int rank_run(const struct bench_options *options, int rank)
{
	struct pair pair = {
		.rank = rank,
		.peer = !rank,
		.no_statuses = MPI_STATUSES_IGNORE,
	};
	struct bench_session session = {
		.options = options,
		.title = "mpi-pingpong",
		.side = rank,
		.begin = order_begin,
		.ctx = &pair,
	};
	int rc;

	bench_payload_init(&pair.payload, options->rewrite);
	MPI_Barrier(MPI_COMM_WORLD);
	rc = bench_session_run(&session);
	free(pair.in);
	free(pair.out_block);
	return rc;
}

static const struct bench_program program = {
	.name = "mpi-pingpong",
	.about = "Messages between two MPI ranks: one way latency, bandwidth,\n"
		 "rate of messages in windows of 64. Run it by mpirun -n 2.\n",
	.kinds = "lat,bw,rate",
	.sizes = "8,64,256,1K,4K,16K,32K,64K,256K,1M,2M,4M",
};

int main(int argc, char **argv)
{
	struct bench_options options;
	int ranks;
	int rank;
	int rc;

	rc = bench_options_parse(&options, &program, argc, argv);
	if (rc)
		return rc < 0 ? 2 : 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2)
		job_end("needs exactly two ranks (mpirun -n 2)");
	if (bench_pin_self(options.pin.cpu[rank]))
		job_end("could not be bound to its core");
	if (rank_run(&options, rank))
		job_end("stopped");
	MPI_Finalize();
	return 0;
}
