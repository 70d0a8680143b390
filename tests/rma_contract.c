/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Lines of the contract that need an owner and an initiator in two processes:
 * lookups that race with registration and close, operations that a close
 * catches, readers that stop or die inside, targets that stop.
 *
 * Limit: 300 s
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "env_probe.h"

/* What the processes of a test see. */
struct shared {
	_Atomic bool over;	 /* time is up */
	_Atomic uint64_t found;	 /* lookups that found a region */
	_Atomic uint64_t missed; /* and that did not */
	_Atomic uint64_t caught; /* operations that a close ended */
};

static struct shared *shared;

/* ---- R2, R5: racing lookups --------------------------------------------------- */

enum {
	SHORT = 64,	/* region A: few bytes, to be read */
	LONG = 8192,	/* region B: more, to be read and written */
	PIECE = 1000,	/* region C: two pieces, to be read */
	BYTE_A = 0xaa,	/* what A holds */
	BYTE_B = 0xbb,	/* B */
	BYTE_C1 = 0xc1, /* C, first piece */
	BYTE_C2 = 0xc2, /* C, second piece */
	POISON = 0xdd,	/* what nobody may see */
	SECONDS_R2 = 3,
};

/* The meanings that a key has in turn. */
struct meanings {
	struct rk_mem a, b, c; /* pages with poison around the region */
};

static struct meanings meanings_new(struct th_stack *s)
{
	struct meanings m = { rk_mem_new(s, true, RK_PAGE),
			      rk_mem_new(s, false, 4 * RK_PAGE),
			      rk_mem_new(s, true, 2 * RK_PAGE) };

	memset(m.a.p, POISON, m.a.len);
	memset(m.b.p, POISON, m.b.len);
	memset(m.c.p, POISON, m.c.len);
	memset(m.a.p + 100, BYTE_A, SHORT);
	memset(m.b.p + RK_PAGE, BYTE_B, LONG);
	memset(m.c.p + 50, BYTE_C1, PIECE);
	memset(m.c.p + RK_PAGE, BYTE_C2, PIECE);
	return m;
}

/* Nothing but B's first bytes was written, and these as they were. */
static void meanings_check(const struct meanings *m)
{
	th_verify_byte(m->a.p, 100, POISON);
	th_verify_byte(m->a.p + 100, SHORT, BYTE_A);
	th_verify_byte(m->a.p + 100 + SHORT, RK_PAGE - 100 - SHORT, POISON);
	th_verify_byte(m->b.p, RK_PAGE, POISON);
	th_verify_byte(m->b.p + RK_PAGE, LONG, BYTE_B);
	th_verify_byte(m->b.p + RK_PAGE + LONG, 4 * RK_PAGE - RK_PAGE - LONG,
		       POISON);
	th_verify_byte(m->c.p + 50, PIECE, BYTE_C1);
	th_verify_byte(m->c.p + RK_PAGE, PIECE, BYTE_C2);
}

static struct fid_mr *mean(struct th_stack *s, const struct meanings *m,
			   uint64_t i)
{
	const struct iovec iov[2] = { { m->c.p + 50, PIECE },
				      { m->c.p + RK_PAGE, PIECE } };
	struct fid_mr *mr;

	switch (i % 3) {
	case 0:
		return rk_reg(s, m->a.p + 100, SHORT, FI_REMOTE_READ, RK_KEY);
	case 1:
		return rk_reg(s, m->b.p + RK_PAGE, LONG, RK_RW, RK_KEY);
	default:
		th_ok(fi_mr_regv(s->domain, iov, 2, FI_REMOTE_READ, 0, RK_KEY,
				 0, &mr, NULL));
		return mr;
	}
}

/* The reader has found something, and nothing. */
static bool enough_lookups(void)
{
	return atomic_load(&shared->found) && atomic_load(&shared->missed);
}

/* For the next test; by each process, when all are done. */
static void forget_lookups(void)
{
	atomic_store(&shared->over, false);
	atomic_store(&shared->found, 0);
	atomic_store(&shared->missed, 0);
}

/* One meaning after the other; @n at least, until @end_ns. */
static void r2_register(struct th_stack *s, struct meanings *m, unsigned long n,
			uint64_t end_ns)
{
	struct th_deadline patience = th_patience();
	uint64_t state = n;

	for (unsigned long i = 0;
	     i < n || th_now_ns() < end_ns ||
	     (end_ns && !enough_lookups() && !th_expired(&patience));
	     i++) {
		struct fid_mr *mr = mean(s, m, th_random(&state) >> 8);

		for (uint64_t k = th_random(&state) % 16; end_ns && k; k--)
			th_progress(s);
		if (end_ns && i % 16 == 0)
			sched_yield();
		th_ok(fi_close(&mr->fid));
		if (i % 64 == 0)
			meanings_check(m);
	}
}

/* Slots are used again after 4096 others: what they were then is old. */
static void r2_owner(struct th_self *self, struct th_stack *s)
{
	struct meanings m = meanings_new(s);

	r2_register(s, &m, th_rounds(10000), 0);
	th_barrier(self, "old");
	r2_register(s, &m, 50,
		    th_now_ns() + UINT64_C(1000000) * rk_ms(SECONDS_R2));
	atomic_store(&shared->over, true);
	meanings_check(&m);
	rk_mem_free(&m.a);
	rk_mem_free(&m.b);
	rk_mem_free(&m.c);
}

/* True if @len bytes read from @off are those of one meaning. */
static bool is_one_meaning(const unsigned char *p, size_t off, size_t len)
{
	size_t cut = off < PIECE ? PIECE - off : 0;

	if (p[0] == BYTE_A && off + len > SHORT)
		return false;
	if (p[0] == BYTE_A || p[0] == BYTE_B)
		return memcmp(p, p + 1, len - 1) == 0;
	for (size_t i = 0; i < len; i++)
		if (p[i] != (i < cut ? BYTE_C1 : BYTE_C2))
			return false;
	return true;
}

/* Reads anywhere; writes only what B holds anyway. */
static int r2_op(struct th_stack *s, uint64_t r)
{
	unsigned char buf[256];
	size_t len = 2 + (r >> 8) % 200, off = (r >> 24) % 2000;
	bool write = r % 8 == 0;
	struct rk_outcome e;

	if (r & 1 << 20)
		off = 0, len = SHORT;
	memset(buf, BYTE_B, sizeof(buf));
	if (write)
		th_ok(fi_write(s->ep, buf, len, NULL, s->peers[0], off, RK_KEY,
			       buf));
	else
		th_ok(fi_read(s->ep, buf, len, NULL, s->peers[0], off, RK_KEY,
			      buf));
	e = rk_end(s);
	th_check(!e.err || e.err == FI_EKEYREJECTED ||
		 (e.err == FI_EINVAL && off + len > SHORT) ||
		 (e.err == FI_EACCES && write));
	if (!e.err && !write && !is_one_meaning(buf, off, len))
		th_fail(__FILE__, __LINE__,
			"%zu bytes from %zu: %#x ... %#x are of no region", len,
			off, buf[0], buf[len - 1]);
	return e.err;
}

static void r2_reader(struct th_self *self, struct th_stack *s)
{
	uint64_t state = 3;

	th_barrier(self, "old");
	while (!atomic_load(&shared->over))
		atomic_fetch_add(r2_op(s, th_random(&state)) ? &shared->missed
							     : &shared->found,
				 1);
	th_check(enough_lookups());
}

/*
 * A key means three regions in turn, which differ in kind of memory, length,
 * rights and shape. A lookup finds one of them as a whole, or none.
 */
static void contract_R2_racing_lookups(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack s;

	setenv("FI_SHRIMP_PIN", "off", 1);
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	if (self->rank)
		r2_reader(self, &s);
	else
		r2_owner(self, &s);
	th_barrier_progress(self, &s, "end");
	forget_lookups();
	th_stack_close(&s);
}

/* Makes the key and withdraws it, until the reader has met both often. */
static void r5_owner(struct th_stack *s, struct rk_mem *m)
{
	uint64_t end = th_now_ns() + UINT64_C(1000000) * rk_ms(2);
	struct th_deadline patience = th_patience();
	uint64_t state = 5;

	while (th_now_ns() < end ||
	       (!enough_lookups() && !th_expired(&patience))) {
		struct fid_mr *mr = rk_reg(s, m->p, RK_PAGE, RK_RW, RK_KEY);

		/* as long as it is not there, or longer */
		for (uint64_t k = th_random(&state) % 16; k; k--)
			th_progress(s);
		th_ok(fi_close(&mr->fid));
		if (th_random(&state) % 16 == 0)
			sched_yield();
	}
	atomic_store(&shared->over, true);
}

static void r5_reader(struct th_stack *s)
{
	while (!atomic_load(&shared->over)) {
		unsigned char buf[64] = { 0 };
		struct rk_outcome e;

		th_ok(fi_read(s->ep, buf, 64, NULL, s->peers[0], 64, RK_KEY,
			      buf));
		e = rk_end(s);
		th_check(e.err == 0 || e.err == FI_EKEYREJECTED);
		th_verify_byte(buf, 64, e.err ? 0 : BYTE_B);
		atomic_fetch_add(e.err ? &shared->missed : &shared->found, 1);
	}
	/* else nothing was tried */
	th_check(enough_lookups());
}

/* One meaning only: it is there or not, whatever the moment. */
static void contract_R5_two_states(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct rk_mem m;
	struct th_stack s;

	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	m = rk_mem_new(&s, true, RK_PAGE);
	memset(m.p, BYTE_B, RK_PAGE);
	if (self->rank)
		r5_reader(&s);
	else
		r5_owner(&s, &m);
	th_barrier_progress(self, &s, "end");
	forget_lookups();
	rk_mem_free(&m);
	th_stack_close(&s);
}

/* ---- R3: nothing is left ---------------------------------------------------------- */

static void contract_R3_nothing_left(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct iovec iov[16];
	struct fid_mr *mr = NULL, *taken;
	struct th_stack s;
	struct rk_mem m;
	uint64_t kib;

	(void)self;
	th_stack_open(&s, &o);
	m = rk_mem_new(&s, false, 16 * RK_PAGE);
	for (int i = 0; i < 16; i++)
		iov[i] = (struct iovec){ m.p + i * RK_PAGE, RK_PAGE };
	taken = rk_reg(&s, m.p, 1, RK_RW, 5);
	th_eq(mprotect(m.p + 15 * RK_PAGE, RK_PAGE, PROT_NONE), 0);
	kib = probe_segment_kib("shrimp-tables");
	for (unsigned long i = 0; i < th_rounds(5000); i++) {
		/* the last range is not there; the key is taken */
		th_eq(fi_mr_regv(s.domain, iov, 16, RK_RW, 0, 1, 0, &mr, NULL),
		      -FI_EFAULT);
		th_eq(fi_mr_regv(s.domain, iov, 15, RK_RW, 0, 5, 0, &mr, NULL),
		      -FI_ENOKEY);
		th_ptr_eq(mr, NULL);
	}
	th_check(rk_locked() <= RK_PAGE);
	th_check(probe_segment_kib("shrimp-tables") <= kib + 64);
	th_ok(fi_mr_regv(s.domain, iov, 15, RK_RW, 0, 1, 0, &mr, NULL));
	th_ok(fi_close(&mr->fid));
	th_ok(fi_close(&taken->fid));
	th_eq(rk_locked(), 0);
	rk_mem_free(&m);
	th_stack_close(&s);
}

/* ---- I3: caught in the middle --------------------------------------------------- */

enum {
	CHUNK = 512 << 10, /* moved between two looks at the key */
	BEFORE = 0x01,	   /* what is there before */
	AFTER = 0x02,	   /* what is moved */
	CLOSE_MS = 2000,   /* a chunk takes at most; the machine may be busy */
};

/* What the two tell each other. */
struct i3 {
	bool device;	    /* the memory */
	bool write;	    /* the operation */
	bool pages;	    /* FI_SHRIMP_MTT=pages: a chunk is a page */
	unsigned char *buf; /* the initiator's; the owner looks at it */
};

/* Waits until the operation has come to its chunk number @n. */
static void i3_begun(const struct i3 *how, const struct rk_mem *m,
		     unsigned long n)
{
	unsigned char *to = how->write ? m->p : how->buf;
	_Atomic unsigned char *p = (void *)(to + n * CHUNK % (rk_big() / 2));
	struct th_deadline d = th_patience();

	while (atomic_load_explicit(p, memory_order_relaxed) != AFTER)
		th_check(!th_expired(&d));
}

/* Closes when the operation has begun; then nothing moves any more. */
static void i3_owner(struct th_self *self, struct th_stack *s, struct rk_mem *m,
		     unsigned long round)
{
	const struct i3 *how = self->arg;
	struct fid_mr *mr;
	uint64_t t, moved[2] = { 0 };
	size_t done;

	memset(m->p, how->write ? BEFORE : AFTER, m->len);
	mr = rk_reg(s, m->p, m->len, RK_RW, RK_KEY);
	th_barrier_progress(self, s, "registered");
	i3_begun(how, m, round);
	t = th_now_ns();
	th_ok(fi_close(&mr->fid));
	t = th_now_ns() - t;
	th_check(t < UINT64_C(1000000) * CLOSE_MS * th_time_scale());
	for (done = 0; done < m->len && m->p[done] == AFTER; done++)
		;
	th_gather(self, "moved", &moved[0], moved, sizeof(moved[0]));
	if (how->write) {
		th_eq(done, moved[1]);
		th_verify_byte(m->p, done, AFTER);
		th_verify_byte(m->p + done, m->len - done, BEFORE);
	}
}

/* One long operation; it ends well or says how far it came. */
static void i3_initiator(struct th_self *self, struct th_stack *s)
{
	const struct i3 *how = self->arg;
	unsigned char *buf = how->buf;
	uint64_t moved, all[2];
	struct rk_outcome e;

	memset(buf, how->write ? AFTER : BEFORE, rk_big());
	th_barrier_progress(self, s, "registered");
	if (how->write)
		th_ok(fi_write(s->ep, buf, rk_big(), NULL, s->peers[0], 0,
			       RK_KEY, s));
	else
		th_ok(fi_read(s->ep, buf, rk_big(), NULL, s->peers[0], 0,
			      RK_KEY, s));
	e = rk_end(s);
	moved = e.err ? e.moved : rk_big();
	if (e.err) {
		th_eq(e.err, FI_EKEYREJECTED);
		th_eq(moved % (how->pages ? RK_PAGE : CHUNK), 0);
		th_check(moved < rk_big() && e.told && e.data.key == RK_KEY);
		if (moved)
			atomic_fetch_add(&shared->caught, 1);
	}
	th_gather(self, "moved", &moved, all, sizeof(moved));
	if (!how->write) {
		th_verify_byte(buf, moved, AFTER);
		th_verify_byte(buf + moved, rk_big() - moved, BEFORE);
	}
}

static void i3_main(struct th_self *self)
{
	const struct i3 *how = self->arg;
	struct th_stack_opts o = rk_opts();
	struct rk_mem m;
	struct th_stack s;

	setenv("FI_SHRIMP_MTT", how->pages ? "pages" : "extent", 1);
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	m = rk_mem_new(&s, how->device, rk_big());
	/* on a busy machine the close may often come too late */
	for (unsigned long i = 0; i < 200; i++) {
		th_barrier(self, "round");
		if (i > 5 && atomic_load(&shared->caught) > 2)
			break;
		th_barrier(self, "looked");
		if (self->rank)
			i3_initiator(self, &s);
		else
			i3_owner(self, &s, &m, i);
	}
	th_check(atomic_load(&shared->caught) > 0);
	th_barrier_progress(self, &s, "end");
	rk_mem_free(&m);
	th_stack_close(&s);
}

static void i3_run(bool device, bool write, bool pages)
{
	struct i3 how = { device, write, pages, probe_shared(rk_big()) };

	memset(shared, 0, sizeof(*shared));
	th_run(2, i3_main, &how, 60);
	munmap(how.buf, rk_big());
}

static void contract_I3_write_device(void **state)
{
	(void)state;
	i3_run(true, true, false);
}

static void contract_I3_write_private(void **state)
{
	(void)state;
	i3_run(false, true, false);
}

static void contract_I3_read_device(void **state)
{
	(void)state;
	i3_run(true, false, false);
}

static void contract_I3_read_private(void **state)
{
	(void)state;
	i3_run(false, false, false);
}

/* Leaf by leaf: the same, in smaller steps. */
static void contract_I3_pages(void **state)
{
	(void)state;
	i3_run(true, false, true);
	i3_run(false, true, true);
}

/* ---- I4: stale keys ------------------------------------------------------------- */

/* Keys of the provider that were closed are rejected, also much later. */
static void contract_I4_stale_keys(struct th_self *self)
{
	enum { OLD = 50, MORE = 12000 };
	struct th_stack_opts o = rk_opts();
	uint64_t old[OLD];
	struct th_stack a, b;
	unsigned char buf[8] = { 1 };
	struct fid_mr *mr;
	struct rk_mem m;

	(void)self;
	setenv("FI_SHRIMP_MR_MODE", "prov_key", 1);
	setenv("FI_SHRIMP_PIN", "off", 1);
	o.mr_mode |= FI_MR_PROV_KEY;
	th_pair_open(&a, &b, &o);
	m = rk_mem_new(&b, true, RK_PAGE);
	for (unsigned long i = 0; i < OLD + th_rounds(MORE); i++) {
		mr = rk_reg(&b, m.p, RK_PAGE, RK_RW, 0);
		if (i < OLD)
			old[i] = fi_mr_key(mr);
		th_ok(fi_write(a.ep, buf, 8, NULL, a.peers[1], 8, fi_mr_key(mr),
			       buf));
		rk_done(&a, FI_WRITE, buf);
		if (i >= OLD) {
			uint64_t key = old[i % OLD];

			th_ok(fi_write(a.ep, buf, 8, NULL, a.peers[1], 0, key,
				       buf));
			rk_refused(&a, FI_EKEYREJECTED, key, 0, 8);
		}
		th_ok(fi_close(&mr->fid));
	}
	th_verify_byte(m.p, 8, 0);
	rk_mem_free(&m);
	th_pair_close(&a, &b);
}

/* ---- I6, E7: readers that stop or die inside --------------------------------------- */

enum { STOPS = 3, SENTINEL = 0x99 };

/* Closes when told to, uses the memory, and looks again in the end. */
static void stopped_owner(struct th_self *self, struct th_stack *s,
			  struct rk_mem *m)
{
	struct fid_mr *mr = rk_reg(s, m->p, m->len, RK_RW, RK_KEY);
	uint64_t t;

	th_barrier(self, "registered");
	th_listen(self);
	t = th_now_ns();
	th_ok(fi_close(&mr->fid));
	t = th_now_ns() - t;
	memset(m->p, SENTINEL, m->len);
	th_note(self, "closed", t / 1000000);
	th_barrier(self, "rejected");
	th_verify_byte(m->p, m->len, SENTINEL);
}

static void stopped_main(struct th_self *self)
{
	bool device = self->arg != NULL;
	struct th_stack_opts o = rk_opts();
	struct probe_stderr e = { 0 };
	static char text[65536];
	struct th_stack s;
	struct rk_mem m;

	if (!self->rank)
		e = probe_stderr_begin();
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	m = rk_mem_new(&s, device, rk_big());
	for (int i = 0; i < STOPS; i++) {
		if (self->rank)
			rk_stream(self, &s, RK_KEY);
		else
			stopped_owner(self, &s, &m);
	}
	if (!self->rank) {
		probe_stderr_end(&e, text, sizeof(text));
		th_note(self, "listens", 1);
		if (th_listen(self))
			probe_expect(text, "stopped?");
	}
	th_barrier(self, "end");
	rk_mem_free(&m);
	th_stack_close(&s);
}

/*
 * A reader stops inside, nearly always: the close waits until it goes on, and
 * says so. If it stopped outside the close is at once. Never a late write.
 */
static void stopped_run(const char *device)
{
	struct th_group *g =
		th_group_start(2, stopped_main, (void *)(uintptr_t)device, 60);
	int waited = 0;

	for (int i = 0; i < STOPS; i++) {
		rk_stop_stream(g);
		th_group_serve(g, 1500);
		th_group_kill(g, 1, SIGCONT);
		waited += th_group_wait_note(g, 0, "closed") > 1200;
	}
	th_group_wait_note(g, 0, "listens");
	th_group_tell(g, 0, waited > 0);
	th_group_finish(g);
	th_check(waited > 0);
}

static void case_E7_device(void **state)
{
	(void)state;
	stopped_run("device");
}

static void case_E7_private(void **state)
{
	(void)state;
	stopped_run(NULL);
}

static void dead_main(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack s;
	struct rk_mem m;

	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	m = rk_mem_new(&s, true, rk_big());
	if (self->rank)
		rk_stream(self, &s, RK_KEY);
	stopped_owner(self, &s, &m);
	rk_mem_free(&m);
	th_stack_close(&s);
}

/* It is waited for while it is stopped; once dead it is not. */
static void contract_I6_dead_reader(void **state)
{
	struct th_group *g = th_group_start(2, dead_main, NULL, 30);
	uint64_t t;

	(void)state;
	rk_stop_stream(g);
	th_group_serve(g, 300);
	t = th_now_ns();
	th_group_kill(g, 1, SIGKILL);
	th_group_wait_note(g, 0, "closed");
	t = (th_now_ns() - t) / 1000000;
	th_group_finish(g);
	th_check(t < UINT64_C(1000) * th_time_scale());
}

/* ---- P1: a target that does nothing -------------------------------------------------- */

static void p1_initiator(struct th_self *self, struct th_stack *s)
{
	static unsigned char in[100000], out[100000];

	th_listen(self);
	for (uint64_t i = 0; i < th_rounds(2000); i++) {
		size_t len = 1 + i * 97 % sizeof(in);
		uint64_t key = 1 + i % 2;

		th_fill(in, len, i);
		th_ok(fi_write(s->ep, in, len, NULL, s->peers[0], 0, key, in));
		rk_done(s, FI_WRITE, in);
		th_ok(fi_read(s->ep, out, len, NULL, s->peers[0], 0, key, in));
		rk_done(s, FI_READ, in);
		th_verify(out, len, i);
	}
	th_note(self, "done", 1);
}

static void p1_main(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct fid_mr *mr[2];
	struct rk_mem m[2];
	struct th_stack s;

	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	for (int i = 0; i < 2; i++) {
		m[i] = rk_mem_new(&s, i == 0, 1 << 20);
		mr[i] = rk_reg(&s, m[i].p, m[i].len, RK_RW, (uint64_t)i + 1);
	}
	th_barrier(self, "registered");
	th_note(self, "registered", 1);
	if (self->rank)
		p1_initiator(self, &s);
	th_barrier(self, "end");
	for (int i = 0; i < 2; i++) {
		th_ok(fi_close(&mr[i]->fid));
		rk_mem_free(&m[i]);
	}
	th_stack_close(&s);
}

/* The target is stopped, from the first contact on; nothing needs it. */
static void contract_P1_stopped_target(void **state)
{
	struct th_group *g = th_group_start(2, p1_main, NULL, 60);

	(void)state;
	th_group_wait_note(g, 0, "registered");
	th_group_wait_note(g, 1, "registered");
	th_group_kill(g, 0, SIGSTOP);
	th_group_tell(g, 1, 1);
	th_group_wait_note(g, 1, "done");
	th_group_kill(g, 0, SIGCONT);
	th_group_finish(g);
}

/* ---- P5: order ------------------------------------------------------------------------ */

/*
 * Messages wait for room in the lane, and behind them a write, and one with
 * data: bytes and event come after all of them.
 */
static void contract_P5_behind_messages(struct th_self *self)
{
	enum { N = 1000 };
	struct th_stack_opts o = rk_opts();
	struct th_stack a, b;
	unsigned char in[8] = { 1, 2, 3 };
	static char msg[N][64];
	struct fid_mr *mr;
	struct rk_mem m;

	(void)self;
	th_pair_open(&a, &b, &o);
	m = rk_mem_new(&b, true, RK_PAGE);
	mr = rk_reg(&b, m.p, RK_PAGE, RK_RW, RK_KEY);
	for (int i = 0; i < N; i++)
		th_recv(&b, msg[i], 64, NULL);
	for (int i = 0; i < N; i++)
		th_send(&a, a.peers[1], msg[i], 60, NULL);
	th_ok(fi_write(a.ep, in, 8, NULL, a.peers[1], 8, RK_KEY, in));
	th_ok(fi_writedata(a.ep, in, 8, NULL, 5, a.peers[1], 0, RK_KEY, in));
	/* b has done nothing so far: the lane is full */
	th_verify_byte(m.p, 16, 0);
	for (int i = 0; i < N; i++)
		th_check(th_rx_ok(&b).flags & FI_RECV);
	th_eq(th_rx_ok(&b).flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	th_eq(memcmp(m.p, in, 8), 0);
	th_eq(memcmp(m.p + 8, in, 8), 0);
	for (int i = 0; i < N + 2; i++)
		th_tx_ok(&a);
	th_ok(fi_close(&mr->fid));
	rk_mem_free(&m);
	th_pair_close(&a, &b);
}

static const struct CMUnitTest rma_contract[] = {
	TH_CASE(contract_R2_racing_lookups, 2, 60),
	TH_CASE(contract_R5_two_states, 2, 30),
	TH_CASE(contract_R3_nothing_left, 1, 30),
	cmocka_unit_test(contract_I3_write_device),
	cmocka_unit_test(contract_I3_write_private),
	cmocka_unit_test(contract_I3_read_device),
	cmocka_unit_test(contract_I3_read_private),
	cmocka_unit_test(contract_I3_pages),
	TH_CASE(contract_I4_stale_keys, 1, 30),
	cmocka_unit_test(case_E7_device),
	cmocka_unit_test(case_E7_private),
	cmocka_unit_test(contract_I6_dead_reader),
	cmocka_unit_test(contract_P1_stopped_target),
	TH_CASE(contract_P5_behind_messages, 1, 30),
};

int main(int argc, char **argv)
{
	shared = probe_shared(sizeof(*shared));
	return th_main(argc, argv, "rma_contract", rma_contract,
		       sizeof(rma_contract) / sizeof(rma_contract[0]));
}
