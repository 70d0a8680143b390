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
#include <time.h>

#include "shm/breakage.h"
#include "shm/log.h"
#include "shm/mtt.h"
#include "shm/window.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14; older ones answer EINVAL */
#endif

enum {
	WINDOW = 1 << RNIC_VIEW_SHIFT,	 /* bytes */
	FILL_MAX = RNIC_FILTER_BITS / 8, /* announce bits before a look */
	SWEEP = 256, /* entries looked at for a target that is gone */
	TURNS = 64,  /* times a lookup goes outside */
	TORN = 64,   /* versions that move under a lookup */
	NEEDED = 1,  /* internal: t->need says what */
	TARGET_MAX = (1 << RNIC_META_TARGET) - 1,
};

/* ---- contexts and targets ---- */

/* In rnic_ctx.target: a number that is not to be given to another one yet. */
static struct rnic_target gone;

int rnic_ctx_init(struct rnic_ctx *c, void *cache_mem,
		  const struct rnic_keycache_cfg *cfg)
{
	*c = (struct rnic_ctx){ .miss_ns = cfg->miss_ns };
	return rnic_keycache_init(&c->keys, cache_mem, cfg);
}

int rnic_ctx_open(struct rnic_ctx *c, struct rnic_device *d, unsigned int place,
		  unsigned int index)
{
	const struct rnic_header *h = d->hdr;
	uint64_t n = place * (uint64_t)RNIC_CTX_PER_EP + index;
	uint64_t off = h->cache_off + n * h->cache_stride;
	struct rnic_keycache_cfg cfg = d->keys;
	int ret = rnic_segment_populate(&d->tables, off, h->cache_stride);

	cfg.seed += n << 32;
	return ret ? ret : rnic_ctx_init(c, (char *)d->hdr + off, &cfg);
}

void rnic_ctx_fini(struct rnic_ctx *c)
{
	free(c->target);
	rnic_keycache_fini(&c->keys);
	*c = (struct rnic_ctx){ .target = NULL };
}

static bool is_gone(uint32_t number, void *arg)
{
	const struct rnic_ctx *c = arg;

	return number <= c->ntargets && c->target[number - 1] == &gone;
}

/*
 * Outside: no entry of target @number of @c is found any more, since nobody has
 * that number. It may be given again once the entries are gone from the cache:
 * a large one is looked through for many numbers at a time.
 */
static void forget(struct rnic_ctx *c, uint32_t number)
{
	c->target[number - 1] = &gone;
	c->gone++;
	if ((uint64_t)c->gone * SWEEP < rnic_keycache_entries(&c->keys))
		return;
	rnic_keycache_forget(&c->keys, is_gone, c);
	for (uint32_t i = 0; i < c->ntargets; i++)
		if (c->target[i] == &gone)
			c->target[i] = NULL;
	c->gone = 0;
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
 * Outside: makes the announce line what the cache holds of @t, nothing if @t
 * has no number. A bit goes only when no use of an entry behind it can follow:
 * the entry is not there any more, and a new one begins with a miss.
 */
static void renew_filter(struct rnic_target *t)
{
	uint64_t filter[RNIC_FILTER_BITS / 64] = { 0 };

	t->announced = 0;
	t->filled = 0;
	if (t->ctx)
		t->announced = rnic_keycache_announced(&t->ctx->keys, t->number,
						       filter);
	for (unsigned int i = 0; i < RNIC_FILTER_BITS / 64; i++)
		/* R3: the uses before are over; pairs with A3 in grace.c */
		rnic_store64_release(&t->announce[i], filter[i]);
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
	renew_filter(t);
	return 0;
}

void rnic_target_fini(struct rnic_target *t)
{
	if (!t->remote)
		return;
	if (t->ctx)
		forget(t->ctx, t->number);
	t->ctx = NULL;
	renew_filter(t);
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
	else if (need == RNIC_NEED_FILTER)
		renew_filter(t);
	else
		ret = map_window(t, &t->part[t->need_part], t->need_win);
	rnic_enter(t);
	return ret;
}

/* Byte @at of part @p, within its size; NULL: the window is missing. */
static const void *part_at(struct rnic_target *t, enum rnic_part p, uint64_t at)
{
	const void *byte = rnic_part_look(&t->part[p], at);

	if (byte)
		return byte;
	t->need = RNIC_NEED_WINDOW;
	t->need_part = p;
	t->need_win = (uint32_t)(at >> RNIC_VIEW_SHIFT);
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

/* True if @key is the one that an MPT slot says it has. */
static bool same_key(uint64_t has, uint64_t key)
{
	if (RNIC_BROKEN(generation))
		return rnic_key_slot(has) == rnic_key_slot(key);
	return has == key;
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
		if (same_key(rnic_load64_relaxed(&m->key), key) &&
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

/*
 * True if the announce line should be made anew: it is half full, so that many
 * closes of keys that are not cached cost their owner a membarrier. To look
 * through the cache costs each miss since the last time one entry at most; a
 * line that stays full is right, and no reason to forget anything.
 */
static bool is_full(const struct rnic_target *t)
{
	return t->announced >= FILL_MAX && t->filled >= FILL_MAX &&
	       t->filled >= rnic_keycache_entries(&t->ctx->keys);
}

/* M2: sets the announce bit of @slot; the caller fences. */
static int announce(struct rnic_target *t, uint32_t slot)
{
	unsigned int bit = rnic_filter_bit(slot);
	rnic_a64 *w = &t->announce[bit / 64];
	/* relaxed: this context's own word; the fence of M3 orders it */
	uint64_t old = rnic_load64_relaxed(w);
	uint64_t b = UINT64_C(1) << bit % 64;

	if (is_full(t)) {
		t->need = RNIC_NEED_FILTER;
		return NEEDED;
	}
	t->filled++;
	if (old & b)
		return 0;
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
		struct rnic_piece *p)
{
	struct rnic_mtt_range r = { f->length, f->va, f->mtt };
	uint64_t rel = off, at, len, in, back;
	int ret = f->rights & RNIC_MR_LIST ? walk_list(t, f, off, &r, &rel) : 0;

	if (!ret)
		ret = rnic_mtt_walk(r.root, r.va, r.va + rel, mtt_at, t,
				    f->rights & RNIC_MR_ODP, &p->x.entry, &at,
				    &len);
	if (t->need)
		return NEEDED;
	if (ret)
		return ret == -ENOENT ? -EAGAIN : -ENOKEY;
	in = at - (p->x.entry & ~(uint64_t)(RNIC_PAGE - 1));
	back = in < rel ? in : rel;
	if (len > r.bytes - rel && !RNIC_BROKEN(range_end))
		len = r.bytes - rel;
	p->x.addr_in = in - back;
	p->span = back + len;
	p->start = (f->rights & RNIC_MR_OFFSET ? 0 : f->va) + off - back;
	p->room = f->length - (off - back);
	return 0;
}

/*
 * A page that is there to be read only: whoever writes asks for it again. The
 * cached piece says so, since it outlives the page's next state.
 */
static int for_now(struct rnic_piece *p, const struct rnic_want *w, int ret)
{
	if (ret || !(p->x.entry & RNIC_LEAF_READ))
		return ret;
	if (w->rights & RNIC_REMOTE_WRITE)
		return -EAGAIN;
	p->x.rights &= ~(uint32_t)RNIC_REMOTE_WRITE;
	p->x.rights |= RNIC_MR_READ_NOW;
	return 0;
}

/* Rights and bounds (by subtraction), then the walk. */
static int check(struct rnic_target *t, const struct fields *f,
		 const struct rnic_want *w, struct rnic_piece *p)
{
	uint64_t off = w->addr - (f->rights & RNIC_MR_OFFSET ? 0 : f->va);

	if (!RNIC_BROKEN(rights) && w->rights & ~f->rights)
		return -EACCES;
	if (off > f->length || w->len > f->length - off)
		return -ERANGE;
	p->x.rights = f->rights;
	/* the monitor has found its memory gone */
	if (!f->mtt)
		return -EAGAIN;
	if (off < f->length)
		return for_now(p, w, walk(t, f, off, p));
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
		     const struct rnic_want *w, struct rnic_piece *p)
{
	/* A2: the fields and the translation; pairs with M1 in shm/mpt.c */
	uint64_t version = rnic_load64_acquire(&m->version), frozen = 0;
	struct fields f;
	bool watched;
	int ret;

	/* acquire, all of them: before the second look at the version */
	if (version & 1 || !same_key(rnic_load64_acquire(&m->key), w->key))
		return -ENOKEY;
	f.rights = (uint32_t)rnic_load64_acquire(&m->rights);
	watched = f.rights & RNIC_MR_WATCHED && !RNIC_BROKEN(frozen);
	/* Z3: before root and entries, which Z2 has changed */
	if (watched)
		frozen = rnic_load64_acquire(&t->head->frozen);
	f.va = rnic_load64_acquire(&m->va);
	f.length = rnic_load64_acquire(&m->length);
	if (RNIC_BROKEN(bounds))
		f.length += RNIC_PAGE;
	/* the same: a version that has not moved says that all belong
	 * together */
	f.mtt = rnic_load64_acquire(&m->mtt);
	p->x.binding = rnic_load64_acquire(&m->binding);
	p->x.version = version;
	ret = check(t, &f, w, p);
	if (ret == NEEDED)
		return ret;
	/* relaxed, as the version: all that must be before it was acquired */
	if (watched && rnic_load64_relaxed(&t->head->frozen) != frozen)
		return -EINTR;
	/* nothing is translated now: as if it were not present */
	if (frozen & 1 && !ret)
		ret = -EAGAIN;
	/* others have no gaps, and nobody who would fill them */
	if (ret == -EAGAIN && !(f.rights & (RNIC_MR_ODP | RNIC_MR_WATCHED)))
		ret = -ENOKEY;
	/* relaxed: all loads it must follow were acquires */
	return rnic_load64_relaxed(&m->version) == version ? ret : -EINTR;
}

/* Looks @w up in the target's tables and keeps what it finds. */
static int miss(struct rnic_ctx *c, struct rnic_target *t,
		const struct rnic_want *w, struct rnic_piece *p)
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
		rnic_keycache_insert(&c->keys, t->number, w->key, p);
	return ret == -EINTR ? -ENOKEY : ret;
}

/* ---- both ---- */

/* Sets *@x for @w, which lies in the piece @p. */
static int use(const struct rnic_piece *p, const struct rnic_want *w,
	       struct rnic_xlat *x)
{
	uint64_t in = w->addr - p->start;

	if (!RNIC_BROKEN(rights) && w->rights & ~p->x.rights)
		return -EACCES;
	if (w->len > p->room - in)
		return -ERANGE;
	if (!RNIC_BROKEN(binding) && w->first &&
	    (w->first->slot != p->x.slot || w->first->binding != p->x.binding))
		return -ESTALE;
	*x = p->x;
	x->addr_in += in;
	x->contiguous = w->len < p->span - in ? w->len : p->span - in;
	return 0;
}

/* True if @w is cached at the version that the slot has now. */
static bool hit(struct rnic_ctx *c, struct rnic_target *t,
		const struct rnic_want *w, struct rnic_piece *p)
{
	struct rnic_keycache *k = &c->keys;
	struct rnic_cache_entry *e =
		t->ctx == c ? rnic_keycache_probe(k, t->number, w->key, w->addr)
			    : NULL;
	const struct rnic_mpt *m;

	if (!e)
		return false;
	rnic_keycache_load(e, p);
	m = mpt_at(t, p->x.slot);
	/* A7, H2: what was invalidated is not used; ordered after H1 */
	if (RNIC_LIKELY(m &&
			(RNIC_BROKEN(cached) ||
			 rnic_load64_acquire(&m->version) == p->x.version))) {
		rnic_count64(&k->mem->hits, 1);
		return true;
	}
	rnic_keycache_drop(k, e);
	return false;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/*
 * Spends what a miss is to cost, outside: no owner waits for it. The clock ends
 * it; the CPU is not given away, as it would not be for a NIC that fetches.
 */
static void pay(const struct rnic_ctx *c, struct rnic_target *t)
{
	uint64_t end;

	rnic_leave(t);
	end = now_ns() + c->miss_ns;
	while (now_ns() < end)
		rnic_cpu_relax();
	rnic_enter(t);
}

/*
 * What is cached was there to be read only, and may be there for more by now:
 * it is dropped. False: the right is not the region's.
 */
RNIC_COLD static bool outgrown(struct rnic_ctx *c, const struct rnic_target *t,
			       const struct rnic_want *w,
			       const struct rnic_piece *p)
{
	struct rnic_cache_entry *e;

	if (!(p->x.rights & RNIC_MR_READ_NOW))
		return false;
	e = rnic_keycache_probe(&c->keys, t->number, w->key, w->addr);
	if (e)
		rnic_keycache_drop(&c->keys, e);
	return true;
}

int rnic_resolve(struct rnic_ctx *c, struct rnic_target *t,
		 const struct rnic_want *w, struct rnic_xlat *x)
{
	struct rnic_piece p;
	int ret;

	assert(t->now & 1);
	if (RNIC_LIKELY(hit(c, t, w, &p))) {
		ret = use(&p, w, x);
		if (RNIC_LIKELY(ret != -EACCES) || !outgrown(c, t, w, &p))
			return ret;
	}
	rnic_count64(&c->keys.mem->misses, 1);
	if (RNIC_UNLIKELY(c->miss_ns))
		pay(c, t);
	for (int i = 0; i < TURNS; i++) {
		ret = miss(c, t, w, &p);
		if (ret != NEEDED)
			return ret ? ret : use(&p, w, x);
		ret = go_outside(c, t);
		if (ret)
			return ret;
	}
	return -ENOKEY;
}
