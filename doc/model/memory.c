/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Accesses of a step, on either memory.
 */
#include "doc/model/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void model_limit(const struct model_run *r, const char *what)
{
	fprintf(stderr, "models: %s: the %s is too small\n", r->m->name, what);
	exit(2);
}

static const char *word_name(const struct model_run *r, unsigned int word)
{
	return r->m->word[word].name;
}

/* ---- views ---- */

static void join(uint8_t *to, const uint8_t *from)
{
	for (unsigned int i = 0; i < MODEL_WORDS; i++)
		if (to[i] < from[i])
			to[i] = from[i];
}

static uint8_t *view(struct model_run *r, unsigned int t, enum model_view v)
{
	return r->s->u.weak.v[t][v];
}

/* Calls @fn for position @word of each view there is. */
static void each_position(struct model_run *r, unsigned int word,
			  void (*fn)(uint8_t *at, unsigned int x),
			  unsigned int x)
{
	struct model_weak *w = &r->s->u.weak;

	for (unsigned int t = 0; t < r->m->threads; t++)
		for (int v = 0; v < MODEL_VIEWS; v++)
			fn(&w->v[t][v][word], x);
	fn(&w->sc[word], x);
	for (unsigned int i = 0; i < r->m->words; i++)
		for (unsigned int k = 0; k < w->n[i]; k++)
			fn(&w->m[i][k].view[word], x);
}

/* A message came to position @x. */
static void make_room(uint8_t *at, unsigned int x)
{
	if (*at >= x)
		++*at;
}

/* The oldest @x are gone. */
static void drop(uint8_t *at, unsigned int x)
{
	*at = (uint8_t)(*at < x ? 0 : *at - x);
}

/* ---- the weak memory ---- */

/* Messages of @word that nobody can read any more. */
static unsigned int unreadable(const struct model_run *r, unsigned int word)
{
	const struct model_weak *w = &r->s->u.weak;
	const struct model_word *d = &r->m->word[word];
	unsigned int n = w->n[word] - 1u;

	/* of memory it counts who knows the last touch */
	if (d->memory)
		return n ? n - 1 : 0;
	for (unsigned int t = 0; t < r->m->threads; t++)
		if (d->loaders >> t & 1 && w->v[t][MODEL_CUR][word] < n)
			n = w->v[t][MODEL_CUR][word];
	return n;
}

static void forget(struct model_run *r)
{
	struct model_weak *w = &r->s->u.weak;

	for (unsigned int i = 0; i < r->m->words; i++) {
		unsigned int n = unreadable(r, i);

		if (!n)
			continue;
		w->n[i] = (uint8_t)(w->n[i] - n);
		memmove(w->m[i], w->m[i] + n, w->n[i] * sizeof(w->m[i][0]));
		each_position(r, i, drop, n);
	}
}

/*
 * Puts a message with what @v knows at position @at of @word. What the message
 * before hands on goes on through it if it is the same thread's (a release
 * sequence).
 */
static void insert(struct model_run *r, unsigned int t, unsigned int word,
		   unsigned int at, unsigned int value, enum model_view v)
{
	struct model_weak *w = &r->s->u.weak;
	struct model_message *m = &w->m[word][at];

	if (w->n[word] == MODEL_HISTORY)
		model_limit(r, "history");
	each_position(r, word, make_room, at);
	memmove(m + 1, m, (w->n[word] - at) * sizeof(*m));
	w->n[word]++;
	memset(m, 0, sizeof(*m));
	m->value = (uint8_t)value;
	w->v[t][MODEL_CUR][word] = w->v[t][MODEL_ACQ][word] = (uint8_t)at;
	memcpy(m->view, w->v[t][v], sizeof(m->view));
	m->by = (uint8_t)(t + 1);
	if (m[-1].by == m->by)
		join(m->view, m[-1].view);
	m->view[word] = (uint8_t)at;
}

/* Where a store of @t goes: last, or where others' stores left room. */
static unsigned int place(struct model_run *r, unsigned int t,
			  unsigned int word)
{
	struct model_weak *w = &r->s->u.weak;
	unsigned int n = w->n[word], first = view(r, t, MODEL_CUR)[word] + 1u;
	unsigned int back = 0;

	if (!r->m->word[word].crossed || first >= n)
		return n;
	back = model_choose(r, n - first + 1);
	if (back) {
		model_need(r, !w->m[word][n - back].rmw);
		model_note(r, "before the last %u: ", back);
	}
	return n - back;
}

/* The last message of @word, by @t, is no part of a release sequence. */
static void leave_sequence(struct model_run *r, unsigned int t,
			   unsigned int word)
{
	struct model_weak *w = &r->s->u.weak;
	struct model_message *m = &w->m[word][w->n[word] - 1];

	memcpy(m->view, w->v[t][MODEL_REL], sizeof(m->view));
	m->view[word] = (uint8_t)(w->n[word] - 1);
}

/* Thread @t reads message @k of @word. */
static uint8_t take(struct model_run *r, unsigned int t, unsigned int word,
		    unsigned int k, enum model_order o)
{
	const struct model_message *m = &r->s->u.weak.m[word][k];
	uint8_t *cur = view(r, t, MODEL_CUR), *acq = view(r, t, MODEL_ACQ);

	if (cur[word] < k)
		cur[word] = (uint8_t)k;
	join(acq, m->view);
	if (acq[word] < k)
		acq[word] = (uint8_t)k;
	if (o == MODEL_ACQUIRE)
		join(cur, m->view);
	return m->value;
}

/* A message that @t may read. */
static unsigned int readable(struct model_run *r, unsigned int t,
			     unsigned int word)
{
	unsigned int n = r->s->u.weak.n[word];
	unsigned int first = view(r, t, MODEL_CUR)[word];
	unsigned int old = model_choose(r, n - first);

	if (old)
		model_note(r, "old value: ");
	return n - 1 - old;
}

static void weak_fence(struct model_run *r, unsigned int t)
{
	uint8_t *cur = view(r, t, MODEL_CUR), *sc = r->s->u.weak.sc;

	join(cur, view(r, t, MODEL_ACQ));
	join(cur, sc);
	memcpy(sc, cur, MODEL_WORDS);
	memcpy(view(r, t, MODEL_ACQ), cur, MODEL_WORDS);
	memcpy(view(r, t, MODEL_REL), cur, MODEL_WORDS);
}

/* ---- TSO ---- */

bool model_drain(struct model_run *r, unsigned int t)
{
	struct model_tso *m = &r->s->u.tso;
	struct model_pending b = m->buf[t][0];

	if (!m->n[t])
		return false;
	m->n[t]--;
	memmove(m->buf[t], m->buf[t] + 1, m->n[t] * sizeof(b));
	if (r->m->word[b.word].memory) {
		model_note(r, "its touch of %s is done", word_name(r, b.word));
		return true;
	}
	m->mem[b.word] = b.value;
	model_note(r, "its %s = %u reaches memory", word_name(r, b.word),
		   b.value);
	return true;
}

static void push(struct model_run *r, unsigned int t, unsigned int word,
		 unsigned int value)
{
	struct model_tso *m = &r->s->u.tso;

	model_need(r, m->n[t] < MODEL_BUFFER);
	if (m->n[t] == MODEL_BUFFER)
		return;
	m->buf[t][m->n[t]++] = (struct model_pending){
		.word = (uint8_t)word,
		.value = (uint8_t)value,
	};
}

static uint8_t tso_load(const struct model_tso *m, unsigned int t,
			unsigned int word)
{
	for (unsigned int i = m->n[t]; i--;)
		if (m->buf[t][i].word == word)
			return m->buf[t][i].value;
	return m->mem[word];
}

/* ---- accesses ---- */

uint8_t model_load(struct model_run *r, unsigned int t, unsigned int word,
		   enum model_order o)
{
	uint8_t x;

	if (!(r->m->word[word].loaders >> t & 1))
		model_limit(r, word_name(r, word));
	if (r->memory == MODEL_TSO)
		x = tso_load(&r->s->u.tso, t, word);
	else
		x = take(r, t, word, readable(r, t, word), o);
	model_note(r, "%s is %u; ", word_name(r, word), x);
	return x;
}

void model_store(struct model_run *r, unsigned int t, unsigned int word,
		 unsigned int value, enum model_order o)
{
	if (r->memory == MODEL_TSO)
		push(r, t, word, value);
	else
		insert(r, t, word, place(r, t, word), value,
		       o == MODEL_RELEASE ? MODEL_CUR : MODEL_REL);
	if (o == MODEL_ALONE && r->memory == MODEL_WEAK)
		leave_sequence(r, t, word);
	model_note(r, "stores %s = %u; ", word_name(r, word), value);
}

/* What a read-modify-write reads; *@k: weak: its message. */
static uint8_t rmw_load(struct model_run *r, unsigned int t, unsigned int word,
			unsigned int *k)
{
	if (!(r->m->word[word].loaders >> t & 1))
		model_limit(r, word_name(r, word));
	if (r->memory == MODEL_TSO) {
		model_need(r, !r->s->u.tso.n[t]);
		return r->s->u.tso.mem[word];
	}
	*k = readable(r, t, word);
	return r->s->u.weak.m[word][*k].value;
}

/* Its store, right behind what it read. */
static void rmw_store(struct model_run *r, unsigned int t, unsigned int word,
		      unsigned int k, unsigned int value)
{
	struct model_weak *w = &r->s->u.weak;

	if (r->memory == MODEL_TSO) {
		r->s->u.tso.mem[word] = (uint8_t)value;
		return;
	}
	/* there is one behind: it would come between that and this */
	if (k + 1u < w->n[word])
		model_need(r,
			   r->m->word[word].crossed && !w->m[word][k + 1].rmw);
	if (r->blocked)
		return;
	take(r, t, word, k, MODEL_ACQUIRE);
	insert(r, t, word, k + 1, value, MODEL_CUR);
	/* what its predecessor handed on goes on through it */
	join(w->m[word][k + 1].view, w->m[word][k].view);
	w->m[word][k + 1].rmw = 1;
}

bool model_cas(struct model_run *r, unsigned int t, unsigned int word,
	       unsigned int old, unsigned int value)
{
	unsigned int k = 0;
	uint8_t x = rmw_load(r, t, word, &k);

	model_note(r, "%s is %u, ", word_name(r, word), x);
	if (x != old) {
		if (r->memory == MODEL_WEAK)
			take(r, t, word, k, MODEL_RELAXED);
		model_note(r, "not %u: stays; ", old);
		return false;
	}
	rmw_store(r, t, word, k, value);
	model_note(r, "becomes %u; ", value);
	return true;
}

uint8_t model_swap(struct model_run *r, unsigned int t, unsigned int word,
		   unsigned int value)
{
	unsigned int k = 0;
	uint8_t x = rmw_load(r, t, word, &k);

	rmw_store(r, t, word, k, value);
	model_note(r, "%s is %u, becomes %u; ", word_name(r, word), x, value);
	return x;
}

uint8_t model_add(struct model_run *r, unsigned int t, unsigned int word,
		  unsigned int x)
{
	unsigned int k = 0;
	uint8_t old = rmw_load(r, t, word, &k);

	rmw_store(r, t, word, k, old + x);
	model_note(r, "%s is %u, becomes %u; ", word_name(r, word), old,
		   old + x);
	return old;
}

uint8_t model_or(struct model_run *r, unsigned int t, unsigned int word,
		 unsigned int x)
{
	unsigned int k = 0;
	uint8_t old = rmw_load(r, t, word, &k);

	rmw_store(r, t, word, k, old | x);
	model_note(r, "%s is %u, becomes %u; ", word_name(r, word), old,
		   old | x);
	return old;
}

void model_fence(struct model_run *r, unsigned int t)
{
	if (r->memory == MODEL_TSO)
		model_need(r, !r->s->u.tso.n[t]);
	else
		weak_fence(r, t);
	model_note(r, "full fence; ");
}

void model_fence_other(struct model_run *r, unsigned int t, unsigned int u)
{
	if (r->memory == MODEL_TSO) {
		model_need(r, !r->s->u.tso.n[t] && !r->s->u.tso.n[u]);
	} else {
		weak_fence(r, t);
		weak_fence(r, u);
		weak_fence(r, t);
	}
	model_note(r, "membarrier reaches %s; ", r->m->thread[u].name);
}

static bool is_reclaimed(const struct model_run *r, unsigned int word)
{
	return r->s->reclaimed[word / 8] >> word % 8 & 1;
}

void model_touch(struct model_run *r, unsigned int t, unsigned int word)
{
	model_note(r, "touches %s; ", word_name(r, word));
	if (is_reclaimed(r, word))
		model_fail(r, "late access to user memory");
	if (r->memory == MODEL_TSO)
		push(r, t, word, 1);
	else
		insert(r, t, word, r->s->u.weak.n[word], 1, MODEL_REL);
}

/* True if a touch by another is still to come, or unknown to @t. */
static bool touch_ahead(struct model_run *r, unsigned int t, unsigned int word)
{
	const struct model_tso *m = &r->s->u.tso;

	if (r->memory == MODEL_WEAK)
		return view(r, t, MODEL_CUR)[word] + 1u < r->s->u.weak.n[word];
	for (unsigned int u = 0; u < r->m->threads; u++)
		for (unsigned int i = 0; u != t && i < m->n[u]; i++)
			if (m->buf[u][i].word == word)
				return true;
	return false;
}

void model_reclaim(struct model_run *r, unsigned int t, unsigned int word)
{
	model_note(r, "takes %s back; ", word_name(r, word));
	if (touch_ahead(r, t, word))
		model_fail(r, "late access to user memory");
	r->s->reclaimed[word / 8] |= (uint8_t)(1u << word % 8);
}

/* ---- states as bytes ---- */

void model_state_init(struct model_run *r)
{
	for (unsigned int i = 0; i < r->m->words; i++) {
		if (r->memory == MODEL_TSO) {
			r->s->u.tso.mem[i] = r->m->word[i].initial;
			continue;
		}
		r->s->u.weak.n[i] = 1;
		r->s->u.weak.m[i][0].value = r->m->word[i].initial;
	}
	for (unsigned int t = 0; t < r->m->threads; t++)
		r->s->at[t] = r->m->thread[t].begins;
	if (r->m->init)
		r->m->init(r);
}

/* A place in the bytes: packing writes there, unpacking reads. */
struct cursor {
	uint8_t *to;	     /* packing, else NULL */
	const uint8_t *from; /* unpacking */
};

static void move(struct cursor *c, void *p, size_t n)
{
	if (c->to) {
		memcpy(c->to, p, n);
		c->to += n;
	} else {
		memcpy(p, c->from, n);
		c->from += n;
	}
}

static void move_tso(struct model_run *r, struct cursor *c)
{
	struct model_tso *m = &r->s->u.tso;

	move(c, m->mem, r->m->words);
	move(c, m->n, r->m->threads);
	for (unsigned int t = 0; t < r->m->threads; t++)
		move(c, m->buf[t], m->n[t] * sizeof(m->buf[t][0]));
}

static void move_weak(struct model_run *r, struct cursor *c)
{
	struct model_weak *w = &r->s->u.weak;
	size_t words = r->m->words;

	move(c, w->n, words);
	for (unsigned int i = 0; i < words; i++)
		for (unsigned int k = 0; k < w->n[i]; k++)
			move(c, &w->m[i][k],
			     offsetof(struct model_message, view) + words);
	for (unsigned int t = 0; t < r->m->threads; t++)
		for (int v = 0; v < MODEL_VIEWS; v++)
			move(c, w->v[t][v], words);
	move(c, w->sc, words);
}

static void move_state(struct model_run *r, struct cursor *c)
{
	move(c, r->s->own, r->m->own);
	move(c, r->s->at, r->m->threads);
	move(c, r->s->reclaimed, sizeof(r->s->reclaimed));
	if (r->memory == MODEL_TSO)
		move_tso(r, c);
	else
		move_weak(r, c);
}

size_t model_state_pack(struct model_run *r, uint8_t *to)
{
	struct cursor c = { .to = to };

	if (r->memory == MODEL_WEAK)
		forget(r);
	move_state(r, &c);
	return (size_t)(c.to - to);
}

void model_state_unpack(struct model_run *r, const uint8_t *from)
{
	struct cursor c = { .from = from };

	memset(r->s, 0, sizeof(*r->s));
	move_state(r, &c);
}
