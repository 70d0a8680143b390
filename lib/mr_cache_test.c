/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The registration cache: what is found, what is not found any more, and when;
 * who gives back; that nothing is left. Most of it with a monitor that says
 * what the test wants, so that each step of an insertion and of a hit meets
 * each change.
 */
#define _GNU_SOURCE
#include "lib/mr_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <urcu/urcu-bp.h>

#include "lib/mr.h"
#include "lib/mr_cache_kit.h"
#include "shm/monitor.h"
#include "shm/pin.h"
#include "shm/space.h"
#include "shm/vma.h"
#include "shm/watch.h"

enum {
	LIMIT_S = 120,	  /* the whole program ends by then */
	CHILD_MS = 20000, /* a child ends by then */
	PAGE = MCK_PAGE,
	LEN = 16 * PAGE, /* bytes of most memories */
};

/* A domain with the fake monitor, private memory and a file's. */
struct own {
	struct mck_bed b; /* first */
	char *p;	  /* LEN private bytes */
	char *f;	  /* LEN bytes of a file */
	int fd;		  /* of it */
};

static struct own own;

static void memory(struct own *o)
{
	o->p = mck_private(LEN);
	o->f = mck_file(LEN, &o->fd);
}

static int setup(void **state)
{
	mck_open(&own.b, true);
	memory(&own);
	*state = &own;
	return 0;
}

static int setup_real(void **state)
{
	mck_open(&own.b, false);
	memory(&own);
	*state = &own;
	return 0;
}

static int teardown(void **state)
{
	struct own *o = *state;

	mck_fake.hook = NULL;
	mck_close(&o->b);
	munmap(o->p, LEN);
	munmap(o->f, LEN);
	close(o->fd);
	return 0;
}

static unsigned int spaces(const struct own *o)
{
	return rnic_spaces_used(&o->b.d->dev.spaces);
}

/* ---- hits ---- */

static void a_part_is_found(void **state)
{
	struct own *o = *state;
	struct shrimp_cached *e = mck_get(&o->b, o->p + PAGE, 4 * PAGE, MCK_RW);
	struct fi_shrimp_stats t;

	assert_non_null(e);
	shrimp_cached_put(e);
	assert_true(mck_hits(&o->b, o->p + PAGE, 4 * PAGE, MCK_RW));
	assert_true(mck_hits(&o->b, o->p + 4 * PAGE + 7, 9, SHRIMP_MRC_W));
	/* its mapping's protection is known, though nobody asked for it */
	assert_false(mck_hits(&o->b, o->p + 5 * PAGE, 1, MCK_RW));
	t = mck_stats(&o->b);
	assert_int_equal(t.cache_misses, 2);
	assert_int_equal(t.cache_hits, 2);
	assert_int_equal(t.cache_uncached, 0);
}

static void what_is_asked_must_be_so(void **state)
{
	struct own *o = *state;
	const struct iovec v = { .iov_base = o->p, .iov_len = PAGE };
	struct shrimp_cached *e;

	assert_int_equal(mprotect(o->p, LEN, PROT_READ), 0);
	assert_true(mck_keeps(&o->b, o->p, PAGE, SHRIMP_MRC_R));
	assert_int_equal(shrimp_mr_cache_get(o->b.d, &v, SHRIMP_MRC_W, &e),
			 -FI_EFAULT);
	assert_int_equal(mprotect(o->p, LEN, PROT_READ | PROT_WRITE), 0);
	assert_true(mck_keeps(&o->b, o->p, PAGE, SHRIMP_MRC_W));
	assert_true(mck_hits(&o->b, o->p, PAGE, MCK_RW));
	assert_int_equal(mck_fake.watched, 2 * PAGE);
}

/* An address is right about the bytes: nobody is asked. */
static void contract_R12_addresses_need_no_look(void **state)
{
	struct own *o = *state;
	unsigned int was;

	assert_true(mck_keeps(&o->b, o->p, LEN, MCK_FILE));
	was = mck_fake.calls[MCK_LOOK] + mck_fake.calls[MCK_CYCLE];
	mck_fake.look = -EAGAIN;
	mck_fake.cycle = 1;
	assert_true(mck_hits(&o->b, o->p, LEN, MCK_FILE));
	assert_int_equal(mck_fake.calls[MCK_LOOK] + mck_fake.calls[MCK_CYCLE],
			 was);
	mck_fake.cycle = 2;
	mck_fake.look = 0;
}

/* Not found while the kernel, or the monitor, says that something goes on. */
static void contract_R12_files_are_looked_at(void **state)
{
	struct own *o = *state;

	assert_true(mck_keeps(&o->b, o->f, LEN, MCK_FILE));
	assert_int_equal(spaces(o), 1);
	assert_true(mck_hits(&o->b, o->f + PAGE, PAGE, MCK_FILE));
	mck_fake.look = -EAGAIN;
	assert_false(mck_keeps(&o->b, o->f + PAGE, PAGE, MCK_FILE));
	mck_fake.look = -ENOENT;
	assert_false(mck_keeps(&o->b, o->f + PAGE, PAGE, MCK_FILE));
	mck_fake.look = 0;
	mck_fake.cycle = 1;
	assert_false(mck_keeps(&o->b, o->f + PAGE, PAGE, MCK_FILE));
	mck_fake.cycle = 2;
	assert_true(mck_hits(&o->b, o->f + PAGE, PAGE, MCK_FILE));
}

/* Where in a hit the memory goes, and of which test that is. */
static struct {
	struct own *o;	     /* whose */
	enum mck_call which; /* in which call */
	unsigned int nth;    /* in which of them */
	uint64_t cycle;	     /* added to the number there */
	bool told;	     /* the file is marked there */
	int look;	     /* what look says from there on */
	unsigned int done;   /* how often */
	unsigned int last;   /* the call before, + 1 */
	bool order;	     /* a number was read without a look before */
} at;

static void hook(enum mck_call which, unsigned int nth)
{
	if (which == MCK_CYCLE && at.last != MCK_LOOK + 1)
		at.order = false;
	at.last = which + 1;
	if (which != at.which || nth != at.nth)
		return;
	at.done++;
	mck_fake.cycle += at.cycle;
	mck_fake.look = at.look;
	if (at.told)
		mck_event(&at.o->b, at.o->f, LEN, RNIC_GONE_UNMAPPED);
}

static void arrange(struct own *o, enum mck_call which, unsigned int later)
{
	memset(&at, 0, sizeof(at));
	at.o = o;
	at.which = which;
	at.nth = mck_fake.calls[which] + later;
	at.order = true;
	mck_fake.hook = hook;
}

/*
 * The kernel is asked first, then the monitor, then the mark: what changes
 * after a look at one of them is seen by the next.
 */
static void contract_R12_order_of_a_hit(void **state)
{
	struct own *o = *state;
	struct shrimp_cached *e;

	e = mck_get(&o->b, o->f, LEN, MCK_FILE);
	assert_non_null(e);
	/* the change is told as soon as the kernel was asked */
	arrange(o, MCK_LOOK, 1);
	at.told = true;
	assert_false(mck_hits(&o->b, o->f, LEN, MCK_FILE));
	assert_int_equal(at.done, 1);
	shrimp_cached_put(e);
	/* and when the number was read */
	arrange(o, MCK_CYCLE, 1);
	at.told = true;
	assert_false(mck_hits(&o->b, o->f, LEN, MCK_FILE));
	assert_int_equal(at.done, 1);
	mck_fake.hook = NULL;
	assert_true(mck_keeps(&o->b, o->f, LEN, MCK_FILE));
	/* the monitor begins between the two */
	arrange(o, MCK_LOOK, 1);
	at.cycle = 1;
	assert_false(mck_hits(&o->b, o->f, LEN, MCK_FILE));
	assert_int_equal(at.done, 1);
	mck_fake.cycle = 4;
	arrange(o, MCK_UNWATCH, 1000);
	assert_true(mck_hits(&o->b, o->f, LEN, MCK_FILE));
	assert_true(at.order);
}

/* ---- insertion ---- */

/* Nothing of an insertion that failed is left. */
static void expect_nothing(struct own *o)
{
	struct fi_shrimp_stats t = mck_stats(&o->b);

	assert_int_equal(t.cache_entries, 0);
	assert_int_equal(t.cache_bytes, 0);
	assert_int_equal(t.cache_pinned, 0);
	assert_int_equal(mck_fake.watched, 0);
	assert_int_equal(spaces(o), 0);
}

/* K1: the monitor is at work, and does not end soon. */
static void contract_R12_busy_is_not_kept(void **state)
{
	struct own *o = *state;

	mck_fake.cycle = 1;
	assert_false(mck_keeps(&o->b, o->f, LEN, MCK_FILE));
	assert_false(mck_keeps(&o->b, o->p, LEN, MCK_RW));
	expect_nothing(o);
	assert_int_equal(mck_stats(&o->b).cache_uncached, 2);
	mck_fake.cycle = 2;
}

static void contract_R12_unwatched_is_not_kept(void **state)
{
	struct own *o = *state;

	mck_fake.watch = -EBUSY;
	assert_false(mck_keeps(&o->b, o->p, LEN, MCK_RW));
	expect_nothing(o);
	mck_fake.watch = 0;
	mck_fake.look = -EAGAIN;
	assert_false(mck_keeps(&o->b, o->p, LEN, MCK_RW));
	assert_false(mck_keeps(&o->b, o->f, LEN, MCK_FILE));
	expect_nothing(o);
	mck_fake.look = 0;
}

/* Entries that were not kept since something changed meanwhile. */
static uint64_t unsettled(struct own *o)
{
	return rnic_load64_relaxed(&o->b.d->cache.gone[RNIC_GONE_UNSETTLED]);
}

/*
 * An event that was read between the first look at the number and the last:
 * another try. The entry may be one of memory that is no more.
 */
static void contract_R12_change_meanwhile(void **state)
{
	struct own *o = *state;
	static const struct {
		enum mck_call which; /* in which call */
		unsigned int nth;    /* the last look, or before */
	} when[] = { { MCK_WATCH, 1 }, { MCK_LOOK, 1 }, { MCK_LOOK, 2 } };

	for (size_t i = 0; i < sizeof(when) / sizeof(*when); i++) {
		uint64_t was = unsettled(o);

		arrange(o, when[i].which, when[i].nth);
		at.cycle = 2;
		assert_true(mck_keeps(&o->b, o->f, LEN, MCK_FILE));
		assert_int_equal(at.done, 1);
		assert_int_equal(unsettled(o), was + 1);
		assert_int_equal(mck_stats(&o->b).cache_entries, 1);
		assert_int_equal(mck_fake.watched, LEN);
		mck_fake.hook = NULL;
		mck_event(&o->b, o->f, LEN, RNIC_GONE_UNMAPPED);
		shrimp_mr_cache_reap(o->b.d);
		expect_nothing(o);
	}
}

/* The number changes at each look: it cannot be kept, and nothing is left. */
static void never_still(enum mck_call which, unsigned int nth)
{
	(void)nth;
	if (which == MCK_LOOK)
		mck_fake.cycle += 2;
}

static void contract_R12_never_still(void **state)
{
	struct own *o = *state;

	mck_fake.hook = never_still;
	assert_false(mck_keeps(&o->b, o->f, LEN, MCK_FILE));
	assert_false(mck_keeps(&o->b, o->p, LEN, MCK_RW));
	expect_nothing(o);
	mck_fake.hook = NULL;
	assert_true(mck_keeps(&o->b, o->f, LEN, MCK_FILE));
}

/*
 * K2: at the last look the monitor can find it already: an event that is read
 * then finds the entry, and it is not kept as it is.
 */
static void contract_R12_findable_before_the_look(void **state)
{
	struct own *o = *state;
	struct shrimp_cached *e;

	/* the first look is before it was looked at */
	arrange(o, MCK_LOOK, 2);
	at.told = true;
	e = mck_get(&o->b, o->f, LEN, MCK_FILE);
	assert_int_equal(at.done, 1);
	assert_int_equal(mck_stats(&o->b).cache_unmapped, 1);
	mck_fake.hook = NULL;
	if (e)
		shrimp_cached_put(e);
	shrimp_mr_cache_reap(o->b.d);
	expect_nothing(o);
}

static struct shrimp_cached *second; /* who comes at the last look */

static void second_comes(enum mck_call which, unsigned int nth)
{
	if (which != at.which || nth != at.nth)
		return;
	mck_fake.hook = NULL;
	second = mck_get(&at.o->b, at.o->f, LEN, MCK_FILE);
}

/*
 * Before K3 an entry is nobody's: an event that came before it could be found
 * has not marked it, and only its maker knows the number from before.
 */
static void contract_R12_nobody_has_it_before_the_look(void **state)
{
	struct own *o = *state;
	struct shrimp_cached *e;

	arrange(o, MCK_LOOK, 2);
	mck_fake.hook = second_comes;
	second = NULL;
	e = mck_get(&o->b, o->f, LEN, MCK_FILE);
	assert_non_null(e);
	assert_non_null(second);
	assert_ptr_not_equal(e, second);
	shrimp_cached_put(second);
	shrimp_cached_put(e);
	assert_true(mck_hits(&o->b, o->f, LEN, MCK_FILE));
}

/* ---- users ---- */

/* Gone, but in use: nobody finds it, and its last user gives it back. */
static void the_last_user_gives_back(void **state)
{
	struct own *o = *state;
	struct shrimp_cached *e = mck_get(&o->b, o->f, LEN, MCK_FILE);
	struct shrimp_cached *again = mck_get(&o->b, o->f, PAGE, MCK_FILE);

	assert_ptr_equal(e, again);
	mck_event(&o->b, o->f + PAGE, PAGE, RNIC_GONE_MOVED);
	mck_event(&o->b, o->f, LEN, RNIC_GONE_MOVED);
	assert_int_equal(mck_stats(&o->b).cache_moved, 1);
	shrimp_mr_cache_reap(o->b.d);
	assert_int_equal(mck_stats(&o->b).cache_entries, 0);
	assert_int_equal(spaces(o), 1);
	assert_int_equal(mck_fake.watched, LEN);
	shrimp_cached_put(e);
	assert_int_equal(spaces(o), 1);
	assert_true(shrimp_cached_used(again));
	shrimp_cached_put(again);
	expect_nothing(o);
	assert_int_equal(mck_fake.calls[MCK_UNWATCH], 1);
}

/* What was counted stays counted. */
static void hits_never_go_down(void **state)
{
	struct own *o = *state;
	struct shrimp_cached *e = mck_get(&o->b, o->p, LEN, MCK_RW);

	for (int i = 0; i < 5; i++)
		assert_true(mck_hits(&o->b, o->p, PAGE, MCK_RW));
	mck_event(&o->b, o->p, LEN, RNIC_GONE_UNMAPPED);
	shrimp_mr_cache_reap(o->b.d);
	assert_int_equal(mck_stats(&o->b).cache_hits, 5);
	shrimp_cached_put(e);
	assert_int_equal(mck_stats(&o->b).cache_hits, 5);
}

static void each_cause_is_counted(void **state)
{
	struct own *o = *state;
	struct fi_shrimp_stats t;
	static const enum rnic_gone what[] = {
		RNIC_GONE_UNMAPPED,  RNIC_GONE_MOVED, RNIC_GONE_DISCARDED,
		RNIC_GONE_DISCARDED, RNIC_GONE_LOST,
	};

	for (size_t i = 0; i < sizeof(what) / sizeof(*what); i++) {
		assert_true(mck_keeps(&o->b, o->p, LEN, MCK_RW));
		mck_event(&o->b, o->p + LEN - PAGE, PAGE, what[i]);
		assert_false(mck_hits(&o->b, o->p, PAGE, MCK_RW));
		mck_event(&o->b, o->p, LEN, RNIC_GONE_UNMAPPED);
		shrimp_mr_cache_reap(o->b.d);
	}
	t = mck_stats(&o->b);
	assert_int_equal(t.cache_unmapped, 1 + 5);
	assert_int_equal(t.cache_moved, 1);
	assert_int_equal(t.cache_discarded, 2);
	assert_int_equal(t.cache_lost, 1);
}

/* ---- limits ---- */

/* Page @i of the private memory, an entry of its own: others are between. */
static bool page_hits(struct own *o, int i)
{
	return mck_hits(&o->b, o->p + 2 * i * PAGE, PAGE, MCK_RW);
}

static void page_keep(struct own *o, int i)
{
	assert_true(mck_keeps(&o->b, o->p + 2 * i * PAGE, PAGE, MCK_RW));
}

/* The one that was used longest ago goes first. */
static void least_recently_used_goes(void **state)
{
	struct own *o = *state;

	o->b.set->mrc_entries = 4;
	for (int i = 0; i < 4; i++)
		page_keep(o, i);
	assert_true(page_hits(o, 0));
	page_keep(o, 4); /* 1 goes */
	page_keep(o, 5); /* 2 goes */
	assert_int_equal(mck_stats(&o->b).cache_evictions, 2);
	assert_int_equal(mck_stats(&o->b).cache_entries, 4);
	assert_int_equal(mck_fake.watched, 4 * PAGE);
	assert_true(page_hits(o, 0));
	assert_true(page_hits(o, 3));
	assert_true(page_hits(o, 4));
	assert_true(page_hits(o, 5));
	assert_false(page_hits(o, 1));
	assert_false(page_hits(o, 2));
}

static void bytes_are_a_limit(void **state)
{
	struct own *o = *state;

	o->b.set->mrc_bytes = 4 * PAGE;
	assert_true(mck_keeps(&o->b, o->p, 3 * PAGE, MCK_RW));
	page_keep(o, 3);
	assert_int_equal(mck_stats(&o->b).cache_bytes, 4 * PAGE);
	page_keep(o, 4);
	assert_int_equal(mck_stats(&o->b).cache_bytes, 2 * PAGE);
	/* larger than all of it: kept while it is in use */
	assert_true(mck_keeps(&o->b, o->f, LEN, MCK_FILE));
	page_keep(o, 5);
	assert_int_equal(mck_stats(&o->b).cache_bytes, PAGE);
	assert_int_equal(spaces(o), 0);
}

/* What is in use stays, and is found; it goes when nobody uses it. */
static void what_is_used_stays(void **state)
{
	struct own *o = *state;
	struct shrimp_cached *e[8];

	o->b.set->mrc_entries = 4;
	for (int i = 0; i < 8; i++)
		e[i] = mck_get(&o->b, o->p + 2 * i * PAGE, PAGE, MCK_RW);
	assert_int_equal(mck_stats(&o->b).cache_evictions, 0);
	for (int i = 0; i < 8; i++)
		assert_true(page_hits(o, i));
	for (int i = 0; i < 8; i++)
		shrimp_cached_put(e[i]);
	/* in the list again, so that who puts one takes no lock: not OFF */
	e[0] = mck_get(&o->b, o->p + 14 * PAGE, PAGE, MCK_RW);
	assert_false(rnic_load64_relaxed(&e[0]->word) >> 22 & 1);
	shrimp_cached_put(e[0]);
	assert_int_equal(mck_stats(&o->b).cache_entries, 4);
	assert_int_equal(mck_stats(&o->b).cache_evictions, 4);
	assert_int_equal(mck_stats(&o->b).cache_hits, 9);
}

static void flush_drops_what_nobody_uses(void **state)
{
	struct own *o = *state;
	struct shrimp_cached *e = mck_get(&o->b, o->p, PAGE, MCK_RW);

	for (int i = 1; i < 8; i++)
		page_keep(o, i);
	assert_int_equal(o->b.ops->flush(&o->b.d->fid.fid), 0);
	assert_int_equal(mck_stats(&o->b).cache_entries, 1);
	assert_true(page_hits(o, 0));
	shrimp_cached_put(e);
	assert_true(page_hits(o, 0));
	assert_int_equal(o->b.ops->flush(&o->b.d->fid.fid), 0);
	expect_nothing(o);
}

/* ---- neighbours ---- */

static void neighbours_become_one(void **state)
{
	struct own *o = *state;

	assert_true(mck_keeps(&o->b, o->p, PAGE, MCK_RW));
	assert_true(mck_keeps(&o->b, o->p + 2 * PAGE, PAGE, MCK_RW));
	assert_int_equal(mck_stats(&o->b).cache_entries, 2);
	assert_true(mck_keeps(&o->b, o->p + PAGE, PAGE, MCK_RW));
	shrimp_mr_cache_reap(o->b.d);
	assert_int_equal(mck_stats(&o->b).cache_entries, 1);
	assert_int_equal(mck_stats(&o->b).cache_merged, 2);
	assert_int_equal(mck_fake.watched, 3 * PAGE);
	assert_true(mck_hits(&o->b, o->p, 3 * PAGE, MCK_RW));
	assert_false(mck_hits(&o->b, o->p, 4 * PAGE, MCK_RW));
}

/* One that is in use stays as it is, until nobody uses it. */
static void a_used_neighbour_stays(void **state)
{
	struct own *o = *state;
	struct shrimp_cached *e = mck_get(&o->b, o->f, PAGE, MCK_FILE);

	assert_true(mck_keeps(&o->b, o->f + PAGE, PAGE, MCK_FILE));
	shrimp_mr_cache_reap(o->b.d);
	assert_int_equal(mck_stats(&o->b).cache_merged, 0);
	assert_int_equal(mck_stats(&o->b).cache_entries, 2);
	assert_int_equal(mck_fake.watched, 2 * PAGE);
	assert_int_equal(shrimp_cached_leaf(e, (uintptr_t)o->f),
			 rnic_mtt_leaf_space(1, 0));
	shrimp_cached_put(e);
	assert_true(mck_keeps(&o->b, o->f, 3 * PAGE, MCK_FILE));
	shrimp_mr_cache_reap(o->b.d);
	assert_int_equal(mck_stats(&o->b).cache_merged, 2);
	assert_int_equal(mck_stats(&o->b).cache_entries, 1);
	assert_int_equal(mck_fake.watched, 3 * PAGE);
	e = mck_get(&o->b, o->f + PAGE, 1, MCK_FILE);
	assert_int_equal(e->span.start, (uintptr_t)o->f);
	assert_int_equal(shrimp_cached_leaf(e, (uintptr_t)o->f + PAGE + 5),
			 rnic_mtt_leaf_space(1, 1));
	shrimp_cached_put(e);
}

/* The pages that a neighbour has are not looked at again, one by one. */
static void neighbours_are_not_made_again(void **state)
{
	struct own *o = *state;
	struct stat st;

	assert_true(mck_keeps(&o->b, o->f, PAGE, MCK_FILE));
	assert_int_equal(fallocate(o->fd,
				   FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   0, 2 * PAGE),
			 0);
	assert_true(mck_keeps(&o->b, o->f + PAGE, PAGE, MCK_FILE));
	assert_int_equal(mck_stats(&o->b).cache_merged, 1);
	assert_int_equal(fstat(o->fd, &st), 0);
	assert_int_equal(st.st_blocks * 512, LEN - PAGE);
}

/* Regions of different rights are not one, nor is a file with what is none. */
static void others_are_not_neighbours(void **state)
{
	struct own *o = *state;
	struct fid_mr *mr;

	assert_true(mck_keeps(&o->b, o->p, PAGE, MCK_RW));
	assert_int_equal(
		mck_acquire(&o->b, o->p + PAGE, PAGE, FI_REMOTE_READ, &mr), 0);
	assert_int_equal(o->b.ops->release(mr), 0);
	assert_int_equal(
		mck_acquire(&o->b, o->p + 2 * PAGE, PAGE, FI_REMOTE_WRITE, &mr),
		0);
	assert_int_equal(o->b.ops->release(mr), 0);
	/* not one that has more, either: it stays what it is */
	assert_int_equal(mck_acquire(&o->b, o->p + 4 * PAGE, PAGE,
				     FI_REMOTE_READ | FI_REMOTE_WRITE, &mr),
			 0);
	assert_int_equal(o->b.ops->release(mr), 0);
	assert_int_equal(
		mck_acquire(&o->b, o->p + 5 * PAGE, PAGE, FI_REMOTE_READ, &mr),
		0);
	assert_int_equal(((struct shrimp_mr *)mr)->keeper->span.start,
			 (uintptr_t)o->p + 5 * PAGE);
	assert_int_equal(o->b.ops->release(mr), 0);
	assert_int_equal(mck_stats(&o->b).cache_merged, 0);
	assert_int_equal(mck_stats(&o->b).cache_entries, 5);
}

/* ---- memory of the device ---- */

static void contract_R12_device_memory(void **state)
{
	struct own *o = *state;
	struct fi_ops_shrimp_mem *mem;
	unsigned int was;
	void *ops, *p;

	assert_int_equal(
		fi_open_ops(&o->b.d->fid.fid, FI_SHRIMP_OPS_MEM, 0, &ops, NULL),
		0);
	mem = ops;
	assert_int_equal(mem->alloc(&o->b.d->fid.fid, 3 * PAGE, 0, &p), 0);
	was = mck_fake.calls[MCK_WATCH] + mck_fake.calls[MCK_LOOK];
	assert_true(mck_keeps(&o->b, p, 2 * PAGE, MCK_FILE));
	assert_true(mck_hits(&o->b, p, PAGE, MCK_FILE));
	assert_int_equal(mck_fake.calls[MCK_WATCH] + mck_fake.calls[MCK_LOOK],
			 was);
	assert_int_equal(mem->free(&o->b.d->fid.fid, p), 0);
	assert_int_equal(mck_stats(&o->b).cache_told, 1);
	expect_nothing(o);
}

/* ---- regions ---- */

/* A region that is acquired is the cache's: nobody changes or closes it. */
static void an_acquired_region_is_not_changed(void **state)
{
	struct own *o = *state;
	const struct iovec v = { .iov_base = o->f, .iov_len = PAGE };
	struct fi_mr_modify m = { .attr = { .mr_iov = &v, .iov_count = 1 } };
	struct fid_mr *mr;

	assert_int_equal(mck_acquire(&o->b, o->f, LEN, FI_REMOTE_READ, &mr), 0);
	assert_int_equal(fi_close(&mr->fid), -FI_EBUSY);
	assert_int_equal(fi_control(&mr->fid, FI_REFRESH, &m), -FI_EINVAL);
	assert_int_equal(o->b.ops->release(mr), 0);
	assert_int_equal(o->b.ops->release(mr), -FI_EINVAL);
	assert_int_equal(o->b.ops->flush(&o->b.d->fid.fid), 0);
	expect_nothing(o);
}

/*
 * One that the monitor ends, FI_SHRIMP_MONITOR=uffd, is not found while its
 * memory may be gone: it would not live long.
 */
static void a_watched_region_is_looked_at(void **state)
{
	struct own *o = *state;
	struct fid_mr *mr, *again;

	o->b.set->monitor = SHRIMP_MONITOR_UFFD;
	assert_int_equal(mck_acquire(&o->b, o->p, LEN, FI_REMOTE_READ, &mr), 0);
	assert_int_equal(o->b.ops->release(mr), 0);
	mck_fake.look = -EAGAIN;
	assert_int_equal(mck_acquire(&o->b, o->p, LEN, FI_REMOTE_READ, &again),
			 0);
	assert_ptr_not_equal(mr, again);
	mck_fake.look = 0;
	assert_int_equal(o->b.ops->release(again), 0);
}

/* ---- pins that are kept ---- */

static uint64_t pinned(void)
{
	struct rnic_pin_stats s;

	rnic_pin_stats(&s);
	return s.pages * PAGE;
}

static void pins_are_kept_if_asked(void **state)
{
	struct own *o = *state;
	struct fid_mr *mr;

	o->b.set->mrc_pin = SHRIMP_MRC_KEEP;
	o->b.set->pin = RNIC_PIN_TRY;
	assert_int_equal(
		fi_mr_reg(&o->b.d->fid, o->p, LEN, FI_SEND, 0, 0, 0, &mr, NULL),
		0);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(pinned(), LEN);
	assert_int_equal(mck_stats(&o->b).cache_pinned, LEN);
	mck_event(&o->b, o->p, PAGE, RNIC_GONE_UNMAPPED);
	shrimp_mr_cache_reap(o->b.d);
	assert_int_equal(pinned(), 0);
	expect_nothing(o);
}

/*
 * A batch locks what is there now, though the region of what was there before
 * has not been given back.
 */
static void gone_pins_are_not_taken_for_new_ones(void **state)
{
	struct own *o = *state;
	const struct iovec v = { .iov_base = o->p, .iov_len = PAGE };
	const struct fi_mr_attr a = { .mr_iov = &v,
				      .iov_count = 1,
				      .access = FI_REMOTE_READ };
	struct fi_ops_shrimp_mr *ops;
	struct fid_mr *mr;
	void *p;

	o->b.set->mrc_pin = SHRIMP_MRC_KEEP;
	o->b.set->pin = RNIC_PIN_TRY;
	assert_int_equal(
		fi_open_ops(&o->b.d->fid.fid, FI_SHRIMP_OPS_MR, 0, &p, NULL),
		0);
	ops = p;
	assert_int_equal(mck_acquire(&o->b, o->p, PAGE, FI_REMOTE_READ, &mr),
			 0);
	assert_int_equal(o->b.ops->release(mr), 0);
	mck_event(&o->b, o->p, PAGE, RNIC_GONE_UNMAPPED);
	assert_true(mmap(o->p, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) == o->p);
	assert_int_equal(ops->reg_batch(&o->b.d->fid.fid, &a, 1, 0, &mr), 0);
	/* msync(2) says that it is locked */
	assert_int_equal(msync(o->p, PAGE, MS_ASYNC | MS_INVALIDATE), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(fi_close(&mr->fid), 0);
}

/* ---- the end ---- */

static rnic_a32 marked; /* 1: the thread is in the middle of marking */

/*
 * Marks as mark() in mr_cache.c does, and takes its time before the entry is
 * on the stack.
 */
static void *slow_marker(void *arg)
{
	struct shrimp_cached *e = arg;
	struct shrimp_mr_cache *c = e->of;

	urcu_bp_read_lock();
	rnic_or64_seqcst(&e->word, UINT64_C(1) << 20); /* GONE */
	rnic_store32_release(&marked, 1);
	usleep(50000);
	rnic_ptr_store_release(&e->next, rnic_ptr_load_relaxed(&c->went));
	rnic_ptr_store_release(&c->went, e);
	urcu_bp_read_unlock();
	return NULL;
}

/* Who is marking is waited for: nothing that is unused stays. */
static void flush_waits_for_who_marks(void **state)
{
	struct own *o = *state;
	struct shrimp_cached *e = mck_get(&o->b, o->p, PAGE, MCK_RW);
	pthread_t t;

	shrimp_cached_put(e);
	for (int i = 1; i < 4; i++)
		page_keep(o, i);
	rnic_store32_relaxed(&marked, 0);
	assert_int_equal(pthread_create(&t, NULL, slow_marker, e), 0);
	while (!rnic_load32_acquire(&marked))
		usleep(100);
	shrimp_mr_cache_flush(o->b.d);
	expect_nothing(o);
	pthread_join(t, NULL);
}

static void a_domain_in_use_is_not_closed(void **state)
{
	struct own *o = *state;
	struct fid_mr *mr;

	assert_int_equal(mck_acquire(&o->b, o->p, LEN, FI_REMOTE_READ, &mr), 0);
	assert_int_equal(fi_close(&o->b.d->fid.fid), -FI_EBUSY);
	assert_int_equal(o->b.ops->release(mr), 0);
	assert_int_equal(mck_stats(&o->b).cache_entries, 1);
}

/* Not cached: a region of its own, closed when it is released. */
static void off_registers_each_time(void **state)
{
	struct own *o = *state;
	uint32_t refs = rnic_load32_acquire(&o->b.d->refs);
	struct fid_mr *mr;

	o->b.set->mrc = SHRIMP_MRC_OFF;
	assert_int_equal(mck_acquire(&o->b, o->f, LEN, FI_REMOTE_READ, &mr), 0);
	assert_int_equal(spaces(o), 1);
	assert_int_equal(rnic_load32_acquire(&o->b.d->refs), refs + 1);
	assert_int_equal(o->b.ops->release(mr), 0);
	assert_int_equal(rnic_load32_acquire(&o->b.d->refs), refs);
	expect_nothing(o);
}

/* ---- with the kernel's events ---- */

static void settle(void)
{
	rnic_monitor_pass(rnic_monitor_round());
}

static void contract_R12_the_kernel_tells(void **state)
{
	struct own *o = *state;
	struct fi_shrimp_stats t;
	char *q;

	assert_true(mck_keeps(&o->b, o->p, LEN, MCK_RW));
	assert_int_equal(munmap(o->p + PAGE, PAGE), 0);
	settle();
	assert_false(mck_hits(&o->b, o->p, PAGE, MCK_RW));
	assert_int_equal(madvise(o->p, PAGE, MADV_DONTNEED), 0);
	settle();
	assert_true(mck_keeps(&o->b, o->f, LEN, MCK_FILE));
	q = mremap(o->f, LEN, LEN, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	assert_true(q != MAP_FAILED);
	settle();
	assert_true(mck_keeps(&o->b, q, PAGE, MCK_FILE));
	t = mck_stats(&o->b);
	assert_int_equal(t.cache_unmapped, 1);
	assert_int_equal(t.cache_discarded, 1);
	assert_int_equal(t.cache_moved, 1);
	munmap(q, LEN);
}

/* A part that somebody locked does not keep the whole from being cached. */
static void several_mappings_are_cached(void **state)
{
	struct own *o = *state;

	if (!rnic_vma_fast())
		skip();
	assert_int_equal(mlock(o->p + 4 * PAGE, PAGE), 0);
	assert_int_equal(mlock(o->f + 4 * PAGE, PAGE), 0);
	assert_true(mck_keeps(&o->b, o->p, LEN, MCK_RW));
	assert_true(mck_hits(&o->b, o->p, LEN, MCK_RW));
	assert_true(mck_keeps(&o->b, o->f, LEN, MCK_FILE));
	assert_true(mck_hits(&o->b, o->f, LEN, MCK_FILE));
	assert_int_equal(mck_stats(&o->b).cache_lost, 0);
}

/* What may not be watched is registered, and not cached. */
static void contract_R12_mappings_are_limited(void **state)
{
	struct own *o = *state;
	struct fid_mr *mr;
	char *p = (char *)mck_private(3 * PAGE) + PAGE;

	/* a page by itself */
	assert_int_equal(munmap(p - PAGE, PAGE), 0);
	assert_int_equal(munmap(p + PAGE, PAGE), 0);
	rnic_vma_limit(2);
	page_keep(o, 0);
	assert_false(mck_keeps(&o->b, (void *)p, PAGE, MCK_RW));
	assert_int_equal(
		fi_mr_reg(&o->b.d->fid, p, PAGE, FI_SEND, 0, 0, 0, &mr, NULL),
		0);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(mck_stats(&o->b).cache_uncached, 2);
	assert_int_equal(mck_stats(&o->b).cache_lost, 0);
	rnic_vma_limit(0);
	munmap(p, PAGE);
}

/* What is kept of a part of a mapping does not keep all of it where it is. */
static void contract_R12_mremap_of_all(void **state)
{
	struct own *o = *state;
	void *old = o->p, *to;

	if (!rnic_vma_fast())
		skip();
	page_keep(o, 1);
	to = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(mremap(old, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
		    to);
	o->p = to;
	/* the mremap goes on when it is read; it is told a moment later */
	rnic_monitor_pass(rnic_monitor_round());
	assert_int_equal(mck_stats(&o->b).cache_moved, 1);
	assert_false(mck_hits(&o->b, old, PAGE, MCK_RW));
}

/* ---- fork ---- */

static rnic_a32 inside; /* 1: a thread is in a section; 0: it may leave */

static void *sleeper(void *arg)
{
	urcu_bp_read_lock();
	rnic_store32_release(&inside, 1);
	while (rnic_load32_acquire(&inside))
		usleep(1000);
	urcu_bp_read_unlock();
	return arg;
}

/* Threads that were in a hit are not waited for where they are not. */
static int child(struct own *o, struct fid_mr *mr)
{
	struct fid *d = &o->b.d->fid.fid;
	struct fid_mr *again;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mck_acquire(&o->b, o->p, PAGE, FI_SEND, &again) !=
		    -FI_EOPBADSTATE ||
	    o->b.ops->release(mr) != -FI_EOPBADSTATE ||
	    o->b.ops->flush(d) != -FI_EOPBADSTATE ||
	    o->b.ops->unmap_begin(d, o->p, PAGE) != -FI_EOPBADSTATE ||
	    o->b.ops->unmap_end(d, o->p, PAGE) != -FI_EOPBADSTATE)
		return 1;
	urcu_bp_synchronize_rcu();
	return munmap(o->p, LEN) ? 2 : 0;
}

/* How @pid ends; a wait of liburcu's lets no other signal through. */
static int end_of(pid_t pid)
{
	int status;

	for (int i = 0; i < CHILD_MS; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		usleep(1000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return status;
}

static void a_child_uses_no_cache(void **state)
{
	struct own *o = *state;
	struct fid_mr *mr;
	pthread_t t;
	int status;
	pid_t pid;

	assert_int_equal(mck_acquire(&o->b, o->p, LEN, FI_SEND, &mr), 0);
	assert_int_equal(pthread_create(&t, NULL, sleeper, NULL), 0);
	while (!rnic_load32_acquire(&inside))
		usleep(1000);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(child(o, mr));
	status = end_of(pid);
	rnic_store32_release(&inside, 0);
	pthread_join(t, NULL);
	assert_int_equal(status, 0);
	assert_int_equal(o->b.ops->release(mr), 0);
	assert_true(mck_hits(&o->b, o->p, LEN, SHRIMP_MRC_R));
}

#define FAKE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
#define REAL(fn) cmocka_unit_test_setup_teardown(fn, setup_real, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE(a_part_is_found),
		FAKE(what_is_asked_must_be_so),
		FAKE(contract_R12_addresses_need_no_look),
		FAKE(contract_R12_files_are_looked_at),
		FAKE(contract_R12_order_of_a_hit),
		FAKE(contract_R12_busy_is_not_kept),
		FAKE(contract_R12_unwatched_is_not_kept),
		FAKE(contract_R12_change_meanwhile),
		FAKE(contract_R12_never_still),
		FAKE(contract_R12_findable_before_the_look),
		FAKE(contract_R12_nobody_has_it_before_the_look),
		FAKE(the_last_user_gives_back),
		FAKE(hits_never_go_down),
		FAKE(each_cause_is_counted),
		FAKE(least_recently_used_goes),
		FAKE(bytes_are_a_limit),
		FAKE(what_is_used_stays),
		FAKE(flush_drops_what_nobody_uses),
		FAKE(neighbours_become_one),
		FAKE(a_used_neighbour_stays),
		FAKE(neighbours_are_not_made_again),
		FAKE(others_are_not_neighbours),
		FAKE(contract_R12_device_memory),
		FAKE(an_acquired_region_is_not_changed),
		FAKE(a_watched_region_is_looked_at),
		FAKE(pins_are_kept_if_asked),
		FAKE(gone_pins_are_not_taken_for_new_ones),
		FAKE(flush_waits_for_who_marks),
		FAKE(a_domain_in_use_is_not_closed),
		FAKE(off_registers_each_time),
		REAL(contract_R12_the_kernel_tells),
		REAL(several_mappings_are_cached),
		REAL(contract_R12_mappings_are_limited),
		REAL(contract_R12_mremap_of_all),
		REAL(a_child_uses_no_cache),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
