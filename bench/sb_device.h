/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A device without libfabric around it: its keys, and contexts that look them
 * up, in this process or another one.
 *
 * One thread for each object. Errors are said on stderr.
 */
#ifndef BENCH_SB_DEVICE_H
#define BENCH_SB_DEVICE_H

#include "shm/grace.h"
#include "shm/keycache.h"
#include "shm/mpt.h"
#include "shm/reader.h"

enum {
	SB_REGION_LEN = 1 << 20, /* bytes that a key names */
};

/* Of the policies of a key cache. */
extern const char *const sb_policy_name[RNIC_KEYCACHE_POLICIES];

/** A device and its keys; zeroed: closed. */
struct sb_device {
	struct rnic_device dev;	   /* ours */
	struct rnic_place place;   /* where lanes are claimed */
	struct rnic_addr addr;	   /* its name */
	struct rnic_mpt_owner mpt; /* its keys */
	uint64_t *key;		   /* live keys, made by the device */
	uint32_t keys;		   /* their number */
	uint32_t named;		   /* live keys 1, 2, 3... of the user's */
};

/** Who looks up; zeroed: closed. */
struct sb_reader {
	struct rnic_remote *r;	/* the device as seen from here */
	struct rnic_lane *lane; /* claimed there */
	void *cache;		/* memory of the key cache */
	struct rnic_ctx c;	/* its context */
	struct rnic_target t;	/* the device in it */
};

/* Says what failed. Returns @code. */
int sb_device_fail(const char *what, int code);

/*
 * Opens a device with @keys live keys. Returns 0, or a negative errno with
 * nothing to do but sb_device_close().
 */
int sb_device_open(struct sb_device *d, uint32_t keys);

/*
 * Publishes @n regions under keys of the user's, 1 to @n. Once. Returns 0 or a
 * negative errno.
 */
int sb_device_name(struct sb_device *d, uint32_t n);

/* Closes all; zeroed memory is accepted. */
void sb_device_close(struct sb_device *d);

/*
 * A new key of @d is made and taken back, as a registration and its close do
 * it. Returns 0 or a negative errno.
 */
int sb_device_remake(struct sb_device *d);

/*
 * Readies @rd to look up keys of the device that @addr names, with a key cache
 * as @cfg says. Returns as sb_device_open().
 */
int sb_reader_open(struct sb_reader *rd, const struct rnic_addr *addr,
		   const struct rnic_keycache_cfg *cfg);

/* Closes all; zeroed memory is accepted. */
void sb_reader_close(struct sb_reader *rd);

/*
 * One lookup of 64 bytes behind @key. Returns 0 or what rnic_resolve() says.
 */
static inline int sb_reader_look(struct sb_reader *rd, uint64_t key)
{
	struct rnic_want w = {
		.key = key, .addr = 64, .len = 64, .rights = RNIC_REMOTE_READ
	};
	struct rnic_xlat x;
	int ret;

	rnic_enter(&rd->t);
	ret = rnic_resolve(&rd->c, &rd->t, &w, &x);
	rnic_leave(&rd->t);
	return ret;
}

#endif
