/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * membarrier(2): there is no wrapper in libc.
 */
#include "shm/fence.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/atomic.h"
#include "shm/log.h"

enum { TRIES = 10 }; /* ENOMEM is passing: it allocates a CPU mask */

static rnic_a32 registered; /* set once, never back */

static int membarrier(int cmd)
{
	return (int)syscall(SYS_membarrier, cmd, 0, 0);
}

bool rnic_fence_available(void)
{
	int have = membarrier(MEMBARRIER_CMD_QUERY);

	return have > 0 && have & MEMBARRIER_CMD_GLOBAL_EXPEDITED;
}

int rnic_fence_register(void)
{
	if (rnic_fence_registered())
		return 0;
	if (membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)) {
		int err = errno;

		rnic_log(RNIC_LOG_INFO, "membarrier: cannot register: %s",
			 strerror(err));
		return -err;
	}
	/* release: the kernel registered us before anybody relies on it */
	rnic_store32_release(&registered, 1);
	return 0;
}

bool rnic_fence_registered(void)
{
	/* relaxed: the kernel's state is what counts, set before the word */
	return rnic_load32_relaxed(&registered);
}

int rnic_fence_peers_quiet(void)
{
	int err = 0;

	for (int i = 0; i < TRIES; i++) {
		if (!membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED))
			return 0;
		err = errno;
		if (err != ENOMEM)
			break;
	}
	return -err;
}

int rnic_fence_peers(void)
{
	int ret = rnic_fence_peers_quiet();

	if (ret)
		rnic_log(RNIC_LOG_WARN, "membarrier: %s", strerror(-ret));
	return ret;
}
