/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Watched regions: memory that goes while it is registered. The linker puts
 * this file between the library and what it calls (lib/local.mk).
 */
#define _GNU_SOURCE
#include "lib/odp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/mr.h"
#include "lib/mr_cache_kit.h"
#include "shm/monitor.h"
#include "shm/watch.h"

enum {
	PAGE = MCK_PAGE,
	LEN = 4 * PAGE, /* bytes of a memory */
	LIMIT_S = 60,	/* the whole program ends by then */
};

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* ---- between the library and what it calls ---- */

static void (*before_join)(void); /* of the next region, or NULL */
static void (*after_arm)(void);	  /* of the next range, or NULL */

void __real_rnic_monitor_join(struct rnic_device *d, struct rnic_watched *w,
			      struct rnic_mpt *mpt);
void __wrap_rnic_monitor_join(struct rnic_device *d, struct rnic_watched *w,
			      struct rnic_mpt *mpt);
int __real_rnic_watch_arm(uint64_t addr, uint64_t len);
int __wrap_rnic_watch_arm(uint64_t addr, uint64_t len);

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
	struct mck_bed b; /* first */
	char *p;	  /* LEN private bytes */
	char *f;	  /* LEN bytes of a file */
	int fd;		  /* of it */
} bed;

static int setup_all(void **state)
{
	mck_fabric(&bed.b);
	bed.b.set->monitor = SHRIMP_MONITOR_UFFD;
	bed.b.set->mrc = SHRIMP_MRC_OFF;
	mck_domain(&bed.b);
	bed.p = mck_private(LEN);
	bed.f = mck_file(LEN, &bed.fd);
	*state = &bed;
	return 0;
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

/* ---- table ---- */

#define ALL(f) cmocka_unit_test_setup_teardown(f, setup_all, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALL(contract_R12_gone_while_it_is_registered),
		ALL(contract_R12_gone_as_it_is_watched),
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
