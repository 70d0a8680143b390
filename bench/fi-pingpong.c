/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * fi-pingpong: one way time of tagged messages over a libfabric provider.
 *
 * The parent leads, its child follows; the fork comes before any call of
 * libfabric. A socket between them carries names and numbers, never what is
 * measured. As in libfabric's fi_pingpong the receive is posted again before
 * the answer is sent.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/clock.h"
#include "bench/fi-pair.h"
#include "bench/options.h"
#include "bench/payload.h"
#include "bench/session.h"

enum {
	ROOM_LEAST = 4 << 20, /* room for messages, bytes, at least */
	BUFFER_ALIGN = 4096,
	OUT_SHIFT = 1024, /* out starts in other cache sets than in */
};

/* One of the two processes. */
struct peer {
	int side;		      /* 0 leads, 1 follows */
	int fd;			      /* socket to the other process */
	struct bench_fi_pair pair;    /* the endpoint */
	struct bench_order order;     /* what is measured now */
	struct bench_payload payload; /* how messages are written */
	unsigned char mark;	      /* of the last message written */
	unsigned char *in;	      /* room bytes, the posted receive */
	unsigned char *out;	      /* room bytes */
	unsigned char *block;	      /* both; to be freed */
	size_t room;		      /* largest message */
};

static int number_put(void *ctx, uint64_t value)
{
	struct peer *peer = ctx;

	if (write(peer->fd, &value, sizeof(value)) != sizeof(value))
		return -EPIPE;
	return 0;
}

static int number_get(void *ctx, uint64_t *value)
{
	struct peer *peer = ctx;

	if (recv(peer->fd, value, sizeof(*value), MSG_WAITALL) !=
	    sizeof(*value))
		return -EPIPE;
	return 0;
}

static inline int message_send(struct peer *peer)
{
	bench_payload_write(&peer->payload, peer->out, peer->order.size,
			    ++peer->mark);
	if (peer->order.kind == BENCH_INJECT)
		return bench_fi_inject(&peer->pair, peer->out,
				       peer->order.size);
	return bench_fi_send(&peer->pair, peer->out, peer->order.size);
}

static int bytes_wrong(void)
{
	fprintf(stderr, "fi-pingpong: a message arrived with wrong bytes\n");
	return -EBADMSG;
}

/* Waits for the message with this mark and posts the next receive. */
static inline int message_recv(struct peer *peer, unsigned char mark)
{
	int rc = bench_fi_wait(&peer->pair, 0);

	if (rc)
		return rc;
	if (!bench_payload_ends(peer->in, peer->order.size, mark))
		return bytes_wrong();
	return bench_fi_post(&peer->pair, peer->in, peer->room);
}

/* The receive posted again has no message yet: the last one is still there. */
static int whole_check(const struct peer *peer, unsigned char mark)
{
	if (!bench_payload_whole(&peer->payload, peer->in, peer->order.size,
				 mark))
		return bytes_wrong();
	return 0;
}

static inline int lead_rounds(struct peer *peer, uint64_t rounds)
{
	uint64_t i;
	int rc;

	for (i = 0; i < rounds; i++) {
		rc = message_send(peer);
		if (!rc)
			rc = message_recv(peer, peer->mark);
		if (rc)
			return rc;
	}
	return 0;
}

static int latency_lead(void *ctx, uint64_t rounds, uint64_t *ns)
{
	struct peer *peer = ctx;
	uint64_t begin;
	int rc;

	rc = lead_rounds(peer, 1);
	if (rc)
		return rc;
	peer->payload.spent_ns = 0;
	begin = bench_clock_ns();
	rc = lead_rounds(peer, rounds);
	*ns = bench_clock_ns() - begin - peer->payload.spent_ns;
	return rc ? rc : whole_check(peer, peer->mark);
}

static inline int follow_rounds(struct peer *peer, uint64_t rounds)
{
	uint64_t i;
	int rc;

	for (i = 0; i < rounds; i++) {
		rc = message_recv(peer, (unsigned char)(peer->mark + 1));
		if (!rc)
			rc = message_send(peer);
		if (rc)
			return rc;
	}
	return 0;
}

/* Waits for the last send before it goes to sleep in the socket. */
static int latency_follow(void *ctx, uint64_t rounds, uint64_t *ns)
{
	struct peer *peer = ctx;
	int rc;

	rc = follow_rounds(peer, 1);
	peer->payload.spent_ns = 0;
	if (!rc)
		rc = follow_rounds(peer, rounds);
	*ns = peer->payload.spent_ns;
	if (!rc)
		rc = bench_fi_wait(&peer->pair, 1);
	return rc ? rc : whole_check(peer, peer->mark);
}

static int order_begin(void *ctx, const struct bench_order *order,
		       struct bench_side *side)
{
	struct peer *peer = ctx;

	if (order->kind != BENCH_INJECT && order->kind != BENCH_SEND)
		return -ENOTSUP;
	if (order->size > peer->room ||
	    (order->kind == BENCH_INJECT &&
	     order->size > peer->pair.info->tx_attr->inject_size))
		return -ENOTSUP;
	peer->order = *order;
	side->ctx = peer;
	side->put = number_put;
	side->get = number_get;
	side->run = peer->side ? latency_follow : latency_lead;
	return 0;
}

static int buffers_make(struct peer *peer, const struct bench_options *options)
{
	size_t room = bench_sizes_largest(&options->sizes);
	void *block;

	if (room < ROOM_LEAST)
		room = ROOM_LEAST;
	if (posix_memalign(&block, BUFFER_ALIGN, 2 * room + OUT_SHIFT)) {
		fprintf(stderr, "fi-pingpong: not enough memory\n");
		return -ENOMEM;
	}
	peer->block = block;
	peer->in = peer->block;
	peer->out = peer->block + room + OUT_SHIFT;
	peer->room = room;
	return 0;
}

static int peer_session(struct peer *peer, const struct bench_options *options)
{
	struct bench_session session = {
		.options = options,
		.title = options->provider,
		.side = peer->side,
		.begin = order_begin,
		.ctx = peer,
	};
	int rc;

	rc = bench_fi_open(&peer->pair, options->provider);
	if (!rc)
		rc = bench_fi_meet(&peer->pair, peer->fd);
	if (!rc)
		rc = bench_fi_post(&peer->pair, peer->in, peer->room);
	if (!rc)
		rc = bench_session_run(&session);
	bench_fi_close(&peer->pair);
	return rc;
}

static int peer_run(const struct bench_options *options, int side, int fd)
{
	struct peer peer = { .side = side, .fd = fd };
	int rc;

	rc = bench_pin_self(options->pin.cpu[side]);
	if (!rc)
		rc = buffers_make(&peer, options);
	if (rc)
		return rc;
	bench_payload_init(&peer.payload, options->rewrite);
	rc = peer_session(&peer, options);
	free(peer.block);
	return rc;
}

static int child_reap(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status ? -ECHILD : 0;
}

static int pair_run(const struct bench_options *options)
{
	pid_t parent = getpid();
	pid_t child;
	int fd[2];
	int rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return -errno;
	child = fork();
	if (child < 0)
		return -errno;
	if (!child) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
			_exit(1);
		close(fd[0]);
		exit(peer_run(options, 1, fd[1]) ? 1 : 0);
	}
	close(fd[1]);
	rc = peer_run(options, 0, fd[0]);
	close(fd[0]);
	if (rc)
		kill(child, SIGKILL);
	return child_reap(child) ? -ECHILD : rc;
}

static const struct bench_program program = {
	.name = "fi-pingpong",
	.about =
		"One way time of tagged messages between two processes over a\n"
		"libfabric provider: fi_tinject, and fi_tsend with completion.\n",
	.kinds = "inject,send",
	.sizes = "8,64,256,1K,4K,16K,32K,64K,256K,1M,2M,4M",
	.provider = true,
};

int main(int argc, char **argv)
{
	struct bench_options options;
	int rc;

	rc = bench_options_parse(&options, &program, argc, argv);
	if (rc)
		return rc < 0 ? 2 : 0;
	signal(SIGPIPE, SIG_IGN);
	fflush(NULL);
	rc = pair_run(&options);
	return rc ? 1 : 0;
}
