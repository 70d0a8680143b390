/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * CMA in chunks, with a look at the peer around each call.
 */
#include "shm/vm.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shm/identity.h"
#include "shm/layout.h"
#include "shm/log.h"

typedef ssize_t (*vm_call)(pid_t pid, const struct iovec *local,
			   unsigned long nlocal, const struct iovec *remote,
			   unsigned long nremote, unsigned long flags);

/* One direction. */
struct way {
	vm_call call;	 /* the system call */
	bool look_after; /* what it brought counts only if the peer lives */
};

static const struct way way_in = { process_vm_readv, true };
static const struct way way_out = { process_vm_writev, false };

/* False once the peer is known to be dead. Without a pidfd: its identity. */
static bool alive(const struct rnic_proc *p)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	uint64_t identity;

	if (rnic_proc_dead(p))
		return false;
	if (p->pid == (uint32_t)getpid())
		return true;
	if (p->fd >= 0)
		return poll(&pfd, 1, 0) <= 0;
	return !rnic_identity_of(p->pid, &identity) && identity == p->identity;
}

/* One system call. Returns the bytes moved, or a negative errno. */
static ssize_t move_once(const struct rnic_proc *p, const struct way *w,
			 struct iovec local, uint64_t remote)
{
	struct iovec there = { .iov_base = (void *)(uintptr_t)remote,
			       .iov_len = local.iov_len };
	ssize_t n;

	if (!alive(p))
		return -ESRCH;
	do {
		n = w->call((pid_t)p->pid, &local, 1, &there, 1, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	/* a pid that was recycled before the call has a readable pidfd now */
	if (w->look_after && !alive(p))
		return -ESRCH;
	return n;
}

/* Bytes from @addr to the end of its page. */
static size_t to_page_end(uint64_t addr)
{
	return RNIC_PAGE - addr % RNIC_PAGE;
}

/*
 * After -EFAULT for more than a page goes on page by page, so that all before
 * the bad page is moved on every kernel.
 */
static int move(const struct rnic_proc *p, const struct way *w, char *here,
		uint64_t there, size_t len, size_t *moved)
{
	size_t most = RNIC_VM_CHUNK, done = 0;
	ssize_t n = 0;

	while (done < len) {
		size_t left = len - done, want = left < most ? left : most;

		n = move_once(p, w, (struct iovec){ here + done, want },
			      there + done);
		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		if ((n && n != -EFAULT) || most <= to_page_end(there + done))
			break;
		most = to_page_end(there + done);
	}
	*moved = done;
	return done == len ? 0 : n ? (int)n : -EFAULT;
}

int rnic_vm_read(const struct rnic_proc *p, void *dst, uint64_t src, size_t len,
		 size_t *moved)
{
	return move(p, &way_in, dst, src, len, moved);
}

int rnic_vm_write(const struct rnic_proc *p, uint64_t dst, const void *src,
		  size_t len, size_t *moved)
{
	return move(p, &way_out, (char *)(uintptr_t)src, dst, len, moved);
}

/* Yama's setting, or -1. */
static int yama_scope(void)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int n = -1;

	if (f && fscanf(f, "%d", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

int rnic_vm_probe(const struct rnic_proc *p, uint64_t va)
{
	char byte;
	ssize_t n = move_once(p, &way_in, (struct iovec){ &byte, 1 }, va);

	if (n >= 0 || n == -EFAULT)
		return 0;
	if (n == -EPERM)
		rnic_log(RNIC_LOG_INFO,
			 "process %u: process_vm_readv is not permitted "
			 "(kernel.yama.ptrace_scope is %d, -1: none): with 1, "
			 "FI_SHRIMP_PTRACER=any there allows it",
			 p->pid, yama_scope());
	else if (n != -ESRCH)
		rnic_log(RNIC_LOG_INFO, "process %u: process_vm_readv: %s",
			 p->pid, strerror((int)-n));
	return (int)n;
}
