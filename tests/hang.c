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
#include <sys/resource.h>
#include <sys/uio.h>

#include "env_probe.h"

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

/* ---- a sender that is attached to over the socket, and makes no call -------- */

enum { AWAY_MS = 6500, INJECTS = 100, INJECT_LEN = 100 };

/* Longer than an attach is waited for. */
static const size_t away_len[] = { 4096, 60000 };

static void away_open(struct th_self *self, struct th_stack *s)
{
	/* who sleeps is attached to when it is rung up */
	struct th_stack_opts o = { .cq_wait = self->rank ? FI_WAIT_NONE
							 : FI_WAIT_UNSPEC };
	unsigned char buf[8];

	setenv("FI_SHRIMP_ATTACH", "socket", 1);
	th_stack_open(s, &o);
	th_stack_connect(s, self);
	th_fill(buf, sizeof(buf), TAG);
	if (self->rank == 1)
		send_len(s, s->peers[0], TAG, sizeof(buf));
	else
		recv_len(s, TAG, sizeof(buf));
	th_barrier_progress(self, s, "met");
}

static long cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

/* Rank 0 sleeps until the sender is back, and has lost nothing then. */
static void away_receiver(struct th_self *self, struct th_stack *s)
{
	unsigned char *rx = calloc(2, away_len[1]);
	struct fi_cq_tagged_entry e;
	long cpu = cpu_ms();
	size_t i;

	th_check(rx);
	th_barrier(self, "sent");
	for (i = 0; i < 2; i++)
		th_trecv(s, rx + i * away_len[1], away_len[1], i, 0, NULL);
	th_eq(fi_cq_sread(s->rxcq, &e, 1, NULL, AWAY_MS), -FI_EAGAIN);
	th_check(cpu_ms() - cpu < AWAY_MS / 3);
	th_check(probe_stats(&s->fabric->fid).sleeps > 0);
	th_barrier(self, "slept");
	th_barrier_progress(self, s, "back");
	for (i = 0; i < 2; i++) {
		th_eq(th_rx_ok(s).len, away_len[i]);
		th_verify(rx + i * away_len[1], away_len[i], i);
	}
	th_eq(probe_stats(&s->fabric->fid).dropped_msgs, 0);
	free(rx);
}

/* Its messages wait for it, without limit; so do those in several pieces. */
static void scenario_sender_computes(struct th_self *self)
{
	unsigned char *tx = calloc(2, away_len[1]);
	struct th_stack s;
	size_t i;

	th_check(tx);
	away_open(self, &s);
	for (i = 0; i < 2 && self->rank; i++) {
		th_fill(tx + i * away_len[1], away_len[i], i);
		th_tsend(&s, s.peers[0], tx + i * away_len[1], away_len[i], i,
			 NULL);
	}
	if (self->rank) {
		th_barrier(self, "sent");
		/* makes no call meanwhile */
		th_barrier(self, "slept");
		th_barrier_progress(self, &s, "back");
		th_tx_ok(&s);
		th_tx_ok(&s);
	} else {
		away_receiver(self, &s);
	}
	th_barrier_progress(self, &s, "done");
	free(tx);
	th_stack_close(&s);
}

static uint64_t heaped(struct th_stack *s)
{
	return probe_stats(&s->fabric->fid).tx.msgs[FI_SHRIMP_PATH_HEAP];
}

/* Injects more than the lane takes; how many it took. */
static uint64_t inject_all(struct th_stack *s)
{
	unsigned char buf[INJECT_LEN];
	uint64_t i;

	for (i = 0; i < INJECTS; i++) {
		th_fill(buf, sizeof(buf), i);
		th_ok(fi_tinject(s->ep, buf, sizeof(buf), s->peers[0], TAG));
	}
	return probe_stats(&s->fabric->fid).tx.msgs[FI_SHRIMP_PATH_RING];
}

/* @n messages from @first on; they were matched in order, and end in any. */
static void take_injects(struct th_stack *s, unsigned char (*rx)[INJECT_LEN],
			 uint64_t first, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		th_eq(th_rx_ok(s).len, INJECT_LEN);
	for (i = first; i < first + n; i++)
		th_verify(rx[i], INJECT_LEN, i);
}

/* No call lasts longer while several receives wait for the sender's heap. */
static void polls_are_short(struct th_stack *s)
{
	struct th_deadline dl = th_deadline_ms(700);
	struct fi_cq_tagged_entry e;
	uint64_t t, most = 0;

	while (!th_expired(&dl)) {
		t = th_now_ns();
		th_eq(fi_cq_read(s->rxcq, &e, 1), -FI_EAGAIN);
		t = th_now_ns() - t;
		most = t > most ? t : most;
	}
	th_check(most < UINT64_C(2000000000));
}

static void scenario_heap_of_a_computing_sender(struct th_self *self)
{
	static unsigned char rx[INJECTS][INJECT_LEN];
	struct th_deadline dl = th_patience();
	uint64_t direct[2] = { 0 }, mine = 0, i;
	struct th_stack s;

	away_open(self, &s);
	if (self->rank)
		mine = inject_all(&s);
	th_gather(self, "injected", &mine, direct, sizeof(mine));
	for (i = 0; i < INJECTS && !self->rank && i < direct[1] + 2; i++)
		th_trecv(&s, rx[i], INJECT_LEN, TAG, 0, rx[i]);
	if (!self->rank)
		take_injects(&s, rx, 0, direct[1]);
	th_barrier(self, "taken");
	while (self->rank && heaped(&s) < INJECTS - direct[1]) {
		th_progress(&s);
		th_check(!th_expired(&dl));
	}
	th_barrier(self, "in the heap");
	if (!self->rank)
		polls_are_short(&s);
	th_barrier(self, "polled");
	th_barrier_progress(self, &s, "back");
	if (!self->rank)
		take_injects(&s, rx, direct[1], 2);
	th_barrier_progress(self, &s, "done");
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
	TH_CASE(scenario_sender_computes, 2, 40),
	TH_CASE(scenario_heap_of_a_computing_sender, 2, 20),
};

TH_MAIN(hang_tests)
