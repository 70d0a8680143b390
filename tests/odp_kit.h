/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the tests of registration on demand and of unmapping share: an owner,
 * rank 0, with a region of ODP_LEN bytes under RK_KEY, and initiators.
 *
 * All functions: one thread of a test's child at a time, for one side. What
 * cannot be done fails the test.
 */
#ifndef SHRIMP_TESTS_ODP_KIT_H
#define SHRIMP_TESTS_ODP_KIT_H

#include "harness.h"
#include "quiet_map.h"
#include "rma_kit.h"

#include "shm/atomic.h"

enum {
	ODP_PAGE = RK_PAGE,
	ODP_PAGES = 64,			/* of most regions */
	ODP_LEN = ODP_PAGES * ODP_PAGE, /* bytes */
	ODP_SENTINEL = 0x5a,		/* in memory that nobody may touch */
};

/* How a test differs from the defaults. */
struct odp_how {
	const char *cma;     /* FI_SHRIMP_CMA, or NULL */
	const char *monitor; /* FI_SHRIMP_MONITOR, or NULL */
	const char *pin;     /* FI_SHRIMP_PIN, or NULL */
	const char *cache;   /* FI_SHRIMP_MR_CACHE, or NULL */
	const char *mtt;     /* FI_SHRIMP_MTT, or NULL */
	bool file;	     /* odp_memory() is of sealed memfds */
};

/* What the processes of a test see. */
struct odp_shared {
	rnic_a64 over;	  /* 1: the streams end */
	rnic_a64 written; /* writes that succeeded */
	rnic_a64 refused; /* and that did not */
};

/* Mapped by odp_main(). */
extern struct odp_shared *odp_shared;

/* A process of a test. */
struct odp_side {
	struct th_self *self; /* rank 0 owns the region */
	struct th_stack s;    /* its stack */
	unsigned char *p;     /* the owner's memory, ODP_LEN bytes, or NULL */
	struct fid_mr *mr;    /* the owner's region, or NULL */
	int fd;		      /* the file of odp_memory(), or -1 */
};

/* Opens and connects the stack, as self->arg, struct odp_how or NULL, says. */
void odp_open(struct odp_side *d, struct th_self *self);

/* The counters of the domain. */
struct fi_shrimp_stats odp_stats(struct odp_side *d);

/* Waits until @pages were invalidated: counted a moment after the call. */
void odp_invalidated(struct odp_side *d, uint64_t pages);

/* The same of regions that have no memory any more. */
void odp_lost(struct odp_side *d, uint64_t regions);

/* @len private bytes. */
unsigned char *odp_fresh(size_t len);

/*
 * ODP_LEN bytes: private ones or, if self->arg says so, all of a new file that
 * peers map, which is open as @d->fd until the next one, or odp_disown().
 */
unsigned char *odp_memory(struct odp_side *d);

/*
 * The page at @off of the file, which may be mapped no more, becomes all
 * ODP_SENTINEL. Without a file nothing.
 */
void odp_file_fill(struct odp_side *d, size_t off);

/* It is so still. */
void odp_file_verify(struct odp_side *d, size_t off);

/*
 * The bytes at @p, of odp_fresh() or quiet_map(), become other memory. Returns
 * the page faults when the first memory had gone.
 */
uint64_t odp_replace(struct odp_side *d, unsigned char *p, size_t len);

/*
 * Fails if something is written to the page at @p, which odp_replace() has
 * just made, without one page fault since there were @faults.
 */
void odp_watch_sentinel(struct odp_side *d, unsigned char *p, uint64_t faults);

/* fi_mr_regattr() of one range, on demand, with key RK_KEY; what it says. */
int odp_reg(struct odp_side *d, void *p, size_t len, uint64_t access,
	    struct fid_mr **mr);

/* The owner registers ODP_LEN bytes at @p; the others know that it has. */
void odp_own(struct odp_side *d, unsigned char *p, uint64_t access);

/* All are done: the region is closed, its memory unmapped. */
void odp_disown(struct odp_side *d);

/* Writes @len bytes at @off; the result is looked at by the caller. */
void odp_put(struct odp_side *d, const void *buf, size_t len, uint64_t off);

/* Reads, likewise. */
void odp_get(struct odp_side *d, void *buf, size_t len, uint64_t off);

/* Both, which succeed. */
void odp_put_done(struct odp_side *d, const void *buf, size_t len,
		  uint64_t off);
void odp_get_done(struct odp_side *d, void *buf, size_t len, uint64_t off);

/* Adds @x to the 8 bytes at @off; returns what they were. */
uint64_t odp_fetch_add(struct odp_side *d, uint64_t off, uint64_t x);

/* A write of which @moved bytes are done: the rest is not mapped. */
void odp_refused(struct odp_side *d, const void *buf, size_t len, uint64_t off,
		 size_t moved);

/* Writes anywhere in the region until told otherwise; errors may come. */
void odp_stream(struct odp_side *d);

/* The owner ends all streams; all call it. */
void odp_over(struct odp_side *d);

/* The owner waits until the streams have written something more. */
void odp_written(struct odp_side *d);

/* A test with settings of its own. */
struct odp_spec {
	th_main_fn *main;     /* what each child runs */
	int n;		      /* children */
	unsigned int seconds; /* time limit */
	struct odp_how *how;  /* its settings */
};

/* The cmocka test that runs the struct odp_spec in its initial state. */
void odp_case(void **state);

/* Table entry: @n children run @fn as @how says. */
#define ODP_CASE(fn, n, seconds, how)                                          \
	{                                                                      \
#fn "_" #how, odp_case, NULL, NULL, &(struct odp_spec)         \
		{                                                              \
			fn, n, seconds, &(how)                                 \
		}                                                              \
	}

/* th_main() with what the processes share. */
int odp_main(int argc, char **argv, const char *name,
	     const struct CMUnitTest *tests, size_t n);

#endif /* SHRIMP_TESTS_ODP_KIT_H */
