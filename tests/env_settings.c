/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Settings in the environment: what is allowed works; a name or value that
 * is not is refused with a message that says which, and no job starts on a
 * guess.
 *
 * Limit: 300 s
 */
#include <stdio.h>

#include "env_probe.h"
#include "harness.h"
#include "kill_steps.h"

/* A variable and what to expect. */
struct row {
	const char *name;    /* after FI_SHRIMP_ */
	const char *value;   /* of it */
	const char *allowed; /* a word of the message: what is allowed */
};

static const struct row wrong[] = {
	{ "TX_BUFFER", "banana", "65536" },
	{ "TX_BUFFER", "1", "65536" },
	{ "TX_BUFFER", "-1", "65536" },
	{ "TX_BUFFER", "63k", "65536" },
	{ "TX_BUFFER", "2g", "900000000" },
	{ "TX_BUFFER", "99999999999999999999", "900000000" },
	{ "TX_BUFFER", "1mb", "65536" },
	{ "TX_BUFFER", "", "65536" },
	{ "CQ_MAX", "many", "from 1 " },
	{ "CQ_MAX", "0", "from 1 " },
	{ "CQ_MAX", "1k", "from 1 " },
	{ "LINGER", "-1", "3600" },
	{ "LINGER", "soon", "seconds" },
	{ "LANE_LINES", "1", "from 2 " },
	{ "LANE_LINES", "65", "64" },
	{ "LANE_LINES", "2.5", "64" },
	{ "UNEXPECTED", "x", "bytes" },
	{ "POOL", "17m", "16777216" },
	{ "POOL", "1k", "16777216" },
	{ "EAGER_MAX", "100", "1024" },
	{ "EAGER_MAX", "65537", "65536" },
	{ "ATTACH", "tcp", "socket" },
	{ "ATTACH", "", "socket" },
	{ "ATTACH", "auto|proc", "socket" },
	{ "MEMBARRIER", "maybe", "off" },
	{ "MONITOR", "on", "auto|uffd|off" },
	{ "IMPLICIT", "auto", "on|off" },
	{ "SPIN", "-5", "from 1 " },
	{ "KEYCACHE_ENTRIES", "255", "KEYCACHE_WAYS, which is 4" },
	{ "KEYCACHE_POLICY", "mru", "clock|lru|random|none" },
	{ "MTT", "4k", "extent|pages" },
	{ "NUMA", "everywhere", "local|nic|interleave|preferred|off" },
	{ "HOME_NODE", "1000", "auto or a node: 0" },
	{ "HOME_NODE", "near", "auto or a node: 0" },
};

static const struct row unknown[] = {
	{ "TX_BUFER", "1m", "fi_info" },
	{ "attach", "proc", "fi_info" },
	{ "", "1", "fi_info" },
	{ "PINS", "try", "fi_info" },
};

static const struct row right[] = {
	{ "TX_BUFFER", "64k", NULL },
	{ "TX_BUFFER", "800M", NULL },
	{ "CQ_MAX", "1000", NULL },
	{ "LINGER", "0", NULL },
	{ "LINGER", "0.5", NULL },
	{ "LANE_LINES", "2", NULL },
	{ "LANE_LINES", "64", NULL },
	{ "UNEXPECTED", "1m", NULL },
	{ "UNEXPECTED", "0", NULL },
	{ "POOL", "0", NULL },
	{ "POOL", "256k", NULL },
	{ "POOL", "16m", NULL },
	{ "EAGER_MAX", "1024", NULL },
	{ "EAGER_MAX", "65536", NULL },
	{ "ATTACH", "auto", NULL },
	{ "ATTACH", "proc", NULL },
	{ "ATTACH", "socket", NULL },
	{ "MEMBARRIER", "auto", NULL },
	{ "MEMBARRIER", "off", NULL },
	{ "MONITOR", "uffd", NULL },
	{ "IMPLICIT", "off", NULL },
	{ "SPIN", "1", NULL },
	{ "KEYCACHE_ENTRIES", "65536", NULL },
	{ "KEYCACHE_POLICY", "none", NULL },
	{ "NUMA", "local", NULL },
	{ "NUMA", "nic", NULL },
	{ "NUMA", "interleave", NULL },
	{ "NUMA", "preferred", NULL },
	{ "NUMA", "off", NULL },
	{ "HOME_NODE", "auto", NULL },
	{ "HOME_NODE", "0", NULL },
	{ "PIN", "require", NULL },
	{ "MTT", "extent", NULL },
	{ "MTT", "pages", NULL },
	{ "MR_MODE", "local,endpoint", NULL },
	{ "STATS", "/dev/null", NULL },
};

/* Name of the variable that @r is about. */
static const char *variable(const struct row *r)
{
	static char name[64];

	snprintf(name, sizeof(name), "FI_SHRIMP_%s", r->name);
	return name;
}

/* fi_fabric() with this row: refused, in words. */
static void refused(struct th_self *self)
{
	const struct row *r = self->arg;
	struct fi_info *hints = th_hints(NULL), *info;
	struct fid_fabric *fabric;
	struct probe_stderr e;
	static char text[65536];
	int ret;

	th_ok(setenv(variable(r), r->value, 1));
	e = probe_stderr_begin();
	th_ok(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	ret = fi_fabric(info->fabric_attr, &fabric, NULL);
	probe_stderr_end(&e, text, sizeof(text));
	th_eq(ret, -FI_EINVAL);
	probe_expect(text, variable(r));
	probe_expect(text, r->value);
	probe_expect(text, r->allowed);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* A message of each size class goes both ways with this row. */
static void accepted(struct th_self *self)
{
	const struct row *r = self->arg;
	struct th_stack s;

	th_ok(setenv(variable(r), r->value, 1));
	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	ks_exchange_sizes(&s, s.peers[1 - self->rank]);
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

static void run_rows(const struct row *r, size_t n, int children,
		     th_main_fn *main)
{
	size_t i;

	for (i = 0; i < n; i++) {
		print_message("%s=%s\n", variable(&r[i]), r[i].value);
		th_run(children, main, (void *)(uintptr_t)&r[i], 20);
	}
}

static void env_wrong_values(void **state)
{
	(void)state;
	run_rows(wrong, sizeof(wrong) / sizeof(wrong[0]), 1, refused);
}

static void env_unknown_names(void **state)
{
	(void)state;
	run_rows(unknown, sizeof(unknown) / sizeof(unknown[0]), 1, refused);
}

static void env_right_values(void **state)
{
	(void)state;
	run_rows(right, sizeof(right) / sizeof(right[0]), 2, accepted);
}

/* Variables of others are none of our business. */
static void env_foreign_names(struct th_self *self)
{
	struct th_stack s;

	(void)self;
	th_ok(setenv("FI_SHRIMPS_ATTACH", "1", 1));
	th_ok(setenv("FI_TCP_SHRIMP_ATTACH", "1", 1));
	th_ok(setenv("XFI_SHRIMP_ATTACH", "1", 1));
	th_stack_open(&s, NULL);
	th_stack_close(&s);
}

static const struct CMUnitTest env_settings[] = {
	cmocka_unit_test(env_wrong_values),
	cmocka_unit_test(env_unknown_names),
	cmocka_unit_test(env_right_values),
	TH_CASE(env_foreign_names, 1, 10),
};

TH_MAIN(env_settings)
