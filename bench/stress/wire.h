/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the processes of a group tell each other, over sockets that keep
 * messages whole: the driver and each process, and each process and each
 * other one.
 */
#ifndef BENCH_STRESS_WIRE_H
#define BENCH_STRESS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/stress/pattern.h"

enum {
	STRESS_NAME_MAX = 256, /* bytes of an endpoint's name */
	STRESS_RANKS = 8,      /* processes of a group at most */
};

/** What the driver asks for. */
enum stress_call {
	STRESS_CALL_STEP,   /* one step of a scenario */
	STRESS_CALL_CLOSE,  /* tear the act down */
	STRESS_CALL_KILLED, /* the answer to STRESS_TOLD_KILL */
	STRESS_CALL_FLUSH,  /* drop what a cache has, count what is left */
	STRESS_CALL_END,    /* close everything, count what is left, exit */
};

/** From the driver to a process. */
struct stress_order {
	uint32_t call;	   /* enum stress_call */
	uint32_t scenario; /* number in stress_scenarios */
	uint32_t number;   /* of the step, from 1 */
	uint32_t act;	   /* acts with equal numbers are one */
	uint64_t seed;	   /* of the step */
};

/** What a process tells. */
enum stress_told {
	STRESS_TOLD_READY,    /* libfabric is open, the others are known */
	STRESS_TOLD_UNUSABLE, /* the provider cannot be used */
	STRESS_TOLD_DONE,     /* an order has been carried out */
	STRESS_TOLD_KILL,     /* please kill the process of rank @value */
};

/** What a step did. */
struct stress_count {
	uint64_t bytes;	    /* verified */
	uint64_t transfers; /* done */
	uint64_t refused;   /* what is counted on */
};

/** From a process to the driver. */
struct stress_report {
	uint32_t told;	/* enum stress_told */
	int32_t status; /* 0, STRESS_SKIP, STRESS_FAILED */
	int64_t value;	/* as the kind says */
	struct stress_count count;
	char text[STRESS_TEXT]; /* what is wrong, or why it was skipped */
};

/** What a process asks of another one. */
enum stress_ask {
	STRESS_ASK_PULL,  /* fi_read from @addr, @key; compare */
	STRESS_ASK_PUSH,  /* fi_write of the pattern to there */
	STRESS_ASK_TAKE,  /* receive a message with tag @match; compare */
	STRESS_ASK_GIVE,  /* send the pattern with tag @match */
	STRESS_ASK_SHOW,  /* the pattern into the window at @addr */
	STRESS_ASK_CHECK, /* compare the window at @addr */
	STRESS_ASK_FLOW,  /* use @addr, @key until told to stop */
	STRESS_ASK_STOP,  /* that */
	STRESS_ASK_MEET,  /* @name is another endpoint of mine */
	STRESS_ASK_PART,  /* it goes */
};

enum stress_ask_flag {
	STRESS_FRESH = 1 << 0,	/* use memory from malloc */
	STRESS_REFUSE = 1 << 1, /* the operation must fail */
	STRESS_SECOND = 1 << 2, /* the other endpoint of the asker */
	STRESS_LATE = 1 << 3,	/* TAKE: post some time after the question */
	STRESS_DESC = 1 << 4,	/* with a descriptor even if none is needed */
	STRESS_INJECT = 1 << 5, /* fi_tinject, if it is short enough */
};

/** The question. */
struct stress_question {
	uint32_t ask;	   /* enum stress_ask */
	uint32_t flags;	   /* enum stress_ask_flag */
	uint32_t how;	   /* FLOW: enum stress_flow */
	uint32_t name_len; /* MEET */
	uint64_t addr;	   /* as the peer's mr_mode wants it; window: offset */
	uint64_t key;	   /* of the asker's region */
	uint64_t len;	   /* bytes */
	uint64_t match;	   /* tag of the message */
	struct stress_pat pat; /* bytes expected, or to be given */
	char name[STRESS_NAME_MAX];
};

/** The answer. */
struct stress_answer {
	int32_t status; /* 0 or STRESS_FAILED */
	uint32_t pad;
	uint64_t bytes; /* verified */
	uint64_t times; /* FLOW: operations done */
	char text[STRESS_TEXT];
};

/** First message between two processes. */
struct stress_hello {
	uint64_t window_addr; /* as the mr_mode of the sender wants it */
	uint64_t window_key;  /* of its window */
	uint32_t name_len;    /* of its endpoint's name */
	uint32_t pad;
	char name[STRESS_NAME_MAX];
};

/*
 * Sends @len bytes as one message. Returns 0 or -EPIPE. May block if the other
 * side does not read.
 */
int stress_wire_put(int fd, const void *data, size_t len);

/*
 * Takes one message of @len bytes: 1 if there was one, 0 if there is none yet,
 * -EPIPE if the other side has gone. Does not block.
 */
int stress_wire_get(int fd, void *data, size_t len);

#endif
