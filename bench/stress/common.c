/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Chance, time, the log, and what is wrong: what all of a process uses.
 */
#include "bench/stress/inside.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/clock.h"
#include "bench/stress/fi.h"

enum {
	NS_PER_S = 1000000000,
	SLOW_FACTOR = 4,   /* builds with sanitizers take longer */
	SPINS = 256,	   /* polls before it sleeps in between */
	SPINS_LONG = 2048, /* and before it sleeps longer */
	NAP_US = 20,
	NAP_LONG_US = 200,
	LENGTH_MOST = 4 << 20,
	BREAK_EVERY = 16, /* --break: one of so many streams */
};

const char *stress_setting(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

bool stress_is_shrimp(const struct stress *s)
{
	return !strcmp(s->o->provider, "shrimp");
}

bool stress_threads_may(const struct stress *s)
{
	return s->main.threads;
}

bool stress_has_rma(const struct stress *s)
{
	return s->main.rma;
}

bool stress_long(const struct stress *s)
{
	return s->o->large;
}

bool stress_slow(const struct stress *s)
{
	return s->o->slow;
}

int stress_group_size(const struct stress *s)
{
	return s->size;
}

int stress_rank(const struct stress *s)
{
	return s->rank;
}

bool stress_counters(const struct stress *s, struct fi_shrimp_stats *st)
{
	struct fid *domain = &s->main.domain->fid;
	void *ops;

	*st = (struct fi_shrimp_stats){ .size = sizeof(*st) };
	if (!s->main.cache ||
	    fi_open_ops(domain, FI_SHRIMP_OPS_STATS, 0, &ops, NULL))
		return false;
	return !((struct fi_ops_shrimp_stats *)ops)->read(domain, st);
}

/* ---- time ---- */

uint64_t stress_deadline(const struct stress *s, unsigned int seconds)
{
	uint64_t ns = (uint64_t)seconds * NS_PER_S;

	return bench_clock_ns() + (s->o->slow ? ns * SLOW_FACTOR : ns);
}

bool stress_late(uint64_t deadline)
{
	return bench_clock_ns() > deadline;
}

static void side_relax(struct stress *s, struct stress_side *e)
{
	int ret = e->cq ? stress_side_poll(e) : 0;

	if (ret)
		stress_wrong(s, "fi_cq_read: %s", stress_code(ret));
}

void stress_relax(struct stress *s, unsigned int *polls)
{
	side_relax(s, &s->main);
	side_relax(s, &s->other);
	if (++*polls > SPINS) /* a yield would wait for all who spin */
		usleep(*polls > SPINS_LONG ? NAP_LONG_US : NAP_US);
}

void stress_progress(struct stress *s, unsigned int us)
{
	uint64_t until = bench_clock_ns() + us * 1000ull;
	unsigned int polls = 0;

	while (!stress_late(until))
		stress_relax(s, &polls);
}

/* ---- chance ---- */

uint64_t stress_random(struct stress *s, uint64_t n)
{
	return stress_draw(&s->chance) % n;
}

size_t stress_length(struct stress *s, size_t most)
{
	size_t top = most < LENGTH_MOST ? most : LENGTH_MOST, len;
	unsigned int bits = 0;

	while (bits < 22 && (size_t)1 << bits < top)
		bits++;
	len = (size_t)1 << stress_random(s, bits + 1);
	if (stress_random(s, 2))
		len += stress_random(s, len);
	else
		len += stress_random(s, 17) - 8;
	return len - 1 < top ? len : 1 + stress_random(s, top);
}

size_t stress_pages(struct stress *s, size_t most)
{
	size_t len = stress_length(s, most);

	return (len + STRESS_PAGE - 1) / STRESS_PAGE * STRESS_PAGE;
}

/* ---- telling ---- */

static void line_add(struct stress *s, const char *text)
{
	struct stress_log *log = s->log;
	char *line = log->line[log->lines % STRESS_LINES];

	snprintf(line, STRESS_LINE, "%u %.100s", (unsigned int)s->number, text);
	log->lines++;
}

/* --trace: each line is one write to a file opened for appending. */
static void line_trace(struct stress *s, const char *text)
{
	char line[STRESS_LINE + 80];
	int n;

	if (s->trace < 0)
		return;
	n = snprintf(line, sizeof(line), "# %lu %s process %d: %s\n",
		     (unsigned long)s->number, s->of ? s->of->name : "-",
		     s->rank, text);
	if (write(s->trace, line, (size_t)n) != n)
		s->trace = -1;
}

void stress_say(struct stress *s, const char *fmt, ...)
{
	char text[STRESS_LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	line_add(s, text);
	line_trace(s, text);
}

int stress_wrong(struct stress *s, const char *fmt, ...)
{
	va_list ap;

	if (s->status == STRESS_FAILED)
		return STRESS_FAILED;
	va_start(ap, fmt);
	vsnprintf(s->text, sizeof(s->text), fmt, ap);
	va_end(ap);
	s->status = STRESS_FAILED;
	stress_say(s, "WRONG: %.100s", s->text);
	return STRESS_FAILED;
}

int stress_skip(struct stress *s, const char *fmt, ...)
{
	va_list ap;

	if (s->status == STRESS_FAILED)
		return STRESS_SKIP;
	va_start(ap, fmt);
	vsnprintf(s->text, sizeof(s->text), fmt, ap);
	va_end(ap);
	s->status = STRESS_SKIP;
	return STRESS_SKIP;
}

void stress_refused(struct stress *s)
{
	s->count.refused++;
}

/* ---- bytes ---- */

struct stress_pat stress_stream(struct stress *s)
{
	return (struct stress_pat){ stress_tag(s->number, ++s->streams), 0 };
}

/* Whether what --break says is to be done to this stream. */
static bool broken(const struct stress *s, struct stress_pat pat,
		   enum stress_break how)
{
	return s->o->broken == how && pat.tag &&
	       stress_mix(pat.tag ^ s->o->seed) % BREAK_EVERY == 0;
}

void stress_put(struct stress *s, void *p, size_t len, struct stress_pat pat)
{
	if (broken(s, pat, STRESS_BREAK_SKIP))
		return;
	if (broken(s, pat, STRESS_BREAK_LATE))
		stress_write((unsigned char *)p + 1, len - 1, pat);
	else
		stress_write(p, len, pat);
}

struct stress_pat stress_fill(struct stress *s, void *p, size_t len)
{
	struct stress_pat pat = stress_stream(s);

	stress_put(s, p, len, pat);
	return pat;
}

int stress_verify(struct stress *s, const void *p, size_t len,
		  struct stress_pat pat, const char *what)
{
	char text[STRESS_TEXT];
	struct stress_diff d;

	s->count.bytes += len;
	if (broken(s, pat, STRESS_BREAK_OLD))
		pat.tag--;
	if (!stress_diff(p, len, pat, &d))
		return 0;
	return stress_wrong(s, "%s",
			    stress_explain(text, what, p, len, pat, &d));
}
