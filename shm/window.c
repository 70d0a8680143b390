/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Windows in slabs of 2 MiB, which is what one page of page tables covers.
 *
 * A slab is reserved address space and a bitmap of its pages. The lock
 * protects slabs and bitmaps; it is held over the mmap, so that a place is
 * never given out twice.
 */
#include "shm/window.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shm/layout.h"
#include "shm/log.h"

#define SLAB_BYTES ((size_t)2 << 20)

enum {
	SLAB_PAGES = 512,  /* pages of a slab */
	ALONE_PAGES = 128, /* larger windows are mapped by themselves */
};

struct slab {
	struct slab *next;     /* all slabs */
	char *base;	       /* SLAB_BYTES of address space */
	unsigned int free;     /* pages not used */
	bool used[SLAB_PAGES]; /* page is part of a window */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slab *slabs;

/* Reserves a slab, aligned to its size. */
static struct slab *slab_new(void)
{
	struct slab *s = calloc(1, sizeof(*s));
	char *p, *at;

	if (!s)
		return NULL;
	p = mmap(NULL, 2 * SLAB_BYTES, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		free(s);
		return NULL;
	}
	at = p + (SLAB_BYTES - (uintptr_t)p % SLAB_BYTES) % SLAB_BYTES;
	if (at != p)
		munmap(p, (size_t)(at - p));
	munmap(at + SLAB_BYTES, SLAB_BYTES - (size_t)(at - p));
	s->base = at;
	s->free = SLAB_PAGES;
	s->next = slabs;
	slabs = s;
	return s;
}

/* First run of @n free pages in @s, or -1. */
static int slab_find(const struct slab *s, unsigned int n)
{
	unsigned int run = 0;

	if (s->free < n)
		return -1;
	for (unsigned int i = 0; i < SLAB_PAGES; i++) {
		run = s->used[i] ? 0 : run + 1;
		if (run == n)
			return (int)(i + 1 - n);
	}
	return -1;
}

static void slab_mark(struct slab *s, unsigned int at, unsigned int n,
		      bool used)
{
	for (unsigned int i = at; i < at + n; i++)
		s->used[i] = used;
	s->free += used ? -n : n;
}

/* Place for @n pages, marked used; NULL: no address space. */
static char *place_take(unsigned int n)
{
	struct slab *s;
	int at = -1;

	for (s = slabs; s; s = s->next) {
		at = slab_find(s, n);
		if (at >= 0)
			break;
	}
	if (!s) {
		s = slab_new();
		at = 0;
	}
	if (!s)
		return NULL;
	slab_mark(s, (unsigned int)at, n, true);
	return s->base + (size_t)at * RNIC_PAGE;
}

/*
 * Makes @n pages at @p reserved address space again, and free. If the kernel
 * refuses, they may be mapped still, or be a hole into which the application
 * maps something: they are never used again.
 */
static void place_give(char *p, unsigned int n)
{
	struct slab *s = slabs;

	if (mmap(p, (size_t)n * RNIC_PAGE, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		 0) == MAP_FAILED) {
		rnic_log(RNIC_LOG_WARN,
			 "window of %u pages: cannot be "
			 "unmapped: %s",
			 n, strerror(errno));
		return;
	}
	while (s && (p < s->base || p >= s->base + SLAB_BYTES))
		s = s->next;
	if (s)
		slab_mark(s, (unsigned int)((size_t)(p - s->base) / RNIC_PAGE),
			  n, false);
}

/* Maps over the place @at. */
static int map_at(const struct rnic_segment *s, uint64_t off, size_t len,
		  int prot, char *at)
{
	if (mmap(at, len, prot, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, s->fd,
		 (off_t)off) == MAP_FAILED)
		return -errno;
	if (madvise(at, len, MADV_DONTDUMP) || madvise(at, len, MADV_DONTFORK))
		return -errno;
	return 0;
}

int rnic_window_map(const struct rnic_segment *s, uint64_t off, size_t len,
		    int prot, void **p)
{
	unsigned int n = (unsigned int)(len / RNIC_PAGE);
	char *at;
	int ret = -ENOMEM;

	if (n > ALONE_PAGES)
		return rnic_segment_map(s, off, len, prot, p);
	pthread_mutex_lock(&lock);
	at = place_take(n);
	if (at) {
		ret = map_at(s, off, len, prot, at);
		if (ret)
			place_give(at, n);
	}
	pthread_mutex_unlock(&lock);
	if (ret)
		rnic_log(RNIC_LOG_WARN, "window of %zu bytes: %s", len,
			 strerror(-ret));
	else
		*p = at;
	return ret;
}

void rnic_window_unmap(void *p, size_t len)
{
	unsigned int n = (unsigned int)(len / RNIC_PAGE);

	if (n > ALONE_PAGES) {
		rnic_segment_unmap(p, len);
		return;
	}
	pthread_mutex_lock(&lock);
	place_give(p, n);
	pthread_mutex_unlock(&lock);
}

void rnic_window_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	slabs = NULL;
}
