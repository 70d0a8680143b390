/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Programs that are right, rely on no buffering, and hang with a simpler
 * flow control: the hang scenarios of doc/design.md. (Scenario 10 is case_T18
 * in close.c, scenario 11 is case_T23 in wait.c.)
 */
#define _GNU_SOURCE
#include "harness.h"

#include <sched.h>
#include <signal.h>
#include <sys/uio.h>

enum { TAG = 181, CHUNK = 32 << 10, FLOOD = 64 };

static void recv_len(struct th_stack *s, uint64_t tag, size_t len)
{
	unsigned char *rx = malloc(len);

	th_check(rx);
	th_trecv(s, rx, len, tag, 0, rx);
	th_eq(th_rx_ok(s).len, len);
	th_verify(rx, len, tag);
	free(rx);
}

static void send_len(struct th_stack *s, fi_addr_t to, uint64_t tag, size_t len)
{
	unsigned char *tx = malloc(len);

	th_check(tx);
	th_fill(tx, len, tag);
	th_tsend(s, to, tx, len, tag, tx);
	th_tx_ok(s);
	free(tx);
}

/* ---- 1: one slow receiver, everybody's chunks ------------------------------ */

/*
 * Rank 0 sends a flood to rank 1, then one message to rank 2, which answers
 * to rank 1 only when it has that; rank 1 takes the flood only after rank
 * 2's message.
 */
static void one_rank_0(struct th_stack *s)
{
	unsigned char *tx = malloc(CHUNK);
	int i;

	th_check(tx);
	th_fill(tx, CHUNK, TAG);
	for (i = 0; i < FLOOD; i++)
		th_tsend(s, s->peers[1], tx, CHUNK, TAG, tx);
	th_tsend(s, s->peers[2], tx, CHUNK, TAG, tx);
	for (i = 0; i < FLOOD + 1; i++)
		th_tx_ok(s);
	free(tx);
}

static void one_rank_1(struct th_self *self, struct th_stack *s)
{
	int i;

	/* No libfabric call here: it computes until the parent says so. */
	th_note(self, "computing", 0);
	th_listen(self);
	recv_len(s, TAG + 1, CHUNK);
	for (i = 0; i < FLOOD; i++)
		recv_len(s, TAG, CHUNK);
}

static void one_rank_2(struct th_self *self, struct th_stack *s)
{
	recv_len(s, TAG, CHUNK);
	th_note(self, "got it", 0);
	send_len(s, s->peers[1], TAG + 1, CHUNK);
}

static void one_main(struct th_self *self)
{
	struct th_stack s;

	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	if (self->rank == 0)
		one_rank_0(&s);
	else if (self->rank == 1)
		one_rank_1(self, &s);
	else
		one_rank_2(self, &s);
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

/* Rank 2 gets its message though rank 1 does nothing, or stands still. */
static void one_run(bool stop)
{
	struct th_group *g = th_group_start(3, one_main, NULL, 20);

	th_group_wait_note(g, 1, "computing");
	if (stop)
		th_group_kill(g, 1, SIGSTOP);
	th_group_wait_note(g, 2, "got it");
	if (stop)
		th_group_kill(g, 1, SIGCONT);
	th_group_tell(g, 1, 1);
	th_group_finish(g);
}

static void scenario_1_receiver_computes(void **state)
{
	(void)state;
	one_run(false);
}

static void scenario_1_receiver_is_stopped(void **state)
{
	(void)state;
	one_run(true);
}

/* ---- 2: the message that is waited for comes when the budget is used -------- */

enum { TWO_N = 27000, TWO_LEN = 500, TWO_WAITED = 2000 };

static void two_flood(struct th_stack *s, unsigned long n)
{
	unsigned char tx[TWO_LEN];
	unsigned long i;

	th_fill(tx, sizeof(tx), TAG);
	for (i = 0; i < n; i++)
		th_post(s, fi_tinject(s->ep, tx, sizeof(tx), s->peers[0], TAG));
}

/*
 * Rank 1 sends rank 0 more than its budget of unexpected messages; rank 0
 * waits for an inject of rank 2 that comes after all of them.
 */
static void scenario_2_budget_is_used(struct th_self *self)
{
	/* Below the limit of queued operations (contract P2). */
	unsigned long i, n = th_rounds(TWO_N) / 3;
	unsigned char buf[TWO_WAITED];
	struct th_stack s;

	setenv("FI_SHRIMP_UNEXPECTED", "256k", 1);
	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	if (self->rank == 1)
		two_flood(&s, n);
	th_barrier_progress(self, &s, "flooded");
	if (self->rank == 2) {
		th_fill(buf, sizeof(buf), TAG + 1);
		th_post(&s, fi_tinject(s.ep, buf, sizeof(buf), s.peers[0],
				       TAG + 1));
	}
	if (self->rank == 0) {
		recv_len(&s, TAG + 1, TWO_WAITED);
		for (i = 0; i < n; i++)
			recv_len(&s, TAG, TWO_LEN);
	}
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

/* ---- 6: answers, when both lanes are full ----------------------------------- */

/*
 * Both sides send many messages of all paths that each want an answer, with
 * lanes of two lines, and only then begin to receive.
 */
static void six_run(struct th_self *self, uint64_t flags)
{
	static const size_t lens[] = { 8, 700, 5000, 100000 };
	unsigned long i, n = th_rounds(2000);
	unsigned char *buf = malloc(100000);
	struct iovec iov = { buf, 0 };
	struct fi_msg_tagged m = {
		.msg_iov = &iov, .iov_count = 1, .tag = TAG, .context = buf
	};
	struct th_stack s;

	th_check(buf);
	setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	m.addr = s.peers[!self->rank];
	th_fill(buf, 100000, TAG);
	for (i = 0; i < n; i++) {
		iov.iov_len = lens[i % 4];
		th_post(&s, fi_tsendmsg(s.ep, &m, flags));
	}
	th_barrier(self, "sent");
	for (i = 0; i < n; i++)
		recv_len(&s, TAG, lens[i % 4]);
	for (i = 0; i < n; i++)
		th_ptr_eq(th_tx_ok(&s).op_context, buf);
	th_barrier_progress(self, &s, "done");
	free(buf);
	th_stack_close(&s);
}

static void scenario_6_delivery_both_ways(struct th_self *self)
{
	six_run(self, FI_DELIVERY_COMPLETE);
}

static void scenario_6_match_both_ways(struct th_self *self)
{
	six_run(self, FI_MATCH_COMPLETE);
}

/*
 * Many held messages, received in the reverse order: what is received first
 * was sent last, behind all the others (the number of held messages under
 * way must not be limited).
 */
static void scenario_held_in_reverse(struct th_self *self)
{
	enum { LEN = 200000 };
	unsigned long i, n = th_rounds(1000);
	unsigned char *tx = malloc(LEN);
	struct th_stack s;

	th_check(tx);
	setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	if (self->rank == 0) {
		th_fill(tx, LEN, 5);
		for (i = 0; i < n; i++)
			th_tsend(&s, s.peers[1], tx, LEN, i, tx);
		for (i = 0; i < n; i++)
			th_tx_ok(&s);
	} else {
		for (i = n; i-- > 0;) {
			th_trecv(&s, tx, LEN, i, 0, tx);
			th_eq(th_rx_ok(&s).tag, i);
			th_check(th_match_at(tx + LEN - 64, 64, 5, LEN - 64));
		}
	}
	th_barrier_progress(self, &s, "done");
	free(tx);
	th_stack_close(&s);
}

/* A ring of blocking large sends: all send before any receives. */
static void scenario_ring_of_large_sends(struct th_self *self)
{
	enum { LEN = 4 << 20 };
	unsigned long i, n = th_rounds(20);
	unsigned char *tx = malloc(LEN), *rx = malloc(LEN);
	int next = (self->rank + 1) % self->size;
	struct th_stack s;

	th_check(tx && rx);
	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	th_fill(tx, LEN, 5);
	for (i = 0; i < n; i++) {
		th_tsend(&s, s.peers[next], tx, LEN, i, tx);
		th_trecv(&s, rx, LEN, i, 0, rx);
		th_rx_ok(&s);
		th_tx_ok(&s);
	}
	th_verify(rx, LEN, 5);
	th_barrier_progress(self, &s, "done");
	free(tx);
	free(rx);
	th_stack_close(&s);
}

static const struct CMUnitTest hang_tests[] = {
	cmocka_unit_test(scenario_1_receiver_computes),
	cmocka_unit_test(scenario_1_receiver_is_stopped),
	TH_CASE(scenario_2_budget_is_used, 3, 20),
	TH_CASE(scenario_6_delivery_both_ways, 2, 20),
	TH_CASE(scenario_6_match_both_ways, 2, 20),
	TH_CASE(scenario_held_in_reverse, 2, 20),
	TH_CASE(scenario_ring_of_large_sends, 5, 20),
};

TH_MAIN(hang_tests)
