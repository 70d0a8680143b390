/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Settings: defaults, every name, limits, and what is refused with which
 * words.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/settings.h"

extern char **environ;

enum { TEXT_MAX = 4096 };

/* The environment has no settings before each test. */
static int fresh(void **state)
{
	(void)state;
	for (char **e = environ; *e;) {
		char name[256];

		if (strncmp(*e, "FI_SHRIMP_", 10)) {
			e++;
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*e, "="), *e);
		unsetenv(name);
		e = environ;
	}
	return 0;
}

static int define(void **state)
{
	(void)state;
	/* a machine with a gap between its nodes */
	setenv("HWLOC_SYNTHETIC", "NUMANode:3(indexes=0,1,4) pu:1", 1);
	shrimp_settings_define();
	return 0;
}

/*
 * Loads with @name set to @value, unset afterwards. What is said on stderr
 * goes to @text, of TEXT_MAX bytes.
 */
static int load(const char *name, const char *value, struct shrimp_settings *s,
		char *text)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC);
	int old = dup(STDERR_FILENO);
	ssize_t n;
	int ret;

	assert_true(fd >= 0 && old >= 0);
	assert_int_equal(setenv(name, value, 1), 0);
	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	ret = shrimp_settings_load(s);
	fflush(stderr);
	dup2(old, STDERR_FILENO);
	close(old);
	unsetenv(name);
	n = pread(fd, text, TEXT_MAX - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
	return ret;
}

/* Loads a value that must be accepted, without a word. */
static struct shrimp_settings good(const char *name, const char *value)
{
	struct shrimp_settings s;
	char text[TEXT_MAX];

	assert_int_equal(load(name, value, &s, text), 0);
	assert_string_equal(text, "");
	return s;
}

static void settings_defaults(void **state)
{
	struct shrimp_settings s;

	(void)state;
	assert_int_equal(shrimp_settings_load(&s), 0);
	assert_int_equal(s.tx_buffer, 256 << 20);
	assert_int_equal(s.cq_max, 1000000);
	assert_int_equal(s.unexpected, 64 << 20);
	assert_int_equal(s.pool, 0);
	assert_int_equal(s.eager_max, 65536);
	assert_int_equal(s.linger_ms, 5000);
	assert_int_equal(s.lane_lines, 64);
	assert_int_equal(s.spin, 100);
	assert_int_equal(s.attach, SHRIMP_ATTACH_AUTO);
	assert_int_equal(s.numa, RNIC_NUMA_LOCAL);
	assert_int_equal(s.home_node, RNIC_NUMA_HERE);
	assert_int_equal(s.keys.entries, 256);
	assert_int_equal(s.keys.ways, 4);
	assert_int_equal(s.keys.policy, RNIC_KEYCACHE_CLOCK);
	assert_int_equal(s.keys.miss_ns, 0);
	assert_int_equal(s.keys.seed, 0);
	assert_true(s.membarrier);
	assert_null(s.stats_file);
	shrimp_settings_free(&s);
}

static void settings_numbers(void **state)
{
	(void)state;
	assert_int_equal(good("FI_SHRIMP_TX_BUFFER", "65536").tx_buffer, 65536);
	assert_int_equal(good("FI_SHRIMP_TX_BUFFER", "64k").tx_buffer, 65536);
	assert_int_equal(good("FI_SHRIMP_TX_BUFFER", "2M").tx_buffer, 2 << 20);
	assert_int_equal(good("FI_SHRIMP_UNEXPECTED", "0").unexpected, 0);
	assert_int_equal(good("FI_SHRIMP_UNEXPECTED", "1g").unexpected,
			 1 << 30);
	assert_int_equal(good("FI_SHRIMP_CQ_MAX", "17").cq_max, 17);
	assert_int_equal(good("FI_SHRIMP_POOL", "auto").pool, 0);
	assert_int_equal(good("FI_SHRIMP_POOL", "256k").pool, 256 << 10);
	assert_int_equal(good("FI_SHRIMP_POOL", "16m").pool, 16 << 20);
	assert_int_equal(good("FI_SHRIMP_EAGER_MAX", "1024").eager_max, 1024);
	assert_int_equal(good("FI_SHRIMP_LINGER", "0").linger_ms, 0);
	assert_int_equal(good("FI_SHRIMP_LINGER", "0.25").linger_ms, 250);
	assert_int_equal(good("FI_SHRIMP_LINGER", "12").linger_ms, 12000);
	assert_int_equal(good("FI_SHRIMP_LANE_LINES", "2").lane_lines, 2);
	assert_int_equal(good("FI_SHRIMP_SPIN", "1").spin, 1);
	assert_int_equal(good("FI_SHRIMP_KEYCACHE_ENTRIES", "4").keys.entries,
			 4);
	assert_int_equal(
		good("FI_SHRIMP_KEYCACHE_ENTRIES", "1048576").keys.entries,
		1 << 20);
	assert_int_equal(good("FI_SHRIMP_KEYCACHE_WAYS", "1").keys.ways, 1);
	assert_int_equal(good("FI_SHRIMP_KEYCACHE_WAYS", "256").keys.ways, 256);
	assert_int_equal(good("FI_SHRIMP_KEYCACHE_MISS_NS", "900").keys.miss_ns,
			 900);
	assert_int_equal(
		good("FI_SHRIMP_KEYCACHE_SEED", "123456789012").keys.seed,
		123456789012);
}

static void settings_words(void **state)
{
	(void)state;
	assert_int_equal(good("FI_SHRIMP_ATTACH", "proc").attach,
			 SHRIMP_ATTACH_PROC);
	assert_int_equal(good("FI_SHRIMP_ATTACH", "socket").attach,
			 SHRIMP_ATTACH_SOCKET);
	assert_int_equal(good("FI_SHRIMP_ATTACH", "auto").attach,
			 SHRIMP_ATTACH_AUTO);
	assert_int_equal(good("FI_SHRIMP_NUMA", "local").numa, RNIC_NUMA_LOCAL);
	assert_int_equal(good("FI_SHRIMP_NUMA", "nic").numa, RNIC_NUMA_NIC);
	assert_int_equal(good("FI_SHRIMP_NUMA", "interleave").numa,
			 RNIC_NUMA_INTERLEAVE);
	assert_int_equal(good("FI_SHRIMP_NUMA", "preferred").numa,
			 RNIC_NUMA_PREFERRED);
	assert_int_equal(good("FI_SHRIMP_NUMA", "off").numa, RNIC_NUMA_OFF);
	assert_int_equal(good("FI_SHRIMP_HOME_NODE", "auto").home_node,
			 RNIC_NUMA_HERE);
	assert_int_equal(good("FI_SHRIMP_HOME_NODE", "0").home_node, 0);
	assert_int_equal(good("FI_SHRIMP_HOME_NODE", "4").home_node, 4);
	assert_true(good("FI_SHRIMP_MEMBARRIER", "auto").membarrier);
	assert_false(good("FI_SHRIMP_MEMBARRIER", "off").membarrier);
	assert_int_equal(good("FI_SHRIMP_PIN", "try").pin, RNIC_PIN_TRY);
	assert_int_equal(good("FI_SHRIMP_PIN", "require").pin,
			 RNIC_PIN_REQUIRE);
	assert_int_equal(good("FI_SHRIMP_PIN", "off").pin, RNIC_PIN_OFF);
	assert_int_equal(good("FI_SHRIMP_KEYCACHE_POLICY", "lru").keys.policy,
			 RNIC_KEYCACHE_LRU);
	assert_int_equal(
		good("FI_SHRIMP_KEYCACHE_POLICY", "random").keys.policy,
		RNIC_KEYCACHE_RANDOM);
	assert_int_equal(good("FI_SHRIMP_KEYCACHE_POLICY", "none").keys.policy,
			 RNIC_KEYCACHE_NONE);
	assert_int_equal(good("FI_SHRIMP_MTT", "extent").mtt,
			 SHRIMP_MTT_EXTENT);
	assert_int_equal(good("FI_SHRIMP_MTT", "pages").mtt, SHRIMP_MTT_PAGES);
	assert_int_equal(good("FI_SHRIMP_MR_MODE", "").mr_mode, 0);
	assert_int_equal(good("FI_SHRIMP_MR_MODE", "local").mr_mode, 1);
	assert_int_equal(
		good("FI_SHRIMP_MR_MODE", "endpoint,virt_addr").mr_mode, 10);
}

static void settings_of_regions(void **state)
{
	(void)state;
	assert_true(good("FI_SHRIMP_IMPLICIT", "on").implicit);
	assert_false(good("FI_SHRIMP_IMPLICIT", "off").implicit);
	assert_int_equal(good("FI_SHRIMP_MONITOR", "auto").monitor,
			 SHRIMP_MONITOR_AUTO);
	assert_int_equal(good("FI_SHRIMP_MONITOR", "uffd").monitor,
			 SHRIMP_MONITOR_UFFD);
	assert_int_equal(good("FI_SHRIMP_MONITOR", "off").monitor,
			 SHRIMP_MONITOR_OFF);
}

static void settings_path(void **state)
{
	struct shrimp_settings s = good("FI_SHRIMP_STATS", "/tmp/a b=c");

	(void)state;
	assert_string_equal(s.stats_file, "/tmp/a b=c");
	shrimp_settings_free(&s);
	assert_null(s.stats_file);
	shrimp_settings_free(&s);
}

/* A value that is refused. */
struct bad {
	const char *name;    /* what is set */
	const char *value;   /* to what */
	const char *allowed; /* a part of what is said */
};

/* Each of @n is, in one line that says all of it; nothing is allocated. */
static void refused(const struct bad *bad, size_t n)
{
	struct shrimp_settings s;
	char text[TEXT_MAX];

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(load(bad[i].name, bad[i].value, &s, text),
				 -FI_EINVAL);
		assert_non_null(strstr(text, bad[i].name));
		assert_non_null(strstr(text, bad[i].value));
		assert_non_null(strstr(text, bad[i].allowed));
		assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
		assert_null(s.stats_file);
	}
}

/* One line that names variable, value and what is allowed. */
static void settings_refused(void **state)
{
	static const struct bad bad[] = {
		{ "FI_SHRIMP_TX_BUFFER", "65535", "65536" },
		{ "FI_SHRIMP_TX_BUFFER", "2g", "65536" },
		{ "FI_SHRIMP_TX_BUFFER", "64q", "65536" },
		{ "FI_SHRIMP_TX_BUFFER", "64kk", "65536" },
		{ "FI_SHRIMP_TX_BUFFER", "", "65536" },
		{ "FI_SHRIMP_TX_BUFFER", " 65536", "65536" },
		{ "FI_SHRIMP_TX_BUFFER", "99999999999999999999999g", "65536" },
		{ "FI_SHRIMP_TX_BUFFER", "nan", "65536" },
		{ "FI_SHRIMP_TX_BUFFER", "65536.5", "65536" },
		{ "FI_SHRIMP_CQ_MAX", "0", "1" },
		{ "FI_SHRIMP_CQ_MAX", "5k", "1" },
		{ "FI_SHRIMP_CQ_MAX", "+5", "1" },
		{ "FI_SHRIMP_POOL", "1k", "auto" },
		{ "FI_SHRIMP_EAGER_MAX", "1023", "1024" },
		{ "FI_SHRIMP_EAGER_MAX", "65537", "65536" },
		{ "FI_SHRIMP_LINGER", "-1", "seconds" },
		{ "FI_SHRIMP_LINGER", "soon", "seconds" },
		{ "FI_SHRIMP_LANE_LINES", "1", "2" },
		{ "FI_SHRIMP_LANE_LINES", "65", "64" },
		{ "FI_SHRIMP_LANE_LINES", "2.5", "64" },
		{ "FI_SHRIMP_ATTACH", "Proc", "socket" },
		{ "FI_SHRIMP_ATTACH", "", "socket" },
		{ "FI_SHRIMP_ATTACH", "auto|proc", "socket" },
		{ "FI_SHRIMP_NUMA", "on",
		  "local|nic|interleave|preferred|off" },
		{ "FI_SHRIMP_NUMA", "", "interleave" },
		{ "FI_SHRIMP_HOME_NODE", "999", "auto or a node: 0-1,4" },
		{ "FI_SHRIMP_HOME_NODE", "3", "auto or a node: 0-1,4" },
		{ "FI_SHRIMP_HOME_NODE", "-1", "auto or a node: 0-1,4" },
		{ "FI_SHRIMP_HOME_NODE", "99999999990", "auto" },
		{ "FI_SHRIMP_HOME_NODE", "0x0", "auto" },
		{ "FI_SHRIMP_HOME_NODE", "0,1", "auto" },
		{ "FI_SHRIMP_HOME_NODE", "", "auto" },
		{ "FI_SHRIMP_MEMBARRIER", "on", "off" },
		{ "FI_SHRIMP_PIN", "yes", "require" },
		{ "FI_SHRIMP_MTT", "page", "extent|pages" },
		{ "FI_SHRIMP_MR_MODE", "prov_key,basic", "prov_key" },
		{ "FI_SHRIMP_MR_MODE", "local;virt_addr", "commas" },
	};

	(void)state;
	refused(bad, sizeof(bad) / sizeof(*bad));
}

static void settings_unknown_names(void **state)
{
	static const char *const names[] = { "FI_SHRIMP_", "FI_SHRIMP_attach",
					     "FI_SHRIMP_ATTACHE",
					     "FI_SHRIMP_ATTAC",
					     "FI_SHRIMP_PIN" };
	struct shrimp_settings s;
	char text[TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_int_equal(load(names[i], "x7y", &s, text), -FI_EINVAL);
		assert_non_null(strstr(text, names[i]));
		assert_non_null(strstr(text, "x7y"));
	}
}

static void settings_keycache_refused(void **state)
{
	static const struct bad bad[] = {
		{ "FI_SHRIMP_KEYCACHE_ENTRIES", "0", "1048576" },
		{ "FI_SHRIMP_KEYCACHE_ENTRIES", "1048577", "1048576" },
		{ "FI_SHRIMP_KEYCACHE_ENTRIES", "12", "4, times 2^n" },
		{ "FI_SHRIMP_KEYCACHE_ENTRIES", "2", "4, times 2^n" },
		{ "FI_SHRIMP_KEYCACHE_WAYS", "0", "from 1 to 256" },
		{ "FI_SHRIMP_KEYCACHE_WAYS", "257", "from 1 to 256" },
		{ "FI_SHRIMP_KEYCACHE_POLICY", "fifo", "lru|random|none" },
		{ "FI_SHRIMP_KEYCACHE_MISS_NS", "1000000001", "1000000000" },
		{ "FI_SHRIMP_KEYCACHE_MISS_NS", "1us", "1000000000" },
		{ "FI_SHRIMP_KEYCACHE_SEED", "-1", "from 0" },
	};

	(void)state;
	refused(bad, sizeof(bad) / sizeof(*bad));
}

/* Two settings that do not go together: the message names both. */
static void settings_keycache_shape(void **state)
{
	struct shrimp_settings s;
	char text[TEXT_MAX];

	(void)state;
	setenv("FI_SHRIMP_KEYCACHE_WAYS", "12", 1);
	assert_int_equal(good("FI_SHRIMP_KEYCACHE_ENTRIES", "96").keys.ways,
			 12);
	assert_int_equal(load("FI_SHRIMP_KEYCACHE_ENTRIES", "256", &s, text),
			 -FI_EINVAL);
	assert_non_null(strstr(text, "FI_SHRIMP_KEYCACHE_ENTRIES=256"));
	assert_non_null(strstr(text, "FI_SHRIMP_KEYCACHE_WAYS, which is 12"));
}

/* Variables of others are none of our business. */
static void settings_foreign_names(void **state)
{
	struct shrimp_settings s;

	(void)state;
	s = good("FI_SHRIMPS_ATTACH", "x");
	shrimp_settings_free(&s);
	s = good("XFI_SHRIMP_ATTACH", "x");
	shrimp_settings_free(&s);
}

/* Every fault is told, not just the first. */
static void settings_all_faults_are_told(void **state)
{
	struct shrimp_settings s;
	char text[TEXT_MAX];

	(void)state;
	setenv("FI_SHRIMP_SPIN", "round", 1);
	setenv("FI_SHRIMP_NO_SUCH", "1", 1);
	assert_int_equal(load("FI_SHRIMP_NUMA", "far", &s, text), -FI_EINVAL);
	assert_non_null(strstr(text, "FI_SHRIMP_SPIN"));
	assert_non_null(strstr(text, "FI_SHRIMP_NO_SUCH"));
	assert_non_null(strstr(text, "FI_SHRIMP_NUMA"));
}

#define CASE(f) cmocka_unit_test_setup(f, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(settings_defaults),
		CASE(settings_numbers),
		CASE(settings_words),
		CASE(settings_of_regions),
		CASE(settings_path),
		CASE(settings_refused),
		CASE(settings_unknown_names),
		CASE(settings_keycache_refused),
		CASE(settings_keycache_shape),
		CASE(settings_foreign_names),
		CASE(settings_all_faults_are_told),
	};

	return cmocka_run_group_tests(tests, define, NULL);
}
