/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Memory that leaves the address space under a live key (contract R12): an
 * owner and initiators in processes of their own. The monitor's rules are in
 * shm/monitor_test.c.
 */
#define _GNU_SOURCE
#include "odp_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw_kit.h"

enum { STREAMERS = 2 };

/* ---- R12: on demand --------------------------------------------------------- */

static void replace_often(struct odp_side *d)
{
	unsigned long n = th_rounds(400);

	for (unsigned long i = 0; i < n; i++) {
		unsigned char *p = d->p + i % ODP_PAGES * ODP_PAGE;

		if (i % 8 == 0)
			odp_written(d);
		odp_watch_sentinel(d, p, odp_replace(d, p, ODP_PAGE));
	}
	odp_written(d);
	th_check(odp_stats(d).pages_invalidated > 0);
}

static void contract_R12_replaced(struct th_self *self)
{
	struct odp_side d;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : odp_fresh(ODP_LEN), RK_RW);
	if (self->rank)
		odp_stream(&d);
	else
		replace_often(&d);
	odp_over(&d);
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* A file that peers have mapped is left, when its mapping is. */
static unsigned char *map_file(void)
{
	int fd = memfd_create("odp", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *p;

	th_check(fd >= 0);
	th_eq(ftruncate(fd, ODP_LEN), 0);
	th_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	p = quiet_map(ODP_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	th_check(p != MAP_FAILED);
	return p;
}

static void contract_R12_next_file(struct th_self *self)
{
	unsigned char buf[ODP_PAGE];
	struct odp_side d;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : map_file(), RK_RW);
	for (int i = 1; i < 8; i++) {
		if (self->rank) {
			memset(buf, i, ODP_PAGE);
			odp_put_done(&d, buf, ODP_PAGE, 3 * ODP_PAGE);
		}
		th_barrier_progress(self, &d.s, "written");
		th_settle(&d.s);
		if (!self->rank) {
			th_verify_byte(d.p + 3 * ODP_PAGE, ODP_PAGE,
				       (unsigned char)i);
			odp_replace(&d, d.p, ODP_LEN);
		}
		th_barrier_progress(self, &d.s, "replaced");
	}
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* What each kind of call gives up is absent, and comes again or does not. */
static void give_up(struct odp_side *d, unsigned char *to)
{
	uint64_t was = odp_stats(d).pages_invalidated;
	void *q = mmap(NULL, ODP_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	th_eq(madvise(d->p, ODP_PAGE, MADV_DONTNEED), 0);
	th_check(mremap(d->p + ODP_PAGE, ODP_PAGE, ODP_PAGE,
			MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
	memcpy(&to, &q, sizeof(to));
	memset(to, ODP_SENTINEL, ODP_PAGE);
	th_check(mmap(d->p + 2 * ODP_PAGE, ODP_PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		      0) == d->p + 2 * ODP_PAGE);
	th_eq(munmap(d->p + 3 * ODP_PAGE, ODP_PAGE), 0);
	odp_invalidated(d, was + 4);
	th_barrier_progress(d->self, &d->s, "given up");
	th_barrier_progress(d->self, &d->s, "tried");
	th_settle(&d->s);
	/* it went elsewhere: nobody has a key for it there */
	th_verify_byte(to, ODP_PAGE, ODP_SENTINEL);
	th_eq(munmap(to, ODP_PAGE), 0);
}

static void contract_R12_given_up(struct th_self *self)
{
	unsigned char buf[4 * ODP_PAGE], got[ODP_PAGE];
	struct odp_side d;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : odp_fresh(ODP_LEN), RK_RW);
	memset(buf, 1, sizeof(buf));
	if (self->rank)
		odp_put_done(&d, buf, sizeof(buf), 0);
	th_barrier_progress(self, &d.s, "there");
	if (!self->rank) {
		give_up(&d, NULL);
	} else {
		th_barrier_progress(self, &d.s, "given up");
		odp_get_done(&d, got, ODP_PAGE, 0);
		th_verify_byte(got, ODP_PAGE, 0);
		odp_refused(&d, buf, 8, ODP_PAGE, 0);
		odp_get_done(&d, got, ODP_PAGE, 2 * ODP_PAGE);
		th_verify_byte(got, ODP_PAGE, 0);
		odp_refused(&d, buf, 8, 3 * ODP_PAGE, 0);
		th_barrier_progress(self, &d.s, "tried");
	}
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* ---- R12: pinned ------------------------------------------------------------ */

/*
 * A region of its own kind is gone with its memory, whatever comes there; of a
 * file, which stays, as well.
 */
static void contract_R12_pinned(struct th_self *self)
{
	unsigned char buf[ODP_PAGE];
	struct odp_side d;

	setenv("FI_SHRIMP_MONITOR", "uffd", 1);
	odp_open(&d, self);
	for (unsigned long i = 0; i < th_rounds(20); i++) {
		if (!self->rank) {
			d.p = odp_memory(&d);
			d.mr = rk_reg(&d.s, d.p, ODP_LEN, RK_RW, RK_KEY);
		}
		th_barrier_progress(self, &d.s, "registered");
		memset(buf, 1, ODP_PAGE);
		if (self->rank)
			odp_put_done(&d, buf, ODP_PAGE,
				     i % ODP_PAGES * ODP_PAGE);
		th_barrier_progress(self, &d.s, "written");
		if (!self->rank) {
			odp_replace(&d, d.p + i % ODP_PAGES * ODP_PAGE,
				    ODP_PAGE);
			memset(d.p + i % ODP_PAGES * ODP_PAGE, ODP_SENTINEL,
			       ODP_PAGE);
			odp_file_fill(&d, i % ODP_PAGES * ODP_PAGE);
			odp_lost(&d, i + 1);
		}
		th_barrier_progress(self, &d.s, "replaced");
		if (self->rank) {
			odp_refused(&d, buf, ODP_PAGE, i % ODP_PAGES * ODP_PAGE,
				    0);
			odp_refused(&d, buf, 8, (i + 1) % ODP_PAGES * ODP_PAGE,
				    0);
		}
		th_barrier_progress(self, &d.s, "refused");
		if (!self->rank) {
			th_verify_byte(d.p + i % ODP_PAGES * ODP_PAGE, ODP_PAGE,
				       ODP_SENTINEL);
			odp_file_verify(&d, i % ODP_PAGES * ODP_PAGE);
		}
		odp_disown(&d);
	}
	th_stack_close(&d.s);
}

/* Streams at a region whose memory is replaced under them. */
static void unmap_once(struct odp_side *d, unsigned long i)
{
	unsigned char *p = d->p = odp_memory(d);

	d->mr = rk_reg(&d->s, p, ODP_LEN, RK_RW, RK_KEY);
	odp_written(d);
	if (i % 2)
		odp_replace(d, p + i % ODP_PAGES * ODP_PAGE, ODP_PAGE);
	else
		odp_replace(d, p, ODP_LEN);
	memset(p + i % ODP_PAGES * ODP_PAGE, ODP_SENTINEL, ODP_PAGE);
	odp_file_fill(d, i % ODP_PAGES * ODP_PAGE);
	for (int k = 0; k < 20; k++)
		th_verify_byte(p + i % ODP_PAGES * ODP_PAGE, ODP_PAGE,
			       ODP_SENTINEL);
	odp_file_verify(d, i % ODP_PAGES * ODP_PAGE);
	th_ok(fi_close(&d->mr->fid));
	d->mr = NULL;
	th_eq(munmap(p, ODP_LEN), 0);
	d->p = NULL;
}

static void contract_R12_under_streams(struct th_self *self)
{
	struct odp_side d;

	setenv("FI_SHRIMP_MONITOR", "uffd", 1);
	odp_open(&d, self);
	if (self->rank)
		odp_stream(&d);
	for (unsigned long i = 0; !self->rank && i < th_rounds(200); i++)
		unmap_once(&d, i);
	odp_over(&d);
	th_stack_close(&d.s);
}

/* ---- R12: files -------------------------------------------------------------- */

/* A file that is mapped twice, and private memory, in one region. */
struct twins {
	struct odp_side *d;    /* whose */
	unsigned char *p, *q;  /* of the file: registered, and not */
	unsigned char own[64]; /* the other range */
};

enum { FILE_LEN = 8 * ODP_PAGE, AT = 5 * ODP_PAGE };

static unsigned char *map_twin(struct twins *t)
{
	unsigned char *p = quiet_map(FILE_LEN, PROT_READ | PROT_WRITE,
				     MAP_SHARED, t->d->fd, 0);

	th_check(p != MAP_FAILED);
	return p;
}

static void twins_open(struct twins *t)
{
	struct iovec iov[2] = { { t->own, sizeof(t->own) } };

	t->d->fd = rk_file_new(FILE_LEN);
	t->p = map_twin(t);
	t->q = map_twin(t);
	iov[1] = (struct iovec){ t->p, FILE_LEN };
	th_ok(fi_mr_regv(t->d->s.domain, iov, 2, RK_RW, 0, RK_KEY, 0, &t->d->mr,
			 NULL));
}

/* Where a mapping may go: nothing is there. */
static void *place(void)
{
	return quiet_map(FILE_LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
}

static void *map_over(unsigned char *p, size_t len, int fd, off_t off)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;

	return mmap(p, len, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, off);
}

/* What does not take the registered memory away. */
static void stay(struct twins *t)
{
	th_eq(munmap(t->q, FILE_LEN / 2), 0);
	th_check(map_over(t->q + FILE_LEN / 2, ODP_PAGE, -1, 0) ==
		 t->q + FILE_LEN / 2);
	th_eq(madvise(t->p, FILE_LEN, MADV_DONTNEED), 0);
}

/* The ways it goes; the last byte of @t->p is among it in none but the last. */
static void go(struct twins *t, int way)
{
	unsigned char *p = t->p;
	void *to;

	switch (way) {
	case 0:
		th_eq(munmap(p, ODP_PAGE), 0);
		break;
	case 1:
		th_check(map_over(p, ODP_PAGE, -1, 0) == p);
		break;
	case 2: /* another page of the same file */
		th_check(map_over(p + ODP_PAGE, ODP_PAGE, t->d->fd, 0) ==
			 p + ODP_PAGE);
		break;
	case 3: /* it shrinks */
		th_check(mremap(p, FILE_LEN, FILE_LEN - ODP_PAGE, 0) == p);
		break;
	case 4: /* all of it is mapped elsewhere */
		to = place();
		th_check(mremap(p, FILE_LEN, FILE_LEN,
				MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
		break;
	case 5: /* the same, and the same file comes there again */
		to = place();
		th_check(mremap(p, FILE_LEN, FILE_LEN,
				MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
		th_check(map_over(p, FILE_LEN, t->d->fd, 0) == p);
		break;
	default:
		th_eq(munmap(p, FILE_LEN), 0);
	}
}

enum { WAYS = 7 };

/*
 * Memory of a file goes as other memory does, in part or whole, and also if
 * its pages are mapped elsewhere; all of the region goes with it.
 */
static void contract_R12_file_ways(struct th_self *self)
{
	unsigned char buf[ODP_PAGE];
	struct odp_side d;
	struct twins t = { .d = &d };

	setenv("FI_SHRIMP_MONITOR", "uffd", 1);
	setenv("FI_SHRIMP_PIN", "off", 1);
	odp_open(&d, self);
	memset(buf, 1, sizeof(buf));
	for (int way = 0; way < WAYS; way++) {
		if (!self->rank)
			twins_open(&t);
		th_barrier_progress(self, &d.s, "registered");
		if (self->rank)
			odp_put_done(&d, buf, ODP_PAGE, sizeof(t.own) + AT);
		th_barrier_progress(self, &d.s, "written");
		if (!self->rank) {
			th_verify_byte(t.q + AT, ODP_PAGE, 1);
			stay(&t);
		}
		th_barrier_progress(self, &d.s, "still there");
		if (self->rank)
			odp_put_done(&d, buf, ODP_PAGE, sizeof(t.own) + AT);
		th_barrier_progress(self, &d.s, "written again");
		if (!self->rank) {
			go(&t, way);
			odp_file_fill(&d, AT);
		}
		th_barrier_progress(self, &d.s, "gone");
		if (self->rank) {
			odp_refused(&d, buf, ODP_PAGE, sizeof(t.own) + AT, 0);
			odp_refused(&d, buf, 8, 0, 0);
		}
		th_barrier_progress(self, &d.s, "refused");
		if (!self->rank) {
			odp_file_verify(&d, AT);
			odp_lost(&d, (uint64_t)way + 1);
		}
		odp_disown(&d);
	}
	th_stack_close(&d.s);
}

/* Its owner makes no call after it has unmapped: the answer comes. */
static void contract_P1_gone_needs_no_call(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct odp_side d = { .self = self, .fd = -1 };
	unsigned char buf[8] = { 1 };

	setenv("FI_SHRIMP_MONITOR", "uffd", 1);
	th_stack_open(&d.s, &o);
	th_stack_connect(&d.s, self);
	if (!self->rank) {
		d.p = odp_memory(&d);
		d.mr = rk_reg(&d.s, d.p, ODP_LEN, RK_RW, RK_KEY);
	}
	th_barrier_progress(self, &d.s, "registered");
	if (self->rank)
		odp_put_done(&d, buf, sizeof(buf), 0);
	th_barrier_progress(self, &d.s, "written");
	if (!self->rank)
		th_eq(munmap(d.p, ODP_LEN), 0);
	/* without progress */
	th_barrier(self, "unmapped");
	if (self->rank)
		odp_refused(&d, buf, sizeof(buf), 0, 0);
	th_barrier(self, "refused");
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* ---- R12: other processes --------------------------------------------------- */

/*
 * The child has no monitor and no watch. The parent's calls return while it
 * lives, also when the device is gone.
 */
static void contract_R12_fork(struct th_self *self)
{
	unsigned char buf[ODP_PAGE];
	struct odp_side d;
	pid_t pid = 0;
	int status;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : odp_fresh(ODP_LEN), RK_RW);
	memset(buf, 1, ODP_PAGE);
	if (self->rank)
		odp_put_done(&d, buf, ODP_PAGE, 0);
	th_barrier_progress(self, &d.s, "written");
	if (!self->rank) {
		pid = fork();
		th_check(pid >= 0);
		if (!pid) {
			munmap(d.p, 2 * ODP_PAGE);
			pause();
			_exit(0);
		}
		th_eq(odp_stats(&d).pages_invalidated, 0);
	}
	th_barrier_progress(self, &d.s, "forked");
	if (self->rank)
		odp_put_done(&d, buf, ODP_PAGE, 8);
	odp_disown(&d);
	th_stack_close(&d.s);
	if (pid) {
		th_eq(kill(pid, SIGKILL), 0);
		th_eq(waitpid(pid, &status, 0), pid);
		th_check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

/* Without a monitor pages come all the same; nobody hears of what goes. */
static void contract_R12_off(struct th_self *self)
{
	unsigned char buf[ODP_PAGE];
	struct odp_side d;

	setenv("FI_SHRIMP_MONITOR", "off", 1);
	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : odp_fresh(ODP_LEN), RK_RW);
	memset(buf, 1, ODP_PAGE);
	if (self->rank)
		odp_put_done(&d, buf, ODP_PAGE, 0);
	th_barrier_progress(self, &d.s, "written");
	if (!self->rank)
		th_eq(munmap(d.p, ODP_PAGE), 0);
	th_barrier_progress(self, &d.s, "unmapped");
	if (self->rank)
		odp_refused(&d, buf, 8, 0, 0);
	th_barrier_progress(self, &d.s, "refused");
	if (!self->rank) {
		th_eq(odp_stats(&d).pages_invalidated, 0);
		th_check(mmap(d.p, ODP_PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			      0) == d.p);
	}
	th_barrier_progress(self, &d.s, "mapped");
	if (self->rank)
		odp_put_done(&d, buf, ODP_PAGE, 0);
	th_barrier_progress(self, &d.s, "reached");
	if (!self->rank)
		th_verify_byte(d.p, ODP_PAGE, 1);
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* ---- P3: while a reader holds the monitor up ------------------------------ */

/*
 * Domains of their own: where the reader is inside, where a region is to be
 * closed, and where the first page is to come.
 */
enum { HELD, CLOSED, ABSENT, DOMAINS };

enum { NO_KEY = RK_KEY + 1 };

/* One of them, and somebody who is its peer. */
struct held {
	struct odp_side d;   /* the domain, with ODP_LEN bytes on demand */
	struct raw_lane raw; /* the peer */
};

static void held_open(struct held *h, struct th_self *self, bool touched)
{
	odp_open(&h->d, self);
	odp_own(&h->d, odp_fresh(ODP_LEN), RK_RW);
	if (touched)
		th_ok(rk_mr_ops(&h->d.s)->advise(h->d.mr, 0, ODP_LEN,
						 FI_SHRIMP_PREFETCH_READ));
	raw_open(&h->raw, h->d.s.addr, h->d.s.addr);
}

static void held_close(struct held *h)
{
	raw_close(&h->raw);
	odp_disown(&h->d);
	th_stack_close(&h->d.s);
}

static rnic_a32 unmapped;

static void *unmap_first(void *p)
{
	munmap(p, ODP_PAGE);
	rnic_store32_release(&unmapped, 1);
	return NULL;
}

/* Calls of @d's endpoint return, for long enough to look at everything. */
static void calls_return(struct odp_side *d)
{
	struct th_deadline dl = th_deadline_ms(100);
	struct fi_cq_tagged_entry e;

	while (!th_expired(&dl))
		th_eq(fi_cq_read(d->s.rxcq, &e, 1), -FI_EAGAIN);
}

/*
 * A close that cannot end and a page that cannot come: neither the agent nor
 * calls of the endpoint wait for them.
 */
static void nobody_waits(struct held *h, struct fid_eq *eq)
{
	struct odp_side *d = &h[CLOSED].d;
	struct fi_eq_entry closed;
	uint32_t event;
	uint64_t err;

	th_ok(rk_mr_ops(&d->s)->close_async(d->mr, eq, d));
	d->mr = NULL;
	th_sleep_us(30000);
	/* no call is made: the agent serves this */
	th_eq(raw_page(&h[CLOSED].raw, NO_KEY, 0, 8, RNIC_REMOTE_READ), ENOKEY);
	calls_return(d);
	th_eq(fi_eq_read(eq, &event, &closed, sizeof(closed), 0), -FI_EAGAIN);
	raw_ask_page(&h[ABSENT].raw, RK_KEY, 0, 8, RNIC_REMOTE_READ);
	calls_return(&h[ABSENT].d);
	th_check(!raw_reply(&h[ABSENT].raw, &err));
	th_check(!rnic_load32_acquire(&unmapped));
}

/* Both are done when nobody is inside any more. */
static void both_end(struct held *h, struct fid_eq *eq)
{
	struct th_deadline dl = th_patience();
	struct fi_eq_entry closed;
	uint64_t err = 1;
	uint32_t event;

	while (!raw_reply(&h[ABSENT].raw, &err)) {
		th_progress(&h[ABSENT].d.s);
		th_check(!th_expired(&dl));
	}
	th_eq(err, 0);
	while (fi_eq_read(eq, &event, &closed, sizeof(closed), 0) !=
	       sizeof(closed))
		th_check(!th_expired(&dl));
	th_ptr_eq(closed.context, &h[CLOSED].d);
}

static void contract_P3_monitor_held_up(struct th_self *self)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	struct held h[DOMAINS];
	struct fid_eq *eq;
	rnic_a64 *inside;
	pthread_t t;

	for (int i = 0; i < DOMAINS; i++)
		held_open(&h[i], self, i != ABSENT);
	inside = &h[HELD].raw.tx.sh->reader[0].seq;
	th_ok(fi_eq_open(h[CLOSED].d.s.fabric, &eq_attr, &eq, NULL));
	rnic_store64_release(inside, 1);
	th_eq(pthread_create(&t, NULL, unmap_first, h[HELD].d.p), 0);
	th_sleep_us(50000);
	if (rnic_load32_acquire(&unmapped))
		th_skip(self, "there is no unmap monitor");
	nobody_waits(h, eq);
	rnic_store64_release(inside, 2);
	both_end(h, eq);
	th_eq(pthread_join(t, NULL), 0);
	th_ok(fi_close(&eq->fid));
	for (int i = 0; i < DOMAINS; i++)
		held_close(&h[i]);
}

/* ---- table ------------------------------------------------------------------ */

static struct odp_how cached = { .cache = "all" };
static struct odp_how uncached = { .cache = "off" };
static struct odp_how unpinned = { .pin = "off" };
static struct odp_how file = { .file = true };
static struct odp_how file_cached = { .file = true, .cache = "all" };
static struct odp_how file_uncached = { .file = true, .cache = "off" };
static struct odp_how file_pages = { .file = true, .mtt = "pages" };
static struct odp_how unpinned_no_cma = { .cma = "off", .pin = "off" };

static const struct CMUnitTest unmap_tests[] = {
	TH_CASE(contract_R12_replaced, STREAMERS + 1, 60),
	ODP_CASE(contract_R12_replaced, STREAMERS + 1, 60, unpinned_no_cma),
	TH_CASE(contract_R12_next_file, 2, 20),
	ODP_CASE(contract_R12_given_up, 2, 20, unpinned),
	TH_CASE(contract_R12_pinned, 2, 30),
	TH_CASE(contract_R12_under_streams, STREAMERS + 1, 60),
	TH_CASE(contract_R12_fork, 2, 20),
	TH_CASE(contract_R12_off, 2, 20),
	TH_CASE(contract_P3_monitor_held_up, 1, 20),
	ODP_CASE(contract_R12_replaced, STREAMERS + 1, 60, cached),
	ODP_CASE(contract_R12_next_file, 2, 20, cached),
	ODP_CASE(contract_R12_pinned, 2, 30, cached),
	ODP_CASE(contract_R12_pinned, 2, 30, uncached),
	ODP_CASE(contract_R12_under_streams, STREAMERS + 1, 60, cached),
	ODP_CASE(contract_R12_under_streams, STREAMERS + 1, 60, uncached),
	ODP_CASE(contract_R12_fork, 2, 20, cached),
	ODP_CASE(contract_R12_pinned, 2, 30, file),
	ODP_CASE(contract_R12_pinned, 2, 30, file_cached),
	ODP_CASE(contract_R12_pinned, 2, 30, file_uncached),
	ODP_CASE(contract_R12_pinned, 2, 30, file_pages),
	ODP_CASE(contract_R12_under_streams, STREAMERS + 1, 60, file),
	ODP_CASE(contract_R12_under_streams, STREAMERS + 1, 60, file_cached),
	ODP_CASE(contract_R12_file_ways, 2, 30, file),
	ODP_CASE(contract_R12_file_ways, 2, 30, file_cached),
	ODP_CASE(contract_P1_gone_needs_no_call, 2, 20, file),
};

int main(int argc, char **argv)
{
	return odp_main(argc, argv, "unmap_tests", unmap_tests,
			sizeof(unmap_tests) / sizeof(*unmap_tests));
}
