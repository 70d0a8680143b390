/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenarios file and memfd: mappings of files that are written by other ways,
 * truncated, punched, sealed, and mapped twice.
 */
#include "bench/stress/stress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	FILE_SLOT = 7,
	MEMFD_SLOT = 8,
	LEN = 1 << 20,
	PIECE = 64 << 10, /* written at once */
};

/** A file and its mapping. */
struct mapped {
	int fd;
	unsigned char *p;
	size_t len;
};

/* ---- changes ---- */

/* The file is cut to @keep bytes and gets its length back: zeros behind. */
static int truncate_it(struct stress *s, struct mapped *m)
{
	size_t keep = stress_random(s, m->len / STRESS_PAGE) * STRESS_PAGE;
	struct stress_pat all = stress_fill(s, m->p, m->len), zero = { 0, 0 };
	int ret = stress_out(s, m->p, m->len, all);

	if (ret)
		return ret;
	stress_say(s, "ftruncate to %zu and back", keep);
	stress_change_begin(s, m->p + keep, m->len - keep);
	if (ftruncate(m->fd, (off_t)keep) || ftruncate(m->fd, (off_t)m->len))
		ret = stress_skip(s, "ftruncate: %s", strerror(errno));
	stress_change_end(s, m->p + keep, m->len - keep);
	if (!ret)
		ret = stress_out(s, m->p + keep, m->len - keep, zero);
	if (!ret && keep)
		ret = stress_out(s, m->p, keep, all);
	return ret;
}

/* A hole is punched into the file. */
static int punch(struct stress *s, struct mapped *m)
{
	size_t at = stress_random(s, m->len / STRESS_PAGE) * STRESS_PAGE;
	size_t n = stress_pages(s, m->len - at);
	struct stress_pat all = stress_fill(s, m->p, m->len), zero = { 0, 0 };
	int ret = stress_out(s, m->p, m->len, all);

	if (ret)
		return ret;
	stress_say(s, "fallocate punches %zu %zu", at, n);
	stress_change_begin(s, m->p + at, n);
	if (fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)at, (off_t)n))
		zero = stress_at(all, at);
	stress_change_end(s, m->p + at, n);
	ret = stress_out(s, m->p + at, n, zero);
	return ret || !at ? ret : stress_out(s, m->p, at, all);
}

/* Bytes that come by pwrite(2) are seen through the mapping. */
static int write_it(struct stress *s, struct mapped *m)
{
	size_t n = m->len < PIECE ? m->len : PIECE;
	unsigned char *buf = stress_malloc(s, n);
	struct stress_pat pat;
	int ret = 0;

	if (!buf)
		return stress_skip(s, "no memory");
	pat = stress_fill(s, buf, n);
	stress_say(s, "pwrite %zu", n);
	if (pwrite(m->fd, buf, n, 0) != (ssize_t)n)
		ret = stress_skip(s, "pwrite: %s", strerror(errno));
	stress_free(s, buf);
	return ret ? ret : stress_out(s, m->p, n, pat);
}

/* A second mapping of the same bytes, which goes again. */
static int alias(struct stress *s, struct mapped *m)
{
	struct stress_pat pat;
	unsigned char *p = stress_map_as(
		s, NULL, m->len, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd);
	int ret;

	if (!p)
		return stress_skip(s, "no memory");
	pat = stress_fill(s, p, m->len);
	ret = stress_out(s, m->p, m->len, pat);
	if (!ret)
		ret = stress_in(s, m->p, m->len, &pat);
	if (!ret)
		ret = stress_out(s, p, m->len, pat);
	stress_unmap(s, p, m->len);
	return ret ? ret : stress_out(s, m->p, m->len, pat);
}

/* What cannot be written can be sent. */
static int read_only(struct stress *s, struct mapped *m)
{
	struct stress_pat pat = stress_fill(s, m->p, m->len);
	unsigned char *p =
		stress_map_as(s, NULL, m->len, PROT_READ, MAP_SHARED, m->fd);
	int ret;

	if (!p)
		return stress_skip(s, "no memory");
	ret = stress_out(s, p, m->len, pat);
	stress_unmap(s, p, m->len);
	return ret;
}

static int change(struct stress *s, struct mapped *m)
{
	switch (stress_random(s, 5)) {
	case 0:
		return truncate_it(s, m);
	case 1:
		return punch(s, m);
	case 2:
		return write_it(s, m);
	case 3:
		return alias(s, m);
	}
	return read_only(s, m);
}

/* ---- a mapping ---- */

/* Opens a file of @len bytes; closes @fd, also if it fails. */
static int use(struct stress *s, int fd, size_t len, unsigned char *at)
{
	struct mapped m = { .fd = fd, .len = len };
	int ret = 0;

	if (ftruncate(fd, (off_t)len)) {
		close(fd);
		return stress_skip(s, "ftruncate: %s", strerror(errno));
	}
	m.p = stress_map_as(s, at, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	if (m.p)
		ret = stress_use_new(s, m.p, len);
	for (int i = 0; m.p && !ret && i < 2; i++)
		ret = change(s, &m);
	if (m.p && !ret)
		ret = stress_exchange(s, m.p, len, 2);
	stress_unmap(s, m.p, len);
	close(fd);
	return ret;
}

/* A file without a name. */
static int file_open(void)
{
	const char *dir = stress_setting("TMPDIR");
	int fd =
		open(*dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[] = "/tmp/shrimp-stress.XXXXXX";

	if (fd >= 0)
		return fd;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static int file_step(struct stress *s, void *state)
{
	size_t len = stress_pages(s, LEN);
	int ret = 0;

	(void)state;
	for (int i = 0; !ret && i < 2; i++) {
		int fd = file_open();

		if (fd < 0)
			return stress_skip(s, "no file: %s", strerror(errno));
		ret = use(s, fd, len, stress_slot(s, FILE_SLOT));
	}
	return ret;
}

static void file_teardown(struct stress *s, void *state)
{
	(void)state;
	stress_slot_free(s, FILE_SLOT);
}

const struct stress_scenario stress_file = {
	.name = "file",
	.help = "mapped files: truncated, punched, written, mapped twice",
	.step = file_step,
	.teardown = file_teardown,
};

/* ---- memory files ---- */

/* It cannot shrink any more: peers may map it. */
static int sealed(struct stress *s, size_t len, unsigned char *at)
{
	unsigned char *p = stress_map_memfd(s, at, len);
	int ret;

	if (!p)
		return stress_skip(s, "no memory file: %s", strerror(errno));
	ret = stress_use_new(s, p, len);
	stress_unmap(s, p, len);
	return ret;
}

/* It can shrink, and does. */
static int unsealed(struct stress *s, size_t len, unsigned char *at)
{
	int fd = memfd_create("shrimp-stress", MFD_CLOEXEC);

	if (fd < 0)
		return stress_skip(s, "memfd: %s", strerror(errno));
	return use(s, fd, len, at);
}

static int memfd_step(struct stress *s, void *state)
{
	size_t len = stress_pages(s, LEN);
	int ret = 0;

	(void)state;
	for (int i = 0; !ret && i < 3; i++) {
		unsigned char *at = stress_slot(s, MEMFD_SLOT);

		ret = stress_random(s, 3) ? sealed(s, len, at)
					  : unsealed(s, len, at);
	}
	return ret;
}

static void memfd_teardown(struct stress *s, void *state)
{
	(void)state;
	stress_slot_free(s, MEMFD_SLOT);
}

const struct stress_scenario stress_memfds = {
	.name = "memfd",
	.help = "memory files, sealed and not, several at one address",
	.step = memfd_step,
	.teardown = memfd_teardown,
};
