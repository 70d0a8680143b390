/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Copies: every length and alignment, nothing touched outside, streaming
 * stores in order for another thread; iovecs against the flat bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/atomic.h"
#include "shm/copy.h"
#include "shm/layout.h"
#include "shm/rng_kit.h"

_Static_assert((int)RNIC_COPY_INLINE_MAX == (int)RNIC_INLINE_MAX,
	       "a descriptor's payload is what rnic_copy_inline() copies");

enum {
	AREA = 8192,	/* bytes of the areas below */
	GUARD = 0xee,	/* fills what must not be written */
	ROUNDS = 40000, /* of the ordering test */
	BLOCK = 4096,	/* bytes of its longest messages */
};

typedef void (*copy_fn)(void *dst, const void *src, size_t len);

static void fill(uint8_t *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 37 + (i >> 8) + 1);
}

static void assert_all(const uint8_t *p, uint8_t byte, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		assert_int_equal(p[i], byte);
}

/* Copies @len bytes between the given offsets and looks at all of dst. */
static void copy_once(copy_fn copy, size_t doff, size_t soff, size_t len)
{
	static uint8_t dst[AREA], src[AREA];
	size_t seen = doff + len + 128;

	assert_true(seen <= AREA);
	fill(src, soff + len);
	memset(dst, GUARD, seen);
	copy(dst + doff, src + soff, len);
	assert_all(dst, GUARD, doff);
	assert_memory_equal(dst + doff, src + soff, len);
	assert_all(dst + doff + len, GUARD, 128);
}

static void copy_inline(void *dst, const void *src, size_t len)
{
	rnic_copy_inline(dst, src, len);
}

static void copy_cached(void *dst, const void *src, size_t len)
{
	rnic_copy(dst, src, len);
}

static void inline_copies_every_length(void **state)
{
	size_t len, off;

	(void)state;
	for (len = 0; len <= RNIC_COPY_INLINE_MAX; len++)
		for (off = 0; off < 64; off++)
			copy_once(copy_inline, off, off * 7 % 64, len);
}

/* A page between two that fault. */
static uint8_t *fenced_page(size_t page)
{
	uint8_t *p = mmap(NULL, 3 * page, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	assert_int_equal(mprotect(p + page, page, PROT_READ | PROT_WRITE), 0);
	return p + page;
}

static void reads_and_writes_stay_inside(void **state)
{
	static const copy_fn copy[] = { copy_inline, copy_cached,
					rnic_copy_stream };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *src = fenced_page(page), *dst = fenced_page(page);
	size_t i, len;

	(void)state;
	fill(src, page);
	for (i = 0; i < 3; i++) {
		for (len = 0; len <= RNIC_COPY_INLINE_MAX; len++) {
			memset(dst, GUARD, page);
			copy[i](dst, src, len);
			copy[i](dst + page - len, src + page - len, len);
			assert_memory_equal(dst, src, len);
			assert_memory_equal(dst + page - len, src + page - len,
					    len);
		}
	}
	munmap(src - page, 3 * page);
	munmap(dst - page, 3 * page);
}

static void nothing_may_be_null(void **state)
{
	(void)state;
	rnic_copy_inline(NULL, NULL, 0);
	rnic_copy(NULL, NULL, 0);
	rnic_copy_stream(NULL, NULL, 0);
}

static void long_copies_any_alignment(void **state)
{
	static const size_t len[] = { 1,   63,	64,   65,   127,  128,
				      129, 200, 1000, 4096, 4097, 7000 };
	size_t i, off;

	(void)state;
	for (i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		for (off = 0; off < 64; off++) {
			copy_once(copy_cached, off, off * 7 % 64, len[i]);
			copy_once(rnic_copy_stream, off, off * 7 % 64, len[i]);
			copy_once(rnic_copy_stream, off, off, len[i]);
		}
	}
}

/* ---- order of streaming stores ---- */

struct box {
	rnic_a32 full;	      /* 1: block holds a message */
	char pad[60];	      /* on a line of its own */
	uint8_t block[BLOCK]; /* written by the main thread if not full */
};

/* Both spin: who sleeps sees the bytes late enough. */
static void wait_for(const rnic_a32 *full, uint32_t value)
{
	unsigned int n = 0;

	/* acquire: the block, pairs with either release below */
	while (rnic_load32_acquire(full) != value)
		if (++n % 10000 == 0)
			sched_yield();
}

/* Mostly short: what is copied last is under way for longest. */
static int bytes_of(int round)
{
	return round % 16 ? 64 * (1 + round % 3) : BLOCK;
}

static void *reader(void *arg)
{
	struct box *b = arg;
	uintptr_t bad = 0;
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		/* R1 in the test below published the block */
		wait_for(&b->full, 1);
		/* the last bytes are the ones that may be under way */
		for (i = bytes_of(round); i--;)
			bad += b->block[i] != (uint8_t)(round + i);
		/* the block has been read: pairs with the wait for 0 */
		rnic_store32_release(&b->full, 0);
	}
	return (void *)bad;
}

static void streamed_bytes_precede_the_release(void **state)
{
	static struct box b __attribute__((aligned(64)));
	static uint8_t src[BLOCK];
	pthread_t t;
	void *bad;
	int round, i;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, reader, &b), 0);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < bytes_of(round); i++)
			src[i] = (uint8_t)(round + i);
		wait_for(&b.full, 0);
		rnic_copy_stream(b.block, src, (size_t)bytes_of(round));
		/* R1: publishes the block */
		rnic_store32_release(&b.full, 1);
	}
	assert_int_equal(pthread_join(t, &bad), 0);
	assert_null(bad);
}

/* ---- iovecs ---- */

static void length_sums_or_saturates(void **state)
{
	struct iovec iov[3] = {
		{ .iov_len = 5 },
		{ .iov_len = 0 },
		{ .iov_len = 7 },
	};

	(void)state;
	assert_int_equal(rnic_iov_len(NULL, 0), 0);
	assert_int_equal(rnic_iov_len(iov, 1), 5);
	assert_int_equal(rnic_iov_len(iov, 3), 12);
	iov[1].iov_len = SIZE_MAX - 12;
	assert_int_equal(rnic_iov_len(iov, 3), SIZE_MAX);
	iov[1].iov_len = SIZE_MAX - 11;
	assert_true(rnic_iov_len(iov, 3) == SIZE_MAX);
	iov[1].iov_len = SIZE_MAX - 4;
	assert_true(rnic_iov_len(iov, 3) == SIZE_MAX);
}

static void one_member_is_gathered_and_scattered(void **state)
{
	uint8_t src[100], dst[100];
	struct iovec from = { .iov_base = src, .iov_len = sizeof(src) };
	struct iovec to = { .iov_base = dst, .iov_len = sizeof(dst) };

	(void)state;
	fill(src, sizeof(src));
	memset(dst, GUARD, sizeof(dst));
	rnic_iov_gather(dst + 1, &from, 1, 10, 80);
	assert_memory_equal(dst + 1, src + 10, 80);
	assert_all(dst + 81, GUARD, 19);
	memset(dst, GUARD, sizeof(dst));
	assert_int_equal(rnic_iov_scatter(&to, 1, 60, src, 100), 40);
	assert_memory_equal(dst + 60, src, 40);
	assert_all(dst, GUARD, 60);
	assert_int_equal(rnic_iov_scatter(&to, 1, 100, src, 1), 0);
	assert_int_equal(rnic_iov_scatter(&to, 1, 1000, src, 1), 0);
	assert_int_equal(rnic_iov_scatter(&to, 1, 0, src, 0), 0);
}

static void empty_members_are_legal(void **state)
{
	uint8_t a[2] = { 1, 2 }, b[1] = { 3 }, out[3] = { 0 };
	struct iovec iov[] = {
		{ .iov_base = NULL, .iov_len = 0 },
		{ .iov_base = a, .iov_len = 2 },
		{ .iov_base = NULL, .iov_len = 0 },
		{ .iov_base = b, .iov_len = 1 },
		{ .iov_base = NULL, .iov_len = 0 },
	};
	struct iovec none = { .iov_base = NULL, .iov_len = 0 };

	(void)state;
	rnic_iov_gather(out, iov, 5, 0, 3);
	assert_memory_equal(out, "\1\2\3", 3);
	assert_int_equal(rnic_iov_scatter(iov, 5, 1, "\7\10\11", 3), 2);
	assert_int_equal(a[1], 7);
	assert_int_equal(b[0], 8);
	rnic_iov_gather(NULL, &none, 1, 0, 0);
	rnic_iov_gather(NULL, NULL, 0, 0, 0);
	assert_int_equal(rnic_iov_scatter(&none, 1, 0, "x", 1), 0);
	assert_int_equal(rnic_iov_scatter(NULL, 0, 0, "x", 1), 0);
	assert_int_equal(rnic_iov_scatter(iov, 5, 3, "x", 1), 0);
}

/* Cuts @total bytes at @p into at most 16 members, gaps between them. */
static size_t cut(struct iovec *iov, uint8_t *p, size_t total)
{
	size_t n = 1 + rng(16), i;

	for (i = 0; i < n; i++) {
		size_t len = i == n - 1 ? total : rng(3) * rng(100);

		len = len > total ? total : len;
		iov[i].iov_base = len ? p : NULL;
		iov[i].iov_len = len;
		p += len + 8;
		total -= len;
	}
	return n;
}

/* Byte @at of the concatenated members. */
static uint8_t *byte_at(const struct iovec *iov, size_t at)
{
	while (at >= iov->iov_len) {
		at -= iov->iov_len;
		iov++;
	}
	return (uint8_t *)iov->iov_base + at;
}

static void any_cut_and_range(void **state)
{
	static uint8_t area[AREA], flat[AREA];
	struct iovec iov[16];
	int round;
	size_t i;

	(void)state;
	for (round = 0; round < 5000; round++) {
		size_t total = rng(2000), n = cut(iov, area, total);
		size_t off = rng((uint32_t)total + 10), len = rng(600);
		size_t fit = off >= total ? 0 : total - off;

		fit = fit < len ? fit : len;
		memset(area, GUARD, sizeof(area));
		fill(flat, len);
		assert_int_equal(rnic_iov_len(iov, n), total);
		assert_int_equal(rnic_iov_scatter(iov, n, off, flat, len), fit);
		for (i = 0; i < total; i++)
			assert_int_equal(*byte_at(iov, i),
					 i >= off && i < off + fit
						 ? flat[i - off]
						 : GUARD);
		memset(flat + 1000, GUARD, 1000);
		rnic_iov_gather(flat + 1000, iov, n, off, fit);
		assert_memory_equal(flat + 1000, flat, fit);
		assert_all(flat + 1000 + fit, GUARD, 100);
		for (i = 0; i < n; i++) /* nothing in the gaps */
			if (iov[i].iov_len)
				assert_all((uint8_t *)iov[i].iov_base +
						   iov[i].iov_len,
					   GUARD, 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inline_copies_every_length),
		cmocka_unit_test(reads_and_writes_stay_inside),
		cmocka_unit_test(nothing_may_be_null),
		cmocka_unit_test(long_copies_any_alignment),
		cmocka_unit_test(streamed_bytes_precede_the_release),
		cmocka_unit_test(length_sums_or_saturates),
		cmocka_unit_test(one_member_is_gathered_and_scattered),
		cmocka_unit_test(empty_members_are_legal),
		cmocka_unit_test(any_cut_and_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
