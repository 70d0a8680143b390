/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Windows onto regions whose translation changes while they live: on demand
 * (contract R11), or watched for unmapping (R12). What holds for the region
 * holds for them. Windows onto others are in windows.c.
 */
#define _GNU_SOURCE
#include "odp_kit.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env_probe.h"

enum {
	STREAMERS = 2,
	PLAIN_KEY = 90,			 /* of regions of another kind */
	WKEY = 500,			 /* of a window */
	OFF = 5 * ODP_PAGE + 100,	 /* where most windows begin, */
	LEN = 20 * ODP_PAGE + 200,	 /* and their length */
	MIXED_LEN = 2 * ODP_PAGE + 6005, /* of one of several parts */
};

/* What the owner has besides its region. */
struct owner {
	struct odp_side *d;	      /* it */
	struct fi_ops_shrimp_mr *ops; /* of its domain */
	struct fid_mr *w;	      /* a window */
};

static void owner_init(struct owner *o, struct odp_side *d)
{
	*o = (struct owner){ .d = d };
	if (d->self->rank)
		return;
	o->ops = rk_mr_ops(&d->s);
	th_ok(o->ops->window(&d->s.domain->fid, NULL, &o->w));
}

/* Opens all of it: a region of ODP_LEN bytes on demand, and a window. */
static void open_all(struct owner *o, struct odp_side *d, struct th_self *self)
{
	odp_open(d, self);
	odp_own(d, self->rank ? NULL : odp_fresh(ODP_LEN), RK_RW);
	owner_init(o, d);
}

/* All are done: window, then region, then memory. */
static void close_all(struct owner *o, struct odp_side *d)
{
	th_barrier_progress(d->self, &d->s, "window");
	if (o->w)
		th_ok(fi_close(&o->w->fid));
	odp_disown(d);
	th_stack_close(&d->s);
}

static void bind(struct owner *o, uint64_t off, uint64_t len, uint64_t access)
{
	struct fi_shrimp_mr_part p = { o->d->mr, off, len };

	th_ok(o->ops->bind_window(o->w, &p, access, WKEY));
}

/* The same, posted, of @n parts: its key may have to wait for readers. */
static void post_reg(struct owner *o, const struct fi_shrimp_mr_part *p,
		     size_t n, void *context)
{
	struct th_stack *s = &o->d->s;
	struct th_deadline dl = th_patience();
	ssize_t ret;

	while ((ret = o->ops->post_reg(s->ep, o->w, p, n, RK_RW, WKEY, 0,
				       context)) == -FI_EAGAIN &&
	       !th_expired(&dl))
		th_progress(s);
	th_ok(ret);
}

/* open_all(), and the owner binds the window: LEN bytes from @off on. */
static void open_bound(struct owner *o, struct odp_side *d,
		       struct th_self *self, uint64_t off)
{
	open_all(o, d, self);
	if (!self->rank)
		bind(o, off, LEN, RK_RW);
}

/* How an operation of the initiator's with key @key ends. */
static struct rk_outcome try_put(struct odp_side *d, uint64_t key, uint64_t off,
				 const void *buf, size_t len)
{
	th_post(&d->s, fi_write(d->s.ep, buf, len, NULL, d->s.peers[0], off,
				key, (void *)(uintptr_t)buf));
	return rk_end(&d->s);
}

static struct rk_outcome try_get(struct odp_side *d, uint64_t key, uint64_t off,
				 void *buf, size_t len)
{
	th_post(&d->s,
		fi_read(d->s.ep, buf, len, NULL, d->s.peers[0], off, key, buf));
	return rk_end(&d->s);
}

static int put(struct odp_side *d, uint64_t off, const void *buf, size_t len)
{
	return try_put(d, WKEY, off, buf, len).err;
}

static int get(struct odp_side *d, uint64_t off, void *buf, size_t len)
{
	return try_get(d, WKEY, off, buf, len).err;
}

/* All processes are here, and each sees what the others wrote. */
static void meet(struct odp_side *d, const char *what)
{
	th_barrier_progress(d->self, &d->s, what);
	th_settle(&d->s);
}

/* ---- W1: on demand --------------------------------------------------------- */

/* The initiator's part of contract_W1_on_demand. */
static void touch_window(struct odp_side *d)
{
	unsigned char buf[3 * ODP_PAGE], got[3 * ODP_PAGE];

	th_fill(buf, sizeof(buf), 1);
	th_eq(put(d, 0, buf, sizeof(buf)), 0);
	th_eq(get(d, 0, got, sizeof(got)), 0);
	th_verify(got, sizeof(got), 1);
	/* the last byte, and what is not the window's */
	th_eq(put(d, LEN - 1, buf, 1), 0);
	th_eq(put(d, LEN - 1, buf, 2), FI_EINVAL);
	th_eq(get(d, UINT64_MAX - 99, got, 8), FI_EINVAL);
}

static void contract_W1_on_demand(struct th_self *self)
{
	unsigned char buf[8] = { 9 };
	struct odp_side d;
	struct owner o;

	open_bound(&o, &d, self, OFF);
	meet(&d, "bound");
	if (self->rank)
		touch_window(&d);
	meet(&d, "touched");
	if (!self->rank) {
		th_verify(d.p + OFF, 3 * ODP_PAGE, 1);
		th_verify_byte(d.p, OFF, 0);
		/* 4 pages, one of them in part, and the last */
		th_eq(odp_stats(&d).page_faults, 5);
		bind(&o, 0, ODP_LEN, FI_REMOTE_READ);
	}
	meet(&d, "rebound");
	if (self->rank) {
		th_eq(put(&d, 0, buf, 8), FI_EACCES);
		/* pages of the region are the window's, and back */
		th_eq(get(&d, OFF, buf, 8), 0);
		th_verify(buf, 8, 1);
		th_eq(odp_stats(&d).page_asks, 2);
		odp_put_done(&d, buf, 8, 60 * ODP_PAGE);
		th_eq(get(&d, 60 * ODP_PAGE, buf, 8), 0);
		th_verify(buf, 8, 1);
		th_eq(odp_stats(&d).page_asks, 3);
	}
	meet(&d, "read");
	if (!self->rank)
		th_ok(o.ops->invalidate_window(o.w));
	meet(&d, "invalid");
	if (self->rank)
		th_eq(get(&d, 0, buf, 8), FI_EKEYREJECTED);
	close_all(&o, &d);
}

/* What is not mapped is I2's error, also in the midst; and comes when it is. */
static void contract_R11_window_unmapped(struct th_self *self)
{
	unsigned char buf[4 * ODP_PAGE];
	struct rk_outcome e;
	struct odp_side d;
	struct owner o;

	open_all(&o, &d, self);
	if (!self->rank) {
		bind(&o, OFF, LEN, RK_RW);
		rk_take_away(d.p + 7 * ODP_PAGE, ODP_PAGE);
	}
	meet(&d, "bound");
	th_fill(buf, sizeof(buf), 3);
	if (self->rank) {
		e = try_put(&d, WKEY, 0, buf, sizeof(buf));
		th_eq(e.err, FI_EFAULT);
		th_eq(e.moved, 2 * ODP_PAGE - 100);
		th_eq(e.data.key, WKEY);
		th_eq(put(&d, 3 * ODP_PAGE - 100, buf, 8), 0);
	}
	meet(&d, "refused");
	if (!self->rank)
		rk_map_again(d.p + 7 * ODP_PAGE, ODP_PAGE);
	meet(&d, "mapped");
	if (self->rank)
		th_eq(put(&d, 0, buf, sizeof(buf)), 0);
	meet(&d, "written");
	if (!self->rank)
		th_verify(d.p + OFF, sizeof(buf), 3);
	close_all(&o, &d);
}

/* Tables of three levels: the window begins behind the first of each. */
static void contract_W1_on_demand_deep(struct th_self *self)
{
	enum { GIB = 1 << 30 };
	const uint64_t at[] = { UINT64_C(5) * GIB + 12345, 77 };
	size_t len = (size_t)9 * GIB;
	unsigned char buf[2 * ODP_PAGE], *p = NULL;
	struct odp_side d;
	struct owner o;

	odp_open(&d, self);
	owner_init(&o, &d);
	if (!self->rank) {
		p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		th_check(p != MAP_FAILED);
		th_ok(odp_reg(&d, p, len, RK_RW, &d.mr));
	}
	for (int i = 0; i < 2; i++) {
		if (!self->rank)
			bind(&o, at[i], len - at[i], RK_RW);
		meet(&d, "bound");
		th_fill(buf, sizeof(buf), (uint64_t)i);
		for (uint64_t k = 0; self->rank && k < 4; k++)
			th_eq(put(&d, k * GIB - (k ? ODP_PAGE : 0), buf,
				  sizeof(buf)),
			      0);
		meet(&d, "written");
		for (uint64_t k = 0; !self->rank && k < 4; k++)
			th_verify(p + at[i] + k * GIB - (k ? ODP_PAGE : 0),
				  sizeof(buf), (uint64_t)i);
	}
	meet(&d, "done");
	if (!self->rank)
		th_ok(fi_close(&o.w->fid));
	o.w = NULL;
	close_all(&o, &d);
	if (p)
		munmap(p, len);
}

/* ---- W1: parts of several regions ------------------------------------------ */

/* A window of three parts: on demand, of another region, on demand. */
struct mixed {
	struct owner o;	       /* with the region on demand */
	struct rk_mem m;       /* device memory, or private */
	struct fid_mr *plain;  /* a region of it */
	unsigned char *got[3]; /* where the parts lie */
	size_t len[3];	       /* their lengths */
};

static void mixed_bind(struct mixed *x)
{
	struct odp_side *d = x->o.d;
	struct fi_shrimp_mr_part p[3] = {
		{ d->mr, ODP_PAGE + 10, 2 * ODP_PAGE },
		{ x->plain, 50, 6000 },
		{ d->mr, 9 * ODP_PAGE, 5 },
	};

	for (int i = 0; i < 3; i++) {
		x->got[i] = (i == 1 ? x->m.p : d->p) + p[i].off;
		x->len[i] = p[i].len;
	}
	post_reg(&x->o, p, 3, x);
	th_ptr_eq(th_tx_ok(&d->s).op_context, x);
}

static void mixed_verify(const struct mixed *x, const unsigned char *buf)
{
	for (int i = 0; i < 3; buf += x->len[i++])
		th_eq(memcmp(x->got[i], buf, x->len[i]), 0);
}

static void mixed_init(struct mixed *x, struct odp_side *d, bool device)
{
	*x = (struct mixed){ .o.d = d };
	owner_init(&x->o, d);
	if (d->self->rank)
		return;
	x->m = rk_mem_new(&d->s, device, 2 * ODP_PAGE);
	x->plain = rk_reg(&d->s, x->m.p, 2 * ODP_PAGE, RK_RW, PLAIN_KEY);
	mixed_bind(x);
}

static void mixed_fini(struct mixed *x, struct odp_side *d)
{
	meet(d, "over");
	if (!d->self->rank) {
		th_post(&d->s,
			x->o.ops->post_invalidate(d->s.ep, x->o.w, 0, d));
		th_ptr_eq(th_tx_ok(&d->s).op_context, d);
		th_ok(fi_close(&x->plain->fid));
		rk_mem_free(&x->m);
	}
	close_all(&x->o, d);
}

static void mixed_run(struct th_self *self, bool device)
{
	unsigned char buf[MIXED_LEN], got[MIXED_LEN];
	struct odp_side d;
	struct mixed x;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : odp_fresh(ODP_LEN), RK_RW);
	mixed_init(&x, &d, device);
	meet(&d, "bound");
	for (uint64_t i = 0; i < 3; i++) {
		th_fill(buf, sizeof(buf), i);
		if (self->rank) {
			th_eq(put(&d, 0, buf, sizeof(buf)), 0);
			th_eq(get(&d, 0, got, sizeof(got)), 0);
			th_verify(got, sizeof(got), i);
			th_eq(put(&d, 1, buf, sizeof(buf)), FI_EINVAL);
		}
		meet(&d, "written");
		if (!self->rank) {
			mixed_verify(&x, buf);
			th_eq(odp_stats(&d).page_faults, 4 * (i + 1));
			odp_replace(&d, d.p, ODP_LEN);
		}
		meet(&d, "replaced");
	}
	mixed_fini(&x, &d);
}

static void contract_W1_on_demand_and_device(struct th_self *self)
{
	mixed_run(self, true);
}

static void contract_W1_on_demand_and_private(struct th_self *self)
{
	mixed_run(self, false);
}

/* The tables of the other region are no region's on demand. */
static void contract_W1_on_demand_and_pages(struct th_self *self)
{
	setenv("FI_SHRIMP_MTT", "pages", 1);
	setenv("FI_SHRIMP_MONITOR", "uffd", 1);
	mixed_run(self, false);
}

/* ---- W1: of a process's own, and arguments --------------------------------- */

/* What a window and its region tell of themselves. */
static void tell(struct owner *o)
{
	struct fi_shrimp_mr_info f = { .size = sizeof(f) };

	th_ok(o->ops->query(o->w, &f, NULL, NULL));
	th_eq(f.flags, FI_SHRIMP_MR_LIVE | FI_SHRIMP_MR_WINDOW |
			       FI_SHRIMP_MR_OFFSET | FI_SHRIMP_MR_GIVEN |
			       FI_SHRIMP_MR_ON_DEMAND);
	th_eq(f.mtt_pages, 0);
	th_eq(f.faults, 0);
	th_ok(o->ops->query(o->d->mr, &f, NULL, NULL));
	th_eq(f.flags, FI_SHRIMP_MR_LIVE | FI_SHRIMP_MR_OFFSET |
			       FI_SHRIMP_MR_GIVEN | FI_SHRIMP_MR_ON_DEMAND);
	th_eq(f.windows, 1);
	th_eq(f.faults, 2);
	th_eq(f.invalidated, 0);
}

static void contract_W1_on_demand_own(struct th_self *self)
{
	unsigned char buf[ODP_PAGE + 200];
	struct fi_shrimp_mr_part p = { .off = ODP_LEN - 1, .len = 2 };
	struct odp_side d;
	struct owner o;

	open_all(&o, &d, self);
	bind(&o, 100, LEN, RK_RW);
	th_fill(buf, sizeof(buf), 7);
	th_eq(put(&d, 0, buf, sizeof(buf)), 0);
	th_verify(d.p + 100, sizeof(buf), 7);
	tell(&o);
	p.mr = d.mr;
	th_eq(o.ops->bind_window(o.w, &p, RK_RW, WKEY), -FI_EINVAL);
	p.len = 1;
	th_eq(o.ops->bind_window(o.w, &p, RK_ALL, WKEY), -FI_EINVAL);
	th_eq(fi_close(&d.mr->fid), -FI_EBUSY);
	th_eq(put(&d, 0, buf, 8), 0);
	th_eq(o.ops->bind_window(o.w, &p, RK_RW, RK_KEY), -FI_ENOKEY);
	th_eq(fi_mr_key(o.w), FI_KEY_NOTAVAIL);
	close_all(&o, &d);
}

/* Bound over and over, nothing is left of it. */
static void contract_W1_on_demand_costs_nothing(struct th_self *self)
{
	unsigned long n = th_rounds(3000);
	unsigned char buf[8] = { 1 };
	uint64_t kib = 0;
	struct odp_side d;
	struct mixed x;

	odp_open(&d, self);
	odp_own(&d, odp_fresh(ODP_LEN), RK_RW);
	mixed_init(&x, &d, false);
	for (unsigned long i = 0; i < n; i++) {
		if (i == n / 2)
			kib = probe_segment_kib("shrimp-tables");
		bind(&x.o, i % 1000, ODP_PAGE, RK_RW);
		if (i % 16 == 0)
			th_eq(put(&d, 0, buf, 8), 0);
		th_ok(x.o.ops->invalidate_window(x.o.w));
		mixed_bind(&x);
		th_post(&d.s, x.o.ops->post_invalidate(d.s.ep, x.o.w, 0, NULL));
		th_tx_ok(&d.s);
	}
	th_check(probe_segment_kib("shrimp-tables") <= kib + 512);
	mixed_bind(&x);
	mixed_fini(&x, &d);
}

/* ---- R12: on demand -------------------------------------------------------- */

/* Writes anywhere in @len bytes until told otherwise; errors may come. */
static void stream(struct odp_side *d, size_t len)
{
	unsigned char buf[ODP_PAGE + 100];
	uint64_t state = (uint64_t)d->self->rank;

	memset(buf, d->self->rank, sizeof(buf));
	while (!rnic_load64_relaxed(&odp_shared->over)) {
		uint64_t off = th_random(&state) % (len - sizeof(buf));
		int err = put(d, off, buf, sizeof(buf));

		th_check(!err || err == FI_EFAULT || err == FI_EKEYREJECTED);
		rnic_add64_relaxed(
			err ? &odp_shared->refused : &odp_shared->written, 1);
	}
}

/* The pages of the window go, one at a time, and the window goes round. */
static void replace_often(struct owner *o)
{
	struct odp_side *d = o->d;
	unsigned long n = th_rounds(400);

	for (unsigned long i = 0; i < n; i++) {
		unsigned char *p = d->p + (i % 20 + 6) * ODP_PAGE;

		if (i % 8 == 0)
			odp_written(d);
		if (i % 16 == 7)
			bind(o, OFF + i % 3 * ODP_PAGE, LEN, RK_RW);
		odp_watch_sentinel(d, p, odp_replace(d, p, ODP_PAGE));
	}
	odp_written(d);
	th_check(odp_stats(d).pages_invalidated > 0);
}

static void contract_R12_window_replaced(struct th_self *self)
{
	struct odp_side d;
	struct owner o;

	open_bound(&o, &d, self, OFF);
	if (self->rank)
		stream(&d, LEN);
	else
		replace_often(&o);
	odp_over(&d);
	close_all(&o, &d);
}

/* ---- I1: a window that moves over a region on demand ----------------------- */

enum { PLACES = 3, PLACE = 21 }; /* of the window; pages from one to the next */

/* Where the window was is ours at once, also if its pages are new. */
static void move_often(struct owner *o)
{
	struct odp_side *d = o->d;
	unsigned long n = th_rounds(600);

	for (unsigned long i = 0; i < n; i++) {
		unsigned char *was = d->p + i % PLACES * PLACE * ODP_PAGE;

		if (i % 4 == 0)
			odp_written(d);
		if (i % 8 == 3)
			th_ok(o->ops->invalidate_window(o->w));
		else
			bind(o, (i + 1) % PLACES * PLACE * ODP_PAGE, LEN,
			     RK_RW);
		if (i % 5 == 0)
			odp_replace(d, was, PLACE * ODP_PAGE);
		memset(was, ODP_SENTINEL, PLACE * ODP_PAGE);
		for (int k = 0; k < 3; k++)
			th_progress(&d->s);
		sched_yield();
		th_verify_byte(was, PLACE * ODP_PAGE, ODP_SENTINEL);
		if (i % 8 == 3)
			bind(o, (i + 1) % PLACES * PLACE * ODP_PAGE, LEN,
			     RK_RW);
	}
}

static void contract_I1_window_on_demand(struct th_self *self)
{
	struct odp_side d;
	struct owner o;

	open_bound(&o, &d, self, 0);
	if (self->rank)
		stream(&d, LEN);
	else
		move_often(&o);
	odp_over(&d);
	close_all(&o, &d);
}

/* ---- I5: a refresh of what is below ---------------------------------------- */

/* Pages that are dropped are the window's no more, and come by its touch. */
static void contract_I5_window_on_demand(struct th_self *self)
{
	unsigned char buf[2 * ODP_PAGE];
	struct odp_side d;
	struct owner o;

	open_bound(&o, &d, self, OFF);
	meet(&d, "bound");
	memset(buf, 1, sizeof(buf));
	if (self->rank)
		th_eq(put(&d, 0, buf, sizeof(buf)), 0);
	meet(&d, "written");
	if (!self->rank) {
		th_eq(odp_stats(&d).page_faults, 3);
		/* nothing tells of this but the refresh */
		th_eq(mprotect(d.p + 6 * ODP_PAGE, ODP_PAGE, PROT_READ), 0);
		th_ok(fi_mr_refresh(d.mr, NULL, 0, 0));
	}
	meet(&d, "refreshed");
	if (self->rank) {
		struct rk_outcome e = try_put(&d, WKEY, 0, buf, sizeof(buf));

		th_eq(e.err, FI_EFAULT);
		th_eq(e.moved, ODP_PAGE - 100);
		th_eq(get(&d, 0, buf, sizeof(buf)), 0);
	}
	meet(&d, "refused");
	if (!self->rank)
		th_eq(odp_stats(&d).page_faults, 6);
	close_all(&o, &d);
}

/* Refreshed without a pause, with a window onto it and onto another region. */
static void contract_I5_window_refreshed_often(struct th_self *self)
{
	unsigned long n = th_rounds(300);
	struct odp_side d;
	struct mixed x;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : odp_fresh(ODP_LEN), RK_RW);
	mixed_init(&x, &d, false);
	meet(&d, "bound");
	if (self->rank)
		stream(&d, MIXED_LEN);
	for (unsigned long i = 0; !self->rank && i < n; i++) {
		unsigned char *at = d.p + (i % 2 ? 1 : 9) * ODP_PAGE;

		if (i % 4 == 0)
			odp_written(&d);
		th_ok(fi_mr_refresh(i % 3 ? d.mr : x.plain, NULL, 0, 0));
		odp_replace(&d, at, ODP_PAGE);
		if (i % 16 == 1) {
			th_ok(x.o.ops->invalidate_window(x.o.w));
			mixed_bind(&x);
		}
	}
	odp_over(&d);
	mixed_fini(&x, &d);
}

/* ---- R12: watched ---------------------------------------------------------- */

/* Memory that is registered as it is; the monitor watches it. */
static void own_pinned(struct odp_side *d)
{
	d->p = odp_memory(d);
	d->mr = rk_reg(&d->s, d->p, ODP_LEN, RK_RW, RK_KEY);
}

/* A region is gone with its memory, and so are windows onto it. */
static void contract_R12_window_gone(struct th_self *self)
{
	unsigned char buf[ODP_PAGE];
	struct odp_side d;
	struct owner o;

	setenv("FI_SHRIMP_MONITOR", "uffd", 1);
	odp_open(&d, self);
	owner_init(&o, &d);
	memset(buf, 1, sizeof(buf));
	for (unsigned long i = 0; i < th_rounds(20); i++) {
		unsigned char *p;

		if (!self->rank) {
			own_pinned(&d);
			bind(&o, OFF, LEN, RK_RW);
		}
		meet(&d, "bound");
		if (self->rank)
			th_eq(put(&d, 0, buf, sizeof(buf)), 0);
		meet(&d, "written");
		/* in the window, or not */
		p = d.p + (i % 2 ? 6 : 40) * ODP_PAGE;
		if (!self->rank) {
			odp_replace(&d, p, ODP_PAGE);
			memset(p, ODP_SENTINEL, ODP_PAGE);
			odp_file_fill(&d, OFF - OFF % ODP_PAGE + ODP_PAGE);
			odp_lost(&d, i + 1);
		}
		meet(&d, "replaced");
		if (self->rank) {
			th_eq(put(&d, 0, buf, sizeof(buf)), FI_EFAULT);
			th_eq(put(&d, ODP_PAGE, buf, 8), FI_EFAULT);
		}
		meet(&d, "refused");
		if (!self->rank) {
			th_verify_byte(p, ODP_PAGE, ODP_SENTINEL);
			odp_file_verify(&d, OFF - OFF % ODP_PAGE + ODP_PAGE);
			/* nor is there anything to bind to */
			bind(&o, OFF, LEN, RK_RW);
		}
		meet(&d, "again");
		if (self->rank)
			th_eq(put(&d, 0, buf, 8), FI_EFAULT);
		meet(&d, "no more");
		if (!self->rank) {
			/* the same addresses, another translation */
			th_ok(fi_mr_refresh(d.mr, NULL, 0, 0));
		}
		meet(&d, "mended");
		if (self->rank)
			th_eq(put(&d, 0, buf, 8), 0);
		meet(&d, "used");
		if (!self->rank)
			th_ok(o.ops->invalidate_window(o.w));
		odp_disown(&d);
	}
	if (o.w)
		th_ok(fi_close(&o.w->fid));
	th_stack_close(&d.s);
}

/*
 * A window that is bound to nothing has nothing that the monitor could look
 * at: its region is gone, and its memory perhaps another object's. (Seen by
 * AddressSanitizer.)
 */
static void contract_R12_window_of_nothing(struct th_self *self)
{
	unsigned char *other = rk_pages(ODP_PAGE), buf[8] = { 1 };
	struct fid_mr *mr;
	struct odp_side d;
	struct owner o;

	setenv("FI_SHRIMP_MONITOR", "uffd", 1);
	odp_open(&d, self);
	owner_init(&o, &d);
	mr = rk_reg(&d.s, other, ODP_PAGE, RK_RW, PLAIN_KEY);
	own_pinned(&d);
	bind(&o, OFF, LEN, RK_RW);
	th_eq(put(&d, 0, buf, sizeof(buf)), 0);
	th_ok(o.ops->invalidate_window(o.w));
	th_ok(fi_close(&d.mr->fid));
	d.mr = NULL;
	rk_take_away(other, ODP_PAGE);
	odp_lost(&d, 1);
	th_ok(fi_close(&mr->fid));
	munmap(other, ODP_PAGE);
	close_all(&o, &d);
}

/* Of a window onto several regions only what has gone is gone. */
static void contract_R12_window_half_gone(struct th_self *self)
{
	unsigned char buf[ODP_PAGE];
	struct fi_shrimp_mr_part p[2] = { { NULL, 10, 100 },
					  { NULL, 20, 100 } };
	unsigned char *other = NULL;
	struct rk_outcome e;
	struct odp_side d;
	struct owner o;

	setenv("FI_SHRIMP_MONITOR", "uffd", 1);
	odp_open(&d, self);
	owner_init(&o, &d);
	memset(buf, 1, sizeof(buf));
	if (!self->rank) {
		own_pinned(&d);
		other = rk_pages(ODP_PAGE);
		p[0].mr = rk_reg(&d.s, other, ODP_PAGE, RK_RW, PLAIN_KEY);
		p[1].mr = d.mr;
		post_reg(&o, p, 2, NULL);
		th_tx_ok(&d.s);
	}
	meet(&d, "bound");
	if (self->rank)
		th_eq(put(&d, 0, buf, 200), 0);
	meet(&d, "written");
	if (!self->rank) {
		odp_replace(&d, d.p, ODP_PAGE);
		odp_lost(&d, 1);
	}
	meet(&d, "replaced");
	if (self->rank) {
		e = try_put(&d, WKEY, 0, buf, 200);
		th_eq(e.err, FI_EFAULT);
		th_eq(e.moved, 100);
		th_eq(put(&d, 0, buf, 100), 0);
		th_eq(put(&d, 100, buf, 1), FI_EFAULT);
	}
	meet(&d, "refused");
	if (!self->rank) {
		th_verify_byte(d.p, ODP_PAGE, 0);
		th_ok(o.ops->invalidate_window(o.w));
		th_ok(fi_close(&p[0].mr->fid));
		munmap(other, ODP_PAGE);
	}
	close_all(&o, &d);
}

/* A window onto memory that is replaced under those who write through it. */
static void unmap_once(struct owner *o, unsigned long i)
{
	struct odp_side *d = o->d;
	unsigned char *at;

	own_pinned(d);
	at = d->p + (6 + i % 16) * ODP_PAGE;
	bind(o, OFF, LEN, RK_RW);
	odp_written(d);
	if (i % 2)
		odp_replace(d, at, ODP_PAGE);
	else
		odp_replace(d, d->p, ODP_LEN);
	memset(at, ODP_SENTINEL, ODP_PAGE);
	odp_file_fill(d, (size_t)(at - d->p));
	if (i % 4 == 0)
		bind(o, OFF, LEN, RK_RW);
	for (int k = 0; k < 20; k++)
		th_verify_byte(at, ODP_PAGE, ODP_SENTINEL);
	odp_file_verify(d, (size_t)(at - d->p));
	th_ok(o->ops->invalidate_window(o->w));
	th_ok(fi_close(&d->mr->fid));
	d->mr = NULL;
	th_eq(munmap(d->p, ODP_LEN), 0);
	d->p = NULL;
}

static void contract_R12_window_under_streams(struct th_self *self)
{
	struct odp_side d;
	struct owner o;

	setenv("FI_SHRIMP_MONITOR", "uffd", 1);
	odp_open(&d, self);
	owner_init(&o, &d);
	if (self->rank)
		stream(&d, LEN);
	for (unsigned long i = 0; !self->rank && i < th_rounds(150); i++)
		unmap_once(&o, i);
	odp_over(&d);
	close_all(&o, &d);
}

/* ---- table ----------------------------------------------------------------- */

static struct odp_how no_cma = { .cma = "off" };
static struct odp_how unpinned = { .pin = "off" };
static struct odp_how unpinned_no_cma = { .cma = "off", .pin = "off" };
static struct odp_how unwatched = { .monitor = "off" };
static struct odp_how file = { .file = true };
static struct odp_how file_pages = { .file = true, .mtt = "pages" };

static const struct CMUnitTest windows_odp[] = {
	TH_CASE(contract_W1_on_demand, 2, 20),
	ODP_CASE(contract_W1_on_demand, 2, 20, no_cma),
	ODP_CASE(contract_W1_on_demand, 2, 20, unwatched),
	TH_CASE(contract_R11_window_unmapped, 2, 20),
	TH_CASE(contract_W1_on_demand_deep, 2, 20),
	TH_CASE(contract_W1_on_demand_and_device, 2, 20),
	TH_CASE(contract_W1_on_demand_and_private, 2, 20),
	ODP_CASE(contract_W1_on_demand_and_private, 2, 20, no_cma),
	TH_CASE(contract_W1_on_demand_and_pages, 2, 20),
	TH_CASE(contract_W1_on_demand_own, 1, 20),
	TH_CASE(contract_W1_on_demand_costs_nothing, 1, 60),
	ODP_CASE(contract_R12_window_replaced, STREAMERS + 1, 60, unpinned),
	ODP_CASE(contract_R12_window_replaced, STREAMERS + 1, 60,
		 unpinned_no_cma),
	ODP_CASE(contract_I1_window_on_demand, STREAMERS + 1, 60, unpinned),
	TH_CASE(contract_I5_window_on_demand, 2, 20),
	ODP_CASE(contract_I5_window_refreshed_often, STREAMERS + 1, 60,
		 unpinned),
	TH_CASE(contract_R12_window_gone, 2, 30),
	ODP_CASE(contract_R12_window_gone, 2, 30, file),
	ODP_CASE(contract_R12_window_gone, 2, 30, file_pages),
	TH_CASE(contract_R12_window_of_nothing, 1, 20),
	ODP_CASE(contract_R12_window_of_nothing, 1, 20, file),
	TH_CASE(contract_R12_window_half_gone, 2, 20),
	ODP_CASE(contract_R12_window_half_gone, 2, 20, file),
	TH_CASE(contract_R12_window_under_streams, STREAMERS + 1, 60),
	ODP_CASE(contract_R12_window_under_streams, STREAMERS + 1, 60, file),
};

int main(int argc, char **argv)
{
	return odp_main(argc, argv, "windows_odp", windows_odp,
			sizeof(windows_odp) / sizeof(*windows_odp));
}
