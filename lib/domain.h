/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Domain: one device, one protection domain.
 */
#ifndef SHRIMP_DOMAIN_H
#define SHRIMP_DOMAIN_H

#include <pthread.h>
#include <rdma/fi_domain.h>
#include <urcu/list.h>

#include "include/rdma/fi_ext_shrimp.h"
#include "lib/peer.h"
#include "lib/settings.h"
#include "shm/atomic.h"
#include "shm/device.h"
#include "shm/mpt.h"
#include "shm/mtt.h"

struct shrimp_fabric;
struct shrimp_agent;

struct shrimp_domain {
	struct fid_domain fid;		   /* first: what clients hold */
	struct shrimp_fabric *fabric;	   /* parent, referenced */
	const struct shrimp_settings *set; /* the fabric's settings */
	struct rnic_device dev;		   /* the device */
	struct shrimp_peers peers;	   /* every address ever named */
	rnic_a32 refs;			   /* live children */
	uint32_t api;			   /* API version of the info */
	enum fi_progress progress;	   /* data progress asked for */
	bool inherited;			   /* we are a fork's child */
	uint64_t caps;			   /* of the info, for checks */
	struct fi_shrimp_stats closed;	   /* of closed endpoints */
	struct shrimp_agent *agent;	   /* service thread or NULL */
	struct rnic_mpt_owner mpt;	   /* keys; has a lock of its own */
	struct rnic_mtt_pool mtt;	   /* translations; likewise */
	int mr_mode;			   /* FI_MR_ bits in force */
	pthread_mutex_t lock;		   /* eps, agent; outermost */
	struct cds_list_head eps;	   /* endpoints, by shrimp_ep.in_dom */
	struct cds_list_head in_process;   /* in the list of all domains */
};

/*
 * fi_domain(3): opens a device. Any thread; may sleep. Returns 0, -FI_EINVAL
 * (attributes of another provider), or the errno of rnic_device_open().
 */
int shrimp_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **domain, void *context);

/* The domain a fid_domain of ours stands for. */
static inline struct shrimp_domain *shrimp_domain_of(struct fid_domain *d)
{
	return (struct shrimp_domain *)d;
}

/*
 * Calls @fn for each open domain of the process, the list locked: @fn opens
 * and closes none.
 */
void shrimp_domain_each(void (*fn)(struct shrimp_domain *, void *), void *arg);

/*
 * Gives back table pages and memory of the device whose grace period is over.
 * Any thread outside a reader's section; never waits.
 */
void shrimp_domain_reap(struct shrimp_domain *d);

/* shrimp_domain_each() for who holds shrimp_domain_fork_lock(). */
void shrimp_domain_each_locked(void (*fn)(struct shrimp_domain *, void *),
			       void *arg);

/* Locks the list of domains around a fork; in the parent. */
void shrimp_domain_fork_lock(void);
void shrimp_domain_fork_unlock(void); /* partner of the lock */

/*
 * Child after fork, its only thread: takes one domain off the inherited list,
 * NULL when it is empty. Takes no lock: a thread that held it is not here.
 */
struct shrimp_domain *shrimp_domain_pop_forked(void);

#endif /* SHRIMP_DOMAIN_H */
