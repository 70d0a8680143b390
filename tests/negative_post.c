/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The calls of tests/negative: every one of fi_rma(3) and fi_atomic(3).
 */
#define _GNU_SOURCE
#include "negative.h"

static struct iovec *iovs(const struct request *q, unsigned char *buf,
			  struct iovec *v)
{
	for (size_t i = 0; i < q->nhere; i++) {
		v[i] = (struct iovec){ buf, q->here[i] };
		buf += q->here[i];
	}
	return v;
}

static struct fi_ioc *iocs(const struct request *q, unsigned char *buf,
			   struct fi_ioc *v)
{
	for (size_t i = 0; i < q->nhere; i++) {
		v[i] = (struct fi_ioc){ buf, q->here[i] / ELEM };
		buf += q->here[i];
	}
	return v;
}

static ssize_t post_rma_msg(struct bed *b, const struct request *q)
{
	struct iovec v[3];
	struct fi_msg_rma m = {
		.msg_iov = iovs(q, q->row.kind == READ ? b->dst : b->src, v),
		.iov_count = q->nhere,
		.addr = b->to[q->row.target],
		.rma_iov = q->there,
		.rma_iov_count = q->nthere,
		.context = b,
		.data = DATA,
	};

	if (q->row.kind == READ)
		return fi_readmsg(b->a.ep, &m, FI_COMPLETION);
	return fi_writemsg(
		b->a.ep, &m,
		FI_COMPLETION | (with_data(&q->row) ? FI_REMOTE_CQ_DATA : 0));
}

static ssize_t post_read(struct bed *b, const struct request *q)
{
	const struct fi_rma_iov *x = q->there;
	fi_addr_t to = b->to[q->row.target];
	struct iovec v[3];

	if (q->row.form == VECTOR)
		return fi_readv(b->a.ep, iovs(q, b->dst, v), NULL, q->nhere, to,
				x->addr, x->key, b);
	return fi_read(b->a.ep, b->dst, q->len, NULL, to, x->addr, x->key, b);
}

static ssize_t post_write(struct bed *b, const struct request *q)
{
	const struct fi_rma_iov *x = q->there;
	fi_addr_t to = b->to[q->row.target];
	struct fid_ep *ep = b->a.ep;
	struct iovec v[3];

	switch (q->row.form) {
	case VECTOR:
		return fi_writev(ep, iovs(q, b->src, v), NULL, q->nhere, to,
				 x->addr, x->key, b);
	case CQDATA:
		return fi_writedata(ep, b->src, q->len, NULL, DATA, to, x->addr,
				    x->key, b);
	case INJECT:
		return fi_inject_write(ep, b->src, q->len, to, x->addr, x->key);
	case INJDATA:
		return fi_inject_writedata(ep, b->src, q->len, DATA, to,
					   x->addr, x->key);
	default:
		return fi_write(ep, b->src, q->len, NULL, to, x->addr, x->key,
				b);
	}
}

/* The operations: each says what must be in memory afterwards. */
static enum fi_op op_of(enum kind kind)
{
	return kind == COMPARE ? FI_CSWAP : FI_ATOMIC_WRITE;
}

static ssize_t post_atomic_msg(struct bed *b, const struct request *q)
{
	struct fi_ioc v[3], res[3], cmp[3];
	struct fi_rma_ioc there[3];
	struct fi_msg_atomic m = {
		.msg_iov = iocs(q, b->src, v),
		.iov_count = q->nhere,
		.addr = b->to[q->row.target],
		.rma_iov = there,
		.rma_iov_count = q->nthere,
		.datatype = FI_UINT64,
		.op = op_of(q->row.kind),
		.context = b,
	};

	for (size_t i = 0; i < q->nthere; i++)
		there[i] = (struct fi_rma_ioc){ q->there[i].addr,
						q->there[i].len / ELEM,
						q->there[i].key };
	iocs(q, b->dst, res);
	iocs(q, b->cmp, cmp);
	if (q->row.kind == ATOMIC)
		return fi_atomicmsg(b->a.ep, &m, FI_COMPLETION);
	if (q->row.kind == FETCH)
		return fi_fetch_atomicmsg(b->a.ep, &m, res, NULL, q->nhere,
					  FI_COMPLETION);
	return fi_compare_atomicmsg(b->a.ep, &m, cmp, NULL, q->nhere, res, NULL,
				    q->nhere, FI_COMPLETION);
}

static ssize_t post_atomic_v(struct bed *b, const struct request *q)
{
	const struct fi_rma_iov *x = q->there;
	enum fi_op op = op_of(q->row.kind);
	fi_addr_t to = b->to[q->row.target];
	struct fi_ioc v[3], res[3], cmp[3];
	struct fid_ep *ep = b->a.ep;
	size_t n = q->nhere;

	iocs(q, b->src, v);
	iocs(q, b->dst, res);
	iocs(q, b->cmp, cmp);
	if (q->row.kind == ATOMIC)
		return fi_atomicv(ep, v, NULL, n, to, x->addr, x->key,
				  FI_UINT64, op, b);
	if (q->row.kind == FETCH)
		return fi_fetch_atomicv(ep, v, NULL, n, res, NULL, n, to,
					x->addr, x->key, FI_UINT64, op, b);
	return fi_compare_atomicv(ep, v, NULL, n, cmp, NULL, n, res, NULL, n,
				  to, x->addr, x->key, FI_UINT64, op, b);
}

static ssize_t post_atomic(struct bed *b, const struct request *q)
{
	const struct fi_rma_iov *x = q->there;
	enum fi_op op = op_of(q->row.kind);
	fi_addr_t to = b->to[q->row.target];
	struct fid_ep *ep = b->a.ep;
	size_t n = q->len / ELEM;

	if (q->row.form == VECTOR)
		return post_atomic_v(b, q);
	if (q->row.form == INJECT)
		return fi_inject_atomic(ep, b->src, n, to, x->addr, x->key,
					FI_UINT64, op);
	if (q->row.kind == ATOMIC)
		return fi_atomic(ep, b->src, n, NULL, to, x->addr, x->key,
				 FI_UINT64, op, b);
	if (q->row.kind == FETCH)
		return fi_fetch_atomic(ep, b->src, n, NULL, b->dst, NULL, to,
				       x->addr, x->key, FI_UINT64, op, b);
	return fi_compare_atomic(ep, b->src, n, NULL, b->cmp, NULL, b->dst,
				 NULL, to, x->addr, x->key, FI_UINT64, op, b);
}

ssize_t neg_post(struct bed *b, const struct request *q)
{
	bool msg = q->row.form == MSG || q->row.form == LIST ||
		   q->row.form == MSGDATA;

	if (is_atomic(&q->row))
		return msg ? post_atomic_msg(b, q) : post_atomic(b, q);
	if (msg)
		return post_rma_msg(b, q);
	return q->row.kind == READ ? post_read(b, q) : post_write(b, q);
}
