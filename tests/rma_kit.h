/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the tests of registration, RMA and atomics share: memory of both
 * kinds, registered, and what completions must say.
 *
 * All functions: one thread of a test's child at a time, for one stack; those
 * that take none: any thread.
 */
#ifndef SHRIMP_TESTS_RMA_KIT_H
#define SHRIMP_TESTS_RMA_KIT_H

#include "harness.h"

#include <rdma/fi_rma.h>

#include "rdma/fi_ext_shrimp.h"

enum {
	RK_PAGE = 4096,
	RK_KEY = 77, /* a key like others */
};

/* Whatever a peer may do without atomics. */
#define RK_RW (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* Whatever can be allowed. */
#define RK_ALL (FI_SEND | FI_RECV | FI_READ | FI_WRITE | RK_RW)

/*
 * How to open a stack for RMA. The only place that says which capabilities
 * such a stack asks for.
 */
struct th_stack_opts rk_opts(void);

/* rk_opts() for an endpoint that also asks for atomics. */
struct th_stack_opts rk_atomic_opts(void);

/* Memory of a process. */
struct rk_mem {
	struct fi_ops_shrimp_mem *ops; /* NULL: private memory */
	struct fid_domain *domain;     /* whose */
	unsigned char *p;	       /* zeroed, from a page's start on */
	size_t len;		       /* bytes */
};

/*
 * @len zeroed bytes of the device of @s (load and store reach them), or
 * private ones (system calls do).
 */
struct rk_mem rk_mem_new(struct th_stack *s, bool device, size_t len);

/* Gives it back; its regions are closed. */
void rk_mem_free(struct rk_mem *m);

/* @len zeroed bytes of private memory, from a page's start on. */
void *rk_pages(size_t len);

/* Registers @len bytes at @p; fails the test if that fails. */
struct fid_mr *rk_reg(struct th_stack *s, void *p, size_t len, uint64_t access,
		      uint64_t key);

/* Memory with a key. */
struct rk_region {
	struct rk_mem m;   /* where it lies */
	unsigned char *p;  /* its first byte */
	struct fid_mr *mr; /* all of it, as RK_KEY; NULL: closed by the test */
};

/* rk_mem_new() and rk_reg() of all of it. */
struct rk_region rk_region_new(struct th_stack *s, bool device, size_t len,
			       uint64_t access);

/* Closes both. */
void rk_region_free(struct rk_region *r);

/* Two stacks of a process, and memory of the second one. */
struct rk_bed {
	struct th_stack a, b; /* initiator, owner */
	struct rk_region r;   /* of the owner */
};

/* th_pair_open(), and a region with RK_RW. */
void rk_bed_open(struct rk_bed *t, const struct th_stack_opts *o, bool device,
		 size_t len);

/* Closes all. */
void rk_bed_close(struct rk_bed *t);

/* A counter, bound to the endpoint of @s if there are @flags for that. */
struct fid_cntr *rk_cntr(struct th_stack *s, enum fi_wait_obj wait,
			 uint64_t flags);

/* The calls behind FI_SHRIMP_OPS_MR of the domain of @s. */
struct fi_ops_shrimp_mr *rk_mr_ops(struct th_stack *s);

/*
 * Memory file of @len bytes, sealed against shrinking: peers map what is
 * registered in a mapping of it. The caller closes it.
 */
int rk_file_new(size_t len);

/* Maps all @len bytes of @fd, shared: at @at, or, if NULL, anywhere. */
unsigned char *rk_file_map(int fd, size_t len, void *at);

/* How an operation of @s ended. */
struct rk_outcome {
	int err;	/* 0, or a positive FI_ code */
	void *context;	/* as given */
	uint64_t flags; /* of the entry */
	size_t moved;	/* of an error: bytes moved before it */
	bool told;	/* of an error: there are data, in @data */
	struct fi_shrimp_access_error data; /* what they say */
};

/* Waits for the next entry of the transmit CQ, of either kind. */
struct rk_outcome rk_end(struct th_stack *s);

/* As rk_end(), without wait or progress; false if there is none. */
bool rk_end_now(struct th_stack *s, struct rk_outcome *end);

/*
 * How a write of @len bytes, at most 64 KiB, all @byte, at @addr of key @key
 * of peer 1 of @s ends: 0 or a positive FI_ code.
 */
int rk_write_at(struct th_stack *s, uint64_t key, uint64_t addr, size_t len,
		unsigned char byte);

/* The next entry is a success of an RMA operation: FI_READ or FI_WRITE. */
void rk_done(struct th_stack *s, uint64_t flag, const void *ctx);

/*
 * The next entry is an error; it names the access that was refused, and, for a
 * pair, this process.
 */
void rk_refused(struct th_stack *s, int err, uint64_t key, uint64_t addr,
		uint64_t len);

/* ---- a peer that stops inside an access ------------------------------ */

/* Bytes of a write that takes long. */
size_t rk_big(void);

/*
 * Rank 1, when rank 0 has a region of rk_big() bytes, at the step
 * "registered": writes to its @key until that is rejected. Rank 0 meets it at
 * the step "rejected": nothing is written from then on.
 */
void rk_stream(struct th_self *self, struct th_stack *s, uint64_t key);

/*
 * The parent: stops rank 1 while it is in rk_stream(), nearly always inside a
 * write, then gives rank 0 the number 1. Partner: th_group_kill(), SIGCONT.
 */
void rk_stop_stream(struct th_group *g);

/* ---- numbers --------------------------------------------------------- */

/* @secs, a tenth in sanitizer or quick runs, tenfold in long ones; in ms. */
unsigned int rk_ms(unsigned int secs);

/* Bytes of the process that are locked (VmLck). */
size_t rk_locked(void);

#define rk_mem_new(...)	   (TH_AT(), (rk_mem_new)(__VA_ARGS__))
#define rk_reg(...)	   (TH_AT(), (rk_reg)(__VA_ARGS__))
#define rk_region_new(...) (TH_AT(), (rk_region_new)(__VA_ARGS__))
#define rk_bed_open(...)   (TH_AT(), (rk_bed_open)(__VA_ARGS__))
#define rk_bed_close(...)  (TH_AT(), (rk_bed_close)(__VA_ARGS__))
#define rk_end(...)	   (TH_AT(), (rk_end)(__VA_ARGS__))
#define rk_done(...)	   (TH_AT(), (rk_done)(__VA_ARGS__))
#define rk_refused(...)	   (TH_AT(), (rk_refused)(__VA_ARGS__))

/*
 * Takes the pages at @p away: nothing can be read or written there. It is no
 * hole, which another thread's mapping (a sanitizer's, an allocator's) could
 * fill.
 */
void rk_take_away(void *p, size_t len);

/* New pages at @p, where rk_take_away() was called or others are mapped. */
void rk_map_again(void *p, size_t len);

#endif /* SHRIMP_TESTS_RMA_KIT_H */
