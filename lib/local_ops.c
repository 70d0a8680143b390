/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Local protection: the calls of an endpoint where FI_MR_LOCAL is in force.
 * Each checks its buffers and goes on as the call it replaces. So endpoints of
 * other domains pay nothing.
 *
 * What is injected, by the call, by FI_INJECT or by the endpoint's default, is
 * copied in the call and needs no descriptor. What the call itself refuses (a
 * list that is too long or NULL, a type that there is not) is left to it.
 */
#include <pthread.h>

#include "lib/atomic.h"
#include "lib/domain.h"
#include "lib/local.h"
#include "lib/msg.h"
#include "lib/rma.h"
#include "shm/aop.h"

/* Buffers of a call, and their descriptors. */
struct list {
	const struct iovec *iov; /* n of them; or NULL */
	void **desc;		 /* n of them; or NULL */
	size_t n;		 /* how many */
};

static struct iovec iov_of(const void *buf, size_t len)
{
	return (struct iovec){ .iov_base = (void *)(uintptr_t)buf,
			       .iov_len = len };
}

/* All of @l are used with @right by @call. As shrimp_local_check(). */
static int check(struct fid_ep *fid, const char *call, uint32_t right,
		 const struct list *l)
{
	const struct shrimp_local *t = &shrimp_ep_of(fid)->domain->local;
	struct shrimp_local_buf b = { .call = call, .right = right };
	int ret = 0;

	if (!l->iov || l->n > SHRIMP_IOV_MAX)
		return 0;
	for (size_t i = 0; i < l->n && !ret; i++) {
		b.at = l->iov[i].iov_base;
		b.len = l->iov[i].iov_len;
		b.desc = l->desc ? l->desc[i] : NULL;
		ret = shrimp_local_check(t, &b);
	}
	return ret;
}

/* Bytes come into @n buffers. */
static int into(struct fid_ep *ep, const char *call, const struct iovec *iov,
		void **desc, size_t n)
{
	const struct list l = { iov, desc, n };

	return check(ep, call, RNIC_LOCAL_WRITE, &l);
}

/* Bytes of @n buffers leave, with @flags. */
static int from(struct fid_ep *ep, const char *call, const struct iovec *iov,
		void **desc, size_t n, uint64_t flags)
{
	const struct list l = { iov, desc, n };

	return flags & FI_INJECT ? 0 : check(ep, call, RNIC_LOCAL_READ, &l);
}

/* One buffer, with the endpoint's flags. */
static int from_one(struct fid_ep *ep, const char *call, const void *buf,
		    size_t len, void *desc)
{
	struct iovec iov = iov_of(buf, len);

	return from(ep, call, &iov, &desc, 1,
		    shrimp_default_tx_flags(shrimp_ep_of(ep)));
}

static int into_one(struct fid_ep *ep, const char *call, void *buf, size_t len,
		    void *desc)
{
	struct iovec iov = iov_of(buf, len);

	return into(ep, call, &iov, &desc, 1);
}

/* Several, with the endpoint's flags. */
static int from_all(struct fid_ep *ep, const char *call,
		    const struct iovec *iov, void **desc, size_t n)
{
	return from(ep, call, iov, desc, n,
		    shrimp_default_tx_flags(shrimp_ep_of(ep)));
}

/* ---- fi_msg(3) ---- */

static ssize_t msg_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src, void *context)
{
	int ret = into_one(ep, "fi_recv", buf, len, desc);

	return ret ? ret
		   : shrimp_msg_ops.recv(ep, buf, len, desc, src, context);
}

static ssize_t msg_recvv(struct fid_ep *ep, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 void *context)
{
	int ret = into(ep, "fi_recvv", iov, desc, count);

	return ret ? ret
		   : shrimp_msg_ops.recvv(ep, iov, desc, count, src, context);
}

static ssize_t msg_recvmsg(struct fid_ep *ep, const struct fi_msg *m,
			   uint64_t flags)
{
	int ret = into(ep, "fi_recvmsg", m->msg_iov, m->desc, m->iov_count);

	return ret ? ret : shrimp_msg_ops.recvmsg(ep, m, flags);
}

static ssize_t msg_send(struct fid_ep *ep, const void *buf, size_t len,
			void *desc, fi_addr_t dest, void *context)
{
	int ret = from_one(ep, "fi_send", buf, len, desc);

	return ret ? ret
		   : shrimp_msg_ops.send(ep, buf, len, desc, dest, context);
}

static ssize_t msg_sendv(struct fid_ep *ep, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t dest,
			 void *context)
{
	int ret = from_all(ep, "fi_sendv", iov, desc, count);

	return ret ? ret
		   : shrimp_msg_ops.sendv(ep, iov, desc, count, dest, context);
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *m,
			   uint64_t flags)
{
	int ret = from(ep, "fi_sendmsg", m->msg_iov, m->desc, m->iov_count,
		       flags);

	return ret ? ret : shrimp_msg_ops.sendmsg(ep, m, flags);
}

static ssize_t msg_senddata(struct fid_ep *ep, const void *buf, size_t len,
			    void *desc, uint64_t data, fi_addr_t dest,
			    void *context)
{
	int ret = from_one(ep, "fi_senddata", buf, len, desc);

	return ret ? ret
		   : shrimp_msg_ops.senddata(ep, buf, len, desc, data, dest,
					     context);
}

/* ---- fi_tagged(3) ---- */

static ssize_t tagged_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			   fi_addr_t src, uint64_t tag, uint64_t ignore,
			   void *context)
{
	int ret = into_one(ep, "fi_trecv", buf, len, desc);

	return ret ? ret
		   : shrimp_tagged_ops.recv(ep, buf, len, desc, src, tag,
					    ignore, context);
}

static ssize_t tagged_recvv(struct fid_ep *ep, const struct iovec *iov,
			    void **desc, size_t count, fi_addr_t src,
			    uint64_t tag, uint64_t ignore, void *context)
{
	int ret = into(ep, "fi_trecvv", iov, desc, count);

	return ret ? ret
		   : shrimp_tagged_ops.recvv(ep, iov, desc, count, src, tag,
					     ignore, context);
}

/* Of these only a discard of what was claimed leaves its buffer alone. */
static ssize_t tagged_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *m,
			      uint64_t flags)
{
	uint64_t how = flags & (FI_PEEK | FI_CLAIM | FI_DISCARD);
	int ret = 0;

	if (how != (FI_CLAIM | FI_DISCARD))
		ret = into(ep, "fi_trecvmsg", m->msg_iov, m->desc,
			   m->iov_count);
	return ret ? ret : shrimp_tagged_ops.recvmsg(ep, m, flags);
}

static ssize_t tagged_send(struct fid_ep *ep, const void *buf, size_t len,
			   void *desc, fi_addr_t dest, uint64_t tag,
			   void *context)
{
	int ret = from_one(ep, "fi_tsend", buf, len, desc);

	return ret ? ret
		   : shrimp_tagged_ops.send(ep, buf, len, desc, dest, tag,
					    context);
}

static ssize_t tagged_sendv(struct fid_ep *ep, const struct iovec *iov,
			    void **desc, size_t count, fi_addr_t dest,
			    uint64_t tag, void *context)
{
	int ret = from_all(ep, "fi_tsendv", iov, desc, count);

	return ret ? ret
		   : shrimp_tagged_ops.sendv(ep, iov, desc, count, dest, tag,
					     context);
}

static ssize_t tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *m,
			      uint64_t flags)
{
	int ret = from(ep, "fi_tsendmsg", m->msg_iov, m->desc, m->iov_count,
		       flags);

	return ret ? ret : shrimp_tagged_ops.sendmsg(ep, m, flags);
}

static ssize_t tagged_senddata(struct fid_ep *ep, const void *buf, size_t len,
			       void *desc, uint64_t data, fi_addr_t dest,
			       uint64_t tag, void *context)
{
	int ret = from_one(ep, "fi_tsenddata", buf, len, desc);

	return ret ? ret
		   : shrimp_tagged_ops.senddata(ep, buf, len, desc, data, dest,
						tag, context);
}

/* ---- fi_rma(3) ---- */

static ssize_t rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src, uint64_t addr, uint64_t key,
			void *context)
{
	int ret = into_one(ep, "fi_read", buf, len, desc);

	return ret ? ret
		   : shrimp_rma_ops.read(ep, buf, len, desc, src, addr, key,
					 context);
}

static ssize_t rma_readv(struct fid_ep *ep, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 uint64_t addr, uint64_t key, void *context)
{
	int ret = into(ep, "fi_readv", iov, desc, count);

	return ret ? ret
		   : shrimp_rma_ops.readv(ep, iov, desc, count, src, addr, key,
					  context);
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *m,
			   uint64_t flags)
{
	int ret = into(ep, "fi_readmsg", m->msg_iov, m->desc, m->iov_count);

	return ret ? ret : shrimp_rma_ops.readmsg(ep, m, flags);
}

static ssize_t rma_write(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, fi_addr_t dest, uint64_t addr,
			 uint64_t key, void *context)
{
	int ret = from_one(ep, "fi_write", buf, len, desc);

	return ret ? ret
		   : shrimp_rma_ops.write(ep, buf, len, desc, dest, addr, key,
					  context);
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t dest,
			  uint64_t addr, uint64_t key, void *context)
{
	int ret = from_all(ep, "fi_writev", iov, desc, count);

	return ret ? ret
		   : shrimp_rma_ops.writev(ep, iov, desc, count, dest, addr,
					   key, context);
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *m,
			    uint64_t flags)
{
	int ret = from(ep, "fi_writemsg", m->msg_iov, m->desc, m->iov_count,
		       flags);

	return ret ? ret : shrimp_rma_ops.writemsg(ep, m, flags);
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t dest,
			     uint64_t addr, uint64_t key, void *context)
{
	int ret = from_one(ep, "fi_writedata", buf, len, desc);

	return ret ? ret
		   : shrimp_rma_ops.writedata(ep, buf, len, desc, data, dest,
					      addr, key, context);
}

/* ---- fi_atomic(3) ---- */

/* Elements of a call, and their descriptors. */
struct elements {
	const struct fi_ioc *ioc; /* n of them; or NULL */
	void **desc;		  /* n of them; or NULL */
	size_t n;		  /* how many */
};

/* A call; what it does not have is empty. */
struct atomic {
	const char *call;	 /* for the log */
	enum fi_datatype type;	 /* of all elements */
	enum fi_op op;		 /* FI_ATOMIC_READ looks at no operand */
	uint64_t flags;		 /* FI_INJECT counts */
	struct elements operand; /* is taken along */
	struct elements compare; /* likewise */
	struct elements result;	 /* comes back */
};

/* The elements @e of @a are used with @right. */
static int use(struct fid_ep *ep, const struct atomic *a,
	       const struct elements *e, uint32_t right)
{
	struct iovec iov[SHRIMP_IOV_MAX];
	const struct list l = { iov, e->desc, e->n };
	size_t size = 0;

	/* bounded before it is one of theirs */
	if ((unsigned int)a->type < RNIC_AOP_TYPES)
		size = rnic_aop_size((enum rnic_aop_type)a->type);
	if (!size || !e->ioc || e->n > SHRIMP_IOV_MAX)
		return 0;
	for (size_t i = 0; i < e->n; i++) {
		if (e->ioc[i].count > SHRIMP_ATOMIC_BYTES / size)
			return 0;
		iov[i] = iov_of(e->ioc[i].addr, e->ioc[i].count * size);
	}
	return check(ep, a->call, right, &l);
}

/* All that @a has. As shrimp_local_check(). */
static int check_atomic(struct fid_ep *ep, const struct atomic *a)
{
	bool inject = a->flags & FI_INJECT;
	int ret = 0;

	if (!inject && a->op != FI_ATOMIC_READ)
		ret = use(ep, a, &a->operand, RNIC_LOCAL_READ);
	if (!ret && !inject)
		ret = use(ep, a, &a->compare, RNIC_LOCAL_READ);
	if (!ret)
		ret = use(ep, a, &a->result, RNIC_LOCAL_WRITE);
	return ret;
}

static struct fi_ioc ioc_of(const void *buf, size_t count)
{
	return (struct fi_ioc){ .addr = (void *)(uintptr_t)buf,
				.count = count };
}

static uint64_t default_flags(struct fid_ep *ep)
{
	return shrimp_default_tx_flags(shrimp_ep_of(ep));
}

static ssize_t atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov,
			     void **desc, size_t count, fi_addr_t dest,
			     uint64_t addr, uint64_t key, enum fi_datatype type,
			     enum fi_op op, void *context)
{
	const struct atomic a = { .call = "fi_atomicv",
				  .type = type,
				  .op = op,
				  .flags = default_flags(ep),
				  .operand = { iov, desc, count } };
	int ret = check_atomic(ep, &a);

	return ret ? ret
		   : shrimp_atomic_ops.writev(ep, iov, desc, count, dest, addr,
					      key, type, op, context);
}

static ssize_t atomic_write(struct fid_ep *ep, const void *buf, size_t count,
			    void *desc, fi_addr_t dest, uint64_t addr,
			    uint64_t key, enum fi_datatype type, enum fi_op op,
			    void *context)
{
	struct fi_ioc ioc = ioc_of(buf, count);
	const struct atomic a = { .call = "fi_atomic",
				  .type = type,
				  .op = op,
				  .flags = default_flags(ep),
				  .operand = { &ioc, &desc, 1 } };
	int ret = check_atomic(ep, &a);

	return ret ? ret
		   : shrimp_atomic_ops.write(ep, buf, count, desc, dest, addr,
					     key, type, op, context);
}

static ssize_t atomic_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *m,
			       uint64_t flags)
{
	const struct atomic a = { .call = "fi_atomicmsg",
				  .type = m->datatype,
				  .op = m->op,
				  .flags = flags,
				  .operand = { m->msg_iov, m->desc,
					       m->iov_count } };
	int ret = check_atomic(ep, &a);

	return ret ? ret : shrimp_atomic_ops.writemsg(ep, m, flags);
}

static ssize_t atomic_readwritev(struct fid_ep *ep, const struct fi_ioc *iov,
				 void **desc, size_t count,
				 struct fi_ioc *result, void **result_desc,
				 size_t nresult, fi_addr_t dest, uint64_t addr,
				 uint64_t key, enum fi_datatype type,
				 enum fi_op op, void *context)
{
	const struct atomic a = { .call = "fi_fetch_atomicv",
				  .type = type,
				  .op = op,
				  .flags = default_flags(ep),
				  .operand = { iov, desc, count },
				  .result = { result, result_desc, nresult } };
	int ret = check_atomic(ep, &a);

	return ret ? ret
		   : shrimp_atomic_ops.readwritev(ep, iov, desc, count, result,
						  result_desc, nresult, dest,
						  addr, key, type, op, context);
}

static ssize_t atomic_readwrite(struct fid_ep *ep, const void *buf,
				size_t count, void *desc, void *result,
				void *result_desc, fi_addr_t dest,
				uint64_t addr, uint64_t key,
				enum fi_datatype type, enum fi_op op,
				void *context)
{
	struct fi_ioc ioc = ioc_of(buf, count), res = ioc_of(result, count);
	const struct atomic a = { .call = "fi_fetch_atomic",
				  .type = type,
				  .op = op,
				  .flags = default_flags(ep),
				  .operand = { &ioc, &desc, 1 },
				  .result = { &res, &result_desc, 1 } };
	int ret = check_atomic(ep, &a);

	return ret ? ret
		   : shrimp_atomic_ops.readwrite(ep, buf, count, desc, result,
						 result_desc, dest, addr, key,
						 type, op, context);
}

static ssize_t atomic_readwritemsg(struct fid_ep *ep,
				   const struct fi_msg_atomic *m,
				   struct fi_ioc *result, void **result_desc,
				   size_t nresult, uint64_t flags)
{
	const struct atomic a = { .call = "fi_fetch_atomicmsg",
				  .type = m->datatype,
				  .op = m->op,
				  .flags = flags,
				  .operand = { m->msg_iov, m->desc,
					       m->iov_count },
				  .result = { result, result_desc, nresult } };
	int ret = check_atomic(ep, &a);

	return ret ? ret
		   : shrimp_atomic_ops.readwritemsg(ep, m, result, result_desc,
						    nresult, flags);
}

static ssize_t atomic_compwritev(struct fid_ep *ep, const struct fi_ioc *iov,
				 void **desc, size_t count,
				 const struct fi_ioc *compare,
				 void **compare_desc, size_t ncompare,
				 struct fi_ioc *result, void **result_desc,
				 size_t nresult, fi_addr_t dest, uint64_t addr,
				 uint64_t key, enum fi_datatype type,
				 enum fi_op op, void *context)
{
	const struct atomic a = { .call = "fi_compare_atomicv",
				  .type = type,
				  .op = op,
				  .flags = default_flags(ep),
				  .operand = { iov, desc, count },
				  .compare = { compare, compare_desc,
					       ncompare },
				  .result = { result, result_desc, nresult } };
	int ret = check_atomic(ep, &a);

	return ret ? ret
		   : shrimp_atomic_ops.compwritev(
			     ep, iov, desc, count, compare, compare_desc,
			     ncompare, result, result_desc, nresult, dest, addr,
			     key, type, op, context);
}

static ssize_t
atomic_compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
		 const void *compare, void *compare_desc, void *result,
		 void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
		 enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_ioc ioc = ioc_of(buf, count), cmp = ioc_of(compare, count),
		      res = ioc_of(result, count);
	const struct atomic a = { .call = "fi_compare_atomic",
				  .type = type,
				  .op = op,
				  .flags = default_flags(ep),
				  .operand = { &ioc, &desc, 1 },
				  .compare = { &cmp, &compare_desc, 1 },
				  .result = { &res, &result_desc, 1 } };
	int ret = check_atomic(ep, &a);

	return ret ? ret
		   : shrimp_atomic_ops.compwrite(ep, buf, count, desc, compare,
						 compare_desc, result,
						 result_desc, dest, addr, key,
						 type, op, context);
}

static ssize_t atomic_compwritemsg(struct fid_ep *ep,
				   const struct fi_msg_atomic *m,
				   const struct fi_ioc *compare,
				   void **compare_desc, size_t ncompare,
				   struct fi_ioc *result, void **result_desc,
				   size_t nresult, uint64_t flags)
{
	const struct atomic a = {
		.call = "fi_compare_atomicmsg",
		.type = m->datatype,
		.op = m->op,
		.flags = flags,
		.operand = { m->msg_iov, m->desc, m->iov_count },
		.compare = { compare, compare_desc, ncompare },
		.result = { result, result_desc, nresult }
	};
	int ret = check_atomic(ep, &a);

	return ret ? ret
		   : shrimp_atomic_ops.compwritemsg(
			     ep, m, compare, compare_desc, ncompare, result,
			     result_desc, nresult, flags);
}

/* ---- the tables ---- */

/* Written once, before an endpoint has them. */
static struct {
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
	struct fi_ops_rma rma;
	struct fi_ops_atomic atomic;
} ops;

/* What has no descriptor stays as it is: injects, and what says what is. */
static void fill(void)
{
	ops.msg = shrimp_msg_ops;
	ops.msg.recv = msg_recv;
	ops.msg.recvv = msg_recvv;
	ops.msg.recvmsg = msg_recvmsg;
	ops.msg.send = msg_send;
	ops.msg.sendv = msg_sendv;
	ops.msg.sendmsg = msg_sendmsg;
	ops.msg.senddata = msg_senddata;
	ops.tagged = shrimp_tagged_ops;
	ops.tagged.recv = tagged_recv;
	ops.tagged.recvv = tagged_recvv;
	ops.tagged.recvmsg = tagged_recvmsg;
	ops.tagged.send = tagged_send;
	ops.tagged.sendv = tagged_sendv;
	ops.tagged.sendmsg = tagged_sendmsg;
	ops.tagged.senddata = tagged_senddata;
	ops.rma = shrimp_rma_ops;
	ops.rma.read = rma_read;
	ops.rma.readv = rma_readv;
	ops.rma.readmsg = rma_readmsg;
	ops.rma.write = rma_write;
	ops.rma.writev = rma_writev;
	ops.rma.writemsg = rma_writemsg;
	ops.rma.writedata = rma_writedata;
	ops.atomic = shrimp_atomic_ops;
	ops.atomic.write = atomic_write;
	ops.atomic.writev = atomic_writev;
	ops.atomic.writemsg = atomic_writemsg;
	ops.atomic.readwrite = atomic_readwrite;
	ops.atomic.readwritev = atomic_readwritev;
	ops.atomic.readwritemsg = atomic_readwritemsg;
	ops.atomic.compwrite = atomic_compwrite;
	ops.atomic.compwritev = atomic_compwritev;
	ops.atomic.compwritemsg = atomic_compwritemsg;
}

void shrimp_local_protect(struct fid_ep *ep)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fill);
	ep->msg = &ops.msg;
	ep->tagged = &ops.tagged;
	ep->rma = &ops.rma;
	ep->atomic = &ops.atomic;
}
