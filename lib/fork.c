/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * fork handlers and the end of the library.
 */
#include "lib/fork.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <unistd.h>
#include <urcu/urcu-bp.h>

#include "lib/agent.h"
#include "lib/cntr.h"
#include "lib/cq.h"
#include "lib/domain.h"
#include "lib/endpoint.h"
#include "lib/fabric.h"
#include "lib/mr_monitor.h"
#include "shm/arena.h"
#include "shm/exec.h"
#include "shm/monitor.h"
#include "shm/pin.h"
#include "shm/proc.h"
#include "shm/window.h"

static int watch_error;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/*
 * Locks that a thread of the parent held at the fork, the agent for one, are
 * held for ever here: calls of the child must not spin on them. Nor may they
 * look into lanes, which were not inherited.
 */
static void free_locks(struct shrimp_ep *ep)
{
	rnic_spin_init(&ep->lock);
	for (size_t i = 0; i < ep->ncntrs; i++)
		rnic_spin_init(&ep->cntrs[i]->eps.lock);
}

/* Plain stores: the child has one thread yet. */
static void drop(struct shrimp_domain *d)
{
	struct shrimp_ep *ep;
	struct shrimp_cq *cq;

	d->inherited = true;
	d->fabric->inherited = true;
	cds_list_for_each_entry (ep, &d->eps, in_dom) {
		ep->ready = false;
		free_locks(ep);
		if (ep->epfd >= 0)
			close(ep->epfd);
		if (ep->service_fd >= 0)
			close(ep->service_fd);
		if (ep->nap_fd >= 0)
			close(ep->nap_fd);
		close(ep->place.wake_rd);
		close(ep->place.wake_wr);
		ep->epfd = ep->service_fd = ep->nap_fd = -1;
	}
	cds_list_for_each_entry (cq, &d->cqs, in_dom)
		shrimp_cq_forked(cq);
	rnic_arena_fork_child(&d->dev.user);
	rnic_device_forked(&d->dev);
}

/* ---- around the fork: memory of the device is copied by the child ---- */

static void prepare_one(struct shrimp_domain *d, void *arg)
{
	(void)arg;
	rnic_arena_fork_prepare(&d->dev.user);
}

static void parent_one(struct shrimp_domain *d, void *arg)
{
	(void)arg;
	rnic_arena_fork_parent(&d->dev.user);
}

static void prepare(void)
{
	/* until parent() or child(): no domain comes or goes */
	shrimp_domain_fork_lock();
	shrimp_domain_each_locked(prepare_one, NULL);
	/* last: who waits for readers may hold the lock of domains */
	urcu_bp_before_fork();
}

static void parent(void)
{
	urcu_bp_after_fork_parent();
	shrimp_domain_each_locked(parent_one, NULL);
	shrimp_domain_fork_unlock();
}

/* The child has one thread; locks that others held stay taken for ever. */
static void child(void)
{
	struct shrimp_domain *d;

	/* readers of the parent's other threads are forgotten */
	urcu_bp_after_fork_child();
	while ((d = shrimp_domain_pop_forked()))
		drop(d);
	rnic_proc_forked();
	rnic_window_forked();
	rnic_exec_forked();
	rnic_pin_forked();
	rnic_monitor_forked();
	shrimp_mr_notify_forked();
}

static void watch(void)
{
	watch_error = pthread_atfork(prepare, parent, child) ? -FI_ENOMEM : 0;
}

int shrimp_fork_watch(void)
{
	pthread_once(&once, watch);
	return watch_error;
}

static void stop_agent(struct shrimp_domain *d, void *arg)
{
	(void)arg;
	shrimp_agent_stop(d);
}

void shrimp_cleanup(void)
{
	/* a forked child has no domains but its own */
	shrimp_domain_each(stop_agent, NULL);
}
