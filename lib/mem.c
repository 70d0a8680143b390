/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The arena allocator as clients see it. Locks: the arena's.
 */
#include "lib/mem.h"

#include <rdma/fi_errno.h>
#include <sys/mman.h>

#include "lib/domain.h"
#include "lib/mr.h"
#include "shm/arena.h"
#include "shm/grace.h"
#include "shm/numa.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

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
	shrimp_mr_cache_freed(d, ptr);
	ret = rnic_arena_free(&d->dev.user, ptr, rnic_grace_now(&d->dev));
	shrimp_domain_reap(d);
	return ret;
}

/* The iov of @mr in which byte @off lies; *@off: counted from its start. */
static const struct iovec *iov_at(const struct shrimp_mr *mr, size_t *off)
{
	size_t i = 0;

	while (i < mr->niov && *off >= mr->iov[i].iov_len)
		*off -= mr->iov[i++].iov_len;
	return i < mr->niov ? &mr->iov[i] : NULL;
}

/* Pages that are there, but that we have not mapped, have no node for us. */
static void map_pages(struct shrimp_domain *d, char *p, size_t len)
{
	uint64_t off, in = (uintptr_t)p % RNIC_PAGE;

	if (!rnic_arena_find(&d->dev.user, p, len, &off))
		madvise(p - in, len + in, MADV_POPULATE_READ);
}

static ssize_t mem_nodes(struct fid_mr *fid, size_t off, size_t len, int *node,
			 size_t n)
{
	struct shrimp_mr *mr = (struct shrimp_mr *)fid;
	const struct iovec *v;
	size_t pages;
	char *p;
	int ret;

	if (!fid || fid->fid.fclass != FI_CLASS_MR || (n && !node) || !len)
		return -FI_EINVAL;
	if (mr->domain->inherited)
		return -FI_EOPBADSTATE;
	v = iov_at(mr, &off);
	if (!v || len > v->iov_len - off)
		return -FI_EINVAL;
	p = (char *)v->iov_base + off;
	pages = ((uintptr_t)p % RNIC_PAGE + (len - 1)) / RNIC_PAGE + 1;
	if (n > pages)
		n = pages;
	if (n)
		map_pages(mr->domain, p, len);
	ret = rnic_numa_where(p, node, n);
	return ret ? ret : (ssize_t)pages;
}

const struct fi_ops_shrimp_mem shrimp_mem_ops = {
	.size = sizeof(struct fi_ops_shrimp_mem),
	.alloc = mem_alloc,
	.free = mem_free,
	.nodes = mem_nodes,
};
