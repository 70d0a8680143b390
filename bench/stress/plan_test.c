/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Unit tests of plans: what is written is read as the same, and what is no
 * plan is refused.
 */
#include "bench/stress/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct stress_options options = {
	.provider = "tcp;ofi_rxm",
	.seed = 77,
	.processes = 3,
	.threads = 2,
	.broken = STRESS_BREAK_LATE,
};

/* Reads a plan from @text; returns what stress_plan_read() did. */
static int read_text(const char *text, struct stress_plan *p,
		     struct stress_options *o)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int ret;

	assert_non_null(f);
	*o = options;
	memset(p, 0, sizeof(*p));
	ret = stress_plan_read(p, o, f);
	fclose(f);
	return ret;
}

static void written_and_read(void **state)
{
	struct stress_step step = { .number = 9,
				    .act = 4,
				    .scenario = 1,
				    .actor = 2,
				    .seed = 0xfedcba9876543210 };
	struct stress_plan p = { .spec = { .env = 2, .offer = 0x30 } }, got;
	struct stress_options o;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(stress_plan_add(&p, &step), 0);
	step.number++;
	assert_int_equal(stress_plan_add(&p, &step), 0);
	assert_int_equal(stress_plan_write(&p, &options, f), 0);
	fclose(f);
	assert_int_equal(read_text(text, &got, &o), 0);
	assert_int_equal(got.n, 2);
	assert_memory_equal(got.step, p.step, 2 * sizeof(step));
	assert_int_equal(got.spec.env, 2);
	assert_int_equal(got.spec.offer, 0x30);
	assert_string_equal(o.provider, options.provider);
	assert_int_equal(o.seed, 77);
	assert_int_equal(o.broken, STRESS_BREAK_LATE);
	free((void *)(uintptr_t)o.provider);
	free(text);
	stress_plan_free(&p);
	stress_plan_free(&got);
}

static void others_are_refused(void **state)
{
	static const char *const wrong[] = {
		"x\n",
		"shrimp-stress 1\n",
		("shrimp-stress 1\nprocesses 99\n"
		 "step 1 act 1 actor 0 scenario remap seed 1\n"),
		"shrimp-stress 1\nstep 1 act 1 actor 0 scenario none seed 1\n",
		"shrimp-stress 1\nstep 1 act 1 actor 7 scenario remap seed 1\n",
		"shrimp-stress 1\nstep 0 act 1 actor 0 scenario remap seed 1\n",
		"shrimp-stress 1\nset PATH=/tmp\n",
		"shrimp-stress 1\nwhat 1\n",
	};
	struct stress_options o;
	struct stress_plan p;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(read_text(wrong[i], &p, &o), -22);
		stress_plan_free(&p);
	}
}

/* Each has a name of its own, a line of help, and something to do. */
static void scenarios_are_complete(void **state)
{
	(void)state;
	for (int i = 0; stress_scenarios[i]; i++) {
		const struct stress_scenario *sc = stress_scenarios[i];

		assert_int_equal(stress_scenario_find(sc->name), i);
		assert_true(strspn(sc->name, "abcdefghijklmnopqrstuvwxyz-") ==
			    strlen(sc->name));
		assert_true(strlen(sc->name) <= 16);
		assert_non_null(sc->help);
		assert_non_null(sc->step);
		assert_true(i < STRESS_CHOSEN_MAX - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_and_read),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(scenarios_are_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
