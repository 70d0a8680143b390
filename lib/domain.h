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
#include "lib/local.h"
#include "lib/mr_cache.h"
#include "lib/peer.h"
#include "lib/settings.h"
#include "shm/atomic.h"
#include "shm/device.h"
#include "shm/mpt.h"
#include "shm/mtt.h"

struct shrimp_fabric;
struct shrimp_agent;

enum {
	SHRIMP_ODP_BUCKETS = 64, /* of the list of regions on demand */
};

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
	pthread_mutex_t mr_lock;	   /* see mr.h; inside an ep's lock */
	struct cds_list_head counted;	   /* regions with counters; mr_lock */
	struct cds_list_head closing;	   /* asynchronous ones; mr_lock */
	struct shrimp_mr_cache cache;	   /* of registrations */
	struct shrimp_local local;	   /* descriptors, if FI_MR_LOCAL */
	rnic_a32 nclosing;		   /* how many */
	rnic_a32 fencing;		   /* posted invalidations under way */
	rnic_a32 agent_runs;		   /* 1: there is an agent; a hint */
	rnic_a32 serves;		   /* 1: agent for all; under lock */
	pthread_mutex_t odp_lock;	   /* odps, monitored; inner */
	pthread_cond_t odp_idle;	   /* a region's users have left it */
	struct cds_list_head odps[SHRIMP_ODP_BUCKETS]; /* on demand */
	rnic_a32 nodps;			 /* entries of odps; under odp_lock */
	int monitored;			 /* 1: we use the monitor; -1: not */
	pthread_mutex_t lock;		 /* eps, cqs, agent; outermost */
	rnic_a32 lock_wanted;		 /* threads that wait for it */
	struct cds_list_head eps;	 /* endpoints, by shrimp_ep.in_dom */
	struct cds_list_head cqs;	 /* queues, by shrimp_cq.in_dom */
	struct cds_list_head in_process; /* in the list of all domains */
};

/* Takes d->lock; the agent gives way. Partner: shrimp_domain_unlock(). */
static inline void shrimp_domain_lock(struct shrimp_domain *d)
{
	/* for the agent, who only wants to see that it is not 0 */
	rnic_add32_acqrel(&d->lock_wanted, 1);
	pthread_mutex_lock(&d->lock);
	rnic_sub32_acqrel(&d->lock_wanted, 1);
}

/* Gives d->lock back. */
static inline void shrimp_domain_unlock(struct shrimp_domain *d)
{
	pthread_mutex_unlock(&d->lock);
}

/* shrimp_mr_cache_reap_slow() if there may be something to do. Likewise. */
static inline void shrimp_mr_cache_reap(struct shrimp_domain *d)
{
	if (shrimp_mr_cache_littered(&d->cache))
		shrimp_mr_cache_reap_slow(d);
}

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
