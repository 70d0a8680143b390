/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The registration cache, see mr_cache.h: finding, keeping, giving back.
 *
 * The word of an entry, who changes it and when:
 *
 *   users  who finds it, by a compare-and-swap that fails if GONE is set; who
 *          puts it: without a lock if no other bit is set, else under it (U1:
 *          what a user did, before who finds that it was the last, U2)
 *   GONE   the monitor and unmap_begin, once, and then the entry is on the
 *          stack of those that went; or eviction, with OUT, if it has no user
 *   OUT    under the lock: not in the index; the last user gives it back
 *   OFF    under the lock: in use when it was its turn to be evicted, so not
 *          in the list; the last user lists it again
 *   NEW    its maker, who takes it back when he knows that it is right: until
 *          then marks find it, and nobody uses it
 *   hits   who finds it, in the same step
 *
 * An entry's memory is freed when no reader can be at it (a grace period of
 * urcu_bp), and the monitor and callers of unmap_begin have passed it.
 *
 * A new entry can be found before it is known that nothing has changed since
 * it was found out (K1 to K3): so the monitor either finds it, or has made its
 * number odd before the last look at it. An event that came before it could be
 * found has not marked it, and its memory may be watched again by then, for
 * another one: only the number tells, which others do not compare. So they may
 * not have it before K3.
 */
#include "lib/mr_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <urcu/urcu-bp.h>

#include "include/rdma/fi_ext_shrimp.h"
#include "lib/domain.h"
#include "lib/mr.h"
#include "lib/odp.h"
#include "shm/breakage.h"
#include "shm/log.h"
#include "shm/pin.h"
#include "shm/tsan.h"
#include "shm/watch.h"

#define USERS SHRIMP_CACHED_USERS
#define GONE  (UINT64_C(1) << 20)
#define OUT   (UINT64_C(1) << 21)
#define OFF   (UINT64_C(1) << 22)
#define NEW   (UINT64_C(1) << 23)
#define HIT   SHRIMP_CACHED_HIT

enum {
	LITTER = 64,  /* entries freed in one grace period */
	TRIES = 3,    /* of keeping what changes meanwhile */
	MERGES = 8,   /* rounds of growing by neighbours */
	FLUSHES = 8,  /* rounds of a flush while others mark */
	YIELDS = 100, /* looks of a flush at what others do */
	NAP_US = 100, /* then between two looks */
};

#define MERGED_MAX (UINT64_C(1) << 30) /* bytes of an entry that was merged */

static struct shrimp_cached *cached_of(struct shrimp_span *s)
{
	return (struct shrimp_cached *)s;
}

static uint64_t bytes_of(const struct shrimp_cached *e)
{
	return e->span.end - e->span.start;
}

/* ---- marking: the monitor's thread, callers of unmap_begin ---- */

/* What went, and how. */
struct went {
	struct shrimp_mr_cache *c; /* whose entries */
	enum rnic_gone what;	   /* what became of it */
};

/* Marks an entry, and puts it on the stack if nobody has. */
static void mark(struct shrimp_span *s, void *arg)
{
	struct shrimp_cached *e = cached_of(s);
	const struct went *w = arg;
	void *top;

	/* a full barrier: the first of those who mark it goes on */
	if (rnic_or64_seqcst(&e->word, GONE) & GONE)
		return;
	/* relaxed: a statistic */
	rnic_add64_relaxed(&w->c->gone[w->what], 1);
	do {
		/* relaxed: S1 publishes it, and fails if it has changed */
		top = rnic_ptr_load_relaxed(&w->c->went);
		rnic_ptr_store_release(&e->next, top);
		/* S1: the entry's link; pairs with S2 */
	} while (!rnic_ptr_cas_release(&w->c->went, top, e));
}

static void mark_range(struct shrimp_mr_cache *c, uint64_t start, uint64_t end,
		       enum rnic_gone what)
{
	struct went w = { c, what };

	shrimp_mr_index_overlap(&c->index, start, end, mark, &w);
}

static void gone_kernel(struct rnic_listener *l, uint64_t start, uint64_t end,
			enum rnic_gone what)
{
	mark_range((struct shrimp_mr_cache *)l, start, end, what);
}

static void gone_told(struct rnic_listener *l, uint64_t start, uint64_t end,
		      enum rnic_gone what)
{
	char *c = (char *)l - offsetof(struct shrimp_mr_cache, told);

	mark_range((struct shrimp_mr_cache *)c, start, end, what);
}

/* ---- hits ---- */

/* One user and one hit more, unless it is gone, or not settled yet. */
static bool take(struct shrimp_mr_cache *c, struct shrimp_cached *e)
{
	uint64_t tick = rnic_load64_relaxed(&c->tick);
	uint64_t w;

	do {
		/* relaxed: the swap fails if it has changed */
		w = rnic_load64_relaxed(&e->word);
		if (w & (GONE | NEW) || (w & USERS) == USERS)
			return false;
	} while (!rnic_cas64_seqcst(&e->word, w, w + 1 + HIT));
	/* relaxed: recency, for the evictor */
	if (rnic_load64_relaxed(&e->used) != tick)
		rnic_store64_relaxed(&e->used, tick);
	return true;
}

/*
 * True if the kernel does not say that pages @start to @end are as they were.
 * It looks from the first page of the entry on, which was touched: a look at
 * one that was not would go through all behind it. If they are several
 * mappings, at what is asked for.
 */
static bool changed(const struct shrimp_mr_cache *c,
		    const struct shrimp_cached *e, uint64_t start, uint64_t end)
{
	int ret = c->mon->look(e->span.start, e->span.end);

	return ret == -ENOENT ? c->mon->look(start, end) : ret;
}

/*
 * True if what @e says of pages @start to @end is true now. First the kernel,
 * then the monitor, then (take()) the mark: see doc/contract.md, R12. Who has
 * unmapped goes on when his event was read, before it was marked: an entry of
 * addresses is right about the bytes, but not that they are there.
 */
static bool is_current(const struct shrimp_mr_cache *c,
		       const struct shrimp_cached *e, uint64_t start,
		       uint64_t end)
{
	if (e->asked && !RNIC_BROKEN(monitor_look) && changed(c, e, start, end))
		return false;
	return !(e->asked || e->late) || RNIC_BROKEN(monitor_busy) ||
	       !(c->mon->cycle() & 1);
}

/* *@late: there is one, but its memory may just have gone, or just not yet. */
static struct shrimp_cached *find(struct shrimp_mr_cache *c, uint64_t start,
				  uint64_t end, uint32_t want, bool *late)
{
	struct shrimp_cached *e;

	urcu_bp_read_lock();
	e = cached_of(shrimp_mr_index_find(&c->index, start, end, want));
	if (e)
		rnic_tsan_acquire(e); /* X1: pairs with put_in() */
	if (e && !(is_current(c, e, start, end) && take(c, e))) {
		*late = e->late;
		e = NULL;
	}
	rnic_tsan_release(c); /* the section ends: pairs with sweep() */
	urcu_bp_read_unlock();
	return e;
}

/* ---- giving back; no lock is held ---- */

/* What @e holds but its region. Readers may still look at what it says. */
static void unkeep(const struct shrimp_cached *e)
{
	struct shrimp_mr_cache *c = e->of;

	if (e->pinned) {
		rnic_unpin((void *)(uintptr_t)e->span.start, bytes_of(e));
		rnic_add64_relaxed(&c->pinned, -bytes_of(e));
	}
	if (e->file)
		rnic_space_put(&c->domain->dev.spaces, e->leaf);
	if (e->watched)
		c->mon->unwatch(e->watch[0], e->watch[1]);
}

/* Frees what was given back, if it is enough for a grace period. */
static void sweep(struct shrimp_mr_cache *c, unsigned int enough)
{
	struct cds_list_head litter;
	struct shrimp_cached *e, *next;

	CDS_INIT_LIST_HEAD(&litter);
	pthread_mutex_lock(&c->lock);
	if (c->nlitter >= enough) {
		cds_list_splice(&c->litter, &litter);
		CDS_INIT_LIST_HEAD(&c->litter);
		c->nlitter = 0;
	}
	pthread_mutex_unlock(&c->lock);
	if (cds_list_empty(&litter))
		return;
	urcu_bp_synchronize_rcu();
	rnic_tsan_acquire(c); /* pairs with the ends of sections */
	rnic_monitor_pass(rnic_monitor_round());
	shrimp_mr_notify_pass();
	cds_list_for_each_entry_safe (e, next, &litter, lru)
		free(e);
}

/* Gives @e, which is out and has no user, back; it is freed by sweep(). */
static void give_back(struct shrimp_cached *e)
{
	struct shrimp_mr_cache *c = e->of;

	/* refused: peers may be in its memory, so it keeps all it has */
	if (e->mr && shrimp_mr_drop(e->mr)) {
		rnic_log(RNIC_LOG_WARN,
			 "registration cache: 0x%" PRIx64 " (%" PRIu64
			 " bytes) stays registered: no fence",
			 e->span.start, bytes_of(e));
		rnic_sub32_acqrel(&c->giving, 1); /* V1: as below */
		return;
	}
	unkeep(e);
	pthread_mutex_lock(&c->lock);
	cds_list_add(&e->lru, &c->litter);
	c->nlitter++;
	/* V1: what it held is given back; pairs with V2 */
	rnic_sub32_acqrel(&c->giving, 1);
	pthread_mutex_unlock(&c->lock);
}

/* For somebody else to be given back. */
static void leave(struct shrimp_cached *e)
{
	struct shrimp_mr_cache *c = e->of;

	pthread_mutex_lock(&c->lock);
	cds_list_add(&e->lru, &c->late);
	rnic_add32_relaxed(&c->nlate, 1);
	rnic_sub32_acqrel(&c->giving, 1); /* V1: it is late; pairs with V2 */
	pthread_mutex_unlock(&c->lock);
}

/* All of @victims; without @wait those that take one are left. */
static void give_back_all(struct shrimp_mr_cache *c,
			  struct cds_list_head *victims, bool wait)
{
	struct shrimp_cached *e, *next;

	cds_list_for_each_entry_safe (e, next, victims, lru)
		if (e->mr && !wait)
			leave(e);
		else
			give_back(e);
	if (wait)
		sweep(c, LITTER);
}

/* ---- the list, the lock is held ---- */

/* In the order of the last use. */
static void list(struct shrimp_mr_cache *c, struct shrimp_cached *e)
{
	struct cds_list_head *at = c->lru.prev;

	/* relaxed: recency */
	e->listed = rnic_load64_relaxed(&e->used);
	while (at != &c->lru &&
	       cds_list_entry(at, struct shrimp_cached, lru)->listed >
		       e->listed)
		at = at->prev;
	cds_list_add(&e->lru, at);
}

/* Into the index and the list. */
static void put_in(struct shrimp_mr_cache *c, struct shrimp_cached *e)
{
	uint64_t tick = rnic_load64_relaxed(&c->tick) + 1;

	/* relaxed: the lock, and recency */
	rnic_store64_relaxed(&c->tick, tick);
	rnic_store64_relaxed(&e->used, tick);
	list(c, e);
	rnic_tsan_release(e); /* X1: pairs with find() */
	shrimp_mr_index_add(&c->index, &e->span);
	rnic_count64(&c->entries, 1);
	rnic_count64(&c->bytes, bytes_of(e));
}

/* Nobody uses @e, which is out, any more: it is to be given back. */
static void condemn(struct shrimp_mr_cache *c, struct shrimp_cached *e,
		    struct cds_list_head *victims)
{
	cds_list_add(&e->lru, victims);
	/* relaxed: the lock, which a flush takes before it looks (V2) */
	rnic_add32_relaxed(&c->giving, 1);
}

/*
 * Out of both: @e is GONE, and OUT from now on. To @victims if nobody uses it,
 * else its last user gives it back.
 */
static void take_out(struct shrimp_mr_cache *c, struct shrimp_cached *e,
		     struct cds_list_head *victims)
{
	uint64_t w = rnic_or64_seqcst(&e->word, OUT); /* U2: pairs with U1 */

	shrimp_mr_index_del(&c->index, &e->span);
	cds_list_del(&e->lru);
	rnic_count64(&c->entries, (uint64_t)-1);
	rnic_count64(&c->bytes, -bytes_of(e));
	/* there will be no more: it is GONE */
	rnic_add64_relaxed(&c->hits, w / HIT);
	if (!(w & USERS))
		condemn(c, e, victims);
}

/* Takes out what was marked. */
static void reap(struct shrimp_mr_cache *c, struct cds_list_head *victims)
{
	/* S2: the links; pairs with S1 */
	struct shrimp_cached *next, *e = rnic_ptr_xchg_acqrel(&c->went, NULL);

	for (; e; e = next) {
		/* relaxed: S2 */
		next = rnic_ptr_load_relaxed(&e->next);
		take_out(c, e, victims);
	}
}

/* It is @e's turn. True if it was taken out. */
static bool evict(struct shrimp_mr_cache *c, struct shrimp_cached *e,
		  struct cds_list_head *victims)
{
	/* relaxed: the swaps fail if it has changed */
	uint64_t w = rnic_load64_relaxed(&e->word);

	if (w & USERS) {
		if (!rnic_cas64_seqcst(&e->word, w, w | OFF))
			return false;
		cds_list_del(&e->lru);
		cds_list_add(&e->lru, &c->busy);
		return false;
	}
	/* who marks it puts it on the stack */
	if (w & GONE || !rnic_cas64_seqcst(&e->word, w, w | GONE))
		return false;
	take_out(c, e, victims);
	rnic_add64_relaxed(&c->evictions, 1);
	return true;
}

/* Above a limit? */
static bool is_full(const struct shrimp_mr_cache *c, uint64_t entries,
		    uint64_t bytes)
{
	return rnic_load64_relaxed(&c->entries) > entries ||
	       (bytes && rnic_load64_relaxed(&c->bytes) > bytes);
}

/*
 * Evicts what is not in use, the one that was used longest ago first, until
 * the limits are kept; @entries 0: all.
 */
static void trim(struct shrimp_mr_cache *c, uint64_t entries, uint64_t bytes,
		 struct cds_list_head *victims)
{
	while (is_full(c, entries, bytes) && !cds_list_empty(&c->lru)) {
		struct shrimp_cached *e = cds_list_first_entry(
			&c->lru, struct shrimp_cached, lru);

		/* relaxed: recency */
		if (entries && rnic_load64_relaxed(&e->used) != e->listed) {
			cds_list_del(&e->lru);
			list(c, e);
			continue;
		}
		/* relaxed: once it is set nobody takes it back */
		if (rnic_load64_relaxed(&e->word) & GONE) {
			reap(c, victims);
			/* who marked it has not put it on the stack yet */
			if (!cds_list_empty(&c->lru) && c->lru.next == &e->lru)
				break;
			continue;
		}
		evict(c, e, victims);
	}
}

static void limit(struct shrimp_mr_cache *c, struct cds_list_head *victims)
{
	const struct shrimp_settings *set = c->domain->set;

	reap(c, victims);
	trim(c, set->mrc_entries, set->mrc_bytes, victims);
}

/* ---- users ---- */

/* The last of them, of one that is gone, out, or off the list. */
static RNIC_COLD void put_slow(struct shrimp_cached *e, bool wait)
{
	struct shrimp_mr_cache *c = e->of;
	struct cds_list_head victims;
	uint64_t w;

	CDS_INIT_LIST_HEAD(&victims);
	pthread_mutex_lock(&c->lock);
	w = rnic_sub64_acqrel(&e->word, 1) - 1; /* U1; U2, if it is the last */
	/* U3: the user, before the stack; pairs with U4 in lib/odp.c */
	if (!(w & USERS) && w & GONE && !(w & OUT)) {
		reap(c, &victims);
	} else if (!(w & USERS) && w & OUT) {
		condemn(c, e, &victims);
	} else if (!(w & USERS) && w & OFF) {
		cds_list_del(&e->lru);
		list(c, e);
		/* a mark may come meanwhile, users may not go */
		rnic_sub64_acqrel(&e->word, OFF);
		limit(c, &victims);
	}
	pthread_mutex_unlock(&c->lock);
	give_back_all(c, &victims, wait);
}

static void put(struct shrimp_cached *e, bool wait)
{
	uint64_t w;

	do {
		/* relaxed: the swap fails if it has changed */
		w = rnic_load64_relaxed(&e->word);
		if (w & (OUT | OFF | GONE)) {
			put_slow(e, wait);
			return;
		}
	} while (!rnic_cas64_seqcst(&e->word, w, w - 1)); /* U1 */
}

void shrimp_cached_put(struct shrimp_cached *e)
{
	put(e, true);
}

void shrimp_cached_put_nonblock(struct shrimp_cached *e)
{
	put(e, false);
}

/* ---- misses ---- */

/* NULL: something was short, so it may be had later. */
static const struct shrimp_mr_monitor *monitor(struct shrimp_mr_cache *c)
{
	enum shrimp_mrc_monitor wish = c->domain->set->mrc_monitor;
	const struct shrimp_mr_monitor *m;
	int ret;

	pthread_mutex_lock(&c->opening);
	if (!c->mon) {
		m = shrimp_mr_monitor_of(wish);
		ret = m->open(&c->kernel);
		if (ret)
			m = shrimp_mr_monitor_of(SHRIMP_MRC_MON_OFF);
		if (!rnic_monitor_short(ret))
			c->mon = m;
	}
	m = c->mon;
	pthread_mutex_unlock(&c->opening);
	return m;
}

/* What an entry is to be made of. */
struct wish {
	uint64_t start, end; /* pages */
	struct iovec own;    /* those that no neighbour has looked at */
	uint32_t want;	     /* bits */
	uint64_t off;	     /* in the device's memory */
	bool device;	     /* it lies there */
	bool merged;	     /* neighbours are in it */
	bool files;	     /* and they lie in a file */
};

/*
 * The file behind @e, if peers can map it. The pages of neighbours are there
 * already: those of its own are made.
 */
static void find_file(struct shrimp_cached *e, const struct rnic_vma *map,
		      const struct wish *w)
{
	uint64_t at = (uintptr_t)w->own.iov_base;

	e->file = !rnic_space_get(&e->of->domain->dev.spaces, map, at,
				  w->own.iov_len, &e->leaf);
	if (e->file)
		e->leaf -= at - e->span.start;
	e->asked = e->file;
	/* for changed(); neighbours have done it. If it fails, that is slow */
	if (e->file)
		rnic_pin_populate((void *)(uintptr_t)at, RNIC_PAGE, false);
}

/* Where its first page lies, and what its mapping allows. */
static void locate(struct shrimp_cached *e, const struct rnic_vma *map,
		   const struct wish *w)
{
	e->leaf = rnic_mtt_leaf_va(e->span.start);
	if (map->prot & PROT_READ)
		e->span.have |= SHRIMP_MRC_R;
	if (map->prot & PROT_WRITE)
		e->span.have |= SHRIMP_MRC_W;
	if (!map->shared)
		e->span.have |= SHRIMP_MRC_FILE;
	else if (e->span.have & SHRIMP_MRC_FILE)
		find_file(e, map, w);
}

static int prot_of(uint32_t want)
{
	return (want & SHRIMP_MRC_R ? PROT_READ : 0) |
	       (want & SHRIMP_MRC_W ? PROT_WRITE : 0);
}

/* With FI_SHRIMP_MR_CACHE_PIN=keep: -errno where a pin is required. */
static int keep_pin(struct shrimp_cached *e)
{
	const struct shrimp_settings *set = e->of->domain->set;
	int ret;

	if (set->mrc_pin != SHRIMP_MRC_KEEP)
		return 0;
	ret = rnic_pin((void *)(uintptr_t)e->span.start, bytes_of(e), set->pin);
	if (ret <= 0)
		return ret;
	e->pinned = true;
	rnic_add64_relaxed(&e->of->pinned, bytes_of(e));
	return 0;
}

/* The region of an entry that acquire wants. */
static int keep_region(struct shrimp_cached *e)
{
	int ret;

	if (!(e->span.have & SHRIMP_MRC_REGION))
		return 0;
	ret = shrimp_mr_keep(e, &e->mr);
	/* an event ends it, though it is right about its memory */
	if (!ret && e->mr->odp && !shrimp_odp_spares(e->mr))
		e->asked = true;
	return ret;
}

/* Finds out about the memory of @e. */
static int look_at(struct shrimp_cached *e, const struct wish *w)
{
	struct rnic_vma map;
	int ret;

	if (!e->device) {
		ret = rnic_pin_check_map((void *)(uintptr_t)e->span.start,
					 bytes_of(e), prot_of(e->span.have),
					 &map);
		if (ret)
			return ret;
		locate(e, &map, w);
	}
	ret = keep_pin(e);
	if (!ret)
		ret = keep_region(e);
	if (ret) {
		unkeep(e);
		e->file = e->pinned = e->watched = false;
	}
	return ret;
}

/* A new entry with one user that nobody can find, and that holds nothing. */
static struct shrimp_cached *entry_new(struct shrimp_mr_cache *c,
				       const struct wish *w)
{
	struct shrimp_cached *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->of = c;
	e->span.start = w->start;
	e->span.end = w->end;
	e->span.have = w->want;
	e->device = w->device;
	if (w->device) {
		e->leaf = rnic_mtt_leaf_space(0, w->off / RNIC_PAGE);
		e->span.have |= SHRIMP_MRC_R | SHRIMP_MRC_W | SHRIMP_MRC_FILE;
	}
	rnic_store64_relaxed(&e->word, NEW | 1);
	return e;
}

/* Makes @e findable, for marks. *@victims: what had to make room. */
static void publish(struct shrimp_mr_cache *c, struct shrimp_cached *e,
		    struct cds_list_head *victims)
{
	CDS_INIT_LIST_HEAD(victims);
	pthread_mutex_lock(&c->lock);
	put_in(c, e);
	limit(c, victims);
	pthread_mutex_unlock(&c->lock);
}

/* Ends @e, which its maker alone uses: it may be marked, and is out. */
static void abandon(struct shrimp_cached *e, bool found)
{
	struct went w = { e->of, RNIC_GONE_UNSETTLED };

	if (found) {
		mark(&e->span, &w);
		shrimp_mr_cache_reap(e->of->domain);
	} else {
		rnic_or64_seqcst(&e->word, GONE | OUT); /* nobody else has it */
	}
	shrimp_cached_put(e);
}

/* @ret, or 0 if it only says that it cannot be kept. */
static int soft(int ret)
{
	return ret == -EFAULT || ret == -EINVAL || ret == -EIO ||
			       ret == -FI_ENOSPC || ret == -FI_ENOMEM
		       ? ret
		       : 0;
}

/* K1 to K3: true if nothing has changed since the number was @cycle. */
static bool is_settled(const struct shrimp_cached *e, uint64_t cycle)
{
	const struct shrimp_mr_monitor *m = e->of->mon;

	/* K2: it can be found, before the look; pairs with J6 */
	rnic_fence_full();
	return e->device || RNIC_BROKEN(cache_settled) ||
	       (!m->look(e->span.start, e->span.end) && m->cycle() == cycle);
}

/* One try of keep(): 0 with *@out or NULL, -EAGAIN, or an error. */
static int keep_once(struct shrimp_mr_cache *c, const struct wish *w,
		     struct shrimp_cached **out)
{
	const struct shrimp_mr_monitor *m = c->mon;
	/* K1: before all else */
	uint64_t cycle = w->device ? 0 : shrimp_mr_monitor_quiet(m);
	struct cds_list_head victims;
	struct shrimp_cached *e;
	uint64_t x[2] = { 0 };
	int ret;

	if (cycle & 1 ||
	    (!w->device && !shrimp_mr_monitor_watch(m, w->start, w->end, x)))
		return 0;
	e = entry_new(c, w);
	if (!e) {
		if (!w->device)
			m->unwatch(x[0], x[1]);
		return 0;
	}
	memcpy(e->watch, x, sizeof(x));
	e->watched = !w->device;
	e->late = e->watched && m->late;
	ret = look_at(e, w);
	if (ret || (w->merged && w->files != e->file)) {
		abandon(e, false);
		return soft(ret);
	}
	publish(c, e, &victims);
	/* K3 */
	if (is_settled(e, cycle)) {
		/* K4: what was looked at, for those who take it; with take() */
		rnic_sub64_acqrel(&e->word, NEW);
		*out = e;
	} else {
		abandon(e, true);
		ret = -EAGAIN;
	}
	/* after that: it may wait for peers */
	give_back_all(c, &victims, true);
	return ret;
}

static int keep(struct shrimp_mr_cache *c, const struct wish *w,
		struct shrimp_cached **out)
{
	int ret = -EAGAIN;

	*out = NULL;
	for (int i = 0; i < TRIES && ret == -EAGAIN; i++)
		ret = keep_once(c, w, out);
	return ret == -EAGAIN ? 0 : ret;
}

/* ---- neighbours ---- */

/*
 * Grows a wish by entries that overlap or touch it, have the same rights, and
 * are not in use: those that are would stay beside the larger one, and of many
 * regions in a row that are open each would hold what all before it hold.
 */
static void grow(struct shrimp_span *s, void *arg)
{
	const struct shrimp_cached *e = cached_of(s);
	struct wish *w = arg;
	uint32_t rights = ~(uint32_t)0 << (SHRIMP_MRC_RIGHTS - 1);
	uint64_t start = s->start < w->start ? s->start : w->start;
	uint64_t end = s->end > w->end ? s->end : w->end;

	/* relaxed: a hint; the look at the memory decides */
	if (rnic_load64_relaxed(&e->word) & (GONE | USERS) || e->device ||
	    (s->have & w->want) != w->want ||
	    (s->have & rights) != (w->want & rights) ||
	    end - start > MERGED_MAX || (w->merged && w->files != e->file))
		return;
	w->files = e->file;
	w->merged = true;
	w->start = start;
	w->end = end;
}

/* True if there are neighbours to merge with: *@w grows. */
static bool with_neighbours(struct shrimp_mr_cache *c, struct wish *w)
{
	uint64_t was;

	urcu_bp_read_lock();
	for (int i = 0; i < MERGES; i++) {
		was = w->end - w->start;
		/* one byte more at each end: those that touch it */
		shrimp_mr_index_overlap(&c->index, w->start - !!w->start,
					w->end + !!~w->end, grow, w);
		if (w->end - w->start == was)
			break;
	}
	rnic_tsan_release(c); /* as in find() */
	urcu_bp_read_unlock();
	return w->merged;
}

/* An entry that lies within the new one. */
static void replace(struct shrimp_span *s, void *arg)
{
	const struct shrimp_cached *e = arg;
	struct went w = { e->of, RNIC_GONE_MERGED };

	if (s != &e->span && e->span.start <= s->start &&
	    s->end <= e->span.end && (e->span.have & s->have) == s->have &&
	    e->file == cached_of(s)->file)
		mark(s, &w);
}

/* ---- the two ways to an entry ---- */

/* Pages around @v; device memory is a thing of its own. */
static struct wish wish_for(struct shrimp_domain *d, const struct iovec *v,
			    uint32_t want)
{
	uint64_t addr = (uintptr_t)v->iov_base, off;
	struct wish w = { .start = rnic_page_down(addr),
			  .end = rnic_page_up(addr + v->iov_len),
			  .want = want };

	w.own = (struct iovec){ .iov_base = (void *)(uintptr_t)w.start,
				.iov_len = w.end - w.start };
	w.device =
		!rnic_arena_find(&d->dev.user, v->iov_base, v->iov_len, &off);
	if (w.device)
		w.off = off - (addr - w.start);
	return w;
}

/* A miss: looks at the memory, and keeps what it finds. */
static int fill(struct shrimp_mr_cache *c, const struct iovec *v,
		const struct wish *w, struct shrimp_cached **out)
{
	struct wish more = *w;
	int ret;

	*out = NULL;
	if (!w->device && !monitor(c))
		return 0;
	if (!w->device && with_neighbours(c, &more)) {
		ret = rnic_pin_check(v->iov_base, v->iov_len, prot_of(w->want));
		if (ret)
			return ret;
		if (!keep(c, &more, out) && *out) {
			urcu_bp_read_lock();
			shrimp_mr_index_overlap(&c->index, more.start, more.end,
						replace, *out);
			rnic_tsan_release(c); /* as in find() */
			urcu_bp_read_unlock();
			return 0;
		}
	}
	return keep(c, w, out);
}

/* What was not taken because the monitor was at work. */
static struct shrimp_cached *find_later(struct shrimp_mr_cache *c,
					const struct wish *w)
{
	bool late;

	/* X1: who found the entry finds the monitor */
	return shrimp_mr_monitor_quiet(c->mon) & 1
		       ? NULL
		       : find(c, w->start, w->end, w->want, &late);
}

/* Apart from the hit, which needs no stack for it. */
static RNIC_COLD int miss(struct shrimp_domain *d, const struct iovec *v,
			  uint32_t want, bool late, struct shrimp_cached **e)
{
	struct wish w = wish_for(d, v, want);
	int ret;

	/* pages that the address space does not have: not kept */
	if (w.end <= w.start)
		return 0;
	*e = late ? find_later(&d->cache, &w) : NULL;
	if (*e)
		return 0;
	/* not by hits: it may wait for peers, and takes the lock */
	shrimp_mr_cache_reap(d);
	ret = fill(&d->cache, v, &w, e);
	if (!ret)
		rnic_add64_relaxed(*e ? &d->cache.misses : &d->cache.uncached,
				   1);
	return ret;
}

int shrimp_mr_cache_get(struct shrimp_domain *d, const struct iovec *v,
			uint32_t want, struct shrimp_cached **e)
{
	uint64_t start = rnic_page_down((uintptr_t)v->iov_base);
	uint64_t end = rnic_page_up((uintptr_t)v->iov_base + v->iov_len);

	bool late = false;

	/* the last page of all has no end */
	*e = RNIC_LIKELY(start < end) ? find(&d->cache, start, end, want, &late)
				      : NULL;
	return RNIC_LIKELY(*e) ? 0 : miss(d, v, want, late, e);
}

int shrimp_mr_cache_single(struct shrimp_domain *d, const struct iovec *v,
			   uint32_t want, struct shrimp_cached **out)
{
	struct wish w = wish_for(d, v, want);
	struct shrimp_cached *e;
	int ret;

	/* without a cache no miss does */
	shrimp_mr_cache_reap(d);
	e = entry_new(&d->cache, &w);
	if (!e)
		return -FI_ENOMEM;
	ret = look_at(e, &w);
	if (ret) {
		abandon(e, false);
		return ret;
	}
	rnic_or64_seqcst(&e->word, GONE | OUT); /* nobody else has it */
	*out = e;
	return 0;
}

/* ---- the cache ---- */

int shrimp_mr_cache_open(struct shrimp_domain *d)
{
	struct shrimp_mr_cache *c = &d->cache;

	*c = (struct shrimp_mr_cache){ .domain = d,
				       .kernel.gone = gone_kernel,
				       .told.gone = gone_told };
	if (shrimp_mr_index_init(&c->index))
		return -FI_ENOMEM;
	CDS_INIT_LIST_HEAD(&c->lru);
	CDS_INIT_LIST_HEAD(&c->busy);
	CDS_INIT_LIST_HEAD(&c->late);
	CDS_INIT_LIST_HEAD(&c->litter);
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->opening, NULL);
	shrimp_mr_keep_init(d);
	shrimp_mr_notify_join(&c->told);
	return 0;
}

/* What went, into @victims. False: nothing did, nor was left over. */
static bool collect(struct shrimp_mr_cache *c, struct cds_list_head *victims)
{
	CDS_INIT_LIST_HEAD(victims);
	if (!shrimp_mr_cache_littered(c))
		return false;
	pthread_mutex_lock(&c->lock);
	reap(c, victims);
	cds_list_splice(&c->late, victims);
	CDS_INIT_LIST_HEAD(&c->late);
	rnic_add32_relaxed(&c->giving, rnic_load32_relaxed(&c->nlate));
	rnic_store32_relaxed(&c->nlate, 0);
	pthread_mutex_unlock(&c->lock);
	return true;
}

void shrimp_mr_cache_reap_slow(struct shrimp_domain *d)
{
	struct cds_list_head victims;

	if (collect(&d->cache, &victims))
		give_back_all(&d->cache, &victims, true);
}

void shrimp_mr_cache_tidy(struct shrimp_domain *d)
{
	struct shrimp_mr_cache *c = &d->cache;
	struct cds_list_head victims;

	/* relaxed: a hint; what was left is not for us */
	if (RNIC_LIKELY(!rnic_ptr_load_relaxed(&c->went)) ||
	    !collect(c, &victims))
		return;
	give_back_all(c, &victims, false);
}

/* True if one that was in use when its turn came is free, and marked. */
static bool is_marked(const struct shrimp_mr_cache *c)
{
	const struct shrimp_cached *e;

	cds_list_for_each_entry (e, &c->busy, lru)
		/* relaxed: who marks it puts it on the stack in any case */
		if ((rnic_load64_relaxed(&e->word) & (GONE | USERS)) == GONE)
			return true;
	return false;
}

/* A round of flush. True if somebody has not put an entry on the stack yet. */
static bool flush_once(struct shrimp_mr_cache *c)
{
	struct cds_list_head victims;
	bool more;

	collect(c, &victims);
	pthread_mutex_lock(&c->lock);
	reap(c, &victims);
	trim(c, 0, 0, &victims);
	more = !cds_list_empty(&c->lru) || is_marked(c);
	pthread_mutex_unlock(&c->lock);
	give_back_all(c, &victims, true);
	return more;
}

void shrimp_mr_cache_flush(struct shrimp_domain *d)
{
	struct shrimp_mr_cache *c = &d->cache;

	do {
		for (int i = 0; i < FLUSHES && flush_once(c); i++) {
			/* whoever marks has done so then */
			urcu_bp_synchronize_rcu();
			rnic_monitor_pass(rnic_monitor_round());
			shrimp_mr_notify_pass();
		}
		/* V2: what other threads have begun to give back: they end it
		 * or, if they may not wait, leave it to us */
		for (int i = 0; rnic_load32_acquire(&c->giving); i++)
			if (i < YIELDS)
				sched_yield();
			else
				usleep(NAP_US);
		/* relaxed: V2 */
	} while (rnic_load32_relaxed(&c->nlate));
	sweep(c, 1);
	rnic_watch_sweep();
}

void shrimp_mr_cache_close(struct shrimp_domain *d)
{
	struct shrimp_mr_cache *c = &d->cache;

	if (!c->index.bucket)
		return;
	shrimp_mr_notify_leave(&c->told);
	shrimp_mr_cache_flush(d);
	if (c->mon)
		c->mon->close(&c->kernel);
	shrimp_mr_index_fini(&c->index);
	pthread_mutex_destroy(&c->opening);
	pthread_mutex_destroy(&c->lock);
}

void shrimp_mr_cache_freed(struct shrimp_domain *d, const void *ptr)
{
	uint64_t addr = (uintptr_t)ptr;
	uint64_t len = rnic_arena_left(&d->dev.user, ptr);

	if (!len)
		return;
	urcu_bp_read_lock();
	mark_range(&d->cache, rnic_page_down(addr), rnic_page_up(addr + len),
		   RNIC_GONE_TOLD);
	rnic_tsan_release(&d->cache); /* as in find() */
	urcu_bp_read_unlock();
	shrimp_mr_cache_reap(d);
}
