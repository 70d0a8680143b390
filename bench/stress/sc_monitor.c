/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenarios monitor-off, monitor-refused, second-uffd and two-domains: nobody
 * sees what is unmapped, or two do.
 */
#include "bench/stress/stress.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

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

/* ---- a second one ---- */

/** Our own monitor, which has a part of the memory. */
struct second {
	int fd;	     /* userfaultfd */
	int stop[2]; /* a pipe; its end ends the thread */
	pthread_t thread;
};

/* Takes events until it is told to stop: who unmaps waits for it. */
static void *events_take(void *arg)
{
	struct second *m = arg;
	struct pollfd p[2] = { { .fd = m->fd, .events = POLLIN },
			       { .fd = m->stop[0], .events = POLLIN } };
	struct uffd_msg msg;

	while (poll(p, 2, -1) >= 0 && !p[1].revents)
		while (read(m->fd, &msg, sizeof(msg)) == sizeof(msg))
			;
	return NULL;
}

static int second_open(struct stress *s, struct second *m)
{
	struct uffdio_api api = { .api = UFFD_API,
				  .features = UFFD_FEATURE_EVENT_UNMAP |
					      UFFD_FEATURE_EVENT_REMAP |
					      UFFD_FEATURE_EVENT_REMOVE };

	m->fd = (int)syscall(SYS_userfaultfd,
			     O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (m->fd < 0 || ioctl(m->fd, UFFDIO_API, &api))
		return stress_skip(s, "userfaultfd: %s", strerror(errno));
	if (pipe2(m->stop, O_CLOEXEC))
		return stress_skip(s, "pipe: %s", strerror(errno));
	if (pthread_create(&m->thread, NULL, events_take, m)) {
		close(m->stop[0]);
		close(m->stop[1]);
		return stress_skip(s, "no thread");
	}
	return 0;
}

static void second_close(struct second *m, bool running)
{
	if (running) {
		close(m->stop[1]);
		pthread_join(m->thread, NULL);
		close(m->stop[0]);
	}
	if (m->fd >= 0)
		close(m->fd);
}

/* Has some of the pages, before or after the provider looks at them. */
static void second_take(struct stress *s, struct second *m, unsigned char *p,
			size_t len)
{
	size_t n = stress_pages(s, len);
	struct uffdio_register reg = {
		.range = { .start = (uintptr_t)p, .len = n },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	stress_say(s, "own userfaultfd on %p %zu%s", (void *)p, n,
		   ioctl(m->fd, UFFDIO_REGISTER, &reg) ? ": refused" : "");
}

static int second_round(struct stress *s, struct second *m)
{
	size_t len = stress_pages(s, LEN);
	unsigned char *p = stress_map(s, stress_slot(s, SLOT), len, false);
	bool early = stress_random(s, 2);
	int ret;

	if (!p)
		return stress_skip(s, "no memory");
	if (early)
		second_take(s, m, p, len);
	ret = stress_use_new(s, p, len);
	if (!early)
		second_take(s, m, p, len);
	if (!ret)
		ret = stress_exchange(s, p, len, 2);
	stress_unmap(s, p, len);
	return ret;
}

static int second_step(struct stress *s, void *state)
{
	struct second m = { .fd = -1 };
	int ret = second_open(s, &m);
	bool running = !ret;

	(void)state;
	for (int i = 0; !ret && i < ROUNDS; i++)
		ret = second_round(s, &m);
	stress_slot_free(s, SLOT);
	second_close(&m, running);
	return ret;
}

const struct stress_scenario stress_second_uffd = {
	.name = "second-uffd",
	.help = "a userfaultfd of our own has some of the memory",
	.needs = STRESS_UFFD,
	.step = second_step,
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
