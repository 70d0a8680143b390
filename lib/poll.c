/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Poll sets. The lock protects the table; it is outside of a CQ's locks.
 */
#include "lib/poll.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "lib/cntr.h"
#include "lib/cq.h"
#include "lib/domain.h"
#include "lib/fid.h"
#include "lib/refs.h"

enum { FIRST_ROOM = 8 }; /* entries of a new table */

struct pollset {
	struct fid_poll fid;	      /* first: what clients hold */
	struct shrimp_domain *domain; /* parent, referenced */
	pthread_mutex_t lock;	      /* protects the table */
	struct fid **fids;	      /* CQs and counters */
	size_t n;		      /* how many */
	size_t room;		      /* entries allocated */
};

static bool has_something(struct fid *fid)
{
	if (fid->fclass == FI_CLASS_CQ)
		return shrimp_cq_poll((struct shrimp_cq *)fid);
	return shrimp_cntr_poll((struct shrimp_cntr *)fid);
}

static int poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct pollset *p = (struct pollset *)fid;
	int got = 0;

	if (p->domain->inherited)
		return -FI_EOPBADSTATE;
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->n && got < count; i++)
		if (has_something(p->fids[i]))
			context[got++] = p->fids[i]->context;
	pthread_mutex_unlock(&p->lock);
	return got;
}

/* The word that counts the poll sets of a CQ or counter. */
static rnic_a32 *refs_of(struct fid *fid)
{
	if (fid->fclass == FI_CLASS_CQ)
		return &((struct shrimp_cq *)fid)->refs;
	return &((struct shrimp_cntr *)fid)->refs;
}

static int append(struct pollset *p, struct fid *fid)
{
	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : FIRST_ROOM;
		void *t = realloc(p->fids, room * sizeof(*p->fids));

		if (!t)
			return -FI_ENOMEM;
		p->fids = t;
		p->room = room;
	}
	p->fids[p->n++] = fid;
	shrimp_ref_get(refs_of(fid));
	return 0;
}

static int poll_add(struct fid_poll *pfid, struct fid *fid, uint64_t flags)
{
	struct pollset *p = (struct pollset *)pfid;
	int ret;

	if (p->domain->inherited)
		return -FI_EOPBADSTATE;
	if (flags ||
	    (fid->fclass != FI_CLASS_CQ && fid->fclass != FI_CLASS_CNTR))
		return -FI_EINVAL;
	pthread_mutex_lock(&p->lock);
	ret = append(p, fid);
	pthread_mutex_unlock(&p->lock);
	return ret;
}

static int poll_del(struct fid_poll *pfid, struct fid *fid, uint64_t flags)
{
	struct pollset *p = (struct pollset *)pfid;
	int ret = -FI_EINVAL;

	if (p->domain->inherited)
		return -FI_EOPBADSTATE;
	if (flags)
		return -FI_EINVAL;
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->n; i++) {
		if (p->fids[i] != fid)
			continue;
		p->fids[i] = p->fids[--p->n];
		shrimp_ref_put(refs_of(fid));
		ret = 0;
		break;
	}
	pthread_mutex_unlock(&p->lock);
	return ret;
}

static int poll_close(struct fid *fid)
{
	struct pollset *p = (struct pollset *)fid;

	if (p->domain->inherited)
		return -FI_EOPBADSTATE;
	for (size_t i = 0; i < p->n; i++)
		shrimp_ref_put(refs_of(p->fids[i]));
	pthread_mutex_destroy(&p->lock);
	shrimp_ref_put(&p->domain->refs);
	free(p->fids);
	free(p);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = poll_close,
	.bind = shrimp_no_bind,
	.control = shrimp_no_control,
	.ops_open = shrimp_no_ops_open,
	.tostr = shrimp_no_tostr,
	.ops_set = shrimp_no_ops_set,
};

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

int shrimp_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		     struct fid_poll **out)
{
	struct pollset *p;

	if (attr && attr->flags)
		return -FI_EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -FI_ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	p->domain = shrimp_domain_of(domain);
	p->fid.fid.fclass = FI_CLASS_POLL;
	p->fid.fid.ops = &fid_ops;
	p->fid.ops = &poll_ops;
	shrimp_ref_get(&p->domain->refs);
	*out = &p->fid;
	return 0;
}
