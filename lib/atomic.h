/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Atomics, fi_atomic(3): the calls, and what of them there is.
 */
#ifndef SHRIMP_ATOMIC_H
#define SHRIMP_ATOMIC_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>

enum {
	SHRIMP_ATOMIC_BYTES = 4096, /* of the elements of one call */
};

extern struct fi_ops_atomic shrimp_atomic_ops; /* fi_atomic(3) */

/*
 * fi_query_atomic(3): what op on datatype does here; @flags: 0, or
 * FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC. Any thread. Returns 0, or
 * -FI_EOPNOTSUPP: there is no such operation; -FI_EINVAL: flags.
 */
int shrimp_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
			enum fi_op op, struct fi_atomic_attr *attr,
			uint64_t flags);

#endif /* SHRIMP_ATOMIC_H */
