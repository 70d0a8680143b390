/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Event queues.
 */
#include "lib/eq.h"

#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "lib/domain.h"
#include "lib/fabric.h"
#include "lib/fid.h"
#include "lib/mr.h"
#include "lib/refs.h"
#include "lib/tx.h"

enum { HELP_MS = 10 }; /* longest sleep while closes are pending */

/* An event or, if err is not 0, an error. */
struct shrimp_eq_event {
	struct cds_list_head link;  /* in eq->events */
	uint32_t event;		    /* FI_AV_COMPLETE and so on */
	struct fi_eq_err_entry err; /* err.err 0: no error */
	size_t len;		    /* bytes of buf */
	uint8_t buf[];		    /* the entry */
};

static void append(struct shrimp_eq *eq, struct shrimp_eq_event *e)
{
	pthread_mutex_lock(&eq->lock);
	cds_list_add_tail(&e->link, &eq->events);
	pthread_mutex_unlock(&eq->lock);
	shrimp_wait_signal(&eq->wait);
}

static int post(struct shrimp_eq *eq, const struct shrimp_eq_event *proto,
		const void *buf)
{
	struct shrimp_eq_event *e = malloc(sizeof(*e) + proto->len);

	if (!e)
		return -FI_ENOMEM;
	*e = *proto;
	if (proto->len)
		memcpy(e->buf, buf, proto->len);
	append(eq, e);
	return 0;
}

int shrimp_eq_post(struct shrimp_eq *eq, uint32_t event, const void *buf,
		   size_t len)
{
	struct shrimp_eq_event e = { .event = event, .len = len };

	return post(eq, &e, buf);
}

int shrimp_eq_post_err(struct shrimp_eq *eq, const struct fi_eq_err_entry *err)
{
	struct shrimp_eq_event e = { .err = *err };

	e.err.err_data = NULL;
	e.err.err_data_size = 0;
	return post(eq, &e, NULL);
}

struct shrimp_eq_event *shrimp_eq_reserve(size_t len)
{
	struct shrimp_eq_event *e = calloc(1, sizeof(*e) + len);

	if (e)
		e->len = len;
	return e;
}

void shrimp_eq_unreserve(struct shrimp_eq_event *e)
{
	free(e);
}

void shrimp_eq_post_reserved(struct shrimp_eq *eq, struct shrimp_eq_event *e,
			     uint32_t event, const void *buf,
			     const struct fi_eq_err_entry *err)
{
	if (err)
		e->err = *err;
	else
		memcpy(e->buf, buf, e->len);
	e->event = event;
	/* eq_close() waits for this after the reference is gone */
	shrimp_ref_get(&eq->posting);
	shrimp_ref_put(&eq->pending);
	shrimp_ref_put(&eq->refs);
	append(eq, e);
	shrimp_ref_put(&eq->posting);
}

/* The oldest event, the lock held; NULL if there is none. */
static struct shrimp_eq_event *first(struct shrimp_eq *eq)
{
	if (cds_list_empty(&eq->events))
		return NULL;
	return cds_list_first_entry(&eq->events, struct shrimp_eq_event, link);
}

static ssize_t take(struct shrimp_eq *eq, uint32_t *event, void *buf,
		    size_t len, uint64_t flags)
{
	struct shrimp_eq_event *e = first(eq);
	ssize_t ret;

	if (!e)
		return -FI_EAGAIN;
	if (e->err.err)
		return -FI_EAVAIL;
	if (e->len > len)
		return -FI_ETOOSMALL;
	if (event)
		*event = e->event;
	if (e->len)
		memcpy(buf, e->buf, e->len);
	ret = (ssize_t)e->len;
	if (!(flags & FI_PEEK)) {
		cds_list_del(&e->link);
		free(e);
	}
	return ret;
}

static void reap(struct shrimp_domain *d, void *arg)
{
	(void)arg;
	shrimp_mr_reap(d);
}

/* Closes that @eq will be told of: there may be no agent to end them. */
static void help(struct shrimp_eq *eq)
{
	if (shrimp_ref_count(&eq->pending))
		shrimp_domain_each(reap, NULL);
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf,
		       size_t len, uint64_t flags)
{
	struct shrimp_eq *eq = (struct shrimp_eq *)fid;
	ssize_t ret;

	if (eq->fabric->inherited)
		return -FI_EOPBADSTATE;
	help(eq);
	pthread_mutex_lock(&eq->lock);
	ret = take(eq, event, buf, len, flags);
	pthread_mutex_unlock(&eq->lock);
	return ret;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf,
			  uint64_t flags)
{
	struct shrimp_eq *eq = (struct shrimp_eq *)fid;
	ssize_t ret = -FI_EAGAIN;
	struct shrimp_eq_event *e;

	if (eq->fabric->inherited)
		return -FI_EOPBADSTATE;
	pthread_mutex_lock(&eq->lock);
	e = first(eq);
	if (e && e->err.err) {
		*buf = e->err;
		ret = sizeof(*buf);
		if (!(flags & FI_PEEK)) {
			cds_list_del(&e->link);
			free(e);
		}
	}
	pthread_mutex_unlock(&eq->lock);
	return ret;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf,
			size_t len, uint64_t flags)
{
	struct shrimp_eq *eq = (struct shrimp_eq *)fid;
	int ret;

	if (eq->fabric->inherited)
		return -FI_EOPBADSTATE;
	if (!eq->writable || flags)
		return -FI_EINVAL;
	ret = shrimp_eq_post(eq, event, buf, len);
	return ret ? ret : (ssize_t)len;
}

bool shrimp_eq_ready(struct shrimp_eq *eq)
{
	bool yes;

	pthread_mutex_lock(&eq->lock);
	yes = first(eq);
	pthread_mutex_unlock(&eq->lock);
	return yes;
}

/* Sleeps once, or yields where there is nothing to sleep on. */
static void nap(struct shrimp_eq *eq, int left)
{
	if (!shrimp_wait_sleeps(&eq->wait)) {
		sched_yield();
		return;
	}
	shrimp_wait_enter(&eq->wait);
	if (!shrimp_eq_ready(eq))
		shrimp_wait_sleep(&eq->wait, left);
	shrimp_wait_leave(&eq->wait);
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf,
			size_t len, int timeout, uint64_t flags)
{
	struct shrimp_eq *eq = (struct shrimp_eq *)fid;
	uint64_t start = shrimp_now_ms();

	if (eq->fabric->inherited)
		return -FI_EOPBADSTATE;
	if (eq->wait.wait->obj == FI_WAIT_NONE || eq->wait.set)
		return -FI_EINVAL;
	for (;;) {
		ssize_t ret = eq_read(fid, event, buf, len, flags);
		int left = shrimp_wait_left(timeout, start);

		if (ret != -FI_EAGAIN || !left)
			return ret;
		if (shrimp_ref_count(&eq->pending) &&
		    (left < 0 || left > HELP_MS))
			left = HELP_MS;
		nap(eq, left);
	}
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno,
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

static int eq_close(struct fid *fid)
{
	struct shrimp_eq *eq = (struct shrimp_eq *)fid;
	struct shrimp_eq_event *e;

	if (eq->fabric->inherited)
		return -FI_EOPBADSTATE;
	if (shrimp_ref_count(&eq->refs))
		return -FI_EBUSY;
	/* threads of ours that are about to leave post_reserved() */
	while (shrimp_ref_count(&eq->posting))
		sched_yield();
	while ((e = first(eq))) {
		cds_list_del(&e->link);
		free(e);
	}
	shrimp_wait_close(&eq->wait);
	pthread_mutex_destroy(&eq->lock);
	shrimp_ref_put(&eq->fabric->refs);
	free(eq);
	return 0;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct shrimp_eq *eq = (struct shrimp_eq *)fid;

	return shrimp_wait_control(&eq->wait, command, arg);
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = shrimp_no_bind,
	.control = eq_control,
	.ops_open = shrimp_no_ops_open,
	.tostr = shrimp_no_tostr,
	.ops_set = shrimp_no_ops_set,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int shrimp_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		   struct fid_eq **out, void *context)
{
	static const struct fi_eq_attr none;
	struct shrimp_eq *eq;
	int ret;

	if (((struct shrimp_fabric *)fabric)->inherited)
		return -FI_EOPBADSTATE;
	if (!attr)
		attr = (struct fi_eq_attr *)(uintptr_t)&none;
	if (attr->flags & ~(FI_WRITE | FI_AFFINITY))
		return -FI_EINVAL;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	ret = shrimp_wait_open(&eq->wait, &eq->fid.fid, attr->wait_obj,
			       attr->wait_set);
	if (ret) {
		free(eq);
		return ret;
	}
	pthread_mutex_init(&eq->lock, NULL);
	CDS_INIT_LIST_HEAD(&eq->events);
	eq->writable = attr->flags & FI_WRITE;
	eq->fabric = (struct shrimp_fabric *)fabric;
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &fid_ops;
	eq->fid.ops = &eq_ops;
	shrimp_ref_get(&eq->fabric->refs);
	*out = &eq->fid;
	return 0;
}
