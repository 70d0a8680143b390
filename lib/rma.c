/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * RMA: pairing local with remote ranges, moving, reporting.
 *
 * Exclusion: the endpoint's lock, which makes the caller the endpoint's
 * execution context (shm/reader.h). Waits: none but page faults of the peer.
 */
#include "lib/rma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cntr.h"
#include "lib/cq.h"
#include "lib/domain.h"
#include "lib/info.h"
#include "lib/msg.h"
#include "shm/copy.h"
#include "shm/log.h"
#include "shm/reach.h"

/* ---- what a peer needs for it ---- */

/* The endpoint's execution context. 0 or an error. */
static int open_ctx(struct shrimp_ep *ep)
{
	int ret;

	if (ep->ctx)
		return 0;
	ep->ctx = calloc(1, sizeof(*ep->ctx));
	if (!ep->ctx)
		return -ENOMEM;
	ret = rnic_ctx_open(ep->ctx, &ep->domain->dev, ep->place.index, 0);
	if (ret) {
		free(ep->ctx);
		ep->ctx = NULL;
	}
	return ret;
}

/* An endpoint that reaches itself is a peer like others, with a lane. */
static int claim_self(struct shrimp_tx_peer *tp)
{
	struct shrimp_ep *ep = tp->ep;
	struct rnic_lane *lane;
	int ret;

	if (tp->lane.sh)
		return 0;
	ret = rnic_remote_open(&ep->addr, RNIC_ATTACH_PROC, &tp->remote);
	if (ret)
		return ret;
	ret = rnic_remote_claim(tp->remote, &ep->addr, &lane, &tp->index);
	if (ret) {
		rnic_remote_close(tp->remote);
		tp->remote = NULL;
		return ret;
	}
	rnic_lane_tx_init(&tp->lane, lane, tp->index,
			  ep->domain->set->lane_lines, tp->remote->fence);
	tp->retired = tp->lane.taken;
	shrimp_tx_ring(tp);
	return 0;
}

static int open_reach(struct shrimp_tx_peer *tp)
{
	int ret = open_ctx(tp->ep);

	if (!ret && tp->self)
		ret = claim_self(tp);
	if (ret || tp->reach)
		return ret;
	tp->reach = calloc(1, sizeof(*tp->reach));
	if (!tp->reach)
		return -ENOMEM;
	ret = rnic_reach_init(tp->reach, tp->remote, tp->lane.sh, 0);
	if (ret) {
		free(tp->reach);
		tp->reach = NULL;
	}
	/* its descriptor has another meaning by now: it is gone */
	return ret == -ESTALE ? -ESRCH : ret;
}

void shrimp_rma_release(struct shrimp_tx_peer *tp)
{
	if (tp->reach)
		rnic_reach_fini(tp->reach);
	free(tp->reach);
	tp->reach = NULL;
}

struct shrimp_rma *shrimp_rma_keep(const struct shrimp_send *s)
{
	struct shrimp_rma *r = malloc(sizeof(*r));

	if (!r)
		return NULL;
	*r = *s->rma;
	r->copy = NULL;
	if (!s->inject || !s->len)
		return r;
	r->copy = malloc(s->len);
	if (!r->copy) {
		free(r);
		return NULL;
	}
	rnic_iov_gather(r->copy, s->iov, s->niov, 0, s->len);
	return r;
}

void shrimp_rma_free(struct shrimp_rma *rma)
{
	if (rma)
		free(rma->copy);
	free(rma);
}

/* ---- moving ---- */

/* Two lists of ranges, walked side by side. */
struct walk {
	const struct iovec *local;	/* here */
	const struct fi_rma_iov *there; /* at the peer */
	size_t local_off;		/* bytes of *local that are done */
	size_t there_off;		/* bytes of *there that are done */
};

/* The next piece, contiguous on both sides; there are @left bytes. */
static void next_piece(struct walk *w, size_t left, struct rnic_access *a)
{
	while (w->local_off == w->local->iov_len) {
		w->local++;
		w->local_off = 0;
	}
	while (w->there_off == w->there->len) {
		w->there++;
		w->there_off = 0;
	}
	a->buf = (char *)w->local->iov_base + w->local_off;
	a->key = w->there->key;
	a->addr = w->there->addr + w->there_off;
	a->len = w->local->iov_len - w->local_off;
	if (a->len > w->there->len - w->there_off)
		a->len = w->there->len - w->there_off;
	if (a->len > left)
		a->len = left;
}

/* Moves all of @s. Returns 0 or a negative errno; *@a is the last piece. */
static int move_all(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		    struct rnic_access *a, size_t *moved)
{
	const struct shrimp_rma *r = s->rma;
	struct iovec copy = { .iov_base = r->copy, .iov_len = s->len };
	struct walk w = { .local = r->copy ? &copy : s->iov, .there = r->iov };
	size_t n;
	int ret = 0;

	*moved = 0;
	while (!ret && *moved < s->len) {
		next_piece(&w, s->len - *moved, a);
		ret = rnic_reach_move(tp->ep->ctx, tp->reach, a, &n);
		w.local_off += n;
		w.there_off += n;
		*moved += n;
	}
	return ret;
}

/* The FI_ code of what a move said (contract I2). */
static int error_of(int ret)
{
	switch (ret) {
	case 0:
		return 0;
	case -ENOKEY:
	case -ESTALE:
	case -EAGAIN:
		return FI_EKEYREJECTED;
	case -ERANGE:
		return FI_EINVAL;
	case -ESRCH:
		return FI_ECONNRESET;
	default:
		return -ret;
	}
}

/* ---- events at the peer ---- */

/* True if the peer is to be told of it. */
static bool wants_event(const struct shrimp_tx_peer *tp,
			const struct shrimp_send *s)
{
	uint32_t bit = s->rma->write ? RNIC_EVENT_WRITE : RNIC_EVENT_READ;

	/* relaxed: a counter bound meanwhile counts from later on */
	return s->desc_flags & RNIC_DESC_CQ_DATA ||
	       (tp->remote->head &&
		rnic_load32_relaxed(&tp->remote->head->event_mask) & bit);
}

/* There is room for it: all bytes are there when it is seen (P5). */
static void send_event(struct shrimp_tx_peer *tp, const struct shrimp_send *s)
{
	struct rnic_desc *d = rnic_lane_slot(&tp->lane);

	/* relaxed: published by L1 */
	rnic_store64_relaxed(&d->tag, 0);
	rnic_store64_relaxed(&d->data, s->data);
	d->ext = (struct rnic_desc_ext){ .total = s->len,
					 .chunk = s->rma->write };
	if (rnic_lane_publish(&tp->lane, d, RNIC_DESC_EVENT,
			      s->desc_flags & RNIC_DESC_CQ_DATA, 0))
		shrimp_tx_ring(tp);
}

/* ---- the operation ---- */

static void report(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		   struct shrimp_op *op, const struct shrimp_rma_failure *f)
{
	struct shrimp_ep *ep = tp->ep;

	if (f->err)
		shrimp_tx_rma_error(tp, s, f);
	else
		shrimp_tx_complete(ep, s, 0);
	if (op)
		shrimp_op_free(op);
}

int shrimp_rma_run(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		   struct shrimp_op *op)
{
	struct rnic_access a = { .write = s->rma->write };
	struct shrimp_rma_failure f = { .moved = 0 };
	int ret = open_reach(tp);
	bool event = false;

	if (!ret) {
		event = wants_event(tp, s);
		if (event && !shrimp_tx_room(tp))
			return -FI_EAGAIN;
		ret = move_all(tp, s, &a, &f.moved);
	}
	f.err = error_of(ret);
	f.key = a.key;
	f.addr = a.addr;
	f.len = a.len;
	if (event && !ret)
		send_event(tp, s);
	report(tp, s, op, &f);
	return 0;
}

/* ---- fi_rma(3) ---- */

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

/* -FI_EINVAL, or 0 and the bytes on each side. */
static int check(const struct args *a, size_t *len)
{
	size_t max = a->inject || a->flags & FI_INJECT ? SHRIMP_INJECT_SIZE
						       : SHRIMP_MAX_MSG_SIZE;

	if (a->niov > SHRIMP_IOV_MAX || a->nthere > SHRIMP_IOV_MAX ||
	    (a->niov && !a->iov) || (a->nthere && !a->there))
		return -FI_EINVAL;
	*len = rnic_iov_len(a->iov, a->niov);
	if (*len > max || *len != there_len(a->there, a->nthere))
		return -FI_EINVAL;
	return 0;
}

static ssize_t rma(struct fid_ep *fid, const struct args *a)
{
	struct shrimp_ep *ep = shrimp_ep_of(fid);
	struct shrimp_rma r = { .niov = a->nthere, .write = a->write };
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
	if (a->nthere)
		memcpy(r.iov, a->there, a->nthere * sizeof(*a->there));
	if (a->flags & FI_REMOTE_CQ_DATA)
		s.desc_flags = RNIC_DESC_CQ_DATA;
	s.quiet =
		a->inject || (ep->tx_selective && !(a->flags & FI_COMPLETION));
	shrimp_ep_lock(ep);
	ret = ep->ready ? shrimp_tx_send(ep, a->peer, &s) : -FI_EOPBADSTATE;
	shrimp_ep_unlock(ep);
	return ret;
}

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
				    .len = rnic_iov_len(iov, count),
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

	return rma_readv(ep, &iov, &desc, 1, src, addr, key, context);
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
	return rma(ep, &a);
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
				    .len = rnic_iov_len(a->iov, a->niov),
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

	return rma_writev(ep, &iov, &desc, 1, dest, addr, key, context);
}

static ssize_t rma_inject(struct fid_ep *ep, const void *buf, size_t len,
			  fi_addr_t dest, uint64_t addr, uint64_t key)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct args a = {
		.iov = &iov, .niov = 1, .peer = dest, .inject = true
	};

	return write_one(ep, &a, addr, key);
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
