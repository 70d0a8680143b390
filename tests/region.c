/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Registration: what is refused at the call, what a key is, and that nothing
 * is left of what failed. What peers do with keys is in rma.c.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <stdio.h>

#include <sys/mman.h>
#include <unistd.h>

#include "quiet_map.h"
#include "rdma/fi_ext_shrimp.h"

enum { PAGE = 4096, LEN = 4 * PAGE };

#define ALL_ACCESS                                                             \
	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |             \
	 FI_REMOTE_WRITE)

static const struct th_stack_opts allocated = { .mr_mode = FI_MR_ALLOCATED };
/* Offered, but not demanded by us: nothing is. */
static const struct th_stack_opts unallocated = { .mr_mode = FI_MR_VIRT_ADDR };
static const struct th_stack_opts hardware = { .mr_mode = FI_MR_ALLOCATED |
							  FI_MR_PROV_KEY };

static int reg(struct th_stack *s, void *p, size_t len, uint64_t key,
	       struct fid_mr **mr)
{
	return fi_mr_reg(s->domain, p, len, ALL_ACCESS, 0, key, 0, mr, s);
}

static unsigned char *pages(size_t len, int prot)
{
	void *p = quiet_map(len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	th_check(p != MAP_FAILED);
	return p;
}

/* ---- R1 ----------------------------------------------------------------- */

static void contract_R1_arguments(struct th_self *self)
{
	struct iovec iov[17], one = { .iov_len = LEN };
	struct fid_mr *mr = NULL;
	struct th_stack s;
	unsigned char *p = pages(LEN, PROT_READ | PROT_WRITE);

	(void)self;
	th_stack_open(&s, &allocated);
	one.iov_base = p;
	for (int i = 0; i < 17; i++)
		iov[i] = one;
	th_eq(reg(&s, p, 0, 1, &mr), -FI_EINVAL);
	th_eq(reg(&s, p, SIZE_MAX, 1, &mr), -FI_EINVAL);
	th_eq(reg(&s, (void *)(UINTPTR_MAX - 10), 12, 1, &mr), -FI_EINVAL);
	th_eq(fi_mr_reg(s.domain, p, LEN, UINT64_C(1) << 60, 0, 1, 0, &mr, 0),
	      -FI_EINVAL);
	th_eq(fi_mr_reg(s.domain, p, LEN, FI_SEND, 0, 1, UINT64_C(1) << 61, &mr,
			0),
	      -FI_EINVAL);
	th_eq(fi_mr_reg(s.domain, p, LEN, FI_SEND, 8, 1, 0, &mr, 0),
	      -FI_EINVAL);
	th_eq(fi_mr_regv(s.domain, iov, 17, FI_SEND, 0, 1, 0, &mr, 0),
	      -FI_EINVAL);
	th_eq(fi_mr_regv(s.domain, iov, 0, FI_SEND, 0, 1, 0, &mr, 0),
	      -FI_EINVAL);
	th_eq(fi_mr_regv(s.domain, NULL, 1, FI_SEND, 0, 1, 0, &mr, 0),
	      -FI_EINVAL);
	th_ptr_eq(mr, NULL);
	/* none of it has used up the key */
	th_ok(fi_mr_regv(s.domain, iov, 16, FI_SEND, 0, 1, 0, &mr, 0));
	th_ok(fi_close(&mr->fid));
	th_stack_close(&s);
	munmap(p, LEN);
}

/* Memory that is not there, or does not allow what is asked for. */
static void contract_R1_mapping(struct th_self *self)
{
	unsigned char *p = pages(LEN, PROT_READ | PROT_WRITE);
	struct fid_mr *mr = NULL;
	struct th_stack s;

	(void)self;
	th_stack_open(&s, &allocated);
	th_eq(munmap(p + 2 * PAGE, PAGE), 0);
	th_eq(reg(&s, p, LEN, 1, &mr), -FI_EFAULT);
	th_eq(reg(&s, p + PAGE, PAGE + 1, 1, &mr), -FI_EFAULT);
	th_ok(reg(&s, p, 2 * PAGE, 1, &mr));
	th_ok(fi_close(&mr->fid));
	th_stack_close(&s);
}

/* What mprotect(2) took away is seen where nothing is cached. */
static void contract_R1_protection(struct th_self *self)
{
	unsigned char *p = pages(LEN, PROT_READ | PROT_WRITE);
	struct fid_mr *mr = NULL;
	struct th_stack s;

	(void)self;
	setenv("FI_SHRIMP_MR_CACHE", "off", 1);
	th_stack_open(&s, &allocated);
	th_ok(reg(&s, p, 2 * PAGE, 1, &mr));
	th_ok(fi_close(&mr->fid));
	th_eq(mprotect(p, PAGE, PROT_READ), 0);
	th_eq(fi_mr_reg(s.domain, p, PAGE, FI_REMOTE_WRITE, 0, 1, 0, &mr, 0),
	      -FI_EFAULT);
	th_ok(fi_mr_reg(s.domain, p, PAGE, FI_REMOTE_READ, 0, 1, 0, &mr, 0));
	th_ok(fi_close(&mr->fid));
	th_stack_close(&s);
	munmap(p, LEN);
}

/* Without FI_MR_ALLOCATED it is looked at when it is used. */
static void contract_R1_unallocated(struct th_self *self)
{
	unsigned char *p = pages(LEN, PROT_READ | PROT_WRITE);
	struct fid_mr *mr;
	struct th_stack s;

	(void)self;
	th_stack_open(&s, &unallocated);
	th_eq(s.info->domain_attr->mr_mode, 0);
	th_eq(munmap(p, LEN), 0);
	th_ok(reg(&s, p, LEN, 1, &mr));
	th_ok(fi_close(&mr->fid));
	/* the whole address space, as some clients do */
	th_ok(reg(&s, NULL, SIZE_MAX, 1, &mr));
	th_ok(fi_close(&mr->fid));
	th_stack_close(&s);
}

/*
 * Each of the ranges is one that can be, all of them together are not: a sum
 * that wraps would make a short region of them.
 */
static void contract_R8_lengths_do_not_wrap(struct th_self *self)
{
	struct iovec iov[] = { { (void *)(uintptr_t)PAGE, SIZE_MAX - LEN },
			       { (void *)(uintptr_t)PAGE, 2 * LEN } };
	struct fid_mr *mr = NULL;
	struct th_stack s;

	(void)self;
	th_stack_open(&s, &unallocated);
	th_eq(fi_mr_regv(s.domain, iov, 2, FI_SEND, 0, 1, 0, &mr, 0),
	      -FI_EINVAL);
	th_ptr_eq(mr, NULL);
	iov[0].iov_len = LEN;
	th_ok(fi_mr_regv(s.domain, iov, 2, FI_SEND, 0, 1, 0, &mr, 0));
	th_ok(fi_close(&mr->fid));
	th_stack_close(&s);
}

/* ---- keys --------------------------------------------------------------- */

static void user_keys(struct th_self *self)
{
	static const uint64_t keys[] = { 0,
					 1,
					 UINT64_MAX,
					 UINT64_MAX - 1,
					 UINT64_C(0x8000000000000000),
					 0x7f0012345678 };
	enum { N = sizeof(keys) / sizeof(*keys) };
	unsigned char *p = pages(LEN, PROT_READ | PROT_WRITE);
	struct fid_mr *mr[N], *dup = NULL;
	struct th_stack s;

	(void)self;
	th_stack_open(&s, &allocated);
	for (int i = 0; i < N; i++) {
		th_ok(reg(&s, p, LEN, keys[i], &mr[i]));
		th_eq(fi_mr_key(mr[i]), keys[i]);
		th_ptr_eq(mr[i]->fid.context, &s);
		th_eq(mr[i]->fid.fclass, FI_CLASS_MR);
		th_check(fi_mr_desc(mr[i]) != NULL);
	}
	for (int i = 0; i < N; i++)
		th_eq(reg(&s, p, LEN, keys[i], &dup), -FI_ENOKEY);
	/* a closed one may be used again, the others not */
	th_ok(fi_close(&mr[2]->fid));
	th_ok(reg(&s, p, LEN, keys[2], &mr[2]));
	th_eq(reg(&s, p, LEN, keys[2], &dup), -FI_ENOKEY);
	th_ptr_eq(dup, NULL);
	for (int i = 0; i < N; i++)
		th_ok(fi_close(&mr[i]->fid));
	th_stack_close(&s);
	munmap(p, LEN);
}

/* Keys of the device do not come back. */
static void contract_I4_keys_are_new(struct th_self *self)
{
	enum { N = 20000 };
	unsigned char *p = pages(LEN, PROT_READ | PROT_WRITE);
	uint64_t *seen = calloc(N, sizeof(*seen));
	struct fid_mr *mr;
	struct th_stack s;
	size_t n = th_rounds(N);

	(void)self;
	setenv("FI_SHRIMP_MR_MODE", "prov_key", 1);
	setenv("FI_SHRIMP_PIN", "off", 1);
	th_check(seen != NULL);
	th_stack_open(&s, &hardware);
	th_eq(s.info->domain_attr->mr_mode, FI_MR_ALLOCATED | FI_MR_PROV_KEY);
	for (size_t i = 0; i < n && i < N; i++) {
		th_ok(reg(&s, p, LEN, 5, &mr));
		seen[i] = fi_mr_key(mr);
		for (size_t k = i > 300 ? i - 300 : 0; k < i; k++)
			th_check(seen[k] != seen[i]);
		th_ok(fi_close(&mr->fid));
	}
	th_stack_close(&s);
	free(seen);
	munmap(p, LEN);
}

static void bad_mr_mode(struct th_self *self)
{
	struct fi_info *info = NULL, *h;
	struct fid_fabric *f;

	(void)self;
	setenv("FI_SHRIMP_MR_MODE", "prov_key,nonsense", 1);
	h = th_hints(NULL);
	if (!fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &info))
		th_check(fi_fabric(info->fabric_attr, &f, NULL) < 0);
	fi_freeinfo(info);
	fi_freeinfo(h);
}

/* ---- R4, R9: overlap, pins ---------------------------------------------- */

static size_t locked_kib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	size_t n = 0;

	th_check(f != NULL);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmLck: %zu", &n) == 1)
			break;
	fclose(f);
	return n;
}

/* Pins nest; a failure leaves none. */
static void contract_R4_pins_are_counted(struct th_self *self)
{
	unsigned char *p = pages(LEN, PROT_READ | PROT_WRITE);
	size_t before = locked_kib();
	struct fid_mr *a, *b, *c = NULL;
	struct th_stack s;

	(void)self;
	th_stack_open(&s, &allocated);
	th_ok(reg(&s, p, 3 * PAGE, 1, &a));
	if (locked_kib() != before + 12)
		th_skip(self, "memory cannot be locked here");
	th_ok(reg(&s, p + PAGE, 3 * PAGE, 2, &b));
	th_eq(locked_kib(), before + 16);
	th_eq(reg(&s, p, LEN, 2, &c), -FI_ENOKEY);
	th_eq(locked_kib(), before + 16);
	th_ok(fi_close(&a->fid));
	th_eq(locked_kib(), before + 12);
	th_ok(fi_close(&b->fid));
	th_eq(locked_kib(), before);
	th_stack_close(&s);
	munmap(p, LEN);
}

static void contract_R4_pin_off(struct th_self *self)
{
	unsigned char *p = pages(LEN, PROT_READ | PROT_WRITE);
	size_t before = locked_kib();
	struct fid_mr *mr;
	struct th_stack s;

	(void)self;
	setenv("FI_SHRIMP_PIN", "off", 1);
	th_stack_open(&s, &allocated);
	th_ok(reg(&s, p, LEN, 1, &mr));
	th_eq(locked_kib(), before);
	th_ok(fi_close(&mr->fid));
	th_stack_close(&s);
	munmap(p, LEN);
}

/* ---- life ---------------------------------------------------------------- */

static void domain_waits_for_its_regions(struct th_self *self)
{
	unsigned char *p = pages(LEN, PROT_READ | PROT_WRITE);
	struct fid_mr *mr;
	struct th_stack s, t;

	(void)self;
	th_stack_open(&s, &allocated);
	th_ok(reg(&s, p, LEN, 1, &mr));
	t = s;
	th_eq(fi_close(&t.domain->fid), -FI_EBUSY);
	th_ok(fi_close(&mr->fid));
	th_stack_close(&s);
	munmap(p, LEN);
}

/* FI_MR_ENDPOINT: a key once bound and enabled, not before. */
static void endpoint_regions(struct th_self *self)
{
	struct th_stack_opts o = { .mr_mode =
					   FI_MR_ALLOCATED | FI_MR_ENDPOINT };
	unsigned char *p = pages(LEN, PROT_READ | PROT_WRITE);
	struct fid_mr *mr;
	struct th_stack s;

	(void)self;
	setenv("FI_SHRIMP_MR_MODE", "endpoint", 1);
	th_stack_open(&s, &o);
	th_eq(s.info->domain_attr->mr_mode, o.mr_mode);
	th_ok(reg(&s, p, LEN, 1, &mr));
	th_eq(fi_mr_enable(mr), -FI_EINVAL);
	th_eq(fi_mr_bind(mr, &s.av->fid, 0), -FI_EINVAL);
	th_ok(fi_mr_bind(mr, &s.ep->fid, 0));
	th_eq(fi_mr_bind(mr, &s.ep->fid, 0), -FI_EINVAL);
	th_ok(fi_mr_enable(mr));
	th_eq(fi_mr_key(mr), 1);
	th_ok(fi_close(&mr->fid));
	th_stack_close(&s);
	munmap(p, LEN);
}

/* ---- memory of the device ------------------------------------------------ */

static void device_memory(struct th_self *self)
{
	struct fi_ops_shrimp_mem *mem;
	struct th_stack s;
	void *p = NULL, *q = NULL;

	(void)self;
	th_stack_open(&s, NULL);
	th_ok(fi_open_ops(&s.domain->fid, FI_SHRIMP_OPS_MEM, 0, (void **)&mem,
			  NULL));
	th_ok(mem->alloc(&s.domain->fid, 10000, 0, &p));
	th_ok(mem->alloc(&s.domain->fid, 1, 1 << 16, &q));
	th_verify_byte(p, 10000, 0);
	th_eq((uintptr_t)p % PAGE, 0);
	th_eq((uintptr_t)q % (1 << 16), 0);
	memset(p, 1, 10000);
	th_check(mem->alloc(&s.domain->fid, 0, 0, &q) < 0);
	th_check(mem->alloc(&s.domain->fid, 1, 3, &q) < 0);
	th_check(mem->alloc(&s.ep->fid, 1, 0, &q) < 0);
	th_eq(mem->free(&s.domain->fid, &s), -FI_EINVAL);
	th_ok(mem->free(&s.domain->fid, p));
	th_eq(mem->free(&s.domain->fid, p), -FI_EINVAL);
	th_stack_close(&s);
}

/* Where registered pages lie, as the kernel says. */
static void contract_N1_region_nodes(struct th_self *self)
{
	unsigned char *p = pages(LEN, PROT_READ | PROT_WRITE);
	struct iovec iov[2] = { { p + 100, PAGE }, { p + 2 * PAGE, PAGE } };
	struct fi_ops_shrimp_mem *mem;
	struct fid_mr *mr, *dev, *two;
	struct th_stack s;
	int node[8];
	void *q;

	(void)self;
	th_stack_open(&s, &allocated);
	th_ok(fi_open_ops(&s.domain->fid, FI_SHRIMP_OPS_MEM, 0, (void **)&mem,
			  NULL));
	th_check(mem->size >= sizeof(*mem));
	th_ok(mem->alloc(&s.domain->fid, LEN, 0, &q));
	memset(p, 1, LEN);
	th_ok(reg(&s, p, LEN, 1, &mr));
	th_ok(reg(&s, q, LEN, 2, &dev));
	th_ok(fi_mr_regv(s.domain, iov, 2, FI_REMOTE_READ, 0, 3, 0, &two, 0));
	if (mem->nodes(mr, 0, 1, node, 1) == -FI_ENOSYS)
		th_skip(self, "no libnuma, or a kernel without NUMA");
	memset(node, -1, sizeof(node));
	th_eq(mem->nodes(mr, 0, LEN, node, 3), LEN / PAGE);
	th_check(node[0] >= 0 && node[2] >= 0);
	th_eq(node[3], -1);
	/* of the device: there, also when nobody has touched it */
	th_eq(mem->nodes(dev, PAGE - 1, 2, node, 8), 2);
	th_check(node[0] >= 0 && node[1] >= 0);
	/* the second of two ranges */
	th_eq(mem->nodes(two, PAGE + 5, PAGE - 5, node, 8), 1);
	th_eq(mem->nodes(two, 0, PAGE, node, 8), 2);
	th_eq(mem->nodes(two, PAGE - 1, 2, node, 8), -FI_EINVAL);
	th_eq(mem->nodes(mr, LEN, 1, node, 8), -FI_EINVAL);
	th_eq(mem->nodes(mr, 1, SIZE_MAX, node, 8), -FI_EINVAL);
	th_eq(mem->nodes(mr, 0, 0, node, 8), -FI_EINVAL);
	th_eq(mem->nodes(mr, 0, 1, NULL, 1), -FI_EINVAL);
	th_eq(mem->nodes((struct fid_mr *)s.domain, 0, 1, node, 8), -FI_EINVAL);
	/* registered, then gone below the key */
	th_eq(munmap(p + PAGE, PAGE), 0);
	th_eq(mem->nodes(mr, 0, LEN, node, 8), LEN / PAGE);
	th_eq(node[1], -FI_EFAULT);
	th_ok(fi_close(&mr->fid));
	th_ok(fi_close(&dev->fid));
	th_ok(fi_close(&two->fid));
	th_ok(mem->free(&s.domain->fid, q));
	th_stack_close(&s);
	munmap(p, LEN);
}

static const struct CMUnitTest tests[] = {
	TH_CASE(contract_R1_arguments, 1, 20),
	TH_CASE(contract_R1_mapping, 1, 20),
	TH_CASE(contract_R1_protection, 1, 20),
	TH_CASE(contract_R1_unallocated, 1, 20),
	TH_CASE(contract_R8_lengths_do_not_wrap, 1, 20),
	TH_CASE(user_keys, 1, 20),
	TH_CASE(contract_I4_keys_are_new, 1, 60),
	TH_CASE(bad_mr_mode, 1, 20),
	TH_CASE(contract_R4_pins_are_counted, 1, 20),
	TH_CASE(contract_R4_pin_off, 1, 20),
	TH_CASE(domain_waits_for_its_regions, 1, 20),
	TH_CASE(endpoint_regions, 1, 20),
	TH_CASE(device_memory, 1, 20),
	TH_CASE(contract_N1_region_nodes, 1, 20),
};

TH_MAIN(tests)
