/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Page sizes behind memory, see backing.h.
 *
 * A range is gone through in pieces: mapping by mapping, and inside a mapping
 * of small pages huge one by huge one; equal neighbours become one piece. What
 * changes meanwhile is seen, or not.
 */
#include "shm/backing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/atomic.h"
#include "shm/log.h"
#include "shm/vma.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14; older ones answer EINVAL */
#endif

enum { PIECES_MIN = 4 }; /* first size of the array */

/* Linux 6.7's struct page_region and struct pm_scan_arg. */
struct scan_region {
	uint64_t start;	     /* first address */
	uint64_t end;	     /* last address + 1 */
	uint64_t categories; /* bits as in return_mask */
};
struct scan {
	uint64_t size;		    /* of this struct */
	uint64_t flags;		    /* none */
	uint64_t start;		    /* first address */
	uint64_t end;		    /* last address + 1 */
	uint64_t walk_end;	    /* answer: as far as it looked */
	uint64_t vec;		    /* of regions */
	uint64_t vec_len;	    /* their number */
	uint64_t max_pages;	    /* 0: no limit */
	uint64_t category_inverted; /* bits that must be clear */
	uint64_t category_mask;	    /* bits that count */
	uint64_t category_anyof;    /* not used */
	uint64_t return_mask;	    /* bits that are told */
};
_Static_assert(sizeof(struct scan) == 96, "as in the kernel");

#define SCAN _IOWR('f', 16, struct scan)

enum {
	SCAN_PRESENT = 1 << 3, /* categories of pages */
	SCAN_ZEROS = 1 << 5,   /* the same: the page of zeros */
	SCAN_HUGE = 1 << 6,    /* the same: mapped by a PMD, or hugetlb */
};

/* A range that is looked at. */
struct search {
	struct rnic_backing *b; /* found so far */
	uint64_t at;		/* not yet known from here on */
	uint64_t end;		/* last byte + 1 */
	uint64_t entry;		/* leaf of the page that holds @addr */
	uint64_t addr;		/* first byte */
	int fd;			/* /proc/self/pagemap */
};

static rnic_a32 text_only; /* 1: no ioctl */

/* The size of leaves for pages of @page bytes. */
static uint64_t leaf_for(uint64_t page)
{
	unsigned int level = RNIC_MTT_DEPTH_MAX;

	while (level > 1 && rnic_mtt_leaf_bytes(level) > page)
		level--;
	return rnic_mtt_leaf_bytes(level);
}

/* Room for one piece more. */
static int grow(struct rnic_backing *b)
{
	size_t n = b->n ? 2 * b->n : PIECES_MIN;
	struct rnic_extent *x;

	/* full when the number is a power of two, or at first */
	if (b->n && (b->n < PIECES_MIN || b->n & (b->n - 1)))
		return 0;
	x = reallocarray(b->x, n, sizeof(*x));
	if (!x) {
		rnic_log(RNIC_LOG_WARN, "MTT: no memory for %zu pieces", n);
		return -ENOMEM;
	}
	b->x = x;
	return 0;
}

/* What is not yet known has pages of @page bytes up to @stop. */
static int add(struct search *s, uint64_t stop, uint64_t page)
{
	struct rnic_backing *b = s->b;
	uint64_t leaf = leaf_for(page);
	int ret;

	if (stop > s->end)
		stop = s->end;
	if (stop <= s->at)
		return 0;
	if (b->n && b->x[b->n - 1].leaf == leaf) {
		b->x[b->n - 1].length += stop - s->at;
		s->at = stop;
		return 0;
	}
	ret = grow(b);
	if (ret)
		return ret;
	b->x[b->n++] = (struct rnic_extent){
		.va = s->at,
		.length = stop - s->at,
		.entry = s->entry +
			 (rnic_page_down(s->at) - rnic_page_down(s->addr)),
		.leaf = leaf,
	};
	s->at = stop;
	return 0;
}

/* ---- by ioctl ---- */

/*
 * The next huge pages from s->at on, before @end. 1 with *@r, 0: there are
 * none, or a negative errno: not known.
 */
static int next_huge(const struct search *s, uint64_t end,
		     struct scan_region *r)
{
	struct scan q = {
		.size = sizeof(q),
		.start = rnic_page_down(s->at),
		.end = end,
		.vec = (uintptr_t)r,
		.vec_len = 1,
		.category_inverted = SCAN_ZEROS,
		.category_mask = SCAN_PRESENT | SCAN_ZEROS | SCAN_HUGE,
		.return_mask = SCAN_HUGE,
	};
	int ret = ioctl(s->fd, SCAN, &q);

	return ret < 0 ? -errno : ret;
}

/* The rest of mapping @v, of small pages, some of which may be huge. */
static int scan_mapping(struct search *s, const struct rnic_vma *v)
{
	uint64_t end = v->end < s->end ? v->end : s->end;
	struct scan_region r;
	int found, ret = 0;

	while (!ret && s->at < end) {
		/* whole pages: the kernel insists */
		found = next_huge(s, rnic_page_down(end + RNIC_PAGE - 1), &r);
		if (found < 0)
			return found;
		ret = add(s, found ? r.start : end, RNIC_PAGE);
		if (!ret && found)
			ret = add(s, r.end, rnic_mtt_leaf_bytes(2));
	}
	return ret;
}

/* 0, -ENOMEM, or another error: not known from s->at on. */
static int find_by_ioctl(struct search *s)
{
	int ret = 0;

	/* relaxed: a switch for tests */
	if (rnic_load32_relaxed(&text_only) || !rnic_vma_fast())
		return -ENOTSUP;
	s->fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (s->fd < 0)
		return -errno;
	while (!ret && s->at < s->end) {
		struct rnic_vma v;

		ret = rnic_vma_next(s->at, &v);
		if (ret == -ENOENT)
			v.start = v.end = s->end;
		else if (ret)
			break;
		/* what is not mapped before it */
		ret = add(s, v.start, RNIC_PAGE);
		if (!ret && v.page > RNIC_PAGE)
			ret = add(s, v.end, v.page);
		else if (!ret)
			ret = scan_mapping(s, &v);
	}
	close(s->fd);
	return ret;
}

/* ---- by smaps ---- */

/* A mapping as smaps has it. */
struct summary {
	uint64_t start; /* first address */
	uint64_t end;	/* last address + 1 */
	uint64_t page;	/* KernelPageSize, bytes */
	uint64_t huge;	/* bytes in huge pages, all kinds */
};

/* Takes "Name: 123 kB" if it is one of those that count. */
static void take_line(const char *line, struct summary *m)
{
	uint64_t kib;

	if (sscanf(line, "KernelPageSize: %" SCNu64 " kB", &kib) == 1)
		m->page = kib << 10;
	else if (sscanf(line, "AnonHugePages: %" SCNu64 " kB", &kib) == 1 ||
		 sscanf(line, "ShmemPmdMapped: %" SCNu64 " kB", &kib) == 1 ||
		 sscanf(line, "FilePmdMapped: %" SCNu64 " kB", &kib) == 1)
		m->huge += kib << 10;
}

/* The bytes of @m that huge pages can have, from *@from to *@to. */
static uint64_t room_for_huge(const struct summary *m, uint64_t *from,
			      uint64_t *to)
{
	uint64_t huge = rnic_mtt_leaf_bytes(2);

	*from = (m->start + huge - 1) & ~(huge - 1);
	*to = m->end & ~(huge - 1);
	return *to > *from ? *to - *from : 0;
}

/* A mapping that is complete, behind s->at or not. */
static int add_mapping(struct search *s, const struct summary *m)
{
	uint64_t from, to, room = room_for_huge(m, &from, &to);
	int ret;

	if (m->end <= s->at || m->start >= s->end)
		return 0;
	ret = add(s, m->start, RNIC_PAGE);
	if (ret || m->page > RNIC_PAGE)
		return ret ? ret : add(s, m->end, m->page);
	if (room && m->huge == room) {
		ret = add(s, from, RNIC_PAGE);
		if (!ret)
			ret = add(s, to, rnic_mtt_leaf_bytes(2));
	}
	return ret ? ret : add(s, m->end, RNIC_PAGE);
}

static int find_by_text(struct search *s)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	struct summary m = { 0 };
	int ret = 0;
	char line[512];

	while (f && !ret && m.start < s->end && fgets(line, sizeof(line), f)) {
		uint64_t start, end;

		/* a path's rest does not parse, or is no line that counts */
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) !=
		    2) {
			take_line(line, &m);
			continue;
		}
		ret = add_mapping(s, &m);
		m = (struct summary){ .start = start, .end = end };
	}
	if (!ret)
		ret = add_mapping(s, &m);
	if (f)
		fclose(f);
	return ret ? ret : add(s, s->end, RNIC_PAGE);
}

/* ---- both ---- */

int rnic_backing_find(struct rnic_backing *b, uint64_t addr, uint64_t len,
		      uint64_t entry)
{
	struct search s = {
		.b = b,
		.at = addr,
		.addr = addr,
		.end = addr + len,
		.entry = entry,
		.fd = -1,
	};
	int ret;

	*b = (struct rnic_backing){ 0 };
	ret = find_by_ioctl(&s);
	/* goes on where the other ended */
	if (ret && ret != -ENOMEM)
		ret = find_by_text(&s);
	if (ret)
		rnic_backing_fini(b);
	return ret;
}

void rnic_backing_fini(struct rnic_backing *b)
{
	free(b->x);
	*b = (struct rnic_backing){ 0 };
}

/*
 * Maps one page in each place of a huge one, which maps all of it if it is one.
 * Not for its content: an error changes nothing.
 */
static void map_some(uint64_t addr, uint64_t len)
{
	uint64_t huge = rnic_mtt_leaf_bytes(2), end = addr + len;

	for (uint64_t at = addr; at < end; at = (at & ~(huge - 1)) + huge)
		madvise((void *)(uintptr_t)rnic_page_down(at), RNIC_PAGE,
			MADV_POPULATE_READ);
}

int rnic_backing_translate(struct rnic_mtt_pool *p, uint64_t addr, uint64_t len,
			   uint64_t entry, bool made, uint64_t *root)
{
	struct rnic_backing b;
	int ret;

	if (made)
		map_some(addr, len);
	ret = rnic_backing_find(&b, addr, len, entry);
	if (!ret)
		ret = rnic_mtt_build(p, b.x, b.n, root);
	rnic_backing_fini(&b);
	return ret;
}

void rnic_backing_text_only(bool on)
{
	/* relaxed: tests set it before they look */
	rnic_store32_relaxed(&text_only, on);
}
