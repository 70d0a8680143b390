/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Own mappings: PROCMAP_QUERY, or the text of /proc/self/maps.
 *
 * The descriptor belongs to the address space in which it was opened, so it
 * is kept together with the pid in one word. Two threads that open it at once
 * keep the first and close the other. A word that a parent left is replaced
 * by the child; the inherited descriptor stays open, since its number may
 * have another use by then.
 */
#include "shm/vma.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "shm/atomic.h"
#include "shm/log.h"

/* Linux 6.11's struct procmap_query; headers may be older. */
struct query {
	uint64_t size;		/* of this struct */
	uint64_t flags;		/* what is asked */
	uint64_t addr;		/* where */
	uint64_t vma_start;	/* answer */
	uint64_t vma_end;	/* answer */
	uint64_t vma_flags;	/* answer */
	uint64_t vma_page_size; /* answer */
	uint64_t vma_offset;	/* answer */
	uint64_t inode;		/* answer */
	uint32_t dev_major;	/* answer */
	uint32_t dev_minor;	/* answer */
	uint32_t name_size;	/* 0: no name wanted */
	uint32_t build_id_size; /* 0: none wanted */
	uint64_t name_addr;	/* no buffer */
	uint64_t build_id_addr; /* no buffer */
};
_Static_assert(sizeof(struct query) == 104, "as in the kernel");

#define MEMFD "/memfd:" /* names of memfds begin so */
#define QUERY _IOWR('f', 17, struct query)

enum {
	QUERY_READABLE = 1,	     /* bits of vma_flags */
	QUERY_WRITABLE = 2,	     /* the same */
	QUERY_EXECUTABLE = 4,	     /* the same */
	QUERY_SHARED = 8,	     /* the same: it may be */
	QUERY_COVERING_OR_NEXT = 16, /* flag of the question */
};

enum {
	MAPS_SHARE = 4,	      /* a quarter is ours */
	MAPS_DEFAULT = 65530, /* the kernel's, if it does not say */
};

static rnic_a64 kept;	   /* pid << 32 | descriptor + 1; 0: none */
static rnic_a32 text_only; /* 1: no ioctl */
static rnic_a32 answers;   /* the ioctl: 0 not known, else enum answer */
static rnic_a64 caused;	   /* mappings: pins and watches add, atomically */
static rnic_a64 limit;	   /* of them; 0: not known */

enum answer { ANSWER_YES = 1, ANSWER_NO };

/* The descriptor of /proc/self/maps of this process, or -1. */
static int maps_fd(void)
{
	/* relaxed: the word is all there is to it */
	uint64_t have = rnic_load64_relaxed(&kept);
	uint64_t pid = (uint64_t)getpid() << 32;
	int fd;

	if (have && (have & ~(uint64_t)UINT32_MAX) == pid)
		return (int)(uint32_t)have - 1;
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && fd <= STDERR_FILENO) {
		close(fd);
		return -1;
	}
	/* one thread of several keeps its descriptor */
	if (fd < 0 || rnic_cas64_seqcst(&kept, have, pid | (uint32_t)(fd + 1)))
		return fd;
	close(fd);
	return (int)(uint32_t)rnic_load64_relaxed(&kept) - 1;
}

/* 0, -ENOENT, or -ENOTSUP. */
static int ask(struct query *q)
{
	/* relaxed: a switch for tests */
	int fd = rnic_load32_relaxed(&text_only) ? -1 : maps_fd();

	q->size = sizeof(*q);
	if (fd < 0)
		return -ENOTSUP;
	if (ioctl(fd, QUERY, q))
		return errno == ENOENT ? -ENOENT : -ENOTSUP;
	return 0;
}

static int next_by_ioctl(uint64_t addr, struct rnic_vma *v)
{
	struct query q = { .flags = QUERY_COVERING_OR_NEXT, .addr = addr };
	int ret = ask(&q);

	if (ret)
		return ret;
	*v = (struct rnic_vma){
		.start = q.vma_start,
		.end = q.vma_end,
		.prot = (q.vma_flags & QUERY_READABLE ? PROT_READ : 0) |
			(q.vma_flags & QUERY_WRITABLE ? PROT_WRITE : 0) |
			(q.vma_flags & QUERY_EXECUTABLE ? PROT_EXEC : 0),
		.shared = q.vma_flags & QUERY_SHARED,
		.dev = makedev(q.dev_major, q.dev_minor),
		.ino = q.inode,
		.off = q.vma_offset,
		.page = q.vma_page_size,
	};
	return 0;
}

/*
 * Reads "start-end rwxs offset major:minor inode"; *@name: where the path
 * begins, if there is one.
 */
static bool parse(const char *line, struct rnic_vma *v, int *name)
{
	unsigned int major, minor;
	char r, w, x, s;

	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %c%c%c%c %" SCNx64 " %x:%x %" SCNu64
		   " %n",
		   &v->start, &v->end, &r, &w, &x, &s, &v->off, &major, &minor,
		   &v->ino, name) != 10)
		return false;
	v->prot = (r == 'r' ? PROT_READ : 0) | (w == 'w' ? PROT_WRITE : 0) |
		  (x == 'x' ? PROT_EXEC : 0);
	v->shared = s == 's';
	v->page = 0;
	v->dev = makedev(major, minor);
	return true;
}

/* *@memfd: its name says that it is one. */
static int next_by_text(uint64_t addr, struct rnic_vma *v, bool *memfd)
{
	FILE *f = fopen("/proc/self/maps", "re");
	int ret = -ENOENT, name = 0;
	struct rnic_vma at;
	char line[512];

	if (!f) {
		rnic_log(RNIC_LOG_WARN, "/proc/self/maps: %s", strerror(errno));
		return -EIO;
	}
	/* the rest of a long line (a path) does not parse, or ends below */
	while (ret && fgets(line, sizeof(line), f)) {
		if (!parse(line, &at, &name) || at.end <= addr)
			continue;
		*v = at;
		*memfd = !strncmp(line + name, MEMFD, strlen(MEMFD));
		ret = 0;
	}
	fclose(f);
	return ret;
}

int rnic_vma_next(uint64_t addr, struct rnic_vma *v)
{
	int ret = next_by_ioctl(addr, v);
	bool memfd;

	return ret == -ENOTSUP ? next_by_text(addr, v, &memfd) : ret;
}

bool rnic_vma_is_memfd(uint64_t addr)
{
	char name[PATH_MAX] = "";
	struct query q = { .addr = addr,
			   .name_size = sizeof(name),
			   .name_addr = (uintptr_t)name };
	struct rnic_vma v;
	bool memfd = false;

	if (ask(&q) != -ENOTSUP)
		return !strncmp(name, MEMFD, strlen(MEMFD));
	return !next_by_text(addr, &v, &memfd) && v.start <= addr && memfd;
}

bool rnic_vma_fast(void)
{
	/* relaxed: each thread would find out the same */
	uint32_t a = rnic_load32_relaxed(&answers);
	struct rnic_vma v;

	if (!a) {
		a = next_by_ioctl(0, &v) == -ENOTSUP ? ANSWER_NO : ANSWER_YES;
		rnic_store32_relaxed(&answers, a);
	}
	return a == ANSWER_YES;
}

void rnic_vma_text_only(bool on)
{
	/* relaxed: tests set it before they look */
	rnic_store32_relaxed(&text_only, on);
	rnic_store32_relaxed(&answers, 0);
}

static uint64_t quarter(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	uint64_t n;

	if (!f || fscanf(f, "%" SCNu64, &n) != 1)
		n = MAPS_DEFAULT;
	if (f)
		fclose(f);
	return n / MAPS_SHARE;
}

bool rnic_vma_room(uint64_t more, struct rnic_vma_budget *b)
{
	/* relaxed, all: a number each; it bounds, and orders nothing */
	b->limit = rnic_load64_relaxed(&limit);
	if (!b->limit) {
		b->limit = quarter();
		rnic_store64_relaxed(&limit, b->limit);
	}
	b->caused = rnic_load64_relaxed(&caused);
	return b->caused + more <= b->limit;
}

void rnic_vma_count(int64_t n)
{
	/* relaxed: as above. Who adds holds the lock of what it counts */
	rnic_add64_relaxed(&caused, (uint64_t)n);
}

void rnic_vma_limit(uint64_t mappings)
{
	/* relaxed: as above */
	rnic_store64_relaxed(&limit, mappings);
}
