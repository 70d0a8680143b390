/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One side of a pair over provider shrimp: a domain, endpoints with a
 * completion queue each, memory of both kinds.
 *
 * All functions: one thread at a time for one endpoint; opening and closing
 * one thread a side. Errors are said on stderr where they are decided.
 */
#ifndef BENCH_SB_SIDE_H
#define BENCH_SB_SIDE_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/rdma/fi_ext_shrimp.h"

enum {
	SB_PAGE = 4096,
	SB_CHUNK = 512 << 10, /* bytes a long operation moves at a time */
	SB_NAME_LEN = 128,    /* of an endpoint, bytes */
};

/* Whatever a peer may do. */
#define SB_REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

/** An endpoint; zeroed: closed. */
struct sb_ep {
	struct fid_ep *ep; /* bound to av and cq */
	struct fid_cq *cq; /* completions of both directions */
	fi_addr_t peer;	   /* the other side, after sb_side_meet() */
	/* how the last operation failed: its error code, 0: it did not */
	int failed;
};

/** The objects of a side; zeroed memory is closed. */
struct sb_side {
	struct fi_info *info;	       /* shrimp's */
	struct fid_fabric *fabric;     /* opened from info */
	struct fid_domain *domain;     /* likewise */
	struct fid_av *av;	       /* holds the peer */
	struct sb_ep main;	       /* the endpoint */
	struct fi_ops_shrimp_mem *mem; /* memory of the device */
	struct fi_ops_shrimp_mr *mr;   /* NULL: not offered */
};

/** Whether side @s offers call @call of struct fi_ops_shrimp_mr. */
#define SB_OFFERS(s, call)                                                     \
	((s)->mr && (s)->mr->size > offsetof(struct fi_ops_shrimp_mr, call) && \
	 (s)->mr->call)

/** Memory of a side; zeroed: none. */
struct sb_mem {
	char *p;	   /* from the start of a page on, present */
	size_t len;	   /* bytes */
	bool device;	   /* of the device: peers map it */
	struct fid_mr *mr; /* or NULL */
};

/** What a side says of itself. */
struct sb_hello {
	char name[SB_NAME_LEN]; /* of the endpoint */
	int32_t pid;		/* of the process */
	uint32_t pad;		/* 0 */
	uint64_t addr;		/* of private memory, or 0 */
};

/*
 * Says on stderr what failed and why. Returns @code, which is negative.
 */
int sb_fail(const char *what, long code);

/*
 * Opens a domain and an enabled endpoint in it. Returns 0, or a negative
 * code with nothing to do but sb_side_close().
 */
int sb_side_open(struct sb_side *s);

/* The same with FI_MR_ bits @mr_mode instead of FI_MR_ALLOCATED alone. */
int sb_side_open_as(struct sb_side *s, int mr_mode);

/* Closes all; zeroed memory is accepted. */
void sb_side_close(struct sb_side *s);

/* Another endpoint of @s, enabled. As sb_side_open(); sb_ep_close(). */
int sb_ep_open(struct sb_side *s, struct sb_ep *e);

/* Closes @e; zeroed memory is accepted. */
void sb_ep_close(struct sb_ep *e);

/*
 * Exchanges hellos over socket @fd with the other process, which calls this
 * too. @addr is told to it; *@peer is what it says. Returns 0 or negative.
 */
int sb_side_meet(struct sb_side *s, int fd, uint64_t addr,
		 struct sb_hello *peer);

/*
 * Polls until @n completions have come; those in error are counted and leave
 * their code in e->failed. At most 10 s without any. Returns 0, -FI_ETIMEDOUT
 * or the code of a call that failed.
 */
int sb_ep_wait(struct sb_ep *e, unsigned int n);

/*
 * @len zeroed bytes of the device, or private ones. Returns 0 or negative.
 * Partner: sb_mem_free().
 */
int sb_mem_new(struct sb_side *s, struct sb_mem *m, bool device, size_t len);

/* Registers all of @m for peers as @key. Returns 0 or negative. */
int sb_mem_give(struct sb_side *s, struct sb_mem *m, uint64_t key);

/* Closes the region, frees the memory; zeroed memory is accepted. */
void sb_mem_free(struct sb_side *s, struct sb_mem *m);

#endif
