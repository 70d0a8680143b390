/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Address vectors.
 *
 * Labels: V1 an entry, V2 a chunk, V3 the way back; each is a release under
 * the lock that pairs with the acquire in shrimp_av_peer() or
 * shrimp_av_addr_of().
 */
#include "lib/av.h"

#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/domain.h"
#include "lib/endpoint.h"
#include "lib/eq.h"
#include "lib/fid.h"
#include "lib/peer.h"
#include "lib/refs.h"
#include "lib/service.h"

/* One word of a chunked table, for reading; NULL if its chunk is not there. */
static rnic_aptr *peek(const rnic_aptr *tab, uint64_t i)
{
	rnic_aptr *chunk;

	if (i >= (uint64_t)SHRIMP_AV_CHUNK * SHRIMP_AV_CHUNKS)
		return NULL;
	/* V2: acquires the zeroed chunk */
	chunk = rnic_ptr_load_acquire(&tab[i / SHRIMP_AV_CHUNK]);
	return chunk ? &chunk[i % SHRIMP_AV_CHUNK] : NULL;
}

/* The same for writing, the lock held: the chunk is made. */
static rnic_aptr *poke(rnic_aptr *tab, uint64_t i)
{
	rnic_aptr *word = peek(tab, i);
	rnic_aptr *chunk;

	if (word || i >= (uint64_t)SHRIMP_AV_CHUNK * SHRIMP_AV_CHUNKS)
		return word;
	chunk = calloc(SHRIMP_AV_CHUNK, sizeof(*chunk));
	if (!chunk)
		return NULL;
	/* V2: publishes the zeroed chunk */
	rnic_ptr_store_release(&tab[i / SHRIMP_AV_CHUNK], chunk);
	return &chunk[i % SHRIMP_AV_CHUNK];
}

struct shrimp_peer *shrimp_av_peer(struct shrimp_av *av, fi_addr_t a)
{
	rnic_aptr *word = peek(av->chunk, a);

	/* V1: acquires the entry */
	return word ? rnic_ptr_load_acquire(word) : NULL;
}

/* The address of the service that peer @id answers for. */
static fi_addr_t service_of(const struct shrimp_av *av, uint32_t id)
{
	const rnic_aptr *word;

	for (fi_addr_t a = 0; (word = peek(av->chunk, a)); a++) {
		/* V1: acquires the entry */
		struct shrimp_peer *peer = rnic_ptr_load_acquire(word);

		if (peer && peer->addr.kind == RNIC_ADDR_SERVICE &&
		    shrimp_peer_real(peer)->id == id)
			return a;
	}
	return FI_ADDR_NOTAVAIL;
}

fi_addr_t shrimp_av_addr_of(struct shrimp_av *av, uint32_t peer_id)
{
	rnic_aptr *word = peek(av->rev, peer_id);
	uintptr_t a;

	/* acquires the changes up to the one whose number a caller has seen */
	rnic_load32_acquire(&av->gen);
	/* V3: acquires the way back */
	a = word ? (uintptr_t)rnic_ptr_load_acquire(word) : 0;
	if (a)
		return (fi_addr_t)(a - 1);
	/* relaxed: after the acquire of gen */
	return rnic_load32_relaxed(&av->services) ? service_of(av, peer_id)
						  : FI_ADDR_NOTAVAIL;
}

/* ---- insert ---- */

static bool valid(const struct rnic_addr *a)
{
	return a->magic == RNIC_MAGIC_ADDR &&
	       (a->kind == RNIC_ADDR_ENDPOINT || a->kind == RNIC_ADDR_SERVICE);
}

/* Notes that peer @id has address @a, unless it has an earlier one. */
static int note_rev(struct shrimp_av *av, uint32_t id, uint64_t a)
{
	rnic_aptr *word = poke(av->rev, id);

	if (!word)
		return -FI_ENOMEM;
	/* relaxed: under the lock */
	if (!rnic_ptr_load_relaxed(word))
		rnic_ptr_store_release(word, (void *)(uintptr_t)(a + 1));
	return 0;
}

/* fi_av(3): the lowest index that is free. NULL: none was removed. */
static uint64_t *lowest_gap(struct shrimp_av *av)
{
	uint64_t *low = av->ngaps ? av->gaps : NULL;

	for (size_t i = 1; i < av->ngaps; i++)
		if (av->gaps[i] < *low)
			low = &av->gaps[i];
	return low;
}

/* Puts @peer into the vector, the lock held. Returns 0 and *@a, or error. */
static int put(struct shrimp_av *av, struct shrimp_peer *peer, fi_addr_t *a)
{
	uint64_t *gap = lowest_gap(av);
	uint64_t i = gap ? *gap : av->end;
	rnic_aptr *word = poke(av->chunk, i);

	if (!word || note_rev(av, peer->id, i))
		return -FI_ENOMEM;
	/* V1: publishes the entry */
	rnic_ptr_store_release(word, peer);
	if (peer->addr.kind == RNIC_ADDR_SERVICE)
		rnic_add32_relaxed(&av->services, 1);
	if (gap)
		*gap = av->gaps[--av->ngaps];
	else
		av->end++;
	*a = i;
	return 0;
}

/* One address. Returns 0 and *@a, -FI_EINVAL, -FI_ENOMEM. */
static int insert_one(struct shrimp_av *av, const struct rnic_addr *addr,
		      fi_addr_t *a)
{
	struct rnic_addr copy;
	struct shrimp_peer *peer;
	int ret;

	*a = FI_ADDR_NOTAVAIL;
	memcpy(&copy, addr, sizeof(copy));
	if (!valid(&copy))
		return -FI_EINVAL;
	peer = shrimp_peer_intern(&av->domain->peers, &copy);
	if (!peer)
		return -FI_ENOMEM;
	pthread_mutex_lock(&av->lock);
	ret = put(av, peer, a);
	/* release: the entry before the number that makes others look */
	rnic_add32_acqrel(&av->gen, 1);
	pthread_mutex_unlock(&av->lock);
	return ret;
}

/* What the EQ learns of an asynchronous insert. */
static void report(struct shrimp_av *av, uint64_t good, void *context)
{
	struct fi_eq_entry e = { .fid = &av->fid.fid,
				 .context = context,
				 .data = good };

	shrimp_eq_post(av->eq, FI_AV_COMPLETE, &e, sizeof(e));
}

static void report_error(struct shrimp_av *av, size_t i, int err, void *context)
{
	struct fi_eq_err_entry e = { .fid = &av->fid.fid,
				     .context = context,
				     .data = i,
				     .err = err,
				     .prov_errno = err };

	shrimp_eq_post_err(av->eq, &e);
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct shrimp_av *av = (struct shrimp_av *)fid;
	const char *at = addr;
	int *errors = flags & FI_SYNC_ERR ? context : NULL;
	int good = 0;

	if (av->domain->inherited)
		return -FI_EOPBADSTATE;
	if (av->async && !av->eq)
		return -FI_ENOEQ;
	if (flags & ~(FI_MORE | FI_SYNC_ERR) || (count && !addr))
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++, at += sizeof(struct rnic_addr)) {
		fi_addr_t a;
		int ret = insert_one(av, (const void *)at, &a);

		if (fi_addr)
			fi_addr[i] = a;
		if (errors)
			errors[i] = -ret;
		good += !ret;
		if (ret && av->async)
			report_error(av, i, -ret, context);
	}
	if (!av->async)
		return good;
	report(av, (uint64_t)good, context);
	return 0;
}

static int av_insertsvc(struct fid_av *fid, const char *node,
			const char *service, fi_addr_t *fi_addr, uint64_t flags,
			void *context)
{
	struct rnic_addr a;
	int ret = shrimp_service_addr(node, service, &a);

	return ret ? ret : av_insert(fid, &a, 1, fi_addr, flags, context);
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt,
			const char *service, size_t svccnt, fi_addr_t *fi_addr,
			uint64_t flags, void *context)
{
	(void)fid, (void)node, (void)nodecnt, (void)service, (void)svccnt;
	(void)fi_addr, (void)flags, (void)context;
	return -FI_ENOSYS;
}

/* ---- remove ---- */

/* Another address of peer @id, or none: for the way back. */
static void fix_rev(struct shrimp_av *av, const struct shrimp_peer *peer)
{
	rnic_aptr *word = peek(av->rev, peer->id);
	uintptr_t back = 0;

	for (uint64_t i = 0; i < av->end && !back; i++)
		if (shrimp_av_peer(av, i) == peer)
			back = i + 1;
	if (word)
		/* V3 */
		rnic_ptr_store_release(word, (void *)back);
}

static int add_gap(struct shrimp_av *av, uint64_t i)
{
	if (av->ngaps == av->gaps_room) {
		size_t room = av->gaps_room ? 2 * av->gaps_room : 64;
		void *t = realloc(av->gaps, room * sizeof(*av->gaps));

		if (!t)
			return -FI_ENOMEM;
		av->gaps = t;
		av->gaps_room = room;
	}
	av->gaps[av->ngaps++] = i;
	return 0;
}

/* Takes @a out, the lock held. */
static int drop(struct shrimp_av *av, fi_addr_t a)
{
	struct shrimp_peer *peer = shrimp_av_peer(av, a);
	int ret;

	if (!peer)
		return -FI_EINVAL;
	ret = add_gap(av, a);
	if (ret)
		return ret;
	/* V1 */
	rnic_ptr_store_release(peek(av->chunk, a), NULL);
	if (peer->addr.kind == RNIC_ADDR_SERVICE)
		rnic_sub32_acqrel(&av->services, 1);
	if (shrimp_av_addr_of(av, peer->id) == a)
		fix_rev(av, peer);
	/* release: the entry before the number that makes others look */
	rnic_add32_acqrel(&av->gen, 1);
	for (size_t i = 0; i < av->neps; i++)
		shrimp_ep_forget(av->eps[i], a);
	return 0;
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count,
		     uint64_t flags)
{
	struct shrimp_av *av = (struct shrimp_av *)fid;
	int ret = 0;

	if (av->domain->inherited)
		return -FI_EOPBADSTATE;
	if (flags || (count && !fi_addr))
		return -FI_EINVAL;
	pthread_mutex_lock(&av->lock);
	for (size_t i = 0; i < count; i++) {
		int one = drop(av, fi_addr[i]);

		if (one)
			ret = one;
	}
	pthread_mutex_unlock(&av->lock);
	return ret;
}

/* ---- look ---- */

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr,
		     size_t *addrlen)
{
	struct shrimp_av *av = (struct shrimp_av *)fid;
	struct shrimp_peer *peer = shrimp_av_peer(av, fi_addr);
	size_t n = sizeof(struct rnic_addr);

	if (av->domain->inherited)
		return -FI_EOPBADSTATE;
	if (!peer)
		return -FI_EINVAL;
	memcpy(addr, &peer->addr, *addrlen < n ? *addrlen : n);
	*addrlen = n;
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf,
			      size_t *len)
{
	struct rnic_addr a;
	int n;

	(void)fid;
	memcpy(&a, addr, sizeof(a));
	if (a.kind == RNIC_ADDR_SERVICE)
		n = snprintf(buf, *len, "shrimp://service/%.47s", a.service);
	else
		n = snprintf(buf, *len, "shrimp://%u/%u/%016" PRIx64, a.pid,
			     a.ep, a.incarnation);
	*len = (size_t)n + 1;
	return buf;
}

static int av_set(struct fid_av *fid, struct fi_av_set_attr *attr,
		  struct fid_av_set **set, void *context)
{
	(void)fid, (void)attr, (void)set, (void)context;
	return -FI_ENOSYS;
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = av_set,
};

/* ---- the object ---- */

int shrimp_av_attach_ep(struct shrimp_av *av, struct shrimp_ep *ep)
{
	void *t;

	pthread_mutex_lock(&av->lock);
	t = realloc(av->eps, (av->neps + 1) * sizeof(*av->eps));
	if (t) {
		av->eps = t;
		av->eps[av->neps++] = ep;
		shrimp_ref_get(&av->refs);
	}
	pthread_mutex_unlock(&av->lock);
	return t ? 0 : -FI_ENOMEM;
}

void shrimp_av_detach_ep(struct shrimp_av *av, struct shrimp_ep *ep)
{
	pthread_mutex_lock(&av->lock);
	for (size_t i = 0; i < av->neps; i++) {
		if (av->eps[i] != ep)
			continue;
		av->eps[i] = av->eps[--av->neps];
		shrimp_ref_put(&av->refs);
		break;
	}
	pthread_mutex_unlock(&av->lock);
}

static int av_close(struct fid *fid)
{
	struct shrimp_av *av = (struct shrimp_av *)fid;

	if (av->domain->inherited)
		return -FI_EOPBADSTATE;
	if (shrimp_ref_count(&av->refs))
		return -FI_EBUSY;
	for (int i = 0; i < SHRIMP_AV_CHUNKS; i++) {
		free(rnic_ptr_load_relaxed(&av->chunk[i]));
		free(rnic_ptr_load_relaxed(&av->rev[i]));
	}
	if (av->eq)
		shrimp_ref_put(&av->eq->refs);
	free(av->gaps);
	free(av->eps);
	pthread_mutex_destroy(&av->lock);
	shrimp_ref_put(&av->domain->refs);
	free(av);
	return 0;
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct shrimp_av *av = (struct shrimp_av *)fid;

	if (bfid->fclass != FI_CLASS_EQ || av->eq || flags)
		return -FI_EINVAL;
	av->eq = (struct shrimp_eq *)bfid;
	shrimp_ref_get(&av->eq->refs);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
	.control = shrimp_no_control,
	.ops_open = shrimp_no_ops_open,
	.tostr = shrimp_no_tostr,
	.ops_set = shrimp_no_ops_set,
};

static int check_attr(const struct fi_av_attr *attr)
{
	if (!attr)
		return -FI_EINVAL;
	if (attr->name || attr->flags & FI_READ || attr->rx_ctx_bits > 0)
		return -FI_ENOSYS;
	if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC) ||
	    attr->type > FI_AV_TABLE)
		return -FI_EINVAL;
	return 0;
}

int shrimp_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		   struct fid_av **out, void *context)
{
	struct shrimp_domain *d = shrimp_domain_of(domain);
	int ret = d->inherited ? -FI_EOPBADSTATE : check_attr(attr);
	struct shrimp_av *av;

	if (ret)
		return ret;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	pthread_mutex_init(&av->lock, NULL);
	av->domain = d;
	av->type = attr->type;
	av->async = attr->flags & FI_EVENT;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &fid_ops;
	av->fid.ops = &av_ops;
	shrimp_ref_get(&d->refs);
	*out = &av->fid;
	return 0;
}
