/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Counters by name.
 */
#include "tools/inspect_count.h"

#include <stddef.h>

const char *const insp_path_name[INSP_PATHS] = { "inline", "ring", "pool",
						 "stream", "heap", "cma",
						 "self",   "spare" };

const char *const insp_reach_name[INSP_REACHES] = { "mapped", "cma", "owner",
						    "spare" };

const char *const insp_paging_name[INSP_PAGING] = { "requests",	   "faults",
						    "merged",	   "prefetched",
						    "invalidated", "gone",
						    "implicit" };

_Static_assert(offsetof(struct rnic_paging, implicit) ==
		       (INSP_PAGING - 1) * sizeof(rnic_a64),
	       "order of the counters of paging");

#define WORD(f) (offsetof(struct rnic_stats, f) / sizeof(rnic_a64))
#define ONE(f)                                                                 \
	{                                                                      \
		.name = #f, .at = WORD(f), .n = 1                              \
	}
#define WAYS(f, p, k)                                                          \
	{                                                                      \
		.name = #f, .at = WORD(f), .parts = (p), .n = (k)              \
	}

const struct insp_counter insp_counters[] = {
	WAYS(tx_msgs, insp_path_name, INSP_PATHS),
	WAYS(tx_bytes, insp_path_name, INSP_PATHS),
	WAYS(rx_msgs, insp_path_name, INSP_PATHS),
	WAYS(rx_bytes, insp_path_name, INSP_PATHS),
	WAYS(rma_msgs, insp_reach_name, INSP_REACHES),
	WAYS(rma_bytes, insp_reach_name, INSP_REACHES),
	WAYS(atomics, insp_reach_name, INSP_REACHES),
	ONE(unexpected),
	ONE(held),
	ONE(queued),
	ONE(eagain),
	ONE(peers),
	ONE(resets),
	ONE(dropped),
	ONE(doorbells),
	ONE(wakeups),
	ONE(sleeps),
	ONE(attach_proc),
	ONE(attach_socket),
	ONE(served),
	ONE(page_asks),
	{ .name = NULL },
};

_Static_assert(WORD(tx_msgs) == INSP_TX_MSGS, "order of the counters");
_Static_assert(WORD(tx_bytes) == INSP_TX_BYTES, "likewise");
_Static_assert(WORD(rx_msgs) == INSP_RX_MSGS, "likewise");
_Static_assert(WORD(rx_bytes) == INSP_RX_BYTES, "likewise");
_Static_assert(WORD(rma_msgs) == INSP_RMA_MSGS, "likewise");
_Static_assert(WORD(rma_bytes) == INSP_RMA_BYTES, "likewise");
_Static_assert(WORD(atomics) == INSP_ATOMICS, "likewise");

uint64_t insp_sum(const uint64_t *stats, unsigned int at, unsigned int n)
{
	uint64_t sum = 0;

	for (unsigned int i = at; i < at + n; i++)
		sum += stats[i];
	return sum;
}

const struct insp_device *insp_before(const struct insp_before *b, pid_t pid,
				      const struct insp_device *d)
{
	if (!b->list || b->seconds <= 0)
		return NULL;
	for (unsigned int i = 0; i < b->list->n; i++) {
		const struct insp_process *p = &b->list->process[i];

		for (unsigned int k = 0; p->pid == pid && k < p->ndevices; k++)
			if (p->device[k].usable && d->usable &&
			    p->device[k].hdr.incarnation == d->hdr.incarnation)
				return &p->device[k];
	}
	return NULL;
}

double insp_rate(const struct insp_before *b, uint64_t was, uint64_t now)
{
	return now > was ? (double)(now - was) / b->seconds : 0;
}
