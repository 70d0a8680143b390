/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The table behind FI_SHRIMP_OPS_CACHE: regions that are acquired and released,
 * and how the application tells of memory that goes.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>

#include "include/rdma/fi_ext_shrimp.h"
#include "lib/domain.h"
#include "lib/mr.h"
#include "lib/mr_cache.h"
#include "lib/mr_ext.h"

#define LOCAL_ACCESS  (FI_SEND | FI_RECV | FI_READ | FI_WRITE)
#define REMOTE_ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)

_Static_assert((LOCAL_ACCESS | REMOTE_ACCESS) ==
		       (uint64_t)(SHRIMP_MR_ACCESSES - 1)
			       << SHRIMP_MR_ACCESS_SHIFT,
	       "what may be asked for is an index");

/* Bytes @v: not empty, and its pages end before the address space does. */
static bool is_range(const struct iovec *v)
{
	uintptr_t first = (uintptr_t)v->iov_base;

	return v->iov_len && first <= UINTPTR_MAX - RNIC_PAGE &&
	       v->iov_len <= UINTPTR_MAX - RNIC_PAGE - first;
}

/* Keys are the provider's, and a region has one when it is made. */
static bool may_have(const struct shrimp_domain *d, uint64_t access)
{
	int mode = d->mr_mode & (FI_MR_PROV_KEY | FI_MR_ENDPOINT);

	return !(access & REMOTE_ACCESS) || mode == FI_MR_PROV_KEY;
}

/* What the entry must have. */
static uint32_t wanted(const struct shrimp_domain *d, uint64_t access)
{
	uint32_t rights = shrimp_mr_rights(d, access);
	int prot = shrimp_mr_prot(access);

	return SHRIMP_MRC_REGION | rights << SHRIMP_MRC_RIGHTS |
	       (prot & PROT_READ ? SHRIMP_MRC_R : 0) |
	       (prot & PROT_WRITE ? SHRIMP_MRC_W : 0) |
	       (rights & RNIC_MR_GIVEN ? SHRIMP_MRC_FILE : 0);
}

void shrimp_mr_keep_init(struct shrimp_domain *d)
{
	for (unsigned int i = 0; i < SHRIMP_MR_ACCESSES; i++) {
		uint64_t access = (uint64_t)i << SHRIMP_MR_ACCESS_SHIFT;

		d->cache.wanted[i] =
			may_have(d, access) ? wanted(d, access) : 0;
	}
}

/* The same, from the table; 0: not allowed. */
static uint32_t wanted_now(const struct shrimp_domain *d, uint64_t access)
{
	if (access & ~(uint64_t)(LOCAL_ACCESS | REMOTE_ACCESS))
		return 0;
	return d->cache.wanted[access >> SHRIMP_MR_ACCESS_SHIFT];
}

/* Kept, or else of the caller alone. */
static int find(struct shrimp_domain *d, const struct iovec *v, uint32_t want,
		struct shrimp_cached **e)
{
	int ret = 0;

	*e = NULL;
	if (d->set->mrc != SHRIMP_MRC_OFF)
		ret = shrimp_mr_cache_get(d, v, want, e);
	if (!ret && !*e)
		ret = shrimp_mr_cache_single(d, v, want, e);
	return ret;
}

static int acquire(struct fid *fid, const void *buf, size_t len,
		   uint64_t access, struct fid_mr **mr)
{
	struct shrimp_domain *d = (struct shrimp_domain *)fid;
	const struct iovec v = { .iov_base = (void *)(uintptr_t)buf,
				 .iov_len = len };
	struct shrimp_cached *e;
	uint32_t want;
	int ret;

	if (!fid || fid->fclass != FI_CLASS_DOMAIN || !mr || !is_range(&v))
		return -FI_EINVAL;
	want = wanted_now(d, access);
	if (!want)
		return -FI_EINVAL;
	if (d->inherited)
		return -FI_EOPBADSTATE;
	ret = find(d, &v, want, &e);
	if (RNIC_UNLIKELY(ret) && shrimp_mr_shed(d, ret))
		ret = find(d, &v, want, &e);
	if (!ret)
		*mr = &e->mr->fid;
	return ret;
}

static int release(struct fid_mr *fid)
{
	struct shrimp_mr *mr = shrimp_mr_checked(fid);

	if (!mr || !mr->keeper)
		return -FI_EINVAL;
	if (mr->domain->inherited)
		return -FI_EOPBADSTATE;
	if (!shrimp_cached_used(mr->keeper))
		return -FI_EINVAL;
	shrimp_cached_put(mr->keeper);
	return 0;
}

/* Checks what unmap_begin and unmap_end are given. */
static int check(struct fid *fid, const void *addr, size_t len)
{
	const struct iovec v = { .iov_base = (void *)(uintptr_t)addr,
				 .iov_len = len };

	if (!fid || fid->fclass != FI_CLASS_DOMAIN || !is_range(&v))
		return -FI_EINVAL;
	return ((struct shrimp_domain *)fid)->inherited ? -FI_EOPBADSTATE : 0;
}

static int unmap_begin(struct fid *fid, const void *addr, size_t len)
{
	uint64_t start = rnic_page_down((uintptr_t)addr);
	int ret = check(fid, addr, len);

	if (!ret)
		shrimp_mr_notify_begin(start, (uintptr_t)addr + len);
	return ret;
}

static int unmap_end(struct fid *fid, const void *addr, size_t len)
{
	int ret = check(fid, addr, len);

	if (!ret)
		shrimp_mr_notify_end();
	return ret;
}

static int flush(struct fid *fid)
{
	struct shrimp_domain *d = (struct shrimp_domain *)fid;

	if (!fid || fid->fclass != FI_CLASS_DOMAIN)
		return -FI_EINVAL;
	if (d->inherited)
		return -FI_EOPBADSTATE;
	shrimp_mr_cache_flush(d);
	return 0;
}

const struct fi_ops_shrimp_cache shrimp_cache_ops = {
	.size = sizeof(struct fi_ops_shrimp_cache),
	.acquire = acquire,
	.release = release,
	.unmap_begin = unmap_begin,
	.unmap_end = unmap_end,
	.flush = flush,
};
