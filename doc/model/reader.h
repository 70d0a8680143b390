/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A reader of the device, as a part of models: rnic_enter(), hit(), miss() and
 * rnic_leave() of shm/reader.c, as far as they are alike in all of them. What
 * a key leads to is the model's.
 *
 *   reader_begin()	one operation more, if it may do that many
 *   reader_enter()	H1, M1: the sequence is odd
 *   reader_hits()	H2, A7: the version of the entry is that of the slot
 *   reader_looks()	M3, then M4, A2: the first look of a miss
 *   reader_as_before()	the second look, read_once()
 *   reader_keep()	insert()
 *   reader_leave()	H3, Q1: the sequence is even
 *
 * Each is a step, or the access of one. An entry of the key cache has in the
 * models its version + 1, or 0: there is none.
 */
#ifndef DOC_MODEL_READER_H
#define DOC_MODEL_READER_H

#include "doc/model/explorer.h"

/* A reader; part of a model's own state. */
struct reader {
	uint8_t ops;	 /* operations begun */
	uint8_t seq;	 /* own sequence */
	uint8_t version; /* of the first look; 0 outside */
};

/* Begins one of @ops operations; not possible: they are all done. */
void reader_begin(struct model_run *r, struct reader *me, unsigned int ops);

/* Thread @t goes inside; word @seq is its sequence. */
void reader_enter(struct model_run *r, unsigned int t, struct reader *me,
		  unsigned int seq);

/* True if the entry *@cached has the @version that is; else it is no more. */
bool reader_hits(struct model_run *r, unsigned int t, unsigned int version,
		 uint8_t *cached);

/* The full fence, and the first look at @version. True: it is even. */
bool reader_looks(struct model_run *r, unsigned int t, struct reader *me,
		  unsigned int version);

/* The second look. True: it is what it was. */
bool reader_as_before(struct model_run *r, unsigned int t,
		      const struct reader *me, unsigned int version);

/* What the first look found is the entry *@cached. */
void reader_keep(const struct reader *me, uint8_t *cached);

/* Thread @t goes outside. */
void reader_leave(struct model_run *r, unsigned int t, struct reader *me,
		  unsigned int seq);

#endif /* DOC_MODEL_READER_H */
