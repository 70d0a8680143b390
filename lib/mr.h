/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Memory regions, fi_mr(3): from a range of the application to an entry of
 * the MPT, and back.
 *
 *   CREATED --publish--> LIVE --close: invalidate, fence--> gone
 *                        LIVE --refresh: suspend, fence, change--> LIVE
 *                               (or BROKEN, if it failed: refresh once more)
 *
 * With FI_MR_ENDPOINT a region is bound to an endpoint and enabled first; with
 * the flag FI_RMA_EVENT it is enabled after it was bound to counters. We do not
 * ask for that flag (FI_MR_RMA_EVENT): a live region may be bound to them too.
 * An object belongs to its client, who does not close it twice or use it while
 * it is closed; the tables behind it have locks of their own. What windows
 * (lib/window.h), refreshes and closes of several threads share is under
 * domain.mr_lock, which nobody holds while it waits for readers.
 */
#ifndef SHRIMP_MR_H
#define SHRIMP_MR_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "lib/endpoint.h"
#include "shm/mpt.h"
#include "shm/vma.h"

struct shrimp_cached;
struct shrimp_domain;
struct shrimp_odp;

/* A region. */
struct shrimp_mr {
	struct fid_mr fid;		  /* first: what clients hold */
	struct shrimp_domain *domain;	  /* parent, referenced */
	struct shrimp_cached *keeper;	  /* whose region it is, or NULL */
	struct rnic_region region;	  /* what is in the MPT */
	struct iovec iov[SHRIMP_IOV_MAX]; /* the ranges */
	uint64_t leaf[SHRIMP_IOV_MAX];	  /* in a file of the client's; or 0 */
	size_t niov;			  /* how many */
	bool by_address;		  /* some of it peers cannot map */
	uint32_t pinned;		  /* a bit for each that is pinned */
	uint32_t slot;			  /* MPT slot, if live */
	bool user;			  /* the client chose the key */
	struct shrimp_cntr *cntr[2];	  /* remote reads, writes; or NULL */
	bool bound;			  /* to an endpoint */
	bool events;			  /* FI_RMA_EVENT: enabled later */
	struct cds_list_head counted;	  /* in domain->counted, mr_lock */
	bool live;			  /* published */
	bool leaving;			  /* withdrawn, not yet fenced */
	bool enabled;			  /* its key is good; or needs no MPT */
	bool window;			  /* head of a struct shrimp_window */
	uint64_t access;		  /* FI_ bits as registered */
	/* under domain->mr_lock */
	struct cds_list_head parts; /* of windows onto it */
	bool changing;		    /* a refresh is under way */
	bool broken;		    /* one failed: suspended */
	bool demand;		    /* FI_SHRIMP_ON_DEMAND */
	struct shrimp_odp *odp;	    /* on demand or watched, or NULL */
	/* by the registration cache */
	struct shrimp_cached *cached[SHRIMP_IOV_MAX]; /* in use, or NULL */
};

/* fi_mr_reg(3), fi_mr_regv(3), fi_mr_regattr(3) of a domain. */
extern struct fi_ops_mr shrimp_mr_ops;

/*
 * A peer read from (@writes: wrote to) the region in MPT slot @slot of @d, a
 * peer's word. Any thread; takes d->mr_lock.
 */
void shrimp_mr_event(struct shrimp_domain *d, uint64_t slot, bool writes);

/* ---- between the files of lib/mr*.c and lib/window*.c ---- */

/*
 * Checks @a and @flags of a registration (contract R1), the memory excepted.
 * Returns 0, -FI_EINVAL, -FI_ENOSYS.
 */
int shrimp_mr_check(const struct fi_mr_attr *a, uint64_t flags);

/*
 * Makes the object for @a, which was checked: nothing is pinned or published.
 * Returns NULL without memory. Partner: shrimp_mr_free().
 */
struct shrimp_mr *shrimp_mr_new(struct shrimp_domain *d,
				const struct fi_mr_attr *a, uint64_t flags);

/* Frees the object and its descriptor; nothing else is left of it. */
void shrimp_mr_free(struct shrimp_mr *mr);

/* The calls of fid_mr.fid; static. */
extern struct fi_ops shrimp_mr_fid_ops;

/* The rights (enum rnic_right) that FI_ bits @access mean in @d. */
uint32_t shrimp_mr_rights(const struct shrimp_domain *d, uint64_t access);

/* And back: the FI_ bits of @rights; what else they say is left out. */
uint64_t shrimp_mr_access(uint32_t rights);

/* PROT_ bits that memory must have for @access. */
int shrimp_mr_prot(uint64_t access);

/*
 * Has @mr watched for unmapping, if it is one that is; before publication.
 * Returns 0 or -FI_ENOMEM.
 */
int shrimp_mr_watch(struct shrimp_mr *mr);

/* True if the settings allow for @mr, which may be implicit (R11). */
bool shrimp_mr_allowed(const struct shrimp_mr *mr);

/* @mr was registered: counts it if it is implicit. */
void shrimp_mr_count_implicit(const struct shrimp_mr *mr);

/* Its memory is neither looked at nor pinned at the call (R1, R11). */
bool shrimp_mr_unseen(const struct shrimp_mr *mr);

/*
 * Checks and pins range @i, whose mapping is @map if the caller looked, else
 * NULL. Returns 0, or what rnic_pin_check() and rnic_pin() say.
 */
int shrimp_mr_pin_one(struct shrimp_mr *mr, size_t i,
		      const struct rnic_vma *map);

/* Undoes shrimp_mr_pin_one() of all ranges; nobody is inside. */
void shrimp_mr_unpin(struct shrimp_mr *mr);

/*
 * Makes the translation. Returns 0, -FI_ENOMEM or -FI_ENOSPC. Partner:
 * shrimp_mr_untranslate(), with the grace period after which it may be reused,
 * or 0.
 */
int shrimp_mr_translate(struct shrimp_mr *mr);
void shrimp_mr_untranslate(struct shrimp_mr *mr, uint64_t grace);

/* Range @i has no file, nor a cached look at it, any more; nobody is inside. */
void shrimp_mr_unlocate(struct shrimp_mr *mr, size_t i);

/*
 * The region of cache entry @e, over all of it, with the rights that it says:
 * not pinned, live if peers may use it, closed by its entry alone. Returns 0
 * with *@mr, -FI_ENOMEM, -FI_ENOSPC. Partner: shrimp_mr_drop().
 */
int shrimp_mr_keep(struct shrimp_cached *e, struct shrimp_mr **mr);

/* Closes it; waits for peers. Returns 0 or why it cannot be fenced. */
int shrimp_mr_drop(struct shrimp_mr *mr);

/*
 * A registration in @d said @ret. True if that was for want of slots, table
 * pages or memory, and the cache, which held some for nobody, has given them
 * back: the caller tries once more. Any thread; waits for peers then.
 */
bool shrimp_mr_shed(struct shrimp_domain *d, int ret);

/* True if it is to be live at the end of its registration. */
bool shrimp_mr_at_once(const struct shrimp_mr *mr);

/* True if its key, the user's, need not be known to anybody. */
bool shrimp_mr_private(const struct shrimp_mr *mr);

/* True if peers will ask the owner for some of what they may do with it. */
bool shrimp_mr_needs_agent(const struct shrimp_mr *mr);

/*
 * Withdraws the key. *@grace: the period after which nobody touches the memory
 * through it any more, 0: nobody does. Takes mr_lock. Returns 0, also again
 * after a fence that failed, or -FI_EBUSY: windows are bound to it, a refresh
 * or a posted operation is under way. Partner: shrimp_mr_settle().
 */
int shrimp_mr_withdraw(struct shrimp_mr *mr, uint64_t *grace);

/* The period of shrimp_mr_withdraw() is over: gives back slot and tables. */
void shrimp_mr_settle(struct shrimp_mr *mr);

/* shrimp_mr_settle(), unpins, and frees the object. */
void shrimp_mr_destroy(struct shrimp_mr *mr);

/*
 * Ends asynchronous closes of @d whose grace period is over. True if some are
 * left. Any thread outside a reader's section; takes mr_lock. Closes of regions
 * that the monitor knows are left while that is at work; they wait for it if it
 * begins just then.
 */
bool shrimp_mr_reap(struct shrimp_domain *d);

/* The same under an endpoint's lock: those are left to others in any case. */
void shrimp_mr_reap_try(struct shrimp_domain *d);

/* fi_mr_refresh(3). Takes mr_lock, waits for readers without it. */
int shrimp_mr_refresh(struct shrimp_mr *mr, const struct iovec *iov, size_t n);

#endif /* SHRIMP_MR_H */
