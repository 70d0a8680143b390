/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Harness of the tests that run over libfabric.
 *
 * A cmocka test never calls libfabric itself: it starts a group of one or
 * more child processes and waits for them. So a crash or a hang ends one
 * test, threads that a provider starts never meet a fork, and each test may
 * set environment variables before libfabric reads them. The parent is the
 * switchboard: children meet at named steps and exchange small data through
 * it. A group that is over its time limit is killed and the parent says at
 * which step each child was.
 *
 * Environment: SHRIMP_TEST_PROVIDER (default "shrimp") names the provider;
 * SHRIMP_QUICK=1 does a tenth of the rounds, SHRIMP_LONG=1 ten times as many,
 * SHRIMP_SLOW=n gives a slow machine n times as long.
 *
 * All functions are for one thread per process, the checks (th_fail and what
 * is built on it) and the patterns excepted: any thread of a child may call
 * those.
 */
#ifndef SHRIMP_TESTS_HARNESS_H
#define SHRIMP_TESTS_HARNESS_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

/* ---- checks -------------------------------------------------------- */

/*
 * Ends the test as failed. In a child the text goes to the parent, which
 * prints it, and the process exits at once (no handler runs). In the parent
 * the running group, if any, is killed first. Any thread of a child.
 */
void th_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));

/*
 * Notes where this thread's test called the harness, so that a failure found
 * inside a helper names that place too. The macros below call it.
 */
void th_at(const char *file, int line);

/*
 * Fails unless @ret is 0 (or positive); the text names @what and the
 * libfabric error. Returns @ret.
 */
ssize_t th_ok_at(const char *file, int line, const char *what, ssize_t ret);

/*
 * Fails unless @a equals @b; both are printed, in decimal and hexadecimal,
 * small negative ones also as libfabric errors.
 */
void th_eq_at(const char *file, int line, const char *what, int64_t a,
	      int64_t b);

/* Fails unless @cond holds. */
#define th_check(cond)                                                         \
	do {                                                                   \
		if (!(cond))                                                   \
			th_fail(__FILE__, __LINE__, "%s", #cond);              \
	} while (0)

/* Fails unless the call gives 0 or more; its value is the call's. */
#define th_ok(call) th_ok_at(__FILE__, __LINE__, #call, (call))

/* Fails unless both integers (lengths, codes, flags) are equal. */
#define th_eq(a, b)                                                            \
	th_eq_at(__FILE__, __LINE__, #a " == " #b, (int64_t)(a), (int64_t)(b))

/* Fails unless both pointers are equal. */
#define th_ptr_eq(a, b) th_eq((uintptr_t)(a), (uintptr_t)(b))

/* ---- time and rounds ----------------------------------------------- */

/* Nanoseconds of the monotonic clock. */
uint64_t th_now_ns(void);

/* Sleeps @us microseconds. */
void th_sleep_us(unsigned int us);

/*
 * How much slower all may be: 1 plain, more under a sanitizer, and times
 * SHRIMP_SLOW. All time limits of the harness are multiplied by it.
 */
unsigned int th_time_scale(void);

/* True when built with a sanitizer (address, undefined or thread). */
bool th_sanitized(void);

/* True when SHRIMP_LONG=1. */
bool th_long(void);

/*
 * Rounds to run where @n is the default: a tenth (at least 1) with
 * SHRIMP_QUICK=1 or in a sanitizer build, ten times with SHRIMP_LONG=1.
 */
unsigned long th_rounds(unsigned long n);

/* A point in time after which a wait gives up. */
struct th_deadline {
	uint64_t at_ns; /* on the monotonic clock */
};

/* A deadline @ms milliseconds (times th_time_scale()) from now. */
struct th_deadline th_deadline_ms(unsigned int ms);

/* True once @dl has passed. */
bool th_expired(const struct th_deadline *dl);

/* The deadline of a wait that must succeed: 20 s, scaled. */
struct th_deadline th_patience(void);

/*
 * A reproducible random number; @state is advanced. Not for threads that
 * share @state.
 */
uint64_t th_random(uint64_t *state);

/* ---- patterns and guarded buffers ---------------------------------- */

/*
 * Fills @len bytes with bytes @off, @off + 1, ... of the endless pattern
 * @seed. Different seeds give unrelated patterns.
 */
void th_fill_at(void *buf, size_t len, uint64_t seed, size_t off);

/* th_fill_at() from offset 0. */
void th_fill(void *buf, size_t len, uint64_t seed);

/* True if @len bytes hold pattern @seed from @off on. */
bool th_match_at(const void *buf, size_t len, uint64_t seed, size_t off);

/* Fails, naming the first wrong byte, unless th_match_at() holds. */
void th_verify_at(const void *buf, size_t len, uint64_t seed, size_t off);

/* th_verify_at() from offset 0. */
void th_verify(const void *buf, size_t len, uint64_t seed);

/* Fails unless all @len bytes are @byte. */
void th_verify_byte(const void *buf, size_t len, unsigned char byte);

/* A buffer with guard bytes before and after it. */
struct th_buf {
	unsigned char *p; /* the @len usable bytes, initially 0xee */
	size_t len;	  /* usable length */
	void *base;	  /* what was allocated */
};

/* Allocates a guarded buffer; fails the test if there is no memory. */
struct th_buf th_buf_new(size_t len);

/* Fails unless all guard bytes are as they were. */
void th_buf_check(const struct th_buf *b);

/* Checks the guards and frees the buffer. */
void th_buf_free(struct th_buf *b);

/* ---- processes: the child's side ------------------------------------ */

/* A child of a group, as its main function sees it. */
struct th_self {
	int rank;  /* 0 to size - 1 */
	int size;  /* children of the group */
	void *arg; /* as given to th_group_start() */
	int fd;	   /* socket to the parent; harness only */
};

/*
 * What a child runs. Returning is success: the process then exits through
 * exit(3), so that destructors and leak checks run.
 */
typedef void th_main_fn(struct th_self *self);

/*
 * Waits until all living children of the group are at the step @name (at
 * most 31 characters). Blocks without making any libfabric progress.
 */
void th_barrier(struct th_self *self, const char *name);

/* Skips the test unless @gib GiB are free (in long runs: never). */
void th_need_memory(struct th_self *self, unsigned int gib);

enum { TH_HUGE_PERIOD = 1 << 20 }; /* bytes of th_huge_map() that there are */

/*
 * Maps at least @len bytes of which every MiB is the same memory: 1 MiB behind
 * any length. *@fd: to be closed after munmap() of @len + TH_HUGE_PERIOD.
 */
unsigned char *th_huge_map(size_t len, int *fd);

/*
 * As th_barrier(), and hands out data: each child gives @len bytes (at most
 * 4096), @all receives size * len bytes in rank order (zeros for the dead).
 */
void th_gather(struct th_self *self, const char *name, const void *in,
	       void *all, size_t len);

/* Tells the parent "@name is @value"; see th_group_wait_note(). */
void th_note(struct th_self *self, const char *name, uint64_t value);

/* Waits for a number from the parent; see th_group_tell(). */
uint64_t th_listen(struct th_self *self);

/*
 * Ends the whole test as skipped, for a reason that lies in the machine or
 * in a provider other than ours.
 */
void th_skip(struct th_self *self, const char *reason)
	__attribute__((noreturn));

/* ---- processes: the parent's side ----------------------------------- */

struct th_group;

/*
 * Forks @n children that run @main with @arg. The group must end within
 * @seconds (scaled; twelve times that with SHRIMP_LONG=1). Caller is a cmocka
 * test (not a child); one group at a time. Ends in th_group_finish().
 */
struct th_group *th_group_start(int n, th_main_fn *main, void *arg,
				unsigned int seconds);

/* Process id of child @rank, 0 once it has been reaped. */
pid_t th_group_pid(const struct th_group *g, int rank);

/*
 * Child @rank may from now on die of signal @sig without failing the test;
 * once dead it is no longer waited for at steps.
 */
void th_group_expect_death(struct th_group *g, int rank, int sig);

/* Sends @sig to child @rank; for SIGKILL its death is expected. */
void th_group_kill(struct th_group *g, int rank, int sig);

/* Gives child @rank the number that its th_listen() returns. */
void th_group_tell(struct th_group *g, int rank, uint64_t value);

/*
 * Serves the children for up to @ms milliseconds or until something
 * happened. Returns false once all children have ended.
 */
bool th_group_pump(struct th_group *g, int ms);

/* Serves the children for @ms milliseconds, whatever happens. */
void th_group_serve(struct th_group *g, unsigned int ms);

/*
 * Serves the children until child @rank has said th_note(@name); returns the
 * value. Each note is returned once, in order. Fails at the time limit or if
 * the child ended without it.
 */
uint64_t th_group_wait_note(struct th_group *g, int rank, const char *name);

/*
 * Serves the children until all have ended, frees the group, and fails (or
 * skips) the test if one of them did.
 */
void th_group_finish(struct th_group *g);

/* th_group_start() and th_group_finish() in one. */
void th_run(int n, th_main_fn *main, void *arg, unsigned int seconds);

/* A test of a program's table: th_run(n, main, NULL, seconds). */
struct th_spec {
	th_main_fn *main;     /* what each child runs */
	int n;		      /* children */
	unsigned int seconds; /* time limit */
};

/* The cmocka test that runs the struct th_spec in its initial state. */
void th_case(void **state);

/* Table entry: @n children run @fn; the test has the name of @fn. */
#define TH_CASE(fn, n, seconds)                                                \
	{                                                                      \
#fn, th_case, NULL, NULL, &(struct th_spec)                    \
		{                                                              \
			fn, n, seconds                                         \
		}                                                              \
	}

/*
 * Runs the tests of a program: sets FI_PROVIDER if unset, applies the test
 * filter (a pattern of cmocka) in argv[1], checks that no child is left.
 * Returns the program's exit status.
 */
int th_main(int argc, char **argv, const char *name,
	    const struct CMUnitTest *tests, size_t n);

/* main() of a test program with the cmocka table @tests. */
#define TH_MAIN(tests)                                                         \
	int main(int argc, char **argv)                                        \
	{                                                                      \
		return th_main(argc, argv, #tests, tests,                      \
			       sizeof(tests) / sizeof((tests)[0]));            \
	}

/* ---- a libfabric stack ---------------------------------------------- */

/* Name of the provider under test. */
const char *th_provider(void);

/* True if that is our own. */
bool th_is_shrimp(void);

struct th_stack;

/* How to open a stack; all zero gives the defaults named here. */
struct th_stack_opts {
	uint64_t caps;		     /* FI_MSG | FI_TAGGED */
	enum fi_av_type av_type;     /* FI_AV_MAP (UNSPEC gives it) */
	enum fi_cq_format cq_format; /* FI_CQ_FORMAT_TAGGED */
	enum fi_wait_obj cq_wait;    /* FI_WAIT_NONE */
	enum fi_wait_obj cntr_wait;  /* FI_WAIT_NONE */
	enum fi_progress progress;   /* data_progress, FI_PROGRESS_UNSPEC */
	enum fi_threading threading; /* FI_THREAD_UNSPEC */
	int mr_mode;		     /* domain_attr->mr_mode; basic */
	bool one_cq;		     /* one CQ for both (txcq == rxcq) */
	bool cntrs;		     /* bind txcntr and rxcntr before enable */
	bool no_enable;		     /* leave fi_enable() to the test */
	uint64_t tx_bind;     /* more flags for the CQ bind: FI_TRANSMIT */
	uint64_t rx_bind;     /* more flags for the CQ bind: FI_RECV */
	uint64_t tx_op_flags; /* tx_attr->op_flags; 0 */
	uint64_t rx_op_flags; /* rx_attr->op_flags; 0 */
	size_t cq_size;	      /* 0: the provider's */
	const char *node;     /* fi_getinfo() node; NULL */
	const char *service;  /* fi_getinfo() service; NULL */
	uint64_t flags;	      /* fi_getinfo() flags; 0 */
	/* Share its fabric and domain (AV, CQs and endpoint are own). */
	struct th_stack *domain_of;
};

/* Largest group that th_stack_connect() serves. */
enum { TH_MAX_PEERS = 512, TH_MAX_ADDR = 256 };

/* An endpoint with everything it needs. */
struct th_stack {
	struct fi_info *info;	    /* what fi_getinfo() gave */
	struct fid_fabric *fabric;  /* own, or that of domain_of */
	struct fid_domain *domain;  /* own, or that of domain_of */
	struct fid_av *av;	    /* own */
	struct fid_cq *txcq;	    /* own */
	struct fid_cq *rxcq;	    /* own; txcq if one_cq */
	struct fid_cntr *txcntr;    /* own; FI_SEND; NULL unless cntrs */
	struct fid_cntr *rxcntr;    /* own; FI_RECV; NULL unless cntrs */
	struct fid_ep *ep;	    /* own */
	char addr[TH_MAX_ADDR];	    /* fi_getname() after enable */
	size_t addrlen;		    /* its length */
	fi_addr_t *peers;	    /* by rank, after th_stack_connect() */
	struct th_stack *domain_of; /* owner of fabric and domain, or NULL */
	/*
	 * Another stack of this process that needs progress while this one
	 * waits; a ring of them, or NULL.
	 */
	struct th_stack *buddy;
};

/*
 * The hints that th_stack_open() gives, from @o (may be NULL). The caller
 * frees them with fi_freeinfo().
 */
struct fi_info *th_hints(const struct th_stack_opts *o);

/* Opens a stack as @o says (NULL: defaults); fails the test if it cannot. */
void th_stack_open(struct th_stack *s, const struct th_stack_opts *o);

/* fi_enable() and fi_getname(), for stacks opened with no_enable. */
void th_stack_enable(struct th_stack *s);

/* Closes all of it; each fi_close() must succeed. */
void th_stack_close(struct th_stack *s);

/* fi_av_insert() of one binary address; returns what it is called here. */
fi_addr_t th_insert(struct th_stack *s, const void *addr);

/* Exchanges addresses with the group and inserts all of them, in order. */
void th_stack_connect(struct th_stack *s, struct th_self *self);

/*
 * Opens two stacks in this process that know each other: peers[0] is @a,
 * peers[1] is @b in both, and each makes progress while the other waits.
 */
void th_pair_open(struct th_stack *a, struct th_stack *b,
		  const struct th_stack_opts *o);

/* Closes both. */
void th_pair_close(struct th_stack *a, struct th_stack *b);

/* Makes progress on @s and its buddies without taking any completion. */
void th_progress(struct th_stack *s);

/*
 * Shows ThreadSanitizer that what the agents of @s and its buddies have done
 * is before what the caller does next, and what the caller has done before
 * what they do next: that order goes through another process, or through
 * memory that is mapped twice, where it cannot see it. Nothing in other
 * builds. No progress.
 */
void th_settle(struct th_stack *s);

/* th_barrier() that makes progress on @s meanwhile. */
void th_barrier_progress(struct th_self *self, struct th_stack *s,
			 const char *name);

/*
 * Waits for the next entry of @cq, which is one of @s: returns 1 and fills
 * @entry (of the CQ's format), or -FI_EAVAIL and fills @err. Fails if
 * nothing comes in time.
 */
int th_cq_next(struct th_stack *s, struct fid_cq *cq, void *entry,
	       struct fi_cq_err_entry *err);

/*
 * The next entry of the transmit (tx) or receive (rx) CQ, which must be a
 * success (ok) or an error (err); for CQs of FI_CQ_FORMAT_TAGGED.
 */
struct fi_cq_tagged_entry th_tx_ok(struct th_stack *s);
struct fi_cq_tagged_entry th_rx_ok(struct th_stack *s);
struct fi_cq_err_entry th_tx_err(struct th_stack *s);
struct fi_cq_err_entry th_rx_err(struct th_stack *s);

/* As th_rx_ok(), and the source as fi_cq_readfrom() tells it. */
struct fi_cq_tagged_entry th_rx_from(struct th_stack *s, fi_addr_t *src);

/* Fails if an entry comes to either CQ of @s within @ms milliseconds. */
void th_quiet(struct th_stack *s, unsigned int ms);

/* Waits until @cntr counts at least @value; fails if it takes too long. */
void th_cntr_reach(struct th_stack *s, struct fid_cntr *cntr, uint64_t value);

/*
 * True if the message call @call, which gave @ret, must be made again because
 * of -FI_EAGAIN: progress was made meanwhile. Our own provider may not give
 * that (contract P2), so there it fails the test, as any other error does
 * everywhere, and as does passing @dl.
 */
bool th_again(struct th_stack *s, ssize_t ret, const char *call,
	      const struct th_deadline *dl);

/* Makes the message call @call, as often as th_again() says. */
#define th_post(s, call)                                                       \
	do {                                                                   \
		struct th_deadline dl_ = th_patience();                        \
                                                                               \
		while (th_again(s, (call), #call, &dl_))                       \
			;                                                      \
	} while (0)

/* The plain calls without descriptor, through th_post(). */
void th_send(struct th_stack *s, fi_addr_t to, const void *buf, size_t len,
	     void *ctx);
void th_tsend(struct th_stack *s, fi_addr_t to, const void *buf, size_t len,
	      uint64_t tag, void *ctx);
void th_recv(struct th_stack *s, void *buf, size_t len, void *ctx);
void th_trecv(struct th_stack *s, void *buf, size_t len, uint64_t tag,
	      uint64_t ignore, void *ctx);

/*
 * Each of these functions under its own name, with th_at() before it.
 */
#define TH_AT()		     th_at(__FILE__, __LINE__)
#define th_verify_at(...)    (TH_AT(), (th_verify_at)(__VA_ARGS__))
#define th_verify(...)	     (TH_AT(), (th_verify)(__VA_ARGS__))
#define th_verify_byte(...)  (TH_AT(), (th_verify_byte)(__VA_ARGS__))
#define th_buf_check(...)    (TH_AT(), (th_buf_check)(__VA_ARGS__))
#define th_buf_free(...)     (TH_AT(), (th_buf_free)(__VA_ARGS__))
#define th_stack_open(...)   (TH_AT(), (th_stack_open)(__VA_ARGS__))
#define th_stack_enable(...) (TH_AT(), (th_stack_enable)(__VA_ARGS__))
#define th_stack_close(...)  (TH_AT(), (th_stack_close)(__VA_ARGS__))
#define th_pair_open(...)    (TH_AT(), (th_pair_open)(__VA_ARGS__))
#define th_pair_close(...)   (TH_AT(), (th_pair_close)(__VA_ARGS__))
#define th_cq_next(...)	     (TH_AT(), (th_cq_next)(__VA_ARGS__))
#define th_tx_ok(...)	     (TH_AT(), (th_tx_ok)(__VA_ARGS__))
#define th_rx_ok(...)	     (TH_AT(), (th_rx_ok)(__VA_ARGS__))
#define th_tx_err(...)	     (TH_AT(), (th_tx_err)(__VA_ARGS__))
#define th_rx_err(...)	     (TH_AT(), (th_rx_err)(__VA_ARGS__))
#define th_rx_from(...)	     (TH_AT(), (th_rx_from)(__VA_ARGS__))
#define th_quiet(...)	     (TH_AT(), (th_quiet)(__VA_ARGS__))
#define th_cntr_reach(...)   (TH_AT(), (th_cntr_reach)(__VA_ARGS__))
#define th_send(...)	     (TH_AT(), (th_send)(__VA_ARGS__))
#define th_tsend(...)	     (TH_AT(), (th_tsend)(__VA_ARGS__))
#define th_recv(...)	     (TH_AT(), (th_recv)(__VA_ARGS__))
#define th_trecv(...)	     (TH_AT(), (th_trecv)(__VA_ARGS__))
#define th_again(...)	     (TH_AT(), (th_again)(__VA_ARGS__))

#endif /* SHRIMP_TESTS_HARNESS_H */
