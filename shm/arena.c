/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The owner's arena allocator.
 *
 * A piece of bookkeeping stays with its place: it is live (in the tree, by
 * address), then left (waiting for its grace period), then spare (in the list
 * of free places, by offset), and is found by first fit. So freeing needs no
 * memory and cannot fail.
 *
 * Exclusion: everything by a->lock, also across a fork.
 */
#include "shm/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shm/log.h"

/* A run of pages of the segment. */
struct rnic_arena_piece {
	uint64_t start;		       /* live: address; for the tree */
	uint64_t stop;		       /* live: address of the last byte + 1 */
	uint64_t off;		       /* place in the segment */
	uint64_t len;		       /* bytes, whole pages */
	uint64_t grace;		       /* left: what to wait for */
	struct rnic_arena_piece *next; /* in its list */
	struct rnic_arena_piece *prev; /* live only */
};

enum {
	GROW = 1 << 30,	     /* step of the file's size */
	ALIGN_MAX = 1 << 30, /* largest alignment */
};

static const uint64_t size_max = UINT64_C(1) << 46;

static uint64_t round_up(uint64_t x, uint64_t a)
{
	return (x + a - 1) & ~(a - 1);
}

void rnic_arena_init(struct rnic_arena *a, struct rnic_segment *seg,
		     const struct rnic_numa *numa)
{
	*a = (struct rnic_arena){
		.seg = seg,
		.numa = *numa,
		.end = RNIC_ARENA_USER,
		.fork_pipe = { -1, -1 },
	};
	pthread_mutex_init(&a->lock, NULL);
}

static void free_list(struct rnic_arena_piece *p)
{
	while (p) {
		struct rnic_arena_piece *next = p->next;

		free(p);
		p = next;
	}
}

/* ---- live pieces ---- */

/* Overlap is equality. */
static int compare(const void *a, const void *b)
{
	const struct rnic_arena_piece *x = a, *y = b;

	return x->stop <= y->start ? -1 : x->start >= y->stop;
}

/* The live piece that holds @addr, or NULL. */
static struct rnic_arena_piece *find(struct rnic_arena *a, uint64_t addr)
{
	struct rnic_arena_piece key = { .start = addr, .stop = addr + 1 };
	void *node = tfind(&key, &a->live, compare);

	return node ? *(struct rnic_arena_piece **)node : NULL;
}

static int live_insert(struct rnic_arena *a, struct rnic_arena_piece *p)
{
	if (!tsearch(p, &a->live, compare))
		return -ENOMEM;
	p->prev = NULL;
	p->next = a->list;
	if (a->list)
		a->list->prev = p;
	a->list = p;
	a->bytes += p->len;
	/*
	 * relaxed: who asks about memory has heard of its allocation in some
	 * way that orders; the bounds only widen
	 */
	if (!rnic_load64_relaxed(&a->low) ||
	    p->start < rnic_load64_relaxed(&a->low))
		rnic_store64_relaxed(&a->low, p->start);
	if (p->stop > rnic_load64_relaxed(&a->high))
		rnic_store64_relaxed(&a->high, p->stop);
	return 0;
}

static void live_remove(struct rnic_arena *a, struct rnic_arena_piece *p)
{
	tdelete(p, &a->live, compare);
	*(p->prev ? &p->prev->next : &a->list) = p->next;
	if (p->next)
		p->next->prev = p->prev;
	a->bytes -= p->len;
}

void rnic_arena_fini(struct rnic_arena *a)
{
	if (!a->seg)
		return;
	while (a->list) {
		struct rnic_arena_piece *p = a->list;

		munmap((void *)(uintptr_t)p->start, p->len);
		live_remove(a, p);
		free(p);
	}
	free_list(a->spare);
	free_list(a->left);
	pthread_mutex_destroy(&a->lock);
	*a = (struct rnic_arena){ 0 };
}

/* ---- places ---- */

/* Makes @p a free place; joins it with its neighbours. */
static void spare_insert(struct rnic_arena *a, struct rnic_arena_piece *p)
{
	struct rnic_arena_piece **at = &a->spare, *below = NULL, *n;

	for (; *at && (*at)->off < p->off; at = &(*at)->next)
		below = *at;
	p->next = *at;
	*at = p;
	n = p->next;
	if (n && p->off + p->len == n->off) {
		p->len += n->len;
		p->next = n->next;
		free(n);
	}
	if (below && below->off + below->len == p->off) {
		below->len += p->len;
		below->next = p->next;
		free(p);
	}
}

/* Makes the file at least @size bytes long. */
static int grow(struct rnic_arena *a, uint64_t size)
{
	struct rlimit rl;
	int ret;

	if (size <= a->seg->size)
		return 0;
	size = round_up(size, GROW);
	/* beyond the limit ftruncate would kill the process by SIGXFSZ */
	if (!getrlimit(RLIMIT_FSIZE, &rl) && rl.rlim_cur != RLIM_INFINITY &&
	    rl.rlim_cur < size) {
		rnic_log(RNIC_LOG_WARN,
			 "arena: RLIMIT_FSIZE (ulimit -f) is %" PRIu64
			 " bytes, the sparse file needs %" PRIu64,
			 (uint64_t)rl.rlim_cur, size);
		return -EFBIG;
	}
	if (!ftruncate(a->seg->fd, (off_t)size)) {
		a->seg->size = size;
		return 0;
	}
	ret = -errno;
	rnic_log(RNIC_LOG_WARN, "arena: ftruncate to %" PRIu64 " bytes: %s",
		 size, strerror(-ret));
	return ret;
}

/* Takes the first @p->len bytes that fit out of the spare places. */
static bool take_spare(struct rnic_arena *a, struct rnic_arena_piece *p,
		       uint64_t align, struct rnic_arena_piece **extra)
{
	for (struct rnic_arena_piece **at = &a->spare; *at; at = &(*at)->next) {
		struct rnic_arena_piece *s = *at, *rest = *extra;
		uint64_t off = round_up(s->off, align);
		uint64_t lead = off - s->off;

		if (s->len < p->len || s->len - p->len < lead)
			continue;
		p->off = off;
		*rest = (struct rnic_arena_piece){
			.off = off + p->len,
			.len = s->len - lead - p->len,
			.next = s->next,
		};
		s->len = lead;
		if (rest->len) {
			s->next = rest;
			*extra = NULL;
		}
		if (!lead) {
			*at = s->next;
			free(s);
		}
		return true;
	}
	return false;
}

/* Takes fresh bytes at the end; what alignment skips becomes spare. */
static int take_end(struct rnic_arena *a, struct rnic_arena_piece *p,
		    uint64_t align, struct rnic_arena_piece **extra)
{
	uint64_t off = round_up(a->end, align), lead = off - a->end;
	int ret = grow(a, off + p->len);

	if (ret)
		return ret;
	p->off = off;
	if (lead) {
		**extra =
			(struct rnic_arena_piece){ .off = a->end, .len = lead };
		spare_insert(a, *extra);
		*extra = NULL;
	}
	a->end = off + p->len;
	return 0;
}

/* A piece of @len bytes with a place, neither mapped nor populated. */
static int take_place(struct rnic_arena *a, uint64_t len,
		      struct rnic_arena_piece **out)
{
	struct rnic_arena_piece *p = calloc(1, sizeof(*p));
	struct rnic_arena_piece *extra = calloc(1, sizeof(*p));
	uint64_t align = len >= RNIC_ARENA_HUGE ? RNIC_ARENA_HUGE : RNIC_PAGE;
	int ret = p && extra ? 0 : -ENOMEM;

	if (!ret) {
		p->len = len;
		if (!take_spare(a, p, align, &extra))
			ret = take_end(a, p, align, &extra);
	}
	free(extra);
	if (ret)
		free(p);
	else
		*out = p;
	return ret;
}

/* ---- mapping ---- */

/* Reserves @len bytes of address space, aligned. NULL: there is none. */
static char *reserve(uint64_t len, uint64_t align)
{
	char *p = mmap(NULL, len + align, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t lead;

	if (p == MAP_FAILED)
		return NULL;
	lead = round_up((uintptr_t)p, align) - (uintptr_t)p;
	if (lead)
		munmap(p, lead);
	if (align - lead)
		munmap(p + lead + len, align - lead);
	return p + lead;
}

/*
 * Maps the place of @p. Not MADV_DONTFORK: a child must find its memory, see
 * rnic_arena_fork_child(). Small pages do if there are no huge ones.
 */
static int map_piece(struct rnic_arena *a, struct rnic_arena_piece *p,
		     uint64_t align)
{
	char *at = reserve(p->len, align);
	int ret;

	if (!at) {
		rnic_log(RNIC_LOG_WARN,
			 "arena: no address space for %" PRIu64 " bytes: %s",
			 p->len, strerror(errno));
		return -ENOMEM;
	}
	if (mmap(at, p->len, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_NORESERVE | MAP_FIXED, a->seg->fd,
		 (off_t)p->off) == MAP_FAILED) {
		rnic_log(RNIC_LOG_WARN, "arena: mmap of %" PRIu64 " bytes: %s",
			 p->len, strerror(errno));
		munmap(at, p->len);
		return -ENOMEM;
	}
	madvise(at, p->len, MADV_DONTDUMP);
	if (p->len >= RNIC_ARENA_HUGE)
		madvise(at, p->len, MADV_HUGEPAGE);
	ret = rnic_numa_bind(&a->numa, at, p->len);
	if (ret) {
		munmap(at, p->len);
		return ret;
	}
	p->start = (uintptr_t)at;
	p->stop = p->start + p->len;
	return 0;
}

static void discard(struct rnic_arena *a, struct rnic_arena_piece *p)
{
	rnic_segment_discard(a->seg, p->off, p->len);
	spare_insert(a, p);
}

/* Place, mapping, pages, in this order: the binding comes before pages. */
static int make_piece(struct rnic_arena *a, uint64_t len, uint64_t align,
		      struct rnic_arena_piece **out)
{
	struct rnic_arena_piece *p;
	int ret = take_place(a, len, &p);

	if (ret)
		return ret;
	ret = map_piece(a, p, align);
	if (ret)
		goto err_place;
	ret = rnic_segment_populate(a->seg, p->off, p->len);
	if (!ret)
		ret = live_insert(a, p);
	if (ret)
		goto err_map;
	*out = p;
	return 0;

err_map:
	munmap((void *)(uintptr_t)p->start, p->len);
err_place:
	discard(a, p);
	return ret;
}

int rnic_arena_alloc(struct rnic_arena *a, size_t size, size_t align,
		     void **ptr, uint64_t *offset)
{
	uint64_t len = round_up(size, RNIC_PAGE);
	struct rnic_arena_piece *p = NULL;
	int ret;

	if (!size || size > size_max || align & (align - 1) ||
	    align > ALIGN_MAX)
		return -EINVAL;
	if (align < RNIC_PAGE)
		align = RNIC_PAGE;
	if (len >= RNIC_ARENA_HUGE && align < RNIC_ARENA_HUGE)
		align = RNIC_ARENA_HUGE;
	pthread_mutex_lock(&a->lock);
	ret = a->forked ? -EPERM : make_piece(a, len, align, &p);
	if (!ret) {
		*ptr = (void *)(uintptr_t)p->start;
		*offset = p->off;
	}
	pthread_mutex_unlock(&a->lock);
	return ret;
}

/* Where a piece goes that is no longer live. */
static void leave(struct rnic_arena *a, struct rnic_arena_piece *p,
		  uint64_t grace)
{
	p->grace = grace;
	p->next = NULL;
	if (a->forked)
		free(p);
	else if (!grace)
		discard(a, p);
	else if (a->left)
		a->latest = a->latest->next = p;
	else
		a->latest = a->left = p;
}

int rnic_arena_free(struct rnic_arena *a, void *ptr, uint64_t grace)
{
	struct rnic_arena_piece *p;

	pthread_mutex_lock(&a->lock);
	p = find(a, (uintptr_t)ptr);
	if (p && p->start == (uintptr_t)ptr) {
		munmap(ptr, p->len);
		live_remove(a, p);
		leave(a, p, grace);
	} else {
		p = NULL;
	}
	pthread_mutex_unlock(&a->lock);
	if (!p)
		rnic_log(RNIC_LOG_WARN,
			 "arena: free of %p, which is no allocation", ptr);
	return p ? 0 : -EINVAL;
}

void rnic_arena_reap(struct rnic_arena *a,
		     bool (*ended)(void *arg, uint64_t grace), void *arg)
{
	pthread_mutex_lock(&a->lock);
	while (a->left && ended(arg, a->left->grace)) {
		struct rnic_arena_piece *p = a->left;

		a->left = p->next;
		discard(a, p);
	}
	pthread_mutex_unlock(&a->lock);
}

uint64_t rnic_arena_left(struct rnic_arena *a, const void *ptr)
{
	uint64_t at = (uintptr_t)ptr, left;
	struct rnic_arena_piece *p;

	pthread_mutex_lock(&a->lock);
	p = a->forked ? NULL : find(a, at);
	left = p ? p->stop - at : 0;
	pthread_mutex_unlock(&a->lock);
	return left;
}

int rnic_arena_find(struct rnic_arena *a, const void *ptr, size_t len,
		    uint64_t *offset)
{
	uint64_t at = (uintptr_t)ptr;
	struct rnic_arena_piece *p;
	int ret = -ENOENT;

	/* relaxed: see live_insert() */
	if (at < rnic_load64_relaxed(&a->low) ||
	    at >= rnic_load64_relaxed(&a->high))
		return -ENOENT;
	pthread_mutex_lock(&a->lock);
	p = a->forked ? NULL : find(a, at);
	if (p && len <= p->stop - at) {
		*offset = p->off + (at - p->start);
		ret = 0;
	}
	pthread_mutex_unlock(&a->lock);
	return ret;
}

/* ---- fork ---- */

void rnic_arena_fork_prepare(struct rnic_arena *a)
{
	pthread_mutex_lock(&a->lock);
	if (a->list && !a->forked && pipe2(a->fork_pipe, O_CLOEXEC)) {
		rnic_log(RNIC_LOG_WARN,
			 "arena: fork: pipe: %s: the child may see what is "
			 "written meanwhile",
			 strerror(errno));
		a->fork_pipe[0] = a->fork_pipe[1] = -1;
	}
}

static void close_pipe(struct rnic_arena *a)
{
	for (int i = 0; i < 2; i++)
		if (a->fork_pipe[i] >= 0)
			close(a->fork_pipe[i]);
	a->fork_pipe[0] = a->fork_pipe[1] = -1;
}

void rnic_arena_fork_parent(struct rnic_arena *a)
{
	char c;

	if (a->fork_pipe[1] >= 0) {
		close(a->fork_pipe[1]);
		a->fork_pipe[1] = -1;
		/* the child's end closes: it has copied, died or exec'ed */
		while (read(a->fork_pipe[0], &c, 1) < 0 && errno == EINTR)
			;
	}
	close_pipe(a);
	pthread_mutex_unlock(&a->lock);
}

/* Puts a private copy in the place of a shared mapping, in one step. */
static void make_private(const struct rnic_arena_piece *p)
{
	void *at = (void *)(uintptr_t)p->start;
	void *copy = mmap(NULL, p->len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy != MAP_FAILED) {
		memcpy(copy, at, p->len);
		if (mremap(copy, p->len, p->len, MREMAP_MAYMOVE | MREMAP_FIXED,
			   at) != MAP_FAILED)
			return;
		munmap(copy, p->len);
	}
	rnic_log(RNIC_LOG_WARN,
		 "arena: no memory for a child's copy of %" PRIu64
		 " bytes at %p: it loses access",
		 p->len, at);
	/* not mmap: beyond RLIMIT_AS it would fail */
	if (mprotect(at, p->len, PROT_NONE))
		munmap(at, p->len);
}

void rnic_arena_fork_child(struct rnic_arena *a)
{
	for (struct rnic_arena_piece *p = a->forked ? NULL : a->list; p;
	     p = p->next)
		make_private(p);
	a->forked = true;
	close_pipe(a);
	pthread_mutex_unlock(&a->lock);
}
