/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The arithmetic of one-sided atomics, see aop.h for who may do what when,
 * and for the exclusion table.
 *
 * A value is a union of all types, zero beyond its size. Integers of all
 * sizes are computed as unsigned 128-bit ones and cut, which wraps and is
 * never undefined. Floating values are compared as long double, which is
 * exact, but added and multiplied in their own type: through a wider one
 * they would be rounded twice.
 */
#include "shm/aop.h"

#include <assert.h>
#include <complex.h>
#include <string.h>

#include "shm/atomic.h"
#include "shm/compiler.h"

__extension__ typedef __int128 s128;

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "a value is zero-extended by zeroes behind it");

/* What kind of number a type is. */
enum shape {
	NONE,	  /* no type */
	SIGNED,	  /* integer */
	UNSIGNED, /* integer */
	REAL,	  /* floating */
	COMPLEX,  /* two floating */
};

/* One value; bits and byte hold all types' representation. */
union value {
	unsigned char byte[RNIC_AOP_SIZE_MAX];
	rnic_u128 bits;
	float f[2];
	double d[2];
	long double l[2];
	float _Complex fc;
	double _Complex dc;
	long double _Complex lc;
};

_Static_assert(sizeof(union value) == RNIC_AOP_SIZE_MAX, "no type is larger");

/* How two values compare; one bit each, for sets of them. */
enum relation {
	LESS = 1,
	EQUAL = 2,
	GREATER = 4,
	UNORDERED = 8, /* a NaN, or complex and not equal */
};

struct type_info {
	uint8_t size;  /* bytes */
	uint8_t shape; /* enum shape */
};

static const struct type_info types[RNIC_AOP_TYPES] = {
	[RNIC_AOP_INT8] = { 1, SIGNED },
	[RNIC_AOP_UINT8] = { 1, UNSIGNED },
	[RNIC_AOP_INT16] = { 2, SIGNED },
	[RNIC_AOP_UINT16] = { 2, UNSIGNED },
	[RNIC_AOP_INT32] = { 4, SIGNED },
	[RNIC_AOP_UINT32] = { 4, UNSIGNED },
	[RNIC_AOP_INT64] = { 8, SIGNED },
	[RNIC_AOP_UINT64] = { 8, UNSIGNED },
	[RNIC_AOP_FLOAT] = { sizeof(float), REAL },
	[RNIC_AOP_DOUBLE] = { sizeof(double), REAL },
	[RNIC_AOP_FLOAT_COMPLEX] = { 2 * sizeof(float), COMPLEX },
	[RNIC_AOP_DOUBLE_COMPLEX] = { 2 * sizeof(double), COMPLEX },
	[RNIC_AOP_LONG_DOUBLE] = { sizeof(long double), REAL },
	[RNIC_AOP_LONG_DOUBLE_COMPLEX] = { 2 * sizeof(long double), COMPLEX },
	[RNIC_AOP_INT128] = { 16, SIGNED },
	[RNIC_AOP_UINT128] = { 16, UNSIGNED },
};

/*
 * The relations under which an operation takes its operand: of operand to
 * target (MIN, MAX) or of compare to target. Others take it never.
 */
static const uint8_t takes[RNIC_AOP_OPS] = {
	[RNIC_AOP_MIN] = LESS,
	[RNIC_AOP_MAX] = GREATER,
	[RNIC_AOP_CSWAP] = EQUAL,
	[RNIC_AOP_CSWAP_NE] = LESS | GREATER | UNORDERED,
	[RNIC_AOP_CSWAP_LE] = LESS | EQUAL,
	[RNIC_AOP_CSWAP_LT] = LESS,
	[RNIC_AOP_CSWAP_GE] = GREATER | EQUAL,
	[RNIC_AOP_CSWAP_GT] = GREATER,
};

/* ---- what there is ---- */

static enum shape shape_of(enum rnic_aop_type type)
{
	if ((unsigned int)type >= RNIC_AOP_TYPES)
		return NONE;
	return (enum shape)types[type].shape;
}

static bool is_integer(enum rnic_aop_type type)
{
	enum shape shape = shape_of(type);

	return shape == SIGNED || shape == UNSIGNED;
}

static bool is_compare(enum rnic_aop_op op)
{
	return op >= RNIC_AOP_CSWAP && op <= RNIC_AOP_MSWAP;
}

static bool is_bitwise(enum rnic_aop_op op)
{
	return op == RNIC_AOP_BOR || op == RNIC_AOP_BAND ||
	       op == RNIC_AOP_BXOR || op == RNIC_AOP_MSWAP;
}

static bool needs_order(enum rnic_aop_op op)
{
	return op == RNIC_AOP_MIN || op == RNIC_AOP_MAX ||
	       (op >= RNIC_AOP_CSWAP_LE && op <= RNIC_AOP_CSWAP_GT);
}

size_t rnic_aop_size(enum rnic_aop_type type)
{
	return shape_of(type) == NONE ? 0 : types[type].size;
}

/* True if @op makes sense for @type. */
static bool fits(enum rnic_aop_type type, enum rnic_aop_op op)
{
	if ((unsigned int)op >= RNIC_AOP_OPS)
		return false;
	switch (shape_of(type)) {
	case SIGNED:
	case UNSIGNED:
		return true;
	case REAL:
		return !is_bitwise(op);
	case COMPLEX:
		return !is_bitwise(op) && !needs_order(op);
	default:
		return false;
	}
}

bool rnic_aop_valid(enum rnic_aop_type type, enum rnic_aop_op op,
		    enum rnic_aop_kind kind)
{
	if (!fits(type, op))
		return false;
	switch (kind) {
	case RNIC_AOP_BASE:
		return !is_compare(op) && op != RNIC_AOP_READ;
	case RNIC_AOP_FETCH:
		return !is_compare(op);
	case RNIC_AOP_COMPARE:
		return is_compare(op);
	default:
		return false;
	}
}

bool rnic_aop_native(uint64_t addr, size_t size)
{
	switch (size) {
	case 1:
	case 2:
	case 4:
	case 8:
		return !(addr & (size - 1));
	case 16:
		return !(addr & 15) && rnic_raw_has128();
	default:
		return false;
	}
}

/* ---- comparing ---- */

/* The integer @v of @size bytes with its sign. */
static s128 with_sign(const union value *v, size_t size)
{
	unsigned int shift = 128 - 8 * (unsigned int)size;

	return (s128)(v->bits << shift) >> shift;
}

/* The floating @v, exactly; an imaginary part of 0 if @type has none. */
static union value widen(enum rnic_aop_type type, const union value *v)
{
	union value w;
	bool both = shape_of(type) == COMPLEX;

	switch (type) {
	case RNIC_AOP_FLOAT:
	case RNIC_AOP_FLOAT_COMPLEX:
		w.l[0] = (long double)v->f[0];
		w.l[1] = both ? (long double)v->f[1] : 0;
		break;
	case RNIC_AOP_DOUBLE:
	case RNIC_AOP_DOUBLE_COMPLEX:
		w.l[0] = (long double)v->d[0];
		w.l[1] = both ? (long double)v->d[1] : 0;
		break;
	default:
		w.l[0] = v->l[0];
		w.l[1] = both ? v->l[1] : 0;
	}
	return w;
}

static enum relation relate_floating(enum rnic_aop_type type,
				     const union value *x, const union value *y)
{
	union value a = widen(type, x);
	union value b = widen(type, y);

	if (a.l[0] == b.l[0] && a.l[1] == b.l[1])
		return EQUAL;
	if (shape_of(type) == COMPLEX)
		return UNORDERED;
	if (a.l[0] < b.l[0])
		return LESS;
	return a.l[0] > b.l[0] ? GREATER : UNORDERED;
}

/* How @x stands to @y. */
static enum relation relate(enum rnic_aop_type type, const union value *x,
			    const union value *y)
{
	size_t size = types[type].size;
	bool less;

	if (!is_integer(type))
		return relate_floating(type, x, y);
	if (x->bits == y->bits)
		return EQUAL;
	if (shape_of(type) == SIGNED)
		less = with_sign(x, size) < with_sign(y, size);
	else
		less = x->bits < y->bits;
	return less ? LESS : GREATER;
}

/* ---- computing ---- */

/* True if @v counts as true: not 0. A NaN does. */
static bool truth(enum rnic_aop_type type, const union value *v)
{
	union value w;

	if (is_integer(type))
		return v->bits != 0;
	w = widen(type, v);
	return w.l[0] != 0 || w.l[1] != 0;
}

/* 1 or 0 as a value of @type. */
static union value from_truth(enum rnic_aop_type type, bool truth)
{
	union value v = { .byte = { 0 } };

	switch (type) {
	case RNIC_AOP_FLOAT:
	case RNIC_AOP_FLOAT_COMPLEX:
		v.f[0] = truth ? 1 : 0;
		break;
	case RNIC_AOP_DOUBLE:
	case RNIC_AOP_DOUBLE_COMPLEX:
		v.d[0] = truth ? 1 : 0;
		break;
	case RNIC_AOP_LONG_DOUBLE:
	case RNIC_AOP_LONG_DOUBLE_COMPLEX:
		v.l[0] = truth ? 1 : 0;
		break;
	default:
		v.bits = truth ? 1 : 0;
	}
	return v;
}

static union value logical(const struct rnic_aop *a, const union value *t,
			   const union value *x)
{
	bool p = truth(a->type, t);
	bool q = truth(a->type, x);

	if (a->op == RNIC_AOP_LOR)
		return from_truth(a->type, p || q);
	if (a->op == RNIC_AOP_LAND)
		return from_truth(a->type, p && q);
	return from_truth(a->type, p != q);
}

static union value sum(enum rnic_aop_type type, const union value *t,
		       const union value *x)
{
	union value v = { .byte = { 0 } };

	switch (type) {
	case RNIC_AOP_FLOAT:
		v.f[0] = t->f[0] + x->f[0];
		break;
	case RNIC_AOP_DOUBLE:
		v.d[0] = t->d[0] + x->d[0];
		break;
	case RNIC_AOP_LONG_DOUBLE:
		v.l[0] = t->l[0] + x->l[0];
		break;
	case RNIC_AOP_FLOAT_COMPLEX:
		v.fc = t->fc + x->fc;
		break;
	case RNIC_AOP_DOUBLE_COMPLEX:
		v.dc = t->dc + x->dc;
		break;
	case RNIC_AOP_LONG_DOUBLE_COMPLEX:
		v.lc = t->lc + x->lc;
		break;
	default:
		v.bits = t->bits + x->bits;
	}
	return v;
}

static union value product(enum rnic_aop_type type, const union value *t,
			   const union value *x)
{
	union value v = { .byte = { 0 } };

	switch (type) {
	case RNIC_AOP_FLOAT:
		v.f[0] = t->f[0] * x->f[0];
		break;
	case RNIC_AOP_DOUBLE:
		v.d[0] = t->d[0] * x->d[0];
		break;
	case RNIC_AOP_LONG_DOUBLE:
		v.l[0] = t->l[0] * x->l[0];
		break;
	case RNIC_AOP_FLOAT_COMPLEX:
		v.fc = t->fc * x->fc;
		break;
	case RNIC_AOP_DOUBLE_COMPLEX:
		v.dc = t->dc * x->dc;
		break;
	case RNIC_AOP_LONG_DOUBLE_COMPLEX:
		v.lc = t->lc * x->lc;
		break;
	default:
		v.bits = t->bits * x->bits;
	}
	return v;
}

/* Zeroes @v beyond @size bytes. */
static void cut(union value *v, size_t size)
{
	memset(v->byte + size, 0, sizeof(v->byte) - size);
}

/* An operation that always writes: its outcome for target @t. */
static union value outcome(const struct rnic_aop *a, const union value *t,
			   const union value *x, const union value *c)
{
	union value v = { .byte = { 0 } };

	switch (a->op) {
	case RNIC_AOP_SUM:
		return sum(a->type, t, x);
	case RNIC_AOP_PROD:
		return product(a->type, t, x);
	case RNIC_AOP_BOR:
		v.bits = t->bits | x->bits;
		return v;
	case RNIC_AOP_BAND:
		v.bits = t->bits & x->bits;
		return v;
	case RNIC_AOP_BXOR:
		v.bits = t->bits ^ x->bits;
		return v;
	case RNIC_AOP_MSWAP:
		v.bits = (x->bits & c->bits) | (t->bits & ~c->bits);
		return v;
	case RNIC_AOP_WRITE:
		return *x;
	default:
		return logical(a, t, x);
	}
}

/*
 * What @a makes of a target that holds @t, with operand @x and compare @c,
 * to @v. Returns false, and leaves @v, if it writes nothing.
 */
static bool compute(const struct rnic_aop *a, const union value *t,
		    const union value *x, const union value *c, union value *v)
{
	unsigned int set = takes[a->op];

	if (a->op == RNIC_AOP_READ)
		return false;
	if (!set) {
		*v = outcome(a, t, x, c);
		cut(v, types[a->type].size);
		return true;
	}
	if (!(relate(a->type, is_compare(a->op) ? c : x, t) & set))
		return false;
	*v = *x;
	return true;
}

/* ---- executing ---- */

/* The value before, of a native target. Sequentially consistent. */
static rnic_u128 word_load(const void *p, size_t size)
{
	if (size == 16)
		return rnic_raw_load128_seqcst(p);
	/* in the order of the owner's own atomics, see aop.h */
	return rnic_raw_load_seqcst(p, size);
}

/* As rnic_raw_cas_seqcst(), 16 bytes included. */
static rnic_u128 word_cas(void *p, size_t size, rnic_u128 old, rnic_u128 x)
{
	if (size == 16)
		return rnic_raw_cas128_seqcst(p, old, x);
	/* the same */
	return rnic_raw_cas_seqcst(p, size, (uint64_t)old, (uint64_t)x);
}

/*
 * Native target. Values are compared by their bits here, so that the loop
 * ends also for a NaN.
 */
static void apply_native(const struct rnic_aop *a, const union value *x,
			 const union value *c, union value *t)
{
	size_t size = types[a->type].size;
	union value v;
	rnic_u128 seen;

	if (a->op == RNIC_AOP_SUM && is_integer(a->type) && size <= 8) {
		/* the same */
		t->bits =
			rnic_raw_add_seqcst(a->target, size, (uint64_t)x->bits);
		return;
	}
	t->bits = word_load(a->target, size);
	while (compute(a, t, x, c, &v)) {
		seen = word_cas(a->target, size, t->bits, v.bits);
		if (RNIC_LIKELY(seen == t->bits))
			return;
		t->bits = seen;
	}
}

/* Any other target: nobody else changes it meanwhile. */
static void apply_plain(const struct rnic_aop *a, const union value *x,
			const union value *c, union value *t)
{
	size_t size = types[a->type].size;
	union value v;

	memcpy(t->byte, a->target, size);
	if (compute(a, t, x, c, &v))
		memcpy(a->target, v.byte, size);
}

void rnic_aop_apply(const struct rnic_aop *a)
{
	union value t = { .byte = { 0 } };
	union value x = { .byte = { 0 } };
	union value c = { .byte = { 0 } };
	size_t size = rnic_aop_size(a->type);

	assert(fits(a->type, a->op));
	if (a->op != RNIC_AOP_READ)
		memcpy(x.byte, a->operand, size);
	if (is_compare(a->op))
		memcpy(c.byte, a->compare, size);
	if (rnic_aop_native((uintptr_t)a->target, size))
		apply_native(a, &x, &c, &t);
	else
		apply_plain(a, &x, &c, &t);
	if (a->result)
		memcpy(a->result, t.byte, size);
}
