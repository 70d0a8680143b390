/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The owner's table: keys, versions, quarantine, the index of user keys.
 */
#include "shm/mpt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "shm/grace.h"

enum { LIMIT_S = 60 };

static const struct rnic_device_cfg cfg = {
	.heap_bytes = 1 << 20,
	.membarrier = true,
};

static const struct rnic_region some = {
	.va = 0x10000,
	.length = 4096,
	.mtt = 4,
	.rights = RNIC_REMOTE_READ,
};

/* A device and its table. */
struct bed {
	struct rnic_device dev;	   /* the device */
	struct rnic_mpt_owner mpt; /* its table */
};

static int setup(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	assert_int_equal(rnic_device_open(&b->dev, &cfg), 0);
	assert_int_equal(rnic_mpt_init(&b->mpt, &b->dev), 0);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	rnic_mpt_fini(&b->mpt);
	rnic_device_close(&b->dev);
	free(b);
	return 0;
}

static void drop(struct bed *b, uint32_t slot)
{
	rnic_mpt_invalidate(&b->mpt, slot);
	rnic_mpt_retire(&b->mpt, slot, rnic_grace_now(&b->dev));
}

static uint64_t version(struct bed *b, uint32_t slot)
{
	return rnic_load64_relaxed(&b->mpt.mpt[slot].version);
}

static void versions_only_rise(void **state)
{
	struct bed *b = *state;
	uint64_t key = 0, v;
	uint32_t slot;

	assert_int_equal(rnic_mpt_publish(&b->mpt, &some, false, &key, &slot),
			 0);
	assert_int_equal(rnic_key_slot(key), slot);
	assert_int_equal(rnic_load64_relaxed(&b->mpt.mpt[slot].key), key);
	v = version(b, slot);
	assert_int_equal(v & 1, 0);
	/* a slot that was never used is invalid */
	assert_int_equal(version(b, slot + 1) & 1, 1);
	rnic_mpt_invalidate(&b->mpt, slot);
	assert_int_equal(version(b, slot), v + 1);
	assert_int_equal(rnic_mpt_change(&b->mpt, slot, &some), 0);
	assert_int_equal(version(b, slot), v + 2);
	assert_int_equal(rnic_load64_relaxed(&b->mpt.mpt[slot].key), key);
	drop(b, slot);
	assert_int_equal(version(b, slot), v + 3);
}

/* At least 4096 others rest behind a slot; its keys never come back. */
static void slots_rest(void **state)
{
	struct bed *b = *state;
	uint32_t slot, first;
	uint64_t key, stale;
	unsigned int n = 0;

	assert_int_equal(
		rnic_mpt_publish(&b->mpt, &some, false, &stale, &first), 0);
	drop(b, first);
	do {
		assert_int_equal(
			rnic_mpt_publish(&b->mpt, &some, false, &key, &slot),
			0);
		drop(b, slot);
		n++;
	} while (slot != first && n < 20000);
	assert_int_equal(slot, first);
	assert_true(n > RNIC_MPT_QUARANTINE);
	assert_true(key != stale);
	assert_int_equal(rnic_key_slot(key), first);
}

static void a_worn_slot_is_not_used_again(void **state)
{
	struct bed *b = *state;
	uint64_t key = UINT64_MAX;
	uint32_t slot, worn;
	struct rnic_region r = some;

	/* a user's key does not use up generations, a provider's does */
	assert_int_equal(rnic_mpt_publish(&b->mpt, &r, false, &key, &worn), 0);
	drop(b, worn);
	/* the private state of the slot begins with its generation */
	*(uint64_t *)(void *)b->mpt.slot = (UINT64_C(1) << RNIC_GEN_BITS) - 1;
	assert_int_equal(worn, 0);
	for (int i = 0; i < 3 * RNIC_MPT_QUARANTINE; i++) {
		assert_int_equal(
			rnic_mpt_publish(&b->mpt, &r, false, &key, &slot), 0);
		assert_true(slot != worn);
		drop(b, slot);
	}
}

static void user_keys_are_unique_while_live(void **state)
{
	struct bed *b = *state;
	uint64_t key = 42, made = 0;
	uint32_t slot, other;

	assert_int_equal(rnic_mpt_publish(&b->mpt, &some, true, &key, &slot),
			 0);
	assert_int_equal(rnic_mpt_publish(&b->mpt, &some, true, &key, &other),
			 -EEXIST);
	rnic_mpt_invalidate(&b->mpt, slot);
	assert_int_equal(rnic_mpt_publish(&b->mpt, &some, true, &key, &other),
			 0);
	assert_int_equal(rnic_mpt_change(&b->mpt, slot, &some), -EEXIST);
	assert_int_equal(version(b, slot) & 1, 1);
	drop(b, other);
	assert_int_equal(rnic_mpt_change(&b->mpt, slot, &some), 0);
	/* against keys that were made */
	assert_int_equal(rnic_mpt_publish(&b->mpt, &some, false, &made, &other),
			 0);
	assert_int_equal(rnic_mpt_publish(&b->mpt, &some, true, &made, &slot),
			 -EEXIST);
	key = made + (UINT64_C(1) << RNIC_SLOT_BITS) + 1;
	assert_int_equal(rnic_mpt_publish(&b->mpt, &some, true, &key, &slot),
			 0);
}

/* Growth by live keys, then rebuilds for tombstones. */
static void the_index_is_rebuilt(void **state)
{
	struct bed *b = *state;
	uint32_t slot[5000], s;
	uint64_t word = 0, key;
	unsigned int moved = 0;

	for (uint64_t k = 0; k < 5000; k++) {
		key = k * k * k;
		assert_int_equal(
			rnic_mpt_publish(&b->mpt, &some, true, &key, &slot[k]),
			0);
	}
	for (uint64_t k = 5000; k < 60000; k++) {
		key = k * k * k;
		moved += b->mpt.index != word;
		word = b->mpt.index;
		assert_int_equal(
			rnic_mpt_publish(&b->mpt, &some, true, &key, &s), 0);
		drop(b, s);
	}
	assert_true(moved > 1);
	assert_int_equal(b->mpt.keys, 5000);
	for (uint64_t k = 0; k < 5000; k++) {
		key = k * k * k;
		assert_int_equal(
			rnic_mpt_publish(&b->mpt, &some, true, &key, &s),
			-EEXIST);
	}
}

static void zeroed_is_finished(void **state)
{
	struct rnic_mpt_owner t = { .dev = NULL };

	(void)state;
	rnic_mpt_fini(&t);
}

#define WITH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(versions_only_rise),
		WITH(slots_rest),
		WITH(a_worn_slot_is_not_used_again),
		WITH(user_keys_are_unique_while_live),
		WITH(the_index_is_rebuilt),
		cmocka_unit_test(zeroed_is_finished),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
