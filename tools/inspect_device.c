/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The parts of a device, in the order in which they need each other.
 */
#include "tools/inspect_device.h"

#include <stdlib.h>

#include "tools/inspect_cache.h"
#include "tools/inspect_file.h"
#include "tools/inspect_lanes.h"
#include "tools/inspect_note.h"
#include "tools/inspect_regions.h"
#include "tools/inspect_tables.h"

static void mtt_read(struct insp_device *d)
{
	const struct insp_range *r = &d->part[INSP_PART_MTT];

	if (!r->ok)
		return;
	d->mtt.pages = r->size / RNIC_PAGE;
	d->mtt.memory = insp_data(&d->tables, r->off, r->size) / RNIC_PAGE;
}

void insp_device_read(struct insp_device *d, const struct insp_want *w)
{
	d->memory[0] = insp_memory(&d->tables);
	d->memory[1] = insp_memory(&d->mailbox);
	d->memory[2] = insp_memory(&d->arena);
	if (!d->usable)
		return;
	insp_files_check(d);
	insp_mpt_head_read(d);
	insp_index_read(d);
	insp_paging_read(d);
	insp_spaces_read(d);
	mtt_read(d);
	insp_regions_read(d, w);
	insp_caches_read(d, w->caches);
	insp_places_read(d, w->lanes);
	if (d->arena.size > RNIC_ARENA_USER)
		d->user_memory = insp_data(&d->arena, RNIC_ARENA_USER,
					   d->arena.size - RNIC_ARENA_USER);
}

void insp_device_free(struct insp_device *d)
{
	rnic_segment_close(&d->tables);
	rnic_segment_close(&d->mailbox);
	rnic_segment_close(&d->arena);
	free(d->index.user);
	free(d->place);
	free(d->lane);
	free(d->cache);
	free(d->region);
	free(d->space);
	insp_notes_free(&d->notes);
}
