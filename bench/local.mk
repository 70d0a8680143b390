# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors

# Benchmarks. They use what is installed: MPI and libfabric.

noinst_LTLIBRARIES += bench/libbench.la
noinst_PROGRAMS += \
	bench/fi-pingpong \
	bench/raw-probe
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

bench_mpi_pingpong_SOURCES = bench/mpi-pingpong.c
bench_mpi_pingpong_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
bench_mpi_pingpong_LDADD = bench/libbench.la $(MPI_LIBS) -lm

bench_mpi_pingpong_mpich_SOURCES = bench/mpi-pingpong.c
bench_mpi_pingpong_mpich_CPPFLAGS = $(AM_CPPFLAGS) $(MPICH_CFLAGS)
bench_mpi_pingpong_mpich_LDADD = bench/libbench.la $(MPICH_LIBS) -lm

UNIT_TESTS += \
	bench/batch_test \
	bench/order_test \
	bench/stats_test
SCRIPT_TESTS += bench/table_test

bench_batch_test_LDADD = bench/libbench.la $(CMOCKA_LIBS) -lm
bench_order_test_LDADD = bench/libbench.la $(CMOCKA_LIBS) -lm
bench_stats_test_LDADD = bench/libbench.la $(CMOCKA_LIBS) -lm

EXTRA_DIST += \
	bench/counts.awk \
	bench/driver.sh \
	bench/fi-compare \
	bench/mpi-compare \
	bench/table.awk \
	bench/table_test

# The table of shrimp beside its peers.
bench: all
	SHRIMP_BUILDDIR='$(abs_top_builddir)' $(top_srcdir)/bench/mpi-compare
