/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenario fork: children come and go while bytes travel. They have the
 * parent's memory as it was, and change their own copy; the parent's is not
 * disturbed.
 */
#include "bench/stress/stress.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	SLOT = 9,
	LEN = 512 << 10,
	CHILDREN = 4, /* at a time, at most */
};

/** What a child looks at. */
struct copy {
	unsigned char *p;
	size_t len;
	struct stress_pat pat;
	unsigned int how; /* it ends */
};

/* Runs in the child. */
static int look(void *arg)
{
	struct copy *c = arg;

	if (!stress_same(c->p, c->len, c->pat))
		return 1;
	memset(c->p, 0x55, c->len);
	if (c->how == 1) {
		void *p = mmap(c->p, c->len, PROT_READ,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		return p == c->p ? 0 : 2;
	}
	if (c->how == 2) {
		execl("/bin/true", "true", (char *)NULL);
		return 3;
	}
	return 0;
}

static int reap(struct stress *s, const pid_t *pid, int n, int ret)
{
	for (int i = 0; i < n; i++)
		if (stress_reap(s, pid[i]))
			ret = STRESS_FAILED;
	return ret;
}

/*
 * Between fork and the end of the children the parent writes other bytes,
 * which is when the pages part.
 */
static int storm(struct stress *s, unsigned char *p, size_t len)
{
	int n = 1 + (int)stress_random(s, stress_slow(s) ? 2 : CHILDREN);
	struct copy c = { .p = p, .len = len, .pat = stress_fill(s, p, len) };
	int ret = stress_out(s, p, len, c.pat), i;
	pid_t pid[CHILDREN];

	for (i = 0; !ret && i < n; i++) {
		c.how = (unsigned int)stress_random(s, 3);
		pid[i] = stress_fork(s, look, &c);
		if (pid[i] < 0)
			break;
	}
	if (!ret)
		ret = stress_exchange(s, p, len, 2);
	return reap(s, pid, i, ret);
}

/* The same under a region that a partner reads or writes all the time. */
static int storm_within(struct stress *s, unsigned char *p, size_t len)
{
	size_t half = len / 2 / STRESS_PAGE * STRESS_PAGE;
	struct stress_pat low = stress_fill(s, p, half);
	bool write = stress_random(s, 2);
	struct stress_mr m;
	int ret = stress_mr_get(s, p, half, STRESS_BOTH, &m);

	if (ret)
		return ret;
	ret = stress_flow_begin(
		s, &m, -1, write ? STRESS_FLOW_PUSH : STRESS_FLOW_VERIFY, low);
	for (int i = 0; !ret && i < 2; i++) {
		struct copy c = { .p = p + half, .len = len - half };
		pid_t pid;

		c.pat = stress_fill(s, c.p, c.len);
		pid = stress_fork(s, look, &c);
		stress_progress(s, (unsigned int)stress_random(s, 500));
		ret = stress_reap(s, pid);
	}
	if (stress_flow_end(s, NULL))
		ret = STRESS_FAILED;
	if (stress_mr_put(s, &m))
		ret = STRESS_FAILED;
	return ret ? ret : stress_verify(s, p, half, low, "under a flow");
}

static int step(struct stress *s, void *state)
{
	unsigned char *at = stress_slot(s, SLOT), *p;
	size_t len = stress_pages(s, LEN) + 2 * (size_t)STRESS_PAGE;
	int ret;

	(void)state;
	p = stress_map(s, at, len, false);
	if (!p)
		return stress_skip(s, "no memory");
	ret = storm(s, p, len);
	if (!ret)
		ret = storm_within(s, p, len);
	if (!ret)
		ret = stress_exchange(s, p, len, 2);
	stress_unmap(s, p, len);
	stress_slot_free(s, SLOT);
	return ret;
}

const struct stress_scenario stress_forks = {
	.name = "fork",
	.help = "children write, unmap, exec and exit while bytes travel",
	.needs = STRESS_RMA,
	.step = step,
};
