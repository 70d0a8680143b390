/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The command line that the ping-pong programs share.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>

#include "bench/order.h"
#include "bench/pin.h"
#include "bench/sizes.h"

/** What the command line asked for; strings are the command line's. */
struct bench_options {
	struct bench_sizes sizes;	   /* message sizes */
	enum bench_kind kind[BENCH_KINDS]; /* kinds, in this order */
	unsigned int kinds;		   /* entries of kind[] used */
	unsigned int batches;		   /* batches of each, from 1 */
	unsigned int ms;		   /* length of a batch */
	struct bench_pin pin;		   /* the two cores, or -1 */
	const char *control;		   /* control folder, or NULL */
	const char *provider;		   /* libfabric provider, or NULL */
	bool json;			   /* JSON lines instead of text */
	bool rewrite;			   /* whole messages are rewritten */
};

/** One program's share of the command line. */
struct bench_program {
	const char *name;  /* of the program */
	const char *about; /* what it measures, for --help */
	const char *kinds; /* the kinds it knows, "lat,bw,rate" */
	const char *sizes; /* the default list of sizes */
	bool provider;	   /* --provider is allowed and needed */
};

/**
 * bench_options_parse() - read the command line.
 * @options: filled in.
 * @program: defaults, names; borrowed.
 * @argc: of main().
 * @argv: of main(); must outlive @options.
 *
 * One thread. Returns 0, 1 after --help was printed (end with success), or
 * -EINVAL after a message and the usage on stderr.
 */
int bench_options_parse(struct bench_options *options,
			const struct bench_program *program, int argc,
			char **argv);

#endif
