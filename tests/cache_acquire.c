/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Regions that are acquired and released instead of registered and closed: the
 * calls of FI_SHRIMP_OPS_CACHE.
 */
#define _GNU_SOURCE
#include "cache_kit.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "quiet_map.h"

enum { PAGE = RK_PAGE, PAGES = 16, LEN = PAGES * PAGE };

/* ---- acquire ---------------------------------------------------------------------- */

static struct fid_mr *acquire(struct ck_bed *b, const void *p, size_t len,
			      uint64_t access)
{
	struct fid_mr *mr = NULL;

	th_ok(b->c.ops->acquire(b->dom, p, len, access, &mr));
	th_check(mr);
	return mr;
}

static void release(struct ck_bed *b, struct fid_mr *mr)
{
	th_ok(b->c.ops->release(mr));
}

/* Threads may have the same region: each object by one at a time. */
static struct fi_shrimp_mr_info info_of(struct ck_bed *b, struct fid_mr *mr)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct fi_shrimp_mr_info i = { .size = sizeof(i) };

	pthread_mutex_lock(&lock);
	th_ok(b->mr->query(mr, &i, NULL, NULL));
	pthread_mutex_unlock(&lock);
	return i;
}

/* How a write of all @byte through @mr to @len bytes at @p ends. */
static int put(struct ck_bed *b, struct fid_mr *mr, const void *p, size_t len,
	       unsigned char byte)
{
	uint64_t addr = (uintptr_t)p;
	struct fi_shrimp_mr_info i = info_of(b, mr);
	int err;

	if (i.flags & FI_SHRIMP_MR_OFFSET)
		addr -= i.addr;
	err = rk_write_at(&b->a, fi_mr_key(mr), addr, len, byte);
	th_settle(&b->a);
	return err;
}

/* It covers what was asked for, and can be used for it. */
static void good(struct ck_bed *b, struct fid_mr *mr, unsigned char *p,
		 size_t len, uint64_t access)
{
	struct fi_shrimp_mr_info i = info_of(b, mr);
	static unsigned char byte;

	th_check(i.addr <= (uintptr_t)p);
	th_check(i.addr + i.len >= (uintptr_t)p + len);
	th_eq(i.access & access, access);
	th_check(i.flags & FI_SHRIMP_MR_LIVE);
	if (!(access & FI_REMOTE_WRITE))
		return;
	th_eq(put(b, mr, p, len, ++byte), 0);
	th_verify_byte(p, len, byte);
}

static void acquire_arguments(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fi_ops_shrimp_cache *ops;
	struct fid_mr *mr = NULL;
	struct ck_bed b;

	ck_bed_open(&b, self, "prov_key,virt_addr");
	ops = b.c.ops;
	th_eq(ops->acquire(b.dom, p, 0, CK_LOCAL, &mr), -FI_EINVAL);
	th_eq(ops->acquire(b.dom, p, SIZE_MAX, CK_LOCAL, &mr), -FI_EINVAL);
	rk_take_away(p, PAGE);
	th_eq(ops->acquire(b.dom, p, LEN, CK_LOCAL, &mr), -FI_EFAULT);
	th_eq(mprotect(p + PAGE, PAGE, PROT_READ), 0);
	th_eq(ops->acquire(b.dom, p + PAGE, PAGE, RK_RW, &mr), -FI_EFAULT);
	th_ptr_eq(mr, NULL);
	mr = acquire(&b, p + PAGE, PAGE, FI_REMOTE_READ);
	release(&b, mr);
	/* a region of another kind */
	mr = rk_reg(&b.b, p + 2 * PAGE, PAGE, RK_RW, 0);
	th_eq(ops->release(mr), -FI_EINVAL);
	th_ok(fi_close(&mr->fid));
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* Where keys are the client's there is none for it. */
static void acquire_without_provider_keys(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fid_mr *mr = NULL;
	struct ck_bed b;

	ck_bed_open(&b, self, NULL);
	th_eq(b.c.ops->acquire(b.dom, p, LEN, RK_RW, &mr), -FI_EINVAL);
	th_ptr_eq(mr, NULL);
	mr = acquire(&b, p, LEN, CK_LOCAL);
	th_check(fi_mr_desc(mr));
	release(&b, mr);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* Twice the same, a part of it, and what it is no part of. */
static void acquire_again(struct th_self *self)
{
	const uint64_t access = RK_RW | CK_LOCAL;
	unsigned char *p = rk_pages(LEN);
	struct fid_mr *m[4];
	uint64_t hits;
	struct ck_bed b;

	ck_bed_open(&b, self, "prov_key,virt_addr");
	m[0] = acquire(&b, p + PAGE, 4 * PAGE, access);
	good(&b, m[0], p + PAGE, 4 * PAGE, access);
	hits = ck_stats(&b.c).cache_hits;
	m[1] = acquire(&b, p + PAGE, 4 * PAGE, access);
	th_eq(ck_stats(&b.c).cache_hits, hits + 1);
	m[2] = acquire(&b, p + 2 * PAGE + 3, 100, FI_REMOTE_WRITE);
	th_eq(ck_stats(&b.c).cache_hits, hits + 2);
	m[3] = acquire(&b, p, LEN, access);
	good(&b, m[3], p, LEN, access);
	good(&b, m[2], p + 2 * PAGE + 3, 100, FI_REMOTE_WRITE);
	/* each is given back by itself; the others stay good */
	release(&b, m[1]);
	good(&b, m[0], p + PAGE, 4 * PAGE, access);
	release(&b, m[0]);
	good(&b, m[2], p + 2 * PAGE + 3, 100, FI_REMOTE_WRITE);
	release(&b, m[3]);
	release(&b, m[2]);
	/* and is found again after that */
	hits = ck_stats(&b.c).cache_hits;
	m[0] = acquire(&b, p, LEN, access);
	th_eq(ck_stats(&b.c).cache_hits, hits + 1);
	good(&b, m[0], p, LEN, access);
	release(&b, m[0]);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* Addresses from the region's start: the part tells where it is. */
static void acquire_by_offset(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fid_mr *all, *part;
	struct ck_bed b;

	ck_bed_open(&b, self, "prov_key");
	all = acquire(&b, p, LEN, RK_RW);
	good(&b, all, p, LEN, RK_RW);
	part = acquire(&b, p + 3 * PAGE + 1, PAGE, RK_RW);
	good(&b, part, p + 3 * PAGE + 1, PAGE, RK_RW);
	release(&b, all);
	good(&b, part, p + 3 * PAGE + 1, PAGE, RK_RW);
	release(&b, part);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* Rights that a region does not have are another region's. */
static void acquire_other_rights(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fid_mr *r, *w;
	struct ck_bed b;
	bool more;

	ck_bed_open(&b, self, "prov_key,virt_addr");
	r = acquire(&b, p, LEN, FI_REMOTE_READ);
	good(&b, r, p, LEN, FI_REMOTE_READ);
	/* it may have more, but keeps what it has */
	more = info_of(&b, r).access & FI_REMOTE_WRITE;
	th_eq(put(&b, r, p, 8, 1), more ? 0 : FI_EACCES);
	w = acquire(&b, p, LEN, FI_REMOTE_WRITE);
	th_check(more || r != w);
	good(&b, w, p, LEN, FI_REMOTE_WRITE);
	th_eq(put(&b, r, p, 8, 1), more ? 0 : FI_EACCES);
	release(&b, r);
	release(&b, w);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* Acquired regions lock nothing, and are no concern of the limits. */
static void acquire_beyond_the_limit(struct th_self *self)
{
	enum { N = 40, LIMIT = 4 };
	unsigned char *p = rk_pages(2 * N * PAGE), *other = rk_pages(LEN);
	struct fid_mr *m[N];
	struct ck_bed b;

	setenv("FI_SHRIMP_MR_CACHE_ENTRIES", "4", 1);
	ck_bed_open(&b, self, "prov_key,virt_addr");
	for (size_t i = 0; i < N; i++)
		m[i] = acquire(&b, p + 2 * i * PAGE, PAGE, RK_RW);
	th_eq(ck_locked(p, 2 * N * PAGE), 0);
	for (size_t i = 0; i < N; i++)
		good(&b, m[i], p + 2 * i * PAGE, PAGE, RK_RW);
	for (size_t i = 0; i < N; i++)
		release(&b, m[i]);
	/* a limit may be looked at only when an entry comes */
	release(&b, acquire(&b, other, PAGE, RK_RW));
	release(&b, acquire(&b, other + 2 * PAGE, PAGE, RK_RW));
	th_check(ck_stats(&b.c).cache_entries <= LIMIT);
	th_ok(b.c.ops->flush(b.dom));
	th_eq(ck_stats(&b.c).cache_entries, 0);
	ck_unmap(&b.c, p, 2 * N * PAGE);
	ck_bed_close(&b);
}

/* What is flushed has no key any more; what is in use has. */
static void flush_ends_keys(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fid_mr *used, *mr;
	uint64_t key;
	struct ck_bed b;

	ck_bed_open(&b, self, "prov_key,virt_addr");
	used = acquire(&b, p, PAGE, RK_RW);
	mr = acquire(&b, p + 4 * PAGE, PAGE, RK_RW);
	key = fi_mr_key(mr);
	good(&b, mr, p + 4 * PAGE, PAGE, RK_RW);
	release(&b, mr);
	memset(p + 4 * PAGE, 0x77, PAGE);
	th_ok(b.c.ops->flush(b.dom));
	th_eq(rk_write_at(&b.a, key, (uintptr_t)p + 4 * PAGE, PAGE, 1),
	      FI_EKEYREJECTED);
	th_verify_byte(p + 4 * PAGE, PAGE, 0x77);
	good(&b, used, p, PAGE, RK_RW);
	release(&b, used);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* Its memory goes while it is in use: the next one has what is there. */
static void acquired_and_unmapped(struct th_self *self)
{
	int fd[2] = { rk_file_new(LEN), rk_file_new(LEN) };
	unsigned char *p = rk_file_map(fd[0], LEN, NULL);
	struct fid_mr *old, *mr;
	struct ck_bed b;

	ck_bed_open(&b, self, "prov_key,virt_addr");
	for (unsigned long i = 0; i < th_rounds(20); i++) {
		old = acquire(&b, p, LEN, RK_RW);
		good(&b, old, p, LEN, RK_RW);
		/* all of it, or a page; a file, or private memory */
		if (i % 3 == 2)
			ck_replace(&b.c, p, LEN, -1, 0);
		else
			ck_replace(&b.c, p + i % 3 * PAGE, LEN - i % 3 * PAGE,
				   fd[(i + 1) % 2], i % 3 * PAGE);
		mr = acquire(&b, p, LEN, RK_RW);
		good(&b, mr, p, LEN, RK_RW);
		release(&b, i & 1 ? old : mr);
		release(&b, i & 1 ? mr : old);
		mr = acquire(&b, p + PAGE, LEN - PAGE, RK_RW);
		good(&b, mr, p + PAGE, LEN - PAGE, RK_RW);
		release(&b, mr);
	}
	ck_unmap(&b.c, p, LEN);
	close(fd[0]);
	close(fd[1]);
	ck_bed_close(&b);
}

/*
 * What nobody uses has no key when its memory has gone: what is mapped there
 * next stays untouched, though nothing was called since.
 */
static void contract_R12_idle_key(struct th_self *self)
{
	struct ck_bed b;

	ck_bed_open(&b, self, "prov_key,virt_addr");
	for (unsigned long i = 0; i < th_rounds(200); i++) {
		unsigned char *p = rk_pages(LEN);
		struct fid_mr *mr = acquire(&b, p, LEN, RK_RW);
		uint64_t key = fi_mr_key(mr);
		int err;

		good(&b, mr, p, LEN, RK_RW);
		release(&b, mr);
		ck_replace(&b.c, p, LEN, -1, 0);
		err = rk_write_at(&b.a, key, (uintptr_t)p, LEN, 0x11);
		th_check(err == FI_EFAULT || err == FI_EKEYREJECTED);
		th_verify_byte(p, LEN, 0);
		/* what is acquired there now is another one */
		mr = acquire(&b, p, LEN, RK_RW);
		good(&b, mr, p, LEN, RK_RW);
		release(&b, mr);
		ck_unmap(&b.c, p, LEN);
	}
	ck_bed_close(&b);
}

/* Memory of a file goes, or a part of it does. */
static void file_goes(struct ck_bed *b, unsigned char *p, unsigned long way)
{
	void *to;

	switch (way % 4) {
	case 0:
		ck_replace(&b->c, p, LEN, -1, 0);
		break;
	case 1:
		ck_map_over(&b->c, p + PAGE, PAGE, -1, 0);
		break;
	case 2:
		ck_unmap(&b->c, p + LEN / 2, LEN / 2);
		break;
	default: /* and is somewhere else */
		to = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
		ck_begin(&b->c, p, LEN);
		th_check(mremap(p, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED,
				to) == to);
		ck_end(&b->c, p, LEN);
		ck_unmap(&b->c, to, LEN);
	}
}

/*
 * The same of memory of a file, which stays when its mapping goes, and is
 * mapped twice: nothing is written to it.
 */
static void contract_R12_idle_file_key(struct th_self *self)
{
	struct ck_bed b;

	ck_bed_open(&b, self, "prov_key,virt_addr");
	for (unsigned long i = 0; i < th_rounds(200); i++) {
		int fd = rk_file_new(LEN);
		/* nobody else maps anything there */
		unsigned char *p = rk_file_map(fd, LEN, quiet_private(LEN));
		unsigned char *twin = rk_file_map(fd, LEN, NULL);
		struct fid_mr *mr = acquire(&b, p, LEN, RK_RW);
		uint64_t key = fi_mr_key(mr);
		int err;

		good(&b, mr, p, LEN, RK_RW);
		release(&b, mr);
		file_goes(&b, p, i);
		memset(twin, 0x33, LEN);
		err = rk_write_at(&b.a, key, (uintptr_t)p, LEN, 0x11);
		th_check(err == FI_EFAULT || err == FI_EKEYREJECTED);
		err = rk_write_at(&b.a, key, (uintptr_t)p, 8, 0x11);
		th_check(err == FI_EFAULT || err == FI_EKEYREJECTED);
		th_verify_byte(twin, LEN, 0x33);
		mr = acquire(&b, twin, LEN, RK_RW);
		good(&b, mr, twin, LEN, RK_RW);
		release(&b, mr);
		ck_unmap(&b.c, twin, LEN);
		ck_unmap(&b.c, p, LEN);
		close(fd);
	}
	ck_bed_close(&b);
}

/* It went while it was in use: its key goes with the last of its users. */
static void contract_R12_last_user(struct th_self *self)
{
	struct ck_bed b;

	ck_bed_open(&b, self, "prov_key,virt_addr");
	for (unsigned long i = 0; i < th_rounds(200); i++) {
		unsigned char *p = rk_pages(LEN);
		struct fid_mr *mr = acquire(&b, p, LEN, RK_RW);
		struct fid_mr *part = acquire(&b, p, PAGE, RK_RW);
		uint64_t key = fi_mr_key(mr);

		th_ptr_eq(mr, part);
		ck_replace(&b.c, p + LEN / 2, LEN / 2, -1, 0);
		/* a neighbour's unmapping is not his business */
		good(&b, part, p, PAGE, RK_RW);
		release(&b, mr);
		good(&b, part, p, PAGE, RK_RW);
		memset(p, 0x22, LEN);
		release(&b, part);
		th_eq(rk_write_at(&b.a, key, (uintptr_t)p, LEN, 0x11),
		      FI_EKEYREJECTED);
		th_verify_byte(p, LEN, 0x22);
		ck_unmap(&b.c, p, LEN);
	}
	ck_bed_close(&b);
}

/* Each domain has a cache of its own; what goes, goes from both. */
static void acquire_in_two_domains(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fid_mr *m, *other = NULL;
	struct fi_ops_shrimp_cache *ops;
	struct ck_bed b;
	uint64_t key;

	ck_bed_open(&b, self, "prov_key,virt_addr");
	th_ok(fi_open_ops(&b.a.domain->fid, FI_SHRIMP_OPS_CACHE, 0,
			  (void **)&ops, NULL));
	m = acquire(&b, p, LEN, RK_RW);
	th_ok(ops->acquire(&b.a.domain->fid, p, LEN, RK_RW, &other));
	th_check(m != other);
	good(&b, m, p, LEN, RK_RW);
	key = fi_mr_key(other);
	if (key != fi_mr_key(m))
		th_eq(rk_write_at(&b.a, key, (uintptr_t)p, 8, 1),
		      FI_EKEYREJECTED);
	th_ok(ops->release(other));
	release(&b, m);
	ck_replace(&b.c, p, LEN, -1, 0);
	m = acquire(&b, p, LEN, RK_RW);
	good(&b, m, p, LEN, RK_RW);
	th_ok(ops->acquire(&b.a.domain->fid, p, LEN, RK_RW, &other));
	th_ok(ops->release(other));
	/* the flush of one is no concern of the other */
	th_ok(ops->flush(&b.a.domain->fid));
	good(&b, m, p, LEN, RK_RW);
	release(&b, m);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* FI_SHRIMP_MR_CACHE=off: it is registered, and closed. */
static void acquire_without_cache(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fid_mr *m[2];
	uint64_t key;
	struct ck_bed b;

	ck_bed_open(&b, self, "prov_key,virt_addr");
	m[0] = acquire(&b, p, LEN, RK_RW);
	m[1] = acquire(&b, p, LEN, RK_RW);
	th_check(m[0] != m[1]);
	good(&b, m[0], p, LEN, RK_RW);
	key = fi_mr_key(m[0]);
	release(&b, m[0]);
	th_eq(rk_write_at(&b.a, key, (uintptr_t)p, 8, 1), FI_EKEYREJECTED);
	good(&b, m[1], p, LEN, RK_RW);
	release(&b, m[1]);
	th_eq(ck_stats(&b.c).cache_hits, 0);
	th_eq(ck_stats(&b.c).cache_entries, 0);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* What a child of a fork is told: 0 if all is as it must be. */
static int child(struct ck_bed *b, unsigned char *p, struct fid_mr *mr)
{
	struct fi_ops_shrimp_cache *ops = b->c.ops;
	struct fid_mr *m = NULL;

	if (ops->acquire(b->dom, p, PAGE, RK_RW, &m) != -FI_EOPBADSTATE)
		return 1;
	if (ops->release(mr) != -FI_EOPBADSTATE)
		return 2;
	if (ops->unmap_begin(b->dom, p, PAGE) != -FI_EOPBADSTATE ||
	    ops->unmap_end(b->dom, p, PAGE) != -FI_EOPBADSTATE)
		return 3;
	if (ops->flush(b->dom) != -FI_EOPBADSTATE)
		return 4;
	if (p[0] != 0x3c || munmap(p, LEN))
		return 5;
	return 0;
}

/* A child has no cache, and its calls change nothing of its parent's. */
static void contract_L6_no_cache_in_a_child(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fid_mr *mr, *idle;
	struct ck_bed b;
	int status;
	pid_t pid;

	ck_bed_open(&b, self, "prov_key,virt_addr");
	mr = acquire(&b, p, LEN, RK_RW);
	idle = acquire(&b, p, PAGE, FI_REMOTE_READ);
	release(&b, idle);
	memset(p, 0x3c, LEN);
	pid = fork();
	th_check(pid >= 0);
	if (!pid)
		_exit(child(&b, p, mr));
	th_eq(waitpid(pid, &status, 0), pid);
	th_check(WIFEXITED(status));
	th_eq(WEXITSTATUS(status), 0);
	good(&b, mr, p, LEN, RK_RW);
	release(&b, mr);
	mr = acquire(&b, p, LEN, RK_RW);
	good(&b, mr, p, LEN, RK_RW);
	release(&b, mr);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* ---- acquire, from many threads ------------------------------------------------ */

enum { CROWD = 4, CROWD_ROUNDS = 2000, MOVES = 300 };

/* One of the threads. */
struct member {
	struct ck_bed *b; /* all share it */
	pthread_t thread; /* itself */
	unsigned char *p; /* memory of which the second half changes */
	uint64_t no;	  /* its number */
};

static void *member_main(void *arg)
{
	struct member *me = arg;
	uint64_t state = me->no;

	for (unsigned long i = 0; i < th_rounds(CROWD_ROUNDS); i++) {
		uint64_t r = th_random(&state);
		size_t off = r % (LEN - 1), len = 1 + (r >> 16) % (LEN - off);
		struct fid_mr *mr = acquire(me->b, me->p + off, len,
					    r >> 32 & 1 ? RK_RW : CK_LOCAL);
		struct fi_shrimp_mr_info x = info_of(me->b, mr);

		th_check(x.addr <= (uintptr_t)me->p + off &&
			 x.addr + x.len >= (uintptr_t)me->p + off + len);
		release(me->b, mr);
		if (i % 100 == 0)
			th_ok(me->b->c.ops->flush(me->b->dom));
	}
	return NULL;
}

/* Meanwhile the stable half is written through what is acquired. */
static void crowd_use(struct ck_bed *b, unsigned char *p, uint64_t i)
{
	struct fid_mr *mr = acquire(b, p + i % 4 * PAGE, PAGE, RK_RW);

	good(b, mr, p + i % 4 * PAGE, PAGE, RK_RW);
	release(b, mr);
	ck_map_over(&b->c, p + (PAGES / 2 + i % (PAGES / 2)) * PAGE, PAGE, -1,
		    0);
}

static void acquire_in_threads(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct member m[CROWD];
	struct ck_bed b;

	ck_bed_open(&b, self, "prov_key,virt_addr");
	for (uint64_t i = 0; i < CROWD; i++) {
		m[i] = (struct member){ .b = &b, .p = p, .no = i };
		th_eq(pthread_create(&m[i].thread, NULL, member_main, &m[i]),
		      0);
	}
	for (uint64_t i = 0; i < th_rounds(MOVES); i++)
		crowd_use(&b, p, i);
	for (int i = 0; i < CROWD; i++)
		th_eq(pthread_join(m[i].thread, NULL), 0);
	th_ok(b.c.ops->flush(b.dom));
	th_eq(ck_stats(&b.c).cache_entries, 0);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* ---- table ------------------------------------------------------------------ */

static struct ck_how ck_all_uffd_uffd = { .cache = "all",
					  .monitor = "uffd",
					  .regions = "uffd" };

static const struct CMUnitTest cache_acquire[] = {
	CK_CASE(acquire_arguments, 1, 20, all_uffd),
	CK_CASE(acquire_without_provider_keys, 1, 20, all_uffd),
	CK_CASE(acquire_again, 1, 20, all_uffd),
	CK_CASE(acquire_again, 1, 20, all_notify),
	CK_CASE(acquire_by_offset, 1, 20, all_uffd),
	CK_CASE(acquire_other_rights, 1, 20, all_uffd),
	CK_CASE(acquire_beyond_the_limit, 1, 20, all_uffd),
	CK_CASE(flush_ends_keys, 1, 20, all_uffd),
	CK_CASE(acquired_and_unmapped, 1, 20, off),
	CK_CASE(acquired_and_unmapped, 1, 20, all_uffd),
	CK_CASE(acquired_and_unmapped, 1, 20, all_notify),
	CK_CASE(acquired_and_unmapped, 1, 20, all_off),
	CK_CASE(contract_R12_idle_key, 1, 60, all_uffd),
	CK_CASE(contract_R12_idle_key, 1, 60, local_uffd),
	CK_CASE(contract_R12_idle_file_key, 1, 60, all_uffd),
	CK_CASE(contract_R12_idle_file_key, 1, 60, local_uffd),
	CK_CASE(contract_R12_idle_file_key, 1, 60, all_uffd_uffd),
	CK_CASE(contract_R12_last_user, 1, 60, all_uffd),
	CK_CASE(acquire_in_two_domains, 1, 20, all_uffd),
	CK_CASE(acquire_in_two_domains, 1, 20, all_notify),
	CK_CASE(acquire_without_cache, 1, 20, off),
	CK_CASE(contract_L6_no_cache_in_a_child, 1, 20, off),
	CK_CASE(contract_L6_no_cache_in_a_child, 1, 20, all_uffd),
	CK_CASE(acquire_in_threads, 1, 60, all_uffd),
	CK_CASE(acquire_in_threads, 1, 60, all_notify),
};

TH_MAIN(cache_acquire)
