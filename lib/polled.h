/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The endpoints that a CQ or a counter polls.
 *
 * Lock: polled.lock is held over progress of the endpoints, outside of their
 * own locks; detaching takes it, so nobody is inside afterwards.
 */
#ifndef SHRIMP_POLLED_H
#define SHRIMP_POLLED_H

#include <stdbool.h>
#include <stddef.h>

#include "shm/lock.h"

struct shrimp_cq_sink;
struct shrimp_ep;
struct shrimp_wait_member;

/* An endpoint, bound so many times. */
struct shrimp_polled_ep {
	struct shrimp_ep *ep; /* the endpoint */
	unsigned int uses;    /* attach minus detach */
};

struct shrimp_polled {
	struct rnic_spin lock;	      /* protects all of this */
	struct shrimp_polled_ep *eps; /* endpoints */
	size_t n;		      /* how many */
	size_t room;		      /* entries allocated */
};

/* Adds @ep and its fd to @w. Takes the lock. 0 or -FI_ENOMEM. */
int shrimp_polled_attach(struct shrimp_polled *p, struct shrimp_ep *ep,
			 struct shrimp_wait_member *w);

/* Takes back one attach. Takes the lock. */
void shrimp_polled_detach(struct shrimp_polled *p, struct shrimp_ep *ep,
			  struct shrimp_wait_member *w);

/* Progress of all endpoints; the lock is held. */
void shrimp_polled_progress(struct shrimp_polled *p,
			    struct shrimp_cq_sink *sink);

/* Arms all endpoints for a sleep: false if one has something to do. */
bool shrimp_polled_arm(struct shrimp_polled *p);

/* After a sleep, or instead of it. */
void shrimp_polled_disarm(struct shrimp_polled *p);

/* After a sleep without reading: disarms, then progress. Takes the lock. */
void shrimp_polled_poke(struct shrimp_polled *p);

/* True while an endpoint is attached. */
bool shrimp_polled_busy(struct shrimp_polled *p);

/* Frees the table; nothing is attached any more. */
void shrimp_polled_fini(struct shrimp_polled *p);

#endif /* SHRIMP_POLLED_H */
