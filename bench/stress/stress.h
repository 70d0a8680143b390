/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * How a scenario of shrimp-stress is written.
 *
 * A scenario is a file sc_NAME.c with one or more struct stress_scenario, and
 * a line for each in list.c and local.mk. It plays with its own memory: maps,
 * unmaps, moves, gives up, and between those lets bytes travel and compares
 * them. That is the whole of it; which libfabric calls carry them, the other
 * process, and what the memory should hold is the business of the functions
 * below:
 *
 *	static int step(struct stress *s, void *state)
 *	{
 *		struct stress_pat pat = { .tag = 0 };
 *		unsigned char *p = map(...);
 *
 *		if (stress_exchange(s, p, LEN, 4))	both ways, verified
 *			return -1;
 *		pat = stress_fill(s, p, LEN);		new bytes
 *		if (stress_out(s, p, LEN, pat))		the peer gets them
 *			return -1;
 *		stress_change_begin(s, p, LEN);		no region is open here
 *		munmap(p, LEN);
 *		stress_change_end(s, p, LEN);
 *		return 0;
 *	}
 *
 * Words: a *group* is the processes of a run, the *actor* is the one whose
 * turn it is, the others are its *partners*. An *act* is one go of a scenario
 * by one actor: set up, any number of steps, tear down. The tool draws acts
 * and steps, gives each step a seed of its own, and, when something is wrong,
 * tries again with fewer of them, each time in new processes: a step depends
 * on nothing but its seed and the steps before it.
 *
 * Rules: a function that fails has told why; pass its -1 on at once. All that
 * is random comes from stress_random(). No region is open while its memory
 * changes, unless that is the subject (and is promised by the provider). Each
 * change of memory that was in a transfer is within stress_change_begin() and
 * _end(). Nothing waits without a limit. What was mapped in an act is unmapped
 * by its tear down, also after a failure.
 *
 * All functions are for the one thread that runs the scenario.
 */
#ifndef BENCH_STRESS_STRESS_H
#define BENCH_STRESS_STRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** The actor's process; its fields are in inside.h, for the tool only. */
struct stress;
struct stress_side;

/** What a step returns besides 0 and -1; nothing was wrong. */
enum {
	STRESS_FAILED = -1, /* told by stress_wrong() */
	STRESS_SKIP = 1,    /* told by stress_skip() */
};

/** What a scenario cannot do without; else it is skipped, and that is told. */
enum stress_need {
	STRESS_RMA = 1 << 0,	 /* fi_read, fi_write */
	STRESS_SHRIMP = 1 << 1,	 /* what only shrimp promises */
	STRESS_UFFD = 1 << 2,	 /* userfaultfd(2), with events */
	STRESS_SECCOMP = 1 << 3, /* seccomp(2) filters */
	STRESS_ALONE = 1 << 4,	 /* the group ends with the act */
};

/**
 * A scenario. Constant. @setup and @teardown may be NULL. @env: settings
 * "NAME=VALUE", ended by NULL, that the group of its acts is started with;
 * NULL: any. @before: in each process of the group, before libfabric is called
 * for the first time; returns 0 or a negative errno (then it is skipped).
 * @setup: makes *@state; returns 0, STRESS_SKIP or -1. @step likewise; it is
 * called any number of times. @teardown: undoes the set up, whatever happened.
 */
struct stress_scenario {
	const char *name;	/* one word, a to z and '-' */
	const char *help;	/* what it does, in a line */
	unsigned int needs;	/* enum stress_need */
	const char *const *env; /* as above */
	int (*before)(void);
	int (*setup)(struct stress *s, void **state);
	int (*step)(struct stress *s, void *state);
	void (*teardown)(struct stress *s, void *state);
};

/** All scenarios, by list.c; ended by NULL. */
extern const struct stress_scenario *const stress_scenarios[];

/* ---- chance, and what is told --------------------------------------- */

/* A number below @n (not 0) of this step's own sequence. */
uint64_t stress_random(struct stress *s, uint64_t n);

/*
 * A length from 1 to @most (at most 4 MiB): small and large ones alike often,
 * many of them a few bytes beside a power of two.
 */
size_t stress_length(struct stress *s, size_t most);

/* The same, in whole pages, of which @most has at least one. */
size_t stress_pages(struct stress *s, size_t most);

/*
 * A line of the trace: what is done with which memory. Cheap; kept and shown
 * if something turns out to be wrong.
 */
void stress_say(struct stress *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Something is wrong: tells what, once in a step. Returns STRESS_FAILED. */
int stress_wrong(struct stress *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* This cannot be done here: tells why. Returns STRESS_SKIP. */
int stress_skip(struct stress *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Counts what was counted on being refused, such as a registration. */
void stress_refused(struct stress *s);

/* Whether this run is a long one; else each step takes some 20 ms. */
bool stress_long(const struct stress *s);

/* Less of everything: a build with sanitizers, or one that is too slow. */
bool stress_slow(const struct stress *s);

/* ---- bytes ------------------------------------------------------------ */

/**
 * What bytes are expected to be: byte i is byte @off + i of stream @tag. No
 * two streams have a word in common, and no stream has one twice, so a wrong
 * word tells where it came from. Tag 0 is all zeros.
 */
struct stress_pat {
	uint64_t tag; /* stream */
	uint64_t off; /* of the first byte in it */
};

/* The bytes from @by on of what @pat describes. */
static inline struct stress_pat stress_at(struct stress_pat pat, uint64_t by)
{
	return (struct stress_pat){ pat.tag, pat.off + by };
}

/* A new stream, from its first byte on, for stress_put() and the like. */
struct stress_pat stress_stream(struct stress *s);

/* Writes a new stream to @len bytes at @p, and tells which. */
struct stress_pat stress_fill(struct stress *s, void *p, size_t len);

/* Writes @pat there (again). */
void stress_put(struct stress *s, void *p, size_t len, struct stress_pat pat);

/*
 * Compares; @what names the memory for whoever reads it. Returns 0, or
 * STRESS_FAILED with the first wrong word, where it belongs, and how many
 * are wrong.
 */
int stress_verify(struct stress *s, const void *p, size_t len,
		  struct stress_pat pat, const char *what);

/* ---- transfers --------------------------------------------------------- */

/*
 * A partner gets the @len bytes at @p, which are @pat, and verifies them: it
 * reads them (RMA), is written to, or gets a message, by chance; through a
 * region of exactly these bytes, or of none, as mr_mode allows, which is
 * closed on return. @p may be memory that can only be read. Returns 0,
 * STRESS_FAILED, or STRESS_SKIP if a region was refused for want of memory.
 */
int stress_out(struct stress *s, const void *p, size_t len,
	       struct stress_pat pat);

/*
 * A partner gives a new stream, to be at @p on return, where it is verified
 * and told by *@pat. Else as stress_out().
 */
int stress_in(struct stress *s, void *p, size_t len, struct stress_pat *pat);

/*
 * Fills @len bytes at @p with a new stream, and lets @n parts of them travel,
 * in both directions, some through one region of all, some through their own.
 * After each the bytes around the part must be what they were. All regions are
 * closed on return. Else as stress_out().
 */
int stress_exchange(struct stress *s, void *p, size_t len, unsigned int n);

/*
 * For memory that is new: sometimes lets it travel as zeros before anything is
 * written there (all of it must be zeros), then stress_exchange() of some
 * parts. Else as stress_out().
 */
int stress_use_new(struct stress *s, void *p, size_t len);

/**
 * A region that peers can use, and its partner. A scenario uses it where a
 * region is to live longer than a transfer.
 */
struct stress_mr {
	struct fid_mr *mr;	  /* NULL: none */
	struct stress_side *side; /* domain it is of */
	bool acquired;	  /* from the provider's cache, not registered */
	uint64_t key;	  /* for the peer */
	uint64_t addr;	  /* of its first byte, as peers name it */
	unsigned char *p; /* first byte */
	size_t len;	  /* bytes */
};

/** What a region is for. */
enum stress_use {
	STRESS_OUT = 1, /* bytes leave it */
	STRESS_IN = 2,	/* bytes come into it */
	STRESS_BOTH = 3,
	STRESS_LOCAL = 4, /* with one of these: not for peers */
};

/*
 * Registers @len bytes at @p for peers, or (on shrimp, sometimes) acquires a
 * region from the cache. Returns 0, STRESS_FAILED, or STRESS_SKIP if it was
 * refused for want of memory. Partner: stress_mr_put().
 */
int stress_mr_get(struct stress *s, void *p, size_t len, enum stress_use use,
		  struct stress_mr *m);

/* The same, never from the cache; @flags as for fi_mr_regattr(3). */
int stress_mr_reg(struct stress *s, void *p, size_t len, enum stress_use use,
		  uint64_t flags, struct stress_mr *m);

/* Closes, or releases, it; zeroed memory is accepted. Returns 0 or -1. */
int stress_mr_put(struct stress *s, struct stress_mr *m);

/*
 * stress_mr_reg() in the first domain by any thread, told by nobody. No other
 * region has, or had, @key, which is above 2^33. Returns 0 or an FI_ code.
 * Partner: stress_mr_put(), by the one thread.
 */
int stress_mr_reg_beside(struct stress *s, void *p, size_t len,
			 enum stress_use use, uint64_t key,
			 struct stress_mr *m);

/* Whether other threads may call the provider meanwhile. */
bool stress_threads_may(const struct stress *s);

/* Drops what the provider's cache has and nobody uses, where it lets us. */
void stress_flush(struct stress *s);

/*
 * A partner reads bytes @off, @len of @m by RMA, and verifies that they are
 * @pat; needs STRESS_RMA. Returns 0 or STRESS_FAILED.
 */
int stress_pull(struct stress *s, const struct stress_mr *m, size_t off,
		size_t len, struct stress_pat pat);

/* A partner writes a new stream there by RMA, which is verified. Likewise. */
int stress_push(struct stress *s, const struct stress_mr *m, size_t off,
		size_t len, struct stress_pat *pat);

/*
 * A partner tries to write there, or (@write false) to read; both must end in
 * an error completion. Returns 0, or STRESS_FAILED if it was a success.
 */
int stress_refuses(struct stress *s, const struct stress_mr *m, size_t off,
		   size_t len, bool write);

/** What a partner does meanwhile. */
enum stress_flow {
	STRESS_FLOW_PULL, /* reads, bytes do not matter */
	STRESS_FLOW_PUSH, /* writes the stream told in @pat, again and again */
	STRESS_FLOW_VERIFY, /* reads, bytes must be @pat */
	STRESS_FLOW_TRY,    /* writes, as PUSH; each may also end in an error */
};

/*
 * A partner, of @rank (or -1: any), starts to use all of @m without a pause;
 * one flow at a time. Returns 0 or STRESS_FAILED. Partner: stress_flow_end(),
 * before the region is closed or anything else is transferred.
 */
int stress_flow_begin(struct stress *s, const struct stress_mr *m, int rank,
		      enum stress_flow how, struct stress_pat pat);

/*
 * Ends it. *@times (may be NULL) is how often the region was used. Returns 0
 * or STRESS_FAILED.
 */
int stress_flow_end(struct stress *s, uint64_t *times);

/* Makes progress for about @us microseconds. */
void stress_progress(struct stress *s, unsigned int us);

/* ---- changes of memory ------------------------------------------------- */

/*
 * Between the two, bytes @p, @len of this process go, move, are replaced, or
 * are given up. Tells the provider where it has a call for that; required by
 * shrimp with FI_SHRIMP_MR_CACHE_MONITOR=notify. May be nested.
 */
void stress_change_begin(struct stress *s, const void *p, size_t len);
void stress_change_end(struct stress *s, const void *p, size_t len);

enum {
	STRESS_PAGE = 4096,    /* the kernel's small page */
	STRESS_SLOT = 8 << 20, /* bytes of a slot */
	STRESS_SLOTS = 20,     /* of them, one after the other */
};

/*
 * Reserves addresses: slot @i of STRESS_SLOTS, the same in all acts of a
 * process, so that what an earlier one left behind is met again. Nothing is
 * mapped there but PROT_NONE, to be replaced with MAP_FIXED, or to be unmapped
 * and mapped again. Returns its address, or NULL if somebody has been given it
 * meanwhile, for a while: then take any address. Partner: stress_slot_free().
 */
unsigned char *stress_slot(struct stress *s, unsigned int i);

/*
 * Reserves the slot again. All that is mapped there and was not unmapped by
 * stress_unmap() must be of the scenario.
 */
void stress_slot_free(struct stress *s, unsigned int i);

/*
 * For those who map and unmap in a slot by calls of their own: bytes @p, @len
 * (whole pages) are mapped now, or were unmapped. Nothing if @p is in no slot.
 */
void stress_slot_took(struct stress *s, void *p, size_t len);
void stress_slot_left(struct stress *s, void *p, size_t len);

/*
 * Reserves what was unmapped of bytes @p, @len (whole pages, in a slot), for
 * calls that replace whatever is there. False: another thread has some of it.
 */
bool stress_slot_plug(struct stress *s, unsigned char *p, size_t len);

/*
 * The flag for mmap(2) at @p: MAP_FIXED where it replaces what is known to be
 * ours, else MAP_FIXED_NOREPLACE.
 */
int stress_slot_fixed(struct stress *s, unsigned char *p, size_t len);

/*
 * Maps @len bytes of zeros at @at, which must be free or NULL: then, or if it
 * is taken, anywhere. Private, or shared: then it is one of the two kinds that
 * follow. NULL: no memory.
 */
unsigned char *stress_map(struct stress *s, void *at, size_t len, bool shared);

/*
 * The same of a memory file that is sealed against shrinking, with a descriptor
 * open: peers may map it. It is 2 MiB longer than @len, for mappings that grow,
 * and is closed some time after the act.
 */
unsigned char *stress_map_memfd(struct stress *s, void *at, size_t len);

/* The descriptor of such a file with @len bytes; -1: none. Likewise. */
int stress_memfd(struct stress *s, size_t len);

/* The same, holding a new stream, told by *@pat. */
int stress_memfd_filled(struct stress *s, size_t len, struct stress_pat *pat);

/* The same with what mmap(2) takes, from offset 0 of @fd (or -1). */
unsigned char *stress_map_as(struct stress *s, void *at, size_t len, int prot,
			     int flags, int fd);

/*
 * Unmaps @len bytes (whole pages), within stress_change_begin() and _end(). @p
 * may be NULL.
 */
void stress_unmap(struct stress *s, void *p, size_t len);

/* malloc(), and free() with the provider told. @p may be NULL. */
void *stress_malloc(struct stress *s, size_t len);
void stress_free(struct stress *s, void *p);

/*
 * realloc(3), likewise; NULL: no memory, @p is as it was. The bytes are to be
 * used through what it returns.
 */
void *stress_realloc(struct stress *s, void *p, size_t len);

/*
 * Between the two no thread beside allocates or maps; short, and nothing is
 * transferred. Other threads of the provider may.
 */
void stress_beside_pause(struct stress *s);
void stress_beside_resume(struct stress *s);

/*
 * madvise(2), with the provider told. Returns 0; STRESS_SKIP if the kernel
 * does not do that with this memory or for now, or if the provider keeps some
 * of it locked and may (what lies before may be done); STRESS_FAILED if it does
 * and may not.
 */
int stress_madvise(struct stress *s, void *p, size_t len, int advice);

/* Whether the provider may keep memory locked of which no region is open. */
bool stress_keeps_locked(const struct stress *s);

/* ---- processes and threads ---------------------------------------------- */

/* Number of processes, and the rank of this one, the actor. */
int stress_group_size(const struct stress *s);
int stress_rank(const struct stress *s);

/*
 * Forks a child that calls @run(arg) and leaves by _exit() with what that
 * returned; it calls nothing of libfabric or of this file but stress_same().
 * Returns its id, or -1 (told). Partner: stress_reap().
 */
pid_t stress_fork(struct stress *s, int (*run)(void *arg), void *arg);

/*
 * Waits for it, making progress. Returns 0, or STRESS_FAILED if it did not
 * end in time, or not with 0. On a failure it has been killed and reaped.
 */
int stress_reap(struct stress *s, pid_t pid);

/* stress_verify() that tells nothing; any thread, any process. */
bool stress_same(const void *p, size_t len, struct stress_pat pat);

/* stress_put() likewise. */
void stress_write(void *p, size_t len, struct stress_pat pat);

/*
 * The parent of all kills partner @rank with SIGKILL and reaps it. For
 * STRESS_ALONE. Returns 0 or STRESS_FAILED. Nothing may be asked of it later.
 */
int stress_kill(struct stress *s, int rank);

/*
 * Opens a second domain and endpoint of the same provider, over which some of
 * the later transfers go, or closes it. Returns 0, STRESS_SKIP or
 * STRESS_FAILED.
 */
int stress_second_open(struct stress *s);
int stress_second_close(struct stress *s);

/* Whether the provider is shrimp. */
bool stress_is_shrimp(const struct stress *s);

/* Whether it has RMA, for what STRESS_RMA does not say of all of a scenario. */
bool stress_has_rma(const struct stress *s);

/* The value of an environment variable, or "". */
const char *stress_setting(const char *name);

#endif
