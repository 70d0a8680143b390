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

extern struct fi_ops_msg shrimp_msg_ops;	       /* fi_msg(3) */
extern struct fi_ops_tagged shrimp_tagged_ops;	       /* fi_tagged(3) */
extern struct fi_ops_collective shrimp_collective_ops; /* all -FI_ENOSYS */

/* Flags of the calls that take none: the endpoint's defaults. */
static inline uint64_t shrimp_default_tx_flags(const struct shrimp_ep *ep)
{
	return ep->tx_flags;
}

/* The same for receives. */
static inline uint64_t shrimp_default_rx_flags(const struct shrimp_ep *ep)
{
	return ep->rx_flags;
}

/* What the descriptors of @a say, enum rnic_desc_flag. */
RNIC_HOT uint8_t shrimp_desc_flags(const struct shrimp_send_args *a)
{
	return (uint8_t)((a->tagged ? RNIC_DESC_TAGGED : 0) |
			 (a->flags & FI_REMOTE_CQ_DATA ? RNIC_DESC_CQ_DATA
						       : 0));
}

/* shrimp_send() the long way. */
ssize_t shrimp_send_any(struct fid_ep *ep, const struct shrimp_send_args *a);

/* shrimp_inject() the long way. */
ssize_t shrimp_inject_any(struct fid_ep *ep, const struct shrimp_send_args *a);

/* Flags that a message published in a descriptor need not look at: it is in
 * the receiver's memory at once, which is all they ask for. */
#define SHRIMP_PLAIN_FLAGS                                                     \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |                      \
	 FI_TRANSMIT_COMPLETE | FI_REMOTE_CQ_DATA | FI_MORE)

/*
 * A send in any form but inject. Takes the endpoint's lock. Returns 0,
 * -FI_EINVAL (iov limit, size, address, inject beyond inject_size),
 * -FI_EOPBADSTATE (not enabled, or inherited by fork), or
 * shrimp_tx_send()'s.
 */
RNIC_HOT ssize_t shrimp_send(struct fid_ep *fid,
			     const struct shrimp_send_args *a)
{
	struct shrimp_ep *ep = shrimp_ep_of(fid);
	/* a copy for the long way keeps the original out of memory */
	struct shrimp_send_args copy;
	bool done = false;

	if (a->niov != 1 || !a->iov || a->flags & ~SHRIMP_PLAIN_FLAGS) {
		copy = *a;
		return shrimp_send_any(fid, &copy);
	}
	shrimp_ep_lock(ep);
	if (ep->ready && !shrimp_tx_full(ep))
		done = shrimp_tx_quick(ep, a, shrimp_desc_flags(a));
	if (done)
		shrimp_tx_sent(ep, a);
	shrimp_ep_unlock(ep);
	if (RNIC_LIKELY(done))
		return 0;
	copy = *a;
	return shrimp_send_any(fid, &copy);
}

/* fi_inject and its relatives: no completion, buffer free at once. */
RNIC_HOT ssize_t shrimp_inject(struct fid_ep *fid,
			       const struct shrimp_send_args *a)
{
	struct shrimp_ep *ep = shrimp_ep_of(fid);
	struct shrimp_send_args copy;
	bool done;

	shrimp_ep_lock(ep);
	done = ep->ready && shrimp_tx_quick(ep, a, shrimp_desc_flags(a));
	if (RNIC_UNLIKELY(ep->tx_cntr) && done)
		shrimp_cntr_add(ep->tx_cntr, 1);
	shrimp_ep_unlock(ep);
	if (RNIC_LIKELY(done))
		return 0;
	copy = *a;
	return shrimp_inject_any(fid, &copy);
}

/* shrimp_recv() the long way. */
ssize_t shrimp_recv_any(struct fid_ep *ep, const struct shrimp_recv_req *q);

/* Flags that make no difference to a receive of one buffer. */
#define SHRIMP_PLAIN_RECV (FI_COMPLETION | FI_MORE)

/*
 * A receive in any form. Takes the endpoint's lock. Returns 0, -FI_EINVAL,
 * -FI_EOPBADSTATE, -FI_ENOMEM, -FI_ENOMSG (FI_CLAIM of nothing).
 */
RNIC_HOT ssize_t shrimp_recv(struct fid_ep *fid,
			     const struct shrimp_recv_req *q)
{
	struct shrimp_ep *ep = shrimp_ep_of(fid);
	struct shrimp_recv_req copy;
	bool done = false;

	if (q->niov == 1 && q->iov && q->iov->iov_len < SIZE_MAX &&
	    !(q->flags & ~SHRIMP_PLAIN_RECV)) {
		shrimp_ep_lock(ep);
		done = ep->ready && shrimp_rx_post_quick(ep, q);
		shrimp_ep_unlock(ep);
	}
	if (RNIC_LIKELY(done))
		return 0;
	copy = *q;
	return shrimp_recv_any(fid, &copy);
}

#endif /* SHRIMP_MSG_H */
