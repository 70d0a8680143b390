/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenarios monitor-off, monitor-refused and two-domains: nobody sees what is
 * unmapped, or two do.
 */
#include "bench/stress/stress.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum {
	SLOT = 13,
	LEN = 1 << 20,
	ROUNDS = 3,
};

/* ---- no monitor ---- */

/* Another mapping at the same address; and a part of it is replaced. */
static int remap(struct stress *s, unsigned char *at)
{
	size_t len = stress_pages(s, LEN);
	unsigned char *p = stress_map(s, at, len, stress_random(s, 2));
	int ret;

	if (!p)
		return stress_skip(s, "no memory");
	ret = stress_use_new(s, p, len);
	if (!ret)
		ret = stress_madvise(s, p, len, MADV_DONTNEED);
	if (ret == STRESS_SKIP)
		ret = 0;
	if (!ret)
		ret = stress_exchange(s, p, len, 2);
	stress_unmap(s, p, len);
	return ret;
}

static int step(struct stress *s, void *state)
{
	int ret = 0;

	(void)state;
	for (int i = 0; !ret && i < ROUNDS; i++)
		ret = remap(s, stress_slot(s, SLOT));
	stress_slot_free(s, SLOT);
	return ret;
}

static const char *const off[] = {
	"FI_SHRIMP_MR_CACHE_MONITOR=off",
	"FI_SHRIMP_MONITOR=off",
	"FI_MR_CACHE_MONITOR=disabled",
	NULL,
};

const struct stress_scenario stress_monitor_off = {
	.name = "monitor-off",
	.help = "no monitor by settings; all others as well in this group",
	.env = off,
	.step = step,
};

/* ---- refused ---- */

/* userfaultfd(2) fails with EPERM from now on. */
static int refuse(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(code[0]),
				   .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return -errno;
	return 0;
}

static const char *const automatic[] = {
	"FI_SHRIMP_MR_CACHE_MONITOR=auto",
	"FI_SHRIMP_MONITOR=auto",
	"FI_MR_CACHE_MONITOR=userfaultfd",
	NULL,
};

const struct stress_scenario stress_monitor_refused = {
	.name = "monitor-refused",
	.help = "userfaultfd refused by a filter of system calls",
	.env = automatic,
	.before = refuse,
	.step = step,
};

/* ---- two domains ---- */

static int domains_setup(struct stress *s, void **state)
{
	*state = NULL;
	return stress_second_open(s);
}

static void domains_teardown(struct stress *s, void *state)
{
	(void)state;
	stress_second_close(s);
}

const struct stress_scenario stress_two_domains = {
	.name = "two-domains",
	.help = "two domains in one process, over the same memory",
	.setup = domains_setup,
	.step = step,
	.teardown = domains_teardown,
};
