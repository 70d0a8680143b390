/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Completion queues: reading, the ring, waiting.
 *
 * Locks: see cq.h. Readers exclude each other by eps.lock, writers by the
 * ring lock.
 */
#include "lib/cq.h"

#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "lib/domain.h"
#include "lib/fid.h"
#include "lib/progress.h"
#include "lib/refs.h"
#include "lib/tx.h"
#include "shm/log.h"

enum { FIRST_SLOTS = 256 }; /* the ring doubles from here */

/* ---- the ring ---- */

/* Doubles the ring; the ring lock is held. */
static int grow(struct shrimp_cq *cq, uint32_t n)
{
	uint32_t size = cq->size ? 2 * cq->size : FIRST_SLOTS;
	struct shrimp_cq_slot *t = malloc(size * sizeof(*t));

	if (!t)
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		t[i] = cq->ring[(cq->head + i) & (cq->size - 1)];
	free(cq->ring);
	cq->ring = t;
	cq->size = size;
	cq->head = 0;
	return 0;
}

/* Entry number @i from the head; the ring lock is held. */
static struct shrimp_cq_slot *slot(const struct shrimp_cq *cq, uint32_t i)
{
	/* the size is a power of two */
	return &cq->ring[(cq->head + i) & (cq->size - 1)];
}

/* Out of line: an entry cannot be kept. */
static void lose(struct shrimp_cq *cq, struct shrimp_comp_err *err)
{
	if (!cq->overrun)
		rnic_log(RNIC_LOG_WARN,
			 "completion queue overrun: no memory for %u entries",
			 2 * cq->size);
	cq->overrun = true;
	free(err);
}

/* Queues @c, or, if not NULL, @err, which it owns from here on. */
static inline void push(struct shrimp_cq *cq, const struct shrimp_comp *c,
			struct shrimp_comp_err *err)
{
	struct shrimp_cq_slot *to;
	uint32_t n;

	rnic_spin_lock(&cq->ring_lock);
	/* relaxed: written under this lock only */
	n = rnic_load32_relaxed(&cq->queued);
	if (n == cq->size && grow(cq, n)) {
		lose(cq, err);
	} else {
		to = slot(cq, n);
		if (!err)
			to->c = *c;
		to->err = err;
		rnic_store32_relaxed(&cq->queued, n + 1);
	}
	rnic_spin_unlock(&cq->ring_lock);
	if (shrimp_wait_sleeps(&cq->wait))
		shrimp_wait_signal(&cq->wait);
}

void shrimp_cq_queue(struct shrimp_cq *cq, const struct shrimp_comp *c)
{
	push(cq, c, NULL);
}

void shrimp_cq_write_err(struct shrimp_cq *cq, const struct shrimp_comp_err *e)
{
	struct shrimp_comp_err *err = malloc(sizeof(*e));

	if (!err) {
		rnic_log(RNIC_LOG_WARN, "error completion lost: no memory");
		cq->overrun = true;
		return;
	}
	*err = *e;
	push(cq, NULL, err);
}

void shrimp_cq_format(const struct shrimp_cq *cq, void *to,
		      const struct shrimp_comp *c)
{
	/* all formats are prefixes of the tagged one */
	struct fi_cq_tagged_entry e = {
		.op_context = c->context,
		.flags = c->flags,
		.len = c->len,
		.buf = c->buf,
		.data = c->data,
		.tag = c->tag,
	};

	memcpy(to, &e, cq->entry_size);
}

/* Moves up to @n successes from the ring to the caller. How many were. */
static uint32_t move(struct shrimp_cq *cq, struct shrimp_cq_sink *sink,
		     uint32_t n)
{
	uint32_t got = 0;

	for (; got < n && sink->room; got++) {
		struct shrimp_cq_slot *from = slot(cq, got);

		if (from->err)
			break;
		shrimp_cq_put(sink, &from->c);
	}
	return got;
}

/*
 * Moves entries from the ring to the caller. Returns how many,
 * -FI_EAVAIL if an error is next, -FI_EAGAIN if there is none.
 */
static ssize_t pop(struct shrimp_cq *cq, struct shrimp_cq_sink *sink)
{
	uint32_t n, got;
	ssize_t ret;

	rnic_spin_lock(&cq->ring_lock);
	/* relaxed: written under this lock only */
	n = rnic_load32_relaxed(&cq->queued);
	got = move(cq, sink, n);
	if (got)
		ret = got;
	else if (n && slot(cq, 0)->err)
		ret = -FI_EAVAIL;
	else
		ret = cq->overrun ? -FI_EOVERRUN : -FI_EAGAIN;
	cq->head += got;
	rnic_store32_relaxed(&cq->queued, n - got);
	rnic_spin_unlock(&cq->ring_lock);
	return ret;
}

/* ---- reading ---- */

/* Progress of the endpoints; most queues have one. */
RNIC_HOT void drive(struct shrimp_cq *cq, struct shrimp_cq_sink *sink)
{
	if (RNIC_LIKELY(cq->eps.n == 1))
		shrimp_ep_progress(cq->eps.eps[0].ep, sink);
	else
		shrimp_polled_progress(&cq->eps, sink);
}

RNIC_HOT ssize_t read_locked(struct shrimp_cq *cq, struct shrimp_cq_sink *sink)
{
	/*
	 * relaxed: what is queued a moment later is read next time. A read
	 * without room is how some clients ask for progress.
	 */
	if (RNIC_LIKELY(!rnic_load32_relaxed(&cq->queued) || !sink->room)) {
		drive(cq, sink->room ? sink : NULL);
		if (sink->count)
			return (ssize_t)sink->count;
		if (!rnic_load32_relaxed(&cq->queued) && !cq->overrun)
			return cq->domain->inherited ? -FI_EOPBADSTATE
						     : -FI_EAGAIN;
	}
	return pop(cq, sink);
}

/*
 * Clients read again after every success, until there is nothing. That call
 * only looks at the lane which the success came from: it lies on the path of
 * each message.
 */
RNIC_HOT bool just_emptied(struct shrimp_cq *cq)
{
	const rnic_a64 *tail = cq->tail;

	cq->tail = NULL;
	/* relaxed: a look; what is there is read by the next call */
	return tail && (uint32_t)rnic_load64_relaxed(tail) != cq->awaits &&
	       !rnic_load32_relaxed(&cq->queued);
}

RNIC_HOT ssize_t read_any(struct fid_cq *fid, void *buf, size_t count,
			  fi_addr_t *src)
{
	struct shrimp_cq *cq = (struct shrimp_cq *)fid;
	struct shrimp_cq_sink sink = {
		.cq = cq, .next = buf, .src = src, .room = buf ? count : 0
	};
	ssize_t ret;

	rnic_spin_lock(&cq->eps.lock);
	if (just_emptied(cq)) {
		ret = -FI_EAGAIN;
	} else {
		ret = read_locked(cq, &sink);
		if (sink.room) {
			cq->tail = sink.tail;
			cq->awaits = sink.awaits;
		}
	}
	rnic_spin_unlock(&cq->eps.lock);
	return ret;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return read_any(fid, buf, count, NULL);
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count,
			   fi_addr_t *src)
{
	return read_any(fid, buf, count, src);
}

/* The first error of the ring, taken out; NULL if none is next. */
static struct shrimp_comp_err *pop_error(struct shrimp_cq *cq)
{
	struct shrimp_comp_err *e = NULL;
	uint32_t n;

	rnic_spin_lock(&cq->ring_lock);
	n = rnic_load32_relaxed(&cq->queued);
	if (n)
		e = slot(cq, 0)->err;
	if (e) {
		cq->head++;
		rnic_store32_relaxed(&cq->queued, n - 1);
	}
	rnic_spin_unlock(&cq->ring_lock);
	return e;
}

/*
 * fi_cq(3): into the caller's buffer if there is one, else ours. The entry of
 * clients before 1.5 ends with err_data.
 */
static void give_err_data(struct shrimp_cq *cq, struct fi_cq_err_entry *buf)
{
	size_t n = cq->last.err_data_size;

	if (cq->domain->api < FI_VERSION(1, 5)) {
		buf->err_data = n ? cq->last.err_data : NULL;
		return;
	}
	if (!buf->err_data_size || !buf->err_data) {
		buf->err_data = n ? cq->last.err_data : NULL;
		buf->err_data_size = n;
		return;
	}
	if (n > buf->err_data_size)
		n = buf->err_data_size;
	memcpy(buf->err_data, cq->last.err_data, n);
	buf->err_data_size = n;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf,
			  uint64_t flags)
{
	struct shrimp_cq *cq = (struct shrimp_cq *)fid;
	struct shrimp_comp_err *e;
	ssize_t ret = -FI_EAGAIN;

	(void)flags;
	if (cq->domain->inherited)
		return -FI_EOPBADSTATE;
	rnic_spin_lock(&cq->eps.lock);
	e = pop_error(cq);
	if (!e) {
		/* some clients use it to make progress */
		shrimp_polled_progress(&cq->eps, NULL);
		e = pop_error(cq);
	}
	if (e) {
		cq->last = *e;
		free(e);
		buf->op_context = cq->last.c.context;
		buf->flags = cq->last.c.flags;
		buf->len = cq->last.c.len;
		buf->buf = cq->last.c.buf;
		buf->data = cq->last.c.data;
		buf->tag = cq->last.c.tag;
		buf->olen = cq->last.olen;
		buf->err = cq->last.err;
		buf->prov_errno = cq->last.prov_errno;
		give_err_data(cq, buf);
		ret = 1;
	}
	rnic_spin_unlock(&cq->eps.lock);
	return ret;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno,
			       const void *err_data, char *buf, size_t len)
{
	const char *text = fi_strerror(prov_errno);

	(void)fid, (void)err_data;
	if (buf && len) {
		strncpy(buf, text, len - 1);
		buf[len - 1] = '\0';
	}
	return text;
}

/* ---- waiting ---- */

bool shrimp_cq_ready(struct shrimp_cq *cq)
{
	/* relaxed: what was queued before the sleeper's fence is seen */
	return rnic_load32_relaxed(&cq->queued) ||
	       (rnic_load32_relaxed(&cq->signaled) &&
		rnic_xchg32_acqrel(&cq->signaled, 0));
}

/* The last look before a sleep: false if there is something to do. */
static bool idle(struct shrimp_cq *cq)
{
	/* relaxed: after the fence of shrimp_wait_enter() */
	return !rnic_load32_relaxed(&cq->queued) &&
	       !rnic_load32_relaxed(&cq->signaled);
}

bool shrimp_cq_poll(struct shrimp_cq *cq)
{
	rnic_spin_lock(&cq->eps.lock);
	if (!rnic_load32_relaxed(&cq->queued))
		shrimp_polled_progress(&cq->eps, NULL);
	rnic_spin_unlock(&cq->eps.lock);
	return rnic_load32_relaxed(&cq->queued);
}

/* Sleeps once, or yields where there is nothing to sleep on. */
static void nap(struct shrimp_cq *cq, int left)
{
	if (!shrimp_wait_sleeps(&cq->wait)) {
		sched_yield();
		return;
	}
	shrimp_wait_enter(&cq->wait);
	if (idle(cq) && shrimp_polled_arm(&cq->eps) && idle(cq))
		shrimp_wait_sleep(&cq->wait, left);
	shrimp_wait_leave(&cq->wait);
	shrimp_polled_disarm(&cq->eps);
}

/* Entries to wait for before sread returns. */
static size_t threshold(const struct shrimp_cq *cq, const void *cond,
			size_t count)
{
	size_t n = cq->threshold && cond ? (size_t)(uintptr_t)cond : 1;

	return n < count ? n : count;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count,
			    fi_addr_t *src, const void *cond, int timeout)
{
	struct shrimp_cq *cq = (struct shrimp_cq *)fid;
	uint64_t start = shrimp_now_ms();
	size_t want = threshold(cq, cond, count), got = 0;
	unsigned int spin = cq->domain->set->spin;

	if (cq->wait.wait->obj == FI_WAIT_NONE || cq->wait.set)
		return -FI_EINVAL;
	for (unsigned int polls = 1;; polls++) {
		ssize_t n = read_any(fid, (char *)buf + got * cq->entry_size,
				     count - got, src ? src + got : NULL);
		int left = shrimp_wait_left(timeout, start);

		if (n > 0)
			got += (size_t)n;
		if (n > 0 && got >= want)
			return (ssize_t)got;
		if (n < 0 && n != -FI_EAGAIN)
			return got ? (ssize_t)got : n;
		/* acquire: pairs with cq_signal() */
		if (rnic_xchg32_acqrel(&cq->signaled, 0) || !left)
			return got ? (ssize_t)got : -FI_EAGAIN;
		if (polls > spin)
			nap(cq, left);
	}
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count,
			const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct shrimp_cq *cq = (struct shrimp_cq *)fid;

	if (cq->domain->inherited)
		return -FI_EOPBADSTATE;
	/* release: what the signaller did before; pairs with the exchange in
	 * cq_sreadfrom() */
	rnic_store32_release(&cq->signaled, 1);
	shrimp_wait_signal(&cq->wait);
	return 0;
}

/* ---- the object ---- */

int shrimp_cq_attach_ep(struct shrimp_cq *cq, struct shrimp_ep *ep)
{
	return shrimp_polled_attach(&cq->eps, ep, &cq->wait);
}

void shrimp_cq_detach_ep(struct shrimp_cq *cq, struct shrimp_ep *ep)
{
	shrimp_polled_detach(&cq->eps, ep, &cq->wait);
	rnic_spin_lock(&cq->eps.lock);
	cq->tail = NULL;
	rnic_spin_unlock(&cq->eps.lock);
}

/*
 * Locks that a thread of the parent held are held for ever here. What is queued
 * is dropped, so that a read finds nothing and looks why: one that finds
 * something does not look.
 */
void shrimp_cq_forked(struct shrimp_cq *cq)
{
	rnic_spin_init(&cq->eps.lock);
	rnic_spin_init(&cq->ring_lock);
	cq->tail = NULL;
	cq->overrun = false;
	/* relaxed: there is one thread */
	rnic_store32_relaxed(&cq->queued, 0);
}

static int cq_close(struct fid *fid)
{
	struct shrimp_cq *cq = (struct shrimp_cq *)fid;

	if (cq->domain->inherited)
		return -FI_EOPBADSTATE;
	if (shrimp_polled_busy(&cq->eps) || shrimp_ref_count(&cq->refs))
		return -FI_EBUSY;
	for (struct shrimp_comp_err *e; rnic_load32_relaxed(&cq->queued);
	     free(e)) {
		e = slot(cq, 0)->err;
		cq->head++;
		/* nobody else is here: the queue is being closed */
		rnic_sub32_acqrel(&cq->queued, 1);
	}
	shrimp_domain_lock(cq->domain);
	cds_list_del(&cq->in_dom);
	shrimp_domain_unlock(cq->domain);
	shrimp_wait_close(&cq->wait);
	shrimp_polled_fini(&cq->eps);
	free(cq->ring);
	shrimp_ref_put(&cq->domain->refs);
	free(cq);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct shrimp_cq *cq = (struct shrimp_cq *)fid;

	return shrimp_wait_control(&cq->wait, command, arg);
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = shrimp_no_bind,
	.control = cq_control,
	.ops_open = shrimp_no_ops_open,
	.tostr = shrimp_no_tostr,
	.ops_set = shrimp_no_ops_set,
};

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

static size_t size_of(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_UNSPEC:
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return 0;
	}
}

static int check_attr(const struct fi_cq_attr *attr)
{
	if (!size_of(attr->format) || attr->flags & ~FI_AFFINITY ||
	    attr->wait_cond > FI_CQ_COND_THRESHOLD)
		return -FI_EINVAL;
	return 0;
}

int shrimp_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		   struct fid_cq **out, void *context)
{
	static const struct fi_cq_attr none;
	struct shrimp_domain *d = shrimp_domain_of(domain);
	struct shrimp_cq *cq;
	int ret;

	if (!attr)
		attr = (struct fi_cq_attr *)(uintptr_t)&none;
	ret = d->inherited ? -FI_EOPBADSTATE : check_attr(attr);
	if (ret)
		return ret;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	ret = shrimp_wait_open(&cq->wait, &cq->fid.fid, attr->wait_obj,
			       attr->wait_set);
	if (ret) {
		free(cq);
		return ret;
	}
	cq->domain = d;
	cq->format = attr->format;
	cq->entry_size = size_of(attr->format);
	cq->threshold = attr->wait_cond == FI_CQ_COND_THRESHOLD;
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &fid_ops;
	cq->fid.ops = &cq_ops;
	shrimp_ref_get(&d->refs);
	shrimp_domain_lock(d);
	cds_list_add_tail(&cq->in_dom, &d->cqs);
	shrimp_domain_unlock(d);
	*out = &cq->fid;
	return 0;
}
