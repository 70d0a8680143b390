/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What an owner executes for others: bytes and elements on memory that is
 * there, is not there, or must not be written; and turns of several threads.
 */
#include "shm/exec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <complex.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/reach_kit.h"

enum {
	LIMIT_S = 60,	  /* the whole program ends by then */
	PAGE = RNIC_PAGE, /* short */
	LEN = 8 * PAGE,	  /* bytes of a memory, and of the segment */
	RW = RNIC_REMOTE_READ | RNIC_REMOTE_WRITE,
	ROW = 5,	 /* elements of a call */
	THREADS = 4,	 /* that add at the same time */
	ROUNDS = 20000,	 /* sums of each */
	AT = PAGE - 100, /* where the operands lie in the segment */
};

/* An owner, and its executor. */
struct bed {
	struct kit_owner o;	/* device */
	struct kit_reader d;	/* the executor's own context */
	struct rnic_exec_at at; /* a segment, AT bytes in */
	uint8_t *mem;		/* LEN bytes of it, mapped */
};

static int setup(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	kit_owner_open(&b->o, true);
	assert_int_equal(kit_reader_open(&b->d, &b->o.addr), 0);
	b->at.fd = memfd_create("exec-test", MFD_CLOEXEC);
	assert_true(b->at.fd >= 0);
	assert_int_equal(ftruncate(b->at.fd, LEN), 0);
	b->mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, b->at.fd,
		      0);
	assert_true(b->mem != MAP_FAILED);
	b->at.off = AT;
	b->at.mem = b->mem + AT;
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	munmap(b->mem, LEN);
	close(b->at.fd);
	kit_reader_close(&b->d);
	kit_owner_close(&b->o);
	free(b);
	return 0;
}

static void fill(void *p, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)p)[i] = (uint8_t)(seed + i * 3 + i / 200 + 1);
}

/* The first byte that is not of pattern @seed. */
static size_t filled(const void *p, size_t len, unsigned int seed)
{
	size_t i = 0;

	while (i < len &&
	       ((const uint8_t *)p)[i] == (uint8_t)(seed + i * 3 + i / 200 + 1))
		i++;
	return i;
}

static bool all(const void *p, size_t len, int byte)
{
	for (size_t i = 0; i < len; i++)
		if (((const uint8_t *)p)[i] != byte)
			return false;
	return true;
}

/* ---- bytes ---- */

static void move(struct bed *b, const struct kit_mem *m, size_t off, size_t len,
		 bool write, int ret, size_t want)
{
	struct rnic_access a = { .key = m->key,
				 .addr = (uintptr_t)m->p + off,
				 .len = len,
				 .write = write };
	size_t done = 12345;

	assert_int_equal(rnic_exec_move(&b->d.c, &b->d.x, &a, &b->at, &done),
			 ret);
	assert_int_equal(done, want);
}

static void there_and_back(struct bed *b, struct kit_mem m)
{
	static const size_t lens[] = { 1, 99, PAGE, 3 * PAGE + 5 };

	kit_publish(&b->o, &m, RW);
	for (unsigned int i = 0; i < 4; i++) {
		size_t n = lens[i];

		memset(m.p, 0, LEN);
		memset(b->mem, 0, LEN);
		fill(b->at.mem, n, i);
		move(b, &m, 77, n, true, 0, n);
		assert_int_equal(filled(m.p + 77, n, i), n);
		assert_true(all(m.p, 77, 0));
		assert_true(all(m.p + 77 + n, LEN - 77 - n, 0));
		memset(b->mem, 0xcc, LEN);
		move(b, &m, 77, n, false, 0, n);
		assert_int_equal(filled(b->at.mem, n, i), n);
		assert_true(all(b->mem, AT, 0xcc));
		assert_true(all(b->at.mem + n, LEN - AT - n, 0xcc));
	}
	move(b, &m, LEN - 1, 2, true, -ERANGE, 0);
	kit_withdraw(&b->o, &m);
	move(b, &m, 0, 2, true, -ENOKEY, 0);
}

static void bytes_go_there_and_back(void **state)
{
	struct bed *b = *state;
	struct kit_mem va = kit_private(LEN);

	there_and_back(b, kit_arena(&b->o, LEN));
	there_and_back(b, va);
	munmap(va.p, LEN);
}

/* A short range by address, and one that is mapped. */
static void contract_R8_bytes_of_two_ranges(void **state)
{
	struct bed *b = *state;
	struct kit_mem m[2] = { kit_private(LEN), kit_arena(&b->o, LEN) };
	struct kit_mem list = { .p = NULL };
	uint8_t want[1000];

	m[0].len = 20;
	list.key = kit_publish_list(&b->o, m, 2, RW);
	fill(want, sizeof(want), 9);
	memcpy(b->at.mem, want, sizeof(want));
	move(b, &list, 3, sizeof(want), true, 0, sizeof(want));
	assert_memory_equal(m[0].p + 3, want, 17);
	assert_memory_equal(m[1].p, want + 17, sizeof(want) - 17);
	memset(b->mem, 0, LEN);
	move(b, &list, 3, sizeof(want), false, 0, sizeof(want));
	assert_memory_equal(b->at.mem, want, sizeof(want));
	munmap(m[0].p, LEN);
}

static void contract_I2_unmapped_bytes(void **state)
{
	struct bed *b = *state;
	struct kit_mem m = kit_private(LEN);

	kit_publish(&b->o, &m, RW);
	munmap(m.p + 2 * PAGE, PAGE);
	fill(b->at.mem, 4 * PAGE, 5);
	move(b, &m, PAGE - 9, 3 * PAGE, true, -EFAULT, PAGE + 9);
	assert_int_equal(filled(m.p + PAGE - 9, PAGE + 9, 5), PAGE + 9);
	assert_true(all(m.p + 3 * PAGE, LEN - 3 * PAGE, 0));
	memset(b->mem, 0, LEN);
	move(b, &m, PAGE - 9, 3 * PAGE, false, -EFAULT, PAGE + 9);
	assert_int_equal(filled(b->at.mem, 3 * PAGE, 5), PAGE + 9);
	move(b, &m, 2 * PAGE, 8, true, -EFAULT, 0);
	move(b, &m, 2 * PAGE, 8, false, -EFAULT, 0);
	munmap(m.p, LEN);
}

static void contract_R6_read_only_bytes(void **state)
{
	struct bed *b = *state;
	struct kit_mem m = kit_private(LEN);

	fill(m.p, LEN, 2);
	kit_publish(&b->o, &m, RW);
	assert_int_equal(mprotect(m.p + PAGE, LEN - PAGE, PROT_READ), 0);
	move(b, &m, PAGE - 8, 16, true, -EFAULT, 8);
	assert_true(all(m.p + PAGE - 8, 8, 0));
	move(b, &m, PAGE, PAGE, false, 0, PAGE);
	assert_int_equal(memcmp(b->at.mem, m.p + PAGE, PAGE), 0);
	assert_int_equal(mprotect(m.p, LEN, PROT_NONE), 0);
	move(b, &m, PAGE, PAGE, false, -EFAULT, 0);
	munmap(m.p, LEN);
	/* the key does not allow it, whatever the page does */
	m = kit_private(LEN);
	kit_publish(&b->o, &m, RNIC_REMOTE_READ);
	move(b, &m, 0, 8, true, -EACCES, 0);
	munmap(m.p, LEN);
}

/* ---- elements ---- */

/* @t on @n elements at @off of @m; @want bytes of them are done. */
static void atomic(struct bed *b, const struct kit_mem *m, size_t off, size_t n,
		   const struct rnic_exec_atomic *t, int ret, size_t want)
{
	struct rnic_access a = { .key = m->key,
				 .addr = (uintptr_t)m->p + off,
				 .len = n * rnic_aop_size(t->type),
				 .atomic = true,
				 .need = rnic_exec_rights(t->result) };
	size_t done = 12345;

	assert_int_equal(rnic_exec_atomic(&b->d.c, &b->d.x, &a, t, &done), ret);
	assert_int_equal(done, want);
}

/* A sum, a fetching one into its operands, and a compare-and-swap. */
static void rows(struct bed *b, const struct kit_mem *m, size_t off)
{
	uint32_t x[ROW + 1] = { 1, 2, 3, 4, 5, 77 }, c[ROW], t[ROW];
	struct rnic_exec_atomic w = { .type = RNIC_AOP_UINT32,
				      .op = RNIC_AOP_SUM,
				      .operand = (uint8_t *)x };

	memset(m->p, 0, PAGE);
	atomic(b, m, off, ROW, &w, 0, sizeof(t));
	atomic(b, m, off, ROW, &w, 0, sizeof(t));
	memcpy(t, m->p + off, sizeof(t));
	w.result = w.operand;
	atomic(b, m, off, ROW, &w, 0, sizeof(t));
	for (uint32_t i = 0; i < ROW; i++) {
		assert_int_equal(t[i], 2 * (i + 1));
		assert_int_equal(x[i], 2 * (i + 1));
		c[i] = i == 2 ? 0 : 3 * (i + 1);
		x[i] = 100 + i;
	}
	assert_int_equal(x[ROW], 77);
	w.op = RNIC_AOP_CSWAP;
	w.compare = (uint8_t *)c;
	atomic(b, m, off, ROW, &w, 0, sizeof(t));
	memcpy(t, m->p + off, sizeof(t));
	for (uint32_t i = 0; i < ROW; i++) {
		assert_int_equal(t[i], i == 2 ? 9 : 100 + i);
		assert_int_equal(x[i], 3 * (i + 1));
	}
	assert_true(all(m->p, off, 0));
	assert_true(all(m->p + off + sizeof(t), PAGE - off - sizeof(t), 0));
}

static void each_row(struct bed *b, struct kit_mem m)
{
	double complex z[2] = { 1 + 2 * I, 3 }, y[2];
	struct rnic_exec_atomic w = { .type = RNIC_AOP_DOUBLE_COMPLEX,
				      .op = RNIC_AOP_SUM,
				      .operand = (uint8_t *)z };

	kit_publish(&b->o, &m, RW);
	rows(b, &m, 64);
	rows(b, &m, 65);
	memset(m.p, 0, PAGE);
	atomic(b, &m, 9, 2, &w, 0, sizeof(z));
	atomic(b, &m, 9, 2, &w, 0, sizeof(z));
	memcpy(y, m.p + 9, sizeof(y));
	assert_true(y[0] == 2 + 4 * I && y[1] == 6);
	w = (struct rnic_exec_atomic){ .type = RNIC_AOP_DOUBLE_COMPLEX,
				       .op = RNIC_AOP_READ,
				       .result = (uint8_t *)z };
	atomic(b, &m, 9, 2, &w, 0, sizeof(z));
	assert_memory_equal(z, y, sizeof(y));
	atomic(b, &m, LEN - 31, 2, &w, -ERANGE, 0);
	kit_withdraw(&b->o, &m);
	atomic(b, &m, 9, 2, &w, -ENOKEY, 0);
	kit_publish(&b->o, &m, RNIC_REMOTE_WRITE);
	atomic(b, &m, 9, 2, &w, -EACCES, 0);
}

static void rows_of_elements(void **state)
{
	struct bed *b = *state;
	struct kit_mem va = kit_private(LEN);

	each_row(b, kit_arena(&b->o, LEN));
	each_row(b, va);
	munmap(va.p, LEN);
}

static void contract_I2_unmapped_elements(void **state)
{
	struct bed *b = *state;
	struct kit_mem m = kit_private(LEN);
	uint64_t x[ROW] = { 1, 1, 1, 1, 1 };
	struct rnic_exec_atomic w = { .type = RNIC_AOP_UINT64,
				      .op = RNIC_AOP_SUM,
				      .operand = (uint8_t *)x,
				      .result = (uint8_t *)x };

	kit_publish(&b->o, &m, RW);
	munmap(m.p + PAGE, PAGE);
	atomic(b, &m, PAGE - 16, ROW, &w, -EFAULT, 16);
	assert_int_equal(m.p[PAGE - 8], 1);
	assert_true(x[0] == 0 && x[1] == 0 && x[2] == 1);
	/* half of one is there: it is not begun */
	atomic(b, &m, PAGE - 12, ROW, &w, -EFAULT, 8);
	assert_true(all(m.p + PAGE - 4, 4, 0));
	w.op = RNIC_AOP_READ;
	atomic(b, &m, PAGE - 8, 2, &w, -EFAULT, 8);
	atomic(b, &m, PAGE, 1, &w, -EFAULT, 0);
	munmap(m.p, LEN);
}

static void contract_R6_read_only_elements(void **state)
{
	struct bed *b = *state;
	struct kit_mem m = kit_private(LEN);
	uint32_t x[ROW] = { 1, 1, 1, 1, 1 }, y[ROW] = { 0 };
	struct rnic_exec_atomic w = { .type = RNIC_AOP_UINT32,
				      .op = RNIC_AOP_SUM,
				      .operand = (uint8_t *)x };
	struct rnic_exec_atomic r = { .type = RNIC_AOP_UINT32,
				      .op = RNIC_AOP_READ,
				      .result = (uint8_t *)y };

	kit_publish(&b->o, &m, RW);
	memset(m.p, 2, LEN);
	assert_int_equal(mprotect(m.p + PAGE, PAGE, PROT_READ), 0);
	atomic(b, &m, PAGE - 4, ROW, &w, -EFAULT, 4);
	atomic(b, &m, PAGE + 1, 1, &w, -EFAULT, 0);
	assert_int_equal(m.p[PAGE - 4], 3);
	assert_true(all(m.p + PAGE, PAGE, 2));
	atomic(b, &m, PAGE, ROW, &r, 0, sizeof(y));
	assert_true(all(y, sizeof(y), 2));
	assert_int_equal(mprotect(m.p + PAGE, PAGE, PROT_NONE), 0);
	atomic(b, &m, PAGE, ROW, &r, -EFAULT, 0);
	munmap(m.p, LEN);
}

static void contract_R8_an_element_in_two_ranges(void **state)
{
	struct bed *b = *state;
	struct kit_mem m[2] = { kit_private(LEN), kit_arena(&b->o, LEN) };
	uint64_t x[ROW] = { 1, 2, 3, 4, 5 };
	struct rnic_exec_atomic w = { .type = RNIC_AOP_UINT64,
				      .op = RNIC_AOP_SUM,
				      .operand = (uint8_t *)x };
	struct kit_mem list = { .p = NULL };

	m[0].len = 20;
	list.key = kit_publish_list(&b->o, m, 2, RW);
	/* two of the first range, then one that is in both */
	atomic(b, &list, 0, ROW, &w, -EINVAL, 16);
	assert_int_equal(m[0].p[8], 2);
	assert_true(all(m[0].p + 16, LEN - 16, 0));
	assert_true(all(m[1].p, LEN, 0));
	/* two, and three of the next range */
	atomic(b, &list, 4, ROW, &w, 0, sizeof(x));
	assert_int_equal(m[1].p[0], 3);
	assert_int_equal(m[1].p[16], 5);
	munmap(m[0].p, LEN);
}

/* ---- turns ---- */

/* A thread that adds. */
struct adder {
	pthread_t thread;	 /* itself */
	struct kit_reader d;	 /* its context */
	const struct kit_mem *m; /* where */
};

/* Places of the words in the memory: two lines, 32 bytes, one instruction. */
enum { CROSSING = 60, BIG = 128, NATIVE = 256 };

static int add(struct adder *a, size_t off, enum rnic_aop_type type, void *x)
{
	struct rnic_access at = { .key = a->m->key,
				  .addr = (uintptr_t)a->m->p + off,
				  .len = rnic_aop_size(type),
				  .atomic = true,
				  .need = RNIC_REMOTE_WRITE };
	struct rnic_exec_atomic w = { .type = type,
				      .op = RNIC_AOP_SUM,
				      .operand = x };
	size_t done;

	return rnic_exec_atomic(&a->d.c, &a->d.x, &at, &w, &done);
}

static void *adder(void *arg)
{
	struct adder *a = arg;
	long double complex big = 1 + 2 * I;
	uint64_t one = 1;
	intptr_t bad = 0;

	for (int i = 0; i < ROUNDS; i++) {
		bad |= add(a, CROSSING, RNIC_AOP_UINT64, &one);
		bad |= add(a, BIG, RNIC_AOP_LONG_DOUBLE_COMPLEX, &big);
		bad |= add(a, NATIVE, RNIC_AOP_UINT64, &one);
	}
	return (void *)bad;
}

static void add_by_threads(struct bed *b, struct kit_mem m)
{
	struct adder a[THREADS];
	long double complex big;
	uint64_t x;
	void *bad;

	kit_publish(&b->o, &m, RW);
	for (int i = 0; i < THREADS; i++) {
		a[i].m = &m;
		assert_int_equal(kit_reader_open(&a[i].d, &b->o.addr), 0);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&a[i].thread, NULL, adder, &a[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(a[i].thread, &bad);
		assert_null(bad);
		kit_reader_close(&a[i].d);
	}
	memcpy(&x, m.p + CROSSING, sizeof(x));
	assert_int_equal(x, THREADS * ROUNDS);
	memcpy(&x, m.p + NATIVE, sizeof(x));
	assert_int_equal(x, THREADS * ROUNDS);
	memcpy(&big, m.p + BIG, sizeof(big));
	assert_true(big == THREADS * ROUNDS * (1 + 2 * I));
}

static void contract_P1_threads_take_turns(void **state)
{
	struct bed *b = *state;
	struct kit_mem va = kit_private(LEN);

	add_by_threads(b, kit_arena(&b->o, LEN));
	add_by_threads(b, va);
	munmap(va.p, LEN);
}

#define WITH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(bytes_go_there_and_back),
		WITH(contract_R8_bytes_of_two_ranges),
		WITH(contract_I2_unmapped_bytes),
		WITH(contract_R6_read_only_bytes),
		WITH(rows_of_elements),
		WITH(contract_I2_unmapped_elements),
		WITH(contract_R6_read_only_elements),
		WITH(contract_R8_an_element_in_two_ranges),
		WITH(contract_P1_threads_take_turns),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
