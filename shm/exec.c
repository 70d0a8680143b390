/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The executor, see exec.h for who it is and what excludes what.
 */
#include "shm/exec.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shm/breakage.h"
#include "shm/copy.h"
#include "shm/pin.h"

/*
 * Executors of elements that are not native take turns: of all domains, since
 * two of them may have registered the same memory. Innermost; held for one
 * element whose pages are there.
 */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

void rnic_exec_forked(void)
{
	pthread_mutex_init(&turn, NULL);
}

/* ---- bytes ---- */

/* rnic_exec_move() under way. */
struct mover {
	const struct rnic_exec_at *at; /* our side */
	size_t done;		       /* bytes of it */
	bool write;		       /* from there */
};

/*
 * pwrite() of @n bytes at @mem to the segment. Where RLIMIT_FSIZE has come down
 * below the place that would be a signal (contract L2).
 */
static ssize_t to_segment(const struct mover *m, void *mem, size_t n)
{
	uint64_t off = m->at->off + m->done;
	struct rlimit lim;

	if (!getrlimit(RLIMIT_FSIZE, &lim) && lim.rlim_cur < off + n) {
		if (rnic_pin_populate(mem, n, false)) {
			errno = EFAULT;
			return -1;
		}
		rnic_copy(m->at->mem + m->done, mem, n);
		return (ssize_t)n;
	}
	return pwrite(m->at->fd, mem, n, (off_t)off);
}

static int move_piece(void *mem, bool mapped, size_t *n, void *arg)
{
	struct mover *m = arg;
	off_t off = (off_t)(m->at->off + m->done);
	ssize_t ret = (ssize_t)*n;

	if (mapped && m->write)
		rnic_copy(mem, m->at->mem + m->done, *n);
	else if (mapped)
		rnic_copy(m->at->mem + m->done, mem, *n);
	else if (m->write)
		ret = pread(m->at->fd, mem, *n, off);
	else
		ret = to_segment(m, mem, *n);
	*n = ret > 0 ? (size_t)ret : 0;
	m->done += *n;
	if (ret > 0)
		return 0;
	return ret < 0 && errno == EFAULT ? -EFAULT : -EIO;
}

int rnic_exec_move(struct rnic_ctx *c, struct rnic_reach *x,
		   struct rnic_access *a, const struct rnic_exec_at *at,
		   size_t *done)
{
	struct mover m = { .at = at, .write = a->write };

	return rnic_reach_own(c, x, a, move_piece, &m, done);
}

/* ---- elements ---- */

/* rnic_exec_atomic() under way. */
struct doer {
	const struct rnic_exec_atomic *t; /* what to do */
	size_t size;			  /* of an element */
	size_t done;			  /* bytes of elements */
};

static void apply(const struct doer *d, void *mem)
{
	const struct rnic_exec_atomic *t = d->t;
	struct rnic_aop a = { .type = t->type, .op = t->op, .target = mem };
	bool native =
		RNIC_BROKEN(turns) || rnic_aop_native((uintptr_t)mem, d->size);

	if (t->operand)
		a.operand = t->operand + d->done;
	if (t->compare)
		a.compare = t->compare + d->done;
	if (t->result)
		a.result = t->result + d->done;
	if (!native)
		pthread_mutex_lock(&turn);
	rnic_aop_apply(&a);
	if (!native)
		pthread_mutex_unlock(&turn);
}

static int do_element(void *mem, bool mapped, size_t *n, void *arg)
{
	struct doer *d = arg;
	int ret = 0;

	if (*n < d->size)
		ret = -EINVAL;
	else if (!mapped)
		ret = rnic_pin_populate(mem, d->size,
					d->t->op != RNIC_AOP_READ);
	*n = ret ? 0 : d->size;
	if (!ret)
		apply(d, mem);
	d->done += *n;
	return ret;
}

int rnic_exec_atomic(struct rnic_ctx *c, struct rnic_reach *x,
		     struct rnic_access *a, const struct rnic_exec_atomic *t,
		     size_t *done)
{
	struct doer d = { .t = t, .size = rnic_aop_size(t->type) };

	a->unit = (uint32_t)d.size;
	return rnic_reach_own(c, x, a, do_element, &d, done);
}
