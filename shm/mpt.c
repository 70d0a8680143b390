/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The owner's side of MPT and user-key index.
 *
 * Exclusion: publish, invalidate, change, retire against each other by
 * t->lock; against lookups by the order of the stores: version odd first,
 * even last, the fields between only when a grace period has passed since it
 * became odd. Only the event bits change while it is even.
 *
 * The index is one of two tables. Entries never move, deletes leave
 * tombstones, which later inserts use. A full one is copied into the other,
 * which one store of head->index publishes; the old one is written again
 * only after a grace period.
 */
#include "shm/mpt.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shm/breakage.h"
#include "shm/identity.h"
#include "shm/log.h"

enum {
	BATCH = 1024,	 /* slots given pages at once: one window of readers */
	INDEX_FILL = 12, /* sixteenths: rebuild when it is easy */
	INDEX_FULL = 15, /* sixteenths: rebuild, wait if need be */
	INDEX_SPARE = 4, /* room of a new table, times its keys */
	BLOCKED = 1,	 /* internal: wait for t->blocked, then once more */
};

#define GEN_MAX ((UINT64_C(1) << RNIC_GEN_BITS) - 1)

enum slot_state {
	SLOT_UNUSED = 0,
	SLOT_LIVE,	/* version even */
	SLOT_SUSPENDED, /* version odd, the key is still its own */
	SLOT_INVALID,	/* version odd, still its region's */
	SLOT_RESTING,	/* waits for reuse */
	SLOT_WORN,	/* its generations are used up */
};

struct rnic_mpt_slot {
	uint64_t gen;	/* of its last provider key */
	uint64_t grace; /* resting: reuse after it */
	uint32_t next;	/* resting: next one + 1 */
	uint8_t state;	/* enum slot_state */
	bool user;	/* its key is the user's */
};

int rnic_mpt_init(struct rnic_mpt_owner *t, struct rnic_device *d)
{
	char *base = (char *)d->hdr;
	int ret;

	*t = (struct rnic_mpt_owner){
		.dev = d,
		.mpt = (struct rnic_mpt *)(base + d->hdr->mpt_off),
		.head = (struct rnic_mpt_head *)(base + d->hdr->mpt_head_off),
	};
	ret = rnic_random(&t->first_gen, sizeof(t->first_gen));
	if (ret) {
		t->dev = NULL;
		return ret;
	}
	t->first_gen &= GEN_MAX >> 1;
	pthread_mutex_init(&t->lock, NULL);
	return 0;
}

void rnic_mpt_fini(struct rnic_mpt_owner *t)
{
	if (!t->dev)
		return;
	free(t->slot);
	pthread_mutex_destroy(&t->lock);
	*t = (struct rnic_mpt_owner){ .dev = NULL };
}

/* ---- the index ---- */

static struct rnic_key_entry *index_table(const struct rnic_mpt_owner *t,
					  unsigned int which)
{
	const struct rnic_header *h = t->dev->hdr;

	return (struct rnic_key_entry *)((char *)t->dev->hdr +
					 h->index_off[which]);
}

/* Entry @n of the chain of @key in the table @word names. */
static struct rnic_key_entry *index_entry(const struct rnic_mpt_owner *t,
					  uint64_t word, uint64_t key,
					  uint64_t n)
{
	unsigned int shift = rnic_index_shift(word);
	uint64_t mask = (UINT64_C(1) << shift) - 1;

	return index_table(t, rnic_index_which(word)) +
	       ((rnic_index_hash(key, shift) + n) & mask);
}

static uint64_t index_size(uint64_t word)
{
	return word ? UINT64_C(1) << rnic_index_shift(word) : 0;
}

/* The entry of live @key, or NULL. Owner's words: relaxed under the lock. */
static struct rnic_key_entry *index_find(const struct rnic_mpt_owner *t,
					 uint64_t key)
{
	for (uint64_t n = 0; n < index_size(t->index); n++) {
		struct rnic_key_entry *e = index_entry(t, t->index, key, n);
		uint64_t slot = rnic_load64_relaxed(&e->slot);

		if (slot == RNIC_INDEX_FREE)
			break;
		if (slot != RNIC_INDEX_DELETED &&
		    rnic_load64_relaxed(&e->key) == key)
			return e;
	}
	return NULL;
}

/*
 * Puts @key, which is not there, into the table @word. There is room.
 * Returns true if it took the place of a tombstone.
 */
static bool index_put(struct rnic_mpt_owner *t, uint64_t word, uint64_t key,
		      uint32_t slot)
{
	struct rnic_key_entry *e;
	uint64_t was;
	uint64_t n = 0;

	do {
		e = index_entry(t, word, key, n++);
		/* relaxed: the owner's own words, under the lock */
		was = rnic_load64_relaxed(&e->slot);
	} while (was != RNIC_INDEX_FREE && was != RNIC_INDEX_DELETED);
	/* relaxed: M3 publishes it */
	rnic_store64_relaxed(&e->key, key);
	/* M3: the key and the region; pairs with A4 in index_find() there */
	rnic_store64_release(&e->slot, (uint64_t)slot + 1);
	return was == RNIC_INDEX_DELETED;
}

static void index_insert(struct rnic_mpt_owner *t, uint64_t key, uint32_t slot)
{
	if (index_put(t, t->index, key, slot))
		t->deleted--;
	t->keys++;
}

static void index_delete(struct rnic_mpt_owner *t, uint64_t key)
{
	struct rnic_key_entry *e = index_find(t, key);

	assert(e);
	/* relaxed: the version, odd by now, is what makes it invalid */
	rnic_store64_relaxed(&e->slot, RNIC_INDEX_DELETED);
	t->keys--;
	t->deleted++;
}

/* Copies what is live in the current table into the table @word. */
static void index_copy(struct rnic_mpt_owner *t, uint64_t word)
{
	struct rnic_key_entry *from =
		index_table(t, rnic_index_which(t->index));

	for (uint64_t i = 0; i < index_size(t->index); i++) {
		/* relaxed: the owner's own words, under the lock */
		uint64_t slot = rnic_load64_relaxed(&from[i].slot);

		if (slot != RNIC_INDEX_FREE && slot != RNIC_INDEX_DELETED)
			index_put(t, word, rnic_load64_relaxed(&from[i].key),
				  (uint32_t)(slot - 1));
	}
}

/* Gives table @which its pages for 2^@shift entries, all free. */
static int index_clear(struct rnic_mpt_owner *t, unsigned int which,
		       unsigned int shift)
{
	const struct rnic_header *h = t->dev->hdr;
	struct rnic_key_entry *e = index_table(t, which);
	uint64_t n = UINT64_C(1) << shift;
	int ret = rnic_segment_populate(&t->dev->tables, h->index_off[which],
					n * sizeof(*e));

	if (ret)
		return ret;
	/* relaxed: M4 publishes the table */
	for (uint64_t i = 0; i < n; i++)
		rnic_store64_relaxed(&e[i].slot, RNIC_INDEX_FREE);
	return 0;
}

/* Moves the index into the other table; its grace period is over. */
static int index_rebuild(struct rnic_mpt_owner *t)
{
	unsigned int which = t->index ? !rnic_index_which(t->index) : 0;
	unsigned int shift = RNIC_INDEX_SHIFT_MIN;
	uint64_t word;
	int ret;

	while (UINT64_C(1) << shift < INDEX_SPARE * (t->keys + 1) &&
	       UINT64_C(1) << (shift + 1) <= t->dev->hdr->index_slots)
		shift++;
	ret = index_clear(t, which, shift);
	if (ret)
		return ret;
	word = rnic_index_make(which, shift);
	index_copy(t, word);
	/* M4: publishes the table; pairs with A5 in shm/reader.c */
	rnic_store64_release(&t->head->index, word);
	t->index = word;
	t->deleted = 0;
	t->other_grace = rnic_grace_now(t->dev);
	return 0;
}

/* Sees to it that one more key finds room. Or BLOCKED. */
static int index_reserve(struct rnic_mpt_owner *t)
{
	uint64_t used = t->keys + t->deleted + 1, size = index_size(t->index);
	int ret;

	if (size && used <= size / 16 * INDEX_FILL)
		return 0;
	if (!rnic_grace_ended(t->dev, t->other_grace)) {
		if (used <= size / 16 * INDEX_FULL)
			return 0;
		t->blocked = t->other_grace;
		return BLOCKED;
	}
	ret = index_rebuild(t);
	/* no memory for a larger one: the old one does while it has room */
	return ret && size && used < size ? 0 : ret;
}

/* ---- slots ---- */

/* Gives the next BATCH slots their pages and an odd version. */
static int slots_grow(struct rnic_mpt_owner *t)
{
	uint64_t n = t->dev->hdr->mpt_slots - t->room;
	struct rnic_mpt_slot *s;
	int ret;

	if (!n)
		return -ENOSPC;
	n = n < BATCH ? n : BATCH;
	s = realloc(t->slot, (t->room + n) * sizeof(*s));
	if (!s)
		return -ENOMEM;
	t->slot = s;
	memset(s + t->room, 0, n * sizeof(*s));
	ret = rnic_segment_populate(&t->dev->tables,
				    t->dev->hdr->mpt_off +
					    t->room * sizeof(struct rnic_mpt),
				    n * sizeof(struct rnic_mpt));
	if (ret)
		return ret;
	for (uint64_t i = 0; i < n; i++) {
		s[t->room + i].gen = t->first_gen;
		/* relaxed: M2 publishes them */
		rnic_store64_relaxed(&t->mpt[t->room + i].version, 1);
	}
	t->room += (uint32_t)n;
	/* M2: slots below have pages and a version; pairs with A6 */
	rnic_store64_release(&t->head->used, t->room);
	return 0;
}

/* True if the slot that rests longest may be reused; drives its grace. */
static bool rested(struct rnic_mpt_owner *t)
{
	return t->resting >
		       (RNIC_BROKEN(quarantine) ? 0 : RNIC_MPT_QUARANTINE) &&
	       rnic_grace_ended(t->dev, t->slot[t->first - 1].grace);
}

/* Takes the slot that rests longest out of the queue. */
static uint32_t slot_wake(struct rnic_mpt_owner *t)
{
	uint32_t i = t->first - 1;

	t->first = t->slot[i].next;
	if (!t->first)
		t->last = 0;
	t->resting--;
	return i;
}

/* A slot to use: rested, else fresh, else BLOCKED until one has rested. */
static int slot_take(struct rnic_mpt_owner *t, uint32_t *slot)
{
	int ret = 0;

	if (rested(t)) {
		*slot = slot_wake(t);
		return 0;
	}
	if (t->fresh == t->room)
		ret = slots_grow(t);
	if (!ret) {
		*slot = t->fresh++;
		return 0;
	}
	if (ret != -ENOSPC || t->resting <= RNIC_MPT_QUARANTINE) {
		rnic_log(RNIC_LOG_WARN,
			 "MPT: no slot for a region (%" PRIu32
			 " in use, %" PRIu32 " resting): %s",
			 t->fresh - t->resting, t->resting, strerror(-ret));
		return ret;
	}
	t->blocked = t->slot[t->first - 1].grace;
	return BLOCKED;
}

/* Puts @slot to rest, last in the queue. */
static void slot_rest(struct rnic_mpt_owner *t, uint32_t slot, uint64_t grace)
{
	struct rnic_mpt_slot *s = &t->slot[slot];

	s->state = SLOT_RESTING;
	s->grace = grace;
	s->next = 0;
	if (t->last)
		t->slot[t->last - 1].next = slot + 1;
	else
		t->first = slot + 1;
	t->last = slot + 1;
	t->resting++;
}

static bool has_key(const struct rnic_mpt_slot *s)
{
	return s->state == SLOT_LIVE || s->state == SLOT_SUSPENDED;
}

/* True if @key is a provider key that is live, or suspended. */
static bool provider_live(const struct rnic_mpt_owner *t, uint64_t key)
{
	uint32_t slot = rnic_key_slot(key);

	return slot < t->room && has_key(&t->slot[slot]) &&
	       !t->slot[slot].user &&
	       rnic_load64_relaxed(&t->mpt[slot].key) == key;
}

/* Next provider key of @slot, none that a user has; false: used up. */
static bool make_key(struct rnic_mpt_owner *t, uint32_t slot, uint64_t *key)
{
	struct rnic_mpt_slot *s = &t->slot[slot];

	while (s->gen < GEN_MAX) {
		*key = rnic_key_make(slot, ++s->gen);
		if (!index_find(t, *key))
			return true;
	}
	return false;
}

/* In a build that is broken so: and the fields take their time. */
static void version_early(struct rnic_mpt *m)
{
	rnic_add64_relaxed(&m->version, 1);
	for (int i = 0; i < 100; i++)
		rnic_cpu_relax();
}

/* In a build that is broken so: the store of O1, which comes late. */
static void hide_late(struct rnic_mpt *m)
{
	if (!(rnic_load64_relaxed(&m->version) & 1))
		rnic_add64_relaxed(&m->version, 1);
}

/* Writes a region into @slot, whose version is odd and stays so. */
static void slot_write(struct rnic_mpt_owner *t, uint32_t slot,
		       const struct rnic_region *r, uint64_t key,
		       uint64_t binding)
{
	struct rnic_mpt *m = &t->mpt[slot];

	/* relaxed: M1 publishes the fields; the monitor leaves it odd */
	assert(rnic_load64_relaxed(&m->version) & 1);
	if (RNIC_BROKEN(publish))
		version_early(m);
	rnic_store64_relaxed(&m->key, key);
	rnic_store64_relaxed(&m->va, r->va);
	rnic_store64_relaxed(&m->length, r->length);
	rnic_store64_relaxed(&m->mtt, r->mtt);
	rnic_store64_relaxed(&m->rights, r->rights);
	rnic_store64_relaxed(&m->parent, r->parent);
	rnic_store64_relaxed(&m->binding, binding);
	t->slot[slot].state = SLOT_SUSPENDED;
}

/* Makes written @slot live. */
static void slot_show(struct rnic_mpt_owner *t, uint32_t slot)
{
	struct rnic_mpt *m = &t->mpt[slot];

	assert(t->slot[slot].state == SLOT_SUSPENDED);
	/* M1: the fields and the translation; pairs with A2 in the reader */
	if (!RNIC_BROKEN(publish))
		rnic_add64_release(&m->version, 1);
	t->slot[slot].state = SLOT_LIVE;
}

/* O1 of a live @slot: what was resolved is no longer good. */
static void slot_hide(struct rnic_mpt_owner *t, uint32_t slot)
{
	struct rnic_mpt *m = &t->mpt[slot];

	assert(t->slot[slot].state == SLOT_LIVE);
	/*
	 * O1: relaxed, before the full fence of rnic_grace_fence(); the bump
	 * ends each cached copy. Atomic, here and elsewhere: the monitor adds
	 * to it, too, and a word that went back would make a copy valid
	 */
	if (!RNIC_BROKEN(owner_fence))
		rnic_add64_relaxed(&m->version, 1);
	t->slot[slot].state = SLOT_SUSPENDED;
}

/* ---- calls ---- */

/* A slot and a key that its generations still have. */
static int take_with_key(struct rnic_mpt_owner *t, bool user, uint64_t *key,
			 uint32_t *slot)
{
	for (;;) {
		int ret = slot_take(t, slot);

		if (ret || user || make_key(t, *slot, key))
			return ret;
		t->slot[*slot].state = SLOT_WORN;
	}
}

/* All of publishing but the last store; the slot is suspended. Or BLOCKED. */
static int prepare(struct rnic_mpt_owner *t, const struct rnic_region *r,
		   bool user, uint64_t *key, uint32_t *slot)
{
	uint64_t k = *key;
	uint32_t s = 0;
	int ret = 0;

	if (user && (index_find(t, k) || provider_live(t, k)))
		return -EEXIST;
	if (user)
		ret = index_reserve(t);
	if (!ret)
		ret = take_with_key(t, user, &k, &s);
	if (ret)
		return ret;
	t->slot[s].user = user;
	slot_write(t, s, r, k, ++t->binding);
	if (user)
		index_insert(t, k, s);
	*key = k;
	*slot = s;
	return 0;
}

/* Waits for t->blocked. Drops and retakes t->lock. */
static int wait_unlocked(struct rnic_mpt_owner *t)
{
	uint64_t n = t->blocked;
	int ret;

	pthread_mutex_unlock(&t->lock);
	ret = rnic_grace_wait(t->dev, n);
	pthread_mutex_lock(&t->lock);
	return ret;
}

/* prepare() that waits: drops and retakes t->lock then. */
static int prepare_waiting(struct rnic_mpt_owner *t,
			   const struct rnic_region *r, bool user,
			   uint64_t *key, uint32_t *slot)
{
	int ret;

	for (;;) {
		ret = prepare(t, r, user, key, slot);
		if (ret == BLOCKED)
			ret = wait_unlocked(t);
		else
			return ret;
		if (ret)
			return ret;
	}
}

int rnic_mpt_reserve(struct rnic_mpt_owner *t, const struct rnic_region *r,
		     bool user, uint64_t *key, uint32_t *slot)
{
	int ret;

	pthread_mutex_lock(&t->lock);
	ret = prepare_waiting(t, r, user, key, slot);
	pthread_mutex_unlock(&t->lock);
	return ret;
}

int rnic_mpt_reserve_try(struct rnic_mpt_owner *t, const struct rnic_region *r,
			 bool user, uint64_t *key, uint32_t *slot)
{
	int ret;

	pthread_mutex_lock(&t->lock);
	ret = prepare(t, r, user, key, slot);
	pthread_mutex_unlock(&t->lock);
	return ret == BLOCKED ? -EAGAIN : ret;
}

void rnic_mpt_show(struct rnic_mpt_owner *t, uint32_t slot)
{
	pthread_mutex_lock(&t->lock);
	slot_show(t, slot);
	pthread_mutex_unlock(&t->lock);
}

void rnic_mpt_show_many(struct rnic_mpt_owner *t,
			const struct rnic_mpt_item *item, size_t n)
{
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < n; i++)
		slot_show(t, item[i].slot);
	pthread_mutex_unlock(&t->lock);
}

int rnic_mpt_publish(struct rnic_mpt_owner *t, const struct rnic_region *r,
		     bool user, uint64_t *key, uint32_t *slot)
{
	int ret;

	pthread_mutex_lock(&t->lock);
	ret = prepare_waiting(t, r, user, key, slot);
	if (!ret)
		slot_show(t, *slot);
	pthread_mutex_unlock(&t->lock);
	return ret;
}

int rnic_mpt_publish_try(struct rnic_mpt_owner *t, const struct rnic_region *r,
			 bool user, uint64_t *key, uint32_t *slot)
{
	int ret;

	pthread_mutex_lock(&t->lock);
	ret = prepare(t, r, user, key, slot);
	if (!ret)
		slot_show(t, *slot);
	pthread_mutex_unlock(&t->lock);
	return ret == BLOCKED ? -EAGAIN : ret;
}

/* The key of @slot, which is suspended, may be used anew. */
static void give_key(struct rnic_mpt_owner *t, uint32_t slot)
{
	/* relaxed: the owner's own word */
	if (t->slot[slot].user)
		index_delete(t, rnic_load64_relaxed(&t->mpt[slot].key));
	t->slot[slot].state = SLOT_INVALID;
}

static void retire(struct rnic_mpt_owner *t, uint32_t slot, uint64_t grace)
{
	assert(t->slot[slot].state == SLOT_INVALID);
	if (RNIC_BROKEN(owner_fence))
		hide_late(&t->mpt[slot]);
	if (t->slot[slot].gen >= GEN_MAX)
		t->slot[slot].state = SLOT_WORN;
	else
		slot_rest(t, slot, grace);
}

int rnic_mpt_reserve_many(struct rnic_mpt_owner *t, struct rnic_mpt_item *item,
			  size_t n)
{
	uint64_t grace;
	int ret = 0;
	size_t i;

	pthread_mutex_lock(&t->lock);
	for (i = 0; i < n; i++) {
		ret = prepare_waiting(t, &item[i].r, item[i].user, &item[i].key,
				      &item[i].slot);
		if (ret)
			break;
		if (RNIC_BROKEN(batch_early))
			slot_show(t, item[i].slot);
	}
	for (size_t k = 0; RNIC_BROKEN(batch_early) && k < i; k++)
		slot_hide(t, item[k].slot);
	/* nobody has found them: their versions were odd all the time */
	grace = ret ? rnic_grace_now(t->dev) : 0;
	while (ret && i--) {
		give_key(t, item[i].slot);
		retire(t, item[i].slot, grace);
	}
	pthread_mutex_unlock(&t->lock);
	return ret;
}

void rnic_mpt_suspend(struct rnic_mpt_owner *t, uint32_t slot)
{
	pthread_mutex_lock(&t->lock);
	slot_hide(t, slot);
	pthread_mutex_unlock(&t->lock);
}

void rnic_mpt_invalidate(struct rnic_mpt_owner *t, uint32_t slot)
{
	pthread_mutex_lock(&t->lock);
	if (t->slot[slot].state != SLOT_SUSPENDED)
		slot_hide(t, slot);
	give_key(t, slot);
	pthread_mutex_unlock(&t->lock);
}

void rnic_mpt_read(struct rnic_mpt_owner *t, uint32_t slot,
		   struct rnic_mpt_entry *e)
{
	const struct rnic_mpt *m = &t->mpt[slot];

	pthread_mutex_lock(&t->lock);
	/* relaxed: the owner's own words, under the lock */
	e->r.va = rnic_load64_relaxed(&m->va);
	e->r.length = rnic_load64_relaxed(&m->length);
	e->r.mtt = rnic_load64_relaxed(&m->mtt);
	e->r.rights = (uint32_t)rnic_load64_relaxed(&m->rights);
	e->r.parent = (uint32_t)rnic_load64_relaxed(&m->parent);
	e->key = rnic_load64_relaxed(&m->key);
	e->version = rnic_load64_relaxed(&m->version);
	e->binding = rnic_load64_relaxed(&m->binding);
	pthread_mutex_unlock(&t->lock);
}

/*
 * True if @r has another range or other rights than @slot had. How its pages
 * come and go is no right.
 */
static bool rebinds(const struct rnic_mpt_owner *t, uint32_t slot,
		    const struct rnic_region *r)
{
	const struct rnic_mpt *m = &t->mpt[slot];
	uint64_t paging = RNIC_MR_ODP | RNIC_MR_WATCHED;

	/* relaxed: the owner's own words, under the lock */
	return rnic_load64_relaxed(&m->va) != r->va ||
	       rnic_load64_relaxed(&m->length) != r->length ||
	       (rnic_load64_relaxed(&m->rights) ^ r->rights) & ~paging;
}

/* @slot is invalid: takes its key back. Or BLOCKED. */
static int take_key(struct rnic_mpt_owner *t, uint32_t slot)
{
	uint64_t key = rnic_load64_relaxed(&t->mpt[slot].key);
	int ret;

	assert(t->slot[slot].state == SLOT_INVALID);
	if (!t->slot[slot].user)
		return 0;
	if (index_find(t, key) || provider_live(t, key))
		return -EEXIST;
	ret = index_reserve(t);
	if (!ret)
		index_insert(t, key, slot);
	return ret;
}

/* Writes @r to @slot, whose key it has; it is suspended afterwards. */
static void rewrite(struct rnic_mpt_owner *t, uint32_t slot,
		    const struct rnic_region *r)
{
	/* relaxed: the owner's own words, under the lock */
	uint64_t key = rnic_load64_relaxed(&t->mpt[slot].key);
	uint64_t binding = rnic_load64_relaxed(&t->mpt[slot].binding);

	if (RNIC_BROKEN(owner_fence))
		hide_late(&t->mpt[slot]);
	if (RNIC_BROKEN(version))
		rnic_add64_relaxed(&t->mpt[slot].version, UINT64_MAX - 1);
	if (rebinds(t, slot, r))
		binding = ++t->binding;
	slot_write(t, slot, r, key, binding);
}

void rnic_mpt_rewrite(struct rnic_mpt_owner *t, uint32_t slot,
		      const struct rnic_region *r)
{
	pthread_mutex_lock(&t->lock);
	assert(t->slot[slot].state == SLOT_SUSPENDED);
	rewrite(t, slot, r);
	pthread_mutex_unlock(&t->lock);
}

int rnic_mpt_change(struct rnic_mpt_owner *t, uint32_t slot,
		    const struct rnic_region *r)
{
	int ret = 0;

	pthread_mutex_lock(&t->lock);
	while (t->slot[slot].state != SLOT_SUSPENDED) {
		ret = take_key(t, slot);
		if (ret == BLOCKED)
			ret = wait_unlocked(t);
		else
			break;
		if (ret)
			break;
	}
	if (!ret) {
		rewrite(t, slot, r);
		slot_show(t, slot);
	}
	pthread_mutex_unlock(&t->lock);
	return ret;
}

void rnic_mpt_add_events(struct rnic_mpt_owner *t, uint32_t slot,
			 uint32_t events)
{
	struct rnic_mpt *m = &t->mpt[slot];
	uint64_t rights;

	pthread_mutex_lock(&t->lock);
	assert(t->slot[slot].state == SLOT_LIVE);
	/* relaxed: the owner's own words; M5 publishes the new one */
	rights = rnic_load64_relaxed(&m->rights) | events;
	rnic_store64_relaxed(&m->rights, rights);
	/*
	 * M5: the rights; ends each cached copy; pairs with A2 in the reader,
	 * who meanwhile finds a whole region with either word
	 */
	rnic_add64_release(&m->version, 2);
	pthread_mutex_unlock(&t->lock);
}

void rnic_mpt_retire(struct rnic_mpt_owner *t, uint32_t slot, uint64_t grace)
{
	pthread_mutex_lock(&t->lock);
	retire(t, slot, grace);
	pthread_mutex_unlock(&t->lock);
}

/* The live slot that @key names. The lock is held. */
static bool slot_of(const struct rnic_mpt_owner *t, uint64_t key,
		    uint32_t *slot)
{
	struct rnic_key_entry *e;

	*slot = rnic_key_slot(key);
	if (provider_live(t, key))
		return true;
	e = index_find(t, key);
	if (e)
		/* relaxed: the owner's own word, under the lock */
		*slot = (uint32_t)(rnic_load64_relaxed(&e->slot) - 1);
	return e;
}

int rnic_mpt_find(struct rnic_mpt_owner *t, uint64_t key, uint32_t *slot,
		  struct rnic_region *r)
{
	const struct rnic_mpt *m;
	int ret = -ENOKEY;

	pthread_mutex_lock(&t->lock);
	if (slot_of(t, key, slot)) {
		m = &t->mpt[*slot];
		/* relaxed: the owner's own words; mtt may go to 0 meanwhile */
		r->va = rnic_load64_relaxed(&m->va);
		r->length = rnic_load64_relaxed(&m->length);
		r->mtt = rnic_load64_relaxed(&m->mtt);
		r->rights = (uint32_t)rnic_load64_relaxed(&m->rights);
		ret = 0;
	}
	pthread_mutex_unlock(&t->lock);
	return ret;
}
