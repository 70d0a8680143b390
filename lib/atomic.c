/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * fi_atomic(3): the calls, checked and made one. See rma.h for what follows,
 * shm/aop.h for the arithmetic.
 */
#include "lib/atomic.h"

#include "lib/domain.h"
#include "lib/info.h"
#include "lib/msg.h"
#include "lib/rma.h"
#include "shm/copy.h"

/* The numbers of shm/aop.h are those of libfabric. */
_Static_assert((int)RNIC_AOP_INT8 == (int)FI_INT8 &&
		       (int)RNIC_AOP_UINT64 == (int)FI_UINT64 &&
		       (int)RNIC_AOP_FLOAT == (int)FI_FLOAT &&
		       (int)RNIC_AOP_LONG_DOUBLE_COMPLEX ==
			       (int)FI_LONG_DOUBLE_COMPLEX,
	       "types");
_Static_assert((int)RNIC_AOP_MIN == (int)FI_MIN &&
		       (int)RNIC_AOP_READ == (int)FI_ATOMIC_READ &&
		       (int)RNIC_AOP_WRITE == (int)FI_ATOMIC_WRITE &&
		       (int)RNIC_AOP_CSWAP == (int)FI_CSWAP &&
		       (int)RNIC_AOP_MSWAP == (int)FI_MSWAP,
	       "operations");

/* ---- what there is ---- */

/* 0 with the bytes of an element, or -FI_EOPNOTSUPP. */
static int valid(enum fi_datatype type, enum fi_op op, enum rnic_aop_kind kind,
		 size_t *size)
{
	/* bounded before it is one of theirs */
	if ((unsigned int)type >= RNIC_AOP_TYPES ||
	    (unsigned int)op >= RNIC_AOP_OPS ||
	    !rnic_aop_valid((enum rnic_aop_type)type, (enum rnic_aop_op)op,
			    kind))
		return -FI_EOPNOTSUPP;
	*size = rnic_aop_size((enum rnic_aop_type)type);
	return 0;
}

static int count_for(enum fi_datatype type, enum fi_op op,
		     enum rnic_aop_kind kind, size_t *count)
{
	size_t size;
	int ret = valid(type, op, kind, &size);

	if (!ret && count)
		*count = SHRIMP_ATOMIC_BYTES / size;
	return ret;
}

static int writevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op,
		      size_t *count)
{
	(void)ep;
	return count_for(type, op, RNIC_AOP_BASE, count);
}

static int readwritevalid(struct fid_ep *ep, enum fi_datatype type,
			  enum fi_op op, size_t *count)
{
	(void)ep;
	return count_for(type, op, RNIC_AOP_FETCH, count);
}

static int compwritevalid(struct fid_ep *ep, enum fi_datatype type,
			  enum fi_op op, size_t *count)
{
	(void)ep;
	return count_for(type, op, RNIC_AOP_COMPARE, count);
}

int shrimp_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
			enum fi_op op, struct fi_atomic_attr *attr,
			uint64_t flags)
{
	enum rnic_aop_kind kind = RNIC_AOP_BASE;
	size_t size;
	int ret;

	(void)domain;
	if (flags & ~(uint64_t)(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC) ||
	    flags == (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EINVAL;
	if (flags & FI_FETCH_ATOMIC)
		kind = RNIC_AOP_FETCH;
	if (flags & FI_COMPARE_ATOMIC)
		kind = RNIC_AOP_COMPARE;
	ret = valid(datatype, op, kind, &size);
	if (ret || !attr)
		return ret;
	attr->count = SHRIMP_ATOMIC_BYTES / size;
	attr->size = size;
	return 0;
}

/* ---- the operation ---- */

/* What differs between the calls; counts are in elements. */
struct args {
	const struct fi_ioc *operand;	/* NULL: FI_ATOMIC_READ */
	size_t noperand;		/* entries */
	const struct fi_ioc *compare;	/* compare calls */
	size_t ncompare;		/* entries */
	const struct fi_ioc *result;	/* fetch and compare calls */
	size_t nresult;			/* entries */
	const struct fi_rma_ioc *there; /* at the peer */
	size_t nthere;			/* entries */
	fi_addr_t peer;			/* who */
	enum fi_datatype type;		/* of all elements */
	enum fi_op op;			/* what is done */
	enum rnic_aop_kind kind;	/* which call */
	uint64_t data;			/* remote CQ data */
	void *context;			/* the caller's */
	uint64_t flags;			/* FI_ flags for this call */
	bool inject;			/* a call without completion */
};

#define ATOMIC_FLAGS                                                           \
	(FI_COMPLETION | FI_MORE | FI_FENCE | FI_INJECT | FI_INJECT_COMPLETE | \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_COMMIT_COMPLETE |    \
	 FI_REMOTE_CQ_DATA)

/* The same lists in bytes. */
struct lists {
	struct iovec operand[SHRIMP_IOV_MAX];	 /* of args */
	struct iovec compare[SHRIMP_IOV_MAX];	 /* likewise */
	struct iovec result[SHRIMP_IOV_MAX];	 /* likewise */
	struct fi_rma_iov there[SHRIMP_IOV_MAX]; /* likewise */
};

/* Elements of @v become bytes. -FI_EINVAL unless they are @bytes. */
static int to_iov(const struct fi_ioc *v, size_t n, size_t size, size_t bytes,
		  struct iovec *to)
{
	size_t sum = 0;

	if (n > SHRIMP_IOV_MAX || (n && !v))
		return -FI_EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (v[i].count > SHRIMP_ATOMIC_BYTES / size)
			return -FI_EINVAL;
		to[i].iov_base = v[i].addr;
		to[i].iov_len = v[i].count * size;
		sum += to[i].iov_len;
	}
	return sum == bytes ? 0 : -FI_EINVAL;
}

/* The ranges at the peer; *@bytes is what they hold. */
static int to_rma_iov(const struct args *a, size_t size, struct fi_rma_iov *to,
		      size_t *bytes)
{
	*bytes = 0;
	if (!a->nthere || a->nthere > SHRIMP_IOV_MAX || !a->there)
		return -FI_EINVAL;
	for (size_t i = 0; i < a->nthere; i++) {
		if (a->there[i].count > SHRIMP_ATOMIC_BYTES / size)
			return -FI_EINVAL;
		to[i].addr = a->there[i].addr;
		to[i].key = a->there[i].key;
		to[i].len = a->there[i].count * size;
		*bytes += to[i].len;
	}
	return *bytes && *bytes <= SHRIMP_ATOMIC_BYTES ? 0 : -FI_EINVAL;
}

/* -FI_EINVAL, -FI_EOPNOTSUPP, or 0 with @l, and the bytes at the peer. */
static int check(const struct args *a, struct lists *l, size_t *size,
		 size_t *bytes)
{
	int ret = valid(a->type, a->op, a->kind, size);

	if (!ret && a->flags & ~(uint64_t)ATOMIC_FLAGS)
		ret = -FI_EINVAL;
	if (!ret)
		ret = to_rma_iov(a, *size, l->there, bytes);
	if (!ret && a->op != FI_ATOMIC_READ)
		ret = to_iov(a->operand, a->noperand, *size, *bytes,
			     l->operand);
	if (!ret && a->kind == RNIC_AOP_COMPARE)
		ret = to_iov(a->compare, a->ncompare, *size, *bytes,
			     l->compare);
	if (!ret && a->kind != RNIC_AOP_BASE)
		ret = to_iov(a->result, a->nresult, *size, *bytes, l->result);
	return ret;
}

static uint8_t ask_of(enum rnic_aop_kind kind)
{
	if (kind == RNIC_AOP_BASE)
		return RNIC_ASK_ATOMIC;
	return kind == RNIC_AOP_FETCH ? RNIC_ASK_FETCH : RNIC_ASK_COMPARE;
}

static struct shrimp_rma rma_of(const struct args *a, const struct lists *l,
				size_t size)
{
	struct shrimp_rma r = {
		.there = l->there,
		.nthere = a->nthere,
		.kind = ask_of(a->kind),
		.op = (uint8_t)a->op,
		.type = (uint8_t)a->type,
		.size = (uint8_t)size,
	};

	if (a->kind == RNIC_AOP_COMPARE) {
		r.compare = l->compare;
		r.ncompare = a->ncompare;
	}
	if (a->kind != RNIC_AOP_BASE) {
		r.result = l->result;
		r.nresult = a->nresult;
	}
	return r;
}

static ssize_t atomic(struct fid_ep *fid, const struct args *a)
{
	struct shrimp_ep *ep = shrimp_ep_of(fid);
	struct shrimp_rma r;
	struct shrimp_send s = {
		.data = a->data,
		.context = a->context,
		.rma = &r,
		.level = SHRIMP_LEVEL_TRANSMIT,
		.inject = a->inject || a->flags & FI_INJECT,
		.fence = a->flags & FI_FENCE,
		.no_context = a->inject,
	};
	struct lists l;
	size_t size;
	ssize_t ret = check(a, &l, &size, &s.len);

	if (ret)
		return ret;
	r = rma_of(a, &l, size);
	if (a->op != FI_ATOMIC_READ) {
		s.iov = l.operand;
		s.niov = a->noperand;
	}
	if (a->flags & FI_REMOTE_CQ_DATA)
		s.desc_flags = RNIC_DESC_CQ_DATA;
	s.quiet =
		a->inject || (ep->tx_selective && !(a->flags & FI_COMPLETION));
	shrimp_ep_lock(ep);
	ret = ep->ready ? shrimp_tx_send(ep, a->peer, &s) : -FI_EOPBADSTATE;
	shrimp_ep_unlock(ep);
	return ret;
}

/* ---- fi_atomic(3) ---- */

/* The endpoint's flags that mean something to atomics. */
static uint64_t default_flags(struct fid_ep *ep)
{
	return shrimp_default_tx_flags(shrimp_ep_of(ep)) & ATOMIC_FLAGS &
	       ~(uint64_t)FI_REMOTE_CQ_DATA;
}

/* Elements of all @n entries; more than any call may have if it wraps. */
static size_t elements(const struct fi_ioc *v, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; v && i < n && i < SHRIMP_IOV_MAX; i++) {
		if (v[i].count > SHRIMP_ATOMIC_BYTES)
			return SIZE_MAX;
		sum += v[i].count;
	}
	return sum;
}

/* A call with one range at the peer, which is as long as what it names. */
static ssize_t to_one(struct fid_ep *ep, struct args *a, uint64_t addr,
		      uint64_t key)
{
	struct fi_rma_ioc there = { .addr = addr, .key = key };

	there.count = a->op == FI_ATOMIC_READ
			      ? elements(a->result, a->nresult)
			      : elements(a->operand, a->noperand);
	a->there = &there;
	a->nthere = 1;
	return atomic(ep, a);
}

static struct fi_ioc ioc_of(const void *buf, size_t count)
{
	return (struct fi_ioc){ .addr = (void *)(uintptr_t)buf,
				.count = count };
}

static ssize_t atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov,
			     void **desc, size_t count, fi_addr_t dest,
			     uint64_t addr, uint64_t key, enum fi_datatype type,
			     enum fi_op op, void *context)
{
	struct args a = { .operand = iov,
			  .noperand = count,
			  .peer = dest,
			  .type = type,
			  .op = op,
			  .kind = RNIC_AOP_BASE,
			  .context = context,
			  .flags = default_flags(ep) };

	(void)desc;
	return to_one(ep, &a, addr, key);
}

static ssize_t atomic_write(struct fid_ep *ep, const void *buf, size_t count,
			    void *desc, fi_addr_t dest, uint64_t addr,
			    uint64_t key, enum fi_datatype type, enum fi_op op,
			    void *context)
{
	struct fi_ioc ioc = ioc_of(buf, count);

	return atomic_writev(ep, &ioc, &desc, 1, dest, addr, key, type, op,
			     context);
}

/* The call @a, and what @m says. */
static inline ssize_t by_msg(struct fid_ep *ep, struct args *a,
			     const struct fi_msg_atomic *m, uint64_t flags)
{
	a->operand = m->msg_iov;
	a->noperand = m->iov_count;
	a->there = m->rma_iov;
	a->nthere = m->rma_iov_count;
	a->peer = m->addr;
	a->type = m->datatype;
	a->op = m->op;
	a->data = m->data;
	a->context = m->context;
	a->flags = flags;
	return atomic(ep, a);
}

static ssize_t atomic_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *m,
			       uint64_t flags)
{
	struct args a = { .kind = RNIC_AOP_BASE };

	return by_msg(ep, &a, m, flags);
}

static ssize_t atomic_inject(struct fid_ep *ep, const void *buf, size_t count,
			     fi_addr_t dest, uint64_t addr, uint64_t key,
			     enum fi_datatype type, enum fi_op op)
{
	struct fi_ioc ioc = ioc_of(buf, count);
	struct args a = { .operand = &ioc,
			  .noperand = 1,
			  .peer = dest,
			  .type = type,
			  .op = op,
			  .kind = RNIC_AOP_BASE,
			  .inject = true };

	return to_one(ep, &a, addr, key);
}

static ssize_t atomic_readwritev(struct fid_ep *ep, const struct fi_ioc *iov,
				 void **desc, size_t count,
				 struct fi_ioc *result, void **result_desc,
				 size_t nresult, fi_addr_t dest, uint64_t addr,
				 uint64_t key, enum fi_datatype type,
				 enum fi_op op, void *context)
{
	struct args a = { .operand = iov,
			  .noperand = count,
			  .result = result,
			  .nresult = nresult,
			  .peer = dest,
			  .type = type,
			  .op = op,
			  .kind = RNIC_AOP_FETCH,
			  .context = context,
			  .flags = default_flags(ep) };

	(void)desc, (void)result_desc;
	return to_one(ep, &a, addr, key);
}

static ssize_t atomic_readwrite(struct fid_ep *ep, const void *buf,
				size_t count, void *desc, void *result,
				void *result_desc, fi_addr_t dest,
				uint64_t addr, uint64_t key,
				enum fi_datatype type, enum fi_op op,
				void *context)
{
	struct fi_ioc ioc = ioc_of(buf, count), res = ioc_of(result, count);

	return atomic_readwritev(ep, &ioc, &desc, 1, &res, &result_desc, 1,
				 dest, addr, key, type, op, context);
}

static ssize_t atomic_readwritemsg(struct fid_ep *ep,
				   const struct fi_msg_atomic *m,
				   struct fi_ioc *result, void **result_desc,
				   size_t nresult, uint64_t flags)
{
	struct args a = { .result = result,
			  .nresult = nresult,
			  .kind = RNIC_AOP_FETCH };

	(void)result_desc;
	return by_msg(ep, &a, m, flags);
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
	struct args a = { .operand = iov,
			  .noperand = count,
			  .compare = compare,
			  .ncompare = ncompare,
			  .result = result,
			  .nresult = nresult,
			  .peer = dest,
			  .type = type,
			  .op = op,
			  .kind = RNIC_AOP_COMPARE,
			  .context = context,
			  .flags = default_flags(ep) };

	(void)desc, (void)compare_desc, (void)result_desc;
	return to_one(ep, &a, addr, key);
}

static ssize_t
atomic_compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
		 const void *compare, void *compare_desc, void *result,
		 void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
		 enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_ioc ioc = ioc_of(buf, count), cmp = ioc_of(compare, count),
		      res = ioc_of(result, count);

	return atomic_compwritev(ep, &ioc, &desc, 1, &cmp, &compare_desc, 1,
				 &res, &result_desc, 1, dest, addr, key, type,
				 op, context);
}

static ssize_t atomic_compwritemsg(struct fid_ep *ep,
				   const struct fi_msg_atomic *m,
				   const struct fi_ioc *compare,
				   void **compare_desc, size_t ncompare,
				   struct fi_ioc *result, void **result_desc,
				   size_t nresult, uint64_t flags)
{
	struct args a = { .compare = compare,
			  .ncompare = ncompare,
			  .result = result,
			  .nresult = nresult,
			  .kind = RNIC_AOP_COMPARE };

	(void)compare_desc, (void)result_desc;
	return by_msg(ep, &a, m, flags);
}

struct fi_ops_atomic shrimp_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = writevalid,
	.readwritevalid = readwritevalid,
	.compwritevalid = compwritevalid,
};
