/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The life of keys (contract I4): those of the provider never come back, those
 * of the user mean what they were registered for last. Old keys are used at
 * random points between many registrations and closes; 10^5 of them, 10^6 with
 * SHRIMP_LONG=1.
 *
 * Limit: 120 s
 */
#define _GNU_SOURCE
#include "harness.h"
#include "env_probe.h"
#include "rma_kit.h"

#include <stdio.h>

enum {
	TURNS = 100000, /* registrations */
	OLD = 4096,	/* closed keys that are remembered */
	LIVE = 64,	/* regions at a time */
	USER = 500,	/* keys that a user has in turn */
	WORD = 8,	/* bytes of an access */
	SPREAD = 8192,	/* regions of the times: no key cache holds them */
	LOOKS = 20000,	/* lookups of a time */
	BLOCK = 20,	/* of them timed as one */
	TIMES = 3,	/* of two times of one class */
};

static void pair_open(struct th_stack *a, struct th_stack *b, bool prov)
{
	struct th_stack_opts o = rk_opts();

	/* a registration without a system call is a fast one */
	setenv("FI_SHRIMP_PIN", "off", 1);
	if (prov) {
		setenv("FI_SHRIMP_MR_MODE", "prov_key", 1);
		o.mr_mode |= FI_MR_PROV_KEY;
	}
	th_pair_open(a, b, &o);
}

/* One word is read, or written, by @key; how that ended. */
static int use(struct th_stack *a, uint64_t key, bool write, uint64_t *word)
{
	struct rk_outcome e;

	if (write)
		th_ok(fi_write(a->ep, word, WORD, NULL, a->peers[1], 0, key,
			       word));
	else
		th_ok(fi_read(a->ep, word, WORD, NULL, a->peers[1], 0, key,
			      word));
	e = rk_end(a);
	th_ptr_eq(e.context, word);
	if (e.err)
		th_check(e.told && e.data.key == key && !e.moved);
	return e.err;
}

/* ---- the provider's keys ------------------------------------------------------- */

/* The keys of a test. */
struct life {
	struct th_stack a, b;	 /* initiator and owner */
	struct rk_mem m;	 /* the owner's: a line for each live region */
	struct fid_mr *mr[LIVE]; /* live regions */
	uint64_t key[LIVE];	 /* their keys */
	uint64_t old[OLD];	 /* closed ones, at random of all there were */
	unsigned long nold;	 /* closed so far */
	uint64_t *all;		 /* every key there ever was */
	unsigned long n;	 /* their number */
	unsigned long tried;	 /* uses of old ones */
	uint64_t state;		 /* of the random numbers */
};

/* Remembers closed @key: each of them as likely as any other. */
static void remember(struct life *l, uint64_t key)
{
	unsigned long i = l->nold++;

	if (i >= OLD)
		i = th_random(&l->state) % l->nold;
	if (i < OLD)
		l->old[i] = key;
}

static void close_one(struct life *l, unsigned int i)
{
	if (!l->mr[i])
		return;
	th_ok(fi_close(&l->mr[i]->fid));
	l->mr[i] = NULL;
	remember(l, l->key[i]);
}

/* Closes line @i, if need be, and registers it again. */
static void renew(struct life *l, unsigned int i)
{
	uint64_t *p = (uint64_t *)(void *)(l->m.p + 64 * i), got = 0;

	close_one(l, i);
	l->mr[i] = rk_reg(&l->b, p, WORD, RK_RW, 0);
	l->key[i] = fi_mr_key(l->mr[i]);
	l->all[l->n++] = l->key[i];
	*p = l->key[i];
	if (l->n % 4)
		return;
	th_eq(use(&l->a, l->key[i], false, &got), 0);
	th_eq(got, l->key[i]);
}

/* An old key, by a read and by a write: refused, and nothing moves. */
static void try_old(struct life *l)
{
	unsigned long have = l->nold < OLD ? l->nold : OLD;
	uint64_t key, word = 0x5757;

	if (!have)
		return;
	key = l->old[th_random(&l->state) % have];
	th_eq(use(&l->a, key, false, &word), FI_EKEYREJECTED);
	th_eq(word, 0x5757);
	th_eq(use(&l->a, key, true, &word), FI_EKEYREJECTED);
	l->tried++;
}

static int by_value(const void *x, const void *y)
{
	const uint64_t *a = x, *b = y;

	return *a < *b ? -1 : *a > *b;
}

/* No key was there twice; what is live has its own word. */
static void check_life(struct life *l)
{
	for (unsigned int i = 0; i < LIVE; i++)
		th_check(!l->mr[i] || !memcmp(l->m.p + 64 * i, &l->key[i], 8));
	qsort(l->all, l->n, sizeof(*l->all), by_value);
	for (unsigned long i = 1; i < l->n; i++)
		th_check(l->all[i] != l->all[i - 1]);
	for (unsigned int i = 0; i < OLD && i < l->nold; i++) {
		uint64_t word;

		th_eq(use(&l->a, l->old[i], false, &word), FI_EKEYREJECTED);
	}
}

static void contract_I4_provider_keys(struct th_self *self)
{
	static struct life life;
	struct life *l = &life;
	unsigned long turns = th_rounds(TURNS);

	(void)self;
	l->state = 4;
	l->all = calloc(turns, sizeof(*l->all));
	th_check(l->all);
	pair_open(&l->a, &l->b, true);
	l->m = rk_mem_new(&l->b, true, RK_PAGE);
	while (l->n < turns) {
		uint64_t r = th_random(&l->state);

		renew(l, r % LIVE);
		if (r >> 16 & 1)
			try_old(l);
	}
	check_life(l);
	printf("# %lu provider keys, old ones tried %lu times\n", l->n,
	       l->tried);
	for (unsigned int i = 0; i < LIVE; i++)
		close_one(l, i);
	rk_mem_free(&l->m);
	th_pair_close(&l->a, &l->b);
	free(l->all);
}

/* ---- the user's keys ------------------------------------------------------------ */

/* Closes region @i of @mr, or registers it; the word is what it means. */
static void turn(struct th_stack *b, struct rk_mem *m, struct fid_mr **mr,
		 uint64_t key, uint64_t meaning)
{
	uint64_t *p = (uint64_t *)(void *)(m->p + meaning % LIVE * 64);

	if (*mr) {
		th_ok(fi_close(&(*mr)->fid));
		*mr = NULL;
		return;
	}
	*mr = rk_reg(b, p, WORD, FI_REMOTE_READ, key);
	th_eq(fi_mr_key(*mr), key);
}

/*
 * USER keys, closed and chosen again for other memory: a key means the last
 * one, or nothing.
 */
static void contract_I4_user_keys(struct th_self *self)
{
	static struct fid_mr *mr[USER];
	static uint64_t meaning[USER];
	struct th_stack a, b;
	struct rk_mem m;
	uint64_t state = 5, word;

	(void)self;
	pair_open(&a, &b, false);
	m = rk_mem_new(&b, true, RK_PAGE);
	for (uint64_t i = 0; i < LIVE; i++)
		memcpy(m.p + i * 64, &i, sizeof(i));
	for (unsigned long n = th_rounds(TURNS); n; n--) {
		uint64_t r = th_random(&state), i = r % USER;
		uint64_t key = i * UINT64_C(0x1000100010001);

		if (!mr[i])
			meaning[i] = (r >> 16) % LIVE;
		turn(&b, &m, &mr[i], key, meaning[i]);
		i = (r >> 32) % USER;
		key = i * UINT64_C(0x1000100010001);
		th_eq(use(&a, key, false, &word), mr[i] ? 0 : FI_EKEYREJECTED);
		if (mr[i])
			th_eq(word, meaning[i]);
	}
	for (int i = 0; i < USER; i++)
		if (mr[i])
			th_ok(fi_close(&mr[i]->fid));
	rk_mem_free(&m);
	th_pair_close(&a, &b);
}

/* ---- times ------------------------------------------------------------------------- */

/* What a read of 8 bytes takes with keys of a kind: medians, in ns. */
struct took {
	uint64_t one;  /* with one key */
	uint64_t many; /* with any of SPREAD: looked up in the tables */
};

/* In memory of all processes, by kind: user keys, provider keys. */
static struct took *took;

/* A few at a time: what a busy machine does beside is in few of the blocks. */
static uint64_t time_reads(struct th_stack *a, const uint64_t *key, size_t n)
{
	static uint64_t ns[LOOKS / BLOCK];
	uint64_t state = 6, word, t;

	for (int i = 0; i < LOOKS / BLOCK; i++) {
		t = th_now_ns();
		for (int k = 0; k < BLOCK; k++)
			th_eq(use(a, key[th_random(&state) % n], false, &word),
			      0);
		ns[i] = (th_now_ns() - t) / BLOCK;
	}
	qsort(ns, LOOKS / BLOCK, sizeof(*ns), by_value);
	return ns[LOOKS / BLOCK / 2];
}

static void times(struct th_self *self)
{
	static struct fid_mr *mr[SPREAD];
	static uint64_t key[SPREAD];
	bool prov = self->arg != NULL;
	struct took *t = &took[prov];
	struct th_stack a, b;
	struct rk_mem m;

	pair_open(&a, &b, prov);
	m = rk_mem_new(&b, true, RK_PAGE);
	for (uint64_t i = 0; i < SPREAD; i++) {
		mr[i] = rk_reg(&b, m.p, WORD, RK_RW, i << 20 | i);
		key[i] = fi_mr_key(mr[i]);
	}
	time_reads(&a, key, SPREAD);
	t->one = time_reads(&a, key, 1);
	t->many = time_reads(&a, key, SPREAD);
	printf("# %s keys: %" PRIu64 " ns a read with one key, %" PRIu64
	       " with %d\n",
	       prov ? "provider" : "user", t->one, t->many, SPREAD);
	for (int i = 0; i < SPREAD; i++)
		th_ok(fi_close(&mr[i]->fid));
	rk_mem_free(&m);
	th_pair_close(&a, &b);
}

/* True if neither is more than TIMES the other. */
static bool same_class(uint64_t x, uint64_t y)
{
	return x <= TIMES * y && y <= TIMES * x;
}

/*
 * A lookup is of the same class with keys of either kind, cached or not; what
 * the machine did meanwhile is tried again.
 */
static void times_of_both_kinds(void **state)
{
	bool same = false;

	(void)state;
	for (int i = 0; i < 3 && !same; i++) {
		th_run(1, times, NULL, 30);
		th_run(1, times, "provider", 30);
		same = same_class(took[0].one, took[1].one) &&
		       same_class(took[0].many, took[1].many);
	}
	assert_true(same || th_sanitized());
}

static const struct CMUnitTest key_life[] = {
	TH_CASE(contract_I4_provider_keys, 1, 60),
	TH_CASE(contract_I4_user_keys, 1, 60),
	cmocka_unit_test(times_of_both_kinds),
};

int main(int argc, char **argv)
{
	took = probe_shared(2 * sizeof(*took));
	return th_main(argc, argv, "key_life", key_life,
		       sizeof(key_life) / sizeof(*key_life));
}
