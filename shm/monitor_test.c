/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The unmap monitor: whom it waits for, what it tells, what its thread does
 * not do; and the counted watches.
 */
#include "shm/monitor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shm/reach_kit.h"
#include "shm/pin.h"
#include "shm/trap_kit.h"
#include "shm/vma.h"
#include "shm/watch.h"

enum {
	LIMIT_S = 60, /* the whole program ends by then */
	PAGE = RNIC_PAGE,
	LEN = 8 * PAGE, /* bytes of a memory */
	RW = RNIC_REMOTE_READ | RNIC_REMOTE_WRITE | RNIC_MR_WATCHED,
};

/* ---- what the thread must not call ---- */

static __thread uint32_t self; /* tid */
static uint32_t forbidden; /* tid that may not either, for the trap's test */

void kit_trap(void)
{
	struct rnic_monitor_stats s;

	rnic_monitor_stats(&s);
	if (!self)
		self = (uint32_t)syscall(SYS_gettid);
	if (s.tid == self || forbidden == self)
		abort();
}

static void forbid_this_thread(void)
{
	forbidden = self = (uint32_t)syscall(SYS_gettid);
}

/* ---- a watched memory ---- */

/* What the monitor has told. */
struct told {
	struct rnic_watched w;	 /* first */
	rnic_a64 start;		 /* of the last event */
	rnic_a64 end;		 /* likewise */
	rnic_a64 unmapped;	 /* events of memory that left */
	rnic_a64 given_up;	 /* and that stayed */
	rnic_a64 moved;		 /* events of @page, which left */
	rnic_a64 page;		 /* a page's address */
	rnic_a64 rounds;	 /* that were told to an end */
	struct rnic_device *dev; /* must be frozen meanwhile */
};

static void gone(struct rnic_watched *w, uint64_t start, uint64_t end,
		 bool unmapped)
{
	struct told *t = (struct told *)w;

	if (!rnic_monitor_frozen(t->dev))
		abort();
	rnic_store64_relaxed(&t->start, start);
	rnic_store64_relaxed(&t->end, end);
	rnic_add64_relaxed(unmapped ? &t->unmapped : &t->given_up, 1);
	if (unmapped && start == rnic_load64_relaxed(&t->page))
		rnic_add64_relaxed(&t->moved, 1);
}

/* rnic_told_fn. */
static void told_all(struct rnic_watched *w)
{
	struct told *t = (struct told *)w;

	if (!rnic_monitor_frozen(t->dev))
		abort();
	rnic_add64_relaxed(&t->rounds, 1);
}

/* An owner, a reader of it, memory with a key that is watched. */
struct bed {
	struct kit_owner o;  /* device */
	struct kit_reader d; /* reads and writes it */
	struct kit_mem m;    /* LEN private bytes */
	struct told t;	     /* of @m */
};

static int setup(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	assert_int_equal(rnic_monitor_get(), 0);
	kit_owner_open(&b->o, true);
	assert_int_equal(kit_reader_open(&b->d, &b->o.addr), 0);
	b->m = kit_private(LEN);
	b->t.w.gone = gone;
	b->t.dev = &b->o.dev;
	kit_publish(&b->o, &b->m, RW);
	rnic_monitor_join(&b->o.dev, &b->t.w, &b->o.mpt.mpt[b->m.slot]);
	assert_int_equal(rnic_watch_get((uintptr_t)b->m.p, LEN), 0);
	assert_int_equal(rnic_watch_arm((uintptr_t)b->m.p, LEN), 0);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	rnic_monitor_leave(&b->o.dev, &b->t.w);
	rnic_watch_put((uintptr_t)b->m.p, LEN);
	assert_int_equal(rnic_watch_ranges(), 0);
	munmap(b->m.p, LEN);
	kit_reader_close(&b->d);
	kit_owner_close(&b->o);
	rnic_monitor_put();
	free(b);
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void nap(unsigned int ms)
{
	const struct timespec ts = { .tv_nsec = (long)ms * 1000000 };

	nanosleep(&ts, NULL);
}

/* Waits until the monitor has done all that was read before. */
static void settle(struct bed *b)
{
	while (rnic_monitor_frozen(&b->o.dev))
		nap(1);
}

static void expect_event(struct bed *b, size_t off, size_t len)
{
	settle(b);
	assert_int_equal(rnic_load64_relaxed(&b->t.start),
			 (uintptr_t)b->m.p + off);
	assert_int_equal(rnic_load64_relaxed(&b->t.end),
			 (uintptr_t)b->m.p + off + len);
}

/* ---- what it tells ---- */

static void each_way_out_is_told(void **state)
{
	struct bed *b = *state;
	char *p = b->m.p;
	void *q, *q2;

	rnic_store64_relaxed(&b->t.page, (uintptr_t)p + 3 * PAGE);
	assert_int_equal(madvise(p, PAGE, MADV_DONTNEED), 0);
	expect_event(b, 0, PAGE);
	assert_int_equal(rnic_load64_relaxed(&b->t.given_up), 1);
	assert_int_equal(munmap(p + PAGE, 2 * PAGE), 0);
	expect_event(b, PAGE, 2 * PAGE);
	assert_int_equal(rnic_load64_relaxed(&b->t.unmapped), 1);
	assert_true(mmap(p + 4 * PAGE, PAGE, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) == p + 4 * PAGE);
	expect_event(b, 4 * PAGE, PAGE);
	assert_int_equal(rnic_load64_relaxed(&b->t.unmapped), 2);
	q = mremap(p + 6 * PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	assert_true(q != MAP_FAILED && q != p + 6 * PAGE);
	settle(b);
	assert_true(rnic_load64_relaxed(&b->t.unmapped) >= 3);
	/* the pages go, the mapping stays: there is no other event */
	q2 = mremap(p + 3 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP,
		    NULL);
	assert_true(q2 != MAP_FAILED);
	settle(b);
	assert_int_equal(rnic_load64_relaxed(&b->t.moved), 1);
	assert_int_equal(munmap(q2, PAGE), 0);
	/* it is nobody's there */
	q = mremap(q, 2 * PAGE, PAGE, 0);
	assert_int_equal(munmap(q, PAGE), 0);
	settle(b);
	assert_int_equal(munmap(p + 7 * PAGE, PAGE), 0);
	expect_event(b, 7 * PAGE, PAGE);
}

/* A device whose regions have left is not frozen, nor waited for. */
static void who_has_left_is_told_nothing(void **state)
{
	struct bed *b = *state;
	uint64_t version =
		rnic_load64_relaxed(&b->o.mpt.mpt[b->m.slot].version);

	rnic_monitor_leave(&b->o.dev, &b->t.w);
	rnic_enter(&b->d.x.target);
	assert_int_equal(munmap(b->m.p, PAGE), 0);
	rnic_leave(&b->d.x.target);
	assert_int_equal(rnic_load64_relaxed(&b->t.unmapped), 0);
	assert_int_equal(rnic_load64_relaxed(&b->o.mpt.mpt[b->m.slot].version),
			 version);
	rnic_monitor_join(&b->o.dev, &b->t.w, &b->o.mpt.mpt[b->m.slot]);
}

/* ---- readers ---- */

/* munmap() in a thread of its own. */
struct unmapper {
	pthread_t thread;
	char *p;       /* a page */
	rnic_a32 done; /* 1: it has returned */
};

static void *unmap_main(void *arg)
{
	struct unmapper *u = arg;

	munmap(u->p, PAGE);
	rnic_store32_release(&u->done, 1);
	return NULL;
}

static void unmap_begin(struct unmapper *u, char *p)
{
	*u = (struct unmapper){ .p = p };
	assert_int_equal(pthread_create(&u->thread, NULL, unmap_main, u), 0);
}

/* Waits until the monitor has frozen @d: munmap is held up. */
static void until_frozen(const struct rnic_device *d)
{
	uint64_t end = now_ms() + 5000;

	while (!rnic_monitor_frozen(d)) {
		assert_true(now_ms() < end);
		nap(1);
	}
}

/* What @d finds of the second page of @m. */
static int look_up_by(struct kit_reader *d, const struct kit_mem *m,
		      struct rnic_xlat *x)
{
	struct rnic_want w = { .key = m->key,
			       .addr = (uintptr_t)m->p + PAGE,
			       .len = 8,
			       .rights = RNIC_REMOTE_READ };
	int ret;

	rnic_enter(&d->x.target);
	ret = rnic_resolve(&d->c, &d->x.target, &w, x);
	rnic_leave(&d->x.target);
	return ret;
}

static int look_up(struct bed *b, struct rnic_xlat *x)
{
	return look_up_by(&b->d, &b->m, x);
}

/* ---- slots that come and go ---- */

/* Another key of the same memory, which is not live yet. */
static void suspended(struct bed *b, struct kit_mem *m)
{
	*m = b->m;
	kit_publish(&b->o, m, RW);
	rnic_mpt_suspend(&b->o.mpt, m->slot);
}

static uint64_t version_of(struct bed *b, uint32_t slot)
{
	return rnic_load64_relaxed(&b->o.mpt.mpt[slot].version);
}

/* Its version is raised from the moment it has a slot until it has none. */
static void a_slot_is_changed_while_it_is_known(void **state)
{
	struct bed *b = *state;
	struct told t = { .w.told = told_all, .dev = &b->o.dev };
	struct kit_mem m;
	uint64_t v;

	suspended(b, &m);
	rnic_monitor_join(&b->o.dev, &t.w, NULL);
	v = version_of(b, m.slot);
	assert_int_equal(madvise(b->m.p, PAGE, MADV_DONTNEED), 0);
	settle(b);
	assert_int_equal(version_of(b, m.slot), v);
	rnic_monitor_live(&t.w, &b->o.mpt.mpt[m.slot]);
	rnic_mpt_show(&b->o.mpt, m.slot);
	assert_int_equal(madvise(b->m.p, PAGE, MADV_DONTNEED), 0);
	settle(b);
	assert_int_equal(version_of(b, m.slot), v + 3);
	rnic_mpt_suspend(&b->o.mpt, m.slot);
	rnic_monitor_live(&t.w, NULL);
	assert_int_equal(rnic_monitor_round(), 0);
	assert_int_equal(madvise(b->m.p, PAGE, MADV_DONTNEED), 0);
	settle(b);
	assert_int_equal(version_of(b, m.slot), v + 4);
	rnic_monitor_wait();
	assert_int_equal(rnic_load64_relaxed(&t.rounds), 3);
	rnic_monitor_leave(&b->o.dev, &t.w);
}

/*
 * A slot that comes while the monitor is at work is not looked up before that
 * is done; who joins then may have none.
 */
static void contract_R12_a_slot_comes_in_a_round(void **state)
{
	struct bed *b = *state;
	struct told t = { .w.told = told_all, .dev = &b->o.dev }, late = t;
	struct kit_reader other;
	struct kit_mem m;
	struct rnic_xlat x;
	struct unmapper u;
	uint64_t round;

	assert_int_equal(kit_reader_open(&other, &b->o.addr), 0);
	suspended(b, &m);
	rnic_monitor_join(&b->o.dev, &t.w, NULL);
	rnic_enter(&b->d.x.target);
	unmap_begin(&u, b->m.p);
	until_frozen(&b->o.dev);
	rnic_monitor_live(&t.w, &b->o.mpt.mpt[m.slot]);
	rnic_mpt_show(&b->o.mpt, m.slot);
	assert_int_equal(look_up_by(&other, &m, &x), -EAGAIN);
	assert_int_equal(
		rnic_monitor_join_try(&b->o.dev, &late.w, NULL, &round), 0);
	assert_false(rnic_monitor_over(round));
	assert_true(rnic_monitor_round() == round);
	rnic_leave(&b->d.x.target);
	pthread_join(u.thread, NULL);
	rnic_monitor_pass(round);
	assert_true(rnic_monitor_over(round));
	assert_int_equal(look_up_by(&other, &m, &x), 0);
	rnic_monitor_leave(&b->o.dev, &late.w);
	rnic_monitor_leave(&b->o.dev, &t.w);
	kit_reader_close(&other);
}

/* ---- who is inside ---- */

/* Until who is inside has left, the memory is not gone; nobody enters anew. */
static void contract_R12_readers_are_waited_for(void **state)
{
	struct bed *b = *state;
	struct rnic_xlat x;
	struct unmapper u;

	/* kept: the next lookup is a hit */
	assert_int_equal(look_up(b, &x), 0);
	rnic_enter(&b->d.x.target);
	unmap_begin(&u, b->m.p);
	until_frozen(&b->o.dev);
	nap(20);
	assert_int_equal(rnic_load32_acquire(&u.done), 0);
	rnic_leave(&b->d.x.target);
	pthread_join(u.thread, NULL);
	settle(b);
	assert_int_equal(look_up(b, &x), 0);
}

/* What was kept is not used while the device is frozen, nor looked up. */
static void contract_R12_nothing_is_translated(void **state)
{
	struct bed *b = *state;
	struct kit_reader other;
	struct rnic_xlat x;
	struct unmapper u;

	assert_int_equal(kit_reader_open(&other, &b->o.addr), 0);
	assert_int_equal(look_up(b, &x), 0);
	rnic_enter(&other.x.target);
	unmap_begin(&u, b->m.p);
	until_frozen(&b->o.dev);
	nap(5);
	for (int i = 0; i < 3; i++)
		assert_int_equal(look_up(b, &x), -EAGAIN);
	rnic_leave(&other.x.target);
	pthread_join(u.thread, NULL);
	settle(b);
	assert_int_equal(look_up(b, &x), 0);
	kit_reader_close(&other);
}

/* A child that reads, goes inside, says so, and stays. */
static pid_t sleeper(const struct rnic_addr *addr)
{
	struct kit_reader d;
	int fds[2];
	pid_t pid;
	char c = 0;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (kit_reader_open(&d, addr))
			_exit(1);
		rnic_enter(&d.x.target);
		if (write(fds[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	close(fds[1]);
	return pid;
}

/* A stopped one holds it up; a dead one does not. */
static void contract_R12_stopped_and_dead(void **state)
{
	struct bed *b = *state;
	pid_t pid = sleeper(&b->o.addr);
	uint64_t killed;
	struct unmapper u;

	kill(pid, SIGSTOP);
	unmap_begin(&u, b->m.p);
	until_frozen(&b->o.dev);
	nap(200);
	assert_int_equal(rnic_load32_acquire(&u.done), 0);
	killed = now_ms();
	kill(pid, SIGKILL);
	pthread_join(u.thread, NULL);
	assert_true(now_ms() < killed + 5000);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* the next one does not wait for it at all */
	assert_int_equal(munmap(b->m.p + PAGE, PAGE), 0);
}

/* ---- the thread ---- */

/* It has every signal blocked that can be. */
static void its_signals_are_blocked(void **state)
{
	struct rnic_monitor_stats s;
	unsigned long long blocked = 0;
	char path[64], line[256];
	FILE *f;

	(void)state;
	rnic_monitor_stats(&s);
	assert_true(s.tid != 0);
	snprintf(path, sizeof(path), "/proc/self/task/%u/status", s.tid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "SigBlk:", 7))
			blocked = strtoull(line + 7, NULL, 16);
	fclose(f);
	/* KILL and STOP cannot be; libc keeps two for itself */
	assert_int_equal(~blocked & 0xfffffffe7ffbfeffULL, 0);
}

/* A lock that the thread which unmaps holds, as an allocator does. */
static void many_unmap_at_once(void **state)
{
	struct bed *b = *state;
	struct unmapper u[LEN / PAGE];
	struct rnic_monitor_stats s;

	for (int i = 0; i < LEN / PAGE; i++)
		unmap_begin(&u[i], b->m.p + i * PAGE);
	for (int i = 0; i < LEN / PAGE; i++)
		pthread_join(u[i].thread, NULL);
	settle(b);
	assert_int_equal(rnic_load64_relaxed(&b->t.unmapped), LEN / PAGE);
	rnic_monitor_stats(&s);
	assert_int_equal(s.unfenced, 0);
}

/* The trap of this test works: else it would prove nothing. */
static void the_trap_works(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (!KIT_TRAPS)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		signal(SIGABRT, SIG_DFL);
		forbid_this_thread();
		/* libc allocates: a compiler may leave out what we do */
		setenv("MONITOR_TEST_TRAP", "1", 1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* ---- listeners ---- */

/* What a listener was told last. */
struct ear {
	struct rnic_listener l; /* first */
	rnic_a64 calls;		/* how often */
	rnic_a64 start;		/* of the last event */
	rnic_a64 end;		/* likewise */
	rnic_a32 what;		/* likewise */
	rnic_a32 even;		/* 1: the number was, in one of them */
};

static void heard(struct rnic_listener *l, uint64_t start, uint64_t end,
		  enum rnic_gone what)
{
	struct ear *e = (struct ear *)l;

	rnic_store64_relaxed(&e->start, start);
	rnic_store64_relaxed(&e->end, end);
	rnic_store32_relaxed(&e->what, what);
	if (!(rnic_monitor_cycle() & 1))
		rnic_store32_relaxed(&e->even, 1);
	rnic_add64_relaxed(&e->calls, 1);
}

/* The next event has been told of: it was of @what. */
static void expect_heard(struct ear *e, uint64_t calls, enum rnic_gone what)
{
	uint64_t end = now_ms() + 5000;

	while (rnic_monitor_cycle() & 1)
		nap(1);
	assert_true(now_ms() < end);
	assert_int_equal(rnic_load64_relaxed(&e->calls), calls);
	assert_int_equal(rnic_load32_relaxed(&e->what), what);
	assert_int_equal(rnic_load32_relaxed(&e->even), 0);
}

static void listeners_are_told_what_became(void **state)
{
	struct ear e = { .l.gone = heard };
	struct bed *b = *state;
	uint64_t cycle = rnic_monitor_cycle();
	char *p = b->m.p, *q;

	rnic_monitor_listen(&e.l);
	assert_int_equal(munmap(p, PAGE), 0);
	expect_heard(&e, 1, RNIC_GONE_UNMAPPED);
	assert_int_equal(rnic_load64_relaxed(&e.start), (uintptr_t)p);
	assert_int_equal(rnic_load64_relaxed(&e.end), (uintptr_t)p + PAGE);
	assert_int_equal(rnic_monitor_cycle(), cycle + 2);
	assert_int_equal(madvise(p + PAGE, PAGE, MADV_DONTNEED), 0);
	expect_heard(&e, 2, RNIC_GONE_DISCARDED);
	q = mremap(p + 2 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP,
		   NULL);
	assert_true(q != MAP_FAILED);
	/* where it was, then where it is: there the watch has ended */
	expect_heard(&e, 4, RNIC_GONE_DISCARDED);
	assert_int_equal(rnic_load64_relaxed(&e.start), (uintptr_t)q);
	assert_int_equal(rnic_watch_check((uintptr_t)q, PAGE), -ENOENT);
	rnic_monitor_unlisten(&e.l);
	assert_int_equal(munmap(p + 3 * PAGE, PAGE), 0);
	settle(b);
	assert_int_equal(rnic_load64_relaxed(&e.calls), 4);
	munmap(q, PAGE);
}

static rnic_a32 passed; /* 1: it has returned */

static void *pass_main(void *arg)
{
	if (arg)
		rnic_monitor_unlisten(arg);
	else
		rnic_monitor_pass(rnic_monitor_round());
	rnic_store32_release(&passed, 1);
	return NULL;
}

/* A walk that has begun is waited for; none, and nobody waits. */
static void who_passes_waits_for_the_walk(void **state)
{
	struct ear e = { .l.gone = heard };
	struct bed *b = *state;
	struct unmapper u;
	pthread_t t[2];

	rnic_monitor_pass(rnic_monitor_round());
	rnic_monitor_listen(&e.l);
	rnic_store32_relaxed(&passed, 0);
	rnic_enter(&b->d.x.target);
	unmap_begin(&u, b->m.p);
	until_frozen(&b->o.dev);
	assert_true(rnic_monitor_round());
	/* nothing is read yet: hits go on */
	assert_int_equal(rnic_monitor_cycle() & 1, 0);
	assert_int_equal(pthread_create(&t[0], NULL, pass_main, NULL), 0);
	assert_int_equal(pthread_create(&t[1], NULL, pass_main, &e.l), 0);
	nap(20);
	assert_int_equal(rnic_load32_acquire(&passed), 0);
	rnic_leave(&b->d.x.target);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	pthread_join(u.thread, NULL);
	/* it had left the list before the event was read, or after */
	assert_true(rnic_load64_relaxed(&e.calls) <= 1);
}

/* ---- watches ---- */

/* Events that a page's unmapping caused. */
static bool is_watched(struct bed *b, size_t page)
{
	uint64_t was = rnic_load64_relaxed(&b->t.unmapped);

	munmap(b->m.p + page * PAGE, PAGE);
	settle(b);
	return rnic_load64_relaxed(&b->t.unmapped) > was;
}

/* They do not nest in the kernel; here they do. */
static void watches_are_counted(void **state)
{
	struct bed *b = *state;
	uint64_t p = (uintptr_t)b->m.p;

	assert_int_equal(rnic_watch_get(p + PAGE, 4 * PAGE), 0);
	assert_int_equal(rnic_watch_get(p + 3 * PAGE, 1), 0);
	assert_int_equal(rnic_watch_ranges(), 5);
	rnic_watch_put(p, LEN);
	assert_int_equal(rnic_watch_ranges(), 3);
	assert_false(is_watched(b, 0));
	assert_true(is_watched(b, 1));
	rnic_watch_put(p + PAGE, 4 * PAGE);
	assert_int_equal(rnic_watch_ranges(), 1);
	assert_false(is_watched(b, 2));
	assert_true(is_watched(b, 3));
	assert_false(is_watched(b, 4));
	rnic_watch_put(p + 3 * PAGE, 1);
	assert_int_equal(rnic_watch_ranges(), 0);
	assert_int_equal(rnic_watch_get(p, LEN), 0);
	/* over holes, and what comes later is not watched until it is armed */
	assert_int_equal(rnic_watch_arm(p, LEN), 0);
	assert_true(mmap(b->m.p, PAGE, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			 0) == b->m.p);
	assert_false(is_watched(b, 0));
	assert_true(is_watched(b, 5));
}

/* ---- the look at a watch ---- */

static void a_look_tells_what_is_watched(void **state)
{
	struct bed *b = *state;
	uint64_t p = (uintptr_t)b->m.p;

	assert_int_equal(rnic_watch_check(p, LEN), 0);
	assert_int_equal(rnic_watch_check(p + 5, 1), 0);
	/* more than is watched, and nothing that is */
	assert_int_equal(rnic_watch_check(p, LEN + PAGE), -ENOENT);
	assert_int_equal(rnic_watch_check((uintptr_t)state, 1), -ENOENT);
	/* two mappings, each of which is */
	assert_int_equal(mprotect(b->m.p + 4 * PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(rnic_watch_check(p, LEN), -ENOENT);
	assert_int_equal(rnic_watch_check(p, 4 * PAGE), 0);
	assert_int_equal(rnic_watch_check(p + 4 * PAGE, PAGE), 0);
	/* what is mapped in a hole is not */
	assert_int_equal(munmap(b->m.p, PAGE), 0);
	settle(b);
	assert_int_equal(rnic_watch_check(p, PAGE), -ENOENT);
	assert_true(mmap(b->m.p, PAGE, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			 0) == b->m.p);
	assert_int_equal(rnic_watch_check(p, PAGE), -ENOENT);
	assert_int_equal(rnic_watch_arm(p, PAGE), 0);
	assert_int_equal(rnic_watch_check(p, PAGE), 0);
}

/* It changes no byte, and no page is made, of a file either. */
static void a_look_touches_nothing(void **state)
{
	struct bed *b = *state;
	int fd = memfd_create("look", MFD_CLOEXEC);
	unsigned char there[LEN / PAGE];
	char *f;

	assert_int_equal(ftruncate(fd, LEN), 0);
	f = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(f != MAP_FAILED);
	memset(b->m.p, 3, LEN);
	assert_int_equal(rnic_watch_get((uintptr_t)f, LEN), 0);
	assert_int_equal(rnic_watch_arm((uintptr_t)f, LEN), 0);
	assert_int_equal(rnic_watch_check((uintptr_t)f, LEN), 0);
	assert_int_equal(rnic_watch_check((uintptr_t)b->m.p, LEN), 0);
	assert_int_equal(mincore(f, LEN, there), 0);
	for (size_t i = 0; i < LEN; i++)
		assert_int_equal(b->m.p[i], 3);
	for (size_t i = 0; i < LEN / PAGE; i++)
		assert_int_equal(there[i] & 1, 0);
	rnic_watch_put((uintptr_t)f, LEN);
	munmap(f, LEN);
	close(fd);
}

/* From before the address is free until the event was read. */
static void a_change_under_way_is_seen(void **state)
{
	struct bed *b = *state;
	uint64_t p = (uintptr_t)b->m.p;
	struct unmapper u;

	rnic_enter(&b->d.x.target);
	unmap_begin(&u, b->m.p);
	until_frozen(&b->o.dev);
	assert_int_equal(rnic_watch_check(p + 4 * PAGE, PAGE), -EAGAIN);
	assert_int_equal(rnic_watch_check(p, PAGE), -EAGAIN);
	rnic_leave(&b->d.x.target);
	pthread_join(u.thread, NULL);
	settle(b);
	assert_int_equal(rnic_watch_check(p + 4 * PAGE, PAGE), 0);
	assert_int_equal(rnic_watch_check(p, PAGE), -ENOENT);
}

/* ---- how many mappings they cause ---- */

/* And pins take from the same quarter. */
static void contract_R4_the_mappings_are_limited(void **state)
{
	struct bed *b = *state;
	char *m = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t p = (uintptr_t)m;

	(void)b;
	assert_true(m != MAP_FAILED);
	assert_int_equal(rnic_watch_mappings(), 2);
	rnic_vma_limit(3 * 2);
	assert_int_equal(rnic_watch_get(p, PAGE), 0);
	assert_int_equal(rnic_watch_get(p + 4 * PAGE, PAGE), 0);
	assert_int_equal(rnic_watch_mappings(), 3 * 2);
	assert_int_equal(rnic_watch_get(p + 8 * PAGE, PAGE), -ENOSPC);
	assert_int_equal(rnic_watch_ranges(), 3);
	assert_int_equal(rnic_pin(m + 8 * PAGE, PAGE, RNIC_PIN_REQUIRE),
			 -ENOSPC);
	/* what touches one makes none more, what joins two makes one less */
	assert_int_equal(rnic_watch_get(p + PAGE, PAGE), 0);
	assert_int_equal(rnic_watch_mappings(), 3 * 2);
	assert_int_equal(rnic_watch_get(p, 4 * PAGE), 0);
	assert_int_equal(rnic_watch_mappings(), 2 * 2);
	assert_int_equal(rnic_pin(m + 8 * PAGE, PAGE, RNIC_PIN_REQUIRE), 1);
	assert_int_equal(rnic_watch_get(p + 12 * PAGE, PAGE), -ENOSPC);
	rnic_unpin(m + 8 * PAGE, PAGE);
	assert_int_equal(rnic_watch_get(p + 8 * PAGE, PAGE), 0);
	rnic_watch_put(p, 4 * PAGE);
	assert_int_equal(rnic_watch_mappings(), 4 * 2);
	rnic_watch_put(p, PAGE);
	rnic_watch_put(p + PAGE, PAGE);
	rnic_watch_put(p + 4 * PAGE, PAGE);
	rnic_watch_put(p + 8 * PAGE, PAGE);
	assert_int_equal(rnic_watch_mappings(), 2);
	rnic_vma_limit(0);
	munmap(m, 16 * PAGE);
}

/*
 * A child made past the handlers of fork holds the descriptor: nothing of ours
 * is watched any more when the last user has left, or munmap() would wait for
 * as long as the child lives.
 */
static void an_inherited_descriptor_watches_nothing(void **state)
{
	struct bed *b = *state;
	pid_t pid;

	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
	assert_true(pid >= 0);
	if (!pid)
		for (;;)
			pause();
	rnic_monitor_leave(&b->o.dev, &b->t.w);
	rnic_watch_put((uintptr_t)b->m.p, LEN);
	rnic_monitor_put();
	assert_int_equal(munmap(b->m.p, PAGE), 0);
	assert_int_equal(rnic_monitor_get(), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	rnic_monitor_join(&b->o.dev, &b->t.w, NULL);
	assert_int_equal(rnic_watch_get((uintptr_t)b->m.p, LEN), 0);
}

static void it_does_not_run(void **state)
{
	struct rnic_monitor_stats s;

	(void)state;
	rnic_monitor_stats(&s);
	assert_int_equal(s.tid, 0);
	assert_int_equal(rnic_watch_get((uintptr_t)state, 8), -ENODEV);
	assert_int_equal(rnic_watch_arm((uintptr_t)state, 8), -ENODEV);
	assert_int_equal(rnic_watch_check((uintptr_t)state, 8), -ENODEV);
	assert_int_equal(rnic_monitor_cycle() & 1, 0);
	rnic_monitor_pass(rnic_monitor_round());
}

/* ThreadSanitizer lets a child of a process with threads have none. */
#if defined(__SANITIZE_THREAD__)
enum { THREADS_AFTER_FORK = 0 };
#else
enum { THREADS_AFTER_FORK = 1 };
#endif

/* A child has no monitor, may have one, and does not disturb its parent's. */
static void fork_leaves_it_alone(void **state)
{
	struct bed *b = *state;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		rnic_monitor_forked();
		if (munmap(b->m.p, LEN) || rnic_watch_ranges())
			_exit(1);
		if (THREADS_AFTER_FORK && rnic_monitor_get())
			_exit(2);
		if (THREADS_AFTER_FORK)
			rnic_monitor_put();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(rnic_load64_relaxed(&b->t.unmapped), 0);
	assert_true(is_watched(b, 1));
}

/* The number of the first descriptor that is a userfaultfd, or -1. */
static int find_uffd(void)
{
	char path[32], name[64];

	for (int fd = 3; fd < 256; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, name, sizeof(name) - 1);
		name[n < 0 ? 0 : n] = 0;
		if (strstr(name, "[userfaultfd]"))
			return fd;
	}
	return -1;
}

/* As closefrom(3) of a program that knows nothing of us. */
static int descriptor_is_closed(char *p)
{
	struct rnic_monitor_stats s = { .tid = 1 };
	struct ear e = { .l.gone = heard };

	rnic_monitor_forked();
	if (rnic_monitor_get() || rnic_watch_get((uintptr_t)p, PAGE) ||
	    rnic_watch_arm((uintptr_t)p, PAGE))
		return 1;
	rnic_monitor_listen(&e.l);
	if (close(find_uffd()))
		return 2;
	/* the kernel is not asked any more */
	if (rnic_watch_check((uintptr_t)p, PAGE) != -ENODEV)
		return 3;
	if (munmap(p, PAGE))
		return 4;
	for (int i = 0; i < 5000 && s.tid; i++) {
		nap(1);
		rnic_monitor_stats(&s);
	}
	/* all is old, nothing is kept from now on, and no thread spins */
	if (s.tid || rnic_load32_relaxed(&e.what) != RNIC_GONE_LOST ||
	    !(rnic_monitor_cycle() & 1))
		return 5;
	rnic_monitor_unlisten(&e.l);
	rnic_watch_put((uintptr_t)p, PAGE);
	rnic_monitor_put();
	/* the next one is well */
	if (rnic_monitor_get())
		return 6;
	for (int i = 0; i < 5000 && rnic_monitor_cycle() & 1; i++)
		nap(1);
	if (rnic_monitor_cycle() & 1)
		return 7;
	rnic_monitor_put();
	return 0;
}

static void contract_R12_a_closed_descriptor_ends_all(void **state)
{
	struct bed *b = *state;
	int status;
	pid_t pid;

	if (!THREADS_AFTER_FORK)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(descriptor_is_closed(b->m.p));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define WITH(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_does_not_run),
		WITH(each_way_out_is_told),
		WITH(who_has_left_is_told_nothing),
		WITH(a_slot_is_changed_while_it_is_known),
		WITH(contract_R12_a_slot_comes_in_a_round),
		WITH(contract_R12_readers_are_waited_for),
		WITH(contract_R12_nothing_is_translated),
		WITH(contract_R12_stopped_and_dead),
		WITH(its_signals_are_blocked),
		WITH(many_unmap_at_once),
		WITH(the_trap_works),
		WITH(listeners_are_told_what_became),
		WITH(who_passes_waits_for_the_walk),
		WITH(watches_are_counted),
		WITH(a_look_tells_what_is_watched),
		WITH(a_look_touches_nothing),
		WITH(a_change_under_way_is_seen),
		WITH(contract_R4_the_mappings_are_limited),
		WITH(fork_leaves_it_alone),
		WITH(contract_R12_a_closed_descriptor_ends_all),
		WITH(an_inherited_descriptor_watches_nothing),
		cmocka_unit_test(it_does_not_run),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
