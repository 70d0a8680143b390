/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Counters without a device: the domain is a shell, the test does what
 * endpoints do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include "lib/cntr.h"
#include "lib/domain.h"
#include "lib/endpoint.h"
#include "lib/tx.h"

enum { FOR_EVER_MS = 20000, WAITS = 4 };

static const enum fi_wait_obj waits[WAITS] = { FI_WAIT_NONE, FI_WAIT_UNSPEC,
					       FI_WAIT_FD, FI_WAIT_YIELD };

static struct shrimp_settings set = { .spin = 10 };
static struct shrimp_domain domain = { .set = &set };

/* A test that failed leaves its references behind. */
static int fresh(void **state)
{
	(void)state;
	rnic_store32_relaxed(&domain.refs, 0);
	return 0;
}

static struct shrimp_cntr *cntr_open(enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = { .wait_obj = wait };
	struct fid_cntr *c;

	assert_int_equal(shrimp_cntr_open(&domain.fid, &attr, &c, &attr), 0);
	assert_ptr_equal(c->fid.context, &attr);
	assert_int_equal(c->fid.fclass, FI_CLASS_CNTR);
	return (struct shrimp_cntr *)c;
}

static void cntr_close(struct shrimp_cntr *c)
{
	assert_int_equal(fi_close(&c->fid.fid), 0);
	assert_int_equal(rnic_load32_acquire(&domain.refs), 0);
}

static void cntr_counts(void **state)
{
	struct shrimp_cntr *c = cntr_open(FI_WAIT_NONE);
	struct fid_cntr *fid = &c->fid;

	(void)state;
	assert_int_equal(fi_cntr_read(fid), 0);
	assert_int_equal(fi_cntr_readerr(fid), 0);
	assert_int_equal(fi_cntr_add(fid, 5), 0);
	shrimp_cntr_add(c, 2);
	assert_int_equal(fi_cntr_adderr(fid, 3), 0);
	shrimp_cntr_add_err(c, 1);
	assert_int_equal(fi_cntr_read(fid), 7);
	assert_int_equal(fi_cntr_readerr(fid), 4);
	assert_int_equal(fi_cntr_set(fid, 100), 0);
	assert_int_equal(fi_cntr_seterr(fid, 200), 0);
	assert_int_equal(fi_cntr_read(fid), 100);
	assert_int_equal(fi_cntr_readerr(fid), 200);
	cntr_close(c);
}

/* ---- waiting ---- */

static void cntr_wait_reached(void **state)
{
	(void)state;
	for (int w = 0; w < WAITS; w++) {
		struct shrimp_cntr *c = cntr_open(waits[w]);

		shrimp_cntr_add(c, 3);
		assert_int_equal(fi_cntr_wait(&c->fid, 0, -1), 0);
		assert_int_equal(fi_cntr_wait(&c->fid, 3, -1), 0);
		assert_int_equal(fi_cntr_wait(&c->fid, 3, 0), 0);
		cntr_close(c);
	}
}

static void cntr_wait_keeps_its_time(void **state)
{
	(void)state;
	for (int w = 0; w < WAITS; w++) {
		struct shrimp_cntr *c = cntr_open(waits[w]);
		uint64_t start = shrimp_now_ms();

		assert_int_equal(fi_cntr_wait(&c->fid, 1, 0), -FI_ETIMEDOUT);
		assert_int_equal(fi_cntr_wait(&c->fid, 1, 40), -FI_ETIMEDOUT);
		assert_true(shrimp_now_ms() - start >= 40);
		cntr_close(c);
	}
}

/* Errors of before the wait do not end it. */
static void cntr_wait_ignores_old_errors(void **state)
{
	struct shrimp_cntr *c = cntr_open(FI_WAIT_UNSPEC);

	(void)state;
	shrimp_cntr_add_err(c, 1);
	assert_int_equal(fi_cntr_wait(&c->fid, 1, 20), -FI_ETIMEDOUT);
	shrimp_cntr_add(c, 1);
	assert_int_equal(fi_cntr_wait(&c->fid, 1, -1), 0);
	cntr_close(c);
}

struct later {
	struct shrimp_cntr *c; /* which */
	bool err;	       /* count an error */
};

static void *count_later(void *arg)
{
	struct later *l = arg;

	usleep(30000);
	if (l->err)
		shrimp_cntr_add_err(l->c, 1);
	else
		fi_cntr_set(&l->c->fid, 9);
	return NULL;
}

static int wait_while(struct shrimp_cntr *c, bool err)
{
	struct later l = { c, err };
	pthread_t t;
	int ret;

	assert_int_equal(pthread_create(&t, NULL, count_later, &l), 0);
	ret = fi_cntr_wait(&c->fid, 9, FOR_EVER_MS);
	assert_int_equal(pthread_join(t, NULL), 0);
	return ret;
}

static void cntr_wait_wakes(void **state)
{
	(void)state;
	for (int w = 0; w < WAITS; w++) {
		struct shrimp_cntr *c = cntr_open(waits[w]);
		uint64_t start = shrimp_now_ms();

		assert_int_equal(wait_while(c, true), -FI_EAVAIL);
		assert_int_equal(wait_while(c, false), 0);
		assert_true(shrimp_now_ms() - start < FOR_EVER_MS);
		cntr_close(c);
	}
}

/* What came after the last read, not after fi_trywait(), forbids to sleep. */
static void cntr_trywait_after_a_change(void **state)
{
	struct shrimp_cntr *c = cntr_open(FI_WAIT_FD);
	struct fid *fid = &c->fid.fid;

	(void)state;
	assert_int_equal(fi_cntr_read(&c->fid), 0);
	assert_int_equal(shrimp_trywait(NULL, &fid, 1), 0);
	shrimp_cntr_add(c, 1);
	assert_int_equal(shrimp_trywait(NULL, &fid, 1), -FI_EAGAIN);
	assert_int_equal(shrimp_trywait(NULL, &fid, 1), -FI_EAGAIN);
	assert_int_equal(fi_cntr_read(&c->fid), 1);
	assert_int_equal(shrimp_trywait(NULL, &fid, 1), 0);
	shrimp_cntr_add_err(c, 1);
	assert_int_equal(shrimp_trywait(NULL, &fid, 1), -FI_EAGAIN);
	assert_int_equal(fi_cntr_readerr(&c->fid), 1);
	assert_int_equal(shrimp_trywait(NULL, &fid, 1), 0);
	cntr_close(c);
}

/* fi_poll(3): what moved since the last poll. */
static void cntr_poll_tells_changes(void **state)
{
	struct shrimp_cntr *c = cntr_open(FI_WAIT_NONE);

	(void)state;
	assert_false(shrimp_cntr_poll(c));
	shrimp_cntr_add(c, 1);
	assert_true(shrimp_cntr_poll(c));
	assert_false(shrimp_cntr_poll(c));
	shrimp_cntr_add_err(c, 1);
	assert_true(shrimp_cntr_poll(c));
	cntr_close(c);
}

/* ---- opening, closing ---- */

static void cntr_open_refuses(void **state)
{
	static const struct {
		struct fi_cntr_attr attr; /* that is wrong */
		int error;		  /* what it gives */
	} bad[] = {
		{ { .events = 99 }, -FI_EINVAL },
		{ { .flags = FI_PEER }, -FI_EINVAL },
		{ { .wait_obj = FI_WAIT_MUTEX_COND }, -FI_ENOSYS },
		{ { .wait_obj = FI_WAIT_SET }, -FI_EINVAL },
	};
	struct fid_cntr *c;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct fi_cntr_attr attr = bad[i].attr;

		assert_int_equal(shrimp_cntr_open(&domain.fid, &attr, &c, NULL),
				 bad[i].error);
	}
	assert_int_equal(rnic_load32_acquire(&domain.refs), 0);
	assert_int_equal(shrimp_cntr_open(&domain.fid, NULL, &c, NULL), 0);
	cntr_close((struct shrimp_cntr *)c);
}

static void cntr_busy_while_attached(void **state)
{
	struct shrimp_cntr *c = cntr_open(FI_WAIT_NONE);
	struct shrimp_ep ep = { .domain = &domain, .epfd = -1 };

	(void)state;
	assert_int_equal(shrimp_cntr_attach_ep(c, &ep), 0);
	assert_int_equal(shrimp_cntr_attach_ep(c, &ep), 0);
	assert_int_equal(fi_cntr_read(&c->fid), 0);
	shrimp_cntr_detach_ep(c, &ep);
	assert_int_equal(fi_close(&c->fid.fid), -FI_EBUSY);
	shrimp_cntr_detach_ep(c, &ep);
	cntr_close(c);
}

static void cntr_inherited_domain(void **state)
{
	struct shrimp_cntr *c = cntr_open(FI_WAIT_UNSPEC);
	struct fid_cntr *other;

	(void)state;
	domain.inherited = true;
	assert_int_equal(fi_cntr_wait(&c->fid, 1, -1), -FI_EOPBADSTATE);
	assert_int_equal(fi_close(&c->fid.fid), -FI_EOPBADSTATE);
	assert_int_equal(shrimp_cntr_open(&domain.fid, NULL, &other, NULL),
			 -FI_EOPBADSTATE);
	domain.inherited = false;
	cntr_close(c);
}

/* ---- threads ---- */

enum { ADDERS = 3, EACH = 20000, WAITERS = 2 };

static void *adder(void *arg)
{
	for (int i = 0; i < EACH; i++)
		shrimp_cntr_add(arg, 1);
	return NULL;
}

struct goal {
	struct shrimp_cntr *c; /* which */
	uint64_t step;	       /* waits for each multiple of it */
	int ret;	       /* first error */
};

static void *waiter(void *arg)
{
	struct goal *g = arg;

	for (uint64_t v = g->step; v <= ADDERS * EACH && !g->ret; v += g->step)
		g->ret = fi_cntr_wait(&g->c->fid, v, FOR_EVER_MS);
	return NULL;
}

/* Nothing is lost, and nobody sleeps on, whoever waits for how much. */
static void cntr_threads(void **state)
{
	struct shrimp_cntr *c = cntr_open(FI_WAIT_FD);
	struct goal g[WAITERS] = { { c, 1000, 0 }, { c, 7500, 0 } };
	pthread_t t[ADDERS + WAITERS];
	uint64_t start = shrimp_now_ms();

	(void)state;
	for (int i = 0; i < WAITERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, waiter, &g[i]), 0);
	for (int i = WAITERS; i < ADDERS + WAITERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, adder, c), 0);
	for (int i = 0; i < ADDERS + WAITERS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	for (int i = 0; i < WAITERS; i++)
		assert_int_equal(g[i].ret, 0);
	assert_true(shrimp_now_ms() - start < FOR_EVER_MS);
	assert_int_equal(fi_cntr_read(&c->fid), ADDERS * EACH);
	cntr_close(c);
}

#define CASE(f) cmocka_unit_test_setup(f, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(cntr_counts),
		CASE(cntr_wait_reached),
		CASE(cntr_wait_keeps_its_time),
		CASE(cntr_wait_ignores_old_errors),
		CASE(cntr_wait_wakes),
		CASE(cntr_trywait_after_a_change),
		CASE(cntr_poll_tells_changes),
		CASE(cntr_open_refuses),
		CASE(cntr_busy_while_attached),
		CASE(cntr_inherited_domain),
		CASE(cntr_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
