/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The asymmetric fence: one side pays a system call so that the others need
 * a compiler barrier only (membarrier(2), GLOBAL_EXPEDITED).
 */
#ifndef RNIC_FENCE_H
#define RNIC_FENCE_H

#include <stdbool.h>

/* True if the kernel offers the fence. Any thread. */
bool rnic_fence_available(void);

/*
 * Registers this process as one that rnic_fence_peers() of others reaches;
 * once is enough, exec ends it. Any thread. Returns 0 or a negative errno.
 */
int rnic_fence_register(void);

/* True if rnic_fence_register() has succeeded in this process. */
bool rnic_fence_registered(void);

/*
 * A full fence on every CPU that runs a registered process, and of the
 * caller: what others stored before it is visible after it, and what the
 * caller stored before it is seen by what they load after it. Any thread.
 * Returns 0, or a negative errno: then nothing is known.
 */
int rnic_fence_peers(void);

/* The same for a thread that must not log: system calls only. */
int rnic_fence_peers_quiet(void);

#endif /* RNIC_FENCE_H */
