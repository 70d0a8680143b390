# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors

# shrimp-run, and scripts that the build itself uses.

bin_SCRIPTS = tools/shrimp-run
CLEANFILES += tools/shrimp-run

tools/shrimp-run: $(top_srcdir)/tools/shrimp-run.in Makefile
	$(AM_V_GEN)$(MKDIR_P) tools && \
	$(SED) -e 's|@providerdir[@]|$(providerdir)|g' \
		-e 's|@VERSION[@]|$(VERSION)|g' \
		$(top_srcdir)/tools/shrimp-run.in >$@.tmp && \
	chmod +x $@.tmp && mv $@.tmp $@

SCRIPT_TESTS += \
	tools/check-exports \
	tools/shrimp-run_test

EXTRA_DIST += \
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
