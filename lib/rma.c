/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * fi_rma(3): the calls, checked and made one. See rma.h for what follows.
 */
#include "lib/rma.h"

#include "lib/domain.h"
#include "lib/info.h"
#include "lib/msg.h"
#include "shm/copy.h"

/* What differs between the calls. */
struct args {
	const struct iovec *iov;	/* here */
	size_t niov;			/* entries */
	const struct fi_rma_iov *there; /* at the peer */
	size_t nthere;			/* entries */
	fi_addr_t peer;			/* who */
	uint64_t data;			/* remote CQ data */
	void *context;			/* the caller's */
	uint64_t flags;			/* FI_ flags for this call */
	bool write;			/* else read */
	bool inject;			/* a call without completion */
};

#define READ_FLAGS                                                             \
	(FI_COMPLETION | FI_MORE | FI_FENCE | FI_INJECT_COMPLETE |             \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)
#define WRITE_FLAGS                                                            \
	(READ_FLAGS | FI_INJECT | FI_REMOTE_CQ_DATA | FI_COMMIT_COMPLETE)

/* Bytes that the payload of @a may have. */
RNIC_HOT size_t most_bytes(const struct args *a)
{
	return a->inject || a->flags & FI_INJECT ? SHRIMP_INJECT_SIZE
						 : SHRIMP_MAX_MSG_SIZE;
}

/* The bytes of the remote ranges; SIZE_MAX if the sum wraps. */
static size_t there_len(const struct fi_rma_iov *v, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i].len > SIZE_MAX - 1 - len)
			return SIZE_MAX;
		len += v[i].len;
	}
	return len;
}

/* The bytes of @iov, 0 if check() will refuse it. */
static size_t here_len(const struct iovec *iov, size_t n)
{
	return iov && n <= SHRIMP_IOV_MAX ? rnic_iov_len(iov, n) : 0;
}

/* -FI_EINVAL, or 0 and the bytes on each side. */
static int check(const struct args *a, size_t *len)
{
	if (a->niov > SHRIMP_IOV_MAX || a->nthere > SHRIMP_IOV_MAX ||
	    (a->niov && !a->iov) || (a->nthere && !a->there))
		return -FI_EINVAL;
	*len = rnic_iov_len(a->iov, a->niov);
	if (*len > most_bytes(a) || *len != there_len(a->there, a->nthere))
		return -FI_EINVAL;
	return 0;
}

/* True if success of @a is not told to the queue. */
RNIC_HOT bool is_quiet(const struct shrimp_ep *ep, const struct args *a)
{
	return a->inject || (ep->tx_selective && !(a->flags & FI_COMPLETION));
}

static ssize_t rma(struct fid_ep *fid, const struct args *a)
{
	struct shrimp_ep *ep = shrimp_ep_of(fid);
	struct shrimp_rma r = {
		.there = a->there,
		.nthere = a->nthere,
		.kind = a->write ? RNIC_ASK_WRITE : RNIC_ASK_READ,
		.size = 1,
	};
	struct shrimp_send s = {
		.iov = a->iov,
		.niov = a->niov,
		.data = a->data,
		.context = a->context,
		.rma = &r,
		.level = SHRIMP_LEVEL_TRANSMIT,
		.inject = a->inject || a->flags & FI_INJECT,
		.fence = a->flags & FI_FENCE,
		.no_context = a->inject,
	};
	ssize_t ret = check(a, &s.len);

	if (ret)
		return ret;
	if (a->flags & FI_REMOTE_CQ_DATA)
		s.desc_flags = RNIC_DESC_CQ_DATA;
	s.quiet = is_quiet(ep, a);
	shrimp_ep_lock(ep);
	ret = ep->ready ? shrimp_tx_send(ep, a->peer, &s) : -FI_EOPBADSTATE;
	shrimp_ep_unlock(ep);
	return ret;
}

/* ---- the short way ---- */

/*
 * Does @x if nothing before it waits, nobody is to be told, and its bytes are
 * one piece that the key cache knows. False: take the long way, from the start.
 * Everything is inline down to the system call: each function that is left
 * after one costs some 9 ns, since the CPU does not expect its return.
 */
RNIC_HOT bool quick_locked(struct shrimp_ep *ep, fi_addr_t peer,
			   struct rnic_access *x)
{
	uint32_t events = x->write ? RNIC_MR_EV_WRITE : RNIC_MR_EV_READ;
	struct shrimp_tx_peer *tp;

	if (RNIC_UNLIKELY(!ep->ready || peer >= ep->ntx || shrimp_tx_full(ep)))
		return false;
	tp = ep->tx[peer];
	/* rx_closed is relaxed: see shrimp_tx_ready() */
	if (RNIC_UNLIKELY(!tp || !tp->fast || !tp->reach || tp->asks.n ||
			  rnic_load32_relaxed(&tp->lane.sh->flag.rx_closed) ||
			  shrimp_rma_heard(tp, x->write)))
		return false;
	if (RNIC_UNLIKELY(!rnic_reach_quick(ep->ctx, tp->reach, x, events)))
		return false;
	shrimp_rma_count(ep, x);
	return true;
}

/* Reports @x, which is done. */
RNIC_HOT void report(struct shrimp_ep *ep, const struct rnic_access *x,
		     const struct args *a)
{
	struct shrimp_cntr *cntr = ep->rma_cntr[x->write];
	struct shrimp_comp c;

	if (RNIC_UNLIKELY(cntr))
		shrimp_cntr_add(cntr, 1);
	if (is_quiet(ep, a) || !ep->tx_cq)
		return;
	c = (struct shrimp_comp){
		.context = a->context,
		.flags = FI_RMA | (x->write ? FI_WRITE : FI_READ),
		.src = FI_ADDR_NOTAVAIL,
	};
	shrimp_cq_queue(ep->tx_cq, &c);
}

/*
 * The operation @a of one range on each side, both in @x: true if it is done.
 * What @a says of ranges does not count.
 */
RNIC_HOT bool quick(struct fid_ep *fid, const struct args *a,
		    struct rnic_access *x)
{
	struct shrimp_ep *ep = shrimp_ep_of(fid);
	bool done;

	if (RNIC_UNLIKELY(a->flags & (FI_FENCE | FI_REMOTE_CQ_DATA) ||
			  x->len > most_bytes(a)))
		return false;
	x->write = a->write;
	shrimp_ep_lock(ep);
	done = quick_locked(ep, a->peer, x);
	if (RNIC_LIKELY(done))
		report(ep, x, a);
	shrimp_ep_unlock(ep);
	return done;
}

/* ---- the calls ---- */

/* The endpoint's flags that mean something to RMA. */
static uint64_t default_flags(struct fid_ep *ep, bool write)
{
	return shrimp_default_tx_flags(shrimp_ep_of(ep)) &
	       (write ? WRITE_FLAGS : READ_FLAGS);
}

static ssize_t rma_readv(struct fid_ep *ep, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 uint64_t addr, uint64_t key, void *context)
{
	struct fi_rma_iov there = { .addr = addr,
				    .len = here_len(iov, count),
				    .key = key };
	struct args a = { .iov = iov,
			  .niov = count,
			  .there = &there,
			  .nthere = 1,
			  .peer = src,
			  .context = context,
			  .flags = default_flags(ep, false) };

	(void)desc;
	return rma(ep, &a);
}

static ssize_t rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src, uint64_t addr, uint64_t key,
			void *context)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct args a = { .peer = src,
			  .context = context,
			  .flags = default_flags(ep, false) };
	struct rnic_access x = {
		.key = key, .addr = addr, .len = len, .buf = buf
	};

	if (RNIC_LIKELY(quick(ep, &a, &x)))
		return 0;
	return rma_readv(ep, &iov, &desc, 1, src, addr, key, context);
}

/* quick() if @a has one range on each side. */
RNIC_HOT bool quick_msg(struct fid_ep *ep, const struct args *a)
{
	struct rnic_access x = { .key = 0 };

	if (a->niov != 1 || a->nthere != 1 || !a->iov || !a->there ||
	    a->iov->iov_len != a->there->len)
		return false;
	x.key = a->there->key;
	x.addr = a->there->addr;
	x.len = a->there->len;
	x.buf = a->iov->iov_base;
	return quick(ep, a, &x);
}

static ssize_t rma_msg(struct fid_ep *ep, const struct fi_msg_rma *m,
		       uint64_t flags, bool write)
{
	struct args a = { .iov = m->msg_iov,
			  .niov = m->iov_count,
			  .there = m->rma_iov,
			  .nthere = m->rma_iov_count,
			  .peer = m->addr,
			  .data = m->data,
			  .context = m->context,
			  .flags = flags,
			  .write = write };

	if (flags & ~(uint64_t)(write ? WRITE_FLAGS : READ_FLAGS))
		return -FI_EINVAL;
	return quick_msg(ep, &a) ? 0 : rma(ep, &a);
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			   uint64_t flags)
{
	return rma_msg(ep, msg, flags, false);
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			    uint64_t flags)
{
	return rma_msg(ep, msg, flags, true);
}

/* A write to one remote range. */
static ssize_t write_one(struct fid_ep *ep, struct args *a, uint64_t addr,
			 uint64_t key)
{
	struct fi_rma_iov there = { .addr = addr,
				    .len = here_len(a->iov, a->niov),
				    .key = key };

	a->there = &there;
	a->nthere = 1;
	a->write = true;
	return rma(ep, a);
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t dest,
			  uint64_t addr, uint64_t key, void *context)
{
	struct args a = { .iov = iov,
			  .niov = count,
			  .peer = dest,
			  .context = context,
			  .flags = default_flags(ep, true) };

	(void)desc;
	return write_one(ep, &a, addr, key);
}

static ssize_t rma_write(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, fi_addr_t dest, uint64_t addr,
			 uint64_t key, void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct args a = { .peer = dest,
			  .context = context,
			  .flags = default_flags(ep, true),
			  .write = true };
	struct rnic_access x = {
		.key = key, .addr = addr, .len = len, .buf = iov.iov_base
	};

	if (RNIC_LIKELY(quick(ep, &a, &x)))
		return 0;
	return rma_writev(ep, &iov, &desc, 1, dest, addr, key, context);
}

static ssize_t rma_inject(struct fid_ep *ep, const void *buf, size_t len,
			  fi_addr_t dest, uint64_t addr, uint64_t key)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct args a = { .peer = dest, .write = true, .inject = true };
	struct rnic_access x = {
		.key = key, .addr = addr, .len = len, .buf = iov.iov_base
	};
	struct args all;

	if (RNIC_LIKELY(quick(ep, &a, &x)))
		return 0;
	all = (struct args){
		.iov = &iov, .niov = 1, .peer = dest, .inject = true
	};
	return write_one(ep, &all, addr, key);
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t dest,
			     uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct args a = { .iov = &iov,
			  .niov = 1,
			  .peer = dest,
			  .data = data,
			  .context = context,
			  .flags =
				  default_flags(ep, true) | FI_REMOTE_CQ_DATA };

	(void)desc;
	return write_one(ep, &a, addr, key);
}

static ssize_t rma_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest, uint64_t addr,
			      uint64_t key)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct args a = { .iov = &iov,
			  .niov = 1,
			  .peer = dest,
			  .data = data,
			  .flags = FI_REMOTE_CQ_DATA,
			  .inject = true };

	return write_one(ep, &a, addr, key);
}

struct fi_ops_rma shrimp_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
