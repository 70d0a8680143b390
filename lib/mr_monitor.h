/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * How the registration cache hears of memory that is unmapped, replaced, moved
 * or given up (FI_SHRIMP_MR_CACHE_MONITOR): one table of calls for each way.
 * What each covers is in doc/contract.md, R12.
 *
 *   uffd    the kernel tells (shm/monitor.h, shm/watch.h)
 *   notify  an allocator or runtime tells, before and after: unmap_begin and
 *           unmap_end of struct fi_ops_shrimp_cache
 *   off     nobody tells: only memory of the device is kept, whose addresses
 *           never mean anything else
 *
 * A way has a number, even if nothing is going on, odd while something is,
 * which differs after it. Who wants to keep what he finds out about a range
 * reads it, watches the range, finds out, makes what he keeps findable, and
 * asks whether all is as it was. Who marks makes the number odd first, marks
 * what can be found, and makes it even.
 */
#ifndef SHRIMP_MR_MONITOR_H
#define SHRIMP_MR_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/settings.h"
#include "shm/monitor.h"

/* A way. Addresses are those of pages. */
struct shrimp_mr_monitor {
	const char *name; /* as in the setting */
	/*
	 * Who changes memory may go on before it is marked, but not before the
	 * number is odd.
	 */
	bool late;
	/*
	 * @l is told of what is watched from now on. Any thread, may sleep.
	 * Returns 0 or a negative errno: this way is not to be had.
	 */
	int (*open)(struct rnic_listener *l);
	/* Partner; nothing is watched any more, and no thread is marking. */
	void (*close)(struct rnic_listener *l);
	/*
	 * Counted: what is mapped at @start to @end is watched. Any thread; a
	 * few system calls. Returns 0, 1 (look() has just said so) or a
	 * negative errno: it cannot be.
	 */
	int (*watch)(uint64_t start, uint64_t end);
	/*
	 * Grows a range to what had better be watched with it; NULL: as it is.
	 * Any thread, a few system calls.
	 */
	void (*widen)(uint64_t *start, uint64_t *end);
	/* Partner of watch, with the same values. */
	void (*unwatch)(uint64_t start, uint64_t end);
	/* 0: it is watched, and no change has begun that is not told yet. */
	int (*look)(uint64_t start, uint64_t end);
	/* The number. Acquire: what was marked before it became even. */
	uint64_t (*cycle)(void);
};

/*
 * The way that @wish stands for; for AUTO uffd: who finds that it cannot be
 * opened takes OFF. Static.
 */
const struct shrimp_mr_monitor *
shrimp_mr_monitor_of(enum shrimp_mrc_monitor wish);

/* The number of @m, even; if it is not after some 100 us, odd. Any thread. */
uint64_t shrimp_mr_monitor_quiet(const struct shrimp_mr_monitor *m);

/*
 * Watches pages @start to @end, and what had better be watched with them: what
 * is counted is @x[0] to @x[1]. False: they cannot be, all of them. Any thread.
 */
bool shrimp_mr_monitor_watch(const struct shrimp_mr_monitor *m, uint64_t start,
			     uint64_t end, uint64_t x[2]);

/*
 * unmap_begin and unmap_end of @start to @end: tells all listeners of the
 * process. Any thread; no lock, no memory.
 */
void shrimp_mr_notify_begin(uint64_t start, uint64_t end);
void shrimp_mr_notify_end(void); /* partner */

/*
 * @l, of a cache, is told of every shrimp_mr_notify_begin(). Any thread; the
 * partner waits for those under way.
 */
void shrimp_mr_notify_join(struct rnic_listener *l);
void shrimp_mr_notify_leave(struct rnic_listener *l); /* partner */

/*
 * Returns when no shrimp_mr_notify_begin() looks any more at what was taken
 * out of its sight before the call. Any thread; waits for those under way.
 */
void shrimp_mr_notify_pass(void);

/* Child after fork, its only thread: there are no listeners here. */
void shrimp_mr_notify_forked(void);

#endif /* SHRIMP_MR_MONITOR_H */
