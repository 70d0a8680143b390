/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * FI_SHRIMP_*: what a user may set. README.md has the table.
 */
#ifndef SHRIMP_SETTINGS_H
#define SHRIMP_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "shm/pin.h"

/* FI_SHRIMP_ATTACH; values as enum rnic_attach_mode. */
enum shrimp_attach {
	SHRIMP_ATTACH_AUTO,   /* /proc if possible, else socket */
	SHRIMP_ATTACH_PROC,   /* /proc only */
	SHRIMP_ATTACH_SOCKET, /* socket only */
};

/* FI_SHRIMP_NUMA. */
enum shrimp_numa {
	SHRIMP_NUMA_LOCAL, /* tables, lanes, pools on the home node */
	SHRIMP_NUMA_OFF,   /* leave placement to the kernel */
};

struct shrimp_settings {
	size_t tx_buffer;	   /* bytes of injects kept: TX_BUFFER */
	size_t cq_max;		   /* unread completions: CQ_MAX */
	size_t unexpected;	   /* bytes of unmatched messages: UNEXPECTED */
	size_t pool;		   /* chunk pool, 0: by the L2 cache: POOL */
	size_t eager_max;	   /* largest message sent unasked: EAGER_MAX */
	unsigned int linger_ms;	   /* close waits so long: LINGER, seconds */
	unsigned int lane_lines;   /* descriptors under way: LANE_LINES */
	unsigned int spin;	   /* empty polls before a yield: SPIN */
	enum shrimp_attach attach; /* how to attach: ATTACH */
	enum shrimp_numa numa;	   /* placement: NUMA */
	enum rnic_pin_policy pin;  /* of registered memory: PIN */
	unsigned int mr_mode;	   /* by index in the list: MR_MODE */
	bool membarrier;	   /* use it: MEMBARRIER=auto, or off */
	char *stats_file;	   /* STATS, malloc'ed, or NULL */
};

/*
 * Makes the settings known to libfabric (fi_info -e lists them). Called once,
 * from fi_prov_ini().
 */
void shrimp_settings_define(void);

/*
 * Reads the environment. Returns 0, or -FI_EINVAL after one message per
 * fault that names variable, value and allowed values: a job does not start
 * on a guess. Also for FI_SHRIMP_ names that do not exist.
 * Partner: shrimp_settings_free().
 */
int shrimp_settings_load(struct shrimp_settings *s);

/*
 * The FI_MR_ bits of FI_SHRIMP_MR_MODE, for fi_getinfo(), which comes before
 * there is a fabric; 0 for a bad value, at which opening the fabric fails.
 */
int shrimp_settings_mr_mode(void);

/* Frees what the settings own. */
void shrimp_settings_free(struct shrimp_settings *s);

#endif /* SHRIMP_SETTINGS_H */
