/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * All objects: every entry of every ops table can be called, what is not
 * implemented says so, and the extension ops count what passed.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_ext_shrimp.h>
#include <rdma/fi_rma.h>

enum { TAG = 131 };

/* ---- tables ---------------------------------------------------------------- */

/*
 * An ops table begins with its size and is then nothing but function
 * pointers. It must be at least as long as our headers know, and full.
 */
static void full(const void *table, size_t known, const char *what)
{
	const size_t *size = table;
	void *const *entry = table;
	size_t i;

	if (!table)
		th_fail(__FILE__, __LINE__, "%s is NULL", what);
	if (*size < known)
		th_fail(__FILE__, __LINE__, "%s: size %zu, wanted %zu", what,
			*size, known);
	for (i = 1; i < known / sizeof(void *); i++)
		if (!entry[i])
			th_fail(__FILE__, __LINE__, "%s: entry %zu is NULL",
				what, i);
}

#define FULL(ops) full(ops, sizeof(*(ops)), #ops)

static void fid_full(struct fid *fid, size_t fclass)
{
	th_eq(fid->fclass, fclass);
	FULL(fid->ops);
}

static void ep_tables(struct fid_ep *ep)
{
	fid_full(&ep->fid, FI_CLASS_EP);
	FULL(ep->ops);
	FULL(ep->cm);
	FULL(ep->msg);
	FULL(ep->rma);
	FULL(ep->tagged);
	FULL(ep->atomic);
	FULL(ep->collective);
}

static void event_tables(struct th_stack *s)
{
	struct fi_wait_attr wattr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_poll_attr pattr = { 0 };
	struct fi_eq_attr eattr = { 0 };
	struct fid_wait *wait;
	struct fid_poll *poll;
	struct fid_eq *eq;

	th_ok(fi_wait_open(s->fabric, &wattr, &wait));
	fid_full(&wait->fid, FI_CLASS_WAIT);
	FULL(wait->ops);
	th_ok(fi_close(&wait->fid));
	th_ok(fi_poll_open(s->domain, &pattr, &poll));
	fid_full(&poll->fid, FI_CLASS_POLL);
	FULL(poll->ops);
	th_ok(fi_close(&poll->fid));
	th_ok(fi_eq_open(s->fabric, &eattr, &eq, NULL));
	fid_full(&eq->fid, FI_CLASS_EQ);
	FULL(eq->ops);
	th_ok(fi_close(&eq->fid));
}

static void every_table_is_full(struct th_self *self)
{
	struct th_stack_opts o = { .cntrs = true };
	struct th_stack s;

	(void)self;
	th_stack_open(&s, &o);
	fid_full(&s.fabric->fid, FI_CLASS_FABRIC);
	FULL(s.fabric->ops);
	fid_full(&s.domain->fid, FI_CLASS_DOMAIN);
	FULL(s.domain->ops);
	FULL(s.domain->mr);
	fid_full(&s.av->fid, FI_CLASS_AV);
	FULL(s.av->ops);
	fid_full(&s.txcq->fid, FI_CLASS_CQ);
	FULL(s.txcq->ops);
	fid_full(&s.txcntr->fid, FI_CLASS_CNTR);
	FULL(s.txcntr->ops);
	ep_tables(s.ep);
	event_tables(&s);
	th_stack_close(&s);
}

/* ---- nobody, and what is not there ---------------------------------------------- */

/* There is nobody at address 0. */
static void rma_to_nobody(struct fid_ep *ep, char *buf)
{
	struct iovec iov = { buf, 8 };
	struct fi_rma_iov there = { .len = 8, .key = 1 };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.iov_count = 1,
				.rma_iov = &there,
				.rma_iov_count = 1 };

	th_eq(fi_read(ep, buf, 8, NULL, 0, 0, 1, buf), -FI_EINVAL);
	th_eq(fi_readv(ep, &iov, NULL, 1, 0, 0, 1, buf), -FI_EINVAL);
	th_eq(fi_readmsg(ep, &m, 0), -FI_EINVAL);
	th_eq(fi_write(ep, buf, 8, NULL, 0, 0, 1, buf), -FI_EINVAL);
	th_eq(fi_writev(ep, &iov, NULL, 1, 0, 0, 1, buf), -FI_EINVAL);
	th_eq(fi_writemsg(ep, &m, 0), -FI_EINVAL);
	th_eq(fi_inject_write(ep, buf, 8, 0, 0, 1), -FI_EINVAL);
	th_eq(fi_writedata(ep, buf, 8, NULL, 1, 0, 0, 1, buf), -FI_EINVAL);
	th_eq(fi_inject_writedata(ep, buf, 8, 1, 0, 0, 1), -FI_EINVAL);
}

static void atomic_to_nobody(struct fid_ep *ep, char *buf)
{
	struct fi_ioc ioc = { buf, 1 };
	struct fi_rma_ioc there = { .count = 1, .key = 1 };
	struct fi_msg_atomic m = { .msg_iov = &ioc,
				   .iov_count = 1,
				   .rma_iov = &there,
				   .rma_iov_count = 1,
				   .datatype = FI_UINT64,
				   .op = FI_SUM };

	th_eq(fi_atomic(ep, buf, 1, NULL, 0, 0, 1, FI_UINT64, FI_SUM, buf),
	      -FI_EINVAL);
	th_eq(fi_atomicv(ep, &ioc, NULL, 1, 0, 0, 1, FI_UINT64, FI_SUM, buf),
	      -FI_EINVAL);
	th_eq(fi_atomicmsg(ep, &m, 0), -FI_EINVAL);
	th_eq(fi_inject_atomic(ep, buf, 1, 0, 0, 1, FI_UINT64, FI_SUM),
	      -FI_EINVAL);
	th_eq(fi_fetch_atomic(ep, buf, 1, NULL, buf, NULL, 0, 0, 1, FI_UINT64,
			      FI_SUM, buf),
	      -FI_EINVAL);
	th_eq(fi_fetch_atomicmsg(ep, &m, &ioc, NULL, 1, 0), -FI_EINVAL);
	th_eq(fi_compare_atomic(ep, buf, 1, NULL, buf, NULL, buf, NULL, 0, 0, 1,
				FI_UINT64, FI_CSWAP, buf),
	      -FI_EINVAL);
}

static void nobody_and_nothing(struct th_self *self)
{
	struct th_stack s;
	char buf[8] = "";

	(void)self;
	th_stack_open(&s, NULL);
	rma_to_nobody(s.ep, buf);
	atomic_to_nobody(s.ep, buf);
	th_check(fi_barrier(s.ep, 0, &s) < 0);
	th_quiet(&s, 5);
	th_stack_close(&s);
}

/* ---- statistics ------------------------------------------------------------------ */

static struct fi_ops_shrimp_stats *stats_ops(struct fid *fid)
{
	struct fi_ops_shrimp_stats *ops = NULL;

	th_ok(fi_open_ops(fid, FI_SHRIMP_OPS_STATS, 0, (void **)&ops, NULL));
	th_check(ops && ops->read && ops->size >= sizeof(*ops));
	return ops;
}

static struct fi_shrimp_stats stats_read(struct fid *fid)
{
	struct fi_shrimp_stats st = { .size = sizeof(st) };

	th_ok(stats_ops(fid)->read(fid, &st));
	th_eq(st.size, sizeof(st));
	return st;
}

static void need_shrimp(struct th_self *self)
{
	if (!th_is_shrimp())
		th_skip(self, "an extension of shrimp");
}

static void stats_refuse(struct th_self *self)
{
	struct fi_shrimp_stats st = { .size = 1 };
	struct fi_ops_shrimp_stats *ops;
	struct th_stack s;
	void *p;

	need_shrimp(self);
	th_stack_open(&s, NULL);
	ops = stats_ops(&s.fabric->fid);
	th_eq(ops->read(&s.fabric->fid, NULL), -FI_EINVAL);
	th_eq(ops->read(&s.fabric->fid, &st), -FI_EINVAL);
	st.size = sizeof(st);
	th_eq(ops->read(&s.ep->fid, &st), -FI_EINVAL);
	th_check(fi_open_ops(&s.fabric->fid, "no such ops", 0, &p, NULL) < 0);
	th_check(fi_open_ops(&s.domain->fid, "", 0, &p, NULL) < 0);
	th_stack_close(&s);
}

/* No more is written than the caller has room for. */
static void stats_respect_size(struct th_self *self)
{
	size_t part = offsetof(struct fi_shrimp_stats, unexpected_msgs);
	struct fi_shrimp_stats st;
	struct th_stack s;

	need_shrimp(self);
	th_stack_open(&s, NULL);
	memset(&st, 0xaa, sizeof(st));
	st.size = part;
	th_ok(stats_ops(&s.domain->fid)->read(&s.domain->fid, &st));
	th_eq(st.size, part);
	th_verify_byte((char *)&st + part, sizeof(st) - part, 0xaa);
	th_stack_close(&s);
}

static uint64_t sum(const uint64_t *v)
{
	uint64_t total = 0;
	int i;

	for (i = 0; i < FI_SHRIMP_PATH_MAX; i++)
		total += v[i];
	return total;
}

static const size_t lens[] = { 8, 500, 20000, 1 << 20 };
enum { NLENS = 4, LONGEST = 1 << 20 };

static void traffic(struct th_stack *a, struct th_stack *b)
{
	unsigned char *buf = calloc(1, LONGEST);
	int i;

	th_check(buf);
	for (i = 0; i < NLENS; i++) {
		th_trecv(b, buf, LONGEST, TAG, 0, buf);
		th_tsend(a, a->peers[1], buf, lens[i], TAG, buf);
		th_rx_ok(b);
		th_tx_ok(a);
	}
	/* One unexpected. */
	th_post(a, fi_tinject(a->ep, buf, 8, a->peers[1], TAG));
	th_quiet(b, 5);
	th_trecv(b, buf, LONGEST, TAG, 0, buf);
	th_rx_ok(b);
	free(buf);
}

/*
 * Each message is counted once per side, in the path it took; a domain
 * counts its own, a fabric the whole process, also when it was opened by
 * someone else and after the domain is gone.
 */
static void stats_count(struct th_self *self)
{
	struct fi_shrimp_stats all, da, db;
	struct fid_fabric *other;
	struct th_stack a, b;

	need_shrimp(self);
	th_pair_open(&a, &b, NULL);
	traffic(&a, &b);
	da = stats_read(&a.domain->fid);
	db = stats_read(&b.domain->fid);
	th_eq(sum(da.tx.msgs), NLENS + 1);
	th_eq(sum(da.tx.bytes), 8 + 500 + 20000 + LONGEST + 8);
	th_eq(sum(da.rx.msgs), 0);
	th_eq(sum(db.rx.msgs), NLENS + 1);
	th_eq(sum(db.rx.bytes), sum(da.tx.bytes));
	th_eq(sum(db.tx.msgs), 0);
	th_eq(da.tx.msgs[FI_SHRIMP_PATH_INLINE], 2);
	th_eq(db.unexpected_msgs, 1);
	th_check(da.held_msgs >= 1 && da.peers >= 1);
	th_check(da.tx.msgs[FI_SHRIMP_PATH_STREAM] +
			 da.tx.msgs[FI_SHRIMP_PATH_CMA] >=
		 1);
	th_eq(da.tx_eagain, 0);
	th_pair_close(&a, &b);
	th_stack_open(&a, NULL);
	th_ok(fi_fabric(a.info->fabric_attr, &other, NULL));
	all = stats_read(&other->fid);
	th_eq(sum(all.tx.msgs), NLENS + 1);
	th_eq(sum(all.rx.msgs), NLENS + 1);
	th_ok(fi_close(&other->fid));
	th_stack_close(&a);
}

/* Messages to itself have a path of their own. */
static void stats_count_self(struct th_self *self)
{
	struct fi_shrimp_stats st;
	struct th_stack s;
	uint64_t rx;
	fi_addr_t me;

	need_shrimp(self);
	th_stack_open(&s, NULL);
	me = th_insert(&s, s.addr);
	th_trecv(&s, &rx, 8, TAG, 0, &rx);
	th_post(&s, fi_tinject(s.ep, "12345678", 8, me, TAG));
	th_rx_ok(&s);
	st = stats_read(&s.domain->fid);
	th_eq(st.tx.msgs[FI_SHRIMP_PATH_SELF], 1);
	th_eq(st.rx.msgs[FI_SHRIMP_PATH_SELF], 1);
	th_eq(sum(st.tx.msgs), 1);
	th_stack_close(&s);
}

static const struct CMUnitTest objects_tests[] = {
	TH_CASE(every_table_is_full, 1, 10), TH_CASE(nobody_and_nothing, 1, 10),
	TH_CASE(stats_refuse, 1, 10),	     TH_CASE(stats_respect_size, 1, 10),
	TH_CASE(stats_count, 1, 10),	     TH_CASE(stats_count_self, 1, 10),
};

TH_MAIN(objects_tests)
