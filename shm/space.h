/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Spaces: memory files of the application in which registered memory lies,
 * so that peers map them and move its bytes by load and store.
 *
 * The owner's side finds the file behind a range and keeps a descriptor of it
 * while a region lies there. A range qualifies if it lies in shared mappings
 * of one memfd that is sealed against shrinking and not against writing, of
 * which this process has a descriptor open for both. Space 0, the arena, is
 * not dealt with here.
 *
 * A number is used again at once: the last region that lay in it has been
 * withdrawn and fenced, so no reader is inside with a leaf that names it. A
 * reader compares the generation inside: while it is inside with a valid
 * leaf, the owner cannot change it; what it maps outside, it looks at again
 * from inside before it uses it.
 */
#ifndef RNIC_SPACE_H
#define RNIC_SPACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/atomic.h"
#include "shm/layout.h"
#include "shm/segment.h"
#include "shm/vma.h"

struct rnic_remote;
struct rnic_arena_map;

/* What the owner knows of a space. */
struct rnic_space_own {
	uint64_t refs;		 /* regions in it; 0: not in use */
	struct rnic_segment seg; /* a descriptor of our own */
};

enum { RNIC_SPACE_HINTS = 8 }; /* files whose descriptor is remembered */

/* A descriptor of the application's; it may have another meaning by now. */
struct rnic_space_hint {
	uint64_t ino; /* file that it was of, 0: none */
	int fd;	      /* its number */
};

/* The spaces of a device. Private to its process. Zeroed: finished. */
struct rnic_spaces {
	pthread_mutex_t lock;	  /* all below; inner */
	struct rnic_space *table; /* what peers see of it */
	uint64_t dev;		  /* st_dev of memfds */
	uint64_t arena;		  /* st_ino of the arena */
	unsigned int used;	  /* none above it is in use */
	struct rnic_space_hint hint[RNIC_SPACE_HINTS]; /* the latest */
	unsigned int next_hint;			       /* which to replace */
	struct rnic_space_own own[RNIC_SPACES]; /* by number; 0: not used */
};

/*
 * Readies @s with the entries @table of the tables, zeroed and populated, of
 * the device with arena @arena. One thread. No error. Partner:
 * rnic_spaces_fini().
 */
void rnic_spaces_init(struct rnic_spaces *s, void *table,
		      const struct rnic_segment *arena);

/* Closes what is still open. No other call is under way. Zeroed is accepted. */
void rnic_spaces_fini(struct rnic_spaces *s);

/* Child after fork: closes the descriptors. Only async-signal-safe calls. */
void rnic_spaces_forked(struct rnic_spaces *s);

/*
 * Looks whether @len bytes at @addr, of which @v tells the mapping, lie in a
 * file that qualifies; if so, one region more is in its space, and the pages
 * of the range are made, so that no touch by a peer can fail (contract L2).
 * Any thread; may sleep while pages are made. No system call for mappings
 * that are not shared, or of another kind of file.
 * Returns 0 with *@leaf, for rnic_mtt_root_make(), or -ENOENT: it is to be
 * reached by its address (logged as information if there was no memory for
 * its pages, or no number left). Partner: rnic_space_put().
 */
int rnic_space_get(struct rnic_spaces *s, const struct rnic_vma *v,
		   uint64_t addr, uint64_t len, uint64_t *leaf);

/*
 * One region less in the space that @leaf names; its key has been withdrawn
 * and fenced, or was never published. The last one closes the file. Any
 * thread.
 */
void rnic_space_put(struct rnic_spaces *s, uint64_t leaf);

/*
 * True if the @len bytes at @addr lie now where @leaf says, which the caller
 * has got for the page of @addr and holds. Any thread; a system call for each
 * mapping, or /proc/self/maps is read.
 */
bool rnic_space_holds(const struct rnic_spaces *s, uint64_t leaf, uint64_t addr,
		      uint64_t len);

/* Spaces in use, for statistics and tests. Any thread. */
unsigned int rnic_spaces_used(struct rnic_spaces *s);

/* ---- the peer's side ---- */

/* A peer's spaces as one context has mapped them. Private to it. */
struct rnic_space_view {
	const struct rnic_space *table; /* mapped, the peer's */
	uint64_t gen[RNIC_SPACES];	/* of what is mapped; 0: nothing */
};

/*
 * True if what the context has mapped as space @space is what the peer means
 * by it now. Inside a reader's section, with a leaf that was resolved in it.
 * @v may be NULL: nothing is mapped.
 */
static inline bool rnic_space_current(const struct rnic_space_view *v,
				      unsigned int space)
{
	/* relaxed: after the acquire of the version of a region in it */
	return v && v->gen[space] &&
	       rnic_load64_relaxed(&v->table[space].gen) == v->gen[space];
}

/*
 * Opens space @space of @r and adds it to @map in place of what had its
 * number, unless it is current; drops the others that are no longer. *@v is
 * made if it is NULL. Outside of sections, under the context. @r's tables are
 * open.
 * Returns 0 (resolve again), -ENOKEY (the space is no more, so neither is any
 * region in it), -ESRCH (the peer is gone), -EREMOTE (its descriptors cannot
 * be reached, or not for writing: only the owner can do it), -ENOMEM,
 * -EMFILE, -EPROTO (the file is not sealed, logged).
 */
int rnic_space_attach(struct rnic_space_view **v, const struct rnic_remote *r,
		      struct rnic_arena_map *map, unsigned int space);

/* Unmaps the table. NULL is accepted. */
void rnic_space_view_free(struct rnic_space_view *v);

#endif /* RNIC_SPACE_H */
