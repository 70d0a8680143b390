/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Peers.
 */
#include <urcu/urcu-bp.h>

#include "lib/peer.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/rculfhash.h>

#include "shm/log.h"
#include "shm/tsan.h"

/* A peer in the hash table. */
struct entry {
	struct cds_lfht_node node; /* in the table */
	struct shrimp_peer peer;   /* what others see */
};

/* Fixed: a table that resizes by itself would start a thread. */
enum { BUCKETS = 1024 };

static unsigned long hash(const struct rnic_addr *a)
{
	const unsigned char *c = (const unsigned char *)a;
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < sizeof(*a); i++)
		h = (h ^ c[i]) * UINT64_C(1099511628211);
	return (unsigned long)h;
}

static int same(struct cds_lfht_node *node, const void *key)
{
	struct entry *e = caa_container_of(node, struct entry, node);

	/* for the sanitizer: the table published it; pairs with add() */
	rnic_tsan_acquire(e);
	return !memcmp(&e->peer.addr, key, sizeof(e->peer.addr));
}

int shrimp_peers_init(struct shrimp_peers *p)
{
	memset(p, 0, sizeof(*p));
	p->table = cds_lfht_new_flavor(BUCKETS, BUCKETS, BUCKETS, 0,
				       &urcu_bp_flavor, NULL);
	if (!p->table)
		return -FI_ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	return 0;
}

void shrimp_peers_fini(struct shrimp_peers *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		struct shrimp_peer *peer = shrimp_peer_by_id(p, i);
		struct entry *e = caa_container_of(peer, struct entry, peer);

		urcu_bp_read_lock();
		cds_lfht_del(p->table, &e->node);
		urcu_bp_read_unlock();
	}
	urcu_bp_synchronize_rcu();
	for (uint32_t i = 0; i < p->count; i++)
		free(caa_container_of(shrimp_peer_by_id(p, i), struct entry,
				      peer));
	cds_lfht_destroy(p->table, NULL);
	for (int i = 0; i < SHRIMP_PEER_CHUNKS; i++)
		free(rnic_ptr_load_relaxed(&p->chunk[i]));
	pthread_mutex_destroy(&p->lock);
}

static struct shrimp_peer *find(struct shrimp_peers *p,
				const struct rnic_addr *addr, unsigned long h)
{
	struct cds_lfht_iter it;
	struct cds_lfht_node *n;
	struct shrimp_peer *peer = NULL;

	/* peers are freed with the table only: the pointer outlives the
	 * read side */
	urcu_bp_read_lock();
	cds_lfht_lookup(p->table, h, same, addr, &it);
	n = cds_lfht_iter_get_node(&it);
	if (n)
		peer = &caa_container_of(n, struct entry, node)->peer;
	urcu_bp_read_unlock();
	return peer;
}

/* The slot of number @id, its chunk made if need be; the lock is held. */
static rnic_aptr *slot(struct shrimp_peers *p, uint32_t id)
{
	rnic_aptr *at;
	rnic_aptr *chunk;

	if (id >= SHRIMP_PEER_CHUNK * SHRIMP_PEER_CHUNKS) {
		rnic_log(RNIC_LOG_WARN, "domain: more than %u peers", id);
		return NULL;
	}
	at = &p->chunk[id / SHRIMP_PEER_CHUNK];
	/* relaxed: written under this lock */
	chunk = rnic_ptr_load_relaxed(at);
	if (!chunk) {
		chunk = calloc(SHRIMP_PEER_CHUNK, sizeof(*chunk));
		if (!chunk)
			return NULL;
		/* P2: publishes the zeroed chunk; see shrimp_peer_by_id() */
		rnic_ptr_store_release(at, chunk);
	}
	return &chunk[id % SHRIMP_PEER_CHUNK];
}

/* A new peer; the lock is held. */
static struct shrimp_peer *add(struct shrimp_peers *p,
			       const struct rnic_addr *addr, unsigned long h)
{
	rnic_aptr *at = slot(p, p->count);
	struct entry *e = at ? calloc(1, sizeof(*e)) : NULL;

	if (!e)
		return NULL;
	cds_lfht_node_init(&e->node);
	e->peer.addr = *addr;
	e->peer.id = p->count++;
	/* P3: publishes the peer; pairs with shrimp_peer_by_id() */
	rnic_ptr_store_release(at, &e->peer);
	/* for the sanitizer: pairs with same() */
	rnic_tsan_release(e);
	urcu_bp_read_lock();
	cds_lfht_add(p->table, h, &e->node);
	urcu_bp_read_unlock();
	return &e->peer;
}

struct shrimp_peer *shrimp_peer_intern(struct shrimp_peers *p,
				       const struct rnic_addr *addr)
{
	unsigned long h = hash(addr);
	struct shrimp_peer *peer = find(p, addr, h);

	if (peer)
		return peer;
	pthread_mutex_lock(&p->lock);
	peer = find(p, addr, h);
	if (!peer)
		peer = add(p, addr, h);
	pthread_mutex_unlock(&p->lock);
	return peer;
}

struct shrimp_peer *shrimp_peer_by_id(const struct shrimp_peers *p, uint32_t id)
{
	const rnic_aptr *chunk;

	if (id >= SHRIMP_PEER_CHUNK * SHRIMP_PEER_CHUNKS)
		return NULL;
	/* P2, P3: acquire chunk and peer */
	chunk = rnic_ptr_load_acquire(&p->chunk[id / SHRIMP_PEER_CHUNK]);
	return chunk ? rnic_ptr_load_acquire(&chunk[id % SHRIMP_PEER_CHUNK])
		     : NULL;
}
