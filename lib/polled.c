/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Lists of endpoints to poll.
 */
#include "lib/polled.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "lib/progress.h"
#include "lib/wait.h"

enum { FIRST_ROOM = 4 }; /* most queues have one endpoint */

static struct shrimp_polled_ep *find(struct shrimp_polled *p,
				     const struct shrimp_ep *ep)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->eps[i].ep == ep)
			return &p->eps[i];
	return NULL;
}

static int add(struct shrimp_polled *p, struct shrimp_ep *ep)
{
	struct shrimp_polled_ep *e = find(p, ep);

	if (e) {
		e->uses++;
		return 0;
	}
	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : FIRST_ROOM;
		void *t = realloc(p->eps, room * sizeof(*p->eps));

		if (!t)
			return -FI_ENOMEM;
		p->eps = t;
		p->room = room;
	}
	p->eps[p->n++] = (struct shrimp_polled_ep){ .ep = ep, .uses = 1 };
	return 0;
}

int shrimp_polled_attach(struct shrimp_polled *p, struct shrimp_ep *ep,
			 struct shrimp_wait_member *w)
{
	int ret = shrimp_wait_add_fd(w, shrimp_ep_wait_fd(ep));

	if (ret)
		return ret;
	rnic_spin_lock(&p->lock);
	ret = add(p, ep);
	rnic_spin_unlock(&p->lock);
	if (ret)
		shrimp_wait_del_fd(w, shrimp_ep_wait_fd(ep));
	return ret;
}

void shrimp_polled_detach(struct shrimp_polled *p, struct shrimp_ep *ep,
			  struct shrimp_wait_member *w)
{
	struct shrimp_polled_ep *e;

	rnic_spin_lock(&p->lock);
	e = find(p, ep);
	if (e && !--e->uses)
		*e = p->eps[--p->n];
	rnic_spin_unlock(&p->lock);
	shrimp_wait_del_fd(w, shrimp_ep_wait_fd(ep));
}

void shrimp_polled_progress(struct shrimp_polled *p,
			    struct shrimp_cq_sink *sink)
{
	if (RNIC_LIKELY(p->n == 1)) {
		shrimp_ep_progress(p->eps[0].ep, sink);
		return;
	}
	for (size_t i = 0; i < p->n; i++)
		shrimp_ep_progress(p->eps[i].ep, sink);
}

bool shrimp_polled_arm(struct shrimp_polled *p)
{
	bool sleep = true;

	rnic_spin_lock(&p->lock);
	for (size_t i = 0; i < p->n && sleep; i++)
		sleep = shrimp_ep_arm(p->eps[i].ep);
	rnic_spin_unlock(&p->lock);
	return sleep;
}

void shrimp_polled_disarm(struct shrimp_polled *p)
{
	rnic_spin_lock(&p->lock);
	for (size_t i = 0; i < p->n; i++)
		shrimp_ep_disarm(p->eps[i].ep);
	rnic_spin_unlock(&p->lock);
}

void shrimp_polled_poke(struct shrimp_polled *p)
{
	rnic_spin_lock(&p->lock);
	for (size_t i = 0; i < p->n; i++)
		shrimp_ep_disarm(p->eps[i].ep);
	shrimp_polled_progress(p, NULL);
	rnic_spin_unlock(&p->lock);
}

bool shrimp_polled_busy(struct shrimp_polled *p)
{
	bool busy;

	rnic_spin_lock(&p->lock);
	busy = p->n;
	rnic_spin_unlock(&p->lock);
	return busy;
}

void shrimp_polled_fini(struct shrimp_polled *p)
{
	free(p->eps);
}
