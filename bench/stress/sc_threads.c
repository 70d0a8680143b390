/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenario threads: other threads allocate, map and free without a pause, and
 * register and close slices of one arena, while bytes travel.
 */
#include "bench/stress/inside.h"

#include <pthread.h>
#include <stdio.h>

#include "bench/stress/churn.h"

enum {
	SLOT = 10,
	THREADS = 3,
	LEN = 1 << 20,
	SLICE = 64 << 10,
	AT_ONCE = 4, /* regions of a thread */
};

/** A thread that registers. */
struct registrar {
	pthread_t thread;
	struct stress_side *side;
	unsigned char *p; /* arena */
	uint64_t chance;
	uint64_t key; /* the next one to ask for */
	unsigned int rounds;
	int ret; /* of the call that failed; read after its end */
};

/** An act. */
struct beside {
	struct stress_churn *churn;
	unsigned char *p;
};

/* ---- registration by threads ---- */

static int slice_register(struct registrar *r, struct fid_mr **mr)
{
	int mode = r->side->info->domain_attr->mr_mode;
	size_t at = stress_draw(&r->chance) % (LEN - SLICE);
	size_t len = 1 + stress_draw(&r->chance) % SLICE;
	int ret =
		fi_mr_reg(r->side->domain, r->p + at, len, FI_SEND | FI_RECV, 0,
			  mode & FI_MR_PROV_KEY ? 0 : r->key++, 0, mr, NULL);

	if (ret) {
		*mr = NULL;
		return ret == -FI_ENOMEM || ret == -FI_ENOSPC ? 0 : ret;
	}
	if (!(mode & FI_MR_ENDPOINT))
		return 0;
	ret = fi_mr_bind(*mr, &r->side->ep->fid, 0);
	return ret ? ret : fi_mr_enable(*mr);
}

static void *register_slices(void *arg)
{
	struct fid_mr *mr[AT_ONCE] = { NULL };
	struct registrar *r = arg;

	for (unsigned int i = 0; i < r->rounds && !r->ret; i++) {
		struct fid_mr **m = &mr[stress_draw(&r->chance) % AT_ONCE];

		if (*m)
			r->ret = fi_close(&(*m)->fid);
		if (!r->ret)
			r->ret = slice_register(r, m);
	}
	for (int i = 0; i < AT_ONCE; i++)
		if (mr[i] && fi_close(&mr[i]->fid) && !r->ret)
			r->ret = -FI_EOTHER;
	return NULL;
}

static bool registrar_start(struct stress *s, struct registrar *r, int i,
			    unsigned char *p)
{
	r->side = &s->main;
	r->p = p;
	r->chance = stress_random(s, UINT64_MAX);
	r->key = 1ull << 32 | (uint64_t)(i + 1) << 28;
	r->rounds = stress_slow(s) ? 20 : 200;
	r->ret = 0;
	return !pthread_create(&r->thread, NULL, register_slices, r);
}

/* Bytes travel through the arena whose slices come and go. */
static int register_beside(struct stress *s, unsigned char *p)
{
	struct registrar r[THREADS];
	int n = 0, ret;

	while (s->main.threads && n < THREADS &&
	       registrar_start(s, &r[n], n, p))
		n++;
	stress_say(s, "%d threads register slices of %p", n, (void *)p);
	ret = stress_exchange(s, p, LEN, 6);
	for (int i = 0; i < n; i++) {
		pthread_join(r[i].thread, NULL);
		if (r[i].ret)
			ret = stress_wrong(s, "a thread beside: %s",
					   stress_code(r[i].ret));
	}
	return ret;
}

/* ---- the scenario ---- */

static int setup(struct stress *s, void **state)
{
	struct beside *b = stress_malloc(s, sizeof(*b));

	if (!b)
		return stress_skip(s, "no memory");
	b->p = stress_map(s, stress_slot(s, SLOT), LEN, false);
	b->churn = stress_churn_start(
		THREADS, stress_random(s, UINT64_MAX),
		STRESS_CHURN_HARD | (stress_slow(s) ? STRESS_CHURN_STAY : 0));
	*state = b;
	return b->p ? 0 : stress_skip(s, "no memory");
}

static int map_some(struct stress *s)
{
	size_t len = stress_pages(s, LEN);
	unsigned char *p = stress_map(s, NULL, len, false);
	int ret;

	if (!p)
		return stress_skip(s, "no memory");
	ret = stress_use_new(s, p, len);
	stress_unmap(s, p, len);
	return ret;
}

static int malloc_some(struct stress *s)
{
	size_t len = stress_length(s, LEN);
	unsigned char *p = stress_malloc(s, len);
	int ret;

	if (!p)
		return stress_skip(s, "no memory");
	ret = stress_exchange(s, p, len, 2);
	stress_free(s, p);
	return ret;
}

static int step(struct stress *s, void *state)
{
	struct beside *b = state;
	char text[STRESS_TEXT];
	int ret = register_beside(s, b->p);

	for (int i = 0; !ret && i < 4; i++)
		ret = stress_random(s, 2) ? map_some(s) : malloc_some(s);
	if (!stress_churn_fine(b->churn, text, sizeof(text)))
		ret = stress_wrong(s, "%s", text);
	return ret;
}

static void teardown(struct stress *s, void *state)
{
	struct beside *b = state;

	if (!b)
		return;
	stress_churn_stop(b->churn);
	stress_unmap(s, b->p, LEN);
	stress_free(s, b);
	stress_slot_free(s, SLOT);
}

const struct stress_scenario stress_threads = {
	.name = "threads",
	.help = "threads that malloc, map, free and register beside",
	.setup = setup,
	.step = step,
	.teardown = teardown,
};
