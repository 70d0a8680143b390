/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Registration on demand (contract R11): an owner and initiators in processes
 * of their own. The states of a page are in shm/odp_test.c; what happens when
 * memory goes is in unmap.c.
 */
#define _GNU_SOURCE
#include "odp_kit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env_probe.h"
#include "raw_kit.h"

enum { INITIATORS = 8, STREAMERS = 2, ELEMENTS = 128 };

/* ---- R11: registration ---------------------------------------------------- */

/* Nothing is mapped there, nothing is made, and larger costs no more. */
static void contract_R11_registration(struct th_self *self)
{
	size_t gib = (size_t)1 << 30, locked;
	struct fid_mr *mr[2];
	unsigned char *p;
	struct odp_side d;
	uint64_t kib;

	odp_open(&d, self);
	/* an address with nothing behind it */
	p = odp_fresh(ODP_PAGE);
	th_eq(munmap(p, ODP_PAGE), 0);
	th_ok(odp_reg(&d, p, ODP_PAGE, RK_ALL, &mr[0]));
	kib = probe_segment_kib("shrimp-tables");
	locked = rk_locked();
	th_ok(fi_close(&mr[0]->fid));
	th_ok(odp_reg(&d, p, 64 * gib, RK_ALL, &mr[0]));
	th_eq(probe_segment_kib("shrimp-tables"), kib);
	th_eq(rk_locked(), locked);
	th_eq(odp_stats(&d).page_faults, 0);
	/* a range that no tree covers, and two ranges */
	th_eq(odp_reg(&d, p, 600 * gib, RK_ALL, &mr[1]), -EFBIG);
	th_ok(fi_close(&mr[0]->fid));
	th_stack_close(&d.s);
}

/* They have no table, are counted, and can be forbidden. */
static void contract_R11_implicit(struct th_self *self)
{
	struct fid_mr *mr;
	struct odp_side d;

	odp_open(&d, self);
	for (int i = 0; i < 3; i++) {
		th_ok(fi_mr_reg(d.s.domain, NULL, SIZE_MAX, RK_ALL, 0, RK_KEY,
				i & 1 ? FI_SHRIMP_ON_DEMAND : 0, &mr, NULL));
		th_ok(fi_close(&mr->fid));
	}
	th_eq(odp_stats(&d).mrs_implicit, 3);
	th_stack_close(&d.s);
	setenv("FI_SHRIMP_IMPLICIT", "off", 1);
	odp_open(&d, self);
	th_eq(fi_mr_reg(d.s.domain, NULL, SIZE_MAX, RK_ALL, 0, RK_KEY, 0, &mr,
			NULL),
	      -FI_EOPNOTSUPP);
	th_eq(odp_stats(&d).mrs_implicit, 0);
	th_stack_close(&d.s);
}

/* ---- R11: first touch ----------------------------------------------------- */

/* Each kind of access finds a page of its own. */
static void touch(struct odp_side *d)
{
	unsigned char buf[3 * ODP_PAGE];
	uint64_t x;

	th_fill(buf, sizeof(buf), 1);
	odp_put_done(d, buf, 100, 10);
	odp_put_done(d, buf, 3 * ODP_PAGE, 4 * ODP_PAGE + 8);
	memset(buf, 1, sizeof(buf));
	odp_get_done(d, buf, 2 * ODP_PAGE, 10 * ODP_PAGE);
	th_verify_byte(buf, 2 * ODP_PAGE, 0);
	th_eq(odp_fetch_add(d, 20 * ODP_PAGE + 8, 5), 0);
	th_eq(odp_fetch_add(d, 20 * ODP_PAGE + 8, 5), 5);
	/* an element in two lines of a page that only was read */
	odp_get_done(d, &x, sizeof(x), 30 * ODP_PAGE);
	th_eq(odp_fetch_add(d, 30 * ODP_PAGE + 60, 7), 0);
}

static void touched(struct odp_side *d)
{
	uint64_t x;

	th_verify(d->p + 10, 100, 1);
	th_verify(d->p + 4 * ODP_PAGE + 8, 3 * ODP_PAGE, 1);
	memcpy(&x, d->p + 20 * ODP_PAGE + 8, sizeof(x));
	th_eq(x, 10);
	memcpy(&x, d->p + 30 * ODP_PAGE + 60, sizeof(x));
	th_eq(x, 7);
	/* pages 0, 4 to 7, 10, 11, 20, and 30 twice */
	th_eq(odp_stats(d).page_faults, 10);
	th_eq(odp_stats(d).pages_prefetched, 0);
}

static void contract_R11_first_touch(struct th_self *self)
{
	struct odp_side d;

	odp_open(&d, self);
	odp_own(&d, odp_fresh(ODP_LEN), RK_RW);
	if (self->rank)
		touch(&d);
	th_barrier_progress(self, &d.s, "touched");
	th_settle(&d.s);
	if (!self->rank)
		touched(&d);
	else
		th_check(odp_stats(&d).page_asks >= 5);
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* An endpoint that reaches itself asks nobody. */
static void contract_R11_own(struct th_self *self)
{
	struct odp_side d;

	odp_open(&d, self);
	odp_own(&d, odp_fresh(ODP_LEN), RK_RW);
	touch(&d);
	touched(&d);
	th_eq(odp_stats(&d).page_asks, 0);
	th_eq(odp_stats(&d).page_requests, 0);
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* In memory of the device peers go on by load and store. */
static void contract_R11_device(struct th_self *self)
{
	unsigned char buf[3 * ODP_PAGE];
	struct fi_shrimp_stats st;
	struct rk_mem m = { 0 };
	struct odp_side d;

	odp_open(&d, self);
	if (!self->rank)
		m = rk_mem_new(&d.s, true, ODP_LEN);
	odp_own(&d, m.p, RK_RW);
	if (self->rank) {
		th_fill(buf, sizeof(buf), 3);
		odp_put_done(&d, buf, sizeof(buf), 5000);
		th_eq(odp_fetch_add(&d, 9 * ODP_PAGE, 1), 0);
		st = odp_stats(&d);
		th_eq(st.rma_ops[FI_SHRIMP_REACH_MAPPED], 1);
		th_eq(st.atomic_ops[FI_SHRIMP_REACH_MAPPED], 1);
	}
	th_barrier_progress(self, &d.s, "touched");
	th_settle(&d.s);
	if (!self->rank) {
		th_verify(m.p + 5000, sizeof(buf), 3);
		th_eq(odp_stats(&d).page_faults, 5);
		d.p = NULL;
	}
	odp_disown(&d);
	if (!self->rank)
		rk_mem_free(&m);
	th_stack_close(&d.s);
}

/* A row of elements, the first of them in a page that is there. */
static void add_row(struct odp_side *d)
{
	uint64_t row[ELEMENTS], got[ELEMENTS];
	uint64_t at = ODP_PAGE - sizeof(row) / 2;

	for (int i = 0; i < ELEMENTS; i++)
		row[i] = 1 + (uint64_t)i;
	odp_put_done(d, "first", 5, 0);
	th_post(&d->s, fi_atomic(d->s.ep, row, ELEMENTS, NULL, d->s.peers[0],
				 at, RK_KEY, FI_UINT64, FI_SUM, row));
	th_ptr_eq(th_tx_ok(&d->s).op_context, row);
	odp_get_done(d, got, sizeof(got), at);
	th_eq(memcmp(row, got, sizeof(row)), 0);
}

/* None is changed twice because one behind it had to wait for its page. */
static void elements_once(struct th_self *self, bool device)
{
	struct rk_mem m = { 0 };
	struct odp_side d;

	odp_open(&d, self);
	if (!self->rank)
		m = rk_mem_new(&d.s, device, ODP_LEN);
	odp_own(&d, m.p, RK_RW);
	if (self->rank)
		add_row(&d);
	d.p = NULL;
	odp_disown(&d);
	if (!self->rank)
		rk_mem_free(&m);
	th_stack_close(&d.s);
}

static void contract_R11_elements_once(struct th_self *self)
{
	elements_once(self, true);
	elements_once(self, false);
}

/* ---- R11: many ask at once -------------------------------------------------- */

/* Waits until no thread of @pid runs. */
static void until_stopped(pid_t pid)
{
	char path[64], name[400], line[256];
	struct dirent *e;
	bool runs;
	FILE *f;
	DIR *d;

	do {
		runs = false;
		snprintf(path, sizeof(path), "/proc/%d/task", pid);
		d = opendir(path);
		th_check(d);
		while ((e = readdir(d))) {
			if (e->d_name[0] == '.')
				continue;
			snprintf(name, sizeof(name), "%s/%s/stat", path,
				 e->d_name);
			f = fopen(name, "re");
			th_check(f && fgets(line, sizeof(line), f));
			fclose(f);
			runs |= !strstr(line, ") T ");
		}
		closedir(d);
		th_sleep_us(1000);
	} while (runs);
}

/* Asks for all pages but the first of an owner that is stopped. */
static void ask_together(struct odp_side *d)
{
	static unsigned char buf[ODP_LEN];
	const size_t len = ODP_LEN - ODP_PAGE;
	uint64_t asks = odp_stats(d).page_asks;
	struct th_deadline patience = th_patience();

	th_listen(d->self);
	th_fill(buf, len, 4);
	odp_put(d, buf, len, ODP_PAGE);
	while (odp_stats(d).page_asks == asks) {
		th_progress(&d->s);
		th_check(!th_expired(&patience));
	}
	th_note(d->self, "asked", 1);
	th_eq(rk_end(&d->s).err, 0);
	memset(buf, 0, len);
	odp_get_done(d, buf, len, ODP_PAGE);
	th_verify(buf, len, 4);
	/* one request for all that is missing */
	th_eq(odp_stats(d).page_asks, asks + 1);
}

/* Each request arrives; the first finds no page, the others find all. */
static void one_fault(struct th_self *self)
{
	struct fi_shrimp_stats was, is;
	uint64_t asks, all[INITIATORS + 1], sum = 0;
	struct odp_side d;

	odp_open(&d, self);
	odp_own(&d, odp_fresh(ODP_LEN), RK_RW);
	if (self->rank)
		odp_put_done(&d, "attached", 8, 0);
	th_barrier_progress(self, &d.s, "attached");
	was = odp_stats(&d);
	if (self->rank)
		ask_together(&d);
	else
		th_note(self, "stop me", 1);
	th_barrier_progress(self, &d.s, "touched");
	is = odp_stats(&d);
	asks = is.page_asks;
	th_gather(self, "asks", &asks, all, sizeof(asks));
	for (int i = 1; i <= INITIATORS; i++)
		sum += all[i];
	if (!self->rank) {
		th_eq(is.page_requests, sum);
		th_eq(is.page_requests - was.page_requests, INITIATORS);
		th_eq(is.page_merged - was.page_merged, INITIATORS - 1);
		th_eq(was.page_faults, 1);
		th_eq(is.page_faults, ODP_PAGES);
	}
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* The owner goes on when all have asked for the same pages. */
static void contract_R11_one_fault(void **state)
{
	struct th_group *g =
		th_group_start(INITIATORS + 1, one_fault, NULL, 30);

	(void)state;
	th_group_wait_note(g, 0, "stop me");
	th_group_kill(g, 0, SIGSTOP);
	until_stopped(th_group_pid(g, 0));
	for (int i = 1; i <= INITIATORS; i++)
		th_group_tell(g, i, 1);
	for (int i = 1; i <= INITIATORS; i++)
		th_group_wait_note(g, i, "asked");
	th_group_kill(g, 0, SIGCONT);
	th_group_finish(g);
}

/* ---- R11: what is not there ------------------------------------------------ */

/* Page 2 is missing; page 5 may be read only. */
static unsigned char *damaged(void)
{
	unsigned char *p = odp_fresh(ODP_LEN);

	th_eq(munmap(p + 2 * ODP_PAGE, ODP_PAGE), 0);
	th_eq(mprotect(p + 5 * ODP_PAGE, ODP_PAGE, PROT_READ), 0);
	return p;
}

static void contract_R11_unmapped(struct th_self *self)
{
	unsigned char buf[3 * ODP_PAGE];
	struct odp_side d;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : damaged(), RK_RW);
	th_fill(buf, sizeof(buf), 5);
	if (self->rank) {
		odp_refused(&d, buf, 8, 2 * ODP_PAGE + 8, 0);
		odp_refused(&d, buf, 3 * ODP_PAGE, 100, 2 * ODP_PAGE - 100);
		odp_put_done(&d, buf, 8, ODP_PAGE);
		odp_refused(&d, buf, 8, 5 * ODP_PAGE, 0);
		odp_get_done(&d, buf, ODP_PAGE, 5 * ODP_PAGE);
		odp_refused(&d, buf, 8, 5 * ODP_PAGE, 0);
		th_quiet(&d.s, 2);
	}
	th_barrier_progress(self, &d.s, "refused");
	if (!self->rank) {
		th_check(mmap(d.p + 2 * ODP_PAGE, ODP_PAGE,
			      PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			      0) == d.p + 2 * ODP_PAGE);
		th_eq(mprotect(d.p + 5 * ODP_PAGE, ODP_PAGE,
			       PROT_READ | PROT_WRITE),
		      0);
	}
	th_barrier_progress(self, &d.s, "mended");
	if (self->rank) {
		odp_put_done(&d, buf, 8, 2 * ODP_PAGE + 8);
		odp_put_done(&d, buf, 8, 5 * ODP_PAGE);
	}
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* ---- L3: requests that no initiator of ours makes ----------------------------- */

static void raw_asks(struct odp_side *d, const struct rnic_addr *owner)
{
	const struct rnic_desc_ask senseless = { .len = 8,
						 .kind = RNIC_ASK_PAGE,
						 .op = 0xff };
	uint8_t rd = RNIC_REMOTE_READ, wr = RNIC_REMOTE_WRITE;
	struct raw_lane r;

	raw_open(&r, d->s.addr, owner);
	th_eq(raw_page(&r, RK_KEY + 1, 0, 8, rd), ENOKEY);
	th_eq(raw_page(&r, RK_KEY, 0, 8, wr), EACCES);
	th_eq(raw_page(&r, RK_KEY, ODP_LEN, 8, rd), ERANGE);
	th_eq(raw_page(&r, RK_KEY, ODP_LEN - 8, 9, rd), ERANGE);
	th_eq(raw_page(&r, RK_KEY, UINT64_MAX - 4, 8, rd), ERANGE);
	th_eq(raw_page(&r, RK_KEY, 0, 8, rd), 0);
	raw_ask(&r, RK_KEY, &senseless, 0);
	raw_expect_closed(&r);
	raw_drop(&r);
}

/* The owner trusts no word of a request. */
static void contract_L3_page_requests(struct th_self *self)
{
	struct rnic_addr all[2], own;
	struct odp_side d;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : odp_fresh(ODP_LEN), FI_REMOTE_READ);
	memcpy(&own, d.s.addr, sizeof(own));
	th_gather(self, "addresses", &own, all, sizeof(own));
	if (self->rank)
		raw_asks(&d, &all[0]);
	th_barrier_progress(self, &d.s, "asked");
	if (!self->rank)
		th_eq(odp_stats(&d).page_faults, 1);
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* Rights and bounds are those of any region, before a page is made. */
static void contract_R11_checked(struct th_self *self)
{
	unsigned char buf[16] = { 0 };
	struct odp_side d;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : odp_fresh(ODP_LEN), FI_REMOTE_READ);
	if (self->rank) {
		odp_put(&d, buf, 8, 0);
		rk_refused(&d.s, FI_EACCES, RK_KEY, 0, 8);
		odp_get(&d, buf, 8, ODP_LEN - 4);
		rk_refused(&d.s, FI_EINVAL, RK_KEY, ODP_LEN - 4, 8);
		th_eq(odp_stats(&d).page_asks, 0);
		odp_get_done(&d, buf, 8, 0);
	}
	th_barrier_progress(self, &d.s, "touched");
	if (!self->rank)
		th_eq(odp_stats(&d).page_faults, 1);
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* ---- R11: advice ----------------------------------------------------------- */

static void advise_all(struct odp_side *d, const struct fi_ops_shrimp_mr *ops)
{
	struct fid_mr *plain = rk_reg(&d->s, d->p, ODP_PAGE, RK_RW, RK_KEY + 1);

	th_eq(ops->advise(d->mr, 0, 2 * ODP_PAGE, 0), -FI_EINVAL);
	th_eq(ops->advise(d->mr, 0, 0, FI_SHRIMP_PREFETCH_READ), -FI_EINVAL);
	th_eq(ops->advise(d->mr, ODP_PAGE, ODP_LEN, FI_SHRIMP_PREFETCH_READ),
	      -FI_EINVAL);
	th_eq(ops->advise(plain, 0, 8, FI_SHRIMP_PREFETCH_READ), -FI_EINVAL);
	th_ok(ops->advise(d->mr, ODP_PAGE - 1, 2, FI_SHRIMP_PREFETCH_WRITE));
	th_eq(odp_stats(d).pages_prefetched, 2);
	th_ok(ops->advise(d->mr, 0, 4 * ODP_PAGE, FI_SHRIMP_PREFETCH_READ));
	th_eq(odp_stats(d).pages_prefetched, 4);
	th_eq(munmap(d->p + 9 * ODP_PAGE, ODP_PAGE), 0);
	th_eq(ops->advise(d->mr, 0, ODP_LEN, FI_SHRIMP_PREFETCH_WRITE),
	      -FI_EFAULT);
	th_ok(ops->advise(d->mr, 10 * ODP_PAGE, 10 * ODP_PAGE,
			  FI_SHRIMP_PREFETCH_WRITE));
	th_eq(odp_stats(d).page_faults, 0);
	th_ok(fi_close(&plain->fid));
}

/* Nobody has to ask for what was prefetched. */
static void contract_R11_prefetch(struct th_self *self)
{
	const struct fi_ops_shrimp_mr *ops;
	unsigned char buf[ODP_PAGE] = { 1 };
	struct odp_side d;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : odp_fresh(ODP_LEN), RK_RW);
	if (!self->rank) {
		th_ok(fi_open_ops(&d.s.domain->fid, FI_SHRIMP_OPS_MR, 0,
				  (void **)&ops, NULL));
		th_check(ops->size >= sizeof(*ops));
		advise_all(&d, ops);
	}
	th_barrier_progress(self, &d.s, "prefetched");
	if (self->rank) {
		odp_put_done(&d, buf, ODP_PAGE, 0);
		odp_put_done(&d, buf, ODP_PAGE, 12 * ODP_PAGE + 8);
		th_eq(odp_stats(&d).page_asks, 0);
		odp_put_done(&d, buf, ODP_PAGE, 30 * ODP_PAGE);
		th_eq(odp_stats(&d).page_asks, 1);
	}
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* ---- P1 --------------------------------------------------------------------- */

/* Pages come while their owner makes no call, also if nothing else is asked. */
static void contract_P1_pages_need_no_call(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct odp_side d = { .self = self };
	unsigned char buf[8] = { 1 };

	th_stack_open(&d.s, &o);
	th_stack_connect(&d.s, self);
	odp_own(&d, self->rank ? NULL : odp_fresh(ODP_LEN), RK_RW);
	if (self->rank)
		odp_put_done(&d, buf, sizeof(buf), 0);
	/* without progress */
	th_barrier(self, "touched");
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* ---- P5 --------------------------------------------------------------------- */

/* A message never overtakes a write that has to wait for its page. */
static void contract_P5_after_a_fault(struct th_self *self)
{
	unsigned char buf[2 * ODP_PAGE], got[8];
	struct odp_side d;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : odp_fresh(ODP_LEN), RK_RW);
	for (uint64_t i = 0; i < ODP_PAGES / 2; i++) {
		if (self->rank) {
			th_fill(buf, sizeof(buf), i);
			odp_put(&d, buf, sizeof(buf), i * sizeof(buf));
			th_send(&d.s, d.s.peers[0], &i, sizeof(i), &i);
			th_tx_ok(&d.s);
			th_tx_ok(&d.s);
			continue;
		}
		th_recv(&d.s, got, sizeof(got), got);
		th_rx_ok(&d.s);
		th_eq(memcmp(got, &i, sizeof(i)), 0);
		th_settle(&d.s);
		th_verify(d.p + i * sizeof(buf), sizeof(buf), i);
	}
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* ---- close ------------------------------------------------------------------ */

static void close_often(struct odp_side *d)
{
	unsigned long n = th_rounds(300);
	size_t locked = 0;

	d->p = odp_fresh(ODP_LEN);
	for (unsigned long i = 0; i < n; i++) {
		th_ok(odp_reg(d, d->p, ODP_LEN, RK_RW, &d->mr));
		if (i % 16)
			th_sleep_us(i % 7 * 50);
		else
			odp_written(d);
		th_ok(fi_close(&d->mr->fid));
		th_settle(&d->s);
		/* closed is closed (I1): not a byte from now on */
		memset(d->p, ODP_SENTINEL, ODP_LEN);
		th_verify_byte(d->p, ODP_LEN, ODP_SENTINEL);
		th_eq(madvise(d->p, ODP_LEN, MADV_DONTNEED), 0);
		if (!i)
			locked = rk_locked();
	}
	th_eq(rk_locked(), locked);
	d->mr = NULL;
}

/* fi_close() in a thread of its own. */
struct closer {
	pthread_t thread;  /* it */
	struct fid_mr *mr; /* what it closes */
	rnic_a32 done;	   /* 1: it has returned */
};

static void *close_main(void *arg)
{
	struct closer *c = arg;

	th_ok(fi_close(&c->mr->fid));
	rnic_store32_release(&c->done, 1);
	return NULL;
}

/* Holds up whoever touches the first page at @p; -1: not permitted. */
static int hold_up(void *p)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register r = {
		.range = { .start = (uintptr_t)p, .len = ODP_PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		return -1;
	th_eq(ioctl(fd, UFFDIO_API, &api), 0);
	th_eq(ioctl(fd, UFFDIO_REGISTER, &r), 0);
	return fd;
}

/* A fault is under way in the agent: the region stays until it is over. */
static void close_slowly(struct odp_side *d, int fd)
{
	struct uffdio_zeropage z = { .range = { .start = (uintptr_t)d->p,
						.len = ODP_PAGE } };
	struct closer c = { .mr = d->mr };
	struct uffd_msg m;

	th_eq(read(fd, &m, sizeof(m)), sizeof(m));
	th_eq(pthread_create(&c.thread, NULL, close_main, &c), 0);
	th_sleep_us(50000);
	th_eq(rnic_load32_acquire(&c.done), 0);
	th_eq(ioctl(fd, UFFDIO_ZEROPAGE, &z), 0);
	th_eq(pthread_join(c.thread, NULL), 0);
	d->mr = NULL;
	close(fd);
}

static void contract_R11_close_waits_for_faults(struct th_self *self)
{
	unsigned char *p = self->rank ? NULL : odp_fresh(ODP_LEN);
	int fd = self->rank ? 0 : hold_up(p);
	unsigned char buf[8] = { 0 };
	struct odp_side d;
	struct rk_outcome e;

	if (fd < 0)
		th_skip(self, "userfaultfd is for user mode only");
	odp_open(&d, self);
	odp_own(&d, p, RK_RW);
	if (self->rank) {
		odp_put(&d, buf, 8, 0);
		e = rk_end(&d.s);
		th_check(!e.err || e.err == FI_EKEYREJECTED);
	} else {
		close_slowly(&d, fd);
	}
	odp_disown(&d);
	th_stack_close(&d.s);
}

static void contract_R11_close_under_faults(struct th_self *self)
{
	struct odp_side d;

	odp_open(&d, self);
	if (self->rank)
		odp_stream(&d);
	else
		close_often(&d);
	odp_over(&d);
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* ---- I5: refresh ------------------------------------------------------------ */

/*
 * Pages that came so far; those that are locked, besides @locked bytes; where
 * nothing can be locked (SIZE_MAX) nothing is.
 */
static void refreshed(struct odp_side *d, uint64_t faults, size_t pages,
		      size_t locked)
{
	th_eq(odp_stats(d).page_faults, faults);
	if (locked != SIZE_MAX)
		th_eq(rk_locked(), locked + pages * ODP_PAGE);
}

/* The owner's part: pages are dropped, in a range, and all. */
static void refresh_pages(struct odp_side *d, size_t locked)
{
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(&d->s);
	struct iovec v = { d->p + 2 * ODP_PAGE + 5, ODP_PAGE };
	struct iovec wrong = { d->p + ODP_LEN - 1, 2 };
	uint64_t was = odp_stats(d).pages_invalidated;

	refreshed(d, 4, 4, locked);
	th_eq(ops->update(d->mr, &wrong), -FI_EINVAL);
	th_ok(ops->update(d->mr, &v));
	th_eq(odp_stats(d).pages_invalidated, was + 2);
	refreshed(d, 4, 2, locked);
	th_barrier_progress(d->self, &d->s, "two");
	th_barrier_progress(d->self, &d->s, "came");
	refreshed(d, 5, 3, locked);
	th_ok(fi_mr_refresh(d->mr, NULL, 0, 0));
	refreshed(d, 5, 0, locked);
	/* nothing tells of this: what was written to before is read only now */
	th_eq(mprotect(d->p, ODP_PAGE, PROT_READ), 0);
}

static void contract_I5_on_demand(struct th_self *self)
{
	unsigned char buf[4 * ODP_PAGE];
	struct odp_side d;
	size_t locked = 0;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : odp_fresh(ODP_LEN), RK_RW);
	/* the monitor's memory is */
	if (!self->rank)
		locked = rk_locked();
	th_barrier_progress(self, &d.s, "counted");
	memset(buf, 1, sizeof(buf));
	if (self->rank)
		odp_put_done(&d, buf, sizeof(buf), 0);
	th_barrier_progress(self, &d.s, "four");
	if (!self->rank) {
		refresh_pages(&d, rk_locked() == locked ? SIZE_MAX : locked);
	} else {
		th_barrier_progress(self, &d.s, "two");
		odp_put_done(&d, buf, 8, 2 * ODP_PAGE);
		odp_put_done(&d, buf, 8, ODP_PAGE);
		th_barrier_progress(self, &d.s, "came");
	}
	th_barrier_progress(self, &d.s, "none");
	if (self->rank) {
		odp_refused(&d, buf, 8, 0, 0);
		odp_get_done(&d, buf, 8, 0);
		odp_put_done(&d, buf, 8, 2 * ODP_PAGE);
	}
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* A file of twice the region's length, of which half is mapped. */
static unsigned char *map_half(int *fd, unsigned char **all)
{
	void *p;

	*fd = rk_file_new(2 * ODP_LEN);
	*all = rk_file_map(*fd, 2 * ODP_LEN, NULL);
	p = quiet_map(ODP_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	th_check(p != MAP_FAILED);
	return p;
}

/*
 * The other half of the file comes without an event, so the region goes on in
 * the first one, until it is refreshed. Then not a byte of that is written.
 */
static void turn_over(struct odp_side *d, unsigned char *all, unsigned long n)
{
	for (unsigned long i = 1; i <= n; i++) {
		unsigned char *old = all + !(i % 2) * ODP_LEN;

		th_eq(remap_file_pages(d->p, ODP_LEN, 0, i % 2 * ODP_PAGES, 0),
		      0);
		th_ok(fi_mr_refresh(d->mr, NULL, 0, 0));
		memset(old, ODP_SENTINEL, ODP_LEN);
		if (i % 4 == 0)
			odp_written(d);
		th_progress(&d->s);
		sched_yield();
		th_verify_byte(old, ODP_LEN, ODP_SENTINEL);
	}
}

static void contract_I5_on_demand_next_file(struct th_self *self)
{
	unsigned char *all = NULL;
	struct odp_side d;
	int fd = -1;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : map_half(&fd, &all), RK_RW);
	if (self->rank)
		odp_stream(&d);
	else
		turn_over(&d, all, th_rounds(300));
	odp_over(&d);
	odp_disown(&d);
	if (all)
		munmap(all, 2 * ODP_LEN);
	if (fd >= 0)
		close(fd);
	th_stack_close(&d.s);
}

/* Each memory file that a page lay in is left: there are not that many. */
static void contract_I5_on_demand_many_files(struct th_self *self)
{
	unsigned long n = th_sanitized() ? 3 : 300;
	unsigned char buf[8] = { 1 };
	unsigned int fds = 0;
	struct odp_side d;
	int fd;

	odp_open(&d, self);
	odp_own(&d, odp_fresh(ODP_LEN), RK_RW);
	for (unsigned long i = 0; i < n; i++) {
		fd = rk_file_new(ODP_LEN);
		rk_file_map(fd, ODP_LEN, d.p);
		odp_put_done(&d, buf, 8, 0);
		th_verify_byte(d.p, 1, 1);
		th_ok(fi_mr_refresh(d.mr, NULL, 0, 0));
		close(fd);
		/* what asks the kernel of mappings is open from now on */
		if (!i)
			fds = probe_fds();
	}
	th_eq(probe_fds(), fds);
	odp_disown(&d);
	th_stack_close(&d.s);
}

/* ---- death ------------------------------------------------------------------ */

/* Rank 1 asks for a page of an owner that does not answer any more. */
static void asks_in_vain(struct th_self *self)
{
	unsigned char buf[8] = { 0 };
	struct rk_outcome e;
	struct odp_side d;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : odp_fresh(ODP_LEN), RK_RW);
	if (!self->rank) {
		th_note(self, "stop me", 1);
		for (;;)
			pause();
	}
	odp_put_done(&d, buf, 8, 0);
	th_note(self, "attached", 1);
	th_listen(self);
	odp_put(&d, buf, 8, 8 * ODP_PAGE);
	th_send(&d.s, d.s.peers[0], buf, 8, buf);
	th_quiet(&d.s, 20);
	th_note(self, "asked", 1);
	for (int i = 0; i < 2; i++) {
		e = rk_end(&d.s);
		th_eq(e.err, FI_ECONNRESET);
	}
	th_stack_close(&d.s);
}

static void contract_P4_owner_killed_at_a_fault(void **state)
{
	struct th_group *g = th_group_start(2, asks_in_vain, NULL, 20);

	(void)state;
	th_group_wait_note(g, 0, "stop me");
	th_group_wait_note(g, 1, "attached");
	th_group_kill(g, 0, SIGSTOP);
	until_stopped(th_group_pid(g, 0));
	th_group_tell(g, 1, 1);
	th_group_wait_note(g, 1, "asked");
	th_group_kill(g, 0, SIGKILL);
	th_group_finish(g);
}

/* Rank 2 streams until it is killed; the owner and rank 1 go on. */
static void mourns(struct th_self *self)
{
	unsigned char buf[ODP_PAGE] = { 1 };
	struct odp_side d;

	odp_open(&d, self);
	odp_own(&d, self->rank ? NULL : odp_fresh(ODP_LEN), RK_RW);
	if (self->rank == 2)
		odp_stream(&d);
	if (!self->rank) {
		for (unsigned long i = 0; i < th_rounds(100); i++)
			odp_replace(&d, d.p + i % ODP_PAGES * ODP_PAGE,
				    ODP_PAGE);
		th_note(self, "kill it", 1);
		th_listen(self);
		/* the monitor does not wait for the dead */
		odp_replace(&d, d.p, ODP_LEN);
	}
	th_barrier_progress(self, &d.s, "killed");
	if (self->rank)
		odp_put_done(&d, buf, ODP_PAGE, ODP_PAGE);
	odp_disown(&d);
	th_stack_close(&d.s);
}

static void contract_L1_initiator_killed_at_faults(void **state)
{
	struct th_group *g = th_group_start(3, mourns, NULL, 30);

	(void)state;
	th_group_wait_note(g, 0, "kill it");
	th_group_kill(g, 2, SIGKILL);
	th_group_tell(g, 0, 1);
	th_group_finish(g);
}

/* ---- table ------------------------------------------------------------------ */

static struct odp_how no_cma = { .cma = "off" };
static struct odp_how unpinned = { .pin = "off" };
static struct odp_how unwatched = { .monitor = "off" };

static const struct CMUnitTest odp_tests[] = {
	TH_CASE(contract_R11_registration, 1, 20),
	TH_CASE(contract_R11_implicit, 1, 20),
	TH_CASE(contract_R11_first_touch, 2, 20),
	ODP_CASE(contract_R11_first_touch, 2, 20, no_cma),
	ODP_CASE(contract_R11_first_touch, 2, 20, unpinned),
	ODP_CASE(contract_R11_first_touch, 2, 20, unwatched),
	TH_CASE(contract_R11_own, 1, 20),
	TH_CASE(contract_R11_device, 2, 20),
	TH_CASE(contract_R11_elements_once, 2, 20),
	cmocka_unit_test(contract_R11_one_fault),
	TH_CASE(contract_R11_unmapped, 2, 20),
	TH_CASE(contract_R11_checked, 2, 20),
	TH_CASE(contract_L3_page_requests, 2, 20),
	TH_CASE(contract_R11_prefetch, 2, 20),
	TH_CASE(contract_P1_pages_need_no_call, 2, 20),
	TH_CASE(contract_P5_after_a_fault, 2, 20),
	TH_CASE(contract_R11_close_waits_for_faults, 2, 20),
	ODP_CASE(contract_R11_close_under_faults, STREAMERS + 1, 60, unpinned),
	TH_CASE(contract_I5_on_demand, 2, 20),
	ODP_CASE(contract_I5_on_demand_next_file, STREAMERS + 1, 60, unpinned),
	TH_CASE(contract_I5_on_demand_many_files, 1, 20),
	cmocka_unit_test(contract_P4_owner_killed_at_a_fault),
	cmocka_unit_test(contract_L1_initiator_killed_at_faults),
};

int main(int argc, char **argv)
{
	return odp_main(argc, argv, "odp_tests", odp_tests,
			sizeof(odp_tests) / sizeof(*odp_tests));
}
