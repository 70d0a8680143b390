/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The key cache of an endpoint (contract K1, K2): settings take effect,
 * another process reads the counters, a miss that costs time holds up nobody,
 * and what is cached never stands for what the key meant before.
 *
 * Knows where the tables of a device have their key caches, as a tool does.
 *
 * Limit: 120 s
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env_probe.h"
#include "shm/layout.h"

/* What the processes of a test see. */
struct shared {
	_Atomic bool over;	  /* time is up */
	_Atomic unsigned int go;  /* rounds begun */
	_Atomic bool closed;	  /* in the round */
	_Atomic uint64_t found;	  /* reads that found a key */
	_Atomic uint64_t missed;  /* and that did not */
	_Atomic uint64_t renewed; /* keys that got another meaning */
};

static struct shared *shared;

enum {
	OWNER,
	INITIATOR,
	POLICIES = 4, /* names below */
	WORD = 64,    /* bytes that a key names */
};

static const char *const policy_name[POLICIES] = {
	[RNIC_KEYCACHE_CLOCK] = "clock",
	[RNIC_KEYCACHE_LRU] = "lru",
	[RNIC_KEYCACHE_RANDOM] = "random",
	[RNIC_KEYCACHE_NONE] = "none",
};

static void set(const char *name, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	th_ok(setenv(name, text, 1));
}

/* ---- K1: what another process sees ----------------------------------------------- */

/* The tables of another process, read-only. */
struct tables {
	const struct rnic_header *h; /* mapped */
	size_t len;		     /* bytes of that */
};

static struct tables tables_map(pid_t pid)
{
	struct tables t = { .len = RNIC_PAGE };
	int fd = probe_segment(pid, "shrimp-tables", 0, false);
	void *p;

	th_check(fd >= 0);
	p = mmap(NULL, t.len, PROT_READ, MAP_SHARED, fd, 0);
	th_check(p != MAP_FAILED);
	t.h = p;
	th_eq(t.h->version, RNIC_VERSION);
	t.len = t.h->cache_off + 2 * t.h->cache_stride;
	munmap(p, RNIC_PAGE);
	p = mmap(NULL, t.len, PROT_READ, MAP_SHARED, fd, 0);
	th_check(p != MAP_FAILED);
	t.h = p;
	close(fd);
	return t;
}

/* The key cache of the first endpoint's calls. */
static const struct rnic_cache *tables_cache(const struct tables *t)
{
	return (const struct rnic_cache *)((const char *)t->h +
					   t->h->cache_off);
}

/* Its counters at one time. */
struct counts {
	uint64_t hits, misses, evictions, invalidations;
};

static struct counts count(const struct rnic_cache *c)
{
	const struct counts n = {
		.hits = rnic_load64_relaxed(&c->hits),
		.misses = rnic_load64_relaxed(&c->misses),
		.evictions = rnic_load64_relaxed(&c->evictions),
		.invalidations = rnic_load64_relaxed(&c->invalidations),
	};

	return n;
}

/* A shape, and what a loop over @keys is to count. */
struct shape {
	uint64_t entries, ways;		 /* settings */
	enum rnic_keycache_policy named; /* likewise */
	uint64_t keys;			 /* in turn */
	bool fits;			 /* all hit, else none */
};

static const struct shape shapes[] = {
	{ 16, 16, RNIC_KEYCACHE_LRU, 16, true },
	{ 16, 16, RNIC_KEYCACHE_LRU, 17, false },
	{ 16, 16, RNIC_KEYCACHE_CLOCK, 17, false },
	{ 1, 1, RNIC_KEYCACHE_CLOCK, 2, false },
	{ 64, 4, RNIC_KEYCACHE_RANDOM, 17, true },
	{ 64, 4, RNIC_KEYCACHE_NONE, 3, false },
	{ 65536, 2, RNIC_KEYCACHE_LRU, 1500, true },
};

/* Reads a word of @key. */
static void read_one(struct th_stack *s, uint64_t key)
{
	unsigned char buf[WORD];

	th_ok(fi_read(s->ep, buf, WORD, NULL, s->peers[OWNER], 0, key, buf));
	rk_done(s, FI_READ, buf);
}

/* Reads a word of each key but 0. */
static void read_all(struct th_stack *s, uint64_t keys)
{
	for (uint64_t key = 1; key <= keys; key++)
		read_one(s, key);
}

static void check_shape(const struct shape *h, const struct rnic_cache *c)
{
	bool none = h->named == RNIC_KEYCACHE_NONE;

	th_eq(rnic_load64_relaxed(&c->policy), h->named + 1);
	th_eq(rnic_load64_relaxed(&c->entries), none ? 0 : h->entries);
	th_eq(rnic_load64_relaxed(&c->ways), none ? 0 : h->ways);
	th_eq(rnic_load64_relaxed(&c->miss_ns), 0);
}

/* @was and @is: before and after a loop over all keys. */
static void check_loop(const struct shape *h, const struct counts *was,
		       const struct counts *is)
{
	bool none = h->named == RNIC_KEYCACHE_NONE;

	th_eq(is->hits - was->hits, h->fits ? h->keys : 0);
	th_eq(is->misses - was->misses, h->fits ? 0 : h->keys);
	th_eq(is->evictions - was->evictions, h->fits || none ? 0 : h->keys);
	th_eq(is->invalidations, 0);
}

/* Settings for a fabric that is opened next. */
static void set_shape(const struct shape *h)
{
	set("FI_SHRIMP_KEYCACHE_ENTRIES", h->entries);
	set("FI_SHRIMP_KEYCACHE_WAYS", h->ways);
	th_ok(setenv("FI_SHRIMP_KEYCACHE_POLICY", policy_name[h->named], 1));
}

/* Reads the cache of process @pid, before and after a loop. */
static void k1_owner(struct th_self *self, struct th_stack *s,
		     const struct shape *h, pid_t pid)
{
	struct tables t;
	struct counts was, is;

	th_barrier_progress(self, s, "warm");
	t = tables_map(pid);
	check_shape(h, tables_cache(&t));
	was = count(tables_cache(&t));
	th_barrier_progress(self, s, "before");
	th_barrier_progress(self, s, "after");
	is = count(tables_cache(&t));
	check_loop(h, &was, &is);
	munmap((void *)(uintptr_t)t.h, t.len);
}

/* First contact, by a key of its own; then what happens for ever. */
static void k1_initiator(struct th_self *self, struct th_stack *s,
			 const struct shape *h)
{
	read_one(s, 0);
	for (int i = 0; i < 3; i++)
		read_all(s, h->keys);
	th_barrier_progress(self, s, "warm");
	th_barrier_progress(self, s, "before");
	read_all(s, h->keys);
	th_barrier_progress(self, s, "after");
}

static void k1_shape(struct th_self *self, const struct shape *h)
{
	static struct fid_mr *mr[2048];
	struct th_stack_opts o = rk_opts();
	uint64_t keys = self->rank == OWNER ? h->keys + 1 : 0;
	pid_t pid[2], me = getpid();
	struct th_stack s;
	struct rk_mem m;

	set_shape(h);
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	m = rk_mem_new(&s, true, RK_PAGE);
	for (uint64_t key = 0; key < keys; key++)
		mr[key] = rk_reg(&s, m.p, WORD, RK_RW, key);
	th_gather(self, "registered", &me, pid, sizeof(me));
	if (self->rank == OWNER)
		k1_owner(self, &s, h, pid[INITIATOR]);
	else
		k1_initiator(self, &s, h);
	for (uint64_t key = 0; key < keys; key++)
		th_ok(fi_close(&mr[key]->fid));
	rk_mem_free(&m);
	th_stack_close(&s);
}

static void contract_K1_others_read_it(struct th_self *self)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		k1_shape(self, &shapes[i]);
}

/* ---- K1: what a miss costs --------------------------------------------------------- */

enum {
	MISS_MS = 100, /* a miss */
	ROUNDS = 8,    /* closes within one, at most */
};

/* Withdraws the key while the other one spends its miss. */
static void miss_owner(struct th_stack *s, struct rk_mem *m, unsigned int round)
{
	struct fid_mr *mr = rk_reg(s, m->p, WORD, RK_RW, 1000 + round);

	atomic_store(&shared->closed, false);
	atomic_store(&shared->go, round);
	th_sleep_us(10000);
	th_ok(fi_close(&mr->fid));
	atomic_store(&shared->closed, true);
}

/* True if the close was over before the miss was. */
static bool miss_reader(struct th_stack *s, unsigned int round)
{
	unsigned char buf[WORD];
	struct rk_outcome e;
	uint64_t ns;
	bool first;

	while (atomic_load(&shared->go) != round)
		sched_yield();
	ns = th_now_ns();
	th_ok(fi_read(s->ep, buf, WORD, NULL, s->peers[OWNER], 0, 1000 + round,
		      buf));
	first = atomic_load(&shared->closed);
	th_check(th_now_ns() - ns >= UINT64_C(1000000) * MISS_MS);
	e = rk_end(s);
	/* what was closed before it looks is not found */
	th_check(e.err == 0 || e.err == FI_EKEYREJECTED);
	th_check(e.err == FI_EKEYREJECTED || !first);
	return first;
}

/*
 * A close during a miss is over long before it: once at least, if the machine
 * is busy. Spent inside, the time would hold up every one of them.
 */
static void contract_K1_a_miss_holds_up_nobody(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack s;
	struct fid_mr *mr;
	struct rk_mem m;
	unsigned int first = 0;
	bool over = false, all[2];

	set("FI_SHRIMP_KEYCACHE_MISS_NS", UINT64_C(1000000) * MISS_MS);
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	m = rk_mem_new(&s, true, RK_PAGE);
	mr = rk_reg(&s, m.p, WORD, RK_RW, 1);
	th_barrier_progress(self, &s, "registered");
	if (self->rank == INITIATOR)
		read_one(&s, 1);
	for (unsigned int i = 1; i <= ROUNDS && !over; i++) {
		th_barrier_progress(self, &s, "round");
		if (self->rank == OWNER)
			miss_owner(&s, &m, i);
		else
			first += miss_reader(&s, i);
		over = first == 2;
		th_gather(self, "over", &over, all, sizeof(over));
		over = all[INITIATOR];
	}
	th_check(self->rank == OWNER || first == 2);
	th_ok(fi_close(&mr->fid));
	rk_mem_free(&m);
	th_stack_close(&s);
}

/* ---- K2: old, never wrong ------------------------------------------------------------ */

enum {
	KEYS = 48,  /* more than there are entries */
	CELLS = 96, /* pieces of memory that they may name */
};

/* Keys that come and go. */
struct world {
	struct rk_mem m;	 /* CELLS words of WORD bytes */
	struct fid_mr *mr[KEYS]; /* or NULL */
	unsigned int cell[KEYS]; /* what each names */
	bool used[CELLS];	 /* by a key */
};

/* Gives @k another cell, filled with its byte before anybody can find it. */
static void give(struct th_stack *s, struct world *w, unsigned int k,
		 uint64_t r)
{
	unsigned int c = (unsigned int)(r % CELLS);

	while (w->used[c])
		c = (c + 1) % CELLS;
	w->used[c] = true;
	w->cell[k] = c;
	memset(w->m.p + c * WORD, (int)k, WORD);
	w->mr[k] = rk_reg(s, w->m.p + c * WORD, WORD, RK_RW, k);
}

/* Takes its cell from @k, and fills it with what no key has. */
static void take(struct world *w, unsigned int k)
{
	th_ok(fi_close(&w->mr[k]->fid));
	w->mr[k] = NULL;
	w->used[w->cell[k]] = false;
	memset(w->m.p + w->cell[k] * WORD, 0xff, WORD);
}

/* One access by @a to @k of @w, which must be what @k means now. */
static void try_key(struct th_stack *a, struct world *w, unsigned int k,
		    bool write)
{
	unsigned char *there = w->m.p + w->cell[k] * WORD, buf[WORD];
	struct rk_outcome e;

	memset(buf, (int)k + 128, WORD);
	if (write)
		th_ok(fi_write(a->ep, buf, WORD, NULL, a->peers[1], 0, k, buf));
	else
		th_ok(fi_read(a->ep, buf, WORD, NULL, a->peers[1], 0, k, buf));
	e = rk_end(a);
	th_eq(e.err, w->mr[k] ? 0 : FI_EKEYREJECTED);
	if (!w->mr[k])
		return;
	th_eq(memcmp(buf, there, WORD), 0);
	th_check(there[0] == k || there[0] == k + 128);
	memset(there, (int)k, WORD);
}

/* No cell without a key was touched. */
static void check_cells(const struct world *w)
{
	for (unsigned int c = 0; c < CELLS; c++)
		if (!w->used[c])
			th_verify_byte(w->m.p + c * WORD, WORD, 0xff);
}

/* @a uses the keys of @b, which come and go. */
static void come_and_go(struct th_stack *a, struct th_stack *b, struct world *w)
{
	uint64_t state = 7;

	for (unsigned long i = 0; i < th_rounds(20000); i++) {
		uint64_t r = th_random(&state);
		unsigned int k = (unsigned int)(r >> 8) % KEYS;

		if (r % 8)
			try_key(a, w, k, r & 64);
		else if (w->mr[k])
			take(w, k);
		else
			give(b, w, k, r >> 32);
		if (i % 64 == 0)
			check_cells(w);
	}
}

/*
 * Keys come, go and come back as something else, in one process, one after the
 * other: each access finds what its key means at that time.
 */
static void contract_K2_a_key_means_what_it_means_now(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();

	(void)self;
	set("FI_SHRIMP_KEYCACHE_ENTRIES", 32);
	for (int p = 0; p < POLICIES; p++) {
		struct world w = { .m.p = NULL };
		struct th_stack a, b;

		th_ok(setenv("FI_SHRIMP_KEYCACHE_POLICY", policy_name[p], 1));
		th_pair_open(&a, &b, &o);
		w.m = rk_mem_new(&b, true, CELLS * WORD);
		memset(w.m.p, 0xff, w.m.len);
		come_and_go(&a, &b, &w);
		for (unsigned int k = 0; k < KEYS; k++)
			if (w.mr[k])
				take(&w, k);
		check_cells(&w);
		rk_mem_free(&w.m);
		th_pair_close(&a, &b);
	}
}

/* Changes what keys mean until time is up. */
static void k2_owner(struct th_self *self, struct th_stack *s, uint64_t end)
{
	struct world w = { .m = rk_mem_new(s, true, CELLS * WORD) };
	struct th_deadline patience = th_patience();
	uint64_t state = 5;

	for (unsigned int k = 0; k < KEYS; k++)
		give(s, &w, k, k);
	th_barrier_progress(self, s, "begin");
	while (th_now_ns() < end ||
	       (!atomic_load(&shared->found) && !th_expired(&patience))) {
		uint64_t r = th_random(&state);
		unsigned int k = (unsigned int)(r >> 8) % KEYS;

		take(&w, k);
		give(s, &w, k, r >> 32);
		atomic_fetch_add(&shared->renewed, 1);
		if (r % 16 == 0)
			sched_yield();
	}
	atomic_store(&shared->over, true);
	for (unsigned int k = 0; k < KEYS; k++)
		take(&w, k);
	th_barrier_progress(self, s, "end");
	rk_mem_free(&w.m);
}

/* Reads keys, some often: what is found is that key's, all of it. */
static void k2_reader(struct th_self *self, struct th_stack *s)
{
	uint64_t state = 3;

	th_barrier_progress(self, s, "begin");
	while (!atomic_load(&shared->over)) {
		uint64_t r = th_random(&state);
		uint64_t k = (r >> 8) % (r & 1 ? KEYS : 4);
		unsigned char buf[WORD];
		struct rk_outcome e;

		th_ok(fi_read(s->ep, buf, WORD, NULL, s->peers[OWNER], 0, k,
			      buf));
		e = rk_end(s);
		th_check(e.err == 0 || e.err == FI_EKEYREJECTED);
		if (!e.err)
			th_verify_byte(buf, WORD, (unsigned char)k);
		atomic_fetch_add(e.err ? &shared->missed : &shared->found, 1);
	}
	th_barrier_progress(self, s, "end");
}

/* Two processes race, under each policy. */
static void contract_K2_racing(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack s;

	set("FI_SHRIMP_KEYCACHE_ENTRIES", 16);
	for (int p = 0; p < POLICIES; p++) {
		th_ok(setenv("FI_SHRIMP_KEYCACHE_POLICY", policy_name[p], 1));
		th_stack_open(&s, &o);
		th_stack_connect(&s, self);
		if (self->rank == OWNER)
			k2_owner(self, &s,
				 th_now_ns() + UINT64_C(500000) * rk_ms(1));
		else
			k2_reader(self, &s);
		th_check(atomic_load(&shared->found));
		th_stack_close(&s);
		th_barrier(self, "closed");
		atomic_store(&shared->over, false);
		atomic_store(&shared->found, 0);
		th_barrier(self, "next");
	}
}

static const struct CMUnitTest keycache[] = {
	TH_CASE(contract_K1_others_read_it, 2, 20),
	TH_CASE(contract_K1_a_miss_holds_up_nobody, 2, 20),
	TH_CASE(contract_K2_a_key_means_what_it_means_now, 1, 20),
	TH_CASE(contract_K2_racing, 2, 30),
};

int main(int argc, char **argv)
{
	shared = probe_shared(sizeof(*shared));
	return th_main(argc, argv, "keycache", keycache,
		       sizeof(keycache) / sizeof(keycache[0]));
}
