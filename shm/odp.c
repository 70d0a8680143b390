/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Regions on demand, see odp.h for states and exclusion.
 */
#include "shm/odp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shm/breakage.h"
#include "shm/log.h"
#include "shm/watch.h"

enum {
	RETRIES = 100, /* of pages that go as fast as they come */
	LOST = 1,      /* internal: invalidated meanwhile, do it again */
};

#define TABLE_BYTES ((uint64_t)RNIC_MTT_FANOUT * RNIC_PAGE)

/* Which pages of a table are pinned by us. */
struct rnic_odp_block {
	uint64_t bits[RNIC_MTT_FANOUT / 64]; /* one for each entry */
};

/* Pages in a row, in one table, in the same state. */
struct run {
	rnic_a64 *e;   /* entry of the first */
	uint64_t va;   /* its address */
	uint64_t n;    /* pages */
	uint64_t was;  /* what each entry holds: @was + i * @step */
	uint64_t step; /* 0, or a page if they were present */
	bool write;    /* to be written */
	uint64_t leaf; /* out: of the first */
	bool pinned;   /* out: all are */
};

static uint64_t end_of(const struct rnic_odp *o)
{
	return rnic_page_down(o->cfg.va + o->cfg.length + RNIC_PAGE - 1);
}

static struct rnic_paging *paging_of(const struct rnic_odp *o)
{
	const struct rnic_device *d = o->cfg.dev;

	return (struct rnic_paging *)((char *)d->hdr + d->hdr->paging_off);
}

/* ---- invalidation: the monitor's thread, by its rules ---- */

/* Clears entries of one table. Returns how many were present. */
static uint64_t clear(rnic_a64 *e, uint64_t n)
{
	uint64_t cleared = 0;

	for (uint64_t i = 0; i < n; i++) {
		/*
		 * A full barrier, either before or after the CAS of a fault: a
		 * token that is gone makes that fail (F2)
		 */
		if (rnic_load64_relaxed(&e[i]) &&
		    rnic_xchg64_seqcst(&e[i], 0) & RNIC_LEAF_VALID)
			cleared++;
	}
	return cleared;
}

/* Clears the entries of @va to @end, pages of @o; counts those present. */
static uint64_t clear_pages(struct rnic_odp *o, uint64_t va, uint64_t end)
{
	uint64_t cleared = 0, bytes, left;

	for (; va < end; va += bytes) {
		rnic_a64 *e = rnic_mtt_entry(o->cfg.mtt, o->root, o->cfg.va, va,
					     &bytes);

		left = end - va;
		if (e)
			cleared += clear(e, ((bytes < left ? bytes : left) +
					     RNIC_PAGE - 1) /
						    RNIC_PAGE);
		if (bytes >= left)
			break;
	}
	/* relaxed: statistics */
	rnic_add64_relaxed(&o->invalidated, cleared);
	rnic_add64_relaxed(&paging_of(o)->invalidated, cleared);
	return cleared;
}

/* rnic_gone_fn. */
static void gone(struct rnic_watched *w, uint64_t start, uint64_t end,
		 bool unmapped)
{
	struct rnic_odp *o = (struct rnic_odp *)w;
	uint64_t va = rnic_page_down(o->cfg.va);

	(void)unmapped;
	if (va < start)
		va = rnic_page_down(start);
	if (end > end_of(o))
		end = end_of(o);
	if (!RNIC_BROKEN(paging_gone) && va < end && clear_pages(o, va, end))
		/* release: the entries; pairs with rnic_odp_tidy() */
		rnic_store32_release(&o->dirty, 1);
}

/* ---- pins ---- */

/* The address of the first entry of the first table. */
static uint64_t base_of(const struct rnic_odp *o)
{
	return rnic_mtt_root_depth(o->root) == 1
		       ? rnic_page_down(o->cfg.va)
		       : o->cfg.va & ~(TABLE_BYTES - 1);
}

/* Where the pins of the table of @va are noted: number of tables before it. */
static uint64_t block_of(const struct rnic_odp *o, uint64_t va)
{
	return (va - base_of(o)) / TABLE_BYTES;
}

/* The block of @va, NULL if there is none. The lock is held. */
static struct rnic_odp_block *block_find(const struct rnic_odp *o, uint64_t va)
{
	uint64_t i = block_of(o, va);

	if (!o->pins || !o->pins[i / RNIC_MTT_FANOUT])
		return NULL;
	return o->pins[i / RNIC_MTT_FANOUT][i % RNIC_MTT_FANOUT];
}

/* The same, made if need be; NULL: no memory. */
static struct rnic_odp_block *block_make(struct rnic_odp *o, uint64_t va)
{
	uint64_t i = block_of(o, va);
	struct rnic_odp_block **row, **b;

	if (!o->pins)
		/* one more: the first table need not begin a row */
		o->pins = calloc(RNIC_MTT_FANOUT + 1, sizeof(*o->pins));
	if (!o->pins)
		return NULL;
	row = o->pins[i / RNIC_MTT_FANOUT];
	if (!row)
		row = calloc(RNIC_MTT_FANOUT, sizeof(*row));
	if (!row)
		return NULL;
	o->pins[i / RNIC_MTT_FANOUT] = row;
	b = &row[i % RNIC_MTT_FANOUT];
	if (!*b)
		*b = calloc(1, sizeof(**b));
	return *b;
}

/* The entry of @va in its table. */
static unsigned int index_of(const struct rnic_odp *o, uint64_t va)
{
	return (va - base_of(o)) / RNIC_PAGE % RNIC_MTT_FANOUT;
}

static bool is_pinned(const struct rnic_odp_block *b, unsigned int i)
{
	return b && b->bits[i / 64] >> i % 64 & 1;
}

static void mark(struct rnic_odp_block *b, unsigned int i, bool pinned)
{
	uint64_t bit = UINT64_C(1) << i % 64;

	if (pinned)
		b->bits[i / 64] |= bit;
	else
		b->bits[i / 64] &= ~bit;
}

/* Gives back our pins of @n pages from @va on, in one table, run by run. */
static void unpin(struct rnic_odp *o, uint64_t va, uint64_t n)
{
	struct rnic_odp_block *b = block_find(o, va);
	uint64_t end = va + n * RNIC_PAGE, from = va;
	unsigned int i = index_of(o, va);

	if (!b)
		return;
	for (; va < end; va += RNIC_PAGE, i++) {
		bool pinned = is_pinned(b, i);

		mark(b, i, false);
		if (pinned)
			continue;
		if (from < va)
			rnic_unpin((void *)(uintptr_t)from, va - from);
		from = va + RNIC_PAGE;
	}
	if (from < end)
		rnic_unpin((void *)(uintptr_t)from, end - from);
}

/* Pins the pages of @r, of which none is pinned. */
static int pin(struct rnic_odp *o, struct run *r)
{
	struct rnic_odp_block *b;
	int ret;

	if (o->cfg.pin == RNIC_PIN_OFF || o->unpinnable)
		return 0;
	b = block_make(o, r->va);
	if (!b)
		return -ENOMEM;
	ret = rnic_pin((void *)(uintptr_t)r->va, r->n * RNIC_PAGE, o->cfg.pin);
	if (ret < 0)
		return ret;
	r->pinned = ret;
	o->unpinnable = !ret;
	for (uint64_t i = 0; ret && i < r->n; i++)
		mark(b, index_of(o, r->va) + (unsigned int)i, true);
	return 0;
}

/* Calls @fn for each table that has a block. The lock is held. */
static void each_block(struct rnic_odp *o,
		       void (*fn)(struct rnic_odp *o, uint64_t va))
{
	for (uint64_t i = 0; o->pins && i <= RNIC_MTT_FANOUT; i++)
		for (uint64_t k = 0; o->pins[i] && k < RNIC_MTT_FANOUT; k++)
			if (o->pins[i][k])
				fn(o, base_of(o) + (i * RNIC_MTT_FANOUT + k) *
							   TABLE_BYTES);
}

/* The pages of the table at @va that are absent are unpinned. */
static void tidy_block(struct rnic_odp *o, uint64_t va)
{
	struct rnic_odp_block *b = block_find(o, va);

	for (unsigned int i = 0; i < RNIC_MTT_FANOUT; i++, va += RNIC_PAGE) {
		uint64_t bytes;
		rnic_a64 *e;

		if (!is_pinned(b, i))
			continue;
		e = rnic_mtt_entry(o->cfg.mtt, o->root, o->cfg.va, va, &bytes);
		/* relaxed: no fault is under way, and absent is absent */
		if (!(rnic_load64_relaxed(e) & RNIC_LEAF_VALID))
			unpin(o, va, 1);
	}
}

static void tidy(struct rnic_odp *o)
{
	/* acquire: the entries that the monitor has cleared, see gone() */
	if (!rnic_load32_acquire(&o->dirty))
		return;
	rnic_xchg32_acqrel(&o->dirty, 0);
	each_block(o, tidy_block);
	o->unpinnable = false;
}

void rnic_odp_tidy(struct rnic_odp *o)
{
	/* relaxed: a hint, looked at again */
	if (!rnic_load32_relaxed(&o->dirty))
		return;
	/* a fault is under way, or begins: it does this by itself */
	if (pthread_mutex_trylock(&o->lock))
		return;
	tidy(o);
	pthread_mutex_unlock(&o->lock);
}

static void drop_block(struct rnic_odp *o, uint64_t va)
{
	uint64_t i = block_of(o, va);

	unpin(o, va, RNIC_MTT_FANOUT);
	free(o->pins[i / RNIC_MTT_FANOUT][i % RNIC_MTT_FANOUT]);
}

static void drop_pins(struct rnic_odp *o)
{
	each_block(o, drop_block);
	for (uint64_t i = 0; o->pins && i <= RNIC_MTT_FANOUT; i++)
		free(o->pins[i]);
	free(o->pins);
	o->pins = NULL;
}

/* ---- where a page lies ---- */

/* Holds the file of @leaf, for which rnic_space_get() was called, once. */
static void hold(struct rnic_odp *o, uint64_t leaf)
{
	unsigned int s = rnic_mtt_leaf_space_of(leaf);
	uint64_t bit = UINT64_C(1) << s % 64;

	if (o->spaces[s / 64] & bit)
		rnic_space_put(&o->cfg.dev->spaces, leaf);
	o->spaces[s / 64] |= bit;
}

static void drop_spaces(struct rnic_odp *o)
{
	for (unsigned int s = 0; s < RNIC_SPACES; s++)
		if (o->spaces[s / 64] >> s % 64 & 1)
			rnic_space_put(&o->cfg.dev->spaces,
				       rnic_mtt_leaf_space(s, 0));
	memset(o->spaces, 0, sizeof(o->spaces));
}

/* True if the run lies in a file that peers may map: sets r->leaf. */
static bool in_space(struct rnic_odp *o, struct run *r)
{
	uint64_t len = r->n * RNIC_PAGE;
	struct rnic_vma v;

	if (!rnic_vma_fast() || rnic_vma_next(r->va, &v) || !v.shared ||
	    v.start > r->va || v.end < r->va + len ||
	    rnic_space_get(&o->cfg.dev->spaces, &v, r->va, len, &r->leaf))
		return false;
	hold(o, r->leaf);
	return true;
}

/*
 * Sets r->leaf. A file's pages stay what they are when the mapping goes: they
 * are named only if we hear of that.
 */
static void locate(struct rnic_odp *o, struct run *r, bool watched)
{
	struct rnic_device *d = o->cfg.dev;
	uint64_t off;

	if (!rnic_arena_find(&d->user, (void *)(uintptr_t)r->va,
			     r->n * RNIC_PAGE, &off))
		r->leaf = rnic_mtt_leaf_space(0, off / RNIC_PAGE);
	else if (!watched || !in_space(o, r))
		r->leaf = rnic_mtt_leaf_va(r->va);
	if (!r->write)
		r->leaf |= RNIC_LEAF_READ;
}

/* ---- faults, the lock is held ---- */

/*
 * The monitor tells @o of events that come from now on. -EBUSY: not yet. It is
 * not waited for: o->lock is taken inside of locks that others wait for.
 */
static int join(struct rnic_odp *o)
{
	if (!o->cfg.watch)
		return 0;
	if (!o->joined &&
	    rnic_monitor_join_try(o->cfg.dev, &o->watched, o->mpt, &o->round))
		return -EBUSY;
	o->joined = true;
	return rnic_monitor_over(o->round) ? 0 : -EBUSY;
}

/*
 * From here on the monitor hears of @r. What is watched is all of the region
 * that is mapped, if that can be: fewer mappings are split, and later faults
 * find it done. False: it cannot be watched.
 */
static bool watch(struct rnic_odp *o, const struct run *r)
{
	if (!o->cfg.watch)
		return false;
	if (!o->counted)
		o->counted = !rnic_watch_get(o->cfg.va, o->cfg.length);
	return o->counted && (!rnic_watch_arm(o->cfg.va, o->cfg.length) ||
			      !rnic_watch_arm(r->va, r->n * RNIC_PAGE));
}

/* F1: claims the entries of @r, which hold r->was. Those that do not stay. */
static void claim(struct rnic_odp *o, struct run *r)
{
	uint64_t token = ++o->token << RNIC_MTT_PAGE_SHIFT | RNIC_LEAF_FAULTING;

	for (uint64_t i = 0; i < r->n; i++)
		/* a full barrier; only the monitor may have been here, for 0 */
		rnic_cas64_seqcst(&r->e[i], r->was, token);
	r->was = token;
}

/* Gives claimed entries from page @i on back. */
static void unclaim(struct run *r, uint64_t i)
{
	for (; !r->step && i < r->n; i++)
		/* one that is not as it was has been cleared: so it stays */
		rnic_cas64_seqcst(&r->e[i], r->was, 0);
}

/* Pages that come or, below 0, have not. */
static void count(struct rnic_odp *o, const struct rnic_odp_want *w, int64_t n)
{
	struct rnic_paging *p = paging_of(o);

	/* relaxed: statistics */
	rnic_add64_relaxed(w->prefetch ? &o->prefetched : &o->faults,
			   (uint64_t)n);
	rnic_add64_relaxed(w->prefetch ? &p->prefetched : &p->faults,
			   (uint64_t)n);
}

/*
 * F2: publishes the pages. LOST if some were invalidated meanwhile. Who finds
 * a page's bytes changed finds it counted: so a number may be too high for as
 * long as this takes.
 */
static int complete(struct rnic_odp *o, const struct rnic_odp_want *w,
		    struct run *r, uint64_t *done)
{
	int64_t lost = 0;

	count(o, w, (int64_t)r->n);
	for (uint64_t i = 0; i < r->n; i++) {
		/*
		 * T1: a full barrier: populated, pinned, watched, counted
		 * before; pairs with B1
		 */
		if (rnic_cas64_seqcst(&r->e[i], r->was + i * r->step,
				      r->leaf + i * RNIC_PAGE))
			continue;
		if (RNIC_BROKEN(paging_lost)) {
			rnic_store64_release(&r->e[i], r->leaf + i * RNIC_PAGE);
			continue;
		}
		lost++;
		if (r->pinned)
			unpin(o, r->va + i * RNIC_PAGE, 1);
	}
	if (lost)
		count(o, w, -lost);
	*done += r->n - (uint64_t)lost;
	return lost ? LOST : 0;
}

/* Pages of the run that come, from its first on; the rest is given back. */
static int populate(struct run *r)
{
	uint64_t i;

	if (!rnic_pin_populate((void *)(uintptr_t)r->va, r->n * RNIC_PAGE,
			       r->write))
		return 0;
	for (i = 0; i < r->n; i++)
		if (rnic_pin_populate(
			    (void *)(uintptr_t)(r->va + i * RNIC_PAGE),
			    RNIC_PAGE, r->write))
			break;
	unclaim(r, i);
	r->n = i;
	return i ? 0 : -EFAULT;
}

/* Makes the pages of @r present. 0, LOST, or why the first of them is not. */
static int fault_run(struct rnic_odp *o, const struct rnic_odp_want *w,
		     struct run *r, uint64_t *done)
{
	bool watched;
	int ret;

	if (!r->step) {
		/* pins that an invalidation has left here */
		unpin(o, r->va, r->n);
		claim(o, r);
	}
	watched = watch(o, r);
	ret = populate(r);
	if (!ret && !r->step)
		ret = pin(o, r);
	if (ret) {
		unclaim(r, 0);
		return ret;
	}
	locate(o, r, watched);
	return complete(o, w, r, done);
}

/* True if a page with entry @x needs nothing more. */
static bool satisfies(uint64_t x, bool write)
{
	return x & RNIC_LEAF_VALID && !(write && x & RNIC_LEAF_READ);
}

/*
 * The first run at @va or behind that is not as @w wants it, within its table
 * and @end; r->n 0 if there is none.
 */
static int find_run(struct rnic_odp *o, const struct rnic_odp_want *w,
		    uint64_t *va, uint64_t end, struct run *r)
{
	int ret = rnic_mtt_entry_make(o->cfg.mtt, o->root, o->cfg.va, *va);
	uint64_t bytes, n, i = 0;
	rnic_a64 *e;

	if (ret)
		return ret;
	e = rnic_mtt_entry(o->cfg.mtt, o->root, o->cfg.va, *va, &bytes);
	n = (bytes < end - *va ? bytes : end - *va) / RNIC_PAGE;
	/* relaxed: only we make them present; what goes is seen by a CAS */
	while (i < n && satisfies(rnic_load64_relaxed(&e[i]), w->write))
		i++;
	*va += i * RNIC_PAGE;
	*r = (struct run){ .e = e + i, .va = *va, .write = w->write };
	if (i == n)
		return 0;
	r->was = rnic_load64_relaxed(r->e);
	if (r->was & RNIC_LEAF_VALID)
		r->step = RNIC_PAGE;
	/* relaxed: as above. The entry behind the last is no entry */
	for (r->n = 1; i + r->n < n; r->n++)
		if (rnic_load64_relaxed(&r->e[r->n]) != r->was + r->n * r->step)
			break;
	return 0;
}

/* rnic_odp_fault() of whole pages. *@va: how far it came. */
static int fault(struct rnic_odp *o, const struct rnic_odp_want *w,
		 uint64_t *va, uint64_t end)
{
	unsigned int lost = 0;
	uint64_t done = 0;
	struct run r;
	int ret = 0;

	while (!ret && *va < end) {
		ret = find_run(o, w, va, end, &r);
		if (ret || !r.n)
			continue;
		ret = fault_run(o, w, &r, &done);
		if (!ret)
			*va += r.n * RNIC_PAGE;
		if (ret == LOST)
			ret = ++lost < RETRIES ? 0 : -EAGAIN;
		else
			lost = 0;
	}
	/* relaxed: a statistic */
	if (!done && !ret && !w->prefetch)
		rnic_add64_relaxed(&paging_of(o)->merged, 1);
	return ret;
}

int rnic_odp_fault(struct rnic_odp *o, const struct rnic_odp_want *w)
{
	uint64_t first = rnic_page_down(w->va), va = first;
	uint64_t end = rnic_page_down(w->va + w->len + RNIC_PAGE - 1);
	int ret = -ENODEV;

	pthread_mutex_lock(&o->lock);
	tidy(o);
	if (o->mpt)
		ret = join(o);
	if (!ret)
		ret = fault(o, w, &va, end);
	pthread_mutex_unlock(&o->lock);
	/* what has gone again may be asked for again: it is mapped */
	if (ret && !w->prefetch && (va > first || ret == -EAGAIN))
		return 0;
	return ret;
}

/* ---- the object ---- */

int rnic_odp_init(struct rnic_odp *o, const struct rnic_odp_cfg *cfg)
{
	int ret;

	*o = (struct rnic_odp){ .cfg = *cfg, .watched.gone = gone };
	ret = rnic_mtt_make_empty(cfg->mtt, cfg->va, cfg->length, &o->root);
	if (ret) {
		o->cfg.dev = NULL;
		return ret;
	}
	pthread_mutex_init(&o->lock, NULL);
	return 0;
}

void rnic_odp_live(struct rnic_odp *o, struct rnic_mpt *mpt)
{
	pthread_mutex_lock(&o->lock);
	o->mpt = mpt;
	pthread_mutex_unlock(&o->lock);
}

/* Gives back our pins of @va to @end, table by table. The lock is held. */
static void unpin_pages(struct rnic_odp *o, uint64_t va, uint64_t end)
{
	while (va < end) {
		uint64_t n = RNIC_MTT_FANOUT - index_of(o, va);

		if (n > (end - va) / RNIC_PAGE)
			n = (end - va) / RNIC_PAGE;
		unpin(o, va, n);
		va += n * RNIC_PAGE;
	}
}

void rnic_odp_drop(struct rnic_odp *o, uint64_t va, uint64_t len)
{
	uint64_t start = rnic_page_down(va);
	uint64_t end = rnic_page_down(va + len + RNIC_PAGE - 1);

	pthread_mutex_lock(&o->lock);
	clear_pages(o, start, end);
	unpin_pages(o, start, end);
	if (start == rnic_page_down(o->cfg.va) && end == end_of(o))
		drop_spaces(o);
	o->unpinnable = false;
	pthread_mutex_unlock(&o->lock);
}

/* What pages have in common that are told of as one. */
static uint64_t kind_of(uint64_t entry)
{
	uint64_t differ = ~(uint64_t)(RNIC_PAGE - 1) | RNIC_LEAF_READ;

	return entry & RNIC_LEAF_VALID ? entry & ~differ : 0;
}

/* True if entry @e, number @i of its table, with pins @b, is as @l says. */
static bool is_alike(const rnic_a64 *e, const struct rnic_odp_block *b,
		     unsigned int i, const struct rnic_odp_look *l)
{
	/* relaxed: it may be old when it is told */
	uint64_t kind = kind_of(rnic_load64_relaxed(e));

	return kind == l->leaf && (!kind || is_pinned(b, i) == l->pinned);
}

/* rnic_odp_look() of a page @va. The lock is held. */
static void look(const struct rnic_odp *o, uint64_t va, struct rnic_odp_look *l)
{
	const struct rnic_odp_block *b = block_find(o, va);
	unsigned int first = index_of(o, va), i = 1;
	const rnic_a64 *e =
		rnic_mtt_entry(o->cfg.mtt, o->root, o->cfg.va, va, &l->bytes);

	l->leaf = 0;
	l->pinned = false;
	if (!e)
		return;
	/* relaxed: as above */
	l->leaf = kind_of(rnic_load64_relaxed(e));
	/* an absent page may have a pin that is yet to be given back */
	l->pinned = l->leaf && is_pinned(b, first);
	while (i < l->bytes / RNIC_PAGE && is_alike(&e[i], b, first + i, l))
		i++;
	l->bytes = (uint64_t)i * RNIC_PAGE;
}

void rnic_odp_look(struct rnic_odp *o, uint64_t va, struct rnic_odp_look *l)
{
	pthread_mutex_lock(&o->lock);
	look(o, rnic_page_down(va), l);
	pthread_mutex_unlock(&o->lock);
}

uint64_t rnic_odp_present(const struct rnic_odp *o)
{
	uint64_t va = rnic_page_down(o->cfg.va), end = end_of(o), n = 0, bytes;

	for (; va < end; va += bytes) {
		rnic_a64 *e = rnic_mtt_entry(o->cfg.mtt, o->root, o->cfg.va, va,
					     &bytes);

		if (bytes > end - va)
			bytes = end - va;
		/* relaxed: a number that may be old when it is told */
		for (uint64_t i = 0; e && i < bytes / RNIC_PAGE; i++)
			n += rnic_load64_relaxed(&e[i]) & RNIC_LEAF_VALID;
	}
	return n;
}

void rnic_odp_fini(struct rnic_odp *o)
{
	if (!o->cfg.dev)
		return;
	if (o->joined)
		rnic_monitor_leave(o->cfg.dev, &o->watched);
	drop_pins(o);
	drop_spaces(o);
	if (o->counted)
		rnic_watch_put(o->cfg.va, o->cfg.length);
	pthread_mutex_destroy(&o->lock);
	o->cfg.dev = NULL;
}
