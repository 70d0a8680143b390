/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The monitor's thread, from the outside: it never calls the allocator, takes
 * no mutex, and holds up nobody but who unmaps watched memory. So no lock that
 * an application holds in free() can be waited for.
 *
 * This program's own malloc(), free() and pthread_mutex_lock() abort in that
 * thread. It is known by its stack, which is given to pthread_create() and
 * locked; that one was found is checked.
 */
#define _GNU_SOURCE
#include "cache_kit.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env_probe.h"
#include "shm/atomic.h"
#include "shm/trap_kit.h"

enum { PAGE = RK_PAGE, MIB = 1 << 20 };

/* ---- what the thread must not call ---------------------------------------- */

static __thread bool forbidden; /* this thread must not call these */
static rnic_a64 found;		/* threads with a locked stack of their own */

/* Not by a handler that a library has set: that would come here again. */
void kit_trap(void)
{
	if (!forbidden)
		return;
	forbidden = false;
	signal(SIGABRT, SIG_DFL);
	abort();
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
typedef void *thread_fn(void *arg);
typedef int create_fn(pthread_t *t, const pthread_attr_t *attr, thread_fn *fn,
		      void *arg);
typedef int lock_fn(pthread_mutex_t *m);

/* libc's own @name. */
static void *next(const char *name)
{
	void *p = dlsym(RTLD_NEXT, name);

	if (!p)
		abort();
	return p;
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
	static rnic_aptr libc_s;
	lock_fn *fn;
	void *p;

	kit_trap();
	/* relaxed: whoever finds it finds the same */
	p = rnic_ptr_load_relaxed(&libc_s);
	if (!p) {
		p = next("pthread_mutex_lock");
		rnic_ptr_store_release(&libc_s, p);
	}
	memcpy(&fn, &p, sizeof(fn));
	return fn(m);
}

/* What a thread with a locked stack runs. */
struct run {
	thread_fn *fn; /* its function */
	void *arg;     /* and what that is given */
};

static void *run_forbidden(void *arg)
{
	struct run r = *(struct run *)arg;
	void *ret;

	free(arg);
	forbidden = true;
	ret = r.fn(r.arg);
	/* libc tidies up after it */
	forbidden = false;
	return ret;
}

static bool has_locked_stack(const pthread_attr_t *attr)
{
	void *stack;
	size_t len;

	return attr && !pthread_attr_getstack(attr, &stack, &len) &&
	       ck_locked(stack, len);
}

int pthread_create(pthread_t *t, const pthread_attr_t *attr, thread_fn *fn,
		   void *arg)
{
	void *p = next("pthread_create");
	create_fn *create;
	struct run *r;

	memcpy(&create, &p, sizeof(create));
	if (!has_locked_stack(attr))
		return create(t, attr, fn, arg);
	r = malloc(sizeof(*r));
	if (!r)
		abort();
	*r = (struct run){ fn, arg };
	rnic_add64_relaxed(&found, 1);
	return create(t, attr, run_forbidden, r);
}
#endif

static void trapped(struct th_self *self)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	if (!KIT_TRAPS)
		th_skip(self, "the sanitizer has its own malloc");
	forbidden = true;
	if (self->arg)
		pthread_mutex_lock(&lock);
	else
		free(malloc(10));
}

static void traps_work(void **state)
{
	(void)state;
	for (uintptr_t i = 0; i < 2; i++) {
		struct th_group *g = th_group_start(1, trapped, (void *)i, 20);

		if (KIT_TRAPS)
			th_group_expect_death(g, 0, SIGABRT);
		th_group_finish(g);
	}
}

/* ---- all that it does ------------------------------------------------------- */

enum { RULES_LEN = 64 * PAGE, DEMAND_KEY = 5, LIVE_KEY = 6 };

/* Regions on demand and live ones, which a peer uses. */
struct rules {
	struct th_self *self; /* rank 0 owns, the other uses */
	struct th_stack s;    /* its stack */
	struct ck c;	      /* its cache */
	unsigned char *p;     /* RULES_LEN bytes, on demand */
	struct fid_mr *mr;    /* their region */
};

static void rules_open(struct rules *t, struct th_self *self)
{
	struct th_stack_opts o = rk_opts();

	*t = (struct rules){ .self = self };
	ck_set(self);
	setenv("FI_SHRIMP_MR_CACHE_ENTRIES", "4", 1);
	/* pages on demand that are given up */
	setenv("FI_SHRIMP_PIN", "off", 1);
	th_stack_open(&t->s, &o);
	th_stack_connect(&t->s, self);
	t->c = ck_of(self, &t->s);
}

static void rules_demand(struct rules *t)
{
	struct iovec iov = { .iov_len = RULES_LEN };
	struct fi_mr_attr a = { .mr_iov = &iov,
				.iov_count = 1,
				.access = RK_RW,
				.requested_key = DEMAND_KEY };

	t->p = rk_pages(RULES_LEN);
	iov.iov_base = t->p;
	th_ok(fi_mr_regattr(t->s.domain, &a, FI_SHRIMP_ON_DEMAND, &t->mr));
}

/* Each kind of change, at a page that is there or is not. */
static void rules_change(const struct rules *t, uint64_t r)
{
	unsigned char *p = t->p + (r >> 8) % (RULES_LEN / PAGE) * PAGE, *q;

	switch (r % 4) {
	case 0:
		ck_replace(&t->c, p, PAGE, -1, 0);
		break;
	case 1:
		th_eq(madvise(p, PAGE, MADV_DONTNEED), 0);
		break;
	case 2:
		q = rk_pages(PAGE);
		th_ptr_eq(
			mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q),
			q);
		th_eq(munmap(q, PAGE), 0);
		ck_map_over(&t->c, p, PAGE, -1, 0);
		break;
	default:
		ck_map_over(&t->c, p, PAGE, -1, 0);
	}
}

/* A buffer is registered, maybe twice, and goes away, maybe too early. */
static void rules_cache(const struct rules *t, uint64_t r)
{
	size_t len = (1 + (r >> 8) % 100) * PAGE;
	unsigned char *p = r & 1 ? malloc(len) : rk_pages(len);
	struct fid_mr *mr = NULL;

	th_check(p);
	for (int i = 0; i < 2; i++) {
		mr = rk_reg((struct th_stack *)(uintptr_t)&t->s, p, len,
			    r & 2 ? RK_RW : CK_LOCAL, LIVE_KEY);
		if (i || r & 4)
			th_ok(fi_close(&mr->fid));
		else
			break;
	}
	if (r & 1)
		free(p);
	else
		th_eq(munmap(p, len), 0);
	if (!(r & 4))
		th_ok(fi_close(&mr->fid));
}

/* Uses the pages until told that it is enough; some are not there. */
static void rules_peer(struct rules *t, rnic_a32 *over)
{
	unsigned char buf[PAGE];
	uint64_t state = 3;
	int err;

	memset(buf, 1, PAGE);
	while (!rnic_load32_relaxed(over)) {
		uint64_t r = th_random(&state);

		th_ok(fi_write(t->s.ep, buf, PAGE, NULL, t->s.peers[0],
			       r % (RULES_LEN - PAGE), DEMAND_KEY, t));
		err = rk_end(&t->s).err;
		th_check(!err || err == FI_EFAULT || err == FI_EKEYREJECTED);
	}
}

static rnic_a32 *rules_over; /* shared: 1: the peer ends */

static void rules_owner(struct rules *t)
{
	struct th_deadline dl = th_patience();
	uint64_t state = 4;

	for (unsigned long i = 0; i < th_rounds(1000); i++) {
		rules_change(t, th_random(&state));
		rules_cache(t, th_random(&state));
		th_progress(&t->s);
	}
	/* something of that was heard of */
	while (!ck_stats(&t->c).pages_invalidated) {
		rules_change(t, th_random(&state));
		th_progress(&t->s);
		th_check(!th_expired(&dl));
	}
	rnic_store32_relaxed(rules_over, 1);
	if (KIT_TRAPS)
		th_check(rnic_load64_relaxed(&found) > 0);
}

/*
 * Pages change below regions on demand, closed ones and open ones, while a
 * peer uses them and the cache overflows.
 */
static void monitor_keeps_its_rules(struct th_self *self)
{
	struct rules t;

	rules_open(&t, self);
	if (!self->rank)
		rules_demand(&t);
	th_barrier_progress(self, &t.s, "begin");
	if (self->rank)
		rules_peer(&t, rules_over);
	else
		rules_owner(&t);
	th_barrier_progress(self, &t.s, "end");
	rnic_store32_relaxed(rules_over, 0);
	if (t.mr) {
		th_ok(fi_close(&t.mr->fid));
		th_eq(munmap(t.p, RULES_LEN), 0);
	}
	th_stack_close(&t.s);
}

/* ---- who tells ---------------------------------------------------------------- */

/* As from within an allocator that holds its locks. */
static void *teller_main(void *arg)
{
	struct ck *c = arg;
	char *p = (char *)(uintptr_t)0x40000000;

	forbidden = true;
	for (int i = 0; i < 100; i++) {
		ck_begin(c, p + i * PAGE, PAGE);
		ck_end(c, p + i * PAGE, PAGE);
	}
	forbidden = false;
	return NULL;
}

/* A thread that was never seen before tells of memory, and calls neither. */
static void telling_takes_nothing(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack s;
	pthread_t thread;
	struct fid_mr *mr;
	struct ck c;
	void *p;

	ck_set(self);
	th_stack_open(&s, &o);
	c = ck_of(self, &s);
	for (int i = 0; i < 3; i++) {
		/* something is there to be marked */
		p = ck_map_at((char *)(uintptr_t)0x40000000, 100 * PAGE, -1);
		mr = rk_reg(&s, p, 100 * PAGE, RK_RW, RK_KEY);
		if (i & 1)
			th_ok(fi_close(&mr->fid));
		th_eq(pthread_create(&thread, NULL, teller_main, &c), 0);
		th_eq(pthread_join(thread, NULL), 0);
		if (!(i & 1))
			th_ok(fi_close(&mr->fid));
		th_eq(munmap(p, 100 * PAGE), 0);
	}
	th_stack_close(&s);
}

/* ---- the allocator's lock --------------------------------------------------- */

enum { HEAP_THREADS = 3, HEAP_BLOCK = 256 << 10 };

static rnic_a32 heap_over;   /* 1: end */
static rnic_a64 heap_rounds; /* of all threads */

/* From the one heap, whose lock the others want. */
static void *heap_main(void *arg)
{
	uint64_t state = (uintptr_t)arg;

	while (!rnic_load32_relaxed(&heap_over)) {
		void *p = malloc(1 + th_random(&state) % HEAP_BLOCK);

		th_check(p);
		memset(p, 1, 1);
		free(p);
		rnic_add64_relaxed(&heap_rounds, 1);
	}
	return NULL;
}

/* Watched memory on top of the heap, in use by a peer, is given back. */
static void heap_once(struct th_stack *a, struct th_stack *b, uint64_t i)
{
	size_t len = HEAP_BLOCK + i % 7 * 4 * PAGE;
	unsigned char *p = malloc(len), buf[64] = { 0 };
	struct iovec iov = { .iov_base = p, .iov_len = len };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = RK_RW,
				   .requested_key = RK_KEY };
	struct fid_mr *mr, *cached;

	th_check(p);
	th_ok(fi_mr_regattr(a->domain, &attr, FI_SHRIMP_ON_DEMAND, &mr));
	cached = rk_reg(a, p, len, i & 1 ? RK_RW : CK_LOCAL, RK_KEY + 1);
	/* to the last page, which goes first: the agent works for it */
	th_ok(fi_write(b->ep, buf, 64, NULL, b->peers[0], len - 64, RK_KEY, b));
	rk_done(b, FI_WRITE, b);
	th_ok(fi_close(&cached->fid));
	/* the heap shrinks, under its lock, and waits for the monitor */
	free(p);
	th_ok(fi_close(&mr->fid));
}

/* Watched pages of the heap have gone, as far as that can be told. */
static bool heap_shrank(struct th_stack *s)
{
	return !KIT_TRAPS || probe_stats(&s->domain->fid).pages_invalidated > 0;
}

static void free_under_the_arena_lock(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	pthread_t thread[HEAP_THREADS];
	struct th_stack a, b;
	uint64_t rounds;

	ck_set(self);
	setenv("FI_SHRIMP_PIN", "off", 1);
	/* one heap for all, never another mapping, given back at once */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 16 * MIB);
	mallopt(M_TRIM_THRESHOLD, 0);
	o.threading = FI_THREAD_SAFE;
	th_pair_open(&a, &b, &o);
	for (uintptr_t i = 0; i < HEAP_THREADS; i++)
		th_eq(pthread_create(&thread[i], NULL, heap_main,
				     (void *)(i + 1)),
		      0);
	rounds = rnic_load64_relaxed(&heap_rounds);
	/* the others may hold the top of the heap for a while */
	for (unsigned long i = 0;
	     i < th_rounds(200) || (i < 20000 && !heap_shrank(&a)); i++)
		heap_once(&a, &b, i);
	while (rnic_load64_relaxed(&heap_rounds) < rounds + 100)
		sched_yield();
	/* so it was: watched pages of the heap went */
	th_check(heap_shrank(&a));
	rnic_store32_relaxed(&heap_over, 1);
	for (int i = 0; i < HEAP_THREADS; i++)
		th_eq(pthread_join(thread[i], NULL), 0);
	th_pair_close(&a, &b);
}

/* ---- while an unmap waits ------------------------------------------------------ */

enum {
	WAIT_LEN = 16 << 20,  /* bytes of the region that is written to */
	WAIT_TRIES = 5,	      /* a stop may miss the writer */
	WAIT_THREADS = 3,     /* that allocate meanwhile */
	WAIT_ROUNDS = 300,    /* each so often */
	WAIT_BLOCK = 3 * MIB, /* at most: mapped and unmapped by malloc */
};

/* munmap() of a watched page in a thread of its own. */
struct unmapper {
	pthread_t thread; /* itself */
	unsigned char *p; /* the page */
	rnic_a32 begun;	  /* 1: it is about to call it */
	rnic_a32 done;	  /* 1: it has returned */
};

static void *unmapper_main(void *arg)
{
	struct unmapper *u = arg;

	rnic_store32_release(&u->begun, 1);
	th_eq(munmap(u->p, PAGE), 0);
	rnic_store32_release(&u->done, 1);
	return NULL;
}

static void *allocate_main(void *arg)
{
	uint64_t state = (uintptr_t)arg;

	for (int i = 0; i < WAIT_ROUNDS; i++) {
		size_t len = WAIT_BLOCK / 8 +
			     th_random(&state) % (WAIT_BLOCK * 7 / 8);
		unsigned char *p = malloc(len);

		th_check(p);
		p[0] = p[len - 1] = 1;
		free(p);
	}
	return NULL;
}

/* All of them come to an end. */
static void allocate(void)
{
	pthread_t thread[WAIT_THREADS];

	for (uintptr_t i = 0; i < WAIT_THREADS; i++)
		th_eq(pthread_create(&thread[i], NULL, allocate_main,
				     (void *)(i + 1)),
		      0);
	for (int i = 0; i < WAIT_THREADS; i++)
		th_eq(pthread_join(thread[i], NULL), 0);
}

/* A page of a watched region is unmapped while the writer is stopped. */
static void wait_once(struct th_self *self, struct th_stack *s)
{
	unsigned char *page = rk_pages(PAGE);
	struct fid_mr *mr = rk_reg(s, page, PAGE, RK_RW, RK_KEY + 1);
	struct unmapper u = { .p = page };

	th_note(self, "ready", 1);
	th_listen(self);
	th_eq(pthread_create(&u.thread, NULL, unmapper_main, &u), 0);
	/* acquire: it has begun, and gets some time to get to the kernel */
	while (!rnic_load32_acquire(&u.begun))
		sched_yield();
	th_sleep_us(20000);
	allocate();
	/* acquire: it has returned, or waited all the time */
	th_note(self, "allocated", !rnic_load32_acquire(&u.done));
	th_eq(pthread_join(u.thread, NULL), 0);
	th_ok(fi_close(&mr->fid));
}

static void wait_writer(struct th_self *self, struct th_stack *s,
			const void *buf)
{
	struct rk_outcome e;

	th_note(self, "writes", 1);
	do {
		th_ok(fi_write(s->ep, buf, WAIT_LEN, NULL, s->peers[0], 0,
			       RK_KEY, s));
		e = rk_end(s);
	} while (!e.err);
	th_eq(e.err, FI_EKEYREJECTED);
}

static void wait_main(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	unsigned char *p = rk_pages(WAIT_LEN);
	struct fid_mr *mr = NULL;
	struct th_stack s;

	ck_set(self);
	setenv("FI_SHRIMP_MONITOR", "uffd", 1);
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	if (!self->rank)
		mr = rk_reg(&s, p, WAIT_LEN, RK_RW, RK_KEY);
	th_barrier_progress(self, &s, "registered");
	if (self->rank)
		wait_writer(self, &s, p);
	for (int i = 0; !self->rank && i < WAIT_TRIES; i++)
		wait_once(self, &s);
	if (mr)
		th_ok(fi_close(&mr->fid));
	th_barrier_progress(self, &s, "end");
	munmap(p, WAIT_LEN);
	th_stack_close(&s);
}

/*
 * The writer is stopped inside, nearly always: then the munmap waits, and
 * whoever allocates does not.
 */
static void allocate_while_an_unmap_waits(void **state)
{
	const struct ck_spec *spec = *state;
	struct th_group *g = th_group_start(2, wait_main, spec->how, 60);
	uint64_t waited = 0, end;

	th_group_wait_note(g, 1, "writes");
	for (int i = 0; i < WAIT_TRIES; i++) {
		th_group_wait_note(g, 0, "ready");
		end = th_now_ns() + 5000000;
		while (th_now_ns() < end)
			th_group_pump(g, 5);
		th_group_kill(g, 1, SIGSTOP);
		th_group_tell(g, 0, 1);
		waited += th_group_wait_note(g, 0, "allocated");
		th_group_kill(g, 1, SIGCONT);
	}
	th_group_finish(g);
	th_check(waited > 0);
}

/* ---- table ------------------------------------------------------------------ */

static struct ck_spec wait_spec = { .how = &ck_all_uffd };

static const struct CMUnitTest cache_thread[] = {
	cmocka_unit_test(traps_work),
	CK_CASE(monitor_keeps_its_rules, 2, 60, off),
	CK_CASE(monitor_keeps_its_rules, 2, 60, local_uffd),
	CK_CASE(monitor_keeps_its_rules, 2, 60, all_uffd),
	CK_CASE(monitor_keeps_its_rules, 2, 60, all_keep),
	CK_CASE(telling_takes_nothing, 1, 20, all_notify),
	CK_CASE(free_under_the_arena_lock, 1, 60, off),
	CK_CASE(free_under_the_arena_lock, 1, 60, all_uffd),
	cmocka_unit_test_prestate(allocate_while_an_unmap_waits, &wait_spec),
};

int main(int argc, char **argv)
{
	rules_over = probe_shared(sizeof(*rules_over));
	return th_main(argc, argv, "cache_thread", cache_thread,
		       sizeof(cache_thread) / sizeof(*cache_thread));
}
