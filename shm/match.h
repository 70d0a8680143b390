/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Tag matching: posted receives against messages that came before theirs.
 *
 * A message fits a receive if ((msg.tag ^ recv.tag) & ~recv.ignore) == 0 and
 * the receive names the message's source or any. Of all that fit, the oldest
 * wins.
 *
 * Receives are classed by (source given or not, ignore mask). Up to
 * RNIC_MATCH_CLASSES classes have each a hash on (source or any, tag &
 * ~ignore), for the receives and for the messages; receives of further
 * classes stand in one list. A class without receives that was not asked
 * for in a long time gives its place to a new one.
 *
 * The youngest receives are fresh: they stand in no hash yet. Most programs
 * get their messages in the order in which they posted, or post a few; then
 * none ever does. Each receive is hashed once at most.
 *
 * Private to one process. No locking inside: all calls for one
 * struct rnic_match are made under one lock, that of its endpoint. The
 * objects belong to the caller, who embeds the structs below and keeps them
 * in place from post to unpost, from queue to dequeue. Nothing here blocks.
 */
#ifndef RNIC_MATCH_H
#define RNIC_MATCH_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/compiler.h"

enum {
	RNIC_MATCH_CLASSES = 8,	    /* classes with a hash */
	RNIC_MATCH_LISTED = 8,	    /* cls of receives in the list */
	RNIC_MATCH_FRESH = 9,	    /* cls of receives in no hash yet */
	RNIC_MATCH_FRESH_MAX = 128, /* so many, then they are hashed */
};

#define RNIC_SRC_ANY UINT32_MAX /* receive takes every source */

/* Place in a list ordered by age; also the list's head. */
struct rnic_match_link {
	struct rnic_match_link *next; /* younger, or the head */
	struct rnic_match_link *prev; /* older, or the head */
};

/*
 * Place in a hash. Objects of one key form a ring, oldest first; the oldest
 * stands in the bucket's chain for all of them.
 */
struct rnic_match_node {
	struct rnic_match_node *next;  /* ring of one key: younger */
	struct rnic_match_node *prev;  /* ring of one key: older */
	struct rnic_match_node *chain; /* oldest of the next key */
};

/* A receive. The caller fills src, tag, ignore and may read the rest. */
struct rnic_match_recv {
	struct rnic_match_node node;  /* in its class, or in the list */
	uint64_t tag;		      /* tag wanted */
	uint64_t seq;		      /* age: lower is older */
	uint64_t ignore;	      /* tag bits that do not count */
	uint32_t src;		      /* source wanted or RNIC_SRC_ANY */
	uint8_t cls;		      /* class, or LISTED, or FRESH */
	bool posted;		      /* between post and unpost */
	struct rnic_match_link order; /* all receives, as posted */
};

/* A message. The caller fills src and tag and may read the rest. */
struct rnic_match_msg {
	uint64_t tag;		      /* its tag */
	uint64_t seq;		      /* age: lower is older */
	uint32_t src;		      /* its source */
	bool queued;		      /* between queue and dequeue */
	struct rnic_match_link order; /* all messages, as arrived */
	struct rnic_match_node node[RNIC_MATCH_CLASSES]; /* by class */
};

/* One hash. Size and load count keys, not objects. */
struct rnic_match_table {
	struct rnic_match_node **bucket; /* oldest of each key */
	uint32_t shift;			 /* 64 - log2(buckets) */
	uint32_t keys;			 /* different keys in it */
};

/* One class of receives. */
struct rnic_match_class {
	uint64_t mask;		      /* ~ignore: tag bits that count */
	uint32_t src_or;	      /* ~0 if any source, else 0 */
	uint32_t used;		      /* 0: place is free */
	struct rnic_match_table recv; /* posted receives */
	struct rnic_match_table msg;  /* all queued messages */
	uint64_t stamp;		      /* clock when last asked for */
};

/* The engine. Zeroed memory is a finished one; never moved while in use. */
struct rnic_match {
	size_t nrecv;		       /* receives posted */
	size_t nmsg;		       /* messages queued */
	size_t nfresh;		       /* receives in no hash */
	struct rnic_match_link *fresh; /* the oldest of them, if any */
	uint32_t busy;		       /* bit per class that has receives */
	uint32_t last;		       /* class found last, tried first */
	struct rnic_match_node listed; /* head: receives of no class */
	struct rnic_match_class cls[RNIC_MATCH_CLASSES]; /* places */
	struct rnic_match_link recvs;	/* head: receives, as posted */
	struct rnic_match_link msgs;	/* head: messages, as arrived */
	uint64_t seq;			/* age of the next object */
	uint64_t clock;			/* posts and searches so far */
	struct rnic_match_node **first; /* memory of the first tables */
};

/*
 * Readies @m, empty. Returns 0 or -ENOMEM (@m is then as after fini).
 * Partner: rnic_match_fini().
 */
int rnic_match_init(struct rnic_match *m);

/*
 * Frees the tables, not the caller's objects: those still inside must not be
 * unposted or dequeued afterwards. Zeroed memory and a second call are fine.
 */
void rnic_match_fini(struct rnic_match *m);

/* The receive around its place in the order of posting. */
static inline struct rnic_match_recv *
rnic_match_recv_of(const struct rnic_match_link *l)
{
	size_t off = offsetof(struct rnic_match_recv, order);

	return (struct rnic_match_recv *)((uintptr_t)l - off);
}

/* True if @r takes a message from @src with @tag. */
static inline bool rnic_match_takes(const struct rnic_match_recv *r,
				    uint32_t src, uint64_t tag)
{
	return !((r->tag ^ tag) & ~r->ignore) &&
	       (r->src == RNIC_SRC_ANY || r->src == src);
}

/* Hashes all fresh receives. */
void rnic_match_index(struct rnic_match *m);

/* Takes @r, which is not fresh, out of its hash. */
void rnic_match_unindex(struct rnic_match *m, struct rnic_match_recv *r);

/*
 * Posts @r, whose src, tag and ignore are set; it is the youngest. It must
 * not be posted. Never fails: without memory a table just stays small.
 * Partner: rnic_match_unpost().
 */
static inline void rnic_match_post(struct rnic_match *m,
				   struct rnic_match_recv *r)
{
	struct rnic_match_link *l = &r->order;

	r->seq = m->seq++;
	r->posted = true;
	r->cls = RNIC_MATCH_FRESH;
	l->next = &m->recvs;
	l->prev = m->recvs.prev;
	m->recvs.prev->next = l;
	m->recvs.prev = l;
	m->nrecv++;
	if (!m->nfresh++)
		m->fresh = l;
	else if (m->nfresh == RNIC_MATCH_FRESH_MAX)
		rnic_match_index(m);
}

/* Takes posted receive @r out. */
static inline void rnic_match_unpost(struct rnic_match *m,
				     struct rnic_match_recv *r)
{
	assert(r->posted);
	r->posted = false;
	m->nrecv--;
	r->order.prev->next = r->order.next;
	r->order.next->prev = r->order.prev;
	if (RNIC_UNLIKELY(r->cls != RNIC_MATCH_FRESH)) {
		rnic_match_unindex(m, r);
		return;
	}
	m->nfresh--;
	if (m->fresh == &r->order)
		m->fresh = r->order.next;
}

/* The part of rnic_match_find_recv() that searches. */
struct rnic_match_recv *rnic_match_search_recv(struct rnic_match *m,
					       uint32_t src, uint64_t tag);

/*
 * The oldest posted receive that takes a message from @src with @tag, or
 * NULL. It stays posted. The oldest of all is tried first.
 */
static inline struct rnic_match_recv *
rnic_match_find_recv(struct rnic_match *m, uint32_t src, uint64_t tag)
{
	struct rnic_match_recv *r;

	if (!m->nrecv)
		return NULL;
	r = rnic_match_recv_of(m->recvs.next);
	if (RNIC_LIKELY(rnic_match_takes(r, src, tag)))
		return r;
	return m->nrecv > 1 ? rnic_match_search_recv(m, src, tag) : NULL;
}

/*
 * Queues message @msg, whose src and tag are set; it is the youngest. It
 * must not be queued. Never fails. Partner: rnic_match_dequeue().
 */
void rnic_match_queue(struct rnic_match *m, struct rnic_match_msg *msg);

/* Takes queued message @msg out. */
void rnic_match_dequeue(struct rnic_match *m, struct rnic_match_msg *msg);

/* The part of rnic_match_find_msg() that searches. */
struct rnic_match_msg *rnic_match_search_msg(struct rnic_match *m, uint32_t src,
					     uint64_t tag, uint64_t ignore);

/*
 * The oldest queued message that a receive of @src (or RNIC_SRC_ANY), @tag
 * and @ignore would take, or NULL. It stays queued.
 */
static inline struct rnic_match_msg *rnic_match_find_msg(struct rnic_match *m,
							 uint32_t src,
							 uint64_t tag,
							 uint64_t ignore)
{
	return m->nmsg ? rnic_match_search_msg(m, src, tag, ignore) : NULL;
}

/* The oldest posted receive, or NULL. */
struct rnic_match_recv *rnic_match_first_recv(const struct rnic_match *m);

/* The youngest posted receive, or NULL. */
struct rnic_match_recv *rnic_match_last_recv(const struct rnic_match *m);

/* The receive posted next after @r, which is posted; or NULL. */
struct rnic_match_recv *rnic_match_next_recv(const struct rnic_match *m,
					     const struct rnic_match_recv *r);

/* The receive posted last before @r, which is posted; or NULL. */
struct rnic_match_recv *rnic_match_prev_recv(const struct rnic_match *m,
					     const struct rnic_match_recv *r);

/* The oldest queued message, or NULL. */
struct rnic_match_msg *rnic_match_first_msg(const struct rnic_match *m);

/* The message that arrived next after @msg, which is queued; or NULL. */
struct rnic_match_msg *rnic_match_next_msg(const struct rnic_match *m,
					   const struct rnic_match_msg *msg);

/*
 * Every receive and message inside that names @old_src names @new_src from
 * now on; ages stay. Neither is RNIC_SRC_ANY. Visits all objects.
 */
void rnic_match_rename(struct rnic_match *m, uint32_t old_src,
		       uint32_t new_src);

#endif /* RNIC_MATCH_H */
