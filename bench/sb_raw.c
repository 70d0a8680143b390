/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The least that a message can cost.
 *
 * Exclusion: a direction has one writer and one reader, who alternate as the
 * callers agree; the number in a line hands its bytes over.
 */
#define _GNU_SOURCE
#include "bench/sb_raw.h"

#include <errno.h>
#include <sched.h>
#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/clock.h"
#include "shm/atomic.h"

enum {
	LINES = 64,	 /* of a ring */
	INLINE = 48,	 /* bytes that a line has room for */
	LOOKS = 1 << 13, /* before others get the core */
	STUCK_S = 10,
	BUFFER_ALIGN = 4096,
};

struct line {
	alignas(64) rnic_a64 seq; /* number of the message in it */
	char data[INLINE];	  /* its bytes, if they fit */
};

struct sb_raw_block {
	struct line ring[2][LINES];	     /* by direction */
	alignas(BUFFER_ALIGN) char buffer[]; /* twice raw->room */
};

static size_t block_size(size_t room)
{
	return sizeof(struct sb_raw_block) + 2 * room;
}

int sb_raw_open(struct sb_raw *raw, size_t room)
{
	void *p;

	room = (room + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
	p = mmap(NULL, block_size(room), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	*raw = (struct sb_raw){ .block = p, .room = room };
	return 0;
}

void sb_raw_close(struct sb_raw *raw)
{
	if (raw->block)
		munmap(raw->block, block_size(raw->room));
	*raw = (struct sb_raw){ .block = NULL };
}

static char *place(struct sb_raw *raw, struct line *l, int dir, size_t len)
{
	if (len <= INLINE)
		return l->data;
	return raw->block->buffer + (size_t)dir * raw->room;
}

void sb_raw_put(struct sb_raw *raw, const void *data, size_t len)
{
	uint64_t seq = ++raw->sent;
	struct line *l = &raw->block->ring[raw->out][seq % LINES];

	memcpy(place(raw, l, raw->out, len), data, len);
	/* W1: the bytes of the message; pairs with W2 */
	rnic_store64_release(&l->seq, seq);
}

int sb_raw_get(struct sb_raw *raw, void *data, size_t len)
{
	uint64_t seq = ++raw->taken, until = 0;
	int dir = !raw->out;
	struct line *l = &raw->block->ring[dir][seq % LINES];
	unsigned int looks = 0;

	/* W2: pairs with W1 */
	while (rnic_load64_acquire(&l->seq) != seq) {
		if (++looks % LOOKS)
			continue;
		sched_yield();
		if (!until)
			until = bench_clock_ns() + STUCK_S * 1000000000ull;
		else if (bench_clock_ns() > until)
			return -ETIMEDOUT;
	}
	memcpy(data, place(raw, l, dir, len), len);
	return 0;
}
