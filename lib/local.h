/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Local protection (contract R6): where FI_MR_LOCAL is in force, each call of
 * an endpoint looks up the descriptors of the buffers it is given, as a NIC
 * looks up an lkey.
 *
 * A descriptor is a number: an entry of a table of the domain, and a
 * generation, which no other descriptor of the process has. What it allows is
 * in the entry, whose memory is not given back before the domain is closed: a
 * descriptor of a closed region, of another domain, or of nobody is found out
 * without a look at an object that is gone.
 *
 *   get --> HIDDEN --show--> SHOWN --hide--> HIDDEN --put--> the next one's
 *
 *           | get, put | show, hide                         | check
 *   get     | lock     | lock                               | free
 *   show    |          | lock; of one region: its client,   | free (E1 to E4)
 *           |          | or domain.mr_lock                  |
 *   check   |          |                                    | free
 *
 * The lock of the table nests in all others. A region is shown while it is
 * registered, enabled, and not being refreshed. A call that runs while its
 * region is closed finds the descriptor good, or not: one of both, never a
 * mixture of two regions.
 */
#ifndef SHRIMP_LOCAL_H
#define SHRIMP_LOCAL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/atomic.h"

struct fid_ep;
struct shrimp_mr;

enum {
	SHRIMP_LOCAL_FIRST = 64,  /* entries of the first chunk */
	SHRIMP_LOCAL_CHUNKS = 18, /* each twice as long: some 2^24 entries */
};

/* The table. */
struct shrimp_local {
	pthread_mutex_t lock;		      /* all that is written */
	rnic_aptr chunk[SHRIMP_LOCAL_CHUNKS]; /* written once each */
	uint32_t made;			      /* entries there are; the lock */
	uint32_t unused; /* index + 1 of the first, 0: none; the lock */
};

/* A buffer of a call. */
struct shrimp_local_buf {
	const char *call; /* which, for the log */
	const void *at;	  /* its first byte */
	size_t len;	  /* bytes */
	void *desc;	  /* as given */
	uint32_t right;	  /* RNIC_LOCAL_READ or RNIC_LOCAL_WRITE */
};

/* Empty. No error. Partner: shrimp_local_fini(). */
void shrimp_local_init(struct shrimp_local *t);

/* Frees the entries; nobody uses them. */
void shrimp_local_fini(struct shrimp_local *t);

/*
 * Gives @mr, a new region, its descriptor (fid.mem_desc): a hidden one, or, if
 * its domain has no FI_MR_LOCAL, its address, of which all below knows
 * nothing. Returns 0 or -FI_ENOMEM. Partner: shrimp_local_put().
 */
int shrimp_local_get(struct shrimp_mr *mr);

/* Nobody is found by the descriptor of @mr, which is hidden, ever again. */
void shrimp_local_put(struct shrimp_mr *mr);

/* From now on the descriptor stands for the ranges and rights of @mr. */
void shrimp_local_show(const struct shrimp_mr *mr);

/* Its descriptor is refused from now on, and until it is shown again. */
void shrimp_local_hide(const struct shrimp_mr *mr);

/*
 * May the call touch @b? Any thread; no lock. Returns 0, also for no bytes; or,
 * logged, -FI_EINVAL: no descriptor, or bytes that are in none of its ranges;
 * -FI_EKEYREJECTED: a descriptor that stands for nothing (closed, not enabled,
 * being refreshed, of another domain); -FI_EACCES: without the right.
 */
int shrimp_local_check(const struct shrimp_local *t,
		       const struct shrimp_local_buf *b);

/* The calls of @ep, which was just made, check what they are given. */
void shrimp_local_protect(struct fid_ep *ep);

#endif /* SHRIMP_LOCAL_H */
