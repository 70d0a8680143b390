/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Regions on demand: pages become present at their first touch (contract R11),
 * and absent again when their memory goes (R12). The owner's side.
 *
 * The entry of a small page:
 *
 *   NOTHING --fault: CAS--> FAULTING(token) --CAS--> PRESENT(rights)
 *      ^                         |                      |
 *      +-------- invalidation: stored unconditionally --+
 *
 * Between the two CAS the page is watched, populated and pinned. If it is
 * invalidated meanwhile the second CAS fails, since no token is given twice;
 * then all of it is done again, on what is mapped there by now. A page that
 * was faulted in to be read may be read only: PRESENT changes its rights by
 * one CAS, with the same retry.
 *
 * Who faults holds o->lock: threads of the application for themselves, and
 * whoever drains a lane for a peer. Two faults of a page are one; the second
 * finds it present. Invalidation is the monitor's and takes no lock. Readers
 * walk beside both.
 *
 * Pins follow later: the monitor cannot give them back, so what it made absent
 * is unpinned at the next fault, or by rnic_odp_tidy(). The kernel has
 * forgotten the lock with the memory already.
 *
 * A refresh invalidates as well, with o->lock, while the key means nothing.
 *
 * A page's leaf names an address, or a place in the arena, or, if the monitor
 * watches it, in a file of the application's (shm/space.h).
 */
#ifndef RNIC_ODP_H
#define RNIC_ODP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "shm/device.h"
#include "shm/monitor.h"
#include "shm/mtt.h"
#include "shm/pin.h"

struct rnic_odp_block; /* private to odp.c */

/* What a region on demand is made of. */
struct rnic_odp_cfg {
	struct rnic_device *dev;   /* outlives it */
	struct rnic_mtt_pool *mtt; /* likewise */
	uint64_t va;		   /* first address */
	uint64_t length;	   /* bytes */
	enum rnic_pin_policy pin;  /* of present pages */
	bool watch;		   /* rnic_monitor_get() has returned 0 */
};

/* A region on demand. Private to its process. Zeroed: finished. */
struct rnic_odp {
	struct rnic_watched watched; /* first: what the monitor has */
	struct rnic_odp_cfg cfg;     /* as it was made */
	uint64_t root;		     /* of its translation; constant */
	pthread_mutex_t lock;	     /* all below but the counters; outer */
	/* to those of MTT, pins, watches */
	struct rnic_mpt *mpt; /* its slot, once it is live */
	bool joined;	      /* the monitor knows it */
	uint64_t round;	      /* joined in it: no page comes before its end */
	bool counted;	      /* its range is a watch */
	bool unpinnable;      /* a pin was refused: no more are tried */
	uint64_t token;	      /* last one given */
	struct rnic_odp_block ***pins; /* what is pinned, by table; or NULL */
	uint64_t spaces[RNIC_SPACES / 64]; /* a bit: we hold that file */
	rnic_a32 dirty;	      /* pins of absent pages may be there */
	rnic_a64 faults;      /* pages, for queries */
	rnic_a64 prefetched;  /* likewise */
	rnic_a64 invalidated; /* likewise */
};

/*
 * Makes @o with nothing present: one table page, whatever the length; no pin,
 * no look at what is mapped. Any thread. Returns 0, or as
 * rnic_mtt_make_empty(), with nothing left. Partner: rnic_odp_fini().
 */
int rnic_odp_init(struct rnic_odp *o, const struct rnic_odp_cfg *cfg);

/*
 * @o has slot @mpt, which nobody finds yet (rnic_mpt_reserve()): pages may come
 * from now on. Waits for nobody but who is in such a call.
 */
void rnic_odp_live(struct rnic_odp *o, struct rnic_mpt *mpt);

/* What is to be made present. */
struct rnic_odp_want {
	uint64_t va;   /* first address, in the region */
	uint64_t len;  /* bytes, not 0, in the region */
	bool write;    /* to be written, too */
	bool prefetch; /* by advice: all of it, or an error */
};

/*
 * Makes pages present: the first one and, as far as it goes, those after it;
 * with @w->prefetch all. What is invalidated as fast as it comes may be absent
 * again when it returns: look, and call once more. Any thread outside a
 * reader's section; sleeps as long as pages take to come, and for other faults
 * of the same region.
 * Returns 0, -EBUSY (the monitor, which is to hear of it, is at work: so that
 * nobody waits for it with a lock, the caller does, by rnic_monitor_wait(), or
 * calls again later), -EFAULT (the first page, or of a prefetch one, is not
 * mapped, or not so), -EAGAIN (of a prefetch: its pages go all the time),
 * -ENODEV (not live), -ENOSPC, -ENOMEM (no table page), or what rnic_pin() says
 * if pins are required.
 */
int rnic_odp_fault(struct rnic_odp *o, const struct rnic_odp_want *w);

/*
 * Makes the pages of @len bytes, not 0, at @va, in the region, absent, whatever
 * is mapped there by now, and gives back their pins and, if those are all, the
 * files they lie in. The region's key, and those of windows onto it, are
 * suspended and fenced: nobody uses what the pages were. A touch makes them
 * come anew. Any thread outside a reader's section; waits for faults.
 */
void rnic_odp_drop(struct rnic_odp *o, uint64_t va, uint64_t len);

/* Gives back pins of pages that are absent. Any thread; waits for no fault. */
void rnic_odp_tidy(struct rnic_odp *o);

/* Pages of a region on demand that follow each other and are alike. */
struct rnic_odp_look {
	uint64_t bytes; /* whole pages, at least one */
	uint64_t leaf;	/* its low bits say where they lie; 0: absent */
	bool pinned;	/* by the region */
};

/*
 * What the pages from that of @va on, in the region, are now: *@l ends where
 * they differ, or at a table's end, perhaps beyond the region. A table that is
 * not there is one look. Any thread outside a reader's section; waits for
 * faults.
 */
void rnic_odp_look(struct rnic_odp *o, uint64_t va, struct rnic_odp_look *l);

/* Pages that are present now, by a scan of the tables. Any thread. */
uint64_t rnic_odp_present(const struct rnic_odp *o);

/*
 * Ends @o: pins, files and watches are given back. Its key is withdrawn and
 * fenced, no fault is under way. The tables stay: rnic_mtt_free(o->root) is
 * the caller's. Any thread outside a reader's section; waits as
 * rnic_monitor_leave(). Zeroed memory is accepted.
 */
void rnic_odp_fini(struct rnic_odp *o);

#endif /* RNIC_ODP_H */
