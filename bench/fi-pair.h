/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One libfabric RDM endpoint that exchanges tagged messages with one peer.
 * One completion queue for both directions, one receive posted at a time.
 *
 * One thread at a time; each process of the pair has its own.
 */
#ifndef BENCH_FI_PAIR_H
#define BENCH_FI_PAIR_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <stdint.h>

enum {
	BENCH_FI_NAME_MAX = 512, /* bytes of an endpoint's name */
};

/** The objects of one side; zeroed memory is closed. */
struct bench_fi_pair {
	struct fi_info *info;	       /* what the provider offered */
	struct fid_fabric *fabric;     /* opened from info */
	struct fid_domain *domain;     /* opened from info */
	struct fid_av *av;	       /* holds the peer */
	struct fid_cq *cq;	       /* both directions */
	struct fid_ep *ep;	       /* bound to av and cq */
	fi_addr_t peer;		       /* the other side, after _meet() */
	struct fi_context2 tx_context; /* of the send on its way */
	struct fi_context2 rx_context; /* of the receive posted */
	uint64_t tx_pending;	       /* sends whose completion is awaited */
	uint64_t rx_pending; /* receives whose completion is awaited */
};

/**
 * bench_fi_open() - open and enable an endpoint of a provider.
 * @pair: zeroed; to be closed, also after an error.
 * @provider: libfabric's name of it.
 *
 * May block as the provider's calls do. Returns 0, or a negative libfabric
 * code after a message on stderr.
 */
int bench_fi_open(struct bench_fi_pair *pair, const char *provider);

/**
 * bench_fi_meet() - exchange names with the other process.
 * @pair: open.
 * @fd: a stream socket to the other process, which calls this too; borrowed.
 *
 * Blocks until the other side has sent its name. Returns 0, or a negative
 * code after a message on stderr.
 */
int bench_fi_meet(struct bench_fi_pair *pair, int fd);

/**
 * bench_fi_post() - post the receive.
 * @pair: has no receive posted.
 * @data: where the message goes; the caller's, left alone until it has arrived.
 * @size: room at @data.
 *
 * Returns 0, or a negative libfabric code.
 */
int bench_fi_post(struct bench_fi_pair *pair, void *data, size_t size);

/**
 * bench_fi_inject() - send by fi_tinject; no completion will come.
 * @pair: has met its peer.
 * @data: the message; free again at return.
 * @size: at most what the provider injects.
 *
 * Makes progress for as long as the provider answers -FI_EAGAIN. Returns 0, or
 * a negative libfabric code.
 */
int bench_fi_inject(struct bench_fi_pair *pair, const void *data, size_t size);

/**
 * bench_fi_send() - send by fi_tsend; bench_fi_wait() waits for the completion.
 * @pair: has met its peer and no send on its way.
 * @data: the message; left alone until it has completed.
 * @size: its length.
 *
 * As bench_fi_inject().
 */
int bench_fi_send(struct bench_fi_pair *pair, const void *data, size_t size);

/**
 * bench_fi_wait() - poll until the send, and the receive, have completed.
 * @pair: the side.
 * @rx_left: receives that may stay posted: 0, or 1 to wait for the send only,
 *           as a side must that will not poll for a while.
 *
 * Spins, for at most 10 seconds without any completion. Returns 0,
 * -FI_ETIMEDOUT, or the negative code of an error completion after a message
 * on stderr.
 */
int bench_fi_wait(struct bench_fi_pair *pair, uint64_t rx_left);

/**
 * bench_fi_close() - close what bench_fi_open() opened.
 * @pair: zeroed memory is accepted; zeroed again at return.
 */
void bench_fi_close(struct bench_fi_pair *pair);

#endif
