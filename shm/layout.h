/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The shared memory of a device: everything another process sees.
 *
 * A device (one libfabric domain) owns three sparse, sealed memfds:
 *
 *   tables   header, counters, key caches, MPT, user-key index, MTT pages;
 *            written by the owner alone (the seal enforces it), peers map
 *            read-only
 *   mailbox  endpoint heads (descriptor, doorbell, lane directory) and lanes;
 *            peers map single heads and single lanes read-write
 *   arena    per endpoint the chunk pool and the inject heap, then the
 *            device's memory for users; written by the owner (and, by RMA,
 *            by peers), mapped by peers in windows
 *
 * Nothing here is a pointer: offsets, indices and sequence numbers only.
 * Whatever a peer wrote is loaded once into a local, bounded, then used
 * (contract L3). doc/design.md has the table of every word: writer, readers,
 * order, and what happens if the writer dies there.
 */
#ifndef RNIC_LAYOUT_H
#define RNIC_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/atomic.h"

enum {
	RNIC_LINE = 64,	  /* cache line, bytes */
	RNIC_PAGE = 4096, /* small page, bytes */

	RNIC_VERSION = 4,	    /* of everything in this file */
	RNIC_EP_MAX = 256,	    /* endpoint places of a device */
	RNIC_LANE_MAX = 4096,	    /* lanes into one endpoint */
	RNIC_LANE_LINES = 64,	    /* descriptors in a lane's ring */
	RNIC_RING_BYTES = 8192,	    /* a lane's byte ring */
	RNIC_RING_MSG_MAX = 1024,   /* largest payload in the byte ring */
	RNIC_INLINE_MAX = 40,	    /* payload inside a descriptor */
	RNIC_RET_ENTRIES = 32,	    /* entries of a lane's return ring */
	RNIC_FILTER_BITS = 4096,    /* announce filter, bits */
	RNIC_MTT_FANOUT = 512,	    /* entries of an MTT page */
	RNIC_CTX_PER_EP = 2,	    /* execution contexts: caller, agent */
	RNIC_SPACES = 256,	    /* what a leaf can name; 0: the arena */
	RNIC_ASK_PAGES = 512 << 10, /* most bytes of a page request */
	RNIC_SLOT_BITS = 24,	    /* MPT slot in a provider key */
	RNIC_GEN_BITS = 40,	    /* generation, above the slot */
	RNIC_INDEX_SHIFT_MIN = 12,  /* smallest user-key index: 64 KiB */

	RNIC_POOL_SMALL = 2048, /* small chunk, bytes */
	RNIC_POOL_LARGE = 8192, /* large chunk, bytes */
};

/* First address of the page of @a. */
static inline uint64_t rnic_page_down(uint64_t a)
{
	return a & ~(uint64_t)(RNIC_PAGE - 1);
}

/* The same of the page that begins at @a or behind it. */
static inline uint64_t rnic_page_up(uint64_t a)
{
	return rnic_page_down(a + RNIC_PAGE - 1);
}

#define RNIC_MAGIC_TABLES  UINT64_C(0x7461627072687368)
#define RNIC_MAGIC_MAILBOX UINT64_C(0x6c69616d72687368)
#define RNIC_MAGIC_ADDR	   UINT32_C(0x6d726873)

/* Sizes and places inside the mailbox, in bytes. */
#define RNIC_LANE_SIZE	 UINT64_C(16384)
#define RNIC_HEAD_SIZE	 UINT64_C(65536)
#define RNIC_EP_STRIDE	 (RNIC_HEAD_SIZE + RNIC_LANE_MAX * RNIC_LANE_SIZE)
#define RNIC_MAILBOX_EP0 UINT64_C(65536)

/* Sizes and places inside the arena, in bytes. */
#define RNIC_ARENA_EP_STRIDE (UINT64_C(1) << 30)
#define RNIC_POOL_MAX	     (UINT64_C(16) << 20)
#define RNIC_HEAP_OFF	     RNIC_POOL_MAX
#define RNIC_HEAP_MAX	     (RNIC_ARENA_EP_STRIDE - RNIC_HEAP_OFF)
#define RNIC_ARENA_USER	     (RNIC_EP_MAX * RNIC_ARENA_EP_STRIDE)

/* What rnic_addr.kind says. */
enum rnic_addr_kind {
	RNIC_ADDR_ENDPOINT = 1, /* names one endpoint of one device */
	RNIC_ADDR_SERVICE = 2,	/* names a service; resolved at first use */
};

/*
 * The name of an endpoint, as fi_getname() returns it: fixed size, so that
 * clients can exchange a blob of them. Written by the owner, copied about by
 * anybody, trusted by nobody: attach checks each field against the kernel
 * and the device's header.
 */
struct rnic_addr {
	uint32_t magic;	 /* RNIC_MAGIC_ADDR */
	uint8_t version; /* RNIC_VERSION */
	uint8_t kind;	 /* enum rnic_addr_kind */
	uint16_t ep;	 /* endpoint place, below RNIC_EP_MAX */
	uint32_t uid;	 /* effective user of the owner */
	uint32_t pid;	 /* in the owner's pid namespace */
	union {
		struct {
			uint32_t ep_gen;      /* incarnation of the place */
			uint32_t tables_fd;   /* descriptor in the owner */
			uint64_t incarnation; /* random, names the socket */
			uint64_t identity;    /* hash: start time, stack */
			uint64_t ns;	      /* hash: namespaces, boot */
			uint64_t dev;	      /* st_dev of the tables */
			uint64_t ino;	      /* st_ino of the tables */
		};
		char service[48]; /* RNIC_ADDR_SERVICE: NUL padded */
	};
};
_Static_assert(sizeof(struct rnic_addr) == 64, "fixed size of names");

/* ------------------------------------------------------------------ */
/* tables: written by the owner only                                    */

enum rnic_feature {
	RNIC_FEAT_MEMBARRIER = 1u << 0, /* owner can fence its senders */
};

/*
 * First page of the tables. Complete before the first address of the device
 * is handed out, constant afterwards.
 */
struct rnic_header {
	uint64_t magic;		 /* RNIC_MAGIC_TABLES, stored last */
	uint32_t version;	 /* RNIC_VERSION */
	uint32_t features;	 /* enum rnic_feature bits */
	uint64_t incarnation;	 /* same as in the address */
	uint64_t identity;	 /* same as in the address */
	uint64_t ns;		 /* same as in the address */
	uint32_t pid;		 /* of the owner, in its namespace */
	uint32_t uid;		 /* effective user of the owner */
	int32_t mailbox_fd;	 /* descriptor number in the owner */
	int32_t arena_fd;	 /* descriptor number in the owner */
	uint64_t mailbox_ino;	 /* st_ino of the mailbox */
	uint64_t arena_ino;	 /* st_ino of the arena */
	uint64_t tables_size;	 /* bytes */
	uint64_t mailbox_size;	 /* bytes */
	uint64_t arena_size;	 /* bytes */
	uint64_t stats_off;	 /* struct rnic_stats, RNIC_EP_MAX of them */
	uint64_t mpt_head_off;	 /* struct rnic_mpt_head */
	uint64_t paging_off;	 /* struct rnic_paging */
	uint64_t space_off;	 /* struct rnic_space, RNIC_SPACES of them */
	uint64_t cache_off;	 /* struct rnic_cache, one per context */
	uint64_t cache_stride;	 /* bytes between key caches */
	uint64_t mpt_off;	 /* struct rnic_mpt */
	uint64_t mpt_slots;	 /* number of MPT slots */
	uint64_t index_off[2];	 /* user-key index, two generations */
	uint64_t index_slots;	 /* entries of each */
	uint64_t mtt_off;	 /* struct rnic_mtt_page */
	uint64_t mtt_pages;	 /* number of MTT pages */
	uint32_t lane_lines;	 /* RNIC_LANE_LINES of this device */
	uint32_t ring_bytes;	 /* RNIC_RING_BYTES of this device */
	uint64_t pool_bytes;	 /* chunk pool of each endpoint */
	uint64_t heap_bytes;	 /* inject heap of each endpoint */
	uint64_t pool_large_off; /* first large chunk in the pool */
};
_Static_assert(sizeof(struct rnic_header) <= RNIC_PAGE, "one page");

/*
 * Counters of one endpoint place: written under the endpoint's lock, read by
 * anybody as statistics. The order of the first group is that of
 * enum fi_shrimp_path.
 */
struct rnic_stats {
	rnic_a64 tx_msgs[8];	/* published messages, by path */
	rnic_a64 tx_bytes[8];	/* their payload bytes */
	rnic_a64 rx_msgs[8];	/* received messages, by path */
	rnic_a64 rx_bytes[8];	/* their payload bytes */
	rnic_a64 unexpected;	/* arrived before their receive */
	rnic_a64 held;		/* published with the payload kept */
	rnic_a64 queued;	/* sends that waited for lane room */
	rnic_a64 eagain;	/* sends refused */
	rnic_a64 peers;		/* lanes claimed towards peers */
	rnic_a64 resets;	/* peers found dead or closed */
	rnic_a64 dropped;	/* messages lost with a dead peer */
	rnic_a64 doorbells;	/* doorbells rung */
	rnic_a64 wakeups;	/* pipe writes to sleeping peers */
	rnic_a64 sleeps;	/* times this endpoint slept */
	rnic_a64 attach_proc;	/* peers attached through /proc */
	rnic_a64 attach_socket; /* peers attached over the socket */
	rnic_a64 rma_msgs[4];	/* RMA operations, by enum fi_shrimp_reach */
	rnic_a64 rma_bytes[4];	/* bytes they moved */
	rnic_a64 atomics[4];	/* atomic operations, likewise */
	rnic_a64 served;	/* parts of operations executed for peers */
	rnic_a64 page_asks;	/* pages of peers asked for */
	rnic_a64 spare[6];	/* 0 */
};
_Static_assert(sizeof(struct rnic_stats) == 512, "eight lines");

/* Bits of rnic_mpt.rights. */
enum rnic_right {
	RNIC_LOCAL_READ = 1u << 0,   /* source of a send or write */
	RNIC_LOCAL_WRITE = 1u << 1,  /* target of a receive or read */
	RNIC_REMOTE_READ = 1u << 2,  /* peers may read */
	RNIC_REMOTE_WRITE = 1u << 3, /* peers may write */
	RNIC_MR_OFFSET = 1u << 4,    /* addressed from 0, not by va */
	RNIC_MR_GIVEN = 1u << 5,     /* translation was given to others */
	RNIC_MR_EV_READ = 1u << 6,   /* owner wants an event per remote read */
	RNIC_MR_EV_WRITE = 1u << 7,  /* and per remote write */
	RNIC_MR_LIST = 1u << 8,	     /* several ranges, see rnic_mtt_list */
	/* a reader's own word on what it has found: never in the MPT */
	RNIC_MR_READ_NOW = 1u << 11, /* pages may be read, for now */
	/* of no use to a cached translation: beyond its bits */
	RNIC_MR_ODP = 1u << 16,	    /* pages come at their first touch */
	RNIC_MR_WATCHED = 1u << 17, /* the unmap monitor may change it */
	RNIC_MR_WINDOW = 1u << 18,  /* a window onto other regions */
};

/*
 * A leaf of the translation, and (without RNIC_LEAF_VALID) nothing.
 * Bits 12.. are a page number: of the owner's address space (VA) or of the
 * space that bits 4-11 name (0: the arena).
 */
enum rnic_leaf {
	RNIC_LEAF_VALID = 1u << 0,
	RNIC_LEAF_SPACE = 1u << 1, /* else VA */
	RNIC_LEAF_TABLE = 1u << 2, /* bits 12..: number of an MTT page */
	/* on demand only */
	RNIC_LEAF_READ = 1u << 3,     /* valid: there to be read only */
	RNIC_LEAF_FAULTING = 1u << 3, /* not valid: bits 12.. are a token */
};

/*
 * One memory region, one line. @version is odd while the slot is invalid,
 * never reset, and bumped at every publication, invalidation or change of
 * translation; a cached translation is valid only against the whole word.
 * It is only ever added to, atomically: the monitor adds 2 at any time
 * (shm/monitor.h), which changes neither validity nor what others add. @mtt
 * of a watched region, or of a window onto one, the monitor may set to 0: its
 * memory is gone.
 */
struct rnic_mpt {
	rnic_a64 version; /* odd = invalid; stored last, release */
	rnic_a64 key;	  /* the key as the user sees it */
	rnic_a64 va;	  /* first virtual address */
	rnic_a64 length;  /* bytes */
	rnic_a64 mtt;	  /* root of the translation, depth in bits 0-1 */
	rnic_a64 rights;  /* access bits, event mask, internal bit */
	rnic_a64 parent;  /* window: MPT slot of its (first) region + 1 */
	rnic_a64 binding; /* number of the current binding */
};
_Static_assert(sizeof(struct rnic_mpt) == RNIC_LINE, "one line");

/* One page of the translation radix; entry: valid, kind, space, page. */
struct rnic_mtt_page {
	rnic_a64 entry[RNIC_MTT_FANOUT]; /* stored with release */
};
_Static_assert(sizeof(struct rnic_mtt_page) == RNIC_PAGE, "one page");

/*
 * What readers must know of MPT and index besides the header: one line,
 * written by the owner under its table's mutex, read at a miss.
 */
struct rnic_mpt_head {
	rnic_a64 used;	/* slots below have pages and a version */
	rnic_a64 index; /* which user-key index, see rnic_index_make() */
	/*
	 * By the monitor alone: odd while translations of watched regions are
	 * being withdrawn, even and another one afterwards.
	 */
	rnic_a64 frozen;
	rnic_a64 spare[5]; /* 0 */
};
_Static_assert(sizeof(struct rnic_mpt_head) == RNIC_LINE, "one line");

/*
 * What paging did, of the whole device: by any thread of the owner, atomically;
 * read by anybody as statistics.
 */
struct rnic_paging {
	rnic_a64 requests;    /* page requests of peers */
	rnic_a64 faults;      /* pages made present at a touch */
	rnic_a64 merged;      /* touches that another one's fault served */
	rnic_a64 prefetched;  /* pages made present by advice */
	rnic_a64 invalidated; /* pages that went away */
	rnic_a64 gone;	      /* regions whose memory was unmapped */
	rnic_a64 implicit;    /* whole-address-space regions registered */
	rnic_a64 spare;	      /* 0 */
};
_Static_assert(sizeof(struct rnic_paging) == RNIC_LINE, "one line");

/*
 * A memory file of the owner's process in which regions lie: sealed against
 * shrinking, and held open for as long as one does. Entry 0 is not used: the
 * header has the arena. Written by the owner under its lock; @gen rises with
 * each change and never comes back.
 */
struct rnic_space {
	rnic_a64 gen;  /* odd: there is a file; stored last, release */
	rnic_a64 fd;   /* descriptor number in the owner */
	rnic_a64 ino;  /* st_ino */
	rnic_a64 size; /* bytes when it was opened; it may have grown */
};
_Static_assert(sizeof(struct rnic_space) * RNIC_SPACES % RNIC_PAGE == 0,
	       "whole pages");

/* Entry of the user-key index: open addressing, deletes leave tombstones. */
struct rnic_key_entry {
	rnic_a64 key;  /* user key */
	rnic_a64 slot; /* MPT slot + 1; 0 free, ~0 deleted */
};

#define RNIC_INDEX_FREE	   UINT64_C(0) /* rnic_key_entry.slot: ends a chain */
#define RNIC_INDEX_DELETED UINT64_MAX  /* rnic_key_entry.slot: tombstone */

/*
 * A cached translation, one line: bytes @start, @span of the region that @key
 * names at the target @meta names. Valid only while the MPT slot's version is
 * @version. Written and used by one execution context, read by tools.
 */
struct rnic_cache_entry {
	rnic_a64 key;	  /* as the user gave it */
	rnic_a64 version; /* of the MPT slot, even */
	rnic_a64 start;	  /* first address (or offset) it covers */
	rnic_a64 span;	  /* bytes it covers, contiguous */
	rnic_a64 room;	  /* bytes from @start to the region's end */
	rnic_a64 phys;	  /* byte in space, or owner's address, of @start */
	rnic_a64 binding; /* of the MPT slot */
	rnic_a64 meta;	  /* slot, rights, kind of leaf, target; 0: unused */
};
_Static_assert(sizeof(struct rnic_cache_entry) == RNIC_LINE, "one line");

/* Which entry of a set of a key cache gives way. */
enum rnic_keycache_policy {
	RNIC_KEYCACHE_CLOCK,  /* the next that was not used since last asked */
	RNIC_KEYCACHE_LRU,    /* the one that was not used for longest */
	RNIC_KEYCACHE_RANDOM, /* any */
	RNIC_KEYCACHE_NONE,   /* nothing is kept */
	RNIC_KEYCACHE_POLICIES
};

/*
 * Key cache of one execution context, in the tables of its own process:
 * written by that context alone (contract I7), read by anybody as statistics.
 * A page, then the entries, set by set. What remembers their use is not here,
 * but private to the context. Whoever reads it bounds @entries by the header's
 * cache_stride.
 */
struct rnic_cache {
	rnic_a64 hits;		/* found, and still valid */
	rnic_a64 misses;	/* looked up in the target's tables */
	rnic_a64 evictions;	/* gave way to another one */
	rnic_a64 invalidations; /* found, but the version had moved */
	rnic_a64 spare[4];	/* 0 */
	/* written when a context begins to use it, and @policy when it ends */
	rnic_a64 policy;  /* enum rnic_keycache_policy + 1; 0: not in use */
	rnic_a64 entries; /* capacity; 0: nothing is kept */
	rnic_a64 ways;	  /* entries of a set */
	rnic_a64 miss_ns; /* emulated cost of a miss */
	rnic_a64 more[4]; /* 0 */
	char pad[RNIC_PAGE - 2 * RNIC_LINE]; /* to a page */
	struct rnic_cache_entry entry[];     /* @entries of them */
};
_Static_assert(sizeof(struct rnic_cache) == RNIC_PAGE, "one page");

/* ------------------------------------------------------------------ */
/* mailbox                                                               */

/* First page of the mailbox; written by the owner, constant. */
struct rnic_mailbox_header {
	uint64_t magic;	      /* RNIC_MAGIC_MAILBOX */
	uint64_t incarnation; /* same as in the tables */
};

/* Bits of rnic_desc_ext.chunk of an EVENT. */
enum rnic_event_what {
	RNIC_EVENT_WRITES = 1u << 0,   /* memory was written, else read */
	RNIC_EVENT_ATOMIC = 1u << 1,   /* by an atomic */
	RNIC_EVENT_ENDPOINT = 1u << 2, /* the endpoint counts it */
};

/* Bits of rnic_ep_head.event_mask: the owner counts remote operations. */
enum rnic_event {
	RNIC_EVENT_READ = 1u << 0,  /* reads and fetching atomics */
	RNIC_EVENT_WRITE = 1u << 1, /* writes and other atomics */
};

enum rnic_ep_state {
	RNIC_EP_FREE = 0,   /* place not in use */
	RNIC_EP_OPEN = 1,   /* lanes may be claimed */
	RNIC_EP_CLOSED = 2, /* no new lanes; senders get reset errors */
};

/*
 * Head of an endpoint place: one page, then the lane directory.
 * Grouped by writer, a line or more each.
 */
struct rnic_ep_head {
	/* written by the owner; read at attach, at claim, after ringing */
	union {
		struct {
			rnic_a64 state;	     /* gen << 32 | rnic_ep_state */
			rnic_a32 pipe_fd;    /* wake pipe, write end */
			rnic_a32 event_mask; /* remote events wanted (RMA) */
			rnic_a64 pipe_ino;   /* st_ino of that pipe */
		};
		char owner_line[RNIC_LINE]; /* pads the group */
	};
	/* written by the owner; read by whoever rang a doorbell */
	union {
		rnic_a32 sleeping;	    /* 1: write a byte to the pipe */
		char sleep_line[RNIC_LINE]; /* pads the group */
	};
	/* many writers: peers OR bits in, the owner exchanges for 0 */
	union {
		struct {
			rnic_a64 bell;	   /* a bit per word below */
			rnic_a64 ret_bell; /* bit 0: return lines changed */
		};
		char bell_line[RNIC_LINE]; /* pads the group */
	};
	rnic_a64 lane_bell[RNIC_LANE_MAX / 64]; /* a bit per lane, as bell */
	/* many writers: claimers raise it by CAS before they claim */
	union {
		rnic_a64 lane_hi;	 /* no lane from here on was claimed */
		char hi_line[RNIC_LINE]; /* pads the group */
	};
	char pad[RNIC_PAGE - 4 * RNIC_LINE - RNIC_LANE_MAX / 8]; /* to a page */
	/*
	 * Lane directory. 0: free. Otherwise the claim of one sender, see
	 * rnic_claim_make(): set by CAS by the sender, back to 0 by the owner.
	 */
	rnic_a64 claim[RNIC_LANE_MAX];
};
_Static_assert(offsetof(struct rnic_ep_head, claim) == RNIC_PAGE, "page two");
_Static_assert(sizeof(struct rnic_ep_head) <= RNIC_HEAD_SIZE, "fits");

enum rnic_tx_state {
	RNIC_TX_NONE = 0,   /* claimed, not yet in use */
	RNIC_TX_LIVE = 1,   /* name written, descriptors may follow */
	RNIC_TX_CLOSED = 2, /* sender is done; owner frees when drained */
};

/* What a descriptor is. */
enum rnic_desc_kind {
	RNIC_DESC_NONE = 0,
	RNIC_DESC_INLINE, /* whole message, payload in the descriptor */
	RNIC_DESC_RING,	  /* whole message, payload in the byte ring */
	RNIC_DESC_CHUNK,  /* whole message, payload in one chunk */
	RNIC_DESC_FIRST,  /* first chunk of a message of several */
	RNIC_DESC_NEXT,	  /* next chunk of the message under way */
	RNIC_DESC_HELD,	  /* payload stays in the sender's buffer */
	RNIC_DESC_HEAP,	  /* payload lies in the sender's inject heap */
	RNIC_DESC_DATA,	  /* a chunk of a held message, as requested */
	RNIC_DESC_EVENT,  /* RMA that the receiver is to be told of */
	RNIC_DESC_ASK,	  /* RMA or atomic that its receiver executes */
	RNIC_DESC_KINDS
};

enum rnic_desc_flag {
	RNIC_DESC_TAGGED = 1u << 0,    /* tag matching, else plain message */
	RNIC_DESC_CQ_DATA = 1u << 1,   /* data is remote CQ data */
	RNIC_DESC_ACK_DONE = 1u << 2,  /* answer when whole at the receiver */
	RNIC_DESC_ACK_MATCH = 1u << 3, /* answer when matched */
};

/* What a descriptor says when it does not carry the payload itself. */
struct rnic_desc_ext {
	uint64_t total;	    /* bytes of the whole message */
	uint32_t chunk;	    /* chunk number in the sender's pool */
	uint32_t chunk_len; /* bytes used in it */
	uint64_t op;	    /* the sender's name; EVENT: MPT slot + 1, or 0 */
	uint64_t heap_off;  /* HEAP: place in the sender's heap */
	uint64_t va;	    /* HELD: address in the sender, 0 if none */
};
_Static_assert(sizeof(struct rnic_desc_ext) == RNIC_INLINE_MAX, "same room");

/* What an ASK descriptor asks for. */
enum rnic_ask_kind {
	RNIC_ASK_READ,	  /* bytes there to the byte ring */
	RNIC_ASK_WRITE,	  /* bytes in the byte ring to there */
	RNIC_ASK_ATOMIC,  /* operands in the ring */
	RNIC_ASK_FETCH,	  /* likewise, values before replace them */
	RNIC_ASK_COMPARE, /* likewise, values to compare with behind them */
	RNIC_ASK_PAGE,	  /* pages to be made present; no operands */
	RNIC_ASK_KINDS	  /* how many there are */
};

/*
 * An access that the owner of the memory executes, since its sender cannot.
 * The key is in rnic_desc.tag, remote CQ data in rnic_desc.data; the length in
 * the head is the room taken in the byte ring.
 */
struct rnic_desc_ask {
	uint64_t addr;	   /* owner's address, or offset */
	uint64_t total;	   /* bytes of the whole operation */
	uint32_t len;	   /* bytes there */
	uint8_t kind;	   /* enum rnic_ask_kind */
	uint8_t op;	   /* enum rnic_aop_op; PAGE: rights that are needed */
	uint8_t type;	   /* atomics: enum rnic_aop_type */
	uint8_t ends;	   /* bits: first, last part of the operation */
	uint64_t spare[2]; /* 0 */
};
_Static_assert(sizeof(struct rnic_desc_ask) == RNIC_INLINE_MAX, "same room");

/*
 * A descriptor: one line, written by the sender. @head is stored last, with
 * release; a position is valid when its low 32 bits are the expected
 * sequence number plus one. A position only ever holds descriptors.
 */
struct rnic_desc {
	rnic_a64 head; /* seq + 1 | kind << 32 | flags << 40 | len << 48 */
	rnic_a64 tag;  /* DATA: id of the receive */
	rnic_a64 data; /* remote CQ data; DATA: byte offset */
	union {
		uint8_t payload[RNIC_INLINE_MAX]; /* INLINE */
		struct rnic_desc_ask ask;	  /* ASK */
		struct rnic_desc_ext ext;	  /* all others */
	};
};
_Static_assert(sizeof(struct rnic_desc) == RNIC_LINE, "one line");

/* What a return entry says about an operation of the sender. */
enum rnic_ret_code {
	RNIC_RET_NONE = 0,
	RNIC_RET_GO,   /* send len bytes as DATA to receive @rx */
	RNIC_RET_DONE, /* finished at the receiver, success */
	/* 3 was never written: a receiver that closes says so for all */
	RNIC_RET_REPLY = 4, /* the oldest ASK was executed: @rx, @len */
};

/* An entry of the return ring, written by the receiver, head last. */
struct rnic_ret {
	rnic_a64 head; /* code | (seq + 1) << 32 */
	uint64_t op;   /* the sender's name of the operation */
	uint64_t rx;   /* GO: name of the receive; REPLY: errno or 0 */
	uint64_t len;  /* GO: bytes wanted; REPLY: bytes done */
};
_Static_assert(sizeof(struct rnic_ret) == 32, "two to a line");

/*
 * A lane: one sender endpoint to one receiver endpoint, in the receiver's
 * mailbox. Four pages, touched only once claimed.
 */
struct rnic_lane {
	/* written by the sender once, before RNIC_TX_LIVE */
	struct rnic_addr sender; /* the sender's name */
	/* written by the sender, seldom */
	union {
		struct {
			rnic_a32 tx_state;    /* enum rnic_tx_state */
			rnic_a32 tx_parked;   /* ring ret_bell on answers */
			rnic_a32 tx_unfenced; /* 1: fence after answers */
		};
		char tx_line[RNIC_LINE]; /* pads the group */
	};
	/* written by the sender */
	union {
		rnic_a32 ret_taken;	    /* return entries consumed */
		char taken_line[RNIC_LINE]; /* pads the group */
	};
	/*
	 * Reader slot: written by the sender's execution contexts, each its
	 * own; by the owner only while it frees the lane, before the claim
	 * goes to 0 (D1), when the sender is gone: dead inside, it left it odd.
	 */
	union {
		rnic_a64 seq;	      /* odd = inside */
		char line[RNIC_LINE]; /* a line each */
	} reader[RNIC_CTX_PER_EP];
	char room[2 *
		  RNIC_LINE]; /* 0; hot lines stay where they were measured */
	/* written by the receiver: credits */
	union {
		struct {
			rnic_a32 desc_taken;  /* descriptors consumed */
			rnic_a32 bytes_taken; /* byte ring, bytes consumed */
			rnic_a32 ret_head;    /* answers written */
		} credit;		      /* by name: a hot group */
		char credit_line[RNIC_LINE];  /* pads the group */
	};
	/* written by the receiver, seldom; read for every message */
	union {
		struct {
			rnic_a32 hot;	      /* 0: ring the doorbell */
			rnic_a32 over_budget; /* 1: hold what can be held */
			rnic_a32 mapped;      /* 1: pool of sender mapped */
			rnic_a32 rx_closed;   /* 1: receiver is gone */
		} flag;			      /* by name: a hot group */
		char flag_line[RNIC_LINE];    /* pads the group */
	};
	char pad[1024 - 9 * RNIC_LINE];	       /* to 1 KiB */
	struct rnic_ret ret[RNIC_RET_ENTRIES]; /* written by the receiver */
	/* announce filters, written by the execution context of the sender */
	rnic_a64 announce[RNIC_CTX_PER_EP][RNIC_FILTER_BITS / 64];
	char spare[1024]; /* to page two */
	/*
	 * Written by the sender; heads also by the owner, only while it frees
	 * the lane, before the claim goes to 0 (D1).
	 */
	struct rnic_desc desc[RNIC_LANE_LINES];
	/*
	 * Written by the sender; what an ASK names also by the receiver, until
	 * it replies, and not by the sender before it has taken the reply.
	 */
	uint8_t bytes[RNIC_RING_BYTES];
};
_Static_assert(sizeof(struct rnic_lane) == RNIC_LANE_SIZE, "four pages");
_Static_assert(offsetof(struct rnic_lane, ret) == 1024, "return ring");
_Static_assert(offsetof(struct rnic_lane, desc) == RNIC_PAGE, "page two");

/* ------------------------------------------------------------------ */

/* Packs the head word of a descriptor; @seq: its sequence number plus one. */
static inline uint64_t rnic_desc_head(uint32_t seq, enum rnic_desc_kind kind,
				      unsigned int flags, size_t len)
{
	return seq | (uint64_t)kind << 32 | (uint64_t)flags << 40 |
	       (uint64_t)len << 48;
}

/* Packs rnic_mpt_head.index: table @which, of 2^@shift entries. */
static inline uint64_t rnic_index_make(unsigned int which, unsigned int shift)
{
	return UINT64_C(1) << 63 | (uint64_t)shift << 8 | (which & 1);
}

/* True if @word names a table at all. */
static inline bool rnic_index_valid(uint64_t word)
{
	return word >> 63;
}

/* Which of the two tables @word names. */
static inline unsigned int rnic_index_which(uint64_t word)
{
	return word & 1;
}

/* log2 of the entries of the table @word names, below 64, to be bounded. */
static inline unsigned int rnic_index_shift(uint64_t word)
{
	return word >> 8 & 63;
}

/* Where the chain of @key begins in a table of 2^@shift entries. */
static inline uint64_t rnic_index_hash(uint64_t key, unsigned int shift)
{
	return (key ^ key >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - shift);
}

/* The provider key of @slot in its generation @gen. */
static inline uint64_t rnic_key_make(uint32_t slot, uint64_t gen)
{
	return gen << RNIC_SLOT_BITS | slot;
}

/* The slot that @key names, if it is a provider key. */
static inline uint32_t rnic_key_slot(uint64_t key)
{
	return key & ((1u << RNIC_SLOT_BITS) - 1);
}

/*
 * The announce bit of @slot, below RNIC_FILTER_BITS. Slots that are used one
 * after the other have different ones.
 */
static inline unsigned int rnic_filter_bit(uint32_t slot)
{
	return slot % RNIC_FILTER_BITS;
}

/* Offset in the mailbox of the head of endpoint place @ep. */
static inline uint64_t rnic_head_off(unsigned int ep)
{
	return RNIC_MAILBOX_EP0 + ep * RNIC_EP_STRIDE;
}

/* Offset in the mailbox of lane @lane of endpoint place @ep. */
static inline uint64_t rnic_lane_off(unsigned int ep, unsigned int lane)
{
	return rnic_head_off(ep) + RNIC_HEAD_SIZE + lane * RNIC_LANE_SIZE;
}

/*
 * The claim word of a sender: never 0, names the process so that a claimer
 * that died half way, exec'ed or was recycled is recognised.
 * @pid: the sender in the owner's pid namespace, below 2^22.
 * @identity: rnic_identity_of() it, of which the start time is kept.
 */
static inline uint64_t rnic_claim_make(uint32_t pid, uint64_t identity)
{
	return (identity & UINT32_MAX) << 22 | (pid & 0x3fffff) |
	       UINT64_C(1) << 63;
}

/* The pid in claim word @claim. */
static inline uint32_t rnic_claim_pid(uint64_t claim)
{
	return claim & 0x3fffff;
}

#endif /* RNIC_LAYOUT_H */
