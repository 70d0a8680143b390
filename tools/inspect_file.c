/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Bounded reads, and where there is something to read.
 */
#include "tools/inspect_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/inspect_note.h"

bool insp_read(const struct rnic_segment *s, uint64_t off, void *buf,
	       size_t len)
{
	char *to = buf;
	ssize_t n = 0;

	if (s->fd >= 0 && off <= s->size && len <= s->size - off)
		while (len) {
			n = pread(s->fd, to, len, (off_t)off);
			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				break;
			to += n;
			off += (uint64_t)n;
			len -= (size_t)n;
		}
	else
		n = -1;
	if (len)
		memset(to, 0, len);
	return !len && n >= 0;
}

bool insp_next_data(const struct rnic_segment *s, uint64_t *off, uint64_t *end,
		    uint64_t limit)
{
	off_t a, b;

	if (limit > s->size)
		limit = s->size;
	if (s->fd < 0 || *off >= limit)
		return false;
	a = lseek(s->fd, (off_t)*off, SEEK_DATA);
	if (a < 0 || (uint64_t)a >= limit)
		return false;
	b = lseek(s->fd, a, SEEK_HOLE);
	/* it may have gone meanwhile */
	if (b <= a || (uint64_t)b > limit)
		b = (off_t)limit;
	*off = (uint64_t)a;
	*end = (uint64_t)b;
	return true;
}

uint64_t insp_data(const struct rnic_segment *s, uint64_t off, uint64_t len)
{
	uint64_t end, n = 0, limit = off + len < off ? UINT64_MAX : off + len;

	for (; insp_next_data(s, &off, &end, limit); off = end)
		n += end - off;
	return n;
}

void insp_each_block(const struct rnic_segment *s, uint64_t off, uint64_t len,
		     void (*fn)(void *arg, uint64_t off, const void *buf,
				size_t len),
		     void *arg)
{
	uint64_t end, limit = off + len < off ? UINT64_MAX : off + len;
	char *buf = insp_alloc(1, INSP_BLOCK);

	for (; insp_next_data(s, &off, &end, limit); off = end)
		for (; off < end; off += INSP_BLOCK) {
			size_t n =
				end - off < INSP_BLOCK ? end - off : INSP_BLOCK;

			insp_read(s, off, buf, n);
			fn(arg, off, buf, n);
		}
	free(buf);
}

uint64_t insp_memory(const struct rnic_segment *s)
{
	struct stat st;

	return s->fd < 0 || fstat(s->fd, &st) ? 0
					      : (uint64_t)st.st_blocks * 512;
}
