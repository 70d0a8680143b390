/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Receiving: lanes into this endpoint, posted receives, unexpected messages.
 *
 * A message is matched when its (first) descriptor is drained. Then
 *
 *   payload at hand        -> copied to the receive, or to a struct
 *                             shrimp_umsg of kind WHOLE
 *   in several chunks      -> struct shrimp_inbound, fed by the lane in order
 *   held at the sender     -> matched: inbound, answer GO, fed by DATA;
 *                             unmatched: umsg of kind HELD
 *   in the sender's heap   -> matched: pulled, answer DONE; else umsg HEAP
 *   from this endpoint     -> matched: copied; else umsg WHOLE or SELF
 *
 * One-sided operations that only this process can do are executed when their
 * descriptor is drained (serve.c).
 *
 * All functions: the endpoint's lock is held; nothing waits.
 */
#ifndef SHRIMP_RX_H
#define SHRIMP_RX_H

#include <sys/uio.h>

#include "lib/av.h"
#include "lib/cntr.h"
#include "lib/cq.h"
#include "lib/endpoint.h"
#include "lib/tx.h"
#include "shm/copy.h"
#include "shm/lane.h"
#include "shm/match.h"
#include "shm/proc.h"
#include "shm/remote.h"

/* Why a receive takes no more messages. */
enum shrimp_recv_end {
	SHRIMP_RECV_OPEN,     /* it does */
	SHRIMP_RECV_USED_UP,  /* has had its last one */
	SHRIMP_RECV_CANCELED, /* FI_ECANCELED is to be written, or was */
	SHRIMP_RECV_RESET,    /* FI_ECONNRESET, likewise */
};

/* A posted receive. */
struct shrimp_recv {
	struct rnic_match_recv m; /* first: in the matching engine */
	void *context;		  /* the caller's */
	const struct iovec *iov;  /* buffers: one, or malloc'ed */
	size_t niov;		  /* entries of iov */
	size_t len;		  /* bytes, all of iov */
	struct iovec one;	  /* iov of one entry */
	bool quiet;		  /* no CQ entry on success */
	bool tagged;		  /* fi_trecv */
	bool multi;		  /* FI_MULTI_RECV: below counts */
	uint8_t ended;		  /* enum shrimp_recv_end */
	uint32_t filling;	  /* messages being placed */
	size_t used;		  /* bytes given to messages */
};

/* Where a matched message goes, and what its completion will say. */
struct shrimp_placed {
	struct shrimp_recv *r; /* the receive */
	size_t off;	       /* first byte in it */
	size_t room;	       /* bytes of the message that fit */
	size_t total;	       /* bytes of the message */
	uint64_t tag;	       /* its tag */
	uint64_t data;	       /* its remote CQ data */
	uint32_t src;	       /* its sender: peer id */
	uint8_t flags;	       /* enum rnic_desc_flag */
};

enum shrimp_umsg_kind {
	SHRIMP_UMSG_WHOLE,   /* payload in buf */
	SHRIMP_UMSG_PARTIAL, /* chunks still arrive into buf */
	SHRIMP_UMSG_HELD,    /* payload in the sender's buffer */
	SHRIMP_UMSG_HEAP,    /* payload in the sender's heap */
	SHRIMP_UMSG_SELF,    /* payload with a send of this endpoint */
	SHRIMP_UMSG_DEAD,    /* claimed, then its sender died */
};

/* A message without a receive. */
struct shrimp_umsg {
	struct rnic_match_msg m;     /* first: in the matching engine */
	struct cds_list_head link;   /* in lane->umsgs if lane is set */
	struct cds_list_head claim;  /* in ep->claimed */
	struct shrimp_rx_lane *lane; /* sender's lane if still needed */
	struct shrimp_op *self;	     /* SELF: the send */
	struct shrimp_inbound *in;   /* PARTIAL: who fills it */
	struct rnic_remote *heap;    /* HEAP, no lane: mapped, referenced */
	void *claimer;		     /* context of the FI_CLAIM peek */
	uint64_t data;		     /* remote CQ data */
	uint64_t op;		     /* sender's name of it, 0 if none */
	uint64_t heap_off;	     /* HEAP */
	uint64_t va;		     /* HELD: sender's address, or 0 */
	size_t total;		     /* bytes of the message */
	size_t self_cost;	     /* counted in ep->self_bytes */
	uint8_t kind;		     /* enum shrimp_umsg_kind */
	uint8_t flags;		     /* enum rnic_desc_flag */
	uint8_t buf[];		     /* WHOLE, PARTIAL: the payload */
};

/* A message whose payload is on its way. */
struct shrimp_inbound {
	struct cds_list_head link;   /* in lane->inbounds */
	struct shrimp_rx_lane *lane; /* where it comes from */
	struct shrimp_umsg *u;	     /* unmatched when it began, or NULL */
	struct shrimp_placed to;     /* to.r NULL while unmatched */
	uint64_t name;		     /* held: what DATA calls it, else 0 */
	uint64_t op;		     /* sender's name, for ACK_DONE */
	uint64_t heap_off;	     /* pull: place in the sender's heap */
	size_t want;		     /* bytes that will come */
	size_t got;		     /* bytes that came */
};

/* An answer that found the return ring full. */
struct shrimp_answer {
	struct cds_list_head link; /* in lane->answers, in order */
	enum rnic_ret_code code;   /* what to say */
	struct rnic_ret ret;	   /* and about what */
};

/* A lane into this endpoint. */
struct shrimp_rx_lane {
	struct rnic_lane_rx rx;	       /* our end of the rings */
	struct shrimp_ep *ep;	       /* whose lane */
	struct shrimp_peer *peer;      /* the sender */
	struct rnic_proc *proc;	       /* its process */
	struct rnic_remote *remote;    /* attached when needed, or NULL */
	struct shrimp_inbound *cur;    /* FIRST seen, NEXT to come */
	fi_addr_t src;		       /* sender in the AV, see src_gen */
	uint32_t src_gen;	       /* AV generation of src */
	unsigned int index;	       /* lane number */
	uint32_t idle;		       /* polls without a descriptor */
	bool hot;		       /* in ep->hot */
	uint32_t id;		       /* of peer: what matching compares */
	bool broken;		       /* sender wrote nonsense: ignored */
	bool later;		       /* the next one cannot be taken yet */
	size_t skip;		       /* bytes to come of a dropped message */
	uint64_t retry_ms;	       /* no attach for payload before, or 0 */
	uint64_t give_up_ms;	       /* sender dead: so long it is drained */
	bool fence;		       /* answer with a full fence */
	struct cds_list_head umsgs;    /* messages that need the lane */
	struct cds_list_head inbounds; /* messages on their way */
	struct cds_list_head answers;  /* waiting for ring room */
	bool ask_failed;	       /* a part of an operation has, serve.c */
	size_t ask_done;	       /* bytes of the part that is next */
	uint8_t nasked;		       /* regions to tell of it */
	uint32_t asked[SHRIMP_IOV_MAX]; /* their MPT slots */
};

/* What a receive callback describes. */
struct shrimp_recv_req {
	const struct iovec *iov; /* buffers */
	size_t niov;		 /* entries of iov */
	fi_addr_t src;		 /* or FI_ADDR_UNSPEC */
	uint64_t tag;		 /* 0 if not tagged */
	uint64_t ignore;	 /* ~0 if not tagged */
	void *context;		 /* the caller's */
	uint64_t flags;		 /* FI_PEEK and so on */
	bool tagged;		 /* fi_trecv */
};

/*
 * fi_recv and fi_trecv in all forms. Returns 0, -FI_EINVAL, -FI_ENOMEM;
 * never -FI_EAGAIN (contract P2).
 */
ssize_t shrimp_rx_recv(struct shrimp_ep *ep, const struct shrimp_recv_req *q);

/*
 * Cancels the posted receive with @context: its error entry is written, its
 * buffer never again; for a multi-receive with messages under way that is when
 * the last of them is done. Returns 0 or -FI_ENOENT.
 */
int shrimp_rx_cancel(struct shrimp_ep *ep, void *context);

/* Drains hot lanes and rung ones. Returns the number of descriptors. */
size_t shrimp_rx_progress(struct shrimp_ep *ep, struct shrimp_cq_sink *sink);

/*
 * The short way through hot lanes that are few: takes messages that lie in
 * the lane and find a plain receive. Counts empty polls. False: there
 * is something that shrimp_rx_progress() has to do.
 */
bool shrimp_rx_quick(struct shrimp_ep *ep, struct shrimp_cq_sink *sink);

/*
 * Parks hot lanes: all of them before a sleep, else those that were idle
 * for long. Their senders ring from now on; the caller then fences the
 * senders (rnic_fence_peers()) and looks again (shrimp_rx_pending()).
 */
void shrimp_rx_park(struct shrimp_ep *ep, bool all);

/*
 * True if a lane or a bell has something; for the last look before sleep. What
 * cannot be taken now does not count, but then a timer ends the sleep soon.
 */
bool shrimp_rx_pending(struct shrimp_ep *ep);

/* Nobody sleeps any more: stops that timer. */
void shrimp_rx_awake(struct shrimp_ep *ep);

/* Frees lanes of senders that closed or died; finds half-made claims. */
void shrimp_rx_scan(struct shrimp_ep *ep);

/* A message from this endpoint to itself. Returns as shrimp_tx_send(). */
ssize_t shrimp_rx_self(struct shrimp_ep *ep, struct shrimp_tx_peer *tp,
		       const struct shrimp_send *s);

/* Posted receives that name a dead peer end with FI_ECONNRESET. */
void shrimp_rx_reap(struct shrimp_ep *ep);

/* Service @from turned out to be peer @to: receives follow. */
void shrimp_rx_rename(struct shrimp_ep *ep, uint32_t from, uint32_t to);

/* Forgets posted receives and unmatched messages: the endpoint closes. */
void shrimp_rx_drop(struct shrimp_ep *ep);

/* Tells all senders that this endpoint closes, and frees everything. */
void shrimp_rx_fini(struct shrimp_ep *ep);

/* ---- between rx.c, rx_lane.c and rx_post.c ---- */

/*
 * A whole message of @len bytes at @p arrived on @l. @op: what the sender
 * calls it, for acknowledgements.
 */
struct shrimp_arrival {
	const uint8_t *p; /* payload, in a segment or ours */
	size_t len;	  /* bytes */
	uint64_t tag;	  /* tag */
	uint64_t data;	  /* remote CQ data */
	uint64_t op;	  /* sender's name of it, or 0 */
	uint8_t flags;	  /* enum rnic_desc_flag */
	uint8_t path;	  /* enum fi_shrimp_path, for the counters */
};

/* Delivers or queues @a. Returns 0 or -FI_ENOMEM (nothing happened). */
int shrimp_rx_whole(struct shrimp_rx_lane *l, const struct shrimp_arrival *a);

/* First of several chunks of a message of @total bytes: sets l->cur. */
int shrimp_rx_first(struct shrimp_rx_lane *l, const struct shrimp_arrival *a,
		    size_t total);

/*
 * @len more bytes at @p, at offset @off, for @in; completes it with the last.
 * Returns 0, or -EPROTO if they do not fit.
 */
int shrimp_rx_feed(struct shrimp_inbound *in, size_t off, const uint8_t *p,
		   size_t len);

/*
 * The sender did a one-sided operation of @a->len bytes: counted, and reported
 * if it has data. @what: enum rnic_event_what; @slot: MPT slot + 1 of a region
 * that counts, or 0; neither is trusted.
 */
void shrimp_rx_event(struct shrimp_rx_lane *l, const struct shrimp_arrival *a,
		     uint32_t what, uint64_t slot);

/* The same from @src, which may be this endpoint: no lane is needed. */
void shrimp_rx_told(struct shrimp_ep *ep, fi_addr_t src,
		    const struct shrimp_arrival *a, uint32_t what,
		    uint64_t slot);

/*
 * Executes the ASK descriptor @d and answers it, serve.c. Returns 0, -EPROTO
 * if it makes no sense, or -EBUSY: the memory is out of reach for a moment, it
 * is to stay where it is.
 */
int shrimp_rx_ask(struct shrimp_rx_lane *l, const struct rnic_desc *d,
		  uint64_t head);

/* A held or heap descriptor: matched or queued. 0 or -FI_ENOMEM. */
int shrimp_rx_held(struct shrimp_rx_lane *l, const struct shrimp_arrival *a,
		   const struct rnic_desc_ext *x, bool heap);

/* Tells the sender of @op, now or as soon as its return ring has room. */
void shrimp_rx_answer(struct shrimp_rx_lane *l, enum rnic_ret_code code,
		      const struct rnic_ret *r);

/*
 * Gives @u, dequeued, to @r, which is not posted (or is a multi-receive).
 * Frees or keeps what is needed.
 */
void shrimp_rx_deliver(struct shrimp_ep *ep, struct shrimp_umsg *u,
		       struct shrimp_recv *r);

/* Drops @u, dequeued: its sender is released. */
void shrimp_rx_discard(struct shrimp_ep *ep, struct shrimp_umsg *u);

/* Frees @u, dequeued, and what is counted for it. */
void shrimp_umsg_free(struct shrimp_ep *ep, struct shrimp_umsg *u);

/*
 * The sender of @u has left: what is here, or can be had yet, stays. Else @u is
 * dropped and counted; one that is claimed stays to say so.
 */
void shrimp_umsg_orphan(struct shrimp_ep *ep, struct shrimp_umsg *u);

/* True if a message of @total bytes will be the last one @r takes. */
bool shrimp_rx_uses_up(const struct shrimp_ep *ep, const struct shrimp_recv *r,
		       size_t total);

/* Takes room for a message of @total bytes in @r; unposts it if used up. */
void shrimp_rx_place(struct shrimp_ep *ep, struct shrimp_recv *r,
		     struct shrimp_placed *to, size_t total);

/* The message @to is placed, or failed with FI_ code @err. */
void shrimp_rx_done(struct shrimp_ep *ep, struct shrimp_placed *to, int err);

/* Writes the error entry of @r, whose @ended says which. */
void shrimp_rx_failed(struct shrimp_ep *ep, const struct shrimp_recv *r);

/* @in ends: its receive with FI_ code @err, its unmatched message dropped. */
void shrimp_rx_end(struct shrimp_inbound *in, int err);

/* Unlinks and frees @in. */
void shrimp_inbound_free(struct shrimp_inbound *in);

/* Pulls from heaps whose sender is attached by now. */
void shrimp_rx_pulls(struct shrimp_ep *ep);

/* ---- the sender of a lane, rx_reach.c ---- */

/* The sender has left for good, by its own word or by its death. */
bool shrimp_lane_left(const struct shrimp_rx_lane *l);

/*
 * Attaches to the sender if need be: 0, -EINPROGRESS, or an error, after which
 * a later call begins anew.
 */
int shrimp_lane_attach(struct shrimp_rx_lane *l);

/*
 * The pool of the sender, mapped. 0, -EINPROGRESS (an attach is under way, or
 * has just failed), or an error: see shrimp_lane_waits().
 */
int shrimp_lane_pool(struct shrimp_rx_lane *l);

/* The same of its heap, and @len bytes at @off lie there, else -EPROTO. */
int shrimp_lane_heap(struct shrimp_rx_lane *l, uint64_t off, size_t len);

/*
 * The sender's memory cannot be had, @ret says why: true if it may be later,
 * so that what lies there is waited for.
 */
bool shrimp_lane_waits(const struct shrimp_rx_lane *l, int ret);

/* Frees a receive and its iov. */
void shrimp_recv_free(struct shrimp_ep *ep, struct shrimp_recv *r);

/* The matching engine for tagged messages, or for the others. */
static inline struct rnic_match *shrimp_rx_match(struct shrimp_ep *ep,
						 bool tagged)
{
	return tagged ? &ep->tagged : &ep->msg;
}

/* True if a receive with @flags is to be reported. */
static inline bool shrimp_rx_wants_entry(const struct shrimp_ep *ep,
					 uint64_t flags)
{
	return !ep->rx_selective || flags & FI_COMPLETION;
}

/* The peer id of @src if nothing has to be looked up for it. */
RNIC_HOT bool shrimp_rx_source(const struct shrimp_ep *ep, fi_addr_t src,
			       uint32_t *id)
{
	*id = RNIC_SRC_ANY;
	if (!ep->directed || src == FI_ADDR_UNSPEC)
		return true;
	*id = ep->src_id;
	/* relaxed: an address that changes meanwhile means old or new */
	return src == ep->src && *id != RNIC_SRC_ANY &&
	       rnic_load32_relaxed(&ep->av->gen) == ep->src_gen &&
	       !rnic_proc_dead(ep->watch[*id]);
}

/*
 * The common case of shrimp_rx_recv(), short: one buffer, nothing has come
 * that is not matched, the source is that of the last receive or any. False:
 * nothing happened.
 */
RNIC_HOT bool shrimp_rx_post_quick(struct shrimp_ep *ep,
				   const struct shrimp_recv_req *q)
{
	struct rnic_match *m = shrimp_rx_match(ep, q->tagged);
	struct shrimp_recv *r;
	uint32_t src;

	if (RNIC_UNLIKELY(m->nmsg || !shrimp_rx_source(ep, q->src, &src)))
		return false;
	r = shrimp_slab_get(&ep->recvs);
	if (RNIC_UNLIKELY(!r))
		return false;
	r->m.src = src;
	r->m.tag = q->tag;
	r->m.ignore = q->ignore;
	r->context = q->context;
	r->iov = &r->one;
	r->niov = 1;
	r->one.iov_base = q->iov->iov_base;
	r->one.iov_len = r->len = q->iov->iov_len;
	r->quiet = !shrimp_rx_wants_entry(ep, q->flags);
	r->tagged = q->tagged;
	r->multi = false;
	r->ended = SHRIMP_RECV_OPEN;
	r->filling = 0;
	r->used = 0;
	rnic_match_post(m, &r->m);
	return true;
}

/* A receive without error is reported. */
RNIC_HOT void shrimp_rx_success(struct shrimp_ep *ep,
				const struct shrimp_recv *r,
				const struct shrimp_comp *c)
{
	if (RNIC_UNLIKELY(ep->rx_cntr))
		shrimp_cntr_add(ep->rx_cntr, 1);
	if (ep->rx_cq && (!r->quiet || c->flags & FI_MULTI_RECV))
		shrimp_cq_write(ep->rx_cq, ep->sink, c);
}

/* The sender as the address vector names it, remembered per lane. */
static inline fi_addr_t shrimp_lane_src(struct shrimp_rx_lane *l)
{
	/* relaxed: an old answer is as good as an earlier call's */
	uint32_t gen = rnic_load32_relaxed(&l->ep->av->gen);

	if (RNIC_UNLIKELY(gen != l->src_gen || l->src == FI_ADDR_NOTAVAIL)) {
		l->src = shrimp_av_addr_of(l->ep->av, l->id);
		l->src_gen = gen;
	}
	return l->src;
}

/*
 * The common case of shrimp_rx_whole(), short: a receive of one buffer waits
 * for @a, with room for all of it. False: nothing happened.
 */
RNIC_HOT bool shrimp_rx_simple(struct shrimp_rx_lane *l,
			       const struct shrimp_arrival *a)
{
	struct shrimp_ep *ep = l->ep;
	struct rnic_match *m = shrimp_rx_match(ep, a->flags & RNIC_DESC_TAGGED);
	struct shrimp_recv *r =
		(struct shrimp_recv *)rnic_match_find_recv(m, l->id, a->tag);
	struct shrimp_comp c;

	if (RNIC_UNLIKELY(!r || r->multi || r->niov != 1 || a->len > r->len ||
			  a->op))
		return false;
	rnic_match_unpost(m, &r->m);
	if (a->len <= RNIC_INLINE_MAX)
		rnic_copy_inline(r->one.iov_base, a->p, a->len);
	else
		rnic_copy(r->one.iov_base, a->p, a->len);
	c = (struct shrimp_comp){
		.context = r->context,
		.flags = FI_RECV | (r->tagged ? FI_TAGGED : FI_MSG) |
			 (a->flags & RNIC_DESC_CQ_DATA ? FI_REMOTE_CQ_DATA : 0),
		.len = a->len,
		.buf = r->one.iov_base,
		.data = a->data,
		.tag = a->tag,
		.src = shrimp_lane_src(l),
	};
	shrimp_rx_success(ep, r, &c);
	shrimp_slab_put(&ep->recvs, r);
	shrimp_ep_count_rx(ep, a->path, a->len);
	return true;
}

#endif /* SHRIMP_RX_H */
