/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Sealed memory files: ours, and those of peers after they were checked.
 *
 * No state beyond the struct; any thread. What fails is logged once, with
 * the object, the value and the cause.
 */
#ifndef RNIC_SEGMENT_H
#define RNIC_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rnic_segment {
	int fd;	       /* descriptor, -1 if closed */
	uint64_t size; /* bytes */
	uint64_t dev;  /* st_dev */
	uint64_t ino;  /* st_ino */
};

/*
 * Creates a sparse memfd of @size bytes, mode 0600, never as descriptor 0, 1
 * or 2: what the program prints must not land in it. Returns 0, -EFBIG
 * (RLIMIT_FSIZE: ftruncate would raise SIGXFSZ), -EMFILE, -ENOMEM; then @s is
 * closed.
 */
int rnic_segment_create(struct rnic_segment *s, const char *name,
			uint64_t size);

/* Adds @seals (F_SEAL_*). Returns 0 or a negative errno. */
int rnic_segment_seal(struct rnic_segment *s, int seals);

/* Closes the descriptor; mappings stay. {.fd = -1} is accepted. */
void rnic_segment_close(struct rnic_segment *s);

/*
 * Maps @len bytes at @off, shared, left out of core dumps and of fork
 * children, no page reserved. Returns 0, -ENOMEM, -EACCES.
 * Partner: rnic_segment_unmap().
 */
int rnic_segment_map(const struct rnic_segment *s, uint64_t off, size_t len,
		     int prot, void **p);

/* Unmaps what rnic_segment_map() returned. */
void rnic_segment_unmap(void *p, size_t len);

/*
 * Gives bytes @off, @len their pages, so that no later touch can fail
 * (contract L2). Returns 0, -ENOSPC, -ENOMEM (also: more than the kernel says
 * is available, /proc/meminfo, which it would end processes for).
 */
int rnic_segment_populate(const struct rnic_segment *s, uint64_t off,
			  uint64_t len);

/* The same of a file that may have some of them already. */
int rnic_segment_populate_rest(const struct rnic_segment *s, uint64_t off,
			       uint64_t len);

/* Gives the pages of @off, @len back; they read as zeros. 0 or -errno. */
int rnic_segment_discard(const struct rnic_segment *s, uint64_t off,
			 uint64_t len);

/*
 * Opens descriptor @fd of process @pid through /proc, but only if it is the
 * object @dev, @ino, and a memory file that cannot shrink. Returns 0, -ESRCH
 * (process or descriptor gone), -ESTALE (another object), -EACCES, -EPROTO
 * (not sealed), -EMFILE. The first three are not logged: peers die, and the
 * socket is another way. @s is changed on success only; what it held before
 * is not closed.
 */
int rnic_segment_open_pid(struct rnic_segment *s, uint32_t pid, int fd,
			  uint64_t dev, uint64_t ino, bool writable);

/*
 * Takes over @fd, received from a peer, if it is a memory file of at least
 * @min_size bytes that cannot shrink. Returns 0, or -EPROTO: the caller
 * keeps @fd.
 */
int rnic_segment_adopt(struct rnic_segment *s, int fd, uint64_t min_size);

#endif /* RNIC_SEGMENT_H */
