/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the parts of shrimp-bench reg share: sb_reg.c times one region at a
 * time, sb_reg_many.c batches, threads and processes.
 */
#ifndef BENCH_SB_REG_H
#define BENCH_SB_REG_H

#include "bench/sb_options.h"
#include "bench/sb_side.h"

enum {
	SB_REG_LAPS = 3, /* there, back, both */
	SB_REG_KEY = 9,	 /* first of the keys used */
};

/** Names of the laps of a registration, and of the bare calls. */
extern const char *const sb_reg_lap[SB_REG_LAPS];
extern const char *const sb_reg_floor[SB_REG_LAPS];

/** The workers of the last rows, forked before libfabric is called. */
struct sb_crew;

/*
 * Forks @n processes that register and close when they are told. Returns 0 or
 * a negative code. Partner: sb_crew_end().
 */
int sb_reg_crew_start(struct sb_crew *crew, unsigned int n);

/*
 * Rows of 1, 2, 4... processes of @crew, those of more than one also beside one
 * alone. Returns 0 or a negative code.
 */
int sb_reg_processes(const struct sb_options *o, struct sb_out *out,
		     struct sb_crew *crew);

/* Rows of 1, 2, 4... threads of this process. As sb_reg_processes(). */
int sb_reg_threads(const struct sb_options *o, struct sb_out *out,
		   struct sb_side *s);

/* Rows of batches. As sb_reg_processes(). */
int sb_reg_batches(const struct sb_options *o, struct sb_out *out,
		   struct sb_side *s);

#endif
