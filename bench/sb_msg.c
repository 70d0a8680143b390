/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench msg: tagged messages between two processes, beside the least
 * that they can cost (sb_raw.h).
 *
 * The parent leads: before each block of rounds it orders the same of its
 * child over a socket, where the child sleeps else. A round more than is timed
 * comes first, for the child to wake. Nothing is left posted after a block.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/clock.h"
#include "bench/order.h"
#include "bench/sb_crew.h"
#include "bench/sb_proc.h"
#include "bench/sb_raw.h"
#include "bench/sb_side.h"
#include "bench/sb_subs.h"

enum {
	TAG = 5,
	GROUP = 16,	      /* rounds of a sample, of short messages */
	GROUP_LEN = 4096,     /* those up to this length */
	BLOCK_NS = 1000000,   /* a block lasts at least so long */
	RATE_LEN = 8,	      /* of the row with many */
	BANDWIDTH_LEN = 4096, /* from here on also with a window */
	ROOM = 16 << 20,      /* bytes of a window of messages, at least */
	ROOM_PAIR = 1 << 16,  /* likewise, of those with many at a time */
	PAIR_ROUNDS = 16,     /* windows of an order, then */
};

/* What a round is. */
enum kind {
	RAW,	    /* floor: there and back by bare lines and memcpy */
	INJECT,	    /* fi_tinject there and back */
	SEND,	    /* fi_tsend there and back, with its completion */
	RAW_WINDOW, /* floor: 64 bare lines there, one back */
	WINDOW,	    /* a window of fi_tsend there, a message back */
	COPY,	    /* floor: memcpy of a message; the child sleeps */
	KINDS
};

/* What is asked of the child. */
struct order {
	uint32_t kind;	 /* enum kind */
	uint32_t window; /* messages of a WINDOW */
	uint64_t len;	 /* bytes of each */
	uint64_t rounds; /* timed ones */
};

/* One of the two processes. */
struct side {
	struct sb_side s;   /* its endpoint */
	struct sb_raw raw;  /* its end of the bare lines */
	struct order order; /* what is done now */
	int fd;		    /* to the other process */
	size_t room;	    /* bytes of each of these: */
	char *in;	    /* for a message, or a window of them */
	char *out;	    /* likewise */
};

/* ---- one message ---- */

static int message_send(struct side *p, size_t len, bool inject)
{
	struct sb_ep *e = &p->s.main;
	ssize_t ret;

	do
		ret = inject ? fi_tinject(e->ep, p->out, len, e->peer, TAG)
			     : fi_tsend(e->ep, p->out, len, NULL, e->peer, TAG,
					p);
	while (ret == -FI_EAGAIN);
	return ret ? sb_fail("a send", ret) : 0;
}

static int receives_post(struct side *p, unsigned int n)
{
	struct sb_ep *e = &p->s.main;
	size_t len = p->order.len;
	ssize_t ret = 0;

	for (unsigned int i = 0; i < n && !ret; i++)
		ret = fi_trecv(e->ep, p->in + i * len, len ? len : 1, NULL,
			       FI_ADDR_UNSPEC, TAG, 0, p);
	return ret ? sb_fail("fi_trecv", ret) : 0;
}

/* ---- one round, by the leader and by the follower ---- */

static int raw_lead(struct side *p)
{
	sb_raw_put(&p->raw, p->out, p->order.len);
	return sb_raw_get(&p->raw, p->in, p->order.len);
}

static int raw_follow(struct side *p)
{
	int ret = sb_raw_get(&p->raw, p->in, p->order.len);

	sb_raw_put(&p->raw, p->out, p->order.len);
	return ret;
}

static int raw_window_lead(struct side *p)
{
	for (unsigned int i = 0; i < p->order.window; i++)
		sb_raw_put(&p->raw, p->out, p->order.len);
	return sb_raw_get(&p->raw, p->in, 1);
}

static int raw_window_follow(struct side *p)
{
	int ret = 0;

	for (unsigned int i = 0; i < p->order.window && !ret; i++)
		ret = sb_raw_get(&p->raw, p->in, p->order.len);
	sb_raw_put(&p->raw, p->out, 1);
	return ret;
}

/* The receive is posted before the message that it answers goes out. */
static int lat_lead(struct side *p)
{
	bool inject = p->order.kind == INJECT;
	int ret = receives_post(p, 1);

	if (!ret)
		ret = message_send(p, p->order.len, inject);
	return ret ? ret : sb_ep_wait(&p->s.main, inject ? 1 : 2);
}

/* The last send's completion is waited for with the next message. */
static int lat_follow(struct side *p, bool first, bool last)
{
	bool inject = p->order.kind == INJECT;
	int ret = first ? receives_post(p, 1) : 0;

	if (!ret)
		ret = sb_ep_wait(&p->s.main, first || inject ? 1 : 2);
	if (!ret && !last)
		ret = receives_post(p, 1);
	if (!ret)
		ret = message_send(p, p->order.len, inject);
	return ret || !last || inject ? ret : sb_ep_wait(&p->s.main, 1);
}

static int window_lead(struct side *p)
{
	int ret = receives_post(p, 1);

	for (unsigned int i = 0; i < p->order.window && !ret; i++)
		ret = message_send(p, p->order.len, false);
	return ret ? ret : sb_ep_wait(&p->s.main, p->order.window + 1);
}

static int window_follow(struct side *p, bool first, bool last)
{
	int ret = first ? receives_post(p, p->order.window) : 0;

	if (!ret)
		ret = sb_ep_wait(&p->s.main, p->order.window);
	if (!ret && !last)
		ret = receives_post(p, p->order.window);
	return ret ? ret : message_send(p, 1, true);
}

static int copy_lead(struct side *p)
{
	memcpy(p->in, p->out, p->order.len);
	__asm__ __volatile__("" ::: "memory");
	return 0;
}

static int round_lead(struct side *p)
{
	switch (p->order.kind) {
	case RAW:
		return raw_lead(p);
	case RAW_WINDOW:
		return raw_window_lead(p);
	case WINDOW:
		return window_lead(p);
	case COPY:
		return copy_lead(p);
	default:
		return lat_lead(p);
	}
}

static int round_follow(struct side *p, bool first, bool last)
{
	switch (p->order.kind) {
	case RAW:
		return raw_follow(p);
	case RAW_WINDOW:
		return raw_window_follow(p);
	case WINDOW:
		return window_follow(p, first, last);
	case INJECT:
	case SEND:
		return lat_follow(p, first, last);
	default:
		return -EINVAL;
	}
}

/* ---- a block ---- */

/* How many messages one way follow each other in a round. */
static double ways(const struct order *o)
{
	if (o->kind == WINDOW || o->kind == RAW_WINDOW)
		return o->window;
	return o->kind == COPY ? 1 : 2;
}

/* Rounds that are timed together. */
static uint64_t group_of(const struct order *o)
{
	if (o->kind == WINDOW || o->kind == RAW_WINDOW || o->len > GROUP_LEN)
		return 1;
	return GROUP;
}

static int block_lead(struct side *p, uint64_t rounds, struct sb_set *set)
{
	uint64_t group = group_of(&p->order), done, t;
	int ret = round_lead(p);

	for (done = 0; done < rounds && !ret; done += group) {
		t = bench_clock_ns();
		for (uint64_t i = 0; i < group && !ret; i++)
			ret = round_lead(p);
		sb_set_add(set, (double)(bench_clock_ns() - t) / (double)group /
					ways(&p->order));
	}
	return ret;
}

static int block_follow(struct side *p)
{
	uint64_t n = p->order.rounds + 1;
	int ret = 0;

	for (uint64_t i = 0; i < n && !ret; i++)
		ret = round_follow(p, i == 0, i + 1 == n);
	return ret;
}

/* A task of the leader; see struct sb_task. */
struct work {
	struct side *p;
	struct order order;
};

static int work_run(void *ctx, uint64_t n, struct sb_set *set)
{
	struct work *w = ctx;
	struct side *p = w->p;
	uint64_t group = group_of(&w->order);
	int32_t answer = 0;
	int ret = 0;

	p->order = w->order;
	p->order.rounds = (n + group - 1) / group * group;
	if (w->order.kind == COPY)
		return block_lead(p, p->order.rounds, set);
	ret = sb_proc_put(p->fd, &p->order, sizeof(p->order));
	if (!ret)
		ret = block_lead(p, p->order.rounds, set);
	if (!ret)
		ret = sb_proc_get(p->fd, &answer, sizeof(answer));
	return ret ? sb_fail("a block of messages", ret) : answer;
}

/* ---- the child ---- */

static int memory_open(struct side *p)
{
	p->in = aligned_alloc(SB_PAGE, p->room);
	p->out = aligned_alloc(SB_PAGE, p->room);
	if (!p->in || !p->out)
		return sb_fail("memory", -FI_ENOMEM);
	memset(p->in, 1, p->room);
	memset(p->out, 1, p->room);
	return 0;
}

static void side_end(struct side *p)
{
	sb_side_close(&p->s);
	sb_raw_close(&p->raw);
	free(p->in);
	free(p->out);
}

static int follower_main(int fd, void *arg)
{
	/* a copy of the leader's, before it has opened anything */
	struct side p = *(struct side *)arg;
	struct sb_hello peer;
	int32_t answer = 0;
	int ret = memory_open(&p);

	p.fd = fd;
	p.raw.out = 1;
	if (!ret)
		ret = sb_side_open(&p.s);
	if (!ret)
		ret = sb_side_meet(&p.s, fd, 0, &peer);
	while (!ret && !sb_proc_get(fd, &p.order, sizeof(p.order))) {
		ret = block_follow(&p);
		answer = ret;
		if (sb_proc_put(fd, &answer, sizeof(answer)))
			break;
	}
	side_end(&p);
	return ret;
}

/* ---- rows ---- */

struct msg {
	const struct sb_options *o;
	struct sb_out *out;
	struct side p;
	struct sb_crew crew; /* of other pairs */
	struct sb_set set[KINDS];
};

/* The kinds in @mask (1 << enum kind) take turns. */
static int measure(struct msg *m, size_t len, unsigned int window,
		   unsigned int mask)
{
	struct sb_task task[KINDS];
	struct work w[KINDS];
	size_t n = 0;

	memset(m->set, 0, sizeof(m->set));
	for (uint32_t k = 0; k < KINDS; k++) {
		if (!(mask >> k & 1))
			continue;
		w[k] = (struct work){ &m->p, { k, window, len, 0 } };
		task[n++] = (struct sb_task){ .run = work_run,
					      .ctx = &w[k],
					      .set = &m->set[k],
					      .laps = 1,
					      .block_ns = BLOCK_NS };
	}
	return sb_measure(&m->o->plan, task, n);
}

static int latency_row(struct msg *m, size_t len, enum kind kind,
		       const char *name)
{
	char size[SB_NAME_MAX];
	struct sb_case c = { .unit = &sb_us,
			     .set = &m->set[kind],
			     .floor = &m->set[RAW],
			     .of = "bare lines and memcpy",
			     .point = { .panel = "one way",
					.x = (double)len } };

	snprintf(c.name, sizeof(c.name), "%.8s %s, one way",
		 sb_size_name(size, len), name);
	snprintf(c.point.series, SB_NAME_MAX, "%s", name);
	return sb_out_case(m->out, &c);
}

static int latency_run(struct msg *m, size_t len)
{
	bool inject = len <= m->p.s.info->tx_attr->inject_size;
	int ret = measure(m, len, 1,
			  1 << RAW | 1 << SEND | (unsigned)inject << INJECT);

	if (!ret)
		ret = latency_row(m, len, INJECT, "inject");
	return ret ? ret : latency_row(m, len, SEND, "send");
}

static int bandwidth_run(struct msg *m, size_t len)
{
	struct bench_order order = { .kind = BENCH_BW, .size = len };
	unsigned int window = bench_order_window(&order);
	struct sb_unit gbs = sb_gbs(len);
	char size[SB_NAME_MAX];
	struct sb_case c = { .unit = &gbs,
			     .set = &m->set[WINDOW],
			     .floor = &m->set[COPY],
			     .of = "memcpy" };
	int ret = measure(m, len, window, 1 << WINDOW | 1 << COPY);

	snprintf(c.name, sizeof(c.name), "%.8s send, %u at a time",
		 sb_size_name(size, len), window);
	return ret ? ret : sb_out_case(m->out, &c);
}

static int rate_run(struct msg *m)
{
	struct sb_case c = { .unit = &sb_mps,
			     .set = &m->set[WINDOW],
			     .floor = &m->set[RAW_WINDOW],
			     .of = "bare lines" };
	/* as many as the floor has lines */
	int ret = measure(m, RATE_LEN, BENCH_WINDOW,
			  1 << WINDOW | 1 << RAW_WINDOW);

	snprintf(c.name, sizeof(c.name), "%d B send, %d at a time", RATE_LEN,
		 BENCH_WINDOW);
	return ret ? ret : sb_out_case(m->out, &c);
}

static int rows_run(struct msg *m)
{
	int ret = rate_run(m);

	for (size_t i = 0; i < m->o->sizes.n && !ret; i++) {
		size_t len = m->o->sizes.byte[i];

		ret = latency_run(m, len);
		if (!ret && len >= BANDWIDTH_LEN)
			ret = bandwidth_run(m, len);
	}
	return ret;
}

/* ---- pairs at the same time ---- */

/* Forks the follower of @p, for messages of up to @len bytes. */
static int follower_start(struct side *p, struct sb_proc *proc, size_t len,
			  int cpu)
{
	int ret = sb_raw_open(&p->raw, len);

	if (!ret)
		ret = sb_proc_start(proc, follower_main, p, cpu);
	if (ret)
		return sb_fail("the other process", ret);
	p->fd = proc->fd;
	return 0;
}

/* Opens the leader's side. */
static int leader_open(struct side *p)
{
	struct sb_hello peer;
	int ret = memory_open(p);

	if (!ret)
		ret = sb_side_open(&p->s);
	return ret ? ret : sb_side_meet(&p->s, p->fd, 0, &peer);
}

enum { PAIR_RAW, PAIR_OURS, PAIR_KINDS };

/* sb_work_fn; an operation is PAIR_ROUNDS windows. */
static int pair_work(void *ctx, unsigned int what, uint64_t n)
{
	static struct sb_set set;
	struct work w = {
		.p = ctx,
		.order = { .kind = what == PAIR_RAW ? RAW_WINDOW : WINDOW,
			   .window = BENCH_WINDOW,
			   .len = RATE_LEN },
	};

	return work_run(&w, n * PAIR_ROUNDS, &set);
}

/* A worker: leads a follower of its own. */
static int pair_main(int fd, void *arg)
{
	struct sb_proc proc = { .pid = 0 };
	struct side p = { .room = ROOM_PAIR };
	int ret = follower_start(&p, &proc, RATE_LEN, -1), end;

	(void)arg;
	if (!ret)
		ret = leader_open(&p);
	if (!ret)
		ret = sb_crew_obey(fd, pair_work, &p);
	end = sb_proc_end(&proc);
	side_end(&p);
	return ret ? ret : end;
}

/* sb_crew_counts() calls it. */
static int pairs_row(void *ctx, unsigned int n)
{
	static struct sb_set set[PAIR_KINDS];
	struct msg *m = ctx;
	struct sb_unit unit = { "M/s", 1e3 * BENCH_WINDOW * PAIR_ROUNDS, true };
	struct sb_case c = { .unit = &unit,
			     .set = &set[PAIR_OURS],
			     .floor = &set[PAIR_RAW],
			     .of = "bare lines" };
	int ret = sb_crew_measure(&m->crew, n, PAIR_KINDS, &m->o->plan, set);

	snprintf(c.name, sizeof(c.name), "%d B send, %d at a time, %u pair%s",
		 RATE_LEN, BENCH_WINDOW, n, n == 1 ? "" : "s");
	return ret ? ret : sb_out_case(m->out, &c);
}

/* ---- all ---- */

static int msg_open(struct msg *m, struct sb_proc *proc)
{
	size_t len = bench_sizes_largest(&m->o->sizes);
	int ret = sb_crew_start(&m->crew, m->o->processes, pair_main);

	m->p.room = 4 * len > ROOM ? 4 * len : ROOM;
	m->p.room = (m->p.room + SB_PAGE - 1) / SB_PAGE * SB_PAGE;
	if (!ret)
		ret = follower_start(&m->p, proc, len, m->o->pin.cpu[1]);
	if (ret)
		return ret;
	bench_pin_self(m->o->pin.cpu[0]);
	return leader_open(&m->p);
}

static int msg_run(const struct sb_options *o, struct sb_out *out)
{
	struct sb_proc proc = { .pid = 0 };
	struct msg *m = calloc(1, sizeof(*m));
	int ret, end, one;

	if (!m)
		return -ENOMEM;
	m->o = o;
	m->out = out;
	ret = msg_open(m, &proc);
	if (!ret)
		ret = rows_run(m);
	if (!ret)
		ret = sb_crew_counts(&m->crew, pairs_row, m);
	end = sb_proc_end(&proc);
	one = sb_crew_end(&m->crew);
	side_end(&m->p);
	free(m);
	return ret ? ret : end ? end : one;
}

const struct sb_bench sb_bench_msg = {
	.name = "msg",
	.about = "tagged messages between two processes",
	.help = "One way time of fi_tinject and fi_tsend, half of there and "
		"back; floor: the\nsame by bare lines of shared memory and "
		"memcpy in and out. From 4K on windows\nof up to 64 messages; "
		"floor: memcpy. Rate of 64 messages of 8 bytes, then "
		"by\n--processes senders at a time, each with a receiver of "
		"its own; floor: bare\nlines. Messages are not written anew; "
		"fi-compare and mpi-compare do that.\n",
	.sizes = "0,8,64,256,1K,4K,32K,256K,2M",
	.quick = "8,1K,32K",
	.processes = 2,
	.axes = { .title = "Messages",
		  .x = "bytes",
		  .y = "us",
		  .log_x = true,
		  .log_y = true },
	.run = msg_run,
};
