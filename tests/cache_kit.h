/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the tests of the registration cache share: its settings, one test for
 * each set of them, and changes of memory that the cache is told of where it
 * must be.
 *
 * All functions: one thread of a test's child at a time, unless it is said
 * otherwise. What cannot be done fails the test.
 */
#ifndef SHRIMP_TESTS_CACHE_KIT_H
#define SHRIMP_TESTS_CACHE_KIT_H

#include "harness.h"
#include "rma_kit.h"

/* Whatever the process itself may do with a buffer. */
#define CK_LOCAL (FI_SEND | FI_RECV | FI_READ | FI_WRITE)

/* How the cache of a test is set; NULL: not. */
struct ck_how {
	const char *cache;   /* FI_SHRIMP_MR_CACHE */
	const char *monitor; /* FI_SHRIMP_MR_CACHE_MONITOR */
	const char *pin;     /* FI_SHRIMP_MR_CACHE_PIN */
	const char *entries; /* FI_SHRIMP_MR_CACHE_ENTRIES */
	const char *regions; /* FI_SHRIMP_MONITOR */
};

/* The sets that tests are made for: cache, monitor, and what else differs. */
extern struct ck_how ck_off, ck_local_uffd, ck_local_notify, ck_local_off,
	ck_all_uffd, ck_all_notify, ck_all_off, ck_all_keep, ck_local_keep;

/* A process's cache. */
struct ck {
	const struct ck_how *how;	 /* its settings */
	struct th_stack *s;		 /* its stack */
	struct fi_ops_shrimp_cache *ops; /* calls of its domain */
};

/*
 * Sets what self->arg, a struct ck_how, says; before libfabric is called.
 * Skips the test where it wants a monitor that the kernel does not let us
 * have.
 */
void ck_set(struct th_self *self);

/* The cache of @s, whose settings are those of ck_set(). */
struct ck ck_of(struct th_self *self, struct th_stack *s);

/* The kernel lets this process watch its memory. */
bool ck_can_watch(void);

/* The counters of the cache's domain. Any thread. */
struct fi_shrimp_stats ck_stats(const struct ck *c);

/*
 * The memory at @p is about to change, and has: told if the monitor is
 * "notify", and only then. Any thread.
 */
void ck_begin(const struct ck *c, const void *p, size_t len);
void ck_end(const struct ck *c, const void *p, size_t len);

/* munmap() of it, told. Any thread. */
void ck_unmap(const struct ck *c, void *p, size_t len);

/* free() of @len bytes, told. Any thread. */
void ck_free(const struct ck *c, void *p, size_t len);

/* madvise(2) MADV_DONTNEED, told; returns 0 or -errno. Any thread. */
int ck_give_up(const struct ck *c, void *p, size_t len);

/*
 * Other memory at @p, zeroed, or, @fd not -1, the same bytes of file @fd that
 * lie @off behind its start; told. Any thread.
 */
void ck_replace(const struct ck *c, void *p, size_t len, int fd, size_t off);

/* The same by one call: there is never nothing. */
void ck_map_over(const struct ck *c, void *p, size_t len, int fd, size_t off);

/*
 * Maps @len bytes where nothing is mapped: private memory, or, @fd not -1, the
 * start of that file. Any thread.
 */
void *ck_map_at(void *want, size_t len, int fd);

/*
 * Registers something new and closes it, twice: a limit may be looked at only
 * when an entry comes.
 */
void ck_overflow(struct th_stack *s);

/* How many of the @len bytes at @p lie in locked mappings. Any thread. */
size_t ck_locked(const void *p, size_t len);

/* An initiator and an owner in one process; the owner's cache is looked at. */
struct ck_bed {
	struct th_stack a, b;	     /* initiator, owner */
	struct ck c;		     /* of the owner */
	struct fi_ops_shrimp_mr *mr; /* calls of the owner's domain */
	struct fid *dom;	     /* that domain */
};

/*
 * Opens it after ck_set(). @mode: as FI_SHRIMP_MR_MODE, or NULL: keys are the
 * client's. Regions with remote rights are acquired by provider keys only.
 */
void ck_bed_open(struct ck_bed *b, struct th_self *self, const char *mode);

/* Closes both. */
void ck_bed_close(struct ck_bed *b);

/*
 * Registers @len bytes at @p by the owner, with key RK_KEY, and closes the
 * region: it is at most idle then.
 */
void ck_touch(struct ck_bed *b, void *p, size_t len, uint64_t access);

/* A test with settings of its own. */
struct ck_spec {
	th_main_fn *main;     /* what each child runs */
	int n;		      /* children */
	unsigned int seconds; /* time limit */
	struct ck_how *how;   /* its settings */
};

/* The cmocka test that runs the struct ck_spec in its initial state. */
void ck_case(void **state);

/* Table entry: @n children run @fn with the settings ck_@how. */
#define CK_CASE(fn, n, seconds, how)                                           \
	{                                                                      \
#fn "_" #how, ck_case, NULL, NULL, &(struct ck_spec)           \
		{                                                              \
			fn, n, seconds, &ck_##how                              \
		}                                                              \
	}

/* Table entries: all of the sets but local_keep. */
#define CK_CASES(fn, n, seconds)                                               \
	CK_CASE(fn, n, seconds, off), CK_CASE(fn, n, seconds, local_uffd),     \
		CK_CASE(fn, n, seconds, local_notify),                         \
		CK_CASE(fn, n, seconds, local_off),                            \
		CK_CASE(fn, n, seconds, all_uffd),                             \
		CK_CASE(fn, n, seconds, all_notify),                           \
		CK_CASE(fn, n, seconds, all_off),                              \
		CK_CASE(fn, n, seconds, all_keep)

/* Table entries: the sets that differ most. */
#define CK_SOME(fn, n, seconds)                                                \
	CK_CASE(fn, n, seconds, off), CK_CASE(fn, n, seconds, local_uffd),     \
		CK_CASE(fn, n, seconds, all_uffd),                             \
		CK_CASE(fn, n, seconds, all_notify),                           \
		CK_CASE(fn, n, seconds, all_keep)

#endif /* SHRIMP_TESTS_CACHE_KIT_H */
