/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Breadth first through all states of a model.
 *
 * Of a state that was seen a fingerprint of 128 bits is kept, and how it was
 * reached; the states themselves wait in a queue, packed. Two states with one
 * fingerprint would be taken for one: among 10^6 states that happens with a
 * chance of 10^-27. A way to a state is found again by taking the same
 * choices from the start.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doc/model/memory.h"

enum {
	ROOM_MIN = 1 << 12, /* first size of the set */
	NOBODY = 0xff,	    /* who reached the first state */
	DRAIN = 0x80,	    /* it was a store that reached memory */
};

/* Of a state that was seen. */
struct seen {
	uint64_t print[2]; /* fingerprint */
	uint32_t from;	   /* number of the state before */
	uint16_t outcome;  /* which of the outcomes of that step */
	uint8_t who;	   /* thread, with DRAIN; NOBODY */
	uint8_t rests;	   /* the model may rest here, or can get there */
};

/* A step that was taken. */
struct edge {
	uint32_t from, to; /* numbers of states */
};

/* What is known of the variant that is explored. */
static struct {
	struct seen *seen;  /* states, in the order they were found */
	uint32_t n, room;   /* their number, and for how many is room */
	uint32_t *slot;	    /* hash: number + 1; 2 * @room of them */
	struct edge *edge;  /* steps */
	size_t edges, more; /* their number, and for how many is room */
	uint8_t *queue;	    /* packed states to be looked at, a length first */
	size_t head, tail;  /* in @queue, bytes */
	size_t bytes;	    /* of @queue */
} x;

static struct model_state current; /* of the run */

/* ---- memory ---- */

static void *need(void *p)
{
	if (!p) {
		fprintf(stderr, "models: no memory\n");
		exit(2);
	}
	return p;
}

void model_free(void)
{
	free(x.seen);
	free(x.slot);
	free(x.edge);
	free(x.queue);
	memset(&x, 0, sizeof(x));
}

/* Puts number @n into the hash, where it is not yet. */
static void hash_put(uint32_t n)
{
	uint32_t mask = 2 * x.room - 1;
	uint32_t h = (uint32_t)x.seen[n].print[0] & mask;

	while (x.slot[h])
		h = (h + 1) & mask;
	x.slot[h] = n + 1;
}

static void set_grow(void)
{
	x.room = x.room ? 2 * x.room : ROOM_MIN;
	x.seen = need(realloc(x.seen, x.room * sizeof(*x.seen)));
	free(x.slot);
	x.slot = need(calloc(2 * (size_t)x.room, sizeof(*x.slot)));
	for (uint32_t i = 0; i < x.n; i++)
		hash_put(i);
}

static void reset(void)
{
	x.n = 0;
	x.edges = 0;
	x.head = x.tail = 0;
	if (x.slot)
		memset(x.slot, 0, 2 * (size_t)x.room * sizeof(*x.slot));
}

static void edge_add(uint32_t from, uint32_t to)
{
	if (x.edges == x.more) {
		x.more = x.more ? 2 * x.more : 4 * ROOM_MIN;
		x.edge = need(realloc(x.edge, x.more * sizeof(*x.edge)));
	}
	x.edge[x.edges++] = (struct edge){ from, to };
}

/* ---- the queue ---- */

static void queue_put(const uint8_t *p, size_t n)
{
	uint16_t len = (uint16_t)n;

	if (x.tail + sizeof(len) + n > x.bytes && x.head > x.bytes / 2) {
		x.tail -= x.head;
		memmove(x.queue, x.queue + x.head, x.tail);
		x.head = 0;
	}
	while (x.tail + sizeof(len) + n > x.bytes) {
		x.bytes = x.bytes ? 2 * x.bytes : 1 << 20;
		x.queue = need(realloc(x.queue, x.bytes));
	}
	memcpy(x.queue + x.tail, &len, sizeof(len));
	memcpy(x.queue + x.tail + sizeof(len), p, n);
	x.tail += sizeof(len) + n;
}

/* Copies the next state to @p. */
static void queue_take(uint8_t *p)
{
	uint16_t len;

	memcpy(&len, x.queue + x.head, sizeof(len));
	memcpy(p, x.queue + x.head + sizeof(len), len);
	x.head += sizeof(len) + len;
}

/* ---- the set ---- */

static uint64_t mix(uint64_t h)
{
	h ^= h >> 32;
	h *= UINT64_C(0xd6e8feb86659fd93);
	h ^= h >> 32;
	h *= UINT64_C(0xd6e8feb86659fd93);
	return h ^ h >> 32;
}

static void fingerprint(const uint8_t *p, size_t n, uint64_t print[2])
{
	uint64_t a = mix(n + 1), b = mix(a + UINT64_C(0x9e3779b97f4a7c15));

	for (size_t i = 0; i < n; i += 8) {
		uint64_t w = 0;

		memcpy(&w, p + i, n - i < 8 ? n - i : 8);
		a = mix(a ^ w);
		b = (b ^ w) * UINT64_C(0x9fb21c651e98df25);
		b ^= b >> 29;
	}
	print[0] = a;
	print[1] = mix(b);
}

/* The state of @r: its number, new or not. Came from @from. */
static uint32_t visit(struct model_run *r, uint32_t from, uint8_t who,
		      unsigned int outcome)
{
	uint8_t bytes[MODEL_BYTES];
	size_t n = model_state_pack(r, bytes);
	uint64_t print[2];
	uint32_t h;

	if (x.n == x.room)
		set_grow();
	fingerprint(bytes, n, print);
	h = (uint32_t)print[0] & (2 * x.room - 1);
	for (; x.slot[h]; h = (h + 1) & (2 * x.room - 1))
		if (!memcmp(x.seen[x.slot[h] - 1].print, print, sizeof(print)))
			return x.slot[h] - 1;
	x.seen[x.n] = (struct seen){
		.print = { print[0], print[1] },
		.from = from,
		.outcome = (uint16_t)outcome,
		.who = who,
		.rests = r->m->final ? r->m->final(r) : model_rests(r),
	};
	x.slot[h] = ++x.n;
	queue_put(bytes, n);
	return x.n - 1;
}

/* ---- steps ---- */

void *model_own(struct model_run *r)
{
	return r->s->own;
}

const void *model_own_of(const struct model_run *r)
{
	return r->s->own;
}

unsigned int model_at(const struct model_run *r, unsigned int t)
{
	return r->s->at[t];
}

void model_end(struct model_run *r, unsigned int t)
{
	r->s->at[t] = MODEL_END;
}

bool model_rests(const struct model_run *r)
{
	for (unsigned int t = 0; t < r->m->threads; t++) {
		unsigned int at = model_at(r, t);

		if (at != MODEL_END && !(r->m->thread[t].rests >> at & 1))
			return false;
	}
	return true;
}

unsigned int model_variant(const struct model_run *r)
{
	return r->variant;
}

unsigned int model_choose(struct model_run *r, unsigned int n)
{
	if (n < 2)
		return 0;
	if (r->at == r->nchoices) {
		if (r->at == sizeof(r->choice))
			model_limit(r, "list of choices");
		r->choice[r->at] = 0;
		r->options[r->at] = (uint8_t)n;
		r->nchoices++;
	}
	return r->choice[r->at++];
}

void model_need(struct model_run *r, bool condition)
{
	r->blocked |= !condition;
}

void model_fail(struct model_run *r, const char *why)
{
	r->failure = why;
}

void model_note(struct model_run *r, const char *format, ...)
{
	va_list ap;

	if (!r->loud)
		return;
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
}

/* The next set of choices of the same step; false: that was the last. */
static bool other_choice(struct model_run *r)
{
	r->nchoices = r->at;
	while (r->nchoices) {
		if (++r->choice[r->nchoices - 1] < r->options[r->nchoices - 1])
			return true;
		r->nchoices--;
	}
	return false;
}

/* The step of @t. */
static void thread_step(struct model_run *r, unsigned int t)
{
	unsigned int at = model_at(r, t);

	model_need(r, at != MODEL_END);
	if (at == MODEL_END)
		return;
	at = r->m->thread[t].step(r, t, at);
	if (at >= MODEL_STEPS && at != MODEL_END)
		model_limit(r, "number of steps");
	r->s->at[t] = (uint8_t)at;
}

/* One outcome of the step of @who in the state packed at @from. */
static void take_step(struct model_run *r, const uint8_t *from, uint8_t who)
{
	model_state_unpack(r, from);
	r->at = 0;
	r->blocked = false;
	r->failure = NULL;
	if (who & DRAIN)
		model_need(r, model_drain(r, who & ~DRAIN));
	else
		thread_step(r, who);
	if (r->blocked)
		r->failure = NULL;
}

/* All outcomes of it. Returns what fails, with its number in *@outcome. */
static const char *all_outcomes(struct model_run *r, const uint8_t *bytes,
				uint32_t from, uint8_t who,
				unsigned int *outcome)
{
	*outcome = 0;
	r->nchoices = 0;
	do {
		take_step(r, bytes, who);
		if (r->failure)
			return r->failure;
		if (!r->blocked)
			edge_add(from, visit(r, from, who, *outcome));
		++*outcome;
	} while (other_choice(r));
	return NULL;
}

/* ---- traces ---- */

/* Prints outcome @n of the step of @who; packs what it leads to. */
static void replay(struct model_run *r, uint8_t *bytes, uint8_t who,
		   unsigned int n)
{
	r->nchoices = 0;
	r->loud = false;
	for (unsigned int i = 0; i < n; i++) {
		take_step(r, bytes, who);
		other_choice(r);
	}
	printf("    %-10s ", r->m->thread[who & ~DRAIN].name);
	r->loud = true;
	take_step(r, bytes, who);
	r->loud = false;
	printf("\n");
	model_state_pack(r, bytes);
}

/* Prints the way to state @n, packed to @bytes. */
static void print_way(struct model_run *r, uint32_t n, uint8_t *bytes)
{
	uint32_t *way = need(malloc(((size_t)n + 1) * sizeof(*way)));
	uint32_t len = 0;

	for (; x.seen[n].who != NOBODY; n = x.seen[n].from)
		way[len++] = n;
	memset(r->s, 0, sizeof(*r->s));
	model_state_init(r);
	model_state_pack(r, bytes);
	while (len--)
		replay(r, bytes, x.seen[way[len]].who,
		       x.seen[way[len]].outcome);
	free(way);
}

/* A step that fails. */
static void trace_step(struct model_run *r, uint32_t from, uint8_t who,
		       unsigned int outcome, const char *why)
{
	uint8_t bytes[MODEL_BYTES];

	printf("  %s, %s memory, %s:\n", r->m->name,
	       r->memory == MODEL_TSO ? "TSO" : "weak",
	       r->m->variant[r->variant].name);
	print_way(r, from, bytes);
	if (who != NOBODY)
		replay(r, bytes, who, outcome);
	printf("    -> %s\n", why);
}

/* ---- exploration ---- */

/* Looks at state @from. NULL, or what fails. */
static const char *expand(struct model_run *r, uint32_t from, bool trace)
{
	uint8_t bytes[MODEL_BYTES];
	size_t edges = x.edges;
	unsigned int outcome;
	const char *why;

	queue_take(bytes);
	for (unsigned int i = 0; i < 2 * r->m->threads; i++) {
		uint8_t who = (uint8_t)(i / 2 | (i % 2 ? DRAIN : 0));

		if (i % 2 && r->memory != MODEL_TSO)
			continue;
		why = all_outcomes(r, bytes, from, who, &outcome);
		if (!why)
			continue;
		if (trace)
			trace_step(r, from, who, outcome, why);
		return why;
	}
	if (x.edges != edges || x.seen[from].rests)
		return NULL;
	if (trace)
		trace_step(r, from, NOBODY, 0, "deadlock");
	return "deadlock";
}

/*
 * Marks all states from which one is reached where the model may rest. Steps
 * mostly lead to later states, so few sweeps from the end do.
 */
static void mark_rests(void)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = x.edges; i--;) {
			const struct edge *e = &x.edge[i];

			if (!x.seen[e->to].rests || x.seen[e->from].rests)
				continue;
			x.seen[e->from].rests = true;
			more = true;
		}
	}
}

/* NULL, or that somebody may wait or turn for ever. */
static const char *endless(struct model_run *r, bool trace)
{
	mark_rests();
	for (uint32_t i = 0; i < x.n; i++) {
		if (x.seen[i].rests)
			continue;
		if (trace)
			trace_step(r, i, NOBODY, 0, "never ends from here");
		return "never ends";
	}
	return NULL;
}

struct model_result model_explore(const struct model *m, unsigned int v,
				  enum model_memory memory, bool trace)
{
	struct model_run r = {
		.m = m,
		.variant = v,
		.memory = memory,
		.s = &current,
	};
	const char *why = NULL;

	reset();
	memset(&current, 0, sizeof(current));
	model_state_init(&r);
	visit(&r, 0, NOBODY, 0);
	for (uint32_t i = 0; i < x.n && !why; i++)
		why = expand(&r, i, trace);
	if (!why)
		why = endless(&r, trace);
	return (struct model_result){ .states = x.n, .failure = why };
}
