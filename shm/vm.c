/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * CMA in chunks, with a look at the peer around each call.
 */
#include "shm/vm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shm/layout.h"
#include "shm/log.h"

/*
 * One system call. Returns the bytes moved, or a negative errno. @in: from the
 * peer, then the look is after it: what it brought counts only then. A constant
 * at each caller: after a system call each branch and each return is one that
 * the CPU does not expect.
 */
RNIC_HOT ssize_t move_once(struct rnic_proc *p, bool in, struct iovec local,
			   uint64_t remote)
{
	struct iovec there = { .iov_base = (void *)(uintptr_t)remote,
			       .iov_len = local.iov_len };
	ssize_t n;

	if (in ? rnic_proc_dead(p) : !rnic_proc_look_lately(p))
		return -ESRCH;
	do {
		n = in ? process_vm_readv(p->pid, &local, 1, &there, 1, 0)
		       : process_vm_writev(p->pid, &local, 1, &there, 1, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	/* a pid that was recycled before the call has a readable pidfd now */
	if (in && !rnic_proc_look_lately(p))
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
RNIC_HOT int move(struct rnic_proc *p, bool in, char *here, uint64_t there,
		  size_t len, size_t *moved)
{
	size_t most = RNIC_VM_CHUNK, done = 0;
	ssize_t n = 0;

	while (done < len) {
		size_t left = len - done, want = left < most ? left : most;

		n = move_once(p, in, (struct iovec){ here + done, want },
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

int rnic_vm_read(struct rnic_proc *p, void *dst, uint64_t src, size_t len,
		 size_t *moved)
{
	return move(p, true, dst, src, len, moved);
}

int rnic_vm_write(struct rnic_proc *p, uint64_t dst, const void *src,
		  size_t len, size_t *moved)
{
	return move(p, false, (char *)(uintptr_t)src, dst, len, moved);
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

int rnic_vm_probe(struct rnic_proc *p, uint64_t va)
{
	char byte;
	ssize_t n = move_once(p, true, (struct iovec){ &byte, 1 }, va);

	if (n >= 0 || n == -EFAULT)
		return 0;
	if (n == -EPERM)
		rnic_log(RNIC_LOG_INFO,
			 "process %u: process_vm_readv is not permitted "
			 "(kernel.yama.ptrace_scope is %d, -1: none): with 1, "
			 "prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY) there "
			 "allows it",
			 p->pid, yama_scope());
	else if (n != -ESRCH)
		rnic_log(RNIC_LOG_INFO, "process %u: process_vm_readv: %s",
			 p->pid, strerror((int)-n));
	return (int)n;
}
