/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A writer of JSON, and what is written.
 */
#include "tools/inspect_json.h"

#include <inttypes.h>

#include "shm/mtt.h"
#include "tools/inspect_print.h"

/* ---- the writer ---- */

/* Where we are. */
struct json {
	FILE *f;
	bool more; /* a comma before what comes */
};

static void put_string(struct json *j, const char *s)
{
	fputc('"', j->f);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			fprintf(j->f, "\\%c", c);
		else if (c < 0x20 || c > 0x7e)
			fprintf(j->f, "\\u%04x", c);
		else
			fputc(c, j->f);
	}
	fputc('"', j->f);
}

/* What comes has the name @key; NULL: it is in an array. */
static void put_key(struct json *j, const char *key)
{
	if (j->more)
		fputc(',', j->f);
	j->more = true;
	if (key) {
		put_string(j, key);
		fputc(':', j->f);
	}
}

static void begin(struct json *j, const char *key, char bracket)
{
	put_key(j, key);
	fputc(bracket, j->f);
	j->more = false;
}

static void end(struct json *j, char bracket)
{
	fputc(bracket, j->f);
	j->more = true;
}

static void number(struct json *j, const char *key, uint64_t n)
{
	put_key(j, key);
	fprintf(j->f, "%" PRIu64, n);
}

static void real(struct json *j, const char *key, double n)
{
	put_key(j, key);
	fprintf(j->f, "%.3f", n);
}

static void string(struct json *j, const char *key, const char *s)
{
	put_key(j, key);
	put_string(j, s);
}

static void hex(struct json *j, const char *key, uint64_t n)
{
	put_key(j, key);
	fprintf(j->f, "\"0x%" PRIx64 "\"", n);
}

static void truth(struct json *j, const char *key, bool b)
{
	put_key(j, key);
	fputs(b ? "true" : "false", j->f);
}

/* ---- parts ---- */

static void put_notes(struct json *j, const struct insp_notes *n)
{
	begin(j, "problems", '[');
	for (unsigned int i = 0; i < n->n; i++)
		string(j, NULL, n->text[i]);
	end(j, ']');
	number(j, "problems_not_shown", n->more);
}

static void put_file(struct json *j, const char *key, int fd,
		     const struct rnic_segment *s, uint64_t memory)
{
	begin(j, key, '{');
	put_key(j, "fd");
	fprintf(j->f, "%d", fd);
	number(j, "size", s->size);
	number(j, "memory", memory);
	number(j, "inode", s->ino);
	end(j, '}');
}

static void put_stats(struct json *j, const uint64_t *s)
{
	begin(j, "stats", '{');
	for (const struct insp_counter *c = insp_counters; c->name; c++) {
		if (!c->parts) {
			number(j, c->name, s[c->at]);
			continue;
		}
		begin(j, c->name, '{');
		for (unsigned int i = 0; i < c->n; i++)
			number(j, c->parts[i], s[c->at + i]);
		end(j, '}');
	}
	end(j, '}');
}

static void put_place(struct json *j, const struct insp_place *p)
{
	begin(j, NULL, '{');
	number(j, "place", p->index);
	string(j, "state", p->readable ? insp_place_state(p->state) : "?");
	number(j, "generation", p->gen);
	number(j, "sleeping", p->sleeping);
	number(j, "event_mask", p->events);
	hex(j, "bell", p->bell);
	hex(j, "return_bell", p->ret_bell);
	number(j, "lane_bells", p->bells);
	number(j, "lanes", p->lanes);
	number(j, "lanes_high", p->lane_hi);
	number(j, "pool_memory", p->pool);
	number(j, "heap_memory", p->heap);
	put_stats(j, p->stats);
	end(j, '}');
}

static void put_mpt(struct json *j, const struct insp_device *d)
{
	const struct insp_mpt *m = &d->mpt;

	begin(j, "mpt", '{');
	number(j, "slots", m->slots);
	number(j, "used", m->used);
	number(j, "live", m->live);
	number(j, "invalid_or_resting", m->ended);
	number(j, "fresh", m->fresh);
	number(j, "changing", m->torn);
	number(j, "registered_bytes", m->bytes);
	number(j, "without_end", m->whole);
	number(j, "windows", m->window);
	number(j, "user_keys", m->user);
	number(j, "found", m->found);
	end(j, '}');
	begin(j, "user_key_index", '{');
	truth(j, "present", d->index.there);
	number(j, "table", d->index.which);
	number(j, "shift", d->index.shift);
	number(j, "entries", d->index.keys);
	number(j, "tombstones", d->index.deleted);
	truth(j, "changing", d->index.torn);
	end(j, '}');
	begin(j, "mtt", '{');
	number(j, "pages", d->mtt.pages);
	number(j, "written", d->mtt.memory);
	number(j, "in_translations", d->mtt.trees);
	end(j, '}');
	begin(j, "paging", '{');
	for (int i = 0; i < INSP_PAGING; i++)
		number(j, insp_paging_name[i], d->paging[i]);
	end(j, '}');
}

static void put_region(struct json *j, const struct insp_region *r)
{
	static const char *const leaf[4] = { "contiguous", "4k", "2m", "1g" };
	char text[INSP_TEXT];

	begin(j, NULL, '{');
	number(j, "slot", r->slot);
	hex(j, "key", r->key);
	hex(j, "va", r->va);
	number(j, "length", r->length);
	hex(j, "rights", r->rights);
	string(j, "rights_text", insp_text_rights(text, r->rights));
	string(j, "kind", insp_text_kind(text, r));
	number(j, "ranges", r->ranges);
	truth(j, "user_key", r->user);
	hex(j, "parent", r->parent);
	number(j, "depth", rnic_mtt_root_depth(r->mtt));
	number(j, "mtt_pages", r->pages);
	begin(j, "leaves", '{');
	for (int i = 0; i < 4; i++)
		number(j, leaf[i], r->leaves[i]);
	end(j, '}');
	number(j, "version", r->version);
	number(j, "binding", r->binding);
	truth(j, "changing", r->torn);
	end(j, '}');
}

static void put_space(struct json *j, const struct insp_space *s)
{
	begin(j, NULL, '{');
	number(j, "file", s->number);
	number(j, "generation", s->gen);
	number(j, "fd", s->fd);
	number(j, "inode", s->ino);
	number(j, "size", s->size);
	end(j, '}');
}

static void put_cache(struct json *j, const char *key,
		      const struct insp_cache *c)
{
	begin(j, key, '{');
	if (!key) {
		number(j, "place", c->place);
		number(j, "context", c->ctx);
		string(j, "policy", insp_cache_policy(c->policy));
		number(j, "ways", c->ways);
		number(j, "miss_ns", c->miss_ns);
	}
	number(j, "hits", c->hits);
	number(j, "misses", c->misses);
	number(j, "evictions", c->evictions);
	number(j, "invalidations", c->invalidations);
	number(j, "used", c->used);
	number(j, "entries", c->entries);
	end(j, '}');
}

static void put_readers(struct json *j, const struct insp_lane *l)
{
	begin(j, "readers", '[');
	for (unsigned int c = 0; c < RNIC_CTX_PER_EP; c++) {
		begin(j, NULL, '{');
		number(j, "sequence", l->seq[c]);
		truth(j, "inside", l->seq[c] & 1);
		number(j, "announced", l->announced[c]);
		end(j, '}');
	}
	end(j, ']');
}

static void put_lane(struct json *j, const struct insp_lane *l)
{
	begin(j, NULL, '{');
	number(j, "place", l->place);
	number(j, "lane", l->index);
	number(j, "pid", l->pid);
	truth(j, "dead", l->dead);
	put_key(j, "sender_place");
	fprintf(j->f, "%d", l->named ? (int)l->sender : -1);
	string(j, "state", insp_lane_state(l->state));
	truth(j, "hot", l->hot);
	truth(j, "sender_parked", l->parked);
	truth(j, "over_budget", l->over);
	truth(j, "pool_mapped", l->mapped);
	truth(j, "receiver_closed", l->closed);
	number(j, "written", (uint32_t)(l->taken + l->waiting));
	number(j, "consumed", l->taken);
	number(j, "waiting", l->waiting);
	number(j, "ring_bytes_consumed", l->bytes_taken);
	number(j, "answers_written", l->answers);
	number(j, "answers_taken", l->answers_taken);
	put_readers(j, l);
	truth(j, "changing", l->torn);
	end(j, '}');
}

static void put_lists(struct json *j, const struct insp_device *d)
{
	begin(j, "endpoints", '[');
	for (unsigned int i = 0; i < d->nplaces; i++)
		put_place(j, &d->place[i]);
	end(j, ']');
	begin(j, "regions", '[');
	for (unsigned int i = 0; i < d->nregions; i++)
		put_region(j, &d->region[i]);
	end(j, ']');
	begin(j, "spaces", '[');
	for (unsigned int i = 0; i < d->nspaces; i++)
		put_space(j, &d->space[i]);
	end(j, ']');
	begin(j, "key_caches", '[');
	for (unsigned int i = 0; i < d->ncaches; i++)
		put_cache(j, NULL, &d->cache[i]);
	end(j, ']');
	begin(j, "lanes", '[');
	for (unsigned int i = 0; i < d->nlanes; i++)
		put_lane(j, &d->lane[i]);
	end(j, ']');
}

/* ---- sums, rates, all of it ---- */

/* Sums of counters that lists and rates show. */
static const struct {
	const char *name;
	unsigned int at, n;
} sum[] = {
	{ "sent_messages", INSP_TX_MSGS, INSP_PATHS },
	{ "sent_bytes", INSP_TX_BYTES, INSP_PATHS },
	{ "received_messages", INSP_RX_MSGS, INSP_PATHS },
	{ "received_bytes", INSP_RX_BYTES, INSP_PATHS },
	{ "rma_operations", INSP_RMA_MSGS, INSP_REACHES },
	{ "rma_bytes", INSP_RMA_BYTES, INSP_REACHES },
	{ "atomics", INSP_ATOMICS, INSP_REACHES },
};
enum { SUMS = sizeof(sum) / sizeof(*sum) };

static void put_rates(struct json *j, pid_t pid, const struct insp_device *d,
		      const struct insp_before *b)
{
	const struct insp_device *was = insp_before(b, pid, d);

	if (!was)
		return;
	begin(j, "per_second", '{');
	for (int i = 0; i < SUMS; i++)
		real(j, sum[i].name,
		     insp_rate(b, insp_sum(was->stats, sum[i].at, sum[i].n),
			       insp_sum(d->stats, sum[i].at, sum[i].n)));
	real(j, "key_cache_hits",
	     insp_rate(b, was->caches.hits, d->caches.hits));
	real(j, "key_cache_misses",
	     insp_rate(b, was->caches.misses, d->caches.misses));
	end(j, '}');
}

static void put_header(struct json *j, const struct insp_device *d)
{
	const struct rnic_header *h = &d->hdr;

	hex(j, "incarnation", h->incarnation);
	number(j, "version", h->version);
	hex(j, "features", h->features);
	truth(j, "membarrier", h->features & RNIC_FEAT_MEMBARRIER);
	number(j, "owner_pid", h->pid);
	number(j, "lane_lines", h->lane_lines);
	number(j, "ring_bytes", h->ring_bytes);
	number(j, "pool_bytes", h->pool_bytes);
	number(j, "heap_bytes", h->heap_bytes);
	number(j, "key_cache_stride", h->cache_stride);
	put_file(j, "tables", d->tables_fd, &d->tables, d->memory[0]);
	put_file(j, "mailbox", d->mailbox_fd, &d->mailbox, d->memory[1]);
	put_file(j, "arena", d->arena_fd, &d->arena, d->memory[2]);
	number(j, "user_memory", d->user_memory);
}

static void put_device(struct json *j, pid_t pid, const struct insp_device *d,
		       const struct insp_before *b)
{
	begin(j, NULL, '{');
	truth(j, "usable", d->usable);
	put_notes(j, &d->notes);
	if (d->usable) {
		put_header(j, d);
		number(j, "endpoints_open", d->open);
		number(j, "lanes_claimed", d->claimed);
		put_stats(j, d->stats);
		put_rates(j, pid, d, b);
		put_mpt(j, d);
		put_cache(j, "key_cache_sums", &d->caches);
		put_lists(j, d);
	} else {
		put_file(j, "tables", d->tables_fd, &d->tables, d->memory[0]);
	}
	end(j, '}');
}

static void put_process_head(struct json *j, const struct insp_process *p)
{
	number(j, "pid", (uint64_t)p->pid);
	string(j, "command", p->command);
	number(j, "uid", p->uid);
	number(j, "attached", p->attached);
	put_notes(j, &p->notes);
}

void insp_json_process(FILE *f, const struct insp_process *p,
		       const struct insp_before *b)
{
	struct json j = { .f = f };

	begin(&j, NULL, '{');
	put_process_head(&j, p);
	if (b->list)
		real(&j, "seconds", b->seconds);
	begin(&j, "devices", '[');
	for (unsigned int i = 0; i < p->ndevices; i++)
		put_device(&j, p->pid, &p->device[i], b);
	end(&j, ']');
	end(&j, '}');
	fputc('\n', f);
}

static void put_summary(struct json *j, const struct insp_process *p,
			const struct insp_before *b)
{
	uint64_t lanes = 0, open = 0, live = 0, bytes = 0, count[SUMS] = { 0 };

	for (unsigned int i = 0; i < p->ndevices; i++) {
		const struct insp_device *d = &p->device[i];

		open += d->open;
		lanes += d->claimed;
		live += d->mpt.live;
		bytes += d->mpt.bytes;
		for (int k = 0; k < SUMS; k++)
			count[k] += insp_sum(d->stats, sum[k].at, sum[k].n);
	}
	number(j, "endpoints", open);
	number(j, "lanes", lanes);
	number(j, "regions", live);
	number(j, "registered_bytes", bytes);
	for (int k = 0; k < SUMS; k++)
		number(j, sum[k].name, count[k]);
	begin(j, "devices", '[');
	for (unsigned int i = 0; i < p->ndevices; i++) {
		begin(j, NULL, '{');
		truth(j, "usable", p->device[i].usable);
		hex(j, "incarnation", p->device[i].hdr.incarnation);
		put_notes(j, &p->device[i].notes);
		put_rates(j, p->pid, &p->device[i], b);
		end(j, '}');
	}
	end(j, ']');
}

void insp_json_list(FILE *f, const struct insp_list *l,
		    const struct insp_before *b)
{
	struct json j = { .f = f };

	begin(&j, NULL, '{');
	if (b->list)
		real(&j, "seconds", b->seconds);
	begin(&j, "processes", '[');
	for (unsigned int i = 0; i < l->n; i++) {
		begin(&j, NULL, '{');
		put_process_head(&j, &l->process[i]);
		put_summary(&j, &l->process[i], b);
		end(&j, '}');
	}
	end(&j, ']');
	end(&j, '}');
	fputc('\n', f);
}
