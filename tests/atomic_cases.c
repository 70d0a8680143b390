/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Public cases of atomics: against a model (A2, A3), lists (A5), concurrency
 * (A6), edges of a region (M7), refusals (M3, M6), inject (T6, T17), an
 * endpoint with itself (T24).
 *
 * Limit: 300 s
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <errno.h>
#include <stdatomic.h>

#include "atomic_ref.h"
#include "env_probe.h"

enum {
	LEN = 65536,	 /* bytes of a region */
	COUNT_MAX = 256, /* elements of an operation here */
	ROOM = COUNT_MAX * AR_MAX,
};

/* Skips the test while the provider has no atomics. */
static void need_atomics(struct th_self *self, struct th_stack *s)
{
	size_t n;

	if (fi_atomicvalid(s->ep, FI_UINT64, FI_SUM, &n) == -FI_ENOSYS)
		th_skip(self, "atomics are not offered");
}

/* A pair, or an endpoint that is its own peer, and a region. */
struct bench {
	struct th_stack a, b;	/* initiator, target (unused if self) */
	struct th_stack *owner; /* of the region */
	bool self;		/* one endpoint only */
	fi_addr_t to;		/* of the target, as the initiator knows it */
	struct rk_mem m;	/* LEN bytes */
	struct fid_mr *mr;	/* with RK_KEY, unless the test closed it */
};

/* Where the target is, and what its memory is. */
enum where { DEVICE, PRIVATE, SELF, WHERES };

static void bench_open(struct th_self *self, struct bench *t, enum where where)
{
	struct th_stack_opts o = rk_atomic_opts();

	/* private memory: the owner's agent executes some of it */
	o.progress = FI_PROGRESS_AUTO;
	memset(t, 0, sizeof(*t));
	t->self = where == SELF;
	if (t->self) {
		th_stack_open(&t->a, &o);
		t->to = th_insert(&t->a, t->a.addr);
	} else {
		th_pair_open(&t->a, &t->b, &o);
		t->to = t->a.peers[1];
	}
	t->owner = t->self ? &t->a : &t->b;
	need_atomics(self, &t->a);
	t->m = rk_mem_new(t->owner, where != PRIVATE, LEN);
	t->mr = rk_reg(t->owner, t->m.p, LEN, RK_RW, RK_KEY);
}

static void bench_close(struct bench *t)
{
	if (t->mr)
		th_ok(fi_close(&t->mr->fid));
	rk_mem_free(&t->m);
	if (t->self)
		th_stack_close(&t->a);
	else
		th_pair_close(&t->a, &t->b);
}

/* ---- one operation --------------------------------------------------------- */

/* An operation on @count elements from byte @off of the region on. */
struct op {
	enum ar_kind kind;     /* which call */
	enum fi_datatype type; /* of the elements */
	enum fi_op op;	       /* what to do */
	size_t count;	       /* elements */
	uint64_t off;	       /* of the first one */
	char x[ROOM];	       /* operands */
	char c[ROOM];	       /* compares */
	char before[ROOM];     /* result */
};

static ssize_t post(struct bench *t, struct op *o)
{
	struct fid_ep *ep = t->a.ep;

	if (o->kind == AR_BASE)
		return fi_atomic(ep, o->x, o->count, NULL, t->to, o->off,
				 RK_KEY, o->type, o->op, o);
	if (o->kind == AR_FETCH)
		return fi_fetch_atomic(ep, o->x, o->count, NULL, o->before,
				       NULL, t->to, o->off, RK_KEY, o->type,
				       o->op, o);
	return fi_compare_atomic(ep, o->x, o->count, NULL, o->c, NULL,
				 o->before, NULL, t->to, o->off, RK_KEY,
				 o->type, o->op, o);
}

/* Posts it as often as it takes; it succeeds. */
static void run(struct bench *t, struct op *o)
{
	struct th_deadline dl = th_patience();
	struct rk_outcome e;
	ssize_t ret;

	while ((ret = post(t, o)) == -FI_EAGAIN) {
		th_progress(&t->a);
		th_check(!th_expired(&dl));
	}
	th_ok(ret);
	e = rk_end(&t->a);
	th_eq(e.err, 0);
	th_check(e.flags & FI_ATOMIC);
	th_ptr_eq(e.context, o);
}

/* It ends with error @err; nothing changes. */
static void run_refused(struct bench *t, struct op *o, int err)
{
	unsigned char *copy = malloc(LEN);
	struct rk_outcome e;

	th_check(copy);
	memcpy(copy, t->m.p, LEN);
	memset(o->before, 0x77, ROOM);
	th_ok(post(t, o));
	e = rk_end(&t->a);
	th_eq(e.err, err);
	th_ptr_eq(e.context, o);
	th_eq(memcmp(copy, t->m.p, LEN), 0);
	th_verify_byte((unsigned char *)o->before, ROOM, 0x77);
	free(copy);
}

/* The most elements that may be given; 0: not valid. */
static size_t max_count(struct th_stack *s, enum ar_kind kind,
			enum fi_datatype type, enum fi_op op)
{
	size_t n = 0;
	int ret;

	if (kind == AR_BASE)
		ret = fi_atomicvalid(s->ep, type, op, &n);
	else if (kind == AR_FETCH)
		ret = fi_fetch_atomicvalid(s->ep, type, op, &n);
	else
		ret = fi_compare_atomicvalid(s->ep, type, op, &n);
	th_check(ret == 0 || ret == -FI_EOPNOTSUPP || ret == -FI_EINVAL);
	return ret ? 0 : n;
}

/* ---- A2, A3: against the model ---------------------------------------------- */

static void op_randomise(struct bench *t, struct op *o, uint64_t *state)
{
	size_t size = ar_size(o->type);

	for (size_t i = 0; i < o->count; i++) {
		ar_random(o->type, t->m.p + o->off + i * size, state);
		ar_random(o->type, o->x + i * size, state);
		ar_random(o->type, o->c + i * size, state);
	}
}

static void op_check(struct bench *t, const struct op *o, char *want)
{
	size_t size = ar_size(o->type);

	for (size_t i = 0; i < o->count; i++) {
		char *w = want + i * size;
		bool same = o->kind == AR_BASE ||
			    ar_same(o->type, o->before + i * size, w);

		ar_apply(o->type, o->op, w, o->x + i * size, o->c + i * size);
		if (!same || !ar_same(o->type, w, t->m.p + o->off + i * size))
			th_fail(__FILE__, __LINE__,
				"type %d, op %d, kind %d, element %zu of %zu "
				"at %" PRIu64 ": %s is wrong",
				o->type, o->op, o->kind, i, o->count, o->off,
				same ? "the target" : "the result");
	}
}

/* One operation is what the model says; its neighbours stay. */
static void model_one(struct bench *t, struct op *o, uint64_t *state)
{
	static char want[ROOM];
	size_t len = o->count * ar_size(o->type);
	unsigned char *end = t->m.p + o->off + len;

	op_randomise(t, o, state);
	memcpy(want, t->m.p + o->off, len);
	memset(t->m.p, 0x5a, o->off);
	memset(end, 0x5a, 64);
	run(t, o);
	op_check(t, o, want);
	th_verify_byte(t->m.p, o->off, 0x5a);
	th_verify_byte(end, 64, 0x5a);
}

static void model_counts(struct bench *t, struct op *o, size_t max,
			 uint64_t *state)
{
	size_t counts[] = { 1, 2, 3, 7, max };
	size_t size = ar_size(o->type);

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		o->count = counts[i] < max ? counts[i] : max;
		if (o->count * size > ROOM)
			o->count = ROOM / size;
		for (uint64_t off = 0; off < 2; off++) {
			/* aligned to all that may matter, and not at all */
			o->off = 64 + off * 3;
			model_one(t, o, state);
		}
	}
}

/* All that is valid is done; all that makes sense is valid. */
static void model_all(struct bench *t, uint64_t *state)
{
	static struct op o;

	for (int kind = 0; kind < AR_KINDS; kind++)
		for (int type = 0; type < AR_TYPES; type++)
			for (int op = 0; op < AR_OPS; op++) {
				size_t max;

				o.kind = (enum ar_kind)kind;
				o.type = (enum fi_datatype)type;
				o.op = (enum fi_op)op;
				max = max_count(&t->a, o.kind, o.type, o.op);
				th_eq(max > 0, ar_valid(o.type, o.op, o.kind));
				if (max)
					model_counts(t, &o, max, state);
			}
}

static void case_A2_model(struct th_self *self)
{
	uint64_t state = 2;
	struct bench t;

	for (int where = 0; where < WHERES; where++) {
		bench_open(self, &t, (enum where)where);
		model_all(&t, &state);
		bench_close(&t);
	}
}

/* The types that clients have been refused elsewhere. */
static void case_A3_small_and_odd_types(struct th_self *self)
{
	static const enum fi_datatype types[] = {
		FI_INT8,	FI_UINT8,	   FI_INT16,  FI_UINT16,
		FI_LONG_DOUBLE, FI_DOUBLE_COMPLEX, FI_INT128, FI_UINT128
	};
	struct fi_atomic_attr attr;
	struct bench t;

	bench_open(self, &t, DEVICE);
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		th_check(max_count(&t.a, AR_BASE, types[i], FI_SUM) > 0);
		th_check(max_count(&t.a, AR_FETCH, types[i], FI_ATOMIC_READ) >
			 0);
		th_check(max_count(&t.a, AR_COMPARE, types[i], FI_CSWAP) > 0);
		th_ok(fi_query_atomic(t.a.domain, types[i], FI_SUM, &attr, 0));
		th_eq(attr.size, ar_size(types[i]));
		th_check(attr.count > 0);
	}
	bench_close(&t);
}

/* ---- A5: lists -------------------------------------------------------------------- */

enum { LISTS = 4, ELEMENTS = 4 + 1 + 0 + 3 };

/* Four entries here, of which one is empty; @nthere at the target. */
static void lists_one(struct bench *t, size_t nthere)
{
	static const size_t counts[LISTS] = { 4, 1, 0, 3 };
	uint64_t x[ELEMENTS], before[ELEMENTS], *mem = (uint64_t *)t->m.p;
	struct fi_ioc ioc[LISTS], result[1] = { { before, ELEMENTS } };
	struct fi_rma_ioc there[2] = {
		{ 0, nthere == 1 ? ELEMENTS : 5, RK_KEY },
		{ 800, ELEMENTS - 5, RK_KEY },
	};
	struct fi_msg_atomic m = { .msg_iov = ioc,
				   .iov_count = LISTS,
				   .addr = t->to,
				   .rma_iov = there,
				   .rma_iov_count = nthere,
				   .datatype = FI_UINT64,
				   .op = FI_SUM,
				   .context = t };
	size_t at = 0;

	for (size_t i = 0; i < LISTS; i++) {
		ioc[i] = (struct fi_ioc){ x + at, counts[i] };
		at += counts[i];
	}
	for (size_t i = 0; i < ELEMENTS; i++) {
		x[i] = i + 1;
		mem[i] = 100 * i;
		mem[100 + i] = 100 * (i + 5);
	}
	th_ok(fi_fetch_atomicmsg(t->a.ep, &m, result, NULL, 1, FI_COMPLETION));
	th_eq(rk_end(&t->a).err, 0);
	th_ok(fi_atomicmsg(t->a.ep, &m, FI_COMPLETION));
	th_eq(rk_end(&t->a).err, 0);
	for (size_t i = 0; i < ELEMENTS; i++) {
		size_t k = i < 5 || nthere == 1 ? i : 100 + i - 5;

		th_eq(before[i], 100 * i);
		th_eq(mem[k], 100 * i + 2 * (i + 1));
	}
}

static void case_A5_lists(struct th_self *self)
{
	struct bench t;
	uint64_t x[3] = { 1, 2, 3 };
	struct fi_ioc ioc[2] = { { x, 2 }, { x + 2, 1 } };

	for (int where = 0; where < WHERES; where++) {
		bench_open(self, &t, (enum where)where);
		lists_one(&t, 1);
		lists_one(&t, 2);
		memset(t.m.p, 0, 64);
		th_ok(fi_atomicv(t.a.ep, ioc, NULL, 2, t.to, 0, RK_KEY,
				 FI_UINT64, FI_SUM, &t));
		th_eq(rk_end(&t.a).err, 0);
		th_eq(memcmp(t.m.p, x, sizeof(x)), 0);
		bench_close(&t);
	}
}

/* ---- A6: all at once ---------------------------------------------------------------- */

/*
 * Rank 0 owns the words and adds to them by its own CPU and through itself,
 * the others add and subtract from outside: the sums are exact.
 */
static void a6_add(struct th_stack *s, fi_addr_t to, uint64_t off, int64_t n,
		   enum fi_datatype type)
{
	int64_t before;

	th_ok(fi_fetch_atomic(s->ep, &n, 1, NULL, &before, NULL, to, off,
			      RK_KEY, type, FI_SUM, s));
	th_eq(rk_end(s).err, 0);
}

static void a6_work(struct th_self *self, struct th_stack *s, struct rk_mem *m,
		    unsigned long n)
{
	_Atomic uint64_t *word = (_Atomic uint64_t *)(void *)m->p;

	for (unsigned long i = 0; i < n; i++) {
		a6_add(s, s->peers[0], 0, 3, FI_INT64);
		a6_add(s, s->peers[0], 0, -1, FI_INT64);
		/* a word that no single instruction changes */
		a6_add(s, s->peers[0], 100 - 3, 1, FI_UINT64);
		if (!self->rank)
			atomic_fetch_add(word, 5);
	}
}

static void a6(struct th_self *self, bool device)
{
	struct th_stack_opts o = rk_atomic_opts();
	unsigned long n = th_rounds(3000);
	uint64_t odd;
	struct fid_mr *mr;
	struct th_stack s;
	struct rk_mem m;

	o.progress = FI_PROGRESS_AUTO;
	th_stack_open(&s, &o);
	need_atomics(self, &s);
	th_stack_connect(&s, self);
	m = rk_mem_new(&s, device, LEN);
	mr = rk_reg(&s, m.p, LEN, RK_RW, RK_KEY);
	th_barrier_progress(self, &s, "registered");
	a6_work(self, &s, &m, n);
	th_barrier_progress(self, &s, "added");
	if (!self->rank) {
		th_eq(*(uint64_t *)(void *)m.p,
		      n * (2 * (uint64_t)self->size + 5));
		memcpy(&odd, m.p + 100 - 3, 8);
		th_eq(odd, n * (uint64_t)self->size);
	}
	th_ok(fi_close(&mr->fid));
	rk_mem_free(&m);
	th_stack_close(&s);
}

static void case_A6_device(struct th_self *self)
{
	a6(self, true);
}

static void case_A6_private(struct th_self *self)
{
	a6(self, false);
}

/* ---- M7: the last element -------------------------------------------------------------- */

/* Compare-swap and fetch-add at the end of a region of odd size. */
static void m7_one(struct bench *t, enum fi_datatype type, size_t odd)
{
	static struct op o;
	size_t size = ar_size(type);
	uint64_t state = 7;
	static const struct {
		enum ar_kind kind;
		enum fi_op op;
	} calls[] = { { AR_COMPARE, FI_CSWAP },
		      { AR_FETCH, FI_SUM },
		      { AR_BASE, FI_SUM } };

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		o = (struct op){ .kind = calls[i].kind,
				 .op = calls[i].op,
				 .type = type,
				 .count = 1 };
		o.off = odd - size;
		op_randomise(t, &o, &state);
		run(t, &o);
		for (o.off = odd - size + 1; o.off <= odd; o.off++)
			run_refused(t, &o, FI_EINVAL);
		o.off = UINT64_MAX;
		run_refused(t, &o, FI_EINVAL);
	}
}

static void case_M7_last_element(struct th_self *self)
{
	static const enum fi_datatype types[] = { FI_UINT8,
						  FI_UINT16,
						  FI_UINT32,
						  FI_INT64,
						  FI_UINT128,
						  FI_DOUBLE_COMPLEX,
						  FI_LONG_DOUBLE_COMPLEX };
	enum { ODD = 1003 };
	struct bench t;

	for (int where = 0; where < WHERES; where++) {
		bench_open(self, &t, (enum where)where);
		th_ok(fi_close(&t.mr->fid));
		t.mr = rk_reg(t.owner, t.m.p, ODD, RK_RW, RK_KEY);
		for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
			m7_one(&t, types[i], ODD);
		bench_close(&t);
	}
}

/* ---- M3, M6: refusals ---------------------------------------------------------------------- */

static struct op word_op(enum ar_kind kind)
{
	static const enum fi_op ops[] = { FI_SUM, FI_SUM, FI_CSWAP };

	return (struct op){ .kind = kind,
			    .type = FI_UINT64,
			    .op = ops[kind],
			    .count = 1,
			    .off = 8 };
}

static void case_M3_atomic_on_closed(struct th_self *self)
{
	struct bench t;

	bench_open(self, &t, DEVICE);
	for (int i = 0; i < 20; i++)
		for (int kind = 0; kind < AR_KINDS; kind++) {
			struct op o = word_op((enum ar_kind)kind);

			run(&t, &o);
			th_ok(fi_close(&t.mr->fid));
			run_refused(&t, &o, FI_EKEYREJECTED);
			t.mr = rk_reg(t.owner, t.m.p, LEN, RK_RW, RK_KEY);
		}
	bench_close(&t);
}

/* Base needs the right to write; those that fetch need both. */
static void case_M6_atomic_rights(struct th_self *self)
{
	static const uint64_t access[] = { FI_REMOTE_READ, FI_REMOTE_WRITE };
	struct bench t;

	bench_open(self, &t, DEVICE);
	for (int i = 0; i < 2; i++) {
		th_ok(fi_close(&t.mr->fid));
		t.mr = rk_reg(t.owner, t.m.p, LEN, access[i], RK_KEY);
		for (int kind = 0; kind < AR_KINDS; kind++) {
			struct op o = word_op((enum ar_kind)kind);

			if (kind == AR_BASE && access[i] == FI_REMOTE_WRITE)
				run(&t, &o);
			else
				run_refused(&t, &o, FI_EACCES);
		}
	}
	bench_close(&t);
}

/* ---- T6, T17: inject ------------------------------------------------------------------------ */

static void case_T6_inject_atomic(struct th_self *self)
{
	unsigned long n = th_rounds(200000);
	uint64_t one = 1, rss = 0, sum;
	struct bench t;

	for (int where = 0; where < WHERES; where++) {
		bench_open(self, &t, (enum where)where);
		for (unsigned long i = 0; i < n; i++) {
			ssize_t ret =
				fi_inject_atomic(t.a.ep, &one, 1, t.to, 0,
						 RK_KEY, FI_UINT64, FI_SUM);

			if (i == n / 10)
				rss = probe_status("VmRSS");
			if (ret == -FI_EAGAIN) {
				th_progress(&t.a);
				i--;
				continue;
			}
			th_ok(ret);
		}
		if (!th_sanitized())
			th_check(probe_status("VmRSS") <= rss + 1024);
		do {
			th_progress(&t.a);
			memcpy(&sum, t.m.p, sizeof(sum));
		} while (sum < n);
		th_eq(sum, n);
		th_quiet(&t.a, 2);
		bench_close(&t);
	}
}

/* The operand may be used again at once. */
static void t17(struct bench *t, uint64_t flags)
{
	uint64_t x;
	struct fi_ioc ioc = { &x, 1 };
	struct fi_rma_ioc there = { 0, 1, RK_KEY };
	struct fi_msg_atomic m = { .msg_iov = &ioc,
				   .iov_count = 1,
				   .addr = t->to,
				   .rma_iov = &there,
				   .rma_iov_count = 1,
				   .datatype = FI_UINT64,
				   .op = FI_SUM,
				   .context = t };

	memset(t->m.p, 0, LEN);
	for (uint64_t i = 0; i < 1000; i++) {
		there.addr = i * 8;
		x = i;
		while (fi_atomicmsg(t->a.ep, &m, flags) == -FI_EAGAIN)
			th_progress(&t->a);
		x = UINT64_MAX / 2;
	}
	for (uint64_t i = 0; i < 1000; i++)
		th_eq(rk_end(&t->a).err, 0);
	for (uint64_t i = 0; i < 1000; i++)
		th_eq(((uint64_t *)(void *)t->m.p)[i], i);
}

static void case_T17_atomicmsg_inject(struct th_self *self)
{
	struct bench t;

	for (int where = 0; where < WHERES; where++) {
		bench_open(self, &t, (enum where)where);
		t17(&t, FI_INJECT | FI_COMPLETION);
		t17(&t, FI_INJECT | FI_DELIVERY_COMPLETE | FI_COMPLETION);
		bench_close(&t);
	}
}

static const struct CMUnitTest atomic_cases[] = {
	TH_CASE(case_A2_model, 1, 120),
	TH_CASE(case_A3_small_and_odd_types, 1, 20),
	TH_CASE(case_A5_lists, 1, 20),
	TH_CASE(case_A6_device, 3, 60),
	TH_CASE(case_A6_private, 3, 60),
	TH_CASE(case_M7_last_element, 1, 60),
	TH_CASE(case_M3_atomic_on_closed, 1, 20),
	TH_CASE(case_M6_atomic_rights, 1, 20),
	TH_CASE(case_T6_inject_atomic, 1, 60),
	TH_CASE(case_T17_atomicmsg_inject, 1, 30),
};

TH_MAIN(atomic_cases)
