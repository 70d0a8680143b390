/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Tag matching, see match.h for the rules and the locking (the caller's).
 *
 * A hash knows keys, not objects: objects of one key form a ring, and only
 * the oldest stands in the chain of its bucket. So 10^5 equal receives cost
 * a search no more than one, and the chains stay as short as keys are few.
 *
 * An object's key is not stored but computed from it: tag and source through
 * the masks of the class. The code below serves receives and messages alike;
 * `side' says which and is a constant wherever it matters, so that nothing
 * of it is left after inlining.
 */
#include "shm/match.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIRST_BITS = 5, /* log2 of the buckets of a first table */
	FIRST_BUCKETS = 1 << FIRST_BITS,
	MAX_BITS = 24,	 /* log2 of the buckets of the largest */
	IDLE_MIN = 1024, /* posts and searches before a recycle */
	FRESH_SCAN = 8,	 /* so few are looked at one by one */
};

enum side {
	RECV, /* posted receives */
	MSG,  /* queued messages */
};

struct key {
	uint64_t tag; /* bits that count */
	uint32_t src; /* source or RNIC_SRC_ANY */
};

/* ---- lists by age ---- */

static void link_init(struct rnic_match_link *head)
{
	head->next = head;
	head->prev = head;
}

static void link_append(struct rnic_match_link *head, struct rnic_match_link *l)
{
	l->next = head;
	l->prev = head->prev;
	head->prev->next = l;
	head->prev = l;
}

static void link_remove(struct rnic_match_link *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
}

static struct rnic_match_msg *msg_of_link(const struct rnic_match_link *l)
{
	size_t off = offsetof(struct rnic_match_msg, order);

	return (struct rnic_match_msg *)((uintptr_t)l - off);
}

struct rnic_match_recv *rnic_match_first_recv(const struct rnic_match *m)
{
	return m->nrecv ? rnic_match_recv_of(m->recvs.next) : NULL;
}

struct rnic_match_recv *rnic_match_last_recv(const struct rnic_match *m)
{
	return m->nrecv ? rnic_match_recv_of(m->recvs.prev) : NULL;
}

struct rnic_match_recv *rnic_match_next_recv(const struct rnic_match *m,
					     const struct rnic_match_recv *r)
{
	return r->order.next == &m->recvs ? NULL
					  : rnic_match_recv_of(r->order.next);
}

struct rnic_match_recv *rnic_match_prev_recv(const struct rnic_match *m,
					     const struct rnic_match_recv *r)
{
	return r->order.prev == &m->recvs ? NULL
					  : rnic_match_recv_of(r->order.prev);
}

struct rnic_match_msg *rnic_match_first_msg(const struct rnic_match *m)
{
	return m->nmsg ? msg_of_link(m->msgs.next) : NULL;
}

struct rnic_match_msg *rnic_match_next_msg(const struct rnic_match *m,
					   const struct rnic_match_msg *msg)
{
	const struct rnic_match_link *next = msg->order.next;

	return next == &m->msgs ? NULL : msg_of_link(next);
}

/* ---- rings ---- */

static inline void ring_init(struct rnic_match_node *n)
{
	n->next = n;
	n->prev = n;
}

/* Makes @n the youngest of the ring of @oldest. */
static inline void ring_append(struct rnic_match_node *oldest,
			       struct rnic_match_node *n)
{
	n->next = oldest;
	n->prev = oldest->prev;
	oldest->prev->next = n;
	oldest->prev = n;
}

static inline void ring_remove(struct rnic_match_node *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
}

/* ---- keys ---- */

static inline struct rnic_match_recv *recv_of(const struct rnic_match_node *n)
{
	size_t off = offsetof(struct rnic_match_recv, node);

	return (struct rnic_match_recv *)((uintptr_t)n - off);
}

/* @n is the node of class @cls. */
static inline struct rnic_match_msg *msg_of(const struct rnic_match_node *n,
					    size_t cls)
{
	size_t off = offsetof(struct rnic_match_msg, node);

	return (struct rnic_match_msg *)((uintptr_t)(n - cls) - off);
}

static inline struct key key_make(const struct rnic_match_class *c,
				  uint32_t src, uint64_t tag)
{
	return (struct key){ .tag = tag & c->mask, .src = src | c->src_or };
}

/* The key of the object around @n, in class @c which is number @cls. */
static inline struct key key_of(const struct rnic_match_class *c, size_t cls,
				const struct rnic_match_node *n, enum side side)
{
	if (side == RECV)
		return key_make(c, recv_of(n)->src, recv_of(n)->tag);
	return key_make(c, msg_of(n, cls)->src, msg_of(n, cls)->tag);
}

static inline bool key_equal(struct key a, struct key b)
{
	return a.tag == b.tag && a.src == b.src;
}

/*
 * Fields of a tag are narrow and far apart, sources are small: fold the high
 * half down, then let the product spread all bits into the top ones.
 */
static inline size_t key_bucket(struct key k, uint32_t shift)
{
	uint64_t x = k.tag ^ k.src * UINT64_C(0xd6e8feb86659fd93);

	x ^= x >> 32;
	return (x * UINT64_C(0x9e3779b97f4a7c15)) >> shift;
}

/* ---- hash ---- */

static inline struct rnic_match_table *table_of(struct rnic_match_class *c,
						enum side side)
{
	return side == RECV ? &c->recv : &c->msg;
}

static size_t table_buckets(const struct rnic_match_table *t)
{
	return (size_t)1 << (64 - t->shift);
}

/* The oldest object with key @k, or NULL. */
static inline struct rnic_match_node *
table_find(const struct rnic_match_class *c, size_t cls, struct key k,
	   enum side side)
{
	const struct rnic_match_table *t = side == RECV ? &c->recv : &c->msg;
	struct rnic_match_node *n = t->bucket[key_bucket(k, t->shift)];

	while (n && !key_equal(key_of(c, cls, n, side), k))
		n = n->chain;
	return n;
}

/* Moves the chains of @t into the empty buckets @to. */
static void table_rehash(struct rnic_match_class *c, size_t cls,
			 struct rnic_match_node **to, uint32_t shift,
			 enum side side)
{
	struct rnic_match_table *t = table_of(c, side);
	size_t i, n = table_buckets(t);

	for (i = 0; i < n; i++) {
		struct rnic_match_node *node = t->bucket[i];

		while (node) {
			struct rnic_match_node *next = node->chain;
			struct rnic_match_node **b =
				to +
				key_bucket(key_of(c, cls, node, side), shift);

			node->chain = *b;
			*b = node;
			node = next;
		}
	}
}

/* Is @bucket part of the memory that rnic_match_init() took? */
static bool table_is_first(const struct rnic_match *m,
			   const struct rnic_match_table *t)
{
	return (uintptr_t)t->bucket - (uintptr_t)m->first <
	       2 * RNIC_MATCH_CLASSES * FIRST_BUCKETS * sizeof(*m->first);
}

static void table_free(struct rnic_match *m, struct rnic_match_table *t)
{
	if (!table_is_first(m, t))
		free(t->bucket);
}

/* Doubles the buckets; without memory the chains just get longer. */
static void table_grow(struct rnic_match *m, struct rnic_match_class *c,
		       enum side side)
{
	struct rnic_match_table *t = table_of(c, side);
	size_t n = 2 * table_buckets(t);
	struct rnic_match_node **to;

	if (n > (size_t)1 << MAX_BITS)
		return;
	to = calloc(n, sizeof(*to));
	if (!to)
		return;
	table_rehash(c, (size_t)(c - m->cls), to, t->shift - 1, side);
	table_free(m, t);
	t->bucket = to;
	t->shift--;
}

/* Adds @n as the youngest object of its key. */
static inline void table_add(struct rnic_match *m, size_t cls,
			     struct rnic_match_node *n, enum side side)
{
	struct rnic_match_class *c = &m->cls[cls];
	struct rnic_match_table *t = table_of(c, side);
	struct key k = key_of(c, cls, n, side);
	struct rnic_match_node *oldest = table_find(c, cls, k, side);
	struct rnic_match_node **b;

	if (oldest) {
		ring_append(oldest, n);
		return;
	}
	if (t->keys >= table_buckets(t))
		table_grow(m, c, side);
	b = &t->bucket[key_bucket(k, t->shift)];
	ring_init(n);
	n->chain = *b;
	*b = n;
	t->keys++;
}

/* Takes @n out; if it was the oldest of its key, the next one follows. */
static inline void table_remove(struct rnic_match *m, size_t cls,
				struct rnic_match_node *n, enum side side)
{
	struct rnic_match_class *c = &m->cls[cls];
	struct rnic_match_table *t = table_of(c, side);
	struct key k = key_of(c, cls, n, side);
	struct rnic_match_node **at = &t->bucket[key_bucket(k, t->shift)];

	while (*at && *at != n)
		at = &(*at)->chain;
	if (*at && n->next == n) {
		*at = n->chain;
		t->keys--;
		return;
	}
	if (*at) {
		n->next->chain = n->chain;
		*at = n->next;
	}
	ring_remove(n);
}

static void table_clear(struct rnic_match_table *t)
{
	memset(t->bucket, 0, table_buckets(t) * sizeof(*t->bucket));
	t->keys = 0;
}

/* Back to the first, small table number @i, empty. */
static void table_reset(struct rnic_match *m, struct rnic_match_table *t,
			size_t i)
{
	table_free(m, t);
	t->bucket = m->first + i * FIRST_BUCKETS;
	t->shift = 64 - FIRST_BITS;
	table_clear(t);
}

/* ---- classes ---- */

static bool class_is(const struct rnic_match_class *c, uint64_t mask,
		     uint32_t src_or)
{
	return c->used && c->mask == mask && c->src_or == src_or;
}

/* Indexes all messages for class @cls, whose table is empty. */
static void class_fill(struct rnic_match *m, size_t cls)
{
	struct rnic_match_link *l;

	for (l = m->msgs.next; l != &m->msgs; l = l->next)
		table_add(m, cls, &msg_of_link(l)->node[cls], MSG);
}

/*
 * May class @c give its place away? Filling the new class visits every
 * message: that is paid for by the operations since @c was last asked for.
 */
static bool class_is_idle(const struct rnic_match *m,
			  const struct rnic_match_class *c)
{
	uint64_t idle = m->clock - c->stamp;

	return !c->recv.keys && idle >= IDLE_MIN && idle >= m->nmsg;
}

/* A place for a new class: free, else the one idle longest, else LISTED. */
static size_t class_place(const struct rnic_match *m)
{
	size_t i, best = RNIC_MATCH_LISTED;

	for (i = 0; i < RNIC_MATCH_CLASSES; i++) {
		const struct rnic_match_class *c = &m->cls[i];

		if (!c->used)
			return i;
		if (class_is_idle(m, c) && (best == RNIC_MATCH_LISTED ||
					    c->stamp < m->cls[best].stamp))
			best = i;
	}
	return best;
}

static size_t class_open(struct rnic_match *m, uint64_t mask, uint32_t src_or)
{
	size_t cls = class_place(m);
	struct rnic_match_class *c = &m->cls[cls % RNIC_MATCH_CLASSES];

	if (cls == RNIC_MATCH_LISTED)
		return cls;
	table_reset(m, &c->recv, 2 * cls);
	table_reset(m, &c->msg, 2 * cls + 1);
	c->mask = mask;
	c->src_or = src_or;
	c->used = 1;
	class_fill(m, cls);
	return cls;
}

/*
 * The class of receives for @src and @ignore, opened if there is room for
 * it, else RNIC_MATCH_LISTED.
 */
static size_t class_get(struct rnic_match *m, uint32_t src, uint64_t ignore)
{
	uint32_t src_or = src == RNIC_SRC_ANY ? UINT32_MAX : 0;
	size_t cls = m->last;

	m->clock++;
	if (!class_is(&m->cls[cls], ~ignore, src_or)) {
		for (cls = 0; cls < RNIC_MATCH_CLASSES; cls++)
			if (class_is(&m->cls[cls], ~ignore, src_or))
				break;
		if (cls == RNIC_MATCH_CLASSES)
			cls = class_open(m, ~ignore, src_or);
		if (cls == RNIC_MATCH_LISTED)
			return cls;
		m->last = (uint32_t)cls;
	}
	m->cls[cls].stamp = m->clock;
	return cls;
}

/* ---- receives ---- */

/* Adds @r to the hash of its class, or to the list. */
static void recv_add(struct rnic_match *m, struct rnic_match_recv *r)
{
	if (r->cls == RNIC_MATCH_LISTED) {
		ring_append(&m->listed, &r->node);
		return;
	}
	table_add(m, r->cls, &r->node, RECV);
	m->busy |= 1u << r->cls;
}

void rnic_match_index(struct rnic_match *m)
{
	for (; m->nfresh; m->nfresh--) {
		struct rnic_match_recv *r = rnic_match_recv_of(m->fresh);

		m->fresh = m->fresh->next;
		r->cls = (uint8_t)class_get(m, r->src, r->ignore);
		recv_add(m, r);
	}
}

void rnic_match_unindex(struct rnic_match *m, struct rnic_match_recv *r)
{
	if (r->cls == RNIC_MATCH_LISTED) {
		ring_remove(&r->node);
		return;
	}
	table_remove(m, r->cls, &r->node, RECV);
	m->cls[r->cls].stamp = m->clock;
	if (!m->cls[r->cls].recv.keys)
		m->busy &= ~(1u << r->cls);
}

/* The oldest of @best and the list that takes the message. */
static struct rnic_match_recv *search_list(const struct rnic_match *m,
					   uint32_t src, uint64_t tag,
					   struct rnic_match_recv *best)
{
	const struct rnic_match_node *n;

	for (n = m->listed.next; n != &m->listed; n = n->next) {
		struct rnic_match_recv *r = recv_of(n);

		if (best && best->seq < r->seq)
			break;
		if (rnic_match_takes(r, src, tag))
			return r;
	}
	return best;
}

/* The oldest hashed or listed one that takes the message, or NULL. */
static struct rnic_match_recv *search_hashed(const struct rnic_match *m,
					     uint32_t src, uint64_t tag)
{
	struct rnic_match_recv *best = NULL;
	uint32_t busy;

	for (busy = m->busy; busy; busy &= busy - 1) {
		size_t cls = (size_t)__builtin_ctz(busy);
		const struct rnic_match_class *c = &m->cls[cls];
		struct rnic_match_node *n =
			table_find(c, cls, key_make(c, src, tag), RECV);

		if (n && (!best || recv_of(n)->seq < best->seq))
			best = recv_of(n);
	}
	if (m->listed.next != &m->listed)
		best = search_list(m, src, tag, best);
	return best;
}

/* Likewise of the fresh ones. */
static struct rnic_match_recv *search_fresh(const struct rnic_match *m,
					    uint32_t src, uint64_t tag)
{
	const struct rnic_match_link *l = m->fresh;

	for (size_t i = 0; i < m->nfresh; i++, l = l->next)
		if (rnic_match_takes(rnic_match_recv_of(l), src, tag))
			return rnic_match_recv_of(l);
	return NULL;
}

struct rnic_match_recv *rnic_match_search_recv(struct rnic_match *m,
					       uint32_t src, uint64_t tag)
{
	struct rnic_match_recv *r;

	if (m->nfresh > FRESH_SCAN)
		rnic_match_index(m);
	/* all of them are older than the fresh ones */
	r = search_hashed(m, src, tag);
	return r ? r : search_fresh(m, src, tag);
}

/* ---- messages ---- */

void rnic_match_queue(struct rnic_match *m, struct rnic_match_msg *msg)
{
	size_t cls;

	msg->seq = m->seq++;
	msg->queued = true;
	link_append(&m->msgs, &msg->order);
	m->nmsg++;
	for (cls = 0; cls < RNIC_MATCH_CLASSES; cls++)
		if (m->cls[cls].used)
			table_add(m, cls, &msg->node[cls], MSG);
}

void rnic_match_dequeue(struct rnic_match *m, struct rnic_match_msg *msg)
{
	size_t cls;

	assert(msg->queued);
	msg->queued = false;
	m->nmsg--;
	link_remove(&msg->order);
	for (cls = 0; cls < RNIC_MATCH_CLASSES; cls++)
		if (m->cls[cls].used)
			table_remove(m, cls, &msg->node[cls], MSG);
}

/* Looks at all messages in order: for receives that have no class. */
static struct rnic_match_msg *search_msgs(const struct rnic_match *m,
					  const struct rnic_match_recv *r)
{
	struct rnic_match_link *l;

	for (l = m->msgs.next; l != &m->msgs; l = l->next)
		if (rnic_match_takes(r, msg_of_link(l)->src,
				     msg_of_link(l)->tag))
			return msg_of_link(l);
	return NULL;
}

struct rnic_match_msg *rnic_match_search_msg(struct rnic_match *m, uint32_t src,
					     uint64_t tag, uint64_t ignore)
{
	size_t cls = class_get(m, src, ignore);
	const struct rnic_match_class *c = &m->cls[cls % RNIC_MATCH_CLASSES];
	struct rnic_match_node *n;

	if (cls == RNIC_MATCH_LISTED) {
		const struct rnic_match_recv r = {
			.tag = tag,
			.ignore = ignore,
			.src = src,
		};

		return search_msgs(m, &r);
	}
	n = table_find(c, cls, key_make(c, src, tag), MSG);
	return n ? msg_of(n, cls) : NULL;
}

/* ---- rename ---- */

/* Empties every hash and the list; the lists by age still know all. */
static void tables_clear(struct rnic_match *m)
{
	size_t cls;

	m->busy = 0;
	ring_init(&m->listed);
	for (cls = 0; cls < RNIC_MATCH_CLASSES; cls++) {
		table_clear(&m->cls[cls].recv);
		table_clear(&m->cls[cls].msg);
	}
}

/* Fills them again, oldest first, so that rings are in order. */
static void tables_fill(struct rnic_match *m)
{
	struct rnic_match_link *l;
	size_t cls;

	for (l = m->recvs.next; l != &m->recvs; l = l->next)
		if (rnic_match_recv_of(l)->cls != RNIC_MATCH_FRESH)
			recv_add(m, rnic_match_recv_of(l));
	for (cls = 0; cls < RNIC_MATCH_CLASSES; cls++)
		if (m->cls[cls].used)
			class_fill(m, cls);
}

/* Gives receives and messages of @old_src their new name; how many? */
static size_t name_all(struct rnic_match *m, uint32_t old_src, uint32_t new_src)
{
	struct rnic_match_link *l;
	size_t n = 0;

	for (l = m->recvs.next; l != &m->recvs; l = l->next) {
		if (rnic_match_recv_of(l)->src != old_src)
			continue;
		rnic_match_recv_of(l)->src = new_src;
		n++;
	}
	for (l = m->msgs.next; l != &m->msgs; l = l->next) {
		if (msg_of_link(l)->src != old_src)
			continue;
		msg_of_link(l)->src = new_src;
		n++;
	}
	return n;
}

/*
 * Objects of the two sources mix by age under the new name: all is built
 * anew. It happens once in a peer's life.
 */
void rnic_match_rename(struct rnic_match *m, uint32_t old_src, uint32_t new_src)
{
	assert(old_src != RNIC_SRC_ANY && new_src != RNIC_SRC_ANY);
	if (!name_all(m, old_src, new_src))
		return;
	tables_clear(m);
	tables_fill(m);
}

/* ---- life ---- */

int rnic_match_init(struct rnic_match *m)
{
	size_t cls;

	*m = (struct rnic_match){ .nrecv = 0 };
	m->first = calloc(2 * RNIC_MATCH_CLASSES * FIRST_BUCKETS,
			  sizeof(*m->first));
	if (!m->first)
		return -ENOMEM;
	link_init(&m->recvs);
	link_init(&m->msgs);
	ring_init(&m->listed);
	for (cls = 0; cls < RNIC_MATCH_CLASSES; cls++) {
		m->cls[cls].recv.bucket = m->first;
		m->cls[cls].msg.bucket = m->first;
		table_reset(m, &m->cls[cls].recv, 2 * cls);
		table_reset(m, &m->cls[cls].msg, 2 * cls + 1);
	}
	return 0;
}

void rnic_match_fini(struct rnic_match *m)
{
	size_t cls;

	if (!m->first)
		return;
	for (cls = 0; cls < RNIC_MATCH_CLASSES; cls++) {
		table_free(m, &m->cls[cls].recv);
		table_free(m, &m->cls[cls].msg);
	}
	free(m->first);
	*m = (struct rnic_match){ .nrecv = 0 };
}
