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
#include "shm/monitor.h"
#include "shm/vma.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1 /* Linux 5.11; older ones answer EINVAL */
#endif

enum {
	EVENTS = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE |
		 UFFD_FEATURE_EVENT_REMAP,
	ROOM = 64,	  /* first size of the table */
	MAPS_PER_RUN = 2, /* a watched run splits off two mappings */
	MOVED = 64,	  /* ends of what moved that are kept */
};

/* Pages with the same count, which is not 0. */
struct range {
	uint64_t start; /* first address */
	uint64_t end;	/* last address + 1 */
	uint64_t count; /* who wants them watched */
	uint64_t armed; /* all of it, at this number of the monitor + 1 */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* table; inner */
static struct range *table;				 /* by address */
static size_t n, room;					 /* used; allocated */
static uint64_t runs;	    /* maximal runs of ranges, whatever their counts */
static rnic_a32 descriptor; /* + 1; 0: not open */

/*
 * Where what mremap(2) moved would end if it had not grown: a ring. The
 * monitor writes an end, then how many there were; it overwrites none.
 */
static rnic_a64 moved[MOVED];
static rnic_a32 moves; /* ever written; the monitor */
static rnic_a32 swept; /* ever looked at; under the lock */

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
	if (!ioctl(fd_now(), UFFDIO_CONTINUE, &c))
		return 0;
	switch (errno) {
	case EEXIST: /* a page of a file that is mapped */
	case EFAULT: /* or not there; */
	case EINVAL: /* or of no file */
	case ENOMEM: /* or that cannot be mapped just now */
		return 0;
	case EAGAIN:
	case ENOENT:
		return -errno;
	default: /* no userfaultfd: somebody closed it */
		return -ENODEV;
	}
}

/* Nothing can be mapped at 0: it looks for changes, and finds no watch. */
bool rnic_watch_quiet(void)
{
	return rnic_watch_check(0, RNIC_PAGE) != -EAGAIN;
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

void rnic_watch_moved(uint64_t addr, uint64_t len)
{
	/* relaxed: its only writer */
	uint32_t at = rnic_load32_relaxed(&moves);

	rnic_watch_disarm(addr, len);
	/* R1: who has looked at a place is done with it; pairs with R2 */
	if (at - rnic_load32_acquire(&swept) == MOVED)
		return;
	rnic_store64_relaxed(&moved[at % MOVED], rnic_page_up(addr + len));
	/* R3: the end; pairs with R4 */
	rnic_store32_release(&moves, at + 1);
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
		    table[i].count == table[i + 1].count &&
		    table[i].armed == table[i + 1].armed) {
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
			insert(i, (struct range){ at, gap, 1, 0 });
		} else {
			gap = table[i].end;
			table[i].count++;
		}
		at = gap;
	}
}

/* ---- ends of watches, the lock is held ---- */

/*
 * In one mapping, which may be another one by now. One that has no watch costs
 * a look at its first page only. Another userfaultfd may have it: before Linux
 * 6.17 a kernel lets us end that one's watch, but never arm it ourselves.
 */
static void disarm_ours(uint64_t s, uint64_t e)
{
	if (s < e && rnic_watch_check(s, RNIC_PAGE) != -ENOENT &&
	    !rnic_watch_arm(s, e - s))
		disarm(s, e);
}

/* The parts of @s to @e, which one mapping holds, that nobody counts. */
static void disarm_uncounted(uint64_t s, uint64_t e)
{
	for (size_t i = find(s); s < e; i++) {
		bool more = i < n && table[i].start < e;

		disarm_ours(s, more ? table[i].start : e);
		s = more ? table[i].end : e;
	}
}

/*
 * A mapping that has grown where it is took its watch along, and nobody is
 * told: what is watched beside @s to @e in their mappings ends with them. They
 * are not in the table any more.
 */
static void disarm_beside(uint64_t s, uint64_t e)
{
	struct rnic_vma first, last;

	if (!rnic_vma_fast())
		return;
	if (!rnic_vma_next(e - 1, &last) && last.start < e && last.end > e)
		disarm_uncounted(e, last.end);
	if (!rnic_vma_next(s, &first) && first.start < s)
		disarm_uncounted(first.start, s);
}

/*
 * Ends the watch of what is mapped at @r, which is not in the table any more:
 * mapping by mapping if there was an event, or some of it is of a kind that was
 * never watched.
 */
static void release(const struct range *r)
{
	uint64_t s = r->start, e = r->end;
	struct rnic_vma v;

	disarm_beside(s, e);
	if (r->armed == rnic_monitor_cycle() + 1 && !disarm(s, e))
		return;
	/* no fast look at mappings: what can be armed is nobody else's */
	if (!rnic_vma_fast() && !rnic_watch_arm(s, e - s) && !disarm(s, e))
		return;
	while (s < e && !rnic_vma_next(s, &v) && v.start < e) {
		uint64_t from = v.start > s ? v.start : s;
		uint64_t to = v.end < e ? v.end : e;

		disarm_ours(from, to);
		s = to;
	}
}

/*
 * What grew when it moved: the kernel tells of the old length, and the watch
 * has the new one.
 */
static void sweep(void)
{
	/* relaxed: the lock */
	uint32_t at = rnic_load32_relaxed(&swept);
	struct rnic_vma v;
	uint64_t end;

	/* R4: pairs with R3 */
	while (at != rnic_load32_acquire(&moves)) {
		/* relaxed: R4 */
		end = rnic_load64_relaxed(&moved[at % MOVED]);
		/* R2: it was read; pairs with R1 */
		rnic_store32_release(&swept, ++at);
		if (rnic_vma_fast() &&
		    rnic_watch_check(end, RNIC_PAGE) != -ENOENT &&
		    !rnic_vma_next(end, &v) && v.start <= end)
			disarm_uncounted(v.start, v.end);
	}
}

void rnic_watch_sweep(void)
{
	/* relaxed: a hint, looked at again */
	if (fd_now() < 0 ||
	    rnic_load32_relaxed(&swept) == rnic_load32_relaxed(&moves))
		return;
	pthread_mutex_lock(&lock);
	sweep();
	pthread_mutex_unlock(&lock);
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
		release(&r);
	}
}

/* ---- calls ---- */

/* True if all of @s to @e is counted, and was armed at @now. */
static bool is_armed(uint64_t s, uint64_t e, uint64_t now)
{
	for (size_t i = find(s); i < n && table[i].start <= s && s < e; i++) {
		if (table[i].armed != now + 1)
			return false;
		s = table[i].end;
	}
	return s >= e;
}

int rnic_watch_get_at(uint64_t addr, uint64_t len, uint64_t now, bool *armed)
{
	uint64_t s = rnic_page_down(addr), e = rnic_page_up(addr + len);
	int ret;

	*armed = false;
	if (fd_now() < 0)
		return -ENODEV;
	pthread_mutex_lock(&lock);
	sweep();
	ret = check_limit(s, e);
	if (!ret)
		ret = reserve();
	if (!ret) {
		*armed = !(now & 1) && is_armed(s, e, now);
		cut(s);
		cut(e);
		add(s, e);
		merge(s, e);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

int rnic_watch_get(uint64_t addr, uint64_t len)
{
	bool armed;

	return rnic_watch_get_at(addr, len, 1, &armed);
}

void rnic_watch_armed_at(uint64_t addr, uint64_t len, uint64_t now)
{
	uint64_t s = rnic_page_down(addr), e = rnic_page_up(addr + len);

	pthread_mutex_lock(&lock);
	if (!(now & 1) && !reserve()) {
		cut(s);
		cut(e);
		for (size_t i = find(s); i < n && table[i].start < e; i++)
			table[i].armed = now + 1;
		merge(s, e);
	}
	pthread_mutex_unlock(&lock);
}

void rnic_watch_put(uint64_t addr, uint64_t len)
{
	uint64_t s = rnic_page_down(addr), e = rnic_page_up(addr + len);

	pthread_mutex_lock(&lock);
	sweep();
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
	sweep();
	while (n)
		release(&table[--n]);
	free(table);
	table = NULL;
	room = 0;
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
	rnic_store32_relaxed(&swept, rnic_load32_relaxed(&moves));
	rnic_store32_relaxed(&descriptor, 0);
	if (fd >= 0)
		close(fd);
}
