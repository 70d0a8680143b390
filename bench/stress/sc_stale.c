/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Scenarios old-key, on-demand and in-flight: memory goes under a region that
 * is still open. The first two only where the provider promises what happens
 * then.
 */
#include "bench/stress/stress.h"

#include <sys/mman.h>

#include <rdma/fi_ext_shrimp.h>

enum {
	OLD_SLOT = 14,
	FLIGHT_SLOT = 15,
	LEN = 512 << 10,
	ROUNDS = 3,
};

static const char *const watched[] = {
	"FI_SHRIMP_MONITOR=uffd",
	NULL,
};

/* ---- an old key ---- */

/* Other memory is there now, which nobody may touch through the old key. */
static int old_used(struct stress *s, struct stress_mr *m, unsigned char *p,
		    size_t len)
{
	unsigned char *got = stress_map(s, p, len, stress_random(s, 2));
	struct stress_pat guard;
	int ret;

	if (got != p) { /* another thread has the addresses */
		stress_unmap(s, got, len);
		return got ? 0 : stress_skip(s, "no memory");
	}
	guard = stress_fill(s, p, len);
	ret = stress_refuses(s, m, 0, len, true);
	if (!ret)
		ret = stress_refuses(s, m, 0, len, false);
	if (!ret)
		ret = stress_verify(s, p, len, guard, "under an old key");
	return ret ? ret : stress_exchange(s, p, len, 2);
}

static int old_round(struct stress *s, unsigned char *at)
{
	size_t len = stress_pages(s, LEN);
	unsigned char *p = stress_map(s, at, len, false);
	struct stress_pat pat;
	struct stress_mr m;
	int ret;

	if (!p)
		return stress_skip(s, "no memory");
	pat = stress_fill(s, p, len);
	ret = stress_mr_reg(s, p, len, STRESS_BOTH, 0, &m);
	if (!ret)
		ret = stress_pull(s, &m, 0, len, pat);
	stress_unmap(s, p, len);
	if (!ret && stress_slot_fixed(s, p, len) != MAP_FIXED)
		ret = stress_refuses(s, &m, 0, len, true);
	if (!ret)
		ret = old_used(s, &m, p, len);
	if (stress_mr_put(s, &m))
		ret = STRESS_FAILED;
	return ret;
}

static int old_step(struct stress *s, void *state)
{
	int ret = 0;

	(void)state;
	for (int i = 0; !ret && i < ROUNDS; i++) {
		unsigned char *at = stress_slot(s, OLD_SLOT);

		if (!at)
			break;
		ret = old_round(s, at);
		stress_slot_free(s, OLD_SLOT);
	}
	return ret;
}

const struct stress_scenario stress_old_key = {
	.name = "old-key",
	.help = "unmapped under an open region: its key reaches nothing else",
	.needs = STRESS_RMA | STRESS_SHRIMP | STRESS_UFFD,
	.env = watched,
	.step = old_step,
};

/* ---- on demand ---- */

/* The key covers addresses: it reaches what is there now. */
static int demand_round(struct stress *s, struct stress_mr *m, unsigned char *p,
			size_t len)
{
	size_t at = stress_random(s, len / STRESS_PAGE) * STRESS_PAGE;
	size_t n = stress_pages(s, len - at);
	struct stress_pat all = stress_fill(s, p, len), pat = { .tag = 0 };
	int ret = stress_pull(s, m, 0, len, all);
	unsigned char *got;

	if (ret)
		return ret;
	stress_unmap(s, p + at, n);
	got = stress_map(s, p + at, n, stress_random(s, 2));
	if (got != p + at) {
		stress_unmap(s, got, n);
		return stress_skip(s, "another thread has the addresses");
	}
	ret = stress_pull(s, m, at, n, pat);
	if (!ret)
		ret = stress_push(s, m, at, n, &pat);
	if (!ret && at)
		ret = stress_pull(s, m, 0, at, all);
	return ret;
}

static int demand_step(struct stress *s, void *state)
{
	unsigned char *p = stress_slot(s, OLD_SLOT);
	size_t len = stress_pages(s, LEN);
	struct stress_mr m;
	int ret;

	(void)state;
	if (!p || stress_map(s, p, len, false) != p)
		return stress_skip(s, "another thread has the addresses");
	ret = stress_mr_reg(s, p, len, STRESS_BOTH, FI_SHRIMP_ON_DEMAND, &m);
	for (int i = 0; !ret && i < ROUNDS; i++)
		ret = demand_round(s, &m, p, len);
	if (stress_mr_put(s, &m))
		ret = STRESS_FAILED;
	stress_slot_free(s, OLD_SLOT);
	return ret;
}

const struct stress_scenario stress_on_demand = {
	.name = "on-demand",
	.help = "remapped under a region on demand: its key follows",
	.needs = STRESS_RMA | STRESS_SHRIMP | STRESS_UFFD,
	.env = watched,
	.step = demand_step,
};

/* ---- while it is used ---- */

/*
 * Pages are given up while a partner uses them. What it gets meanwhile is old
 * bytes or zeros; what it gets afterwards is what was written afterwards.
 */
static int flight_round(struct stress *s, unsigned char *p, size_t len)
{
	struct stress_pat pat = stress_fill(s, p, len);
	bool write = stress_random(s, 2);
	struct stress_mr m;
	int ret = stress_mr_get(s, p, len, STRESS_BOTH, &m);

	if (ret)
		return ret;
	ret = stress_flow_begin(
		s, &m, -1, write ? STRESS_FLOW_PUSH : STRESS_FLOW_PULL, pat);
	for (int i = 0; !ret && i < ROUNDS; i++) {
		size_t at = stress_random(s, len / STRESS_PAGE) * STRESS_PAGE;

		stress_progress(s, (unsigned int)stress_random(s, 200));
		stress_say(s, "madvise page at %zu", at);
		stress_change_begin(s, p + at, STRESS_PAGE);
		if (madvise(p + at, STRESS_PAGE, MADV_DONTNEED))
			stress_refused(s); /* it is locked, as it may be */
		stress_change_end(s, p + at, STRESS_PAGE);
	}
	if (stress_flow_end(s, NULL))
		ret = STRESS_FAILED;
	pat = stress_fill(s, p, len);
	if (!ret)
		ret = stress_pull(s, &m, 0, len, pat);
	if (stress_mr_put(s, &m))
		ret = STRESS_FAILED;
	return ret ? ret : stress_exchange(s, p, len, 2);
}

static int flight_step(struct stress *s, void *state)
{
	size_t len = stress_pages(s, LEN);
	unsigned char *p =
		stress_map(s, stress_slot(s, FLIGHT_SLOT), len, false);
	int ret;

	(void)state;
	if (!p)
		return stress_skip(s, "no memory");
	ret = flight_round(s, p, len);
	stress_unmap(s, p, len);
	stress_slot_free(s, FLIGHT_SLOT);
	return ret;
}

const struct stress_scenario stress_in_flight = {
	.name = "in-flight",
	.help = "pages given up while a partner reads or writes them",
	.needs = STRESS_RMA,
	.step = flight_step,
};
