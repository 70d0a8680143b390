/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Agent thread: progress of all endpoints of a domain.
 *
 * It leaves an application that polls alone: as long as the polls counted by
 * the endpoints move, it only looks again every LOOK_MS. Otherwise it makes
 * progress itself, arms, and sleeps in epoll until a peer rings.
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
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/endpoint.h"
#include "lib/progress.h"
#include "shm/log.h"

enum {
	LOOK_MS = 1,   /* while the application polls by itself */
	IDLE_MS = 200, /* longest sleep */
};

struct shrimp_agent {
	pthread_t thread;	      /* the thread */
	struct shrimp_domain *domain; /* whose */
	rnic_a32 stop;		      /* 1: end */
	int epfd;		      /* kick and endpoints */
	int kick;		      /* eventfd */
};

/* Polls that the application made since the last look: a moving number. */
static uint64_t app_polls(struct shrimp_domain *d)
{
	struct shrimp_ep *ep;
	uint64_t n = 0;

	cds_list_for_each_entry (ep, &d->eps, in_dom)
		/* relaxed: a hint */
		n += rnic_load32_relaxed(&ep->app_polls);
	return n;
}

/* Progress of all; true if all are armed and the agent may sleep. */
static bool turn(struct shrimp_agent *a)
{
	struct shrimp_ep *ep;
	bool sleep = true;

	cds_list_for_each_entry (ep, &a->domain->eps, in_dom) {
		shrimp_ep_progress_agent(ep);
		sleep = shrimp_ep_arm(ep) && sleep;
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

static void *agent_main(void *arg)
{
	struct shrimp_agent *a = arg;
	struct shrimp_domain *d = a->domain;
	uint64_t seen = 0;

	/* acquire: what the stopper wrote before; nothing is published */
	while (!rnic_load32_acquire(&a->stop)) {
		uint64_t polls;
		bool sleep = false;

		pthread_mutex_lock(&d->lock);
		polls = app_polls(d);
		if (polls == seen)
			sleep = turn(a);
		pthread_mutex_unlock(&d->lock);
		if (polls != seen)
			doze(a, LOOK_MS);
		else if (sleep)
			doze(a, IDLE_MS);
		seen = polls;
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
	return ret ? -FI_EAGAIN : 0;
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

	pthread_mutex_lock(&d->lock);
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
	if (ret)
		agent_free(a);
	else
		d->agent = a;
out:
	pthread_mutex_unlock(&d->lock);
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
