/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Runs. In a round each chosen scenario has its turn once: first those that
 * any group will do for, in one group, in an order drawn anew; then each of
 * the others, in a group with its settings, between acts of the first ones.
 */
#include "bench/stress/run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/stress/fi.h"
#include "bench/stress/pattern.h"

enum {
	ACT_STEPS = 4,	 /* of an act, at most */
	ACT_LONG = 12,	 /* likewise, in a long run */
	BETWEEN = 2,	 /* plain acts beside one with settings */
	LINES_TOLD = 60, /* of each process, when it fails */
};

/** A run under way. */
struct run {
	const struct stress_options *o;
	uint64_t chance;
	uint32_t numbers; /* of steps so far */
	uint32_t acts;	  /* so far */
	int trace;	  /* file of --trace, or -1 */
	bool over;	  /* a fault, or unusable */
	enum stress_end end;
};

/** A group under way, and what it did. */
struct session {
	struct run *run;
	struct stress_group group;
	struct stress_plan plan;
	bool open;
};

static uint64_t draw(struct run *r, uint64_t n)
{
	return stress_draw(&r->chance) % n;
}

static bool time_over(const struct run *r)
{
	return r->over || stress_result_seconds() >= r->o->seconds ||
	       (r->o->steps && stress_result_steps() >= r->o->steps);
}

static bool has_own_group(const struct stress_scenario *sc)
{
	return sc->env || sc->before || sc->needs & STRESS_ALONE;
}

/* ---- plans ---- */

static struct stress_order order_of(const struct stress_step *st)
{
	return (struct stress_order){ .call = STRESS_CALL_STEP,
				      .scenario = (uint32_t)st->scenario,
				      .number = st->number,
				      .act = st->act,
				      .seed = st->seed };
}

static void fault_set(struct stress_fault *f, const struct stress_step *st,
		      const struct stress_report *r, bool at_end)
{
	memset(f, 0, sizeof(*f));
	f->step = *st;
	f->at_end = at_end;
	snprintf(f->text, sizeof(f->text), "%s", r->text);
}

static enum stress_end plan_steps(struct stress_group *g,
				  const struct stress_plan *p,
				  struct stress_fault *f)
{
	enum stress_end end = STRESS_END_FINE;
	struct stress_report r;

	for (size_t i = 0; i < p->n; i++) {
		struct stress_order o = order_of(&p->step[i]);

		end = stress_group_step(g, p->step[i].actor, &o, &r);
		if (end == STRESS_END_WRONG) {
			fault_set(f, &p->step[i], &r, false);
			return end;
		}
	}
	end = stress_group_stop(g, &r);
	if (end == STRESS_END_WRONG)
		fault_set(f, &p->step[p->n - 1], &r, true);
	return end;
}

enum stress_end stress_run_plan(const struct stress_options *o,
				const struct stress_plan *p,
				struct stress_fault *f, FILE *tell)
{
	struct stress_report r = { .told = 0 };
	struct stress_group g;
	enum stress_end end = stress_group_start(&g, o, &p->spec, &r);

	if (end != STRESS_END_FINE) {
		fault_set(f, &p->step[0], &r, false);
		return end;
	}
	end = plan_steps(&g, p, f);
	if (end == STRESS_END_WRONG && tell)
		stress_group_tell(&g, tell, f->step.number, "# ", LINES_TOLD);
	stress_group_kill(&g);
	return end;
}

/* ---- faults ---- */

static void file_name(const struct stress_options *o, struct stress_fault *f)
{
	if (o->output)
		snprintf(f->file, sizeof(f->file), "%s", o->output);
	else
		snprintf(f->file, sizeof(f->file), "stress-%lu-%u.trace",
			 (unsigned long)o->seed, f->step.number);
}

static void file_write(const struct stress_options *o, struct stress_plan *p,
		       struct stress_fault *f, const char *lines)
{
	FILE *to;

	file_name(o, f);
	f->steps = p->n;
	to = fopen(f->file, "we");
	if (!to || stress_plan_write(p, o, to)) {
		fprintf(stderr, "shrimp-stress: cannot write %s\n", f->file);
		f->file[0] = 0;
	}
	if (!to)
		return;
	fprintf(to, "# %s\n%s", f->text, lines ? lines : "");
	fclose(to);
}

/* The steps, and what was done in the last of them, for people. */
static void steps_print(const struct stress_options *o,
			const struct stress_plan *p,
			const struct stress_fault *f, const char *lines)
{
	fprintf(stderr, "the steps (--replay %s):\n", f->file);
	stress_plan_write(p, o, stderr);
	fprintf(stderr, "what was done in the last one:\n%s",
		lines ? lines : "");
}

/* Looks for the smallest plan that fails, and keeps it in a file. */
static void fault_shrink(const struct stress_options *o, struct stress_plan *p,
			 struct stress_fault *f, char **lines)
{
	size_t all = p->n, size;
	char *again = NULL;
	struct stress_fault last;
	FILE *tell;

	fprintf(stderr, "shrinking %zu steps, at most %u s\n", all, o->shrink);
	if (!stress_shrink(o, p, f)) {
		fprintf(stderr, "they did not fail again\n");
		return;
	}
	tell = open_memstream(&again, &size);
	for (int i = 0; tell && i < 3; i++) {
		if (stress_run_plan(o, p, &last, tell) != STRESS_END_WRONG)
			continue;
		*f = last;
		break;
	}
	if (tell)
		fclose(tell);
	if (again && *again) {
		free(*lines);
		*lines = again;
		return;
	}
	free(again);
}

static void fault_found(struct session *ss, struct stress_fault *f)
{
	const struct stress_options *o = ss->run->o;
	char *lines = NULL;
	size_t size;
	FILE *tell = open_memstream(&lines, &size);

	if (tell) {
		stress_group_tell(&ss->group, tell,
				  f->at_end ? 0 : f->step.number, "# ",
				  LINES_TOLD);
		fclose(tell);
	}
	stress_group_kill(&ss->group);
	ss->open = false;
	stress_result_line_end();
	fprintf(stderr, "%s, step %u%s: %s\n",
		stress_scenarios[f->step.scenario]->name, f->step.number,
		f->at_end ? ", at the end" : "", f->text);
	if (o->shrink)
		fault_shrink(o, &ss->plan, f, &lines);
	file_write(o, &ss->plan, f, lines);
	if (!o->quiet && !o->keep_going)
		steps_print(o, &ss->plan, f, lines);
	free(lines);
	stress_result_fault(f);
	ss->run->end = STRESS_END_WRONG;
	ss->run->over = !o->keep_going;
}

/* ---- sessions ---- */

static void session_failed(struct session *ss, const struct stress_report *r,
			   bool at_end)
{
	struct stress_step none = { .scenario = ss->plan.spec.env };
	struct stress_fault f;

	if (none.scenario < 0)
		none.scenario = 0;
	fault_set(&f, ss->plan.n ? &ss->plan.step[ss->plan.n - 1] : &none, r,
		  at_end);
	fault_found(ss, &f);
}

/* Opens the group; @env: the scenario whose settings it has, or -1. */
static bool session_open(struct session *ss, int env)
{
	struct run *run = ss->run;
	struct stress_report r = { .told = 0 };
	enum stress_end end;

	stress_plan_free(&ss->plan);
	ss->plan.spec.env = env;
	ss->plan.spec.trace = run->trace;
	ss->plan.spec.look = !strcmp(run->o->provider, "shrimp");
	ss->plan.spec.offer = STRESS_OFFER;
	if (draw(run, 2))
		ss->plan.spec.offer &=
			(int)draw(run, STRESS_OFFER + 1) | FI_MR_ALLOCATED;
	end = stress_group_start(&ss->group, run->o, &ss->plan.spec, &r);
	ss->open = end == STRESS_END_FINE;
	if (ss->open) {
		stress_result_provider(ss->group.provider);
	} else if (end == STRESS_END_UNUSABLE && !stress_result_steps()) {
		stress_result_line_end();
		fprintf(stderr, "shrimp-stress: %s\n", r.text);
		run->end = end;
		run->over = true;
	} else if (end == STRESS_END_SKIPPED && env >= 0) {
		stress_result_skip(env, r.text);
	} else {
		session_failed(ss, &r, false);
	}
	return ss->open;
}

static void session_close(struct session *ss)
{
	struct stress_report r = { .told = 0 };

	if (ss->open && stress_group_stop(&ss->group, &r) == STRESS_END_WRONG)
		session_failed(ss, &r, true);
	stress_group_kill(&ss->group);
	stress_plan_free(&ss->plan);
	ss->open = false;
}

/* One step; returns whether the act goes on. */
static bool session_step(struct session *ss, const struct stress_step *st)
{
	struct stress_order o = order_of(st);
	struct stress_report r = { .told = 0 };
	enum stress_end end;

	if (stress_plan_add(&ss->plan, st)) {
		ss->run->over = true;
		return false;
	}
	end = stress_group_step(&ss->group, st->actor, &o, &r);
	if (end == STRESS_END_WRONG) {
		session_failed(ss, &r, false);
		return false;
	}
	stress_result_step(st->scenario, &r.count);
	if (end == STRESS_END_SKIPPED)
		stress_result_skip(st->scenario, r.text);
	stress_result_tick();
	return end == STRESS_END_FINE;
}

static void session_act(struct session *ss, int scenario)
{
	struct run *run = ss->run;
	uint64_t most = run->o->large ? ACT_LONG : ACT_STEPS;
	uint64_t n = 1 + draw(run, most);
	struct stress_step st = { .scenario = scenario,
				  .actor = (int)draw(run, run->o->processes),
				  .act = ++run->acts };

	if (stress_result_skipped(scenario))
		return;
	if (stress_scenarios[scenario]->needs & STRESS_ALONE)
		n = 1;
	stress_result_act(scenario);
	for (uint64_t i = 0; i < n && ss->open && !time_over(run); i++) {
		st.number = ++run->numbers;
		st.seed = stress_draw(&run->chance);
		if (!session_step(ss, &st))
			break;
	}
}

/* ---- rounds ---- */

/* The chosen scenarios that have (@own), or have not, a group of their own. */
static int choose(struct run *r, bool own, int *list)
{
	int n = 0;

	for (int i = 0; stress_scenarios[i]; i++)
		if (r->o->chosen[i] && !stress_result_skipped(i) &&
		    has_own_group(stress_scenarios[i]) == own)
			list[n++] = i;
	for (int i = n - 1; i > 0; i--) {
		int j = (int)draw(r, (uint64_t)i + 1), x = list[i];

		list[i] = list[j];
		list[j] = x;
	}
	return n;
}

static void plain_group(struct run *r, const int *list, int n)
{
	struct session ss = { .run = r };

	if (!n || time_over(r) || !session_open(&ss, -1))
		return;
	for (int i = 0; i < n && !time_over(r); i++) {
		if (!ss.open && !session_open(&ss, -1))
			return;
		session_act(&ss, list[i]);
	}
	session_close(&ss);
}

static void own_group(struct run *r, int own, const int *list, int n)
{
	bool alone = stress_scenarios[own]->needs & STRESS_ALONE;
	struct session ss = { .run = r };

	if (time_over(r) || !session_open(&ss, own))
		return;
	if (!alone)
		session_act(&ss, own);
	for (int i = 0; i < BETWEEN && n && ss.open && !time_over(r); i++)
		session_act(&ss, list[draw(r, (uint64_t)n)]);
	if (ss.open && !time_over(r))
		session_act(&ss, own);
	session_close(&ss);
}

static void round_run(struct run *r)
{
	int plain[STRESS_CHOSEN_MAX], own[STRESS_CHOSEN_MAX];
	int n = choose(r, false, plain), m = choose(r, true, own);

	if (!n && !m)
		r->over = true;
	plain_group(r, plain, n);
	for (int i = 0; i < m; i++)
		own_group(r, own[i], plain, n);
}

static int trace_open(const struct stress_options *o)
{
	int fd;

	if (!o->trace)
		return -1;
	fd = open(o->trace, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
		  0666);
	if (fd < 0)
		fprintf(stderr, "shrimp-stress: cannot write %s\n", o->trace);
	return fd;
}

enum stress_end stress_run_random(const struct stress_options *o)
{
	struct run r = { .o = o, .chance = o->seed };

	r.trace = trace_open(o);
	while (!time_over(&r))
		round_run(&r);
	if (r.trace >= 0)
		close(r.trace);
	return r.end;
}

enum stress_end stress_run_replay(const struct stress_options *o,
				  struct stress_plan *p)
{
	struct stress_fault f;
	enum stress_end end;

	p->spec.trace = trace_open(o);
	end = stress_run_plan(o, p, &f, stderr);
	if (end == STRESS_END_WRONG)
		stress_result_fault(&f);
	else if (end != STRESS_END_FINE)
		fprintf(stderr, "shrimp-stress: %s\n", f.text);
	if (p->spec.trace >= 0)
		close(p->spec.trace);
	return end;
}
