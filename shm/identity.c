/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Identity out of /proc. No state.
 */
#include "shm/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/log.h"

enum {
	STAT_MAX = 1024, /* a stat line is shorter */
};

/* What a stat line says. */
struct looks {
	uint32_t pid;	      /* field 1, in the pid namespace of /proc */
	char state;	      /* 3; Z: the main thread has ended */
	unsigned int threads; /* 20, those that ended and were reaped not */
	uint64_t start;	      /* 22, start time, ticks since boot */
	uint64_t stack;	      /* 28, start of the stack; 0: not shown */
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
		return errno == ENFILE ? -EMFILE : -errno;
	n = read(fd, buf, room - 1);
	if (n < 0)
		n = -errno;
	else
		buf[n] = '\0';
	close(fd);
	return n;
}

/* The name, field 2, may contain anything: what follows is numbers. */
static int parse(const char *line, struct looks *l)
{
	const char *p = strrchr(line, ')');

	if (p && sscanf(line, "%" SCNu32, &l->pid) == 1 &&
	    sscanf(p,
		   ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		   "%*s %*s %*s %u %*s %" SCNu64
		   " %*s %*s %*s %*s %*s %" SCNu64,
		   &l->state, &l->threads, &l->start, &l->stack) == 4)
		return 0;
	return -EIO;
}

/*
 * Looks at the process in @dir of /proc. One that has ended as a whole is
 * gone, reaped or not: a main thread that ended, alone, is all of it. Logs
 * nothing.
 */
static int look(const char *dir, struct looks *l)
{
	char path[64], line[STAT_MAX];
	struct stat st;
	ssize_t n;
	int ret;

	snprintf(path, sizeof(path), "%s/stat", dir);
	n = read_file(path, line, sizeof(line));
	/* that it is gone can be seen without a descriptor */
	if (n == -ENOENT || (n == -EMFILE && stat(dir, &st) && errno == ENOENT))
		return -ESRCH;
	ret = n < 0 ? (int)n : parse(line, l);
	if (!ret && l->state == 'Z' && l->threads <= 1)
		return -ESRCH;
	return ret;
}

/* Hash of one field, in 32 bits, never 0. */
static uint64_t hash_field(uint64_t field)
{
	uint64_t h = hash(hash_start, &field, sizeof(field));

	return (uint32_t)(h ^ h >> 32) | 1;
}

static uint64_t make(const struct looks *l)
{
	return hash_field(l->start) |
	       (l->stack ? hash_field(l->stack) << 32 : 0);
}

/* Says that @what cannot be read; -EMFILE is the user's to know as such. */
static int complain(const char *what, int err)
{
	rnic_log(RNIC_LOG_WARN, "%s: %s", what, strerror(-err));
	return err == -EMFILE ? err : -EIO;
}

int rnic_identity_peek(uint32_t pid, uint64_t *identity)
{
	struct looks l;
	char dir[32];
	int ret;

	snprintf(dir, sizeof(dir), "/proc/%" PRIu32, pid);
	ret = look(dir, &l);
	if (!ret)
		*identity = make(&l);
	return ret;
}

int rnic_identity_of(uint32_t pid, uint64_t *identity)
{
	char dir[32];
	int ret;

	if (pid == (uint32_t)getpid())
		return rnic_identity_self(identity);
	ret = rnic_identity_peek(pid, identity);
	if (ret && ret != -ESRCH && ret != -EMFILE) {
		snprintf(dir, sizeof(dir), "/proc/%" PRIu32, pid);
		ret = complain(dir, ret);
	}
	return ret;
}

int rnic_identity_self(uint64_t *identity)
{
	static const char self[] = "/proc/self";
	struct looks l;
	int ret = look(self, &l);

	if (ret)
		return complain(self, ret);
	if (l.pid != (uint32_t)getpid()) {
		rnic_log(RNIC_LOG_WARN,
			 "%s: of another pid namespace: mount /proc anew",
			 self);
		return -EIO;
	}
	*identity = make(&l);
	return 0;
}

int rnic_identity_ns(uint64_t *ns)
{
	static const char boot[] = "/proc/sys/kernel/random/boot_id";
	static const char pid[] = "/proc/self/ns/pid";
	uint64_t h = hash_start;
	struct stat st;
	char id[64];
	ssize_t n;

	if (stat(pid, &st))
		return complain(pid, -errno);
	h = hash(h, &st.st_ino, sizeof(st.st_ino));
	/* kernels before 5.6 have no time namespaces */
	if (!stat("/proc/self/ns/time", &st))
		h = hash(h, &st.st_ino, sizeof(st.st_ino));
	n = read_file(boot, id, sizeof(id));
	/* it is there: without it the hash would not be that of our peers */
	if (n == -EMFILE)
		return complain(boot, (int)n);
	if (n > 0)
		h = hash(h, id, (size_t)n);
	*ns = h;
	return 0;
}

int rnic_random(void *buf, size_t len)
{
	ssize_t n = getrandom(buf, len, 0);

	if (n == (ssize_t)len)
		return 0;
	return complain("getrandom", n < 0 ? -errno : -EIO);
}
