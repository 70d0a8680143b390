/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The shrinking of steps that failed: the last one always stays. First the
 * shortest end of the list that fails, each try twice as long as the one
 * before it; then pieces of that are left out, halves first, then smaller
 * ones, as long as what is left fails. What fails by chance is tried a few
 * times, and may still be taken for right: then the result is longer than it
 * needs to be, but it has failed.
 */
#include "bench/stress/run.h"

#include <stdlib.h>
#include <string.h>

#include "bench/clock.h"

enum { TRIES = 3 };

/** The search. */
struct search {
	const struct stress_options *o;
	const struct stress_plan *from; /* settings */
	struct stress_fault fault;	/* of the last try that failed */
	uint64_t until;			/* end of the time */
	unsigned int tries;		/* of each subset */
};

static bool time_over(const struct search *s)
{
	return bench_clock_ns() > s->until;
}

static bool fails(struct search *s, struct stress_step *step, size_t n)
{
	struct stress_plan p = { .spec = s->from->spec, .step = step, .n = n };
	struct stress_fault f;

	for (unsigned int i = 0; i < s->tries && !time_over(s); i++) {
		if (stress_run_plan(s->o, &p, &f, NULL) != STRESS_END_WRONG)
			continue;
		s->fault = f;
		return true;
	}
	return false;
}

/* The length of the shortest end of the list that fails, or 0. */
static size_t end_find(struct search *s)
{
	size_t n = s->from->n;

	for (size_t k = 1; k < n && !time_over(s); k *= 2)
		if (fails(s, s->from->step + n - k, k))
			return k;
	return fails(s, s->from->step, n) ? n : 0;
}

/* Tries without @n steps at @at; they are gone if that fails. */
static bool cut(struct search *s, struct stress_step *step, size_t *len,
		size_t at, size_t n)
{
	size_t left = *len - n;
	struct stress_step *without = calloc(left, sizeof(*step));
	bool gone;

	if (!without)
		return false;
	memcpy(without, step, at * sizeof(*step));
	memcpy(without + at, step + at + n, (left - at) * sizeof(*step));
	gone = fails(s, without, left);
	if (gone) {
		memcpy(step, without, left * sizeof(*step));
		*len = left;
	}
	free(without);
	return gone;
}

/* All pieces of @n steps, but the last step. */
static void pieces_cut(struct search *s, struct stress_step *step, size_t *len,
		       size_t n)
{
	size_t at = 0;

	while (at + 1 < *len && !time_over(s)) {
		size_t k = *len - 1 - at < n ? *len - 1 - at : n;

		if (!cut(s, step, len, at, k))
			at += k;
	}
}

bool stress_shrink(const struct stress_options *o, struct stress_plan *p,
		   struct stress_fault *f)
{
	struct search s = { .o = o, .from = p, .tries = TRIES };
	size_t len;

	s.until = bench_clock_ns() + o->shrink * 1000000000ull;
	if (!p->n)
		return false;
	len = end_find(&s);
	if (!len)
		return false;
	memmove(p->step, p->step + p->n - len, len * sizeof(*p->step));
	p->n = len;
	for (size_t n = len / 2; n; n /= 2)
		pieces_cut(&s, p->step, &p->n, n);
	*f = s.fault;
	return true;
}
