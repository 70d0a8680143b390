/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Collectives: not offered (no capability says so), and every call answers
 * -FI_ENOSYS, since clients call through these tables without looking.
 */
#include <rdma/fi_errno.h>

#include "lib/msg.h"

static ssize_t no_coll_barrier(struct fid_ep *ep, fi_addr_t coll_addr,
			       void *context)
{
	(void)ep, (void)coll_addr, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_coll_broadcast(struct fid_ep *ep, void *buf, size_t count,
				 void *desc, fi_addr_t coll_addr,
				 fi_addr_t root_addr, enum fi_datatype datatype,
				 uint64_t flags, void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)coll_addr,
		(void)root_addr, (void)datatype, (void)flags, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_coll_alltoall(struct fid_ep *ep, const void *buf,
				size_t count, void *desc, void *result,
				void *result_desc, fi_addr_t coll_addr,
				enum fi_datatype datatype, uint64_t flags,
				void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result,
		(void)result_desc, (void)coll_addr, (void)datatype, (void)flags,
		(void)context;
	return -FI_ENOSYS;
}

static ssize_t no_coll_allreduce(struct fid_ep *ep, const void *buf,
				 size_t count, void *desc, void *result,
				 void *result_desc, fi_addr_t coll_addr,
				 enum fi_datatype datatype, enum fi_op op,
				 uint64_t flags, void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result,
		(void)result_desc, (void)coll_addr, (void)datatype, (void)op,
		(void)flags, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_coll_allgather(struct fid_ep *ep, const void *buf,
				 size_t count, void *desc, void *result,
				 void *result_desc, fi_addr_t coll_addr,
				 enum fi_datatype datatype, uint64_t flags,
				 void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result,
		(void)result_desc, (void)coll_addr, (void)datatype, (void)flags,
		(void)context;
	return -FI_ENOSYS;
}

static ssize_t no_coll_reduce_scatter(struct fid_ep *ep, const void *buf,
				      size_t count, void *desc, void *result,
				      void *result_desc, fi_addr_t coll_addr,
				      enum fi_datatype datatype, enum fi_op op,
				      uint64_t flags, void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result,
		(void)result_desc, (void)coll_addr, (void)datatype, (void)op,
		(void)flags, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_coll_reduce(struct fid_ep *ep, const void *buf, size_t count,
			      void *desc, void *result, void *result_desc,
			      fi_addr_t coll_addr, fi_addr_t root_addr,
			      enum fi_datatype datatype, enum fi_op op,
			      uint64_t flags, void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result,
		(void)result_desc, (void)coll_addr, (void)root_addr,
		(void)datatype, (void)op, (void)flags, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_coll_scatter(struct fid_ep *ep, const void *buf, size_t count,
			       void *desc, void *result, void *result_desc,
			       fi_addr_t coll_addr, fi_addr_t root_addr,
			       enum fi_datatype datatype, uint64_t flags,
			       void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result,
		(void)result_desc, (void)coll_addr, (void)root_addr,
		(void)datatype, (void)flags, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_coll_gather(struct fid_ep *ep, const void *buf, size_t count,
			      void *desc, void *result, void *result_desc,
			      fi_addr_t coll_addr, fi_addr_t root_addr,
			      enum fi_datatype datatype, uint64_t flags,
			      void *context)
{
	(void)ep, (void)buf, (void)count, (void)desc, (void)result,
		(void)result_desc, (void)coll_addr, (void)root_addr,
		(void)datatype, (void)flags, (void)context;
	return -FI_ENOSYS;
}

static ssize_t no_coll_msg(struct fid_ep *ep,
			   const struct fi_msg_collective *msg,
			   struct fi_ioc *resultv, void **result_desc,
			   size_t result_count, uint64_t flags)
{
	(void)ep, (void)msg, (void)resultv, (void)result_desc,
		(void)result_count, (void)flags;
	return -FI_ENOSYS;
}

static ssize_t no_coll_barrier2(struct fid_ep *ep, fi_addr_t coll_addr,
				uint64_t flags, void *context)
{
	(void)ep, (void)coll_addr, (void)flags, (void)context;
	return -FI_ENOSYS;
}

struct fi_ops_collective shrimp_collective_ops = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = no_coll_barrier,
	.broadcast = no_coll_broadcast,
	.alltoall = no_coll_alltoall,
	.allreduce = no_coll_allreduce,
	.allgather = no_coll_allgather,
	.reduce_scatter = no_coll_reduce_scatter,
	.reduce = no_coll_reduce,
	.scatter = no_coll_scatter,
	.gather = no_coll_gather,
	.msg = no_coll_msg,
	.barrier2 = no_coll_barrier2,
};
