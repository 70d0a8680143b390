/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Sealed memory files.
 */
#include "shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/log.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3; older ones answer EINVAL */
#endif

enum { LARGE = 16 << 20 }; /* bytes: not looked at whether there is so much */

static int fail(const char *what, const char *name)
{
	int err = errno;

	rnic_log(RNIC_LOG_WARN, "%s: %s: %s", name, what, strerror(err));
	return -err;
}

/*
 * Moves @fd, if it took the place of a closed standard stream. Returns the
 * descriptor; -1 with errno, and @fd closed, if there is none free.
 */
static int above_streams(int fd)
{
	int up, err;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	up = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	err = errno;
	close(fd);
	errno = err;
	return up;
}

/* Fills size, dev and ino from the kernel. */
static int look(struct rnic_segment *s)
{
	struct stat st;

	if (fstat(s->fd, &st))
		return -errno;
	s->size = (uint64_t)st.st_size;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	return 0;
}

/* ftruncate beyond the limit would kill the process by SIGXFSZ. */
static int check_limit(const char *name, uint64_t size)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_FSIZE, &rl) || rl.rlim_cur == RLIM_INFINITY ||
	    rl.rlim_cur >= size)
		return 0;
	rnic_log(RNIC_LOG_WARN,
		 "%s: RLIMIT_FSIZE (ulimit -f) is "
		 "%" PRIu64 " bytes, the device's sparse memory file needs "
		 "%" PRIu64 ": raise it or set it to unlimited",
		 name, (uint64_t)rl.rlim_cur, size);
	return -EFBIG;
}

static int make_memfd(const char *name)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	return fd;
}

int rnic_segment_create(struct rnic_segment *s, const char *name, uint64_t size)
{
	int ret = check_limit(name, size);

	*s = (struct rnic_segment){ .fd = -1 };
	if (ret)
		return ret;
	s->fd = above_streams(make_memfd(name));
	if (s->fd < 0)
		return fail("memfd_create", name);
	if (fchmod(s->fd, 0600) || ftruncate(s->fd, (off_t)size) || look(s)) {
		ret = fail("cannot set mode and size", name);
		rnic_segment_close(s);
	}
	return ret;
}

int rnic_segment_seal(struct rnic_segment *s, int seals)
{
	return fcntl(s->fd, F_ADD_SEALS, seals) ? fail("seals", "segment") : 0;
}

void rnic_segment_close(struct rnic_segment *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

int rnic_segment_map(const struct rnic_segment *s, uint64_t off, size_t len,
		     int prot, void **p)
{
	void *m = mmap(NULL, len, prot, MAP_SHARED | MAP_NORESERVE, s->fd,
		       (off_t)off);

	if (m == MAP_FAILED)
		return fail("mmap", "segment");
	if (madvise(m, len, MADV_DONTDUMP) || madvise(m, len, MADV_DONTFORK)) {
		int ret = fail("madvise", "segment");

		munmap(m, len);
		return ret;
	}
	*p = m;
	return 0;
}

void rnic_segment_unmap(void *p, size_t len)
{
	munmap(p, len);
}

/* The line @key of /proc/meminfo, in bytes; 0: it has none. */
static uint64_t meminfo(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	uint64_t kib;

	return at && sscanf(at + strlen(key), ": %" SCNu64, &kib) == 1
		       ? kib << 10
		       : 0;
}

/*
 * False if the kernel says that it has less than @len bytes to give: it would
 * not refuse them, but end processes until it has. Small ones are not looked
 * at, nor is anything where it does not say.
 */
static bool is_there(uint64_t len)
{
	char text[2048];
	ssize_t n = 0;
	int fd;

	if (len < LARGE)
		return true;
	fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	if (!meminfo(text, "MemAvailable"))
		return true;
	return len <= meminfo(text, "MemAvailable") + meminfo(text, "SwapFree");
}

/* @fresh of the bytes have no page yet, or more. */
static int allocate(int fd, uint64_t off, uint64_t len, uint64_t fresh)
{
	int ret;

	if (!is_there(fresh))
		return -ENOMEM;
	do {
		ret = fallocate(fd, 0, (off_t)off, (off_t)len);
	} while (ret && errno == EINTR);
	return ret ? -errno : 0;
}

static int populate(const struct rnic_segment *s, uint64_t off, uint64_t len,
		    uint64_t fresh)
{
	int ret = allocate(s->fd, off, len, fresh);

	if (!ret)
		return 0;
	rnic_log(RNIC_LOG_WARN,
		 "segment: no memory for %" PRIu64 " bytes at "
		 "%" PRIu64 ": %s",
		 len, off, strerror(-ret));
	return ret;
}

int rnic_segment_populate(const struct rnic_segment *s, uint64_t off,
			  uint64_t len)
{
	return populate(s, off, len, len);
}

int rnic_segment_populate_rest(const struct rnic_segment *s, uint64_t off,
			       uint64_t len)
{
	struct stat st;
	uint64_t there = fstat(s->fd, &st) ? 0 : (uint64_t)st.st_blocks * 512;

	return populate(s, off, len, len > there ? len - there : 0);
}

int rnic_segment_discard(const struct rnic_segment *s, uint64_t off,
			 uint64_t len)
{
	if (!fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		       (off_t)off, (off_t)len))
		return 0;
	return fail("punch", "segment");
}

/* To open a FIFO for reading would wait for its writer. */
static bool is_regular(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

static int refuse(const struct rnic_segment *s)
{
	rnic_log(RNIC_LOG_WARN,
		 "peer's segment: not a memory file sealed "
		 "against shrinking, or too small (%" PRIu64 " bytes)",
		 s->size);
	return -EPROTO;
}

/* A memfd, sealed against shrinking, of @min bytes. */
static int check(const struct rnic_segment *s, uint64_t min)
{
	int seals = fcntl(s->fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK && s->size >= min
		       ? 0
		       : refuse(s);
}

/* The error of an open through /proc. */
static int open_error(uint32_t pid)
{
	int err = errno;

	if (err == ENOENT || err == ESRCH)
		return -ESRCH;
	if (err != EACCES)
		rnic_log(RNIC_LOG_WARN, "/proc/%u/fd: %s", pid, strerror(err));
	return -err;
}

int rnic_segment_open_pid(struct rnic_segment *s, uint32_t pid, int fd,
			  uint64_t dev, uint64_t ino, bool writable)
{
	struct rnic_segment at = { .fd = -1 }, t = { .fd = -1 };
	char path[64];
	int ret;

	/* O_PATH first: opening a stranger's FIFO or device has effects */
	snprintf(path, sizeof(path), "/proc/%u/fd/%d", pid, fd);
	at.fd = open(path, O_PATH | O_CLOEXEC);
	if (at.fd < 0)
		return open_error(pid);
	ret = look(&at);
	if (!ret && (at.dev != dev || at.ino != ino))
		ret = -ESTALE;
	if (!ret && !is_regular(at.fd))
		ret = refuse(&at);
	if (!ret) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", at.fd);
		t.fd = above_streams(
			open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC));
		ret = t.fd < 0 ? open_error(pid) : look(&t);
	}
	close(at.fd);
	if (!ret)
		ret = check(&t, 0);
	if (ret)
		rnic_segment_close(&t);
	else
		*s = t;
	return ret;
}

int rnic_segment_adopt(struct rnic_segment *s, int fd, uint64_t min_size)
{
	struct rnic_segment t = { .fd = fd };

	if (look(&t) || check(&t, min_size))
		return -EPROTO;
	*s = t;
	return 0;
}
