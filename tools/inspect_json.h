/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The same for programs: one JSON object a look, on a line of its own. What
 * is counted is a number; keys, addresses, rights and other words that name
 * something are strings in hexadecimal, since readers of JSON may keep no
 * more than 53 bits of a number. One thread.
 */
#ifndef SHRIMP_INSPECT_JSON_H
#define SHRIMP_INSPECT_JSON_H

#include <stdio.h>

#include "tools/inspect_count.h"

/* All processes of @l, their sums only: {"processes":[...]}. */
void insp_json_list(FILE *f, const struct insp_list *l,
		    const struct insp_before *b);

/* All about @p. */
void insp_json_process(FILE *f, const struct insp_process *p,
		       const struct insp_before *b);

#endif /* SHRIMP_INSPECT_JSON_H */
