/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the tests of registration on demand and of unmapping share.
 */
#define _GNU_SOURCE
#include "odp_kit.h"

#include <rdma/fi_atomic.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env_probe.h"

struct odp_shared *odp_shared;

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
}

void odp_open(struct odp_side *d, struct th_self *self)
{
	struct th_stack_opts o = rk_atomic_opts();
	const struct odp_how *h = self->arg;

	*d = (struct odp_side){ .self = self, .fd = -1 };
	if (h) {
		set("FI_SHRIMP_CMA", h->cma);
		set("FI_SHRIMP_MONITOR", h->monitor);
		set("FI_SHRIMP_PIN", h->pin);
		set("FI_SHRIMP_MR_CACHE", h->cache);
		set("FI_SHRIMP_MTT", h->mtt);
	}
	th_stack_open(&d->s, &o);
	th_stack_connect(&d->s, self);
}

struct fi_shrimp_stats odp_stats(struct odp_side *d)
{
	return probe_stats(&d->s.domain->fid);
}

/* The monitor counts a moment after the call that it heard of. */
void odp_invalidated(struct odp_side *d, uint64_t pages)
{
	struct th_deadline dl = th_patience();

	while (odp_stats(d).pages_invalidated < pages)
		th_check(!th_expired(&dl));
	th_eq(odp_stats(d).pages_invalidated, pages);
}

/* The same of regions that have no memory any more. */
void odp_lost(struct odp_side *d, uint64_t regions)
{
	struct th_deadline dl = th_patience();

	while (odp_stats(d).mrs_gone < regions)
		th_check(!th_expired(&dl));
	th_eq(odp_stats(d).mrs_gone, regions);
}

unsigned char *odp_fresh(size_t len)
{
	void *p = quiet_private(len);

	th_check(p != MAP_FAILED);
	return p;
}

static void file_close(struct odp_side *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

unsigned char *odp_memory(struct odp_side *d)
{
	const struct odp_how *h = d->self->arg;
	void *p;

	file_close(d);
	if (!h || !h->file)
		return odp_fresh(ODP_LEN);
	d->fd = rk_file_new(ODP_LEN);
	p = quiet_map(ODP_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, 0);
	th_check(p != MAP_FAILED);
	return p;
}

void odp_file_fill(struct odp_side *d, size_t off)
{
	unsigned char buf[ODP_PAGE];

	memset(buf, ODP_SENTINEL, ODP_PAGE);
	if (d->fd >= 0)
		th_eq(pwrite(d->fd, buf, ODP_PAGE, (off_t)off), ODP_PAGE);
}

void odp_file_verify(struct odp_side *d, size_t off)
{
	unsigned char buf[ODP_PAGE];

	if (d->fd < 0)
		return;
	th_eq(pread(d->fd, buf, ODP_PAGE, (off_t)off), ODP_PAGE);
	th_verify_byte(buf, ODP_PAGE, ODP_SENTINEL);
}

/* Two calls: one puts the new memory there before it tells of the old. */
uint64_t odp_replace(struct odp_side *d, unsigned char *p, size_t len)
{
	uint64_t faults;

	th_eq(munmap(p, len), 0);
	faults = odp_stats(d).page_faults;
	th_check(mmap(p, len, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		      0) == p);
	return faults;
}

void odp_watch_sentinel(struct odp_side *d, unsigned char *p, uint64_t faults)
{
	for (int i = 0; i < 300; i++) {
		const rnic_a64 *w = (const rnic_a64 *)(const void *)p;

		/* acquire: the byte, then what was counted before it */
		if (rnic_load64_acquire(&w[i % 512]) &&
		    odp_stats(d).page_faults == faults)
			th_fail(__FILE__, __LINE__,
				"touched through an old translation");
	}
}

/* fi_mr_regattr() of one range, on demand. */
int odp_reg(struct odp_side *d, void *p, size_t len, uint64_t access,
	    struct fid_mr **mr)
{
	struct iovec iov = { .iov_base = p, .iov_len = len };
	struct fi_mr_attr a = { .mr_iov = &iov,
				.iov_count = 1,
				.access = access,
				.requested_key = RK_KEY };

	return fi_mr_regattr(d->s.domain, &a, FI_SHRIMP_ON_DEMAND, mr);
}

/* The owner has ODP_LEN bytes at @p on demand; the others know that it has. */
void odp_own(struct odp_side *d, unsigned char *p, uint64_t access)
{
	if (!d->self->rank) {
		d->p = p;
		th_ok(odp_reg(d, p, ODP_LEN, access, &d->mr));
	}
	th_barrier_progress(d->self, &d->s, "registered");
}

void odp_disown(struct odp_side *d)
{
	th_barrier_progress(d->self, &d->s, "used");
	if (d->mr)
		th_ok(fi_close(&d->mr->fid));
	d->mr = NULL;
	if (d->p)
		munmap(d->p, ODP_LEN);
	d->p = NULL;
	file_close(d);
}

void odp_put(struct odp_side *d, const void *buf, size_t len, uint64_t off)
{
	th_post(&d->s, fi_write(d->s.ep, buf, len, NULL, d->s.peers[0], off,
				RK_KEY, (void *)(uintptr_t)buf));
}

void odp_get(struct odp_side *d, void *buf, size_t len, uint64_t off)
{
	th_post(&d->s, fi_read(d->s.ep, buf, len, NULL, d->s.peers[0], off,
			       RK_KEY, buf));
}

void odp_put_done(struct odp_side *d, const void *buf, size_t len, uint64_t off)
{
	odp_put(d, buf, len, off);
	rk_done(&d->s, FI_WRITE, buf);
}

void odp_get_done(struct odp_side *d, void *buf, size_t len, uint64_t off)
{
	odp_get(d, buf, len, off);
	rk_done(&d->s, FI_READ, buf);
}

uint64_t odp_fetch_add(struct odp_side *d, uint64_t off, uint64_t x)
{
	uint64_t was = 0;

	th_post(&d->s,
		fi_fetch_atomic(d->s.ep, &x, 1, NULL, &was, NULL, d->s.peers[0],
				off, RK_KEY, FI_UINT64, FI_SUM, &was));
	th_ptr_eq(th_tx_ok(&d->s).op_context, &was);
	return was;
}

void odp_refused(struct odp_side *d, const void *buf, size_t len, uint64_t off,
		 size_t moved)
{
	struct rk_outcome e;

	odp_put(d, buf, len, off);
	e = rk_end(&d->s);
	th_eq(e.err, FI_EFAULT);
	th_eq(e.moved, moved);
	th_check(e.told);
	th_eq(e.data.key, RK_KEY);
}

/* Writes anywhere in the region, until told otherwise. */
void odp_stream(struct odp_side *d)
{
	unsigned char buf[ODP_PAGE + 100];
	uint64_t state = (uint64_t)d->self->rank;
	struct rk_outcome e;

	memset(buf, d->self->rank, sizeof(buf));
	while (!rnic_load64_relaxed(&odp_shared->over)) {
		odp_put(d, buf, sizeof(buf),
			th_random(&state) % (ODP_LEN - sizeof(buf)));
		e = rk_end(&d->s);
		th_check(!e.err || e.err == FI_EFAULT ||
			 e.err == FI_EKEYREJECTED);
		rnic_add64_relaxed(
			e.err ? &odp_shared->refused : &odp_shared->written, 1);
	}
}

/* The streams end, and begin again for the next test. */
void odp_over(struct odp_side *d)
{
	rnic_store64_relaxed(&odp_shared->over, 1);
	th_barrier_progress(d->self, &d->s, "over");
	rnic_store64_relaxed(&odp_shared->over, 0);
}

/* Waits until the streams have written something more. */
void odp_written(struct odp_side *d)
{
	uint64_t was = rnic_load64_relaxed(&odp_shared->written);
	struct th_deadline dl = th_patience();

	while (rnic_load64_relaxed(&odp_shared->written) < was + 2) {
		th_check(!th_expired(&dl));
		th_progress(&d->s);
		sched_yield();
	}
}

int odp_main(int argc, char **argv, const char *name,
	     const struct CMUnitTest *tests, size_t n)
{
	odp_shared = mmap(NULL, ODP_PAGE, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (odp_shared == MAP_FAILED)
		return 1;
	return th_main(argc, argv, name, tests, n);
}

void odp_case(void **state)
{
	const struct odp_spec *t = *state;

	th_run(t->n, t->main, t->how, t->seconds);
}
