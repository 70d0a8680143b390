/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenario kill: a partner is killed in the middle of transfers. What it did to
 * memory stays within it, and nothing comes later.
 */
#include "bench/stress/inside.h"

#include <stdlib.h>
#include <string.h>

#include "bench/stress/fi.h"
#include "bench/stress/xfer.h"

enum {
	LEN = 2 << 20,
	SIDE = 4096, /* bytes beside the region */
	SENDS = 3,   /* of our own under way when it dies */
	AFTER_US = 5000,
};

/** Memory that the dying one writes to, and what we send to it. */
struct scene {
	unsigned char *p; /* SIDE, the region, SIDE */
	struct stress_pat pat;
	struct stress_mr m;
	struct stress_req *req[SENDS];
	int rank; /* of the one that dies */
};

/* Operations of our own: messages that it does not take, and writes. */
static void sends_post(struct stress *s, struct scene *c)
{
	const struct stress_hello *h = &s->partner[c->rank].hello;
	struct stress_op op = { .side = &s->main,
				.p = s->bounce.p,
				.len = LEN,
				.peer = s->main.peer[c->rank],
				.match = 1ull << 50,
				.addr = h->window_addr,
				.key = h->window_key };

	op.desc = s->bounce.mr ? fi_mr_desc(s->bounce.mr) : NULL;
	for (int i = 0; i < SENDS; i++)
		c->req[i] = stress_post(
			s, &op, s->main.rma && i ? STRESS_WRITE : STRESS_SEND);
}

/* Each must come to an end, good or bad. */
static int sends_wait(struct stress *s, struct scene *c)
{
	int ret = 0;

	for (int i = 0; i < SENDS; i++)
		if (c->req[i] && stress_req_wait(s, c->req[i]) < 0)
			ret = stress_wrong(s,
					   "%s to a process that was killed "
					   "has no end in %d s",
					   s->main.rma && i ? "fi_write"
							    : "fi_tsend",
					   STRESS_WAIT_S);
	return ret;
}

/* After the close nothing changes any more. */
static int quiet(struct stress *s, struct scene *c)
{
	unsigned char *was = malloc(LEN + 2 * (size_t)SIDE);
	int ret = 0;

	if (!was)
		return stress_skip(s, "no memory");
	memcpy(was, c->p, LEN + 2 * (size_t)SIDE);
	stress_progress(s, AFTER_US);
	if (memcmp(was, c->p, LEN + 2 * (size_t)SIDE))
		ret = stress_wrong(s, "memory changed after its region was "
				      "closed");
	free(was);
	return ret;
}

static int beside_check(struct stress *s, struct scene *c)
{
	int ret = stress_verify(s, c->p, SIDE, c->pat, "before the region");

	if (ret)
		return ret;
	return stress_verify(s, c->p + SIDE + LEN, SIDE,
			     stress_at(c->pat, SIDE + LEN),
			     "behind the region");
}

static int die(struct stress *s, struct scene *c)
{
	struct stress_pat flow = stress_stream(s);
	int ret = stress_flow_begin(s, &c->m, c->rank, STRESS_FLOW_TRY, flow);

	if (ret)
		return ret;
	stress_progress(s, (unsigned int)stress_random(s, 3000));
	if (stress_random(s, 2))
		sends_post(s, c);
	ret = stress_kill(s, c->rank);
	s->flow = -1;
	if (!ret)
		ret = sends_wait(s, c);
	return ret;
}

static int run(struct stress *s, struct scene *c)
{
	int ret = stress_mr_get(s, c->p + SIDE, LEN, STRESS_BOTH, &c->m);

	if (ret)
		return ret;
	ret = die(s, c);
	stress_say(s, "close the region");
	if (stress_mr_put(s, &c->m))
		return STRESS_FAILED;
	if (!ret)
		ret = quiet(s, c);
	if (!ret)
		ret = beside_check(s, c);
	if (!ret && stress_partner_pick(s) >= 0) /* the others are as before */
		ret = stress_exchange(s, c->p, LEN, 3);
	return ret;
}

static int step(struct stress *s, void *state)
{
	struct scene c = { .rank = -1 };
	size_t len = LEN + 2 * (size_t)SIDE;
	int ret;

	(void)state;
	c.rank = (s->rank + 1) % s->size;
	c.p = stress_map(s, NULL, len, false);
	if (!c.p)
		return stress_skip(s, "no memory");
	c.pat = stress_fill(s, c.p, len);
	ret = run(s, &c);
	stress_unmap(s, c.p, len);
	return ret;
}

const struct stress_scenario stress_kills = {
	.name = "kill",
	.help = "kill -9 of a partner in the middle of transfers",
	.needs = STRESS_RMA | STRESS_ALONE,
	.step = step,
};
