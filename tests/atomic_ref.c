/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A model of atomics. A function per type, made by macros: what differs is
 * the type alone.
 */
#include "atomic_ref.h"

#include <complex.h>
#include <string.h>

#include "harness.h"

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* What a type's function is given; all aligned. */
struct args {
	enum fi_op op; /* what to do */
	void *t;       /* target */
	void *x;       /* operand */
	void *c;       /* compare */
};

/* What all types can. Integers wrap: computed in the unsigned type @W. */
#define COMMON(T, W)                                                           \
	T *t = a->t, x = *(T *)a->x, c = *(T *)a->c;                           \
	switch (a->op) {                                                       \
	case FI_SUM:                                                           \
		*t = (T)((W)*t + (W)x);                                        \
		break;                                                         \
	case FI_PROD:                                                          \
		*t = (T)((W)*t * (W)x);                                        \
		break;                                                         \
	case FI_LOR:                                                           \
		*t = (T)(*t != 0 || x != 0);                                   \
		break;                                                         \
	case FI_LAND:                                                          \
		*t = (T)(*t != 0 && x != 0);                                   \
		break;                                                         \
	case FI_LXOR:                                                          \
		*t = (T)((*t != 0) != (x != 0));                               \
		break;                                                         \
	case FI_ATOMIC_WRITE:                                                  \
		*t = x;                                                        \
		break;                                                         \
	case FI_CSWAP:                                                         \
		*t = c == *t ? x : *t;                                         \
		break;                                                         \
	case FI_CSWAP_NE:                                                      \
		*t = c != *t ? x : *t;                                         \
		break;                                                         \
	default:                                                               \
		break;                                                         \
	}

/* What types with an order can. */
#define ORDER                                                                  \
	switch (a->op) {                                                       \
	case FI_MIN:                                                           \
		*t = x < *t ? x : *t;                                          \
		break;                                                         \
	case FI_MAX:                                                           \
		*t = x > *t ? x : *t;                                          \
		break;                                                         \
	case FI_CSWAP_LE:                                                      \
		*t = c <= *t ? x : *t;                                         \
		break;                                                         \
	case FI_CSWAP_LT:                                                      \
		*t = c < *t ? x : *t;                                          \
		break;                                                         \
	case FI_CSWAP_GE:                                                      \
		*t = c >= *t ? x : *t;                                         \
		break;                                                         \
	case FI_CSWAP_GT:                                                      \
		*t = c > *t ? x : *t;                                          \
		break;                                                         \
	default:                                                               \
		break;                                                         \
	}

/* What integers can. */
#define BITS(T)                                                                \
	switch (a->op) {                                                       \
	case FI_BOR:                                                           \
		*t = (T)(*t | x);                                              \
		break;                                                         \
	case FI_BAND:                                                          \
		*t = (T)(*t & x);                                              \
		break;                                                         \
	case FI_BXOR:                                                          \
		*t = (T)(*t ^ x);                                              \
		break;                                                         \
	case FI_MSWAP:                                                         \
		*t = (T)((x & c) | (*t & ~c));                                 \
		break;                                                         \
	default:                                                               \
		break;                                                         \
	}

#define INTEGER(T, W)                                                          \
	static void do_##T(struct args *a)                                     \
	{                                                                      \
		COMMON(T, W)                                                   \
		ORDER                                                          \
		BITS(T)                                                        \
	}
#define REAL(T, name)                                                          \
	static void do_##name(struct args *a)                                  \
	{                                                                      \
		COMMON(T, T)                                                   \
		ORDER                                                          \
	}
#define COMPLEX(T, name)                                                       \
	static void do_##name(struct args *a)                                  \
	{                                                                      \
		COMMON(T, T)                                                   \
	}
#define SAME(T, name)                                                          \
	static bool same_##name(const void *a, const void *b)                  \
	{                                                                      \
		return *(const T *)a == *(const T *)b;                         \
	}
#define SMALL(T, name)                                                         \
	static void small_##name(void *p, uint64_t r)                          \
	{                                                                      \
		*(T *)p = (T)(int)(r % 7) - 3;                                 \
	}

INTEGER(int8_t, uint64_t)
INTEGER(uint8_t, uint64_t)
INTEGER(int16_t, uint64_t)
INTEGER(uint16_t, uint64_t)
INTEGER(int32_t, uint64_t)
INTEGER(uint32_t, uint64_t)
INTEGER(int64_t, uint64_t)
INTEGER(uint64_t, uint64_t)
INTEGER(int128, uint128)
INTEGER(uint128, uint128)
REAL(float, float)
REAL(double, double)
REAL(long double, long_double)
COMPLEX(float complex, float_complex)
COMPLEX(double complex, double_complex)
COMPLEX(long double complex, long_double_complex)
SAME(float, float)
SAME(double, double)
SAME(long double, long_double)
SAME(float complex, float_complex)
SAME(double complex, double_complex)
SAME(long double complex, long_double_complex)
SMALL(float, float)
SMALL(double, double)
SMALL(long double, long_double)
SMALL(float complex, float_complex)
SMALL(double complex, double_complex)
SMALL(long double complex, long_double_complex)

/* All about a type; without @same it is an integer. */
struct type {
	size_t size;				    /* bytes */
	void (*apply)(struct args *a);		    /* an operation */
	bool (*same)(const void *a, const void *b); /* equal */
	void (*small)(void *p, uint64_t r);	    /* a small value */
	bool order;				    /* has one */
};

static const struct type types[AR_TYPES] = {
	[FI_INT8] = { 1, do_int8_t, NULL, NULL, true },
	[FI_UINT8] = { 1, do_uint8_t, NULL, NULL, true },
	[FI_INT16] = { 2, do_int16_t, NULL, NULL, true },
	[FI_UINT16] = { 2, do_uint16_t, NULL, NULL, true },
	[FI_INT32] = { 4, do_int32_t, NULL, NULL, true },
	[FI_UINT32] = { 4, do_uint32_t, NULL, NULL, true },
	[FI_INT64] = { 8, do_int64_t, NULL, NULL, true },
	[FI_UINT64] = { 8, do_uint64_t, NULL, NULL, true },
	[FI_INT128] = { 16, do_int128, NULL, NULL, true },
	[FI_UINT128] = { 16, do_uint128, NULL, NULL, true },
	[FI_FLOAT] = { 4, do_float, same_float, small_float, true },
	[FI_DOUBLE] = { 8, do_double, same_double, small_double, true },
	[FI_FLOAT_COMPLEX] = { 8, do_float_complex, same_float_complex,
			       small_float_complex, false },
	[FI_DOUBLE_COMPLEX] = { 16, do_double_complex, same_double_complex,
				small_double_complex, false },
	[FI_LONG_DOUBLE] = { sizeof(long double), do_long_double,
			     same_long_double, small_long_double, true },
	[FI_LONG_DOUBLE_COMPLEX] = { 2 * sizeof(long double),
				     do_long_double_complex,
				     same_long_double_complex,
				     small_long_double_complex, false },
};

size_t ar_size(enum fi_datatype type)
{
	return types[type].size;
}

bool ar_valid(enum fi_datatype type, enum fi_op op, enum ar_kind kind)
{
	const struct type *t = &types[type];
	bool bits = op == FI_BOR || op == FI_BAND || op == FI_BXOR ||
		    op == FI_MSWAP;
	bool order = op == FI_MIN || op == FI_MAX || op == FI_CSWAP_LE ||
		     op == FI_CSWAP_LT || op == FI_CSWAP_GE ||
		     op == FI_CSWAP_GT;

	if ((bits && t->same) || (order && !t->order))
		return false;
	if (op >= FI_CSWAP)
		return kind == AR_COMPARE;
	if (op == FI_ATOMIC_READ)
		return kind == AR_FETCH;
	return kind != AR_COMPARE;
}

void ar_random(enum fi_datatype type, void *p, uint64_t *state)
{
	const struct type *t = &types[type];
	_Alignas(16) char value[AR_MAX] = { 0 };
	uint64_t r = th_random(state);

	/* few values, so that some are equal */
	if (t->small)
		t->small(value, r >> 8);
	else if (r & 1)
		value[0] = (char)(r >> 8 & 3);
	else
		for (size_t i = 0; i < t->size; i++)
			value[i] = (char)(th_random(state) >> 16);
	memcpy(p, value, t->size);
}

void ar_apply(enum fi_datatype type, enum fi_op op, void *t, const void *x,
	      const void *c)
{
	_Alignas(16) char v[3][AR_MAX] = { { 0 } };
	struct args a = { op, v[0], v[1], v[2] };
	size_t n = types[type].size;

	memcpy(v[0], t, n);
	if (x)
		memcpy(v[1], x, n);
	if (c)
		memcpy(v[2], c, n);
	types[type].apply(&a);
	memcpy(t, v[0], n);
}

bool ar_same(enum fi_datatype type, const void *a, const void *b)
{
	const struct type *t = &types[type];
	_Alignas(16) char v[2][AR_MAX] = { { 0 } };

	memcpy(v[0], a, t->size);
	memcpy(v[1], b, t->size);
	return t->same ? t->same(v[0], v[1]) : !memcmp(v[0], v[1], t->size);
}
