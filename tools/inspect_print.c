/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The tables.
 */
#include "tools/inspect_print.h"

#include <inttypes.h>

#include "shm/mtt.h"

/* ---- parts ---- */

static void print_notes(FILE *f, const struct insp_notes *n)
{
	for (unsigned int i = 0; i < n->n; i++)
		fprintf(f, "  PROBLEM  %s\n", n->text[i]);
	if (n->more)
		fprintf(f, "  PROBLEM  and %u more\n", n->more);
}

static void print_file(FILE *f, const char *name, int fd,
		       const struct rnic_segment *s, uint64_t memory)
{
	char size[INSP_TEXT], mem[INSP_TEXT];

	fprintf(f, "  %-8s %4d %11s %11s", name, fd,
		insp_text_bytes(size, (double)s->size),
		insp_text_bytes(mem, (double)memory));
}

static void print_files(FILE *f, const struct insp_device *d)
{
	char user[INSP_TEXT];

	fputs("\n  file       fd        size      memory\n", f);
	print_file(f, "tables", d->tables_fd, &d->tables, d->memory[0]);
	if (!d->usable) {
		fputc('\n', f);
		return;
	}
	fprintf(f, "  for %" PRIu64 " regions, %" PRIu64 " MTT pages\n",
		d->mpt.slots, d->mtt.pages);
	print_file(f, "mailbox", d->mailbox_fd, &d->mailbox, d->memory[1]);
	fprintf(f, "  for %d endpoints of %d lanes\n", RNIC_EP_MAX,
		RNIC_LANE_MAX);
	print_file(f, "arena", d->arena_fd, &d->arena, d->memory[2]);
	fprintf(f, "  %s of it for users\n",
		insp_text_bytes(user, (double)d->user_memory));
}

static const char *events_text(uint32_t events)
{
	static const char *const text[] = { "-", "read", "write", "both" };

	return text[events & (RNIC_EVENT_READ | RNIC_EVENT_WRITE)];
}

static void print_place(FILE *f, const struct insp_place *p)
{
	uint64_t tx = insp_sum(p->stats, INSP_TX_MSGS, INSP_PATHS);
	uint64_t rx = insp_sum(p->stats, INSP_RX_MSGS, INSP_PATHS);
	char t[4][INSP_TEXT];

	fprintf(f, "  %5u %-6s   %08" PRIx32 " %6s %5u %5u %6s", p->index,
		p->readable ? insp_place_state(p->state) : "?", p->gen,
		p->sleeping ? "yes" : "no", p->lanes, p->bells,
		events_text(p->events));
	fprintf(f, " %6s %6s %6s %6s\n",
		insp_text_brief_count(t[0], (double)tx),
		insp_text_brief_count(t[1], (double)rx),
		insp_text_brief_bytes(t[2], (double)p->pool),
		insp_text_brief_bytes(t[3], (double)p->heap));
}

static void print_places(FILE *f, const struct insp_device *d)
{
	fprintf(f, "\n  endpoints: %u open, %u lanes claimed by senders\n",
		d->open, d->claimed);
	if (d->nplaces)
		fputs("  place state  generation asleep lanes bells events"
		      "   sent   recv   pool   heap\n",
		      f);
	for (unsigned int i = 0; i < d->nplaces; i++)
		print_place(f, &d->place[i]);
}

/* A row of counts and bytes, twice; the second may be counts alone. */
static void print_ways(FILE *f, const char *name, const uint64_t n[4],
		       bool bytes)
{
	char text[4][INSP_TEXT];

	fprintf(f, "  %-10s %12s %12s %12s %12s\n", name,
		insp_text_count(text[0], (double)n[0]),
		insp_text_bytes(text[1], (double)n[1]),
		insp_text_count(text[2], (double)n[2]),
		bytes ? insp_text_bytes(text[3], (double)n[3]) : "");
}

static void print_messages(FILE *f, const uint64_t *s)
{
	uint64_t sum[4] = { 0 };

	fputs("\n  messages           sent        bytes     received"
	      "        bytes\n",
	      f);
	for (unsigned int i = 0; i < INSP_PATHS; i++) {
		uint64_t n[4] = { s[INSP_TX_MSGS + i], s[INSP_TX_BYTES + i],
				  s[INSP_RX_MSGS + i], s[INSP_RX_BYTES + i] };

		for (int k = 0; k < 4; k++)
			sum[k] += n[k];
		if (n[0] || n[1] || n[2] || n[3])
			print_ways(f, insp_path_name[i], n, true);
	}
	print_ways(f, "all", sum, true);
}

static void print_onesided(FILE *f, const uint64_t *s)
{
	bool any = false;

	for (unsigned int i = 0; i < INSP_REACHES; i++) {
		uint64_t n[4] = { s[INSP_RMA_MSGS + i], s[INSP_RMA_BYTES + i],
				  s[INSP_ATOMICS + i], 0 };

		if (!n[0] && !n[1] && !n[2])
			continue;
		if (!any)
			fputs("\n  one-sided           RMA        bytes"
			      "      atomics\n",
			      f);
		any = true;
		print_ways(f, insp_reach_name[i], n, false);
	}
}

/* The other counters, those that have counted. */
static void print_others(FILE *f, const uint64_t *s)
{
	int column = 0;

	for (const struct insp_counter *c = insp_counters; c->name; c++) {
		if (c->parts || !s[c->at])
			continue;
		if (!column || column > 70)
			column = fprintf(f, "\n  ") - 1;
		else
			column += fprintf(f, ", ");
		column += fprintf(f, "%s %" PRIu64, c->name, s[c->at]);
	}
	if (column)
		fputc('\n', f);
}

static void print_rates(FILE *f, const struct insp_device *d,
			const struct insp_device *was,
			const struct insp_before *b)
{
	static const struct {
		const char *name;
		unsigned int at, n;
		bool bytes;
	} row[] = {
		{ "messages sent", INSP_TX_MSGS, INSP_PATHS, false },
		{ "bytes sent", INSP_TX_BYTES, INSP_PATHS, true },
		{ "messages received", INSP_RX_MSGS, INSP_PATHS, false },
		{ "bytes received", INSP_RX_BYTES, INSP_PATHS, true },
		{ "RMA operations", INSP_RMA_MSGS, INSP_REACHES, false },
		{ "bytes by RMA", INSP_RMA_BYTES, INSP_REACHES, true },
		{ "atomics", INSP_ATOMICS, INSP_REACHES, false },
	};
	char t[INSP_TEXT];

	fprintf(f, "\n  per second, over %.1f s\n", b->seconds);
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		double n =
			insp_rate(b, insp_sum(was->stats, row[i].at, row[i].n),
				  insp_sum(d->stats, row[i].at, row[i].n));

		fprintf(f, "  %-18s %12s\n", row[i].name,
			row[i].bytes ? insp_text_bytes(t, n)
				     : insp_text_count(t, n));
	}
	fprintf(f, "  %-18s %12s\n", "key cache hits",
		insp_text_count(
			t, insp_rate(b, was->caches.hits, d->caches.hits)));
	fprintf(f, "  %-18s %12s\n", "key cache misses",
		insp_text_count(
			t, insp_rate(b, was->caches.misses, d->caches.misses)));
}

/* ---- registration ---- */

/* @wide: also what few ask for, and has no room in 80 columns. */
static void print_region(FILE *f, const struct insp_region *r, bool wide)
{
	char length[INSP_TEXT], rights[INSP_TEXT], kind[INSP_TEXT];

	fprintf(f, "  %7" PRIu32 " %16" PRIx64 " %12" PRIx64 " %6s %-8s",
		r->slot, r->key, r->va,
		insp_text_brief_bytes(length, (double)r->length),
		insp_text_rights(rights, r->rights));
	fprintf(f, " %-12s %5u %5" PRIu64, insp_text_kind(kind, r),
		rnic_mtt_root_depth(r->mtt), r->pages);
	if (wide)
		fprintf(f, " %7" PRIu64 " %7" PRIu64, r->version, r->binding);
	fputs(r->torn ? " ~\n" : "\n", f);
}

static void print_regions(FILE *f, const struct insp_device *d,
			  const struct insp_want *w)
{
	bool torn = false, wide = w->has_key || w->regions == UINT64_MAX;

	if (d->nregions)
		fprintf(f,
			"     slot        key (hex)     va (hex) length rights"
			"   kind         depth pages%s\n",
			wide ? " version binding" : "");
	for (unsigned int i = 0; i < d->nregions; i++) {
		torn |= d->region[i].torn;
		print_region(f, &d->region[i], wide);
	}
	if (w->has_key && !d->nregions)
		fprintf(f, "  no region has key %#" PRIx64 "\n", w->key);
	else if (d->mpt.found > d->nregions)
		fprintf(f, "  and %" PRIu64 " more (--regions)\n",
			d->mpt.found - d->nregions);
	if (d->nregions)
		fprintf(f, "  %s\n", insp_rights_legend);
	if (torn)
		fputs("  ~ changed while it was read\n", f);
}

/* Nothing if nothing of the kind was ever there. */
static void print_paging(FILE *f, const struct insp_device *d)
{
	const char *before = "  paging:";

	for (int i = 0; i < INSP_PAGING; i++) {
		if (!d->paging[i])
			continue;
		fprintf(f, "%s %" PRIu64 " %s", before, d->paging[i],
			insp_paging_name[i]);
		before = ",";
	}
	if (*before == ',')
		fputs("\n", f);
}

static void print_mpt(FILE *f, const struct insp_device *d)
{
	const struct insp_mpt *m = &d->mpt;
	char bytes[INSP_TEXT];

	fprintf(f,
		"\n  regions: %" PRIu64 " live, %s registered; %" PRIu64
		" without end, %" PRIu64 " windows, %" PRIu64 " by user key\n",
		m->live, insp_text_bytes(bytes, (double)m->bytes), m->whole,
		m->window, m->user);
	fprintf(f,
		"  slots: %" PRIu64 " used: %" PRIu64 " live, %" PRIu64
		" invalid or resting, %" PRIu64 " fresh%s\n",
		m->used, m->live, m->ended, m->fresh,
		m->torn ? " (changing)" : "");
	if (d->index.there)
		fprintf(f,
			"  user keys: %" PRIu64 ", %" PRIu64
			" deleted, in table %u of %" PRIu64 "%s\n",
			d->index.keys, d->index.deleted, d->index.which,
			UINT64_C(1) << d->index.shift,
			d->index.torn ? " (changing)" : "");
	fprintf(f,
		"  MTT pages: %" PRIu64 " in translations, %" PRIu64
		" ever written\n",
		d->mtt.trees, d->mtt.memory);
	print_paging(f, d);
	for (unsigned int i = 0; i < d->nspaces; i++)
		fprintf(f,
			"  file %u: descriptor %" PRIu64 ", inode %" PRIu64
			", %s\n",
			d->space[i].number, d->space[i].fd, d->space[i].ino,
			insp_text_bytes(bytes, (double)d->space[i].size));
}

/* ---- key caches, lanes ---- */

static void print_cache(FILE *f, const struct insp_cache *c, bool all)
{
	uint64_t looks = c->hits + c->misses;
	char t[4][INSP_TEXT];

	if (all)
		fputs("    all       ", f);
	else
		fprintf(f, "  %5u %-6s", c->place, c->ctx ? "agent" : "calls");
	fprintf(f, " %6s %6s %6.2f %7s %7s %7" PRIu64 " %7" PRIu64,
		insp_text_brief_count(t[0], (double)c->hits),
		insp_text_brief_count(t[1], (double)c->misses),
		looks ? 100 * (double)c->hits / (double)looks : 0,
		insp_text_brief_count(t[2], (double)c->evictions),
		insp_text_brief_count(t[3], (double)c->invalidations), c->used,
		c->entries);
	if (!all)
		fprintf(f, " %4" PRIu64 " %s", c->ways,
			insp_cache_policy(c->policy));
	fputc('\n', f);
}

static void print_caches(FILE *f, const struct insp_device *d)
{
	if (!d->caches.hits && !d->caches.misses && !d->caches.entries)
		return;
	fprintf(f,
		"\n  key caches     hits misses  hit %% evicted   stale"
		"    used      of%s\n",
		d->ncaches ? " ways policy" : "");
	for (unsigned int i = 0; i < d->ncaches; i++)
		print_cache(f, &d->cache[i], false);
	print_cache(f, &d->caches, true);
}

static void print_lane(FILE *f, const struct insp_lane *l)
{
	char from[INSP_TEXT] = "?", bytes[INSP_TEXT];

	if (l->named)
		snprintf(from, sizeof(from), "%u", l->sender);
	fprintf(f, "  %5u %4u %7" PRIu32 " %4s %-6s %-6s", l->place, l->index,
		l->pid, from, l->dead ? "dead" : insp_lane_state(l->state),
		l->hot ? "hot" : "parked");
	fprintf(f,
		" %9" PRIu32 " %4" PRIu32 " %6s %7" PRIu32 " %4" PRIu32
		" %s%s%s%s%s\n",
		l->taken + l->waiting, l->waiting,
		insp_text_brief_bytes(bytes, (double)l->bytes_taken),
		l->answers, l->answers - l->answers_taken, l->parked ? "p" : "",
		l->over ? "o" : "", l->mapped ? "m" : "", l->closed ? "c" : "",
		l->torn ? "~" : "");
}

static void print_readers(FILE *f, const struct insp_device *d)
{
	fputs("\n  reader slots\n  place  lane      pid context     sequence"
	      " inside announced\n",
	      f);
	for (unsigned int i = 0; i < d->nlanes; i++)
		for (unsigned int c = 0; c < RNIC_CTX_PER_EP; c++) {
			const struct insp_lane *l = &d->lane[i];

			if (!l->seq[c] && !l->announced[c])
				continue;
			fprintf(f,
				"  %5u %5u %8" PRIu32 " %-7s %12" PRIu64
				" %6s %5u/%d\n",
				l->place, l->index, l->pid,
				c ? "agent" : "calls", l->seq[c],
				l->seq[c] & 1 ? "yes" : "no", l->announced[c],
				RNIC_FILTER_BITS);
		}
}

static void print_lanes(FILE *f, const struct insp_device *d)
{
	if (!d->nlanes)
		return;
	fputs("\n  lanes\n  place lane     pid from state  poll     "
	      "written wait  bytes answers wait flags\n",
	      f);
	for (unsigned int i = 0; i < d->nlanes; i++)
		print_lane(f, &d->lane[i]);
	fputs("  from: place of the sender. flags: p sender wants a bell for "
	      "answers, o over\n  budget, m pool mapped, c receiver closed, "
	      "~ changed while it was read\n",
	      f);
	print_readers(f, d);
}

/* ---- all of it ---- */

static void print_device(FILE *f, const struct insp_device *d,
			 const struct insp_want *w)
{
	if (!d->usable) {
		fprintf(f, "\ndevice: descriptor %d\n", d->tables_fd);
		print_notes(f, &d->notes);
		print_files(f, d);
		return;
	}
	fprintf(f,
		"\ndevice %016" PRIx64 ", layout %" PRIu32
		", features %#" PRIx32 "%s\n",
		d->hdr.incarnation, d->hdr.version, d->hdr.features,
		d->hdr.features & RNIC_FEAT_MEMBARRIER ? " (membarrier)" : "");
	print_notes(f, &d->notes);
	print_files(f, d);
	print_places(f, d);
	print_messages(f, d->stats);
	print_onesided(f, d->stats);
	print_others(f, d->stats);
	print_mpt(f, d);
	print_regions(f, d, w);
	print_caches(f, d);
	print_lanes(f, d);
}

void insp_print_process(FILE *f, const struct insp_process *p,
			const struct insp_want *w, const struct insp_before *b)
{
	fprintf(f, "process %d (%s), user %u: %u device%s", p->pid, p->command,
		p->uid, p->ndevices, p->ndevices == 1 ? "" : "s");
	if (p->attached)
		fprintf(f, "; has the tables of %u others open", p->attached);
	fputc('\n', f);
	print_notes(f, &p->notes);
	for (unsigned int i = 0; i < p->ndevices; i++) {
		const struct insp_device *was =
			insp_before(b, p->pid, &p->device[i]);

		print_device(f, &p->device[i], w);
		if (was)
			print_rates(f, &p->device[i], was, b);
	}
}

/* ---- the list ---- */

/* Sums over the devices of a process; or rates, of what counts. */
struct sums {
	uint64_t open, lanes, regions, bytes; /* as they are */
	double tx, tx_bytes, rx, rx_bytes;    /* counters */
};

static void sums_add(struct sums *t, const struct insp_process *p,
		     const struct insp_device *d, const struct insp_before *b)
{
	static const unsigned int at[4] = { INSP_TX_MSGS, INSP_TX_BYTES,
					    INSP_RX_MSGS, INSP_RX_BYTES };
	const struct insp_device *was = insp_before(b, p->pid, d);
	double n[4] = { 0 };

	for (int i = 0; i < 4; i++) {
		uint64_t now = insp_sum(d->stats, at[i], INSP_PATHS);

		if (was)
			n[i] = insp_rate(
				b, insp_sum(was->stats, at[i], INSP_PATHS),
				now);
		else if (!b->list)
			n[i] = (double)now;
	}
	t->open += d->open;
	t->lanes += d->claimed;
	t->regions += d->mpt.live;
	t->bytes += d->mpt.bytes;
	t->tx += n[0];
	t->tx_bytes += n[1];
	t->rx += n[2];
	t->rx_bytes += n[3];
}

static void print_row(FILE *f, const struct insp_process *p,
		      const struct insp_before *b)
{
	struct sums t = { 0 };
	char x[5][INSP_TEXT];

	for (unsigned int i = 0; i < p->ndevices; i++)
		sums_add(&t, p, &p->device[i], b);
	fprintf(f, "%7d %-12.12s %3u %4" PRIu64 " %5" PRIu64 " %7" PRIu64,
		p->pid, p->command, p->ndevices, t.open, t.lanes, t.regions);
	fprintf(f, " %6s %6s %7s %6s %7s\n",
		insp_text_brief_bytes(x[0], (double)t.bytes),
		insp_text_brief_count(x[1], t.tx),
		insp_text_brief_bytes(x[2], t.tx_bytes),
		insp_text_brief_count(x[3], t.rx),
		insp_text_brief_bytes(x[4], t.rx_bytes));
	print_notes(f, &p->notes);
	for (unsigned int i = 0; i < p->ndevices; i++)
		print_notes(f, &p->device[i].notes);
}

void insp_print_list(FILE *f, const struct insp_list *l,
		     const struct insp_before *b)
{
	fprintf(f, "    PID COMMAND      DEV ENDP LANES REGIONS  BYTES %s\n",
		b->list ? "SENT/S BYTES/S RECV/S BYTES/S"
			: "  SENT   BYTES   RECV   BYTES");
	for (unsigned int i = 0; i < l->n; i++)
		print_row(f, &l->process[i], b);
}
