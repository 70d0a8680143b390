/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What ThreadSanitizer cannot see by itself: liburcu is not instrumented, so
 * the publication of an object through its hash table looks like a race.
 */
#ifndef SHRIMP_TSAN_H
#define SHRIMP_TSAN_H

#if defined(__SANITIZE_THREAD__)
void __tsan_acquire(void *addr); /* of the sanitizer's runtime */
void __tsan_release(void *addr); /* likewise */

/* @p is about to be published through liburcu. */
static inline void shrimp_tsan_publish(void *p)
{
	__tsan_release(p);
}

/* @p was found through liburcu. */
static inline void shrimp_tsan_found(void *p)
{
	__tsan_acquire(p);
}
#else
/* @p is about to be published through liburcu. */
static inline void shrimp_tsan_publish(void *p)
{
	(void)p;
}

/* @p was found through liburcu. */
static inline void shrimp_tsan_found(void *p)
{
	(void)p;
}
#endif

#endif /* SHRIMP_TSAN_H */
