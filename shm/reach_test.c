/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One-sided access to memory of this process and of a child: what is moved,
 * what is counted, what is refused, what is left to the owner.
 */
#include "shm/reach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/aop.h"
#include "shm/reach_kit.h"

enum {
	LIMIT_S = 60,		/* the whole program ends by then */
	PAGE = RNIC_PAGE,	/* short */
	LEN = (1 << 20) + PAGE, /* bytes of a memory: more than two chunks */
	RW = RNIC_REMOTE_READ | RNIC_REMOTE_WRITE,
	HOLE = 3 * PAGE, /* where a page of a child is missing */
};

/* An owner in this process and a reader of it. */
struct bed {
	struct kit_owner o;  /* device */
	struct kit_reader d; /* reads and writes it */
};

static int setup(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	kit_owner_open(&b->o, true);
	assert_int_equal(kit_reader_open(&b->d, &b->o.addr), 0);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	kit_reader_close(&b->d);
	kit_owner_close(&b->o);
	free(b);
	return 0;
}

static char byte_of(unsigned int seed, size_t i)
{
	return (char)(seed * 31 + i * 7 + i / 251 + 1);
}

static void fill(char *p, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = byte_of(seed, i);
}

static bool filled(const char *p, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != byte_of(seed, i))
			return false;
	return true;
}

static bool all_zero(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

static struct rnic_access access_of(const struct kit_mem *m, size_t off,
				    void *buf, size_t len, bool write)
{
	return (struct rnic_access){
		.key = m->key,
		.addr = (uintptr_t)m->p + off,
		.len = len,
		.buf = buf,
		.write = write,
		.path = (enum rnic_path)9,
	};
}

/* One transfer, of which @want bytes must move, with @ret as its result. */
static void go(struct kit_reader *d, struct rnic_access *a, int ret,
	       size_t want)
{
	size_t moved = 12345;

	assert_int_equal(rnic_reach_move(&d->c, &d->x, a, &moved), ret);
	assert_int_equal(moved, want);
}

/* ---- moving ---- */

static const size_t lens[] = { 1, 64, PAGE, PAGE + 1, 600000, LEN - 200 };
enum { NLENS = sizeof(lens) / sizeof(*lens) };

/* Writes and reads back; leaves the pattern of @seed. */
static void there_and_back(struct kit_reader *d, const struct kit_mem *m,
			   size_t off, size_t len, unsigned int seed)
{
	char *buf = malloc(len + 2);
	struct rnic_access a = access_of(m, off, buf + 1, len, true);

	assert_non_null(buf);
	fill(buf + 1, len, seed);
	go(d, &a, 0, len);
	assert_int_equal(a.rights & RW, RW);
	assert_int_equal(a.slot, m->slot);
	assert_int_equal(a.path, m->leaf & RNIC_LEAF_SPACE ? RNIC_BY_MAP
							   : RNIC_BY_KERNEL);
	memset(buf, 0x55, len + 2);
	a.write = false;
	go(d, &a, 0, len);
	assert_true(filled(buf + 1, len, seed));
	assert_true(buf[0] == 0x55 && buf[len + 1] == 0x55);
	free(buf);
}

static void move_all(struct bed *b, struct kit_mem m)
{
	kit_publish(&b->o, &m, RW);
	for (unsigned int i = 0; i < NLENS; i++) {
		memset(m.p, 0, m.len);
		there_and_back(&b->d, &m, 100, lens[i], i);
		assert_true(filled(m.p + 100, lens[i], i));
		assert_true(all_zero(m.p, 100));
		assert_true(
			all_zero(m.p + 100 + lens[i], m.len - 100 - lens[i]));
	}
	kit_withdraw(&b->o, &m);
}

static void every_byte_is_moved(void **state)
{
	struct bed *b = *state;
	struct kit_mem va = kit_private(LEN);

	move_all(b, kit_arena(&b->o, LEN));
	move_all(b, va);
	munmap(va.p, va.len);
}

/* Nothing to move is checked all the same. */
static void no_bytes_are_checked(void **state)
{
	struct bed *b = *state;
	struct kit_mem m = kit_arena(&b->o, PAGE);
	struct rnic_access a;

	kit_publish(&b->o, &m, RNIC_REMOTE_READ);
	a = access_of(&m, PAGE, NULL, 0, false);
	go(&b->d, &a, 0, 0);
	a.write = true;
	go(&b->d, &a, -EACCES, 0);
}

static void a_hole_ends_a_transfer(void **state)
{
	struct bed *b = *state;
	struct kit_mem m = kit_private(4 * PAGE);
	char buf[4 * PAGE];
	struct rnic_access a;

	kit_publish(&b->o, &m, RW);
	munmap(m.p + 2 * PAGE, PAGE);
	fill(buf, sizeof(buf), 1);
	a = access_of(&m, 100, buf, 3 * PAGE, true);
	go(&b->d, &a, -EFAULT, 2 * PAGE - 100);
	assert_true(filled(m.p + 100, 2 * PAGE - 100, 1));
	assert_true(all_zero(m.p + 3 * PAGE, PAGE));
	memset(buf, 0, sizeof(buf));
	a.write = false;
	go(&b->d, &a, -EFAULT, 2 * PAGE - 100);
	assert_true(filled(buf, 2 * PAGE - 100, 1));
	assert_true(all_zero(buf + 2 * PAGE - 100, 2 * PAGE + 100));
	a = access_of(&m, 2 * PAGE, buf, PAGE, true);
	go(&b->d, &a, -EFAULT, 0);
	munmap(m.p, m.len);
}

/* ---- what is refused ---- */

/* Refused by key, bounds or rights; nothing is moved. */
static void refuse(struct bed *b, struct kit_mem m)
{
	char buf[PAGE] = { 1 };
	struct rnic_access a;

	kit_publish(&b->o, &m, RW);
	a = access_of(&m, m.len - 10, buf, 11, true);
	go(&b->d, &a, -ERANGE, 0);
	a = access_of(&m, 0, buf, 10, true);
	a.addr--;
	go(&b->d, &a, -ERANGE, 0);
	a = access_of(&m, 1, buf, SIZE_MAX, true);
	go(&b->d, &a, -ERANGE, 0);
	a = access_of(&m, 0, buf, 10, true);
	a.key++;
	go(&b->d, &a, -ENOKEY, 0);
	a = access_of(&m, 0, buf, 10, true);
	kit_withdraw(&b->o, &m);
	go(&b->d, &a, -ENOKEY, 0);
	kit_publish(&b->o, &m, RNIC_REMOTE_READ);
	a.key = m.key;
	go(&b->d, &a, -EACCES, 0);
	a.write = false;
	a.atomic = true;
	a.need = RW;
	go(&b->d, &a, -EACCES, 0);
	kit_withdraw(&b->o, &m);
	kit_publish(&b->o, &m, RNIC_REMOTE_WRITE);
	a = access_of(&m, 0, buf, 10, false);
	go(&b->d, &a, -EACCES, 0);
	assert_int_equal(buf[0], 1);
	assert_true(all_zero(m.p, m.len));
}

static void contract_R6_keys_bounds_rights(void **state)
{
	struct bed *b = *state;
	struct kit_mem va = kit_private(PAGE);

	refuse(b, kit_arena(&b->o, PAGE));
	refuse(b, va);
	munmap(va.p, va.len);
}

static void without_the_kernel_the_owner_is_asked(void **state)
{
	struct bed *b = *state;
	struct kit_mem m = kit_arena(&b->o, LEN), va = kit_private(PAGE);
	char buf[PAGE] = { 1 };
	struct rnic_access a;

	b->d.x.refused = true;
	kit_publish(&b->o, &va, RW);
	a = access_of(&va, 0, buf, PAGE, true);
	go(&b->d, &a, -EREMOTE, 0);
	a.write = false;
	go(&b->d, &a, -EREMOTE, 0);
	assert_int_equal(buf[0], 1);
	assert_true(all_zero(va.p, PAGE));
	/* what the owner would refuse need not be asked for */
	a.len++;
	go(&b->d, &a, -ERANGE, 0);
	move_all(b, m);
	munmap(va.p, va.len);
}

/* ---- the short way ---- */

/* The short way: what it says, and whether it counts a hit. */
static void quick(struct kit_reader *d, struct rnic_access a, uint32_t unless,
		  bool done)
{
	const struct rnic_cache *h = d->c.keys.mem;
	uint64_t hits = rnic_load64_relaxed(&h->hits);
	uint64_t misses = rnic_load64_relaxed(&h->misses);

	assert_int_equal(rnic_reach_quick(&d->c, &d->x, &a, unless), done);
	assert_int_equal(rnic_load64_relaxed(&h->hits) - hits, done);
	assert_int_equal(rnic_load64_relaxed(&h->misses), misses);
	/* it has left */
	assert_int_equal(d->x.target.now % 2, 0);
}

/* The long way finds the key; then the short one moves by it. */
static void quick_moves(struct kit_reader *d, const struct kit_mem *m)
{
	char buf[PAGE] = { 0 };
	struct rnic_access a = access_of(m, 100, buf, 64, true);

	quick(d, a, 0, false);
	assert_true(all_zero(m->p, m->len));
	go(d, &a, 0, 64);
	fill(buf, sizeof(buf), 5);
	quick(d, a, 0, true);
	assert_true(filled(m->p + 100, 64, 5));
	assert_true(all_zero(m->p + 164, m->len - 164));
	memset(buf, 0, sizeof(buf));
	a.write = false;
	quick(d, a, RNIC_MR_EV_READ, true);
	assert_true(filled(buf, 64, 5));
	assert_true(all_zero(buf + 64, PAGE - 64));
	memset(m->p, 0, m->len);
}

/* All but one thing is right: nothing is moved. */
static void quick_refuses(struct kit_reader *d, const struct kit_mem *m)
{
	char buf[PAGE] = { 1 };
	const struct rnic_access good = access_of(m, 0, buf, 10, true);
	struct rnic_access a = good;

	/* as if the right to read were the wish for an event */
	quick(d, a, RNIC_REMOTE_READ, false);
	a.key++;
	quick(d, a, 0, false);
	a = good;
	a.addr--;
	quick(d, a, 0, false);
	a.addr = good.addr + m->len - 9;
	quick(d, a, 0, false);
	a = good;
	a.len = SIZE_MAX;
	quick(d, a, 0, false);
	a = good;
	a.atomic = true;
	a.need = RNIC_LOCAL_WRITE;
	quick(d, a, 0, false);
	d->x.refused = true;
	if (!(m->leaf & RNIC_LEAF_SPACE))
		quick(d, good, 0, false);
	d->x.refused = false;
	assert_true(all_zero(m->p, m->len));
	assert_int_equal(buf[0], 1);
}

/* It is closed with the key, and opened by a miss, for its rights only. */
static void quick_is_over(struct bed *b, struct kit_mem *m)
{
	char buf[PAGE] = { 1 };
	struct rnic_access a = access_of(m, 0, buf, 10, true);

	kit_withdraw(&b->o, m);
	quick(&b->d, a, 0, false);
	go(&b->d, &a, -ENOKEY, 0);
	kit_publish(&b->o, m, RNIC_REMOTE_READ);
	a.key = m->key;
	a.write = false;
	go(&b->d, &a, 0, 10);
	quick(&b->d, a, 0, true);
	a.write = true;
	quick(&b->d, a, 0, false);
	assert_true(all_zero(m->p, m->len));
}

static void contract_R6_the_short_way(void **state)
{
	struct bed *b = *state;
	struct kit_mem m[2] = { kit_arena(&b->o, 2 * PAGE),
				kit_private(2 * PAGE) };

	for (int i = 0; i < 2; i++) {
		kit_publish(&b->o, &m[i], RW);
		quick_moves(&b->d, &m[i]);
		quick_refuses(&b->d, &m[i]);
		quick_is_over(b, &m[i]);
	}
	munmap(m[1].p, m[1].len);
}

/* Not more than a section's worth, and not nothing (contract I3). */
static void contract_I3_the_short_way(void **state)
{
	struct bed *b = *state;
	struct kit_mem m[2] = { kit_arena(&b->o, LEN), kit_private(LEN) };
	char *buf = calloc(1, LEN);
	struct rnic_access a;

	assert_non_null(buf);
	for (int i = 0; i < 2; i++) {
		kit_publish(&b->o, &m[i], RW);
		a = access_of(&m[i], 1, buf, LEN - 1, false);
		go(&b->d, &a, 0, LEN - 1);
		a.len = RNIC_REACH_CHUNK;
		quick(&b->d, a, 0, true);
		a.len++;
		quick(&b->d, a, 0, false);
		a.len = 0;
		quick(&b->d, a, 0, false);
	}
	free(buf);
	munmap(m[1].p, LEN);
}

/* Two pieces are the long way's, also if both are known. */
static void two_pieces_are_not_one(void **state)
{
	struct bed *b = *state;
	struct kit_mem m[2] = { kit_private(PAGE), kit_private(PAGE) };
	char buf[64];
	struct rnic_access a = {
		.addr = PAGE - 32, .len = 64, .buf = buf, .write = true
	};

	a.key = kit_publish_list(&b->o, m, 2, RW);
	fill(buf, sizeof(buf), 2);
	go(&b->d, &a, 0, 64);
	memset(m[0].p, 0, PAGE);
	quick(&b->d, a, 0, false);
	assert_true(all_zero(m[0].p, PAGE));
	a.len = 32;
	quick(&b->d, a, 0, true);
	a.addr = PAGE;
	quick(&b->d, a, 0, true);
	munmap(m[0].p, PAGE);
	munmap(m[1].p, PAGE);
}

/* What the short way leaves half done, the long one does and tells. */
static void a_hole_is_the_long_ways(void **state)
{
	struct bed *b = *state;
	struct kit_mem m = kit_private(2 * PAGE);
	char buf[64];
	struct rnic_access a;

	kit_publish(&b->o, &m, RW);
	fill(buf, sizeof(buf), 3);
	a = access_of(&m, PAGE - 32, buf, 64, true);
	go(&b->d, &a, 0, 64);
	munmap(m.p + PAGE, PAGE);
	memset(m.p, 0, PAGE);
	quick(&b->d, a, 0, false);
	go(&b->d, &a, -EFAULT, 32);
	assert_true(filled(m.p + PAGE - 32, 32, 3));
	a.write = false;
	quick(&b->d, a, 0, false);
	go(&b->d, &a, -EFAULT, 32);
	munmap(m.p, PAGE);
}

/* ---- a child's memory ---- */

/* Shared with the child that owns memory. */
struct stage {
	rnic_a64 ready;		/* the child has published */
	rnic_a64 written;	/* the parent has written */
	struct rnic_addr addr;	/* the child's */
	struct kit_mem mem[2];	/* in its arena, and private */
	struct kit_mem only_rd; /* the second, for reading only */
};

/* What the parent must leave in both. */
static bool as_written(const struct kit_mem *m)
{
	return filled(m->p + PAGE, 2 * PAGE, 7) &&
	       all_zero(m->p + HOLE + PAGE, 5 * PAGE);
}

static void child_owner(struct stage *s)
{
	struct kit_owner *o = calloc(1, sizeof(*o));

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT_S);
	if (!o)
		_exit(1);
	kit_owner_open(o, true);
	s->addr = o->addr;
	s->mem[0] = kit_arena(o, LEN);
	s->mem[1] = kit_private(LEN);
	for (int i = 0; i < 2; i++)
		kit_publish(o, &s->mem[i], RW);
	s->only_rd = s->mem[1];
	kit_publish(o, &s->only_rd, RNIC_REMOTE_READ);
	munmap(s->mem[1].p + HOLE, PAGE);
	rnic_store64_release(&s->ready, 1);
	while (!rnic_load64_acquire(&s->written))
		usleep(1000);
	_exit(as_written(&s->mem[0]) && as_written(&s->mem[1]) ? 0 : 2);
}

/* Moves what lies before the hole; beyond it nothing. */
static void move_childs(struct kit_reader *d, const struct kit_mem *m)
{
	char buf[4 * PAGE];
	bool hole = !(m->leaf & RNIC_LEAF_SPACE);
	struct rnic_access a;

	there_and_back(d, m, 8, HOLE - 8, 3);
	there_and_back(d, m, PAGE, 2 * PAGE, 7);
	a = access_of(m, 2 * PAGE, buf, 2 * PAGE, false);
	go(d, &a, hole ? -EFAULT : 0, hole ? PAGE : 2 * PAGE);
	a = access_of(m, m->len - 1, buf, 2, true);
	go(d, &a, -ERANGE, 0);
}

static void memory_of_a_child_is_moved(void **state)
{
	struct stage *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kit_reader d;
	struct rnic_access a;
	char buf[8] = { 0 };
	int status;
	pid_t pid;

	(void)state;
	assert_true(s != MAP_FAILED);
	pid = fork();
	if (!pid)
		child_owner(s);
	while (!rnic_load64_acquire(&s->ready) &&
	       !waitpid(pid, &status, WNOHANG))
		usleep(1000);
	assert_int_equal(rnic_load64_acquire(&s->ready), 1);
	assert_int_equal(kit_reader_open(&d, &s->addr), 0);
	move_childs(&d, &s->mem[0]);
	move_childs(&d, &s->mem[1]);
	a = access_of(&s->only_rd, 0, buf, 8, true);
	go(&d, &a, -EACCES, 0);
	rnic_store64_release(&s->written, 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* a dead one has no addresses */
	a = access_of(&s->mem[1], 0, buf, 8, false);
	go(&d, &a, -ESRCH, 0);
	kit_reader_close(&d);
	munmap(s, sizeof(*s));
}

/* A device that does not fence its readers tells them to. */
static void contract_I1_readers_fence_if_owners_do_not(void **state)
{
	(void)state;
	for (int membarrier = 0; membarrier < 2; membarrier++) {
		struct kit_owner o;
		struct kit_reader d;
		struct kit_mem m;

		kit_owner_open(&o, membarrier);
		assert_int_equal(kit_reader_open(&d, &o.addr), 0);
		assert_int_equal(d.x.target.fence, !o.dev.fenced);
		assert_true(membarrier || d.x.target.fence);
		m = kit_arena(&o, PAGE);
		kit_publish(&o, &m, RW);
		there_and_back(&d, &m, 8, 100, 1);
		kit_withdraw(&o, &m);
		kit_reader_close(&d);
		kit_owner_close(&o);
	}
}

/* ---- words ---- */

/* A word that was visited. */
struct visit {
	void *word; /* where, the last time */
	int times;  /* how often */
};

static void visit(void *word, void *arg)
{
	struct visit *v = arg;

	v->word = word;
	v->times++;
	*(char *)word = 1;
}

/* Visits @len bytes at @off of @m: @ret, and a visit if that is 0. */
static void word(struct bed *b, const struct kit_mem *m, size_t off, size_t len,
		 int ret)
{
	struct visit v = { .times = 0 };
	struct rnic_access a = access_of(m, off, NULL, len, true);

	a.atomic = true;
	a.need = RW;
	m->p[off < m->len ? off : 0] = 0;
	assert_int_equal(rnic_reach_word(&b->d.c, &b->d.x, &a, visit, &v), ret);
	assert_int_equal(v.times, !ret);
	assert_int_equal(m->p[off < m->len ? off : 0], !ret);
}

static void contract_P1_native_words_are_done_here(void **state)
{
	struct bed *b = *state;
	struct kit_mem m = kit_arena(&b->o, PAGE), va = kit_private(PAGE);

	kit_publish(&b->o, &m, RW);
	kit_publish(&b->o, &va, RW);
	for (size_t len = 1; len <= 8; len *= 2) {
		word(b, &m, 64, len, 0);
		word(b, &m, PAGE - len, len, 0);
		word(b, &va, 64, len, -EREMOTE);
	}
	word(b, &m, 64, 16, rnic_aop_native(64, 16) ? 0 : -EREMOTE);
	word(b, &m, 72, 16, -EREMOTE);
	word(b, &m, 65, 8, -EREMOTE);
	word(b, &m, 66, 4, -EREMOTE);
	word(b, &m, 64, 32, -EREMOTE);
	word(b, &m, PAGE - 4, 8, -ERANGE);
	kit_withdraw(&b->o, &m);
	word(b, &m, 64, 8, -ENOKEY);
	kit_publish(&b->o, &m, RNIC_REMOTE_WRITE);
	word(b, &m, 64, 8, -EACCES);
	munmap(va.p, va.len);
}

/* Half a word at the end of one range, half at the start of the next. */
static void a_word_in_two_ranges_is_not_native(void **state)
{
	struct bed *b = *state;
	struct kit_mem m[2] = { kit_arena(&b->o, PAGE),
				kit_arena(&b->o, PAGE) };
	struct visit v = { .times = 0 };
	struct rnic_access a = { .atomic = true, .need = RW, .len = 8 };

	m[0].len = 12;
	a.key = kit_publish_list(&b->o, m, 2, RW);
	assert_int_equal(rnic_reach_word(&b->d.c, &b->d.x, &a, visit, &v), 0);
	assert_ptr_not_equal(v.word, NULL);
	assert_int_equal(m[0].p[0], 1);
	a.addr = 8;
	assert_int_equal(rnic_reach_word(&b->d.c, &b->d.x, &a, visit, &v),
			 -EREMOTE);
	assert_int_equal(v.times, 1);
}

/* ---- the owner's own access ---- */

/* What the callback has seen, and how it is to behave. */
struct walk {
	struct bed *b;		 /* for @withdraw */
	const struct kit_mem *m; /* whose key is withdrawn */
	size_t most;		 /* bytes it does in one call */
	int fail_at;		 /* call that fails, 0: none */
	uint32_t rights;	 /* that the key has after the first call */
	int calls;		 /* so far */
	size_t bytes[8];	 /* done by each */
	bool mapped[8];		 /* as told */
	void *mem[8];		 /* as told */
};

/* As another meaning of the key, while readers are not waited for. */
static void rebind(struct walk *w)
{
	struct rnic_region r = {
		.va = (uintptr_t)w->m->p,
		.length = w->m->len,
		.mtt = rnic_mtt_root_make(0, w->m->leaf),
		.rights = w->rights,
	};

	rnic_mpt_invalidate(&w->b->o.mpt, w->m->slot);
	assert_int_equal(rnic_mpt_change(&w->b->o.mpt, w->m->slot, &r), 0);
}

static int step(void *mem, bool mapped, size_t *n, void *arg)
{
	struct walk *w = arg;
	int i = w->calls++;

	assert_true(i < 8);
	if (*n > w->most)
		*n = w->most;
	w->mem[i] = mem;
	w->mapped[i] = mapped;
	if (i + 1 == w->fail_at)
		*n = 10;
	w->bytes[i] = *n;
	if (w->rights && !i)
		rebind(w);
	return i + 1 == w->fail_at ? -EDOM : 0;
}

static void own(struct bed *b, struct rnic_access *a, struct walk *w, int ret,
		size_t want)
{
	size_t done = 12345;

	assert_int_equal(rnic_reach_own(&b->d.c, &b->d.x, a, step, w, &done),
			 ret);
	assert_int_equal(done, want);
}

static void own_memory_comes_in_pieces(void **state)
{
	struct bed *b = *state;
	struct kit_mem m[2] = { kit_arena(&b->o, LEN), kit_private(LEN) };
	struct rnic_access a = { .len = LEN, .addr = 600000, .write = true };
	struct walk w = { .most = SIZE_MAX };

	m[0].len = 700000;
	a.key = kit_publish_list(&b->o, m, 2, RW);
	own(b, &a, &w, 0, LEN);
	assert_int_equal(w.calls, 3);
	assert_int_equal(w.bytes[0], 100000);
	assert_true(w.mapped[0]);
	assert_int_equal(w.bytes[1], RNIC_REACH_CHUNK);
	assert_false(w.mapped[1]);
	assert_ptr_equal(w.mem[1], m[1].p);
	assert_ptr_equal(w.mem[2], m[1].p + RNIC_REACH_CHUNK);
	assert_int_equal(w.bytes[2], LEN - 100000 - RNIC_REACH_CHUNK);
	munmap(m[1].p, LEN);
}

static void short_counts_and_errors_of_the_callback(void **state)
{
	struct bed *b = *state;
	struct kit_mem m = kit_private(LEN);
	struct rnic_access a;
	struct walk w = { .most = 3000 };

	kit_publish(&b->o, &m, RW);
	a = access_of(&m, 500, NULL, 8000, true);
	own(b, &a, &w, 0, 8000);
	assert_int_equal(w.calls, 3);
	assert_ptr_equal(w.mem[1], m.p + 3500);
	assert_int_equal(w.bytes[2], 2000);
	w = (struct walk){ .most = 3000, .fail_at = 2 };
	own(b, &a, &w, -EDOM, 3010);
	assert_int_equal(w.calls, 2);
	/* refused before anything is called */
	w = (struct walk){ .most = 3000 };
	a.len = LEN;
	own(b, &a, &w, -ERANGE, 0);
	assert_int_equal(w.calls, 0);
	munmap(m.p, LEN);
}

/* The key gets another meaning in the middle: the rest is not done. */
static void contract_I3_a_stale_key_ends_it(void **state)
{
	struct bed *b = *state;
	struct kit_mem m = kit_private(LEN);
	struct rnic_access a;
	struct walk w = { .b = b, .m = &m, .most = 3000 };

	kit_publish(&b->o, &m, RW);
	a = access_of(&m, 0, NULL, 9000, true);
	/* the same one, translated anew: it goes on */
	w.rights = RW;
	own(b, &a, &w, 0, 9000);
	w.calls = 0;
	w.rights = RW | RNIC_LOCAL_READ;
	own(b, &a, &w, -ESTALE, 3000);
	munmap(m.p, LEN);
}

#define WITH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(every_byte_is_moved),
		WITH(no_bytes_are_checked),
		WITH(a_hole_ends_a_transfer),
		WITH(contract_R6_keys_bounds_rights),
		WITH(without_the_kernel_the_owner_is_asked),
		WITH(contract_R6_the_short_way),
		WITH(contract_I3_the_short_way),
		WITH(two_pieces_are_not_one),
		WITH(a_hole_is_the_long_ways),
		cmocka_unit_test(memory_of_a_child_is_moved),
		cmocka_unit_test(contract_I1_readers_fence_if_owners_do_not),
		WITH(contract_P1_native_words_are_done_here),
		WITH(a_word_in_two_ranges_is_not_native),
		WITH(own_memory_comes_in_pieces),
		WITH(short_counts_and_errors_of_the_callback),
		WITH(contract_I3_a_stale_key_ends_it),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
