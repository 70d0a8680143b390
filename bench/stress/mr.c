/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Regions.
 */
#include "bench/stress/mr.h"

#include <string.h>

/* Keys from here on are for other threads. */
static const uint64_t BESIDE = 1ull << 33;

struct stress_side *stress_side_pick(struct stress *s)
{
	return s->other.ep && stress_random(s, 2) ? &s->other : &s->main;
}

void *stress_mr_desc(const struct stress_mr *m)
{
	return m->mr ? fi_mr_desc(m->mr) : NULL;
}

static uint64_t access_of(const struct stress_side *e, enum stress_use use)
{
	uint64_t out = FI_SEND, in = FI_RECV;

	if (e->rma) {
		out |= FI_WRITE;
		in |= FI_READ;
	}
	if (e->rma && !(use & STRESS_LOCAL)) {
		out |= FI_REMOTE_READ;
		in |= FI_REMOTE_WRITE;
	}
	return (use & STRESS_OUT ? out : 0) | (use & STRESS_IN ? in : 0);
}

/* A key to ask for, where the provider does not choose. */
static uint64_t key_next(struct stress *s)
{
	uint64_t spare = s->spare_key;

	if (spare && stress_random(s, 2)) {
		s->spare_key = 0;
		return spare;
	}
	return ++s->keys;
}

/* Whether it is for want of memory, of any kind. */
static bool is_want(int ret)
{
	return ret == -FI_ENOMEM || ret == -FI_ENOSPC;
}

static int failed(struct stress *s, const char *call, const void *p, size_t len,
		  int ret)
{
	if (!is_want(ret))
		return stress_wrong(s, "%s of %zu bytes at %p: %s", call, len,
				    p, stress_code(ret));
	stress_refused(s);
	return stress_skip(s, "%s: %s", call, stress_code(ret));
}

static int endpoint_bind(struct stress_side *e, struct fid_mr *mr)
{
	int ret;

	if (!(e->info->domain_attr->mr_mode & FI_MR_ENDPOINT))
		return 0;
	ret = fi_mr_bind(mr, &e->ep->fid, 0);
	return ret ? ret : fi_mr_enable(mr);
}

/* Any thread. Returns 0 or an FI_ code. */
static int mr_open(struct stress_mr *m, uint64_t access, uint64_t flags,
		   uint64_t key)
{
	int mode = m->side->info->domain_attr->mr_mode;
	struct iovec iov = { .iov_base = m->p, .iov_len = m->len };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = access,
				   .requested_key = key };
	int ret = fi_mr_regattr(m->side->domain, &attr, flags, &m->mr);

	if (ret) {
		m->mr = NULL;
		return ret;
	}
	ret = endpoint_bind(m->side, m->mr);
	if (ret) {
		fi_close(&m->mr->fid);
		m->mr = NULL;
		return ret;
	}
	m->key = fi_mr_key(m->mr);
	m->addr = mode & FI_MR_VIRT_ADDR ? (uintptr_t)m->p : 0;
	return 0;
}

/* Whether the provider chooses the keys. */
static bool keys_given(const struct stress_side *e)
{
	return e->info->domain_attr->mr_mode & FI_MR_PROV_KEY;
}

static int mr_make(struct stress *s, struct stress_mr *m, uint64_t access,
		   uint64_t flags)
{
	uint64_t key = keys_given(m->side) ? 0 : key_next(s);
	int ret = mr_open(m, access, flags, key);

	return ret ? failed(s, "fi_mr_regattr", m->p, m->len, ret) : 0;
}

static void mr_name(struct stress_mr *m, struct stress_side *e, void *p,
		    size_t len)
{
	*m = (struct stress_mr){ .side = e, .p = p, .len = len };
}

int stress_mr_reg_on(struct stress *s, struct stress_side *e, void *p,
		     size_t len, enum stress_use use, struct stress_mr *m)
{
	mr_name(m, e, p, len);
	return mr_make(s, m, access_of(e, use), 0);
}

int stress_mr_reg(struct stress *s, void *p, size_t len, enum stress_use use,
		  uint64_t flags, struct stress_mr *m)
{
	int ret;

	mr_name(m, stress_side_pick(s), p, len);
	ret = mr_make(s, m, access_of(m->side, use), flags);
	stress_say(s, "register %p %zu%s: key %#lx", p, len,
		   flags & FI_SHRIMP_ON_DEMAND ? " on demand" : "",
		   (unsigned long)m->key);
	return ret;
}

/* Where offsets of a region from the cache, which may be larger, begin. */
static int acquired_place(struct stress *s, struct stress_mr *m)
{
	struct fi_shrimp_mr_info info = { .size = sizeof(info) };
	int ret;

	m->addr = (uintptr_t)m->p;
	if (m->side->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		return 0;
	ret = m->side->mrs->query(m->mr, &info, NULL, NULL);
	if (ret)
		return stress_wrong(s, "query of a cached region: %s",
				    stress_code(ret));
	m->addr -= info.addr;
	return 0;
}

enum { NOT_CACHED = 2 }; /* the cache does not do that here */

/* 0, STRESS_SKIP, STRESS_FAILED or NOT_CACHED. */
static int mr_acquire(struct stress *s, struct stress_mr *m, uint64_t access)
{
	int ret = m->side->cache->acquire(&m->side->domain->fid, m->p, m->len,
					  access, &m->mr);

	if (ret == -FI_EINVAL || ret == -FI_ENOSYS) {
		m->mr = NULL;
		return NOT_CACHED;
	}
	if (ret) {
		m->mr = NULL;
		return failed(s, "acquire", m->p, m->len, ret);
	}
	m->acquired = true;
	m->key = fi_mr_key(m->mr);
	stress_say(s, "acquire %p %zu: key %#lx", (void *)m->p, m->len,
		   (unsigned long)m->key);
	return acquired_place(s, m);
}

int stress_mr_get_on(struct stress *s, struct stress_side *e, void *p,
		     size_t len, enum stress_use use, struct stress_mr *m)
{
	int ret = NOT_CACHED;

	mr_name(m, e, p, len);
	if (e->cache && e->mrs && stress_random(s, 2))
		/* a registration; no order is meant */
		ret = mr_acquire(s, m, access_of(e, use));
	if (ret != NOT_CACHED)
		return ret;
	ret = mr_make(s, m, access_of(e, use), 0);
	stress_say(s, "register %p %zu: key %#lx", p, len,
		   (unsigned long)m->key);
	return ret;
}

int stress_mr_get(struct stress *s, void *p, size_t len, enum stress_use use,
		  struct stress_mr *m)
{
	return stress_mr_get_on(s, stress_side_pick(s), p, len, use, m);
}

int stress_mr_reg_beside(struct stress *s, void *p, size_t len,
			 enum stress_use use, uint64_t key, struct stress_mr *m)
{
	mr_name(m, &s->main, p, len);
	return mr_open(m, access_of(m->side, use), 0,
		       keys_given(m->side) ? 0 : key);
}

void stress_flush(struct stress *s)
{
	int ret = 0;

	if (s->main.cache)
		ret = s->main.cache->flush(&s->main.domain->fid);
	if (!ret && s->other.cache)
		ret = s->other.cache->flush(&s->other.domain->fid);
	stress_say(s, "flush");
	if (ret)
		stress_wrong(s, "flush of the cache: %s", stress_code(ret));
}

int stress_mr_put(struct stress *s, struct stress_mr *m)
{
	bool acquired = m->acquired;
	int ret;

	if (!m->mr)
		return 0;
	if (acquired)
		ret = m->side->cache->release(m->mr);
	else
		ret = fi_close(&m->mr->fid);
	if (!acquired && !keys_given(m->side) && m->key < BESIDE)
		s->spare_key = m->key;
	memset(m, 0, sizeof(*m));
	if (!ret)
		return 0;
	return stress_wrong(s, "%s of a region: %s",
			    acquired ? "release" : "fi_close",
			    stress_code(ret));
}
