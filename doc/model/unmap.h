/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * munmap(2) of watched memory, and the event that tells the monitor, as a part
 * of models: what the kernel does.
 *
 *   UNMAP_TELL		the pages are gone; the event is there to be polled
 *   UNMAP_SLEEP	until it was read
 *   UNMAP_TAKE		munmap returns: the memory is the caller's again
 *
 *   unmap_poll()	the monitor's poll(2)
 *   unmap_read()	its read(2)
 */
#ifndef DOC_MODEL_UNMAP_H
#define DOC_MODEL_UNMAP_H

#include "doc/model/explorer.h"

/* Where the thread that unmaps is. Steps of a model's own come behind. */
enum unmap_step { UNMAP_TELL, UNMAP_SLEEP, UNMAP_TAKE, UNMAP_STEPS };

/*
 * Step @at of thread @t, which unmaps @memory; word @event is 0 at the start.
 * Returns the next one; MODEL_END: it has returned.
 */
unsigned int unmap_step(struct model_run *r, unsigned int t, unsigned int at,
			unsigned int event, unsigned int memory);

/* The monitor @t goes on when the event is there. */
void unmap_poll(struct model_run *r, unsigned int t, unsigned int event);

/* The monitor @t reads it, and lets the other one go on. */
void unmap_read(struct model_run *r, unsigned int t, unsigned int event);

#endif /* DOC_MODEL_UNMAP_H */
