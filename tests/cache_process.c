/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Public cases of registration caches, with all that the cache can be set to:
 * what the rest of a process does meanwhile. Allocators (C2, C4, C6), no cache
 * or no monitor (C8), forks (C11, C13), limits of locked memory (K1).
 *
 * Limit: 300 s
 */
#define _GNU_SOURCE
#include "cache_kit.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env_probe.h"
#include "kill_steps.h"
#include "shm/atomic.h"

enum { PAGE = RK_PAGE, MIB = 1 << 20 };

/* ---- C2 ------------------------------------------------------------------- */

enum { C2_REGISTRARS = 2, C2_SLICE = 64 << 10, C2_SLICES = 64, C2_PIECE = MIB };

/* What the threads share. */
struct c2 {
	struct th_stack a, b;	  /* who transfers, and its peer */
	struct ck c;		  /* the cache of @a */
	unsigned char *slices;	  /* memory that is registered meanwhile */
	struct rk_mem target;	  /* of @b, C2_PIECE bytes */
	struct fid_mr *target_mr; /* its region, RK_KEY */
	rnic_a32 over;		  /* 1: end */
	rnic_a64 registered;	  /* regions of the registrars */
	rnic_a64 polled;	  /* looks of the poller */
};

/* Registers and closes; the cache holds less than it has. */
static void *c2_registrar(void *arg)
{
	struct c2 *t = arg;
	uint64_t state = (uintptr_t)&state;

	while (!rnic_load32_relaxed(&t->over)) {
		unsigned char *p =
			t->slices + th_random(&state) % C2_SLICES * C2_SLICE;
		struct fid_mr *mr;

		/* local ones need no key of their own */
		mr = rk_reg(&t->a, p, C2_SLICE / 2, CK_LOCAL, 1);
		th_ok(fi_close(&mr->fid));
		rnic_add64_relaxed(&t->registered, 1);
	}
	return NULL;
}

static void *c2_poller(void *arg)
{
	struct fi_cq_tagged_entry e;
	struct c2 *t = arg;

	while (!rnic_load32_relaxed(&t->over)) {
		th_eq(fi_cq_read(t->a.rxcq, &e, 1), -FI_EAGAIN);
		rnic_add64_relaxed(&t->polled, 1);
	}
	return NULL;
}

/* Some of the @len bytes at @p are sent by RMA, and read by the peer. */
static void c2_transfer(struct c2 *t, unsigned char *p, size_t len)
{
	struct fid_mr *local = rk_reg(&t->a, p, len, CK_LOCAL, 1);
	struct fid_mr *remote = rk_reg(&t->a, p, len, RK_RW, RK_KEY);
	unsigned char *in = malloc(C2_PIECE);

	th_check(in);
	for (size_t off = 0; off + C2_PIECE <= len; off += len / 4) {
		th_fill(p + off, C2_PIECE, off);
		th_ok(fi_write(t->a.ep, p + off, C2_PIECE, fi_mr_desc(local),
			       t->a.peers[1], 0, RK_KEY, t));
		rk_done(&t->a, FI_WRITE, t);
		th_verify(t->target.p, C2_PIECE, off);
		th_ok(fi_read(t->b.ep, in, C2_PIECE, NULL, t->b.peers[0], off,
			      RK_KEY, t));
		rk_done(&t->b, FI_READ, t);
		th_verify(in, C2_PIECE, off);
	}
	free(in);
	th_ok(fi_close(&local->fid));
	th_ok(fi_close(&remote->fid));
}

/* Both kinds of threads have done something more. */
static void c2_busy(struct c2 *t)
{
	uint64_t registered = rnic_load64_relaxed(&t->registered);
	uint64_t polled = rnic_load64_relaxed(&t->polled);
	struct th_deadline dl = th_patience();

	while (rnic_load64_relaxed(&t->registered) < registered + 2 ||
	       rnic_load64_relaxed(&t->polled) < polled + 2) {
		th_check(!th_expired(&dl));
		sched_yield();
	}
}

/* A buffer that was used is freed while the others are at work. */
static void c2_once(struct c2 *t, size_t len)
{
	pthread_t thread[C2_REGISTRARS + 1];
	struct th_deadline dl;
	unsigned char *p = malloc(len);

	th_check(p);
	for (size_t i = 0; i < len; i += PAGE)
		p[i] = 1;
	c2_transfer(t, p, len);
	rnic_store32_relaxed(&t->over, 0);
	for (int i = 0; i < C2_REGISTRARS + 1; i++)
		th_eq(pthread_create(&thread[i], NULL,
				     i ? c2_registrar : c2_poller, t),
		      0);
	c2_busy(t);
	dl = th_patience();
	ck_free(&t->c, p, len);
	th_check(!th_expired(&dl));
	rnic_store32_relaxed(&t->over, 1);
	for (int i = 0; i < C2_REGISTRARS + 1; i++)
		th_eq(pthread_join(thread[i], NULL), 0);
}

static void c2_open(struct c2 *t, struct th_self *self)
{
	struct th_stack_opts o = rk_opts();

	ck_set(self);
	setenv("FI_SHRIMP_MR_CACHE_ENTRIES", "16", 1);
	o.threading = FI_THREAD_SAFE;
	th_pair_open(&t->a, &t->b, &o);
	t->c = ck_of(self, &t->a);
	t->slices = rk_pages((size_t)C2_SLICES * C2_SLICE);
	t->target = rk_mem_new(&t->b, false, C2_PIECE);
	t->target_mr = rk_reg(&t->b, t->target.p, C2_PIECE, RK_RW, RK_KEY);
}

static void c2_close(struct c2 *t)
{
	th_ok(fi_close(&t->target_mr->fid));
	rk_mem_free(&t->target);
	ck_unmap(&t->c, t->slices, (size_t)C2_SLICES * C2_SLICE);
	th_pair_close(&t->a, &t->b);
}

/*
 * A large buffer is freed, then many that are not; free() returns. The large
 * one matters where the kernel's own way is longer: with its monitor.
 */
static void case_C2(struct th_self *self)
{
	const struct ck_how *h = self->arg;
	bool uffd = h->monitor && !strcmp(h->monitor, "uffd") && !h->pin;
	size_t large = (size_t)512 * MIB;
	struct c2 t = { 0 };

	if (th_sanitized() || !(uffd || th_long()))
		large = 64 * MIB;
	c2_open(&t, self);
	c2_once(&t, large);
	for (unsigned long i = 0; i < th_rounds(10); i++)
		c2_once(&t, 4 * MIB);
	c2_close(&t);
}

/* ---- C4 ------------------------------------------------------------------- */

enum { C4_THREADS = 8, C4_DOMAINS = 60, C4_LEN = 256 << 10 };

static rnic_a32 c4_over;	     /* 1: end */
static rnic_a64 c4_done[C4_THREADS]; /* steps of each thread */

/* Memory from the allocator, which nobody else writes. */
static void c4_allocate(uint64_t r)
{
	size_t len = 1 + (r >> 8) % (r >> 7 & 1 ? C4_LEN : 2000);
	unsigned char *p = malloc(len);

	th_check(p);
	p[0] = p[len / 2] = p[len - 1] = (unsigned char)r;
	sched_yield();
	th_check(p[0] == (unsigned char)r && p[len / 2] == (unsigned char)r &&
		 p[len - 1] == (unsigned char)r);
	free(p);
}

/* Memory from the kernel: given up, moved, and unmapped. */
static void c4_map(uint64_t r)
{
	unsigned char *p = rk_pages(C4_LEN);

	memset(p, 1 + r % 255, C4_LEN);
	if (r >> 8 & 1) {
		th_eq(madvise(p, C4_LEN / 2, MADV_DONTNEED), 0);
		th_eq(p[0], 0);
	}
	/* not seen by ThreadSanitizer */
	if (r >> 9 & 1 && !th_sanitized()) {
		p = mremap(p, C4_LEN, 2 * C4_LEN, MREMAP_MAYMOVE);
		th_check(p != MAP_FAILED);
		th_eq(munmap(p + C4_LEN, C4_LEN), 0);
	}
	th_eq(p[C4_LEN - 1], 1 + r % 255);
	th_eq(munmap(p, C4_LEN), 0);
}

static void *c4_main(void *arg)
{
	rnic_a64 *done = arg;
	uint64_t state = (uintptr_t)arg;

	while (!rnic_load32_relaxed(&c4_over)) {
		uint64_t r = th_random(&state);

		if (r & 1)
			c4_allocate(r);
		else
			c4_map(r);
		rnic_add64_relaxed(done, 1);
	}
	return NULL;
}

/* A domain that registers what the allocator gave, and closes. */
static void c4_domain(struct fid_fabric *f, struct fi_info *info)
{
	unsigned char *p = malloc(C4_LEN);
	struct fid_domain *d;
	struct fid_mr *mr;

	th_check(p);
	th_ok(fi_domain(f, info, &d, NULL));
	for (unsigned int i = 0; i < 4; i++) {
		th_ok(fi_mr_reg(d, p + (size_t)i * PAGE, C4_LEN / 2,
				i & 1 ? RK_RW : CK_LOCAL, 0, i, 0, &mr, NULL));
		th_ok(fi_close(&mr->fid));
	}
	th_ok(fi_close(&d->fid));
	free(p);
}

/* Each thread has done something more. */
static void c4_busy(void)
{
	struct th_deadline dl = th_patience();

	for (int i = 0; i < C4_THREADS; i++) {
		uint64_t was = rnic_load64_relaxed(&c4_done[i]);

		while (rnic_load64_relaxed(&c4_done[i]) < was + 10) {
			th_check(!th_expired(&dl));
			sched_yield();
		}
	}
}

/* Domains come and go beside threads that allocate. */
static void case_C4(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct fi_info *hints = th_hints(&o), *info;
	pthread_t thread[C4_THREADS];
	struct fid_fabric *f;

	ck_set(self);
	th_ok(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	th_ok(fi_fabric(info->fabric_attr, &f, NULL));
	for (int i = 0; i < C4_THREADS; i++)
		th_eq(pthread_create(&thread[i], NULL, c4_main, &c4_done[i]),
		      0);
	for (unsigned long i = 0; i < th_rounds(C4_DOMAINS); i++)
		c4_domain(f, info);
	c4_busy();
	rnic_store32_relaxed(&c4_over, 1);
	for (int i = 0; i < C4_THREADS; i++)
		th_eq(pthread_join(thread[i], NULL), 0);
	th_ok(fi_close(&f->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* ---- C6 ------------------------------------------------------------------- */

enum {
	C6_WARM = 200,	      /* buffers that were registered */
	C6_LOOPS = 1000000,   /* malloc and free */
	C6_SLOTS = 64,	      /* of them that live at once */
	C6_LARGE = 300 << 10, /* at most, most are small */
	C6_ROOM = 32 << 10,   /* KiB that may come in addition */
};

static size_t c6_size(uint64_t r)
{
	if (r % 1024 == 0)
		return 1 + (r >> 10) % C6_LARGE;
	return 1 + (r >> 10) % 2000;
}

/* Registered, used as a source, closed; and freed, in other order. */
static void c6_warm(struct th_stack *a, const struct ck *c)
{
	unsigned char *p[C6_WARM];
	size_t len[C6_WARM];
	uint64_t state = 6;

	for (uint64_t i = 0; i < C6_WARM; i++) {
		uint64_t r = th_random(&state);
		struct fid_mr *mr;

		len[i] = c6_size(r % 4 ? r : r / 1024 * 1024);
		p[i] = malloc(len[i]);
		th_check(p[i]);
		th_fill(p[i], len[i], i);
		mr = rk_reg(a, p[i], len[i], i & 1 ? RK_RW : CK_LOCAL, 100 + i);
		th_ok(fi_close(&mr->fid));
	}
	for (size_t i = 0; i < C6_WARM; i += 2)
		ck_free(c, p[i], len[i]);
	for (size_t i = 1; i < C6_WARM; i += 2)
		ck_free(c, p[i], len[i]);
}

/* No call of the library, but for what it must be told of. */
static void c6_loop(const struct ck *c, unsigned long n)
{
	unsigned char *p[C6_SLOTS] = { NULL };
	size_t len[C6_SLOTS] = { 0 };
	uint64_t state = 66;

	for (unsigned long i = 0; i < n; i++) {
		uint64_t r = th_random(&state);
		size_t k = r >> 48 & (C6_SLOTS - 1);

		if (p[k])
			th_eq(p[k][len[k] - 1], k);
		/* only what is unmapped matters */
		if (len[k] > C6_LARGE / 4)
			ck_free(c, p[k], len[k]);
		else
			free(p[k]);
		len[k] = c6_size(r);
		p[k] = malloc(len[k]);
		th_check(p[k]);
		p[k][len[k] - 1] = (unsigned char)k;
	}
	for (size_t k = 0; k < C6_SLOTS; k++)
		ck_free(c, p[k], len[k]);
}

/* Memory that was registered comes and goes, and nobody calls the library. */
static void case_C6(struct th_self *self)
{
	unsigned long n = th_sanitized() ? C6_LOOPS / 100 : C6_LOOPS;
	struct th_stack_opts o = rk_opts();
	struct th_stack a, b;
	uint64_t kib, rss;
	struct ck c;

	ck_set(self);
	th_pair_open(&a, &b, &o);
	c = ck_of(self, &a);
	for (int i = 0; i < 2; i++) {
		c6_warm(&a, &c);
		c6_loop(&c, n / 10);
	}
	kib = probe_segment_kib("shrimp-tables");
	rss = probe_status("VmRSS");
	c6_warm(&a, &c);
	c6_loop(&c, th_long() ? 10 * n : n);
	c6_warm(&a, &c);
	th_check(ck_stats(&c).cache_entries <= 4096);
	th_check(probe_segment_kib("shrimp-tables") <= kib + 1024);
	if (!th_sanitized())
		th_check(probe_status("VmRSS") <= rss + C6_ROOM);
	th_pair_close(&a, &b);
}

/* ---- C8 ------------------------------------------------------------------- */

enum { C8_LARGE = 16 << 20, C8_SMALL = 3000 };

/* One of two or three; rank 1 may be killed. */
struct c8 {
	struct th_self *self; /* who */
	struct th_stack s;    /* its stack */
	struct ck c;	      /* its cache */
	unsigned char *p;     /* what it registers */
	size_t len;	      /* bytes of it */
};

static void c8_open(struct c8 *t, struct th_self *self, size_t len)
{
	struct th_stack_opts o = rk_opts();

	*t = (struct c8){ .self = self, .len = len };
	ck_set(self);
	th_stack_open(&t->s, &o);
	th_stack_connect(&t->s, self);
	t->c = ck_of(self, &t->s);
	t->p = rk_pages(len);
}

static void c8_close(struct c8 *t)
{
	ck_unmap(&t->c, t->p, t->len);
	th_stack_close(&t->s);
}

/* Rank 1 reads and writes what rank 0 has, from memory that it registers. */
static void c8_peer(struct c8 *t, size_t len, uint64_t seed)
{
	struct fid_mr *mr = rk_reg(&t->s, t->p, len, CK_LOCAL, RK_KEY);

	th_ok(fi_read(t->s.ep, t->p, len, fi_mr_desc(mr), t->s.peers[0], 0,
		      RK_KEY, t));
	rk_done(&t->s, FI_READ, t);
	th_verify(t->p, len, seed);
	th_fill(t->p, len, seed + 1);
	th_ok(fi_write(t->s.ep, t->p, len, fi_mr_desc(mr), t->s.peers[0], 0,
		       RK_KEY, t));
	rk_done(&t->s, FI_WRITE, t);
	th_ok(fi_close(&mr->fid));
}

static void c8_rma(struct c8 *t, size_t len)
{
	struct fid_mr *mr = NULL;

	if (!t->self->rank) {
		th_fill(t->p, len, len);
		mr = rk_reg(&t->s, t->p, len, RK_RW, RK_KEY);
	}
	th_barrier_progress(t->self, &t->s, "registered");
	if (t->self->rank)
		c8_peer(t, len, len);
	th_barrier_progress(t->self, &t->s, "done");
	if (!t->self->rank) {
		th_settle(&t->s);
		th_verify(t->p, len, len + 1);
		th_ok(fi_close(&mr->fid));
	}
}

/* Messages and RMA of all sizes, some of them twice. */
static void c8_talk(struct th_self *self)
{
	static const size_t size[] = { 1, 3000, 3000, 70000, 3000, 1 << 20 };
	struct c8 t;

	c8_open(&t, self, MIB);
	ks_exchange_sizes(&t.s, t.s.peers[1 - self->rank]);
	for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++)
		c8_rma(&t, size[i]);
	ks_exchange_sizes(&t.s, t.s.peers[1 - self->rank]);
	th_barrier_progress(self, &t.s, "end");
	c8_close(&t);
}

static void case_C8(struct th_self *self)
{
	c8_talk(self);
}

/* The kernel has no userfaultfd for us: as if no monitor was asked for. */
static void case_C8_refused(struct th_self *self)
{
	if (!probe_forbid(SYS_userfaultfd, -1, EPERM))
		th_skip(self, "system call filters are not permitted");
	c8_talk(self);
}

/* The victim has a region; it is killed while rank 0 writes to it. */
static void c8_victim(struct c8 *t)
{
	struct fid_mr *mr = rk_reg(&t->s, t->p, t->len, RK_RW, RK_KEY);

	(void)mr;
	th_barrier(t->self, "registered");
	for (;;)
		pause();
}

/* Writes without a pause until that fails, and registers anew each time. */
static void c8_writer(struct c8 *t)
{
	struct th_deadline dl = th_patience();
	struct rk_outcome e;

	th_barrier(t->self, "registered");
	th_note(t->self, "writes", 1);
	do {
		struct fid_mr *mr =
			rk_reg(&t->s, t->p, t->len, CK_LOCAL, RK_KEY);
		ssize_t ret = fi_write(t->s.ep, t->p, t->len, fi_mr_desc(mr),
				       t->s.peers[KS_VICTIM], 0, RK_KEY, t);

		e.err = -(int)ret;
		if (!ret)
			e = rk_end(&t->s);
		th_ok(fi_close(&mr->fid));
		th_check(!th_expired(&dl));
	} while (!e.err);
	th_eq(e.err, FI_ECONNRESET);
}

/* Killed during a large transfer: the others go on, and nothing is lost. */
static void c8_killed_main(struct th_self *self)
{
	struct c8 t;

	c8_open(&t, self, C8_LARGE);
	memset(t.p, self->rank, t.len);
	if (self->rank == KS_VICTIM)
		c8_victim(&t);
	if (self->rank == 0)
		c8_writer(&t);
	else
		th_barrier(self, "registered");
	th_barrier_progress(self, &t.s, "dead");
	ks_exchange_sizes(&t.s, t.s.peers[KS_OTHER - self->rank]);
	th_barrier_progress(self, &t.s, "end");
	c8_close(&t);
}

static void case_C8_killed(void **state)
{
	struct th_group *g = th_group_start(3, c8_killed_main, *state, 60);
	uint64_t end;

	th_group_wait_note(g, 0, "writes");
	end = th_now_ns() + 10000000;
	while (th_now_ns() < end)
		th_group_pump(g, 5);
	th_group_kill(g, KS_VICTIM, SIGKILL);
	th_group_finish(g);
}

/* ---- C11, C13: fork -------------------------------------------------------- */

/* Waits until child @pid has ended, well. */
static void fork_joined(pid_t pid)
{
	int status;

	th_eq(waitpid(pid, &status, 0), pid);
	th_check(WIFEXITED(status));
	th_eq(WEXITSTATUS(status), 0);
}

enum { C11_HALF = PAGE / 2 };

/* What the child does with the page: 0 if all is as it must be. */
static int c11_child(unsigned char *p)
{
	/* peers write to the other half at any time */
	if (!th_match_at(p + C11_HALF, C11_HALF, 11, 0))
		return 1;
	memset(p + C11_HALF, 0xcc, C11_HALF);
	memset(p, 0xcd, C11_HALF);
	for (size_t i = 0; i < PAGE; i++)
		if (p[i] != (i < C11_HALF ? 0xcd : 0xcc))
			return 2;
	return 0;
}

/* The parent: half a page is registered, RMA goes on all the time. */
static void c11_parent(struct th_self *self, struct th_stack *s,
		       const struct ck *c)
{
	unsigned char *p = rk_pages(PAGE);

	for (unsigned long i = 0; i < th_rounds(10); i++) {
		struct fid_mr *mr;
		pid_t pid;

		th_fill(p + C11_HALF, C11_HALF, 11);
		mr = rk_reg(s, p, C11_HALF, RK_RW, RK_KEY);
		th_barrier_progress(self, s, "registered");
		pid = fork();
		th_check(pid >= 0);
		if (!pid)
			_exit(c11_child(p));
		fork_joined(pid);
		th_barrier_progress(self, s, "forked");
		th_barrier_progress(self, s, "written");
		th_settle(s);
		th_verify(p, C11_HALF, i);
		th_verify(p + C11_HALF, C11_HALF, 11);
		th_ok(fi_close(&mr->fid));
	}
	ck_unmap(c, p, PAGE);
}

static void c11_put(struct th_stack *s, uint64_t seed)
{
	unsigned char buf[C11_HALF], in[C11_HALF];

	th_fill(buf, C11_HALF, seed);
	th_ok(fi_write(s->ep, buf, C11_HALF, NULL, s->peers[0], 0, RK_KEY, s));
	rk_done(s, FI_WRITE, s);
	th_ok(fi_read(s->ep, in, C11_HALF, NULL, s->peers[0], 0, RK_KEY, s));
	rk_done(s, FI_READ, s);
	th_verify(in, C11_HALF, seed);
}

/* Half a page is registered: a child has the whole of it for itself. */
static void case_C11(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack s;
	struct ck c;

	ck_set(self);
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	c = ck_of(self, &s);
	if (!self->rank)
		c11_parent(self, &s, &c);
	for (unsigned long i = 0; self->rank && i < th_rounds(10); i++) {
		th_barrier_progress(self, &s, "registered");
		/* while it forks, and after that */
		for (uint64_t k = 0; k < 20; k++)
			c11_put(&s, k);
		th_barrier_progress(self, &s, "forked");
		c11_put(&s, i);
		th_barrier_progress(self, &s, "written");
	}
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/* A buffer of @len bytes is used, freed before its region is closed, and had
 * again: a child sees what is in it. */
static void c13_once(struct th_stack *a, struct th_stack *b, const struct ck *c,
		     size_t len)
{
	unsigned char *p = malloc(len), *in = malloc(len), *q;
	struct fid_mr *mr, *local;
	pid_t pid;

	th_check(p && in);
	th_fill(p, len, 1);
	mr = rk_reg(a, p, len, RK_RW, RK_KEY);
	local = rk_reg(a, p, len, CK_LOCAL, 1);
	th_ok(fi_read(b->ep, in, len, NULL, b->peers[0], 0, RK_KEY, b));
	rk_done(b, FI_READ, b);
	th_verify(in, len, 1);
	ck_free(c, p, len);
	q = malloc(len);
	th_check(q);
	th_fill(q, len, 2);
	pid = fork();
	th_check(pid >= 0);
	if (!pid)
		_exit(!th_match_at(q, len, 2, 0));
	fork_joined(pid);
	th_ok(fi_close(&mr->fid));
	th_ok(fi_close(&local->fid));
	th_verify(q, len, 2);
	/* and so does a peer that has the next key */
	mr = rk_reg(a, q, len, RK_RW, RK_KEY + 1);
	th_ok(fi_read(b->ep, in, len, NULL, b->peers[0], 0, RK_KEY + 1, b));
	rk_done(b, FI_READ, b);
	th_verify(in, len, 2);
	th_ok(fi_close(&mr->fid));
	ck_free(c, q, len);
	free(in);
}

static void case_C13(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack a, b;
	struct ck c;

	ck_set(self);
	th_pair_open(&a, &b, &o);
	c = ck_of(self, &a);
	for (unsigned long i = 0; i < th_rounds(10); i++) {
		c13_once(&a, &b, &c, 3000 + i);
		c13_once(&a, &b, &c, 50000);
		/* mapped and unmapped by the allocator */
		c13_once(&a, &b, &c, MIB);
	}
	th_pair_close(&a, &b);
}

/* ---- K1 ------------------------------------------------------------------- */

enum {
	K1_NOBODY = 65534,
	K1_KIB = 1 << 20,   /* of the buffer: 1 GiB */
	K1_LIMIT = 8 << 20, /* of locked memory */
	K1_LARGE = 5 << 20, /* one fits, two do not */
};

/* What is tried: limits of locked memory, and what to do about a refusal. */
static const rlim_t k1_limit[] = { RLIM_INFINITY, 8 << 20, 64 << 10 };
static const char *const k1_policy[] = { "require", "try", "off" };

/* Loads the provider while its file can be read; its warnings are kept. */
static void k1_load(const struct th_stack_opts *o)
{
	struct probe_stderr e = probe_stderr_begin();
	struct fi_info *hints = th_hints(o), *info;
	char text[100];

	th_ok(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	probe_stderr_end(&e, text, sizeof(text));
}

/* An ordinary user, to whom limits apply. */
static void k1_become_user(struct th_self *self)
{
	if (geteuid())
		return;
	if (setgroups(0, NULL) || setgid(K1_NOBODY) || setuid(K1_NOBODY))
		th_skip(self, "cannot become another user");
	th_ok(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	/* the change of user cleared it */
	th_ok(prctl(PR_SET_PDEATHSIG, SIGKILL));
}

/* Sets the limit; the largest one may be that of who has none. */
static bool k1_limit_is(rlim_t limit, unsigned char *p)
{
	struct rlimit rl;
	bool ok;

	th_ok(getrlimit(RLIMIT_MEMLOCK, &rl));
	if (limit != RLIM_INFINITY) {
		rl.rlim_cur = limit;
		return !setrlimit(RLIMIT_MEMLOCK, &rl);
	}
	rl.rlim_cur = rl.rlim_max = RLIM_INFINITY;
	(void)setrlimit(RLIMIT_MEMLOCK, &rl);
	/* by number: the sanitizers replace them by nothing */
	ok = !syscall(SYS_mlock, p, 64 * MIB);
	syscall(SYS_munlock, p, 64 * MIB);
	return ok;
}

/* The number of KiB or bytes as it is printed. */
static void k1_expect(const char *text, uint64_t n)
{
	char word[32];

	snprintf(word, sizeof(word), "%" PRIu64, n);
	probe_expect(text, word);
}

/* Registration of all of @p failed: it says why, and nothing is locked. */
static void k1_refused(struct th_stack *s, unsigned char *p, int ret,
		       const char *text, rlim_t limit)
{
	struct fid_mr *mr;

	th_eq(ret, -FI_ENOMEM);
	probe_expect(text, "RLIMIT_MEMLOCK");
	k1_expect(text, limit / 1024);
	k1_expect(text, (uint64_t)K1_KIB * 1024);
	th_eq(ck_locked(p, (size_t)K1_KIB * 1024), 0);
	/* the smallest limit may be used up by the monitor's own memory */
	if (limit < MIB)
		return;
	/* the key was not used up, and a page can be had */
	mr = rk_reg(s, p, PAGE, RK_RW, RK_KEY);
	th_eq(ck_locked(p, (size_t)K1_KIB * 1024), PAGE);
	th_ok(fi_close(&mr->fid));
}

/* It went well: is all locked, or nothing? */
static void k1_granted(struct fid_mr *mr, const unsigned char *p,
		       const char *policy, rlim_t limit)
{
	bool all = strcmp(policy, "off") && limit == RLIM_INFINITY;

	th_eq(ck_locked(p, (size_t)K1_KIB * 1024),
	      all ? (size_t)K1_KIB * 1024 : 0);
	th_ok(fi_close(&mr->fid));
}

/* Registers 1 GiB and closes it. */
static void k1_try(struct th_self *self, unsigned char *p, const char *policy,
		   rlim_t limit)
{
	struct th_stack_opts o = rk_opts();
	struct probe_stderr e;
	struct fid_mr *mr = NULL;
	static char text[65536];
	struct th_stack s;
	struct ck c;
	int ret;

	setenv("FI_SHRIMP_PIN", policy, 1);
	e = probe_stderr_begin();
	th_stack_open(&s, &o);
	c = ck_of(self, &s);
	ret = fi_mr_reg(s.domain, p, (size_t)K1_KIB * 1024, RK_RW, 0, RK_KEY, 0,
			&mr, NULL);
	probe_stderr_end(&e, text, sizeof(text));
	if (!strcmp(policy, "require") && limit != RLIM_INFINITY) {
		k1_refused(&s, p, ret, text, limit);
	} else {
		th_ok(ret);
		k1_granted(mr, p, policy, limit);
	}
	th_ok(c.ops->flush(&s.domain->fid));
	th_stack_close(&s);
	th_eq(ck_locked(p, (size_t)K1_KIB * 1024), 0);
}

/* Limits of locked memory and policies: data or a clear error. */
static void case_K1(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	unsigned char *p;
	int fd;

	ck_set(self);
	k1_load(&o);
	p = th_huge_map((size_t)K1_KIB * 1024, &fd);
	for (size_t i = 0; i < sizeof(k1_limit) / sizeof(*k1_limit); i++) {
		if (i == 1)
			k1_become_user(self);
		if (k1_limit_is(k1_limit[i], p))
			for (size_t k = 0; k < 3; k++)
				k1_try(self, p, k1_policy[k], k1_limit[i]);
		else if (i == 1)
			th_skip(self, "RLIMIT_MEMLOCK is too low");
	}
	munmap(p, (size_t)K1_KIB * 1024 + TH_HUGE_PERIOD);
	close(fd);
}

/*
 * What the cache keeps locked for nobody is no reason to refuse a region: by
 * registration, in a batch, by acquire.
 */
static void case_K1_idle(struct th_self *self)
{
	struct iovec v = { .iov_len = K1_LARGE };
	struct fi_mr_attr a = { .mr_iov = &v,
				.iov_count = 1,
				.access = RK_RW,
				.requested_key = RK_KEY };
	struct th_stack_opts o = rk_opts();
	struct fi_ops_shrimp_mr *ops;
	unsigned char *p[3];
	struct fid_mr *mr;
	struct th_stack s;
	struct ck c;

	ck_set(self);
	k1_load(&o);
	for (int i = 0; i < 3; i++)
		p[i] = rk_pages(K1_LARGE);
	if (!k1_limit_is(K1_LIMIT, p[0]))
		th_skip(self, "RLIMIT_MEMLOCK is too low");
	k1_become_user(self);
	setenv("FI_SHRIMP_PIN", "require", 1);
	th_stack_open(&s, &o);
	c = ck_of(self, &s);
	th_ok(fi_open_ops(&s.domain->fid, FI_SHRIMP_OPS_MR, 0, (void **)&ops,
			  NULL));
	for (int i = 0; i < 6; i++) {
		v.iov_base = p[i % 3];
		if (i % 2)
			th_ok(ops->reg_batch(&s.domain->fid, &a, 1, 0, &mr));
		else
			th_ok(fi_mr_regattr(s.domain, &a, 0, &mr));
		th_eq(ck_locked(p[i % 3], K1_LARGE), K1_LARGE);
		th_eq(ck_locked(p[(i + 2) % 3], K1_LARGE), 0);
		th_ok(fi_close(&mr->fid));
		/* a batch has no part in the cache */
		th_eq(ck_locked(p[i % 3], K1_LARGE), i % 2 ? 0 : K1_LARGE);
	}
	/* in use it is not given back */
	th_ok(c.ops->acquire(&s.domain->fid, p[0], K1_LARGE, CK_LOCAL, &mr));
	th_eq(fi_mr_regattr(s.domain, &a, 0, &mr), -FI_ENOMEM);
	th_ok(c.ops->release(mr));
	th_ok(c.ops->flush(&s.domain->fid));
	th_stack_close(&s);
	for (int i = 0; i < 3; i++)
		munmap(p[i], K1_LARGE);
}

/* ---- table ------------------------------------------------------------------ */

/* Room for one entry only. */
static struct ck_how ck_all_uffd_one = { .cache = "all",
					 .monitor = "uffd",
					 .entries = "1" };
static struct ck_how ck_local_uffd_one = { .cache = "local",
					   .monitor = "uffd",
					   .entries = "1" };
/* Whatever monitor there is. */
static struct ck_how ck_all_auto = { .cache = "all", .monitor = "auto" };
static struct ck_how ck_local_auto = { .cache = "local", .monitor = "auto" };

/* Table entry: rank 1 of case_C8_killed dies. */
#define C8_KILLED(how)                                                         \
	{                                                                      \
		"case_C8_killed_" #how, case_C8_killed, NULL, NULL, &ck_##how  \
	}

static const struct CMUnitTest cache_process[] = {
	CK_CASE(case_C2, 1, 60, off),
	CK_CASE(case_C2, 1, 60, local_uffd),
	CK_CASE(case_C2, 1, 60, all_uffd),
	CK_CASE(case_C2, 1, 60, all_notify),
	CK_CASE(case_C2, 1, 60, all_keep),
	CK_SOME(case_C4, 1, 60),
	CK_CASE(case_C4, 1, 60, all_off),
	CK_CASE(case_C6, 1, 60, off),
	CK_CASE(case_C6, 1, 60, local_uffd),
	CK_CASE(case_C6, 1, 60, all_uffd),
	CK_CASE(case_C6, 1, 60, all_notify),
	CK_CASE(case_C6, 1, 60, all_off),
	CK_CASE(case_C8, 2, 60, off),
	CK_CASE(case_C8, 2, 60, all_off),
	CK_CASE(case_C8, 2, 60, local_off),
	CK_CASE(case_C8, 2, 60, all_uffd_one),
	CK_CASE(case_C8, 2, 60, local_uffd_one),
	CK_CASE(case_C8_refused, 2, 60, all_auto),
	CK_CASE(case_C8_refused, 2, 60, local_auto),
	CK_CASE(case_C8_refused, 2, 60, all_notify),
	C8_KILLED(off),
	C8_KILLED(local_uffd),
	C8_KILLED(all_uffd),
	CK_SOME(case_C11, 2, 30),
	CK_SOME(case_C13, 1, 30),
	CK_CASE(case_K1, 1, 60, off),
	CK_CASE(case_K1, 1, 60, all_keep),
	CK_CASE(case_K1_idle, 1, 20, all_keep),
};

TH_MAIN(cache_process)
