/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * fi_tagged(3).
 */
#include "lib/msg.h"

static ssize_t tagged_recvv(struct fid_ep *ep, const struct iovec *iov,
			    void **desc, size_t count, fi_addr_t src,
			    uint64_t tag, uint64_t ignore, void *context)
{
	struct shrimp_recv_req q = {
		.iov = iov,
		.niov = count,
		.src = src,
		.tag = tag,
		.ignore = ignore,
		.context = context,
		.flags = shrimp_default_rx_flags(shrimp_ep_of(ep)),
		.tagged = true,
	};

	(void)desc;
	return shrimp_recv(ep, &q);
}

static ssize_t tagged_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			   fi_addr_t src, uint64_t tag, uint64_t ignore,
			   void *context)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };

	(void)desc;
	return tagged_recvv(ep, &iov, NULL, 1, src, tag, ignore, context);
}

static ssize_t tagged_recvmsg(struct fid_ep *ep,
			      const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct shrimp_recv_req q = {
		.iov = msg->msg_iov,
		.niov = msg->iov_count,
		.src = msg->addr,
		.tag = msg->tag,
		.ignore = msg->ignore,
		.context = msg->context,
		.flags = flags,
		.tagged = true,
	};

	return shrimp_recv(ep, &q);
}

static ssize_t tagged_sendv(struct fid_ep *ep, const struct iovec *iov,
			    void **desc, size_t count, fi_addr_t dest,
			    uint64_t tag, void *context)
{
	struct shrimp_send_args a = {
		.iov = iov,
		.niov = count,
		.dest = dest,
		.tag = tag,
		.context = context,
		.flags = shrimp_default_tx_flags(shrimp_ep_of(ep)),
		.tagged = true,
	};

	(void)desc;
	return shrimp_send(ep, &a);
}

static ssize_t tagged_send(struct fid_ep *ep, const void *buf, size_t len,
			   void *desc, fi_addr_t dest, uint64_t tag,
			   void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };

	(void)desc;
	return tagged_sendv(ep, &iov, NULL, 1, dest, tag, context);
}

static ssize_t tagged_sendmsg(struct fid_ep *ep,
			      const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct shrimp_send_args a = {
		.iov = msg->msg_iov,
		.niov = msg->iov_count,
		.dest = msg->addr,
		.tag = msg->tag,
		.data = msg->data,
		.context = msg->context,
		.flags = flags,
		.tagged = true,
	};

	return shrimp_send(ep, &a);
}

static ssize_t tagged_inject(struct fid_ep *ep, const void *buf, size_t len,
			     fi_addr_t dest, uint64_t tag)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct shrimp_send_args a = {
		.iov = &iov, .niov = 1, .dest = dest, .tag = tag, .tagged = true
	};

	return shrimp_inject(ep, &a);
}

static ssize_t tagged_senddata(struct fid_ep *ep, const void *buf, size_t len,
			       void *desc, uint64_t data, fi_addr_t dest,
			       uint64_t tag, void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct shrimp_send_args a = {
		.iov = &iov,
		.niov = 1,
		.dest = dest,
		.tag = tag,
		.data = data,
		.context = context,
		.flags = shrimp_default_tx_flags(shrimp_ep_of(ep)) |
			 FI_REMOTE_CQ_DATA,
		.tagged = true,
	};

	(void)desc;
	return shrimp_send(ep, &a);
}

static ssize_t tagged_injectdata(struct fid_ep *ep, const void *buf, size_t len,
				 uint64_t data, fi_addr_t dest, uint64_t tag)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct shrimp_send_args a = { .iov = &iov,
				      .niov = 1,
				      .dest = dest,
				      .tag = tag,
				      .data = data,
				      .flags = FI_REMOTE_CQ_DATA,
				      .tagged = true };

	return shrimp_inject(ep, &a);
}

struct fi_ops_tagged shrimp_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};
