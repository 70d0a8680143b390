/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Regions close while peers stream into them or out of them (contract I1, I2,
 * I3; cases M3, M4).
 *
 * The target, rank 0, lives in rounds: it registers buffers of 8 bytes to
 * 1 MiB, waits until the peers work on them, closes one after the other in
 * random order, uses the memory of each for something of its own at once,
 * waits a little, and looks whether that was touched, or read. The others
 * write or read open buffers without a pause.
 *
 * What comes late goes upwards; the target fills its buffers downwards, so
 * that neither stays ahead of the other. Closes follow each other closely,
 * since each takes the line of a reader's sequence away, which makes the next
 * store there slow: then a fence counts.
 *
 * A fence that is missing shows as a byte that changed behind the close, or
 * that was read there.
 *
 * 5 s for each of the four tests; a tenth with SHRIMP_QUICK=1 and in sanitizer
 * builds, 150 s with SHRIMP_LONG=1.
 *
 * Limit: 300 s
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "env_probe.h"
#include "harness.h"
#include "rma_kit.h"

enum {
	RANKS = 3,	   /* one target */
	SECONDS = 5,	   /* of each test */
	LONG_SECONDS = 15, /* a tenth of it in a long run */
	FIRST_KEY = 100,   /* key of the first buffer; one each */
	STEADY_KEY = 99,   /* of the region that stays open */
	STEADY_LEN = 4096, /* bytes of it for each peer */
	LARGEST = 1 << 20, /* longest buffer */
	OURS = 0x11,	   /* what may be read */
	UNTOUCHED = 0x77,  /* what a reader's buffer holds before */
};

static const size_t sizes[] = { 8,	4096,	32768,	 131072,
				262144, 524288, LARGEST, LARGEST };
enum { NSIZES = sizeof(sizes) / sizeof(*sizes) };

/* What all processes of a test see. */
struct shared {
	_Atomic unsigned int open;	 /* a bit per buffer */
	_Atomic bool over;		 /* time is up */
	_Atomic uint64_t begun_ns;	 /* when it all began */
	_Atomic uint64_t good[RANKS];	 /* operations that succeeded */
	_Atomic uint64_t refused[RANKS]; /* and that did not */
};

static struct shared *shared;

/* A kind of stress. */
struct stress {
	bool device; /* the buffers are memory of the device */
	bool write;  /* the peers write; else they read */
};

/* ---- the target ----------------------------------------------------------- */

/* The target and what it has. */
struct target {
	struct th_stack s;	   /* its endpoint */
	const struct stress *how;  /* what is tried */
	struct rk_mem mem[NSIZES]; /* the buffers */
	struct fid_mr *mr[NSIZES]; /* their regions, or NULL */
	uint64_t closes;	   /* of them, so far */
	struct rk_mem steady;	   /* slices that stay registered */
	struct fid_mr *steady_mr;  /* its region */
	uint64_t state;		   /* of the random numbers */
	uint64_t round;		   /* number of the round */
};

static void spin_ns(uint64_t ns)
{
	uint64_t end = th_now_ns() + ns;

	while (th_now_ns() < end)
		;
}

static uint64_t elapsed_ms(void)
{
	return (th_now_ns() - atomic_load(&shared->begun_ns)) / 1000000;
}

static uint64_t total(const _Atomic uint64_t *count)
{
	uint64_t sum = 0;

	for (int i = 0; i < RANKS; i++)
		sum += atomic_load_explicit(&count[i], memory_order_relaxed);
	return sum;
}

/* Waits until a peer has had some success, a few milliseconds at most. */
static void wait_for_peers(struct target *t)
{
	uint64_t now = th_now_ns(), spin = now + 100000, end = now + 5000000;
	uint64_t before = total(shared->good);

	while (total(shared->good) < before + 2 && now < end) {
		if (now > spin)
			sched_yield();
		now = th_now_ns();
	}
	spin_ns(th_random(&t->state) % 20000);
}

static bool all_are(const unsigned char *p, size_t len, unsigned char byte)
{
	return p[0] == byte && memcmp(p, p + 1, len - 1) == 0;
}

/* Nobody has written into the memory that is ours again. */
static void check_sentinel(struct target *t, const struct rk_mem *m,
			   unsigned char sentinel)
{
	size_t i = 0;

	if (all_are(m->p, m->len, sentinel))
		return;
	while (i < m->len - 1 && m->p[i] == sentinel)
		i++;
	th_fail(__FILE__, __LINE__,
		"round %" PRIu64 ", %" PRIu64 " ms: byte %zu of %zu is %#x "
		"behind the close, was %#x",
		t->round, elapsed_ms(), i, m->len, m->p[i], sentinel);
}

/* From the end to the start. */
static void fill_downwards(unsigned char *p, size_t len, unsigned char byte)
{
	size_t n = len % RK_PAGE ? len % RK_PAGE : RK_PAGE;

	for (; len; n = RK_PAGE) {
		len -= n;
		memset(p + len, byte, n);
	}
}

/* Closed, used by us at once. */
static void close_one(struct target *t, unsigned int i, unsigned char sentinel)
{
	th_ok(fi_close(&t->mr[i]->fid));
	fill_downwards(t->mem[i].p, t->mem[i].len, sentinel);
	t->mr[i] = NULL;
	atomic_fetch_and(&shared->open, ~(1u << i));
	t->closes++;
}

static void open_all(struct target *t)
{
	for (unsigned int i = 0; i < NSIZES; i++) {
		struct rk_mem *m = &t->mem[i];

		if (!t->how->write)
			memset(m->p, OURS, m->len);
		t->mr[i] = rk_reg(&t->s, m->p, m->len, RK_RW, FIRST_KEY + i);
		atomic_fetch_or(&shared->open, 1u << i);
	}
}

/* Registered, used by peers, closed, used by us. */
static void one_round(struct target *t)
{
	uint64_t r = th_random(&t->state);
	unsigned char sentinel = (unsigned char)(0x80 | (r >> 8 & 0x7f));
	unsigned int first = r % NSIZES, step = 1 + 2 * (r >> 16 & 3);

	open_all(t);
	wait_for_peers(t);
	for (unsigned int i = 0; i < NSIZES; i++)
		close_one(t, (first + i * step) % NSIZES, sentinel);
	spin_ns(th_random(&t->state) % 30000);
	if ((r >> 20) % 8 == 0)
		sched_yield();
	for (unsigned int i = 0; i < NSIZES; i++)
		check_sentinel(t, &t->mem[i], sentinel);
	t->round++;
}

static void target_open(struct target *t, struct th_self *self)
{
	struct th_stack_opts o = rk_opts();

	/* a close without a system call is a fast one */
	setenv("FI_SHRIMP_PIN", "off", 1);
	th_stack_open(&t->s, &o);
	th_stack_connect(&t->s, self);
	for (int i = 0; i < NSIZES; i++)
		t->mem[i] = rk_mem_new(&t->s, t->how->device, sizes[i]);
	t->steady =
		rk_mem_new(&t->s, t->how->device, (size_t)STEADY_LEN * RANKS);
	t->steady_mr =
		rk_reg(&t->s, t->steady.p, t->steady.len, RK_RW, STEADY_KEY);
}

static void target_close(struct target *t)
{
	th_ok(fi_close(&t->steady_mr->fid));
	for (int i = 0; i < NSIZES; i++)
		rk_mem_free(&t->mem[i]);
	rk_mem_free(&t->steady);
	th_stack_close(&t->s);
}

/* It was a stress at all: a busy machine may need longer for that. */
static bool was_enough(const struct target *t)
{
	return t->round > 20 && total(shared->good) > t->round &&
	       total(shared->refused) > 0;
}

/* Of a test, as rk_ms() takes it. */
static unsigned int seconds(void)
{
	return th_long() ? LONG_SECONDS : SECONDS;
}

static void target(struct th_self *self)
{
	struct target t = { .how = self->arg, .state = th_now_ns() };
	struct th_deadline patience;
	uint64_t end;

	target_open(&t, self);
	th_barrier_progress(self, &t.s, "registered");
	atomic_store(&shared->begun_ns, th_now_ns());
	end = th_now_ns() + UINT64_C(1000000) * rk_ms(seconds());
	patience = th_patience();
	while (th_now_ns() < end || (!was_enough(&t) && !th_expired(&patience)))
		one_round(&t);
	atomic_store(&shared->over, true);
	printf("# %" PRIu64 " closes, %" PRIu64 " operations, %" PRIu64
	       " refused\n",
	       t.closes, total(shared->good), total(shared->refused));
	th_barrier_progress(self, &t.s, "over");
	th_check(was_enough(&t));
	target_close(&t);
}

/* ---- the peers ------------------------------------------------------------- */

/* A peer that writes or reads. */
struct peer {
	struct th_stack s;		/* its endpoint */
	const struct stress *how;	/* what is tried */
	int rank;			/* its own */
	unsigned char buf[LARGEST];	/* what it writes, or has read */
	unsigned char mine[STEADY_LEN]; /* for its slice of the steady region */
	uint64_t state;			/* of the random numbers */
};

static void count(_Atomic uint64_t *c, int rank)
{
	atomic_fetch_add_explicit(&c[rank], 1, memory_order_relaxed);
}

/* Bytes that were read were there before the close. */
static void check_read(struct peer *p, size_t len, size_t moved)
{
	size_t i = 0;

	while (i < moved && p->buf[i] == OURS)
		i++;
	if (i < moved)
		th_fail(__FILE__, __LINE__,
			"%" PRIu64 " ms: byte %zu of %zu read is %#x: written "
			"behind the close",
			elapsed_ms(), i, len, p->buf[i]);
	while (i < len && p->buf[i] == UNTOUCHED)
		i++;
	if (i < len)
		th_fail(__FILE__, __LINE__,
			"byte %zu of %zu is %#x, but %zu are said to be moved",
			i, len, p->buf[i], moved);
}

/* Lengths that favour neither the short nor the long. */
static size_t random_len(struct peer *p, size_t size)
{
	uint64_t r = th_random(&p->state);
	size_t len = size >> (r % 4);

	return r >> 8 & 3 ? len : 1 + (size_t)(r >> 16) % size;
}

/* An open buffer, or NSIZES; it may be closed by now. */
static unsigned int choose(struct peer *p)
{
	unsigned int open = atomic_load(&shared->open);
	unsigned int r = (unsigned int)(th_random(&p->state) >> 8), i;

	for (i = 0; i < NSIZES; i++)
		if (open >> (r + i) % NSIZES & 1)
			return (r + i) % NSIZES;
	sched_yield();
	return NSIZES;
}

/* One operation on open buffer @i. */
static void hot_op(struct peer *p, unsigned int i)
{
	size_t len = random_len(p, sizes[i]);
	uint64_t key = FIRST_KEY + i, off = sizes[i] - len;
	struct rk_outcome e;

	if (!p->how->write)
		memset(p->buf, UNTOUCHED, len);
	if (p->how->write)
		th_ok(fi_write(p->s.ep, p->buf, len, NULL, p->s.peers[0], off,
			       key, p));
	else
		th_ok(fi_read(p->s.ep, p->buf, len, NULL, p->s.peers[0], off,
			      key, p));
	e = rk_end(&p->s);
	th_ptr_eq(e.context, p);
	if (e.err) {
		th_eq(e.err, FI_EKEYREJECTED);
		th_check(e.told && e.data.key == key && e.moved < len);
	}
	if (!p->how->write)
		check_read(p, len, e.err ? e.moved : len);
	count(e.err ? shared->refused : shared->good, p->rank);
	/* the target may need the CPU to go on */
	if (e.err)
		sched_yield();
}

/* The key that stays open always works. */
static void steady_op(struct peer *p)
{
	uint64_t off = (uint64_t)p->rank * STEADY_LEN;

	memset(p->mine, (int)(th_random(&p->state) & 0xff), STEADY_LEN);
	th_ok(fi_write(p->s.ep, p->mine, STEADY_LEN, NULL, p->s.peers[0], off,
		       STEADY_KEY, p));
	rk_done(&p->s, FI_WRITE, p);
	th_ok(fi_read(p->s.ep, p->buf, STEADY_LEN, NULL, p->s.peers[0], off,
		      STEADY_KEY, p));
	rk_done(&p->s, FI_READ, p);
	th_eq(memcmp(p->buf, p->mine, STEADY_LEN), 0);
	memset(p->buf, p->rank, STEADY_LEN);
}

static void peer(struct th_self *self)
{
	static struct peer p;
	struct th_stack_opts o = rk_opts();

	p.how = self->arg;
	p.rank = self->rank;
	p.state = (uint64_t)self->rank;
	memset(p.buf, p.rank, sizeof(p.buf));
	th_stack_open(&p.s, &o);
	th_stack_connect(&p.s, self);
	th_barrier_progress(self, &p.s, "registered");
	for (unsigned long i = 1; !atomic_load(&shared->over); i++) {
		unsigned int k = choose(&p);

		if (k < NSIZES)
			hot_op(&p, k);
		if (i % 64 == 0)
			steady_op(&p);
	}
	th_barrier_progress(self, &p.s, "over");
	th_stack_close(&p.s);
}

static void stress_main(struct th_self *self)
{
	if (self->rank)
		peer(self);
	else
		target(self);
}

/* ---- tests --------------------------------------------------------------------- */

static void stress_run(bool device, bool write)
{
	struct stress how = { device, write };

	memset(shared, 0, sizeof(*shared));
	th_run(RANKS, stress_main, &how, 50 + seconds());
}

static void case_M4_writes_device(void **state)
{
	(void)state;
	stress_run(true, true);
}

static void case_M4_writes_private(void **state)
{
	(void)state;
	stress_run(false, true);
}

static void case_M3_reads_device(void **state)
{
	(void)state;
	stress_run(true, false);
}

static void case_M3_reads_private(void **state)
{
	(void)state;
	stress_run(false, false);
}

static const struct CMUnitTest rma_stress[] = {
	cmocka_unit_test(case_M4_writes_device),
	cmocka_unit_test(case_M4_writes_private),
	cmocka_unit_test(case_M3_reads_device),
	cmocka_unit_test(case_M3_reads_private),
};

int main(int argc, char **argv)
{
	shared = probe_shared(sizeof(*shared));
	return th_main(argc, argv, "rma_stress", rma_stress,
		       sizeof(rma_stress) / sizeof(rma_stress[0]));
}
