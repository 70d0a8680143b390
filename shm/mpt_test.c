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
#include "shm/remote.h"

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

/*
 * Keys begin at a number of each device's own: what was told of one that is
 * gone, or is another's, means nothing here. 39 bits of chance: no two of a few
 * are the same, nor the first ones there are.
 */
static void contract_I4_devices_begin_apart(void **state)
{
	enum { DEVICES = 4 };
	struct bed *b[DEVICES];
	uint64_t key[DEVICES];
	uint32_t slot;

	(void)state;
	for (int i = 0; i < DEVICES; i++) {
		assert_int_equal(setup((void **)&b[i]), 0);
		assert_int_equal(rnic_mpt_publish(&b[i]->mpt, &some, false,
						  &key[i], &slot),
				 0);
		assert_int_equal(rnic_key_slot(key[i]), slot);
		assert_true(key[i] >> RNIC_SLOT_BITS > 1 << 16);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(key[i] >> RNIC_SLOT_BITS,
					     key[k] >> RNIC_SLOT_BITS);
	}
	for (int i = 0; i < DEVICES; i++)
		teardown((void **)&b[i]);
}

/* A key that is taken and not shown is nobody's yet, and nobody else's. */
static void a_reserved_slot_is_not_found(void **state)
{
	struct bed *b = *state;
	struct rnic_region r = some, found;
	uint64_t key = 77, v, binding;
	uint32_t slot, other;

	assert_int_equal(rnic_mpt_reserve(&b->mpt, &r, true, &key, &slot), 0);
	v = version(b, slot);
	assert_int_equal(v & 1, 1);
	assert_int_equal(rnic_mpt_reserve_try(&b->mpt, &r, true, &key, &other),
			 -EEXIST);
	rnic_mpt_show(&b->mpt, slot);
	assert_int_equal(version(b, slot), v + 1);
	rnic_mpt_suspend(&b->mpt, slot);
	binding = rnic_load64_relaxed(&b->mpt.mpt[slot].binding);
	/* that its pages come and go is no other binding */
	r.rights |= RNIC_MR_WATCHED;
	r.mtt = 8;
	rnic_mpt_rewrite(&b->mpt, slot, &r);
	assert_int_equal(version(b, slot), v + 2);
	rnic_mpt_show(&b->mpt, slot);
	assert_int_equal(version(b, slot), v + 3);
	assert_int_equal(rnic_load64_relaxed(&b->mpt.mpt[slot].binding),
			 binding);
	assert_int_equal(rnic_mpt_find(&b->mpt, key, &other, &found), 0);
	assert_int_equal(found.mtt, 8);
	drop(b, slot);
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

/* Publishes and drops @n regions; true if one of them got @slot. */
static bool comes_back(struct bed *b, uint32_t slot, unsigned int n)
{
	uint64_t key;
	uint32_t s;

	while (n--) {
		assert_int_equal(
			rnic_mpt_publish(&b->mpt, &some, false, &key, &s), 0);
		drop(b, s);
		if (s == slot)
			return true;
	}
	return false;
}

/* A reader that was inside when a slot came to rest may still look at it. */
static void contract_I4_slots_wait_for_readers(void **state)
{
	enum { MANY = 3 * RNIC_MPT_QUARANTINE };
	struct bed *b = *state;
	struct rnic_place place;
	struct rnic_remote *r;
	struct rnic_lane *lane;
	struct rnic_addr addr;
	unsigned int index;
	uint64_t key;
	uint32_t slot;

	assert_int_equal(rnic_place_open(&b->dev, &place), 0);
	rnic_place_addr(&place, &addr);
	assert_int_equal(rnic_remote_open(&addr, RNIC_ATTACH_PROC, &r), 0);
	assert_int_equal(rnic_remote_claim(r, &addr, &lane, &index), 0);
	assert_int_equal(rnic_mpt_publish(&b->mpt, &some, false, &key, &slot),
			 0);
	rnic_store64_release(&lane->reader[0].seq, 1);
	drop(b, slot);
	assert_false(comes_back(b, slot, MANY));
	rnic_store64_release(&lane->reader[0].seq, 2);
	assert_true(comes_back(b, slot, MANY));
	rnic_remote_unmap_lane(lane);
	rnic_remote_close(r);
	rnic_place_close(&place);
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

/* Cached copies end, the key and the binding stay. */
static void events_join_a_live_region(void **state)
{
	struct bed *b = *state;
	struct rnic_mpt *m;
	uint64_t key = 0, v, binding;
	uint32_t slot;

	assert_int_equal(rnic_mpt_publish(&b->mpt, &some, false, &key, &slot),
			 0);
	m = &b->mpt.mpt[slot];
	v = version(b, slot);
	binding = rnic_load64_relaxed(&m->binding);
	rnic_mpt_add_events(&b->mpt, slot, RNIC_MR_EV_WRITE);
	assert_int_equal(version(b, slot), v + 2);
	assert_int_equal(rnic_load64_relaxed(&m->key), key);
	assert_int_equal(rnic_load64_relaxed(&m->binding), binding);
	rnic_mpt_add_events(&b->mpt, slot, RNIC_MR_EV_READ);
	assert_int_equal(rnic_load64_relaxed(&m->rights),
			 some.rights | RNIC_MR_EV_READ | RNIC_MR_EV_WRITE);
	drop(b, slot);
}

/* Nobody gets the key of a suspended slot; a change cannot fail. */
static void a_suspended_slot_keeps_its_key(void **state)
{
	struct bed *b = *state;
	uint64_t key = 42, made = 0, v;
	struct rnic_mpt_entry e;
	struct rnic_region r = some;
	uint32_t slot, other;

	r.rights |= RNIC_MR_WINDOW;
	r.parent = 7;
	assert_int_equal(rnic_mpt_publish(&b->mpt, &r, true, &key, &slot), 0);
	v = version(b, slot);
	rnic_mpt_suspend(&b->mpt, slot);
	assert_int_equal(version(b, slot), v + 1);
	assert_int_equal(rnic_mpt_publish(&b->mpt, &some, true, &key, &other),
			 -EEXIST);
	r.mtt = 0x123404;
	assert_int_equal(rnic_mpt_change(&b->mpt, slot, &r), 0);
	assert_int_equal(version(b, slot), v + 2);
	rnic_mpt_read(&b->mpt, slot, &e);
	assert_int_equal(e.key, key);
	assert_int_equal(e.version, v + 2);
	assert_int_equal(e.binding, 1);
	assert_memory_equal(&e.r, &r, sizeof(r));
	/* suspended, then closed: the version is odd once */
	rnic_mpt_suspend(&b->mpt, slot);
	drop(b, slot);
	assert_int_equal(version(b, slot), v + 3);
	assert_int_equal(rnic_mpt_publish(&b->mpt, &some, true, &key, &other),
			 0);
	/* the same for keys that were made */
	assert_int_equal(rnic_mpt_publish(&b->mpt, &some, false, &made, &slot),
			 0);
	rnic_mpt_suspend(&b->mpt, slot);
	assert_int_equal(rnic_mpt_publish(&b->mpt, &some, true, &made, &other),
			 -EEXIST);
}

enum { MANY = 3000 };

static struct rnic_mpt_item *items(uint64_t first_key)
{
	struct rnic_mpt_item *it = calloc(MANY, sizeof(*it));

	assert_non_null(it);
	for (int i = 0; i < MANY; i++)
		it[i] = (struct rnic_mpt_item){
			.r = some,
			.user = i % 3,
			.key = first_key + (uint64_t)i,
		};
	return it;
}

/* As a batch is published: nobody finds any before all are sure to be. */
static int publish_many(struct bed *b, struct rnic_mpt_item *it)
{
	int ret = rnic_mpt_reserve_many(&b->mpt, it, MANY);

	for (int i = 0; !ret && i < MANY; i++)
		assert_true(version(b, it[i].slot) & 1);
	if (!ret)
		rnic_mpt_show_many(&b->mpt, it, MANY);
	return ret;
}

/* All of them, or none, whichever it is that fails. */
static void contract_R10_many_or_none(void **state)
{
	struct bed *b = *state;
	struct rnic_mpt_item *it = items(1000), *bad = items(100000);
	uint64_t live = 0;

	bad[MANY - 1].user = true;
	bad[MANY - 1].key = 1001;
	assert_int_equal(publish_many(b, it), 0);
	assert_int_equal(b->mpt.keys, 2 * MANY / 3);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(publish_many(b, bad), -EEXIST);
		for (uint32_t s = 0; s < b->mpt.room; s++)
			live += !(version(b, s) & 1);
		assert_int_equal(live, MANY);
		assert_int_equal(b->mpt.keys, 2 * MANY / 3);
		live = 0;
	}
	/* one key twice in a call */
	bad[MANY - 1].key = bad[1].key;
	bad[1].user = true;
	assert_int_equal(publish_many(b, bad), -EEXIST);
	for (int i = 0; i < MANY; i++)
		drop(b, it[i].slot);
	assert_int_equal(b->mpt.keys, 0);
	bad[MANY - 1].key = 1001;
	bad[MANY - 1].user = true;
	for (int i = 0; i < MANY; i++)
		bad[i].key = 100000 + (uint64_t)i;
	assert_int_equal(publish_many(b, bad), 0);
	free(it);
	free(bad);
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
		cmocka_unit_test(contract_I4_devices_begin_apart),
		WITH(a_reserved_slot_is_not_found),
		WITH(contract_I4_slots_wait_for_readers),
		WITH(a_worn_slot_is_not_used_again),
		WITH(user_keys_are_unique_while_live),
		WITH(the_index_is_rebuilt),
		WITH(events_join_a_live_region),
		WITH(a_suspended_slot_keeps_its_key),
		WITH(contract_R10_many_or_none),
		cmocka_unit_test(zeroed_is_finished),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
