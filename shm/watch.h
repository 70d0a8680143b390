/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Ranges of this process's memory whose unmapping the kernel tells of: a
 * userfaultfd(2) whose ranges are registered for write-protection, which is
 * never used, so that no access ever faults because of it.
 *
 * Watches do not nest in the kernel, and registering a range skips its holes
 * in silence (what is mapped there later is not watched). So they are counted
 * per page range, as pins are (shm/pin.h), and whoever relies on one arms it
 * again after each change of the mappings. One mutex protects the table; it is
 * for the threads of the application and the agents, never for the monitor.
 *
 * Who waits for an event is the thread that unmaps, in its system call, until
 * the event is read (shm/monitor.h).
 */
#ifndef RNIC_WATCH_H
#define RNIC_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Opens the descriptor, for user mode only where the kernel knows that, with
 * events of munmap(2), madvise(2) and mremap(2). One thread; not opened yet.
 * Returns it (non-blocking, close-on-exec), or a negative errno: -ENOSYS,
 * -EPERM, -EINVAL (a kernel without), -EMFILE. Partner: rnic_watch_close().
 */
int rnic_watch_open(void);

/*
 * Ends all watches, each range by itself, then closes: a descriptor that a
 * child has inherited must not make our munmap(2) wait for ever. No other call
 * is under way. Not open: nothing.
 */
void rnic_watch_close(void);

/*
 * Counts the pages of @len bytes at @addr as watched; nothing is armed yet.
 * Any thread. Returns 0, -ENOMEM, -ENODEV (not open), -ENOSPC (logged as
 * information): each run of watched pages splits off two mappings, and those
 * and what pins cause are a quarter of vm.max_map_count already. Partner:
 * rnic_watch_put(), with the same values.
 */
int rnic_watch_get(uint64_t addr, uint64_t len);

/*
 * rnic_watch_get(). @now: rnic_monitor_cycle(). *@armed: all of it was counted,
 * and noted by rnic_watch_armed_at() with the same even number: since no event
 * was read meanwhile it is watched, and needs no rnic_watch_arm().
 */
int rnic_watch_get_at(uint64_t addr, uint64_t len, uint64_t now, bool *armed);

/*
 * All pages of the @len bytes at @addr, which are counted, were armed after
 * rnic_monitor_cycle() was @now. Any thread.
 */
void rnic_watch_armed_at(uint64_t addr, uint64_t len, uint64_t now);

/*
 * Arms the pages of @len bytes at @addr, which are counted: what is mapped
 * there now is watched. Any thread; a system call. Returns 0, or that it
 * cannot be: -EINVAL (a mapping of a kind that cannot, or none at all),
 * -EBUSY (another one watches it), -EPERM (not writable, of a file), -ENODEV
 * (not open), -ENOMEM. Then nothing is known of any of it.
 */
int rnic_watch_arm(uint64_t addr, uint64_t len);

/*
 * Looks whether one watched mapping holds all pages of @len bytes at @addr, and
 * no change of watched memory is under way: from when the kernel begins one,
 * before it can give the address to another mapping, until its event was
 * read. Any thread; one system call. Returns 0, -EAGAIN (a change is under
 * way), -ENOENT (not all is watched, or it is two mappings), -ENODEV (not
 * open, or closed by somebody else). Whose watch it is the kernel does not
 * say. Of a file that is shared the pages from the first on that have no
 * entry in the page table get one, up to one that has: a first page that was
 * touched keeps that short. What was read of the mapping before, and is the
 * same after it, was so all the time.
 */
int rnic_watch_check(uint64_t addr, uint64_t len);

/*
 * True if no change of watched memory is under way, see rnic_watch_check(): all
 * that was unmapped before the call has been read. Any thread; a system call.
 */
bool rnic_watch_quiet(void);

/*
 * One count less; what is counted no more is watched no more, nor what its
 * mapping has grown by. Any thread.
 */
void rnic_watch_put(uint64_t addr, uint64_t len);

/*
 * Ends the watch of the @len bytes at @addr in the kernel, whatever is
 * counted: mremap(2) took it along. Also for the monitor: a system call, no
 * lock.
 */
void rnic_watch_disarm(uint64_t addr, uint64_t len);

/*
 * For the monitor: rnic_watch_disarm() of what mremap(2) has put there, @len
 * bytes long before; if it has grown, what is behind is watched as well, which
 * the next get, put or sweep ends. A system call, no lock.
 */
void rnic_watch_moved(uint64_t addr, uint64_t len);

/* Ends watches that what has moved took along. Any thread. */
void rnic_watch_sweep(void);

/* Ranges in the table, for tests. Any thread. */
uint64_t rnic_watch_ranges(void);

/* Mappings that watches may have caused. Any thread. */
uint64_t rnic_watch_mappings(void);

/*
 * Child after fork, its only thread: closes the descriptor and forgets the
 * table. The child's mappings are not watched.
 */
void rnic_watch_forked(void);

#endif /* RNIC_WATCH_H */
