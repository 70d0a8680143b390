/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What a run found.
 */
#include "bench/stress/result.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "bench/clock.h"

enum {
	FAULTS_KEPT = 64,
	SKIPS = 3, /* and nothing else: a scenario cannot be run here */
};

#define NS_PER_S 1000000000ull

/** Of one scenario. */
struct row {
	uint64_t acts;
	uint64_t steps;
	uint64_t faults;
	uint64_t skips; /* steps that could not be done */
	struct stress_count count;
	bool skipped;	       /* not run any more */
	char why[STRESS_TEXT]; /* it was skipped last */
};

static struct {
	const struct stress_options *o;
	uint64_t began;
	uint64_t told; /* when the line of progress was */
	bool line;     /* it stands there */
	int now;       /* scenario */
	char provider[STRESS_TEXT];
	struct row row[STRESS_CHOSEN_MAX];
	struct stress_fault fault[FAULTS_KEPT];
	uint64_t faults;
	uint64_t steps;
	uint64_t bytes;
} all;

void stress_result_begin(const struct stress_options *o)
{
	all.o = o;
	all.began = bench_clock_ns();
	all.told = all.began;
}

void stress_result_provider(const char *text)
{
	if (!all.provider[0])
		snprintf(all.provider, sizeof(all.provider), "%s", text);
}

void stress_result_act(int i)
{
	all.now = i;
	all.row[i].acts++;
}

void stress_result_step(int i, const struct stress_count *count)
{
	struct row *r = &all.row[i];

	all.steps++;
	all.bytes += count->bytes;
	r->steps++;
	r->count.bytes += count->bytes;
	r->count.transfers += count->transfers;
	r->count.refused += count->refused;
}

void stress_result_skip(int i, const char *why)
{
	struct row *r = &all.row[i];

	r->skips++;
	if (r->skips >= SKIPS && r->skips >= r->steps)
		r->skipped = true;
	snprintf(all.row[i].why, sizeof(all.row[i].why), "%s", why);
}

bool stress_result_skipped(int i)
{
	return all.row[i].skipped;
}

void stress_result_fault(const struct stress_fault *f)
{
	if (all.faults < FAULTS_KEPT)
		all.fault[all.faults] = *f;
	all.faults++;
	all.row[f->step.scenario].faults++;
}

uint64_t stress_result_faults(void)
{
	return all.faults;
}

uint64_t stress_result_steps(void)
{
	return all.steps;
}

double stress_result_seconds(void)
{
	return (double)(bench_clock_ns() - all.began) / NS_PER_S;
}

/* ---- the line ---- */

void stress_result_tick(void)
{
	uint64_t now = bench_clock_ns();

	if (all.o->quiet || now - all.told < NS_PER_S || !isatty(2))
		return;
	all.told = now;
	all.line = true;
	fprintf(stderr,
		"\r\033[K%.0f s: %" PRIu64 " steps, %.2f GB verified, %" PRIu64
		" faults; %s",
		stress_result_seconds(), all.steps, (double)all.bytes / 1e9,
		all.faults, stress_scenarios[all.now]->name);
	fflush(stderr);
}

void stress_result_line_end(void)
{
	if (all.line)
		fprintf(stderr, "\r\033[K");
	all.line = false;
}

/* ---- for people ---- */

/* Whether all it had to do was skipped. */
static bool no_step(const struct row *r)
{
	return r->skips && r->skips >= r->steps;
}

static void row_print(FILE *to, const char *name, const struct row *r)
{
	fprintf(to,
		"%-16s %7" PRIu64 " %8" PRIu64 " %10" PRIu64 " %10.1f %8" PRIu64
		" %6" PRIu64 "%s%s\n",
		name, r->acts, r->steps, r->count.transfers,
		(double)r->count.bytes / 1e6, r->count.refused, r->faults,
		no_step(r) ? "  skipped: " : "", no_step(r) ? r->why : "");
}

static void faults_print(FILE *to)
{
	for (uint64_t i = 0; i < all.faults && i < FAULTS_KEPT; i++) {
		const struct stress_fault *f = &all.fault[i];

		fprintf(to, "fault: %s%s: %s\n",
			stress_scenarios[f->step.scenario]->name,
			f->at_end ? ", when the processes ended" : "", f->text);
		if (f->file[0])
			fprintf(to, "       %zu steps: --replay %s\n", f->steps,
				f->file);
	}
}

static void table_print(FILE *to)
{
	fprintf(to, "provider %s; seed %" PRIu64 "\n",
		all.provider[0] ? all.provider : all.o->provider, all.o->seed);
	fprintf(to, "%-16s %7s %8s %10s %10s %8s %6s\n", "scenario", "acts",
		"steps", "transfers", "MB right", "refused", "faults");
	for (int i = 0; stress_scenarios[i]; i++)
		if (all.o->chosen[i])
			row_print(to, stress_scenarios[i]->name, &all.row[i]);
	faults_print(to);
	fprintf(to,
		"%.1f s, %" PRIu64 " steps, %.2f GB verified, %" PRIu64
		" faults\n",
		stress_result_seconds(), all.steps, (double)all.bytes / 1e9,
		all.faults);
}

/* ---- JSON ---- */

static void string_put(FILE *to, const char *text)
{
	fputc('"', to);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(to, "\\%c", c);
		else if (c < 0x20 || c > 0x7e)
			fprintf(to, "\\u%04x", c);
		else
			fputc(c, to);
	}
	fputc('"', to);
}

static void row_json(FILE *to, int i, bool more)
{
	const struct row *r = &all.row[i];

	fprintf(to, "%s{\"name\": \"%s\", \"acts\": %" PRIu64, more ? ", " : "",
		stress_scenarios[i]->name, r->acts);
	fprintf(to,
		", \"steps\": %" PRIu64 ", \"transfers\": %" PRIu64
		", \"bytes\": %" PRIu64 ", \"refused\": %" PRIu64
		", \"faults\": %" PRIu64 ", \"skipped\": ",
		r->steps, r->count.transfers, r->count.bytes, r->count.refused,
		r->faults);
	if (no_step(r))
		string_put(to, r->why);
	else
		fputs("null", to);
	fputc('}', to);
}

static void fault_json(FILE *to, const struct stress_fault *f, bool more)
{
	fprintf(to,
		"%s{\"scenario\": \"%s\", \"step\": %" PRIu32
		", \"at_end\": %s, \"text\": ",
		more ? ", " : "", stress_scenarios[f->step.scenario]->name,
		f->step.number, f->at_end ? "true" : "false");
	string_put(to, f->text);
	fprintf(to, ", \"steps\": %zu, \"replay\": ", f->steps);
	if (f->file[0])
		string_put(to, f->file);
	else
		fputs("null", to);
	fputc('}', to);
}

static void json_print(FILE *to)
{
	bool more = false;

	fputs("{\"provider\": ", to);
	string_put(to, all.provider[0] ? all.provider : all.o->provider);
	fprintf(to,
		", \"seed\": %" PRIu64
		", \"seconds\": %.1f, \"steps\": %" PRIu64
		", \"bytes\": %" PRIu64 ", \"faults_seen\": %" PRIu64
		", \"scenarios\": [",
		all.o->seed, stress_result_seconds(), all.steps, all.bytes,
		all.faults);
	for (int i = 0; stress_scenarios[i]; i++) {
		if (!all.o->chosen[i])
			continue;
		row_json(to, i, more);
		more = true;
	}
	fputs("], \"faults\": [", to);
	for (uint64_t i = 0; i < all.faults && i < FAULTS_KEPT; i++)
		fault_json(to, &all.fault[i], i > 0);
	fputs("]}\n", to);
}

void stress_result_print(FILE *to)
{
	stress_result_line_end();
	if (all.o->json)
		json_print(to);
	else if (!all.o->quiet || all.faults)
		table_print(to);
	fflush(to);
}
