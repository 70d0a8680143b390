/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * FI_SHRIMP_MTT=pages: a region has an entry for each page of the memory that
 * is behind it. Whatever is promised of RMA and atomics holds over many
 * leaves, of device memory, private memory, sealed files and huge pages; and
 * tables cost what they have leaves.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <complex.h>
#include <fcntl.h>
#include <rdma/fi_atomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env_probe.h"
#include "rma_kit.h"

enum {
	LEN = 2 << 20,	  /* bytes of a region: 512 small pages */
	OTHER = 78,	  /* another key */
	HUGE_2M = 2 << 20 /* bytes of a huge page */
};

/* Without FI_MR_ALLOCATED nothing is looked at or locked. */
static const struct th_stack_opts unallocated = {
	.caps = FI_MSG | FI_RMA,
	.mr_mode = FI_MR_VIRT_ADDR,
};

/* KiB of the tables of all devices of this process. */
static uint64_t tables_kib(void)
{
	return probe_segment_kib("shrimp-tables");
}

/* A region of one page has no table; LEN bytes have more than one. */
static void check_that_it_counts(struct th_stack *s)
{
	struct rk_mem m = rk_mem_new(s, false, LEN);
	uint64_t kib;

	madvise(m.p, LEN, MADV_NOHUGEPAGE);
	th_ok(fi_close(&rk_reg(s, m.p, RK_PAGE, RK_RW, RK_KEY)->fid));
	kib = tables_kib();
	th_ok(fi_close(&rk_reg(s, m.p, RK_PAGE, RK_RW, RK_KEY)->fid));
	th_eq(tables_kib(), kib);
	th_ok(fi_close(&rk_reg(s, m.p, LEN, RK_RW, RK_KEY)->fid));
	th_check(tables_kib() > kib);
	rk_mem_free(&m);
}

static void pair_open(struct th_stack *a, struct th_stack *b,
		      const struct th_stack_opts *o)
{
	setenv("FI_SHRIMP_MTT", "pages", 1);
	th_pair_open(a, b, o);
	check_that_it_counts(b);
}

/* ---- memory --------------------------------------------------------------- */

enum kind { PRIVATE, DEVICE, SEALED, KINDS };

/* Memory of any kind, of small pages, LEN bytes. */
struct memory {
	struct rk_mem m; /* PRIVATE, DEVICE */
	int fd;		 /* SEALED */
};

static struct memory memory_new(struct th_stack *s, enum kind kind)
{
	struct memory x = { .fd = -1 };

	if (kind != SEALED) {
		x.m = rk_mem_new(s, kind == DEVICE, LEN);
	} else {
		x.fd = memfd_create("mtt-pages", MFD_ALLOW_SEALING);
		th_check(x.fd >= 0);
		th_eq(ftruncate(x.fd, LEN), 0);
		th_eq(fcntl(x.fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
		x.m.p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED,
			     x.fd, 0);
		th_check(x.m.p != MAP_FAILED);
		x.m.len = LEN;
	}
	madvise(x.m.p, LEN, MADV_NOHUGEPAGE);
	return x;
}

static void memory_free(struct memory *x)
{
	rk_mem_free(&x->m);
	if (x->fd >= 0)
		close(x->fd);
}

static struct fid_mr *reg_pages(struct th_stack *s, struct memory *x)
{
	return rk_reg(s, x->m.p, LEN, RK_RW, RK_KEY);
}

/* ---- bytes ---------------------------------------------------------------- */

static void round_trip(struct th_stack *a, unsigned char *there, size_t off,
		       size_t len)
{
	struct th_buf b = th_buf_new(len);

	th_fill(b.p, len, len + off);
	th_ok(fi_write(a->ep, b.p, len, NULL, a->peers[1], off, RK_KEY, &b));
	rk_done(a, FI_WRITE, &b);
	th_verify(there + off, len, len + off);
	th_fill(there + off, len, len + off + 1);
	th_ok(fi_read(a->ep, b.p, len, NULL, a->peers[1], off, RK_KEY, &b));
	rk_done(a, FI_READ, &b);
	th_verify(b.p, len, len + off + 1);
	th_buf_free(&b);
}

/* Within a page, over the border of two, over all of them. */
static void bytes_of(enum kind kind)
{
	static const size_t lens[] = { 0,    1,	    8,	    4095,   4096,
				       4097, 12288, 100001, LEN / 2 };
	struct th_stack_opts o = rk_opts();
	struct th_stack a, b;
	struct memory x;
	struct fid_mr *mr;

	pair_open(&a, &b, &o);
	x = memory_new(&b, kind);
	mr = reg_pages(&b, &x);
	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		round_trip(&a, x.m.p, 0, lens[i]);
		round_trip(&a, x.m.p, 4 * RK_PAGE - 3, lens[i]);
		round_trip(&a, x.m.p, LEN - lens[i], lens[i]);
	}
	round_trip(&a, x.m.p, 0, LEN);
	th_ok(fi_close(&mr->fid));
	memory_free(&x);
	th_pair_close(&a, &b);
}

static void bytes_private(struct th_self *self)
{
	(void)self;
	bytes_of(PRIVATE);
}

static void bytes_device(struct th_self *self)
{
	(void)self;
	bytes_of(DEVICE);
}

static void bytes_sealed_file(struct th_self *self)
{
	(void)self;
	bytes_of(SEALED);
}

/* The owner executes it, piece by piece. */
static void bytes_without_cma(struct th_self *self)
{
	(void)self;
	setenv("FI_SHRIMP_CMA", "off", 1);
	bytes_of(PRIVATE);
}

/* Registered from inside a page to inside a page, and reached by address. */
static void any_start(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	unsigned char in[3 * RK_PAGE];
	struct th_stack a, b;
	struct memory x;
	struct fid_mr *mr;
	uint64_t at;

	(void)self;
	setenv("FI_SHRIMP_MR_MODE", "virt_addr", 1);
	o.mr_mode |= FI_MR_VIRT_ADDR;
	pair_open(&a, &b, &o);
	x = memory_new(&b, PRIVATE);
	mr = rk_reg(&b, x.m.p + 100, 3 * RK_PAGE, RK_RW, RK_KEY);
	at = (uintptr_t)x.m.p + 100;
	th_fill(in, sizeof(in), 5);
	th_ok(fi_write(a.ep, in, sizeof(in), NULL, a.peers[1], at, RK_KEY, in));
	rk_done(&a, FI_WRITE, in);
	th_verify(x.m.p + 100, sizeof(in), 5);
	th_verify_byte(x.m.p, 100, 0);
	th_verify_byte(x.m.p + 100 + sizeof(in), RK_PAGE, 0);
	/* the pages are there, the bytes are not in the region */
	th_ok(fi_read(a.ep, in, 2, NULL, a.peers[1], at - 1, RK_KEY, in));
	rk_refused(&a, FI_EINVAL, RK_KEY, at - 1, 2);
	at += sizeof(in) - 1;
	th_ok(fi_read(a.ep, in, 2, NULL, a.peers[1], at, RK_KEY, in));
	rk_refused(&a, FI_EINVAL, RK_KEY, at, 2);
	th_ok(fi_close(&mr->fid));
	memory_free(&x);
	th_pair_close(&a, &b);
}

/* Nothing moves of what is partly beyond the end, whatever the leaf. */
static void contract_I2_bounds(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack a, b;
	unsigned char in[2 * RK_PAGE];
	struct memory x;
	struct fid_mr *mr;

	(void)self;
	pair_open(&a, &b, &o);
	x = memory_new(&b, DEVICE);
	mr = reg_pages(&b, &x);
	memset(in, 1, sizeof(in));
	for (uint64_t at = LEN - RK_PAGE; at <= LEN; at += RK_PAGE / 2) {
		th_ok(fi_write(a.ep, in, sizeof(in), NULL, a.peers[1], at,
			       RK_KEY, in));
		rk_refused(&a, FI_EINVAL, RK_KEY, at, sizeof(in));
	}
	th_verify_byte(x.m.p, LEN, 0);
	th_ok(fi_close(&mr->fid));
	th_ok(fi_write(a.ep, in, 8, NULL, a.peers[1], 0, RK_KEY, in));
	rk_refused(&a, FI_EKEYREJECTED, RK_KEY, 0, 8);
	memory_free(&x);
	th_pair_close(&a, &b);
}

/* Several ranges under one key, each with tables of its own. */
static void contract_R8_many_leaves(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack a, b;
	struct memory x, y;
	struct iovec v[3];
	struct fid_mr *mr;
	struct th_buf in = th_buf_new(RK_PAGE * 9 + 200);

	(void)self;
	pair_open(&a, &b, &o);
	x = memory_new(&b, PRIVATE);
	y = memory_new(&b, DEVICE);
	v[0] = (struct iovec){ x.m.p + 10, 3 * RK_PAGE };
	v[1] = (struct iovec){ y.m.p, 5 * RK_PAGE + 100 };
	v[2] = (struct iovec){ x.m.p + 8 * RK_PAGE, RK_PAGE + 100 };
	th_ok(fi_mr_regv(b.domain, v, 3, RK_RW, 0, RK_KEY, 0, &mr, NULL));
	th_fill(in.p, in.len, 3);
	th_ok(fi_write(a.ep, in.p, in.len, NULL, a.peers[1], 0, RK_KEY, &in));
	rk_done(&a, FI_WRITE, &in);
	for (size_t i = 0, at = 0; i < 3; at += v[i++].iov_len)
		th_verify_at(v[i].iov_base, v[i].iov_len, 3, at);
	th_verify_byte(x.m.p + 10 + 3 * RK_PAGE, RK_PAGE, 0);
	th_ok(fi_write(a.ep, in.p, 2, NULL, a.peers[1], in.len - 1, RK_KEY,
		       &in));
	rk_refused(&a, FI_EINVAL, RK_KEY, in.len - 1, 2);
	th_ok(fi_close(&mr->fid));
	memory_free(&x);
	memory_free(&y);
	th_buf_free(&in);
	th_pair_close(&a, &b);
}

/* ---- elements ------------------------------------------------------------- */

/* Adds @size bytes of element at @off and looks at what the memory has. */
static void add_at(struct th_stack *a, unsigned char *there, uint64_t off)
{
	long double complex x = 2.5L + 7.0L * I, y = 0;
	uint64_t n = 40, m;

	memset(there + off, 0, sizeof(y));
	memcpy(there + off, &n, sizeof(n));
	n = 2;
	th_ok(fi_atomic(a->ep, &n, 1, NULL, a->peers[1], off, RK_KEY, FI_UINT64,
			FI_SUM, &n));
	th_eq(rk_end(a).err, 0);
	memcpy(&m, there + off, sizeof(m));
	th_eq(m, 42);
	memset(there + off, 0, sizeof(y));
	for (int i = 0; i < 2; i++) {
		th_ok(fi_atomic(a->ep, &x, 1, NULL, a->peers[1], off, RK_KEY,
				FI_LONG_DOUBLE_COMPLEX, FI_SUM, &x));
		th_eq(rk_end(a).err, 0);
	}
	memcpy(&y, there + off, sizeof(y));
	th_check(y == 2 * x);
}

/*
 * An element may lie across the border of two pages, which are two leaves:
 * memory is in one piece there, so it is done, as with one leaf.
 */
static void contract_P1_elements_over_two_leaves(struct th_self *self)
{
	struct th_stack_opts o = rk_atomic_opts();
	struct th_stack a, b;

	(void)self;
	pair_open(&a, &b, &o);
	for (enum kind kind = PRIVATE; kind < KINDS; kind++) {
		struct memory x = memory_new(&b, kind);
		struct fid_mr *mr = reg_pages(&b, &x);

		for (int k = 1; k < 32; k += 3) {
			add_at(&a, x.m.p, 3 * RK_PAGE - k);
			add_at(&a, x.m.p, 300 * RK_PAGE - k);
		}
		th_ok(fi_close(&mr->fid));
		memory_free(&x);
	}
	th_pair_close(&a, &b);
}

/* ---- life ----------------------------------------------------------------- */

/*
 * Regions of the same memory have tables of their own: one goes, its pages are
 * used for another, and whoever uses the first notices nothing.
 */
static void contract_R9_tables_are_own(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack a, b;
	struct memory x, y;
	struct fid_mr *keep, *mr;
	uint64_t kib = 0;

	(void)self;
	pair_open(&a, &b, &o);
	x = memory_new(&b, DEVICE);
	y = memory_new(&b, PRIVATE);
	keep = reg_pages(&b, &x);
	for (unsigned long i = 0; i < 10 + th_rounds(100); i++) {
		uint64_t at = i % 500 * RK_PAGE;

		mr = rk_reg(&b, i & 1 ? x.m.p : y.m.p, LEN, RK_RW, OTHER);
		round_trip(&a, x.m.p, at + 100, 2 * RK_PAGE);
		th_ok(fi_close(&mr->fid));
		round_trip(&a, x.m.p, LEN - at - 4 * RK_PAGE, 2 * RK_PAGE);
		if (i == 5)
			kib = tables_kib();
	}
	/* what was freed is used again: no table page gets lost */
	th_check(tables_kib() <= kib + 256);
	th_ok(fi_close(&keep->fid));
	memory_free(&x);
	memory_free(&y);
	th_pair_close(&a, &b);
}

/* No page that was cached is used after the close, whichever it is. */
static void contract_I1_closed(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack a, b;
	struct memory x;
	struct fid_mr *mr;
	unsigned char in[3 * RK_PAGE];

	(void)self;
	pair_open(&a, &b, &o);
	x = memory_new(&b, DEVICE);
	memset(in, 1, sizeof(in));
	for (unsigned long i = 0; i < 10 + th_rounds(100); i++) {
		uint64_t at = i % 500 * RK_PAGE;

		mr = rk_reg(&b, x.m.p, LEN, RK_RW, RK_KEY);
		th_ok(fi_write(a.ep, in, sizeof(in), NULL, a.peers[1], at,
			       RK_KEY, in));
		rk_done(&a, FI_WRITE, in);
		th_ok(fi_close(&mr->fid));
		memset(x.m.p + at, 0, sizeof(in));
		th_ok(fi_write(a.ep, in, sizeof(in), NULL, a.peers[1], at,
			       RK_KEY, in));
		rk_refused(&a, FI_EKEYREJECTED, RK_KEY, at, sizeof(in));
		th_verify_byte(x.m.p + at, sizeof(in), 0);
	}
	memory_free(&x);
	th_pair_close(&a, &b);
}

/* ---- huge pages, huge regions --------------------------------------------- */

/* 64 GiB of address space; of hugetlbfs if @flags say so, or NULL. */
static unsigned char *space_of(size_t len, int flags)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1,
		       0);

	return p == MAP_FAILED ? NULL : p;
}

/* What tables grow by for a region of all of it, KiB. */
static uint64_t cost_kib(struct th_stack *s, unsigned char *p, size_t len)
{
	uint64_t before = tables_kib(), cost;
	struct fid_mr *mr = rk_reg(s, p, len, RK_RW, RK_KEY);

	cost = tables_kib() - before;
	th_ok(fi_close(&mr->fid));
	return cost;
}

/* Pages are given to tables 16 at a time. */
static void contract_R13_cost_of_64_gib(struct th_self *self)
{
	const size_t len = (size_t)(th_sanitized() ? 4 : 64) << 30;
	const uint64_t spare = 17 * 4, small = (len >> 20) * 2;
	unsigned char *p = space_of(len, 0);
	struct th_stack a, b;

	(void)self;
	pair_open(&a, &b, &unallocated);
	if (p) {
		uint64_t kib = cost_kib(&b, p, len);

		th_check(kib + spare >= small &&
			 kib <= small + small / 512 + spare);
		munmap(p, len);
	}
	p = space_of(len, MAP_HUGETLB | 30 << MAP_HUGE_SHIFT);
	if (p) {
		th_check(cost_kib(&b, p, len) <= spare);
		munmap(p, len);
	}
	th_pair_close(&a, &b);
}

/* Not of the whole address space, and not more than three levels have. */
static void limits(struct th_self *self)
{
	const size_t len = (size_t)600 << 30;
	struct th_stack a, b;
	struct fid_mr *mr = NULL;
	unsigned char *p;
	uint64_t kib;

	(void)self;
	pair_open(&a, &b, &unallocated);
	p = space_of(len, 0);
	kib = tables_kib();
	mr = rk_reg(&b, NULL, SIZE_MAX, RK_RW, RK_KEY);
	th_eq(tables_kib(), kib);
	th_ok(fi_close(&mr->fid));
	if (p)
		th_eq(fi_mr_reg(b.domain, p, len, RK_RW, 0, RK_KEY, 0, &mr, 0),
		      -EFBIG);
	th_eq(tables_kib(), kib);
	th_pair_close(&a, &b);
}

/* Bytes of huge pages: of either kind, a leaf each. */
static void huge_bytes(struct th_stack *a, struct th_stack *b, unsigned char *p)
{
	struct fid_mr *mr;
	uint64_t kib = tables_kib();

	mr = rk_reg(b, p + RK_PAGE, 2 * HUGE_2M, RK_RW, RK_KEY);
	th_check(tables_kib() <= kib + 17 * 4);
	round_trip(a, p + RK_PAGE, 0, 2 * HUGE_2M);
	round_trip(a, p + RK_PAGE, HUGE_2M - 5000, 3000);
	th_ok(fi_close(&mr->fid));
}

static void huge_pages_thp(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	unsigned char *p = space_of(4 * HUGE_2M, 0);
	struct th_stack a, b;

	(void)self;
	th_check(p != NULL);
	pair_open(&a, &b, &o);
	p += HUGE_2M - (uintptr_t)p % HUGE_2M;
	if (madvise(p, 3 * HUGE_2M, MADV_HUGEPAGE))
		th_skip(self, "no huge pages in this kernel");
	memset(p, 0, 3 * HUGE_2M);
	huge_bytes(&a, &b, p);
	th_pair_close(&a, &b);
}

/* True if the kernel gives huge pages to all shared memory. */
static bool shared_is_huge(void)
{
	FILE *f =
		fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "r");
	char line[128] = "";

	if (f && !fgets(line, sizeof(line), f))
		line[0] = '\0';
	if (f)
		fclose(f);
	return strstr(line, "[always]");
}

/* Memory of the device: by its own backing, touched before or not. */
static void huge_pages_device(struct th_self *self)
{
	const size_t len = (size_t)48 * HUGE_2M;
	struct th_stack_opts o = rk_opts();
	struct th_stack a, b;
	struct rk_mem m;

	if (!shared_is_huge())
		th_skip(self, "transparent_hugepage/shmem_enabled is not "
			      "\"always\"");
	setenv("FI_SHRIMP_PIN", "off", 1);
	pair_open(&a, &b, &o);
	m = rk_mem_new(&b, true, len);
	/* 48 tables, if it were small pages; 16 are taken at a time */
	th_check(cost_kib(&b, m.p, len) <= 17 * 4);
	huge_bytes(&a, &b, m.p);
	rk_mem_free(&m);
	th_pair_close(&a, &b);
}

static void huge_pages_hugetlb(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack a, b;
	/* not MAP_NORESERVE: the pages are there, or it fails */
	unsigned char *p = mmap(NULL, 3 * HUGE_2M, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
					21 << MAP_HUGE_SHIFT,
				-1, 0);

	if (p == MAP_FAILED)
		th_skip(self, "no free pages in /proc/sys/vm/nr_hugepages");
	pair_open(&a, &b, &o);
	huge_bytes(&a, &b, p);
	munmap(p, 3 * HUGE_2M);
	th_pair_close(&a, &b);
}

static const struct CMUnitTest tests[] = {
	TH_CASE(bytes_private, 1, 30),
	TH_CASE(bytes_device, 1, 30),
	TH_CASE(bytes_sealed_file, 1, 30),
	TH_CASE(bytes_without_cma, 1, 30),
	TH_CASE(any_start, 1, 20),
	TH_CASE(contract_I2_bounds, 1, 20),
	TH_CASE(contract_R8_many_leaves, 1, 20),
	TH_CASE(contract_P1_elements_over_two_leaves, 1, 30),
	TH_CASE(contract_R9_tables_are_own, 1, 30),
	TH_CASE(contract_I1_closed, 1, 30),
	TH_CASE(contract_R13_cost_of_64_gib, 1, 60),
	TH_CASE(limits, 1, 20),
	TH_CASE(huge_pages_thp, 1, 20),
	TH_CASE(huge_pages_device, 1, 20),
	TH_CASE(huge_pages_hugetlb, 1, 20),
};

TH_MAIN(tests)
