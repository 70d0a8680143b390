/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What shrimp-bench prints.
 */
#include "bench/sb_out.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 32 }; /* bytes of a figure as text */

const struct sb_unit sb_ns = { "ns", 1, false };
const struct sb_unit sb_us = { "us", 1e-3, false };
const struct sb_unit sb_ms = { "ms", 1e-6, false };
const struct sb_unit sb_sec = { "s", 1e-9, false };
const struct sb_unit sb_mps = { "M/s", 1e3, true };
const struct sb_unit sb_kps = { "k/s", 1e6, true };

struct sb_unit sb_gbs(uint64_t bytes)
{
	return (struct sb_unit){ "GB/s", (double)bytes, true };
}

double sb_unit_value(const struct sb_unit *u, double ns)
{
	return u->rate ? u->factor / ns : u->factor * ns;
}

const char *sb_size_name(char buf[SB_NAME_MAX], uint64_t bytes)
{
	static const char letter[] = " KMG";
	unsigned int i = 0;

	while (i < 3 && bytes && !(bytes & 1023)) {
		bytes >>= 10;
		i++;
	}
	if (i)
		snprintf(buf, SB_NAME_MAX, "%" PRIu64 "%c", bytes, letter[i]);
	else
		snprintf(buf, SB_NAME_MAX, "%" PRIu64, bytes);
	return buf;
}

void sb_row_fill(struct sb_row *row, const struct sb_unit *u,
		 struct sb_set *set, struct sb_set *floor, const char *of)
{
	double q99 = sb_set_quantile(set, 0.99);
	double least = sb_set_quantile(set, u->rate ? 1 : 0);

	row->unit = u->name;
	row->median = sb_unit_value(u, sb_set_quantile(set, 0.5));
	row->p99 = sb_unit_value(u, q99);
	row->min = sb_unit_value(u, least);
	row->n = set->n;
	row->floor = NAN;
	row->ratio = NAN;
	row->of = of;
	if (!floor || !floor->n)
		return;
	row->floor = sb_unit_value(u, sb_set_quantile(floor, 0.5));
	row->ratio = row->median / row->floor;
}

/* ---- text ---- */

/* @x with some four digits, or @none. */
static const char *figure(char buf[TEXT_MAX], double x, const char *none)
{
	double a = fabs(x);

	if (!isfinite(x))
		return none;
	if (a >= 1000)
		snprintf(buf, TEXT_MAX, "%.0f", x);
	else if (a >= 100)
		snprintf(buf, TEXT_MAX, "%.1f", x);
	else if (a >= 1 || a <= 0)
		snprintf(buf, TEXT_MAX, "%.2f", x);
	else
		snprintf(buf, TEXT_MAX, "%.3g", x);
	return buf;
}

/* What a row may be at most, or at least; text is empty: it has no limit. */
struct limit {
	char text[2 * TEXT_MAX]; /* for the reader */
	bool exceeded;
};

static struct limit limit_of(const struct sb_row *r)
{
	struct limit l = { .text = "" };
	char t[TEXT_MAX];

	if (r->least > 0 && isfinite(r->ratio)) {
		l.exceeded = r->ratio < r->least;
		snprintf(l.text, sizeof(l.text), "at least %s",
			 figure(t, r->least, ""));
	} else if (r->most > 0 && !r->most_ratio) {
		l.exceeded = r->median > r->most;
		snprintf(l.text, sizeof(l.text), "at most %s %.8s",
			 figure(t, r->most, ""), r->unit);
	} else if (r->most > 0 && isfinite(r->ratio)) {
		l.exceeded = r->ratio > r->most;
		snprintf(l.text, sizeof(l.text), "at most %s",
			 figure(t, r->most, ""));
	}
	return l;
}

static void table_print(FILE *to, const struct sb_row *r)
{
	struct limit l = limit_of(r);
	char t[5][TEXT_MAX];

	fprintf(to, "%-40s %-4s %10s %10s %10s %10s %8s %8" PRIu64, r->name,
		r->unit, figure(t[0], r->median, "-"),
		figure(t[1], r->p99, "-"), figure(t[2], r->min, "-"),
		figure(t[3], r->floor, "-"), figure(t[4], r->ratio, "-"), r->n);
	if (r->of && isfinite(r->floor))
		fprintf(to, "  of %s", r->of);
	if (*l.text)
		fprintf(to, "%s %s: %s", r->of ? "," : " ", l.text,
			l.exceeded ? "NO" : "yes");
	fputc('\n', to);
}

static void json_number(FILE *to, const char *name, double x)
{
	if (isfinite(x))
		fprintf(to, ", \"%s\": %.6g", name, x);
	else
		fprintf(to, ", \"%s\": null", name);
}

static void json_print(const struct sb_out *o, const struct sb_row *r)
{
	fprintf(o->to, "{\"bench\": \"%s\", \"case\": \"%s\", \"unit\": \"%s\"",
		o->bench, r->name, r->unit);
	json_number(o->to, "median", r->median);
	json_number(o->to, "p99", r->p99);
	json_number(o->to, "min", r->min);
	json_number(o->to, "floor", r->floor);
	json_number(o->to, "ratio", r->ratio);
	fprintf(o->to, ", \"n\": %" PRIu64 "}\n", r->n);
}

static void csv_number(FILE *to, double x)
{
	if (isfinite(x))
		fprintf(to, ",%.6g", x);
	else
		fputc(',', to);
}

static void csv_print(const struct sb_out *o, const struct sb_row *r)
{
	fprintf(o->to, "%s,\"%s\",%s", o->bench, r->name, r->unit);
	csv_number(o->to, r->median);
	csv_number(o->to, r->p99);
	csv_number(o->to, r->min);
	csv_number(o->to, r->floor);
	csv_number(o->to, r->ratio);
	fprintf(o->to, ",%" PRIu64 "\n", r->n);
}

/* ---- rows ---- */

void sb_out_begin(struct sb_out *out, const char *conditions)
{
	if (out->format == SB_CSV)
		fputs("bench,case,unit,median,p99,min,floor,ratio,n\n",
		      out->to);
	if (out->format != SB_TABLE)
		return;
	fprintf(out->to, "shrimp-bench %s: %s\n", out->bench, conditions);
	fprintf(out->to, "%-40s %-4s %10s %10s %10s %10s %8s %8s\n", "case",
		"unit", "median", "p99", "min", "floor", "ratio", "n");
	fflush(out->to);
}

static int keep(struct sb_out *out, const struct sb_row *row)
{
	struct sb_row *p;

	if (out->n == out->room) {
		p = realloc(out->row, (2 * out->room + 64) * sizeof(*p));
		if (!p)
			return -ENOMEM;
		out->row = p;
		out->room = 2 * out->room + 64;
	}
	out->row[out->n++] = *row;
	return 0;
}

int sb_out_row(struct sb_out *out, const struct sb_row *row)
{
	struct limit l;

	if (out->format == SB_JSON)
		json_print(out, row);
	else if (out->format == SB_CSV)
		csv_print(out, row);
	else
		table_print(out->to, row);
	fflush(out->to);
	l = limit_of(row);
	if (l.exceeded && out->format != SB_TABLE)
		sb_out_note(out, "%s: %s: NO", row->name, l.text);
	out->missed |= l.exceeded;
	return keep(out, row);
}

int sb_out_case(struct sb_out *out, const struct sb_case *c)
{
	struct sb_row row = {
		.most = c->most,
		.most_ratio = c->most_ratio,
		.least = c->least,
		.point = c->point,
	};

	if (!c->set->n)
		return 0;
	snprintf(row.name, sizeof(row.name), "%s", c->name);
	sb_row_fill(&row, c->unit, c->set, c->floor, c->of);
	return sb_out_row(out, &row);
}

void sb_out_note(struct sb_out *out, const char *fmt, ...)
{
	FILE *to = out->format == SB_TABLE ? out->to : stderr;
	va_list ap;

	fprintf(to, "(");
	va_start(ap, fmt);
	vfprintf(to, fmt, ap);
	va_end(ap);
	fprintf(to, ")\n");
	fflush(to);
}

int sb_out_end(struct sb_out *out)
{
	int ret = out->plot ? sb_plot_draw(out) : 0;

	free(out->row);
	out->row = NULL;
	out->n = out->room = 0;
	return ret;
}
