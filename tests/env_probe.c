/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Looks into /proc for the tests of kills, limits and leftovers.
 */
#include "env_probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"

/* ---- counting lines and names ---------------------------------------- */

/* Lines of @path that contain both texts. */
static unsigned int count_lines(const char *path, const char *a, const char *b)
{
	FILE *f = fopen(path, "re");
	unsigned int n = 0;
	char line[1024];

	th_check(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, a) && strstr(line, b);
	fclose(f);
	return n;
}

unsigned int probe_entries(const char *path, const char *what)
{
	struct dirent *e;
	unsigned int n = 0;
	DIR *d = opendir(path);

	th_check(d);
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") != 0 &&
		     strcmp(e->d_name, "..") != 0 && strstr(e->d_name, what);
	closedir(d);
	return n;
}

unsigned int probe_fds(void)
{
	/* one of them is the folder itself */
	return probe_entries("/proc/self/fd", "") - 1;
}

unsigned int probe_maps(const char *what)
{
	return count_lines("/proc/self/maps", what, "");
}

unsigned int probe_sockets(const char *what)
{
	return count_lines("/proc/self/net/unix", "@", what);
}

/* True once probe_isolate() has given this process a /tmp of its own. */
static bool own_tmp;

unsigned int probe_leftovers(void)
{
	return probe_sockets("shrimp") + probe_entries("/dev/shm", "shrimp") +
	       (own_tmp ? probe_entries("/tmp", "") : 0);
}

uint64_t probe_status(const char *field)
{
	FILE *f = fopen("/proc/self/status", "re");
	size_t len = strlen(field);
	uint64_t value = UINT64_MAX;
	char line[256];

	th_check(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, field, len) == 0 && line[len] == ':')
			value = strtoull(line + len + 1, NULL, 10);
	fclose(f);
	th_check(value != UINT64_MAX);
	return value;
}

size_t probe_resident(void)
{
	return (size_t)probe_status("VmRSS") << 10;
}

/* ---- namespaces and filters ------------------------------------------ */

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) >= 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* The namespaces of an ordinary user, who stays who he is. */
static bool unshare_user(void)
{
	uid_t uid = geteuid();
	char map[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET))
		return false;
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	th_check(write_text("/proc/self/uid_map", map));
	return true;
}

/* True if @path, or what it leads to, is in /tmp. */
static bool in_tmp(const char *path)
{
	char *real = path ? realpath(path, NULL) : NULL;
	bool in = real && strncmp(real, "/tmp/", 5) == 0;

	free(real);
	return in;
}

/* An empty /tmp, unless something that the test needs lies in the real one. */
static void isolate_tmp(void)
{
	if (in_tmp(".") || in_tmp("/proc/self/exe") ||
	    in_tmp(getenv("FI_PROVIDER_PATH")))
		return;
	th_ok(mount("tmp", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"));
	own_tmp = true;
}

bool probe_isolate(unsigned int shm_mib)
{
	char opts[32];

	if (unshare(CLONE_NEWNS | CLONE_NEWNET) && !unshare_user())
		return false;
	/* half an isolation would be none */
	snprintf(opts, sizeof(opts), "size=%um", shm_mib);
	th_ok(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	th_ok(mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, opts));
	isolate_tmp();
	return true;
}

bool probe_forbid(int nr1, int nr2, int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr1, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr2, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)err),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* ---- segments --------------------------------------------------------- */

/* True if entry @fd of process folder @d is memfd @name. */
static bool is_segment(DIR *d, const char *fd, const char *name)
{
	size_t len = strlen(name);
	char target[256];
	ssize_t n = readlinkat(dirfd(d), fd, target, sizeof(target) - 1);

	if (n < 0)
		return false;
	target[n] = 0;
	return strncmp(target, "/memfd:", 7) == 0 &&
	       strncmp(target + 7, name, len) == 0 && target[7 + len] == ' ';
}

int probe_segment(pid_t pid, const char *name, unsigned int nth, bool writable)
{
	struct dirent *e;
	char dir[64];
	int fd = -1;
	DIR *d;

	snprintf(dir, sizeof(dir), "/proc/%d/fd", pid);
	d = opendir(dir);
	if (!d)
		return -1;
	while (fd < 0 && (e = readdir(d)))
		if (is_segment(d, e->d_name, name) && !nth--)
			fd = openat(dirfd(d), e->d_name,
				    (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	closedir(d);
	return fd;
}

uint64_t probe_segment_kib(const char *name)
{
	uint64_t blocks = 0;
	struct stat st;
	unsigned int i;
	int fd;

	for (i = 0; (fd = probe_segment(getpid(), name, i, false)) >= 0; i++) {
		th_ok(fstat(fd, &st));
		blocks += (uint64_t)st.st_blocks;
		close(fd);
	}
	return blocks / 2;
}

/* ---- the provider's counters ------------------------------------------- */

struct fi_shrimp_stats probe_stats(struct fid *fid)
{
	struct fi_shrimp_stats st = { .size = sizeof(st) };
	struct fi_ops_shrimp_stats *ops = NULL;

	if (!th_is_shrimp())
		return st;
	th_ok(fi_open_ops(fid, FI_SHRIMP_OPS_STATS, 0, (void **)&ops, NULL));
	th_ok(ops->read(fid, &st));
	return st;
}

/* ---- standard error ----------------------------------------------------- */

struct probe_stderr probe_stderr_begin(void)
{
	struct probe_stderr e;

	th_ok(setenv("FI_LOG_LEVEL", "warn", 1));
	fflush(stderr);
	e.saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	e.file = memfd_create("stderr", MFD_CLOEXEC);
	th_check(e.saved >= 0 && e.file >= 0);
	th_check(dup2(e.file, STDERR_FILENO) >= 0);
	return e;
}

void probe_stderr_end(struct probe_stderr *e, char *text, size_t size)
{
	ssize_t n;

	fflush(stderr);
	th_check(dup2(e->saved, STDERR_FILENO) >= 0);
	n = pread(e->file, text, size - 1, 0);
	th_check(n >= 0);
	text[n] = 0;
	close(e->saved);
	close(e->file);
}

void probe_expect(const char *text, const char *word)
{
	if (strstr(text, word))
		return;
	fprintf(stderr, "%s\n", text);
	th_fail(__FILE__, __LINE__, "no \"%s\" in the message", word);
}

/* ---- memory ------------------------------------------------------------- */

void *probe_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	th_check(p != MAP_FAILED);
	return p;
}
