/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The unmap monitor, see monitor.h for what it guarantees and its rules.
 *
 * Exclusion. Threads of the application against each other (get, put, join,
 * leave): mon.lock, which the monitor never takes. They against the monitor:
 * lists that it walks without a lock. Who changes a list stores, fences, and
 * looks at mon.cycle; the monitor makes that odd, fences, and walks. So either
 * it finds the list changed, or it is seen at work, and waited for: what has
 * left a list is not looked at any more, and what has joined is not in the
 * middle of a round. Against readers: the header.
 *
 * The lanes of a device are read through the mailbox's descriptor: no lock
 * keeps their mapping.
 */
#include "shm/monitor.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shm/breakage.h"
#include "shm/device.h"
#include "shm/fence.h"
#include "shm/identity.h"
#include "shm/log.h"
#include "shm/watch.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { STACK = 1 << 20 }; /* of the thread, bytes */
#else
enum { STACK = 64 << 10 }; /* of the thread, bytes */
#endif

enum {
	MESSAGES = 16,	   /* read at a time */
	CLAIMS = 64,	   /* claim words read at a time */
	SPINS = 200,	   /* looks before the CPU is given away */
	YIELDS = 300,	   /* looks before sleeping */
	NAP_US = 100,	   /* a sleep between two looks */
	SETTLES = 1000,	   /* looks whether all events are read */
	LOOK_MS = 10,	   /* between looks whether a reader is dead */
	FENCE_TRIES = 100, /* of a membarrier that fails */
	FENCE_NAP_US = 10000,
	TRIAL_MS = 2000, /* for the trial's events to be counted */
};

/* What the thread uses: one locked mapping, the stack first. */
struct monitor_mem {
	char stack[STACK];
	struct uffd_msg msg[MESSAGES]; /* events as they are read */
	uint64_t claim[CLAIMS];	       /* of a lane directory */
};

static struct {
	pthread_mutex_t lock;	 /* users, start, stop, lists; inner */
	unsigned int users;	 /* of rnic_monitor_get() */
	pthread_t thread;	 /* while there are users */
	int uffd;		 /* where events come from */
	int kick;		 /* eventfd: look at @stop */
	struct monitor_mem *mem; /* while there are users */
	rnic_a32 stop;		 /* 1: end */
	rnic_a64 cycle;		 /* odd: the monitor walks the lists */
	rnic_a64 marking;    /* odd: it tells the listeners; inside a round */
	rnic_aptr devs;	     /* struct rnic_watched_dev */
	rnic_aptr listeners; /* struct rnic_listener */
	rnic_a32 tid;	     /* statistics, written by the monitor */
	rnic_a64 events;     /* likewise */
	rnic_a64 freezes;    /* likewise */
	rnic_a64 waits;	     /* likewise */
	rnic_a64 unfenced;   /* likewise */
} mon = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void nap(long us)
{
	const struct timespec ts = { .tv_nsec = us * 1000 };

	nanosleep(&ts, NULL);
}

/* Between look @turn and the next. */
static void pause_at(unsigned int turn)
{
	if (turn < SPINS)
		rnic_cpu_relax();
	else if (turn < YIELDS)
		sched_yield();
	else
		nap(NAP_US);
}

/* ---- the monitor's thread: readers ---- */

/* A reader that may be inside. */
struct reader {
	const struct rnic_device *dev; /* where */
	uint64_t claim;		       /* who */
	uint64_t claim_at;	       /* the claim word, in the mailbox */
	uint64_t lane_at;	       /* the lane, likewise */
};

/* The word at @at of the mailbox; @fallback if it cannot be read. */
static uint64_t word_at(const struct rnic_device *d, uint64_t at,
			uint64_t fallback)
{
	uint64_t x;

	return pread(d->mailbox.fd, &x, sizeof(x), (off_t)at) == sizeof(x)
		       ? x
		       : fallback;
}

/* As is_dead() in shm/grace.c; not known is not dead. */
static bool is_dead(const struct reader *r)
{
	uint32_t pid = rnic_claim_pid(r->claim);
	uint64_t identity, then;
	int ret;

	if (pid == (uint32_t)getpid())
		return false;
	ret = rnic_identity_peek(pid, &identity);
	if (ret)
		return ret == -ESRCH;
	if (rnic_claim_make(pid, identity) != r->claim)
		return true;
	/* the claim knows the start only: exec shows in the stack */
	then = word_at(r->dev,
		       r->lane_at + offsetof(struct rnic_lane, sender.identity),
		       0) >>
	       32;
	return identity >> 32 && then && identity >> 32 != then;
}

/*
 * Waits until context @c of @r, if it is inside, has left, or has died. It
 * leaves by itself: nothing waits inside.
 */
static void wait_context(const struct reader *r, unsigned int c)
{
	uint64_t at = r->lane_at + offsetof(struct rnic_lane, reader[0]) +
		      c * RNIC_LINE;
	uint64_t seq = word_at(r->dev, at, 0), look = 0, now;

	if (!(seq & 1))
		return;
	rnic_count64(&mon.waits, 1);
	for (unsigned int turn = 0;; turn++) {
		if (word_at(r->dev, at, seq) != seq ||
		    word_at(r->dev, r->claim_at, r->claim) != r->claim)
			return;
		pause_at(turn);
		now = turn < YIELDS ? 0 : now_ms();
		if (now < look + LOOK_MS)
			continue;
		if (is_dead(r))
			return;
		look = now;
	}
}

/* The readers of endpoint place @i of @d. */
static void wait_place(const struct rnic_device *d, unsigned int i)
{
	uint64_t head = rnic_head_off(i), *claim = mon.mem->claim;
	uint64_t hi =
		word_at(d, head + offsetof(struct rnic_ep_head, lane_hi), 0);
	struct reader r = { .dev = d };

	if (hi > RNIC_LANE_MAX)
		hi = RNIC_LANE_MAX;
	for (unsigned int l = 0; l < hi; l++) {
		r.claim_at = head + offsetof(struct rnic_ep_head, claim) +
			     l * sizeof(*claim);
		if (!(l % CLAIMS) &&
		    pread(d->mailbox.fd, claim, sizeof(mon.mem->claim),
			  (off_t)r.claim_at) != sizeof(mon.mem->claim))
			return;
		r.claim = claim[l % CLAIMS];
		r.lane_at = rnic_lane_off(i, l);
		for (unsigned int c = 0; r.claim && c < RNIC_CTX_PER_EP; c++)
			wait_context(&r, c);
	}
}

static void wait_readers(const struct rnic_device *d)
{
	for (unsigned int w = 0; w < RNIC_EP_MAX / 64; w++) {
		/* relaxed: W1 is before it; a place is marked before its use */
		uint64_t used = rnic_load64_relaxed(&d->used[w]);

		for (unsigned int b = 0; b < 64; b++)
			if (used >> b & 1)
				wait_place(d, w * 64 + b);
	}
}

/* ---- the monitor's thread: regions ---- */

/* What readers of @d's tables look at. */
static rnic_a64 *frozen_of(const struct rnic_device *d)
{
	return &((struct rnic_mpt_head *)((char *)d->hdr +
					  d->hdr->mpt_head_off))
			->frozen;
}

bool rnic_monitor_frozen(const struct rnic_device *d)
{
	/* acquire: Z2; what is translated now was not withdrawn */
	return rnic_load64_acquire(frozen_of(d)) & 1;
}

static struct rnic_watched_dev *first_dev(void)
{
	/* acquire: what joined before (J1) */
	return rnic_ptr_load_acquire(&mon.devs);
}

static struct rnic_watched_dev *next_dev(const struct rnic_watched_dev *d)
{
	/* acquire: as above */
	return rnic_ptr_load_acquire(&d->next);
}

static struct rnic_watched *first_region(const struct rnic_watched_dev *d)
{
	/* acquire: as above */
	return rnic_ptr_load_acquire(&d->regions);
}

static struct rnic_watched *next_region(const struct rnic_watched *w)
{
	/* acquire: as above */
	return rnic_ptr_load_acquire(&w->next);
}

/* Nothing of @d that is watched is looked up, nor is a kept copy used. */
static void freeze_dev(const struct rnic_watched_dev *d)
{
	struct rnic_watched *w;

	/* Z1: odd, before the versions; the monitor is its only writer */
	rnic_store64_relaxed(frozen_of(d->dev),
			     rnic_load64_relaxed(frozen_of(d->dev)) + 1);
	/* Z1 before the slots, which may come just now; pairs with Z4 */
	rnic_fence_full();
	for (w = first_region(d); w; w = next_region(w)) {
		/* acquire: whose slot it is (J2) */
		struct rnic_mpt *m = rnic_ptr_load_acquire(&w->mpt);

		/* Z1: who sees the version sees the device frozen (A2) */
		if (m && !RNIC_BROKEN(kept_copy))
			rnic_add64_release(&m->version, 2);
	}
}

/*
 * Retries: the kernel may have been short of memory for a moment. Forbidden, it
 * is for good (seccomp): then a nap has to do. A store has long left its buffer
 * after it: no CPU keeps one for milliseconds.
 */
static void fence_readers(void)
{
	int err;

	for (int i = 0; (err = rnic_fence_peers_quiet()); i++) {
		if (i == (err == -ENOMEM ? FENCE_TRIES : 1)) {
			rnic_count64(&mon.unfenced, 1);
			return;
		}
		nap(FENCE_NAP_US);
	}
}

static void freeze(void)
{
	struct rnic_watched_dev *d;
	bool fenced = false;

	/* J3: at work, before the lists; pairs with wait_outside() */
	rnic_store64_relaxed(&mon.cycle, rnic_load64_relaxed(&mon.cycle) + 1);
	rnic_fence_full();
	rnic_count64(&mon.freezes, 1);
	for (d = first_dev(); d; d = next_dev(d)) {
		freeze_dev(d);
		fenced |= d->dev->fenced;
	}
	/* W1: Z1 before the looks at who is inside, here and there */
	rnic_fence_full();
	if (fenced)
		fence_readers();
	for (d = first_dev(); d && !RNIC_BROKEN(monitor_wait); d = next_dev(d))
		wait_readers(d->dev);
}

static void thaw(void)
{
	for (struct rnic_watched_dev *d = first_dev(); d; d = next_dev(d)) {
		/* relaxed: its only writer */
		uint64_t frozen = rnic_load64_relaxed(frozen_of(d->dev));

		/* Z2: what was withdrawn; pairs with Z3 in shm/reader.c */
		if (frozen & 1)
			rnic_store64_release(frozen_of(d->dev), frozen + 1);
	}
	/* J4: done with the lists; pairs with wait_outside() */
	rnic_store64_release(&mon.cycle, rnic_load64_relaxed(&mon.cycle) + 1);
}

static void tell_regions(uint64_t start, uint64_t end, bool unmapped)
{
	struct rnic_watched_dev *d;
	struct rnic_watched *w;

	for (d = first_dev(); d; d = next_dev(d)) {
		/* it has joined meanwhile: nothing is translated yet */
		if (!rnic_monitor_frozen(d->dev))
			continue;
		for (w = first_region(d); w; w = next_region(w))
			if (w->gone)
				w->gone(w, start, end, unmapped);
	}
}

static void tell_listeners(uint64_t start, uint64_t end, enum rnic_gone what)
{
	/* acquire: as in first_dev() */
	struct rnic_listener *l = rnic_ptr_load_acquire(&mon.listeners);

	for (; l; l = rnic_ptr_load_acquire(&l->next))
		l->gone(l, start, end, what);
}

/* Whom events are told, one after the other. */
enum audience { LISTENERS, REGIONS };

static void tell(enum audience a, uint64_t start, uint64_t end,
		 enum rnic_gone what)
{
	if (a == LISTENERS)
		tell_listeners(start, end, what);
	else
		tell_regions(start, end, what != RNIC_GONE_DISCARDED);
}

static bool is_ignored(const struct uffd_msg *m)
{
	return (RNIC_BROKEN(monitor_remap) && m->event == UFFD_EVENT_REMAP) ||
	       (RNIC_BROKEN(monitor_unmap) && m->event == UFFD_EVENT_UNMAP);
}

static void tell_event(enum audience a, const struct uffd_msg *m)
{
	uint64_t to = m->arg.remap.to, len = m->arg.remap.len;

	switch (is_ignored(m) ? 0 : m->event) {
	case UFFD_EVENT_UNMAP:
		tell(a, m->arg.remove.start, m->arg.remove.end,
		     RNIC_GONE_UNMAPPED);
		break;
	case UFFD_EVENT_REMOVE:
		tell(a, m->arg.remove.start, m->arg.remove.end,
		     RNIC_GONE_DISCARDED);
		break;
	case UFFD_EVENT_REMAP:
		tell(a, m->arg.remap.from, m->arg.remap.from + len,
		     RNIC_GONE_MOVED);
		/* the watch went along; who wants one there arms it again */
		if (a == LISTENERS)
			rnic_watch_moved(to, len);
		tell(a, to, to + len, RNIC_GONE_DISCARDED);
		break;
	default:
		break;
	}
}

static void tell_events(enum audience a, unsigned int n, bool lost)
{
	for (unsigned int i = 0; i < n; i++)
		tell_event(a, &mon.mem->msg[i]);
	if (lost)
		tell(a, 0, UINT64_MAX, RNIC_GONE_LOST);
}

/*
 * Who caused the events that this reads goes on, and is not to find what has
 * gone with a listener: until those are told the number is odd.
 */
static unsigned int read_events(bool *lost)
{
	ssize_t n;

	/* relaxed: the monitor is its only writer */
	rnic_store64_relaxed(&mon.marking,
			     rnic_load64_relaxed(&mon.marking) + 1);
	/* J6: odd, before the read and the marks; pairs with J5, K2 */
	rnic_fence_full();
	n = read(mon.uffd, mon.mem->msg, sizeof(mon.mem->msg));
	/* an event may be lost: everything is old */
	*lost = n < 0 && errno != EAGAIN && errno != EINTR;
	n = n < 0 ? 0 : n / (ssize_t)sizeof(struct uffd_msg);
	if (RNIC_BROKEN(monitor_busy) && n)
		nap(NAP_US);
	tell_events(LISTENERS, (unsigned int)n, *lost);
	/* J5: what they marked; pairs with rnic_monitor_cycle() */
	rnic_store64_release(&mon.marking,
			     rnic_load64_relaxed(&mon.marking) + 1);
	return (unsigned int)n;
}

/* All of this round was told. */
static void tell_end(void)
{
	struct rnic_watched_dev *d;
	struct rnic_watched *w;

	for (d = first_dev(); d; d = next_dev(d)) {
		if (!rnic_monitor_frozen(d->dev))
			continue;
		for (w = first_region(d); w; w = next_region(w))
			if (w->told)
				w->told(w);
	}
}

/* The events are there, and not read: who caused them sleeps. */
static void serve(void)
{
	unsigned int n;
	bool lost;

	freeze();
	n = read_events(&lost);
	tell_events(REGIONS, n, lost);
	tell_end();
	thaw();
	rnic_count64(&mon.events, n);
}

/*
 * A descriptor is none any more: somebody closed it, and the kernel tells
 * nothing. All is old, and nothing is kept from now on: the number stays odd.
 */
static void give_up(void)
{
	freeze();
	/* relaxed: its only writer. J6, as in read_events() */
	rnic_store64_relaxed(&mon.marking,
			     rnic_load64_relaxed(&mon.marking) + 1);
	rnic_fence_full();
	tell_events(LISTENERS, 0, true);
	tell_events(REGIONS, 0, true);
	tell_end();
	thaw();
}

static void *monitor_main(void *arg)
{
	struct pollfd p[2] = { { .fd = mon.uffd, .events = POLLIN },
			       { .fd = mon.kick, .events = POLLIN } };
	bool well = true;

	(void)arg;
	/* relaxed: statistics */
	rnic_store32_relaxed(&mon.tid, (uint32_t)syscall(SYS_gettid));
	/* acquire: nothing is published; the join orders the rest */
	while (well && !rnic_load32_acquire(&mon.stop)) {
		if (poll(p, 2, -1) <= 0)
			continue;
		well = !((p[0].revents | p[1].revents) & ~POLLIN);
		if (!well)
			give_up();
		else if (p[0].revents)
			serve();
	}
	rnic_store32_relaxed(&mon.tid, 0);
	return NULL;
}

/* ---- start and stop; mon.lock is held ---- */

/*
 * By number: the sanitizers replace mlock(2) by nothing. A fork's child
 * inherits it: libc looks into the stacks of threads that are not there.
 */
static int make_memory(void)
{
	void *p = mmap(NULL, sizeof(*mon.mem), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	if (syscall(SYS_mlock, p, sizeof(*mon.mem)))
		rnic_log(RNIC_LOG_INFO,
			 "unmap monitor: its memory is not locked: %s",
			 strerror(errno));
	mon.mem = p;
	return 0;
}

/* With all signals blocked: they are the application's. */
static int spawn(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, mon.mem->stack, sizeof(mon.mem->stack));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&mon.thread, &attr, monitor_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return ret ? -EAGAIN : 0;
}

static void free_all(void)
{
	rnic_watch_close();
	if (mon.kick >= 0)
		close(mon.kick);
	if (mon.mem)
		munmap(mon.mem, sizeof(*mon.mem));
	mon.mem = NULL;
	mon.kick = mon.uffd = -1;
}

static int start(void)
{
	int ret = rnic_watch_open();

	if (ret < 0)
		return ret;
	mon.uffd = ret;
	/* even, if the one before gave up; nobody else is here */
	rnic_add64_release(&mon.marking, rnic_load64_relaxed(&mon.marking) & 1);
	mon.kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rnic_store32_relaxed(&mon.stop, 0);
	ret = mon.kick < 0 ? -EMFILE : make_memory();
	if (!ret)
		ret = spawn();
	if (ret)
		free_all();
	return ret;
}

static void stop(void)
{
	uint64_t one = 1;

	/* release: see monitor_main() */
	rnic_store32_release(&mon.stop, 1);
	if (write(mon.kick, &one, sizeof(one)) < 0)
		rnic_log(RNIC_LOG_WARN, "unmap monitor: eventfd is broken");
	pthread_join(mon.thread, NULL);
	free_all();
}

/* Its events are counted a moment after they were read. */
static bool counted(uint64_t events)
{
	uint64_t end = now_ms() + TRIAL_MS;

	/* relaxed: the number is all that counts */
	while (rnic_load64_relaxed(&mon.events) < events && now_ms() < end)
		nap(NAP_US);
	return rnic_load64_relaxed(&mon.events) >= events;
}

/*
 * Gives up a page, moves it, unmaps it: each must be heard of; and the look
 * at a watch must tell one from none.
 */
static int trial(void)
{
	/* relaxed: nothing else is watched yet */
	uint64_t was = rnic_load64_relaxed(&mon.events);
	char *p = mmap(NULL, RNIC_PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *to = mmap(NULL, RNIC_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	bool ok = p != MAP_FAILED && to != MAP_FAILED;

	if (ok)
		errno = 0;
	if (ok)
		ok = rnic_watch_check((uintptr_t)p, RNIC_PAGE) == -ENOENT &&
		     !rnic_watch_arm((uintptr_t)p, RNIC_PAGE) &&
		     !rnic_watch_check((uintptr_t)p, RNIC_PAGE) &&
		     !madvise(p, RNIC_PAGE, MADV_DONTNEED) && counted(was + 1);
	if (ok)
		ok = mremap(p, RNIC_PAGE, RNIC_PAGE,
			    MREMAP_MAYMOVE | MREMAP_FIXED, to) == to &&
		     counted(was + 2);
	if (ok) {
		p = to;
		to = MAP_FAILED;
		ok = !rnic_watch_arm((uintptr_t)p, RNIC_PAGE);
		was = rnic_load64_relaxed(&mon.events);
	}
	if (p != MAP_FAILED && munmap(p, RNIC_PAGE))
		ok = false;
	if (to != MAP_FAILED && munmap(to, RNIC_PAGE))
		ok = false;
	if (ok && counted(was + 1))
		return 0;
	/* mappings were short: not for ever */
	return errno == ENOMEM ? -ENOMEM : -ENOTSUP;
}

int rnic_monitor_get(void)
{
	int ret = 0;

	pthread_mutex_lock(&mon.lock);
	if (!mon.users) {
		ret = start();
		if (!ret) {
			ret = trial();
			if (ret)
				stop();
		}
	}
	if (!ret)
		mon.users++;
	else
		rnic_log(RNIC_LOG_INFO,
			 "unmap monitor: userfaultfd does not do what it "
			 "needs: %s",
			 strerror(-ret));
	pthread_mutex_unlock(&mon.lock);
	return ret;
}

void rnic_monitor_put(void)
{
	pthread_mutex_lock(&mon.lock);
	if (!--mon.users)
		stop();
	pthread_mutex_unlock(&mon.lock);
}

/* ---- regions ---- */

uint64_t rnic_monitor_round(void)
{
	uint64_t cycle;

	/* the change, of a list or a slot, before the look; pairs with J3 */
	rnic_fence_full();
	/* J4: what it did with what has left is done */
	cycle = rnic_load64_acquire(&mon.cycle);
	return cycle & 1 ? cycle : 0;
}

bool rnic_monitor_over(uint64_t round)
{
	/* J4: likewise */
	return !round || rnic_load64_acquire(&mon.cycle) != round;
}

void rnic_monitor_pass(uint64_t round)
{
	for (unsigned int i = 0; !rnic_monitor_over(round); i++)
		pause_at(i);
}

/* The monitor does not walk lists as they were before the call. */
static void wait_outside(void)
{
	rnic_monitor_pass(rnic_monitor_round());
}

void rnic_monitor_wait(void)
{
	pthread_mutex_lock(&mon.lock);
	wait_outside();
	pthread_mutex_unlock(&mon.lock);
}

void rnic_monitor_settle(void)
{
	for (unsigned int i = 0; i < SETTLES && !rnic_watch_quiet(); i++)
		pause_at(i);
}

/* Puts @node, whose successor is @next, at the head of list @head. */
static void push(rnic_aptr *head, rnic_aptr *next, void *node)
{
	/* relaxed: mon.lock; J1 publishes it */
	rnic_ptr_store_release(next, rnic_ptr_load_relaxed(head));
	/* J1: the node; pairs with first_dev() and the like */
	rnic_ptr_store_release(head, node);
}

/* Adds @w to the lists. */
static void link_region(struct rnic_device *d, struct rnic_watched *w)
{
	rnic_aptr *head = &d->watched.regions;
	/* relaxed: lists change under mon.lock only */
	struct rnic_watched *first = rnic_ptr_load_relaxed(head);

	if (first)
		first->at = &w->next;
	else
		push(&mon.devs, &d->watched.next, &d->watched);
	w->at = head;
	push(head, &w->next, w);
}

void rnic_monitor_join(struct rnic_device *d, struct rnic_watched *w,
		       struct rnic_mpt *mpt)
{
	pthread_mutex_lock(&mon.lock);
	/* J2, before the monitor can find @w; J1 publishes it as well */
	rnic_ptr_store_release(&w->mpt, mpt);
	link_region(d, w);
	wait_outside();
	pthread_mutex_unlock(&mon.lock);
}

int rnic_monitor_join_try(struct rnic_device *d, struct rnic_watched *w,
			  struct rnic_mpt *mpt, uint64_t *round)
{
	if (pthread_mutex_trylock(&mon.lock))
		return -EAGAIN;
	/* J2, J1: as in rnic_monitor_join() */
	rnic_ptr_store_release(&w->mpt, mpt);
	link_region(d, w);
	*round = rnic_monitor_round();
	pthread_mutex_unlock(&mon.lock);
	return 0;
}

void rnic_monitor_live(struct rnic_watched *w, struct rnic_mpt *mpt)
{
	/* J2: the slot; pairs with the load in freeze_dev() */
	rnic_ptr_store_release(&w->mpt, mpt);
	/* Z4: the slot before its version is even; pairs with Z1 */
	rnic_fence_full();
}

/* Unlinks @w from its list; one of many leaves as fast as one of few. */
static void unlink_region(struct rnic_watched *w)
{
	/* relaxed: mon.lock */
	struct rnic_watched *next = rnic_ptr_load_relaxed(&w->next);

	if (next)
		next->at = w->at;
	/* J1: what follows was published before; pairs with next_region() */
	rnic_ptr_store_release(w->at, next);
}

static void unlink_dev(struct rnic_watched_dev *d)
{
	rnic_aptr *at = &mon.devs;
	struct rnic_watched_dev *x;

	/* relaxed: mon.lock */
	while ((x = rnic_ptr_load_relaxed(at)) != d)
		at = &x->next;
	/* release: as above */
	rnic_ptr_store_release(at, rnic_ptr_load_relaxed(&d->next));
}

void rnic_monitor_leave(struct rnic_device *d, struct rnic_watched *w)
{
	bool last;

	pthread_mutex_lock(&mon.lock);
	unlink_region(w);
	/* relaxed: mon.lock */
	last = !rnic_ptr_load_relaxed(&d->watched.regions);
	if (last)
		unlink_dev(&d->watched);
	wait_outside();
	/* a round that had frozen it did not find it to thaw it */
	if (last && rnic_monitor_frozen(d))
		rnic_add64_release(frozen_of(d), 1);
	pthread_mutex_unlock(&mon.lock);
}

/* ---- listeners ---- */

void rnic_monitor_listen(struct rnic_listener *l)
{
	pthread_mutex_lock(&mon.lock);
	push(&mon.listeners, &l->next, l);
	wait_outside();
	pthread_mutex_unlock(&mon.lock);
}

void rnic_monitor_unlisten(struct rnic_listener *l)
{
	rnic_aptr *at = &mon.listeners;
	struct rnic_listener *x;

	pthread_mutex_lock(&mon.lock);
	/* relaxed: mon.lock */
	while ((x = rnic_ptr_load_relaxed(at)) != l)
		at = &x->next;
	/* release: what follows was published before */
	rnic_ptr_store_release(at, rnic_ptr_load_relaxed(&l->next));
	wait_outside();
	pthread_mutex_unlock(&mon.lock);
}

uint64_t rnic_monitor_cycle(void)
{
	/* J5: acquire: what it marked before */
	return rnic_load64_acquire(&mon.marking);
}

/* ---- the rest ---- */

void rnic_monitor_stats(struct rnic_monitor_stats *s)
{
	/* relaxed: statistics */
	s->tid = rnic_load32_relaxed(&mon.tid);
	s->events = rnic_load64_relaxed(&mon.events);
	s->freezes = rnic_load64_relaxed(&mon.freezes);
	s->waits = rnic_load64_relaxed(&mon.waits);
	s->unfenced = rnic_load64_relaxed(&mon.unfenced);
}

void rnic_monitor_forked(void)
{
	rnic_watch_forked();
	pthread_mutex_init(&mon.lock, NULL);
	/* the thread's memory is not used any more, nor is it given back */
	if (mon.users)
		close(mon.kick);
	mon.users = 0;
	mon.mem = NULL;
	mon.kick = mon.uffd = -1;
	/* all of these: one thread, nobody to pair with */
	rnic_ptr_store_release(&mon.devs, NULL);
	rnic_ptr_store_release(&mon.listeners, NULL);
	rnic_store64_relaxed(&mon.cycle, 0);
	rnic_store64_relaxed(&mon.marking, 0);
	rnic_store32_relaxed(&mon.tid, 0);
}
