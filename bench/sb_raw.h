/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The least that a message can cost: bytes copied into memory that two
 * processes share, one line that says so, bytes copied out.
 *
 * Each direction has a ring of 64 lines and a buffer, written by one process
 * and read by the other. A process that waits for one that died gives up after
 * 10 seconds.
 */
#ifndef BENCH_SB_RAW_H
#define BENCH_SB_RAW_H

#include <stddef.h>
#include <stdint.h>

struct sb_raw_block;

/** One process's end; zeroed: none. */
struct sb_raw {
	struct sb_raw_block *block; /* shared */
	size_t room;		    /* bytes of a message, at most */
	int out;		    /* direction in which it writes: 0, 1 */
	uint64_t sent;		    /* messages written */
	uint64_t taken;		    /* messages read */
};

/*
 * Maps the block, before the fork; afterwards the child sets raw->out to 1.
 * Returns 0 or a negative errno. Partner: sb_raw_close(), in both.
 */
int sb_raw_open(struct sb_raw *raw, size_t room);

/* Unmaps it. Zeroed memory is accepted. */
void sb_raw_close(struct sb_raw *raw);

/*
 * Writes @len bytes of @data; what was written before, 64 messages of up to 48
 * bytes or one longer one, has been read. Cannot fail.
 */
void sb_raw_put(struct sb_raw *raw, const void *data, size_t len);

/* Waits for a message of @len bytes. Returns 0 or -ETIMEDOUT. */
int sb_raw_get(struct sb_raw *raw, void *data, size_t len);

#endif
