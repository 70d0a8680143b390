/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A lane without an endpoint of ours behind it.
 */
#define _GNU_SOURCE
#include "raw_kit.h"

void raw_open(struct raw_lane *r, const void *own, const void *to)
{
	struct rnic_addr me, it;
	struct rnic_lane *lane;

	memcpy(&me, own, sizeof(me));
	memcpy(&it, to, sizeof(it));
	th_eq(rnic_remote_open(&it, RNIC_ATTACH_PROC, &r->remote), 0);
	th_eq(rnic_remote_claim(r->remote, &me, &lane, &r->index), 0);
	rnic_lane_tx_init(&r->tx, lane, r->index, RNIC_LANE_LINES, true);
}

void raw_drop(struct raw_lane *r)
{
	rnic_remote_unmap_lane(r->tx.sh);
	rnic_remote_close(r->remote);
}

/* release: after the last descriptor, as tx_free() */
static void leave(struct raw_lane *r)
{
	rnic_store32_release(&r->tx.sh->tx_state, RNIC_TX_CLOSED);
	rnic_remote_ring(r->remote, r->index);
}

void raw_close(struct raw_lane *r)
{
	leave(r);
	raw_drop(r);
}

void raw_give_back(struct raw_lane *r)
{
	struct th_deadline dl = th_patience();

	leave(r);
	/* acquire: as a claimer looks at it */
	while (rnic_load64_acquire(&r->remote->head->claim[r->index]))
		th_check(!th_expired(&dl));
	raw_drop(r);
}

static void publish(struct raw_lane *r, struct rnic_desc *d, unsigned int kind,
		    unsigned int flags, size_t len)
{
	rnic_lane_publish(&r->tx, d, (enum rnic_desc_kind)kind, flags, len);
	rnic_remote_ring(r->remote, r->index);
}

void raw_put(struct raw_lane *r, const struct rnic_desc *d, unsigned int kind,
	     unsigned int flags)
{
	struct rnic_desc *to = rnic_lane_slot(&r->tx);

	memcpy((char *)to + sizeof(to->head), (const char *)d + sizeof(d->head),
	       sizeof(*to) - sizeof(to->head));
	publish(r, to, kind, flags, 0);
}

void raw_ask(struct raw_lane *r, uint64_t key, const struct rnic_desc_ask *q,
	     size_t room)
{
	struct rnic_desc *d = rnic_lane_slot(&r->tx);

	/* relaxed, here and below: published with the head */
	rnic_store64_relaxed(&d->tag, key);
	rnic_store64_relaxed(&d->data, 0);
	d->ask = *q;
	publish(r, d, RNIC_DESC_ASK, 0, room);
}

void raw_desc(struct raw_lane *r, enum rnic_desc_kind kind, size_t len,
	      const struct rnic_desc_ext *x)
{
	struct rnic_desc *d = rnic_lane_slot(&r->tx);

	rnic_store64_relaxed(&d->tag, 1);
	rnic_store64_relaxed(&d->data, 0);
	d->ext = *x;
	publish(r, d, kind, 0, len);
}

void raw_ask_page(struct raw_lane *r, uint64_t key, uint64_t addr, uint32_t len,
		  uint8_t rights)
{
	const struct rnic_desc_ask q = { .addr = addr,
					 .len = len,
					 .kind = RNIC_ASK_PAGE,
					 .op = rights,
					 .ends = 1 };

	raw_ask(r, key, &q, 0);
}

bool raw_reply(struct raw_lane *r, uint64_t *err)
{
	struct rnic_ret ret;

	if (rnic_lane_ret_take(&r->tx, &ret) != RNIC_RET_REPLY)
		return false;
	*err = ret.rx;
	return true;
}

uint64_t raw_page(struct raw_lane *r, uint64_t key, uint64_t addr, uint32_t len,
		  uint8_t rights)
{
	struct th_deadline dl = th_patience();
	uint64_t err = 0;

	raw_ask_page(r, key, addr, len, rights);
	while (!raw_reply(r, &err))
		th_check(!th_expired(&dl));
	return err;
}

void raw_expect_closed(struct raw_lane *r)
{
	struct th_deadline dl = th_deadline_ms(10000);

	/* acquire: as a sender looks at it */
	while (!rnic_load32_acquire(&r->tx.sh->flag.rx_closed))
		th_check(!th_expired(&dl));
}
