/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The arithmetic of one-sided atomics: one element of one type, one operation.
 *
 * Who executes is a function of (address mod 16, size) alone, so that all
 * who ever touch a word agree. A native word, see rnic_aop_native(), is
 * changed by a CPU instruction, or by a loop around one, by whoever reaches
 * it: each such change is atomic against the others and against the owner's
 * own C11 atomics. Any other is changed by plain reads and writes, by one
 * executor alone: the agent of the owner.
 *
 *	              | apply, native | apply, plain  | CPU atomic
 *	apply, native | lock free     | never: one    | lock free
 *	apply, plain  | word is one   | one executor  | not atomic
 *
 * (Elements of different sizes that overlap are not atomic to each other.)
 *
 * Values of the enums are those of libfabric, which the layer above asserts.
 * No state, no lock; nothing here blocks. Little-endian CPUs only.
 */
#ifndef RNIC_AOP_H
#define RNIC_AOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types of an element, as enum fi_datatype. */
enum rnic_aop_type {
	RNIC_AOP_INT8,
	RNIC_AOP_UINT8,
	RNIC_AOP_INT16,
	RNIC_AOP_UINT16,
	RNIC_AOP_INT32,
	RNIC_AOP_UINT32,
	RNIC_AOP_INT64,
	RNIC_AOP_UINT64,
	RNIC_AOP_FLOAT,
	RNIC_AOP_DOUBLE,
	RNIC_AOP_FLOAT_COMPLEX,
	RNIC_AOP_DOUBLE_COMPLEX,
	RNIC_AOP_LONG_DOUBLE,
	RNIC_AOP_LONG_DOUBLE_COMPLEX,
	RNIC_AOP_INT128,
	RNIC_AOP_UINT128,
	RNIC_AOP_TYPES, /* how many there are */
};

/* Operations, as enum fi_op; t: target, x: operand, c: compare. */
enum rnic_aop_op {
	RNIC_AOP_MIN,	   /* if (x < t) t = x */
	RNIC_AOP_MAX,	   /* if (x > t) t = x */
	RNIC_AOP_SUM,	   /* t = t + x, integers wrap */
	RNIC_AOP_PROD,	   /* t = t * x, integers wrap */
	RNIC_AOP_LOR,	   /* t = t || x: 0 or 1 */
	RNIC_AOP_LAND,	   /* t = t && x: 0 or 1 */
	RNIC_AOP_BOR,	   /* t = t | x */
	RNIC_AOP_BAND,	   /* t = t & x */
	RNIC_AOP_LXOR,	   /* t = !t != !x: 0 or 1 */
	RNIC_AOP_BXOR,	   /* t = t ^ x */
	RNIC_AOP_READ,	   /* nothing */
	RNIC_AOP_WRITE,	   /* t = x */
	RNIC_AOP_CSWAP,	   /* if (c == t) t = x */
	RNIC_AOP_CSWAP_NE, /* if (c != t) t = x */
	RNIC_AOP_CSWAP_LE, /* if (c <= t) t = x */
	RNIC_AOP_CSWAP_LT, /* if (c < t) t = x */
	RNIC_AOP_CSWAP_GE, /* if (c >= t) t = x */
	RNIC_AOP_CSWAP_GT, /* if (c > t) t = x */
	RNIC_AOP_MSWAP,	   /* t = (x & c) | (t & ~c) */
	RNIC_AOP_OPS,	   /* how many there are */
};

/* Families of calls. */
enum rnic_aop_kind {
	RNIC_AOP_BASE,	  /* operand only */
	RNIC_AOP_FETCH,	  /* operand, and the value before is returned */
	RNIC_AOP_COMPARE, /* likewise, and a value to compare with */
};

enum {
	RNIC_AOP_SIZE_MAX = 32, /* bytes of the largest element */
};

/*
 * One operation on one element. The caller fills all and owns all that is
 * pointed to; rnic_aop_apply() keeps no pointer. Only target is ever
 * required to be aligned, and only to be native.
 */
struct rnic_aop {
	enum rnic_aop_type type; /* of target, operand, compare, result */
	enum rnic_aop_op op;	 /* what to do */
	void *target;		 /* read, and written unless RNIC_AOP_READ */
	const void *operand;	 /* not looked at by RNIC_AOP_READ */
	const void *compare;	 /* looked at by CSWAP* and MSWAP only */
	void *result;		 /* gets the value before; or NULL */
};

/*
 * Bytes of one element of @type, or 0 if there is no such type. Any thread,
 * no lock.
 */
size_t rnic_aop_size(enum rnic_aop_type type);

/*
 * True if @op on @type is one of the calls of @kind: no bitwise operation on
 * floating types, none that needs an order on complex ones; READ fetches,
 * CSWAP* and MSWAP compare, the others are base or fetch. Values outside of
 * the enums are not valid. Any thread, no lock.
 */
bool rnic_aop_valid(enum rnic_aop_type type, enum rnic_aop_op op,
		    enum rnic_aop_kind kind);

/*
 * True if an element of @size bytes at @addr is native: 1, 2, 4 or 8 bytes,
 * naturally aligned, or 16 bytes at a multiple of 16 where the CPU has atomic
 * operations for them. The same for all processes of a host, and, as mappings
 * begin on pages, for all addresses that one element has. Any thread, no lock.
 */
bool rnic_aop_native(uint64_t addr, size_t size);

/*
 * Does @a, which must be valid for some kind (asserted), and stores the value
 * before to its result, if it has one.
 *
 * Native target: any thread or process, no lock; atomic, and sequentially
 * consistent as C11's seq_cst operations are, the application's included. It
 * never waits for another, but retries if another changed the word meanwhile.
 * A READ, and a condition that does not hold, write nothing: memory mapped
 * for reading will do. Other target: the caller is the only executor (the
 * target's owner's agent); no order is given.
 *
 * Floating values are compared as C does: -0 equals 0, a NaN equals nothing
 * and has no order; it is never taken by MIN or MAX nor replaced by them.
 * Operand, compare and result may be unaligned and overlap each other, not
 * the target. Cannot fail.
 */
void rnic_aop_apply(const struct rnic_aop *a);

#endif /* RNIC_AOP_H */
