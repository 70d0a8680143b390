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

/* Name to pass to fi_open_ops(), of a domain, for struct fi_ops_shrimp_mem. */
#define FI_SHRIMP_OPS_MEM "shrimp_mem_1"

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
 * What fi_cq_err_entry.err_data holds when an RMA operation failed: which
 * access at the peer was refused, and why. The entry's len is the number of
 * bytes moved before it, its olen the number that were not.
 */
struct fi_shrimp_access_error {
	uint64_t key;  /* as the operation gave it */
	uint64_t addr; /* where the refused access began */
	uint64_t len;  /* and its length */
	uint32_t pid;  /* process of the peer */
	uint32_t err;  /* FI_ code, as in the entry */
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

/*
 * Memory of the device, behind FI_SHRIMP_OPS_MEM: peers reach what is
 * registered there by load and store, not by system calls.
 */
struct fi_ops_shrimp_mem {
	size_t size; /* sizeof this table in the provider */
	/*
	 * Allocates @len bytes of the device of domain @fid, zeroed and
	 * present, aligned to @align (a power of two, 0: a page). Any thread;
	 * may sleep while pages are made. Returns 0 with *@ptr, or -FI_EINVAL,
	 * -FI_ENOMEM, -FI_ENOSPC, -FI_EOPBADSTATE (child of a fork).
	 */
	int (*alloc)(struct fid *fid, size_t len, size_t align, void **ptr);
	/*
	 * Frees what alloc placed at @ptr; regions in it are closed. Any
	 * thread. Returns 0 or -FI_EINVAL (nothing was allocated there).
	 */
	int (*free)(struct fid *fid, void *ptr);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_SHRIMP_H */
