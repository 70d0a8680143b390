/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The bytes that travel.
 */
#include "bench/payload.h"

#include <string.h>

#include "bench/clock.h"

enum {
	CLOCK_LOOKS = 1000, /* looks at the clock to learn its cost */
};

void bench_payload_init(struct bench_payload *payload, bool rewrite)
{
	uint64_t begin = bench_clock_ns();
	uint64_t end = begin;
	int i;

	for (i = 0; i < CLOCK_LOOKS; i++)
		end = bench_clock_ns();
	payload->rewrite = rewrite;
	payload->clock_ns = 2 * (end - begin) / CLOCK_LOOKS;
	payload->spent_ns = 0;
}

/* Two looks at the clock belong to the measuring, not to the transfer. */
void bench_payload_write(struct bench_payload *payload, unsigned char *data,
			 size_t size, unsigned char mark)
{
	uint64_t begin;

	if (size < BENCH_PAYLOAD_WHOLE || !payload->rewrite) {
		if (size) {
			data[0] = mark;
			data[size - 1] = mark;
		}
		return;
	}
	begin = bench_clock_ns();
	memset(data, mark, size);
	payload->spent_ns += bench_clock_ns() - begin + payload->clock_ns / 2;
}

bool bench_payload_whole(const struct bench_payload *payload,
			 const unsigned char *data, size_t size,
			 unsigned char mark)
{
	if (!bench_payload_ends(data, size, mark))
		return false;
	if (size < BENCH_PAYLOAD_WHOLE || !payload->rewrite)
		return true;
	return !memcmp(data, data + 1, size - 1);
}
