/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Steps that the tests of dying peers share.
 *
 * Rank 1 is the victim. It kills itself after the step "ready"; the step
 * "dead" is complete once it has been reaped, so what a survivor does before
 * that step happens to a living peer, and what it does after to a dead one.
 *
 * All functions are for the main thread of a child, the parent's excepted.
 */
#ifndef SHRIMP_TESTS_KILL_STEPS_H
#define SHRIMP_TESTS_KILL_STEPS_H

#include <stdatomic.h>

#include "harness.h"

enum {
	KS_VICTIM = 1,	     /* rank that dies */
	KS_OTHER = 2,	     /* rank that stays, where there are three */
	KS_NOTICE_MS = 5000, /* a death is noticed within (contract P4) */
	KS_TAG = 5,	     /* of most messages */
	KS_RANKS = 8	     /* of a storm at most */
};

/* What the processes of a test share; zero when a test begins. */
struct ks_shared {
	_Atomic uint32_t go;	   /* the victim may go on, or die */
	_Atomic uint32_t sleeping; /* the survivor is about to sleep */
	_Atomic uint32_t pid;	   /* of the victim */
	/* when each rank's victim of this round was killed; 0: it was not */
	_Atomic uint64_t killed_ns[KS_RANKS];
};

extern struct ks_shared *ks_shared;

/* A test whose rank 1 may be killed. */
struct ks_spec {
	th_main_fn *main; /* what each child runs */
	int n;		  /* children */
};

/* The cmocka test (in the parent) that runs the struct ks_spec in its state. */
void ks_case(void **state);

/* Table entry: @n children run @fn, rank 1 may die. */
#define KS_CASE(fn, n)                                                         \
	{                                                                      \
#fn, ks_case, NULL, NULL, &(struct ks_spec)                    \
		{                                                              \
			fn, n                                                  \
		}                                                              \
	}

/* Parent, before the first test: makes ks_shared. */
void ks_init(void);

/*
 * Opens a stack with directed receives and CQs that wait by @wait, and
 * connects it to the group.
 */
void ks_open_with(struct th_stack *s, struct th_self *self,
		  enum fi_wait_obj wait);

/* ks_open_with() without wait objects. */
void ks_open_all(struct th_stack *s, struct th_self *self);

/* This process gets a SIGKILL. */
void ks_die(void) __attribute__((noreturn));

/* Everybody is ready; then the victim is dead. It does not return there. */
void ks_until_dead(struct th_self *self);

/* The next entry of @cq: an error, within KS_NOTICE_MS. */
struct fi_cq_err_entry ks_error_soon(struct th_stack *s, struct fid_cq *cq);

/* The next entry of @cq says that operation @ctx met a dead or closed peer. */
void ks_reset_soon(struct th_stack *s, struct fid_cq *cq, void *ctx);

/*
 * Sends to @dead, which has died or closed, until its end is noticed: in time
 * a send ends with FI_ECONNRESET. What was sent a moment earlier may have
 * completed, and is lost. No other send may be under way.
 */
void ks_send_until_reset(struct th_stack *s, fi_addr_t dead);

/* Receives the next message, of tag KS_TAG: checks its length and pattern. */
void ks_expect_message(struct th_stack *s, void *buf, size_t len,
		       uint64_t seed);

/*
 * Rank @from sends one small message to rank @to; both wait for it. Called by
 * all ranks that live.
 */
void ks_one_message(struct th_stack *s, struct th_self *self, int from, int to);

/*
 * One message of each size class, 0 B to 3 MiB, to @peer and from it, with
 * verified data. The peer calls it as well.
 */
void ks_exchange_sizes(struct th_stack *s, fi_addr_t peer);

/* Ten messages between ranks 0 and 2, both ways. */
void ks_survivors_go_on(struct th_stack *s, struct th_self *self);

/* Waits until the process has counted @n messages lost with a dead peer. */
void ks_dropped_soon(struct th_stack *s, uint64_t n);

/* ---- storms --------------------------------------------------------- */

/*
 * Processes work at each other, some of them are killed at random instants,
 * round after round. Ranks below the number of survivors live through all
 * rounds, with one endpoint each. The other ranks are managers: in each round
 * a manager forks a victim, hands its address to the survivors and kills it,
 * at times before it has an address.
 */
struct ks_storm {
	int survivors;		/* ranks that live */
	int victims;		/* ranks that kill */
	unsigned long rounds;	/* rounds */
	unsigned int life_bits; /* a victim lives 2^n microseconds at most */
	unsigned int role;	/* of the victims, for them to tell */
	/* what a survivor runs: ks_addresses() first, then in each round */
	void (*survive)(struct th_self *self, const struct ks_storm *storm);
	/* what a victim runs, with ks_victim_meet(); it does not return */
	void (*victim)(int fd, const struct ks_storm *storm, int rank,
		       unsigned long no);
};

/*
 * Parent: runs the storm; nothing of shrimp is left behind. 2 s a round, and
 * 30 s.
 */
void ks_storm_run(struct ks_storm *storm);

/* 50 rounds; 1000 in long runs; 5 in quick ones and in sanitizer builds. */
unsigned long ks_storm_rounds(void);

/* Everybody's addresses; victims that died too early have none, but zeros. */
void ks_addresses(struct th_self *self, const char *addr, size_t len,
		  char *all);

/*
 * Victim: tells the address of @s through @fd, learns the others', as
 * ks_addresses().
 */
void ks_victim_meet(int fd, const struct ks_storm *storm,
		    const struct th_stack *s, char *all);

/* True if there is an address of another rank than @rank at place @i. */
bool ks_is_peer(const struct th_stack *s, const char *all, int i, int rank);

/* Survivor, when it knows all deaths: the last one was noticed in time. */
void ks_check_notice(const struct ks_storm *storm);

/* A failure inside these names the line of the test. */
#define ks_error_soon(...)	 (TH_AT(), (ks_error_soon)(__VA_ARGS__))
#define ks_reset_soon(...)	 (TH_AT(), (ks_reset_soon)(__VA_ARGS__))
#define ks_send_until_reset(...) (TH_AT(), (ks_send_until_reset)(__VA_ARGS__))
#define ks_dropped_soon(...)	 (TH_AT(), (ks_dropped_soon)(__VA_ARGS__))
#define ks_exchange_sizes(...)	 (TH_AT(), (ks_exchange_sizes)(__VA_ARGS__))
#define ks_expect_message(...)	 (TH_AT(), (ks_expect_message)(__VA_ARGS__))

#endif /* SHRIMP_TESTS_KILL_STEPS_H */
