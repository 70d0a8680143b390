/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Overwriting what a hostile process can write, at random. All functions: one
 * thread at a time for one target.
 */
#ifndef SHRIMP_TESTS_SCRIBBLE_H
#define SHRIMP_TESTS_SCRIBBLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Part of a segment that has pages. */
struct sc_extent {
	off_t off; /* first byte */
	off_t len; /* bytes */
};

enum { SC_MAX_EXTENTS = 256 };

/* A segment of a victim. */
struct sc_target {
	int fd;		    /* open; for writing, unless @mem is given */
	unsigned char *mem; /* a mapping to write to, or NULL */
	int n;		    /* extents */
	struct sc_extent ext[SC_MAX_EXTENTS]; /* where there are pages */
};

/* Looks where @t has pages. */
void sc_scan(struct sc_target *t);

/* A word that a program may stumble over. */
uint64_t sc_nasty(uint64_t *state);

/* Overwrites @len bytes at @off by @data; fails the test if it cannot. */
void sc_write(const struct sc_target *t, off_t off, const void *data,
	      size_t len);

/* One to eight bytes, or a whole line, somewhere in the pages of @t. */
void sc_anywhere(const struct sc_target *t, uint64_t *state);

#endif /* SHRIMP_TESTS_SCRIBBLE_H */
