/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The memory protection table, as its owner writes it: slots, keys, versions,
 * the index of user keys.
 *
 * A slot goes round: unused or rested -> live (publish) -> invalid
 * (invalidate) -> live again (change) or resting (retire) -> live. A suspended
 * one is as good as invalid to readers, but keeps its key. The caller fences
 * (rnic_grace_fence()) between invalidate, or suspend, and change, and before
 * the memory of an invalidated region is reused. A slot rests until 4096 others
 * have come to rest after it and its grace period is over: a stale provider
 * key is refused for the life of the device.
 *
 * All calls are for any thread of the owner outside a reader's section, and
 * take t->lock, which is not held where they wait; grace.lock nests inside.
 * Readers take no lock (shm/reader.h). If the owner dies, slots stay as they
 * are; its readers learn of its death elsewhere.
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
	uint32_t parent; /* of a window: slot of its (first) region + 1 */
};

/* What a slot holds, for the owner's own looks. */
struct rnic_mpt_entry {
	struct rnic_region r; /* as published */
	uint64_t key;	      /* its key */
	uint64_t version;     /* odd: invalid now */
	uint64_t binding;     /* number of the binding */
};

/* One of several regions that are published together. */
struct rnic_mpt_item {
	struct rnic_region r; /* what it is */
	uint64_t key;	      /* as of rnic_mpt_publish() */
	uint32_t slot;	      /* likewise, out */
	bool user;	      /* the key is wanted, else made */
};

struct rnic_mpt_slot; /* private to mpt.c */

/* The owner's table. Private to its process. Zeroed: finished. */
struct rnic_mpt_owner {
	pthread_mutex_t lock;	    /* all below */
	struct rnic_device *dev;    /* whose table it is */
	struct rnic_mpt *mpt;	    /* mapped, in dev's tables */
	struct rnic_mpt_head *head; /* likewise */
	struct rnic_mpt_slot *slot; /* one for each below @room */
	uint64_t first_gen;	    /* random: of each slot's first key */
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
	uint64_t blocked;	    /* period that a call has to wait for */
};

/*
 * Readies @t for device @d, which outlives it and has one such table. Provider
 * keys begin at a generation of its own, so that those of two devices differ.
 * Returns 0, or what getrandom(2) says. Partner: rnic_mpt_fini().
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
 * rnic_mpt_publish() that never waits for readers: -EAGAIN where that would.
 */
int rnic_mpt_publish_try(struct rnic_mpt_owner *t, const struct rnic_region *r,
			 bool user, uint64_t *key, uint32_t *slot);

/*
 * rnic_mpt_publish() but for its last step: the key is taken, and the slot is
 * suspended. So the caller can tell others of the slot before anybody finds
 * it. rnic_mpt_show() follows.
 */
int rnic_mpt_reserve(struct rnic_mpt_owner *t, const struct rnic_region *r,
		     bool user, uint64_t *key, uint32_t *slot);

/*
 * rnic_mpt_reserve() that never waits for readers: -EAGAIN where that would.
 */
int rnic_mpt_reserve_try(struct rnic_mpt_owner *t, const struct rnic_region *r,
			 bool user, uint64_t *key, uint32_t *slot);

/*
 * rnic_mpt_reserve() for the @n regions of @item, all or none of them. Returns
 * as that; on error nobody has found any of them, and keys and slots of @item
 * mean nothing. rnic_mpt_show_many() follows.
 */
int rnic_mpt_reserve_many(struct rnic_mpt_owner *t, struct rnic_mpt_item *item,
			  size_t n);

/* Makes suspended @slot live, as it was written. No error. */
void rnic_mpt_show(struct rnic_mpt_owner *t, uint32_t slot);

/* rnic_mpt_show() for the @n slots of @item. No error. */
void rnic_mpt_show_many(struct rnic_mpt_owner *t,
			const struct rnic_mpt_item *item, size_t n);

/*
 * The first half of rnic_mpt_change() for @slot, suspended and fenced: it
 * stays suspended. rnic_mpt_show() is the second. No error.
 */
void rnic_mpt_rewrite(struct rnic_mpt_owner *t, uint32_t slot,
		      const struct rnic_region *r);

/*
 * Makes live @slot invalid for as long as its translation changes: as
 * rnic_mpt_invalidate(), but nobody else gets its key. rnic_mpt_change() ends
 * it, or rnic_mpt_rewrite() and rnic_mpt_show(), and cannot fail then. No
 * error.
 */
void rnic_mpt_suspend(struct rnic_mpt_owner *t, uint32_t slot);

/* Copies what @slot, which was published, holds now. No error. */
void rnic_mpt_read(struct rnic_mpt_owner *t, uint32_t slot,
		   struct rnic_mpt_entry *e);

/*
 * Makes @slot, live or suspended, invalid: lookups that begin from now on
 * fail; those before are ended by rnic_grace_fence(). A user key may be used
 * anew. No error.
 */
void rnic_mpt_invalidate(struct rnic_mpt_owner *t, uint32_t slot);

/*
 * Makes @slot, invalid or suspended, and fenced, live again as @r under the
 * same key. If only the translation differs the binding stays, and operations
 * under way go on with the new one; if range or rights differ they end with
 * -ESTALE. Returns 0, or, of an invalid slot that stays so, -EEXIST (its user
 * key was taken meanwhile), -ENOMEM, or what rnic_grace_wait() said.
 */
int rnic_mpt_change(struct rnic_mpt_owner *t, uint32_t slot,
		    const struct rnic_region *r);

/*
 * Adds @events (RNIC_MR_EV_READ, RNIC_MR_EV_WRITE) to live @slot. Nothing else
 * changes, so operations under way go on: those that began before may be told
 * of or not, those that begin after the call are. Never waits. No error.
 */
void rnic_mpt_add_events(struct rnic_mpt_owner *t, uint32_t slot,
			 uint32_t events);

/*
 * What live @key names: *@slot and *@r. It may be invalid by the time the
 * caller looks at it. Returns 0 or -ENOKEY.
 */
int rnic_mpt_find(struct rnic_mpt_owner *t, uint64_t key, uint32_t *slot,
		  struct rnic_region *r);

/*
 * Gives invalid @slot back, to be reused when grace period @grace, taken
 * (rnic_grace_now()) after the invalidation, is over, and not before
 * RNIC_MPT_QUARANTINE others rest behind it. No error.
 */
void rnic_mpt_retire(struct rnic_mpt_owner *t, uint32_t slot, uint64_t grace);

#endif /* RNIC_MPT_H */
