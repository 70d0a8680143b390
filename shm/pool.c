/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The chunk pool's free queues, see pool.h. Private to the sender, under the
 * endpoint's lock.
 */
#include "shm/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define CHUNK_OUT (UINT32_MAX - 1) /* next of a chunk that is not free */

int rnic_pool_geom_init(struct rnic_pool_geom *g, uint64_t bytes,
			uint64_t large_off)
{
	if (!bytes || bytes > RNIC_POOL_MAX || large_off > bytes ||
	    large_off % RNIC_POOL_SMALL ||
	    (bytes - large_off) % RNIC_POOL_LARGE)
		return -EINVAL;
	g->bytes = bytes;
	g->large_off = large_off;
	g->nsmall = (uint32_t)(large_off / RNIC_POOL_SMALL);
	g->nlarge = (uint32_t)((bytes - large_off) / RNIC_POOL_LARGE);
	return 0;
}

static void queue_append(struct rnic_pool *p, struct rnic_pool_queue *q,
			 uint32_t chunk)
{
	p->next[chunk] = RNIC_CHUNK_NONE;
	if (q->head == RNIC_CHUNK_NONE)
		q->head = chunk;
	else
		p->next[q->tail] = chunk;
	q->tail = chunk;
	q->count++;
}

int rnic_pool_init(struct rnic_pool *p, uint64_t bytes, uint64_t large_off)
{
	struct rnic_pool_geom g;
	uint32_t i, *next;
	int ret = rnic_pool_geom_init(&g, bytes, large_off);

	if (ret)
		return ret;
	next = malloc((g.nsmall + g.nlarge) * sizeof(*next));
	if (!next)
		return -ENOMEM;
	*p = (struct rnic_pool){
		.geom = g,
		.queue = { { .head = RNIC_CHUNK_NONE },
			   { .head = RNIC_CHUNK_NONE } },
		.next = next,
	};
	for (i = 0; i < g.nsmall + g.nlarge; i++)
		queue_append(p, &p->queue[i >= g.nsmall], i);
	return 0;
}

void rnic_pool_fini(struct rnic_pool *p)
{
	free(p->next);
	*p = (struct rnic_pool){ .next = NULL };
}

uint32_t rnic_pool_get(struct rnic_pool *p, bool large)
{
	struct rnic_pool_queue *q = &p->queue[large];
	uint32_t chunk = q->head;

	if (!q->count)
		return RNIC_CHUNK_NONE;
	q->head = p->next[chunk];
	q->count--;
	p->next[chunk] = CHUNK_OUT;
	return chunk;
}

void rnic_pool_put(struct rnic_pool *p, uint32_t chunk)
{
	assert(chunk < p->geom.nsmall + p->geom.nlarge);
	assert(p->next[chunk] == CHUNK_OUT);
	queue_append(p, &p->queue[chunk >= p->geom.nsmall], chunk);
}
