/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Who a process is: a pid alone is recycled, and exec keeps it.
 */
#ifndef RNIC_IDENTITY_H
#define RNIC_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Hash of start time and start of stack of process @pid: another process
 * with that pid, or another program after exec, has another one. Any thread.
 * Returns 0, -ESRCH (no such process), -EIO (unreadable /proc, logged).
 */
int rnic_identity_of(uint32_t pid, uint64_t *identity);

/* rnic_identity_of() of this process. */
int rnic_identity_self(uint64_t *identity);

/*
 * Hash of what must agree for pids and /proc to mean the same to two
 * processes: pid namespace, time namespace, boot. Any thread. Returns 0 or
 * -EIO (logged).
 */
int rnic_identity_ns(uint64_t *ns);

/* Fills @buf with random bytes. Returns 0 or -EIO (logged). */
int rnic_random(void *buf, size_t len);

#endif /* RNIC_IDENTITY_H */
