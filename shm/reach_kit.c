/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the tests of one-sided access share.
 */
#include "shm/reach_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>

#include "shm/grace.h"
#include "tests/quiet_map.h"

void kit_owner_open(struct kit_owner *o, bool membarrier)
{
	const struct rnic_device_cfg cfg = {
		.heap_bytes = 1 << 20,
		.membarrier = membarrier,
	};
	const struct rnic_header *h;
	char *tables;

	assert_int_equal(rnic_device_open(&o->dev, &cfg), 0);
	assert_int_equal(rnic_place_open(&o->dev, &o->place), 0);
	rnic_place_addr(&o->place, &o->addr);
	assert_int_equal(rnic_mpt_init(&o->mpt, &o->dev), 0);
	h = o->dev.hdr;
	tables = (char *)o->dev.hdr;
	rnic_mtt_pool_init(
		&o->mtt, &o->dev.tables, h->mtt_off,
		(struct rnic_mtt_page *)(void *)(tables + h->mtt_off),
		h->mtt_pages);
}

void kit_owner_close(struct kit_owner *o)
{
	rnic_mtt_pool_fini(&o->mtt);
	rnic_mpt_fini(&o->mpt);
	rnic_place_close(&o->place);
	rnic_device_close(&o->dev);
}

int kit_reader_open_cfg(struct kit_reader *d, const struct rnic_addr *addr,
			const struct rnic_keycache_cfg *cfg)
{
	uint64_t bytes = rnic_keycache_bytes(cfg);
	unsigned int index;
	int ret;

	*d = (struct kit_reader){
		.cfg = *cfg,
		.memo = aligned_alloc(RNIC_PAGE, bytes),
	};
	assert_non_null(d->memo);
	memset(d->memo, 0, bytes);
	assert_int_equal(rnic_ctx_init(&d->c, d->memo, cfg), 0);
	ret = rnic_remote_open(addr, RNIC_ATTACH_PROC, &d->r);
	if (!ret)
		ret = rnic_remote_claim(d->r, addr, &d->lane, &index);
	return ret ? ret : rnic_reach_init(&d->x, d->r, d->lane, 1);
}

int kit_reader_open(struct kit_reader *d, const struct rnic_addr *addr)
{
	static const struct rnic_keycache_cfg usual;

	return kit_reader_open_cfg(d, addr, &usual);
}

void kit_reader_close(struct kit_reader *d)
{
	rnic_reach_fini(&d->x);
	rnic_ctx_fini(&d->c);
	if (d->lane)
		rnic_remote_unmap_lane(d->lane);
	rnic_remote_close(d->r);
	free(d->memo);
}

struct kit_mem kit_arena(struct kit_owner *o, size_t len)
{
	struct kit_mem m = { .len = len };
	uint64_t off;
	void *p;

	assert_int_equal(rnic_arena_alloc(&o->dev.user, len, 0, &p, &off), 0);
	m.p = p;
	m.leaf = rnic_mtt_leaf_space(0, off / RNIC_PAGE);
	return m;
}

struct kit_mem kit_private(size_t len)
{
	struct kit_mem m = { .len = len };
	void *p = quiet_private(len);

	assert_true(p != MAP_FAILED);
	m.p = p;
	m.leaf = rnic_mtt_leaf_va((uintptr_t)p);
	return m;
}

void kit_publish(struct kit_owner *o, struct kit_mem *m, uint32_t rights)
{
	struct rnic_region r = {
		.va = (uintptr_t)m->p,
		.length = m->len,
		.mtt = rnic_mtt_root_make(0, m->leaf),
		.rights = rights,
	};

	assert_int_equal(
		rnic_mpt_publish(&o->mpt, &r, false, &m->key, &m->slot), 0);
}

uint64_t kit_publish_list(struct kit_owner *o, const struct kit_mem *m,
			  size_t n, uint32_t rights)
{
	struct rnic_mtt_range range[RNIC_MTT_RANGES_MAX];
	struct rnic_region r = { .rights = rights | RNIC_MR_LIST |
					   RNIC_MR_OFFSET };
	uint64_t key = 0;
	uint32_t slot;

	for (size_t i = 0; i < n; i++) {
		range[i] = (struct rnic_mtt_range){
			.bytes = m[i].len,
			.va = (uintptr_t)m[i].p,
			.root = rnic_mtt_root_make(0, m[i].leaf),
		};
		r.length += m[i].len;
	}
	r.va = range[0].va;
	assert_int_equal(rnic_mtt_list_make(&o->mtt, range, n, &r.mtt), 0);
	assert_int_equal(rnic_mpt_publish(&o->mpt, &r, false, &key, &slot), 0);
	return key;
}

void kit_withdraw(struct kit_owner *o, const struct kit_mem *m)
{
	rnic_mpt_invalidate(&o->mpt, m->slot);
	assert_int_equal(rnic_grace_fence(&o->dev, m->slot), 0);
	rnic_mpt_retire(&o->mpt, m->slot, rnic_grace_now(&o->dev));
}
