/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Moving payload: small, cached, past the caches, and through iovecs.
 *
 * No state: any thread, no lock. Source and destination of one call do not
 * overlap. Only rnic_copy_stream() orders anything; the other copies are
 * plain loads and stores that the caller publishes by a release.
 */
#ifndef RNIC_COPY_H
#define RNIC_COPY_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

enum {
	RNIC_COPY_INLINE_MAX = 40, /* most for rnic_copy_inline() */
};

/* Two words: the compiler moves them in one vector register. */
struct rnic_copy_pair {
	uint64_t w[2]; /* 16 bytes */
};

/* rnic_copy_inline() below 8 bytes. */
static inline void rnic_copy_tiny(uint8_t *d, const uint8_t *s, size_t len)
{
	if (len >= 4) {
		uint32_t a, b;

		memcpy(&a, s, 4);
		memcpy(&b, s + len - 4, 4);
		memcpy(d, &a, 4);
		memcpy(d + len - 4, &b, 4);
	} else if (len) {
		uint8_t a = s[0], b = s[len / 2], c = s[len - 1];

		d[0] = a;
		d[len / 2] = b;
		d[len - 1] = c;
	}
}

/* rnic_copy_inline() for 17 to 40 bytes. */
static inline void rnic_copy_small(uint8_t *d, const uint8_t *s, size_t len)
{
	struct rnic_copy_pair a, b, m;
	size_t mid = len > 32 ? 16 : 0;

	memcpy(&a, s, 16);
	memcpy(&m, s + mid, 16);
	memcpy(&b, s + len - 16, 16);
	memcpy(d, &a, 16);
	memcpy(d + mid, &m, 16);
	memcpy(d + len - 16, &b, 16);
}

/*
 * Copies @len bytes, at most RNIC_COPY_INLINE_MAX, by a few loads and stores
 * that may overlap each other; nothing outside src[0..len) is read and
 * nothing outside dst[0..len) is written. @len 0 allows NULL.
 */
static inline void rnic_copy_inline(void *dst, const void *src, size_t len)
{
	uint8_t *d = dst;
	const uint8_t *s = src;
	uint64_t a, b;

	assert(len <= RNIC_COPY_INLINE_MAX);
	if (len > 16) {
		rnic_copy_small(d, s, len);
	} else if (len >= 8) {
		memcpy(&a, s, 8);
		memcpy(&b, s + len - 8, 8);
		memcpy(d, &a, 8);
		memcpy(d + len - 8, &b, 8);
	} else {
		rnic_copy_tiny(d, s, len);
	}
}

/*
 * Copies @len bytes with stores that stay in the caches. @len 0 allows NULL.
 * The C library's memcpy: between two cores, 1 to 64 KiB, a string instruction
 * and loops of 16 to 64-byte vectors gained a tenth at best and lost a sixth.
 */
static inline void rnic_copy(void *dst, const void *src, size_t len)
{
	if (len)
		memcpy(dst, src, len);
}

/*
 * Copies @len bytes past the caches, any alignment. The stores are in memory
 * order before everything the caller stores after the call: the copy ends
 * with a store fence. Where the CPU has no such stores it is rnic_copy().
 * @len 0 allows NULL.
 */
void rnic_copy_stream(void *dst, const void *src, size_t len);

/* The bytes of all @n members of @iov; SIZE_MAX if the sum wraps. */
size_t rnic_iov_len(const struct iovec *iov, size_t n);

/*
 * Copies bytes @off to @off + @len of the concatenated members of @iov to
 * @dst, cached. The caller has checked that @iov holds that many.
 * Members of no length, NULL base included, are legal.
 */
void rnic_iov_gather(void *dst, const struct iovec *iov, size_t n, size_t off,
		     size_t len);

/*
 * Copies @len bytes from @src into the concatenated members of @iov from
 * their byte @off on, cached, and stops where they end. Members of no
 * length, NULL base included, are legal. Returns the bytes stored.
 */
size_t rnic_iov_scatter(const struct iovec *iov, size_t n, size_t off,
			const void *src, size_t len);

#endif /* RNIC_COPY_H */
