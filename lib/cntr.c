/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Counters: reading makes progress, waiting sleeps like a CQ.
 */
#include "lib/cntr.h"

#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>

#include "lib/domain.h"
#include "lib/fid.h"
#include "lib/refs.h"
#include "lib/tx.h"

static struct shrimp_cntr *cntr_of(struct fid_cntr *fid)
{
	return (struct shrimp_cntr *)fid;
}

/* A client that only polls its counter still makes progress. */
static void poke(struct shrimp_cntr *c)
{
	rnic_spin_lock(&c->eps.lock);
	shrimp_polled_progress(&c->eps, NULL);
	rnic_spin_unlock(&c->eps.lock);
}

static uint64_t sum(const struct shrimp_cntr *c)
{
	/* relaxed: data of receives is ordered by the endpoint's lock */
	return rnic_load64_relaxed(&c->value) + rnic_load64_relaxed(&c->errors);
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct shrimp_cntr *c = cntr_of(fid);

	poke(c);
	/* what a wait compares with: taken before the value that is returned,
	 * so that nothing between is missed */
	rnic_store64_relaxed(&c->seen, sum(c));
	return rnic_load64_relaxed(&c->value);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	struct shrimp_cntr *c = cntr_of(fid);

	poke(c);
	rnic_store64_relaxed(&c->seen, sum(c));
	return rnic_load64_relaxed(&c->errors);
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	shrimp_cntr_add(cntr_of(fid), value);
	if (cntr_of(fid)->domain->inherited)
		return -FI_EOPBADSTATE;
	return 0;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	shrimp_cntr_add_err(cntr_of(fid), value);
	if (cntr_of(fid)->domain->inherited)
		return -FI_EOPBADSTATE;
	return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	if (cntr_of(fid)->domain->inherited)
		return -FI_EOPBADSTATE;
	rnic_store64_relaxed(&cntr_of(fid)->value, value);
	shrimp_wait_signal(&cntr_of(fid)->wait);
	return 0;
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	if (cntr_of(fid)->domain->inherited)
		return -FI_EOPBADSTATE;
	rnic_store64_relaxed(&cntr_of(fid)->errors, value);
	shrimp_wait_signal(&cntr_of(fid)->wait);
	return 0;
}

bool shrimp_cntr_moved(const struct shrimp_cntr *c)
{
	/* relaxed: what was counted before the sleeper's fence is seen */
	return sum(c) != rnic_load64_relaxed(&c->seen);
}

bool shrimp_cntr_poll(struct shrimp_cntr *c)
{
	uint64_t now;

	poke(c);
	now = sum(c);
	if (now == rnic_load64_relaxed(&c->polled))
		return false;
	rnic_store64_relaxed(&c->polled, now);
	return true;
}

/*
 * Sleeps once unless @threshold is reached or the error count left
 * @errors: looked at after arming, so that nothing is missed.
 */
static void nap(struct shrimp_cntr *c, uint64_t threshold, uint64_t errors,
		int left)
{
	if (!shrimp_wait_sleeps(&c->wait)) {
		sched_yield();
		return;
	}
	shrimp_wait_enter(&c->wait);
	if (shrimp_polled_arm(&c->eps) &&
	    rnic_load64_relaxed(&c->value) < threshold &&
	    rnic_load64_relaxed(&c->errors) == errors)
		shrimp_wait_sleep(&c->wait, left);
	shrimp_wait_leave(&c->wait);
	shrimp_polled_disarm(&c->eps);
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct shrimp_cntr *c = cntr_of(fid);
	uint64_t errors = rnic_load64_relaxed(&c->errors);
	uint64_t start = shrimp_now_ms();
	unsigned int spin = c->domain->set->spin;

	for (unsigned int polls = 1;; polls++) {
		int left = shrimp_wait_left(timeout, start);

		if (c->domain->inherited)
			return -FI_EOPBADSTATE;
		poke(c);
		rnic_store64_relaxed(&c->seen, sum(c));
		if (rnic_load64_relaxed(&c->value) >= threshold)
			return 0;
		if (rnic_load64_relaxed(&c->errors) != errors)
			return -FI_EAVAIL;
		if (!left)
			return -FI_ETIMEDOUT;
		if (polls > spin)
			nap(c, threshold, errors, left);
	}
}

int shrimp_cntr_attach_ep(struct shrimp_cntr *c, struct shrimp_ep *ep)
{
	return shrimp_polled_attach(&c->eps, ep, &c->wait);
}

void shrimp_cntr_detach_ep(struct shrimp_cntr *c, struct shrimp_ep *ep)
{
	shrimp_polled_detach(&c->eps, ep, &c->wait);
}

static int cntr_close(struct fid *fid)
{
	struct shrimp_cntr *c = (struct shrimp_cntr *)fid;

	if (c->domain->inherited)
		return -FI_EOPBADSTATE;
	if (shrimp_polled_busy(&c->eps) || shrimp_ref_count(&c->refs))
		return -FI_EBUSY;
	shrimp_wait_close(&c->wait);
	shrimp_polled_fini(&c->eps);
	shrimp_ref_put(&c->domain->refs);
	free(c);
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct shrimp_cntr *c = (struct shrimp_cntr *)fid;

	return shrimp_wait_control(&c->wait, command, arg);
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = shrimp_no_bind,
	.control = cntr_control,
	.ops_open = shrimp_no_ops_open,
	.tostr = shrimp_no_tostr,
	.ops_set = shrimp_no_ops_set,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

int shrimp_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		     struct fid_cntr **out, void *context)
{
	static const struct fi_cntr_attr none;
	struct shrimp_domain *d = shrimp_domain_of(domain);
	struct shrimp_cntr *c;
	int ret;

	if (!attr)
		attr = (struct fi_cntr_attr *)(uintptr_t)&none;
	if (d->inherited)
		return -FI_EOPBADSTATE;
	if (attr->events != FI_CNTR_EVENTS_COMP || attr->flags)
		return -FI_EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -FI_ENOMEM;
	ret = shrimp_wait_open(&c->wait, &c->fid.fid, attr->wait_obj,
			       attr->wait_set);
	if (ret) {
		free(c);
		return ret;
	}
	c->domain = d;
	c->fid.fid.fclass = FI_CLASS_CNTR;
	c->fid.fid.context = context;
	c->fid.fid.ops = &fid_ops;
	c->fid.ops = &cntr_ops;
	shrimp_ref_get(&d->refs);
	*out = &c->fid;
	return 0;
}
