/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One-sided access to the memory of a device: from key and address to bytes
 * moved, by whatever reaches them: a window of the peer's arena, or the kernel
 * (process_vm_readv and its sister) for memory that only has an address. What
 * neither reaches is -EREMOTE: the owner has to do it (shm/exec.h).
 *
 * A transfer goes in chunks, each inside the reader's section of its own, so
 * that an owner that withdraws the key waits for one chunk at most (contract
 * I3). All calls: under the execution context, that is its endpoint's lock.
 */
#ifndef RNIC_REACH_H
#define RNIC_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/arena_map.h"
#include "shm/copy.h"
#include "shm/mtt.h"
#include "shm/reader.h"
#include "shm/remote.h"
#include "shm/space.h"
#include "shm/vm.h"

enum {
	RNIC_REACH_CHUNK = 512 << 10, /* most bytes moved in one section */
};

/* A peer's device as one context reaches it. Private. Zeroed: finished. */
struct rnic_reach {
	struct rnic_remote *remote;	/* whose; not owned */
	struct rnic_target target;	/* its keys */
	struct rnic_arena_map map;	/* its arena, once needed */
	struct rnic_space_view *spaces; /* its other files; NULL: none yet */
	bool ready;			/* initialised */
	bool arena;			/* space 0 is in @map */
	bool refused;			/* the kernel must not, or will not */
};

/* How an access got there. */
enum rnic_path {
	RNIC_BY_MAP,	/* load and store */
	RNIC_BY_KERNEL, /* process_vm_readv, process_vm_writev */
};

/* What is to be done at the peer. */
struct rnic_access {
	uint64_t key;	     /* of either kind */
	uint64_t addr;	     /* owner's address, or offset */
	uint64_t len;	     /* bytes at @buf, and there */
	void *buf;	     /* here: source of a write, target of a read */
	bool write;	     /* else read */
	bool atomic;	     /* @need says which rights it takes, not @write */
	uint32_t need;	     /* enum rnic_right, all of them */
	uint32_t unit;	     /* bytes of an element, see rnic_reach_own(); 0 */
	uint32_t rights;     /* out: of the region that was found last */
	uint32_t slot;	     /* out: its MPT slot */
	enum rnic_path path; /* out: of the last bytes */
};

/*
 * The bytes that @at names by load and store, inside; NULL: not mapped. *@n is
 * cut to what lies there in one piece. *@off: where in the space.
 */
RNIC_HOT void *rnic_reach_look(const struct rnic_reach *x,
			       const struct rnic_xlat *at, uint64_t *n,
			       uint64_t *off)
{
	unsigned int space = rnic_mtt_leaf_space_of(at->entry);
	uint64_t room = 0;
	void *mem;

	*off = (at->entry & ~(uint64_t)(RNIC_PAGE - 1)) + at->addr_in;
	if (space && !rnic_space_current(x->spaces, space))
		return NULL;
	mem = rnic_arena_map_look(&x->map, space, *off, &room);
	if (mem && room < *n)
		*n = room;
	return mem;
}

/* rnic_reach_quick() of mapped bytes. */
RNIC_HOT bool rnic_reach_quick_map(const struct rnic_reach *x,
				   struct rnic_access *a,
				   const struct rnic_xlat *at)
{
	uint64_t n = a->len, off;
	void *mem = rnic_reach_look(x, at, &n, &off);

	if (!mem || n < a->len)
		return false;
	if (a->write)
		rnic_copy(mem, a->buf, n);
	else
		rnic_copy(a->buf, mem, n);
	a->path = RNIC_BY_MAP;
	return true;
}

/* rnic_reach_quick() of bytes that the kernel moves. */
RNIC_HOT bool rnic_reach_quick_kernel(const struct rnic_reach *x,
				      struct rnic_access *a,
				      const struct rnic_xlat *at)
{
	uint64_t va = (at->entry & ~(uint64_t)(RNIC_PAGE - 1)) + at->addr_in;

	a->path = RNIC_BY_KERNEL;
	return !x->refused &&
	       rnic_vm_move(x->remote->proc, a->write, a->buf, va, a->len);
}

/* The rights that @a takes, enum rnic_right. */
static inline uint32_t rnic_access_rights(const struct rnic_access *a)
{
	if (a->atomic)
		return a->need;
	return a->write ? RNIC_REMOTE_WRITE : RNIC_REMOTE_READ;
}

/*
 * Readies @x for context @ctx_index of the sender that claimed @lane at @r;
 * both stay for as long as @x. Returns what rnic_target_init() says. Partner:
 * rnic_reach_fini(). x->refused may be set afterwards: no help by the kernel.
 */
int rnic_reach_init(struct rnic_reach *x, struct rnic_remote *r,
		    struct rnic_lane *lane, unsigned int ctx_index);

/* Unmaps all. Before the lane is given up. Zeroed memory is accepted. */
void rnic_reach_fini(struct rnic_reach *x);

/*
 * Moves the bytes of @a. *@moved counts those that were, whatever is
 * returned. May sleep on page faults of the peer, never on its scheduling.
 * Returns 0; -ENOKEY, -EACCES, -ERANGE, -ESTALE, -ENOMEM, -EAGAIN (the next
 * byte is not present: the owner pages it in; see rnic_resolve());
 * -EFAULT (memory behind the key is not there), -ESRCH (the peer is dead),
 * -EREMOTE (only the owner reaches it, or x->refused; that the kernel forbids
 * it is logged once per peer).
 */
int rnic_reach_move(struct rnic_ctx *c, struct rnic_reach *x,
		    struct rnic_access *a, size_t *moved);

/*
 * rnic_reach_move() for the short way: all bytes of @a, 1 to RNIC_REACH_CHUNK,
 * in one piece that the key cache knows, of a region without any of the rights
 * @unless, mapped or moved by one system call. Inline, see rnic_vm_move().
 * True: done, a->path tells how. False: nothing, or only a part, was done, and
 * no reason is known; rnic_reach_move() starts again.
 */
RNIC_HOT bool rnic_reach_quick(struct rnic_ctx *c, struct rnic_reach *x,
			       struct rnic_access *a, uint32_t unless)
{
	struct rnic_want w = { .key = a->key,
			       .addr = a->addr,
			       .len = a->len,
			       .rights = rnic_access_rights(a) };
	struct rnic_piece p;
	bool done = false;

	if (RNIC_UNLIKELY(a->len - 1 >= RNIC_REACH_CHUNK))
		return false;
	rnic_enter(&x->target);
	if (RNIC_LIKELY(rnic_resolve_quick(c, &x->target, &w, &p)) &&
	    RNIC_LIKELY(!(p.x.rights & unless)))
		done = p.x.entry & RNIC_LEAF_SPACE
			       ? rnic_reach_quick_map(x, a, &p.x)
			       : rnic_reach_quick_kernel(x, a, &p.x);
	rnic_leave(&x->target);
	if (RNIC_LIKELY(done))
		rnic_count64(&c->keys.mem->hits, 1);
	return done;
}

/* What rnic_reach_word() does with the word, inside the section. */
typedef void (*rnic_word_fn)(void *word, void *arg);

/*
 * Calls @fn(@word, @arg) for the @a->len bytes at @a->addr, one element, if
 * loads and stores reach them and it is native (rnic_aop_native()). @a->buf
 * does not count. Returns as rnic_reach_move(), and -EREMOTE: the owner is to
 * execute it.
 */
int rnic_reach_word(struct rnic_ctx *c, struct rnic_reach *x,
		    struct rnic_access *a, rnic_word_fn fn, void *arg);

/*
 * What rnic_reach_own() does with *@n bytes at @mem, inside the section; it
 * lowers *@n to what it has done. @mapped: they are there; else @mem is an
 * address of this process, where nothing need be. Returns 0 or a negative
 * errno.
 */
typedef int (*rnic_own_fn)(void *mem, bool mapped, size_t *n, void *arg);

/*
 * Like rnic_reach_move() on memory of this process's own device (@x reaches
 * it): calls @fn for piece after piece. A piece is shorter than @a->unit only
 * where the memory is not in one piece: neighbours are joined for it. *@done:
 * bytes that @fn did. Returns as rnic_resolve() and @fn do.
 */
int rnic_reach_own(struct rnic_ctx *c, struct rnic_reach *x,
		   struct rnic_access *a, rnic_own_fn fn, void *arg,
		   size_t *done);

#endif /* RNIC_REACH_H */
