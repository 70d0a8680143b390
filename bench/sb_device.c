/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A device without libfabric around it.
 */
#include "bench/sb_device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/fence.h"
#include "shm/mtt.h"

const char *const sb_policy_name[RNIC_KEYCACHE_POLICIES] = {
	[RNIC_KEYCACHE_CLOCK] = "clock",
	[RNIC_KEYCACHE_LRU] = "lru",
	[RNIC_KEYCACHE_RANDOM] = "random",
	[RNIC_KEYCACHE_NONE] = "none",
};

int sb_device_fail(const char *what, int code)
{
	fprintf(stderr, "shrimp-bench: %s: %s\n", what, strerror(-code));
	return code;
}

static struct rnic_region region(void)
{
	const uint64_t va = UINT64_C(0x123456789000);
	struct rnic_region r = {
		.va = va,
		.length = SB_REGION_LEN,
		.mtt = rnic_mtt_root_make(0, rnic_mtt_leaf_va(va)),
		.rights = RNIC_REMOTE_READ | RNIC_MR_OFFSET | RNIC_MR_GIVEN,
	};

	return r;
}

static int publish(struct sb_device *d, bool user, uint64_t *key,
		   uint32_t *slot)
{
	struct rnic_region r = region();
	int ret = rnic_mpt_publish(&d->mpt, &r, user, key, slot);

	return ret ? sb_device_fail("rnic_mpt_publish", ret) : 0;
}

int sb_device_open(struct sb_device *d, uint32_t keys)
{
	const struct rnic_device_cfg cfg = { .heap_bytes = 1 << 20,
					     .membarrier = true };
	uint32_t slot;
	int ret = rnic_device_open(&d->dev, &cfg);

	if (!ret)
		ret = rnic_place_open(&d->dev, &d->place);
	if (ret)
		return sb_device_fail("opening a device", ret);
	rnic_place_addr(&d->place, &d->addr);
	ret = rnic_mpt_init(&d->mpt, &d->dev);
	d->key = calloc(keys, sizeof(*d->key));
	if (!ret && !d->key)
		ret = -ENOMEM;
	for (; d->keys < keys && !ret; d->keys++)
		ret = publish(d, false, &d->key[d->keys], &slot);
	return ret;
}

int sb_device_name(struct sb_device *d, uint32_t n)
{
	uint32_t slot;
	int ret = 0;

	for (; d->named < n && !ret; d->named += !ret) {
		uint64_t key = d->named + 1;

		ret = publish(d, true, &key, &slot);
	}
	return ret;
}

void sb_device_close(struct sb_device *d)
{
	free(d->key);
	rnic_mpt_fini(&d->mpt);
	rnic_place_close(&d->place);
	rnic_device_close(&d->dev);
	memset(d, 0, sizeof(*d));
}

int sb_device_remake(struct sb_device *d)
{
	uint64_t key;
	uint32_t slot;
	int ret = publish(d, false, &key, &slot);

	if (ret)
		return ret;
	rnic_mpt_invalidate(&d->mpt, slot);
	ret = rnic_grace_fence(&d->dev, slot);
	rnic_mpt_retire(&d->mpt, slot, rnic_grace_now(&d->dev));
	return ret ? sb_device_fail("rnic_grace_fence", ret) : 0;
}

static int context_open(struct sb_reader *rd,
			const struct rnic_keycache_cfg *cfg)
{
	rd->cache = calloc(1, rnic_keycache_bytes(cfg));
	if (!rd->cache)
		return -ENOMEM;
	return rnic_ctx_init(&rd->c, rd->cache, cfg);
}

int sb_reader_open(struct sb_reader *rd, const struct rnic_addr *addr,
		   const struct rnic_keycache_cfg *cfg)
{
	unsigned int index;
	/* else it would fence by itself at each entry */
	int ret = rnic_fence_register();

	if (!ret)
		ret = rnic_remote_open(addr, RNIC_ATTACH_PROC, &rd->r);
	if (!ret)
		ret = rnic_remote_claim(rd->r, addr, &rd->lane, &index);
	if (!ret)
		ret = context_open(rd, cfg);
	if (!ret)
		ret = rnic_target_init(&rd->t, rd->r, rd->lane, 0);
	return ret ? sb_device_fail("attaching to the device", ret) : 0;
}

void sb_reader_close(struct sb_reader *rd)
{
	rnic_target_fini(&rd->t);
	rnic_ctx_fini(&rd->c);
	free(rd->cache);
	if (rd->lane)
		rnic_remote_unmap_lane(rd->lane);
	if (rd->r)
		rnic_remote_close(rd->r);
	memset(rd, 0, sizeof(*rd));
}
