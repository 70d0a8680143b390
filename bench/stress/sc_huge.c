/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenarios hugetlb and thp: huge pages, reserved ones and transparent ones.
 */
#include "bench/stress/stress.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
	SLOT = 6,
	HUGE = 2 << 20,
};

/* ---- hugetlbfs ---- */

static int hugetlb_step(struct stress *s, void *state)
{
	unsigned char *p = NULL;
	int ret = 0;

	(void)state;
	for (int i = 0; !ret && i < 3; i++) {
		p = mmap(p, HUGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
				 (p ? MAP_FIXED_NOREPLACE : 0),
			 -1, 0);
		if (p == MAP_FAILED)
			return stress_skip(s, "no huge pages: %s",
					   strerror(errno));
		stress_say(s, "mmap huge %p", (void *)p);
		ret = stress_use_new(s, p, HUGE);
		stress_unmap(s, p, HUGE);
	}
	return ret;
}

const struct stress_scenario stress_hugetlb = {
	.name = "hugetlb",
	.help = "pages of hugetlbfs, unmapped and mapped again",
	.step = hugetlb_step,
};

/* ---- transparent ones ---- */

/* A hole splits the huge page it is in; then it is mapped again. */
static int split(struct stress *s, unsigned char *p, size_t len)
{
	size_t at = stress_random(s, len / STRESS_PAGE) * STRESS_PAGE;
	struct stress_pat all = stress_fill(s, p, len), zero = { .tag = 0 };
	int ret = stress_out(s, p, len, all);

	if (ret)
		return ret;
	ret = stress_madvise(s, p + at, STRESS_PAGE, MADV_DONTNEED);
	if (ret)
		return ret == STRESS_SKIP ? 0 : ret;
	ret = stress_out(s, p + at, STRESS_PAGE, zero);
	if (!ret && at)
		ret = stress_out(s, p, at, all);
	return ret ? ret : stress_exchange(s, p, len, 2);
}

static int thp_step(struct stress *s, void *state)
{
	unsigned char *slot = stress_slot(s, SLOT), *p;
	uintptr_t up = HUGE - (uintptr_t)slot % HUGE;
	size_t len = 2 * (size_t)HUGE;
	int ret;

	(void)state;
	p = stress_map(s, slot ? slot + up % HUGE : NULL, len, false);
	if (!p)
		return stress_skip(s, "no memory");
	if (madvise(p, len, MADV_HUGEPAGE))
		stress_say(s, "no transparent huge pages");
	ret = stress_use_new(s, p, len);
	if (!ret)
		ret = split(s, p, len);
	stress_unmap(s, p, len);
	stress_slot_free(s, SLOT);
	return ret;
}

const struct stress_scenario stress_thp = {
	.name = "thp",
	.help = "transparent huge pages, and holes in them",
	.step = thp_step,
};
