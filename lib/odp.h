/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Regions whose translation changes while they live: on demand (shm/odp.h,
 * contract R11), or watched by the unmap monitor (shm/monitor.h, R12).
 *
 * Locks: domain.odp_lock protects the list of regions on demand and who uses
 * them; inner to an endpoint's lock, and not held while pages come. A region's
 * own lock is taken outside of it.
 */
#ifndef SHRIMP_ODP_H
#define SHRIMP_ODP_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/mr.h"

struct fi_shrimp_mr_info;
struct rnic_odp_look;

/* Readies what @d has for such regions. No error. */
void shrimp_odp_domain_init(struct shrimp_domain *d);

/* Gives it back; @d has no region any more. */
void shrimp_odp_domain_fini(struct shrimp_domain *d);

/* A region of the whole address space is made: counts it. */
void shrimp_odp_implicit(struct shrimp_domain *d);

/*
 * The translation of @mr, which is on demand: sets region.mtt and bits of
 * region.rights. Returns 0 or as rnic_odp_init(). Partner: shrimp_odp_leave();
 * the tables stay with the region.
 */
int shrimp_odp_make(struct shrimp_mr *mr);

/*
 * Has the memory of @mr, which has been checked, watched if the settings say
 * so; what cannot be watched is not. May wait, see rnic_monitor_settle().
 * Returns 0 or -FI_ENOMEM. Partner: shrimp_odp_leave().
 */
int shrimp_odp_watch(struct shrimp_mr *mr);

/*
 * @mr has its slot, which nobody finds yet: faults and the monitor know it from
 * now on. Of a region that is neither on demand nor watched, nothing.
 */
void shrimp_odp_live(struct shrimp_mr *mr);

/*
 * True if memory of @mr, which is watched, has left the address space, and its
 * translation with it. Any thread, the monitor's, too.
 */
bool shrimp_odp_gone(const struct shrimp_mr *mr);

/*
 * True if @mr, of the registration cache, is watched only for when nobody uses
 * it: who does finds at his addresses what is mapped there, as with a region
 * that is not watched.
 */
bool shrimp_odp_spares(const struct shrimp_mr *mr);

/*
 * The translations of the @n ranges of @iov, all of them if @n is 0, of region
 * on demand @mr, whose keys are suspended and fenced, are dropped.
 */
void shrimp_odp_renew(struct shrimp_mr *mr, const struct iovec *iov, size_t n);

/*
 * Returns when the monitor, if @d uses it, is not in a round that began before
 * the call, and nobody waits for one. Any thread outside a reader's section; no
 * lock is held; waits as rnic_monitor_join().
 */
void shrimp_odp_pass(struct shrimp_domain *d);

/* What fi_shrimp_mr_info counts of @mr, if it is on demand. */
void shrimp_odp_count(const struct shrimp_mr *mr, struct fi_shrimp_mr_info *f);

/* rnic_odp_look() of @va in region on demand @mr. */
void shrimp_odp_look(const struct shrimp_mr *mr, uint64_t va,
		     struct rnic_odp_look *l);

/*
 * Ends what make or watch began: @mr is withdrawn and fenced, or was never
 * live. Waits for faults under way, and as rnic_monitor_leave(). Neither:
 * nothing.
 */
void shrimp_odp_leave(struct shrimp_mr *mr);

/* Pins of pages that are absent are given back. Any thread. */
void shrimp_odp_tidy(struct shrimp_domain *d);

/* Bytes that somebody wants to touch. */
struct shrimp_page {
	uint64_t key;	 /* as he has it */
	uint64_t addr;	 /* first byte, as the key is used */
	uint64_t len;	 /* bytes */
	uint32_t rights; /* that he needs: enum rnic_right */
};

/*
 * Sees to it that a lookup of the first byte of @p, whose words nobody has
 * checked, finds something. Any thread outside a reader's section; sleeps as
 * long as pages take to come. Returns 0 (look again), -EBUSY (not now: the
 * monitor is at work), -ENOKEY, -EACCES, -ERANGE, -EFAULT (nothing is mapped
 * there, or not so), or what rnic_odp_fault() says.
 */
int shrimp_odp_page(struct shrimp_domain *d, const struct shrimp_page *p);

/* fi_ops_shrimp_mr.advise, see there. */
int shrimp_odp_advise(struct fid_mr *fid, size_t off, size_t len,
		      uint32_t advice);

/* Counts a page request of a peer's. */
void shrimp_odp_requested(struct shrimp_domain *d);

#endif /* SHRIMP_ODP_H */
