/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Atomics: every datatype and operation that fi_atomic(3) has, on memory of
 * the device and on private memory, at any alignment, against arithmetic
 * written down here; who may, what is refused; exactness between processes,
 * paths and the owner's own CPU atomics.
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <complex.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <unistd.h>

#include "env_probe.h"
#include "rdma/fi_ext_shrimp.h"
#include "shm/atomic.h"

enum {
	LEN = 1 << 16, /* bytes of a region */
	N = 5,	       /* elements of a call */
	SIZE_MAX_ELEMENT = 32,
};

/* ---- what the operations do --------------------------------------------- */

/* An element, operand or result: any type. */
union any {
	int8_t i8;
	uint8_t u8;
	int16_t i16;
	uint16_t u16;
	int32_t i32;
	uint32_t u32;
	int64_t i64;
	uint64_t u64;
	float f;
	double d;
	long double ld;
	float complex fc;
	double complex dc;
	long double complex ldc;
	unsigned char byte[SIZE_MAX_ELEMENT];
};

/* Whether @op swaps, comparing c with t. */
#define SWAPS(op, c, t)                                                        \
	((op) == FI_CSWAP      ? (c) == (t)                                    \
	 : (op) == FI_CSWAP_NE ? (c) != (t)                                    \
	 : (op) == FI_CSWAP_LE ? (c) <= (t)                                    \
	 : (op) == FI_CSWAP_LT ? (c) < (t)                                     \
	 : (op) == FI_CSWAP_GE ? (c) >= (t)                                    \
			       : (c) > (t))

/* The new value of a target of a type that has an order. */
#define ORDERED(T, name, field)                                                \
	static bool name(enum fi_op op, union any *t, const union any *x,      \
			 const union any *c)                                   \
	{                                                                      \
		T a = t->field, b = x->field;                                  \
                                                                               \
		switch (op) {                                                  \
		case FI_MIN:                                                   \
			t->field = b < a ? b : a;                              \
			return true;                                           \
		case FI_MAX:                                                   \
			t->field = b > a ? b : a;                              \
			return true;                                           \
		case FI_SUM:                                                   \
			t->field = (T)(a + b);                                 \
			return true;                                           \
		case FI_PROD:                                                  \
			t->field = (T)(a * b);                                 \
			return true;                                           \
		case FI_LOR:                                                   \
			t->field = (T)(a || b);                                \
			return true;                                           \
		case FI_LAND:                                                  \
			t->field = (T)(a && b);                                \
			return true;                                           \
		case FI_LXOR:                                                  \
			t->field = (T)(!a != !b);                              \
			return true;                                           \
		case FI_ATOMIC_READ:                                           \
			return true;                                           \
		case FI_ATOMIC_WRITE:                                          \
			t->field = b;                                          \
			return true;                                           \
		default:                                                       \
			if (op < FI_CSWAP || op > FI_CSWAP_GT)                 \
				return false;                                  \
			if (SWAPS(op, c->field, a))                            \
				t->field = b;                                  \
			return true;                                           \
		}                                                              \
	}

/* And what integers do beside that. */
#define INTEGER(T, U, name, field)                                             \
	ORDERED(T, name##_ordered, field)                                      \
	static bool name(enum fi_op op, union any *t, const union any *x,      \
			 const union any *c)                                   \
	{                                                                      \
		U a = (U)t->field, b = (U)x->field, m = (U)c->field;           \
                                                                               \
		switch (op) {                                                  \
		case FI_SUM: /* wraps */                                       \
			t->field = (T)(U)(a + b);                              \
			return true;                                           \
		case FI_PROD:                                                  \
			t->field = (T)(U)((uint64_t)a * b);                    \
			return true;                                           \
		case FI_BOR:                                                   \
			t->field = (T)(a | b);                                 \
			return true;                                           \
		case FI_BAND:                                                  \
			t->field = (T)(a & b);                                 \
			return true;                                           \
		case FI_BXOR:                                                  \
			t->field = (T)(a ^ b);                                 \
			return true;                                           \
		case FI_MSWAP:                                                 \
			t->field = (T)((b & m) | (a & (U)~m));                 \
			return true;                                           \
		default:                                                       \
			return name##_ordered(op, t, x, c);                    \
		}                                                              \
	}

#define COMPLEX(T, name, field)                                                \
	static bool name(enum fi_op op, union any *t, const union any *x,      \
			 const union any *c)                                   \
	{                                                                      \
		T a = t->field, b = x->field;                                  \
                                                                               \
		switch (op) {                                                  \
		case FI_SUM:                                                   \
			t->field = a + b;                                      \
			return true;                                           \
		case FI_PROD:                                                  \
			t->field = a * b;                                      \
			return true;                                           \
		case FI_LOR:                                                   \
			t->field = a != 0 || b != 0;                           \
			return true;                                           \
		case FI_LAND:                                                  \
			t->field = a != 0 && b != 0;                           \
			return true;                                           \
		case FI_LXOR:                                                  \
			t->field = (a != 0) != (b != 0);                       \
			return true;                                           \
		case FI_ATOMIC_READ:                                           \
			return true;                                           \
		case FI_ATOMIC_WRITE:                                          \
			t->field = b;                                          \
			return true;                                           \
		case FI_CSWAP:                                                 \
		case FI_CSWAP_NE:                                              \
			if ((c->field == a) == (op == FI_CSWAP))               \
				t->field = b;                                  \
			return true;                                           \
		default:                                                       \
			return false;                                          \
		}                                                              \
	}

INTEGER(int8_t, uint8_t, do_i8, i8)
INTEGER(uint8_t, uint8_t, do_u8, u8)
INTEGER(int16_t, uint16_t, do_i16, i16)
INTEGER(uint16_t, uint16_t, do_u16, u16)
INTEGER(int32_t, uint32_t, do_i32, i32)
INTEGER(uint32_t, uint32_t, do_u32, u32)
INTEGER(int64_t, uint64_t, do_i64, i64)
INTEGER(uint64_t, uint64_t, do_u64, u64)
ORDERED(float, do_f, f)
ORDERED(double, do_d, d)
ORDERED(long double, do_ld, ld)
COMPLEX(float complex, do_fc, fc)
COMPLEX(double complex, do_dc, dc)
COMPLEX(long double complex, do_ldc, ldc)

struct type {
	enum fi_datatype type;
	size_t size;  /* of an element */
	size_t bytes; /* of it that count: long double has holes */
	bool (*apply)(enum fi_op, union any *, const union any *,
		      const union any *);
};

static const struct type types[] = {
	{ FI_INT8, 1, 1, do_i8 },
	{ FI_UINT8, 1, 1, do_u8 },
	{ FI_INT16, 2, 2, do_i16 },
	{ FI_UINT16, 2, 2, do_u16 },
	{ FI_INT32, 4, 4, do_i32 },
	{ FI_UINT32, 4, 4, do_u32 },
	{ FI_INT64, 8, 8, do_i64 },
	{ FI_UINT64, 8, 8, do_u64 },
	{ FI_FLOAT, 4, 4, do_f },
	{ FI_DOUBLE, 8, 8, do_d },
	{ FI_LONG_DOUBLE, sizeof(long double), 10, do_ld },
	{ FI_FLOAT_COMPLEX, 8, 8, do_fc },
	{ FI_DOUBLE_COMPLEX, 16, 16, do_dc },
	{ FI_LONG_DOUBLE_COMPLEX, sizeof(long double complex), 10, do_ldc },
};
enum { TYPES = sizeof(types) / sizeof(*types) };

/* A small value of @t: sums and products of such are exact. */
static union any value(const struct type *t, uint64_t *seed)
{
	int x = (int)(th_random(seed) % 9) - 3, y = (int)(th_random(seed) % 5);
	union any v;

	memset(&v, 0, sizeof(v));
	switch (t->type) {
	case FI_FLOAT:
		v.f = (float)x;
		break;
	case FI_DOUBLE:
		v.d = x;
		break;
	case FI_LONG_DOUBLE:
		v.ld = x;
		break;
	case FI_FLOAT_COMPLEX:
		v.fc = (float)x + (float)y * I;
		break;
	case FI_DOUBLE_COMPLEX:
		v.dc = x + y * I;
		break;
	case FI_LONG_DOUBLE_COMPLEX:
		v.ldc = x + y * I;
		break;
	default:
		v.i64 = x;
	}
	return v;
}

/* ---- calls --------------------------------------------------------------- */

static const struct th_stack_opts plain = {
	.caps = FI_MSG | FI_RMA | FI_ATOMIC,
	.mr_mode = FI_MR_ALLOCATED,
};

static void done(struct th_stack *s, uint64_t flag, void *ctx)
{
	struct fi_cq_tagged_entry e = th_tx_ok(s);

	th_eq(e.flags, FI_ATOMIC | flag);
	th_ptr_eq(e.op_context, ctx);
}

/* One call on N elements. */
struct call {
	const struct type *t;
	enum fi_op op;
	uint64_t flags; /* 0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC */
	unsigned char x[N * SIZE_MAX_ELEMENT];	 /* operands */
	unsigned char c[N * SIZE_MAX_ELEMENT];	 /* compared with */
	unsigned char was[N * SIZE_MAX_ELEMENT]; /* results */
};

static void issue(struct th_stack *a, struct call *k, uint64_t addr)
{
	struct fid_ep *ep = a->ep;
	fi_addr_t to = a->peers[1];

	if (k->flags & FI_COMPARE_ATOMIC)
		th_ok(fi_compare_atomic(ep, k->x, N, NULL, k->c, NULL, k->was,
					NULL, to, addr, RK_KEY, k->t->type,
					k->op, k));
	else if (k->flags & FI_FETCH_ATOMIC)
		th_ok(fi_fetch_atomic(ep, k->x, N, NULL, k->was, NULL, to, addr,
				      RK_KEY, k->t->type, k->op, k));
	else
		th_ok(fi_atomic(ep, k->x, N, NULL, to, addr, RK_KEY, k->t->type,
				k->op, k));
	done(a, k->flags ? FI_READ : FI_WRITE, k);
}

/* The bytes of elements @got are those of @want. */
static void same(const struct call *k, int i, const void *got,
		 const union any *want)
{
	if (memcmp(got, want, k->t->bytes))
		th_fail(__FILE__, __LINE__, "type %d op %d element %d",
			k->t->type, k->op, i);
}

/* Does @k at @at, which is @addr for the peer, and checks each byte. */
static void call_once(struct th_stack *a, struct call *k, unsigned char *at,
		      uint64_t addr, uint64_t *seed)
{
	union any was[N], want[N];
	size_t z = k->t->size;

	for (int i = 0; i < N; i++) {
		union any x = value(k->t, seed), c = value(k->t, seed);

		want[i] = was[i] = value(k->t, seed);
		th_check(k->t->apply(k->op, &want[i], &x, &c));
		memcpy(at + i * z, &was[i], z);
		memcpy(k->x + i * z, &x, z);
		memcpy(k->c + i * z, &c, z);
	}
	at[-1] = at[N * z] = 0xa5;
	th_settle(a);
	issue(a, k, addr);
	th_settle(a);
	for (int i = 0; i < N; i++) {
		same(k, i, at + i * z, &want[i]);
		if (k->flags)
			same(k, i, k->was + i * z, &was[i]);
	}
	th_eq(at[-1], 0xa5);
	th_eq(at[N * z], 0xa5);
}

/* What fi_atomic(3) says there is. */
static bool exists(const struct type *t, enum fi_op op, uint64_t flags)
{
	union any a = { .u64 = 0 };

	if (!t->apply(op, &a, &a, &a))
		return false;
	if (op >= FI_CSWAP)
		return flags == FI_COMPARE_ATOMIC;
	if (op == FI_ATOMIC_READ)
		return flags == FI_FETCH_ATOMIC;
	return flags != FI_COMPARE_ATOMIC;
}

static void each_call(struct th_stack *a, struct rk_region *r, uint64_t flags)
{
	static const size_t offs[] = { 64, 4096 - 16, 65, 4096 - 7 };
	uint64_t seed = 11;
	struct call k = { .flags = flags };
	struct fi_atomic_attr attr;

	for (int i = 0; i < TYPES; i++) {
		for (int op = FI_MIN; op <= FI_MSWAP; op++) {
			int ret = fi_query_atomic(a->domain, types[i].type,
						  (enum fi_op)op, &attr, flags);

			k.t = &types[i];
			k.op = (enum fi_op)op;
			if (!exists(k.t, k.op, flags)) {
				th_eq(ret, -FI_EOPNOTSUPP);
				continue;
			}
			th_eq(ret, 0);
			th_eq(attr.size, k.t->size);
			th_check(attr.count >= N);
			for (size_t o = 0; o < 4; o++)
				call_once(a, &k, r->p + offs[o], offs[o],
					  &seed);
		}
	}
}

static void every_call(bool device)
{
	struct rk_bed t;

	rk_bed_open(&t, &plain, device, LEN);
	each_call(&t.a, &t.r, 0);
	each_call(&t.a, &t.r, FI_FETCH_ATOMIC);
	each_call(&t.a, &t.r, FI_COMPARE_ATOMIC);
	rk_bed_close(&t);
}

static void calls_device(struct th_self *self)
{
	(void)self;
	every_call(true);
}

static void calls_private(struct th_self *self)
{
	(void)self;
	every_call(false);
}

static void calls_self(struct th_self *self)
{
	struct th_stack a;
	struct rk_region r;
	uint8_t name[64];
	size_t len = sizeof(name);
	fi_addr_t peers[2];

	(void)self;
	for (int device = 0; device < 2; device++) {
		th_stack_open(&a, &plain);
		th_ok(fi_getname(&a.ep->fid, name, &len));
		peers[1] = th_insert(&a, name);
		a.peers = peers;
		r = rk_region_new(&a, device, LEN, RK_RW);
		each_call(&a, &r, 0);
		each_call(&a, &r, FI_FETCH_ATOMIC);
		each_call(&a, &r, FI_COMPARE_ATOMIC);
		rk_region_free(&r);
		a.peers = NULL;
		th_stack_close(&a);
	}
}

/* ---- lists, limits, inject ------------------------------------------------ */

static void lists(bool device)
{
	uint64_t x[6] = { 1, 2, 3, 4, 5, 6 }, was[6] = { 0 };
	struct fi_ioc op[3] = { { x, 1 }, { x + 1, 0 }, { x + 1, 5 } };
	struct fi_ioc res[2] = { { was, 4 }, { was + 4, 2 } };
	struct fi_rma_ioc there[2] = { { 800, 2, RK_KEY }, { 8, 4, RK_KEY } };
	struct fi_msg_atomic m = { .msg_iov = op,
				   .iov_count = 3,
				   .rma_iov = there,
				   .rma_iov_count = 2,
				   .datatype = FI_UINT64,
				   .op = FI_SUM,
				   .context = x };
	struct rk_bed t;
	uint64_t *p;

	rk_bed_open(&t, &plain, device, LEN);
	p = (uint64_t *)(void *)t.r.p;
	p[100] = 1000;
	p[1] = 77;
	m.addr = t.a.peers[1];
	th_ok(fi_fetch_atomicmsg(t.a.ep, &m, res, NULL, 2, FI_COMPLETION));
	done(&t.a, FI_READ, x);
	th_eq(p[100], 1001);
	th_eq(p[101], 2);
	th_eq(p[1], 80);
	th_eq(p[4], 6);
	th_eq(was[0], 1000);
	th_eq(was[2], 77);
	there[1].count = 3;
	th_eq(fi_fetch_atomicmsg(t.a.ep, &m, res, NULL, 2, 0), -FI_EINVAL);
	there[1].count = 4;
	m.rma_iov_count = 17;
	th_eq(fi_atomicmsg(t.a.ep, &m, 0), -FI_EINVAL);
	rk_bed_close(&t);
}

static void case_T27_lists(struct th_self *self)
{
	(void)self;
	lists(true);
	lists(false);
}

/* As many as fi_atomicvalid(3) allows, and one more. */
static void counts(bool device)
{
	struct rk_bed t;
	size_t n = 0;
	double *x;

	rk_bed_open(&t, &plain, device, LEN);
	th_ok(fi_atomicvalid(t.a.ep, FI_DOUBLE, FI_SUM, &n));
	th_check(n >= 128 && n * 8 <= LEN);
	x = malloc((n + 1) * sizeof(*x));
	for (size_t i = 0; i <= n; i++)
		x[i] = (double)i;
	for (int i = 0; i < 3; i++) {
		th_ok(fi_atomic(t.a.ep, x, n, NULL, t.a.peers[1], 8, RK_KEY,
				FI_DOUBLE, FI_SUM, x));
		done(&t.a, FI_WRITE, x);
	}
	for (size_t i = 0; i < n; i++)
		th_check(((double *)(void *)t.r.p)[i + 1] == 3 * (double)i);
	th_eq(fi_atomic(t.a.ep, x, n + 1, NULL, t.a.peers[1], 8, RK_KEY,
			FI_DOUBLE, FI_SUM, x),
	      -FI_EINVAL);
	th_eq(fi_atomic(t.a.ep, x, 0, NULL, t.a.peers[1], 8, RK_KEY, FI_DOUBLE,
			FI_SUM, x),
	      -FI_EINVAL);
	free(x);
	rk_bed_close(&t);
}

static void limits(struct th_self *self)
{
	(void)self;
	counts(true);
	counts(false);
}

/* The operands may be overwritten at once; nobody is told. */
static void case_T17_inject(struct th_self *self)
{
	uint64_t x, sum = 0;
	struct rk_bed t;

	(void)self;
	for (int device = 0; device < 2; device++) {
		struct th_deadline dl = th_patience();

		rk_bed_open(&t, &plain, device, LEN);
		sum = 0;
		for (uint64_t i = 1; i <= 300; i++) {
			ssize_t ret;

			do {
				x = i;
				ret = fi_inject_atomic(t.a.ep, &x, 1,
						       t.a.peers[1], 16, RK_KEY,
						       FI_UINT64, FI_SUM);
				x = 0xdead;
				if (ret)
					th_progress(&t.a);
			} while (ret == -FI_EAGAIN && !th_expired(&dl));
			th_ok(ret);
			sum += i;
		}
		while (rnic_load64_acquire((rnic_a64 *)(void *)(t.r.p + 16)) !=
			       sum &&
		       !th_expired(&dl))
			th_progress(&t.a);
		th_eq(*(uint64_t *)(void *)(t.r.p + 16), sum);
		th_quiet(&t.a, 10);
		rk_bed_close(&t);
	}
}

/* ---- who may -------------------------------------------------------------- */

/* Refused with the right code, nothing changed, no event at the target. */
static void try_all(struct th_stack *a, uint64_t addr, int base, int fetch)
{
	uint64_t x = 3, was = 9;

	th_ok(fi_atomic(a->ep, &x, 1, NULL, a->peers[1], addr, RK_KEY,
			FI_UINT64, FI_SUM, &x));
	if (base)
		rk_refused(a, base, RK_KEY, addr, 8);
	else
		done(a, FI_WRITE, &x);
	th_ok(fi_fetch_atomic(a->ep, &x, 1, NULL, &was, NULL, a->peers[1], addr,
			      RK_KEY, FI_UINT64, FI_SUM, &x));
	if (fetch)
		rk_refused(a, fetch, RK_KEY, addr, 8);
	else
		done(a, FI_READ, &x);
}

static void contract_R6_atomics(struct th_self *self)
{
	struct rk_bed t;

	(void)self;
	for (int device = 0; device < 2; device++) {
		th_pair_open(&t.a, &t.b, &plain);
		t.r = rk_region_new(&t.b, device, LEN, FI_REMOTE_WRITE);
		try_all(&t.a, 8, 0, FI_EACCES);
		th_settle(&t.a);
		th_eq(t.r.p[8], 3);
		rk_region_free(&t.r);
		t.r = rk_region_new(&t.b, device, LEN, FI_REMOTE_READ);
		try_all(&t.a, 8, FI_EACCES, FI_EACCES);
		th_eq(t.r.p[8], 0);
		rk_bed_close(&t);
	}
}

static void case_M7_last_element(struct th_self *self)
{
	struct rk_bed t;

	(void)self;
	for (int device = 0; device < 2; device++) {
		rk_bed_open(&t, &plain, device, LEN);
		try_all(&t.a, LEN - 8, 0, 0);
		try_all(&t.a, LEN - 7, FI_EINVAL, FI_EINVAL);
		try_all(&t.a, LEN, FI_EINVAL, FI_EINVAL);
		try_all(&t.a, UINT64_MAX - 7, FI_EINVAL, FI_EINVAL);
		th_eq(t.r.p[LEN - 8], 6);
		th_ok(fi_close(&t.r.mr->fid));
		try_all(&t.a, 0, FI_EKEYREJECTED, FI_EKEYREJECTED);
		t.r.mr = NULL;
		rk_bed_close(&t);
	}
}

/* ---- between processes (P1) ---------------------------------------------- */

/* One word of each kind, with what each adder adds. */
struct words {
	_Alignas(64) uint64_t native;	      /* one instruction */
	unsigned char pad[7];		      /* next: not aligned */
	unsigned char crossing[8];	      /* a uint64_t over two lines */
	_Alignas(16) long double complex big; /* 32 bytes */
	_Alignas(16) double complex pair;     /* 16 bytes */
};

enum { ADDERS = 3 };

static void add(struct th_stack *s, size_t off, const void *x,
		enum fi_datatype type)
{
	unsigned char was[32];

	th_post(s, fi_fetch_atomic(s->ep, x, 1, NULL, was, NULL, s->peers[0],
				   off, RK_KEY, type, FI_SUM, was));
	done(s, FI_READ, was);
}

static void adder(struct th_stack *s, unsigned long rounds)
{
	uint64_t one = 1;
	long double complex big = 1 + 2 * I;
	double complex pair = 2 + 1 * I;

	for (unsigned long i = 0; i < rounds; i++) {
		add(s, offsetof(struct words, native), &one, FI_UINT64);
		add(s, offsetof(struct words, crossing), &one, FI_UINT64);
		add(s, offsetof(struct words, big), &big,
		    FI_LONG_DOUBLE_COMPLEX);
		add(s, offsetof(struct words, pair), &pair, FI_DOUBLE_COMPLEX);
	}
}

static void check_words(const struct words *w, unsigned long n, uint64_t own)
{
	uint64_t crossing;

	memcpy(&crossing, w->crossing, 8);
	th_eq(w->native, n + own);
	th_eq(crossing, n);
	th_check(w->big == (long double)n + 2 * (long double)n * I);
	th_check(w->pair == 2 * (double)n + (double)n * I);
}

/* The owner adds by its CPU, and calls nothing of ours meanwhile. */
static void exact(struct th_self *self, bool device)
{
	unsigned long rounds = th_rounds(3000);
	struct rk_region r = { .p = NULL };
	struct words *w = NULL;
	struct th_stack s;
	uint64_t own = 0;

	th_stack_open(&s, &plain);
	th_stack_connect(&s, self);
	if (!self->rank) {
		r = rk_region_new(&s, device, LEN, RK_RW);
		w = (struct words *)(void *)r.p;
	}
	th_barrier_progress(self, &s, "ready");
	if (self->rank)
		adder(&s, rounds);
	for (; w &&
	       rnic_load64_relaxed((rnic_a64 *)(void *)&w->native) <
		       rounds * ADDERS + own &&
	       own < 20000000;
	     own++)
		rnic_add64_relaxed((rnic_a64 *)(void *)&w->native, 1);
	/* no call until all are done: nobody waits for us to make one */
	th_barrier(self, "added");
	th_settle(&s);
	if (w)
		check_words(w, rounds * ADDERS, own);
	th_barrier_progress(self, &s, "checked");
	if (w)
		rk_region_free(&r);
	th_stack_close(&s);
}

static void contract_P1_exact_device(struct th_self *self)
{
	exact(self, true);
}

static void contract_P1_exact_private(struct th_self *self)
{
	exact(self, false);
}

/* ---- RMA that the owner executes ------------------------------------------ */

static void moved(struct th_stack *s, uint64_t flag)
{
	th_eq(th_tx_ok(s).flags, FI_RMA | flag);
}

/* There and back, and out of bounds, by what the owner executes. */
static void move_lens(struct th_stack *s)
{
	static const size_t lens[] = { 1, 8, 1023, 1024, 1025, 5000, 60000 };
	unsigned char *buf = malloc(LEN);
	fi_addr_t to = s->peers[0];

	for (size_t i = 0; i < 7; i++) {
		th_fill(buf, lens[i], i);
		th_ok(fi_write(s->ep, buf, lens[i], NULL, to, 3, RK_KEY, buf));
		moved(s, FI_WRITE);
		memset(buf, 0, LEN);
		th_ok(fi_read(s->ep, buf, lens[i], NULL, to, 3, RK_KEY, buf));
		moved(s, FI_READ);
		th_verify(buf, lens[i], i);
		th_ok(fi_read(s->ep, buf, lens[i], NULL, to, LEN - lens[i] + 1,
			      RK_KEY, buf));
		th_eq(th_tx_err(s).err, FI_EINVAL);
	}
	free(buf);
}

static void without_cma(struct th_self *self)
{
	struct rk_region r = { .p = NULL };
	struct fi_shrimp_stats st;
	struct th_stack s;

	setenv("FI_SHRIMP_CMA", "off", 1);
	th_stack_open(&s, &plain);
	th_stack_connect(&s, self);
	if (!self->rank)
		r = rk_region_new(&s, false, LEN, RK_RW);
	th_barrier_progress(self, &s, "ready");
	if (self->rank)
		move_lens(&s);
	st = probe_stats(&s.fabric->fid);
	th_eq(st.rma_ops[FI_SHRIMP_REACH_CMA], 0);
	if (self->rank)
		/* what is out of bounds is refused without asking */
		th_eq(st.rma_ops[FI_SHRIMP_REACH_OWNER], 14);
	/* the owner sits here, and makes no call of ours */
	th_barrier(self, "moved");
	th_settle(&s);
	if (!self->rank)
		rk_region_free(&r);
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

static const struct CMUnitTest atomic_tests[] = {
	TH_CASE(calls_device, 1, 60),
	TH_CASE(calls_private, 1, 60),
	TH_CASE(calls_self, 1, 60),
	TH_CASE(case_T27_lists, 1, 10),
	TH_CASE(limits, 1, 10),
	TH_CASE(case_T17_inject, 1, 10),
	TH_CASE(contract_R6_atomics, 1, 10),
	TH_CASE(case_M7_last_element, 1, 10),
	TH_CASE(contract_P1_exact_device, ADDERS + 1, 60),
	TH_CASE(contract_P1_exact_private, ADDERS + 1, 60),
	TH_CASE(without_cma, 2, 30),
};

TH_MAIN(atomic_tests)
