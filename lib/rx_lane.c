/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Lanes into an endpoint: found, drained, parked, freed.
 *
 *   free --claim, LIVE, bell--> hot <--bell / idle--> parked
 *   any  --CLOSED or death, drained--> free
 *
 * Exclusion: the endpoint's lock. Against senders: the order of hot,
 * doorbell and descriptors, see the table in doc/design.md.
 */
#include "lib/rx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "lib/av.h"
#include "lib/domain.h"
#include "lib/peer.h"
#include "shm/breakage.h"
#include "shm/fence.h"
#include "shm/identity.h"
#include "shm/log.h"

enum {
	DRAIN_MAX = 256,   /* descriptors of a lane in one call */
	SCAN_AHEAD = 64,   /* unknown claims looked for behind the last */
	HOT_FREE = 8,	   /* so many hot lanes cost next to nothing */
	IDLE_POLLS = 4096, /* empty polls before a lane is parked */
	HOT_MIN = 16,	   /* first size of the hot table */
	LOOKS = 6,	   /* more of them at the only lane in one call */
	NAP_NS = 2000000,  /* sleep while a lane is stuck */
	GIVE_UP_MS = 3000, /* for what the dead have left */
};

/* ---- answers ---- */

static RNIC_COLD void ring(struct shrimp_rx_lane *l)
{
	if (!shrimp_lane_attach(l) && rnic_remote_ring_return(l->remote))
		rnic_count64(&l->ep->stats->wakeups, 1);
}

/* Tells a sender that sleeps, or is about to, that something changed. */
static inline void ring_if_parked(struct shrimp_rx_lane *l)
{
	/*
	 * Our store (answer, credit) before this load: the sender fenced us
	 * by membarrier before its last look. If it cannot (tx_unfenced), or
	 * we are outside the reach of membarrier, we fence.
	 */
	if (RNIC_UNLIKELY(l->fence))
		rnic_fence_full();
	else
		rnic_compiler_barrier();
	if (RNIC_UNLIKELY(rnic_load32_relaxed(&l->rx.sh->tx_parked)))
		ring(l);
}

static bool put_answer(struct shrimp_rx_lane *l, enum rnic_ret_code code,
		       const struct rnic_ret *r)
{
	if (!rnic_lane_ret_put(&l->rx, code, r))
		return false;
	ring_if_parked(l);
	return true;
}

void shrimp_rx_answer(struct shrimp_rx_lane *l, enum rnic_ret_code code,
		      const struct rnic_ret *r)
{
	struct shrimp_answer *a;

	if (l->broken)
		return;
	if (cds_list_empty(&l->answers) && put_answer(l, code, r))
		return;
	a = malloc(sizeof(*a));
	if (!a) {
		rnic_log(RNIC_LOG_WARN, "answer to pid %u lost: no memory",
			 l->peer->addr.pid);
		return;
	}
	a->code = code;
	a->ret = *r;
	cds_list_add_tail(&a->link, &l->answers);
}

static void flush_answers(struct shrimp_rx_lane *l)
{
	while (!cds_list_empty(&l->answers)) {
		struct shrimp_answer *a = cds_list_first_entry(
			&l->answers, struct shrimp_answer, link);

		if (!put_answer(l, a->code, &a->ret))
			return;
		cds_list_del(&a->link);
		free(a);
	}
}

/* ---- descriptors ---- */

/* What became of a descriptor. */
enum step {
	STEP_TAKEN,  /* done with it */
	STEP_LATER,  /* cannot be done now: leave it in the lane */
	STEP_BROKEN, /* nonsense: the sender is ignored from now on */
};

/* What becomes of a payload whose memory cannot be had: @ret says why. */
static enum step out_of_reach(const struct shrimp_rx_lane *l, int ret)
{
	if (shrimp_lane_waits(l, ret))
		return STEP_LATER;
	/* the sender is gone and was never mapped: contract P4 */
	if (shrimp_lane_left(l))
		return STEP_TAKEN;
	rnic_log(RNIC_LOG_WARN, "pid %u sends from memory out of our reach: %s",
		 l->peer->addr.pid, strerror(-ret));
	return STEP_BROKEN;
}

/* The payload of a chunk descriptor, or NULL with *@why. */
static const uint8_t *chunk_payload(struct shrimp_rx_lane *l,
				    const struct rnic_desc_ext *x,
				    enum step *why)
{
	int ret = shrimp_lane_pool(l);
	uint64_t off;

	if (ret) {
		*why = out_of_reach(l, ret);
		return NULL;
	}
	if (rnic_pool_locate(&l->remote->geom, x->chunk,
			     RNIC_BROKEN(chunk_len) ? 0 : x->chunk_len, &off))
		return l->remote->pool + off;
	*why = STEP_BROKEN;
	return NULL;
}

/* A message whose first payload cannot be had; counted if it is given up. */
static enum step drop_message(struct shrimp_rx_lane *l, enum step why)
{
	if (why == STEP_TAKEN)
		rnic_count64(&l->ep->stats->dropped, 1);
	return why;
}

static enum step step_of(int ret)
{
	return ret == -FI_ENOMEM ? STEP_LATER : ret ? STEP_BROKEN : STEP_TAKEN;
}

/* The fields common to the arrival of any message. */
RNIC_HOT struct shrimp_arrival arrival(const struct rnic_desc *d, uint64_t head,
				       enum fi_shrimp_path path)
{
	/* relaxed: acquired with the head (L1) */
	return (struct shrimp_arrival){
		.tag = rnic_load64_relaxed(&d->tag),
		.data = rnic_load64_relaxed(&d->data),
		.flags = (uint8_t)rnic_desc_flags_of(head),
		.path = (uint8_t)path,
	};
}

static enum step step_inline(struct shrimp_rx_lane *l,
			     const struct rnic_desc *d, uint64_t head)
{
	struct shrimp_arrival a = arrival(d, head, FI_SHRIMP_PATH_INLINE);

	a.p = d->payload;
	a.len = rnic_desc_len_of(head);
	if (a.len > RNIC_INLINE_MAX)
		return STEP_BROKEN;
	return step_of(shrimp_rx_whole(l, &a));
}

static enum step step_ring(struct shrimp_rx_lane *l, const struct rnic_desc *d,
			   uint64_t head)
{
	struct shrimp_arrival a = arrival(d, head, FI_SHRIMP_PATH_RING);
	uint32_t bytes = l->rx.bytes;
	enum step s;

	a.len = rnic_desc_len_of(head);
	if (a.len > RNIC_RING_MSG_MAX)
		return STEP_BROKEN;
	if (a.flags & (RNIC_DESC_ACK_DONE | RNIC_DESC_ACK_MATCH))
		memcpy(&a.op, &d->ext.op, sizeof(a.op));
	a.p = rnic_lane_take_bytes(&l->rx, (uint32_t)a.len);
	s = step_of(shrimp_rx_whole(l, &a));
	if (s == STEP_LATER)
		l->rx.bytes = bytes;
	return s;
}

static enum step step_chunk(struct shrimp_rx_lane *l, const struct rnic_desc *d,
			    uint64_t head)
{
	struct shrimp_arrival a = arrival(d, head, FI_SHRIMP_PATH_POOL);
	struct rnic_desc_ext x = d->ext;
	enum step why;

	rnic_compiler_barrier();
	a.p = chunk_payload(l, &x, &why);
	if (!a.p)
		return drop_message(l, why);
	a.len = x.chunk_len;
	if (a.flags & (RNIC_DESC_ACK_DONE | RNIC_DESC_ACK_MATCH))
		a.op = x.op;
	return step_of(shrimp_rx_whole(l, &a));
}

static enum step step_first(struct shrimp_rx_lane *l, const struct rnic_desc *d,
			    uint64_t head)
{
	struct shrimp_arrival a = arrival(d, head, FI_SHRIMP_PATH_POOL);
	struct rnic_desc_ext x = d->ext;
	enum step why;
	int ret;

	rnic_compiler_barrier();
	if (l->cur || l->skip || x.total <= x.chunk_len ||
	    x.total > RNIC_POOL_MAX)
		return STEP_BROKEN;
	a.p = chunk_payload(l, &x, &why);
	if (!a.p) {
		if (why == STEP_TAKEN)
			l->skip = x.total - x.chunk_len;
		return drop_message(l, why);
	}
	if (a.flags & (RNIC_DESC_ACK_DONE | RNIC_DESC_ACK_MATCH))
		a.op = x.op;
	ret = shrimp_rx_first(l, &a, x.total);
	if (!ret)
		ret = shrimp_rx_feed(l->cur, 0, a.p, x.chunk_len);
	return step_of(ret);
}

/* @len more bytes of a message that was dropped with its first ones. */
static enum step skip_next(struct shrimp_rx_lane *l, uint32_t len)
{
	if (!l->skip || len > l->skip)
		return STEP_BROKEN;
	l->skip -= len;
	return STEP_TAKEN;
}

static enum step step_next(struct shrimp_rx_lane *l, const struct rnic_desc *d)
{
	struct rnic_desc_ext x = d->ext;
	const uint8_t *p;
	enum step why;

	rnic_compiler_barrier();
	if (!l->cur)
		return skip_next(l, x.chunk_len);
	p = chunk_payload(l, &x, &why);
	if (!p)
		return why;
	return step_of(shrimp_rx_feed(l->cur, l->cur->got, p, x.chunk_len));
}

static enum step step_held(struct shrimp_rx_lane *l, const struct rnic_desc *d,
			   uint64_t head, bool heap)
{
	struct shrimp_arrival a = arrival(
		d, head, heap ? FI_SHRIMP_PATH_HEAP : FI_SHRIMP_PATH_STREAM);
	struct rnic_desc_ext x = d->ext;

	rnic_compiler_barrier();
	a.len = x.total;
	a.op = x.op;
	return step_of(shrimp_rx_held(l, &a, &x, heap));
}

static enum step step_data(struct shrimp_rx_lane *l, const struct rnic_desc *d)
{
	struct rnic_desc_ext x = d->ext;
	/* relaxed: acquired with the head (L1) */
	uint64_t name = rnic_load64_relaxed(&d->tag);
	uint64_t off = rnic_load64_relaxed(&d->data);
	struct shrimp_inbound *in = shrimp_names_find(&l->ep->in_names, name);
	const uint8_t *p;
	enum step why;

	rnic_compiler_barrier();
	/* names come from a peer: only its own messages count */
	if (!in || in->lane != l ||
	    (x.chunk == RNIC_CHUNK_NONE && x.chunk_len > RNIC_RING_MSG_MAX))
		return STEP_BROKEN;
	if (x.chunk == RNIC_CHUNK_NONE)
		p = rnic_lane_take_bytes(&l->rx, x.chunk_len);
	else
		p = chunk_payload(l, &x, &why);
	if (!p)
		return why;
	return step_of(shrimp_rx_feed(in, off, p, x.chunk_len));
}

/*
 * Remote CQ data takes no receive, so only the unread completions bound it: it
 * waits in the lane until some are read. Of a sender that left it does not.
 */
static bool cq_full(const struct shrimp_rx_lane *l, uint64_t head)
{
	const struct shrimp_ep *ep = l->ep;

	return rnic_desc_flags_of(head) & RNIC_DESC_CQ_DATA && ep->rx_cq &&
	       shrimp_cq_unread(ep->rx_cq) >= ep->cq_max &&
	       !shrimp_lane_left(l);
}

/* RMA by the sender ended here: its bytes came before this. */
static enum step step_event(struct shrimp_rx_lane *l, const struct rnic_desc *d,
			    uint64_t head)
{
	struct shrimp_arrival a = arrival(d, head, FI_SHRIMP_PATH_INLINE);
	struct rnic_desc_ext x = d->ext;

	rnic_compiler_barrier();
	if (RNIC_UNLIKELY(cq_full(l, head)))
		return STEP_LATER;
	a.len = x.total;
	shrimp_rx_event(l, &a, x.chunk, x.op);
	return STEP_TAKEN;
}

/*
 * Replies have no name, so none may be lost: without room for it in the return
 * ring the request waits. Of a sender that left it does not.
 */
static enum step step_ask(struct shrimp_rx_lane *l, const struct rnic_desc *d,
			  uint64_t head)
{
	bool room = cds_list_empty(&l->answers) && rnic_lane_ret_room(&l->rx);

	if ((!room && !shrimp_lane_left(l)) || cq_full(l, head))
		return STEP_LATER;
	switch (shrimp_rx_ask(l, d, head)) {
	case 0:
		return STEP_TAKEN;
	case -EBUSY:
		return STEP_LATER;
	default:
		return STEP_BROKEN;
	}
}

static enum step take_step(struct shrimp_rx_lane *l, const struct rnic_desc *d,
			   uint64_t head)
{
	switch (rnic_desc_kind_of(head)) {
	case RNIC_DESC_INLINE:
		return step_inline(l, d, head);
	case RNIC_DESC_RING:
		return step_ring(l, d, head);
	case RNIC_DESC_CHUNK:
		return step_chunk(l, d, head);
	case RNIC_DESC_FIRST:
		return step_first(l, d, head);
	case RNIC_DESC_NEXT:
		return step_next(l, d);
	case RNIC_DESC_HELD:
		return step_held(l, d, head, false);
	case RNIC_DESC_HEAP:
		return step_held(l, d, head, true);
	case RNIC_DESC_DATA:
		return step_data(l, d);
	case RNIC_DESC_EVENT:
		return step_event(l, d, head);
	case RNIC_DESC_ASK:
		return step_ask(l, d, head);
	default:
		return STEP_BROKEN;
	}
}

/* Entry @i of the hot table goes; the last one takes its place. */
static void hot_del(struct shrimp_ep *ep, size_t i)
{
	ep->hot[i]->hot = false;
	ep->hot[i] = ep->hot[--ep->nhot];
}

static void hot_remove(struct shrimp_rx_lane *l)
{
	for (size_t i = 0; i < l->ep->nhot; i++)
		if (l->ep->hot[i] == l) {
			hot_del(l->ep, i);
			return;
		}
}

/* The sender wrote nonsense: its lane is read no more (contract L3). */
static void lane_break(struct shrimp_rx_lane *l, uint64_t head)
{
	rnic_log(RNIC_LOG_WARN,
		 "pid %u wrote a descriptor that makes no "
		 "sense (head %#llx): its lane is closed",
		 l->peer->addr.pid, (unsigned long long)head);
	l->broken = true;
	/* nobody looks there again, whoever rings: see hot_add() */
	hot_remove(l);
	/* R3, as in shrimp_rx_fini() */
	rnic_store32_release(&l->rx.sh->flag.rx_closed, 1);
}

/* Takes what is there, up to DRAIN_MAX. Returns how many. */
static size_t drain(struct shrimp_rx_lane *l)
{
	size_t n = 0;

	l->later = false;
	while (n < DRAIN_MAX && !l->broken) {
		uint64_t head;
		struct rnic_desc *d = rnic_lane_peek(&l->rx, &head);
		enum step s;

		if (!d)
			break;
		s = take_step(l, d, head);
		if (s == STEP_LATER) {
			l->ep->later = l->later = true;
			break;
		}
		if (s == STEP_BROKEN) {
			lane_break(l, head);
			break;
		}
		rnic_lane_take(&l->rx);
		n++;
	}
	return n;
}

/*
 * Drains @l and credits all of it at once: the application may not poll
 * again for long, and the sender's completions wait for it.
 */
static size_t poll_lane(struct shrimp_rx_lane *l)
{
	size_t n = drain(l);

	if (n) {
		l->idle = 0;
		rnic_lane_idle(&l->rx);
		ring_if_parked(l);
	} else {
		l->idle++;
	}
	if (!cds_list_empty(&l->answers))
		flush_answers(l);
	return n;
}

/* Takes the message in @d if it is one for the short way. */
RNIC_HOT bool quick_inline(struct shrimp_rx_lane *l, const struct rnic_desc *d,
			   uint64_t head)
{
	struct shrimp_arrival a = arrival(d, head, FI_SHRIMP_PATH_INLINE);

	a.p = d->payload;
	a.len = rnic_desc_len_of(head);
	return a.len <= RNIC_INLINE_MAX && shrimp_rx_simple(l, &a);
}

/* The same of one in the byte ring that nobody waits for. */
RNIC_HOT bool quick_ring(struct shrimp_rx_lane *l, const struct rnic_desc *d,
			 uint64_t head)
{
	struct shrimp_arrival a = arrival(d, head, FI_SHRIMP_PATH_RING);
	uint32_t bytes = l->rx.bytes;

	a.len = rnic_desc_len_of(head);
	if (a.len > RNIC_RING_MSG_MAX ||
	    a.flags & (RNIC_DESC_ACK_DONE | RNIC_DESC_ACK_MATCH))
		return false;
	a.p = rnic_lane_take_bytes(&l->rx, (uint32_t)a.len);
	if (RNIC_LIKELY(shrimp_rx_simple(l, &a)))
		return true;
	l->rx.bytes = bytes;
	return false;
}

RNIC_HOT bool quick_take(struct shrimp_rx_lane *l, const struct rnic_desc *d,
			 uint64_t head)
{
	unsigned int kind = rnic_desc_kind_of(head);
	bool done = false;

	if (RNIC_LIKELY(kind == RNIC_DESC_INLINE))
		done = quick_inline(l, d, head);
	else if (kind == RNIC_DESC_RING)
		done = quick_ring(l, d, head);
	if (RNIC_LIKELY(done))
		rnic_lane_take(&l->rx);
	return done;
}

/* False: the lane has something for the long way, or there is no more room. */
RNIC_HOT bool quick_lane(struct shrimp_rx_lane *l, struct shrimp_cq_sink *sink)
{
	struct shrimp_ep *ep = l->ep;
	uint64_t head;
	struct rnic_desc *d = rnic_lane_peek(&l->rx, &head);

	if (RNIC_UNLIKELY(!cds_list_empty(&l->answers)))
		return false;
	if (!d)
		return true;
	for (; d; d = rnic_lane_peek(&l->rx, &head))
		if (RNIC_UNLIKELY(!sink || !sink->room) ||
		    RNIC_UNLIKELY(!quick_take(l, d, head)))
			break;
	l->idle = 0;
	/* see poll_lane() */
	rnic_lane_idle(&l->rx);
	ring_if_parked(l);
	if (RNIC_UNLIKELY(d != NULL))
		return false;
	ep->empty = 0;
	sink->tail = rnic_lane_tail(&l->rx, &sink->awaits);
	return true;
}

/*
 * The only lane was empty in this call and in the one before: the client
 * waits. Between two of its calls lie some 20 ns in which nobody looks, so a
 * few looks more in each find a message sooner, see doc/design.md.
 */
RNIC_HOT bool linger(struct shrimp_rx_lane *l, struct shrimp_cq_sink *sink)
{
	uint64_t head;

	for (int i = 0; i < LOOKS; i++) {
		if (rnic_lane_peek(&l->rx, &head))
			return quick_lane(l, sink);
		rnic_compiler_barrier();
	}
	return true;
}

bool shrimp_rx_quick(struct shrimp_ep *ep, struct shrimp_cq_sink *sink)
{
	bool done = true;

	ep->empty++;
	ep->sink = sink;
	for (size_t i = 0; i < ep->nhot && done; i++)
		done = quick_lane(ep->hot[i], sink);
	if (done && ep->nhot == 1 && ep->empty > 1 && sink)
		done = linger(ep->hot[0], sink);
	ep->sink = NULL;
	return done;
}

/* ---- the life of a lane ---- */

static int hot_add(struct shrimp_rx_lane *l)
{
	struct shrimp_ep *ep = l->ep;

	if (l->hot || l->broken)
		return 0;
	if (ep->nhot == ep->hot_room) {
		size_t room = ep->hot_room ? 2 * ep->hot_room : HOT_MIN;
		void *t = realloc(ep->hot, room * sizeof(*ep->hot));

		if (!t)
			return -FI_ENOMEM;
		ep->hot = t;
		ep->hot_room = room;
	}
	ep->hot[ep->nhot++] = l;
	l->hot = true;
	l->idle = 0;
	/* relaxed: until the sender sees it, it rings in vain */
	rnic_store32_relaxed(&l->rx.sh->flag.hot, 1);
	return 0;
}

/* Room for lane number @i in the table. */
static int lanes_grow(struct shrimp_ep *ep, unsigned int i)
{
	struct shrimp_rx_lane **t;

	if (ep->lanes && i < ep->nlanes)
		return 0;
	t = realloc(ep->lanes, (i + 1) * sizeof(*t));
	if (!t)
		return -FI_ENOMEM;
	for (size_t n = ep->nlanes; n <= i; n++)
		t[n] = NULL;
	ep->lanes = t;
	ep->nlanes = i + 1;
	return 0;
}

/*
 * Reads word @at of the lane through the descriptor: a lane whose claimer
 * died before it got pages must not be touched (contract L2).
 */
static uint32_t lane_peek_state(const struct shrimp_ep *ep, unsigned int i)
{
	uint64_t at = rnic_lane_off(ep->place.index, i) +
		      offsetof(struct rnic_lane, tx_state);
	uint32_t state = RNIC_TX_NONE;

	if (pread(ep->domain->dev.mailbox.fd, &state, sizeof(state),
		  (off_t)at) != sizeof(state))
		return RNIC_TX_NONE;
	return state;
}

/*
 * The process behind @claim. Returns 0; -ESRCH: it is gone; another negative
 * errno: not known now, to be asked again with the next scan.
 */
static int claimer(uint64_t claim, struct rnic_proc **proc)
{
	uint64_t identity;
	int ret = rnic_claim_identity(claim, &identity);

	*proc = NULL;
	return ret ? ret : rnic_proc_get(rnic_claim_pid(claim), identity, proc);
}

static struct shrimp_rx_lane *lane_new(struct shrimp_ep *ep, unsigned int i)
{
	struct shrimp_rx_lane *l = calloc(1, sizeof(*l));
	struct rnic_addr name;

	if (!l)
		return NULL;
	CDS_INIT_LIST_HEAD(&l->umsgs);
	CDS_INIT_LIST_HEAD(&l->inbounds);
	CDS_INIT_LIST_HEAD(&l->answers);
	l->ep = ep;
	l->index = i;
	l->src = FI_ADDR_NOTAVAIL;
	name = ep->place.lanes[i].sender;
	rnic_compiler_barrier();
	l->peer = shrimp_peer_intern(&ep->domain->peers, &name);
	if (!l->peer) {
		free(l);
		return NULL;
	}
	l->id = l->peer->id;
	/* relaxed: acquired with tx_state (R1) */
	l->fence = !rnic_fence_registered() ||
		   rnic_load32_relaxed(&ep->place.lanes[i].tx_unfenced);
	rnic_lane_rx_init(&l->rx, &ep->place.lanes[i], i);
	return l;
}

/* Lane @i was claimed: makes it known. NULL: not ready, or no memory. */
static struct shrimp_rx_lane *lane_open(struct shrimp_ep *ep, unsigned int i)
{
	/* acquires the name: its claim was a full barrier */
	uint64_t claim = rnic_load64_acquire(&ep->place.head->claim[i]);
	struct shrimp_rx_lane *l;
	struct rnic_proc *proc;
	int ret;

	if (!claim || lane_peek_state(ep, i) == RNIC_TX_NONE ||
	    lanes_grow(ep, i))
		return NULL;
	/* R1: acquires the name; pairs with rnic_remote_claim() */
	if (rnic_load32_acquire(&ep->place.lanes[i].tx_state) == RNIC_TX_NONE)
		return NULL;
	ret = claimer(claim, &proc);
	if (ret && ret != -ESRCH)
		return NULL;
	l = lane_new(ep, i);
	if (!l) {
		rnic_proc_put(proc);
		return NULL;
	}
	l->proc = proc;
	rnic_store32_relaxed(&l->rx.sh->flag.over_budget, ep->over_budget);
	ep->lanes[i] = l;
	return l;
}

static void end_pulls(struct shrimp_rx_lane *l)
{
	struct shrimp_inbound *in, *next;

	cds_list_for_each_entry_safe (in, next, &l->ep->pulls, link)
		if (in->lane == l)
			shrimp_rx_end(in, FI_ECONNRESET);
}

/* The sender is gone and the lane drained: ends what came through it. */
static void lane_free(struct shrimp_rx_lane *l)
{
	struct shrimp_ep *ep = l->ep;
	struct shrimp_inbound *in, *nin;
	struct shrimp_umsg *u, *nu;
	struct shrimp_answer *a, *na;

	end_pulls(l);
	cds_list_for_each_entry_safe (in, nin, &l->inbounds, link)
		shrimp_rx_end(in, FI_ECONNRESET);
	cds_list_for_each_entry_safe (u, nu, &l->umsgs, link)
		shrimp_umsg_orphan(ep, u);
	cds_list_for_each_entry_safe (a, na, &l->answers, link)
		free(a);
	hot_remove(l);
	ep->lanes[l->index] = NULL;
	rnic_remote_close(l->remote);
	rnic_proc_put(l->proc);
	free(l);
}

/*
 * What cannot be taken yet is a shortage, or the monitor at work, and passes.
 * But what waits for the dead has to end (contract P4).
 */
static bool give_up(struct shrimp_rx_lane *l)
{
	uint64_t now = shrimp_now_ms();

	if (l->proc && !rnic_proc_dead(l->proc))
		return false;
	if (!l->give_up_ms)
		l->give_up_ms = now + GIVE_UP_MS;
	return now >= l->give_up_ms;
}

/* Drains and frees @l if its sender has left. */
static void lane_reap(struct shrimp_rx_lane *l)
{
	struct shrimp_ep *ep = l->ep;
	unsigned int index = l->index;

	if (!shrimp_lane_left(l))
		return;
	while (drain(l) == DRAIN_MAX)
		;
	if (l->later && !give_up(l)) {
		hot_add(l);
		return;
	}
	rnic_lane_credit(&l->rx);
	lane_free(l);
	rnic_place_free_lane(&ep->place, index);
}

void shrimp_rx_scan(struct shrimp_ep *ep)
{
	for (size_t i = 0; i < ep->nlanes; i++)
		if (ep->lanes[i])
			lane_reap(ep->lanes[i]);
	for (unsigned int i = 0; i < ep->nlanes + SCAN_AHEAD; i++) {
		/* relaxed: lane_open() acquires */
		uint64_t claim =
			i < RNIC_LANE_MAX
				? rnic_load64_relaxed(&ep->place.head->claim[i])
				: 0;
		struct rnic_proc *proc;

		if (!claim)
			continue;
		if (i < ep->nlanes && ep->lanes[i])
			continue;
		if (lane_open(ep, i)) {
			hot_add(ep->lanes[i]);
			lane_reap(ep->lanes[i]);
			continue;
		}
		if (claimer(claim, &proc) == -ESRCH)
			/*
			 * died between claim and LIVE: D1, nothing to drain.
			 * Not what another one has claimed meanwhile.
			 */
			rnic_cas64_seqcst(&ep->place.head->claim[i], claim, 0);
		rnic_proc_put(proc);
	}
}

/* ---- polling ---- */

/* The doorbells of lanes in word @w rang. */
static void take_bells(struct shrimp_ep *ep, unsigned int w)
{
	uint64_t bits = rnic_xchg64_seqcst(&ep->place.head->lane_bell[w], 0);

	for (; bits; bits &= bits - 1) {
		unsigned int i = w * 64 + (unsigned int)__builtin_ctzll(bits);
		struct shrimp_rx_lane *l = i < ep->nlanes ? ep->lanes[i] : NULL;

		if (!l)
			l = lane_open(ep, i);
		if (!l)
			continue;
		hot_add(l);
		if (shrimp_lane_left(l))
			lane_reap(l);
	}
}

static void take_bell(struct shrimp_ep *ep)
{
	/* full barrier: the summary is cleared before the words are read */
	uint64_t words = rnic_xchg64_seqcst(&ep->place.head->bell, 0);

	for (; words; words &= words - 1)
		take_bells(ep, (unsigned int)__builtin_ctzll(words));
}

/* The hot lane whose turn it is: none starves behind a busy one. */
static struct shrimp_rx_lane *next_hot(struct shrimp_ep *ep)
{
	if (ep->turn >= ep->nhot)
		ep->turn = 0;
	return ep->hot[ep->turn++];
}

size_t shrimp_rx_progress(struct shrimp_ep *ep, struct shrimp_cq_sink *sink)
{
	size_t n = 0;

	for (size_t i = 0; i < ep->nhot; i++) {
		n += poll_lane(next_hot(ep));
		if (sink && !sink->room)
			break;
	}
	/* relaxed: the exchange acquires; a bell missed now rings next time */
	if (rnic_load64_relaxed(&ep->place.head->bell))
		take_bell(ep);
	return n;
}

void shrimp_rx_park(struct shrimp_ep *ep, bool all)
{
	for (size_t i = ep->nhot; i-- > 0;) {
		struct shrimp_rx_lane *l = ep->hot[i];

		if (!all && l->idle < IDLE_POLLS)
			continue;
		/* relaxed: ordered by the caller's fence */
		rnic_store32_relaxed(&l->rx.sh->flag.hot, 0);
	}
}

/* Waits for what nobody will ring for: memory, an attach, other messages. */
static bool stuck(struct shrimp_rx_lane *l)
{
	return l->later ||
	       (!cds_list_empty(&l->answers) && !rnic_lane_ret_room(&l->rx));
}

/*
 * After the fence: lanes that got something meanwhile stay hot, and those that
 * are stuck. How many of those; *@found: there is something that can be done.
 */
static size_t settle_parked(struct shrimp_ep *ep, bool *found)
{
	size_t n = 0;

	for (size_t i = ep->nhot; i-- > 0;) {
		struct shrimp_rx_lane *l = ep->hot[i];
		uint64_t head;

		/* relaxed: own word */
		if (rnic_load32_relaxed(&l->rx.sh->flag.hot)) {
			*found = true;
		} else if (stuck(l)) {
			/* what comes meanwhile waits as well: no bell */
			rnic_store32_relaxed(&l->rx.sh->flag.hot, 1);
			n++;
		} else if (rnic_lane_peek(&l->rx, &head) ||
			   !cds_list_empty(&l->answers)) {
			rnic_store32_relaxed(&l->rx.sh->flag.hot, 1);
			*found = true;
		} else {
			rnic_lane_idle(&l->rx);
			ring_if_parked(l);
			hot_del(ep, i);
		}
	}
	return n;
}

/* A timer in the set that sleepers on @ep wait for. */
static int nap_open(struct shrimp_ep *ep)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int fd;

	if (ep->nap_fd >= 0)
		return 0;
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fd < 0)
		return -FI_EMFILE;
	if (epoll_ctl(ep->epfd, EPOLL_CTL_ADD, fd, &ev)) {
		close(fd);
		return -FI_ENOMEM;
	}
	ep->nap_fd = fd;
	return 0;
}

/* Sleepers on @ep wake up soon. False: they must not sleep. */
static bool nap(struct shrimp_ep *ep)
{
	static const struct itimerspec soon = { .it_value.tv_nsec = NAP_NS };

	if (nap_open(ep))
		return false;
	ep->napping = !timerfd_settime(ep->nap_fd, 0, &soon, NULL);
	return ep->napping;
}

void shrimp_rx_awake(struct shrimp_ep *ep)
{
	static const struct itimerspec never;

	if (ep->napping)
		timerfd_settime(ep->nap_fd, 0, &never, NULL);
	ep->napping = false;
}

bool shrimp_rx_pending(struct shrimp_ep *ep)
{
	bool found = false;
	size_t n = settle_parked(ep, &found);

	/* relaxed: after the caller's fence; ringers are full barriers */
	if (found || rnic_load64_relaxed(&ep->place.head->bell))
		return true;
	return (n || !cds_list_empty(&ep->pulls)) && !nap(ep);
}

void shrimp_rx_fini(struct shrimp_ep *ep)
{
	for (size_t i = 0; i < ep->nlanes; i++) {
		struct shrimp_rx_lane *l = ep->lanes[i];
		bool left;

		if (!l)
			continue;
		left = shrimp_lane_left(l);
		/* R3: pairs with the loads of rx_closed in tx.c */
		rnic_store32_release(&l->rx.sh->flag.rx_closed, 1);
		ring_if_parked(l);
		lane_free(l);
		if (left)
			rnic_place_free_lane(&ep->place, (unsigned int)i);
	}
	free(ep->lanes);
	free(ep->hot);
	if (ep->nap_fd >= 0)
		close(ep->nap_fd);
}
