/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Memory windows and fast registration: what their keys reach, what they do
 * not, and when they stop to.
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env_probe.h"

enum {
	LEN = 8 * RK_PAGE, /* bytes of a region */
	WKEY = 500,	   /* key of a window, where it is ours to choose */
};

/* What the processes of a test see. */
struct shared {
	_Atomic bool over;     /* time is up */
	_Atomic uint64_t good; /* operations that succeeded */
	_Atomic uint64_t bad;  /* and that did not */
};

static struct shared *shared;

/* Two endpoints, and what the second one owns. */
struct bed {
	struct th_stack a, b;	      /* initiator, owner */
	struct fi_ops_shrimp_mr *ops; /* of the owner's domain */
	struct rk_mem m;	      /* its memory */
	struct fid_mr *mr;	      /* registered, all rights */
	struct fid_mr *w;	      /* a window, not bound */
	bool prov_key;		      /* keys are the provider's */
};

static void bed_open(struct bed *b, bool device, bool prov_key)
{
	struct th_stack_opts o = rk_opts();

	*b = (struct bed){ .prov_key = prov_key };

	if (prov_key) {
		setenv("FI_SHRIMP_MR_MODE", "prov_key", 1);
		o.mr_mode |= FI_MR_PROV_KEY;
	}
	th_pair_open(&b->a, &b->b, &o);
	b->ops = rk_mr_ops(&b->b);
	b->m = rk_mem_new(&b->b, device, LEN);
	b->mr = rk_reg(&b->b, b->m.p, LEN, RK_ALL, RK_KEY);
	th_ok(b->ops->window(&b->b.domain->fid, &shared, &b->w));
}

static void bed_free(struct bed *b)
{
	if (b->w)
		th_ok(fi_close(&b->w->fid));
	if (b->mr)
		th_ok(fi_close(&b->mr->fid));
	rk_mem_free(&b->m);
	th_pair_close(&b->a, &b->b);
}

static int bind(struct bed *b, uint64_t off, uint64_t len, uint64_t access)
{
	struct fi_shrimp_mr_part p = { b->mr, off, len };

	return b->ops->bind_window(b->w, &p, access, WKEY);
}

static int write_at(struct bed *b, uint64_t key, uint64_t addr, size_t len,
		    unsigned char byte)
{
	return rk_write_at(&b->a, key, addr, len, byte);
}

/* How a read of @len bytes at @addr of @key by the initiator ends. */
static int read_at(struct bed *b, uint64_t key, uint64_t addr, size_t len)
{
	static unsigned char buf[LEN];

	th_ok(fi_read(b->a.ep, buf, len, NULL, b->a.peers[1], addr, key, buf));
	return rk_end(&b->a).err;
}

/* ---- W1: range and rights --------------------------------------------------- */

/* The window is bytes 100 to 5100 of the region, to be written. */
static void use_window(struct bed *b)
{
	uint64_t key = fi_mr_key(b->w);

	th_check(key != FI_KEY_NOTAVAIL && key != fi_mr_key(b->mr));
	if (!b->prov_key)
		th_eq(key, WKEY);
	memset(b->m.p, 0, LEN);
	th_eq(write_at(b, key, 0, 5000, 7), 0);
	th_verify_byte(b->m.p, 100, 0);
	th_verify_byte(b->m.p + 100, 5000, 7);
	th_verify_byte(b->m.p + 5100, LEN - 5100, 0);
	th_eq(write_at(b, key, 4999, 1, 8), 0);
	th_eq(b->m.p[5099], 8);
	th_eq(write_at(b, key, 4999, 2, 9), FI_EINVAL);
	th_eq(write_at(b, key, 5001, 1, 9), FI_EINVAL);
	th_eq(write_at(b, key, UINT64_MAX - 99, 1, 9), FI_EINVAL);
	th_eq(read_at(b, key, 0, 8), FI_EACCES);
	th_verify_byte(b->m.p, 100, 0);
	th_verify_byte(b->m.p + 5100, LEN - 5100, 0);
}

static void w1_run(bool device, bool prov_key)
{
	struct bed b;
	uint64_t key;

	bed_open(&b, device, prov_key);
	th_eq(fi_mr_key(b.w), FI_KEY_NOTAVAIL);
	th_eq(b.w->fid.fclass, FI_CLASS_MR);
	th_ptr_eq(b.w->fid.context, &shared);
	th_ok(bind(&b, 100, 5000, FI_REMOTE_WRITE));
	use_window(&b);
	key = fi_mr_key(b.w);
	th_ok(b.ops->invalidate_window(b.w));
	th_eq(fi_mr_key(b.w), FI_KEY_NOTAVAIL);
	th_eq(write_at(&b, key, 0, 1, 9), FI_EKEYREJECTED);
	/* the region is as it was */
	th_eq(write_at(&b, fi_mr_key(b.mr), 0, LEN, 1), 0);
	/* bound anew, then while it is bound; the last byte of the region */
	th_ok(bind(&b, 0, LEN, FI_REMOTE_READ));
	th_eq(read_at(&b, fi_mr_key(b.w), 0, LEN), 0);
	th_ok(bind(&b, LEN - 1, 1, RK_RW));
	th_eq(read_at(&b, fi_mr_key(b.w), 0, 1), 0);
	th_eq(read_at(&b, fi_mr_key(b.w), 0, 2), FI_EINVAL);
	if (prov_key)
		th_eq(read_at(&b, key, 0, 1), FI_EKEYREJECTED);
	key = fi_mr_key(b.w);
	th_ok(fi_close(&b.w->fid));
	b.w = NULL;
	th_eq(read_at(&b, key, 0, 1), FI_EKEYREJECTED);
	bed_free(&b);
}

static void contract_W1_device(struct th_self *self)
{
	(void)self;
	w1_run(true, false);
}

static void contract_W1_private(struct th_self *self)
{
	(void)self;
	w1_run(false, false);
}

static void contract_W1_provider_keys(struct th_self *self)
{
	(void)self;
	w1_run(true, true);
}

/* Regions with a leaf for each page: windows share their tables. */
static void contract_W1_pages(struct th_self *self)
{
	(void)self;
	setenv("FI_SHRIMP_MTT", "pages", 1);
	w1_run(true, false);
	w1_run(false, true);
}

/* Addressed by address: that of the window's first byte, and on. */
static void contract_W1_by_address(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct bed b = { .w = NULL };
	uint64_t at;

	(void)self;
	setenv("FI_SHRIMP_MR_MODE", "virt_addr", 1);
	o.mr_mode |= FI_MR_VIRT_ADDR;
	th_pair_open(&b.a, &b.b, &o);
	b.ops = rk_mr_ops(&b.b);
	b.m = rk_mem_new(&b.b, true, LEN);
	b.mr = rk_reg(&b.b, b.m.p, LEN, RK_ALL, RK_KEY);
	th_ok(b.ops->window(&b.b.domain->fid, NULL, &b.w));
	th_ok(bind(&b, 5000, 100, FI_REMOTE_WRITE));
	at = (uintptr_t)b.m.p + 5000;
	th_eq(write_at(&b, WKEY, at, 100, 3), 0);
	th_verify_byte(b.m.p + 5000, 100, 3);
	th_eq(write_at(&b, WKEY, at - 1, 1, 4), FI_EINVAL);
	th_eq(write_at(&b, WKEY, 0, 1, 4), FI_EINVAL);
	th_eq(write_at(&b, WKEY, at + 100, 1, 4), FI_EINVAL);
	bed_free(&b);
}

/* ---- W1: what is refused ------------------------------------------------------ */

/* Ranges, and rights, that are none of the region's. */
static void refused_parts(struct bed *b)
{
	th_eq(b->ops->invalidate_window(b->w), -FI_EINVAL);
	th_eq(bind(b, 0, 0, RK_RW), -FI_EINVAL);
	th_eq(bind(b, 0, LEN + 1, RK_RW), -FI_EINVAL);
	th_eq(bind(b, LEN, 1, RK_RW), -FI_EINVAL);
	th_eq(bind(b, 8, UINT64_MAX - 7, RK_RW), -FI_EINVAL);
	th_eq(bind(b, 0, 8, 0), -FI_EINVAL);
	th_eq(bind(b, 0, 8, UINT64_C(1) << 60), -FI_EINVAL);
}

/* Objects that are no region, or not one of the domain with such rights. */
static void refused_objects(struct bed *b)
{
	struct fi_shrimp_mr_part p = { NULL, 0, 8 };
	struct fid_mr *read_only =
		rk_reg(&b->b, b->m.p, LEN, FI_REMOTE_READ, 9);
	struct fid_mr *foreign = rk_reg(&b->a, b->m.p, LEN, RK_ALL, 9);
	struct fid_mr *w2;

	th_eq(b->ops->window(&b->b.ep->fid, NULL, &w2), -FI_EINVAL);
	th_eq(b->ops->bind_window(b->w, &p, FI_REMOTE_READ, 1), -FI_EINVAL);
	p.mr = read_only;
	th_eq(b->ops->bind_window(b->w, &p, FI_REMOTE_WRITE, 1), -FI_EINVAL);
	p.mr = foreign;
	th_eq(b->ops->bind_window(b->w, &p, FI_REMOTE_READ, 1), -FI_EINVAL);
	p.mr = (struct fid_mr *)b->b.ep;
	th_eq(b->ops->bind_window(b->w, &p, FI_REMOTE_READ, 1), -FI_EINVAL);
	th_eq(b->ops->bind_window(b->mr, &p, FI_REMOTE_READ, 1), -FI_EINVAL);
	/* a window is nothing to bind, enable or refresh */
	th_eq(fi_mr_bind(b->w, &b->b.ep->fid, 0), -FI_EINVAL);
	th_eq(fi_mr_enable(b->w), -FI_EINVAL);
	th_eq(b->ops->update(b->w, NULL), -FI_EINVAL);
	th_ok(fi_close(&read_only->fid));
	th_ok(fi_close(&foreign->fid));
}

/* What can never be right leaves it bound; a key that is taken does not. */
static void refused_keys(struct bed *b)
{
	struct fi_shrimp_mr_part p = { b->mr, 0, 8 };
	struct fid_mr *other;

	th_ok(b->ops->window(&b->b.domain->fid, NULL, &other));
	th_eq(b->ops->bind_window(b->w, &p, FI_REMOTE_READ, RK_KEY),
	      -FI_ENOKEY);
	th_eq(fi_mr_key(b->w), FI_KEY_NOTAVAIL);
	th_ok(bind(b, 0, 8, RK_RW));
	th_eq(bind(b, 0, LEN + 1, RK_RW), -FI_EINVAL);
	th_eq(write_at(b, WKEY, 0, 8, 1), 0);
	th_eq(b->ops->bind_window(other, &p, RK_RW, WKEY), -FI_ENOKEY);
	p.mr = b->w;
	th_eq(b->ops->bind_window(other, &p, FI_REMOTE_READ, 2), -FI_EINVAL);
	p.mr = b->mr;
	th_eq(b->ops->bind_window(b->w, &p, RK_RW, RK_KEY), -FI_ENOKEY);
	th_eq(fi_mr_key(b->w), FI_KEY_NOTAVAIL);
	th_eq(write_at(b, WKEY, 0, 8, 1), FI_EKEYREJECTED);
	th_ok(fi_close(&other->fid));
}

static void contract_W1_arguments(struct th_self *self)
{
	struct bed b;

	(void)self;
	bed_open(&b, true, false);
	refused_parts(&b);
	refused_objects(&b);
	refused_keys(&b);
	bed_free(&b);
}

/* A region with windows is not closed. */
static void contract_W1_region_is_busy(struct th_self *self)
{
	struct bed b;
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fid_eq *eq;

	bed_open(&b, false, false);
	(void)self;
	th_ok(fi_eq_open(b.b.fabric, &attr, &eq, NULL));
	th_ok(bind(&b, 0, 8, RK_RW));
	th_eq(fi_close(&b.mr->fid), -FI_EBUSY);
	th_eq(b.ops->close_async(b.mr, eq, NULL), -FI_EBUSY);
	th_eq(write_at(&b, RK_KEY, 0, LEN, 1), 0);
	th_eq(write_at(&b, WKEY, 0, 8, 1), 0);
	th_ok(b.ops->invalidate_window(b.w));
	th_ok(fi_close(&b.mr->fid));
	b.mr = NULL;
	th_eq(bind(&b, 0, 8, RK_RW), -FI_EINVAL);
	th_ok(fi_close(&eq->fid));
	bed_free(&b);
}

/* Over the ranges of a region of several. */
static void contract_W1_several_ranges(struct th_self *self)
{
	struct bed b;
	struct iovec iov[3] = { { NULL, 1000 },
				{ NULL, 2000 },
				{ NULL, 3000 } };
	struct fid_mr *whole;
	unsigned char *p;

	bed_open(&b, true, false);
	whole = b.mr;
	p = b.m.p;
	iov[0].iov_base = p + 10;
	iov[1].iov_base = p + RK_PAGE;
	iov[2].iov_base = p + 3 * RK_PAGE + 1;
	(void)self;
	th_ok(fi_mr_regv(b.b.domain, iov, 3, RK_RW, 0, 6, 0, &b.mr, NULL));
	/* within one of them */
	th_ok(bind(&b, 1100, 100, FI_REMOTE_WRITE));
	th_eq(write_at(&b, WKEY, 0, 100, 1), 0);
	th_verify_byte(p + RK_PAGE, 100, 0);
	th_verify_byte(p + RK_PAGE + 100, 100, 1);
	th_eq(write_at(&b, WKEY, 100, 1, 1), FI_EINVAL);
	/* over all three */
	th_ok(bind(&b, 900, 2200, FI_REMOTE_WRITE));
	memset(p, 0, LEN);
	th_eq(write_at(&b, WKEY, 0, 2200, 2), 0);
	th_verify_byte(p, 910, 0);
	th_verify_byte(p + 910, 100, 2);
	th_verify_byte(p + RK_PAGE, 2000, 2);
	th_verify_byte(p + 3 * RK_PAGE + 1, 100, 2);
	th_verify_byte(p + 3 * RK_PAGE + 101, 3000, 0);
	th_ok(b.ops->invalidate_window(b.w));
	th_ok(fi_close(&b.mr->fid));
	b.mr = whole;
	bed_free(&b);
}

enum {
	BLOCK = 100,	/* turns that are timed as one */
	TURN_NS = 5000, /* of four of W1's 0.1 and 0.15 us, on any machine */
};

/* A bind and a fast registration, and the end of both; @n times. */
static void turns(struct bed *b, unsigned long n)
{
	const struct fi_shrimp_mr_part two[2] = { { b->mr, 0, 8 },
						  { b->mr, 99, 8 } };

	for (unsigned long i = 0; i < n; i++) {
		th_ok(bind(b, i % 1000, 4096, RK_RW));
		th_ok(b->ops->invalidate_window(b->w));
		th_ok(b->ops->post_reg(b->b.ep, b->w, two, 2, RK_RW, WKEY, 0,
				       0));
		th_ok(b->ops->invalidate_window(b->w));
		th_tx_ok(&b->b);
	}
}

/*
 * Nothing is locked, nothing is left, and it is no matter of system calls: the
 * best of many blocks of turns, since others use the CPU, too.
 */
static void contract_W1_costs_nothing(struct th_self *self)
{
	unsigned long n = th_rounds(20000) / BLOCK + 2;
	uint64_t kib = 0, t, best = UINT64_MAX;
	struct bed b;
	size_t locked;

	bed_open(&b, false, false);
	locked = rk_locked();
	(void)self;
	for (unsigned long i = 0; i < n; i++) {
		if (i == n / 2)
			kib = probe_segment_kib("shrimp-tables");
		t = th_now_ns();
		turns(&b, BLOCK);
		t = (th_now_ns() - t) / BLOCK;
		best = t < best ? t : best;
	}
	printf("# %" PRIu64 " ns a turn at best\n", best);
	th_check(th_sanitized() || best < TURN_NS);
	th_eq(rk_locked(), locked);
	th_check(probe_segment_kib("shrimp-tables") <= kib + 512);
	bed_free(&b);
}

/* Keys of the provider do not come back, whoever has them. */
static void contract_I4_window_keys(struct th_self *self)
{
	enum { N = 9000, LAST = 200 };
	struct bed b;
	uint64_t *seen = calloc(N, sizeof(*seen));
	unsigned long n = th_rounds(N);

	bed_open(&b, true, true);
	(void)self;
	th_check(seen);
	for (unsigned long i = 0; i < n && i < N; i++) {
		th_ok(bind(&b, 0, 8, RK_RW));
		seen[i] = fi_mr_key(b.w);
		for (unsigned long k = i > LAST ? i - LAST : 0; k < i; k++)
			th_check(seen[k] != seen[i]);
		if (i % 7 == 0)
			th_eq(write_at(&b, seen[i], 0, 8, 1), 0);
		if (i)
			th_eq(read_at(&b, seen[i / 2], 0, 8), FI_EKEYREJECTED);
	}
	free(seen);
	bed_free(&b);
}

/* ---- I1, I5: a window that moves under a writer --------------------------------- */

enum {
	PLACES = 4,	       /* sub-ranges in turn */
	PLACE = 64 << 10,      /* bytes of each */
	GAP = RK_PAGE,	       /* bytes of no window between them */
	POISON = 0x5a,	       /* in the gaps */
	CLEAR = 0x11,	       /* where the window is not */
	SECONDS = 1,	       /* of each of these tests */
	STRIDE = PLACE + GAP,  /* from one to the next */
	ROOM = PLACES * STRIDE /* bytes of the region */
};

/* Writes all of what the key names, until told to stop. */
static void stream(struct th_stack *s)
{
	static unsigned char buf[PLACE];
	uint64_t state = 5;

	while (!atomic_load(&shared->over)) {
		size_t len = 8 + th_random(&state) % (PLACE - 8);
		struct rk_outcome e;

		memset(buf, (int)(0x80 | (th_random(&state) & 0x7f)), len);
		th_ok(fi_write(s->ep, buf, len, NULL, s->peers[0],
			       th_random(&state) % (PLACE - len + 1), WKEY,
			       buf));
		e = rk_end(s);
		th_check(!e.err || e.err == FI_EKEYREJECTED);
		atomic_fetch_add(e.err ? &shared->bad : &shared->good, 1);
	}
}

/* It has been written through the key, and the key was seen not to be there. */
static bool enough(void)
{
	return atomic_load(&shared->good) > 50 && atomic_load(&shared->bad);
}

/* Nothing but the place @at was written since it was cleared. */
static void check_places(const unsigned char *p, int at)
{
	for (int i = 0; i < PLACES; i++) {
		if (i != at)
			th_verify_byte(p + i * STRIDE, PLACE, CLEAR);
		th_verify_byte(p + i * STRIDE + PLACE, GAP, POISON);
	}
}

/* The window goes round; where it was nothing is written any more. */
static void move_window(struct th_stack *s, struct rk_mem *m)
{
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(s);
	struct fid_mr *mr = rk_reg(s, m->p, m->len, RK_RW, RK_KEY), *w;
	uint64_t end = th_now_ns() + UINT64_C(1000000) * rk_ms(SECONDS);
	struct th_deadline patience = th_patience();
	struct fi_shrimp_mr_part part = { mr, 0, PLACE };

	th_ok(ops->window(&s->domain->fid, NULL, &w));
	for (int i = 0;
	     th_now_ns() < end || (!enough() && !th_expired(&patience));
	     i = (i + 1) % PLACES) {
		part.off = (uint64_t)i * STRIDE;
		th_ok(ops->bind_window(w, &part, FI_REMOTE_WRITE, WKEY));
		/* the place before is ours again */
		memset(m->p + (i + PLACES - 1) % PLACES * STRIDE, CLEAR, PLACE);
		for (int k = 0; k < 3; k++)
			th_progress(s);
		sched_yield();
		check_places(m->p, i);
		if (i == 2)
			th_ok(ops->invalidate_window(w));
		if (i == 2)
			check_places(m->p, i);
	}
	atomic_store(&shared->over, true);
	th_ok(fi_close(&w->fid));
	memset(m->p, CLEAR, m->len);
	th_sleep_us(2000);
	th_verify_byte(m->p, m->len, CLEAR);
	th_ok(fi_close(&mr->fid));
}

static void moving(struct th_self *self, bool device)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack s;
	struct rk_mem m;

	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	if (!self->rank) {
		m = rk_mem_new(&s, device, ROOM);
		memset(m.p, POISON, ROOM);
		for (int i = 0; i < PLACES; i++)
			memset(m.p + i * STRIDE, CLEAR, PLACE);
		move_window(&s, &m);
		th_check(enough());
	} else {
		stream(&s);
	}
	th_barrier_progress(self, &s, "end");
	if (!self->rank) {
		rk_mem_free(&m);
		*shared = (struct shared){ .over = false };
	}
	th_stack_close(&s);
}

static void contract_I1_window_device(struct th_self *self)
{
	moving(self, true);
}

static void contract_I1_window_private(struct th_self *self)
{
	moving(self, false);
}

/* ---- I5: a window whose region changes ------------------------------------------- */

/*
 * The pages below region and window are those of two files in turn. Once the
 * refresh is over nothing is written to the file that was there before.
 */
static void change_pages(struct th_stack *s)
{
	int fd[2] = { rk_file_new(PLACE), rk_file_new(PLACE) };
	unsigned char *also[2] = { rk_file_map(fd[0], PLACE, NULL),
				   rk_file_map(fd[1], PLACE, NULL) };
	unsigned char *p = rk_file_map(fd[0], PLACE, NULL);
	uint64_t end = th_now_ns() + UINT64_C(1000000) * rk_ms(SECONDS);
	struct th_deadline patience = th_patience();
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(s);
	struct fid_mr *mr = rk_reg(s, p, PLACE, RK_RW, RK_KEY), *w;
	struct fi_shrimp_mr_part part = { mr, 0, PLACE };

	th_ok(ops->window(&s->domain->fid, NULL, &w));
	th_ok(ops->bind_window(w, &part, FI_REMOTE_WRITE, WKEY));
	for (int i = 1;
	     th_now_ns() < end || (!enough() && !th_expired(&patience));
	     i = !i) {
		rk_file_map(fd[i], PLACE, p);
		th_ok(fi_mr_refresh(mr, NULL, 0, 0));
		memset(also[!i], CLEAR, PLACE);
		th_progress(s);
		sched_yield();
		th_verify_byte(also[!i], PLACE, CLEAR);
	}
	atomic_store(&shared->over, true);
	th_ok(fi_close(&w->fid));
	th_ok(fi_close(&mr->fid));
	for (int i = 0; i < 2; i++) {
		munmap(also[i], PLACE);
		close(fd[i]);
	}
	munmap(p, PLACE);
}

static void contract_I5_window_follows(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack s;

	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	if (!self->rank)
		change_pages(&s);
	else
		stream(&s);
	th_barrier_progress(self, &s, "end");
	if (!self->rank)
		*shared = (struct shared){ .over = false };
	th_stack_close(&s);
}

/* A refresh that fails takes windows along; one that succeeds mends them. */
static void contract_I5_window_of_nothing(struct th_self *self)
{
	struct bed b;
	struct fi_shrimp_mr_part parts[2] = { { NULL, 0, 8 }, { NULL, 0, 8 } };
	struct fid_mr *mr, *w2;
	unsigned char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	bed_open(&b, false, false);
	parts[1].mr = b.mr;
	(void)self;
	mr = parts[0].mr = rk_reg(&b.b, p, LEN, RK_RW, 20);
	th_ok(b.ops->window(&b.b.domain->fid, NULL, &w2));
	th_ok(b.ops->bind_window(b.w, &parts[0], RK_RW, WKEY));
	th_ok(b.ops->post_reg(b.b.ep, w2, parts, 2, RK_RW, 21, 0, NULL));
	th_tx_ok(&b.b);
	th_eq(write_at(&b, 21, 0, 16, 1), 0);
	rk_take_away(p, LEN);
	th_eq(fi_mr_refresh(mr, NULL, 0, 0), -FI_EFAULT);
	th_eq(write_at(&b, 20, 0, 8, 1), FI_EKEYREJECTED);
	th_eq(write_at(&b, WKEY, 0, 8, 1), FI_EKEYREJECTED);
	th_eq(write_at(&b, 21, 8, 8, 1), FI_EKEYREJECTED);
	/* nobody else gets the keys, and nothing new is bound to it */
	th_eq(bind(&b, 0, 8, RK_RW), 0);
	th_eq(b.ops->bind_window(b.w, &parts[0], RK_RW, WKEY), -FI_EBUSY);
	/* of another region: w2 has no meaning still */
	th_ok(fi_mr_refresh(b.mr, NULL, 0, 0));
	th_eq(write_at(&b, 21, 8, 8, 1), FI_EKEYREJECTED);
	rk_map_again(p, LEN);
	th_ok(fi_mr_refresh(mr, NULL, 0, 0));
	th_eq(write_at(&b, 20, 0, 8, 2), 0);
	th_eq(write_at(&b, 21, 0, 16, 3), 0);
	th_verify_byte(p, 8, 3);
	th_verify_byte(b.m.p, 8, 3);
	th_ok(fi_close(&w2->fid));
	th_ok(fi_close(&mr->fid));
	munmap(p, LEN);
	bed_free(&b);
}

/* ---- W2 ------------------------------------------------------------------------------ */

/* The key is posted, then told; whoever is told uses it. */
static void contract_W2_in_order(struct th_self *self)
{
	enum { N = 500 };
	struct bed b;
	struct fi_shrimp_mr_part parts[2] = { { NULL, 100, 50 },
					      { NULL, 5000, 50 } };
	unsigned long n = th_rounds(N);

	bed_open(&b, true, true);
	parts[0].mr = parts[1].mr = b.mr;
	(void)self;
	for (unsigned long i = 0; i < n; i++) {
		uint64_t key, got = 0;

		memset(b.m.p, 0, 6000);
		th_ok(b.ops->post_reg(b.b.ep, b.w, parts, 2, RK_RW, 0, 0,
				      &parts));
		key = fi_mr_key(b.w);
		th_recv(&b.a, &got, 8, NULL);
		th_send(&b.b, b.b.peers[0], &key, 8, NULL);
		th_rx_ok(&b.a);
		th_eq(write_at(&b, got, 0, 100, 6), 0);
		th_verify_byte(b.m.p, 100, 0);
		th_verify_byte(b.m.p + 100, 50, 6);
		th_verify_byte(b.m.p + 150, 4850, 0);
		th_verify_byte(b.m.p + 5000, 50, 6);
		th_ok(b.ops->post_invalidate(b.b.ep, b.w, 0, &b));
		th_eq(write_at(&b, got, 0, 1, 6), FI_EKEYREJECTED);
		th_ptr_eq(th_tx_ok(&b.b).op_context, &parts);
		th_check(th_tx_ok(&b.b).flags & FI_SEND);
		th_eq(th_tx_ok(&b.b).flags, FI_SHRIMP_INVALIDATE);
	}
	bed_free(&b);
}

/* Nothing of it happens, nor completes. */
static void refused_posts(struct th_stack *a, struct th_stack *b,
			  struct fid_mr *w, struct fi_shrimp_mr_part *p)
{
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(b);

	/* it is bound */
	th_eq(ops->post_reg(b->ep, w, p, 1, RK_RW, 5, 0, NULL), -FI_EBUSY);
	th_eq(ops->post_reg(a->ep, w, p, 1, RK_RW, 5, 0, NULL), -FI_EINVAL);
	th_eq(ops->post_invalidate(b->ep, w, FI_INJECT, NULL), -FI_EINVAL);
	th_eq(ops->post_invalidate(b->ep, p->mr, 0, NULL), -FI_EINVAL);
	th_ok(ops->invalidate_window(w));
	th_eq(ops->post_invalidate(b->ep, w, 0, NULL), -FI_EINVAL);
	th_eq(ops->post_reg(b->ep, w, p, 17, RK_RW, 5, 0, NULL), -FI_EINVAL);
	th_eq(ops->post_reg(b->ep, w, p, 0, RK_RW, 5, 0, NULL), -FI_EINVAL);
	th_eq(ops->post_reg(b->ep, w, p, 1, RK_RW, RK_KEY, 0, NULL),
	      -FI_ENOKEY);
	th_quiet(b, 20);
	th_eq(fi_cntr_read(b->txcntr), 3);
	th_eq(fi_cntr_readerr(b->txcntr), 0);
}

/* Completions where they are asked for, and counters. */
static void contract_W2_completions(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct fi_shrimp_mr_part p = { NULL, 0, 8 };
	struct fi_ops_shrimp_mr *ops;
	struct fi_cq_tagged_entry e;
	struct th_stack a, b;
	struct fid_mr *w;
	struct rk_mem m;

	(void)self;
	o.tx_bind = FI_SELECTIVE_COMPLETION;
	o.cntrs = true;
	th_pair_open(&a, &b, &o);
	ops = rk_mr_ops(&b);
	m = rk_mem_new(&b, true, LEN);
	p.mr = rk_reg(&b, m.p, LEN, RK_ALL, RK_KEY);
	th_ok(ops->window(&b.domain->fid, NULL, &w));
	th_ok(ops->post_reg(b.ep, w, &p, 1, RK_RW, WKEY, 0, NULL));
	th_ok(ops->post_invalidate(b.ep, w, FI_FENCE, NULL));
	th_quiet(&b, 20);
	th_cntr_reach(&b, b.txcntr, 2);
	th_ok(ops->post_reg(b.ep, w, &p, 1, RK_RW, WKEY, FI_COMPLETION, &w));
	e = th_tx_ok(&b);
	th_eq(e.flags, FI_SHRIMP_REG);
	th_ptr_eq(e.op_context, &w);
	refused_posts(&a, &b, w, &p);
	th_ok(fi_close(&w->fid));
	th_ok(fi_close(&p.mr->fid));
	rk_mem_free(&m);
	th_pair_close(&a, &b);
}

/* With FI_FENCE it does not overtake what is under way. */
static void contract_W2_fence(struct th_self *self)
{
	static unsigned char big[4 << 20];
	struct bed b;
	struct fi_shrimp_mr_part p = { NULL, 0, 8 };
	struct th_deadline dl;
	ssize_t ret;

	bed_open(&b, true, false);
	p.mr = b.mr;
	(void)self;
	/* held until it is received */
	th_send(&b.b, b.b.peers[0], big, sizeof(big), &big);
	th_eq(b.ops->post_reg(b.b.ep, b.w, &p, 1, RK_RW, WKEY, FI_FENCE, &p),
	      -FI_EAGAIN);
	th_eq(fi_mr_key(b.w), FI_KEY_NOTAVAIL);
	th_recv(&b.a, big, sizeof(big), NULL);
	th_rx_ok(&b.a);
	dl = th_patience();
	while ((ret = b.ops->post_reg(b.b.ep, b.w, &p, 1, RK_RW, WKEY, FI_FENCE,
				      &p)) == -FI_EAGAIN)
		th_check(!th_expired(&dl) && (th_progress(&b.b), true));
	th_ok(ret);
	th_ptr_eq(th_tx_ok(&b.b).op_context, &big);
	th_ptr_eq(th_tx_ok(&b.b).op_context, &p);
	bed_free(&b);
}

/* ---- W2: a reader that stops inside -------------------------------------------------- */

/*
 * Posts the invalidation while the writer is stopped: the call returns, and
 * the completion wakes whoever sleeps for it once the writer has gone on.
 */
static void stopped_owner(struct th_self *self, struct th_stack *s)
{
	struct rk_mem m = rk_mem_new(s, true, rk_big());
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(s);
	struct fi_cq_tagged_entry e;
	struct fi_shrimp_mr_part part = { NULL, 0, rk_big() };
	struct fid_mr *w;
	uint64_t t;
	ssize_t ret;

	part.mr = rk_reg(s, m.p, rk_big(), RK_RW, RK_KEY);
	th_ok(ops->window(&s->domain->fid, NULL, &w));
	th_ok(ops->bind_window(w, &part, RK_RW, WKEY));
	th_barrier(self, "registered");
	th_listen(self);
	t = th_now_ns();
	th_ok(ops->post_invalidate(s->ep, w, 0, &e));
	th_check(th_now_ns() - t < UINT64_C(500000000) * th_time_scale());
	ret = fi_cq_sread(s->txcq, &e, 1, NULL, 300);
	th_note(self, "waited", ret == -FI_EAGAIN);
	if (ret == -FI_EAGAIN) {
		/* it is busy, and so is the region, but for the window */
		th_eq(fi_close(&w->fid), -FI_EBUSY);
		th_eq(ops->invalidate_window(w), -FI_EBUSY);
		th_eq(ops->bind_window(w, &part, RK_RW, 7), -FI_EBUSY);
		th_eq(ops->post_reg(s->ep, w, &part, 1, RK_RW, 7, 0, NULL),
		      -FI_EBUSY);
		th_eq(ops->post_invalidate(s->ep, w, 0, NULL), -FI_EBUSY);
	}
	th_note(self, "asleep", 1);
	if (ret == -FI_EAGAIN)
		th_eq(fi_cq_sread(s->txcq, &e, 1, NULL, 20000), 1);
	th_eq(e.flags, FI_SHRIMP_INVALIDATE);
	/* nobody writes any more */
	memset(m.p, 9, m.len);
	th_ok(fi_close(&w->fid));
	th_ok(fi_close(&part.mr->fid));
	th_barrier(self, "rejected");
	th_verify_byte(m.p, m.len, 9);
	rk_mem_free(&m);
}

static void stopped_main(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack s;

	o.cq_wait = FI_WAIT_UNSPEC;
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	if (self->rank)
		rk_stream(self, &s, WKEY);
	else
		stopped_owner(self, &s);
	th_stack_close(&s);
}

/* Nearly always it stops inside: one of a few times it must. */
static void contract_W2_never_waits(void **state)
{
	bool waited = false;

	(void)state;
	for (int i = 0; i < 4 && !waited; i++) {
		struct th_group *g = th_group_start(2, stopped_main, NULL, 60);

		rk_stop_stream(g);
		waited = th_group_wait_note(g, 0, "waited");
		th_group_wait_note(g, 0, "asleep");
		th_group_serve(g, 50);
		th_group_kill(g, 1, SIGCONT);
		th_group_finish(g);
	}
	th_check(waited);
}

static const struct CMUnitTest windows[] = {
	TH_CASE(contract_W1_device, 1, 20),
	TH_CASE(contract_W1_private, 1, 20),
	TH_CASE(contract_W1_provider_keys, 1, 20),
	TH_CASE(contract_W1_pages, 1, 20),
	TH_CASE(contract_W1_by_address, 1, 20),
	TH_CASE(contract_W1_arguments, 1, 20),
	TH_CASE(contract_W1_region_is_busy, 1, 20),
	TH_CASE(contract_W1_several_ranges, 1, 20),
	TH_CASE(contract_W1_costs_nothing, 1, 60),
	TH_CASE(contract_I4_window_keys, 1, 60),
	TH_CASE(contract_I1_window_device, 2, 60),
	TH_CASE(contract_I1_window_private, 2, 60),
	TH_CASE(contract_I5_window_follows, 2, 60),
	TH_CASE(contract_I5_window_of_nothing, 1, 20),
	TH_CASE(contract_W2_in_order, 1, 30),
	TH_CASE(contract_W2_completions, 1, 20),
	TH_CASE(contract_W2_fence, 1, 30),
	cmocka_unit_test(contract_W2_never_waits),
};

int main(int argc, char **argv)
{
	shared = probe_shared(sizeof(*shared));
	return th_main(argc, argv, "windows", windows,
		       sizeof(windows) / sizeof(windows[0]));
}
