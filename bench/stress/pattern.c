/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Streams of bytes that tell where they belong: word i of a stream is its tag
 * and i, mixed by a function that has an inverse.
 */
#include "bench/stress/pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	WORD = 8,	 /* bytes of a word */
	PLACE_BITS = 28, /* bits of a word's number */
	COUNT_BITS = 12, /* bits of a stream's number in its step */
	BESIDE = 64,	 /* numbers of steps for other streams */
};

#define GOLDEN	  0x9e3779b97f4a7c15ull
#define MUL1	  0xbf58476d1ce4e5b9ull
#define MUL1_BACK 0x96de1b173f119089ull /* MUL1 * MUL1_BACK = 1 */
#define MUL2	  0x94d049bb133111ebull
#define MUL2_BACK 0x319642b2d24d8ec3ull

uint64_t stress_mix(uint64_t x)
{
	x += GOLDEN;
	x = (x ^ x >> 30) * MUL1;
	x = (x ^ x >> 27) * MUL2;
	return x ^ x >> 31;
}

uint64_t stress_unmix(uint64_t x)
{
	x = (x ^ x >> 31 ^ x >> 62) * MUL2_BACK;
	x = (x ^ x >> 27 ^ x >> 54) * MUL1_BACK;
	x ^= x >> 30 ^ x >> 60;
	return x - GOLDEN;
}

uint64_t stress_draw(uint64_t *state)
{
	*state += GOLDEN;
	return stress_mix(*state);
}

uint64_t stress_tag(uint64_t step, uint64_t count)
{
	return step % STRESS_TAG_STEPS << COUNT_BITS |
	       count % STRESS_TAG_COUNTS;
}

uint64_t stress_tag_step(uint64_t tag)
{
	return tag >> COUNT_BITS;
}

uint64_t stress_tag_count(uint64_t tag)
{
	return tag % STRESS_TAG_COUNTS;
}

/* Word @i of stream @tag. */
static inline uint64_t word(uint64_t tag, uint64_t i)
{
	return tag ? stress_mix(tag << PLACE_BITS | i) : 0;
}

/* The bytes up to the next word of the stream, and not above @len. */
static size_t head_of(struct stress_pat pat, size_t len)
{
	size_t n = (WORD - pat.off % WORD) % WORD;

	return n < len ? n : len;
}

/* Copies @n bytes, within one word of the stream, to @to. */
static void part_copy(unsigned char *to, size_t n, struct stress_pat pat)
{
	uint64_t w = word(pat.tag, pat.off / WORD);

	memcpy(to, (unsigned char *)&w + pat.off % WORD, n);
}

void stress_write(void *p, size_t len, struct stress_pat pat)
{
	size_t head = head_of(pat, len), i;
	unsigned char *to = p;

	if (head)
		part_copy(to, head, pat);
	for (i = head; i + WORD <= len; i += WORD) {
		uint64_t w = word(pat.tag, (pat.off + i) / WORD);

		memcpy(to + i, &w, WORD);
	}
	if (i < len)
		part_copy(to + i, len - i, stress_at(pat, i));
}

static bool part_same(const unsigned char *p, size_t n, struct stress_pat pat)
{
	unsigned char want[WORD];

	part_copy(want, n, pat);
	return !memcmp(p, want, n);
}

bool stress_same(const void *p, size_t len, struct stress_pat pat)
{
	size_t head = head_of(pat, len), i;
	const unsigned char *at = p;
	uint64_t differ = 0, w;

	if (head && !part_same(at, head, pat))
		return false;
	for (i = head; i + WORD <= len; i += WORD) {
		memcpy(&w, at + i, WORD);
		differ |= w ^ word(pat.tag, (pat.off + i) / WORD);
	}
	return !differ &&
	       (i >= len || part_same(at + i, len - i, stress_at(pat, i)));
}

/* Byte @i of @pat. */
static unsigned char byte_at(struct stress_pat pat, size_t i)
{
	unsigned char b;

	part_copy(&b, 1, stress_at(pat, i));
	return b;
}

static uint64_t load(const unsigned char *p)
{
	uint64_t w;

	memcpy(&w, p, WORD);
	return w;
}

/* Streams that no step made: of guards, and of threads beside. */
static bool is_beside(uint64_t step)
{
	return step >= STRESS_TAG_STEPS - BESIDE;
}

/* Whether @w may be of a step up to that of @pat. */
static bool is_word(uint64_t w, struct stress_pat pat, struct stress_diff *d)
{
	uint64_t x = stress_unmix(w), tag = x >> PLACE_BITS;
	uint64_t step = stress_tag_step(tag);

	if (!step ||
	    (pat.tag && step > stress_tag_step(pat.tag) && !is_beside(step)))
		return false;
	d->tag = tag;
	d->off = x % (1u << PLACE_BITS) * WORD;
	return true;
}

/* Finds a whole word at or after the first wrong byte. */
static void origin_find(const unsigned char *p, size_t len,
			struct stress_pat pat, struct stress_diff *d)
{
	size_t from = d->at, i;

	for (i = from; i + WORD <= len && i < from + 2 * WORD; i++) {
		if (!is_word(load(p + i), pat, d))
			continue;
		d->off -= i - from;
		return;
	}
}

bool stress_diff(const void *p, size_t len, struct stress_pat pat,
		 struct stress_diff *d)
{
	const unsigned char *at = p;

	memset(d, 0, sizeof(*d));
	if (stress_same(p, len, pat))
		return false;
	d->at = len;
	for (size_t i = 0; i < len; i++) {
		if (at[i] == byte_at(pat, i))
			continue;
		d->wrong++;
		if (d->at == len)
			d->at = i;
	}
	if (d->at == len) /* right by now */
		d->at = 0;
	memcpy(&d->got, at + d->at, len - d->at < WORD ? len - d->at : WORD);
	stress_write(&d->want, WORD, stress_at(pat, d->at));
	d->zero = !d->got;
	if (!d->zero)
		origin_find(at, len, pat, d);
	return true;
}

/* Says where the first wrong word comes from. */
static int origin_say(char *text, size_t room, struct stress_pat pat,
		      const struct stress_diff *d)
{
	int64_t by = (int64_t)(d->off - (pat.off + d->at));

	if (d->zero)
		return snprintf(text, room, "zeros");
	if (!d->tag)
		return snprintf(text, room, "of no stream of ours");
	if (is_beside(stress_tag_step(d->tag)))
		return snprintf(text, room,
				"nobody wrote there, or a thread "
				"beside did");
	if (d->tag == pat.tag)
		return snprintf(text, room,
				"misplaced: of this stream, %" PRId64
				" bytes further on",
				by);
	return snprintf(text, room,
			"stale: of step %" PRIu64 ", stream %" PRIu64 ", %s",
			stress_tag_step(d->tag), stress_tag_count(d->tag),
			by ? "and misplaced" : "in its place");
}

const char *stress_explain(char text[STRESS_TEXT], const char *what,
			   const void *p, size_t len, struct stress_pat pat,
			   const struct stress_diff *d)
{
	char from[120];

	origin_say(from, sizeof(from), pat, d);
	snprintf(text, STRESS_TEXT,
		 "%s: %zu of %zu bytes at %p are wrong%s, the first at %zu: "
		 "%016" PRIx64 " for %016" PRIx64 " of step %" PRIu64
		 ", stream %" PRIu64 " (%s)",
		 what, d->wrong, len, p,
		 d->wrong && d->wrong < len ? " (torn)" : "", d->at, d->got,
		 d->want, stress_tag_step(pat.tag), stress_tag_count(pat.tag),
		 from);
	return text;
}
