/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Peer processes: a list, a pidfd each, one epoll set.
 *
 * The lock protects the list and the entries' fields but dead, which is
 * written under it and read without.
 */
#include "shm/proc.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shm/identity.h"
#include "shm/log.h"

enum {
	EVENTS = 16,	  /* deaths taken from epoll at once */
	RECHECK_MS = 100, /* an identity is looked at this often */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rnic_proc *procs;	 /* all entries */
static struct rnic_proc *cursor; /* next identity to look at */
static uint64_t recheck_ms;	 /* when the last one was */
static int epfd = -1;		 /* pidfds of the living */
static rnic_a32 generation;	 /* written under the lock */
static rnic_a32 alive;		 /* written under the lock */

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int epoll_locked(void)
{
	if (epfd < 0)
		epfd = epoll_create1(EPOLL_CLOEXEC);
	return epfd;
}

int rnic_proc_epoll_fd(void)
{
	int fd;

	pthread_mutex_lock(&lock);
	fd = epoll_locked();
	pthread_mutex_unlock(&lock);
	return fd;
}

static bool is_self(const struct rnic_proc *p)
{
	return p->pid == (uint32_t)getpid();
}

/* Closing a pidfd takes it out of the epoll set. */
static void close_fd(struct rnic_proc *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

static void mark_dead(struct rnic_proc *p)
{
	if (rnic_proc_dead(p))
		return;
	close_fd(p);
	/* relaxed: the flag first, then the number that makes others look */
	rnic_store32_release(&p->dead, 1);
	rnic_add32_acqrel(&generation, 1);
	if (!is_self(p))
		rnic_sub32_acqrel(&alive, 1);
}

/* Another process has its pid, or another program runs in it. */
static bool is_other(const struct rnic_proc *p)
{
	uint64_t id;
	int ret = rnic_identity_of(p->pid, &id);

	return ret == -ESRCH || (!ret && !rnic_identity_same(id, p->identity));
}

/* Opens and watches the pidfd. -ESRCH: no such process. */
static int watch(struct rnic_proc *p)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = p };

	p->fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->fd < 0 && errno == ESRCH)
		return -ESRCH;
	if (p->fd < 0) {
		rnic_log(RNIC_LOG_INFO,
			 "pidfd of %u: %s: watching its "
			 "identity instead",
			 p->pid, strerror(errno));
		return 0;
	}
	if (epoll_locked() < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, p->fd, &ev))
		close_fd(p);
	return 0;
}

static int proc_new(uint32_t pid, uint64_t identity, struct rnic_proc **out)
{
	struct rnic_proc *p = calloc(1, sizeof(*p));
	int ret = 0;

	if (!p)
		return -ENOMEM;
	p->pid = pid;
	p->identity = identity;
	p->fd = -1;
	p->refs = 1;
	if (!is_self(p))
		ret = watch(p);
	/* after the pidfd is open: a pid recycled before is seen here */
	if (!ret && is_other(p))
		ret = -ESRCH;
	if (ret) {
		close_fd(p);
		free(p);
		return ret;
	}
	p->next = procs;
	procs = p;
	if (!is_self(p))
		rnic_add32_acqrel(&alive, 1);
	*out = p;
	return 0;
}

static struct rnic_proc *find(uint32_t pid, uint64_t identity)
{
	struct rnic_proc *p = procs;

	while (p &&
	       (p->pid != pid || !rnic_identity_same(p->identity, identity)))
		p = p->next;
	return p;
}

int rnic_proc_get(uint32_t pid, uint64_t identity, struct rnic_proc **out)
{
	struct rnic_proc *p;
	int ret = 0;

	pthread_mutex_lock(&lock);
	p = find(pid, identity);
	if (!p)
		ret = proc_new(pid, identity, out);
	else if (rnic_proc_dead(p))
		ret = -ESRCH;
	else
		p->refs++, *out = p;
	pthread_mutex_unlock(&lock);
	return ret;
}

static void unlink_proc(struct rnic_proc *p)
{
	struct rnic_proc **at = &procs;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	if (cursor == p)
		cursor = p->next;
}

void rnic_proc_put(struct rnic_proc *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&lock);
	if (!--p->refs) {
		if (!rnic_proc_dead(p) && !is_self(p))
			rnic_sub32_acqrel(&alive, 1);
		unlink_proc(p);
		close_fd(p);
		free(p);
	}
	pthread_mutex_unlock(&lock);
}

static int poll_fds(void)
{
	struct epoll_event ev[EVENTS];
	int n, died = 0;

	do {
		n = epfd < 0 ? 0 : epoll_wait(epfd, ev, EVENTS, 0);
		for (int i = 0; i < n; i++) {
			mark_dead(ev[i].data.ptr);
			died++;
		}
	} while (n == EVENTS);
	return died;
}

/*
 * Identities cost a look at /proc each: the next one in the list, now and
 * then, and every one that has no pidfd.
 */
static int poll_identities(void)
{
	uint64_t now = now_ms();
	int died = 0;

	if (now - recheck_ms < RECHECK_MS)
		return 0;
	recheck_ms = now;
	cursor = cursor ? cursor->next : procs;
	for (struct rnic_proc *p = procs; p; p = p->next) {
		if (rnic_proc_dead(p) || is_self(p) ||
		    (p->fd >= 0 && p != cursor))
			continue;
		if (is_other(p)) {
			mark_dead(p);
			died++;
		}
	}
	return died;
}

int rnic_proc_poll(void)
{
	int died;

	pthread_mutex_lock(&lock);
	died = poll_fds() + poll_identities();
	pthread_mutex_unlock(&lock);
	return died;
}

uint32_t rnic_proc_generation(void)
{
	/* acquire: the dead flags set before it are seen; see mark_dead() */
	return rnic_load32_acquire(&generation);
}

uint32_t rnic_proc_alive(void)
{
	/* relaxed: a hint for yielding */
	return rnic_load32_relaxed(&alive);
}

void rnic_proc_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	for (struct rnic_proc *p = procs; p; p = p->next)
		close_fd(p);
	if (epfd >= 0)
		close(epfd);
	epfd = -1;
	procs = cursor = NULL;
	rnic_store32_relaxed(&alive, 0);
}
