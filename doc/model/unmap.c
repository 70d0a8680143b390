/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The kernel's part in an unmap.
 */
#include "doc/model/unmap.h"

/* Values of the event. */
enum { THERE = 1, READ = 2 };

unsigned int unmap_step(struct model_run *r, unsigned int t, unsigned int at,
			unsigned int event, unsigned int memory)
{
	switch ((enum unmap_step)at) {
	case UNMAP_TELL:
		model_swap(r, t, event, THERE);
		return UNMAP_SLEEP;
	case UNMAP_SLEEP:
		model_need(r, model_load(r, t, event, MODEL_ACQUIRE) == READ);
		return UNMAP_TAKE;
	default:
		model_note(r, "munmap returns; ");
		model_fence(r, t);
		model_reclaim(r, t, memory);
		return MODEL_END;
	}
}

void unmap_poll(struct model_run *r, unsigned int t, unsigned int event)
{
	model_need(r, model_load(r, t, event, MODEL_ACQUIRE) == THERE);
}

void unmap_read(struct model_run *r, unsigned int t, unsigned int event)
{
	model_swap(r, t, event, READ);
}
