/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Unit tests of what the calls of FI_SHRIMP_OPS_CACHE are given.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>

#include "include/rdma/fi_ext_shrimp.h"
#include "lib/mr_cache_kit.h"

/* Ranges that are none, up to the very end of the address space. */
static void ranges_are_checked(void **state)
{
	static const struct {
		uintptr_t at;
		size_t len;
	} bad[] = {
		{ MCK_PAGE, 0 },
		{ MCK_PAGE, SIZE_MAX },
		{ MCK_PAGE, SIZE_MAX - MCK_PAGE },
		{ UINTPTR_MAX - 9, 2 },
		{ UINTPTR_MAX - 9, 100 },
		{ UINTPTR_MAX - MCK_PAGE + 1, 1 },
		{ UINTPTR_MAX, 1 },
	};
	struct fid_mr *mr = NULL;
	struct mck_bed b;

	(void)state;
	mck_open(&b, false);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct fid *d = &b.d->fid.fid;
		const void *p = (const void *)bad[i].at;

		assert_int_equal(b.ops->acquire(d, p, bad[i].len, FI_READ, &mr),
				 -FI_EINVAL);
		assert_int_equal(b.ops->unmap_begin(d, p, bad[i].len),
				 -FI_EINVAL);
		assert_int_equal(b.ops->unmap_end(d, p, bad[i].len),
				 -FI_EINVAL);
	}
	assert_null(mr);
	mck_close(&b);
}

static void objects_are_checked(void **state)
{
	char *p = mck_private(MCK_PAGE);
	struct fid_mr *mr = NULL, *own = NULL;
	struct mck_bed b;

	(void)state;
	mck_open(&b, false);
	assert_int_equal(b.ops->acquire(&b.fabric->fid, p, 8, FI_READ, &mr),
			 -FI_EINVAL);
	assert_int_equal(b.ops->acquire(&b.d->fid.fid, p, 8, FI_READ, NULL),
			 -FI_EINVAL);
	assert_int_equal(
		b.ops->acquire(&b.d->fid.fid, p, 8, UINT64_C(1) << 60, &mr),
		-FI_EINVAL);
	assert_int_equal(b.ops->unmap_begin(NULL, p, 8), -FI_EINVAL);
	assert_int_equal(b.ops->flush(NULL), -FI_EINVAL);
	assert_int_equal(b.ops->release(NULL), -FI_EINVAL);
	assert_int_equal(
		fi_mr_reg(&b.d->fid, p, 8, FI_SEND, 0, 0, 0, &own, NULL), 0);
	assert_int_equal(b.ops->release(own), -FI_EINVAL);
	assert_int_equal(fi_close(&own->fid), 0);
	/* what is acquired is not closed, and released once */
	assert_int_equal(b.ops->acquire(&b.d->fid.fid, p, 8, FI_READ, &mr), 0);
	assert_int_equal(fi_close(&mr->fid), -FI_EBUSY);
	assert_int_equal(b.ops->release(mr), 0);
	assert_int_equal(b.ops->release(mr), -FI_EINVAL);
	mck_close(&b);
	munmap(p, MCK_PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_checked),
		cmocka_unit_test(objects_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
