/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the actor asks of its partners besides the transfers of stress.h.
 */
#ifndef BENCH_STRESS_XFER_H
#define BENCH_STRESS_XFER_H

#include "bench/stress/inside.h"

/*
 * Asks partner @rank and waits for its answer, at most 20 s. Returns 0, or
 * STRESS_FAILED, told. @a may be NULL.
 */
int stress_ask(struct stress *s, int rank, const struct stress_question *q,
	       struct stress_answer *a);

/* A partner that is alive, by chance; -1: there is none. */
int stress_partner_pick(struct stress *s);

/* Compares; waits for it where completions do not mean delivery. */
int stress_arrived(struct stress *s, const void *p, size_t len,
		   struct stress_pat pat, const char *what);

#endif
