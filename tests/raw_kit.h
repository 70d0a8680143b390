/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A lane without an endpoint of ours behind it: for descriptors that no sender
 * of ours writes (contract L3), and requests one by one. All functions: one
 * thread at a time for one lane; what cannot be fails the test.
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

/* Claims a lane at the endpoint of name @to, as the one of name @own. */
void raw_open(struct raw_lane *r, const void *own, const void *to);

/* Gives it up as a dead sender does. A partner of raw_open(). */
void raw_drop(struct raw_lane *r);

/* Closes it as a sender does. A partner of raw_open(). */
void raw_close(struct raw_lane *r);

/* raw_close(), and waits until the receiver has freed it. */
void raw_give_back(struct raw_lane *r);

/* Publishes @d, whose head is not looked at, and rings. */
void raw_put(struct raw_lane *r, const struct rnic_desc *d, unsigned int kind,
	     unsigned int flags);

/* Publishes the request @q for @key, with @room bytes of operands. */
void raw_ask(struct raw_lane *r, uint64_t key, const struct rnic_desc_ask *q,
	     size_t room);

/* Publishes a descriptor of @kind and @len that is of no ASK. */
void raw_desc(struct raw_lane *r, enum rnic_desc_kind kind, size_t len,
	      const struct rnic_desc_ext *x);

/* Asks for the pages of @len bytes at @addr, to be used with @rights. */
void raw_ask_page(struct raw_lane *r, uint64_t key, uint64_t addr, uint32_t len,
		  uint8_t rights);

/* True if the owner has replied; *@err is what it says. */
bool raw_reply(struct raw_lane *r, uint64_t *err);

/* What the owner, who makes progress, says to such a request. */
uint64_t raw_page(struct raw_lane *r, uint64_t key, uint64_t addr, uint32_t len,
		  uint8_t rights);

/* Waits until the receiver has closed the lane. */
void raw_expect_closed(struct raw_lane *r);

#endif /* SHRIMP_TESTS_RAW_KIT_H */
