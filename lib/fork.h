/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * fork: a child never uses its parent's device (contract L6).
 *
 * The child's handler closes the inherited descriptors and marks every
 * inherited domain; calls on its objects answer -FI_EOPBADSTATE. The mappings
 * of segments are not inherited (MADV_DONTFORK). Objects that the child opens
 * itself work.
 */
#ifndef SHRIMP_FORK_H
#define SHRIMP_FORK_H

/*
 * Registers the fork handlers, once per process. Returns 0 or -FI_ENOMEM.
 * Any thread.
 */
int shrimp_fork_watch(void);

/*
 * The library is unloaded: stops the agents of domains that were never
 * closed. Does nothing in a forked child.
 */
void shrimp_cleanup(void);

#endif /* SHRIMP_FORK_H */
