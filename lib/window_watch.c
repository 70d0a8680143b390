/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Windows onto regions that the unmap monitor changes, on demand or watched: a
 * window has a version, and perhaps roots, of its own, so the monitor has to
 * know it, too.
 *
 *   owner, mr_lock held                     monitor, in a round
 *   slot reserved or rewritten: odd         Z1 frozen odd, full fence
 *   Z4 watched.mpt, full fence              its slot's version + 2
 *   regions gone? their roots 0             regions gone: G1, full fence
 *   version even                            told: regions gone? their roots 0
 *                                           Z2 frozen even
 *
 * A round that finds no slot has frozen the device before the version is even:
 * who looks it up finds that. A round that finds a region gone before the
 * window has its slot is seen by the owner, else the monitor sees the slot.
 *
 * A window joins the monitor's list when it is first bound to such a region,
 * and leaves when it is closed. It has no slot in between while it is bound to
 * nothing or suspended; the fields that a round may have begun to look at (the
 * parts, their regions, the list of ranges) stay until that round is over,
 * which is waited for together with readers.
 *
 * Exclusion: mr_lock; against the monitor, which takes no lock, as above.
 */
#include <errno.h>
#include <stddef.h>

#include "lib/domain.h"
#include "lib/odp.h"
#include "lib/window.h"
#include "shm/breakage.h"

/* ---- the monitor's thread, by its rules; or mr_lock held ---- */

/* What @w has of regions that are gone means nothing. */
static void drop_gone(struct shrimp_window *w, struct rnic_mpt *m)
{
	struct shrimp_mr *mr = &w->mr;

	for (size_t i = 0; i < w->nwatched; i++) {
		const struct shrimp_window_part *p = &w->part[i];

		if (!shrimp_odp_gone(p->mr))
			continue;
		/* relaxed: Z2, or the version, publishes it */
		if (!(mr->region.rights & RNIC_MR_LIST))
			rnic_store64_relaxed(&m->mtt, 0);
		for (size_t k = 0;
		     mr->region.rights & RNIC_MR_LIST && k < p->ranges; k++)
			rnic_mtt_list_drop(&mr->domain->mtt, mr->region.mtt,
					   p->first + k);
	}
}

/* rnic_told_fn. */
static void told(struct rnic_watched *x)
{
	struct shrimp_window *w =
		(struct shrimp_window *)((char *)x -
					 offsetof(struct shrimp_window,
						  watched));
	/* acquire: what the window is (Z4); after G1 */
	struct rnic_mpt *m = rnic_ptr_load_acquire(&x->mpt);

	if (m && !RNIC_BROKEN(window_told))
		drop_gone(w, m);
}

/* ---- the owner ---- */

int shrimp_window_watch(struct shrimp_window *w)
{
	int ret;

	if (!w->joined) {
		w->watched.told = told;
		ret = rnic_monitor_join_try(&w->mr.domain->dev, &w->watched,
					    NULL, &w->round);
		if (ret)
			return ret;
		w->joined = true;
	}
	return rnic_monitor_over(w->round) ? 0 : -EAGAIN;
}

void shrimp_window_live(struct shrimp_window *w)
{
	struct rnic_mpt_owner *t = &w->mr.domain->mpt;
	struct rnic_mpt *m = &t->mpt[w->mr.slot];

	w->nwatched = w->nparts;
	/* G2: before the look at what is gone; pairs with G1 in lib/odp.c */
	rnic_monitor_live(&w->watched, m);
	drop_gone(w, m);
	rnic_mpt_show(t, w->mr.slot);
}

void shrimp_window_dead(struct shrimp_window *w)
{
	if (!w->joined)
		return;
	rnic_monitor_live(&w->watched, NULL);
	w->round = rnic_monitor_round();
}

void shrimp_window_unwatch(struct shrimp_mr *mr)
{
	struct shrimp_window *w = (struct shrimp_window *)mr;

	if (w->joined)
		rnic_monitor_leave(&mr->domain->dev, &w->watched);
	w->joined = false;
}

/* shrimp_window_watch() of all windows onto @mr. */
static int watch_all(struct shrimp_mr *mr)
{
	struct shrimp_window_part *p;
	int ret = 0;

	cds_list_for_each_entry (p, &mr->parts, in_mr)
		if (!ret && p->window->mr.live)
			ret = shrimp_window_watch(p->window);
	return ret;
}

void shrimp_windows_watch(struct shrimp_mr *mr)
{
	struct shrimp_domain *d = mr->domain;
	int ret;

	while (mr->region.rights & RNIC_MR_WATCHED) {
		pthread_mutex_lock(&d->mr_lock);
		ret = watch_all(mr);
		pthread_mutex_unlock(&d->mr_lock);
		if (!ret)
			break;
		shrimp_odp_pass(d);
	}
}
