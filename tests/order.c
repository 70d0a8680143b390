/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Messages of one pair of endpoints are matched in the order they were sent,
 * whatever their size, path and call; and one that does not match never
 * holds up another.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <sched.h>
#include <sys/uio.h>

enum { TAG = 61, WINDOW = 64, LONGEST = 300000 };

/*
 * T1: a message that never matches, in three sizes, lies before one that
 * does.
 */
static void unmatched_between(struct th_stack *a, struct th_stack *b,
			      size_t len)
{
	unsigned char *tx = malloc(len), *rx = malloc(len);
	uint64_t v[2] = { 1, 2 }, r[2] = { 0, 0 };

	th_check(tx && rx);
	th_fill(tx, len, len);
	th_trecv(b, &r[0], 8, 0, 0, &r[0]);
	th_trecv(b, &r[1], 8, 0, 0, &r[1]);
	th_tsend(a, a->peers[1], &v[0], 8, 0, &v[0]);
	th_tsend(a, a->peers[1], tx, len, 1, tx);
	th_tsend(a, a->peers[1], &v[1], 8, 0, &v[1]);
	th_ptr_eq(th_rx_ok(b).op_context, &r[0]);
	th_ptr_eq(th_rx_ok(b).op_context, &r[1]);
	th_check(r[0] == 1 && r[1] == 2);
	th_quiet(b, 5);
	th_trecv(b, rx, len, 1, 0, rx);
	th_ptr_eq(th_rx_ok(b).op_context, rx);
	th_verify(rx, len, len);
	for (v[0] = 0; v[0] < 3; v[0]++)
		th_tx_ok(a);
	free(tx);
	free(rx);
}

static void case_T1_unmatched_large(struct th_self *self)
{
	struct th_stack a, b;

	(void)self;
	th_pair_open(&a, &b, NULL);
	unmatched_between(&a, &b, 8192);
	unmatched_between(&a, &b, 100);
	unmatched_between(&a, &b, 1 << 20);
	unmatched_between(&a, &b, 40 << 20);
	th_pair_close(&a, &b);
}

/* ---- a numbered stream -------------------------------------------------- */

/* Size of message @i: around every boundary between paths, and random. */
static size_t stream_len(uint64_t i)
{
	static const size_t edges[] = { 8,     40,    41,    64,   1024,
					1025,  4096,  4097,  8192, 8193,
					65536, 65537, 262144 };
	uint64_t seed = i * 2654435761u;
	uint64_t r = th_random(&seed);

	if (r % 4 == 0)
		return edges[r / 4 % (sizeof(edges) / sizeof(edges[0]))];
	if (r % 16 == 1)
		return 8 + r / 16 % (LONGEST - 8);
	return 8 + r / 16 % 3000;
}

struct stream {
	struct th_stack *s;   /* the stack it runs on */
	fi_addr_t peer;	      /* whom to send to */
	unsigned long n;      /* messages each way */
	unsigned long sent;   /* send calls made */
	unsigned long done;   /* of them complete */
	unsigned long posted; /* receives posted */
	unsigned long got;    /* of them complete and checked */
	unsigned char *tx;    /* WINDOW buffers */
	unsigned char *rx;    /* WINDOW buffers */
};

static unsigned char *slot(unsigned char *base, unsigned long i)
{
	return base + i % WINDOW * (size_t)LONGEST;
}

static void stream_init(struct stream *st, struct th_stack *s, fi_addr_t peer,
			unsigned long n)
{
	memset(st, 0, sizeof(*st));
	st->s = s;
	st->peer = peer;
	st->n = n;
	st->tx = malloc((size_t)WINDOW * LONGEST);
	st->rx = malloc((size_t)WINDOW * LONGEST);
	th_check(st->tx && st->rx);
}

static void stream_fini(struct stream *st)
{
	free(st->tx);
	free(st->rx);
}

/* Sends message @i, by the call that its number says. */
static ssize_t stream_call(struct stream *st, unsigned long i)
{
	unsigned char *p = slot(st->tx, i);
	struct iovec iov[2] = { { p, 3 }, { p + 3, stream_len(i) - 3 } };
	struct fi_msg_tagged m = { .msg_iov = iov,
				   .iov_count = 2,
				   .addr = st->peer,
				   .tag = TAG,
				   .context = p };
	size_t len = stream_len(i);

	if (i % 3 == 0 && len <= st->s->info->tx_attr->inject_size)
		return fi_tinject(st->s->ep, p, len, st->peer, TAG);
	if (i % 3 == 1)
		return fi_tsendmsg(st->s->ep, &m,
				   i % 2 ? FI_DELIVERY_COMPLETE : 0);
	return fi_tsend(st->s->ep, p, len, NULL, st->peer, TAG, p);
}

static bool stream_injects(const struct stream *st, unsigned long i)
{
	return i % 3 == 0 && stream_len(i) <= st->s->info->tx_attr->inject_size;
}

static void stream_send(struct stream *st)
{
	unsigned long i = st->sent;
	ssize_t ret;

	if (i == st->n || i - st->done >= WINDOW)
		return;
	th_fill(slot(st->tx, i), stream_len(i), i);
	memcpy(slot(st->tx, i), &i, 8);
	ret = stream_call(st, i);
	if (ret == -FI_EAGAIN && !th_is_shrimp())
		return;
	th_ok(ret);
	st->sent++;
	if (stream_injects(st, i))
		st->done++;
}

static void stream_post(struct stream *st)
{
	unsigned char *p = slot(st->rx, st->posted);

	if (st->posted == st->n || st->posted - st->got >= WINDOW)
		return;
	th_trecv(st->s, p, LONGEST, TAG, 0, p);
	st->posted++;
}

/*
 * Receives were posted in order, so the receive number k must hold message
 * k. They may complete in another order; then the buffers tell.
 */
static void stream_check(struct stream *st)
{
	struct fi_cq_tagged_entry e;
	uint64_t i;
	ssize_t n;

	n = fi_cq_read(st->s->rxcq, &e, 1);
	if (n == -FI_EAGAIN)
		return;
	th_eq(n, 1);
	memcpy(&i, e.op_context, 8);
	th_check(i < st->posted);
	th_ptr_eq(e.op_context, slot(st->rx, i));
	th_eq(e.len, stream_len(i));
	th_verify_at((unsigned char *)e.op_context + 8, e.len - 8, i, 8);
	memset(e.op_context, 0xff, 8);
	st->got++;
}

static void stream_tx(struct stream *st)
{
	struct fi_cq_tagged_entry e;
	ssize_t n = fi_cq_read(st->s->txcq, &e, 1);

	if (n == -FI_EAGAIN)
		return;
	th_eq(n, 1);
	st->done++;
}

static bool stream_step(struct stream *st)
{
	stream_send(st);
	stream_post(st);
	stream_check(st);
	stream_tx(st);
	return st->got < st->n || st->done < st->n;
}

/*
 * The window of buffers is reused in order though completions may come out
 * of order, so wait for all of a window before going on.
 */
static void stream_run(struct stream *st, unsigned long total)
{
	struct th_deadline dl = th_deadline_ms(60000);

	for (st->n = 0; st->n < total;) {
		st->n += WINDOW;
		while (stream_step(st)) {
			th_progress(st->s);
			sched_yield();
			if (th_expired(&dl))
				th_fail(__FILE__, __LINE__,
					"sent %lu done %lu posted %lu got %lu",
					st->sent, st->done, st->posted,
					st->got);
		}
	}
}

static void stream_between(struct th_self *self)
{
	struct stream st;
	struct th_stack s;

	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	stream_init(&st, &s, s.peers[(self->rank + 1) % self->size], 0);
	stream_run(&st, th_rounds(4000));
	th_barrier_progress(self, &s, "done");
	stream_fini(&st);
	th_stack_close(&s);
}

/* Both ways between two processes, with the lanes as they are. */
static void case_T26_stream(struct th_self *self)
{
	stream_between(self);
}

/* With lanes of two lines, so that nearly everything queues. */
static void case_T26_two_lines(struct th_self *self)
{
	setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	stream_between(self);
}

/* To itself. */
static void case_T26_self(struct th_self *self)
{
	stream_between(self);
}

/* ---- nothing overtakes (P5) -------------------------------------------------- */

enum { NPEERS = 3, MESSAGES = 600 };

static size_t p5_len(uint64_t seed)
{
	static const size_t kinds[] = { 8, 100, 2000, 20000, 200000, 1 << 20 };

	return kinds[th_random(&seed) % 6];
}

/*
 * All descriptors of a pair go one way: one sender, several receivers, each
 * gets its messages in order though the sizes change path at random. The
 * receivers start late, so that most messages are unexpected and the lanes
 * run full; the receives take any tag, so each shows the next in order.
 */
static void p5_send(struct th_stack *s, unsigned long n)
{
	unsigned char *tx = malloc(1 << 20);
	unsigned long i;
	int k;

	th_check(tx);
	th_fill(tx, 1 << 20, 9);
	for (i = 0; i < n; i++)
		for (k = 1; k <= NPEERS; k++)
			th_tsend(s, s->peers[k], tx, p5_len(i + (unsigned)k), i,
				 tx);
	for (i = 0; i < n * NPEERS; i++)
		th_ptr_eq(th_tx_ok(s).op_context, tx);
	free(tx);
}

static void p5_recv(struct th_stack *s, int rank, unsigned long n)
{
	unsigned char *rx = malloc(1 << 20);
	struct fi_cq_tagged_entry e;
	unsigned long i;

	th_check(rx);
	th_sleep_us(100000 * (unsigned int)rank);
	for (i = 0; i < n; i++) {
		th_trecv(s, rx, 1 << 20, 0, ~UINT64_C(0), rx);
		e = th_rx_ok(s);
		th_eq(e.tag, i);
		th_eq(e.len, p5_len(i + (unsigned)rank));
		th_verify(rx, e.len, 9);
	}
	free(rx);
}

static void p5_run(struct th_self *self)
{
	unsigned long n = th_rounds(MESSAGES);
	struct th_stack s;

	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	if (self->rank == 0)
		p5_send(&s, n);
	else
		p5_recv(&s, self->rank, n);
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

static void contract_P5_many_paths(struct th_self *self)
{
	p5_run(self);
}

static void contract_P5_two_lines(struct th_self *self)
{
	setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	p5_run(self);
}

/*
 * A small send or inject behind queued ones does not take the place that has
 * just become free: the receiver drains one by one meanwhile.
 */
static void contract_P5_no_overtaking(struct th_self *self)
{
	enum { N = 3000 };
	struct fi_cq_tagged_entry e;
	struct th_stack a, b;
	uint64_t i, rx, next = 0;

	(void)self;
	setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	th_pair_open(&a, &b, NULL);
	th_trecv(&b, &rx, 8, 0, ~UINT64_C(0), &rx);
	for (i = 0; i < N; i++) {
		th_post(&a, fi_tinject(a.ep, &i, 8, a.peers[1], i));
		if (i % 7 == 0)
			fi_cq_read(a.txcq, NULL, 0);
		if (i % 3 == 0 && fi_cq_read(b.rxcq, &e, 1) == 1) {
			th_eq(rx, next++);
			th_trecv(&b, &rx, 8, 0, ~UINT64_C(0), &rx);
		}
	}
	while (next < N) {
		th_rx_ok(&b);
		th_eq(rx, next++);
		if (next < N)
			th_trecv(&b, &rx, 8, 0, ~UINT64_C(0), &rx);
	}
	th_pair_close(&a, &b);
}

static const struct CMUnitTest order_tests[] = {
	TH_CASE(case_T1_unmatched_large, 1, 10),
	TH_CASE(case_T26_stream, 2, 30),
	TH_CASE(case_T26_two_lines, 2, 30),
	TH_CASE(case_T26_self, 1, 30),
	TH_CASE(contract_P5_many_paths, NPEERS + 1, 30),
	TH_CASE(contract_P5_two_lines, NPEERS + 1, 30),
	TH_CASE(contract_P5_no_overtaking, 1, 10),
};

TH_MAIN(order_tests)
