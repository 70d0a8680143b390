/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The bytes that travel. A program computes what it sends, so each message is
 * written anew before it leaves: its lines are then in the sender's cache,
 * whatever the last transfer did to them. From 2 KiB the whole message is
 * rewritten and the time of that is kept apart; below, the first and the last
 * byte are, which costs nothing that could be measured.
 *
 * One thread at a time.
 */
#ifndef BENCH_PAYLOAD_H
#define BENCH_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	BENCH_PAYLOAD_WHOLE = 2048, /* rewritten as a whole from this size */
};

/** How messages are written, and what that has cost. */
struct bench_payload {
	bool rewrite;	   /* false: only the first and the last byte */
	uint64_t clock_ns; /* what two looks at the clock cost */
	uint64_t spent_ns; /* time spent in writing whole messages */
};

/**
 * bench_payload_init() - measure the clock, set the time spent to 0.
 * @payload: memory of the caller; needs no undoing.
 * @rewrite: whether whole messages are rewritten.
 *
 * Cannot fail.
 */
void bench_payload_init(struct bench_payload *payload, bool rewrite);

/**
 * bench_payload_write() - prepare one message.
 * @payload: the time goes here.
 * @data: the message, @size bytes.
 * @size: 0 is allowed.
 * @mark: the byte that the receiver will look for.
 *
 * Cannot fail.
 */
void bench_payload_write(struct bench_payload *payload, unsigned char *data,
			 size_t size, unsigned char mark);

/**
 * bench_payload_ends() - whether first and last byte are @mark.
 * @data: the message, @size bytes.
 * @size: 0 is always right.
 * @mark: what the sender wrote.
 *
 * Cannot fail.
 */
static inline bool bench_payload_ends(const unsigned char *data, size_t size,
				      unsigned char mark)
{
	return !size || (data[0] == mark && data[size - 1] == mark);
}

/**
 * bench_payload_whole() - whether every byte that was written is @mark.
 * @payload: says what is rewritten.
 * @data: the message, @size bytes.
 * @size: 0 is always right.
 * @mark: what the sender wrote.
 *
 * Cannot fail.
 */
bool bench_payload_whole(const struct bench_payload *payload,
			 const unsigned char *data, size_t size,
			 unsigned char mark);

#endif
