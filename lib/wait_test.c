/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Wait objects and wait sets without a device. The members are EQs, because
 * they need no domain, and counters and CQs of a domain that is a shell.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/cntr.h"
#include "lib/cq.h"
#include "lib/domain.h"
#include "lib/endpoint.h"
#include "lib/eq.h"
#include "lib/fabric.h"
#include "lib/tx.h"

enum { FOR_EVER_MS = 20000, ROUNDS = 3000 };

static struct shrimp_fabric fabric;
static struct shrimp_settings set = { .spin = 10 };
static struct shrimp_domain domain = { .set = &set,
				       .fabric = &fabric,
				       .cqs = CDS_LIST_HEAD_INIT(domain.cqs) };

/* A test that failed leaves its references behind. */
static int fresh(void **state)
{
	(void)state;
	rnic_store32_relaxed(&domain.refs, 0);
	rnic_store32_relaxed(&fabric.refs, 0);
	return 0;
}

static void open_member(struct shrimp_wait_member *m, enum fi_wait_obj obj)
{
	static struct fid fid;

	assert_int_equal(shrimp_wait_open(m, &fid, obj, NULL), 0);
	assert_ptr_equal(m->fid, &fid);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static int fd_of(struct shrimp_wait_member *m)
{
	int fd = -1;

	assert_int_equal(shrimp_wait_control(m, FI_GETWAIT, &fd), 0);
	return fd;
}

/* ---- the object ---- */

static void wait_kinds(void **state)
{
	static const enum fi_wait_obj sleep[] = { FI_WAIT_UNSPEC, FI_WAIT_FD };
	static const enum fi_wait_obj none[] = { FI_WAIT_NONE, FI_WAIT_YIELD };
	static const enum fi_wait_obj bad[] = { FI_WAIT_MUTEX_COND,
						FI_WAIT_POLLFD };
	struct shrimp_wait_member m;
	enum fi_wait_obj obj;
	struct fid fid;
	int fd;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_member(&m, sleep[i]);
		assert_true(shrimp_wait_sleeps(&m));
		assert_true(fd_of(&m) >= 0);
		shrimp_wait_control(&m, FI_GETWAITOBJ, &obj);
		assert_int_equal(obj, sleep[i]);
		shrimp_wait_close(&m);
		open_member(&m, none[i]);
		assert_false(shrimp_wait_sleeps(&m));
		assert_true(shrimp_wait_control(&m, FI_GETWAIT, &fd) < 0);
		shrimp_wait_signal(&m);
		shrimp_wait_close(&m);
		assert_int_equal(shrimp_wait_open(&m, &fid, bad[i], NULL),
				 -FI_ENOSYS);
	}
	assert_int_equal(shrimp_wait_open(&m, &fid, FI_WAIT_SET, NULL),
			 -FI_EINVAL);
}

/* The fd is readable from a signal to the next arming, no longer. */
static void wait_fd_follows_signals(void **state)
{
	struct shrimp_wait_member m;

	(void)state;
	open_member(&m, FI_WAIT_FD);
	shrimp_wait_signal(&m);
	assert_false(readable(fd_of(&m)));
	shrimp_wait_arm(&m);
	assert_false(readable(fd_of(&m)));
	for (int i = 0; i < 3; i++)
		shrimp_wait_signal(&m);
	assert_true(readable(fd_of(&m)));
	shrimp_wait_arm(&m);
	assert_false(readable(fd_of(&m)));
	shrimp_wait_close(&m);
}

/* Arming does not take the wake-up of a thread that still sleeps. */
static void wait_arm_leaves_others_their_wake_up(void **state)
{
	struct shrimp_wait_member m;

	(void)state;
	open_member(&m, FI_WAIT_FD);
	shrimp_wait_enter(&m);
	shrimp_wait_signal(&m);
	shrimp_wait_arm(&m);
	assert_int_equal(shrimp_wait_sleep(&m, 0), 0);
	shrimp_wait_enter(&m);
	assert_int_equal(shrimp_wait_sleep(&m, 0), 0);
	shrimp_wait_leave(&m);
	shrimp_wait_leave(&m);
	shrimp_wait_arm(&m);
	assert_int_equal(shrimp_wait_sleep(&m, 0), -FI_ETIMEDOUT);
	shrimp_wait_close(&m);
}

/* An endpoint that is polled by others wakes only who sleeps on it. */
static void wait_disturb(void **state)
{
	struct shrimp_wait_member m;

	(void)state;
	open_member(&m, FI_WAIT_FD);
	shrimp_wait_disturb(&m);
	assert_false(readable(fd_of(&m)));
	shrimp_wait_arm(&m);
	shrimp_wait_disturb(&m);
	assert_true(readable(fd_of(&m)));
	shrimp_wait_enter(&m);
	assert_false(readable(fd_of(&m)));
	shrimp_wait_disturb(&m);
	assert_true(readable(fd_of(&m)));
	shrimp_wait_leave(&m);
	shrimp_wait_close(&m);
	open_member(&m, FI_WAIT_NONE);
	shrimp_wait_disturb(&m);
	shrimp_wait_close(&m);
}

static void wait_sleep_keeps_its_time(void **state)
{
	struct shrimp_wait_member m;
	uint64_t start = shrimp_now_ms();

	(void)state;
	open_member(&m, FI_WAIT_FD);
	shrimp_wait_enter(&m);
	assert_int_equal(shrimp_wait_sleep(&m, 40), -FI_ETIMEDOUT);
	assert_true(shrimp_now_ms() - start >= 40);
	shrimp_wait_leave(&m);
	assert_int_equal(shrimp_wait_left(-1, start), -1);
	assert_int_equal(shrimp_wait_left(0, start), 0);
	assert_int_equal(shrimp_wait_left(30, start), 0);
	assert_in_range(shrimp_wait_left(100000, start), 1, 100000 - 40);
	shrimp_wait_close(&m);
}

/* Fds of endpoints: each add needs its del; many fit. */
static void wait_fds_are_counted(void **state)
{
	enum { N = 200 };
	struct shrimp_wait_member m;
	int fd[N];

	(void)state;
	open_member(&m, FI_WAIT_FD);
	for (int i = 0; i < N; i++) {
		fd[i] = eventfd(0, EFD_CLOEXEC);
		assert_true(fd[i] >= 0);
		assert_int_equal(shrimp_wait_add_fd(&m, fd[i]), 0);
	}
	assert_int_equal(shrimp_wait_add_fd(&m, fd[7]), 0);
	assert_int_equal(eventfd_write(fd[7], 1), 0);
	assert_true(readable(fd_of(&m)));
	shrimp_wait_del_fd(&m, fd[7]);
	assert_true(readable(fd_of(&m)));
	shrimp_wait_del_fd(&m, fd[7]);
	assert_false(readable(fd_of(&m)));
	assert_int_equal(eventfd_write(fd[N - 1], 1), 0);
	assert_true(readable(fd_of(&m)));
	for (int i = 0; i < N; i++) {
		if (i != 7)
			shrimp_wait_del_fd(&m, fd[i]);
		close(fd[i]);
	}
	assert_false(readable(fd_of(&m)));
	shrimp_wait_close(&m);
}

/* A client may watch the fd with an epoll set of its own. */
static void wait_fd_nests(void **state)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int outer = epoll_create1(EPOLL_CLOEXEC);
	struct shrimp_wait_member m;

	(void)state;
	assert_true(outer >= 0);
	open_member(&m, FI_WAIT_FD);
	assert_int_equal(epoll_ctl(outer, EPOLL_CTL_ADD, fd_of(&m), &ev), 0);
	shrimp_wait_arm(&m);
	assert_int_equal(epoll_wait(outer, &ev, 1, 0), 0);
	shrimp_wait_signal(&m);
	assert_int_equal(epoll_wait(outer, &ev, 1, FOR_EVER_MS), 1);
	shrimp_wait_close(&m);
	close(outer);
}

/* ---- the edge between looking and sleeping ---- */

struct relay {
	struct shrimp_wait_member m; /* the object */
	rnic_a32 made;		     /* events so far */
	rnic_a32 taken;		     /* of them seen by the sleeper */
	bool late;		     /* a sleep was not ended */
};

/* One event at a time; the next one when the last was seen. */
static void *maker(void *arg)
{
	struct relay *r = arg;

	for (uint32_t i = 1; i <= ROUNDS; i++) {
		rnic_store32_relaxed(&r->made, i);
		shrimp_wait_signal(&r->m);
		while (rnic_load32_acquire(&r->taken) != i && !r->late)
			sched_yield();
	}
	return NULL;
}

/* No event is slept through, wherever it comes between look and sleep. */
static void wait_edge(void **state)
{
	struct relay r = { .late = false };
	pthread_t t;

	(void)state;
	open_member(&r.m, FI_WAIT_UNSPEC);
	assert_int_equal(pthread_create(&t, NULL, maker, &r), 0);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		int ret = 0;

		while (rnic_load32_relaxed(&r.made) < i && !ret) {
			shrimp_wait_enter(&r.m);
			if (rnic_load32_relaxed(&r.made) < i)
				ret = shrimp_wait_sleep(&r.m, FOR_EVER_MS);
			shrimp_wait_leave(&r.m);
		}
		assert_int_equal(ret, 0);
		rnic_store32_release(&r.taken, i);
	}
	assert_int_equal(pthread_join(t, NULL), 0);
	shrimp_wait_close(&r.m);
}

/* ---- sets ---- */

static struct fid_wait *set_open(void)
{
	struct fi_wait_attr attr = { .wait_obj = FI_WAIT_FD };
	struct fid_wait *w;

	assert_int_equal(shrimp_waitset_open(&fabric.fid, &attr, &w), 0);
	assert_int_equal(w->fid.fclass, FI_CLASS_WAIT);
	return w;
}

static struct fid_eq *eq_in(struct fid_wait *w)
{
	struct fi_eq_attr attr = { .flags = FI_WRITE,
				   .wait_obj = FI_WAIT_SET,
				   .wait_set = w };
	struct fid_eq *eq;

	assert_int_equal(shrimp_eq_open(&fabric.fid, &attr, &eq, NULL), 0);
	return eq;
}

static void eq_put(struct fid_eq *eq)
{
	struct fi_eq_entry e = { .fid = &eq->fid };

	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &e, sizeof(e), 0),
			 sizeof(e));
}

static bool eq_get(struct fid_eq *eq)
{
	struct fi_eq_entry e;
	uint32_t event;

	return fi_eq_read(eq, &event, &e, sizeof(e), 0) == sizeof(e);
}

static void set_open_refuses(void **state)
{
	struct fi_wait_attr attr = { .wait_obj = FI_WAIT_MUTEX_COND };
	struct fid_wait *w;

	(void)state;
	assert_int_equal(shrimp_waitset_open(&fabric.fid, &attr, &w),
			 -FI_ENOSYS);
	attr = (struct fi_wait_attr){ .wait_obj = FI_WAIT_FD, .flags = 1 };
	assert_int_equal(shrimp_waitset_open(&fabric.fid, &attr, &w),
			 -FI_EINVAL);
	assert_int_equal(rnic_load32_acquire(&fabric.refs), 0);
}

static void set_is_busy_with_members(void **state)
{
	struct fid_wait *w = set_open();
	struct fid_eq *eq = eq_in(w);
	struct fi_eq_entry e;
	uint32_t event;

	(void)state;
	assert_int_equal(fi_close(&w->fid), -FI_EBUSY);
	assert_int_equal(fi_eq_sread(eq, &event, &e, sizeof(e), 0, 0),
			 -FI_EINVAL);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_close(&w->fid), 0);
	assert_int_equal(rnic_load32_acquire(&fabric.refs), 0);
}

/* An event of any member ends the wait; none, and the time is kept. */
static void set_wakes_for_each_member(void **state)
{
	struct fid_wait *w = set_open();
	struct fid_eq *eq[3];
	uint64_t start = shrimp_now_ms();

	(void)state;
	for (int i = 0; i < 3; i++)
		eq[i] = eq_in(w);
	assert_int_equal(fi_wait(w, 40), -FI_ETIMEDOUT);
	assert_true(shrimp_now_ms() - start >= 40);
	for (int i = 0; i < 3; i++) {
		eq_put(eq[i]);
		assert_int_equal(fi_wait(w, -1), 0);
		assert_true(eq_get(eq[i]));
		assert_int_equal(fi_wait(w, 0), -FI_ETIMEDOUT);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_close(&eq[i]->fid), 0);
	assert_int_equal(fi_close(&w->fid), 0);
}

struct feed {
	struct fid_eq *eq[2]; /* members of one set */
	rnic_a32 taken;	      /* events read */
};

static void *feeder(void *arg)
{
	struct feed *f = arg;

	for (uint32_t i = 1; i <= ROUNDS; i++) {
		eq_put(f->eq[i % 2]);
		while (rnic_load32_acquire(&f->taken) != i)
			sched_yield();
	}
	return NULL;
}

/* Arming for one member does not swallow the event of another. */
static void set_edge(void **state)
{
	struct fid_wait *w = set_open();
	struct feed f = { .eq = { eq_in(w), eq_in(w) } };
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, feeder, &f), 0);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		while (!eq_get(f.eq[i % 2]))
			assert_int_equal(fi_wait(w, FOR_EVER_MS), 0);
		rnic_store32_release(&f.taken, i);
	}
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(fi_close(&f.eq[0]->fid), 0);
	assert_int_equal(fi_close(&f.eq[1]->fid), 0);
	assert_int_equal(fi_close(&w->fid), 0);
}

/* A signal of a CQ ends the wait of its set, once. */
static void set_of_cq_and_cntr(void **state)
{
	struct fid_wait *w = set_open();
	struct fi_cq_attr qa = { .wait_obj = FI_WAIT_SET, .wait_set = w };
	struct fi_cntr_attr ca = { .wait_obj = FI_WAIT_SET, .wait_set = w };
	struct fid_cntr *c;
	struct fid_cq *cq;

	(void)state;
	assert_int_equal(shrimp_cq_open(&domain.fid, &qa, &cq, NULL), 0);
	assert_int_equal(shrimp_cntr_open(&domain.fid, &ca, &c, NULL), 0);
	assert_int_equal(fi_wait(w, 0), -FI_ETIMEDOUT);
	assert_int_equal(fi_cq_signal(cq), 0);
	assert_int_equal(fi_wait(w, -1), 0);
	assert_int_equal(fi_wait(w, 10), -FI_ETIMEDOUT);
	assert_int_equal(fi_cntr_add(c, 1), 0);
	assert_int_equal(fi_wait(w, -1), 0);
	assert_int_equal(fi_cntr_read(c), 1);
	assert_int_equal(fi_wait(w, 10), -FI_ETIMEDOUT);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&c->fid), 0);
	assert_int_equal(fi_close(&w->fid), 0);
}

/* ---- fi_trywait ---- */

static void trywait_answers(void **state)
{
	struct fid_wait *w = set_open();
	struct fid_eq *eq = eq_in(w);
	struct fid *fids[2] = { &w->fid, &eq->fid };
	struct fid odd = { .fclass = FI_CLASS_AV };
	struct fid *bad = &odd;

	(void)state;
	assert_int_equal(shrimp_trywait(&fabric.fid, fids, 0), 0);
	assert_int_equal(shrimp_trywait(&fabric.fid, fids, 2), 0);
	eq_put(eq);
	assert_int_equal(shrimp_trywait(&fabric.fid, fids, 1), -FI_EAGAIN);
	assert_int_equal(shrimp_trywait(&fabric.fid, fids, 2), -FI_EAGAIN);
	assert_true(eq_get(eq));
	assert_int_equal(shrimp_trywait(&fabric.fid, fids, 2), 0);
	assert_int_equal(shrimp_trywait(&fabric.fid, &bad, 1), -FI_EINVAL);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_close(&w->fid), 0);
}

#define CASE(f) cmocka_unit_test_setup(f, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(wait_kinds),
		CASE(wait_fd_follows_signals),
		CASE(wait_arm_leaves_others_their_wake_up),
		CASE(wait_disturb),
		CASE(wait_sleep_keeps_its_time),
		CASE(wait_fds_are_counted),
		CASE(wait_fd_nests),
		CASE(wait_edge),
		CASE(set_open_refuses),
		CASE(set_is_busy_with_members),
		CASE(set_wakes_for_each_member),
		CASE(set_edge),
		CASE(set_of_cq_and_cntr),
		CASE(trywait_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
