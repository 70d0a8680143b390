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
	rnic_add32_acqrel(&set->refs, 1);
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
	rnic_sub32_acqrel(&m->set->refs, 1);
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

void shrimp_wait_arm(struct shrimp_wait_member *m)
{
	uint64_t x;

	if (m->wait->epfd < 0)
		return;
	if (read(m->wait->evfd, &x, sizeof(x)) < 0 && errno != EAGAIN)
		rnic_log(RNIC_LOG_WARN, "wait object: eventfd is broken");
	rnic_store32_relaxed(&m->wait->armed, 1);
	/* the store before the caller's look; pairs with the signal's fence */
	rnic_fence_full();
}

void shrimp_wait_signal(struct shrimp_wait_member *m)
{
	uint64_t one = 1;

	if (m->wait->epfd < 0)
		return;
	/* what was queued before the load; pairs with shrimp_wait_arm() */
	rnic_fence_full();
	if (!rnic_load32_relaxed(&m->wait->armed))
		return;
	rnic_store32_relaxed(&m->wait->armed, 0);
	if (write(m->wait->evfd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		rnic_log(RNIC_LOG_WARN, "wait object: eventfd is broken");
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

/* ---- fi_trywait ---- */

static int trywait_set(struct shrimp_waitset *set);

static int trywait_one(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return shrimp_cq_trywait((struct shrimp_cq *)fid);
	case FI_CLASS_CNTR:
		return shrimp_cntr_trywait((struct shrimp_cntr *)fid);
	case FI_CLASS_EQ:
		return shrimp_eq_trywait((struct shrimp_eq *)fid);
	case FI_CLASS_WAIT:
		return trywait_set((struct shrimp_waitset *)fid);
	default:
		return -FI_EINVAL;
	}
}

static int trywait_set(struct shrimp_waitset *set)
{
	struct shrimp_wait_member *m;
	int ret = 0;

	pthread_mutex_lock(&set->lock);
	cds_list_for_each_entry(m, &set->members, link) {
		ret = trywait_one(m->fid);
		if (ret)
			break;
	}
	pthread_mutex_unlock(&set->lock);
	return ret;
}

int shrimp_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int ret = 0;

	(void)fabric;
	for (int i = 0; i < count && !ret; i++)
		ret = trywait_one(fids[i]);
	return ret;
}

/* ---- wait sets ---- */

/* Sleeps once: 0 woken or ready, -FI_ETIMEDOUT. */
static int set_sleep(struct shrimp_waitset *set, int timeout_ms)
{
	struct shrimp_wait_member m = { .wait = &set->wait };
	int ret = trywait_set(set);

	if (ret)
		return ret == -FI_EAGAIN ? 0 : ret;
	return shrimp_wait_sleep(&m, timeout_ms);
}

static int set_wait(struct fid_wait *fid, int timeout)
{
	struct shrimp_waitset *set = (struct shrimp_waitset *)fid;
	uint64_t start = shrimp_now_ms();

	for (;;) {
		int left = shrimp_wait_left(timeout, start);
		int ret = set_sleep(set, left);

		/* a wake-up that brought nothing is not an event */
		if (ret || trywait_set(set) == -FI_EAGAIN)
			return ret;
		if (!left)
			return -FI_ETIMEDOUT;
	}
}

static int set_close(struct fid *fid)
{
	struct shrimp_waitset *set = (struct shrimp_waitset *)fid;

	if (rnic_load32_acquire(&set->refs))
		return -FI_EBUSY;
	wait_fini(&set->wait);
	pthread_mutex_destroy(&set->lock);
	rnic_sub32_acqrel(&set->fabric->refs, 1);
	free(set);
	return 0;
}

static int set_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid, (void)bfid, (void)flags;
	return -FI_ENOSYS;
}

static int set_control(struct fid *fid, int command, void *arg)
{
	struct shrimp_waitset *set = (struct shrimp_waitset *)fid;
	struct shrimp_wait_member m = { .wait = &set->wait };

	return shrimp_wait_control(&m, command, arg);
}

static int set_ops_open(struct fid *fid, const char *name, uint64_t flags,
			void **ops, void *context)
{
	(void)fid, (void)name, (void)flags, (void)ops, (void)context;
	return -FI_ENOSYS;
}

static struct fi_ops set_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = set_close,
	.bind = set_bind,
	.control = set_control,
	.ops_open = set_ops_open,
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
	rnic_add32_acqrel(&set->fabric->refs, 1);
	*out = &set->fid;
	return 0;
}
