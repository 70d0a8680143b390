/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Notes of shrimp-inspect: what is wrong with what it read. One thread.
 */
#ifndef SHRIMP_INSPECT_NOTE_H
#define SHRIMP_INSPECT_NOTE_H

#include "tools/inspect.h"

/*
 * Adds a note, a line without its end. Beyond INSP_NOTES, or without memory,
 * it is only counted.
 */
void insp_note(struct insp_notes *n, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Takes back all notes but the first @keep: what they say has passed. */
void insp_notes_cut(struct insp_notes *n, unsigned int keep);

/* Frees all. Zeroed is accepted. */
void insp_notes_free(struct insp_notes *n);

/*
 * Zeroed memory for @n things of @size bytes, at least one byte; ends the
 * program with status 2 if there is none. The caller frees it.
 */
void *insp_alloc(size_t n, size_t size);

/*
 * Makes room for one more thing of @size bytes in the array @*p of @n, which
 * grows by powers of two. Returns its place, zeroed. No memory: as
 * insp_alloc().
 */
void *insp_grow(void **p, unsigned int n, size_t size);

#endif /* SHRIMP_INSPECT_NOTE_H */
