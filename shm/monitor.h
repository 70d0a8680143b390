/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The unmap monitor: when memory of a watched region leaves the address space,
 * nobody uses the region's translation of it any more (contract R12).
 *
 * One thread of the process. The thread that unmaps sleeps in its system call
 * until the monitor has read the event. What went away is told by the event
 * itself, so all regions that are watched are stopped before it is read:
 *
 *   thread that unmaps     monitor                         reader
 *   munmap: pages go
 *   event, sleep           poll
 *                          Z1 frozen odd, versions + 2
 *                          W1 full fence, membarrier
 *                          wait for readers inside
 *   returns                read the event
 *                          withdraw what lies there, windows onto it last
 *                          Z2 frozen even
 *                                                          A2 version
 *                                                          Z3 frozen
 *                                                          entries
 *                                                          frozen, version:
 *                                                          as before?
 *
 * A hit finds another version: it becomes a miss. A miss finds the device
 * frozen, or has looked before: then either the fence of the miss (M3 in
 * shm/grace.h) was before W1, and the wait sees it inside; or it sees Z1. No
 * announce line is looked at: a membarrier is always made. A translation that
 * was looked up before Z1 and kept has a version that is not current any more.
 *
 * What it does not close: the kernel gives the address to another thread's
 * mmap() before the event is there to be polled. A thread that maps memory
 * where it did not itself unmap may have it touched through the old
 * translation for the time the monitor takes to wake up.
 *
 * The monitor's rules: it takes no lock that another thread can hold,
 * allocates nothing, logs nothing, touches no memory of the application, and
 * has all signals blocked; its stack and the buffer for events are locked. So
 * the thread that unmaps may hold any lock, the allocator's for one, and
 * whatever another thread of this process waits for meanwhile. It waits for
 * readers that are inside and for nothing else. A dead one is found out within
 * some 10 ms; a stopped one holds up the munmap: the alternative is a touch of
 * what is mapped there next. Not for a signal handler: one that unmaps watched
 * memory and has interrupted a call of ours waits for ever.
 *
 * If this process dies, there is nobody to tell.
 */
#ifndef RNIC_MONITOR_H
#define RNIC_MONITOR_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "shm/atomic.h"

struct rnic_device;
struct rnic_listener;
struct rnic_mpt;
struct rnic_watched;

/* What became of memory that is watched. */
enum rnic_gone {
	RNIC_GONE_UNMAPPED,  /* it left the address space, or was replaced */
	RNIC_GONE_MOVED,     /* mremap(2) took it elsewhere */
	RNIC_GONE_DISCARDED, /* what it held was given up: madvise(2) */
	RNIC_GONE_LOST,	     /* not known: an event may have been missed */
	RNIC_GONE_TOLD,	     /* the application says so, not the monitor */
	RNIC_GONE_MERGED,    /* nothing: another one covers it; likewise */
	RNIC_GONE_UNSETTLED, /* not known: it changed meanwhile; likewise */
	RNIC_GONE_MAX
};

/*
 * What rnic_watched.gone is told of bytes @start to @end: in the monitor's
 * thread, by its rules. @unmapped: they left the address space; else what they
 * held was given up (madvise(2)), and the thread that does so goes on after
 * this was called. It withdraws their translation; nobody can look it up
 * meanwhile.
 */
typedef void (*rnic_gone_fn)(struct rnic_watched *w, uint64_t start,
			     uint64_t end, bool unmapped);

/*
 * What rnic_watched.told is: when all have been told of all that went away in a
 * round, and nobody can look anything up still. In the monitor's thread, by its
 * rules.
 */
typedef void (*rnic_told_fn)(struct rnic_watched *w);

/*
 * A region that is watched, or a window onto regions; part of the caller's
 * object.
 */
struct rnic_watched {
	rnic_aptr next;	   /* of its device's list */
	rnic_aptr *at;	   /* what points to it; under the monitor's lock */
	rnic_aptr mpt;	   /* struct rnic_mpt, while it has one */
	rnic_gone_fn gone; /* see there; or NULL */
	rnic_told_fn told; /* see there; or NULL */
};

/* A device with such regions; part of struct rnic_device. */
struct rnic_watched_dev {
	rnic_aptr next;		 /* of the list of devices */
	rnic_aptr regions;	 /* struct rnic_watched */
	struct rnic_device *dev; /* whose */
};

/*
 * One user more: starts the thread, if it does not run, and tries whether the
 * kernel does what it must. Any thread; may sleep. Returns 0 (partner:
 * rnic_monitor_put()), or, logged as information, what rnic_watch_open() says,
 * -EAGAIN (no thread), -ENOTSUP (the trial failed).
 */
int rnic_monitor_get(void);

/* True if @err of rnic_monitor_get() is a shortage, which may pass. */
static inline bool rnic_monitor_short(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM ||
	       err == -EAGAIN;
}

/* One user less; the last one, whose regions have left, ends the thread. */
void rnic_monitor_put(void);

/*
 * Waits until all that was unmapped before the call has been read, so that who
 * joins then is not told of it: the kernel gives an address to others before
 * it tells of what was there. The threads that unmap end this when they wake
 * up; it is for some 100 ms at most: others may go on to unmap. Any thread
 * outside a reader's section.
 */
void rnic_monitor_settle(void);

/*
 * @w, whose gone or told is set, is told of events that come from now on, when
 * this returns; only then may a range be armed for it (shm/watch.h), or a
 * translation be made. @mpt: its slot, or NULL until rnic_monitor_live(). Any
 * thread outside a reader's section; waits for the monitor if it is at work,
 * and so for readers. Partner: rnic_monitor_leave().
 */
void rnic_monitor_join(struct rnic_device *d, struct rnic_watched *w,
		       struct rnic_mpt *mpt);

/*
 * rnic_monitor_join() that never waits: @w is in the list when it returns 0,
 * but before round *@round is over it may have no slot that means anything, nor
 * anything that is translated. -EAGAIN: somebody waits for the monitor, see
 * rnic_monitor_wait().
 */
int rnic_monitor_join_try(struct rnic_device *d, struct rnic_watched *w,
			  struct rnic_mpt *mpt, uint64_t *round);

/*
 * @w has the slot @mpt, whose version is odd; the caller makes it even. It is
 * changed from now on (Z4): a round that is under way and has not seen it has
 * frozen the device. NULL: it has none any more; its version is odd, and the
 * monitor may still change it until rnic_monitor_round() is over. A full fence.
 * Any thread.
 */
void rnic_monitor_live(struct rnic_watched *w, struct rnic_mpt *mpt);

/*
 * The round that may know what was changed before the call as it was before,
 * or 0. Any thread; a full fence.
 */
uint64_t rnic_monitor_round(void);

/* True if @round is over: what the monitor did in it is seen. Any thread. */
bool rnic_monitor_over(uint64_t round);

/*
 * Waits until @round is over: the monitor ends it by itself, or when readers
 * have left. Any thread outside a reader's section.
 */
void rnic_monitor_pass(uint64_t round);

/* Waits for the monitor, and for who waits for it. Any thread, as that. */
void rnic_monitor_wait(void);

/*
 * @w is told nothing more when this returns. Any thread outside a reader's
 * section, who has not set @w->gone up to wait for it; waits as
 * rnic_monitor_join().
 */
void rnic_monitor_leave(struct rnic_device *d, struct rnic_watched *w);

/* True while nothing of @d that is watched is translated. Any thread. */
bool rnic_monitor_frozen(const struct rnic_device *d);

/*
 * Who keeps something about watched memory that is no translation which peers
 * may use: readers of devices are not stopped for it. Part of the caller's
 * object.
 */
struct rnic_listener {
	rnic_aptr next; /* of the list */
	/*
	 * Bytes @start to @end: in the monitor's thread, by its rules, after
	 * it made rnic_monitor_cycle() odd and before it makes it even. For
	 * RNIC_GONE_DISCARDED the thread that gives up may go on before.
	 */
	void (*gone)(struct rnic_listener *l, uint64_t start, uint64_t end,
		     enum rnic_gone what);
};

/*
 * @l is told of events that come from now on, when this returns; a monitor is
 * there. Any thread; waits as rnic_monitor_join(). Partner:
 * rnic_monitor_unlisten(), after which it is told nothing more.
 */
void rnic_monitor_listen(struct rnic_listener *l);
void rnic_monitor_unlisten(struct rnic_listener *l);

/*
 * Odd: the monitor reads events, or tells listeners of them. Any thread. With
 * rnic_watch_check() before: events of changes that began earlier were told if
 * it is even, and none was between two calls that return the same.
 */
uint64_t rnic_monitor_cycle(void);

/* What it did, for tests and statistics. */
struct rnic_monitor_stats {
	uint32_t tid;	   /* its thread; 0: it does not run */
	uint64_t events;   /* read */
	uint64_t freezes;  /* times the regions were stopped */
	uint64_t waits;	   /* readers that it waited for */
	uint64_t unfenced; /* membarriers that failed for good */
};

/* Fills *@s. Any thread. */
void rnic_monitor_stats(struct rnic_monitor_stats *s);

/* Child after fork, its only thread: there is no monitor here. */
void rnic_monitor_forked(void);

#endif /* RNIC_MONITOR_H */
