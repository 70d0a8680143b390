/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Names of the counters in struct rnic_stats, sums of them, and rates. One
 * thread.
 */
#ifndef SHRIMP_INSPECT_COUNT_H
#define SHRIMP_INSPECT_COUNT_H

#include "tools/inspect.h"

enum {
	INSP_PATHS = 8,	  /* of messages, as enum fi_shrimp_path */
	INSP_REACHES = 4, /* of one-sided operations */
};

/* Names of the ways, as FI_SHRIMP_STATS has them. */
extern const char *const insp_path_name[INSP_PATHS];
extern const char *const insp_reach_name[INSP_REACHES]; /* likewise */

/* Names of insp_device.paging. */
extern const char *const insp_paging_name[INSP_PAGING];

/* A counter, or one of several of a kind, in struct rnic_stats. */
struct insp_counter {
	const char *name;	  /* for programs to read */
	unsigned int at;	  /* first word */
	const char *const *parts; /* names of its words; NULL: it has one */
	unsigned int n;		  /* words */
};

/* All of them; the last one has no name. */
extern const struct insp_counter insp_counters[];

/* Where counters begin that have several words. */
enum insp_word {
	INSP_TX_MSGS = 0,
	INSP_TX_BYTES = 8,
	INSP_RX_MSGS = 16,
	INSP_RX_BYTES = 24,
	INSP_RMA_MSGS = 44,
	INSP_RMA_BYTES = 48,
	INSP_ATOMICS = 52,
};

/* Sum of @n words from @at on. */
uint64_t insp_sum(const uint64_t *stats, unsigned int at, unsigned int n);

/* Rates compare with an earlier look. */
struct insp_before {
	const struct insp_list *list; /* NULL: there was none */
	double seconds;		      /* since then */
};

/*
 * The device of the earlier look that is @d of process @pid, or NULL: then
 * there are no rates for it.
 */
const struct insp_device *insp_before(const struct insp_before *b, pid_t pid,
				      const struct insp_device *d);

/* Growth from @was to @now by the second; 0 if it shrank. */
double insp_rate(const struct insp_before *b, uint64_t was, uint64_t now);

#endif /* SHRIMP_INSPECT_COUNT_H */
