/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Tables for people: plain text, at most 100 columns. One thread.
 */
#ifndef SHRIMP_INSPECT_PRINT_H
#define SHRIMP_INSPECT_PRINT_H

#include <stdio.h>

#include "tools/inspect_count.h"

enum { INSP_TEXT = 32 }; /* bytes of a number with its unit */

/* Writes @n bytes with a unit to @to, of INSP_TEXT bytes. Returns @to. */
const char *insp_text_bytes(char *to, double n);

/* Likewise a number, shortened from ten million on. */
const char *insp_text_count(char *to, double n);

/* Like those two, in 5 and in 6 places: K is 1024 bytes, or 1000. */
const char *insp_text_brief_bytes(char *to, double n);
const char *insp_text_brief_count(char *to, double n);

/*
 * The rights of @r as letters (insp_rights_legend), others as a number, to
 * @to, of INSP_TEXT bytes. Returns @to.
 */
const char *insp_text_rights(char *to, uint64_t rights);

/* What kind of region it is, in a word or two, likewise. */
const char *insp_text_kind(char *to, const struct insp_region *r);

/* What the letters mean. */
extern const char insp_rights_legend[];

/* Name of a state of a place or lane; "?" if there is none such. */
const char *insp_place_state(unsigned int state);
const char *insp_lane_state(unsigned int state); /* likewise */

/* Name of the policy of a key cache, "-" if it is not in use. */
const char *insp_cache_policy(uint64_t policy);

/* One line for each process of @l. */
void insp_print_list(FILE *f, const struct insp_list *l,
		     const struct insp_before *b);

/* All about @p. */
void insp_print_process(FILE *f, const struct insp_process *p,
			const struct insp_want *w, const struct insp_before *b);

#endif /* SHRIMP_INSPECT_PRINT_H */
