/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What matches what: tag bits and ignore masks, the order among posted
 * receives and among waiting messages, sources, and messages from peers
 * that are not (yet) in the address vector.
 */
#define _GNU_SOURCE
#include "harness.h"

static const struct th_stack_opts directed = {
	.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE,
};

static const struct th_stack_opts with_source = {
	.caps = FI_MSG | FI_TAGGED | FI_SOURCE,
};

/* Sends the 8-byte message @v. */
static void put(struct th_stack *s, fi_addr_t to, uint64_t tag, uint64_t v)
{
	th_post(s, fi_tinject(s->ep, &v, sizeof(v), to, tag));
}

/* The next receive must be that of @ctx and hold @v. */
static void got(struct th_stack *s, uint64_t *ctx, uint64_t tag, uint64_t v)
{
	struct fi_cq_tagged_entry e = th_rx_ok(s);

	th_ptr_eq(e.op_context, ctx);
	th_eq(e.len, sizeof(v));
	th_eq(e.tag, tag);
	th_eq(*ctx, v);
}

/* ---- tag bits --------------------------------------------------------- */

/* Each single bit of the tag tells two messages apart, and can be ignored. */
static void all_64_bits(struct th_self *self)
{
	uint64_t bit, rx[2];
	struct th_stack a, b;
	int i;

	(void)self;
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < 64; i++) {
		bit = UINT64_C(1) << i;
		th_trecv(&b, &rx[0], 8, ~bit, 0, &rx[0]);
		th_trecv(&b, &rx[1], 8, ~UINT64_C(0), 0, &rx[1]);
		put(&a, a.peers[1], ~UINT64_C(0), 1);
		got(&b, &rx[1], ~UINT64_C(0), 1);
		put(&a, a.peers[1], ~bit, 2);
		got(&b, &rx[0], ~bit, 2);
		th_trecv(&b, &rx[0], 8, 0, bit, &rx[0]);
		put(&a, a.peers[1], bit, 3);
		got(&b, &rx[0], bit, 3);
	}
	th_quiet(&b, 5);
	th_pair_close(&a, &b);
}

/*
 * The tag under the ignored bits of a receive does not matter, on either
 * side of the comparison.
 */
static void ignored_bits(struct th_self *self)
{
	const uint64_t mask = UINT64_C(0xff00ff0000000000);
	struct th_stack a, b;
	uint64_t rx[2];

	(void)self;
	th_pair_open(&a, &b, NULL);
	th_trecv(&b, &rx[0], 8, mask | 5, mask, &rx[0]);
	put(&a, a.peers[1], 6, 1);
	th_quiet(&b, 5);
	put(&a, a.peers[1], UINT64_C(0x1200340000000005), 2);
	got(&b, &rx[0], UINT64_C(0x1200340000000005), 2);
	/* The other way round: the message waits, the receive comes later. */
	th_trecv(&b, &rx[1], 8, 7, 1, &rx[1]);
	got(&b, &rx[1], 6, 1);
	th_trecv(&b, &rx[0], 8, 99, ~UINT64_C(0), &rx[0]);
	put(&a, a.peers[1], 123, 3);
	got(&b, &rx[0], 123, 3);
	th_pair_close(&a, &b);
}

/*
 * The oldest receive that matches wins, whatever mask it has: receives of
 * many masks in random order against a list that is searched in order.
 */
enum { RECVS = 200, MASKS = 12 };

struct want {
	uint64_t tag;	 /* of the receive */
	uint64_t ignore; /* its mask */
	bool used;	 /* has got a message */
};

static struct want *model_match(struct want *w, size_t n, uint64_t tag)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!w[i].used && ((w[i].tag ^ tag) & ~w[i].ignore) == 0)
			return &w[i];
	return NULL;
}

static void oldest_receive(struct th_self *self)
{
	uint64_t rx[RECVS], seed = 42, tag;
	struct want w[RECVS], *m;
	struct th_stack a, b;
	size_t i, sent = 0;

	(void)self;
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < RECVS; i++) {
		w[i].ignore = th_random(&seed) % MASKS;
		w[i].tag = th_random(&seed) % 16;
		w[i].used = false;
		th_trecv(&b, &rx[i], 8, w[i].tag, w[i].ignore, &rx[i]);
	}
	while (sent < RECVS / 2) {
		tag = th_random(&seed) % 16;
		m = model_match(w, RECVS, tag);
		if (!m)
			continue;
		m->used = true;
		put(&a, a.peers[1], tag, ++sent);
		got(&b, &rx[m - w], tag, sent);
	}
	th_quiet(&b, 5);
	th_pair_close(&a, &b);
}

/* The oldest message that matches wins, whatever the mask of the receive. */
static void oldest_message(struct th_self *self)
{
	uint64_t tags[RECVS], rx, seed = 43, tag, ignore;
	bool used[RECVS] = { false };
	struct th_stack a, b;
	size_t i, round;

	(void)self;
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < RECVS; i++) {
		tags[i] = th_random(&seed) % 16;
		put(&a, a.peers[1], tags[i], i);
	}
	th_quiet(&b, 20);
	for (round = 0; round < RECVS;) {
		tag = th_random(&seed) % 16;
		ignore = th_random(&seed) % MASKS;
		for (i = 0; i < RECVS; i++)
			if (!used[i] && ((tags[i] ^ tag) & ~ignore) == 0)
				break;
		if (i == RECVS)
			continue;
		used[i] = true;
		round++;
		th_trecv(&b, &rx, 8, tag, ignore, &rx);
		got(&b, &rx, tags[i], i);
	}
	th_quiet(&b, 5);
	th_pair_close(&a, &b);
}

/* Tagged and untagged messages never meet. */
static void two_worlds(struct th_self *self)
{
	uint64_t rx[2], v = 9;
	struct th_stack a, b;

	(void)self;
	th_pair_open(&a, &b, NULL);
	th_trecv(&b, &rx[0], 8, 0, ~UINT64_C(0), &rx[0]);
	th_send(&a, a.peers[1], &v, 8, &v);
	th_quiet(&b, 10);
	th_recv(&b, &rx[1], 8, &rx[1]);
	th_ptr_eq(th_rx_ok(&b).op_context, &rx[1]);
	th_recv(&b, &rx[1], 8, &rx[1]);
	put(&a, a.peers[1], 77, 5);
	got(&b, &rx[0], 77, 5);
	th_quiet(&b, 10);
	th_send(&a, a.peers[1], &v, 8, &v);
	th_ptr_eq(th_rx_ok(&b).op_context, &rx[1]);
	th_pair_close(&a, &b);
}

/* Untagged receives are matched in the order of posting, too. */
static void untagged_order(struct th_self *self)
{
	struct th_stack a, b;
	uint64_t rx[64], i;

	(void)self;
	th_pair_open(&a, &b, NULL);
	for (i = 0; i < 32; i++)
		th_recv(&b, &rx[i], 8, &rx[i]);
	for (i = 0; i < 64; i++)
		th_post(&a, fi_inject(a.ep, &i, 8, a.peers[1]));
	th_quiet(&a, 5);
	for (i = 32; i < 64; i++)
		th_recv(&b, &rx[i], 8, &rx[i]);
	for (i = 0; i < 64; i++) {
		th_ptr_eq(th_rx_ok(&b).op_context, &rx[i]);
		th_eq(rx[i], i);
	}
	th_pair_close(&a, &b);
}

/* ---- sources ----------------------------------------------------------- */

/* Three endpoints: b receives, a and c send; all in one ring of progress. */
struct trio {
	struct th_stack a; /* first sender: b.peers[0] */
	struct th_stack b; /* receiver: its peers[1] is itself */
	struct th_stack c; /* second sender */
	fi_addr_t a_to_b;  /* b, as a calls it */
	fi_addr_t c_to_b;  /* b, as c calls it */
	fi_addr_t b_to_c;  /* c, as b calls it */
};

static void trio_open(struct trio *t, const struct th_stack_opts *o)
{
	th_pair_open(&t->a, &t->b, o);
	th_stack_open(&t->c, o);
	t->a_to_b = t->a.peers[1];
	t->c_to_b = th_insert(&t->c, t->b.addr);
	t->b_to_c = th_insert(&t->b, t->c.addr);
	t->b.buddy = &t->c;
	t->c.buddy = &t->a;
}

static void trio_close(struct trio *t)
{
	th_pair_close(&t->a, &t->b);
	th_stack_close(&t->c);
}

static void trecv_from(struct th_stack *s, fi_addr_t from, uint64_t tag,
		       uint64_t ignore, uint64_t *rx)
{
	th_post(s, fi_trecv(s->ep, rx, 8, NULL, from, tag, ignore, rx));
}

/* A receive that names its source takes that source's messages only. */
static void directed_receive(struct th_self *self)
{
	uint64_t rx[3];
	struct trio t;
	int late;

	(void)self;
	trio_open(&t, &directed);
	for (late = 0; late < 2; late++) {
		if (late) {
			put(&t.a, t.a_to_b, 1, 10);
			put(&t.c, t.c_to_b, 1, 20);
			th_quiet(&t.b, 10);
		}
		trecv_from(&t.b, t.b_to_c, 1, 0, &rx[0]);
		if (!late) {
			put(&t.a, t.a_to_b, 1, 10);
			th_quiet(&t.b, 10);
			put(&t.c, t.c_to_b, 1, 20);
		}
		got(&t.b, &rx[0], 1, 20);
		trecv_from(&t.b, FI_ADDR_UNSPEC, 1, 0, &rx[1]);
		got(&t.b, &rx[1], 1, 10);
	}
	trio_close(&t);
}

/* The oldest of a directed and an undirected receive wins. */
static void directed_and_any(struct th_self *self)
{
	uint64_t rx[4];
	struct trio t;

	(void)self;
	trio_open(&t, &directed);
	trecv_from(&t.b, FI_ADDR_UNSPEC, 1, 3, &rx[0]);
	trecv_from(&t.b, t.b.peers[0], 1, 0, &rx[1]);
	trecv_from(&t.b, t.b_to_c, 0, ~UINT64_C(0), &rx[2]);
	trecv_from(&t.b, FI_ADDR_UNSPEC, 0, ~UINT64_C(0), &rx[3]);
	put(&t.c, t.c_to_b, 2, 1);
	got(&t.b, &rx[0], 2, 1);
	put(&t.c, t.c_to_b, 2, 2);
	got(&t.b, &rx[2], 2, 2);
	put(&t.c, t.c_to_b, 1, 3);
	got(&t.b, &rx[3], 1, 3);
	put(&t.a, t.a_to_b, 1, 4);
	got(&t.b, &rx[1], 1, 4);
	trio_close(&t);
}

/* Directed receives of untagged messages. */
static void directed_untagged(struct th_self *self)
{
	uint64_t rx[2], v;
	struct trio t;

	(void)self;
	trio_open(&t, &directed);
	th_post(&t.b, fi_recv(t.b.ep, &rx[0], 8, NULL, t.b_to_c, &rx[0]));
	v = 1;
	th_post(&t.a, fi_inject(t.a.ep, &v, 8, t.a_to_b));
	th_quiet(&t.b, 10);
	v = 2;
	th_post(&t.c, fi_inject(t.c.ep, &v, 8, t.c_to_b));
	th_ptr_eq(th_rx_ok(&t.b).op_context, &rx[0]);
	th_eq(rx[0], 2);
	th_post(&t.b, fi_recv(t.b.ep, &rx[1], 8, NULL, t.b.peers[0], &rx[1]));
	th_ptr_eq(th_rx_ok(&t.b).op_context, &rx[1]);
	th_eq(rx[1], 1);
	trio_close(&t);
}

/*
 * Without FI_DIRECTED_RECV the source argument is ignored, even one that
 * names nobody.
 */
static void source_ignored(struct th_self *self)
{
	uint64_t rx[2], v = 3;
	struct trio t;

	(void)self;
	trio_open(&t, NULL);
	th_check(!(t.b.info->caps & FI_DIRECTED_RECV));
	trecv_from(&t.b, t.b_to_c, 1, 0, &rx[0]);
	put(&t.a, t.a_to_b, 1, 10);
	got(&t.b, &rx[0], 1, 10);
	trecv_from(&t.b, 4711, 1, 0, &rx[0]);
	put(&t.a, t.a_to_b, 1, 11);
	got(&t.b, &rx[0], 1, 11);
	th_post(&t.b, fi_recv(t.b.ep, &rx[1], 8, NULL, t.b_to_c, &rx[1]));
	th_post(&t.a, fi_inject(t.a.ep, &v, 8, t.a_to_b));
	th_ptr_eq(th_rx_ok(&t.b).op_context, &rx[1]);
	trio_close(&t);
}

/* With FI_SOURCE, fi_cq_readfrom() names the sender. */
static void readfrom_names_source(struct th_self *self)
{
	fi_addr_t src;
	uint64_t rx;
	struct trio t;
	int i;

	(void)self;
	trio_open(&t, &with_source);
	for (i = 0; i < 10; i++) {
		trecv_from(&t.b, FI_ADDR_UNSPEC, 0, ~UINT64_C(0), &rx);
		if (i % 2)
			put(&t.a, t.a_to_b, 1, 1);
		else
			put(&t.c, t.c_to_b, 1, 2);
		th_rx_from(&t.b, &src);
		th_eq(src, i % 2 ? t.b.peers[0] : t.b_to_c);
		th_eq(rx, i % 2 ? 1 : 2);
	}
	trio_close(&t);
}

/* ---- peers that are not in the address vector --------------------------- */

/* A sender whom the receiver does not know: delivered, without a name. */
static void unknown_sender(struct th_self *self)
{
	struct th_stack a, b;
	fi_addr_t src = 0, to;
	uint64_t rx;

	(void)self;
	th_stack_open(&a, &with_source);
	th_stack_open(&b, &with_source);
	a.buddy = &b;
	b.buddy = &a;
	to = th_insert(&a, b.addr);
	th_trecv(&b, &rx, 8, 1, 0, &rx);
	put(&a, to, 1, 5);
	th_rx_from(&b, &src);
	th_eq(src, FI_ADDR_NOTAVAIL);
	th_eq(rx, 5);
	th_pair_close(&a, &b);
}

/*
 * A message that arrived before its sender was inserted is found by a later
 * directed receive, and has its name then; so has one that comes after.
 */
static void inserted_after_arrival(struct th_self *self)
{
	unsigned char *big = malloc(1 << 20), *rbig = malloc(1 << 20);
	struct th_stack a, b;
	fi_addr_t src, to, from;
	uint64_t rx;

	(void)self;
	th_check(big && rbig);
	th_stack_open(&a, &directed);
	th_stack_open(&b, &directed);
	a.buddy = &b;
	b.buddy = &a;
	to = th_insert(&a, b.addr);
	th_fill(big, 1 << 20, 8);
	put(&a, to, 1, 5);
	th_tsend(&a, to, big, 1 << 20, 2, big);
	th_quiet(&b, 20);
	from = th_insert(&b, a.addr);
	trecv_from(&b, from, 1, 0, &rx);
	th_rx_from(&b, &src);
	th_eq(src, from);
	th_eq(rx, 5);
	th_post(&b, fi_trecv(b.ep, rbig, 1 << 20, NULL, from, 2, 0, rbig));
	th_rx_from(&b, &src);
	th_eq(src, from);
	th_verify(rbig, 1 << 20, 8);
	trecv_from(&b, from, 3, 0, &rx);
	put(&a, to, 3, 6);
	got(&b, &rx, 3, 6);
	free(big);
	free(rbig);
	th_pair_close(&a, &b);
}

/* A removed peer loses its name; its messages still come. */
static void removed_sender(struct th_self *self)
{
	struct th_stack a, b;
	fi_addr_t src;
	uint64_t rx;

	(void)self;
	th_pair_open(&a, &b, &with_source);
	th_trecv(&b, &rx, 8, 1, 0, &rx);
	put(&a, a.peers[1], 1, 5);
	th_rx_from(&b, &src);
	th_eq(src, b.peers[0]);
	th_ok(fi_av_remove(b.av, &b.peers[0], 1, 0));
	th_trecv(&b, &rx, 8, 1, 0, &rx);
	put(&a, a.peers[1], 1, 6);
	th_rx_from(&b, &src);
	th_eq(src, FI_ADDR_NOTAVAIL);
	th_eq(rx, 6);
	th_pair_close(&a, &b);
}

static const struct CMUnitTest tagged_tests[] = {
	TH_CASE(all_64_bits, 1, 10),
	TH_CASE(ignored_bits, 1, 10),
	TH_CASE(oldest_receive, 1, 10),
	TH_CASE(oldest_message, 1, 10),
	TH_CASE(two_worlds, 1, 10),
	TH_CASE(untagged_order, 1, 10),
	TH_CASE(directed_receive, 1, 10),
	TH_CASE(directed_and_any, 1, 10),
	TH_CASE(directed_untagged, 1, 10),
	TH_CASE(source_ignored, 1, 10),
	TH_CASE(readfrom_names_source, 1, 10),
	TH_CASE(unknown_sender, 1, 10),
	TH_CASE(inserted_after_arrival, 1, 10),
	TH_CASE(removed_sender, 1, 10),
};

TH_MAIN(tagged_tests)
