/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The data calls of an endpoint: operation tables, and what the message and
 * tagged calls share.
 */
#ifndef SHRIMP_MSG_H
#define SHRIMP_MSG_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "lib/rx.h"
#include "lib/tx.h"

extern struct fi_ops_msg shrimp_msg_ops;       /* fi_msg(3) */
extern struct fi_ops_tagged shrimp_tagged_ops; /* fi_tagged(3) */
extern struct fi_ops_rma shrimp_rma_ops;       /* fi_rma(3): -FI_ENOSYS */
extern struct fi_ops_atomic shrimp_atomic_ops; /* fi_atomic(3): same */
extern struct fi_ops_collective shrimp_collective_ops; /* same */

/* What differs between the calls that send. */
struct shrimp_send_args {
	const struct iovec *iov; /* payload */
	size_t niov;		 /* entries of iov */
	fi_addr_t dest;		 /* where to */
	uint64_t tag;		 /* 0 if not tagged */
	uint64_t data;		 /* remote CQ data */
	void *context;		 /* the caller's */
	uint64_t flags;		 /* FI_ flags that hold for this call */
	bool tagged;		 /* fi_tsend */
};

/* Flags of the calls that take none: the endpoint's defaults. */
uint64_t shrimp_default_tx_flags(const struct shrimp_ep *ep);
uint64_t shrimp_default_rx_flags(const struct shrimp_ep *ep); /* receiving */

/*
 * A send in any form but inject. Takes the endpoint's lock. Returns 0,
 * -FI_EINVAL (iov limit, size, address, inject beyond inject_size),
 * -FI_EOPBADSTATE (not enabled, or inherited by fork), or
 * shrimp_tx_send()'s.
 */
ssize_t shrimp_send(struct fid_ep *ep, const struct shrimp_send_args *a);

/* fi_inject and its relatives: no completion, buffer free at once. */
ssize_t shrimp_inject(struct fid_ep *ep, const struct shrimp_send_args *a);

/*
 * A receive in any form. Takes the endpoint's lock. Returns 0, -FI_EINVAL,
 * -FI_EOPBADSTATE, -FI_ENOMEM, -FI_ENOMSG (FI_CLAIM of nothing).
 */
ssize_t shrimp_recv(struct fid_ep *ep, const struct shrimp_recv_req *q);

#endif /* SHRIMP_MSG_H */
