/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The rings of a lane, from either end.
 *
 * A lane has one sender and one receiver endpoint; each end is used under its
 * endpoint's lock, so every ring here is single producer, single consumer.
 *
 *   operation             sender   receiver
 *   post, publish         writes   -
 *   peek, take, credit    -        writes credits
 *   ret_peek, ret_take    writes   -
 *   ret_put               -        writes
 *
 * No operation waits. Each side keeps its own index privately; the shared
 * word is only its publication, and what the other side published is bounded
 * before use (contract L3): an impossible credit counts as no news.
 *
 * Labels: L1 descriptor, L2 credits, L3 answer, L4 answers taken.
 */
#ifndef RNIC_LANE_H
#define RNIC_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shm/copy.h"
#include "shm/layout.h"
#include "shm/tsan.h"

enum {
	RNIC_LANE_STAGGER = 5,	/* lines between the ring heads of lanes */
	RNIC_LANE_AHEAD = 4,	/* lines asked for ahead in a burst */
	RNIC_CREDIT_LINES = 16, /* descriptors consumed before a credit */
};

/* The sender's end; private to the sending endpoint. */
struct rnic_lane_tx {
	struct rnic_lane *sh; /* the shared part, mapped */
	uint32_t seq;	      /* sequence of the next descriptor */
	uint32_t taken;	      /* descriptors known to be consumed */
	uint32_t window;      /* descriptors that may be in the ring */
	uint32_t stagger;     /* added to a sequence to get its place */
	uint32_t bytes;	      /* byte ring: next byte, free running */
	uint32_t bytes_taken; /* byte ring: known to be consumed */
	uint32_t ret;	      /* sequence of the next answer */
	uint32_t hold;	      /* byte ring: not free from here on, if @holds */
	bool holds;	      /* replies in the byte ring are to be read */
	bool fence;	      /* publish with a full fence */
};

/* The receiver's end; private to the receiving endpoint. */
struct rnic_lane_rx {
	struct rnic_lane *sh; /* the shared part, mapped by its owner */
	uint32_t seq;	      /* sequence of the next descriptor */
	uint32_t credited;    /* what desc_taken says */
	uint32_t stagger;     /* added to a sequence to get its place */
	uint32_t bytes;	      /* byte ring: next byte, free running */
	uint32_t ret;	      /* sequence of the next answer */
};

/*
 * Readies the sender's end of lane @index just claimed: goes on from the
 * credits an earlier sender left. @window: 1 to RNIC_LANE_LINES.
 */
void rnic_lane_tx_init(struct rnic_lane_tx *tx, struct rnic_lane *sh,
		       unsigned int index, uint32_t window, bool fence);

/* Readies the receiver's end of lane @index, likewise. */
void rnic_lane_rx_init(struct rnic_lane_rx *rx, struct rnic_lane *sh,
		       unsigned int index);

/*
 * Looks at the credits; tx->taken and tx->bytes_taken move. Returns true if
 * descriptors were consumed since the last look. Impossible values, which
 * only a broken peer writes, are ignored.
 */
bool rnic_lane_refresh(struct rnic_lane_tx *tx);

/*
 * Reserves @len bytes of the byte ring in one piece, at most
 * RNIC_RING_MSG_MAX. Returns where to copy, or NULL if there is no room now.
 * The bytes become visible with the next descriptor of kind RING.
 */
uint8_t *rnic_lane_bytes(struct rnic_lane_tx *tx, uint32_t len);

/*
 * Keeps the bytes that rnic_lane_bytes() has just given for @len, whatever the
 * receiver credits: it writes a reply there. Returns where they begin, for
 * rnic_lane_release().
 */
uint32_t rnic_lane_hold(struct rnic_lane_tx *tx, uint32_t len);

/*
 * The oldest held bytes were read; the next held ones begin at @next, or
 * (@none) there are none.
 */
void rnic_lane_release(struct rnic_lane_tx *tx, bool none, uint32_t next);

/*
 * The receiver's side of rnic_lane_bytes(): where the @len bytes of the RING
 * descriptor at hand lie. @len is bounded by the caller. Moves rx->bytes. Only
 * a reply is ever written there.
 */
uint8_t *rnic_lane_take_bytes(struct rnic_lane_rx *rx, uint32_t len);

/*
 * Writes an answer. Returns false if the sender has not taken enough older
 * ones: the caller keeps the answer and tries again later.
 */
bool rnic_lane_ret_put(struct rnic_lane_rx *rx, enum rnic_ret_code code,
		       const struct rnic_ret *r);

/*
 * Reads the next answer into *@r and takes it. Returns its code, or
 * RNIC_RET_NONE if there is none.
 */
enum rnic_ret_code rnic_lane_ret_take(struct rnic_lane_tx *tx,
				      struct rnic_ret *r);

/* True if rnic_lane_ret_put() has room now. */
static inline bool rnic_lane_ret_room(const struct rnic_lane_rx *rx)
{
	/* relaxed: putting acquires (L4); the room only grows meanwhile */
	return rx->ret - rnic_load32_relaxed(&rx->sh->ret_taken) <
	       RNIC_RET_ENTRIES;
}

/* Descriptors that may be posted now, by the last known credits. */
static inline uint32_t rnic_lane_room(const struct rnic_lane_tx *tx)
{
	return tx->window - (tx->seq - tx->taken);
}

/* The place of the next descriptor; there is room (rnic_lane_room()). */
static inline struct rnic_desc *rnic_lane_slot(const struct rnic_lane_tx *tx)
{
	return &tx->sh->desc[(tx->seq + tx->stagger) % RNIC_LANE_LINES];
}

/*
 * The descriptor to be written a few sends from now: while stores wait for
 * one line, the next ones may already be on their way.
 */
static inline const struct rnic_desc *
rnic_lane_ahead(const struct rnic_lane_tx *tx)
{
	return &tx->sh->desc[(tx->seq + tx->stagger + RNIC_LANE_AHEAD) %
			     RNIC_LANE_LINES];
}

/*
 * Publishes the descriptor written at rnic_lane_slot(). Returns true if the
 * receiver parked this lane: the caller rings its doorbell.
 * L1: publishes the descriptor and the payload it names; pairs with the load
 * in rnic_lane_peek().
 */
static inline bool rnic_lane_publish(struct rnic_lane_tx *tx,
				     struct rnic_desc *d,
				     enum rnic_desc_kind kind,
				     unsigned int flags, size_t len)
{
	rnic_tsan_lane_put(RNIC_TSAN_DESC, tx->seq);
	/* L1 */
	rnic_store64_release(&d->head,
			     rnic_desc_head(++tx->seq, kind, flags, len));
	/*
	 * The store above before the load below: the parking receiver
	 * fences us by membarrier between its store of hot and its last
	 * look; where it cannot, we fence.
	 */
	if (tx->fence)
		rnic_fence_full();
	else
		rnic_compiler_barrier();
	return !rnic_load32_relaxed(&tx->sh->flag.hot);
}

/*
 * The next descriptor if it is there, else NULL. *@head is its head word,
 * read once.
 */
static inline struct rnic_desc *rnic_lane_peek(const struct rnic_lane_rx *rx,
					       uint64_t *head)
{
	struct rnic_desc *d =
		&rx->sh->desc[(rx->seq + rx->stagger) % RNIC_LANE_LINES];

	/* L1: acquires what rnic_lane_publish() released */
	*head = rnic_load64_acquire(&d->head);
	/* 1 is added so that a zeroed ring is empty */
	if ((uint32_t)*head != (uint32_t)(rx->seq + 1))
		return NULL;
	rnic_tsan_lane_took(RNIC_TSAN_DESC, rx->seq);
	return d;
}

/*
 * The head word at which the next descriptor will be seen; *@awaits is what
 * its low half will be.
 */
static inline const rnic_a64 *rnic_lane_tail(const struct rnic_lane_rx *rx,
					     uint32_t *awaits)
{
	*awaits = rx->seq + 1;
	return &rx->sh->desc[(rx->seq + rx->stagger) % RNIC_LANE_LINES].head;
}

/*
 * Credits everything taken so far.
 * L2: releases the places; pairs with the loads in rnic_lane_refresh(). Each
 * of the two, since the sender may see one of them and not yet the other.
 */
static inline void rnic_lane_credit(struct rnic_lane_rx *rx)
{
	rnic_store32_release(&rx->sh->credit.bytes_taken, rx->bytes);
	rnic_store32_release(&rx->sh->credit.desc_taken, rx->seq);
	rx->credited = rx->seq;
}

/* Done with the descriptor of rnic_lane_peek(): its payload was copied. */
static inline void rnic_lane_take(struct rnic_lane_rx *rx)
{
	rx->seq++;
	if (rx->seq - rx->credited >= RNIC_CREDIT_LINES)
		rnic_lane_credit(rx);
}

/* The lane ran empty: credits what is left. */
static inline void rnic_lane_idle(struct rnic_lane_rx *rx)
{
	if (rx->seq != rx->credited)
		rnic_lane_credit(rx);
}

/* The kind in a head word, not yet bounded. */
static inline unsigned int rnic_desc_kind_of(uint64_t head)
{
	return head >> 32 & 0xff;
}

/* The flags in a head word. */
static inline unsigned int rnic_desc_flags_of(uint64_t head)
{
	return head >> 40 & 0xff;
}

/* The length in a head word, not yet bounded. */
static inline unsigned int rnic_desc_len_of(uint64_t head)
{
	return (unsigned int)(head >> 48);
}

#endif /* RNIC_LANE_H */
