/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * libfabric, as far as shrimp-stress uses it: any provider with tagged
 * messages between RDM endpoints, its public calls alone.
 *
 * One thread; registration also by others where side->threads says so.
 */
#ifndef BENCH_STRESS_FI_H
#define BENCH_STRESS_FI_H

#include "bench/stress/inside.h"

enum {
	STRESS_WAIT_S = 10, /* an operation takes at most */
	STRESS_OFFER = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
		       FI_MR_PROV_KEY | FI_MR_ENDPOINT,
};

/*
 * Opens domain and endpoint of s->o->provider, with RMA if it has that. Returns
 * 0, or a negative FI_ code with a reason in s->text: @e is closed then.
 * Partner: stress_side_close().
 */
int stress_side_open(struct stress *s, struct stress_side *e);

/*
 * Closes all of it; zeroed memory is accepted. Returns 0, or the code of the
 * first call that failed, with its name in s->text.
 */
int stress_side_close(struct stress *s, struct stress_side *e);

/* Adds the endpoint @name to the address vector. 0 or a negative code. */
int stress_side_meet(struct stress_side *e, const char *name, fi_addr_t *addr);

/* Takes all completions of @e. Returns 0, or a negative code. */
int stress_side_poll(struct stress_side *e);

/* A request that is free; NULL: all are under way, some for ever. */
struct stress_req *stress_req_get(struct stress_side *e);

/** Bytes here, and who has the others. */
struct stress_op {
	struct stress_side *side; /* that does it */
	void *p;		  /* local bytes */
	size_t len;
	void *desc;	/* of them, or NULL */
	fi_addr_t peer; /* whose the others are */
	uint64_t addr;	/* RMA: at the peer */
	uint64_t key;	/* RMA */
	uint64_t match; /* messages: tag */
};

/** What is done with them. */
enum stress_verb {
	STRESS_READ,	/* fi_read */
	STRESS_WRITE,	/* fi_write */
	STRESS_SEND,	/* fi_tsend */
	STRESS_RECV,	/* fi_trecv */
	STRESS_INJECTS, /* fi_tinject */
};

/*
 * Posts it, trying again for STRESS_WAIT_S while there is no room. Returns the
 * request, or NULL with what is wrong told. An inject has completed.
 */
struct stress_req *stress_post(struct stress *s, const struct stress_op *op,
			       enum stress_verb verb);

/*
 * Waits for STRESS_WAIT_S and frees it. Returns 0, the positive code of its
 * error completion, or -ETIMEDOUT: it stays under way.
 */
int stress_req_wait(struct stress *s, struct stress_req *req);

/* stress_post() and stress_req_wait(), which must succeed: 0 or -1, told. */
int stress_do(struct stress *s, const struct stress_op *op,
	      enum stress_verb verb);

#endif
