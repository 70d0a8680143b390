/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The size of the pages behind memory of this process, and a translation with
 * one leaf for each of them, as an RNIC's MTT has it.
 *
 * How it is known, none of it privileged:
 *
 * - hugetlbfs: the page size of the mapping, from PROCMAP_QUERY (Linux 6.11)
 *   or smaps. True also of pages that are not there yet.
 * - huge pages of anonymous memory, shmem and files: what is mapped as one
 *   now, page by page, by PAGEMAP_SCAN (Linux 6.7). Before that smaps has no
 *   more than a sum for each mapping: if it is all that the mapping has room
 *   for, these pages are huge; if not, nobody can say which, and all are taken
 *   for small ones. Not there yet, or swapped out: small.
 * - all else, and where /proc is closed: 4 KiB.
 *
 * A page of 64 KiB, or 16 GiB, has leaves of the next smaller size. What is
 * found is a matter of cost, not of truth: leaves name addresses, or places in
 * a file, which stay what they are when the kernel splits a page or makes a
 * huge one. Any thread; no lock.
 */
#ifndef RNIC_BACKING_H
#define RNIC_BACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/mtt.h"

/* Memory in pieces, the pages of each of one size. Zeroed: none. */
struct rnic_backing {
	struct rnic_extent *x; /* they adjoin; leaf is 4 KiB, 2 MiB, 1 GiB */
	size_t n;	       /* how many */
};

/*
 * Finds the pieces of the @len bytes at @addr, which do not wrap; they need
 * not be mapped. @entry: the leaf of the page that holds @addr, for all of it.
 * No page is made. Reads /proc: some microseconds for each mapping and each
 * change of size, and, before Linux 6.11, for each mapping of the process.
 * Returns 0 with *@b, or -ENOMEM (logged) with it empty. Partner:
 * rnic_backing_fini().
 */
int rnic_backing_find(struct rnic_backing *b, uint64_t addr, uint64_t len,
		      uint64_t entry);

/* Frees what was found. Zeroed memory is accepted. */
void rnic_backing_fini(struct rnic_backing *b);

/*
 * Builds the translation of the @len bytes at @addr, @entry as above, with a
 * leaf for each page of the backing. @made: the pages are known to exist, and
 * some are mapped first, so that huge ones are found. Returns 0 with *@root,
 * -ENOMEM, or what rnic_mtt_build() says. Partner: rnic_mtt_free().
 */
int rnic_backing_translate(struct rnic_mtt_pool *p, uint64_t addr, uint64_t len,
			   uint64_t entry, bool made, uint64_t *root);

/* For tests: never PAGEMAP_SCAN from now on, as on older kernels. */
void rnic_backing_text_only(bool on);

#endif /* RNIC_BACKING_H */
