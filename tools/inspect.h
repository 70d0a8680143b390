/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What shrimp-inspect knows of a process: plain copies, taken once.
 *
 * The process that is looked at goes on meanwhile, and is not trusted: each
 * value here is as it was read, bounded only where it says so. What was
 * found to be impossible is in the notes. One thread.
 */
#ifndef SHRIMP_INSPECT_H
#define SHRIMP_INSPECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shm/layout.h"
#include "shm/segment.h"

enum {
	INSP_STATS = sizeof(struct rnic_stats) / sizeof(rnic_a64),
	INSP_NOTES = 32,    /* kept of a device; others are counted */
	INSP_COMMAND = 64,  /* bytes of a command's name, with the NUL */
	INSP_RETRIES = 8,   /* looks at something that changes */
	INSP_REGIONS = 10,  /* shown if nobody says how many */
	INSP_BLOCK = 65536, /* bytes read at once */
};

/* What is wrong, in words. Zeroed: nothing. See inspect_note.h. */
struct insp_notes {
	char *text[INSP_NOTES]; /* the first ones */
	unsigned int n;		/* of them */
	unsigned int more;	/* that found no room */
};

/* What the user wants to see. */
struct insp_want {
	uint64_t regions; /* at most so many */
	bool has_key;	  /* only the region of @key */
	uint64_t key;	  /* if @has_key */
	bool lanes;	  /* each lane and its reader slots */
	bool caches;	  /* each key cache */
};

/* Parts of the tables. */
enum insp_part {
	INSP_PART_STATS,
	INSP_PART_MPT_HEAD,
	INSP_PART_PAGING,
	INSP_PART_SPACES,
	INSP_PART_CACHES,
	INSP_PART_MPT,
	INSP_PART_INDEX0,
	INSP_PART_INDEX1,
	INSP_PART_MTT,
	INSP_PARTS
};

/* Where a part lies. @ok: wholly inside the file, so that it can be read. */
struct insp_range {
	uint64_t off;  /* bytes */
	uint64_t size; /* bytes */
	bool ok;       /* else neither means anything */
};

/* An endpoint's place that is, or was, in use. */
struct insp_place {
	unsigned int index;	    /* number of the place */
	bool readable;		    /* false: all up to @bells is 0 */
	unsigned int state;	    /* enum rnic_ep_state, not bounded */
	uint32_t gen;		    /* incarnation of the place */
	uint32_t sleeping;	    /* 1: waits for its pipe */
	uint32_t events;	    /* enum rnic_event */
	uint64_t bell, ret_bell;    /* doorbells, summary words */
	unsigned int bells;	    /* lanes that rang */
	unsigned int lanes;	    /* claimed */
	uint64_t lane_hi;	    /* none from here on was claimed */
	uint64_t pool;		    /* bytes written of the chunk pool */
	uint64_t heap;		    /* bytes written of the inject heap */
	uint64_t stats[INSP_STATS]; /* struct rnic_stats */
};

/* A claimed lane. Words of struct rnic_lane as they were. */
struct insp_lane {
	unsigned int place;	       /* of the receiver */
	unsigned int index;	       /* number of the lane */
	uint32_t pid;		       /* of the sender, as the owner sees it */
	bool dead;		       /* that process is no more */
	bool torn;		       /* changed hands while it was read */
	bool named;		       /* the sender has written its name */
	unsigned int sender;	       /* if so: its place */
	uint32_t state;		       /* enum rnic_tx_state, not bounded */
	uint32_t parked;	       /* sender wants a bell for answers */
	uint32_t hot;		       /* 0: receiver wants a bell */
	uint32_t over, mapped, closed; /* the receiver's other flags */
	uint32_t taken;		       /* descriptors credited, modulo 2^32 */
	uint32_t waiting;	       /* published and not credited */
	uint32_t bytes_taken;	       /* byte ring, modulo 2^32 */
	uint32_t answers;	       /* written, modulo 2^32 */
	uint32_t answers_taken;	       /* by the sender, likewise */
	uint64_t seq[RNIC_CTX_PER_EP]; /* of its reader slots */
	unsigned int announced[RNIC_CTX_PER_EP]; /* bits set */
};

/* The key cache of a context. */
struct insp_cache {
	unsigned int place;	/* of its endpoint */
	unsigned int ctx;	/* 0: callers, 1: agent */
	uint64_t hits;		/* found and valid */
	uint64_t misses;	/* looked up at the target */
	uint64_t evictions;	/* gave way */
	uint64_t invalidations; /* found, not valid any more */
	uint64_t used;		/* entries in use */
	uint64_t entries;	/* of the cache */
	uint64_t policy;	/* enum rnic_keycache_policy + 1, not bounded */
	uint64_t ways;		/* entries of a set */
	uint64_t miss_ns;	/* emulated cost of a miss */
};

/* What the leaves of a region name; bits. */
enum insp_where {
	INSP_ARENA = 1u << 0,	/* memory of the device */
	INSP_FILE = 1u << 1,	/* another memory file */
	INSP_ADDRESS = 1u << 2, /* an address of the owner */
	INSP_NOWHERE = 1u << 3, /* no translation at all, for now */
	INSP_GONE = 1u << 4,	/* unmapped under it: there was one */
};

/* A live region. */
struct insp_region {
	uint32_t slot;	     /* in the MPT */
	uint64_t key;	     /* as users give it */
	uint64_t va;	     /* first address */
	uint64_t length;     /* bytes */
	uint64_t mtt;	     /* root word */
	uint64_t rights;     /* enum rnic_right, and what we do not know */
	uint64_t parent;     /* not 0: a window */
	uint64_t version;    /* of the slot */
	uint64_t binding;    /* number of its binding */
	bool user;	     /* its key was chosen by the user */
	bool torn;	     /* changed while it was read */
	uint32_t where;	     /* enum insp_where, all that it has */
	unsigned int space;  /* one it has, if INSP_FILE */
	unsigned int ranges; /* of a list, else 1 */
	uint64_t pages;	     /* MTT pages of its translation */
	uint64_t leaves[4];  /* contiguous, 4 KiB, 2 MiB, 1 GiB */
};

/* The memory protection table in numbers. */
struct insp_mpt {
	uint64_t slots;	 /* of the table */
	uint64_t used;	 /* have memory */
	uint64_t live;	 /* regions */
	uint64_t ended;	 /* withdrawn: invalid, or resting before reuse */
	uint64_t fresh;	 /* never used */
	uint64_t torn;	 /* changed at each look */
	uint64_t bytes;	 /* registered, without @whole and windows */
	uint64_t whole;	 /* regions too large for any memory */
	uint64_t window; /* memory windows */
	uint64_t user;	 /* regions whose key the user chose */
	uint64_t found;	 /* regions that were asked for */
};

/* The index of user keys. */
struct insp_index {
	bool there;	     /* else all is 0 */
	unsigned int which;  /* of the two tables */
	unsigned int shift;  /* log2 of its entries */
	uint64_t keys;	     /* in use */
	uint64_t deleted;    /* tombstones */
	bool torn;	     /* moved to the other table at each look */
	uint8_t *user;	     /* bit per slot below insp_mpt.used: indexed */
	uint64_t user_bytes; /* of it */
};

/* A memory file in which regions lie. */
struct insp_space {
	unsigned int number; /* in leaves */
	uint64_t gen;	     /* odd */
	uint64_t fd;	     /* descriptor in the owner */
	uint64_t ino;	     /* st_ino */
	uint64_t size;	     /* bytes, when it was opened */
};

/* Counters of struct rnic_paging, in its order; 0 beyond the part. */
enum { INSP_PAGING = 7 };

/* MTT pages. */
struct insp_mtt {
	uint64_t pages;	 /* there are */
	uint64_t memory; /* have been written */
	uint64_t trees;	 /* in translations of live regions */
};

/* A device. */
struct insp_device {
	int tables_fd;		     /* descriptor in the process */
	int mailbox_fd, arena_fd;    /* likewise, -1: not found */
	struct rnic_segment tables;  /* ours, for reading; fd -1: closed */
	struct rnic_segment mailbox; /* likewise */
	struct rnic_segment arena;   /* likewise */
	uint64_t memory[3];	     /* bytes of tables, mailbox, arena */
	bool here;		     /* its pids are ours */
	bool usable;		     /* magic and version are right */
	struct rnic_header hdr;	     /* copy */
	struct insp_range part[INSP_PARTS];
	uint64_t user_memory; /* bytes written of memory for users */
	struct insp_mpt mpt;
	struct insp_index index;
	struct insp_mtt mtt;
	uint64_t paging[INSP_PAGING]; /* of regions on demand, and watched */
	uint64_t stats[INSP_STATS];   /* of all places */
	unsigned int open;	      /* endpoints */
	unsigned int claimed;	      /* lanes */
	struct insp_cache caches;     /* all of them; place, ctx: 0 */
	struct insp_place *place;
	unsigned int nplaces;
	struct insp_lane *lane; /* if wanted */
	unsigned int nlanes;
	struct insp_cache *cache; /* if wanted */
	unsigned int ncaches;
	struct insp_region *region; /* those wanted */
	unsigned int nregions;
	struct insp_space *space;
	unsigned int nspaces;
	struct insp_notes notes;
};

/* A process. */
struct insp_process {
	pid_t pid;		    /* in our namespace */
	uint32_t pid_inside;	    /* in its own */
	uid_t uid;		    /* its user */
	char command[INSP_COMMAND]; /* printable */
	uint64_t ns;		    /* rnic_identity_ns() of ours */
	unsigned int attached;	    /* tables of others that it has open */
	struct insp_device *device;
	unsigned int ndevices;
	struct insp_notes notes;
};

/* Processes. Zeroed: none. */
struct insp_list {
	struct insp_process *process;
	unsigned int n;
};

#endif /* SHRIMP_INSPECT_H */
