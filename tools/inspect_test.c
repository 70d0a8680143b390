/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-inspect on devices of this process: what is there is what it says,
 * also amid changes; what is damaged is said to be, and nothing else happens.
 */
#include "tools/inspect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/log.h"
#include "shm/reach_kit.h"
#include "tests/harness.h"
#include "tests/json_look.h"
#include "tests/scribble.h"
#include "tools/inspect_count.h"
#include "tools/inspect_device.h"
#include "tools/inspect_find.h"
#include "tools/inspect_json.h"
#include "tools/inspect_note.h"
#include "tools/inspect_options.h"
#include "tools/inspect_print.h"
#include "tools/inspect_tables.h"

enum {
	PAGE = RNIC_PAGE,
	LEN = 3 * PAGE,
	USER_KEY = 0x5eed,
	CACHE_ENTRIES = 256, /* of a key cache, if nobody says more */
	FUZZ = 2000,	     /* rounds */
};

#if defined(__SANITIZE_THREAD__)
enum { FUZZ_ALL = 0 }; /* nothing here is for it to find */
#else
enum { FUZZ_ALL = 1 }; /* the rounds are for AddressSanitizer */
#endif

#define RW (RNIC_REMOTE_READ | RNIC_REMOTE_WRITE)

static const struct insp_want all = { .regions = UINT64_MAX,
				      .lanes = true,
				      .caches = true };
static const struct insp_before none = { .list = NULL };

static void ignore(enum rnic_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
}

/* ---- a device with something of everything ---- */

struct bed {
	struct kit_owner o;  /* the device */
	struct kit_reader d; /* of this process, with a lane */
	struct kit_mem arena, va;
	uint64_t list;	    /* key of a region of both */
	uint64_t tree;	    /* key of a region with a translation */
	uint32_t tree_slot; /* of it */
	uint64_t user;	    /* USER_KEY */
	uint64_t tree_root; /* word */
};

static void publish(struct bed *b, const struct rnic_region *r, bool user,
		    uint64_t *key, uint32_t *slot)
{
	assert_int_equal(rnic_mpt_publish(&b->o.mpt, r, user, key, slot), 0);
}

/* Two pieces of the arena that do not adjoin: a tree of 4 KiB leaves. */
static uint64_t make_tree(struct bed *b)
{
	const uint64_t at = UINT64_C(0x10000000), pages = 4;
	const struct rnic_extent x[2] = {
		{ at, pages * PAGE, rnic_mtt_leaf_space(0, 1 << 20), 0 },
		{ at + pages * PAGE, pages * PAGE, rnic_mtt_leaf_va(at), 0 },
	};
	uint64_t root;

	assert_int_equal(rnic_mtt_build(&b->o.mtt, x, 2, &root), 0);
	return root;
}

static void fill(struct bed *b)
{
	struct rnic_region r = { .va = UINT64_C(0x10000000),
				 .length = 8 * PAGE,
				 .rights = RNIC_LOCAL_READ };
	struct kit_mem both[2], gone;
	uint32_t slot;

	b->arena = kit_arena(&b->o, LEN);
	b->va = kit_private(LEN);
	kit_publish(&b->o, &b->arena, RW | RNIC_MR_GIVEN);
	kit_publish(&b->o, &b->va, RW);
	both[0] = b->arena;
	both[1] = b->va;
	b->list = kit_publish_list(&b->o, both, 2, RNIC_REMOTE_READ);
	r.mtt = b->tree_root = make_tree(b);
	publish(b, &r, false, &b->tree, &b->tree_slot);
	r.mtt = rnic_mtt_root_make(0, b->arena.leaf);
	b->user = USER_KEY;
	publish(b, &r, true, &b->user, &slot);
	gone = b->arena;
	kit_publish(&b->o, &gone, RW);
	kit_withdraw(&b->o, &gone);
}

/* One miss and some hits in the arena's region. */
static void use(struct bed *b)
{
	char buf[8] = { 0 };

	for (int i = 0; i < 3; i++) {
		struct rnic_access a = { .key = b->arena.key,
					 .addr = (uintptr_t)b->arena.p,
					 .len = sizeof(buf),
					 .buf = buf,
					 .write = true };
		size_t moved;

		assert_int_equal(rnic_reach_move(&b->d.c, &b->d.x, &a, &moved),
				 0);
	}
}

static int setup(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	rnic_log_sink(ignore);
	kit_owner_open(&b->o, true);
	assert_int_equal(kit_reader_open(&b->d, &b->o.addr), 0);
	/* a key cache where others see it, instead */
	rnic_ctx_fini(&b->d.c);
	assert_int_equal(rnic_ctx_open(&b->d.c, &b->o.dev, b->o.place.index, 0),
			 0);
	fill(b);
	use(b);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	kit_reader_close(&b->d);
	munmap(b->va.p, b->va.len);
	kit_owner_close(&b->o);
	rnic_log_sink(NULL);
	free(b);
	return 0;
}

/* ---- copies of its files ---- */

struct copies {
	struct rnic_segment seg[3]; /* tables, mailbox, arena */
};

/* What has been written of @from, to @to. */
static void copy_data(const struct rnic_segment *from,
		      const struct rnic_segment *to)
{
	static char buf[1 << 16];
	off_t end, off = 0;

	while ((off = lseek(from->fd, off, SEEK_DATA)) >= 0) {
		end = lseek(from->fd, off, SEEK_HOLE);
		while (off < end) {
			size_t n = sizeof(buf);

			if ((off_t)n > end - off)
				n = (size_t)(end - off);
			assert_int_equal(pread(from->fd, buf, n, off), n);
			assert_int_equal(pwrite(to->fd, buf, n, off), n);
			off += (off_t)n;
		}
	}
}

static const struct rnic_segment *source(const struct bed *b, int i)
{
	return i == 0	? &b->o.dev.tables
	       : i == 1 ? &b->o.dev.mailbox
			: &b->o.dev.arena;
}

static void copies_make(const struct bed *b, struct copies *c)
{
	for (int i = 0; i < 3; i++) {
		struct stat st;

		assert_int_equal(fstat(source(b, i)->fd, &st), 0);
		assert_int_equal(rnic_segment_create(&c->seg[i], "copy",
						     (uint64_t)st.st_size),
				 0);
		copy_data(source(b, i), &c->seg[i]);
	}
}

static void copies_close(struct copies *c)
{
	for (int i = 0; i < 3; i++)
		rnic_segment_close(&c->seg[i]);
}

/* Blocks of memory of three files. */
static uint64_t blocks(const struct rnic_segment *x,
		       const struct rnic_segment *y,
		       const struct rnic_segment *z)
{
	const struct rnic_segment *seg[3] = { x, y, z };
	struct stat st;
	uint64_t n = 0;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(fstat(seg[i]->fd, &st), 0);
		n += (uint64_t)st.st_blocks;
	}
	return n;
}

/*
 * Reads the device in the files of @c, which stay open, and get no memory by
 * it.
 */
static void device_of(const struct copies *c, struct insp_device *d)
{
	struct rnic_segment *to[3] = { &d->tables, &d->mailbox, &d->arena };
	uint64_t before = blocks(&c->seg[0], &c->seg[1], &c->seg[2]);

	*d = (struct insp_device){ .tables_fd = 3, .here = true };
	for (int i = 0; i < 3; i++) {
		*to[i] = c->seg[i];
		to[i]->fd = dup(c->seg[i].fd);
		assert_true(to[i]->fd >= 0);
	}
	insp_header_read(d);
	insp_device_read(d, &all);
	assert_int_equal(blocks(&c->seg[0], &c->seg[1], &c->seg[2]), before);
}

/* Prints @d both ways; what is for programs must be JSON. */
static void print_both(const struct insp_device *d)
{
	struct insp_process p = { .pid = 1,
				  .command = "a \"\\\t\x7f b",
				  .device = (struct insp_device *)d,
				  .ndevices = 1 };
	struct insp_list l = { .process = &p, .n = 1 };
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	insp_json_process(f, &p, &none);
	fflush(f);
	assert_true(json_valid(text));
	rewind(f);
	insp_json_list(f, &l, &none);
	fputc(0, f);
	fflush(f);
	assert_true(json_valid(text));
	insp_print_process(f, &p, &all, &none);
	insp_print_list(f, &l, &none);
	fclose(f);
	free(text);
}

/* Every line of @text has room on a terminal of 80 columns. */
static void assert_narrow(const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		if (n > 80)
			fail_msg("%zu columns: %.*s", n, (int)n, text);
		text += n + (text[n] == '\n');
	}
}

/* The tables of @d as people read them: all but versions and bindings. */
static void check_width(const struct insp_device *d)
{
	const struct insp_want want = { .regions = 10,
					.lanes = true,
					.caches = true };
	struct insp_process p = { .pid = 4194304,
				  .command = "a-long-command",
				  .device = (struct insp_device *)d,
				  .ndevices = 1 };
	struct insp_list l = { .process = &p, .n = 1 };
	struct insp_before before = { .list = &l, .seconds = 1 };
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	insp_print_list(f, &l, &none);
	insp_print_list(f, &l, &before);
	insp_print_process(f, &p, &want, &before);
	fclose(f);
	assert_narrow(text);
	free(text);
}

static const struct insp_region *region_of(const struct insp_device *d,
					   uint64_t key)
{
	for (unsigned int i = 0; i < d->nregions; i++)
		if (d->region[i].key == key)
			return &d->region[i];
	fail_msg("no region of key %#" PRIx64, key);
	return NULL;
}

/* ---- what is there ---- */

static void check_regions(const struct bed *b, const struct insp_device *d)
{
	const struct insp_region *r = region_of(d, b->arena.key);

	assert_int_equal(r->va, (uintptr_t)b->arena.p);
	assert_int_equal(r->length, LEN);
	assert_int_equal(r->slot, b->arena.slot);
	assert_int_equal(r->where, INSP_ARENA);
	assert_int_equal(r->rights, RW | RNIC_MR_GIVEN);
	assert_false(r->user || r->torn);
	assert_int_equal(r->leaves[0], 1);
	assert_int_equal(region_of(d, b->va.key)->where, INSP_ADDRESS);
	r = region_of(d, b->list);
	assert_int_equal(r->ranges, 2);
	assert_int_equal(r->where, INSP_ARENA | INSP_ADDRESS);
	assert_int_equal(r->length, 2 * LEN);
	assert_int_equal(r->pages, 1);
	r = region_of(d, b->tree);
	assert_int_equal(r->leaves[1], 8);
	assert_int_equal(r->pages, 1);
	assert_int_equal(r->where, INSP_ARENA | INSP_ADDRESS);
	assert_true(region_of(d, USER_KEY)->user);
}

static void check_counts(const struct insp_device *d)
{
	assert_int_equal(d->notes.n, 0);
	assert_int_equal(d->mpt.live, 5);
	assert_int_equal(d->mpt.ended, 1);
	assert_int_equal(d->mpt.user, 1);
	assert_int_equal(d->mpt.bytes, 4 * LEN + 2 * 8 * PAGE);
	assert_int_equal(d->mpt.used, d->mpt.live + 1 + d->mpt.fresh);
	assert_true(d->index.there);
	assert_int_equal(d->index.keys, 1);
	assert_int_equal(d->index.deleted, 0);
	assert_int_equal(d->mtt.trees, 2);
}

static void check_cache(const struct bed *b, const struct insp_device *d)
{
	const struct rnic_header *h = b->o.dev.hdr;
	const struct rnic_cache *c =
		(const void *)((const char *)h + h->cache_off);

	assert_int_equal(b->o.place.index, 0);
	assert_int_equal(d->ncaches, 1);
	assert_true(d->cache->hits >= 2);
	/* relaxed: nobody else is here */
	assert_int_equal(d->cache->hits, rnic_load64_relaxed(&c->hits));
	assert_int_equal(d->cache->misses, 1);
	assert_int_equal(d->cache->used, 1);
	assert_int_equal(d->cache->entries, CACHE_ENTRIES);
}

static void all_is_told(void **state)
{
	struct bed *b = *state;
	struct insp_device d;
	struct copies c;

	copies_make(b, &c);
	device_of(&c, &d);
	for (unsigned int i = 0; i < d.notes.n; i++)
		print_message("%s\n", d.notes.text[i]);
	check_counts(&d);
	check_cache(b, &d);
	check_regions(b, &d);
	assert_int_equal(d.open, 1);
	assert_int_equal(d.nplaces, 1);
	assert_int_equal(d.place->gen, b->o.place.gen);
	assert_int_equal(d.nlanes, 1);
	assert_int_equal(d.lane->pid, getpid());
	assert_int_equal(d.lane->state, RNIC_TX_LIVE);
	assert_int_equal(d.lane->announced[1], 1);
	assert_int_equal(d.lane->seq[1] & 1, 0);
	assert_true(d.lane->seq[1] > 0);
	assert_false(d.lane->dead);
	print_both(&d);
	check_width(&d);
	insp_device_free(&d);
	copies_close(&c);
}

/* The process finds itself; a key alone, a few regions. */
static void the_process_is_found(void **state)
{
	struct bed *b = *state;
	struct insp_want key = { .regions = 5,
				 .has_key = true,
				 .key = USER_KEY },
			 few = { .regions = 2 };
	struct insp_process p;

	assert_int_equal(insp_process_read(getpid(), &key, &p), 0);
	assert_int_equal(p.ndevices, 1);
	assert_int_equal(p.notes.n, 0);
	assert_int_equal(p.device->notes.n, 0);
	assert_int_equal(p.device->hdr.incarnation, b->o.dev.hdr->incarnation);
	assert_int_equal(p.device->tables_fd, b->o.dev.tables.fd);
	assert_int_equal(p.device->mailbox_fd, b->o.dev.mailbox.fd);
	assert_int_equal(p.device->nregions, 1);
	assert_int_equal(p.device->region->key, USER_KEY);
	assert_int_equal(p.device->nlanes + p.device->ncaches, 0);
	assert_int_equal(p.device->claimed, 1);
	insp_process_free(&p);
	assert_int_equal(insp_process_read(getpid(), &few, &p), 0);
	assert_int_equal(p.device->nregions, 2);
	assert_int_equal(p.device->mpt.live, 5);
	insp_process_free(&p);
}

/* A lane that was claimed, and its claimer died before it had pages. */
static void reading_takes_no_memory(void **state)
{
	struct bed *b = *state;
	uint64_t before = blocks(source(b, 0), source(b, 1), source(b, 2));
	struct insp_process p;

	rnic_store64_relaxed(&b->o.place.head->claim[9], UINT64_C(1) << 63 | 1);
	assert_int_equal(insp_process_read(getpid(), &all, &p), 0);
	assert_int_equal(p.device->nlanes, 2);
	rnic_store64_relaxed(&b->o.place.head->claim[9], 0);
	insp_process_free(&p);
	assert_int_equal(blocks(source(b, 0), source(b, 1), source(b, 2)),
			 before);
}

/* ---- amid changes ---- */

struct changer {
	struct bed *b;
	rnic_a32 stop;
};

/* A tree of two pieces of @pages each: of several levels if that is many. */
static void tree_of(struct bed *b, uint64_t pages, struct rnic_region *r)
{
	const struct rnic_extent x[2] = {
		{ r->va, pages * PAGE, rnic_mtt_leaf_space(0, 1 << 20), 0 },
		{ r->va + pages * PAGE, pages * PAGE, rnic_mtt_leaf_va(r->va),
		  0 },
	};

	r->length = 2 * pages * PAGE;
	assert_int_equal(rnic_mtt_build(&b->o.mtt, x, 2, &r->mtt), 0);
}

/* The latest region of a changer. */
struct latest {
	bool there;
	uint32_t slot;
	uint64_t root; /* of its tree */
};

static void end_latest(struct bed *b, const struct latest *l)
{
	rnic_mpt_invalidate(&b->o.mpt, l->slot);
	assert_int_equal(rnic_grace_fence(&b->o.dev, l->slot), 0);
	rnic_mtt_free(&b->o.mtt, l->root, 0);
	rnic_mpt_retire(&b->o.mpt, l->slot, rnic_grace_now(&b->o.dev));
}

/*
 * A region more, then the one before goes. A page of the tables is at one
 * level now and at another one soon.
 */
static void change_once(struct bed *b, uint64_t i, struct latest *l)
{
	static const uint64_t pages[] = { 300000, 1, 290000, 700 };
	struct rnic_region r = { .va = UINT64_C(0x10001000), .rights = RW };
	uint64_t key = 1000 + i % 7;
	uint32_t slot;

	tree_of(b, pages[i % 4], &r);
	publish(b, &r, i & 1, &key, &slot);
	if (l->there)
		end_latest(b, l);
	*l = (struct latest){ true, slot, r.mtt };
	rnic_mpt_add_events(&b->o.mpt, slot, RNIC_MR_EV_READ);
}

static void *change(void *arg)
{
	struct latest l = { .there = false };
	struct changer *c = arg;

	for (uint64_t i = 0; !rnic_load32_relaxed(&c->stop); i++)
		change_once(c->b, i, &l);
	end_latest(c->b, &l);
	return NULL;
}

/* Looks once: true if all is well. *@torn: regions that changed meanwhile. */
static bool look_amid(uint64_t *torn)
{
	struct insp_process p;
	bool well = !insp_process_read(getpid(), &all, &p) && p.ndevices == 1;

	for (unsigned int k = 0; well && k < p.device->notes.n; k++)
		print_message("%s\n", p.device->notes.text[k]);
	well = well && !p.device->notes.n && p.device->mpt.live >= 5 &&
	       p.device->mpt.live <= 7;
	*torn += well ? p.device->mpt.torn : 0;
	insp_process_free(&p);
	return well;
}

/* Nothing is taken for damage that is only news. */
static void changes_are_no_damage(void **state)
{
	struct changer c = { .b = *state };
	unsigned long rounds = th_rounds(300), well = 0;
	uint64_t torn = 0;
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, change, &c), 0);
	while (well < rounds && look_amid(&torn))
		well++;
	rnic_store32_relaxed(&c.stop, 1);
	pthread_join(t, NULL);
	print_message("%" PRIu64 " regions changed under a look\n", torn);
	assert_int_equal(well, rounds);
}

/* ---- damage ---- */

/* A word that is written over, and what is then said. */
struct damage {
	int seg;	  /* 0 tables, 1 mailbox */
	uint64_t off;	  /* of the word */
	uint64_t word;	  /* what is written */
	const char *said; /* part of a note */
	bool usable;	  /* and the rest is shown */
};

static bool is_said(const struct insp_device *d, const char *what)
{
	for (unsigned int i = 0; i < d->notes.n; i++)
		if (strstr(d->notes.text[i], what))
			return true;
	return false;
}

static void damage(const struct bed *b, const struct damage *x)
{
	struct insp_device d;
	struct copies c;

	copies_make(b, &c);
	assert_int_equal(pwrite(c.seg[x->seg].fd, &x->word, 8, (off_t)x->off),
			 8);
	device_of(&c, &d);
	if (!is_said(&d, x->said))
		fail_msg("nobody said: %s (%u notes, %s)", x->said, d.notes.n,
			 d.notes.n ? d.notes.text[0] : "none");
	assert_int_equal(d.usable, x->usable);
	/* the rest is there */
	if (x->usable)
		assert_true(d.nplaces || d.nregions);
	print_both(&d);
	insp_device_free(&d);
	copies_close(&c);
}

#define HDR(f)	offsetof(struct rnic_header, f)
#define HEAD(f) (rnic_head_off(0) + offsetof(struct rnic_ep_head, f))
#define LANE(f) (rnic_lane_off(0, 0) + offsetof(struct rnic_lane, f))

static void damaged_headers_are_told(void **state)
{
	static const struct damage table[] = {
		{ 0, HDR(magic), 0, "no magic", false },
		{ 0, HDR(magic), 7, "bad magic 0x7", false },
		{ 0, HDR(version), 99, "layout 99", false },
		{ 0, HDR(stats_off), UINT64_MAX - 63, "counters", true },
		{ 0, HDR(mpt_off), 1, "MPT", true },
		{ 0, HDR(mpt_slots), UINT64_MAX, "MPT", true },
		{ 0, HDR(mtt_pages), UINT64_C(1) << 60, "MTT", true },
		{ 0, HDR(index_off[1]), 4096, "overlap", true },
		{ 0, HDR(index_slots), INT64_MAX, "user-key index", true },
		{ 0, HDR(space_off), 4095, "spaces", true },
		{ 0, HDR(cache_stride), 64, "key cache", true },
		{ 0, HDR(cache_stride), UINT64_MAX, "key caches", true },
		{ 0, HDR(tables_size), 4096, "tables of 4096", true },
		{ 0, HDR(mailbox_size), UINT64_MAX, "mailbox of", true },
		{ 0, HDR(pool_bytes), 12345, "chunk pool", true },
		{ 0, HDR(heap_bytes), UINT64_MAX, "inject heap", true },
		{ 0, HDR(lane_lines), 1, "descriptors", true },
		{ 1, 0, 1, "mailbox: bad magic", true },
		{ 1, 8, 1, "mailbox: of device", true },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		damage(*state, &table[i]);
}

static void damaged_lanes_are_told(void **state)
{
	struct bed *b = *state;
	const struct damage table[] = {
		{ 1, HEAD(state), 77, "state 77", true },
		{ 1, HEAD(lane_hi), 1 << 20, "1048576 lanes", true },
		{ 1, HEAD(lane_hi), 0, "claimed, none is from 0 on", true },
		{ 1, HEAD(claim), 7, "claim 0x7 is none", true },
		{ 1, LANE(tx_state), 9, "sender in state 9", true },
		{ 1, LANE(sender), 9, "no address", true },
		{ 1, LANE(ret_taken), 1000, "1000 taken", true },
		{ 1, LANE(desc[0].head), UINT64_C(77) << 32 | 1,
		  "a descriptor of kind 77", true },
		{ 1, LANE(desc[0].head),
		  UINT64_C(500) << 48 | UINT64_C(1) << 32 | 1,
		  "500 bytes within a descriptor", true },
	};

	assert_int_equal(b->o.place.index, 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		damage(b, &table[i]);
}

/* The monitor takes the root of a region whose memory is gone. */
static void gone_is_no_damage(void **state)
{
	struct bed *b = *state;
	uint64_t nothing = 0, key[] = { b->va.key, b->list };
	static const char *const kind[] = { "gone", "list gone" };
	struct rnic_region region;
	char text[INSP_TEXT];
	struct insp_device d;
	struct copies c;
	uint32_t slot;

	copies_make(b, &c);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			rnic_mpt_find(&b->o.mpt, key[i], &slot, &region), 0);
		assert_int_equal(
			pwrite(c.seg[0].fd, &nothing, sizeof(nothing),
			       (off_t)(b->o.dev.hdr->mpt_off +
				       slot * sizeof(struct rnic_mpt) + 32)),
			sizeof(nothing));
	}
	device_of(&c, &d);
	assert_int_equal(d.notes.n, 0);
	for (int i = 0; i < 2; i++) {
		const struct insp_region *r = region_of(&d, key[i]);

		assert_int_equal(r->where, INSP_GONE);
		assert_int_equal(r->leaves[0] + r->pages, 0);
		assert_string_equal(insp_text_kind(text, r), kind[i]);
	}
	insp_device_free(&d);
	copies_close(&c);
}

static void damaged_tables_are_told(void **state)
{
	struct bed *b = *state;
	const struct rnic_header *h = b->o.dev.hdr;
	const uint64_t slot = h->mpt_off +
			      b->tree_slot * sizeof(struct rnic_mpt),
		       page = h->mtt_off + (b->tree_root >> 12) * PAGE,
		       index = rnic_index_make(1, 60);
	const struct damage table[] = {
		{ 0, h->mpt_head_off, UINT64_MAX, "slots in use", true },
		{ 0, h->mpt_head_off, 2048, "have no version", true },
		{ 0, h->mpt_head_off + 8, index, "names no table", true },
		{ 0, h->index_off[0] + 8, UINT64_MAX - 5, "not", true },
		{ 0, slot + 16, UINT64_MAX - 100, "beyond the last", true },
		{ 0, slot + 24, 0, "region of 0 bytes", true },
		{ 0, slot + 32, UINT64_MAX, "no MTT page", true },
		{ 0, slot + 40, RNIC_MR_LIST, "number of ranges", true },
		{ 0, page + 8, UINT64_MAX, "table below", true },
		{ 0, page + 8, UINT64_MAX << 12 | 3, "beyond the arena", true },
		{ 0, page + 8, 1 << 12 | 0x93, "not in use", true },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		damage(b, &table[i]);
}

/* A table that names itself at each level. */
static void cycles_end(void **state)
{
	struct bed *b = *state;
	uint64_t n = b->tree_root >> 12;
	const struct rnic_header *h = b->o.dev.hdr;
	uint64_t self = n << 12 | RNIC_LEAF_TABLE | RNIC_LEAF_VALID;
	struct insp_device d;
	struct copies c;
	uint64_t root = rnic_mtt_root_make(3, self);

	copies_make(b, &c);
	for (int i = 0; i < RNIC_MTT_FANOUT; i++)
		assert_int_equal(pwrite(c.seg[0].fd, &self, 8,
					(off_t)(h->mtt_off + n * PAGE +
						(uint64_t)i * 8)),
				 8);
	assert_int_equal(pwrite(c.seg[0].fd, &root, 8,
				(off_t)(h->mpt_off + b->tree_slot * 64 + 32)),
			 8);
	device_of(&c, &d);
	assert_true(is_said(&d, "already"));
	assert_int_equal(region_of(&d, b->tree)->pages, 1);
	insp_device_free(&d);
	copies_close(&c);
}

/* One or more words, where it hurts or anywhere. */
static void scribble(const struct copies *c, uint64_t *state)
{
	uint64_t n = 1 + th_random(state) % 6;

	while (n--) {
		uint64_t r = th_random(state), word = sc_nasty(state);
		struct sc_target t = { .fd = c->seg[r % 3].fd };
		off_t in_header =
			16 +
			(off_t)((r >> 8) % (sizeof(struct rnic_header) - 16));

		sc_scan(&t);
		if (r >> 40 & 1)
			sc_anywhere(&t, state);
		else
			sc_write(&(struct sc_target){ .fd = c->seg[0].fd },
				 in_header & ~(off_t)7, &word, sizeof(word));
	}
}

static void contract_L3_any_damage_is_survived(void **state)
{
	struct bed *b = *state;
	unsigned long rounds =
		th_sanitized() && FUZZ_ALL ? FUZZ : th_rounds(FUZZ);
	uint64_t seed = 1, usable = 0, noted = 0;
	struct copies c;

	copies_make(b, &c);
	for (unsigned long i = 0; i < rounds; i++) {
		struct insp_device d;

		scribble(&c, &seed);
		device_of(&c, &d);
		print_both(&d);
		usable += d.usable;
		noted += d.notes.n != 0;
		insp_device_free(&d);
		for (int k = 0; k < 3; k++)
			copy_data(source(b, k), &c.seg[k]);
	}
	copies_close(&c);
	/* it was worth it */
	assert_true(usable > rounds / 2);
	assert_true(noted > rounds / 2);
}

/* Files that are too short for anything. */
static void short_files_are_survived(void **state)
{
	static const uint64_t size[] = { 1, 8, 100, PAGE, 3 * PAGE, 1 << 20 };
	struct bed *b = *state;
	char head[PAGE];

	assert_int_equal(pread(b->o.dev.tables.fd, head, sizeof(head), 0),
			 sizeof(head));
	for (int i = 0; i < 6; i++) {
		struct insp_device d;
		struct copies c;

		for (int k = 0; k < 3; k++)
			assert_int_equal(
				rnic_segment_create(&c.seg[k], "copy", size[i]),
				0);
		assert_true(pwrite(c.seg[0].fd, head,
				   size[i] < PAGE ? size[i] : PAGE, 0) > 0);
		device_of(&c, &d);
		assert_true(d.notes.n > 0);
		print_both(&d);
		insp_device_free(&d);
		copies_close(&c);
	}
}

/* ---- words ---- */

static void numbers_have_units(void **state)
{
	char t[INSP_TEXT];

	(void)state;
	assert_string_equal(insp_text_bytes(t, 0), "0 B");
	assert_string_equal(insp_text_bytes(t, 1023), "1023 B");
	assert_string_equal(insp_text_bytes(t, 1024), "1.0 KiB");
	assert_string_equal(insp_text_bytes(t, 1 << 20), "1.0 MiB");
	assert_string_equal(insp_text_bytes(t, (double)UINT64_MAX), "16.0 EiB");
	assert_string_equal(insp_text_brief_bytes(t, 0), "0");
	assert_string_equal(insp_text_brief_bytes(t, 1023), "1023");
	assert_string_equal(insp_text_brief_bytes(t, 1024), "1.0K");
	assert_string_equal(insp_text_brief_bytes(t, 1024 * 1023.4), "1023K");
	assert_string_equal(insp_text_brief_bytes(t, 1024 * 1023.6), "1.0M");
	assert_string_equal(insp_text_brief_bytes(t, 9.96 * (1 << 20)), "10M");
	assert_string_equal(insp_text_brief_bytes(t, (double)UINT64_MAX),
			    "16E");
	assert_string_equal(insp_text_brief_count(t, 999999), "999999");
	assert_string_equal(insp_text_brief_count(t, 1e6), "1.0M");
	assert_string_equal(insp_text_brief_count(t, 123456789), "123M");
	assert_string_equal(insp_text_count(t, 9999999), "9999999");
	assert_string_equal(insp_text_count(t, 1e7), "10.0M");
	assert_string_equal(insp_text_rights(t, 0), "-");
	assert_string_equal(insp_text_rights(t, RW | RNIC_MR_OFFSET), "RWo");
	assert_string_equal(insp_text_rights(t, RNIC_REMOTE_READ | 1 << 24),
			    "R+0x1000000");
	insp_text_rights(t, UINT64_MAX);
	assert_string_equal(t, "rwRWogeEmvdu+0xfffffffffff8fe00");
	assert_string_equal(insp_place_state(99), "?");
	assert_string_equal(insp_lane_state(RNIC_TX_LIVE), "live");
}

static enum insp_action parse(struct insp_options *o, const char *a,
			      const char *b)
{
	char *argv[] = { "shrimp-inspect", (char *)a, (char *)b, NULL };

	optind = 0;
	return insp_options(b ? 3 : a ? 2 : 1, argv, o);
}

static void options_are_checked(void **state)
{
	static const char *const bad[] = { "--nothing",	  "--key",
					   "--key=",	  "--key=x",
					   "--regions=",  "--regions=-",
					   "--watch=0",	  "--watch=x",
					   "--watch=1e9", "0",
					   "-5",	  "5x",
					   "99999999999", "",
					   "--watch=nan", "--json=1" };
	struct insp_options o;
	int err = dup(2), null = open("/dev/null", O_WRONLY);

	(void)state;
	dup2(null, 2);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (parse(&o, bad[i], NULL) != INSP_WRONG)
			fail_msg("%s is accepted", bad[i]);
	assert_int_equal(parse(&o, "1", "2"), INSP_WRONG);
	/* of which process? */
	assert_int_equal(parse(&o, "--key=1", NULL), INSP_WRONG);
	assert_int_equal(parse(&o, "--all", "--json"), INSP_WRONG);
	dup2(err, 2);
	close(err);
	close(null);
	assert_int_equal(parse(&o, NULL, NULL), INSP_SHOW);
	assert_int_equal(o.want.regions, INSP_REGIONS);
	assert_int_equal(parse(&o, "--help", NULL), INSP_HELP);
	assert_int_equal(parse(&o, "--version", NULL), INSP_VERSION);
	assert_int_equal(parse(&o, "--watch=0.5", "42"), INSP_SHOW);
	assert_int_equal(o.wait_ms, 500);
	assert_int_equal(o.pid, 42);
	assert_int_equal(parse(&o, "--key=0x10", "1"), INSP_SHOW);
	assert_true(o.want.has_key && o.want.key == 16);
	assert_int_equal(parse(&o, "--key=010", "010"), INSP_SHOW);
	assert_true(o.want.key == 10 && o.pid == 10);
	assert_int_equal(parse(&o, "--regions=3", "1"), INSP_SHOW);
	assert_int_equal(o.want.regions, 3);
	assert_int_equal(parse(&o, "--json", NULL), INSP_SHOW);
	assert_true(o.json);
	assert_int_equal(parse(&o, "--all", "1"), INSP_SHOW);
	assert_true(o.want.lanes && o.want.caches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_units),
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(all_is_told),
		cmocka_unit_test(the_process_is_found),
		cmocka_unit_test(reading_takes_no_memory),
		cmocka_unit_test(damaged_headers_are_told),
		cmocka_unit_test(damaged_lanes_are_told),
		cmocka_unit_test(gone_is_no_damage),
		cmocka_unit_test(damaged_tables_are_told),
		cmocka_unit_test(cycles_end),
		cmocka_unit_test(short_files_are_survived),
		cmocka_unit_test(contract_L3_any_damage_is_survived),
		cmocka_unit_test(changes_are_no_damage),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
