/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The other processes of a benchmark, and the cores that they may have.
 *
 * Children are forked before the parent calls libfabric or opens a device.
 * They sleep in a read of a socket until they get an order, and end when it
 * is closed. The kernel kills them when their parent dies, and an alarm does
 * after SB_PROC_LIMIT_S without an order.
 *
 * One thread of the parent at a time.
 */
#ifndef BENCH_SB_PROC_H
#define BENCH_SB_PROC_H

#include <stddef.h>
#include <sys/types.h>

enum {
	SB_PROC_LIMIT_S = 600, /* a child lives so long without an order */
	SB_PROC_END_S = 10,    /* and so long when it has been told to end */
};

/** A child; zeroed: none. */
struct sb_proc {
	pid_t pid; /* of the child */
	int fd;	   /* socket to it */
};

/*
 * Forks a child that binds itself to core @cpu (negative: all that the program
 * was given), calls @run(fd, arg) and exits with 0 if that returned 0. Returns
 * 0 or a negative errno. Partner: sb_proc_end().
 */
int sb_proc_start(struct sb_proc *p, int (*run)(int fd, void *arg), void *arg,
		  int cpu);

/*
 * Tells the child to end by closing the socket, waits for SB_PROC_END_S, then
 * kills it. Returns 0, or -ECHILD if it did not end with 0. Accepts zeroed
 * memory.
 */
int sb_proc_end(struct sb_proc *p);

/* Kills the child and waits for its end. Accepts zeroed memory. */
void sb_proc_kill(struct sb_proc *p);

/* Writes @len bytes to the other side. Returns 0 or -EPIPE. */
int sb_proc_put(int fd, const void *data, size_t len);

/*
 * Waits for @len bytes of the other side; a child's alarm starts anew.
 * Returns 0, or -EPIPE: it has closed the socket, or died.
 */
int sb_proc_get(int fd, void *data, size_t len);

/* Notes the cores the program was given, before anybody is bound to one. */
void sb_cpus_save(void);

/* Binds the calling thread to all of them. Any thread. */
void sb_cpus_all(void);

/* How many they are; 0 if that is not known. */
unsigned int sb_cpus_given(void);

/*
 * How many of them have nothing to do while the caller sleeps for a tenth of a
 * second; 0 if that is not known.
 */
unsigned int sb_cpus_idle(void);

#endif
