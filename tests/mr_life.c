/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The life of a registration beyond fi_mr_reg() and fi_close(): batches,
 * refresh, raw keys, queries. Closes that do not wait are in mr_async.c.
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env_probe.h"

enum { LEN = 8 * RK_PAGE }; /* bytes of a region */

/* What the processes of a test see. */
struct shared {
	_Atomic bool over;     /* time is up */
	_Atomic uint64_t good; /* operations that succeeded */
	_Atomic uint64_t bad;  /* and that did not */
};

static struct shared *shared;

/* Both kinds of end have been seen. */
static bool enough(void)
{
	return atomic_load(&shared->good) > 20 && atomic_load(&shared->bad);
}

/* ---- R10 --------------------------------------------------------------------- */

enum { BATCH = 300, FIRST = 1000, SHARE = RK_PAGE };

/* Attributes of a batch. */
struct batch {
	struct fi_mr_attr attr[BATCH]; /* of each */
	struct iovec iov[BATCH][2];    /* its ranges */
	struct fid_mr *mr[BATCH];      /* what came of it */
};

/*
 * Neighbours, some in one page, some far from each other, some of two ranges,
 * of private memory @p; keys from @key on.
 */
static struct batch *batch_new(unsigned char *p, uint64_t key)
{
	struct batch *b = calloc(1, sizeof(*b));

	th_check(b);
	for (int i = 0; i < BATCH; i++) {
		struct fi_mr_attr *a = &b->attr[i];
		unsigned char *at = p + i * 2 * SHARE;

		if (i < BATCH / 3)
			at = p + i * SHARE;
		b->iov[i][0] = (struct iovec){ at, SHARE };
		if (i % 50 == 49)
			b->iov[i][0].iov_len = 100;
		b->iov[i][1] = (struct iovec){ at + SHARE - 5, 5 };
		a->mr_iov = b->iov[i];
		a->iov_count = i % 7 == 6 ? 2 : 1;
		a->access = i % 5 ? RK_RW : RK_ALL;
		a->requested_key = key + (uint64_t)i;
		a->context = &b->mr[i];
	}
	return b;
}

static void batch_close(struct batch *b)
{
	for (int i = 0; i < BATCH; i++)
		th_ok(fi_close(&b->mr[i]->fid));
	free(b);
}

static void contract_R10_all_live(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	unsigned char *p = rk_pages(2 * BATCH * SHARE);
	struct fi_ops_shrimp_mr *ops;
	size_t one_by_one;
	struct th_stack a, b;
	struct batch *t = batch_new(p, FIRST);

	(void)self;
	th_pair_open(&a, &b, &o);
	ops = rk_mr_ops(&b);
	for (int i = 0; i < BATCH; i++)
		th_ok(fi_mr_regattr(b.domain, &t->attr[i], 0, &t->mr[i]));
	one_by_one = rk_locked();
	batch_close(t);
	th_eq(rk_locked(), 0);
	t = batch_new(p, FIRST);
	th_ok(ops->reg_batch(&b.domain->fid, t->attr, BATCH, 0, t->mr));
	th_eq(rk_locked(), one_by_one);
	for (int i = 0; i < BATCH; i++) {
		unsigned char *at = t->iov[i][0].iov_base;

		th_eq(fi_mr_key(t->mr[i]), FIRST + i);
		th_ptr_eq(t->mr[i]->fid.context, &t->mr[i]);
		th_eq(rk_write_at(&a, FIRST + (uint64_t)i, 3, 20, 7), 0);
		th_verify_byte(at, 3, 0);
		th_verify_byte(at + 3, 20, 7);
	}
	batch_close(t);
	th_eq(rk_locked(), 0);
	/* the same again, in another order */
	t = batch_new(p, FIRST);
	th_ok(ops->reg_batch(&b.domain->fid, t->attr, BATCH, 0, t->mr));
	for (int i = 0; i < BATCH; i++)
		th_ok(fi_close(&t->mr[i * 7 % BATCH]->fid));
	th_eq(rk_locked(), 0);
	free(t);
	munmap(p, 2 * BATCH * SHARE);
	th_pair_close(&a, &b);
}

/* A call for the first @n that fails with @err, and leaves nothing. */
static void fails(struct fi_ops_shrimp_mr *ops, struct th_stack *s,
		  struct batch *t, size_t n, int err)
{
	struct fid_mr *was = (struct fid_mr *)t;
	size_t locked = rk_locked();

	for (int i = 0; i < BATCH; i++)
		t->mr[i] = was;
	th_eq(ops->reg_batch(&s->domain->fid, t->attr, n, 0, t->mr), err);
	for (int i = 0; i < BATCH; i++)
		th_ptr_eq(t->mr[i], was);
	th_eq(rk_locked(), locked);
}

/* All that can be wrong with one of them. */
static void fail_all(struct fi_ops_shrimp_mr *ops, struct th_stack *s,
		     struct batch *t)
{
	unsigned char *in_a_row = t->iov[50][0].iov_base;
	struct fi_mr_attr *last = &t->attr[BATCH - 1];

	fails(ops, s, t, 0, -FI_EINVAL);
	t->attr[250].iov_count = 0;
	fails(ops, s, t, BATCH, -FI_EINVAL);
	t->attr[250].iov_count = 1;
	last->requested_key = 5;
	fails(ops, s, t, BATCH, -FI_ENOKEY);
	last->requested_key = FIRST + 1;
	fails(ops, s, t, BATCH, -FI_ENOKEY);
	last->requested_key = FIRST + BATCH - 1;
	th_eq(mprotect(in_a_row, SHARE, PROT_NONE), 0);
	fails(ops, s, t, BATCH, -FI_EFAULT);
	th_eq(mprotect(in_a_row, SHARE, PROT_READ | PROT_WRITE), 0);
}

static void contract_R10_nothing_left(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	unsigned char *p = rk_pages(2 * BATCH * SHARE);
	struct batch *t = batch_new(p, FIRST);
	struct fi_ops_shrimp_mr *ops;
	struct th_stack a, b;
	struct fid_mr *taken;
	uint64_t kib = 0;

	(void)self;
	th_pair_open(&a, &b, &o);
	ops = rk_mr_ops(&b);
	taken = rk_reg(&b, p, 8, RK_RW, 5);
	th_eq(ops->reg_batch(&b.ep->fid, t->attr, 1, 0, t->mr), -FI_EINVAL);
	for (unsigned long i = 0; i < th_rounds(100); i++) {
		if (i == 20)
			kib = probe_segment_kib("shrimp-tables");
		fail_all(ops, &b, t);
		th_eq(rk_write_at(&a, FIRST, 0, 1, 1), FI_EKEYREJECTED);
	}
	if (kib)
		th_check(probe_segment_kib("shrimp-tables") <= kib + 128);
	th_ok(ops->reg_batch(&b.domain->fid, t->attr, BATCH, 0, t->mr));
	th_eq(rk_write_at(&a, FIRST, 0, 1, 1), 0);
	batch_close(t);
	th_ok(fi_close(&taken->fid));
	th_eq(rk_locked(), 0);
	munmap(p, 2 * BATCH * SHARE);
	th_pair_close(&a, &b);
}

/* Rank 0: batches that fail, keys FIRST on, and some that do not. */
static void r10_owner(struct th_stack *s)
{
	unsigned char *p = rk_pages(2 * BATCH * SHARE);
	uint64_t end = th_now_ns() + UINT64_C(1000000) * rk_ms(1);
	struct th_deadline patience = th_patience();
	struct batch *bad = batch_new(p, FIRST), *good;
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(s);

	bad->attr[BATCH - 1].requested_key = FIRST;
	while (th_now_ns() < end || (!enough() && !th_expired(&patience))) {
		fails(ops, s, bad, BATCH, -FI_ENOKEY);
		good = batch_new(p, 2 * FIRST);
		th_ok(ops->reg_batch(&s->domain->fid, good->attr, BATCH, 0,
				     good->mr));
		sched_yield();
		batch_close(good);
	}
	atomic_store(&shared->over, true);
	free(bad);
	munmap(p, 2 * BATCH * SHARE);
}

/* Rank 1: keys of the first kind are never there, of the others sometimes. */
static void r10_reader(struct th_stack *s)
{
	uint64_t state = 9;

	while (!atomic_load(&shared->over)) {
		uint64_t r = th_random(&state);
		uint64_t key = (r & 1 ? FIRST : 2 * FIRST) + (r >> 8) % 200;
		unsigned char buf[8];
		struct rk_outcome e;

		th_ok(fi_read(s->ep, buf, 8, NULL, s->peers[0], 0, key, buf));
		e = rk_end(s);
		th_check(!e.err || e.err == FI_EKEYREJECTED);
		if (e.err && key >= 2 * FIRST)
			atomic_fetch_add(&shared->bad, 1);
		if (!e.err)
			atomic_fetch_add(&shared->good, 1);
		th_check(e.err || key >= 2 * FIRST);
	}
}

static void contract_R10_never_seen(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack s;

	setenv("FI_SHRIMP_PIN", "off", 1);
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	if (self->rank)
		r10_reader(&s);
	else
		r10_owner(&s);
	th_barrier_progress(self, &s, "end");
	if (!self->rank)
		*shared = (struct shared){ .over = false };
	th_stack_close(&s);
}

/* ---- R10, R11: on demand ------------------------------------------------------- */

/* One range each; what is not mapped is found out at its touch. */
static struct batch *demand_new(unsigned char *p)
{
	struct batch *t = batch_new(p, FIRST);

	for (int i = 0; i < BATCH; i++)
		t->attr[i].iov_count = 1;
	return t;
}

/* A batch that fails, for whichever reason, leaves nothing. */
static void demand_fails(struct fi_ops_shrimp_mr *ops, struct th_stack *s,
			 struct batch *t)
{
	struct fid_domain *d = s->domain;

	t->attr[9].iov_count = 2;
	th_eq(ops->reg_batch(&d->fid, t->attr, BATCH, FI_SHRIMP_ON_DEMAND,
			     t->mr),
	      -FI_EINVAL);
	t->attr[9].iov_count = 1;
	t->attr[BATCH - 1].requested_key = FIRST;
	th_eq(ops->reg_batch(&d->fid, t->attr, BATCH, FI_SHRIMP_ON_DEMAND,
			     t->mr),
	      -FI_ENOKEY);
	t->attr[BATCH - 1].requested_key = FIRST + BATCH - 1;
}

static void contract_R10_on_demand(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	unsigned char *p = rk_pages(2 * BATCH * SHARE);
	struct batch *t = demand_new(p);
	struct fi_shrimp_mr_info f = { .size = sizeof(f) };
	struct fi_ops_shrimp_mr *ops;
	struct th_stack a, b;
	uint64_t kib = 0;
	size_t locked;

	(void)self;
	th_pair_open(&a, &b, &o);
	ops = rk_mr_ops(&b);
	/* starts the monitor, whose memory is locked */
	demand_fails(ops, &b, t);
	locked = rk_locked();
	for (unsigned long i = 0; i < th_rounds(50); i++) {
		if (i == 20)
			kib = probe_segment_kib("shrimp-tables");
		demand_fails(ops, &b, t);
		th_eq(rk_write_at(&a, FIRST, 0, 1, 1), FI_EKEYREJECTED);
	}
	if (kib)
		th_check(probe_segment_kib("shrimp-tables") <= kib + 128);
	th_ok(ops->reg_batch(&b.domain->fid, t->attr, BATCH,
			     FI_SHRIMP_ON_DEMAND, t->mr));
	th_eq(rk_locked(), locked);
	for (int i = 0; i < BATCH; i++) {
		th_eq(fi_mr_key(t->mr[i]), FIRST + i);
		th_eq(rk_write_at(&a, FIRST + (uint64_t)i, 3, 20, 7), 0);
		th_verify_byte((unsigned char *)t->iov[i][0].iov_base + 3, 20,
			       7);
		th_ok(ops->query(t->mr[i], &f, NULL, NULL));
		th_check(f.flags & FI_SHRIMP_MR_ON_DEMAND);
		th_eq(f.faults, 1);
	}
	batch_close(t);
	th_eq(rk_locked(), locked);
	munmap(p, 2 * BATCH * SHARE);
	th_pair_close(&a, &b);
}

/* ---- I5: refresh ---------------------------------------------------------------- */

enum { FILE_LEN = 256 << 10 };

/* Pages of two files in turn below one key; the old ones are ours at once. */
static void i5_owner(struct th_stack *s)
{
	int fd[2] = { rk_file_new(FILE_LEN), rk_file_new(FILE_LEN) };
	unsigned char *also[2] = { rk_file_map(fd[0], FILE_LEN, NULL),
				   rk_file_map(fd[1], FILE_LEN, NULL) };
	unsigned char *p = rk_file_map(fd[0], FILE_LEN, NULL);
	uint64_t end = th_now_ns() + UINT64_C(1000000) * rk_ms(1);
	struct th_deadline patience = th_patience();
	struct iovec part = { p + RK_PAGE, 100 };
	struct fid_mr *mr = rk_reg(s, p, FILE_LEN, RK_RW, RK_KEY);

	for (int i = 1;
	     th_now_ns() < end || (!enough() && !th_expired(&patience));
	     i = !i) {
		rk_file_map(fd[i], FILE_LEN, p);
		th_ok(fi_mr_refresh(mr, i ? &part : NULL, i, 0));
		memset(also[!i], 0x11, FILE_LEN);
		th_progress(s);
		sched_yield();
		th_verify_byte(also[!i], FILE_LEN, 0x11);
	}
	atomic_store(&shared->over, true);
	th_ok(fi_close(&mr->fid));
	for (int i = 0; i < 2; i++) {
		munmap(also[i], FILE_LEN);
		close(fd[i]);
	}
	munmap(p, FILE_LEN);
}

/* Writes are whole, or were caught by a refresh; what they say is true. */
static void i5_writer(struct th_stack *s)
{
	static unsigned char buf[FILE_LEN];

	memset(buf, 0x22, sizeof(buf));
	while (!atomic_load(&shared->over)) {
		struct rk_outcome e;

		th_ok(fi_write(s->ep, buf, FILE_LEN, NULL, s->peers[0], 0,
			       RK_KEY, buf));
		e = rk_end(s);
		th_check(!e.err || e.err == FI_EKEYREJECTED);
		atomic_fetch_add(e.err ? &shared->bad : &shared->good, 1);
	}
}

static void contract_I5_refresh(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack s;

	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	if (self->rank)
		i5_writer(&s);
	else
		i5_owner(&s);
	th_barrier_progress(self, &s, "end");
	if (!self->rank)
		*shared = (struct shared){ .over = false };
	th_stack_close(&s);
}

/* New pages are pinned, of two ranges of one key as well. */
static void contract_I5_pins(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	unsigned char *p = rk_pages(LEN);
	struct iovec iov[2] = { { p, RK_PAGE }, { p + 4 * RK_PAGE, RK_PAGE } };
	struct fi_ops_shrimp_mr *ops;
	struct th_stack a, b;
	struct fid_mr *mr, *over;
	struct iovec wrong = { p, RK_PAGE + 1 };

	(void)self;
	th_pair_open(&a, &b, &o);
	ops = rk_mr_ops(&b);
	th_ok(fi_mr_regv(b.domain, iov, 2, RK_RW, 0, 6, 0, &mr, NULL));
	if (rk_locked() != 2 * RK_PAGE)
		th_skip(self, "memory cannot be locked here");
	over = rk_reg(&b, p, 2 * RK_PAGE, RK_RW, 7);
	th_eq(rk_locked(), 3 * RK_PAGE);
	rk_map_again(p, LEN);
	th_eq(rk_locked(), 0);
	th_ok(ops->update(mr, &iov[1]));
	th_eq(rk_locked(), 2 * RK_PAGE);
	th_ok(ops->update(over, NULL));
	th_eq(rk_locked(), 3 * RK_PAGE);
	th_eq(rk_write_at(&a, 6, RK_PAGE - 4, 8, 3), 0);
	th_verify_byte(p + RK_PAGE - 4, 4, 3);
	th_verify_byte(p + 4 * RK_PAGE, 4, 3);
	th_eq(ops->update(mr, &wrong), -FI_EINVAL);
	wrong.iov_len = 0;
	th_eq(ops->update(mr, &wrong), -FI_EINVAL);
	th_eq(fi_mr_refresh(mr, NULL, 1, 0), -FI_EINVAL);
	th_eq(fi_mr_refresh(mr, NULL, 0, 1), -FI_EINVAL);
	th_eq(ops->update((struct fid_mr *)b.ep, NULL), -FI_EINVAL);
	th_ok(fi_close(&mr->fid));
	th_eq(rk_locked(), 2 * RK_PAGE);
	th_ok(fi_close(&over->fid));
	th_eq(rk_locked(), 0);
	munmap(p, LEN);
	th_pair_close(&a, &b);
}

/* What is not there is not refreshed: the key means nothing, or is closed. */
static void contract_I5_fails(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	unsigned char *p = rk_pages(LEN);
	struct fid_mr *mr, *dup = NULL;
	struct th_stack a, b;

	(void)self;
	th_pair_open(&a, &b, &o);
	for (int i = 0; i < 3; i++) {
		mr = rk_reg(&b, p, LEN, RK_RW, RK_KEY);
		rk_take_away(p + RK_PAGE, RK_PAGE);
		th_eq(fi_mr_refresh(mr, NULL, 0, 0), -FI_EFAULT);
		th_eq(rk_write_at(&a, RK_KEY, 0, 8, 1), FI_EKEYREJECTED);
		th_eq(fi_mr_reg(b.domain, p, 8, RK_RW, 0, RK_KEY, 0, &dup, 0),
		      -FI_ENOKEY);
		rk_map_again(p + RK_PAGE, RK_PAGE);
		if (i == 1)
			th_ok(fi_mr_refresh(mr, NULL, 0, 0));
		th_eq(rk_write_at(&a, RK_KEY, 0, LEN, 1),
		      i == 1 ? 0 : FI_EKEYREJECTED);
		th_ok(fi_close(&mr->fid));
		th_eq(rk_locked(), 0);
	}
	munmap(p, LEN);
	th_pair_close(&a, &b);
}

/* ---- raw keys --------------------------------------------------------------------- */

static void raw(const char *mode, int bits)
{
	struct th_stack_opts o = rk_opts();
	unsigned char *p = rk_pages(LEN), key[16];
	uint64_t base = 1, mapped = 0;
	struct th_stack a, b;
	struct fid_mr *mr;
	size_t size = 1;

	o.mr_mode |= bits;
	if (*mode)
		setenv("FI_SHRIMP_MR_MODE", mode, 1);
	th_pair_open(&a, &b, &o);
	mr = rk_reg(&b, p, LEN, RK_RW, RK_KEY);
	th_eq(fi_mr_raw_attr(mr, &base, key, &size, 0), -FI_ETOOSMALL);
	th_eq(size, b.info->domain_attr->mr_key_size);
	th_check(size <= sizeof(key));
	th_eq(fi_mr_raw_attr(mr, &base, key, &size, 1), -FI_EINVAL);
	th_ok(fi_mr_raw_attr(mr, &base, key, &size, 0));
	th_eq(base, bits & FI_MR_VIRT_ADDR ? (uintptr_t)p : 0);
	th_eq(fi_mr_map_raw(a.domain, base, key, size - 1, &mapped, 0),
	      -FI_EINVAL);
	th_ok(fi_mr_map_raw(a.domain, base, key, size, &mapped, 0));
	th_eq(rk_write_at(&a, mapped, base + 9, 4, 5), 0);
	th_verify_byte(p + 9, 4, 5);
	th_ok(fi_mr_unmap_key(a.domain, mapped));
	th_ok(fi_close(&mr->fid));
	munmap(p, LEN);
	th_pair_close(&a, &b);
}

static void raw_keys(struct th_self *self)
{
	(void)self;
	raw("", 0);
	raw("prov_key", FI_MR_PROV_KEY);
	raw("virt_addr", FI_MR_VIRT_ADDR);
	raw("virt_addr,prov_key", FI_MR_VIRT_ADDR | FI_MR_PROV_KEY);
}

/* ---- queries ------------------------------------------------------------------------ */

/* A region of private memory @p that begins 5 bytes into a page. */
static void query_private(struct th_stack *s, unsigned char *p)
{
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(s);
	struct fi_shrimp_mr_info f = { .size = sizeof(f) };
	struct fid_mr *mr = rk_reg(s, p + 5, LEN - 5, RK_RW, RK_KEY);

	th_ok(ops->query(mr, &f, NULL, NULL));
	th_eq(f.size, sizeof(f));
	th_eq(f.key, RK_KEY);
	th_eq(f.addr, (uintptr_t)p + 5);
	th_eq(f.len, LEN - 5);
	th_eq(f.access, RK_RW);
	th_check(f.version && !(f.version & 1) && f.binding);
	th_eq(f.flags & ~(uint32_t)FI_SHRIMP_MR_PINNED,
	      FI_SHRIMP_MR_LIVE | FI_SHRIMP_MR_OFFSET | FI_SHRIMP_MR_GIVEN);
	th_eq(f.windows, 0);
	th_eq(f.mtt_pages, 0);
	th_eq(f.leaves[FI_SHRIMP_LEAF_EXTENT], 1);
	th_ok(fi_close(&mr->fid));
}

static void query_pieces(struct th_stack *s, unsigned char *p)
{
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(s);
	struct fi_shrimp_mr_info f = { .size = sizeof(f) };
	struct fid_mr *mr = rk_reg(s, p + 5, LEN - 5, RK_RW, RK_KEY);
	struct fi_shrimp_mr_piece pc[8];
	uint64_t version;
	size_t n = 8;

	th_ok(ops->query(mr, &f, NULL, NULL));
	version = f.version;
	th_ok(ops->update(mr, NULL));
	th_ok(ops->query(mr, &f, pc, &n));
	th_eq(f.version, version + 2);
	th_check(n >= 1 && n <= 8);
	th_eq(pc[0].addr, (uintptr_t)p + 5);
	th_eq(pc[0].space, -1);
	th_eq(pc[0].leaf, 0);
	th_check(n > 1 || pc[0].len == LEN - 5);
	th_check(pc[0].node == -FI_ENOSYS ||
		 pc[0].state & FI_SHRIMP_PIECE_PRESENT);
	th_ok(fi_close(&mr->fid));
}

/* Two ranges, and room for fewer pieces. */
static void query_list(struct th_stack *s, unsigned char *p)
{
	struct iovec iov[2] = { { p + 100, 50 }, { p + RK_PAGE, 2 * RK_PAGE } };
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(s);
	struct fi_shrimp_mr_info f = { .size = sizeof(f) };
	struct fi_shrimp_mr_piece pc = { .len = 0 };
	struct fid_mr *mr;
	size_t n = 1;

	th_ok(fi_mr_regv(s->domain, iov, 2, FI_REMOTE_READ, 0, 8, 0, &mr, 0));
	th_ok(ops->query(mr, &f, &pc, &n));
	th_eq(n, 2);
	th_eq(pc.len, 50);
	th_eq(f.mtt_pages, 1);
	th_eq(f.leaves[FI_SHRIMP_LEAF_EXTENT], 2);
	th_check(f.flags & FI_SHRIMP_MR_LIST);
	th_ok(fi_close(&mr->fid));
}

/* A memory file; a client that knows less, and wrong ones. */
static void query_file(struct th_stack *s)
{
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(s);
	int fd = rk_file_new(LEN);
	unsigned char *q = rk_file_map(fd, LEN, NULL);
	struct fid_mr *mr = rk_reg(s, q, LEN, FI_REMOTE_READ, 9);
	struct fi_shrimp_mr_info f = {
		.size = offsetof(struct fi_shrimp_mr_info, len), .len = 77
	};
	struct fi_shrimp_mr_piece pc[8];
	size_t n = 8;

	th_ok(ops->query(mr, &f, pc, &n));
	th_check(pc[0].space > 0 && f.len == 77 && f.key == 9);
	th_eq(f.size, offsetof(struct fi_shrimp_mr_info, len));
	f.size = 3;
	th_eq(ops->query(mr, &f, NULL, NULL), -FI_EINVAL);
	n = 1;
	th_eq(ops->query(mr, NULL, NULL, &n), -FI_EINVAL);
	th_eq(ops->query((struct fid_mr *)s->ep, NULL, NULL, NULL), -FI_EINVAL);
	th_ok(fi_close(&mr->fid));
	munmap(q, LEN);
	close(fd);
}

static void query(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	unsigned char *p = rk_pages(LEN);
	struct th_stack s;

	(void)self;
	th_stack_open(&s, &o);
	memset(p, 1, LEN);
	query_private(&s, p);
	query_pieces(&s, p);
	query_list(&s, p);
	query_file(&s);
	th_stack_close(&s);
	munmap(p, LEN);
}

/* A leaf for each page: tables, and one piece still. */
static void query_by_pages(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct fi_shrimp_mr_info f = { .size = sizeof(f) };
	struct fi_shrimp_mr_piece pc[8];
	unsigned char *p = rk_pages(LEN);
	struct fi_ops_shrimp_mr *ops;
	struct fid_mr *mr;
	struct th_stack s;
	size_t n = 8;

	(void)self;
	setenv("FI_SHRIMP_MTT", "pages", 1);
	th_stack_open(&s, &o);
	memset(p, 1, LEN);
	ops = rk_mr_ops(&s);
	mr = rk_reg(&s, p + 5, LEN - 5, RK_RW, RK_KEY);
	th_ok(ops->query(mr, &f, pc, &n));
	th_eq(f.leaves[FI_SHRIMP_LEAF_4K], LEN / RK_PAGE);
	th_eq(f.leaves[FI_SHRIMP_LEAF_EXTENT], 0);
	th_check(f.mtt_pages >= 1);
	th_eq(pc[0].leaf, 12);
	th_check(n > 1 || pc[0].len == LEN - 5);
	th_ok(fi_close(&mr->fid));
	th_stack_close(&s);
	munmap(p, LEN);
}

/* Window @w has three parts of 100 bytes of the memory at @p. */
static void query_bound(struct fi_ops_shrimp_mr *ops, struct fid_mr *w,
			const unsigned char *p)
{
	struct fi_shrimp_mr_info f = { .size = sizeof(f) };
	struct fi_shrimp_mr_piece pc[8];
	size_t n = 8;

	th_ok(ops->query(w, &f, pc, &n));
	th_eq(n, 3);
	th_eq(pc[1].addr, (uintptr_t)p + 5000);
	th_eq(pc[2].space, 0);
	th_eq(f.key, 4);
	th_eq(f.len, 300);
	th_eq(f.access, FI_REMOTE_READ);
	th_eq(f.mtt_pages, 1);
	th_eq(f.flags & ~(uint32_t)FI_SHRIMP_MR_PINNED,
	      FI_SHRIMP_MR_WINDOW | FI_SHRIMP_MR_LIVE | FI_SHRIMP_MR_OFFSET |
		      FI_SHRIMP_MR_GIVEN | FI_SHRIMP_MR_LIST);
}

/* Of a window, and of the region below it. */
static void query_windows(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct fi_shrimp_mr_info f = { .size = sizeof(f) };
	struct fi_ops_shrimp_mr *ops;
	struct fi_shrimp_mr_part part[3];
	struct fid_mr *mr, *w;
	struct th_stack s;
	struct rk_mem m;

	(void)self;
	th_stack_open(&s, &o);
	ops = rk_mr_ops(&s);
	m = rk_mem_new(&s, true, LEN);
	mr = rk_reg(&s, m.p, LEN, RK_RW, RK_KEY);
	for (int i = 0; i < 3; i++)
		part[i] = (struct fi_shrimp_mr_part){ mr, (uint64_t)i * 5000,
						      100 };
	th_ok(ops->window(&s.domain->fid, NULL, &w));
	th_ok(ops->query(w, &f, NULL, &(size_t){ 0 }));
	th_eq(f.key, FI_KEY_NOTAVAIL);
	th_eq(f.flags, FI_SHRIMP_MR_WINDOW);
	th_eq(f.version, 0);
	th_ok(ops->post_reg(s.ep, w, part, 3, FI_REMOTE_READ, 4, 0, NULL));
	th_tx_ok(&s);
	query_bound(ops, w, m.p);
	th_ok(ops->query(mr, &f, NULL, NULL));
	th_eq(f.windows, 1);
	th_ok(fi_close(&w->fid));
	th_ok(ops->query(mr, &f, NULL, NULL));
	th_eq(f.windows, 0);
	th_ok(fi_close(&mr->fid));
	rk_mem_free(&m);
	th_stack_close(&s);
}

static const struct CMUnitTest mr_life[] = {
	TH_CASE(contract_R10_all_live, 1, 20),
	TH_CASE(contract_R10_nothing_left, 1, 60),
	TH_CASE(contract_R10_never_seen, 2, 60),
	TH_CASE(contract_R10_on_demand, 1, 30),
	TH_CASE(contract_I5_refresh, 2, 60),
	TH_CASE(contract_I5_pins, 1, 20),
	TH_CASE(contract_I5_fails, 1, 20),
	TH_CASE(raw_keys, 1, 20),
	TH_CASE(query, 1, 20),
	TH_CASE(query_by_pages, 1, 20),
	TH_CASE(query_windows, 1, 20),
};

int main(int argc, char **argv)
{
	shared = probe_shared(sizeof(*shared));
	return th_main(argc, argv, "mr_life", mr_life,
		       sizeof(mr_life) / sizeof(mr_life[0]));
}
