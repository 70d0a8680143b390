/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Walks of translations: what leaves a region has, and whether each page of
 * its tree is its own. One thread.
 */
#ifndef SHRIMP_INSPECT_WALK_H
#define SHRIMP_INSPECT_WALK_H

#include "tools/inspect.h"

struct insp_walk; /* private to inspect_walk.c */

/* Readies a walk of the regions of @d. Partner: insp_walk_free(). */
struct insp_walk *insp_walk_new(struct insp_device *d);

/*
 * Walks the translation of @r and fills its leaves, pages, ranges, where and
 * space. No page is looked at twice, so it ends whatever the tables say. The
 * tree of a window is its region's: it is not walked, and where stays 0.
 * What cannot be is noted; the caller takes the notes back if @r has changed
 * meanwhile.
 */
void insp_walk_region(struct insp_walk *w, struct insp_region *r);

/* Frees @w. Returns the MTT pages that it came to. */
uint64_t insp_walk_free(struct insp_walk *w);

#endif /* SHRIMP_INSPECT_WALK_H */
