/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Unit tests of a batch: leader and follower by themselves, on made-up sides
 * whose peer is a script, and of the bytes that travel.
 */
#include "bench/batch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/clock.h"
#include "bench/payload.h"

enum {
	ROUND_NS = 2000, /* what a round takes */
	PEER_NS = 500,	 /* of which the peer prepares data */
};

/* A side whose other side answers at once. */
struct fake {
	uint64_t put[256];	/* numbers put, in order */
	unsigned int puts;	/* how many */
	uint64_t rounds;	/* of the last run */
	uint64_t total;		/* rounds of all runs */
	const uint64_t *script; /* what get gives; NULL: PEER_NS a round */
	uint64_t switches;	/* how often the other side lost its core */
	bool told;		/* the time has been got, switches are next */
	int fail;		/* what run returns */
};

static int fake_put(void *ctx, uint64_t value)
{
	struct fake *fake = ctx;

	if (fake->puts < 256)
		fake->put[fake->puts] = value;
	fake->puts++;
	return 0;
}

static int fake_get(void *ctx, uint64_t *value)
{
	struct fake *fake = ctx;

	if (fake->script)
		*value = *fake->script++;
	else
		*value = fake->told ? fake->switches : PEER_NS * fake->rounds;
	fake->told = !fake->told;
	return 0;
}

static int fake_run(void *ctx, uint64_t rounds, uint64_t *ns)
{
	uint64_t end = bench_clock_ns() + rounds * ROUND_NS;
	struct fake *fake = ctx;

	fake->rounds = rounds;
	fake->total += rounds;
	while (bench_clock_ns() < end)
		;
	*ns = rounds * ROUND_NS;
	return fake->fail;
}

static struct bench_side fake_side(struct fake *fake)
{
	return (struct bench_side){
		.run = fake_run,
		.put = fake_put,
		.get = fake_get,
		.ctx = fake,
	};
}

static void leader_takes_the_peer_out(void **state)
{
	struct fake fake = { .puts = 0 };
	struct bench_side side = fake_side(&fake);
	struct bench_batch batch;

	(void)state;
	assert_int_equal(bench_batch_lead(&batch, &side, 5), 0);
	assert_true(batch.median_ns == ROUND_NS - PEER_NS);
	assert_true(batch.min_ns == ROUND_NS - PEER_NS);
	assert_true(batch.parts >= 1);
	assert_true(batch.clean <= batch.parts);
	assert_true(batch.end_ns - batch.begin_ns >= 5000000);
	assert_true(fake.total >= batch.parts * batch.rounds);
}

static void parts_of_a_disturbed_peer_are_not_clean(void **state)
{
	struct fake fake = { .switches = 1 };
	struct bench_side side = fake_side(&fake);
	struct bench_batch batch;

	(void)state;
	assert_int_equal(bench_batch_lead(&batch, &side, 1), 0);
	assert_int_equal(batch.clean, 0);
	assert_true(batch.parts >= 1);
	assert_true(batch.median_ns == ROUND_NS - PEER_NS);
}

static void leader_ends_with_zero(void **state)
{
	struct fake fake = { .puts = 0 };
	struct bench_side side = fake_side(&fake);
	struct bench_batch batch;
	unsigned int i;

	(void)state;
	assert_int_equal(bench_batch_lead(&batch, &side, 1), 0);
	assert_true(fake.puts >= 2);
	assert_true(fake.puts <= sizeof(fake.put) / sizeof(*fake.put));
	for (i = 0; i + 1 < fake.puts; i++)
		assert_int_not_equal(fake.put[i], 0);
	assert_int_equal(fake.put[fake.puts - 1], 0);
}

static void leader_passes_errors_up(void **state)
{
	struct fake fake = { .fail = -EPIPE };
	struct bench_side side = fake_side(&fake);
	struct bench_batch batch = { .parts = 42 };

	(void)state;
	assert_int_equal(bench_batch_lead(&batch, &side, 1), -EPIPE);
	assert_int_equal(batch.parts, 42);
}

static void follower_does_what_it_is_told(void **state)
{
	static const uint64_t script[] = { 3, 1, 2, 0 };
	struct fake fake = { .script = script };
	struct bench_side side = fake_side(&fake);

	(void)state;
	assert_int_equal(bench_batch_follow(&side), 0);
	assert_int_equal(fake.total, 6);
	/* The time and the lost cores of three runs. */
	assert_int_equal(fake.puts, 6);
	assert_int_equal(fake.put[4], 2 * ROUND_NS);
}

static void follower_passes_errors_up(void **state)
{
	static const uint64_t script[] = { 3, 0 };
	struct fake fake = { .script = script, .fail = -EPIPE };
	struct bench_side side = fake_side(&fake);

	(void)state;
	assert_int_equal(bench_batch_follow(&side), -EPIPE);
	assert_int_equal(fake.puts, 0);
}

static void long_messages_are_rewritten(void **state)
{
	static unsigned char data[BENCH_PAYLOAD_WHOLE];
	struct bench_payload payload;

	(void)state;
	bench_payload_init(&payload, true);
	bench_payload_write(&payload, data, sizeof(data), 5);
	assert_true(bench_payload_whole(&payload, data, sizeof(data), 5));
	assert_false(bench_payload_whole(&payload, data, sizeof(data), 6));
	assert_true(payload.spent_ns > 0);
	data[1000] = 6;
	assert_true(bench_payload_ends(data, sizeof(data), 5));
	assert_false(bench_payload_whole(&payload, data, sizeof(data), 5));
}

static void short_messages_change_at_the_ends(void **state)
{
	unsigned char data[16] = { 0 };
	struct bench_payload payload;

	(void)state;
	bench_payload_init(&payload, true);
	bench_payload_write(&payload, data, 0, 5);
	assert_int_equal(data[0], 0);
	bench_payload_write(&payload, data, 16, 5);
	assert_int_equal(data[0], 5);
	assert_int_equal(data[8], 0);
	assert_int_equal(data[15], 5);
	assert_int_equal(payload.spent_ns, 0);
	assert_true(bench_payload_ends(data, 16, 5));
	data[15] = 6;
	assert_false(bench_payload_ends(data, 16, 5));
	assert_true(bench_payload_ends(data, 0, 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leader_takes_the_peer_out),
		cmocka_unit_test(parts_of_a_disturbed_peer_are_not_clean),
		cmocka_unit_test(leader_ends_with_zero),
		cmocka_unit_test(leader_passes_errors_up),
		cmocka_unit_test(follower_does_what_it_is_told),
		cmocka_unit_test(follower_passes_errors_up),
		cmocka_unit_test(long_messages_are_rewritten),
		cmocka_unit_test(short_messages_change_at_the_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
