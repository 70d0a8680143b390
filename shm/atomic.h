/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Atomic words, the order in the name of each operation.
 *
 * Every word that two threads or two processes touch has one of the types
 * below and is reached only through these functions; C11's own calls, whose
 * default order is easily forgotten, stay inside this file. A word in a
 * segment is naturally aligned and lock free (asserted), so the operations
 * work between processes.
 *
 * The call site says what a release publishes and which acquire it pairs
 * with, by label.
 */
#ifndef RNIC_ATOMIC_H
#define RNIC_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/compiler.h"

typedef struct {
	_Atomic uint32_t v; /* reached through rnic_*32_* only */
} rnic_a32;

typedef struct {
	_Atomic uint64_t v; /* reached through rnic_*64_* only */
} rnic_a64;

typedef struct {
	_Atomic(void *) v; /* in-process pointer, rnic_ptr_* only */
} rnic_aptr;

_Static_assert(sizeof(rnic_a32) == 4, "plain 32-bit word");
_Static_assert(sizeof(rnic_a64) == 8, "plain 64-bit word");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "32-bit words must be lock free");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "64-bit words must be lock free");

/* Loads @a; orders nothing. The caller says why that is enough. */
static inline uint32_t rnic_load32_relaxed(const rnic_a32 *a)
{
	return atomic_load_explicit(&a->v, memory_order_relaxed);
}

/* Loads @a; what its release published is visible after it. */
static inline uint32_t rnic_load32_acquire(const rnic_a32 *a)
{
	return atomic_load_explicit(&a->v, memory_order_acquire);
}

/* Stores @x to @a; orders nothing. */
static inline void rnic_store32_relaxed(rnic_a32 *a, uint32_t x)
{
	atomic_store_explicit(&a->v, x, memory_order_relaxed);
}

/* Stores @x to @a after everything before it. */
static inline void rnic_store32_release(rnic_a32 *a, uint32_t x)
{
	atomic_store_explicit(&a->v, x, memory_order_release);
}

/* Exchanges @a for @x with acquire and release order; returns the old value. */
static inline uint32_t rnic_xchg32_acqrel(rnic_a32 *a, uint32_t x)
{
	return atomic_exchange_explicit(&a->v, x, memory_order_acq_rel);
}

/* Takes @a from 0 to 1 with acquire order; true if this caller did it. */
static inline bool rnic_trylock32_acquire(rnic_a32 *a)
{
	uint32_t zero = 0;

	/* a failure orders nothing: the caller tries again */
	return atomic_compare_exchange_strong_explicit(
		&a->v, &zero, 1, memory_order_acquire, memory_order_relaxed);
}

/* Adds @x to @a, unordered; returns the value before. */
static inline uint32_t rnic_add32_relaxed(rnic_a32 *a, uint32_t x)
{
	return atomic_fetch_add_explicit(&a->v, x, memory_order_relaxed);
}

/* Adds @x to @a with acquire and release order; returns the value before. */
static inline uint32_t rnic_add32_acqrel(rnic_a32 *a, uint32_t x)
{
	return atomic_fetch_add_explicit(&a->v, x, memory_order_acq_rel);
}

/* Subtracts @x with acquire and release order; returns the value before. */
static inline uint32_t rnic_sub32_acqrel(rnic_a32 *a, uint32_t x)
{
	return atomic_fetch_sub_explicit(&a->v, x, memory_order_acq_rel);
}

/* Loads @a; orders nothing. */
static inline uint64_t rnic_load64_relaxed(const rnic_a64 *a)
{
	return atomic_load_explicit(&a->v, memory_order_relaxed);
}

/* Loads @a; what its release published is visible after it. */
static inline uint64_t rnic_load64_acquire(const rnic_a64 *a)
{
	return atomic_load_explicit(&a->v, memory_order_acquire);
}

/* Stores @x to @a; orders nothing. */
static inline void rnic_store64_relaxed(rnic_a64 *a, uint64_t x)
{
	atomic_store_explicit(&a->v, x, memory_order_relaxed);
}

/* Stores @x to @a after everything before it. */
static inline void rnic_store64_release(rnic_a64 *a, uint64_t x)
{
	atomic_store_explicit(&a->v, x, memory_order_release);
}

/* Sets @bits in @a; a full barrier. Returns the value before. */
static inline uint64_t rnic_or64_seqcst(rnic_a64 *a, uint64_t bits)
{
	return atomic_fetch_or_explicit(&a->v, bits, memory_order_seq_cst);
}

/* Exchanges @a for @x; a full barrier. Returns the value before. */
static inline uint64_t rnic_xchg64_seqcst(rnic_a64 *a, uint64_t x)
{
	return atomic_exchange_explicit(&a->v, x, memory_order_seq_cst);
}

/* Adds @x to @a, unordered; returns the value before. */
static inline uint64_t rnic_add64_relaxed(rnic_a64 *a, uint64_t x)
{
	return atomic_fetch_add_explicit(&a->v, x, memory_order_relaxed);
}

/* Adds @x to @a after everything before it; returns the value before. */
static inline uint64_t rnic_add64_release(rnic_a64 *a, uint64_t x)
{
	return atomic_fetch_add_explicit(&a->v, x, memory_order_release);
}

/* Subtracts @x with acquire and release order; returns the value before. */
static inline uint64_t rnic_sub64_acqrel(rnic_a64 *a, uint64_t x)
{
	return atomic_fetch_sub_explicit(&a->v, x, memory_order_acq_rel);
}

/*
 * Replaces @a by @x if it holds @old; a full barrier when it does.
 * Returns true on success.
 */
static inline bool rnic_cas64_seqcst(rnic_a64 *a, uint64_t old, uint64_t x)
{
	return atomic_compare_exchange_strong_explicit(
		&a->v, &old, x, memory_order_seq_cst, memory_order_relaxed);
}

/*
 * Adds @x to a counter that only one thread at a time writes and that others
 * read as statistics: a load and a store, no locked instruction.
 */
static inline void rnic_count64(rnic_a64 *a, uint64_t x)
{
	rnic_store64_relaxed(a, rnic_load64_relaxed(a) + x);
}

/* Loads the pointer; what its release published is visible after it. */
static inline void *rnic_ptr_load_acquire(const rnic_aptr *a)
{
	return atomic_load_explicit(&a->v, memory_order_acquire);
}

/* Loads the pointer; orders nothing (the caller holds the writers' lock). */
static inline void *rnic_ptr_load_relaxed(const rnic_aptr *a)
{
	return atomic_load_explicit(&a->v, memory_order_relaxed);
}

/* Exchanges @a for @p with acquire and release order; returns the old one. */
static inline void *rnic_ptr_xchg_acqrel(rnic_aptr *a, void *p)
{
	return atomic_exchange_explicit(&a->v, p, memory_order_acq_rel);
}

/*
 * Replaces @a by @p, after everything before it, if it holds @old. Returns
 * true on success.
 */
static inline bool rnic_ptr_cas_release(rnic_aptr *a, void *old, void *p)
{
	/* a failure orders nothing: the caller tries again */
	return atomic_compare_exchange_strong_explicit(
		&a->v, &old, p, memory_order_release, memory_order_relaxed);
}

/* Publishes the pointer after everything before it. */
static inline void rnic_ptr_store_release(rnic_aptr *a, void *p)
{
	atomic_store_explicit(&a->v, p, memory_order_release);
}

/*
 * Words of the application, which have no atomic type: 1, 2, 4 or 8 bytes,
 * naturally aligned, in memory of any type (hence may_alias). The value is
 * in the low bits of a uint64_t. Any thread or process; nothing blocks. All
 * are sequentially consistent: one order of these, of the 128-bit ones below
 * and of the application's own seq_cst operations, and each that writes is
 * a full barrier.
 */
typedef uint8_t __attribute__((may_alias)) rnic_raw8;
typedef uint16_t __attribute__((may_alias)) rnic_raw16;
typedef uint32_t __attribute__((may_alias)) rnic_raw32;
typedef uint64_t __attribute__((may_alias)) rnic_raw64;

/*
 * Loads the @size bytes at @p, which may be mapped for reading only. In the
 * one order of all operations here: what an application publishes by a
 * release, or by one of these, is visible after it.
 */
static inline uint64_t rnic_raw_load_seqcst(const void *p, size_t size)
{
	/* partners: those below, and who writes in the application */
	switch (size) {
	case 1:
		return __atomic_load_n((const rnic_raw8 *)p, __ATOMIC_SEQ_CST);
	case 2: /* the same order, another width */
		return __atomic_load_n((const rnic_raw16 *)p, __ATOMIC_SEQ_CST);
	case 4:
		return __atomic_load_n((const rnic_raw32 *)p, __ATOMIC_SEQ_CST);
	default: /* 8 bytes, the same order */
		return __atomic_load_n((const rnic_raw64 *)p, __ATOMIC_SEQ_CST);
	}
}

/*
 * Adds @x to the @size bytes at @p, wrapping; returns the value before. A full
 * barrier: an RMA before it is seen before it, one behind it is not; that is
 * what clients expect of an atomic that they use as a flag.
 */
static inline uint64_t rnic_raw_add_seqcst(void *p, size_t size, uint64_t x)
{
	/* partners: all of this group, and the application */
	switch (size) {
	case 1:
		return __atomic_fetch_add((rnic_raw8 *)p, (uint8_t)x,
					  __ATOMIC_SEQ_CST);
	case 2: /* the same order, another width */
		return __atomic_fetch_add((rnic_raw16 *)p, (uint16_t)x,
					  __ATOMIC_SEQ_CST);
	case 4:
		return __atomic_fetch_add((rnic_raw32 *)p, (uint32_t)x,
					  __ATOMIC_SEQ_CST);
	default: /* 8 bytes, the same order */
		return __atomic_fetch_add((rnic_raw64 *)p, x, __ATOMIC_SEQ_CST);
	}
}

/*
 * Replaces the @size bytes at @p by @x if they hold @old. Returns the value
 * before: @old if and only if it did. A full barrier (__sync_, which has no
 * other order), also when it fails: on x86 the instruction locks either way.
 * The loops of shm/aop.c retry with what it returned.
 */
static inline uint64_t rnic_raw_cas_seqcst(void *p, size_t size, uint64_t old,
					   uint64_t x)
{
	/* partners: likewise */
	switch (size) {
	case 1:
		return __sync_val_compare_and_swap((rnic_raw8 *)p, (uint8_t)old,
						   (uint8_t)x);
	case 2: /* the same order, another width */
		return __sync_val_compare_and_swap((rnic_raw16 *)p,
						   (uint16_t)old, (uint16_t)x);
	case 4:
		return __sync_val_compare_and_swap((rnic_raw32 *)p,
						   (uint32_t)old, (uint32_t)x);
	default: /* 8 bytes, the same order */
		return __sync_val_compare_and_swap((rnic_raw64 *)p, old, x);
	}
}

/*
 * Words of the application of 16 bytes, at a multiple of 16. Compilers call
 * libatomic for them, and ThreadSanitizer its runtime; either may take a lock
 * that another process does not see. So they are instructions here, which
 * ThreadSanitizer does not see: it learns no order from them. A CPU with AVX
 * loads 16 aligned bytes at once (both vendors say so), and every such CPU has
 * the compare-and-swap. Without, or on other architectures, rnic_raw_has128()
 * is false and the rest must not be called. The answer is the same in all
 * processes of a host.
 */
__extension__ typedef unsigned __int128 rnic_u128;
typedef rnic_u128 __attribute__((may_alias)) rnic_raw128;

#if defined(__x86_64__)

/* True if 16-byte words have atomic operations here. */
static inline bool rnic_raw_has128(void)
{
	return __builtin_cpu_supports("avx");
}

/*
 * As rnic_raw_cas_seqcst(), of 16 bytes; @p must be writable, since the
 * instruction writes even if it fails. Order: the lock prefix makes it a full
 * barrier for the CPU, "memory" for the compiler.
 */
static inline rnic_u128 rnic_raw_cas128_seqcst(void *p, rnic_u128 old,
					       rnic_u128 x)
{
	uint64_t lo = (uint64_t)old;
	uint64_t hi = (uint64_t)(old >> 64);

	__asm__ __volatile__("lock cmpxchg16b %0"
			     : "+m"(*(rnic_raw128 *)p), "+a"(lo), "+d"(hi)
			     : "b"((uint64_t)x), "c"((uint64_t)(x >> 64))
			     : "memory", "cc");
	return (rnic_u128)hi << 64 | lo;
}

/*
 * As rnic_raw_load_seqcst(), of 16 bytes; read-only memory will do. Order: a
 * plain load is sequentially consistent on x86, where all writers are locked
 * instructions.
 */
static inline rnic_u128 rnic_raw_load128_seqcst(const void *p)
{
	typedef long long v2 __attribute__((vector_size(16)));
	union {
		v2 v;
		rnic_u128 x;
	} u;

	/* the CPU orders loads; "memory" keeps the compiler from it, too */
	__asm__ __volatile__("movdqa %1, %0"
			     : "=x"(u.v)
			     : "m"(*(const rnic_raw128 *)p)
			     : "memory");
	return u.x;
}

#else

/* True if 16-byte words have atomic operations here. */
static inline bool rnic_raw_has128(void)
{
	return false;
}

/* Never called. */
static inline rnic_u128 rnic_raw_cas128_seqcst(void *p, rnic_u128 old,
					       rnic_u128 x)
{
	(void)p;
	(void)x;
	return old;
}

/* Never called. */
static inline rnic_u128 rnic_raw_load128_seqcst(const void *p)
{
	(void)p;
	return 0;
}

#endif

/* Keeps the compiler, not the CPU, from moving accesses across it. */
static inline void rnic_compiler_barrier(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

/* Full fence: every access before it is before every access after it. */
#if defined(__SANITIZE_THREAD__)
static inline void rnic_fence_full(void)
{
	/* ThreadSanitizer knows no fences, but it knows this */
	static _Atomic int place;

	atomic_fetch_add_explicit(&place, 1, memory_order_seq_cst);
}
#else
static inline void rnic_fence_full(void)
{
	/* on x86 a locked instruction */
	atomic_thread_fence(memory_order_seq_cst);
}
#endif

/*
 * Orders a full-barrier read-modify-write before the loads after this. C11
 * alone lets a relaxed load pass it; on x86 its locked instruction does not.
 */
static inline void rnic_fence_after_rmw(void)
{
#if defined(__x86_64__) || defined(__i386__)
	rnic_compiler_barrier();
#else
	rnic_fence_full();
#endif
}

/* Tells the CPU that this is a spin loop. */
static inline void rnic_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

#endif /* RNIC_ATOMIC_H */
