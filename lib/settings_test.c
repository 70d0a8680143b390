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
	assert_int_equal(s.numa, SHRIMP_NUMA_LOCAL);
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
	assert_int_equal(good("FI_SHRIMP_NUMA", "off").numa, SHRIMP_NUMA_OFF);
	assert_true(good("FI_SHRIMP_MEMBARRIER", "auto").membarrier);
	assert_false(good("FI_SHRIMP_MEMBARRIER", "off").membarrier);
	assert_int_equal(good("FI_SHRIMP_PIN", "try").pin, RNIC_PIN_TRY);
	assert_int_equal(good("FI_SHRIMP_PIN", "require").pin,
			 RNIC_PIN_REQUIRE);
	assert_int_equal(good("FI_SHRIMP_PIN", "off").pin, RNIC_PIN_OFF);
	assert_int_equal(good("FI_SHRIMP_MR_MODE", "").mr_mode, 0);
	assert_int_equal(good("FI_SHRIMP_MR_MODE", "local").mr_mode, 1);
	assert_int_equal(
		good("FI_SHRIMP_MR_MODE", "endpoint,virt_addr").mr_mode, 10);
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

/* One line that names variable, value and what is allowed. */
static void settings_refused(void **state)
{
	static const struct {
		const char *name, *value; /* what is set */
		const char *allowed;	  /* a part of what is said */
	} bad[] = {
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
		{ "FI_SHRIMP_NUMA", "on", "local" },
		{ "FI_SHRIMP_MEMBARRIER", "on", "off" },
		{ "FI_SHRIMP_PIN", "yes", "require" },
		{ "FI_SHRIMP_MR_MODE", "prov_key,basic", "prov_key" },
		{ "FI_SHRIMP_MR_MODE", "local;virt_addr", "commas" },
	};
	struct shrimp_settings s;
	char text[TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(load(bad[i].name, bad[i].value, &s, text),
				 -FI_EINVAL);
		assert_non_null(strstr(text, bad[i].name));
		assert_non_null(strstr(text, bad[i].value));
		assert_non_null(strstr(text, bad[i].allowed));
		assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
		assert_null(s.stats_file);
	}
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
		CASE(settings_path),
		CASE(settings_refused),
		CASE(settings_unknown_names),
		CASE(settings_foreign_names),
		CASE(settings_all_faults_are_told),
	};

	return cmocka_run_group_tests(tests, define, NULL);
}
