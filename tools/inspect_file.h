/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Reading another process's memory files without giving them memory.
 *
 * By pread() alone: a touch of a hole through a mapping would make a page in
 * the other process's file, and between a look for holes and the touch the
 * page may go. pread() of a hole reads zeros and makes nothing, and a file
 * that is too short is a short count, not a signal. A word of 8 bytes is
 * copied whole by the kernels we know; what must be whole beyond that is read
 * twice.
 */
#ifndef SHRIMP_INSPECT_FILE_H
#define SHRIMP_INSPECT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/segment.h"

/*
 * Reads bytes @off, @len of @s into @buf. Returns false, with what is missing
 * zeroed, if they do not all lie in the file, or it cannot be read.
 */
bool insp_read(const struct rnic_segment *s, uint64_t off, void *buf,
	       size_t len);

/*
 * Finds the next bytes at or after *@off and before @limit that have been
 * written: *@off to *@end. Returns false if there are none. Changes the offset
 * of the descriptor.
 */
bool insp_next_data(const struct rnic_segment *s, uint64_t *off, uint64_t *end,
		    uint64_t limit);

/* Bytes of @off, @len that have been written. */
uint64_t insp_data(const struct rnic_segment *s, uint64_t off, uint64_t len);

/*
 * Calls @fn with each piece of what has been written of @off, @len, in order:
 * at most INSP_BLOCK bytes, which begin and end where a page does, or where
 * @off, @len do. @buf is a copy, valid during the call.
 */
void insp_each_block(const struct rnic_segment *s, uint64_t off, uint64_t len,
		     void (*fn)(void *arg, uint64_t off, const void *buf,
				size_t len),
		     void *arg);

/* Bytes of memory that the file has. */
uint64_t insp_memory(const struct rnic_segment *s);

#endif /* SHRIMP_INSPECT_FILE_H */
