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
 * fi_open_ops() returns 0, -FI_ENOSYS (no such name, or not of this kind of
 * object), -FI_EINVAL (flags, no place for the table) or -FI_EOPBADSTATE (child
 * of a fork). The table is static and stays valid while the provider library is
 * loaded. It may grow: a call is there if the size in the table says so.
 *
 * Pointers to objects are those that libfabric gave, of this provider; those
 * of other kinds than a call takes are -FI_EINVAL. Codes that begin with -E
 * have no name in rdma/fi_errno.h; fi_strerror(3) knows them.
 */
#ifndef FI_EXT_SHRIMP_H
#define FI_EXT_SHRIMP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name to pass to fi_open_ops(), of a fabric or domain: fi_ops_shrimp_stats. */
#define FI_SHRIMP_OPS_STATS "shrimp_stats_1"

/* Name to pass to fi_open_ops(), of a domain, for struct fi_ops_shrimp_mem. */
#define FI_SHRIMP_OPS_MEM "shrimp_mem_1"

/* Name to pass to fi_open_ops(), of a domain, for struct fi_ops_shrimp_mr. */
#define FI_SHRIMP_OPS_MR "shrimp_mr_1"

/* Name to pass to fi_open_ops(), of a domain: struct fi_ops_shrimp_cache. */
#define FI_SHRIMP_OPS_CACHE "shrimp_cache_1"

/*
 * fi_eq_read(3): event of fi_ops_shrimp_mr.close_async; its entry is a
 * struct fi_eq_entry: @fid the address that the closed object had, @context as
 * given to the call, @data the key.
 */
#define FI_SHRIMP_MR_CLOSED (FI_PROV_SPECIFIC | 1)

/* Flags of completions: what was posted by fi_ops_shrimp_mr. */
#define FI_SHRIMP_REG	     (1ULL << 61) /* post_reg */
#define FI_SHRIMP_INVALIDATE (1ULL << 62) /* post_invalidate */

/*
 * Flag of fi_mr_regattr(3) and the calls like it, of one range: its pages come
 * at the first touch, by whoever touches them. Registering costs the same
 * whatever the length, pins nothing, and does not look whether anything is
 * mapped there; what is, is found out page by page. An access to what is not
 * ends in FI_EFAULT, and the next one is looked up anew. The key covers
 * addresses: what is mapped there later is reached in its turn. (A range of
 * 2^47 bytes or more covers the whole address space with or without it.)
 */
#define FI_SHRIMP_ON_DEMAND (1ULL << 60)

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

/* How a one-sided operation got to the memory it was for. */
enum fi_shrimp_reach {
	FI_SHRIMP_REACH_MAPPED, /* load, store, CPU atomics on shared pages */
	FI_SHRIMP_REACH_CMA,	/* process_vm_readv, process_vm_writev */
	FI_SHRIMP_REACH_OWNER,	/* its owner executed it */
	FI_SHRIMP_REACH_SPARE,	/* not used */
	FI_SHRIMP_REACH_MAX
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
	uint64_t rma_ops[FI_SHRIMP_REACH_MAX];	  /* fi_rma(3), by this side */
	uint64_t rma_bytes[FI_SHRIMP_REACH_MAX];  /* bytes of them */
	uint64_t atomic_ops[FI_SHRIMP_REACH_MAX]; /* fi_atomic(3), likewise */
	uint64_t served; /* parts of operations executed for peers */
	/* registration on demand */
	uint64_t page_asks;	    /* this side asked for a peer's pages */
	uint64_t page_requests;	    /* peers asked this side for pages */
	uint64_t page_faults;	    /* pages made present at a touch */
	uint64_t page_merged;	    /* touches that another's fault served */
	uint64_t pages_prefetched;  /* pages made present by advice */
	uint64_t pages_invalidated; /* pages that went, or were refreshed */
	uint64_t mrs_gone;	    /* other regions whose memory did */
	uint64_t mrs_implicit;	    /* whole-address-space registrations */
	/* registration cache */
	uint64_t cache_hits;	  /* ranges found */
	uint64_t cache_misses;	  /* ranges looked at, and kept */
	uint64_t cache_uncached;  /* ranges that could not be kept */
	uint64_t cache_evictions; /* dropped at a limit, or by flush */
	uint64_t cache_unmapped;  /* dropped: unmapped or replaced */
	uint64_t cache_moved;	  /* dropped: moved by mremap(2) */
	uint64_t cache_discarded; /* dropped: given up by madvise(2) */
	uint64_t cache_told;	  /* dropped: unmap_begin, or memory freed */
	uint64_t cache_lost;	  /* dropped: an event may have been missed */
	uint64_t cache_merged;	  /* dropped: part of a larger one now */
	uint64_t cache_entries;	  /* ranges in it now */
	uint64_t cache_bytes;	  /* and their bytes */
	uint64_t cache_pinned;	  /* bytes it keeps locked now */
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
	 * Any thread, no lock needed; does not wait for peers; makes no
	 * progress.
	 * @stats->size must be set; at most that many bytes are written and
	 * @stats->size is set to what was written.
	 * Returns 0, or -FI_EINVAL if @stats is NULL, its size is too small
	 * to hold the size field, or @fid is neither a fabric nor a domain,
	 * or -FI_EOPBADSTATE (child of a fork): @stats is as it was then.
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
	 * present, aligned to @align bytes (a power of two up to 1 GiB, 0: a
	 * page). Any thread; may sleep while pages are made. The memory is the
	 * caller's until free; what is left when the domain closes is unmapped
	 * then. Returns 0 with *@ptr; else *@ptr is as it was: -FI_EINVAL (no
	 * domain, @len 0 or above 64 TiB, @align), -FI_ENOMEM, -FI_ENOSPC (no
	 * room in the arena, no pages for it), -FI_EOPBADSTATE (child of a
	 * fork). All of it is made present at once; more than the kernel says
	 * is available (/proc/meminfo) is refused, -FI_ENOMEM. What others
	 * take meanwhile, or a control group allows, is not known: then the
	 * kernel may end processes for it. Partner: free.
	 */
	int (*alloc)(struct fid *fid, size_t len, size_t align, void **ptr);
	/*
	 * Frees what alloc placed at @ptr. Regions in it have been closed
	 * before. Any thread; does not wait for peers: its place is given out
	 * again when none can be there any more. Allowed in a child of a fork,
	 * whose own copy it frees. Returns 0 or -FI_EINVAL (no domain, or
	 * nothing was allocated there).
	 */
	int (*free)(struct fid *fid, void *ptr);
	/*
	 * Asks the kernel on which NUMA nodes the pages of bytes @off, @len of
	 * region @mr lie, counted from its start and within one of its ranges;
	 * pages of the kernel's small size. @node[i] becomes the node of page
	 * i, for at most @n pages, or a negative FI_ code: -FI_ENOENT (this
	 * process has not touched it), -FI_EFAULT (nothing is mapped there).
	 * Any thread; does system calls, makes no page. Present if size says
	 * so. Returns the number of pages of the range, which may be more than
	 * @n; or -FI_EINVAL (no region, @len 0, beyond the range), -FI_ENOSYS
	 * (no libnuma, or a kernel without NUMA), -FI_EOPBADSTATE (child of a
	 * fork).
	 */
	ssize_t (*nodes)(struct fid_mr *mr, size_t off, size_t len, int *node,
			 size_t n);
};

/* What advise may be asked for. */
enum fi_shrimp_advice {
	FI_SHRIMP_PREFETCH_READ = 1,  /* pages to be read */
	FI_SHRIMP_PREFETCH_WRITE = 2, /* pages to be written, and read */
};

/*
 * What fi_shrimp_mr_info.flags says. A key that is not LIVE is refused: it is
 * not enabled, its refresh (of a window, one of a region of its) failed, or all
 * of its memory is gone. PINNED is of a window if its regions have locked all
 * that it has of them, of a region also if an entry of the cache that it uses
 * has, and of a region on demand only if every page is present.
 * GONE: the unmap monitor found that memory was unmapped, and what is mapped
 * there by now is not reached (FI_EFAULT). A region is gone as a whole, until
 * it is refreshed; a window that is LIVE has lost parts only. Pages of a region
 * on demand become absent instead.
 */
enum fi_shrimp_mr_flag {
	FI_SHRIMP_MR_LIVE = 1 << 0,	 /* its key can be used now */
	FI_SHRIMP_MR_WINDOW = 1 << 1,	 /* a window, else a region */
	FI_SHRIMP_MR_ON_DEMAND = 1 << 2, /* pages come at the first touch */
	FI_SHRIMP_MR_IMPLICIT = 1 << 3,	 /* most of the address space */
	FI_SHRIMP_MR_LIST = 1 << 4,	 /* several ranges under one key */
	FI_SHRIMP_MR_OFFSET = 1 << 5,	 /* addressed from 0, else by address */
	FI_SHRIMP_MR_GIVEN = 1 << 6,	 /* peers may use the key */
	FI_SHRIMP_MR_PINNED = 1 << 7,	 /* all its pages are locked by it */
	FI_SHRIMP_MR_GONE = 1 << 8,	 /* memory was unmapped under it */
};

/* Entries of fi_shrimp_mr_info.leaves. */
enum fi_shrimp_mr_leaf {
	FI_SHRIMP_LEAF_EXTENT, /* any number of pages that follow each other */
	FI_SHRIMP_LEAF_4K,     /* small pages */
	FI_SHRIMP_LEAF_2M,     /* 2 MiB */
	FI_SHRIMP_LEAF_1G,     /* 1 GiB */
	FI_SHRIMP_LEAF_MAX
};

/* A region or window: its entry in the device's tables, and its translation. */
struct fi_shrimp_mr_info {
	size_t size;	    /* set by the caller: sizeof *this */
	uint64_t key;	    /* FI_KEY_NOTAVAIL: none yet, or none any more */
	uint64_t addr;	    /* first address of the first range */
	uint64_t len;	    /* bytes, of all ranges */
	uint64_t access;    /* FI_ bits as registered, or bound */
	uint64_t version;   /* of its MPT slot, odd: invalid; 0: it has none */
	uint64_t binding;   /* number of the binding; 0: it has no slot */
	uint32_t slot;	    /* MPT slot, if version is not 0 */
	uint32_t flags;	    /* enum fi_shrimp_mr_flag */
	uint64_t windows;   /* that are bound to it */
	uint64_t mtt_pages; /* table pages (4 KiB) of its own */
	/* of its translation, by size; absent and gone pages have none */
	uint64_t leaves[FI_SHRIMP_LEAF_MAX];
	uint64_t faults;      /* on demand: pages that came at a touch */
	uint64_t prefetched;  /* and before it */
	uint64_t invalidated; /* and that went again */
};

/*
 * What fi_shrimp_mr_piece.state says. ABSENT and GONE pieces have no leaf, no
 * space, and no other bit: what this process has mapped there is not looked at.
 */
enum fi_shrimp_piece_state {
	FI_SHRIMP_PIECE_PRESENT = 1 << 0, /* its pages are known to be there */
	FI_SHRIMP_PIECE_PINNED = 1 << 1,  /* and are locked by the region */
	FI_SHRIMP_PIECE_ABSENT = 1 << 2,  /* on demand: come at a touch */
	FI_SHRIMP_PIECE_GONE = 1 << 3,	  /* were unmapped, see above */
};

/*
 * Pages that follow each other in a region and are alike. @leaf is 0 of one
 * extent, and where there are no leaves. @space: 0 memory of the device, 1 to
 * 255 a memory file of the application, -1 reached by address, or not at all.
 * @node: NUMA node, as the kernel says, or a negative FI_ code: -FI_ENOENT (not
 * touched), -FI_EFAULT (not mapped), -FI_ENOSYS (not known, or not asked for:
 * absent, gone, most of the address space).
 */
struct fi_shrimp_mr_piece {
	uint64_t addr;	/* owner's address of its first byte */
	uint64_t len;	/* bytes */
	uint32_t leaf;	/* log2 of the leaves: 12, 21, 30; or 0 */
	int32_t space;	/* where it lies */
	int32_t node;	/* on which node */
	uint32_t state; /* enum fi_shrimp_piece_state */
};

/* A part of a region, for a window. */
struct fi_shrimp_mr_part {
	struct fid_mr *mr; /* region with a key, no window */
	uint64_t off;	   /* first byte, from the region's start */
	uint64_t len;	   /* bytes, not 0, within the region */
};

/*
 * Registration beyond fi_mr(3), and memory windows, behind FI_SHRIMP_OPS_MR of
 * a domain. Objects are those of fi_mr(3): struct fid_mr, closed by
 * fi_close(), with fi_mr_key() and fi_mr_desc(). Where FI_MR_LOCAL is in force
 * a window has no descriptor (NULL), and that of a region is good once it is
 * registered, and enabled where it has to be, until it is closed, but for the
 * time of a refresh, and after one that failed.
 *
 * A window is a key of its own onto parts of live regions of its domain, with
 * some of their rights. Binding it pins nothing. It begins, and ends, bound to
 * nothing (NULL), and has no key then (FI_KEY_NOTAVAIL). Its addresses are
 * those of its domain's mode: offsets from 0, or (FI_MR_VIRT_ADDR) addresses
 * from that of its first byte on. Counters bound to a region do not count what
 * comes through a window. A region with windows cannot be closed (-FI_EBUSY);
 * if it is refreshed they follow it. Of a region on demand they touch pages as
 * the region's own key does; memory that is unmapped under a region is gone for
 * windows onto it as for the region.
 *
 * All calls may be made by any thread, each object by one at a time, and, if
 * they are made by a child of a fork, return -FI_EOPBADSTATE. None makes
 * progress; those that wait, for peers that are using a key at that moment, say
 * so: a peer is waited for until it has moved what it is moving, at most
 * 512 KiB; a dead one is not waited for, one that is stopped there is, with a
 * warning.
 */
struct fi_ops_shrimp_mr {
	size_t size; /* sizeof this table in the provider */
	/*
	 * Registers @n regions of domain @domain, each as
	 * fi_mr_regattr(@attr[i], @flags) would, in one call: fixed costs are
	 * paid once, and ranges that follow each other page by page with the
	 * same access are pinned as one. No key is live before it is sure that
	 * all will be. May sleep while pages come.
	 * Returns 0 with all of @mr, or, with @mr as it was and nothing left
	 * of any of them, what fi_mr_regattr() says of the first that failed:
	 * -FI_EINVAL (also @n 0), -FI_ENOSYS (not memory of the host),
	 * -FI_EOPNOTSUPP (FI_SHRIMP_IMPLICIT=off), -FI_EFAULT, -FI_ENOKEY (a
	 * key is taken, or wanted twice), -FI_ENOMEM (also a pin that is
	 * required, or no thread for the agent), -FI_ENOSPC, -EFBIG, or, if
	 * the first of its kind needs the agent, -FI_EMFILE.
	 */
	int (*reg_batch)(struct fid *domain, const struct fi_mr_attr *attr,
			 size_t n, uint64_t flags, struct fid_mr **mr);
	/*
	 * fi_mr_refresh(3) of one range (NULL: all of the region): the pages
	 * behind it are others by now. Its key, and those of windows onto it,
	 * mean nothing while the call lasts: what peers begin then fails with
	 * FI_EKEYREJECTED, what they had begun has come to an end before the
	 * new pages can be reached, or goes on in them if it did not look
	 * meanwhile. Waits for peers; may sleep while pages come. Pages of a
	 * region on demand, here only those of the range, become absent, and
	 * come at their next touch as they are then; it needs this only for
	 * changes that no monitor hears of, as by mprotect(2).
	 * Returns 0; -FI_EINVAL (a window, a region of acquire; the range is
	 * not in the region), -FI_EBUSY (another refresh, or a close, is under
	 * way): then nothing happened; or -FI_EFAULT, -FI_ENOMEM, -FI_ENOSPC,
	 * what starting the agent says (see reg_batch), and what membarrier(2)
	 * says: then the keys stay without a meaning until a refresh succeeds
	 * or they are closed.
	 */
	int (*update)(struct fid_mr *mr, const struct iovec *range);
	/*
	 * Tells of region or window @mr: the fields of @info (may be NULL) that
	 * its size has, and pieces of its translation, in order: *@n of them
	 * at most at @piece; *@n becomes their number, which may be more. @n
	 * NULL: no pieces, and the kernel is asked nothing. It is asked for the
	 * node of each page that is not absent, so pieces of large regions take
	 * time. Of most of the address space (FI_SHRIMP_MR_IMPLICIT) there is
	 * one piece. What changes meanwhile (pages that come or go) is told as
	 * it was or as it is.
	 * Does not wait for peers, but for pages of a region on demand that are
	 * coming. Returns 0, -FI_EINVAL (@info's size has no room for the size,
	 * no @piece for *@n) or -FI_EBUSY (a refresh is under way, of a window
	 * one of a region of its): then nothing is written.
	 */
	int (*query)(struct fid_mr *mr, struct fi_shrimp_mr_info *info,
		     struct fi_shrimp_mr_piece *piece, size_t *n);
	/*
	 * Closes region or window @mr without waiting: no peer finds its key
	 * after the call. When nobody touches the memory any more the object
	 * is freed, its pages are unlocked, and event FI_SHRIMP_MR_CLOSED with
	 * @context is put into @eq; several events come in any order. Until
	 * then domain and EQ cannot be closed (-FI_EBUSY), and @mr must not be
	 * used. If the kernel refuses the fence, the event is an error
	 * (fi_eq_readerr(3), the same fid, context and data) and @mr is to be
	 * closed once more. A thread of the
	 * provider waits; without it registration calls, progress and
	 * fi_eq_read(3) of @eq look.
	 * Returns 0; -FI_EINVAL (no EQ of the same fabric, a region of
	 * acquire), -FI_EBUSY (windows are bound to it, a refresh or a posted
	 * operation is under way), -FI_ENOMEM: then nothing happened.
	 */
	int (*close_async)(struct fid_mr *mr, struct fid_eq *eq, void *context);
	/*
	 * Makes a window, bound to nothing, of domain @domain; @context as in
	 * fi_mr_reg(3). fi_close() invalidates and frees it, which waits for
	 * peers; the domain cannot be closed before. Returns 0 with *@mw,
	 * -FI_EINVAL or -FI_ENOMEM.
	 */
	int (*window)(struct fid *domain, void *context, struct fid_mr **mw);
	/*
	 * Binds window @mw to @part, with rights @access, some of the
	 * region's. Its key is a new one of the provider's with
	 * FI_MR_PROV_KEY, else @requested_key. If it is bound it is
	 * invalidated first, as by invalidate_window, and waits for peers.
	 * Returns 0; -FI_EINVAL (no window; the part is not within a region of
	 * the domain, or is of a window or of acquire; access is 0 or more
	 * than the region's): @mw stays bound as it was; or, bound to nothing
	 * then, -FI_EINVAL (the region is not enabled), -FI_ENOKEY (the key is
	 * taken), -FI_EBUSY (the region is being refreshed, or that failed, or
	 * is being closed), -FI_ENOMEM, -FI_ENOSPC.
	 * -FI_EBUSY also if a posted operation of @mw is under way, and what
	 * membarrier(2) says: then it is not known whether peers still use the
	 * old key.
	 */
	int (*bind_window)(struct fid_mr *mw,
			   const struct fi_shrimp_mr_part *part,
			   uint64_t access, uint64_t requested_key);
	/*
	 * Takes the key of bound window @mw back: when it returns nobody uses
	 * it any more. Waits for peers.
	 * Returns 0, -FI_EINVAL (no window, or not bound), -FI_EBUSY (a posted
	 * operation is under way), what membarrier(2) says: call it again.
	 */
	int (*invalidate_window)(struct fid_mr *mw);
	/*
	 * Fast registration, of memory that is registered: posts the binding
	 * of window @mw, bound to nothing, to @n parts (1 to 16, of one or more
	 * regions; at most 16 ranges in all) on the transmit queue of endpoint
	 * @ep of the same domain. Done in the order of the calls: what is
	 * posted on @ep afterwards may use, or tell, the key, which fi_mr_key()
	 * gives when the call has returned. @access, @requested_key: as
	 * bind_window.
	 * @flags: those of fi_sendmsg(3) but FI_INJECT, FI_REMOTE_CQ_DATA and
	 * FI_MATCH_COMPLETE; FI_FENCE: after all that @ep has under way.
	 * Completes in the transmit CQ with @context and flags FI_SHRIMP_REG
	 * (FI_COMPLETION asks for it where completions are selective), and
	 * counts for the counter of FI_SEND. Never waits for a peer.
	 * Returns 0; errors are told by the call, which has done nothing then:
	 * -FI_EAGAIN (as sends: make progress, try again), -FI_EINVAL (as
	 * bind_window; @n, flags, more than 16 ranges, another domain's @ep),
	 * -FI_EBUSY (@mw is bound or has a posted operation; a region is being
	 * refreshed or closed, or its refresh failed), -FI_ENOKEY,
	 * -FI_ENOMEM, -FI_ENOSPC, -FI_EOPBADSTATE (also: @ep is not enabled).
	 */
	ssize_t (*post_reg)(struct fid_ep *ep, struct fid_mr *mw,
			    const struct fi_shrimp_mr_part *parts, size_t n,
			    uint64_t access, uint64_t requested_key,
			    uint64_t flags, void *context);
	/*
	 * Posts the invalidation of bound window @mw. No peer finds its key
	 * after the call. It completes, as post_reg but with
	 * FI_SHRIMP_INVALIDATE, when nobody uses the key any more: in the call
	 * if no peer is using a key of this domain at that moment, else with
	 * later progress. Never waits for a peer. Until then the window cannot
	 * be bound or closed (-FI_EBUSY); its regions can be closed (which
	 * waits). It cannot be cancelled; if @ep is closed before, it has no
	 * completion, and invalidate_window or fi_close() end it.
	 * Returns 0; -FI_EAGAIN (as post_reg), -FI_EINVAL (no window, or not
	 * bound; flags, another domain's @ep), -FI_EBUSY (a posted operation
	 * of it is under way), -FI_ENOMEM, -FI_EOPBADSTATE (also: @ep is not
	 * enabled): nothing happened. If membarrier(2) is refused the
	 * completion is an error, and invalidate_window is to be called.
	 */
	ssize_t (*post_invalidate)(struct fid_ep *ep, struct fid_mr *mw,
				   uint64_t flags, void *context);
	/*
	 * Makes the pages of bytes @off, @len of @mr, counted from its start,
	 * present now: a region, no window, with FI_SHRIMP_ON_DEMAND, which is
	 * enabled and which peers may use. @advice: enum fi_shrimp_advice; the
	 * region has the right, local or remote. Any thread; sleeps while pages
	 * come.
	 * Returns 0, or with some of them present -FI_EINVAL (no such region or
	 * advice, @len 0, beyond the end), -FI_EACCES (the right), -FI_EFAULT
	 * (not all is mapped, or not writable), -FI_EAGAIN (they go as fast as
	 * they come), -FI_ENOMEM, -FI_ENOSPC (tables, or pins that are
	 * required), -FI_EOPBADSTATE (child of a fork).
	 */
	int (*advise)(struct fid_mr *mr, size_t off, size_t len,
		      uint32_t advice);
};

/*
 * The registration cache of a domain, behind FI_SHRIMP_OPS_CACHE: regions that
 * are registered once and found again, and how an allocator or a runtime tells
 * of memory that goes. FI_SHRIMP_MR_CACHE=off: acquire registers each time.
 * If made by a child of a fork all calls return -FI_EOPBADSTATE.
 */
struct fi_ops_shrimp_cache {
	size_t size; /* sizeof this table in the provider */
	/*
	 * A region of domain @domain with rights @access, and maybe more, that
	 * covers @len bytes at @buf, and maybe more: one that was released, or
	 * is in use, or a new one. It is not closed (fi_close(): -FI_EBUSY)
	 * but released, is bound to nothing, and its memory is not locked
	 * unless FI_SHRIMP_MR_CACHE_PIN=keep. Where its addresses are
	 * offsets they count from the start of the region: query of struct
	 * fi_ops_shrimp_mr tells. Any thread; a hit takes no lock.
	 * Returns 0 with *@mr; else *@mr is as it was: -FI_EINVAL (@len 0, a
	 * range that wraps or ends in the last page there is, an unknown
	 * right, a remote right where keys are the client's, as they are
	 * unless it offers FI_MR_PROV_KEY and FI_SHRIMP_MR_MODE has prov_key,
	 * or where regions are bound to endpoints); -FI_EFAULT (not mapped, or
	 * not with that protection), -FI_ENOMEM, -FI_ENOSPC, and what starting
	 * the agent says (see reg_batch). Partner: release.
	 */
	int (*acquire)(struct fid *domain, const void *buf, size_t len,
		       uint64_t access, struct fid_mr **mr);
	/*
	 * Gives @mr of acquire back. It stays registered until it is evicted,
	 * its memory goes, a larger one takes its place, or flush; its key and
	 * its descriptor can be used until then, so who tells the key to peers
	 * trusts them. If its memory went while it was in use the last release
	 * closes it. Any thread; takes no lock unless it, or others above a
	 * limit, are to be closed, which waits for peers that use their keys.
	 * Returns 0 or -FI_EINVAL (not of acquire, or released already).
	 */
	int (*release)(struct fid_mr *mr);
	/*
	 * Before @len bytes at @addr are unmapped, replaced, moved, given up or
	 * truncated by whatever means, and unmap_end with the same values
	 * after that, also if it failed: nothing of them is cached between the
	 * two. For all domains of this process. Required with
	 * FI_SHRIMP_MR_CACHE_MONITOR=notify, harmless with others. Any thread,
	 * also one that holds the allocator's locks: no lock is taken, nothing
	 * allocated. Nests. Returns 0 or -FI_EINVAL (no domain, @len 0, a range
	 * that wraps or ends in the last page there is): nothing was begun
	 * then. Partner: unmap_end.
	 */
	int (*unmap_begin)(struct fid *domain, const void *addr, size_t len);
	/*
	 * Ends what unmap_begin, with the same values, has begun; each of them
	 * once. Any thread, as above. Returns as that does.
	 */
	int (*unmap_end)(struct fid *domain, const void *addr, size_t len);
	/*
	 * Drops what nobody uses from the cache of @domain. Any thread; waits
	 * for peers that use a key of it. Returns 0 or -FI_EINVAL.
	 */
	int (*flush)(struct fid *domain);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_SHRIMP_H */
