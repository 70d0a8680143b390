/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What a query tells of regions and windows whose translation is not all there:
 * absent pages (contract R11), memory that was unmapped (R12), refreshes that
 * failed (I5); and of pins (R4). Other queries are in mr_life.c.
 */
#define _GNU_SOURCE
#include "odp_kit.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

enum {
	PIECES = 8,	/* at most, of all that is asked for */
	PLAIN_KEY = 90, /* of another region */
	WKEY = 500,	/* of windows */
	ASKED = 20,	/* times, of a large region */
	ASKED_MS = 200, /* of CPU time, for all of them */
	/* of a live region and a window */
	REGION = FI_SHRIMP_MR_LIVE | FI_SHRIMP_MR_OFFSET | FI_SHRIMP_MR_GIVEN,
	WINDOW = REGION | FI_SHRIMP_MR_WINDOW,
};

/* An answer. */
struct told {
	struct fi_shrimp_mr_info f;
	struct fi_shrimp_mr_piece pc[PIECES];
	size_t n; /* pieces */
};

static struct told ask(struct odp_side *d, struct fid_mr *mr)
{
	struct fi_shrimp_mr_info f = { .size = sizeof(f) };
	struct told t = { .f = f, .n = PIECES };

	th_ok(rk_mr_ops(&d->s)->query(mr, &t.f, t.pc, &t.n));
	th_check(t.n <= PIECES);
	/* pieces or not, the rest is the same */
	th_ok(rk_mr_ops(&d->s)->query(mr, &f, NULL, NULL));
	th_check(!memcmp(&f, &t.f, sizeof(f)));
	return t;
}

static void has_leaves(const struct told *t, uint64_t extents, uint64_t pages)
{
	th_eq(t->f.leaves[FI_SHRIMP_LEAF_EXTENT], extents);
	th_eq(t->f.leaves[FI_SHRIMP_LEAF_4K], pages);
	th_eq(t->f.leaves[FI_SHRIMP_LEAF_2M], 0);
	th_eq(t->f.leaves[FI_SHRIMP_LEAF_1G], 0);
}

/* Piece @i has bytes that nobody reaches: absent or gone. */
static void is_nothing(const struct told *t, size_t i, const void *at,
		       uint64_t len, uint32_t state)
{
	const struct fi_shrimp_mr_piece *p = &t->pc[i];

	th_check(i < t->n);
	th_eq(p->addr, (uintptr_t)at);
	th_eq(p->len, len);
	th_eq(p->state, state);
	th_eq(p->leaf, 0);
	th_eq(p->space, -1);
	th_eq(p->node, -FI_ENOSYS);
}

/* Piece @i has bytes that are reached by address; @pins: they are locked. */
static void is_there(const struct told *t, size_t i, const void *at,
		     uint64_t len, bool pins)
{
	const struct fi_shrimp_mr_piece *p = &t->pc[i];
	uint32_t state = p->node >= 0 ? FI_SHRIMP_PIECE_PRESENT : 0;

	if (pins)
		state = FI_SHRIMP_PIECE_PINNED | FI_SHRIMP_PIECE_PRESENT;
	th_check(i < t->n);
	th_eq(p->addr, (uintptr_t)at);
	th_eq(p->len, len);
	th_eq(p->state, state);
	th_eq(p->space, -1);
}

static struct fid_mr *window_new(struct odp_side *d)
{
	struct fid_mr *w;

	th_ok(rk_mr_ops(&d->s)->window(&d->s.domain->fid, NULL, &w));
	return w;
}

/* Binds @w to bytes @off, @len of @mr. */
static void bind(struct odp_side *d, struct fid_mr *w, struct fid_mr *mr,
		 uint64_t off, uint64_t len)
{
	struct fi_shrimp_mr_part p = { mr, off, len };

	th_ok(rk_mr_ops(&d->s)->bind_window(w, &p, RK_RW, WKEY));
}

/* The flag of what is wholly locked, if it is. */
static uint32_t pinned(bool pins)
{
	return pins ? FI_SHRIMP_MR_PINNED : 0;
}

static void touch(struct odp_side *d, uint64_t off)
{
	unsigned char buf[8] = { 1 };

	odp_put_done(d, buf, sizeof(buf), off);
}

/* ---- R11: absent pages ------------------------------------------------------ */

/* Pages 4 to 6, of which only 5 is there, and that alone. */
static void told_by_window(struct odp_side *d, bool pins)
{
	struct fid_mr *w = window_new(d);
	struct told t;

	bind(d, w, d->mr, 4 * ODP_PAGE + 100, 2 * ODP_PAGE);
	t = ask(d, w);
	th_eq(t.f.flags, WINDOW | FI_SHRIMP_MR_ON_DEMAND);
	has_leaves(&t, 0, 1);
	th_eq(t.n, 3);
	is_nothing(&t, 0, d->p + 4 * ODP_PAGE + 100, ODP_PAGE - 100,
		   FI_SHRIMP_PIECE_ABSENT);
	is_there(&t, 1, d->p + 5 * ODP_PAGE, ODP_PAGE, pins);
	is_nothing(&t, 2, d->p + 6 * ODP_PAGE, 100, FI_SHRIMP_PIECE_ABSENT);
	bind(d, w, d->mr, 5 * ODP_PAGE + 1, 70);
	t = ask(d, w);
	th_eq(t.f.flags, WINDOW | FI_SHRIMP_MR_ON_DEMAND | pinned(pins));
	th_eq(t.n, 1);
	is_there(&t, 0, d->p + 5 * ODP_PAGE + 1, 70, pins);
	th_ok(fi_close(&w->fid));
}

/* Three pages of 64 have been touched; then all of them. */
static void contract_R11_told(struct th_self *self)
{
	const uint32_t flags = REGION | FI_SHRIMP_MR_ON_DEMAND;
	size_t locked;
	struct odp_side d;
	struct told t;
	bool pins;

	odp_open(&d, self);
	odp_own(&d, odp_fresh(ODP_LEN), RK_RW);
	locked = rk_locked();
	t = ask(&d, d.mr);
	has_leaves(&t, 0, 0);
	th_eq(t.n, 1);
	is_nothing(&t, 0, d.p, ODP_LEN, FI_SHRIMP_PIECE_ABSENT);
	touch(&d, 0);
	touch(&d, 5 * ODP_PAGE);
	touch(&d, ODP_LEN - 8);
	pins = rk_locked() == locked + 3 * ODP_PAGE;
	t = ask(&d, d.mr);
	th_eq(t.f.flags, flags);
	th_eq(t.f.faults, 3);
	has_leaves(&t, 0, 3);
	th_eq(t.n, 5);
	is_there(&t, 0, d.p, ODP_PAGE, pins);
	th_eq(t.pc[0].leaf, 12);
	is_nothing(&t, 1, d.p + ODP_PAGE, 4 * ODP_PAGE, FI_SHRIMP_PIECE_ABSENT);
	is_there(&t, 2, d.p + 5 * ODP_PAGE, ODP_PAGE, pins);
	is_nothing(&t, 3, d.p + 6 * ODP_PAGE, 57 * ODP_PAGE,
		   FI_SHRIMP_PIECE_ABSENT);
	is_there(&t, 4, d.p + 63 * ODP_PAGE, ODP_PAGE, pins);
	told_by_window(&d, pins);
	th_ok(rk_mr_ops(&d.s)->advise(d.mr, 0, ODP_LEN,
				      FI_SHRIMP_PREFETCH_WRITE));
	t = ask(&d, d.mr);
	th_eq(t.f.flags, flags | pinned(pins));
	has_leaves(&t, 0, ODP_PAGES);
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* CPU time of this thread. */
static uint64_t cpu_ms(void)
{
	struct timespec ts;

	th_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* What is absent costs nothing to tell of, be it 64 GiB. */
static void contract_R11_told_at_once(struct th_self *self)
{
	const size_t len = (size_t)64 << 30, mid = len / 2;
	uint64_t began;
	struct odp_side d;
	struct fid_mr *w;
	struct told t;
	unsigned char *p;

	odp_open(&d, self);
	p = mmap(NULL, len, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	th_check(p != MAP_FAILED);
	th_eq(mprotect(p + mid, ODP_PAGE, PROT_READ | PROT_WRITE), 0);
	th_ok(odp_reg(&d, p, len, RK_RW, &d.mr));
	w = window_new(&d);
	bind(&d, w, d.mr, 0, len);
	t = ask(&d, d.mr);
	has_leaves(&t, 0, 0);
	th_eq(t.n, 1);
	is_nothing(&t, 0, p, len, FI_SHRIMP_PIECE_ABSENT);
	touch(&d, mid);
	began = cpu_ms();
	for (int i = 0; i < ASKED; i++) {
		t = ask(&d, i % 2 ? w : d.mr);
		has_leaves(&t, 0, 1);
		th_eq(t.n, 3);
		is_nothing(&t, 0, p, mid, FI_SHRIMP_PIECE_ABSENT);
		th_eq(t.pc[1].len, ODP_PAGE);
		is_nothing(&t, 2, p + mid + ODP_PAGE, mid - ODP_PAGE,
			   FI_SHRIMP_PIECE_ABSENT);
	}
	th_check(cpu_ms() - began < ASKED_MS);
	th_ok(fi_close(&w->fid));
	th_ok(fi_close(&d.mr->fid));
	munmap(p, len);
	th_stack_close(&d.s);
}

/* Pages of a region on demand that go are absent; so it is live. */
static void contract_R12_told_of_pages(struct th_self *self)
{
	struct odp_side d;
	struct told t;

	odp_open(&d, self);
	odp_own(&d, odp_fresh(ODP_LEN), RK_RW);
	touch(&d, 5 * ODP_PAGE);
	t = ask(&d, d.mr);
	has_leaves(&t, 0, 1);
	odp_replace(&d, d.p + 5 * ODP_PAGE, ODP_PAGE);
	odp_invalidated(&d, 1);
	t = ask(&d, d.mr);
	th_eq(t.f.flags, REGION | FI_SHRIMP_MR_ON_DEMAND);
	th_eq(t.f.invalidated, 1);
	has_leaves(&t, 0, 0);
	th_eq(t.n, 1);
	is_nothing(&t, 0, d.p, ODP_LEN, FI_SHRIMP_PIECE_ABSENT);
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* ---- other regions ------------------------------------------------------------ */

/* A region that is registered as it is, a window of it and of others. */
struct plain {
	struct odp_side d;   /* its process; the region is on demand */
	unsigned char *p;    /* ODP_LEN bytes, of @mr */
	struct fid_mr *mr;   /* two ranges: the first page, all but that */
	struct fid_mr *w;    /* onto bytes of @mr alone */
	struct fid_mr *both; /* 100 bytes of each region */
	bool pins;	     /* @mr is locked */
};

static void plain_open(struct plain *x, struct th_self *self)
{
	struct fi_shrimp_mr_part part[2] = { { NULL, 10, 100 },
					     { NULL, ODP_PAGE + 20, 100 } };
	struct iovec v[2];
	size_t locked;

	odp_open(&x->d, self);
	odp_own(&x->d, odp_fresh(ODP_LEN), RK_RW);
	x->p = odp_fresh(ODP_LEN);
	v[0] = (struct iovec){ x->p, ODP_PAGE };
	v[1] = (struct iovec){ x->p + ODP_PAGE, ODP_LEN - ODP_PAGE };
	locked = rk_locked();
	th_ok(fi_mr_regv(x->d.s.domain, v, 2, RK_RW, 0, PLAIN_KEY, 0, &x->mr,
			 NULL));
	x->pins = rk_locked() == locked + ODP_LEN;
	x->w = window_new(&x->d);
	bind(&x->d, x->w, x->mr, ODP_PAGE - 50, 100);
	x->both = window_new(&x->d);
	part[0].mr = x->d.mr;
	part[1].mr = x->mr;
	th_ok(rk_mr_ops(&x->d.s)->post_reg(x->d.s.ep, x->both, part, 2, RK_RW,
					   WKEY + 1, 0, NULL));
	th_tx_ok(&x->d.s);
}

static void plain_close(struct plain *x)
{
	th_ok(fi_close(&x->both->fid));
	th_ok(fi_close(&x->w->fid));
	th_ok(fi_close(&x->mr->fid));
	munmap(x->p, ODP_LEN);
	odp_disown(&x->d);
	th_stack_close(&x->d.s);
}

/* All of it is there; the region on demand has nothing. */
static void plain_told(struct plain *x)
{
	struct told t = ask(&x->d, x->mr);
	uint32_t pins = pinned(x->pins);

	th_eq(t.f.flags, REGION | FI_SHRIMP_MR_LIST | pins);
	has_leaves(&t, 2, 0);
	t = ask(&x->d, x->w);
	th_eq(t.f.flags, WINDOW | FI_SHRIMP_MR_LIST | pins);
	has_leaves(&t, 2, 0);
	is_there(&t, 0, x->p + ODP_PAGE - 50, t.pc[0].len, x->pins);
	t = ask(&x->d, x->both);
	th_eq(t.f.flags, WINDOW | FI_SHRIMP_MR_LIST | FI_SHRIMP_MR_ON_DEMAND);
	has_leaves(&t, 1, 0);
	th_eq(t.n, 2);
	is_nothing(&t, 0, x->d.p + 10, 100, FI_SHRIMP_PIECE_ABSENT);
	is_there(&t, 1, x->p + ODP_PAGE + 20, 100, x->pins);
}

/* R4: what a window has is locked if its regions have locked it. */
static void contract_R4_told_by_windows(struct th_self *self)
{
	struct plain x;

	plain_open(&x, self);
	plain_told(&x);
	plain_close(&x);
}

/* The memory of a region is gone: so is what windows have of it. */
static void plain_gone(struct plain *x)
{
	const uint32_t no_more = ~(uint32_t)FI_SHRIMP_MR_LIVE;
	struct told t = ask(&x->d, x->mr);

	th_eq(t.f.flags,
	      (REGION | FI_SHRIMP_MR_LIST | FI_SHRIMP_MR_GONE) & no_more);
	has_leaves(&t, 0, 0);
	th_eq(t.n, 1);
	is_nothing(&t, 0, x->p, ODP_LEN, FI_SHRIMP_PIECE_GONE);
	t = ask(&x->d, x->w);
	th_eq(t.f.flags,
	      (WINDOW | FI_SHRIMP_MR_LIST | FI_SHRIMP_MR_GONE) & no_more);
	has_leaves(&t, 0, 0);
	is_nothing(&t, 0, x->p + ODP_PAGE - 50, 100, FI_SHRIMP_PIECE_GONE);
	t = ask(&x->d, x->both);
	th_eq(t.f.flags, WINDOW | FI_SHRIMP_MR_LIST | FI_SHRIMP_MR_ON_DEMAND |
				 FI_SHRIMP_MR_GONE);
	has_leaves(&t, 0, 0);
	th_eq(t.n, 2);
	is_nothing(&t, 0, x->d.p + 10, 100, FI_SHRIMP_PIECE_ABSENT);
	is_nothing(&t, 1, x->p + ODP_PAGE + 20, 100, FI_SHRIMP_PIECE_GONE);
}

static void contract_R12_told(struct th_self *self)
{
	struct plain x;
	struct told t;

	setenv("FI_SHRIMP_MONITOR", "uffd", 1);
	plain_open(&x, self);
	plain_told(&x);
	odp_replace(&x.d, x.p + 40 * ODP_PAGE, ODP_PAGE);
	odp_lost(&x.d, 1);
	plain_gone(&x);
	/* one that comes later, of one range */
	bind(&x.d, x.w, x.mr, 3, 40);
	t = ask(&x.d, x.w);
	th_eq(t.f.flags, (WINDOW | FI_SHRIMP_MR_GONE) & ~FI_SHRIMP_MR_LIVE);
	is_nothing(&t, 0, x.p + 3, 40, FI_SHRIMP_PIECE_GONE);
	bind(&x.d, x.w, x.mr, ODP_PAGE - 50, 100);
	th_ok(fi_mr_refresh(x.mr, NULL, 0, 0));
	plain_told(&x);
	plain_close(&x);
}

/* A refresh that failed leaves keys without a meaning. */
static void contract_I5_told(struct th_self *self)
{
	struct plain x;

	plain_open(&x, self);
	rk_take_away(x.p + 2 * ODP_PAGE, ODP_PAGE);
	th_eq(fi_mr_refresh(x.mr, NULL, 0, 0), -FI_EFAULT);
	th_check(!(ask(&x.d, x.mr).f.flags & FI_SHRIMP_MR_LIVE));
	th_check(!(ask(&x.d, x.w).f.flags & FI_SHRIMP_MR_LIVE));
	th_check(!(ask(&x.d, x.both).f.flags & FI_SHRIMP_MR_LIVE));
	rk_map_again(x.p + 2 * ODP_PAGE, ODP_PAGE);
	th_ok(fi_mr_refresh(x.mr, NULL, 0, 0));
	plain_told(&x);
	plain_close(&x);
}

/* Both regions are refreshed, and pages of one come and go. */
static void *change(void *arg)
{
	struct plain *x = arg;
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(&x->d.s);

	while (!rnic_load64_relaxed(&odp_shared->over)) {
		th_ok(ops->advise(x->d.mr, 0, ODP_LEN,
				  FI_SHRIMP_PREFETCH_WRITE));
		/* the monitor may be in a round, which a refresh waits for */
		odp_replace(&x->d, x->d.p, ODP_PAGE);
		th_ok(fi_mr_refresh(x->mr, NULL, 0, 0));
		odp_replace(&x->d, x->d.p + ODP_PAGE, ODP_PAGE);
		th_ok(fi_mr_refresh(x->d.mr, NULL, 0, 0));
	}
	return NULL;
}

/* Windows were asked for so often. */
struct asked {
	unsigned long told; /* with an answer */
	unsigned long busy; /* a region was being refreshed */
};

/* Asks for window @w of @len bytes, whose regions change meanwhile. */
static void ask_amid(struct plain *x, struct fid_mr *w, uint64_t len,
		     struct asked *a)
{
	struct fi_shrimp_mr_piece pc[PIECES];
	size_t n = PIECES;
	uint64_t sum = 0;
	int ret = rk_mr_ops(&x->d.s)->query(w, NULL, pc, &n);

	if (ret == -FI_EBUSY) {
		a->busy++;
		return;
	}
	th_ok(ret);
	th_check(n <= PIECES);
	for (size_t i = 0; i < n; i++)
		sum += pc[i].len;
	th_eq(sum, len);
	a->told++;
}

/* Windows are asked for while another thread changes what is below them. */
static void contract_I5_told_amid_refreshes(struct th_self *self)
{
	struct th_deadline dl = th_patience();
	struct asked a = { 0 };
	struct plain x;
	pthread_t t;

	rnic_store64_relaxed(&odp_shared->over, 0);
	setenv("FI_SHRIMP_MONITOR", "uffd", 1);
	plain_open(&x, self);
	th_eq(pthread_create(&t, NULL, change, &x), 0);
	while (a.told < th_rounds(1000) || a.busy < th_rounds(10)) {
		th_check(!th_expired(&dl));
		ask_amid(&x, x.w, 100, &a);
		ask_amid(&x, x.both, 200, &a);
	}
	rnic_store64_relaxed(&odp_shared->over, 1);
	th_eq(pthread_join(t, NULL), 0);
	plain_close(&x);
}

static struct odp_how unpinned = { .pin = "off" };

static const struct CMUnitTest mr_query[] = {
	TH_CASE(contract_R11_told, 1, 20),
	ODP_CASE(contract_R11_told, 1, 20, unpinned),
	TH_CASE(contract_R11_told_at_once, 1, 20),
	TH_CASE(contract_R12_told_of_pages, 1, 20),
	TH_CASE(contract_R4_told_by_windows, 1, 20),
	ODP_CASE(contract_R4_told_by_windows, 1, 20, unpinned),
	TH_CASE(contract_R12_told, 1, 20),
	TH_CASE(contract_I5_told, 1, 20),
	TH_CASE(contract_I5_told_amid_refreshes, 1, 60),
};

int main(int argc, char **argv)
{
	return odp_main(argc, argv, "mr_query", mr_query,
			sizeof(mr_query) / sizeof(*mr_query));
}
