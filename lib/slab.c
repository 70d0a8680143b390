/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Object slabs and names; used under one endpoint's lock.
 */
#include "lib/slab.h"

#include <stdlib.h>

enum {
	BLOCK_OBJECTS = 64, /* objects fetched at once */
	BLOCK_HEAD = 64,    /* room for the link, keeps alignment */
	FIRST_NAMES = 64,   /* slots of a new table of names */
};

void *shrimp_slab_refill(struct shrimp_slab *s)
{
	char *b = malloc(BLOCK_HEAD + BLOCK_OBJECTS * s->size);

	if (!b)
		return NULL;
	*(void **)(void *)b = s->blocks;
	s->blocks = b;
	for (size_t i = BLOCK_OBJECTS - 1; i > 0; i--)
		shrimp_slab_put(s, b + BLOCK_HEAD + i * s->size);
	return b + BLOCK_HEAD;
}

void shrimp_slab_fini(struct shrimp_slab *s)
{
	while (s->blocks) {
		void *b = s->blocks;

		s->blocks = *(void **)b;
		free(b);
	}
	s->free = NULL;
}

struct shrimp_name {
	void *obj;     /* the object, NULL if the slot is free */
	uint32_t gen;  /* moves at each reuse, never 0 */
	uint32_t next; /* free slots: next one + 1 */
};

/* Doubles the table; the new slots go to the free list. */
static int grow(struct shrimp_names *n)
{
	uint32_t count = n->count ? 2 * n->count : FIRST_NAMES;
	struct shrimp_name *s = realloc(n->slot, count * sizeof(*s));

	if (!s)
		return -1;
	for (uint32_t i = n->count; i < count; i++) {
		s[i] = (struct shrimp_name){ .gen = 1, .next = n->free };
		n->free = i + 1;
	}
	n->slot = s;
	n->count = count;
	return 0;
}

uint64_t shrimp_names_add(struct shrimp_names *n, void *obj)
{
	struct shrimp_name *s;
	uint32_t i;

	if (!n->free && grow(n))
		return 0;
	i = n->free - 1;
	s = &n->slot[i];
	n->free = s->next;
	s->obj = obj;
	return (uint64_t)s->gen << 32 | i;
}

void *shrimp_names_find(const struct shrimp_names *n, uint64_t name)
{
	uint32_t i = (uint32_t)name;

	if (i >= n->count || n->slot[i].gen != name >> 32)
		return NULL;
	return n->slot[i].obj;
}

void shrimp_names_del(struct shrimp_names *n, uint64_t name)
{
	struct shrimp_name *s = &n->slot[(uint32_t)name];

	s->obj = NULL;
	if (!++s->gen)
		s->gen = 1;
	s->next = n->free;
	n->free = (uint32_t)name + 1;
}

void shrimp_names_fini(struct shrimp_names *n)
{
	free(n->slot);
	*n = (struct shrimp_names){ 0 };
}
