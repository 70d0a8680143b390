# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors

# The stress test of registration caches: public calls of libfabric only.

noinst_LTLIBRARIES += bench/stress/libstress.la

bench_stress_libstress_la_SOURCES = \
	bench/stress/child.c \
	bench/stress/churn.c \
	bench/stress/churn.h \
	bench/stress/common.c \
	bench/stress/fi.c \
	bench/stress/fi.h \
	bench/stress/group.c \
	bench/stress/group.h \
	bench/stress/inside.h \
	bench/stress/inspect.c \
	bench/stress/inspect.h \
	bench/stress/list.c \
	bench/stress/list.h \
	bench/stress/memory.c \
	bench/stress/memory.h \
	bench/stress/mr.c \
	bench/stress/mr.h \
	bench/stress/options.c \
	bench/stress/options.h \
	bench/stress/pattern.c \
	bench/stress/pattern.h \
	bench/stress/peer.c \
	bench/stress/peer.h \
	bench/stress/plan.c \
	bench/stress/plan.h \
	bench/stress/result.c \
	bench/stress/result.h \
	bench/stress/run.c \
	bench/stress/run.h \
	bench/stress/sc_arena.c \
	bench/stress/sc_file.c \
	bench/stress/sc_fork.c \
	bench/stress/sc_handover.c \
	bench/stress/sc_heap.c \
	bench/stress/sc_huge.c \
	bench/stress/sc_kill.c \
	bench/stress/sc_limit.c \
	bench/stress/sc_madvise.c \
	bench/stress/sc_merge.c \
	bench/stress/sc_monitor.c \
	bench/stress/sc_mremap.c \
	bench/stress/sc_remap.c \
	bench/stress/sc_second.c \
	bench/stress/sc_stale.c \
	bench/stress/sc_static.c \
	bench/stress/sc_sysv.c \
	bench/stress/sc_threads.c \
	bench/stress/serve.c \
	bench/stress/serve.h \
	bench/stress/shrink.c \
	bench/stress/stress.h \
	bench/stress/usage.c \
	bench/stress/usage.h \
	bench/stress/wire.c \
	bench/stress/wire.h \
	bench/stress/xfer.c \
	bench/stress/xfer.h

UNIT_TESTS += \
	bench/stress/pattern_test \
	bench/stress/plan_test
bench_stress_pattern_test_LDADD = bench/stress/libstress.la $(CMOCKA_LIBS)
bench_stress_plan_test_LDADD = \
	bench/stress/libstress.la \
	$(CMOCKA_LIBS) \
	$(LIBFABRIC_LIBS)

SCRIPT_TESTS += bench/stress/stress_test
EXTRA_DIST += \
	bench/stress/README \
	bench/stress/stress_test
