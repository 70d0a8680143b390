/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A peer's memory in this process: windows of 1 GiB of its spaces (space 0 is
 * its arena), mapped on first use, kept to the end, or until a space is
 * dropped.
 *
 * Adding and mapping take a mutex; looking takes nothing. The offsets that a
 * peer's tables name are bounded by the size of the file, which is sealed
 * against shrinking. If the peer dies, what is mapped stays as it is.
 */
#ifndef RNIC_ARENA_MAP_H
#define RNIC_ARENA_MAP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/atomic.h"
#include "shm/mtt.h"
#include "shm/segment.h"

#define RNIC_WINDOW_SHIFT 30 /* of a window's size */
#define RNIC_WINDOW_SIZE  (UINT64_C(1) << RNIC_WINDOW_SHIFT)

enum {
	RNIC_WINDOW_GROUP = 64,	  /* windows of a group */
	RNIC_WINDOW_GROUPS = 256, /* groups of a space: 16 TiB */
};

/* 64 neighbouring windows; mapped ones are not NULL. */
struct rnic_window_group {
	rnic_aptr window[RNIC_WINDOW_GROUP]; /* stored with release */
};

/* A space of a peer: a file of which windows are mapped. */
struct rnic_arena_space {
	struct rnic_segment seg;	     /* own descriptor */
	rnic_a64 size;			     /* bytes of the file, only rises */
	rnic_aptr group[RNIC_WINDOW_GROUPS]; /* struct rnic_window_group */
};

/* What is mapped of one peer. Zeroed: finished. */
struct rnic_arena_map {
	pthread_mutex_t lock;		  /* adding; looking needs none */
	bool ready;			  /* initialised */
	rnic_aptr space[RNIC_MTT_SPACES]; /* struct rnic_arena_space */
};

/* Readies @m, with no space. One thread. Partner: rnic_arena_map_fini(). */
void rnic_arena_map_init(struct rnic_arena_map *m);

/* Unmaps and closes all. No look is under way. Zeroed memory is accepted. */
void rnic_arena_map_fini(struct rnic_arena_map *m);

/*
 * Makes @seg, a memory file of the peer as rnic_segment_open_pid() or
 * rnic_segment_adopt() checked it, writable, its space @space. Any thread.
 * Returns 0 (the descriptor is the map's now), or the caller keeps it:
 * -EEXIST (has one), -EINVAL (@space out of range), -EPROTO (not sealed
 * against shrinking; logged), -ENOMEM.
 */
int rnic_arena_map_add(struct rnic_arena_map *m, unsigned int space,
		       const struct rnic_segment *seg);

/*
 * Unmaps and closes space @space, if there is one; another may be added in
 * its place. No look at it is under way. Any thread.
 */
void rnic_arena_map_drop(struct rnic_arena_map *m, unsigned int space);

/*
 * Maps the window that holds byte @offset of @space, unless it is mapped; for
 * when rnic_arena_map_look() found nothing. Any thread, outside a reader's
 * section: it takes a lock and does system calls. Returns 0 (look again),
 * -ENOENT (no such space), -EFAULT (beyond the file's end), -ENOMEM (logged).
 */
int rnic_arena_map_window(struct rnic_arena_map *m, unsigned int space,
			  uint64_t offset);

/*
 * Address of byte @offset of @space and the bytes that follow it in this
 * window and this file, at least one. NULL if it is not mapped (yet). Any
 * thread: no lock, no system call, fit for a reader's section. Nothing is
 * unmapped before rnic_arena_map_drop() or rnic_arena_map_fini().
 */
static inline void *rnic_arena_map_look(const struct rnic_arena_map *m,
					unsigned int space, uint64_t offset,
					uint64_t *contiguous)
{
	uint64_t w = offset >> RNIC_WINDOW_SHIFT;
	uint64_t in = offset & (RNIC_WINDOW_SIZE - 1), left, size;
	const struct rnic_arena_space *s;
	const struct rnic_window_group *g;
	char *base;

	if (space >= RNIC_MTT_SPACES ||
	    w >= (uint64_t)RNIC_WINDOW_GROUP * RNIC_WINDOW_GROUPS)
		return NULL;
	/* Y3, Y4, Y5: what the pointer names; pair with W3, W4, W5 */
	s = rnic_ptr_load_acquire(&m->space[space]);
	g = s ? rnic_ptr_load_acquire(&s->group[w / RNIC_WINDOW_GROUP]) : NULL;
	base = g ? rnic_ptr_load_acquire(&g->window[w % RNIC_WINDOW_GROUP])
		 : NULL;
	if (!base)
		return NULL;
	/* relaxed: a number that only rises, as the kernel said it */
	size = rnic_load64_relaxed(&s->size);
	if (offset >= size)
		return NULL;
	left = RNIC_WINDOW_SIZE - in;
	*contiguous = size - offset < left ? size - offset : left;
	return base + in;
}

#endif /* RNIC_ARENA_MAP_H */
