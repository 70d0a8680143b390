/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A lane without an endpoint of ours behind it: for descriptors that no sender
 * of ours writes (contract L3). All functions: one thread at a time for one
 * lane.
 */
#ifndef SHRIMP_TESTS_RAW_KIT_H
#define SHRIMP_TESTS_RAW_KIT_H

#include "harness.h"
#include "shm/lane.h"
#include "shm/remote.h"

struct raw_lane {
	struct rnic_remote *remote; /* the receiver */
	struct rnic_lane_tx tx;	    /* the lane */
	unsigned int index;	    /* its number */
};

/* Claims a lane into @to in the name of the endpoint of @s. */
void raw_open(struct raw_lane *r, const struct th_stack *s,
	      const struct rnic_addr *to);

/* Gives it up as a dead sender does. Partner of raw_open(). */
void raw_close(struct raw_lane *r);

/* Publishes the request @q for @key, with @room bytes of operands. */
void raw_ask(struct raw_lane *r, uint64_t key, const struct rnic_desc_ask *q,
	     size_t room);

/* Publishes a descriptor of @kind and @len that is of no ASK. */
void raw_desc(struct raw_lane *r, enum rnic_desc_kind kind, size_t len,
	      const struct rnic_desc_ext *x);

/* Waits until the receiver has closed the lane, or fails the test. */
void raw_expect_closed(struct raw_lane *r);

#endif /* SHRIMP_TESTS_RAW_KIT_H */
