/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One-sided operations, fi_rma(3) and fi_atomic(3), at their initiator.
 *
 *   call --reachable--> done here, at once (rma_run.c)
 *        --else------> asked for in parts (rma_ask.c): each part is an ASK in
 *                      the lane, executed by the owner when it drains it
 *                      (serve.c), whose results lie in the byte ring when the
 *                      reply comes; the last reply ends the operation
 *        --not present--> a PAGE request to the owner; after its reply goes on
 *                      where it was. Until then all that follows to that peer
 *                      waits (contract P5)
 *        --behind what is queued for that peer--> queued (contract P5)
 *
 * All functions but the calls of the tables: the endpoint's lock is held.
 */
#ifndef SHRIMP_RMA_H
#define SHRIMP_RMA_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "lib/tx.h"
#include "shm/exec.h"
#include "shm/reach.h"

extern struct fi_ops_rma shrimp_rma_ops; /* fi_rma(3) */

/* How a one-sided operation failed. */
struct shrimp_rma_failure {
	int err;       /* FI_ code, 0: it did not */
	size_t moved;  /* bytes moved before */
	uint64_t key;  /* of the access that failed */
	uint64_t addr; /* its address */
	uint64_t len;  /* and length */
};

/* Regions whose owner counts what is done to them: one event each. */
struct shrimp_rma_events {
	size_t n;		       /* slots to tell of */
	uint32_t slot[SHRIMP_IOV_MAX]; /* MPT slots */
	uint64_t key[SHRIMP_IOV_MAX];  /* their keys */
	bool endpoint;		       /* the endpoint is to be told, too */
};

enum {
	/* page requests in a row that bring an operation no byte further */
	SHRIMP_PAGE_TRIES = 10000,
};

/* How far an operation has got that is not finished when its call returns. */
struct shrimp_rma_state {
	size_t done;			 /* bytes that were done here */
	size_t sent;			 /* bytes that were asked for */
	uint32_t asked;			 /* parts without a reply */
	uint32_t tries;			 /* page requests since the last byte */
	bool paging;			 /* waits for a page */
	struct shrimp_rma_failure f;	 /* first failure */
	struct shrimp_rma_events events; /* to be sent when all are done */
	size_t kept;			 /* bytes of an inject, copied */
};

/*
 * What a one-sided operation says beside what struct shrimp_send does, whose
 * len is the bytes at the peer, and whose iov is the operand, or, of a read,
 * its target. Arrays are the caller's; in an op they are a copy.
 */
struct shrimp_rma {
	const struct fi_rma_iov *there; /* at the peer, in bytes */
	size_t nthere;			/* entries of there */
	const struct iovec *result;	/* fetching: values before */
	size_t nresult;			/* entries of result */
	const struct iovec *compare;	/* values to compare with */
	size_t ncompare;		/* entries of compare */
	uint8_t kind;			/* enum rnic_ask_kind */
	uint8_t op;			/* enum rnic_aop_op */
	uint8_t type;			/* enum rnic_aop_type */
	uint8_t size;			/* bytes of an element; else 1 */

	struct shrimp_rma_state *st; /* of an op, else NULL */
};

/* True if the peer's memory is written and nothing is read from it. */
static inline bool shrimp_rma_writes(const struct shrimp_rma *r)
{
	return r->kind == RNIC_ASK_WRITE || r->kind == RNIC_ASK_ATOMIC;
}

/* True for fi_atomic(3). */
static inline bool shrimp_rma_atomic(const struct shrimp_rma *r)
{
	return r->kind >= RNIC_ASK_ATOMIC;
}

/* The rights that it takes, enum rnic_right. */
static inline uint8_t shrimp_rma_rights(const struct shrimp_rma *r)
{
	if (shrimp_rma_atomic(r))
		return (uint8_t)rnic_exec_rights(r->kind != RNIC_ASK_ATOMIC);
	return shrimp_rma_writes(r) ? RNIC_REMOTE_WRITE : RNIC_REMOTE_READ;
}

/*
 * Does @s, a one-sided operation of queued @op or, if NULL, of a call under
 * way. Returns 0 (it is done, an op follows it, or it is reported), or
 * -FI_EAGAIN: it has to wait for something before it; nothing happened.
 */
int shrimp_rma_run(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		   struct shrimp_op *op);

/*
 * Keeps what @op needs of its caller's arrays, op->s is a copy of the call;
 * the operands of an inject with it. Returns 0 or -FI_ENOMEM.
 */
int shrimp_rma_keep(struct shrimp_op *op);

/* Frees what shrimp_rma_keep() made. NULL is accepted. */
void shrimp_rma_free(struct shrimp_rma *rma);

/* Gives up what @tp needed for RMA; before its lane is unmapped. */
void shrimp_rma_release(struct shrimp_tx_peer *tp);

/* True if the peer's endpoint counts what is done to its memory. */
RNIC_HOT bool shrimp_rma_heard(const struct shrimp_tx_peer *tp, bool write)
{
	uint32_t bit = write ? RNIC_EVENT_WRITE : RNIC_EVENT_READ;

	/* relaxed: a counter bound meanwhile counts from later on */
	return tp->remote->head &&
	       rnic_load32_relaxed(&tp->remote->head->event_mask) & bit;
}

/* Counts @a, no atomic operation, which was done by load, store or kernel. */
RNIC_HOT void shrimp_rma_count(struct shrimp_ep *ep,
			       const struct rnic_access *a)
{
	enum fi_shrimp_reach by = a->path == RNIC_BY_MAP
					  ? FI_SHRIMP_REACH_MAPPED
					  : FI_SHRIMP_REACH_CMA;

	rnic_count64(&ep->stats->rma_msgs[by], 1);
	rnic_count64(&ep->stats->rma_bytes[by], a->len);
}

/* ---- between rma_run.c, rma_ask.c and serve.c ---- */

/*
 * This endpoint's own device, reached by itself: *@tp. Returns 0 or a negative
 * errno.
 */
int shrimp_rma_own(struct shrimp_ep *ep, struct shrimp_tx_peer **tp);

/* The FI_ code of what shm/reach.h or shm/exec.h said. */
int shrimp_rma_code(int ret);

/* Reports @s, frees @op if there is one; @f->err 0: success. */
void shrimp_rma_report(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		       struct shrimp_op *op,
		       const struct shrimp_rma_failure *f);

/*
 * Asks the owner for what is left of @s after @done bytes; @op as in
 * shrimp_rma_run(). @e: regions to tell of afterwards, which the owner will
 * not hear of by its part. Returns 0 or -FI_ENOMEM.
 */
int shrimp_rma_ask(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		   struct shrimp_op *op, size_t done,
		   const struct shrimp_rma_events *e);

/*
 * Asks the owner for the pages of what is left of @s after @done bytes, where
 * access @a has found none; @op as in shrimp_rma_run(). @e: regions to tell of
 * so far. The operation goes on after the reply. Returns 0 or -FI_ENOMEM.
 */
int shrimp_rma_page(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
		    struct shrimp_op *op, const struct rnic_access *a,
		    size_t done, const struct shrimp_rma_events *e);

/* The owner has done all it was asked of @op, or one part failed: ends it. */
void shrimp_rma_asked(struct shrimp_tx_peer *tp, struct shrimp_op *op);

/* True if @s must be asked for, as what is asked for already must. */
bool shrimp_rma_asks_too(const struct shrimp_tx_peer *tp,
			 const struct shrimp_send *s);

/*
 * The same for memory of this endpoint's own process: executes what is left of
 * @s after *@done bytes, which rises. Returns as shrimp_serve(); @a: the last
 * access; @e: regions to tell of are added.
 */
int shrimp_rma_ask_self(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
			struct rnic_access *a, size_t *done,
			struct shrimp_rma_events *e);

/*
 * Makes the page present in which byte @done of @s lies, in this process's own
 * memory. Returns as shrimp_odp_page().
 */
int shrimp_rma_page_self(struct shrimp_tx_peer *tp, const struct shrimp_send *s,
			 size_t done);

/* Notes in @e the region that @a was in, if its owner counts such access. */
void shrimp_rma_note(const struct shrimp_rma *r, const struct rnic_access *a,
		     struct shrimp_rma_events *e);

/* Asks on as there is room. */
void shrimp_rma_ask_on(struct shrimp_tx_peer *tp);

/* The reply to the oldest part. A peer's word: checked here. */
void shrimp_rma_reply(struct shrimp_tx_peer *tp, const struct rnic_ret *r);

/*
 * Bits of rnic_desc_ask.ends. After a part that failed the owner does none of
 * the same operation, and it tells of all of them when the last is done.
 */
enum shrimp_part_end {
	SHRIMP_END_FIRST = 1 << 0, /* an operation begins */
	SHRIMP_END_LAST = 1 << 1,  /* and ends */
};

/* A part that the owner executes. */
struct shrimp_part {
	struct rnic_desc_ask ask; /* what to do */
	uint64_t key;		  /* to what */
	struct rnic_exec_at at;	  /* with what */
};

/*
 * Executes @p, which nobody has checked, on memory of the device of @ep.
 * @room: bytes that p->at has. *@done: bytes done before, which rises; a page
 * that is not present is brought in. *@a: the region it was. Returns 0, -EPROTO
 * (it makes no sense), -EBUSY (go on later from *@done), or a negative errno.
 */
int shrimp_serve(struct shrimp_ep *ep, const struct shrimp_part *p, size_t room,
		 struct rnic_access *a, size_t *done);

/* Bytes of the byte ring that a part takes, for operands and results. */
static inline size_t shrimp_part_room(const struct rnic_desc_ask *q)
{
	if (q->kind == RNIC_ASK_PAGE)
		return 0;
	return q->kind == RNIC_ASK_COMPARE ? 2 * (size_t)q->len : q->len;
}

#endif /* SHRIMP_RMA_H */
