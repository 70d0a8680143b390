/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Completion queues without a device: the domain is a shell, endpoints are
 * not enabled, completions are written by the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include "lib/cq.h"
#include "lib/domain.h"
#include "lib/endpoint.h"
#include "lib/tx.h"

enum { MANY = 5000, FOR_EVER_MS = 20000 };

static struct shrimp_settings set = { .spin = 10 };
static struct shrimp_domain domain = { .set = &set,
				       .api = FI_VERSION(1, 17),
				       .cqs = CDS_LIST_HEAD_INIT(domain.cqs) };

static struct shrimp_cq *cq_open(enum fi_cq_format format,
				 enum fi_wait_obj wait)
{
	struct fi_cq_attr attr = { .format = format, .wait_obj = wait };
	struct fid_cq *cq;

	assert_int_equal(shrimp_cq_open(&domain.fid, &attr, &cq, &attr), 0);
	assert_ptr_equal(cq->fid.context, &attr);
	return (struct shrimp_cq *)cq;
}

static void cq_close(struct shrimp_cq *cq)
{
	assert_int_equal(fi_close(&cq->fid.fid), 0);
	assert_int_equal(rnic_load32_acquire(&domain.refs), 0);
}

/* Completion number @i: each field is another function of it. */
static struct shrimp_comp comp(uintptr_t i)
{
	return (struct shrimp_comp){
		.context = (void *)(i + 1),
		.flags = FI_RECV | FI_TAGGED,
		.len = i + 2,
		.buf = (void *)(i + 3),
		.data = i + 4,
		.tag = i + 5,
		.src = i + 6,
	};
}

static void write_one(struct shrimp_cq *cq, uintptr_t i)
{
	struct shrimp_comp c = comp(i);

	shrimp_cq_write(cq, NULL, &c);
}

static void write_err(struct shrimp_cq *cq, uintptr_t i, size_t data)
{
	struct shrimp_comp_err e = { .c = comp(i),
				     .olen = 77,
				     .err = FI_ETRUNC,
				     .prov_errno = FI_EIO,
				     .err_data_size = data };

	memset(e.err_data, 0x5a, data);
	shrimp_cq_write_err(cq, &e);
}

static void check_tagged(const struct fi_cq_tagged_entry *e, uintptr_t i)
{
	struct shrimp_comp c = comp(i);

	assert_ptr_equal(e->op_context, c.context);
	assert_int_equal(e->flags, c.flags);
	assert_int_equal(e->len, c.len);
	assert_ptr_equal(e->buf, c.buf);
	assert_int_equal(e->data, c.data);
	assert_int_equal(e->tag, c.tag);
}

/* ---- formats ---- */

static const struct format {
	enum fi_cq_format format; /* as opened */
	size_t size;		  /* bytes of an entry */
} formats[] = {
	{ FI_CQ_FORMAT_UNSPEC, sizeof(struct fi_cq_entry) },
	{ FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry) },
	{ FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry) },
	{ FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry) },
	{ FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry) },
};

enum { FORMATS = sizeof(formats) / sizeof(*formats) };

/* All formats are the first bytes of the tagged one. */
static void check_entries(const char *buf, size_t size, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct shrimp_comp c = comp(i);
		struct fi_cq_tagged_entry e = { c.context, c.flags, c.len,
						c.buf,	   c.data,  c.tag };

		assert_memory_equal(buf + i * size, &e, size);
	}
}

static void cq_formats_from_the_ring(void **state)
{
	char buf[3 * sizeof(struct fi_cq_tagged_entry)];
	fi_addr_t src[3];

	(void)state;
	for (int f = 0; f < FORMATS; f++) {
		struct shrimp_cq *cq = cq_open(formats[f].format, FI_WAIT_NONE);

		for (uintptr_t i = 0; i < 3; i++)
			write_one(cq, i);
		assert_int_equal(shrimp_cq_unread(cq), 3);
		assert_int_equal(fi_cq_readfrom(&cq->fid, buf, 3, src), 3);
		check_entries(buf, formats[f].size, 3);
		for (uintptr_t i = 0; i < 3; i++)
			assert_int_equal(src[i], comp(i).src);
		assert_int_equal(shrimp_cq_unread(cq), 0);
		cq_close(cq);
	}
}

static void cq_formats_into_the_sink(void **state)
{
	char buf[3 * sizeof(struct fi_cq_tagged_entry) + 1];
	fi_addr_t src[3];

	(void)state;
	for (int f = 0; f < FORMATS; f++) {
		struct shrimp_cq *cq = cq_open(formats[f].format, FI_WAIT_NONE);
		struct shrimp_cq_sink sink = {
			.cq = cq, .next = buf, .src = src, .room = 3
		};

		buf[3 * formats[f].size] = 'x';
		for (uintptr_t i = 0; i < 3; i++) {
			struct shrimp_comp c = comp(i);

			shrimp_cq_write(cq, &sink, &c);
		}
		assert_int_equal(sink.count, 3);
		assert_int_equal(sink.room, 0);
		check_entries(buf, formats[f].size, 3);
		assert_int_equal(src[2], comp(2).src);
		assert_int_equal(buf[3 * formats[f].size], 'x');
		assert_int_equal(shrimp_cq_unread(cq), 0);
		cq_close(cq);
	}
}

/* Full sink, another queue's sink, or older entries: through the ring. */
static void cq_sink_only_when_it_keeps_the_order(void **state)
{
	struct shrimp_cq *cq = cq_open(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	struct shrimp_cq *other = cq_open(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	struct fi_cq_tagged_entry e[4];
	struct shrimp_cq_sink sink = { .cq = cq, .next = (char *)e, .room = 1 };
	struct shrimp_comp c = comp(0);

	(void)state;
	shrimp_cq_write(other, &sink, &c);
	assert_int_equal(shrimp_cq_unread(other), 1);
	shrimp_cq_write(cq, &sink, &c);
	assert_int_equal(sink.count, 1);
	c = comp(1);
	shrimp_cq_write(cq, &sink, &c);
	assert_int_equal(shrimp_cq_unread(cq), 1);
	sink.room = 3;
	c = comp(2);
	shrimp_cq_write(cq, &sink, &c);
	assert_int_equal(sink.count, 1);
	assert_int_equal(fi_cq_read(&cq->fid, e, 4), 2);
	check_tagged(&e[0], 1);
	check_tagged(&e[1], 2);
	assert_int_equal(fi_close(&other->fid.fid), 0);
	cq_close(cq);
}

/* ---- the ring ---- */

/* Grows, wraps, and gives everything back in order, in parts of any size. */
static void cq_ring_keeps_order(void **state)
{
	struct shrimp_cq *cq = cq_open(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	struct fi_cq_tagged_entry e[37];
	uintptr_t in = 0, out = 0;

	(void)state;
	while (out < MANY) {
		for (size_t k = 0; k < 41 && in < MANY; k++)
			write_one(cq, in++);
		ssize_t n = fi_cq_read(&cq->fid, e, 1 + in % 37);

		assert_true(n > 0);
		for (ssize_t k = 0; k < n; k++)
			check_tagged(&e[k], out++);
	}
	assert_int_equal(fi_cq_read(&cq->fid, e, 1), -FI_EAGAIN);
	cq_close(cq);
}

static void cq_close_drops_what_is_unread(void **state)
{
	struct shrimp_cq *cq = cq_open(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);

	(void)state;
	for (uintptr_t i = 0; i < 700; i++) {
		write_one(cq, i);
		write_err(cq, i, 8);
	}
	cq_close(cq);
}

/* Reading nothing is a way to make progress. */
static void cq_read_of_nothing(void **state)
{
	struct shrimp_cq *cq = cq_open(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	struct fi_cq_tagged_entry e;

	(void)state;
	assert_int_equal(fi_cq_read(&cq->fid, NULL, 0), -FI_EAGAIN);
	write_one(cq, 0);
	assert_true(fi_cq_read(&cq->fid, NULL, 0) <= 0);
	assert_int_equal(shrimp_cq_unread(cq), 1);
	assert_int_equal(fi_cq_read(&cq->fid, &e, 1), 1);
	cq_close(cq);
}

/* ---- errors ---- */

static void check_err(const struct fi_cq_err_entry *e, uintptr_t i)
{
	const struct fi_cq_tagged_entry t = { e->op_context, e->flags, e->len,
					      e->buf,	     e->data,  e->tag };

	check_tagged(&t, i);
	assert_int_equal(e->olen, 77);
	assert_int_equal(e->err, FI_ETRUNC);
	assert_int_equal(e->prov_errno, FI_EIO);
}

/* Entries before an error come first, those behind it after it was read. */
static void cq_errors_keep_their_place(void **state)
{
	struct shrimp_cq *cq = cq_open(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e[4];

	(void)state;
	assert_int_equal(fi_cq_readerr(&cq->fid, &err, 0), -FI_EAGAIN);
	write_one(cq, 0);
	write_err(cq, 1, 0);
	write_one(cq, 2);
	assert_int_equal(fi_cq_readerr(&cq->fid, &err, 0), -FI_EAGAIN);
	assert_int_equal(fi_cq_read(&cq->fid, e, 4), 1);
	check_tagged(&e[0], 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_cq_read(&cq->fid, e, 4), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(&cq->fid, &err, 0), 1);
	check_err(&err, 1);
	assert_int_equal(fi_cq_read(&cq->fid, e, 4), 1);
	check_tagged(&e[0], 2);
	cq_close(cq);
}

/* fi_cq(3): our buffer if none is given, else as much as fits into it. */
static void cq_err_data(void **state)
{
	struct shrimp_cq *cq = cq_open(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	struct fi_cq_err_entry err = { 0 };
	uint8_t mine[16] = { 0 }, filled[64];

	(void)state;
	memset(filled, 0x5a, sizeof(filled));
	for (int i = 0; i < 4; i++)
		write_err(cq, 1, i == 3 ? 0 : 64);
	assert_int_equal(fi_cq_readerr(&cq->fid, &err, 0), 1);
	assert_int_equal(err.err_data_size, 64);
	assert_memory_equal(err.err_data, filled, 64);
	err.err_data = mine;
	err.err_data_size = 10;
	assert_int_equal(fi_cq_readerr(&cq->fid, &err, 0), 1);
	assert_ptr_equal(err.err_data, mine);
	assert_int_equal(err.err_data_size, 10);
	assert_memory_equal(mine, filled, 10);
	assert_int_equal(mine[10], 0);
	domain.api = FI_VERSION(1, 4);
	err.err_data = mine;
	assert_int_equal(fi_cq_readerr(&cq->fid, &err, 0), 1);
	domain.api = FI_VERSION(1, 17);
	assert_ptr_not_equal(err.err_data, mine);
	assert_memory_equal(err.err_data, filled, 64);
	err.err_data = mine;
	err.err_data_size = 16;
	assert_int_equal(fi_cq_readerr(&cq->fid, &err, 0), 1);
	assert_int_equal(err.err_data_size, 0);
	cq_close(cq);
}

static void cq_strerror_fills_the_buffer(void **state)
{
	struct shrimp_cq *cq = cq_open(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	char buf[8] = "xxxxxxx";
	const char *text;

	(void)state;
	text = fi_cq_strerror(&cq->fid, FI_ECONNRESET, NULL, buf, 5);
	assert_non_null(text);
	assert_int_equal(strlen(buf), 4);
	assert_int_equal(buf[5], 'x');
	assert_memory_equal(buf, fi_strerror(FI_ECONNRESET), 4);
	assert_non_null(fi_cq_strerror(&cq->fid, FI_EIO, NULL, NULL, 0));
	cq_close(cq);
}

/* ---- waiting ---- */

struct later {
	struct shrimp_cq *cq; /* to which */
	int what;	      /* 0: an entry, 1: an error, 2: a signal */
};

static void *act_later(void *arg)
{
	struct later *l = arg;

	usleep(30000);
	if (l->what == 0)
		write_one(l->cq, 9);
	else if (l->what == 1)
		write_err(l->cq, 9, 0);
	else
		fi_cq_signal(&l->cq->fid);
	return NULL;
}

static ssize_t sread_while(struct shrimp_cq *cq, int what)
{
	struct later l = { cq, what };
	struct fi_cq_tagged_entry e;
	pthread_t t;
	ssize_t ret;

	assert_int_equal(pthread_create(&t, NULL, act_later, &l), 0);
	ret = fi_cq_sread(&cq->fid, &e, 1, NULL, FOR_EVER_MS);
	assert_int_equal(pthread_join(t, NULL), 0);
	return ret;
}

static const enum fi_wait_obj waits[] = { FI_WAIT_UNSPEC, FI_WAIT_FD,
					  FI_WAIT_YIELD };

static void cq_sread_wakes(void **state)
{
	(void)state;
	for (int w = 0; w < 3; w++) {
		struct shrimp_cq *cq = cq_open(FI_CQ_FORMAT_TAGGED, waits[w]);
		struct fi_cq_err_entry err = { 0 };
		uint64_t start = shrimp_now_ms();

		assert_int_equal(sread_while(cq, 0), 1);
		assert_int_equal(sread_while(cq, 1), -FI_EAVAIL);
		assert_int_equal(fi_cq_readerr(&cq->fid, &err, 0), 1);
		assert_int_equal(sread_while(cq, 2), -FI_EAGAIN);
		assert_true(shrimp_now_ms() - start < FOR_EVER_MS);
		cq_close(cq);
	}
}

static void cq_sread_keeps_its_time(void **state)
{
	struct fi_cq_tagged_entry e;

	(void)state;
	for (int w = 0; w < 3; w++) {
		struct shrimp_cq *cq = cq_open(FI_CQ_FORMAT_TAGGED, waits[w]);
		uint64_t start = shrimp_now_ms();

		assert_int_equal(fi_cq_sread(&cq->fid, &e, 1, NULL, 0),
				 -FI_EAGAIN);
		assert_int_equal(fi_cq_sread(&cq->fid, &e, 1, NULL, 50),
				 -FI_EAGAIN);
		assert_true(shrimp_now_ms() - start >= 50);
		cq_close(cq);
	}
}

static void cq_sread_needs_a_wait_object(void **state)
{
	struct shrimp_cq *cq = cq_open(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	struct fi_cq_tagged_entry e;
	struct fid *fid = &cq->fid.fid;
	int fd;

	(void)state;
	assert_true(fi_cq_sread(&cq->fid, &e, 1, NULL, -1) < 0);
	assert_true(fi_control(fid, FI_GETWAIT, &fd) < 0);
	assert_int_equal(shrimp_trywait(NULL, &fid, 1), -FI_EINVAL);
	cq_close(cq);
}

/* FI_CQ_COND_THRESHOLD: fewer entries only when the time is over. */
static void cq_sread_threshold(void **state)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED,
				   .wait_obj = FI_WAIT_FD,
				   .wait_cond = FI_CQ_COND_THRESHOLD };
	struct fi_cq_tagged_entry e[8];
	uint64_t start = shrimp_now_ms();
	struct fid_cq *fid;

	(void)state;
	assert_int_equal(shrimp_cq_open(&domain.fid, &attr, &fid, NULL), 0);
	for (uintptr_t i = 0; i < 5; i++)
		write_one((struct shrimp_cq *)fid, i);
	assert_int_equal(fi_cq_sread(fid, e, 8, (void *)4, 50), 5);
	for (uintptr_t i = 0; i < 3; i++)
		write_one((struct shrimp_cq *)fid, i);
	assert_int_equal(fi_cq_sread(fid, e, 8, (void *)4, 50), 3);
	assert_true(shrimp_now_ms() - start >= 50);
	check_tagged(&e[2], 2);
	cq_close((struct shrimp_cq *)fid);
}

/* fi_trywait() refuses once because of a signal, not for ever. */
static void cq_trywait_takes_a_signal_once(void **state)
{
	struct shrimp_cq *cq = cq_open(FI_CQ_FORMAT_TAGGED, FI_WAIT_FD);
	struct fid *fid = &cq->fid.fid;

	(void)state;
	assert_int_equal(shrimp_trywait(NULL, &fid, 1), 0);
	assert_int_equal(fi_cq_signal(&cq->fid), 0);
	assert_int_equal(shrimp_trywait(NULL, &fid, 1), -FI_EAGAIN);
	assert_int_equal(shrimp_trywait(NULL, &fid, 1), 0);
	cq_close(cq);
}

/* ---- opening, endpoints ---- */

static void cq_open_refuses(void **state)
{
	static const struct {
		struct fi_cq_attr attr; /* that is wrong */
		int error;		/* what it gives */
	} bad[] = {
		{ { .format = 99 }, -FI_EINVAL },
		{ { .flags = FI_PEER }, -FI_EINVAL },
		{ { .flags = FI_READ }, -FI_EINVAL },
		{ { .wait_obj = FI_WAIT_MUTEX_COND }, -FI_ENOSYS },
		{ { .wait_obj = FI_WAIT_SET }, -FI_EINVAL },
		{ { .wait_cond = 7 }, -FI_EINVAL },
	};
	struct fid_cq *cq;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct fi_cq_attr attr = bad[i].attr;

		assert_int_equal(shrimp_cq_open(&domain.fid, &attr, &cq, NULL),
				 bad[i].error);
	}
	assert_int_equal(rnic_load32_acquire(&domain.refs), 0);
	assert_int_equal(shrimp_cq_open(&domain.fid, NULL, &cq, NULL), 0);
	cq_close((struct shrimp_cq *)cq);
}

static void cq_inherited_domain(void **state)
{
	struct shrimp_cq *cq = cq_open(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	struct fi_cq_tagged_entry e;
	struct fid_cq *other;

	(void)state;
	domain.inherited = true;
	assert_int_equal(fi_cq_read(&cq->fid, &e, 1), -FI_EOPBADSTATE);
	assert_int_equal(fi_close(&cq->fid.fid), -FI_EOPBADSTATE);
	assert_int_equal(shrimp_cq_open(&domain.fid, NULL, &other, NULL),
			 -FI_EOPBADSTATE);
	domain.inherited = false;
	cq_close(cq);
}

/* An endpoint may be attached twice (transmit and receive). */
static void cq_busy_while_attached(void **state)
{
	struct shrimp_cq *cq = cq_open(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	struct shrimp_ep a = { .domain = &domain, .epfd = -1 };
	struct shrimp_ep b = { .domain = &domain, .epfd = -1 };
	struct fi_cq_tagged_entry e;

	(void)state;
	assert_int_equal(shrimp_cq_attach_ep(cq, &a), 0);
	assert_int_equal(shrimp_cq_attach_ep(cq, &a), 0);
	assert_int_equal(shrimp_cq_attach_ep(cq, &b), 0);
	assert_int_equal(fi_cq_read(&cq->fid, &e, 1), -FI_EAGAIN);
	shrimp_cq_detach_ep(cq, &a);
	shrimp_cq_detach_ep(cq, &b);
	assert_int_equal(fi_close(&cq->fid.fid), -FI_EBUSY);
	shrimp_cq_detach_ep(cq, &a);
	cq_close(cq);
}

/* ---- threads ---- */

enum { WRITERS = 2, READERS = 2, EACH = 20000 };

struct crowd {
	struct shrimp_cq *cq; /* everybody's */
	rnic_a32 next;	      /* numbers writers */
	rnic_a32 got;	      /* entries read by all */
	unsigned char *seen;  /* times each entry was read */
};

static void *writer(void *arg)
{
	struct crowd *c = arg;
	uintptr_t base = rnic_add32_relaxed(&c->next, 1) * EACH;

	for (uintptr_t i = 0; i < EACH; i++)
		write_one(c->cq, base + i);
	return NULL;
}

static void *reader(void *arg)
{
	struct fi_cq_tagged_entry e[7];
	struct crowd *c = arg;

	while (rnic_load32_acquire(&c->got) < WRITERS * EACH) {
		ssize_t n = fi_cq_sread(&c->cq->fid, e, 7, NULL, 100);

		for (ssize_t i = 0; i < n; i++) {
			check_tagged(&e[i], (uintptr_t)e[i].op_context - 1);
			/* each entry has one reader: no lock */
			c->seen[(uintptr_t)e[i].op_context - 1]++;
		}
		if (n > 0)
			rnic_add32_acqrel(&c->got, (uint32_t)n);
	}
	return NULL;
}

/* Every entry is read once, whoever writes and reads, sleeping or not. */
static void cq_threads(void **state)
{
	struct crowd c = { .cq = cq_open(FI_CQ_FORMAT_TAGGED, FI_WAIT_FD),
			   .seen = calloc(WRITERS, EACH) };
	pthread_t t[WRITERS + READERS];

	(void)state;
	assert_non_null(c.seen);
	for (int i = 0; i < WRITERS + READERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL,
						i < WRITERS ? writer : reader,
						&c),
				 0);
	for (int i = 0; i < WRITERS + READERS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	for (int i = 0; i < WRITERS * EACH; i++)
		assert_int_equal(c.seen[i], 1);
	free(c.seen);
	cq_close(c.cq);
}

/*
 * Two sleepers, two entries at once: nobody keeps asleep beside an entry,
 * though one of them takes one and never comes back.
 */
static void *sread_one(void *arg)
{
	struct fi_cq_tagged_entry e;
	struct shrimp_cq *cq = arg;

	return (void *)(intptr_t)fi_cq_sread(&cq->fid, &e, 1, NULL,
					     FOR_EVER_MS);
}

static void cq_two_sleepers(void **state)
{
	struct shrimp_cq *cq = cq_open(FI_CQ_FORMAT_TAGGED, FI_WAIT_FD);
	uint64_t start = shrimp_now_ms();

	(void)state;
	for (int round = 0; round < 300; round++) {
		pthread_t t[2];
		void *ret;

		for (int i = 0; i < 2; i++)
			assert_int_equal(
				pthread_create(&t[i], NULL, sread_one, cq), 0);
		if (round % 2)
			usleep(200);
		write_one(cq, 0);
		write_one(cq, 1);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(pthread_join(t[i], &ret), 0);
			assert_int_equal((intptr_t)ret, 1);
		}
	}
	assert_true(shrimp_now_ms() - start < FOR_EVER_MS);
	cq_close(cq);
}

/* A test that failed leaves its references behind. */
static int fresh(void **state)
{
	(void)state;
	rnic_store32_relaxed(&domain.refs, 0);
	return 0;
}

#define CASE(f) cmocka_unit_test_setup(f, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(cq_formats_from_the_ring),
		CASE(cq_formats_into_the_sink),
		CASE(cq_sink_only_when_it_keeps_the_order),
		CASE(cq_ring_keeps_order),
		CASE(cq_close_drops_what_is_unread),
		CASE(cq_read_of_nothing),
		CASE(cq_errors_keep_their_place),
		CASE(cq_err_data),
		CASE(cq_strerror_fills_the_buffer),
		CASE(cq_sread_wakes),
		CASE(cq_sread_keeps_its_time),
		CASE(cq_sread_needs_a_wait_object),
		CASE(cq_sread_threshold),
		CASE(cq_trywait_takes_a_signal_once),
		CASE(cq_open_refuses),
		CASE(cq_inherited_domain),
		CASE(cq_busy_while_attached),
		CASE(cq_threads),
		CASE(cq_two_sleepers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
