/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Watches: an array of page ranges that do not overlap, in the order of their
 * addresses, each with its count.
 *
 * Exclusion: get, put and close by the mutex. Arming takes no lock: who arms
 * has counted the range, so nobody else's put disarms it. The descriptor is
 * opened before and closed after all of them.
 */
#include "shm/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/atomic.h"
#include "shm/layout.h"
#include "shm/log.h"
#include "shm/vma.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1 /* Linux 5.11; older ones answer EINVAL */
#endif

enum {
	EVENTS = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE |
		 UFFD_FEATURE_EVENT_REMAP,
	ROOM = 64,	  /* first size of the table */
	MAPS_PER_RUN = 2, /* a watched run splits off two mappings */
};

/* Pages with the same count, which is not 0. */
struct range {
	uint64_t start; /* first address */
	uint64_t end;	/* last address + 1 */
	uint64_t count; /* who wants them watched */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* table; inner */
static struct range *table;				 /* by address */
static size_t n, room;					 /* used; allocated */
static uint64_t runs;	    /* maximal runs of ranges, whatever their counts */
static rnic_a32 descriptor; /* + 1; 0: not open */

/* -1 if it is not open. Relaxed: opened before any watch, closed after all. */
static int fd_now(void)
{
	return (int)rnic_load32_relaxed(&descriptor) - 1;
}

/* ---- the kernel ---- */

static int open_fd(void)
{
	int flags = O_CLOEXEC | O_NONBLOCK;
	long fd = syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY);

	if (fd < 0 && errno == EINVAL)
		fd = syscall(SYS_userfaultfd, flags);
	return fd < 0 ? -errno : (int)fd;
}

int rnic_watch_open(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = EVENTS };
	int fd = open_fd();

	if (fd < 0)
		return fd;
	if (ioctl(fd, UFFDIO_API, &api)) {
		int err = errno;

		close(fd);
		return -err;
	}
	rnic_store32_relaxed(&descriptor, (uint32_t)fd + 1);
	return fd;
}

int rnic_watch_arm(uint64_t addr, uint64_t len)
{
	struct uffdio_register r = {
		.range = { .start = rnic_page_down(addr),
			   .len = rnic_page_up(addr + len) -
				  rnic_page_down(addr) },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	if (fd_now() < 0)
		return -ENODEV;
	return ioctl(fd_now(), UFFDIO_REGISTER, &r) ? -errno : 0;
}

/*
 * Asks for what a watch for write-protection never needs. The kernel looks for
 * changes under way first, then whether one mapping with a watch holds the
 * range, and then says what it thinks of the request: whatever that is.
 */
int rnic_watch_check(uint64_t addr, uint64_t len)
{
	struct uffdio_continue c = {
		.range = { .start = rnic_page_down(addr),
			   .len = rnic_page_up(addr + len) -
				  rnic_page_down(addr) },
		.mode = UFFDIO_CONTINUE_MODE_DONTWAKE,
	};

	if (fd_now() < 0)
		return -ENODEV;
	if (ioctl(fd_now(), UFFDIO_CONTINUE, &c) &&
	    (errno == EAGAIN || errno == ENOENT))
		return -errno;
	return 0;
}

static int disarm(uint64_t s, uint64_t e)
{
	struct uffdio_range r = { .start = s, .len = e - s };

	return ioctl(fd_now(), UFFDIO_UNREGISTER, &r);
}

void rnic_watch_disarm(uint64_t addr, uint64_t len)
{
	disarm(rnic_page_down(addr), rnic_page_up(addr + len));
}

/*
 * Ends the watch of what is mapped there by now: mapping by mapping if some of
 * it is of a kind that was never watched.
 */
static void release(uint64_t s, uint64_t e)
{
	struct rnic_vma v;

	if (!disarm(s, e))
		return;
	while (s < e && !rnic_vma_next(s, &v) && v.start < e) {
		uint64_t from = v.start > s ? v.start : s;
		uint64_t to = v.end < e ? v.end : e;

		disarm(from, to);
		s = to;
	}
}

/* ---- the table, the lock is held ---- */

/* The first range that ends behind @addr. */
static size_t find(uint64_t addr)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (table[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void insert(size_t i, struct range r)
{
	memmove(&table[i + 1], &table[i], (n++ - i) * sizeof(r));
	table[i] = r;
}

static void drop(size_t i)
{
	memmove(&table[i], &table[i + 1], (--n - i) * sizeof(*table));
}

/* Room for what one call can add: two cuts, and a gap before each range. */
static int reserve(void)
{
	size_t want = 2 * n + 4;
	struct range *t;

	if (want <= room)
		return 0;
	want = want < ROOM ? ROOM : 2 * want;
	t = reallocarray(table, want, sizeof(*t));
	if (!t) {
		rnic_log(RNIC_LOG_WARN, "watch: no memory for %zu ranges",
			 want);
		return -ENOMEM;
	}
	table = t;
	room = want;
	return 0;
}

/* Runs that @s to @e, which is not in the table, touches. */
static uint64_t joins(uint64_t s, uint64_t e)
{
	size_t i = find(s), j = find(e);

	return (i && table[i - 1].end == s) + (j < n && table[j].start == e);
}

/* There are @more runs more, or fewer. The lock is held. */
static void add_runs(int64_t more)
{
	runs += (uint64_t)more;
	rnic_vma_count(more * MAPS_PER_RUN);
}

/*
 * A call adds a run at most, and only if it touches none. Those that a put
 * makes of one by its middle are not refused, but count.
 */
static int check_limit(uint64_t s, uint64_t e)
{
	size_t i = find(s ? s - 1 : s);
	struct rnic_vma_budget b;

	if (i < n && table[i].start <= e)
		return 0;
	if (rnic_vma_room(MAPS_PER_RUN, &b))
		return 0;
	rnic_log(RNIC_LOG_INFO,
		 "watch: 0x%" PRIx64 "-0x%" PRIx64 " refused: pins and watches "
		 "cause %" PRIu64 " of at most %" PRIu64 " mappings (a quarter "
		 "of vm.max_map_count)",
		 s, e, b.caused, b.limit);
	return -ENOSPC;
}

/* Cuts the range around @at, if @at is not an end of it already. */
static void cut(uint64_t at)
{
	size_t i = find(at);
	struct range tail;

	if (i == n || table[i].start >= at)
		return;
	tail = table[i];
	table[i].end = at;
	tail.start = at;
	insert(i + 1, tail);
}

/* Makes neighbours with the same count one, from before @s to behind @e. */
static void merge(uint64_t s, uint64_t e)
{
	size_t i = find(s ? s - 1 : s);

	while (i + 1 < n && table[i].start <= e) {
		if (table[i].end == table[i + 1].start &&
		    table[i].count == table[i + 1].count) {
			table[i].end = table[i + 1].end;
			drop(i + 1);
		} else {
			i++;
		}
	}
}

static void add(uint64_t s, uint64_t e)
{
	uint64_t at = s;

	for (size_t i = find(s); at < e; i++) {
		uint64_t gap = i < n && table[i].start < e ? table[i].start : e;

		if (at < gap) {
			add_runs(1 - (int64_t)joins(at, gap));
			insert(i, (struct range){ at, gap, 1 });
		} else {
			gap = table[i].end;
			table[i].count++;
		}
		at = gap;
	}
}

static void subtract(uint64_t s, uint64_t e)
{
	size_t i = find(s);

	while (i < n && table[i].start < e) {
		struct range r = table[i];

		if (--table[i].count) {
			i++;
			continue;
		}
		drop(i);
		add_runs((int64_t)joins(r.start, r.end) - 1);
		release(r.start, r.end);
	}
}

/* ---- calls ---- */

int rnic_watch_get(uint64_t addr, uint64_t len)
{
	uint64_t s = rnic_page_down(addr), e = rnic_page_up(addr + len);
	int ret;

	if (fd_now() < 0)
		return -ENODEV;
	pthread_mutex_lock(&lock);
	ret = check_limit(s, e);
	if (!ret)
		ret = reserve();
	if (!ret) {
		cut(s);
		cut(e);
		add(s, e);
		merge(s, e);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

bool rnic_watch_held(uint64_t addr, uint64_t len)
{
	uint64_t s = rnic_page_down(addr), e = rnic_page_up(addr + len);

	pthread_mutex_lock(&lock);
	for (size_t i = find(s); i < n && table[i].start <= s && s < e; i++)
		s = table[i].end;
	pthread_mutex_unlock(&lock);
	return s >= e;
}

void rnic_watch_put(uint64_t addr, uint64_t len)
{
	uint64_t s = rnic_page_down(addr), e = rnic_page_up(addr + len);

	pthread_mutex_lock(&lock);
	if (reserve()) {
		rnic_log(RNIC_LOG_WARN,
			 "watch: %" PRIu64 " bytes at 0x%" PRIx64
			 " stay watched",
			 len, addr);
	} else {
		cut(s);
		cut(e);
		subtract(s, e);
		merge(s, e);
	}
	pthread_mutex_unlock(&lock);
}

void rnic_watch_close(void)
{
	int fd = fd_now();

	if (fd < 0)
		return;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n; i++)
		release(table[i].start, table[i].end);
	free(table);
	table = NULL;
	n = room = 0;
	add_runs(-(int64_t)runs);
	rnic_store32_relaxed(&descriptor, 0);
	pthread_mutex_unlock(&lock);
	close(fd);
}

uint64_t rnic_watch_ranges(void)
{
	uint64_t ranges;

	pthread_mutex_lock(&lock);
	ranges = n;
	pthread_mutex_unlock(&lock);
	return ranges;
}

uint64_t rnic_watch_mappings(void)
{
	uint64_t mappings;

	pthread_mutex_lock(&lock);
	mappings = MAPS_PER_RUN * runs;
	pthread_mutex_unlock(&lock);
	return mappings;
}

void rnic_watch_forked(void)
{
	int fd = fd_now();

	pthread_mutex_init(&lock, NULL);
	/* the heap may be in any state: what the table held is not freed */
	table = NULL;
	n = room = 0;
	add_runs(-(int64_t)runs);
	rnic_store32_relaxed(&descriptor, 0);
	if (fd >= 0)
		close(fd);
}
