/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A domain and a monitor for the tests of the registration cache.
 */
#define _GNU_SOURCE
#include "lib/mr_cache_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/fabric.h"
#include "lib/info.h"
#include "shm/pin.h"
#include "shm/watch.h"
#include "tests/quiet_map.h"

/* Keys are the provider's: acquire hands out regions for peers. */
static struct fi_info *info_new(void)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	assert_non_null(hints);
	assert_int_equal(
		shrimp_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info),
		0);
	fi_freeinfo(hints);
	info->domain_attr->mr_mode =
		FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	return info;
}

void mck_fabric(struct mck_bed *b)
{
	struct fi_info *info = info_new();

	*b = (struct mck_bed){ 0 };
	assert_int_equal(
		shrimp_fabric_open(info->fabric_attr, &b->fabric, NULL), 0);
	b->set = &((struct shrimp_fabric *)b->fabric)->set;
	b->set->mrc = SHRIMP_MRC_ALL;
	b->set->pin = RNIC_PIN_OFF;
	fi_freeinfo(info);
}

void mck_domain(struct mck_bed *b)
{
	struct fi_info *info = info_new();
	struct fid_domain *fid;
	void *ops;

	assert_int_equal(fi_domain(b->fabric, info, &fid, NULL), 0);
	b->d = (struct shrimp_domain *)fid;
	assert_int_equal(
		fi_open_ops(&fid->fid, FI_SHRIMP_OPS_CACHE, 0, &ops, NULL), 0);
	b->ops = ops;
	fi_freeinfo(info);
}

void mck_close(struct mck_bed *b)
{
	struct rnic_pin_stats pins;

	if (b->d)
		assert_int_equal(fi_close(&b->d->fid.fid), 0);
	assert_int_equal(fi_close(&b->fabric->fid), 0);
	assert_int_equal(rnic_watch_ranges(), 0);
	assert_int_equal(mck_fake.watched, 0);
	rnic_pin_stats(&pins);
	assert_int_equal(pins.pages, 0);
}

char *mck_private(size_t len)
{
	char *p = quiet_private(len);

	assert_true(p != MAP_FAILED);
	memset(p, 1, len);
	return p;
}

char *mck_file(size_t len, int *fd)
{
	char *p;

	*fd = memfd_create("cache-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(*fd >= 0);
	assert_int_equal(ftruncate(*fd, (off_t)len), 0);
	assert_int_equal(fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	p = quiet_map(len, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	assert_true(p != MAP_FAILED);
	for (size_t i = 0; i < len; i += MCK_PAGE)
		p[i] = (char)(i / MCK_PAGE + 1);
	return p;
}

struct shrimp_cached *mck_get(struct mck_bed *b, void *p, size_t len,
			      uint32_t want)
{
	const struct iovec v = { .iov_base = p, .iov_len = len };
	struct shrimp_cached *e = NULL;

	assert_int_equal(shrimp_mr_cache_get(b->d, &v, want, &e), 0);
	return e;
}

bool mck_hits(struct mck_bed *b, void *p, size_t len, uint32_t want)
{
	uint64_t was = mck_stats(b).cache_hits;
	struct shrimp_cached *e = mck_get(b, p, len, want);
	bool found = mck_stats(b).cache_hits == was + 1;

	if (e)
		shrimp_cached_put(e);
	return e && found;
}

bool mck_keeps(struct mck_bed *b, void *p, size_t len, uint32_t want)
{
	struct shrimp_cached *e = mck_get(b, p, len, want);

	if (e)
		shrimp_cached_put(e);
	return e;
}

struct fi_shrimp_stats mck_stats(struct mck_bed *b)
{
	struct fi_shrimp_stats t = { 0 };

	shrimp_mr_cache_stats(b->d, &t);
	return t;
}

/* A registration; no order is meant. */
int mck_acquire(struct mck_bed *b, void *p, size_t len, uint64_t access,
		struct fid_mr **mr)
{
	*mr = NULL;
	return b->ops->acquire(&b->d->fid.fid, p, len, access, mr);
}

/* ---- the monitor ---- */

struct mck_fake mck_fake;

static void called(enum mck_call which)
{
	mck_fake.calls[which]++;
	if (mck_fake.hook)
		mck_fake.hook(which, mck_fake.calls[which]);
}

static int fake_open(struct rnic_listener *l)
{
	(void)l;
	return 0;
}

static void fake_close(struct rnic_listener *l)
{
	(void)l;
}

static int fake_watch(uint64_t start, uint64_t end)
{
	called(MCK_WATCH);
	if (!mck_fake.watch)
		mck_fake.watched += end - start;
	return mck_fake.watch;
}

static void fake_unwatch(uint64_t start, uint64_t end)
{
	called(MCK_UNWATCH);
	mck_fake.watched -= end - start;
}

static int fake_look(uint64_t start, uint64_t end)
{
	(void)start, (void)end;
	called(MCK_LOOK);
	return mck_fake.look;
}

static uint64_t fake_cycle(void)
{
	called(MCK_CYCLE);
	return mck_fake.cycle;
}

static const struct shrimp_mr_monitor monitor = {
	.name = "fake",
	.open = fake_open,
	.close = fake_close,
	.watch = fake_watch,
	.unwatch = fake_unwatch,
	.look = fake_look,
	.cycle = fake_cycle,
};

void mck_open(struct mck_bed *b, bool fake)
{
	mck_fake = (struct mck_fake){ 0 };
	mck_fabric(b);
	mck_domain(b);
	if (fake)
		b->d->cache.mon = &monitor;
}

void mck_event(struct mck_bed *b, void *p, size_t len, enum rnic_gone what)
{
	struct rnic_listener *l = &b->d->cache.kernel;

	l->gone(l, (uintptr_t)p, (uintptr_t)p + len, what);
}
