/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenarios mremap and swap: memory moves, grows, shrinks, and something else
 * is mapped where it was.
 */
#include "bench/stress/stress.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
	FROM = 3, /* slots */
	TO = 4,
	AWAY = 17,
	LEN = 1 << 20,
	SWAP = 64 << 10, /* bytes of those that change places, at most */
	SWAPS = 6,
};

/** Memory that moves. */
struct moving {
	unsigned char *p;
	size_t len;
	bool shared;	       /* of a memory file */
	struct stress_pat pat; /* what it holds */
};

static int fill(struct stress *s, struct moving *m)
{
	m->pat = stress_fill(s, m->p, m->len);
	return stress_out(s, m->p, m->len, m->pat);
}

/*
 * mremap(2) with the provider told. A mapping of which only a part is watched
 * by userfaultfd(2), or locked, is several for the kernel, and may be refused
 * (EFAULT) as those of different files are: programs have to live with that.
 * What is locked grows by what may still be locked (EAGAIN).
 */
static int move(struct stress *s, struct moving *m, size_t len, int flags,
		unsigned char **to)
{
	unsigned char *got;
	int err;

	stress_say(s, "mremap %p %zu to %p %zu, flags %d", (void *)m->p, m->len,
		   (void *)*to, len, flags);
	stress_change_begin(s, m->p, m->len);
	got = mremap(m->p, m->len, len, flags, *to);
	err = errno;
	stress_change_end(s, m->p, m->len);
	if (got != MAP_FAILED) {
		*to = got;
		return 0;
	}
	if (err != EFAULT && !(err == EAGAIN && stress_keeps_locked(s)))
		return stress_wrong(s, "mremap: %s", strerror(err));
	stress_refused(s);
	return stress_skip(s, "mremap: %s", strerror(err));
}

/* The bytes are where the memory is now. */
static int moved_check(struct stress *s, struct moving *m, size_t len)
{
	size_t less = len < m->len ? len : m->len;
	struct stress_pat zero = { .tag = 0 };
	int ret = stress_out(s, m->p, less, m->pat);

	if (!ret && len > m->len && !m->shared)
		ret = stress_out(s, m->p + m->len, len - m->len, zero);
	m->len = len;
	return ret ? ret : stress_exchange(s, m->p, len, 2);
}

/* To another slot; the old addresses get other memory. */
static int to_slot(struct stress *s, struct moving *m, unsigned char *to)
{
	size_t was = m->len, len = stress_pages(s, LEN);
	unsigned char *old = m->p, *p;
	int ret = fill(s, m);

	if (!ret)
		ret = move(s, m, len, MREMAP_MAYMOVE | MREMAP_FIXED, &to);
	if (ret)
		return ret;
	stress_slot_took(s, to, len);
	stress_slot_left(s, old, was);
	m->p = to;
	ret = moved_check(s, m, len);
	p = ret ? NULL : stress_map(s, old, was, stress_random(s, 2));
	if (!p)
		return ret;
	ret = stress_use_new(s, p, was);
	stress_unmap(s, p, was);
	return ret;
}

/* The old addresses stay, and are empty. */
static int leave_behind(struct stress *s, struct moving *m, unsigned char *to)
{
	struct stress_pat zero = { .tag = 0 };
	unsigned char *old = m->p;
	int ret = fill(s, m);

	if (!ret)
		ret = move(s, m, m->len,
			   MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
			   &to);
	if (ret)
		return ret;
	m->p = to;
	ret = stress_out(s, old, m->len, zero);
	if (!ret)
		ret = stress_exchange(s, old, m->len, 2);
	return ret ? ret : moved_check(s, m, m->len);
}

/* As the kernel likes, maybe in place. */
static int resize(struct stress *s, struct moving *m)
{
	size_t was = m->len, len = stress_pages(s, LEN);
	unsigned char *old = m->p, *p = NULL;
	int ret = fill(s, m);

	if (!ret)
		ret = move(s, m, len, len < was ? 0 : MREMAP_MAYMOVE, &p);
	if (ret)
		return ret;
	m->p = p;
	if (p != old)
		stress_slot_left(s, old, was);
	else if (len < was)
		stress_slot_left(s, old + len, was - len);
	return moved_check(s, m, len);
}

/* ---- two that change places ---- */

/* To @to, where nothing of ours is; what it holds comes along. */
static int put_at(struct stress *s, struct moving *m, unsigned char *to)
{
	unsigned char *old = m->p;
	int ret;

	if (!stress_slot_plug(s, to, m->len))
		return stress_skip(s, "another thread has the addresses");
	ret = move(s, m, m->len, MREMAP_MAYMOVE | MREMAP_FIXED, &to);
	if (ret)
		return ret;
	m->p = to;
	stress_slot_took(s, to, m->len);
	stress_slot_left(s, old, m->len);
	return 0;
}

/* Whatever has noted @to by what was there once is wrong now. */
static int swap(struct stress *s, struct moving *a, struct moving *b,
		unsigned char *away)
{
	unsigned char *pa = a->p, *pb = b->p;
	int ret = fill(s, a);

	if (!ret)
		ret = fill(s, b);
	if (!ret)
		ret = put_at(s, a, away);
	if (!ret)
		ret = put_at(s, b, pa);
	if (!ret && stress_random(s, 2))
		ret = stress_out(s, b->p, b->len, b->pat);
	if (!ret)
		ret = put_at(s, a, pb);
	if (!ret)
		ret = stress_out(s, a->p, a->len, a->pat);
	if (!ret)
		ret = stress_out(s, b->p, b->len, b->pat);
	return ret;
}

static int swap_step(struct stress *s, void *state)
{
	struct moving a = { .len = stress_pages(s, SWAP), .shared = true };
	struct moving b = a;
	unsigned char *from = stress_slot(s, FROM), *to = stress_slot(s, TO);
	unsigned char *away = stress_slot(s, AWAY);
	int ret = 0;

	(void)state;
	if (!from || !to || !away) /* another thread has one of them */
		return 0;
	a.p = stress_map_memfd(s, from, a.len);
	b.p = stress_map_memfd(s, to, b.len);
	if (!a.p || !b.p)
		ret = stress_skip(s, "no memory");
	for (int i = 0; !ret && i < SWAPS; i++)
		ret = swap(s, &a, &b, away);
	stress_unmap(s, a.p, a.len);
	stress_unmap(s, b.p, b.len);
	stress_slot_free(s, FROM);
	stress_slot_free(s, TO);
	stress_slot_free(s, AWAY);
	return ret;
}

const struct stress_scenario stress_swap = {
	.name = "swap",
	.help = "two memory files change places by mremap",
	.step = swap_step,
};

/* ---- one that moves ---- */

static int change(struct stress *s, struct moving *m)
{
	unsigned char *to = stress_slot(s, TO);

	switch (to ? stress_random(s, m->shared ? 2 : 3) : 0) {
	case 1:
		return to_slot(s, m, to);
	case 2:
		return leave_behind(s, m, to);
	}
	return resize(s, m);
}

static int step(struct stress *s, void *state)
{
	struct moving m = { .len = stress_pages(s, LEN),
			    .shared = stress_random(s, 2) };
	unsigned char *from = stress_slot(s, FROM);
	int ret;

	(void)state;
	m.p = m.shared ? stress_map_memfd(s, from, m.len)
		       : stress_map(s, from, m.len, false);
	if (!m.p)
		return stress_skip(s, "no memory");
	ret = change(s, &m);
	if (!ret)
		ret = resize(s, &m);
	stress_unmap(s, m.p, m.len);
	stress_slot_free(s, FROM);
	stress_slot_free(s, TO);
	return ret;
}

const struct stress_scenario stress_mremap = {
	.name = "mremap",
	.help = "memory moves, grows and shrinks",
	.step = step,
};
