/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Extensions of the shrimp provider, reached through fi_open_ops(3).
 *
 * A client includes this header, opens a fabric of provider "shrimp" (any
 * fabric object will do, also one opened only for this purpose) and asks:
 *
 *	struct fi_ops_shrimp_stats *ops;
 *	struct fi_shrimp_stats st = { .size = sizeof st };
 *
 *	ret = fi_open_ops(&fabric->fid, FI_SHRIMP_OPS_STATS, 0,
 *			  (void **)&ops, NULL);
 *	if (!ret)
 *		ret = ops->read(&fabric->fid, &st);
 *
 * Nothing here allocates for the caller; the ops table is static and stays
 * valid while the provider library is loaded.
 */
#ifndef FI_EXT_SHRIMP_H
#define FI_EXT_SHRIMP_H

#include <stddef.h>
#include <stdint.h>
#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name to pass to fi_open_ops() for struct fi_ops_shrimp_stats. */
#define FI_SHRIMP_OPS_STATS "shrimp_stats_1"

/*
 * How a message's payload travelled. New paths are appended before
 * FI_SHRIMP_PATH_MAX; fi_shrimp_stats.size tells which of them a client knows.
 */
enum fi_shrimp_path {
	FI_SHRIMP_PATH_INLINE, /* inside the 64-byte lane descriptor */
	FI_SHRIMP_PATH_RING,   /* in the lane's byte ring */
	FI_SHRIMP_PATH_POOL,   /* eagerly, in chunks of the sender's pool */
	FI_SHRIMP_PATH_STREAM, /* held at the sender, streamed after match */
	FI_SHRIMP_PATH_HEAP,   /* held in the sender's inject heap */
	FI_SHRIMP_PATH_CMA,    /* held, pulled by process_vm_readv: not yet */
	FI_SHRIMP_PATH_SELF,   /* from an endpoint to itself */
	FI_SHRIMP_PATH_SPARE,  /* not used yet; keeps the array even */
	FI_SHRIMP_PATH_MAX
};

/* Messages and payload bytes by path, in one direction. */
struct fi_shrimp_traffic {
	uint64_t msgs[FI_SHRIMP_PATH_MAX];  /* messages */
	uint64_t bytes[FI_SHRIMP_PATH_MAX]; /* payload bytes */
};

/*
 * What the device counted. A snapshot: each word is read once, the words are
 * not read at one instant. All counters only grow while their object lives.
 */
struct fi_shrimp_stats {
	size_t size;		     /* set by the caller: sizeof *this */
	struct fi_shrimp_traffic tx; /* published by this side */
	struct fi_shrimp_traffic rx; /* completed or queued by this side */
	uint64_t unexpected_msgs;    /* arrived before their receive */
	uint64_t held_msgs;	     /* payload stayed at the sender */
	uint64_t tx_queued;	     /* sends that waited for lane room */
	uint64_t tx_eagain;	     /* sends refused with -FI_EAGAIN */
	uint64_t peers;		     /* peer endpoints contacted */
	uint64_t peers_reset;	     /* peers found dead or closed */
	uint64_t dropped_msgs;	     /* lost with a dead peer, unmatched */
	uint64_t doorbells;	     /* doorbells rung for parked peers */
	uint64_t wakeups;	     /* sleeping peers woken by a write */
	uint64_t sleeps;	     /* times this side went to sleep */
	uint64_t attach_proc;	     /* peers attached through /proc */
	uint64_t attach_socket;	     /* peers attached over the socket */
};

/*
 * Operations behind FI_SHRIMP_OPS_STATS.
 */
struct fi_ops_shrimp_stats {
	size_t size; /* sizeof this table in the provider */
	/*
	 * Copies the counters of @fid into @stats: of the whole process, all
	 * domains ever opened in it, when @fid is a fabric (opened by anyone
	 * in the process); of one domain, with all its endpoints, when @fid
	 * is a domain.
	 * Any thread, no lock needed; does not block; makes no progress.
	 * @stats->size must be set; at most that many bytes are written and
	 * @stats->size is set to what was written.
	 * Returns 0, or -FI_EINVAL if @stats is NULL, its size is too small
	 * to hold the size field, or @fid is no fabric or domain of shrimp.
	 */
	int (*read)(struct fid *fid, struct fi_shrimp_stats *stats);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_SHRIMP_H */
