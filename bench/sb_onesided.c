/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A process that owns memory, and one that uses it.
 */
#define _GNU_SOURCE
#include "bench/sb_onesided.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* The owner: gives its memory, then waits until the socket is closed. */
static int owner_main(int fd, void *arg)
{
	size_t room = *(size_t *)arg;
	struct sb_side s = { .info = NULL };
	struct sb_mem device = { .p = NULL }, private = { .p = NULL };
	struct sb_hello peer;
	char c;
	int ret = sb_side_open(&s);

	if (!ret)
		ret = sb_mem_new(&s, &device, true, room);
	if (!ret)
		ret = sb_mem_new(&s, &private, false, room);
	if (!ret)
		ret = sb_mem_give(&s, &device, SB_KEY_DEVICE);
	if (!ret)
		ret = sb_mem_give(&s, &private, SB_KEY_PRIVATE);
	if (!ret)
		ret = sb_side_meet(&s, fd, (uintptr_t) private.p, &peer);
	if (!ret)
		sb_proc_get(fd, &c, 1);
	sb_mem_free(&s, &private);
	sb_mem_free(&s, &device);
	sb_side_close(&s);
	return ret;
}

int sb_onesided_join(struct sb_side *s, int fd)
{
	struct sb_hello owner;
	int ret;

	if (sb_proc_get(fd, &owner, sizeof(owner)))
		return 1;
	ret = sb_side_open(s);
	if (!ret &&
	    fi_av_insert(s->av, owner.name, 1, &s->main.peer, 0, NULL) != 1)
		ret = sb_fail("the address of the owner", -FI_EINVAL);
	return ret;
}

/* Opens this side, and tells the others who the owner is. */
static int meet(struct sb_onesided *b)
{
	int ret = sb_side_open(&b->s);

	if (!ret)
		ret = sb_side_meet(&b->s, b->proc.fd, 0, &b->peer);
	for (unsigned int i = 0; i < b->crew.n && !ret; i++)
		ret = sb_proc_put(b->crew.proc[i].fd, &b->peer,
				  sizeof(b->peer));
	return ret;
}

int sb_onesided_open(struct sb_onesided *b, const struct sb_options *o,
		     struct sb_out *out, size_t room,
		     int (*other)(int fd, void *arg))
{
	int ret;

	memset(b, 0, sizeof(*b));
	b->o = o;
	b->out = out;
	b->room = (room + SB_PAGE - 1) / SB_PAGE * SB_PAGE;
	ret = sb_proc_start(&b->proc, owner_main, &b->room, o->pin.cpu[1]);
	if (ret)
		return sb_fail("fork", ret);
	ret = sb_crew_start(&b->crew, o->processes, other);
	if (ret)
		return ret;
	bench_pin_self(o->pin.cpu[0]);
	b->buf = aligned_alloc(SB_PAGE, b->room);
	b->far = aligned_alloc(SB_PAGE, b->room);
	if (!b->buf || !b->far)
		return sb_fail("memory", -FI_ENOMEM);
	memset(b->buf, 1, b->room);
	memset(b->far, 1, b->room);
	return meet(b);
}

int sb_onesided_close(struct sb_onesided *b)
{
	int ret = sb_crew_end(&b->crew), end = sb_proc_end(&b->proc);

	sb_side_close(&b->s);
	free(b->buf);
	free(b->far);
	memset(b, 0, sizeof(*b));
	return ret ? ret : end;
}

int sb_onesided_cma(struct sb_onesided *b, bool write, size_t len)
{
	struct iovec own = { b->buf, len };
	struct iovec peer = { (void *)(uintptr_t)b->peer.addr, len };
	pid_t pid = b->peer.pid;
	ssize_t n = write ? process_vm_writev(pid, &own, 1, &peer, 1, 0)
			  : process_vm_readv(pid, &own, 1, &peer, 1, 0);

	if (n == (ssize_t)len)
		return 0;
	return sb_fail("process_vm_readv, process_vm_writev",
		       n < 0 ? -errno : -EIO);
}
