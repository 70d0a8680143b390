/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Pins: a balanced tree (tsearch(3)) of page ranges that do not overlap, also
 * linked in the order of their addresses.
 *
 * A pin first cuts the ranges at its two ends, then fills the gaps between
 * them with new ranges of count 0, locks those, and counts all it covers. On
 * the way back ranges of count 0 leave and equal neighbours become one, so
 * the table is never longer than the pins make it.
 *
 * Is memory mapped, without a touch? Linux 6.11 says so (PROCMAP_QUERY).
 * Before it, for short ranges, MADV_POPULATE_READ or _WRITE (5.14): they do
 * what a load or store of the application would do, except the store, so no
 * byte changes; pages come that the pin would bring a moment later. Writing
 * to each page, or writing back what was read, would lose the application's
 * concurrent stores; mincore() says nothing of protection. For longer ranges,
 * where untouched pages are too dear, and for what the others do not know,
 * the text of /proc/self/maps.
 */
#include "shm/pin.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/breakage.h"
#include "shm/layout.h"
#include "shm/log.h"
#include "shm/vma.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22 /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum {
	MAPS_PER_RUN = 2,	/* a locked run splits off two mappings */
	POPULATE_MAX = 1 << 20, /* most bytes checked by populating */
};

/* Pages with the same count. */
struct range {
	uint64_t start;	    /* first address */
	uint64_t end;	    /* last address + 1 */
	uint64_t count;	    /* pins; 0 only inside a call */
	bool app;	    /* the application had locked it */
	struct range *prev; /* by address */
	struct range *next; /* by address */
};

/*
 * What is looked for: the first member of both is what compare() reads. The
 * search leaves the neighbours here: it compared with them last.
 */
struct probe {
	uint64_t start;	     /* first address */
	uint64_t end;	     /* last address + 1 */
	struct range *below; /* last one found to lie below */
	struct range *above; /* last one found to lie above */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below; inner */
static void *tree;					 /* of struct range */
static struct range *first;				 /* lowest */
static uint64_t pages, ranges;				 /* for statistics */
static uint64_t runs;		 /* maximal runs of ranges we locked */
static void *lost_tree;		 /* a parent's; kept for leak checkers */
static struct range *lost_first; /* likewise */

/* Rounds to whole pages. */
static int round_out(const void *addr, size_t len, uint64_t *s, uint64_t *e)
{
	uint64_t a = (uintptr_t)addr;

	if (!len || a > UINT64_MAX - (RNIC_PAGE - 1) ||
	    len > UINT64_MAX - (RNIC_PAGE - 1) - a) {
		rnic_log(RNIC_LOG_WARN, "pin: %p, %zu bytes: empty or wraps",
			 addr, len);
		return -EINVAL;
	}
	*s = rnic_page_down(a);
	*e = rnic_page_down(a + len + RNIC_PAGE - 1);
	return 0;
}

/* ---- the table ---- */

/* tsearch(3) hands the key first, a range second. Overlap is equality. */
static int compare(const void *key, const void *at)
{
	struct probe *p = (struct probe *)(uintptr_t)key;
	struct range *r = (struct range *)(uintptr_t)at;

	if (p->end <= r->start) {
		p->above = r;
		return -1;
	}
	if (p->start >= r->end) {
		p->below = r;
		return 1;
	}
	return 0;
}

/* For a key that is itself a range of the tree. */
static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->end <= y->start ? -1 : x->start >= y->end;
}

/*
 * The range that holds @addr, else the first above it, else NULL; *@below, if
 * none holds it, the last below it.
 */
static struct range *find_near(uint64_t addr, struct range **below)
{
	struct probe p = { .start = addr, .end = addr + 1 };
	void *node = tfind(&p, &tree, compare);

	*below = p.below;
	return node ? *(struct range **)node : p.above;
}

static struct range *find(uint64_t addr)
{
	struct range *below;

	return find_near(addr, &below);
}

/* How many runs fewer there would be without the new one @r. */
static uint64_t joins(const struct range *r)
{
	return (r->prev && !r->prev->app && r->prev->end == r->start) +
	       (uint64_t)(r->next && !r->next->app && r->next->start == r->end);
}

/* Puts @r between @below and @above into list and tree; false: no memory. */
static bool insert(struct range *r, struct range *below, struct range *above)
{
	if (!tsearch(r, &tree, compare_ranges))
		return false;
	r->prev = below;
	r->next = above;
	*(below ? &below->next : &first) = r;
	if (above)
		above->prev = r;
	ranges++;
	return true;
}

static void drop(struct range *r)
{
	tdelete(r, &tree, compare_ranges);
	*(r->prev ? &r->prev->next : &first) = r->next;
	if (r->next)
		r->next->prev = r->prev;
	ranges--;
	free(r);
}

static struct range *make(uint64_t start, uint64_t end, uint64_t count,
			  bool app)
{
	struct range *r = malloc(sizeof(*r));

	if (r)
		*r = (struct range){
			.start = start, .end = end, .count = count, .app = app
		};
	return r;
}

/* Cuts the range around @at, if @at is not an end of it already. */
static int cut(uint64_t at)
{
	struct range *r = find(at), *tail;
	uint64_t end;

	if (!r || r->start >= at)
		return 0;
	tail = make(at, r->end, r->count, r->app);
	if (!tail)
		return -ENOMEM;
	end = r->end;
	r->end = at;
	if (insert(tail, r, r->next))
		return 0;
	r->end = end;
	free(tail);
	return -ENOMEM;
}

/* Makes @r and the next one range, if nothing tells them apart. */
static void merge(struct range *r)
{
	struct range *n = r ? r->next : NULL;
	uint64_t end;

	if (!n || r->end != n->start || r->count != n->count ||
	    r->app != n->app)
		return;
	end = n->end;
	drop(n);
	r->end = end;
}

/* Merges whatever can be between @s and @e, both ends included. */
static void merge_all(uint64_t s, uint64_t e)
{
	struct range *r = find(s), *next;

	if (r && r->prev)
		r = r->prev;
	for (; r && r->start <= e; r = next) {
		next = r->next;
		merge(r);
		if (r->next != next)
			next = r;
	}
}

/* ---- the kernel ---- */

/*
 * True if the application has locked a page of the range: msync(2) says so
 * with MS_INVALIDATE, and with MS_ASYNC does nothing else; it looks at
 * mappings, not at pages.
 */
static bool any_locked(uint64_t s, uint64_t e)
{
	return msync((void *)(uintptr_t)s, e - s, MS_ASYNC | MS_INVALIDATE) &&
	       errno == EBUSY;
}

/*
 * By number: the sanitizers replace mlock(2) and munlock(2) by nothing. A limit
 * of 0 is EPERM, and pages for which there is no memory are EAGAIN, which a
 * client would try for ever: both are want of memory.
 */
static int call_mlock(uint64_t s, uint64_t e)
{
	if (!syscall(SYS_mlock, s, e - s))
		return 0;
	return errno == EPERM || errno == EAGAIN ? -ENOMEM : -errno;
}

static int call_munlock(uint64_t s, uint64_t e)
{
	return syscall(SYS_munlock, s, e - s) ? -errno : 0;
}

/* Unlocks mapping by mapping what has holes by now. */
static void unlock_pieces(uint64_t s, uint64_t e)
{
	struct rnic_vma v;

	while (s < e && !rnic_vma_next(s, &v) && v.start < e) {
		uint64_t from = v.start > s ? v.start : s;
		uint64_t to = v.end < e ? v.end : e;

		/* it may go at any time: what is not mapped is not locked */
		call_munlock(from, to);
		s = to;
	}
}

static void unlock_range(const struct range *r)
{
	int ret = r->app ? 0 : call_munlock(r->start, r->end);

	if (ret == -ENOMEM)
		unlock_pieces(r->start, r->end);
	else if (ret)
		rnic_log(RNIC_LOG_WARN,
			 "pin: munlock of 0x%" PRIx64 "-0x%" PRIx64 ": %s",
			 r->start, r->end, strerror(-ret));
}

/* The number in the line of @file that begins with @name, or @other. */
static uint64_t read_number(const char *file, const char *name, uint64_t other)
{
	FILE *f = fopen(file, "re");
	uint64_t n = other;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) &&
		    sscanf(line + strlen(name), "%" SCNu64, &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

/* There are @n more runs, or fewer. The lock is held. */
static void add_runs(int64_t n)
{
	runs += (uint64_t)n;
	rnic_vma_count(n * MAPS_PER_RUN);
}

/* Says what a refused pin wanted, and against which limit. */
static void say_refused(enum rnic_pin_policy policy, uint64_t s, uint64_t e,
			int err)
{
	struct rlimit rl = { 0 };
	struct rnic_vma_budget b;

	rnic_vma_room(0, &b);
	getrlimit(RLIMIT_MEMLOCK, &rl);
	rnic_log(policy == RNIC_PIN_REQUIRE ? RNIC_LOG_WARN : RNIC_LOG_INFO,
		 "pin of %" PRIu64 " bytes at 0x%" PRIx64 " refused: %s; "
		 "RLIMIT_MEMLOCK (ulimit -l) is %" PRIu64 " KiB, in use are "
		 "%" PRIu64 " KiB; pins and watches cause %" PRIu64
		 " of at most %" PRIu64 " mappings (a quarter of "
		 "vm.max_map_count)",
		 e - s, s, strerror(-err), (uint64_t)rl.rlim_cur / 1024,
		 read_number("/proc/self/status", "VmLck:", 0), b.caused,
		 b.limit);
}

/* ---- pinning ---- */

/* A range of count 0 for @s to @e, which nothing overlaps, locked. */
static int add_piece(uint64_t s, uint64_t e, bool app)
{
	struct range *below, *above = find_near(s, &below);
	struct range *r = make(s, e, 0, app);
	int ret;

	if (!r || !insert(r, below, above)) {
		free(r);
		return -ENOMEM;
	}
	ret = call_mlock(s, e);
	/* what failed may have locked a part */
	if (ret)
		unlock_range(r);
	if (ret) {
		drop(r);
		return ret;
	}
	if (!app)
		add_runs(1 - (int64_t)joins(r));
	pages += (e - s) / RNIC_PAGE;
	return 0;
}

/* Undoes add_piece(), or the last pin of a range. */
static void remove_piece(struct range *r)
{
	unlock_range(r);
	if (!r->app)
		add_runs((int64_t)joins(r) - 1);
	pages -= (r->end - r->start) / RNIC_PAGE;
	drop(r);
}

/* A gap in which the application locked something: mapping by mapping. */
static int add_mixed(uint64_t s, uint64_t e)
{
	struct rnic_vma v;
	int ret = 0;

	while (!ret && s < e) {
		uint64_t to = e;

		if (!rnic_vma_next(s, &v) && v.start <= s && v.end < e)
			to = v.end;
		ret = add_piece(s, to, any_locked(s, s + RNIC_PAGE));
		s = to;
	}
	return ret;
}

static int add_gap(uint64_t s, uint64_t e)
{
	struct rnic_vma_budget b;

	if (!rnic_vma_room(MAPS_PER_RUN, &b))
		return -ENOSPC;
	return any_locked(s, e) ? add_mixed(s, e) : add_piece(s, e, false);
}

/* Fills what no range covers between @s and @e. */
static int add_gaps(uint64_t s, uint64_t e)
{
	struct range *r;
	int ret = 0;

	while (!ret && s < e) {
		r = find(s);
		if (r && r->start <= s) {
			s = r->end;
			continue;
		}
		if (r && r->start < e) {
			ret = add_gap(s, r->start);
			s = r->start;
		} else {
			ret = add_gap(s, e);
			s = e;
		}
	}
	return ret;
}

/* Adds @n, 1 or -1, to what lies between @s and @e; removes what has 0. */
static void count_all(uint64_t s, uint64_t e, int n)
{
	struct range *r, *next;

	for (r = find(s); r && r->start < e; r = next) {
		next = r->next;
		r->count += (uint64_t)n;
		if (!r->count || (RNIC_BROKEN(pin_count) && n < 0))
			remove_piece(r);
	}
}

static int pin_locked(uint64_t s, uint64_t e)
{
	int ret = cut(s);

	if (!ret)
		ret = cut(e);
	if (!ret)
		ret = add_gaps(s, e);
	/* count_all(0) removes what was added and has no pin */
	count_all(s, e, ret ? 0 : 1);
	merge_all(s, e);
	return ret;
}

int rnic_pin(const void *addr, size_t len, enum rnic_pin_policy policy)
{
	uint64_t s, e;
	int ret = round_out(addr, len, &s, &e);

	if (ret || policy == RNIC_PIN_OFF)
		return ret;
	pthread_mutex_lock(&lock);
	ret = pin_locked(s, e);
	if (ret)
		say_refused(policy, s, e, ret);
	pthread_mutex_unlock(&lock);
	if (!ret)
		return 1;
	/* mlock says ENOMEM of a hole as well, and of the limit */
	if (ret == -ENOMEM && rnic_pin_check(addr, len, PROT_READ) == -EFAULT)
		return -EFAULT;
	return policy == RNIC_PIN_REQUIRE ? ret : 0;
}

/* Locks the pages of our ranges between @s and @e anew. Locked. */
static int lock_again(uint64_t s, uint64_t e)
{
	int ret = 0;

	for (struct range *r = find(s); r && r->start < e && !ret;
	     r = r->next) {
		uint64_t from = r->start > s ? r->start : s;
		uint64_t to = r->end < e ? r->end : e;

		/* what the application locks is its own to lock again */
		if (!r->app)
			ret = call_mlock(from, to);
	}
	return ret;
}

int rnic_pin_renew(const void *addr, size_t len, enum rnic_pin_policy policy)
{
	uint64_t s, e;
	int ret = round_out(addr, len, &s, &e);

	if (ret)
		return ret;
	pthread_mutex_lock(&lock);
	ret = lock_again(s, e);
	if (ret)
		say_refused(policy, s, e, ret);
	pthread_mutex_unlock(&lock);
	return policy == RNIC_PIN_REQUIRE ? ret : 0;
}

/* Cuts cannot fail an unpin: without memory a larger range stays pinned. */
void rnic_unpin(const void *addr, size_t len)
{
	uint64_t s, e;

	if (round_out(addr, len, &s, &e))
		return;
	pthread_mutex_lock(&lock);
	if (cut(s) || cut(e))
		rnic_log(RNIC_LOG_WARN,
			 "pin: no memory to unpin %zu bytes at %p: "
			 "they stay locked",
			 len, addr);
	else
		count_all(s, e, -1);
	merge_all(s, e);
	pthread_mutex_unlock(&lock);
}

/* ---- checking ---- */

/* Adds mapping @v behind @all, if it goes on in the same file. */
static void extend(struct rnic_vma *all, const struct rnic_vma *v)
{
	if (!all->end) {
		*all = *v;
		return;
	}
	if (all->shared && v->shared && v->start == all->end &&
	    v->dev == all->dev && v->ino == all->ino &&
	    v->off - all->off == v->start - all->start)
		all->end = v->end;
	else
		all->shared = false;
	all->prot &= v->prot;
}

/* Every mapping of the range, without a touch. *@all: zeroed before. */
static int check_vmas(uint64_t s, uint64_t e, int prot, struct rnic_vma *all)
{
	struct rnic_vma v;

	while (s < e) {
		int ret = rnic_vma_next(s, &v);

		if (ret == -EIO)
			return ret;
		if (ret || v.start > s || (v.prot & prot) != prot) {
			rnic_log(RNIC_LOG_WARN,
				 "0x%" PRIx64 " (to 0x%" PRIx64 "): %s", s, e,
				 ret || v.start > s  ? "not mapped"
				 : prot & PROT_WRITE ? "mapped, not writable"
						     : "mapped, not readable");
			return -EFAULT;
		}
		extend(all, &v);
		s = v.end;
	}
	return 0;
}

static bool populated(uint64_t s, uint64_t e, int prot)
{
	void *p = (void *)(uintptr_t)s;

	return (!(prot & PROT_READ) ||
		!madvise(p, e - s, MADV_POPULATE_READ)) &&
	       (!(prot & PROT_WRITE) ||
		!madvise(p, e - s, MADV_POPULATE_WRITE));
}

int rnic_pin_check_map(const void *addr, size_t len, int prot,
		       struct rnic_vma *v)
{
	uint64_t s, e;
	int ret = round_out(addr, len, &s, &e);

	*v = (struct rnic_vma){ 0 };
	if (ret)
		return ret;
	if (!rnic_vma_fast() && e - s <= POPULATE_MAX && populated(s, e, prot))
		return 0;
	return check_vmas(s, e, prot, v);
}

int rnic_pin_check(const void *addr, size_t len, int prot)
{
	struct rnic_vma v;

	return rnic_pin_check_map(addr, len, prot, &v);
}

/* False before Linux 5.14. */
static bool can_populate(void)
{
	char here;
	uintptr_t page = (uintptr_t)&here & ~(uintptr_t)(RNIC_PAGE - 1);

	return !madvise((void *)page, RNIC_PAGE, MADV_POPULATE_READ) ||
	       errno != EINVAL;
}

int rnic_pin_populate(void *addr, size_t len, bool write)
{
	uintptr_t from = (uintptr_t)addr & ~(uintptr_t)(RNIC_PAGE - 1);
	uintptr_t end = (uintptr_t)addr + len;

	if (!madvise((void *)from, end - from,
		     write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return 0;
	/* EINVAL: the mapping forbids it, or the kernel does not know how */
	if (errno != EINVAL || can_populate())
		return -EFAULT;
	return rnic_pin_check(addr, len, PROT_READ | (write ? PROT_WRITE : 0))
		       ? -EFAULT
		       : 0;
}

/* ---- the rest ---- */

void rnic_pin_stats(struct rnic_pin_stats *s)
{
	pthread_mutex_lock(&lock);
	s->pages = pages;
	s->ranges = ranges;
	s->mappings = MAPS_PER_RUN * runs;
	pthread_mutex_unlock(&lock);
}

void rnic_pin_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	lost_tree = tree;
	lost_first = first;
	tree = NULL;
	first = NULL;
	add_runs(-(int64_t)runs);
	pages = ranges = 0;
}
