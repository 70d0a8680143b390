/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The rings of a lane: what is not on the shortest path. See lane.h for the
 * exclusion table and the labels.
 */
#include "shm/lane.h"

#if defined(__SANITIZE_THREAD__)
char rnic_tsan_places[RNIC_TSAN_RINGS][RNIC_TSAN_PLACES];
#endif

static uint32_t stagger_of(unsigned int index)
{
	return index * RNIC_LANE_STAGGER % RNIC_LANE_LINES;
}

void rnic_lane_tx_init(struct rnic_lane_tx *tx, struct rnic_lane *sh,
		       unsigned int index, uint32_t window, bool fence)
{
	/* relaxed: the claim's CAS acquired them (D1) */
	uint32_t seq = rnic_load32_relaxed(&sh->credit.desc_taken);
	uint32_t bytes = rnic_load32_relaxed(&sh->credit.bytes_taken);
	uint32_t ret = rnic_load32_relaxed(&sh->credit.ret_head);

	*tx = (struct rnic_lane_tx){
		.sh = sh,
		.seq = seq,
		.taken = seq,
		.window = window,
		.stagger = stagger_of(index),
		.bytes = bytes,
		.bytes_taken = bytes,
		.ret = ret,
		.fence = fence,
	};
	/* relaxed: published by tx_state (R1) */
	rnic_store32_relaxed(&sh->ret_taken, ret);
}

void rnic_lane_rx_init(struct rnic_lane_rx *rx, struct rnic_lane *sh,
		       unsigned int index)
{
	/* relaxed: own words */
	uint32_t seq = rnic_load32_relaxed(&sh->credit.desc_taken);

	*rx = (struct rnic_lane_rx){
		.sh = sh,
		.seq = seq,
		.credited = seq,
		.stagger = stagger_of(index),
		.bytes = rnic_load32_relaxed(&sh->credit.bytes_taken),
		.ret = rnic_load32_relaxed(&sh->credit.ret_head),
	};
}

bool rnic_lane_refresh(struct rnic_lane_tx *tx)
{
	/* L2: acquires the places that rnic_lane_credit() released */
	uint32_t taken = rnic_load32_acquire(&tx->sh->credit.desc_taken);
	uint32_t bytes = rnic_load32_acquire(&tx->sh->credit.bytes_taken);

	if (tx->holds && bytes - tx->bytes_taken > tx->hold - tx->bytes_taken)
		bytes = tx->hold;
	/* bytes may be newer than taken, never beyond what we wrote */
	if (bytes - tx->bytes_taken <= tx->bytes - tx->bytes_taken)
		tx->bytes_taken = bytes;
	if (taken == tx->taken || taken - tx->taken > tx->seq - tx->taken)
		return false;
	tx->taken = taken;
	return true;
}

/*
 * Both ends place a message of @len at the next byte, or at the start of the
 * ring if it would run over the end. Returns its free-running start.
 */
static uint32_t place(uint32_t at, uint32_t len)
{
	uint32_t off = at % RNIC_RING_BYTES;

	return off + len > RNIC_RING_BYTES ? at + RNIC_RING_BYTES - off : at;
}

/* Messages start on lines, so that two never share one. */
static uint32_t round_line(uint32_t len)
{
	return (len + RNIC_LINE - 1) / RNIC_LINE * RNIC_LINE;
}

uint8_t *rnic_lane_bytes(struct rnic_lane_tx *tx, uint32_t len)
{
	uint32_t start = place(tx->bytes, round_line(len));
	uint32_t end = start + round_line(len);

	if (end - tx->bytes_taken > RNIC_RING_BYTES) {
		rnic_lane_refresh(tx);
		if (end - tx->bytes_taken > RNIC_RING_BYTES)
			return NULL;
	}
	tx->bytes = end;
	return &tx->sh->bytes[start % RNIC_RING_BYTES];
}

uint32_t rnic_lane_hold(struct rnic_lane_tx *tx, uint32_t len)
{
	uint32_t start = tx->bytes - round_line(len);

	if (!tx->holds)
		tx->hold = start;
	tx->holds = true;
	return start;
}

/* Orders nothing: words of this end alone. */
void rnic_lane_release(struct rnic_lane_tx *tx, bool none, uint32_t next)
{
	tx->holds = !none;
	tx->hold = next;
}

uint8_t *rnic_lane_take_bytes(struct rnic_lane_rx *rx, uint32_t len)
{
	uint32_t start = place(rx->bytes, round_line(len));

	rx->bytes = start + round_line(len);
	return &rx->sh->bytes[start % RNIC_RING_BYTES];
}

bool rnic_lane_ret_put(struct rnic_lane_rx *rx, enum rnic_ret_code code,
		       const struct rnic_ret *r)
{
	struct rnic_ret *e = &rx->sh->ret[rx->ret % RNIC_RET_ENTRIES];
	/* L4: acquires the entries the sender is done with */
	uint32_t taken = rnic_load32_acquire(&rx->sh->ret_taken);

	if (rx->ret - taken >= RNIC_RET_ENTRIES)
		return false;
	e->op = r->op;
	e->rx = r->rx;
	e->len = r->len;
	rnic_tsan_lane_put(RNIC_TSAN_RET, rx->ret);
	/*
	 * L3: publishes the answer; pairs with the load in
	 * rnic_lane_ret_take(). 1 is added so that a zeroed ring is empty.
	 */
	rnic_store64_release(&e->head,
			     (uint64_t)(rx->ret + 1) << 32 | (uint64_t)code);
	rx->ret++;
	/* relaxed: read by the next claimer only (D1) */
	rnic_store32_relaxed(&rx->sh->credit.ret_head, rx->ret);
	return true;
}

enum rnic_ret_code rnic_lane_ret_take(struct rnic_lane_tx *tx,
				      struct rnic_ret *r)
{
	struct rnic_ret *e = &tx->sh->ret[tx->ret % RNIC_RET_ENTRIES];
	/* L3: acquires what rnic_lane_ret_put() released */
	uint64_t head = rnic_load64_acquire(&e->head);

	if (head >> 32 != (uint32_t)(tx->ret + 1))
		return RNIC_RET_NONE;
	rnic_tsan_lane_took(RNIC_TSAN_RET, tx->ret);
	r->op = e->op;
	r->rx = e->rx;
	r->len = e->len;
	tx->ret++;
	/* L4: gives the entry back; pairs with rnic_lane_ret_put() */
	rnic_store32_release(&tx->sh->ret_taken, tx->ret);
	return (enum rnic_ret_code)(head & 0xff);
}
