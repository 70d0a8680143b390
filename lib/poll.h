/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Poll sets, fi_poll(3): which of many CQs and counters have something.
 */
#ifndef SHRIMP_POLL_H
#define SHRIMP_POLL_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

/* fi_poll_open(3). Returns 0, -FI_EINVAL (flags), -FI_ENOMEM. */
int shrimp_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		     struct fid_poll **pollset);

#endif /* SHRIMP_POLL_H */
