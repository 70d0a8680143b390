/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenario second-uffd: the program has a userfaultfd(2) of its own, on some of
 * the memory that is registered. What becomes of that is told to it, and to
 * nobody else.
 */
#include "bench/stress/stress.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum {
	SLOT = 13,
	LEN = 1 << 20,
	ROUNDS = 3,
	HALF = 16 * STRESS_PAGE, /* of a file that loses one, at most */
	FILES = 3,		 /* that come there, one after the other */
};

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

/* Has these pages; who else wanted them is refused from now on. */
static void second_take(struct stress *s, struct second *m, unsigned char *p,
			size_t len)
{
	struct uffdio_register reg = {
		.range = { .start = (uintptr_t)p, .len = len },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	stress_say(s, "own userfaultfd on %p %zu%s", (void *)p, len,
		   ioctl(m->fd, UFFDIO_REGISTER, &reg) ? ": refused" : "");
}

/* A part of @len bytes, whole pages: what is behind *@at. */
static size_t part_of(struct stress *s, size_t len, size_t *at)
{
	*at = stress_random(s, len / STRESS_PAGE) * STRESS_PAGE;
	return stress_pages(s, len - *at);
}

static void second_take_some(struct stress *s, struct second *m,
			     unsigned char *p, size_t len)
{
	size_t at, n = part_of(s, len, &at);

	second_take(s, m, p + at, n);
}

/*
 * A file at @at, where nothing is mapped, that our own monitor has from the
 * first byte on. False: there is none, or another thread has the addresses.
 */
static bool file_put(struct stress *s, struct second *m, unsigned char *at,
		     size_t len, struct stress_pat *pat)
{
	int fd = stress_memfd_filled(s, len, pat);
	unsigned char *p =
		fd < 0 ? NULL
		       : stress_map_as(s, at, len, PROT_READ | PROT_WRITE,
				       MAP_SHARED, fd);

	if (p != at) {
		stress_unmap(s, p, len);
		return false;
	}
	second_take(s, m, p, len);
	return true;
}

/* ---- pages that it has among others ---- */

/* A hole in it, where a file comes; what is beside stays. */
static int hole(struct stress *s, struct second *m, unsigned char *p,
		size_t len)
{
	size_t at, n = part_of(s, len, &at);
	struct stress_pat pat;
	bool put;
	int ret = 0;

	stress_unmap(s, p + at, n);
	if (at)
		ret = stress_exchange(s, p, at, 1);
	put = !ret && file_put(s, m, p + at, n, &pat);
	if (put)
		ret = stress_out(s, p + at, n, pat);
	if (put && !ret)
		ret = stress_exchange(s, p, len, 2);
	stress_unmap(s, at ? p : NULL, at);
	stress_unmap(s, put ? p + at : NULL, n);
	stress_unmap(s, at + n < len ? p + at + n : NULL, len - at - n);
	return ret;
}

static int some_round(struct stress *s, struct second *m)
{
	size_t len = stress_pages(s, LEN);
	unsigned char *p =
		stress_map(s, stress_slot(s, SLOT), len, stress_random(s, 2));
	bool early = stress_random(s, 2);
	int ret;

	if (!p)
		return stress_skip(s, "no memory");
	if (early)
		second_take_some(s, m, p, len);
	ret = stress_use_new(s, p, len);
	if (!early)
		second_take_some(s, m, p, len);
	if (!ret)
		ret = stress_exchange(s, p, len, 2);
	if (!ret && stress_random(s, 2))
		return hole(s, m, p, len);
	stress_unmap(s, p, len);
	return ret;
}

/* ---- files beside a region that is open ---- */

static int file_used(struct stress *s, unsigned char *p, size_t len,
		     struct stress_pat pat)
{
	struct stress_mr r;
	int ret;

	if (!stress_has_rma(s))
		return stress_out(s, p, len, pat);
	ret = stress_mr_get(s, p, len, STRESS_BOTH, &r);
	if (!ret)
		ret = stress_pull(s, &r, 0, len, pat);
	return stress_mr_put(s, &r) ? STRESS_FAILED : ret;
}

/*
 * Half of a file is unmapped while the other half is registered: the provider
 * may go on listening for both, and hears nothing of the files that come where
 * the half was.
 */
static int files_round(struct stress *s, struct second *m)
{
	size_t len = stress_pages(s, HALF);
	unsigned char *p = stress_map_memfd(s, stress_slot(s, SLOT), 2 * len);
	struct stress_mr kept = { .mr = NULL };
	struct stress_pat pat;
	int ret;

	if (!p)
		return stress_skip(s, "no memory");
	pat = stress_fill(s, p, 2 * len);
	ret = stress_mr_get(s, p, len, STRESS_BOTH, &kept);
	if (!ret)
		ret = stress_out(s, p, 2 * len, pat);
	stress_unmap(s, p + len, len);
	for (int i = 0; !ret && i < FILES; i++) {
		struct stress_pat next;

		if (!file_put(s, m, p + len, len, &next))
			break;
		ret = file_used(s, p + len, len, next);
		stress_unmap(s, p + len, len);
	}
	if (!ret)
		ret = stress_out(s, p, len, pat);
	if (stress_mr_put(s, &kept))
		ret = STRESS_FAILED;
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
		ret = some_round(s, &m);
	for (int i = 0; !ret && i < ROUNDS; i++)
		ret = files_round(s, &m);
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
