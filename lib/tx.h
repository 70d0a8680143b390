/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Sending: from a request to descriptors, and what is under way.
 *
 * An operation (struct shrimp_op) exists only for what is not finished when
 * the call returns:
 *
 *   QUEUED  --room in the lane-->  published, one of
 *   CONSUME   payload in chunks; ends when the last one is consumed
 *   HELD      no payload sent; GO -> STREAM, DONE -> finished
 *   STREAM    chunks follow as there is room; all sent -> CONSUME
 *   ANSWER    waits for DONE (delivery, match, heap pulled)
 *
 * Any state ends with FI_ECONNRESET when the peer dies or closes.
 * All functions: the endpoint's lock is held; nothing waits.
 */
#ifndef SHRIMP_TX_H
#define SHRIMP_TX_H

#include <sys/uio.h>

#include "lib/cntr.h"
#include "lib/cq.h"
#include "lib/endpoint.h"
#include "shm/lane.h"
#include "shm/remote.h"

struct rnic_reach;
struct shrimp_peer;
struct shrimp_rma;
struct shrimp_rma_failure;

#define SHRIMP_NO_HEAP UINT64_MAX /* op has nothing in the heap */

/* How far a message must have got before its completion. */
enum shrimp_level {
	SHRIMP_LEVEL_INJECT,   /* the buffer may be reused */
	SHRIMP_LEVEL_TRANSMIT, /* does not depend on this process any more */
	SHRIMP_LEVEL_DELIVERY, /* whole in the receiver's memory */
	SHRIMP_LEVEL_MATCH,    /* matched by a receive */
};

/* What differs between the calls that send. */
struct shrimp_send_args {
	const struct iovec *iov; /* payload */
	size_t niov;		 /* entries of iov */
	fi_addr_t dest;		 /* where to */
	uint64_t tag;		 /* 0 if not tagged */
	uint64_t data;		 /* remote CQ data */
	void *context;		 /* the caller's */
	uint64_t flags;		 /* FI_ flags that hold for this call */
	bool tagged;		 /* fi_tsend */
};

/* A send as it goes through here. */
struct shrimp_send {
	const struct iovec *iov; /* payload */
	size_t niov;		 /* entries of iov */
	size_t len;		 /* bytes, all of iov */
	uint64_t tag;		 /* 0 if not tagged */
	uint64_t data;		 /* remote CQ data */
	void *context;		 /* the caller's */
	struct shrimp_rma *rma;	 /* one-sided: what to do, rma.h; or NULL */
	uint8_t desc_flags;	 /* RNIC_DESC_TAGGED, _CQ_DATA */
	uint8_t level;		 /* enum shrimp_level */
	bool inject;		 /* payload must be copied now */
	bool quiet;		 /* no CQ entry on success */
	bool fence;		 /* after everything before it */
	bool no_context;	 /* nobody to report to: inject calls */
};

enum shrimp_op_state {
	SHRIMP_OP_QUEUED,  /* not published */
	SHRIMP_OP_CONSUME, /* published, chunks not yet consumed */
	SHRIMP_OP_HELD,	   /* published without payload */
	SHRIMP_OP_STREAM,  /* payload asked for, being sent */
	SHRIMP_OP_ANSWER,  /* waits for the receiver's word */
	SHRIMP_OP_ASK,	   /* the owner of the memory does it in parts */
};

struct shrimp_op {
	struct cds_list_head all;  /* in tx_peer.ops */
	struct cds_list_head link; /* in tx_peer.queue, .streams, .asking */
	struct shrimp_tx_peer *tp; /* where it goes */
	struct shrimp_send s;	   /* the request, iov below */
	uint64_t name;		   /* what the peer calls it, or 0 */
	uint64_t heap_off;	   /* payload in the heap */
	uint64_t rx;		   /* STREAM: the peer's receive */
	size_t want;		   /* STREAM: bytes asked for */
	size_t sent;		   /* STREAM: bytes published */
	uint32_t descs;		   /* published, not yet consumed */
	uint8_t state;		   /* enum shrimp_op_state */
	bool counted;		   /* completion already written */
	struct iovec one;	   /* iov of one entry */
	uint8_t small[RNIC_INLINE_MAX]; /* a queued small inject */
};

/* What a line of the lane's ring holds beside the descriptor. */
struct shrimp_inflight {
	uint32_t chunk;	      /* to free, or RNIC_CHUNK_NONE */
	struct shrimp_op *op; /* to tell, or NULL */
};

enum { SHRIMP_ASKS = 8 }; /* parts asked for and not answered */

/* A part of a one-sided operation that the owner executes, see rma.h. */
struct shrimp_asked {
	struct shrimp_op *op; /* whose part */
	size_t off;	      /* first byte of the operation */
	uint32_t len;	      /* bytes */
	uint32_t at;	      /* see rnic_lane_hold() */
	const uint8_t *mem;   /* where the reply will be */
};

/* Those towards one peer, in order. */
struct shrimp_asks {
	struct shrimp_asked a[SHRIMP_ASKS]; /* ring */
	uint32_t first;			    /* oldest, free running */
	uint32_t n;			    /* how many */
	uint64_t key;			    /* of the latest operation */
	bool atomic;			    /* what it is */
};

enum shrimp_tx_state {
	SHRIMP_TX_RESOLVE, /* a service name not yet found */
	SHRIMP_TX_ATTACH,  /* waits for the peer's socket */
	SHRIMP_TX_LIVE,	   /* lane claimed */
	SHRIMP_TX_DOWN,	   /* everything fails; see shrimp_tx_again() */
};

/* A destination of this endpoint. */
struct shrimp_tx_peer {
	struct rnic_lane_tx lane;	  /* LIVE: our end of the lane */
	bool fast;			  /* LIVE, nothing waits, not self */
	bool self;			  /* this endpoint itself */
	uint8_t state;			  /* enum shrimp_tx_state */
	bool in_active;			  /* linked in ep.active */
	uint32_t retired;		  /* lane lines looked at */
	uint64_t inflight_bits;		  /* lines with something to retire */
	uint32_t chunks[2];		  /* held there: small, large */
	uint32_t answers;		  /* ops that wait for an answer */
	size_t nops;			  /* entries of ops */
	size_t nrma;			  /* one-sided ones among them */
	struct shrimp_ep *ep;		  /* whose destination */
	struct shrimp_peer *peer;	  /* who */
	struct rnic_remote *remote;	  /* ATTACH, LIVE, DOWN */
	struct rnic_reach *reach;	  /* LIVE: for RMA, once needed */
	unsigned int index;		  /* lane number */
	int error;			  /* DOWN: code of failed operations */
	uint64_t deadline_ms;		  /* RESOLVE: give up */
	int conn;			  /* RESOLVE: to the service, or -1 */
	struct cds_list_head active;	  /* in ep.active */
	struct cds_list_head queue;	  /* QUEUED, call order */
	struct cds_list_head streams;	  /* STREAM, order of GO */
	struct cds_list_head asking;	  /* ASK, parts not yet asked for */
	struct shrimp_asks asks;	  /* parts that were */
	struct cds_list_head ops;	  /* all */
	struct shrimp_inflight *inflight; /* RNIC_LANE_LINES, by sequence */
};

/*
 * Sends @s to @dest. Returns 0, -FI_EINVAL (no such address), -FI_EAGAIN
 * (limits of contract P2), -FI_ENOMEM, or, for a request that nobody can be
 * told about later, the error of the peer (-FI_ECONNRESET and what attaching
 * may say).
 */
ssize_t shrimp_tx_send(struct shrimp_ep *ep, fi_addr_t dest,
		       const struct shrimp_send *s);

/*
 * Sends what is queued at @tp, which is the endpoint itself: it was called by
 * a name that had to be looked up, or there was no room. The rest waits for
 * the next progress.
 */
void shrimp_tx_flush_self(struct shrimp_tx_peer *tp);

/* Moves everything under way: answers, credits, streams, queues. */
void shrimp_tx_progress(struct shrimp_ep *ep);

/* True if some peer has answers or credits we have not looked at. */
bool shrimp_tx_pending(struct shrimp_ep *ep);

/* Asks peers to ring when they answer (@on), before a sleep; or not. */
void shrimp_tx_park(struct shrimp_ep *ep, bool on);

/* Ends what goes to peers that died or closed since the last call. */
void shrimp_tx_reap(struct shrimp_ep *ep);

/*
 * Cancels the oldest queued send with @context. Returns 0 (its error entry
 * is written) or -FI_ENOENT.
 */
int shrimp_tx_cancel(struct shrimp_ep *ep, void *context);

/* The queued op of a self send is done, @err 0 or an FI_ code. */
void shrimp_tx_finish(struct shrimp_op *op, int err);

/* The destination for peer @id if this endpoint has one, else NULL. */
struct shrimp_tx_peer *shrimp_tx_by_id(const struct shrimp_ep *ep, uint32_t id);

/* True while something still lies in our memory that a peer has to fetch. */
bool shrimp_tx_lingers(struct shrimp_ep *ep);

/* Leaves all lanes and frees all destinations; operations are dropped. */
void shrimp_tx_fini(struct shrimp_ep *ep);

/* Rings the doorbell of @tp's lane. */
void shrimp_tx_ring(struct shrimp_tx_peer *tp);

/* ---- between tx.c, tx_peer.c and tx_progress.c ---- */

/*
 * Publishes @s, of queued operation @op or, if NULL, of a call under way.
 * Returns 0 (completion written or an op follows it), -FI_EAGAIN (no room:
 * nothing happened) or -FI_ENOMEM.
 */
int shrimp_tx_publish(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		      struct shrimp_op *op);

/* Makes an op of @s for @tp, in tp->ops, state QUEUED. NULL: no memory. */
struct shrimp_op *shrimp_op_new(struct shrimp_tx_peer *tp,
				const struct shrimp_send *s);

/* Unlinks and frees @op, its name, its place in the heap. */
void shrimp_op_free(struct shrimp_op *op);

/* @op is queued no more, if it was. */
void shrimp_op_unqueue(struct shrimp_op *op);

/*
 * Queues @s before all others of @tp: a part of it was done. Its op, or NULL:
 * no memory.
 */
struct shrimp_op *shrimp_tx_enqueue_first(struct shrimp_tx_peer *tp,
					  const struct shrimp_send *s);

/* Nothing may wait for @tp any more: then the short way is open again. */
void shrimp_tx_settle(struct shrimp_tx_peer *tp);

/* This endpoint as its own destination. NULL: no memory. */
struct shrimp_tx_peer *shrimp_tx_self(struct shrimp_ep *ep);

/* Reports @s, a one-sided operation that failed (contract I2). */
void shrimp_tx_rma_error(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
			 const struct shrimp_rma_failure *f);

/* Writes the completion of @s, if it wants one: @err 0 or an FI_ code. */
void shrimp_tx_complete(struct shrimp_ep *ep, const struct shrimp_send *s,
			int err);

/* Puts @tp on the list of peers that progress looks at. */
void shrimp_tx_activate(struct shrimp_tx_peer *tp);

/* Takes note of credits: frees chunks, ends ops that were consumed. */
void shrimp_tx_retire(struct shrimp_tx_peer *tp);

/*
 * Notes that line @seq holds @chunk and belongs to @op (or NULL). Whoever
 * looked at the credits has called shrimp_tx_retire(): places of the ring that
 * were passed over would be taken for this one.
 */
void shrimp_tx_note(struct shrimp_tx_peer *tp, uint32_t seq, uint32_t chunk,
		    struct shrimp_op *op);

/*
 * A chunk for @len bytes to @tp: fair share and free list permitting, else
 * RNIC_CHUNK_NONE. Readies the pool at the first call.
 */
uint32_t shrimp_tx_chunk(struct shrimp_tx_peer *tp, bool large);

/* Free room in the lane, looking at the credits if there seems to be none. */
uint32_t shrimp_tx_room(struct shrimp_tx_peer *tp);

/*
 * The destination of @dest: known, or contacted now. Returns 0, -FI_EINVAL,
 * or why attaching failed.
 */
int shrimp_tx_contact(struct shrimp_ep *ep, fi_addr_t dest,
		      struct shrimp_tx_peer **out);

/*
 * *@tp, which @dest led to, is down. If its error may have passed, begins
 * anew. If @dest names a service, another endpoint may have it by now: looks
 * it up anew and changes *@tp. Returns 0 or -FI_ENOMEM.
 */
int shrimp_tx_again(struct shrimp_ep *ep, fi_addr_t dest,
		    struct shrimp_tx_peer **tp);

/* Goes on with a peer in state RESOLVE or ATTACH. */
void shrimp_tx_connect(struct shrimp_tx_peer *tp);

/* Everything towards @tp ends with @err, now and later. */
void shrimp_tx_fail(struct shrimp_tx_peer *tp, int err);

/*
 * The peer of @tp has closed or died: what it had received, and answered, by
 * then ends well, the rest with FI_ECONNRESET. Under the endpoint's lock.
 */
void shrimp_tx_gone(struct shrimp_tx_peer *tp);

/* shrimp_tx_gone() if it has closed the lane. */
void shrimp_tx_look_closed(struct shrimp_tx_peer *tp);

/* Milliseconds of the monotonic clock. */
uint64_t shrimp_now_ms(void);

/* Contract P2: the only reasons for -FI_EAGAIN. */
static inline bool shrimp_tx_full(const struct shrimp_ep *ep)
{
	return ep->queued >= SHRIMP_QUEUE_MAX ||
	       (ep->tx_cq && shrimp_cq_unread(ep->tx_cq) >= ep->cq_max);
}

/*
 * The lane to @dest if a whole message may be written into it now: LIVE, with
 * room, nothing queued before it. NULL: take the long way.
 */
RNIC_HOT struct shrimp_tx_peer *shrimp_tx_ready(struct shrimp_ep *ep,
						fi_addr_t dest)
{
	struct shrimp_tx_peer *tp;

	if (RNIC_UNLIKELY(dest >= ep->ntx))
		return NULL;
	tp = ep->tx[dest];
	/* rx_closed is relaxed: seen late, the message is lost in a closed
	 * endpoint, as it would be had it come a moment earlier */
	if (RNIC_UNLIKELY(!tp || !tp->fast || !rnic_lane_room(&tp->lane) ||
			  rnic_load32_relaxed(&tp->lane.sh->flag.rx_closed)))
		return NULL;
	return tp;
}

/*
 * Room for @len bytes, at most RNIC_RING_MSG_MAX, in the byte ring of @tp; NULL
 * if there is none now.
 */
RNIC_HOT uint8_t *shrimp_tx_bytes(struct shrimp_tx_peer *tp, size_t len)
{
	uint8_t *to = rnic_lane_bytes(&tp->lane, (uint32_t)len);

	/* it may have looked at the credits: see shrimp_tx_note() */
	if (RNIC_UNLIKELY(tp->retired != tp->lane.taken))
		shrimp_tx_retire(tp);
	return to;
}

/*
 * The shortest path: one buffer, in the descriptor or in the byte ring; the
 * completion is left to the caller. @flags: of the descriptor. False: nothing
 * happened, take the long way.
 */
RNIC_HOT bool shrimp_tx_quick(struct shrimp_ep *ep,
			      const struct shrimp_send_args *a, uint8_t flags)
{
	enum rnic_desc_kind kind = RNIC_DESC_INLINE;
	enum fi_shrimp_path path = FI_SHRIMP_PATH_INLINE;
	size_t len = a->iov->iov_len;
	struct shrimp_tx_peer *tp = shrimp_tx_ready(ep, a->dest);
	struct rnic_desc *d;
	uint8_t *to;

	if (RNIC_UNLIKELY(!tp))
		return false;
	d = rnic_lane_slot(&tp->lane);
	if (len <= RNIC_INLINE_MAX) {
		rnic_copy_inline(d->payload, a->iov->iov_base, len);
	} else {
		/* relaxed: a hint, see the table of words */
		if (len > RNIC_RING_MSG_MAX ||
		    rnic_load32_relaxed(&tp->lane.sh->flag.over_budget))
			return false;
		to = shrimp_tx_bytes(tp, len);
		if (!to)
			return false;
		rnic_copy(to, a->iov->iov_base, len);
		d->ext.total = len;
		d->ext.op = 0;
		kind = RNIC_DESC_RING;
		path = FI_SHRIMP_PATH_RING;
	}
	/* relaxed: published by L1 */
	rnic_store64_relaxed(&d->tag, a->tag);
	rnic_store64_relaxed(&d->data, a->data);
	if (RNIC_UNLIKELY(rnic_lane_publish(&tp->lane, d, kind, flags, len)))
		shrimp_tx_ring(tp);
	shrimp_ep_count_tx(ep, path, len);
	if (++ep->burst > SHRIMP_BURST)
		rnic_prefetch_write(rnic_lane_ahead(&tp->lane));
	return true;
}

/* Reports @a, which was sent without error. */
RNIC_HOT void shrimp_tx_sent(struct shrimp_ep *ep,
			     const struct shrimp_send_args *a)
{
	struct shrimp_comp c;

	if (RNIC_UNLIKELY(ep->tx_cntr))
		shrimp_cntr_add(ep->tx_cntr, 1);
	if (!ep->tx_cq || (ep->tx_selective && !(a->flags & FI_COMPLETION)))
		return;
	c = (struct shrimp_comp){
		.context = a->context,
		.flags = FI_SEND | (a->tagged ? FI_TAGGED : FI_MSG),
		.src = FI_ADDR_NOTAVAIL,
	};
	shrimp_cq_queue(ep->tx_cq, &c);
}

#endif /* SHRIMP_TX_H */
