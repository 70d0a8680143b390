/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Agent thread: progress of all endpoints of a domain, and with it what peers
 * ask the owner of memory to do (lib/serve.c).
 *
 * It also ends closes and posted invalidations whose grace period is over
 * (lib/mr_async.c, lib/window_post.c), of any endpoint.
 *
 * It leaves an endpoint alone that the application polls: as long as the polls
 * counted there move, it only looks again every LOOK_MS. With the others it
 * makes progress itself, arms, and sleeps in epoll until a peer rings.
 *
 * Locks: d->lock around the list of endpoints, so an endpoint is not closed
 * under it. Ends: by the stop word and its eventfd. Nothing of another
 * process is waited for: a sleep ends by the wake pipe, a peer's death, or
 * IDLE_MS.
 */
#include "lib/agent.h"

#include <errno.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "lib/endpoint.h"
#include "lib/mr.h"
#include "lib/progress.h"
#include "lib/refs.h"
#include "lib/tx.h"
#include "lib/window.h"
#include "shm/log.h"

enum {
	NAP_NS = 10000,	   /* while others want the lock */
	BUSY = 200,	   /* turns after the last one that found something */
	LOOK_MS = 2,	   /* while the application polls by itself */
	LOOK_LATE_MS = 10, /* likewise, if it has to share its core */
	IDLE_MS = 200,	   /* longest sleep */
	FENCE_MS = 1,	   /* while a grace period is waited for */
};

struct shrimp_agent {
	pthread_t thread;	      /* the thread */
	struct shrimp_domain *domain; /* whose */
	rnic_a32 stop;		      /* 1: end */
	unsigned int busy;	      /* turns before it may sleep */
	int epfd;		      /* kick and endpoints */
	int kick;		      /* eventfd */
};

/*
 * An application that gave its core away polls again when it gets it back: if
 * the agent took that for the end of its polling the two would arm and disarm
 * in turn.
 */
static int look_ms(void)
{
	return shrimp_oversubscribed() ? LOOK_LATE_MS : LOOK_MS;
}

/* True if the application polled @ep just now. */
static bool is_polled(struct shrimp_ep *ep, uint64_t now)
{
	/* relaxed: a hint */
	uint32_t polls = rnic_load32_relaxed(&ep->app_polls);

	if (now < ep->agent_leave)
		return true;
	if (polls == ep->agent_saw)
		return false;
	ep->agent_saw = polls;
	ep->agent_leave = now + look_ms();
	shrimp_ep_leave_alone(ep);
	return true;
}

/* Progress of what nobody polls. False: all are polled. */
static bool progress(struct shrimp_agent *a, uint64_t now)
{
	struct shrimp_ep *ep;
	bool any = false;

	if (a->busy)
		a->busy--;
	cds_list_for_each_entry (ep, &a->domain->eps, in_dom) {
		if (!ep->agent || is_polled(ep, now))
			continue;
		any = true;
		if (shrimp_ep_progress_agent(ep))
			a->busy = BUSY;
	}
	return any;
}

/* Completes posted invalidations. True if some are left. */
static bool end_fences(struct shrimp_domain *d)
{
	struct shrimp_ep *ep;
	bool more = false;

	if (!shrimp_ref_count(&d->fencing))
		return false;
	cds_list_for_each_entry (ep, &d->eps, in_dom) {
		shrimp_ep_lock(ep);
		if (shrimp_window_progress(ep))
			more = true;
		shrimp_ep_unlock(ep);
	}
	return more;
}

/*
 * Progress; returns for how long the agent may sleep then. After something was
 * done it looks again for a while first: whoever asked for it is likely to ask
 * for more.
 */
static int turn(struct shrimp_agent *a)
{
	uint64_t now = shrimp_now_ms();
	struct shrimp_ep *ep;
	int sleep = IDLE_MS, ms;

	if (end_fences(a->domain))
		sleep = FENCE_MS;
	if (progress(a, now) && a->busy)
		return 0;
	cds_list_for_each_entry (ep, &a->domain->eps, in_dom) {
		if (!ep->agent)
			continue;
		ms = IDLE_MS;
		if (now < ep->agent_leave)
			ms = look_ms();
		else if (!shrimp_ep_arm(ep))
			ms = shrimp_ep_waits(ep) ? look_ms() : 0;
		if (ms < sleep)
			sleep = ms;
	}
	return sleep;
}

static void doze(struct shrimp_agent *a, int ms)
{
	struct epoll_event ev[8];
	uint64_t x;

	if (epoll_wait(a->epfd, ev, 8, ms) > 0 &&
	    read(a->kick, &x, sizeof(x)) < 0 && errno != EAGAIN)
		rnic_log(RNIC_LOG_WARN, "agent: eventfd is broken");
}

/*
 * A busy agent would take the lock again before a thread that waits for it has
 * woken up. Each waiter gets it, and takes back its word.
 */
static void give_way(struct shrimp_domain *d)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	/* relaxed: a hint; the lock orders */
	while (rnic_load32_relaxed(&d->lock_wanted))
		nanosleep(&nap, NULL);
}

static void *agent_main(void *arg)
{
	struct shrimp_agent *a = arg;
	struct shrimp_domain *d = a->domain;

	/* acquire: what the stopper wrote before; nothing is published */
	while (!rnic_load32_acquire(&a->stop)) {
		bool closing = shrimp_mr_reap(d);
		int sleep;

		give_way(d);
		pthread_mutex_lock(&d->lock);
		sleep = turn(a);
		pthread_mutex_unlock(&d->lock);
		if (closing && sleep > FENCE_MS)
			sleep = FENCE_MS;
		if (sleep)
			doze(a, sleep);
	}
	return NULL;
}

/* Starts the thread with all signals blocked: they are the application's. */
static int spawn(struct shrimp_agent *a)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&a->thread, NULL, agent_main, a);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		rnic_log(RNIC_LOG_WARN, "agent: no thread: %s", strerror(ret));
	/* not EAGAIN: who registers would try it for ever */
	return ret ? -FI_ENOMEM : 0;
}

static int open_fds(struct shrimp_agent *a)
{
	struct epoll_event ev = { .events = EPOLLIN };

	a->epfd = epoll_create1(EPOLL_CLOEXEC);
	a->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->epfd < 0 || a->kick < 0 ||
	    epoll_ctl(a->epfd, EPOLL_CTL_ADD, a->kick, &ev)) {
		rnic_log(RNIC_LOG_WARN, "agent: cannot open its descriptors");
		return -FI_EMFILE;
	}
	return 0;
}

static void agent_free(struct shrimp_agent *a)
{
	if (a->epfd >= 0)
		close(a->epfd);
	if (a->kick >= 0)
		close(a->kick);
	free(a);
}

int shrimp_agent_start(struct shrimp_domain *d)
{
	struct shrimp_agent *a;
	int ret = 0;

	shrimp_domain_lock(d);
	if (d->agent)
		goto out;
	ret = -FI_ENOMEM;
	a = calloc(1, sizeof(*a));
	if (!a)
		goto out;
	a->domain = d;
	a->epfd = a->kick = -1;
	ret = open_fds(a);
	if (!ret)
		ret = spawn(a);
	if (ret) {
		agent_free(a);
		goto out;
	}
	d->agent = a;
	/* relaxed: a hint */
	rnic_store32_relaxed(&d->agent_runs, 1);
out:
	shrimp_domain_unlock(d);
	return ret;
}

int shrimp_agent_serve(struct shrimp_domain *d)
{
	struct shrimp_ep *ep;
	int ret = 0;

	/* relaxed: a flag that only rises; the lock orders what matters */
	if (rnic_load32_relaxed(&d->serves))
		return 0;
	ret = shrimp_agent_start(d);
	if (ret)
		return ret;
	shrimp_domain_lock(d);
	cds_list_for_each_entry (ep, &d->eps, in_dom)
		if (!ret)
			ret = shrimp_ep_serve(ep);
	if (!ret)
		rnic_store32_relaxed(&d->serves, 1);
	shrimp_domain_unlock(d);
	shrimp_agent_kick(d);
	return ret;
}

void shrimp_agent_kick(struct shrimp_domain *d)
{
	uint64_t one = 1;

	if (d->agent && write(d->agent->kick, &one, sizeof(one)) < 0 &&
	    errno != EAGAIN)
		rnic_log(RNIC_LOG_WARN, "agent: eventfd is broken");
}

int shrimp_agent_watch(struct shrimp_domain *d, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	if (!d->agent)
		return 0;
	return epoll_ctl(d->agent->epfd, EPOLL_CTL_ADD, fd, &ev) ? -FI_ENOMEM
								 : 0;
}

void shrimp_agent_stop(struct shrimp_domain *d)
{
	struct shrimp_agent *a = d->agent;

	if (!a)
		return;
	/* release: pairs with the load in agent_main(); publishes nothing */
	rnic_store32_release(&a->stop, 1);
	shrimp_agent_kick(d);
	pthread_join(a->thread, NULL);
	d->agent = NULL;
	agent_free(a);
}
