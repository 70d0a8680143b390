/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A peer's endpoint as this process sees it: attach, claim, wake.
 *
 * A remote belongs to one endpoint and is used under its lock. Everything
 * read from the peer's segments is checked here before anybody uses it.
 */
#ifndef RNIC_REMOTE_H
#define RNIC_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/device.h"
#include "shm/layout.h"
#include "shm/pool.h"
#include "shm/proc.h"
#include "shm/segment.h"

/* How to get at a peer's descriptors. */
enum rnic_attach_mode {
	RNIC_ATTACH_AUTO,   /* /proc if namespaces agree, else socket */
	RNIC_ATTACH_PROC,   /* /proc only */
	RNIC_ATTACH_SOCKET, /* attach socket only */
};

struct rnic_remote {
	unsigned int refs;	     /* users, under the owner's lock */
	struct rnic_addr addr;	     /* the peer endpoint's name */
	struct rnic_proc *proc;	     /* its process */
	struct rnic_segment mailbox; /* open until a lane is claimed */
	struct rnic_segment arena;   /* open if it came over the socket */
	struct rnic_segment tables;  /* likewise, or rnic_remote_tables() */
	struct rnic_header hdr;	     /* copy of the device's header */
	struct rnic_ep_head *head;   /* mapped head, read-write */
	const uint8_t *pool;	     /* mapped pool, NULL until needed */
	const uint8_t *heap;	     /* mapped heap, NULL until needed */
	struct rnic_pool_geom geom;  /* chunk geometry of the pool */
	uint64_t heap_bytes;	     /* size of the heap */
	uint64_t arena_ino;	     /* st_ino of the arena */
	uint64_t claim;		     /* claim word to use at the peer */
	int arena_fd;		     /* its descriptor number there */
	int pipe;		     /* wake pipe, opened, or -1 */
	int conn;		     /* asked there, or -1 */
	uint32_t peer_pid;	     /* socket: its pid as we see it */
	uint64_t deadline_ms;	     /* when the attach is given up */
	uint64_t asked_ms;	     /* when it was asked for last */
	bool asking;		     /* socket: no answer yet */
	int error;		     /* socket: the attach failed with it */
	bool fence;		     /* publish with a full fence */
	bool unfenced;		     /* set before a claim: see tx_unfenced */
	bool by_socket;		     /* attached over the socket */
};

/*
 * Starts to attach to the endpoint @addr names. Owner's lock held; may do
 * system calls, never waits for the peer.
 * Returns 0 (ready, *@out set), -EINPROGRESS (*@out set; poll it), or an
 * error with a message logged: -ESRCH (dead, or another process by now),
 * -EACCES (another user, or /proc refused), -EPROTO (no shrimp device, a
 * damaged one), -EPROTONOSUPPORT (another version), -ECONNREFUSED (endpoint
 * closed), -ENOMEM, -EMFILE.
 */
int rnic_remote_open(const struct rnic_addr *addr, enum rnic_attach_mode mode,
		     struct rnic_remote **out);

/*
 * Looks whether an attach under way has finished. The peer's progress calls
 * end it, its death or 5 s as well. Asks again if there was no room to ask, or
 * the peer hung up without an answer. Returns as rnic_remote_open(), and
 * -ETIMEDOUT; after an error always that.
 */
int rnic_remote_poll(struct rnic_remote *r);

/* One user more; each calls rnic_remote_close(). Returns @r. */
struct rnic_remote *rnic_remote_share(struct rnic_remote *r);

/* The last user's call unmaps and frees @r. NULL is accepted. */
void rnic_remote_close(struct rnic_remote *r);

/*
 * Claims a lane at the peer, gives it pages, writes @self into it and makes
 * it live: the endpoint that calls is its only sender from now on. It has set
 * @r->unfenced if it cannot fence the peer (rnic_fence_peers()) before it
 * sleeps: the peer fences by itself then.
 * Returns 0 with *@lane (mapped) and *@index, -ECONNREFUSED (closed),
 * -ENOSPC (no lane free, or no memory for it), -ENOMEM.
 */
int rnic_remote_claim(struct rnic_remote *r, const struct rnic_addr *self,
		      struct rnic_lane **lane, unsigned int *index);

/* Unmaps a lane that rnic_remote_claim() returned. */
void rnic_remote_unmap_lane(struct rnic_lane *lane);

/*
 * Rings the doorbell of lane @index and wakes the peer if it sleeps.
 * Never blocks. Returns true if the peer was asleep and was written to.
 */
bool rnic_remote_ring(struct rnic_remote *r, unsigned int index);

/*
 * Tells the peer, which parked its lane into us, that answers are there, and
 * wakes it if it sleeps. Never blocks. Returns as rnic_remote_ring().
 */
bool rnic_remote_ring_return(struct rnic_remote *r);

/* True if the endpoint was closed, or another one has its place. */
bool rnic_remote_closed(const struct rnic_remote *r);

/*
 * Maps the peer's pool, or heap, read-only; later calls return at once.
 * Returns 0, -ESRCH if the peer is gone and it was never mapped, or what the
 * mapping said.
 */
int rnic_remote_map_pool(struct rnic_remote *r);
int rnic_remote_map_heap(struct rnic_remote *r); /* the heap, likewise */

/*
 * Opens the peer's tables for reading and checks what the header says of
 * them; later calls return at once. @r->tables stays open until @r is closed.
 * Returns 0, -ESRCH if the peer is gone, -EPROTO (its header is damaged,
 * logged), -EMFILE.
 */
int rnic_remote_tables(struct rnic_remote *r);

/*
 * Opens the peer's arena for reading and writing into *@s, a descriptor of
 * the caller's. Returns 0, -ESRCH if the peer is gone, or what opening said.
 */
int rnic_remote_arena(const struct rnic_remote *r, struct rnic_segment *s);

/*
 * Opens descriptor @fd of the peer's process, which its tables say is memory
 * file @ino, sealed, for reading and writing into *@s, a descriptor of the
 * caller's. Returns as rnic_segment_open_pid(), and -EREMOTE: the peer was
 * attached over the socket, so its descriptors cannot be reached.
 */
int rnic_remote_file(const struct rnic_remote *r, int fd, uint64_t ino,
		     struct rnic_segment *s);

/*
 * Answers attach requests that wait on @d's socket; at most a few a call.
 * Any thread; never blocks. Returns the number of peers served.
 */
int rnic_remote_serve(struct rnic_device *d);

#endif /* RNIC_REMOTE_H */
