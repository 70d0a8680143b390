/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The memory protection table, as its owner writes it: slots, keys, versions,
 * the index of user keys.
 *
 * A slot goes round: unused or rested -> live (publish) -> invalid
 * (invalidate) -> live again (change) or resting (retire) -> live. The caller
 * fences (rnic_grace_fence()) between invalidate and change, and before the
 * memory of an invalidated region is reused. A slot rests until 4096 others
 * have come to rest after it and its grace period is over: a stale provider
 * key is refused for the life of the device.
 *
 * All calls are for any thread of the owner outside a reader's section, and
 * take t->lock; grace.lock nests inside. Readers take no lock (shm/reader.h).
 * If the owner dies, slots stay as they are; its readers learn of its death
 * elsewhere.
 */
#ifndef RNIC_MPT_H
#define RNIC_MPT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "shm/device.h"
#include "shm/layout.h"

enum {
	RNIC_MPT_QUARANTINE = 4096, /* slots that rest at least */
};

/* What a region is. */
struct rnic_region {
	uint64_t va;	 /* first address, owner's */
	uint64_t length; /* bytes, not 0 */
	uint64_t mtt;	 /* root of the translation, shm/mtt.h */
	uint32_t rights; /* enum rnic_right bits */
};

struct rnic_mpt_slot; /* private to mpt.c */

/* The owner's table. Private to its process. Zeroed: finished. */
struct rnic_mpt_owner {
	pthread_mutex_t lock;	    /* all below */
	struct rnic_device *dev;    /* whose table it is */
	struct rnic_mpt *mpt;	    /* mapped, in dev's tables */
	struct rnic_mpt_head *head; /* likewise */
	struct rnic_mpt_slot *slot; /* one for each below @room */
	uint32_t room;		    /* slots with pages and a version */
	uint32_t fresh;		    /* slots from here on were never used */
	uint32_t first;		    /* resting longest; + 1, 0: none */
	uint32_t last;		    /* resting shortest; + 1 */
	uint32_t resting;	    /* number of resting slots */
	uint64_t binding;	    /* last number given */
	uint64_t index;		    /* as in @head; 0: no table yet */
	uint64_t keys;		    /* live entries of the index */
	uint64_t deleted;	    /* tombstones in it */
	uint64_t other_grace;	    /* other table may be used after it */
};

/*
 * Readies @t for device @d, which outlives it and has one such table. Returns
 * 0. Partner: rnic_mpt_fini().
 */
int rnic_mpt_init(struct rnic_mpt_owner *t, struct rnic_device *d);

/* Frees the bookkeeping. Zeroed memory is accepted. */
void rnic_mpt_fini(struct rnic_mpt_owner *t);

/*
 * Makes region @r known under a key: @user: *@key is wanted, else *@key is
 * made. The translation is complete before the call. Readers see nothing or
 * all of it (M1). May wait for readers, as rnic_grace_wait(), if all slots
 * rest or the index is full.
 * Returns 0 with *@key and *@slot, or with nothing changed -EEXIST (@user:
 * the key is live, not logged), -ENOSPC (no slot), -ENOMEM (no page, no room
 * for bookkeeping), or what rnic_grace_wait() said.
 */
int rnic_mpt_publish(struct rnic_mpt_owner *t, const struct rnic_region *r,
		     bool user, uint64_t *key, uint32_t *slot);

/*
 * Makes live @slot invalid: lookups that begin from now on fail; those before
 * are ended by rnic_grace_fence(). A user key may be used anew. No error.
 */
void rnic_mpt_invalidate(struct rnic_mpt_owner *t, uint32_t slot);

/*
 * Makes @slot, invalid and fenced, live again as @r under the same key. If
 * only the translation differs the binding stays, and operations under way
 * go on with the new one; if range or rights differ they end with -ESTALE.
 * Returns 0, or with the slot still invalid -EEXIST (its user key was taken
 * meanwhile), -ENOMEM, or what rnic_grace_wait() said.
 */
int rnic_mpt_change(struct rnic_mpt_owner *t, uint32_t slot,
		    const struct rnic_region *r);

/*
 * Gives invalid @slot back, to be reused when grace period @grace, taken
 * (rnic_grace_now()) after the invalidation, is over, and not before
 * RNIC_MPT_QUARANTINE others rest behind it. No error.
 */
void rnic_mpt_retire(struct rnic_mpt_owner *t, uint32_t slot, uint64_t grace);

#endif /* RNIC_MPT_H */
