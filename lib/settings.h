/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * FI_SHRIMP_*: what a user may set. README.md has the table.
 */
#ifndef SHRIMP_SETTINGS_H
#define SHRIMP_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "shm/keycache.h"
#include "shm/numa.h"
#include "shm/pin.h"

/* FI_SHRIMP_ATTACH; values as enum rnic_attach_mode. */
enum shrimp_attach {
	SHRIMP_ATTACH_AUTO,   /* /proc if possible, else socket */
	SHRIMP_ATTACH_PROC,   /* /proc only */
	SHRIMP_ATTACH_SOCKET, /* socket only */
};

/* FI_SHRIMP_MTT: leaves of a region's translation. */
enum shrimp_mtt {
	SHRIMP_MTT_EXTENT, /* one for each contiguous range */
	SHRIMP_MTT_PAGES,  /* one for each page of the real backing */
};

/* FI_SHRIMP_MONITOR: which regions the unmap monitor watches. */
enum shrimp_monitor {
	SHRIMP_MONITOR_AUTO, /* those on demand, idle ones of the cache */
	SHRIMP_MONITOR_UFFD, /* all but those in the device's memory */
	SHRIMP_MONITOR_OFF,  /* none */
};

/* FI_SHRIMP_MR_CACHE: registrations whose checks and translation are kept. */
enum shrimp_mrc_mode {
	SHRIMP_MRC_LOCAL, /* those without a remote right */
	SHRIMP_MRC_OFF,	  /* none */
	SHRIMP_MRC_ALL,	  /* all */
};

/* FI_SHRIMP_MR_CACHE_PIN: pages of entries that no region uses. */
enum shrimp_mrc_pin {
	SHRIMP_MRC_DROP, /* are not locked, nor are those of local ones */
	SHRIMP_MRC_KEEP, /* stay locked */
};

/* FI_SHRIMP_MR_CACHE_MONITOR: how the cache hears of unmapping. */
enum shrimp_mrc_monitor {
	SHRIMP_MRC_MON_AUTO,   /* userfaultfd, if it works, else off */
	SHRIMP_MRC_MON_UFFD,   /* likewise */
	SHRIMP_MRC_MON_NOTIFY, /* the application tells */
	SHRIMP_MRC_MON_OFF,    /* only what cannot go is kept */
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
	enum rnic_numa_mode numa;  /* placement: NUMA */
	int home_node;		   /* or RNIC_NUMA_HERE: HOME_NODE */
	enum rnic_pin_policy pin;  /* of registered memory: PIN */
	enum shrimp_mtt mtt;	   /* leaves of translations: MTT */
	unsigned int mr_mode;	   /* by index in the list: MR_MODE */
	struct rnic_keycache_cfg keys; /* key caches: KEYCACHE_* */
	bool cma;		       /* process_vm_readv: CMA=auto, or off */
	bool membarrier;	       /* use it: MEMBARRIER=auto, or off */
	bool implicit;		     /* whole-address-space regions: IMPLICIT */
	enum shrimp_monitor monitor; /* who is watched: MONITOR */
	enum shrimp_mrc_mode mrc;    /* what is cached: MR_CACHE */
	enum shrimp_mrc_pin mrc_pin; /* MR_CACHE_PIN */
	enum shrimp_mrc_monitor mrc_monitor; /* MR_CACHE_MONITOR */
	size_t mrc_entries; /* idle ones above it go: MR_CACHE_ENTRIES */
	size_t mrc_bytes;   /* likewise, 0: no limit: MR_CACHE_BYTES */
	char *stats_file;   /* STATS, malloc'ed, or NULL */
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
