/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Descriptors that make no sense (contract L3), one by one: the lane is closed,
 * nothing is delivered or executed, and the receiver goes on. Words at random
 * are in env_hostile.c and rma_hostile.c; they hit such lengths too seldom.
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include "raw_kit.h"
#include "shm/aop.h"
#include "shm/pool.h"

/* A descriptor that is no request. */
struct bad_desc {
	enum rnic_desc_kind kind; /* what it says it is */
	size_t len;		  /* in its head */
	struct rnic_desc_ext x;	  /* its fields */
};

static const struct bad_desc bad_desc[] = {
	{ RNIC_DESC_INLINE, RNIC_INLINE_MAX + 1, { 0 } },
	{ RNIC_DESC_INLINE, 65535, { 0 } },
	{ RNIC_DESC_RING, RNIC_RING_MSG_MAX + 1, { 0 } },
	{ RNIC_DESC_RING, 65535, { 0 } },
	{ RNIC_DESC_CHUNK, 0, { .chunk_len = RNIC_POOL_SMALL + 1 } },
	{ RNIC_DESC_CHUNK, 0, { .chunk = RNIC_CHUNK_NONE, .chunk_len = 8 } },
	{ RNIC_DESC_FIRST,
	  0,
	  { .total = 2 * RNIC_POOL_LARGE, .chunk_len = RNIC_POOL_SMALL + 1 } },
	{ RNIC_DESC_FIRST, 0, { .total = 64, .chunk_len = 64 } },
	{ RNIC_DESC_FIRST, 0, { .total = UINT64_MAX, .chunk_len = 64 } },
	{ RNIC_DESC_NEXT, 0, { .chunk_len = 64 } },
	{ RNIC_DESC_DATA, 0, { .chunk = RNIC_CHUNK_NONE, .chunk_len = 64 } },
	{ (enum rnic_desc_kind)63, 0, { 0 } },
};

/* A request. */
struct bad_ask {
	size_t room;		/* bytes that it has in the ring */
	struct rnic_desc_ask q; /* its fields */
};

static const struct bad_ask bad_ask[] = {
	{ 0, { .kind = RNIC_ASK_WRITE, .len = 8 } },
	{ 64, { .kind = RNIC_ASK_READ, .len = 65 } },
	{ 64, { .kind = RNIC_ASK_WRITE, .len = UINT32_MAX } },
	{ 64, { .kind = RNIC_ASK_WRITE, .len = 0 } },
	{ RNIC_RING_MSG_MAX + 1,
	  { .kind = RNIC_ASK_WRITE, .len = RNIC_RING_MSG_MAX + 1 } },
	{ 8, { .kind = RNIC_ASK_COMPARE, .len = 8 } },
	{ 64, { .kind = RNIC_ASK_ATOMIC, .len = 8, .type = 255 } },
	{ 64, { .kind = RNIC_ASK_ATOMIC, .len = 8, .op = 255 } },
	{ 64, { .kind = RNIC_ASK_KINDS, .len = 8 } },
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static void senseless(struct th_stack *s, const struct rnic_addr *to)
{
	struct raw_lane r;

	for (size_t i = 0; i < COUNT(bad_desc) + COUNT(bad_ask); i++) {
		raw_open(&r, s->addr, to);
		if (i < COUNT(bad_desc)) {
			raw_desc(&r, bad_desc[i].kind, bad_desc[i].len,
				 &bad_desc[i].x);
		} else {
			const struct bad_ask *b = &bad_ask[i - COUNT(bad_desc)];

			raw_ask(&r, RK_KEY, &b->q, b->room);
		}
		raw_expect_closed(&r);
		raw_drop(&r);
	}
}

static void contract_L3_senseless(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct rnic_addr all[2], own;
	char buf[64] = { 0 };
	struct fid_mr *mr;
	struct th_stack s;
	struct rk_mem m;

	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	m = rk_mem_new(&s, false, RK_PAGE);
	mr = rk_reg(&s, m.p, RK_PAGE, RK_RW, RK_KEY);
	memcpy(&own, s.addr, sizeof(own));
	th_gather(self, "addresses", &own, all, sizeof(own));
	if (self->rank)
		senseless(&s, &all[0]);
	th_barrier_progress(self, &s, "told");
	th_verify_byte(m.p, RK_PAGE, 0);
	/* the first message that there is */
	if (self->rank) {
		th_send(&s, s.peers[0], "sense", 6, &s);
		th_tx_ok(&s);
	} else {
		th_recv(&s, buf, sizeof(buf), &s);
		th_eq(th_rx_ok(&s).len, 6);
		th_eq(strcmp(buf, "sense"), 0);
	}
	th_barrier_progress(self, &s, "end");
	th_ok(fi_close(&mr->fid));
	rk_mem_free(&m);
	th_stack_close(&s);
}

static const struct CMUnitTest tests[] = {
	TH_CASE(contract_L3_senseless, 2, 50),
};

int main(int argc, char **argv)
{
	return th_main(argc, argv, "lane_hostile", tests, COUNT(tests));
}
