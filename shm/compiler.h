/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the compiler is told about the path of a small message. No state.
 */
#ifndef RNIC_COMPILER_H
#define RNIC_COMPILER_H

/*
 * For the few functions on that path: not inlined, their arguments go through
 * memory, and reading back as one word what was written as several costs more
 * than the call.
 */
#define RNIC_HOT static inline __attribute__((always_inline))

/* For what such a function seldom calls. */
#define RNIC_COLD __attribute__((noinline, cold))

/* Which way a branch goes on that path. */
#define RNIC_LIKELY(x)	 __builtin_expect(!!(x), 1)
#define RNIC_UNLIKELY(x) __builtin_expect(!!(x), 0) /* likewise */

#endif /* RNIC_COMPILER_H */
