/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Spaces: the owner's table of memory files, and peers that map them.
 *
 * Exclusion: the owner's threads by s->lock; peers read the entries beside
 * them, without a lock, and compare the generation before and after.
 */
#include "shm/space.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/arena_map.h"
#include "shm/breakage.h"
#include "shm/log.h"
#include "shm/mtt.h"
#include "shm/remote.h"

enum {
	TABLE_SIZE = RNIC_SPACES * sizeof(struct rnic_space), /* bytes */
};

void rnic_spaces_init(struct rnic_spaces *s, void *table,
		      const struct rnic_segment *arena)
{
	*s = (struct rnic_spaces){
		.table = table,
		.dev = arena->dev,
		.arena = arena->ino,
	};
	pthread_mutex_init(&s->lock, NULL);
	for (unsigned int i = 0; i < RNIC_SPACES; i++)
		s->own[i].seg.fd = -1;
}

void rnic_spaces_forked(struct rnic_spaces *s)
{
	for (unsigned int i = 1; s->table && i <= s->used; i++)
		rnic_segment_close(&s->own[i].seg);
	s->used = 0;
}

void rnic_spaces_fini(struct rnic_spaces *s)
{
	if (!s->table)
		return;
	rnic_spaces_forked(s);
	pthread_mutex_destroy(&s->lock);
	s->table = NULL;
}

/* ---- the file behind a mapping ---- */

static bool is_file(int fd, const struct rnic_vma *v)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == v->dev && st.st_ino == v->ino;
}

/* Seals are of the file, whatever the descriptor. */
static bool is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK &&
	       !(seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE));
}

static bool is_writable(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) == O_RDWR;
}

/*
 * Our own duplicate of @fd, if that is file @v->ino and may be a space; else
 * -1, and *@stop if no other descriptor of the file would be any better.
 */
static int keep(int fd, const struct rnic_vma *v, bool *stop)
{
	int ours;

	if (!is_file(fd, v))
		return -1;
	*stop = !is_sealed(fd);
	if (*stop || !is_writable(fd))
		return -1;
	*stop = true;
	ours = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	/* the number may have got another meaning */
	if (ours >= 0 &&
	    !(is_file(ours, v) && is_sealed(ours) && is_writable(ours))) {
		close(ours);
		ours = -1;
	}
	return ours;
}

static void remember(struct rnic_spaces *s, uint64_t ino, int fd)
{
	s->hint[s->next_hint++ % RNIC_SPACE_HINTS] =
		(struct rnic_space_hint){ .ino = ino, .fd = fd };
}

/* Looks through all descriptors of the process, as keep(). */
static int search(struct rnic_spaces *s, const struct rnic_vma *v)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	bool stop = false;
	int ours = -1;

	while (dir && !stop && (e = readdir(dir))) {
		char *end;
		long fd = strtol(e->d_name, &end, 10);

		if (end == e->d_name || *end || fd == dirfd(dir))
			continue;
		ours = keep((int)fd, v, &stop);
		if (stop)
			remember(s, v->ino, (int)fd);
	}
	if (dir)
		closedir(dir);
	return ours;
}

/* A descriptor of our own of the file that @v maps, or -1. */
static int find_file(struct rnic_spaces *s, const struct rnic_vma *v)
{
	bool stop = false;
	int ours = -1;

	for (int i = 0; i < RNIC_SPACE_HINTS && !stop; i++)
		if (s->hint[i].ino == v->ino)
			ours = keep(s->hint[i].fd, v, &stop);
	return stop ? ours : search(s, v);
}

/* ---- the owner's table ---- */

/* The space of file @v->ino, or 0. */
static unsigned int find_space(const struct rnic_spaces *s,
			       const struct rnic_vma *v)
{
	for (unsigned int i = 1; i <= s->used; i++)
		if (s->own[i].refs && s->own[i].seg.ino == v->ino)
			return i;
	return 0;
}

static unsigned int find_free(const struct rnic_spaces *s)
{
	for (unsigned int i = 1; i < RNIC_SPACES; i++)
		if (!s->own[i].refs)
			return i;
	rnic_log(RNIC_LOG_INFO,
		 "all %d spaces are in use: memory of another file is reached "
		 "by address",
		 RNIC_SPACES - 1);
	return 0;
}

static void publish(struct rnic_spaces *s, unsigned int n)
{
	const struct rnic_segment *seg = &s->own[n].seg;
	struct rnic_space *e = &s->table[n];
	/* relaxed: our own word */
	uint64_t gen = rnic_load64_relaxed(&e->gen);

	/* S1: after the even generation; pair with V1 */
	rnic_store64_release(&e->fd, (uint64_t)seg->fd);
	rnic_store64_release(&e->ino, seg->ino);
	rnic_store64_release(&e->size, seg->size);
	/* S2: the entry; pairs with V2 */
	rnic_store64_release(&e->gen, gen + 1);
}

/* Makes a space of the file that @v maps. Its number, or 0. Locked. */
static unsigned int add_space(struct rnic_spaces *s, const struct rnic_vma *v)
{
	unsigned int n = find_free(s);
	struct rnic_segment *seg = &s->own[n].seg;
	struct stat st;
	int fd;

	if (!n)
		return 0;
	fd = find_file(s, v);
	if (fd < 0)
		return 0;
	if (fstat(fd, &st)) {
		close(fd);
		return 0;
	}
	*seg = (struct rnic_segment){
		.fd = fd,
		.size = (uint64_t)st.st_size,
		.dev = v->dev,
		.ino = v->ino,
	};
	if (n > s->used)
		s->used = n;
	publish(s, n);
	return n;
}

/* One region more in the space of @v. Its number and descriptor, or 0. */
static unsigned int take(struct rnic_spaces *s, const struct rnic_vma *v,
			 int *fd)
{
	unsigned int n;

	pthread_mutex_lock(&s->lock);
	n = find_space(s, v);
	if (!n && rnic_vma_is_memfd(v->start))
		n = add_space(s, v);
	if (n) {
		s->own[n].refs++;
		*fd = s->own[n].seg.fd;
	}
	pthread_mutex_unlock(&s->lock);
	return n;
}

/* Pages for @len bytes at @off of @fd, all of which are there. */
static int make_pages(int fd, uint64_t off, uint64_t len)
{
	struct rnic_segment seg = { .fd = fd };
	struct stat st;

	if (fstat(fd, &st) || (uint64_t)st.st_size < off ||
	    (uint64_t)st.st_size - off < len)
		return -ENOENT;
	return rnic_segment_populate_rest(&seg, off, len);
}

int rnic_space_get(struct rnic_spaces *s, const struct rnic_vma *v,
		   uint64_t addr, uint64_t len, uint64_t *leaf)
{
	uint64_t off = v->off + (addr - v->start);
	unsigned int n;
	int fd;

	if (!v->shared || v->dev != s->dev || v->ino == s->arena ||
	    addr < v->start || addr >= v->end || len > v->end - addr)
		return -ENOENT;
	n = take(s, v, &fd);
	if (!n)
		return -ENOENT;
	*leaf = rnic_mtt_leaf_space(n, off / RNIC_PAGE);
	if (!make_pages(fd, off, len))
		return 0;
	rnic_space_put(s, *leaf);
	return -ENOENT;
}

void rnic_space_put(struct rnic_spaces *s, uint64_t leaf)
{
	unsigned int n = rnic_mtt_leaf_space_of(leaf);
	struct rnic_space *e = &s->table[n];

	pthread_mutex_lock(&s->lock);
	if (!--s->own[n].refs) {
		/* S3: before the entry changes, see S1; our own word */
		rnic_store64_release(
			&e->gen,
			rnic_load64_relaxed(&e->gen) +
				(RNIC_BROKEN(file_gen) ? UINT64_MAX : 1));
		rnic_segment_close(&s->own[n].seg);
	}
	pthread_mutex_unlock(&s->lock);
}

bool rnic_space_holds(const struct rnic_spaces *s, uint64_t leaf, uint64_t addr,
		      uint64_t len)
{
	/* no lock: as it is while the caller holds it */
	uint64_t ino = s->own[rnic_mtt_leaf_space_of(leaf)].seg.ino;
	uint64_t start = rnic_page_down(addr), at = start;
	uint64_t off = (leaf >> RNIC_MTT_PAGE_SHIFT) * RNIC_PAGE;
	struct rnic_vma v;

	while (at < addr + len) {
		if (rnic_vma_next(at, &v) || v.start > at || !v.shared ||
		    v.dev != s->dev || v.ino != ino ||
		    v.off + (at - v.start) != off + (at - start))
			return false;
		at = v.end;
	}
	return true;
}

unsigned int rnic_spaces_used(struct rnic_spaces *s)
{
	unsigned int n = 0;

	pthread_mutex_lock(&s->lock);
	for (unsigned int i = 1; i <= s->used; i++)
		n += s->own[i].refs != 0;
	pthread_mutex_unlock(&s->lock);
	return n;
}

/* ---- the peer's side ---- */

static struct rnic_space_view *view_new(const struct rnic_remote *r)
{
	struct rnic_space_view *v = calloc(1, sizeof(*v));
	void *p;

	if (v && rnic_segment_map(&r->tables, r->hdr.space_off, TABLE_SIZE,
				  PROT_READ, &p)) {
		free(v);
		return NULL;
	}
	if (v)
		v->table = p;
	return v;
}

void rnic_space_view_free(struct rnic_space_view *v)
{
	if (v)
		rnic_segment_unmap((void *)(uintptr_t)v->table, TABLE_SIZE);
	free(v);
}

/* Gives back files that no region of the peer's lies in any more. */
static void sweep(struct rnic_space_view *v, struct rnic_arena_map *map)
{
	for (unsigned int i = 1; i < RNIC_SPACES; i++) {
		if (!v->gen[i] || rnic_space_current(v, i))
			continue;
		rnic_arena_map_drop(map, i);
		v->gen[i] = 0;
	}
}

/* Opens what @e names. *@gen: its generation when it was read, odd. */
static int open_file(const struct rnic_space *e, const struct rnic_remote *r,
		     uint64_t *gen, struct rnic_segment *seg)
{
	uint64_t fd, ino, again;
	int ret;

	/* V2: the entry; pairs with S2 */
	*gen = rnic_load64_acquire(&e->gen);
	/* V1: a later one shows a later generation below; pair with S1 */
	fd = rnic_load64_acquire(&e->fd);
	ino = rnic_load64_acquire(&e->ino);
	if (!(*gen & 1))
		return -ENOKEY;
	ret = fd > INT32_MAX ? -EPROTO : rnic_remote_file(r, (int)fd, ino, seg);
	/* relaxed: after V1, and after the system calls */
	again = rnic_load64_relaxed(&e->gen);
	if (again == *gen)
		return ret;
	if (!ret)
		rnic_segment_close(seg);
	return -ENOKEY;
}

/* What a failure to open means: see rnic_space_attach(). */
static int attach_error(int ret)
{
	switch (ret) {
	case -ESTALE:
		return -ESRCH;
	case -EACCES:
	case -EPERM:
		return -EREMOTE;
	default:
		return ret;
	}
}

int rnic_space_attach(struct rnic_space_view **view,
		      const struct rnic_remote *r, struct rnic_arena_map *map,
		      unsigned int space)
{
	struct rnic_segment seg = { .fd = -1 };
	struct rnic_space_view *v = *view;
	uint64_t gen;
	int ret;

	if (!v)
		v = *view = view_new(r);
	if (!v)
		return -ENOMEM;
	if (rnic_space_current(v, space))
		return 0;
	sweep(v, map);
	ret = open_file(&v->table[space], r, &gen, &seg);
	if (ret)
		return attach_error(ret);
	ret = rnic_arena_map_add(map, space, &seg);
	if (ret)
		rnic_segment_close(&seg);
	else
		v->gen[space] = gen;
	return ret;
}
