/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What objects answer to calls they have no use for: clients call through
 * the operation tables without looking, so no entry is ever NULL.
 */
#ifndef SHRIMP_FID_H
#define SHRIMP_FID_H

#include <rdma/fabric.h>

/* fi_*_bind() of an object that binds nothing: -FI_ENOSYS. */
int shrimp_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);

/* fi_control() of an object without commands: -FI_ENOSYS. */
int shrimp_no_control(struct fid *fid, int command, void *arg);

/* fi_open_ops() of an object without extensions: -FI_ENOSYS. */
int shrimp_no_ops_open(struct fid *fid, const char *name, uint64_t flags,
		       void **ops, void *context);

/* fi_tostr of an object: -FI_ENOSYS. */
int shrimp_no_tostr(const struct fid *fid, char *buf, size_t len);

/* fi_set_ops(): -FI_ENOSYS. */
int shrimp_no_ops_set(struct fid *fid, const char *name, uint64_t flags,
		      void *ops, void *context);

#endif /* SHRIMP_FID_H */
