/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The command line of shrimp-bench, and what a subcommand says of itself.
 */
#ifndef BENCH_SB_OPTIONS_H
#define BENCH_SB_OPTIONS_H

#include <stdbool.h>

#include "bench/pin.h"
#include "bench/sb_measure.h"
#include "bench/sb_out.h"
#include "bench/sizes.h"

/** What the command line asked for. */
struct sb_options {
	struct bench_sizes sizes; /* bytes */
	unsigned int threads;	  /* at most */
	unsigned int processes;	  /* at most, beside the one that measures */
	struct sb_plan plan;	  /* time for each row */
	struct bench_pin pin;	  /* cores of the two sides, or -1 */
	bool quick;		  /* fewer cases */
	bool check;		  /* a limit exceeded is exit code 1 */
	enum sb_format format;	  /* of the rows */
	const char *plot;	  /* file to draw to, or NULL */
};

/** A subcommand. All strings are constant. */
struct sb_bench {
	const char *name;	/* as typed */
	const char *about;	/* one line */
	const char *help;	/* the cases, for --help; ends in newline */
	const char *sizes;	/* default of --sizes; NULL: has none */
	const char *quick;	/* likewise, with --quick */
	unsigned int threads;	/* default of --threads; 0: has none */
	unsigned int processes; /* likewise */
	struct sb_axes axes;	/* of its picture */
	/* Measures, prints; returns 0, or a negative code, and says why. */
	int (*run)(const struct sb_options *options, struct sb_out *out);
};

/*
 * Reads the command line behind the subcommand's name, argv[0]. Returns 0, 1
 * after --help was printed, or -EINVAL after a message on stderr.
 */
int sb_options_parse(struct sb_options *options, const struct sb_bench *bench,
		     int argc, char **argv);

#endif
