/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Event queues, fi_eq(3): a list of events under a mutex (innermost).
 */
#ifndef SHRIMP_EQ_H
#define SHRIMP_EQ_H

#include <pthread.h>
#include <rdma/fi_eq.h>
#include <urcu/list.h>

#include "lib/wait.h"
#include "shm/atomic.h"

struct shrimp_fabric;

struct shrimp_eq {
	struct fid_eq fid;		/* first: what clients hold */
	struct shrimp_fabric *fabric;	/* parent, referenced */
	bool writable;			/* FI_WRITE: fi_eq_write() works */
	rnic_a32 refs;			/* objects bound to it */
	rnic_a32 pending;		/* asynchronous closes that tell it */
	rnic_a32 posting;		/* threads inside post_reserved() */
	pthread_mutex_t lock;		/* protects events and last */
	struct cds_list_head events;	/* oldest first */
	struct fi_eq_err_entry last;	/* last error read */
	uint8_t last_data[64];		/* its err_data */
	struct shrimp_wait_member wait; /* wait object */
};

/* fi_eq_open(3). 0, -FI_EINVAL, -FI_ENOSYS, -FI_ENOMEM, -FI_EMFILE. */
int shrimp_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		   struct fid_eq **eq, void *context);

/*
 * Queues an event of @len bytes, copied. Any thread. 0 or -FI_ENOMEM.
 */
int shrimp_eq_post(struct shrimp_eq *eq, uint32_t event, const void *buf,
		   size_t len);

/* Queues an error, copied without its err_data. 0 or -FI_ENOMEM. */
int shrimp_eq_post_err(struct shrimp_eq *eq, const struct fi_eq_err_entry *e);

/* An event that is sure to have memory when it is posted. */
struct shrimp_eq_event;

/* One of up to @len bytes; NULL: no memory. Partner: post or unreserve. */
struct shrimp_eq_event *shrimp_eq_reserve(size_t len);

/* It is not needed. NULL is accepted. */
void shrimp_eq_unreserve(struct shrimp_eq_event *e);

/*
 * Posts @e, of as many bytes as it was reserved for, as @event with entry
 * @buf; or, if @err is not NULL, as that error. One reference to @eq, which
 * the caller has, is given back before anybody can see the event: whoever has
 * read it may close the queue.
 */
void shrimp_eq_post_reserved(struct shrimp_eq *eq, struct shrimp_eq_event *e,
			     uint32_t event, const void *buf,
			     const struct fi_eq_err_entry *err);

/* True if there is something to read. Any thread; takes the lock. */
bool shrimp_eq_ready(struct shrimp_eq *eq);

#endif /* SHRIMP_EQ_H */
