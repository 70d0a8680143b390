/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * RMA races with every way to make a key and to take it back: registration of
 * one range and of two, batches, windows bound and bound anew, refresh, close
 * (contract R2, R5, R10, I1, I2, I5, W1).
 *
 * Two threads of the owner have slots; each slot has a user's key that stays
 * the same, and two buffers, one of which the key means. Each word of a buffer
 * says which slot it belongs to and in which turn; what was taken back is
 * overwritten at once. Peers, two threads in a process with an endpoint each,
 * read and write random parts of random slots: what a read brings is of one
 * turn of that slot, and what the owner took back nobody has written to. It is
 * the stress of tests/rma_stress.c with more kinds of keys, and that of
 * tests/region_stress.c with whole operations.
 *
 * 6 s for each kind of memory; a tenth with SHRIMP_QUICK=1 and in sanitizer
 * builds, ten times as long with SHRIMP_LONG=1.
 *
 * Limit: 120 s
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "env_probe.h"
#include "shm/atomic.h"

enum {
	SECONDS = 6, /* of each test */
	THREADS = 2, /* of the owner, and of the peers */
	SLOTS = 8,   /* of each thread */
	ALL = SLOTS * THREADS,
	FIRST_KEY = 1000, /* of slot 0 */
	LARGEST = 262144, /* bytes of a buffer */
};

#define GONE  UINT64_C(0x5a5a5a5a5a5a5a5a) /* a word that was taken back */
#define THEIR UINT64_C(0xffffffff)	   /* turn of what peers write */

static const size_t sizes[] = { 64, 4096, 32768, LARGEST };

/* What all processes see. */
struct shared {
	_Atomic bool over;	   /* time is up */
	_Atomic uint64_t good;	   /* operations that succeeded */
	_Atomic uint64_t refused;  /* and that did not */
	_Atomic uint64_t turns[8]; /* of the owner, by kind */
};

static struct shared *shared;

/* How a slot gets its key. */
enum kind { NONE, ONE, TWO, BATCH, WINDOW, KINDS };

/* The owner's: a key, and what it means. */
struct slot {
	unsigned int number; /* its own, and that of its key */
	size_t size;	     /* of each buffer */
	enum kind kind;	     /* NONE: the key means nothing */
	uint64_t turn;	     /* rises with each meaning */
	int which;	     /* buffer that the key means */
	struct rk_mem m;     /* both */
	struct fid_mr *all;  /* region of both, for windows */
	struct fid_mr *mr;   /* region or window with the key */
	struct fid_mr *mw;   /* window, or NULL where there are none */
};

/* A thread of the owner. */
struct keeper {
	struct th_stack *s; /* of all of them */
	const void *ops;    /* registration calls beyond fi_mr(3), or NULL */
	struct slot slot[SLOTS]; /* its own */
	uint64_t state;		 /* of the random numbers */
};

/* ---- what only some builds have ------------------------------------------------- */

#ifdef FI_SHRIMP_OPS_MR

static const void *ops_open(struct th_stack *s)
{
	struct fi_ops_shrimp_mr *ops;

	if (fi_open_ops(&s->domain->fid, FI_SHRIMP_OPS_MR, 0, (void **)&ops,
			NULL))
		return NULL;
	return ops;
}

static int batch_of_two(const struct keeper *k, const struct fi_mr_attr *attr,
			struct fid_mr **mr)
{
	const struct fi_ops_shrimp_mr *ops = k->ops;

	return ops->reg_batch(&k->s->domain->fid, attr, 2, 0, mr);
}

static struct fid_mr *window_new(const struct keeper *k)
{
	const struct fi_ops_shrimp_mr *ops = k->ops;
	struct fid_mr *mw = NULL;

	if (ops)
		th_ok(ops->window(&k->s->domain->fid, NULL, &mw));
	return mw;
}

static int window_bind(const struct keeper *k, const struct slot *s,
		       uint64_t access)
{
	const struct fi_ops_shrimp_mr *ops = k->ops;
	const struct fi_shrimp_mr_part part = { s->all,
						(size_t)s->which * s->size,
						s->size };

	return ops->bind_window(s->mw, &part, access, FIRST_KEY + s->number);
}

static int window_invalidate(const struct keeper *k, const struct slot *s)
{
	const struct fi_ops_shrimp_mr *ops = k->ops;

	return ops->invalidate_window(s->mw);
}

static int refresh(const struct keeper *k, struct fid_mr *mr)
{
	const struct fi_ops_shrimp_mr *ops = k->ops;

	return ops ? ops->update(mr, NULL) : 0;
}

#else

static const void *ops_open(struct th_stack *s)
{
	(void)s;
	return NULL;
}

static int batch_of_two(const struct keeper *k, const struct fi_mr_attr *attr,
			struct fid_mr **mr)
{
	(void)k, (void)attr, (void)mr;
	return -FI_ENOSYS;
}

static struct fid_mr *window_new(const struct keeper *k)
{
	(void)k;
	return NULL;
}

static int window_bind(const struct keeper *k, const struct slot *s,
		       uint64_t access)
{
	(void)k, (void)s, (void)access;
	return -FI_ENOSYS;
}

static int window_invalidate(const struct keeper *k, const struct slot *s)
{
	(void)k, (void)s;
	return -FI_ENOSYS;
}

static int refresh(const struct keeper *k, struct fid_mr *mr)
{
	(void)k, (void)mr;
	return 0;
}

#endif

/* ---- the owner ------------------------------------------------------------------ */

static bool is_written(unsigned int slot)
{
	return slot & 1;
}

static uint64_t access_of(const struct slot *s)
{
	return is_written(s->number) ? RK_RW : FI_REMOTE_READ;
}

static unsigned char *buffer(const struct slot *s)
{
	return s->m.p + (size_t)s->which * s->size;
}

static uint64_t word_of(unsigned int slot, uint64_t turn)
{
	return (uint64_t)(slot + 1) << 32 | turn;
}

/* From the end to the start: what comes late goes the other way. */
static void fill_words(unsigned char *p, size_t len, uint64_t word)
{
	while (len) {
		len -= sizeof(word);
		memcpy(p + len, &word, sizeof(word));
	}
}

static bool all_are(const unsigned char *p, size_t len, uint64_t word)
{
	return !memcmp(p, &word, sizeof(word)) &&
	       !memcmp(p, p + sizeof(word), len - sizeof(word));
}

/* The buffer that @s has now is nobody's any more. */
static void take_back(struct slot *s)
{
	fill_words(buffer(s), s->size, GONE);
	s->kind = NONE;
}

/* The other buffer is as it was left, and gets the words of a new turn. */
static void give(struct slot *s)
{
	s->which ^= 1;
	if (!all_are(buffer(s), s->size, GONE))
		th_fail(__FILE__, __LINE__,
			"late write: slot %u, %zu bytes, turn %" PRIu64,
			s->number, s->size, s->turn);
	s->turn = (s->turn + 1) % THEIR;
	fill_words(buffer(s), s->size, word_of(s->number, s->turn));
}

static void register_ranges(struct keeper *k, struct slot *s, size_t n)
{
	size_t half = s->size / n;
	struct iovec v[2];

	give(s);
	for (size_t i = 0; i < n; i++)
		v[i] = (struct iovec){ buffer(s) + i * half, half };
	th_ok(fi_mr_regv(k->s->domain, v, n, access_of(s), 0,
			 FIRST_KEY + s->number, 0, &s->mr, NULL));
	s->kind = n == 1 ? ONE : TWO;
}

/* Two slots in one call, if both are free. */
static void register_batch(struct keeper *k, struct slot *s)
{
	struct slot *both[2] = { s,
				 &k->slot[(size_t)(s - k->slot + 1) % SLOTS] };
	struct fi_mr_attr attr[2] = { { .iov_count = 1 }, { .iov_count = 1 } };
	struct iovec v[2];
	struct fid_mr *mr[2] = { NULL };

	if (both[1]->kind != NONE)
		return;
	for (int i = 0; i < 2; i++) {
		give(both[i]);
		v[i] = (struct iovec){ buffer(both[i]), both[i]->size };
		attr[i].mr_iov = &v[i];
		attr[i].access = access_of(both[i]);
		attr[i].requested_key = FIRST_KEY + both[i]->number;
	}
	th_ok(batch_of_two(k, attr, mr));
	for (int i = 0; i < 2; i++) {
		both[i]->mr = mr[i];
		both[i]->kind = BATCH;
	}
}

/* A window, bound for the first time or from one buffer to the other. */
static void bind(struct keeper *k, struct slot *s)
{
	struct slot was = *s;

	give(s);
	th_ok(window_bind(k, s, access_of(s)));
	if (was.kind == WINDOW)
		take_back(&was);
	s->mr = s->mw;
	s->kind = WINDOW;
}

static void open_slot(struct keeper *k, struct slot *s)
{
	uint64_t r = th_random(&k->state) >> 5;

	if (!k->ops || r & 2)
		register_ranges(k, s, 1 + (r & 1));
	else if (r & 1)
		register_batch(k, s);
	else
		bind(k, s);
}

static void close_slot(struct keeper *k, struct slot *s)
{
	if (s->kind == WINDOW)
		th_ok(window_invalidate(k, s));
	else
		th_ok(fi_close(&s->mr->fid));
	s->mr = NULL;
	take_back(s);
}

static void keep_turn(struct keeper *k)
{
	uint64_t r = th_random(&k->state);
	struct slot *s = &k->slot[r % SLOTS];

	if (s->kind == NONE)
		open_slot(k, s);
	else if (s->kind == WINDOW && r >> 8 & 1)
		bind(k, s);
	else if (s->kind != WINDOW && (r >> 8) % 4 == 0)
		th_ok(refresh(k, s->mr));
	else if (r >> 12 & 1)
		close_slot(k, s);
	else
		return;
	atomic_fetch_add_explicit(&shared->turns[s->kind], 1,
				  memory_order_relaxed);
	/* in a row, or with a while between */
	for (uint64_t n = r >> 16 & 3 ? 0 : r >> 24 & 8191; n; n--)
		rnic_cpu_relax();
	if ((r >> 40) % 4 == 0)
		sched_yield();
}

static void slot_new(struct keeper *k, struct slot *s, unsigned int number,
		     bool device)
{
	*s = (struct slot){ .number = number, .size = sizes[number / 2 % 4] };
	s->m = rk_mem_new(k->s, device, 2 * s->size);
	fill_words(s->m.p, 2 * s->size, GONE);
	s->mw = window_new(k);
	if (s->mw)
		s->all = rk_reg(k->s, s->m.p, 2 * s->size, RK_RW,
				2 * FIRST_KEY + number);
}

static void slot_free(struct keeper *k, struct slot *s)
{
	if (s->kind != NONE)
		close_slot(k, s);
	th_check(all_are(s->m.p, 2 * s->size, GONE));
	if (s->mw)
		th_ok(fi_close(&s->mw->fid));
	if (s->all)
		th_ok(fi_close(&s->all->fid));
	rk_mem_free(&s->m);
}

static void *keep(void *arg)
{
	struct keeper *k = arg;

	while (!atomic_load(&shared->over))
		keep_turn(k);
	return NULL;
}

/* Something of everything has happened. */
static bool was_enough(void)
{
	return atomic_load(&shared->good) > 100 &&
	       atomic_load(&shared->refused) > 10;
}

static void watch(void)
{
	uint64_t end = th_now_ns() + UINT64_C(1000000) * rk_ms(SECONDS);
	struct th_deadline dl = th_patience();

	while (th_now_ns() < end || (!was_enough() && !th_expired(&dl)))
		th_sleep_us(10000);
	atomic_store(&shared->over, true);
	printf("# %" PRIu64 " operations, %" PRIu64 " refused; turns: %" PRIu64
	       " regions, %" PRIu64 " of two ranges, %" PRIu64
	       " in batches, %" PRIu64 " windows, %" PRIu64 " ends\n",
	       atomic_load(&shared->good), atomic_load(&shared->refused),
	       atomic_load(&shared->turns[ONE]),
	       atomic_load(&shared->turns[TWO]),
	       atomic_load(&shared->turns[BATCH]),
	       atomic_load(&shared->turns[WINDOW]),
	       atomic_load(&shared->turns[NONE]));
}

static void own(struct th_self *self, struct th_stack *s)
{
	static struct keeper k[THREADS];
	bool device = self->arg != NULL;
	pthread_t th[THREADS];

	for (unsigned int i = 0; i < THREADS; i++) {
		k[i].s = s;
		k[i].ops = ops_open(s);
		k[i].state = th_now_ns() + i;
		for (unsigned int j = 0; j < SLOTS; j++)
			slot_new(&k[i], &k[i].slot[j], i * SLOTS + j, device);
	}
	th_barrier(self, "ready");
	for (unsigned int i = 0; i < THREADS; i++)
		th_eq(pthread_create(&th[i], NULL, keep, &k[i]), 0);
	watch();
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
	th_barrier_progress(self, s, "over");
	for (unsigned int i = 0; i < THREADS; i++)
		for (unsigned int j = 0; j < SLOTS; j++)
			slot_free(&k[i], &k[i].slot[j]);
}

/* ---- the peers --------------------------------------------------------------------- */

/* A thread of the peers. */
struct peer {
	struct th_stack s;	    /* its endpoint */
	uint64_t state;		    /* of the random numbers */
	unsigned char buf[LARGEST]; /* what it reads or writes */
};

/* What was read is of slot @slot, and of one turn if nobody writes there. */
static void check_read(struct peer *p, unsigned int slot, size_t len)
{
	uint64_t first, word;

	memcpy(&first, p->buf, sizeof(first));
	for (size_t i = 0; i < len; i += sizeof(word)) {
		memcpy(&word, p->buf + i, sizeof(word));
		if (word >> 32 != slot + 1 ||
		    (word != first && !is_written(slot)))
			th_fail(__FILE__, __LINE__,
				"slot %u: word at %zu of %zu read is %#" PRIx64
				", the first is %#" PRIx64,
				slot, i, len, word, first);
	}
}

static void one_op(struct peer *p)
{
	uint64_t r = th_random(&p->state);
	unsigned int slot = r % ALL;
	size_t size = sizes[slot / 2 % 4], len = 8 + (r >> 16) % size / 8 * 8;
	uint64_t off =
		(size - len) / 8 ? (r >> 40) % ((size - len) / 8) * 8 : 0;
	bool write = is_written(slot) && r >> 8 & 1;
	struct rk_outcome e;

	if (write) {
		fill_words(p->buf, len, word_of(slot, THEIR));
		th_ok(fi_write(p->s.ep, p->buf, len, NULL, p->s.peers[0], off,
			       FIRST_KEY + slot, p));
	} else {
		th_ok(fi_read(p->s.ep, p->buf, len, NULL, p->s.peers[0], off,
			      FIRST_KEY + slot, p));
	}
	e = rk_end(&p->s);
	th_ptr_eq(e.context, p);
	if (e.err)
		th_eq(e.err, FI_EKEYREJECTED);
	else if (!write)
		check_read(p, slot, len);
	atomic_fetch_add_explicit(e.err ? &shared->refused : &shared->good, 1,
				  memory_order_relaxed);
}

static void *work(void *arg)
{
	struct peer *p = arg;

	for (unsigned int i = 1; !atomic_load(&shared->over); i++) {
		one_op(p);
		if (i % 8 == 0)
			sched_yield();
	}
	return NULL;
}

static void use(struct th_self *self, struct peer *p)
{
	pthread_t th[THREADS];

	th_barrier(self, "ready");
	for (unsigned int i = 0; i < THREADS; i++) {
		p[i].state = th_now_ns() + i;
		th_eq(pthread_create(&th[i], NULL, work, &p[i]), 0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
	th_barrier_progress(self, &p->s, "over");
}

static void race_main(struct th_self *self)
{
	static struct peer p[THREADS];
	struct th_stack_opts o = rk_opts();

	o.threading = FI_THREAD_SAFE;
	/* a close without a system call is a fast one */
	setenv("FI_SHRIMP_PIN", "off", 1);
	for (int i = 0; i < THREADS; i++) {
		th_stack_open(&p[i].s, &o);
		th_stack_connect(&p[i].s, self);
	}
	if (self->rank)
		use(self, p);
	else
		own(self, &p[0].s);
	for (int i = 0; i < THREADS; i++)
		th_stack_close(&p[i].s);
}

/* ---- tests ------------------------------------------------------------------------- */

static void race_run(const char *device)
{
	memset(shared, 0, sizeof(*shared));
	th_run(2, race_main, (void *)(uintptr_t)device, 40 + SECONDS);
	th_check(was_enough());
}

static void contract_I1_race_device(void **state)
{
	(void)state;
	race_run("device");
}

static void contract_I1_race_private(void **state)
{
	(void)state;
	race_run(NULL);
}

static const struct CMUnitTest region_race[] = {
	cmocka_unit_test(contract_I1_race_device),
	cmocka_unit_test(contract_I1_race_private),
};

int main(int argc, char **argv)
{
	shared = probe_shared(sizeof(*shared));
	return th_main(argc, argv, "region_race", region_race,
		       sizeof(region_race) / sizeof(region_race[0]));
}
