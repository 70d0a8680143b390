/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The device a process owns: three segments and the places of its endpoints.
 *
 * Opening and closing devices and places is serialised by a lock inside;
 * what a place holds belongs to the endpoint that opened it and is used under
 * that endpoint's lock.
 */
#ifndef RNIC_DEVICE_H
#define RNIC_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/arena.h"
#include "shm/grace.h"
#include "shm/keycache.h"
#include "shm/layout.h"
#include "shm/monitor.h"
#include "shm/numa.h"
#include "shm/segment.h"
#include "shm/space.h"

/* What the user may choose about a device. */
struct rnic_device_cfg {
	uint64_t pool_bytes;   /* chunk pool of an endpoint, 0: twice the L2 */
	uint64_t heap_bytes;   /* inject heap of an endpoint */
	bool membarrier;       /* false: senders fence by themselves */
	struct rnic_numa numa; /* where memory goes */
	struct rnic_keycache_cfg keys; /* key caches; zeroed: defaults */
};

/* What became of an endpoint place. */
enum rnic_place_state {
	RNIC_PLACE_FREE = 0, /* never used, or emptied */
	RNIC_PLACE_OPEN,     /* an endpoint has it */
	RNIC_PLACE_LEFT,     /* closed, peers may still write into it */
	RNIC_PLACE_KEPT,     /* closed, peers may still read its arena */
};

/*
 * The owner's view of a place that is not free: it outlives the endpoint,
 * since senders may be inside their reader slots until they have left.
 */
struct rnic_view {
	struct rnic_ep_head *head;	    /* mapped head, lanes behind it */
	uint64_t paged[RNIC_LANE_MAX / 64]; /* lanes known to have pages */
};

struct rnic_device {
	struct rnic_segment tables;  /* owner writes, sealed */
	struct rnic_segment mailbox; /* peers write */
	struct rnic_segment arena;   /* owner writes payload */
	struct rnic_arena user;	     /* memory for users, in the arena */
	struct rnic_spaces spaces;   /* other files that regions lie in */
	struct rnic_header *hdr;     /* the mapped tables */
	size_t tables_len;	     /* bytes mapped */
	int sock;		     /* attach socket, listening, or -1 */
	bool fenced;		     /* senders need a compiler barrier only */
	struct rnic_numa numa;	     /* where memory goes */
	struct rnic_keycache_cfg keys; /* of each key cache */
	struct rnic_grace grace;       /* fences and grace periods */
	pthread_mutex_t lock;	       /* protects the fields below; inner */
	unsigned int next;	       /* where to look for a free place */
	uint8_t place[RNIC_EP_MAX];    /* enum rnic_place_state */
	uint32_t gen[RNIC_EP_MAX];     /* incarnation of each place */
	int pipe[RNIC_EP_MAX];	       /* write end of its wake pipe, or -1 */
	struct rnic_view *view[RNIC_EP_MAX]; /* NULL if free */
	unsigned int view_end;		     /* none from here on, ever */
	/* a bit for each place with a view: for the monitor, who has no lock */
	rnic_a64 used[RNIC_EP_MAX / 64];
	struct rnic_watched_dev watched; /* if regions of it are watched */
};

/* An endpoint's place in its device. */
struct rnic_place {
	struct rnic_device *dev;   /* the device it lies in */
	unsigned int index;	   /* number of the place */
	uint32_t gen;		   /* incarnation of the place */
	struct rnic_ep_head *head; /* mapped head */
	struct rnic_lane *lanes;   /* mapped lanes, RNIC_LANE_MAX */
	struct rnic_stats *stats;  /* counters in the tables */
	uint8_t *pool;		   /* chunk pool, NULL until needed */
	uint8_t *heap;		   /* inject heap, NULL until needed */
	int wake_rd;		   /* read end of the wake pipe */
	int wake_wr;		   /* write end, opened by peers */
	bool keep;		   /* the arena outlives the place */
};

/*
 * Opens a device: segments, header, attach socket. @cfg is copied.
 * Any thread; may sleep. Returns 0, or a negative errno with a message
 * logged and nothing left: -EFBIG (RLIMIT_FSIZE), -ENOMEM (address space),
 * -EMFILE, -EINVAL (home node, key cache), or what the kernel said.
 */
int rnic_device_open(struct rnic_device *d, const struct rnic_device_cfg *cfg);

/*
 * Closes what rnic_device_open() made; no place is open any more. Peers keep
 * the pages they have mapped. Accepts a zeroed device.
 */
void rnic_device_close(struct rnic_device *d);

/*
 * Child after fork: closes the inherited descriptors, touches no mapping
 * (they were not inherited). Only async-signal-safe calls.
 */
void rnic_device_forked(struct rnic_device *d);

/*
 * Identity of the process that made claim word @claim. Any thread. Returns 0,
 * -ESRCH (it is gone for good), or another error of rnic_identity_of(): not
 * known now, and no reason to take it for dead.
 */
int rnic_claim_identity(uint64_t claim, uint64_t *identity);

/*
 * Opens a free place in @d, state OPEN. Any thread; takes d->lock.
 * Returns 0, -ENOSPC if RNIC_EP_MAX places are open or not yet left by their
 * peers, -ENOMEM, -EMFILE.
 */
int rnic_place_open(struct rnic_device *d, struct rnic_place *p);

/*
 * Is there a closed place that waits for its senders to notice? Any thread;
 * takes d->lock.
 */
bool rnic_device_rests(struct rnic_device *d);

/*
 * Closes the place: no new lane is claimed after it returns. Lanes the owner
 * knows of have been told (rx_closed) before. Pages are given back once the
 * last claim is gone. Accepts a zeroed place.
 */
void rnic_place_close(struct rnic_place *p);

/*
 * Maps and populates the chunk pool; later calls return at once. Under the
 * endpoint's lock. Returns 0, -ENOMEM or -ENOSPC (logged).
 */
int rnic_place_pool(struct rnic_place *p);

/*
 * Maps the inject heap without populating it; later calls return at once.
 * Under the endpoint's lock. Returns 0 or -ENOMEM (logged).
 */
int rnic_place_heap(struct rnic_place *p);

/*
 * Gives bytes @off, @len of the heap their pages, so that no later touch can
 * fail. @arg is the place: the signature is that of rnic_heap_init().
 * Returns 0, -ENOSPC or -ENOMEM (logged).
 */
int rnic_place_heap_populate(void *arg, uint64_t off, uint64_t len);

/* Writes the address of @p, kind ENDPOINT, to @a. Any thread. */
void rnic_place_addr(const struct rnic_place *p, struct rnic_addr *a);

/*
 * Frees claim @lane of @p after its sender is gone and the lane is drained:
 * the lane's credits are published first, so that the next claimer goes on
 * where this one stopped. Descriptors that were not taken are gone then, and
 * flags are as in a new lane. Under the endpoint's lock.
 * D1: the release of the claim word publishes the credits; pairs with the
 * CAS in rnic_remote_claim().
 */
void rnic_place_free_lane(struct rnic_place *p, unsigned int lane);

/*
 * Empties the wake pipe. Under the endpoint's lock; never blocks.
 */
void rnic_place_drain_pipe(const struct rnic_place *p);

#endif /* RNIC_DEVICE_H */
