/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Windows of a peer's spaces in this process.
 *
 * Exclusion: adding and mapping against each other by m->lock; looking runs
 * beside both, since whatever is published stays until the end.
 */
#include "shm/arena_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "shm/log.h"

void rnic_arena_map_init(struct rnic_arena_map *m)
{
	*m = (struct rnic_arena_map){ .ready = true };
	pthread_mutex_init(&m->lock, NULL);
}

static void group_free(struct rnic_window_group *g)
{
	for (unsigned int i = 0; g && i < RNIC_WINDOW_GROUP; i++) {
		/* relaxed: the only thread left */
		void *w = rnic_ptr_load_relaxed(&g->window[i]);

		if (w)
			rnic_segment_unmap(w, RNIC_WINDOW_SIZE);
	}
	free(g);
}

static void space_free(struct rnic_arena_space *s)
{
	if (!s)
		return;
	for (unsigned int i = 0; i < RNIC_WINDOW_GROUPS; i++)
		/* relaxed: the only thread left */
		group_free(rnic_ptr_load_relaxed(&s->group[i]));
	rnic_segment_close(&s->seg);
	free(s);
}

void rnic_arena_map_fini(struct rnic_arena_map *m)
{
	if (!m->ready)
		return;
	for (unsigned int i = 0; i < RNIC_MTT_SPACES; i++)
		/* relaxed: the only thread left */
		space_free(rnic_ptr_load_relaxed(&m->space[i]));
	pthread_mutex_destroy(&m->lock);
	m->ready = false;
}

/* The file can no longer shrink, so a bound once read stays true. */
static int check_seal(const struct rnic_segment *seg)
{
	int seals = fcntl(seg->fd, F_GET_SEALS);

	if (seals >= 0 && seals & F_SEAL_SHRINK)
		return 0;
	rnic_log(RNIC_LOG_WARN,
		 "peer's space: descriptor %d is not a memory file sealed "
		 "against shrinking",
		 seg->fd);
	return -EPROTO;
}

int rnic_arena_map_add(struct rnic_arena_map *m, unsigned int space,
		       const struct rnic_segment *seg)
{
	struct rnic_arena_space *s;
	int ret = space < RNIC_MTT_SPACES ? check_seal(seg) : -EINVAL;

	if (ret)
		return ret;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->seg = *seg;
	/* relaxed: W3 publishes it */
	rnic_store64_relaxed(&s->size, seg->size);
	pthread_mutex_lock(&m->lock);
	/* relaxed: under the writers' lock */
	if (rnic_ptr_load_relaxed(&m->space[space]))
		ret = -EEXIST;
	else
		/* W3: the space; pairs with Y3 */
		rnic_ptr_store_release(&m->space[space], s);
	pthread_mutex_unlock(&m->lock);
	if (ret)
		free(s);
	return ret;
}

void rnic_arena_map_drop(struct rnic_arena_map *m, unsigned int space)
{
	struct rnic_arena_space *s;

	if (space >= RNIC_MTT_SPACES)
		return;
	pthread_mutex_lock(&m->lock);
	/* relaxed: under the writers' lock */
	s = rnic_ptr_load_relaxed(&m->space[space]);
	/* W3: that there is none; nobody looks */
	rnic_ptr_store_release(&m->space[space], NULL);
	pthread_mutex_unlock(&m->lock);
	space_free(s);
}

/* Bounds @offset by the file's real size, asked again if it has grown. */
static int check_size(struct rnic_arena_space *s, uint64_t offset)
{
	struct stat st;

	/* relaxed: see rnic_arena_map_look() */
	if (offset < rnic_load64_relaxed(&s->size))
		return 0;
	if (!fstat(s->seg.fd, &st))
		rnic_store64_relaxed(&s->size, (uint64_t)st.st_size);
	return offset < rnic_load64_relaxed(&s->size) ? 0 : -EFAULT;
}

static int map_window(struct rnic_arena_space *s, uint64_t w)
{
	rnic_aptr *group = &s->group[w / RNIC_WINDOW_GROUP];
	/* relaxed: under the writers' lock */
	struct rnic_window_group *g = rnic_ptr_load_relaxed(group);
	void *p;
	int ret;

	if (!g) {
		g = calloc(1, sizeof(*g));
		if (!g)
			return -ENOMEM;
		/* W4: the group; pairs with Y4 */
		rnic_ptr_store_release(group, g);
	}
	if (rnic_ptr_load_relaxed(&g->window[w % RNIC_WINDOW_GROUP]))
		return 0;
	ret = rnic_segment_map(&s->seg, w << RNIC_WINDOW_SHIFT,
			       RNIC_WINDOW_SIZE, PROT_READ | PROT_WRITE, &p);
	if (!ret)
		/* W5: the mapping; pairs with Y5 */
		rnic_ptr_store_release(&g->window[w % RNIC_WINDOW_GROUP], p);
	return ret;
}

int rnic_arena_map_window(struct rnic_arena_map *m, unsigned int space,
			  uint64_t offset)
{
	uint64_t w = offset >> RNIC_WINDOW_SHIFT;
	struct rnic_arena_space *s;
	int ret;

	if (space >= RNIC_MTT_SPACES)
		return -ENOENT;
	if (w >= (uint64_t)RNIC_WINDOW_GROUP * RNIC_WINDOW_GROUPS)
		return -EFAULT;
	pthread_mutex_lock(&m->lock);
	/* relaxed: under the writers' lock */
	s = rnic_ptr_load_relaxed(&m->space[space]);
	ret = s ? check_size(s, offset) : -ENOENT;
	if (!ret)
		ret = map_window(s, w);
	pthread_mutex_unlock(&m->lock);
	return ret;
}
