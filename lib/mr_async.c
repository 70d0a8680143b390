/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Closes that do not wait: the key is withdrawn in the call, and an event says
 * when nobody touches the memory any more.
 *
 * They queue in their domain in the order of the grace periods they wait for,
 * and any number of them share one. The agent looks every millisecond; where it
 * cannot be started registration calls, progress and reads of the event queue
 * do. If a period cannot be had the event is an error, and the region is its
 * client's again, without a key, to be closed once more.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "include/rdma/fi_ext_shrimp.h"
#include "lib/agent.h"
#include "lib/domain.h"
#include "lib/eq.h"
#include "lib/mr.h"
#include "lib/mr_ext.h"
#include "lib/refs.h"
#include "lib/window.h"
#include "shm/breakage.h"
#include "shm/grace.h"
#include "shm/monitor.h"

/* A close under way. */
struct closing {
	struct cds_list_head link;     /* in domain->closing, mr_lock */
	struct shrimp_mr *mr;	       /* what is closed */
	struct shrimp_eq *eq;	       /* who is told, referenced */
	struct shrimp_eq_event *event; /* by this */
	uint64_t grace;		       /* when it is over; 0: at once */
	struct fi_eq_entry entry;      /* what it says */
};

/* Ending @mr may wait: for the monitor, and so for readers, or for a fault. */
static bool may_wait(const struct shrimp_mr *mr)
{
	return mr->odp ||
	       (mr->window && ((const struct shrimp_window *)mr)->joined);
}

/* So it is not ended now. With @wait it is as soon as nobody is at work. */
static bool is_late(const struct shrimp_mr *mr, bool wait)
{
	return may_wait(mr) &&
	       !(wait && rnic_monitor_over(rnic_monitor_round()));
}

/*
 * Takes the oldest if its period is over, *@ret 0, or cannot be had, and it may
 * be ended now; or NULL.
 */
static struct closing *take(struct shrimp_domain *d, bool wait, int *ret)
{
	struct closing *c = NULL;

	*ret = 0;
	pthread_mutex_lock(&d->mr_lock);
	if (!cds_list_empty(&d->closing)) {
		c = cds_list_first_entry(&d->closing, struct closing, link);
		if (c->grace && !RNIC_BROKEN(async_early))
			*ret = rnic_grace_look(&d->dev, c->grace);
		if (*ret == -EAGAIN || is_late(c->mr, wait))
			c = NULL;
	}
	if (c) {
		cds_list_del(&c->link);
		/* pairs with the look in shrimp_mr_reap(), a hint */
		rnic_sub32_acqrel(&d->nclosing, 1);
	}
	pthread_mutex_unlock(&d->mr_lock);
	return c;
}

static void end(struct closing *c, int ret)
{
	const struct fi_eq_err_entry err = {
		.fid = c->entry.fid,
		.context = c->entry.context,
		.data = c->entry.data,
		.err = -ret,
		.prov_errno = -ret,
	};

	if (!ret)
		shrimp_mr_destroy(c->mr);
	shrimp_eq_post_reserved(c->eq, c->event, FI_SHRIMP_MR_CLOSED, &c->entry,
				ret ? &err : NULL);
	free(c);
}

static bool reap(struct shrimp_domain *d, bool wait)
{
	struct closing *c;
	int ret;

	shrimp_mr_cache_tidy(d);
	/* acquire: pairs with the one who adds; a hint */
	while (shrimp_ref_count(&d->nclosing)) {
		c = take(d, wait, &ret);
		if (!c)
			return true;
		end(c, ret);
	}
	return false;
}

bool shrimp_mr_reap(struct shrimp_domain *d)
{
	return reap(d, true);
}

void shrimp_mr_reap_try(struct shrimp_domain *d)
{
	reap(d, false);
}

/* Room for all it takes. NULL: no memory. */
static struct closing *prepare(struct shrimp_mr *mr, struct shrimp_eq *eq,
			       void *context)
{
	struct closing *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->event = shrimp_eq_reserve(sizeof(c->entry));
	if (!c->event) {
		free(c);
		return NULL;
	}
	c->mr = mr;
	c->eq = eq;
	c->entry = (struct fi_eq_entry){ .fid = &mr->fid.fid,
					 .context = context,
					 .data = mr->fid.key };
	return c;
}

/* Last in the queue. True if the agent has to be told. */
static bool queue(struct shrimp_domain *d, struct closing *c)
{
	bool first;

	shrimp_ref_get(&c->eq->refs);
	shrimp_ref_get(&c->eq->pending);
	pthread_mutex_lock(&d->mr_lock);
	first = cds_list_empty(&d->closing);
	cds_list_add_tail(&c->link, &d->closing);
	shrimp_ref_get(&d->nclosing);
	pthread_mutex_unlock(&d->mr_lock);
	return first;
}

int shrimp_mr_close_async(struct fid_mr *fid, struct fid_eq *eq, void *context)
{
	struct shrimp_mr *mr = shrimp_mr_checked(fid);
	struct shrimp_domain *d = mr ? mr->domain : NULL;
	struct closing *c;
	int ret;

	if (!mr || mr->keeper || !eq || eq->fid.fclass != FI_CLASS_EQ ||
	    ((struct shrimp_eq *)eq)->fabric != d->fabric)
		return -FI_EINVAL;
	if (d->inherited)
		return -FI_EOPBADSTATE;
	c = prepare(mr, (struct shrimp_eq *)eq, context);
	if (!c)
		return -FI_ENOMEM;
	ret = shrimp_mr_withdraw(mr, &c->grace);
	if (ret) {
		shrimp_eq_unreserve(c->event);
		free(c);
		return ret;
	}
	/* without an agent others look, see shrimp_mr_reap() */
	if (queue(d, c) && !shrimp_agent_start(d))
		shrimp_agent_kick(d);
	return 0;
}
