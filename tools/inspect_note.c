/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Notes, and memory to keep things in.
 */
#include "tools/inspect_note.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void insp_note(struct insp_notes *n, const char *fmt, ...)
{
	va_list ap;
	int ret = -1;

	va_start(ap, fmt);
	if (n->n < INSP_NOTES)
		ret = vasprintf(&n->text[n->n], fmt, ap);
	va_end(ap);
	if (ret < 0)
		n->more++;
	else
		n->n++;
}

void insp_notes_cut(struct insp_notes *n, unsigned int keep)
{
	while (n->n > keep)
		free(n->text[--n->n]);
}

void insp_notes_free(struct insp_notes *n)
{
	insp_notes_cut(n, 0);
	n->more = 0;
}

static void *need(void *p)
{
	if (p)
		return p;
	fputs("shrimp-inspect: out of memory\n", stderr);
	exit(2);
}

void *insp_alloc(size_t n, size_t size)
{
	return need(calloc(n ? n : 1, size));
}

void *insp_grow(void **p, unsigned int n, size_t size)
{
	char *all = *p;

	/* a power of two is full */
	if (!(n & (n - 1)))
		all = *p = need(realloc(*p, (n ? 2 * (size_t)n : 1) * size));
	return memset(all + n * size, 0, size);
}
