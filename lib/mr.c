/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Registration: checks, pins, translation, publication; and the way back.
 *
 * Order (contract R2, R3, I1): what is checked first, allocated next and
 * published last is withdrawn first, fenced, and given back last.
 */
#include "lib/mr.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/domain.h"
#include "lib/fid.h"
#include "lib/refs.h"
#include "shm/arena.h"
#include "shm/grace.h"
#include "shm/log.h"
#include "shm/mtt.h"
#include "shm/pin.h"

#define LOCAL_ACCESS  (FI_SEND | FI_RECV | FI_READ | FI_WRITE)
#define REMOTE_ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* ---- checks (contract R1) ---- */

static int check_range(const struct iovec *v)
{
	uintptr_t first = (uintptr_t)v->iov_base;

	if (!v->iov_len || first + (v->iov_len - 1) < first)
		return -FI_EINVAL;
	return 0;
}

static int check_ranges(const struct fi_mr_attr *a)
{
	size_t total = 0;

	if (!a->mr_iov || !a->iov_count || a->iov_count > SHRIMP_IOV_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < a->iov_count; i++) {
		size_t len = a->mr_iov[i].iov_len;

		if (check_range(&a->mr_iov[i]) || total + len < total)
			return -FI_EINVAL;
		total += len;
	}
	return 0;
}

static int check_attr(const struct fi_mr_attr *a, uint64_t flags)
{
	if (!a || a->offset || a->auth_key_size ||
	    a->access & ~(uint64_t)(LOCAL_ACCESS | REMOTE_ACCESS) ||
	    flags & ~(uint64_t)FI_RMA_EVENT)
		return -FI_EINVAL;
	if (a->iface != FI_HMEM_SYSTEM)
		return -FI_ENOSYS;
	return check_ranges(a);
}

/* What the memory must allow for @access. */
static int prot_for(uint64_t access)
{
	int prot = 0;

	if (access & (FI_SEND | FI_WRITE | FI_REMOTE_READ))
		prot |= PROT_READ;
	if (access & (FI_RECV | FI_READ | FI_REMOTE_WRITE))
		prot |= PROT_WRITE;
	return prot ? prot : PROT_READ;
}

/* ---- pins (contract R4) ---- */

static void unpin(struct shrimp_mr *mr)
{
	for (size_t i = 0; i < mr->niov; i++) {
		if (mr->pinned >> i & 1)
			rnic_unpin(mr->iov[i].iov_base, mr->iov[i].iov_len);
	}
	mr->pinned = 0;
}

/* The whole address space, or most of it (contract R11): never pinned. */
static bool is_implicit(const struct shrimp_mr *mr)
{
	return mr->region.length >= UINT64_C(1) << 47;
}

/*
 * Checks and pins all ranges, or none. Memory that need not be there yet
 * (no FI_MR_ALLOCATED) is neither checked nor pinned: contract R1.
 */
static int pin(struct shrimp_mr *mr, uint64_t access)
{
	struct shrimp_domain *d = mr->domain;
	int ret = 0;

	if (!(d->mr_mode & FI_MR_ALLOCATED) || is_implicit(mr))
		return 0;
	for (size_t i = 0; i < mr->niov && ret >= 0; i++) {
		struct iovec *v = &mr->iov[i];

		ret = rnic_pin_check(v->iov_base, v->iov_len, prot_for(access));
		if (!ret)
			ret = rnic_pin(v->iov_base, v->iov_len, d->set->pin);
		if (ret > 0)
			mr->pinned |= 1u << i;
	}
	if (ret >= 0)
		return 0;
	unpin(mr);
	return ret;
}

/* ---- translation ---- */

/* The translation of one range, which is contiguous: in our arena, or by
 * address. */
static uint64_t range_root(struct shrimp_domain *d, const struct iovec *v)
{
	uint64_t off;

	if (rnic_arena_find(&d->dev.user, v->iov_base, v->iov_len, &off))
		return rnic_mtt_root_make(
			0, rnic_mtt_leaf_va((uintptr_t)v->iov_base));
	return rnic_mtt_root_make(0, rnic_mtt_leaf_space(0, off / RNIC_PAGE));
}

/* Several ranges under one key (contract R8). */
static int list_root(struct shrimp_mr *mr, uint64_t *root)
{
	struct rnic_mtt_range r[SHRIMP_IOV_MAX];

	for (size_t i = 0; i < mr->niov; i++)
		r[i] = (struct rnic_mtt_range){
			.va = (uintptr_t)mr->iov[i].iov_base,
			.bytes = mr->iov[i].iov_len,
			.root = range_root(mr->domain, &mr->iov[i]),
		};
	return rnic_mtt_list_make(&mr->domain->mtt, r, mr->niov, root);
}

static int translate(struct shrimp_mr *mr)
{
	struct rnic_region *r = &mr->region;

	if (mr->niov == 1) {
		r->mtt = range_root(mr->domain, &mr->iov[0]);
		return 0;
	}
	r->rights |= RNIC_MR_LIST;
	return list_root(mr, &r->mtt);
}

static void untranslate(struct shrimp_mr *mr, uint64_t grace)
{
	if (mr->region.rights & RNIC_MR_LIST)
		rnic_mtt_list_free(&mr->domain->mtt, mr->region.mtt, grace);
	else
		rnic_mtt_free(&mr->domain->mtt, mr->region.mtt, grace);
}

/* ---- publication ---- */

static uint32_t rights_of(const struct shrimp_domain *d,
			  const struct fi_mr_attr *a, uint64_t flags)
{
	uint32_t r = 0;

	if (a->access & (FI_SEND | FI_WRITE))
		r |= RNIC_LOCAL_READ;
	if (a->access & (FI_RECV | FI_READ))
		r |= RNIC_LOCAL_WRITE;
	if (a->access & FI_REMOTE_READ)
		r |= RNIC_REMOTE_READ;
	if (a->access & FI_REMOTE_WRITE)
		r |= RNIC_REMOTE_WRITE;
	if (a->access & REMOTE_ACCESS)
		r |= RNIC_MR_GIVEN;
	if (!(d->mr_mode & FI_MR_VIRT_ADDR))
		r |= RNIC_MR_OFFSET;
	if (flags & FI_RMA_EVENT)
		r |= RNIC_MR_EV_READ | RNIC_MR_EV_WRITE;
	return r;
}

static int publish(struct shrimp_mr *mr)
{
	int ret = rnic_mpt_publish(&mr->domain->mpt, &mr->region, mr->user,
				   &mr->fid.key, &mr->slot);

	if (ret == -EEXIST)
		return -FI_ENOKEY;
	mr->live = !ret;
	return ret;
}

/*
 * Withdraws the key. When it returns 0 nobody touches the memory through it
 * any more (contract I1). An error: not known, so all stays as it is.
 */
static int withdraw(struct shrimp_mr *mr)
{
	struct shrimp_domain *d = mr->domain;
	uint64_t grace;
	int ret = 0;

	if (mr->live)
		rnic_mpt_invalidate(&d->mpt, mr->slot);
	mr->live = false;
	mr->leaving = true;
	if (mr->region.rights & RNIC_MR_GIVEN)
		ret = rnic_grace_fence(&d->dev, mr->slot);
	if (ret)
		return ret;
	grace = rnic_grace_now(&d->dev);
	rnic_mpt_retire(&d->mpt, mr->slot, grace);
	mr->leaving = false;
	untranslate(mr, grace);
	return 0;
}

/* ---- the object ---- */

static int mr_close(struct fid *fid)
{
	struct shrimp_mr *mr = (struct shrimp_mr *)fid;
	struct shrimp_domain *d = mr->domain;
	int ret = 0;

	if (d->inherited)
		return -FI_EOPBADSTATE;
	if (mr->live || mr->leaving)
		ret = withdraw(mr);
	else
		untranslate(mr, 0);
	if (ret)
		return ret;
	unpin(mr);
	shrimp_domain_reap(d);
	shrimp_ref_put(&d->refs);
	free(mr);
	return 0;
}

/* An endpoint is all that a region is bound to (FI_MR_ENDPOINT). */
static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct shrimp_mr *mr = (struct shrimp_mr *)fid;
	struct shrimp_ep *ep = (struct shrimp_ep *)bfid;

	if (mr->domain->inherited)
		return -FI_EOPBADSTATE;
	if (bfid->fclass == FI_CLASS_CNTR)
		return -FI_ENOSYS;
	if (flags || bfid->fclass != FI_CLASS_EP || mr->live || mr->bound ||
	    !(mr->domain->mr_mode & FI_MR_ENDPOINT) || ep->domain != mr->domain)
		return -FI_EINVAL;
	mr->bound = true;
	return 0;
}

static int enable(struct shrimp_mr *mr)
{
	bool bound = mr->bound || !(mr->domain->mr_mode & FI_MR_ENDPOINT);

	if (mr->live)
		return 0;
	return bound ? publish(mr) : -FI_EINVAL;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	struct shrimp_mr *mr = (struct shrimp_mr *)fid;

	(void)arg;
	if (mr->domain->inherited)
		return -FI_EOPBADSTATE;
	return command == FI_ENABLE ? enable(mr) : -FI_ENOSYS;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = shrimp_no_ops_open,
	.tostr = shrimp_no_tostr,
	.ops_set = shrimp_no_ops_set,
};

/* ---- registration ---- */

static void fill(struct shrimp_mr *mr, struct shrimp_domain *d,
		 const struct fi_mr_attr *a, uint64_t flags)
{
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = a->context;
	mr->fid.fid.ops = &fid_ops;
	mr->fid.mem_desc = mr;
	mr->user = !(d->mr_mode & FI_MR_PROV_KEY);
	mr->fid.key = mr->user ? a->requested_key : FI_KEY_NOTAVAIL;
	mr->domain = d;
	mr->niov = a->iov_count;
	memcpy(mr->iov, a->mr_iov, a->iov_count * sizeof(*a->mr_iov));
	mr->region.va = (uintptr_t)a->mr_iov[0].iov_base;
	for (size_t i = 0; i < a->iov_count; i++)
		mr->region.length += a->mr_iov[i].iov_len;
	mr->region.rights = rights_of(d, a, flags);
}

/* All or nothing (contract R3). */
static int set_up(struct shrimp_mr *mr, uint64_t access)
{
	int ret = pin(mr, access);

	if (ret)
		return ret;
	ret = translate(mr);
	if (ret)
		goto err_unpin;
	if (!(mr->domain->mr_mode & FI_MR_ENDPOINT))
		ret = publish(mr);
	if (ret)
		goto err_untranslate;
	return 0;
err_untranslate:
	untranslate(mr, 0);
err_unpin:
	unpin(mr);
	return ret;
}

static int regattr(struct fid *fid, const struct fi_mr_attr *a, uint64_t flags,
		   struct fid_mr **out)
{
	struct shrimp_domain *d = (struct shrimp_domain *)fid;
	struct shrimp_mr *mr;
	int ret;

	if (d->inherited)
		return -FI_EOPBADSTATE;
	ret = check_attr(a, flags);
	if (ret)
		return ret;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	fill(mr, d, a, flags);
	ret = set_up(mr, a->access);
	if (ret) {
		free(mr);
		return ret;
	}
	shrimp_ref_get(&d->refs);
	*out = &mr->fid;
	return 0;
}

static int regv(struct fid *fid, const struct iovec *iov, size_t count,
		uint64_t access, uint64_t offset, uint64_t key, uint64_t flags,
		struct fid_mr **mr, void *context)
{
	struct fi_mr_attr a = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = key,
		.context = context,
	};

	return regattr(fid, &a, flags, mr);
}

static int reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
	       uint64_t offset, uint64_t key, uint64_t flags,
	       struct fid_mr **mr, void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };

	return regv(fid, &iov, 1, access, offset, key, flags, mr, context);
}

struct fi_ops_mr shrimp_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = reg,
	.regv = regv,
	.regattr = regattr,
};
