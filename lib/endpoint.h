/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Endpoint: the object and its state. What it does is in tx.h (sending),
 * rx.h (receiving) and progress.h.
 *
 * Everything below is used under ep->lock, unless the field says otherwise.
 * Lock order: domain.lock -> cq.poll_lock -> ep.lock -> cq.ring_lock.
 */
#ifndef SHRIMP_ENDPOINT_H
#define SHRIMP_ENDPOINT_H

#include <rdma/fi_endpoint.h>
#include <urcu/list.h>

#include "include/rdma/fi_ext_shrimp.h"
#include "lib/slab.h"
#include "shm/device.h"
#include "shm/heap.h"
#include "shm/lock.h"
#include "shm/match.h"
#include "shm/pool.h"

struct rnic_ctx;
struct shrimp_av;
struct shrimp_cntr;
struct shrimp_cq;
struct shrimp_cq_sink;
struct shrimp_domain;
struct shrimp_eq;
struct shrimp_rx_lane;
struct shrimp_tx_peer;

enum {
	SHRIMP_IOV_MAX = 16,	    /* iov entries of a message */
	SHRIMP_CNTRS_MAX = 6,	    /* one per kind of event */
	SHRIMP_BURST = 2,	    /* sends without a poll: more will follow */
	SHRIMP_QUEUE_MAX = 100000,  /* queued sends before -FI_EAGAIN */
	SHRIMP_RMA_QUEUE_MAX = 256, /* one-sided ones, to a peer (T6) */
};

struct shrimp_ep {
	struct fid_ep fid;	     /* first: what clients hold */
	struct rnic_spin lock;	     /* protects all of this */
	bool ready;		     /* enabled, and not inherited by fork */
	bool directed;		     /* src_addr counts */
	bool tx_selective;	     /* completions only on request */
	bool rx_selective;	     /* likewise for receives */
	bool armed;		     /* about to sleep, or asleep */
	struct shrimp_cq_sink *sink; /* fi_cq_read's array, or NULL */

	/* sending: written in tx.c */
	struct shrimp_tx_peer **tx;	 /* by fi_addr, NULL: not contacted */
	size_t ntx;			 /* entries of tx */
	struct cds_list_head active;	 /* peers with sends under way */
	bool unsettled;			 /* one more look at them is due */
	struct rnic_stats *stats;	 /* counters, in the tables */
	uint64_t tx_flags;		 /* default op flags */
	struct shrimp_cq *tx_cq;	 /* or NULL */
	struct shrimp_cntr *tx_cntr;	 /* FI_SEND, or NULL */
	struct shrimp_cntr *rma_cntr[2]; /* FI_READ, FI_WRITE, or NULL */
	struct rnic_ctx *ctx;		 /* execution context, once needed */
	struct shrimp_tx_peer *self;	 /* itself, once needed */
	struct rnic_pool pool;		 /* chunks; ready when place.pool is */
	bool no_pool;			 /* there is no memory for it */
	struct rnic_heap heap;		 /* ready when place.heap is */
	struct shrimp_slab ops;		 /* struct shrimp_op */
	struct shrimp_names op_names;	 /* ops that a peer answers */
	size_t queued;			 /* sends that wait for lane room */
	uint32_t burst;			 /* sends since the last poll */
	size_t cq_max;			 /* FI_SHRIMP_CQ_MAX */
	size_t rma_copied;		 /* bytes of queued injected writes */

	/* receiving: written in rx.c */
	struct shrimp_rx_lane **hot;   /* lanes polled */
	size_t nhot;		       /* how many */
	size_t hot_room;	       /* room in hot */
	size_t turn;		       /* the one polled next the long way */
	struct shrimp_rx_lane **lanes; /* by lane number */
	size_t nlanes;		       /* lanes known: highest number + 1 */
	struct rnic_match tagged;      /* fi_trecv against fi_tsend */
	struct rnic_match msg;	       /* fi_recv against fi_send */
	uint64_t rx_flags;	       /* default op flags */
	struct shrimp_cq *rx_cq;       /* or NULL */
	struct shrimp_cntr *rx_cntr;   /* FI_RECV, or NULL */
	struct shrimp_cntr *remote_cntr[2]; /* FI_REMOTE_READ, _WRITE */
	struct shrimp_slab recvs;	    /* struct shrimp_recv */
	struct shrimp_slab inbounds;	    /* struct shrimp_inbound */
	struct shrimp_names in_names;	    /* inbounds that a peer feeds */
	struct cds_list_head claimed;	    /* messages claimed by FI_CLAIM */
	struct cds_list_head pulls; /* heap pulls that wait for attach */
	size_t min_multi;	    /* FI_OPT_MIN_MULTI_RECV */
	size_t unexpected;	    /* bytes held for unmatched messages */
	size_t self_bytes;	    /* cost of unmatched sends to itself */
	fi_addr_t src;		    /* named by the last receive */
	uint32_t src_gen;	    /* AV generation then */
	uint32_t src_id;	    /* its peer id, watched; or ANY */
	struct rnic_proc **watch;   /* by peer id: named as a source */
	size_t nwatch;		    /* entries of watch */
	bool over_budget;	    /* raised in the lanes */

	/* progress.c */
	uint32_t empty;	    /* empty polls in a row */
	uint32_t spin;	    /* so many before a yield: FI_SHRIMP_SPIN */
	uint32_t polls;	    /* counts to the next slow look */
	uint64_t slow_ms;   /* time of the last slow look */
	uint64_t scan_ms;   /* time of the last directory scan */
	uint32_t deaths;    /* proc generation seen */
	rnic_a32 app_polls; /* polls by the application, if @agent */
	bool agent;	    /* the agent makes progress, too */
	bool later;	    /* a lane has what cannot be taken now */

	/* the agent's: under domain.lock */
	uint32_t agent_saw;   /* app_polls when it looked last */
	uint64_t agent_leave; /* time until which it leaves it alone */

	/* object: written at open, bind, enable, close */
	struct rnic_place place;	 /* the place in the device */
	struct rnic_addr addr;		 /* own name */
	struct shrimp_domain *domain;	 /* parent, referenced */
	struct shrimp_av *av;		 /* bound, referenced */
	struct shrimp_eq *eq;		 /* bound, referenced, or NULL */
	struct shrimp_tx_peer **by_peer; /* by peer id */
	size_t nby_peer;		 /* entries of by_peer */
	struct shrimp_cntr *cntrs[SHRIMP_CNTRS_MAX]; /* bound, referenced */
	size_t ncntrs;				     /* how many */
	struct cds_list_head in_dom; /* in domain->eps, domain.lock */
	char service[48];	     /* name to listen under, or "" */
	int service_fd;		     /* its listening socket or -1 */
	int epfd;		     /* wake pipe, deaths, sockets; or -1 */
	int nap_fd;		     /* timer of rx_lane.c in it, or -1 */
	bool napping;		     /* it runs */
	bool enabled;		     /* fi_enable was called */
	uint64_t caps;		     /* of the info */
	/* windows whose posted invalidation is under way, window_post.c */
	struct cds_list_head fencing;
};

/* fi_endpoint(3). Returns 0, -FI_EINVAL, -FI_ENOMEM, or rnic_place_open()'s. */
int shrimp_ep_open(struct fid_domain *domain, struct fi_info *info,
		   struct fid_ep **ep, void *context);

/*
 * The agent makes progress of @ep from now on. domain.lock is held; takes the
 * endpoint's. Returns 0, -FI_EMFILE, -FI_ENOMEM.
 */
int shrimp_ep_serve(struct shrimp_ep *ep);

/* The endpoint a fid_ep of ours stands for. */
static inline struct shrimp_ep *shrimp_ep_of(struct fid_ep *ep)
{
	return (struct shrimp_ep *)ep;
}

/*
 * The address vector has removed @a: the next send to it looks it up anew.
 * Any thread, no lock held; takes ep->lock.
 */
void shrimp_ep_forget(struct shrimp_ep *ep, fi_addr_t a);

/*
 * An fd that polls readable when the endpoint has something to do after
 * shrimp_ep_arm(): wake pipe, peer deaths, attach requests. Owned by the
 * endpoint; -1 before fi_enable().
 */
int shrimp_ep_wait_fd(const struct shrimp_ep *ep);

/* Takes the endpoint's lock. See the order at the head of this file. */
static inline void shrimp_ep_lock(struct shrimp_ep *ep)
{
	rnic_spin_lock(&ep->lock);
}

/* Gives the endpoint's lock back. */
static inline void shrimp_ep_unlock(struct shrimp_ep *ep)
{
	rnic_spin_unlock(&ep->lock);
}

/* Counts a message of @bytes that left by @path. */
static inline void shrimp_ep_count_tx(struct shrimp_ep *ep,
				      enum fi_shrimp_path path, uint64_t bytes)
{
	rnic_count64(&ep->stats->tx_msgs[path], 1);
	rnic_count64(&ep->stats->tx_bytes[path], bytes);
}

/* Counts a message of @bytes that arrived by @path. */
static inline void shrimp_ep_count_rx(struct shrimp_ep *ep,
				      enum fi_shrimp_path path, uint64_t bytes)
{
	rnic_count64(&ep->stats->rx_msgs[path], 1);
	rnic_count64(&ep->stats->rx_bytes[path], bytes);
}

#endif /* SHRIMP_ENDPOINT_H */
