/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Accesses of a reader.
 */
#include "doc/model/reader.h"

void reader_begin(struct model_run *r, struct reader *me, unsigned int ops)
{
	model_need(r, me->ops < ops);
	me->ops++;
}

void reader_enter(struct model_run *r, unsigned int t, struct reader *me,
		  unsigned int seq)
{
	/* H1, M1 */
	model_store(r, t, seq, ++me->seq, MODEL_RELEASE);
}

bool reader_hits(struct model_run *r, unsigned int t, unsigned int version,
		 uint8_t *cached)
{
	/* H2, A7 */
	if (model_load(r, t, version, MODEL_ACQUIRE) + 1u == *cached)
		return true;
	*cached = 0;
	return false;
}

bool reader_looks(struct model_run *r, unsigned int t, struct reader *me,
		  unsigned int version)
{
	/* M3 */
	model_fence(r, t);
	/* M4, A2 */
	me->version = model_load(r, t, version, MODEL_ACQUIRE);
	return !(me->version & 1);
}

bool reader_as_before(struct model_run *r, unsigned int t,
		      const struct reader *me, unsigned int version)
{
	return model_load(r, t, version, MODEL_RELAXED) == me->version;
}

void reader_keep(const struct reader *me, uint8_t *cached)
{
	*cached = (uint8_t)(me->version + 1);
}

void reader_leave(struct model_run *r, unsigned int t, struct reader *me,
		  unsigned int seq)
{
	/* H3, Q1 */
	model_store(r, t, seq, ++me->seq, MODEL_RELEASE);
	me->version = 0;
}
