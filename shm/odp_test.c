/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Regions on demand: the states of a page, what a fault makes and what an
 * invalidation leaves, and both at once.
 */
#include "shm/odp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shm/reach_kit.h"
#include "shm/vma.h"
#include "shm/watch.h"

enum {
	LIMIT_S = 60, /* the whole program ends by then */
	PAGE = RNIC_PAGE,
	TABLE = 512 * PAGE,	     /* bytes of a table of small pages */
	LEN = 2 * TABLE + 10 * PAGE, /* bytes of a memory: three tables */
	RW = RNIC_REMOTE_READ | RNIC_REMOTE_WRITE | RNIC_MR_ODP,
	RACE_MS = 500,
};

/* A region on demand, and a reader of it. */
struct bed {
	struct kit_owner o;  /* device */
	struct kit_reader d; /* reads and writes it */
	struct kit_mem m;    /* LEN private bytes */
	struct rnic_odp p;   /* of @m */
};

static void make(struct bed *b, enum rnic_pin_policy pin, bool watch)
{
	const struct rnic_odp_cfg cfg = {
		.dev = &b->o.dev,
		.mtt = &b->o.mtt,
		.va = (uintptr_t)b->m.p + 100,
		.length = b->m.len - 200,
		.pin = pin,
		.watch = watch,
	};
	struct rnic_region r = { .va = cfg.va,
				 .length = cfg.length,
				 .rights = RW };

	assert_int_equal(rnic_odp_init(&b->p, &cfg), 0);
	r.mtt = b->p.root;
	if (watch)
		r.rights |= RNIC_MR_WATCHED;
	assert_int_equal(
		rnic_mpt_reserve(&b->o.mpt, &r, false, &b->m.key, &b->m.slot),
		0);
	rnic_odp_live(&b->p, &b->o.mpt.mpt[b->m.slot]);
	rnic_mpt_show(&b->o.mpt, b->m.slot);
}

static void unmake(struct bed *b)
{
	rnic_mpt_invalidate(&b->o.mpt, b->m.slot);
	rnic_odp_fini(&b->p);
	rnic_mtt_free(&b->o.mtt, b->p.root, 0);
	assert_int_equal(rnic_mtt_pool_used(&b->o.mtt), 0);
}

static int setup(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	assert_int_equal(rnic_monitor_get(), 0);
	kit_owner_open(&b->o, true);
	assert_int_equal(kit_reader_open(&b->d, &b->o.addr), 0);
	b->m = kit_private(LEN);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct rnic_pin_stats s;
	struct bed *b = *state;

	munmap(b->m.p, LEN);
	kit_reader_close(&b->d);
	kit_owner_close(&b->o);
	rnic_monitor_put();
	free(b);
	assert_int_equal(rnic_watch_ranges(), 0);
	rnic_pin_stats(&s);
	assert_int_equal(s.pages, 0);
	return 0;
}

static struct rnic_odp_want want(struct bed *b, size_t page, size_t pages,
				 bool write)
{
	return (struct rnic_odp_want){
		.va = (uintptr_t)b->m.p + page * PAGE + (page ? 0 : 100),
		.len = pages * PAGE - (page ? 0 : 100),
		.write = write,
	};
}

/* rnic_odp_fault(); the monitor, if it is at work, is waited for. */
static int fault_at(struct bed *b, const struct rnic_odp_want *w)
{
	int ret;

	while ((ret = rnic_odp_fault(&b->p, w)) == -EBUSY)
		rnic_monitor_wait();
	return ret;
}

/* The same of whole pages. */
static int fault(struct bed *b, size_t page, size_t pages, bool write)
{
	struct rnic_odp_want w = want(b, page, pages, write);

	return fault_at(b, &w);
}

/* What a lookup of 8 bytes of a page says. */
static int look_up(struct bed *b, size_t page, uint32_t rights,
		   struct rnic_xlat *x)
{
	struct rnic_want w = { .key = b->m.key,
			       .addr = (uintptr_t)b->m.p + page * PAGE + 200,
			       .len = 8,
			       .rights = rights };
	int ret;

	rnic_enter(&b->d.x.target);
	ret = rnic_resolve(&b->d.c, &b->d.x.target, &w, x);
	rnic_leave(&b->d.x.target);
	return ret;
}

static int readable(struct bed *b, size_t page)
{
	struct rnic_xlat x;

	return look_up(b, page, RNIC_REMOTE_READ, &x);
}

static int writable(struct bed *b, size_t page)
{
	struct rnic_xlat x;

	return look_up(b, page, RNIC_REMOTE_WRITE, &x);
}

/* What the monitor does to pages. */
static void invalidate(struct bed *b, size_t page, size_t pages)
{
	uint64_t start = (uintptr_t)b->m.p + page * PAGE;

	b->p.watched.gone(&b->p.watched, start, start + pages * PAGE, true);
}

static uint64_t pinned(void)
{
	struct rnic_pin_stats s;

	rnic_pin_stats(&s);
	return s.pages;
}

/* ---- R11 ---- */

/* One table page, whatever the size. */
static void contract_R11_flat(void **state)
{
	struct bed *b = *state;
	static const uint64_t lens[] = { 1,
					 PAGE,
					 UINT64_C(3) << 20,
					 UINT64_C(1) << 30,
					 UINT64_C(64) << 30,
					 UINT64_C(500) << 30 };
	struct rnic_odp_cfg cfg = { .dev = &b->o.dev,
				    .mtt = &b->o.mtt,
				    .va = UINT64_C(0x100000000123) };
	struct rnic_odp p;

	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		cfg.length = lens[i];
		assert_int_equal(rnic_odp_init(&p, &cfg), 0);
		assert_int_equal(rnic_mtt_pool_used(&b->o.mtt), 1);
		assert_int_equal(rnic_odp_present(&p), 0);
		rnic_odp_fini(&p);
		rnic_mtt_free(&b->o.mtt, p.root, 0);
	}
	cfg.length = UINT64_C(520) << 30;
	assert_int_equal(rnic_odp_init(&p, &cfg), -EFBIG);
	assert_int_equal(rnic_mtt_pool_used(&b->o.mtt), 0);
}

/* Absent, then there to be read, then to be written, then absent again. */
static void contract_R11_states(void **state)
{
	struct bed *b = *state;

	make(b, RNIC_PIN_TRY, true);
	assert_int_equal(readable(b, 3), -EAGAIN);
	assert_int_equal(fault(b, 3, 1, false), 0);
	assert_int_equal(readable(b, 3), 0);
	assert_int_equal(readable(b, 2), -EAGAIN);
	assert_int_equal(readable(b, 4), -EAGAIN);
	/* kept by the reader as what it is */
	assert_int_equal(writable(b, 3), -EAGAIN);
	assert_int_equal(readable(b, 3), 0);
	assert_int_equal(fault(b, 3, 1, true), 0);
	assert_int_equal(writable(b, 3), 0);
	assert_int_equal(readable(b, 3), 0);
	assert_int_equal(pinned(), 1);
	assert_int_equal(rnic_load64_relaxed(&b->p.faults), 2);
	assert_int_equal(rnic_odp_present(&b->p), 1);
	assert_int_equal(munmap(b->m.p + 3 * PAGE, PAGE), 0);
	while (rnic_monitor_frozen(&b->o.dev))
		;
	assert_int_equal(readable(b, 3), -EAGAIN);
	assert_int_equal(rnic_odp_present(&b->p), 0);
	assert_int_equal(rnic_load64_relaxed(&b->p.invalidated), 1);
	assert_int_equal(fault(b, 3, 1, false), -EFAULT);
	assert_int_equal(pinned(), 0);
	unmake(b);
}

/* The first page of @b that begins a table. */
static size_t first_of_table(const struct bed *b)
{
	return (TABLE - (uintptr_t)b->m.p % TABLE) / PAGE;
}

/* Pages in a row are one piece, whatever faults brought them. */
static void pages_in_a_row_are_one_piece(void **state)
{
	struct bed *b = *state;
	size_t at = first_of_table(b);
	struct rnic_want w = { .len = 20 * PAGE, .rights = RNIC_REMOTE_WRITE };
	struct rnic_xlat x;
	int ret;

	make(b, RNIC_PIN_OFF, true);
	w.key = b->m.key;
	w.addr = (uintptr_t)b->m.p + (at + 5) * PAGE;
	assert_int_equal(fault(b, at + 6, 1, true), 0);
	assert_int_equal(fault(b, at + 5, 1, true), 0);
	assert_int_equal(fault(b, at + 7, 13, true), 0);
	rnic_enter(&b->d.x.target);
	ret = rnic_resolve(&b->d.c, &b->d.x.target, &w, &x);
	rnic_leave(&b->d.x.target);
	assert_int_equal(ret, 0);
	assert_int_equal(x.contiguous, 15 * PAGE);
	unmake(b);
}

/* Over tables, and from the first byte to the last. */
static void all_of_it(void **state)
{
	struct bed *b = *state;
	struct rnic_odp_want w = { .va = (uintptr_t)b->m.p + 100,
				   .len = LEN - 200,
				   .write = true,
				   .prefetch = true };

	make(b, RNIC_PIN_TRY, true);
	assert_int_equal(fault_at(b, &w), 0);
	assert_int_equal(rnic_odp_present(&b->p), LEN / PAGE);
	assert_int_equal(rnic_load64_relaxed(&b->p.prefetched), LEN / PAGE);
	assert_int_equal(rnic_load64_relaxed(&b->p.faults), 0);
	assert_true(pinned() == 0 || pinned() == LEN / PAGE);
	/* a part in the middle, over a table's end */
	invalidate(b, 500, 30);
	assert_int_equal(rnic_odp_present(&b->p), LEN / PAGE - 30);
	assert_int_equal(readable(b, 499), 0);
	assert_int_equal(readable(b, 500), -EAGAIN);
	assert_int_equal(readable(b, 529), -EAGAIN);
	assert_int_equal(readable(b, 530), 0);
	assert_int_equal(fault_at(b, &w), 0);
	assert_int_equal(rnic_odp_present(&b->p), LEN / PAGE);
	unmake(b);
	assert_int_equal(pinned(), 0);
}

/* Looks at the pages from @page on: so many are alike, and as it says. */
static void looks(struct bed *b, size_t page, uint64_t pages, uint64_t leaf,
		  bool pins)
{
	struct rnic_odp_look l;

	rnic_odp_look(&b->p, (uintptr_t)b->m.p + page * PAGE + 100, &l);
	assert_int_equal(l.bytes, pages * PAGE);
	assert_int_equal(l.leaf, leaf);
	assert_int_equal(l.pinned, pins);
}

/* What is alike is told as one, within a table. */
static void a_look_at_pages(void **state)
{
	struct bed *b = *state;
	size_t at = first_of_table(b);
	bool pins;

	make(b, RNIC_PIN_TRY, true);
	assert_int_equal(fault(b, at + 3, 2, true), 0);
	/* no table is there */
	looks(b, 0, at, 0, false);
	/* read, or to be written: all the same */
	assert_int_equal(fault(b, at + 5, 1, false), 0);
	pins = pinned();
	looks(b, at, 3, 0, false);
	looks(b, at + 3, 3, RNIC_LEAF_VALID, pins);
	looks(b, at + 5, 1, RNIC_LEAF_VALID, pins);
	looks(b, at + 6, 506, 0, false);
	/* the pin that is left is not told, nor that of the next one */
	invalidate(b, at + 4, 1);
	looks(b, at + 3, 1, RNIC_LEAF_VALID, pins);
	looks(b, at + 4, 1, 0, false);
	b->p.cfg.pin = RNIC_PIN_OFF;
	assert_int_equal(fault(b, at + 4, 1, true), 0);
	looks(b, at + 3, pins ? 1 : 3, RNIC_LEAF_VALID, pins);
	looks(b, at + 4, pins ? 1 : 2, RNIC_LEAF_VALID, false);
	unmake(b);
}

/* As far as it goes; advice takes all or says so. */
static void what_is_not_there(void **state)
{
	struct bed *b = *state;
	struct rnic_odp_want w;

	make(b, RNIC_PIN_TRY, true);
	assert_int_equal(munmap(b->m.p + 4 * PAGE, PAGE), 0);
	assert_int_equal(mprotect(b->m.p + 9 * PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(fault(b, 4, 2, false), -EFAULT);
	assert_int_equal(fault(b, 2, 5, false), 0);
	assert_int_equal(rnic_odp_present(&b->p), 2);
	assert_int_equal(fault(b, 9, 1, true), -EFAULT);
	assert_int_equal(fault(b, 9, 1, false), 0);
	assert_int_equal(fault(b, 9, 1, true), -EFAULT);
	/* it may still be read */
	assert_int_equal(readable(b, 9), 0);
	w = want(b, 2, 5, false);
	w.prefetch = true;
	assert_int_equal(fault_at(b, &w), -EFAULT);
	unmake(b);
}

/* What is dropped comes by its next touch; its pins are given back. */
static void contract_I5_dropped(void **state)
{
	struct bed *b = *state;
	uint64_t va;
	size_t locked;

	make(b, RNIC_PIN_TRY, true);
	va = (uintptr_t)b->m.p;
	assert_int_equal(fault(b, 1, 10, true), 0);
	locked = pinned();
	/* bytes of pages 3 and 4; nobody is inside */
	rnic_odp_drop(&b->p, va + 4 * PAGE - 1, 2);
	assert_int_equal(rnic_odp_present(&b->p), 8);
	assert_int_equal(pinned(), locked ? locked - 2 : 0);
	assert_int_equal(fault(b, 3, 1, false), 0);
	assert_int_equal(rnic_odp_present(&b->p), 9);
	rnic_odp_drop(&b->p, b->p.cfg.va, b->p.cfg.length);
	assert_int_equal(rnic_odp_present(&b->p), 0);
	assert_int_equal(pinned(), 0);
	/* what was never there */
	rnic_odp_drop(&b->p, va + 12 * PAGE, PAGE);
	assert_int_equal(rnic_load64_relaxed(&b->p.invalidated), 11);
	assert_int_equal(fault(b, 1, 2, true), 0);
	assert_int_equal(readable(b, 2), 0);
	unmake(b);
}

/* Pins that are required are, or the page is not there. */
static void pins_are_required(void **state)
{
	struct bed *b = *state;

	make(b, RNIC_PIN_REQUIRE, true);
	rnic_vma_limit(1);
	assert_int_equal(fault(b, 1, 1, true), -ENOSPC);
	assert_int_equal(rnic_odp_present(&b->p), 0);
	rnic_vma_limit(0);
	assert_int_equal(fault(b, 1, 2, true), 0);
	assert_int_equal(pinned(), 2);
	unmake(b);
	make(b, RNIC_PIN_TRY, true);
	rnic_vma_limit(1);
	assert_int_equal(fault(b, 1, 1, true), 0);
	assert_int_equal(pinned(), 0);
	rnic_vma_limit(0);
	unmake(b);
}

/* In the device's memory, and by address where nobody watches a file. */
static void leaves_say_where(void **state)
{
	struct bed *b = *state;
	struct kit_mem own = b->m;
	struct rnic_xlat x;

	b->m = kit_arena(&b->o, LEN);
	make(b, RNIC_PIN_OFF, false);
	assert_int_equal(fault(b, 7, 2, true), 0);
	assert_int_equal(look_up(b, 8, RNIC_REMOTE_WRITE, &x), 0);
	assert_true(x.entry & RNIC_LEAF_SPACE);
	assert_int_equal((x.entry & ~(uint64_t)(PAGE - 1)) + x.addr_in,
			 (b->m.leaf & ~(uint64_t)(PAGE - 1)) + 8 * PAGE + 200);
	unmake(b);
	b->m = own;
	make(b, RNIC_PIN_OFF, false);
	assert_int_equal(fault(b, 7, 1, true), 0);
	assert_int_equal(look_up(b, 7, RNIC_REMOTE_WRITE, &x), 0);
	assert_false(x.entry & RNIC_LEAF_SPACE);
	assert_int_equal((x.entry & ~(uint64_t)(PAGE - 1)) + x.addr_in,
			 (uintptr_t)b->m.p + 7 * PAGE + 200);
	unmake(b);
}

/* ---- faults against invalidation ---- */

/* Threads that fault all the time. */
struct racer {
	pthread_t thread; /* it */
	struct bed *b;	  /* where */
	rnic_a32 *over;	  /* 1: end */
	size_t page;	  /* first of eight pages */
};

static void *race_main(void *arg)
{
	struct racer *r = arg;

	while (!rnic_load32_relaxed(r->over))
		if (fault(r->b, r->page, 8, true))
			abort();
	return NULL;
}

/* Whatever the order, each page that has come goes, and no pin is left. */
static void contract_R12_lost_races(void **state)
{
	struct bed *b = *state;
	rnic_a32 over = { 0 };
	struct racer r[2];
	struct timespec t;
	uint64_t end;

	make(b, RNIC_PIN_TRY, true);
	for (int i = 0; i < 2; i++) {
		r[i] = (struct racer){ .b = b,
				       .over = &over,
				       .page = 2 + 4 * (size_t)i };
		assert_int_equal(
			pthread_create(&r[i].thread, NULL, race_main, &r[i]),
			0);
	}
	clock_gettime(CLOCK_MONOTONIC, &t);
	end = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 +
	      RACE_MS;
	do {
		invalidate(b, 2, 12);
		clock_gettime(CLOCK_MONOTONIC, &t);
	} while ((uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 <
		 end);
	rnic_store32_relaxed(&over, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(r[i].thread, NULL);
	invalidate(b, 0, LEN / PAGE);
	assert_int_equal(rnic_odp_present(&b->p), 0);
	rnic_odp_tidy(&b->p);
	assert_int_equal(pinned(), 0);
	/* each page that came has gone */
	assert_int_equal(rnic_load64_relaxed(&b->p.invalidated),
			 rnic_load64_relaxed(&b->p.faults));
	unmake(b);
}

/* ---- a fault that is slow ---- */

/*
 * A descriptor of this test's own that holds up whoever touches pages @first
 * and behind, whose memory is absent; -1: not permitted.
 */
static int hold_up(struct bed *b, size_t first, size_t pages)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register r = {
		.range = { .start = (uintptr_t)b->m.p + first * PAGE,
			   .len = pages * PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		return -1;
	assert_int_equal(ioctl(fd, UFFDIO_API, &api), 0);
	assert_int_equal(ioctl(fd, UFFDIO_REGISTER, &r), 0);
	return fd;
}

/* Waits for the touch that @fd tells of; returns its address. */
static uint64_t touched(int fd)
{
	struct uffd_msg m;

	assert_int_equal(read(fd, &m, sizeof(m)), sizeof(m));
	assert_int_equal(m.event, UFFD_EVENT_PAGEFAULT);
	return m.arg.pagefault.address & ~(uint64_t)(PAGE - 1);
}

/* The touch of the page at @addr goes on. */
static void let_go(int fd, uint64_t addr)
{
	struct uffdio_zeropage z = { .range = { .start = addr, .len = PAGE } };

	assert_int_equal(ioctl(fd, UFFDIO_ZEROPAGE, &z), 0);
}

static void *fault_main(void *arg)
{
	struct bed *b = arg;

	return (void *)(intptr_t)fault(b, 3, 1, false);
}

/*
 * A page is invalidated while its fault is under way: what came belongs to what
 * was mapped before, perhaps. So it is faulted again, and never becomes
 * present by the first one.
 */
static void contract_R12_an_invalidated_fault_is_done_again(void **state)
{
	struct bed *b = *state;
	pthread_t t;
	uint64_t addr;
	void *ret;
	int fd = hold_up(b, 3, 1);

	if (fd < 0)
		skip();
	make(b, RNIC_PIN_OFF, false);
	assert_int_equal(pthread_create(&t, NULL, fault_main, b), 0);
	addr = touched(fd);
	assert_int_equal(addr, (uintptr_t)b->m.p + 3 * PAGE);
	assert_int_equal(readable(b, 3), -EAGAIN);
	invalidate(b, 3, 1);
	let_go(fd, addr);
	pthread_join(t, &ret);
	assert_int_equal((intptr_t)ret, 0);
	assert_int_equal(readable(b, 3), 0);
	assert_int_equal(rnic_odp_present(&b->p), 1);
	/* two faults, two tokens */
	assert_int_equal(b->p.token, 2);
	assert_int_equal(rnic_load64_relaxed(&b->p.faults), 1);
	close(fd);
	unmake(b);
}

/* Two want a page that takes its time: one fault. */
static void contract_R11_two_touches_one_fault(void **state)
{
	struct bed *b = *state;
	const struct rnic_paging *p;
	pthread_t t[2];
	uint64_t addr;
	void *ret;
	int fd = hold_up(b, 3, 1);

	if (fd < 0)
		skip();
	make(b, RNIC_PIN_OFF, false);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, fault_main, b), 0);
	addr = touched(fd);
	usleep(10000);
	let_go(fd, addr);
	for (int i = 0; i < 2; i++) {
		pthread_join(t[i], &ret);
		assert_int_equal((intptr_t)ret, 0);
	}
	p = (const struct rnic_paging *)((char *)b->o.dev.hdr +
					 b->o.dev.hdr->paging_off);
	assert_int_equal(rnic_load64_relaxed(&p->faults), 1);
	assert_int_equal(rnic_load64_relaxed(&p->merged), 1);
	close(fd);
	unmake(b);
}

#define WITH(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(contract_R11_flat),
		WITH(contract_R11_states),
		WITH(pages_in_a_row_are_one_piece),
		WITH(a_look_at_pages),
		WITH(all_of_it),
		WITH(what_is_not_there),
		WITH(contract_I5_dropped),
		WITH(pins_are_required),
		WITH(leaves_say_where),
		WITH(contract_R12_lost_races),
		WITH(contract_R12_an_invalidated_fault_is_done_again),
		WITH(contract_R11_two_touches_one_fault),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
