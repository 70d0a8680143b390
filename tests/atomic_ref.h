/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What atomics must do, written down a second time, in the plainest way:
 * a model for the tests. No state, any thread.
 */
#ifndef SHRIMP_TESTS_ATOMIC_REF_H
#define SHRIMP_TESTS_ATOMIC_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>

enum {
	AR_TYPES = FI_UINT128 + 1, /* types in the model */
	AR_OPS = FI_MSWAP + 1,	   /* operations */
	AR_MAX = 32,		   /* bytes of the largest type */
};

/* Families of calls. */
enum ar_kind { AR_BASE, AR_FETCH, AR_COMPARE, AR_KINDS };

/* Bytes of one element. */
size_t ar_size(enum fi_datatype type);

/* True if @op on @type makes sense in calls of @kind. */
bool ar_valid(enum fi_datatype type, enum fi_op op, enum ar_kind kind);

/* A random element at @p: of any bits for integers, small for others. */
void ar_random(enum fi_datatype type, void *p, uint64_t *state);

/* *@t by @op with operand @x and compare @c; all may be unaligned. */
void ar_apply(enum fi_datatype type, enum fi_op op, void *t, const void *x,
	      const void *c);

/* True if both are the same value. */
bool ar_same(enum fi_datatype type, const void *a, const void *b);

#endif /* SHRIMP_TESTS_ATOMIC_REF_H */
