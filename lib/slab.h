/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Objects of one size that are made and freed all the time, and names for
 * objects that a peer sends back to us.
 *
 * Private to one endpoint, used under its lock.
 */
#ifndef SHRIMP_SLAB_H
#define SHRIMP_SLAB_H

#include <stddef.h>
#include <stdint.h>

/* A free list over blocks of objects. Zeroed plus size is ready. */
struct shrimp_slab {
	size_t size;  /* bytes of an object, at least a pointer */
	void *free;   /* linked through the first word of each */
	void *blocks; /* malloc'ed blocks, linked likewise */
};

/* Out of line part of shrimp_slab_get(): fetches a block. NULL: no memory. */
void *shrimp_slab_refill(struct shrimp_slab *s);

/*
 * Takes an object, not zeroed. Returns NULL if memory is short.
 */
static inline void *shrimp_slab_get(struct shrimp_slab *s)
{
	void *p = s->free;

	if (!p)
		return shrimp_slab_refill(s);
	s->free = *(void **)p;
	return p;
}

/* Gives @p, from this slab, back. */
static inline void shrimp_slab_put(struct shrimp_slab *s, void *p)
{
	*(void **)p = s->free;
	s->free = p;
}

/* Frees all blocks, whatever objects are out. */
void shrimp_slab_fini(struct shrimp_slab *s);

/*
 * Names of objects: index in the low 32 bits, generation above, so that a
 * stale or invented name from a peer finds nothing. Never 0.
 */
struct shrimp_names {
	struct shrimp_name *slot; /* the slots */
	uint32_t count;		  /* number of slots */
	uint32_t free;		  /* first free slot + 1, 0 if none */
};

/* Names @obj. Returns the name, or 0 if memory is short. */
uint64_t shrimp_names_add(struct shrimp_names *n, void *obj);

/* The object @name stands for, or NULL. Any value is safe. */
void *shrimp_names_find(const struct shrimp_names *n, uint64_t name);

/* Ends @name, which was returned by shrimp_names_add(). */
void shrimp_names_del(struct shrimp_names *n, uint64_t name);

/* Frees the table, not the objects. */
void shrimp_names_fini(struct shrimp_names *n);

#endif /* SHRIMP_SLAB_H */
