/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The protocol of shm/grace.h, all its interleavings: two readers and one
 * owner on a machine with store buffers (x86-TSO).
 *
 * A store goes into its thread's buffer and reaches memory at any later time,
 * in order; a load sees the own buffer first, then memory; a full fence waits
 * until the own buffer is empty, a membarrier empties all. Readers do up to
 * OPS operations: a hit, a miss, or (outside) a clear. The owner invalidates
 * region X, waits, closes, and reuses the slot for region Y.
 *
 * Violations: a write to X that reaches memory after the close has returned;
 * fields of the reused slot read under the version of the old one.
 *
 * Prints a table: states and result for the protocol and for each mutant.
 * Exit status 0 if the protocol holds and each mutant is caught.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	READERS = 2,
	OWNER = READERS, /* number of the owner's thread */
	THREADS = READERS + 1,
	OPS = 3,	/* operations of a reader */
	BUFFER = 8,	/* stores in flight of a thread */
	STORES_MAX = 3, /* of one step */
	NONE = 0xff,	/* no cached version */
};

/* Words of memory. */
enum word {
	SLOT_VERSION,		     /* 0: X, 1: invalid, 2: Y */
	FIELD,			     /* 0: X, 1: Y */
	SEQ,			     /* one per reader */
	ANNOUNCE = SEQ + READERS,    /* likewise */
	CACHED = ANNOUNCE + READERS, /* likewise: an entry is there */
	WORDS = CACHED + READERS,
	DATA = WORDS, /* the user's memory: what is stored is the region */
};

enum mutant {
	CORRECT,
	NO_OWNER_FENCE,
	BARRIER_BY_CACHE,
	CLEAR_INSIDE,
	NO_MISS_FENCE,
	NO_COMPARE,
	NO_WAIT,
	NO_GRACE,
	NO_BARRIER,
	MUTANTS
};

static const char *const mutant_name[MUTANTS] = {
	[CORRECT] = "the protocol",
	[NO_OWNER_FENCE] = "no fence of the owner",
	[BARRIER_BY_CACHE] = "membarrier skipped by key caches",
	[CLEAR_INSIDE] = "announce line cleared inside",
	[NO_MISS_FENCE] = "no fence on a miss",
	[NO_COMPARE] = "version not compared on a hit",
	[NO_WAIT] = "wait skipped",
	[NO_GRACE] = "slot reused without grace period",
	[NO_BARRIER] = "no membarrier",
};

/* Where a reader is. */
enum step {
	IDLE,
	HIT_LOAD,
	USE,
	LEAVE,
	MISS_ANNOUNCE,
	MISS_FENCE,
	MISS_VERSION,
	MISS_FIELD,
	MISS_AGAIN,
	MISS_INSERT,
};

/* Where the owner is. */
enum owner_step {
	O_INVALIDATE,
	O_FENCE,
	O_LOOK,
	O_BARRIER,
	O_SCAN,
	O_WAIT,
	O_CLOSE,
	O_FIELD,
	O_VERSION,
	O_DONE,
};

/* All bytes, so that states compare by memcmp. */
struct store {
	uint8_t word;  /* enum word */
	uint8_t value; /* what it gets */
};

struct reader {
	uint8_t step;	 /* enum step */
	uint8_t ops;	 /* operations begun */
	uint8_t seq;	 /* own sequence */
	uint8_t cached;	 /* version of the entry, NONE */
	uint8_t region;	 /* of the entry */
	uint8_t version; /* loaded in this operation */
	uint8_t found;	 /* region of this operation */
};

struct state {
	uint8_t mem[WORDS];		   /* memory */
	uint8_t n[THREADS];		   /* stores in each buffer */
	struct store buf[THREADS][BUFFER]; /* oldest first */
	struct reader reader[READERS];	   /* the readers */
	uint8_t step;			   /* enum owner_step */
	uint8_t i;			   /* reader looked at */
	uint8_t seen;			   /* its odd sequence */
	uint8_t any;			   /* a bit was announced */
	uint8_t closed;			   /* close has returned */
};

static enum mutant mutant;
static const char *violation; /* of the current run, or NULL */

/* ---- the set of states ---- */

static struct state *set; /* visited, open addressing over @slot */
static uint32_t *slot;	  /* number in @set + 1 */
static uint32_t states, set_room, slots;

static uint32_t hash(const struct state *s)
{
	const uint8_t *p = (const uint8_t *)s;
	uint64_t h = 14695981039346656037ULL;

	for (size_t i = 0; i < sizeof(*s); i++)
		h = (h ^ p[i]) * 1099511628211ULL;
	return (uint32_t)(h ^ h >> 32);
}

static void *need(void *p)
{
	if (!p) {
		fprintf(stderr, "fence_model: no memory\n");
		exit(2);
	}
	return p;
}

/* Puts number @n, of @s, into the hash; the caller knows that it is new. */
static void place(const struct state *s, uint32_t n)
{
	uint32_t h = hash(s) & (slots - 1);

	while (slot[h])
		h = (h + 1) & (slots - 1);
	slot[h] = n + 1;
}

static void grow(void)
{
	set_room = set_room ? 2 * set_room : 1 << 16;
	set = need(realloc(set, set_room * sizeof(*set)));
	free(slot);
	slots = 2 * set_room;
	slot = need(calloc(slots, sizeof(*slot)));
	for (uint32_t i = 0; i < states; i++)
		place(&set[i], i);
}

/* Adds @s unless it was seen. */
static void visit(const struct state *s)
{
	uint32_t h;

	if (states == set_room)
		grow();
	for (h = hash(s) & (slots - 1); slot[h]; h = (h + 1) & (slots - 1))
		if (!memcmp(&set[slot[h] - 1], s, sizeof(*s)))
			return;
	set[states] = *s;
	slot[h] = ++states;
}

/* ---- the machine ---- */

static void store(struct state *s, int thread, int word, unsigned int value)
{
	struct store *b = &s->buf[thread][s->n[thread]++];

	if (s->n[thread] > BUFFER)
		abort();
	b->word = (uint8_t)word;
	b->value = (uint8_t)value;
}

static uint8_t load(const struct state *s, int thread, int word)
{
	for (int i = s->n[thread]; i--;)
		if (s->buf[thread][i].word == word)
			return s->buf[thread][i].value;
	return s->mem[word];
}

/* The oldest store of @thread reaches memory. */
static void drain(struct state *s, int thread)
{
	struct store b = s->buf[thread][0];

	s->n[thread]--;
	memmove(s->buf[thread], s->buf[thread] + 1,
		(BUFFER - 1) * sizeof(struct store));
	memset(&s->buf[thread][BUFFER - 1], 0, sizeof(struct store));
	if (b.word != DATA)
		s->mem[b.word] = b.value;
	else if (b.value == 0 && s->closed)
		violation = "late write";
}

static void barrier(struct state *s)
{
	for (int t = 0; t < THREADS; t++)
		while (s->n[t])
			drain(s, t);
}

/* ---- readers ---- */

static void begin(struct state *s, int t, enum step next)
{
	struct reader *r = &s->reader[t];

	r->ops++;
	store(s, t, SEQ + t, ++r->seq);
	r->step = next;
}

static void clear(struct state *s, int t)
{
	s->reader[t].cached = NONE;
	s->reader[t].region = 0;
	store(s, t, CACHED + t, 0);
	store(s, t, ANNOUNCE + t, 0);
}

/* Outside: each thing the reader may do next. */
static void idle(const struct state *from, int t)
{
	struct state s = *from;

	if (s.reader[t].ops == OPS)
		return;
	begin(&s, t, s.reader[t].cached == NONE ? MISS_ANNOUNCE : HIT_LOAD);
	visit(&s);
	if (from->reader[t].cached == NONE)
		return;
	s = *from;
	s.reader[t].ops++;
	clear(&s, t);
	visit(&s);
}

/* The version on a hit: still the same? */
static void hit_load(struct state *s, int t)
{
	struct reader *r = &s->reader[t];

	if (mutant == NO_COMPARE || load(s, t, SLOT_VERSION) == r->cached) {
		r->found = r->region;
		r->step = USE;
		return;
	}
	r->cached = NONE;
	r->region = 0;
	store(s, t, CACHED + t, 0);
	r->step = LEAVE;
}

static void miss_field(struct state *s, int t)
{
	struct reader *r = &s->reader[t];

	r->found = load(s, t, FIELD);
	if (r->version == 0 && r->found == 1)
		violation = "use of a reused slot";
	r->step = MISS_AGAIN;
}

static void miss_insert(struct state *s, int t)
{
	struct reader *r = &s->reader[t];

	if (mutant == CLEAR_INSIDE)
		clear(s, t);
	r->cached = r->version;
	r->region = r->found;
	store(s, t, CACHED + t, 1);
	r->step = USE;
}

static void leave(struct state *s, int t)
{
	struct reader *r = &s->reader[t];

	store(s, t, SEQ + t, ++r->seq);
	r->version = r->found = 0;
	r->step = IDLE;
}

static void read_step(const struct state *from, int t)
{
	struct state s = *from;
	struct reader *r = &s.reader[t];

	/* a full buffer stalls until it drains */
	if (s.n[t] > BUFFER - STORES_MAX)
		return;
	switch ((enum step)r->step) {
	case IDLE:
		idle(from, t);
		return;
	case HIT_LOAD:
		hit_load(&s, t);
		break;
	case USE:
		store(&s, t, DATA, r->found);
		r->step = LEAVE;
		break;
	case LEAVE:
		leave(&s, t);
		break;
	case MISS_ANNOUNCE:
		store(&s, t, ANNOUNCE + t, 1);
		r->step = MISS_FENCE;
		break;
	case MISS_FENCE:
		if (s.n[t] && mutant != NO_MISS_FENCE)
			return;
		r->step = MISS_VERSION;
		break;
	case MISS_VERSION:
		r->version = load(&s, t, SLOT_VERSION);
		r->step = r->version & 1 ? LEAVE : MISS_FIELD;
		break;
	case MISS_FIELD:
		miss_field(&s, t);
		break;
	case MISS_AGAIN:
		r->step = load(&s, t, SLOT_VERSION) == r->version ? MISS_INSERT
								  : LEAVE;
		break;
	case MISS_INSERT:
		miss_insert(&s, t);
		break;
	}
	visit(&s);
}

/* ---- the owner ---- */

static void look(struct state *s)
{
	int word = mutant == BARRIER_BY_CACHE ? CACHED : ANNOUNCE;

	s->any |= load(s, OWNER, word + s->i);
	if (++s->i < READERS)
		return;
	s->i = 0;
	s->step = s->any && mutant != NO_BARRIER ? O_BARRIER : O_SCAN;
}

static void next_reader(struct state *s)
{
	s->seen = 0;
	s->step = O_SCAN;
	if (++s->i < READERS)
		return;
	s->i = 0;
	s->step = mutant == NO_GRACE ? O_DONE : O_CLOSE;
	if (mutant == NO_GRACE)
		s->closed = 1;
}

/* After the look at announce lines: wait, or what a mutant does instead. */
static void scan(struct state *s)
{
	uint8_t seq = load(s, OWNER, SEQ + s->i);

	if (mutant == NO_WAIT || !(seq & 1)) {
		next_reader(s);
		return;
	}
	s->seen = seq;
	s->step = O_WAIT;
}

/* Reuse comes after the wait; without a grace period before it. */
static void reuse(struct state *s)
{
	if (s->step == O_FIELD) {
		store(s, OWNER, FIELD, 1);
		s->step = O_VERSION;
		return;
	}
	store(s, OWNER, SLOT_VERSION, 2);
	s->step = mutant == NO_GRACE ? O_LOOK : O_DONE;
}

static void own_step(const struct state *from)
{
	struct state s = *from;

	switch ((enum owner_step)s.step) {
	case O_INVALIDATE:
		store(&s, OWNER, SLOT_VERSION, 1);
		s.step = O_FENCE;
		break;
	case O_FENCE:
		if (s.n[OWNER] && mutant != NO_OWNER_FENCE)
			return;
		s.step = mutant == NO_GRACE ? O_FIELD : O_LOOK;
		break;
	case O_LOOK:
		look(&s);
		break;
	case O_BARRIER:
		barrier(&s);
		s.step = O_SCAN;
		break;
	case O_SCAN:
		scan(&s);
		break;
	case O_WAIT:
		if (load(&s, OWNER, SEQ + s.i) == s.seen)
			return;
		next_reader(&s);
		break;
	case O_CLOSE:
		s.closed = 1;
		s.step = O_FIELD;
		break;
	case O_FIELD:
	case O_VERSION:
		reuse(&s);
		break;
	case O_DONE:
		return;
	}
	visit(&s);
}

/* ---- exploration ---- */

static void explore(void)
{
	struct state s;

	memset(&s, 0, sizeof(s));
	for (int t = 0; t < READERS; t++)
		s.reader[t].cached = NONE;
	states = 0;
	violation = NULL;
	if (slot)
		memset(slot, 0, slots * sizeof(*slot));
	visit(&s);
	for (uint32_t i = 0; i < states && !violation; i++) {
		/* @set moves when it grows */
		const struct state from = set[i];

		for (int t = 0; t < THREADS; t++) {
			s = from;
			if (!s.n[t])
				continue;
			drain(&s, t);
			visit(&s);
		}
		for (int t = 0; t < READERS; t++)
			read_step(&from, t);
		own_step(&from);
	}
}

int main(void)
{
	int bad = 0;

	printf("%-34s %9s  %s\n", "variant", "states", "result");
	for (int m = 0; m < MUTANTS; m++) {
		mutant = (enum mutant)m;
		explore();
		printf("%-34s %9u  %s\n", mutant_name[m], states,
		       violation ? violation : "holds");
		bad += (violation != NULL) != (m != CORRECT);
	}
	free(set);
	free(slot);
	return bad ? 1 : 0;
}
