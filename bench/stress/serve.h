/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The partner's side of a transfer. One thread.
 */
#ifndef BENCH_STRESS_SERVE_H
#define BENCH_STRESS_SERVE_H

#include "bench/stress/inside.h"

/*
 * Makes window and bounce of @s and registers them. Returns 0 or -1, told.
 * Partner: stress_serve_close().
 */
int stress_serve_open(struct stress *s);

/* Closes and unmaps them. Returns 0 or -1, told. Accepts zeroed memory. */
int stress_serve_close(struct stress *s);

/*
 * Answers the questions that have come from other processes by now, each to
 * its end. Returns how many.
 */
int stress_serve(struct stress *s);

#endif
