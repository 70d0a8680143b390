/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Peer processes: a list, a descriptor each, one epoll set.
 *
 * The lock protects the list and the entries' fields but dead, which is
 * written under it and read without; so are generation and alive.
 */
#include "shm/proc.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shm/identity.h"
#include "shm/log.h"

enum {
	EVENTS = 16,	      /* deaths taken from epoll at once */
	RECHECK_MS = 100,     /* an identity is looked at this often */
	PIDS_PER_TICK = 1024, /* more than a CPU can fork in a tick */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rnic_proc *procs;	 /* all entries */
static struct rnic_proc *cursor; /* next identity to look at */
static uint64_t recheck_ms;	 /* when the last one was */
static int epfd = -1;		 /* pidfds of the living */
static rnic_a32 generation;	 /* written under the lock */
static rnic_a32 alive;		 /* written under the lock */
static pthread_once_t ticks_known = PTHREAD_ONCE_INIT; /* trust_ticks is */

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int epoll_locked(void)
{
	if (epfd >= 0)
		return epfd;
	epfd = epoll_create1(EPOLL_CLOEXEC);
	if (epfd < 0)
		rnic_log(RNIC_LOG_WARN, "epoll set of processes: %s",
			 strerror(errno));
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
	return p->self;
}

/*
 * Takes the descriptor out of the epoll set, then closes it: closing alone
 * does not, while a child that has not reached exec holds a copy.
 */
static void close_fd(struct rnic_proc *p)
{
	if (p->fd < 0)
		return;
	/* relaxed: looked at while the set still has it, or not */
	rnic_store32_relaxed(&p->watched, 0);
	if (epfd >= 0)
		epoll_ctl(epfd, EPOLL_CTL_DEL, p->fd, NULL);
	close(p->fd);
	p->fd = -1;
}

static void mark_dead(struct rnic_proc *p)
{
	/* relaxed: P1 orders it; before the set forgets it, for P3 */
	rnic_store32_relaxed(&p->dead, 1);
	close_fd(p);
	/* P1: publishes dead; pairs with P2 in rnic_proc_generation() */
	rnic_add32_acqrel(&generation, 1);
	rnic_sub32_acqrel(&alive, 1);
}

/* Has @p->fd watched. Returns 0 or -errno. */
static int epoll_add(struct rnic_proc *p)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = p };

	if (epoll_locked() < 0)
		return -EMFILE;
	return epoll_ctl(epfd, EPOLL_CTL_ADD, p->fd, &ev) ? -errno : 0;
}

/* Opens and watches the pidfd. Returns 0 or -errno, then there is none. */
static int watch(struct rnic_proc *p)
{
	int ret;

	p->fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	ret = p->fd < 0 ? -errno : epoll_add(p);
	if (ret)
		close_fd(p);
	else
		/* relaxed: without it the look is another one */
		rnic_store32_relaxed(&p->watched, 1);
	return ret;
}

/* 0: it is the one meant; -ESRCH: gone, or another; or not known. */
static int verify(const struct rnic_proc *p)
{
	uint64_t id;
	int ret = rnic_identity_of(p->pid, &id);

	if (ret)
		return ret;
	return rnic_identity_same(id, p->identity) ? 0 : -ESRCH;
}

/* Watches @p and finds out that it is the one meant. Returns 0 or -errno. */
static int meet(struct rnic_proc *p)
{
	int ret = watch(p);

	if (ret == -ESRCH)
		return ret;
	if (ret)
		rnic_log(RNIC_LOG_INFO,
			 "pidfd of %u: %s: watching its "
			 "identity instead",
			 p->pid, strerror(-ret));
	/* after the pidfd is open: a pid recycled before is seen here */
	ret = verify(p);
	if (ret != -EMFILE || p->fd < 0)
		return ret;
	/* the pidfd took the last descriptor */
	close_fd(p);
	return verify(p);
}

static struct rnic_proc *proc_alloc(uint32_t pid, uint64_t identity)
{
	struct rnic_proc *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pid = pid;
	p->self = pid == (uint32_t)getpid();
	p->identity = identity;
	p->fd = -1;
	p->refs = 1;
	return p;
}

static void link_proc(struct rnic_proc *p)
{
	p->next = procs;
	procs = p;
	/* under the lock; a hint to readers without it */
	if (!is_self(p))
		rnic_add32_acqrel(&alive, 1);
}

static int proc_new(uint32_t pid, uint64_t identity, struct rnic_proc **out)
{
	struct rnic_proc *p = proc_alloc(pid, identity);
	int ret;

	if (!p)
		return -ENOMEM;
	ret = is_self(p) ? verify(p) : meet(p);
	if (ret == -EMFILE)
		rnic_log(RNIC_LOG_WARN,
			 "process %u: no descriptor left to look at it with",
			 pid);
	if (ret) {
		close_fd(p);
		free(p);
		return ret;
	}
	link_proc(p);
	*out = p;
	return 0;
}

/*
 * A process that has become untraceable shows less of its identity and is
 * still the same; of a dead one that is not known.
 */
static bool matches(const struct rnic_proc *p, uint32_t pid, uint64_t identity)
{
	if (p->pid != pid)
		return false;
	return p->identity == identity ||
	       (!rnic_proc_dead(p) &&
		rnic_identity_same(p->identity, identity));
}

static struct rnic_proc *find(uint32_t pid, uint64_t identity)
{
	struct rnic_proc *p = procs;

	while (p && !matches(p, pid, identity))
		p = p->next;
	return p;
}

int rnic_proc_get(uint32_t pid, uint64_t identity, struct rnic_proc **out)
{
	struct rnic_proc *p;
	int ret = 0;

	pthread_mutex_lock(&lock);
	p = find(pid, identity);
	if (!p) {
		ret = proc_new(pid, identity, out);
	} else if (rnic_proc_dead(p)) {
		ret = -ESRCH;
	} else {
		p->refs++;
		*out = p;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

/* False: it was the parent's, see rnic_proc_forked(). */
static bool unlink_proc(struct rnic_proc *p)
{
	struct rnic_proc *prev = NULL, *q = procs;

	while (q && q != p) {
		prev = q;
		q = q->next;
	}
	if (!q)
		return false;
	if (prev)
		prev->next = p->next;
	else
		procs = p->next;
	if (cursor == p)
		cursor = prev;
	return true;
}

void rnic_proc_put(struct rnic_proc *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&lock);
	if (!--p->refs) {
		/* under the lock; a hint to readers without it */
		if (unlink_proc(p) && !rnic_proc_dead(p) && !is_self(p))
			rnic_sub32_acqrel(&alive, 1);
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

/* Its identity may tell something. */
static bool has_identity(const struct rnic_proc *p)
{
	return !rnic_proc_dead(p) && !is_self(p);
}

/*
 * Another process has its pid, or another program runs in it. Gone from /proc
 * it is dead only if there is no pidfd: /proc may hide it from us.
 */
static bool looks_dead(const struct rnic_proc *p)
{
	uint64_t id;
	int ret = rnic_identity_of(p->pid, &id);

	if (ret)
		return ret == -ESRCH && p->fd < 0;
	return !rnic_identity_same(id, p->identity);
}

/* Moves on to the next process that has an identity; NULL at the end. */
static void advance_cursor(void)
{
	cursor = cursor ? cursor->next : procs;
	while (cursor && !has_identity(cursor))
		cursor = cursor->next;
}

/*
 * Identities cost a look at /proc each: the next one in the list, now and
 * then, and every one that has no pidfd; which is tried again, too.
 */
static int poll_identities(void)
{
	uint64_t now = now_ms();
	int died = 0;

	if (now - recheck_ms < RECHECK_MS)
		return 0;
	recheck_ms = now;
	advance_cursor();
	for (struct rnic_proc *p = procs; p; p = p->next) {
		if (!has_identity(p) || (p->fd >= 0 && p != cursor))
			continue;
		if (looks_dead(p)) {
			mark_dead(p);
			died++;
		} else if (p->fd < 0) {
			watch(p);
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

bool rnic_proc_look(const struct rnic_proc *p)
{
	struct epoll_event ev;
	uint64_t id;

	if (rnic_proc_dead(p))
		return false;
	if (is_self(p))
		return true;
	/* relaxed: see close_fd() */
	if (!rnic_load32_relaxed(&p->watched))
		return !rnic_identity_of(p->pid, &id) &&
		       rnic_identity_same(id, p->identity);
	/* epfd does not change while there is anything in it */
	if (epoll_wait(epfd, &ev, 1, 0) > 0)
		rnic_proc_poll();
	/* P3: whoever took it out of the set had marked it before */
	return !rnic_proc_dead(p);
}

/* True if no pid comes again within a tick. */
static bool pids_last(void)
{
	FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
	long max = 0;

	if (f && fscanf(f, "%ld", &max) != 1)
		max = 0;
	if (f)
		fclose(f);
	return max / PIDS_PER_TICK >= sysconf(_SC_NPROCESSORS_CONF);
}

static bool trust_ticks; /* pids_last(), written once */

static void learn_pids(void)
{
	trust_ticks = pids_last();
}

/* The tick that it is now. Not 0. */
static uint64_t tick_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ((uint64_t)ts.tv_sec << 30 | (uint64_t)ts.tv_nsec) + 1;
}

bool rnic_proc_look_lately(struct rnic_proc *p)
{
	/* before the look: what is seen is at least as new */
	uint64_t now = tick_now();

	/* relaxed: whichever thread it was, it looked in this tick */
	if (RNIC_LIKELY(rnic_load64_relaxed(&p->looked) == now))
		return !rnic_proc_dead(p);
	pthread_once(&ticks_known, learn_pids);
	if (!rnic_proc_look(p))
		return false;
	if (trust_ticks)
		rnic_store64_relaxed(&p->looked, now);
	return true;
}

uint32_t rnic_proc_generation(void)
{
	/* P2: acquires the dead flags; pairs with P1 in mark_dead() */
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
	/* the epoll set is the parent's too: nothing is taken out of it */
	for (struct rnic_proc *p = procs; p; p = p->next) {
		if (p->fd >= 0)
			close(p->fd);
		p->fd = -1;
	}
	if (epfd >= 0)
		close(epfd);
	epfd = -1;
	procs = cursor = NULL;
	rnic_store32_relaxed(&alive, 0);
}
