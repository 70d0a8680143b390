/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the kernel knows about a test process and about what shrimp left in
 * the system: descriptors, mappings, segments, sockets, threads.
 *
 * Linux only; reads /proc. Any failure to read it ends the test. All
 * functions: any thread of a test's child or parent.
 */
#ifndef SHRIMP_TESTS_ENV_PROBE_H
#define SHRIMP_TESTS_ENV_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fi_ext_shrimp.h>

/* Open descriptors of this process. */
unsigned int probe_fds(void);

/* Mappings of this process whose line in /proc/self/maps contains @what. */
unsigned int probe_maps(const char *what);

/* Number after @field ("VmPTE", "Threads") in /proc/self/status. */
uint64_t probe_status(const char *field);

/* Bytes of this process that are in memory. */
size_t probe_resident(void);

/* Abstract sockets of this network namespace with @what in their name. */
unsigned int probe_sockets(const char *what);

/* Entries of folder @path with @what in their name; "" for all. */
unsigned int probe_entries(const char *path, const char *what);

/*
 * What is of shrimp in /dev/shm and among the abstract sockets, and all that
 * is in a /tmp of our own.
 */
unsigned int probe_leftovers(void);

/*
 * Gives this process, and the children it forks later, a network namespace,
 * a /dev/shm of @shm_mib MiB and, unless the test itself lies in there, a
 * /tmp of their own, so that nothing else on the machine is seen there.
 * Returns false, with nothing changed, if that is not
 * permitted.
 */
bool probe_isolate(unsigned int shm_mib);

/*
 * Opens segment @name ("shrimp-mailbox", ...) of process @pid for reading
 * and, with @writable, writing: the number-@nth such descriptor, from 0. The
 * caller closes it. Returns the descriptor, or -1 if there is none or it
 * cannot be opened.
 */
int probe_segment(pid_t pid, const char *name, unsigned int nth, bool writable);

/* KiB of memory in all segments @name of this process. */
uint64_t probe_segment_kib(const char *name);

/*
 * The counters of the process, through fabric @fid of shrimp. Zeros for
 * another provider.
 */
struct fi_shrimp_stats probe_stats(struct fid *fid);

/* What probe_stderr_begin() returns. */
struct probe_stderr {
	int saved; /* the real standard error */
	int file;  /* memory that takes its place */
};

/*
 * From here on, what is written to standard error is kept. Before the first
 * call of libfabric in this process it lets the warnings of all providers
 * through.
 */
struct probe_stderr probe_stderr_begin(void);

/*
 * Restores standard error; the first @size - 1 bytes of what was written are
 * in @text.
 */
void probe_stderr_end(struct probe_stderr *e, char *text, size_t size);

/* Fails, and prints @text, unless @word is in it. */
void probe_expect(const char *text, const char *word);

/*
 * Makes the system calls @nr1 and @nr2 (-1: none) fail with @err for this
 * thread and those it starts, for ever. Returns false if filters are not
 * permitted.
 */
bool probe_forbid(int nr1, int nr2, int err);

/* Memory that the children forked later share, zeroed. Never freed. */
void *probe_shared(size_t size);

#endif /* SHRIMP_TESTS_ENV_PROBE_H */
