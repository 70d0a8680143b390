/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Small windows into many segments, side by side, so that hundreds of them
 * share their page tables: alone, each costs 4 KiB of them and more.
 *
 * Process-wide, with a lock of its own (inner to everything).
 */
#ifndef RNIC_WINDOW_H
#define RNIC_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "shm/segment.h"

/*
 * Maps @len bytes at @off of @s, both multiples of the page size, into a
 * slab. Left out of core dumps and of fork children. Any thread.
 * Returns 0, -ENOMEM, -EACCES. Partner: rnic_window_unmap().
 */
int rnic_window_map(const struct rnic_segment *s, uint64_t off, size_t len,
		    int prot, void **p);

/* Unmaps a window; its place may be used again. Any thread. */
void rnic_window_unmap(void *p, size_t len);

/*
 * Child after fork, its only thread: forgets all slabs, whose windows were
 * not inherited, so that their addresses are not used again.
 */
void rnic_window_forked(void);

#endif /* RNIC_WINDOW_H */
