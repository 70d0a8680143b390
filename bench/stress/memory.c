/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Memory that scenarios change, and who is told of it.
 *
 * A slot is reserved by PROT_NONE. Where a scenario unmaps it there is a hole,
 * which is noted: another thread may be given it. Only what is no hole, and so
 * is our own, is ever replaced.
 */
#include "bench/stress/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/stress/churn.h"

enum {
	SLOT_PAGES = STRESS_SLOT / STRESS_PAGE,
	GROWTH = 2 << 20, /* of a memory file, beyond its mapping */
};

static const size_t slots_size = (size_t)STRESS_SLOTS * STRESS_SLOT;

/* ---- telling the provider ---- */

/* Told for one domain, it holds for all of the process. */
void stress_change_begin(struct stress *s, const void *p, size_t len)
{
	int ret;

	if (!s->told_notify || !s->main.cache)
		return;
	ret = s->main.cache->unmap_begin(&s->main.domain->fid, p, len);
	if (ret)
		stress_wrong(s, "unmap_begin: %s", stress_code(ret));
}

void stress_change_end(struct stress *s, const void *p, size_t len)
{
	int ret;

	if (!s->told_notify || !s->main.cache)
		return;
	ret = s->main.cache->unmap_end(&s->main.domain->fid, p, len);
	if (ret)
		stress_wrong(s, "unmap_end: %s", stress_code(ret));
}

/* ---- slots ---- */

int stress_slots_open(struct stress *s)
{
	void *p = mmap(NULL, slots_size, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	s->slots = p;
	s->told_notify =
		!strcmp(stress_setting("FI_SHRIMP_MR_CACHE_MONITOR"), "notify");
	return 0;
}

/* The page of the slots that @p is in, or -1. */
static long page_of(const struct stress *s, const void *p)
{
	size_t at = (uintptr_t)p - (uintptr_t)s->slots;

	return at < slots_size ? (long)(at / STRESS_PAGE) : -1;
}

static bool *hole_of(struct stress *s, long page)
{
	return &s->hole[page / SLOT_PAGES][page % SLOT_PAGES];
}

static void holes_mark(struct stress *s, const void *p, size_t len, bool hole)
{
	long page = page_of(s, p);

	for (size_t i = 0; page >= 0 && i < len; i += STRESS_PAGE, page++)
		*hole_of(s, page) = hole;
}

bool stress_slot_plug(struct stress *s, unsigned char *p, size_t len)
{
	for (size_t i = 0; i < len; i += STRESS_PAGE) {
		bool *hole = hole_of(s, page_of(s, p + i));
		void *got;

		if (!*hole)
			continue;
		got = mmap(p + i, STRESS_PAGE, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
				   MAP_FIXED_NOREPLACE,
			   -1, 0);
		if (got == MAP_FAILED)
			return false;
		*hole = false;
	}
	return true;
}

static bool all_hole(struct stress *s, unsigned char *p, size_t len)
{
	for (size_t i = 0; i < len; i += STRESS_PAGE)
		if (!*hole_of(s, page_of(s, p + i)))
			return false;
	return true;
}

static void *reserve(unsigned char *p, size_t len, int fixed)
{
	return mmap(p, len, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
}

/* All that is no hole is ours: it is replaced, then the holes are plugged. */
static bool slot_reserve(struct stress *s, unsigned int i)
{
	unsigned char *p = s->slots + (size_t)i * STRESS_SLOT;
	bool *hole = s->hole[i];
	size_t n;

	for (size_t at = 0; at < SLOT_PAGES; at += n) {
		n = 1;
		while (at + n < SLOT_PAGES && hole[at + n] == hole[at])
			n++;
		if (!hole[at]) {
			reserve(p + at * STRESS_PAGE, n * STRESS_PAGE,
				MAP_FIXED);
		} else if (reserve(p + at * STRESS_PAGE, n * STRESS_PAGE,
				   MAP_FIXED_NOREPLACE) != MAP_FAILED) {
			memset(hole + at, 0, n);
		}
	}
	return !memchr(hole, 1, SLOT_PAGES);
}

unsigned char *stress_slot(struct stress *s, unsigned int i)
{
	if (memchr(s->hole[i], 1, SLOT_PAGES) && !slot_reserve(s, i))
		return NULL;
	return s->slots + (size_t)i * STRESS_SLOT;
}

void stress_slot_free(struct stress *s, unsigned int i)
{
	unsigned char *p = s->slots + (size_t)i * STRESS_SLOT;

	stress_change_begin(s, p, STRESS_SLOT);
	slot_reserve(s, i);
	stress_change_end(s, p, STRESS_SLOT);
}

void stress_slot_took(struct stress *s, void *p, size_t len)
{
	holes_mark(s, p, len, false);
}

void stress_slot_left(struct stress *s, void *p, size_t len)
{
	holes_mark(s, p, len, true);
}

int stress_slot_fixed(struct stress *s, unsigned char *p, size_t len)
{
	if (page_of(s, p) < 0 || all_hole(s, p, len))
		return MAP_FIXED_NOREPLACE;
	return stress_slot_plug(s, p, len) ? MAP_FIXED : MAP_FIXED_NOREPLACE;
}

/* ---- maps ---- */

unsigned char *stress_map_as(struct stress *s, void *at, size_t len, int prot,
			     int flags, int fd)
{
	int fixed = at ? stress_slot_fixed(s, at, len) : 0;
	unsigned char *p = mmap(at, len, prot, flags | fixed, fd, 0);

	if (p == MAP_FAILED && fixed == MAP_FIXED_NOREPLACE)
		p = mmap(NULL, len, prot, flags, fd, 0);
	if (p == MAP_FAILED) {
		stress_say(s, "mmap of %zu: %s", len, strerror(errno));
		return NULL;
	}
	if (p == at)
		holes_mark(s, p, len, false);
	stress_say(s, "mmap %p %zu%s%s", (void *)p, len,
		   flags & MAP_SHARED ? " shared" : "",
		   flags & MAP_ANONYMOUS ? "" : " file");
	return p;
}

int stress_memfd(struct stress *s, size_t len)
{
	int fd = memfd_create("shrimp-stress", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int *place = &s->file[s->files % STRESS_FILES];

	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)(len + GROWTH)) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)) {
		close(fd);
		return -1;
	}
	if (*place)
		close(*place);
	*place = fd;
	s->files++;
	return fd;
}

int stress_memfd_filled(struct stress *s, size_t len, struct stress_pat *pat)
{
	int fd = stress_memfd(s, len);
	unsigned char *p = fd < 0 ? MAP_FAILED
				  : mmap(NULL, len, PROT_READ | PROT_WRITE,
					 MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -1;
	*pat = stress_fill(s, p, len);
	munmap(p, len);
	return fd;
}

void stress_files_close(struct stress *s)
{
	for (int i = 0; i < STRESS_FILES; i++) {
		if (s->file[i])
			close(s->file[i]);
		s->file[i] = 0;
	}
}

unsigned char *stress_map_memfd(struct stress *s, void *at, size_t len)
{
	int fd = stress_memfd(s, len);

	return fd < 0 ? NULL
		      : stress_map_as(s, at, len, PROT_READ | PROT_WRITE,
				      MAP_SHARED, fd);
}

unsigned char *stress_map(struct stress *s, void *at, size_t len, bool shared)
{
	if (shared && stress_random(s, 4))
		return stress_map_memfd(s, at, len);
	return stress_map_as(
		s, at, len, PROT_READ | PROT_WRITE,
		MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1);
}

void stress_unmap(struct stress *s, void *p, size_t len)
{
	if (!p)
		return;
	stress_say(s, "munmap %p %zu", p, len);
	stress_change_begin(s, p, len);
	if (munmap(p, len))
		stress_wrong(s, "munmap of %zu at %p: %s", len, p,
			     strerror(errno));
	else
		holes_mark(s, p, len, true);
	stress_change_end(s, p, len);
}

void *stress_malloc(struct stress *s, size_t len)
{
	void *p = malloc(len);

	stress_say(s, "malloc %zu: %p", len, p);
	return p;
}

/* Not inlined: compilers refuse what looks like the use of a freed pointer. */
__attribute__((noinline)) static void freed_end(struct stress *s, uintptr_t at,
						size_t len)
{
	stress_change_end(s, (const void *)at, len);
}

void stress_free(struct stress *s, void *p)
{
	size_t len = p ? malloc_usable_size(p) : 0;
	uintptr_t at = (uintptr_t)p; /* which names no memory any more */

	if (!p)
		return;
	stress_say(s, "free %p", p);
	stress_change_begin(s, p, len);
	free(p);
	freed_end(s, at, len);
}

/* Not inlined, as above. */
__attribute__((noinline)) static void resized_say(struct stress *s,
						  uintptr_t at, size_t was,
						  const void *p, size_t len)
{
	stress_say(s, "realloc %#lx %zu to %zu: %p", (unsigned long)at, was,
		   len, p);
}

void *stress_realloc(struct stress *s, void *p, size_t len)
{
	size_t was = malloc_usable_size(p);
	uintptr_t at = (uintptr_t)p; /* which may name no memory any more */
	void *got;

	stress_change_begin(s, p, was);
	got = realloc(p, len);
	freed_end(s, at, was);
	resized_say(s, at, was, got, len);
	return got;
}

void stress_beside_pause(struct stress *s)
{
	stress_churn_pause(s->churn);
}

void stress_beside_resume(struct stress *s)
{
	stress_churn_resume(s->churn);
}

/* ---- madvise ---- */

/* Whether the mapping that has @p is locked in memory. */
static bool is_locked(const void *p)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long from, to, at = (uintptr_t)p;
	bool inside = false, locked = false;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = at >= from && at < to;
		else if (inside && !strncmp(line, "VmFlags:", 8))
			locked = strstr(line, " lo") != NULL;
	}
	if (f)
		fclose(f);
	return locked;
}

bool stress_keeps_locked(const struct stress *s)
{
	return !stress_is_shrimp(s) ||
	       !strcmp(stress_setting("FI_SHRIMP_MR_CACHE_PIN"), "keep");
}

static int advice_refused(struct stress *s, void *p, int advice, int err)
{
	stress_refused(s);
	if (!is_locked(p))
		return stress_skip(s, "madvise %d: %s", advice, strerror(err));
	if (stress_keeps_locked(s))
		return stress_skip(s, "madvise %d: the memory stays locked",
				   advice);
	return stress_wrong(s,
			    "madvise %d at %p: memory is locked of which no "
			    "region is open",
			    advice, p);
}

int stress_madvise(struct stress *s, void *p, size_t len, int advice)
{
	int ret, err;

	stress_say(s, "madvise %p %zu %d", p, len, advice);
	stress_change_begin(s, p, len);
	ret = madvise(p, len, advice);
	err = errno;
	stress_change_end(s, p, len);
	return ret ? advice_refused(s, p, advice, err) : 0;
}
