# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors

# MPI programs. They use what is installed: MPI, libfabric, and the extension
# header of the provider. Each program also has its two lines below.

MPI_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
MPI_TEST_LDADD = mpi-tests/libmpitest.la $(LIBFABRIC_LIBS) $(MPI_LIBS)

if HAVE_MPI
check_LTLIBRARIES += mpi-tests/libmpitest.la
endif

mpi_tests_libmpitest_la_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_libmpitest_la_SOURCES = \
	mpi-tests/common.c \
	mpi-tests/common.h \
	mpi-tests/win.c \
	mpi-tests/win.h

# The names of the list TESTS, which says what each of them runs. Some are run
# by pml ob1, too; all of them with SHRIMP_TEST_PML=ob1 in the environment.
MPI_TESTS += \
	mpi-tests/ring.mpi \
	mpi-tests/allreduce.mpi \
	mpi-tests/alltoall.mpi \
	mpi-tests/halo.mpi \
	mpi-tests/pt2pt.mpi \
	mpi-tests/storm.mpi \
	mpi-tests/storm_lane2.mpi \
	mpi-tests/legal_lane2.mpi \
	mpi-tests/case_P15.mpi \
	mpi-tests/case_P16.mpi \
	mpi-tests/datatypes.mpi \
	mpi-tests/coll.mpi \
	mpi-tests/comms.mpi \
	mpi-tests/case_P19.mpi \
	mpi-tests/case_P21.mpi \
	mpi-tests/case_P18.mpi \
	mpi-tests/onesided.mpi \
	mpi-tests/rma_sync.mpi \
	mpi-tests/rma_ops.mpi \
	mpi-tests/rma_threads.mpi \
	mpi-tests/rma_latency.mpi \
	mpi-tests/case_P3.mpi \
	mpi-tests/case_P6.mpi \
	mpi-tests/case_P7.mpi \
	mpi-tests/case_P9.mpi \
	mpi-tests/case_P11.mpi \
	mpi-tests/case_P12.mpi \
	mpi-tests/case_P13.mpi \
	mpi-tests/case_M11.mpi \
	mpi-tests/case_T20.mpi \
	mpi-tests/case_T24.mpi \
	mpi-tests/ring.ob1.mpi \
	mpi-tests/rma_ops.ob1.mpi \
	mpi-tests/case_P1.mpi \
	mpi-tests/reverse.mpi \
	mpi-tests/legal.mpi \
	mpi-tests/case_P22.mpi \
	mpi-tests/case_E14.mpi \
	mpi-tests/killed.mpi \
	mpi-tests/netpipe.mpi \
	mpi-tests/hpcc.mpi \
	mpi-tests/mpi4py.mpi \
	mpi-tests/remap_uffd.mpi \
	mpi-tests/remap_notify.mpi \
	mpi-tests/case_C9.mpi \
	mpi-tests/remap_uffd.ob1.mpi \
	mpi-tests/remap_notify.ob1.mpi \
	mpi-tests/case_C9.ob1.mpi \
	mpi-tests/mpi4py_remap.mpi

# The harness wants a file for each test; for these it is an empty one.
$(MPI_TESTS): Makefile
	@$(MKDIR_P) mpi-tests && : >$@
CLEANFILES += $(MPI_TESTS)

EXTRA_DIST += \
	mpi-tests/TESTS \
	mpi-tests/hpcc.sh \
	mpi-tests/killed.sh \
	mpi-tests/mpi4py.sh \
	mpi-tests/mpi4py_remap.sh \
	mpi-tests/netpipe.sh \
	mpi-tests/py_data.py \
	mpi-tests/py_remap.py \
	mpi-tests/run-mpi

mpi_test_programs = \
	mpi-tests/allreduce \
	mpi-tests/alltoall \
	mpi-tests/cancel \
	mpi-tests/coll \
	mpi-tests/comms \
	mpi-tests/datatypes \
	mpi-tests/fanin \
	mpi-tests/halo \
	mpi-tests/killed \
	mpi-tests/legal \
	mpi-tests/mixed \
	mpi-tests/onesided \
	mpi-tests/oversub \
	mpi-tests/probe \
	mpi-tests/pt2pt \
	mpi-tests/remap \
	mpi-tests/reverse \
	mpi-tests/ring \
	mpi-tests/rma_busy \
	mpi-tests/rma_cases \
	mpi-tests/rma_latency \
	mpi-tests/rma_ops \
	mpi-tests/rma_sync \
	mpi-tests/rma_threads \
	mpi-tests/sizes \
	mpi-tests/spawn \
	mpi-tests/storm \
	mpi-tests/threads

mpi_tests_allreduce_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_allreduce_LDADD = $(MPI_TEST_LDADD)
mpi_tests_alltoall_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_alltoall_LDADD = $(MPI_TEST_LDADD)
mpi_tests_cancel_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_cancel_LDADD = $(MPI_TEST_LDADD)
mpi_tests_coll_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_coll_LDADD = $(MPI_TEST_LDADD)
mpi_tests_comms_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_comms_LDADD = $(MPI_TEST_LDADD)
mpi_tests_datatypes_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_datatypes_LDADD = $(MPI_TEST_LDADD)
mpi_tests_fanin_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_fanin_LDADD = $(MPI_TEST_LDADD)
mpi_tests_halo_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_halo_LDADD = $(MPI_TEST_LDADD)
mpi_tests_killed_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_killed_LDADD = $(MPI_TEST_LDADD)
mpi_tests_legal_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_legal_LDADD = $(MPI_TEST_LDADD)
mpi_tests_mixed_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_mixed_LDADD = $(MPI_TEST_LDADD)
mpi_tests_onesided_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_onesided_LDADD = $(MPI_TEST_LDADD)
mpi_tests_oversub_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_oversub_LDADD = $(MPI_TEST_LDADD)
mpi_tests_probe_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_probe_LDADD = $(MPI_TEST_LDADD)
mpi_tests_pt2pt_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_pt2pt_LDADD = $(MPI_TEST_LDADD)
mpi_tests_remap_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_remap_LDADD = $(MPI_TEST_LDADD)
mpi_tests_reverse_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_reverse_LDADD = $(MPI_TEST_LDADD)
mpi_tests_ring_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_ring_LDADD = $(MPI_TEST_LDADD)
mpi_tests_rma_busy_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_rma_busy_LDADD = $(MPI_TEST_LDADD)
mpi_tests_rma_cases_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_rma_cases_LDADD = $(MPI_TEST_LDADD)
mpi_tests_rma_latency_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_rma_latency_LDADD = $(MPI_TEST_LDADD)
mpi_tests_rma_ops_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_rma_ops_LDADD = $(MPI_TEST_LDADD)
mpi_tests_rma_sync_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_rma_sync_LDADD = $(MPI_TEST_LDADD)
mpi_tests_rma_threads_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_rma_threads_LDADD = $(MPI_TEST_LDADD)
mpi_tests_sizes_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_sizes_LDADD = $(MPI_TEST_LDADD)
mpi_tests_spawn_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_spawn_LDADD = $(MPI_TEST_LDADD)
mpi_tests_storm_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_storm_LDADD = $(MPI_TEST_LDADD)
mpi_tests_threads_CPPFLAGS = $(MPI_TEST_CPPFLAGS)
mpi_tests_threads_LDADD = $(MPI_TEST_LDADD)
