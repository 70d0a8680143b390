/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The rings of a lane: order, room, wrap, credits, answers, hostile values;
 * and both ends in two processes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/lane.h"

enum { ROUNDS = 200000 };

struct ends {
	struct rnic_lane *sh;	/* shared between processes */
	struct rnic_lane_tx tx; /* sender's end */
	struct rnic_lane_rx rx; /* receiver's end */
};

static void ends_open(struct ends *e, unsigned int index, uint32_t window)
{
	e->sh = mmap(NULL, sizeof(*e->sh), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(e->sh != MAP_FAILED);
	rnic_lane_tx_init(&e->tx, e->sh, index, window, false);
	rnic_lane_rx_init(&e->rx, e->sh, index);
}

static void ends_close(struct ends *e)
{
	munmap(e->sh, sizeof(*e->sh));
}

/* Posts an inline descriptor that carries @x. True: it rang. */
static bool post(struct rnic_lane_tx *tx, uint64_t x)
{
	struct rnic_desc *d = rnic_lane_slot(tx);

	rnic_store64_relaxed(&d->tag, x);
	rnic_store64_relaxed(&d->data, ~x);
	memcpy(d->payload, &x, sizeof(x));
	return rnic_lane_publish(tx, d, RNIC_DESC_INLINE, 3, sizeof(x));
}

/* Takes a descriptor that must carry @x. */
static void take(struct rnic_lane_rx *rx, uint64_t x)
{
	uint64_t head, y;
	struct rnic_desc *d = rnic_lane_peek(rx, &head);

	assert_non_null(d);
	if (!d)
		return;
	assert_int_equal(rnic_desc_kind_of(head), RNIC_DESC_INLINE);
	assert_int_equal(rnic_desc_flags_of(head), 3);
	assert_int_equal(rnic_desc_len_of(head), sizeof(x));
	assert_int_equal(rnic_load64_relaxed(&d->tag), x);
	memcpy(&y, d->payload, sizeof(y));
	assert_int_equal(y, x);
	rnic_lane_take(rx);
}

static void a_zeroed_lane_is_empty(void **state)
{
	struct ends e;
	struct rnic_ret r;
	uint64_t head;

	(void)state;
	ends_open(&e, 0, RNIC_LANE_LINES);
	assert_null(rnic_lane_peek(&e.rx, &head));
	assert_int_equal(rnic_lane_ret_take(&e.tx, &r), RNIC_RET_NONE);
	assert_int_equal(rnic_lane_room(&e.tx), RNIC_LANE_LINES);
	assert_false(rnic_lane_refresh(&e.tx));
	ends_close(&e);
}

static void in_order_over_many_laps(void **state)
{
	struct ends e;
	uint64_t sent = 0, got = 0, head;

	(void)state;
	ends_open(&e, 7, RNIC_LANE_LINES);
	while (got < 10 * RNIC_LANE_LINES) {
		if (!rnic_lane_room(&e.tx))
			assert_true(rnic_lane_refresh(&e.tx));
		for (int i = 0; i < 5 && rnic_lane_room(&e.tx); i++)
			post(&e.tx, sent++);
		while (rnic_lane_peek(&e.rx, &head))
			take(&e.rx, got++);
		rnic_lane_idle(&e.rx);
	}
	assert_int_equal(got, sent);
	ends_close(&e);
}

static void a_full_ring_has_no_room(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, 0, 2);
	post(&e.tx, 1);
	post(&e.tx, 2);
	assert_int_equal(rnic_lane_room(&e.tx), 0);
	assert_false(rnic_lane_refresh(&e.tx));
	take(&e.rx, 1);
	rnic_lane_idle(&e.rx);
	assert_true(rnic_lane_refresh(&e.tx));
	assert_int_equal(rnic_lane_room(&e.tx), 1);
	ends_close(&e);
}

static void credits_come_by_themselves(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, 0, RNIC_LANE_LINES);
	for (uint64_t i = 0; i < RNIC_CREDIT_LINES; i++)
		post(&e.tx, i);
	for (uint64_t i = 0; i < RNIC_CREDIT_LINES; i++) {
		assert_false(rnic_lane_refresh(&e.tx));
		take(&e.rx, i);
	}
	assert_true(rnic_lane_refresh(&e.tx));
	ends_close(&e);
}

static void rings_unless_hot(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, 0, RNIC_LANE_LINES);
	assert_true(post(&e.tx, 1));
	rnic_store32_relaxed(&e.sh->flag.hot, 1);
	assert_false(post(&e.tx, 2));
	ends_close(&e);
}

/* Sequence numbers go on over 2^32, and where an earlier sender stopped. */
static void a_new_sender_goes_on(void **state)
{
	struct ends e;
	uint64_t head;

	(void)state;
	ends_open(&e, 3, RNIC_LANE_LINES);
	rnic_store32_relaxed(&e.sh->credit.desc_taken, UINT32_MAX - 20);
	rnic_store32_relaxed(&e.sh->credit.bytes_taken, UINT32_MAX - 99);
	rnic_lane_tx_init(&e.tx, e.sh, 3, RNIC_LANE_LINES, false);
	rnic_lane_rx_init(&e.rx, e.sh, 3);
	assert_null(rnic_lane_peek(&e.rx, &head));
	for (uint64_t i = 0; i < 200; i++) {
		post(&e.tx, i);
		take(&e.rx, i);
		rnic_lane_idle(&e.rx);
		rnic_lane_refresh(&e.tx);
	}
	assert_int_equal(rnic_lane_room(&e.tx), RNIC_LANE_LINES);
	ends_close(&e);
}

static void impossible_credits_are_no_news(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, 0, 4);
	post(&e.tx, 1);
	rnic_store32_relaxed(&e.sh->credit.desc_taken, 1000);
	rnic_store32_relaxed(&e.sh->credit.bytes_taken, 77777);
	assert_false(rnic_lane_refresh(&e.tx));
	assert_int_equal(rnic_lane_room(&e.tx), 3);
	assert_int_equal(e.tx.bytes_taken, 0);
	ends_close(&e);
}

static void bytes_never_overlap_nor_run_over(void **state)
{
	struct ends e;
	unsigned int seed = 1;

	(void)state;
	ends_open(&e, 0, RNIC_LANE_LINES);
	for (int i = 0; i < 20000; i++) {
		uint32_t len =
			(uint32_t)(rand_r(&seed) % (RNIC_RING_MSG_MAX + 1));
		uint8_t *w = rnic_lane_bytes(&e.tx, len);
		const uint8_t *r;

		assert_non_null(w);
		assert_true(w >= e.sh->bytes);
		assert_true(w + len <= e.sh->bytes + RNIC_RING_BYTES);
		memset(w, i & 0xff, len);
		r = rnic_lane_take_bytes(&e.rx, len);
		assert_ptr_equal(r, w);
		rnic_lane_credit(&e.rx);
	}
	ends_close(&e);
}

static void a_full_byte_ring_says_so(void **state)
{
	struct ends e;
	int n = 0;

	(void)state;
	ends_open(&e, 0, RNIC_LANE_LINES);
	while (rnic_lane_bytes(&e.tx, RNIC_RING_MSG_MAX))
		n++;
	assert_int_equal(n, RNIC_RING_BYTES / RNIC_RING_MSG_MAX);
	rnic_lane_take_bytes(&e.rx, RNIC_RING_MSG_MAX);
	rnic_lane_credit(&e.rx);
	assert_non_null(rnic_lane_bytes(&e.tx, RNIC_RING_MSG_MAX));
	ends_close(&e);
}

/* ---- replies in the byte ring ---- */

enum { FULL = RNIC_RING_BYTES / RNIC_RING_MSG_MAX };

/* Places @len bytes, which are held; @off: where they must lie. */
static uint32_t hold(struct ends *e, uint32_t len, uint32_t off)
{
	uint8_t *w = rnic_lane_bytes(&e->tx, len);
	uint32_t start;

	assert_ptr_equal(w, e->sh->bytes + off);
	start = rnic_lane_hold(&e->tx, len);
	assert_int_equal(start % RNIC_RING_BYTES, off);
	assert_ptr_equal(rnic_lane_take_bytes(&e->rx, len), w);
	return start;
}

/* As many messages of the largest size as there is room for. */
static int fill_up(struct ends *e)
{
	int n = 0;

	while (rnic_lane_bytes(&e->tx, RNIC_RING_MSG_MAX)) {
		rnic_lane_take_bytes(&e->rx, RNIC_RING_MSG_MAX);
		n++;
	}
	return n;
}

static void credits_do_not_free_held_bytes(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, 0, RNIC_LANE_LINES);
	/* what lies before them goes, what lies behind stays */
	assert_non_null(rnic_lane_bytes(&e.tx, 1024));
	rnic_lane_take_bytes(&e.rx, 1024);
	hold(&e, 100, 1024);
	assert_int_equal(fill_up(&e), FULL - 2);
	rnic_lane_credit(&e.rx);
	assert_int_equal(fill_up(&e), 1);
	for (int i = 0; i < 3; i++) {
		rnic_lane_credit(&e.rx);
		rnic_lane_refresh(&e.tx);
		assert_int_equal(e.tx.bytes_taken, 1024);
		assert_int_equal(fill_up(&e), 0);
	}
	rnic_lane_release(&e.tx, true, 0);
	/* all that was credited meanwhile, without another credit */
	assert_int_equal(fill_up(&e), FULL);
	rnic_lane_credit(&e.rx);
	assert_int_equal(fill_up(&e), FULL);
	ends_close(&e);
}

static void the_oldest_held_bytes_are_released(void **state)
{
	struct ends e;
	uint32_t second, third;

	(void)state;
	ends_open(&e, 0, RNIC_LANE_LINES);
	hold(&e, 1024, 0);
	second = hold(&e, 1000, 1024);
	third = hold(&e, 2048 - 64, 2048);
	assert_int_equal(fill_up(&e), FULL - 4);
	rnic_lane_credit(&e.rx);
	assert_int_equal(fill_up(&e), 0);
	rnic_lane_release(&e.tx, false, second);
	assert_int_equal(fill_up(&e), 1);
	rnic_lane_credit(&e.rx);
	assert_int_equal(fill_up(&e), 0);
	rnic_lane_release(&e.tx, false, third);
	assert_int_equal(fill_up(&e), 1);
	rnic_lane_release(&e.tx, true, 0);
	rnic_lane_credit(&e.rx);
	assert_int_equal(fill_up(&e), FULL);
	ends_close(&e);
}

/* Bytes that would run over the end begin at the start of the ring. */
static void held_bytes_at_the_end_of_the_ring(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e, 0, RNIC_LANE_LINES);
	for (int i = 0; i < FULL; i++) {
		assert_non_null(rnic_lane_bytes(&e.tx, i ? 1024 : 960));
		rnic_lane_take_bytes(&e.rx, i ? 1024 : 960);
		rnic_lane_credit(&e.rx);
	}
	/* 64 bytes are left */
	hold(&e, 65, 0);
	rnic_lane_credit(&e.rx);
	assert_int_equal(fill_up(&e), FULL - 1);
	rnic_lane_credit(&e.rx);
	assert_int_equal(fill_up(&e), 0);
	assert_int_equal(e.tx.bytes_taken, RNIC_RING_BYTES);
	rnic_lane_release(&e.tx, true, 0);
	/* again the end is too short for one */
	assert_int_equal(fill_up(&e), FULL - 1);
	ends_close(&e);
}

/* Held before and behind the place where 32 bits overflow. */
static void held_bytes_when_the_counter_overflows(void **state)
{
	struct ends e;
	uint32_t second;

	(void)state;
	ends_open(&e, 0, RNIC_LANE_LINES);
	rnic_store32_relaxed(&e.sh->credit.bytes_taken, UINT32_MAX - 1023);
	rnic_lane_tx_init(&e.tx, e.sh, 0, RNIC_LANE_LINES, false);
	rnic_lane_rx_init(&e.rx, e.sh, 0);
	assert_int_equal(hold(&e, 1024, RNIC_RING_BYTES - 1024),
			 UINT32_MAX - 1023);
	second = hold(&e, 1024, 0);
	assert_int_equal(second, 0);
	assert_int_equal(fill_up(&e), FULL - 2);
	rnic_lane_credit(&e.rx);
	assert_int_equal(fill_up(&e), 0);
	rnic_lane_release(&e.tx, false, second);
	assert_int_equal(fill_up(&e), 1);
	rnic_lane_credit(&e.rx);
	assert_int_equal(fill_up(&e), 0);
	rnic_lane_release(&e.tx, true, 0);
	assert_int_equal(fill_up(&e), FULL);
	ends_close(&e);
}

/* ---- answers ---- */

static void answers_in_order_and_bounded(void **state)
{
	struct ends e;
	struct rnic_ret r = { 0 }, got;

	(void)state;
	ends_open(&e, 0, RNIC_LANE_LINES);
	for (uint64_t lap = 0; lap < 10; lap++) {
		for (uint64_t i = 0; i < RNIC_RET_ENTRIES; i++) {
			r.op = lap * 100 + i;
			r.len = i;
			assert_true(rnic_lane_ret_put(&e.rx, RNIC_RET_GO, &r));
		}
		assert_false(rnic_lane_ret_put(&e.rx, RNIC_RET_GO, &r));
		for (uint64_t i = 0; i < RNIC_RET_ENTRIES; i++) {
			assert_int_equal(rnic_lane_ret_take(&e.tx, &got),
					 RNIC_RET_GO);
			assert_int_equal(got.op, lap * 100 + i);
			assert_int_equal(got.len, i);
		}
		assert_int_equal(rnic_lane_ret_take(&e.tx, &got),
				 RNIC_RET_NONE);
	}
	ends_close(&e);
}

/* The child sends; payload through both rings; each message seen once. */
static void child_sends(struct ends *e)
{
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint32_t len = (uint32_t)(i % 200);
		struct rnic_desc *d;
		uint8_t *w;

		while (!rnic_lane_room(&e->tx) ||
		       !(w = rnic_lane_bytes(&e->tx, len))) {
			if (!rnic_lane_refresh(&e->tx))
				sched_yield();
		}
		memset(w, (int)(i & 0xff), len);
		d = rnic_lane_slot(&e->tx);
		rnic_store64_relaxed(&d->tag, i);
		rnic_lane_publish(&e->tx, d, RNIC_DESC_RING, 0, len);
	}
}

static void two_processes_lose_nothing(void **state)
{
	struct ends e;
	int status;
	pid_t pid;

	(void)state;
	ends_open(&e, 0, RNIC_LANE_LINES);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(60);
		child_sends(&e);
		_exit(0);
	}
	alarm(60);
	for (uint64_t i = 0; i < ROUNDS;) {
		uint64_t head;
		struct rnic_desc *d = rnic_lane_peek(&e.rx, &head);
		const uint8_t *p;

		if (!d) {
			rnic_lane_idle(&e.rx);
			sched_yield();
			continue;
		}
		assert_int_equal(rnic_load64_relaxed(&d->tag), i);
		p = rnic_lane_take_bytes(&e.rx, rnic_desc_len_of(head));
		for (unsigned int k = 0; k < rnic_desc_len_of(head); k++)
			assert_int_equal(p[k], i & 0xff);
		rnic_lane_take(&e.rx);
		i++;
	}
	alarm(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	ends_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_zeroed_lane_is_empty),
		cmocka_unit_test(in_order_over_many_laps),
		cmocka_unit_test(a_full_ring_has_no_room),
		cmocka_unit_test(credits_come_by_themselves),
		cmocka_unit_test(rings_unless_hot),
		cmocka_unit_test(a_new_sender_goes_on),
		cmocka_unit_test(impossible_credits_are_no_news),
		cmocka_unit_test(bytes_never_overlap_nor_run_over),
		cmocka_unit_test(a_full_byte_ring_says_so),
		cmocka_unit_test(credits_do_not_free_held_bytes),
		cmocka_unit_test(the_oldest_held_bytes_are_released),
		cmocka_unit_test(held_bytes_at_the_end_of_the_ring),
		cmocka_unit_test(held_bytes_when_the_counter_overflows),
		cmocka_unit_test(answers_in_order_and_bounded),
		cmocka_unit_test(two_processes_lose_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
