/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * RMA, fi_rma(3): the initiator moves the bytes itself, at once, unless
 * something to the same peer is queued before it (contract P5).
 *
 * All functions but the calls of the table: the endpoint's lock is held.
 */
#ifndef SHRIMP_RMA_H
#define SHRIMP_RMA_H

#include <rdma/fi_rma.h>

#include "lib/tx.h"

extern struct fi_ops_rma shrimp_rma_ops; /* fi_rma(3) */

/* What an RMA operation says beside what struct shrimp_send does. */
struct shrimp_rma {
	struct fi_rma_iov iov[SHRIMP_IOV_MAX]; /* at the peer */
	size_t niov;			       /* entries of iov */
	bool write;			       /* else read */
	uint8_t *copy;			       /* queued inject's payload */
};

/*
 * Does @s, an RMA operation of queued @op or, if NULL, of a call under way.
 * Returns 0 (its completion is written), or -FI_EAGAIN: the lane has no room
 * for the event that must follow it; nothing happened.
 */
int shrimp_rma_run(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		   struct shrimp_op *op);

/* A copy of @s->rma for an op, the payload of an inject with it. NULL: no
 * memory. */
struct shrimp_rma *shrimp_rma_keep(const struct shrimp_send *s);

/* Frees what shrimp_rma_keep() made. NULL is accepted. */
void shrimp_rma_free(struct shrimp_rma *rma);

/* Gives up what @tp needed for RMA; before its lane is unmapped. */
void shrimp_rma_release(struct shrimp_tx_peer *tp);

#endif /* SHRIMP_RMA_H */
