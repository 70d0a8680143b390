/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Memory regions, fi_mr(3): from a range of the application to an entry of
 * the MPT, and back.
 *
 *   CREATED --publish--> LIVE --close: invalidate, fence--> gone
 *
 * With FI_MR_ENDPOINT a region is bound to an endpoint and enabled first.
 * An object belongs to its client, who does not close it twice or use it while
 * it is closed; the tables behind it have locks of their own.
 */
#ifndef SHRIMP_MR_H
#define SHRIMP_MR_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "lib/endpoint.h"
#include "shm/mpt.h"

struct shrimp_domain;

/* A region. */
struct shrimp_mr {
	struct fid_mr fid;		  /* first: what clients hold */
	struct shrimp_domain *domain;	  /* parent, referenced */
	struct rnic_region region;	  /* what is in the MPT */
	struct iovec iov[SHRIMP_IOV_MAX]; /* the ranges */
	size_t niov;			  /* how many */
	uint32_t pinned;		  /* a bit for each that is pinned */
	uint32_t slot;			  /* MPT slot, if live */
	bool user;			  /* the client chose the key */
	bool bound;			  /* to an endpoint */
	bool live;			  /* published */
	bool leaving;			  /* withdrawn, not yet fenced */
};

/* fi_mr_reg(3), fi_mr_regv(3), fi_mr_regattr(3) of a domain. */
extern struct fi_ops_mr shrimp_mr_ops;

/* The region behind a descriptor of fi_mr_desc(3). */
static inline struct shrimp_mr *shrimp_mr_of(void *desc)
{
	return desc;
}

#endif /* SHRIMP_MR_H */
