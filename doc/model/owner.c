/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The owner's fence.
 */
#include "doc/model/owner.h"

#include <string.h>

/* The next of @n, or behind the last one step @then. */
static void next_of(struct owner_fence *f, unsigned int n, enum owner_step then)
{
	if (++f->i < n)
		return;
	f->i = 0;
	f->step = (uint8_t)then;
}

/* The next reader, or behind the last one step @then. */
static void next(struct owner_fence *f, const struct owner_words *w,
		 enum owner_step then)
{
	next_of(f, w->readers, then);
}

static bool barrier_wanted(const struct owner_fence *f,
			   const struct owner_words *w)
{
	return (f->any || w->announce == OWNER_ALWAYS) &&
	       !(w->faults & OWNER_NO_BARRIER);
}

/* Behind the look at the announce words. */
static void looked(struct owner_fence *f, const struct owner_words *w)
{
	f->step = barrier_wanted(f, w) && !(w->faults & OWNER_BARRIER_LATE)
			  ? OWNER_BARRIER
			  : OWNER_SCAN;
}

static enum model_order order(const struct owner_words *w)
{
	return w->faults & OWNER_RELAXED ? MODEL_RELAXED : MODEL_ACQUIRE;
}

static void look(struct model_run *r, struct owner_fence *f,
		 const struct owner_words *w)
{
	/* A3 */
	if (model_load(r, w->thread, w->announce + f->i, order(w)) & w->want)
		f->any = 1;
	next(f, w, OWNER_SCAN);
	if (f->step == OWNER_SCAN)
		looked(f, w);
}

static void scan(struct model_run *r, struct owner_fence *f,
		 const struct owner_words *w)
{
	/* A1 */
	uint8_t seq = model_load(r, w->thread, w->seq + f->i, order(w));

	f->seen[f->i] = seq & 1 && !(w->faults & OWNER_NO_WAIT) ? seq : 0;
	next(f, w, OWNER_WAIT);
}

static void wait(struct model_run *r, struct owner_fence *f,
		 const struct owner_words *w)
{
	uint8_t *seen = &f->seen[f->i];

	/* by a system call: no order, the fence at the end gives it */
	if (*seen)
		model_need(r, model_load(r, w->thread, w->seq + f->i,
					 MODEL_RELAXED) != *seen);
	*seen = 0;
	next(f, w, OWNER_LAST);
}

static void fence(struct model_run *r, struct owner_fence *f,
		  const struct owner_words *w)
{
	if (!(w->faults & OWNER_NO_FENCE))
		model_fence(r, w->thread);
	if (w->announce == OWNER_ALWAYS)
		looked(f, w);
	else
		f->step = OWNER_LOOK;
}

bool owner_fence_step(struct model_run *r, struct owner_fence *f,
		      const struct owner_words *w)
{
	switch ((enum owner_step)f->step) {
	case OWNER_FENCE:
		fence(r, f, w);
		return false;
	case OWNER_LOOK:
		look(r, f, w);
		return false;
	case OWNER_BARRIER:
		model_fence_other(r, w->thread, f->i);
		next_of(f, w->readers + w->others,
			w->faults & OWNER_BARRIER_LATE ? OWNER_LAST
						       : OWNER_SCAN);
		return false;
	case OWNER_SCAN:
		scan(r, f, w);
		return false;
	case OWNER_WAIT:
		wait(r, f, w);
		if (f->step == OWNER_LAST && barrier_wanted(f, w) &&
		    w->faults & OWNER_BARRIER_LATE)
			f->step = OWNER_BARRIER;
		return false;
	case OWNER_LAST:
		if (!(w->faults & OWNER_NO_LAST))
			model_fence(r, w->thread);
		memset(f, 0, sizeof(*f));
		return true;
	}
	return false;
}
