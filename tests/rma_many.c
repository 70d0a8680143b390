/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Many regions (M14), many threads (M18): all work, and all that they took is
 * given back.
 *
 * Limit: 300 s
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "env_probe.h"

/* ---- M14 ------------------------------------------------------------------ */

enum {
	REGIONS = 100000, /* registered at once */
	SMALL = 64,	  /* bytes of each */
	SPARE = 2,	  /* every so many bytes are in no region */
	OPS = 20000,	  /* operations on random ones */
};

/* All regions and the memory they are in. */
struct many {
	struct th_stack a, b; /* initiator, owner */
	struct rk_mem m;      /* twice as much as the regions have */
	struct fid_mr **mr;   /* by number, NULL: closed */
	uint64_t *order;      /* all numbers, mixed */
	size_t n;	      /* regions */
	uint64_t state;	      /* of the random numbers */
};

static unsigned char *many_at(const struct many *t, size_t i)
{
	return t->m.p + i * SMALL * SPARE;
}

static void many_open(struct many *t, bool device)
{
	struct th_stack_opts o = rk_opts();

	t->n = th_sanitized() ? REGIONS / 10 : REGIONS;
	t->state = 14;
	th_pair_open(&t->a, &t->b, &o);
	t->m = rk_mem_new(&t->b, device, t->n * SMALL * SPARE);
	t->mr = calloc(t->n, sizeof(struct fid_mr *));
	t->order = calloc(t->n, sizeof(*t->order));
	th_check(t->mr && t->order);
	for (size_t i = 0; i < t->n; i++)
		t->order[i] = i;
}

static void many_mix(struct many *t)
{
	for (size_t i = t->n - 1; i; i--) {
		size_t k = th_random(&t->state) % (i + 1);
		uint64_t x = t->order[i];

		t->order[i] = t->order[k];
		t->order[k] = x;
	}
}

static void many_register(struct many *t)
{
	for (size_t i = 0; i < t->n; i++)
		t->mr[i] = rk_reg(&t->b, many_at(t, i), SMALL, RK_RW,
				  UINT64_C(0x1000000000) * i + i);
}

/* One operation on region @i. */
static void many_op(struct many *t, size_t i)
{
	uint64_t key = fi_mr_key(t->mr[i]);
	unsigned char buf[SMALL];

	th_fill(buf, SMALL, i);
	th_ok(fi_write(t->a.ep, buf, SMALL, NULL, t->a.peers[1], 0, key, buf));
	rk_done(&t->a, FI_WRITE, buf);
	th_verify(many_at(t, i), SMALL, i);
	th_verify_byte(many_at(t, i) + SMALL, SMALL, 0);
	many_at(t, i)[0] ^= 1;
	th_ok(fi_read(t->a.ep, buf, SMALL, NULL, t->a.peers[1], 0, key, buf));
	rk_done(&t->a, FI_READ, buf);
	th_eq(memcmp(buf, many_at(t, i), SMALL), 0);
}

static void many_use(struct many *t)
{
	for (unsigned long i = 0; i < th_rounds(OPS); i++)
		many_op(t, th_random(&t->state) % t->n);
}

/* In random order; now and then one that is still open is used. */
static void many_close(struct many *t)
{
	many_mix(t);
	for (size_t i = 0; i < t->n; i++) {
		size_t last = t->order[t->n - 1];

		th_ok(fi_close(&t->mr[t->order[i]]->fid));
		t->mr[t->order[i]] = NULL;
		if (i % 100 == 0 && t->mr[last])
			many_op(t, last);
	}
}

static void many_free(struct many *t)
{
	rk_mem_free(&t->m);
	free(t->mr);
	free(t->order);
	th_pair_close(&t->a, &t->b);
}

/*
 * Three generations: the second finds all slots and table pages that the
 * first one had, the third shows that there is no slow growth.
 */
static void case_M14_many(struct th_self *self)
{
	size_t locked = rk_locked();
	uint64_t kib[3], rss[3];
	struct many t;

	many_open(&t, self->arg == NULL);
	for (int i = 0; i < 3; i++) {
		many_register(&t);
		many_use(&t);
		many_close(&t);
		th_eq(rk_locked(), locked);
		kib[i] = probe_segment_kib("shrimp-tables");
		rss[i] = probe_status("VmRSS");
	}
	/* slots wait for a while until they are used again */
	th_check(kib[1] <= kib[0] + kib[0] / 4 + 1024);
	th_check(kib[2] <= kib[1] + 64);
	if (!th_sanitized())
		th_check(rss[2] <= rss[1] + rss[1] / 8 + 4096);
	many_free(&t);
	th_eq(rk_locked(), locked);
}

static void case_M14_private(void **state)
{
	(void)state;
	th_run(1, case_M14_many, "private", 120);
}

/* ---- M18 ------------------------------------------------------------------ */

enum {
	REGISTRARS = 16, /* threads that register and close */
	MOVERS = 4,	 /* threads that do RMA */
	SLICES = 32,	 /* of the arena */
	LANE = 256,	 /* bytes of a slice for each mover */
	SLICE = LANE * MOVERS,
	KEYS = 4, /* of each registrar */
	STEADY = 1000,
};

/* What the threads share. */
struct crowd {
	struct th_stack s;	  /* owner of the memory and the domain */
	struct rk_mem m;	  /* SLICES slices */
	_Atomic bool over;	  /* time is up */
	_Atomic uint64_t closes;  /* regions closed */
	_Atomic uint64_t good;	  /* operations that succeeded */
	_Atomic uint64_t refused; /* and that did not */
};

/* One thread. */
struct member {
	struct crowd *c;  /* what is shared */
	pthread_t thread; /* itself */
	unsigned int no;  /* its number */
};

static void *registrar(void *arg)
{
	struct member *me = arg;
	struct crowd *c = me->c;
	uint64_t state = me->no;
	struct fid_mr *mr[KEYS];

	while (!atomic_load(&c->over)) {
		for (unsigned int i = 0; i < KEYS; i++) {
			uint64_t r = th_random(&state);
			size_t at = r % SLICES;
			size_t n = 1 + (r >> 8) % (SLICES - at);

			mr[i] = rk_reg(&c->s, c->m.p + at * SLICE, n * SLICE,
				       r >> 16 & 1 ? RK_RW : FI_REMOTE_WRITE,
				       me->no * KEYS + i);
		}
		sched_yield();
		for (unsigned int i = 0; i < KEYS; i++)
			th_ok(fi_close(&mr[i]->fid));
		atomic_fetch_add(&c->closes, KEYS);
	}
	return NULL;
}

/* A write or read at slice @n of region @key; it may be refused. */
static void mover_op(struct member *me, struct th_stack *s, uint64_t r)
{
	uint64_t key = r % (REGISTRARS * KEYS), n = (r >> 8) % 8;
	uint64_t off = n * SLICE + (uint64_t)me->no * LANE;
	unsigned char buf[LANE];
	struct rk_outcome e;

	memset(buf, (int)me->no + 1, LANE);
	if (r >> 16 & 1)
		th_ok(fi_write(s->ep, buf, LANE, NULL, s->peers[0], off, key,
			       buf));
	else
		th_ok(fi_read(s->ep, buf, LANE, NULL, s->peers[0], off, key,
			      buf));
	e = rk_end(s);
	th_ptr_eq(e.context, buf);
	if (e.err)
		th_check(e.err == FI_EKEYREJECTED || e.err == FI_EINVAL ||
			 (e.err == FI_EACCES && !(r >> 16 & 1)));
	else
		/* only we write there, one value, or nobody has yet */
		th_check(buf[0] == me->no + 1 || buf[0] == 0);
	atomic_fetch_add(e.err ? &me->c->refused : &me->c->good, 1);
}

/* A region of its own stays open through it all. */
static void mover_steady(struct member *me, struct th_stack *s,
			 unsigned char *mine, uint64_t i)
{
	unsigned char buf[LANE];

	th_fill(buf, LANE, i);
	th_ok(fi_write(s->ep, buf, LANE, NULL, s->peers[0], 0, STEADY + me->no,
		       buf));
	rk_done(s, FI_WRITE, buf);
	th_verify(mine, LANE, i);
}

static void *mover(void *arg)
{
	struct member *me = arg;
	struct th_stack_opts o = rk_opts();
	unsigned char mine[LANE];
	uint64_t state = 100 + me->no;
	struct fid_mr *mr;
	struct th_stack s;

	o.domain_of = &me->c->s;
	th_stack_open(&s, &o);
	s.peers = calloc(1, sizeof(*s.peers));
	th_check(s.peers);
	s.peers[0] = th_insert(&s, me->c->s.addr);
	mr = rk_reg(&me->c->s, mine, LANE, RK_RW, STEADY + me->no);
	for (uint64_t i = 0; !atomic_load(&me->c->over); i++) {
		mover_op(me, &s, th_random(&state));
		if (i % 16 == 0)
			mover_steady(me, &s, mine, i);
	}
	th_ok(fi_close(&mr->fid));
	th_stack_close(&s);
	return NULL;
}

static void crowd_run(struct crowd *c)
{
	struct member m[REGISTRARS + MOVERS];

	for (unsigned int i = 0; i < REGISTRARS + MOVERS; i++) {
		bool moves = i >= REGISTRARS;

		m[i] = (struct member){ .c = c,
					.no = moves ? i - REGISTRARS : i };
		th_eq(pthread_create(&m[i].thread, NULL,
				     moves ? mover : registrar, &m[i]),
		      0);
	}
	/* a busy machine takes longer until something has happened */
	for (unsigned int ms = 0;
	     ms < rk_ms(2) || (ms < 30000 && (atomic_load(&c->good) < 100 ||
					      atomic_load(&c->closes) < 100));
	     ms += 10)
		th_sleep_us(10000);
	atomic_store(&c->over, true);
	for (unsigned int i = 0; i < REGISTRARS + MOVERS; i++)
		th_eq(pthread_join(m[i].thread, NULL), 0);
}

static void case_M18_threads(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	size_t locked = rk_locked();
	struct crowd c = { .over = false };

	(void)self;
	o.threading = FI_THREAD_SAFE;
	th_stack_open(&c.s, &o);
	c.m = rk_mem_new(&c.s, true, (size_t)SLICES * SLICE);
	crowd_run(&c);
	for (size_t i = 0; i < c.m.len; i++) {
		unsigned int lane = (unsigned int)(i / LANE % MOVERS);

		th_check(c.m.p[i] == 0 || c.m.p[i] == lane + 1);
	}
	th_check(atomic_load(&c.good) > 0 && atomic_load(&c.closes) > 0);
	th_eq(rk_locked(), locked);
	rk_mem_free(&c.m);
	th_stack_close(&c.s);
}

static const struct CMUnitTest rma_many[] = {
	TH_CASE(case_M14_many, 1, 120),
	cmocka_unit_test(case_M14_private),
	TH_CASE(case_M18_threads, 1, 60),
};

TH_MAIN(rma_many)
