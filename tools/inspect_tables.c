/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Header, counters, index, spaces. All words are copies: loads are relaxed,
 * since the reads that made the copies were system calls.
 */
#include "tools/inspect_tables.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shm/pool.h"
#include "tools/inspect_file.h"
#include "tools/inspect_note.h"

/* ---- the header ---- */

static const char *const part_name[INSP_PARTS] = {
	[INSP_PART_STATS] = "counters",
	[INSP_PART_MPT_HEAD] = "head of the MPT",
	[INSP_PART_PAGING] = "counters of paging",
	[INSP_PART_SPACES] = "spaces",
	[INSP_PART_CACHES] = "key caches",
	[INSP_PART_MPT] = "MPT",
	[INSP_PART_INDEX0] = "first user-key index",
	[INSP_PART_INDEX1] = "second user-key index",
	[INSP_PART_MTT] = "MTT",
};

/* Part @p: @n things of @size bytes at @off. */
static void part_set(struct insp_device *d, enum insp_part p, uint64_t off,
		     uint64_t n, uint64_t size)
{
	struct insp_range *r = &d->part[p];
	uint64_t room = off <= d->tables.size ? d->tables.size - off : 0;

	*r = (struct insp_range){ .off = off };
	if (!size || n > room / size || off < RNIC_PAGE || off % RNIC_LINE) {
		insp_note(&d->notes,
			  "header: %s: %" PRIu64 " of %" PRIu64
			  " bytes at %#" PRIx64 " do not lie in the tables",
			  part_name[p], n, size, off);
		return;
	}
	r->size = n * size;
	r->ok = true;
}

/* Says which parts lie in one another. */
static void parts_overlap(struct insp_device *d)
{
	for (int i = 0; i < INSP_PARTS; i++)
		for (int k = 0; k < i; k++) {
			const struct insp_range *a = &d->part[i];
			const struct insp_range *b = &d->part[k];

			if (a->ok && b->ok && a->off < b->off + b->size &&
			    b->off < a->off + a->size)
				insp_note(&d->notes,
					  "header: %s and %s overlap",
					  part_name[k], part_name[i]);
		}
}

static void parts_set(struct insp_device *d)
{
	const struct rnic_header *h = &d->hdr;

	part_set(d, INSP_PART_STATS, h->stats_off, RNIC_EP_MAX,
		 sizeof(struct rnic_stats));
	part_set(d, INSP_PART_MPT_HEAD, h->mpt_head_off, 1,
		 sizeof(struct rnic_mpt_head));
	part_set(d, INSP_PART_PAGING, h->paging_off, 1,
		 sizeof(struct rnic_paging));
	part_set(d, INSP_PART_SPACES, h->space_off, RNIC_SPACES,
		 sizeof(struct rnic_space));
	part_set(d, INSP_PART_CACHES, h->cache_off,
		 RNIC_EP_MAX * RNIC_CTX_PER_EP, h->cache_stride);
	part_set(d, INSP_PART_MPT, h->mpt_off, h->mpt_slots,
		 sizeof(struct rnic_mpt));
	for (int i = 0; i < 2; i++)
		part_set(d, INSP_PART_INDEX0 + i, h->index_off[i],
			 h->index_slots, sizeof(struct rnic_key_entry));
	part_set(d, INSP_PART_MTT, h->mtt_off, h->mtt_pages,
		 sizeof(struct rnic_mtt_page));
	parts_overlap(d);
}

static void check_rest(struct insp_device *d)
{
	const struct rnic_header *h = &d->hdr;
	struct rnic_pool_geom g;

	if (h->tables_size != d->tables.size)
		insp_note(&d->notes,
			  "header: tables of %" PRIu64
			  " bytes, the file has %" PRIu64,
			  h->tables_size, d->tables.size);
	if (h->lane_lines != RNIC_LANE_LINES)
		insp_note(&d->notes, "header: lanes of %" PRIu32 " descriptors",
			  h->lane_lines);
	if (h->ring_bytes != RNIC_RING_BYTES)
		insp_note(&d->notes, "header: byte rings of %" PRIu32 " bytes",
			  h->ring_bytes);
	if (rnic_pool_geom_init(&g, h->pool_bytes, h->pool_large_off))
		insp_note(&d->notes,
			  "header: no chunk pool has %" PRIu64
			  " bytes with large chunks from %#" PRIx64 " on",
			  h->pool_bytes, h->pool_large_off);
	if (h->heap_bytes > RNIC_HEAP_MAX)
		insp_note(&d->notes, "header: inject heap of %" PRIu64 " bytes",
			  h->heap_bytes);
}

bool insp_header_read(struct insp_device *d)
{
	struct rnic_header *h = &d->hdr;

	if (!insp_read(&d->tables, 0, h, sizeof(*h)))
		insp_note(&d->notes, "tables: %" PRIu64 " bytes are no header",
			  d->tables.size);
	else if (!h->magic)
		insp_note(&d->notes,
			  "header: no magic: not complete yet, or wiped");
	else if (h->magic != RNIC_MAGIC_TABLES)
		insp_note(&d->notes, "header: bad magic %#" PRIx64, h->magic);
	else if (h->version != RNIC_VERSION)
		insp_note(&d->notes,
			  "header: layout %" PRIu32
			  ", of which this program knows nothing: it is for %d",
			  h->version, RNIC_VERSION);
	else
		d->usable = true;
	if (!d->usable)
		return false;
	parts_set(d);
	check_rest(d);
	return true;
}

static void check_size(struct insp_device *d, const char *what, uint64_t said,
		       const struct rnic_segment *s)
{
	/* the arena grows by itself */
	if (s->fd >= 0 && s->size < said)
		insp_note(&d->notes,
			  "header: %s of %" PRIu64
			  " bytes, the file has %" PRIu64,
			  what, said, s->size);
}

void insp_files_check(struct insp_device *d)
{
	struct rnic_mailbox_header m;

	check_size(d, "mailbox", d->hdr.mailbox_size, &d->mailbox);
	check_size(d, "arena", d->hdr.arena_size, &d->arena);
	if (d->mailbox.fd < 0)
		return;
	insp_read(&d->mailbox, 0, &m, sizeof(m));
	if (m.magic != RNIC_MAGIC_MAILBOX)
		insp_note(&d->notes, "mailbox: bad magic %#" PRIx64, m.magic);
	else if (m.incarnation != d->hdr.incarnation)
		insp_note(&d->notes,
			  "mailbox: of device %016" PRIx64 ", not this one",
			  m.incarnation);
}

bool insp_stats_read(const struct insp_device *d, unsigned int index,
		     uint64_t *stats)
{
	const struct insp_range *r = &d->part[INSP_PART_STATS];
	size_t size = INSP_STATS * sizeof(*stats);

	if (r->ok && insp_read(&d->tables, r->off + index * size, stats, size))
		return true;
	memset(stats, 0, size);
	return false;
}

void insp_paging_read(struct insp_device *d)
{
	const struct insp_range *r = &d->part[INSP_PART_PAGING];

	if (!r->ok ||
	    !insp_read(&d->tables, r->off, d->paging, sizeof(d->paging)))
		memset(d->paging, 0, sizeof(d->paging));
}

/* ---- the user-key index ---- */

/* A scan of one table. */
struct scan {
	struct insp_device *d;
	unsigned int bad;  /* entries that cannot be */
	uint64_t bad_slot; /* the first of them */
};

bool insp_index_has(const struct insp_device *d, uint64_t slot)
{
	return slot / 8 < d->index.user_bytes &&
	       d->index.user[slot / 8] >> slot % 8 & 1;
}

static void scan_block(void *arg, uint64_t off, const void *buf, size_t len)
{
	const struct rnic_key_entry *e = buf;
	struct scan *s = arg;
	struct insp_index *x = &s->d->index;

	(void)off;
	for (size_t i = 0; i < len / sizeof(*e); i++) {
		uint64_t slot = rnic_load64_relaxed(&e[i].slot);

		if (slot == RNIC_INDEX_DELETED) {
			x->deleted++;
		} else if (slot > s->d->mpt.slots) {
			s->bad_slot = s->bad++ ? s->bad_slot : slot - 1;
		} else if (slot != RNIC_INDEX_FREE) {
			x->keys++;
			if ((slot - 1) / 8 < x->user_bytes)
				x->user[(slot - 1) / 8] |=
					(uint8_t)(1u << (slot - 1) % 8);
		}
	}
}

static uint64_t index_word(const struct insp_device *d)
{
	struct rnic_mpt_head h;

	insp_read(&d->tables, d->part[INSP_PART_MPT_HEAD].off, &h, sizeof(h));
	return rnic_load64_relaxed(&h.index);
}

/* Scans the table that @word names. False if there is none such. */
static bool index_scan(struct insp_device *d, uint64_t word)
{
	struct scan s = { .d = d };
	struct insp_index *x = &d->index;
	const struct insp_range *r;

	x->which = rnic_index_which(word);
	x->shift = rnic_index_shift(word);
	x->keys = x->deleted = 0;
	memset(x->user, 0, x->user_bytes);
	r = &d->part[INSP_PART_INDEX0 + x->which];
	x->there = rnic_index_valid(word) && r->ok && x->shift < 48 &&
		   UINT64_C(1) << x->shift <=
			   r->size / sizeof(struct rnic_key_entry);
	if (!x->there)
		return false;
	insp_each_block(&d->tables, r->off,
			sizeof(struct rnic_key_entry) << x->shift, scan_block,
			&s);
	if (s.bad)
		insp_note(&d->notes,
			  "user-key index: %u entries name slots that are not, "
			  "%" PRIu64 " for one",
			  s.bad, s.bad_slot);
	return true;
}

void insp_index_read(struct insp_device *d)
{
	struct insp_index *x = &d->index;
	unsigned int notes = d->notes.n;
	uint64_t word;

	if (!d->part[INSP_PART_MPT_HEAD].ok)
		return;
	x->user_bytes = (d->mpt.used + 7) / 8;
	x->user = insp_alloc(x->user_bytes, 1);
	word = index_word(d);
	for (int i = 0; i < INSP_RETRIES && word; i++) {
		bool there = index_scan(d, word);
		uint64_t now = index_word(d);

		x->torn = now != word;
		if (!x->torn && !there)
			insp_note(&d->notes,
				  "user-key index: word %#" PRIx64
				  " names no table",
				  word);
		if (!x->torn)
			return;
		insp_notes_cut(&d->notes, notes);
		word = now;
	}
}

/* ---- spaces ---- */

/* Entry @i, read until it holds still. False if it is not in use. */
static bool space_read(struct insp_device *d, unsigned int i,
		       struct insp_space *to)
{
	uint64_t at = d->part[INSP_PART_SPACES].off;
	struct rnic_space a = { 0 }, b;

	at += i * sizeof(a);
	insp_read(&d->tables, at, &b, sizeof(b));
	for (int n = 0; n < INSP_RETRIES && memcmp(&a, &b, sizeof(a)); n++) {
		a = b;
		insp_read(&d->tables, at, &b, sizeof(b));
	}
	to->number = i;
	to->gen = rnic_load64_relaxed(&b.gen);
	to->fd = rnic_load64_relaxed(&b.fd);
	to->ino = rnic_load64_relaxed(&b.ino);
	to->size = rnic_load64_relaxed(&b.size);
	return to->gen & 1;
}

static bool space_take(struct insp_device *d, unsigned int number)
{
	struct insp_space s;

	if (!d->part[INSP_PART_SPACES].ok || !space_read(d, number, &s))
		return false;
	*(struct insp_space *)insp_grow((void **)&d->space, d->nspaces++,
					sizeof(s)) = s;
	return true;
}

void insp_spaces_read(struct insp_device *d)
{
	for (unsigned int i = 1; i < RNIC_SPACES; i++)
		space_take(d, i);
}

bool insp_space_used(struct insp_device *d, unsigned int number)
{
	for (unsigned int i = 0; i < d->nspaces; i++)
		if (d->space[i].number == number)
			return true;
	return number < RNIC_SPACES && space_take(d, number);
}
