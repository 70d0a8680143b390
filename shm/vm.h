/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Bytes to and from a peer's private memory: process_vm_readv/writev (CMA).
 *
 * These calls go by pid number, so the peer is looked at before each of them
 * and, after a read, before what it brought counts. Between the look and the
 * call a peer can still die and its number be given to another process of the
 * same user: a write may then reach a stranger. The window is a few
 * instructions; the kernel offers no call by pidfd. A peer that execs is seen
 * by rnic_proc_poll() only, which marks it dead. A call that is under way
 * when the peer dies may end late, since the caller is then the last user of
 * the dead one's memory and gives it back (up to 0.1 s for some GiB).
 *
 * No state, no lock; any thread that holds a reference to the process. A call
 * may sleep on page faults of the peer (never the peer's scheduling), so it
 * is not made between odd and even of a reader slot unless the pages are
 * known to be there.
 */
#ifndef RNIC_VM_H
#define RNIC_VM_H

#include <stddef.h>
#include <stdint.h>

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
int rnic_vm_read(const struct rnic_proc *p, void *dst, uint64_t src, size_t len,
		 size_t *moved);

/*
 * Copies @len bytes at @src to @dst in the address space of @p. Returns as
 * rnic_vm_read(); with -ESRCH what *@moved counts had been written.
 */
int rnic_vm_write(const struct rnic_proc *p, uint64_t dst, const void *src,
		  size_t len, size_t *moved);

/*
 * Makes one real call, a read of the byte at @va in @p, to find out whether
 * CMA works with that peer; a wrong address is no obstacle. Returns 0, -EPERM
 * (Yama, another user, or no CAP_SYS_PTRACE; logged as information with what
 * helps), -ESRCH (dead), -ENOSYS or what else the kernel said (logged).
 */
int rnic_vm_probe(const struct rnic_proc *p, uint64_t va);

#endif /* RNIC_VM_H */
