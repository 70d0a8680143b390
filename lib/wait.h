/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Wait objects: an epoll fd over the endpoints that may end the wait and an
 * eventfd for what this process itself does. Wait sets and fi_trywait().
 *
 * The edge between looking and sleeping: the sleeper arms (store, full
 * fence) and then looks; whoever queues something does so before a full
 * fence and a load of armed. One of them sees the other.
 *
 * Arming empties the eventfd only while nobody sleeps: what is in it may be
 * for another sleeper, who has not run yet. With a set, the one object is
 * armed first, then all members are looked at.
 */
#ifndef SHRIMP_WAIT_H
#define SHRIMP_WAIT_H

#include <pthread.h>
#include <rdma/fi_eq.h>
#include <rdma/fabric.h>
#include <urcu/list.h>

#include "shm/atomic.h"

enum { SHRIMP_WAIT_FDS = 64 }; /* first size of the table of fds */

/* An fd in the epoll set, added so many times. */
struct shrimp_wait_fd {
	int fd;		   /* of an endpoint */
	unsigned int uses; /* add minus del */
};

struct shrimp_wait {
	enum fi_wait_obj obj;	    /* what the client asked for */
	int epfd;		    /* -1: nothing to sleep on */
	int evfd;		    /* local wake-ups */
	rnic_a32 armed;		    /* 1: the next signal writes */
	rnic_a32 handed;	    /* 1: fi_trywait() gave the fd away */
	rnic_a32 sleepers;	    /* threads between enter and leave */
	pthread_mutex_t lock;	    /* protects the table, and emptying
					 * against entering; innermost */
	struct shrimp_wait_fd *fds; /* fds in epfd */
	size_t nfds;		    /* entries used */
	size_t room;		    /* entries allocated */
};

/* A wait set, fi_wait(3): its members share its wait object. */
struct shrimp_waitset {
	struct fid_wait fid;	      /* first: what clients hold */
	struct shrimp_wait wait;      /* the object */
	pthread_mutex_t lock;	      /* protects members; outermost */
	struct cds_list_head members; /* struct shrimp_wait_member.link */
	rnic_a32 refs;		      /* members */
	struct shrimp_fabric *fabric; /* parent, referenced */
};

/* An object with a wait object: CQ, counter, EQ. */
struct shrimp_wait_member {
	struct cds_list_head link;  /* in waitset->members */
	struct shrimp_waitset *set; /* or NULL: own is used */
	struct shrimp_wait own;	    /* used without a set */
	struct shrimp_wait *wait;   /* the one in use */
	struct fid *fid;	    /* the object */
};

/*
 * Opens the wait object @obj of @fid; with FI_WAIT_SET it is @set's. Returns
 * 0, -FI_ENOSYS (FI_WAIT_MUTEX_COND), -FI_EINVAL, -FI_ENOMEM, -FI_EMFILE.
 * Partner: shrimp_wait_close().
 */
int shrimp_wait_open(struct shrimp_wait_member *m, struct fid *fid,
		     enum fi_wait_obj obj, struct fid_wait *set);

/* Closes the wait object, or leaves the set. */
void shrimp_wait_close(struct shrimp_wait_member *m);

/* True if there is an object to sleep on (FI_WAIT_NONE, _YIELD: none). */
static inline bool shrimp_wait_sleeps(const struct shrimp_wait_member *m)
{
	return m->wait->epfd >= 0;
}

/*
 * Adds an endpoint's fd to what may end the wait; the same fd may be added
 * again. Returns 0 or -FI_ENOMEM. Partner: shrimp_wait_del_fd().
 */
int shrimp_wait_add_fd(struct shrimp_wait_member *m, int fd);

/* Takes back one shrimp_wait_add_fd(). */
void shrimp_wait_del_fd(struct shrimp_wait_member *m, int fd);

/*
 * fi_trywait(): before the last look. Empties the eventfd if nobody sleeps,
 * arms, full fence. Any thread; takes the lock.
 */
void shrimp_wait_arm(struct shrimp_wait_member *m);

/*
 * A thread that will call shrimp_wait_sleep(): before its last look, likewise.
 * Partner: shrimp_wait_leave().
 */
void shrimp_wait_enter(struct shrimp_wait_member *m);

/* After the sleep, or instead of it. Takes the lock. */
void shrimp_wait_leave(struct shrimp_wait_member *m);

/* Something was queued: wakes whoever is armed. Any thread, any lock held. */
void shrimp_wait_signal(struct shrimp_wait_member *m);

/*
 * An endpoint of @m is no longer armed: whoever sleeps on it wakes, and arms
 * it again. The endpoint's lock is held, under which sleepers arm it.
 */
void shrimp_wait_disturb(struct shrimp_wait_member *m);

/*
 * Sleeps until something happens, or @timeout_ms (-1: for ever). After
 * shrimp_wait_enter() and a look. Returns 0, or -FI_ETIMEDOUT.
 */
int shrimp_wait_sleep(struct shrimp_wait_member *m, int timeout_ms);

/* FI_GETWAIT and FI_GETWAITOBJ of fi_control(3). 0, -FI_ENODATA, -FI_ENOSYS */
int shrimp_wait_control(struct shrimp_wait_member *m, int command, void *arg);

/* fi_wait_open(3). Returns 0, -FI_ENOSYS, -FI_ENOMEM, -FI_EMFILE. */
int shrimp_waitset_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			struct fid_wait **set);

/*
 * fi_trywait(3): 0 if one may sleep on the wait objects of all @fids,
 * -FI_EAGAIN if one has something, -FI_EINVAL.
 */
int shrimp_trywait(struct fid_fabric *fabric, struct fid **fids, int count);

/* What is left of @timeout_ms (-1: for ever) since @start_ms. */
int shrimp_wait_left(int timeout_ms, uint64_t start_ms);

#endif /* SHRIMP_WAIT_H */
