/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Runs the models and prints a table.
 *
 *	models [-v] [NAME...]
 *
 * -v: a line for each variant, and how each mutant fails. NAME: only those.
 * Exit status 0 if each protocol holds, and each mutant is caught.
 *
 * Limit: 120 s
 */
#include "doc/model/models.h"

#include <stdio.h>
#include <string.h>

static const struct model *const all[] = {
	&model_litmus,	 &model_publish,  &model_index,	 &model_owner_fence,
	&model_coalesce, &model_contexts, &model_death,	 &model_reuse,
	&model_rebind,	 &model_window,	  &model_paging, &model_late,
	&model_bump,	 &model_wake,
};

static const char *const memory_name[MODEL_MEMORIES] = {
	[MODEL_TSO] = "TSO",
	[MODEL_WEAK] = "weak",
};

/* Sums of a row of the table. */
struct row {
	unsigned long states;	/* of the protocols */
	unsigned int protocols; /* that hold */
	unsigned int mutants;	/* that should be caught */
	unsigned int caught;	/* that were */
	unsigned int wrong;	/* variants that went otherwise than expected */
};

static bool should_fail(const struct model_variant *v, enum model_memory m)
{
	return v->expect == MODEL_FAILS ||
	       (v->expect == MODEL_FAILS_WEAK && m == MODEL_WEAK);
}

static void run_variant(const struct model *m, unsigned int v,
			enum model_memory memory, bool verbose, struct row *row)
{
	const struct model_variant *d = &m->variant[v];
	bool fail = should_fail(d, memory);
	struct model_result x = model_explore(m, v, memory, verbose);

	if (!fail && x.failure && !verbose)
		/* for whoever must find out why */
		x = model_explore(m, v, memory, true);
	if (d->expect == MODEL_HOLDS) {
		row->states += x.states;
		row->protocols += !x.failure;
	}
	row->mutants += fail;
	row->caught += fail && x.failure;
	row->wrong += fail != (x.failure != NULL);
	if (verbose || fail != (x.failure != NULL))
		printf("  %-8s %-4s %-36s %8u  %s%s\n", m->name,
		       memory_name[memory], d->name, x.states,
		       x.failure ? x.failure : "holds",
		       fail == (x.failure != NULL) ? "" : "  NOT EXPECTED");
}

static unsigned int run_model(const struct model *m, enum model_memory memory,
			      bool verbose)
{
	struct row row = { 0 };

	for (unsigned int v = 0; v < m->variants; v++)
		run_variant(m, v, memory, verbose, &row);
	printf("%-10s %-11s %-6s %8lu %9u   %2u of %2u\n", m->name, m->lines,
	       memory_name[memory], row.states, row.protocols, row.caught,
	       row.mutants);
	fflush(stdout);
	return row.wrong;
}

static bool chosen(const struct model *m, int argc, char **argv)
{
	bool none = true;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], m->name))
			return true;
		none &= argv[i][0] == '-';
	}
	return none;
}

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && !strcmp(argv[1], "-v");
	unsigned int wrong = 0;

	printf("%-10s %-11s %-6s %8s %9s   %s\n", "model", "contract", "memory",
	       "states", "protocols", "mutants caught");
	for (size_t i = 0; i < MODEL_COUNT(all); i++)
		for (int m = 0; m < MODEL_MEMORIES; m++)
			if (chosen(all[i], argc, argv))
				wrong += run_model(all[i], (enum model_memory)m,
						   verbose);
	model_free();
	if (wrong)
		printf("%u variants went otherwise than expected\n", wrong);
	return wrong ? 1 : 0;
}
