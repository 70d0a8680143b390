/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What a registration can do beyond fi_mr_reg(3): the table behind
 * FI_SHRIMP_OPS_MR, and what stands behind its entries.
 */
#ifndef SHRIMP_MR_EXT_H
#define SHRIMP_MR_EXT_H

#include <rdma/fi_domain.h>

struct fi_ops_shrimp_mr;
struct fi_shrimp_mr_info;
struct fi_shrimp_mr_piece;
struct shrimp_mr;

/* The operations; static. */
extern const struct fi_ops_shrimp_mr shrimp_mr_ext_ops;

/* The region or window of ours that @fid is, or NULL. */
struct shrimp_mr *shrimp_mr_checked(struct fid_mr *fid);

/* reg_batch, lib/mr_batch.c. */
int shrimp_mr_batch(struct fid *domain, const struct fi_mr_attr *attr, size_t n,
		    uint64_t flags, struct fid_mr **mr);

/* query, lib/mr_query.c. */
int shrimp_mr_query(struct fid_mr *mr, struct fi_shrimp_mr_info *info,
		    struct fi_shrimp_mr_piece *piece, size_t *n);

/* close_async, lib/mr_async.c. */
int shrimp_mr_close_async(struct fid_mr *mr, struct fid_eq *eq, void *context);

/*
 * fi_mr_raw_attr(3): a raw key is the key. Returns 0, -FI_EINVAL (no key yet),
 * -FI_ETOOSMALL with the size that is needed.
 */
int shrimp_mr_raw_attr(struct shrimp_mr *mr, const struct fi_mr_raw_attr *a);

/* fi_mr_map_raw(3), which allocates nothing. Returns 0 or -FI_EINVAL. */
int shrimp_mr_map_raw(const struct fi_mr_map_raw *m);

#endif /* SHRIMP_MR_EXT_H */
