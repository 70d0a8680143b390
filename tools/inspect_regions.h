/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The memory protection table of a device and the translations of its
 * regions. One thread.
 */
#ifndef SHRIMP_INSPECT_REGIONS_H
#define SHRIMP_INSPECT_REGIONS_H

#include "tools/inspect.h"

/* How many slots there are and are used: @d->mpt.slots, .used. */
void insp_mpt_head_read(struct insp_device *d);

/*
 * Counts what is in the slots, walks the translations of the live ones, and
 * keeps those that @w asks for in @d->region. After insp_mpt_head_read(),
 * insp_index_read() and insp_spaces_read().
 */
void insp_regions_read(struct insp_device *d, const struct insp_want *w);

#endif /* SHRIMP_INSPECT_REGIONS_H */
