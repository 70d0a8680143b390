/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Identity out of /proc. No state.
 */
#include "shm/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/log.h"

enum {
	STAT_MAX = 1024,      /* a stat line is shorter */
	FIELD_START = 22,     /* start time, ticks since boot */
	FIELD_STACK = 28,     /* start of the stack; exec moves it */
	FIELD_AFTER_COMM = 3, /* the first one after the name */
};

/* FNV-1a: all that is needed is that different inputs rarely agree. */
static uint64_t hash(uint64_t h, const void *p, size_t len)
{
	const unsigned char *c = p;

	for (size_t i = 0; i < len; i++)
		h = (h ^ c[i]) * UINT64_C(1099511628211);
	return h;
}

static const uint64_t hash_start = UINT64_C(14695981039346656037);

/* Reads a small file of /proc whole. Returns its length or -errno. */
static ssize_t read_file(const char *path, char *buf, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, room - 1);
	if (n < 0)
		n = -errno;
	else
		buf[n] = '\0';
	close(fd);
	return n;
}

/* Hash of one field, in 32 bits, never 0. */
static uint64_t hash_field(const char *field)
{
	uint64_t h = hash(hash_start, field, strlen(field));

	return (uint32_t)(h ^ h >> 32) | 1;
}

/*
 * Hashes the two fields of a stat line; the name may contain anything. The
 * kernel shows 0 for the stack of a process we may not look into.
 */
static int hash_stat(char *line, uint64_t *identity)
{
	char *save, *p = strrchr(line, ')');
	int field = FIELD_AFTER_COMM;
	uint64_t id = 0;

	if (!p)
		return -EIO;
	for (p = strtok_r(p + 1, " ", &save); p && field <= FIELD_STACK;
	     p = strtok_r(NULL, " ", &save), field++) {
		if (field == FIELD_START)
			id = hash_field(p);
		else if (field == FIELD_STACK && strcmp(p, "0"))
			id |= hash_field(p) << 32;
	}
	if (field <= FIELD_STACK)
		return -EIO;
	*identity = id;
	return 0;
}

int rnic_identity_of(uint32_t pid, uint64_t *identity)
{
	char path[64], line[STAT_MAX];
	ssize_t n;
	int ret;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	n = read_file(path, line, sizeof(line));
	if (n == -ENOENT || n == -ESRCH)
		return -ESRCH;
	ret = n < 0 ? (int)n : hash_stat(line, identity);
	if (ret)
		rnic_log(RNIC_LOG_WARN, "%s: %s", path,
			 n < 0 ? strerror((int)-n) : "not understood");
	return ret;
}

int rnic_identity_self(uint64_t *identity)
{
	return rnic_identity_of((uint32_t)getpid(), identity);
}

int rnic_identity_ns(uint64_t *ns)
{
	static const char boot[] = "/proc/sys/kernel/random/boot_id";
	uint64_t h = hash_start;
	struct stat st;
	char id[64];
	ssize_t n;

	if (stat("/proc/self/ns/pid", &st)) {
		rnic_log(RNIC_LOG_WARN, "/proc/self/ns/pid: %s",
			 strerror(errno));
		return -EIO;
	}
	h = hash(h, &st.st_ino, sizeof(st.st_ino));
	/* kernels before 5.6 have no time namespaces */
	if (!stat("/proc/self/ns/time", &st))
		h = hash(h, &st.st_ino, sizeof(st.st_ino));
	n = read_file(boot, id, sizeof(id));
	if (n > 0)
		h = hash(h, id, (size_t)n);
	*ns = h;
	return 0;
}

int rnic_random(void *buf, size_t len)
{
	if (getrandom(buf, len, 0) == (ssize_t)len)
		return 0;
	rnic_log(RNIC_LOG_WARN, "getrandom: %s", strerror(errno));
	return -EIO;
}
