/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Key cache: who gives way under each policy, on sequences worked out by hand;
 * capacity, ways, counters; what is forgotten.
 */
#include "shm/keycache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "shm/log.h"

/* A cache and its shared part. */
struct bed {
	struct rnic_keycache k; /* in @mem */
	void *mem;		/* as large as it must be */
};

static struct bed bed_new(const struct rnic_keycache_cfg *cfg)
{
	struct bed b = { .mem = NULL };

	b.mem = aligned_alloc(RNIC_PAGE, rnic_keycache_bytes(cfg));
	assert_non_null(b.mem);
	memset(b.mem, 0xff, rnic_keycache_bytes(cfg));
	assert_int_equal(rnic_keycache_init(&b.k, b.mem, cfg), 0);
	return b;
}

static void bed_free(struct bed *b)
{
	rnic_keycache_fini(&b->k);
	rnic_keycache_fini(&b->k);
	free(b->mem);
}

/* One set of @ways. */
static struct bed one_set(enum rnic_keycache_policy policy, uint32_t ways)
{
	const struct rnic_keycache_cfg cfg = {
		.entries = ways, .ways = ways, .policy = policy, .seed = 1
	};

	return bed_new(&cfg);
}

static uint64_t hits(const struct bed *b)
{
	return rnic_load64_relaxed(&b->k.mem->hits);
}

static uint64_t misses(const struct bed *b)
{
	return rnic_load64_relaxed(&b->k.mem->misses);
}

static uint64_t evictions(const struct bed *b)
{
	return rnic_load64_relaxed(&b->k.mem->evictions);
}

/* Looks the keys of @seq up; @want has a + for each hit, a - for each miss. */
static void play(struct bed *b, const char *seq, const char *want)
{
	for (size_t i = 0; seq[i]; i++)
		if (rnic_keycache_simulate(&b->k, (uint8_t)seq[i]) !=
		    (want[i] == '+'))
			fail_msg("%zu of %s: not %c", i, seq, want[i]);
}

/* ---- policies --------------------------------------------------------------- */

static void lru_drops_what_was_not_used_for_longest(void **state)
{
	struct bed b = one_set(RNIC_KEYCACHE_LRU, 4);

	(void)state;
	play(&b, "abcd", "----");
	/* oldest first: b d c a */
	play(&b, "dca", "+++");
	play(&b, "e", "-");
	play(&b, "cade", "++++");
	/* b was the one; now c is the oldest */
	play(&b, "b", "-");
	play(&b, "adeb", "++++");
	play(&b, "ca", "--");
	assert_int_equal(evictions(&b), 4);
	bed_free(&b);
}

/* A loop over one key more than there are entries never hits. */
static void lru_loses_a_loop_over_its_size(void **state)
{
	struct bed b = one_set(RNIC_KEYCACHE_LRU, 16);

	(void)state;
	for (int n = 0; n < 10; n++)
		for (uint64_t key = 0; key < 17; key++)
			assert_false(rnic_keycache_simulate(&b.k, key));
	for (uint64_t key = 1; key < 17; key++)
		assert_true(rnic_keycache_simulate(&b.k, key));
	assert_int_equal(hits(&b), 16);
	assert_int_equal(misses(&b), 170);
	assert_int_equal(evictions(&b), 154);
	bed_free(&b);
}

static void clock_gives_a_second_chance(void **state)
{
	struct bed b = one_set(RNIC_KEYCACHE_CLOCK, 4);

	(void)state;
	/* none is marked: in the order of their coming, as FIFO */
	play(&b, "abcde", "-----");
	/* e in a's place, hand at b; b and d get a mark */
	play(&b, "bd", "++");
	/* b loses its mark, c goes, hand at d */
	play(&b, "f", "-");
	play(&b, "b", "+");
	/* d loses its mark, e goes, hand at b */
	play(&b, "g", "-");
	/* b loses its mark, f goes, hand at d, which has none and goes */
	play(&b, "hi", "--");
	play(&b, "bghi", "++++");
	/* all are marked: a whole round, and g, where it began, goes */
	play(&b, "j", "-");
	play(&b, "bhi", "+++");
	/* they lose their marks, j goes */
	play(&b, "g", "-");
	play(&b, "bhig", "++++");
	assert_int_equal(evictions(&b), 7);
	bed_free(&b);
}

/* Keys that are used once do not drive out one that is used again. */
static void clock_withstands_a_scan(void **state)
{
	struct bed b = one_set(RNIC_KEYCACHE_CLOCK, 4);

	(void)state;
	rnic_keycache_simulate(&b.k, 1);
	for (uint64_t key = 100; key < 200; key++) {
		assert_true(rnic_keycache_simulate(&b.k, 1));
		assert_false(rnic_keycache_simulate(&b.k, key));
	}
	bed_free(&b);
}

/* Hits of random keys, as bits; the policy is random. */
static uint64_t random_hits(uint64_t seed)
{
	const struct rnic_keycache_cfg cfg = {
		.entries = 64,
		.ways = 8,
		.policy = RNIC_KEYCACHE_RANDOM,
		.seed = seed,
	};
	struct bed b = bed_new(&cfg);
	uint64_t x = 1, bits = 0;

	for (int i = 0; i < 2000; i++) {
		x = x * UINT64_C(6364136223846793005) + 1;
		bits = bits << 1 | bits >> 63;
		bits ^= rnic_keycache_simulate(&b.k, x >> 57);
	}
	assert_true(hits(&b) > 700 && hits(&b) < 1300);
	bed_free(&b);
	return bits;
}

static void random_is_that_of_its_seed(void **state)
{
	(void)state;
	assert_true(random_hits(1) == random_hits(1));
	assert_true(random_hits(1) != random_hits(2));
	assert_true(random_hits(0) == random_hits(0));
}

/* Each way gives way, some as often as others. */
static void random_is_fair(void **state)
{
	struct bed b = one_set(RNIC_KEYCACHE_RANDOM, 5);
	unsigned int n[5] = { 0 };

	(void)state;
	for (int i = 0; i < 5000; i++) {
		uint32_t way = b.k.ops->victim(&b.k, 0, 0);

		assert_true(way < 5);
		n[way]++;
	}
	for (int i = 0; i < 5; i++)
		assert_true(n[i] > 850 && n[i] < 1150);
	bed_free(&b);
}

/* Random hits a loop that is a little too large, where LRU never does. */
static void random_wins_a_loop(void **state)
{
	struct bed b = one_set(RNIC_KEYCACHE_RANDOM, 16);

	(void)state;
	for (int i = 0; i < 17 * 100; i++)
		rnic_keycache_simulate(&b.k, (uint64_t)(i % 17));
	assert_true(hits(&b) > 17 * 100 / 2);
	bed_free(&b);
}

static void none_never_hits(void **state)
{
	const struct rnic_keycache_cfg cfg = { .policy = RNIC_KEYCACHE_NONE };
	struct bed b = bed_new(&cfg);
	uint64_t filter[RNIC_FILTER_BITS / 64];

	(void)state;
	assert_int_equal(rnic_keycache_bytes(&cfg), RNIC_PAGE);
	play(&b, "aaaabbab", "--------");
	assert_int_equal(misses(&b), 8);
	assert_int_equal(hits(&b) + evictions(&b), 0);
	assert_int_equal(rnic_keycache_entries(&b.k), 0);
	assert_int_equal(rnic_keycache_announced(&b.k, 1, filter), 0);
	bed_free(&b);
}

/* ---- shape ------------------------------------------------------------------- */

/* As many keys in a row as it has entries, whatever its shape: all fit. */
static void holds(uint32_t entries, uint32_t ways,
		  enum rnic_keycache_policy policy)
{
	const struct rnic_keycache_cfg cfg = { .entries = entries,
					       .ways = ways,
					       .policy = policy };
	const uint64_t base = UINT64_C(0x1234567) << RNIC_SLOT_BITS;
	struct bed b = bed_new(&cfg);

	assert_int_equal(rnic_keycache_entries(&b.k), entries);
	for (int n = 0; n < 2; n++)
		for (uint64_t i = 0; i < entries; i++)
			rnic_keycache_simulate(&b.k, base + i);
	assert_int_equal(misses(&b), entries);
	assert_int_equal(hits(&b), entries);
	assert_int_equal(evictions(&b), 0);
	/* one more costs one entry, of those that were there */
	rnic_keycache_simulate(&b.k, base + entries);
	assert_int_equal(evictions(&b), 1);
	bed_free(&b);
}

static void contract_K1_capacity_and_ways(void **state)
{
	static const uint32_t shape[][2] = {
		{ 1, 1 },   { 64, 1 },	 { 256, 4 },  { 256, 256 },
		{ 96, 12 }, { 1024, 8 }, { 4096, 1 }, { 65536, 16 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(shape) / sizeof(*shape); i++)
		for (int p = 0; p < RNIC_KEYCACHE_NONE; p++)
			holds(shape[i][0], shape[i][1],
			      (enum rnic_keycache_policy)p);
}

/* True if @key is there; no use of it. */
static bool is_there(const struct bed *b, uint64_t key)
{
	for (uint32_t i = 0; i < rnic_keycache_entries(&b->k); i++)
		if (rnic_load64_relaxed(&b->k.entry[i].meta) &&
		    rnic_load64_relaxed(&b->k.entry[i].key) == key)
			return true;
	return false;
}

/* Keys of one set, and no others, share its ways. */
static void sets_are_apart(void **state)
{
	const struct rnic_keycache_cfg cfg = { .entries = 32,
					       .ways = 2,
					       .policy = RNIC_KEYCACHE_LRU };
	struct bed b = bed_new(&cfg);
	uint32_t there = rnic_keycache_set(&b.k, 1, 0);
	unsigned int same = 0;

	(void)state;
	rnic_keycache_simulate(&b.k, 0);
	for (uint64_t key = 1; same < 2; key++) {
		same += rnic_keycache_set(&b.k, 1, key) == there;
		rnic_keycache_simulate(&b.k, key);
		assert_int_equal(is_there(&b, 0), same < 2);
		assert_true(is_there(&b, key));
	}
	bed_free(&b);
}

/* Keys with a pattern do not crowd into a few sets. */
static void sets_are_used_evenly(void **state)
{
	const struct rnic_keycache_cfg cfg = { .entries = 4096, .ways = 4 };
	struct bed b = bed_new(&cfg);

	(void)state;
	for (int shift = 0; shift < 54; shift++) {
		uint16_t n[1024] = { 0 };
		unsigned int crowded = 0;

		for (uint64_t i = 0; i < 1024; i++)
			n[rnic_keycache_set(&b.k, 1, i << shift)]++;
		for (int s = 0; s < 1024; s++)
			crowded += n[s] > 6;
		/* by chance: one in 10^4 */
		assert_true(crowded <= 4);
	}
	bed_free(&b);
}

static void ignore(enum rnic_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
}

static void contract_K1_bounds(void **state)
{
	static const struct rnic_keycache_cfg bad[] = {
		{ .entries = RNIC_KEYCACHE_ENTRIES_MAX + 1, .ways = 1 },
		{ .entries = RNIC_KEYCACHE_ENTRIES_MAX * 2u },
		{ .entries = 1024, .ways = RNIC_KEYCACHE_WAYS_MAX * 2 },
		{ .entries = 2 },
		{ .entries = 12 },
		{ .ways = 3 },
		{ .miss_ns = RNIC_KEYCACHE_MISS_NS_MAX + UINT64_C(1) },
		{ .policy = RNIC_KEYCACHE_POLICIES },
	};
	struct rnic_keycache k;

	(void)state;
	rnic_log_sink(ignore);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(rnic_keycache_check(&bad[i]), -EINVAL);
		assert_int_equal(rnic_keycache_init(&k, NULL, &bad[i]),
				 -EINVAL);
	}
	rnic_log_sink(NULL);
}

/* What another process reads of it. */
static void contract_K1_head_says_what_it_is(void **state)
{
	const struct rnic_keycache_cfg cfg = { .entries = 96,
					       .ways = 12,
					       .policy = RNIC_KEYCACHE_LRU,
					       .miss_ns = 700 };
	struct bed b = bed_new(&cfg);
	const struct rnic_cache *m = b.mem;

	(void)state;
	assert_string_equal(rnic_keycache_name(cfg.policy), "lru");
	assert_null(rnic_keycache_name(RNIC_KEYCACHE_POLICIES));
	assert_int_equal(rnic_load64_relaxed(&m->entries), 96);
	assert_int_equal(rnic_load64_relaxed(&m->ways), 12);
	assert_int_equal(rnic_load64_relaxed(&m->policy),
			 RNIC_KEYCACHE_LRU + 1);
	assert_int_equal(rnic_load64_relaxed(&m->miss_ns), 700);
	assert_int_equal(rnic_keycache_bytes(&cfg), 3 * RNIC_PAGE);
	play(&b, "aab", "-+-");
	rnic_keycache_fini(&b.k);
	assert_int_equal(rnic_load64_relaxed(&m->policy), 0);
	assert_int_equal(rnic_load64_relaxed(&m->hits), 1);
	bed_free(&b);
}

/* ---- entries ------------------------------------------------------------------ */

static struct rnic_piece piece(uint32_t slot, uint64_t version, uint64_t start)
{
	struct rnic_piece p = {
		.x = { .entry = rnic_mtt_leaf_space(200, 77),
		       .addr_in = 123,
		       .version = version,
		       .binding = 9,
		       .slot = slot,
		       .rights = 0xabc },
		.start = start,
		.span = 100,
		.room = 1000,
	};

	return p;
}

static void an_entry_is_as_it_was(void **state)
{
	struct bed b = one_set(RNIC_KEYCACHE_CLOCK, 4);
	struct rnic_piece p = piece(0xffffff, 44, 5000), q;
	struct rnic_cache_entry *e;

	(void)state;
	rnic_keycache_insert(&b.k, 0x7ffff, 42, &p);
	assert_null(rnic_keycache_probe(&b.k, 0x7ffff, 42, 4999));
	assert_null(rnic_keycache_probe(&b.k, 0x7ffff, 42, 5100));
	assert_null(rnic_keycache_probe(&b.k, 0x7fffe, 42, 5000));
	assert_null(rnic_keycache_probe(&b.k, 0x7ffff, 43, 5000));
	e = rnic_keycache_probe(&b.k, 0x7ffff, 42, 5099);
	assert_non_null(e);
	memset(&q, 0, sizeof(q));
	rnic_keycache_load(e, &q);
	assert_memory_equal(&p, &q, sizeof(p));
	p.x.entry = rnic_mtt_leaf_va(0x7000);
	p.start = 0;
	rnic_keycache_insert(&b.k, 1, 42, &p);
	rnic_keycache_load(rnic_keycache_probe(&b.k, 1, 42, 0), &q);
	assert_memory_equal(&p, &q, sizeof(p));
	bed_free(&b);
}

/* A newer translation takes the place of the old one, not of another key. */
static void contract_K2_outdated_ones_go_first(void **state)
{
	struct bed b = one_set(RNIC_KEYCACHE_LRU, 2);
	struct rnic_piece p = piece(1, 2, 0), other = piece(2, 2, 0);
	struct rnic_cache_entry *e;

	(void)state;
	rnic_keycache_insert(&b.k, 1, 10, &other);
	rnic_keycache_insert(&b.k, 1, 11, &p);
	p.x.version = 4;
	rnic_keycache_insert(&b.k, 1, 11, &p);
	assert_int_equal(evictions(&b), 0);
	assert_non_null(rnic_keycache_probe(&b.k, 1, 10, 0));
	e = rnic_keycache_probe(&b.k, 1, 11, 0);
	assert_non_null(e);
	rnic_keycache_load(e, &p);
	assert_int_equal(p.x.version, 4);
	rnic_keycache_drop(&b.k, e);
	assert_null(rnic_keycache_probe(&b.k, 1, 11, 0));
	assert_int_equal(rnic_load64_relaxed(&b.k.mem->invalidations), 1);
	/* what was dropped is room */
	rnic_keycache_insert(&b.k, 1, 12, &p);
	assert_int_equal(evictions(&b), 0);
	bed_free(&b);
}

static bool is_odd(uint32_t number, void *arg)
{
	(*(unsigned int *)arg)++;
	return number & 1;
}

static void targets_are_forgotten_and_announced(void **state)
{
	const struct rnic_keycache_cfg cfg = { .entries = 1024, .ways = 16 };
	struct bed b = bed_new(&cfg);
	uint64_t filter[RNIC_FILTER_BITS / 64];
	unsigned int asked = 0;

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		struct rnic_piece p = piece(1000 + i, 2, 0);

		rnic_keycache_insert(&b.k, 1 + i % 2, i, &p);
	}
	assert_int_equal(rnic_keycache_announced(&b.k, 1, filter), 50);
	for (uint32_t i = 0; i < 100; i++) {
		unsigned int bit = rnic_filter_bit(1000 + i);

		assert_int_equal(filter[bit / 64] >> bit % 64 & 1, !(i % 2));
	}
	rnic_keycache_forget(&b.k, is_odd, &asked);
	assert_int_equal(asked, 100);
	assert_int_equal(rnic_keycache_announced(&b.k, 1, filter), 0);
	assert_int_equal(rnic_keycache_announced(&b.k, 2, filter), 50);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(!rnic_keycache_probe(&b.k, 1 + i % 2, i, 0),
				 !(i % 2));
	bed_free(&b);
}

/*
 * What remembers use is not in the shared part: a probe writes nothing there.
 * Hits as a whole are looked at in shm/hit_test.c.
 */
static void a_probe_writes_no_shared_line(void **state)
{
	(void)state;
	for (int p = 0; p < RNIC_KEYCACHE_NONE; p++) {
		struct bed b = one_set((enum rnic_keycache_policy)p, 64);
		uint64_t bytes = sizeof(struct rnic_cache) + 64 * RNIC_LINE;
		void *was = malloc(bytes);

		assert_non_null(was);
		for (uint64_t key = 0; key < 64; key++)
			rnic_keycache_simulate(&b.k, key);
		memcpy(was, b.mem, bytes);
		for (uint64_t key = 0; key < 64; key++)
			assert_non_null(rnic_keycache_probe(&b.k, 1, key, 0));
		assert_memory_equal(was, b.mem, bytes);
		free(was);
		bed_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lru_drops_what_was_not_used_for_longest),
		cmocka_unit_test(lru_loses_a_loop_over_its_size),
		cmocka_unit_test(clock_gives_a_second_chance),
		cmocka_unit_test(clock_withstands_a_scan),
		cmocka_unit_test(random_is_that_of_its_seed),
		cmocka_unit_test(random_is_fair),
		cmocka_unit_test(random_wins_a_loop),
		cmocka_unit_test(none_never_hits),
		cmocka_unit_test(contract_K1_capacity_and_ways),
		cmocka_unit_test(sets_are_apart),
		cmocka_unit_test(sets_are_used_evenly),
		cmocka_unit_test(contract_K1_bounds),
		cmocka_unit_test(contract_K1_head_says_what_it_is),
		cmocka_unit_test(an_entry_is_as_it_was),
		cmocka_unit_test(contract_K2_outdated_ones_go_first),
		cmocka_unit_test(targets_are_forgotten_and_announced),
		cmocka_unit_test(a_probe_writes_no_shared_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
