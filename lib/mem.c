/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The arena allocator as clients see it. Locks: the arena's.
 */
#include "lib/mem.h"

#include <rdma/fi_errno.h>

#include "lib/domain.h"
#include "shm/arena.h"
#include "shm/grace.h"

static int mem_alloc(struct fid *fid, size_t size, size_t align, void **ptr)
{
	struct shrimp_domain *d = (struct shrimp_domain *)fid;
	uint64_t off;

	if (fid->fclass != FI_CLASS_DOMAIN || !ptr)
		return -FI_EINVAL;
	if (d->inherited)
		return -FI_EOPBADSTATE;
	return rnic_arena_alloc(&d->dev.user, size, align, ptr, &off);
}

static int mem_free(struct fid *fid, void *ptr)
{
	struct shrimp_domain *d = (struct shrimp_domain *)fid;
	int ret;

	if (fid->fclass != FI_CLASS_DOMAIN)
		return -FI_EINVAL;
	/* locks and lanes of the fence are the parent's */
	if (d->inherited)
		return rnic_arena_free(&d->dev.user, ptr, 0);
	ret = rnic_arena_free(&d->dev.user, ptr, rnic_grace_now(&d->dev));
	shrimp_domain_reap(d);
	return ret;
}

const struct fi_ops_shrimp_mem shrimp_mem_ops = {
	.size = sizeof(struct fi_ops_shrimp_mem),
	.alloc = mem_alloc,
	.free = mem_free,
};
