/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the tests of matching share. The functions fail the test if the engine
 * does not do as told; one thread. Included behind cmocka.h.
 */
#ifndef RNIC_MATCH_KIT_H
#define RNIC_MATCH_KIT_H

#include <stdint.h>
#include <string.h>

#include "shm/match.h"

#define SYNC_BIT (UINT64_C(1) << 60) /* what MPI's receives ignore */

/* Readies @m. */
static inline void setup(struct rnic_match *m)
{
	assert_int_equal(rnic_match_init(m), 0);
}

/* Posts @r, of which nothing else is filled in before. */
static inline void post(struct rnic_match *m, struct rnic_match_recv *r,
			uint32_t src, uint64_t tag, uint64_t ignore)
{
	memset(r, 0xa5, sizeof(*r)); /* nothing else need be filled */
	r->src = src;
	r->tag = tag;
	r->ignore = ignore;
	rnic_match_post(m, r);
	assert_true(r->posted);
}

/* Queues @msg, likewise. */
static inline void queue(struct rnic_match *m, struct rnic_match_msg *msg,
			 uint32_t src, uint64_t tag)
{
	memset(msg, 0xa5, sizeof(*msg));
	msg->src = src;
	msg->tag = tag;
	rnic_match_queue(m, msg);
	assert_true(msg->queued);
}

#endif /* RNIC_MATCH_KIT_H */
