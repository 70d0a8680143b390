/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Counters, fi_cntr(3). The words are atomic; endpoints add under their own
 * locks, clients from any thread.
 */
#ifndef SHRIMP_CNTR_H
#define SHRIMP_CNTR_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "lib/polled.h"
#include "lib/wait.h"
#include "shm/atomic.h"

struct shrimp_ep;
struct shrimp_domain;

struct shrimp_cntr {
	struct fid_cntr fid;		/* first: what clients hold */
	struct shrimp_domain *domain;	/* parent, referenced */
	rnic_a64 value;			/* operations that succeeded */
	rnic_a64 errors;		/* operations that failed */
	rnic_a64 polled;		/* sum at the last fi_poll() */
	rnic_a64 seen;			/* sum at the last read or wait */
	struct shrimp_polled eps;	/* bound endpoints */
	rnic_a32 refs;			/* poll sets that hold it */
	struct shrimp_wait_member wait; /* wait object */
};

/* fi_cntr_open(3). 0, -FI_EINVAL, -FI_ENOSYS, -FI_ENOMEM, -FI_EMFILE. */
int shrimp_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		     struct fid_cntr **cntr, void *context);

/* Adds @ep to the endpoints that reading and waiting poll. 0, -FI_ENOMEM. */
int shrimp_cntr_attach_ep(struct shrimp_cntr *c, struct shrimp_ep *ep);

/* Takes back one attach: afterwards nobody is inside @ep through @c. */
void shrimp_cntr_detach_ep(struct shrimp_cntr *c, struct shrimp_ep *ep);

/* True if it moved since the client last read it or waited for it. */
bool shrimp_cntr_moved(const struct shrimp_cntr *c);

/* For fi_poll(3): progress, then whether it moved since the last time. */
bool shrimp_cntr_poll(struct shrimp_cntr *c);

/* @n operations succeeded. Any thread, any lock. */
static inline void shrimp_cntr_add(struct shrimp_cntr *c, uint64_t n)
{
	rnic_add64_relaxed(&c->value, n);
	shrimp_wait_signal(&c->wait);
}

/* @n operations failed. Any thread, any lock. */
static inline void shrimp_cntr_add_err(struct shrimp_cntr *c, uint64_t n)
{
	rnic_add64_relaxed(&c->errors, n);
	shrimp_wait_signal(&c->wait);
}

#endif /* SHRIMP_CNTR_H */
