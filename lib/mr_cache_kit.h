/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the tests of the registration cache share: a domain without libfabric's
 * core, memory of both kinds, and a monitor that says what the test wants.
 *
 * One thread at a time; what cannot be done fails the test.
 */
#ifndef SHRIMP_MR_CACHE_KIT_H
#define SHRIMP_MR_CACHE_KIT_H

#include <stddef.h>
#include <stdint.h>

#include "include/rdma/fi_ext_shrimp.h"
#include "lib/domain.h"
#include "lib/mr_cache.h"
#include "lib/settings.h"

enum {
	MCK_PAGE = 4096,
	MCK_RW = SHRIMP_MRC_R | SHRIMP_MRC_W,
	MCK_FILE = MCK_RW | SHRIMP_MRC_FILE,
};

/* A domain. */
struct mck_bed {
	struct fid_fabric *fabric;	       /* its fabric */
	struct shrimp_settings *set;	       /* of it */
	struct shrimp_domain *d;	       /* NULL: not open yet */
	const struct fi_ops_shrimp_cache *ops; /* acquire and the like */
};

/* Opens the fabric; the settings, everything cached, may be changed then. */
void mck_fabric(struct mck_bed *b);

/* Opens the domain. */
void mck_domain(struct mck_bed *b);

/* Both, with the monitor below if @fake. */
void mck_open(struct mck_bed *b, bool fake);

/* Closes both: nothing of the cache may be left. */
void mck_close(struct mck_bed *b);

/* @len private bytes, written. Partner: munmap(2). */
char *mck_private(size_t len);

/* @len bytes of a sealed memory file, each page with its number + 1. */
char *mck_file(size_t len, int *fd);

/* An entry for @len bytes at @p, in use, or NULL: not cached. */
struct shrimp_cached *mck_get(struct mck_bed *b, void *p, size_t len,
			      uint32_t want);

/* mck_get() and back: true if it was cached, and found. */
bool mck_hits(struct mck_bed *b, void *p, size_t len, uint32_t want);

/* Likewise: true if it is cached now, found or new. */
bool mck_keeps(struct mck_bed *b, void *p, size_t len, uint32_t want);

/* The counters of the cache. */
struct fi_shrimp_stats mck_stats(struct mck_bed *b);

/* A region of acquire; or its error, and *@mr NULL. */
int mck_acquire(struct mck_bed *b, void *p, size_t len, uint64_t access,
		struct fid_mr **mr);

/* ---- a monitor ---- */

/* The calls of it that a test can be in. */
enum mck_call { MCK_WATCH, MCK_UNWATCH, MCK_LOOK, MCK_CYCLE, MCK_CALLS };

/* What it says, and what it was asked. Cleared by mck_open(). */
struct mck_fake {
	unsigned int calls[MCK_CALLS]; /* how often */
	int watch;		       /* what watch says */
	int look;		       /* what look says */
	uint64_t cycle;		       /* the number */
	uint64_t watched;	       /* bytes */
	/* in call @nth, counted from 1, of @which; NULL: nothing */
	void (*hook)(enum mck_call which, unsigned int nth);
};

extern struct mck_fake mck_fake;

/* What the monitor's thread does: memory at @p, @len, went. */
void mck_event(struct mck_bed *b, void *p, size_t len, enum rnic_gone what);

#endif /* SHRIMP_MR_CACHE_KIT_H */
