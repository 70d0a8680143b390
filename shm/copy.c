/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Streaming copy and iovecs, see copy.h. No state, any thread.
 */
#include "shm/copy.h"

#include "shm/breakage.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

enum {
	LINE = 64, /* unit of the streaming loop */
};

#if defined(__x86_64__)

/*
 * One line past the caches; @d is aligned to it. Four 16-byte stores fill
 * one write-combining buffer: wider ones measured no faster, and these every
 * x86-64 has.
 */
static inline void stream_line(uint8_t *d, const uint8_t *s)
{
	__m128i a = _mm_loadu_si128((const __m128i *)(const void *)s);
	__m128i b = _mm_loadu_si128((const __m128i *)(const void *)(s + 16));
	__m128i c = _mm_loadu_si128((const __m128i *)(const void *)(s + 32));
	__m128i e = _mm_loadu_si128((const __m128i *)(const void *)(s + 48));

	_mm_stream_si128((__m128i *)(void *)d, a);
	_mm_stream_si128((__m128i *)(void *)(d + 16), b);
	_mm_stream_si128((__m128i *)(void *)(d + 32), c);
	_mm_stream_si128((__m128i *)(void *)(d + 48), e);
}

void rnic_copy_stream(void *dst, const void *src, size_t len)
{
	uint8_t *d = dst;
	const uint8_t *s = src;
	size_t head = -(uintptr_t)d % LINE;

	if (!len)
		return;
	if (head > len)
		head = len;
	rnic_copy(d, s, head);
	for (d += head, s += head, len -= head; len >= LINE; len -= LINE) {
		stream_line(d, s);
		d += LINE;
		s += LINE;
	}
	rnic_copy(d, s, len);
	/*
	 * Streaming stores sit in buffers that later plain stores overtake:
	 * they all become visible before whatever the caller stores next,
	 * be it the end of a reader section or a published descriptor.
	 */
	if (!RNIC_BROKEN(nt_fence))
		_mm_sfence();
}

#else

void rnic_copy_stream(void *dst, const void *src, size_t len)
{
	rnic_copy(dst, src, len);
}

#endif

size_t rnic_iov_len(const struct iovec *iov, size_t n)
{
	size_t i, sum = 0;

	for (i = 0; i < n; i++)
		if (__builtin_add_overflow(sum, iov[i].iov_len, &sum))
			return SIZE_MAX;
	return sum;
}

/* Short copies are worth a few instructions, not a call. */
static inline void copy_any(void *dst, const void *src, size_t len)
{
	if (len <= RNIC_COPY_INLINE_MAX)
		rnic_copy_inline(dst, src, len);
	else
		rnic_copy(dst, src, len);
}

/*
 * Steps over the members that end at or before byte *@off; *@off is then
 * relative to the one returned. Members of no length are always stepped over.
 */
static const struct iovec *iov_seek(const struct iovec *iov,
				    const struct iovec *end, size_t *off)
{
	while (iov < end && *off >= iov->iov_len) {
		*off -= iov->iov_len;
		iov++;
	}
	return iov;
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void gather_many(uint8_t *dst, const struct iovec *iov,
			const struct iovec *end, size_t off, size_t len)
{
	for (; len; iov++) {
		size_t part;

		iov = iov_seek(iov, end, &off);
		assert(iov < end);
		part = min_size(iov->iov_len - off, len);
		copy_any(dst, (const uint8_t *)iov->iov_base + off, part);
		dst += part;
		len -= part;
		off = 0;
	}
}

void rnic_iov_gather(void *dst, const struct iovec *iov, size_t n, size_t off,
		     size_t len)
{
	if (!len)
		return;
	if (n == 1)
		copy_any(dst, (const uint8_t *)iov->iov_base + off, len);
	else
		gather_many(dst, iov, iov + n, off, len);
}

static size_t scatter_many(const struct iovec *iov, const struct iovec *end,
			   size_t off, const uint8_t *src, size_t len)
{
	size_t done = 0;

	for (; done < len; iov++) {
		size_t part;

		iov = iov_seek(iov, end, &off);
		if (iov == end)
			break;
		part = min_size(iov->iov_len - off, len - done);
		copy_any((uint8_t *)iov->iov_base + off, src + done, part);
		done += part;
		off = 0;
	}
	return done;
}

size_t rnic_iov_scatter(const struct iovec *iov, size_t n, size_t off,
			const void *src, size_t len)
{
	if (!len || !n)
		return 0;
	if (n > 1)
		return scatter_many(iov, iov + n, off, src, len);
	if (off >= iov->iov_len)
		return 0;
	len = min_size(iov->iov_len - off, len);
	copy_any((uint8_t *)iov->iov_base + off, src, len);
	return len;
}
