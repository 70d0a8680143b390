# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors

# Benchmarks. They use what is installed: MPI and libfabric.

noinst_LTLIBRARIES += bench/libbench.la
noinst_PROGRAMS += \
	bench/fi-pingpong \
	bench/raw-probe \
	bench/shrimp-bench \
	bench/shrimp-stress
if HAVE_MPI
noinst_PROGRAMS += bench/mpi-pingpong
endif
if HAVE_MPICH
noinst_PROGRAMS += bench/mpi-pingpong-mpich
endif

bench_libbench_la_SOURCES = \
	bench/batch.c \
	bench/batch.h \
	bench/clock.h \
	bench/control.c \
	bench/control.h \
	bench/options.c \
	bench/options.h \
	bench/order.c \
	bench/order.h \
	bench/payload.c \
	bench/payload.h \
	bench/pin.c \
	bench/pin.h \
	bench/probe.c \
	bench/probe.h \
	bench/sb_measure.c \
	bench/sb_measure.h \
	bench/sb_out.c \
	bench/sb_out.h \
	bench/sb_pattern.c \
	bench/sb_pattern.h \
	bench/sb_plot.c \
	bench/session.c \
	bench/session.h \
	bench/sizes.c \
	bench/sizes.h \
	bench/stats.c \
	bench/stats.h

bench_raw_probe_SOURCES = bench/raw-probe.c
bench_raw_probe_LDADD = bench/libbench.la -lm

bench_fi_pingpong_SOURCES = \
	bench/fi-pair.c \
	bench/fi-pair.h \
	bench/fi-pingpong.c
bench_fi_pingpong_LDADD = bench/libbench.la $(LIBFABRIC_LIBS) -lm

bench_shrimp_bench_SOURCES = \
	bench/sb_atomic.c \
	bench/sb_cache.c \
	bench/sb_cache.h \
	bench/sb_cache_cost.c \
	bench/sb_cache_hit.c \
	bench/sb_cache_use.c \
	bench/sb_crew.c \
	bench/sb_crew.h \
	bench/sb_device.c \
	bench/sb_device.h \
	bench/sb_fence.c \
	bench/sb_fence_many.c \
	bench/sb_fence_many.h \
	bench/sb_floor.c \
	bench/sb_floor.h \
	bench/sb_keycache.c \
	bench/sb_lookup.c \
	bench/sb_lookup.h \
	bench/sb_lookup_beside.c \
	bench/sb_msg.c \
	bench/sb_odp.c \
	bench/sb_onesided.c \
	bench/sb_onesided.h \
	bench/sb_options.c \
	bench/sb_options.h \
	bench/sb_peer.c \
	bench/sb_peer.h \
	bench/sb_proc.c \
	bench/sb_proc.h \
	bench/sb_raw.c \
	bench/sb_raw.h \
	bench/sb_reg.c \
	bench/sb_reg.h \
	bench/sb_reg_many.c \
	bench/sb_rma.c \
	bench/sb_side.c \
	bench/sb_side.h \
	bench/sb_subs.h \
	bench/sb_window.c \
	bench/shrimp-bench.c
bench_shrimp_bench_LDADD = \
	bench/libbench.la \
	shm/librnic.la \
	$(CORE_LIBS) \
	-lm

# Its parts are in stress/.
bench_shrimp_stress_SOURCES = bench/shrimp-stress.c
bench_shrimp_stress_LDADD = bench/stress/libstress.la $(LIBFABRIC_LIBS)

bench_mpi_pingpong_SOURCES = bench/mpi-pingpong.c
bench_mpi_pingpong_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
bench_mpi_pingpong_LDADD = bench/libbench.la $(MPI_LIBS) -lm

bench_mpi_pingpong_mpich_SOURCES = bench/mpi-pingpong.c
bench_mpi_pingpong_mpich_CPPFLAGS = $(AM_CPPFLAGS) $(MPICH_CFLAGS)
bench_mpi_pingpong_mpich_LDADD = bench/libbench.la $(MPICH_LIBS) -lm

UNIT_TESTS += \
	bench/batch_test \
	bench/order_test \
	bench/sb_measure_test \
	bench/sb_out_test \
	bench/sb_pattern_test \
	bench/stats_test
SCRIPT_TESTS += \
	bench/sb_quick_test \
	bench/sb_smoke_test \
	bench/table_test

bench_batch_test_LDADD = bench/libbench.la $(CMOCKA_LIBS) -lm
bench_order_test_LDADD = bench/libbench.la $(CMOCKA_LIBS) -lm
bench_sb_measure_test_LDADD = bench/libbench.la $(CMOCKA_LIBS) -lm
bench_sb_out_test_LDADD = bench/libbench.la $(CMOCKA_LIBS) -lm
bench_sb_pattern_test_LDADD = bench/libbench.la $(CMOCKA_LIBS) -lm
bench_stats_test_LDADD = bench/libbench.la $(CMOCKA_LIBS) -lm

EXTRA_DIST += \
	bench/counts.awk \
	bench/driver.sh \
	bench/fi-compare \
	bench/mpi-compare \
	bench/sb_quick_test \
	bench/sb_smoke_test \
	bench/table.awk \
	bench/table_test

# The table of shrimp beside its peers.
bench: all
	SHRIMP_BUILDDIR='$(abs_top_builddir)' $(top_srcdir)/bench/mpi-compare
