/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Unit tests of the counters as clients read them.
 */
#include "lib/stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <rdma/fi_errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/rdma/fi_ext_shrimp.h"
#include "lib/mr_cache_kit.h"

static struct fi_ops_shrimp_stats *ops_of(struct fid *fid)
{
	void *ops;

	assert_int_equal(fi_open_ops(fid, FI_SHRIMP_OPS_STATS, 0, &ops, NULL),
			 0);
	return ops;
}

static void arguments_are_checked(void **state)
{
	struct fi_shrimp_stats st = { .size = sizeof(st.size) - 1 };
	const struct fi_ops_shrimp_stats *ops;
	struct mck_bed b;
	struct fid other = { .fclass = FI_CLASS_EP };
	void *none = NULL;

	(void)state;
	mck_open(&b, false);
	ops = ops_of(&b.fabric->fid);
	assert_int_equal(ops->read(&b.fabric->fid, NULL), -FI_EINVAL);
	assert_int_equal(ops->read(&b.fabric->fid, &st), -FI_EINVAL);
	st.size = sizeof(st);
	assert_int_equal(ops->read(&other, &st), -FI_EINVAL);
	assert_int_equal(ops->read(NULL, &st), -FI_EINVAL);
	/* one of a domain, a name that nobody has, flags */
	assert_int_equal(
		fi_open_ops(&b.fabric->fid, FI_SHRIMP_OPS_MR, 0, &none, NULL),
		-FI_ENOSYS);
	assert_int_equal(
		fi_open_ops(&b.d->fid.fid, "shrimp_none_1", 0, &none, NULL),
		-FI_ENOSYS);
	assert_int_equal(
		fi_open_ops(&b.d->fid.fid, FI_SHRIMP_OPS_MR, 1, &none, NULL),
		-FI_EINVAL);
	assert_null(none);
	mck_close(&b);
}

/* What an older client knows of is written, and no byte more. */
static void size_is_obeyed(void **state)
{
	const size_t known = offsetof(struct fi_shrimp_stats, rx);
	struct fi_shrimp_stats st, was;
	const struct fi_ops_shrimp_stats *ops;
	struct mck_bed b;

	(void)state;
	mck_open(&b, false);
	ops = ops_of(&b.d->fid.fid);
	memset(&st, 0x5a, sizeof(st));
	was = st;
	st.size = known;
	assert_int_equal(ops->read(&b.d->fid.fid, &st), 0);
	assert_int_equal(st.size, known);
	assert_memory_equal(&st.rx, &was.rx, sizeof(st) - known);
	assert_int_equal(st.tx.msgs[0], 0);
	mck_close(&b);
}

/* In the child: 0, or the number of what was wrong. */
static int of_the_parent(struct mck_bed *b,
			 const struct fi_ops_shrimp_stats *ops)
{
	struct fi_shrimp_stats st = { .size = sizeof(st) };
	void *none;

	if (ops->read(&b->d->fid.fid, &st) != -FI_EOPBADSTATE)
		return 1;
	if (ops->read(&b->fabric->fid, &st) != -FI_EOPBADSTATE)
		return 2;
	if (fi_open_ops(&b->d->fid.fid, FI_SHRIMP_OPS_STATS, 0, &none, NULL) !=
	    -FI_EOPBADSTATE)
		return 3;
	return st.size == sizeof(st) ? 0 : 4;
}

static void contract_L6_no_counters_in_a_child(void **state)
{
	struct fi_shrimp_stats st = { .size = sizeof(st) };
	const struct fi_ops_shrimp_stats *ops;
	struct mck_bed b;
	int status;
	pid_t pid;

	(void)state;
	mck_open(&b, false);
	ops = ops_of(&b.d->fid.fid);
	assert_int_equal(ops->read(&b.d->fid.fid, &st), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(20);
		_exit(of_the_parent(&b, ops));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(ops->read(&b.d->fid.fid, &st), 0);
	mck_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_are_checked),
		cmocka_unit_test(size_is_obeyed),
		cmocka_unit_test(contract_L6_no_counters_in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
