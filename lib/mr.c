/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Registration: checks, pins, translation, publication; and the way back.
 *
 * Order (contract R2, R3, I1): what is checked first, allocated next and
 * published last is withdrawn first, fenced, and given back last.
 */
#include "lib/mr.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/agent.h"
#include "lib/cntr.h"
#include "lib/domain.h"
#include "lib/fid.h"
#include "lib/local.h"
#include "lib/mr_cache.h"
#include "lib/mr_ext.h"
#include "lib/odp.h"
#include "lib/refs.h"
#include "lib/window.h"
#include "shm/arena.h"
#include "shm/backing.h"
#include "shm/breakage.h"
#include "shm/grace.h"
#include "shm/log.h"
#include "shm/mtt.h"
#include "shm/pin.h"

#define LOCAL_ACCESS  (FI_SEND | FI_RECV | FI_READ | FI_WRITE)
#define REMOTE_ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* ---- checks (contract R1) ---- */

static int check_range(const struct iovec *v)
{
	uintptr_t first = (uintptr_t)v->iov_base;

	if (!v->iov_len || first + (v->iov_len - 1) < first)
		return -FI_EINVAL;
	return 0;
}

static int check_ranges(const struct fi_mr_attr *a)
{
	size_t total = 0;

	if (!a->mr_iov || !a->iov_count || a->iov_count > SHRIMP_IOV_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < a->iov_count; i++) {
		size_t len = a->mr_iov[i].iov_len;

		if (check_range(&a->mr_iov[i]) || total + len < total)
			return -FI_EINVAL;
		total += len;
	}
	return 0;
}

int shrimp_mr_check(const struct fi_mr_attr *a, uint64_t flags)
{
	if (!a || a->offset || a->auth_key_size ||
	    a->access & ~(uint64_t)(LOCAL_ACCESS | REMOTE_ACCESS) ||
	    flags & ~(uint64_t)(FI_RMA_EVENT | FI_SHRIMP_ON_DEMAND) ||
	    (flags & FI_SHRIMP_ON_DEMAND && a->iov_count != 1))
		return -FI_EINVAL;
	if (a->iface != FI_HMEM_SYSTEM)
		return -FI_ENOSYS;
	return check_ranges(a);
}

int shrimp_mr_prot(uint64_t access)
{
	int prot = 0;

	if (access & (FI_SEND | FI_WRITE | FI_REMOTE_READ))
		prot |= PROT_READ;
	if (access & (FI_RECV | FI_READ | FI_REMOTE_WRITE))
		prot |= PROT_WRITE;
	return prot ? prot : PROT_READ;
}

/* ---- pins (contract R4), files that the memory lies in ---- */

void shrimp_mr_unlocate(struct shrimp_mr *mr, size_t i)
{
	if (mr->cached[i])
		shrimp_cached_put_nonblock(mr->cached[i]);
	else if (mr->leaf[i] && !mr->keeper)
		rnic_space_put(&mr->domain->dev.spaces, mr->leaf[i]);
	mr->cached[i] = NULL;
	mr->leaf[i] = 0;
}

void shrimp_mr_unpin(struct shrimp_mr *mr)
{
	for (size_t i = 0; i < mr->niov; i++) {
		if (mr->pinned >> i & 1)
			rnic_unpin(mr->iov[i].iov_base, mr->iov[i].iov_len);
		shrimp_mr_unlocate(mr, i);
	}
	mr->pinned = 0;
}

/* The whole address space, or most of it (contract R11): never pinned. */
static bool is_implicit(const struct shrimp_mr *mr)
{
	return mr->region.length >= UINT64_C(1) << 47;
}

/*
 * Memory that need not be there yet (no FI_MR_ALLOCATED): contract R1. What is
 * mapped there now says nothing of what will be, so it has no file either.
 */
bool shrimp_mr_unseen(const struct shrimp_mr *mr)
{
	return !(mr->domain->mr_mode & FI_MR_ALLOCATED) || is_implicit(mr) ||
	       mr->demand;
}

/* What an entry of the cache must have for @mr. */
static uint32_t wanted(const struct shrimp_mr *mr)
{
	int prot = shrimp_mr_prot(mr->access);

	return (prot & PROT_READ ? SHRIMP_MRC_R : 0) |
	       (prot & PROT_WRITE ? SHRIMP_MRC_W : 0) |
	       (mr->region.rights & RNIC_MR_GIVEN ? SHRIMP_MRC_FILE : 0);
}

/* True if regions with FI_ bits @access are looked for in the cache. */
static bool is_cached(const struct shrimp_domain *d, uint64_t access)
{
	switch (d->set->mrc) {
	case SHRIMP_MRC_ALL:
		return true;
	case SHRIMP_MRC_LOCAL:
		return !(access & (FI_REMOTE_READ | FI_REMOTE_WRITE));
	default:
		return false;
	}
}

/* Finds range @i in the cache, or puts it there; mr->cached[i] if it could. */
static int pin_cached(struct shrimp_mr *mr, size_t i)
{
	const struct iovec *v = &mr->iov[i];
	struct shrimp_cached *e = NULL;
	int ret;

	if (!is_cached(mr->domain, mr->access))
		return 0;
	ret = shrimp_mr_cache_get(mr->domain, v, wanted(mr), &e);
	if (e && e->file)
		mr->leaf[i] = shrimp_cached_leaf(e, (uintptr_t)v->iov_base);
	mr->cached[i] = e;
	return ret;
}

/*
 * No peer moves its bytes, and the cache hears if they go: a lock would be of
 * no use, and in the way of madvise(2) (contract R4).
 */
static bool is_unpinned(const struct shrimp_mr *mr, size_t i)
{
	return mr->cached[i] && !(mr->region.rights & RNIC_MR_GIVEN) &&
	       mr->domain->set->pin != RNIC_PIN_REQUIRE;
}

/* One range: checked, pinned, and its file found if peers may map it. */
int shrimp_mr_pin_one(struct shrimp_mr *mr, size_t i,
		      const struct rnic_vma *map)
{
	struct shrimp_domain *d = mr->domain;
	struct iovec *v = &mr->iov[i];
	struct rnic_vma own;
	int ret = map ? 0 : pin_cached(mr, i);

	if (!ret && !map && !mr->cached[i]) {
		map = &own;
		ret = rnic_pin_check_map(v->iov_base, v->iov_len,
					 shrimp_mr_prot(mr->access), &own);
	}
	if (!ret && !is_unpinned(mr, i))
		ret = rnic_pin(v->iov_base, v->iov_len, d->set->pin);
	if (ret < 0)
		return ret;
	if (ret > 0)
		mr->pinned |= 1u << i;
	if (mr->cached[i])
		return 0;
	/* no file: reached by address */
	if (map->shared && mr->region.rights & RNIC_MR_GIVEN)
		rnic_space_get(&d->dev.spaces, map, (uintptr_t)v->iov_base,
			       v->iov_len, &mr->leaf[i]);
	return 0;
}

/* Checks and pins all ranges, or none. */
static int pin(struct shrimp_mr *mr)
{
	int ret = 0;

	if (shrimp_mr_unseen(mr))
		return 0;
	for (size_t i = 0; i < mr->niov && !ret; i++)
		ret = shrimp_mr_pin_one(mr, i, NULL);
	if (ret)
		shrimp_mr_unpin(mr);
	return ret;
}

/* ---- translation ---- */

/*
 * The translation of range @i, which is contiguous: in our arena, in a file
 * of the client's, or by address. A leaf for all of it, or one for each page.
 */
static int range_root(struct shrimp_mr *mr, size_t i, uint64_t *root)
{
	struct shrimp_domain *d = mr->domain;
	const struct iovec *v = &mr->iov[i];
	uint64_t off, leaf = mr->leaf[i];

	if (!rnic_arena_find(&d->dev.user, v->iov_base, v->iov_len, &off))
		leaf = rnic_mtt_leaf_space(0, off / RNIC_PAGE);
	else if (!leaf)
		leaf = rnic_mtt_leaf_va((uintptr_t)v->iov_base);
	if (!(leaf & RNIC_LEAF_SPACE))
		mr->by_address = true;
	if (d->set->mtt == SHRIMP_MTT_PAGES && !is_implicit(mr))
		return rnic_backing_translate(&d->mtt, (uintptr_t)v->iov_base,
					      v->iov_len, leaf,
					      leaf & RNIC_LEAF_SPACE, root);
	*root = rnic_mtt_root_make(0, leaf);
	return 0;
}

/* Several ranges under one key (contract R8). */
static int list_root(struct shrimp_mr *mr, uint64_t *root)
{
	struct rnic_mtt_pool *pool = &mr->domain->mtt;
	struct rnic_mtt_range r[SHRIMP_IOV_MAX];
	size_t n = 0;
	int ret = 0;

	for (; n < mr->niov; n++) {
		r[n].va = (uintptr_t)mr->iov[n].iov_base;
		r[n].bytes = mr->iov[n].iov_len;
		ret = range_root(mr, n, &r[n].root);
		if (ret)
			break;
	}
	if (!ret)
		ret = rnic_mtt_list_make(pool, r, n, root);
	while (ret && n)
		rnic_mtt_free(pool, r[--n].root, 0);
	return ret;
}

int shrimp_mr_translate(struct shrimp_mr *mr)
{
	struct rnic_region *r = &mr->region;

	if (mr->demand)
		return shrimp_odp_make(mr);
	if (mr->niov == 1)
		return range_root(mr, 0, &r->mtt);
	r->rights |= RNIC_MR_LIST;
	return list_root(mr, &r->mtt);
}

void shrimp_mr_untranslate(struct shrimp_mr *mr, uint64_t grace)
{
	if (mr->region.rights & RNIC_MR_LIST)
		rnic_mtt_list_free(&mr->domain->mtt, mr->region.mtt, grace);
	else
		rnic_mtt_free(&mr->domain->mtt, mr->region.mtt, grace);
}

/* ---- publication ---- */

uint32_t shrimp_mr_rights(const struct shrimp_domain *d, uint64_t access)
{
	uint32_t r = 0;

	if (access & (FI_SEND | FI_WRITE))
		r |= RNIC_LOCAL_READ;
	if (access & (FI_RECV | FI_READ))
		r |= RNIC_LOCAL_WRITE;
	if (access & FI_REMOTE_READ)
		r |= RNIC_REMOTE_READ;
	if (access & FI_REMOTE_WRITE)
		r |= RNIC_REMOTE_WRITE;
	if (access & REMOTE_ACCESS)
		r |= RNIC_MR_GIVEN;
	if (!(d->mr_mode & FI_MR_VIRT_ADDR))
		r |= RNIC_MR_OFFSET;
	return r;
}

uint64_t shrimp_mr_access(uint32_t rights)
{
	return (rights & RNIC_LOCAL_READ ? FI_SEND | FI_WRITE : 0) |
	       (rights & RNIC_LOCAL_WRITE ? FI_RECV | FI_READ : 0) |
	       (rights & RNIC_REMOTE_READ ? FI_REMOTE_READ : 0) |
	       (rights & RNIC_REMOTE_WRITE ? FI_REMOTE_WRITE : 0);
}

/*
 * Peers will ask the owner for some of what they may do with @mr: memory that
 * has only an address, pages that are absent, what the monitor has withdrawn,
 * or atomics that are not one instruction. Or they tell it of what they did:
 * whoever waits for a region's counter polls no endpoint.
 */
bool shrimp_mr_needs_agent(const struct shrimp_mr *mr)
{
	uint32_t remote = RNIC_REMOTE_READ | RNIC_REMOTE_WRITE;

	if (!(mr->region.rights & remote))
		return false;
	if (mr->cntr[0] || mr->cntr[1])
		return true;
	return mr->region.rights & (RNIC_MR_LIST | RNIC_MR_WATCHED) ||
	       mr->by_address || mr->demand || mr->domain->caps & FI_ATOMIC;
}

/* Makes the key valid. No event finds a region that is live and not listed. */
static int make_live(struct shrimp_mr *mr)
{
	struct shrimp_domain *d = mr->domain;
	bool counts = mr->cntr[0] || mr->cntr[1];
	int ret;

	if (counts)
		pthread_mutex_lock(&d->mr_lock);
	ret = rnic_mpt_reserve(&d->mpt, &mr->region, mr->user, &mr->fid.key,
			       &mr->slot);
	mr->live = !ret;
	if (mr->live) {
		/* they know the slot before anybody finds it */
		shrimp_odp_live(mr);
		rnic_mpt_show(&d->mpt, mr->slot);
		if (counts)
			cds_list_add(&mr->counted, &d->counted);
	}
	if (counts)
		pthread_mutex_unlock(&d->mr_lock);
	return ret;
}

/*
 * A key that the user chose, of a region that peers cannot use, need not be
 * the only one of its kind: it is not published.
 */
bool shrimp_mr_private(const struct shrimp_mr *mr)
{
	return mr->user && !(mr->region.rights & RNIC_MR_GIVEN);
}

static int publish(struct shrimp_mr *mr)
{
	int ret = 0;

	if (!shrimp_mr_private(mr)) {
		if (shrimp_mr_needs_agent(mr))
			ret = shrimp_agent_serve(mr->domain);
		if (!ret)
			ret = make_live(mr);
	}
	mr->enabled = !ret;
	if (!ret)
		shrimp_local_show(mr);
	return ret == -EEXIST ? -FI_ENOKEY : ret;
}

void shrimp_mr_event(struct shrimp_domain *d, uint64_t slot, bool writes)
{
	struct shrimp_mr *mr;

	pthread_mutex_lock(&d->mr_lock);
	cds_list_for_each_entry (mr, &d->counted, counted)
		if (mr->slot == slot && mr->cntr[writes])
			shrimp_cntr_add(mr->cntr[writes], 1);
	pthread_mutex_unlock(&d->mr_lock);
}

/* Nobody counts for @mr any more. */
static void uncount(struct shrimp_mr *mr)
{
	pthread_mutex_lock(&mr->domain->mr_lock);
	if (mr->counted.next)
		cds_list_del(&mr->counted);
	pthread_mutex_unlock(&mr->domain->mr_lock);
	for (int i = 0; i < 2; i++)
		if (mr->cntr[i])
			shrimp_ref_put(&mr->cntr[i]->refs);
}

/* Something that is bound to it, or under way, needs its key. mr_lock held. */
static bool is_busy(struct shrimp_mr *mr)
{
	return mr->changing ||
	       (!RNIC_BROKEN(window_busy) && !cds_list_empty(&mr->parts)) ||
	       (mr->window && shrimp_window_posted(mr));
}

/*
 * The grace period is asked for under the lock: whoever sees a window gone
 * from its region, and then fences the region, fences the window as well.
 */
int shrimp_mr_withdraw(struct shrimp_mr *mr, uint64_t *grace)
{
	struct shrimp_domain *d = mr->domain;
	int ret = -FI_EBUSY;

	*grace = 0;
	pthread_mutex_lock(&d->mr_lock);
	if (is_busy(mr))
		goto out;
	if (mr->live && !(RNIC_BROKEN(cache_close) && mr->cached[0])) {
		rnic_mpt_invalidate(&d->mpt, mr->slot);
		mr->leaving = true;
	}
	mr->live = mr->enabled = false;
	shrimp_local_hide(mr);
	if (mr->leaving && mr->region.rights & RNIC_MR_GIVEN)
		*grace = rnic_grace_want(&d->dev, mr->slot);
	if (mr->window)
		shrimp_window_unlink(mr);
	ret = 0;
out:
	pthread_mutex_unlock(&d->mr_lock);
	return ret;
}

void shrimp_mr_settle(struct shrimp_mr *mr)
{
	struct shrimp_domain *d = mr->domain;
	uint64_t grace = 0;

	/* faults and the monitor look at its tables */
	shrimp_odp_leave(mr);
	if (mr->leaving) {
		grace = rnic_grace_now(&d->dev);
		rnic_mpt_retire(&d->mpt, mr->slot, grace);
		mr->leaving = false;
	}
	shrimp_mr_untranslate(mr, grace);
}

/* ---- the object ---- */

void shrimp_mr_free(struct shrimp_mr *mr)
{
	shrimp_local_put(mr);
	free(mr);
}

/* shrimp_mr_destroy() without the last step: the domain may go after that. */
static void take_apart(struct shrimp_mr *mr)
{
	struct shrimp_domain *d = mr->domain;

	if (mr->window)
		shrimp_window_unwatch(mr);
	shrimp_mr_settle(mr);
	uncount(mr);
	shrimp_mr_unpin(mr);
	shrimp_domain_reap(d);
	shrimp_mr_free(mr);
}

void shrimp_mr_destroy(struct shrimp_mr *mr)
{
	struct shrimp_domain *d = mr->domain;

	take_apart(mr);
	shrimp_ref_put(&d->refs);
}

/*
 * When the period is over nobody touches the memory through the key any more
 * (contract I1). An error: not known, so all stays as it is. Else the caller
 * puts the reference to the domain when he is done with it.
 */
static int end(struct shrimp_mr *mr)
{
	uint64_t grace;
	int ret = shrimp_mr_withdraw(mr, &grace);

	if (!ret && grace)
		ret = rnic_grace_wait(&mr->domain->dev, grace);
	if (!ret)
		take_apart(mr);
	return ret;
}

int shrimp_mr_drop(struct shrimp_mr *mr)
{
	struct shrimp_domain *d = mr->domain;
	int ret = end(mr);

	if (!ret)
		shrimp_ref_put(&d->refs);
	return ret;
}

static int mr_close(struct fid *fid)
{
	struct shrimp_mr *mr = (struct shrimp_mr *)fid;
	struct shrimp_domain *d = mr->domain;
	int ret;

	if (d->inherited)
		return -FI_EOPBADSTATE;
	if (mr->keeper)
		return -FI_EBUSY;
	shrimp_mr_reap(d);
	shrimp_mr_cache_reap(d);
	ret = end(mr);
	/* what it was the last to use of the cache, and has gone */
	shrimp_mr_cache_reap(d);
	if (!ret)
		shrimp_ref_put(&d->refs);
	return ret;
}

static bool may_bind_cntr(const struct shrimp_mr *mr,
			  const struct shrimp_cntr *c, uint64_t flags)
{
	if (!flags || flags & ~(uint64_t)REMOTE_ACCESS || mr->leaving ||
	    c->domain != mr->domain)
		return false;
	return !(flags & FI_REMOTE_READ && mr->cntr[0]) &&
	       !(flags & FI_REMOTE_WRITE && mr->cntr[1]);
}

/* Who counts is known to @mr, and to shrimp_mr_event() once it is live. */
static uint32_t count(struct shrimp_mr *mr, struct shrimp_cntr *c,
		      uint64_t flags)
{
	uint32_t events = 0;

	pthread_mutex_lock(&mr->domain->mr_lock);
	for (int i = 0; i < 2; i++) {
		if (!(flags & (i ? FI_REMOTE_WRITE : FI_REMOTE_READ)))
			continue;
		mr->cntr[i] = c;
		shrimp_ref_get(&c->refs);
		events |= i ? RNIC_MR_EV_WRITE : RNIC_MR_EV_READ;
	}
	if (mr->live && !mr->counted.next)
		cds_list_add(&mr->counted, &mr->domain->counted);
	pthread_mutex_unlock(&mr->domain->mr_lock);
	return events;
}

/*
 * A counter for what peers do to @mr, fi_mr(3): FI_RMA_EVENT. Its events come
 * with the agent: such a counter belongs to no endpoint, so waiting for it is
 * progress of none.
 */
static int bind_cntr(struct shrimp_mr *mr, struct shrimp_cntr *c,
		     uint64_t flags)
{
	uint32_t events;
	int ret;

	if (!may_bind_cntr(mr, c, flags))
		return -FI_EINVAL;
	ret = shrimp_agent_serve(mr->domain);
	if (ret)
		return ret;
	events = count(mr, c, flags);
	mr->region.rights |= events;
	if (mr->live)
		rnic_mpt_add_events(&mr->domain->mpt, mr->slot, events);
	return 0;
}

/* To an endpoint (FI_MR_ENDPOINT), or to a counter. */
static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct shrimp_mr *mr = (struct shrimp_mr *)fid;
	struct shrimp_ep *ep = (struct shrimp_ep *)bfid;

	if (mr->domain->inherited)
		return -FI_EOPBADSTATE;
	if (mr->window || mr->keeper)
		return -FI_EINVAL;
	if (bfid->fclass == FI_CLASS_CNTR)
		return bind_cntr(mr, (struct shrimp_cntr *)bfid, flags);
	if (flags || bfid->fclass != FI_CLASS_EP || mr->live || mr->bound ||
	    !(mr->domain->mr_mode & FI_MR_ENDPOINT) || ep->domain != mr->domain)
		return -FI_EINVAL;
	mr->bound = true;
	return 0;
}

static int enable(struct shrimp_mr *mr)
{
	bool bound = mr->bound || !(mr->domain->mr_mode & FI_MR_ENDPOINT);

	if (mr->window)
		return -FI_EINVAL;
	if (mr->live)
		return 0;
	return bound ? publish(mr) : -FI_EINVAL;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	struct shrimp_mr *mr = (struct shrimp_mr *)fid;
	const struct fi_mr_modify *m = arg;

	if (mr->domain->inherited)
		return -FI_EOPBADSTATE;
	switch (command) {
	case FI_ENABLE:
		return enable(mr);
	case FI_REFRESH:
		if (!m || m->flags)
			return -FI_EINVAL;
		return shrimp_mr_refresh(mr, m->attr.mr_iov, m->attr.iov_count);
	case FI_GET_RAW_MR:
		return shrimp_mr_raw_attr(mr, arg);
	default:
		return -FI_ENOSYS;
	}
}

struct fi_ops shrimp_mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = shrimp_no_ops_open,
	.tostr = shrimp_no_tostr,
	.ops_set = shrimp_no_ops_set,
};

/* ---- registration ---- */

struct shrimp_mr *shrimp_mr_new(struct shrimp_domain *d,
				const struct fi_mr_attr *a, uint64_t flags)
{
	struct shrimp_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = a->context;
	mr->fid.fid.ops = &shrimp_mr_fid_ops;
	mr->domain = d;
	if (shrimp_local_get(mr)) {
		free(mr);
		return NULL;
	}
	mr->user = !(d->mr_mode & FI_MR_PROV_KEY);
	mr->fid.key = mr->user ? a->requested_key : FI_KEY_NOTAVAIL;
	mr->niov = a->iov_count;
	memcpy(mr->iov, a->mr_iov, a->iov_count * sizeof(*a->mr_iov));
	mr->region.va = (uintptr_t)a->mr_iov[0].iov_base;
	for (size_t i = 0; i < a->iov_count; i++)
		mr->region.length += a->mr_iov[i].iov_len;
	mr->events = flags & FI_RMA_EVENT;
	mr->access = a->access;
	mr->region.rights = shrimp_mr_rights(d, a->access);
	mr->demand = flags & FI_SHRIMP_ON_DEMAND && !is_implicit(mr);
	CDS_INIT_LIST_HEAD(&mr->parts);
	return mr;
}

bool shrimp_mr_at_once(const struct shrimp_mr *mr)
{
	return !(mr->domain->mr_mode & FI_MR_ENDPOINT) && !mr->events;
}

bool shrimp_mr_allowed(const struct shrimp_mr *mr)
{
	return !is_implicit(mr) || mr->domain->set->implicit;
}

void shrimp_mr_count_implicit(const struct shrimp_mr *mr)
{
	if (is_implicit(mr))
		shrimp_odp_implicit(mr->domain);
}

int shrimp_mr_watch(struct shrimp_mr *mr)
{
	if (mr->demand || is_implicit(mr) ||
	    !(mr->region.rights & RNIC_MR_GIVEN))
		return 0;
	return shrimp_odp_watch(mr);
}

/* All or nothing (contract R3); an entry of the cache has looked and pins. */
static int set_up(struct shrimp_mr *mr)
{
	int ret = mr->keeper ? 0 : pin(mr);

	if (ret)
		return ret;
	ret = shrimp_mr_translate(mr);
	if (ret)
		goto err_unpin;
	ret = shrimp_mr_watch(mr);
	if (!ret && shrimp_mr_at_once(mr))
		ret = publish(mr);
	if (ret)
		goto err_untranslate;
	return 0;
err_untranslate:
	shrimp_odp_leave(mr);
	if (!RNIC_BROKEN(failed_table))
		shrimp_mr_untranslate(mr, 0);
err_unpin:
	if (!RNIC_BROKEN(failed_pin))
		shrimp_mr_unpin(mr);
	return ret;
}

int shrimp_mr_keep(struct shrimp_cached *e, struct shrimp_mr **out)
{
	struct shrimp_domain *d = e->of->domain;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)e->span.start,
			     .iov_len = e->span.end - e->span.start };
	struct fi_mr_attr a = { .mr_iov = &iov, .iov_count = 1 };
	struct shrimp_mr *mr = shrimp_mr_new(d, &a, 0);
	int ret;

	if (!mr)
		return -FI_ENOMEM;
	mr->keeper = e;
	mr->access = shrimp_mr_access(e->span.have >> SHRIMP_MRC_RIGHTS);
	mr->region.rights = shrimp_mr_rights(d, mr->access);
	if (e->file)
		mr->leaf[0] = e->leaf;
	ret = set_up(mr);
	if (ret) {
		shrimp_mr_free(mr);
		return ret;
	}
	/* also where regions are enabled: this one is bound to nothing */
	shrimp_local_show(mr);
	shrimp_ref_get(&d->refs);
	*out = mr;
	return 0;
}

bool shrimp_mr_shed(struct shrimp_domain *d, int ret)
{
	if (ret != -FI_ENOSPC && ret != -FI_ENOMEM)
		return false;
	/* relaxed: what others insert meanwhile is in use */
	if (!rnic_load64_relaxed(&d->cache.entries))
		return false;
	rnic_log(RNIC_LOG_INFO,
		 "fi_mr_reg: %s; once more without what the cache keeps for "
		 "nobody",
		 strerror(-ret));
	shrimp_mr_cache_flush(d);
	return true;
}

static int regattr(struct fid *fid, const struct fi_mr_attr *a, uint64_t flags,
		   struct fid_mr **out)
{
	struct shrimp_domain *d = (struct shrimp_domain *)fid;
	struct shrimp_mr *mr;
	int ret;

	if (d->inherited)
		return -FI_EOPBADSTATE;
	ret = shrimp_mr_check(a, flags);
	if (ret)
		return ret;
	shrimp_mr_reap(d);
	shrimp_mr_cache_reap(d);
	mr = shrimp_mr_new(d, a, flags);
	if (!mr)
		return -FI_ENOMEM;
	ret = shrimp_mr_allowed(mr) ? set_up(mr) : -FI_EOPNOTSUPP;
	if (ret && shrimp_mr_shed(d, ret))
		ret = set_up(mr);
	if (ret) {
		shrimp_mr_free(mr);
		return ret;
	}
	shrimp_mr_count_implicit(mr);
	shrimp_ref_get(&d->refs);
	*out = &mr->fid;
	return 0;
}

static int regv(struct fid *fid, const struct iovec *iov, size_t count,
		uint64_t access, uint64_t offset, uint64_t key, uint64_t flags,
		struct fid_mr **mr, void *context)
{
	struct fi_mr_attr a = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = key,
		.context = context,
	};

	return regattr(fid, &a, flags, mr);
}

static int reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
	       uint64_t offset, uint64_t key, uint64_t flags,
	       struct fid_mr **mr, void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };

	return regv(fid, &iov, 1, access, offset, key, flags, mr, context);
}

struct fi_ops_mr shrimp_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = reg,
	.regv = regv,
	.regattr = regattr,
};
