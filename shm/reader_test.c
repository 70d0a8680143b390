/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Lookup by key: what it finds, what it refuses, from the same process and
 * from children, while the owner invalidates and reuses.
 */
#include "shm/reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shm/grace.h"
#include "shm/mpt.h"
#include "shm/mtt.h"

enum {
	LIMIT_S = 60,	  /* the whole program ends by then */
	READERS = 2,	  /* processes of the stress */
	REGIONS = 8,	  /* keys alive at a time in it */
	CELLS = 64,	  /* pieces of memory that they name */
	STRESS_MS = 2000, /* its length */
	LATE_MS = 20000,  /* what a loaded machine may take more */
	CLOSES = 100,	  /* at least; a close waits for readers */
	BURST = 4,	  /* looks at a piece within one section */
};

#define FAR_VA UINT64_C(0x123456789000)

static const struct rnic_device_cfg cfg = {
	.heap_bytes = 1 << 20,
	.membarrier = true,
};

/* A device with a place and a table, and a reader in this process. */
struct bed {
	struct rnic_device dev;	   /* the owner's */
	struct rnic_place place;   /* where readers claim lanes */
	struct rnic_addr addr;	   /* its name */
	struct rnic_mpt_owner mpt; /* its table */
	struct rnic_remote *r;	   /* as a peer sees it */
	struct rnic_lane *lane;	   /* claimed there */
	struct rnic_ctx c;	   /* of the reader */
	struct rnic_target t;	   /* of the reader */
};

/* As most are. */
static const struct rnic_keycache_cfg usual;

/*
 * Makes this process a reader of @b. @cache: of an @usual one; NULL: the
 * device's.
 */
static int attach(struct bed *b, void *cache)
{
	unsigned int index;
	int ret = rnic_remote_open(&b->addr, RNIC_ATTACH_PROC, &b->r);

	if (!ret)
		ret = rnic_remote_claim(b->r, &b->addr, &b->lane, &index);
	if (ret)
		return ret;
	if (cache)
		ret = rnic_ctx_init(&b->c, cache, &usual);
	else
		ret = rnic_ctx_open(&b->c, &b->dev, b->place.index, 1);
	return ret ? ret : rnic_target_init(&b->t, b->r, b->lane, 1);
}

/* A bed whose device has key caches of @keys. */
static struct bed *bed_new(const struct rnic_keycache_cfg *keys)
{
	struct rnic_device_cfg c = cfg;
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	c.keys = *keys;
	assert_int_equal(rnic_device_open(&b->dev, &c), 0);
	assert_int_equal(rnic_place_open(&b->dev, &b->place), 0);
	rnic_place_addr(&b->place, &b->addr);
	assert_int_equal(rnic_mpt_init(&b->mpt, &b->dev), 0);
	return b;
}

static int setup(void **state)
{
	*state = bed_new(&usual);
	return 0;
}

static int setup_reader(void **state)
{
	setup(state);
	assert_int_equal(attach(*state, NULL), 0);
	return 0;
}

static int setup_large(void **state)
{
	static const struct rnic_keycache_cfg large = { .entries = 4096 };

	*state = bed_new(&large);
	assert_int_equal(attach(*state, NULL), 0);
	return 0;
}

static int setup_slow(void **state)
{
	static const struct rnic_keycache_cfg slow = { .miss_ns = 1000000 };

	*state = bed_new(&slow);
	assert_int_equal(attach(*state, NULL), 0);
	return 0;
}

static int setup_none(void **state)
{
	static const struct rnic_keycache_cfg none = {
		.policy = RNIC_KEYCACHE_NONE,
	};

	*state = bed_new(&none);
	assert_int_equal(attach(*state, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	rnic_target_fini(&b->t);
	rnic_ctx_fini(&b->c);
	if (b->lane)
		rnic_remote_unmap_lane(b->lane);
	rnic_remote_close(b->r);
	rnic_mpt_fini(&b->mpt);
	rnic_place_close(&b->place);
	rnic_device_close(&b->dev);
	free(b);
	return 0;
}

static struct rnic_region region(uint64_t va, uint64_t len, uint32_t rights)
{
	struct rnic_region r = {
		.va = va,
		.length = len,
		.mtt = rnic_mtt_root_make(0, rnic_mtt_leaf_va(va)),
		.rights = rights,
	};

	return r;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* One lookup, in a section of its own. */
static int look(struct bed *b, uint64_t key, uint64_t addr, uint64_t len,
		uint32_t rights, const struct rnic_xlat *first,
		struct rnic_xlat *x)
{
	struct rnic_want w = { key, addr, len, rights, first };
	int ret;

	rnic_enter(&b->t);
	ret = rnic_resolve(&b->c, &b->t, &w, x);
	rnic_leave(&b->t);
	return ret;
}

static uint64_t where(const struct rnic_xlat *x)
{
	return (x->entry & ~(uint64_t)(RNIC_PAGE - 1)) + x->addr_in;
}

/* Publishes and returns the key; *@slot. */
static uint64_t publish(struct bed *b, const struct rnic_region *r,
			uint32_t *slot)
{
	uint64_t key = 0;

	assert_int_equal(rnic_mpt_publish(&b->mpt, r, false, &key, slot), 0);
	return key;
}

static void close_region(struct bed *b, uint32_t slot)
{
	rnic_mpt_invalidate(&b->mpt, slot);
	assert_int_equal(rnic_grace_fence(&b->dev, slot), 0);
	rnic_mpt_retire(&b->mpt, slot, rnic_grace_now(&b->dev));
}

static void a_key_is_found_until_it_is_closed(void **state)
{
	struct bed *b = *state;
	struct rnic_region r = region(FAR_VA + 100, 9000, RNIC_REMOTE_READ);
	struct rnic_xlat x;
	uint32_t slot;
	uint64_t key = publish(b, &r, &slot);

	for (int i = 0; i < 2; i++) {
		assert_int_equal(look(b, key, r.va + 5000, 4000,
				      RNIC_REMOTE_READ, NULL, &x),
				 0);
		assert_true(where(&x) == r.va + 5000);
		assert_int_equal(x.contiguous, 4000);
		assert_int_equal(x.entry & 7, RNIC_LEAF_VALID);
	}
	assert_int_equal(rnic_load64_relaxed(&b->c.keys.mem->hits), 1);
	assert_int_equal(rnic_load64_relaxed(&b->c.keys.mem->misses), 1);
	assert_int_equal(look(b, key + 1, r.va, 1, 0, NULL, &x), -ENOKEY);
	close_region(b, slot);
	assert_int_equal(look(b, key, r.va, 1, 0, NULL, &x), -ENOKEY);
	assert_int_equal(rnic_load64_relaxed(&b->c.keys.mem->invalidations), 1);
}

static void bounds_and_rights(void **state)
{
	struct bed *b = *state;
	struct rnic_region r = region(FAR_VA, 4096, RNIC_REMOTE_READ);
	struct rnic_xlat x;
	uint32_t slot;
	uint64_t key = publish(b, &r, &slot);

	for (int i = 0; i < 2; i++) {
		assert_int_equal(look(b, key, r.va, 4097, 0, NULL, &x),
				 -ERANGE);
		assert_int_equal(look(b, key, r.va - 1, 1, 0, NULL, &x),
				 -ERANGE);
		assert_int_equal(
			look(b, key, r.va + 1, UINT64_MAX, 0, NULL, &x),
			-ERANGE);
		assert_int_equal(look(b, key, r.va + 4096, 0, 0, NULL, &x), 0);
		assert_int_equal(
			look(b, key, r.va, 1, RNIC_REMOTE_WRITE, NULL, &x),
			-EACCES);
		/* the second time from the cache */
		assert_int_equal(
			look(b, key, r.va, 4096, RNIC_REMOTE_READ, NULL, &x),
			0);
	}
	r.rights |= RNIC_MR_OFFSET;
	key = publish(b, &r, &slot);
	assert_int_equal(look(b, key, 7, 4089, 0, NULL, &x), 0);
	assert_true(where(&x) == r.va + 7);
	assert_int_equal(look(b, key, 7, 4090, 0, NULL, &x), -ERANGE);
}

/* A hole in the tree is not present; a 4 KiB leaf ends after itself. */
static void trees_are_walked(void **state)
{
	struct bed *b = *state;
	const struct rnic_header *h = b->dev.hdr;
	struct rnic_mtt_page *m =
		(struct rnic_mtt_page *)((char *)b->dev.hdr + h->mtt_off);
	struct rnic_region r = region(FAR_VA + 8, 3 * 4096, RNIC_REMOTE_READ);
	uint64_t table = UINT64_C(2) << 12 | RNIC_LEAF_TABLE | RNIC_LEAF_VALID;
	struct rnic_xlat x;
	uint32_t slot;
	uint64_t key;

	assert_int_equal(rnic_segment_populate(&b->dev.tables, h->mtt_off,
					       3 * RNIC_PAGE),
			 0);
	rnic_store64_release(&m[2].entry[0], rnic_mtt_leaf_space(3, 70));
	rnic_store64_release(&m[2].entry[1], rnic_mtt_leaf_space(3, 50));
	r.mtt = rnic_mtt_root_make(1, table);
	key = publish(b, &r, &slot);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(look(b, key, r.va, 8000, 0, NULL, &x), 0);
		assert_true(where(&x) == 70 * 4096 + 8);
		assert_int_equal(x.contiguous, 4088);
		assert_int_equal(rnic_mtt_leaf_space_of(x.entry), 3);
		assert_int_equal(look(b, key, r.va + 4088, 10, 0, NULL, &x), 0);
		assert_true(where(&x) == 50 * 4096);
		assert_int_equal(look(b, key, r.va + 8184, 10, 0, NULL, &x),
				 -ENOKEY);
	}
	assert_int_equal(rnic_load64_relaxed(&b->c.keys.mem->hits), 2);
}

static void user_keys_are_found_by_the_index(void **state)
{
	struct bed *b = *state;
	struct rnic_region r = region(FAR_VA, 4096, RNIC_REMOTE_READ);
	struct rnic_xlat x;
	uint32_t slot[100];

	for (uint64_t k = 0; k < 100; k++) {
		uint64_t key = k * 7919;

		r.va = FAR_VA + k * 4096;
		r.mtt = rnic_mtt_root_make(0, rnic_mtt_leaf_va(r.va));
		assert_int_equal(
			rnic_mpt_publish(&b->mpt, &r, true, &key, &slot[k]), 0);
	}
	for (int i = 0; i < 2; i++)
		for (uint64_t k = 0; k < 100; k++) {
			assert_int_equal(look(b, k * 7919, FAR_VA + k * 4096, 1,
					      0, NULL, &x),
					 0);
			assert_int_equal(x.slot, slot[k]);
		}
	close_region(b, slot[50]);
	assert_int_equal(look(b, 50 * 7919, r.va, 1, 0, NULL, &x), -ENOKEY);
	assert_int_equal(look(b, 51 * 7919, FAR_VA + 51 * 4096, 1, 0, NULL, &x),
			 0);
	assert_int_equal(look(b, 4711, r.va, 1, 0, NULL, &x), -ENOKEY);
}

/* A new translation goes on, a new binding does not. */
static void operations_of_several_chunks(void **state)
{
	struct bed *b = *state;
	struct rnic_region r = region(FAR_VA, 8192, RNIC_REMOTE_READ);
	struct rnic_xlat first, x;
	uint32_t slot;
	uint64_t key = publish(b, &r, &slot);

	assert_int_equal(look(b, key, r.va, 8192, 0, NULL, &first), 0);
	rnic_mpt_invalidate(&b->mpt, slot);
	assert_int_equal(rnic_grace_fence(&b->dev, slot), 0);
	r.mtt = rnic_mtt_root_make(0, rnic_mtt_leaf_space(0, 9));
	assert_int_equal(rnic_mpt_change(&b->mpt, slot, &r), 0);
	assert_int_equal(look(b, key, r.va + 4096, 1, 0, &first, &x), 0);
	assert_true(where(&x) == 10 * 4096);
	rnic_mpt_invalidate(&b->mpt, slot);
	assert_int_equal(rnic_grace_fence(&b->dev, slot), 0);
	r.rights |= RNIC_REMOTE_WRITE;
	assert_int_equal(rnic_mpt_change(&b->mpt, slot, &r), 0);
	assert_int_equal(look(b, key, r.va, 1, 0, &first, &x), -ESTALE);
	assert_int_equal(look(b, key, r.va, 1, 0, NULL, &x), 0);
}

/* What is cached is announced: a close of it looks for this reader. */
static void check_announced(const struct bed *b)
{
	uint64_t filter[RNIC_FILTER_BITS / 64];
	unsigned int bits = 0;

	rnic_keycache_announced(&b->c.keys, b->t.number, filter);
	for (int i = 0; i < RNIC_FILTER_BITS / 64; i++) {
		uint64_t line = rnic_load64_relaxed(&b->t.announce[i]);

		assert_true((filter[i] & ~line) == 0);
		bits += (unsigned int)__builtin_popcountll(line);
	}
	assert_int_equal(bits, b->t.announced);
}

/* Publishes @n keys for the same memory. */
static void publish_many(struct bed *b, uint64_t *key, int n)
{
	struct rnic_region r = region(FAR_VA, 4096, RNIC_REMOTE_READ);
	uint32_t slot;

	for (int i = 0; i < n; i++)
		key[i] = publish(b, &r, &slot);
}

static void look_at(struct bed *b, uint64_t key)
{
	struct rnic_xlat x;

	assert_int_equal(look(b, key, FAR_VA, 1, 0, NULL, &x), 0);
}

/* More keys than cache and announce line hold. */
static void a_full_announce_line_is_renewed(void **state)
{
	struct bed *b = *state;
	unsigned int renewed = 0, least = RNIC_FILTER_BITS;
	uint64_t key[600];

	publish_many(b, key, 600);
	for (int i = 0; i < 1800; i++) {
		unsigned int before = b->t.announced;

		look_at(b, key[i % 600]);
		check_announced(b);
		if (b->t.announced < before) {
			renewed++;
			least = b->t.announced;
		}
	}
	assert_int_equal(b->t.now & 1, 0);
	assert_true(rnic_load64_relaxed(&b->c.keys.mem->evictions) > 0);
	/* as often as it costs little; what stays is what is cached */
	assert_in_range(renewed, 2, 1800 / 256);
	assert_in_range(least, 100, 258);
}

/* A large cache is not emptied because the announce line is full. */
static void contract_K1_a_large_cache_keeps_its_keys(void **state)
{
	enum { KEYS = 3000 };
	struct bed *b = *state;
	const struct rnic_cache *m = b->c.keys.mem;
	uint64_t *key = malloc(KEYS * sizeof(*key));

	assert_non_null(key);
	publish_many(b, key, KEYS);
	for (int n = 0; n < 5; n++)
		for (int i = 0; i < KEYS; i++)
			look_at(b, key[i]);
	check_announced(b);
	assert_int_equal(rnic_load64_relaxed(&m->misses), KEYS);
	assert_int_equal(rnic_load64_relaxed(&m->hits), 4 * KEYS);
	assert_in_range(b->t.announced, KEYS, RNIC_FILTER_BITS);
	free(key);
}

/* A target's entries are not those of the next one with its number. */
static void targets_come_and_go(void **state)
{
	struct bed *b = *state;
	const struct rnic_cache *m = b->c.keys.mem;
	uint64_t key[20];

	publish_many(b, key, 20);
	for (uint64_t n = 1; n <= 100; n++) {
		for (int i = 0; i < 40; i++)
			look_at(b, key[i % 20]);
		assert_int_equal(rnic_load64_relaxed(&m->misses), n * 20);
		rnic_target_fini(&b->t);
		for (int i = 0; i < RNIC_FILTER_BITS / 64; i++)
			assert_true(rnic_load64_relaxed(
					    &b->lane->announce[1][i]) == 0);
		assert_int_equal(rnic_target_init(&b->t, b->r, b->lane, 1), 0);
	}
	assert_true(b->c.ntargets <= 64);
}

/* Each miss, and no hit, leaves and enters once more to spend its time. */
static void contract_K1_a_miss_costs_what_it_is_told(void **state)
{
	struct bed *b = *state;
	uint64_t key[2], now, ns = now_ns();

	publish_many(b, key, 2);
	look_at(b, key[0]);
	assert_true(now_ns() - ns >= 1000000);
	now = b->t.now;
	look_at(b, key[0]);
	assert_int_equal(b->t.now, now + 2);
	ns = now_ns();
	look_at(b, key[1]);
	assert_true(now_ns() - ns >= 1000000);
	assert_int_equal(b->t.now, now + 6);
}

static void contract_K1_none_keeps_nothing(void **state)
{
	struct bed *b = *state;
	const struct rnic_cache *m = b->c.keys.mem;
	struct rnic_region r = region(FAR_VA, 4096, RNIC_REMOTE_READ);
	struct rnic_xlat x;
	uint32_t slot;
	uint64_t key = publish(b, &r, &slot);

	for (int i = 0; i < 1000; i++)
		look_at(b, key);
	assert_int_equal(rnic_load64_relaxed(&m->hits), 0);
	assert_int_equal(rnic_load64_relaxed(&m->misses), 1000);
	assert_int_equal(rnic_load64_relaxed(&m->entries), 0);
	close_region(b, slot);
	assert_int_equal(look(b, key, r.va, 1, 0, NULL, &x), -ENOKEY);
}

/* What a hostile owner may write leads to errors only. */
static void damaged_tables_are_refused(void **state)
{
	struct bed *b = *state;
	struct rnic_region r = region(FAR_VA, 8192, RNIC_REMOTE_READ);
	struct rnic_xlat x;
	uint32_t slot;
	uint64_t key;

	r.mtt = rnic_mtt_root_make(1, UINT64_MAX << 12 | RNIC_LEAF_VALID);
	key = publish(b, &r, &slot);
	assert_int_equal(look(b, key, r.va, 1, 0, NULL, &x), -ENOKEY);
	rnic_store64_release(&b->mpt.head->index, UINT64_MAX);
	assert_int_equal(look(b, 12345, r.va, 1, 0, NULL, &x), -ENOKEY);
	rnic_store64_release(&b->mpt.head->used, UINT64_MAX);
	assert_int_equal(look(b, key, r.va, 1, 0, NULL, &x), -ENOKEY);
}

/* ---- stress: readers in other processes ---- */

/* Shared by owner and readers. */
struct stage {
	rnic_a64 stop;		   /* set by the owner */
	rnic_a64 ready;		   /* readers attached */
	rnic_a64 used;		   /* lookups that found a key */
	rnic_a64 late;		   /* uses after close had returned */
	rnic_a64 key[REGIONS];	   /* the latest keys */
	rnic_a64 cell[CELLS][512]; /* memory: each word holds its key */
};

/* Looks at what @key names; the page number of its leaf is the cell. */
static void use_key(struct bed *b, struct stage *s, uint64_t key)
{
	struct rnic_want w = { .key = key, .len = 1 };
	struct rnic_xlat x;

	rnic_enter(&b->t);
	if (!rnic_resolve(&b->c, &b->t, &w, &x)) {
		rnic_a64 *cell = s->cell[(x.entry >> 12) % CELLS];

		for (int i = 0; i < BURST; i++)
			if (rnic_load64_relaxed(&cell[i * 100]) != key)
				rnic_add64_relaxed(&s->late, 1);
		rnic_add64_relaxed(&s->used, 1);
	}
	rnic_leave(&b->t);
}

static void reader(struct bed *b, struct stage *s)
{
	void *cache = calloc(1, rnic_keycache_bytes(&usual));

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT_S);
	memset(&b->t, 0, sizeof(b->t));
	if (!cache || attach(b, cache))
		_exit(1);
	rnic_add64_relaxed(&s->ready, 1);
	for (unsigned int i = 0; !rnic_load64_relaxed(&s->stop); i++)
		use_key(b, s, rnic_load64_acquire(&s->key[i % REGIONS]));
	rnic_target_fini(&b->t);
	_exit(0);
}

static void scribble(struct stage *s, unsigned int cell, uint64_t what)
{
	for (int i = 0; i < 512; i++)
		rnic_store64_relaxed(&s->cell[cell][i], what);
}

/* Publishes a key for @cell, whose memory says it before readers can. */
static uint64_t stage_publish(struct bed *b, struct stage *s, unsigned int cell,
			      uint32_t *slot)
{
	struct rnic_region r = region(0, 4096, RNIC_REMOTE_READ);
	uint64_t user = UINT64_C(1) << 63 | (uint64_t)rand() << 16 | cell;

	r.mtt = rnic_mtt_root_make(0, rnic_mtt_leaf_space(0, cell));
	scribble(s, cell, user);
	assert_int_equal(rnic_mpt_publish(&b->mpt, &r, true, &user, slot), 0);
	return user;
}

/*
 * Publishes, closes, scribbles, reuses: for STRESS_MS, and, where readers keep
 * the CPUs, for longer until it has done CLOSES. Returns how many.
 */
static unsigned int churn(struct bed *b, struct stage *s)
{
	uint64_t end = now_ns() + STRESS_MS * UINT64_C(1000000);
	uint64_t late = end + LATE_MS * UINT64_C(1000000);
	uint32_t slot[REGIONS];
	unsigned int n;

	for (n = 0; n < REGIONS; n++)
		rnic_store64_release(&s->key[n],
				     stage_publish(b, s, n, &slot[n]));
	for (n = 0; now_ns() < (n < CLOSES ? late : end); n++) {
		unsigned int i = n % REGIONS, old = i + n / REGIONS % 2 * 8;

		close_region(b, slot[i]);
		scribble(s, old, 0xdead);
		rnic_store64_release(
			&s->key[i],
			stage_publish(b, s, 8 - old + 2 * i, &slot[i]));
		if (n % 64 == 0)
			usleep(100);
	}
	return n;
}

static void nothing_is_used_late(void **state)
{
	struct bed *b = *state;
	struct stage *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[READERS];
	unsigned int closes;
	int status;

	assert_true(s != MAP_FAILED);
	for (int i = 0; i < READERS; i++) {
		pid[i] = fork();
		if (!pid[i])
			reader(b, s);
	}
	while (rnic_load64_relaxed(&s->ready) < READERS)
		usleep(1000);
	closes = churn(b, s);
	rnic_store64_relaxed(&s->stop, 1);
	for (int i = 0; i < READERS; i++) {
		waitpid(pid[i], &status, 0);
		assert_int_equal(status, 0);
	}
	print_message("%u closes, %lu uses, %lu late\n", closes,
		      (unsigned long)rnic_load64_relaxed(&s->used),
		      (unsigned long)rnic_load64_relaxed(&s->late));
	assert_true(closes >= CLOSES);
	assert_true(rnic_load64_relaxed(&s->used) > 1000);
	assert_int_equal(rnic_load64_relaxed(&s->late), 0);
	munmap(s, sizeof(*s));
}

#define WITH(f, up) cmocka_unit_test_setup_teardown(f, up, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(a_key_is_found_until_it_is_closed, setup_reader),
		WITH(bounds_and_rights, setup_reader),
		WITH(trees_are_walked, setup_reader),
		WITH(user_keys_are_found_by_the_index, setup_reader),
		WITH(operations_of_several_chunks, setup_reader),
		WITH(a_full_announce_line_is_renewed, setup_reader),
		WITH(contract_K1_a_large_cache_keeps_its_keys, setup_large),
		WITH(targets_come_and_go, setup_large),
		WITH(contract_K1_a_miss_costs_what_it_is_told, setup_slow),
		WITH(contract_K1_none_keeps_nothing, setup_none),
		WITH(damaged_tables_are_refused, setup_reader),
		WITH(nothing_is_used_late, setup),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
