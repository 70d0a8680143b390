/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The registration cache: what stays of a closed region and what does not
 * (contract R4, I1), what is counted, and what goes when memory does. What is
 * acquired is in cache_acquire.c.
 */
#define _GNU_SOURCE
#include "cache_kit.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <unistd.h>

#include "lib/mr_index.h"
#include "odp_kit.h"

enum { PAGE = RK_PAGE, PAGES = 16, LEN = PAGES * PAGE };

/* ---- R4: locked memory ------------------------------------------------------- */

/* A region of @access, open and not: peers' memory is locked while it is. */
static void locked_while_open(struct ck_bed *b, unsigned char *p,
			      uint64_t access)
{
	struct fid_mr *mr = rk_reg(&b->b, p, LEN, access, RK_KEY);

	/* what no peer uses is cached, so it is not */
	th_eq(ck_locked(p, LEN), access & FI_REMOTE_WRITE ? LEN : 0);
	th_ok(fi_close(&mr->fid));
	th_eq(ck_locked(p, LEN), 0);
	p[0] = 1;
	th_eq(ck_give_up(&b->c, p, PAGE), 0);
	th_eq(p[0], 0);
	th_eq(ck_stats(&b->c).cache_pinned, 0);
}

/* What is idle locks nothing; found again, it is locked again. */
static void contract_R4_idle_is_not_locked(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fid_mr *mr, *local;
	struct ck_bed b;

	ck_bed_open(&b, self, NULL);
	mr = rk_reg(&b.b, p, LEN, RK_RW, RK_KEY);
	if (ck_locked(p, LEN) != LEN)
		th_skip(self, "memory cannot be locked here");
	/* those that share its pages come and go */
	local = rk_reg(&b.b, p, LEN, CK_LOCAL, 1);
	th_ok(fi_close(&local->fid));
	th_eq(ck_locked(p, LEN), LEN);
	th_ok(fi_close(&mr->fid));
	th_eq(ck_locked(p, LEN), 0);
	for (int i = 0; i < 2; i++) {
		locked_while_open(&b, p, RK_RW);
		locked_while_open(&b, p, CK_LOCAL);
	}
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* If it is wanted, what is kept stays locked, and no more than that. */
static void contract_R4_keep(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fid_mr *mr;
	struct ck_bed b;

	ck_bed_open(&b, self, NULL);
	mr = rk_reg(&b.b, p, LEN, RK_RW, RK_KEY);
	if (ck_locked(p, LEN) != LEN)
		th_skip(self, "memory cannot be locked here");
	th_ok(fi_close(&mr->fid));
	th_eq(ck_locked(p, LEN), LEN);
	th_check(ck_stats(&b.c).cache_pinned >= LEN);
	/* which is what it costs */
	th_eq(ck_give_up(&b.c, p, PAGE), -EINVAL);
	ck_touch(&b, p, LEN, RK_RW);
	th_eq(ck_locked(p, LEN), LEN);
	th_ok(b.c.ops->flush(b.dom));
	th_eq(ck_locked(p, LEN), 0);
	th_eq(ck_stats(&b.c).cache_pinned, 0);
	th_eq(ck_give_up(&b.c, p, PAGE), 0);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* A query says so, of whatever uses the entry. */
static void contract_R4_keep_told(struct th_self *self)
{
	struct fi_shrimp_mr_info f = { .size = sizeof(f) };
	unsigned char *p = rk_pages(LEN);
	struct fid_mr *mr[2];
	struct ck_bed b;

	ck_bed_open(&b, self, NULL);
	mr[0] = rk_reg(&b.b, p, LEN, CK_LOCAL, RK_KEY);
	if (ck_locked(p, LEN) != LEN)
		th_skip(self, "memory cannot be locked here");
	th_ok(b.c.ops->acquire(b.dom, p, LEN, CK_LOCAL, &mr[1]));
	for (int i = 0; i < 2; i++) {
		th_ok(rk_mr_ops(&b.b)->query(mr[i], &f, NULL, NULL));
		th_check(f.flags & FI_SHRIMP_MR_PINNED);
	}
	th_ok(b.c.ops->release(mr[1]));
	th_ok(fi_close(&mr[0]->fid));
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* Until it is evicted, or the domain is closed. */
static void contract_R4_keep_ends(struct th_self *self)
{
	enum { N = 12, LIMIT = 4 };
	unsigned char *p = rk_pages(2 * N * LEN);
	struct ck_bed b;

	setenv("FI_SHRIMP_MR_CACHE_ENTRIES", "4", 1);
	ck_bed_open(&b, self, NULL);
	for (size_t i = 0; i < N; i++)
		ck_touch(&b, p + i * 2 * LEN, LEN, RK_RW);
	ck_overflow(&b.b);
	th_check(ck_stats(&b.c).cache_entries <= LIMIT);
	th_check(ck_locked(p, 2 * N * LEN) <= LIMIT * LEN);
	ck_bed_close(&b);
	th_eq(ck_locked(p, 2 * N * LEN), 0);
	munmap(p, 2 * N * LEN);
}

/* ---- what is counted ------------------------------------------------------------ */

/* The same buffer again is found; peers reach it. */
static void second_one_is_found(struct th_self *self)
{
	bool all = !strcmp(((struct ck_how *)self->arg)->cache, "all");
	uint64_t access = all ? RK_RW | CK_LOCAL : CK_LOCAL;
	unsigned char *p = rk_pages(LEN);
	struct fi_shrimp_stats s[3];
	struct fid_mr *mr;
	struct ck_bed b;

	ck_bed_open(&b, self, NULL);
	s[0] = ck_stats(&b.c);
	mr = rk_reg(&b.b, p, LEN, access, RK_KEY);
	s[1] = ck_stats(&b.c);
	th_eq(s[1].cache_misses, s[0].cache_misses + 1);
	th_eq(s[1].cache_hits, s[0].cache_hits);
	th_check(s[1].cache_entries == s[0].cache_entries + 1);
	th_check(s[1].cache_bytes >= s[0].cache_bytes + LEN);
	th_ok(fi_close(&mr->fid));
	mr = rk_reg(&b.b, p, LEN, access, RK_KEY + 1);
	s[2] = ck_stats(&b.c);
	th_eq(s[2].cache_misses, s[1].cache_misses);
	th_eq(s[2].cache_hits, s[1].cache_hits + 1);
	th_eq(s[2].cache_entries, s[1].cache_entries);
	if (all) {
		th_eq(rk_write_at(&b.a, RK_KEY + 1, 0, LEN, 7), 0);
		th_settle(&b.a);
		th_verify_byte(p, LEN, 7);
		th_eq(rk_write_at(&b.a, RK_KEY, 0, 8, 8), FI_EKEYREJECTED);
		th_verify_byte(p, LEN, 7);
	}
	th_ok(fi_close(&mr->fid));
	th_ok(b.c.ops->flush(b.dom));
	th_eq(ck_stats(&b.c).cache_entries, s[0].cache_entries);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* A part of what is known is known; memory that nobody sees go is not. */
static void parts_are_found(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fi_shrimp_stats s;
	struct ck_bed b;

	ck_bed_open(&b, self, NULL);
	ck_touch(&b, p, LEN, RK_RW);
	s = ck_stats(&b.c);
	ck_touch(&b, p + 5, 7, RK_RW);
	ck_touch(&b, p + PAGE, 3 * PAGE, RK_RW);
	ck_touch(&b, p + LEN - 1, 1, RK_RW);
	th_eq(ck_stats(&b.c).cache_hits, s.cache_hits + 3);
	th_eq(ck_stats(&b.c).cache_misses, s.cache_misses);
	/* one that reaches further is not */
	ck_touch(&b, p + PAGE, LEN - 2 * PAGE, RK_RW);
	th_eq(ck_stats(&b.c).cache_hits, s.cache_hits + 4);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* Two that touch, then what they are together: its parts are found. */
static void a_larger_one_replaces_its_parts(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fi_shrimp_stats s;
	struct ck_bed b;

	ck_bed_open(&b, self, NULL);
	ck_touch(&b, p, LEN / 2, RK_RW);
	ck_touch(&b, p + LEN / 2, LEN / 2, RK_RW);
	ck_touch(&b, p, LEN, RK_RW);
	s = ck_stats(&b.c);
	ck_touch(&b, p + LEN / 2 - 10, 20, RK_RW);
	ck_touch(&b, p, LEN / 2, RK_RW);
	ck_touch(&b, p, LEN, RK_RW);
	th_eq(ck_stats(&b.c).cache_hits, s.cache_hits + 3);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* Without a monitor only memory that cannot go is kept: the device's own. */
static void off_keeps_the_devices_own(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fi_shrimp_stats s;
	struct rk_mem m;
	struct ck_bed b;

	ck_bed_open(&b, self, NULL);
	ck_touch(&b, p, LEN, RK_RW);
	ck_touch(&b, p, LEN, RK_RW);
	s = ck_stats(&b.c);
	th_eq(s.cache_hits, 0);
	th_eq(s.cache_entries, 0);
	m = rk_mem_new(&b.b, true, LEN);
	ck_touch(&b, m.p, LEN, RK_RW);
	ck_touch(&b, m.p, LEN, RK_RW);
	th_eq(ck_stats(&b.c).cache_hits, 1);
	/* until it is freed */
	rk_mem_free(&m);
	th_eq(ck_stats(&b.c).cache_entries, 0);
	munmap(p, LEN);
	ck_bed_close(&b);
}

/* Limits are for what nobody uses. */
static void limit_of_entries(struct th_self *self)
{
	enum { N = 60, LIMIT = 16 };
	unsigned char *p = rk_pages(2 * N * PAGE);
	struct fid_mr *mr[N];
	struct ck_bed b;

	setenv("FI_SHRIMP_MR_CACHE_ENTRIES", "16", 1);
	ck_bed_open(&b, self, NULL);
	for (size_t i = 0; i < N; i++)
		mr[i] = rk_reg(&b.b, p + i * 2 * PAGE, PAGE, RK_RW, i);
	for (size_t i = 0; i < N; i++)
		th_eq(rk_write_at(&b.a, i, 0, PAGE, (unsigned char)i), 0);
	th_settle(&b.a);
	for (size_t i = 0; i < N; i++)
		th_verify_byte(p + i * 2 * PAGE, PAGE, (unsigned char)i);
	for (size_t i = 0; i < N; i++)
		th_ok(fi_close(&mr[i]->fid));
	ck_overflow(&b.b);
	th_check(ck_stats(&b.c).cache_entries <= LIMIT);
	th_check(ck_stats(&b.c).cache_entries >= 1);
	th_check(ck_stats(&b.c).cache_evictions >= N - LIMIT);
	/* what was used last is there */
	ck_touch(&b, p + (N - 1) * 2 * PAGE, PAGE, RK_RW);
	th_eq(ck_stats(&b.c).cache_hits, 1);
	ck_unmap(&b.c, p, 2 * N * PAGE);
	ck_bed_close(&b);
}

static void limit_of_bytes(struct th_self *self)
{
	enum { N = 40, LIMIT = 8 * LEN };
	unsigned char *p = rk_pages(2 * N * LEN);
	struct ck_bed b;

	setenv("FI_SHRIMP_MR_CACHE_BYTES", "524288", 1);
	th_eq(LIMIT, 524288);
	ck_bed_open(&b, self, NULL);
	for (size_t i = 0; i < N; i++)
		ck_touch(&b, p + i * 2 * LEN, LEN, RK_RW);
	ck_overflow(&b.b);
	th_check(ck_stats(&b.c).cache_bytes <= LIMIT);
	th_check(ck_stats(&b.c).cache_bytes >= LEN);
	th_check(ck_stats(&b.c).cache_evictions >= N - LIMIT / LEN);
	/* one that is larger than all of it: works, and is not kept */
	ck_touch(&b, p, 2 * N * LEN, RK_RW);
	ck_overflow(&b.b);
	th_check(ck_stats(&b.c).cache_bytes <= LIMIT);
	ck_unmap(&b.c, p, 2 * N * LEN);
	ck_bed_close(&b);
}

/* ---- memory that goes ------------------------------------------------------------ */

/* The counter at @off of struct fi_shrimp_stats. */
static uint64_t counter(struct ck_bed *b, size_t off)
{
	struct fi_shrimp_stats s = ck_stats(&b->c);
	uint64_t x;

	memcpy(&x, (const char *)&s + off, sizeof(x));
	return x;
}

/*
 * Waits until the counter at @off is more than @was: an entry is found to be
 * old a moment after its memory went, or when others are looked for.
 */
static void counts(struct ck_bed *b, size_t off, uint64_t was)
{
	struct th_deadline dl = th_patience();
	static unsigned char *other;

	if (!other)
		other = rk_pages(PAGE);
	while (counter(b, off) <= was) {
		ck_touch(b, other, PAGE, CK_LOCAL);
		th_check(!th_expired(&dl));
	}
}

#define COUNTS(b, field, was)                                                  \
	counts(b, offsetof(struct fi_shrimp_stats, field), was)

/* The region that was kept is not found any more: new pages have its place. */
static void not_found(struct ck_bed *b, unsigned char *p)
{
	struct fi_shrimp_stats s = ck_stats(&b->c);
	struct fid_mr *mr = rk_reg(&b->b, p, LEN, RK_RW, RK_KEY);

	th_eq(ck_stats(&b->c).cache_hits, s.cache_hits);
	th_eq(rk_write_at(&b->a, RK_KEY, 0, LEN, 9), 0);
	th_settle(&b->a);
	th_verify_byte(p, LEN, 9);
	th_ok(fi_close(&mr->fid));
}

/* Each way in which memory goes is counted for what it is. */
static void causes_are_counted(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN), *q = rk_pages(LEN);
	struct fi_shrimp_stats s;
	struct ck_bed b;

	ck_bed_open(&b, self, NULL);
	ck_touch(&b, p, LEN, RK_RW);
	s = ck_stats(&b.c);
	ck_replace(&b.c, p, LEN, -1, 0);
	COUNTS(&b, cache_unmapped, s.cache_unmapped);
	not_found(&b, p);
	s = ck_stats(&b.c);
	ck_map_over(&b.c, p + PAGE, PAGE, -1, 0);
	COUNTS(&b, cache_unmapped, s.cache_unmapped);
	not_found(&b, p);
	s = ck_stats(&b.c);
	th_eq(ck_give_up(&b.c, p + PAGE, PAGE), 0);
	COUNTS(&b, cache_discarded, s.cache_discarded);
	not_found(&b, p);
	s = ck_stats(&b.c);
	th_ptr_eq(mremap(p, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, q), q);
	COUNTS(&b, cache_moved, s.cache_moved);
	th_eq(munmap(q, LEN), 0);
	ck_bed_close(&b);
}

/* Nothing of a region's neighbours goes stale. */
static void case_M15_neighbours(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fi_shrimp_stats s;
	struct ck_bed b;

	ck_bed_open(&b, self, NULL);
	for (int i = 0; i < 3; i++) {
		ck_touch(&b, p, 4 * PAGE, RK_RW);
		ck_touch(&b, p + 5 * PAGE, 4 * PAGE, RK_RW);
		s = ck_stats(&b.c);
		if (i == 0)
			ck_replace(&b.c, p + 4 * PAGE, PAGE, -1, 0);
		else if (i == 1)
			th_eq(ck_give_up(&b.c, p + 4 * PAGE, PAGE), 0);
		else
			ck_unmap(&b.c, p + 9 * PAGE, LEN - 9 * PAGE);
		ck_touch(&b, p, 4 * PAGE, RK_RW);
		ck_touch(&b, p + 5 * PAGE, 4 * PAGE, RK_RW);
		th_eq(ck_stats(&b.c).cache_hits, s.cache_hits + 2);
	}
	ck_unmap(&b.c, p, 9 * PAGE);
	ck_bed_close(&b);
}

/* Between unmap_begin and unmap_end nothing of it is cached. */
static void told(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fi_ops_shrimp_cache *ops;
	struct fi_shrimp_stats s;
	struct ck_bed b;

	ck_bed_open(&b, self, NULL);
	ops = b.c.ops;
	ck_touch(&b, p, LEN, RK_RW);
	s = ck_stats(&b.c);
	th_ok(ops->unmap_begin(b.dom, p + PAGE, 1));
	th_ok(ops->unmap_begin(b.dom, p, LEN));
	ck_touch(&b, p, LEN, RK_RW);
	ck_touch(&b, p, LEN, RK_RW);
	th_eq(ck_stats(&b.c).cache_hits, s.cache_hits);
	th_ok(ops->unmap_end(b.dom, p, LEN));
	/* it nests: the other range is still about to change */
	ck_touch(&b, p, LEN, RK_RW);
	ck_touch(&b, p, LEN, RK_RW);
	th_eq(ck_stats(&b.c).cache_hits, s.cache_hits);
	th_ok(ops->unmap_end(b.dom, p + PAGE, 1));
	COUNTS(&b, cache_told, s.cache_told);
	s = ck_stats(&b.c);
	ck_touch(&b, p, LEN, RK_RW);
	ck_touch(&b, p, LEN, RK_RW);
	th_eq(ck_stats(&b.c).cache_hits, s.cache_hits + 1);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* With any monitor, and with none, the calls are there. */
static void arguments_of_unmap(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fi_ops_shrimp_cache *ops;
	struct fid *ep;
	struct ck_bed b;

	ck_bed_open(&b, self, NULL);
	ops = b.c.ops;
	ep = &b.b.ep->fid;
	th_eq(ops->unmap_begin(ep, p, LEN), -FI_EINVAL);
	th_eq(ops->unmap_end(ep, p, LEN), -FI_EINVAL);
	th_eq(ops->unmap_begin(b.dom, p, SIZE_MAX), -FI_EINVAL);
	th_eq(ops->unmap_end(b.dom, p, SIZE_MAX), -FI_EINVAL);
	th_eq(ops->flush(ep), -FI_EINVAL);
	th_ok(ops->unmap_begin(b.dom, p, LEN));
	th_eq(munmap(p, LEN), 0);
	th_ok(ops->unmap_end(b.dom, p, LEN));
	th_ok(ops->flush(b.dom));
	ck_bed_close(&b);
}

/* ---- I1: closed, though its translation is kept --------------------------------- */

enum { I1_ROUNDS = 12, I1_LOOKS = 4 };

/* Memory of the three kinds that peers reach each in its way. */
enum kind { PRIVATE, OF_DEVICE, OF_FILE, KINDS };

static struct rk_mem i1_memory(struct odp_side *d, enum kind kind, int fd)
{
	struct rk_mem m = { .domain = d->s.domain, .len = ODP_LEN };

	if (kind == OF_FILE)
		m.p = rk_file_map(fd, ODP_LEN, NULL);
	else
		m = rk_mem_new(&d->s, kind == OF_DEVICE, ODP_LEN);
	return m;
}

static void i1_untouched(const struct rk_mem *m)
{
	for (int i = 0; i < I1_LOOKS; i++)
		th_verify_byte(m->p, ODP_LEN, ODP_SENTINEL);
}

/* Closed, used by its owner, registered again under another key, closed. */
static void i1_once(struct odp_side *d, const struct rk_mem *m)
{
	struct fid_mr *mr = rk_reg(&d->s, m->p, ODP_LEN, RK_RW, RK_KEY);

	odp_written(d);
	th_ok(fi_close(&mr->fid));
	th_settle(&d->s);
	memset(m->p, ODP_SENTINEL, ODP_LEN);
	i1_untouched(m);
	mr = rk_reg(&d->s, m->p, ODP_LEN, RK_RW, RK_KEY + 1);
	i1_untouched(m);
	th_ok(fi_close(&mr->fid));
	i1_untouched(m);
}

static void i1_owner(struct odp_side *d, const struct ck *c)
{
	for (int kind = 0; kind < KINDS; kind++) {
		int fd = rk_file_new(ODP_LEN);
		struct rk_mem m = i1_memory(d, (enum kind)kind, fd);

		for (unsigned long i = 0; i < th_rounds(I1_ROUNDS); i++)
			i1_once(d, &m);
		ck_begin(c, m.p, ODP_LEN);
		rk_mem_free(&m);
		ck_end(c, m.p, ODP_LEN);
		close(fd);
	}
}

/* Peers write without a pause; each of their operations ends. */
static void contract_I1_closed_though_kept(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct odp_side d = { .self = self };
	unsigned char buf[8] = { 0 };
	struct ck c;

	ck_set(self);
	th_stack_open(&d.s, &o);
	th_stack_connect(&d.s, self);
	c = ck_of(self, &d.s);
	if (self->rank)
		odp_stream(&d);
	else
		i1_owner(&d, &c);
	odp_over(&d);
	/* both keys are closed: at once, and for good */
	for (uint64_t key = RK_KEY; self->rank && key < RK_KEY + 2; key++) {
		th_ok(fi_write(d.s.ep, buf, 8, NULL, d.s.peers[0], 0, key, &d));
		th_eq(rk_end(&d.s).err, FI_EKEYREJECTED);
	}
	th_barrier_progress(self, &d.s, "end");
	th_stack_close(&d.s);
}

/* ---- R1: what is not mapped is not registered ------------------------------------ */

/*
 * Whoever unmaps goes on when the monitor has read of it: what was cached is
 * not found, though it may not be marked yet.
 */
static void contract_R1_unmapped(struct th_self *self)
{
	struct fid_mr *mr;
	struct ck_bed b;

	ck_bed_open(&b, self, NULL);
	for (unsigned long i = 0; i < th_rounds(3000); i++) {
		unsigned char *p = quiet_private(4 * PAGE);

		th_check(p != MAP_FAILED);
		ck_touch(&b, p, 4 * PAGE, CK_LOCAL);
		ck_unmap(&b.c, p, 4 * PAGE);
		th_eq(fi_mr_reg(b.b.domain, p, 4 * PAGE, CK_LOCAL, 0, RK_KEY, 0,
				&mr, NULL),
		      -FI_EFAULT);
	}
	ck_bed_close(&b);
}

/* Number of a page that the index keeps where it looks for page @n. */
static uint64_t twin_of(uint64_t n, uint64_t first, uint64_t last)
{
	static rnic_aptr bucket[SHRIMP_MR_BUCKETS];
	const struct shrimp_mr_index ix = { .bucket = bucket };

	while (first < last &&
	       shrimp_mr_bucket(&ix, 0, first) != shrimp_mr_bucket(&ix, 0, n))
		first++;
	return first;
}

/* The last page of all, whose end is 0, is found nowhere. */
static void contract_R1_last_page(struct th_self *self)
{
	const size_t len = (size_t)16 * SHRIMP_MR_BUCKETS * PAGE;
	uintptr_t last = UINTPTR_MAX - (PAGE - 1), at;
	struct fi_ops_shrimp_cache *ops;
	unsigned char *p =
		mmap(NULL, len, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct fid_mr *mr;
	struct ck_bed b;

	th_check(p != MAP_FAILED);
	ck_bed_open(&b, self, NULL);
	ops = b.c.ops;
	at = twin_of(last / PAGE, (uintptr_t)p / PAGE,
		     ((uintptr_t)p + len) / PAGE) *
	     PAGE;
	if (at == (uintptr_t)p + len)
		th_skip(self, "no page shares its place");
	ck_touch(&b, (void *)at, PAGE, CK_LOCAL);
	for (size_t off = 0; off < PAGE; off += PAGE / 4)
		th_check(fi_mr_reg(b.b.domain, (void *)(last + off), PAGE - off,
				   CK_LOCAL, 0, RK_KEY, 0, &mr, NULL));
	th_eq(ops->acquire(b.dom, (void *)last, PAGE, CK_LOCAL, &mr),
	      -FI_EINVAL);
	th_eq(ops->acquire(b.dom, (void *)(last + 8), 8, CK_LOCAL, &mr),
	      -FI_EINVAL);
	th_eq(ops->unmap_begin(b.dom, (void *)(last + 8), 8), -FI_EINVAL);
	ck_unmap(&b.c, p, len);
	ck_bed_close(&b);
}

/* ---- R12: changes that are not told ----------------------------------------------- */

/*
 * A segment of SysV over what is cached, then nothing: no event. Whatever the
 * registration says, a peer's bytes are in what is there, or nowhere.
 */
static void no_event(struct ck_bed *b, unsigned char *p, int fd)
{
	int id = shmget(IPC_PRIVATE, LEN, IPC_CREAT | 0600);
	unsigned char was = 0;
	struct fid_mr *mr;

	th_check(id >= 0);
	ck_touch(b, p, LEN, RK_RW);
	th_check(shmat(id, p, SHM_REMAP) == p);
	mr = rk_reg(&b->b, p, LEN, RK_RW, RK_KEY);
	th_eq(rk_write_at(&b->a, RK_KEY, 0, LEN, 7), 0);
	th_settle(&b->a);
	th_verify_byte(p, LEN, 7);
	th_ok(fi_close(&mr->fid));
	th_eq(shmdt(p), 0);
	shmctl(id, IPC_RMID, NULL);
	if (!fi_mr_reg(b->b.domain, p, LEN, RK_RW, 0, RK_KEY, 0, &mr, NULL)) {
		/* so it is with addresses; a file is looked at */
		th_eq(fd, -1);
		th_eq(rk_write_at(&b->a, RK_KEY, 0, LEN, 8), FI_EFAULT);
		th_ok(fi_close(&mr->fid));
	}
	if (fd >= 0) {
		th_eq(pread(fd, &was, 1, 0), 1);
		th_eq(was, 0);
	}
}

static void contract_R12_no_event(struct th_self *self)
{
	int fd = rk_file_new(LEN);
	struct ck_bed b;

	ck_bed_open(&b, self, NULL);
	no_event(&b, quiet_private(LEN), -1);
	no_event(&b, rk_file_map(fd, LEN, quiet_private(LEN)), fd);
	close(fd);
	ck_bed_close(&b);
}

/* ---- what is short is short for a while ------------------------------------------ */

static void descriptors(rlim_t n)
{
	struct rlimit r;

	th_ok(getrlimit(RLIMIT_NOFILE, &r));
	r.rlim_cur = n;
	th_ok(setrlimit(RLIMIT_NOFILE, &r));
}

/* Without a descriptor for the monitor nothing is kept; later it is. */
static void cache_after_a_shortage(struct th_self *self)
{
	unsigned char *p = rk_pages(LEN);
	struct fi_shrimp_stats s;
	struct ck_bed b;
	int fd;

	ck_bed_open(&b, self, NULL);
	/* the first look at mappings keeps one, too */
	fd = dup(STDERR_FILENO);
	th_check(fd > 0);
	close(fd);
	descriptors((rlim_t)fd + 1);
	for (int i = 0; i < 2; i++)
		ck_touch(&b, p, LEN, CK_LOCAL);
	th_eq(ck_stats(&b.c).cache_entries, 0);
	descriptors(1024);
	ck_touch(&b, p, LEN, CK_LOCAL);
	s = ck_stats(&b.c);
	th_eq(s.cache_entries, 1);
	ck_touch(&b, p, LEN, CK_LOCAL);
	th_eq(ck_stats(&b.c).cache_hits, s.cache_hits + 1);
	ck_unmap(&b.c, p, LEN);
	ck_bed_close(&b);
}

/* ---- table ------------------------------------------------------------------------ */

static const struct CMUnitTest cache[] = {
	CK_CASE(contract_R4_idle_is_not_locked, 1, 20, local_uffd),
	CK_CASE(contract_R4_idle_is_not_locked, 1, 20, all_uffd),
	CK_CASE(contract_R4_idle_is_not_locked, 1, 20, all_notify),
	CK_CASE(contract_R4_keep, 1, 20, all_keep),
	CK_CASE(contract_R4_keep_told, 1, 20, all_keep),
	CK_CASE(contract_R4_keep_ends, 1, 20, all_keep),
	CK_CASE(second_one_is_found, 1, 20, local_uffd),
	CK_CASE(second_one_is_found, 1, 20, local_notify),
	CK_CASE(second_one_is_found, 1, 20, all_uffd),
	CK_CASE(second_one_is_found, 1, 20, all_notify),
	CK_CASE(second_one_is_found, 1, 20, all_keep),
	CK_CASE(parts_are_found, 1, 20, all_uffd),
	CK_CASE(a_larger_one_replaces_its_parts, 1, 20, all_uffd),
	CK_CASE(off_keeps_the_devices_own, 1, 20, all_off),
	CK_CASE(limit_of_entries, 1, 20, all_uffd),
	CK_CASE(limit_of_bytes, 1, 20, all_uffd),
	CK_CASE(causes_are_counted, 1, 60, all_uffd),
	CK_CASE(case_M15_neighbours, 1, 20, all_uffd),
	CK_CASE(case_M15_neighbours, 1, 20, all_notify),
	CK_CASE(told, 1, 20, all_notify),
	CK_CASE(arguments_of_unmap, 1, 20, off),
	CK_CASE(arguments_of_unmap, 1, 20, all_uffd),
	CK_CASE(arguments_of_unmap, 1, 20, all_notify),
	CK_CASE(contract_R1_unmapped, 1, 60, local_uffd),
	CK_CASE(contract_R1_unmapped, 1, 60, local_notify),
	CK_CASE(contract_R1_unmapped, 1, 60, local_keep),
	CK_CASE(contract_R1_last_page, 1, 20, local_uffd),
	CK_CASE(contract_R1_last_page, 1, 20, local_notify),
	CK_CASE(contract_R12_no_event, 1, 20, all_uffd),
	CK_CASE(cache_after_a_shortage, 1, 20, local_uffd),
	CK_CASE(contract_I1_closed_though_kept, 3, 60, all_uffd),
	CK_CASE(contract_I1_closed_though_kept, 3, 60, all_notify),
	CK_CASE(contract_I1_closed_though_kept, 3, 60, all_keep),
};

int main(int argc, char **argv)
{
	return odp_main(argc, argv, "cache", cache,
			sizeof(cache) / sizeof(*cache));
}
