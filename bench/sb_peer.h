/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The peer of shrimp-bench fence and window: a process that uses keys of the
 * parent's as it is told: once, or again and again while the parent closes.
 *
 * Parent's calls: one thread.
 */
#ifndef BENCH_SB_PEER_H
#define BENCH_SB_PEER_H

#include "bench/sb_options.h"
#include "bench/sb_proc.h"
#include "bench/sb_side.h"

struct sb_peer_block;

/** What a peer does without being asked. */
enum sb_peer_mode {
	SB_PEER_SLEEP,	/* nothing */
	SB_PEER_LOOK,	/* reads 8 bytes of the key, again and again */
	SB_PEER_STREAM, /* reads all that the key names, again and again */
};

/** A peer; zeroed: none. */
struct sb_peer {
	struct sb_proc proc;	     /* the process */
	struct sb_peer_block *block; /* shared with it */
	enum sb_peer_mode mode;	     /* what it does now */
	bool written;		     /* what it copies has been */
};

/*
 * Forks the peer, on core @cpu. Returns 0 or a negative code. Before this
 * process calls libfabric. Partner: sb_peer_end().
 */
int sb_peer_start(struct sb_peer *p, int cpu);

/* Has the peer open its side and meet @s. Returns 0 or a negative code. */
int sb_peer_meet(struct sb_peer *p, struct sb_side *s);

/* Has it read 8 bytes of @key: it has then announced it. As above. */
int sb_peer_touch(struct sb_peer *p, uint64_t key);

/*
 * From now on it does @mode with @len bytes of @key; returns when it has done
 * so once. The key may become invalid meanwhile: it goes on trying.
 */
int sb_peer_mode(struct sb_peer *p, enum sb_peer_mode mode, uint64_t key,
		 size_t len);

/*
 * Has it copy @len bytes, at most 16 MiB, from memory that this process has
 * written to its own, each time the next ones of 16 MiB: *@ns is the time of
 * that. As above.
 */
int sb_peer_copy(struct sb_peer *p, size_t len, uint64_t *ns);

/* How many of its operations have failed until now. */
uint64_t sb_peer_failures(struct sb_peer *p);

/* Ends it. Zeroed memory is accepted. Returns 0 or -ECHILD. */
int sb_peer_end(struct sb_peer *p);

#endif
