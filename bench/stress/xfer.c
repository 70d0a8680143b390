/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Transfers between the actor and its partners: six ways for bytes to go, and
 * who asks for what. serve.c is the other side.
 */
#include "bench/stress/xfer.h"

#include <string.h>

#include "bench/stress/fi.h"
#include "bench/stress/mr.h"

enum {
	AROUND = 4096, /* bytes beside a part that are looked at */
	ARRIVE_S = 2,  /* for bytes that were only sent */
	ANSWER_S = 25, /* for an answer: more than two waits */
};

/** One transfer, as the actor sees it. */
struct job {
	struct stress_side *side;      /* of the actor */
	int rank;		       /* of the partner */
	unsigned char *p;	       /* bytes of the actor */
	size_t len;		       /* bytes */
	struct stress_pat pat;	       /* what they are, or will be */
	const struct stress_mr *whole; /* a region that has them, or NULL */
};

/* ---- questions ---- */

int stress_partner_pick(struct stress *s)
{
	int first = (int)stress_random(s, (uint64_t)s->size);

	for (int i = 0; i < s->size; i++) {
		int rank = (first + i) % s->size;

		if (s->partner[rank].fd >= 0)
			return rank;
	}
	return -1;
}

static int question_put(struct stress *s, int rank,
			const struct stress_question *q)
{
	if (rank < 0 || s->partner[rank].fd < 0 ||
	    stress_wire_put(s->partner[rank].fd, q, sizeof(*q)))
		return stress_wrong(s, "process %d has gone", rank);
	return 0;
}

static int answer_get(struct stress *s, int rank, struct stress_answer *a)
{
	uint64_t deadline = stress_deadline(s, ANSWER_S);
	unsigned int polls = 0;
	int ret;

	while (!(ret = stress_wire_get(s->partner[rank].fd, a, sizeof(*a)))) {
		stress_relax(s, &polls);
		if (stress_late(deadline))
			return stress_wrong(s, "process %d does not answer",
					    rank);
	}
	if (ret < 0)
		return stress_wrong(s, "process %d has gone", rank);
	s->count.bytes += a->bytes;
	if (!a->status)
		return 0;
	a->text[STRESS_TEXT - 1] = 0;
	return stress_wrong(s, "at process %d: %.300s", rank, a->text);
}

int stress_ask(struct stress *s, int rank, const struct stress_question *q,
	       struct stress_answer *a)
{
	struct stress_answer own;

	if (question_put(s, rank, q))
		return STRESS_FAILED;
	return answer_get(s, rank, a ? a : &own);
}

/* Where completions do not mean delivery: waits for it. */
static void arrive(struct stress *s, const void *p, size_t len,
		   struct stress_pat pat)
{
	uint64_t deadline = stress_deadline(s, ARRIVE_S);
	unsigned int polls = 0;

	while (!s->main.delivery && !stress_same(p, len, pat) &&
	       !stress_late(deadline))
		stress_relax(s, &polls);
}

int stress_arrived(struct stress *s, const void *p, size_t len,
		   struct stress_pat pat, const char *what)
{
	arrive(s, p, len, pat);
	return stress_verify(s, p, len, pat, what);
}

/* ---- jobs ---- */

static struct stress_question ask_of(struct stress *s, const struct job *j,
				     enum stress_ask ask)
{
	uint32_t flags = (uint32_t)stress_random(s, STRESS_INJECT << 1);

	flags &= STRESS_FRESH | STRESS_LATE | STRESS_DESC | STRESS_INJECT;
	if (j->side == &s->other)
		flags |= STRESS_SECOND;
	return (struct stress_question){
		.ask = ask, .flags = flags, .len = j->len, .pat = j->pat
	};
}

/* Names the bytes of @j within region @m. */
static void ask_for(struct stress_question *q, const struct job *j,
		    const struct stress_mr *m)
{
	q->addr = m->addr + (uint64_t)(j->p - m->p);
	q->key = m->key;
}

static uint64_t match_next(struct stress *s)
{
	return (uint64_t)s->rank << 40 | ++s->matches;
}

static struct stress_op op_of(struct stress *s, const struct job *j)
{
	return (struct stress_op){ .side = j->side,
				   .p = j->p,
				   .len = j->len,
				   .peer = j->side->peer[j->rank],
				   .match = match_next(s) };
}

/*
 * A region for the local bytes of @j, or none if that is allowed: *@m is to
 * be put, *@desc is what libfabric is given.
 */
static int local_get(struct stress *s, const struct job *j, enum stress_use use,
		     struct stress_mr *m, void **desc)
{
	int mode = j->side->info->domain_attr->mr_mode;
	int ret;

	memset(m, 0, sizeof(*m));
	*desc = NULL;
	if (!(mode & FI_MR_LOCAL) && stress_random(s, 2))
		return 0;
	if (j->whole && j->whole->side == j->side && stress_random(s, 2)) {
		*desc = stress_mr_desc(j->whole);
		return 0;
	}
	use |= stress_random(s, 2) ? STRESS_LOCAL : 0;
	ret = stress_mr_get_on(s, j->side, j->p, j->len, use, m);
	*desc = stress_mr_desc(m);
	return ret;
}

/* Of a step and the end of it: the first that is not 0. */
static int first(int a, int b)
{
	return a ? a : b;
}

static void job_say(struct stress *s, const struct job *j, const char *how)
{
	s->count.transfers++;
	stress_say(s, "%s %p %zu, process %d%s, stream %lu.%lu", how,
		   (void *)j->p, j->len, j->rank,
		   j->side == &s->other ? ", second domain" : "",
		   (unsigned long)stress_tag_step(j->pat.tag),
		   (unsigned long)stress_tag_count(j->pat.tag));
}

/* The partner reads (@ask PULL) or writes (PUSH). */
static int by_partner(struct stress *s, const struct job *j,
		      enum stress_ask ask)
{
	struct stress_question q = ask_of(s, j, ask);
	struct stress_mr own;
	int ret;

	if (j->whole && j->whole->side == j->side && stress_random(s, 4)) {
		ask_for(&q, j, j->whole);
		return stress_ask(s, j->rank, &q, NULL);
	}
	ret = stress_mr_get_on(s, j->side, j->p, j->len,
			       ask == STRESS_ASK_PULL ? STRESS_OUT : STRESS_IN,
			       &own);
	if (ret)
		return ret;
	ask_for(&q, j, &own);
	ret = stress_ask(s, j->rank, &q, NULL);
	if (!ret && ask == STRESS_ASK_PUSH)
		arrive(s, j->p, j->len, j->pat); /* before the region goes */
	return first(ret, stress_mr_put(s, &own));
}

/* Bytes of @j in the window of the partner. */
static uint64_t window_place(struct stress *s, const struct job *j)
{
	return stress_random(s, STRESS_WINDOW - j->len + 1);
}

/* RMA by the actor, once the region is there. */
static int window_use(struct stress *s, const struct job *j,
		      enum stress_verb verb, void *desc)
{
	const struct stress_hello *h = &s->partner[j->rank].hello;
	enum stress_ask ask =
		verb == STRESS_READ ? STRESS_ASK_SHOW : STRESS_ASK_CHECK;
	struct stress_question q = ask_of(s, j, ask);
	struct stress_op op = op_of(s, j);
	int ret = 0;

	q.addr = window_place(s, j);
	op.desc = desc;
	op.addr = h->window_addr + q.addr;
	op.key = h->window_key;
	if (verb == STRESS_READ)
		ret = stress_ask(s, j->rank, &q, NULL);
	if (!ret)
		ret = stress_do(s, &op, verb);
	if (!ret && verb == STRESS_WRITE)
		ret = stress_ask(s, j->rank, &q, NULL);
	return ret;
}

static int by_actor(struct stress *s, const struct job *j,
		    enum stress_verb verb)
{
	struct stress_mr own;
	void *desc;
	int ret = local_get(s, j, verb == STRESS_READ ? STRESS_IN : STRESS_OUT,
			    &own, &desc);

	if (ret)
		return ret;
	ret = window_use(s, j, verb, desc);
	return first(ret, stress_mr_put(s, &own));
}

/* ---- messages ---- */

static int send_it(struct stress *s, const struct job *j, void *desc)
{
	struct stress_question q = ask_of(s, j, STRESS_ASK_TAKE);
	struct stress_op op = op_of(s, j);
	struct stress_answer a;
	bool small = j->len <= j->side->info->tx_attr->inject_size;

	q.match = op.match;
	op.desc = desc;
	if (question_put(s, j->rank, &q))
		return STRESS_FAILED;
	if (stress_do(s, &op,
		      small && stress_random(s, 2) ? STRESS_INJECTS
						   : STRESS_SEND))
		return STRESS_FAILED;
	return answer_get(s, j->rank, &a);
}

/* Waits for the message and for the answer. */
static int receive_end(struct stress *s, const struct job *j,
		       struct stress_req *req)
{
	struct stress_answer a;
	int ret;

	if (!req)
		return STRESS_FAILED;
	ret = stress_req_wait(s, req);
	if (ret)
		return stress_wrong(s, "a receive of %zu bytes: %s", j->len,
				    stress_code(ret));
	if (req->len != j->len)
		return stress_wrong(s, "%lu bytes were received, not %zu",
				    (unsigned long)req->len, j->len);
	return answer_get(s, j->rank, &a);
}

static int receive_it(struct stress *s, const struct job *j, void *desc)
{
	struct stress_question q = ask_of(s, j, STRESS_ASK_GIVE);
	struct stress_op op = op_of(s, j);
	struct stress_req *req = NULL;
	bool early = stress_random(s, 2);

	q.match = op.match;
	op.desc = desc;
	op.peer = FI_ADDR_UNSPEC;
	if (early) {
		req = stress_post(s, &op, STRESS_RECV);
		if (!req)
			return STRESS_FAILED;
	}
	if (question_put(s, j->rank, &q))
		return STRESS_FAILED;
	if (!early) {
		stress_progress(s, (unsigned int)stress_random(s, 300));
		req = stress_post(s, &op, STRESS_RECV);
	}
	return receive_end(s, j, req);
}

static int by_message(struct stress *s, const struct job *j, bool out)
{
	struct stress_mr own;
	void *desc;
	int ret = local_get(s, j, out ? STRESS_OUT : STRESS_IN, &own, &desc);

	if (ret)
		return ret;
	ret = out ? send_it(s, j, desc) : receive_it(s, j, desc);
	return first(ret, stress_mr_put(s, &own));
}

/* ---- by chance ---- */

static size_t len_max(const struct stress *s)
{
	size_t most = s->main.info->ep_attr->max_msg_size;

	return most < STRESS_WINDOW ? most : STRESS_WINDOW;
}

static struct job job_of(struct stress *s, const void *p, size_t len,
			 struct stress_pat pat, const struct stress_mr *whole)
{
	struct job j = { .p = (unsigned char *)p, .len = len, .pat = pat };

	j.side = whole && stress_random(s, 4) ? whole->side
					      : stress_side_pick(s);
	j.rank = stress_partner_pick(s);
	j.whole = whole;
	return j;
}

static int out(struct stress *s, const struct job *j)
{
	switch (stress_random(s, j->side->rma ? 3 : 1)) {
	case 1:
		job_say(s, j, "pulled by partner:");
		return by_partner(s, j, STRESS_ASK_PULL);
	case 2:
		job_say(s, j, "write from");
		return by_actor(s, j, STRESS_WRITE);
	}
	job_say(s, j, "send");
	return by_message(s, j, true);
}

static int in(struct stress *s, const struct job *j)
{
	switch (stress_random(s, j->side->rma ? 3 : 1)) {
	case 1:
		job_say(s, j, "pushed by partner:");
		return by_partner(s, j, STRESS_ASK_PUSH);
	case 2:
		job_say(s, j, "read into");
		return by_actor(s, j, STRESS_READ);
	}
	job_say(s, j, "receive");
	return by_message(s, j, false);
}

/* All of @j in pieces that can be transferred. */
static int pieces(struct stress *s, const struct job *all,
		  int (*one)(struct stress *s, const struct job *j))
{
	size_t most = len_max(s), n;

	for (size_t at = 0; at < all->len; at += n) {
		struct job j = *all;
		int ret;

		n = all->len - at < most ? all->len - at : most;
		j.p += at;
		j.len = n;
		j.pat = stress_at(all->pat, at);
		ret = one(s, &j);
		if (ret)
			return ret;
	}
	return 0;
}

int stress_out(struct stress *s, const void *p, size_t len,
	       struct stress_pat pat)
{
	struct job j = job_of(s, p, len, pat, NULL);

	return pieces(s, &j, out);
}

int stress_in(struct stress *s, void *p, size_t len, struct stress_pat *pat)
{
	struct job j = job_of(s, p, len, stress_stream(s), NULL);
	int ret = pieces(s, &j, in);

	if (ret)
		return ret;
	*pat = j.pat;
	return stress_arrived(s, p, len, *pat, "what came in");
}

/* ---- parts of an area ---- */

/* The area of an exchange: what it is when nothing is under way. */
struct area {
	unsigned char *p;
	size_t len;
	struct stress_pat pat;
	struct stress_mr whole; /* a region of all of it, or none */
};

/* The bytes beside a part are as they were. */
static int around(struct stress *s, const struct area *a, size_t at, size_t len)
{
	size_t from = at < AROUND ? 0 : at - AROUND;
	size_t behind = at + len;
	size_t n = a->len - behind < AROUND ? a->len - behind : AROUND;

	if (stress_verify(s, a->p + from, at - from, stress_at(a->pat, from),
			  "before a part"))
		return STRESS_FAILED;
	return stress_verify(s, a->p + behind, n, stress_at(a->pat, behind),
			     "behind a part");
}

static int part(struct stress *s, const struct area *a)
{
	size_t at = stress_random(s, a->len);
	size_t len = stress_length(s, a->len - at);
	const struct stress_mr *whole = a->whole.mr ? &a->whole : NULL;
	bool away = stress_random(s, 2);
	struct job j;
	int ret;

	if (len > len_max(s))
		len = len_max(s);
	j = job_of(s, a->p + at, len,
		   away ? stress_fill(s, a->p + at, len) : stress_stream(s),
		   whole);
	ret = away ? out(s, &j) : in(s, &j);
	if (ret)
		return ret;
	if (stress_arrived(s, j.p, len, j.pat, "a part") ||
	    around(s, a, at, len))
		return STRESS_FAILED;
	stress_put(s, j.p, len, stress_at(a->pat, at));
	return 0;
}

int stress_exchange(struct stress *s, void *p, size_t len, unsigned int n)
{
	struct area a = { .p = p, .len = len };
	int ret = 0;

	a.pat = stress_fill(s, p, len);
	if (stress_random(s, 2))
		ret = stress_mr_get(s, p, len, STRESS_BOTH, &a.whole);
	for (unsigned int i = 0; !ret && i < n; i++)
		ret = part(s, &a);
	ret = first(ret, stress_mr_put(s, &a.whole));
	return ret ? ret : stress_verify(s, p, len, a.pat, "an area");
}

int stress_use_new(struct stress *s, void *p, size_t len)
{
	struct stress_pat zero = { .tag = 0 };

	if (!stress_random(s, 3)) {
		int ret = stress_out(s, p, len, zero);

		if (ret)
			return ret;
	}
	return stress_exchange(s, p, len,
			       1 + (unsigned int)stress_random(s, 4));
}

/* ---- regions that live longer ---- */

static struct job job_in(struct stress *s, const struct stress_mr *m,
			 size_t off, size_t len, struct stress_pat pat)
{
	return (struct job){ .side = m->side,
			     .rank = stress_partner_pick(s),
			     .p = m->p + off,
			     .len = len,
			     .pat = pat,
			     .whole = m };
}

int stress_pull(struct stress *s, const struct stress_mr *m, size_t off,
		size_t len, struct stress_pat pat)
{
	struct job j = job_in(s, m, off, len, pat);
	struct stress_question q = ask_of(s, &j, STRESS_ASK_PULL);

	job_say(s, &j, "pulled by partner:");
	ask_for(&q, &j, m);
	return stress_ask(s, j.rank, &q, NULL);
}

int stress_push(struct stress *s, const struct stress_mr *m, size_t off,
		size_t len, struct stress_pat *pat)
{
	struct job j = job_in(s, m, off, len, stress_stream(s));
	struct stress_question q = ask_of(s, &j, STRESS_ASK_PUSH);

	job_say(s, &j, "pushed by partner:");
	ask_for(&q, &j, m);
	if (stress_ask(s, j.rank, &q, NULL))
		return STRESS_FAILED;
	*pat = j.pat;
	return stress_arrived(s, j.p, len, j.pat, "what was pushed");
}

int stress_refuses(struct stress *s, const struct stress_mr *m, size_t off,
		   size_t len, bool write)
{
	struct job j = job_in(s, m, off, len, stress_stream(s));
	struct stress_question q =
		ask_of(s, &j, write ? STRESS_ASK_PUSH : STRESS_ASK_PULL);

	job_say(s, &j, write ? "push to be refused:" : "pull to be refused:");
	ask_for(&q, &j, m);
	q.flags |= STRESS_REFUSE;
	return stress_ask(s, j.rank, &q, NULL);
}

int stress_flow_begin(struct stress *s, const struct stress_mr *m, int rank,
		      enum stress_flow how, struct stress_pat pat)
{
	struct job j = job_in(s, m, 0, m->len, pat);
	struct stress_question q = ask_of(s, &j, STRESS_ASK_FLOW);

	if (rank >= 0)
		j.rank = rank;
	job_say(s, &j, "flow begins:");
	ask_for(&q, &j, m);
	q.how = how;
	s->flow = j.rank;
	return question_put(s, j.rank, &q);
}

int stress_flow_end(struct stress *s, uint64_t *times)
{
	struct stress_question q = { .ask = STRESS_ASK_STOP };
	struct stress_answer a = { .status = 0 };
	int rank = s->flow, ret;

	if (rank < 0 || s->partner[rank].fd < 0)
		return 0;
	s->flow = -1;
	ret = stress_ask(s, rank, &q, &a);
	stress_say(s, "flow ends: %lu times", (unsigned long)a.times);
	s->count.transfers += a.times;
	if (times)
		*times = a.times;
	return ret;
}
