/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Overwriting what a hostile process can write.
 */
#define _GNU_SOURCE
#include "scribble.h"

#include <unistd.h>

#include "harness.h"

void sc_scan(struct sc_target *t)
{
	off_t end, off = 0;

	for (t->n = 0; t->n < SC_MAX_EXTENTS; t->n++) {
		off = lseek(t->fd, off, SEEK_DATA);
		if (off < 0)
			return;
		end = lseek(t->fd, off, SEEK_HOLE);
		t->ext[t->n] = (struct sc_extent){ off, end - off };
		off = end;
	}
}

uint64_t sc_nasty(uint64_t *state)
{
	static const uint64_t words[] = {
		0,	     1,		 2,	     63,
		64,	     0x7fffffff, 0x80000000, 0xffffffff,
		0x100000000, INT64_MAX,	 UINT64_MAX, UINT64_MAX - 64,
		4096,	     8192,	 1 << 20,    UINT64_C(1) << 30
	};
	uint64_t r = th_random(state);

	if (r % 3 == 0)
		return r >> 8;
	return words[(r >> 8) % (sizeof(words) / sizeof(words[0]))];
}

void sc_write(const struct sc_target *t, off_t off, const void *data,
	      size_t len)
{
	if (t->mem)
		memcpy(t->mem + off, data, len);
	else
		th_check(pwrite(t->fd, data, len, off) == (ssize_t)len);
}

void sc_anywhere(const struct sc_target *t, uint64_t *state)
{
	static const size_t width[] = { 1, 2, 4, 8, 8, 64 };
	uint64_t line[8], r = th_random(state);
	const struct sc_extent *e;
	size_t w = width[r % 6];
	off_t at;

	if (!t->n)
		return;
	for (int i = 0; i < 8; i++)
		line[i] = sc_nasty(state);
	e = &t->ext[(r >> 8) % (uint64_t)t->n];
	at = (off_t)((r >> 16) % (uint64_t)e->len) & ~(off_t)(w - 1);
	sc_write(t, e->off + at, line, w);
}
