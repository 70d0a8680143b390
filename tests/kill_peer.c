/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A peer is killed at a known point: what becomes of each operation that has to
 * do with it (contract P4).
 *
 * Limit: 300 s
 */
#include "env_probe.h"
#include "harness.h"
#include "kill_steps.h"
#include "raw_kit.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

/* ---- sends ------------------------------------------------------------ */

enum {
	NSMALL = 200, /* sends of 8 bytes: more than a lane has lines */
	NLINES = 64,  /* lines of a lane */
	NOPS = NSMALL + 5
};

/* A send and what became of it. */
struct op {
	size_t len;  /* bytes */
	int entries; /* completions seen */
	int err;     /* 0 or the code of its error entry */
};

static void ops_post(struct th_stack *s, struct op *ops, const void *buf)
{
	static const size_t big[] = { KIB, 20 * KIB, 64 * KIB, MIB, 8 * MIB };
	int i;

	for (i = 0; i < NOPS; i++) {
		ops[i] = (struct op){ .len = 8 };
		if (i >= NSMALL)
			ops[i].len = big[i - NSMALL];
		th_eq(fi_tsend(s->ep, buf, ops[i].len, NULL,
			       s->peers[KS_VICTIM], KS_TAG, &ops[i]),
		      0);
	}
}

/* Takes one entry of the transmit CQ, if there is one. */
static int op_take(struct th_stack *s)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	ssize_t ret = fi_cq_read(s->txcq, &e, 1);
	struct op *op = e.op_context;

	if (ret == -FI_EAGAIN)
		return 0;
	if (ret == -FI_EAVAIL) {
		th_eq(fi_cq_readerr(s->txcq, &err, 0), 1);
		op = err.op_context;
		op->err = err.err;
	} else {
		th_eq(ret, 1);
	}
	op->entries++;
	return 1;
}

static void ops_finish(struct th_stack *s, int n)
{
	struct th_deadline dl = th_deadline_ms(KS_NOTICE_MS);

	while (n) {
		n -= op_take(s);
		th_progress(s);
		if (th_expired(&dl))
			th_fail(__FILE__, __LINE__,
				"%d sends without an entry after 5 s", n);
	}
}

/* All outstanding sends of every size end, each once. */
static void contract_P4_sends_outstanding(struct th_self *self)
{
	static struct op ops[NOPS];
	struct th_stack s;
	void *buf = calloc(1, 8 * MIB);
	int i;

	th_check(buf);
	ks_open_all(&s, self);
	if (self->rank != KS_VICTIM)
		ops_post(&s, ops, buf);
	ks_until_dead(self);
	ops_finish(&s, NOPS);
	th_quiet(&s, 100);
	for (i = 0; i < NOPS; i++) {
		th_eq(ops[i].entries, 1);
		/* what was published into the peer's memory had completed */
		if (i < NLINES / 2)
			th_eq(ops[i].err, 0);
		else if (i >= NLINES)
			th_eq(ops[i].err, FI_ECONNRESET);
	}
	th_stack_close(&s);
	free(buf);
}

static void send_each_call(struct th_stack *s, const void *buf, size_t len)
{
	fi_addr_t to = s->peers[KS_VICTIM];
	int ctx[4];

	th_eq(fi_send(s->ep, buf, len, NULL, to, &ctx[0]), 0);
	ks_reset_soon(s, s->txcq, &ctx[0]);
	th_eq(fi_senddata(s->ep, buf, len, NULL, 1, to, &ctx[1]), 0);
	ks_reset_soon(s, s->txcq, &ctx[1]);
	th_eq(fi_tsend(s->ep, buf, len, NULL, to, KS_TAG, &ctx[2]), 0);
	ks_reset_soon(s, s->txcq, &ctx[2]);
	th_eq(fi_tsenddata(s->ep, buf, len, NULL, 1, to, KS_TAG, &ctx[3]), 0);
	ks_reset_soon(s, s->txcq, &ctx[3]);
}

static void inject_each_call(struct th_stack *s, const void *buf, size_t len)
{
	fi_addr_t to = s->peers[KS_VICTIM];

	th_eq(fi_inject(s->ep, buf, len, to), -FI_ECONNRESET);
	th_eq(fi_injectdata(s->ep, buf, len, 1, to), -FI_ECONNRESET);
	th_eq(fi_tinject(s->ep, buf, len, to, KS_TAG), -FI_ECONNRESET);
	th_eq(fi_tinjectdata(s->ep, buf, len, 1, to, KS_TAG), -FI_ECONNRESET);
}

/* New sends to a dead peer, with contact before or without. */
static void sends_new(struct th_self *self, bool contact)
{
	static const size_t sizes[] = { 0, 8, KIB, 100 * KIB, MIB };
	struct th_stack s;
	void *buf = calloc(1, MIB);
	size_t i;

	th_check(buf);
	ks_open_all(&s, self);
	if (contact)
		ks_one_message(&s, self, 0, KS_VICTIM);
	ks_until_dead(self);
	ks_send_until_reset(&s, s.peers[KS_VICTIM]);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		send_each_call(&s, buf, sizes[i]);
	inject_each_call(&s, buf, 8);
	inject_each_call(&s, buf, 2 * KIB);
	th_quiet(&s, 50);
	th_stack_close(&s);
	free(buf);
}

static void contract_P4_sends_new(struct th_self *self)
{
	sends_new(self, true);
}

static void contract_P4_sends_first(struct th_self *self)
{
	sends_new(self, false);
}

/* ---- receives --------------------------------------------------------- */

enum { TO_VICTIM = 1, FROM_VICTIM = 2 };

static void recv_from(struct th_stack *s, void *buf, fi_addr_t src, int *ctx)
{
	th_eq(fi_recv(s->ep, buf, 8, NULL, src, ctx), 0);
}

static void trecv_from(struct th_stack *s, void *buf, fi_addr_t src,
		       uint64_t tag, int *ctx)
{
	th_eq(fi_trecv(s->ep, buf, 8, NULL, src, tag, 0, ctx), 0);
}

/* The receives @ctx[0] to @ctx[n - 1] end in any order, each once. */
static void resets_soon(struct th_stack *s, int *ctx, int n)
{
	struct fi_cq_err_entry err;
	int i, *which;

	for (i = 0; i < n; i++)
		ctx[i] = 0;
	for (i = 0; i < n; i++) {
		err = ks_error_soon(s, s->rxcq);
		th_eq(err.err, FI_ECONNRESET);
		which = err.op_context;
		th_check(which >= ctx && which < ctx + n);
		th_eq((*which)++, 0);
	}
}

/* What rank 2 does: sends what the receives from any source wait for. */
static void feed_any(struct th_stack *s)
{
	char buf[8];

	th_fill(buf, sizeof(buf), 2);
	th_tsend(s, s->peers[0], buf, sizeof(buf), 9, NULL);
	th_send(s, s->peers[0], buf, sizeof(buf), NULL);
	th_tx_ok(s);
	th_tx_ok(s);
}

/* Two receives from any source have stayed and are served. */
static void any_served(struct th_stack *s, char (*buf)[8], int *ctx)
{
	struct fi_cq_tagged_entry e[2] = { th_rx_ok(s), th_rx_ok(s) };
	int i;

	for (i = 0; i < 2; i++) {
		th_check(e[i].op_context == &ctx[0] ||
			 e[i].op_context == &ctx[1]);
		th_verify(buf[i], 8, 2);
	}
	th_check(e[0].op_context != e[1].op_context);
}

static void receives_survivor(struct th_stack *s, struct th_self *self)
{
	fi_addr_t dead = s->peers[KS_VICTIM];
	char buf[5][8];
	int gone[3], any[2];

	trecv_from(s, buf[0], dead, 1, &gone[0]);
	trecv_from(s, buf[1], dead, 2, &gone[1]);
	recv_from(s, buf[2], dead, &gone[2]);
	trecv_from(s, buf[3], FI_ADDR_UNSPEC, 9, &any[0]);
	recv_from(s, buf[4], FI_ADDR_UNSPEC, &any[1]);
	ks_until_dead(self);
	resets_soon(s, gone, 3);
	trecv_from(s, buf[0], dead, 1, &gone[0]);
	recv_from(s, buf[2], dead, &gone[1]);
	resets_soon(s, gone, 2);
	th_quiet(s, 200);
	th_barrier_progress(self, s, "feed");
	any_served(s, &buf[3], any);
}

static void receives(struct th_self *self, int contact)
{
	struct th_stack s;

	ks_open_all(&s, self);
	if (contact & TO_VICTIM)
		ks_one_message(&s, self, 0, KS_VICTIM);
	if (contact & FROM_VICTIM)
		ks_one_message(&s, self, KS_VICTIM, 0);
	if (self->rank == 0) {
		receives_survivor(&s, self);
	} else {
		ks_until_dead(self);
		th_barrier(self, "feed");
		feed_any(&s);
	}
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

static void contract_P4_receives_no_contact(struct th_self *self)
{
	receives(self, 0);
}

static void contract_P4_receives_sent(struct th_self *self)
{
	receives(self, TO_VICTIM);
}

static void contract_P4_receives_received(struct th_self *self)
{
	receives(self, FROM_VICTIM);
}

static void contract_P4_receives_both(struct th_self *self)
{
	receives(self, TO_VICTIM | FROM_VICTIM);
}

static void post_multi(struct th_stack *s, struct th_buf *buf)
{
	struct iovec iov = { buf->p, buf->len };
	struct fi_msg m = { .msg_iov = &iov,
			    .iov_count = 1,
			    .addr = s->peers[KS_VICTIM],
			    .context = buf };

	th_eq(fi_recvmsg(s->ep, &m, FI_MULTI_RECV), 0);
}

static void multi_ends(struct th_stack *s, struct th_buf *buf)
{
	struct fi_cq_err_entry err = ks_error_soon(s, s->rxcq);

	th_eq(err.err, FI_ECONNRESET);
	th_check(err.flags & FI_MULTI_RECV);
	th_ptr_eq(err.op_context, buf);
	th_quiet(s, 50);
}

/* Buffers for many messages that name the victim, posted before and after. */
static void contract_P4_multi_receives(struct th_self *self)
{
	const struct th_stack_opts o = { .caps = FI_MSG | FI_MULTI_RECV |
						 FI_DIRECTED_RECV };
	struct th_buf buf[2] = { th_buf_new(KIB), th_buf_new(KIB) };
	struct th_stack s;

	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	if (self->rank == 0)
		post_multi(&s, &buf[0]);
	ks_until_dead(self);
	multi_ends(&s, &buf[0]);
	post_multi(&s, &buf[1]);
	multi_ends(&s, &buf[1]);
	th_stack_close(&s);
	th_buf_free(&buf[0]);
	th_buf_free(&buf[1]);
}

/* A message of the victim's lies in its lane when the buffer is posted. */
static void contract_P4_multi_delivered(struct th_self *self)
{
	const struct th_stack_opts o = { .caps = FI_MSG | FI_MULTI_RECV |
						 FI_DIRECTED_RECV };
	struct th_buf buf = th_buf_new(KIB);
	struct fi_cq_tagged_entry e;
	struct th_stack s;

	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	if (self->rank == KS_VICTIM)
		th_send(&s, s.peers[0], "message!", 8, NULL);
	ks_until_dead(self);
	post_multi(&s, &buf);
	e = th_rx_ok(&s);
	th_eq(e.len, 8);
	th_check(!(e.flags & FI_MULTI_RECV) && !memcmp(e.buf, "message!", 8));
	multi_ends(&s, &buf);
	th_stack_close(&s);
	th_buf_free(&buf);
}

/* ---- what had arrived is delivered ------------------------------------ */

enum when { BEFORE, AFTER };

/* Receives for @n messages of @max bytes, and one more. */
static void post_many(struct th_stack *s, char *buf, size_t max, int n,
		      fi_addr_t src)
{
	int i;

	for (i = 0; i <= n; i++)
		th_eq(fi_trecv(s->ep, buf + (size_t)i * max, max, NULL, src,
			       KS_TAG, 0, NULL),
		      0);
}

static void victim_sends(struct th_stack *s, const size_t *len, int n)
{
	static char buf[64 * KIB];
	int i;

	for (i = 0; i < n; i++) {
		th_fill(buf, len[i], (uint64_t)i);
		th_tsend(s, s->peers[0], buf, len[i], KS_TAG, NULL);
		th_tx_ok(s);
	}
}

/*
 * Messages of lengths @len that had been sent before the death arrive, into
 * receives posted before or after it; then the receives are at their end.
 */
static void delivered(struct th_stack *s, struct th_self *self,
		      const size_t *len, int n, enum when when)
{
	size_t max = 64 * KIB;
	char *buf = calloc((size_t)n + 1, max);
	fi_addr_t from = s->peers[KS_VICTIM];
	int i;

	th_check(buf);
	if (self->rank == KS_VICTIM)
		victim_sends(s, len, n);
	else if (when == BEFORE)
		post_many(s, buf, max, n, from);
	ks_until_dead(self);
	if (when == AFTER)
		post_many(s, buf, max, n, from);
	for (i = 0; i < n; i++)
		ks_expect_message(s, buf + (size_t)i * max, len[i],
				  (uint64_t)i);
	th_eq(ks_error_soon(s, s->rxcq).err, FI_ECONNRESET);
	th_eq(probe_stats(&s->fabric->fid).dropped_msgs, 0);
	free(buf);
}

static void small_delivered(struct th_self *self, enum when when)
{
	size_t len[30];
	struct th_stack s;
	int i;

	for (i = 0; i < 30; i++)
		len[i] = i < 20 ? (size_t)i * 2 : (size_t)i * 32;
	ks_open_all(&s, self);
	delivered(&s, self, len, 30, when);
	th_stack_close(&s);
}

static void contract_P4_small_delivered_posted(struct th_self *self)
{
	small_delivered(self, BEFORE);
}

static void contract_P4_small_delivered_late(struct th_self *self)
{
	small_delivered(self, AFTER);
}

/* The survivor has mapped the victim's pool: what lies there arrives. */
static void contract_P4_mapped_delivered(struct th_self *self)
{
	static const size_t len[] = { 5000, 8192, 32 * KIB };
	static char buf[32 * KIB];
	struct th_stack s;

	ks_open_all(&s, self);
	if (self->rank == KS_VICTIM) {
		th_fill(buf, sizeof(buf), 7);
		th_tsend(&s, s.peers[0], buf, sizeof(buf), KS_TAG, NULL);
		th_tx_ok(&s);
	} else {
		th_trecv(&s, buf, sizeof(buf), KS_TAG, 0, NULL);
		ks_expect_message(&s, buf, sizeof(buf), 7);
	}
	th_barrier_progress(self, &s, "mapped");
	delivered(&s, self, len, 3, AFTER);
	th_stack_close(&s);
}

/* ---- what had not arrived is dropped and counted ---------------------- */

/* Any-source receives still work afterwards; for three processes. */
static void any_still_works(struct th_stack *s, struct th_self *self)
{
	char buf[8];

	th_barrier_progress(self, s, "other");
	if (self->rank == KS_OTHER) {
		th_fill(buf, sizeof(buf), 3);
		th_tsend(s, s->peers[0], buf, sizeof(buf), KS_TAG, NULL);
		th_tx_ok(s);
	}
	th_barrier_progress(self, s, "end");
}

/* Payload in a pool that was never mapped is lost with its sender. */
static void contract_P4_unmapped_dropped(struct th_self *self)
{
	static char buf[2][32 * KIB];
	struct th_stack s;

	ks_open_all(&s, self);
	if (self->rank == KS_VICTIM) {
		th_tsend(&s, s.peers[0], buf[0], sizeof(buf[0]), KS_TAG, NULL);
		th_tsend(&s, s.peers[0], buf[1], sizeof(buf[1]), KS_TAG, NULL);
	}
	if (self->rank == 0)
		th_trecv(&s, buf[0], sizeof(buf[0]), KS_TAG, 0, NULL);
	ks_until_dead(self);
	if (self->rank == 0) {
		ks_dropped_soon(&s, 2);
		th_quiet(&s, 200);
	}
	any_still_works(&s, self);
	if (self->rank == 0)
		ks_expect_message(&s, buf[0], 8, 3);
	th_stack_close(&s);
}

/* A peek at @tag with @flags; true if there is such a message. */
static bool peek(struct th_stack *s, uint64_t tag, uint64_t flags, void *ctx)
{
	struct fi_msg_tagged m = { .addr = FI_ADDR_UNSPEC,
				   .tag = tag,
				   .context = ctx };
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;

	th_eq(fi_trecvmsg(s->ep, &m, FI_PEEK | flags), 0);
	if (th_cq_next(s, s->rxcq, &e, &err) == 1)
		return true;
	th_eq(err.err, FI_ENOMSG);
	return false;
}

static void peek_until(struct th_stack *s, bool there)
{
	struct th_deadline dl = th_deadline_ms(KS_NOTICE_MS);

	while (peek(s, KS_TAG, 0, NULL) != there) {
		th_progress(s);
		if (th_expired(&dl))
			th_fail(__FILE__, __LINE__, "message %s after 5 s",
				there ? "not found" : "still found");
	}
}

/* The victim offers one large message, which stays in its memory. */
static void offer_held(struct th_stack *s, struct th_self *self)
{
	if (self->rank == KS_VICTIM)
		th_tsend(s, s->peers[0], calloc(1, 4 * MIB), 4 * MIB, KS_TAG,
			 NULL);
	th_barrier(self, "offered");
}

static void contract_P4_held_dropped(struct th_self *self)
{
	struct th_stack s;
	char buf[8];

	ks_open_all(&s, self);
	offer_held(&s, self);
	if (self->rank == 0)
		peek_until(&s, true);
	ks_until_dead(self);
	if (self->rank == 0) {
		peek_until(&s, false);
		ks_dropped_soon(&s, 1);
		th_trecv(&s, buf, sizeof(buf), KS_TAG, 0, NULL);
	}
	any_still_works(&s, self);
	if (self->rank == 0)
		ks_expect_message(&s, buf, sizeof(buf), 3);
	th_stack_close(&s);
}

static void claim_recv(struct th_stack *s, void *buf, void *ctx)
{
	struct iovec iov = { buf, 4 * MIB };
	struct fi_msg_tagged m = { .msg_iov = &iov,
				   .iov_count = 1,
				   .addr = FI_ADDR_UNSPEC,
				   .tag = KS_TAG,
				   .context = ctx };

	th_eq(fi_trecvmsg(s->ep, &m, FI_CLAIM), 0);
	ks_reset_soon(s, s->rxcq, ctx);
}

/* A message is claimed, then its sender dies, noticed or not. */
static void claimed(struct th_self *self, bool noticed)
{
	struct fi_context ctx;
	void *buf = calloc(1, 4 * MIB);
	struct th_stack s;

	th_check(buf);
	ks_open_all(&s, self);
	offer_held(&s, self);
	if (self->rank == 0) {
		peek_until(&s, true);
		th_check(peek(&s, KS_TAG, FI_CLAIM, &ctx));
	}
	ks_until_dead(self);
	if (noticed)
		th_quiet(&s, 1000);
	claim_recv(&s, buf, &ctx);
	th_stack_close(&s);
	free(buf);
}

static void contract_P4_claimed_noticed(struct th_self *self)
{
	claimed(self, true);
}

static void contract_P4_claimed_unnoticed(struct th_self *self)
{
	claimed(self, false);
}

/* The first piece of a message, and no more: what dies between the two does. */
static void first_piece(struct th_stack *s, const char *owner)
{
	struct rnic_desc d = { .ext = { .total = 3 * RNIC_POOL_SMALL,
					.chunk_len = RNIC_POOL_SMALL } };
	struct raw_lane r;

	rnic_store64_relaxed(&d.tag, KS_TAG);
	raw_open(&r, s->addr, owner);
	raw_put(&r, &d, RNIC_DESC_FIRST, RNIC_DESC_TAGGED);
}

/* A claimed message of which the rest never comes. */
static void contract_P4_claimed_part(struct th_self *self)
{
	char all[2 * TH_MAX_ADDR];
	struct fi_context ctx;
	struct th_stack s;
	void *buf = calloc(1, 4 * MIB);

	th_check(buf);
	ks_open_all(&s, self);
	th_gather(self, "names", s.addr, all, s.addrlen);
	if (self->rank == KS_VICTIM)
		first_piece(&s, all);
	th_barrier(self, "offered");
	if (self->rank == 0) {
		peek_until(&s, true);
		th_check(peek(&s, KS_TAG, FI_CLAIM, &ctx));
	}
	ks_until_dead(self);
	ks_dropped_soon(&s, 1);
	claim_recv(&s, buf, &ctx);
	th_stack_close(&s);
	free(buf);
}

/* ---- the heap of the dead --------------------------------------------- */

enum { HEAPED = 100, BUDGET = 64 * KIB };

static uint64_t pooled(struct th_stack *s)
{
	return probe_stats(&s->fabric->fid).rx.msgs[FI_SHRIMP_PATH_POOL];
}

/* The survivor has more than it wants: what is injected now takes the heap. */
static void over_budget(struct th_stack *s, struct th_self *self)
{
	static char buf[BUDGET];
	int i;

	for (i = 0; i < 3 && self->rank == KS_VICTIM; i++) {
		th_tsend(s, s->peers[0], buf, sizeof(buf) / 2, 1, NULL);
		th_tx_ok(s);
	}
	while (self->rank == 0 && pooled(s) < 3)
		th_progress(s);
	th_barrier_progress(self, s, "over");
}

static void inject(struct th_stack *s, uint64_t tag)
{
	char buf[HEAPED];

	th_fill(buf, sizeof(buf), tag);
	th_ok(fi_tinject(s->ep, buf, sizeof(buf), s->peers[0], tag));
	th_check(probe_stats(&s->fabric->fid).tx.msgs[FI_SHRIMP_PATH_HEAP]);
}

static void recv_heaped(struct th_stack *s, uint64_t tag)
{
	char buf[HEAPED] = { 0 };

	th_trecv(s, buf, sizeof(buf), tag, 0, NULL);
	th_eq(th_rx_ok(s).len, sizeof(buf));
	th_verify(buf, sizeof(buf), tag);
}

/* The survivor has mapped the victim's heap: what lies there arrives. */
static void contract_P4_heap_delivered(struct th_self *self)
{
	struct th_stack s;

	setenv("FI_SHRIMP_UNEXPECTED", "64k", 1);
	ks_open_all(&s, self);
	over_budget(&s, self);
	if (self->rank == KS_VICTIM)
		inject(&s, 2);
	else
		recv_heaped(&s, 2);
	th_barrier_progress(self, &s, "mapped");
	if (self->rank == KS_VICTIM)
		inject(&s, KS_TAG);
	th_barrier(self, "injected");
	if (self->rank == 0)
		peek_until(&s, true);
	ks_until_dead(self);
	th_quiet(&s, 1000);
	th_check(peek(&s, KS_TAG, 0, NULL));
	recv_heaped(&s, KS_TAG);
	th_eq(probe_stats(&s.fabric->fid).dropped_msgs, 0);
	th_stack_close(&s);
}

/* ---- what came in part ------------------------------------------------ */

/* Keeps sending until told to die. */
static void victim_streams(struct th_stack *s, size_t len)
{
	char *buf = malloc(len);

	th_check(buf);
	memset(buf, 0x11, len);
	th_tsend(s, s->peers[0], buf, len, KS_TAG, NULL);
	while (!atomic_load(&ks_shared->go))
		th_progress(s);
	ks_die();
}

/* A large message under way when its sender dies. */
static void contract_P4_partly_pulled(struct th_self *self)
{
	size_t len = 256 * (size_t)MIB;
	struct th_stack s;
	char *buf;
	int ctx;

	ks_open_all(&s, self);
	if (self->rank == KS_VICTIM)
		victim_streams(&s, len);
	buf = calloc(1, len);
	th_check(buf);
	th_trecv(&s, buf, len, KS_TAG, 0, &ctx);
	while (!buf[0])
		th_progress(&s);
	atomic_store(&ks_shared->go, 1);
	th_barrier(self, "dead");
	ks_reset_soon(&s, s.rxcq, &ctx);
	th_check(!buf[len - 1]);
	th_stack_close(&s);
	free(buf);
}

/* The victim sends a message of many lines into a lane that has two. */
static void two_lines(struct th_stack *s, struct th_self *self)
{
	setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	ks_open_all(s, self);
	if (self->rank == KS_VICTIM)
		th_tsend(s, s->peers[0], calloc(1, 64 * KIB), 64 * KIB, KS_TAG,
			 NULL);
	th_barrier(self, "sent");
}

/* Some chunks of a matched message came, the rest never will. */
static void contract_P4_chunks_matched(struct th_self *self)
{
	static char buf[64 * KIB];
	struct th_stack s;
	int ctx;

	two_lines(&s, self);
	if (self->rank == 0) {
		th_trecv(&s, buf, sizeof(buf), KS_TAG, 0, &ctx);
		th_quiet(&s, 100);
	}
	ks_until_dead(self);
	ks_reset_soon(&s, s.rxcq, &ctx);
	th_stack_close(&s);
}

/* As before, unmatched: the message leaves the queue and is counted. */
static void contract_P4_chunks_unmatched(struct th_self *self)
{
	struct th_stack s;

	two_lines(&s, self);
	if (self->rank == 0)
		th_quiet(&s, 100);
	ks_until_dead(self);
	ks_dropped_soon(&s, 1);
	th_check(!peek(&s, KS_TAG, 0, NULL));
	th_stack_close(&s);
}
static const struct CMUnitTest kill_peer[] = {
	KS_CASE(contract_P4_sends_outstanding, 2),
	KS_CASE(contract_P4_sends_new, 2),
	KS_CASE(contract_P4_sends_first, 2),
	KS_CASE(contract_P4_receives_no_contact, 3),
	KS_CASE(contract_P4_receives_sent, 3),
	KS_CASE(contract_P4_receives_received, 3),
	KS_CASE(contract_P4_receives_both, 3),
	KS_CASE(contract_P4_multi_receives, 2),
	KS_CASE(contract_P4_multi_delivered, 2),
	KS_CASE(contract_P4_small_delivered_posted, 2),
	KS_CASE(contract_P4_small_delivered_late, 2),
	KS_CASE(contract_P4_mapped_delivered, 2),
	KS_CASE(contract_P4_unmapped_dropped, 3),
	KS_CASE(contract_P4_held_dropped, 3),
	KS_CASE(contract_P4_claimed_noticed, 2),
	KS_CASE(contract_P4_claimed_unnoticed, 2),
	KS_CASE(contract_P4_claimed_part, 2),
	KS_CASE(contract_P4_heap_delivered, 2),
	KS_CASE(contract_P4_partly_pulled, 2),
	KS_CASE(contract_P4_chunks_matched, 2),
	KS_CASE(contract_P4_chunks_unmatched, 2),
};

int main(int argc, char **argv)
{
	ks_init();
	return th_main(argc, argv, "kill_peer", kill_peer,
		       sizeof(kill_peer) / sizeof(kill_peer[0]));
}
