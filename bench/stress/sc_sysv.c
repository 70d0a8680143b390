/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenario sysv: segments of System V come and go at one address.
 */
#include "bench/stress/stress.h"

#include <errno.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>

enum {
	SLOT = 5,
	LEN = 1 << 20,
};

/* A segment that goes with its last user; -1: told. */
static int segment_get(struct stress *s, size_t len)
{
	int id = shmget(IPC_PRIVATE, len, IPC_CREAT | 0600);

	if (id < 0)
		stress_skip(s, "shmget: %s", strerror(errno));
	return id;
}

/* Attaches at @at, instead of what is there, or anywhere (NULL). */
static unsigned char *attach(struct stress *s, int id, unsigned char *at,
			     size_t len)
{
	unsigned char *p;

	if (at)
		stress_change_begin(s, at, len);
	p = shmat(id, at, at ? SHM_REMAP : 0);
	if (at)
		stress_change_end(s, at, len);
	stress_say(s, "shmat at %p: %p %zu", (void *)at, (void *)p, len);
	if (p != (void *)-1)
		return p;
	stress_skip(s, "shmat: %s", strerror(errno));
	return NULL;
}

static void detach(struct stress *s, unsigned char *p, size_t len)
{
	stress_say(s, "shmdt %p", (void *)p);
	stress_change_begin(s, p, len);
	shmdt(p);
	stress_change_end(s, p, len);
	stress_slot_left(s, p, len);
}

/* Another segment in place of @p: other bytes at the same address. */
static int replace(struct stress *s, unsigned char *p, size_t len)
{
	int id = segment_get(s, len), ret;

	if (id < 0)
		return STRESS_SKIP;
	ret = attach(s, id, p, len) ? 0 : STRESS_SKIP;
	shmctl(id, IPC_RMID, NULL);
	return ret ? ret : stress_use_new(s, p, len);
}

static int once(struct stress *s, unsigned char *at, size_t len)
{
	int id = segment_get(s, len), ret;
	unsigned char *p;

	if (id < 0)
		return STRESS_SKIP;
	p = attach(s, id, at, len);
	shmctl(id, IPC_RMID, NULL);
	if (!p)
		return STRESS_SKIP;
	stress_slot_took(s, p, len);
	ret = stress_use_new(s, p, len);
	if (!ret && stress_random(s, 2))
		ret = replace(s, p, len);
	detach(s, p, len);
	return ret;
}

static int step(struct stress *s, void *state)
{
	size_t len = stress_pages(s, LEN);
	int ret = 0;

	(void)state;
	for (int i = 0; !ret && i < 3; i++)
		ret = once(s, stress_slot(s, SLOT), len);
	stress_slot_free(s, SLOT);
	return ret;
}

const struct stress_scenario stress_sysv = {
	.name = "sysv",
	.help = "shmat and shmdt at one address, SHM_REMAP",
	.step = step,
};
