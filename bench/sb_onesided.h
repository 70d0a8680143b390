/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A process that owns memory of both kinds and does nothing, and one that
 * uses it: what shrimp-bench rma and atomic share.
 *
 * The initiator's calls: one thread, or one for each endpoint.
 */
#ifndef BENCH_SB_ONESIDED_H
#define BENCH_SB_ONESIDED_H

#include "bench/sb_crew.h"
#include "bench/sb_options.h"
#include "bench/sb_proc.h"
#include "bench/sb_side.h"

enum {
	SB_KEY_DEVICE = 1,  /* memory of the device: mapped */
	SB_KEY_PRIVATE = 2, /* memory of the process: by CMA */
	SB_WINDOW = 64,	    /* operations under way for a rate */
};

/** The initiator; zeroed: closed. */
struct sb_onesided {
	const struct sb_options *o; /* how long */
	struct sb_out *out;	    /* where to */
	struct sb_proc proc;	    /* the owner */
	struct sb_crew crew;	    /* other initiators, processes */
	struct sb_side s;	    /* ours */
	struct sb_hello peer;	    /* what the owner says */
	size_t room;		    /* bytes of each region and buffer */
	char *buf;		    /* ours, from or to the owner */
	char *far;		    /* ours, shared with nobody */
};

/*
 * Forks the owner of two regions of @room bytes, on the second core, and
 * --processes other initiators that run @other (sb_crew_start()); opens this
 * side, on the first core. Returns 0, or a negative code with nothing to do but
 * sb_onesided_close().
 */
int sb_onesided_open(struct sb_onesided *b, const struct sb_options *o,
		     struct sb_out *out, size_t room,
		     int (*other)(int fd, void *arg));

/*
 * Another initiator, @fd to its parent: opens @s, which then knows the owner.
 * Returns 0, 1: the parent has ended, or a negative code; sb_side_close().
 */
int sb_onesided_join(struct sb_side *s, int fd);

/* Ends all; zeroed memory is accepted. Returns 0 or -ECHILD. */
int sb_onesided_close(struct sb_onesided *b);

/*
 * Writes @len bytes to the owner's private memory by process_vm_writev(2), or
 * reads them. Returns 0 or a negative code.
 */
int sb_onesided_cma(struct sb_onesided *b, bool write, size_t len);

#endif
