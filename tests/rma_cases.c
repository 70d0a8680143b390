/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Public cases of registration and keys (M1 to M12): what a key reaches, what
 * it does not, and what a refusal looks like.
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <stdio.h>
#include <sys/mman.h>

enum { LEN = 16384 };

/* Opens a pair for RMA; @mode of the keys ("virt_addr"...) or NULL. */
static void pair_open(struct th_stack *a, struct th_stack *b, const char *mode)
{
	struct th_stack_opts o = rk_opts();

	if (mode) {
		setenv("FI_SHRIMP_MR_MODE", mode, 1);
		if (strstr(mode, "virt_addr"))
			o.mr_mode |= FI_MR_VIRT_ADDR;
		if (strstr(mode, "prov_key"))
			o.mr_mode |= FI_MR_PROV_KEY;
	}
	th_pair_open(a, b, &o);
	th_eq(b->info->domain_attr->mr_mode, o.mr_mode);
}

/* A write or read of @len bytes by @s at its peer 1. */
static void post(struct th_stack *s, bool write, void *buf, size_t len,
		 uint64_t addr, uint64_t key)
{
	if (write)
		th_ok(fi_write(s->ep, buf, len, NULL, s->peers[1], addr, key,
			       buf));
	else
		th_ok(fi_read(s->ep, buf, len, NULL, s->peers[1], addr, key,
			      buf));
}

static uint64_t flag_of(bool write)
{
	return write ? FI_WRITE : FI_READ;
}

/* ---- M1 ------------------------------------------------------------------- */

static void *map_at(void *want)
{
	void *p =
		mmap(want, LEN, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	th_ptr_eq(p, want);
	return p;
}

static void m1_owner(struct th_self *self, struct th_stack *s, void *at,
		     uint64_t i)
{
	unsigned char *p = map_at(at);
	struct fid_mr *mr = rk_reg(s, p, LEN, RK_RW, RK_KEY + i % 2);

	th_fill(p, LEN, i);
	th_barrier_progress(self, s, "filled");
	th_barrier_progress(self, s, "read");
	th_ok(fi_close(&mr->fid));
	th_eq(munmap(p, LEN), 0);
}

static void m1_reader(struct th_self *self, struct th_stack *s, void *at,
		      uint64_t i)
{
	unsigned char *p = map_at(at);
	struct fid_mr *mr = rk_reg(s, p, LEN, RK_ALL, RK_KEY);

	memset(p, 0xee, LEN);
	th_barrier_progress(self, s, "filled");
	th_ok(fi_read(s->ep, p, LEN, fi_mr_desc(mr), s->peers[0], 0,
		      RK_KEY + i % 2, p));
	rk_done(s, FI_READ, p);
	th_verify(p, LEN, i);
	th_barrier_progress(self, s, "read");
	th_ok(fi_close(&mr->fid));
	th_eq(munmap(p, LEN), 0);
}

/* Both sides map, register, use, close and unmap at one address. */
static void case_M1_same_address(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	/* where neither the kernel nor a sanitizer places anything */
	void *at = (char *)(uintptr_t)0x40000000;
	struct th_stack s;

	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	for (uint64_t i = 0; i < th_rounds(100); i++) {
		if (self->rank)
			m1_reader(self, &s, at, i);
		else
			m1_owner(self, &s, at, i);
	}
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/* ---- M3 ------------------------------------------------------------------- */

/* @key is closed: nothing is read, nothing is written. */
static void check_closed(struct th_stack *a, const unsigned char *p,
			 uint64_t key, uint64_t seed)
{
	unsigned char in[64];

	for (int i = 0; i < 3; i++) {
		memset(in, 0x77, sizeof(in));
		post(a, true, in, 64, 64, key);
		rk_refused(a, FI_EKEYREJECTED, key, 64, 64);
		post(a, false, in, 64, 64, key);
		rk_refused(a, FI_EKEYREJECTED, key, 64, 64);
		th_verify_byte(in, 64, 0x77);
		th_verify(p, LEN, seed);
	}
}

static void check_open(struct th_stack *a, unsigned char *p, uint64_t key,
		       uint64_t seed)
{
	unsigned char in[64];

	th_fill_at(in, 64, seed, 64);
	post(a, true, in, 64, 64, key);
	rk_done(a, FI_WRITE, in);
	memset(in, 0, 64);
	post(a, false, in, 64, 64, key);
	rk_done(a, FI_READ, in);
	th_verify_at(in, 64, seed, 64);
	th_verify(p, LEN, seed);
}

/* Before each close the key was used, so it is in the cache of @a. */
static void m3(bool device)
{
	struct th_stack a, b;
	struct rk_mem m;
	struct fid_mr *mr, *next;

	pair_open(&a, &b, NULL);
	m = rk_mem_new(&b, device, LEN);
	th_fill(m.p, LEN, 3);
	mr = rk_reg(&b, m.p, LEN, RK_RW, 1);
	for (uint64_t key = 1; key <= th_rounds(50); key++) {
		check_open(&a, m.p, key, 3);
		th_ok(fi_close(&mr->fid));
		check_closed(&a, m.p, key, 3);
		/* the same memory has a key again, but not that one */
		next = rk_reg(&b, m.p, LEN, RK_RW, key + 1);
		check_closed(&a, m.p, key, 3);
		check_open(&a, m.p, key + 1, 3);
		mr = next;
	}
	/* both endpoints work */
	th_recv(&b, m.p, 8, NULL);
	th_send(&a, a.peers[1], "message!", 8, NULL);
	th_rx_ok(&b);
	th_ok(fi_close(&mr->fid));
	rk_mem_free(&m);
	th_pair_close(&a, &b);
}

static void case_M3_device(struct th_self *self)
{
	(void)self;
	m3(true);
}

static void case_M3_private(struct th_self *self)
{
	(void)self;
	m3(false);
}

/* A key that was chosen again means the new memory only. */
static void case_M3_key_again(struct th_self *self)
{
	struct th_stack a, b;
	struct rk_mem m[2];
	struct fid_mr *mr;

	(void)self;
	pair_open(&a, &b, NULL);
	for (int i = 0; i < 2; i++) {
		m[i] = rk_mem_new(&b, true, LEN);
		th_fill(m[i].p, LEN, (uint64_t)i);
	}
	for (unsigned int i = 0; i < th_rounds(100); i++) {
		mr = rk_reg(&b, m[i % 2].p, LEN, RK_RW, RK_KEY);
		check_open(&a, m[i % 2].p, RK_KEY, i % 2);
		th_verify(m[1 - i % 2].p, LEN, 1 - i % 2);
		th_ok(fi_close(&mr->fid));
	}
	rk_mem_free(&m[0]);
	rk_mem_free(&m[1]);
	th_pair_close(&a, &b);
}

/* ---- M6: bad requests --------------------------------------------------------- */

enum {
	BOTH_KEY = 10,	  /* may be read and written */
	READ_KEY = 11,	  /* may be read */
	WRITE_KEY = 12,	  /* may be written */
	CLOSED_KEY = 13,  /* was closed */
	FOREIGN_KEY = 14, /* of another domain */
	NO_KEY = 15,	  /* never was one */
};

/* A request, addressed from the start of the region. */
struct request {
	const char *what; /* what is wrong */
	uint64_t key;	  /* the key */
	uint64_t addr;	  /* from the region's first byte */
	uint64_t len;	  /* bytes */
	int write;	  /* 1: write, 0: read, -1: both in turn */
	int err;	  /* what it must say */
};

static const struct request requests[] = {
	{ "never issued", NO_KEY, 0, 8, -1, FI_EKEYREJECTED },
	{ "never issued, 0", 0, 0, 8, -1, FI_EKEYREJECTED },
	{ "never issued, all bits", UINT64_MAX, 0, 8, -1, FI_EKEYREJECTED },
	{ "never issued, big", UINT64_C(1) << 40 | 1, 0, 8, -1,
	  FI_EKEYREJECTED },
	{ "closed", CLOSED_KEY, 0, 8, -1, FI_EKEYREJECTED },
	{ "of another domain", FOREIGN_KEY, 0, 8, -1, FI_EKEYREJECTED },
	{ "one byte low", BOTH_KEY, -UINT64_C(1), 8, -1, FI_EINVAL },
	{ "one byte low, alone", BOTH_KEY, -UINT64_C(1), 1, -1, FI_EINVAL },
	{ "one byte high", BOTH_KEY, 1, LEN, -1, FI_EINVAL },
	{ "one byte high, alone", BOTH_KEY, LEN, 1, -1, FI_EINVAL },
	{ "longer than it", BOTH_KEY, 0, LEN + 1, -1, FI_EINVAL },
	{ "low and high", BOTH_KEY, -UINT64_C(1), LEN + 2, -1, FI_EINVAL },
	{ "half way round", BOTH_KEY, UINT64_C(1) << 63, 8, -1, FI_EINVAL },
	{ "write of what may be read", READ_KEY, 0, 8, 1, FI_EACCES },
	{ "read of what may be written", WRITE_KEY, 0, 8, 0, FI_EACCES },
	{ "write of it all", READ_KEY, 0, LEN, 1, FI_EACCES },
};

/* The same, but the addresses are as the peer gives them. */
static const struct request absolute[] = {
	{ "ends at 2^64", BOTH_KEY, UINT64_MAX - 7, 8, -1, FI_EINVAL },
	{ "wraps", BOTH_KEY, UINT64_MAX - 7, 9, -1, FI_EINVAL },
	{ "last byte of all", BOTH_KEY, UINT64_MAX, 1, -1, FI_EINVAL },
	{ "wraps far", BOTH_KEY, UINT64_MAX - 100, LEN, -1, FI_EINVAL },
};

/* What the bad requests are made against. */
struct m6 {
	struct th_stack a, b;	    /* initiator, target */
	struct th_stack c;	    /* another domain of the target's process */
	struct rk_mem m;	    /* LEN bytes and a page on both sides */
	unsigned char *p;	    /* the region */
	uint64_t base;		    /* how its first byte is addressed */
	struct fid_mr *mr[3];	    /* BOTH, READ, WRITE */
	struct fid_mr *foreign;	    /* of @c */
	unsigned char buf[2 * LEN]; /* of the initiator */
};

static void m6_open(struct m6 *t, bool device, const char *mode)
{
	struct th_stack_opts o = rk_opts();
	struct fid_mr *mr;

	pair_open(&t->a, &t->b, mode);
	if (mode)
		o.mr_mode |= FI_MR_VIRT_ADDR;
	th_stack_open(&t->c, &o);
	t->m = rk_mem_new(&t->b, device, LEN + 2 * RK_PAGE);
	t->p = t->m.p + RK_PAGE;
	t->base = mode ? (uintptr_t)t->p : 0;
	t->mr[0] = rk_reg(&t->b, t->p, LEN, RK_RW, BOTH_KEY);
	t->mr[1] = rk_reg(&t->b, t->p, LEN, FI_REMOTE_READ, READ_KEY);
	t->mr[2] = rk_reg(&t->b, t->p, LEN, FI_REMOTE_WRITE, WRITE_KEY);
	t->foreign = rk_reg(&t->c, t->buf, LEN, RK_RW, FOREIGN_KEY);
	mr = rk_reg(&t->b, t->p, LEN, RK_RW, CLOSED_KEY);
	th_ok(fi_close(&mr->fid));
	th_fill(t->m.p, t->m.len, 6);
}

static void m6_close(struct m6 *t)
{
	for (int i = 0; i < 3; i++)
		th_ok(fi_close(&t->mr[i]->fid));
	th_ok(fi_close(&t->foreign->fid));
	rk_mem_free(&t->m);
	th_stack_close(&t->c);
	th_pair_close(&t->a, &t->b);
}

/* A good request, which leaves the memory as it is. */
static void m6_good(struct m6 *t)
{
	th_fill_at(t->buf, 64, 6, RK_PAGE + LEN - 64);
	post(&t->a, true, t->buf, 64, t->base + LEN - 64, BOTH_KEY);
	rk_done(&t->a, FI_WRITE, t->buf);
	memset(t->buf, 0, 64);
	post(&t->a, false, t->buf, 64, t->base + LEN - 64, BOTH_KEY);
	rk_done(&t->a, FI_READ, t->buf);
	th_verify_at(t->buf, 64, 6, RK_PAGE + LEN - 64);
}

/* One error, no event, no byte; then all is well. */
static void m6_bad(struct m6 *t, const struct request *r, uint64_t addr,
		   bool write)
{
	struct rk_outcome e;

	memset(t->buf, 0x77, sizeof(t->buf));
	if (write)
		th_ok(fi_writedata(t->a.ep, t->buf, r->len, NULL, 5,
				   t->a.peers[1], addr, r->key, t->buf));
	else
		post(&t->a, false, t->buf, r->len, addr, r->key);
	e = rk_end(&t->a);
	if (e.err != r->err)
		th_fail(__FILE__, __LINE__, "%s of \"%s\": %d (%s), wanted %d",
			write ? "write" : "read", r->what, e.err,
			fi_strerror(e.err), r->err);
	th_ptr_eq(e.context, t->buf);
	th_eq(e.moved, 0);
	th_check(e.told);
	th_eq(e.data.key, r->key);
	th_eq(e.data.addr, addr);
	th_eq(e.data.len, r->len);
	th_eq(e.data.err, r->err);
	th_verify_byte(t->buf, sizeof(t->buf), 0x77);
	th_verify(t->m.p, t->m.len, 6);
	th_quiet(&t->a, 1);
	th_quiet(&t->b, 1);
	m6_good(t);
}

static void m6_table(struct m6 *t, const struct request *r, size_t n,
		     uint64_t base)
{
	for (size_t i = 0; i < n; i++) {
		if (r[i].write != 0)
			m6_bad(t, &r[i], base + r[i].addr, true);
		if (r[i].write != 1)
			m6_bad(t, &r[i], base + r[i].addr, false);
	}
}

static void m6(bool device, const char *mode)
{
	static struct m6 t;
	/* an offset where an address is due, and the reverse */
	struct request other = {
		"the other addressing", BOTH_KEY, 0, 8, -1, FI_EINVAL
	};

	m6_open(&t, device, mode);
	m6_table(&t, requests, sizeof(requests) / sizeof(*requests), t.base);
	m6_table(&t, absolute, sizeof(absolute) / sizeof(*absolute), 0);
	other.addr = mode ? 0 : (uintptr_t)t.p;
	m6_table(&t, &other, 1, 0);
	m6_close(&t);
}

static void case_M6_device_offsets(struct th_self *self)
{
	(void)self;
	m6(true, NULL);
}

static void case_M6_device_addresses(struct th_self *self)
{
	(void)self;
	m6(true, "virt_addr");
}

static void case_M6_private_offsets(struct th_self *self)
{
	(void)self;
	m6(false, NULL);
}

static void case_M6_private_addresses(struct th_self *self)
{
	(void)self;
	m6(false, "virt_addr");
}

/* Several remote ranges, one of them bad: what was before it has moved. */
static void case_M6_one_of_several(struct th_self *self)
{
	static struct m6 t;
	struct iovec iov = { t.buf, 300 };
	struct fi_rma_iov there[3] = { { 0, 100, BOTH_KEY },
				       { 200, 100, NO_KEY },
				       { 400, 100, BOTH_KEY } };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.iov_count = 1,
				.rma_iov = there,
				.rma_iov_count = 3,
				.context = &m };
	struct rk_outcome e;

	(void)self;
	m6_open(&t, true, NULL);
	m.addr = t.a.peers[1];
	th_fill_at(t.buf, 100, 6, RK_PAGE);
	th_ok(fi_writemsg(t.a.ep, &m, FI_COMPLETION));
	e = rk_end(&t.a);
	th_eq(e.err, FI_EKEYREJECTED);
	th_eq(e.moved, 100);
	th_eq(e.data.key, NO_KEY);
	th_eq(e.data.addr, 200);
	th_verify(t.m.p, t.m.len, 6);
	th_quiet(&t.b, 1);
	m6_good(&t);
	m6_close(&t);
}

/* ---- M9: the same buffer many times --------------------------------------------- */

enum { COPIES = 16 };

static uint64_t m9_access(int i)
{
	static const uint64_t access[] = { RK_RW, FI_REMOTE_READ,
					   FI_REMOTE_WRITE, RK_ALL };

	return access[i % 4];
}

/* Key @i obeys its rights, whatever others there are. */
static void m9_check(struct th_stack *a, const struct rk_mem *m,
		     const uint64_t *key, int i)
{
	static const struct {
		uint64_t right;
		bool write;
	} both[] = { { FI_REMOTE_READ, false }, { FI_REMOTE_WRITE, true } };
	unsigned char in[100];

	for (int k = 0; k < 2; k++) {
		th_fill_at(in, 100, 9, 50);
		post(a, both[k].write, in, 100, 50, key[i]);
		if (m9_access(i) & both[k].right)
			rk_done(a, flag_of(both[k].write), in);
		else
			rk_refused(a, FI_EACCES, key[i], 50, 100);
		th_verify_at(in, 100, 9, 50);
	}
	th_verify(m->p, m->len, 9);
}

/* Closes in random order; after each close the rest is used. */
static void m9_close_all(struct th_stack *a, const struct rk_mem *m,
			 struct fid_mr **mr, const uint64_t *key)
{
	uint64_t state = 9;
	unsigned char in[8];
	int i;

	for (int n = COPIES; n; n--) {
		do
			i = (int)(th_random(&state) % COPIES);
		while (!mr[i]);
		th_ok(fi_close(&mr[i]->fid));
		mr[i] = NULL;
		post(a, false, in, 8, 0, key[i]);
		rk_refused(a, FI_EKEYREJECTED, key[i], 0, 8);
		for (i = 0; i < COPIES; i++)
			if (mr[i])
				m9_check(a, m, key, i);
	}
}

static void m9(bool device, const char *mode)
{
	struct fid_mr *mr[COPIES];
	uint64_t key[COPIES];
	struct th_stack a, b;
	struct rk_mem m;

	pair_open(&a, &b, mode);
	m = rk_mem_new(&b, device, LEN);
	th_fill(m.p, LEN, 9);
	for (int i = 0; i < COPIES; i++) {
		mr[i] = rk_reg(&b, m.p, LEN, m9_access(i),
			       mode ? 0 : (uint64_t)i);
		key[i] = fi_mr_key(mr[i]);
		for (int k = 0; k < i; k++)
			th_check(key[k] != key[i]);
	}
	for (int i = 0; i < COPIES; i++)
		m9_check(&a, &m, key, i);
	m9_close_all(&a, &m, mr, key);
	rk_mem_free(&m);
	th_pair_close(&a, &b);
}

static void case_M9_user_keys(struct th_self *self)
{
	(void)self;
	m9(true, NULL);
}

static void case_M9_provider_keys(struct th_self *self)
{
	(void)self;
	m9(true, "prov_key");
}

static void case_M9_private(struct th_self *self)
{
	(void)self;
	m9(false, "prov_key");
}

/* ---- M10: requested keys ---------------------------------------------------------- */

static int reg(struct th_stack *s, void *p, size_t len, uint64_t access,
	       uint64_t key, struct fid_mr **mr)
{
	return fi_mr_reg(s->domain, p, len, access, 0, key, 0, mr, NULL);
}

static void case_M10_requested_keys(struct th_self *self)
{
	struct fid_mr *mr[4], *dup = NULL;
	struct th_stack a, b;
	static char buf[LEN];

	(void)self;
	pair_open(&a, &b, NULL);
	/* a: with remote access a key is taken */
	mr[0] = rk_reg(&b, buf, LEN, FI_REMOTE_READ, 5);
	th_eq(reg(&b, buf, LEN, FI_REMOTE_READ, 5, &dup), -FI_ENOKEY);
	th_eq(reg(&b, buf, 100, FI_REMOTE_WRITE, 5, &dup), -FI_ENOKEY);
	th_ptr_eq(dup, NULL);
	/* another domain may have the same */
	mr[1] = rk_reg(&a, buf, LEN, FI_REMOTE_READ, 5);
	/* d: closed, it is free */
	th_ok(fi_close(&mr[0]->fid));
	mr[0] = rk_reg(&b, buf, LEN, FI_REMOTE_READ, 5);
	th_eq(reg(&b, buf, LEN, FI_REMOTE_READ, 5, &dup), -FI_ENOKEY);
	th_ok(fi_close(&mr[0]->fid));
	th_ok(fi_close(&mr[1]->fid));
	th_pair_close(&a, &b);
}

/* b: without remote access nobody needs the key. */
static void case_M10_local_only(struct th_self *self)
{
	struct fid_mr *mr[4];
	struct th_stack a, b;
	static char buf[LEN];
	unsigned char in[8] = { 1 };

	(void)self;
	pair_open(&a, &b, NULL);
	mr[0] = rk_reg(&b, buf, LEN, FI_SEND | FI_RECV, 5);
	mr[1] = rk_reg(&b, buf, LEN, FI_READ | FI_WRITE, 5);
	mr[2] = rk_reg(&b, buf, LEN, FI_SEND, 5);
	post(&a, true, in, 8, 0, 5);
	rk_refused(&a, FI_EKEYREJECTED, 5, 0, 8);
	/* nor do they stand in the way of one that peers use */
	mr[3] = rk_reg(&b, buf, LEN, FI_REMOTE_WRITE, 5);
	post(&a, true, in, 8, 0, 5);
	rk_done(&a, FI_WRITE, in);
	for (int i = 0; i < 4; i++)
		th_ok(fi_close(&mr[i]->fid));
	th_verify_byte((unsigned char *)buf + 1, LEN - 1, 0);
	th_pair_close(&a, &b);
}

/* c: with provider keys the requested one does not count. */
static void case_M10_provider_keys(struct th_self *self)
{
	struct fid_mr *mr[2];
	struct th_stack a, b;
	static char buf[LEN];

	(void)self;
	pair_open(&a, &b, "prov_key");
	for (int i = 0; i < 2; i++)
		mr[i] = rk_reg(&b, buf, LEN, RK_RW, 0);
	th_check(fi_mr_key(mr[0]) != fi_mr_key(mr[1]));
	th_check(fi_mr_key(mr[0]) != FI_KEY_NOTAVAIL);
	for (int i = 0; i < 2; i++)
		th_ok(fi_close(&mr[i]->fid));
	th_pair_close(&a, &b);
}

/* ---- M11: nothing -------------------------------------------------------------- */

static void case_M11_length_0(struct th_self *self)
{
	static char buf[LEN];
	struct iovec iov[2] = { { buf, LEN }, { buf, 0 } };
	struct fi_mr_attr attr = { .mr_iov = iov + 1,
				   .iov_count = 1,
				   .access = RK_RW };
	struct fid_mr *mr = NULL;
	struct th_stack a, b;

	(void)self;
	pair_open(&a, &b, NULL);
	th_eq(reg(&b, buf, 0, RK_RW, 1, &mr), -FI_EINVAL);
	th_eq(reg(&b, NULL, 0, RK_RW, 1, &mr), -FI_EINVAL);
	th_eq(reg(&b, NULL, 0, FI_SEND, 1, &mr), -FI_EINVAL);
	th_eq(fi_mr_regattr(b.domain, &attr, 0, &mr), -FI_EINVAL);
	th_eq(fi_mr_regv(b.domain, iov, 2, RK_RW, 0, 1, 0, &mr, NULL),
	      -FI_EINVAL);
	th_eq(reg(&b, NULL, LEN, RK_RW, 1, &mr), -FI_EFAULT);
	th_ptr_eq(mr, NULL);
	/* none of it took the key */
	th_ok(reg(&b, buf, 1, RK_RW, 1, &mr));
	th_ok(fi_close(&mr->fid));
	th_pair_close(&a, &b);
}

/* ---- M12: RMA of nothing --------------------------------------------------------- */

static void m12_target(struct th_stack *b, uint64_t data)
{
	struct fi_cq_tagged_entry e = th_rx_ok(b);

	th_eq(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	th_eq(e.data, data);
	th_eq(e.len, 0);
}

static void m12_msg(struct th_stack *a, struct th_stack *b, uint64_t addr)
{
	struct iovec iov = { NULL, 0 };
	struct fi_rma_iov there = { addr, 0, RK_KEY };
	struct fi_msg_rma m = { .addr = a->peers[1], .context = &m, .data = 4 };

	/* no range at all; one that is empty; on either side */
	for (int i = 0; i < 4; i++) {
		m.msg_iov = i & 1 ? &iov : NULL;
		m.iov_count = i & 1;
		m.rma_iov = i & 2 ? &there : NULL;
		m.rma_iov_count = (size_t)(i >> 1);
		th_ok(fi_writemsg(a->ep, &m, FI_COMPLETION));
		rk_done(a, FI_WRITE, &m);
		th_ok(fi_readmsg(a->ep, &m, FI_COMPLETION));
		rk_done(a, FI_READ, &m);
		th_ok(fi_writemsg(a->ep, &m, FI_INJECT | FI_COMPLETION));
		rk_done(a, FI_WRITE, &m);
		th_ok(fi_writemsg(a->ep, &m,
				  FI_REMOTE_CQ_DATA | FI_COMPLETION));
		rk_done(a, FI_WRITE, &m);
		m12_target(b, 4);
	}
}

static void m12_calls(struct th_stack *a, struct th_stack *b, uint64_t addr)
{
	fi_addr_t to = a->peers[1];
	char here;

	th_ok(fi_write(a->ep, NULL, 0, NULL, to, addr, RK_KEY, &here));
	rk_done(a, FI_WRITE, &here);
	th_ok(fi_read(a->ep, NULL, 0, NULL, to, addr, RK_KEY, &here));
	rk_done(a, FI_READ, &here);
	th_ok(fi_writev(a->ep, NULL, NULL, 0, to, addr, RK_KEY, &here));
	rk_done(a, FI_WRITE, &here);
	th_ok(fi_readv(a->ep, NULL, NULL, 0, to, addr, RK_KEY, &here));
	rk_done(a, FI_READ, &here);
	th_ok(fi_writedata(a->ep, NULL, 0, NULL, 1, to, addr, RK_KEY, &here));
	rk_done(a, FI_WRITE, &here);
	m12_target(b, 1);
	th_ok(fi_inject_write(a->ep, NULL, 0, to, addr, RK_KEY));
	th_ok(fi_inject_writedata(a->ep, NULL, 0, 2, to, addr, RK_KEY));
	m12_target(b, 2);
	m12_msg(a, b, addr);
	th_quiet(a, 2);
	th_quiet(b, 2);
}

static void m12(bool device)
{
	struct th_stack a, b;
	struct fid_mr *mr;
	struct rk_mem m;

	pair_open(&a, &b, NULL);
	m = rk_mem_new(&b, device, LEN);
	th_fill(m.p, LEN, 12);
	mr = rk_reg(&b, m.p, LEN, RK_RW, RK_KEY);
	m12_calls(&a, &b, 0);
	m12_calls(&a, &b, 100);
	m12_calls(&a, &b, LEN);
	th_verify(m.p, LEN, 12);
	th_ok(fi_close(&mr->fid));
	rk_mem_free(&m);
	th_pair_close(&a, &b);
}

static void case_M12_device(struct th_self *self)
{
	(void)self;
	m12(true);
}

static void case_M12_private(struct th_self *self)
{
	(void)self;
	m12(false);
}

static const struct CMUnitTest rma_cases[] = {
	TH_CASE(case_M1_same_address, 2, 60),
	TH_CASE(case_M3_device, 1, 20),
	TH_CASE(case_M3_private, 1, 20),
	TH_CASE(case_M3_key_again, 1, 20),
	TH_CASE(case_M6_device_offsets, 1, 20),
	TH_CASE(case_M6_device_addresses, 1, 20),
	TH_CASE(case_M6_private_offsets, 1, 20),
	TH_CASE(case_M6_private_addresses, 1, 20),
	TH_CASE(case_M6_one_of_several, 1, 20),
	TH_CASE(case_M9_user_keys, 1, 20),
	TH_CASE(case_M9_provider_keys, 1, 20),
	TH_CASE(case_M9_private, 1, 20),
	TH_CASE(case_M10_requested_keys, 1, 20),
	TH_CASE(case_M10_local_only, 1, 20),
	TH_CASE(case_M10_provider_keys, 1, 20),
	TH_CASE(case_M11_length_0, 1, 20),
	TH_CASE(case_M12_device, 1, 20),
	TH_CASE(case_M12_private, 1, 20),
};

TH_MAIN(rma_cases)
