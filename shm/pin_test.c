/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Pins: counted per page against the kernel's own view (msync says EBUSY of
 * locked pages), limits, what the application locked, what is mapped.
 */
#include "shm/pin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/child_kit.h"
#include "shm/log.h"
#include "shm/vma.h"
#include "tests/quiet_map.h"

enum {
	PAGE = 4096,
	AREA = 64, /* pages of the area */
	PINS = 24, /* live at most in the random test */
	ROUNDS = 3000,
	LIMIT_S = 60,
	NOBODY = 65534,
};

static char *area;
static char last[1024];
static enum rnic_log_level last_level;
static unsigned int logged;

static void record(enum rnic_log_level level, const char *msg)
{
	snprintf(last, sizeof(last), "%s", msg);
	last_level = level;
	logged++;
}

static int setup(void **state)
{
	(void)state;
	rnic_log_sink(record);
	logged = 0;
	area = quiet_private(AREA * PAGE);
	return area == MAP_FAILED;
}

static int teardown(void **state)
{
	(void)state;
	munmap(area, AREA * PAGE);
	rnic_vma_text_only(false);
	rnic_vma_limit(0);
	rnic_log_sink(NULL);
	return 0;
}

static char *page(int i)
{
	return area + (ptrdiff_t)i * PAGE;
}

static bool locked(int i)
{
	return msync(page(i), PAGE, MS_ASYNC | MS_INVALIDATE) && errno == EBUSY;
}

/* Pages @from up to @to are locked, all others are not. */
static bool only(int from, int to)
{
	for (int i = 0; i < AREA; i++)
		if (locked(i) != (i >= from && i < to))
			return false;
	return true;
}

static int pin(int from, int to)
{
	return rnic_pin(page(from), (size_t)(to - from) * PAGE,
			RNIC_PIN_REQUIRE);
}

static void unpin(int from, int to)
{
	rnic_unpin(page(from), (size_t)(to - from) * PAGE);
}

static struct rnic_pin_stats stats(void)
{
	struct rnic_pin_stats s;

	rnic_pin_stats(&s);
	return s;
}

static void nothing_left(void)
{
	struct rnic_pin_stats s = stats();

	assert_int_equal(s.pages, 0);
	assert_int_equal(s.ranges, 0);
	assert_int_equal(s.mappings, 0);
}

static void contract_R4_overlap(void **state)
{
	(void)state;
	assert_int_equal(pin(2, 10), 1);
	assert_int_equal(pin(6, 14), 1);
	assert_true(only(2, 14));
	unpin(2, 10);
	assert_true(only(6, 14));
	assert_int_equal(stats().pages, 8);
	unpin(6, 14);
	assert_true(only(0, 0));
	nothing_left();
}

static void contract_R4_nested_and_adjoining(void **state)
{
	(void)state;
	assert_int_equal(pin(10, 20), 1);
	assert_int_equal(pin(12, 14), 1);
	assert_int_equal(pin(12, 14), 1);
	unpin(10, 20);
	assert_true(only(12, 14));
	unpin(12, 14);
	assert_true(only(12, 14));
	unpin(12, 14);
	assert_true(only(0, 0));
	/* neighbours are one entry and one run, and part again */
	assert_int_equal(pin(0, 4), 1);
	assert_int_equal(pin(4, 8), 1);
	assert_int_equal(stats().ranges, 1);
	assert_int_equal(stats().mappings, 2);
	unpin(0, 4);
	assert_true(only(4, 8));
	unpin(4, 8);
	nothing_left();
}

/* Bytes of one page are the page; two regions in it are two pins. */
static void inside_a_page(void **state)
{
	(void)state;
	assert_int_equal(rnic_pin(page(3) + 100, 8, RNIC_PIN_REQUIRE), 1);
	assert_int_equal(rnic_pin(page(3) + 4000, 97, RNIC_PIN_REQUIRE), 1);
	assert_true(only(3, 5));
	rnic_unpin(page(3) + 4000, 97);
	assert_true(only(3, 4));
	rnic_unpin(page(3) + 100, 8);
	nothing_left();
}

/* Any order of pins and unpins, against a count per page. */
static void contract_R4_random(void **state)
{
	struct {
		int from, to;
	} live[PINS] = { 0 };
	int count[AREA] = { 0 };

	(void)state;
	srand(3);
	for (int round = 0; round < ROUNDS; round++) {
		int k = rand() % PINS, d = live[k].to ? -1 : 1;

		if (d > 0) {
			live[k].from = rand() % AREA;
			live[k].to = live[k].from + 1 +
				     rand() % (AREA - live[k].from);
			assert_int_equal(pin(live[k].from, live[k].to), 1);
		} else {
			unpin(live[k].from, live[k].to);
		}
		for (int i = live[k].from; i < live[k].to; i++)
			count[i] += d;
		if (d < 0)
			live[k].to = 0;
		for (int i = 0; i < AREA; i++)
			assert_int_equal(locked(i), count[i] > 0);
	}
	for (int k = 0; k < PINS; k++)
		if (live[k].to)
			unpin(live[k].from, live[k].to);
	nothing_left();
}

static void application_locks_stay(void **state)
{
	(void)state;
	assert_int_equal(syscall(SYS_mlock, page(8), 4 * PAGE), 0);
	assert_int_equal(syscall(SYS_mlock, page(20), PAGE), 0);
	assert_int_equal(pin(4, 24), 1);
	assert_true(only(4, 24));
	unpin(4, 24);
	for (int i = 0; i < AREA; i++)
		assert_int_equal(locked(i), (i >= 8 && i < 12) || i == 20);
	nothing_left();
	syscall(SYS_munlock, area, AREA * PAGE);
}

static void unmapped_under_a_pin(void **state)
{
	(void)state;
	assert_int_equal(pin(0, 8), 1);
	munmap(page(3), PAGE);
	unpin(0, 8);
	nothing_left();
	assert_false(locked(0));
	assert_false(locked(7));
	assert_int_equal(pin(0, 8), -EFAULT);
	nothing_left();
	assert_false(locked(0));
	assert_false(locked(7));
	assert_int_equal(rnic_pin(page(0), 8 * PAGE, RNIC_PIN_TRY), -EFAULT);
	assert_int_equal(rnic_pin(page(0), 8 * PAGE, RNIC_PIN_OFF), 0);
}

static void bad_ranges(void **state)
{
	(void)state;
	assert_int_equal(rnic_pin(area, 0, RNIC_PIN_TRY), -EINVAL);
	assert_int_equal(rnic_pin(area, SIZE_MAX, RNIC_PIN_TRY), -EINVAL);
	assert_int_equal(rnic_pin_check(area, 0, PROT_READ), -EINVAL);
	assert_int_equal(rnic_pin_check((void *)UINTPTR_MAX, 2, PROT_READ),
			 -EINVAL);
}

static void mappings_run_out(void **state)
{
	(void)state;
	rnic_vma_limit(6);
	assert_int_equal(pin(0, 1), 1);
	assert_int_equal(pin(2, 3), 1);
	assert_int_equal(pin(4, 5), 1);
	assert_int_equal(pin(6, 7), -ENOSPC);
	assert_int_equal(last_level, RNIC_LOG_WARN);
	assert_non_null(strstr(last, "max_map_count"));
	assert_int_equal(rnic_pin(page(6), PAGE, RNIC_PIN_TRY), 0);
	assert_int_equal(last_level, RNIC_LOG_INFO);
	/* what is pinned already costs no mapping */
	assert_int_equal(pin(2, 3), 1);
	unpin(2, 3);
	unpin(2, 3);
	assert_int_equal(pin(6, 7), 1);
	unpin(0, 1);
	unpin(4, 5);
	unpin(6, 7);
	nothing_left();
}

/* ---- limits, in a child without privileges ---- */

/* Runs the int (*)(void) at @arg without privileges. */
static int unprivileged(void *arg)
{
	int (**fn)(void) = arg;

	if (!geteuid() && setresuid(NOBODY, NOBODY, NOBODY))
		return KIT_SKIP;
	/* the change has cleared it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return (*fn)();
}

static void in_child(int (*fn)(void))
{
	kit_in_child(unprivileged, &fn);
}

static int limited(void)
{
	struct rlimit rl = { 16 * PAGE, 16 * PAGE };

	if (setrlimit(RLIMIT_MEMLOCK, &rl))
		return KIT_SKIP;
	if (pin(0, 10) != 1 || pin(20, 30) != -ENOMEM ||
	    last_level != RNIC_LOG_WARN || !only(0, 10))
		return 1;
	if (!strstr(last, "40960 bytes") || !strstr(last, "is 64 KiB") ||
	    !strstr(last, "use are 40 KiB"))
		return 2;
	/* half of it is pinned already; the rest is too much: all or nothing */
	if (pin(5, 40) != -ENOMEM || !only(0, 10) || stats().ranges != 1)
		return 3;
	if (rnic_pin(page(20), 10 * PAGE, RNIC_PIN_TRY) != 0 || !only(0, 10))
		return 4;
	if (pin(20, 26) != 1)
		return 5;
	unpin(0, 10);
	/* the gap before it can be had, the one after it cannot */
	if (pin(18, 40) != -ENOMEM || !only(20, 26) || stats().ranges != 1)
		return 6;
	unpin(20, 26);
	return !only(0, 0);
}

static int forbidden(void)
{
	struct rlimit rl = { 0, 0 };

	if (setrlimit(RLIMIT_MEMLOCK, &rl))
		return KIT_SKIP;
	return pin(0, 1) != -ENOMEM ||
	       rnic_pin(area, PAGE, RNIC_PIN_TRY) != 0 || stats().ranges;
}

static void contract_R4_limit(void **state)
{
	(void)state;
	in_child(limited);
	in_child(forbidden);
}

static int forget(void)
{
	rnic_pin_forked();
	if (stats().pages || stats().ranges || locked(0))
		return 1;
	if (pin(0, 1) != 1 || !only(0, 1))
		return 2;
	unpin(0, 1);
	return !only(0, 0);
}

static void child_has_no_pins(void **state)
{
	(void)state;
	assert_int_equal(pin(0, 4), 1);
	in_child(forget);
	assert_true(only(0, 4));
	unpin(0, 4);
}

/* ---- what is mapped ---- */

static int check(int from, int to, int prot)
{
	return rnic_pin_check(page(from), (size_t)(to - from) * PAGE, prot);
}

static void check_protections(void)
{
	const int rw = PROT_READ | PROT_WRITE;

	assert_int_equal(check(0, 8, rw), 0);
	assert_int_equal(check(0, 20, PROT_READ), 0);
	assert_int_equal(check(0, 20, rw), -EFAULT);
	assert_non_null(strstr(last, "not writable"));
	assert_int_equal(check(0, 24, PROT_READ), -EFAULT);
	assert_non_null(strstr(last, "not readable"));
	assert_int_equal(check(30, 50, PROT_READ), -EFAULT);
	assert_non_null(strstr(last, "not mapped"));
	assert_int_equal(check(33, AREA, rw), 0);
	assert_int_equal(rnic_pin_check(NULL, 1, PROT_READ), -EFAULT);
}

static void contract_R1_mapped(void **state)
{
	(void)state;
	mprotect(page(10), 10 * PAGE, PROT_READ);
	mprotect(page(20), 5 * PAGE, PROT_NONE);
	munmap(page(32), PAGE);
	check_protections();
	rnic_vma_text_only(true);
	check_protections();
}

static bool resident(void)
{
	unsigned char in[AREA];

	assert_int_equal(mincore(area, AREA * PAGE, in), 0);
	for (int i = 0; i < AREA; i++)
		if (in[i] & 1)
			return true;
	return false;
}

/* No byte changes either way; with the ioctl no page comes. */
static void check_touches_nothing(void **state)
{
	(void)state;
	assert_int_equal(check(0, AREA, PROT_READ | PROT_WRITE), 0);
	if (rnic_vma_fast())
		assert_false(resident());
	memset(area, 0x5a, AREA * PAGE);
	rnic_vma_text_only(true);
	assert_int_equal(check(0, AREA, PROT_READ | PROT_WRITE), 0);
	for (int i = 0; i < AREA * PAGE; i++)
		assert_int_equal(area[i], 0x5a);
}

/* Pages that were replaced are locked again; counts stay. */
static void replaced_pages_are_locked_again(void **state)
{
	(void)state;
	if (pin(2, 8) < 0)
		skip();
	assert_int_equal(pin(4, 10), 1);
	assert_true(mmap(page(3), 6 * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) == page(3));
	assert_false(locked(3));
	assert_int_equal(rnic_pin_renew(page(2), 6 * PAGE, RNIC_PIN_REQUIRE),
			 0);
	for (int i = 2; i < 10; i++)
		assert_int_equal(locked(i), i != 8);
	assert_int_equal(stats().pages, 8);
	/* what is not there cannot be locked, and is no error where it may */
	munmap(page(5), PAGE);
	assert_int_equal(rnic_pin_renew(page(2), 6 * PAGE, RNIC_PIN_REQUIRE),
			 -ENOMEM);
	assert_int_equal(rnic_pin_renew(page(2), 6 * PAGE, RNIC_PIN_TRY), 0);
	unpin(2, 8);
	unpin(4, 10);
	assert_int_equal(stats().pages, 0);
	for (int i = 0; i < AREA; i++)
		assert_true(i == 5 || !locked(i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(contract_R4_overlap, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			contract_R4_nested_and_adjoining, setup, teardown),
		cmocka_unit_test_setup_teardown(inside_a_page, setup, teardown),
		cmocka_unit_test_setup_teardown(contract_R4_random, setup,
						teardown),
		cmocka_unit_test_setup_teardown(application_locks_stay, setup,
						teardown),
		cmocka_unit_test_setup_teardown(unmapped_under_a_pin, setup,
						teardown),
		cmocka_unit_test_setup_teardown(bad_ranges, setup, teardown),
		cmocka_unit_test_setup_teardown(mappings_run_out, setup,
						teardown),
		cmocka_unit_test_setup_teardown(contract_R4_limit, setup,
						teardown),
		cmocka_unit_test_setup_teardown(child_has_no_pins, setup,
						teardown),
		cmocka_unit_test_setup_teardown(contract_R1_mapped, setup,
						teardown),
		cmocka_unit_test_setup_teardown(check_touches_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(replaced_pages_are_locked_again,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
