/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Watched regions: memory that goes while it is registered, or just before, and
 * what happens when there is no memory for the watch. The linker puts this file
 * between the library and what it calls (lib/local.mk).
 */
#define _GNU_SOURCE
#include "lib/odp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "lib/mr.h"
#include "lib/mr_cache_kit.h"
#include "shm/monitor.h"
#include "shm/watch.h"

enum {
	PAGE = MCK_PAGE,
	LEN = 4 * PAGE,	 /* bytes of a memory */
	LIMIT_S = 60,	 /* the whole program ends by then */
	MOST = 200,	 /* allocations of a call, far more than there are */
	NOT_FAILING = -1 /* all allocations are made */
};

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* ---- between the library and what it calls ---- */

static _Thread_local int left = NOT_FAILING; /* allocations until one fails */
static void (*before_join)(void);	     /* of the next region, or NULL */
static void (*after_arm)(void);		     /* of the next range, or NULL */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void __real_rnic_monitor_join(struct rnic_device *d, struct rnic_watched *w,
			      struct rnic_mpt *mpt);
void __wrap_rnic_monitor_join(struct rnic_device *d, struct rnic_watched *w,
			      struct rnic_mpt *mpt);
int __real_rnic_watch_arm(uint64_t addr, uint64_t len);
int __wrap_rnic_watch_arm(uint64_t addr, uint64_t len);

void *__wrap_calloc(size_t n, size_t size)
{
	if (left != NOT_FAILING && !left--)
		return NULL;
	return __real_calloc(n, size);
}

static void run_once(void (**hook)(void))
{
	void (*f)(void) = *hook;

	*hook = NULL;
	if (f)
		f();
}

void __wrap_rnic_monitor_join(struct rnic_device *d, struct rnic_watched *w,
			      struct rnic_mpt *mpt)
{
	run_once(&before_join);
	__real_rnic_monitor_join(d, w, mpt);
}

int __wrap_rnic_watch_arm(uint64_t addr, uint64_t len)
{
	int ret = __real_rnic_watch_arm(addr, len);

	run_once(&after_arm);
	return ret;
}

/* ---- a domain, and memory ---- */

static struct bed {
	struct mck_bed b;	      /* first */
	struct fi_ops_shrimp_mr *ops; /* calls of the domain */
	char *p;		      /* LEN private bytes */
	char *f;		      /* LEN bytes of a file */
	int fd;			      /* of it */
} bed;

static int open_as(void **state, enum shrimp_monitor monitor,
		   enum shrimp_mrc_mode cache)
{
	void *ops;

	mck_fabric(&bed.b);
	bed.b.set->monitor = monitor;
	bed.b.set->mrc = cache;
	mck_domain(&bed.b);
	assert_int_equal(
		fi_open_ops(&bed.b.d->fid.fid, FI_SHRIMP_OPS_MR, 0, &ops, NULL),
		0);
	bed.ops = ops;
	bed.p = mck_private(LEN);
	bed.f = mck_file(LEN, &bed.fd);
	*state = &bed;
	return 0;
}

/* Idle regions are watched, and no other. */
static int setup_idle(void **state)
{
	return open_as(state, SHRIMP_MONITOR_AUTO, SHRIMP_MRC_LOCAL);
}

/* All are. */
static int setup_all(void **state)
{
	return open_as(state, SHRIMP_MONITOR_UFFD, SHRIMP_MRC_OFF);
}

static int teardown(void **state)
{
	(void)state;
	before_join = after_arm = NULL;
	mck_close(&bed.b);
	munmap(bed.p, LEN);
	munmap(bed.f, LEN);
	close(bed.fd);
	return 0;
}

/* ---- memory goes meanwhile ---- */

/* Another file is there now. */
static void replace(void)
{
	char *p;

	close(bed.fd);
	p = mck_file(LEN, &bed.fd);
	assert_true(mremap(p, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, bed.f) ==
		    bed.f);
}

static void take_away(void)
{
	assert_int_equal(munmap(bed.f + PAGE, PAGE), 0);
}

/* The same bytes, and nobody watches them. */
static void map_again(void)
{
	assert_true(mmap(bed.f, LEN, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, bed.fd, 0) == bed.f);
}

static void no_change(void)
{
	assert_int_equal(mprotect(bed.f, PAGE, PROT_READ), 0);
	assert_int_equal(mprotect(bed.f, PAGE, PROT_READ | PROT_WRITE), 0);
}

/* Registers private memory and a file's in one, and says whether it is gone. */
static bool is_lost(void)
{
	const struct iovec iov[2] = { { bed.p + 10, 100 },
				      { bed.f + 10, LEN - 10 } };
	const struct rnic_mpt *m;
	struct fid_mr *fid;
	struct shrimp_mr *mr;
	bool gone;

	assert_int_equal(
		fi_mr_regv(&bed.b.d->fid, iov, 2, RW, 0, 0, 0, &fid, NULL), 0);
	/* what is under way is told */
	rnic_monitor_wait();
	mr = (struct shrimp_mr *)fid;
	m = &mr->domain->mpt.mpt[mr->slot];
	gone = shrimp_odp_gone(mr);
	/* what peers see */
	assert_int_equal(gone, !rnic_load64_acquire(&m->mtt));
	assert_int_equal(fi_close(&fid->fid), 0);
	return gone;
}

/*
 * A file was found, and goes before it is watched, or at once afterwards: peers
 * would go on to use the one that was found.
 */
static void contract_R12_gone_while_it_is_registered(void **state)
{
	(void)state;
	assert_false(is_lost());
	before_join = no_change;
	assert_false(is_lost());
	after_arm = no_change;
	assert_false(is_lost());
	before_join = replace;
	assert_true(is_lost());
	assert_false(is_lost());
	/* the private range is the first */
	after_arm = replace;
	assert_true(is_lost());
	assert_false(is_lost());
	before_join = take_away;
	assert_true(is_lost());
}

/* It goes as soon as it is watched, and would not be watched any more. */
static void contract_R12_gone_as_it_is_watched(void **state)
{
	struct fid_mr *fid;

	(void)state;
	after_arm = map_again;
	assert_int_equal(
		fi_mr_reg(&bed.b.d->fid, bed.f, LEN, RW, 0, 0, 0, &fid, NULL),
		0);
	rnic_monitor_wait();
	assert_true(shrimp_odp_gone((struct shrimp_mr *)fid));
	assert_int_equal(fi_close(&fid->fid), 0);
}

/* ---- what was there before ---- */

/*
 * A round of the monitor lasts until the next event may be read; and that one
 * until a region that joins meanwhile is armed.
 */
static struct slow {
	struct rnic_listener l; /* first */
	rnic_a32 rounds;	/* that it was told of */
	rnic_a32 next;		/* 1: the first may end */
	rnic_a32 armed;		/* 1: the region is */
	char *hold;		/* page whose event is the first */
} slow;

static void nap_ms(long ms)
{
	const struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

/* True if *@word is set before some @ms are over. */
static bool is_set(rnic_a32 *word, int ms)
{
	while (!rnic_load32_acquire(word) && ms--)
		nap_ms(1);
	return rnic_load32_acquire(word);
}

/* In the monitor's thread. */
static void slow_gone(struct rnic_listener *l, uint64_t start, uint64_t end,
		      enum rnic_gone what)
{
	struct slow *s = (struct slow *)l;
	bool first = start == (uintptr_t)s->hold;

	(void)end, (void)what;
	rnic_add32_acqrel(&s->rounds, 1);
	is_set(first ? &s->next : &s->armed, first ? 20000 : 200);
}

static void let_next(void)
{
	rnic_store32_release(&slow.next, 1);
}

static void is_armed(void)
{
	rnic_store32_release(&slow.armed, 1);
}

static void *let_next_later(void *arg)
{
	nap_ms(20);
	let_next();
	return arg;
}

/* Returns @p if it failed. */
static void *unmap_page(void *p)
{
	return munmap(p, PAGE) ? p : NULL;
}

static pthread_t spawn(void *(*f)(void *), void *arg)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, f, arg), 0);
	return t;
}

static void join(pthread_t t)
{
	void *ret;

	assert_int_equal(pthread_join(t, &ret), 0);
	assert_null(ret);
}

/* Maps a page at @p as soon as it is free. */
static void take_over(char *p)
{
	void *got = MAP_FAILED;

	for (int ms = 0; got != p && ms < 20000; ms++) {
		got = mmap(p, PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			   -1, 0);
		if (got != p)
			nap_ms(1);
	}
	assert_ptr_equal(got, p);
}

/*
 * The address is another mapping's before the kernel tells of the old one: the
 * region that is registered there is not what has gone.
 */
static void contract_R12_not_gone_by_an_old_event(void **state)
{
	pthread_t first, old, later;
	struct fid_mr *fid;
	bool gone;

	(void)state;
	slow = (struct slow){ .l.gone = slow_gone, .hold = mck_private(PAGE) };
	for (int i = 0; i < 2; i++) {
		uint64_t at = (uintptr_t)(i ? bed.p : slow.hold);

		assert_int_equal(rnic_watch_get(at, PAGE), 0);
		assert_int_equal(rnic_watch_arm(at, PAGE), 0);
	}
	rnic_monitor_listen(&slow.l);
	first = spawn(unmap_page, slow.hold);
	assert_true(is_set(&slow.rounds, 20000));
	join(first);
	old = spawn(unmap_page, bed.p);
	take_over(bed.p);
	later = spawn(let_next_later, NULL);
	before_join = let_next;
	after_arm = is_armed;
	assert_int_equal(
		fi_mr_reg(&bed.b.d->fid, bed.p, PAGE, RW, 0, 0, 0, &fid, NULL),
		0);
	join(old);
	join(later);
	rnic_monitor_wait();
	assert_int_equal(rnic_load32_acquire(&slow.rounds), 2);
	gone = shrimp_odp_gone((struct shrimp_mr *)fid);
	rnic_monitor_unlisten(&slow.l);
	assert_int_equal(fi_close(&fid->fid), 0);
	rnic_watch_put((uintptr_t)bed.p, PAGE);
	rnic_watch_put((uintptr_t)slow.hold, PAGE);
	assert_false(gone);
}

/* ---- no memory ---- */

/* Each allocation of an acquire fails in turn. True: there was none to fail. */
static bool idle_without(int n, char *p)
{
	struct fid_mr *fid = NULL;
	bool all;
	int ret;

	left = n;
	ret = mck_acquire(&bed.b, p, LEN, RW, &fid);
	all = left >= 0;
	left = NOT_FAILING;
	if (!ret) {
		/* what is kept is watched */
		if (mck_stats(&bed.b).cache_entries)
			assert_non_null(((struct shrimp_mr *)fid)->odp);
		assert_int_equal(bed.b.ops->release(fid), 0);
	} else {
		assert_int_equal(ret, -FI_ENOMEM);
		assert_int_equal(mck_stats(&bed.b).cache_entries, 0);
	}
	assert_int_equal(bed.b.ops->flush(&bed.b.d->fid.fid), 0);
	return all;
}

static void contract_R12_no_idle_key_unwatched(void **state)
{
	int n = 0;

	(void)state;
	/* the monitor and the agent run */
	assert_false(idle_without(0, bed.p));
	while (!idle_without(n++, bed.p))
		assert_true(n < MOST);
	/* an entry, its region, and the watch, at least */
	assert_true(n > 3);
	for (n = 0; !idle_without(n, bed.f); n++)
		assert_true(n < MOST);
}

/* A batch without memory leaves nothing behind; the next one has it. */
static bool batch_without(int n)
{
	const struct iovec iov[2] = { { bed.p, LEN }, { bed.f, LEN } };
	const struct fi_mr_attr a[2] = {
		{ .mr_iov = &iov[0], .iov_count = 1, .access = RW },
		{ .mr_iov = &iov[1], .iov_count = 1, .access = RW },
	};
	struct fid_mr *mr[2];
	bool all;
	int ret;

	left = n;
	ret = bed.ops->reg_batch(&bed.b.d->fid.fid, a, 2, 0, mr);
	all = left >= 0;
	left = NOT_FAILING;
	if (ret) {
		assert_int_equal(ret, -FI_ENOMEM);
		assert_int_equal(rnic_watch_ranges(), 0);
		return all;
	}
	for (int i = 0; i < 2; i++) {
		assert_non_null(((struct shrimp_mr *)mr[i])->odp);
		assert_int_equal(fi_close(&mr[i]->fid), 0);
	}
	return all;
}

static void contract_R12_no_memory_for_a_batch(void **state)
{
	int n = 0;

	(void)state;
	while (!batch_without(n++))
		assert_true(n < MOST);
	assert_true(n > 4);
}

/* A refresh without memory leaves a key without a meaning, until the next. */
static void contract_R12_no_memory_for_a_refresh(void **state)
{
	struct shrimp_mr *mr;
	struct fid_mr *fid;
	bool failed = false, all = false;

	(void)state;
	assert_int_equal(
		fi_mr_reg(&bed.b.d->fid, bed.f, LEN, RW, 0, 0, 0, &fid, NULL),
		0);
	mr = (struct shrimp_mr *)fid;
	for (int n = 0; !all; n++) {
		int ret;

		assert_true(n < MOST);
		left = n;
		ret = fi_mr_refresh(fid, NULL, 0, 0);
		all = left >= 0;
		left = NOT_FAILING;
		assert_true(!ret || ret == -FI_ENOMEM);
		assert_int_equal(!ret, !mr->broken);
		assert_int_equal(!ret, mr->odp != NULL);
		failed |= ret != 0;
	}
	assert_true(failed);
	assert_false(shrimp_odp_gone(mr));
	assert_int_equal(fi_close(&fid->fid), 0);
}

/* ---- table ---- */

#define IDLE(f) cmocka_unit_test_setup_teardown(f, setup_idle, teardown)
#define ALL(f)	cmocka_unit_test_setup_teardown(f, setup_all, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALL(contract_R12_gone_while_it_is_registered),
		ALL(contract_R12_gone_as_it_is_watched),
		ALL(contract_R12_not_gone_by_an_old_event),
		IDLE(contract_R12_no_idle_key_unwatched),
		ALL(contract_R12_no_memory_for_a_batch),
		ALL(contract_R12_no_memory_for_a_refresh),
	};

	int failed;

	alarm(LIMIT_S);
	/*
	 * Where nothing can be watched there is nothing to look at. It runs
	 * from now on: what it tries at its start is not between.
	 */
	if (rnic_monitor_get())
		return 77;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rnic_monitor_put();
	return failed;
}
