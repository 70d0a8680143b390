/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenarios remap and fixed: memory is unmapped and mapped again at the same
 * address, or replaced in one call, and has other bytes then.
 */
#include "bench/stress/stress.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
	REMAP_SLOT = 0, /* addresses in use */
	FIXED_SLOT = 1,
	LEN = 2 << 20, /* at most */
	ROUNDS = 3,    /* of a step */
};

/* ---- unmap and map ---- */

/* *@at: where it was last, and is to be again. */
static int remap_round(struct stress *s, unsigned char **at)
{
	size_t len = stress_pages(s, LEN);
	unsigned char *p = stress_map(s, *at, len, stress_random(s, 2));
	int ret;

	if (!p)
		return stress_skip(s, "no memory");
	ret = stress_use_new(s, p, len);
	stress_unmap(s, p, len);
	*at = p;
	return ret;
}

static int remap_step(struct stress *s, void *state)
{
	unsigned char *at = stress_slot(s, REMAP_SLOT);
	int ret = 0;

	(void)state;
	if (at)
		at += stress_random(s, 4) * STRESS_PAGE;
	for (int i = 0; !ret && i < ROUNDS; i++)
		ret = remap_round(s, &at);
	return ret;
}

static void remap_teardown(struct stress *s, void *state)
{
	(void)state;
	stress_slot_free(s, REMAP_SLOT);
}

const struct stress_scenario stress_remap = {
	.name = "remap",
	.help = "unmap, and map again at the same address",
	.step = remap_step,
	.teardown = remap_teardown,
};

/* ---- replacement ---- */

/* By anonymous memory, or by a memory file. */
static int replace(struct stress *s, unsigned char *p, size_t len)
{
	int fd = stress_random(s, 2) ? stress_memfd(s, len) : -1;
	int kind = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	unsigned char *got;

	stress_say(s, "mmap fixed %p %zu", (void *)p, len);
	stress_change_begin(s, p, len);
	got = mmap(p, len, PROT_READ | PROT_WRITE, kind | MAP_FIXED, fd, 0);
	stress_change_end(s, p, len);
	if (got != p)
		return stress_wrong(s, "mmap: %s", strerror(errno));
	return 0;
}

/* A part of the mapping is other memory; what is left keeps its bytes. */
static int fixed_part(struct stress *s, unsigned char *p, size_t len)
{
	size_t at = stress_random(s, len / STRESS_PAGE) * STRESS_PAGE;
	size_t n = stress_pages(s, len - at), end = at + n;
	struct stress_pat all = stress_fill(s, p, len), zero = { .tag = 0 };
	int ret = stress_out(s, p, len, all);

	if (!ret)
		ret = replace(s, p + at, n);
	if (!ret)
		ret = stress_out(s, p + at, n, zero);
	if (!ret && at)
		ret = stress_out(s, p, at, all);
	if (!ret && end < len)
		ret = stress_out(s, p + end, len - end, stress_at(all, end));
	return ret ? ret : stress_exchange(s, p, len, 3);
}

static int fixed_step(struct stress *s, void *state)
{
	unsigned char *at = stress_slot(s, FIXED_SLOT);
	size_t len = stress_pages(s, LEN);
	unsigned char *p = stress_map(s, at, len, stress_random(s, 2));
	int ret = 0;

	(void)state;
	if (!p)
		return stress_skip(s, "no memory");
	for (int i = 0; !ret && i < ROUNDS; i++)
		ret = fixed_part(s, p, len);
	if (p != at)
		stress_unmap(s, p, len);
	else
		stress_slot_free(s, FIXED_SLOT);
	return ret;
}

const struct stress_scenario stress_fixed = {
	.name = "fixed",
	.help = "replace all or a part by mmap(MAP_FIXED)",
	.step = fixed_step,
};
