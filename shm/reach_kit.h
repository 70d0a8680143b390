/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the tests of one-sided access share: a device with keys, and readers
 * of it, of this process or of another one.
 *
 * Functions: one thread at a time for one struct; each fails the test if it
 * cannot do its work. In a child of a test, which must not fail by cmocka's
 * means, that ends the child by a signal or an exit status.
 */
#ifndef RNIC_REACH_KIT_H
#define RNIC_REACH_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/device.h"
#include "shm/mpt.h"
#include "shm/mtt.h"
#include "shm/reach.h"

/* The owner's side. */
struct kit_owner {
	struct rnic_device dev;	   /* with arena memory */
	struct rnic_place place;   /* where readers claim lanes */
	struct rnic_addr addr;	   /* its name */
	struct rnic_mpt_owner mpt; /* keys */
	struct rnic_mtt_pool mtt;  /* translations */
};

/* A reader. */
struct kit_reader {
	struct rnic_remote *r;	      /* the owner, as a peer sees it */
	struct rnic_lane *lane;	      /* claimed there */
	struct rnic_keycache_cfg cfg; /* of its key cache */
	struct rnic_cache *memo;      /* the cache, whole pages */
	struct rnic_ctx c;	      /* its context */
	struct rnic_reach x;	      /* at @r */
};

/* Memory with a key. */
struct kit_mem {
	char *p;       /* first byte, an address of the owner */
	size_t len;    /* bytes */
	uint64_t leaf; /* where it lies */
	uint64_t key;  /* the last one published for it */
	uint32_t slot; /* of that key */
};

/*
 * Opens device, place and tables; @membarrier: it fences its readers, else
 * they fence by themselves. Partner: kit_owner_close().
 */
void kit_owner_open(struct kit_owner *o, bool membarrier);

/* Closes all of it, with its arena memory. Zeroed memory is accepted. */
void kit_owner_close(struct kit_owner *o);

/*
 * Makes @d a reader of the owner whose address is @addr. Returns 0 or what
 * attaching said. Partner: kit_reader_close().
 */
int kit_reader_open(struct kit_reader *d, const struct rnic_addr *addr);

/* The same with a key cache of @cfg. */
int kit_reader_open_cfg(struct kit_reader *d, const struct rnic_addr *addr,
			const struct rnic_keycache_cfg *cfg);

/* Closes it. Before the owner, if that is of this process. */
void kit_reader_close(struct kit_reader *d);

/* @len zeroed bytes of @o's arena. They go with the device. */
struct kit_mem kit_arena(struct kit_owner *o, size_t len);

/* @len zeroed private bytes. Partner: munmap(). */
struct kit_mem kit_private(size_t len);

/* Publishes a key for all of @m with @rights; @m->key, @m->slot. */
void kit_publish(struct kit_owner *o, struct kit_mem *m, uint32_t rights);

/* Publishes one key for the @n memories of @m, addressed from 0. */
uint64_t kit_publish_list(struct kit_owner *o, const struct kit_mem *m,
			  size_t n, uint32_t rights);

/* Withdraws the key of @m, and waits for readers. */
void kit_withdraw(struct kit_owner *o, const struct kit_mem *m);

#endif /* RNIC_REACH_KIT_H */
