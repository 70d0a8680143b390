/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Lookup by an initiator.
 *
 * Exclusion: none is needed. Cache, sequence word and announce line have one
 * writer, the context. The target's tables are read as their owner writes
 * them; each word is loaded once into a local, bounded, used (contract L3).
 */
#include "shm/reader.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shm/log.h"
#include "shm/mtt.h"
#include "shm/window.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14; older ones answer EINVAL */
#endif

enum {
	WINDOW = 1 << RNIC_VIEW_SHIFT,	 /* bytes */
	FILL_MAX = RNIC_FILTER_BITS / 2, /* announce bits before a clear */
	TURNS = 64,			 /* times a lookup goes outside */
	TORN = 64,			 /* versions that move under a lookup */
	NEEDED = 1,			 /* internal: t->need says what */
	WAYS = RNIC_CACHE_WAYS,
	/* rnic_cache_entry.meta: bits of each field, from below */
	META_SLOT = RNIC_SLOT_BITS,
	META_RIGHTS = 12,
	META_SPACE = 8,
	META_TARGET = 19, /* and one bit: kind of leaf */
};

#define TARGET_SHIFT (META_SLOT + META_RIGHTS + META_SPACE + 1)
#define TARGET_MAX   ((1u << META_TARGET) - 1)

/* ---- cache entries ---- */

static uint64_t meta_make(uint32_t number, const struct rnic_xlat *x)
{
	uint64_t kind = x->entry >> 1 & 1;
	uint64_t space = rnic_mtt_leaf_space_of(x->entry);

	return x->slot |
	       (uint64_t)(x->rights & ((1u << META_RIGHTS) - 1)) << META_SLOT |
	       space << (META_SLOT + META_RIGHTS) | kind << (TARGET_SHIFT - 1) |
	       (uint64_t)number << TARGET_SHIFT;
}

static uint32_t meta_slot(uint64_t meta)
{
	return meta & ((1u << META_SLOT) - 1);
}

static uint32_t meta_rights(uint64_t meta)
{
	return meta >> META_SLOT & ((1u << META_RIGHTS) - 1);
}

/* The flags of the leaf. */
static uint64_t meta_leaf(uint64_t meta)
{
	uint64_t space =
		meta >> (META_SLOT + META_RIGHTS) & ((1u << META_SPACE) - 1);

	return space << RNIC_MTT_SPACE_SHIFT |
	       (meta >> (TARGET_SHIFT - 1) & 1) << 1 | RNIC_LEAF_VALID;
}

static unsigned int set_of(uint64_t key, uint32_t number)
{
	uint64_t h = (key ^ (uint64_t)number << 40 ^ key >> 24) *
		     UINT64_C(0x9e3779b97f4a7c15);

	return h >> 32 & (RNIC_CACHE_SETS - 1);
}

/* The entry for byte w->addr; all words are this context's own: relaxed. */
static struct rnic_cache_entry *probe(struct rnic_ctx *c, uint32_t number,
				      const struct rnic_want *w)
{
	unsigned int set = set_of(w->key, number);

	for (unsigned int i = 0; i < WAYS; i++) {
		struct rnic_cache_entry *e = &c->cache->entry[set][i];

		if (rnic_load64_relaxed(&e->key) == w->key &&
		    rnic_load64_relaxed(&e->meta) >> TARGET_SHIFT == number &&
		    w->addr - rnic_load64_relaxed(&e->start) <
			    rnic_load64_relaxed(&e->span)) {
			c->used[set] |= (uint8_t)(1u << i);
			return e;
		}
	}
	return NULL;
}

/* A way of @set to write: unused, outdated, or the one that CLOCK names. */
static unsigned int victim(struct rnic_ctx *c, unsigned int set, uint64_t key,
			   uint32_t number, uint64_t version)
{
	struct rnic_cache_entry *e = c->cache->entry[set];
	unsigned int i;

	for (i = 0; i < WAYS; i++) {
		uint64_t meta = rnic_load64_relaxed(&e[i].meta);

		if (!meta || (meta >> TARGET_SHIFT == number &&
			      rnic_load64_relaxed(&e[i].key) == key &&
			      rnic_load64_relaxed(&e[i].version) != version))
			return i;
	}
	for (i = c->hand[set]; c->used[set] & 1u << i; i = (i + 1) % WAYS)
		c->used[set] &= (uint8_t) ~(1u << i);
	c->hand[set] = (uint8_t)((i + 1) % WAYS);
	rnic_count64(&c->cache->evictions, 1);
	return i;
}

/* What a miss found: *@x for the first byte of a piece of the region. */
struct piece {
	struct rnic_xlat x; /* of the piece's first byte */
	uint64_t start;	    /* its address, as keys are used */
	uint64_t span;	    /* bytes of the piece */
	uint64_t room;	    /* from there to the region's end */
};

/* Only after the version was loaded behind the announce bit's fence. */
static void insert(struct rnic_ctx *c, uint32_t number, uint64_t key,
		   const struct piece *p)
{
	unsigned int set = set_of(key, number);
	unsigned int way = victim(c, set, key, number, p->x.version);
	struct rnic_cache_entry *e = &c->cache->entry[set][way];
	uint64_t page = p->x.entry & ~(uint64_t)(RNIC_PAGE - 1);

	/* relaxed: for this context, and for statistics */
	rnic_store64_relaxed(&e->key, key);
	rnic_store64_relaxed(&e->version, p->x.version);
	rnic_store64_relaxed(&e->start, p->start);
	rnic_store64_relaxed(&e->span, p->span);
	rnic_store64_relaxed(&e->room, p->room);
	rnic_store64_relaxed(&e->phys, page + p->x.addr_in);
	rnic_store64_relaxed(&e->binding, p->x.binding);
	rnic_store64_relaxed(&e->meta, meta_make(number, &p->x));
	c->used[set] |= (uint8_t)(1u << way);
}

/* Forgets all entries of target @number. */
static void forget(struct rnic_ctx *c, uint32_t number)
{
	for (unsigned int s = 0; s < RNIC_CACHE_SETS; s++)
		for (unsigned int i = 0; i < WAYS; i++) {
			rnic_a64 *m = &c->cache->entry[s][i].meta;

			/* relaxed: this context's own words */
			if (rnic_load64_relaxed(m) >> TARGET_SHIFT == number)
				rnic_store64_relaxed(m, 0);
		}
}

/* ---- contexts and targets ---- */

void rnic_ctx_init(struct rnic_ctx *c, void *cache_mem)
{
	*c = (struct rnic_ctx){ .cache = cache_mem };
	memset(cache_mem, 0, sizeof(struct rnic_cache));
}

int rnic_ctx_open(struct rnic_ctx *c, struct rnic_device *d, unsigned int place,
		  unsigned int index)
{
	const struct rnic_header *h = d->hdr;
	uint64_t off =
		h->cache_off +
		(place * (uint64_t)RNIC_CTX_PER_EP + index) * h->cache_stride;
	int ret = rnic_segment_populate(&d->tables, off, h->cache_stride);

	if (!ret)
		rnic_ctx_init(c, (char *)d->hdr + off);
	return ret;
}

void rnic_ctx_fini(struct rnic_ctx *c)
{
	free(c->target);
	*c = (struct rnic_ctx){ .cache = NULL };
}

/* Outside: gives @t a number in @c. */
static int number(struct rnic_ctx *c, struct rnic_target *t)
{
	struct rnic_target **p;
	uint32_t i = 0;

	while (i < c->ntargets && c->target[i])
		i++;
	if (i == TARGET_MAX)
		return -ENOMEM;
	if (i == c->ntargets) {
		uint32_t n = 2 * i + 8;

		p = realloc(c->target, n * sizeof(*p));
		if (!p)
			return -ENOMEM;
		memset(p + i, 0, (n - i) * sizeof(*p));
		c->target = p;
		c->ntargets = n;
	}
	c->target[i] = t;
	t->ctx = c;
	t->number = i + 1;
	return 0;
}

/*
 * Outside: empties the cache, then the announce line. A bit is cleared only
 * when no use of an entry behind it can follow.
 */
static void clear(struct rnic_target *t)
{
	if (t->ctx)
		forget(t->ctx, t->number);
	for (unsigned int i = 0; i < RNIC_FILTER_BITS / 64; i++)
		/* R3: the uses before are over; pairs with A3 in grace.c */
		rnic_store64_release(&t->announce[i], 0);
	t->announced = 0;
}

static int map_head(struct rnic_target *t, const struct rnic_header *h)
{
	uint64_t page = h->mpt_head_off & ~(uint64_t)(RNIC_PAGE - 1);
	int ret = rnic_window_map(&t->remote->tables, page, RNIC_PAGE,
				  PROT_READ, &t->head_win);

	if (!ret)
		t->head =
			(const struct rnic_mpt_head *)((char *)t->head_win +
						       h->mpt_head_off - page);
	return ret;
}

static void set_parts(struct rnic_target *t, const struct rnic_header *h)
{
	uint64_t index = h->index_slots * sizeof(struct rnic_key_entry);

	t->part[RNIC_PART_MPT].off = h->mpt_off;
	t->part[RNIC_PART_MPT].size = h->mpt_slots * sizeof(struct rnic_mpt);
	t->part[RNIC_PART_INDEX0].off = h->index_off[0];
	t->part[RNIC_PART_INDEX0].size = index;
	t->part[RNIC_PART_INDEX1].off = h->index_off[1];
	t->part[RNIC_PART_INDEX1].size = index;
	t->part[RNIC_PART_MTT].off = h->mtt_off;
	t->part[RNIC_PART_MTT].size = h->mtt_pages * RNIC_PAGE;
}

int rnic_target_init(struct rnic_target *t, struct rnic_remote *r,
		     struct rnic_lane *lane, unsigned int ctx_index)
{
	int ret = rnic_remote_tables(r);

	*t = (struct rnic_target){
		.seq = &lane->reader[ctx_index].seq,
		.fence = r->fence,
		.announce = lane->announce[ctx_index],
		.remote = r,
	};
	if (!ret)
		ret = map_head(t, &r->hdr);
	if (ret) {
		t->remote = NULL;
		return ret;
	}
	set_parts(t, &r->hdr);
	/* relaxed: the claim made the lane ours, its last user is gone */
	t->now = rnic_load64_relaxed(t->seq);
	if (t->now & 1)
		rnic_leave(t);
	clear(t);
	return 0;
}

void rnic_target_fini(struct rnic_target *t)
{
	if (!t->remote)
		return;
	clear(t);
	if (t->ctx)
		t->ctx->target[t->number - 1] = NULL;
	for (int p = 0; p < RNIC_PARTS; p++) {
		struct rnic_part_map *m = &t->part[p];

		for (uint32_t i = 0; i < m->n; i++) {
			uint64_t left = m->size - (uint64_t)i * WINDOW;

			if (m->win[i])
				rnic_window_unmap((void *)(uintptr_t)m->win[i],
						  left < WINDOW ? left
								: WINDOW);
		}
		free(m->win);
	}
	rnic_window_unmap(t->head_win, RNIC_PAGE);
	*t = (struct rnic_target){ .remote = NULL };
}

/* ---- what is done outside ---- */

/* Room for window @i in the list of @m. */
static int grow(struct rnic_part_map *m, uint32_t i)
{
	const uint8_t **p;

	if (i < m->n)
		return 0;
	p = realloc(m->win, ((size_t)i + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	memset(p + m->n, 0, (i + 1 - m->n) * sizeof(*p));
	m->win = p;
	m->n = i + 1;
	return 0;
}

/*
 * Maps window @i of @m and touches its pages by a call that can fail: a hole
 * in what the owner says it has is an error, not a signal (contract L2).
 */
static int map_window(struct rnic_target *t, struct rnic_part_map *m,
		      uint32_t i)
{
	uint64_t at = (uint64_t)i * WINDOW;
	size_t len = m->size - at < WINDOW ? m->size - at : WINDOW;
	int ret = grow(m, i);
	void *p;

	if (!ret)
		ret = rnic_window_map(&t->remote->tables, m->off + at, len,
				      PROT_READ, &p);
	if (ret)
		return ret;
	if (madvise(p, len, MADV_POPULATE_READ) && errno != EINVAL) {
		rnic_log(RNIC_LOG_WARN,
			 "window of %zu bytes into the tables of process %u: "
			 "%s",
			 len, t->remote->addr.pid, strerror(errno));
		rnic_window_unmap(p, len);
		return -ENOMEM;
	}
	m->win[i] = p;
	return 0;
}

/* Leaves, does what the lookup needs, enters again. */
static int go_outside(struct rnic_ctx *c, struct rnic_target *t)
{
	enum rnic_need need = t->need;
	int ret = 0;

	rnic_leave(t);
	t->need = RNIC_NEED_NOTHING;
	if (need == RNIC_NEED_NUMBER)
		ret = number(c, t);
	else if (need == RNIC_NEED_CLEAR)
		clear(t);
	else
		ret = map_window(t, &t->part[t->need_part], t->need_win);
	rnic_enter(t);
	return ret;
}

/* Byte @at of part @p, within its size; NULL: the window is missing. */
static const void *part_at(struct rnic_target *t, enum rnic_part p, uint64_t at)
{
	const struct rnic_part_map *m = &t->part[p];
	uint32_t i = (uint32_t)(at >> RNIC_VIEW_SHIFT);

	if (i < m->n && m->win[i])
		return m->win[i] + (at & (WINDOW - 1));
	t->need = RNIC_NEED_WINDOW;
	t->need_part = p;
	t->need_win = i;
	return NULL;
}

static const struct rnic_mpt *mpt_at(struct rnic_target *t, uint32_t slot)
{
	return part_at(t, RNIC_PART_MPT,
		       (uint64_t)slot * sizeof(struct rnic_mpt));
}

/* rnic_mtt_page_fn. */
static const struct rnic_mtt_page *mtt_at(void *arg, uint64_t n)
{
	struct rnic_target *t = arg;

	if (n >= t->remote->hdr.mtt_pages)
		return NULL;
	return part_at(t, RNIC_PART_MTT, n * RNIC_PAGE);
}

/* ---- a miss ---- */

/* Looks @key up in the user-key index. 0, -ENOKEY, NEEDED. */
static int index_find(struct rnic_target *t, uint64_t key, uint64_t *slot)
{
	/* A5: the table; pairs with M4 in shm/mpt.c */
	uint64_t word = rnic_load64_acquire(&t->head->index);
	unsigned int shift = rnic_index_shift(word);
	enum rnic_part part =
		rnic_index_which(word) ? RNIC_PART_INDEX1 : RNIC_PART_INDEX0;
	uint64_t size = UINT64_C(1) << shift, h;

	if (!rnic_index_valid(word) || shift < RNIC_INDEX_SHIFT_MIN ||
	    size > t->remote->hdr.index_slots)
		return -ENOKEY;
	h = rnic_index_hash(key, shift);
	for (uint64_t n = 0; n < size; n++) {
		const struct rnic_key_entry *e =
			part_at(t, part, ((h + n) & (size - 1)) * sizeof(*e));
		uint64_t s;

		if (!e)
			return NEEDED;
		/* A4: key and region; pairs with M3 in shm/mpt.c */
		s = rnic_load64_acquire(&e->slot);
		if (s == RNIC_INDEX_FREE)
			break;
		/* relaxed: after A4; the MPT entry has it once more */
		if (s == RNIC_INDEX_DELETED ||
		    rnic_load64_relaxed(&e->key) != key)
			continue;
		*slot = s - 1;
		return 0;
	}
	return -ENOKEY;
}

/*
 * The slot that may be @key's: the one a provider key names, if it has that
 * key, else what the index says. A guess that read_slot() checks.
 */
static int find_slot(struct rnic_target *t, uint64_t key, uint32_t *slot)
{
	/* A6: slots below have pages; pairs with M2 in shm/mpt.c */
	uint64_t used = rnic_load64_acquire(&t->head->used), s;
	const struct rnic_mpt *m;
	int ret;

	if (used > t->remote->hdr.mpt_slots)
		return -ENOKEY;
	*slot = rnic_key_slot(key);
	if (*slot < used) {
		m = mpt_at(t, *slot);
		if (!m)
			return NEEDED;
		/* relaxed: hints */
		if (rnic_load64_relaxed(&m->key) == key &&
		    !(rnic_load64_relaxed(&m->version) & 1))
			return 0;
	}
	/* the sequence before the index, which is reused after a grace */
	rnic_fence_full();
	ret = index_find(t, key, &s);
	if (ret)
		return ret;
	/* A6 again: the slot may be younger than the first look */
	used = rnic_load64_acquire(&t->head->used);
	if (s >= used || used > t->remote->hdr.mpt_slots)
		return -ENOKEY;
	*slot = (uint32_t)s;
	return 0;
}

/* M2: sets the announce bit of @slot; the caller fences. */
static int announce(struct rnic_target *t, uint32_t slot)
{
	unsigned int bit = rnic_filter_bit(slot);
	rnic_a64 *w = &t->announce[bit / 64];
	/* relaxed: this context's own word; the fence of M3 orders it */
	uint64_t old = rnic_load64_relaxed(w);
	uint64_t b = UINT64_C(1) << bit % 64;

	if (old & b)
		return 0;
	if (t->announced >= FILL_MAX) {
		t->need = RNIC_NEED_CLEAR;
		return NEEDED;
	}
	rnic_store64_relaxed(w, old | b);
	t->announced++;
	return 0;
}

/* The fields of an MPT slot, each loaded once. */
struct fields {
	uint64_t va;	 /* first address */
	uint64_t length; /* bytes */
	uint64_t mtt;	 /* root */
	uint32_t rights; /* enum rnic_right */
};

/* Finds byte @off of a region of several ranges. */
static int walk_list(struct rnic_target *t, const struct fields *f,
		     uint64_t off, struct rnic_mtt_range *range, uint64_t *rel)
{
	const struct rnic_mtt_page *p;

	if (rnic_mtt_root_depth(f->mtt) != 1)
		return -EPROTO;
	p = mtt_at(t, rnic_mtt_root_entry(f->mtt) >> RNIC_MTT_PAGE_SHIFT);
	if (!p)
		return -EPROTO;
	return rnic_mtt_list_find((const struct rnic_mtt_list *)p, off, range,
				  rel);
}

/* The contiguous piece around byte @off of the region. */
static int walk(struct rnic_target *t, const struct fields *f, uint64_t off,
		struct piece *p)
{
	struct rnic_mtt_range r = { f->length, f->va, f->mtt };
	uint64_t rel = off, at, len, in, back;
	int ret = f->rights & RNIC_MR_LIST ? walk_list(t, f, off, &r, &rel) : 0;

	if (!ret)
		ret = rnic_mtt_walk(r.root, r.va, r.va + rel, mtt_at, t,
				    &p->x.entry, &at, &len);
	if (t->need)
		return NEEDED;
	if (ret)
		return ret == -ENOENT ? -EAGAIN : -ENOKEY;
	in = at - (p->x.entry & ~(uint64_t)(RNIC_PAGE - 1));
	back = in < rel ? in : rel;
	if (len > r.bytes - rel)
		len = r.bytes - rel;
	p->x.addr_in = in - back;
	p->span = back + len;
	p->start = (f->rights & RNIC_MR_OFFSET ? 0 : f->va) + off - back;
	p->room = f->length - (off - back);
	return 0;
}

/* Rights and bounds (by subtraction), then the walk. */
static int check(struct rnic_target *t, const struct fields *f,
		 const struct rnic_want *w, struct piece *p)
{
	uint64_t off = w->addr - (f->rights & RNIC_MR_OFFSET ? 0 : f->va);

	if (w->rights & ~f->rights)
		return -EACCES;
	if (off > f->length || w->len > f->length - off)
		return -ERANGE;
	p->x.rights = f->rights;
	if (off < f->length)
		return walk(t, f, off, p);
	/* no byte at the very end */
	p->x.entry = 0;
	p->x.addr_in = 0;
	p->start = w->addr;
	p->span = p->room = 0;
	return 0;
}

/*
 * Reads @slot once: 0 or an error of rnic_resolve() if its version held
 * still, NEEDED, or -EINTR if it moved.
 */
static int read_once(struct rnic_target *t, const struct rnic_mpt *m,
		     const struct rnic_want *w, struct piece *p)
{
	/* A2: the fields and the translation; pairs with M1 in shm/mpt.c */
	uint64_t version = rnic_load64_acquire(&m->version);
	struct fields f;
	int ret;

	/* acquire, all of them: before the second look at the version */
	if (version & 1 || rnic_load64_acquire(&m->key) != w->key)
		return -ENOKEY;
	f.va = rnic_load64_acquire(&m->va);
	f.length = rnic_load64_acquire(&m->length);
	/* the same: a version that has not moved says that all belong
	 * together */
	f.mtt = rnic_load64_acquire(&m->mtt);
	f.rights = (uint32_t)rnic_load64_acquire(&m->rights);
	p->x.binding = rnic_load64_acquire(&m->binding);
	p->x.version = version;
	ret = check(t, &f, w, p);
	if (ret == NEEDED)
		return ret;
	/* relaxed: all loads it must follow were acquires */
	return rnic_load64_relaxed(&m->version) == version ? ret : -EINTR;
}

/* Looks @w up in the target's tables and keeps what it finds. */
static int miss(struct rnic_ctx *c, struct rnic_target *t,
		const struct rnic_want *w, struct piece *p)
{
	const struct rnic_mpt *m;
	int ret;

	if (t->ctx != c) {
		assert(!t->ctx);
		t->need = RNIC_NEED_NUMBER;
		return NEEDED;
	}
	ret = find_slot(t, w->key, &p->x.slot);
	if (!ret)
		ret = announce(t, p->x.slot);
	if (ret)
		return ret;
	m = mpt_at(t, p->x.slot);
	if (!m)
		return NEEDED;
	/*
	 * M3: sequence and announce bit before the load of the version;
	 * pairs with O2 in shm/grace.c
	 */
	rnic_fence_full();
	ret = -EINTR;
	for (int i = 0; i < TORN && ret == -EINTR; i++)
		ret = read_once(t, m, w, p);
	if (!ret && p->span)
		insert(c, t->number, w->key, p);
	return ret == -EINTR ? -EAGAIN : ret;
}

/* ---- both ---- */

/* Sets *@x for @w, which lies in the piece @p. */
static int use(const struct piece *p, const struct rnic_want *w,
	       struct rnic_xlat *x)
{
	uint64_t in = w->addr - p->start;

	if (w->rights & ~p->x.rights)
		return -EACCES;
	if (w->len > p->room - in)
		return -ERANGE;
	if (w->first &&
	    (w->first->slot != p->x.slot || w->first->binding != p->x.binding))
		return -ESTALE;
	*x = p->x;
	x->addr_in += in;
	x->contiguous = w->len < p->span - in ? w->len : p->span - in;
	return 0;
}

/* The cached entry @e as a piece; own words: relaxed. */
static void load_piece(const struct rnic_cache_entry *e, struct piece *p)
{
	uint64_t meta = rnic_load64_relaxed(&e->meta);
	uint64_t phys = rnic_load64_relaxed(&e->phys);

	p->x.entry = (phys & ~(uint64_t)(RNIC_PAGE - 1)) | meta_leaf(meta);
	p->x.addr_in = phys & (RNIC_PAGE - 1);
	p->x.version = rnic_load64_relaxed(&e->version);
	p->x.binding = rnic_load64_relaxed(&e->binding);
	p->x.slot = meta_slot(meta);
	p->x.rights = meta_rights(meta);
	p->start = rnic_load64_relaxed(&e->start);
	p->span = rnic_load64_relaxed(&e->span);
	p->room = rnic_load64_relaxed(&e->room);
}

/* True if @w is cached at the version that the slot has now. */
static bool hit(struct rnic_ctx *c, struct rnic_target *t,
		const struct rnic_want *w, struct piece *p)
{
	struct rnic_cache_entry *e =
		t->ctx == c ? probe(c, t->number, w) : NULL;
	const struct rnic_mpt *m;

	if (!e)
		return false;
	load_piece(e, p);
	m = mpt_at(t, p->x.slot);
	/* A7, H2: what was invalidated is not used; ordered after H1 */
	if (RNIC_LIKELY(m &&
			rnic_load64_acquire(&m->version) == p->x.version)) {
		rnic_count64(&c->cache->hits, 1);
		return true;
	}
	rnic_count64(&c->cache->invalidations, 1);
	/* relaxed: this context's own word */
	rnic_store64_relaxed(&e->meta, 0);
	return false;
}

int rnic_resolve(struct rnic_ctx *c, struct rnic_target *t,
		 const struct rnic_want *w, struct rnic_xlat *x)
{
	struct piece p;
	int ret;

	assert(t->now & 1);
	if (RNIC_LIKELY(hit(c, t, w, &p)))
		return use(&p, w, x);
	rnic_count64(&c->cache->misses, 1);
	for (int i = 0; i < TURNS; i++) {
		ret = miss(c, t, w, &p);
		if (ret != NEEDED)
			return ret ? ret : use(&p, w, x);
		ret = go_outside(c, t);
		if (ret)
			return ret;
	}
	return -EAGAIN;
}
