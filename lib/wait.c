/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Wait objects and wait sets.
 *
 * Locks: waitset.lock -> an object's own; wait.lock is innermost.
 */
#include "lib/wait.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/cntr.h"
#include "lib/cq.h"
#include "lib/eq.h"
#include "lib/fabric.h"
#include "lib/fid.h"
#include "lib/refs.h"
#include "lib/tx.h"
#include "shm/log.h"

/* ---- the object ---- */

static int epoll_add(struct shrimp_wait *w, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(w->epfd, EPOLL_CTL_ADD, fd, &ev) ? -FI_ENOMEM : 0;
}

static void wait_fini(struct shrimp_wait *w)
{
	if (w->epfd >= 0)
		close(w->epfd);
	if (w->evfd >= 0)
		close(w->evfd);
	free(w->fds);
	pthread_mutex_destroy(&w->lock);
}

static int wait_init(struct shrimp_wait *w, enum fi_wait_obj obj)
{
	int ret;

	*w = (struct shrimp_wait){ .obj = obj, .epfd = -1, .evfd = -1 };
	pthread_mutex_init(&w->lock, NULL);
	if (obj == FI_WAIT_NONE || obj == FI_WAIT_YIELD)
		return 0;
	if (obj != FI_WAIT_FD && obj != FI_WAIT_UNSPEC)
		return -FI_ENOSYS;
	w->epfd = epoll_create1(EPOLL_CLOEXEC);
	w->evfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->epfd < 0 || w->evfd < 0)
		ret = -FI_EMFILE;
	else
		ret = epoll_add(w, w->evfd);
	if (ret) {
		rnic_log(RNIC_LOG_WARN, "wait object: no descriptor left");
		wait_fini(w);
	}
	return ret;
}

static void join_set(struct shrimp_wait_member *m, struct shrimp_waitset *set)
{
	m->set = set;
	m->wait = &set->wait;
	pthread_mutex_lock(&set->lock);
	cds_list_add_tail(&m->link, &set->members);
	pthread_mutex_unlock(&set->lock);
	shrimp_ref_get(&set->refs);
}

int shrimp_wait_open(struct shrimp_wait_member *m, struct fid *fid,
		     enum fi_wait_obj obj, struct fid_wait *set)
{
	m->fid = fid;
	m->set = NULL;
	m->wait = &m->own;
	if (obj != FI_WAIT_SET)
		return wait_init(&m->own, obj);
	if (!set)
		return -FI_EINVAL;
	join_set(m, (struct shrimp_waitset *)set);
	return 0;
}

void shrimp_wait_close(struct shrimp_wait_member *m)
{
	if (!m->set) {
		wait_fini(&m->own);
		return;
	}
	pthread_mutex_lock(&m->set->lock);
	cds_list_del(&m->link);
	pthread_mutex_unlock(&m->set->lock);
	shrimp_ref_put(&m->set->refs);
}

static struct shrimp_wait_fd *find_fd(struct shrimp_wait *w, int fd)
{
	for (size_t i = 0; i < w->nfds; i++)
		if (w->fds[i].fd == fd)
			return &w->fds[i];
	return NULL;
}

/* A new entry for @fd, in the table and in the epoll set. */
static int new_fd(struct shrimp_wait *w, int fd)
{
	if (w->nfds == w->room) {
		size_t room = w->room ? 2 * w->room : SHRIMP_WAIT_FDS;
		void *t = realloc(w->fds, room * sizeof(*w->fds));

		if (!t)
			return -FI_ENOMEM;
		w->fds = t;
		w->room = room;
	}
	if (epoll_add(w, fd))
		return -FI_ENOMEM;
	w->fds[w->nfds++] = (struct shrimp_wait_fd){ .fd = fd, .uses = 1 };
	return 0;
}

int shrimp_wait_add_fd(struct shrimp_wait_member *m, int fd)
{
	struct shrimp_wait *w = m->wait;
	struct shrimp_wait_fd *f;
	int ret = 0;

	if (w->epfd < 0)
		return 0;
	pthread_mutex_lock(&w->lock);
	f = find_fd(w, fd);
	if (f)
		f->uses++;
	else
		ret = new_fd(w, fd);
	pthread_mutex_unlock(&w->lock);
	return ret;
}

void shrimp_wait_del_fd(struct shrimp_wait_member *m, int fd)
{
	struct shrimp_wait *w = m->wait;
	struct shrimp_wait_fd *f;

	if (w->epfd < 0)
		return;
	pthread_mutex_lock(&w->lock);
	f = find_fd(w, fd);
	if (f && !--f->uses) {
		epoll_ctl(w->epfd, EPOLL_CTL_DEL, fd, NULL);
		*f = w->fds[--w->nfds];
	}
	pthread_mutex_unlock(&w->lock);
}

/* Arms; the lock is held. */
static void arm(struct shrimp_wait *w)
{
	uint64_t x;

	/* relaxed: written under the lock */
	if (!rnic_load32_relaxed(&w->sleepers) &&
	    read(w->evfd, &x, sizeof(x)) < 0 && errno != EAGAIN)
		rnic_log(RNIC_LOG_WARN, "wait object: eventfd is broken");
	rnic_store32_relaxed(&w->armed, 1);
}

void shrimp_wait_arm(struct shrimp_wait_member *m)
{
	struct shrimp_wait *w = m->wait;

	if (w->epfd < 0)
		return;
	pthread_mutex_lock(&w->lock);
	rnic_store32_relaxed(&w->handed, 1);
	arm(w);
	pthread_mutex_unlock(&w->lock);
	/* the store before the caller's look; pairs with the signal's fence */
	rnic_fence_full();
}

void shrimp_wait_enter(struct shrimp_wait_member *m)
{
	struct shrimp_wait *w = m->wait;

	pthread_mutex_lock(&w->lock);
	arm(w);
	rnic_add32_relaxed(&w->sleepers, 1);
	pthread_mutex_unlock(&w->lock);
	/* the store before the caller's look; pairs with the signal's fence */
	rnic_fence_full();
}

void shrimp_wait_leave(struct shrimp_wait_member *m)
{
	pthread_mutex_lock(&m->wait->lock);
	/* under the lock; a signal that still sees it wakes in vain */
	rnic_sub32_acqrel(&m->wait->sleepers, 1);
	pthread_mutex_unlock(&m->wait->lock);
}

static void wake(struct shrimp_wait *w)
{
	uint64_t one = 1;

	rnic_store32_relaxed(&w->armed, 0);
	rnic_store32_relaxed(&w->handed, 0);
	if (write(w->evfd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		rnic_log(RNIC_LOG_WARN, "wait object: eventfd is broken");
}

void shrimp_wait_signal(struct shrimp_wait_member *m)
{
	if (m->wait->epfd < 0)
		return;
	/* what was queued before the load; pairs with arming */
	rnic_fence_full();
	if (rnic_load32_relaxed(&m->wait->armed))
		wake(m->wait);
}

void shrimp_wait_disturb(struct shrimp_wait_member *m)
{
	/* relaxed: ordered by the endpoint's lock */
	if (m->wait->epfd >= 0 && (rnic_load32_relaxed(&m->wait->sleepers) ||
				   rnic_load32_relaxed(&m->wait->handed)))
		wake(m->wait);
}

int shrimp_wait_sleep(struct shrimp_wait_member *m, int timeout_ms)
{
	struct epoll_event ev;
	int n = epoll_wait(m->wait->epfd, &ev, 1, timeout_ms);

	return n == 0 ? -FI_ETIMEDOUT : 0;
}

int shrimp_wait_left(int timeout_ms, uint64_t start_ms)
{
	uint64_t gone;

	if (timeout_ms < 0)
		return -1;
	gone = shrimp_now_ms() - start_ms;
	return gone >= (uint64_t)timeout_ms ? 0 : timeout_ms - (int)gone;
}

int shrimp_wait_control(struct shrimp_wait_member *m, int command, void *arg)
{
	switch (command) {
	case FI_GETWAIT:
		if (m->wait->epfd < 0)
			return -FI_ENODATA;
		*(int *)arg = m->wait->epfd;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = m->wait->obj;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

/* ---- one object, whatever it is ---- */

static struct shrimp_wait_member *member_of(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return &((struct shrimp_cq *)fid)->wait;
	case FI_CLASS_CNTR:
		return &((struct shrimp_cntr *)fid)->wait;
	case FI_CLASS_EQ:
		return &((struct shrimp_eq *)fid)->wait;
	default:
		return NULL;
	}
}

/* Endpoints that the object polls, or NULL. */
static struct shrimp_polled *polled_of(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return &((struct shrimp_cq *)fid)->eps;
	case FI_CLASS_CNTR:
		return &((struct shrimp_cntr *)fid)->eps;
	default:
		return NULL;
	}
}

/* Has the client something to fetch? A CQ's signal is taken. */
static bool ready(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return shrimp_cq_ready((struct shrimp_cq *)fid);
	case FI_CLASS_CNTR:
		return shrimp_cntr_moved((struct shrimp_cntr *)fid);
	default:
		return shrimp_eq_ready((struct shrimp_eq *)fid);
	}
}

/*
 * The last look, the wait object armed: 0 if one may sleep, 1 if there is
 * something to fetch, -FI_EAGAIN if there is something to do.
 */
static int look(struct fid *fid)
{
	struct shrimp_polled *p = polled_of(fid);

	if (ready(fid))
		return 1;
	if (p && !shrimp_polled_arm(p))
		return -FI_EAGAIN;
	return ready(fid);
}

/* ---- wait sets: waiting ---- */

/* Calls @fn for all members until one gives not 0; returns that. */
static int for_each(struct shrimp_waitset *set, int (*fn)(struct fid *))
{
	struct shrimp_wait_member *m;
	int ret = 0;

	pthread_mutex_lock(&set->lock);
	cds_list_for_each_entry (m, &set->members, link) {
		ret = fn(m->fid);
		if (ret)
			break;
	}
	pthread_mutex_unlock(&set->lock);
	return ret;
}

static int is_ready(struct fid *fid)
{
	return ready(fid);
}

/* What ended a sleep may be no event: an attach request, a death. */
static int poke(struct fid *fid)
{
	struct shrimp_polled *p = polled_of(fid);

	if (p)
		shrimp_polled_poke(p);
	return 0;
}

static int set_wait(struct fid_wait *fid, int timeout)
{
	struct shrimp_waitset *set = (struct shrimp_waitset *)fid;
	struct shrimp_wait_member m = { .wait = &set->wait };
	uint64_t start = shrimp_now_ms();

	if (set->fabric->inherited)
		return -FI_EOPBADSTATE;
	for (;;) {
		int left = shrimp_wait_left(timeout, start);
		int ret;

		if (for_each(set, is_ready))
			return 0;
		if (!left)
			return -FI_ETIMEDOUT;
		shrimp_wait_enter(&m);
		ret = for_each(set, look);
		if (!ret)
			shrimp_wait_sleep(&m, left);
		shrimp_wait_leave(&m);
		if (ret > 0)
			return 0;
		for_each(set, poke);
	}
}

/* ---- fi_trywait ---- */

static int arm_one(struct fid *fid)
{
	struct shrimp_wait_member *m = member_of(fid), set;

	if (fid->fclass == FI_CLASS_WAIT) {
		set.wait = &((struct shrimp_waitset *)fid)->wait;
		m = &set;
	}
	if (!m || m->wait->epfd < 0)
		return -FI_EINVAL;
	shrimp_wait_arm(m);
	return 0;
}

static int look_one(struct fid *fid)
{
	if (fid->fclass == FI_CLASS_WAIT)
		return for_each((struct shrimp_waitset *)fid, look);
	return look(fid);
}

int shrimp_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int ret = 0;

	if (fabric && ((struct shrimp_fabric *)fabric)->inherited)
		return -FI_EOPBADSTATE;
	/* all are armed before the first look: several may share an object */
	for (int i = 0; i < count && !ret; i++)
		ret = arm_one(fids[i]);
	for (int i = 0; i < count && !ret; i++)
		ret = look_one(fids[i]);
	return ret > 0 ? -FI_EAGAIN : ret;
}

/* ---- wait sets: the object ---- */

static int set_close(struct fid *fid)
{
	struct shrimp_waitset *set = (struct shrimp_waitset *)fid;

	if (set->fabric->inherited)
		return -FI_EOPBADSTATE;
	if (shrimp_ref_count(&set->refs))
		return -FI_EBUSY;
	wait_fini(&set->wait);
	pthread_mutex_destroy(&set->lock);
	shrimp_ref_put(&set->fabric->refs);
	free(set);
	return 0;
}

static int set_control(struct fid *fid, int command, void *arg)
{
	struct shrimp_waitset *set = (struct shrimp_waitset *)fid;
	struct shrimp_wait_member m = { .wait = &set->wait };

	return shrimp_wait_control(&m, command, arg);
}

static struct fi_ops set_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = set_close,
	.bind = shrimp_no_bind,
	.control = set_control,
	.ops_open = shrimp_no_ops_open,
	.tostr = shrimp_no_tostr,
	.ops_set = shrimp_no_ops_set,
};

static struct fi_ops_wait set_ops = {
	.size = sizeof(struct fi_ops_wait),
	.wait = set_wait,
};

int shrimp_waitset_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			struct fid_wait **out)
{
	enum fi_wait_obj obj = attr ? attr->wait_obj : FI_WAIT_UNSPEC;
	struct shrimp_waitset *set;
	int ret;

	if (((struct shrimp_fabric *)fabric)->inherited)
		return -FI_EOPBADSTATE;
	if (attr && attr->flags)
		return -FI_EINVAL;
	if (obj != FI_WAIT_FD && obj != FI_WAIT_UNSPEC)
		return -FI_ENOSYS;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	ret = wait_init(&set->wait, obj);
	if (ret) {
		free(set);
		return ret;
	}
	pthread_mutex_init(&set->lock, NULL);
	CDS_INIT_LIST_HEAD(&set->members);
	set->fid.fid.fclass = FI_CLASS_WAIT;
	set->fid.fid.ops = &set_fid_ops;
	set->fid.ops = &set_ops;
	set->fabric = (struct shrimp_fabric *)fabric;
	shrimp_ref_get(&set->fabric->refs);
	*out = &set->fid;
	return 0;
}
