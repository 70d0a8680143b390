/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Counters as clients and shrimp-run see them.
 */
#ifndef SHRIMP_STATS_H
#define SHRIMP_STATS_H

#include "include/rdma/fi_ext_shrimp.h"

struct shrimp_domain;
struct rnic_stats;

/* What fi_open_ops() hands out for FI_SHRIMP_OPS_STATS. */
extern const struct fi_ops_shrimp_stats shrimp_stats_ops;

/*
 * fi_open_ops() of a fabric or a domain. Returns 0, -FI_EINVAL (flags, NULL)
 * or -FI_ENOSYS (no such name). Any thread.
 */
int shrimp_stats_ops_open(struct fid *fid, const char *name, uint64_t flags,
			  void **ops);

/* Adds the counters of a place to those of closed endpoints of @d. */
void shrimp_stats_close_ep(struct shrimp_domain *d, const struct rnic_stats *s);

/*
 * A domain has opened: notes it in FI_SHRIMP_STATS, so that one that never
 * closes is missed.
 */
void shrimp_stats_opened(const struct shrimp_domain *d);

/*
 * @d closes, no endpoint is left: adds its counters to those of the process
 * and appends them to FI_SHRIMP_STATS. The list of domains is locked.
 */
void shrimp_stats_retire(struct shrimp_domain *d);

#endif /* SHRIMP_STATS_H */
