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

/*
 * Asks for the line at @p to be written soon. The compiler's own prefetch
 * fetches it for reading where the build is for any x86-64.
 */
RNIC_HOT void rnic_prefetch_write(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

#endif /* RNIC_COMPILER_H */
