/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Regions, as the mr_mode of the provider wants them. stress.h has what
 * scenarios use. One thread.
 */
#ifndef BENCH_STRESS_MR_H
#define BENCH_STRESS_MR_H

#include "bench/stress/inside.h"

/* As stress_mr_get() and stress_mr_reg(), in the domain of @e. */
int stress_mr_get_on(struct stress *s, struct stress_side *e, void *p,
		     size_t len, enum stress_use use, struct stress_mr *m);
int stress_mr_reg_on(struct stress *s, struct stress_side *e, void *p,
		     size_t len, enum stress_use use, struct stress_mr *m);

/* Its descriptor; NULL if there is no region. */
void *stress_mr_desc(const struct stress_mr *m);

/* The side that the next transfer is for: by chance, if there are two. */
struct stress_side *stress_side_pick(struct stress *s);

#endif
