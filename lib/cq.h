/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Completion queues.
 *
 * A completion found by the thread that reads the queue goes straight into
 * the caller's array (a sink); all others go through a ring that grows.
 *
 * Locks: cq.poll_lock (readers, over progress) -> ep.lock -> cq.ring_lock.
 */
#ifndef SHRIMP_CQ_H
#define SHRIMP_CQ_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "lib/polled.h"
#include "lib/wait.h"
#include "shm/atomic.h"
#include "shm/lock.h"

struct shrimp_ep;
struct shrimp_domain;

/* A completion, whatever the format of its queue. */
struct shrimp_comp {
	void *context;	/* op_context */
	uint64_t flags; /* FI_SEND and so on */
	size_t len;	/* bytes received */
	void *buf;	/* where, for FI_MULTI_RECV */
	uint64_t data;	/* remote CQ data */
	uint64_t tag;	/* tag */
	fi_addr_t src;	/* sender, or FI_ADDR_NOTAVAIL */
};

/* A completion in error. */
struct shrimp_comp_err {
	struct shrimp_comp c; /* as above */
	size_t olen;	      /* bytes that did not fit */
	int err;	      /* FI_ code, positive */
	int prov_errno;	      /* for fi_cq_strerror() */
	uint8_t err_data[64]; /* says more */
	size_t err_data_size; /* bytes of it */
};

/* An entry of the ring: err is malloc'ed, NULL on success. */
struct shrimp_cq_slot {
	struct shrimp_comp c;	     /* of a success */
	struct shrimp_comp_err *err; /* of an error */
};

/* The array of a fi_cq_read() under way. */
struct shrimp_cq_sink {
	struct shrimp_cq *cq; /* of this queue */
	char *next;	      /* where the next entry goes */
	fi_addr_t *src;	      /* where the next source goes, or NULL */
	size_t room;	      /* entries left */
	size_t count;	      /* entries written */
	const rnic_a64 *tail; /* head word that the lane read last awaits */
	uint32_t awaits;      /* its low half, once written */
};

struct shrimp_cq {
	struct fid_cq fid;	      /* first: what clients hold */
	struct shrimp_domain *domain; /* parent, referenced */
	enum fi_cq_format format;     /* of the entries */
	size_t entry_size;	      /* bytes of an entry */
	struct shrimp_polled eps;     /* bound endpoints and poll_lock */
	const rnic_a64 *tail;	      /* of the last read, or NULL; poll_lock */
	uint32_t awaits;	      /* likewise */
	rnic_a32 refs;		      /* poll sets that hold it */
	struct rnic_spin ring_lock;   /* protects the ring */
	rnic_a32 queued;	      /* entries in the ring */
	rnic_a32 signaled;	      /* fi_cq_signal() was called */
	struct shrimp_cq_slot *ring;  /* size slots */
	uint32_t size;		      /* power of two */
	uint32_t head;		      /* free running: next to read */
	struct shrimp_wait_member wait; /* wait object */
	struct shrimp_comp_err last;	/* what fi_cq_readerr() points to */
	bool overrun;			/* an entry was lost: no memory */
	bool threshold;			/* FI_CQ_COND_THRESHOLD */
	struct cds_list_head in_dom;	/* in domain.cqs */
};

/* fi_cq_open(3). 0, -FI_EINVAL, -FI_ENOSYS, -FI_ENOMEM, -FI_EMFILE. */
int shrimp_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		   struct fid_cq **cq, void *context);

/*
 * Adds @ep to the endpoints that reading polls; its wait fd is open. The
 * same endpoint may be added twice. Takes poll_lock. 0 or -FI_ENOMEM.
 */
int shrimp_cq_attach_ep(struct shrimp_cq *cq, struct shrimp_ep *ep);

/* Takes back one attach: afterwards no reader is inside @ep. */
void shrimp_cq_detach_ep(struct shrimp_cq *cq, struct shrimp_ep *ep);

/*
 * In a fork's child, whose only thread calls: nothing is to be had from @cq any
 * more, nor from what it had when its parent forked (contract L6).
 */
void shrimp_cq_forked(struct shrimp_cq *cq);

/* Puts @c into the ring. Any lock but ring_lock may be held. Never fails:
 * without memory the queue is overrun and says so. */
void shrimp_cq_queue(struct shrimp_cq *cq, const struct shrimp_comp *c);

/* Queues an error; likewise. */
void shrimp_cq_write_err(struct shrimp_cq *cq, const struct shrimp_comp_err *e);

/* Writes @c as an entry of @cq's format at @to. */
void shrimp_cq_format(const struct shrimp_cq *cq, void *to,
		      const struct shrimp_comp *c);

/* True if there is something to read, or a signal, which is taken. */
bool shrimp_cq_ready(struct shrimp_cq *cq);

/* For fi_poll(3): progress, then whether there is something to read. */
bool shrimp_cq_poll(struct shrimp_cq *cq);

/* Entries not yet read. A hint while others read. */
static inline size_t shrimp_cq_unread(const struct shrimp_cq *cq)
{
	return rnic_load32_relaxed(&cq->queued);
}

/* Writes @c as the next entry of @sink, which has room. */
RNIC_HOT void shrimp_cq_put(struct shrimp_cq_sink *sink,
			    const struct shrimp_comp *c)
{
	const struct shrimp_cq *cq = sink->cq;
	struct shrimp_comp copy;

	if (RNIC_LIKELY(cq->format == FI_CQ_FORMAT_TAGGED)) {
		*(struct fi_cq_tagged_entry *)(void *)sink->next =
			(struct fi_cq_tagged_entry){
				.op_context = c->context,
				.flags = c->flags,
				.len = c->len,
				.buf = c->buf,
				.data = c->data,
				.tag = c->tag,
			};
	} else {
		copy = *c;
		shrimp_cq_format(cq, sink->next, &copy);
	}
	sink->next += cq->entry_size;
	if (sink->src)
		*sink->src++ = c->src;
	sink->room--;
	sink->count++;
}

/*
 * Reports @c: into @sink if it is for this queue and nothing is queued
 * before it, else through the ring. The lock of the endpoint that reports is
 * held, which keeps the order of that endpoint's completions.
 */
RNIC_HOT void shrimp_cq_write(struct shrimp_cq *cq, struct shrimp_cq_sink *sink,
			      const struct shrimp_comp *c)
{
	struct shrimp_comp copy;

	/* relaxed: entries of this endpoint were queued under its lock */
	if (RNIC_LIKELY(sink && sink->cq == cq && sink->room &&
			!rnic_load32_relaxed(&cq->queued))) {
		shrimp_cq_put(sink, c);
		return;
	}
	copy = *c;
	shrimp_cq_queue(cq, &copy);
}

#endif /* SHRIMP_CQ_H */
