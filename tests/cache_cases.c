/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Public cases of registration caches, with all that the cache can be set to:
 * memory that changes below registrations (M1, M2, M14, M15, C5). What else a
 * process does meanwhile is in cache_process.c.
 *
 * Limit: 300 s
 */
#define _GNU_SOURCE
#include "cache_kit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/atomic.h"

enum { PAGE = RK_PAGE };

/* ---- M1 ------------------------------------------------------------------- */

enum { M1_LEN = 16384, M1_KINDS = 3 };

/* One of two that do the same with their memory. */
struct m1 {
	struct th_self *self; /* rank 0 owns what is read */
	struct th_stack s;    /* its stack */
	struct ck c;	      /* its cache */
	int fd[M1_KINDS];     /* -1: private memory, or a file */
	void *at;	      /* the address */
};

static void m1_owner(struct m1 *t, uint64_t i)
{
	unsigned char *p = ck_map_at(t->at, M1_LEN, t->fd[i % M1_KINDS]);
	struct fid_mr *mr = rk_reg(&t->s, p, M1_LEN, RK_RW, RK_KEY + i % 2);

	th_fill(p, M1_LEN, i);
	th_barrier_progress(t->self, &t->s, "filled");
	th_barrier_progress(t->self, &t->s, "read");
	th_ok(fi_close(&mr->fid));
	ck_unmap(&t->c, p, M1_LEN);
}

static void m1_reader(struct m1 *t, uint64_t i)
{
	unsigned char *p = ck_map_at(t->at, M1_LEN, t->fd[i % M1_KINDS]);
	struct fid_mr *mr = rk_reg(&t->s, p, M1_LEN, CK_LOCAL, RK_KEY);

	memset(p, 0xee, M1_LEN);
	th_barrier_progress(t->self, &t->s, "filled");
	th_ok(fi_read(t->s.ep, p, M1_LEN, fi_mr_desc(mr), t->s.peers[0], 0,
		      RK_KEY + i % 2, p));
	rk_done(&t->s, FI_READ, p);
	th_verify(p, M1_LEN, i);
	/* and sent from there */
	th_send(&t->s, t->s.peers[1], p, M1_LEN, p);
	th_barrier_progress(t->self, &t->s, "read");
	th_ok(fi_close(&mr->fid));
	ck_unmap(&t->c, p, M1_LEN);
}

/* What the reader has read comes back by message, into other memory. */
static void m1_self(struct m1 *t, uint64_t i)
{
	unsigned char *in = malloc(M1_LEN);

	th_check(in);
	th_recv(&t->s, in, M1_LEN, in);
	m1_reader(t, i);
	th_rx_ok(&t->s);
	th_tx_ok(&t->s);
	th_verify(in, M1_LEN, i);
	free(in);
}

/*
 * Both sides map, register, use, close and unmap at one address: two files and
 * private memory in turn. Files first: what has only an address is never wrong.
 */
static void case_M1(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	/* where neither the kernel nor a sanitizer places anything */
	struct m1 t = { .self = self,
			.fd = { rk_file_new(M1_LEN), rk_file_new(M1_LEN), -1 },
			.at = (char *)(uintptr_t)0x40000000 };

	ck_set(self);
	th_stack_open(&t.s, &o);
	th_stack_connect(&t.s, self);
	t.c = ck_of(self, &t.s);
	for (uint64_t i = 0; i < th_rounds(100); i++) {
		if (self->rank)
			m1_self(&t, i);
		else
			m1_owner(&t, i);
	}
	th_barrier_progress(self, &t.s, "end");
	th_stack_close(&t.s);
	close(t.fd[0]);
	close(t.fd[1]);
}

/* ---- M2 ------------------------------------------------------------------- */

enum { M2_LEN = 4 * PAGE, M2_GUARD = 0x5a, M2_OTHER = RK_KEY + 1 };

/* The file, if there is one, is as it was before it was unmapped. */
static void m2_untouched(int fd)
{
	unsigned char buf[M2_LEN];

	if (fd < 0)
		return;
	th_eq(pread(fd, buf, M2_LEN, 0), M2_LEN);
	th_verify_byte(buf, M2_LEN, 1);
}

/*
 * Registers, unmaps and uses the address again; the region is still open. The
 * memory is private or, @fd not -1, that of a file.
 */
static void m2_owner(struct th_self *self, struct th_stack *s, struct ck *c,
		     unsigned char *other, int fd)
{
	unsigned char *p =
		fd < 0 ? rk_pages(M2_LEN) : rk_file_map(fd, M2_LEN, NULL);
	struct fid_mr *mr = rk_reg(s, p, M2_LEN, RK_RW, RK_KEY);

	th_barrier_progress(self, s, "registered");
	th_barrier_progress(self, s, "written");
	th_settle(s);
	th_verify_byte(p, M2_LEN, 1);
	ck_replace(c, p, M2_LEN, -1, 0);
	memset(p, M2_GUARD, M2_LEN);
	th_barrier_progress(self, s, "replaced");
	th_barrier_progress(self, s, "refused");
	th_settle(s);
	th_verify_byte(p, M2_LEN, M2_GUARD);
	m2_untouched(fd);
	th_verify_byte(other, M2_LEN, 2);
	th_ok(fi_close(&mr->fid));
	/* the memory that is there now has a key of its own */
	mr = rk_reg(s, p, M2_LEN, RK_RW, RK_KEY);
	th_barrier_progress(self, s, "again");
	th_barrier_progress(self, s, "written");
	th_settle(s);
	th_verify_byte(p, M2_LEN, 3);
	th_ok(fi_close(&mr->fid));
	ck_unmap(c, p, M2_LEN);
}

/* Writes all of region @key of the owner, all @byte; 0 or an FI_ code. */
static int m2_write(struct th_stack *s, uint64_t key, unsigned char byte)
{
	unsigned char buf[M2_LEN];

	memset(buf, byte, M2_LEN);
	th_ok(fi_write(s->ep, buf, M2_LEN, NULL, s->peers[0], 0, key, buf));
	return rk_end(s).err;
}

static void m2_initiator(struct th_self *self, struct th_stack *s)
{
	th_barrier_progress(self, s, "registered");
	th_eq(m2_write(s, RK_KEY, 1), 0);
	th_barrier_progress(self, s, "written");
	th_barrier_progress(self, s, "replaced");
	th_eq(m2_write(s, RK_KEY, 4), FI_EFAULT);
	th_eq(m2_write(s, M2_OTHER, 2), 0);
	th_eq(m2_write(s, RK_KEY, 4), FI_EFAULT);
	th_barrier_progress(self, s, "refused");
	th_barrier_progress(self, s, "again");
	th_eq(m2_write(s, RK_KEY, 3), 0);
	th_barrier_progress(self, s, "written");
}

static void m2(struct th_self *self, int fd)
{
	struct th_stack_opts o = rk_opts();
	unsigned char *other = rk_pages(M2_LEN);
	struct fid_mr *mr = NULL;
	struct th_stack s;
	struct ck c;

	if (!ck_can_watch())
		th_skip(self, "no userfaultfd that tells of unmapping");
	ck_set(self);
	setenv("FI_SHRIMP_MONITOR", "uffd", 1);
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	c = ck_of(self, &s);
	if (!self->rank)
		mr = rk_reg(&s, other, M2_LEN, RK_RW, M2_OTHER);
	for (unsigned long i = 0; i < th_rounds(20); i++) {
		if (self->rank)
			m2_initiator(self, &s);
		else
			m2_owner(self, &s, &c, other, fd);
	}
	th_barrier_progress(self, &s, "end");
	if (mr)
		th_ok(fi_close(&mr->fid));
	th_stack_close(&s);
	munmap(other, M2_LEN);
}

/* Unmapped below a live key: it fails, and what comes there is untouched. */
static void case_M2(struct th_self *self)
{
	m2(self, -1);
}

/* The same of a file that peers have mapped. */
static void case_M2_file(struct th_self *self)
{
	int fd = rk_file_new(M2_LEN);

	m2(self, fd);
	close(fd);
}

/* ---- M14 ------------------------------------------------------------------ */

enum {
	M14_LIMIT = 16, /* entries of the cache */
	M14_SMALL = 64, /* bytes of a region; the rest of a page is in none */
	M14_STEP = 2 * PAGE, /* to the next one: what touches is merged */
	M14_APART = 10000,   /* as many are mappings of their own */
	M14_OPS = 2000,	     /* operations on random ones */
};

/* All regions and the memory they are in. */
struct m14 {
	struct th_stack a, b; /* initiator, owner */
	struct ck c;	      /* of the owner */
	unsigned char *p;     /* M14_STEP bytes for each */
	size_t n;	      /* regions */
	struct fid_mr **mr;   /* by number, NULL: closed */
	uint64_t state;	      /* of the random numbers */
};

static unsigned char *m14_at(const struct m14 *t, size_t i)
{
	return t->p + i * M14_STEP;
}

/* Is written and read; its neighbours are not. */
static void m14_use(struct m14 *t, size_t i)
{
	uint64_t key = fi_mr_key(t->mr[i]);
	unsigned char buf[M14_SMALL];

	th_fill(buf, M14_SMALL, i);
	th_ok(fi_write(t->a.ep, buf, M14_SMALL, NULL, t->a.peers[1], 0, key,
		       buf));
	rk_done(&t->a, FI_WRITE, buf);
	th_verify(m14_at(t, i), M14_SMALL, i);
	th_verify_byte(m14_at(t, i) + M14_SMALL, M14_SMALL, 0);
	m14_at(t, i)[0] ^= 1;
	th_ok(fi_read(t->a.ep, buf, M14_SMALL, NULL, t->a.peers[1], 0, key,
		      buf));
	rk_done(&t->a, FI_READ, buf);
	th_eq(memcmp(buf, m14_at(t, i), M14_SMALL), 0);
}

/* In random order: each goes the place of a random one behind it. */
static void m14_close(struct m14 *t)
{
	for (size_t i = 0; i < t->n; i++) {
		size_t k = i + th_random(&t->state) % (t->n - i);

		th_ok(fi_close(&t->mr[k]->fid));
		t->mr[k] = t->mr[i];
		t->mr[i] = NULL;
	}
}

/* That a process may have. */
static size_t m14_mappings(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	size_t n;

	th_check(f);
	th_eq(fscanf(f, "%zu", &n), 1);
	fclose(f);
	return n;
}

/* Entries are kept at all: with no monitor none are. */
static bool m14_keeps(const struct m14 *t)
{
	const struct ck_how *how = t->c.how;

	return strcmp(how->cache, "off") && strcmp(how->monitor, "off");
}

/*
 * Mappings of their own, with a page between them that nobody may touch: a
 * watch has a whole mapping, and there may be so many watches.
 */
static void m14_split(struct m14 *t)
{
	for (size_t i = 0; i < t->n && i < M14_APART; i++)
		th_ok(mprotect(m14_at(t, i) + PAGE, PAGE, PROT_NONE));
}

/*
 * All are open. Each watch counts as two mappings: from a quarter of those that
 * a process may have on there are no more, and nothing more is kept.
 */
static void m14_watched(struct m14 *t)
{
	struct fi_shrimp_stats s = ck_stats(&t->c);

	if (!m14_keeps(t))
		return;
	th_check(s.cache_misses > M14_LIMIT);
	if (!strcmp(t->c.how->monitor, "uffd") && m14_mappings() / 4 < 2 * t->n)
		th_check(s.cache_uncached);
	else if (!strcmp(t->c.how->monitor, "notify"))
		th_check(s.cache_misses >= t->n);
}

/* What the cache may have when nobody uses anything. */
static void m14_idle(struct m14 *t)
{
	size_t locked = ck_locked(t->p, t->n * M14_STEP);
	struct fi_shrimp_stats s = ck_stats(&t->c);
	const char *pin = t->c.how->pin;

	th_check(s.cache_entries <= M14_LIMIT);
	th_check(!m14_keeps(t) || s.cache_evictions);
	if (pin && !strcmp(pin, "keep") && s.cache_entries)
		th_check(!locked || s.cache_pinned);
	else
		th_eq(locked, 0);
}

static void m14_round(struct m14 *t)
{
	for (size_t i = 0; i < t->n; i++)
		t->mr[i] = rk_reg(&t->b, m14_at(t, i), M14_SMALL, RK_RW, i);
	m14_watched(t);
	for (unsigned long i = 0; i < th_rounds(M14_OPS); i++)
		m14_use(t, th_random(&t->state) % t->n);
	m14_close(t);
	ck_overflow(&t->b);
	m14_idle(t);
}

static size_t m14_regions(void)
{
	if (th_sanitized())
		return 2000;
	return th_long() ? 100000 : 10000;
}

/*
 * Many more regions than the cache may keep entries: limits are for those
 * that nobody uses.
 */
static void case_M14_limit(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct m14 t = { .n = m14_regions(), .state = 14 };

	ck_set(self);
	setenv("FI_SHRIMP_MR_CACHE_ENTRIES", "16", 1);
	th_pair_open(&t.a, &t.b, &o);
	t.c = ck_of(self, &t.b);
	t.p = rk_pages(t.n * M14_STEP);
	m14_split(&t);
	t.mr = calloc(t.n, sizeof(struct fid_mr *));
	th_check(t.mr);
	for (int i = 0; i < 2; i++)
		m14_round(&t);
	th_ok(t.c.ops->flush(&t.b.domain->fid));
	th_eq(ck_stats(&t.c).cache_entries, 0);
	th_eq(ck_locked(t.p, t.n * M14_STEP), 0);
	ck_unmap(&t.c, t.p, t.n * M14_STEP);
	free(t.mr);
	th_pair_close(&t.a, &t.b);
}

/* ---- M15 ------------------------------------------------------------------ */

enum {
	M15_PAGES = 64,
	M15_LEN = M15_PAGES * PAGE,
	M15_LIVE = 12,	  /* regions at most at once */
	M15_STEPS = 2000, /* random steps */
	M15_FILES = 2,
	M15_EPS = 2, /* initiators */
};

/* A region that is open. */
struct m15_mr {
	struct fid_mr *mr; /* NULL: none */
	uint64_t key;	   /* its key */
	size_t off, len;   /* bytes of the arena */
};

/* An arena, and what must be in it. */
struct m15 {
	struct th_stack s[M15_EPS + 1]; /* initiators, the owner last */
	struct ck c;			/* of the owner */
	bool file;			/* of files, else private */
	int fd[M15_FILES];		/* whose pages it is made of */
	unsigned char *p;		/* M15_LEN bytes */
	int which[M15_PAGES];		/* file that a page is of */
	struct m15_mr live[M15_LIVE];	/* open regions */
	uint64_t keys;			/* given up to now */
	uint64_t state;			/* of the random numbers */
	/* what is in a page of each file, or in private memory */
	unsigned char model[M15_FILES][M15_LEN];
};

static uint64_t m15_random(struct m15 *t, uint64_t n)
{
	return th_random(&t->state) % n;
}

/* Whole pages, or any bytes. */
static void m15_register(struct m15 *t, struct m15_mr *r)
{
	bool whole = m15_random(t, 2);

	r->off = m15_random(t, M15_LEN);
	r->len = 1 + m15_random(t, (M15_LEN - r->off < 8 * PAGE)
					   ? M15_LEN - r->off
					   : 8 * PAGE);
	if (whole) {
		r->off = r->off / PAGE * PAGE;
		r->len = (r->len + PAGE - 1) / PAGE * PAGE;
		if (r->len > M15_LEN - r->off)
			r->len = M15_LEN - r->off;
	}
	r->key = ++t->keys;
	r->mr = rk_reg(&t->s[M15_EPS], t->p + r->off, r->len,
		       m15_random(t, 4) ? RK_RW : RK_RW | CK_LOCAL, r->key);
}

static void m15_close(struct m15_mr *r)
{
	th_ok(fi_close(&r->mr->fid));
	r->mr = NULL;
}

/* Byte @at of the arena, as it must be. */
static unsigned char *m15_byte(struct m15 *t, size_t at)
{
	return &t->model[t->file ? t->which[at / PAGE] : 0][at];
}

/* Some bytes of @r by one of the initiators, compared. */
static void m15_use(struct m15 *t, const struct m15_mr *r)
{
	struct th_stack *s = &t->s[m15_random(t, M15_EPS)];
	size_t off = m15_random(t, r->len);
	size_t len = 1 + m15_random(t, r->len - off);
	static unsigned char buf[M15_LEN];
	bool write = m15_random(t, 2);

	if (write) {
		th_fill(buf, len, t->keys);
		for (size_t i = 0; i < len; i++)
			*m15_byte(t, r->off + off + i) = buf[i];
		th_ok(fi_write(s->ep, buf, len, NULL, s->peers[0], off, r->key,
			       buf));
	} else {
		th_ok(fi_read(s->ep, buf, len, NULL, s->peers[0], off, r->key,
			      buf));
	}
	rk_done(s, write ? FI_WRITE : FI_READ, buf);
	for (size_t i = 0; i < len; i++)
		if ((write ? t->p[r->off + off + i] : buf[i]) !=
		    *m15_byte(t, r->off + off + i))
			th_fail(__FILE__, __LINE__, "byte %zu of the arena",
				r->off + off + i);
}

static bool m15_in_use(const struct m15 *t, size_t page)
{
	for (int i = 0; i < M15_LIVE; i++)
		if (t->live[i].mr && t->live[i].off / PAGE <= page &&
		    page <= (t->live[i].off + t->live[i].len - 1) / PAGE)
			return true;
	return false;
}

/* A page that no open region has: other memory, or given up. */
static void m15_change(struct m15 *t, size_t page)
{
	unsigned char *p = t->p + page * PAGE;

	if (m15_in_use(t, page))
		return;
	if (m15_random(t, 2)) {
		/* locked pages are not given up */
		int ret = ck_give_up(&t->c, p, PAGE);

		th_check(!ret || ret == -EINVAL);
		if (!t->file && !ret)
			memset(m15_byte(t, page * PAGE), 0, PAGE);
		return;
	}
	t->which[page] = 1 - t->which[page];
	ck_replace(&t->c, p, PAGE, t->file ? t->fd[t->which[page]] : -1,
		   page * PAGE);
	if (!t->file)
		memset(m15_byte(t, page * PAGE), 0, PAGE);
}

static void m15_step(struct m15 *t)
{
	struct m15_mr *r = &t->live[m15_random(t, M15_LIVE)];

	switch (m15_random(t, 4)) {
	case 0:
		if (r->mr)
			m15_close(r);
		break;
	case 1:
		m15_change(t, m15_random(t, M15_PAGES));
		break;
	default:
		if (!r->mr)
			m15_register(t, r);
		m15_use(t, r);
	}
}

static void m15_open(struct m15 *t, struct th_self *self)
{
	struct th_stack_opts o = rk_opts();

	for (int i = M15_EPS; i >= 0; i--) {
		th_stack_open(&t->s[i], &o);
		t->s[i].peers = calloc(1, sizeof(*t->s[i].peers));
		th_check(t->s[i].peers);
		t->s[i].peers[0] = th_insert(&t->s[i], t->s[M15_EPS].addr);
		/* the owner makes progress while an initiator waits */
		t->s[i].buddy = i < M15_EPS ? &t->s[M15_EPS] : NULL;
	}
	t->c = ck_of(self, &t->s[M15_EPS]);
	for (int i = 0; i < M15_FILES; i++)
		t->fd[i] = t->file ? rk_file_new(M15_LEN) : -1;
	t->p = t->file ? rk_file_map(t->fd[0], M15_LEN, NULL)
		       : rk_pages(M15_LEN);
}

static void m15_shut(struct m15 *t)
{
	for (int i = 0; i < M15_LIVE; i++)
		if (t->live[i].mr)
			m15_close(&t->live[i]);
	ck_unmap(&t->c, t->p, M15_LEN);
	for (int i = 0; i < M15_FILES && t->file; i++)
		close(t->fd[i]);
	for (int i = 0; i <= M15_EPS; i++) {
		t->s[i].buddy = NULL;
		th_stack_close(&t->s[i]);
	}
}

/*
 * Open regions keep their memory whatever becomes of their neighbours; new
 * ones have what is there.
 */
static void m15(struct th_self *self, bool file)
{
	static struct m15 t;

	t = (struct m15){ .file = file, .state = 15 };
	m15_open(&t, self);
	for (unsigned long i = 0; i < th_rounds(M15_STEPS); i++)
		m15_step(&t);
	m15_shut(&t);
}

static void case_M15(struct th_self *self)
{
	ck_set(self);
	m15(self, false);
	m15(self, true);
}

/* ---- C5 ------------------------------------------------------------------- */

enum { C5_PAGE = 1000, C5_NEW = 0xc5, C5_READS = 3 };

static size_t c5_len(void)
{
	return th_sanitized() ? 8 << 20 : 64 << 20;
}

/* One of two: rank 0 has the buffer, rank 1 what it is copied to. */
struct c5 {
	struct th_self *self; /* who */
	struct th_stack s;    /* its stack */
	struct ck c;	      /* its cache */
	unsigned char *p;     /* c5_len() bytes */
	bool unmap;	      /* a page is replaced, else given up */
	bool hole;	      /* there is nothing for a moment */
	rnic_a32 go;	      /* 1: now */
};

/* What each byte of page @i of the buffer is. */
static unsigned char c5_byte(size_t i)
{
	return (unsigned char)(i * 7 + 1);
}

static void c5_fill(struct c5 *t)
{
	for (size_t i = 0; i < c5_len() / PAGE; i++)
		memset(t->p + i * PAGE, c5_byte(i), PAGE);
}

/* As c5_fill(), but for the page that changed. */
static void c5_verify(const struct c5 *t)
{
	for (size_t i = 0; i < c5_len() / PAGE; i++) {
		const unsigned char *q = t->p + i * PAGE;

		th_eq(*q, i == C5_PAGE ? C5_NEW : c5_byte(i));
		th_eq(memcmp(q, q + 1, PAGE - 1), 0);
	}
}

/* The thread that changes a page. */
static void *c5_main(void *arg)
{
	struct c5 *t = arg;
	unsigned char *page = t->p + C5_PAGE * PAGE;
	const char *pin = t->c.how->pin;

	/* acquire: the transfer is about to begin, or has begun */
	while (!rnic_load32_acquire(&t->go))
		rnic_cpu_relax();
	if (t->unmap && t->hole)
		ck_replace(&t->c, page, PAGE, -1, 0);
	else if (t->unmap)
		ck_map_over(&t->c, page, PAGE, -1, 0);
	else if (ck_give_up(&t->c, page, PAGE))
		/* what the cache keeps locked is not given up */
		th_check(pin && !strcmp(pin, "keep"));
	memset(page, C5_NEW, PAGE);
	return NULL;
}

static pthread_t c5_start(struct c5 *t)
{
	pthread_t thread;

	rnic_store32_relaxed(&t->go, 0);
	th_eq(pthread_create(&thread, NULL, c5_main, t), 0);
	return thread;
}

/* Copies all of it between the two; how it ended. */
static int c5_copy(struct c5 *t, struct fid_mr *mr, uint64_t key)
{
	void *desc = mr ? fi_mr_desc(mr) : NULL;

	if (t->self->rank)
		th_ok(fi_read(t->s.ep, t->p, c5_len(), desc, t->s.peers[0], 0,
			      key, t));
	else
		th_ok(fi_write(t->s.ep, t->p, c5_len(), desc, t->s.peers[1], 0,
			       key, t));
	return rk_end(&t->s).err;
}

/* Rank 0 says how a copy ended; if well, rank 1 looks at what it has got. */
static void c5_judge(struct c5 *t, int err)
{
	int all[2];

	th_gather(t->self, "copied", &err, all, sizeof(err));
	th_settle(&t->s);
	if (t->self->rank && !all[0] && !all[1])
		c5_verify(t);
	th_barrier(t->self, "looked at");
}

/* A copy while @thread changes the buffer. A sanitizer would object. */
static void c5_race(struct c5 *t, struct fid_mr *mr, pthread_t thread)
{
	/* release: as c5_main() */
	rnic_store32_release(&t->go, 1);
	if (th_sanitized())
		th_eq(pthread_join(thread, NULL), 0);
	c5_copy(t, mr, RK_KEY + 1);
	if (!th_sanitized())
		th_eq(pthread_join(thread, NULL), 0);
}

/* Written from while it changes, and then as it is. No hole: a way without
 * system calls reads it, and the application would be at fault. */
static void c5_source(struct c5 *t)
{
	struct fid_mr *mr = NULL;
	pthread_t thread;
	int err = 0;

	for (int turn = 0; turn < 2; turn++) {
		if (!t->self->rank && !turn) {
			mr = rk_reg(&t->s, t->p, c5_len(), CK_LOCAL, RK_KEY);
			thread = c5_start(t);
			c5_race(t, mr, thread);
			/* the region may be of no use any more */
			err = c5_copy(t, mr, RK_KEY + 1);
		} else if (!t->self->rank) {
			th_ok(fi_close(&mr->fid));
			mr = rk_reg(&t->s, t->p, c5_len(), CK_LOCAL, RK_KEY);
			err = c5_copy(t, mr, RK_KEY + 1);
			th_eq(err, 0);
		}
		c5_judge(t, err);
	}
	if (mr)
		th_ok(fi_close(&mr->fid));
}

/* The owner of what is read while it changes. */
static void c5_target(struct c5 *t)
{
	struct fid_mr *mr = rk_reg(&t->s, t->p, c5_len(), RK_RW, RK_KEY);
	pthread_t thread = c5_start(t);

	c5_fill(t);
	th_barrier(t->self, "registered");
	/* release: as c5_main() */
	rnic_store32_release(&t->go, 1);
	th_eq(pthread_join(thread, NULL), 0);
	th_barrier(t->self, "changed");
	c5_judge(t, 0);
	th_ok(fi_close(&mr->fid));
	mr = rk_reg(&t->s, t->p, c5_len(), RK_RW, RK_KEY + 2);
	th_barrier(t->self, "again");
	c5_judge(t, 0);
	th_ok(fi_close(&mr->fid));
}

static void c5_reader(struct c5 *t)
{
	int err;

	th_barrier(t->self, "registered");
	for (int i = 0; i < C5_READS; i++)
		c5_copy(t, NULL, RK_KEY);
	th_barrier(t->self, "changed");
	c5_judge(t, c5_copy(t, NULL, RK_KEY));
	th_barrier(t->self, "again");
	err = c5_copy(t, NULL, RK_KEY + 2);
	th_eq(err, 0);
	c5_judge(t, err);
}

static void c5_open(struct c5 *t, struct th_self *self)
{
	struct th_stack_opts o = rk_opts();

	*t = (struct c5){ .self = self };
	ck_set(self);
	/* else pages of open regions cannot be given up */
	setenv("FI_SHRIMP_PIN", "off", 1);
	th_stack_open(&t->s, &o);
	th_stack_connect(&t->s, self);
	t->c = ck_of(self, &t->s);
	t->p = rk_pages(c5_len());
}

/*
 * A page of a buffer that is in use is given up, and unmapped. What is under
 * way ends, well or not; the next transfer has the new page, or fails; after
 * the next registration it has it.
 */
static void case_C5(struct th_self *self)
{
	struct fid_mr *mr = NULL;
	struct c5 t;

	c5_open(&t, self);
	c5_fill(&t);
	if (self->rank)
		mr = rk_reg(&t.s, t.p, c5_len(), RK_RW, RK_KEY + 1);
	for (int i = 0; i < 2; i++) {
		t.unmap = i;
		th_barrier(self, "begin");
		t.hole = false;
		c5_source(&t);
		t.hole = true;
		if (self->rank)
			c5_reader(&t);
		else
			c5_target(&t);
	}
	if (mr)
		th_ok(fi_close(&mr->fid));
	ck_unmap(&t.c, t.p, c5_len());
	th_barrier_progress(self, &t.s, "end");
	th_stack_close(&t.s);
}

/* ---- table ------------------------------------------------------------------ */

static const struct CMUnitTest cache_cases[] = {
	CK_CASES(case_M1, 2, 30),
	CK_SOME(case_M2, 2, 30),
	CK_CASE(case_M2, 2, 30, all_off),
	CK_SOME(case_M2_file, 2, 30),
	CK_CASE(case_M2_file, 2, 30, all_off),
	CK_CASE(case_M14_limit, 1, 60, off),
	CK_CASE(case_M14_limit, 1, 60, all_uffd),
	CK_CASE(case_M14_limit, 1, 60, all_notify),
	CK_CASE(case_M14_limit, 1, 60, all_off),
	CK_CASE(case_M14_limit, 1, 60, all_keep),
	CK_CASES(case_M15, 1, 60),
	CK_SOME(case_C5, 2, 60),
};

TH_MAIN(cache_cases)
