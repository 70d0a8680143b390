/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Header, counters, user-key index and spaces of a device. One thread.
 */
#ifndef SHRIMP_INSPECT_TABLES_H
#define SHRIMP_INSPECT_TABLES_H

#include "tools/inspect.h"

/*
 * Reads the header of @d->tables, which is open, and looks whether each part
 * that it names lies in the file; what does not is noted and left out.
 * Returns @d->usable: magic and version are ours.
 */
bool insp_header_read(struct insp_device *d);

/*
 * Compares what the header says of mailbox and arena with the files. Both may
 * be closed.
 */
void insp_files_check(struct insp_device *d);

/*
 * Counters of place @index into @stats (INSP_STATS words). False if they
 * cannot be read; they are zero then.
 */
bool insp_stats_read(const struct insp_device *d, unsigned int index,
		     uint64_t *stats);

/* Counters of regions on demand, and of watched ones. */
void insp_paging_read(struct insp_device *d);

/* The user-key index; needs @d->mpt.used. Sets index.user. */
void insp_index_read(struct insp_device *d);

/* True if the user-key index names @slot. */
bool insp_index_has(const struct insp_device *d, uint64_t slot);

/* The spaces in use. */
void insp_spaces_read(struct insp_device *d);

/*
 * True if space @number was in use then, or is now: then it is added to the
 * others.
 */
bool insp_space_used(struct insp_device *d, unsigned int number);

#endif /* SHRIMP_INSPECT_TABLES_H */
