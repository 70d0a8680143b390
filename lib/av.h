/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Address vectors: fi_addr_t is an index, of both types (MAP, TABLE).
 *
 * Reading takes no lock: the tables are chunks that never move. Inserting
 * and removing take a mutex, outside of the endpoints' locks.
 */
#ifndef SHRIMP_AV_H
#define SHRIMP_AV_H

#include <pthread.h>
#include <rdma/fi_domain.h>

#include "shm/atomic.h"

struct shrimp_domain;
struct shrimp_ep;
struct shrimp_eq;
struct shrimp_peer;

enum {
	SHRIMP_AV_CHUNK = 1024,	 /* entries of a chunk */
	SHRIMP_AV_CHUNKS = 4096, /* chunks, at most */
};

struct shrimp_av {
	struct fid_av fid;		   /* first: what clients hold */
	struct shrimp_domain *domain;	   /* parent, referenced */
	enum fi_av_type type;		   /* as opened; makes no difference */
	rnic_a32 gen;			   /* moves with each change */
	rnic_a32 services;		   /* entries that name a service */
	rnic_a32 refs;			   /* bound endpoints */
	struct shrimp_eq *eq;		   /* bound, or NULL */
	bool async;			   /* FI_EVENT: completions on the EQ */
	pthread_mutex_t lock;		   /* protects what follows */
	rnic_aptr chunk[SHRIMP_AV_CHUNKS]; /* entries: peers, by fi_addr */
	rnic_aptr rev[SHRIMP_AV_CHUNKS];   /* fi_addr + 1, by peer number */
	uint64_t end;			   /* highest index used + 1 */
	uint64_t *gaps;			   /* removed indices */
	size_t ngaps;			   /* how many */
	size_t gaps_room;		   /* entries allocated */
	struct shrimp_ep **eps;		   /* bound endpoints */
	size_t neps;			   /* how many */
};

/* fi_av_open(3). 0, -FI_EINVAL, -FI_ENOSYS (shared vectors), -FI_ENOMEM. */
int shrimp_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		   struct fid_av **av, void *context);

/* The peer @a stands for, NULL if nobody. Any thread, any lock. */
struct shrimp_peer *shrimp_av_peer(struct shrimp_av *av, fi_addr_t a);

/*
 * The first address given to peer number @peer_id, or that of a service which
 * it turned out to be; FI_ADDR_NOTAVAIL if it is not in the vector. Any
 * thread, any lock. Newer than whatever av->gen said before the call.
 */
fi_addr_t shrimp_av_addr_of(struct shrimp_av *av, uint32_t peer_id);

/* Removals reach @ep from now on. Takes the lock. 0 or -FI_ENOMEM. */
int shrimp_av_attach_ep(struct shrimp_av *av, struct shrimp_ep *ep);

/* Takes back the attach: no removal is inside @ep afterwards. */
void shrimp_av_detach_ep(struct shrimp_av *av, struct shrimp_ep *ep);

#endif /* SHRIMP_AV_H */
