/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Blocking on completions: fi_cq_sread(), fi_cq_signal(), wait descriptors
 * with fi_trywait() and epoll. No wake-up is lost, an idle wait costs no
 * CPU, and a wait gives way to whoever has to make its event.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "env_probe.h"
#include "shm/layout.h"

enum { TAG = 101 };

static const enum fi_wait_obj waits[] = { FI_WAIT_UNSPEC, FI_WAIT_FD,
					  FI_WAIT_YIELD };
enum { NWAITS = 3 };

static const struct th_stack_opts with_fd = { .cq_wait = FI_WAIT_FD };

static uint64_t elapsed_ms(uint64_t start)
{
	return (th_now_ns() - start) / 1000000;
}

static void put(struct th_stack *s, fi_addr_t to, uint64_t v)
{
	th_post(s, fi_tinject(s->ep, &v, 8, to, TAG));
}

/* ---- sread ---------------------------------------------------------------- */

/* Nothing comes: -FI_EAGAIN, not before the timeout and not long after. */
static void case_T23_timeout_kept(struct th_self *self)
{
	static const int ms[] = { 0, 1, 30, 200 };
	struct fi_cq_tagged_entry e;
	struct th_stack_opts o = { 0 };
	struct th_stack s;
	uint64_t start;
	int i, w;

	(void)self;
	for (w = 0; w < NWAITS; w++) {
		o.cq_wait = waits[w];
		th_stack_open(&s, &o);
		for (i = 0; i < 4; i++) {
			start = th_now_ns();
			th_eq(fi_cq_sread(s.rxcq, &e, 1, NULL, ms[i]),
			      -FI_EAGAIN);
			th_check(elapsed_ms(start) + 1 >= (uint64_t)ms[i]);
			th_check(elapsed_ms(start) < (uint64_t)ms[i] + 500);
		}
		th_stack_close(&s);
	}
}

/* What is there already is given at once, errors included. */
static void sread_of_what_is_there(struct th_self *self)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	struct th_stack_opts o = { 0 };
	struct th_stack s;
	fi_addr_t me, src;
	uint64_t rx;
	int w;

	(void)self;
	for (w = 0; w < NWAITS; w++) {
		o.cq_wait = waits[w];
		o.caps = FI_MSG | FI_TAGGED | FI_SOURCE;
		th_stack_open(&s, &o);
		me = th_insert(&s, s.addr);
		th_trecv(&s, &rx, 8, TAG, 0, &rx);
		put(&s, me, 1);
		th_eq(fi_cq_sreadfrom(s.rxcq, &e, 1, &src, NULL, 10000), 1);
		th_ptr_eq(e.op_context, &rx);
		th_eq(src, me);
		th_trecv(&s, &rx, 8, TAG, 0, &rx);
		th_ok(fi_cancel(&s.ep->fid, &rx));
		th_eq(fi_cq_sread(s.rxcq, &e, 1, NULL, -1), -FI_EAVAIL);
		th_eq(fi_cq_readerr(s.rxcq, &err, 0), 1);
		th_eq(err.err, FI_ECANCELED);
		th_stack_close(&s);
	}
}

/* Without a wait object there is nothing to block on. */
static void no_wait_object(struct th_self *self)
{
	struct fi_cq_tagged_entry e;
	struct th_stack s;
	uint64_t start;

	(void)self;
	th_stack_open(&s, NULL);
	start = th_now_ns();
	th_check(fi_cq_sread(s.rxcq, &e, 1, NULL, 5000) < 0);
	th_check(elapsed_ms(start) < 1000);
	th_stack_close(&s);
}

static void *signal_later(void *arg)
{
	th_sleep_us(50000);
	th_ok(fi_cq_signal(arg));
	return NULL;
}

/* fi_cq_signal() from another thread ends a wait without end. */
static void case_T23_signal(struct th_self *self)
{
	struct fi_cq_tagged_entry e;
	struct th_stack_opts o = { 0 };
	struct th_stack s;
	pthread_t t;
	int w, i;

	(void)self;
	for (w = 0; w < NWAITS; w++) {
		o.cq_wait = waits[w];
		th_stack_open(&s, &o);
		for (i = 0; i < 5; i++) {
			th_eq(pthread_create(&t, NULL, signal_later, s.rxcq),
			      0);
			th_eq(fi_cq_sread(s.rxcq, &e, 1, NULL, -1), -FI_EAGAIN);
			th_eq(pthread_join(t, NULL), 0);
		}
		th_stack_close(&s);
	}
}

/* The wait condition is a hint that must be taken. */
static void threshold(struct th_self *self)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED,
				   .wait_obj = FI_WAIT_UNSPEC,
				   .wait_cond = FI_CQ_COND_THRESHOLD };
	struct th_stack s;
	struct fid_cq *cq;

	(void)self;
	th_stack_open(&s, NULL);
	th_ok(fi_cq_open(s.domain, &attr, &cq, NULL));
	th_ok(fi_close(&cq->fid));
	th_stack_close(&s);
}

/* ---- two processes, one blocking in sread ------------------------------------ */

static void sread_one(struct th_stack *s, uint64_t *rx)
{
	struct fi_cq_tagged_entry e;
	ssize_t n = fi_cq_sread(s->rxcq, &e, 1, NULL, 15000 * 6);

	th_eq(n, 1);
	th_ptr_eq(e.op_context, rx);
}

/*
 * Ping-pong in which each side blocks, and sends after random pauses around
 * the time the other needs to fall asleep.
 */
static void sread_ping_pong(struct th_self *self, enum fi_wait_obj wait)
{
	struct th_stack_opts o = { .cq_wait = wait };
	unsigned long i, n = th_rounds(4000);
	uint64_t seed = 9 + (uint64_t)self->rank, rx;
	struct th_stack s;

	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	for (i = 0; i < n; i++) {
		th_trecv(&s, &rx, 8, TAG, 0, &rx);
		if (th_random(&seed) % 4 == 0)
			th_sleep_us(th_random(&seed) % 200);
		if (th_random(&seed) % 200 == 0)
			th_sleep_us(th_random(&seed) % 20000);
		if (self->rank == 0)
			put(&s, s.peers[1], i);
		sread_one(&s, &rx);
		th_eq(rx, i);
		if (self->rank == 1)
			put(&s, s.peers[0], i);
	}
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

static void case_T23_sread_unspec(struct th_self *self)
{
	sread_ping_pong(self, FI_WAIT_UNSPEC);
}

static void case_T23_sread_fd(struct th_self *self)
{
	sread_ping_pong(self, FI_WAIT_FD);
}

static void case_T23_sread_yield(struct th_self *self)
{
	sread_ping_pong(self, FI_WAIT_YIELD);
}

/*
 * A sender that blocks for its own completions of held messages while the
 * receiver blocks for the data: both sides' answers must wake the other.
 */
static void sread_held(struct th_self *self)
{
	enum { LEN = 3 << 20 };
	unsigned char *buf = malloc(LEN);
	unsigned long i, n = th_rounds(200);
	struct th_stack_opts o = { .cq_wait = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry e;
	struct th_stack s;

	th_check(buf);
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	th_fill(buf, LEN, 1);
	for (i = 0; i < n; i++) {
		if (self->rank == 0) {
			th_tsend(&s, s.peers[1], buf, LEN, TAG, buf);
			th_eq(fi_cq_sread(s.txcq, &e, 1, NULL, 90000), 1);
			continue;
		}
		if (i % 8 == 0)
			th_sleep_us(2000);
		buf[LEN / 2] = 0;
		th_trecv(&s, buf, LEN, TAG, 0, buf);
		th_eq(fi_cq_sread(s.rxcq, &e, 1, NULL, 90000), 1);
		th_check(th_match_at(buf + LEN / 2, 64, 1, LEN / 2));
	}
	th_barrier_progress(self, &s, "done");
	free(buf);
	th_stack_close(&s);
}

/* ---- idle ----------------------------------------------------------------------- */

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	th_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * Until there is nothing to do before a sleep: the peer may still say that it
 * has taken what was sent, which -FI_EAGAIN is for.
 */
static void settle(struct th_stack *s, struct fid **fids)
{
	struct th_deadline dl = th_deadline_ms(1000);

	while (fi_trywait(s->fabric, fids, 1) == -FI_EAGAIN) {
		th_check(!th_expired(&dl));
		th_progress(s);
	}
}

/*
 * A second of waiting, after some traffic with a living peer, costs less
 * than 1 % of CPU, threads of the provider included.
 */
static void idle_run(struct th_self *self, enum fi_wait_obj wait, bool epoll)
{
	enum { MS = 1500 };
	struct th_stack_opts o = { .cq_wait = wait };
	struct fi_cq_tagged_entry e;
	struct th_stack s;
	uint64_t before, rx;
	struct pollfd p = { .events = POLLIN };
	struct fid *fids[1];

	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	th_trecv(&s, &rx, 8, TAG, 0, &rx);
	put(&s, s.peers[!self->rank], 1);
	sread_one(&s, &rx);
	th_barrier_progress(self, &s, "idle");
	fids[0] = &s.rxcq->fid;
	before = cpu_ns();
	if (epoll) {
		th_ok(fi_control(&s.rxcq->fid, FI_GETWAIT, &p.fd));
		settle(&s, fids);
		th_eq(poll(&p, 1, MS), 0);
	} else {
		th_eq(fi_cq_sread(s.rxcq, &e, 1, NULL, MS), -FI_EAGAIN);
	}
	if (!th_sanitized())
		th_check(cpu_ns() - before < (uint64_t)MS * 10000);
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

static void case_T23_idle_sread(struct th_self *self)
{
	idle_run(self, FI_WAIT_UNSPEC, false);
}

static void case_T23_idle_fd(struct th_self *self)
{
	idle_run(self, FI_WAIT_FD, true);
}

/* ---- descriptors, fi_trywait() and epoll ------------------------------------------ */

/* The descriptor is one; its kind is told. */
static void get_wait(struct th_self *self)
{
	enum fi_wait_obj kind = FI_WAIT_NONE;
	struct pollfd p = { .events = POLLIN };
	struct th_stack s;

	(void)self;
	th_stack_open(&s, &with_fd);
	p.fd = -1;
	th_ok(fi_control(&s.rxcq->fid, FI_GETWAIT, &p.fd));
	th_check(p.fd >= 0);
	th_check(poll(&p, 1, 0) >= 0 && !(p.revents & POLLNVAL));
	th_ok(fi_control(&s.rxcq->fid, FI_GETWAITOBJ, &kind));
	th_eq(kind, FI_WAIT_FD);
	th_stack_close(&s);
	th_stack_open(&s, NULL);
	th_check(fi_control(&s.rxcq->fid, FI_GETWAIT, &p.fd) < 0);
	th_stack_close(&s);
}

/* With an entry unread, fi_trywait() says so; with none, that one may wait. */
static void trywait_says(struct th_self *self)
{
	struct fid *fids[1];
	struct th_stack s;
	fi_addr_t me;
	uint64_t rx;

	(void)self;
	th_stack_open(&s, &with_fd);
	fids[0] = &s.rxcq->fid;
	me = th_insert(&s, s.addr);
	th_eq(fi_trywait(s.fabric, fids, 1), 0);
	th_trecv(&s, &rx, 8, TAG, 0, &rx);
	put(&s, me, 1);
	fi_cq_read(s.rxcq, NULL, 0);
	th_eq(fi_trywait(s.fabric, fids, 1), -FI_EAGAIN);
	th_rx_ok(&s);
	th_eq(fi_trywait(s.fabric, fids, 1), 0);
	th_trecv(&s, &rx, 8, TAG, 0, &rx);
	th_ok(fi_cancel(&s.ep->fid, &rx));
	th_eq(fi_trywait(s.fabric, fids, 1), -FI_EAGAIN);
	th_rx_err(&s);
	th_eq(fi_trywait(s.fabric, fids, 1), 0);
	th_stack_close(&s);
}

/* A receiver that sleeps in epoll_wait() only after fi_trywait() allowed it. */
struct sleeper {
	struct th_stack *s;  /* its stack */
	int epfd;	     /* epoll set with the CQ's descriptor */
	unsigned long slept; /* times it slept */
};

static void sleeper_open(struct sleeper *sl, struct th_stack *s)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int fd;

	sl->s = s;
	sl->slept = 0;
	th_ok(fi_control(&s->rxcq->fid, FI_GETWAIT, &fd));
	sl->epfd = epoll_create1(EPOLL_CLOEXEC);
	th_check(sl->epfd >= 0);
	th_eq(epoll_ctl(sl->epfd, EPOLL_CTL_ADD, fd, &ev), 0);
}

static void sleeper_recv(struct sleeper *sl, uint64_t *rx)
{
	struct fid *fids[1] = { &sl->s->rxcq->fid };
	struct fi_cq_tagged_entry e;
	struct epoll_event ev;
	ssize_t n;
	int ret;

	for (;;) {
		n = fi_cq_read(sl->s->rxcq, &e, 1);
		if (n == 1)
			break;
		th_eq(n, -FI_EAGAIN);
		ret = fi_trywait(sl->s->fabric, fids, 1);
		if (ret == -FI_EAGAIN)
			continue;
		th_eq(ret, 0);
		sl->slept++;
		/* Without end: a lost wake-up ends at the time limit. */
		ret = epoll_wait(sl->epfd, &ev, 1, -1);
		th_check(ret == 1 || errno == EINTR);
	}
	th_ptr_eq(e.op_context, rx);
}

static void case_T23_epoll(struct th_self *self)
{
	unsigned long i, n = th_rounds(5000);
	uint64_t seed = 7, rx;
	struct sleeper sl;
	struct th_stack s;

	th_stack_open(&s, &with_fd);
	th_stack_connect(&s, self);
	sleeper_open(&sl, &s);
	for (i = 0; i < n; i++) {
		if (self->rank == 1) {
			th_trecv(&s, &rx, 8, TAG, 0, &rx);
			sleeper_recv(&sl, &rx);
			th_eq(rx, i);
			if (i % 64 == 63)
				put(&s, s.peers[0], i);
			continue;
		}
		if (th_random(&seed) % 2)
			th_sleep_us(th_random(&seed) % 150);
		put(&s, s.peers[1], i);
		if (i % 64 == 63) {
			th_trecv(&s, &rx, 8, TAG, 0, &rx);
			sleeper_recv(&sl, &rx);
		}
	}
	/* the other one waits for an answer now and then only */
	th_check(self->rank == 0 || sl.slept > 0);
	close(sl.epfd);
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

/* Large messages to a sleeper; the sender sleeps for its completions too. */
static void case_T23_epoll_held(struct th_self *self)
{
	enum { LEN = 1 << 20 };
	struct th_stack_opts o = with_fd;
	unsigned char *buf = malloc(LEN);
	unsigned long i, n = th_rounds(300);
	struct sleeper sl;
	struct th_stack s;

	th_check(buf);
	o.one_cq = true;
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	sleeper_open(&sl, &s);
	th_fill(buf, LEN, 1);
	for (i = 0; i < n; i++) {
		if (self->rank == 0)
			th_tsend(&s, s.peers[1], buf, LEN, TAG, buf);
		else
			th_trecv(&s, buf, LEN, TAG, 0, buf);
		sleeper_recv(&sl, (uint64_t *)buf);
	}
	th_verify(buf, LEN, 1);
	close(sl.epfd);
	th_barrier_progress(self, &s, "done");
	free(buf);
	th_stack_close(&s);
}

/* ---- P3: nobody keeps the only core to himself -------------------------------------- */

static void pin_to_one_core(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	th_eq(sched_setaffinity(0, sizeof(set), &set), 0);
}

/*
 * Several processes in a ring on one core, each polling: a round costs each
 * of them far less CPU than the scheduler's time slice (about 4 ms), which is
 * what spinning would cost, whatever else runs on the machine.
 */
static void contract_P3_ring_on_one_core(struct th_self *self)
{
	unsigned long i, n = th_rounds(500);
	int next = (self->rank + 1) % self->size;
	struct th_stack s;
	uint64_t rx, before;

	pin_to_one_core();
	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	before = cpu_ns();
	for (i = 0; i < n; i++) {
		th_trecv(&s, &rx, 8, TAG, 0, &rx);
		if (self->rank == 0)
			put(&s, s.peers[next], i);
		while (fi_cq_read(s.rxcq, &(struct fi_cq_tagged_entry){ 0 },
				  1) != 1)
			;
		th_eq(rx, i);
		if (self->rank != 0)
			put(&s, s.peers[next], i);
	}
	if (!th_sanitized())
		th_check((cpu_ns() - before) / n < 1000000);
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

/* The same while each waits for a large send of its own, as MPI does. */
static void contract_P3_large_on_one_core(struct th_self *self)
{
	enum { LEN = 2 << 20 };
	unsigned long i, n = th_rounds(60);
	unsigned char *tx = malloc(LEN), *rx = malloc(LEN);
	int next = (self->rank + 1) % self->size;
	struct fi_cq_tagged_entry e;
	struct th_stack s;
	uint64_t before;
	int left;

	th_check(tx && rx);
	pin_to_one_core();
	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	th_fill(tx, LEN, 1);
	before = cpu_ns();
	for (i = 0; i < n; i++) {
		th_trecv(&s, rx, LEN, TAG, 0, rx);
		th_tsend(&s, s.peers[next], tx, LEN, TAG, tx);
		for (left = 2; left;) {
			left -= fi_cq_read(s.rxcq, &e, 1) == 1;
			left -= fi_cq_read(s.txcq, &e, 1) == 1;
		}
	}
	th_verify(rx, LEN, 1);
	if (!th_sanitized())
		th_check((cpu_ns() - before) / n < 10000000);
	th_barrier_progress(self, &s, "done");
	free(tx);
	free(rx);
	th_stack_close(&s);
}

/*
 * Rank 1 has no membarrier: it cannot fence rank 0 before it sleeps, and has
 * said so, so that rank 0 fences by itself when it answers.
 */
static void contract_P3_unfenced(struct th_self *self)
{
	const off_t at = (off_t)rnic_lane_off(0, 0) +
			 (off_t)offsetof(struct rnic_lane, tx_unfenced);
	const struct th_stack_opts o = { .cq_wait = FI_WAIT_UNSPEC };
	uint32_t unfenced = 2, rx;
	unsigned long n = th_rounds(2000), i;
	struct fi_cq_tagged_entry e;
	struct th_stack s;
	int fd;

	if (self->rank)
		setenv("FI_SHRIMP_MEMBARRIER", "off", 1);
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	for (i = 0; i < n; i++) {
		th_trecv(&s, &rx, 4, TAG, 0, &rx);
		th_post(&s,
			fi_tinject(s.ep, &i, 4, s.peers[1 - self->rank], TAG));
		th_eq(fi_cq_sread(s.rxcq, &e, 1, NULL, -1), 1);
	}
	fd = probe_segment(getpid(), "shrimp-mailbox", 0, false);
	th_eq(pread(fd, &unfenced, sizeof(unfenced), at), sizeof(unfenced));
	th_eq(unfenced, !self->rank);
	close(fd);
	th_barrier_progress(self, &s, "done");
	th_stack_close(&s);
}

static const struct CMUnitTest wait_tests[] = {
	TH_CASE(case_T23_timeout_kept, 1, 20),
	TH_CASE(sread_of_what_is_there, 1, 10),
	TH_CASE(no_wait_object, 1, 10),
	TH_CASE(case_T23_signal, 1, 20),
	TH_CASE(threshold, 1, 10),
	TH_CASE(case_T23_sread_unspec, 2, 30),
	TH_CASE(case_T23_sread_fd, 2, 30),
	TH_CASE(case_T23_sread_yield, 2, 30),
	TH_CASE(sread_held, 2, 30),
	TH_CASE(case_T23_idle_sread, 2, 20),
	TH_CASE(case_T23_idle_fd, 2, 20),
	TH_CASE(get_wait, 1, 10),
	TH_CASE(trywait_says, 1, 10),
	TH_CASE(case_T23_epoll, 2, 30),
	TH_CASE(case_T23_epoll_held, 2, 30),
	TH_CASE(contract_P3_unfenced, 2, 30),
	TH_CASE(contract_P3_ring_on_one_core, 4, 30),
	TH_CASE(contract_P3_large_on_one_core, 4, 30),
};

TH_MAIN(wait_tests)
