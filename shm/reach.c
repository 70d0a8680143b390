/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One-sided access, see reach.h. What waits (a window to map, a probe) is
 * done outside of sections, and the key is then resolved again.
 */
#include "shm/reach.h"

#include <errno.h>
#include <string.h>

#include "shm/aop.h"
#include "shm/breakage.h"
#include "shm/copy.h"
#include "shm/log.h"
#include "shm/mtt.h"
#include "shm/vm.h"

int rnic_reach_init(struct rnic_reach *x, struct rnic_remote *r,
		    struct rnic_lane *lane, unsigned int ctx_index)
{
	int ret;

	*x = (struct rnic_reach){ .remote = r };
	ret = rnic_target_init(&x->target, r, lane, ctx_index);
	if (ret)
		return ret;
	rnic_arena_map_init(&x->map);
	x->ready = true;
	return 0;
}

void rnic_reach_fini(struct rnic_reach *x)
{
	if (!x->ready)
		return;
	rnic_target_fini(&x->target);
	rnic_space_view_free(x->spaces);
	rnic_arena_map_fini(&x->map);
	x->ready = false;
}

/* ---- sections ---- */

/* Where the next bytes lie. */
struct place {
	struct rnic_xlat at;	/* as resolved */
	struct rnic_xlat first; /* of the first chunk */
	bool begun;		/* first is set */
	uint64_t space_off;	/* byte in the space */
};

/*
 * Goes inside and resolves what is left of @a after @done bytes. On success
 * the caller is inside.
 */
static int section(struct rnic_ctx *c, struct rnic_reach *x,
		   const struct rnic_access *a, uint64_t done, struct place *p)
{
	struct rnic_want w = {
		.key = a->key,
		.addr = a->addr + done,
		.len = a->len - done,
		.rights = rnic_access_rights(a),
		.first = p->begun ? &p->first : NULL,
	};
	int ret;

	rnic_enter(&x->target);
	ret = rnic_resolve(c, &x->target, &w, &p->at);
	if (ret) {
		rnic_leave(&x->target);
		return ret;
	}
	if (!p->begun)
		p->first = p->at;
	p->begun = true;
	return 0;
}

/* What the caller learns of the region. */
static void tell(struct rnic_access *a, const struct place *p,
		 enum rnic_path path)
{
	a->rights = p->at.rights;
	a->slot = p->at.slot;
	a->path = path;
}

/* The bytes of one section: what is left of @a, in one piece. */
static uint64_t piece(const struct rnic_access *a, const struct place *p,
		      uint64_t done)
{
	uint64_t n = a->len - done;

	if (n > p->at.contiguous)
		n = p->at.contiguous;
	if (RNIC_BROKEN(chunk))
		return n;
	return n > RNIC_REACH_CHUNK ? RNIC_REACH_CHUNK : n;
}

/* The peer's arena becomes space 0 of the map. Outside of sections. */
static int add_arena(struct rnic_reach *x)
{
	struct rnic_remote *r = x->remote;
	struct rnic_segment s = { .fd = -1 };
	int ret;

	if (x->arena)
		return 0;
	ret = rnic_remote_arena(r, &s);
	if (!ret)
		ret = rnic_arena_map_add(&x->map, 0, &s);
	if (ret)
		rnic_segment_close(&s);
	else
		x->arena = true;
	return ret;
}

/* Maps what the look did not find. Outside of sections. */
static int map(struct rnic_reach *x, unsigned int space, uint64_t off)
{
	int ret =
		space ? rnic_space_attach(&x->spaces, x->remote, &x->map, space)
		      : add_arena(x);

	if (!ret)
		ret = rnic_arena_map_window(&x->map, space, off);
	if (ret == -ESTALE)
		/* its descriptor has another meaning by now: it is gone */
		return -ESRCH;
	/* a leaf beyond the file: damaged tables are as good as no key */
	return ret == -ENOENT || ret == -EFAULT ? -ENOKEY : ret;
}

/* rnic_reach_look() of @p. */
static void *look(const struct rnic_reach *x, struct place *p, uint64_t *n)
{
	return rnic_reach_look(x, &p->at, n, &p->space_off);
}

/* ---- moving ---- */

static int move_mapped(struct rnic_reach *x, const struct rnic_access *a,
		       struct place *p, uint64_t done, uint64_t *n)
{
	void *mem = look(x, p, n);
	char *buf = (char *)a->buf + done;

	if (mem && a->write)
		rnic_copy(mem, buf, *n);
	else if (mem)
		rnic_copy(buf, mem, *n);
	rnic_leave(&x->target);
	if (mem)
		return 0;
	*n = 0;
	return map(x, rnic_mtt_leaf_space_of(p->at.entry), p->space_off);
}

/* The kernel moves it; page faults of the peer are all it waits for. */
static int move_by_kernel(struct rnic_reach *x, const struct rnic_access *a,
			  const struct place *p, uint64_t done, uint64_t *n)
{
	uint64_t va =
		(p->at.entry & ~(uint64_t)(RNIC_PAGE - 1)) + p->at.addr_in;
	char *buf = (char *)a->buf + done;
	size_t moved = 0;
	int ret;

	if (a->write)
		ret = rnic_vm_write(x->remote->proc, va, buf, *n, &moved);
	else
		ret = rnic_vm_read(x->remote->proc, buf, va, *n, &moved);
	rnic_leave(&x->target);
	*n = moved;
	if (ret != -EPERM && ret != -ENOSYS)
		return ret;
	x->refused = true;
	/* says why, and what helps */
	rnic_vm_probe(x->remote->proc, va);
	return -EREMOTE;
}

/* One chunk, from @done on; *@n is what was moved of it. */
static int move_chunk(struct rnic_ctx *c, struct rnic_reach *x,
		      struct rnic_access *a, uint64_t done, struct place *p,
		      uint64_t *n)
{
	int ret = section(c, x, a, done, p);

	*n = 0;
	if (ret)
		return ret;
	if (p->at.entry & RNIC_LEAF_SPACE) {
		tell(a, p, RNIC_BY_MAP);
		*n = piece(a, p, done);
		return move_mapped(x, a, p, done, n);
	}
	if (x->refused) {
		rnic_leave(&x->target);
		return -EREMOTE;
	}
	tell(a, p, RNIC_BY_KERNEL);
	*n = piece(a, p, done);
	return move_by_kernel(x, a, p, done, n);
}

int rnic_reach_move(struct rnic_ctx *c, struct rnic_reach *x,
		    struct rnic_access *a, size_t *moved)
{
	struct place p = { .begun = false };
	uint64_t n;
	int ret;

	*moved = 0;
	do {
		ret = move_chunk(c, x, a, *moved, &p, &n);
		*moved += n;
	} while (!ret && *moved < a->len);
	return ret;
}

int rnic_reach_word(struct rnic_ctx *c, struct rnic_reach *x,
		    struct rnic_access *a, rnic_word_fn fn, void *arg)
{
	struct place p;
	uint64_t n;
	bool native;
	void *word;
	int ret;

	for (;;) {
		p.begun = false;
		ret = section(c, x, a, 0, &p);
		if (ret)
			return ret;
		n = p.at.contiguous;
		word = p.at.entry & RNIC_LEAF_SPACE ? look(x, &p, &n) : NULL;
		native = n >= a->len && rnic_aop_native(p.at.addr_in, a->len);
		if (word && native)
			fn(word, arg);
		rnic_leave(&x->target);
		tell(a, &p, RNIC_BY_MAP);
		if (word)
			return native ? 0 : -EREMOTE;
		if (!(p.at.entry & RNIC_LEAF_SPACE))
			return -EREMOTE;
		ret = map(x, rnic_mtt_leaf_space_of(p.at.entry), p.space_off);
		if (ret)
			return ret;
	}
}

/* True if the bytes at @b follow those at @a. */
static bool adjoin(const struct rnic_xlat *a, const struct rnic_xlat *b)
{
	return a->version == b->version &&
	       !((a->entry ^ b->entry) & (RNIC_PAGE - 1)) && /* kind, space */
	       a->entry + a->addr_in + a->contiguous == b->entry + b->addr_in;
}

/*
 * Inside: adds the next piece to p->at if they are one. -EINTR: to find it, it
 * was necessary to leave, so that p->at is void.
 */
static int join(struct rnic_ctx *c, struct rnic_reach *x,
		const struct rnic_access *a, uint64_t done, struct place *p)
{
	uint64_t now = x->target.now, at = done + p->at.contiguous;
	struct rnic_want w = {
		.key = a->key,
		.addr = a->addr + at,
		.len = a->len - at,
		.rights = rnic_access_rights(a),
		.first = &p->first,
	};
	struct rnic_xlat next;
	int ret = rnic_resolve(c, &x->target, &w, &next);

	if (ret)
		return ret;
	if (x->target.now != now)
		return -EINTR;
	if (adjoin(&p->at, &next))
		p->at.contiguous += next.contiguous;
	return 0;
}

/*
 * section(), and an element that is in two leaves is in one piece if memory
 * is. It goes inside again only after windows were mapped for the second
 * leaf, which stay.
 */
static int section_joined(struct rnic_ctx *c, struct rnic_reach *x,
			  const struct rnic_access *a, uint64_t done,
			  struct place *p)
{
	int ret;

	do {
		ret = section(c, x, a, done, p);
		if (ret || p->at.contiguous >= a->unit ||
		    p->at.contiguous >= a->len - done)
			return ret;
		ret = join(c, x, a, done, p);
		if (ret)
			rnic_leave(&x->target);
	} while (ret == -EINTR);
	return ret;
}

/* One piece of rnic_reach_own(), *@n bytes of which were done. */
static int own_piece(struct rnic_reach *x, struct place *p, rnic_own_fn fn,
		     void *arg, uint64_t *n)
{
	uint64_t page = p->at.entry & ~(uint64_t)(RNIC_PAGE - 1);
	bool mapped = p->at.entry & RNIC_LEAF_SPACE;
	void *mem = (void *)(uintptr_t)(page + p->at.addr_in);
	size_t done = 0;
	int ret = 0;

	if (mapped)
		mem = look(x, p, n);
	if (mem) {
		done = *n;
		ret = fn(mem, mapped, &done, arg);
	}
	rnic_leave(&x->target);
	*n = done;
	if (mem)
		return ret;
	return map(x, rnic_mtt_leaf_space_of(p->at.entry), p->space_off);
}

int rnic_reach_own(struct rnic_ctx *c, struct rnic_reach *x,
		   struct rnic_access *a, rnic_own_fn fn, void *arg,
		   size_t *done)
{
	struct place p = { .begun = false };
	uint64_t n;
	int ret;

	*done = 0;
	do {
		ret = section_joined(c, x, a, *done, &p);
		if (ret)
			return ret;
		tell(a, &p, RNIC_BY_MAP);
		n = piece(a, &p, *done);
		ret = own_piece(x, &p, fn, arg, &n);
		*done += n;
	} while (!ret && *done < a->len);
	return ret;
}
