/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * fi_msg(3), and what all sends and receives share.
 */
#include "lib/msg.h"

#include <rdma/fi_errno.h>

#include "lib/cntr.h"
#include "lib/info.h"
#include "shm/copy.h"

static enum shrimp_level level_of(uint64_t flags)
{
	if (flags & FI_MATCH_COMPLETE)
		return SHRIMP_LEVEL_MATCH;
	if (flags & FI_DELIVERY_COMPLETE)
		return SHRIMP_LEVEL_DELIVERY;
	if (flags & FI_TRANSMIT_COMPLETE)
		return SHRIMP_LEVEL_TRANSMIT;
	return flags & FI_INJECT_COMPLETE ? SHRIMP_LEVEL_INJECT
					  : SHRIMP_LEVEL_TRANSMIT;
}

static struct shrimp_send send_of(const struct shrimp_send_args *a, size_t len)
{
	return (struct shrimp_send){
		.iov = a->iov,
		.niov = a->niov,
		.len = len,
		.tag = a->tag,
		.data = a->data,
		.context = a->context,
		.desc_flags = shrimp_desc_flags(a),
		.level = (uint8_t)level_of(a->flags),
		.inject = a->flags & FI_INJECT,
		.fence = a->flags & FI_FENCE,
	};
}

/* Sum of the buffers, checked. -FI_EINVAL if there are too many, too long. */
static int check_iov(const struct iovec *iov, size_t n, uint64_t max,
		     size_t *len)
{
	if (n > SHRIMP_IOV_MAX || (n && !iov))
		return -FI_EINVAL;
	*len = n == 1 ? iov->iov_len : rnic_iov_len(iov, n);
	return *len > max ? -FI_EINVAL : 0;
}

ssize_t shrimp_send_any(struct fid_ep *fid, const struct shrimp_send_args *a)
{
	struct shrimp_ep *ep = shrimp_ep_of(fid);
	struct shrimp_send s;
	ssize_t ret;
	size_t len;

	ret = check_iov(a->iov, a->niov,
			a->flags & FI_INJECT ? SHRIMP_INJECT_SIZE
					     : SHRIMP_MAX_MSG_SIZE,
			&len);
	if (ret)
		return ret;
	s = send_of(a, len);
	s.quiet = ep->tx_selective && !(a->flags & FI_COMPLETION);
	shrimp_ep_lock(ep);
	ret = ep->ready ? shrimp_tx_send(ep, a->dest, &s) : -FI_EOPBADSTATE;
	shrimp_ep_unlock(ep);
	return ret;
}

ssize_t shrimp_inject_any(struct fid_ep *fid, const struct shrimp_send_args *a)
{
	struct shrimp_ep *ep = shrimp_ep_of(fid);
	size_t len = a->iov->iov_len;
	struct shrimp_send s;
	ssize_t ret;

	if (len > SHRIMP_INJECT_SIZE)
		return -FI_EINVAL;
	s = send_of(a, len);
	s.inject = s.quiet = s.no_context = true;
	s.level = SHRIMP_LEVEL_INJECT;
	shrimp_ep_lock(ep);
	ret = ep->ready ? shrimp_tx_send(ep, a->dest, &s) : -FI_EOPBADSTATE;
	shrimp_ep_unlock(ep);
	return ret;
}

ssize_t shrimp_recv_any(struct fid_ep *fid, const struct shrimp_recv_req *q)
{
	struct shrimp_ep *ep = shrimp_ep_of(fid);
	ssize_t ret;
	size_t len;

	ret = check_iov(q->iov, q->niov, SIZE_MAX - 1, &len);
	if (ret)
		return ret;
	shrimp_ep_lock(ep);
	ret = ep->ready ? shrimp_rx_recv(ep, q) : -FI_EOPBADSTATE;
	shrimp_ep_unlock(ep);
	return ret;
}

/* ---- fi_msg(3) ---- */

static ssize_t msg_recvv(struct fid_ep *ep, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 void *context)
{
	struct shrimp_recv_req q = {
		.iov = iov,
		.niov = count,
		.src = src,
		.ignore = ~UINT64_C(0),
		.context = context,
		.flags = shrimp_default_rx_flags(shrimp_ep_of(ep)),
	};

	(void)desc;
	return shrimp_recv(ep, &q);
}

static ssize_t msg_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src, void *context)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };

	(void)desc;
	return msg_recvv(ep, &iov, NULL, 1, src, context);
}

static ssize_t msg_recvmsg(struct fid_ep *ep, const struct fi_msg *msg,
			   uint64_t flags)
{
	struct shrimp_recv_req q = {
		.iov = msg->msg_iov,
		.niov = msg->iov_count,
		.src = msg->addr,
		.ignore = ~UINT64_C(0),
		.context = msg->context,
		.flags = flags,
	};

	return shrimp_recv(ep, &q);
}

static ssize_t msg_sendv(struct fid_ep *ep, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t dest,
			 void *context)
{
	struct shrimp_send_args a = {
		.iov = iov,
		.niov = count,
		.dest = dest,
		.context = context,
		.flags = shrimp_default_tx_flags(shrimp_ep_of(ep)),
	};

	(void)desc;
	return shrimp_send(ep, &a);
}

static ssize_t msg_send(struct fid_ep *ep, const void *buf, size_t len,
			void *desc, fi_addr_t dest, void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };

	(void)desc;
	return msg_sendv(ep, &iov, NULL, 1, dest, context);
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
			   uint64_t flags)
{
	struct shrimp_send_args a = {
		.iov = msg->msg_iov,
		.niov = msg->iov_count,
		.dest = msg->addr,
		.data = msg->data,
		.context = msg->context,
		.flags = flags,
	};

	return shrimp_send(ep, &a);
}

static ssize_t msg_inject(struct fid_ep *ep, const void *buf, size_t len,
			  fi_addr_t dest)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct shrimp_send_args a = { .iov = &iov, .niov = 1, .dest = dest };

	return shrimp_inject(ep, &a);
}

static ssize_t msg_senddata(struct fid_ep *ep, const void *buf, size_t len,
			    void *desc, uint64_t data, fi_addr_t dest,
			    void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct shrimp_send_args a = {
		.iov = &iov,
		.niov = 1,
		.dest = dest,
		.data = data,
		.context = context,
		.flags = shrimp_default_tx_flags(shrimp_ep_of(ep)) |
			 FI_REMOTE_CQ_DATA,
	};

	(void)desc;
	return shrimp_send(ep, &a);
}

static ssize_t msg_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct shrimp_send_args a = { .iov = &iov,
				      .niov = 1,
				      .dest = dest,
				      .data = data,
				      .flags = FI_REMOTE_CQ_DATA };

	return shrimp_inject(ep, &a);
}

struct fi_ops_msg shrimp_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};
