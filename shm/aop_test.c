/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Arithmetic of one-sided atomics: which calls are valid and which words
 * native; every type, operation and kind against plain C, at every alignment,
 * with edge and random values; and threads and processes on common words,
 * mixed with C11 atomics, where nothing may be lost. Argument: operations of
 * each thread.
 */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/aop.h"
#include "shm/atomic.h"
#include "shm/rng_kit.h"

__extension__ typedef __int128 s128;

enum {
	ROUNDS = 60,   /* values at each alignment, for type x op x kind */
	ALIGN = 16,    /* alignments tried */
	WORKERS = 4,   /* threads or processes */
	CANARY = 0xa5, /* what is around a target */
	PATTERNS = 8,  /* kinds of edge values */
};

static uint64_t count = 200000; /* operations of each worker */

/* ---- valid, size, native ---- */

/* A digit for each operation, in the order of enum rnic_aop_op. */
static const char *const valid_integer[] = {
	[RNIC_AOP_BASE] = "1111111111010000000",
	[RNIC_AOP_FETCH] = "1111111111110000000",
	[RNIC_AOP_COMPARE] = "0000000000001111111",
};

static const char *const valid_real[] = {
	[RNIC_AOP_BASE] = "1111110010010000000",
	[RNIC_AOP_FETCH] = "1111110010110000000",
	[RNIC_AOP_COMPARE] = "0000000000001111110",
};

static const char *const valid_complex[] = {
	[RNIC_AOP_BASE] = "0011110010010000000",
	[RNIC_AOP_FETCH] = "0011110010110000000",
	[RNIC_AOP_COMPARE] = "0000000000001100000",
};

static const char *const *valid_table(int type)
{
	switch (type) {
	case RNIC_AOP_FLOAT:
	case RNIC_AOP_DOUBLE:
	case RNIC_AOP_LONG_DOUBLE:
		return valid_real;
	case RNIC_AOP_FLOAT_COMPLEX:
	case RNIC_AOP_DOUBLE_COMPLEX:
	case RNIC_AOP_LONG_DOUBLE_COMPLEX:
		return valid_complex;
	default:
		return valid_integer;
	}
}

static void test_valid(void **state)
{
	int type, op, kind;
	bool want;

	(void)state;
	for (type = 0; type < RNIC_AOP_TYPES; type++)
		for (kind = 0; kind <= RNIC_AOP_COMPARE; kind++)
			for (op = 0; op < RNIC_AOP_OPS; op++) {
				want = valid_table(type)[kind][op] == '1';
				assert_int_equal(rnic_aop_valid(type, op, kind),
						 want);
			}
}

static void test_invalid(void **state)
{
	(void)state;
	assert_int_equal(rnic_aop_size(RNIC_AOP_TYPES), 0);
	assert_int_equal(rnic_aop_size(256), 0);
	assert_int_equal(rnic_aop_size((enum rnic_aop_type) - 1), 0);
	assert_false(rnic_aop_valid(RNIC_AOP_TYPES, RNIC_AOP_SUM, 0));
	assert_false(rnic_aop_valid((enum rnic_aop_type) - 1, RNIC_AOP_SUM, 0));
	assert_false(rnic_aop_valid(RNIC_AOP_INT8, RNIC_AOP_OPS, 0));
	assert_false(rnic_aop_valid(RNIC_AOP_INT8, (enum rnic_aop_op) - 1, 0));
	assert_false(rnic_aop_valid(RNIC_AOP_INT8, RNIC_AOP_SUM, 3));
}

static const uint8_t sizes[RNIC_AOP_TYPES] = {
	1,
	1,
	2,
	2,
	4,
	4,
	8,
	8,
	sizeof(float),
	sizeof(double),
	sizeof(float _Complex),
	sizeof(double _Complex),
	sizeof(long double),
	sizeof(long double _Complex),
	16,
	16,
};

static void test_size(void **state)
{
	int type;

	(void)state;
	for (type = 0; type < RNIC_AOP_TYPES; type++) {
		assert_int_equal(rnic_aop_size(type), sizes[type]);
		assert_true(sizes[type] <= RNIC_AOP_SIZE_MAX);
	}
}

static void test_native(void **state)
{
	bool want;
	uint64_t addr, size;

	(void)state;
	for (size = 0; size <= 64; size++)
		for (addr = 0; addr < 64; addr++) {
			want = (size == 1 || size == 2 || size == 4 ||
				size == 8) &&
			       addr % size == 0;
			if (size == 16 && addr % 16 == 0)
				want = rnic_raw_has128();
			assert_int_equal(rnic_aop_native(addr, size), want);
			assert_int_equal(
				rnic_aop_native(addr | 1ull << 63, size), want);
		}
}

/* ---- the reference: plain C of each type ---- */

#define ALL_CASES(t, x, c)                                                     \
	case RNIC_AOP_LOR:                                                     \
		t = t != 0 || x != 0;                                          \
		break;                                                         \
	case RNIC_AOP_LAND:                                                    \
		t = t != 0 && x != 0;                                          \
		break;                                                         \
	case RNIC_AOP_LXOR:                                                    \
		t = (t != 0 && !(x != 0)) || (!(t != 0) && x != 0);            \
		break;                                                         \
	case RNIC_AOP_WRITE:                                                   \
		t = x;                                                         \
		break;                                                         \
	case RNIC_AOP_CSWAP:                                                   \
		t = c == t ? x : t;                                            \
		break;                                                         \
	case RNIC_AOP_CSWAP_NE:                                                \
		t = c != t ? x : t;                                            \
		break;

#define ORDER_CASES(t, x, c)                                                   \
	case RNIC_AOP_MIN:                                                     \
		t = x < t ? x : t;                                             \
		break;                                                         \
	case RNIC_AOP_MAX:                                                     \
		t = x > t ? x : t;                                             \
		break;                                                         \
	case RNIC_AOP_CSWAP_LE:                                                \
		t = c <= t ? x : t;                                            \
		break;                                                         \
	case RNIC_AOP_CSWAP_LT:                                                \
		t = c < t ? x : t;                                             \
		break;                                                         \
	case RNIC_AOP_CSWAP_GE:                                                \
		t = c >= t ? x : t;                                            \
		break;                                                         \
	case RNIC_AOP_CSWAP_GT:                                                \
		t = c > t ? x : t;                                             \
		break;

#define BIT_CASES(T, t, x, c)                                                  \
	case RNIC_AOP_BOR:                                                     \
		t = (T)(t | x);                                                \
		break;                                                         \
	case RNIC_AOP_BAND:                                                    \
		t = (T)(t & x);                                                \
		break;                                                         \
	case RNIC_AOP_BXOR:                                                    \
		t = (T)(t ^ x);                                                \
		break;                                                         \
	case RNIC_AOP_MSWAP:                                                   \
		t = (T)((x & c) | (t & ~c));                                   \
		break;

/* Sum and product of T, computed as W. */
#define SUM_CASES(T, W, t, x)                                                  \
	case RNIC_AOP_SUM:                                                     \
		t = (T)((W)t + (W)x);                                          \
		break;                                                         \
	case RNIC_AOP_PROD:                                                    \
		t = (T)((W)t * (W)x);                                          \
		break;

/* A function that does `op' on values of type T at any address. */
#define REFERENCE(name, T, CASES)                                              \
	static void name(int op, void *target, const void *operand,            \
			 const void *compare)                                  \
	{                                                                      \
		T t, x, c;                                                     \
                                                                               \
		memcpy(&t, target, sizeof(t));                                 \
		memcpy(&x, operand, sizeof(x));                                \
		memcpy(&c, compare, sizeof(c));                                \
		switch (op) {                                                  \
			CASES                                                  \
		default:                                                       \
			break;                                                 \
		}                                                              \
		memcpy(target, &t, sizeof(t));                                 \
	}

#define INT_REFERENCE(name, T, W)                                              \
	REFERENCE(name, T,                                                     \
		  ALL_CASES(t, x, c) ORDER_CASES(t, x, c)                      \
			  BIT_CASES(T, t, x, c) SUM_CASES(T, W, t, x))

#define REAL_REFERENCE(name, T)                                                \
	REFERENCE(name, T,                                                     \
		  ALL_CASES(t, x, c) ORDER_CASES(t, x, c)                      \
			  SUM_CASES(T, T, t, x))

#define COMPLEX_REFERENCE(name, T)                                             \
	REFERENCE(name, T, ALL_CASES(t, x, c) SUM_CASES(T, T, t, x))

INT_REFERENCE(ref_int8, int8_t, uint64_t)
INT_REFERENCE(ref_uint8, uint8_t, uint64_t)
INT_REFERENCE(ref_int16, int16_t, uint64_t)
INT_REFERENCE(ref_uint16, uint16_t, uint64_t)
INT_REFERENCE(ref_int32, int32_t, uint64_t)
INT_REFERENCE(ref_uint32, uint32_t, uint64_t)
INT_REFERENCE(ref_int64, int64_t, uint64_t)
INT_REFERENCE(ref_uint64, uint64_t, uint64_t)
INT_REFERENCE(ref_int128, s128, rnic_u128)
INT_REFERENCE(ref_uint128, rnic_u128, rnic_u128)
REAL_REFERENCE(ref_float, float)
REAL_REFERENCE(ref_double, double)
REAL_REFERENCE(ref_long_double, long double)
COMPLEX_REFERENCE(ref_float_complex, float _Complex)
COMPLEX_REFERENCE(ref_double_complex, double _Complex)
COMPLEX_REFERENCE(ref_long_double_complex, long double _Complex)

typedef void (*ref_fn)(int op, void *target, const void *operand,
		       const void *compare);

static const ref_fn reference[RNIC_AOP_TYPES] = {
	[RNIC_AOP_INT8] = ref_int8,
	[RNIC_AOP_UINT8] = ref_uint8,
	[RNIC_AOP_INT16] = ref_int16,
	[RNIC_AOP_UINT16] = ref_uint16,
	[RNIC_AOP_INT32] = ref_int32,
	[RNIC_AOP_UINT32] = ref_uint32,
	[RNIC_AOP_INT64] = ref_int64,
	[RNIC_AOP_UINT64] = ref_uint64,
	[RNIC_AOP_FLOAT] = ref_float,
	[RNIC_AOP_DOUBLE] = ref_double,
	[RNIC_AOP_FLOAT_COMPLEX] = ref_float_complex,
	[RNIC_AOP_DOUBLE_COMPLEX] = ref_double_complex,
	[RNIC_AOP_LONG_DOUBLE] = ref_long_double,
	[RNIC_AOP_LONG_DOUBLE_COMPLEX] = ref_long_double_complex,
	[RNIC_AOP_INT128] = ref_int128,
	[RNIC_AOP_UINT128] = ref_uint128,
};

/* ---- values ---- */

/* Size of the floating numbers that @type is made of; 0: an integer. */
static size_t part_size(int type)
{
	switch (type) {
	case RNIC_AOP_FLOAT:
	case RNIC_AOP_FLOAT_COMPLEX:
		return sizeof(float);
	case RNIC_AOP_DOUBLE:
	case RNIC_AOP_DOUBLE_COMPLEX:
		return sizeof(double);
	case RNIC_AOP_LONG_DOUBLE:
	case RNIC_AOP_LONG_DOUBLE_COMPLEX:
		return sizeof(long double);
	default:
		return 0;
	}
}

static void fill_integer(unsigned char *p, size_t size)
{
	static const unsigned char low[PATTERNS] = { 0, 1, 255, 0, 255, 85 };
	static const unsigned char high[PATTERNS] = { 0, 0, 255, 128, 127, 85 };
	uint32_t pattern = rng(PATTERNS);
	size_t i;

	for (i = 0; i < size; i++)
		p[i] = pattern < 6 ? low[pattern] : (unsigned char)rng(256);
	if (pattern < 6 && (size > 1 || pattern != 1))
		p[size - 1] = high[pattern];
	if (pattern == 1)
		memset(p + 1, 0, size - 1);
	if (pattern == 6) /* a small number */
		memset(p + 1, 0, size - 1);
}

/* A number that each floating type can hold, but for rounding. */
static long double any_number(void)
{
	switch (rng(8)) {
	case 0:
		return 0;
	case 1:
		return -0.0L;
	case 2:
		return 1;
	case 3:
		return INFINITY;
	case 4:
		return -INFINITY;
	case 5:
		return NAN;
	default:
		return ((long double)rng(UINT32_MAX) - 0x1p31L) /
		       (long double)(1 + rng(1000));
	}
}

/* Stores a floating number of @size bytes; each type has its own edges. */
static void fill_part(unsigned char *p, size_t size)
{
	long double l = any_number();
	float f = (float)l;
	double d = (double)l;

	switch (rng(10)) {
	case 0:
		f = FLT_MAX;
		d = DBL_MAX;
		l = LDBL_MAX;
		break;
	case 1:
		f = FLT_TRUE_MIN;
		d = DBL_TRUE_MIN;
		l = LDBL_TRUE_MIN;
		break;
	default:
		break;
	}
	if (size == sizeof(float))
		memcpy(p, &f, size);
	else if (size == sizeof(double))
		memcpy(p, &d, size);
	else
		memcpy(p, &l, size);
}

/* Stores a value of @type. */
static void fill(int type, unsigned char *p)
{
	size_t part = part_size(type);
	size_t off;

	if (!part) {
		fill_integer(p, sizes[type]);
		return;
	}
	for (off = 0; off < sizes[type]; off += part)
		fill_part(p + off, part);
}

static bool is_nan(const unsigned char *p, size_t size)
{
	float f;
	double d;
	long double l;

	if (size == sizeof(f)) {
		memcpy(&f, p, size);
		return isnan(f);
	}
	if (size == sizeof(d)) {
		memcpy(&d, p, size);
		return isnan(d);
	}
	memcpy(&l, p, size);
	return isnan(l);
}

/* Bytes of a floating number of @size that count: x87's are padded. */
static size_t part_bytes(size_t size)
{
	return size == sizeof(long double) && LDBL_MANT_DIG == 64 ? 10 : size;
}

/* True if both are the same, or the same but for which NaN. */
static bool same(int type, const unsigned char *a, const unsigned char *b)
{
	size_t part = part_size(type);
	size_t off;

	if (!part)
		return !memcmp(a, b, sizes[type]);
	for (off = 0; off < sizes[type]; off += part)
		if (memcmp(a + off, b + off, part_bytes(part)) &&
		    !(is_nan(a + off, part) && is_nan(b + off, part)))
			return false;
	return true;
}

/* ---- against the reference ---- */

/* Room for one value at any alignment, with canaries around. */
struct room {
	_Alignas(64) unsigned char byte[ALIGN + RNIC_AOP_SIZE_MAX + ALIGN];
};

static unsigned char *room_at(struct room *r, size_t off)
{
	memset(r->byte, CANARY, sizeof(r->byte));
	return r->byte + off;
}

static bool room_intact(const struct room *r, size_t off, size_t size)
{
	size_t i;

	for (i = 0; i < sizeof(r->byte); i++)
		if ((i < off || i >= off + size) && r->byte[i] != CANARY)
			return false;
	return true;
}

/* One operation with random values on a target at @off. */
static void check_once(int type, int op, int kind, size_t off)
{
	struct room target, operand, compare, result;
	unsigned char before[RNIC_AOP_SIZE_MAX], want[RNIC_AOP_SIZE_MAX];
	unsigned char *t = room_at(&target, off);
	unsigned char *x = room_at(&operand, rng(ALIGN));
	unsigned char *c = room_at(&compare, rng(ALIGN));
	size_t at = rng(ALIGN);
	unsigned char *r = room_at(&result, at);
	struct rnic_aop a = {
		.type = (enum rnic_aop_type)type,
		.op = (enum rnic_aop_op)op,
		.target = t,
		.operand = op == RNIC_AOP_READ ? NULL : x,
		.compare = kind == RNIC_AOP_COMPARE ? c : NULL,
		.result = kind == RNIC_AOP_BASE ? NULL : r,
	};

	fill(type, t);
	fill(type, x);
	fill(type, c);
	if (!rng(4))
		memcpy(c, t, sizes[type]);
	memcpy(before, t, sizes[type]);
	memcpy(want, t, sizes[type]);
	reference[type](op, want, x, c);
	rnic_aop_apply(&a);
	if (!same(type, t, want))
		fail_msg("type %d op %d kind %d offset %zu", type, op, kind,
			 off);
	assert_true(room_intact(&target, off, sizes[type]));
	assert_true(room_intact(&result, at, a.result ? sizes[type] : 0));
	if (a.result)
		assert_memory_equal(r, before, sizes[type]);
}

static void check_all(int type, int op, int kind)
{
	size_t off;
	int i;

	for (off = 0; off < ALIGN; off++)
		for (i = 0; i < ROUNDS; i++)
			check_once(type, op, kind, off);
}

static void test_reference(void **state)
{
	int type, op, kind;

	(void)state;
	for (type = 0; type < RNIC_AOP_TYPES; type++)
		for (op = 0; op < RNIC_AOP_OPS; op++)
			for (kind = 0; kind <= RNIC_AOP_COMPARE; kind++)
				if (rnic_aop_valid(type, op, kind))
					check_all(type, op, kind);
}

/* The result may be where the operand or the compare was. */
static void test_overlap(void **state)
{
	uint32_t target = 5;
	uint32_t x = 7;
	uint32_t c = 5;
	struct rnic_aop a = {
		RNIC_AOP_UINT32, RNIC_AOP_SUM, &target, &x, NULL, &x
	};

	(void)state;
	rnic_aop_apply(&a);
	assert_int_equal(target, 12);
	assert_int_equal(x, 5);
	target = 5;
	x = 9;
	a = (struct rnic_aop){
		RNIC_AOP_UINT32, RNIC_AOP_CSWAP, &target, &x, &c, &c
	};
	rnic_aop_apply(&a);
	assert_int_equal(target, 9);
	assert_int_equal(c, 5);
}

/* ---- what writes nothing ---- */

static void check_read_only(int type, void *page)
{
	unsigned char got[RNIC_AOP_SIZE_MAX];
	unsigned char zero[RNIC_AOP_SIZE_MAX] = { 0 };
	struct rnic_aop a = {
		(enum rnic_aop_type)type, RNIC_AOP_READ, page, NULL, NULL, got
	};

	memset(got, CANARY, sizeof(got));
	rnic_aop_apply(&a);
	assert_memory_equal(got, zero, sizes[type]);
	a.operand = zero;
	a.compare = zero; /* equal, so NE does not hold */
	a.op = RNIC_AOP_CSWAP_NE;
	rnic_aop_apply(&a);
	if (!rnic_aop_valid(type, RNIC_AOP_MIN, RNIC_AOP_BASE))
		return;
	a.op = RNIC_AOP_MIN;
	rnic_aop_apply(&a);
	a.op = RNIC_AOP_MAX;
	rnic_aop_apply(&a);
}

static void test_read_only(void **state)
{
	int type;
	void *page =
		mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	for (type = 0; type < RNIC_AOP_TYPES; type++)
		check_read_only(type, page);
	assert_int_equal(munmap(page, 4096), 0);
}

/* ---- many at once ---- */

/* Words that all workers change, each in a cache line. */
struct words {
	_Alignas(64) rnic_a32 add;	/* fetch-add, and C11's */
	_Alignas(64) rnic_a64 fetched;	/* sum of what those fetched */
	_Alignas(64) rnic_a64 cas;	/* compare and swap, and C11's */
	_Alignas(64) int64_t min;	/* of pseudo-random numbers */
	_Alignas(64) int64_t max;	/* of the same */
	_Alignas(64) rnic_a32 f;	/* float, emptied by C11 exchanges */
	_Alignas(64) rnic_a64 drained;	/* what was taken out of it */
	_Alignas(64) rnic_a64 d;	/* double, and C11 cas on its bits */
	_Alignas(64) uint16_t small[2]; /* neighbours in one word */
	_Alignas(64) rnic_u128 wide;	/* 16-byte sums */
	_Alignas(64) rnic_a64 errors;	/* found by workers */
};

struct worker {
	pthread_t thread;
	struct words *w; /* the common words */
	int index;	 /* of the worker */
};

static void apply(int type, int op, void *target, const void *operand,
		  void *result)
{
	struct rnic_aop a = {
		.type = (enum rnic_aop_type)type,
		.op = (enum rnic_aop_op)op,
		.target = target,
		.operand = operand,
		.result = result,
	};

	rnic_aop_apply(&a);
}

static void do_add(struct words *w, bool mine)
{
	uint32_t one = 1;
	uint32_t old;

	if (mine)
		apply(RNIC_AOP_UINT32, RNIC_AOP_SUM, &w->add, &one, &old);
	else
		old = rnic_add32_acqrel(&w->add, one);
	rnic_add64_relaxed(&w->fetched, old); /* read after the join */
}

static void do_cas(struct words *w, bool mine)
{
	uint64_t old, new, seen;
	struct rnic_aop a = {
		RNIC_AOP_UINT64, RNIC_AOP_CSWAP, &w->cas, &new, &old, &seen
	};

	old = rnic_load64_relaxed(&w->cas); /* a guess */
	for (;;) {
		new = old + 1;
		if (!mine && rnic_cas64_seqcst(&w->cas, old, new))
			return;
		if (!mine)
			seen = rnic_load64_relaxed(&w->cas);
		else
			rnic_aop_apply(&a);
		if (mine && seen == old)
			return;
		old = seen;
	}
}

static void do_minmax(struct words *w, uint64_t *rng_worker)
{
	int64_t x = (int64_t)rng_next(rng_worker);
	int64_t old;

	apply(RNIC_AOP_INT64, RNIC_AOP_MIN, &w->min, &x, NULL);
	apply(RNIC_AOP_INT64, RNIC_AOP_MAX, &w->max, &x, NULL);
	apply(RNIC_AOP_INT64, RNIC_AOP_READ, &w->max, NULL, &old);
	if (old < x)
		rnic_add64_relaxed(&w->errors, 1); /* read after the join */
}

static void do_float(struct words *w, bool drain)
{
	float one = 1;
	uint32_t bits;
	float taken;

	apply(RNIC_AOP_FLOAT, RNIC_AOP_SUM, &w->f, &one, NULL);
	if (!drain)
		return;
	bits = rnic_xchg32_acqrel(&w->f, 0);
	memcpy(&taken, &bits, sizeof(taken));
	/* read after the join */
	rnic_add64_relaxed(&w->drained, (uint64_t)taken);
}

static void do_double(struct words *w, bool mine)
{
	double half = 0.5;
	double sum;
	uint64_t old, new;

	if (mine) {
		apply(RNIC_AOP_DOUBLE, RNIC_AOP_SUM, &w->d, &half, NULL);
		return;
	}
	do {
		old = rnic_load64_relaxed(&w->d); /* a guess */
		memcpy(&sum, &old, sizeof(sum));
		sum += half;
		memcpy(&new, &sum, sizeof(new));
	} while (!rnic_cas64_seqcst(&w->d, old, new));
}

static void do_small_and_wide(struct words *w, int index)
{
	uint16_t odd = 3;
	rnic_u128 x = ((rnic_u128)1 << 64) | 1;

	/* a product and a sum, in halves of one 32-bit word */
	apply(RNIC_AOP_UINT16, index % 2 ? RNIC_AOP_PROD : RNIC_AOP_SUM,
	      &w->small[index % 2], &odd, NULL);
	if (rnic_raw_has128())
		apply(RNIC_AOP_UINT128, RNIC_AOP_SUM, &w->wide, &x, NULL);
}

static void *work(void *arg)
{
	struct worker *me = arg;
	uint64_t rng_worker = 1000003u + (uint64_t)me->index;
	uint64_t i;

	for (i = 0; i < count; i++) {
		do_add(me->w, (i ^ (uint64_t)me->index) & 1);
		do_cas(me->w, (i ^ (uint64_t)me->index) & 1);
		do_minmax(me->w, &rng_worker);
		do_float(me->w, i % 16 == 0);
		do_double(me->w, me->index & 1);
		do_small_and_wide(me->w, me->index);
	}
	return NULL;
}

static void check_minmax(const struct words *w)
{
	int64_t min = INT64_MAX;
	int64_t max = INT64_MIN;
	uint64_t rng_worker, i;
	int64_t x;
	int k;

	for (k = 0; k < WORKERS; k++) {
		rng_worker = 1000003u + (uint64_t)k;
		for (i = 0; i < count; i++) {
			x = (int64_t)rng_next(&rng_worker);
			min = x < min ? x : min;
			max = x > max ? x : max;
		}
	}
	assert_true(w->min == min);
	assert_true(w->max == max);
}

static void check_floats(const struct words *w)
{
	uint32_t bits = rnic_load32_acquire(&w->f);
	uint64_t bits64 = rnic_load64_acquire(&w->d);
	float f;
	double d;

	memcpy(&f, &bits, sizeof(f));
	memcpy(&d, &bits64, sizeof(d));
	assert_true(rnic_load64_acquire(&w->drained) + (uint64_t)f ==
		    WORKERS * count);
	assert_true(d == 0.5 * (double)(WORKERS * count));
}

static void check_words(const struct words *w)
{
	uint64_t n = WORKERS * count;
	uint16_t product = 1;
	uint64_t i;

	assert_int_equal(rnic_load64_acquire(&w->errors), 0);
	assert_int_equal(rnic_load32_acquire(&w->add), n);
	assert_true(rnic_load64_acquire(&w->fetched) == n * (n - 1) / 2);
	assert_true(rnic_load64_acquire(&w->cas) == n);
	for (i = 0; i < n / 2; i++)
		product = (uint16_t)(product * 3u);
	assert_int_equal(w->small[0], (uint16_t)(n / 2 * 3));
	assert_int_equal(w->small[1], product);
	if (rnic_raw_has128())
		assert_true(w->wide == (((rnic_u128)n << 64) | n));
	check_minmax(w);
	check_floats(w);
}

static struct words *words_create(void)
{
	struct words *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(w, MAP_FAILED);
	w->min = INT64_MAX;
	w->max = INT64_MIN;
	w->small[1] = 1;
	return w;
}

static void test_threads(void **state)
{
	struct words *w = words_create();
	struct worker worker[WORKERS];
	int i;

	(void)state;
	for (i = 0; i < WORKERS; i++) {
		worker[i].w = w;
		worker[i].index = i;
		assert_int_equal(pthread_create(&worker[i].thread, NULL, work,
						&worker[i]),
				 0);
	}
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_join(worker[i].thread, NULL), 0);
	check_words(w);
	assert_int_equal(munmap(w, sizeof(*w)), 0);
}

static void test_processes(void **state)
{
	struct words *w = words_create();
	struct worker me = { .w = w };
	pid_t pid[WORKERS];
	int i, status;

	(void)state;
	for (i = 0; i < WORKERS; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (!pid[i]) {
			me.index = i;
			work(&me);
			_exit(0);
		}
	}
	for (i = 0; i < WORKERS; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	check_words(w);
	assert_int_equal(munmap(w, sizeof(*w)), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid),
		cmocka_unit_test(test_invalid),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_native),
		cmocka_unit_test(test_reference),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_processes),
	};

	if (argc > 1)
		count = strtoull(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
