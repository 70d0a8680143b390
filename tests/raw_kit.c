/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A lane without an endpoint of ours behind it.
 */
#define _GNU_SOURCE
#include "raw_kit.h"

void raw_open(struct raw_lane *r, const struct th_stack *s,
	      const struct rnic_addr *to)
{
	struct rnic_addr own;
	struct rnic_lane *lane;

	memcpy(&own, s->addr, sizeof(own));
	th_eq(rnic_remote_open(to, RNIC_ATTACH_PROC, &r->remote), 0);
	th_eq(rnic_remote_claim(r->remote, &own, &lane, &r->index), 0);
	rnic_lane_tx_init(&r->tx, lane, r->index, RNIC_LANE_LINES, true);
}

void raw_close(struct raw_lane *r)
{
	rnic_remote_unmap_lane(r->tx.sh);
	rnic_remote_close(r->remote);
}

static void publish(struct raw_lane *r, struct rnic_desc *d,
		    enum rnic_desc_kind kind, size_t len)
{
	rnic_lane_publish(&r->tx, d, kind, 0, len);
	rnic_remote_ring(r->remote, r->index);
}

void raw_ask(struct raw_lane *r, uint64_t key, const struct rnic_desc_ask *q,
	     size_t room)
{
	struct rnic_desc *d = rnic_lane_slot(&r->tx);

	/* relaxed, here and below: published with the head */
	rnic_store64_relaxed(&d->tag, key);
	rnic_store64_relaxed(&d->data, 0);
	d->ask = *q;
	publish(r, d, RNIC_DESC_ASK, room);
}

void raw_desc(struct raw_lane *r, enum rnic_desc_kind kind, size_t len,
	      const struct rnic_desc_ext *x)
{
	struct rnic_desc *d = rnic_lane_slot(&r->tx);

	rnic_store64_relaxed(&d->tag, 1);
	rnic_store64_relaxed(&d->data, 0);
	d->ext = *x;
	publish(r, d, kind, len);
}

void raw_expect_closed(struct raw_lane *r)
{
	struct th_deadline dl = th_deadline_ms(10000);

	/* acquire: as a sender looks at it */
	while (!rnic_load32_acquire(&r->tx.sh->flag.rx_closed))
		th_check(!th_expired(&dl));
}
