# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors

# shrimp-run, shrimp-inspect, and scripts that the build itself uses.

bin_SCRIPTS = tools/shrimp-run
CLEANFILES += tools/shrimp-run

tools/shrimp-run: $(top_srcdir)/tools/shrimp-run.in Makefile
	$(AM_V_GEN)$(MKDIR_P) tools && \
	$(SED) -e 's|@providerdir[@]|$(providerdir)|g' \
		-e 's|@VERSION[@]|$(VERSION)|g' \
		$(top_srcdir)/tools/shrimp-run.in >$@.tmp && \
	chmod +x $@.tmp && mv $@.tmp $@

# All of shrimp-inspect but its main(), for its unit test as well.
noinst_LTLIBRARIES += tools/libinspect.la
tools_libinspect_la_SOURCES = \
	tools/inspect.h \
	tools/inspect_cache.c \
	tools/inspect_cache.h \
	tools/inspect_count.c \
	tools/inspect_count.h \
	tools/inspect_device.c \
	tools/inspect_device.h \
	tools/inspect_file.c \
	tools/inspect_file.h \
	tools/inspect_find.c \
	tools/inspect_find.h \
	tools/inspect_json.c \
	tools/inspect_json.h \
	tools/inspect_lanes.c \
	tools/inspect_lanes.h \
	tools/inspect_note.c \
	tools/inspect_note.h \
	tools/inspect_options.c \
	tools/inspect_options.h \
	tools/inspect_print.c \
	tools/inspect_print.h \
	tools/inspect_regions.c \
	tools/inspect_regions.h \
	tools/inspect_tables.c \
	tools/inspect_tables.h \
	tools/inspect_text.c \
	tools/inspect_walk.c \
	tools/inspect_walk.h

bin_PROGRAMS = tools/shrimp-inspect
tools_shrimp_inspect_SOURCES = tools/shrimp-inspect.c
tools_shrimp_inspect_LDADD = \
	tools/libinspect.la \
	shm/librnic.la \
	$(DEVICE_LIBS)

UNIT_TESTS += tools/inspect_test
tools_inspect_test_SOURCES = \
	shm/reach_kit.c \
	shm/reach_kit.h \
	tools/inspect_test.c
tools_inspect_test_LDADD = tools/libinspect.la $(LDADD)

SCRIPT_TESTS += \
	tools/check-exports \
	tools/shrimp-run_test

EXTRA_DIST += \
	tools/check-contract \
	tools/check-exports \
	tools/check-spelling \
	tools/check-style \
	tools/run-test \
	tools/sanitizer/lsan.supp \
	tools/sanitizer/tsan.supp \
	tools/shrimp-run.in \
	tools/shrimp-run_test \
	tools/spelling-ignore \
	tools/sum-tests
