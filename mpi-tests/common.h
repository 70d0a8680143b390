/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What all MPI test programs share: options, patterns, checks, and the proof
 * that the program's messages went through shrimp.
 *
 * A program calls mt_init() first and returns mt_end() from main(). In
 * between it tells by mt_sent(), mt_moved() and mt_device() how much it
 * handed to MPI, and mt_end() compares that with what the provider counted.
 * Nothing may leave the job between mt_init() and mt_end() by another way
 * than these.
 *
 * Environment: SHRIMP_TEST_ANY=1 leaves out the comparison, so that a program
 * can be tried over another transport; SHRIMP_QUICK=1 does a tenth of the
 * rounds, SHRIMP_LONG=1 ten times as many. SHRIMP_TEST_WAY says how strict the
 * comparison is: "rdma", messages by the mtl and one-sided operations as RMA
 * and atomics, each counted apart; "pt2pt", one-sided ones as messages, too;
 * "ob1", anything by pml ob1, which moves some messages by RMA. Without it,
 * one-sided operations may have gone either way.
 *
 * Threads: mt_init(), mt_end(), mt_alloc() and mt_free() belong to one thread
 * at a time; everything else may be called by any thread.
 */
#ifndef SHRIMP_MPI_TESTS_COMMON_H
#define SHRIMP_MPI_TESTS_COMMON_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Set by mt_init(): this process in MPI_COMM_WORLD, and the size of that. */
extern int mt_rank;
extern int mt_size;

/* ---- start and end ------------------------------------------------- */

/* An option "--name VALUE" of a program; tables end with a NULL name. */
struct mt_opt {
	const char *name; /* without the dashes */
	long *value;	  /* default on entry, what was given after */
	const char *help; /* one line */
};

/*
 * Reads the options, starts MPI with at least thread level @level and reads
 * shrimp's counters. "--help" prints @about and the options and exits with 0,
 * a bad option exits with 2, both before MPI is touched. @opts may be NULL.
 * Fails the job when MPI gives less than @level or shrimp is not there.
 */
void mt_init(int argc, char **argv, int level, const char *about,
	     const struct mt_opt *opts);

/*
 * Collective: checks that shrimp carried at least what was told, prints the
 * line "ok @name: ..." on rank 0 (nothing when @name is NULL), ends MPI.
 * Returns the exit status, 0; a failed check ends the job.
 */
int mt_end(const char *name);

/* ---- what must have passed through shrimp -------------------------- */

/* This process sent @msgs messages of @bytes bytes together. */
void mt_sent(uint64_t msgs, uint64_t bytes);

/*
 * The processes of @comm together sent at least @msgs messages of @bytes
 * bytes, nobody knows which of them (a collective). All call it; the first
 * rank of @comm counts.
 */
void mt_moved(MPI_Comm comm, uint64_t msgs, uint64_t bytes);

/*
 * This process handed @ops one-sided operations that move @bytes bytes to
 * MPI, not counting those to itself or to memory that MPI shares.
 */
void mt_device(uint64_t ops, uint64_t bytes);

/*
 * Collective: the comparison of mt_end() alone, for a program that will not
 * get there. Nothing may be under way.
 */
void mt_passed(void);

/* ---- checks -------------------------------------------------------- */

/* Prints rank, place and text and aborts the job. Does not return. */
void mt_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));

/* Fails the job with a text unless @cond holds. */
#define mt_check(cond, ...)                                                    \
	do {                                                                   \
		if (!(cond))                                                   \
			mt_fail(__FILE__, __LINE__, __VA_ARGS__);              \
	} while (0)

/* Fails the job, naming the first wrong byte, unless mt_fill() wrote @buf. */
#define mt_verify(buf, len, seed)                                              \
	mt_verify_at(__FILE__, __LINE__, (buf), (len), (seed))

/* Fails the job unless @st names @src, @tag and @len bytes. */
#define mt_status(st, src, tag, len)                                           \
	mt_status_at(__FILE__, __LINE__, (st), (src), (tag), (len))

/* What mt_verify() calls. */
void mt_verify_at(const char *file, int line, const void *buf, size_t len,
		  uint64_t seed);

/* What mt_status() calls. */
void mt_status_at(const char *file, int line, const MPI_Status *st, int src,
		  int tag, size_t len);

/* ---- data ---------------------------------------------------------- */

/* A seed that names sender, receiver, tag (or size) and round. */
uint64_t mt_seed(int src, int dst, long tag, long round);

/* Fills @len bytes at any address with the pattern @seed. */
void mt_fill(void *buf, size_t len, uint64_t seed);

/* The 64-bit word @i of the pattern @seed. */
uint64_t mt_word(uint64_t seed, uint64_t i);

/*
 * @len bytes on a cache line, between two guard zones; fails the job when
 * there is no memory. Freed by mt_free().
 */
void *mt_alloc(size_t len);

/* Frees what mt_alloc() gave; fails if a guard zone was written. */
void mt_free(void *buf);

/* The next number of a reproducible random series. */
uint64_t mt_random(uint64_t *state);

/* ---- rounds -------------------------------------------------------- */

/* @n, or a tenth (at least 1), or ten times as many: see the head. */
long mt_rounds(long n);

#endif /* SHRIMP_MPI_TESTS_COMMON_H */
