/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Domain: opens the device, hands out objects, keeps the list of domains.
 *
 * Locks: process_lock (the list) -> domain.lock -> what endpoint.h says.
 */
#include "lib/domain.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "lib/agent.h"
#include "lib/atomic.h"
#include "lib/av.h"
#include "lib/cntr.h"
#include "lib/cq.h"
#include "lib/endpoint.h"
#include "lib/fabric.h"
#include "lib/fid.h"
#include "lib/fork.h"
#include "lib/info.h"
#include "lib/mr.h"
#include "lib/mr_ext.h"
#include "lib/odp.h"
#include "lib/poll.h"
#include "lib/refs.h"
#include "lib/stats.h"

/* Protects the list of domains of this process. */
static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;
static CDS_LIST_HEAD(domains);

void shrimp_domain_each(void (*fn)(struct shrimp_domain *, void *), void *arg)
{
	shrimp_domain_fork_lock();
	shrimp_domain_each_locked(fn, arg);
	shrimp_domain_fork_unlock();
}

void shrimp_domain_each_locked(void (*fn)(struct shrimp_domain *, void *),
			       void *arg)
{
	struct shrimp_domain *d;

	cds_list_for_each_entry (d, &domains, in_process)
		fn(d, arg);
}

void shrimp_domain_fork_lock(void)
{
	pthread_mutex_lock(&process_lock);
}

void shrimp_domain_fork_unlock(void)
{
	pthread_mutex_unlock(&process_lock);
}

struct shrimp_domain *shrimp_domain_pop_forked(void)
{
	struct shrimp_domain *d;

	pthread_mutex_init(&process_lock, NULL);
	if (cds_list_empty(&domains))
		return NULL;
	d = cds_list_first_entry(&domains, struct shrimp_domain, in_process);
	cds_list_del(&d->in_process);
	return d;
}

/* ---- objects a domain does not have ---- */

static int no_scalable_ep(struct fid_domain *d, struct fi_info *info,
			  struct fid_ep **sep, void *context)
{
	(void)d, (void)info, (void)sep, (void)context;
	return -FI_ENOSYS;
}

static int no_stx(struct fid_domain *d, struct fi_tx_attr *attr,
		  struct fid_stx **stx, void *context)
{
	(void)d, (void)attr, (void)stx, (void)context;
	return -FI_ENOSYS;
}

static int no_srx(struct fid_domain *d, struct fi_rx_attr *attr,
		  struct fid_ep **rx, void *context)
{
	(void)d, (void)attr, (void)rx, (void)context;
	return -FI_ENOSYS;
}

static int no_query_collective(struct fid_domain *d, enum fi_collective_op coll,
			       struct fi_collective_attr *attr, uint64_t flags)
{
	(void)d, (void)coll, (void)attr, (void)flags;
	return -FI_ENOSYS;
}

/* The flags ask for a peer endpoint, which there is none of. */
static int endpoint2(struct fid_domain *d, struct fi_info *info,
		     struct fid_ep **ep, uint64_t flags, void *context)
{
	return flags ? -FI_ENOSYS : shrimp_ep_open(d, info, ep, context);
}

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = shrimp_av_open,
	.cq_open = shrimp_cq_open,
	.endpoint = shrimp_ep_open,
	.scalable_ep = no_scalable_ep,
	.cntr_open = shrimp_cntr_open,
	.poll_open = shrimp_poll_open,
	.stx_ctx = no_stx,
	.srx_ctx = no_srx,
	.query_atomic = shrimp_query_atomic,
	.query_collective = no_query_collective,
	.endpoint2 = endpoint2,
};

/* ---- the object ---- */

static int domain_close(struct fid *fid)
{
	struct shrimp_domain *d = (struct shrimp_domain *)fid;

	if (d->inherited)
		return -FI_EOPBADSTATE;
	shrimp_mr_cache_flush(d);
	if (shrimp_ref_count(&d->refs))
		return -FI_EBUSY;
	shrimp_agent_stop(d);
	pthread_mutex_lock(&process_lock);
	cds_list_del(&d->in_process);
	shrimp_stats_retire(d);
	pthread_mutex_unlock(&process_lock);
	shrimp_mr_cache_close(d);
	shrimp_odp_domain_fini(d);
	rnic_mpt_fini(&d->mpt);
	rnic_mtt_pool_fini(&d->mtt);
	rnic_device_close(&d->dev);
	shrimp_peers_fini(&d->peers);
	shrimp_local_fini(&d->local);
	shrimp_ref_put(&d->fabric->refs);
	pthread_mutex_destroy(&d->mr_lock);
	pthread_mutex_destroy(&d->lock);
	free(d);
	return 0;
}

static int domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid, (void)flags;
	/* an EQ for asynchronous registration: there is none */
	return bfid->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
}

static int domain_ops_open(struct fid *fid, const char *name, uint64_t flags,
			   void **ops, void *context)
{
	(void)context;
	return shrimp_stats_ops_open(fid, name, flags, ops);
}

/* Keys of peers as raw keys, fi_mr(3). */
static int domain_control(struct fid *fid, int command, void *arg)
{
	struct shrimp_domain *d = (struct shrimp_domain *)fid;

	if (d->inherited)
		return -FI_EOPBADSTATE;
	switch (command) {
	case FI_MAP_RAW_MR:
		return shrimp_mr_map_raw(arg);
	case FI_UNMAP_KEY:
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = domain_bind,
	.control = domain_control,
	.ops_open = domain_ops_open,
	.tostr = shrimp_no_tostr,
	.ops_set = shrimp_no_ops_set,
};

static int open_device(struct shrimp_domain *d)
{
	struct rnic_device_cfg cfg = {
		.pool_bytes = d->set->pool,
		.heap_bytes = d->set->tx_buffer,
		.membarrier = d->set->membarrier,
		.numa = { .mode = d->set->numa, .home = d->set->home_node },
		.keys = d->set->keys,
	};

	/* spans of the heap are rounded up: room beyond the limit */
	cfg.heap_bytes += cfg.heap_bytes / 8 + (1 << 20);
	return rnic_device_open(&d->dev, &cfg);
}

static bool grace_over(void *dev, uint64_t grace)
{
	return rnic_grace_ended(dev, grace);
}

void shrimp_domain_reap(struct shrimp_domain *d)
{
	shrimp_odp_tidy(d);
	rnic_mtt_reap(&d->mtt, grace_over, &d->dev);
	rnic_arena_reap(&d->dev.user, grace_over, &d->dev);
}

/* The tables for regions. 0 or a negative errno; the device is open. */
static int open_tables(struct shrimp_domain *d)
{
	const struct rnic_header *h = d->dev.hdr;
	int ret = rnic_mpt_init(&d->mpt, &d->dev);

	if (ret)
		return ret;
	rnic_mtt_pool_init(&d->mtt, &d->dev.tables, h->mtt_off,
			   (void *)((char *)d->dev.hdr + h->mtt_off),
			   h->mtt_pages);
	return 0;
}

/* The bits that the modes before API 1.5 stand for, or the modern ones. */
static int mr_mode_of(const struct fi_info *info)
{
	int local = info->mode & SHRIMP_LOCAL_MR ? FI_MR_LOCAL : 0;
	int mode = info->domain_attr->mr_mode;

	if (mode == SHRIMP_MR_BASIC)
		return FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
		       local;
	return mode == SHRIMP_MR_SCALABLE ? local : mode;
}

static void fill(struct shrimp_domain *d, struct shrimp_fabric *f,
		 const struct fi_info *info, void *context)
{
	d->fid.fid.fclass = FI_CLASS_DOMAIN;
	d->fid.fid.context = context;
	d->fid.fid.ops = &fid_ops;
	d->fid.ops = &domain_ops;
	d->fid.mr = &shrimp_mr_ops;
	d->fabric = f;
	d->set = &f->set;
	d->api = f->api;
	d->caps = info->caps;
	d->progress = info->domain_attr->data_progress;
	d->mr_mode = mr_mode_of(info);
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_init(&d->mr_lock, NULL);
	CDS_INIT_LIST_HEAD(&d->counted);
	CDS_INIT_LIST_HEAD(&d->closing);
	shrimp_odp_domain_init(d);
	shrimp_local_init(&d->local);
	CDS_INIT_LIST_HEAD(&d->eps);
	CDS_INIT_LIST_HEAD(&d->cqs);
}

int shrimp_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **domain, void *context)
{
	struct shrimp_fabric *f = (struct shrimp_fabric *)fabric;
	struct shrimp_domain *d;
	int ret;

	if (f->inherited)
		return -FI_EOPBADSTATE;
	if (!info || !info->domain_attr)
		return -FI_EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -FI_ENOMEM;
	fill(d, f, info, context);
	ret = shrimp_fork_watch();
	if (!ret)
		ret = shrimp_peers_init(&d->peers);
	if (ret)
		goto err_free;
	ret = open_device(d);
	if (ret)
		goto err_peers;
	ret = open_tables(d);
	if (!ret)
		ret = shrimp_mr_cache_open(d);
	if (ret)
		goto err_device;
	shrimp_ref_get(&f->refs);
	pthread_mutex_lock(&process_lock);
	cds_list_add_tail(&d->in_process, &domains);
	pthread_mutex_unlock(&process_lock);
	shrimp_stats_opened(d);
	*domain = &d->fid;
	return 0;
err_device:
	rnic_device_close(&d->dev);
err_peers:
	shrimp_peers_fini(&d->peers);
err_free:
	shrimp_local_fini(&d->local);
	shrimp_odp_domain_fini(d);
	pthread_mutex_destroy(&d->mr_lock);
	pthread_mutex_destroy(&d->lock);
	free(d);
	return ret;
}
