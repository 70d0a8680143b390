/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Small messages and plain receives take short ways through the library.
 * Whatever lies between them and the long ones (sizes, calls, kinds of
 * receives, late receives, full rings, short arrays) must not be seen: each
 * byte and each field of the completions is checked.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <sys/uio.h>

enum {
	PER = 32,	 /* tagged messages of a sender in a batch */
	UNTAGGED = 8,	 /* others; they are in between */
	SENDERS = 2,	 /* ranks 1 and 2 */
	LONGEST = 65537, /* bytes */
	ULONGEST = 2048, /* bytes of an untagged one */
	MAX_READ = 16	 /* entries of a read */
};

/* Both sides of each limit: descriptor, byte ring, chunks, held. */
static const size_t edges[] = { 0,    1,    39,	  40,	41,    64,   1023,
				1024, 1025, 2048, 8192, 65536, 65537 };
enum { NEDGES = sizeof(edges) / sizeof(edges[0]) };

static const size_t counts[] = { 1, 2, MAX_READ };

/* ---- a message is made from its tag -------------------------------------- */

static uint64_t tag_of(unsigned long batch, int from, int i)
{
	return (uint64_t)batch << 24 | (uint64_t)from << 16 | (uint64_t)i;
}

static int from_of(uint64_t tag)
{
	return (int)(tag >> 16 & 0xff);
}

static uint64_t mix(uint64_t tag, uint64_t salt)
{
	uint64_t state = tag * 31 + salt;

	return th_random(&state);
}

static size_t len_of(uint64_t tag)
{
	uint64_t r = mix(tag, 1);

	return r % 4 ? edges[r / 4 % NEDGES] : r / 4 % 1100;
}

enum call { INJECT, DATA, DELIVERY, MESSAGE, PLAIN };

static enum call call_of(uint64_t tag)
{
	enum call c = (enum call)(mix(tag, 2) % 5);

	return c == INJECT && len_of(tag) > 4096 ? PLAIN : c;
}

static bool has_data(uint64_t tag)
{
	return call_of(tag) == DATA || call_of(tag) == MESSAGE;
}

static ssize_t send_msg(struct th_stack *s, uint64_t tag, void *p, size_t len,
			void *ctx)
{
	struct iovec iov[2] = { { p, len }, { NULL, 0 } };
	struct fi_msg_tagged m = { .msg_iov = iov,
				   .iov_count = 1,
				   .addr = s->peers[0],
				   .tag = tag,
				   .context = ctx,
				   .data = ~tag };

	if (call_of(tag) == MESSAGE)
		return fi_tsendmsg(s->ep, &m,
				   FI_REMOTE_CQ_DATA | FI_COMPLETION |
					   (len <= 4096 ? FI_INJECT : 0));
	m.iov_count = 2;
	iov[0].iov_len = len / 2;
	iov[1].iov_base = (char *)p + len / 2;
	iov[1].iov_len = len - len / 2;
	return fi_tsendmsg(s->ep, &m, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

static ssize_t send_one(struct th_stack *s, uint64_t tag, void *p, void *ctx)
{
	size_t len = len_of(tag);
	fi_addr_t to = s->peers[0];

	switch (call_of(tag)) {
	case INJECT:
		return fi_tinject(s->ep, p, len, to, tag);
	case DATA:
		return fi_tsenddata(s->ep, p, len, NULL, ~tag, to, tag, ctx);
	case PLAIN:
		return fi_tsend(s->ep, p, len, NULL, to, tag, ctx);
	default:
		return send_msg(s, tag, p, len, ctx);
	}
}

/* An untagged one has its tag in its first bytes. */
static size_t ulen_of(uint64_t tag)
{
	static const size_t list[] = {
		8, 39, 40, 41, 64, 1023, 1024, ULONGEST
	};

	return list[mix(tag, 3) % 8];
}

static void ufill(unsigned char *p, uint64_t tag)
{
	memcpy(p, &tag, 8);
	th_fill_at(p + 8, ulen_of(tag) - 8, tag, 8);
}

/* ---- the senders ------------------------------------------------------------ */

struct sender {
	struct th_stack *s;    /* its stack */
	unsigned char *buf;    /* PER buffers of LONGEST bytes */
	unsigned char *ubuf;   /* UNTAGGED of ULONGEST */
	int ctx[PER];	       /* contexts: entries awaited */
	int uctx[UNTAGGED];    /* likewise */
	unsigned long entries; /* awaited in this batch */
	unsigned long calls;   /* of all batches */
};

static void send_untagged(struct sender *t, unsigned long batch, int from,
			  int i)
{
	uint64_t tag = tag_of(batch, from, i);
	unsigned char *p = t->ubuf + (size_t)i * ULONGEST;
	struct th_stack *s = t->s;

	ufill(p, tag);
	t->calls++;
	if (i % 2) {
		th_post(s, fi_inject(s->ep, p, ulen_of(tag), s->peers[0]));
		memset(p, 0xdd, ULONGEST);
		return;
	}
	t->uctx[i] = 1;
	t->entries++;
	th_send(s, s->peers[0], p, ulen_of(tag), &t->uctx[i]);
}

static void send_tagged(struct sender *t, unsigned long batch, int from, int i)
{
	uint64_t tag = tag_of(batch, from, i);
	unsigned char *p = t->buf + (size_t)i * LONGEST;

	th_fill(p, len_of(tag), tag);
	t->ctx[i] = call_of(tag) != INJECT;
	t->entries += (unsigned long)t->ctx[i];
	t->calls++;
	th_post(t->s, send_one(t->s, tag, p, &t->ctx[i]));
	if (call_of(tag) == INJECT)
		memset(p, 0xdd, len_of(tag));
}

static void take_sent(struct sender *t)
{
	struct fi_cq_tagged_entry e = th_tx_ok(t->s);
	int *ctx = e.op_context;
	bool tagged = ctx >= t->ctx && ctx < t->ctx + PER;

	th_check(tagged || (ctx >= t->uctx && ctx < t->uctx + UNTAGGED));
	th_eq(e.flags, FI_SEND | (tagged ? FI_TAGGED : FI_MSG));
	th_eq(*ctx, 1);
	*ctx = 0;
}

static void sender_batch(struct th_self *self, struct sender *t,
			 unsigned long batch)
{
	th_barrier_progress(self, t->s, "posted");
	for (int i = 0; i < PER; i++) {
		send_tagged(t, batch, self->rank, i);
		if (i % 4 == 3)
			send_untagged(t, batch, self->rank, i / 4);
	}
	th_barrier_progress(self, t->s, "sent");
	for (; t->entries; t->entries--)
		take_sent(t);
	th_barrier_progress(self, t->s, "done");
}

/* ---- the receiver ----------------------------------------------------------- */

enum mode { EXACT, REVERSE, ANY_SOURCE, ANY_TAG, ANY_BOTH, MODES };
enum when { BEFORE, AFTER, HALF, WHENS };

/* A receive. */
struct slot {
	uint64_t tag;	   /* asked for */
	uint64_t ignore;   /* its bits that do not count */
	fi_addr_t src;	   /* or FI_ADDR_UNSPEC */
	uint64_t got;	   /* tag of its message, once it is done */
	bool done;	   /* its entry was seen */
	struct th_buf buf; /* where to */
};

struct receiver {
	struct th_stack *s;		   /* its stack */
	struct slot slot[SENDERS * PER];   /* in the order of posting */
	struct slot u[SENDERS * UNTAGGED]; /* likewise, untagged */
	struct th_buf multi;		   /* instead of u in some batches */
	bool use_multi;			   /* in this one */
	bool released;			   /* FI_MULTI_RECV was seen */
	unsigned char *last[SENDERS + 1];  /* in multi, by sender */
	unsigned long left;		   /* entries to come in the batch */
	unsigned long total;		   /* entries seen */
};

static void slot_init(struct receiver *r, struct slot *sl, unsigned long batch,
		      enum mode mode, int k)
{
	int from = 1 + k % SENDERS, i = k / SENDERS;

	if (mode == REVERSE)
		i = PER - 1 - i;
	*sl = (struct slot){ .tag = tag_of(batch, from, i),
			     .src = r->s->peers[from],
			     .buf = th_buf_new(LONGEST) };
	if (mode == ANY_SOURCE || mode == ANY_BOTH)
		sl->src = FI_ADDR_UNSPEC;
	if (mode == ANY_TAG)
		sl->ignore = 0xffff;
	if (mode == ANY_BOTH)
		sl->ignore = 0xffffff;
}

static ssize_t post_one(struct fid_ep *ep, struct slot *sl, int kind)
{
	size_t n = sl->buf.len;
	struct iovec iov[3] = { { sl->buf.p, 20 },
				{ sl->buf.p + 20, 0 },
				{ sl->buf.p + 20, n - 20 } };
	struct fi_msg_tagged m = { .msg_iov = iov,
				   .iov_count = 1,
				   .addr = sl->src,
				   .tag = sl->tag,
				   .ignore = sl->ignore,
				   .context = sl };

	if (kind == 0)
		return fi_trecv(ep, sl->buf.p, n, NULL, sl->src, sl->tag,
				sl->ignore, sl);
	if (kind == 1)
		return fi_trecvv(ep, iov, NULL, 3, sl->src, sl->tag, sl->ignore,
				 sl);
	iov[0].iov_len = n;
	return fi_trecvmsg(ep, &m, FI_COMPLETION);
}

static void post_tagged(struct receiver *r, int from, int to)
{
	for (int k = from; k < to; k++)
		th_eq(post_one(r->s->ep, &r->slot[k], k % 3), 0);
}

/* One buffer that the last message uses up, or one for each. */
static void post_untagged(struct receiver *r, unsigned long batch)
{
	size_t len = 0;
	struct iovec iov;
	struct fi_msg m = { .msg_iov = &iov,
			    .iov_count = 1,
			    .addr = FI_ADDR_UNSPEC,
			    .context = &r->multi };

	for (int k = 0; k < SENDERS * UNTAGGED; k++) {
		len += ulen_of(tag_of(batch, 1 + k % SENDERS, k / SENDERS));
		r->u[k] = (struct slot){ .buf = th_buf_new(ULONGEST) };
		if (!r->use_multi)
			th_recv(r->s, r->u[k].buf.p, ULONGEST, &r->u[k]);
	}
	r->multi = th_buf_new(len);
	iov = (struct iovec){ r->multi.p, len };
	if (r->use_multi)
		th_eq(fi_recvmsg(r->s->ep, &m, FI_MULTI_RECV), 0);
}

static void check_tagged(struct receiver *r, const struct fi_cq_tagged_entry *e,
			 fi_addr_t src)
{
	struct slot *sl = e->op_context;

	th_check(sl >= r->slot && sl < r->slot + SENDERS * PER && !sl->done);
	sl->done = true;
	sl->got = e->tag;
	th_eq((e->tag ^ sl->tag) & ~sl->ignore, 0);
	th_eq(e->flags,
	      FI_RECV | FI_TAGGED | (has_data(e->tag) ? FI_REMOTE_CQ_DATA : 0));
	th_eq(e->len, len_of(e->tag));
	th_ptr_eq(e->buf, sl->buf.p);
	if (has_data(e->tag))
		th_eq(e->data, ~e->tag);
	th_eq(src, r->s->peers[from_of(e->tag)]);
	th_verify(sl->buf.p, e->len, e->tag);
	th_verify_byte(sl->buf.p + e->len, LONGEST - e->len, 0xee);
}

/* The place of an untagged message: in the multi-receive, or its own. */
static void check_place(struct receiver *r, const struct fi_cq_tagged_entry *e,
			uint64_t tag)
{
	struct slot *sl = e->op_context;

	if (r->use_multi) {
		th_ptr_eq(e->op_context, &r->multi);
		th_check((unsigned char *)e->buf > r->last[from_of(tag)]);
		r->last[from_of(tag)] = e->buf;
		th_check(!r->released);
		r->released = e->flags & FI_MULTI_RECV;
		return;
	}
	th_check(sl >= r->u && sl < r->u + SENDERS * UNTAGGED && !sl->done);
	sl->done = true;
	sl->got = tag;
	th_ptr_eq(e->buf, sl->buf.p);
	th_eq(e->flags, FI_RECV | FI_MSG);
}

static void check_untagged(struct receiver *r,
			   const struct fi_cq_tagged_entry *e, fi_addr_t src)
{
	uint64_t tag;

	th_eq(e->flags & ~FI_MULTI_RECV, FI_RECV | FI_MSG);
	th_check(e->len >= 8);
	memcpy(&tag, e->buf, 8);
	th_check(from_of(tag) >= 1 && from_of(tag) <= SENDERS);
	check_place(r, e, tag);
	th_eq(e->len, ulen_of(tag));
	th_eq(src, r->s->peers[from_of(tag)]);
	th_verify_at((unsigned char *)e->buf + 8, e->len - 8, tag, 8);
}

static void read_all(struct receiver *r, size_t count)
{
	struct th_deadline dl = th_patience();
	struct fi_cq_tagged_entry e[MAX_READ];
	fi_addr_t src[MAX_READ];

	while (r->left) {
		ssize_t n = fi_cq_readfrom(r->s->rxcq, e, count, src);

		if (n == -FI_EAGAIN) {
			th_check(!th_expired(&dl));
			continue;
		}
		th_check(n > 0 && (size_t)n <= count);
		for (ssize_t i = 0; i < n; i++) {
			if (e[i].flags & FI_TAGGED)
				check_tagged(r, &e[i], src[i]);
			else
				check_untagged(r, &e[i], src[i]);
		}
		r->left -= (unsigned long)n;
		r->total += (unsigned long)n;
	}
}

/* Of a sender the older message got the older receive of those that fit. */
static void check_order(struct slot *sl, int n)
{
	uint64_t last[SENDERS + 1] = { 0 };

	for (int k = 0; k < n; k++) {
		int from = from_of(sl[k].got);

		th_check(sl[k].done);
		th_check(!last[from] || sl[k].got > last[from]);
		last[from] = sl[k].got;
	}
}

static void check_batch(struct receiver *r, enum mode mode)
{
	if (mode != REVERSE)
		check_order(r->slot, SENDERS * PER);
	if (r->use_multi)
		th_check(r->released);
	else
		check_order(r->u, SENDERS * UNTAGGED);
	for (int k = 0; k < SENDERS * PER; k++)
		th_buf_free(&r->slot[k].buf);
	for (int k = 0; k < SENDERS * UNTAGGED; k++)
		th_buf_free(&r->u[k].buf);
	th_buf_free(&r->multi);
}

static void receiver_batch(struct th_self *self, struct receiver *r,
			   unsigned long batch)
{
	enum mode mode = (enum mode)(batch % MODES);
	enum when when = (enum when)(batch / MODES % WHENS);
	int n = SENDERS * PER, early = when == BEFORE ? n : 0;

	if (when == HALF)
		early = n / 2;
	r->use_multi = batch % 2;
	r->released = false;
	memset(r->last, 0, sizeof(r->last));
	for (int k = 0; k < n; k++)
		slot_init(r, &r->slot[k], batch, mode, k);
	post_tagged(r, 0, early);
	if (early)
		post_untagged(r, batch);
	th_barrier_progress(self, r->s, "posted");
	th_barrier_progress(self, r->s, "sent");
	post_tagged(r, early, n);
	if (!early)
		post_untagged(r, batch);
	r->left = SENDERS * (PER + UNTAGGED);
	read_all(r, counts[(batch + batch / MODES) % 3]);
	check_batch(r, mode);
	th_barrier_progress(self, r->s, "done");
}

/* ---- many batches ------------------------------------------------------------- */

static unsigned long batches(void)
{
	return MODES * WHENS * (th_rounds(20) + 1);
}

static void run_sender(struct th_self *self, struct th_stack *s)
{
	struct sender *t = calloc(1, sizeof(*t));

	th_check(t);
	t->s = s;
	t->buf = malloc((size_t)PER * LONGEST);
	t->ubuf = malloc((size_t)UNTAGGED * ULONGEST);
	th_check(t->buf && t->ubuf);
	for (unsigned long b = 0; b < batches(); b++)
		sender_batch(self, t, b);
	if (s->txcntr)
		th_cntr_reach(s, s->txcntr, t->calls);
	if (s->txcntr)
		th_eq(fi_cntr_read(s->txcntr), t->calls);
	free(t->buf);
	free(t->ubuf);
	free(t);
}

static void run_receiver(struct th_self *self, struct th_stack *s)
{
	struct receiver *r = calloc(1, sizeof(*r));

	th_check(r);
	r->s = s;
	for (unsigned long b = 0; b < batches(); b++)
		receiver_batch(self, r, b);
	th_quiet(s, 5);
	if (s->rxcntr)
		th_eq(fi_cntr_read(s->rxcntr), r->total);
	free(r);
}

static void run_mix(struct th_self *self, struct th_stack_opts o)
{
	size_t min = 8;
	struct th_stack s;

	o.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV |
		 FI_MULTI_RECV;
	th_stack_open(&s, &o);
	th_ok(fi_setopt(&s.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			&min, sizeof(min)));
	th_stack_connect(&s, self);
	if (self->rank)
		run_sender(self, &s);
	else
		run_receiver(self, &s);
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

static void contract_P5_quick_mix(struct th_self *self)
{
	run_mix(self, (struct th_stack_opts){ 0 });
}

static void contract_P5_quick_mix_counters(struct th_self *self)
{
	run_mix(self, (struct th_stack_opts){ .cntrs = true });
}

static void contract_P5_quick_mix_one_cq(struct th_self *self)
{
	run_mix(self, (struct th_stack_opts){ .one_cq = true });
}

/* Everything waits for room in the lane, most of the time. */
static void contract_P5_quick_mix_two_lines(struct th_self *self)
{
	setenv("FI_SHRIMP_LANE_LINES", "2", 1);
	run_mix(self, (struct th_stack_opts){ .cntrs = true });
}

/* ---- reading --------------------------------------------------------------------- */

/* Sizes that take the short ways. */
static const size_t small[] = { 0, 1, 39, 40, 41, 64, 1023, 1024 };
enum { NSMALL = sizeof(small) / sizeof(small[0]) };

static void put(struct th_stack *a, size_t len, uint64_t tag)
{
	unsigned char buf[4096];

	th_fill(buf, len, tag);
	th_post(a, fi_tinject(a->ep, buf, len, a->peers[1], tag));
	memset(buf, 0xdd, len);
}

/* A burst of @n messages is read @count at a time, in order. */
static void burst(struct th_stack *a, struct th_stack *b, int n, size_t count)
{
	static unsigned char buf[64][1024];
	struct fi_cq_tagged_entry e[MAX_READ];
	ssize_t got;

	for (int i = 0; i < n; i++)
		th_trecv(b, buf[i], 1024, (uint64_t)i, 0, buf[i]);
	for (int i = 0; i < n; i++)
		put(a, small[(n + i) % NSMALL], (uint64_t)i);
	for (int i = 0; i < n; i += (int)got) {
		while ((got = fi_cq_read(b->rxcq, e, count)) == -FI_EAGAIN)
			fi_cq_read(a->txcq, NULL, 0);
		th_check(got > 0 && (size_t)got <= count && i + got <= n);
		for (int k = 0; k < got; k++) {
			th_ptr_eq(e[k].op_context, buf[i + k]);
			th_eq(e[k].tag, i + k);
			th_eq(e[k].len, small[(n + i + k) % NSMALL]);
			th_verify(buf[i + k], e[k].len, (uint64_t)(i + k));
		}
	}
	th_eq(fi_cq_read(b->rxcq, e, count), -FI_EAGAIN);
}

static void quick_bursts(struct th_self *self)
{
	struct th_stack a, b;

	(void)self;
	th_pair_open(&a, &b, NULL);
	for (int n = 1; n <= 64; n++)
		for (int c = 0; c < 3; c++)
			burst(&a, &b, n, counts[c]);
	th_pair_close(&a, &b);
}

/* The next entry of @cq is there after at most one call that finds nothing. */
static struct fi_cq_tagged_entry soon(struct fid_cq *cq, size_t count)
{
	struct fi_cq_tagged_entry e[MAX_READ];
	ssize_t n = fi_cq_read(cq, e, count);

	if (n == -FI_EAGAIN)
		n = fi_cq_read(cq, e, count);
	th_eq(n, 1);
	return e[0];
}

/* @a's, then @c's message come to @b just after a success. */
static void after_success(struct th_stack *a, struct th_stack *b,
			  struct th_stack *c, size_t len, size_t count)
{
	static unsigned char buf[4][8192];
	struct th_stack *from[] = { a, a, c, a };
	int ctx = 0;

	for (int i = 0; i < 4; i++)
		th_trecv(b, buf[i], len, (uint64_t)i, 0, buf[i]);
	for (int i = 0; i < 4; i++) {
		put(from[i], i % 2 ? len : 8 % (len + 1), (uint64_t)i);
		th_ptr_eq(soon(b->rxcq, count).op_context, buf[i]);
	}
	/* and so does what this endpoint itself has to say */
	th_tsend(b, b->peers[0], "x", 1, 77, &ctx);
	th_ptr_eq(soon(b->txcq, count).op_context, &ctx);
}

static void quick_read_after_success(struct th_self *self)
{
	static const size_t sizes[] = { 0, 8, 40, 41, 1024, 1025, 4096 };
	struct th_stack_opts o = { .one_cq = true };
	struct th_stack a, b, c;
	char buf[8];

	(void)self;
	th_pair_open(&a, &b, &o);
	th_stack_open(&c, &o);
	c.peers = calloc(2, sizeof(*c.peers));
	th_check(c.peers);
	c.peers[1] = th_insert(&c, b.addr);
	for (int i = 0; i < 7 * 3 * 5; i++) {
		after_success(&a, &b, &c, sizes[i % 7], counts[i / 7 % 3]);
		th_trecv(&a, buf, 8, 77, 0, buf);
		th_rx_ok(&a);
	}
	th_pair_close(&a, &b);
	th_stack_close(&c);
}

/* Entries of the other formats, several in one call. */
static void read_format(enum fi_cq_format format, size_t size)
{
	struct th_stack_opts o = { .cq_format = format };
	char raw[3 * sizeof(struct fi_cq_tagged_entry)];
	struct fi_cq_tagged_entry e = { 0 };
	struct th_stack a, b;
	char buf[2][64];

	th_pair_open(&a, &b, &o);
	for (int i = 0; i < 2; i++)
		th_trecv(&b, buf[i], 64, (uint64_t)i, 0, buf[i]);
	th_progress(&b);
	for (uint64_t i = 0; i < 2; i++)
		th_post(&a, fi_tinjectdata(a.ep, "01234567", 8, 5 + i,
					   a.peers[1], i));
	memset(raw, 0x55, sizeof(raw));
	for (ssize_t n = 0; n != 2;) {
		n = fi_cq_read(b.rxcq, raw, 2);
		th_check(n == 2 || n == -FI_EAGAIN);
	}
	for (int i = 0; i < 2; i++) {
		memcpy(&e, raw + (size_t)i * size, size);
		th_ptr_eq(e.op_context, buf[i]);
		th_check(size < 24 || e.len == 8);
		th_check(size < 40 || e.data == (uint64_t)i + 5);
	}
	th_verify_byte(raw + 2 * size, sizeof(raw) - 2 * size, 0x55);
	th_pair_close(&a, &b);
}

static void quick_formats(struct th_self *self)
{
	(void)self;
	read_format(FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry));
	read_format(FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry));
	read_format(FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry));
	read_format(FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry));
}

/* ---- selective completion -------------------------------------------------------- */

/* A message whose send, receive are reported as @tx, @rx say. */
static void selective_one(struct th_stack *a, struct th_stack *b, size_t len,
			  uint64_t tx, uint64_t rx)
{
	static unsigned char in[LONGEST], out[LONGEST];
	struct iovec iov = { out, len }, to = { in, LONGEST };
	struct fi_msg_tagged s = { .msg_iov = &iov,
				   .iov_count = 1,
				   .addr = a->peers[1],
				   .tag = len,
				   .context = out };
	struct fi_msg_tagged r = { .msg_iov = &to,
				   .iov_count = 1,
				   .addr = FI_ADDR_UNSPEC,
				   .tag = len,
				   .context = in };
	uint64_t n = fi_cntr_read(b->rxcntr), m = fi_cntr_read(a->txcntr);

	memset(in, 0, len);
	th_fill(out, len, len);
	th_eq(fi_trecvmsg(b->ep, &r, rx), 0);
	th_eq(fi_tsendmsg(a->ep, &s, tx), 0);
	if (rx)
		th_ptr_eq(th_rx_ok(b).op_context, in);
	if (tx)
		th_ptr_eq(th_tx_ok(a).op_context, out);
	th_cntr_reach(b, b->rxcntr, n + 1);
	th_cntr_reach(a, a->txcntr, m + 1);
	th_verify(in, len, len);
}

static void quick_selective(struct th_self *self)
{
	struct th_stack_opts o = { .tx_bind = FI_SELECTIVE_COMPLETION,
				   .rx_bind = FI_SELECTIVE_COMPLETION,
				   .cntrs = true };
	struct th_stack a, b;

	(void)self;
	th_pair_open(&a, &b, &o);
	for (int i = 0; i < NEDGES * 4; i++)
		selective_one(&a, &b, edges[i / 4], i % 2 ? FI_COMPLETION : 0,
			      i / 2 % 2 ? FI_COMPLETION : 0);
	th_quiet(&a, 5);
	th_quiet(&b, 5);
	th_eq(fi_cntr_read(a.txcntr), NEDGES * 4);
	th_eq(fi_cntr_read(b.rxcntr), NEDGES * 4);
	th_pair_close(&a, &b);
}

/* ---- the byte ring wraps, chunks are in flight ---------------------------- */

enum {
	RING_LEN = 1024,      /* eight of them fill the byte ring */
	CHUNKED = 6,	      /* larger ones in flight */
	CYCLE = 64,	      /* messages that use each chunk of a pool once */
	CHUNKED_MAX = 1 << 16 /* bytes */
};

static unsigned char chunked_tx[CHUNKED][CHUNKED_MAX];
static unsigned char chunked_rx[CHUNKED_MAX];

/* The sender looks at the byte credits only, for @n messages. */
static void wrap_ring(struct th_stack *a, struct th_stack *b, int n)
{
	static unsigned char in[RING_LEN], out[RING_LEN];

	for (int i = 0; i < n; i++) {
		th_fill(out, RING_LEN, (uint64_t)i);
		th_trecv(b, in, RING_LEN, 1, 0, in);
		th_post(a, fi_tinject(a->ep, out, RING_LEN, a->peers[1], 1));
		th_ptr_eq(th_rx_ok(b).op_context, in);
		th_verify(in, RING_LEN, (uint64_t)i);
	}
}

static size_t chunked_len(int round, int i)
{
	static const size_t list[] = { 8192, 2048, 30000, 8192, 65536, 1025 };

	return list[(round + i) % 6];
}

/* Sends, and looks at the credits, before the receiver reads anything. */
static void in_flight(struct th_stack *a, int round)
{
	for (int i = 0; i < CHUNKED; i++) {
		uint64_t tag = (uint64_t)(round * CHUNKED + i) + 100;
		size_t len = chunked_len(round, i);

		th_fill(chunked_tx[i], len, tag);
		th_tsend(a, a->peers[1], chunked_tx[i], len, tag, NULL);
		fi_cq_read(a->txcq, NULL, 0);
	}
}

/* All chunks that are free go once to @c, who reads at once. */
static void cycle_pool(struct th_stack *a, struct th_stack *c)
{
	static unsigned char in[CHUNKED_MAX], out[CHUNKED_MAX];

	for (int i = 0; i < CYCLE; i++) {
		size_t len = i % 2 ? 8193 : 8192;

		th_fill(out, len, (uint64_t)i);
		th_trecv(c, in, CHUNKED_MAX, 2, 0, in);
		th_tsend(a, a->peers[0], out, len, 2, NULL);
		th_eq(th_rx_ok(c).len, len);
		th_verify(in, len, (uint64_t)i);
	}
}

static void consume(struct th_stack *a, struct th_stack *b, int round)
{
	for (int i = 0; i < CHUNKED; i++) {
		uint64_t tag = (uint64_t)(round * CHUNKED + i) + 100;
		size_t len = chunked_len(round, i);

		th_trecv(b, chunked_rx, CHUNKED_MAX, tag, 0, chunked_rx);
		th_eq(th_rx_ok(b).len, len);
		th_verify(chunked_rx, len, tag);
	}
	for (int i = 0; i < CHUNKED + CYCLE; i++)
		th_tx_ok(a);
}

/*
 * A chunk stays its message's until the receiver has read it, however often
 * the rings went round before, and whoever needs chunks meanwhile. The
 * endpoints make progress only where it is said here.
 */
static void contract_P5_wrap_then_chunks(struct th_self *self)
{
	struct th_stack a, b, c;
	uint64_t seed = 1;

	(void)self;
	setenv("FI_SHRIMP_POOL", "262144", 1);
	th_pair_open(&a, &b, NULL);
	th_stack_open(&c, NULL);
	a.peers[0] = th_insert(&a, c.addr);
	a.buddy = NULL;
	c.buddy = &a;
	for (int round = 0; round < 100; round++) {
		b.buddy = NULL;
		wrap_ring(&a, &b, (int)(th_random(&seed) % 150));
		in_flight(&a, round);
		cycle_pool(&a, &c);
		b.buddy = &a;
		consume(&a, &b, round);
	}
	th_pair_close(&a, &b);
	th_stack_close(&c);
}

static const struct CMUnitTest quick_tests[] = {
	TH_CASE(contract_P5_quick_mix, SENDERS + 1, 60),
	TH_CASE(contract_P5_quick_mix_counters, SENDERS + 1, 60),
	TH_CASE(contract_P5_quick_mix_one_cq, SENDERS + 1, 60),
	TH_CASE(contract_P5_quick_mix_two_lines, SENDERS + 1, 60),
	TH_CASE(quick_bursts, 1, 20),
	TH_CASE(quick_read_after_success, 1, 20),
	TH_CASE(quick_formats, 1, 20),
	TH_CASE(quick_selective, 1, 20),
	TH_CASE(contract_P5_wrap_then_chunks, 1, 20),
};

TH_MAIN(quick_tests)
