/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What a process does when another one asks: reads and writes its memory,
 * takes and gives messages, shows and compares its own window.
 */
#include "bench/stress/serve.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/stress/fi.h"
#include "bench/stress/mr.h"
#include "bench/stress/xfer.h"

enum {
	GUARD = STRESS_GUARD,
	ROOM = STRESS_WINDOW + 2 * GUARD, /* of window and bounce */
	LATE_US = 300,			  /* a late receive, at most */
};

/** What bytes of window and bounce are that nobody uses. */
static const struct stress_pat guard = {
	.tag = (uint64_t)(STRESS_TAG_STEPS - 1) << 12,
};

/** Memory for an answer. */
struct local {
	unsigned char *p;    /* bytes to use */
	size_t len;	     /* of them */
	unsigned char *base; /* allocated; NULL: of the bounce */
	struct stress_mr mr; /* of it, or none */
	void *desc;	     /* for libfabric */
};

/* ---- window and bounce ---- */

static int room_open(struct stress *s, struct stress_mr *m)
{
	unsigned char *p = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return stress_wrong(s, "no memory for a window");
	stress_write(p, ROOM, guard);
	if (stress_mr_reg_on(s, &s->main, p, ROOM, STRESS_BOTH, m)) {
		munmap(p, ROOM);
		memset(m, 0, sizeof(*m));
		return STRESS_FAILED;
	}
	return 0;
}

static int room_close(struct stress *s, struct stress_mr *m)
{
	unsigned char *p = m->p;
	int ret;

	if (!p)
		return 0;
	ret = stress_mr_put(s, m);
	stress_change_begin(s, p, ROOM);
	munmap(p, ROOM);
	stress_change_end(s, p, ROOM);
	return ret;
}

int stress_serve_open(struct stress *s)
{
	int ret = room_open(s, &s->window);

	return ret ? ret : room_open(s, &s->bounce);
}

int stress_serve_close(struct stress *s)
{
	int ret = room_close(s, &s->window);

	return room_close(s, &s->bounce) ? STRESS_FAILED : ret;
}

/* ---- memory of an answer ---- */

static void guards_put(struct local *m)
{
	stress_write(m->p - GUARD, m->len + 2 * GUARD, guard);
}

static int guards_check(struct stress *s, struct local *m)
{
	if (stress_verify(s, m->p - GUARD, GUARD, guard, "before a buffer"))
		return STRESS_FAILED;
	return stress_verify(s, m->p + m->len, GUARD,
			     stress_at(guard, GUARD + m->len),
			     "behind a buffer");
}

static int fresh_get(struct stress *s, const struct stress_question *q,
		     struct local *m)
{
	int mode = s->main.info->domain_attr->mr_mode;

	m->base = stress_malloc(s, m->len + 2 * GUARD);
	if (!m->base)
		return stress_wrong(s, "no memory");
	m->p = m->base + GUARD;
	guards_put(m);
	if (!(mode & FI_MR_LOCAL) && !(q->flags & STRESS_DESC))
		return 0;
	if (stress_mr_get_on(s, &s->main, m->p, m->len,
			     STRESS_BOTH | STRESS_LOCAL, &m->mr))
		return stress_wrong(s, "a region was refused");
	m->desc = stress_mr_desc(&m->mr);
	return 0;
}

static int local_get(struct stress *s, const struct stress_question *q,
		     struct local *m)
{
	memset(m, 0, sizeof(*m));
	if (q->len > STRESS_WINDOW)
		return stress_wrong(s, "asked for %lu bytes",
				    (unsigned long)q->len);
	m->len = q->len;
	if (q->flags & STRESS_FRESH)
		return fresh_get(s, q, m);
	m->p = s->bounce.p + GUARD;
	guards_put(m);
	m->desc = stress_mr_desc(&s->bounce);
	return 0;
}

static int local_put(struct stress *s, struct local *m, int ret)
{
	if (!ret && m->p)
		ret = guards_check(s, m);
	if (stress_mr_put(s, &m->mr))
		ret = STRESS_FAILED;
	stress_free(s, m->base);
	return ret;
}

/* ---- RMA and messages ---- */

static struct stress_op op_of(struct stress *s, int rank,
			      const struct stress_question *q,
			      const struct local *m)
{
	return (struct stress_op){
		.side = &s->main,
		.p = m->p,
		.len = m->len,
		.desc = m->desc,
		.peer = q->flags & STRESS_SECOND ? s->main.second[rank]
						 : s->main.peer[rank],
		.addr = q->addr,
		.key = q->key,
		.match = q->match,
	};
}

/* An operation that must end in an error. */
static int refused(struct stress *s, const struct stress_op *op,
		   enum stress_verb verb)
{
	struct stress_req *req = stress_post(s, op, verb);
	int ret;

	if (!req)
		return STRESS_FAILED;
	ret = stress_req_wait(s, req);
	if (ret > 0)
		return 0;
	return stress_wrong(s, "an access under an old key %s",
			    ret ? "did not complete" : "was a success");
}

static int pull(struct stress *s, const struct stress_question *q,
		const struct stress_op *op)
{
	if (q->flags & STRESS_REFUSE)
		return refused(s, op, STRESS_READ);
	if (stress_do(s, op, STRESS_READ))
		return STRESS_FAILED;
	return stress_verify(s, op->p, op->len, q->pat, "what was read");
}

static int push(struct stress *s, const struct stress_question *q,
		const struct stress_op *op)
{
	stress_put(s, op->p, op->len, q->pat);
	if (q->flags & STRESS_REFUSE)
		return refused(s, op, STRESS_WRITE);
	return stress_do(s, op, STRESS_WRITE);
}

static int take(struct stress *s, const struct stress_question *q,
		const struct stress_op *op)
{
	struct stress_op recv = *op;
	struct stress_req *req;
	int ret;

	recv.peer = FI_ADDR_UNSPEC;
	if (q->flags & STRESS_LATE)
		stress_progress(s, LATE_US);
	req = stress_post(s, &recv, STRESS_RECV);
	if (!req)
		return STRESS_FAILED;
	ret = stress_req_wait(s, req);
	if (ret)
		return stress_wrong(s, "a receive of %zu bytes: %s", op->len,
				    stress_code(ret));
	if (req->len != op->len)
		return stress_wrong(s, "%lu bytes were received, not %zu",
				    (unsigned long)req->len, op->len);
	return stress_verify(s, op->p, op->len, q->pat, "what was received");
}

static int give(struct stress *s, const struct stress_question *q,
		const struct stress_op *op)
{
	bool inject = q->flags & STRESS_INJECT &&
		      op->len <= s->main.info->tx_attr->inject_size;

	stress_put(s, op->p, op->len, q->pat);
	return stress_do(s, op, inject ? STRESS_INJECTS : STRESS_SEND);
}

/* ---- flows ---- */

/* Whether the asker wants it to end, or has gone. */
static bool told_to_stop(struct stress *s, int rank)
{
	struct stress_question q;

	return stress_wire_get(s->partner[rank].fd, &q, sizeof(q)) != 0;
}

static int flow_step(struct stress *s, const struct stress_question *q,
		     const struct stress_op *op)
{
	bool read = q->how == STRESS_FLOW_PULL || q->how == STRESS_FLOW_VERIFY;
	struct stress_req *req =
		stress_post(s, op, read ? STRESS_READ : STRESS_WRITE);
	int ret;

	if (!req)
		return STRESS_FAILED;
	ret = stress_req_wait(s, req);
	if (ret == -ETIMEDOUT)
		return stress_wrong(s, "a flow got stuck");
	if (ret && q->how != STRESS_FLOW_TRY)
		return stress_wrong(s, "a flow ended in an error: %s",
				    stress_code(ret));
	if (q->how != STRESS_FLOW_VERIFY)
		return 0;
	return stress_verify(s, op->p, op->len, q->pat, "what a flow read");
}

static int flow(struct stress *s, int rank, const struct stress_question *q,
		const struct stress_op *op, struct stress_answer *a)
{
	int ret = 0;

	stress_put(s, op->p, op->len, q->pat);
	while (!told_to_stop(s, rank)) {
		unsigned int polls = 0;

		if (ret) {
			stress_relax(s, &polls);
			continue;
		}
		ret = flow_step(s, q, op);
		a->times++;
	}
	return ret;
}

/* ---- the window ---- */

static bool in_window(const struct stress_question *q)
{
	return q->len <= STRESS_WINDOW && q->addr <= STRESS_WINDOW - q->len;
}

/* What was shown last is gone. */
static void shown_heal(struct stress *s)
{
	stress_write(s->window.p + GUARD + s->shown_at, s->shown_len,
		     stress_at(guard, GUARD + s->shown_at));
	s->shown_len = 0;
}

static int show(struct stress *s, const struct stress_question *q)
{
	if (!in_window(q))
		return stress_wrong(s, "not in the window");
	shown_heal(s);
	s->shown_at = q->addr;
	s->shown_len = q->len;
	stress_put(s, s->window.p + GUARD + q->addr, q->len, q->pat);
	return 0;
}

/* Whether what was shown last is among, or beside, the bytes of @q. */
static bool shown_near(const struct stress *s, const struct stress_question *q)
{
	return s->shown_len && s->shown_at < q->addr + q->len + GUARD &&
	       q->addr < s->shown_at + s->shown_len + GUARD;
}

static int check(struct stress *s, const struct stress_question *q)
{
	unsigned char *p = s->window.p + GUARD + q->addr;
	struct stress_pat before = stress_at(guard, q->addr);
	struct stress_pat behind = stress_at(guard, q->addr + GUARD + q->len);
	int ret;

	if (!in_window(q))
		return stress_wrong(s, "not in the window");
	ret = stress_arrived(s, p, q->len, q->pat, "what was written");
	if (!ret && !shown_near(s, q)) {
		ret = stress_verify(s, p - GUARD, GUARD, before,
				    "before what was written");
		if (!ret)
			ret = stress_verify(s, p + q->len, GUARD, behind,
					    "behind what was written");
	}
	shown_heal(s);
	stress_write(p - GUARD, q->len + 2 * GUARD, before);
	return ret;
}

/* ---- questions ---- */

static int meet(struct stress *s, int rank, const struct stress_question *q)
{
	int ret;

	if (q->ask == STRESS_ASK_PART) {
		ret = fi_av_remove(s->main.av, &s->main.second[rank], 1, 0);
		return ret ? stress_wrong(s, "fi_av_remove: %s",
					  stress_code(ret))
			   : 0;
	}
	ret = stress_side_meet(&s->main, q->name, &s->main.second[rank]);
	return ret ? stress_wrong(s, "fi_av_insert: %s", stress_code(ret)) : 0;
}

static int with_memory(struct stress *s, int rank,
		       const struct stress_question *q, struct stress_answer *a)
{
	struct local m;
	struct stress_op op;
	int ret = local_get(s, q, &m);

	op = op_of(s, rank, q, &m);
	if (ret)
		return local_put(s, &m, ret);
	if (q->ask == STRESS_ASK_PULL)
		ret = pull(s, q, &op);
	else if (q->ask == STRESS_ASK_PUSH)
		ret = push(s, q, &op);
	else if (q->ask == STRESS_ASK_TAKE)
		ret = take(s, q, &op);
	else if (q->ask == STRESS_ASK_GIVE)
		ret = give(s, q, &op);
	else
		ret = flow(s, rank, q, &op, a);
	return local_put(s, &m, ret);
}

static int answer(struct stress *s, int rank, const struct stress_question *q,
		  struct stress_answer *a)
{
	switch (q->ask) {
	case STRESS_ASK_SHOW:
		return show(s, q);
	case STRESS_ASK_CHECK:
		return check(s, q);
	case STRESS_ASK_MEET:
	case STRESS_ASK_PART:
		return meet(s, rank, q);
	case STRESS_ASK_STOP: /* of a flow that has failed */
		return 0;
	}
	return with_memory(s, rank, q, a);
}

static const char *const ask_names[] = {
	"pull",	 "push", "take", "give", "show",
	"check", "flow", "stop", "meet", "part",
};

static void serve_one(struct stress *s, int rank,
		      const struct stress_question *q)
{
	struct stress_answer a = { .times = 0 };

	s->number = stress_tag_step(q->pat.tag);
	stress_say(s, "  for process %d: %s %lu, stream %lu.%lu", rank,
		   q->ask <= STRESS_ASK_PART ? ask_names[q->ask] : "?",
		   (unsigned long)q->len,
		   (unsigned long)stress_tag_step(q->pat.tag),
		   (unsigned long)stress_tag_count(q->pat.tag));
	s->status = 0;
	s->text[0] = 0;
	s->chance = q->pat.tag;
	s->count.bytes = 0;
	a.status = answer(s, rank, q, &a) ? STRESS_FAILED : 0;
	if (s->status == STRESS_FAILED)
		a.status = STRESS_FAILED;
	a.bytes = s->count.bytes;
	snprintf(a.text, sizeof(a.text), "%s", s->text);
	if (stress_wire_put(s->partner[rank].fd, &a, sizeof(a)))
		s->partner[rank].fd = -1;
}

int stress_serve(struct stress *s)
{
	int n = 0;

	for (int rank = 0; rank < s->size; rank++) {
		struct stress_question q;
		int fd = s->partner[rank].fd, ret;

		if (fd < 0)
			continue;
		ret = stress_wire_get(fd, &q, sizeof(q));
		if (ret < 0)
			s->partner[rank].fd = -1;
		if (ret <= 0)
			continue;
		serve_one(s, rank, &q);
		n++;
	}
	return n;
}
