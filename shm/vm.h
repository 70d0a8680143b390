/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Bytes to and from a peer's private memory: process_vm_readv/writev (CMA).
 *
 * These calls go by pid number, so the peer is looked at before each of them
 * and, after a read, before what it brought counts; once in a tick, within
 * which no pid comes again (rnic_proc_look_lately()). If the caller is off its
 * CPU between look and call for as long as it takes the kernel to give out all
 * other numbers, a peer that died meanwhile may be a stranger of the same user
 * to whom a write goes; the kernel offers no call by pidfd. A peer that execs
 * is seen by rnic_proc_poll() only, which marks it dead. A call that is under
 * way when the peer dies may end late, since the caller is then the last user
 * of the dead one's memory and gives it back (up to 0.1 s for some GiB).
 *
 * No state, no lock; any thread that holds a reference to the process. A call
 * may sleep on page faults of the peer, never the peer's scheduling.
 */
#ifndef RNIC_VM_H
#define RNIC_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "shm/compiler.h"
#include "shm/proc.h"

enum {
	RNIC_VM_CHUNK = 512 << 10, /* most bytes of one system call */
};

/*
 * Copies @len bytes at @src in the address space of @p to @dst. *@moved says
 * how many bytes count, whatever is returned. Returns 0 (all), -EFAULT (a
 * page is not there or not readable on one of the sides; everything before it
 * was moved), -ESRCH (the peer is dead, or has no address space any more;
 * what came with the last call does not count), -EPERM (the kernel forbids
 * it, see rnic_vm_probe()), -ENOSYS, -ENOMEM. Not logged: the caller knows
 * key, address and operation.
 */
int rnic_vm_read(struct rnic_proc *p, void *dst, uint64_t src, size_t len,
		 size_t *moved);

/*
 * Copies @len bytes at @src to @dst in the address space of @p. Returns as
 * rnic_vm_read(); with -ESRCH what *@moved counts had been written.
 */
int rnic_vm_write(struct rnic_proc *p, uint64_t dst, const void *src,
		  size_t len, size_t *moved);

/*
 * Makes one real call, a read of the byte at @va in @p, to find out whether
 * CMA works with that peer; a wrong address is no obstacle. Returns 0, -EPERM
 * (Yama, another user, or no CAP_SYS_PTRACE; logged as information with what
 * helps), -ESRCH (dead), -ENOSYS or what else the kernel said (logged).
 */
int rnic_vm_probe(struct rnic_proc *p, uint64_t va);

/*
 * One system call that moves all @len bytes, at most RNIC_VM_CHUNK, between
 * @here and @there in the address space of @p; all of it inline, since the CPU
 * has lost its predictions of returns afterwards. False: not, or not all, were
 * moved, or those that came do not count; rnic_vm_write() and its sister start
 * again and say why.
 */
RNIC_HOT bool rnic_vm_move(struct rnic_proc *p, bool write, void *here,
			   uint64_t there, size_t len)
{
	struct iovec own = { here, len };
	struct iovec peer = { (void *)(uintptr_t)there, len };
	ssize_t n;

	/* before a write, after a read: see above */
	if (write ? !rnic_proc_look_lately(p) : rnic_proc_dead(p))
		return false;
	n = write ? process_vm_writev(p->pid, &own, 1, &peer, 1, 0)
		  : process_vm_readv(p->pid, &own, 1, &peer, 1, 0);
	return n == (ssize_t)len && (write || rnic_proc_look_lately(p));
}

#endif /* RNIC_VM_H */
