/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Flow control: sends never give -FI_EAGAIN for want of room on the way, only
 * at the stated limits, and recover; unexpected messages cost bounded memory.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>

#include "env_probe.h"

enum { TAG = 71 };

/* ---- unexpected messages: windows of N, then all received ------------------ */

struct unexp {
	size_t len;	    /* of each message */
	unsigned long n;    /* messages under way before the first receive */
	unsigned int times; /* repetitions */
};

static void unexp_send(struct th_self *self, struct th_stack *s,
		       const struct unexp *u)
{
	unsigned char *tx = malloc(u->len);
	unsigned long i;

	th_check(tx);
	th_fill(tx, u->len, 1);
	for (i = 0; i < u->n; i++)
		th_tsend(s, s->peers[1], tx, u->len, i, tx);
	th_barrier_progress(self, s, "sent");
	for (i = 0; i < u->n; i++)
		th_ptr_eq(th_tx_ok(s).op_context, tx);
	free(tx);
}

static void unexp_recv(struct th_self *self, struct th_stack *s,
		       const struct unexp *u)
{
	unsigned char *rx = malloc(u->len);
	unsigned long i;

	th_check(rx);
	/* Blind and deaf until all are sent: no progress here. */
	th_barrier(self, "sent");
	for (i = u->n; i-- > 0;) {
		memset(rx, 0, u->len < 64 ? u->len : 64);
		th_trecv(s, rx, u->len, i, 0, rx);
		th_eq(th_rx_ok(s).len, u->len);
		th_verify(rx, u->len, 1);
	}
	free(rx);
}

static void unexp_run(struct th_self *self, const struct unexp *u)
{
	struct th_stack s;
	unsigned int k;

	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	for (k = 0; k < u->times; k++) {
		if (self->rank == 0)
			unexp_send(self, &s, u);
		else
			unexp_recv(self, &s, u);
		th_barrier_progress(self, &s, "round");
	}
	th_stack_close(&s);
}

static void case_T3_no_single_copy(struct th_self *self)
{
	struct unexp u = { 4097, 64, 4 };

	if (!probe_forbid(SYS_process_vm_readv, SYS_process_vm_writev, EPERM))
		th_skip(self, "seccomp filters are not allowed here");
	unexp_run(self, &u);
	u.len = 3 << 20;
	u.n = 8;
	unexp_run(self, &u);
}

static void case_T3_single_copy(struct th_self *self)
{
	struct unexp u = { 4097, 64, 4 };

	unexp_run(self, &u);
}

/* fi_unexpected_msg -M 2048 -S 512 */
static void case_T4_more_than_tx_size(struct th_self *self)
{
	struct unexp u = { 512, 2048, 3 };

	unexp_run(self, &u);
}

/*
 * Very many, received in reverse order, and the receiver's memory meanwhile.
 * The documented budget of a receiver for payload of unexpected messages is
 * well below what is allowed here; about 200 bytes go with each message.
 */
enum { T4_LEN = 24, T4_PER_MESSAGE = 400, T4_FIXED = 96 << 20 };

static void t4_recv(struct th_self *self, struct th_stack *s, unsigned long n)
{
	size_t before = probe_resident();
	unsigned char rx[T4_LEN];
	unsigned long i;

	th_barrier_progress(self, s, "sent");
	th_quiet(s, 20);
	if (!th_sanitized())
		th_check(probe_resident() <
			 before + T4_FIXED + n * T4_PER_MESSAGE);
	for (i = n; i-- > 0;) {
		th_trecv(s, rx, sizeof(rx), i, 0, rx);
		th_eq(th_rx_ok(s).tag, i);
		th_verify(rx, sizeof(rx), 2);
	}
	/* Memory is reused, not leaked: a second time costs no more. */
}

static void t4_send(struct th_self *self, struct th_stack *s, unsigned long n)
{
	unsigned char tx[T4_LEN];
	unsigned long i;

	th_fill(tx, sizeof(tx), 2);
	for (i = 0; i < n; i++) {
		while (fi_tinject(s->ep, tx, sizeof(tx), s->peers[1], i) ==
		       -FI_EAGAIN) {
			th_progress(s);
			sched_yield();
		}
	}
	th_barrier_progress(self, s, "sent");
}

static void case_T4_reverse_tags(struct th_self *self)
{
	unsigned long n = th_rounds(100000);
	struct th_stack s;

	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	if (self->rank == 0)
		t4_send(self, &s, n);
	else
		t4_recv(self, &s, n);
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

/* ---- P2: no EAGAIN --------------------------------------------------------- */

/*
 * Tens of thousands of sends of all sizes to a receiver that does nothing:
 * none is refused; later all are received, in order.
 */
static void p2_flood(struct th_self *self, bool two_lines)
{
	static const size_t kinds[] = { 0, 8, 48, 700, 3000, 20000, 100000 };
	unsigned char *buf = malloc(100000);
	unsigned long i, n = th_rounds(20000);
	struct th_stack s;
	size_t len;

	th_check(buf);
	/* Below the limit of queued operations, see the test of that. */
	n = n < 90000 ? n : 90000;
	if (two_lines)
		setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	if (self->rank == 0) {
		th_fill(buf, 100000, 4);
		for (i = 0; i < n; i++)
			th_ok(fi_tsend(s.ep, buf, kinds[i % 7], NULL,
				       s.peers[1], TAG, buf));
	}
	th_barrier(self, "sent");
	for (i = 0; i < n && self->rank == 1; i++) {
		th_trecv(&s, buf, 100000, TAG, 0, buf);
		len = th_rx_ok(&s).len;
		th_eq(len, kinds[i % 7]);
		th_verify(buf, len, 4);
	}
	for (i = 0; i < n && self->rank == 0; i++)
		th_tx_ok(&s);
	th_barrier_progress(self, &s, "done");
	free(buf);
	th_stack_close(&s);
}

static void contract_P2_flood(struct th_self *self)
{
	p2_flood(self, false);
}

static void contract_P2_flood_two_lines(struct th_self *self)
{
	p2_flood(self, true);
}

/*
 * What Open MPI 4.1 does: each side sends synchronous messages, and answers
 * each one that it receives by an empty message from inside the loop over
 * what fi_cq_read() gave it. An -FI_EAGAIN there has no good answer.
 */
enum { STORM = 64, ACK = 1 << 20, BATCH = 100 };

struct storm {
	struct th_stack *s; /* the stack */
	fi_addr_t peer;	    /* the other side */
	uint64_t *rx;	    /* one buffer per message */
	unsigned int len;   /* bytes of each message */
	unsigned int left;  /* completions still to come */
};

static void storm_ack(struct storm *st, uint64_t tag)
{
	struct fi_msg_tagged m = { .addr = st->peer,
				   .tag = ACK + tag,
				   .context = st };

	th_ok(fi_tsendmsg(st->s->ep, &m, 0));
}

static void storm_entries(struct storm *st)
{
	struct fi_cq_tagged_entry e[BATCH];
	ssize_t n, i;

	n = fi_cq_read(st->s->rxcq, e, BATCH);
	if (n == -FI_EAGAIN)
		return;
	th_check(n > 0);
	for (i = 0; i < n; i++) {
		if ((e[i].flags & FI_RECV) && e[i].tag < ACK)
			storm_ack(st, e[i].tag);
		if ((e[i].flags & FI_RECV) || e[i].op_context != st)
			st->left--;
	}
}

static void storm_round(struct storm *st)
{
	struct th_deadline dl = th_patience();
	uint64_t i;

	st->left = 3 * STORM;
	for (i = 0; i < STORM; i++)
		th_trecv(st->s, NULL, 0, ACK + i, 0, &st->rx[0]);
	for (i = 0; i < STORM; i++)
		th_tsend(st->s, st->peer, st->rx, st->len, i, &st->rx[1]);
	for (i = 0; i < STORM; i++)
		th_trecv(st->s, st->rx + 1024 * i, st->len, i, 0,
			 st->rx + 1024 * i + 2);
	while (st->left) {
		storm_entries(st);
		sched_yield();
		th_check(!th_expired(&dl));
	}
}

static void storm_run(struct th_self *self, unsigned int len)
{
	struct th_stack_opts o = { .one_cq = true,
				   .tx_bind = FI_SELECTIVE_COMPLETION,
				   .tx_op_flags = FI_COMPLETION,
				   .rx_bind = FI_SELECTIVE_COMPLETION,
				   .rx_op_flags = FI_COMPLETION };
	unsigned long i, n = th_rounds(200);
	struct th_stack s;
	struct storm st = { .s = &s, .len = len };

	setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	st.peer = s.peers[!self->rank];
	st.rx = calloc(1024 * (STORM + 1), 8);
	th_check(st.rx);
	for (i = 0; i < n; i++)
		storm_round(&st);
	th_barrier_progress(self, &s, "done");
	free(st.rx);
	th_stack_close(&s);
}

static void contract_P2_ack_storm(struct th_self *self)
{
	storm_run(self, 8);
}

static void contract_P2_ack_storm_large(struct th_self *self)
{
	storm_run(self, 8000);
}

/* Receives are never refused. */
static void contract_P2_receives(struct th_self *self)
{
	unsigned long i, n = th_rounds(200000);
	struct th_stack s;
	char rx;

	(void)self;
	th_stack_open(&s, NULL);
	for (i = 0; i < n; i++)
		th_ok(fi_trecv(s.ep, &rx, 1, NULL, FI_ADDR_UNSPEC, i, i % 3,
			       &rx));
	for (i = 0; i < n; i++)
		th_ok(fi_recv(s.ep, &rx, 1, NULL, FI_ADDR_UNSPEC, &rx));
	th_stack_close(&s);
}

/* ---- P2: the limits, and recovery from them ------------------------------------ */

/*
 * Injects until refused, the receiver being idle; returns how many. Fails if
 * that takes more than @most.
 */
static unsigned long inject_until_refused(struct th_stack *a, size_t len,
					  uint64_t first, unsigned long most)
{
	unsigned char tx[4096];
	unsigned long i;
	ssize_t ret;

	for (i = 0; i < most; i++) {
		th_fill(tx, len, first + i);
		ret = fi_tinject(a->ep, tx, len, a->peers[1], TAG);
		if (ret == -FI_EAGAIN)
			return i;
		th_ok(ret);
	}
	th_fail(__FILE__, __LINE__, "never refused");
}

static void drain(struct th_stack *b, size_t len, uint64_t first,
		  unsigned long n)
{
	unsigned char rx[4096];
	unsigned long i;

	for (i = 0; i < n; i++) {
		th_trecv(b, rx, sizeof(rx), TAG, 0, rx);
		th_eq(th_rx_ok(b).len, len);
		th_verify(rx, len, first + i);
	}
}

/*
 * T6: injects of each size against a receiver that does nothing: memory
 * stays below the buffer that was allowed plus what lanes and pools hold,
 * then -FI_EAGAIN; when the receiver drains, it goes on; no message is lost.
 */
static void t6_once(struct th_stack *a, struct th_stack *b, size_t len)
{
	size_t before = probe_resident();
	unsigned long n, more;

	a->buddy = NULL;
	n = inject_until_refused(a, len, 0, 2000000);
	th_check(n >= 10);
	if (!th_sanitized())
		th_check(probe_resident() < before + (64 << 20));
	th_eq(inject_until_refused(a, len, n, 1), 0);
	a->buddy = b;
	drain(b, len, 0, n / 2);
	more = inject_until_refused(a, len, n, 2000000);
	th_check(more > 0);
	drain(b, len, n / 2, n - n / 2 + more);
	th_quiet(b, 5);
}

static void case_T6_inject_loop(struct th_self *self)
{
	struct th_stack a, b;

	(void)self;
	setenv("FI_SHRIMP_TX_BUFFER", "1048576", 1);
	th_pair_open(&a, &b, NULL);
	t6_once(&a, &b, 8);
	t6_once(&a, &b, 600);
	t6_once(&a, &b, 4096);
	th_pair_close(&a, &b);
}

/* The same to itself, never reading a CQ. */
static void case_T6_inject_self(struct th_self *self)
{
	struct th_stack s;
	unsigned long n;
	size_t before;
	fi_addr_t me;

	(void)self;
	setenv("FI_SHRIMP_TX_BUFFER", "1048576", 1);
	th_stack_open(&s, NULL);
	me = th_insert(&s, s.addr);
	s.peers = calloc(2, sizeof(*s.peers));
	th_check(s.peers);
	s.peers[1] = me;
	before = probe_resident();
	n = inject_until_refused(&s, 4096, 0, 2000000);
	if (!th_sanitized())
		th_check(probe_resident() < before + (64 << 20));
	drain(&s, 4096, 0, n);
	th_check(inject_until_refused(&s, 4096, 0, 2000000) > 0);
	th_stack_close(&s);
}

/* The smallest buffer that may be set is 64 KiB. */
static void contract_P2_smallest_buffer(struct th_self *self)
{
	struct th_stack a, b;

	(void)self;
	setenv("FI_SHRIMP_TX_BUFFER", "65536", 1);
	th_pair_open(&a, &b, NULL);
	t6_once(&a, &b, 100);
	t6_once(&a, &b, 4096);
	th_pair_close(&a, &b);
}

/*
 * 10^5 queued operations: that many plain sends are accepted by an endpoint
 * whose receiver is idle; not ten times as many.
 */
static void contract_P2_operations(struct th_self *self)
{
	enum { LIMIT = 100000 };
	struct th_stack a, b;
	unsigned long n, i;
	uint64_t tx = 5, rx;
	ssize_t ret = 0;

	(void)self;
	th_pair_open(&a, &b, NULL);
	a.buddy = NULL;
	for (n = 0; n < 10 * LIMIT; n++) {
		ret = fi_tsend(a.ep, &tx, 8, NULL, a.peers[1], TAG, &tx);
		if (ret)
			break;
	}
	th_eq(ret, -FI_EAGAIN);
	th_check(n >= LIMIT);
	a.buddy = &b;
	for (i = 0; i < n; i++) {
		th_trecv(&b, &rx, 8, TAG, 0, &rx);
		th_rx_ok(&b);
		th_tx_ok(&a);
	}
	th_ok(fi_tsend(a.ep, &tx, 8, NULL, a.peers[1], TAG, &tx));
	th_pair_close(&a, &b);
}

/* FI_SHRIMP_CQ_MAX unread entries: sends are refused until some are read. */
static void contract_P2_unread_entries(struct th_self *self)
{
	enum { MAX = 1000 };
	struct th_stack a, b;
	unsigned long n, i;
	uint64_t tx = 5;
	ssize_t ret = 0;

	(void)self;
	setenv("FI_SHRIMP_CQ_MAX", "1000", 1);
	th_pair_open(&a, &b, NULL);
	for (n = 0; n < 100 * MAX && !ret; n += !ret) {
		ret = fi_tsend(a.ep, &tx, 8, NULL, a.peers[1], TAG, &tx);
		fi_cq_read(b.rxcq, NULL, 0);
		fi_cq_read(a.txcq, NULL, 0);
	}
	th_eq(ret, -FI_EAGAIN);
	th_check(n >= MAX);
	for (i = 0; i < n; i++)
		th_tx_ok(&a);
	th_ok(fi_tsend(a.ep, &tx, 8, NULL, a.peers[1], TAG, &tx));
	th_tx_ok(&a);
	th_quiet(&a, 5);
	th_pair_close(&a, &b);
}

/*
 * T21, second half: after -FI_EAGAIN nothing but fi_cq_read(cq, NULL, 0) at
 * the sender is needed, while another process receives.
 */
static void t21_send(struct th_stack *s, unsigned long n)
{
	struct th_deadline dl = th_deadline_ms(20000);
	unsigned char tx[2000];
	unsigned long i, refused = 0;
	ssize_t ret;

	for (i = 0; i < n;) {
		th_fill(tx, sizeof(tx), i);
		ret = fi_tinject(s->ep, tx, sizeof(tx), s->peers[1], TAG);
		if (!ret) {
			i++;
			continue;
		}
		th_eq(ret, -FI_EAGAIN);
		refused++;
		ret = fi_cq_read(s->txcq, NULL, 0);
		th_check(ret == 0 || ret == -FI_EAGAIN);
		sched_yield();
		th_check(!th_expired(&dl));
	}
	th_check(refused > 0 || !th_is_shrimp());
}

static void case_T21_count_0(struct th_self *self)
{
	unsigned long n = th_rounds(20000);
	struct th_stack s;

	setenv("FI_SHRIMP_TX_BUFFER", "65536", 1);
	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	if (self->rank == 0) {
		t21_send(&s, n);
	} else {
		th_sleep_us(200000);
		drain(&s, 2000, 0, n);
	}
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

/* ---- fairness ------------------------------------------------------------- */

enum { FAIR_TURNS = 20000 };

static void fair_open(struct th_stack *s)
{
	int i, k;

	for (i = 0; i < 3; i++)
		th_stack_open(&s[i], NULL);
	for (i = 0; i < 3; i++) {
		s[i].peers = calloc(3, sizeof(*s[i].peers));
		th_check(s[i].peers);
		for (k = 0; k < 3; k++)
			s[i].peers[k] = th_insert(&s[i], s[k].addr);
	}
}

/*
 * s[0] reads one entry at a time and never finds the lane of s[1] empty: what
 * s[2] sends comes all the same, at first contact and later.
 */
static void fair_until(struct th_stack *s, char *buf)
{
	struct fi_cq_tagged_entry e = { 0 };
	int i;

	th_ok(fi_tinject(s[2].ep, buf, 8, s[0].peers[0], 2));
	for (i = 0; e.tag != 2; i++) {
		th_check(i < FAIR_TURNS);
		th_ok(fi_tinject(s[1].ep, buf, 8, s[0].peers[0], 1));
		if (fi_cq_read(s[0].rxcq, &e, 1) != 1)
			continue;
		th_eq(fi_trecv(s[0].ep, buf, 8, NULL, FI_ADDR_UNSPEC, 0,
			       UINT64_MAX, NULL),
		      0);
	}
}

static void contract_P3_busy_lane(struct th_self *self)
{
	struct th_stack s[3];
	char buf[8] = { 0 };
	int i;

	(void)self;
	fair_open(s);
	for (i = 0; i < 512; i++)
		th_trecv(&s[0], buf, sizeof(buf), 0, UINT64_MAX, NULL);
	th_ok(fi_tinject(s[1].ep, buf, 8, s[0].peers[0], 1));
	th_ok(fi_tinject(s[1].ep, buf, 8, s[0].peers[0], 1));
	th_progress(&s[0]);
	for (i = 0; i < 3; i++)
		fair_until(s, buf);
	for (i = 0; i < 3; i++)
		th_stack_close(&s[i]);
}

static const struct CMUnitTest flow_tests[] = {
	TH_CASE(case_T3_no_single_copy, 2, 20),
	TH_CASE(case_T3_single_copy, 2, 20),
	TH_CASE(case_T4_more_than_tx_size, 2, 20),
	TH_CASE(case_T4_reverse_tags, 2, 40),
	TH_CASE(contract_P2_flood, 2, 30),
	TH_CASE(contract_P2_flood_two_lines, 2, 30),
	TH_CASE(contract_P2_ack_storm, 2, 30),
	TH_CASE(contract_P2_ack_storm_large, 2, 30),
	TH_CASE(contract_P2_receives, 1, 20),
	TH_CASE(case_T6_inject_loop, 1, 30),
	TH_CASE(case_T6_inject_self, 1, 20),
	TH_CASE(contract_P2_smallest_buffer, 1, 20),
	TH_CASE(contract_P2_operations, 1, 20),
	TH_CASE(contract_P2_unread_entries, 1, 20),
	TH_CASE(case_T21_count_0, 2, 30),
	TH_CASE(contract_P3_busy_lane, 1, 20),
};

TH_MAIN(flow_tests)
