/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Local protection: the table, and the check. The calls: lib/local_ops.c.
 *
 * Why a check needs no lock:
 *
 *   hide                put, get, show            check
 *   good = 0        E1  fields, by release    E2  load good; the descriptor?
 *                       good, by release      E3  load fields, by acquire
 *                                             E4  load good; still?
 *
 * E3 of the show before pairs with the first load: the fields are there. If one
 * of them was already overwritten (E2) for another region, the load that saw
 * it acquires what was before that store, which is E1: the last load finds
 * the descriptor gone, since it never comes back. A region that is shown again
 * has the same fields as before.
 */
#include "lib/local.h"

#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/domain.h"
#include "lib/mr.h"
#include "shm/breakage.h"
#include "shm/compiler.h"
#include "shm/log.h"

enum {
	INDEX_BITS = 24,
	GENERATION_BITS = 39,
};

/* Of each descriptor: so it is not NULL, nor an address of the process. */
#define IS_DESC (UINT64_C(1) << 63)

_Static_assert(sizeof(void *) == sizeof(uint64_t) &&
		       INDEX_BITS + GENERATION_BITS == 63,
	       "a descriptor fills a pointer");

/* What a descriptor stands for. */
struct entry {
	rnic_a64 good;	 /* the descriptor, 0: hidden */
	rnic_a32 rights; /* enum rnic_right */
	rnic_a32 n;	 /* ranges, always at most SHRIMP_IOV_MAX */
	struct {
		rnic_a64 at;  /* first byte */
		rnic_a64 len; /* bytes */
	} range[SHRIMP_IOV_MAX];
	uint32_t next; /* as shrimp_local.unused; the lock */
} __attribute__((aligned(64)));

/*
 * Of the process, so that no domain takes another's descriptor for its own.
 * The first one comes again after 2^39, some days of doing nothing else.
 */
static rnic_a64 generations;

void shrimp_local_init(struct shrimp_local *t)
{
	memset(t, 0, sizeof(*t));
	pthread_mutex_init(&t->lock, NULL);
}

void shrimp_local_fini(struct shrimp_local *t)
{
	/* relaxed: nobody else is here */
	for (int i = 0; i < SHRIMP_LOCAL_CHUNKS; i++)
		free(rnic_ptr_load_relaxed(&t->chunk[i]));
	pthread_mutex_destroy(&t->lock);
}

/* ---- entries ---- */

static size_t chunk_len(unsigned int chunk)
{
	return (size_t)SHRIMP_LOCAL_FIRST << chunk;
}

/* The chunk of entry @i: those before it have FIRST * (2^chunk - 1). */
static unsigned int chunk_of(uint32_t i)
{
	return 31 - (unsigned int)__builtin_clz(i / SHRIMP_LOCAL_FIRST + 1);
}

/* Entry @i, which may be any number of INDEX_BITS; NULL: there is none. */
static struct entry *entry_at(const struct shrimp_local *t, uint32_t i)
{
	unsigned int k = chunk_of(i);
	struct entry *e;

	if (k >= SHRIMP_LOCAL_CHUNKS)
		return NULL;
	/* E5: pairs with E6: zeroed entries */
	e = rnic_ptr_load_acquire(&t->chunk[k]);
	return e ? e + (i + SHRIMP_LOCAL_FIRST - chunk_len(k)) : NULL;
}

static uint32_t index_of(const void *desc)
{
	return (uintptr_t)desc & ((1u << INDEX_BITS) - 1);
}

/* True if there is room for one more entry. Lock held. */
static bool grow(struct shrimp_local *t)
{
	unsigned int k = chunk_of(t->made);
	size_t bytes = chunk_len(k) * sizeof(struct entry);
	struct entry *e;

	if (k >= SHRIMP_LOCAL_CHUNKS)
		return false;
	/* relaxed: the lock is held */
	if (rnic_ptr_load_relaxed(&t->chunk[k]))
		return true;
	e = aligned_alloc(_Alignof(struct entry), bytes);
	if (!e)
		return false;
	memset(e, 0, bytes);
	/* E6: publishes zeroed entries; pairs with E5 in entry_at() */
	rnic_ptr_store_release(&t->chunk[k], e);
	return true;
}

/* An entry that nobody has. False: there is no more. Lock held. */
static bool take(struct shrimp_local *t, uint32_t *i)
{
	if (t->unused) {
		*i = t->unused - 1;
		t->unused = entry_at(t, *i)->next;
		return true;
	}
	if (!grow(t))
		return false;
	*i = t->made++;
	return true;
}

static void *desc_of(uint32_t i)
{
	/* relaxed: only that it is another number counts */
	uint64_t g = rnic_add64_relaxed(&generations, 1);

	g &= (UINT64_C(1) << GENERATION_BITS) - 1;
	return (void *)(uintptr_t)(IS_DESC | g << INDEX_BITS | i);
}

static struct shrimp_local *table_of(const struct shrimp_mr *mr)
{
	return &mr->domain->local;
}

/* False: the descriptor of @mr, if it has one, is no entry's. */
static bool is_ours(const struct shrimp_mr *mr)
{
	return mr->domain->mr_mode & FI_MR_LOCAL && mr->fid.mem_desc;
}

int shrimp_local_get(struct shrimp_mr *mr)
{
	struct shrimp_local *t = table_of(mr);
	uint32_t i = 0;
	bool ok;

	mr->fid.mem_desc = mr;
	if (!is_ours(mr))
		return 0;
	pthread_mutex_lock(&t->lock);
	ok = take(t, &i);
	pthread_mutex_unlock(&t->lock);
	mr->fid.mem_desc = ok ? desc_of(i) : NULL;
	return ok ? 0 : -FI_ENOMEM;
}

void shrimp_local_put(struct shrimp_mr *mr)
{
	struct shrimp_local *t = table_of(mr);
	uint32_t i = index_of(mr->fid.mem_desc);

	if (!is_ours(mr))
		return;
	mr->fid.mem_desc = NULL;
	pthread_mutex_lock(&t->lock);
	entry_at(t, i)->next = t->unused;
	t->unused = i + 1;
	pthread_mutex_unlock(&t->lock);
}

void shrimp_local_show(const struct shrimp_mr *mr)
{
	struct shrimp_local *t = table_of(mr);
	struct entry *e;

	if (!is_ours(mr))
		return;
	pthread_mutex_lock(&t->lock);
	e = entry_at(t, index_of(mr->fid.mem_desc));
	/* E2, each: publishes that the last descriptor is gone (E1) */
	rnic_store32_release(&e->rights, mr->region.rights);
	rnic_store32_release(&e->n, (uint32_t)mr->niov);
	for (size_t i = 0; i < mr->niov; i++) {
		rnic_store64_release(&e->range[i].at,
				     (uintptr_t)mr->iov[i].iov_base);
		rnic_store64_release(&e->range[i].len, mr->iov[i].iov_len);
	}
	/* E3: publishes the fields; pairs with the first load of look() */
	rnic_store64_release(&e->good, (uintptr_t)mr->fid.mem_desc);
	pthread_mutex_unlock(&t->lock);
}

void shrimp_local_hide(const struct shrimp_mr *mr)
{
	struct shrimp_local *t = table_of(mr);

	if (!is_ours(mr))
		return;
	pthread_mutex_lock(&t->lock);
	/* E1, relaxed: E2 orders it before what the entry is next */
	rnic_store64_relaxed(&entry_at(t, index_of(mr->fid.mem_desc))->good, 0);
	pthread_mutex_unlock(&t->lock);
}

/* ---- the check ---- */

/* How many of the @len bytes at @at, from the first on, range @i of @e has. */
static uint64_t bytes_in(const struct entry *e, uint32_t i, uint64_t at,
			 uint64_t len)
{
	/* acquire: E2, see the head */
	uint64_t off = at - rnic_load64_acquire(&e->range[i].at);
	/* acquire: likewise */
	uint64_t has = rnic_load64_acquire(&e->range[i].len);

	if (off >= has)
		return 0;
	return len < has - off ? len : has - off;
}

/* True if each byte is in a range; two may be neighbours. */
static bool covers(const struct entry *e, uint64_t at, uint64_t len)
{
	/* acquire: E2, see the head */
	uint32_t n = rnic_load32_acquire(&e->n);
	uint64_t got = 1;

	while (len && got) {
		got = 0;
		for (uint32_t i = 0; i < n && !got; i++)
			got = bytes_in(e, i, at, len);
		at += got;
		len -= got;
	}
	return !len;
}

/* 0, or what is wrong with @b, which has a descriptor; *@why: in words. */
static int look(const struct shrimp_local *t, const struct shrimp_local_buf *b,
		const char **why)
{
	const struct entry *e = entry_at(t, index_of(b->desc));
	uint64_t desc = (uintptr_t)b->desc;
	uint32_t rights;
	bool all;

	*why = "of no region of this domain that is registered, enabled and "
	       "not being refreshed";
	/* acquire: pairs with E3. A hidden one is 0, which @desc is not */
	if (!e || rnic_load64_acquire(&e->good) != desc)
		return -FI_EKEYREJECTED;
	/* acquire: E2, see the head */
	rights = rnic_load32_acquire(&e->rights);
	all = covers(e, (uintptr_t)b->at, b->len);
	/* E4, relaxed: the loads of the fields are acquires */
	if (rnic_load64_relaxed(&e->good) != desc)
		return -FI_EKEYREJECTED;
	*why = b->right == RNIC_LOCAL_READ
		       ? "its region was registered without FI_SEND, FI_WRITE"
		       : "its region was registered without FI_RECV, FI_READ";
	if (!(rights & b->right) && !RNIC_BROKEN(local_rights))
		return -FI_EACCES;
	*why = "its region does not have all of these bytes";
	return all ? 0 : -FI_EINVAL;
}

int shrimp_local_check(const struct shrimp_local *t,
		       const struct shrimp_local_buf *b)
{
	const char *why = "no descriptor, though FI_MR_LOCAL is in force";
	int ret = -FI_EINVAL;

	if (!b->len)
		return 0;
	if (RNIC_LIKELY(b->desc))
		ret = look(t, b, &why);
	if (RNIC_UNLIKELY(ret))
		rnic_log(RNIC_LOG_WARN,
			 "%s: buffer at %p, %zu bytes, descriptor %p: %s",
			 b->call, b->at, b->len, b->desc, why);
	return ret;
}
