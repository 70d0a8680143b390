/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The table behind FI_SHRIMP_OPS_MR, and raw keys.
 */
#include "lib/mr_ext.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "include/rdma/fi_ext_shrimp.h"
#include "lib/domain.h"
#include "lib/mr.h"
#include "lib/odp.h"
#include "lib/window.h"

struct shrimp_mr *shrimp_mr_checked(struct fid_mr *fid)
{
	return fid && fid->fid.ops == &shrimp_mr_fid_ops
		       ? (struct shrimp_mr *)fid
		       : NULL;
}

static int update(struct fid_mr *fid, const struct iovec *range)
{
	struct shrimp_mr *mr = shrimp_mr_checked(fid);

	if (!mr || mr->keeper)
		return -FI_EINVAL;
	if (mr->domain->inherited)
		return -FI_EOPBADSTATE;
	return shrimp_mr_refresh(mr, range, range ? 1 : 0);
}

static ssize_t post_reg(struct fid_ep *ep, struct fid_mr *mw,
			const struct fi_shrimp_mr_part *parts, size_t n,
			uint64_t access, uint64_t requested_key, uint64_t flags,
			void *context)
{
	const struct shrimp_binding b = { parts, n, access, requested_key };

	return shrimp_window_post_reg(ep, mw, &b, flags, context);
}

const struct fi_ops_shrimp_mr shrimp_mr_ext_ops = {
	.size = sizeof(struct fi_ops_shrimp_mr),
	.reg_batch = shrimp_mr_batch,
	.update = update,
	.query = shrimp_mr_query,
	.close_async = shrimp_mr_close_async,
	.window = shrimp_window_open,
	.bind_window = shrimp_window_rebind,
	.invalidate_window = shrimp_window_invalidate,
	.post_reg = post_reg,
	.post_invalidate = shrimp_window_post_inv,
	.advise = shrimp_odp_advise,
};

/* ---- raw keys ---- */

int shrimp_mr_raw_attr(struct shrimp_mr *mr, const struct fi_mr_raw_attr *a)
{
	uint64_t key = mr->fid.key;
	size_t room;

	if (!a || !a->base_addr || !a->key_size || a->flags || !mr->enabled)
		return -FI_EINVAL;
	room = *a->key_size;
	*a->key_size = sizeof(key);
	if (room < sizeof(key) || !a->raw_key)
		return -FI_ETOOSMALL;
	*a->base_addr = mr->region.rights & RNIC_MR_OFFSET ? 0 : mr->region.va;
	memcpy(a->raw_key, &key, sizeof(key));
	return 0;
}

int shrimp_mr_map_raw(const struct fi_mr_map_raw *m)
{
	if (!m || !m->raw_key || !m->key || m->key_size != sizeof(*m->key) ||
	    m->flags)
		return -FI_EINVAL;
	memcpy(m->key, m->raw_key, sizeof(*m->key));
	return 0;
}
