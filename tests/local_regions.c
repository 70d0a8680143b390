/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Local protection where FI_MR_LOCAL is in force: from when to when the
 * descriptor of a region is good, and for what.
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum {
	SIZE = 8 * RK_PAGE, /* bytes of each side */
	KEY = 50,	    /* the target's; others follow */
	BATCH = 100,	    /* regions of one */
};

#define BOTH (FI_SEND | FI_RECV | FI_READ | FI_WRITE)

/* Who calls, who is written to. */
struct bed {
	struct th_stack a, b; /* endpoints, domains */
	struct rk_mem m;      /* SIZE bytes of b's */
	struct fid_mr *to;    /* they, with the key @key */
	uint64_t key;	      /* KEY, or the provider's */
	unsigned char *p;     /* SIZE bytes of a's */
};

static void bed_open(struct bed *b, const char *mode, int more)
{
	struct th_stack_opts o = rk_opts();

	setenv("FI_SHRIMP_MR_MODE", mode, 1);
	o.mr_mode |= FI_MR_LOCAL | more;
	/* only what fails is told, or asked for */
	o.tx_bind = FI_SELECTIVE_COMPLETION;
	th_pair_open(&b->a, &b->b, &o);
	b->m = rk_mem_new(&b->b, true, SIZE);
	b->to = rk_reg(&b->b, b->m.p, SIZE, RK_RW, KEY);
	if (more & FI_MR_ENDPOINT) {
		th_ok(fi_mr_bind(b->to, &b->b.ep->fid, 0));
		th_ok(fi_mr_enable(b->to));
	}
	b->key = fi_mr_key(b->to);
	b->p = rk_pages(SIZE);
}

static void bed_close(struct bed *b)
{
	th_quiet(&b->a, 5);
	th_ok(fi_close(&b->to->fid));
	rk_mem_free(&b->m);
	th_pair_close(&b->a, &b->b);
	th_eq(munmap(b->p, SIZE), 0);
}

/*
 * What a write of @len bytes from @p says; the bytes go to their own offset
 * from b->p. Any thread.
 */
static ssize_t put(struct bed *b, const unsigned char *p, size_t len,
		   void *desc)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = len };
	struct fi_rma_iov there = { .addr = (uint64_t)(p - b->p) % SIZE,
				    .len = len,
				    .key = b->key };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.desc = &desc,
				.iov_count = 1,
				.addr = b->a.peers[1],
				.rma_iov = &there,
				.rma_iov_count = 1 };

	return fi_writemsg(b->a.ep, &m, 0);
}

static struct fid_mr *reg(struct bed *b, size_t off, size_t len, uint64_t key)
{
	return rk_reg(&b->a, b->p + off, len, BOTH, key);
}

/* ---- life ------------------------------------------------------------------------- */

static void contract_R6_local_reused(struct th_self *self)
{
	enum { LIVES = 200 };
	void *old[LIVES];
	struct fid_mr *mr;
	struct bed b;

	(void)self;
	bed_open(&b, "local", 0);
	for (int i = 0; i < LIVES; i++) {
		mr = reg(&b, 0, SIZE, KEY + 1);
		old[i] = fi_mr_desc(mr);
		th_ok(put(&b, b.p, 8, old[i]));
		for (int k = 0; k < i; k++)
			th_eq(put(&b, b.p, 8, old[k]), -FI_EKEYREJECTED);
		th_ok(fi_close(&mr->fid));
		th_eq(put(&b, b.p, 8, old[i]), -FI_EKEYREJECTED);
	}
	bed_close(&b);
}

/* More than fit into the first pieces of the table; all are found. */
static void contract_R6_local_many(struct th_self *self)
{
	enum { MANY = 5000 };
	static struct fid_mr *mr[MANY];
	static void *d[MANY];
	struct bed b;

	(void)self;
	bed_open(&b, "local", 0);
	for (int i = 0; i < MANY; i++) {
		mr[i] = reg(&b, (size_t)i, 8, KEY + 1 + (uint64_t)i);
		d[i] = fi_mr_desc(mr[i]);
	}
	for (int i = 0; i < MANY; i++) {
		th_ok(put(&b, b.p + i, 8, d[i]));
		th_eq(put(&b, b.p + i + 1, 8, d[i]), -FI_EINVAL);
	}
	for (int i = 0; i < MANY; i += 2)
		th_ok(fi_close(&mr[i]->fid));
	for (int i = 0; i < MANY; i++)
		th_eq(put(&b, b.p + i, 8, d[i]), i % 2 ? 0 : -FI_EKEYREJECTED);
	for (int i = 1; i < MANY; i += 2)
		th_ok(fi_close(&mr[i]->fid));
	bed_close(&b);
}

/* Numbers that are no descriptor, of entries that there are and are not. */
static void contract_R6_local_made_up(struct th_self *self)
{
	struct fid_mr *mr;
	struct bed b;
	uint64_t d;

	(void)self;
	bed_open(&b, "local", 0);
	mr = reg(&b, 0, SIZE, KEY + 1);
	d = (uintptr_t)fi_mr_desc(mr);
	for (int i = 0; i < 64; i++) {
		uint64_t x = d ^ UINT64_C(1) << i, y = UINT64_C(1) << i;

		th_eq(put(&b, b.p, 8, (void *)(uintptr_t)x), -FI_EKEYREJECTED);
		th_eq(put(&b, b.p, 8, (void *)(uintptr_t)y), -FI_EKEYREJECTED);
		th_eq(put(&b, b.p, 8, (void *)(uintptr_t)~y), -FI_EKEYREJECTED);
	}
	th_eq(put(&b, b.p, 8, mr), -FI_EKEYREJECTED);
	th_ok(put(&b, b.p, 8, (void *)(uintptr_t)d));
	th_ok(fi_close(&mr->fid));
	bed_close(&b);
}

/* FI_MR_ENDPOINT: good once it is enabled. */
static void contract_R6_local_enabled(struct th_self *self)
{
	struct fid_mr *mr;
	struct bed b = { 0 };
	struct th_stack_opts o = rk_opts();
	void *d;

	(void)self;
	setenv("FI_SHRIMP_MR_MODE", "local,endpoint", 1);
	o.mr_mode |= FI_MR_LOCAL | FI_MR_ENDPOINT;
	th_pair_open(&b.a, &b.b, &o);
	b.p = rk_pages(SIZE);
	mr = reg(&b, 0, SIZE, KEY);
	d = fi_mr_desc(mr);
	th_check(d);
	th_eq(fi_send(b.a.ep, b.p, 8, d, b.a.peers[1], &b), -FI_EKEYREJECTED);
	th_ok(fi_mr_bind(mr, &b.a.ep->fid, 0));
	th_eq(fi_send(b.a.ep, b.p, 8, d, b.a.peers[1], &b), -FI_EKEYREJECTED);
	th_ok(fi_mr_enable(mr));
	th_ptr_eq(fi_mr_desc(mr), d);
	th_ok(fi_send(b.a.ep, b.p, 8, d, b.a.peers[1], &b));
	th_tx_ok(&b.a);
	th_ok(fi_close(&mr->fid));
	th_eq(fi_send(b.a.ep, b.p, 8, d, b.a.peers[1], &b), -FI_EKEYREJECTED);
	th_pair_close(&b.a, &b.b);
	th_eq(munmap(b.p, SIZE), 0);
}

/* A refresh that fails leaves nothing that is good; the next one does. */
static void contract_R6_local_refreshed(struct th_self *self)
{
	struct fid_mr *mr;
	struct bed b;
	void *d;

	(void)self;
	bed_open(&b, "local", 0);
	mr = rk_reg(&b.a, b.p, 2 * RK_PAGE, BOTH | RK_RW, KEY + 1);
	d = fi_mr_desc(mr);
	th_ok(put(&b, b.p, 8, d));
	th_ok(fi_mr_refresh(mr, NULL, 0, 0));
	th_ptr_eq(fi_mr_desc(mr), d);
	th_ok(put(&b, b.p, 8, d));
	rk_take_away(b.p, 2 * RK_PAGE);
	th_eq(fi_mr_refresh(mr, NULL, 0, 0), -FI_EFAULT);
	th_eq(put(&b, b.p, 8, d), -FI_EKEYREJECTED);
	rk_map_again(b.p, 2 * RK_PAGE);
	th_ok(fi_mr_refresh(mr, NULL, 0, 0));
	th_ok(put(&b, b.p, 8, d));
	th_eq(put(&b, b.p + 2 * RK_PAGE - 4, 8, d), -FI_EINVAL);
	rk_take_away(b.p, 2 * RK_PAGE);
	th_eq(fi_mr_refresh(mr, NULL, 0, 0), -FI_EFAULT);
	th_ok(fi_close(&mr->fid));
	th_eq(put(&b, b.p, 8, d), -FI_EKEYREJECTED);
	bed_close(&b);
}

/* Closed without waiting; and a close that windows refuse. */
static void contract_R6_local_closing(struct th_self *self)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_shrimp_mr_part part = { .len = 8 };
	struct fi_ops_shrimp_mr *ops;
	struct fi_eq_entry e;
	struct fid_eq *eq;
	struct fid_mr *w;
	uint32_t event;
	struct bed b;
	void *d;

	(void)self;
	bed_open(&b, "local", 0);
	ops = rk_mr_ops(&b.a);
	th_ok(fi_eq_open(b.a.fabric, &attr, &eq, NULL));
	part.mr = rk_reg(&b.a, b.p, SIZE, BOTH | RK_RW, KEY + 1);
	d = fi_mr_desc(part.mr);
	/* a window is for peers */
	th_ok(ops->window(&b.a.domain->fid, NULL, &w));
	th_ptr_eq(fi_mr_desc(w), NULL);
	th_ok(ops->bind_window(w, &part, BOTH | RK_RW, KEY + 2));
	th_ptr_eq(fi_mr_desc(w), NULL);
	th_eq(put(&b, b.p, 8, w), -FI_EKEYREJECTED);
	th_eq(fi_close(&part.mr->fid), -FI_EBUSY);
	th_ok(put(&b, b.p, 8, d));
	th_ok(fi_close(&w->fid));
	th_ok(ops->close_async(part.mr, eq, &b));
	th_eq(put(&b, b.p, 8, d), -FI_EKEYREJECTED);
	th_eq(fi_eq_sread(eq, &event, &e, sizeof(e), 20000, 0), sizeof(e));
	th_eq(put(&b, b.p, 8, d), -FI_EKEYREJECTED);
	th_ok(fi_close(&eq->fid));
	bed_close(&b);
}

/* ---- ranges ----------------------------------------------------------------------- */

/* Neighbours are one, whatever their order; a gap is not. */
static void contract_R6_local_ranges(struct th_self *self)
{
	struct iovec iov[16];
	struct fid_mr *mr;
	struct bed b;
	void *d;

	(void)self;
	bed_open(&b, "local", 0);
	/* 0 to 200 in two, 300 to 400, then single bytes each 16 */
	iov[0] = (struct iovec){ b.p + 100, 100 };
	iov[1] = (struct iovec){ b.p + 300, 100 };
	iov[2] = (struct iovec){ b.p, 100 };
	for (int i = 3; i < 16; i++)
		iov[i] = (struct iovec){ b.p + 1000 + i * 16, 1 };
	th_ok(fi_mr_regv(b.a.domain, iov, 16, BOTH, 0, KEY + 1, 0, &mr, NULL));
	d = fi_mr_desc(mr);
	for (size_t at = 0; at < 410; at++) {
		bool good = at < 200 || (at >= 300 && at < 400);

		th_eq(put(&b, b.p + at, 1, d), good ? 0 : -FI_EINVAL);
	}
	th_ok(put(&b, b.p, 200, d));
	th_eq(put(&b, b.p, 201, d), -FI_EINVAL);
	th_eq(put(&b, b.p, 400, d), -FI_EINVAL);
	th_ok(put(&b, b.p + 300, 100, d));
	th_eq(put(&b, b.p + 299, 100, d), -FI_EINVAL);
	for (int i = 3; i < 16; i++) {
		th_ok(put(&b, iov[i].iov_base, 1, d));
		th_eq(put(&b, iov[i].iov_base, 2, d), -FI_EINVAL);
	}
	th_ok(fi_close(&mr->fid));
	bed_close(&b);
}

/* Entry of a descriptor; what is given back is the next one's. */
static uint64_t entry_of(struct fid_mr *mr)
{
	return (uintptr_t)fi_mr_desc(mr) & 0xffffff;
}

/* Nothing is left of them, whether they fail early or late. */
static void batches_fail(struct bed *b, struct fi_mr_attr *attr,
			 struct iovec *iov)
{
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(&b->a);
	struct fid_mr *mr[BATCH];

	iov[BATCH - 1].iov_base = NULL;
	for (int i = 0; i < 20; i++)
		th_eq(ops->reg_batch(&b->a.domain->fid, attr, BATCH, 0, mr),
		      -FI_EFAULT);
	attr[BATCH - 1].iov_count = 0;
	th_eq(ops->reg_batch(&b->a.domain->fid, attr, BATCH, 0, mr),
	      -FI_EINVAL);
	for (int i = 0; i < 200; i++)
		th_eq(fi_mr_reg(b->a.domain, NULL, 8, BOTH, 0, KEY + 1, 0, mr,
				NULL),
		      -FI_EFAULT);
	mr[0] = reg(b, 0, 8, KEY + 1);
	th_check(entry_of(mr[0]) < BATCH);
	th_ok(fi_close(&mr[0]->fid));
}

static void contract_R6_local_batch(struct th_self *self)
{
	struct fi_mr_attr attr[BATCH];
	struct iovec iov[BATCH];
	struct fid_mr *mr[BATCH];
	struct bed b;

	(void)self;
	bed_open(&b, "local", 0);
	for (int i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){ b.p + i * 64, 64 };
		attr[i] = (struct fi_mr_attr){ .mr_iov = &iov[i],
					       .iov_count = 1,
					       .access = BOTH,
					       .requested_key =
						       KEY + 1 + (uint64_t)i };
	}
	th_ok(rk_mr_ops(&b.a)->reg_batch(&b.a.domain->fid, attr, BATCH, 0, mr));
	for (int i = 0; i < BATCH; i++)
		for (int k = 0; k < BATCH; k++)
			th_eq(put(&b, iov[i].iov_base, 64, fi_mr_desc(mr[k])),
			      i == k ? 0 : -FI_EINVAL);
	for (int i = 0; i < BATCH; i++)
		th_ok(fi_close(&mr[i]->fid));
	batches_fail(&b, attr, iov);
	bed_close(&b);
}

/* Whatever a region of the cache covers, with whatever rights it has. */
static void acquired(const char *mode, int more)
{
	struct fi_ops_shrimp_cache *ops;
	struct fi_shrimp_mr_info i = { .size = sizeof(i) };
	struct fid_mr *mr, *ro;
	struct bed b;
	void *d;

	bed_open(&b, mode, more);
	th_ok(fi_open_ops(&b.a.domain->fid, FI_SHRIMP_OPS_CACHE, 0,
			  (void **)&ops, NULL));
	th_ok(ops->acquire(&b.a.domain->fid, b.p + 100, 100, BOTH, &mr));
	d = fi_mr_desc(mr);
	th_ok(put(&b, b.p + 100, 100, d));
	th_ok(rk_mr_ops(&b.a)->query(mr, &i, NULL, NULL));
	th_check(i.addr + i.len <= (uintptr_t)b.p + SIZE - 8);
	th_eq(put(&b, (unsigned char *)(uintptr_t)(i.addr + i.len), 8, d),
	      -FI_EINVAL);
	th_ok(ops->acquire(&b.a.domain->fid, b.p + 4 * RK_PAGE, 8, FI_RECV,
			   &ro));
	th_eq(put(&b, b.p + 4 * RK_PAGE, 8, fi_mr_desc(ro)), -FI_EACCES);
	th_ok(ops->release(ro));
	th_ok(ops->release(mr));
	/* stays registered at most until this */
	th_ok(ops->flush(&b.a.domain->fid));
	th_eq(put(&b, b.p + 100, 100, d), -FI_EKEYREJECTED);
	bed_close(&b);
}

/* Where regions are bound to endpoints these are good all the same. */
static void contract_R6_local_acquired(struct th_self *self)
{
	(void)self;
	acquired("local", 0);
	setenv("FI_SHRIMP_MR_CACHE", "off", 1);
	acquired("local", 0);
	unsetenv("FI_SHRIMP_MR_CACHE");
	acquired("local,endpoint", FI_MR_ENDPOINT);
}

/* On demand, and all of the address space: what is mapped does not matter. */
static void contract_R6_local_demand(struct th_self *self)
{
	struct fid_mr *mr;
	struct bed b;

	(void)self;
	bed_open(&b, "local", 0);
	th_ok(fi_mr_reg(b.a.domain, b.p, SIZE, BOTH, 0, KEY + 1,
			FI_SHRIMP_ON_DEMAND, &mr, NULL));
	th_ok(put(&b, b.p + 8, SIZE - 8, fi_mr_desc(mr)));
	th_eq(put(&b, b.p + 8, SIZE, fi_mr_desc(mr)), -FI_EINVAL);
	th_ok(fi_close(&mr->fid));
	th_ok(fi_mr_reg(b.a.domain, NULL, SIZE_MAX, BOTH, 0, KEY + 1, 0, &mr,
			NULL));
	th_ok(put(&b, b.p, SIZE, fi_mr_desc(mr)));
	th_ok(fi_close(&mr->fid));
	bed_close(&b);
}

/* ---- where it is not in force ----------------------------------------------------- */

/* @version, @mode and @mr_mode are offered: what a send without one says. */
static ssize_t send_bare(uint32_t version, uint64_t mode, int mr_mode)
{
	struct fi_info *h = th_hints(NULL), *info;
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_MAP };
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	char name[TH_MAX_ADDR], buf[8] = { 0 };
	size_t len = sizeof(name);
	fi_addr_t self;
	ssize_t ret;

	h->mode = mode;
	h->domain_attr->mr_mode = mr_mode;
	th_ok(fi_getinfo(version, NULL, NULL, 0, h, &info));
	th_ok(fi_fabric(info->fabric_attr, &fabric, NULL));
	th_ok(fi_domain(fabric, info, &domain, NULL));
	th_ok(fi_av_open(domain, &av_attr, &av, NULL));
	th_ok(fi_cq_open(domain, &attr, &cq, NULL));
	th_ok(fi_endpoint(domain, info, &ep, NULL));
	th_ok(fi_ep_bind(ep, &av->fid, 0));
	th_ok(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	th_ok(fi_enable(ep));
	th_ok(fi_getname(&ep->fid, name, &len));
	th_eq(fi_av_insert(av, name, 1, &self, 0, NULL), 1);
	ret = fi_send(ep, buf, sizeof(buf), NULL, self, NULL);
	th_ok(fi_close(&ep->fid));
	th_ok(fi_close(&cq->fid));
	th_ok(fi_close(&av->fid));
	th_ok(fi_close(&domain->fid));
	th_ok(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(h);
	return ret;
}

/* Offered and set: in force. FI_LOCAL_MR is what it was before API 1.5. */
static void contract_R6_local_or_not(struct th_self *self)
{
	const uint32_t old = FI_VERSION(1, 4), new = FI_VERSION(1, 17);
	const uint64_t local = UINT64_C(1) << 55;

	(void)self;
	for (int set = 0; set < 2; set++) {
		ssize_t bad = set ? -FI_EINVAL : 0;

		if (set)
			setenv("FI_SHRIMP_MR_MODE", "local", 1);
		th_eq(send_bare(new, 0, 0), 0);
		th_eq(send_bare(new, 0, FI_MR_ALLOCATED), 0);
		th_eq(send_bare(new, local, FI_MR_ALLOCATED), 0);
		th_eq(send_bare(new, 0, FI_MR_LOCAL), bad);
		for (int mode = 1; mode <= 2; mode++) {
			th_eq(send_bare(old, 0, mode), 0);
			th_eq(send_bare(old, local, mode), bad);
		}
	}
}

/* ---- threads ---------------------------------------------------------------------- */

/*
 * One region after the other, most often in the same entry of the table: odd
 * ones are page 1, to be read, even ones page 2, to be written.
 */
struct race {
	struct bed *b;		     /* where */
	_Atomic uintptr_t odd, even; /* descriptors: of now, or of before */
	atomic_ulong good, gone;     /* what users saw */
	atomic_bool over;	     /* time is up */
	atomic_ulong lives;	     /* regions */
};

static void *race_owner(void *arg)
{
	struct race *r = arg;
	struct th_stack *a = &r->b->a;
	unsigned char *p = r->b->p;

	while (!atomic_load(&r->over)) {
		struct fid_mr *mr;

		mr = rk_reg(a, p + RK_PAGE, RK_PAGE, FI_WRITE, KEY + 1);
		atomic_store(&r->odd, (uintptr_t)fi_mr_desc(mr));
		th_eq(put(r->b, p + RK_PAGE, 8, fi_mr_desc(mr)), 0);
		th_ok(fi_close(&mr->fid));
		mr = rk_reg(a, p + 2 * RK_PAGE, RK_PAGE, FI_READ, KEY + 1);
		atomic_store(&r->even, (uintptr_t)fi_mr_desc(mr));
		th_eq(put(r->b, p + 2 * RK_PAGE, 8, fi_mr_desc(mr)),
		      -FI_EACCES);
		th_ok(fi_close(&mr->fid));
		atomic_fetch_add(&r->lives, 1);
	}
	return NULL;
}

/* One of @good and the refusal of what is gone; nothing of another region. */
static void either(struct race *r, ssize_t ret, ssize_t good)
{
	th_check(ret == good || ret == -FI_EKEYREJECTED);
	atomic_fetch_add(ret == good ? &r->good : &r->gone, 1);
}

static void *race_user(void *arg)
{
	struct race *r = arg;
	unsigned char *p = r->b->p;

	while (!atomic_load(&r->over)) {
		void *odd = (void *)atomic_load(&r->odd);
		void *even = (void *)atomic_load(&r->even);

		if (!odd || !even)
			continue;
		either(r, put(r->b, p + RK_PAGE, 8, odd), 0);
		either(r, put(r->b, p + 2 * RK_PAGE, 8, odd), -FI_EINVAL);
		either(r, put(r->b, p + 2 * RK_PAGE, 8, even), -FI_EACCES);
		if (th_sanitized())
			sched_yield();
	}
	return NULL;
}

/* Good all the time, whatever others do with theirs. */
static void *race_bystander(void *arg)
{
	struct race *r = arg;
	struct fid_mr *mr = reg(r->b, 4 * RK_PAGE, RK_PAGE, KEY + 2);

	while (!atomic_load(&r->over)) {
		th_eq(put(r->b, r->b->p + 4 * RK_PAGE, 64, fi_mr_desc(mr)), 0);
		sched_yield();
	}
	th_ok(fi_close(&mr->fid));
	return NULL;
}

static void contract_R6_local_threads(struct th_self *self)
{
	void *(*const fn[])(void *) = { race_owner, race_user, race_user,
					race_bystander };
	enum { N = sizeof(fn) / sizeof(*fn) };
	struct race r = { 0 };
	pthread_t t[N];
	struct bed b;

	(void)self;
	/* each refusal is logged, and there are many */
	setenv("FI_LOG_PROV", "none", 1);
	bed_open(&b, "local", 0);
	r.b = &b;
	/* contact, before there are several threads */
	th_ok(put(&b, b.p, 0, NULL));
	for (int i = 0; i < N; i++)
		th_eq(pthread_create(&t[i], NULL, fn[i], &r), 0);
	th_sleep_us(rk_ms(3) * 1000);
	atomic_store(&r.over, true);
	for (int i = 0; i < N; i++)
		th_eq(pthread_join(t[i], NULL), 0);
	th_check(atomic_load(&r.lives) > 0);
	bed_close(&b);
}

static const struct CMUnitTest local_regions_tests[] = {
	TH_CASE(contract_R6_local_reused, 1, 20),
	TH_CASE(contract_R6_local_many, 1, 20),
	TH_CASE(contract_R6_local_made_up, 1, 20),
	TH_CASE(contract_R6_local_enabled, 1, 20),
	TH_CASE(contract_R6_local_refreshed, 1, 20),
	TH_CASE(contract_R6_local_closing, 1, 20),
	TH_CASE(contract_R6_local_ranges, 1, 20),
	TH_CASE(contract_R6_local_batch, 1, 20),
	TH_CASE(contract_R6_local_acquired, 1, 20),
	TH_CASE(contract_R6_local_demand, 1, 20),
	TH_CASE(contract_R6_local_or_not, 1, 20),
	TH_CASE(contract_R6_local_threads, 1, 60),
};

TH_MAIN(local_regions_tests)
