/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Memory of the device for clients: behind FI_SHRIMP_OPS_MEM.
 */
#ifndef SHRIMP_MEM_H
#define SHRIMP_MEM_H

struct fi_ops_shrimp_mem;

/* The operations; static. */
extern const struct fi_ops_shrimp_mem shrimp_mem_ops;

#endif /* SHRIMP_MEM_H */
