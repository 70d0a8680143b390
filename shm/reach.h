/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One-sided access to the memory of a device: from key and address to bytes
 * moved, by whatever reaches them: a window of the peer's arena, or the kernel
 * (process_vm_readv and its sister) for memory that only has an address.
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
#include "shm/reader.h"
#include "shm/remote.h"

enum {
	RNIC_REACH_CHUNK = 512 << 10, /* most bytes moved in one section */
};

/* A peer's device as one context reaches it. Private. Zeroed: finished. */
struct rnic_reach {
	struct rnic_remote *remote; /* whose; not owned */
	struct rnic_target target;  /* its keys */
	struct rnic_arena_map map;  /* its arena, once needed */
	bool ready;		    /* initialised */
	bool arena;		    /* space 0 is in @map */
	bool refused;		    /* that the kernel forbids it was said */
};

/* What is to be done at the peer. */
struct rnic_access {
	uint64_t key;	 /* of either kind */
	uint64_t addr;	 /* owner's address, or offset */
	uint64_t len;	 /* bytes at @buf, and there */
	void *buf;	 /* here: source of a write, target of a read */
	bool write;	 /* else read */
	bool atomic;	 /* needs what both of a fetching atomic need */
	uint32_t rights; /* out: of the region that was found */
};

/*
 * Readies @x for context @ctx_index of the sender that claimed @lane at @r;
 * both stay for as long as @x. Returns what rnic_target_init() says. Partner:
 * rnic_reach_fini().
 */
int rnic_reach_init(struct rnic_reach *x, struct rnic_remote *r,
		    struct rnic_lane *lane, unsigned int ctx_index);

/* Unmaps all. Before the lane is given up. Zeroed memory is accepted. */
void rnic_reach_fini(struct rnic_reach *x);

/*
 * Moves the bytes of @a. *@moved counts those that were, whatever is
 * returned. May sleep on page faults of the peer, never on its scheduling.
 * Returns 0; -ENOKEY, -EACCES, -ERANGE, -ESTALE, -ENOMEM (rnic_resolve());
 * -EFAULT (memory behind the key is not there), -ESRCH (the peer is dead),
 * -EPERM (the kernel forbids it, logged once per peer).
 */
int rnic_reach_move(struct rnic_ctx *c, struct rnic_reach *x,
		    struct rnic_access *a, size_t *moved);

/* What rnic_reach_word() does with the word, inside the section. */
typedef void (*rnic_word_fn)(void *word, void *arg);

/*
 * Calls @fn(@word, @arg) for the @len bytes (1 to 16, all in one naturally
 * aligned block of 16) at @a->addr, if loads and stores reach them. @a->buf
 * does not count. Returns as rnic_reach_move(), and -EREMOTE: they can only be
 * reached by their owner.
 */
int rnic_reach_word(struct rnic_ctx *c, struct rnic_reach *x,
		    struct rnic_access *a, rnic_word_fn fn, void *arg);

#endif /* RNIC_REACH_H */
