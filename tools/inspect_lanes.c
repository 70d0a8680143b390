/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Heads, claims, lanes. All words are copies: loads are relaxed, since the
 * reads that made the copies were system calls.
 */
#include "tools/inspect_lanes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shm/device.h"
#include "shm/lane.h"
#include "tools/inspect_file.h"
#include "tools/inspect_note.h"
#include "tools/inspect_tables.h"

/* What is read of a lane: all but its byte ring. */
enum { LANE_READ = offsetof(struct rnic_lane, bytes) };

/* Copies of what the mailbox has of a place; too large for a stack. */
struct work {
	struct insp_device *d;
	struct insp_place *p;	  /* at hand */
	struct rnic_ep_head head; /* of it */
	struct rnic_lane lane;	  /* at hand, without its byte ring */
	bool lanes;		  /* are kept */
};

/* ---- a lane ---- */

/* Notes what is wrong with the lane at hand. */
#define lane_note(w, l, fmt, ...)                                              \
	insp_note(&(w)->d->notes, "place %u lane %u: " fmt, (l)->place,        \
		  (l)->index, __VA_ARGS__)

static bool sender_dead(const struct insp_device *d, uint64_t claim)
{
	uint64_t identity;

	return d->here && rnic_claim_identity(claim, &identity) == -ESRCH;
}

/*
 * Counts the descriptors that were published after the last credit: each has
 * its own sequence number, plus one.
 */
static void count_waiting(struct work *w, struct insp_lane *l)
{
	unsigned int stagger = l->index * RNIC_LANE_STAGGER % RNIC_LANE_LINES;

	for (l->waiting = 0; l->waiting < RNIC_LANE_LINES; l->waiting++) {
		uint32_t seq = l->taken + l->waiting;
		const struct rnic_desc *e =
			&w->lane.desc[(seq + stagger) % RNIC_LANE_LINES];
		uint64_t head = rnic_load64_relaxed(&e->head);
		unsigned int kind = rnic_desc_kind_of(head);

		if ((uint32_t)head != (uint32_t)(seq + 1))
			break;
		if (!kind || kind >= RNIC_DESC_KINDS)
			lane_note(w, l, "a descriptor of kind %u", kind);
		else if (kind == RNIC_DESC_INLINE &&
			 rnic_desc_len_of(head) > RNIC_INLINE_MAX)
			lane_note(w, l, "%u bytes within a descriptor",
				  rnic_desc_len_of(head));
	}
}

static void readers_fill(const struct rnic_lane *sh, struct insp_lane *l)
{
	for (unsigned int c = 0; c < RNIC_CTX_PER_EP; c++) {
		l->seq[c] = rnic_load64_relaxed(&sh->reader[c].seq);
		l->announced[c] = 0;
		for (unsigned int i = 0; i < RNIC_FILTER_BITS / 64; i++)
			l->announced[c] += (unsigned int)__builtin_popcountll(
				rnic_load64_relaxed(&sh->announce[c][i]));
	}
}

static void lane_fill(struct work *w, struct insp_lane *l)
{
	const struct rnic_lane *sh = &w->lane;

	l->named = sh->sender.magic == RNIC_MAGIC_ADDR;
	l->sender = l->named ? sh->sender.ep : 0;
	l->state = rnic_load32_relaxed(&sh->tx_state);
	l->parked = rnic_load32_relaxed(&sh->tx_parked);
	l->hot = rnic_load32_relaxed(&sh->flag.hot);
	l->over = rnic_load32_relaxed(&sh->flag.over_budget);
	l->mapped = rnic_load32_relaxed(&sh->flag.mapped);
	l->closed = rnic_load32_relaxed(&sh->flag.rx_closed);
	l->taken = rnic_load32_relaxed(&sh->credit.desc_taken);
	l->bytes_taken = rnic_load32_relaxed(&sh->credit.bytes_taken);
	l->answers = rnic_load32_relaxed(&sh->credit.ret_head);
	l->answers_taken = rnic_load32_relaxed(&sh->ret_taken);
	readers_fill(sh, l);
	count_waiting(w, l);
}

static void lane_check(struct work *w, const struct insp_lane *l)
{
	const struct rnic_addr *a = &w->lane.sender;

	if (l->state > RNIC_TX_CLOSED)
		lane_note(w, l, "sender in state %" PRIu32, l->state);
	if (l->state == RNIC_TX_LIVE &&
	    (!l->named || a->version != RNIC_VERSION ||
	     a->kind != RNIC_ADDR_ENDPOINT || a->ep >= RNIC_EP_MAX))
		lane_note(w, l, "no address of an endpoint, magic %#" PRIx32,
			  a->magic);
	/* both move between our looks at them: the later one may be ahead */
	if (l->answers - l->answers_taken > RNIC_RET_ENTRIES &&
	    l->answers_taken - l->answers > RNIC_RET_ENTRIES)
		lane_note(w, l,
			  "%" PRIu32 " answers written, %" PRIu32 " taken",
			  l->answers, l->answers_taken);
}

/* The word at @field of the head of the place at hand, now. */
static uint64_t head_now(const struct work *w, size_t field)
{
	uint64_t word;

	insp_read(&w->d->mailbox, rnic_head_off(w->p->index) + field, &word,
		  sizeof(word));
	return word;
}

static uint64_t claim_now(const struct work *w, unsigned int i)
{
	return head_now(w, offsetof(struct rnic_ep_head, claim) +
				   i * sizeof(rnic_a64));
}

static void claim_check(struct work *w, const struct insp_lane *l,
			uint64_t claim)
{
	uint64_t hi = head_now(w, offsetof(struct rnic_ep_head, lane_hi));

	if (!(claim >> 63) && claim)
		lane_note(w, l, "claim %#" PRIx64 " is none", claim);
	/* it was raised before the claim, and is never lowered */
	if (l->index >= hi)
		lane_note(w, l, "claimed, none is from %" PRIu64 " on", hi);
}

static void lane_look(struct work *w, unsigned int i, uint64_t claim,
		      struct insp_lane *l)
{
	*l = (struct insp_lane){ .place = w->p->index, .index = i };
	l->pid = rnic_claim_pid(claim);
	insp_read(&w->d->mailbox, rnic_lane_off(w->p->index, i), &w->lane,
		  LANE_READ);
	lane_fill(w, l);
	lane_check(w, l);
	claim_check(w, l, claim);
}

/*
 * Reads lane @i, of which the claim is @claim. What is not in step with
 * itself may only have moved under the look, so it is looked at again. False:
 * it is free by now.
 */
static bool lane_read(struct work *w, unsigned int i, uint64_t claim,
		      struct insp_lane *l)
{
	struct insp_notes *notes = &w->d->notes;
	unsigned int n = notes->n, more = notes->more;

	for (int k = 0; k < INSP_RETRIES && claim; k++) {
		uint64_t was = claim;

		insp_notes_cut(notes, n);
		notes->more = more;
		lane_look(w, i, claim, l);
		claim = claim_now(w, i);
		l->torn = claim != was;
		if (!l->torn && notes->n == n && notes->more == more)
			break;
	}
	if (claim)
		l->dead = sender_dead(w->d, claim);
	else
		insp_notes_cut(notes, n);
	return claim;
}

/* ---- a place ---- */

static void place_lanes(struct work *w)
{
	struct insp_lane l;

	for (unsigned int i = 0; i < RNIC_LANE_MAX; i++) {
		uint64_t claim = rnic_load64_relaxed(&w->head.claim[i]);

		if (!claim || !lane_read(w, i, claim, &l))
			continue;
		w->p->lanes++;
		if (i >= w->p->lane_hi)
			lane_note(w, &l, "claimed, none is from %" PRIu64 " on",
				  w->p->lane_hi);
		if (w->lanes)
			*(struct insp_lane *)insp_grow((void **)&w->d->lane,
						       w->d->nlanes++,
						       sizeof(l)) = l;
	}
	w->d->claimed += w->p->lanes;
}

static void head_fill(const struct rnic_ep_head *h, struct insp_place *p)
{
	uint64_t state = rnic_load64_relaxed(&h->state);

	p->state = (uint32_t)state;
	p->gen = state >> 32;
	p->sleeping = rnic_load32_relaxed(&h->sleeping);
	p->events = rnic_load32_relaxed(&h->event_mask);
	p->bell = rnic_load64_relaxed(&h->bell);
	p->ret_bell = rnic_load64_relaxed(&h->ret_bell);
	for (unsigned int i = 0; i < RNIC_LANE_MAX / 64; i++)
		p->bells += (unsigned int)__builtin_popcountll(
			rnic_load64_relaxed(&h->lane_bell[i]));
	p->lane_hi = rnic_load64_relaxed(&h->lane_hi);
}

static void place_check(struct insp_device *d, const struct insp_place *p)
{
	if (p->state > RNIC_EP_CLOSED)
		insp_note(&d->notes, "place %u: state %u", p->index, p->state);
	if (p->lane_hi > RNIC_LANE_MAX)
		insp_note(&d->notes, "place %u: %" PRIu64 " lanes, at most %d",
			  p->index, p->lane_hi, RNIC_LANE_MAX);
}

static void place_arena(const struct insp_device *d, struct insp_place *p)
{
	uint64_t off = p->index * RNIC_ARENA_EP_STRIDE;
	uint64_t pool = d->hdr.pool_bytes, heap = d->hdr.heap_bytes;

	if (pool <= RNIC_POOL_MAX)
		p->pool = insp_data(&d->arena, off, pool);
	if (heap <= RNIC_HEAP_MAX)
		p->heap = insp_data(&d->arena, off + RNIC_HEAP_OFF, heap);
}

/* Reads the head at @off; what has no memory is zeros. */
static bool head_read(struct work *w, uint64_t off)
{
	const struct rnic_segment *s = &w->d->mailbox;
	uint64_t limit = off + sizeof(w->head), at = off, end;

	if (s->fd < 0 || limit > s->size)
		return false;
	if (insp_next_data(s, &at, &end, limit))
		return insp_read(s, off, &w->head, sizeof(w->head));
	memset(&w->head, 0, sizeof(w->head));
	return true;
}

/* Reads place @i into *@p. False if nothing ever was there. */
static bool place_read(struct work *w, unsigned int i, struct insp_place *p)
{
	bool any = false;

	*p = (struct insp_place){ .index = i };
	w->p = p;
	insp_stats_read(w->d, i, p->stats);
	for (unsigned int k = 0; k < INSP_STATS; k++)
		any |= p->stats[k] != 0;
	p->readable = head_read(w, rnic_head_off(i));
	if (p->readable)
		head_fill(&w->head, p);
	if (!any && !p->state)
		return false;
	place_check(w->d, p);
	if (p->readable)
		place_lanes(w);
	place_arena(w->d, p);
	return true;
}

void insp_places_read(struct insp_device *d, bool lanes)
{
	struct work *w = insp_alloc(1, sizeof(*w));
	struct insp_place p;

	w->d = d;
	w->lanes = lanes;
	for (unsigned int i = 0; i < RNIC_EP_MAX; i++) {
		if (!place_read(w, i, &p))
			continue;
		*(struct insp_place *)insp_grow((void **)&d->place,
						d->nplaces++, sizeof(p)) = p;
		d->open += p.state == RNIC_EP_OPEN;
		for (unsigned int k = 0; k < INSP_STATS; k++)
			d->stats[k] += p.stats[k];
	}
	free(w);
}
