/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Peers: every address a domain has ever met, once. Matching compares the
 * small number of a peer, so a message may come before its sender is in any
 * address vector.
 *
 * Lookups take no lock: a hash table read under RCU (liburcu-bp) and a table
 * of chunks that never move. Inserting takes a mutex. Peers live as long as
 * the domain.
 */
#ifndef SHRIMP_PEER_H
#define SHRIMP_PEER_H

#include <pthread.h>
#include <stdint.h>

#include "shm/atomic.h"
#include "shm/layout.h"

enum {
	SHRIMP_PEER_CHUNK = 1024,  /* peers of a chunk */
	SHRIMP_PEER_CHUNKS = 1024, /* chunks, at most */
};

struct cds_lfht;

struct shrimp_peer {
	struct rnic_addr addr; /* its name; constant */
	uint32_t id;	       /* its number; constant */
	rnic_aptr alias;       /* a service's endpoint once found, or NULL */
};

struct shrimp_peers {
	struct cds_lfht *table;		     /* by address, read under RCU */
	pthread_mutex_t lock;		     /* protects inserting; innermost */
	uint32_t count;			     /* peers, under the lock */
	rnic_aptr chunk[SHRIMP_PEER_CHUNKS]; /* arrays of peer pointers */
};

/* Readies an empty table. Returns 0 or -FI_ENOMEM. */
int shrimp_peers_init(struct shrimp_peers *p);

/* Frees the table and all peers; nobody uses them any more. */
void shrimp_peers_fini(struct shrimp_peers *p);

/*
 * The peer with @addr, made if it is new. Any thread. NULL: no memory, or
 * too many peers. Owned by the table.
 */
struct shrimp_peer *shrimp_peer_intern(struct shrimp_peers *p,
				       const struct rnic_addr *addr);

/* The peer with number @id, or NULL. Any thread. */
struct shrimp_peer *shrimp_peer_by_id(const struct shrimp_peers *p,
				      uint32_t id);

/* @peer, or the endpoint that the service it names turned out to be. */
static inline struct shrimp_peer *shrimp_peer_real(struct shrimp_peer *peer)
{
	/* P1: acquires the peer; pairs with resolved() in tx_peer.c */
	struct shrimp_peer *real = rnic_ptr_load_acquire(&peer->alias);

	return real ? real : peer;
}

#endif /* SHRIMP_PEER_H */
