/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Progress of an endpoint, and the edge between polling and sleeping.
 */
#ifndef SHRIMP_PROGRESS_H
#define SHRIMP_PROGRESS_H

#include <stdbool.h>

#include "lib/cq.h"
#include "lib/endpoint.h"

/*
 * Moves everything of @ep once. With @sink, completions of that CQ may go
 * straight into the caller's array. Any thread; takes ep->lock; never
 * sleeps; yields the CPU after a run of empty calls if more processes than
 * cores are attached.
 */
void shrimp_ep_progress(struct shrimp_ep *ep, struct shrimp_cq_sink *sink);

/*
 * Progress as the agent makes it: not counted as the application's. True if
 * something had come.
 */
bool shrimp_ep_progress_agent(struct shrimp_ep *ep);

/*
 * True if the last progress left something in a lane for somebody else to act
 * first, who will not ring: looking again at once is of no use. Takes ep->lock.
 */
bool shrimp_ep_waits(struct shrimp_ep *ep);

/*
 * The agent leaves @ep to its application: what late ringers left in the pipe
 * must not keep the agent from sleeping. Takes ep->lock.
 */
void shrimp_ep_leave_alone(struct shrimp_ep *ep);

/*
 * More processes than cores are attached: the one that is waited for may need
 * ours. Any thread, no lock.
 */
bool shrimp_oversubscribed(void);

/*
 * Before a sleep: parks all lanes, raises the sleeping word, fences the
 * senders and looks again at every source of an event. Returns false if there
 * is something to do: call progress, do not sleep. After true, the fd of
 * shrimp_ep_wait_fd() polls readable when something happens.
 * Any thread; takes ep->lock.
 */
bool shrimp_ep_arm(struct shrimp_ep *ep);

/*
 * After a sleep, or instead of it: lowers the word and empties the pipe.
 * Progress does it by itself. Any thread; takes ep->lock.
 */
void shrimp_ep_disarm(struct shrimp_ep *ep);

#endif /* SHRIMP_PROGRESS_H */
